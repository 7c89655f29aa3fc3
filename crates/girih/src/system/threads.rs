//! Threads that take a share of some work.
//!
//! The system may refuse a thread (`ulimit -u`, a container's limit): the work is then done by fewer, at last by the caller alone.
//! `std::thread::spawn` and `Scope::spawn` panic instead; `tests/threads.rs` finds them.

use std::thread::{Builder, scope};

/// The stack of a thread that compiles.
const STACK: usize = 8 << 20;

/// Calls `work` on up to `threads` threads, the calling one among them, and returns when all are done. The calls share the work
/// between them: one alone must do all of it.
pub fn share(threads: usize, work: &(dyn Fn() + Sync)) {
    scope(|scope| {
        for _ in 1..threads {
            if Builder::new().stack_size(STACK).spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}
