use super::*;

const ONE: [ScalarOp; 14] = [
    ScalarOp::Exp,
    ScalarOp::Exp2 { ftz: false },
    ScalarOp::Exp2 { ftz: true },
    ScalarOp::Log,
    ScalarOp::Log2,
    ScalarOp::Sin,
    ScalarOp::Cos,
    ScalarOp::Tan,
    ScalarOp::Sinh,
    ScalarOp::Cosh,
    ScalarOp::Tanh,
    ScalarOp::Erf,
    ScalarOp::Rsqrt { ftz: false },
    ScalarOp::Rsqrt { ftz: true },
];
/// The operations that the C library lacks: values come from [`HARD`] and from identities.
const SPECIAL: [ScalarOp; 6] = [
    ScalarOp::ErfInv,
    ScalarOp::NormalQuantile,
    ScalarOp::LogGamma,
    ScalarOp::Digamma,
    ScalarOp::BesselI0e,
    ScalarOp::BesselI1e,
];
const TWO: [ScalarOp; 2] = [ScalarOp::Pow, ScalarOp::Atan2];

fn flushes(op: ScalarOp) -> bool {
    matches!(op, ScalarOp::Exp2 { ftz: true } | ScalarOp::Rsqrt { ftz: true })
}

/// Every operation and the types it has a program on.
fn programs() -> impl Iterator<Item = (ScalarOp, DType)> {
    let all = ONE.into_iter().chain(SPECIAL).chain(TWO).chain([ScalarOp::PowI]);
    all.flat_map(|op| [(op, DType::F32), (op, DType::F64)]).filter(|&(op, ty)| ty == DType::F32 || !flushes(op))
}

/// A series of positive terms, `erf(x) = 2/sqrt(pi) exp(-x^2) sum 2^n x^(2n+1) / (2n+1)!!`.
fn erf(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() || x.abs() > 6.0 {
        return if x.abs() > 6.0 { x.signum() } else { x };
    }
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while (term / sum).abs() > 1e-20 {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// The C library's function.
fn library(op: ScalarOp, x: f64, y: f64) -> f64 {
    match op {
        ScalarOp::Exp => x.exp(),
        ScalarOp::Exp2 { .. } => x.exp2(),
        ScalarOp::Log => x.ln(),
        ScalarOp::Log2 => x.log2(),
        ScalarOp::Sin => x.sin(),
        ScalarOp::Cos => x.cos(),
        ScalarOp::Tan => x.tan(),
        ScalarOp::Sinh => x.sinh(),
        ScalarOp::Cosh => x.cosh(),
        ScalarOp::Tanh => x.tanh(),
        ScalarOp::Erf => erf(x),
        ScalarOp::Pow | ScalarOp::PowI => x.powf(y),
        ScalarOp::Atan2 => x.atan2(y),
        _ => 1.0 / x.sqrt(),
    }
}

fn f64_of(ty: DType, bits: u64) -> f64 {
    if ty == DType::F32 { f32::from_bits(bits as u32) as f64 } else { f64::from_bits(bits) }
}

fn bits_of(ty: DType, x: f64) -> u64 {
    if ty == DType::F32 { (x as f32).to_bits() as u64 } else { x.to_bits() }
}

/// The distance between neighbours at the size of x.
fn ulp(ty: DType, x: f64) -> f64 {
    let (precision, lowest) = if ty == DType::F32 { (24, -149) } else { (53, -1074) };
    let exponent = if x == 0.0 { lowest } else { (x.abs().to_bits() >> 52) as i32 - 1023 - precision + 1 };
    let unit = exponent.max(lowest);
    if unit < -1022 { f64::from_bits(1 << (unit + 1074)) } else { 2f64.powi(unit) }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545f4914f6cdd1d)
    }
    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
    /// An argument of any size up to 2^high, small ones too, or uniform around it.
    fn argument(&mut self, high: f64) -> f64 {
        let size = match self.next() % 3 {
            0 => 2f64.powf(self.uniform() * (high + 30.0) - 30.0),
            1 => self.uniform() * 4.0,
            _ => 1.0 + (self.uniform() - 0.5) * 2f64.powf(-20.0 * self.uniform()),
        };
        if self.next() & 1 == 0 { size } else { -size }
    }
}

