//! `count`: a loop over numbers, which counts how often each occurs, goes once through what it counts: a histogram.
//!
//! ```text
//! for j in 0..64: free                             for c in 0..4: free: for j in 0..65: free
//!   s = 0                                            bins[c, j] = 0
//!   j_1: i32 = index j                             for i in 0..8192: reduce
//!   for i in 0..8192: reduce combine add(s)          %in = x[i] >= 0 and x[i] < 64
//!     s <- i32(x[i] == j_1) + s           -->        bin[i] = select(%in, x[i], 64)
//!   out[j] = s                                     for i in 0..2048: reduce: for c in 0..4: reduce
//!                                                    bins[c, bin[i*4 + c]] <- bins[c, bin[i*4 + c]] + 1
//!                                                  for j in 0..64: free
//!                                                    out[j] = bins[0, j] + .. + bins[3, j]
//! ```
//!
//! An element that equals none of the numbers counts in a bin that nobody reads. Copies of the bins take turns, so that equal neighbours
//! do not wait for each other; or the threads of a block add to one copy in the memory that they share, atomically. Where it is known how
//! much is counted, and the bins of all elements fit, a loop of its own finds them, in vectors. Legal in a tile program for a fold that adds
//! 1 where an element equals the number, which starts at 0 and has a constant end.

use std::collections::BTreeSet;

use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::num::op::{Predicate, Signedness};
use crate::num::{DType, ScalarOp};
use crate::tile::Context;
use crate::tile::edit::{self, const_trip, new_axis};
use crate::tile::heuristics::count_bins::MOST_FOUND;
use crate::tile::primitives::MOST_BYTES;
use crate::tile::primitives::line::{LoopRef, loop_at, replace};
use crate::tile::primitives::part::{Part, Reader, Says, Writer};
use crate::tile::target::{Capability, MemoryKind};

/// Where the bins are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// Copies of them take turns.
    Copies(u32),
    /// The threads of a block add to one copy that they share.
    Shared,
}

impl Part for By {
    fn read(r: &mut Reader<'_>, _: Says) -> Result<By, String> {
        if r.rest.front() == Some(&"shared") {
            return r.choice(&[("shared", By::Shared)]);
        }
        r.number("how many copies of the bins there are", 1).map(By::Copies)
    }

    fn write(&self, w: &mut Writer<'_>, _: Says) {
        w.by(&match self {
            By::Copies(n) => n.to_string(),
            By::Shared => "shared".into(),
        });
    }
}

pub fn apply(kernel: &mut Kernel, ctx: &Context, at: LoopRef, by: By) -> Result<(), String> {
    if kernel.open {
        return Err("the blocks of a kernel without a grid would share the numbers".into());
    }
    let seen = kernel.clone();
    let f = loop_at(&seen, at)?;
    if !f.is_free_unplaced() {
        return Err("it is not free, or is placed already".into());
    }
    let counting = Counting::of(&seen, f).ok_or("it counts nothing that equals its number")??;
    let most = match by {
        By::Shared if !ctx.target.has(Capability::Threads) => return Err("blocks have no threads".into()),
        By::Shared => ctx.target.bytes_of(MemoryKind::Shared),
        By::Copies(_) => MOST_BYTES,
    };
    let copies = if let By::Copies(n) = by { u64::from(n) } else { 1 };
    let bytes = copies.saturating_mul(counting.numbers + 1).saturating_mul(counting.count.bytes());
    if bytes > most {
        return Err(format!("its bins have {bytes} bytes; {most} are the most"));
    }
    let bins = Bins::new(kernel, &counting, by);
    let made = counting.rewritten(kernel, f, bins);
    replace(kernel, at, &mut |_, _| Ok(made.clone()))
}

