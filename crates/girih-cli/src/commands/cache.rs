//! `girih cache`: where compiled kernels are, and removing them.

use girih::cache::{Cache, default_dir};
use girih_compiler::base::{Code, Diagnostic};

use crate::cli::CacheAction;
use crate::failure::Failure;
use crate::render::{self, Source};

pub fn run(action: CacheAction) -> Result<(), Failure> {
    girih::cache::capacity().map_err(Failure::usage)?;
    let cache = Cache::open(default_dir().as_deref())?;
    if let Some(warning) = &cache.warning {
        render::one(&Source::default(), &Diagnostic::error(Code::CacheUnusable, warning.as_str()));
        return Err(Failure::Said(1));
    }
    match action {
        CacheAction::Info => {
            cache.tidy();
            let usage = cache.usage();
            outln!("folder   {}", cache.dir().display())?;
            outln!("kernels  {}", usage.entries)?;
            outln!("size     {:.1} MiB of at most {} (GIRIH_CACHE_SIZE)", mib(usage.bytes), limit(cache.capacity()))?;
        }
        CacheAction::Clear => {
            cache.tidy();
            let removed = cache.clear()?;
            outln!("removed {} kernels, {:.1} MiB", removed.entries, mib(removed.bytes))?;
        }
    }
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// A whole number of MiB as such.
fn limit(bytes: u64) -> String {
    match bytes % (1 << 20) {
        0 => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} MiB", mib(bytes)),
    }
}
