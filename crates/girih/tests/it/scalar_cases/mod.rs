//! Every scalar operation at every type it admits, as a kernel over arrays, with special and random values.
#![allow(dead_code)]

use girih_compiler::loops::ir::*;
use girih_compiler::num::op::{Predicate, Rounding as R, Signedness as S};
use girih_compiler::num::{DType, ScalarOp};

pub const N: u64 = 16 * 41 + 5;

pub struct Case {
    pub op: ScalarOp,
    pub at: DType,
    pub params: Vec<DType>,
    pub result: DType,
}

/// `for i in 0..N: out[i] = op(a[i], b[i], c[i])`
pub fn kernel(case: &Case, name: &str, lanes: u32) -> Kernel {
    let mut k = Kernel { name: name.to_string(), ..Kernel::default() };
    let mut bases = Vec::new();
    for (i, &d) in case.params.iter().chain([&case.result]).enumerate() {
        let val = k.vals.push(Val { ty: Ty::Ptr(d), name: format!("p{i}") });
        k.params.push(Param { name: format!("p{i}"), ty: Ty::Ptr(d), val, div_by: 1, range: None });
        bases.push(val);
    }
    let site = k.sites.push(Site { op: "load".into(), ..Site::default() });
    let axis = k.axes.push(Axis { name: "i".into(), from: None });
    let mem = |base, elem| Mem { base, index: Ix::Axis(axis), elem };
    let mut body = Vec::new();
    let mut args = Vec::new();
    for (i, &d) in case.params.iter().enumerate() {
        let dst = k.vals.push(Val { ty: Ty::Num(d), name: format!("x{i}") });
        let mask = Mask::default();
        body.push(Stmt::Load { dst, mem: mem(bases[i], d), mask, other: None, order: Order::Weak, site });
        args.push(Opnd::Val(dst));
    }
    let dst = k.vals.push(Val { ty: Ty::Num(case.result), name: "r".into() });
    body.push(Stmt::Let { dst, op: case.op, args });
    let mem = mem(bases[case.params.len()], case.result);
    body.push(Stmt::Store { mem, value: Opnd::Val(dst), mask: Mask::default(), order: Order::Weak, site });
    k.body = vec![Stmt::For(Box::new(For {
        axis,
        lo: Ix::Const(0),
        hi: Ix::Const(N as i64),
        step: Ix::Const(1),
        kind: LoopKind::Free,
        place: if lanes > 1 { Place::Vector { lanes } } else { Place::None },
        combine: None,
        contraction: None,
        stream: None,
        body,
    }))];
    k
}

pub fn cases() -> Vec<Case> {
    use DType::*;
    let mut out = Vec::new();
    let mut add = |op: ScalarOp, at: DType, params: &[DType]| {
        out.push(Case { op, at, params: params.to_vec(), result: op.result(at) })
    };
    for d in [F16, BF16, F32, F64] {
        for ftz in [false, true] {
            if ftz && d != F32 {
                continue;
            }
            for rounding in [R::NearestEven, R::Zero, R::NegativeInf, R::PositiveInf] {
                for op in [
                    ScalarOp::AddF { rounding, ftz },
                    ScalarOp::SubF { rounding, ftz },
                    ScalarOp::MulF { rounding, ftz },
                    ScalarOp::DivF { rounding, ftz },
                ] {
                    add(op, d, &[d, d]);
                }
                add(ScalarOp::Fma { rounding, ftz }, d, &[d, d, d]);
                add(ScalarOp::Sqrt { rounding, ftz }, d, &[d]);
            }
            add(ScalarOp::Rsqrt { ftz }, d, &[d]);
            add(ScalarOp::Exp2 { ftz }, d, &[d]);
            for nan in [false, true] {
                add(ScalarOp::MaxF { nan, ftz }, d, &[d, d]);
                add(ScalarOp::MinF { nan, ftz }, d, &[d, d]);
            }
        }
        use ScalarOp::*;
        for op in
            [NegF, AbsF, Ceil, Floor, RoundEven, Exp, Log, Log2, Sin, Cos, Tan, Sinh, Cosh, Tanh, Erf, ErfInv, LogGamma]
        {
            add(op, d, &[d]);
        }
        for op in [RemF, Pow, Atan2] {
            add(op, d, &[d, d]);
        }
        add(PowI, d, &[d, I32]);
        for ordered in [false, true] {
            for pred in PREDICATES {
                add(CmpF { pred, ordered }, d, &[d, d]);
            }
        }
        for to in [I1, I8, I16, I32, I64] {
            for sign in [S::Signed, S::Unsigned] {
                add(FToI { to, sign }, d, &[d]);
            }
        }
        add(Select, d, &[I1, d, d]);
    }
    add(ScalarOp::DotF, F32, &[I32, I32, F32]);
    add(ScalarOp::DotI, I32, &[I32; 3]);
    add(ScalarOp::DotB, I32, &[I32; 3]);
    for d in [I1, I8, I16, I32, I64] {
        use ScalarOp::*;
        for op in [AddI, SubI, MulI, MulHi, Shl, And, Or, Xor] {
            add(op, d, &[d, d]);
        }
        for sign in [S::Signed, S::Unsigned] {
            for op in [RemI { sign }, MaxI { sign }, MinI { sign }, Shr { sign }] {
                add(op, d, &[d, d]);
            }
            for rounding in [R::Zero, R::NegativeInf, R::PositiveInf] {
                add(DivI { sign, rounding }, d, &[d, d]);
            }
            for pred in PREDICATES {
                add(CmpI { pred, sign }, d, &[d, d]);
            }
            for to in [F16, BF16, F32, TF32, F64, F8E4M3FN, F8E5M2] {
                add(IToF { to, sign }, d, &[d]);
            }
            for to in [I8, I16, I32, I64] {
                if to.bits() > d.bits() {
                    add(ExtI { to, sign }, d, &[d]);
                }
            }
        }
        for op in [NegI, AbsI, Copy] {
            add(op, d, &[d]);
        }
        for to in [I1, I8, I16, I32] {
            if to.bits() < d.bits() {
                add(TruncI { to }, d, &[d]);
            }
        }
        add(Select, d, &[I1, d, d]);
    }
    let floats = [F16, BF16, F32, TF32, F64, F8E4M3FN, F8E5M2, F8E8M0FNU, F8E5M3FNU, F8E4M3FNUZ, F8E5M2FNUZ];
    for from in floats {
        for to in floats {
            for rounding in [R::NearestEven, R::Zero, R::PositiveInf] {
                if from != to && (rounding == R::NearestEven || to == F8E8M0FNU) {
                    add(ScalarOp::FToF { to, rounding }, from, &[from]);
                }
            }
        }
    }
    for (a, b) in [(F16, I16), (BF16, I16), (F32, I32), (F64, I64), (F8E5M2, I8)] {
        add(ScalarOp::Bitcast { to: b }, a, &[a]);
        add(ScalarOp::Bitcast { to: a }, b, &[b]);
    }
    out
}

