//! Compiled kernels on disk, found again by the hash of everything that made them.
//!
//! ```text
//! $GIRIH_CACHE_DIR or $XDG_CACHE_HOME/girih or ~/.cache/girih
//!   v1/KEY/k.c     the source, its first comment the command that compiles it
//!          k.so    the shared object; or k.bytes, the machine code of a GPU
//!          meta    the hash of k.so; its modification time is the entry's last use
//!          lock    held while an entry is built, so that two processes do not build it twice
//!   v1/KEY/...     the same of what `girih cache import` brought; KEY then says what source it is, not what compiled it
//!   v1/limits-HASH what this machine was measured to do
//!   v1/cc-HASH     what a compiler answered about itself
//! ```
//! Invariants: the folder belongs to the user and nobody else may write in it (its files are executed); an entry's
//! files appear whole, by rename, `meta` last; an object is loaded only if its hash is the one in `meta`; an object that
//! was loaded is never rewritten in place. A cache that cannot be used costs speed, never a result: a private folder
//! takes its place for the life of the process. Anything but a regular file in a file's place (a pipe, a folder, a loop of
//! links) counts as damage and is replaced.
//!
//! The cache stays within [`capacity`]: after a build the entries used longest ago are removed, except those under
//! construction, and so are files that killed processes left. An object that another process has loaded stays mapped;
//! one that it has only found is compiled again.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use girih_compiler::base::Label;

use crate::compile::abi::ABI_VERSION;
use crate::compile::cc::Compiler;
use crate::error::{Error, Result};
use crate::system::files::{
    Temporary, in_temporary_folder, is_noexec, is_stale, open_regular, read_regular, remove_any, replace,
    temporary_beside,
};
use crate::system::machine;
use crate::system::sync::{Brief, Built, FileLock};

/// Bytes of an entry's hash.
const META: usize = 65;

/// Entries go when the cache grows past this many bytes, unless GIRIH_CACHE_SIZE says otherwise.
pub const CAPACITY: u64 = 1 << 30;
/// Files that a killed process left outside an entry are removed at this age; processes of other machines, which may
/// use the folder too, cannot be asked.
const STALE: Duration = Duration::from_secs(3600);
/// Messages of programs for which a file has no room.
const FULL: [&str; 3] = ["No space left on device", "Disk quota exceeded", "File too large"];
/// How often an entry's folder is made again that somebody else removes.
const ATTEMPTS: usize = 16;

/// Where compiled kernels are kept.
#[derive(Debug)]
pub struct Cache {
    dir: PathBuf,
    /// Removed with the value.
    private: bool,
    /// Why the user's cache is not used, or not as it should be.
    warning: Brief<Option<String>>,
    capacity: u64,
    /// Bytes that this process may add before it looks again how full the cache is; `None` before it has looked.
    room: Mutex<Option<u64>>,
    /// The fallback cache, once writing here has failed.
    aside: Built<Arc<Cache>>,
    /// A failing source lies here: the private folder stays.
    keep: AtomicBool,
}

/// A built kernel on disk.
#[derive(Debug)]
pub struct Entry {
    pub source: PathBuf,
    pub object: PathBuf,
    /// True if it was in the cache already.
    pub cached: bool,
    /// True if another machine compiled it.
    pub brought: bool,
    /// The hash of the object's bytes.
    pub hash: [u8; 32],
}

/// An entry as it is taken to other machines.
#[derive(Debug)]
pub enum Content {
    /// C with the command as its first line, and the object.
    Kernel { source: String, object: Vec<u8> },
    /// Machine code of a GPU.
    Bytes { key: String, bytes: Vec<u8> },
}

/// The name of an entry that any compiler may have made of a source.
fn brought_key(source: &str) -> String {
    let text = format!("brought\n{ABI_VERSION}\n{source}");
    blake3::hash(text.as_bytes()).to_hex().as_str()[..40].to_string()
}

/// The CPU features that the command in a source's first line compiles for and this processor lacks.
pub fn lacking(source: &str) -> Vec<String> {
    let here = machine::features();
    let command = source.lines().next().unwrap_or_default().split_whitespace();
    // A user's own `-march=native` does not name the features.
    let wanted = command.filter_map(|word| word.strip_prefix("-m")).filter(|f| !f.starts_with("prefer-vector-width"));
    wanted.filter(|f| !here.contains(f)).map(String::from).collect()
}

