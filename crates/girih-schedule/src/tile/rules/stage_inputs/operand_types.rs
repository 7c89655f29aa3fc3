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

use std::collections::BTreeMap;

use crate::loops::ir::*;
use crate::loops::matrix;
use crate::num::exact::Numbers;
use crate::num::{DType, ScalarOp};
use crate::tile::Context;
use crate::tile::contraction::{Nest, Operand, num_type, sums};
use crate::tile::matrix::{multiplied, operand};
use crate::tile::primitives::retype::{self, Known};
use crate::tile::primitives::stage_read::{Side, as_loaded};
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
    let (as_they_are, target, kernel) = (Ok([None; 2]), &ctx.target, known.kernel());
    let Some(acc) = num_type(kernel, nest.roles.acc).filter(|_| ctx.knobs.tensor_core) else { return as_they_are };
    let own = [(sides[0], Side::A), (sides[1], Side::B)]
        .map(|(operand, side)| loaded(kernel, ctx, nest, (operand, side), acc));
    if let [Some(a), Some(b)] = own
        && a.goes_with(b)
    {
        return as_they_are;
    }
    let numbers = |side: &Operand| known.numbers(side.value);
    let rows = if acc.is_float() { FLOATS } else { INTEGERS };
    let held = |side: &Operand, row: &[DType]| {
        let has = |d: &&DType| known.fits(side.value, **d);
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
    (held, side): (&Operand, Side),
    acc: DType,
) -> Option<matrix::Operand> {
    let (value, slice) = as_loaded(kernel, nest, held, side);
    let Ty::Num(dtype) = kernel.vals[value].ty else { return None };
    let rest: Vec<&Stmt> =
        held.slice.iter().filter(|at| !slice.contains(at)).filter_map(|at| nest.reduce.body.get(*at)).collect();
    let converts = |s: &Stmt| matches!(s, Stmt::Let { op: ScalarOp::FToF { .. } | ScalarOp::ExtI { .. }, .. });
    let rounds = |s: &Stmt| matches!(s, Stmt::Let { op: ScalarOp::FToF { to: DType::TF32, .. }, .. });
    match rest[..] {
        [] => operand(&ctx.target, multiplied(ctx, dtype), acc),
        [one] if converts(one) => operand(&ctx.target, dtype, acc),
        [first, second] if rounds(first) && converts(second) => operand(&ctx.target, DType::TF32, acc),
        _ => None,
    }
}

/// The tiles of the block's own that are to be held as the matrix unit multiplies them, where nothing else keeps a product from it.
pub(super) fn own_tiles(p: &Kernel, ctx: &Context) -> BTreeMap<BufId, DType> {
    let (known, mut held) = (Known::of(p), BTreeMap::<BufId, Option<DType>>::new());
    for (.., nest) in sums(p) {
        let Ok((a, b)) = nest.operands() else { continue };
        let Ok(types) = types(&known, ctx, &nest, [&a, &b]) else { continue };
        for (side, to) in [&a, &b].into_iter().zip(types) {
            let [at] = side.slice[..] else { continue };
            let (Stmt::Read { buf, .. }, Some(to)) = (&nest.reduce.body[at], to) else { continue };
            let same = held.entry(*buf).or_insert(Some(to));
            *same = same.filter(|d| *d == to);
        }
    }
    let held = held.into_iter().filter_map(|(buf, to)| Some((buf, to?)));
    held.filter(|(buf, to)| retype::legal(p, &known, *buf, *to).is_ok()).collect()
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
