//! Random straight-line and looped kernels over memory that overlaps, and over integers that wrap: native code and the
//! evaluator agree in every bit, and with checks on they trap alike.
//!
//! `GIRIH_PROMISES` in the environment sets how many programs each test tries.

use std::fmt::Write;

use super::common::*;
use girih::{Arg, Device, Error};

/// A splitmix64 stream.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}

fn programs(default: u64) -> u64 {
    std::env::var("GIRIH_PROMISES").ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Loads, sums and stores through %a, %b and %c at indices up to 255, in any order, without tokens.
fn memory(rng: &mut Rng) -> String {
    let n = *rng.pick(&[1u64, 2, 8, 16, 32, 64]);
    let mut s = String::new();
    for p in ["a", "b", "c"] {
        s += &spread(p, "ptr<i32>", n);
    }
    s += &iota("lane", n);
    s += &splat("last", &(n - 1).to_string(), "i32", n);
    s += &op2("turned", "subi", "last", "lane", "i32", n);
    s += &op2("twice", "addi", "lane", "lane", "i32", n);
    s += &splat("v0", "1", "i32", n);
    s += "    %c0 = constant <i32: 0> : tile<i32>\n    %c1 = constant <i32: 1> : tile<i32>\n    %c3 = constant <i32: 3> : tile<i32>\n";
    let looped = rng.below(2) == 0;
    let mut tiles = vec!["v0".to_string()];
    let mut index = vec!["lane".to_string(), "turned".into(), "twice".into()];
    if looped {
        s += "    for %k in (%c0 to %c3, step %c1) : tile<i32> {\n";
        let stride = *rng.pick(&[1u64, n, n / 2 + 1]);
        writeln!(s, "    %sk = constant <i32: {stride}> : tile<i32>\n    %o = muli %k, %sk : tile<i32>").unwrap();
        s += &spread("o", "i32", n);
        s += &op2("stepped", "addi", "lane", "o_n", "i32", n);
        index.push("stepped".into());
    }
    for step in 0..3 + rng.below(6) {
        let (p, mut i) = (*rng.pick(&["a", "b", "c"]), rng.pick(&index).clone());
        if rng.below(2) == 0 {
            s += &splat(&format!("d{step}"), &rng.below(5).to_string(), "i32", n);
            s += &op2(&format!("i{step}"), "addi", &i, &format!("d{step}"), "i32", n);
            i = format!("i{step}");
        }
        let address = format!("p{step}");
        let mask = format!("m{step}");
        let masked = rng.below(3) == 0;
        if masked {
            let of = if rng.below(2) == 0 { rng.pick(&tiles).clone() } else { rng.pick(&index).clone() };
            s += &splat(&format!("e{step}"), &rng.below(40).to_string(), "i32", n);
            s += &compare(&mask, "less_than", &of, &format!("e{step}"), "i32", n);
        }
        s += &at(&address, p, &i, "i32", "i32", n);
        let value = format!("v{}", step + 1);
        match rng.below(5) {
            0 | 1 if masked => {
                s += &load_where(&value, &address, &mask, &rng.pick(&tiles).clone(), "i32", n);
                tiles.push(value);
            }
            0 | 1 => {
                s += &load(&value, &address, "i32", n);
                tiles.push(value);
            }
            2 => {
                let (x, y) = (rng.pick(&tiles).clone(), rng.pick(&tiles).clone());
                s += &op2(&value, "addi", &x, &y, "i32", n);
                tiles.push(value);
            }
            _ if masked => s += &store_where(&rng.pick(&tiles).clone(), &address, &mask, "i32", n),
            _ => s += &store(&rng.pick(&tiles).clone(), &address, "i32", n),
        }
    }
    // Every value is used: native code makes no load whose value is not.
    let mut sum = tiles[0].clone();
    for tile in &tiles[1..] {
        s += &op2(&format!("{tile}_sum"), "addi", &sum, tile, "i32", n);
        sum = format!("{tile}_sum");
    }
    s += &at("end", "c", "lane", "i32", "i32", n);
    s += &store(&sum, "end", "i32", n);
    if looped {
        s += "    }\n";
    }
    s
}

const MEMORY: &str = "%all: tile<ptr<i32>>, %a: tile<ptr<i32>>, %b: tile<ptr<i32>>, %c: tile<ptr<i32>>";

#[test]
fn overlapping_memory_in_any_order() {
    for seed in 0..programs(40) {
        let rng = &mut Rng(seed);
        let body = memory(rng);
        let program = program(MEMORY, &body);
        let kernels = DEVICES.map(|d| kernel(&program, options(d)));
        for _ in 0..6 {
            // The same place, a few elements apart, a few bytes apart, or far apart.
            let scale = *rng.pick(&[0u64, 1, 4, 4, 4, 32]);
            let parts = [0; 3].map(|_| rng.below(33) * scale);
            let start: Vec<i32> = (0..600).map(|i| i % 97 - 20).collect();
            let results = [0, 1].map(|d: usize| {
                let mut memory = start.clone();
                let [a, b, c] = parts.map(|p| Arg::part_of(0, p..p + 1024));
                kernels[d].launch([1; 3], &mut [Arg::from(&mut memory[..]), a, b, c]).unwrap();
                memory
            });
            assert_eq!(results[0], results[1], "seed {seed}, parts at bytes {parts:?}:\n{body}");
        }
    }
}

#[test]
fn checks_trap_where_the_evaluator_does() {
    let mut trapped = 0;
    for seed in 1000..1000 + programs(40) {
        let rng = &mut Rng(seed);
        let body = memory(rng);
        let program = program(MEMORY, &body);
        let checked = kernel(&program, options(Device::Cpu).check(true));
        let evaluator = kernel(&program, options(Device::Eval));
        for _ in 0..6 {
            let lengths = [0; 3].map(|_| 1 + rng.below(150) as usize);
            let run = |kernel: &girih::Kernel<'_>| {
                let mut all = [0i32];
                let [mut a, mut b, mut c] = lengths.map(|n| (0..n as i32).map(|i| i % 97 - 20).collect::<Vec<i32>>());
                let mut args =
                    [Arg::from(&mut all[..]), Arg::from(&mut a[..]), Arg::from(&mut b[..]), Arg::from(&mut c[..])];
                let result = kernel.launch([1; 3], &mut args);
                match result {
                    Ok(_) => Ok([a, b, c]),
                    // Accesses of different lanes may take turns natively, so that another one is met first.
                    Err(Error::Trap(t)) => Err(t.code),
                    Err(e) => panic!("{e}"),
                }
            };
            let (native, expected) = (run(&checked), run(&evaluator));
            trapped += u32::from(expected.is_err());
            assert_eq!(native, expected, "seed {seed}, lengths {lengths:?}:\n{body}");
        }
    }
    assert!(trapped > 10, "{trapped}");
}

