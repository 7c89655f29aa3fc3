//! Operations that the specification leaves undefined: defined natively, and on the evaluator no matter until used.

use super::common::*;
use girih::{Arg, Device, Error};
use girih_compiler::base::Code;

/// out[i] = OP(a[i], b[i]) where `mask`.
fn binary(op: &str, elem: &str, n: u64, mask: bool) -> String {
    let (name, rest) = op.split_once(' ').unwrap_or((op, ""));
    let mut body = [
        spread("a", &format!("ptr<{elem}>"), n),
        spread("b", &format!("ptr<{elem}>"), n),
        spread("out", &format!("ptr<{elem}>"), n),
        iota("i", n),
        splat("zero", "0", elem, n),
        at("ap", "a", "i", elem, "i32", n),
        at("bp", "b", "i", elem, "i32", n),
        at("op", "out", "i", elem, "i32", n),
        load("x", "ap", elem, n),
        load("y", "bp", elem, n),
        format!("    %z = {name} %x, %y {rest} : tile<{n}x{elem}>\n"),
    ]
    .concat();
    if mask {
        body += &compare("in", "not_equal", "y", "zero", elem, n);
        body += &store_where("z", "op", "in", elem, n);
    } else {
        body += &store("z", "op", elem, n);
    }
    body
}

const PARAMS: &str = "%a: tile<ptr<i32>>, %b: tile<ptr<i32>>, %out: tile<ptr<i32>>";

#[test]
fn division_by_zero_in_masked_lanes() {
    for op in ["divi signed", "divi unsigned", "remi signed", "remi unsigned"] {
        let program = program(PARAMS, &binary(op, "i32", 64, true));
        let a: Vec<i32> = (0..64).map(|i| 1000 + i).collect();
        let b: Vec<i32> = (0..64).map(|i| i % 3).collect();
        for device in DEVICES {
            let mut out = vec![-1; 64];
            run(&program, device, 1, &mut [Arg::from(&a[..]), Arg::from(&b[..]), Arg::from(&mut out[..])]);
            for i in 0..64 {
                let (x, y) = (a[i], b[i]);
                let want = if y == 0 {
                    -1
                } else if op.starts_with("div") {
                    x / y
                } else {
                    x % y
                };
                assert_eq!(out[i], want, "{device}: {op}, element {i}");
            }
        }
    }
}

#[test]
fn a_padded_load_divides_by_zero_and_is_dropped() {
    // Past the end both operands are padding: 0 / 0.
    let n = 64;
    let body = [
        spread("a", "ptr<i32>", n),
        spread("b", "ptr<i32>", n),
        spread("out", "ptr<i32>", n),
        spread("len", "i32", n),
        iota("i", n),
        splat("zero", "0", "i32", n),
        compare("in", "less_than", "i", "len_n", "i32", n),
        at("ap", "a", "i", "i32", "i32", n),
        at("bp", "b", "i", "i32", "i32", n),
        at("op", "out", "i", "i32", "i32", n),
        load_where("x", "ap", "in", "zero", "i32", n),
        load_where("y", "bp", "in", "zero", "i32", n),
        format!("    %z = divi %x, %y signed : tile<{n}xi32>\n"),
        store_where("z", "op", "in", "i32", n),
    ]
    .concat();
    let program = program(&format!("{PARAMS}, %len: tile<i32>"), &body);
    for device in DEVICES {
        let (a, b, mut out) = ([100i32; 41], [7i32; 41], [0i32; 41]);
        let mut args = [Arg::from(&a[..]), Arg::from(&b[..]), Arg::from(&mut out[..]), Arg::from(41i32)];
        run(&program, device, 1, &mut args);
        assert_eq!(out, [14; 41], "{device}");
    }
}

#[test]
fn an_undefined_element_that_is_not_chosen_is_no_error() {
    let n = 32;
    let body = binary("divi signed", "i32", n, false);
    let (before, last) = body.rsplit_once("    %op_z").unwrap();
    let chosen = [
        before.to_string(),
        compare("safe", "not_equal", "y", "zero", "i32", n),
        format!("    %w = select %safe, %z, %x : tile<{n}xi1>, tile<{n}xi32>\n"),
        format!("    %op_z{}", last.replace("%z", "%w")),
    ]
    .concat();
    let program = program(PARAMS, &chosen);
    for device in DEVICES {
        let (a, b): (Vec<i32>, Vec<i32>) = (0..32).map(|i| (50 + i, i % 2)).unzip();
        let mut out = vec![0; 32];
        run(&program, device, 1, &mut [Arg::from(&a[..]), Arg::from(&b[..]), Arg::from(&mut out[..])]);
        assert_eq!(out, a, "{device}");
    }
}

