//! Worker threads that live as long as the process: they spin a little, then park, and the caller works beside them.
//!
//! A job is a function of the worker's number, run by the caller (number 0) and by every worker that comes in time; a
//! worker that wakes late finds the job closed and the caller does not wait for it. So a job must hand out its own
//! pieces (an atomic counter) and be right for any number of participants.
//!
//! A parked worker is woken on another processor than the caller's. Left alone, the system likes to put whom a thread
//! wakes beside that thread; the worker then waits behind a caller that does not sleep, and a job of some milliseconds
//! is over before the system moves one of them.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::system::cpus::{self, Cpus, ThreadId};
use crate::system::sync::{self, Brief, Turn};

/// How long an idle thread spins before it parks. Waking a parked thread can cost a millisecond on a virtual machine.
const SPIN: Duration = Duration::from_micros(50);

const CLOSED: u64 = 1 << 31;
const COUNT: u64 = CLOSED - 1;

type Job<'a> = dyn Fn(usize) + Sync + 'a;

struct Shared {
    /// Generation in the high half; then the closed bit; then how many workers are inside the job.
    state: AtomicU64,
    /// Points at a `&Job` on the caller's stack; read only by workers that have entered the current generation.
    job: AtomicPtr<()>,
    /// Workers numbered this or higher stay out of the current job.
    limit: AtomicUsize,
    caller: Mutex<Option<Thread>>,
}

/// A worker as its caller sees it.
struct Worker {
    thread: Thread,
    place: Arc<Place>,
}

/// Where a worker runs.
#[derive(Default)]
struct Place {
    /// Known once it runs.
    id: OnceLock<ThreadId>,
    /// It sleeps, or is about to.
    parked: AtomicBool,
    /// The processors it may use, while it is kept off one of them.
    home: Mutex<Option<Cpus>>,
}

impl Place {
    /// Keeps a worker that sleeps off the processor of the calling thread, if `workers` fit on the others.
    fn step_aside(&self, workers: usize) {
        if !self.parked.load(Ordering::Relaxed) {
            return;
        }
        let mut home = self.home.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(id) = self.id.get() else { return };
        let Some(allowed) = home.or_else(|| Cpus::of(*id)) else { return };
        if let Some(others) = allowed.beside_caller()
            && others.count() >= workers
        {
            others.confine(*id);
            *home = Some(allowed);
        }
    }

    /// Lets the worker, which calls this, go wherever it may: it is awake, and on a processor of its own.
    fn settle(&self) {
        if let (Some(home), Some(id)) = (self.home.lock().unwrap_or_else(PoisonError::into_inner).take(), self.id.get())
        {
            home.confine(*id);
        }
    }
}

/// Workers, and their shared state with the caller.
struct Crew {
    /// The process that they live in: a fork has none of them, and begins with others.
    epoch: u32,
    shared: Arc<Shared>,
    workers: Vec<Worker>,
}

impl Crew {
    fn new() -> Crew {
        let shared = Shared {
            state: AtomicU64::new(CLOSED),
            job: AtomicPtr::new(std::ptr::null_mut()),
            limit: AtomicUsize::new(0),
            caller: Mutex::new(None),
        };
        Crew { epoch: sync::epoch(), shared: Arc::new(shared), workers: Vec::new() }
    }

    /// Brings the crew up to `workers` workers, or fewer where the system refuses threads: the result does not depend
    /// on their number.
    fn hire(&mut self, workers: usize) {
        while self.workers.len() < workers {
            let (shared, number) = (self.shared.clone(), self.workers.len() + 1);
            let place = Arc::<Place>::default();
            let own = place.clone();
            let thread = std::thread::Builder::new()
                .name(format!("girih-{number}"))
                .stack_size(512 << 10)
                .spawn(move || work(&shared, &own, number));
            match thread {
                Ok(handle) => self.workers.push(Worker { thread: handle.thread().clone(), place }),
                Err(_) => break,
            }
        }
    }
}

/// The pool. One job runs at a time; further callers wait.
pub struct Pool {
    turn: Turn,
    crew: Brief<Option<Crew>>,
}

/// The process's pool.
pub fn global() -> &'static Pool {
    static POOL: Pool = Pool { turn: Turn::new(), crew: Brief::new(None) };
    &POOL
}

impl Pool {
    /// How many workers are awake: they work, or wait for a job without sleeping.
    pub fn awake(&self) -> usize {
        let crew = self.crew.lock();
        let workers = crew.as_ref().filter(|crew| crew.epoch == sync::epoch()).map_or(&[][..], |crew| &crew.workers);
        workers.iter().filter(|worker| !worker.place.parked.load(Ordering::Relaxed)).count()
    }

