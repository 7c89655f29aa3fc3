//! One name per symbol and value of a graph, unique in it, taken from the names that front ends gave.

use std::collections::{BTreeMap, BTreeSet};

use super::Elem;
use super::ir::{Graph, SymId, ValueId};
use crate::base::id::Id;

/// Words that mean something in the text where a name could be.
const RESERVED: &[&str] = &["_", "false", "inf", "nan", "none", "true"];

/// The names of a graph as they are printed.
pub(super) struct Names {
    symbols: Vec<String>,
    values: Vec<Option<String>>,
    taken: BTreeSet<String>,
    /// The next number to try after a name.
    next: BTreeMap<String, u32>,
}

pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !is_reserved(text)
}

/// Returns true if a name is a word with a meaning of its own, an element type, or looks like an axis (`i0`).
pub(super) fn is_reserved(text: &str) -> bool {
    let axis = text.strip_prefix('i').is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
    axis || RESERVED.contains(&text) || Elem::from_name(text).is_some()
}

impl Names {
    /// Symbols first, then inputs and results in the order of the text.
    pub fn of(graph: &Graph) -> Names {
        let mut names = Names {
            symbols: vec![],
            values: vec![None; graph.values.len()],
            taken: BTreeSet::new(),
            next: BTreeMap::new(),
        };
        for symbol in graph.symbols.values() {
            let name = names.fresh(&symbol.name, "s");
            names.symbols.push(name);
        }
        let results = graph.nodes.values().flat_map(|n| n.results.iter().copied());
        for v in graph.inputs.iter().map(|i| i.value).chain(results) {
            if let Some(value) = graph.values.get(v)
                && names.values.get(v.index()).is_some_and(Option::is_none)
            {
                let name = names.fresh(&value.name, "v");
                names.values[v.index()] = Some(name);
            }
        }
        names
    }

    /// Makes the hint a name, with a number after it where the name is taken.
    pub fn fresh(&mut self, hint: &str, otherwise: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let mut base: String = hint.chars().map(plain).collect();
        if base.is_empty() {
            base = otherwise.to_string();
        } else if base.starts_with(|c: char| c.is_ascii_digit()) {
            base.insert_str(0, otherwise);
        }
        if !is_reserved(&base) && self.taken.insert(base.clone()) {
            return base;
        }
        let mut n = self.next.get(&base).copied().unwrap_or(1);
        loop {
            let name = format!("{base}_{n}");
            n += 1;
            if self.taken.insert(name.clone()) {
                self.next.insert(base, n);
                return name;
            }
        }
    }

    pub fn symbol(&self, s: SymId) -> &str {
        self.symbols.get(s.index()).map_or("?s", |n| n)
    }
    /// A value that nothing defines shows as `?v7`, which does not parse.
    pub fn value(&self, v: ValueId) -> String {
        self.values.get(v.index()).cloned().flatten().unwrap_or_else(|| format!("?v{}", v.index()))
    }
}
