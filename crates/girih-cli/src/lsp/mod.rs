//! `girih lsp`: a language server for tile programs, and for kernels in Python scripts, over standard input and output.
//!
//! In: messages of the Language Server Protocol. Out: diagnostics as the user types, and answers about names, operations, types
//! and shapes. The library `lsp-server` of rust-analyzer handles messages and how a client begins and
//! ends; the few structures of the protocol are written out where they are made.
//!
//! * [`transport`]: bytes and messages    * [`text`]: places as the protocol counts them
//! * [`names`]: which definition a name means    * [`answers`]: one function a request
//! * [`kernels`]: those about Python kernels     * [`symbols`]: outlines and colours     * [`fixes`]: edits of helps
//!
//! Invariants: one thread answers, in order, so that an answer is about the text that the client had when it asked; a document is
//! read once for each version; a client that disconnects, or sends something that is not a message, ends the server with a
//! sentence.

mod answers;
mod fixes;
mod kernels;
mod names;
mod symbols;
mod text;
mod transport;

use std::collections::BTreeMap;

use girih_compiler::base::{Diagnostic, Severity};
use girih_compiler::cuda_tile::ir::Module;
use girih_compiler::cuda_tile::parse::parse;
use girih_compiler::pipeline;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::scripts::{Checked, Checker, Kernel};
use names::Names;
use text::{Encoding, Text};

/// An open document, and its analysis.
pub struct Document {
    text: Text,
    version: Value,
    /// The analysis of this version; made when it is first needed.
    known: Option<Known>,
}

/// The analysis of a text.
pub struct Known {
    diagnostics: Vec<Diagnostic>,
    /// The program; where it has errors, the part that could be read.
    module: Option<Module>,
    names: Names,
    /// The kernels of a script.
    kernels: Vec<Kernel>,
}

impl Document {
    fn new(text: Text, version: Value) -> Document {
        Document { text, version, known: None }
    }

    /// A script's kernels.
    fn known_script(&mut self, uri: &str, checker: &mut Scripts) -> (&Text, &Known) {
        let text = &self.text;
        let known = self.known.get_or_insert_with(|| {
            let Checked { diagnostics, kernels } = checker.check(&path(uri), &text.text);
            Known { diagnostics, module: None, names: Names::default(), kernels }
        });
        (text, known)
    }

    fn known(&mut self) -> (&Text, &Known) {
        let text = &self.text;
        let known = self.known.get_or_insert_with(|| {
            let (diagnostics, module) = match pipeline::front(&text.text) {
                Ok(front) => (front.warnings, Some(front.module)),
                Err(diagnostics) => {
                    let parsed = parse(&text.text);
                    (diagnostics, parsed.module.or(parsed.partial))
                }
            };
            let names = Names::of(&text.text, module.as_ref());
            Known { diagnostics, module, names, kernels: vec![] }
        });
        (text, known)
    }
}

/// The Python that checks scripts, started with the first script that has kernels.
#[derive(Default)]
struct Scripts {
    checker: Option<Checker>,
    /// It failed, which was said.
    failed: bool,
}

impl Scripts {
    fn check(&mut self, path: &str, text: &str) -> Checked {
        if self.failed || !text.contains("girih") {
            return Checked::default();
        }
        let started = match self.checker.take() {
            Some(checker) => Ok(checker),
            None => Checker::start().map_err(|e| e.text()),
        };
        match started.and_then(|mut checker| checker.check(path, text).map(|found| (checker, found))) {
            Ok((checker, found)) => {
                self.checker = Some(checker);
                found
            }
            Err(why) => {
                say!("girih lsp: kernels in Python are not checked: {why}");
                self.failed = true;
                Checked::default()
            }
        }
    }
}

/// Returns true if a document is a script.
fn is_script(uri: &str) -> bool {
    uri.ends_with(".py")
}

