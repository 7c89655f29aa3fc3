//! `girih_shim_*`: the library's functions beyond the driver's. The crate's README has the C declarations.

use std::ffi::{c_char, c_void};

use crate::codes;
use crate::container::Options;
use crate::driver;
use crate::failure::{self, Failure};
use crate::ffi::{Out, Text};
use crate::{assemble, host, memory, options};

#[unsafe(no_mangle)]
pub extern "C" fn girih_shim_last_error() -> *const c_char {
    failure::last_json().unwrap_or(std::ptr::null())
}

#[unsafe(no_mangle)]
pub extern "C" fn girih_shim_clear_error() {
    failure::clear();
}

#[unsafe(no_mangle)]
pub extern "C" fn girih_shim_options() -> *const c_char {
    failure::hand_out(&options::json())
}

#[unsafe(no_mangle)]
pub extern "C" fn girih_shim_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn girih_shim_interrupt() {
    girih::stop_launch();
}

type PrintFn = Option<unsafe extern "C" fn(*mut c_void, *const u8, usize)>;

driver! {
    fn girih_shim_set_options(json: Text) { options::set(&json.get()?) }
    fn girih_shim_set_printer(function: PrintFn, user: *mut c_void) {
        options::set_printer(function.map(|function| options::Receiver { function, user }));
        Ok(())
    }
    fn girih_shim_set_warner(function: PrintFn, user: *mut c_void) {
        options::set_warner(function.map(|function| options::Receiver { function, user }));
        Ok(())
    }
    fn girih_shim_set_host(release: Option<host::Release>, restore: Option<host::Restore>, ask: Option<host::Ask>) {
        host::set(match (release, restore, ask) {
            (Some(release), Some(restore), Some(ask)) => Some(host::Host { release, restore, ask }),
            (None, None, None) => None,
            _ => return Err(Failure::value("a host must have three functions or none")),
        });
        Ok(())
    }
    fn girih_shim_assemble(
        bytes: *const u8, length: usize, options: *const c_char, image: Out<*mut c_void>, image_length: Out<usize>,
    ) {
        if bytes.is_null() || image.is_null() || image_length.is_null() {
            return Err(Failure::value("an address is null"));
        }
        let options = match options.is_null() {
            true => Options::default(),
            false => Options::from_json(&Text::new(options).get()?).map_err(Failure::value)?,
        };
        // SAFETY: the caller gives the start of `length` readable bytes.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, length) };
        let container = assemble::assemble(bytes, &options)?;
        // SAFETY: `malloc` may be called with any size; the result is tested.
        let room = unsafe { libc::malloc(container.len()) };
        if room.is_null() {
            return Err(Failure::new(codes::ERROR_OUT_OF_MEMORY, "there is no memory for the container"));
        }
        // SAFETY: `room` has room for as many bytes, and is nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(container.as_ptr(), room.cast(), container.len()) };
        image.set(room)?;
        image_length.set(container.len())
    }
    fn girih_shim_declare(start: u64, length: usize, name: Text) {
        memory::declare(start, length as u64, &name.get()?)
    }
    fn girih_shim_forget(start: u64) { memory::forget(start) }
}

#[unsafe(no_mangle)]
pub extern "C" fn girih_shim_free(image: *mut c_void) {
    // SAFETY: the caller returns memory that `girih_shim_assemble` took from `malloc`, once; null is nothing.
    unsafe { libc::free(image) };
}
