//! The allocator of a program that says so when memory ends.
//!
//! Where code asks whether there is memory (`try_reserve`), nothing changes. Elsewhere the standard library aborts when there is
//! none; with [`Allocator`] as the program's allocator and [`install`] called, that is an error with exit code 1 instead.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::signals;

/// The system's allocator, which remembers refused requests.
pub struct Allocator;

/// Bytes of the last allocation that was refused.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

fn noted(at: *mut u8, bytes: usize) -> *mut u8 {
    if at.is_null() {
        REFUSED.store(bytes, Ordering::Relaxed);
    }
    at
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the function's own contract says.
        noted(unsafe { System.alloc(layout) }, layout.size())
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the function's own contract says.
        noted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the function's own contract says.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the function's own contract says.
        noted(unsafe { System.realloc(at, layout, bytes) }, bytes)
    }
}

/// Makes an abort for want of memory an error of the program.
pub fn install() {
    signals::handle(libc::SIGABRT, on_abort as *const () as usize, 0);
}

extern "C" fn on_abort(signal: libc::c_int) {
    // SAFETY: all of these may be called from a signal handler.
    unsafe {
        if REFUSED.load(Ordering::Relaxed) == 0 {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
            return;
        }
        let text =
            b"error: the system grants no more memory (`ulimit -v`, a container's limit, or what the machine has)\n";
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::_exit(1);
    }
}
