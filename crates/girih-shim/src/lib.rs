//! `libcuda.so.1` where there is no GPU.
