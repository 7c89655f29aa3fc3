//! Standard output: the one place that writes to it.
//!
//! And standard error for the sentences that are not diagnostics.
//!
//! In: a command's output, bytes of a file, kernels' prints. Out: the same on standard output, or a `Failure`.
//! Invariants: a write that fails is never lost (what `out!` gives must be used); everything has left the process when
//! a command has ended well; a reader that went away ends the command without a word.

use std::fmt::Arguments;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use girih_compiler::base::label::visible_lines;
use girih_compiler::base::words::shorten;

use crate::failure::Failure;

/// Writes to standard output at once.
macro_rules! out {
    ($($arg:tt)*) => { crate::output::write(format_args!($($arg)*)) };
}
macro_rules! outln {
    ($($arg:tt)*) => { crate::output::write(format_args!("{}\n", format_args!($($arg)*))) };
}

/// Writes a line to standard error, a user's long words shortened and nothing in them that moves a cursor. Nothing can
/// be said about a standard error that does not take it.
macro_rules! say {
    ($($arg:tt)*) => { crate::output::say(&format!($($arg)*)) };
}

pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", shorten(&visible_lines(text)));
}

pub fn write(text: Arguments<'_>) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        return write_text(&text.to_string());
    }
    let mut out = io::stdout().lock();
    out.write_fmt(text).and_then(|()| out.flush()).map_err(Failure::Output)
}

/// Text of users and kernels. A terminal shows control characters instead of obeying them; a file or a pipe gets the text as it is.
fn write_text(text: &str) -> Result<(), Failure> {
    let text = if io::stdout().is_terminal() { visible_lines(text) } else { text.into() };
    write_bytes(text.as_bytes())
}

pub fn write_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Failure::Output)
}

/// Why a kernel's print could not be written.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

static PRINTED: AtomicBool = AtomicBool::new(false);

/// Returns true if a kernel has printed.
pub fn printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

/// How many holders keep the prints of kernels back.
static MUTED: AtomicUsize = AtomicUsize::new(0);

/// Keeps the prints of kernels back while it lives: a run that is repeated has printed before.
pub struct Muted(());

pub fn mute() -> Muted {
    MUTED.fetch_add(1, Ordering::Relaxed);
    Muted(())
}

impl Drop for Muted {
    fn drop(&mut self) {
        MUTED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Writes a kernel's prints. If that fails, the launch is stopped, and [`finish`] has the reason.
pub fn print(text: &str) {
    if MUTED.load(Ordering::Relaxed) > 0 {
        return;
    }
    PRINTED.store(true, Ordering::Relaxed);
    let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
    if lost.is_none()
        && let Err(Failure::Output(error)) = write_text(text)
    {
        *lost = Some(error);
        girih::stop_launch();
    }
}

/// The end of a command: whether all that was to be said has been.
pub fn finish() -> Result<(), Failure> {
    match LOST.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(Failure::Output(error)),
        None => io::stdout().lock().flush().map_err(Failure::Output),
    }
}
