//! Locks that a fork leaves usable.
//!
//! A fork copies memory and one thread. A lock that another thread held would stay locked in the child forever, and what
//! that thread was changing would stay half changed. So what threads share is behind one of these:
//!
//! * [`Brief`]: data that is touched for moments. A fork waits until nobody is inside (`pthread_atfork`), so in the child
//!   it is free and whole. Nobody may wait for anything inside, least of all for another program's lock.
//! * [`Turn`]: long work that one thread does at a time. A fork does not wait for it; in the child the turn of a thread
//!   that is not there has ended. It guards no data; [`Turned`] does, and makes them anew when they may be half changed.
//! * [`Built`]: a value that takes long to make and is made once: a turn for making it, a moment for taking it.

use std::cell::{Cell, UnsafeCell};
use std::collections::VecDeque;
use std::fs::File;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::signals;

/// Threads inside some [`Brief`].
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// A fork waits, and nobody may enter.
static FORKING: AtomicBool = AtomicBool::new(false);
/// How many forks lie between the first process and this one.
static EPOCH: AtomicU32 = AtomicU32::new(1);

thread_local! {
    /// How many [`Brief`]s this thread is inside.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Changes when a fork makes a new process of this one.
pub(crate) fn epoch() -> u32 {
    EPOCH.load(Ordering::SeqCst)
}

/// This thread, among those of the process.
fn me() -> usize {
    DEPTH.with(|depth| std::ptr::from_ref(depth).addr())
}

extern "C" fn before_fork() {
    if DEPTH.get() > 0 {
        return;
    }
    while FORKING.swap(true, Ordering::SeqCst) {
        std::thread::yield_now();
    }
    while INSIDE.load(Ordering::SeqCst) != 0 {
        std::thread::yield_now();
    }
}

extern "C" fn after_fork() {
    if DEPTH.get() == 0 {
        FORKING.store(false, Ordering::SeqCst);
    }
}

extern "C" fn in_child() {
    EPOCH.fetch_add(1, Ordering::SeqCst);
    INSIDE.store(usize::from(DEPTH.get() > 0), Ordering::SeqCst);
    FORKING.store(false, Ordering::SeqCst);
    close_others();
}

/// Asks the system, once, to be told of forks.
fn watch_forks() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.load(Ordering::Relaxed) && !WATCHED.swap(true, Ordering::SeqCst) {
        // SAFETY: the functions may be called around any fork: they touch atomics and a list that nobody changes then.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
    }
}

/// This thread is inside; dropped by the thread that made it.
struct Inside(PhantomData<*const ()>);

