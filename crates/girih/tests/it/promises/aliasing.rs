//! Arguments that are the same memory, or overlap: accesses keep program order.

use super::common::*;
use girih::Arg;

/// Steps over the tiles of A: b[i] = a[i] + 1, tile by tile, each loaded whole before it is stored.
fn walk(n: u64, tiles: u64) -> String {
    [
        spread("a", "ptr<i32>", n),
        spread("b", "ptr<i32>", n),
        iota("lane", n),
        splat("one", "1", "i32", n),
        "    %c0 = constant <i32: 0> : tile<i32>\n    %c1 = constant <i32: 1> : tile<i32>\n".to_string(),
        format!("    %cn = constant <i32: {n}> : tile<i32>\n    %ct = constant <i32: {tiles}> : tile<i32>\n"),
        "    for %k in (%c0 to %ct, step %c1) : tile<i32> {\n".into(),
        "    %start = muli %k, %cn : tile<i32>\n".into(),
        spread("start", "i32", n),
        op2("i", "addi", "start_n", "lane", "i32", n),
        at("ap", "a", "i", "i32", "i32", n),
        at("bp", "b", "i", "i32", "i32", n),
        load("x", "ap", "i32", n),
        op2("y", "addi", "x", "one", "i32", n),
        store("y", "bp", "i32", n),
        "    }\n".into(),
    ]
    .concat()
}

fn walked(memory: &mut [i32], a: usize, b: usize, n: usize, tiles: usize) {
    for k in 0..tiles {
        let tile: Vec<i32> = memory[a + k * n..][..n].to_vec();
        for (i, x) in tile.iter().enumerate() {
            memory[b + k * n + i] = x + 1;
        }
    }
}

#[test]
fn overlapping_slices_in_both_directions() {
    for (n, tiles) in [(64u64, 4u64), (16, 3), (1, 40)] {
        let program = program("%all: tile<ptr<i32>>, %a: tile<ptr<i32>>, %b: tile<ptr<i32>>", &walk(n, tiles));
        let len = n * tiles;
        for (a, b) in [(0, 1), (1, 0), (0, 3), (3, 0), (5, 5), (0, n - 1), (n + 1, 0), (0, n), (n, 0), (17, 0), (0, 17)]
        {
            let total = len + a.max(b);
            let start: Vec<i32> = (0..total as i32).map(|i| i * 1000).collect();
            let mut expected = start.clone();
            walked(&mut expected, a as usize, b as usize, n as usize, tiles as usize);
            for device in DEVICES {
                let mut memory = start.clone();
                let mut args = [
                    Arg::from(&mut memory[..]),
                    Arg::part_of(0, 4 * a..4 * (a + len)),
                    Arg::part_of(0, 4 * b..4 * (b + len)),
                ];
                let assume = run(&program, device, 1, &mut args);
                assert_eq!(memory, expected, "{device}: tiles of {n}, a at {a}, b at {b}");
                assert!(assume.is_none_or(|a| !a.no_alias));
            }
        }
    }
}

#[test]
fn separate_buffers_take_the_version_without_aliases() {
    let program = program("%a: tile<ptr<i32>>, %b: tile<ptr<i32>>", &walk(64, 4));
    let (mut a, mut b): (Vec<i32>, Vec<i32>) = ((0..256).collect(), vec![0; 256]);
    let assume = run(&program, girih::Device::Cpu, 1, &mut [Arg::from(&mut a[..]), Arg::from(&mut b[..])]).unwrap();
    assert!(assume.no_alias && assume.no_wrap);
    assert!(b.iter().zip(0..).all(|(&x, i)| x == i + 1));
    // The same kernel, launched again on one buffer twice.
    let assume = run(&program, girih::Device::Cpu, 1, &mut [Arg::from(&mut a[..]), Arg::same_as(0)]).unwrap();
    assert!(!assume.no_alias && assume.no_wrap);
    assert!(a.iter().zip(0..).all(|(&x, i)| x == i + 1));
}

/// x = a; b = x + 1; y = a; c = x + y, whole tiles.
fn between(n: u64) -> String {
    [
        spread("a", "ptr<i32>", n),
        spread("b", "ptr<i32>", n),
        spread("c", "ptr<i32>", n),
        iota("i", n),
        splat("one", "1", "i32", n),
        at("ap", "a", "i", "i32", "i32", n),
        at("bp", "b", "i", "i32", "i32", n),
        at("cp", "c", "i", "i32", "i32", n),
        load("x", "ap", "i32", n),
        op2("x1", "addi", "x", "one", "i32", n),
        store("x1", "bp", "i32", n),
        load("y", "ap", "i32", n),
        op2("z", "addi", "x", "y", "i32", n),
        store("z", "cp", "i32", n),
    ]
    .concat()
}

