//! Which processors a thread may run on, where the system lets us say.
//!
//! In: a thread. Out: the set of its processors, and the same set without the one that the caller is on.

/// A set of processors; `None` where the system does not tell, or has more than the set holds.
#[derive(Clone, Copy)]
pub struct Cpus(
    #[cfg(target_os = "linux")] libc::cpu_set_t,
    // Nothing makes one.
    #[cfg(not(target_os = "linux"))] std::convert::Infallible,
);

/// A thread, by the system's number for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadId(i32);

#[cfg(target_os = "linux")]
mod linux {
    use super::{Cpus, ThreadId};

    /// The calling thread.
    pub fn this_thread() -> ThreadId {
        // SAFETY: the call has no arguments and cannot fail.
        ThreadId(unsafe { libc::syscall(libc::SYS_gettid) } as i32)
    }

    impl Cpus {
        /// The CPUs that a thread of this process may run on.
        pub fn of(thread: ThreadId) -> Option<Cpus> {
            // SAFETY: a set of zeroes is the empty set, and the call writes to no more than its size.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                (libc::sched_getaffinity(thread.0, size_of::<libc::cpu_set_t>(), &mut set) == 0).then_some(Cpus(set))
            }
        }

        pub fn count(&self) -> usize {
            // SAFETY: the set is a valid one.
            unsafe { libc::CPU_COUNT(&self.0) as usize }
        }

        /// These but for the one that the calling thread is on; `None` where that is not among them.
        pub fn beside_caller(&self) -> Option<Cpus> {
            let mut set = self.0;
            // SAFETY: the number is tested to be within the set before it is looked for.
            unsafe {
                let own = usize::try_from(libc::sched_getcpu()).ok()?;
                if own >= 8 * size_of::<libc::cpu_set_t>() || !libc::CPU_ISSET(own, &set) {
                    return None;
                }
                libc::CPU_CLR(own, &mut set);
            }
            Some(Cpus(set))
        }

        /// Lets a thread of this process run on these only. A thread that is gone, and a system that refuses, change nothing.
        pub fn confine(&self, thread: ThreadId) {
            // SAFETY: the set is a valid one of the size that is told.
            unsafe { libc::sched_setaffinity(thread.0, size_of::<libc::cpu_set_t>(), &self.0) };
        }
    }
}

#[cfg(target_os = "linux")]
pub use linux::this_thread;

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::{Cpus, ThreadId};

    pub fn this_thread() -> ThreadId {
        ThreadId(0)
    }

    impl Cpus {
        pub fn of(_thread: ThreadId) -> Option<Cpus> {
            None
        }

        pub fn count(&self) -> usize {
            match self.0 {}
        }

        pub fn beside_caller(&self) -> Option<Cpus> {
            match self.0 {}
        }

        pub fn confine(&self, _thread: ThreadId) {
            match self.0 {}
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub use elsewhere::this_thread;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_kept_off_a_processor_and_let_back() {
        let own = this_thread();
        let all = Cpus::of(own).expect("a set");
        let Some(others) = all.beside_caller() else { return };
        assert_eq!(others.count() + 1, all.count());
        if others.count() > 0 {
            others.confine(own);
            assert_eq!(Cpus::of(own).expect("a set").count(), others.count());
            assert!(others.beside_caller().is_some(), "the thread runs on one of those that are left");
        }
        all.confine(own);
        assert_eq!(Cpus::of(own).expect("a set").count(), all.count());
    }
}