/// The bounds of the table in this module's documentation, for f32 and f64.
fn bound(op: ScalarOp) -> [f64; 2] {
    match op {
        ScalarOp::Exp => [1.0, 1.0],
        ScalarOp::Exp2 { .. } => [0.8, 1.0],
        ScalarOp::Log => [0.8, 0.8],
        ScalarOp::Log2 => [1.1, 0.7],
        ScalarOp::Sin | ScalarOp::Cos => [1.6, 0.8],
        ScalarOp::Tan => [1.9, 2.0],
        ScalarOp::Sinh => [0.501, 1.6],
        ScalarOp::Cosh => [0.501, 1.3],
        ScalarOp::Tanh => [2.2, 2.0],
        ScalarOp::Erf => [1.8, 1.1],
        ScalarOp::Pow => [1.0, 1.2],
        ScalarOp::PowI => [0.501, 1.2],
        ScalarOp::Atan2 => [1.6, 0.7],
        ScalarOp::ErfInv | ScalarOp::NormalQuantile => [0.501, 3.0],
        ScalarOp::BesselI0e | ScalarOp::BesselI1e => [0.501, 8.0],
        ScalarOp::LogGamma | ScalarOp::Digamma => [0.501, 2.0],
        _ => [1.5, 1.5],
    }
}

/// How large an argument may be, as a power of two, for a result that is not all overflow.
fn reach(op: ScalarOp, ty: DType) -> f64 {
    let single = ty == DType::F32;
    match op {
        ScalarOp::Exp | ScalarOp::Sinh | ScalarOp::Cosh => [9.6, 6.5][single as usize],
        ScalarOp::Exp2 { .. } => [10.1, 7.2][single as usize],
        ScalarOp::Tanh => 5.0,
        ScalarOp::Erf => 2.6,
        _ => [1023.0, 127.0][single as usize],
    }
}

/// f32 against the C library in f64; f64 against its own, which is within 1 ulp itself (2 for sinh, cosh, tanh and tan).
#[test]
fn random_arguments_stay_within_the_bounds() {
    let mut random = Random(11);
    for ty in [DType::F32, DType::F64] {
        for op in ONE.into_iter().chain(TWO) {
            if flushes(op) {
                continue;
            }
            let f64_ = ty == DType::F64;
            let slack = match op {
                _ if !f64_ => 0.0,
                // The series rounds a few dozen times, and doubles the error of x^2.
                ScalarOp::Erf => 40.0,
                ScalarOp::Sinh | ScalarOp::Cosh | ScalarOp::Tanh | ScalarOp::Tan => 2.0,
                _ => 1.0,
            };
            let limit = bound(op)[f64_ as usize] + slack;
            for _ in 0..4000 {
                let x = random.argument(reach(op, ty));
                let y = if op == ScalarOp::Pow { random.argument(5.0) * 3.0 } else { random.argument(20.0) };
                let args = [bits_of(ty, x), bits_of(ty, y)];
                let (x, y) = (f64_of(ty, args[0]), f64_of(ty, args[1]));
                let args = &args[..if TWO.contains(&op) { 2 } else { 1 }];
                let got = f64_of(ty, run(op, ty, args));
                let expected = library(op, x, y);
                let rounded = f64_of(ty, bits_of(ty, expected));
                if got == rounded || got.is_nan() && rounded.is_nan() {
                    continue;
                }
                let error = (got - expected).abs() / ulp(ty, expected);
                assert!(error <= limit, "{op:?} {ty} ({x:e}, {y:e}): {got:e}, not {expected:e}: {error} ulp");
            }
        }
    }
}

/// The largest error of f32, in ulps, over every so manieth pattern of bits.
fn largest_error(op: ScalarOp, step: usize) -> (f64, f32) {
    let mut most = (0.0, 0.0);
    for bits in (0..=u32::MAX).step_by(step) {
        let x = f32::from_bits(bits);
        let (got, want) = (f32::from_bits(run(op, DType::F32, &[bits as u64]) as u32), library(op, x as f64, 0.0));
        if got == want as f32 || got.is_nan() && want.is_nan() {
            continue;
        }
        let error = (got as f64 - want).abs() / ulp(DType::F32, want);
        if error.is_nan() || error > most.0 {
            most = (error, x);
        }
    }
    most
}

