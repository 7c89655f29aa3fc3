//! `reduce`, `scan` and `generate`: a body applied once per element, in order.
//!
//! A fold visits one *lane* after another (a line of elements along the dimension) and within a lane every position,
//! ascending or, for `scan ... reverse=true`, descending. The first elements are the first accumulators; from then on
//! the body gets, for each operand, the element and the accumulator. The identities are not used: an identity that is
//! neutral for the body changes nothing, and another one (-inf for a `maxf` of NaNs) must not win over an element. A
//! body of plain scalar operations is compiled to a short [`Program`]; any other body runs through the block's stack.

use rustc_hash::FxHashMap;

use super::code::Code;
use super::machine::{Block, Cx, Machine};
use super::scalar::Elementwise;
use super::value::{Origin, Tile, Val, unravel};
use crate::base::id::Id;
use crate::base::launch::Trap;
use crate::cuda_tile::ir::*;

/// Bits and poison of a scalar.
pub type Scalar = (u64, Origin);

pub struct Fold {
    pub op: OpId,
    pub region: RegionId,
    inputs: Vec<Tile>,
    types: Vec<TileType>,
    acc: Vec<Scalar>,
    /// The number of elements along the folded dimension, and along all dimensions inside it.
    len: usize,
    inner: usize,
    lanes: usize,
    lane: usize,
    position: usize,
    reverse: bool,
    what: Opcode,
    bits: Vec<Vec<u64>>,
    poison: Vec<Vec<Origin>>,
    args: Vec<Scalar>,
}

impl Fold {
    pub fn new<'a>(m: &Machine<'a>, block: &Block, cx: Cx<'a>) -> Result<Fold, Trap> {
        let bad = || m.malformed(cx);
        let op = cx.op;
        let &region = op.regions.first().ok_or_else(bad)?;
        let types: Vec<TileType> = op.results.iter().filter_map(|&r| cx.func.tile_ty(r).cloned()).collect();
        let mut inputs = vec![];
        for &v in op.group(0) {
            inputs.push(m.tile(block, cx, v)?);
        }
        let (len, inner, lanes) = if op.opcode == Opcode::ExpGenerate {
            (1, 1, types.first().ok_or_else(bad)?.elements() as usize)
        } else {
            let shape = &inputs.first().ok_or_else(bad)?.shape;
            let dim = op.int(AttrKey::Dim).unwrap_or(0) as usize;
            let len = *shape.get(dim).ok_or_else(bad)? as usize;
            let inner = shape[dim + 1..].iter().product::<u64>() as usize;
            (len, inner, shape.iter().product::<u64>() as usize / len.max(1))
        };
        if op.opcode != Opcode::ExpGenerate && types.len() != inputs.len() {
            return Err(bad());
        }
        let n = types.first().ok_or_else(bad)?.elements() as usize;
        let want = if op.opcode == Opcode::Scan { lanes * len } else { lanes };
        if types.iter().any(|t| t.elements() as usize != want) || inputs.iter().any(|t| t.len() != lanes * len) {
            return Err(bad());
        }
        let bits = vec![vec![0; n]; types.len()];
        let poison = vec![vec![]; types.len()];
        Ok(Fold {
            op: cx.id,
            region,
            inputs,
            types,
            acc: vec![],
            len,
            inner,
            lanes,
            lane: 0,
            position: 0,
            reverse: op.flag(AttrKey::Reverse),
            what: op.opcode,
            bits,
            poison,
            args: vec![],
        })
    }

    /// The row-major position of the current element in the operands.
    fn at(&self) -> usize {
        let p = if self.reverse { self.len - 1 - self.position } else { self.position };
        (self.lane / self.inner * self.len + p) * self.inner + self.lane % self.inner
    }

    /// The next arguments of the body; `None` when the fold is done.
    pub fn args(&mut self) -> Option<&[Scalar]> {
        while self.position == 0 && self.lane < self.lanes && self.what != Opcode::ExpGenerate {
            let at = self.at();
            let first: Vec<Scalar> = self.inputs.iter().map(|t| (t.get(at), t.origin(at))).collect();
            self.accept(first);
        }
        if self.lane >= self.lanes {
            return None;
        }
        self.args.clear();
        if self.what == Opcode::ExpGenerate {
            let shape = self.types.first().map(|t| t.shape.as_slice()).unwrap_or(&[]);
            self.args.extend(unravel(self.lane as u64, shape).into_iter().map(|i| (i, 0)));
        } else {
            let at = self.at();
            for (t, acc) in self.inputs.iter().zip(&self.acc) {
                self.args.push((t.get(at), t.origin(at)));
                self.args.push(*acc);
            }
        }
        Some(&self.args)
    }

    /// Takes the values that the body yielded and moves on.
    pub fn accept(&mut self, out: impl IntoIterator<Item = Scalar>) {
        for (i, scalar) in out.into_iter().enumerate() {
            match self.acc.get_mut(i) {
                Some(acc) => *acc = scalar,
                None => self.acc.push(scalar),
            }
        }
        self.position += 1;
        let ended = self.position >= self.len;
        let to = match self.what {
            Opcode::Scan => {
                self.position -= 1;
                let at = self.at();
                self.position += 1;
                Some(at)
            }
            _ => ended.then_some(self.lane),
        };
        if let Some(to) = to {
            for (k, &(bits, origin)) in self.acc.iter().enumerate() {
                let Some(slot) = self.bits.get_mut(k).and_then(|b| b.get_mut(to)) else { continue };
                *slot = bits;
                if origin != 0 {
                    let n = self.bits[k].len();
                    self.poison[k].resize(n, 0);
                    self.poison[k][to] = origin;
                }
            }
        }
        if ended {
            self.position = 0;
            self.lane += 1;
        }
    }

    pub fn results(&mut self) -> Vec<Val> {
        let bits = std::mem::take(&mut self.bits);
        let poison = std::mem::take(&mut self.poison);
        let tile = |((ty, b), p)| Val::Tile(Tile::new(ty, b).with_poison(p));
        self.types.iter().zip(bits).zip(poison).map(tile).collect()
    }
}

