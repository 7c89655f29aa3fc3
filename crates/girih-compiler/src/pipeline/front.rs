//! Front ends of tile programs: text, TTIR or bytecode as a verified module.
//!
//! In: a file's text or bytes. Out: a [`Front`], or all diagnostics of the file.

use crate::base::{Code, Diagnostic, Severity, Span};
use crate::{cuda_tile, ttir};

/// A verified tile program, with the warnings about its text.
pub struct Front {
    pub module: cuda_tile::ir::Module,
    pub warnings: Vec<Diagnostic>,
}

/// Parses and verifies a tile program. Errors come with all diagnostics of the file, including warnings.
pub fn front(text: &str) -> Result<Front, Vec<Diagnostic>> {
    if ttir::is_ttir(text) {
        return verified(ttir::read(text)?, vec![]);
    }
    let parsed = cuda_tile::parse::parse(text);
    let mut diagnostics = parsed.diagnostics;
    let Some(module) = parsed.module else {
        let found = parsed.partial.iter().flat_map(cuda_tile::verify);
        let wrong = |d: &&Diagnostic| d.is_error() && d.code != Code::NoModule;
        let unread: Vec<Diagnostic> = diagnostics.iter().filter(wrong).cloned().collect();
        let known = |d: &Diagnostic| if parsed.complete { d.is_error() } else { holds_of_the_whole(d) };
        diagnostics.extend(found.filter(|d| known(d) && !meets(d, &unread)));
        diagnostics.sort_by_key(|d| d.span.map(|s| s.start));
        return Err(diagnostics);
    };
    verified(module, diagnostics)
}

/// Reads and verifies bytecode. Spans are byte ranges of the file.
pub fn front_bytecode(bytes: &[u8]) -> Result<Front, Vec<Diagnostic>> {
    let read = cuda_tile::bytecode::read(bytes)?;
    verified(read.module, vec![])
}

/// The module with the warnings about it, if the verifier finds no error.
fn verified(module: cuda_tile::ir::Module, mut diagnostics: Vec<Diagnostic>) -> Result<Front, Vec<Diagnostic>> {
    diagnostics.extend(cuda_tile::verify(&module));
    add_frames(&module, &mut diagnostics);
    diagnostics.sort_by_key(|d| d.span.map(|s| s.start));
    if diagnostics.iter().any(|d| d.severity == Severity::Error) {
        Err(diagnostics)
    } else {
        Ok(Front { module, warnings: diagnostics })
    }
}

/// Adds to each diagnostic at an operation the place in the user's files that the operation comes from.
pub fn add_frames(module: &cuda_tile::ir::Module, diagnostics: &mut [Diagnostic]) {
    if diagnostics.is_empty() {
        return;
    }
    let mut ops: Vec<_> = module.funcs.iter().flat_map(|f| f.ops.values()).map(|op| (op.span, &op.loc)).collect();
    ops.sort_by_key(|(span, _)| *span);
    for d in diagnostics.iter_mut().filter(|d| d.frames.is_empty()) {
        let found = d.span.and_then(|span| ops.binary_search_by_key(&span, |(s, _)| *s).ok()).and_then(|i| ops.get(i));
        if let Some((_, loc)) = found {
            d.frames = loc.frames().into();
        }
    }
}

/// Returns true if an error in the readable part of a program would also be found in the whole program: it is about one
/// statement, not about a thing that a missing statement might have defined or ended.
fn holds_of_the_whole(d: &Diagnostic) -> bool {
    let about_others = [Code::BadTerminator, Code::BadSymbol, Code::BadArity, Code::TypeMismatch, Code::UndefinedValue];
    d.is_error() && d.span.is_some_and(|s| s.start < s.end) && !about_others.contains(&d.code)
}

/// Returns true if one of the others lies within the diagnostic's span: then an error of the statement was already
/// reported.
fn meets(d: &Diagnostic, others: &[Diagnostic]) -> bool {
    let within = |inner: Span| d.span.is_some_and(|outer| outer.start <= inner.start && inner.start < outer.end);
    others.iter().any(|other| other.span.is_some_and(within))
}