    /// Runs `job` on up to `threads` threads, the calling one among them, and returns when all that took part are done.
    /// While it waits for the others it calls `meanwhile` now and then.
    pub fn run(&self, threads: usize, job: &Job<'_>, meanwhile: &dyn Fn()) {
        if threads <= 1 {
            return job(0);
        }
        // Without a turn, because this thread has it already or is told to stop, the job is done alone.
        let Ok(_turn) = self.turn.take() else { return job(0) };
        let shared = {
            let mut slot = self.crew.lock();
            let crew = match &mut *slot {
                Some(crew) if crew.epoch == sync::epoch() => crew,
                // The state of a crew from before a fork may be in the middle of a job.
                other => other.insert(Crew::new()),
            };
            crew.hire(threads - 1);
            let shared = crew.shared.clone();
            *shared.caller.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::current());
            shared.limit.store(threads, Ordering::Relaxed);
            shared.job.store((&raw const job).cast_mut().cast(), Ordering::Relaxed);
            let generation = (shared.state.load(Ordering::Relaxed) >> 32).wrapping_add(1);
            shared.state.store(generation << 32, Ordering::SeqCst);
            for worker in crew.workers.iter().take(threads - 1) {
                worker.place.step_aside(threads - 1);
                worker.thread.unpark();
            }
            shared
        };
        // Even when the job panics, nobody may be left inside it.
        let _close = Close { shared: &shared, epoch: sync::epoch(), meanwhile };
        job(0);
    }
}

struct Close<'a> {
    shared: &'a Shared,
    epoch: u32,
    meanwhile: &'a dyn Fn(),
}

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.shared.state.fetch_or(CLOSED, Ordering::SeqCst);
        let start = Instant::now();
        // In a child that was forked during the job no other thread is inside, even if the count says so.
        while self.shared.state.load(Ordering::Acquire) & COUNT != 0 && sync::epoch() == self.epoch {
            if start.elapsed() < SPIN {
                std::hint::spin_loop();
            } else {
                (self.meanwhile)();
                std::thread::park_timeout(Duration::from_millis(20));
            }
        }
    }
}

fn work(shared: &Shared, place: &Place, number: usize) {
    // Nobody else sets it.
    let _ = place.id.set(cpus::this_thread());
    let mut done = u64::MAX;
    loop {
        let state = wait(shared, place, done);
        done = state >> 32;
        if number >= shared.limit.load(Ordering::Relaxed) {
            continue;
        }
        // Enter, unless the job was closed or replaced meanwhile.
        let mut seen = state;
        let entered = loop {
            if seen & CLOSED != 0 || seen >> 32 != done {
                break false;
            }
            match shared.state.compare_exchange_weak(seen, seen + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break true,
                Err(now) => seen = now,
            }
        };
        if !entered {
            continue;
        }
        let job = shared.job.load(Ordering::Relaxed).cast::<&Job<'_>>();
        // SAFETY: the pointer was stored before this generation's state, which was read with acquire; the caller keeps
        // the pointee alive until the count of those inside is zero, and this worker is counted until `fetch_sub`.
        let job = unsafe { *job };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job(number)));
        let before = shared.state.fetch_sub(1, Ordering::AcqRel);
        if before & CLOSED != 0
            && before & COUNT == 1
            && let Some(caller) = &*shared.caller.lock().unwrap_or_else(PoisonError::into_inner)
        {
            caller.unpark();
        }
        if outcome.is_err() {
            // A bug of ours: the message is out; the result would be wrong without anybody knowing.
            std::process::exit(70);
        }
    }
}

/// Waits for an open job of a generation other than `done`.
fn wait(shared: &Shared, place: &Place, done: u64) -> u64 {
    let start = Instant::now();
    loop {
        let state = shared.state.load(Ordering::Acquire);
        if state & CLOSED == 0 && state >> 32 != done {
            return state;
        }
        if start.elapsed() < SPIN {
            std::hint::spin_loop();
        } else {
            place.parked.store(true, Ordering::Relaxed);
            std::thread::park();
            place.parked.store(false, Ordering::Relaxed);
            place.settle();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_done_once_however_many_take_part() {
        for threads in [1, 2, 3, 7] {
            for _ in 0..200 {
                let next = AtomicUsize::new(0);
                let marks: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
                global().run(
                    threads,
                    &|_| {
                        loop {
                            let i = next.fetch_add(1, Ordering::Relaxed);
                            let Some(mark) = marks.get(i) else { break };
                            mark.fetch_add(1, Ordering::Relaxed);
                        }
                    },
                    &|| {},
                );
                assert!(marks.iter().all(|m| m.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn numbers_are_distinct_and_below_the_limit() {
        for _ in 0..100 {
            let seen: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
            global().run(
                4,
                &|n| {
                    seen[n].fetch_add(1, Ordering::Relaxed);
                },
                &|| {},
            );
            assert!(seen.iter().all(|s| s.load(Ordering::Relaxed) <= 1));
            assert_eq!(seen[0].load(Ordering::Relaxed), 1);
        }
    }

    #[test]
    fn callers_on_many_threads_take_turns() {
        let inside = AtomicUsize::new(0);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..50 {
                        global().run(
                            2,
                            &|n| {
                                if n == 0 {
                                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                                    inside.fetch_sub(1, Ordering::SeqCst);
                                }
                            },
                            &|| {},
                        );
                    }
                });
            }
        });
    }
}
