//! Runs the blocks of one launch of a compiled kernel over the pool.
//!
//! Which blocks run where follows from what the kernel does ([`BlockOrder`]). Whatever the order, a block's prints leave
//! as one piece when the block ends, the first trap stops the launch, Ctrl-C stops it, and where blocks wait for each
//! other without end the host is told which wait where.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::abi::{Context, TrapKind};
use crate::error::Error;
use crate::faults::{self, Fault, Native, Outside};
use crate::host::STALL;
use crate::module::NativeKernel;
use crate::pages::Pages;
use crate::pool;
use crate::signals::{self, ABORT, Busy, Cooperative, Launching, STOP};
use crate::sync;

/// How blocks are handed to threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockOrder {
    /// Contiguous ranges, any order: blocks that do not talk to each other.
    Ranges,
    /// One at a time in increasing linear index: a block may wait for any lower one.
    Increasing,
    /// A thread each, where the grid is small enough: blocks may wait for any other. Else as `Increasing`.
    Together,
}

/// Largest grid whose blocks get a thread each.
pub const MAX_TOGETHER: i64 = 1024;

/// What a kernel said when it trapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NativeTrap {
    pub kind: TrapKind,
    pub site: u32,
    pub block: i64,
    /// The linear element of the tile, where one is known.
    pub element: Option<u64>,
    pub value: i64,
}

/// A block that keeps polling at a site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    pub block: i64,
    pub site: u32,
}

/// What a running kernel may ask for.
pub trait Host: Sync {
    /// Text of the `print` at `site`; `args` points at its arguments' elements, one pointer each.
    ///
    /// # Safety
    /// `args` must be what the kernel compiled with that site passed.
    unsafe fn format(&self, site: u32, block: i64, args: *const *const c_void) -> String;
    /// A block's complete output.
    fn print(&self, block: i64, text: &str);
    /// Nothing progresses; these blocks wait.
    fn stalled(&self, waiting: &[Waiting]);
    /// Whether `[addr, addr + len)` lies in live memory of this launch.
    fn live(&self, addr: u64, len: u64) -> bool;
}

/// One launch.
pub struct Run<'a> {
    pub kernel: NativeKernel,
    pub args: &'a [u64],
    pub grid: [u32; 3],
    /// Blocks `lo..hi` of the linear order only.
    pub only: Option<(i64, i64)>,
    pub globals: &'a [*mut u8],
    pub extents: &'a [i64],
    pub order: BlockOrder,
    pub threads: usize,
    /// What is known of the kernel from earlier runs, to be added to.
    pub cost: Option<&'a Cost>,
}

/// How long a block of a kernel takes, in nanoseconds, learnt from its runs; 0 before the first.
#[derive(Debug, Default)]
pub struct Cost(AtomicU64);

impl Cost {
    /// Work worth waking a thread for, in nanoseconds.
    const WORTH: u64 = 15_000;

    /// How many of `threads` threads are worth their while for `blocks` blocks.
    fn threads(&self, threads: usize, blocks: i64) -> usize {
        match self.0.load(Ordering::Relaxed) {
            0 => threads,
            cost => threads.min((cost.saturating_mul(blocks as u64) / Cost::WORTH).max(1) as usize),
        }
    }

    /// Learns from a thread's part of a run: fast to believe that blocks are cheap, slow that they are not, since a
    /// thread that was held up seems slow.
    fn learn(&self, blocks: i64, took: Duration) {
        let new = (took.as_nanos() as u64 / blocks.max(1) as u64).max(1);
        let old = self.0.load(Ordering::Relaxed);
        self.0.store(if old == 0 || new < old { new } else { old + (new - old) / 4 }, Ordering::Relaxed);
    }
}

// SAFETY: the raw pointers are addresses of memory that outlives the launch; kernels access it under the launch's rules.
unsafe impl Sync for Run<'_> {}

struct Shared<'a> {
    run: &'a Run<'a>,
    host: &'a dyn Host,
    next: AtomicI64,
    end: i64,
    trap: Mutex<Option<NativeTrap>>,
    fault: Mutex<Option<Fault>>,
    failure: Mutex<Option<Error>>,
    start: Instant,
    /// Milliseconds after `start` of the last finished piece or report.
    progress: AtomicU64,
    /// Per thread, the last poll: the block in the high bits, the site plus 1 in the low 20; 0 when it did not poll.
    waiting: Vec<AtomicI64>,
    /// No more threads than were asked for, so polling may spin.
    spare_cores: bool,
}

