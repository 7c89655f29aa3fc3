//! Files that appear whole or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A name beside `path` that no other process or thread uses.
pub fn temporary_beside(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let unique = format!(".tmp.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(unique);
    path.with_file_name(name)
}

/// Removes the file when dropped, unless it has been kept.
pub struct Temporary(Option<PathBuf>);

impl Temporary {
    pub fn new(path: PathBuf) -> Temporary {
        Temporary(Some(path))
    }
    /// Gives the finished file its name.
    pub fn rename(mut self, to: &Path) -> io::Result<()> {
        if let Some(from) = self.0.take()
            && let Err(error) = std::fs::rename(&from, to)
        {
            self.0 = Some(from);
            return Err(error);
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Writes `bytes` to a temporary name in the same folder, then renames it. Devices and pipes are written directly.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_parts(path, &[bytes])
}

/// As [`write_whole`], of several parts in order.
pub fn write_parts(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
        return parts.iter().try_for_each(|p| file.write_all(p));
    }
    let temporary = temporary_beside(path);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    let guard = Temporary::new(temporary);
    for part in parts {
        file.write_all(part)?;
    }
    file.flush()?;
    drop(file);
    guard.rename(path)
}
