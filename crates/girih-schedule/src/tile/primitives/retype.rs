//! `retype`: a buffer holds its numbers as another type that has all of them.
//!
//! ```text
//! local t: f32[32, 64]                             local t: f16[32, 64]
//! p: f32 = x1 * s1                                 p: f32 = x1 * s1
//! t[i, k] = p                              -->     t[i, k] = f16(p)
//! ...                                              ...
//! a: f32 = t[i, kk]                                a: f32 = f32(t[i, kk])
//! ```
//!
//! Legal where the type has every number that is written, and the buffer is only read and written, element by element.

use std::collections::{BTreeMap, BTreeSet};

use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::exact::Numbers;
use crate::num::op::{Rounding, Signedness};
use crate::num::{DType, ScalarOp};

pub fn apply(kernel: &mut Kernel, buf: BufId, to: DType) -> Result<(), String> {
    legal(kernel, &Known::of(kernel), buf, to)?;
    let body = std::mem::take(&mut kernel.body);
    kernel.body = converted(kernel, body, (buf, to), &mut BTreeMap::new());
    kernel.bufs[buf].ty = Ty::Num(to);
    Ok(())
}

/// Says why a buffer may not hold its numbers as a type.
pub fn legal(kernel: &Kernel, known: &Known<'_>, buf: BufId, to: DType) -> Result<(), String> {
    let Ty::Num(from) = kernel.bufs[buf].ty else { return Err("it holds addresses".into()) };
    if from == to {
        return Err(format!("it holds {to} already"));
    }
    if from.is_float() != to.is_float() {
        return Err(format!("{to} is another kind of number than {from}"));
    }
    let other = |s: &Stmt| match s {
        Stmt::Stage { buf: b, .. } => *b == buf,
        Stmt::Print { args, .. } => args.iter().any(|a| matches!(a, PrintArg::Buf(b) if *b == buf)),
        Stmt::For(f) => {
            let mut sums = f.combine.iter().flat_map(|c| c.accs.iter()).chain(f.contraction.iter().map(|c| &c.acc));
            sums.any(|b| *b == buf)
        }
        _ => false,
    };
    if walk::stmts(&kernel.body).any(other) {
        return Err("it is more than read and written, element by element".into());
    }
    let fits = |x: &&Opnd| match x {
        Opnd::Val(v) => known.fits(*v, to),
        Opnd::Const { dtype, bits } => Numbers::one(*dtype, *bits).is_some_and(|n| n.are_in(to)),
    };
    match known.writes.get(&buf).is_some_and(|all| all.iter().all(fits)) {
        true => Ok(()),
        false => Err(format!("{to} may not have every number that it holds")),
    }
}

/// Where the values of a kernel come from, and what is written to its buffers.
pub struct Known<'a> {
    kernel: &'a Kernel,
    defs: BTreeMap<ValId, &'a Stmt>,
    writes: BTreeMap<BufId, Vec<&'a Opnd>>,
}

