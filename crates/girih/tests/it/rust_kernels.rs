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

#[path = "../../examples/attention.rs"]
#[allow(dead_code)]
mod attention;
#[path = "../../examples/gemm.rs"]
#[allow(dead_code)]
mod gemm;
#[path = "../../examples/softmax.rs"]
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

// ---- what control flow does

#[girih::kernel]
fn nested(out: &mut [i32], n: i32) {
    let mut grid = vec![scalar(0); 2];
    let mut pair = (scalar(0), scalar(1));
    let mut i = scalar(0);
    loop {
        i += 1;
        if i > n {
            break;
        }
        let mut j = scalar(0);
        while j < i && j != 7 {
            if j % 2 == 0 {
                grid[0] += j;
            } else if j == 3 {
                j += 2;
                continue;
            } else {
                grid[1] -= j;
            }
            j += 1;
        }
        pair = (pair.1, pair.0 + pair.1);
        store(out + 4, i);
        if i == 5 {
            atomic_add(out + 5, 10);
        }
    }
    let sign = |x: Tile<i32>| {
        if x > 3 {
            scalar(1)
        } else if x == 3 {
            scalar(0)
        } else {
            scalar(-1)
        }
    };
    store(out, grid[0]);
    store(out + 1, grid[1]);
    store(out + 2, pair.0);
    store(out + 3, sign(n));
    if n > 5 {
        if n > 6 {
            return;
        }
        store(out + 6, 1);
    }
    store(out + 7, load(out + 4) + 100);
}

fn nested_in_rust(n: i32) -> [i32; 8] {
    let mut out = [0; 8];
    let (mut grid, mut pair, mut i) = ([0, 0], (0, 1), 0);
    loop {
        i += 1;
        if i > n {
            break;
        }
        let mut j = 0;
        while j < i && j != 7 {
            if j % 2 == 0 {
                grid[0] += j;
            } else if j == 3 {
                j += 2;
                continue;
            } else {
                grid[1] -= j;
            }
            j += 1;
        }
        pair = (pair.1, pair.0 + pair.1);
        out[4] = i;
        if i == 5 {
            out[5] += 10;
        }
    }
    [out[0], out[1], out[2]] = [grid[0], grid[1], pair.0];
    out[3] = (n - 3).signum();
    if n > 5 {
        if n > 6 {
            return out;
        }
        out[6] = 1;
    }
    out[7] = out[4] + 100;
    out
}

#[test]
fn nested_control_flow() {
    for n in [0, 2, 3, 5, 6, 9] {
        for device in [Device::Cpu, Device::Eval] {
            let mut out = [0; 8];
            let options = Options { device, ..Options::default() };
            nested(&mut out, n).with_options(options).launch(1).unwrap();
            assert_eq!(out, nested_in_rust(n), "{n} on {device}");
        }
    }
}

#[girih::kernel]
fn generic<T: Number, const N: i32>(x: &[T], out: &mut [T], by: T) {
    let i = arange(0, N);
    store(out + i, load(x + i) * by);
}

#[test]
fn type_parameters() {
    let mut a = [0i64; 4];
    generic::<i64, 4>(&[1, 2, 3, 4], &mut a, -3).launch(1).unwrap();
    assert_eq!(a, [-3, -6, -9, -12]);
    let mut b = [f16::ZERO; 2];
    generic::<f16, 2>(&[f16::from_f32(1.5); 2], &mut b, f16::from_f32(2.0)).launch(1).unwrap();
    assert_eq!(b, [f16::from_f32(3.0); 2]);
    let mut c = [0u8; 4];
    generic::<u8, 4>(&[100, 200, 3, 4], &mut c, 3).launch(1).unwrap();
    assert_eq!(c, [44, 88, 9, 12]);
}

#[girih::kernel]
fn telling(x: &[f32], n: i32) {
    let i = program_id(0);
    assert!(i < n, "a block too many");
    let text = "100%";
    println!("block {} of {}: {}", i, text, load(x + i));
}