fn those_of_f32_stay_within_the_bounds(step: usize) {
    for op in ONE.into_iter().filter(|&op| !flushes(op)) {
        let (error, x) = largest_error(op, step);
        println!("{op:?}: {error:.3} ulp at {x:e}");
        assert!(error <= bound(op)[0], "{op:?} of {x:e}: {error} ulp");
    }
}

#[test]
fn many_f32_stay_within_the_bounds() {
    those_of_f32_stay_within_the_bounds(50021);
}

/// Some minutes: `cargo test --release -p girih-compiler --lib every_f32 -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn every_f32_stays_within_the_bounds() {
    those_of_f32_stay_within_the_bounds(1);
}

#[test]
fn hard_cases_of_f64() {
    for &(op, args, hi, lo) in HARD {
        let bits: Vec<u64> = args.iter().map(|x: &f64| x.to_bits()).collect();
        let got = f64::from_bits(run(op, DType::F64, &bits));
        // Beside their zeros, the error of these is absolute.
        let least = if matches!(op, ScalarOp::LogGamma | ScalarOp::Digamma) { 16.0 } else { 0.0 };
        let error = ((got - hi) - lo).abs() / ulp(DType::F64, hi.abs().max(least));
        assert!(error <= bound(op)[1], "{op:?} {args:?}: {got:e}, not {hi:e}: {error} ulp");
    }
}

#[test]
fn special_values_are_those_of_the_c_library() {
    for ty in [DType::F32, DType::F64] {
        let (max, tiny) = if ty == DType::F32 { (f32::MAX as f64, 1e-45) } else { (f64::MAX, 5e-324) };
        let inf = f64::INFINITY;
        let positive = [0.0, tiny, 0.5, 1.0, 1.5, 2.0, 3.0, 9007199254740993.0, max, inf, f64::NAN];
        let values: Vec<f64> = positive.iter().flat_map(|&x| [x, -x]).map(|x| f64_of(ty, bits_of(ty, x))).collect();
        let exact = |x: f64| x.is_nan() || x.is_infinite() || x == 0.0;
        let check = |op: ScalarOp, x: f64, y: f64, args: &[u64]| {
            let got = f64_of(ty, run(op, ty, args));
            let expected = f64_of(ty, bits_of(ty, library(op, x, y)));
            if exact(expected) || exact(got) {
                let same = got.is_nan() && expected.is_nan() || got.to_bits() == expected.to_bits();
                assert!(same, "{op:?} {ty} ({x:e}, {y:e}): {got:e}, not {expected:e}");
            }
        };
        for &x in &values {
            for op in ONE {
                if !flushes(op) || ty == DType::F32 && (x == 0.0 || x.abs() >= 0.5) {
                    check(op, x, 0.0, &[bits_of(ty, x)]);
                }
            }
            for &y in &values {
                for op in TWO {
                    check(op, x, y, &[bits_of(ty, x), bits_of(ty, y)]);
                }
            }
            for n in [0, 1, -1, 2, -2, 3, -3, i32::MAX, i32::MIN] {
                check(ScalarOp::PowI, x, n as f64, &[bits_of(ty, x), n as u32 as u64]);
            }
        }
    }
}