impl<'a> Known<'a> {
    pub fn kernel(&self) -> &'a Kernel {
        self.kernel
    }

    pub fn of(kernel: &'a Kernel) -> Known<'a> {
        let (mut defs, mut writes) = (BTreeMap::new(), BTreeMap::<BufId, Vec<&Opnd>>::new());
        let mut all: Vec<&Stmt> = kernel.body.iter().collect();
        while let Some(s) = all.pop() {
            if let Some(v) = walk::def(s) {
                defs.insert(v, s);
            }
            if let Stmt::Write { buf, value, .. } = s {
                writes.entry(*buf).or_default().push(value);
            }
            all.extend(walk::bodies(s).into_iter().flatten());
        }
        Known { kernel, defs, writes }
    }

    /// Returns true if a type has every number that a value can be.
    pub fn fits(&self, v: ValId, dtype: DType) -> bool {
        match dtype.is_float() {
            true => self.numbers(v).is_some_and(|n| n.are_in(dtype)),
            false => {
                let half = 1i64.checked_shl(dtype.bits() - 1).filter(|_| dtype.bits() <= 32);
                half.zip(self.bounds(v)).is_some_and(|(half, [least, most])| least >= -half && most < half)
            }
        }
    }

    /// All numbers that a value can be, as far as they are known.
    pub fn numbers(&self, v: ValId) -> Option<Numbers> {
        self.numbers_of(v, &mut BTreeSet::new())
    }

    /// The same. `seen` are the buffers that were asked for.
    fn numbers_of(&self, v: ValId, seen: &mut BTreeSet<BufId>) -> Option<Numbers> {
        let Ty::Num(own) = self.kernel.vals[v].ty else { return None };
        let of = |x: Option<&Opnd>, seen: &mut BTreeSet<BufId>| match x? {
            Opnd::Val(v) => self.numbers_of(*v, seen),
            Opnd::Const { dtype, bits } => Numbers::one(*dtype, *bits),
        };
        match self.defs.get(&v)? {
            Stmt::Load { .. } => Numbers::of(own),
            Stmt::Read { buf, .. } => {
                let narrow =
                    Numbers::of(own).filter(|all| all.digits < Numbers::of(DType::F32).map_or(0, |n| n.digits));
                if narrow.is_some() || !seen.insert(*buf) {
                    return narrow;
                }
                let all: Option<Vec<Numbers>> = self.writes.get(buf)?.iter().map(|x| of(Some(x), seen)).collect();
                all?.into_iter().reduce(Numbers::or)
            }
            Stmt::Let { op: ScalarOp::FToF { to, .. }, args, .. } => {
                let from = of(args.first(), seen)?;
                if from.are_in(*to) { Some(from) } else { Numbers::of(*to) }
            }
            Stmt::Let { op: ScalarOp::MulF { rounding: Rounding::NearestEven, .. }, args, .. } if own == DType::F32 => {
                of(args.first(), seen)?.times(of(args.get(1), seen)?)
            }
            Stmt::Let { op: ScalarOp::Copy, args, .. } => of(args.first(), seen),
            _ => None,
        }
    }

    /// The least and the greatest of the integers that a value can be.
    fn bounds(&self, v: ValId) -> Option<[i64; 2]> {
        let Ty::Num(own) = self.kernel.vals[v].ty else { return None };
        match self.defs.get(&v)? {
            Stmt::Let { op: ScalarOp::ExtI { sign, .. }, args, .. } => {
                let Some(Opnd::Val(x)) = args.first() else { return None };
                let Ty::Num(from) = self.kernel.vals[*x].ty else { return None };
                let all = 1i64.checked_shl(from.bits()).filter(|_| from.bits() <= 32)?;
                let inner = self.bounds(*x).filter(|[least, _]| *sign == Signedness::Signed || *least >= 0);
                Some(inner.unwrap_or(match sign {
                    Signedness::Signed => [-all / 2, all / 2 - 1],
                    Signedness::Unsigned => [0, all - 1],
                }))
            }
            Stmt::Let { op: ScalarOp::Copy, args, .. } => match args.first()? {
                Opnd::Val(x) => self.bounds(*x),
                _ => None,
            },
            _ if own == DType::I1 => Some([0, 1]),
            _ => None,
        }
    }
}

/// Statements whose reads and writes of a buffer convert; `reads` are the values that are read instead of others.
fn converted(
    kernel: &mut Kernel,
    body: Vec<Stmt>,
    (held, to): (BufId, DType),
    reads: &mut BTreeMap<ValId, ValId>,
) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(body.len());
    for mut s in body {
        for inner in walk::bodies_mut(&mut s) {
            *inner = converted(kernel, std::mem::take(inner), (held, to), reads);
        }
        if let Stmt::For(f) = &mut s
            && let Some(roles) = &mut f.contraction
        {
            for role in [&mut roles.a, &mut roles.b] {
                *role = reads.get(role).copied().unwrap_or(*role);
            }
        }
        let Ty::Num(wide) = (match &s {
            Stmt::Read { buf, .. } | Stmt::Write { buf, .. } => kernel.bufs[*buf].ty,
            _ => Ty::Num(DType::F32),
        }) else {
            out.push(s);
            continue;
        };
        match &mut s {
            Stmt::Read { dst, buf, .. } if *buf == held => {
                let name = kernel.vals[*dst].name.clone();
                let read = kernel.vals.push(Val { ty: Ty::Num(to), name });
                reads.insert(*dst, read);
                let then = Stmt::Let { dst: *dst, op: conversions(to, wide).1, args: vec![Opnd::Val(read)] };
                *dst = read;
                out.extend([s, then]);
            }
            Stmt::Write { buf, value, .. } if *buf == held => {
                let name = kernel.bufs[*buf].name.clone();
                let dst = kernel.vals.push(Val { ty: Ty::Num(to), name });
                out.push(Stmt::Let { dst, op: conversions(to, wide).0, args: vec![*value] });
                *value = Opnd::Val(dst);
                out.push(s);
            }
            _ => out.push(s),
        }
    }
    out
}

/// To a narrower type that has all numbers of an operand, and back.
pub fn conversions(narrow: DType, wide: DType) -> (ScalarOp, ScalarOp) {
    let float = |to| ScalarOp::FToF { to, rounding: Rounding::NearestEven };
    match narrow.is_float() {
        true => (float(narrow), float(wide)),
        false => (ScalarOp::TruncI { to: narrow }, ScalarOp::ExtI { to: wide, sign: Signedness::Signed }),
    }
}
