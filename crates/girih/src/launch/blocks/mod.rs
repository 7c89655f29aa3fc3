//! Runs the blocks of one launch of a compiled kernel over the pool.
//!
//! The kernel's accesses decide which blocks run where ([`BlockOrder`]). In any order, a block's prints leave
//! as one piece when the block ends, the first trap stops the launch, Ctrl-C stops it, and if blocks wait for each other
//! without end, the host is told which ones wait, and where.

mod callbacks;
mod cost;
mod float_control;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::compile::abi::{Context, TrapKind};
use crate::compile::module::NativeKernel;
use crate::error::Error;
use crate::launch::faults::{self, Fault};
use crate::launch::pool;
use crate::memory::pages::Pages;
use crate::system::signals::{self, ABORT, Busy, Cooperative, Launching, STOP};
use crate::system::sync;
use callbacks::{on_check, on_print, on_stop, on_trap, on_yield};

pub use cost::Cost;
pub(crate) use float_control::FloatControl;
pub use girih_compiler::loops::launch_facts::BlockOrder;

/// Largest grid whose blocks get a thread each.
pub const MAX_TOGETHER: i64 = 1024;

/// The cause of a kernel's trap.
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

/// Services that the host gives a running kernel.
pub trait Host: Sync {
    /// Text of the `print` at `site`; `args` points at its arguments' elements, one pointer each.
    ///
    /// # Safety
    /// `args` must be the pointer that the kernel compiled with that site passed.
    unsafe fn format(&self, site: u32, block: i64, args: *const *const c_void) -> String;
    /// A block's complete output.
    fn print(&self, block: i64, text: &str);
    /// Nothing progresses; these blocks wait.
    fn stalled(&self, waiting: &[Waiting]);
    /// Returns true if `[addr, addr + len)` lies in live memory of this launch.
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
    /// The kernel's cost as earlier runs measured it; this run adds to it.
    pub cost: Option<&'a Cost>,
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
    /// Milliseconds after the first launch that asked of the last finished piece or report, where blocks may wait for each other.
    progress: AtomicU64,
    /// Per thread, the last poll: the block in the high bits, the site plus 1 in the low 20; 0 when it did not poll.
    waiting: Vec<AtomicI64>,
    /// No more threads than were asked for, so polling may spin.
    spare_cores: bool,
}

/// The object that `girih_ctx.host` points at.
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
    _cooperative: Cooperative,
    launching: Launching,
}

impl Session {
    /// Waits for launches of other threads; an error when it is told to stop meanwhile.
    pub fn begin() -> crate::Result<Session> {
        let launching = Launching::begin()?;
        let cooperative = Cooperative::enter();
        faults::watch();
        Ok(Session { _cooperative: cooperative, launching })
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
            run.cost.map_or(most, |cost| cost.threads(most, count, || pool::global().awake()))
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
        progress: AtomicU64::new(0),
        waiting: match run.order {
            BlockOrder::Ranges => Vec::new(),
            BlockOrder::Locked | BlockOrder::Increasing | BlockOrder::Together => {
                (0..threads).map(|_| AtomicI64::new(0)).collect()
            }
        },
        spare_cores: threads <= run.threads,
    };
    if !shared.waiting.is_empty() {
        shared.progressed();
    }
    let step = match run.order {
        BlockOrder::Ranges if threads == 1 => count.max(1),
        // A few pieces per thread, so that the slower threads' work is shared out at the end.
        BlockOrder::Ranges => (count / (threads as i64 * 4)).max(1),
        // The same, and pieces small enough to show that there is progress.
        BlockOrder::Locked => (count / (threads as i64 * 4).max(64)).max(1),
        // Blocks of one thread wait for nobody who could still come.
        BlockOrder::Increasing if threads == 1 => (count / 64).max(1),
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
                    // Threads that were never started count as ended.
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

    /// Notes that something has progressed.
    fn progressed(&self) {
        self.progress.fetch_max(now(), Ordering::Relaxed);
    }
}

/// Milliseconds since a moment that the process chose when it first asked.
fn now() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_millis() as u64
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
    let learns = run.cost.filter(|cost| slot == 0 && cost.asks(run.threads));
    let (start, mut blocks) = (learns.map(|_| Instant::now()), 0);
    while ABORT.load(Ordering::Relaxed) == 0 || !stop_asked(slot) {
        let lo = shared.next.fetch_add(step, Ordering::Relaxed);
        if lo >= shared.end {
            break;
        }
        let hi = (lo + step).min(shared.end);
        blocks += hi - lo;
        // SAFETY: the kernel was compiled for these parameters (the caller checked their count and kinds); the context
        // and the worker live until the call returns; scratch has the size that the kernel's meta asks for.
        if let Err(fault) = unsafe { faults::call(run.kernel.entry, run.args.as_ptr(), &mut context, lo, hi) } {
            ABORT.store(STOP, Ordering::SeqCst);
            shared.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
        }
        if let Some(waiting) = shared.waiting.get(slot) {
            waiting.store(0, Ordering::Relaxed);
            shared.progressed();
        }
        // SAFETY: the kernel has returned, so nobody else holds the worker that `host` points at.
        unsafe { &mut *context.host.cast::<Worker>() }.flush();
    }
    drop(control);
    if let (1.., Some(cost), Some(start)) = (blocks, learns, start) {
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

/// Returns true if the abort flag asks this thread of the launch to stop; the launching thread first checks for a
/// pending stop.
fn stop_asked(slot: usize) -> bool {
    if slot == 0 {
        signals::stopping_here();
    }
    ABORT.load(Ordering::Relaxed) == STOP
}

/// The linear block's coordinates.
pub fn coordinates(block: i64, grid: [u32; 3]) -> [u32; 3] {
    let (gx, gy) = (i64::from(grid[0].max(1)), i64::from(grid[1].max(1)));
    [(block % gx) as u32, (block / gx % gy) as u32, (block / gx / gy) as u32]
}