/// A chain of integer operations on lane numbers, block numbers and parameters; every value is stored, compared, and used
/// as a mask and an index.
fn integers(rng: &mut Rng) -> (String, u64) {
    let n = 16;
    let ty = *rng.pick(&["i32", "i32", "i32", "i64", "i16", "i8"]);
    let mut s =
        "    %bx, %by, %bz = get_tile_block_id : tile<i32>\n    %gx, %gy, %gz = get_num_tile_blocks : tile<i32>\n"
            .to_string();
    s += &spread("out", "ptr<i32>", n);
    s += &spread("bx", "i32", n);
    s += &spread("gx", "i32", n);
    s += &iota("lane", n);
    for (from, to) in [("bx_n", "block"), ("gx_n", "grid"), ("lane", "x")] {
        s += &match ty {
            "i32" => op2(to, "ori", from, from, "i32", n),
            "i64" => format!("    %{to} = exti %{from} signed : tile<{n}xi32> -> tile<{n}xi64>\n"),
            _ => format!("    %{to} = trunci %{from} : tile<{n}xi32> -> tile<{n}x{ty}>\n"),
        };
    }
    s += &spread("s", ty, n);
    s += &spread("t", ty, n);
    s += &splat("one", "1", ty, n);
    s += &splat("seven", "7", ty, n);
    s += &splat("three", "3", ty, n);
    let mut tiles: Vec<String> = ["x", "block", "grid", "s_n", "t_n", "one", "seven"].map(String::from).to_vec();
    let count = 4 + rng.below(6);
    for step in 0..count {
        // Newer values are likelier, so that the chains get deep.
        let pick = |rng: &mut Rng| {
            let from = if rng.below(2) == 0 { tiles.len() as u64 * 2 / 3 } else { 0 };
            tiles[(from + rng.below(tiles.len() as u64 - from)) as usize].clone()
        };
        let (a, b) = (pick(rng), pick(rng));
        let v = format!("v{step}");
        let op = *rng.pick(&[
            "addi", "addi", "subi", "muli", "muli", "andi", "divi", "remi", "shli", "shri", "maxi", "mini", "negi",
            "mask",
        ]);
        let sign = *rng.pick(&["signed", "signed", "unsigned"]);
        s += &match op {
            "divi" | "remi" => format!("    %{v} = {op} %{a}, %seven {sign} : tile<{n}x{ty}>\n"),
            "shli" => op2(&v, "shli", &a, "three", ty, n),
            "shri" => format!("    %{v} = shri %{a}, %three {sign} : tile<{n}x{ty}>\n"),
            "maxi" | "mini" => format!("    %{v} = {op} %{a}, %{b} {sign} : tile<{n}x{ty}>\n"),
            "negi" => format!("    %{v} = negi %{a} : tile<{n}x{ty}>\n"),
            "mask" => {
                let how = *rng.pick(&["less_than", "greater_than_or_equal", "equal", "not_equal"]);
                let c = pick(rng);
                format!(
                    "    %{v}_m = cmpi {how} %{a}, %{b}, {sign} : tile<{n}x{ty}> -> tile<{n}xi1>\n    %{v} = select %{v}_m, %{c}, %{a} : \
                     tile<{n}xi1>, tile<{n}x{ty}>\n"
                )
            }
            _ => op2(&v, op, &a, &b, ty, n),
        };
        tiles.push(v);
    }
    // out[block * 4096 + step * 256 + (v & 15) * 16 + lane] = v or, where v < another, 1.
    s += &splat("fifteen", "15", "i32", n);
    s += &splat("sixteen", "16", "i32", n);
    s += &splat("mark", "1000001", "i32", n);
    s += &splat("row", "4096", "i32", n);
    s += &op2("base0", "muli", "bx_n", "row", "i32", n);
    s += &op2("base", "addi", "base0", "lane", "i32", n);
    for step in 0..count {
        let v = format!("v{step}");
        let narrow = format!("w{step}");
        s += &match ty {
            "i32" => op2(&narrow, "ori", &v, &v, "i32", n),
            "i64" => format!("    %{narrow} = trunci %{v} : tile<{n}xi64> -> tile<{n}xi32>\n"),
            _ => format!(
                "    %{narrow} = exti %{v} {} : tile<{n}x{ty}> -> tile<{n}xi32>\n",
                rng.pick(&["signed", "unsigned"])
            ),
        };
        let other = rng.pick(&tiles).clone();
        s += &format!(
            "    %q{step} = cmpi less_than %{v}, %{other}, {} : tile<{n}x{ty}> -> tile<{n}xi1>\n",
            rng.pick(&["signed", "unsigned"])
        );
        s += &splat(&format!("off{step}"), &(step * 256).to_string(), "i32", n);
        s += &op2(&format!("r{step}"), "andi", &narrow, "fifteen", "i32", n);
        s += &op2(&format!("rr{step}"), "muli", &format!("r{step}"), "sixteen", "i32", n);
        s += &op2(&format!("a{step}"), "addi", "base", &format!("off{step}"), "i32", n);
        s += &op2(&format!("b{step}"), "addi", &format!("a{step}"), &format!("rr{step}"), "i32", n);
        s += &at(&format!("p{step}"), "out", &format!("b{step}"), "i32", "i32", n);
        s += &store(&narrow, &format!("p{step}"), "i32", n);
        s += &store_where("mark", &format!("p{step}"), &format!("q{step}"), "i32", n);
    }
    (format!("{ty}|{s}"), count)
}

