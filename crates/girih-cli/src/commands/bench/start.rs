//! How long a whole process takes: `girih run` on the example GEMM, compiled afresh and found in the cache.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use crate::commands::run::timing::duration;
use crate::failure::Failure;

const EXAMPLE: &str = include_str!("kernels/gemm.mlir");

/// Median seconds of a process without and with a cached object.
pub struct Start {
    cold: f64,
    cached: f64,
}

impl Start {
    pub fn measure(rounds: u32) -> Result<Start, Failure> {
        let dir = std::env::temp_dir().join(format!("girih-start-{}", std::process::id()));
        let measured = rounds_in(&dir, rounds);
        // Removes the folder after a failure too.
        let _ = std::fs::remove_dir_all(&dir);
        measured
    }

    pub fn show(&self) -> Result<(), Failure> {
        let (cold, cached) = (duration(self.cold), duration(self.cached));
        outln!("{:<22} {cold:>10}  from source to the first result; {cached} from the cache", "process, example gemm")
    }

    pub fn json(&self) -> serde_json::Value {
        json!({"name": "process, example gemm", "cold_s": self.cold, "cached_s": self.cached})
    }
}

fn rounds_in(dir: &Path, rounds: u32) -> Result<Start, Failure> {
    let failed = |what: &str| Failure::from(girih::Error::file(dir, what.to_string()));
    let (file, cache) = (dir.join("gemm.mlir"), dir.join("cache"));
    std::fs::create_dir_all(dir).map_err(|e| failed(&e.to_string()))?;
    std::fs::write(&file, EXAMPLE).map_err(|e| failed(&e.to_string()))?;
    let program = std::env::current_exe().map_err(|e| failed(&e.to_string()))?;
    let once = || {
        let mut command = Command::new(&program);
        command.arg("run").arg(&file).env("GIRIH_CACHE_DIR", &cache).stdout(Stdio::null());
        let start = Instant::now();
        match command.status() {
            Ok(status) if status.success() => Ok(start.elapsed().as_secs_f64()),
            Ok(status) => Err(failed(&format!("the measured process ended with {status}"))),
            Err(e) => Err(failed(&e.to_string())),
        }
    };
    let (mut cold, mut cached) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        let _ = std::fs::remove_dir_all(&cache);
        cold.push(once()?);
        cached.push(once()?);
    }
    Ok(Start { cold: super::median(cold), cached: super::median(cached) })
}
