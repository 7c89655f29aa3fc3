//! The server's answers: one function for each request, from a document and the request's parameters to the protocol's JSON.
//!
//! In: [`Asked`]. Out: the result, `null` where there is nothing to say; an error is a sentence for the user.

use std::collections::BTreeSet;

use girih_compiler::base::Diagnostic;
use girih_compiler::cuda_tile::ops::{self, OpInfo};
use girih_compiler::cuda_tile::print::format;
use girih_compiler::num::DType;
use serde_json::{Value, json};

use super::names::{Definition, Occurrence};
use super::text::Text;
use super::{Known, fixes, kernels, symbols};
use crate::columns;

/// A question about a document.
pub struct Asked<'a> {
    pub text: &'a Text,
    pub known: &'a Known,
    pub uri: &'a str,
    pub params: &'a Value,
}

pub type Answer = fn(&Asked<'_>) -> Result<Value, String>;

pub fn by_method(method: &str) -> Option<Answer> {
    Some(match method {
        "textDocument/hover" => hover,
        "textDocument/completion" => completion,
        "textDocument/definition" => definition,
        "textDocument/references" => references,
        "textDocument/documentHighlight" => highlight,
        "textDocument/prepareRename" => prepare_rename,
        "textDocument/rename" => rename,
        "textDocument/formatting" => formatting,
        "textDocument/inlayHint" => inlay_hints,
        "textDocument/codeAction" => code_actions,
        "textDocument/documentSymbol" => symbols::symbols,
        "textDocument/semanticTokens/full" => symbols::tokens,
        _ => return None,
    })
}

/// The answers about scripts; a request that only tile programs have an answer to gets none.
pub fn of_scripts(method: &str) -> Option<Answer> {
    Some(match method {
        "textDocument/hover" => kernels::hover,
        "textDocument/inlayHint" => kernels::inlay_hints,
        "textDocument/codeAction" | "textDocument/documentSymbol" | "textDocument/semanticTokens/full" => {
            return by_method(method);
        }
        _ => return by_method(method).map(|_| nothing as Answer),
    })
}

fn nothing(_: &Asked<'_>) -> Result<Value, String> {
    Ok(Value::Null)
}

/// The edits of the helps of diagnostics in a range.
fn code_actions(a: &Asked<'_>) -> Result<Value, String> {
    let range = &a.params["range"];
    let (Some(from), Some(to)) = (a.text.offset(&range["start"]), a.text.offset(&range["end"])) else {
        return Err("the request names no range".to_string());
    };
    let touched = |d: &&Diagnostic| d.span.is_some_and(|s| s.start as usize <= to && from <= s.end as usize);
    let action = |d: &Diagnostic| {
        let fixes::Fix { range, new } = fixes::of(&a.text.text, d)?;
        let old = a.text.text.get(range.clone())?;
        let edit = json!([{ "range": a.text.range(range.start, range.end), "newText": new }]);
        Some(json!({
            "title": format!("Replace `{old}` by `{new}`"),
            "kind": "quickfix",
            "isPreferred": true,
            "diagnostics": [super::diagnostic(a.text, a.uri, d)],
            "edit": { "changes": { a.uri: edit } },
        }))
    };
    Ok(a.known.diagnostics.iter().filter(touched).filter_map(action).collect())
}

impl Asked<'_> {
    pub fn offset(&self) -> Result<usize, String> {
        self.text.offset(&self.params["position"]).ok_or_else(|| "the request names no place".to_string())
    }

    fn range(&self, o: &Occurrence) -> Value {
        self.text.range(o.range.start, o.range.end)
    }

    /// The definition of the name at the place asked for, and the name.
    fn named(&self) -> Result<Option<(&Occurrence, &Definition, usize)>, String> {
        let names = &self.known.names;
        let Some(found) = names.at(self.offset()?) else { return Ok(None) };
        Ok(found.definition.and_then(|d| Some((found, names.definitions.get(d)?, d))))
    }

    /// The letters around an offset that names of operations consist of, and where they begin; with the sigil before them.
    fn word(&self, offset: usize) -> (usize, &str) {
        let text = &self.text.text;
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
        let before = text.get(..offset).unwrap_or("");
        let mut from =
            before.len() - before.chars().rev().take_while(|c| letter(*c)).map(char::len_utf8).sum::<usize>();
        if before.get(..from).is_some_and(|b| b.ends_with(['%', '@'])) {
            from -= 1;
        }
        let after = text.get(offset..).unwrap_or("");
        let to = offset + after.chars().take_while(|c| letter(*c)).map(char::len_utf8).sum::<usize>();
        (from, text.get(from..to).unwrap_or(""))
    }
}

