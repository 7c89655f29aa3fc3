//! Why a command fails, and its exit code: 1 the program or its input is wrong, 2 usage, 3 a trap, 70 a bug of ours,
//! 130 Ctrl-C, 141 the reader of standard output went away.

use girih_compiler::base::{Code, Diagnostic};

use crate::render::{self, Source};

pub enum Failure {
    /// The command line makes no sense.
    Usage(String),
    /// Something the library refused; the source, where messages can point into it.
    Library { error: Box<girih::Error>, source: Option<Box<Source>> },
    /// Standard output took no more.
    Output(std::io::Error),
    /// A client of the language server did not keep to the protocol.
    Client(String),
    /// Everything has been said.
    Said(u8),
}

impl From<girih::Error> for Failure {
    fn from(error: girih::Error) -> Failure {
        Failure::Library { error: Box::new(error), source: None }
    }
}

impl Failure {
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::Usage(message.into())
    }

    pub fn client(message: impl Into<String>) -> Failure {
        Failure::Client(message.into())
    }

    /// Attaches the text that diagnostics point into.
    pub fn within(source: &Source) -> impl Fn(girih::Error) -> Failure + use<> {
        let source = source.clone();
        move |error| Failure::Library { error: Box::new(error), source: Some(Box::new(source.clone())) }
    }

    /// Attaches the text that its diagnostics point into, where none is yet.
    pub fn at(self, within: &Source) -> Failure {
        match self {
            Failure::Library { error, source: None } => Failure::within(within)(*error),
            other => other,
        }
    }

    /// The message, as plain text.
    pub fn text(&self) -> String {
        match self {
            Failure::Usage(message) | Failure::Client(message) => format!("error: {message}"),
            Failure::Library { error, source } => match &**error {
                girih::Error::Program(diagnostics) => {
                    let source = source.as_deref().cloned().unwrap_or_default();
                    let all = diagnostics.iter().map(|d| render::to_string(&source, d, false));
                    all.collect::<Vec<_>>().join("\n\n")
                }
                other => format!("error: {other}"),
            },
            Failure::Output(error) => format!("error: {error}"),
            Failure::Said(_) => "The terminal that girih runs in has the message.".to_string(),
        }
    }

    /// Says it on standard error and gives the exit code.
    pub fn report(self) -> u8 {
        match self {
            Failure::Said(code) => code,
            Failure::Client(message) => {
                say!("girih lsp: {message}");
                1
            }
            Failure::Usage(message) => {
                say!("error: {message}");
                2
            }
            // Like the system, which ends a program that writes where nobody reads: silently, with this code in the shell.
            Failure::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => 141,
            Failure::Output(error) => {
                let message = format!("standard output cannot be written: {error}");
                render::one(&Source::default(), &Diagnostic::error(Code::File, message));
                1
            }
            Failure::Library { error: _, .. } if girih::interrupted() => {
                say!("interrupted");
                girih::interrupt_code()
            }
            Failure::Library { error, source } => {
                let source = source.unwrap_or_default();
                match &*error {
                    girih::Error::Program(diagnostics) => {
                        render::all(&source, diagnostics);
                        if diagnostics.iter().any(|d| d.code == Code::InternalBug) {
                            say!("This is a bug of girih, not of your program.");
                            return 70;
                        }
                        1
                    }
                    girih::Error::Trap(trap) => {
                        render::trap(&source, trap);
                        3
                    }
                    girih::Error::Fault { .. } => {
                        let message = Diagnostic::error(Code::OutOfBounds, error.to_string());
                        let help = error.help("--check").unwrap_or_default();
                        render::one(&source, &message.help(help));
                        3
                    }
                    girih::Error::Interrupted => {
                        say!("interrupted");
                        girih::interrupt_code()
                    }
                    girih::Error::Internal(_) => {
                        say!("girih: {error}\nThis is a bug of girih, not of your program.");
                        70
                    }
                    other => {
                        let message = other.to_string();
                        match other.code() {
                            Some(code) => render::one(&source, &Diagnostic::error(code, message)),
                            None => say!("error: {message}"),
                        }
                        1
                    }
                }
            }
        }
    }
}
