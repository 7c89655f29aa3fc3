//! Elements of values on demand: a value computed before, a load, or the computation of that one element.

use super::{NestBuilder, Result, Source};
use crate::graph::bounds::bounds;
use crate::graph::build::Refusal;
use crate::graph::ir::{self as g, Arg, Coord, Op, ValueId};
use crate::graph::{Elem, OriginId};
use crate::index::{Cmp, Cond, Interval, Ix, Mask, ValId};
use crate::loops::ir::*;
use crate::loops::model::concat::MOST_SOURCES;
use crate::num::{DType, ScalarOp};

impl NestBuilder<'_> {
    pub fn operand(&mut self, a: Arg, coords: &[Ix]) -> Result<Opnd> {
        match a {
            Arg::Value(v) => self.demand(v, coords),
            Arg::Scalar { elem, bits } => Ok(Opnd::Const { dtype: elem.dtype, bits }),
            Arg::Absent => Err(Refusal::new("an operand is missing")),
        }
    }

    /// The element of `v` at `coords`.
    pub fn demand(&mut self, v: ValueId, coords: &[Ix]) -> Result<Opnd> {
        if let Some(Source::Local(buf, idx)) = self.sources.get(&v).cloned() {
            let name = self.graph.values[v].name.clone();
            let dtype = self.graph.values[v].elem.dtype;
            let depth = idx.iter().map(|i| self.depth_of(i)).max().unwrap_or(0).max(self.depth());
            let key = (v, idx.clone(), Mask::default());
            if let Some(known) = self.lookup(&key) {
                return Ok(known);
            }
            let read = self.define(&name, dtype, depth, |dst| Stmt::Read { dst, buf, idx: idx.clone() });
            self.remember(depth, key, read);
            return Ok(read);
        }
        let coords: Vec<Ix> = coords.iter().map(|c| self.simplify(c)).collect();
        let key = (v, coords, self.mask.clone());
        if let Some(known) = self.lookup(&key) {
            return Ok(known);
        }
        let coords = key.1.clone();
        if let Some(read) = self.kept(v, &coords) {
            return Ok(read);
        }
        let result = match self.sources.get(&v).cloned() {
            Some(Source::Array(ptr)) => self.load(v, ptr, &coords),
            _ => self.made_for(v, |e| e.compute(v, &coords))?,
        };
        let depth = self.depth_of_opnd(result);
        self.remember(depth, key, result);
        if self.keep.contains(&v) {
            self.keep_row(v, &coords, result);
        }
        Ok(result)
    }

    fn lookup(&self, key: &(ValueId, Vec<Ix>, Mask)) -> Option<Opnd> {
        self.scopes.iter().rev().find_map(|s| s.known.get(key).copied())
    }

    fn remember(&mut self, depth: usize, key: (ValueId, Vec<Ix>, Mask), opnd: Opnd) {
        // A constant depends on nothing, but its mask may: it is known where that is.
        let depth =
            depth.max(self.depth_of_mask(&key.2)).max(key.1.iter().map(|c| self.depth_of(c)).max().unwrap_or(0));
        if let Some(scope) = self.scopes.get_mut(depth) {
            scope.known.insert(key, opnd);
        }
    }

    fn load(&mut self, v: ValueId, ptr: ValId, coords: &[Ix]) -> Opnd {
        let info = &self.graph.values[v];
        let (name, elem, shape) = (info.name.clone(), info.elem.dtype, info.shape.clone());
        let index = self.place(v, coords);
        let mask = self.facts.simplify_mask(&self.mask).unwrap_or_else(|| self.mask.clone());
        let depth = self.depth_of(&index).max(self.depth_of_mask(&mask)).max(self.depth_that_runs(coords, &shape));
        let origin = self.graph.def(v).map_or(OriginId(0), |(n, _)| n.origin);
        let site = self.site(origin);
        let other = (!mask.is_always()).then_some(Opnd::Const { dtype: elem, bits: 0 });
        let mem = Mem { base: ptr, index, elem };
        self.define(&name, elem, depth, |dst| Stmt::Load { dst, mem, mask, other, order: Order::Weak, site })
    }

    /// The outermost scope where an element may be read: inside every loop that may not run at all, since elements read
    /// there need not exist, unless the coordinates lie in the array in any case.
    fn depth_that_runs(&self, coords: &[Ix], shape: &[Ix]) -> usize {
        let may_be_empty = |f: &For| self.facts.range(&f.hi).lo <= 0;
        let Some(at) = self.open.iter().rposition(may_be_empty) else { return 0 };
        let inside = |(c, n): (&Ix, &Ix)| {
            let own = |f: &For| *c == Ix::Axis(f.axis) && f.hi == *n;
            self.open.iter().any(own)
                || self.facts.decide(&Cond::new(c.clone(), Cmp::Ge, Ix::Const(0))) == Some(true)
                    && self.facts.decide(&Cond::new(c.clone(), Cmp::Lt, n.clone())) == Some(true)
        };
        if coords.iter().zip(shape).all(inside) { 0 } else { at + 1 }
    }

    fn compute(&mut self, v: ValueId, coords: &[Ix]) -> Result<Opnd> {
        let graph = self.graph;
        let Some((node, _)) = graph.def(v) else {
            return Err(Refusal::new("an input has no array"));
        };
        let info = &graph.values[v];
        let dtype = info.elem.dtype;
        let place = |ix: &Ix| ix.at_coords(coords);
        match &node.op {
            Op::Elementwise(op) => {
                // Values that a whole row needs once come first: the loops before may keep elements that are then only
                // read.
                for a in &node.args {
                    if !self.keep.is_empty() && self.is_spread(a) {
                        self.operand(*a, coords)?;
                    }
                }
                let args = node.args.iter().map(|a| self.operand(*a, coords)).collect::<Result<Vec<Opnd>>>()?;
                let depth = args.iter().map(|a| self.depth_of_opnd(*a)).max().unwrap_or(0);
                let op = *op;
                Ok(self.define(&info.name, dtype, depth, |dst| Stmt::Let { dst, op, args }))
            }
            Op::Index(ix) => {
                let ix = self.simplify(&place(ix));
                if let Some(c) = ix.as_const() {
                    return Ok(Opnd::Const { dtype, bits: c as u64 & dtype.mask() });
                }
                let depth = self.depth_of(&ix);
                Ok(self.define(&info.name, dtype, depth, |dst| Stmt::Index { dst, ix }))
            }
            Op::IndexMap(sources) => self.map(node, sources, coords, dtype),
            Op::Gather(at) => self.gather(node, at, coords),
            Op::Reduce { op, axes } => self.reduce(v, node, *op, axes, coords),
            _ => Err(Refusal::new(format!("`{}` cannot be computed an element at a time", info.name))),
        }
    }

    /// Returns true if a value repeats a smaller one.
    fn is_spread(&self, arg: &Arg) -> bool {
        let Arg::Value(v) = arg else { return false };
        let Some((node, _)) = self.graph.def(*v) else { return false };
        match (&node.op, &node.args[..]) {
            (Op::IndexMap(_), [Arg::Value(of)]) => self.graph.values[*of].shape != self.graph.values[*v].shape,
            _ => false,
        }
    }

    fn map(&mut self, node: &g::Node, sources: &[g::MapSource], coords: &[Ix], dtype: DType) -> Result<Opnd> {
        let place = |ix: &Ix| ix.at_coords(coords);
        let mut parts: Vec<(Mask, Opnd)> = vec![];
        let outer = self.mask.clone();
        // With many sources, one value tracks that no earlier source applies; with few, the mask negates each earlier
        // condition.
        let many = sources.len() > MOST_SOURCES;
        let mut free: Option<ValId> = None;
        for s in sources {
            let conds = s.when.conds.iter().map(|c| Cond::new(place(&c.lhs), c.cmp, place(&c.rhs))).collect();
            let Some(when) = self.facts.simplify_mask(&Mask { conds, vals: vec![] }) else { continue };
            let arg = node.args.get(s.arg as usize).copied().unwrap_or(Arg::Absent);
            let read: Vec<Ix> = s.coords.iter().map(&place).collect();
            let always = when.is_always();
            if always && parts.is_empty() {
                return self.operand(arg, &read);
            }
            self.mask = outer.and(&when);
            // Positions that an earlier source provides are not read here: their coordinates may lie outside.
            self.mask.vals.extend(free);
            for (earlier, _) in parts.iter().filter(|_| !many) {
                match (&earlier.conds[..], arg) {
                    ([only], _) => self.mask.conds.push(only.negate()),
                    (_, Arg::Value(_)) => {
                        let outside = self.outside(earlier);
                        self.mask.vals.push(outside);
                    }
                    _ => {}
                }
            }
            let value = self.operand(arg, &read);
            self.mask = outer.clone();
            if many {
                let outside = self.outside(&when);
                free = Some(match free {
                    None => outside,
                    Some(free) => self.both(free, outside),
                });
            }
            parts.push((when, value?));
            if always {
                break;
            }
        }
        let Some((_, mut value)) = parts.pop() else { return Ok(Opnd::Const { dtype, bits: 0 }) };
        while let Some((when, first)) = parts.pop() {
            let depth = self.depth_of_mask(&when);
            let c = self.define("in", DType::I1, depth, |dst| Stmt::Test { dst, mask: when });
            value = self.apply(ScalarOp::Select, dtype, vec![c, first, value]);
        }
        Ok(value)
    }

    /// The conjunction of two booleans.
    fn both(&mut self, a: ValId, b: ValId) -> ValId {
        let args = vec![Opnd::Val(a), Opnd::Val(b)];
        let depth = args.iter().map(|a| self.depth_of_opnd(*a)).max().unwrap_or(0);
        let dst = self.value("out", Ty::Num(DType::I1), depth);
        self.push(depth, Stmt::Let { dst, op: ScalarOp::And, args });
        dst
    }

    /// The negation of a mask.
    fn outside(&mut self, mask: &Mask) -> ValId {
        let (depth, one) = (self.depth_of_mask(mask), Opnd::Const { dtype: DType::I1, bits: 1 });
        let within = self.define("in", DType::I1, depth, |dst| Stmt::Test { dst, mask: mask.clone() });
        let (op, args) = (ScalarOp::Xor, vec![within, one]);
        let dst = self.value("out", Ty::Num(DType::I1), depth);
        self.push(depth, Stmt::Let { dst, op, args });
        dst
    }

    fn gather(&mut self, node: &g::Node, at: &[Coord], coords: &[Ix]) -> Result<Opnd> {
        let Some(Arg::Value(data)) = node.args.first().copied() else {
            return Err(Refusal::new("a gather reads a tensor"));
        };
        let read = self.indexed(node, at, coords, &self.graph.values[data].shape)?;
        self.demand(data, &read)
    }

    /// The element of a tensor of that shape that a node reads or writes for coordinates: some along its axes stand in other tensors.
    pub fn indexed(&mut self, node: &g::Node, at: &[Coord], coords: &[Ix], shape: &[Ix]) -> Result<Vec<Ix>> {
        let along = |(d, c): (usize, &Coord)| match c {
            Coord::Ix(ix) => Ok(ix.at_coords(coords)),
            Coord::Arg(i) => {
                let extent = shape.get(d).cloned().unwrap_or(Ix::Const(1));
                self.index_operand(node, *i, coords, extent)
            }
        };
        at.iter().enumerate().map(along).collect()
    }

    /// An element of an index tensor as an index expression, with an assertion that it lies in `0..extent` where that
    /// is not known.
    pub fn index_operand(&mut self, node: &g::Node, arg: u32, coords: &[Ix], extent: Ix) -> Result<Ix> {
        let arg = node.args.get(arg as usize).copied().unwrap_or(Arg::Absent);
        let elem = match arg {
            Arg::Value(v) => self.graph.values[v].elem,
            Arg::Scalar { elem, .. } => elem,
            Arg::Absent => Elem::I64,
        };
        let value = self.operand(arg, coords)?;
        let ix = match value {
            Opnd::Const { dtype, bits } if elem.unsigned => Ix::Const((bits & dtype.mask()) as i64),
            Opnd::Const { dtype, bits } => Ix::Const(crate::num::convert::sign_extend(dtype, bits)),
            Opnd::Val(val) => Ix::Val { val, zext: elem.unsigned },
        };
        let fits = |n: i64| bounds(self.graph, arg, u64::MAX).within(Interval::new(0, i128::from(n) - 1));
        if extent.as_const().is_some_and(fits) {
            return Ok(ix);
        }
        let inside =
            vec![Cond::new(ix.clone(), Cmp::Ge, Ix::Const(0)), Cond::new(ix.clone(), Cmp::Lt, self.simplify(&extent))];
        let depth = self.depth_of_opnd(value).max(self.depth_of(&extent)).max(self.depth_of_mask(&self.mask));
        let mask = Mask { conds: inside, vals: vec![] };
        let mut cond = self.define("inside", DType::I1, depth, |dst| Stmt::Test { dst, mask });
        if !self.mask.is_always() {
            let all = self.mask.clone();
            let on = self.define("on", DType::I1, depth, |dst| Stmt::Test { dst, mask: all });
            let one = Opnd::Const { dtype: DType::I1, bits: 1 };
            let off =
                self.define("off", DType::I1, depth, |dst| Stmt::Let { dst, op: ScalarOp::Xor, args: vec![on, one] });
            cond = self.define("inside", DType::I1, depth, |dst| Stmt::Let {
                dst,
                op: ScalarOp::Or,
                args: vec![cond, off],
            });
        }
        let site = self.site(node.origin);
        let message = if self.graph.origins[node.origin].divides() {
            "an integer is divided by zero".into()
        } else {
            format!("an index lies outside its dimension of extent {}", self.graph.ix_text(&extent))
        };
        self.push(depth, Stmt::Assert { cond, message, site });
        // If the assertion fails the run ends; the clamp keeps vector code from reading elsewhere before that.
        Ok(Ix::max(Ix::Const(0), Ix::min(ix, Ix::sub(extent, Ix::Const(1)))))
    }
}
