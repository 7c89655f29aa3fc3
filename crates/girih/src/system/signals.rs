//! Interruptions of work: Ctrl-C, and a host that has something else to do.
//!
//! * Ctrl-C in the command line: a running launch is told to stop and cleans up; anything else ends with exit code 130. The other
//!   signals that ask a process to end do the same, SIGTERM with 143 and the rest with 128 and their number ([`ENDS`]). A file that
//!   grows past `ulimit -f` is an error of the write, not a signal.
//! * The processes that it started, a C compiler above all, do not outlive it: a handler that ends the process at once ends
//!   those that are [`Registered`] first.
//! * A host that leaves those as they are, as Python does: while a compiler runs, they end it and remove its files before they end
//!   the process ([`Compiling`]).
//! * A host such as Python handles its signals on the thread that launches, which is busy: a call under [`attentive`]
//!   looks up every now and then, and asks the host, who handles them and says whether to go on.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Duration;

use crate::system::sync::{self, Brief, Denied, Holding, Turn};

/// Every launch polls this flag: nonzero means to ask.
pub(crate) static ABORT: AtomicI32 = AtomicI32::new(0);
/// The flag's values: return soon; the thread that launched looks up.
pub(crate) const STOP: i32 = 1;
const LOOK: i32 = 2;
/// The signal that ends the process, once it has come.
static INTERRUPTED: AtomicI32 = AtomicI32::new(0);
/// The launch under way was told to stop; the next one starts afresh.
static STOPPED: AtomicBool = AtomicBool::new(false);
/// Pieces of work under way that notice the flag and clean up after themselves.
static COOPERATIVE: AtomicUsize = AtomicUsize::new(0);

/// Returns true if Ctrl-C was pressed since the handler was installed, or another signal asked the process to end.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed) != 0
}

/// The exit code of a process that was [`interrupted`]: 130 after Ctrl-C, 128 and the signal's number after another one.
pub fn interrupt_code() -> u8 {
    match INTERRUPTED.load(Ordering::Relaxed) {
        0 => 130,
        signal => u8::try_from(128 + signal).unwrap_or(130),
    }
}

/// Processes that end with this one: a number, or a group's number negated; 0 in a free place.
static CHILDREN: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];

/// A process, or with a negative number a group of them, that a handler ends which ends this process.
pub struct Registered(Option<&'static AtomicI32>);

impl Registered {
    pub fn process(pid: u32) -> Registered {
        Registered::of(i32::try_from(pid).unwrap_or(0))
    }

    pub fn group(pid: u32) -> Registered {
        Registered::of(-i32::try_from(pid).unwrap_or(0))
    }

    fn of(number: i32) -> Registered {
        let free = |slot: &&AtomicI32| slot.compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        Registered(CHILDREN.iter().find(free))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.store(0, Ordering::SeqCst);
        }
    }
}

/// Ends the registered processes; safe in signal context.
fn end_children(groups_too: bool, signal: libc::c_int) {
    for slot in &CHILDREN {
        let number = slot.load(Ordering::SeqCst);
        // SAFETY: `kill` may be called from a signal handler; the numbers are those of children of this process.
        unsafe {
            match number {
                0 => {}
                1.. => drop(libc::kill(number, signal)),
                _ if groups_too => drop(libc::kill(number, libc::SIGKILL)),
                _ => {}
            }
        }
    }
}

/// Stops the launch that is running, if one is: it ends with [`crate::Error::Interrupted`]. May be called from a signal
/// handler.
pub fn stop_launch() {
    STOPPED.store(true, Ordering::SeqCst);
    ABORT.store(STOP, Ordering::SeqCst);
}

type Ask<'a> = dyn Fn() -> bool + 'a;

thread_local! {
    /// Whom this thread asks, while it is under [`attentive`].
    static ASKED: Cell<Option<*const Ask<'static>>> = const { Cell::new(None) };
}

/// Does `work`; while that launches, compiles or waits, `ask` is called every now and then on this thread, and its work is
/// stopped with [`crate::Error::Interrupted`] when `ask` returns true. `ask` may launch.
pub fn attentive<R>(ask: &(dyn Fn() -> bool + '_), work: impl FnOnce() -> R) -> R {
    struct Restore(Option<*const Ask<'static>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            ASKED.set(self.0);
        }
    }
    let ask: *const Ask<'_> = ask;
    // SAFETY: only the lifetime changes; the pointer is taken out again before this function returns.
    let ask: *const Ask<'static> = unsafe { std::mem::transmute(ask) };
    let _restore = Restore(ASKED.replace(Some(ask)));
    work()
}

