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
    assert!(error.to_string().contains("`out`"), "{error}");
}

// ---- twins: the same kernels written in Python, as Tile IR

#[path = "../examples/attention.rs"]
#[allow(dead_code)]
mod attention;
#[path = "../examples/gemm.rs"]
#[allow(dead_code)]
mod gemm;
#[path = "../examples/softmax.rs"]
#[allow(dead_code)]
mod softmax;

#[girih::function]
fn larger(x: Tile<f32>, y: Tile<f32>) -> Tile<f32> {
    select(x > y, x, y)
}

fn whole(x: Tile<f32>) -> Tile<f32> {
    x.broadcast_to([64])
}

#[girih::kernel]
fn operations(x: &[f32], y: &[f32], k: &[i32], floats: &mut [f32], ints: &mut [i32]) {
    let i = arange(0, 64);
    let (a, b, n) = (load(x + i), load(y + i), load(k + i));
    let square = a.reshape([8, 8]);
    let results = [
        a + b,
        a - 2.5,
        3.0 * a,
        a / b,
        a % b,
        -a,
        exp(a),
        exp2(a),
        log(abs(a)),
        log2(abs(a)),
        sqrt(abs(a)),
        rsqrt(abs(a)),
        sin(a),
        cos(a),
        tan(a),
        sinh(a),
        cosh(a),
        tanh(a),
        floor(a),
        ceil(a),
        erf(a),
        sigmoid(a),
        fma(a, b, 1.5),
        atan2(a, b),
        maximum(a, b),
        minimum(a, 0.5),
        clamp(a, -0.5, 0.5),
        select(n > 3, a, b),
        a.softmax(-1),
        a.sort(0),
        a.flip(0),
        a.cumsum(0),
        a.cumprod(0),
        n.to(),
        a.to::<f16>().to(),
        a.to::<bf16>().to(),
        square.t().ravel(),
        dot(square, b.reshape([8, 8])).ravel(),
        gather(square, (n % 8).reshape([8, 8]), 1).ravel(),
        rand(7, i),
        randn(7, i),
        interleave(a.reshape([32, 2]).sum(1), b.reshape([32, 2]).max(1)),
        whole(a.sum(0)),
        whole(a.prod(0)),
        whole(a.min(0)),
        a.associative_scan(0, larger),
        whole(a.reduce(0, larger)),
    ];
    for (row, result) in results.into_iter().enumerate() {
        store(floats + row as i32 * 64 + i, result);
    }
    let each = |x: Tile<i32>| x.broadcast_to([64]);
    let results = [
        n + 3,
        n - n * n,
        n / 3,
        n % 3,
        n & 5,
        n | 8,
        n ^ 3,
        !n,
        n << 2,
        n >> 1,
        -n,
        abs(n),
        maximum(n, 4),
        a.to(),
        (a < b).to(),
        (n != 4).to(),
        randint(7, i).bitcast(),
        n.cumsum(0),
        n.sort(0),
        each(a.argmax(0)),
        each(a.argmin(0)),
        each(n.xor_sum(0)),
        each(n.sum(0)),
        n.to::<i8>().to(),
        histogram(n, 64),
        cdiv(n, 3),
        n.to::<i8>().cumsum(0),
    ];
    for (row, result) in results.into_iter().enumerate() {
        store(ints + row as i32 * 64 + i, result);
    }
}

fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| 3.0 * next()).collect()
}

/// Runs the twin of a kernel.
fn twin(name: &str, grid: [u32; 3], arguments: &mut [girih::Arg<'_>]) {
    let file = format!("{}/tests/twins/{name}.mlir", env!("CARGO_MANIFEST_DIR"));
    let program = girih::Program::from_file(file).unwrap();
    let entry = program.entries()[0].to_string();
    program.entry(&entry).unwrap().launch(grid, arguments).unwrap();
}

fn same_bits(name: &str, ours: &[f32], theirs: &[f32], row: usize) {
    let bits = |x: &[f32]| x.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    for (i, (a, b)) in ours.chunks(row).zip(theirs.chunks(row)).enumerate() {
        assert_eq!(bits(a), bits(b), "{name}, row {i}: {a:?} and {b:?}");
    }
}

#[test]
fn twin_of_softmax() {
    let (x, mut ours, mut theirs) = (numbers(500, 1), vec![0.0f32; 500], vec![0.0f32; 500]);
    softmax::softmax(&x, &mut ours, 100, 128).launch([5]).unwrap();
    twin("softmax", [5, 1, 1], &mut [(&x[..]).into(), (&mut theirs[..]).into(), 100i32.into()]);
    same_bits("softmax", &ours, &theirs, 100);
}

#[test]
fn twin_of_gemm() {
    let (m, n, k) = (20i32, 26i32, 37i32);
    let (a, b) = (numbers((m * k) as usize, 1), numbers((k * n) as usize, 2));
    let mut ours = vec![0.0f32; (m * n) as usize];
    let mut theirs = ours.clone();
    gemm::gemm(&a, &b, &mut ours, m, n, k, [16, 16, 8], 2).launch([4]).unwrap();
    let [a, b] = [&a, &b].map(|x| girih::Arg::from(&x[..]));
    twin("gemm", [4, 1, 1], &mut [a, b, (&mut theirs[..]).into(), m.into(), n.into(), k.into()]);
    same_bits("gemm", &ours, &theirs, n as usize);
}

#[test]
fn twin_of_attention() {
    let count = 2 * 41 * 16;
    let [q, k, v] = [1, 2, 3].map(|seed| numbers(count, seed));
    for (causal, name) in [(false, "attention"), (true, "attention_causal")] {
        let (mut ours, mut theirs) = (vec![0.0f32; count], vec![0.0f32; count]);
        attention::attention(&q, &k, &v, &mut ours, 41, 0.25, 16, 16, 16, causal).launch([3, 2]).unwrap();
        let [q, k, v] = [&q, &k, &v].map(|x| girih::Arg::from(&x[..]));
        twin(name, [3, 2, 1], &mut [q, k, v, (&mut theirs[..]).into(), 41i32.into(), 0.25f32.into()]);
        same_bits(name, &ours, &theirs, 16);
    }
}

#[test]
fn twin_of_operations() {
    let (x, y) = (numbers(64, 1), numbers(64, 2));
    let k: Vec<i32> = (0..64).map(|i| (i * 37) % 64).collect();
    let (mut floats, mut ints) = (vec![0.0f32; 64 * 47], vec![0i32; 64 * 27]);
    let (mut their_floats, mut their_ints) = (floats.clone(), ints.clone());
    operations(&x, &y, &k, &mut floats, &mut ints).launch(1).unwrap();
    let mut arguments = [
        (&x[..]).into(),
        (&y[..]).into(),
        (&k[..]).into(),
        (&mut their_floats[..]).into(),
        (&mut their_ints[..]).into(),
    ];
    twin("operations", [1, 1, 1], &mut arguments);
    same_bits("operations", &floats, &their_floats, 64);
    for (i, (ours, theirs)) in ints.chunks(64).zip(their_ints.chunks(64)).enumerate() {
        assert_eq!(ours, theirs, "row {i} of the integers");
    }
}
