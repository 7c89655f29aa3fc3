//! Kernels that read and write the same memory with no token between the accesses.

use super::common::*;
use girih::Arg;

#[test]
fn saxpy_through_pointers() {
    let n = 256;
    let body = [
        "    %bx, %by, %bz = get_tile_block_id : tile<i32>\n".into(),
        format!("    %size = constant <i32: {n}> : tile<i32>\n    %start = muli %bx, %size : tile<i32>\n"),
        spread("x", "ptr<f32>", n),
        spread("y", "ptr<f32>", n),
        spread("a", "f32", n),
        spread("len", "i32", n),
        spread("start", "i32", n),
        iota("lane", n),
        op2("i", "addi", "start_n", "lane", "i32", n),
        compare("in", "less_than", "i", "len_n", "i32", n),
        splat("zero", "0.0", "f32", n),
        at("xp", "x", "i", "f32", "i32", n),
        at("yp", "y", "i", "f32", "i32", n),
        load_where("u", "xp", "in", "zero", "f32", n),
        load_where("v", "yp", "in", "zero", "f32", n),
        op2("au", "mulf", "a_n", "u", "f32", n),
        op2("sum", "addf", "au", "v", "f32", n),
        store_where("sum", "yp", "in", "f32", n),
    ]
    .concat();
    let program = program("%x: tile<ptr<f32>>, %y: tile<ptr<f32>>, %a: tile<f32>, %len: tile<i32>", &body);
    for device in DEVICES {
        let x: Vec<f32> = (0..1000).map(|i| i as f32 * 0.37).collect();
        let mut y: Vec<f32> = (0..1000).map(|i| 1000.0 - i as f32).collect();
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2.5 * x + y).collect();
        let mut args = [Arg::from(&x[..]), Arg::from(&mut y[..]), Arg::from(2.5f32), Arg::from(1000i32)];
        run(&program, device, 4, &mut args);
        assert_eq!(y, expected, "{device}");
        // x = y: y becomes 3.5 times itself.
        let mut y = x.clone();
        let expected: Vec<f32> = x.iter().map(|x| 2.5 * x + x).collect();
        run(&program, device, 4, &mut [Arg::from(&mut y[..]), Arg::same_as(0), Arg::from(2.5f32), Arg::from(1000i32)]);
        assert_eq!(y, expected, "{device}, in place twice");
    }
}

#[test]
fn saxpy_through_views() {
    let text = r#"cuda_tile.module @m {
  entry @k(%X: tile<ptr<f32>>, %Y: tile<ptr<f32>>, %alpha: tile<f32>, %M: tile<i32>, %N: tile<i32>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %zero = constant <i32: 0> : tile<i32>
    %a_1 = reshape %alpha : tile<f32> -> tile<1x1xf32>
    %a = broadcast %a_1 : tile<1x1xf32> -> tile<8x32xf32>
    %xs = make_tensor_view %X, shape = [%M, %N], strides = [%N, 1] : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
    %ys = make_tensor_view %Y, shape = [%M, %N], strides = [%N, 1] : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
    %xt = make_partition_view %xs : partition_view<tile=(8x32), tensor_view<?x?xf32, strides=[?,1]>>
    %yt = make_partition_view %ys : partition_view<tile=(8x32), tensor_view<?x?xf32, strides=[?,1]>>
    %x, %t0 = load_view_tko weak %xt[%bx, %zero]
      : partition_view<tile=(8x32), tensor_view<?x?xf32, strides=[?,1]>>, tile<i32> -> tile<8x32xf32>, token
    %y, %t1 = load_view_tko weak %yt[%bx, %zero]
      : partition_view<tile=(8x32), tensor_view<?x?xf32, strides=[?,1]>>, tile<i32> -> tile<8x32xf32>, token
    %ax = mulf %a, %x : tile<8x32xf32>
    %sum = addf %ax, %y : tile<8x32xf32>
    %t2 = store_view_tko weak %sum, %yt[%bx, %zero]
      : tile<8x32xf32>, partition_view<tile=(8x32), tensor_view<?x?xf32, strides=[?,1]>>, tile<i32> -> token
  }
}
"#;
    let program = parsed(text);
    let (rows, columns) = (19, 27);
    for device in DEVICES {
        let x: Vec<f32> = (0..rows * columns).map(|i| i as f32 * 0.75).collect();
        let mut y: Vec<f32> = (0..rows * columns).map(|i| -(i as f32)).collect();
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 3.0 * x + y).collect();
        let mut args = [Arg::from(&x[..]), Arg::from(&mut y[..]), Arg::from(3f32), Arg::from(rows), Arg::from(columns)];
        run(&program, device, 3, &mut args);
        assert_eq!(y, expected, "{device}");
    }
}

/// y[to(i)] = y[from(i)] for a whole tile at once.
fn moves(n: u64, from: &str, to: &str) -> String {
    [
        spread("y", "ptr<i32>", n),
        iota("i", n),
        splat("one", "1", "i32", n),
        splat("last", &(n - 1).to_string(), "i32", n),
        op2("up", "addi", "i", "one", "i32", n),
        op2("down", "subi", "last", "i", "i32", n),
        at("src", "y", from, "i32", "i32", n),
        at("dst", "y", to, "i32", "i32", n),
        load("x", "src", "i32", n),
        store("x", "dst", "i32", n),
    ]
    .concat()
}

