//! Rows behind the end of an array, which no store keeps, need not be those of another place.
//!
//! In: a row's number that wraps at the end, `x % M`. The rule follows it through values and buffers, row by row, to the stores: where
//! each is masked by `x < M`, rows from `M` on may hold anything.

use std::collections::BTreeMap;

use super::addressed;
use super::promote_index::{self, Forms};
use crate::base::launch::Assumptions;
use crate::base::rule::{Log, Rule};
use crate::index::{AxisId, Cmp, Cond, Ix, ValId};
use crate::loops::ir::{BufId, Kernel, LoopKind, Mask, Opnd, Order, PrintArg, Stmt};
use crate::loops::walk;
use crate::num::ScalarOp;
use crate::num::op::Signedness;

pub const RULE: Rule<Kernel, Assumptions> = Rule {
    name: "drop_wraps",
    doc: "\
A row's number that wraps at the end of an array loses its wrap where no store keeps what is computed of the rows behind the end. Loads
of these rows are masked off, so that addresses are affine: such a load is a part of an array, which one instruction may copy.

```text
for i: r[i] = (bx*64 + i) % M                         for i: r[i] = bx*64 + i
for i: for k: s[i] += load A[r[i]*9 + k]      -->     for i: for k: s[i] += load A[r[i]*9 + k] where bx*64 + i < M else 0
for i: store C[bx*64 + i] = s[i]                      for i: store C[bx*64 + i] = s[i]
             where bx*64 + i < M                                   where bx*64 + i < M
```

A number that is replaced at the end is the same, `x if x < M else 0`, and so is `min(x, M - 1)`.

Refused where a row of another number is computed from such a row, and where a store of it, an atomic, an assertion or a branch is not
masked in the same way.",
    run,
};

fn run(kernel: &Kernel, assume: &Assumptions, log: &mut Log) -> Option<Kernel> {
    if !may_wrap(kernel) {
        return None;
    }
    let (seen, forms) = promote_index::forms(kernel, assume);
    let mut out = Kernel { obligations: seen.obligations.clone(), ..kernel.clone() };
    let before = log.applied.len();
    for wrap in wraps(kernel, &forms) {
        let name = kernel.vals[wrap.dst].name.clone();
        match Rows::follow(kernel, &wrap, &seen.body) {
            Ok(loads) => {
                wrap.drop(&mut out.body, &loads);
                log.applied(name);
            }
            Err(why) => log.skipped(name, why),
        }
    }
    (log.applied.len() > before).then_some(out)
}

/// Returns true if an address depends on a number that may wrap or be replaced.
fn may_wrap(kernel: &Kernel) -> bool {
    let limits = |s: &Stmt| matches!(s, Stmt::Let { op, .. } if limits(*op));
    if !walk::stmts(&kernel.body).any(limits) {
        return false;
    }
    let addressed = addressed::values(&kernel.body);
    walk::stmts(&kernel.body).any(|s| limits(s) && walk::def(s).is_some_and(|v| addressed.contains(&v)))
}

fn limits(op: ScalarOp) -> bool {
    matches!(op, ScalarOp::RemI { .. } | ScalarOp::Select | ScalarOp::MinI { .. })
}

/// A value that is the number of a row, `ix`, for rows in front of the `end`.
struct Wrap {
    dst: ValId,
    /// The value of `ix`.
    number: Opnd,
    ix: Ix,
    end: Ix,
    /// The axis that counts the rows.
    axis: AxisId,
}

/// All values that wrap, or are replaced, where free loops count rows.
fn wraps(kernel: &Kernel, forms: &Forms) -> Vec<Wrap> {
    let (mut out, mut rows) = (vec![], vec![]);
    find(&kernel.body, kernel, forms, &mut rows, &mut out);
    out
}

fn find(body: &[Stmt], kernel: &Kernel, forms: &Forms, rows: &mut Vec<AxisId>, out: &mut Vec<Wrap>) {
    for s in body {
        match s {
            Stmt::Let { dst, op, args } if limits(*op) => out.extend(wrap(kernel, forms, rows, (*dst, *op, args))),
            Stmt::For(f) if f.kind == LoopKind::Free => {
                rows.push(f.axis);
                find(&f.body, kernel, forms, rows, out);
                rows.pop();
            }
            s => walk::bodies(s).into_iter().for_each(|inner| find(inner, kernel, forms, rows, out)),
        }
    }
}

