//! Compile, inspect and launch tile kernels.
//!
//! In: a tile program as text, and slices or [`Buffer`]s. Out: the results in those, every stage of the compilation as
//! text, or a typed [`Error`].
//!
//! ```
//! use girih::{Arg, Options, Program, Stage};
//!
//! let program = Program::from_text(
//!     "cuda_tile.module @m {
//!        entry @double(%x: tile<ptr<f32>>, %y: tile<ptr<f32>>) {
//!          %block, %by, %bz = get_tile_block_id : tile<i32>
//!          %xs = make_tensor_view %x, shape = [1024], strides = [1] : tensor_view<1024xf32, strides=[1]>
//!          %ys = make_tensor_view %y, shape = [1024], strides = [1] : tensor_view<1024xf32, strides=[1]>
//!          %xt = make_partition_view %xs : partition_view<tile=(128), tensor_view<1024xf32, strides=[1]>>
//!          %yt = make_partition_view %ys : partition_view<tile=(128), tensor_view<1024xf32, strides=[1]>>
//!          %a, %t0 = load_view_tko weak %xt[%block]
//!            : partition_view<tile=(128), tensor_view<1024xf32, strides=[1]>>, tile<i32> -> tile<128xf32>, token
//!          %b = addf %a, %a : tile<128xf32>
//!          %t1 = store_view_tko weak %b, %yt[%block]
//!            : tile<128xf32>, partition_view<tile=(128), tensor_view<1024xf32, strides=[1]>>, tile<i32> -> token
//!        }
//!      }",
//! )?;
//! let kernel = program.entry("double")?;
//!
//! // Eight blocks of 128 elements, on every core.
//! let x: Vec<f32> = (0..1024).map(|i| i as f32).collect();
//! let mut y = vec![0f32; 1024];
//! kernel.launch([8, 1, 1], &mut [Arg::from(&x[..]), Arg::from(&mut y[..])])?;
//! assert_eq!(y[1000], 2000.0);
//!
//! // What it was compiled to.
//! assert!(kernel.ir(Stage::Loop)?.contains("for"));
//! assert!(kernel.ir(Stage::C)?.contains("girih_0"));
//!
//! // The same with every access checked: a slice that is too short is an error, not a crash.
//! let checked = program.entry("double")?.with_options(Options::default().check(true));
//! let mut short = vec![0f32; 100];
//! let error = checked.launch([8, 1, 1], &mut [Arg::from(&x[..]), Arg::from(&mut short[..])]).unwrap_err();
//! assert!(error.to_string().contains("`y`"));
//! # Ok::<(), girih::Error>(())
//! ```
//!
//! Kernels are also written as functions of Rust: [`lang`].
//!
//! [`Options`] also chooses the reference evaluator, the number of threads, knobs, the cache and the C compiler.
//!
//! Below the surface are rooms, from the bottom up: `system` (files, signals, locks, the machine), `memory` (arrays and
//! arguments), `compile` (from C to loaded code), `launch` (a kernel's blocks over threads) and `model` (plans of many
//! kernels), `build` writes them as libraries, `lang` is the language of kernels in Rust, and `tune` keeps schedules that were found by trying. Modules of these that the command line and the tests use are public but hidden: they may change at any time.

#[doc(hidden)]
pub mod build;
mod compile;
#[doc(hidden)]
pub mod cuda;
mod error;
mod kernel_ir;
pub mod lang;
mod launch;
mod memory;
pub mod model;
#[doc(hidden)]
pub mod cache_bundle;
#[doc(hidden)]
pub mod options;
mod program;
mod system;
#[doc(hidden)]
pub mod tune;

#[doc(hidden)]
pub use compile::{cache, cc, module, observe, progress, widen};
#[doc(hidden)]
pub use girih_compiler::num::values;
pub use girih_compiler::spec;
pub use launch::blocks;
#[doc(hidden)]
pub use launch::work;
#[doc(hidden)]
pub use memory::{pages, regions};
#[doc(hidden)]
pub use system::{allocator, files, machine, sync, threads};

/// The crate under its own name, for the code of `#[girih::kernel]` in the crate's own tests and documentation.
extern crate self as girih;

pub use compile::inspect::Inspect;
pub use error::{Error, Result};
pub use girih_compiler::base::launch::Trap;
pub use girih_compiler::base::{Code, Diagnostic};
pub use girih_compiler::explain;
pub use girih_compiler::loops::launch_facts::Traffic;
pub use girih_compiler::num::DType;
pub use girih_compiler::pipeline::Stage;
pub use girih_macros::{function, kernel};

pub use girih_compiler::kernel::sim;
pub use kernel_ir::KernelIr;
pub use launch::prepared::{Compiled, Prepared, Report};
pub use launch::simulate::Simulated;
pub use memory::args::{Arg, Param, ParamKind, RawArgs, Reached};
pub use memory::buffer::{Buffer, Element, Fill};
pub use memory::float8::{F8E4M3, F8E5M2};
pub use memory::npy;
pub use options::{CachePolicy, Device, Options, PrintOrder, Printer, Watcher};
pub use program::{Kernel, Program};
#[doc(hidden)]
pub use system::signals::{Cooperative, Registered, interrupt_code};
pub use system::signals::{Passing, attentive, install_interrupt_handler, interrupted, stop_launch};

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The doctests of the page on kernels in Rust.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Kernels;