/// What `girih_ctx.host` points at.
struct Worker<'a> {
    shared: &'a Shared<'a>,
    slot: usize,
    text_block: i64,
    text: String,
    yields: u32,
}

/// The right to run native code: one at a time in the process, stopped by Ctrl-C, its faults explained. One for each
/// launch, or for the launches of a whole model.
pub struct Session {
    // In the order in which they end.
    _native: Native,
    _cooperative: Cooperative,
    launching: Launching,
}

impl Session {
    /// Waits for launches of other threads; an error when it is told to stop meanwhile.
    pub fn begin() -> crate::Result<Session> {
        let launching = Launching::begin()?;
        let cooperative = Cooperative::enter();
        Ok(Session { _native: Native::enter(), _cooperative: cooperative, launching })
    }
}

/// Runs every block; an error is a trap, an interruption, or memory that could not be had.
///
/// # Safety
/// The kernel is native code that trusts what it is given: `args`, `globals` and `extents` must be what it was compiled
/// for, and every address it forms from them must be one it may access.
pub unsafe fn run(run: &Run<'_>, host: &dyn Host) -> std::result::Result<(), Stop> {
    // SAFETY: as the function's own contract says.
    unsafe { run_in(&Session::begin().map_err(Stop::Error)?, run, host) }
}

/// As [`run`], one launch of several.
///
/// # Safety
/// As of [`run`].
pub unsafe fn run_in(session: &Session, run: &Run<'_>, host: &dyn Host) -> std::result::Result<(), Stop> {
    let blocks: i64 = run.grid.iter().map(|&g| i64::from(g)).product();
    let (lo, hi) = run.only.unwrap_or((0, blocks));
    let count = hi - lo;
    let together = run.order == BlockOrder::Together && count <= MAX_TOGETHER && count > 1;
    let threads = match together {
        true => count as usize,
        false => {
            let most = run.threads.clamp(1, count.clamp(1, 4096) as usize);
            run.cost.map_or(most, |cost| cost.threads(most, count))
        }
    };
    let shared = Shared {
        run,
        host,
        next: AtomicI64::new(lo),
        end: hi,
        trap: Mutex::new(None),
        fault: Mutex::new(None),
        failure: Mutex::new(None),
        start: Instant::now(),
        progress: AtomicU64::new(0),
        waiting: match run.order {
            BlockOrder::Ranges => Vec::new(),
            BlockOrder::Increasing | BlockOrder::Together => (0..threads).map(|_| AtomicI64::new(0)).collect(),
        },
        spare_cores: threads <= run.threads,
    };
    let step = match run.order {
        // A few pieces per thread, so that the slower threads' work is shared out at the end.
        BlockOrder::Ranges => (count / (threads as i64 * 4)).max(1),
        BlockOrder::Increasing | BlockOrder::Together => 1,
    };
    let epoch = sync::epoch();
    if together {
        let (ended, caller) = (AtomicUsize::new(1), std::thread::current());
        std::thread::scope(|scope| {
            for slot in 1..threads {
                let (shared, ended, caller) = (&shared, &ended, &caller);
                let thread = std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, move || {
                    work(shared, slot, 1);
                    if ended.fetch_add(1, Ordering::SeqCst) + 1 == threads {
                        caller.unpark();
                    }
                });
                if let Err(e) = thread {
                    // Those that are not there have ended.
                    ended.fetch_add(threads - slot, Ordering::SeqCst);
                    shared.fail(Error::argument(format!(
                        "the kernel's blocks wait for each other, so each of the {threads} needs a thread, and the \
                         system refused one: {e}"
                    )));
                    break;
                }
            }
            work(&shared, 0, 1);
            // The others may wait for something that this thread is told.
            while ended.load(Ordering::SeqCst) < threads {
                signals::stopping_here();
                std::thread::park_timeout(Duration::from_millis(20));
            }
        });
    } else if session.launching.nested() {
        // The pool's threads are busy with the launch that this one is part of.
        work(&shared, 0, step);
    } else {
        pool::global().run(threads, &|slot| work(&shared, slot, step), &|| {
            signals::stopping_here();
        });
    }
    // A child that was forked during the launch does not have the threads that did the rest.
    let stopped = signals::stopping() || sync::epoch() != epoch;
    let take = |m: Mutex<Option<Error>>| m.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(trap) = shared.trap.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(Stop::Trap(trap));
    }
    if let Some(fault) = shared.fault.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(Stop::Fault(fault));
    }
    if let Some(error) = take(shared.failure) {
        return Err(Stop::Error(error));
    }
    if stopped {
        return Err(Stop::Error(Error::Interrupted));
    }
    Ok(())
}

