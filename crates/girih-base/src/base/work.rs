//! Counts of work, for tests that it grows with the program and not with its square: unlike time, they do not change on
//! a busy machine.

#[cfg(feature = "testing")]
thread_local! {
    static DONE: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts one more visit: of a statement, an operation of an index expression, the node of a value.
#[inline]
pub fn look() {
    #[cfg(feature = "testing")]
    DONE.with(|n| n.set(n.get() + 1));
}

/// The number of visits by this thread.
#[cfg(feature = "testing")]
pub fn looked_at() -> u64 {
    DONE.with(|n| n.get())
}