/// Operation, operands, the result of native code.
const TABLE: &[(&str, i32, i32, i32)] = &[
    ("divi signed", 7, 0, 0),
    ("divi signed", -7, 0, 0),
    ("divi signed", i32::MIN, -1, i32::MIN),
    ("divi unsigned", -1, 0, 0),
    ("divi signed rounding<negative_inf>", 7, 0, 0),
    ("divi signed rounding<positive_inf>", 7, 0, 0),
    ("remi signed", 9, 0, 0),
    ("remi unsigned", 9, 0, 0),
    ("shli", 1, 32, 0),
    ("shli", 1, 1000, 0),
    ("shli", 1, -1, 0),
    ("shri signed", -5, 32, -1),
    ("shri signed", 5, 40, 0),
    ("shri unsigned", -5, 32, 0),
    ("shri unsigned", -5, -1, 0),
];

#[test]
fn native_results_are_defined_and_the_evaluator_names_the_operation() {
    for n in [1u64, 16] {
        for &(op, x, y, want) in TABLE {
            let program = program(PARAMS, &binary(op, "i32", n, false));
            let mut a = vec![12; n as usize];
            let mut b = vec![3; n as usize];
            (a[n as usize - 1], b[n as usize - 1]) = (x, y);
            let mut out = vec![-77; n as usize];
            run(&program, Device::Cpu, 1, &mut [Arg::from(&a[..]), Arg::from(&b[..]), Arg::from(&mut out[..])]);
            assert_eq!(out[n as usize - 1], want, "{op} of {x} and {y}");
            let mut args = [Arg::from(&a[..]), Arg::from(&b[..]), Arg::from(&mut out[..])];
            let trap = trap(&program, options(Device::Eval), 1, &mut args);
            let name = op.split(' ').next().unwrap();
            assert_eq!(trap.code, Code::UndefinedUsed, "{op}: {}", trap.message);
            assert!(trap.message.contains(name), "{op} of {x} and {y}: {}", trap.message);
        }
    }
}

#[test]
fn floats_out_of_range_saturate() {
    let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e9, -3e9, 2147483648.0, -2147483648.0, 1.9];
    let n = values.len() as u64;
    for (sign, want) in [("signed", values.map(|x| x as i32)), ("unsigned", values.map(|x| x as u32 as i32))] {
        let body = [
            spread("a", "ptr<f32>", n),
            spread("out", "ptr<i32>", n),
            iota("i", n),
            at("ap", "a", "i", "f32", "i32", n),
            at("op", "out", "i", "i32", "i32", n),
            load("x", "ap", "f32", n),
            format!("    %z = ftoi %x {sign} : tile<{n}xf32> -> tile<{n}xi32>\n"),
            store("z", "op", "i32", n),
        ]
        .concat();
        let program = program("%a: tile<ptr<f32>>, %out: tile<ptr<i32>>", &body);
        let mut out = [7i32; 8];
        run(&program, Device::Cpu, 1, &mut [Arg::from(&values[..]), Arg::from(&mut out[..])]);
        assert_eq!(out, want, "{sign}");
        let trap = trap(&program, options(Device::Eval), 1, &mut [Arg::from(&values[..]), Arg::from(&mut out[..])]);
        assert!(trap.code == Code::UndefinedUsed && trap.message.contains("ftoi"), "{}", trap.message);
    }
}

#[test]
fn poison_traps_where_it_is_used() {
    let divide = "    %zero = constant <i32: 0> : tile<i32>\n    %bad = divi %n, %zero signed : tile<i32>\n";
    let uses = [
        ("stored", "    %t = store_ptr_tko weak %p, %bad : tile<ptr<i32>>, tile<i32> -> token\n"),
        (
            "an address",
            "    %q = offset %p, %bad : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>\n    %v, %t = load_ptr_tko weak \
          %q : tile<ptr<i32>> -> tile<i32>, token\n",
        ),
        ("a branch", "    %c = cmpi equal %bad, %zero, signed : tile<i32> -> tile<i1>\n    if %c {\n    }\n"),
        ("printed", "    %t = print_tko \"%i\\n\", %bad : tile<i32> -> token\n"),
        (
            "asserted",
            "    %c = cmpi equal %bad, %zero, signed : tile<i32> -> tile<i1>\n    assert %c, \"\" : tile<i1>\n",
        ),
    ];
    for (what, used) in uses {
        let program = program("%p: tile<ptr<i32>>, %n: tile<i32>", &format!("{divide}{used}"));
        let mut memory = [5i32];
        let options = options(Device::Eval).printer(|_, _| ());
        let trap = trap(&program, options, 1, &mut [Arg::from(&mut memory[..]), Arg::from(3i32)]);
        assert_eq!(trap.code, Code::UndefinedUsed, "{what}: {}", trap.message);
        assert!(trap.message.contains("divi"), "{what}: {}", trap.message);
        assert_eq!(memory, [5], "{what}");
        let options = super::common::options(Device::Cpu).printer(|_, _| ());
        let native = kernel(&program, options).launch([1; 3], &mut [Arg::from(&mut memory[..]), Arg::from(3i32)]);
        assert!(!matches!(native, Err(Error::Internal(_))), "{what}");
    }
    // Not used at all.
    let program = program("%p: tile<ptr<i32>>, %n: tile<i32>", divide);
    let mut memory = [5i32];
    run(&program, Device::Eval, 1, &mut [Arg::from(&mut memory[..]), Arg::from(3i32)]);
}