const PREDICATES: [Predicate; 6] = [
    Predicate::Equal,
    Predicate::NotEqual,
    Predicate::LessThan,
    Predicate::LessThanOrEqual,
    Predicate::GreaterThan,
    Predicate::GreaterThanOrEqual,
];

/// Special values first, then random bits; operand `which` walks them at another pace.
pub fn values(d: DType, which: usize) -> Vec<u64> {
    let mut special: Vec<u64> = match d {
        DType::F32 | DType::TF32 => [
            0.0f32,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -1.5,
            2.5,
            3.0,
            f32::INFINITY,
            -f32::INFINITY,
            f32::NAN,
            f32::MAX,
            f32::MIN_POSITIVE,
            -1e-40,
            1e-45,
            88.0,
            -104.0,
            1e10,
            65504.0,
            65520.0,
            2147483648.0,
            -2147483648.0,
            0.1,
            1e-7,
        ]
        .iter()
        .map(|x| x.to_bits() as u64)
        .collect(),
        DType::F64 => [
            0.0f64,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -1.5,
            2.5,
            3.0,
            f64::INFINITY,
            -f64::INFINITY,
            f64::NAN,
            f64::MAX,
            f64::MIN_POSITIVE,
            -1e-310,
            5e-324,
            700.0,
            -750.0,
            1e10,
            65504.0,
            65520.0,
            9.3e18,
            -9.3e18,
            0.1,
            1e-7,
        ]
        .iter()
        .map(|x| x.to_bits())
        .collect(),
        DType::F16 => {
            vec![0, 0x8000, 0x3c00, 0xbc00, 0x3800, 0x7c00, 0xfc00, 0x7e00, 0x7bff, 0x0400, 1, 0x8001, 0x4200, 0x4900]
        }
        DType::BF16 => {
            vec![0, 0x8000, 0x3f80, 0xbf80, 0x3f00, 0x7f80, 0xff80, 0x7fc0, 0x7f7f, 0x0080, 1, 0x8001, 0x4040, 0x42b0]
        }
        _ => vec![0, 1, 2, 3, 5, 7, 31, 32, 63, 64, d.mask(), d.mask() >> 1, (d.mask() >> 1) + 1, d.mask() - 1],
    };
    special.iter_mut().for_each(|x| *x &= d.mask());
    let mut seed = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(which as u64 * 2 + 1);
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    (0..N as usize)
        .map(|i| {
            let bits = if i < 600 {
                special[if which == 0 {
                    i % special.len()
                } else if which == 1 {
                    i / special.len() % special.len()
                } else {
                    (i * 7 + i / 31) % special.len()
                }]
            } else if d.is_float() && i % 2 == 0 && d.bits() >= 32 {
                // Moderate numbers, where results are neither huge nor tiny.
                let x = (random() as i32) as f64 / (1u64 << (random() % 40)) as f64;
                if d == DType::F64 { x.to_bits() } else { (x as f32).to_bits() as u64 }
            } else {
                random()
            };
            let bits = bits & d.mask();
            if d == DType::TF32 { bits & !0x1fff } else { bits }
        })
        .collect()
}

pub fn bytes(d: DType, values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()[..d.bytes() as usize].to_vec()).collect()
}

pub fn is_nan(d: DType, bits: u64) -> bool {
    match d {
        DType::F16 => bits & 0x7fff > 0x7c00,
        DType::BF16 => bits & 0x7fff > 0x7f80,
        DType::F32 | DType::TF32 => bits & 0x7fff_ffff > 0x7f80_0000,
        DType::F64 => bits & (u64::MAX >> 1) > 0x7ff0 << 48,
        _ => false,
    }
}
