//! With `--check`: assertions that the program's indices and extents meet the demands of the evaluator.
//!
//! In: an operation that names a tile of a view or part of a tile, or makes a view of given sizes. Out: assertions
//! before the operation's statements, a site each, in the order in which the evaluator checks.
//!
//! ```text
//! %x = load_view_tko weak %v[%i]     -->     c = cmpi lt %i, 4
//!                                            assert c, "the index along dimension 0 lies outside the view"
//! ```
//!
//! Invariant: numbers are compared as 64 bits; the assertion before a sum shows that the sum fits.

use super::memory::{tensor_dim, tiles_along, traversal};
use super::{Lift, Result1, Tensor, konst};
use crate::cuda_tile::ir::{Attr, AttrKey, Op, Predicate, Signedness, TileViewType, ValueId, ViewKind};
use crate::index::Ix;
use crate::loops::ir::{LoopKind, Opnd, Stmt, Ty};
use crate::num::{DType, ScalarOp};

impl Lift<'_> {
    /// `a < b` as numbers of 64 bits.
    fn below(&mut self, a: Ix, b: Ix, sign: Signedness) -> Opnd {
        let (a, b) = (self.index(a, DType::I64), self.index(b, DType::I64));
        let less = ScalarOp::CmpI { pred: Predicate::LessThan, sign };
        self.compute(less, vec![a, b], Ty::Num(DType::I1))
    }

    fn demand(&mut self, cond: Opnd, message: String, op: &Op) {
        let site = self.site(op);
        self.emit(Stmt::Assert { cond, message, site });
    }

    /// The indices name a tile of the view, and the tile keeps the promises of `inbounds`.
    pub(super) fn check_tile(
        &mut self,
        tensor: &Tensor,
        view: &TileViewType,
        indices: &[ValueId],
        op: &Op,
    ) -> Result1<()> {
        if !self.options.check {
            return Ok(());
        }
        let promised = match op.attr(AttrKey::Inbounds) {
            Some(Attr::Bools(b)) => b.as_slice(),
            _ => &[],
        };
        for (i, &v) in indices.iter().enumerate() {
            let sparse = match view.kind {
                ViewKind::GatherScatter { sparse_dim } => Some(sparse_dim as usize == i),
                _ => None,
            };
            let Some(size) = tensor.shape.get(tensor_dim(view, i)).cloned() else { continue };
            let within = promised.get(i) == Some(&true);
            let broken = format!("the tile reaches outside the tensor along dimension {i}, which `inbounds` rules out");
            let rows = view.tile.get(i).copied().unwrap_or(1).max(0) as u64;
            if sparse == Some(true) {
                if within {
                    self.nest(&[rows], LoopKind::Free, |l, idx| {
                        let row = l.at(v, idx)?;
                        let fits = l.below(l.ix(row, true), size, Signedness::Unsigned);
                        l.demand(fits, broken, op);
                        Ok(())
                    })?;
                }
                continue;
            }
            let number = self.ix(self.scalar(v)?, true);
            if sparse.is_none() {
                let fits = self.below(number.clone(), tiles_along(tensor, view, i), Signedness::Unsigned);
                self.demand(fits, format!("the index along dimension {i} lies outside the view"), op);
            }
            if within {
                let start = self.below(number.clone(), size.clone(), Signedness::Unsigned);
                let start = if sparse.is_none() { konst(DType::I1, 1) } else { start };
                let first = Ix::mul(number, Ix::Const(traversal(view, i)));
                let end = self.below(Ix::add(first, Ix::Const(rows as i64 - 1)), size, Signedness::Signed);
                let fits = self.compute(ScalarOp::And, vec![start, end], Ty::Num(DType::I1));
                self.demand(fits, broken, op);
            }
        }
        Ok(())
    }

    /// The indices name a part of the whole.
    pub(super) fn check_part(&mut self, indices: &[ValueId], whole: &[u64], part: &[u64], op: &Op) -> Result1<()> {
        if !self.options.check {
            return Ok(());
        }
        for (d, ((&v, &whole), &part)) in indices.iter().zip(whole).zip(part).enumerate() {
            let count = (whole / part.max(1)) as i64;
            let number = self.ix(self.scalar(v)?, true);
            if matches!(number, Ix::Const(c) if (0..count).contains(&c)) {
                continue;
            }
            let fits = self.below(number, Ix::Const(count), Signedness::Unsigned);
            self.demand(fits, format!("the subtile index along dimension {d} is not below {count}"), op);
        }
        Ok(())
    }

    /// Extents or strides that the program gives are not negative.
    pub(super) fn check_sizes(&mut self, given: &[ValueId], what: &str, op: &Op) -> Result1<()> {
        if !self.options.check {
            return Ok(());
        }
        for &v in given {
            let number = self.ix(self.scalar(v)?, false);
            let fits = self.below(Ix::Const(-1), number, Signedness::Signed);
            self.demand(fits, format!("{what} of a tensor view is negative"), op);
        }
        Ok(())
    }
}