#[test]
fn special_values_of_functions_that_the_c_library_has_not() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let cases: [(ScalarOp, &[(f64, f64)]); 6] = [
        (ScalarOp::ErfInv, &[(0.0, 0.0), (1.0, inf), (-1.0, -inf), (1.5, nan), (-2.0, nan), (inf, nan), (nan, nan)]),
        (ScalarOp::NormalQuantile, &[(0.5, 0.0), (0.0, -inf), (1.0, inf), (-0.5, nan), (1.5, nan), (nan, nan)]),
        (
            ScalarOp::LogGamma,
            &[(0.0, inf), (-0.0, inf), (-1.0, inf), (-7.0, inf), (inf, inf), (-inf, inf), (1e308, inf), (nan, nan)],
        ),
        (ScalarOp::Digamma, &[(0.0, -inf), (-0.0, inf), (-1.0, nan), (-7.0, nan), (inf, inf), (-inf, nan), (nan, nan)]),
        (ScalarOp::BesselI0e, &[(0.0, 1.0), (inf, 0.0), (-inf, 0.0), (nan, nan)]),
        (ScalarOp::BesselI1e, &[(0.0, 0.0), (inf, 0.0), (nan, nan)]),
    ];
    for (op, values) in cases {
        for (x, y) in values {
            for ty in [DType::F32, DType::F64] {
                let got = f64_of(ty, run(op, ty, &[bits_of(ty, *x)]));
                assert!(got == *y || got.is_nan() && y.is_nan(), "{op:?} {ty} {x:e}: {got:e}, not {y:e}");
            }
        }
    }
}

/// `f` undoes `erf`, and the functions keep their recurrences over all sizes of arguments.
#[test]
fn special_functions_keep_their_identities() {
    let mut random = Random(23);
    let at = |op, x: f64| f64::from_bits(run(op, DType::F64, &[x.to_bits()]));
    for _ in 0..4000 {
        let x = random.uniform() * 1.9 - 0.95;
        let back = erf(at(ScalarOp::ErfInv, x));
        assert!((back - x).abs() <= 1e-14 * x.abs(), "erf(erfinv({x:e})) = {back:e}");
        let p = 0.5 + x / 2.0;
        let (direct, inverse) = (at(ScalarOp::NormalQuantile, p), at(ScalarOp::ErfInv, 2.0 * p - 1.0));
        assert!((direct - inverse * std::f64::consts::SQRT_2).abs() <= 1e-14, "{p:e}: {direct:e}");
        // gamma(x + 1) = x gamma(x), for negative x too.
        let x = random.argument(9.0);
        let (l, m) = (at(ScalarOp::LogGamma, x), at(ScalarOp::LogGamma, x + 1.0));
        let near_pole = (x - x.round()).abs() < 1e-6;
        assert!(near_pole || (m - l - x.abs().ln()).abs() <= 1e-14 * (l.abs() + 16.0), "lgamma {x:e}");
        let (l, m) = (at(ScalarOp::Digamma, x), at(ScalarOp::Digamma, x + 1.0));
        assert!(near_pole || (m - l - 1.0 / x).abs() <= 2e-9 * (l.abs() + 1.0), "digamma {x:e}: {l:e} {m:e}");
    }
}

#[test]
fn the_recorded_program_computes_the_same_bits() {
    let mut random = Random(5);
    for (op, ty) in programs() {
        let recorded = program(op, ty).expect("a transcendental");
        assert!(recorded.name.starts_with("girih_") && recorded.name.ends_with(ty.name()));
        for i in 0..500 {
            let mut args: Vec<u64> = recorded.params.iter().map(|k| random.next() >> (64 - k.bits())).collect();
            if i % 2 == 0 {
                args[0] = bits_of(ty, random.argument(reach(op, ty)));
            }
            let expected = run(op, ty, &args);
            assert_eq!(recorded.run(&args), expected, "{} {args:x?}", recorded.name);
            if let (Some(usual), Some(simpler)) = (&recorded.usual, recorded.where_usual())
                && (Program { result: usual.mask, ..recorded.clone() }).run(&args) != 0
            {
                assert_eq!(simpler.run(&args), expected, "{} {args:x?} by what is usual", recorded.name);
            }
        }
    }
    assert_eq!(program(ScalarOp::Exp, DType::F16), None);
    assert_eq!(program(ScalarOp::Exp2 { ftz: true }, DType::F64), None);
    assert_eq!(program(ScalarOp::AddI, DType::F32), None);
}

