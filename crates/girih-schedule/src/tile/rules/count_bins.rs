//! `count_bins`

use std::collections::BTreeSet;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::num::op::{Predicate, Signedness};
use crate::num::{DType, ScalarOp};
use crate::tile::Context;
use crate::tile::edit::{self, Visit, const_trip, new_axis};
use crate::tile::heuristics::count_bins::{FROM, MOST};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "count_bins",
    doc: "\
Counts how often each of many numbers occurs by going through what is counted once, rather than once for each number: a
histogram.

```text
for j in 0..64: free                             for c in 0..4: free
  local s                                          for j in 0..65: free
  s = 0                                              bins[c, j] = 0
  j_1: i32 = index j                             for i in 0..8192: reduce
  for i in 0..8192: reduce combine add(s)          %v = x[i]
    %v = x[i]                             -->      %in = %v >= 0 and %v < 64
    %is = %v == j_1                                %at = select(%in, %v, 64)
    s <- i32(%is) + s                              bins[i % 4, %at] <- bins[i % 4, %at] + 1
  out[j] = s                                     for j in 0..64: free
                                                   out[j] = bins[0, j] + ... + bins[3, j_2]
```

An element that equals none of the numbers counts in a bin that nobody reads. Four copies of the bins take turns, so that equal
neighbours do not wait for each other.

Refuses fewer than eight numbers, for which vectors are as fast; numbers that do not start at 0, or whose count is not a constant;
and folds that do anything else.
",
    run,
};

const COPIES: i64 = 4;

fn run(p: &Kernel, _: &Context, log: &mut Log) -> Option<Kernel> {
    // The blocks of an open kernel would share the numbers.
    if p.open {
        return None;
    }
    edit::rewrite(p, &mut |kernel, s| {
        let Stmt::For(f) = s else { return Visit::Into };
        if f.kind != LoopKind::Free || f.place != Place::None {
            return Visit::Into;
        }
        let Some(counting) = Counting::of(kernel, f) else { return Visit::Into };
        let site = axis_site(kernel, f.axis);
        match counting {
            Ok(counting) => {
                log.applied(site);
                Visit::Replace(counting.rewritten(kernel, f))
            }
            Err(why) => {
                log.skipped(site, why);
                Visit::Into
            }
        }
    })
}

/// A loop over numbers, in which a fold counts what is equal to each.
struct Counting<'a> {
    numbers: u64,
    /// Where the fold stands in the loop's body.
    at: usize,
    fold: &'a For,
    acc: BufId,
    count: DType,
    /// The value that is compared with the number, its type, and the conditions that must also hold.
    counted: Opnd,
    dtype: DType,
    and: Vec<Opnd>,
    /// The statements of the fold's body that do not depend on the number.
    same: Vec<Stmt>,
}

impl<'a> Counting<'a> {
    /// `None` where the loop counts nothing equal to its axis.
    fn of(kernel: &Kernel, f: &'a For) -> Option<Result<Counting<'a>, &'static str>> {
        let mut loops = f.body.iter().enumerate().filter(|(_, s)| !walk::bodies(s).is_empty());
        let (Some((at, Stmt::For(fold))), None) = (loops.next(), loops.next()) else { return None };
        let Combine { accs, op: CombineOp::Scalar { op: ScalarOp::AddI, identity: 0 }, .. } = fold.combine.as_ref()?
        else {
            return None;
        };
        let ([acc], Place::None, LoopKind::Reduce) = (&accs[..], fold.place, fold.kind) else { return None };
        let def = |v: &Opnd| match v {
            Opnd::Val(v) => fold.body.iter().chain(&f.body[..at]).find(|s| walk::def(s) == Some(*v)),
            Opnd::Const { .. } => None,
        };
        // acc = ext(.. and x == j and ..) + acc
        let [.., Stmt::Write { buf, value, .. }] = &fold.body[..] else { return None };
        let Some(Stmt::Let { op: ScalarOp::AddI, args, .. }) = def(value).filter(|_| buf == acc) else { return None };
        let is_acc = |v: &Opnd| matches!(def(v), Some(Stmt::Read { buf, .. }) if buf == acc);
        let one = args.iter().find(|v| !is_acc(v)).filter(|_| args.iter().any(is_acc))?;
        let Some(Stmt::Let { op: ScalarOp::ExtI { to, sign: Signedness::Unsigned }, args: truth, .. }) = def(one)
        else {
            return None;
        };
        let (mut waiting, mut and, mut equal) = (truth.clone(), vec![], None);
        let is_number = |v: &Opnd| matches!(def(v), Some(Stmt::Index { ix: Ix::Axis(a), .. }) if *a == f.axis);
        while let Some(v) = waiting.pop() {
            match def(&v) {
                Some(Stmt::Let { op: ScalarOp::And, args, .. }) => waiting.extend(args),
                Some(Stmt::Let { op: ScalarOp::CmpI { pred: Predicate::Equal, .. }, args, .. })
                    if equal.is_none() && args.iter().any(is_number) =>
                {
                    equal = args.iter().find(|v| !is_number(v)).copied();
                }
                _ => and.push(v),
            }
        }
        let counted = equal?;
        Some(Counting::checked(
            kernel,
            f,
            Counting { numbers: 0, at, fold, acc: *acc, count: *to, counted, dtype: DType::I32, and, same: vec![] },
        ))
    }