#[test]
fn integers_that_wrap() {
    let mut versions = [0u32; 2];
    for seed in 2000..2000 + programs(40) {
        let rng = &mut Rng(seed);
        let (text, _) = integers(rng);
        let (ty, body) = text.split_once('|').unwrap();
        let program = program(&format!("%out: tile<ptr<i32>>, %s: tile<{ty}>, %t: tile<{ty}>"), body);
        let kernels = DEVICES.map(|d| kernel(&program, options(d)));
        for _ in 0..6 {
            let scalar = |rng: &mut Rng| match rng.below(4) {
                0 => rng.below(20),
                1 => rng.next(),
                2 => (1u64 << rng.below(64)).wrapping_sub(rng.below(3)),
                _ => 0u64.wrapping_sub(rng.below(20)),
            };
            let (s, t) = (scalar(rng), scalar(rng));
            let dtype = match ty {
                "i8" => girih_compiler::num::DType::I8,
                "i16" => girih_compiler::num::DType::I16,
                "i64" => girih_compiler::num::DType::I64,
                _ => girih_compiler::num::DType::I32,
            };
            let grid = 1 + rng.below(4) as u32;
            let results = [0, 1].map(|d: usize| {
                let mut out = vec![-7i32; 4 * 4096];
                let mut args = [Arg::from(&mut out[..]), Arg::scalar(dtype, s), Arg::scalar(dtype, t)];
                let mut prepared = kernels[d].prepare([grid, 1, 1], &mut args).unwrap();
                prepared.run().unwrap();
                if let Some(c) = prepared.compiled() {
                    versions[usize::from(c.assume.no_wrap)] += 1;
                }
                out
            });
            if results[0] != results[1] {
                let at = results[0].iter().zip(&results[1]).position(|(a, b)| a != b).unwrap();
                panic!(
                    "seed {seed}, s {s:#x}, t {t:#x}, grid {grid}: out[{at}] is {} and should be {}\n{body}",
                    results[0][at], results[1][at]
                );
            }
        }
    }
    assert!(versions.iter().all(|&n| n > 10), "{versions:?}");
}

