//! `split_k` of rows: a kernel folds each part of a row, and another one folds the partial results and does the rest of the row.
//!
//! ```text
//! for i in 0..4: free                              for i: for part in 0..64: free
//!   local s = 0.0                                    local s = 0.0
//!   for k in 0..1000000: reduce combine add(s) -->   for k in 0..15625: reduce combine add(s)
//!     s <- x[i, k] + s                                 s <- x[i, part*15625 + k] + s
//!   store out[i] = s/1000000.0                       store s_parts[i, part] = s
//!
//!                                                  for i in 0..4: free
//!                                                    local s = 0.0
//!                                                    for part in 0..64: reduce combine add(s)
//!                                                      s <- s_parts[i, part] + s
//!                                                    store out[i] = s/1000000.0
//! ```

use crate::base::IdMap;
use crate::graph::Elem;
use crate::index::simplify;
use crate::loops::ir::*;
use crate::loops::model::{Array, ArrayId, ArrayPlace, Step};
use crate::loops::walk;
use crate::tile::edit;
use crate::tile::primitives::rfactor::{Fold, Parts};
use crate::tile::primitives::split::Pieces;
use crate::tile::rows::ReducedRows;
use crate::tile::steps::{bytes_of, set_arrays};

/// The two steps that a step with rows becomes.
pub fn split(
    rows: ReducedRows<'_>,
    step: &Step,
    arrays: &mut IdMap<ArrayId, Array>,
    length: u32,
) -> Result<[Step; 2], String> {
    let parts = rows.length.div_ceil(u64::from(length.max(1)));
    if parts < 2 {
        return Err("its rows are one part".to_string());
    }
    Ok(Split { rows, parts: parts as i64, length: length.into() }.steps(step, arrays))
}

/// Rows that are cut into parts.
struct Split<'a> {
    rows: ReducedRows<'a>,
    parts: i64,
    /// Elements of a part.
    length: i64,
}

impl Split<'_> {
    /// The step that folds the parts, and the one that folds what they leave and does what follows.
    fn steps(&self, step: &Step, arrays: &mut IdMap<ArrayId, Array>) -> [Step; 2] {
        let ReducedRows { fold: Fold { acc, dtype, .. }, ref free, .. } = self.rows;
        let name = format!("{}_parts", step.kernel.bufs[acc].name);
        let extents = free.iter().map(|f| f.hi.clone());
        let parts = arrays.push(Array {
            name: name.clone(),
            elem: Elem::of(dtype),
            shape: extents.chain([Ix::Const(self.parts)]).collect(),
            place: ArrayPlace::Temp,
            at_load: false,
        });
        let (mut first, mut second) = (step.clone(), step.clone());
        let base = |k: &mut Kernel| k.vals.push(Val { ty: Ty::Ptr(dtype), name: name.clone() });
        let bases = [base(&mut first.kernel), base(&mut second.kernel)];
        self.first(&mut first.kernel, bases[0]);
        self.second(&mut second.kernel, bases[1]);
        set_arrays(&mut first, &[(bases[0], parts)], arrays);
        set_arrays(&mut second, &[(bases[1], parts)], arrays);
        first.writes = vec![parts];
        second.reads.push(parts);
        second.flops = Ix::Const(0);
        for s in [&mut first, &mut second] {
            s.bytes = bytes_of(s, arrays);
        }
        [first, second]
    }

    fn first(&self, kernel: &mut Kernel, base: ValId) {
        let ReducedRows { fold, reduce, .. } = self.rows;
        let part = kernel.axes.push(Axis { name: "part".into(), from: None });
        let pieces = Pieces::of(reduce, self.length);
        let at = pieces.at(part, reduce.axis);
        let mut one = For { hi: pieces.length(part), ..reduce.clone() };
        walk::subst_axis(&mut one.body, reduce.axis, &at);
        let kept = self.rows.before.iter().filter(|s| edit::is_pure(s)).cloned();
        let to = self.parts_at(kernel, base, part);
        let body = kept.chain(fold.into_part(kernel, fold.acc, Stmt::For(Box::new(one)), to)).collect();
        let body = edit::free_loop(part, Ix::Const(self.parts), body);
        self.put(kernel, body, edit::is_pure);
        kernel.name += "_parts";
    }

    fn second(&self, kernel: &mut Kernel, base: ValId) {
        let ReducedRows { fold, reduce, before, after, .. } = &self.rows;
        let part = kernel.axes.push(Axis { name: "part".into(), from: None });
        let from = self.parts_at(kernel, base, part);
        let body = fold.add_part(kernel, vec![], from);
        let fold = edit::loop_with(part, Ix::Const(self.parts), body, |f| {
            f.kind = LoopKind::Reduce;
            f.combine = reduce.combine.clone();
        });
        let row: Vec<Stmt> = before.iter().cloned().chain([fold]).chain(after.iter().cloned()).collect();
        match self.rows.at {
            None => kernel.body = row,
            Some(at) => kernel.body[at] = self.around(row),
        }
        edit::drop_unused(&mut kernel.body);
    }

    /// Makes a row's loop over its parts what the kernel does, beside the statements that `keep` keeps.
    fn put(&self, kernel: &mut Kernel, body: Stmt, keep: impl Fn(&Stmt) -> bool) {
        match self.rows.at {
            None => kernel.body = vec![body],
            Some(at) => {
                kernel.body.truncate(at);
                kernel.body.retain(keep);
                kernel.body.push(self.around(vec![body]));
            }
        }
        edit::drop_unused(&mut kernel.body);
    }

    /// The loops over the rows around what is done in one.
    fn around(&self, row: Vec<Stmt>) -> Stmt {
        let mut body = row;
        for f in self.rows.free.iter().rev() {
            let (axis, hi) = (f.axis, f.hi.clone());
            body = vec![edit::free_loop(axis, hi, body)];
        }
        body.remove(0)
    }

    /// A part of the row at hand.
    fn parts_at(&self, kernel: &Kernel, base: ValId, part: AxisId) -> Parts {
        let mem = Mem { base, index: self.index(kernel, part), elem: self.rows.fold.dtype };
        Parts::Array { mem, site: self.site() }
    }

    /// Where a part of the row at hand lies.
    fn index(&self, kernel: &Kernel, part: AxisId) -> Ix {
        let mut facts = kernel.facts();
        for f in &self.rows.free {
            facts.set_axis(f.axis, &f.lo, &f.hi);
        }
        facts.set_axis(part, &Ix::Const(0), &Ix::Const(self.parts));
        let free = self.rows.free.iter();
        let row = free.fold(Ix::Const(0), |at, f| Ix::add(Ix::mul(at, f.hi.clone()), Ix::Axis(f.axis)));
        simplify(&Ix::add(Ix::mul(row, Ix::Const(self.parts)), Ix::Axis(part)), &facts)
    }

    /// The operation that the parts are of.
    fn site(&self) -> SiteId {
        let of = |s: &Stmt| match s {
            Stmt::Load { site, .. } | Stmt::Store { site, .. } => Some(*site),
            _ => None,
        };
        self.rows.reduce.body.iter().chain(self.rows.after).find_map(of).unwrap_or(SiteId(0))
    }
}