/// Why a launch did not finish.
#[derive(Debug)]
pub enum Stop {
    Trap(NativeTrap),
    Fault(Fault),
    Error(Error),
}

impl Shared<'_> {
    fn fail(&self, error: Error) {
        ABORT.store(STOP, Ordering::SeqCst);
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

thread_local! {
    /// This thread's scratch, kept for the next launch.
    static SCRATCH: Cell<Option<Pages>> = const { Cell::new(None) };
}

fn work(shared: &Shared<'_>, slot: usize, step: i64) {
    let _busy = Busy::enter();
    let need = shared.run.kernel.meta.scratch;
    // A launch from within this one finds none, and takes its own.
    let mut scratch = SCRATCH.take().filter(|s| s.len() as u64 >= need);
    if scratch.is_none() {
        scratch = usize::try_from(need).ok().and_then(Pages::zeroed);
    }
    match &scratch {
        Some(pages) => claim(shared, slot, step, pages.as_ptr()),
        None => shared.fail(Error::argument(format!(
            "the kernel needs {need} bytes of scratch memory per thread, more than the system grants"
        ))),
    }
    SCRATCH.set(scratch);
}

fn claim(shared: &Shared<'_>, slot: usize, step: i64, scratch: *mut u8) {
    let run = shared.run;
    let mut worker = Worker { shared, slot, text_block: -1, text: String::new(), yields: 0 };
    let mut context = Context {
        grid: run.grid.map(i64::from),
        scratch,
        abort: &ABORT,
        globals: run.globals.as_ptr(),
        extent: run.extents.as_ptr(),
        host: (&raw mut worker).cast(),
        trap: on_trap,
        print: on_print,
        yield_now: on_yield,
        check: on_check,
        stop: on_stop,
    };
    let control = FloatControl::standard();
    let (start, mut blocks) = (Instant::now(), 0);
    while ABORT.load(Ordering::Relaxed) == 0 || !stop_asked(slot) {
        let lo = shared.next.fetch_add(step, Ordering::Relaxed);
        if lo >= shared.end {
            break;
        }
        let hi = (lo + step).min(shared.end);
        blocks += hi - lo;
        // SAFETY: the kernel was compiled for these parameters (the caller checked their count and kinds); the context
        // and the worker live until the call returns; scratch holds what the kernel's meta asks for.
        if let Err(fault) = unsafe { faults::call(run.kernel.entry, run.args.as_ptr(), &mut context, lo, hi) } {
            ABORT.store(STOP, Ordering::SeqCst);
            shared.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
        }
        if let Some(waiting) = shared.waiting.get(slot) {
            waiting.store(0, Ordering::Relaxed);
        }
        shared.progress.fetch_max(shared.now(), Ordering::Relaxed);
        // SAFETY: the kernel has returned, so nobody else holds the worker that `host` points at.
        unsafe { &mut *context.host.cast::<Worker>() }.flush();
    }
    drop(control);
    if let (0, 1.., Some(cost)) = (slot, blocks, run.cost) {
        cost.learn(blocks, start.elapsed());
    }
}

impl Worker<'_> {
    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.shared.host.print(self.text_block, &self.text);
            self.text.clear();
        }
    }
}

/// The worker behind a context.
///
/// # Safety
/// `ctx` must be a context made in `claim` whose kernel is running; the callbacks below are called by that kernel, on its
/// thread, one at a time.
unsafe fn worker<'a>(ctx: *mut Context) -> &'a mut Worker<'a> {
    // SAFETY: as the function's own contract says.
    unsafe { &mut *(*ctx).host.cast::<Worker>() }
}

unsafe extern "C" fn on_trap(ctx: *mut Context, site: i32, kind: i32, block: i64, element: i64, value: i64) {
    let _outside = Outside::enter();
    // SAFETY: called by the kernel with its own context.
    let worker = unsafe { worker(ctx) };
    worker.flush();
    let trap = NativeTrap {
        kind: TrapKind::from_code(kind),
        site: site as u32,
        block,
        element: u64::try_from(element).ok(),
        value,
    };
    let mut first = worker.shared.trap.lock().unwrap_or_else(PoisonError::into_inner);
    if first.is_none_or(|t| trap.block < t.block) {
        *first = Some(trap);
    }
    ABORT.store(STOP, Ordering::SeqCst);
}

