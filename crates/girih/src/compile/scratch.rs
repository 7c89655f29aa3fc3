//! Folders for the temporary files of programs that this one starts.
//!
//! A C compiler that is killed leaves its files; so each run of it has a folder of its own, which goes with the run. Who
//! makes a folder holds a lock on it while it lives: a folder that no living process holds, because its owner was killed,
//! is removed by the next process that makes one.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::system::files::{in_temporary_folder, is_stale, temporary_beside, temporary_folders};

/// Such a folder's name is this, then `.tmp.PROCESS.NUMBER`.
const NAME: &str = "girih-cc";

/// A folder that is removed with the value.
pub(crate) struct Scratch {
    dir: PathBuf,
    _owned: File,
}

impl Scratch {
    pub fn new() -> io::Result<Scratch> {
        static SWEPT: AtomicBool = AtomicBool::new(false);
        if !SWEPT.swap(true, Ordering::Relaxed) {
            temporary_folders().for_each(|base| sweep(&base));
        }
        in_temporary_folder(Scratch::within)
    }

    fn within(base: &Path) -> io::Result<Scratch> {
        loop {
            let dir = temporary_beside(&base.join(NAME));
            match fs::DirBuilder::new().mode(0o700).create(&dir) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            let owned = File::open(&dir)?;
            // Where locks are unknown, the owner's number must do.
            let _ = owned.try_lock();
            return Ok(Scratch { dir, _owned: owned });
        }
    }

    pub fn path(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A killed process may still be ending: files that it adds meanwhile are removed too.
        for _ in 0..8 {
            match fs::remove_dir_all(&self.dir) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => std::thread::yield_now(),
                _ => break,
            }
        }
    }
}

/// Removes the folders of this user's processes that are gone.
fn sweep(base: &Path) {
    // SAFETY: `geteuid` has no preconditions.
    let user = unsafe { libc::geteuid() };
    for item in fs::read_dir(base).into_iter().flatten().flatten() {
        let (name, path) = (item.file_name(), item.path());
        let gone =
            name.to_str().is_some_and(|n| n.strip_prefix(NAME).is_some_and(|n| n.starts_with(".tmp.")) && is_stale(n));
        let ours = fs::symlink_metadata(&path).is_ok_and(|m| m.is_dir() && m.uid() == user);
        if !ours || !gone {
            continue;
        }
        // A process of another container has a number that means nothing here; its lock does.
        if File::open(&path).is_ok_and(|folder| folder.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_processes_that_are_gone_are_removed_and_no_others() {
        let base = temporary_beside(&std::env::temp_dir().join("girih-scratch-test"));
        fs::create_dir(&base).unwrap();
        // A process that has ended, and was waited for, has no number any more.
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        let number = gone.id();
        gone.wait().unwrap();
        let left = base.join(format!("{NAME}.tmp.{number}.0"));
        let held = base.join(format!("{NAME}.tmp.{number}.1"));
        let (other, file) = (base.join("other.tmp.1.0"), base.join(format!("{NAME}.tmp.{number}.2")));
        for dir in [&left, &held, &other] {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join("k.s"), "text").unwrap();
        }
        fs::write(&file, "no folder").unwrap();
        let lock = File::open(&held).unwrap();
        lock.try_lock().unwrap();
        let mine = Scratch::within(&base).unwrap();
        fs::write(mine.path().join("k.o"), "text").unwrap();
        sweep(&base);
        assert!(!left.exists());
        assert!(held.exists() && other.exists() && file.exists() && mine.path().join("k.o").exists());
        drop(lock);
        sweep(&base);
        assert!(!held.exists());
        let path = mine.path().to_path_buf();
        drop(mine);
        assert!(!path.exists());
        fs::remove_dir_all(&base).unwrap();
    }
}
