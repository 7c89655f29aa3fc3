//! Products with sums in tensor memory: every layout of their operands, and what is missing from them.

use super::panels::{Panel, left, right};
use super::*;
use crate::kernel::print::print;
use crate::kernel::tcgen05::{Instruction, Matrix};
use crate::loops::matrix::Operand as Type;
use crate::num::DType;

const ROWS: u64 = 128;
const COLS: u64 = 64;

type Operand = Panel<Type>;

fn written(operand: &Operand, step: &str) -> String {
    let Panel { name, row, trans, .. } = operand;
    let by = if *trans { 16 * row / 2 } else { 32 / operand.bytes() };
    let lead = if *trans { operand.terms() * row } else { 0 };
    let number = Matrix { swizzle: *row as u32, lead: lead as u32, stride: 8 * *row as u32 }.encode();
    format!("{name}[{step}*{by}] descriptor {number:#x}")
}

fn operands(of: Type, row: u64, [left, right]: [bool; 2]) -> [Operand; 2] {
    let elem = match of {
        Type::F16 => DType::F16,
        Type::BF16 => DType::BF16,
        Type::TF32 => DType::F32,
        _ => DType::I8,
    };
    let one = |name, trans, lines| Panel { name, of, elem, row, trans, lines };
    [one("a_s", left, ROWS), one("b_s", right, COLS)]
}

fn product(of: &[Operand; 2]) -> String {
    let [a, b] = of;
    let (sum, word) = if a.elem == DType::I8 { ("i32", "i8") } else { ("f32", "f16") };
    let word = if a.of == Type::TF32 { "tf32" } else { word };
    let instruction =
        Instruction { of: [a.of, b.of], transposed: [a.trans, b.trans], rows: 128, cols: COLS as u32 }.encode();
    let bytes = (a.row * ROWS, b.row * COLS);
    format!(
        "kernel product(A: ptr<i32>, B: ptr<i32>, C: ptr<i32>) threads 128 scratch {} shared {} {{\nslot acc: {sum}[{COLS}] at 0\n\
         shared a_s: {}[{}] at 0\nshared b_s: {}[{}] at {}\nshared tmem: i32[1] at {}\nshared done: mbarrier[1] at {}\n\
         if tx < 32 {{\ntcgen05 alloc tmem[0] columns 64\ntcgen05 relinquish\n}}\n\
         if tx == 0 {{\ninit done[0] count 1\nfence init\n}}\n{}{}fence async\n\
         fence before_sync\nbarrier\nfence after_sync\nsums: i32 = load tmem[0]\n\
         if tx == 0 {{\nfor k in 0..{} step 1 {{\n\
         tcgen05 mma {word} to sums = {}, {} by {instruction:#x} add where k > 0\n}}\ntcgen05 commit done[0]\n}}\nsyncwarp\n\
         wait done[0] parity 0\nfence after_sync\ntcgen05 load acc from sums + tx//32*2097152\ntcgen05 wait acc\n\
         for r in 0..{COLS} step 1 {{\nv: {sum} = load acc[r]\n\
         store C as {sum}[(tx//32*32 + r//{each}*8 + tx%32//4)*{COLS} + r%{each}//2*8 + tx%4*2 + r%2] = v\n}}\n\
         fence before_sync\nbarrier\nfence after_sync\nif tx < 32 {{\ntcgen05 dealloc sums columns 64\n}}\n}}\n",
        COLS * 4,
        bytes.0 + bytes.1 + 32,
        a.elem,
        a.len(),
        b.elem,
        b.len(),
        bytes.0,
        bytes.0 + bytes.1,
        bytes.0 + bytes.1 + 16,
        a.filled("A"),
        b.filled("B"),
        a.row / 32,
        written(a, "k"),
        written(b, "k"),
        each = COLS / 4,
    )
}

