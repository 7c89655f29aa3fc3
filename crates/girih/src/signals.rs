//! Ctrl-C: a running launch is told to stop and cleans up; anything else simply ends with exit code 130.

use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// Every launch polls this flag: nonzero means return soon.
pub(crate) static ABORT: AtomicI32 = AtomicI32::new(0);
static INTERRUPTED: AtomicI32 = AtomicI32::new(0);
/// Pieces of work under way that notice the flag and clean up after themselves.
static COOPERATIVE: AtomicUsize = AtomicUsize::new(0);

/// Whether Ctrl-C was pressed since the handler was installed.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed) != 0
}

/// While one lives, Ctrl-C sets flags instead of ending the process; a second Ctrl-C ends it all the same.
pub(crate) struct Cooperative(());

impl Cooperative {
    pub fn enter() -> Cooperative {
        COOPERATIVE.fetch_add(1, Ordering::SeqCst);
        Cooperative(())
    }
}

impl Drop for Cooperative {
    fn drop(&mut self) {
        COOPERATIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

extern "C" fn on_interrupt(_signal: libc::c_int) {
    let again = INTERRUPTED.swap(1, Ordering::SeqCst) != 0;
    ABORT.store(1, Ordering::SeqCst);
    if again || COOPERATIVE.load(Ordering::SeqCst) == 0 {
        // SAFETY: `_exit` may be called from a signal handler.
        unsafe { libc::_exit(130) }
    }
}

/// Makes Ctrl-C (SIGINT) stop launches in an orderly way. For programs, such as the command line; a library's host
/// keeps its own handler unless it calls this.
pub fn install_interrupt_handler() {
    // SAFETY: the handler touches only atomics and calls `_exit`; the struct is zeroed, then filled as sigaction asks.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_interrupt as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut());
    }
}