#[test]
fn a_tile_is_loaded_whole_before_it_is_stored() {
    for n in [1u64, 4, 64, 1024] {
        let index = |name: &str, i: usize| match name {
            "i" => i,
            "up" => i + 1,
            _ => n as usize - 1 - i,
        };
        for (from, to) in [("i", "up"), ("up", "i"), ("i", "down"), ("down", "i"), ("down", "up"), ("i", "i")] {
            let program = program("%y: tile<ptr<i32>>", &moves(n, from, to));
            let start: Vec<i32> = (0..n as i32 + 1).map(|i| 7 * i + 3).collect();
            let mut expected = start.clone();
            for i in 0..n as usize {
                expected[index(to, i)] = start[index(from, i)];
            }
            for device in DEVICES {
                let mut y = start.clone();
                run(&program, device, 1, &mut [Arg::from(&mut y[..])]);
                assert_eq!(y, expected, "{device}: {n} elements from {from} to {to}");
            }
        }
    }
}

#[test]
fn repeated_shifts_in_a_loop() {
    let n = 64;
    let body = moves(n, "i", "up");
    let (before, inside) = body.split_once("    %x, ").unwrap();
    let body = format!(
        "{before}    %c0 = constant <i32: 0> : tile<i32>\n    %c1 = constant <i32: 1> : tile<i32>\n    %c5 = constant <i32: 5> : \
         tile<i32>\n    for %k in (%c0 to %c5, step %c1) : tile<i32> {{\n    %x, {inside}    }}\n"
    );
    let program = program("%y: tile<ptr<i32>>", &body);
    for device in DEVICES {
        let mut y: Vec<i32> = (0..65).collect();
        run(&program, device, 1, &mut [Arg::from(&mut y[..])]);
        assert!(y.iter().zip(0..).all(|(&x, i)| x == (i - 5).max(0)), "{device}: {y:?}");
    }
}

#[test]
fn a_transpose_in_place() {
    let text = r#"cuda_tile.module @m {
  entry @k(%Y: tile<ptr<i32>>) {
    %zero = constant <i32: 0> : tile<i32>
    %all = make_tensor_view %Y, shape = [32, 32], strides = [32, 1] : tensor_view<32x32xi32, strides=[32,1]>
    %tiles = make_partition_view %all : partition_view<tile=(32x32), tensor_view<32x32xi32, strides=[32,1]>>
    %x, %t0 = load_view_tko weak %tiles[%zero, %zero]
      : partition_view<tile=(32x32), tensor_view<32x32xi32, strides=[32,1]>>, tile<i32> -> tile<32x32xi32>, token
    %turned = permute %x [1, 0] : tile<32x32xi32> -> tile<32x32xi32>
    %t1 = store_view_tko weak %turned, %tiles[%zero, %zero]
      : tile<32x32xi32>, partition_view<tile=(32x32), tensor_view<32x32xi32, strides=[32,1]>>, tile<i32> -> token
  }
}
"#;
    let program = parsed(text);
    for device in DEVICES {
        let mut y: Vec<i32> = (0..1024).collect();
        run(&program, device, 1, &mut [Arg::from(&mut y[..])]);
        assert!(y.iter().zip(0..).all(|(&x, i)| x == i % 32 * 32 + i / 32), "{device}");
    }
}

#[test]
fn atomics_stand_where_they_are_written() {
    // y = 3; old = atomic add y, 4; z = y; y = 100: each sees the effects before it.
    let n = 16;
    let body = [
        spread("y", "ptr<i32>", n),
        spread("out", "ptr<i32>", n),
        iota("i", n),
        splat("three", "3", "i32", n),
        splat("four", "4", "i32", n),
        splat("hundred", "100", "i32", n),
        splat("ten", "10", "i32", n),
        at("yp", "y", "i", "i32", "i32", n),
        at("op", "out", "i", "i32", "i32", n),
        store("three", "yp", "i32", n),
        format!(
            "    %old, %old_t = atomic_rmw_tko relaxed device %yp, add, %four : tile<{n}xptr<i32>>, tile<{n}xi32> -> tile<{n}xi32>, token\n"
        ),
        load("z", "yp", "i32", n),
        store("hundred", "yp", "i32", n),
        op2("tens", "muli", "z", "ten", "i32", n),
        op2("both", "addi", "tens", "old", "i32", n),
        store("both", "op", "i32", n),
    ]
    .concat();
    let program = program("%y: tile<ptr<i32>>, %out: tile<ptr<i32>>", &body);
    for device in DEVICES {
        let (mut y, mut out) = ([1i32; 16], [0i32; 16]);
        run(&program, device, 1, &mut [Arg::from(&mut y[..]), Arg::from(&mut out[..])]);
        assert_eq!((y, out), ([100; 16], [73; 16]), "{device}");
    }
}
