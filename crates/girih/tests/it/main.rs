//! Tests of the library, as a program that depends on it sees it. One program, which is linked once; `forks` and `gpu_mutants` are others:
//! a fork wants to know which threads run, and the mutants are run with optimisation.

mod by_hand;
mod calling;
mod cuda_compile;
mod cuda_kernels;
mod cuda_scalar;
mod folder;
mod gpu_programs;
mod kernel_errors;
mod kernel_files;
mod kernel_loops;
mod kernel_ops;
mod launch;
mod measured;
mod native;
mod oclgrind;
mod opencl;
mod promises;
mod rust_kernels;
mod saved;
mod scalar_cases;
mod stop_after;
mod threads;
mod tiles;
