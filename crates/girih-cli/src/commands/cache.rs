//! `girih cache`: where compiled kernels are, removing them, and taking them to other machines.

use girih::cache::{Cache, default_dir};
use girih::cache_bundle;
use girih::options::CachePolicy;
use girih_compiler::base::{Code, Diagnostic};

use crate::cli::CacheAction;
use crate::failure::Failure;
use crate::render::{self, Source};

pub fn run(action: CacheAction) -> Result<(), Failure> {
    girih::cache::capacity().map_err(Failure::usage)?;
    let cache = Cache::open(default_dir().as_deref())?;
    if let Some(warning) = cache.warning().filter(|_| cache.is_private()) {
        girih::cache::take_warnings();
        render::one(&Source::default(), &Diagnostic::error(Code::CacheUnusable, warning));
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
        CacheAction::Export { file } => {
            let moved = cache_bundle::export(&cache, &CachePolicy::Default, &file)?;
            outln!("wrote {} to {}", counted(&moved), file.display())?;
        }
        CacheAction::Import { file } => {
            let cache_bundle::Imported { new, known, lacking } =
                cache_bundle::import(&cache, &CachePolicy::Default, &file)?;
            let known = if known == 0 { String::new() } else { format!("; {known} were here already") };
            outln!("imported {}{known}", counted(&new))?;
            if let Some((kernels, features)) = lacking {
                let what = if kernels == 1 { "kernel was" } else { "kernels were" };
                outln!("{kernels} {what} left out: compiled for a processor with {features}, which this one lacks")?;
            }
        }
        CacheAction::Clear => {
            cache.tidy();
            let removed = cache.clear()?;
            outln!("removed {} kernels, {:.1} MiB", removed.entries, mib(removed.bytes))?;
        }
    }
    Ok(())
}

/// `12 kernels and 1 schedule, 3.1 MiB`.
fn counted(moved: &cache_bundle::Moved) -> String {
    let some = |n: u64, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    format!("{} and {}, {:.1} MiB", some(moved.kernels, "kernel"), some(moved.schedules, "schedule"), mib(moved.bytes))
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
