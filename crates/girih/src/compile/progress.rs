//! How far a compilation or a simulation is, on a terminal: one line on standard error that is written over and taken away at the end.
//!
//! ```text
//! compiling k_linear_silu (3 of 17): t:007_register_tile
//! simulating gemm: block 12 of 512, about 3 min left; `--block 0,0,0` runs one
//! ```
//!
//! In: the current step of a compilation, from an [`Observer`] around its own and from the calls of the C compiler. Out: nothing in
//! the first second of it, then the line, by a thread of its own, since one rule can take long.
//!
//! Invariants: nothing is kept or written before [`watch`] is called, which the command line does where standard error is
//! a terminal; when the last compilation under way has ended, its line is gone.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use girih_compiler::base::Diagnostic;
use girih_compiler::base::label::visible_lines;
use girih_compiler::pipeline::{Event, Observer};

/// How long a compilation runs before something is said of it.
const QUIET: Duration = Duration::from_secs(1);
/// How often the line is written again.
const EVERY: Duration = Duration::from_millis(100);
/// The most characters of the line.
const WIDTH: usize = 78;

struct State {
    /// Compilations under way, in all threads.
    running: usize,
    since: Option<Instant>,
    kernel: String,
    at: String,
    /// `compiling` or `simulating`.
    verb: &'static str,
    /// `(3 of 17)`, of a model's kernels.
    count: Option<(usize, usize)>,
    /// The line that stands there.
    shown: Option<String>,
}

static WATCHED: AtomicBool = AtomicBool::new(false);
static STATE: Mutex<State> = Mutex::new(State {
    running: 0,
    since: None,
    kernel: String::new(),
    at: String::new(),
    verb: "compiling",
    count: None,
    shown: None,
});

fn state() -> Option<MutexGuard<'static, State>> {
    WATCHED.load(Ordering::Relaxed).then(|| STATE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Shows from now on how far compilations are that take longer than a second.
pub fn watch() {
    if WATCHED.swap(true, Ordering::Relaxed) {
        return;
    }
    let show = || {
        loop {
            std::thread::sleep(EVERY);
            if let Some(mut state) = state().filter(|s| s.since.is_some_and(|since| since.elapsed() >= QUIET)) {
                let line = state.line();
                if state.shown.as_ref() != Some(&line) {
                    write(&format!("\r\x1b[K{line}"));
                    state.shown = Some(line);
                }
            }
        }
    };
    // Without the thread nothing is shown.
    let _ = std::thread::Builder::new().name("progress".into()).spawn(show);
}

fn write(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

impl State {
    fn line(&self) -> String {
        let mut line = self.verb.to_string();
        if !self.kernel.is_empty() {
            line += &format!(" {}", self.kernel);
        }
        if let Some((at, of)) = self.count {
            line += &format!(" ({at} of {of})");
        }
        if !self.at.is_empty() {
            line += &format!(": {}", self.at);
        }
        visible_lines(&line).replace('\n', " ").chars().take(WIDTH).collect()
    }
}

/// A compilation or a simulation is under way as long as this lives.
pub(crate) struct Working(());

impl Working {
    pub fn compiling() -> Working {
        Working::begin("compiling")
    }
    pub fn simulating() -> Working {
        Working::begin("simulating")
    }
    fn begin(verb: &'static str) -> Working {
        if let Some(mut state) = state() {
            state.verb = verb;
            state.running += 1;
            state.since.get_or_insert_with(Instant::now);
        }
        Working(())
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let Some(mut state) = state() else { return };
        state.running = state.running.saturating_sub(1);
        if state.running == 0 {
            state.since = None;
            (state.kernel, state.at, state.count) = (String::new(), String::new(), None);
            if state.shown.take().is_some() {
                write("\r\x1b[K");
            }
        }
    }
}

/// Records the current step of the compilation.
pub(crate) fn at(what: &str) {
    if let Some(mut state) = state() {
        state.at = what.into();
    }
}

/// Records the current kernel.
pub(crate) fn kernel(name: &str) {
    if let Some(mut state) = state() {
        state.kernel = name.into();
    }
}

/// How many kernels of a model are begun.
pub(crate) fn count(at: usize, of: usize) {
    if let Some(mut state) = state() {
        state.count = Some((at, of));
    }
}

/// The number of blocks of a simulated kernel that have ended, and a remark on the rest; asked for now and then only.
pub(crate) fn blocks(done: u64, of: u64, rest: impl FnOnce() -> Option<String>) {
    if let Some(mut state) = state() {
        let rest = rest().map_or(String::new(), |text| format!(", {text}"));
        state.at = format!("block {done} of {of}{rest}");
    }
}

/// An observer whose progress is shown too.
pub(crate) struct Shown<'a>(pub &'a mut dyn Observer);

impl Observer for Shown<'_> {
    fn see(&mut self, event: &Event<'_>) -> Result<(), Diagnostic> {
        match event {
            Event::Begin(what) => at(what),
            Event::Kernel { name, at, of } => {
                kernel(name);
                count(*at, *of);
            }
            _ => {}
        }
        self.0.see(event)
    }
    fn wants_steps(&self) -> bool {
        self.0.wants_steps()
    }
}