#[test]
fn a_load_after_a_store_to_the_same_memory_sees_it() {
    let program = program("%a: tile<ptr<i32>>, %b: tile<ptr<i32>>, %c: tile<ptr<i32>>", &between(64));
    for device in DEVICES {
        for shift in [0usize, 1, 5, 63] {
            let mut a: Vec<i32> = (0..128).map(|i| i * i).collect();
            let mut c = vec![0; 64];
            let mut expected = a.clone();
            for i in 0..64 {
                expected[shift + i] = a[i] + 1;
            }
            let sums: Vec<i32> = (0..64).map(|i| a[i] + expected[i]).collect();
            let bytes = 4 * shift as u64..4 * (shift as u64 + 64);
            run(&program, device, 1, &mut [Arg::from(&mut a[..]), Arg::part_of(0, bytes), Arg::from(&mut c[..])]);
            assert_eq!((a, c), (expected, sums), "{device}, {shift}");
        }
    }
}

#[test]
fn one_buffer_three_times() {
    // c = a + b, all the same memory.
    let n = 128;
    let body = [
        spread("a", "ptr<f32>", n),
        spread("b", "ptr<f32>", n),
        spread("c", "ptr<f32>", n),
        iota("i", n),
        at("ap", "a", "i", "f32", "i32", n),
        at("bp", "b", "i", "f32", "i32", n),
        at("cp", "c", "i", "f32", "i32", n),
        load("x", "ap", "f32", n),
        load("y", "bp", "f32", n),
        op2("z", "addf", "x", "y", "f32", n),
        store("z", "cp", "f32", n),
    ]
    .concat();
    let program = program("%a: tile<ptr<f32>>, %b: tile<ptr<f32>>, %c: tile<ptr<f32>>", &body);
    for device in DEVICES {
        let mut a: Vec<f32> = (0..128).map(|i| i as f32 + 0.5).collect();
        run(&program, device, 1, &mut [Arg::from(&mut a[..]), Arg::same_as(0), Arg::same_as(0)]);
        assert!(a.iter().enumerate().all(|(i, &x)| x == 2.0 * i as f32 + 1.0), "{device}");
    }
}

#[test]
fn a_pointer_loaded_from_memory_may_be_any_argument() {
    // p = table[0]; x = a; p[i + 1] = x + 1; y = a; c = x + y
    let n = 64;
    let body = [
        spread("a", "ptr<i32>", n),
        spread("c", "ptr<i32>", n),
        iota("i", n),
        splat("one", "1", "i32", n),
        "    %address, %address_t = load_ptr_tko weak %table : tile<ptr<i64>> -> tile<i64>, token\n".into(),
        "    %p = int_to_ptr %address : tile<i64> -> tile<ptr<i32>>\n".into(),
        spread("p", "ptr<i32>", n),
        op2("next", "addi", "i", "one", "i32", n),
        at("ap", "a", "i", "i32", "i32", n),
        at("pp", "p", "next", "i32", "i32", n),
        at("cp", "c", "i", "i32", "i32", n),
        load("x", "ap", "i32", n),
        op2("x1", "addi", "x", "one", "i32", n),
        store("x1", "pp", "i32", n),
        load("y", "ap", "i32", n),
        op2("z", "addi", "x", "y", "i32", n),
        store("z", "cp", "i32", n),
    ]
    .concat();
    let program = program("%a: tile<ptr<i32>>, %table: tile<ptr<i64>>, %c: tile<ptr<i32>>", &body);
    for device in DEVICES {
        let mut a: Vec<i32> = (0..65).map(|i| 10 * i).collect();
        let mut c = vec![0; 64];
        run(&program, device, 1, &mut [Arg::from(&mut a[..]), Arg::pointers(&[0]), Arg::from(&mut c[..])]);
        let stored = |i: i32| if i == 0 { 0 } else { 10 * (i - 1) + 1 };
        assert!(a.iter().zip(0..).all(|(&x, i)| x == stored(i)), "{device}: {a:?}");
        assert!(c.iter().zip(0..).all(|(&x, i)| x == 10 * i + stored(i)), "{device}: {c:?}");
    }
}

