//! Compiled kernels on disk, found again by the hash of everything that made them.
//!
//! ```text
//! $GIRIH_CACHE_DIR or $XDG_CACHE_HOME/girih or ~/.cache/girih
//!   v1/KEY/k.c     the source, its first comment the command that compiles it
//!          k.so    the shared object
//!          meta    the hash of k.so; its modification time is the entry's last use
//!          lock    held while an entry is built, so that two processes do not build it twice
//!   v1/cc-HASH     what a compiler answered about itself
//! ```
//! Invariants: the folder belongs to the user and nobody else may write in it (what lies there is executed); an entry's
//! files appear whole, by rename, `meta` last; an object is loaded only if its hash is the one in `meta`; an object that
//! was loaded is never rewritten in place. A cache that cannot be used costs speed, never a result: a private folder
//! takes its place for the life of the process.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use girih_compiler::base::Label;

use crate::abi::ABI_VERSION;
use crate::cc::Compiler;
use crate::error::{Error, Result};
use crate::files::{Temporary, temporary_beside, write_whole};
use crate::sync::{Built, FileLock};

/// Oldest entries go when the cache grows past this many bytes.
const CAPACITY: u64 = 1 << 30;

/// Where compiled kernels are kept.
#[derive(Debug)]
pub struct Cache {
    dir: PathBuf,
    /// Removed with the value.
    private: bool,
    /// Why the user's cache is not used.
    pub warning: Option<String>,
    capacity: u64,
    /// Takes what this one cannot, once writing here has failed.
    aside: Built<Arc<Cache>>,
    /// A failing source lies here: the private folder stays.
    keep: AtomicBool,
}

/// A built kernel on disk.
#[derive(Debug)]
pub struct Entry {
    pub source: PathBuf,
    pub object: PathBuf,
    /// Whether it was there already.
    pub cached: bool,
}

/// What `girih cache info` shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    pub entries: u64,
    pub bytes: u64,
}

/// The folder the environment asks for; `None` when not even a home is known.
pub fn default_dir() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("GIRIH_CACHE_DIR").or_else(|| {
        let base = set("XDG_CACHE_HOME").filter(|p| p.is_absolute());
        base.or_else(|| std::env::home_dir().map(|h| h.join(".cache"))).map(|b| b.join("girih"))
    })
}

impl Cache {
    /// Opens (and creates) the cache in `dir`; when that cannot be done safely, a private one, with a warning.
    pub fn open(dir: Option<&Path>) -> Result<Cache> {
        let Some(dir) = dir else {
            return Cache::private(Some("no cache folder is known (neither HOME nor GIRIH_CACHE_DIR is set)".into()));
        };
        let dir = dir.join("v1");
        match prepare(&dir) {
            Ok(()) => Ok(Cache::at(dir, false, None)),
            Err(reason) => Cache::private(Some(format!(
                "the cache {} is not used: {reason}; name a folder that can be written in GIRIH_CACHE_DIR",
                dir.display()
            ))),
        }
    }

    fn at(dir: PathBuf, private: bool, warning: Option<String>) -> Cache {
        Cache { dir, private, warning, capacity: CAPACITY, aside: Built::default(), keep: AtomicBool::new(false) }
    }

