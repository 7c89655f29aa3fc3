//! Pointer arguments at any byte: no access assumes more than the program proves.

use super::common::*;
use girih::{Arg, Device};
use girih_compiler::num::DType;

fn double(elem: &str, n: u64) -> String {
    [
        spread("x", &format!("ptr<{elem}>"), n),
        spread("y", &format!("ptr<{elem}>"), n),
        spread("len", "i32", n),
        iota("i", n),
        compare("in", "less_than", "i", "len_n", "i32", n),
        splat("zero", "0.0", elem, n),
        at("xp", "x", "i", elem, "i32", n),
        at("yp", "y", "i", elem, "i32", n),
        load_where("u", "xp", "in", "zero", elem, n),
        op2("v", "addf", "u", "u", elem, n),
        store_where("v", "yp", "in", elem, n),
    ]
    .concat()
}

#[test]
fn slices_at_odd_bytes() {
    for (elem, dtype, width) in [("f16", DType::F16, 2u64), ("f32", DType::F32, 4), ("f64", DType::F64, 8)] {
        let program =
            program(&format!("%x: tile<ptr<{elem}>>, %y: tile<ptr<{elem}>>, %len: tile<i32>"), &double(elem, 256));
        let len = 201u64;
        for (sx, sy) in [(1u64, 0u64), (0, 1), (1, 1), (3, 5), (7, 2), (5, 7)] {
            for (device, check) in [(Device::Cpu, false), (Device::Cpu, true), (Device::Eval, false)] {
                let value = |i: u64| match dtype {
                    DType::F16 => i.to_le_bytes().to_vec(), // subnormals: doubling is exact
                    DType::F32 => (i as f32 * 1.5).to_le_bytes().to_vec(),
                    _ => (i as f64 * 1.5).to_le_bytes().to_vec(),
                };
                let twice = |i: u64| match dtype {
                    DType::F16 => (2 * i).to_le_bytes().to_vec(),
                    DType::F32 => (i as f32 * 3.0).to_le_bytes().to_vec(),
                    _ => (i as f64 * 3.0).to_le_bytes().to_vec(),
                };
                let mut x = vec![0xeeu8; (sx + len * width + 9) as usize];
                for i in 0..len {
                    x[(sx + i * width) as usize..][..width as usize].copy_from_slice(&value(i)[..width as usize]);
                }
                let mut y = vec![0xeeu8; (sy + len * width + 9) as usize];
                {
                    let (from, to) = (sx as usize, sy as usize);
                    let bytes = (len * width) as usize;
                    let mut args = [
                        Arg::bits_of(dtype, &mut x[from..from + bytes]),
                        Arg::bits_of(dtype, &mut y[to..to + bytes]),
                        Arg::from(len as i32),
                    ];
                    kernel(&program, options(device).check(check)).launch([1; 3], &mut args).unwrap();
                }
                for i in 0..len {
                    let got = &y[(sy + i * width) as usize..][..width as usize];
                    assert_eq!(got, &twice(i)[..width as usize], "{elem} on {device} from {sx} to {sy}: element {i}");
                }
                assert!(y[..sy as usize].iter().chain(&y[(sy + len * width) as usize..]).all(|&b| b == 0xee));
            }
        }
    }
}

