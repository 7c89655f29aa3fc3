//! Products of whole tiles in native code, against the evaluator: with the processor's tiles where it has them, and with what
//! stands for them in C.

use crate::calling;

use girih_compiler::base::host::Silent;
use girih_compiler::base::launch::Launch;
use girih_compiler::base::memory::VecMemory;
use girih_compiler::base::rule::Log;
use girih_compiler::kernel::legalise::{Options, legalise};
use girih_compiler::loops::{eval, parse};
use girih_compiler::num::op::Rounding;
use girih_compiler::num::{DType, convert};
use girih_compiler::tile::target::{MatrixUnit, Target};
use girih_compiler::tile::{Context, rules};

/// A product of `m` x `k` by `k` x `n`, the right operand by rows or by columns.
fn product(ty: &str, [m, n, k]: [usize; 3], by_rows: bool) -> String {
    let b = if by_rows { format!("k*{n} + j") } else { format!("j*{k} + k") };
    let (acc, zero, x, y, step) = match ty {
        "bf16" => ("f32", "0.0", "f32(a)", "f32(b)", "d: f32 = fma(x, y, c)"),
        _ => ("i32", "0", "ext.u.i32(a)", "ext.i32(b)", "p: i32 = x * y\n        d: i32 = p + c"),
    };
    format!(
        "loop kernel k(A: ptr {ty}, B: ptr {ty}, C: ptr {acc}) open:
  for i in 0..{m}: free
    for j in 0..{n}: free
      local acc: {acc}
      acc = {zero}
      for k in 0..{k}: reduce contraction m=i n=j k=k a=a b=b acc=acc
        a: {ty} = load A[i*{k} + k]
        b: {ty} = load B[{b}]
        x: {acc} = {x}
        y: {acc} = {y}
        c: {acc} = acc
        {step}
        acc = d
      s: {acc} = acc
      store C[i*{n} + j] = s
"
    )
}

/// Small multiples of a quarter, or small integers: every order of summation is exact.
fn elements(d: DType, count: usize, seed: usize) -> Vec<u8> {
    let of = |i: usize| {
        let n = ((i * 2_654_435_761 + seed * 97) >> 7) % 17;
        match d {
            DType::BF16 => convert::from_f64(d, (n as f64 - 8.0) / 4.0, Rounding::NearestEven),
            _ => (n as u64).wrapping_sub(8) & d.mask(),
        }
    };
    (0..count).flat_map(|i| of(i).to_le_bytes()[..d.bytes() as usize].to_vec()).collect()
}

fn compare(flags: &[&str], tag: &str) {
    use MatrixUnit::*;
    let units = vec![FloatPairs, IntegerPairs, ByteQuads, FloatTiles, IntegerTiles];
    let ctx = Context { target: Target { matrix_units: units, ..Target::cpu() }, ..Context::default() };
    for (number, shape) in [[16, 16, 64], [48, 80, 128], [39, 64, 72], [66, 48, 136]].into_iter().enumerate() {
        let [m, n, k] = shape;
        for (ty, d) in [("bf16", DType::BF16), ("i8", DType::I8)] {
            for by_rows in [true, false] {
                let text = product(ty, shape, by_rows);
                let (loops, _) = parse::parse(&text).unwrap_or_else(|e| panic!("{}\n{text}", e.message));
                let placed = rules(&ctx.target)
                    .list
                    .iter()
                    .fold(loops.clone(), |k, rule| (rule.run)(&k, &ctx, &mut Log::default()).unwrap_or(k));
                let lowered = legalise(&placed, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
                let source = girih_compiler::emit::c::emit(&[&lowered], &ctx.target).unwrap().text;
                assert!(source.contains("tile_add_"), "{source}");
                let name = format!("tiles{tag}{number}{ty}{by_rows}");
                let Some(unit) = calling::build(&name, &source, flags) else { return };

                let (a, b, c) = (elements(d, m * k, 1), elements(d, k * n, 2), vec![0u8; 4 * m * n]);
                let mut memory = VecMemory::new();
                let args: Vec<u64> =
                    [("A", &a), ("B", &b), ("C", &c)].map(|(name, bytes)| memory.add(name, bytes.clone())).to_vec();
                let launch = Launch::new([1, 1, 1], args.clone());
                eval::run(&loops, &launch, &mut memory, &mut Silent).unwrap_or_else(|trap| panic!("{}", trap.message));

                let mut got = c.clone();
                let native = [a.as_ptr() as u64, b.as_ptr() as u64, got.as_mut_ptr() as u64];
                let grid = lowered.blocks(&args).unwrap_or([1, 1, 1]);
                assert_eq!(unit.run(0, &native, grid, &[]).code, 0);
                assert!(memory.bytes(args[2]) == Some(&got[..]), "{ty} {shape:?} by rows: {by_rows}");
            }
        }
    }
}

#[test]
fn arrays_that_stand_for_tiles() {
    compare(&["-mavx2", "-mfma"], "c");
}

#[test]
fn tiles_of_the_processor() {
    let here = girih::machine::features();
    if !here.contains(&"amx-bf16") {
        return eprintln!("skipped: this processor has no tiles");
    }
    compare(&["-mavx512f", "-mavx512bw", "-mfma", "-mamx-tile", "-mamx-bf16", "-mamx-int8"], "p");
}
