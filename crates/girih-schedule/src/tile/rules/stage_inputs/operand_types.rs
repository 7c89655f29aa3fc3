//! What shared memory holds operands as, where the matrix unit does not multiply what is loaded.
//!
//! In: a contraction whose operands are computed of what is loaded: converted, scaled. Out: for each the narrowest type of the
//! matrix unit that has every number that it can be, so that the product is the same.
//!
//! ```text
//! a: f8E4M3FN -> f32, b: f8E4M3FN -> f32       of a target without products of f8: both as f16
//! a, b: f4E2M1FN -> f32, times f8E4M3FN        a scale for each few terms: both as f16
//! ```
//! Tiles that the block itself makes of such numbers are held so, too.

use std::collections::{BTreeMap, BTreeSet};

use super::shared::as_loaded;
use crate::base::rule::Log;
use crate::loops::ir::*;
use crate::loops::matrix;
use crate::loops::walk;
use crate::num::exact::Numbers;
use crate::num::op::{Rounding, Signedness};
use crate::num::{DType, ScalarOp};
use crate::tile::Context;
use crate::tile::contraction::{Nest, Operand, nest_at, num_type};
use crate::tile::matrix::{multiplied, operand};
use crate::tile::target::Capability;

/// What one instruction multiplies: an operand of the first of a row's types that has its numbers, by another of the row.
const FLOATS: &[&[DType]] = &[&[DType::F8E4M3FN, DType::F8E5M2], &[DType::F16], &[DType::BF16], &[DType::TF32]];
const INTEGERS: &[&[DType]] = &[&[DType::I8]];

/// The types that the left and the right operand are to be held as; `None`: as they are loaded.
///
/// # Errors
/// Why numbers narrower than f32 are held as they are loaded, although the matrix unit does not multiply them.
pub(super) fn types(
    known: &Known<'_>,
    ctx: &Context,
    nest: &Nest,
    sides: [&Operand; 2],
) -> Result<[Option<DType>; 2], &'static str> {
    let (as_they_are, target, kernel) = (Ok([None; 2]), &ctx.target, known.kernel);
    let Some(acc) = num_type(kernel, nest.roles.acc).filter(|_| ctx.knobs.tensor_core) else { return as_they_are };
    let own = [(sides[0], true), (sides[1], false)].map(|(side, left)| loaded(kernel, ctx, nest, side, left, acc));
    if let [Some(a), Some(b)] = own
        && a.goes_with(b)
    {
        return as_they_are;
    }
    let numbers = |side: &Operand| known.numbers(side.value, &mut BTreeSet::new());
    let rows = if acc.is_float() { FLOATS } else { INTEGERS };
    let held = |side: &Operand, row: &[DType]| {
        let has = |d: &&DType| match acc.is_float() {
            true => numbers(side).is_some_and(|n| n.are_in(**d)),
            false => known.bounds(side.value).is_some_and(|[least, most]| least >= -128 && most <= 127),
        };
        row.iter().filter(|d| operand(target, **d, acc).is_some()).find(has).copied()
    };
    let both = rows.iter().find_map(|row| Some([held(sides[0], row)?, held(sides[1], row)?]));
    let Some(both) = both else {
        let f32s = Numbers::of(DType::F32).map_or(0, |all| all.digits);
        let narrow = |side: &&Operand| numbers(side).is_some_and(|n| n.digits < f32s);
        return match target.has(Capability::Products) && acc == DType::F32 && sides.iter().all(narrow) {
            true => Err("no type that the matrix unit multiplies has all numbers of both operands"),
            false => as_they_are,
        };
    };
    Ok(std::array::from_fn(|n| Some(both[n]).filter(|d| own[n].is_none() || operand(target, *d, acc) != own[n])))
}

/// What the matrix unit multiplies an operand as, held as it is loaded.
fn loaded(
    kernel: &Kernel,
    ctx: &Context,
    nest: &Nest,
    side: &Operand,
    left: bool,
    acc: DType,
) -> Option<matrix::Operand> {
    let (value, slice) = as_loaded(kernel, nest, side, left);
    let Ty::Num(dtype) = kernel.vals[value].ty else { return None };
    let rest: Vec<&Stmt> =
        side.slice.iter().filter(|at| !slice.contains(at)).filter_map(|at| nest.reduce.body.get(*at)).collect();
    let converts = |s: &Stmt| matches!(s, Stmt::Let { op: ScalarOp::FToF { .. } | ScalarOp::ExtI { .. }, .. });
    let rounds = |s: &Stmt| matches!(s, Stmt::Let { op: ScalarOp::FToF { to: DType::TF32, .. }, .. });
    match rest[..] {
        [] => operand(&ctx.target, multiplied(ctx, dtype), acc),
        [one] if converts(one) => operand(&ctx.target, dtype, acc),
        [first, second] if rounds(first) && converts(second) => operand(&ctx.target, DType::TF32, acc),
        _ => None,
    }
}

/// Where the values of a kernel come from, and what is written to its buffers.
pub(super) struct Known<'a> {
    kernel: &'a Kernel,
    defs: BTreeMap<ValId, &'a Stmt>,
    writes: BTreeMap<BufId, Vec<&'a Opnd>>,
}

