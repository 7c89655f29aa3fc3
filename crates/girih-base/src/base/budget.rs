//! The limits of a piece of work, checked before the work is done: bytes of memory, and elements computed.
//!
//! In: limits, stated by the code that starts the work (the runtime from the machine's memory, the compiler as
//! constants). Out: yes, or a [`TooMuch`] with the amount that was wanted and the amount that is allowed. Sizes that
//! users write are multiplied by [`elements`], which overflows to `None`.
//!
//! ```text
//! let mut budget = Budget::new(Limits { memory: 1 << 30, work: 1 << 40 });
//! budget.take(elements(&[65536, 65536]).and_then(|n| n.checked_mul(8)))?;
//!     --> "it needs 32.0 GiB of memory; 1.0 GiB of the 1.0 GiB allowed is left"
//! ```
//! Invariant: the memory held never exceeds the limit, and granted memory was available at that moment.

use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes held at one time.
    pub memory: u64,
    /// Elements computed in total.
    pub work: u64,
}

/// Limits, and the amounts used so far.
#[derive(Clone, Debug)]
pub struct Budget {
    limits: Limits,
    held: u64,
    done: u64,
}

/// Two budgets are equal if their limits are equal; the amounts used do not count.
impl PartialEq for Budget {
    fn eq(&self, other: &Budget) -> bool {
        self.limits == other.limits
    }
}

impl Eq for Budget {}

/// The budget of evaluators whose caller does not state one.
impl Default for Budget {
    fn default() -> Budget {
        Budget::of_memory(64 << 30)
    }
}

/// The reason for refusing work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TooMuch {
    /// `wanted` is `None` where the count of bytes overflows.
    Memory {
        wanted: Option<u64>,
        left: u64,
        limit: u64,
    },
    /// The amount is within the limit, but the system does not have it.
    System {
        wanted: u64,
    },
    Work {
        limit: u64,
    },
}

/// From this size on, the system is asked for the memory first; for less the question is not worth its cost.
const LARGE: u64 = 1 << 20;

impl Budget {
    pub fn new(limits: Limits) -> Budget {
        Budget { limits, held: 0, done: 0 }
    }

    /// A limit on memory only, none on work.
    pub fn of_memory(memory: u64) -> Budget {
        Budget::new(Limits { memory, work: u64::MAX })
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    pub fn left(&self) -> u64 {
        self.limits.memory - self.held
    }

    /// Requests memory and holds it; `None` is a number that overflowed.
    pub fn take(&mut self, bytes: Option<u64>) -> Result<(), TooMuch> {
        let refused = TooMuch::Memory { wanted: bytes, left: self.left(), limit: self.limits.memory };
        let bytes = bytes.filter(|n| *n <= self.left()).ok_or(refused)?;
        if bytes >= LARGE {
            // Requested and given back at once: the system grants now the same amount that it will grant again right
            // after.
            let mut probe: Vec<u8> = vec![];
            let size = usize::try_from(bytes).map_err(|_| refused)?;
            probe.try_reserve_exact(size).map_err(|_| TooMuch::System { wanted: bytes })?;
        }
        self.held += bytes;
        Ok(())
    }

    /// Sets the memory held, for owners that count it themselves.
    pub fn hold(&mut self, bytes: u64) {
        self.held = bytes.min(self.limits.memory);
    }

    /// Gives memory back.
    pub fn give(&mut self, bytes: u64) {
        self.held = self.held.saturating_sub(bytes);
    }

    /// Requests work.
    pub fn spend(&mut self, elements: u64) -> Result<(), TooMuch> {
        self.done = self.done.saturating_add(elements);
        if self.done > self.limits.work { Err(TooMuch::Work { limit: self.limits.work }) } else { Ok(()) }
    }
}

/// The number of elements of a shape; `None` if it overflows.
pub fn elements(shape: &[u64]) -> Option<u64> {
    shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d))
}

/// `1.5 GiB`
pub fn bytes_text(bytes: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1024.0 && unit + 1 < units.len() {
        size /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{size:.1} {}", units[unit]) }
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TooMuch::Memory { wanted, left, limit } => {
                let wanted = wanted.map_or("more than 16 EiB".into(), bytes_text);
                write!(
                    f,
                    "it needs {wanted} of memory; {} of the {} allowed is left",
                    bytes_text(*left),
                    bytes_text(*limit)
                )
            }
            TooMuch::System { wanted } => {
                write!(f, "it needs {} of memory, which the system does not have", bytes_text(*wanted))
            }
            TooMuch::Work { limit } => write!(f, "it computes more than the {limit} elements that are allowed"),
        }
    }
}

impl From<TooMuch> for String {
    fn from(t: TooMuch) -> String {
        t.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_stays_within_the_limit() {
        let mut b = Budget::of_memory(100);
        assert_eq!(b.take(Some(60)), Ok(()));
        assert_eq!(b.take(Some(41)), Err(TooMuch::Memory { wanted: Some(41), left: 40, limit: 100 }));
        assert_eq!(b.take(Some(40)), Ok(()));
        b.give(60);
        assert_eq!((b.left(), b.take(Some(60))), (60, Ok(())));
        assert_eq!(b.take(None), Err(TooMuch::Memory { wanted: None, left: 0, limit: 100 }));
        b.hold(70);
        assert_eq!((b.left(), b.take(Some(31)).is_err()), (30, true));
        b.hold(1000);
        assert_eq!((b.left(), b.take(Some(0))), (0, Ok(())));
    }

    #[test]
    fn memory_that_the_system_does_not_have_is_refused() {
        let mut b = Budget::of_memory(u64::MAX);
        assert_eq!(b.take(Some(1 << 62)), Err(TooMuch::System { wanted: 1 << 62 }));
        assert!(b.take(Some(u64::MAX)).is_err());
        assert_eq!(b.left(), u64::MAX);
    }

    #[test]
    fn work_adds_up_and_sizes_do_not_overflow() {
        let mut b = Budget::new(Limits { memory: 0, work: 10 });
        assert_eq!((b.spend(10), b.spend(1)), (Ok(()), Err(TooMuch::Work { limit: 10 })));
        assert_eq!(b.spend(u64::MAX), Err(TooMuch::Work { limit: 10 }));
        assert_eq!((elements(&[3, 0, 5]), elements(&[1 << 32, 1 << 32]), elements(&[])), (Some(0), None, Some(1)));
        let much = TooMuch::Memory { wanted: Some(32 << 30), left: 1 << 29, limit: 1 << 30 };
        assert_eq!(much.to_string(), "it needs 32.0 GiB of memory; 512.0 MiB of the 1.0 GiB allowed is left");
    }
}
