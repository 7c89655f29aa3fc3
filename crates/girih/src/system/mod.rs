//! Services of the operating system and the machine: files that appear whole, files of several parts, signals, memory that ends, threads that are
//! refused, locks that a fork leaves usable, the processor's features, the processors of a thread and Python packages beside us. Knows nothing of
//! kernels.
//!
//! In: nothing of ours but errors. Out: services that every other module uses.

pub mod allocator;
pub mod container;
pub mod cpus;
pub mod files;
pub mod machine;
pub mod packages;
pub mod signals;
pub mod sync;
pub mod threads;