impl Inside {
    fn enter() -> Inside {
        let depth = DEPTH.get();
        if depth == 0 {
            watch_forks();
            loop {
                INSIDE.fetch_add(1, Ordering::SeqCst);
                if !FORKING.load(Ordering::SeqCst) {
                    break;
                }
                INSIDE.fetch_sub(1, Ordering::SeqCst);
                while FORKING.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
            }
        }
        DEPTH.set(depth + 1);
        Inside(PhantomData)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        if depth == 0 {
            INSIDE.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Data that threads touch for moments; no fork happens meanwhile.
#[derive(Default)]
pub struct Brief<T>(Mutex<T>);

impl<T: std::fmt::Debug> std::fmt::Debug for Brief<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

pub struct BriefGuard<'a, T> {
    // In the order in which they end.
    guard: MutexGuard<'a, T>,
    _inside: Inside,
}

impl<T> Brief<T> {
    pub const fn new(value: T) -> Brief<T> {
        Brief(Mutex::new(value))
    }
    pub fn lock(&self) -> BriefGuard<'_, T> {
        let inside = Inside::enter();
        BriefGuard { guard: self.0.lock().unwrap_or_else(PoisonError::into_inner), _inside: inside }
    }
}

impl<T> Deref for BriefGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}
impl<T> DerefMut for BriefGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// The value of a `OnceLock` that takes moments to make.
pub fn once<T>(slot: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    match slot.get() {
        Some(value) => value,
        None => {
            let _inside = Inside::enter();
            slot.get_or_init(make)
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Holder {
    epoch: u32,
    thread: usize,
}

#[derive(Debug)]
struct Queue {
    holder: Option<Holder>,
    waiting: VecDeque<(usize, Thread)>,
}

/// Long work that one thread does at a time.
#[derive(Debug)]
pub struct Turn(Brief<Queue>);

impl Default for Turn {
    fn default() -> Turn {
        Turn::new()
    }
}

/// Why it is nobody's turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// It was told to stop while it waited.
    Stopped,
    /// It is this thread's turn already: a signal's handler, or what a kernel prints to, runs in the middle of it.
    Mine,
}

impl From<Denied> for Error {
    fn from(denied: Denied) -> Error {
        match denied {
            Denied::Stopped => Error::Interrupted,
            Denied::Mine => Error::argument(
                "the model is already running on this thread; code that interrupts it, such as a signal handler, cannot use it",
            ),
        }
    }
}

/// It is this thread's turn.
#[derive(Debug)]
pub struct Holding<'a> {
    turn: &'a Turn,
    holder: Holder,
    /// The turn before ended in a fork, not where it should.
    broken: bool,
}

impl Turn {
    pub const fn new() -> Turn {
        Turn(Brief::new(Queue { holder: None, waiting: VecDeque::new() }))
    }

    /// Waits until it is this thread's turn.
    pub fn take(&self) -> std::result::Result<Holding<'_>, Denied> {
        let holder = Holder { epoch: epoch(), thread: me() };
        loop {
            {
                let mut queue = self.0.lock();
                match queue.holder {
                    Some(other) if other == holder => return Err(Denied::Mine),
                    Some(other) if other.epoch == holder.epoch => {
                        if queue.waiting.iter().all(|(thread, _)| *thread != holder.thread) {
                            queue.waiting.push_back((holder.thread, std::thread::current()));
                        }
                    }
                    before => {
                        if before.is_some() {
                            queue.waiting.clear();
                        }
                        queue.waiting.retain(|(thread, _)| *thread != holder.thread);
                        queue.holder = Some(holder);
                        return Ok(Holding { turn: self, holder, broken: before.is_some() });
                    }
                }
            }
            if signals::attention() {
                self.0.lock().waiting.retain(|(thread, _)| *thread != holder.thread);
                return Err(Denied::Stopped);
            }
            // Long enough to cost nothing, short enough for who presses Ctrl-C.
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        let mut queue = self.turn.0.lock();
        // After a fork in the middle of it, the turn may be somebody else's.
        if queue.holder == Some(self.holder) {
            queue.holder = None;
            if let Some((_, next)) = queue.waiting.pop_front() {
                next.unpark();
            }
        }
    }
}

/// Data that only the one whose turn it is touches.
#[derive(Default)]
pub struct Turned<T> {
    turn: Turn,
    data: UnsafeCell<T>,
}

// SAFETY: the data are reached by one thread at a time, the one that holds the turn.
unsafe impl<T: Send> Sync for Turned<T> {}

pub struct TurnedGuard<'a, T> {
    turned: &'a Turned<T>,
    _holding: Holding<'a>,
}

impl<T: Default> Turned<T> {
    pub fn take(&self) -> std::result::Result<TurnedGuard<'_, T>, Denied> {
        let holding = self.turn.take()?;
        if holding.broken {
            // What the thread of another process was doing is left as it is, not even dropped.
            // SAFETY: it is this thread's turn.
            unsafe { self.data.get().write(T::default()) };
        }
        Ok(TurnedGuard { turned: self, _holding: holding })
    }
}

impl<T> Deref for TurnedGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: it is this thread's turn.
        unsafe { &*self.turned.data.get() }
    }
}
impl<T> DerefMut for TurnedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.turned.data.get() }
    }
}

/// A value that takes long to make and is made once.
pub struct Built<T> {
    made: Brief<Option<T>>,
    making: Turn,
}

impl<T> Default for Built<T> {
    fn default() -> Built<T> {
        Built { made: Brief::new(None), making: Turn::new() }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Built<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.made.fmt(f)
    }
}

impl<T: Clone> Built<T> {
    pub fn get(&self) -> Option<T> {
        self.made.lock().clone()
    }

    /// The value; who comes while another thread makes it waits for that.
    pub fn get_or_make(&self, make: impl FnOnce() -> Result<T>) -> Result<T> {
        if let Some(made) = self.get() {
            return Ok(made);
        }
        let _making = match self.making.take() {
            Ok(holding) => Some(holding),
            Err(Denied::Stopped) => return Err(Error::Interrupted),
            // In the middle of making it: it is made twice, and the first stays.
            Err(Denied::Mine) => None,
        };
        if let Some(made) = self.get() {
            return Ok(made);
        }
        let made = make()?;
        Ok(self.made.lock().get_or_insert(made).clone())
    }
}

/// Files of which a child must not keep a copy, with the threads that have them.
static ALONE: Brief<Vec<(i32, usize)>> = Brief::new(Vec::new());

/// A locked file whose lock ends with the value, or with the process, whatever children that has.
pub struct FileLock(File);