fn wrap(kernel: &Kernel, forms: &Forms, rows: &[AxisId], (dst, op, args): (ValId, ScalarOp, &[Opnd])) -> Option<Wrap> {
    let (number, ix, end) = match (op, args) {
        (ScalarOp::RemI { .. }, [number, _]) => match forms.int(Opnd::Val(dst))? {
            Ix::Mod(ix, end) => (*number, *ix, *end),
            _ => return None,
        },
        (ScalarOp::MinI { sign: Signedness::Signed }, [a, b]) => {
            let counts = |o: &Opnd| forms.int(*o).is_some_and(|ix| rows.iter().any(|axis| ix.has_axis(*axis)));
            let (number, last) = if counts(a) { (a, b) } else { (b, a) };
            (*number, forms.int(*number)?, Ix::add(forms.int(*last)?, Ix::Const(1)))
        }
        (ScalarOp::Select, [inside, number, _]) => {
            let Cond { lhs, cmp: Cmp::Lt, rhs } = forms.cond(*inside)? else { return None };
            (lhs == forms.int(*number)?).then_some((*number, lhs, rhs))?
        }
        _ => return None,
    };
    let counted: Vec<AxisId> = rows.iter().copied().filter(|axis| ix.has_axis(*axis)).collect();
    let given = |ix: &Ix| ix.vals().iter().all(|v| kernel.params.iter().any(|p| p.val == *v));
    let fixed = |ix: &Ix| !ix.any_leaf(&mut |l| !matches!(l, Ix::Const(_) | Ix::Val { .. }));
    match counted[..] {
        [axis] if given(&ix) && given(&end) && fixed(&end) => Some(Wrap { dst, number, ix, end, axis }),
        _ => None,
    }
}

impl Wrap {
    /// `ix < end` of the row that another axis counts.
    fn inside(&self, axis: AxisId) -> Cond {
        let ix = self.ix.subst_axes(&mut |a| (a == self.axis).then_some(Ix::Axis(axis)));
        Cond::new(ix, Cmp::Lt, self.end.clone())
    }

    /// The number itself in place of the value, and masks for the loads that depend on it.
    fn drop(&self, body: &mut [Stmt], loads: &BTreeMap<ValId, AxisId>) {
        walk::visit_mut(body, &mut |s| match s {
            Stmt::Let { dst, op, args } if *dst == self.dst => (*op, *args) = (ScalarOp::Copy, vec![self.number]),
            Stmt::Load { dst, mask, .. } => mask.conds.extend(loads.get(dst).map(|axis| self.inside(*axis))),
            _ => {}
        });
    }
}

/// Assertions, branches, loops, and what is printed.
const NO_MASK: &str = "a statement without a mask depends on it";

/// The place of a row in a buffer that depends on the row's number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// Its subscript of that place is the row.
    Rows(usize),
    /// It is declared inside the loop over the rows, and holds what is of one.
    One(AxisId),
}

/// The values and buffers that depend on the number of a row.
struct Rows<'a> {
    wrap: &'a Wrap,
    vals: BTreeMap<ValId, AxisId>,
    bufs: BTreeMap<BufId, Holds>,
    loads: BTreeMap<ValId, AxisId>,
    /// The loops around the current statement.
    around: Vec<AxisId>,
    /// The loops around the place where a buffer is declared.
    declared: BTreeMap<BufId, Vec<AxisId>>,
}

impl<'a> Rows<'a> {
    /// The loads that depend on the number of a row, with the axis that counts it. `seen`: the body with its masks as expressions.
    fn follow(kernel: &Kernel, wrap: &'a Wrap, seen: &[Stmt]) -> Result<BTreeMap<ValId, AxisId>, &'static str> {
        let vals = BTreeMap::from([(wrap.dst, wrap.axis)]);
        let (bufs, loads, declared) = Default::default();
        let mut rows = Rows { wrap, vals, bufs, loads, around: vec![], declared };
        loop {
            let before = (rows.vals.len(), rows.bufs.len());
            rows.list(&kernel.body, seen)?;
            if (rows.vals.len(), rows.bufs.len()) == before {
                return if rows.loads.is_empty() { Err("no load depends on it") } else { Ok(rows.loads) };
            }
        }
    }

    fn list(&mut self, body: &[Stmt], seen: &[Stmt]) -> Result<(), &'static str> {
        for (s, seen) in body.iter().zip(seen) {
            self.stmt(s, seen)?;
            let axis = if let Stmt::For(f) = s { Some(f.axis) } else { None };
            self.around.extend(axis);
            for (inner, seen) in walk::bodies(s).into_iter().zip(walk::bodies(seen)) {
                self.list(inner, seen)?;
            }
            self.around.truncate(self.around.len() - usize::from(axis.is_some()));
        }
        Ok(())
    }