    fn checked(kernel: &Kernel, f: &'a For, mut of: Counting<'a>) -> Result<Counting<'a>, &'static str> {
        of.numbers = const_trip(f)
            .filter(|n| *n <= MOST)
            .ok_or("how many numbers are counted is not known, or they are many")?;
        if of.numbers < FROM {
            return Err("it counts few numbers");
        }
        let Opnd::Val(counted) = of.counted else { return Err("it counts a constant") };
        of.dtype = match kernel.vals[counted].ty {
            Ty::Num(d @ (DType::I32 | DType::I64)) => d,
            _ => return Err("it counts numbers of another type than i32 or i64"),
        };
        // The rest of the fold, without the number and the count.
        let before = refs(&f.body[..of.at]).vals_defined;
        let mut varying: BTreeSet<ValId> = before.clone();
        let same = edit::invariant(&of.fold.body, f.axis, &before, &BTreeSet::from([of.acc]));
        for (s, same) in of.fold.body.iter().zip(same) {
            if same {
                of.same.push(s.clone());
            } else {
                varying.extend(walk::def(s));
            }
        }
        let known = |v: &Opnd| !matches!(v, Opnd::Val(v) if varying.contains(v));
        let bounds = [&of.fold.lo, &of.fold.hi, &of.fold.step];
        if bounds.iter().any(|ix| ix.has_axis(f.axis) || ix.vals().iter().any(|v| before.contains(v))) {
            return Err("a number decides how much is counted");
        }
        if !known(&of.counted) || !of.and.iter().all(known) {
            return Err("what is counted depends on the number");
        }
        let written = |body: &[Stmt]| refs(body).bufs_written.iter().any(|b| *b != of.acc);
        let pure = |s: &Stmt| edit::is_pure(s) || matches!(s, Stmt::Write { .. });
        if !of.fold.body.iter().all(pure) || written(&of.fold.body) || written(&f.body[..of.at]) {
            return Err("it does more than count");
        }
        Ok(of)
    }