impl FileLock {
    /// Waits for the lock. Some network file systems know none; the value then stands for nothing.
    pub fn take(file: File) -> Result<FileLock> {
        ALONE.lock().push((file.as_raw_fd(), me()));
        let file = FileLock(file);
        while let Err(std::fs::TryLockError::WouldBlock) = file.0.try_lock() {
            if signals::attention() {
                return Err(Error::Interrupted);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(file)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let number = self.0.as_raw_fd();
        ALONE.lock().retain(|(n, _)| *n != number);
        // A child that was forked a moment ago may still have the file open.
        let _ = self.0.unlock();
    }
}

/// In a child: closes its copies of files that threads which it does not have would close.
fn close_others() {
    if DEPTH.get() > 0 {
        return;
    }
    let me = me();
    let mut alone = ALONE.lock();
    alone.retain(|&(number, thread)| {
        if thread != me {
            // SAFETY: the file belongs to a thread that is not in this process; nobody else knows its number.
            unsafe { libc::close(number) };
        }
        thread == me
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Forks; the child ends with what `child` returns. Fails when the child does not end.
    fn in_fork(child: impl FnOnce() -> bool) {
        // SAFETY: the child calls what the tests below name, and `_exit`.
        let number = unsafe { libc::fork() };
        assert!(number >= 0, "no fork: {}", std::io::Error::last_os_error());
        if number == 0 {
            let code = if child() { 0 } else { 1 };
            // SAFETY: may be called at any time.
            unsafe { libc::_exit(code) };
        }
        let (mut status, start) = (0, std::time::Instant::now());
        loop {
            // SAFETY: waits for the child made above, into a local.
            if unsafe { libc::waitpid(number, &mut status, libc::WNOHANG) } == number {
                break;
            }
            if start.elapsed().as_secs() > 300 {
                // SAFETY: the child was not waited for, so its number is its own.
                unsafe { libc::kill(number, libc::SIGKILL) };
                panic!("the child hangs");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(status, 0);
    }

    #[test]
    fn a_fork_finds_brief_locks_free_and_their_data_whole() {
        let (pair, end) = (Arc::new(Brief::new((0u64, 0u64))), Arc::new(AtomicBool::new(false)));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (pair, end) = (pair.clone(), end.clone());
                std::thread::spawn(move || {
                    while !end.load(Ordering::Relaxed) {
                        let mut pair = pair.lock();
                        pair.0 += 1;
                        std::hint::black_box(&mut *pair);
                        pair.1 += 1;
                    }
                })
            })
            .collect();
        for _ in 0..200 {
            let pair = pair.clone();
            in_fork(move || {
                let pair = pair.lock();
                pair.0 == pair.1
            });
        }
        end.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|t| t.join().unwrap());
    }

    #[test]
    fn a_turn_of_another_thread_ends_with_a_fork_and_its_data_are_made_anew() {
        let data: Arc<Turned<Vec<u32>>> = Arc::default();
        let (taken, go) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut mine = data.take().unwrap();
                mine.push(1);
                taken.wait();
                go.wait();
            });
            taken.wait();
            for _ in 0..20 {
                in_fork(|| data.take().is_ok_and(|d| d.is_empty()) && data.take().is_ok_and(|d| d.is_empty()));
            }
            go.wait();
            assert_eq!(*data.take().unwrap(), [1]);
        });
    }

    #[test]
    fn turns_are_taken_one_at_a_time_and_not_twice_by_one_thread() {
        let (turn, inside) = (Turn::new(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _mine = turn.take().unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        assert_eq!(turn.take().unwrap_err(), Denied::Mine);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }

    #[test]
    fn a_value_is_built_once() {
        let (built, count) = (Built::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let make = || {
                        count.fetch_add(1, Ordering::SeqCst);
                        Ok(7)
                    };
                    assert_eq!(built.get_or_make(make).unwrap(), 7);
                });
            }
        });
        assert_eq!(count.load(Ordering::SeqCst), 1);
        let failing: Built<u32> = Built::default();
        assert!(failing.get_or_make(|| Err(Error::Interrupted)).is_err());
        assert_eq!(failing.get_or_make(|| Ok(1)).unwrap(), 1);
    }

    #[test]
    fn a_lock_on_a_file_ends_with_its_value_though_a_child_lives() {
        let path = crate::files::temporary_beside(&std::env::temp_dir().join("girih-sync-test"));
        let open = || File::options().create(true).truncate(false).write(true).open(&path).unwrap();
        let lock = FileLock::take(open()).unwrap();
        // A child forked by another thread than the one that holds the lock waits for it, not for itself.
        let forked = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            let (path, forked) = (&path, &forked);
            scope.spawn(move || {
                let file = File::options().write(true).open(path).unwrap();
                // SAFETY: the child waits for a lock and ends.
                let number = unsafe { libc::fork() };
                assert!(number >= 0, "no fork: {}", std::io::Error::last_os_error());
                if number == 0 {
                    let code = i32::from(FileLock::take(file).is_err());
                    // SAFETY: may be called at any time.
                    unsafe { libc::_exit(code) };
                }
                forked.wait();
                let mut status = -1;
                // SAFETY: waits for the child made above, into a local.
                unsafe { libc::waitpid(number, &mut status, 0) };
                assert_eq!(status, 0);
            });
            forked.wait();
            drop(lock);
        });
        std::fs::remove_file(&path).unwrap();
    }
}