#[test]
fn messages_and_assertions() {
    let heard = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let into = heard.clone();
    let printer: girih::Printer = std::sync::Arc::new(move |_, text| *into.lock().unwrap() += text);
    let options = Options { printer: Some(printer), print_order: girih::PrintOrder::Index, ..Options::default() };
    telling(&[0.5, 1.5], 2).with_options(options).launch([2]).unwrap();
    assert_eq!(*heard.lock().unwrap(), "block 0 of 100%: 0.5\nblock 1 of 100%: 1.5\n");
    let line = line!() - 13;
    for device in [Device::Cpu, Device::Eval] {
        let options = Options { device, printer: Some(std::sync::Arc::new(|_, _| {})), ..Options::default() };
        let error = telling(&[0.5, 1.5], 1).with_options(options).launch([2]).unwrap_err();
        assert!(error.to_string().contains("a block too many"), "{error}");
        let place = error.place().unwrap();
        assert!(place.file.ends_with("rust_kernels.rs"), "{place}");
        assert_eq!(place.line, line, "{place}");
    }
}

#[girih::kernel]
fn far(x: &[f32], out: &mut [f32], at: &[i32]) {
    store(out, load(x + load(at)));
}

#[test]
fn an_address_from_data_is_tested_under_check() {
    for options in [Options::default().check(true), Options { device: Device::Eval, ..Options::default() }] {
        let error = far(&[1.0; 4], &mut [0.0], &[1 << 20]).with_options(options).launch(1).unwrap_err();
        assert_eq!(error.code().map(|c| c.text()), Some("E0603"), "{error}");
        assert_eq!(error.place().map(|p| p.line), Some(line!() - 8), "{error}");
    }
}

// ---- mistakes that are found when the constants are known

macro_rules! mistake {
    ($name:ident($out:ident, $n:ident, $x:ident) $body:block, $says:literal) => {{
        #[girih::kernel]
        fn $name($out: &mut [f32], $n: i32, $x: &[f32]) $body
        let error = $name(&mut [0.0; 8], 3, &[0.0; 8]).launch(1).unwrap_err().to_string();
        assert!(error.contains($says), "{}: {error}", stringify!($name));
        assert!(error.contains("rust_kernels.rs:"), "{error}");
    }};
}

#[test]
fn each_mistake_is_told() {
    mistake!(power(out, n, x) { store(out + arange(0, 6), 1.0); }, "must be made of powers of two, but 6 is not one");
    mistake!(empty(out, n, x) { store(out + arange(4, 4), 1.0); }, "arange from 4 to 4 is empty");
    mistake!(large(out, n, x) { store(out, zeros::<f32>([1 << 20, 1 << 10]).sum(0).sum(0)); }, "can have at most 16777216 elements");
    mistake!(axis(out, n, x) { store(out, load(x + arange(0, 4)).sum(1)); }, "the axis is 1, but f32[4] has 1 dimension");
    mistake!(grid(out, n, x) { store(out + program_id(3), 1.0); }, "a grid has the axes 0, 1 and 2, not 3");
    mistake!(matrix(out, n, x) { store(out, dot(zeros::<f32>([4, 8]), zeros([4, 8])).sum(0).sum(0)); }, "cannot be multiplied");
    mistake!(reshaped(out, n, x) { store(out + arange(0, 4), zeros::<f32>([8]).reshape([2, 2]).sum(0).sum(0)); }, "has 8 elements, but the shape [2, 2] has 4");
    mistake!(tiles(out, n, x) { if arange(0, 4) < 2 { store(out, 1.0); } }, "a condition must be one truth value, but this is bool[4]");
    mistake!(shape_changes(out, n, x) {
        let mut total = scalar(0.0f32);
        for i in range(0, n) { total = load(x + arange(0, 4)) + i.to::<f32>(); }
        store(out, total);
    }, "`total` is f32 before the loop and f32[4] after its body");
    mistake!(numbers_change(out, n, x) {
        let mut count = 0;
        for i in range(0, n) { count += 1; store(out + i, 1.0); }
        store(out + count, 1.0);
    }, "`count` is a value of Rust, which is 0 before the loop and 1 after its body");
    mistake!(sides_differ(out, n, x) {
        let mut total = scalar(0.0f32);
        if n > 2 { total = load(x + arange(0, 4)); }
        store(out, total);
    }, "`total` is f32[4] on one side of the `if` and f32 on the other");
    mistake!(escapes(out, n, x) {
        let kept = std::cell::Cell::new(scalar(0.0f32));
        for i in range(0, n) { kept.set(load(x + i)); }
        store(out, kept.get());
    }, "was not carried out of it");
    mistake!(unrolled(out, n, x) {
        for i in 0..4 { if n > i { break; } }
        store(out, 1.0);
    }, "`break` of an unrolled loop depends on a condition known only when the kernel runs");
    mistake!(endless(out, n, x) { for i in 0.. { store(out + i, 1.0); } }, "no more are unrolled");
    mistake!(widths(out, n, x) { store(out, load(x).bitcast::<i64>().to()); }, "a bitcast keeps the width");
    mistake!(asserted(out, n, x) { assert!(1 + 1 == 3, "sums"); store(out, 1.0); }, "assertion failed: sums");
    mistake!(one_address(out, n, x) { store(out, zeros([4])); }, "cannot be stored to one address");
    mistake!(splits(out, n, x) { store(out, zeros([4]).split().0); }, "split needs a last dimension of extent 2");
    mistake!(few(out, n, x) { store(out, zeros([4]).topk(3, 0)); }, "k must be a power of two up to 4, not 3");
}

