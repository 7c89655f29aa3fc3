//! Files that appear whole or not at all.

use std::collections::hash_map::RandomState;
use std::fs::{File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::system::sync::once;

/// A name beside `path` that no other process or thread uses.
pub fn temporary_beside(path: &Path) -> PathBuf {
    // A process of another machine that shares the folder may have the same number: the count begins anywhere.
    static COUNT: OnceLock<AtomicU64> = OnceLock::new();
    let count = once(&COUNT, || AtomicU64::new(RandomState::new().hash_one(std::process::id()) >> 1));
    let unique = format!(".tmp.{}.{}", std::process::id(), count.fetch_add(1, Ordering::Relaxed));
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

/// Opens an ordinary file of ours to read or write; anything else under the name, such as a link, or a pipe that nobody writes,
/// is an error at once instead of a wait.
pub fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    only_regular(options.custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path)?)
}

/// The same for a file that a user names, possibly through a link.
pub fn open_named(path: &Path) -> io::Result<File> {
    only_regular(OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?)
}

fn only_regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not an ordinary file")),
    }
}

/// The bytes of an ordinary file.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path, OpenOptions::new().read(true))?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Folders for temporary files, best first: the one that `TMPDIR` names may be missing, full or somebody else's.
pub fn temporary_folders() -> impl Iterator<Item = PathBuf> {
    let first = std::env::temp_dir();
    let others = ["/tmp", "/var/tmp", "/dev/shm"].into_iter().map(PathBuf::from);
    let others: Vec<PathBuf> = others.filter(|f| *f != first).collect();
    std::iter::once(first).chain(others)
}

/// Calls `make` with each temporary folder until it succeeds.
///
/// # Errors
/// Why it cannot be made in the first one.
pub fn in_temporary_folder<T>(mut make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<T> {
    let mut first = None;
    for folder in temporary_folders() {
        match make(&folder) {
            Ok(made) => return Ok(made),
            Err(error) => drop(first.get_or_insert(error)),
        }
    }
    Err(first.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

/// Bytes as a file that lies in no folder.
pub struct Memory {
    path: PathBuf,
    _file: File,
}

impl Memory {
    #[cfg(target_os = "linux")]
    pub fn new(bytes: &[u8]) -> io::Result<Memory> {
        use std::os::fd::{AsRawFd, FromRawFd};
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // SAFETY: the name ends in a zero; the number that comes back is nobody else's.
        // The call has a wrapper since glibc 2.27; libraries for older ones cannot be linked with it.
        let mut file = unsafe {
            let fd = libc::syscall(libc::SYS_memfd_create, c"girih".as_ptr(), libc::MFD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            File::from_raw_fd(fd as i32)
        };
        file.write_all(bytes)?;
        // Descriptors are used again, but the loader knows objects by their names: each has a spelling of its own.
        let mut number = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut name = String::from("/proc/self/fd/");
        while number > 0 {
            name += if number & 1 == 0 { "./" } else { ".//" };
            number >>= 1;
        }
        Ok(Memory { path: format!("{name}{}", file.as_raw_fd()).into(), _file: file })
    }

    #[cfg(not(target_os = "linux"))]
    pub fn new(_bytes: &[u8]) -> io::Result<Memory> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns true if a folder's mount forbids executing its programs and libraries.
pub fn is_noexec(folder: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(name) = std::ffi::CString::new(folder.as_os_str().as_bytes()) else { return false };
    // SAFETY: the name ends in a zero, and the struct is written by the call alone.
    unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        libc::statvfs(name.as_ptr(), &mut about) == 0 && about.f_flag & libc::ST_NOEXEC != 0
    }
}

/// Removes the file, pipe, link or folder of this name.
pub fn remove_any(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path)?.is_dir() {
        true => std::fs::remove_dir_all(path),
        false => std::fs::remove_file(path),
    }
}

/// The process that made a temporary name, if it is one.
fn owner(name: &str) -> Option<i32> {
    let (_, numbers) = name.rsplit_once(".tmp.")?;
    let (pid, count) = numbers.split_once('.')?;
    count.parse::<u64>().ok()?;
    pid.parse::<i32>().ok().filter(|&pid| pid > 0)
}

/// Returns true for a temporary name whose process ended without removing it, as `kill -9` does.
pub fn is_stale(name: &str) -> bool {
    // SAFETY: signal 0 is sent to nobody; the call only asks whether the process is there.
    owner(name).is_some_and(|pid| unsafe { libc::kill(pid, 0) } != 0 && !permission_denied())
}

/// The process is there and belongs to somebody else.
fn permission_denied() -> bool {
    io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
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
    // The target of a symbolic link is replaced, not the link.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let before = std::fs::metadata(&target).ok();
    let temporary = temporary_beside(&target);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    let guard = Temporary::new(temporary);
    for part in parts {
        file.write_all(part)?;
    }
    if let Some(before) = before {
        file.set_permissions(before.permissions())?;
    }
    file.flush()?;
    drop(file);
    guard.rename(&target)
}

/// As [`write_whole`], but replaces anything of this name: a pipe or a folder gives way.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if std::fs::symlink_metadata(path).is_ok_and(|m| !m.is_file()) {
        remove_any(path)?;
    }
    write_whole(path, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_tell_whether_their_process_lives() {
        let mine = temporary_beside(Path::new("k.so"));
        assert!(!is_stale(mine.to_str().unwrap()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        assert!(is_stale(&format!("k.so.tmp.{dead}.0")));
        for name in ["k.so", "k.so.tmp", "k.so.tmp.x.0", "k.so.tmp.0.0", "k.so.tmp.-1.0", "a.tmp.99999999999999.1"] {
            assert!(!is_stale(name), "{name}");
        }
    }

    #[test]
    fn links_and_permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let dir = std::env::temp_dir().join(format!("girih-files-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (file, link) = (dir.join("file"), dir.join("link"));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