/// Returns true if this thread must give up its current or next step; asks its host.
pub(crate) fn attention() -> bool {
    // SAFETY: `attentive`, which has borrowed it, is still under way on this thread.
    interrupted() || ASKED.get().is_some_and(|ask| unsafe { (*ask)() })
}

/// Returns true if the current launch must stop; for the launching thread, which also asks its host when that is due.
pub(crate) fn stopping_here() -> bool {
    if ABORT.load(Ordering::Relaxed) == LOOK
        && ABORT.compare_exchange(LOOK, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        && attention()
    {
        stop_launch();
    }
    stopping()
}

/// Returns true if the current launch must stop; on any thread.
pub(crate) fn stopping() -> bool {
    interrupted() || STOPPED.load(Ordering::Relaxed)
}

/// How often a launch looks up.
const TICK: Duration = Duration::from_millis(50);
/// After this number of ticks without a launch, the ticking thread sleeps.
const IDLE: u32 = 20;

/// Odd while an attentive launch runs; each one counts twice.
static LAUNCHES: AtomicU64 = AtomicU64::new(0);
/// The process whose ticking thread lives, as [`sync::epoch`]; the thread; whether it has gone to sleep.
static TICKING: AtomicU32 = AtomicU32::new(0);
static TICKER: Brief<Option<Thread>> = Brief::new(None);
static ASLEEP: AtomicBool = AtomicBool::new(false);

/// Tells launches that last to look up.
fn tick() {
    let (mut last, mut idle) = (LAUNCHES.load(Ordering::SeqCst), 0);
    loop {
        std::thread::sleep(TICK);
        let now = LAUNCHES.load(Ordering::SeqCst);
        if now == last && now % 2 == 1 {
            // Where it is to stop, it stays so.
            let _ = ABORT.compare_exchange(0, LOOK, Ordering::SeqCst, Ordering::SeqCst);
        }
        idle = if now == last && now.is_multiple_of(2) { idle + 1 } else { 0 };
        last = now;
        if idle >= IDLE {
            ASLEEP.store(true, Ordering::SeqCst);
            while ASLEEP.load(Ordering::SeqCst) && LAUNCHES.load(Ordering::SeqCst) == now {
                std::thread::park();
            }
            ASLEEP.store(false, Ordering::SeqCst);
            idle = 0;
        }
    }
}

/// A launch of a thread whose host is to be asked.
struct Attentive;

impl Attentive {
    fn begin() -> Option<Attentive> {
        ASKED.get()?;
        LAUNCHES.fetch_add(1, Ordering::SeqCst);
        if TICKING.load(Ordering::SeqCst) != sync::epoch() {
            let mut ticker = TICKER.lock();
            ASLEEP.store(false, Ordering::SeqCst);
            // Without the thread, signals wait for the launch's end.
            let thread = std::thread::Builder::new().name("girih-tick".into()).stack_size(64 << 10).spawn(tick);
            *ticker = thread.ok().map(|t| t.thread().clone());
            TICKING.store(sync::epoch(), Ordering::SeqCst);
        } else if ASLEEP.swap(false, Ordering::SeqCst)
            && let Some(thread) = &*TICKER.lock()
        {
            thread.unpark();
        }
        Some(Attentive)
    }
}

impl Drop for Attentive {
    fn drop(&mut self) {
        LAUNCHES.fetch_add(1, Ordering::SeqCst);
    }
}

/// The right to launch: one at a time, since the abort flag is the process's.
pub(crate) struct Launching {
    // In the order in which they end.
    _attentive: Option<Attentive>,
    _one: Option<Holding<'static>>,
    nested: bool,
}

thread_local! {
    /// This thread runs blocks of a launch.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as running blocks of a launch, until the value is dropped.
pub(crate) struct Busy(bool);

impl Busy {
    pub fn enter() -> Busy {
        Busy(BUSY.replace(true))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        BUSY.set(self.0);
    }
}

impl Launching {
    /// Waits for launches of other threads, and clears the stop of an earlier launch. A launch from within another
    /// one's blocks (by a signal's handler, or by the receiver of its prints) is part of that launch.
    pub fn begin() -> crate::Result<Launching> {
        static ONE: Turn = Turn::new();
        let nested = Launching { _attentive: None, _one: None, nested: true };
        if BUSY.get() {
            return Ok(nested);
        }
        let one = match ONE.take() {
            Ok(one) => one,
            Err(Denied::Stopped) => return Err(crate::Error::Interrupted),
            Err(Denied::Mine) => return Ok(nested),
        };
        STOPPED.store(false, Ordering::SeqCst);
        ABORT.store(i32::from(interrupted()), Ordering::SeqCst);
        Ok(Launching { _attentive: Attentive::begin(), _one: Some(one), nested: false })
    }

    /// Returns true if this launch started inside a block of another launch, whose other threads are busy.
    pub fn nested(&self) -> bool {
        self.nested
    }
}

/// The action of SIGINT before the outermost [`Passing`]: handler and flags.
static BEFORE: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
static PASSING: Brief<(usize, Option<libc::sigaction>)> = Brief::new((0, None));

/// While one lives, SIGINT stops the launch under way and goes on to the handler that the host program has; for hosts
/// whose handler sets a flag and returns, as Python's. Where the host has none, nothing changes.
pub struct Passing(());

impl Passing {
    pub fn enter() -> Passing {
        let mut state = PASSING.lock();
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
        let mut state = PASSING.lock();
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
pub(crate) unsafe fn call(
    action: &[AtomicUsize; 2],
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
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
pub struct Cooperative(());

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

/// A compiler of another program runs, and its files lie about: as [`Cooperative`], for the signals [`ENDS`] of hosts too.
pub(crate) struct Compiling {
    _cooperative: Cooperative,
}

/// The number of values alive, and the signals' actions before the first.
static COMPILING: Brief<(usize, Vec<(libc::c_int, libc::sigaction)>)> = Brief::new((0, Vec::new()));
/// The signal that ends the process when the last has ended.
static ENDING: AtomicI32 = AtomicI32::new(0);
/// Signals that ask a process to end, beside Ctrl-C: of `kill`, a closed terminal, Ctrl-\, and the limit of `ulimit -t`.
const ENDS: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGXCPU];

impl Compiling {
    pub fn enter() -> Compiling {
        let mut state = COMPILING.lock();
        if state.0 == 0 {
            for signal in ENDS.into_iter().filter(|s| action(*s).sa_sigaction == libc::SIG_DFL) {
                let before = handle(signal, on_end as *const () as usize, libc::SA_RESTART);
                state.1.push((signal, before));
            }
        }
        state.0 += 1;
        Compiling { _cooperative: Cooperative::enter() }
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        let mut state = COMPILING.lock();
        state.0 -= 1;
        if state.0 > 0 {
            return;
        }
        for (signal, before) in state.1.drain(..) {
            // SAFETY: puts back an action that the system gave out.
            unsafe { libc::sigaction(signal, &before, std::ptr::null_mut()) };
        }
        drop(state);
        let signal = ENDING.swap(0, Ordering::SeqCst);
        if signal != 0 {
            // SAFETY: sends this process the signal that it was sent.
            unsafe { libc::kill(libc::getpid(), signal) };
        }
    }
}

extern "C" fn on_end(signal: libc::c_int) {
    INTERRUPTED.store(signal, Ordering::SeqCst);
    ABORT.store(STOP, Ordering::SeqCst);
    if ENDING.swap(signal, Ordering::SeqCst) != 0 {
        end_children(true, signal);
        // SAFETY: `_exit` may be called from a signal handler.
        unsafe { libc::_exit(128 + signal) }
    }
}

/// The current action of a signal.
pub(crate) fn action(signal: libc::c_int) -> libc::sigaction {
    // SAFETY: asks for the action in force, into a zeroed struct.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now);
        now
    }
}

/// Sets a handler that is safe in signal context; returns the earlier action.
pub(crate) fn handle(signal: libc::c_int, handler: usize, flags: libc::c_int) -> libc::sigaction {
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

extern "C" fn on_interrupt(signal: libc::c_int) {
    let again = INTERRUPTED.swap(signal, Ordering::SeqCst) != 0;
    ABORT.store(STOP, Ordering::SeqCst);
    let now = again || COOPERATIVE.load(Ordering::SeqCst) == 0;
    // A terminal sends Ctrl-C to all processes of a command, but not to groups of their own; the other signals come to one.
    if now || signal != libc::SIGINT {
        end_children(now, signal);
    }
    if now {
        // SAFETY: `_exit` may be called from a signal handler.
        unsafe { libc::_exit(128 + signal) }
    }
}

/// Makes Ctrl-C (SIGINT), SIGTERM, SIGHUP, SIGQUIT and SIGXCPU stop launches in an orderly way. For programs, such as the command
/// line; a library's host keeps its own handlers unless it calls this. If the program was started with one of them ignored, as shells
/// do with SIGINT for jobs in the background and `nohup` with SIGHUP, it stays ignored. A write past `ulimit -f` becomes an error.
pub fn install_interrupt_handler() {
    for signal in [libc::SIGINT].into_iter().chain(ENDS) {
        if action(signal).sa_sigaction != libc::SIG_IGN {
            handle(signal, on_interrupt as *const () as usize, libc::SA_RESTART);
        }
    }
    handle(libc::SIGXFSZ, libc::SIG_IGN, 0);
}
