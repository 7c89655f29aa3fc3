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
use crate::tile::target::Capability;

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
neighbours do not wait for each other. The threads of a block, on a GPU, add to one copy in the memory that they share, atomically.

Refuses fewer than eight numbers, for which vectors are as fast, or than a warp has lanes on a GPU; numbers that do not start at 0, or whose count is not a constant;
and folds that do anything else.
",
    run,
};

const COPIES: i64 = 4;

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    // The blocks of an open kernel would share the numbers.
    if p.open {
        return None;
    }
    let threads = ctx.target.has(Capability::Threads);
    let from = if threads { u64::from(ctx.target.axes.lanes) } else { FROM };
    edit::rewrite(p, &mut |kernel, s| {
        let Stmt::For(f) = s else { return Visit::Into };
        if f.kind != LoopKind::Free || f.place != Place::None {
            return Visit::Into;
        }
        let Some(counting) = Counting::of(kernel, f, from) else { return Visit::Into };
        let site = axis_site(kernel, f.axis);
        match counting {
            Ok(counting) => {
                log.applied(site);
                let bins = Bins::new(kernel, &counting, threads);
                Visit::Replace(counting.rewritten(kernel, f, bins))
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
    fn of(kernel: &Kernel, f: &'a For, from: u64) -> Option<Result<Counting<'a>, &'static str>> {
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
            from,
        ))
    }

    fn checked(kernel: &Kernel, f: &'a For, mut of: Counting<'a>, from: u64) -> Result<Counting<'a>, &'static str> {
        of.numbers = const_trip(f)
            .filter(|n| *n <= MOST)
            .ok_or("how many numbers are counted is not known, or they are many")?;
        if of.numbers < from {
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

    fn rewritten(self, kernel: &mut Kernel, f: &For, bins: Bins) -> Vec<Stmt> {
        let mut out = bins.cleared(kernel, &self, f.axis);
        let mut body = self.same.clone();
        let inside = self.inside(kernel, &mut body);
        body.extend(bins.added(kernel, &self, inside));
        let kind = if let Bins::Shared(_) = bins { LoopKind::Free } else { self.fold.kind };
        out.push(Stmt::For(Box::new(For { combine: None, kind, body, ..self.fold.clone() })));

        // The loop's use of its count.
        let mut of_number = f.body[..self.at].to_vec();
        let mut sum = fresh(kernel, "count", self.count);
        of_number.push(Stmt::Read { dst: sum, buf: self.acc, idx: vec![] });
        for copy in 0..bins.copies() {
            let [part, more] = [(); 2].map(|()| fresh(kernel, "count", self.count));
            of_number.push(bins.read(part, &self, copy, f.axis));
            of_number.push(Stmt::Let { dst: more, op: ScalarOp::AddI, args: vec![Opnd::Val(sum), Opnd::Val(part)] });
            sum = more;
        }
        of_number.push(Stmt::Write { buf: self.acc, idx: vec![], value: Opnd::Val(sum) });
        of_number.extend(f.body[self.at + 1..].iter().cloned());
        out.push(Stmt::For(Box::new(For { body: of_number, ..f.clone() })));
        out
    }

    /// Returns true, at run time, for a value that has a bin and is counted.
    fn inside(&self, kernel: &mut Kernel, body: &mut Vec<Stmt>) -> Opnd {
        let mut both = |op, args: Vec<Opnd>| {
            let dst = fresh(kernel, "is", DType::I1);
            body.push(Stmt::Let { dst, op, args });
            Opnd::Val(dst)
        };
        let compare = |pred| ScalarOp::CmpI { pred, sign: Signedness::Signed };
        let mut inside = both(compare(Predicate::GreaterThanOrEqual), vec![self.counted, number(self.dtype, 0)]);
        let below = both(compare(Predicate::LessThan), vec![self.counted, number(self.dtype, self.numbers as i64)]);
        for also in [below].into_iter().chain(self.and.iter().copied()) {
            inside = both(ScalarOp::And, vec![inside, also]);
        }
        inside
    }

    fn site(&self) -> SiteId {
        let of = |s: &Stmt| if let Stmt::Load { site, .. } = s { Some(*site) } else { None };
        self.fold.body.iter().find_map(of).unwrap_or(SiteId(0))
    }
}

fn fresh(kernel: &mut Kernel, name: &str, d: DType) -> ValId {
    kernel.vals.push(Val { ty: Ty::Num(d), name: name.into() })
}

fn number(d: DType, n: i64) -> Opnd {
    Opnd::Const { dtype: d, bits: n as u64 & d.mask() }
}

/// The bins of a loop.
#[derive(Clone, Copy)]
enum Bins {
    /// Copies that take turns, each with a bin for what is not counted.
    Copies(BufId),
    /// One copy in the block's memory, which its threads add to.
    Shared(ValId),
}

impl Bins {
    fn new(kernel: &mut Kernel, of: &Counting, threads: bool) -> Bins {
        if threads {
            return Bins::Shared(kernel.vals.push(Val { ty: Ty::Ptr(of.count), name: "bins".into() }));
        }
        let shape = vec![COPIES as u64, of.numbers + 1];
        Bins::Copies(kernel.bufs.push(Buf::new("bins", Ty::Num(of.count), shape)))
    }

    fn copies(self) -> i64 {
        if let Bins::Copies(_) = self { COPIES } else { 1 }
    }

    /// The bins, with zeros.
    fn cleared(self, kernel: &mut Kernel, of: &Counting, like: AxisId) -> Vec<Stmt> {
        let bin = new_axis(kernel, like, "");
        let (zero, numbers) = (number(of.count, 0), of.numbers as i64);
        match self {
            Bins::Copies(buf) => {
                let copy = new_axis(kernel, like, "");
                let clear = Stmt::Write { buf, idx: vec![Ix::Axis(copy), Ix::Axis(bin)], value: zero };
                let clear = edit::free_loop(bin, Ix::Const(numbers + 1), vec![clear]);
                vec![Stmt::Local { buf }, edit::free_loop(copy, Ix::Const(COPIES), vec![clear])]
            }
            Bins::Shared(base) => {
                let mem = Mem { base, index: Ix::Axis(bin), elem: of.count };
                let (mask, order, site) = (Mask::default(), Order::Weak, of.site());
                let clear = Stmt::Store { mem, value: zero, mask, order, site };
                let bytes = of.numbers * of.count.bytes();
                vec![
                    Stmt::Alloca { dst: base, bytes, align: 64, site },
                    edit::free_loop(bin, Ix::Const(numbers), vec![clear]),
                ]
            }
        }
    }

    /// Counts the value in its bin.
    fn added(self, kernel: &mut Kernel, of: &Counting, inside: Opnd) -> Vec<Stmt> {
        let one = number(of.count, 1);
        match self {
            Bins::Copies(buf) => {
                let at = fresh(kernel, "at", of.dtype);
                let [old, new] = [(); 2].map(|()| fresh(kernel, "count", of.count));
                let turn = Ix::Mod(Box::new(Ix::Axis(of.fold.axis)), Box::new(Ix::Const(COPIES)));
                let idx = vec![turn, Ix::Val { val: at, zext: false }];
                let none = number(of.dtype, of.numbers as i64);
                vec![
                    Stmt::Let { dst: at, op: ScalarOp::Select, args: vec![inside, of.counted, none] },
                    Stmt::Read { dst: old, buf, idx: idx.clone() },
                    Stmt::Let { dst: new, op: ScalarOp::AddI, args: vec![Opnd::Val(old), one] },
                    Stmt::Write { buf, idx, value: Opnd::Val(new) },
                ]
            }
            Bins::Shared(base) => {
                let (at, dst) = (fresh(kernel, "at", of.dtype), fresh(kernel, "count", of.count));
                let mem = Mem { base, index: Ix::Val { val: at, zext: false }, elem: of.count };
                let (mask, order, site) = (Mask::default(), Order::Relaxed, of.site());
                let then = vec![
                    Stmt::Let { dst: at, op: ScalarOp::Copy, args: vec![of.counted] },
                    Stmt::Rmw { dst, op: RmwOp::Add, mem, value: one, mask, order, site },
                ];
                vec![Stmt::If { cond: inside, then, els: vec![] }]
            }
        }
    }

    /// The count of a number in a copy.
    fn read(self, dst: ValId, of: &Counting, copy: i64, number: AxisId) -> Stmt {
        match self {
            Bins::Copies(buf) => Stmt::Read { dst, buf, idx: vec![Ix::Const(copy), Ix::Axis(number)] },
            Bins::Shared(base) => Stmt::Load {
                dst,
                mem: Mem { base, index: Ix::Axis(number), elem: of.count },
                mask: Mask::default(),
                other: None,
                order: Order::Weak,
                site: of.site(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, gpu, kernel, refusals, text};

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
    fn threads_add_to_bins_that_they_share() {
        let (out, log) = apply("count_bins", &kernel(COUNT), &gpu(&[]));
        assert_eq!(log.applied, ["loop j"]);
        let made = text(&out);
        assert!(
            made.contains("bins: ptr i32 = alloca 256 align 64") && made.contains("for i in 0..100: free\n"),
            "{made}"
        );
        assert!(made.contains("atomic add bins[at], 1 relaxed") && made.contains("load bins[j_1]"), "{made}");
        let few = COUNT.replace("0..64", "0..31");
        assert_eq!(refusals("count_bins", &few, &gpu(&[])), ["loop j: it counts few numbers"]);
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
