//! The library's names as text: all of them by subject, or one name.

use super::{GROUPS, Kind, load, params, path_of, python};
use crate::base::words::did_you_mean;
use crate::source::expr::ast::{Expr, Kind as Node, ParamKind};
use crate::source::expr::eval::PROPERTIES;

/// One name that a text can use.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Known {
    pub group: &'static str,
    /// `torch.softmax`, `Tensor.softmax`, `torch.nn.Linear`.
    pub name: String,
    /// `(input, dim, *, dtype=None)`
    pub signature: String,
    pub doc: String,
}

fn qualified(on: &str, name: &str) -> String {
    match on {
        "python" => name.into(),
        "Tensor" => format!("Tensor.{name}"),
        on => format!("{}.{name}", path_of(on)),
    }
}

/// Every name, in the order of the groups.
pub fn table() -> Vec<Known> {
    let mut out = vec![];
    let mut entry = |group: &'static str, e: &super::Entry| {
        for on in e.on.split(' ').filter(|on| *on != "aten") {
            let (name, signature, doc) = (qualified(on, e.name()), signature(e.sig, on == "Tensor"), e.doc.to_string());
            out.push(Known { group, name, signature, doc });
        }
    };
    for (group, entries) in GROUPS {
        entries.iter().for_each(|e| entry(group, e));
    }
    python::functions().iter().for_each(|e| entry("Python", e));
    for item in load::items() {
        if item.name.starts_with('_') {
            continue;
        }
        for on in &item.on {
            let group = if on == "nn" { "Modules" } else { "Made of others" };
            let method = on == "Tensor" || on == "nn";
            let signature = item.function().map_or("()".into(), |f| python_signature(&f.params, method));
            let doc = item.doc().to_string();
            out.push(Known { group, name: qualified(on, &item.name), signature, doc });
        }
    }
    for (name, doc) in PROPERTIES {
        let (name, doc) = (format!("Tensor.{name}"), doc.to_string());
        out.push(Known { group: "Types and properties", name, signature: String::new(), doc });
    }
    out
}

fn signature(sig: &str, method: bool) -> String {
    let mut parts = vec![];
    let mut keyword_only = false;
    for p in params(sig).unwrap_or_default().iter().skip(usize::from(method)) {
        if p.keyword_only && !keyword_only {
            keyword_only = true;
            parts.push("*".to_string());
        }
        let star = if p.spread { "*" } else { "" };
        let default = match (p.default, p.optional && p.kind != Kind::Any) {
            (Some(d), _) => format!("={d}"),
            (None, true) => "=None".into(),
            _ => String::new(),
        };
        parts.push(format!("{star}{}{default}", p.name));
    }
    format!("({})", parts.join(", "))
}

fn python_signature(list: &[crate::source::expr::ast::Param], method: bool) -> String {
    let mut parts = vec![];
    let mut keyword_only = false;
    for p in list.iter().skip(usize::from(method)) {
        let star = match p.kind {
            ParamKind::Rest => "*",
            ParamKind::Keywords => "**",
            _ => "",
        };
        if p.kind == ParamKind::Rest {
            keyword_only = true;
        }
        if p.kind == ParamKind::KeywordOnly && !keyword_only {
            keyword_only = true;
            parts.push("*".into());
        }
        let default = p.default.as_ref().map_or(String::new(), |d| format!("={}", literal(d)));
        parts.push(format!("{star}{}{default}", p.name));
    }
    format!("({})", parts.join(", "))
}

fn literal(e: &Expr) -> String {
    match &e.kind {
        Node::None => "None".into(),
        Node::Bool(b) => if *b { "True" } else { "False" }.into(),
        Node::Int(i) => i.to_string(),
        Node::Float(x) => format!("{x:?}"),
        Node::Str(s) => format!("'{s}'"),
        Node::Tuple(t) if t.is_empty() => "()".into(),
        _ => "...".into(),
    }
}

/// The text of `-c help`: all names by subject, or the help of one name (`torch.softmax`, `softmax`).
pub fn help(name: Option<&str>) -> Result<String, String> {
    let all = table();
    let Some(name) = name else { return Ok(overview(&all)) };
    let short = |k: &Known| k.name.rsplit('.').next().unwrap_or(&k.name).to_string();
    let full = match name.split_once('.') {
        Some(("nn", rest)) => format!("torch.nn.{rest}"),
        Some(("F", rest)) => format!("torch.nn.functional.{rest}"),
        Some(("linalg", rest)) => format!("torch.linalg.{rest}"),
        _ => name.to_string(),
    };
    let found: Vec<&Known> = all.iter().filter(|k| k.name == full || short(k) == name).collect();
    if found.is_empty() {
        let names: Vec<String> = all.iter().flat_map(|k| [k.name.clone(), short(k)]).collect();
        let hint = did_you_mean(name, names.iter().map(String::as_str)).map_or(String::new(), |s| format!("; {s}"));
        return Err(format!("unknown name `{name}`{hint}"));
    }
    let lines: Vec<String> = found.iter().map(|k| format!("{}{}\n    {}\n", k.name, k.signature, k.doc)).collect();
    Ok(lines.concat())
}

/// The help that a text asks for: `help`, `help(torch.softmax)`. `Err` names what is unknown.
pub fn asked(text: &str) -> Option<Result<String, String>> {
    let rest = text.trim().strip_prefix("help")?.trim();
    if rest.is_empty() || rest == "()" {
        return Some(help(None));
    }
    let name = rest.strip_prefix('(')?.strip_suffix(')')?.trim().trim_matches(['\'', '"']);
    let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    plain.then(|| help(Some(name)))
}

fn overview(all: &[Known]) -> String {
    let mut out = String::from(
        "Expressions are written as in Python, with torch, torch.nn (nn), torch.nn.functional (F) and math.\n\
         `girih compile -c \"help(torch.softmax)\"` describes one name.\n",
    );
    let mut groups: Vec<&str> = vec![];
    for k in all {
        if !groups.contains(&k.group) {
            groups.push(k.group);
        }
    }
    for group in groups {
        out.push_str(&format!("\n{group}\n"));
        let mut names: Vec<&str> = all.iter().filter(|k| k.group == group).map(|k| k.name.as_str()).collect();
        names.sort_unstable();
        let mut line = String::from(" ");
        for n in names {
            if line.len() + n.len() + 1 > 110 {
                out.push_str(&line);
                out.push('\n');
                line = String::from(" ");
            }
            line.push(' ');
            line.push_str(n);
        }
        out.push_str(&line);
        out.push('\n');
    }
    out
}