#[test]
fn mistakes_come_together_and_once() {
    #[girih::kernel]
    fn several(out: &mut [f32]) {
        for i in 0..3 {
            store(out + i, zeros::<f32>([6]).sum(0));
        }
        store(out, zeros::<f32>([4]) + zeros([8]));
    }
    let error = several(&mut [0.0; 4]).launch(1).unwrap_err();
    let girih::Error::Kernel { diagnostics, .. } = &error else { panic!("{error}") };
    assert_eq!(diagnostics.len(), 2, "{error}");
}

/// The product in blocks of `make_block_ptr`, which move along the sum.
#[girih::kernel]
fn blocked(a: &[F8E4M3], b: &[F8E4M3], c: &mut [f32], m: i32, n: i32, k: i32) {
    let (i, j) = (program_id(0) * 16, program_id(1) * 32);
    let mut left = make_block_ptr(a, [m, k], (k, 1), (i, 0), [16, 8]);
    let mut right = make_block_ptr(b, [k, n], (n, 1), (0, j), [8, 32]);
    let mut sum = zeros::<f32>([16, 32]);
    for _ in range(0, cdiv(k, 8)) {
        let zero = F8E4M3::from_f32(0.0);
        sum = dot_add(left.load_checked(&[0, 1], zero), right.load_checked(&[0, 1], zero), sum);
        left = left.advance((0, 8));
        right = right.advance((8, 0));
    }
    make_block_ptr(c, [m, n], (n, 1), [i, j], [16, 32]).store_checked(sum, &[0, 1]);
}

#[test]
fn blocks_of_small_floats() {
    let (m, n, k) = (37usize, 45usize, 19usize);
    // Products and sums of these are exact in f32.
    let small = |count: usize, by: usize| (0..count).map(move |i| ((i * by) % 15) as f32 - 7.0).map(F8E4M3::from_f32);
    let (a, b): (Vec<F8E4M3>, Vec<F8E4M3>) = (small(m * k, 7).collect(), small(k * n, 11).collect());
    for device in [Device::Cpu, Device::Eval] {
        // Nothing past the array may be written.
        let mut c = vec![9.0f32; m * n + 64];
        let options = Options { device, ..Options::default() };
        blocked(&a, &b, &mut c, m as i32, n as i32, k as i32).with_options(options).launch([3, 2]).unwrap();
        for i in 0..m {
            for j in 0..n {
                let want: f32 = (0..k).map(|p| a[i * k + p].to_f32() * b[p * n + j].to_f32()).sum();
                assert_eq!(c[i * n + j], want, "{device} {i} {j}");
            }
        }
        assert_eq!(c[m * n..], [9.0; 64]);
    }
}

