//! Compile, inspect and launch tile kernels.
