//! Long work that one thread does at a time, and data that only that thread touches.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::thread::Thread;
use std::time::Duration;

use super::brief::{Brief, epoch, me};
use crate::error::Error;
use crate::system::signals;

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
    /// It is this thread's turn already: a signal's handler, or the receiver of a kernel's prints, runs in the middle of it.
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
            // Long enough to cost nothing, short enough after Ctrl-C.
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
            // The data that another process's thread was changing is not even dropped, but overwritten.
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
