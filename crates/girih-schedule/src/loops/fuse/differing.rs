//! The loops along which values differ, and the index expressions that buffers hold.
//!
//! ```text
//! for i in 0..64: t[i] = (bx*64 + i) % M * stride       t holds an index expression
//! for i in 0..64: for k in 0..32:
//!   r = t[i]                                             differs along i, is the same along k
//!   x = load A[r + k]
//! ```

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::index::{AxisId, Facts, Ix, ValId};
use crate::loops::ir::{BufId, For, Order, Stmt};
use crate::loops::walk;

/// An enclosing free or reduce loop.
struct Lane {
    axis: AxisId,
    written: BTreeSet<BufId>,
    stores: bool,
}

/// The enclosing free and reduce loops along which values differ.
#[derive(Default)]
pub(super) struct Differing {
    lanes: Vec<Lane>,
    along: FxHashMap<ValId, BTreeSet<AxisId>>,
}

impl Differing {
    pub(super) fn enter(&mut self, f: &For) {
        let effects = walk::effects(&f.body);
        let stores = !effects.stores.is_empty() || effects.ordered;
        self.lanes.push(Lane { axis: f.axis, written: effects.bufs_written, stores });
    }

    pub(super) fn leave(&mut self) {
        self.lanes.pop();
    }

    /// True inside of such loops.
    pub(super) fn any(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// True if the loop over an axis is one of them.
    pub(super) fn along(&self, axis: AxisId) -> bool {
        self.lanes.iter().any(|lane| lane.axis == axis)
    }

    /// The enclosing loops along which a value stays the same.
    pub(super) fn same_along(&self, v: ValId) -> impl Iterator<Item = AxisId> {
        let along = self.along.get(&v);
        self.lanes.iter().map(|lane| lane.axis).filter(move |axis| along.is_none_or(|along| !along.contains(axis)))
    }

    /// Notes the value that a statement defines.
    pub(super) fn define(&mut self, s: &Stmt) {
        let Some(dst) = walk::def(s).filter(|_| self.any()) else { return };
        let uses = walk::refs_of(s);
        let changes = |lane: &Lane| match s {
            Stmt::Let { .. } | Stmt::Index { .. } | Stmt::Test { .. } => false,
            Stmt::Read { buf, .. } => lane.written.contains(buf),
            Stmt::Load { order: Order::Weak, .. } => lane.stores,
            _ => true,
        };
        let own = self.lanes.iter().filter(|lane| uses.axes_used.contains(&lane.axis) || changes(lane));
        let mut along: BTreeSet<AxisId> = own.map(|lane| lane.axis).collect();
        along.extend(uses.vals_used.iter().filter_map(|v| self.along.get(v)).flatten());
        self.along.insert(dst, along);
    }
}

/// Shorter runs are not worth it, and longer ones than some vectors gain nothing.
const SHORTEST: i64 = 4;
const LONGEST: i64 = 64;

/// The length of the runs of an expression along an axis: 16 for `(bx*64 + j) % n` where 16 divides `n`.
fn run(ix: &Ix, axis: AxisId, facts: &Facts) -> Option<i64> {
    match ix {
        Ix::Mod(a, n) if !n.has_axis(axis) && matches!(a.linear(axis), Some((Ix::Const(1), _))) => {
            let first = a.subst_axes(&mut |x| (x == axis).then_some(Ix::Const(0)));
            i64::try_from(facts.divisor(&first).min(facts.divisor(n))).ok()
        }
        Ix::Add(a, b) if !b.has_axis(axis) => run(a, axis, facts),
        Ix::Add(a, b) if !a.has_axis(axis) => run(b, axis, facts),
        Ix::Sub(a, b) if !b.has_axis(axis) => run(a, axis, facts),
        _ => None,
    }
}

/// The index expressions that buffers hold: of those that one statement writes.
pub(super) struct Contents {
    once: FxHashSet<BufId>,
    held: BTreeMap<BufId, (Vec<Ix>, Ix)>,
    /// Values that were read from such buffers.
    read: BTreeMap<ValId, Ix>,
}

impl Contents {
    pub(super) fn of(body: &[Stmt]) -> Contents {
        let uses = walk::buffer_uses(body);
        let once = uses.into_iter().filter(|(_, of)| of.writes == 1 && of.roles == 0).map(|(buf, _)| buf).collect();
        Contents { once, held: BTreeMap::new(), read: BTreeMap::new() }
    }