/// Whole tiles of 2-D views of %a, %b and %c: products, transposes, row sums, sums down the columns, partial edges.
fn tiles(rng: &mut Rng) -> String {
    let n = *rng.pick(&[4u64, 8, 16, 32]);
    let stride = n + rng.below(3) * 3;
    let rows = n + 1 + rng.below(n);
    let view = format!("tensor_view<{rows}x{n}xf32, strides=[{stride},1]>");
    let part = format!("partition_view<tile=({n}x{n}), padding_value = zero, {view}>");
    let tile = format!("tile<{n}x{n}xf32>");
    let mut s = "    %c0 = constant <i32: 0> : tile<i32>\n    %c1 = constant <i32: 1> : tile<i32>\n    %c2 = constant <i32: 2> : tile<i32>\n"
        .to_string();
    for p in ["a", "b", "c"] {
        writeln!(s, "    %{p}_all = make_tensor_view %{p}, shape = [{rows}, {n}], strides = [{stride}, 1] : {view}")
            .unwrap();
        writeln!(s, "    %{p}_tiles = make_partition_view %{p}_all : {part}").unwrap();
    }
    writeln!(s, "    %v0 = constant <f32: 1.0> : {tile}\n    %zero = constant <f32: 0.0> : {tile}").unwrap();
    let looped = rng.below(2) == 0;
    let mut index = vec!["c0", "c1"];
    if looped {
        s += "    for %k in (%c0 to %c2, step %c1) : tile<i32> {\n";
        index.push("k");
    }
    let mut tiles = vec!["v0".to_string()];
    for step in 0..4 + rng.below(7) {
        let (p, i) = (*rng.pick(&["a", "b", "c"]), *rng.pick(&index));
        let v = format!("v{}", step + 1);
        let (x, y) = (rng.pick(&tiles).clone(), rng.pick(&tiles).clone());
        let sum = |axis: u32, line: &str| {
            format!(
                "    %{v}_s = reduce %{x} dim={axis} identities=[0.0 : f32] : {tile} -> tile<{n}xf32>\n    (%e: tile<f32>, %acc: \
                 tile<f32>) {{\n      %t = addf %e, %acc : tile<f32>\n      yield %t : tile<f32>\n    }}\n    %{v}_r = reshape %{v}_s : \
                 tile<{n}xf32> -> tile<{line}xf32>\n    %{v} = broadcast %{v}_r : tile<{line}xf32> -> {tile}\n"
            )
        };
        s += &match rng.below(11) {
            0..=2 => format!(
                "    %{v}, %{v}_t = load_view_tko weak %{p}_tiles[%{i}, %c0] : {part}, tile<i32> -> {tile}, token\n"
            ),
            3 => format!("    %{v} = permute %{x} [1, 0] : {tile} -> {tile}\n"),
            4 => format!("    %{v} = addf %{x}, %{y} : {tile}\n"),
            5 => format!("    %{v} = mmaf %{x}, %{y}, %zero : {tile}, {tile}, {tile}\n"),
            6 => sum(1, &format!("{n}x1")),
            7 => sum(0, &format!("1x{n}")),
            _ => {
                let store = format!(
                    "    %{v}_t = store_view_tko weak %{x}, %{p}_tiles[%{i}, %c0] : {tile}, {part}, tile<i32> -> token\n"
                );
                s += &store;
                continue;
            }
        };
        // Values stay small whole numbers, so that every order of a sum is exact.
        writeln!(s, "    %{v}_q = constant <f32: 7.0> : {tile}\n    %{v}_m = remf %{v}, %{v}_q : {tile}").unwrap();
        tiles.push(format!("{v}_m"));
    }
    let last = rng.pick(&tiles).clone();
    writeln!(s, "    %end = store_view_tko weak %{last}, %c_tiles[%c0, %c0] : {tile}, {part}, tile<i32> -> token")
        .unwrap();
    if looped {
        s += "    }\n";
    }
    s
}

#[test]
fn overlapping_views_in_any_order() {
    for seed in 3000..3000 + programs(40) {
        let rng = &mut Rng(seed);
        let body = tiles(rng);
        let program = program(&MEMORY.replace("i32", "f32"), &body);
        let kernels = DEVICES.map(|d| kernel(&program, options(d)));
        for _ in 0..4 {
            let scale = *rng.pick(&[0u64, 4, 4, 128, 1 << 14]);
            let parts = [0; 3].map(|_| rng.below(33) * scale);
            let (whole, part) = (136 << 10, 10 << 10);
            let results = [0, 1].map(|d: usize| {
                let mut memory: Vec<f32> = (0..whole).map(|i| (i % 5) as f32 - 2.0).collect();
                let [a, b, c] = parts.map(|p| Arg::part_of(0, p..p + part));
                kernels[d].launch([1; 3], &mut [Arg::from(&mut memory[..]), a, b, c]).unwrap();
                memory
            });
            let at = results[0].iter().zip(&results[1]).position(|(a, b)| a != b);
            assert_eq!(at, None, "seed {seed}, parts at bytes {parts:?}:\n{body}");
        }
    }
}
