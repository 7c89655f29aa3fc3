//! How long a thread has worked: what a test may be strict about, whatever else the machine does.

use std::time::{Duration, Instant};

/// A stretch of work of this thread.
pub struct Effort {
    start: Instant,
    before: Option<Duration>,
}

impl Effort {
    pub fn begin() -> Effort {
        Effort { start: Instant::now(), before: worked() }
    }

    /// True if the thread has worked longer than `most` since the start.
    pub fn passes(&self, most: Duration) -> bool {
        // Wall time only says whether to look closer: the machine may be busy with something else.
        self.start.elapsed() > most
            && match (self.before, worked()) {
                (Some(before), Some(now)) => now.saturating_sub(before) > most,
                _ => true,
            }
    }
}

/// Time this thread has worked, which other programs do not lengthen; `None` where the system does not say.
fn worked() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}