/// Every step refers to earlier values of the right kinds, so a printer needs no checks.
#[test]
fn programs_are_well_formed() {
    for (op, ty) in programs() {
        let p = program(op, ty).expect("a transcendental");
        for (i, step) in p.steps.iter().enumerate() {
            let n = p.params.len() + i;
            assert!(step.args.iter().all(|a| (a.0 as usize) < n));
            let kinds: Vec<Kind> = step.args.iter().map(|&a| p.kind(a)).collect();
            let (k, mask) = (step.kind, matches!(step.kind, Kind::M32 | Kind::M64));
            let ok = match step.op {
                Op::Const(bits) => kinds.is_empty() && bits <= k.dtype().mask(),
                Op::Add | Op::Sub | Op::Mul => kinds == [k, k] && !mask,
                Op::Div => kinds == [k, k] && k.is_float(),
                Op::Fma => kinds == [k, k, k] && k.is_float(),
                Op::Sqrt | Op::Rint => kinds == [k] && k.is_float(),
                Op::Min | Op::Max | Op::Scale | Op::ScaleNormal => kinds == [k, k] && k.is_float(),
                Op::And | Op::Or | Op::Xor => kinds == [k, k] && !k.is_float(),
                Op::Shl | Op::Shr | Op::Sar => kinds == [k, k] && !k.is_float() && !mask,
                Op::Lt | Op::Le | Op::Eq | Op::Ne => kinds.len() == 2 && kinds[0] == kinds[1] && kinds[0].mask() == k,
                Op::Select => kinds == [k.mask(), k, k],
                Op::Bitcast => kinds.len() == 1 && kinds[0].bits() == k.bits(),
                Op::Convert => matches!(
                    (kinds.as_slice(), k),
                    ([Kind::F32 | Kind::I32], Kind::F64)
                        | ([Kind::F64], Kind::F32)
                        | ([Kind::M32], Kind::M64)
                        | ([Kind::M64], Kind::M32)
                ),
            };
            assert!(ok, "{} step {i}: {step:?} of {kinds:?}", p.name);
        }
    }
}

