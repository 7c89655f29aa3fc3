//! Products of warpgroups: every layout of their panels, and what is missing from them.

use super::panels::{Panel, left, right};
use super::*;
use crate::kernel::print::print;
use crate::num::DType;

const COLS: u64 = 64;

type Operand = Panel<&'static str>;

fn written(operand: &Operand, step: &str) -> String {
    let Panel { name, row, trans, .. } = operand;
    let (how, by) = if *trans { (" trans", 16 * row / 2) } else { ("", 32 / operand.bytes()) };
    let lead = if *trans { operand.terms() * row } else { 0 };
    format!("{name}[{step}*{by}]{how} swizzle {row} strides ({lead}, {})", 8 * row)
}

fn operands(of: &'static str, row: u64, [left, right]: [bool; 2]) -> [Operand; 2] {
    let elem = match of {
        "f16" => DType::F16,
        "bf16" => DType::BF16,
        "tf32" => DType::F32,
        _ => DType::I8,
    };
    let one = |name, trans, lines| Panel { name, of, elem, row, trans, lines };
    [one("a_s", left, 64), one("b_s", right, COLS)]
}

fn product([a, b]: &[Operand; 2]) -> String {
    let (each, elem, of) = (COLS / 4, a.elem, a.of);
    let (sum, zero) = if elem == DType::I8 { ("i32", "0:i32") } else { ("f32", "0.0:f32") };
    format!(
        "kernel product(A: ptr<i32>, B: ptr<i32>, C: ptr<i32>) threads 128 scratch {} shared {} {{\nslot acc: {sum}[{}] at 0\n\
         shared a_s: {elem}[{}] at 0\nshared b_s: {elem}[{}] at {}\n{}{}fence async\n\
         for z in 0..{} step 1 {{\nstore acc[z] = {zero}\n}}\nbarrier\nfence registers\n\
         for k in 0..{} step 1 {{\nwgmma {of} acc add {}, {}\n}}\nwgmma commit\nwgmma wait 0 acc\n\
         for r in 0..{} step 1 {{\nv: {sum} = load acc[r]\n\
         store C as {sum}[(tx//32*16 + r//{each}*8 + tx%32//4)*{COLS} + r%{each}//2*8 + tx%4*2 + r%2] = v\n}}\n}}\n",
        COLS * 2,
        64 * a.row + COLS * b.row,
        COLS / 2,
        64 * a.terms(),
        COLS * b.terms(),
        64 * a.row,
        a.filled("A"),
        b.filled("B"),
        COLS / 2,
        a.row / 32,
        written(a, "k"),
        written(b, "k"),
        COLS / 2,
    )
}

/// The same product, whose left operand each thread loads from memory into registers.
fn from_registers(of: &[Operand; 2]) -> String {
    let [a, b] = of;
    let (steps, words) = (a.row / 32, a.row / 4);
    let load = format!(
        "for f in 0..{steps} step 1 {{\nfor w in 0..4 step 1 {{\n\
         word: i32 = load A[(tx//32*16 + w%2*8 + tx%32//4)*{words} + f*8 + w//2*4 + tx%4]\n\
         store a_f[f*4 + w] = word\n}}\n}}\nfence registers\n"
    );
    let scratch = COLS * 2;
    let text = product(of).replace(&a.filled("A"), "").replace("fence registers\n", &load);
    let text = text.replace(&format!("scratch {scratch} "), &format!("scratch {} ", scratch + 16 * steps));
    let text = text.replace("shared a_s:", &format!("slot a_f: i32[{}] at {scratch}\nshared a_s:", 4 * steps));
    text.replace(
        &format!("add {}, {}", written(a, "k"), written(b, "k")),
        &format!("add a_f[k*4], {}", written(b, "k")),
    )
}

