//! Tiles of 16,777,216 elements.

use super::common::*;
use girih::{Arg, Device, Error, Program, Stage};

const HUGE: u64 = 1 << 24;

/// y = 3 x + x over one tile.
fn elementwise(elem: &str, n: u64) -> Program {
    let (mul, add, three) = if elem.starts_with('f') { ("mulf", "addf", "3.0") } else { ("muli", "addi", "3") };
    let body = [
        spread("x", &format!("ptr<{elem}>"), n),
        spread("y", &format!("ptr<{elem}>"), n),
        iota("i", n),
        splat("three", three, elem, n),
        at("xp", "x", "i", elem, "i32", n),
        at("yp", "y", "i", elem, "i32", n),
        load("u", "xp", elem, n),
        op2("v", mul, "u", "three", elem, n),
        op2("w", add, "v", "u", elem, n),
        store("w", "yp", elem, n),
    ]
    .concat();
    program(&format!("%x: tile<ptr<{elem}>>, %y: tile<ptr<{elem}>>"), &body)
}

fn sum(n: u64) -> Program {
    let body = [
        spread("x", "ptr<i32>", n),
        iota("i", n),
        at("xp", "x", "i", "i32", "i32", n),
        load("u", "xp", "i32", n),
        format!(
            "    %sum = reduce %u dim=0 identities=[0 : i32] : tile<{n}xi32> -> tile<i32>\n    (%e: tile<i32>, %a: tile<i32>) {{\n      \
             %s = addi %e, %a : tile<i32>\n      yield %s : tile<i32>\n    }}\n"
        ),
        "    %t = store_ptr_tko weak %out, %sum : tile<ptr<i32>>, tile<i32> -> token\n".into(),
    ]
    .concat();
    program("%x: tile<ptr<i32>>, %out: tile<ptr<i32>>", &body)
}

#[test]
fn elementwise_on_bytes_and_floats() {
    let program = elementwise("i8", HUGE);
    let x: Vec<u8> = (0..HUGE).map(|i| (i % 251) as u8).collect();
    let mut y = vec![0u8; HUGE as usize];
    run(&program, Device::Cpu, 1, &mut [Arg::from(&x[..]), Arg::from(&mut y[..])]);
    assert!(y.iter().zip(&x).all(|(&y, &x)| y == x.wrapping_mul(4)));

    let program = elementwise("f32", HUGE);
    let x: Vec<f32> = (0..HUGE).map(|i| (i % 1001) as f32).collect();
    let mut y = vec![0f32; HUGE as usize];
    run(&program, Device::Cpu, 1, &mut [Arg::from(&x[..]), Arg::from(&mut y[..])]);
    assert!(y.iter().zip(&x).all(|(&y, &x)| y == 4.0 * x));
}

#[test]
fn a_reduction() {
    let program = sum(HUGE);
    let x: Vec<i32> = (0..HUGE as i32).map(|i| i.wrapping_mul(2654435) >> 7).collect();
    let mut out = [0i32];
    run(&program, Device::Cpu, 1, &mut [Arg::from(&x[..]), Arg::from(&mut out[..])]);
    assert_eq!(out[0], x.iter().fold(0i32, |a, &x| a.wrapping_add(x)));
}

#[test]
fn code_does_not_grow_with_the_tile() {
    let c = |program: &Program| kernel(program, options(Device::Cpu)).ir(Stage::C).unwrap().len();
    for (small, large) in [(elementwise("f32", 1024), elementwise("f32", HUGE)), (sum(1024), sum(HUGE))] {
        let (small, large) = (c(&small), c(&large));
        assert!(large <= small + small / 10, "{small} bytes of C for 1024 elements, {large} for 16M");
    }
}

#[test]
fn too_much_scratch_is_refused_with_the_number() {
    // Tiles that must all live at once: each is stored after everything has been loaded, at places that may overlap.
    let count = 10;
    let mut body = [spread("x", "ptr<i64>", HUGE), iota("i", HUGE)].concat();
    for k in 0..count {
        body += &splat(&format!("o{k}"), &k.to_string(), "i32", HUGE);
        body += &op2(&format!("i{k}"), "addi", "i", &format!("o{k}"), "i32", HUGE);
        body += &at(&format!("p{k}"), "x", &format!("i{k}"), "i64", "i32", HUGE);
        body += &load(&format!("v{k}"), &format!("p{k}"), "i64", HUGE);
    }
    for k in (0..count).rev() {
        body += &store(&format!("v{k}"), &format!("p{}", (k + 3) % count), "i64", HUGE);
    }
    let program = program("%x: tile<ptr<i64>>", &body);
    let mut x = [0i64];
    let error = kernel(&program, options(Device::Cpu)).launch([1; 3], &mut [Arg::from(&mut x[..])]).unwrap_err();
    let Error::Program(diagnostics) = &error else { panic!("{error:?}") };
    let message = &diagnostics[0].message;
    let number = |text: &str| text.split(' ').find_map(|w| w.parse::<u64>().ok());
    assert!(message.contains("scratch") && number(message).is_some_and(|n| n > 1 << 30), "{message}");
}