#[test]
fn unaligned_matrices() {
    let text = r#"cuda_tile.module @m {
  entry @k(%A: tile<ptr<f32>>, %B: tile<ptr<f32>>, %C: tile<ptr<f32>>) {
    %c0 = constant <i32: 0> : tile<i32>
    %zero = constant <f32: 0.0> : tile<32x32xf32>
    %av = make_tensor_view %A, shape = [32, 32], strides = [32, 1] : tensor_view<32x32xf32, strides=[32,1]>
    %bv = make_tensor_view %B, shape = [32, 32], strides = [32, 1] : tensor_view<32x32xf32, strides=[32,1]>
    %cv = make_tensor_view %C, shape = [32, 32], strides = [32, 1] : tensor_view<32x32xf32, strides=[32,1]>
    %at = make_partition_view %av : partition_view<tile=(32x32), tensor_view<32x32xf32, strides=[32,1]>>
    %bt = make_partition_view %bv : partition_view<tile=(32x32), tensor_view<32x32xf32, strides=[32,1]>>
    %ct = make_partition_view %cv : partition_view<tile=(32x32), tensor_view<32x32xf32, strides=[32,1]>>
    %a, %t0 = load_view_tko weak %at[%c0, %c0]
      : partition_view<tile=(32x32), tensor_view<32x32xf32, strides=[32,1]>>, tile<i32> -> tile<32x32xf32>, token
    %b, %t1 = load_view_tko weak %bt[%c0, %c0]
      : partition_view<tile=(32x32), tensor_view<32x32xf32, strides=[32,1]>>, tile<i32> -> tile<32x32xf32>, token
    %c = mmaf %a, %b, %zero : tile<32x32xf32>, tile<32x32xf32>, tile<32x32xf32>
    %t2 = store_view_tko weak %c, %ct[%c0, %c0]
      : tile<32x32xf32>, partition_view<tile=(32x32), tensor_view<32x32xf32, strides=[32,1]>>, tile<i32> -> token
  }
}
"#;
    let program = parsed(text);
    let a = |i: usize, k: usize| ((i * 3 + k) % 7) as f32;
    let b = |k: usize, j: usize| ((k + 5 * j) % 11) as f32;
    for device in DEVICES {
        for shift in [1usize, 2, 3] {
            let bytes = |f: &dyn Fn(usize, usize) -> f32| {
                let values = (0..1024).flat_map(|e| f(e / 32, e % 32).to_le_bytes());
                [vec![0u8; shift], values.collect()].concat()
            };
            let (mut ab, mut bb, mut cb) = (bytes(&a), bytes(&b), vec![0u8; shift + 4096]);
            let mut args = [
                Arg::bits_of(DType::F32, &mut ab[shift..]),
                Arg::bits_of(DType::F32, &mut bb[shift..]),
                Arg::bits_of(DType::F32, &mut cb[shift..]),
            ];
            run(&program, device, 1, &mut args);
            for e in 0..1024 {
                let got = f32::from_le_bytes(cb[shift + 4 * e..][..4].try_into().unwrap());
                let want: f32 = (0..32).map(|k| a(e / 32, k) * b(k, e % 32)).sum();
                assert_eq!(got, want, "{device}, {shift}: {e}");
            }
        }
    }
}

#[test]
fn a_false_assumption_of_alignment_is_no_crash() {
    let n = 256;
    let body = [
        "    %xa = assume div_by<64>, %x : tile<ptr<f32>>\n    %ya = assume div_by<64>, %y : tile<ptr<f32>>\n"
            .to_string(),
        spread("xa", "ptr<f32>", n),
        spread("ya", "ptr<f32>", n),
        iota("i", n),
        at("xp", "xa", "i", "f32", "i32", n),
        at("yp", "ya", "i", "f32", "i32", n),
        load("u", "xp", "f32", n),
        op2("v", "addf", "u", "u", "f32", n),
        store("v", "yp", "f32", n),
    ]
    .concat();
    let program = program("%x: tile<ptr<f32>>, %y: tile<ptr<f32>>", &body);
    for shift in [1usize, 4, 20] {
        for device in DEVICES {
            // Slices that start this far after a multiple of 64.
            let (mut xs, mut ys) = ([0u8; 2048], [0u8; 2048]);
            let (from, to) = (xs.as_ptr().align_offset(64) + shift, ys.as_ptr().align_offset(64) + shift);
            for i in 0..256 {
                xs[from + 4 * i..][..4].copy_from_slice(&(i as f32).to_le_bytes());
            }
            let mut args = [
                Arg::bits_of(DType::F32, &mut xs[from..from + 1024]),
                Arg::bits_of(DType::F32, &mut ys[to..to + 1024]),
            ];
            let result = kernel(&program, options(device)).launch([1; 3], &mut args);
            match (device, result) {
                // Natively the fact is either tested or not relied on.
                (Device::Cpu, Ok(_)) => {
                    let got = |i: usize| f32::from_le_bytes(ys[to + 4 * i..][..4].try_into().unwrap());
                    assert!((0..256).all(|i| got(i) == 2.0 * i as f32));
                }
                (_, Err(girih::Error::Trap(t))) => {
                    assert_eq!(t.code, girih_compiler::base::Code::FalseAssumption, "{device}: {}", t.message);
                }
                (_, other) => panic!("{device}: {other:?}"),
            }
        }
    }
}
