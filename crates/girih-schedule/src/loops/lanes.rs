//! Reductions among neighbouring lanes of a warp, as loops.
//!
//! ```text
//! for t in 0..128: free thread
//!   for q in 0..4: reduce lanes combine max(best) from -inf x 4
//!     x = part[t//4*4 + q, 0]          what each of four neighbours has
//!     y = best
//!     best = max(x, y)                 each of them gets the same
//! ```

use crate::index::Ix;
use crate::loops::ir::*;

/// Lane `lane` of the group of `ways` neighbouring threads that contains `thread`.
pub fn of_group(thread: AxisId, ways: i64, lane: Ix) -> Ix {
    let first = Ix::mul(Ix::floor_div(Ix::Axis(thread), Ix::Const(ways)), Ix::Const(ways));
    Ix::add(first, lane)
}

/// A reduction among lanes: each lane's value, and the statements that combine it.
pub struct Folded {
    pub value: ValId,
    pub buf: BufId,
    /// The element of the buffer in the thread's own part.
    pub own: Vec<Ix>,
    pub rest: Vec<Stmt>,
}

impl Folded {
    /// The reduction of a loop over lanes inside a loop over threads.
    ///
    /// # Errors
    /// Why the loop is not such a reduction, in a few words.
    pub fn of(thread: AxisId, f: &For) -> Result<Folded, &'static str> {
        let (LoopKind::Reduce, Place::Lanes, Some(c)) = (f.kind, f.place, &f.combine) else {
            return Err("it does not combine");
        };
        let ways = i64::from(c.ways);
        if !f.lo.is_const(0) || !f.hi.is_const(ways) || !(2..=32).contains(&ways) {
            return Err("its iterations are not as many lanes, at most a warp");
        }
        let from = of_group(thread, ways, Ix::Axis(f.axis));
        let CombineOp::Scalar { op, .. } = c.op;
        let [Stmt::Read { dst, buf, idx }, rest @ ..] = &f.body[..] else { return Err(OTHER) };
        let [
            Stmt::Read { dst: old, buf: acc, .. },
            Stmt::Let { dst: new, op: done, args },
            Stmt::Write { buf: to, value, .. },
        ] = rest
        else {
            return Err(OTHER);
        };
        let both = [Opnd::Val(*dst), Opnd::Val(*old)];
        let plain = *done == op && args[..] == both && *value == Opnd::Val(*new) && acc == to && c.accs[..] == [*acc];
        let ([first, within @ ..], true) = (&idx[..], plain) else { return Err(OTHER) };
        if *first != from || within.iter().any(|ix| ix.has_axis(f.axis)) {
            return Err(OTHER);
        }
        let own = std::iter::once(Ix::Axis(thread)).chain(within.iter().cloned()).collect();
        Ok(Folded { value: *dst, buf: *buf, own, rest: rest.to_vec() })
    }
}

const OTHER: &str = "it does more than fold what each of the lanes has";