/// The bytes of a note of Python's beside the cache, such as a choice of `girih.autotune`; `None` where there is none that is an
/// ordinary file, or where others may write.
pub fn read_note(name: &Path) -> Option<Vec<u8>> {
    let dir = default_dir()?;
    secure(&dir).ok()?;
    read_regular(&dir.join(name)).ok()
}

/// Keeps a note, which appears whole or not at all. Where it cannot be kept, a warning says so once.
pub fn keep_note(name: &Path, bytes: &[u8]) {
    let Some(dir) = default_dir() else { return };
    let path = dir.join(name);
    let kept = fs::DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(path.parent().unwrap_or(&dir))
        .map_err(|e| e.to_string())
        .and_then(|()| secure(&dir))
        .and_then(|_| replace(&path, bytes).map_err(|e| e.to_string()));
    if let Err(why) = kept {
        tell(&format!("{} cannot be kept: {why}; make room or name another folder in GIRIH_CACHE_DIR", path.display()));
    }
}

/// The numbers that `girih cache info` shows.
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

/// How many bytes the cache may hold: `GIRIH_CACHE_SIZE`, or [`CAPACITY`].
pub fn capacity() -> std::result::Result<u64, String> {
    match std::env::var("GIRIH_CACHE_SIZE").ok().filter(|v| !v.is_empty()) {
        Some(text) => crate::options::bytes(&text).map_err(|e| format!("GIRIH_CACHE_SIZE: {e}")),
        None => Ok(CAPACITY),
    }
}

impl Cache {
    /// Opens (and creates) the cache in `dir`; when that cannot be done safely, a private one, with a warning.
    pub fn open(dir: Option<&Path>) -> Result<Cache> {
        let Some(dir) = dir else {
            return Cache::private(Some("no cache folder is known (neither HOME nor GIRIH_CACHE_DIR is set)".into()));
        };
        let dir = dir.join("v1");
        match prepare(&dir) {
            Ok(()) => {
                let copied = is_noexec(&dir).then(|| {
                    format!(
                        "the cache {} is on a file system that is mounted noexec: compiled kernels are loaded from copies; name a \
                         folder elsewhere in GIRIH_CACHE_DIR",
                        dir.display()
                    )
                });
                Ok(Cache::at(dir, false, copied))
            }
            Err(reason) => Cache::private(Some(format!(
                "the cache {} is not used: {reason}; name a folder that can be written in GIRIH_CACHE_DIR",
                dir.display()
            ))),
        }
    }

    fn at(dir: PathBuf, private: bool, warning: Option<String>) -> Cache {
        // A variable that makes no sense was refused where options are read.
        let capacity = capacity().unwrap_or(CAPACITY);
        if let Some(warning) = &warning {
            tell(warning);
        }
        let warning = Brief::new(warning);
        Cache {
            dir,
            private,
            warning,
            capacity,
            room: Mutex::default(),
            aside: Built::default(),
            keep: AtomicBool::new(false),
        }
    }

