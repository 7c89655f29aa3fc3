//! Failing assertions and loops that do not advance, on every device.

use super::common::*;
use girih::{Arg, Device};
use girih_compiler::base::Code;

fn each(mut test: impl FnMut(girih::Options, &str)) {
    for (device, check) in [(Device::Cpu, false), (Device::Cpu, true), (Device::Eval, false)] {
        test(options(device).check(check), &format!("{device}, check {check}"));
    }
}

#[test]
fn a_failing_assertion_names_message_block_and_element() {
    let n = 64;
    let body = [
        "    %bx, %by, %bz = get_tile_block_id : tile<i32>\n".into(),
        format!("    %size = constant <i32: {n}> : tile<i32>\n    %start = muli %bx, %size : tile<i32>\n"),
        spread("x", "ptr<i32>", n),
        spread("start", "i32", n),
        iota("lane", n),
        splat("most", "100", "i32", n),
        op2("i", "addi", "start_n", "lane", "i32", n),
        at("p", "x", "i", "i32", "i32", n),
        load("v", "p", "i32", n),
        compare("small", "less_than", "v", "most", "i32", n),
        format!("    assert %small, \"the value is too large\" : tile<{n}xi1>\n"),
        splat("none", "0", "i32", n),
        store("none", "p", "i32", n),
    ]
    .concat();
    let program = program("%x: tile<ptr<i32>>", &body);
    each(|options, what| {
        let mut x = [7i32; 192];
        x[64 + 37] = 100;
        let trap = trap(&program, options, 3, &mut [Arg::from(&mut x[..])]);
        assert_eq!((trap.code, trap.op.as_str(), trap.block), (Code::AssertFailed, "assert", [1, 0, 0]), "{what}");
        assert!(trap.message.contains("the value is too large"), "{what}: {}", trap.message);
        assert_eq!(trap.element, Some(vec![37]), "{what}");
        assert!(x[64..128].contains(&7), "{what}: nothing of the block is stored after its assertion failed");
    });
    // All true.
    each(|options, what| {
        let mut x = [7i32; 192];
        kernel(&program, options).launch([3, 1, 1], &mut [Arg::from(&mut x[..])]).unwrap();
        assert_eq!(x, [0; 192], "{what}");
    });
}

#[test]
fn a_step_that_is_not_positive() {
    let body = "    %c0 = constant <i32: 0> : tile<i32>\n    %c9 = constant <i32: 9> : tile<i32>\n    for %k in (%c0 to %c9, step \
                %s) : tile<i32> {\n      %v, %t = load_ptr_tko weak %x : tile<ptr<i32>> -> tile<i32>, token\n      %w = addi %v, \
                %k : tile<i32>\n      %u = store_ptr_tko weak %x, %w token=%t : tile<ptr<i32>>, tile<i32> -> token\n    }\n";
    let program = program("%x: tile<ptr<i32>>, %s: tile<i32>", body);
    for step in [0i32, -1, i32::MIN] {
        each(|options, what| {
            let mut x = [0i32];
            let trap = trap(&program, options, 1, &mut [Arg::from(&mut x[..]), Arg::from(step)]);
            assert_eq!((trap.code, trap.op.as_str()), (Code::StepNotPositive, "for"), "{what}");
            assert!(trap.message.contains("step"), "{what}: {}", trap.message);
            assert_eq!(x, [0], "{what}");
        });
    }
    for (step, sum) in [(1i32, 36), (4, 12), (100, 0), (i32::MAX, 0)] {
        each(|options, what| {
            let mut x = [0i32];
            kernel(&program, options).launch([1; 3], &mut [Arg::from(&mut x[..]), Arg::from(step)]).unwrap();
            assert_eq!(x, [sum], "{what}: step {step}");
        });
    }
}

#[test]
fn a_loop_up_to_the_largest_number_ends() {
    let body = "    %most = constant <i32: 2147483647> : tile<i32>\n    %from = constant <i32: 2147483640> : tile<i32>\n    %c0 = \
                constant <i32: 0> : tile<i32>\n    %c1 = constant <i32: 1> : tile<i32>\n    %n = for %k in (%from to %most, step %s) : tile<i32> \
                iter_values(%c = %c0) -> (tile<i32>) {\n      %d = addi %c, %c1 : tile<i32>\n      continue %d : tile<i32>\n    }\n    %t = \
                store_ptr_tko weak %x, %n : tile<ptr<i32>>, tile<i32> -> token\n";
    let program = program("%x: tile<ptr<i32>>, %s: tile<i32>", body);
    for (step, count) in [(1i32, 7), (5, 2), (2147483647, 1)] {
        each(|options, what| {
            let mut x = [0i32];
            kernel(&program, options).launch([1; 3], &mut [Arg::from(&mut x[..]), Arg::from(step)]).unwrap();
            assert_eq!(x, [count], "{what}: step {step}");
        });
    }
}

