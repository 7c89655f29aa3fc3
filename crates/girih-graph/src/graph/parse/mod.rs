//! Reads the text of Torch IR and Tensor IR; the grammar is in `graph/print.rs`.
//!
//! In: the text, and a way to fetch the elements of constants that the text refers to by name. Out: the graph, its
//! stage, and the place of each node in the text. The parser checks only what it needs to build the graph (names,
//! literals, element counts of constants). `graph::verify` checks types and what a stage allows; [`check`] does both.

mod exprs;
mod terms;

use std::collections::BTreeMap;

use bytes::Bytes;

use super::assume::Asked;
use super::build::repeat::{close, open};
use super::ir::*;
use super::names::is_reserved;
use super::print::Dialect;
use super::{Elem, symbolic_ints, verify};
use crate::base::lines::{Cursor, Tok, lex};
use crate::base::{Code, Diagnostic, Span};
use crate::index::{Facts, Ix};

/// Fetches the elements that a text refers to as `data("name")`.
pub type Data<'a> = dyn Fn(&str) -> Option<Bytes> + 'a;

/// A [`Data`] for texts that hold all their constants.
pub fn no_data(_: &str) -> Option<Bytes> {
    None
}

/// A text that was read.
#[derive(Clone, Debug)]
pub struct Parsed {
    pub graph: Graph,
    pub dialect: Dialect,
    /// The place of each node.
    pub spans: Vec<Span>,
}

/// Reads one graph.
///
/// # Errors
/// `E0807`, at the first place that does not follow the grammar.
pub fn parse(text: &str, data: &Data<'_>) -> Result<Parsed, Diagnostic> {
    let tokens = lex(text, Code::BadGraph)?;
    let mut p = Parser {
        c: Cursor::new(&tokens, Code::BadGraph),
        graph: Graph::default(),
        facts: Facts::new(),
        names: BTreeMap::new(),
        data,
        spans: vec![],
        last: None,
    };
    let dialect = p.graph()?;
    if !p.c.is(&Tok::End) {
        return p.c.expected("the end of the text");
    }
    Ok(Parsed { graph: p.graph, dialect, spans: p.spans })
}

/// Reads and verifies one graph.
///
/// # Errors
/// `E0807`: the first place that does not follow the grammar, or everything that breaks a rule of the stage.
pub fn check(text: &str, data: &Data<'_>) -> Result<(Graph, Dialect), Vec<Diagnostic>> {
    let parsed = parse(text, data).map_err(|d| vec![d])?;
    let found = verify::verify(&parsed.graph, parsed.dialect);
    if found.is_empty() {
        return Ok((parsed.graph, parsed.dialect));
    }
    let placed = |p: verify::Problem| {
        let span = p.node.and_then(|n| parsed.spans.get(n.0 as usize).copied());
        let d = p.diagnostic();
        match span {
            Some(span) => d.at(span),
            None => d,
        }
    };
    Err(found.into_iter().map(placed).collect())
}

type Res<T> = Result<T, Diagnostic>;

#[derive(Clone, Copy, PartialEq)]
enum Thing {
    Symbol(SymId),
    Value(ValueId),
}

struct Parser<'t, 'a> {
    c: Cursor<'t, 'a>,
    graph: Graph,
    facts: Facts,
    names: BTreeMap<&'a str, Thing>,
    data: &'t Data<'t>,
    spans: Vec<Span>,
    /// The origin of the last node.
    last: Option<OriginId>,
}

/// A type as it is written.
type Type = (Elem, Vec<Ix>);

impl<'t, 'a> Parser<'t, 'a> {
    /// A new name.
    fn name(&mut self) -> Res<(&'a str, Span)> {
        let span = self.c.span();
        match *self.c.tok() {
            Tok::Word(w) if !w.contains('.') && !is_reserved(w) => {
                self.c.next();
                Ok((w, span))
            }
            Tok::Word(w) => self.c.fail(format!("`{w}` cannot be used as a name")),
            _ => self.c.expected("a name"),
        }
    }
    fn define(&mut self, name: &'a str, span: Span, thing: Thing) -> Res<()> {
        match self.names.insert(name, thing) {
            None => Ok(()),
            Some(_) => self.c.fail_at(span, format!("`{name}` is defined twice")),
        }
    }
    /// The string after a name, where the real one differs.
    fn real(&mut self, name: &str) -> Res<String> {
        if matches!(self.c.tok(), Tok::Str(_)) { self.c.string() } else { Ok(name.to_string()) }
    }

