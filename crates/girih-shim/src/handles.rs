//! Handles: the numbers that driver functions give out for objects, and the look-up of the objects.
//!
//! A handle is a number that was never an address, unlike any other that the process gives out, so a stale, foreign or
//! made-up handle is found out and nothing is dereferenced.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::codes;
use crate::failure::{Failure, Result};
use girih::sync::{Brief, BriefGuard};

/// A handle that the C side holds: `CUstream`, `CUmodule` and so on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(transparent)]
pub struct Handle(pub usize);

impl Handle {
    pub const NULL: Handle = Handle(0);

    /// A handle that no table has given out before. They lie where no process has memory, in steps that keep the low
    /// bits free.
    fn fresh() -> Handle {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        Handle((0x0611_0000_0000_0000usize | NEXT.fetch_add(1, Ordering::Relaxed) << 4) & usize::MAX)
    }
}

/// Objects of one kind, by handle.
pub struct Table<T> {
    what: &'static str,
    objects: Brief<BTreeMap<Handle, Arc<T>>>,
}

impl<T> Table<T> {
    pub const fn new(what: &'static str) -> Table<T> {
        Table { what, objects: Brief::new(BTreeMap::new()) }
    }

    fn lock(&self) -> BriefGuard<'_, BTreeMap<Handle, Arc<T>>> {
        self.objects.lock()
    }

    pub fn insert(&self, object: T) -> Handle {
        let handle = Handle::fresh();
        self.lock().insert(handle, Arc::new(object));
        handle
    }

    pub fn get(&self, handle: Handle) -> Result<Arc<T>> {
        self.find(handle).ok_or_else(|| self.unknown(handle))
    }

    pub fn find(&self, handle: Handle) -> Option<Arc<T>> {
        self.lock().get(&handle).cloned()
    }

    /// Forgets the object; its users keep it alive.
    pub fn remove(&self, handle: Handle) -> Result<Arc<T>> {
        self.lock().remove(&handle).ok_or_else(|| self.unknown(handle))
    }

    pub fn retain(&self, keep: impl Fn(&T) -> bool) {
        self.lock().retain(|_, object| keep(object));
    }

    fn unknown(&self, handle: Handle) -> Failure {
        let message = match handle {
            Handle::NULL => format!("the {} is null", self.what),
            _ => format!("{:#x} is not a valid {}, or it was destroyed", handle.0, self.what),
        };
        Failure::new(codes::ERROR_INVALID_HANDLE, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_ends_with_its_object() {
        let table = Table::new("thing");
        let (a, b) = (table.insert(1), table.insert(2));
        assert_ne!(a, b);
        assert_eq!(*table.get(b).unwrap(), 2);
        assert_eq!(*table.remove(a).unwrap(), 1);
        assert_eq!(table.remove(a).unwrap_err().code, codes::ERROR_INVALID_HANDLE);
        assert!(table.get(Handle::NULL).unwrap_err().message.contains("the thing is null"));
        assert!(table.get(Handle(77)).unwrap_err().message.contains("0x4d is not a valid thing"));
    }
}