    /// A cache for this process alone, removed when dropped.
    pub fn private(warning: Option<String>) -> Result<Cache> {
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700);
        let made = in_temporary_folder(|base| {
            remove_stale(base, |name| name.starts_with("girih.tmp."));
            loop {
                let dir = temporary_beside(&base.join("girih"));
                match builder.create(&dir) {
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                    made => return made.map(|()| dir),
                }
            }
        });
        match made {
            Ok(dir) => Ok(Cache::at(dir, true, warning)),
            Err(e) => {
                Err(Error::file(std::env::temp_dir(), format!("a folder for compiled kernels cannot be made: {e}")))
            }
        }
    }

    /// Why the cache that was asked for is not used, or not as it should be.
    pub fn warning(&self) -> Option<String> {
        self.warning.lock().clone()
    }

    /// Notes that something could not be kept.
    fn cannot_keep(&self, error: &Error) {
        let mut warning = self.warning.lock();
        if warning.is_none() {
            let text =
                format!("the cache keeps nothing new: {error}; make room or name another folder in GIRIH_CACHE_DIR");
            *warning = Some(text.clone());
            drop(warning);
            tell(&text);
        }
    }

    /// Returns true if this folder, for this process alone, replaces the one that was asked for.
    pub fn is_private(&self) -> bool {
        self.private
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// How many bytes it may hold.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The same cache holding at most about `bytes`.
    pub fn with_capacity(mut self, bytes: u64) -> Cache {
        self.room = Mutex::default();
        self.capacity = bytes;
        self
    }

    /// The name of the object that `compiler` makes of `source`.
    pub fn key(source: &str, compiler: &Compiler) -> String {
        let mut hash = blake3::Hasher::new();
        hash.update(format!("{ABI_VERSION}\n{}\n", compiler.fingerprint()).as_bytes());
        hash.update(source.as_bytes());
        hash.finalize().to_hex().as_str()[..40].to_string()
    }

    /// The object compiled from `source`, by any compiler if it was imported, else by `compiler`.
    pub fn find_or_build<'c>(&self, source: &str, compiler: impl FnOnce() -> Result<&'c Compiler>) -> Result<Entry> {
        match self.find_brought(source) {
            Some(entry) => Ok(entry),
            None => self.get_or_build(source, compiler()?),
        }
    }

    /// The imported object for `source`, if this processor has the features it was compiled for.
    fn find_brought(&self, source: &str) -> Option<Entry> {
        let dir = self.dir.join(brought_key(source));
        // Most often there is none.
        let text = String::from_utf8(read_regular(&dir.join("k.c")).ok()?).ok()?;
        let fits = lacking(&text).is_empty();
        lookup(&dir).filter(|_| fits).map(|entry| Entry { brought: true, ..entry })
    }

    /// Keeps an object that another machine compiled of a source, whose first line is the command; false where it is there already.
    pub fn bring(&self, source: &str, object: &[u8]) -> Result<bool> {
        let (_, text) = source.split_once('\n').unwrap_or_default();
        let dir = self.dir.join(brought_key(text));
        let fail = |e: io::Error| Error::file(&dir, format!("cannot be written: {e}"));
        let _lock = lock(&dir, fail)?;
        if lookup(&dir).is_some() {
            return Ok(false);
        }
        let (c, so, meta) = (dir.join("k.c"), dir.join("k.so"), dir.join("meta"));
        let hash = blake3::hash(object).to_hex();
        let written = replace(&c, source.as_bytes())
            .and_then(|()| replace(&so, object))
            .and_then(|()| replace(&meta, format!("{hash}\n").as_bytes()));
        match written {
            Ok(()) => Ok(true),
            Err(error) => {
                let _ = fs::remove_dir_all(&dir);
                Err(fail(error))
            }
        }
    }

    /// Keeps machine code of a GPU under the key it had; false where it is there already.
    pub fn bring_bytes(&self, key: &str, bytes: &[u8]) -> Result<bool> {
        let dir = self.dir.join(key);
        let fail = |e: io::Error| Error::file(&dir, format!("cannot be written: {e}"));
        let _lock = lock(&dir, fail)?;
        let (file, meta) = (dir.join("k.bytes"), dir.join("meta"));
        if whole(&file, &meta).is_some() {
            return Ok(false);
        }
        let hash = blake3::hash(bytes).to_hex();
        replace(&file, bytes).and_then(|()| replace(&meta, format!("{hash}\n").as_bytes())).map_err(fail)?;
        Ok(true)
    }

    /// The whole entries, which can be taken to another machine, in the order of the keys.
    pub fn contents(&self) -> Vec<Content> {
        let mut dirs: Vec<PathBuf> = self.entries().into_iter().map(|e| e.1).collect();
        dirs.sort();
        let one = |dir: PathBuf| {
            let (c, meta) = (dir.join("k.c"), dir.join("meta"));
            if let Some(bytes) = whole(&dir.join("k.bytes"), &meta) {
                return Some(Content::Bytes { key: dir.file_name()?.to_str()?.to_string(), bytes });
            }
            let object = whole(&dir.join("k.so"), &meta)?;
            Some(Content::Kernel { source: String::from_utf8(read_regular(&c).ok()?).ok()?, object })
        };
        dirs.into_iter().filter_map(one).collect()
    }

    /// Removes entries beyond the cache's capacity.
    pub fn fit(&self) {
        if !self.private {
            self.tidy();
            self.shrink(Path::new(""));
        }
    }

    /// The object compiled from `source`: from disk where it is whole, else compiled now.
    pub fn get_or_build(&self, source: &str, compiler: &Compiler) -> Result<Entry> {
        let dir = self.dir.join(Cache::key(source, compiler));
        if let Some(entry) = lookup(&dir) {
            return Ok(entry);
        }
        match self.build(&dir, source, compiler) {
            // A full or read-only disk: a private folder does, for the life of this value.
            Err(error @ Error::File { .. }) if !self.private => {
                let aside = self.aside.get_or_make(|| Cache::private(None).map(Arc::new))?;
                let built = aside.get_or_build(source, compiler)?;
                self.cannot_keep(&error);
                Ok(built)
            }
            Err(error @ Error::Compiler { .. }) => {
                self.keep.store(true, Ordering::Relaxed);
                Err(error)
            }
            other => other,
        }
    }

    /// The bytes that `make` produces from `of`, a text that names everything they depend on: from disk where the entry is whole,
    /// else made now. A cache that cannot be written keeps nothing.
    pub fn bytes(&self, of: &str, make: impl FnOnce() -> Result<Vec<u8>>) -> Result<Vec<u8>> {
        let dir = self.dir.join(&blake3::hash(of.as_bytes()).to_hex().as_str()[..40]);
        let (file, meta) = (dir.join("k.bytes"), dir.join("meta"));
        let find = || whole(&file, &meta);
        if let Some(bytes) = find() {
            return Ok(bytes);
        }
        let lock = lock(&dir, |e| Error::file(&dir, format!("cannot be locked: {e}")));
        if let Err(error) = &lock {
            self.cannot_keep(error);
        }
        if let Some(bytes) = find().filter(|_| lock.is_ok()) {
            return Ok(bytes);
        }
        let bytes = make()?;
        if lock.is_ok() {
            let hash = blake3::hash(&bytes).to_hex();
            let kept = replace(&file, &bytes).and_then(|()| replace(&meta, format!("{hash}\n").as_bytes()));
            drop(lock);
            match kept {
                Ok(()) => self.added(&dir, (bytes.len() + META) as u64),
                Err(e) => self.cannot_keep(&Error::file(&dir, format!("cannot be written: {e}"))),
            }
        }
        Ok(bytes)
    }

    fn build(&self, dir: &Path, source: &str, compiler: &Compiler) -> Result<Entry> {
        let fail = |what: &str| {
            let what = what.to_string();
            let dir = dir.to_path_buf();
            move |e: io::Error| Error::file(dir, format!("{what}: {e}"))
        };
        let lock = lock(dir, fail("cannot be locked"))?;
        if let Some(entry) = lookup(dir) {
            return Ok(entry);
        }
        // Temporary files are made under the lock, so the process that made these has ended. Without locks it may still be at work.
        for name in names(dir).filter(|name| name.contains(".tmp.") && lock.is_real()) {
            let _ = remove_any(&dir.join(name));
        }
        let _compiling = crate::system::signals::Compiling::enter();
        let (c, so, meta) = (dir.join("k.c"), dir.join("k.so"), dir.join("meta"));
        let command = compiler.command_line(Path::new("k.c"), Path::new("k.so"));
        let text = format!("// {}\n{source}", Label::whole(&command));
        replace(&c, text.as_bytes()).map_err(fail("the C source cannot be written"))?;
        let object = temporary_beside(&so);
        let guard = Temporary::new(object.clone());
        if let Err(error) = compiler.compile(&c, &object) {
            return Err(match error {
                Error::Interrupted => {
                    let _ = fs::remove_dir_all(dir);
                    Error::Interrupted
                }
                // The linker met a full disk, or a user's share of it; a private folder may lie on another one.
                error if let Some(why) = FULL.into_iter().find(|why| error.to_string().contains(why)) => {
                    Error::file(dir, format!("the compiled kernel cannot be written: {why}"))
                }
                // Perhaps another machine removed the entry meanwhile: an error in the source would recur in a private folder.
                error if !lock.is_real() => Error::file(dir, error),
                error => error,
            });
        }
        let bytes = read_regular(&object).map_err(fail("the compiled kernel cannot be read"))?;
        File::open(&object).and_then(|f| f.sync_data()).map_err(fail("the compiled kernel cannot be stored"))?;
        if so.is_dir() {
            remove_any(&so).map_err(fail("the compiled kernel cannot be stored"))?;
        }
        // An older object under this name may be loaded in some process: it keeps its inode.
        guard.rename(&so).map_err(fail("the compiled kernel cannot be stored"))?;
        let hash = blake3::hash(&bytes);
        replace(&meta, format!("{}\n", hash.to_hex()).as_bytes()).map_err(fail("cannot be written"))?;
        drop(lock);
        self.added(dir, (text.len() + bytes.len() + META) as u64);
        Ok(Entry { source: c, object: so, cached: false, brought: false, hash: *hash.as_bytes() })
    }

    /// Entries by last use, oldest first, with their sizes.
    fn entries(&self) -> Vec<(SystemTime, PathBuf, u64)> {
        let mut found = Vec::new();
        for item in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let path = item.path();
            if !path.is_dir() || item.file_name().to_string_lossy().contains(".tmp.") {
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

    /// Removes every entry that is not being built right now; returns their number and size.
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

    /// Removes files that killed processes left.
    pub fn tidy(&self) {
        remove_stale(&self.dir, |_| true);
        for (_, path, _) in self.entries() {
            if !names(&path).any(|name| is_stale(&name)) {
                continue;
            }
            let Some(lock) = try_lock(&path) else { continue };
            if lock.try_lock().is_err() {
                // Without locks, only old files.
                remove_stale(&path, |_| true);
                continue;
            }
            for name in names(&path).filter(|name| is_stale(name)) {
                let _ = remove_any(&path.join(name));
            }
        }
    }

    /// Counts an entry that this process has added. A look at all entries takes as long as compiling a small kernel where they are
    /// thousands, so a process looks first, and then each time it has added a sixteenth of the capacity, or what was free.
    fn added(&self, entry: &Path, bytes: u64) {
        if self.private {
            return;
        }
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        if room.is_none() {
            self.tidy();
        }
        *room = match *room {
            Some(left) if left > bytes => Some(left - bytes),
            _ => Some(self.shrink(entry)),
        };
    }

    /// Removes the entries that were used longest ago where all take more than the capacity, until a sixteenth of it is free. Returns
    /// the bytes that may be added before the next look.
    fn shrink(&self, keep: &Path) -> u64 {
        let (entries, part) = (self.entries(), self.capacity / 16);
        let mut total: u64 = entries.iter().map(|e| e.2).sum();
        if total > self.capacity {
            for (_, path, size) in entries {
                if total <= self.capacity - part {
                    break;
                }
                if path != keep && remove(&path) {
                    total -= size;
                }
            }
        }
        self.capacity.saturating_sub(total).min(part)
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        if self.private && !self.keep.load(Ordering::Relaxed) {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// The names in a folder.
fn names(dir: &Path) -> impl Iterator<Item = String> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|item| item.file_name().to_string_lossy().into_owned())
}

/// Removes temporary files and folders of processes that ended long ago, of the names that are `ours`.
fn remove_stale(dir: &Path, ours: impl Fn(&str) -> bool) {
    // SAFETY: `geteuid` has no preconditions.
    let user = unsafe { libc::geteuid() };
    for name in names(dir).filter(|name| ours(name) && is_stale(name)) {
        let path = dir.join(name);
        let old = |m: fs::Metadata| m.uid() == user && m.modified().is_ok_and(|t| t.elapsed().is_ok_and(|e| e > STALE));
        if fs::symlink_metadata(&path).is_ok_and(old) {
            let _ = remove_any(&path);
        }
    }
}

/// Makes an entry's folder and takes its lock. Whoever removes an entry holds its lock too, so it stays until the lock
/// goes.
fn lock(dir: &Path, fail: impl FnOnce(io::Error) -> Error) -> Result<FileLock> {
    let path = dir.join("lock");
    let open = || -> io::Result<File> {
        if fs::symlink_metadata(dir).is_ok() && !dir.is_dir() {
            remove_any(dir)?;
        }
        fs::DirBuilder::new().mode(0o700).recursive(true).create(dir)?;
        open_lock(&path)
    };
    let mut last = None;
    // The folder may be removed between any two of these steps, but not as often as this.
    for _ in 0..ATTEMPTS {
        match open() {
            Ok(file) => {
                let made = id(file.metadata());
                // Some network file systems do not support locks; the work is then done twice, which does no harm.
                let lock = FileLock::take(file)?;
                if made.is_some() && made == id(fs::metadata(&path)) {
                    return Ok(lock);
                }
            }
            Err(error) => last = Some(error),
        }
    }
    Err(fail(last.unwrap_or_else(|| io::ErrorKind::ResourceBusy.into())))
}

/// Tells a file from a later one of the same name: another process may have removed and recreated it before it was
/// locked.
fn id(file: io::Result<fs::Metadata>) -> Option<(u64, u64)> {
    file.ok().map(|m| (m.dev(), m.ino()))
}

/// The lock of an entry that nobody is building; on file systems without locks nobody is known to.
fn try_lock(dir: &Path) -> Option<File> {
    let path = dir.join("lock");
    let lock = open_lock(&path).ok()?;
    match lock.try_lock() {
        Err(fs::TryLockError::WouldBlock) => None,
        _ => (id(lock.metadata()).is_some() && id(lock.metadata()) == id(fs::metadata(&path))).then_some(lock),
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path).is_ok_and(|m| !m.is_file()) {
        remove_any(path)?;
    }
    open_regular(path, OpenOptions::new().write(true).create(true).truncate(false))
}

/// Removes an entry unless somebody is building it.
fn remove(dir: &Path) -> bool {
    let Some(_lock) = try_lock(dir) else { return false };
    // At once, so that nobody builds in a folder that is being emptied.
    let aside = temporary_beside(dir);
    fs::rename(dir, &aside).is_ok() && fs::remove_dir_all(&aside).is_ok()
}

/// The entry in `dir`, if it is whole.
fn lookup(dir: &Path) -> Option<Entry> {
    let (c, so, meta) = (dir.join("k.c"), dir.join("k.so"), dir.join("meta"));
    let hash = *blake3::hash(&whole(&so, &meta)?).as_bytes();
    Some(Entry { source: c, object: so, cached: true, brought: false, hash })
}

/// The bytes of an entry's file, if their hash is the one in `meta`.
fn whole(file: &Path, meta: &Path) -> Option<Vec<u8>> {
    let want = read_regular(meta).ok()?;
    let bytes = read_regular(file).ok()?;
    if blake3::hash(&bytes).to_hex().as_bytes() != want.trim_ascii_end() {
        let _ = fs::remove_file(meta);
        return None;
    }
    // Last use, for the order in which entries go; a read-only cache forgets it.
    let _ = open_regular(meta, OpenOptions::new().write(true)).and_then(|f| f.set_modified(SystemTime::now()));
    Some(bytes)
}

/// Warnings that nobody has taken yet, and those that were told before: each is told once.
static TOLD: Brief<(Vec<String>, BTreeSet<String>)> = Brief::new((Vec::new(), BTreeSet::new()));

/// True if there are untold warnings; asked after every launch.
static UNTOLD: AtomicBool = AtomicBool::new(false);

fn tell(warning: &str) {
    let mut told = TOLD.lock();
    if told.1.insert(warning.to_string()) {
        told.0.push(warning.to_string());
        UNTOLD.store(true, Ordering::SeqCst);
    }
}

/// The warnings about caches since the last call, each once in the life of the process.
pub fn take_warnings() -> Vec<String> {
    match UNTOLD.load(Ordering::Relaxed) && UNTOLD.swap(false, Ordering::SeqCst) {
        true => std::mem::take(&mut TOLD.lock().0),
        false => vec![],
    }
}

/// Makes the folder, and refuses one in which somebody else could have put an object.
fn prepare(dir: &Path) -> std::result::Result<(), String> {
    fs::DirBuilder::new().mode(0o700).recursive(true).create(dir).map_err(|e| e.to_string())?;
    let mode = secure(dir)?;
    let probe = temporary_beside(&dir.join("probe"));
    if mode & 0o200 == 0 || File::create(&probe).is_err() {
        return Err("it cannot be written".to_string());
    }
    let _ = fs::remove_file(probe);
    Ok(())
}

/// The mode of a folder of this user's in which nobody else may write. Somebody who may rename it, or one above it, may put another in
/// its place; in a folder with the sticky bit, as /tmp, only the owner may rename.
fn secure(dir: &Path) -> std::result::Result<u32, String> {
    let real = dir.canonicalize().map_err(|e| e.to_string())?;
    let meta = fs::metadata(&real).map_err(|e| e.to_string())?;
    // SAFETY: `geteuid` has no preconditions.
    let user = unsafe { libc::geteuid() };
    let mode = meta.permissions().mode();
    if meta.uid() != user {
        return Err("it belongs to another user".to_string());
    }
    if mode & 0o022 != 0 {
        return Err("other users may write in it (`chmod go-w` it)".to_string());
    }
    // Whoever owns the root folder administers the machine, or the container: in a user's own namespace, that is not user 0.
    let administrator = fs::metadata("/").map_or(0, |m| m.uid());
    for above in real.ancestors().skip(1) {
        let meta = fs::metadata(above).map_err(|e| format!("{}: {e}", above.display()))?;
        let above = above.display();
        if ![user, 0, administrator].contains(&meta.uid()) {
            return Err(format!("{above} belongs to another user"));
        }
        if meta.permissions().mode() & 0o022 != 0 && meta.permissions().mode() & 0o1000 == 0 {
            return Err(format!("other users may write in {above} (`chmod go-w` it)"));
        }
    }
    Ok(mode)
}
