//! `--check`: every access of native code outside its memory is caught, and nothing else is.

use super::common::*;
use girih::{Arg, Device, Program};
use girih_compiler::base::Code;
use girih_compiler::base::launch::Trap;

fn checked() -> girih::Options {
    options(Device::Cpu).check(true)
}

#[track_caller]
fn expect(trap: &Trap, op: &str, block: u32, says: &[&str]) {
    assert_eq!((trap.code, trap.op.as_str(), trap.block), (Code::OutOfBounds, op, [block, 0, 0]), "{}", trap.message);
    for text in says {
        assert!(trap.message.contains(text), "no {text:?} in {:?}", trap.message);
    }
}

/// out[b * n + i + shift] = in[b * n + i] where the index is below `len`.
fn copy(n: u64) -> Program {
    let body = [
        "    %bx, %by, %bz = get_tile_block_id : tile<i32>\n".into(),
        format!("    %size = constant <i32: {n}> : tile<i32>\n    %start = muli %bx, %size : tile<i32>\n"),
        spread("x", "ptr<f32>", n),
        spread("y", "ptr<f32>", n),
        spread("shift", "i32", n),
        spread("len", "i32", n),
        spread("start", "i32", n),
        iota("lane", n),
        op2("i", "addi", "start_n", "lane", "i32", n),
        op2("j", "addi", "i", "shift_n", "i32", n),
        compare("in", "less_than", "i", "len_n", "i32", n),
        splat("zero", "0.0", "f32", n),
        at("xp", "x", "i", "f32", "i32", n),
        at("yp", "y", "j", "f32", "i32", n),
        load_where("u", "xp", "in", "zero", "f32", n),
        store_where("u", "yp", "in", "f32", n),
    ]
    .concat();
    program("%x: tile<ptr<f32>>, %y: tile<ptr<f32>>, %shift: tile<i32>, %len: tile<i32>", &body)
}

#[test]
fn arguments_masked_and_vectorised() {
    for n in [1u64, 4, 64] {
        let program = copy(n);
        let grid = (128 / n) as u32;
        let launch = |xs: usize, ys: usize, shift: i32, len: i32| {
            let (x, mut y) = ((0..xs).map(|i| i as f32).collect::<Vec<_>>(), vec![-1f32; ys]);
            let mut args = [Arg::from(&x[..]), Arg::from(&mut y[..]), Arg::from(shift), Arg::from(len)];
            let result = kernel(&program, checked()).launch([grid, 1, 1], &mut args);
            (result, y)
        };
        let trapped = |xs: usize, ys: usize, shift: i32, len: i32| match launch(xs, ys, shift, len).0 {
            Err(girih::Error::Trap(trap)) => trap,
            other => panic!("tiles of {n}: {other:?}"),
        };
        // Masked-off lanes touch nothing: no false alarm.
        let (result, y) = launch(101, 101, 0, 101);
        result.unwrap();
        assert!(y.iter().enumerate().all(|(i, &y)| y == i as f32), "tiles of {n}");
        let (result, y) = launch(100, 103, 3, 100);
        result.unwrap();
        assert!(y[..3] == [-1.0; 3] && y[3..].iter().enumerate().all(|(i, &y)| y == i as f32), "tiles of {n}");
        // One element too many, read and written; below the start.
        let block = (100 / n) as u32;
        expect(&trapped(100, 128, 0, 101), "load_ptr_tko", block, &["reads index 100 of `x`", "100 elements"]);
        expect(&trapped(128, 100, 0, 101), "store_ptr_tko", block, &["writes index 100 of `y`", "100 elements"]);
        expect(&trapped(128, 128, -1, 128), "store_ptr_tko", 0, &["writes index -1 of `y`"]);
        expect(&trapped(128, 128, i32::MIN, 1), "store_ptr_tko", 0, &["writes"]);
    }
}

#[test]
fn the_evaluator_agrees() {
    let program = copy(64);
    let (mut x, mut y) = ([1f32; 100], [0f32; 128]);
    let mut args = [Arg::from(&mut x[..]), Arg::from(&mut y[..]), Arg::from(0i32), Arg::from(101i32)];
    let trap = trap(&program, options(Device::Eval), 2, &mut args);
    expect(&trap, "load_ptr_tko", 1, &[]);
}