impl<'a> Known<'a> {
    pub(super) fn of(kernel: &'a Kernel) -> Known<'a> {
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

    /// What is known of all numbers that a value can be. `seen` are the buffers that were asked for.
    fn numbers(&self, v: ValId, seen: &mut BTreeSet<BufId>) -> Option<Numbers> {
        let Ty::Num(own) = self.kernel.vals[v].ty else { return None };
        let of = |x: Option<&Opnd>, seen: &mut BTreeSet<BufId>| match x? {
            Opnd::Val(v) => self.numbers(*v, seen),
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

/// A kernel in which tiles of the block's own are held as the matrix unit multiplies them, where nothing else keeps a product
/// from it.
pub(super) fn narrowed(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let (known, mut held) = (Known::of(p), BTreeMap::<BufId, Option<DType>>::new());
    let mut each = |s: &Stmt| {
        let Some(Ok(nest)) = nest_at(s) else { return };
        let Ok((a, b)) = nest.operands() else { return };
        let Ok(types) = types(&known, ctx, &nest, [&a, &b]) else { return };
        for (side, to) in [&a, &b].into_iter().zip(types) {
            let [at] = side.slice[..] else { continue };
            let (Stmt::Read { buf, .. }, Some(to)) = (&nest.reduce.body[at], to) else { continue };
            let same = held.entry(*buf).or_insert(Some(to));
            *same = same.filter(|d| *d == to);
        }
    };
    walk::visit(&p.body, &mut each);
    let mut held: BTreeMap<BufId, DType> = held.into_iter().filter_map(|(buf, to)| Some((buf, to?))).collect();
    // What is more than read and written stays as it is.
    walk::visit(&p.body, &mut |s| match s {
        Stmt::Stage { buf, .. } => _ = held.remove(buf),
        Stmt::Print { args, .. } => {
            for arg in args {
                if let PrintArg::Buf(buf) = arg {
                    held.remove(buf);
                }
            }
        }
        Stmt::For(f) => {
            let sums = f.combine.iter().flat_map(|c| c.accs.iter()).chain(f.contraction.iter().map(|c| &c.acc));
            sums.for_each(|buf| _ = held.remove(buf));
        }
        _ => {}
    });
    if held.is_empty() {
        return None;
    }
    let mut kernel = p.clone();
    let body = std::mem::take(&mut kernel.body);
    kernel.body = converted(&mut kernel, body, &held, &mut BTreeMap::new());
    for (buf, to) in held {
        kernel.bufs[buf].ty = Ty::Num(to);
        log.applied(format!("{}, held as {}", kernel.bufs[buf].name, to.name()));
    }
    Some(kernel)
}

/// Statements whose reads and writes of some buffers convert; `reads` are the values that are read instead of others.
fn converted(
    kernel: &mut Kernel,
    body: Vec<Stmt>,
    held: &BTreeMap<BufId, DType>,
    reads: &mut BTreeMap<ValId, ValId>,
) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(body.len());
    for mut s in body {
        for inner in walk::bodies_mut(&mut s) {
            *inner = converted(kernel, std::mem::take(inner), held, reads);
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
            Stmt::Read { dst, buf, .. } if held.contains_key(buf) => {
                let (to, name) = (held[buf], kernel.vals[*dst].name.clone());
                let read = kernel.vals.push(Val { ty: Ty::Num(to), name });
                reads.insert(*dst, read);
                let then = Stmt::Let { dst: *dst, op: conversions(to, wide).1, args: vec![Opnd::Val(read)] };
                *dst = read;
                out.extend([s, then]);
            }
            Stmt::Write { buf, value, .. } if held.contains_key(buf) => {
                let (to, name) = (held[buf], kernel.bufs[*buf].name.clone());
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
pub(super) fn conversions(narrow: DType, wide: DType) -> (ScalarOp, ScalarOp) {
    let float = |to| ScalarOp::FToF { to, rounding: Rounding::NearestEven };
    match narrow.is_float() {
        true => (float(narrow), float(wide)),
        false => (ScalarOp::TruncI { to: narrow }, ScalarOp::ExtI { to: wide, sign: Signedness::Signed }),
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::Context;
    use crate::tile::target::Target;
    use crate::tile::tests::{apply, kernel, text};

    const PRODUCT: &str = r#"loop kernel k(A: ptr f8E4M3FN, B: ptr f8E4M3FN):
  local acc: f32[32, 32]
  for i in 0..32: free
    for j in 0..32: free
      for kk in 0..64: reduce contraction m=i n=j k=kk a=x b=y acc=acc
        x: f8E4M3FN = load A[i*64 + kk]
        y: f8E4M3FN = load B[kk*32 + j]
        x1: f32 = f32(x)
        y1: f32 = f32(y)
        c: f32 = acc[i, j]
        d: f32 = fma(x1, y1, c)
        acc[i, j] = d
"#;

    /// The types of what is staged, and what the rule says.
    fn staged(text_of: &str, target: &str) -> (Vec<String>, Vec<String>) {
        let ctx = Context { target: Target::named(target).unwrap(), ..Context::default() };
        let (out, log) = apply("stage_inputs", &kernel(text_of), &ctx);
        let made = text(&out);
        let types =
            made.lines().filter(|l| l.contains("stage ")).filter_map(|l| l.split(' ').find(|w| w.contains('[')));
        let skipped = log.skipped.iter().map(|(at, why)| format!("{at}: {why}"));
        (types.map(|t| t.split('[').next().unwrap_or("").to_string()).collect(), skipped.collect())
    }

    fn types(text_of: &str, target: &str) -> Vec<String> {
        staged(text_of, target).0
    }

    #[test]
    fn operands_are_held_as_the_matrix_unit_multiplies_them() {
        assert_eq!(types(PRODUCT, "sm_90a"), ["f8E4M3FN", "f8E4M3FN"]);
        assert_eq!(types(PRODUCT, "sm_80"), ["f16", "f16"]);
        // Each by itself, where one instruction multiplies both.
        let two = PRODUCT.replace("B: ptr f8E4M3FN", "B: ptr f8E5M2").replace("y: f8E4M3FN", "y: f8E5M2");
        assert_eq!(types(&two, "sm_120"), ["f8E4M3FN", "f8E5M2"]);
        let mixed = PRODUCT.replace("A: ptr f8E4M3FN", "A: ptr f16").replace("x: f8E4M3FN", "x: f16");
        assert_eq!(types(&mixed, "sm_90a"), ["f16", "f16"]);
        let four = PRODUCT.replace("f8E4M3FN", "f4E2M1FN");
        assert_eq!(
            (types(&four, "sm_90a"), types(&four, "sm_80")),
            (vec!["f8E4M3FN".to_string(); 2], vec!["f16".to_string(); 2])
        );
        let ints = PRODUCT.replace("f8E4M3FN", "i4").replace("f32(", "i32(").replace("f32", "i32");
        let ints = ints.replace("d: i32 = fma(x1, y1, c)", "p: i32 = x1 * y1\n        d: i32 = p + c");
        assert_eq!(types(&ints, "sm_80"), ["i8", "i8"]);
    }

    #[test]
    fn scaled_operands_are_held_exactly() {
        let scaled = |of: &str, scale: &str| {
            let all = PRODUCT.replace("f8E4M3FN", of).replace("A: ptr", &format!("S: ptr {scale}, A: ptr"));
            let loaded =
                format!("        s: {scale} = load S[kk//16]\n        s1: f32 = f32(s)\n        x1: f32 = f32(x)\n");
            let all = all.replace("        x1: f32 = f32(x)\n", &loaded);
            all.replace("        c: f32", "        x2: f32 = x1 * s1\n        y2: f32 = y1 * s1\n        c: f32")
                .replace("fma(x1, y1", "fma(x2, y2")
        };
        for (of, scale, held) in
            [("f4E2M1FN", "f8E4M3FN", "f16"), ("f4E2M1FN", "f8E8M0FNU", "bf16"), ("f8E4M3FN", "f8E8M0FNU", "tf32")]
        {
            assert_eq!(types(&scaled(of, scale), "sm_90a"), [held, held], "{of} {scale}");
        }
        let (_, skipped) = staged(&scaled("f8E5M2", "f8E8M0FNU"), "sm_90a");
        let why = "no type that the matrix unit multiplies has all numbers of both operands";
        assert!(skipped[0].ends_with(why), "{skipped:?}");
    }

    #[test]
    fn a_tile_of_the_blocks_own_is_held_so_too() {
        let own = r#"loop kernel k(A: ptr f4E2M1FN, S: ptr f8E4M3FN, B: ptr f16):
  local t: f32[32, 64]
  for i in 0..32: free
    for k in 0..64: free
      x: f4E2M1FN = load A[i*64 + k]
      s: f8E4M3FN = load S[i*4 + k//16]
      x1: f32 = f32(x)
      s1: f32 = f32(s)
      p: f32 = x1 * s1
      t[i, k] = p
  local acc: f32[32, 32]
  for i1 in 0..32: free
    for j in 0..32: free
      for kk in 0..64: reduce contraction m=i1 n=j k=kk a=a b=b acc=acc
        a: f32 = t[i1, kk]
        b: f16 = load B[j*64 + kk]
        b1: f32 = f32(b)
        c: f32 = acc[i1, j]
        d: f32 = fma(a, b1, c)
        acc[i1, j] = d
"#;
        let ctx = Context { target: Target::named("sm_90a").unwrap(), ..Context::default() };
        let (out, log) = apply("stage_inputs", &kernel(own), &ctx);
        assert_eq!(log.applied[0], "t, held as f16");
        assert!(text(&out).contains("local t: f16[32, 64]"), "{}", text(&out));
        assert_eq!(crate::loops::verify::verify(&out, crate::loops::print::Dialect::Tile), []);
        // More than eleven digits are in no narrow type.
        let wide = own.replace("p: f32 = x1 * s1", "p: f32 = x1 + s1");
        let (out, _) = apply("stage_inputs", &kernel(&wide), &ctx);
        assert!(text(&out).contains("local t: f32[32, 64]"), "{}", text(&out));
    }
}
