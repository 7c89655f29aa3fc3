//! `girih bench`: kernels against memcpy and NumPy, alternating in one run.

use crate::cli::BenchArgs;
use crate::failure::Failure;

pub fn run(_args: &BenchArgs) -> Result<(), Failure> {
    Ok(())
}