    fn rewritten(self, kernel: &mut Kernel, f: &For) -> Vec<Stmt> {
        let Counting { numbers, at, fold, acc, count, counted, dtype, and, same } = self;
        let numbers = numbers as i64;
        let val =
            |kernel: &mut Kernel, name: &str, d: DType| kernel.vals.push(Val { ty: Ty::Num(d), name: name.into() });
        let number = |d: DType, n: i64| Opnd::Const { dtype: d, bits: n as u64 & d.mask() };
        let shape = vec![COPIES as u64, numbers as u64 + 1];
        let bins = kernel.bufs.push(Buf::new("bins", Ty::Num(count), shape));

        let [copy, bin] = [new_axis(kernel, f.axis, ""), new_axis(kernel, f.axis, "")];
        let idx = vec![Ix::Axis(copy), Ix::Axis(bin)];
        let clear =
            edit::free_loop(bin, Ix::Const(numbers + 1), vec![Stmt::Write { buf: bins, idx, value: number(count, 0) }]);
        let clear = edit::free_loop(copy, Ix::Const(COPIES), vec![clear]);

        let mut body = same;
        let both = |kernel: &mut Kernel, body: &mut Vec<Stmt>, op, args: Vec<Opnd>| {
            let dst = val(kernel, "is", DType::I1);
            body.push(Stmt::Let { dst, op, args });
            Opnd::Val(dst)
        };
        let compare = |pred| ScalarOp::CmpI { pred, sign: Signedness::Signed };
        let mut inside =
            both(kernel, &mut body, compare(Predicate::GreaterThanOrEqual), vec![counted, number(dtype, 0)]);
        let below = both(kernel, &mut body, compare(Predicate::LessThan), vec![counted, number(dtype, numbers)]);
        for also in [below].into_iter().chain(and) {
            inside = both(kernel, &mut body, ScalarOp::And, vec![inside, also]);
        }
        let [at_bin, old, new] = [("at", dtype), ("count", count), ("count", count)].map(|(n, d)| val(kernel, n, d));
        body.push(Stmt::Let { dst: at_bin, op: ScalarOp::Select, args: vec![inside, counted, number(dtype, numbers)] });
        let turn = Ix::Mod(Box::new(Ix::Axis(fold.axis)), Box::new(Ix::Const(COPIES)));
        let idx = vec![turn, Ix::Val { val: at_bin, zext: false }];
        body.push(Stmt::Read { dst: old, buf: bins, idx: idx.clone() });
        body.push(Stmt::Let { dst: new, op: ScalarOp::AddI, args: vec![Opnd::Val(old), number(count, 1)] });
        body.push(Stmt::Write { buf: bins, idx, value: Opnd::Val(new) });
        let counting = Stmt::For(Box::new(For { combine: None, body, ..fold.clone() }));

        // The loop's use of its count.
        let mut of_number = f.body[..at].to_vec();
        let mut sum = val(kernel, "count", count);
        of_number.push(Stmt::Read { dst: sum, buf: acc, idx: vec![] });
        for copy in 0..COPIES {
            let [part, more] = [(); 2].map(|()| val(kernel, "count", count));
            of_number.push(Stmt::Read { dst: part, buf: bins, idx: vec![Ix::Const(copy), Ix::Axis(f.axis)] });
            of_number.push(Stmt::Let { dst: more, op: ScalarOp::AddI, args: vec![Opnd::Val(sum), Opnd::Val(part)] });
            sum = more;
        }
        of_number.push(Stmt::Write { buf: acc, idx: vec![], value: Opnd::Val(sum) });
        of_number.extend(f.body[at + 1..].iter().cloned());
        let rest = Stmt::For(Box::new(For { body: of_number, ..f.clone() }));
        vec![Stmt::Local { buf: bins }, clear, counting, rest]
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text};

    const COUNT: &str = "\
loop kernel k(x: ptr i32, y: ptr i32, n: i32):
  for j in 0..64: free
    local s: i32
    s = 0
    j1: i32 = index j
    for i in 0..100: reduce combine add(s) from 0
      v: i32 = load x[i]
      e: i1 = v == j1
      k: i32 = index i
      m: i1 = k < n
      b: i1 = e & m
      o: i32 = ext.u.i32(b)
      s0: i32 = s
      s1: i32 = o + s0
      s = s1
    t: i32 = s
    store y[j] = t
";

    #[test]
    fn numbers_are_counted_in_bins() {
        let (out, log) = apply("count_bins", &kernel(COUNT), &context());
        assert_eq!(log.applied, ["loop j"]);
        let made = text(&out);
        assert!(made.contains("local bins: i32[4, 65]") && made.contains("for i in 0..100: reduce\n"), "{made}");
        assert!(made.contains("= bins[i%4, at]") && made.contains("bins[3, j_2]"), "{made}");
        assert_eq!(made.matches("load x[i]").count(), 1, "{made}");
    }

    #[test]
    fn what_is_refused() {
        let why = |from: &str, to: &str| refusals("count_bins", &COUNT.replace(from, to), &context()).join("; ");
        assert_eq!(why("0..64", "0..7"), "loop j: it counts few numbers");
        assert_eq!(why("0..64", "0..n"), "loop j: how many numbers are counted is not known, or they are many");
        assert_eq!(why("load x[i]", "load x[i + j]"), "loop j: what is counted depends on the number");
        assert_eq!(why("in 0..100", "in 0..j + 1"), "loop j: a number decides how much is counted");
        // A sum of something else is not a count.
        assert_eq!(why("o + s0", "v + s0"), "");
    }
}
