//! Kernel IR: hardware primitives, one statement for each line of the printed source.
