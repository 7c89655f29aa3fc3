//! Parses the text after `=`: one node.

use bytes::Bytes;

use super::terms::Raw;
use super::{Parser, Res, Type};
use crate::base::Span;
use crate::base::lines::Tok;
use crate::graph::Elem;
use crate::graph::ir::{
    Arg, Attrs, ConstData, Constant, Coord, Graph, MapSource, Op, Part, ReduceOp, Repeat, ScanOp, ScatterOp,
};
use crate::graph::print::{FOLDS, MOST_INLINE, SCANS, SCATTERS, context};
use crate::index::Mask;
use crate::num::spell::{Class, parse_op};

/// More results than any operation has.
const MAX_RESULTS: usize = 256;

impl<'a> Parser<'_, 'a> {
    pub(super) fn node(&mut self, start: Span, results: Vec<(&'a str, Span, Type)>) -> Res<()> {
        let Some((_, _, (elem, _))) = results.first() else { return self.c.expected("a result") };
        let elem = *elem;
        if results.len() > MAX_RESULTS {
            return self.c.fail_at(start, "this operation has too many results");
        }
        let span = self.c.span();
        if let Tok::Str(_) = self.c.tok() {
            let name = self.c.string()?;
            return self.source(start, name, results, elem);
        }
        let Tok::Word(w) = *self.c.tok() else { return self.c.expected("an operation") };
        self.c.next();
        let (op, args) = match w {
            "constant" => {
                let (_, _, ty) = results.first().ok_or(()).or_else(|()| self.c.expected("a result"))?;
                let name = results.first().map_or("", |r| r.0);
                let constant = self.constant(name, ty)?;
                (Op::Constant(self.graph.constants.push(constant)), vec![])
            }
            "index" => (Op::Index(self.ix()?), vec![]),
            "reduce" => self.reduce(elem)?,
            "map" => self.map(elem)?,
            "gather" => {
                let mut args = vec![Arg::Value(self.value()?)];
                let coords = self.places(&mut args)?;
                (Op::Gather(coords), args)
            }
            "scatter" => {
                let op: ScatterOp = self.c.choice(&SCATTERS, "how elements are combined")?;
                let mut args = vec![Arg::Value(self.value()?)];
                let coords = self.places(&mut args)?;
                self.c.word("from")?;
                args.push(Arg::Value(self.value()?));
                (Op::Scatter { coords, op }, args)
            }
            "scan" => {
                let op: ScanOp = self.c.choice(&SCANS, "a running fold")?;
                let x = self.value()?;
                self.c.word("along")?;
                let axis = self.small("axis")?;
                let exclusive = self.c.eat_word("exclusive");
                let reverse = self.c.eat_word("reverse");
                (Op::Scan { op, axis, exclusive, reverse }, vec![x.into()])
            }
            "repeat" => self.repeat()?,
            "sort" => {
                let x = self.value()?;
                self.c.word("along")?;
                let axis = self.small("axis")?;
                let descending = self.c.eat_word("descending");
                let runs = if self.c.eat_word("runs") { Some(self.small("runs")?) } else { None };
                (Op::Sort { axis, descending, runs }, vec![x.into()])
            }
            _ => match parse_op(w, Class::of(elem.dtype)) {
                Some(op) => {
                    let op = Op::Elementwise(op);
                    let args = self.args(&op, elem)?;
                    (op, args)
                }
                None if w.contains('.') => return self.source(start, w.to_string(), results, elem),
                None => return self.c.fail_at(span, format!("unknown operation `{w}`")),
            },
        };
        self.push(start, op, args, results)
    }

    /// The head of a loop.
    fn repeat(&mut self) -> Res<(Op, Vec<Arg>)> {
        let rounds = self.ix()?;
        let conditional = self.c.eat_word("while");
        let mut args = vec![];
        let (mut rows, mut given) = (vec![], vec![]);
        if self.c.eat_word("carry") {
            self.values(&mut args)?;
        }
        let carried = args.len() as u32;
        if self.c.eat_word("over") {
            loop {
                args.push(self.value()?.into());
                rows.push(self.c.eat_word("reverse"));
                if !self.c.eat(",") {
                    break;
                }
            }
        }
        if self.c.eat_word("read") {
            self.values(&mut args)?;
        }
        if self.c.eat_word("give") {
            loop {
                given.push(self.c.choice(&[("forward", false), ("reverse", true)], "`forward` or `reverse`")?);
                if !self.c.eat(",") {
                    break;
                }
            }
        }
        // Its body stands behind the origin.
        let body = Graph::default();
        Ok((Op::Repeat(Box::new(Repeat { body, rounds, conditional, carried, rows, given })), args))
    }

    fn values(&mut self, to: &mut Vec<Arg>) -> Res<()> {
        loop {
            to.push(self.value()?.into());
            if !self.c.eat(",") {
                return Ok(());
            }
        }
    }

    fn source(&mut self, start: Span, name: String, results: Vec<(&'a str, Span, Type)>, elem: Elem) -> Res<()> {
        let mut op = Op::Source { name, attrs: Attrs::new() };
        let none = self.c.is_word("with") || self.c.is_punct("!") || matches!(self.c.tok(), Tok::Newline);
        let args = if none { vec![] } else { self.args(&op, elem)? };
        let mut all = Attrs::new();
        if self.c.eat_word("with") {
            loop {
                let span = self.c.span();
                let name = match self.c.tok() {
                    Tok::Str(s) => s.clone(),
                    Tok::Word(w) => w.to_string(),
                    _ => return self.c.expected("the name of an attribute"),
                };
                self.c.next();
                self.c.punct("=")?;
                let attr = self.attr(0)?;
                if all.insert(name.clone(), attr).is_some() {
                    return self.c.fail_at(span, format!("`{name}` is given twice"));
                }
                if !self.c.eat(",") {
                    break;
                }
            }
        }
        if let Op::Source { attrs, .. } = &mut op {
            *attrs = all;
        }
        self.push(start, op, args, results)
    }

    /// Operands; constants without a type have that of the context.
    fn args(&mut self, op: &Op, result: Elem) -> Res<Vec<Arg>> {
        let mut raw = vec![self.raw()?];
        while self.c.eat(",") {
            raw.push(self.raw()?);
        }
        let known: Vec<Arg> = raw.iter().map(|r| if let Raw::Arg(a) = r { *a } else { Arg::Absent }).collect();
        let elem = context(op, &known, |v| self.graph.values.get(v).map(|v| v.elem)).unwrap_or(result);
        raw.into_iter().map(|r| self.resolve(r, elem)).collect()
    }

    fn reduce(&mut self, elem: Elem) -> Res<(Op, Vec<Arg>)> {
        let op: ReduceOp = self.c.choice(&FOLDS, "a fold")?;
        let plain = Op::Reduce { op, axes: vec![] };
        let args = self.args(&plain, elem)?;
        self.c.word("over")?;
        let mut axes = vec![];
        if !self.c.eat_word("none") {
            axes.push(self.small("axis")?);
            while self.c.eat(",") {
                axes.push(self.small("axis")?);
            }
        }
        Ok((Op::Reduce { op, axes }, args))
    }

    /// The position of a value among arguments, at the end if it is new.
    fn position(args: &mut Vec<Arg>, a: Arg) -> u32 {
        let at = args.iter().position(|b| *b == a).unwrap_or_else(|| {
            args.push(a);
            args.len() - 1
        });
        at as u32
    }

    fn map(&mut self, elem: Elem) -> Res<(Op, Vec<Arg>)> {
        let (mut args, mut sources) = (vec![], vec![]);
        loop {
            let (arg, coords) = match self.literal()? {
                Some(raw) => (self.resolve(raw, elem)?, vec![]),
                None => {
                    let v = self.value()?;
                    self.c.punct("[")?;
                    let mut coords = vec![];
                    while !self.c.eat("]") {
                        coords.push(self.ix()?);
                        if !self.c.is_punct("]") {
                            self.c.punct(",")?;
                        }
                    }
                    (Arg::Value(v), coords)
                }
            };
            let when = if self.c.eat_word("where") { self.mask()? } else { Mask::default() };
            sources.push(MapSource { arg: Self::position(&mut args, arg), coords, when });
            if !self.c.eat_word("else") {
                return Ok((Op::IndexMap(sources), args));
            }
        }
    }

    /// The coordinates of a gather or scatter; index tensors become arguments after the first.
    fn places(&mut self, args: &mut Vec<Arg>) -> Res<Vec<Coord>> {
        self.c.punct("[")?;
        let mut indices = vec![];
        let mut coords = vec![];
        while !self.c.eat("]") {
            coords.push(if self.is_value() {
                let v = self.value()?;
                Coord::Arg(1 + Self::position(&mut indices, v.into()))
            } else {
                Coord::Ix(self.ix()?)
            });
            if !self.c.is_punct("]") {
                self.c.punct(",")?;
            }
        }
        args.extend(indices);
        Ok(coords)
    }

    fn constant(&mut self, name: &str, (elem, shape): &Type) -> Res<Constant> {
        let span = self.c.span();
        let extents: Option<Vec<u64>> =
            shape.iter().map(|d| d.as_const().and_then(|d| u64::try_from(d).ok())).collect();
        let Some(shape) = extents else { return self.c.fail("the shape of a constant must be known") };
        let count = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        let of = |name: String, data| Constant { name, elem: *elem, shape: shape.clone(), data };
        if self.c.eat_word("data") {
            self.c.punct("(")?;
            let name = self.c.string()?;
            self.c.punct(")")?;
            let Some(bytes) = (self.data)(&name) else {
                return self.c.fail_at(span, format!("the elements of `{name}` are not in the text"));
            };
            let wanted = count.and_then(|n| crate::graph::eval::bytes_of(*elem, n));
            if wanted != Some(bytes.len() as u64) {
                return self
                    .c
                    .fail_at(span, format!("`{name}` holds {} bytes, which does not match its shape", bytes.len()));
            }
            return Ok(of(name, ConstData::Bytes(bytes)));
        }
        if self.c.eat_word("external") {
            self.c.punct("(")?;
            let name = self.c.string()?;
            self.c.punct(",")?;
            let file = self.c.string()?;
            self.c.punct(",")?;
            let part = if matches!(self.c.tok(), Tok::Str(_)) {
                Part::Tensor(self.c.string()?)
            } else {
                Part::Offset(self.bytes()?)
            };
            self.c.punct(",")?;
            let len = self.bytes()?;
            self.c.punct(")")?;
            return Ok(of(name, ConstData::External { file, part, len }));
        }
        self.c.punct("[")?;
        let mut bits = vec![];
        while !self.c.eat("]") {
            let span = self.c.span();
            let Some(raw) = self.literal()? else { return self.c.expected("a constant") };
            match self.resolve(raw, *elem)? {
                Arg::Scalar { elem: found, bits: b } if found == *elem => bits.push(b),
                _ => return self.c.fail_at(span, format!("expected a constant of type {elem}")),
            }
            if !self.c.is_punct("]") {
                self.c.punct(",")?;
            }
        }
        if Some(bits.len() as u64) != count {
            let want = count.map_or("too many".to_string(), |n| n.to_string());
            return self.c.fail_at(span, format!("{} elements are given, but the shape has {want}", bits.len()));
        }
        if bits.len() as u64 > MOST_INLINE {
            let message = format!("more than {MOST_INLINE} elements are not written out; refer to them with `data`");
            return self.c.fail_at(span, message);
        }
        let bytes =
            crate::graph::eval::Tensor::from_bits(*elem, &shape, bits).map(|t| t.to_bytes()).unwrap_or_default();
        Ok(of(name.to_string(), ConstData::Bytes(Bytes::from(bytes))))
    }
}