    /// The element at `idx` of a buffer is `ix`, in all iterations of the loops around.
    pub(super) fn written(&mut self, buf: BufId, idx: &[Ix], ix: Ix) {
        let placed = ix.axes().into_iter().all(|a| idx.iter().filter(|at| at.has_axis(a)).eq([&Ix::Axis(a)]));
        if placed && self.once.contains(&buf) {
            self.held.insert(buf, (idx.to_vec(), ix));
        }
    }

    /// A value is the element at `idx` of a buffer.
    pub(super) fn read(&mut self, dst: ValId, buf: BufId, idx: &[Ix]) {
        let Some((places, ix)) = self.held.get(&buf) else { return };
        let place = |a| places.iter().position(|at| *at == Ix::Axis(a)).and_then(|d| idx.get(d)).cloned();
        self.read.insert(dst, ix.subst_axes(&mut |a| place(a)));
    }

    /// How many elements from each multiple of that number on follow one another along an axis, where a value was read.
    pub(super) fn run(&self, read: ValId, axis: AxisId, facts: &Facts) -> Option<i64> {
        run(self.read.get(&read)?, axis, facts).map(|n| n.min(LONGEST)).filter(|n| *n >= SHORTEST)
    }

    /// An expression with what buffers held in place of the values read from them; `None` if it mentions none.
    pub(super) fn spelled(&self, ix: &Ix) -> Option<Ix> {
        let spelled = ix.subst_vals(&mut |v, zext| self.read.get(&v).filter(|_| !zext).cloned());
        (spelled != *ix).then_some(spelled)
    }
}

#[cfg(test)]
mod tests {
    use crate::base::launch::Assumptions;
    use crate::base::rule::Log;
    use crate::loops::fuse::promote_index;
    use crate::loops::parse::parse;
    use crate::loops::print::{Dialect, print};

    /// Rows and columns that wrap around, in tables; two sums of them.
    const WRAPPED: &str = "loop kernel k(A: ptr f32, O: ptr f32, M: i32, N: i32 div 16, D: i32):
  local rows: i32[32]
  for i in 0..32: free
    i1: i32 = index i
    r: i32 = rem(i1, M)
    o: i32 = r * D
    rows[i] = o
  local columns: i32[32]
  for j in 0..32: free
    j1: i32 = index j
    c: i32 = rem(j1, N)
    columns[j] = c
  for i2 in 0..32: free
    for j2 in 0..32: free
      row: i32 = rows[i2]
      j3: i32 = index j2
      p: i32 = row + j3
      x: f32 = load A[p]
      column: i32 = columns[j2]
      q: i32 = row + column
      y: f32 = load A[q]
      z: f32 = x + y
      store O[i2*32 + j2] = z
";

    /// The loads of a kernel after the rule.
    fn loads(text: &str, no_wrap: bool) -> Vec<String> {
        let (kernel, _) = parse(text).unwrap();
        let assume = Assumptions { no_wrap, no_alias: true };
        let mut log = Log::default();
        let out = (promote_index::RULE.run)(&kernel, &assume, &mut log).unwrap_or(kernel);
        let text = print(&out, Dialect::Loop);
        let load = |l: &str| l.contains("= load ").then(|| l.rsplit("= ").next().unwrap_or("").trim().to_string());
        text.lines().filter_map(load).collect()
    }

    #[test]
    fn a_row_of_a_table_is_a_term_of_an_index() {
        assert_eq!(loads(WRAPPED, true), ["load A[row + j2]", "load A[row + (column + j2%16)]"]);
        // Where nothing is known to divide N, columns may wrap anywhere.
        let any = WRAPPED.replace("N: i32 div 16", "N: i32");
        assert_eq!(loads(&any, true), ["load A[row + j2]", "load A[q]"]);
        // Nothing tests at launch that the sum stays within 32 bits.
        assert_eq!(loads(WRAPPED, false), ["load A[p]", "load A[q]"]);
    }

    #[test]
    fn a_value_that_no_launch_knows_stays_one() {
        // What was loaded may be anything: its sum may wrap.
        let given = WRAPPED.replace("k(A: ptr f32", "k(T: ptr i32, A: ptr f32");
        let loaded = given.replace("    r: i32 = rem(i1, M)\n", "    r: i32 = load T[i]\n");
        assert_eq!(loads(&loaded, true)[1..], ["load A[p]", "load A[q]"]);
        // A table that changes is not what it was.
        let again = WRAPPED.replace("  local columns", "  for n in 0..32: free\n    rows[n] = 1\n  local columns");
        assert_eq!(loads(&again, true)[0], "load A[p]");
    }
}
