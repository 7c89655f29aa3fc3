//! Ctrl-C: a running launch is told to stop and cleans up; anything else simply ends with exit code 130. And the fault
//! of a native kernel that accesses memory which is not there: a message and exit code 3 instead of a crash.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Every launch polls this flag: nonzero means return soon.
pub(crate) static ABORT: AtomicI32 = AtomicI32::new(0);
static INTERRUPTED: AtomicI32 = AtomicI32::new(0);
/// The launch under way was told to stop; the next one starts afresh.
static STOPPED: AtomicBool = AtomicBool::new(false);
/// Pieces of work under way that notice the flag and clean up after themselves.
static COOPERATIVE: AtomicUsize = AtomicUsize::new(0);

/// Whether Ctrl-C was pressed since the handler was installed.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed) != 0
}

/// Stops the launch that is running, if one is: it ends with [`crate::Error::Interrupted`]. May be called from a signal
/// handler.
pub fn stop_launch() {
    STOPPED.store(true, Ordering::SeqCst);
    ABORT.store(1, Ordering::SeqCst);
}

/// A launch begins, alone, since the abort flag is the process's; what stopped an earlier one is over.
pub(crate) fn begin_launch() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    STOPPED.store(false, Ordering::SeqCst);
    ABORT.store(i32::from(interrupted()), Ordering::SeqCst);
    one
}

/// Whether the launch under way is to stop.
pub(crate) fn stopping() -> bool {
    interrupted() || STOPPED.load(Ordering::Relaxed)
}

/// What SIGINT did before the outermost [`Passing`]: handler and flags.
static BEFORE: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
static PASSING: Mutex<(usize, Option<libc::sigaction>)> = Mutex::new((0, None));

/// While one lives, SIGINT stops the launch under way and goes on to the handler that the host program has; for hosts
/// whose handler sets a flag and returns, as Python's. Where the host has none, nothing changes.
pub struct Passing(());

impl Passing {
    pub fn enter() -> Passing {
        let mut state = PASSING.lock().unwrap_or_else(PoisonError::into_inner);
        if state.0 == 0 {
            let now = action(libc::SIGINT);
            let theirs =
                ![libc::SIG_DFL, libc::SIG_IGN, on_interrupt as *const () as usize].contains(&now.sa_sigaction);
            if theirs {
                BEFORE[0].store(now.sa_sigaction, Ordering::SeqCst);
                BEFORE[1].store(now.sa_flags as usize, Ordering::SeqCst);
                handle(libc::SIGINT, on_pass as *const () as usize, libc::SA_RESTART | libc::SA_SIGINFO);
                state.1 = Some(now);
            }
        }
        state.0 += 1;
        Passing(())
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        let mut state = PASSING.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 -= 1;
        if state.0 == 0
            && let Some(before) = state.1.take()
        {
            // SAFETY: puts back an action that the system gave out.
            unsafe { libc::sigaction(libc::SIGINT, &before, std::ptr::null_mut()) };
        }
    }
}

extern "C" fn on_pass(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    stop_launch();
    // SAFETY: the system gave out this handler as SIGINT's, with these flags.
    unsafe { call(&BEFORE, signal, info, context) }
}

/// Calls a signal handler as the system would.
///
/// # Safety
/// The two numbers must be a handler, not one of the special values, and its flags.
unsafe fn call(action: &[AtomicUsize; 2], signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let [handler, flags] = [&action[0], &action[1]].map(|a| a.load(Ordering::SeqCst));
    // SAFETY: as the function's own contract says.
    unsafe {
        if flags as libc::c_int & libc::SA_SIGINFO != 0 {
            let f: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = std::mem::transmute(handler);
            f(signal, info, context);
        } else {
            let f: extern "C" fn(libc::c_int) = std::mem::transmute(handler);
            f(signal);
        }
    }
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

/// What to do about the fault of a kernel: nothing; say what it was and end with code 3; say it and let the host's own
/// handler, or the system, do the rest.
static EXPLAIN: AtomicUsize = AtomicUsize::new(NOT);
const NOT: usize = 0;
const END: usize = 1;
const PASS: usize = 2;
const FAULTS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];
const FAULT: &str = "error[E0603]: the kernel accessed memory that does not exist, and the system stopped it
help: `--check` says which operation, in which block and at which index
";

const FAULT_PASS: &str =
    "girih: a kernel accessed memory that does not exist; with GIRIH_CHECK=1 it is an error that says
which operation, in which block and at which index
";

/// What the faults' signals did before: handler and flags.
static FAULT_BEFORE: [[AtomicUsize; 2]; 2] = [const { [const { AtomicUsize::new(0) }; 2] }; 2];

/// While one lives, native code runs, and a fault is its own. One at a time.
pub(crate) struct Native(Option<[libc::sigaction; 2]>);

impl Native {
    pub fn enter() -> Native {
        let (handler, flags) = match EXPLAIN.load(Ordering::Relaxed) {
            NOT => return Native(None),
            END => (on_fault as *const () as usize, libc::SA_ONSTACK),
            _ => (on_fault_pass as *const () as usize, libc::SA_ONSTACK | libc::SA_SIGINFO),
        };
        let before = FAULTS.map(|signal| handle(signal, handler, flags));
        for (slot, before) in FAULT_BEFORE.iter().zip(&before) {
            slot[0].store(before.sa_sigaction, Ordering::SeqCst);
            slot[1].store(before.sa_flags as usize, Ordering::SeqCst);
        }
        Native(Some(before))
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

extern "C" fn on_fault_pass(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: `write` may be called from a signal handler; the text is static.
    unsafe { libc::write(2, FAULT_PASS.as_ptr().cast(), FAULT_PASS.len()) };
    let before = &FAULT_BEFORE[usize::from(signal != FAULTS[0])];
    match before[0].load(Ordering::SeqCst) {
        libc::SIG_DFL | libc::SIG_IGN => {
            // The access is made once more, and the system ends the process as ever.
            // SAFETY: `signal` may be called from a signal handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        // SAFETY: the system gave out this handler, with these flags.
        _ => unsafe { call(before, signal, info, context) },
    }
}

/// Says on standard error, when native code faults, that a kernel did it; the host's handlers, or the system, then do
/// what they would have done.
pub fn explain_faults() {
    // Who ends on faults keeps to that.
    let _ = EXPLAIN.compare_exchange(NOT, PASS, Ordering::Relaxed, Ordering::Relaxed);
}

/// What a signal does now.
fn action(signal: libc::c_int) -> libc::sigaction {
    // SAFETY: asks for the action in force, into a zeroed struct.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now);
        now
    }
}

/// Sets a handler that is safe in signal context; returns what was there before.
fn handle(signal: libc::c_int, handler: usize, flags: libc::c_int) -> libc::sigaction {
    // SAFETY: the struct is zeroed, then filled as sigaction asks; the handlers of this module touch only atomics and
    // call functions that a handler may call.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut before: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
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
/// command line; a library's host keeps its own handlers unless it calls this. Where whoever started the program had
/// SIGINT ignored, as shells do for jobs in the background and `nohup` for SIGHUP, it stays ignored.
pub fn install_interrupt_handler() {
    if action(libc::SIGINT).sa_sigaction != libc::SIG_IGN {
        handle(libc::SIGINT, on_interrupt as *const () as usize, libc::SA_RESTART);
    }
    EXPLAIN.store(END, Ordering::Relaxed);
}
