//! One typed error for everything that can go wrong between a text and its result.

use std::path::{Path, PathBuf};

use girih_compiler::base::launch::Trap;
use girih_compiler::base::{Code, Diagnostic, Frame, Location};

use crate::cuda;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is wrong; at least one diagnostic is an error.
    #[error("{}", summary(.0))]
    Program(Vec<Diagnostic>),

    /// A kernel written in Rust is wrong: the errors, each as text with its line.
    #[error("{}", .shown.join("\n\n"))]
    Kernel { diagnostics: Vec<Diagnostic>, shown: Vec<String> },

    /// No entry of that name.
    #[error("unknown entry `{name}`; the entries are {}", list(.entries))]
    NoEntry { name: String, entries: Vec<String> },

    /// An argument, a grid or another part of a launch does not fit the kernel.
    #[error("{message}")]
    Argument { code: Code, message: String },

    /// The kernel stopped: a failed assertion, a forbidden access, a bad loop step.
    #[error("{}", .0.message)]
    Trap(Box<Trap>),

    /// The system stopped native code of a kernel, which accessed memory that does not exist. Under
    /// [`Options::check`](crate::Options::check) it is a [`Error::Trap`] that says which operation did, and where.
    #[error("the kernel `{kernel}` {what}, and the system stopped it")]
    Fault { kernel: String, what: &'static str },

    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,

    #[error(
        "no C compiler was found (tried {}); install one (Debian, Ubuntu: `apt install gcc`; Fedora: `dnf install gcc`; \
         macOS: `xcode-select --install`; or, for the Python package, `pip install ziglang`) or name it in GIRIH_CC or CC; \
         `--device eval` works without one, and so do kernels that `girih cache import` brings",
        .tried.join(", ")
    )]
    NoCompiler { tried: Vec<String> },

    #[error("the C compiler failed ({status}): {command}{}", details(.stderr, .source_file.as_deref()))]
    Compiler { status: String, command: String, stderr: String, source_file: Option<PathBuf> },

    #[error("the compiled kernel cannot be loaded: {0}")]
    Load(String),

    /// NVIDIA's compiler or disassembler is missing, or does not take what it is given.
    #[error(transparent)]
    Cuda(#[from] crate::cuda::Error),

    #[error("{}: {message}", .path.display())]
    File { path: PathBuf, message: String },

    /// A mistake of this project, not of the user.
    #[error("internal error: {0}")]
    Internal(String),
}

impl Error {
    pub fn file(path: impl Into<PathBuf>, message: impl ToString) -> Error {
        Error::File { path: path.into(), message: message.to_string() }
    }
    pub fn argument(message: impl Into<String>) -> Error {
        Error::Argument { code: Code::BadArgument, message: message.into() }
    }

    /// The trap that stopped the kernel, if one did.
    pub fn trap(&self) -> Option<&Trap> {
        match self {
            Error::Trap(trap) => Some(trap),
            _ => None,
        }
    }

    /// A remedy, where `check` is the spelling of checks in the user's interface.
    pub fn help(&self, check: &str) -> Option<String> {
        match self {
            Error::Fault { .. } => Some(format!("`{check}` says which operation, in which block and at which index")),
            _ => None,
        }
    }

    /// Where in the user's files it comes from: the chain of inlined calls, innermost first; empty where nothing is
    /// known.
    pub fn frames(&self) -> &[Frame] {
        match self {
            Error::Trap(trap) => &trap.frames,
            Error::Program(diagnostics) | Error::Kernel { diagnostics, .. } => {
                diagnostics.iter().find(|d| d.is_error()).map_or(&[], |d| &d.frames)
            }
            _ => &[],
        }
    }

    /// The innermost place in the user's files.
    pub fn place(&self) -> Option<&Location> {
        self.frames().first().map(|f| &f.place)
    }

    /// The code it is reported under; `None` for an interruption and for bugs.
    pub fn code(&self) -> Option<Code> {
        match self {
            Error::Program(diagnostics) | Error::Kernel { diagnostics, .. } => {
                diagnostics.iter().find(|d| d.is_error()).map(|d| d.code)
            }
            Error::NoEntry { .. } => Some(Code::NoEntry),
            Error::Argument { code, .. } => Some(*code),
            Error::Trap(trap) => Some(trap.code),
            Error::Fault { .. } => Some(Code::OutOfBounds),
            Error::NoCompiler { .. } => Some(Code::NoCompiler),
            Error::Compiler { .. } => Some(Code::CompilerFailed),
            Error::Load(_) => Some(Code::NotLoadable),
            Error::Cuda(cuda::Error::Missing { .. }) => Some(Code::NoCompiler),
            Error::Cuda(cuda::Error::Unusable { .. }) => Some(Code::NotLoadable),
            Error::Cuda(cuda::Error::NoDriver { .. } | cuda::Error::NoDevice { .. }) => Some(Code::NoDevice),
            Error::Cuda(cuda::Error::Driver { .. }) => Some(Code::DeviceFailed),
            Error::Cuda(cuda::Error::Interrupted) => None,
            Error::Cuda(_) => Some(Code::CompilerFailed),
            Error::File { .. } => Some(Code::File),
            Error::Interrupted | Error::Internal(_) => None,
        }
    }
}

fn summary(diagnostics: &[Diagnostic]) -> String {
    let errors: Vec<&Diagnostic> = diagnostics.iter().filter(|d| d.is_error()).collect();
    match errors.as_slice() {
        [] => "the program was rejected".to_string(),
        [one] => format!("{}: {}", one.code.text(), one.message),
        [first, rest @ ..] => format!("{}: {} (and {} more)", first.code.text(), first.message, rest.len()),
    }
}

/// The compiler's output and the path of its input, a line each.
fn details(stderr: &str, source_file: Option<&Path>) -> String {
    let mut out = String::new();
    if !stderr.is_empty() {
        out = format!("\n{stderr}");
    }
    if let Some(file) = source_file {
        out += &format!("\nthe C source is kept in {}", file.display());
    }
    out
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_string() } else { girih_compiler::base::words::list(names) }
}
