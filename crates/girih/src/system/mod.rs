//! What the operating system and the machine give: files that appear whole, signals, locks that a fork leaves usable,
//! and the processor's features. Knows nothing of kernels.
//!
//! In: nothing of ours but errors. Out: what every other room stands on.

pub mod files;
pub mod machine;
pub mod signals;
pub mod sync;
