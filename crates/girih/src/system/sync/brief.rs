//! Data that is touched for moments, and the handlers of forks that wait until nobody is inside.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::file_lock::close_others;

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
pub(super) fn me() -> usize {
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
    if DEPTH.get() == 0 {
        close_others();
    }
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
