//! Tests of the stand-ins for NVIDIA's driver and assembler. One program, which is linked once.

mod driver;
mod runtime;
mod tileiras;