/// A loop over numbers, in which a fold counts what is equal to each.
pub struct Counting<'a> {
    pub numbers: u64,
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
    pub fn of(kernel: &Kernel, f: &'a For) -> Option<Result<Counting<'a>, &'static str>> {
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
        of.numbers = const_trip(f).ok_or("the count of its numbers is not known")?;
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
            return Err("the counted elements depend on the number");
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
        out.extend(match bins {
            Bins::Shared(base) => {
                body.push(self.add_shared(kernel, base, inside));
                vec![self.counted_by(LoopKind::Free, body)]
            }
            Bins::Copies(buf, copies) => {
                let bin = self.bin_of(kernel, &mut body, inside);
                match self.bins_fit(copies) {
                    Some(elements) => self.count_after(kernel, (buf, copies), elements, body, bin),
                    None => {
                        let turn = Ix::Mod(Box::new(Ix::Axis(self.fold.axis)), Box::new(Ix::Const(copies.into())));
                        body.extend(self.add_one(kernel, buf, turn, bin));
                        vec![self.counted_by(self.fold.kind, body)]
                    }
                }
            }
        });

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
        out.push(f.around(of_number));
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

    /// The loop over what is counted, with another body.
    fn counted_by(&self, kind: LoopKind, body: Vec<Stmt>) -> Stmt {
        Stmt::For(Box::new(For { combine: None, kind, body, ..self.fold.clone() }))
    }

    /// The bin of an element: the number that it equals, or the one that nobody reads.
    fn bin_of(&self, kernel: &mut Kernel, body: &mut Vec<Stmt>, inside: Opnd) -> ValId {
        let mut bin = fresh(kernel, "at", self.dtype);
        let none = number(self.dtype, self.numbers as i64);
        body.push(Stmt::Let { dst: bin, op: ScalarOp::Select, args: vec![inside, self.counted, none] });
        if self.dtype != DType::I32 {
            let wide = std::mem::replace(&mut bin, fresh(kernel, "at", DType::I32));
            let op = ScalarOp::TruncI { to: DType::I32 };
            body.push(Stmt::Let { dst: bin, op, args: vec![Opnd::Val(wide)] });
        }
        bin
    }

    /// How many elements are counted, where that is known and an array of their bins is small. Copies take the same number of them each.
    fn bins_fit(&self, copies: u32) -> Option<u64> {
        let elements = const_trip(self.fold)?.checked_next_multiple_of(copies.into())?;
        (elements.checked_mul(DType::I32.bytes())? <= MOST_FOUND).then_some(elements)
    }

    /// One loop finds the bin of each element, and one counts in copies of the bins.
    fn count_after(
        &self,
        kernel: &mut Kernel,
        into: (BufId, u32),
        elements: u64,
        mut body: Vec<Stmt>,
        bin: ValId,
    ) -> Vec<Stmt> {
        let ((buf, copies), axis) = (into, self.fold.axis);
        let of_all = kernel.bufs.push(Buf::new("bin", Ty::Num(DType::I32), vec![elements]));
        body.push(Stmt::Write { buf: of_all, idx: vec![Ix::Axis(axis)], value: Opnd::Val(bin) });
        let mut out = vec![Stmt::Local { buf: of_all }, self.counted_by(LoopKind::Free, body)];
        for beyond in const_trip(self.fold).unwrap_or(elements)..elements {
            let value = number(DType::I32, self.numbers as i64);
            out.push(Stmt::Write { buf: of_all, idx: vec![Ix::Const(beyond as i64)], value });
        }
        let [of_turn, turn] = ["", ""].map(|name| new_axis(kernel, axis, name));
        let bin = fresh(kernel, "at", DType::I32);
        let nth = Ix::add(Ix::mul(Ix::Axis(of_turn), Ix::Const(copies.into())), Ix::Axis(turn));
        let mut count = vec![Stmt::Read { dst: bin, buf: of_all, idx: vec![nth] }];
        count.extend(self.add_one(kernel, buf, Ix::Axis(turn), bin));
        let over = |axis, hi: u64, body| {
            let (hi, lo, step) = (Ix::Const(hi as i64), Ix::Const(0), Ix::Const(1));
            let kind = self.fold.kind;
            Stmt::For(Box::new(For { axis, lo, hi, step, kind, combine: None, body, ..self.fold.clone() }))
        };
        out.push(over(of_turn, elements / u64::from(copies), vec![over(turn, copies.into(), count)]));
        out
    }

    /// Adds 1 to a bin of a copy.
    fn add_one(&self, kernel: &mut Kernel, buf: BufId, copy: Ix, bin: ValId) -> [Stmt; 3] {
        let [old, new] = [(); 2].map(|()| fresh(kernel, "count", self.count));
        let idx = vec![copy, Ix::Val { val: bin, zext: false }];
        [
            Stmt::Read { dst: old, buf, idx: idx.clone() },
            Stmt::Let { dst: new, op: ScalarOp::AddI, args: vec![Opnd::Val(old), number(self.count, 1)] },
            Stmt::Write { buf, idx, value: Opnd::Val(new) },
        ]
    }

    /// Adds 1 to the bin of an element in the memory that threads share.
    fn add_shared(&self, kernel: &mut Kernel, base: ValId, inside: Opnd) -> Stmt {
        let (at, dst) = (fresh(kernel, "at", self.dtype), fresh(kernel, "count", self.count));
        let mem = Mem { base, index: Ix::Val { val: at, zext: false }, elem: self.count };
        let (mask, order, site) = (Mask::default(), Order::Relaxed, self.site());
        let then = vec![
            Stmt::Let { dst: at, op: ScalarOp::Copy, args: vec![self.counted] },
            Stmt::Rmw { dst, op: RmwOp::Add, mem, value: number(self.count, 1), mask, order, site },
        ];
        Stmt::If { cond: inside, then, els: vec![] }
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
    Copies(BufId, u32),
    /// One copy in the block's memory, which its threads add to.
    Shared(ValId),
}

impl Bins {
    fn new(kernel: &mut Kernel, of: &Counting, by: By) -> Bins {
        let By::Copies(copies) = by else {
            return Bins::Shared(kernel.vals.push(Val { ty: Ty::Ptr(of.count), name: "bins".into() }));
        };
        let shape = vec![copies.into(), of.numbers + 1];
        Bins::Copies(kernel.bufs.push(Buf::new("bins", Ty::Num(of.count), shape)), copies)
    }

    fn copies(self) -> i64 {
        if let Bins::Copies(_, copies) = self { copies.into() } else { 1 }
    }

    /// The bins, with zeros.
    fn cleared(self, kernel: &mut Kernel, of: &Counting, like: AxisId) -> Vec<Stmt> {
        let bin = new_axis(kernel, like, "");
        let (zero, numbers) = (number(of.count, 0), of.numbers as i64);
        match self {
            Bins::Copies(buf, _) => {
                let copy = new_axis(kernel, like, "");
                let clear = Stmt::Write { buf, idx: vec![Ix::Axis(copy), Ix::Axis(bin)], value: zero };
                let clear = edit::free_loop(bin, Ix::Const(numbers + 1), vec![clear]);
                vec![Stmt::Local { buf }, edit::free_loop(copy, Ix::Const(self.copies()), vec![clear])]
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

    /// The count of a number in a copy.
    fn read(self, dst: ValId, of: &Counting, copy: i64, number: AxisId) -> Stmt {
        match self {
            Bins::Copies(buf, _) => Stmt::Read { dst, buf, idx: vec![Ix::Const(copy), Ix::Axis(number)] },
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
