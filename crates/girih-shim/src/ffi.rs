//! The C side's pointers, each kind checked and touched in one place.
//!
//! The driver's interface trusts its caller: a pointer that is not null points at memory as the function's documentation says.
//! That is the contract behind every `SAFETY` line here.

use std::ffi::{CStr, c_char};

use crate::failure::{Failure, Result};

/// Where a result goes.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Out<T> {
        *self
    }
}
impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    pub fn is_aligned(&self, to: usize) -> bool {
        self.0.addr().is_multiple_of(to)
    }

    /// Null where there must be a place is the caller's mistake.
    pub fn set(self, value: T) -> Result<()> {
        if self.0.is_null() {
            return Err(Failure::value("the address of a result is null"));
        }
        self.set_if(value);
        Ok(())
    }

    /// Null where the caller does not want to know.
    pub fn set_if(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, so it points at room for a `T`; the driver's structures are written unaligned, too.
            unsafe { self.0.write_unaligned(value) };
        }
    }

    /// The current value, for structures that are both read and written.
    pub fn read(self) -> Result<T>
    where
        T: Copy,
    {
        In(self.0.cast_const()).get()
    }

    /// The same place, for a value of another type.
    pub fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }

    /// Element `i` of an array of results.
    pub fn at(self, i: usize) -> Out<T> {
        if self.0.is_null() { self } else { Out(self.0.wrapping_add(i)) }
    }
}

/// A structure or array that is only read.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T: Copy> In<T> {
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
    pub fn get(self) -> Result<T> {
        self.at(0)
    }
    pub fn at(self, i: usize) -> Result<T> {
        if self.0.is_null() {
            return Err(Failure::value("the address of an argument is null"));
        }
        // SAFETY: not null, so it points at the `T`s that the function takes.
        Ok(unsafe { self.0.add(i).read_unaligned() })
    }
    pub fn from_address(address: usize) -> In<T> {
        In(std::ptr::with_exposed_provenance(address))
    }
}

/// Text that ends in a zero byte.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    pub fn new(text: *const c_char) -> Text {
        Text(text)
    }
    pub fn get(self) -> Result<String> {
        if self.0.is_null() {
            return Err(Failure::value("a name is null"));
        }
        // SAFETY: not null, so it is text that ends in a zero byte.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map(str::to_string).map_err(|_| Failure::value("a name is not UTF-8"))
    }
}