/// The file of a document; another kind of URI is its own name.
fn path(uri: &str) -> String {
    let Some(rest) = uri.strip_prefix("file://") else { return uri.to_string() };
    let mut bytes = vec![];
    let mut rest = rest.bytes();
    while let Some(byte) = rest.next() {
        let mut after = rest.clone();
        let digit = |b: Option<u8>| b.and_then(|b| (b as char).to_digit(16));
        match (byte, digit(after.next()), digit(after.next())) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = after;
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

struct Server {
    connection: Connection,
    encoding: Encoding,
    documents: BTreeMap<String, Document>,
    /// The documents whose diagnostics the client does not have yet.
    changed: Vec<String>,
    scripts: Scripts,
}

pub fn run() -> Result<(), Failure> {
    let (connection, threads) = transport::stdio().map_err(Failure::Output)?;
    let said = match serve(connection) {
        // The last message is still being written.
        Ok(()) => return threads.join().map_err(Failure::Output),
        Err(End::Said(why)) => why,
        // The reader has ended, and knows why.
        Err(End::Gone) => match threads.join() {
            Ok(()) => "the client went away without saying `exit`".to_string(),
            Err(error) => format!("the client sent something that is not a message: {error}"),
        },
    };
    Err(Failure::client(said))
}

/// Why the server ends before the client has said `exit`.
enum End {
    /// The client reads or writes no more.
    Gone,
    /// It does not keep to the protocol.
    Said(String),
}

/// The error of a client that begins or ends in another way than the protocol says.
fn strange(what: &str) -> impl Fn(lsp_server::ProtocolError) -> End {
    move |error| match error.channel_is_disconnected() {
        true => End::Gone,
        false => End::Said(format!("the client did not {what} as the protocol says: {error}")),
    }
}

/// Answers until the client says `exit`.
fn serve(connection: Connection) -> Result<(), End> {
    let (id, client) = connection.initialize_start().map_err(strange("begin"))?;
    let encodings = client["capabilities"]["general"]["positionEncodings"].as_array();
    let encoding = match encodings {
        Some(all) if all.iter().any(|e| e == "utf-8") => Encoding::Utf8,
        _ => Encoding::Utf16,
    };
    connection.initialize_finish(id, abilities(encoding)).map_err(strange("begin"))?;
    let mut server =
        Server { connection, encoding, documents: BTreeMap::new(), changed: vec![], scripts: Scripts::default() };
    server.run()
}

/// The server's capabilities.
fn abilities(encoding: Encoding) -> Value {
    json!({
        "capabilities": {
            "positionEncoding": match encoding { Encoding::Utf8 => "utf-8", Encoding::Utf16 => "utf-16" },
            "textDocumentSync": { "openClose": true, "change": 2 },
            "hoverProvider": true,
            "completionProvider": { "triggerCharacters": ["%", "@"] },
            "definitionProvider": true,
            "referencesProvider": true,
            "documentHighlightProvider": true,
            "renameProvider": { "prepareProvider": true },
            "documentFormattingProvider": true,
            "inlayHintProvider": true,
            "codeActionProvider": { "codeActionKinds": ["quickfix"] },
            "documentSymbolProvider": true,
            "semanticTokensProvider": {
                "legend": { "tokenTypes": symbols::TYPES, "tokenModifiers": symbols::MODIFIERS },
                "full": true,
            },
        },
        "serverInfo": { "name": "girih", "version": env!("CARGO_PKG_VERSION") },
    })
}

impl Server {
    fn run(&mut self) -> Result<(), End> {
        loop {
            // Diagnostics are published once no message waits: of many changes only the last counts.
            let next = match self.connection.receiver.try_recv() {
                Ok(message) => message,
                Err(_) => {
                    self.publish()?;
                    self.connection.receiver.recv().map_err(|_| End::Gone)?
                }
            };
            match next {
                Message::Request(request) => {
                    if self.connection.handle_shutdown(&request).map_err(strange("end"))? {
                        return Ok(());
                    }
                    let answer = self.answer(request);
                    self.send(Message::Response(answer))?;
                }
                Message::Notification(n) if n.method == "exit" => return Ok(()),
                Message::Notification(notification) => self.notice(&notification),
                Message::Response(_) => {}
            }
        }
    }

    fn send(&self, message: Message) -> Result<(), End> {
        self.connection.sender.send(message).map_err(|_| End::Gone)
    }

    fn notice(&mut self, notification: &Notification) {
        let params = &notification.params;
        let Some(uri) = params["textDocument"]["uri"].as_str().map(String::from) else { return };
        let version = params["textDocument"]["version"].clone();
        match notification.method.as_str() {
            "textDocument/didOpen" => {
                let text = params["textDocument"]["text"].as_str().unwrap_or_default();
                let text = Text::new(text.to_string(), self.encoding);
                self.documents.insert(uri.clone(), Document::new(text, version));
            }
            "textDocument/didChange" => {
                let Some(document) = self.documents.get_mut(&uri) else { return };
                let mut text = std::mem::take(&mut document.text);
                for change in params["contentChanges"].as_array().into_iter().flatten() {
                    if text.change(change).is_none() {
                        say!("girih lsp: a change of {uri} is malformed");
                    }
                }
                *document = Document::new(text, version);
            }
            "textDocument/didClose" => {
                self.documents.remove(&uri);
            }
            _ => return,
        }
        if !self.changed.contains(&uri) {
            self.changed.push(uri);
        }
    }

    /// Publishes the diagnostics of changed documents.
    fn publish(&mut self) -> Result<(), End> {
        for uri in std::mem::take(&mut self.changed) {
            let params = match self.documents.get_mut(&uri) {
                None => json!({ "uri": uri, "diagnostics": [] }),
                Some(document) => {
                    let version = document.version.clone();
                    let (text, known) = match is_script(&uri) {
                        true => document.known_script(&uri, &mut self.scripts),
                        false => document.known(),
                    };
                    let all: Vec<Value> = known.diagnostics.iter().map(|d| diagnostic(text, &uri, d)).collect();
                    json!({ "uri": uri, "version": version, "diagnostics": all })
                }
            };
            self.send(Message::Notification(Notification::new("textDocument/publishDiagnostics".into(), params)))?;
        }
        Ok(())
    }

    fn answer(&mut self, request: Request) -> Response {
        let Request { id, method, params } = request;
        let uri = params["textDocument"]["uri"].as_str().unwrap_or_default();
        let by_method = if is_script(uri) { answers::of_scripts } else { answers::by_method };
        let Some(answer) = by_method(&method) else {
            return Response::new_err(
                id,
                ErrorCode::MethodNotFound as i32,
                format!("girih lsp does not know {method}"),
            );
        };
        let Some(document) = self.documents.get_mut(uri) else {
            return Response::new_err(id, ErrorCode::InvalidParams as i32, format!("{uri} is not open"));
        };
        let (text, known) = match is_script(uri) {
            true => document.known_script(uri, &mut self.scripts),
            false => document.known(),
        };
        match answer(&answers::Asked { text, known, uri, params: &params }) {
            Ok(value) => Response::new_ok(id, value),
            Err(why) => Response::new_err(id, ErrorCode::RequestFailed as i32, why),
        }
    }
}

/// A diagnostic as the protocol has it.
fn diagnostic(text: &Text, uri: &str, d: &Diagnostic) -> Value {
    let range = |span: girih_compiler::base::Span| text.range(span.start as usize, span.end as usize);
    let severity = match d.severity {
        Severity::Error => 1,
        Severity::Warning => 2,
        Severity::Note => 3,
    };
    let help = d.help.as_ref().map_or(String::new(), |help| format!("\nhelp: {help}"));
    let related = d
        .labels
        .iter()
        .map(|(span, label)| json!({ "location": { "uri": uri, "range": range(*span) }, "message": label }));
    json!({
        "range": range(d.span.unwrap_or_default()),
        "severity": severity,
        "code": d.code.text(),
        "source": "girih",
        "message": format!("{}{help}", d.message),
        "relatedInformation": related.collect::<Vec<_>>(),
    })
}
