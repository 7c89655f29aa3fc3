//! `approximate`: the exponentials of a loop, which are rounded to few bits before they count, are the machine's.
//!
//! ```text
//! for j: reduce combine add(sum)                   t = m * -log2(e)
//!   d = s[i, j] - m                                for j: reduce combine add(sum)
//!   w = exp(d)                             -->       y = fma(s[i, j], log2(e), t)
//!   s[i, j] = w                                      w = exp2_approx(y)
//!   sum <- w + sum                                   s[i, j] = w    sum <- w + sum
//! ... f16(s[i, j])                                 ... f16(s[i, j])
//! ```
//!
//! A GPU's unit for such functions gives 2^x with an error of 2^-22 of the result, in one instruction of many that the exact function
//! takes. Legal for f32 whose every use is a conversion to a float of at most 11 significant bits, whose rounding is a thousand times
//! as much, or a sum; also by way of a buffer. The distance from the greatest score is rounded once, as before, where that is
//! below 2^127.

use std::collections::{BTreeMap, BTreeSet};

use super::line::{LoopRef, replace};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::op::Rounding;
use crate::num::{DType, ScalarOp};
use crate::tile::Context;
use crate::tile::target::Capability;

const MUL: ScalarOp = ScalarOp::MulF { rounding: Rounding::NearestEven, ftz: false };
const FMA: ScalarOp = ScalarOp::Fma { rounding: Rounding::NearestEven, ftz: false };

/// Exponentials whose last bits do not count.
pub struct Rounded {
    /// All of them, and those which a sum takes, too: weights.
    pub all: BTreeSet<ValId>,
    pub summed: BTreeSet<ValId>,
}

pub fn apply(kernel: &mut Kernel, ctx: &Context, loops: &[LoopRef]) -> Result<(), String> {
    if !ctx.target.has(Capability::Threads) {
        return Err(format!("{} has no unit for exponentials", ctx.target.name));
    }
    let rounded = Rounded::of(kernel);
    for at in loops {
        replace(kernel, *at, &mut |kernel, f| {
            let mut made = f.clone();
            let (mut before, mut count) = (vec![], 0);
            made.body = body(kernel, f, &rounded.all, &mut before, &mut count);
            if count == 0 {
                return Err(
                    "it computes no exponential of f32 that is only rounded to 11 bits or fewer, and summed up".into(),
                );
            }
            before.push(Stmt::For(Box::new(made)));
            Ok(before)
        })?;
    }
    Ok(())
}

/// The statements of a loop; what is the same for all iterations goes to `before`.
fn body(
    kernel: &mut Kernel,
    f: &For,
    rounded: &BTreeSet<ValId>,
    before: &mut Vec<Stmt>,
    count: &mut usize,
) -> Vec<Stmt> {
    let defined = walk::refs(&f.body).vals_defined;
    let uses = |x: ValId| {
        let uses = |s: &&Stmt| walk::bodies(s).is_empty() && walk::refs_of(s).vals_used.contains(&x);
        walk::stmts(&f.body).filter(uses).count()
    };
    let mut out: Vec<Stmt> = vec![];
    for s in &f.body {
        let Stmt::Let { dst, op, args } = s else {
            out.push(s.clone());
            continue;
        };
        let (true, &[x]) = (rounded.contains(dst), &args[..]) else {
            out.push(s.clone());
            continue;
        };
        *count += 1;
        let log2e =
            |sign: f32| Opnd::Const { dtype: DType::F32, bits: (sign * std::f32::consts::LOG2_E).to_bits().into() };
        let mut fresh = |name: &str| kernel.vals.push(Val { ty: Ty::Num(DType::F32), name: name.into() });
        let difference = out.iter().position(|s| is_difference(s, x));
        let power = match (op, difference.map(|at| (at, out[at].clone()))) {
            (ScalarOp::Exp, Some((at, Stmt::Let { args, .. }))) if outside(&args[1], &defined) => {
                let (t, y) = (fresh("t"), fresh("y"));
                before.push(Stmt::Let { dst: t, op: MUL, args: vec![args[1], log2e(-1.0)] });
                if let Opnd::Val(x) = x
                    && uses(x) == 1
                {
                    out.remove(at);
                }
                out.push(Stmt::Let { dst: y, op: FMA, args: vec![args[0], log2e(1.0), Opnd::Val(t)] });
                Opnd::Val(y)
            }
            (ScalarOp::Exp, _) => {
                let y = fresh("y");
                out.push(Stmt::Let { dst: y, op: MUL, args: vec![x, log2e(1.0)] });
                Opnd::Val(y)
            }
            _ => x,
        };
        out.push(Stmt::Let { dst: *dst, op: ScalarOp::Exp2Approx, args: vec![power] });
    }
    out
}

fn outside(x: &Opnd, defined: &BTreeSet<ValId>) -> bool {
    !matches!(x, Opnd::Val(v) if defined.contains(v))
}

fn is_difference(s: &Stmt, x: Opnd) -> bool {
    let Stmt::Let { dst, op: ScalarOp::SubF { rounding: Rounding::NearestEven, ftz: false }, .. } = s else {
        return false;
    };
    x == Opnd::Val(*dst)
}