/// A body without control flow, as a list of scalar operations over slots.
pub struct Program {
    slots: Vec<Scalar>,
    params: Vec<usize>,
    steps: Vec<(Elementwise, [usize; 3], usize, usize, Origin)>,
    outs: Vec<usize>,
}

impl Program {
    /// `None` when the body needs more than scalar operations.
    pub fn compile(code: &Code, cx: Cx, env: &[Option<Val>], region: RegionId) -> Option<Program> {
        let body = cx.func.regions.get(region)?;
        let mut at: FxHashMap<ValueId, usize> = FxHashMap::default();
        let mut p = Program { slots: vec![], params: vec![], steps: vec![], outs: vec![] };
        for &a in &body.args {
            at.insert(a, p.slots.len());
            p.params.push(p.slots.len());
            p.slots.push((0, 0));
        }
        for &id in &body.ops {
            let op = cx.func.ops.get(id)?;
            let mut slot = |p: &mut Program, v: ValueId| -> Option<usize> {
                if let Some(&s) = at.get(&v) {
                    return Some(s);
                }
                let Some(Some(Val::Tile(t))) = env.get(v.index()) else { return None };
                if !t.shape.is_empty() {
                    return None;
                }
                p.slots.push((t.get(0), t.origin(0)));
                at.insert(v, p.slots.len() - 1);
                Some(p.slots.len() - 1)
            };
            if op.opcode == Opcode::Yield {
                for &v in &op.operands {
                    let s = slot(&mut p, v)?;
                    p.outs.push(s);
                }
                return Some(p);
            }
            let result = *op.results.first()?;
            let ty = cx.func.tile_ty(result)?;
            if !ty.shape.is_empty() || op.results.len() != 1 {
                return None;
            }
            if let (Opcode::Constant, Some(Attr::Elements(e))) = (op.opcode, op.attr(AttrKey::Value)) {
                let bits = *e.bits.first()? & e.dtype.mask();
                p.slots.push((bits, 0));
            } else {
                let e = Elementwise::of(cx.func, op)?;
                let mut args = [0; 3];
                if op.operands.len() > 3 {
                    return None;
                }
                for (a, &v) in args.iter_mut().zip(&op.operands) {
                    *a = slot(&mut p, v)?;
                }
                p.slots.push((0, 0));
                p.steps.push((e, args, op.operands.len(), p.slots.len() - 1, code.origin(cx.findex, id)));
            }
            at.insert(result, p.slots.len() - 1);
        }
        None
    }

    pub fn run(&mut self, args: &[Scalar]) {
        for (&p, &a) in self.params.iter().zip(args) {
            self.slots[p] = a;
        }
        for &(e, from, n, to, here) in &self.steps {
            let s = from.map(|i| self.slots[i]);
            let (bits, origins) = (s.map(|x| x.0), s.map(|x| x.1));
            self.slots[to] = (e.value(&bits[..n]), e.origin(&bits[..n], &origins[..n], here));
        }
    }

    pub fn outputs(&self) -> impl Iterator<Item = Scalar> + '_ {
        self.outs.iter().map(|&o| self.slots[o])
    }
}
