//! Faults of native kernels: an access to memory that is not there ends the launch with an error, not the process.
//!
//! The system answers such an access with a signal, on the thread that made it. While a thread is inside a kernel's code
//! it has a [`Frame`], which says where to go on; the handler goes on there, as if the kernel had returned. That is safe
//! since emitted code is leaf code: it holds no lock, owns nothing and unwinds nothing; what it calls back is outside
//! again ([`Outside`]). A fault anywhere else is the host's, whose handlers were there before and are called.
//!
//! Where going on is not known (other systems than Linux on x86-64), a message names the way to find out more, and the
//! host's handlers, or the system, do the rest.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::compile::abi::{Context, KernelFn};
use crate::system::signals;
use crate::system::sync::Brief;

/// Where a thread goes on when the kernel that it runs faults.
#[repr(C)]
struct Frame {
    stack: usize,
    resume: usize,
    /// The signal, once there was one.
    signal: i32,
}

thread_local! {
    /// Null while this thread is not in a kernel's code.
    static FRAME: Cell<*mut Frame> = const { Cell::new(std::ptr::null_mut()) };
    /// Where on the stack a fault of the host was passed on to the handler that it had before; 0 when none is.
    static PASSED_ON: Cell<usize> = const { Cell::new(0) };
}

const SIGNALS: [libc::c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

/// The handlers and flags of the signals before ours.
static BEFORE: [[AtomicUsize; 2]; 4] = [const { [const { AtomicUsize::new(0) }; 2] }; 4];

/// A kernel's fault, which the system stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It accessed memory that does not exist, or may not be accessed so.
    Memory,
    /// It executed an instruction that this processor refuses.
    Operation,
}

impl Fault {
    fn of(signal: i32) -> Fault {
        if [libc::SIGSEGV, libc::SIGBUS].contains(&signal) { Fault::Memory } else { Fault::Operation }
    }
    pub fn text(self) -> &'static str {
        match self {
            Fault::Memory => "accessed memory that does not exist",
            Fault::Operation => "executed an operation that this processor refuses",
        }
    }
}

/// Installs the handlers that tell faults of kernels from others, before a launch. The handlers stay: restoring the old
/// ones after each launch would take longer than a short launch. A host that sets handlers later gets them called for its
/// own faults.
pub(crate) fn watch() {
    static SETTING: Brief<()> = Brief::new(());
    let handler = on_fault as *const () as usize;
    // Who sets one of them sets them all.
    if signals::action(SIGNALS[0]).sa_sigaction == handler {
        return;
    }
    let _one = SETTING.lock();
    for (signal, slot) in SIGNALS.into_iter().zip(&BEFORE) {
        let before = signals::action(signal);
        if before.sa_sigaction != handler {
            slot[0].store(before.sa_sigaction, Ordering::SeqCst);
            slot[1].store(before.sa_flags as usize, Ordering::SeqCst);
            // A signal that the host's handler raises within this one must be delivered at once.
            signals::handle(signal, handler, libc::SA_ONSTACK | libc::SA_SIGINFO | libc::SA_NODEFER);
        }
    }
}

extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let frame = FRAME.get();
    // SAFETY: a frame lives as long as it is this thread's.
    if let Some(frame) = unsafe { frame.as_mut() } {
        frame.signal = signal;
        if resume(frame, context) {
            return;
        }
        const TEXT: &str = "girih: the system stopped a kernel, for example because it accessed memory that does not exist; with \
                            GIRIH_CHECK=1 this becomes an error that names the operation, the block and the index\n";
        // SAFETY: `write` may be called from a signal handler; the text is static.
        unsafe { libc::write(2, TEXT.as_ptr().cast(), TEXT.len()) };
    }
    let Some(before) = SIGNALS.iter().position(|s| *s == signal).and_then(|at| BEFORE.get(at)) else { return };
    // A handler that restores the handler it found, which is this one, and raises the signal anew has had its turn.
    let here = &raw const signal as usize;
    // SAFETY: the system passes this to handlers with SA_SIGINFO.
    let raised = unsafe { info.as_ref() }.is_some_and(|i| i.si_code <= 0);
    let outer = PASSED_ON.replace(here);
    let again = raised && here < outer;
    match before[0].load(Ordering::SeqCst) {
        handler if again || [libc::SIG_DFL, libc::SIG_IGN].contains(&handler) => {
            // The faulting instruction runs again, and the system ends the process as usual.
            // SAFETY: `signal` may be called from a signal handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        // SAFETY: the system gave out this handler, with these flags.
        _ => unsafe { signals::call(before, signal, info, context) },
    }
    PASSED_ON.set(outer);
}

