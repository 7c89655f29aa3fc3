//! The instructions of a function, by their layouts.

use super::Writer;
use super::buffer::Buffer;
use crate::cuda_tile::bytecode::layout::{self, Field, Layout, Operands, Presence};
use crate::cuda_tile::bytecode::tags::Since;
use crate::cuda_tile::ir::*;
use crate::cuda_tile::ops::{self, Arity, AttrKind};

/// A function while it is written.
pub(super) struct Body<'w, 'm> {
    w: &'w mut Writer<'m>,
    f: &'m Func,
    /// The number of each value; the numbers of a region's values are used again after it.
    numbers: Vec<u64>,
    next: u64,
    /// The debug attribute of each operation, in the order of the bytes.
    pub places: Vec<u64>,
    /// Results that the version does not have.
    dropped: Vec<(ValueId, &'static Layout)>,
}

impl<'w, 'm> Body<'w, 'm> {
    pub fn new(w: &'w mut Writer<'m>, f: &'m Func) -> Body<'w, 'm> {
        Body { w, f, numbers: vec![u64::MAX; f.values.len()], next: 0, places: vec![], dropped: vec![] }
    }

    pub fn write(&mut self) -> Buffer {
        let mut out = Buffer::default();
        self.define(self.f.params());
        for &id in &self.f.regions[Func::BODY].ops {
            self.op(&self.f.ops[id], &mut out);
        }
        out
    }

    fn define(&mut self, values: &[ValueId]) {
        for &v in values {
            self.numbers[v.0 as usize] = self.next;
            self.next += 1;
        }
    }

    fn op(&mut self, op: &'m Op, out: &mut Buffer) {
        let name = ops::info(op.opcode).name;
        let Some(layout) = layout::layout(op.opcode) else {
            return self.w.no_form(op.span, format!("the operation `{name}`"));
        };
        self.w.needs(layout.since, op.span, || format!("the operation `{name}`"));
        let place = self.w.place(&op.loc);
        self.places.push(place);

        let kept = match layout.results(self.w.version).is_empty() {
            true => &[],
            false => &op.results[..],
        };
        out.varint(layout.code.into());
        if layout.counted_results {
            out.varint(kept.len() as u64);
        }
        for &r in kept {
            let n = self.w.ty(self.f.ty(r), op.span);
            out.varint(n);
        }
        if let Some(since) = layout.flags {
            self.flags(layout, since, op, out);
        }
        for field in &layout.fields {
            self.field(field, op, out);
        }
        self.operands(layout, op, out);
        if layout.regions > 0 {
            out.varint(layout.regions as u64);
            for i in 0..layout.regions {
                self.region(op.regions.get(i).copied(), out);
            }
        }
        self.define(kept);
        self.dropped.extend(op.results[kept.len()..].iter().map(|&r| (r, layout)));
    }

    /// One bit for each attribute and operand that may be absent; it is set if that is present.
    fn flags(&mut self, layout: &Layout, since: Since, op: &Op, out: &mut Buffer) {
        let mut word = 0u64;
        for field in &layout.fields {
            let (bit, set) = match field.presence {
                Presence::Always => continue,
                Presence::IfFlag(bit) => (bit, op.attr(field.attr.key).is_some()),
                Presence::Flag(bit) => (bit, op.flag(field.attr.key)),
            };
            if set {
                word |= 1 << bit;
                self.w.needs(since, op.span, || format!("`{}` of `{}`", field.attr.name, layout.info.name));
            }
        }
        for (g, (bit, group)) in layout.operand_bits.iter().zip(&layout.info.operands).enumerate() {
            if let (Some(bit), false) = (bit, op.group(g).is_empty()) {
                word |= 1 << bit;
                self.w.needs(since, op.span, || format!("the operand `{}` of `{}`", group.name, layout.info.name));
            }
        }
        if self.w.version.has(since) {
            out.varint(word);
        }
    }

    fn field(&mut self, field: &Field, op: &'m Op, out: &mut Buffer) {
        let given = op.attr(field.attr.key);
        match (field.presence, given) {
            (Presence::Flag(_), _) | (Presence::IfFlag(_), None) => {}
            (_, Some(value)) if self.w.version.has(field.since) => self.w.attr(value, op.span, out),
            (_, Some(value)) => {
                if !says_nothing(field, value) {
                    let name = ops::info(op.opcode).name;
                    self.w.needs(field.since, op.span, || format!("`{}` of `{name}`", field.attr.name));
                }
            }
            (Presence::Always, None) if !self.w.version.has(field.since) => {}
            // One truth value for each index, none of them true.
            (Presence::Always, None) if field.attr.kind == AttrKind::Bools => {
                let indices = ops::info(op.opcode).group("index").map_or(0, |g| op.group(g).len());
                out.varint(indices as u64);
                out.bytes(&vec![0; indices]);
            }
            (Presence::Always, None) => out.varint(default_number(field)),
        }
    }

    fn operands(&mut self, layout: &Layout, op: &Op, out: &mut Buffer) {
        if layout.operands == Operands::Total {
            out.varint(op.operands.len() as u64);
        }
        for (g, group) in layout.info.operands.iter().enumerate() {
            let values = op.group(g);
            if layout.operands == Operands::Groups && group.arity == Arity::Many {
                out.varint(values.len() as u64);
            }
            for v in values {
                if let Some((_, by)) = self.dropped.iter().find(|(d, _)| d == v) {
                    self.w.needs(by.results_since, op.span, || format!("the result of `{}`", by.info.name));
                }
                out.varint(self.numbers[v.0 as usize]);
            }
        }
    }

    /// A region of one block, or of no block if it is missing.
    fn region(&mut self, region: Option<RegionId>, out: &mut Buffer) {
        let Some(region) = region.and_then(|r| self.f.regions.get(r)) else {
            out.varint(0);
            return;
        };
        let outside = self.next;
        out.varint(1);
        out.varint(region.args.len() as u64);
        for &arg in &region.args {
            let n = self.w.ty(self.f.ty(arg), self.f.values[arg].span);
            out.varint(n);
        }
        self.define(&region.args);
        out.varint(region.ops.len() as u64);
        for &id in &region.ops {
            self.op(&self.f.ops[id], out);
        }
        self.next = outside;
    }
}

/// Returns true if a value of an attribute means the same as its absence.
fn says_nothing(field: &Field, value: &Attr) -> bool {
    field.is_default(value) || matches!(value, Attr::Bools(list) if !list.contains(&true))
}

/// The number of the default word, which an absent attribute stands for.
fn default_number(field: &Field) -> u64 {
    let position = |words: Vec<&str>| words.iter().position(|w| *w == field.attr.default);
    field.attr.words().and_then(position).unwrap_or(0) as u64
}
