//! A locked file whose lock no child of this process keeps.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::Duration;

use super::brief::{Brief, me};
use crate::error::{Error, Result};
use crate::system::signals;

/// Files whose copies a child must close, with the threads that have them.
static ALONE: Brief<Vec<(i32, usize)>> = Brief::new(Vec::new());

/// A locked file whose lock ends with the value, or with the process, even if it has children.
pub struct FileLock(File, bool);

impl FileLock {
    /// Waits for the lock. Some network file systems know none; the value then stands for nothing.
    pub fn take(file: File) -> Result<FileLock> {
        ALONE.lock().push((file.as_raw_fd(), me()));
        let mut file = FileLock(file, false);
        loop {
            match file.0.try_lock() {
                Err(std::fs::TryLockError::WouldBlock) if signals::attention() => return Err(Error::Interrupted),
                Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(2)),
                taken => {
                    file.1 = taken.is_ok();
                    return Ok(file);
                }
            }
        }
    }

    /// Returns true if it keeps others out.
    pub fn is_real(&self) -> bool {
        self.1
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let number = self.0.as_raw_fd();
        ALONE.lock().retain(|(n, _)| *n != number);
        // A child that was forked a moment ago may still have the file open.
        let _ = self.0.unlock();
    }
}

/// In a child: closes its copies of files that threads which it does not have would close.
pub(super) fn close_others() {
    let me = me();
    let mut alone = ALONE.lock();
    alone.retain(|&(number, thread)| {
        if thread != me {
            // SAFETY: the file belongs to a thread that is not in this process; nobody else knows its number.
            unsafe { libc::close(number) };
        }
        thread == me
    });
}