fn arrays([a, b]: &[Operand; 2]) -> [(&'static str, Vec<i32>); 3] {
    [("A", a.values(left)), ("B", b.values(right)), ("C", vec![0; 64 * COLS as usize])]
}

#[test]
fn every_layout_of_both_panels_is_multiplied() {
    for row in [32, 64, 128] {
        for trans in [[false, false], [false, true], [true, false], [true, true]] {
            let of = operands("f16", row, trans);
            let text = product(&of);
            let sum = |c: u64| (0..row / 2).map(|t| left(c / COLS, t) * right(c % COLS, t)).sum::<i64>();
            let expected: Vec<i32> = (0..64 * COLS).map(|c| (sum(c) as f32).to_bits() as i32).collect();
            clean(&text, [1, 1, 1], &arrays(&of), &[], &expected);
            let made = kernel(&text);
            assert_eq!(kernel(&print(&made)), made);
        }
    }
}

#[test]
fn every_type_is_multiplied() {
    for of in ["bf16", "tf32", "s8", "u8"] {
        for row in [32, 64, 128] {
            let both = operands(of, row, [false, false]);
            let number = |x: i64| if of == "u8" { x + 11 } else { x };
            let sum = |c: u64| -> i64 {
                (0..both[0].terms()).map(|t| number(left(c / COLS, t)) * number(right(c % COLS, t))).sum()
            };
            let bits = |x: i64| if both[0].elem == DType::I8 { x as i32 } else { (x as f32).to_bits() as i32 };
            let expected: Vec<i32> = (0..64 * COLS).map(|c| bits(sum(c))).collect();
            let [a, b] = &both;
            let values = [a.values(|l, t| number(left(l, t))), b.values(|l, t| number(right(l, t)))];
            let [a, b] = values;
            let arrays = [("A", a), ("B", b), ("C", vec![0; 64 * COLS as usize])];
            clean(&product(&both), [1, 1, 1], &arrays, &[], &expected);
        }
    }
}

#[test]
fn left_operands_of_every_type_come_from_registers() {
    for of in ["f16", "bf16", "tf32", "s8"] {
        for row in [32, 64, 128] {
            let both = operands(of, row, [false, of.ends_with("16")]);
            let sum = |c: u64| -> i64 { (0..both[0].terms()).map(|t| left(c / COLS, t) * right(c % COLS, t)).sum() };
            let bits = |x: i64| if of == "s8" { x as i32 } else { (x as f32).to_bits() as i32 };
            let expected: Vec<i32> = (0..64 * COLS).map(|c| bits(sum(c))).collect();
            let text = from_registers(&both);
            clean(&text, [1, 1, 1], &arrays(&both), &[], &expected);
            let made = kernel(&text);
            assert_eq!(kernel(&print(&made)), made);
        }
    }
}

#[test]
fn registers_of_a_product_in_flight_stay_as_they_are() {
    let of = operands("f16", 128, [false, true]);
    let good = from_registers(&of);
    for (from, to, kind) in [
        ("wgmma commit\n", "wgmma commit\nstore a_f[3] = 7:i32\n", Kind::Sums),
        ("wgmma commit\n", "wgmma commit\nseen: i32 = load a_f[3]\n", Kind::Sums),
        ("fence registers\n", "fence registers\nstore a_f[3] = 7:i32\n", Kind::RegisterFence),
        ("add a_f[k*4]", "add a_f[k*4 + 4]", Kind::Tensor),
    ] {
        let changed = good.replace(from, to);
        assert_ne!(changed, good, "{from}");
        for options in schedules() {
            let (report, _) = simulate(&kernel(&changed), [1, 1, 1], &arrays(&of), &[], &options);
            assert!(found(&report).iter().any(|(k, ..)| *k == kind), "{from} {options:?}: {report}");
        }
    }
    let halves = good
        .replace("slot a_f: i32[16]", "slot a_f: f32[16]")
        .replace("word: i32 = load A[", "word: f32 = load A as f32[");
    let errors = verify::verify(&parse::parse(&halves).unwrap_or_else(|d| panic!("{}", d.message)));
    let why = "a left operand of `wgmma` in registers is words in an array of the thread, of i32, not f32";
    assert!(errors.iter().any(|e| e.starts_with(why)), "{errors:?}");
}

#[test]
fn warps_of_a_group_give_the_same_panels() {
    let of = operands("f16", 32, [false, false]);
    let wide = product(&of).replace("shared 4096 {", "shared 6144 {").replace("f16[1024] at 2048", "f16[2048] at 2048");
    let told = |text: &str| {
        let (report, _) = simulate(&kernel(text), [1, 1, 1], &arrays(&of), &[], &Options::default());
        report.to_string().contains("the warps of a group give a `wgmma` different panels")
    };
    assert!(!told(&wide));
    let apart = wide.replace("b_s[k*16]", "b_s[k*16 + tx//64*1024]");
    assert_ne!(apart, wide);
    assert!(told(&apart));
}

#[test]
fn what_is_missing_is_told() {
    let of = operands("f16", 128, [false, true]);
    let good = product(&of);
    for (from, to, kind) in [
        ("fence async\n", "", Kind::Unfenced),
        ("fence registers\n", "", Kind::RegisterFence),
        ("wgmma wait 0 acc\n", "", Kind::Sums),
        ("wgmma wait 0 acc\n", "wgmma wait 1 acc\n", Kind::Sums),
        ("wgmma wait 0 acc\n", "", Kind::LeftInFlight),
        ("wgmma commit\n", "", Kind::Sums),
        ("wgmma wait 0 acc\n", "barrier\nstore b_s[tx] = 0.0:f16\nwgmma wait 0 acc\n", Kind::InFlight),
        ("barrier\nfence registers", "fence registers", Kind::ReadAfterWrite),
        ("wgmma commit", "fence registers\nstore acc[0] = 1.0:f32\nwgmma commit", Kind::Sums),
        ("a_s[k*16]", "a_s[k*16 + tx*64]", Kind::Tensor),
        ("a_s[k*16]", "a_s[k*16 + 8]", Kind::Tensor),
    ] {
        let changed = good.replace(from, to);
        assert_ne!(changed, good, "{from}");
        for options in schedules() {
            let (report, _) = simulate(&kernel(&changed), [1, 1, 1], &arrays(&of), &[], &options);
            let found = found(&report);
            let one = |k: &Kind| {
                *k == kind || kind == Kind::ReadAfterWrite && matches!(*k, Kind::InFlight | Kind::WriteAfterRead)
            };
            assert!(found.iter().any(|(k, ..)| one(k)), "{from} {options:?}: {report}");
        }
    }
}

/// Lanes read sixteen bytes of different banks.
#[test]
fn panels_are_read_without_conflicts() {
    for trans in [[false, false], [false, true], [true, true]] {
        let of = operands("f16", 128, trans);
        let (report, _) = simulate(&kernel(&product(&of)), [1, 1, 1], &arrays(&of), &[], &Options::default());
        let row = report.rows.iter().find(|r| r.statement.text.starts_with("wgmma f16")).expect("a product");
        let shared = row.counts.shared;
        // A warp reads its 16 rows, and a quarter of the columns, of 32 bytes each, four times.
        assert_eq!((shared.bytes, shared.taken), (4 * 4 * (16 + COLS / 4) * 32, shared.least), "{report}");
    }
}

#[test]
fn what_is_no_product_is_refused() {
    let good = product(&operands("f16", 128, [false, true]));
    for (from, to, why) in [
        ("threads 128", "threads 96", "`wgmma` needs whole warpgroups of 128 threads, and a block has 96"),
        ("swizzle 128", "swizzle 48", "a panel has rows of 32, 64 or 128 bytes, not 48"),
        (
            "strides (0, 1024)",
            "strides (8, 1024)",
            "the strides of a panel are multiples of 16 bytes below 262144, not 8 and 1024",
        ),
        ("wgmma f16", "wgmma s8", "a panel of `wgmma s8` has elements of 1 bytes, not 16 bits"),
        ("wgmma f16", "wgmma tf32", "`wgmma tf32` of a transposed panel; what it transposes has 2 bytes"),
        ("f32[32] at", "i32[32] at", "the sums of `wgmma` are in an array of the thread, of f32"),
        (
            "slot acc: f32[32]",
            "slot acc: f32[34]",
            "the sums of `wgmma` have a multiple of 8 columns up to 256, not 68",
        ),
    ] {
        let changed = good.replace(from, to);
        assert_ne!(changed, good, "{from}");
        let errors = verify::verify(&parse::parse(&changed).unwrap_or_else(|d| panic!("{}", d.message)));
        assert!(errors.iter().any(|e| e.starts_with(why)), "{errors:?}");
    }
}
