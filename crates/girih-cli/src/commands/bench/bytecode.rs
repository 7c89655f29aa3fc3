//! How fast bytecode is read: a kernel as a front end writes it, from its bytes to a verified module, and thousands of
//! copies of it in one file, read alone.

use std::time::Instant;

use girih::Program;
use girih_compiler::cuda_tile::bytecode;
use serde_json::json;

use crate::commands::run::timing::duration;
use crate::failure::Failure;

/// A gather of 2022 bytes, with debug locations.
const KERNEL: &[u8] = include_bytes!("kernel_gathering.tileirbc");
const COPIES: usize = 4096;
/// Programs made from bytes in one measurement.
const REPEATS: u32 = 100;

/// Medians.
pub struct Bytecode {
    verified_s: f64,
    bytes_per_s: f64,
}

impl Bytecode {
    pub fn measure(rounds: u32) -> Result<Bytecode, Failure> {
        let large = many()?;
        let (mut verified, mut read) = (Vec::new(), Vec::new());
        for _ in 0..rounds.max(1) {
            let start = Instant::now();
            for _ in 0..REPEATS {
                std::hint::black_box(Program::from_bytes(KERNEL)?);
            }
            verified.push(start.elapsed().as_secs_f64() / f64::from(REPEATS));
            let start = Instant::now();
            let module = bytecode::read(&large).map_err(girih::Error::Program)?;
            read.push(start.elapsed().as_secs_f64());
            drop(module);
        }
        let bytes_per_s = large.len() as f64 / super::median(read);
        Ok(Bytecode { verified_s: super::median(verified), bytes_per_s })
    }

    pub fn show(&self) -> Result<(), Failure> {
        let name = format!("bytecode of {} bytes", KERNEL.len());
        let (time, rate) = (duration(self.verified_s), self.bytes_per_s / 1e6);
        outln!("{name:<22} {time:>10}  from bytes to a verified module; large files are read at {rate:.0} MB/s")
    }

    pub fn json(&self) -> serde_json::Value {
        json!({"name": "bytecode", "verified_s": self.verified_s, "read_mbytes_per_s": self.bytes_per_s / 1e6})
    }
}

/// A file of many copies of the kernel, under names of their own.
fn many() -> Result<Vec<u8>, Failure> {
    let read = bytecode::read(KERNEL).map_err(girih::Error::Program)?;
    let mut module = read.module;
    let kernel = module.funcs.pop();
    for i in 0..COPIES {
        module.funcs.extend(kernel.clone().map(|mut f| {
            f.name = format!("{}_{i}", f.name);
            f
        }));
    }
    Ok(bytecode::write(&module, read.version).map_err(girih::Error::Program)?)
}
