//! Kernels in Rust: what they compute, on the processor and on the evaluator.

use girih::lang::*;
use girih::{Device, Options};

#[girih::kernel]
fn add(x: &[f32], y: &[f32], out: &mut [f32], n: i32, #[constexpr] block: i32) {
    let i = program_id(0) * block + arange(0, block);
    let total = load_where(x + i, i < n, 0.0) + load_where(y + i, i < n, 0.0);
    store_where(out + i, total, i < n);
}

#[test]
fn adds() {
    let (x, y): (Vec<f32>, Vec<f32>) = ((0..1000).map(|i| i as f32).collect(), vec![1.0; 1000]);
    for device in [Device::Cpu, Device::Eval] {
        let mut out = vec![0.0f32; 1000];
        let options = Options { device, ..Options::default() };
        let launch = add(&x, &y, &mut out, 1000, 256).with_options(options);
        println!("{}", launch.tile_ir().unwrap());
        launch.launch([4]).unwrap();
        assert!(out.iter().enumerate().all(|(i, v)| *v == i as f32 + 1.0));
    }
}

#[girih::kernel]
fn control(out: &mut [i32], n: i32, #[constexpr] twice: bool) {
    let me = program_id(0);
    let mut total = scalar(0);
    let mut found = scalar(-1);
    for i in range(0, n) {
        if i % 3 == 1 {
            continue;
        }
        if total > 100 {
            found = i;
            break;
        }
        let mut step = if i % 2 == 0 { i } else { -i / 2 };
        for k in 0..3 {
            if k == 1 {
                continue;
            }
            step += k;
        }
        total += step;
    }
    let mut halved = total;
    while halved > 3 {
        halved /= 2;
    }
    if twice {
        total *= 2;
    }
    if me == 1 {
        store(out + me * 3, -1);
        return;
    }
    store(out + me * 3, total);
    store(out + me * 3 + 1, found);
    store(out + me * 3 + 2, halved);
}

#[test]
fn controls() {
    for n in [0, 5, 100] {
        let (mut total, mut found) = (0i32, -1);
        for i in 0..n {
            if i % 3 == 1 {
                continue;
            }
            if total > 100 {
                found = i;
                break;
            }
            let mut step = if i % 2 == 0 { i } else { -i / 2 };
            step += 2;
            total += step;
        }
        let mut halved = total;
        while halved > 3 {
            halved /= 2;
        }
        for twice in [false, true] {
            for device in [Device::Cpu, Device::Eval] {
                let mut out = vec![7i32; 9];
                let options = Options { device, ..Options::default() };
                control(&mut out, n, twice).with_options(options).launch([3]).unwrap();
                let total = if twice { total * 2 } else { total };
                assert_eq!(out, [total, found, halved, -1, 7, 7, total, found, halved], "{n} {twice} {device}");
            }
        }
    }
}

#[girih::kernel]
fn wrong(x: &[f32], out: &mut [f32], #[constexpr] block: i32) {
    let i = arange(0, block);
    let y = load(x + i) + load(x + arange(0, 2 * block));
    store(out + i, y);
    store(out, load(x + i));
}

#[test]
fn mistakes() {
    let error = wrong(&[0.0; 8], &mut [0.0; 8], 4).launch(1).unwrap_err();
    println!("{error}");
    let text = error.to_string();
    assert!(text.contains("the shapes [4] and [8] do not match"), "{text}");
    assert!(text.contains("let y = load(x + i) + load(x + arange(0, 2 * block));"), "{text}");
    assert!(text.contains("cannot be stored to one address"), "{text}");
}

#[test]
fn short_slices() {
    let x = vec![0.0f32; 1000];
    let mut out = vec![0.0f32; 10];
    let error = add(&x, &x, &mut out, 1000, 256).launch([4]).unwrap_err();
    println!("{error}");
    assert!(error.to_string().contains("`out`"), "{error}");
}
