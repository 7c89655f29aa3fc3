//! Kernels in Rust: the types and the functions that [`#[girih::kernel]`](crate::kernel) functions are written in.
//!
//! ```
//! use girih::lang::*;
//!
//! #[girih::kernel]
//! fn softmax(src: &[f32], dst: &mut [f32], columns: i32, #[constexpr] block: i32) {
//!     let row = program_id(0);
//!     let j = arange(0, block);
//!     let x = load_where(src + (row * columns + j), j < columns, f32::NEG_INFINITY);
//!     let e = exp(x - x.max(0).expand_dims(0));
//!     store_where(dst + (row * columns + j), e / e.sum(0).expand_dims(0), j < columns);
//! }
//!
//! let x = [1.0f32, 2.0, 3.0, 0.0, 0.0, 0.0];
//! let mut y = [0.0f32; 6];
//! softmax(&x, &mut y, 3, 4).launch([2])?;
//! assert_eq!(y[3..], [1.0 / 3.0; 3]);
//! # Ok::<(), girih::Error>(())
//! ```
//!
//! A kernel's values are *tiles*: [`Tile<T>`] is a scalar or an array of elements of `T`, whose extents are powers of two known when
//! the kernel is compiled. Inside of a kernel a parameter `&[T]` is the address of the first element, `Tile<Ptr<T>>`, a parameter
//! `&mut [T]` a `Tile<PtrMut<T>>`, which can be stored to as well, and a number of type `T` is a `Tile<T>`. A parameter marked
//! `#[constexpr]` is an ordinary value of Rust; the kernel is compiled once for each that comes.
//!
//! * **Operators** `+ - * / % & | ^ << >> ! -` and the comparisons work element by element, on tiles of one element type whose
//!   shapes broadcast, and with numbers of Rust on either side. Nothing is converted unasked: `x.to::<f32>()`. `/` of integers goes
//!   towards zero, as in Rust; integers wrap.
//! * **`if` and `while`** on a `Tile<bool>` with one element are decided when the kernel runs, on a `bool` of Rust when it is compiled.
//! * **`for i in range(a, b)`** is a loop of the kernel; `for` over anything else is unrolled.
//! * Variables keep their type, which rustc checks, and their shape in what they and loops change.
//! * `assert!(condition, "text")` and `println!("row {}", row)` happen when the kernel runs, unless the condition is a `bool`.
//! * A function that kernels call is marked [`#[girih::function]`](crate::function); one without comparisons, `if` and loops need not
//!   be.
//!
//! rustc reports wrong types and unsupported Rust, at their line. Wrong shapes are found when the constants are known: the first
//! launch returns [`Error::Program`](crate::Error) whose diagnostics show all errors of the kernel with their lines.

mod autotune;
mod blocks;
mod builder;
mod control;
mod element;
mod launch;
mod memory;
mod operators;
mod order;
mod print;
mod random;
mod reduce;
mod shapes;
mod special;
mod tile;

pub use autotune::Autotuner;
pub use blocks::{BlockPtr, Position, Positions, TensorDescriptor, make_block_ptr, make_tensor_descriptor};
#[doc(hidden)]
pub use control::{Branch, Condition, Counted, Each, Range, While, end_of_block};
pub use control::{Carried, Repeat, range, range_by};
pub use element::{Constant, Elem, Float, Integer, Number, Ptr, PtrMut, Word, bf16, f16};
pub use element::{F8E4M3, F8E5M2};
pub use launch::{Grid, Launch};
#[doc(hidden)]
pub use launch::{Made, Origin, Parameter, instance, parameter};
pub use memory::*;
pub use operators::*;
pub use print::{Printed, check, print};
pub use random::{rand, randint, randint4x, randn};
pub use reduce::*;
pub use shapes::*;
pub use special::{erf, gather, shared};
pub use tile::{Address, Operand, Tile};
