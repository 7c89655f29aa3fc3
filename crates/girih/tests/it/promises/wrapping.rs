//! i32 indices that wrap: the general version runs; where nothing wraps, the fast one.

use super::common::*;
use girih::{Arg, Device};

/// out[i] = block + 1 where 0 <= i < len, with i = block * size + lane in i32.
fn blocks(n: u64) -> String {
    [
        "    %bx, %by, %bz = get_tile_block_id : tile<i32>\n    %start = muli %bx, %size : tile<i32>\n".into(),
        "    %c1 = constant <i32: 1> : tile<i32>\n    %mark = addi %bx, %c1 : tile<i32>\n".into(),
        spread("out", "ptr<i32>", n),
        spread("len", "i32", n),
        spread("start", "i32", n),
        spread("mark", "i32", n),
        iota("lane", n),
        splat("zero", "0", "i32", n),
        op2("i", "addi", "start_n", "lane", "i32", n),
        compare("below", "less_than", "i", "len_n", "i32", n),
        compare("above", "greater_than_or_equal", "i", "zero", "i32", n),
        op2("in", "andi", "below", "above", "i1", n),
        at("p", "out", "i", "i32", "i32", n),
        store_where("mark_n", "p", "in", "i32", n),
    ]
    .concat()
}

#[test]
fn a_grid_that_wraps_around() {
    let n = 64;
    let program = program("%out: tile<ptr<i32>>, %size: tile<i32>, %len: tile<i32>", &blocks(n));
    // The size of a block, the grid, and whether the index wraps.
    for (size, grid, wraps) in
        [(64i32, 16u32, false), ((1 << 29) + 64, 9, true), (-64, 4, false), (i32::MIN + 512, 3, true)]
    {
        let mut expected = vec![0i32; 1024];
        for b in 0..grid as i32 {
            for lane in 0..64 {
                let i = b.wrapping_mul(size).wrapping_add(lane);
                if (0..1024).contains(&i) {
                    expected[i as usize] = b + 1;
                }
            }
        }
        for device in DEVICES {
            let mut out = vec![0i32; 1024];
            let assume =
                run(&program, device, grid, &mut [Arg::from(&mut out[..]), Arg::from(size), Arg::from(1024i32)]);
            assert_eq!(out, expected, "{device}: size {size}, grid {grid}");
            assert!(assume.is_none_or(|a| a.no_wrap != wraps), "{size}, {grid}: {assume:?}");
        }
    }
}

/// out[lane] = 1 where lane * s < len, the product in i32.
#[test]
fn a_mask_that_wraps() {
    let n = 64;
    let body = [
        spread("out", "ptr<i32>", n),
        spread("len", "i32", n),
        spread("s", "i32", n),
        iota("lane", n),
        splat("one", "1", "i32", n),
        op2("i", "muli", "lane", "s_n", "i32", n),
        compare("in", "less_than", "i", "len_n", "i32", n),
        at("p", "out", "lane", "i32", "i32", n),
        store_where("one", "p", "in", "i32", n),
    ]
    .concat();
    let program = program("%out: tile<ptr<i32>>, %s: tile<i32>, %len: tile<i32>", &body);
    for (s, wraps) in [(3i32, false), ((1 << 26) + 1, true), (-(1 << 27), true), (i32::MAX, true), (1 << 24, false)] {
        for device in DEVICES {
            let mut out = vec![0i32; 64];
            let assume = run(&program, device, 1, &mut [Arg::from(&mut out[..]), Arg::from(s), Arg::from(100i32)]);
            for (lane, &x) in out.iter().enumerate() {
                assert_eq!(x == 1, (lane as i32).wrapping_mul(s) < 100, "{device}: {s}, lane {lane}");
            }
            assert!(assume.is_none_or(|a| a.no_wrap != wraps), "{s}: {assume:?}");
        }
    }
}

/// The index itself wraps to negative and back: i = lane * s + back, in range again for every lane.
#[test]
fn an_index_that_wraps_and_returns() {
    let n = 64;
    let body = [
        spread("out", "ptr<i32>", n),
        spread("far", "i32", n),
        spread("back", "i32", n),
        iota("lane", n),
        op2("up", "addi", "lane", "far_n", "i32", n),
        op2("i", "addi", "up", "back_n", "i32", n),
        at("p", "out", "i", "i32", "i32", n),
        store("up", "p", "i32", n),
    ]
    .concat();
    let program = program("%out: tile<ptr<i32>>, %far: tile<i32>, %back: tile<i32>", &body);
    for (far, back) in [(5i32, -5i32), (i32::MAX - 10, 13 - i32::MAX), (i32::MIN, i32::MIN)] {
        let offset = far.wrapping_add(back);
        assert!((0..=64).contains(&offset), "{offset}");
        for device in DEVICES {
            let mut out = vec![0i32; 128];
            run(&program, device, 1, &mut [Arg::from(&mut out[..]), Arg::from(far), Arg::from(back)]);
            for lane in 0..64i32 {
                assert_eq!(out[(lane + offset) as usize], lane.wrapping_add(far), "{device}: {far}, lane {lane}");
            }
        }
    }
}

