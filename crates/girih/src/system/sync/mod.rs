//! Locks that a fork leaves usable.
//!
//! A fork copies memory and one thread. A lock that another thread held would stay locked in the child forever, and data
//! that this thread was changing would stay half changed. So data shared by threads is behind one of these:
//!
//! * [`Brief`]: data that is touched for moments. A fork waits until nobody is inside (`pthread_atfork`), so in the child
//!   it is free and whole. Nobody may wait for anything inside, least of all for another program's lock.
//! * [`Turn`]: long work that one thread does at a time. A fork does not wait for it; in the child the turn of a thread
//!   that is not there has ended. It guards no data; [`Turned`] does, and makes them anew when they may be half changed.
//! * [`Built`]: a value that takes long to make and is made once: a turn for making it, a moment for taking it.

mod brief;
mod built;
mod file_lock;
#[cfg(test)]
mod tests;
mod turn;

pub(crate) use brief::epoch;
pub use brief::{Brief, BriefGuard, once};
pub use built::Built;
pub use file_lock::FileLock;
pub use turn::{Denied, Holding, Turn, Turned, TurnedGuard};