/// Whether the abort flag means to stop, for a thread of the launch; the one that launched looks up where it is due.
fn stop_asked(slot: usize) -> bool {
    if slot == 0 {
        signals::stopping_here();
    }
    ABORT.load(Ordering::Relaxed) == STOP
}

unsafe extern "C" fn on_stop(ctx: *mut Context) -> i32 {
    let _outside = Outside::enter();
    // SAFETY: called by the kernel with its own context.
    let slot = unsafe { worker(ctx) }.slot;
    i32::from(stop_asked(slot))
}

unsafe extern "C" fn on_print(ctx: *mut Context, site: i32, block: i64, args: *const *const c_void) {
    let _outside = Outside::enter();
    // SAFETY: called by the kernel with its own context.
    let worker = unsafe { worker(ctx) };
    if worker.text_block != block {
        worker.flush();
        worker.text_block = block;
    }
    // SAFETY: the kernel passes one pointer per argument of the print at `site`.
    let text = unsafe { worker.shared.host.format(site as u32, block, args) };
    worker.text += &text;
}

unsafe extern "C" fn on_yield(ctx: *mut Context, site: i32, block: i64) {
    let _outside = Outside::enter();
    // SAFETY: called by the kernel with its own context.
    let worker = unsafe { worker(ctx) };
    let shared = worker.shared;
    worker.yields = worker.yields.wrapping_add(1);
    if let Some(waiting) = shared.waiting.get(worker.slot) {
        waiting.store((block << 20) | (i64::from(site) + 1), Ordering::Relaxed);
    }
    if shared.spare_cores && worker.yields % 64 != 0 {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
    if worker.yields % 1024 == 0 {
        let (now, last) = (shared.now(), shared.progress.load(Ordering::Relaxed));
        let late = now.saturating_sub(last) >= STALL.as_millis() as u64;
        if late && shared.progress.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let places = shared.waiting.iter().map(|w| w.load(Ordering::Relaxed)).filter(|&w| w != 0);
            let waiting: Vec<Waiting> =
                places.map(|w| Waiting { block: w >> 20, site: (w & 0xf_ffff) as u32 - 1 }).collect();
            shared.host.stalled(&waiting);
        }
    }
}

unsafe extern "C" fn on_check(ctx: *mut Context, addr: u64, len: i64) -> i32 {
    let _outside = Outside::enter();
    // SAFETY: called by the kernel with its own context.
    let (worker, scratch) = unsafe { (worker(ctx), (*ctx).scratch as u64) };
    let Ok(len) = u64::try_from(len) else { return 0 };
    let in_scratch = addr
        .checked_sub(scratch)
        .and_then(|at| at.checked_add(len))
        .is_some_and(|end| end <= worker.shared.run.kernel.meta.scratch);
    i32::from(in_scratch || worker.shared.host.live(addr, len))
}

/// Rounds to nearest and flushes nothing while it lives; then puts back what the host program had.
pub(crate) struct FloatControl(u64);

impl FloatControl {
    pub(crate) fn standard() -> FloatControl {
        let old = FloatControl::read();
        #[cfg(target_arch = "x86_64")]
        FloatControl::write(0x1f80);
        #[cfg(target_arch = "aarch64")]
        FloatControl::write(0);
        FloatControl(old)
    }

