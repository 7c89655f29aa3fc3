//! `libcuda.so.1` where there is no GPU: the driver functions that NVIDIA's front ends for tile programs call, executed
//! by Girih on the CPU.
//!
//! In: calls of the driver's C interface, programs as bytecode, text or in the container that `tileiras` writes. Out:
//! results in the caller's memory, the driver's error codes, and the details of failures through `girih_shim_*` (the
//! crate's README has their C declarations).
//!
//! ```text
//! cuLibraryLoadData ─► container ─► girih::Program
//! cuLibraryGetKernel ─► mangle: what the name says of the arguments
//! cuLaunchKernel ─► launch: values, extents, assumptions ─► girih::Kernel::launch_raw
//! ```
//!
//! Invariants:
//! * Work has finished when the call that submits it returns: every stream is in order, every event has happened.
//! * What a caller may get wrong without lying about memory (null results, stale or foreign handles, a second free) is an
//!   error code. No panic leaves the library.
//! * A failed launch is that launch's error and nothing else's: contexts stay usable.
//! * Nothing is computed when the library is loaded, and no thread starts before the first launch that wants one.

#![allow(non_snake_case)]

pub mod assemble;
pub mod container;
pub mod failure;

pub mod codes;
mod context;
mod extra;
mod ffi;
mod graph;
mod handles;
mod host;
mod launch;
mod mangle;
mod memory;
mod module;
mod options;
mod simt;
mod stream;
mod table;

/// Declares functions of the C interface by their bodies, which return a [`failure::Result`].
macro_rules! driver {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $ty),*) -> $crate::codes::Code {
            $crate::failure::call(stringify!($name), || $body)
        }
    )*};
}
use driver;
