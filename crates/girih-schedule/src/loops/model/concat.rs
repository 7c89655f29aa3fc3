//! Maps of many sources, such as a concatenation of a thousand tensors: each source gets loops of its own.
//!
//! ```text
//! y [300] = map a[i0] where i0 < 100, b[i0 - 100] where i0 < 200, c[i0 - 200]
//!   -->   for i in 0..100: y[i] = a[i];   for i in 0..100: y[100 + i] = b[i];   for i in 0..100: y[200 + i] = c[i]
//! ```
//!
//! Written as one expression, every element would choose among all sources. Instead a step writes the positions of a few
//! sources ([`IN_A_STEP`]), so that steps, and the functions they become, stay small however many sources there are.
//!
//! In: a map whose sources follow one another along an axis. Out: the parts, and the loops of some of them. Other maps,
//! and arrays in which two elements share a byte, are not such maps.

use super::builder::{NestBuilder, Result};
use super::rows;
use crate::graph::build::Refusal;
use crate::graph::ir::{Arg, Graph, MapSource, Op, ValueId};
use crate::index::{Cmp, Cond, Ix, ValId, simplify};
use crate::loops::ir::{Kernel, LoopKind};

/// The most sources of a map that is written as one expression.
pub(super) const MOST_SOURCES: usize = 16;
/// The most sources whose positions one step writes.
pub(super) const IN_A_STEP: usize = 16;

/// The positions `lo..lo + extent` along an axis, and the source that is read there.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub source: usize,
    pub axis: usize,
    pub lo: Ix,
    pub extent: Ix,
}

impl Part {
    /// The extents of the part in a tensor of this shape.
    pub fn shape(&self, of: &[Ix]) -> Vec<Ix> {
        of.iter().enumerate().map(|(d, n)| if d == self.axis { self.extent.clone() } else { n.clone() }).collect()
    }

    /// The map's argument that is read, and its coordinates at the part's element `at`.
    pub fn read(&self, sources: &[MapSource], args: &[Arg], at: &[Ix]) -> Option<(Arg, Vec<Ix>)> {
        let source = sources.get(self.source)?;
        let place = |a: crate::index::AxisId| at.get(a.0 as usize).cloned();
        let coords = source.coords.iter().map(|c| c.subst_axes(&mut { place })).collect();
        Some((*args.get(source.arg as usize)?, coords))
    }

    /// A position in the part as one in the whole.
    pub fn place(&self, mut at: Vec<Ix>) -> Vec<Ix> {
        if let Some(c) = at.get_mut(self.axis) {
            *c = Ix::add(self.lo.clone(), c.clone());
        }
        at
    }
}

/// The parts of a map of many sources; `None` where a value is not one, or its sources do not follow one another.
pub(super) fn of(graph: &Graph, v: ValueId) -> Option<Vec<Part>> {
    let (node, _) = graph.def(v)?;
    let Op::IndexMap(sources) = &node.op else { return None };
    let info = &graph.values[v];
    if sources.len() <= MOST_SOURCES || info.elem.dtype.bits() == 4 {
        return None;
    }
    let facts = graph.facts();
    let [first] = &sources.first()?.when.conds[..] else { return None };
    let [along] = first.lhs.axes()[..] else { return None };
    let axis = along.0 as usize;
    let whole = info.shape.get(axis)?;
    let (mut parts, mut lo) = (vec![], Ix::Const(0));
    for (at, source) in sources.iter().enumerate() {
        let hi = match &source.when.conds[..] {
            [] if source.when.is_always() => whole.clone(),
            // `i + rest < end`
            [cond] if cond.cmp == Cmp::Lt && source.when.vals.is_empty() && cond.rhs.axes().is_empty() => {
                let (one, rest) = cond.lhs.linear(along)?;
                if !one.is_const(1) || !rest.axes().is_empty() {
                    return None;
                }
                simplify(&Ix::sub(cond.rhs.clone(), rest), &facts)
            }
            _ => return None,
        };
        let sure = |a: &Ix, b: &Ix| facts.decide(&Cond::new(a.clone(), Cmp::Le, b.clone())) == Some(true);
        if !sure(&lo, &hi) || !sure(&hi, whole) {
            return None;
        }
        let extent = simplify(&Ix::sub(hi.clone(), lo.clone()), &facts);
        if !extent.is_const(0) {
            parts.push(Part { source: at, axis, lo, extent });
        }
        if source.when.is_always() {
            return Some(parts);
        }
        lo = hi;
    }
    None
}

/// The values that parts read.
pub(super) fn operands(graph: &Graph, v: ValueId, parts: &[Part]) -> Vec<ValueId> {
    let Some((node, _)) = graph.def(v) else { return vec![] };
    let Op::IndexMap(sources) = &node.op else { return vec![] };
    let arg = |p: &Part| node.args.get(sources.get(p.source)?.arg as usize).copied();
    parts.iter().filter_map(arg).filter_map(|a| if let Arg::Value(v) = a { Some(v) } else { None }).collect()
}

/// Emits the loops of some parts, one after the other.
pub(super) fn write(mut e: NestBuilder<'_>, v: ValueId, out: ValId, parts: &[Part]) -> Result<Kernel> {
    let graph = e.graph;
    let Some((node, _)) = graph.def(v) else { return Err(Refusal::new("an input has no kernel")) };
    let Op::IndexMap(sources) = &node.op else { return Err(Refusal::new("only maps have parts")) };
    let shape = graph.values[v].shape.clone();
    let one = |e: &mut NestBuilder<'_>, part: &Part| {
        let mut at = vec![Ix::Const(0); shape.len()];
        let before = e.depth();
        for (d, (c, n)) in at.iter_mut().zip(&part.shape(&shape)).enumerate() {
            if !n.is_const(1) || d == part.axis {
                *c = Ix::Axis(e.open(&format!("a{d}"), n.clone(), LoopKind::Free));
            }
        }
        let at = part.place(at);
        let Some((arg, coords)) = part.read(sources, &node.args, &at) else {
            return Err(Refusal::new("a source of a map reads nothing"));
        };
        let value = e.operand(arg, &coords)?;
        e.store(out, v, &at, value, node.origin);
        e.close_to(before);
        Ok(())
    };
    for part in parts {
        e.made_for(v, |e| one(e, part))?;
    }
    let facts = e.facts.clone();
    let mut kernel = e.finish();
    rows::collapse(&mut kernel.body, &facts, true);
    kernel.open = true;
    Ok(kernel)
}
