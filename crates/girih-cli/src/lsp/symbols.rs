//! The outline of a document, and the meaning of its words for colours.
//!
//! In: a tile program's text and names, or the kernels of a script. Out: document symbols, and semantic tokens in the protocol's
//! form: five numbers for each, the place counted from the one before.
//!
//! Invariant: tokens are in order of the text, lie on one line, and do not overlap.

use std::ops::Range;

use girih_compiler::base::lexer::{Lexer, Tok};
use girih_compiler::cuda_tile::ops;
use girih_compiler::num::DType;
use serde_json::{Value, json};

use super::answers::Asked;
use crate::scripts::{Kind, Role};

/// The kinds of tokens, by their number in what follows.
pub const TYPES: [&str; 8] = ["function", "parameter", "variable", "type", "number", "string", "keyword", "decorator"];
/// A bit each: a constant of the compilation, a name of the language, a definition.
pub const MODIFIERS: [&str; 3] = ["readonly", "defaultLibrary", "declaration"];

const FUNCTION: u32 = 0;
const PARAMETER: u32 = 1;
const VARIABLE: u32 = 2;
const TYPE: u32 = 3;
const NUMBER: u32 = 4;
const STRING: u32 = 5;
const KEYWORD: u32 = 6;
const READONLY: u32 = 1;
const LIBRARY: u32 = 2;
const DECLARATION: u32 = 4;

struct Token {
    range: Range<usize>,
    kind: u32,
    modifiers: u32,
}

pub fn symbols(a: &Asked<'_>) -> Result<Value, String> {
    // The kind `function`, as the protocol numbers it.
    let symbol = |name: &str, detail: &str, range: &Range<usize>| {
        let range = a.text.range(range.start, range.end);
        json!({ "name": name, "detail": detail, "kind": 12, "range": range, "selectionRange": range })
    };
    let kernels = a.known.kernels.iter().map(|k| symbol(&k.name, "kernel", &k.range));
    let functions = a.known.names.functions.iter().map(|(range, name)| symbol(&format!("@{name}"), "", range));
    Ok(kernels.chain(functions).collect())
}

pub fn tokens(a: &Asked<'_>) -> Result<Value, String> {
    let tokens = if a.known.kernels.is_empty() { of_program(a) } else { of_kernels(a) };
    let (mut data, mut before) = (vec![], (0u64, 0u64));
    for Token { range, kind, modifiers } in tokens {
        let (start, end) = (a.text.position(range.start), a.text.position(range.end));
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let (line, column) = (number(&start["line"]), number(&start["character"]));
        let length = number(&end["character"]).saturating_sub(column);
        if number(&end["line"]) != line || length == 0 || (line, column) < before {
            continue;
        }
        let along = if line == before.0 { column - before.1 } else { column };
        data.extend([line - before.0, along, length, kind.into(), modifiers.into()]);
        before = (line, column);
    }
    Ok(json!({ "data": data }))
}

fn of_program(a: &Asked<'_>) -> Vec<Token> {
    let mut lexer = Lexer::new(&a.text.text);
    let mut out = vec![];
    // A type's name stands before `<`; an element type within.
    let element = |word: &str| word.rsplit('x').next().is_some_and(|w| DType::of_tile_ir().any(|d| d.name() == w));
    loop {
        let (token, span) = lexer.next_token();
        let range = span.start as usize..span.end as usize;
        let (kind, modifiers) = match token {
            Tok::Eof => return out,
            Tok::Percent(_) => {
                let found = a.known.names.at(range.start).and_then(|o| o.definition);
                let definition = found.and_then(|d| a.known.names.definitions.get(d));
                let own = definition.is_some_and(|d| d.range.start == range.start);
                let parameter = definition.is_some_and(|d| d.what.starts_with("parameter"));
                (if parameter { PARAMETER } else { VARIABLE }, if own { DECLARATION } else { 0 })
            }
            Tok::At(_) => (FUNCTION, 0),
            Tok::Int(_) | Tok::Float(_) => (NUMBER, 0),
            Tok::Str(_) => (STRING, 0),
            Tok::Word(word)
                if matches!(word, "tile" | "token" | "ptr" | "tensor_view" | "partition_view") || element(word) =>
            {
                (TYPE, LIBRARY)
            }
            Tok::Word(word) if ops::by_name(word).is_some() => (FUNCTION, LIBRARY),
            Tok::Word("entry" | "testing$func" | "cuda_tile.module") => (KEYWORD, 0),
            _ => continue,
        };
        out.push(Token { range, kind, modifiers });
    }
}

/// The names that the tracer saw: constants of the compilation are `readonly`.
fn of_kernels(a: &Asked<'_>) -> Vec<Token> {
    let mut out: Vec<Token> = (a.known.kernels.iter().flat_map(|k| &k.names))
        .map(|seen| {
            let kind = match (seen.kind, seen.role) {
                (Kind::Function, _) => FUNCTION,
                (_, Role::Parameter) => PARAMETER,
                _ => VARIABLE,
            };
            let constant = if seen.kind == Kind::Constant { READONLY } else { 0 };
            let library = if seen.kind == Kind::Function && seen.doc.is_some() { LIBRARY } else { 0 };
            let declared = if seen.role == Role::Read { 0 } else { DECLARATION };
            Token { range: seen.range.clone(), kind, modifiers: constant | library | declared }
        })
        .collect();
    out.sort_by_key(|t| t.range.start);
    out.dedup_by_key(|t| t.range.start);
    out
}