    fn graph(&mut self) -> Res<Dialect> {
        let dialect =
            self.c.choice(&[("torch", Dialect::Torch), ("tensor", Dialect::Tensor)], "`torch` or `tensor`")?;
        self.c.word("graph")?;
        let (name, _) = self.name()?;
        self.graph.name = self.real(name)?;
        self.c.punct("(")?;
        while !self.c.eat(")") {
            let (name, span) = self.name()?;
            let real = self.real(name)?;
            self.c.word("in")?;
            let lo = self.integer()?;
            self.c.punct("..")?;
            let bounded = matches!(self.c.tok(), Tok::Number(_)) || self.c.is_punct("-");
            let hi = if bounded { Some(self.integer()?) } else { None };
            if !Symbol::is_range(lo, hi) {
                return self.c.fail_at(span, "the range of a symbol is empty, or not within -2^40 and 2^40");
            }
            let sym = self.graph.add_symbol(&real, lo, hi);
            self.define(name, span, Thing::Symbol(sym))?;
            if !self.c.is_punct(")") {
                self.c.punct(",")?;
            }
        }
        self.facts = self.graph.facts();
        if self.c.eat_word("where") {
            self.graph.guards = self.mask()?.conds;
        }
        if self.c.eat_word("of") {
            self.graph.strings.push(self.c.string()?);
            while self.c.eat(",") {
                self.graph.strings.push(self.c.string()?);
            }
        }
        self.c.punct(":")?;
        self.c.end_line()?;
        if !self.c.is(&Tok::Indent) {
            return Ok(dialect);
        }
        self.statements()?;
        Ok(dialect)
    }

    /// Indented statements.
    fn statements(&mut self) -> Res<()> {
        self.c.next();
        while !self.c.is(&Tok::Dedent) {
            self.statement()?;
            // A loop ends with its body.
            if !matches!(self.c.last().map(|t| &t.tok), Some(Tok::Dedent)) {
                self.c.end_line()?;
            }
        }
        self.c.next();
        Ok(())
    }

    /// Parses the text after the head of a loop: the statements of its body, which knows the symbols and none of the
    /// values.
    fn body(&mut self) -> Res<Graph> {
        self.c.punct(":")?;
        self.c.end_line()?;
        if !self.c.is(&Tok::Indent) {
            return self.c.expected("the body of the loop");
        }
        let body = open(&mut self.graph);
        let outer = std::mem::replace(&mut self.graph, body);
        let symbols = self.names.iter().filter(|(_, thing)| matches!(thing, Thing::Symbol(_)));
        let symbols = symbols.map(|(name, thing)| (*name, *thing)).collect();
        let names = std::mem::replace(&mut self.names, symbols);
        let (spans, last) = (self.spans.len(), self.last.take());
        let outcome = self.statements();
        let body = std::mem::replace(&mut self.graph, outer);
        close(&mut self.graph, &body);
        self.names = names;
        self.spans.truncate(spans);
        self.last = last;
        outcome.map(|()| body)
    }

    fn statement(&mut self) -> Res<()> {
        if self.c.is_word("output") && !matches!(self.c.peek(1), Tok::Punct(":")) {
            self.c.next();
            return self.output();
        }
        let start = self.c.span();
        let (name, span) = self.name()?;
        let real = self.real(name)?;
        self.c.punct(":")?;
        let ty = self.ty()?;
        let mut results = vec![(name, span, ty)];
        while self.c.eat(",") {
            let (name, span) = self.name()?;
            self.c.punct(":")?;
            results.push((name, span, self.ty()?));
        }
        self.c.punct("=")?;
        let role = match self.c.tok() {
            Tok::Word("input") => Some(Role::Argument),
            Tok::Word("parameter") => Some(Role::Parameter),
            _ => None,
        };
        if let (Some(role), [(name, span, (elem, shape))]) = (role, &results[..]) {
            self.c.next();
            let fill = self.fill()?;
            let v = self.graph.add_input(&real, *elem, shape.clone(), role);
            if let Some(input) = self.graph.inputs.last_mut() {
                input.fill = fill;
            }
            return self.define(name, *span, Thing::Value(v));
        }
        if real != name {
            return self.c.fail_at(start, "only inputs can have a second name");
        }
        self.node(start, results)
    }