pub fn markdown(text: String) -> Value {
    json!({ "kind": "markdown", "value": text })
}

/// The page of an operation, or the description of a value.
fn hover(a: &Asked<'_>) -> Result<Value, String> {
    if let Some((found, d, _)) = a.named()? {
        let text = format!("```mlir\n%{} : {}\n```\n{}", d.name, d.types.join(", "), d.what);
        return Ok(json!({ "contents": markdown(text), "range": a.range(found) }));
    }
    let (from, word) = a.word(a.offset()?);
    let range = a.text.range(from, from + word.len());
    if let Some(func) = word.strip_prefix('@').and_then(|name| a.known.module.as_ref()?.function(name)) {
        let params: Vec<String> = func.params().iter().map(|p| ops_type(func.ty(*p))).collect();
        let text = format!("```mlir\n@{}({})\n```", func.name, params.join(", "));
        return Ok(json!({ "contents": markdown(text), "range": range }));
    }
    let op = ops::by_name(word.strip_prefix("cuda_tile.").unwrap_or(word));
    Ok(op.map_or(Value::Null, |op| json!({ "contents": markdown(ops::page(op)), "range": range })))
}

fn ops_type(ty: &girih_compiler::cuda_tile::ir::Type) -> String {
    girih_compiler::cuda_tile::print::type_text(ty)
}

/// Kinds of items, as the protocol numbers them.
const FUNCTION: u32 = 3;
const VARIABLE: u32 = 6;
const PROPERTY: u32 = 10;
const VALUE: u32 = 12;
const TYPE: u32 = 25;

/// Values after `%`, functions after `@`, operations where a statement begins, then its attributes and their words, and types
/// after `:`.
fn completion(a: &Asked<'_>) -> Result<Value, String> {
    let offset = a.offset()?;
    let text = &a.text.text;
    let (from, word) = a.word(offset);
    let typed = text.get(from..offset).unwrap_or("");
    let item = |label: &str, kind: u32, detail: &str, doc: Option<String>| {
        let edit = json!({ "range": a.text.range(from, from + word.len()), "newText": label });
        let doc = doc.map_or(Value::Null, markdown);
        json!({ "label": label, "kind": kind, "detail": detail, "documentation": doc, "textEdit": edit, "filterText": label })
    };
    if typed.starts_with('%') {
        let function = a.known.names.function_at(offset);
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut items = vec![];
        // The last definition of a name before the place.
        for d in a.known.names.definitions.iter().rev().filter(|d| Some(d.function) == function && d.range.end < from) {
            if seen.insert(&d.name) {
                items.push(item(&format!("%{}", d.name), VARIABLE, &d.types.join(", "), None));
            }
        }
        return Ok(json!(items));
    }
    if typed.starts_with('@') {
        let functions = a.known.names.functions.iter();
        return Ok(functions.map(|(_, name)| item(&format!("@{name}"), FUNCTION, "", None)).collect());
    }
    let line_from = text.get(..from).and_then(|t| t.rfind('\n')).map_or(0, |at| at + 1);
    let before = text.get(line_from..from).unwrap_or("");
    let statement = before.rsplit(" = ").next().unwrap_or(before).trim_start();
    if statement.is_empty() && (before.trim().is_empty() || before.ends_with("= ")) {
        let all = ops::all().iter();
        return Ok(all
            .map(|op| item(op.name, FUNCTION, &columns::first_sentence(op.doc), Some(ops::page(op))))
            .collect());
    }
    if before.trim_end().ends_with([':', '<']) || before.contains(" : ") {
        let types = ["tile", "token", "tensor_view", "partition_view", "ptr"].map(String::from);
        let dtypes = DType::of_tile_ir().map(|d| d.name().to_string());
        return Ok(types.into_iter().chain(dtypes).map(|name| item(&name, TYPE, "", None)).collect());
    }
    let head = statement.split_whitespace().next().unwrap_or("");
    let Some(op) = ops::by_name(head) else { return Ok(json!([])) };
    Ok(json!(attributes(op, &item)))
}

/// Makes an item of a label, its kind, a detail and a page.
type Item<'a> = dyn Fn(&str, u32, &str, Option<String>) -> Value + 'a;

