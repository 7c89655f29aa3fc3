//! Changes of layout: each is one map, without computation.

use super::{Builder, Refusal, Result};
use crate::graph::Elem;
use crate::graph::ir::{self, Arg, MapSource};
use crate::index::{Cmp, Cond, Ix, Mask, gcd};

impl Builder<'_> {
    /// Result dimension `d` is dimension `perm[d]` of the operand.
    pub fn transpose(&mut self, x: Arg, perm: &[usize]) -> Result<Arg> {
        let from = self.shape(x);
        let mut seen = vec![false; from.len()];
        for &p in perm {
            match seen.get_mut(p) {
                Some(s) if !*s => *s = true,
                _ => return Err(Refusal::new(format!("{perm:?} is not a permutation of {} axes", from.len()))),
            }
        }
        if perm.len() != from.len() {
            return Err(Refusal::new(format!("{perm:?} is not a permutation of {} axes", from.len())));
        }
        if perm.iter().enumerate().all(|(d, p)| d == *p) {
            return Ok(x);
        }
        let shape = perm.iter().map(|&p| from[p].clone()).collect();
        let mut coords = vec![Ix::Const(0); from.len()];
        for (d, &p) in perm.iter().enumerate() {
            coords[p] = ir::axis(d);
        }
        Ok(self.map("transpose", x, shape, coords))
    }

    /// Exchanges two axes.
    pub fn swap_axes(&mut self, x: Arg, a: usize, b: usize) -> Result<Arg> {
        let mut perm: Vec<usize> = (0..self.rank(x)).collect();
        if a >= perm.len() || b >= perm.len() {
            return Err(Refusal::new(format!("axes {a} and {b} are out of range for a tensor of rank {}", perm.len())));
        }
        perm.swap(a, b);
        self.transpose(x, &perm)
    }

    /// The same elements in row-major order in another shape.
    pub fn reshape(&mut self, x: Arg, shape: &[Ix]) -> Result<Arg> {
        let from = self.shape(x);
        if self.same_shape(&from, shape) {
            return Ok(x);
        }
        let (have, want) = (self.numel(&from), self.numel(shape));
        if !self.same(&have, &want) {
            return Err(Refusal::new(format!(
                "a tensor of shape {} cannot be reshaped to {}",
                self.shape_text(&from),
                self.shape_text(shape)
            )));
        }
        // Groups of dimensions with equal products convert independently, so most coordinates need no division.
        let mut coords = vec![Ix::Const(0); from.len()];
        let (mut i, mut j) = (0, 0);
        while i < from.len() || j < shape.len() {
            let (start_i, start_j) = (i, j);
            let (mut a, mut b) = (Ix::Const(1), Ix::Const(1));
            loop {
                let whole = (i > start_i || j > start_j) && self.same(&a, &b);
                if whole {
                    break;
                }
                // Grow the side that is smaller for one choice of the symbols; any choice gives a right map.
                let a_first = example(&a) <= example(&b);
                if (a_first && i < from.len()) || j >= shape.len() {
                    if i >= from.len() {
                        break;
                    }
                    a = self.simplify(&Ix::mul(a, from[i].clone()));
                    i += 1;
                } else {
                    b = self.simplify(&Ix::mul(b, shape[j].clone()));
                    j += 1;
                }
            }
            let mut linear = Ix::Const(0);
            for (d, extent) in shape.iter().enumerate().take(j).skip(start_j) {
                linear = Ix::add(Ix::mul(linear, extent.clone()), ir::axis(d));
            }
            let mut rest = linear;
            for d in (start_i..i).rev() {
                if d == start_i {
                    coords[d] = rest.clone();
                } else {
                    coords[d] = Ix::modulo(rest.clone(), from[d].clone());
                    rest = Ix::floor_div(rest, from[d].clone());
                }
                if from[d].is_const(1) {
                    coords[d] = Ix::Const(0);
                }
            }
        }
        Ok(self.map("reshape", x, shape.to_vec(), coords))
    }

    /// The product of some extents over the product of others, as reshaping needs it for an extent that is left open;
    /// common factors cancel. Rounds down where it is not whole.
    pub fn quotient(&self, whole: &[Ix], parts: &[Ix]) -> Ix {
        let (mut top, mut n) = factors(whole);
        let (mut bottom, mut d) = factors(parts);
        bottom.retain(|f| match top.iter().position(|t| self.same(t, f)) {
            Some(at) => {
                top.swap_remove(at);
                false
            }
            None => true,
        });
        let common = gcd(n, d);
        if common > 1 {
            (n, d) = (n / common, d / common);
        }
        let product = |c: i64, list: Vec<Ix>| list.into_iter().fold(Ix::Const(c), Ix::mul);
        self.simplify(&Ix::floor_div(product(n, top), product(d, bottom)))
    }

    /// Removes axes of extent 1.
    pub fn squeeze(&mut self, x: Arg, axes: &[usize]) -> Result<Arg> {
        let from = self.shape(x);
        if let Some(bad) = axes.iter().find(|a| !from.get(**a).is_some_and(|d| self.is_one(d))) {
            return Err(Refusal::new(format!("axis {bad} of shape {} does not have extent 1", self.shape_text(&from))));
        }
        let kept: Vec<usize> = (0..from.len()).filter(|d| !axes.contains(d)).collect();
        if kept.len() == from.len() {
            return Ok(x);
        }
        let shape = kept.iter().map(|&d| from[d].clone()).collect();
        let mut coords = vec![Ix::Const(0); from.len()];
        for (at, &d) in kept.iter().enumerate() {
            coords[d] = ir::axis(at);
        }
        Ok(self.map("squeeze", x, shape, coords))
    }

    /// Inserts axes of extent 1 at positions of the *result*, ascending.
    pub fn unsqueeze(&mut self, x: Arg, axes: &[usize]) -> Result<Arg> {
        let from = self.shape(x);
        let rank = from.len() + axes.len();
        if axes.is_empty() {
            return Ok(x);
        }
        if let Some(bad) = axes.iter().find(|a| **a >= rank) {
            return Err(Refusal::new(format!("axis {bad} cannot be inserted into a tensor of rank {rank}")));
        }
        let (mut shape, mut coords, mut rest) = (vec![], vec![], from.iter());
        for d in 0..rank {
            if axes.contains(&d) {
                shape.push(Ix::Const(1));
            } else {
                let Some(extent) = rest.next() else {
                    return Err(Refusal::new(format!("axes {axes:?} are inserted twice")));
                };
                coords.push(if extent.is_const(1) { Ix::Const(0) } else { ir::axis(d) });
                shape.push(extent.clone());
            }
        }
        let x = match x {
            Arg::Scalar { elem, .. } => return Ok(self.full(x, elem, shape)),
            _ => x,
        };
        Ok(self.map("unsqueeze", x, shape, coords))
    }

    /// A tensor all of whose elements are a scalar.
    pub fn full(&mut self, x: Arg, elem: Elem, shape: Vec<Ix>) -> Arg {
        let source = MapSource { arg: 0, coords: vec![], when: Mask::default() };
        let v = self.node("full", ir::Op::IndexMap(vec![source]), vec![x], elem, shape);
        v.into()
    }

    /// Along an axis: elements `start`, `start + step`, ... (`count` of them); a negative step runs backwards.
    pub fn slice(&mut self, x: Arg, axis: usize, start: Ix, step: i64, count: Ix) -> Result<Arg> {
        let mut shape = self.shape(x);
        self.check_axis(axis, &shape)?;
        if start.is_const(0) && step == 1 && self.same(&shape[axis], &count) {
            return Ok(x);
        }
        let mut coords: Vec<Ix> = (0..shape.len()).map(ir::axis).collect();
        coords[axis] = Ix::add(start, Ix::mul(ir::axis(axis), Ix::Const(step)));
        shape[axis] = count;
        Ok(self.map("slice", x, shape, coords))
    }

    /// Tensors one after the other along an axis.
    pub fn concat(&mut self, xs: &[Arg], axis: usize) -> Result<Arg> {
        let Some(&first) = xs.first() else { return Err(Refusal::new("there is nothing to concatenate")) };
        if xs.len() == 1 {
            return Ok(first);
        }
        let mut shape = self.shape(first);
        self.check_axis(axis, &shape)?;
        let mut total = Ix::Const(0);
        let mut sources = vec![];
        for (arg, &x) in xs.iter().enumerate() {
            let s = self.shape(x);
            let fits = s.len() == shape.len()
                && (0..s.len()).all(|d| d == axis || self.same(&s[d], &shape[d]))
                && self.elem(x) == self.elem(first);
            if !fits {
                return Err(Refusal::new(format!(
                    "{} {} and {} {} cannot be concatenated along axis {axis}",
                    self.elem(first),
                    self.shape_text(&shape),
                    self.elem(x),
                    self.shape_text(&s)
                )));
            }
            let mut coords: Vec<Ix> = (0..s.len()).map(ir::axis).collect();
            coords[axis] = Ix::sub(ir::axis(axis), total.clone());
            total = self.simplify(&Ix::add(total, s[axis].clone()));
            let last = arg + 1 == xs.len();
            let below = Cond::new(ir::axis(axis), Cmp::Lt, total.clone());
            let when = Mask { conds: if last { vec![] } else { vec![below] }, vals: vec![] };
            sources.push(MapSource { arg: arg as u32, coords, when });
        }
        shape[axis] = total;
        Ok(self.map_sources("concat", xs.to_vec(), shape, sources))
    }

    /// `value` (a scalar) before and after the elements of each dimension; negative amounts cut.
    pub fn pad(&mut self, x: Arg, before: &[Ix], after: &[Ix], value: Arg) -> Result<Arg> {
        let from = self.shape(x);
        if before.len() != from.len() || after.len() != from.len() {
            return Err(Refusal::new(format!("padding is given for {} of {} axes", before.len(), from.len())));
        }
        let (mut shape, mut coords, mut conds) = (vec![], vec![], vec![]);
        for d in 0..from.len() {
            let at = Ix::sub(ir::axis(d), before[d].clone());
            conds.push(Cond::new(at.clone(), Cmp::Ge, Ix::Const(0)));
            conds.push(Cond::new(at.clone(), Cmp::Lt, from[d].clone()));
            coords.push(at);
            let extent = Ix::add(Ix::add(from[d].clone(), before[d].clone()), after[d].clone());
            shape.push(self.simplify(&extent));
        }
        let inside = MapSource { arg: 0, coords, when: Mask { conds, vals: vec![] } };
        let outside = MapSource { arg: 1, coords: vec![], when: Mask::default() };
        Ok(self.map_sources("pad", vec![x, value], shape, vec![inside, outside]))
    }
}

/// The factors of a product, and its constant one.
fn factors(dims: &[Ix]) -> (Vec<Ix>, i64) {
    let (mut list, mut constant) = (vec![], 1i64);
    let mut rest: Vec<&Ix> = dims.iter().rev().collect();
    while let Some(ix) = rest.pop() {
        match ix {
            Ix::Mul(a, b) => rest.extend([&**b, &**a]),
            Ix::Const(c) if constant.checked_mul(*c).is_some() => constant *= c,
            other => list.push(other.clone()),
        }
    }
    (list, constant)
}

/// The value of an extent for some choice of the symbols.
fn example(ix: &Ix) -> i64 {
    ix.eval(&|leaf| match leaf {
        Ix::Const(c) => *c,
        Ix::Val { val, .. } => 101 + 2 * i64::from(val.0 % 64),
        _ => 1,
    })
}