#[test]
fn assertions_on_tiles_of_two_dimensions_and_padding() {
    // Elements past the edge read as -1, which fails; a row further in reads 1000.
    let text = |limit: i32, pad: &str| {
        format!(
            r#"cuda_tile.module @m {{
  entry @k(%X: tile<ptr<i32>>, %M: tile<i32>) {{
    %zero = constant <i32: 0> : tile<i32>
    %low = constant <i32: {limit}> : tile<8x16xi32>
    %all = make_tensor_view %X, shape = [%M, 11], strides = [11, 1] : tile<i32> -> tensor_view<?x11xi32, strides=[11,1]>
    %tiles = make_partition_view %all : partition_view<tile=(8x16), {pad}tensor_view<?x11xi32, strides=[11,1]>>
    %x, %t0 = load_view_tko weak %tiles[%zero, %zero]
      : partition_view<tile=(8x16), {pad}tensor_view<?x11xi32, strides=[11,1]>>, tile<i32> -> tile<8x16xi32>, token
    %ok = cmpi greater_than %x, %low, signed : tile<8x16xi32> -> tile<8x16xi1>
    assert %ok, "positive" : tile<8x16xi1>
  }}
}}
"#
        )
    };
    for (limit, pad, bad, element) in [
        (0, "padding_value = zero, ", None, [0u64, 11]),
        (-1, "padding_value = zero, ", None, [9, 9]),
        (-1, "padding_value = zero, ", Some(3 * 11 + 7), [3, 7]),
        (-1, "padding_value = zero, ", Some(4 * 11), [4, 0]),
    ] {
        let program = parsed(&text(limit, pad));
        each(|options, what| {
            let native = options.device == Device::Cpu;
            let mut x = vec![5i32; 55];
            if let Some(bad) = bad {
                x[bad] = -9;
            }
            let mut args = [Arg::from(&mut x[..]), Arg::from(5i32)];
            if element == [9, 9] {
                kernel(&program, options).launch([1; 3], &mut args).unwrap();
                return;
            }
            let trap = trap(&program, options, 1, &mut args);
            let want = if native { vec![element[0] * 16 + element[1]] } else { element.to_vec() };
            assert_eq!(trap.element, Some(want), "{what}: {}", trap.message);
        });
    }
}

#[test]
fn loops_over_unsigned_numbers_of_64_bits() {
    // Adds the numbers of the loop up; a trap ends it at the fourth.
    let body = "    %z = constant <i64: 0> : tile<i64>\n    %one = constant <i64: 1> : tile<i64>\n    %four = constant <i64: 4> : tile<i64>
    %n, %s = for unsigned %k in (%lo to %hi, step STEP) : tile<i64> iter_values(%c = %z, %a = %z) -> (tile<i64>, tile<i64>) {
      %d = addi %c, %one : tile<i64>
      %b = addi %a, %k : tile<i64>
      %t0 = store_ptr_tko weak %x, %b : tile<ptr<i64>>, tile<i64> -> token
      %on = cmpi not_equal %d, %four, signed : tile<i64> -> tile<i1>
      assert %on, \"the fourth\" : tile<i1>
      continue %d, %b : tile<i64>, tile<i64>
    }\n";
    const HALF: u64 = 1 << 63;
    for by_one in [true, false] {
        let text = body.replace("STEP", if by_one { "%one" } else { "%by" });
        let program = program("%x: tile<ptr<i64>>, %lo: tile<i64>, %hi: tile<i64>, %by: tile<i64>", &text);
        for (lo, hi, step) in [
            (0, 3, 1),
            (0, u64::MAX, 1),
            (0, HALF, 1),
            (HALF - 2, HALF + 9, 1),
            (HALF - 2, HALF + 9, 3),
            (0, HALF + 1, 1 << 62),
            (HALF + 5, HALF + 7, 1),
            (HALF + 5, 7, 1),
            (u64::MAX - 1, u64::MAX, 1),
            (u64::MAX - 1, u64::MAX, u64::MAX),
            (1, 100, 40),
        ] {
            // A loop in steps of 1 that crosses the middle is not followed that far.
            if by_one && (step != 1 || (lo == HALF - 2)) {
                continue;
            }
            let mut want = 0u64;
            let (mut k, mut count) = (Some(lo), 0);
            while let Some(now) = k.filter(|k| *k < hi && count < 4) {
                want = want.wrapping_add(now);
                k = now.checked_add(step);
                count += 1;
            }
            each(|options, what| {
                let mut x = [0i64];
                let args =
                    &mut [Arg::from(&mut x[..]), Arg::from(lo as i64), Arg::from(hi as i64), Arg::from(step as i64)];
                let outcome = kernel(&program, options).launch([1; 3], args);
                let what = format!("{what}: {lo}..{hi} step {step}, by one {by_one}");
                assert_eq!(outcome.is_err(), count == 4, "{what}");
                assert_eq!(x[0] as u64, want, "{what}");
            });
        }
    }
}