/// The pointer `%q` that `make` derives may be any argument: q[i + 1] = x + 1 is between two loads of a.
fn through_derived(make: &str) -> String {
    let n = 64;
    [
        make.to_string(),
        spread("a", "ptr<i32>", n),
        spread("c", "ptr<i32>", n),
        spread("q", "ptr<i32>", n),
        iota("i", n),
        splat("one", "1", "i32", n),
        op2("next", "addi", "i", "one", "i32", n),
        at("ap", "a", "i", "i32", "i32", n),
        at("qp", "q", "next", "i32", "i32", n),
        at("cp", "c", "i", "i32", "i32", n),
        load("x", "ap", "i32", n),
        op2("x1", "addi", "x", "one", "i32", n),
        store("x1", "qp", "i32", n),
        load("y", "ap", "i32", n),
        op2("z", "addi", "x", "y", "i32", n),
        store("z", "cp", "i32", n),
    ]
    .concat()
}

#[test]
fn derived_pointers_keep_program_order() {
    let choose = "    %zero = constant <i32: 0> : tile<i32>\n    %first = cmpi not_equal %s, %zero, signed : tile<i32> -> tile<i1>\n";
    let ptr = "tile<ptr<i32>>";
    // Which of a and b the pointer is when s is 1 and when it is 0.
    let ways = [
        (format!("{choose}    %q = select %first, %a, %b : tile<i1>, {ptr}\n"), [true, false]),
        (
            format!(
                "{choose}    %q = if %first -> ({ptr}) {{\n      yield %a : {ptr}\n    }} else {{\n      yield %b : {ptr}\n    }}\n"
            ),
            [true, false],
        ),
        (
            format!(
                "    %n = ptr_to_int %a : {ptr} -> tile<i64>\n    %m = ptr_to_int %b : {ptr} -> tile<i64>\n    %d = subi %n, %m : \
                 tile<i64>\n    %s64 = exti %s signed : tile<i32> -> tile<i64>\n    %e = muli %d, %s64 : tile<i64>\n    %f = addi %m, %e : \
                 tile<i64>\n    %q = int_to_ptr %f : tile<i64> -> {ptr}\n"
            ),
            [true, false],
        ),
        (
            format!(
                "    %g = ptr_to_ptr %a : {ptr} -> tile<ptr<f32>>\n    %q = ptr_to_ptr %g : tile<ptr<f32>> -> {ptr}\n"
            ),
            [true, true],
        ),
    ];
    for (make, is_a) in ways {
        let program = program(
            "%a: tile<ptr<i32>>, %b: tile<ptr<i32>>, %c: tile<ptr<i32>>, %s: tile<i32>",
            &through_derived(&make),
        );
        for device in DEVICES {
            for (s, same) in [(1i32, is_a[0]), (0, is_a[1])] {
                let mut a: Vec<i32> = (0..65).map(|i| 10 * i).collect();
                let (mut b, mut c) = (vec![-1i32; 65], vec![0i32; 64]);
                let mut args = [Arg::from(&mut a[..]), Arg::from(&mut b[..]), Arg::from(&mut c[..]), Arg::from(s)];
                let assume = run(&program, device, 1, &mut args);
                assert!(assume.is_none_or(|a| a.no_alias));
                let later = |i: i32| if same && i > 0 { 10 * (i - 1) + 1 } else { 10 * i };
                assert!(c.iter().zip(0..).all(|(&c, i)| c == 10 * i + later(i)), "{device}, {s}: {c:?}\n{make}");
                let stored = if same { &a } else { &b };
                assert!((1..65).all(|i| stored[i] == 10 * (i as i32 - 1) + 1), "{device}, {s}\n{make}");
            }
        }
    }
}

#[test]
fn elements_of_two_types_in_one_buffer() {
    // f = bits of a; the same bytes are then stored as floats and loaded as integers.
    let n = 32;
    let body = [
        spread("a", "ptr<i32>", n),
        spread("f", "ptr<f32>", n),
        spread("c", "ptr<i32>", n),
        iota("i", n),
        splat("half", "0.5", "f32", n),
        at("ap", "a", "i", "i32", "i32", n),
        at("fp", "f", "i", "f32", "i32", n),
        at("cp", "c", "i", "i32", "i32", n),
        load("x", "ap", "i32", n),
        store("half", "fp", "f32", n),
        load("y", "ap", "i32", n),
        op2("z", "addi", "x", "y", "i32", n),
        store("z", "cp", "i32", n),
    ]
    .concat();
    let program = program("%a: tile<ptr<i32>>, %f: tile<ptr<f32>>, %c: tile<ptr<i32>>", &body);
    for device in DEVICES {
        let (mut a, mut c): (Vec<i32>, Vec<i32>) = ((0..33).collect(), vec![0; 32]);
        run(&program, device, 1, &mut [Arg::from(&mut a[..]), Arg::part_of(0, 4..132), Arg::from(&mut c[..])]);
        let half = 0.5f32.to_bits() as i32;
        assert!(c.iter().zip(0..).all(|(&c, i)| c == i + if i == 0 { 0 } else { half }), "{device}: {c:?}");
    }
}