/// Makes the thread go on at the frame once the signal's handler returns.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn resume(frame: &Frame, context: *mut libc::c_void) -> bool {
    // SAFETY: the system passes a context of this type to handlers with SA_SIGINFO.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    registers[libc::REG_RSP as usize] = frame.stack as i64;
    registers[libc::REG_RIP as usize] = frame.resume as i64;
    true
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn resume(_: &Frame, _: *mut libc::c_void) -> bool {
    false
}

/// Calls `entry`, having put into the frame where its caller's registers lie and where they are taken back.
///
/// # Safety
/// As of the kernel. The frame is this thread's during the call.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[unsafe(naked)]
unsafe extern "sysv64" fn trampoline(
    args: *const u64,
    ctx: *mut Context,
    lo: i64,
    hi: i64,
    entry: KernelFn,
    frame: *mut Frame,
) -> i32 {
    core::arch::naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "mov [r9], rsp",
        "lea rax, [rip + 2f]",
        "mov [r9 + 8], rax",
        "call r8",
        // After a fault the handler's return leads here, with the stack as it was before the call.
        "2:",
        "cld",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
unsafe fn trampoline(args: *const u64, ctx: *mut Context, lo: i64, hi: i64, entry: KernelFn, _: *mut Frame) -> i32 {
    // SAFETY: as the function's own contract says.
    unsafe { entry(args, ctx, lo, hi) }
}

/// Runs a kernel's blocks; returns the fault, if the system stopped it.
///
/// # Safety
/// As of the kernel.
pub(crate) unsafe fn call(
    entry: KernelFn,
    args: *const u64,
    ctx: *mut Context,
    lo: i64,
    hi: i64,
) -> std::result::Result<(), Fault> {
    ALTERNATE.with(|_| ());
    let mut frame = Frame { stack: 0, resume: 0, signal: 0 };
    let at = &raw mut frame;
    let outer = FRAME.replace(at);
    // SAFETY: the caller's word; the frame lives until the call returns.
    unsafe { trampoline(args, ctx, lo, hi, entry, at) };
    FRAME.set(outer);
    // SAFETY: the handler, which wrote to it, has returned.
    match unsafe { at.read_volatile() }.signal {
        0 => Ok(()),
        signal => Err(Fault::of(signal)),
    }
}

/// While one lives, this thread is in code that a kernel calls back, whose faults are not the kernel's.
pub(crate) struct Outside(*mut Frame);

impl Outside {
    pub fn enter() -> Outside {
        Outside(FRAME.replace(std::ptr::null_mut()))
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        FRAME.set(self.0);
    }
}

thread_local! {
    static ALTERNATE: Alternate = Alternate::install();
}

/// A stack for this thread's handlers, where it has none: a fault may be that its own is full.
struct Alternate(*mut libc::c_void);

impl Alternate {
    /// Room for the registers of any processor, and for the handler.
    const BYTES: usize = 64 << 10;

    fn install() -> Alternate {
        // SAFETY: the structs are filled as the calls ask; the memory is this value's until its end.
        unsafe {
            let mut now: libc::stack_t = std::mem::zeroed();
            if libc::sigaltstack(std::ptr::null(), &mut now) != 0 || now.ss_flags & libc::SS_DISABLE == 0 {
                return Alternate(std::ptr::null_mut());
            }
            let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
            let memory = libc::mmap(std::ptr::null_mut(), Alternate::BYTES, access, kind, -1, 0);
            if memory == libc::MAP_FAILED {
                return Alternate(std::ptr::null_mut());
            }
            let stack = libc::stack_t { ss_sp: memory, ss_flags: 0, ss_size: Alternate::BYTES };
            if libc::sigaltstack(&stack, std::ptr::null_mut()) != 0 {
                libc::munmap(memory, Alternate::BYTES);
                return Alternate(std::ptr::null_mut());
            }
            Alternate(memory)
        }
    }
}

impl Drop for Alternate {
    fn drop(&mut self) {
        if self.0.is_null() {
            return;
        }
        // SAFETY: asks, then takes back what `install` gave, unless somebody has put another stack in its place.
        unsafe {
            let mut now: libc::stack_t = std::mem::zeroed();
            if libc::sigaltstack(std::ptr::null(), &mut now) == 0 && now.ss_sp == self.0 {
                let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
                libc::sigaltstack(&none, std::ptr::null_mut());
                libc::munmap(self.0, Alternate::BYTES);
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use std::arch::asm;
    use std::hint::black_box;
    use std::os::fd::{AsRawFd, FromRawFd};

    use super::*;

    /// Reads the byte at the first argument.
    unsafe extern "C" fn reads(args: *const u64, _: *mut Context, _: i64, _: i64) -> i32 {
        // SAFETY: the test passes one argument; that the address may not be read is what the test is about.
        unsafe { (*args as *const u8).read_volatile().into() }
    }

    unsafe extern "C" fn divides(args: *const u64, _: *mut Context, _: i64, _: i64) -> i32 {
        let mut quotient: u64 = 1;
        // SAFETY: touches the registers it names, and divides by the test's argument.
        unsafe { asm!("div {by}", by = in(reg) *args, inout("rax") quotient, inout("rdx") 0_u64 => _) };
        quotient as i32
    }

    unsafe extern "C" fn illegal(_: *const u64, _: *mut Context, _: i64, _: i64) -> i32 {
        // SAFETY: the processor refuses it, which is what the test is about.
        unsafe { asm!("ud2") };
        0
    }

    /// Calls itself as often as the first argument says, with a page of the stack each time.
    unsafe extern "C" fn recurses(args: *const u64, _: *mut Context, _: i64, _: i64) -> i32 {
        fn deeper(left: u64) -> u64 {
            let page = black_box([left; 512]);
            if left == 0 { 0 } else { deeper(left - 1) ^ page[black_box(7)] }
        }
        // SAFETY: the test passes one argument.
        deeper(unsafe { *args }) as i32
    }

    fn run(entry: KernelFn, argument: u64) -> Result<(), Fault> {
        watch();
        // SAFETY: the entries above read at most one argument, and nothing of their context.
        unsafe { call(entry, &argument, std::ptr::null_mut(), 0, 1) }
    }

    /// The faults of `entry` with `bad`, on this thread and on another, each twice: with `good` it runs before and after.
    fn faults(entry: KernelFn, good: Option<u64>, bad: u64, want: Fault) {
        let twice = || {
            for _ in 0..2 {
                assert_eq!(good.map_or(Ok(()), |good| run(entry, good)), Ok(()));
                assert_eq!(run(entry, bad), Err(want));
                assert!(FRAME.get().is_null());
            }
            assert_eq!(good.map_or(Ok(()), |good| run(entry, good)), Ok(()));
        };
        twice();
        std::thread::scope(|scope| scope.spawn(twice).join()).expect("the thread ends well");
    }

    #[test]
    fn memory_that_is_not_mapped() {
        let here = 1_u8;
        faults(reads, Some(&raw const here as u64), 8, Fault::Memory);
    }

    /// A file that shrank after it was mapped: SIGBUS.
    #[test]
    fn memory_behind_the_end_of_its_file() {
        // SAFETY: the name is text that ends in a zero; the file that it gives is this test's.
        let file = unsafe { std::fs::File::from_raw_fd(libc::memfd_create(c"shrinks".as_ptr(), 0)) };
        file.set_len(4096).expect("room for a page");
        // SAFETY: maps a new file at an address of the system's choice.
        let page =
            unsafe { libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        assert_ne!(page, libc::MAP_FAILED);
        assert_eq!(run(reads, page as u64), Ok(()));
        file.set_len(0).expect("a file can shrink");
        faults(reads, None, page as u64, Fault::Memory);
        // SAFETY: the page is this test's.
        unsafe { libc::munmap(page, 4096) };
    }

    /// Handlers that the host sets after the first launch are its own, and do not get the faults of kernels.
    #[test]
    fn a_handler_that_came_later() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        extern "C" fn theirs(_: libc::c_int) {
            CALLS.fetch_add(1, Ordering::SeqCst);
        }
        assert_eq!(run(divides, 1), Ok(()));
        let ours = signals::handle(libc::SIGFPE, theirs as *const () as usize, 0);
        assert_eq!(ours.sa_sigaction, on_fault as *const () as usize);
        signals::handle(libc::SIGSEGV, theirs as *const () as usize, 0);
        assert_eq!(run(divides, 0), Err(Fault::Operation));
        assert_eq!(CALLS.load(Ordering::SeqCst), 0);
        // SAFETY: the handlers return, and nothing is at fault.
        unsafe { libc::raise(libc::SIGFPE) };
        assert_eq!(CALLS.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_full_stack() {
        faults(recurses, Some(3), u64::MAX, Fault::Memory);
    }

    #[test]
    fn a_division_by_zero() {
        faults(divides, Some(1), 0, Fault::Operation);
    }

    #[test]
    fn an_instruction_that_the_processor_does_not_have() {
        faults(illegal, None, 0, Fault::Operation);
    }
}
