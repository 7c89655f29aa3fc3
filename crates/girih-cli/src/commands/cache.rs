//! `girih cache`: where compiled kernels are, and removing them.

use girih::cache::{Cache, default_dir};
use girih_compiler::base::{Code, Diagnostic};

use crate::cli::CacheAction;
use crate::failure::Failure;
use crate::render::{self, Source};

pub fn run(action: CacheAction) -> Result<(), Failure> {
    let cache = Cache::open(default_dir().as_deref())?;
    if let Some(warning) = &cache.warning {
        render::one(&Source::default(), &Diagnostic::error(Code::CacheUnusable, warning.as_str()));
        return Err(Failure::Said(1));
    }
    match action {
        CacheAction::Info => {
            let usage = cache.usage();
            outln!("folder   {}", cache.dir().display())?;
            outln!("kernels  {}", usage.entries)?;
            outln!("size     {:.1} MiB", usage.bytes as f64 / f64::from(1 << 20))?;
        }
        CacheAction::Clear => {
            let removed = cache.clear()?;
            outln!("removed {} kernels, {:.1} MiB", removed.entries, removed.bytes as f64 / f64::from(1 << 20))?;
        }
    }
    Ok(())
}