    /// A cache for this process alone, removed when dropped.
    pub fn private(warning: Option<String>) -> Result<Cache> {
        let base = std::env::temp_dir();
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700);
        for _ in 0..16 {
            let dir = temporary_beside(&base.join("girih"));
            match builder.create(&dir) {
                Ok(()) => return Ok(Cache::at(dir, true, warning)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(Error::file(dir, format!("a folder for compiled kernels cannot be made: {e}"))),
            }
        }
        Err(Error::file(base, "a folder for compiled kernels cannot be made"))
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The same cache holding at most about `bytes`.
    pub fn with_capacity(mut self, bytes: u64) -> Cache {
        self.capacity = bytes;
        self
    }

    /// The name of what `compiler` makes of `source`.
    pub fn key(source: &str, compiler: &Compiler) -> String {
        let mut hash = blake3::Hasher::new();
        hash.update(format!("{ABI_VERSION}\n{}\n", compiler.fingerprint()).as_bytes());
        hash.update(source.as_bytes());
        hash.finalize().to_hex().as_str()[..40].to_string()
    }

    /// The object compiled from `source`: from disk where it is whole, else compiled now.
    pub fn get_or_build(&self, source: &str, compiler: &Compiler) -> Result<Entry> {
        let dir = self.dir.join(Cache::key(source, compiler));
        if let Some(entry) = lookup(&dir) {
            return Ok(entry);
        }
        match self.build(&dir, source, compiler) {
            // A full or read-only disk: a private folder does, for the life of this value.
            Err(Error::File { .. }) if !self.private => {
                self.aside.get_or_make(|| Cache::private(None).map(Arc::new))?.get_or_build(source, compiler)
            }
            Err(error @ Error::Compiler { .. }) => {
                self.keep.store(true, Ordering::Relaxed);
                Err(error)
            }
            other => other,
        }
    }

    fn build(&self, dir: &Path, source: &str, compiler: &Compiler) -> Result<Entry> {
        let fail = |what: &str| {
            let what = what.to_string();
            let dir = dir.to_path_buf();
            move |e: io::Error| Error::file(dir, format!("{what}: {e}"))
        };
        fs::DirBuilder::new().mode(0o700).recursive(true).create(dir).map_err(fail("cannot be made"))?;
        // Some network file systems know no locks; the work is then done twice, which harms nothing.
        let lock = FileLock::take(File::create(dir.join("lock")).map_err(fail("cannot be locked"))?)?;
        if let Some(entry) = lookup(dir) {
            return Ok(entry);
        }
        let _cooperative = crate::signals::Cooperative::enter();
        let (c, so, meta) = (dir.join("k.c"), dir.join("k.so"), dir.join("meta"));
        let command = compiler.command_line(Path::new("k.c"), Path::new("k.so"));
        let text = format!("// {}\n{source}", Label::whole(&command));
        write_whole(&c, text.as_bytes()).map_err(fail("the C source cannot be written"))?;
        let object = temporary_beside(&so);
        let guard = Temporary::new(object.clone());
        if let Err(error) = compiler.compile(&c, &object) {
            if matches!(error, Error::Interrupted) {
                let _ = fs::remove_dir_all(dir);
            }
            return Err(error);
        }
        let bytes = fs::read(&object).map_err(fail("the compiled kernel cannot be read"))?;
        File::open(&object).and_then(|f| f.sync_data()).map_err(fail("the compiled kernel cannot be stored"))?;
        // An older object under this name may be loaded in some process: it keeps its inode.
        guard.rename(&so).map_err(fail("the compiled kernel cannot be stored"))?;
        let hash = blake3::hash(&bytes).to_hex();
        write_whole(&meta, format!("{hash}\n").as_bytes()).map_err(fail("cannot be written"))?;
        drop(lock);
        if !self.private {
            self.shrink(dir);
        }
        Ok(Entry { source: c, object: so, cached: false })
    }

    /// Entries by last use, oldest first, with their sizes.
    fn entries(&self) -> Vec<(SystemTime, PathBuf, u64)> {
        let mut found = Vec::new();
        for item in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let path = item.path();
            if !path.is_dir() {
                continue;
            }
            let files = fs::read_dir(&path).into_iter().flatten().flatten();
            let size = files.filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum();
            let used = fs::metadata(path.join("meta")).or_else(|_| fs::metadata(&path)).and_then(|m| m.modified());
            found.push((used.unwrap_or(SystemTime::UNIX_EPOCH), path, size));
        }
        found.sort();
        found
    }

    pub fn usage(&self) -> Usage {
        let entries = self.entries();
        Usage { entries: entries.len() as u64, bytes: entries.iter().map(|e| e.2).sum() }
    }

    /// Removes every entry that is not being built right now; returns what was removed.
    pub fn clear(&self) -> Result<Usage> {
        let mut removed = Usage::default();
        for (_, path, size) in self.entries() {
            if remove(&path) {
                removed.entries += 1;
                removed.bytes += size;
            }
        }
        for item in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            if item.file_name().to_string_lossy().starts_with("cc-") {
                let _ = fs::remove_file(item.path());
            }
        }
        Ok(removed)
    }

    fn shrink(&self, keep: &Path) {
        let entries = self.entries();
        let mut total: u64 = entries.iter().map(|e| e.2).sum();
        for (_, path, size) in entries {
            if total <= self.capacity {
                break;
            }
            if path != keep && remove(&path) {
                total -= size;
            }
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        if self.private && !self.keep.load(Ordering::Relaxed) {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Removes an entry unless somebody is building it.
fn remove(dir: &Path) -> bool {
    let lock = File::open(dir.join("lock"));
    if let Ok(lock) = &lock
        && matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock))
    {
        return false;
    }
    // `meta` first: without it the rest is no entry.
    let _ = fs::remove_file(dir.join("meta"));
    fs::remove_dir_all(dir).is_ok()
}

/// The entry in `dir`, if it is whole.
fn lookup(dir: &Path) -> Option<Entry> {
    let (c, so, meta) = (dir.join("k.c"), dir.join("k.so"), dir.join("meta"));
    let want = fs::read_to_string(&meta).ok()?;
    let bytes = fs::read(&so).ok()?;
    if blake3::hash(&bytes).to_hex().as_str() != want.trim_end() {
        let _ = fs::remove_file(&meta);
        return None;
    }
    // Last use, for the order in which entries go; a read-only cache forgets it.
    let _ = File::options().write(true).open(&meta).and_then(|f| f.set_modified(SystemTime::now()));
    Some(Entry { source: c, object: so, cached: true })
}

/// Makes the folder, and refuses one in which somebody else could have put an object.
fn prepare(dir: &Path) -> std::result::Result<(), String> {
    fs::DirBuilder::new().mode(0o700).recursive(true).create(dir).map_err(|e| e.to_string())?;
    let meta = fs::metadata(dir).map_err(|e| e.to_string())?;
    // SAFETY: `geteuid` has no preconditions.
    let user = unsafe { libc::geteuid() };
    if meta.uid() != user {
        return Err("it belongs to another user".to_string());
    }
    if meta.permissions().mode() & 0o022 != 0 {
        return Err("other users may write in it (`chmod go-w` it)".to_string());
    }
    let probe = temporary_beside(&dir.join("probe"));
    if meta.permissions().mode() & 0o200 == 0 || File::create(&probe).is_err() {
        return Err("it cannot be written".to_string());
    }
    let _ = fs::remove_file(probe);
    Ok(())
}