/// Narrow and unsigned: i8 arithmetic that wraps, widened both ways, as an index.
#[test]
fn narrow_indices_wrap_at_their_width() {
    let n = 64;
    for (sign, how) in [("signed", true), ("unsigned", false)] {
        let body = [
            spread("out", "ptr<i32>", n),
            spread("s", "i8", n),
            iota("lane", n),
            format!("    %narrow = trunci %lane : tile<{n}xi32> -> tile<{n}xi8>\n"),
            op2("i8", "addi", "narrow", "s_n", "i8", n),
            format!("    %i = exti %i8 {sign} : tile<{n}xi8> -> tile<{n}xi32>\n"),
            splat("middle", "128", "i32", n),
            op2("at", "addi", "i", "middle", "i32", n),
            at("p", "out", "at", "i32", "i32", n),
            store("lane", "p", "i32", n),
        ]
        .concat();
        let program = program("%out: tile<ptr<i32>>, %s: tile<i8>", &body);
        for s in [0i8, 60, 100, 127, -3, -128] {
            let mut expected = vec![-1i32; 512];
            for lane in 0..64i32 {
                let i = (lane as i8).wrapping_add(s);
                expected[(if how { i32::from(i) } else { i32::from(i as u8) } + 128) as usize] = lane;
            }
            for device in DEVICES {
                let mut out = vec![-1i32; 512];
                run(&program, device, 1, &mut [Arg::from(&mut out[..]), Arg::from(s)]);
                assert_eq!(out, expected, "{device}: {s} {sign}");
            }
        }
    }
}

/// A stride of a view times its extent passes 32 bits: index arithmetic of views is exact.
#[test]
fn views_do_not_wrap() {
    let text = r#"cuda_tile.module @m {
  entry @k(%Y: tile<ptr<i32>>, %i: tile<i32>, %s: tile<i32>) {
    %all = make_tensor_view %Y, shape = [1073741824, 4], strides = [%s, 1] : tile<i32> -> tensor_view<1073741824x4xi32, strides=[?,1]>
    %tiles = make_partition_view %all : partition_view<tile=(1x4), tensor_view<1073741824x4xi32, strides=[?,1]>>
    %c0 = constant <i32: 0> : tile<i32>
    %x, %t0 = load_view_tko weak %tiles[%i, %c0]
      : partition_view<tile=(1x4), tensor_view<1073741824x4xi32, strides=[?,1]>>, tile<i32> -> tile<1x4xi32>, token
    %y = addi %x, %x : tile<1x4xi32>
    %t1 = store_view_tko weak %y, %tiles[%c0, %c0]
      : tile<1x4xi32>, partition_view<tile=(1x4), tensor_view<1073741824x4xi32, strides=[?,1]>>, tile<i32> -> token
  }
}
"#;
    let program = parsed(text);
    // Row 2^16 at stride 2^16 would be row 0 again, were the product taken in 32 bits; with checks on, it is found outside.
    let mut y = vec![1i32, 2, 3, 4];
    let trap = trap(
        &program,
        options(Device::Cpu).check(true),
        1,
        &mut [Arg::from(&mut y[..]), Arg::from(1i32 << 16), Arg::from(1i32 << 16)],
    );
    assert_eq!(trap.op, "load_view_tko");
    assert_eq!(y, [1, 2, 3, 4]);
}

/// A `for` over numbers read as unsigned passes the largest signed one.
#[test]
fn unsigned_loops() {
    let body = "    %c0 = constant <i32: 0> : tile<i32>\n    %c1 = constant <i32: 1> : tile<i32>\n    %last = for unsigned %k in (%from to \
                %to, step %s) : tile<i32> iter_values(%c = %c0) -> (tile<i32>) {\n      %d = addi %c, %k : tile<i32>\n      continue \
                %d : tile<i32>\n    }\n    %t = store_ptr_tko weak %x, %last : tile<ptr<i32>>, tile<i32> -> token\n";
    let program = program("%x: tile<ptr<i32>>, %from: tile<i32>, %to: tile<i32>, %s: tile<i32>", body);
    for (from, to, step) in [
        (0u32, u32::MAX, 1u32 << 30),
        (0x7fff_fff0, 0x8000_0010, 5),
        (u32::MAX - 7, u32::MAX, 3),
        (5, 3, 1),
        (0, u32::MAX, u32::MAX),
    ] {
        let (mut k, mut want) = (u64::from(from), 0u32);
        while k < u64::from(to) {
            want = want.wrapping_add(k as u32);
            k += u64::from(step);
        }
        for device in DEVICES {
            let mut x = [0u32];
            let mut args = [Arg::from(&mut x[..]), Arg::from(from), Arg::from(to), Arg::from(step)];
            run(&program, device, 1, &mut args);
            assert_eq!(x, [want], "{device}: {from} to {to} by {step}");
        }
    }
}