/// Values worked out with 2400 bits, as a sum of two f64.
#[rustfmt::skip]
#[allow(clippy::approx_constant)]
const HARD: &[(ScalarOp, &[f64], f64, f64)] = &[
    (ScalarOp::Exp, &[1.0], 2.718281828459045, 1.4456468917292502e-16),
    (ScalarOp::Exp, &[-0.5], 0.6065306597126334, -6.593178415491414e-19),
    (ScalarOp::Exp, &[700.25], 1.3022997366991783e+304, 7.154767958193286e+287),
    (ScalarOp::Exp, &[-744.0], 1e-323, -0.0),
    (ScalarOp::Exp, &[1e-09], 1.000000001, -8.224037093664211e-17),
    (ScalarOp::Exp, &[-37.7], 4.2373860474966705e-17, 7.5694193872049685e-34),
    (ScalarOp::Exp2 { ftz: false }, &[0.5], 1.4142135623730951, -9.667293313452913e-17),
    (ScalarOp::Exp2 { ftz: false }, &[-1073.5], 5e-324, 0.0),
    (ScalarOp::Exp2 { ftz: false }, &[1023.25], 1.068914733284906e+308, 3.579220722261484e+291),
    (ScalarOp::Exp2 { ftz: false }, &[1e-09], 1.000000000693147, 8.55237134015003e-17),
    (ScalarOp::Exp2 { ftz: false }, &[-0.3], 0.8122523963562356, -5.534680269627686e-17),
    (ScalarOp::Log, &[2.0], 0.6931471805599453, 2.3190468138462996e-17),
    (ScalarOp::Log, &[0.7], -0.35667494393873245, 4.82556379937662e-18),
    (ScalarOp::Log, &[1.0000001], 9.999999505838704e-08, 1.5249709528441489e-24),
    (ScalarOp::Log, &[0.9999999], -1.0000000494736474e-07, -5.529865283193222e-24),
    (ScalarOp::Log, &[5e-324], -744.4400719213812, -4.422444340918698e-14),
    (ScalarOp::Log, &[1e+300], 690.7755278982137, 2.3747660028800243e-14),
    (ScalarOp::Log2, &[3.0], 1.584962500721156, 1.0579781240112554e-16),
    (ScalarOp::Log2, &[0.71], -0.4941090702700427, -1.2539604651403843e-17),
    (ScalarOp::Log2, &[1.0000001], 1.4426949695965583e-07, 6.897421541207991e-24),
    (ScalarOp::Log2, &[0.9999999], -1.4426951122643492e-07, -5.26346972537971e-24),
    (ScalarOp::Log2, &[5e-324], -1074.0, 0.0),
    (ScalarOp::Log2, &[1e+300], 996.5784284662087, -1.5800929191358255e-14),
    (ScalarOp::Sin, &[1.0], 0.8414709848078965, 1.776845092935536e-18),
    (ScalarOp::Sin, &[3.141592653589793], 1.2246467991473532e-16, -2.99476980971834e-33),
    (ScalarOp::Sin, &[5.319372648326541e+255], 1.0, -1.098476220074687e-37),
    (ScalarOp::Sin, &[1e+22], -0.8522008497671888, -6.7806825896773284e-18),
    (ScalarOp::Sin, &[1073741824.5], -0.16458741069886315, -6.057632978484331e-18),
    (ScalarOp::Sin, &[-100.25], 0.2772828564548513, 1.361336774720287e-17),
    (ScalarOp::Cos, &[1.0], 0.5403023058681398, -4.760954612604417e-17),
    (ScalarOp::Cos, &[1.5707963267948966], 6.123233995736766e-17, -1.4973849048591698e-33),
    (ScalarOp::Cos, &[5.319372648326541e+255], -4.687165924254628e-19, 4.3720557429382733e-36),
    (ScalarOp::Cos, &[1e+22], 0.523214785395139, -4.7143201076575164e-17),
    (ScalarOp::Cos, &[1.7e+308], 0.803536056087918, 2.750772532225659e-18),
    (ScalarOp::Cos, &[11.0], 0.004425697988050785, 3.2449142686784373e-19),
    (ScalarOp::Tan, &[0.75], 0.9315964599440725, -1.3547381396593036e-17),
    (ScalarOp::Tan, &[1.5707963267948966], 1.633123935319537e+16, -0.24403226295847108),
    (ScalarOp::Tan, &[5.319372648326541e+255], -2.133485385753704e+18, 92.32514733665552),
    (ScalarOp::Tan, &[1e+22], -1.6287782256068988, -1.0114934254126034e-16),
    (ScalarOp::Tan, &[-2.25], 1.2386276162240966, -8.619478700942363e-17),
    (ScalarOp::Sinh, &[0.999], 1.173658700352452, -1.848129076778294e-17),
    (ScalarOp::Sinh, &[1.001], 1.1767448621364425, -3.314646788838812e-17),
    (ScalarOp::Sinh, &[-710.25], -1.4342530302495124e+308, 5.129124416783556e+291),
    (ScalarOp::Sinh, &[1e-08], 1e-08, 1.6666666666666668e-25),
    (ScalarOp::Sinh, &[20.0], 242582597.70489514, -7.865629467297586e-10),
    (ScalarOp::Cosh, &[0.3], 1.0453385141288605, 7.371812611119388e-18),
    (ScalarOp::Cosh, &[710.25], 1.4342530302495124e+308, -5.129124416783556e+291),
    (ScalarOp::Cosh, &[-5.5], 122.34800951782942, 1.0830048406214577e-15),
    (ScalarOp::Tanh, &[0.549], 0.4997703566046211, 1.4937251055586414e-17),
    (ScalarOp::Tanh, &[0.551], 0.5012693155168682, -2.3166242478851836e-17),
    (ScalarOp::Tanh, &[-3.0], -0.9950547536867305, 1.2991892863562624e-17),
    (ScalarOp::Tanh, &[1e-08], 1e-08, -3.3333333333333335e-25),
    (ScalarOp::Tanh, &[18.0], 0.9999999999999996, -1.9815356198651153e-17),
    (ScalarOp::Erf, &[1e-09], 1.1283791670955127e-09, -1.624992790279848e-26),
    (ScalarOp::Erf, &[0.25], 0.27632639016823696, -2.4227076221184163e-17),
    (ScalarOp::Erf, &[0.9999], 0.8426592780487595, -3.002649280420523e-17),
    (ScalarOp::Erf, &[1.0001], 0.8427422995485203, 1.3349771582088852e-17),
    (ScalarOp::Erf, &[-1.5], -0.9661051464753108, 3.3867031441680696e-17),
    (ScalarOp::Erf, &[2.75], 0.9998993780778803, 4.451378916214761e-17),
    (ScalarOp::Erf, &[-4.0], -0.9999999845827421, -1.44826531920025e-17),
    (ScalarOp::Erf, &[5.5], 0.9999999999999927, -3.03759554483649e-17),
    (ScalarOp::Pow, &[1.0000001, 5000000000.0], 1.4035575382338372e+217, -5.186385586312682e+200),
    (ScalarOp::Pow, &[3.7, -200.5], 1.1900201758319669e-114, 8.735265335801923e-132),
    (ScalarOp::Pow, &[0.5, 1074.0], 5e-324, 0.0),
    (ScalarOp::Pow, &[1e+300, 1.02], 1.0000000000000123e+306, -1.109978482284647e+289),
    (ScalarOp::Pow, &[1e-310, -0.9], 1.0000000000000186e+279, 2.574272345618717e+262),
    (ScalarOp::Pow, &[0.9999, 7000000.0], 9.520534857662686e-305, -6.98e-321),
    (ScalarOp::Atan2, &[1.0, 1.0], 0.7853981633974483, 3.061616997868383e-17),
    (ScalarOp::Atan2, &[1.0, -3.0], 2.819842099193151, 5.903613615775535e-17),
    (ScalarOp::Atan2, &[-2.0, 5.0], -0.3805063771123649, 1.5600996341053028e-17),
    (ScalarOp::Atan2, &[1e+300, 1e-05], 1.5707963267948966, 6.123233995736766e-17),
    (ScalarOp::Atan2, &[-1e-310, -2.0], -3.141592653589793, -1.2246467991473532e-16),
    (ScalarOp::Atan2, &[5e-324, 1e-323], 0.4636476090008061, 2.2698777452961687e-17),
    (ScalarOp::Atan2, &[1.7e+308, -1.6e+308], 2.32590073027357, -7.787908244928991e-17),
    (ScalarOp::ErfInv, &[1e-9], 8.86226925452758e-10, 3.5784539398064e-26),
    (ScalarOp::ErfInv, &[0.25], 0.2253120550121781, 1.7832251208756863e-18),
    (ScalarOp::ErfInv, &[-0.7], -0.7328690779592167, -4.340965697571891e-17),
    (ScalarOp::ErfInv, &[0.9375], 1.3171503349861307, 9.356025251780236e-17),
    (ScalarOp::ErfInv, &[0.99], 1.8213863677184494, 3.867602214649965e-17),
    (ScalarOp::ErfInv, &[-0.999999], -3.458910737275499, 2.5923326683634916e-17),
    (ScalarOp::ErfInv, &[0.9999999999990905], 5.05125408524939, 6.467110071899297e-17),
    (ScalarOp::ErfInv, &[0.9999999999999999], 5.8635847487551676, 3.744492687184258e-16),
    (ScalarOp::NormalQuantile, &[1e-300], -37.0470962993612, 1.2855241155428752e-15),
    (ScalarOp::NormalQuantile, &[1e-30], -11.464024688443615, -5.011643290261287e-16),
    (ScalarOp::NormalQuantile, &[1e-10], -6.361340902404057, 3.862393341514606e-16),
    (ScalarOp::NormalQuantile, &[0.001], -3.0902323061678136, 1.0086380376146429e-16),
    (ScalarOp::NormalQuantile, &[0.02], -2.053748910631823, -7.842769707225502e-17),
    (ScalarOp::NormalQuantile, &[0.3], -0.5244005127080408, -3.7982303657688484e-17),
    (ScalarOp::NormalQuantile, &[0.75], 0.6744897501960817, 3.7755511355050287e-17),
    (ScalarOp::NormalQuantile, &[0.9999], 3.7190164854557084, -1.1710457228410711e-17),
    (ScalarOp::NormalQuantile, &[0.9999999999999991], 7.956038125481531, -3.689998694468376e-16),
    (ScalarOp::LogGamma, &[1e-30], 69.07755278982137, 2.2861791062469175e-15),
    (ScalarOp::LogGamma, &[0.1], 2.252712651734206, -8.214908571963665e-17),
    (ScalarOp::LogGamma, &[0.5], 0.5723649429247001, 5.132975581353913e-18),
    (ScalarOp::LogGamma, &[3.25], 0.9358019311087253, 2.0465037219625833e-17),
    (ScalarOp::LogGamma, &[7.999], 8.523145786158915, 2.1675424896993476e-16),
    (ScalarOp::LogGamma, &[8.0], 8.525161361065415, -3.667166030063331e-16),
    (ScalarOp::LogGamma, &[20.5], 40.8315009745308, 5.889199472793443e-16),
    (ScalarOp::LogGamma, &[1000.0], 5905.220423209181, 4.0378203819938306e-13),
    (ScalarOp::LogGamma, &[1e+20], 4.505170185988091e+21, 217677.875996972),
    (ScalarOp::LogGamma, &[-0.25], 1.589575312551186, -1.3457398636936592e-17),
    (ScalarOp::LogGamma, &[-3.75], -1.3172679424463636, -9.162940897537598e-17),
    (ScalarOp::LogGamma, &[-20.5], -42.70719597482576, -2.0745180154888606e-15),
    (ScalarOp::Digamma, &[1e-30], -9.999999999999999e+29, -37516442909086.6),
    (ScalarOp::Digamma, &[0.1], -10.423754940411076, -3.6769653932837104e-16),
    (ScalarOp::Digamma, &[0.5], -1.9635100260214235, 6.95842813380203e-17),
    (ScalarOp::Digamma, &[3.25], 1.016990911068179, 7.644647748914697e-17),
    (ScalarOp::Digamma, &[7.999], 2.015508332090348, -1.4868568498750878e-16),
    (ScalarOp::Digamma, &[8.0], 2.01564147795561, -2.2027375555724396e-16),
    (ScalarOp::Digamma, &[20.5], 2.9958363947076467, -1.5051837062040309e-16),
    (ScalarOp::Digamma, &[1000.0], 6.907255195648812, 8.916703251127857e-17),
    (ScalarOp::Digamma, &[1e+20], 46.051701859880914, -7.88803767963998e-16),
    (ScalarOp::Digamma, &[-0.25], 2.9141391202135276, 2.1864845561944062e-16),
    (ScalarOp::Digamma, &[-3.75], -1.6923885983113303, -8.202864746889125e-17),
    (ScalarOp::Digamma, &[-20.25], 6.174235633614484, -1.3990157906430413e-16),
    (ScalarOp::BesselI0e, &[0.0], 1.0, 0.0),
    (ScalarOp::BesselI0e, &[1e-5], 0.9999900000749996, -2.4292241975134844e-17),
    (ScalarOp::BesselI0e, &[0.5], 0.6450352704491501, -3.180599638750724e-17),
    (ScalarOp::BesselI0e, &[-3.0], 0.2430003541618254, 1.0306405784511648e-17),
    (ScalarOp::BesselI0e, &[7.99], 0.14352476537933484, 7.37692321533657e-18),
    (ScalarOp::BesselI0e, &[8.01], 0.14333897941113852, -7.118673203980112e-18),
    (ScalarOp::BesselI0e, &[100.0], 0.03994437929909668, 2.5893245062596133e-18),
    (ScalarOp::BesselI0e, &[10000.0], 0.003989472674604732, -1.960225209155685e-19),
    (ScalarOp::BesselI1e, &[1e-5], 4.999950000312499e-6, 2.44970148899604e-22),
    (ScalarOp::BesselI1e, &[0.5], 0.1564208031848717, -1.2897999141359503e-18),
    (ScalarOp::BesselI1e, &[-3.0], -0.19682671329730086, 1.1215916908230007e-17),
    (ScalarOp::BesselI1e, &[7.99], 0.134217339578281, -4.868886304951941e-18),
    (ScalarOp::BesselI1e, &[8.01], 0.13406776900984482, 8.519764587600661e-18),
    (ScalarOp::BesselI1e, &[100.0], 0.03974415302513025, 3.2832880193346512e-18),
    (ScalarOp::BesselI1e, &[-10000.0], -0.003989273195983662, -2.8460549949663345e-20),
];