fn arrays([a, b]: &[Operand; 2]) -> [(&'static str, Vec<i32>); 3] {
    [("A", a.values(left)), ("B", b.values(right)), ("C", vec![0; (ROWS * COLS) as usize])]
}

#[test]
fn every_layout_of_both_operands_is_multiplied() {
    for row in [32, 64, 128] {
        for trans in [[false, false], [false, true], [true, false], [true, true]] {
            let of = operands(Type::F16, row, trans);
            let text = product(&of);
            let sum = |c: u64| (0..row / 2).map(|t| left(c / COLS, t) * right(c % COLS, t)).sum::<i64>();
            let expected: Vec<i32> = (0..ROWS * COLS).map(|c| (sum(c) as f32).to_bits() as i32).collect();
            clean(&text, [1, 1, 1], &arrays(&of), &[], &expected);
            let made = kernel(&text);
            assert_eq!(kernel(&print(&made)), made);
        }
    }
}

#[test]
fn every_type_is_multiplied() {
    for of in [Type::BF16, Type::TF32, Type::S8, Type::U8] {
        let both = operands(of, 128, [false, false]);
        let number = |x: i64| if of == Type::U8 { x + 11 } else { x };
        let sum = |c: u64| -> i64 {
            (0..both[0].terms()).map(|t| number(left(c / COLS, t)) * number(right(c % COLS, t))).sum()
        };
        let bits = |x: i64| if both[0].elem == DType::I8 { x as i32 } else { (x as f32).to_bits() as i32 };
        let expected: Vec<i32> = (0..ROWS * COLS).map(|c| bits(sum(c))).collect();
        let [a, b] = &both;
        let values = [a.values(|l, t| number(left(l, t))), b.values(|l, t| number(right(l, t)))];
        let [a, b] = values;
        let arrays = [("A", a), ("B", b), ("C", vec![0; (ROWS * COLS) as usize])];
        clean(&product(&both), [1, 1, 1], &arrays, &[], &expected);
    }
}

/// The kinds of findings of a changed kernel, over all schedules.
fn kinds(text: &str, of: &[Operand; 2]) -> Vec<Kind> {
    let mut found = vec![];
    for options in schedules() {
        let (report, _) = simulate(&kernel(text), [1, 1, 1], &arrays(of), &[], &options);
        found.extend(report.findings.iter().map(|f| f.kind));
    }
    found
}

#[test]
fn what_is_missing_is_reported() {
    let of = operands(Type::F16, 128, [false, true]);
    let good = product(&of);
    let wait = "wait done[0] parity 0\n";
    for (from, to, kind) in [
        // The columns are read before the commit has been waited for, or without its fence.
        (wait, "", Kind::TensorMemory),
        ("parity 0\nfence after_sync\n", "parity 0\n", Kind::TensorMemory),
        ("tcgen05 commit done[0]\n", "", Kind::Deadlock),
        // The array is used before the load has ended.
        ("tcgen05 wait acc\n", "", Kind::Sums),
        // Operands change while they are read, or were written without a fence.
        ("tcgen05 commit done[0]\n", "store a_s[0] = 0.0:f16\ntcgen05 commit done[0]\n", Kind::InFlight),
        ("fence async\n", "", Kind::Unfenced),
        // Another warp's lanes, another address, more columns than there are.
        ("from sums + tx//32*2097152", "from sums", Kind::TensorMemory),
        ("from sums + tx//32*2097152", "from sums + tx//32*2097152 + 1", Kind::TensorMemory),
        ("to sums =", "to 0 =", Kind::TensorMemory),
        ("add where k > 0", "add where k > 0 and sums == 0", Kind::TensorMemory),
        // The columns go while warps load, or are given back in part.
        (
            "fence before_sync\nbarrier\nfence after_sync\nif tx < 32 {\ntcgen05 dealloc",
            "if tx < 32 {\ntcgen05 dealloc",
            Kind::TensorMemory,
        ),
        ("dealloc sums columns", "dealloc sums + 1 columns", Kind::TensorMemory),
        (
            "tcgen05 alloc tmem[0] columns 64\ntcgen05 relinquish\n",
            "tcgen05 relinquish\ntcgen05 alloc tmem[0] columns 64\n",
            Kind::TensorMemory,
        ),
        ("if tx < 32 {\ntcgen05 dealloc", "if tx < 0 {\ntcgen05 dealloc", Kind::LeftInFlight),
        ("a_s[k*16]", "a_s[k*16 + 4096]", Kind::TensorMemory),
    ] {
        let changed = good.replacen(from, to, 1);
        assert_ne!(changed, good, "{from}");
        if from == "add where k > 0" {
            // Nothing is added: other values, and no report.
            assert_eq!(kinds(&changed, &of), []);
            continue;
        }
        let found = kinds(&changed, &of);
        assert!(found.contains(&kind), "{from} -> {to}: {found:?}");
    }
}

#[test]
fn kernels_that_break_its_rules_are_refused() {
    let of = operands(Type::F16, 128, [false, false]);
    let good = product(&of);
    for (from, to, why) in [
        ("alloc tmem[0] columns 64", "alloc tmem[0] columns 48", "a power of two from 32 to 512, not 48"),
        (
            "dealloc sums columns 64",
            "dealloc sums columns 32",
            "allocates [64] columns of tensor memory and gives back [32]",
        ),
        ("by 0x8100010", "by 0x8100000", "sums of type 0 are not those of `f16`"),
        ("by 0x8100010", "by 0x4100010", "128 rows and a multiple of 16 columns up to 256, not 64 x 64"),
        ("0x4000404000000000", "0x4000004000000000", "bits 46 to 48 of an operand are 0, not 1"),
        ("0x4000404000000000", "0x404000000000", "an operand has a swizzle, and none is 0"),
        ("mma f16 ", "mma i8 ", "sums of type 1 are not those of `i8`"),
        ("shared tmem: i32[1]", "shared tmem: f32[1]", "is stored in a shared slot of i32, not of f32"),
        ("slot acc: f32[64]", "slot acc: f32[20]", "loads a multiple of 8 columns up to 512, not 20"),
    ] {
        let changed = good.replacen(from, to, 1);
        assert_ne!(changed, good, "{from}");
        let parsed = crate::kernel::parse::parse(&changed).unwrap_or_else(|d| panic!("{}", d.message));
        let wrong = crate::kernel::verify::verify(&parsed).join("\n");
        assert!(wrong.contains(why), "{from} -> {to}: {wrong}");
    }
}
