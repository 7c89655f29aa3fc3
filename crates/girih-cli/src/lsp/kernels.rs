//! Answers about Python kernels: the types that the tracer found for their names.
//!
//! In: [`Asked`], with the kernels of the script. Out: as in [`super::answers`].
//!
//! ```text
//! v = tl.load(x + i, i < n)      a hint behind `v`: `: float32[64]`; over `tl.load` its signature and its text
//! ```

use serde_json::{Value, json};

use super::answers::{Asked, markdown};
use crate::scripts::{Kernel, Kind, Role, Seen};

fn seen<'a>(a: &'a Asked<'_>) -> impl Iterator<Item = (&'a Kernel, &'a Seen)> {
    a.known.kernels.iter().flat_map(|k| k.names.iter().map(move |n| (k, n)))
}

pub fn hover(a: &Asked<'_>) -> Result<Value, String> {
    let offset = a.offset()?;
    let Some((kernel, name)) = seen(a).find(|(_, n)| (n.range.start..=n.range.end).contains(&offset)) else {
        return Ok(Value::Null);
    };
    let types = name.types.join(" or ");
    let text = match name.kind {
        Kind::Function => {
            let doc = name.doc.as_deref().map_or(String::new(), |doc| format!("\n\n{}", page(doc)));
            format!("```python\n{types}\n```{doc}")
        }
        Kind::Constant => format!("```python\n{} = {types}\n```\nknown when the kernel is compiled", name.name),
        Kind::Value => format!("```python\n{}: {types}\n```", name.name),
    };
    let guess = match kernel.guessed.is_empty() {
        true => String::new(),
        false => format!("\n\nNo launch in this file says {}: this is a guess.", kernel.guessed.join(", ")),
    };
    let guess = if name.kind == Kind::Function { String::new() } else { guess };
    Ok(json!({
        "contents": markdown(format!("{text}{guess}")),
        "range": a.text.range(name.range.start, name.range.end),
    }))
}

/// A docstring as Markdown: its example is code, and its other indented parts are lists.
fn page(doc: &str) -> String {
    let (mut out, mut code) = (String::new(), false);
    for line in doc.lines() {
        let in_code = line.trim_start().starts_with(">>>") || (code && !line.trim().is_empty());
        if in_code != code {
            out += if in_code { "```python\n" } else { "```\n" };
            code = in_code;
        }
        out += if code { line.trim_start() } else { line };
        out += "\n";
    }
    if code {
        out += "```\n";
    }
    out.trim_end().to_string()
}

/// The type behind each name that is assigned, and behind the parameters.
pub fn inlay_hints(a: &Asked<'_>) -> Result<Value, String> {
    let range = &a.params["range"];
    let (from, to) = match (a.text.offset(&range["start"]), a.text.offset(&range["end"])) {
        (Some(from), Some(to)) => (from, to),
        _ => (0, a.text.text.len()),
    };
    let within = seen(a).filter(|(_, n)| (from..=to).contains(&n.range.start));
    let hint = |(_, n): (&Kernel, &Seen)| {
        let types = n.types.join(" or ");
        let (at, label) = match (n.kind, n.role) {
            (Kind::Function, _) | (_, Role::Read) => return None,
            (Kind::Value, Role::Assigned) => (n.range.end, format!(": {types}")),
            (Kind::Value, Role::Parameter) => (a.behind_parameter(n.range.end).0, format!(": {types}")),
            // A constant that the line itself shows needs no hint.
            (Kind::Constant, Role::Assigned) if a.is_written(n) => return None,
            (Kind::Constant, _) => match a.behind_parameter(n.range.end) {
                (at, false) => (at, format!(" = {types}")),
                (_, true) => return None,
            },
        };
        Some(json!({ "position": a.text.position(at), "label": label, "kind": 1, "paddingLeft": false }))
    };
    Ok(within.filter_map(hint).collect())
}

impl Asked<'_> {
    /// The end of a parameter with its annotation, and whether a default follows.
    fn behind_parameter(&self, end: usize) -> (usize, bool) {
        let rest = self.text.text.get(end..).unwrap_or("");
        let mut depth = 0;
        for (at, c) in rest.char_indices() {
            match c {
                '[' | '(' => depth += 1,
                ']' => depth -= 1,
                ')' if depth > 0 => depth -= 1,
                '=' if depth == 0 => return (end + rest.get(..at).unwrap_or("").trim_end().len(), true),
                ',' | ')' | '\n' if depth == 0 => return (end + at, false),
                _ => {}
            }
        }
        (end, false)
    }

    /// Returns true if a constant is assigned as the line shows it: `acc = 0.0`.
    fn is_written(&self, n: &Seen) -> bool {
        let line = self.text.text.get(n.range.end..).and_then(|t| t.lines().next()).unwrap_or("");
        n.types
            .iter()
            .any(|t| line.trim_start().strip_prefix('=').is_some_and(|value| value.trim().starts_with(t.as_str())))
    }
}