/// Rounds the elements that it reads to eight bits, in blocks at the edges of an image, and turns the image.
#[girih::kernel]
fn turned(x: &[f32], y: &mut [F8E5M2], rows: i32, columns: i32) {
    let from = make_tensor_descriptor(x, [rows, columns], (columns, 1), [8, 4]);
    let to = make_tensor_descriptor(y, [columns, rows], (rows, 1), [4, 8]);
    let (i, j) = (program_id(0) * 8 - 3, program_id(1) * 4 - 1);
    to.store([j, i], from.load([i, j]).t().to::<F8E5M2>());
}

#[test]
fn descriptors_leave_out_what_is_not_there() {
    let (rows, columns) = (21usize, 10usize);
    let x: Vec<f32> = (0..rows * columns).map(|i| i as f32 * 1.7 - 100.0).collect();
    for device in [Device::Cpu, Device::Eval] {
        let mut y = vec![F8E5M2::default(); rows * columns];
        let options = Options { device, ..Options::default() };
        turned(&x, &mut y, rows as i32, columns as i32).with_options(options).launch([3, 3]).unwrap();
        for (at, value) in y.iter().enumerate() {
            let (j, i) = (at / rows, at % rows);
            assert_eq!(*value, F8E5M2::from_f32(x[i * columns + j]), "{device} {i} {j}");
        }
    }
}

#[girih::kernel]
fn misplaced(x: &[f32], out: &mut [f32], n: i32) {
    let tile = make_block_ptr(x + arange(0, 4), [n], [1], [0], [4]);
    let block = make_block_ptr(x, [n], [1], [0], [4]);
    make_block_ptr(out, [n], [arange(0, 4)], [0], [4]).store(tile.load() + block.load_checked(&[1], 0.0));
}

#[test]
fn mistakes_in_blocks_are_told() {
    let said = misplaced(&[0.0; 4], &mut [0.0; 4], 4).launch(1).unwrap_err().to_string();
    for part in [
        "the base of a block must be one address, not Ptr<f32>[4]",
        "the dimensions of a block of 1 are 0 to 0, not [1]",
        "an extent or a stride of a block must be a scalar",
        "make_block_ptr(x + arange(0, 4), [n], [1], [0], [4])",
    ] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
}

#[girih::kernel]
fn grown(x: &mut [f32], n: i32, #[constexpr] block: i32) {
    let i = program_id(0) * block + arange(0, block);
    store_where(x + i, load_where(x + i, i < n, 0.0) + 1.0, i < n);
}

#[test]
fn autotuners_choose_once_for_each_key() {
    // The first, 3, cannot be an extent of a tile.
    static BLOCKS: Autotuner<i32> = Autotuner::new(&[3, 64, 512]);
    let mut runs = 0;
    for n in [100usize, 100, 700] {
        let mut x = vec![0.0f32; n];
        let before = runs;
        BLOCKS
            .launch(n, |&block| {
                runs += 1;
                x.fill(1.0);
                grown(&mut x, n as i32, block).launch(cdiv(n as u32, block as u32))
            })
            .unwrap();
        assert_eq!(x, vec![2.0; n]);
        assert!(matches!(BLOCKS.best(n), Some(64 | 512)));
        assert_eq!(runs == before + 1, n == 100 && before > 0);
    }
    assert!(BLOCKS.best(5).is_none());

    static NONE: Autotuner<i32> = Autotuner::new(&[3, 5]);
    let refused = NONE.launch((), |&block| grown(&mut [0.0; 8], 8, block).launch(1)).unwrap_err().to_string();
    assert!(refused.contains("powers of two") || refused.contains("power of two"), "{refused}");
    static EMPTY: Autotuner<i32> = Autotuner::new(&[]);
    let refused = EMPTY.launch((), |_| unreachable!()).unwrap_err().to_string();
    assert_eq!(refused, "an autotuner needs something to choose from");
}