    fn output(&mut self) -> Res<()> {
        let span = self.c.span();
        let label = match self.c.tok() {
            Tok::Str(s) => Some(s.clone()),
            Tok::Word(w) if matches!(self.c.peek(1), Tok::Punct("=")) => Some(w.to_string()),
            _ => None,
        };
        if label.is_some() {
            self.c.next();
            self.c.punct("=")?;
        }
        let value = self.value()?;
        let name = match (label, self.c.last().map(|t| &t.tok)) {
            (Some(label), _) => label,
            (None, Some(Tok::Word(w))) => w.to_string(),
            _ => return self.c.fail_at(span, "an output needs a name"),
        };
        self.graph.outputs.push(Output { name, value });
        Ok(())
    }

    fn fill(&mut self) -> Res<Fill> {
        let Tok::Word(w) = *self.c.tok() else { return Ok(Fill::Given) };
        self.c.next();
        if w == "normal" {
            return Ok(Fill::Normal);
        }
        self.c.punct("(")?;
        let fill = match w {
            "uniform" => {
                let lo = self.float()?;
                self.c.punct(",")?;
                Fill::Uniform { lo, hi: self.float()? }
            }
            "integers" => {
                let lo = self.integer()?;
                self.c.punct(",")?;
                Fill::Integers { lo, hi: self.integer()? }
            }
            "constant" => Fill::Constant(self.float()?),
            _ => return self.c.fail(format!("unknown way to fill an input: `{w}`")),
        };
        self.c.punct(")")?;
        Ok(fill)
    }

    fn ty(&mut self) -> Res<Type> {
        let elem = self.elem()?;
        self.c.punct("[")?;
        let mut shape = vec![];
        while !self.c.eat("]") {
            let span = self.c.span();
            let extent = self.ix()?;
            if extent.as_const().is_some_and(|n| !(0..=MAX_EXTENT).contains(&n)) {
                return self.c.fail_at(span, "an extent must be a number from 0 to 2^40");
            }
            if extent.any_leaf(&mut |l| matches!(l, Ix::Axis(_))) {
                return self.c.fail_at(span, "an extent must not depend on a position");
            }
            shape.push(extent);
            if !self.c.is_punct("]") {
                self.c.punct(",")?;
            }
        }
        Ok((elem, shape))
    }

    fn elem(&mut self) -> Res<Elem> {
        match self.c.tok() {
            Tok::Word(w) => match Elem::from_name(w) {
                Some(e) => {
                    self.c.next();
                    Ok(e)
                }
                None => self.c.expected("an element type"),
            },
            _ => self.c.expected("an element type"),
        }
    }

    /// Appends a node and defines its results.
    fn push(&mut self, start: Span, mut op: Op, args: Vec<Arg>, results: Vec<(&'a str, Span, Type)>) -> Res<()> {
        let origin = self.origin(&op)?;
        if let Op::Repeat(r) = &mut op {
            r.body = self.body()?;
        }
        let types = results.iter().map(|(n, _, (e, s))| (n.to_string(), *e, s.clone())).collect();
        let id = self.graph.add_node(op, args, types, origin);
        let values = self.graph.nodes[id].results.clone();
        if let Some(&v) = values.first() {
            let followed = symbolic_ints::ints(&self.graph, id, &self.facts, &Asked::default());
            let known = followed.filter(|f| f.guards.iter().all(|cond| self.graph.guards.contains(cond)));
            self.graph.values[v].ints = known.map(|f| f.ints);
        }
        for (v, (name, span, _)) in values.into_iter().zip(results) {
            self.define(name, span, Thing::Value(v))?;
        }
        let end = self.c.last().map_or(start, |t| t.span);
        self.spans.push(Span { start: start.start, end: end.end });
        Ok(())
    }

    fn origin(&mut self, op: &Op) -> Res<OriginId> {
        let source = match op {
            Op::Source { name, .. } => Some(name.clone()),
            _ => None,
        };
        if !self.c.eat("!") {
            let id = match (source, self.last) {
                (Some(op), _) => self.graph.add_origin(&op, "", None),
                (None, Some(id)) => id,
                (None, None) => self.graph.add_origin("", "", None),
            };
            self.last = Some(id);
            return Ok(id);
        }
        let op = match *self.c.tok() {
            Tok::Word("op") => {
                self.c.next();
                self.c.string()?
            }
            Tok::Word(w) => {
                self.c.next();
                w.to_string()
            }
            _ => source.unwrap_or_default(),
        };
        let name = if matches!(self.c.tok(), Tok::Str(_)) { self.c.string()? } else { String::new() };
        let id = self.graph.add_origin(&op, &name, None);
        self.last = Some(id);
        Ok(id)
    }
}