/// The attributes of an operation, by name or by the words that stand for them.
fn attributes(op: &OpInfo, item: &Item<'_>) -> Vec<Value> {
    let mut items = vec![];
    for attr in op.attrs {
        items.push(item(attr.name, PROPERTY, attr.kind.describe(), None));
        items.extend(attr.words().into_iter().flatten().map(|word| item(word, VALUE, attr.name, None)));
    }
    items
}

fn location(a: &Asked<'_>, from: usize, to: usize) -> Value {
    json!({ "uri": a.uri, "range": a.text.range(from, to) })
}

fn definition(a: &Asked<'_>) -> Result<Value, String> {
    if let Some((_, d, _)) = a.named()? {
        return Ok(location(a, d.range.start, d.range.end));
    }
    let (_, word) = a.word(a.offset()?);
    let found = word.strip_prefix('@').and_then(|name| a.known.names.functions.iter().find(|(_, n)| n == name));
    Ok(found.map_or(Value::Null, |(range, name)| {
        // At its name, behind the word that begins it.
        let head = a.text.text.get(range.clone()).and_then(|t| t.find(&format!("@{name}"))).unwrap_or(0);
        let at = range.start + head;
        location(a, at, at + 1 + name.len())
    }))
}

fn references(a: &Asked<'_>) -> Result<Value, String> {
    let Some((_, _, d)) = a.named()? else { return Ok(json!([])) };
    let all = a.known.names.of_definition(d);
    Ok(all.map(|o| location(a, o.range.start, o.range.end)).collect())
}

fn highlight(a: &Asked<'_>) -> Result<Value, String> {
    let Some((_, _, d)) = a.named()? else { return Ok(json!([])) };
    Ok(a.known.names.of_definition(d).map(|o| json!({ "range": a.range(o) })).collect())
}

fn prepare_rename(a: &Asked<'_>) -> Result<Value, String> {
    let Some((found, d, _)) = a.named()? else { return Ok(Value::Null) };
    // Without the sigil, which stays.
    let range = a.text.range(found.range.start + 1, found.range.end);
    Ok(json!({ "range": range, "placeholder": d.name }))
}

fn rename(a: &Asked<'_>) -> Result<Value, String> {
    let Some((_, d, number)) = a.named()? else { return Err("only values can be renamed".to_string()) };
    let new = a.params["newName"].as_str().unwrap_or_default();
    let new = new.strip_prefix('%').unwrap_or(new);
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.' | '-');
    let digits = new.chars().all(|c| c.is_ascii_digit());
    let valid = !new.is_empty()
        && new.chars().all(letter)
        && (digits || !new.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
    if !valid {
        return Err(format!("`{new}` is not a name of a value: letters, digits, `_`, `$`, `.`, and no digit first"));
    }
    let names = &a.known.names;
    let taken = |o: &&Definition| o.name == new && o.function == d.function && o.range != d.range;
    if let Some(other) = names.definitions.iter().find(taken) {
        let line = a.text.position(other.range.start)["line"].as_u64().unwrap_or(0) + 1;
        return Err(format!("`%{new}` is defined already, on line {line}"));
    }
    let edits = names
        .of_definition(number)
        .map(|o| json!({ "range": a.text.range(o.range.start + 1, o.range.end), "newText": new }));
    Ok(json!({ "changes": { a.uri: edits.collect::<Vec<_>>() } }))
}

fn formatting(a: &Asked<'_>) -> Result<Value, String> {
    let text = &a.text.text;
    match format(text) {
        Ok(formatted) if formatted == *text => Ok(json!([])),
        Ok(formatted) => Ok(json!([{ "range": a.text.whole(), "newText": formatted }])),
        Err(_) => Err("a program with errors is left as it is".to_string()),
    }
}

/// The shape of each tile behind its name.
fn inlay_hints(a: &Asked<'_>) -> Result<Value, String> {
    let range = &a.params["range"];
    let (from, to) = match (a.text.offset(&range["start"]), a.text.offset(&range["end"])) {
        (Some(from), Some(to)) => (from, to),
        _ => (0, a.text.text.len()),
    };
    let within = a.known.names.definitions.iter().filter(|d| (from..=to).contains(&d.range.start));
    let hint = |d: &Definition| {
        let shape = d.shape.as_ref()?;
        // Parameters have their type beside them.
        let written = a.text.text.get(d.range.end..).is_some_and(|rest| rest.trim_start().starts_with(':'));
        (!written).then(|| {
            json!({ "position": a.text.position(d.range.end), "label": format!(": {shape}"), "kind": 1, "paddingLeft": false })
        })
    };
    Ok(within.filter_map(hint).collect())
}