/// An access of a buffer, by its place in the text.
struct Access<'a> {
    at: usize,
    idx: &'a [Ix],
    /// The loops around it, outermost first.
    loops: Vec<AxisId>,
    /// The value that is read; `None` for a write.
    read: Option<ValId>,
}

/// The values and buffers of a kernel, as they are used.
#[derive(Default)]
struct Uses<'a> {
    vals: BTreeMap<ValId, Vec<(usize, &'a Stmt)>>,
    bufs: BTreeMap<BufId, Vec<Access<'a>>>,
    /// How many loops stand around the beginning of a buffer.
    begins: BTreeMap<BufId, usize>,
    printed: BTreeSet<BufId>,
    exponentials: Vec<ValId>,
    count: usize,
}

impl<'a> Uses<'a> {
    fn collect(&mut self, kernel: &Kernel, body: &'a [Stmt], loops: &mut Vec<AxisId>) {
        for s in body {
            self.count += 1;
            let at = self.count;
            if walk::bodies(s).is_empty() {
                for v in walk::refs_of(s).vals_used {
                    self.vals.entry(v).or_default().push((at, s));
                }
            }
            match s {
                Stmt::Let { dst, op: ScalarOp::Exp | ScalarOp::Exp2 { .. }, .. }
                    if kernel.vals[*dst].ty == Ty::Num(DType::F32) =>
                {
                    self.exponentials.push(*dst);
                }
                Stmt::Read { dst, buf, idx } => {
                    self.bufs.entry(*buf).or_default().push(Access { at, idx, loops: loops.clone(), read: Some(*dst) });
                }
                Stmt::Write { buf, idx, .. } => {
                    self.bufs.entry(*buf).or_default().push(Access { at, idx, loops: loops.clone(), read: None });
                }
                Stmt::Local { buf } | Stmt::Stage { buf, .. } => _ = self.begins.insert(*buf, loops.len()),
                Stmt::Print { args, .. } => {
                    self.printed
                        .extend(args.iter().filter_map(|a| if let PrintArg::Buf(b) = a { Some(*b) } else { None }));
                }
                _ => {}
            }
            let axis = if let Stmt::For(f) = s { Some(f.axis) } else { None };
            loops.extend(axis);
            for inner in walk::bodies(s) {
                self.collect(kernel, inner, loops);
            }
            if axis.is_some() {
                loops.pop();
            }
        }
    }

    fn of(&self, v: ValId) -> &[(usize, &'a Stmt)] {
        self.vals.get(&v).map_or(&[], |all| all)
    }

    /// Whether the last bits of a value do not count; `summed` is set where a sum takes it.
    fn is_rounded(&self, v: ValId, summed: &mut bool) -> bool {
        let mut converted = false;
        let fine = self.of(v).iter().all(|(at, s)| match s {
            Stmt::Let { op: ScalarOp::AddF { .. }, dst, .. } => {
                *summed = true;
                self.accumulates(*dst)
            }
            Stmt::Write { buf, .. } => {
                let all = self.behind(*buf, *at);
                converted |= all.as_ref().is_some_and(|all| !all.is_empty());
                all.is_some_and(|all| all.iter().all(|read| self.of(*read).iter().all(|(_, s)| narrows(s))))
            }
            s => {
                converted |= narrows(s);
                narrows(s)
            }
        });
        fine && converted
    }

    /// True for a sum that goes back to where it was read.
    fn accumulates(&self, sum: ValId) -> bool {
        !self.of(sum).is_empty() && self.of(sum).iter().all(|(_, s)| matches!(s, Stmt::Write { .. }))
    }

    /// The reads that may see what is written at a place; `None` where that is not known.
    fn behind(&self, buf: BufId, at: usize) -> Option<Vec<ValId>> {
        let (all, outer) = (self.bufs.get(&buf)?, *self.begins.get(&buf)?);
        let written = all.iter().find(|a| a.at == at)?;
        let mut out = vec![];
        for access in all {
            let Some(read) = access.read else { continue };
            if access.at > at {
                out.push(read);
                continue;
            }
            // Iterations of a loop around both use elements of their own.
            let both = access.loops.iter().zip(&written.loops).take_while(|(a, b)| a == b).map(|(a, _)| *a).skip(outer);
            let own = |axis: AxisId| access.idx.iter().zip(written.idx).any(|(a, b)| *a == Ix::Axis(axis) && a == b);
            if !both.into_iter().all(own) {
                return None;
            }
        }
        (!self.printed.contains(&buf)).then_some(out)
    }
}

/// True for a conversion to a float of at most 11 significant bits.
fn narrows(s: &Stmt) -> bool {
    matches!(s, Stmt::Let { op: ScalarOp::FToF { to, .. }, .. } if to.bits() <= 16 || *to == DType::TF32)
}

impl Rounded {
    pub fn of(kernel: &Kernel) -> Rounded {
        let mut uses = Uses::default();
        uses.collect(kernel, &kernel.body, &mut vec![]);
        let (mut all, mut summed) = (BTreeSet::new(), BTreeSet::new());
        for v in &uses.exponentials {
            let mut sums = false;
            if uses.is_rounded(*v, &mut sums) {
                all.insert(*v);
                summed.extend(sums.then_some(*v));
            }
        }
        Rounded { all, summed }
    }
}
