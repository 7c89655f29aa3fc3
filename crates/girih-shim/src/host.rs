//! Calls to the host program around a launch: it may release its own lock while the kernel runs, and is asked now and
//! then whether to go on.
//!
//! A GPU's driver returns at once, so a program calls it with its locks held; here the call lasts as long as the kernel.

use std::ffi::{c_int, c_void};

use girih::sync::Brief;

/// Lets go of the calling thread's hold on the host, and returns the argument of `restore`; null when it had none.
pub type Release = unsafe extern "C" fn() -> *mut c_void;
pub type Restore = unsafe extern "C" fn(*mut c_void);
/// Nonzero: give up. Called on the launching thread, after `release`.
pub type Ask = unsafe extern "C" fn() -> c_int;

#[derive(Clone, Copy)]
pub struct Host {
    pub release: Release,
    pub restore: Restore,
    pub ask: Ask,
}

static HOST: Brief<Option<Host>> = Brief::new(None);

pub fn set(host: Option<Host>) {
    *HOST.lock() = host;
}

pub fn current() -> Option<Host> {
    *HOST.lock()
}

impl Host {
    /// Does `work` while the host is free, unless `keep`, and asks it.
    pub fn around<R>(&self, keep: bool, work: impl FnOnce() -> R) -> R {
        struct Released(Restore, *mut c_void);
        impl Drop for Released {
            fn drop(&mut self) {
                // SAFETY: the host gives the functions to be called in pairs, on one thread.
                unsafe { (self.0)(self.1) }
            }
        }
        // SAFETY: as above.
        let _released = (!keep).then(|| Released(self.restore, unsafe { (self.release)() }));
        // SAFETY: the host gives the function to be called on a thread that launches.
        girih::attentive(&|| unsafe { (self.ask)() } != 0, work)
    }
}