    /// The axis that counts the rows on which one of the values depends.
    fn of(&self, vals: impl IntoIterator<Item = ValId>) -> Result<Option<AxisId>, &'static str> {
        let mut found = None;
        for axis in vals.into_iter().filter_map(|v| self.vals.get(&v)) {
            if found.is_some_and(|other| other != axis) {
                return Err("two rows meet in one value");
            }
            found = Some(axis);
        }
        Ok(found.copied())
    }

    fn stmt(&mut self, s: &Stmt, seen: &Stmt) -> Result<(), &'static str> {
        if walk::def(s) == Some(self.wrap.dst) {
            return Ok(());
        }
        let mut used = vec![];
        walk::each_use(s, &mut |v| used.push(v));
        let axis = self.of(used)?;
        match s {
            Stmt::Local { buf } => _ = self.declared.insert(*buf, self.around.clone()),
            Stmt::Read { dst, buf, idx } => {
                if axis.is_some() {
                    return Err("a place in a buffer depends on it");
                }
                let row = match self.bufs.get(buf) {
                    None => return Ok(()),
                    Some(Holds::One(axis)) => *axis,
                    Some(Holds::Rows(at)) => match idx.get(*at) {
                        Some(Ix::Axis(axis)) => *axis,
                        _ => return Err("a loop reads another row than its own"),
                    },
                };
                self.vals.insert(*dst, row);
            }
            Stmt::Write { buf, idx, .. } => {
                if self.of(idx.iter().flat_map(Ix::vals))?.is_some() {
                    return Err("a place in a buffer depends on it");
                }
                if let Some(row) = axis {
                    self.write(*buf, idx, row)?;
                }
            }
            Stmt::Load { dst, order, .. } => {
                let Some(axis) = axis else { return Ok(()) };
                if *order != Order::Weak {
                    return Err("a load that orders others depends on it");
                }
                self.loads.insert(*dst, axis);
                self.vals.insert(*dst, axis);
            }
            Stmt::Print { args, .. } if args.iter().any(|arg| self.prints(arg)) => return Err(NO_MASK),
            _ if axis.is_none() => {}
            Stmt::Let { op: ScalarOp::DivI { .. } | ScalarOp::RemI { .. }, .. } => {
                return Err("a quotient depends on it");
            }
            Stmt::Let { dst, .. } | Stmt::Index { dst, .. } | Stmt::Test { dst, .. } => {
                self.vals.extend(axis.map(|axis| (*dst, axis)));
            }
            Stmt::Store { .. } | Stmt::Rmw { .. } | Stmt::Cas { .. } => {
                let masked = axis.zip(walk::mask(seen)).is_some_and(|(axis, mask)| self.inside(axis, mask));
                if !masked {
                    return Err("a store keeps rows behind the end");
                }
                self.vals.extend(walk::def(s).zip(axis));
            }
            _ => return Err(NO_MASK),
        }
        Ok(())
    }

    fn prints(&self, arg: &PrintArg) -> bool {
        matches!(arg, PrintArg::Buf(buf) if self.bufs.contains_key(buf))
    }

    fn write(&mut self, buf: BufId, idx: &[Ix], row: AxisId) -> Result<(), &'static str> {
        let around = self.declared.get(&buf).ok_or("a buffer has no place of its own")?;
        let outer = self.wrap.ix.axes().into_iter().filter(|a| *a != self.wrap.axis);
        if !outer.into_iter().all(|a| around.contains(&a)) {
            return Err("a buffer keeps rows of several turns of a loop");
        }
        let mut places = (0..idx.len()).filter(|at| idx[*at] == Ix::Axis(row));
        let holds = match (around.contains(&row), places.next(), places.next()) {
            (true, ..) => Holds::One(row),
            (false, Some(at), None) => Holds::Rows(at),
            _ => return Err("rows are folded into one"),
        };
        match self.bufs.insert(buf, holds) {
            Some(other) if other != holds => Err("a buffer has rows along two dimensions"),
            _ => Ok(()),
        }
    }

    /// Returns true if a mask holds for no row behind the end.
    fn inside(&self, axis: AxisId, mask: &Mask) -> bool {
        let inside = self.wrap.inside(axis);
        mask.conds.iter().any(|c| c.says(&inside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::host::Silent;
    use crate::base::launch::Launch;
    use crate::base::memory::VecMemory;
    use crate::loops::eval;
    use crate::loops::parse::parse;
    use crate::loops::print::{Dialect, print};

    /// Sums of rows that wrap around, each scaled by a number of its row.
    const SUMS: &str = "loop kernel k(A: ptr i32, S: ptr i32, C: ptr i32, M: i32, K: i32):
  first: i32 = index bx*8
  local rows: i32[8]
  for i in 0..8: free
    i1: i32 = index i
    x: i32 = first + i1
    r: i32 = rem(x, M)
    rows[i] = r
  local total: i32[8]
  for j in 0..8: free
    total[j] = 0
    for k in 0..K: reduce
      row: i32 = rows[j]
      o: i32 = row * K
      k1: i32 = index k
      at: i32 = o + k1
      p: ptr i32 = A + at
      a: i32 = load p[0]
      t: i32 = total[j]
      t1: i32 = t + a
      total[j] = t1
  for l in 0..8: free
    l1: i32 = index l
    y: i32 = first + l1
    inside: i1 = y < M
    row1: i32 = rows[l]
    s: i32 = load S[row1]
    t2: i32 = total[l]
    t3: i32 = t2 * s
    q: ptr i32 = C + y
    store q[0] = t3 where inside
";

    /// The kernel after the rule, and what it said.
    fn dropped(text: &str) -> (Option<Kernel>, Log) {
        let (kernel, _) = parse(text).unwrap();
        let mut log = Log::default();
        let out = (RULE.run)(&kernel, &Assumptions { no_wrap: true, no_alias: true }, &mut log);
        (out, log)
    }

    /// The numbers that three blocks store for 19 rows of 5.
    fn stored(kernel: &Kernel) -> Vec<u8> {
        let mut memory = VecMemory::new();
        let numbers = |n: i32, by: i32| (0..n).flat_map(|i| (i * by % 7).to_le_bytes()).collect::<Vec<u8>>();
        let slots =
            [memory.add("A", numbers(19 * 5, 3)), memory.add("S", numbers(19, 5)), memory.add("C", vec![9; 19 * 4])];
        let args = slots.into_iter().chain([19, 5]).collect();
        eval::run(kernel, &Launch::new([3, 1, 1], args), &mut memory, &mut Silent).expect("it ends");
        memory.bytes(slots[2]).unwrap().to_vec()
    }

    #[test]
    fn rows_behind_the_end_are_masked_off() {
        let changed = [
            ("", ""),
            ("    r: i32 = rem(x, M)\n", "    c: i1 = x < M\n    r: i32 = select(c, x, 0)\n"),
            ("    r: i32 = rem(x, M)\n", "    last: i32 = M - 1\n    r: i32 = min(x, last)\n"),
            ("y < M", "M > y"),
        ];
        for (from, to) in changed {
            let text = SUMS.replace(from, to);
            assert!(from.is_empty() || text != SUMS, "{from}");
            let (kernel, _) = parse(&text).unwrap();
            let (out, log) = dropped(&text);
            assert_eq!(log.applied, ["r"], "{:?}", log.skipped);
            let out = out.expect("it changes");
            let made = print(&out, Dialect::Loop);
            for load in ["a: i32 = load p[0] where bx*8 + j < M", "s: i32 = load S[row1] where bx*8 + l < M"] {
                assert!(made.contains(load), "{load} is not in\n{made}");
            }
            assert!(!made.contains("rem("), "{made}");
            assert_eq!(stored(&out), stored(&kernel));
        }
    }

    #[test]
    fn rows_that_are_kept_wrap() {
        for (from, to, why) in [
            ("    store q[0] = t3 where inside\n", "    store q[0] = t3\n", "a store keeps rows behind the end"),
            ("y < M", "y <= M", "a store keeps rows behind the end"),
            ("y < M", "l1 < M", "a store keeps rows behind the end"),
            ("    t2: i32 = total[l]\n", "    t2: i32 = total[7 - l]\n", "a loop reads another row than its own"),
            ("      total[j] = t1\n", "      total[0] = t1\n", "rows are folded into one"),
            ("    t3: i32 = t2 * s\n", "    t3: i32 = div(t2, s)\n", "a quotient depends on it"),
            ("    t2: i32 = total[l]\n", "    t2: i32 = total[s]\n", "a place in a buffer depends on it"),
            ("  for l in 0..8: free\n", "  print \"%d\", total\n  for l in 0..8: free\n", NO_MASK),
            ("    t2: i32 = total[l]\n", "    t2: i32 = total[l]\n    print \"%d\", t2\n", NO_MASK),
            ("a: i32 = load p[0]", "a: i32 = load p[0] acquire", "a load that orders others depends on it"),
            (
                "      row: i32 = rows[j]\n",
                "      row2: i32 = rows[k]\n      row3: i32 = rows[j]\n      row: i32 = row2 + row3\n",
                "two rows meet in one value",
            ),
        ] {
            let text = SUMS.replace(from, to);
            assert_ne!(text, SUMS, "{from}");
            let (out, log) = dropped(&text);
            assert_eq!(out, None);
            assert_eq!(log.skipped, [("r".to_string(), why.to_string())], "{from}");
        }
    }

    /// The launch tests that rows are natural numbers; where it does not, nothing is known of the remainder.
    #[test]
    fn nothing_is_dropped_where_no_launch_is_tested() {
        let (kernel, _) = parse(SUMS).unwrap();
        let mut log = Log::default();
        assert_eq!((RULE.run)(&kernel, &Assumptions { no_wrap: false, no_alias: true }, &mut log), None);
        assert_eq!((log.applied.len(), log.skipped.len()), (0, 0));
    }
}