#[test]
fn views_through_arguments() {
    let text = r#"cuda_tile.module @m {
  entry @k(%X: tile<ptr<i32>>, %Y: tile<ptr<i32>>, %M: tile<i32>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %zero = constant <i32: 0> : tile<i32>
    %xs = make_tensor_view %X, shape = [%M, 20], strides = [20, 1] : tile<i32> -> tensor_view<?x20xi32, strides=[20,1]>
    %ys = make_tensor_view %Y, shape = [%M, 20], strides = [20, 1] : tile<i32> -> tensor_view<?x20xi32, strides=[20,1]>
    %xt = make_partition_view %xs : partition_view<tile=(4x32), tensor_view<?x20xi32, strides=[20,1]>>
    %yt = make_partition_view %ys : partition_view<tile=(4x32), tensor_view<?x20xi32, strides=[20,1]>>
    %x, %t0 = load_view_tko weak %xt[%bx, %zero]
      : partition_view<tile=(4x32), tensor_view<?x20xi32, strides=[20,1]>>, tile<i32> -> tile<4x32xi32>, token
    %t2 = store_view_tko weak %x, %yt[%bx, %zero]
      : tile<4x32xi32>, partition_view<tile=(4x32), tensor_view<?x20xi32, strides=[20,1]>>, tile<i32> -> token
  }
}
"#;
    let program = parsed(text);
    let x: Vec<i32> = (0..200).collect();
    let mut y = vec![0i32; 200];
    let mut args = [Arg::from(&x[..]), Arg::from(&mut y[..]), Arg::from(10i32)];
    kernel(&program, checked()).launch([3, 1, 1], &mut args).unwrap();
    assert_eq!(x, y);
    let mut args = [Arg::from(&x[..]), Arg::from(&mut y[..199]), Arg::from(10i32)];
    expect(&trap(&program, checked(), 3, &mut args), "store_view_tko", 2, &["writes index 199 of `Y`"]);
    let mut args = [Arg::from(&x[..]), Arg::from(&mut y[..]), Arg::from(11i32)];
    expect(&trap(&program, checked(), 3, &mut args), "load_view_tko", 2, &["reads index 200 of `X`"]);
}

#[test]
fn gathers_are_checked_lane_by_lane() {
    let n = 32;
    let body = [
        spread("x", "ptr<i32>", n),
        spread("where", "ptr<i32>", n),
        spread("y", "ptr<i32>", n),
        iota("i", n),
        at("wp", "where", "i", "i32", "i32", n),
        load("w", "wp", "i32", n),
        at("xp", "x", "w", "i32", "i32", n),
        load("v", "xp", "i32", n),
        at("yp", "y", "i", "i32", "i32", n),
        store("v", "yp", "i32", n),
    ]
    .concat();
    let program = program("%x: tile<ptr<i32>>, %where: tile<ptr<i32>>, %y: tile<ptr<i32>>", &body);
    let x: Vec<i32> = (0..50).map(|i| i * 3).collect();
    let mut places: Vec<i32> = (0..32).map(|i| (i * 7) % 50).collect();
    let mut y = [0i32; 32];
    let mut args = [Arg::from(&x[..]), Arg::from(&places[..]), Arg::from(&mut y[..])];
    kernel(&program, checked()).launch([1; 3], &mut args).unwrap();
    assert!(y.iter().zip(&places).all(|(&y, &p)| y == 3 * p));
    for (at, bad) in [(0usize, 50i32), (17, -1), (31, 1 << 20)] {
        let good = std::mem::replace(&mut places[at], bad);
        let mut args = [Arg::from(&x[..]), Arg::from(&places[..]), Arg::from(&mut y[..])];
        expect(&trap(&program, checked(), 1, &mut args), "load_ptr_tko", 0, &["reads", &format!("index {bad} of `x`")]);
        places[at] = good;
    }
}

