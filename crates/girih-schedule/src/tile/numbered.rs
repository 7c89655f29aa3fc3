//! Numbers the iterations of perfectly nested loops, so that blocks and threads can share them out.
//!
//! ```text
//! for i in 0..512: for j in 0..3584: free       3584*i + j is the number: i is number//3584, j is number%3584
//! ```

use std::collections::BTreeMap;

use crate::index::{Facts, simplify};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::edit;

/// Perfectly nested loops, outermost first; the last one runs fastest.
pub struct Numbered {
    /// Each loop's axis and first iteration.
    loops: Vec<(AxisId, Ix)>,
    extents: Vec<Ix>,
    pub total: Ix,
}

impl Numbered {
    pub fn new<'a>(loops: impl IntoIterator<Item = &'a For>, facts: &Facts) -> Numbered {
        let (loops, extents): (Vec<_>, Vec<_>) =
            loops.into_iter().map(|f| ((f.axis, f.lo.clone()), Ix::sub(f.hi.clone(), f.lo.clone()))).unzip();
        let total = extents.iter().fold(Ix::Const(1), |n, e| Ix::mul(n, e.clone()));
        Numbered { total: simplify(&total, facts), loops, extents }
    }

    /// The body of the iteration with this number; it does nothing if there is none. Numbers are given out `at_once` at a time.
    pub fn body(
        &self,
        kernel: &mut Kernel,
        mut body: Vec<Stmt>,
        number: &Ix,
        at_once: i64,
        facts: &Facts,
    ) -> Vec<Stmt> {
        self.place(&mut body, number, facts);
        if self.total.as_const().is_some_and(|n| n % at_once == 0) {
            return body;
        }
        let exists = Cond::new(number.clone(), Cmp::Lt, self.total.clone());
        edit::when(kernel, "mine", Mask { conds: vec![exists], vals: vec![] }, body, vec![])
    }

    /// Replaces the loops' axes by their values for a number. The loops lose their roles in a contraction.
    pub fn place(&self, body: &mut [Stmt], number: &Ix, facts: &Facts) {
        let at = self.loops.iter().zip(number.unravel(&self.extents));
        let places: BTreeMap<AxisId, Ix> = at.map(|((axis, lo), ix)| (*axis, Ix::add(lo.clone(), ix))).collect();
        walk::subst_axes(body, &mut |a| places.get(&a).cloned());
        forget_roles(body, &|a| places.contains_key(&a));
        walk::map_ixs(body, &mut |ix| *ix = simplify(ix, facts));
    }
}

/// Loops over these axes lose their roles in a contraction.
pub fn forget_roles(body: &mut [Stmt], gone: &dyn Fn(AxisId) -> bool) {
    walk::visit_mut(body, &mut |s| {
        if let Stmt::For(f) = s
            && f.contraction.as_ref().is_some_and(|c| c.m.iter().chain(&c.n).any(|a| gone(*a)))
        {
            f.contraction = None;
        }
    });
}