    #[cfg(target_arch = "x86_64")]
    fn read() -> u64 {
        let mut value = 0u32;
        // SAFETY: stores the control register into a local.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack)) };
        u64::from(value)
    }
    #[cfg(target_arch = "x86_64")]
    fn write(value: u64) {
        let value = value as u32;
        // SAFETY: the value is the power-on default or one that was read from the register; all exceptions it unmasks
        // were unmasked before.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack)) };
    }
    #[cfg(target_arch = "aarch64")]
    fn read() -> u64 {
        let value: u64;
        // SAFETY: reads the control register.
        unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) value) };
        value
    }
    #[cfg(target_arch = "aarch64")]
    fn write(value: u64) {
        // SAFETY: as on x86-64.
        unsafe { std::arch::asm!("msr fpcr, {}", in(reg) value) };
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn read() -> u64 {
        0
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn write(_: u64) {}
}

impl Drop for FloatControl {
    fn drop(&mut self) {
        FloatControl::write(self.0);
    }
}

/// The linear block's coordinates.
pub fn coordinates(block: i64, grid: [u32; 3]) -> [u32; 3] {
    let (gx, gy) = (i64::from(grid[0].max(1)), i64::from(grid[1].max(1)));
    [(block % gx) as u32, (block / gx % gy) as u32, (block / gx / gy) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{ABI_VERSION, Meta};

    #[test]
    fn threads_are_woken_where_they_are_worth_it() {
        let cost = Cost::default();
        assert_eq!(cost.threads(8, 4), 8);
        cost.learn(10, Duration::from_micros(10));
        assert_eq!((cost.threads(8, 10), cost.threads(8, 45), cost.threads(8, 1 << 40)), (1, 3, 8));
        // Once slow, perhaps held up; slow again and again, so it is.
        cost.learn(1, Duration::from_millis(1));
        assert!(cost.threads(8, 10) > 1);
        cost.learn(1000, Duration::from_micros(10));
        assert_eq!(cost.threads(8, 1000), 1);
    }

    struct Quiet {
        printed: Mutex<Vec<(i64, String)>>,
    }
    impl Host for Quiet {
        unsafe fn format(&self, site: u32, block: i64, _: *const *const c_void) -> String {
            format!("{block}:{site} ")
        }
        fn print(&self, block: i64, text: &str) {
            self.printed.lock().unwrap().push((block, text.to_string()));
        }
        fn stalled(&self, _: &[Waiting]) {}
        fn live(&self, addr: u64, _: u64) -> bool {
            addr == 4096
        }
    }
    fn quiet() -> Quiet {
        Quiet { printed: Mutex::new(Vec::new()) }
    }
    fn kernel(entry: crate::abi::KernelFn, scratch: u64) -> NativeKernel {
        NativeKernel { entry, meta: Meta { abi: ABI_VERSION, nparams: 1, scratch } }
    }
    fn spec(entry: crate::abi::KernelFn, args: &[u64], grid: [u32; 3], order: BlockOrder, threads: usize) -> Run<'_> {
        Run {
            kernel: kernel(entry, 4096),
            args,
            grid,
            only: None,
            globals: &[],
            extents: &[],
            order,
            threads,
            cost: None,
        }
    }

    fn run(spec: &Run<'_>, host: &Quiet) -> std::result::Result<(), Stop> {
        // SAFETY: each test passes its kernel the memory that the kernel expects.
        unsafe { super::run(spec, host) }
    }

    /// Adds 1 to the slot of each block, after writing over its scratch.
    unsafe extern "C" fn mark(args: *const u64, ctx: *mut Context, lo: i64, hi: i64) -> i32 {
        for block in lo..hi {
            // SAFETY: the test passes an array of one atomic per block, and 4096 bytes of scratch.
            unsafe {
                (*ctx).scratch.write_bytes(1, 4096);
                (*(*args as *const AtomicI64).add(block as usize)).fetch_add(1, Ordering::Relaxed);
            }
        }
        0
    }

    #[test]
    fn each_block_runs_once_in_every_order() {
        for order in [BlockOrder::Ranges, BlockOrder::Increasing, BlockOrder::Together] {
            for threads in [1, 2, 5] {
                let marks: Vec<AtomicI64> = (0..210).map(|_| AtomicI64::new(0)).collect();
                run(&spec(mark, &[marks.as_ptr() as u64], [7, 6, 5], order, threads), &quiet()).unwrap();
                assert!(marks.iter().all(|m| m.load(Ordering::Relaxed) == 1), "{order:?} {threads}");
            }
        }
    }

    /// A grid barrier: every block adds one, then spins until all have.
    unsafe extern "C" fn barrier(args: *const u64, ctx: *mut Context, lo: i64, hi: i64) -> i32 {
        // SAFETY: the test passes one atomic.
        let (count, ctx_ref) = unsafe { (&*(*args as *const AtomicI64), &*ctx) };
        for block in lo..hi {
            count.fetch_add(1, Ordering::SeqCst);
            while count.load(Ordering::SeqCst) < ctx_ref.grid[0] {
                // SAFETY: the pool's own callbacks, called as a kernel calls them.
                unsafe {
                    if (*ctx_ref.abort).load(Ordering::Relaxed) != 0 {
                        return 1;
                    }
                    (ctx_ref.yield_now)(ctx, 3, block);
                }
            }
        }
        0
    }

    #[test]
    fn blocks_that_all_wait_for_each_other_get_a_thread_each() {
        let count = AtomicI64::new(0);
        run(&spec(barrier, &[&raw const count as u64], [200, 1, 1], BlockOrder::Together, 2), &quiet()).unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 200);
    }

    /// Block b waits for block b - 1.
    unsafe extern "C" fn chain(args: *const u64, ctx: *mut Context, lo: i64, hi: i64) -> i32 {
        // SAFETY: the test passes one atomic.
        let (last, ctx_ref) = unsafe { (&*(*args as *const AtomicI64), &*ctx) };
        for block in lo..hi {
            while last.load(Ordering::Acquire) != block {
                // SAFETY: as above.
                unsafe { (ctx_ref.yield_now)(ctx, 0, block) };
            }
            last.store(block + 1, Ordering::Release);
        }
        0
    }

    #[test]
    fn a_block_may_wait_for_lower_ones() {
        for threads in [1, 2, 4] {
            let last = AtomicI64::new(0);
            let args = [&raw const last as u64];
            run(&spec(chain, &args, [3000, 1, 1], BlockOrder::Increasing, threads), &quiet()).unwrap();
            assert_eq!(last.load(Ordering::SeqCst), 3000);
        }
    }

    /// Traps in blocks 5 and above; block 0 waits for the abort flag.
    unsafe extern "C" fn trap(_: *const u64, ctx: *mut Context, lo: i64, hi: i64) -> i32 {
        // SAFETY: the context lives during the call.
        let ctx_ref = unsafe { &*ctx };
        for block in lo..hi {
            // SAFETY: the pool's own callbacks.
            unsafe {
                if block == 0 {
                    while (*ctx_ref.abort).load(Ordering::Relaxed) == 0 {
                        (ctx_ref.yield_now)(ctx, 0, block);
                    }
                    return 1;
                }
                if block >= 5 {
                    assert_eq!((ctx_ref.check)(ctx, 4096, 1), 1);
                    assert_eq!((ctx_ref.check)(ctx, 4097, 1), 0);
                    (ctx_ref.print)(ctx, 9, block, std::ptr::null());
                    (ctx_ref.trap)(ctx, 4, 2, block, 17, -3);
                    return 1;
                }
            }
        }
        0
    }

    #[test]
    fn a_trap_stops_the_others_and_says_where() {
        let host = quiet();
        let stop = run(&spec(trap, &[0], [8, 1, 1], BlockOrder::Together, 2), &host).unwrap_err();
        let Stop::Trap(t) = stop else { panic!("{stop:?}") };
        assert_eq!((t.kind, t.site, t.element, t.value), (TrapKind::Read, 4, Some(17), -3));
        assert!(t.block >= 5);
        assert!(!host.printed.lock().unwrap().is_empty(), "text printed before a trap is flushed");
    }

    /// Prints twice per block.
    unsafe extern "C" fn talk(_: *const u64, ctx: *mut Context, lo: i64, hi: i64) -> i32 {
        for block in lo..hi {
            for site in 0..2 {
                // SAFETY: the pool's own callback.
                unsafe { ((*ctx).print)(ctx, site, block, std::ptr::null()) };
            }
        }
        0
    }

    #[test]
    fn a_blocks_prints_leave_as_one_piece() {
        let host = quiet();
        run(&spec(talk, &[0], [50, 1, 1], BlockOrder::Ranges, 3), &host).unwrap();
        let mut printed = host.printed.into_inner().unwrap();
        printed.sort();
        let want: Vec<_> = (0..50).map(|b| (b, format!("{b}:0 {b}:1 "))).collect();
        assert_eq!(printed, want);
    }

    #[test]
    fn one_block_only() {
        let host = quiet();
        let mut spec = spec(talk, &[0], [4, 4, 1], BlockOrder::Ranges, 2);
        spec.only = Some((6, 7));
        run(&spec, &host).unwrap();
        assert_eq!(host.printed.into_inner().unwrap(), [(6, "6:0 6:1 ".to_string())]);
    }

    #[test]
    fn the_float_control_register_is_restored() {
        let before = FloatControl::read();
        drop(FloatControl::standard());
        assert_eq!(FloatControl::read(), before);
    }

    #[test]
    fn coordinates_go_x_fastest() {
        assert_eq!(coordinates(0, [3, 4, 5]), [0, 0, 0]);
        assert_eq!(coordinates(3 + 3 * 4 * 2 + 1, [3, 4, 5]), [1, 1, 2]);
    }
}