#[test]
fn globals_and_allocas() {
    let text = |size: u64| {
        let alloca = format!("%p = experimental$alloca num_elem = {size}, alignment = 16 : tile<ptr<i32>>\n");
        let body = [
            spread("p", "ptr<i32>", 16),
            spread("y", "ptr<i32>", 16),
            spread("off", "i32", 16),
            iota("i", 16),
            op2("j", "addi", "i", "off_n", "i32", 16),
            at("pp", "p", "j", "i32", "i32", 16),
            at("yp", "y", "i", "i32", "i32", 16),
            store("i", "pp", "i32", 16),
            load("v", "pp", "i32", 16),
            store("v", "yp", "i32", 16),
        ]
        .concat();
        let values: Vec<String> = (0..size).map(|i| i.to_string()).collect();
        let global = format!("  global @g <i32: [{}]> : tile<{size}xi32>\n", values.join(", "));
        [
            format!(
                "cuda_tile.module @m {{\n  entry @k(%y: tile<ptr<i32>>, %off: tile<i32>) {{\n    {alloca}{body}  }}\n}}\n"
            ),
            format!(
                "cuda_tile.module @m {{\n{global}  entry @k(%y: tile<ptr<i32>>, %off: tile<i32>) {{\n    %p = get_global @g : \
                 tile<ptr<i32>>\n{body}  }}\n}}\n"
            ),
        ]
    };
    let said = ["outside of the block's memory `p`, which holds 32 elements", "writes"];
    for (text, said) in text(32).into_iter().zip(said) {
        let program = parsed(&text);
        for offset in [0i32, 5, 16] {
            let mut y = [0i32; 16];
            let mut args = [Arg::from(&mut y[..]), Arg::from(offset)];
            kernel(&program, checked()).launch([1; 3], &mut args).unwrap();
            assert!(y.iter().zip(0..).all(|(&y, i)| y == i));
        }
        for offset in [-1i32, 17, 100_000_000] {
            let mut y = [0i32; 16];
            let mut args = [Arg::from(&mut y[..]), Arg::from(offset)];
            expect(&trap(&program, checked(), 1, &mut args), "store_ptr_tko", 0, &[said]);
            assert_eq!(y, [0; 16]);
        }
    }
}

#[test]
fn pointers_loaded_from_memory() {
    let body = [
        "    %address, %address_t = load_ptr_tko weak %table : tile<ptr<i64>> -> tile<i64>, token\n".into(),
        "    %p = int_to_ptr %address : tile<i64> -> tile<ptr<i32>>\n".into(),
        spread("p", "ptr<i32>", 32),
        spread("y", "ptr<i32>", 32),
        iota("i", 32),
        at("pp", "p", "i", "i32", "i32", 32),
        at("yp", "y", "i", "i32", "i32", 32),
        load("v", "pp", "i32", 32),
        store("v", "yp", "i32", 32),
    ]
    .concat();
    let program = program("%a: tile<ptr<i32>>, %table: tile<ptr<i64>>, %y: tile<ptr<i32>>", &body);
    let (mut a, mut y): (Vec<i32>, Vec<i32>) = ((0..32).collect(), vec![0; 32]);
    let mut args = [Arg::from(&mut a[..]), Arg::pointers(&[0]), Arg::from(&mut y[..])];
    kernel(&program, checked()).launch([1; 3], &mut args).unwrap();
    assert_eq!(a, y);
    let mut args = [Arg::from(&mut a[..31]), Arg::pointers(&[0]), Arg::from(&mut y[..])];
    expect(&trap(&program, checked(), 1, &mut args), "load_ptr_tko", 0, &["reads"]);
    let wild = [0x10i64];
    let mut args = [Arg::from(&mut a[..]), Arg::from(&wild[..]), Arg::from(&mut y[..])];
    expect(&trap(&program, checked(), 1, &mut args), "load_ptr_tko", 0, &["0x10"]);
}

#[test]
fn atomics() {
    let body = "    %c1 = constant <i32: 1> : tile<i32>\n    %p = offset %x, %at : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>\n    \
                %old, %t = atomic_rmw_tko relaxed device %p, add, %c1 : tile<ptr<i32>>, tile<i32> -> tile<i32>, token\n";
    let program = program("%x: tile<ptr<i32>>, %at: tile<i32>", body);
    let mut x = [0i32; 4];
    kernel(&program, checked()).launch([5, 1, 1], &mut [Arg::from(&mut x[..]), Arg::from(3i32)]).unwrap();
    assert_eq!(x, [0, 0, 0, 5]);
    for at in [4i32, -1] {
        let trap = trap(&program, checked(), 1, &mut [Arg::from(&mut x[..]), Arg::from(at)]);
        expect(&trap, "atomic_rmw_tko", 0, &[&format!("index {at} of `x`")]);
    }
    assert_eq!(x, [0, 0, 0, 5]);
}
