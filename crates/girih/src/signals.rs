//! Ctrl-C: a running launch is told to stop and cleans up; anything else simply ends with exit code 130. And the fault
//! of a native kernel that accesses memory which is not there: a message and exit code 3 instead of a crash.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

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

/// Set by [`install_interrupt_handler`]: faults of kernels are explained, too.
static EXPLAIN: AtomicBool = AtomicBool::new(false);
const FAULTS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];
const FAULT: &str = "error[E0603]: the kernel accessed memory that does not exist, and the system stopped it
help: `--check` says which operation, in which block and at which index
";

/// While one lives, native code runs, and a fault is its own. One at a time.
pub(crate) struct Native(Option<[libc::sigaction; 2]>);

impl Native {
    pub fn enter() -> Native {
        let explain = EXPLAIN.load(Ordering::Relaxed);
        Native(explain.then(|| FAULTS.map(|signal| handle(signal, on_fault, libc::SA_ONSTACK))))
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        for (signal, before) in FAULTS.into_iter().zip(self.0.into_iter().flatten()) {
            // SAFETY: puts back an action that the system gave out.
            unsafe { libc::sigaction(signal, &before, std::ptr::null_mut()) };
        }
    }
}

extern "C" fn on_fault(_signal: libc::c_int) {
    // SAFETY: `write` and `_exit` may be called from a signal handler; the text is static.
    unsafe {
        libc::write(2, FAULT.as_ptr().cast(), FAULT.len());
        libc::_exit(3)
    }
}

/// Sets a handler that is safe in signal context; returns what was there before.
fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int), flags: libc::c_int) -> libc::sigaction {
    // SAFETY: the struct is zeroed, then filled as sigaction asks; both handlers of this module touch only atomics and
    // call functions that a handler may call.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut before: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = flags;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(signal, &action, &mut before);
        before
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

/// Makes Ctrl-C (SIGINT) stop launches in an orderly way, and explains the faults of kernels. For programs, such as the
/// command line; a library's host keeps its own handlers unless it calls this.
pub fn install_interrupt_handler() {
    handle(libc::SIGINT, on_interrupt, libc::SA_RESTART);
    EXPLAIN.store(true, Ordering::Relaxed);
}
