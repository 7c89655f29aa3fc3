//! Straight-line programs: the form of a transcendental function.
//!
//! In: nothing; `math::program(op, dtype)` records one. Out: a [`Program`], executed by [`Program::run`] and printed by
//! `emit` as one C function per lane count. For example `x*x + 1` on f32 is
//! ```text
//! girih_example_f32(f32 v0) {
//!   v1 = mul v0, v0      : f32
//!   v2 = const 0x3f800000: f32
//!   v3 = add v1, v2      : f32
//! } -> v3
//! ```
//!
//! Invariants: values are numbered parameters first, then steps; a step only refers to values before it; every step is
//! lane-wise, without branches or memory; no step depends on the sign or payload of a NaN except through [`Op::Bitcast`],
//! and no program's result does.
//!
//! How each [`Op`] prints in C, for lanes `n`, on GNU vector types (`f32xn` and so on) as on scalars:
//!
//! | op | C |
//! |---|---|
//! | `Const` | a splat of the value with these bits (print floats as hexadecimal literals) |
//! | `Add Sub Mul Div` | `a + b` ... (integers as unsigned, they wrap) |
//! | `Fma` | a lane loop over `__builtin_fma[f](a, b, c)` |
//! | `Sqrt`, `Rint` | a lane loop over `__builtin_sqrt[f]`, `__builtin_rint[f]` |
//! | `Min Max` | a lane loop over `a < b ? a : b`, `a > b ? a : b`, which is one instruction |
//! | `Scale`, `ScaleNormal` | factors made of the low bits of the second operand, or `vscalefps` |
//! | `And Or Xor` | `a & b` ... (integers and masks) |
//! | `Shl Shr Sar` | `a << b`, unsigned `a >> b`, signed `a >> b`; amounts are below the width |
//! | `Lt Le Eq Ne` | `a < b` ...: a vector comparison already gives all ones or zero; for a scalar, `-(a < b)` |
//! | `Select` | `(m & a) | (~m & b)` on the bits, or `m ? a : b` for scalars |
//! | `Bitcast` | a cast between vectors of one size (a union or `memcpy` for scalars); mask and integer share a type |
//! | `Convert` | `__builtin_convertvector`, a cast for scalars: f32 to f64, f64 to f32, i32 to f64, i32 to i64, i64 to i32, mask to mask |

use crate::num::DType;

/// The type of a value in a program. A mask is an integer of its width that is all ones (true) or zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    F32,
    F64,
    I32,
    I64,
    M32,
    M64,
}

impl Kind {
    pub fn bits(self) -> u32 {
        match self {
            Kind::F32 | Kind::I32 | Kind::M32 => 32,
            Kind::F64 | Kind::I64 | Kind::M64 => 64,
        }
    }
    pub fn is_float(self) -> bool {
        matches!(self, Kind::F32 | Kind::F64)
    }
    /// The mask that a comparison of values of this kind gives.
    pub fn mask(self) -> Kind {
        if self.bits() == 32 { Kind::M32 } else { Kind::M64 }
    }
    /// The integer of this width.
    pub fn int(self) -> Kind {
        if self.bits() == 32 { Kind::I32 } else { Kind::I64 }
    }
    /// The element type that holds such a value; a mask is held as an integer.
    pub fn dtype(self) -> DType {
        match self {
            Kind::F32 => DType::F32,
            Kind::F64 => DType::F64,
            Kind::I32 | Kind::M32 => DType::I32,
            Kind::I64 | Kind::M64 => DType::I64,
        }
    }
}

/// One lane-wise operation. Operands are of the result's kind unless a comment says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Op {
    /// These bits; no operands.
    Const(u64),
    Add,
    Sub,
    Mul,
    /// Floats only.
    Div,
    /// Floats only: a*b + c rounded once.
    Fma,
    /// Floats only, correctly rounded.
    Sqrt,
    /// Floats only: the nearest integer, ties to even.
    Rint,
    /// Floats only: the lesser, and the second operand where either is NaN.
    Min,
    /// Floats only: the greater, and the second operand where either is NaN.
    Max,
    /// Floats only: a * 2^n, rounded once; the second operand is n + [`integer_bits`], or NaN if a is NaN. The size of
    /// n is at most twice that of an exponent.
    Scale,
    /// The same if neither 2^n nor the result leaves the range of normal numbers, or a is NaN.
    ScaleNormal,
    And,
    Or,
    Xor,
    Shl,
    /// Logical right shift.
    Shr,
    /// Arithmetic right shift.
    Sar,
    /// Comparisons of two floats or two signed integers of one kind, giving a mask of their width. False if an operand
    /// is NaN, except `Ne`, which is true then.
    Lt,
    Le,
    Eq,
    Ne,
    /// (mask of the width, a, b)
    Select,
    /// Any kind of the same width.
    Bitcast,
    /// Between f32 and f64, i32 to f64 (exact), i32 and i64 (sign extension, truncation), and between masks.
    Convert,
}

/// A value: a parameter or the result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Val(pub u32);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    pub op: Op,
    pub args: Vec<Val>,
    pub kind: Kind,
}

/// A straight-line function. `Val(i)` is parameter `i` for `i < params.len()`, else the step `i - params.len()`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// The C function's name, such as `girih_exp_f32`; a printer appends its lane count.
    pub name: String,
    pub params: Vec<Kind>,
    pub steps: Vec<Step>,
    pub result: Val,
    /// A printer may test if its mask holds in every lane, and then print the shorter program.
    pub usual: Option<Usual>,
}

/// A simpler program for nearly all cases.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Usual {
    /// The condition, which nearly always holds.
    pub mask: Val,
    /// Values, each with the value that it is equal to where the mask holds.
    pub same: Vec<(Val, Val)>,
}

/// 1.5 times 2^(precision - 1): adding it to a number rounds the number to an integer, which is then in the low bits of
/// the sum.
pub fn integer_bits(kind: Kind) -> f64 {
    if kind == Kind::F32 { 12582912.0 } else { 6755399441055744.0 }
}

impl Program {
    /// The bits of a constant; `None` for other values.
    pub fn constant(&self, value: Val) -> Option<u64> {
        let step = (value.0 as usize).checked_sub(self.params.len()).and_then(|i| self.steps.get(i))?;
        if let Op::Const(bits) = step.op { Some(bits) } else { None }
    }

    pub fn kind(&self, value: Val) -> Kind {
        let i = value.0 as usize;
        if i < self.params.len() { self.params[i] } else { self.steps[i - self.params.len()].kind }
    }

    /// The program for values where the usual mask holds: the same result, computed from the simpler values.
    pub fn where_usual(&self) -> Option<Program> {
        let usual = self.usual.as_ref()?;
        let n = self.params.len();
        // The new name of each value.
        let mut named: Vec<Val> = (0..(n + self.steps.len()) as u32).map(Val).collect();
        let mut steps = self.steps.clone();
        for (i, step) in steps.iter_mut().enumerate() {
            step.args.iter_mut().for_each(|a| *a = named[a.0 as usize]);
            if let Some((_, simple)) = usual.same.iter().find(|(value, _)| value.0 as usize == n + i) {
                named[n + i] = named[simple.0 as usize];
            }
        }
        Some(Program { steps, result: named[self.result.0 as usize], usual: None, ..self.clone() })
    }

    /// For each value, whether the result depends on it.
    pub fn live(&self, result: Val) -> Vec<bool> {
        let n = self.params.len();
        let mut live = vec![false; n + self.steps.len()];
        live[result.0 as usize] = true;
        for (i, step) in self.steps.iter().enumerate().rev() {
            if live[n + i] {
                step.args.iter().for_each(|a| live[a.0 as usize] = true);
            }
        }
        live
    }

    /// The program's value on these parameter bits.
    pub fn run(&self, params: &[u64]) -> u64 {
        debug_assert_eq!(params.len(), self.params.len());
        let mut values = params.to_vec();
        for step in &self.steps {
            let arg = |i: usize| step.args.get(i).map_or(0, |v| values[v.0 as usize]);
            let source = step.args.first().map_or(step.kind, |&v| self.kind(v));
            let value = apply(step.op, step.kind, source, [arg(0), arg(1), arg(2)]);
            values.push(value);
        }
        values[self.result.0 as usize]
    }
}

/// One step's result: `kind` is its kind, `source` that of the first operand. Unused operands are ignored.
#[inline(always)]
pub fn apply(op: Op, kind: Kind, source: Kind, [a, b, c]: [u64; 3]) -> u64 {
    let f = |x: u64| f32::from_bits(x as u32);
    let d = f64::from_bits;
    let wide = |x: u64, k: Kind| if k.bits() == 32 { x as i32 as i64 } else { x as i64 };
    let narrow = |x: i64| if kind.bits() == 32 { x as u32 as u64 } else { x as u64 };
    let truth = |t: bool| narrow(-(t as i64));
    macro_rules! arithmetic {
        ($float:tt, $int:ident) => {
            match kind {
                Kind::F32 => (f(a) $float f(b)).to_bits() as u64,
                Kind::F64 => (d(a) $float d(b)).to_bits(),
                _ => narrow(wide(a, kind).$int(wide(b, kind))),
            }
        };
    }
    macro_rules! compare {
        ($op:tt) => {
            truth(match source {
                Kind::F32 => f(a) $op f(b),
                Kind::F64 => d(a) $op d(b),
                _ => wide(a, source) $op wide(b, source),
            })
        };
    }
    macro_rules! unary {
        ($f:ident) => {
            if kind == Kind::F32 { f(a).$f().to_bits() as u64 } else { d(a).$f().to_bits() }
        };
    }
    match op {
        Op::Const(bits) => bits,
        Op::Add => arithmetic!(+, wrapping_add),
        Op::Sub => arithmetic!(-, wrapping_sub),
        Op::Mul => arithmetic!(*, wrapping_mul),
        Op::Div if kind == Kind::F32 => (f(a) / f(b)).to_bits() as u64,
        Op::Div => (d(a) / d(b)).to_bits(),
        Op::Fma if kind == Kind::F32 => f(a).mul_add(f(b), f(c)).to_bits() as u64,
        Op::Fma => d(a).mul_add(d(b), d(c)).to_bits(),
        Op::Sqrt => unary!(sqrt),
        Op::Rint => unary!(round_ties_even),
        Op::Min | Op::Max => {
            let (low, high) = match kind {
                Kind::F32 => (f(a) < f(b), f(a) > f(b)),
                _ => (d(a) < d(b), d(a) > d(b)),
            };
            if if op == Op::Min { low } else { high } { a } else { b }
        }
        Op::Scale | Op::ScaleNormal if kind == Kind::F32 => {
            let n = (f(b) - integer_bits(kind) as f32) as i32;
            let power = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
            (f(a) * power(n >> 1) * power(n - (n >> 1))).to_bits() as u64
        }
        Op::Scale | Op::ScaleNormal => {
            let n = (d(b) - integer_bits(kind)) as i64;
            let power = |n: i64| f64::from_bits((n.wrapping_add(1023) as u64) << 52);
            (d(a) * power(n >> 1) * power(n - (n >> 1))).to_bits()
        }
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::Shl if kind.bits() == 32 => (a as u32).wrapping_shl(b as u32) as u64,
        Op::Shl => a.wrapping_shl(b as u32),
        Op::Shr if kind.bits() == 32 => (a as u32).wrapping_shr(b as u32) as u64,
        Op::Shr => a.wrapping_shr(b as u32),
        Op::Sar => narrow(wide(a, kind).wrapping_shr(b as u32)),
        Op::Lt => compare!(<),
        Op::Le => compare!(<=),
        Op::Eq => compare!(==),
        Op::Ne => compare!(!=),
        Op::Select => {
            if a != 0 {
                b
            } else {
                c
            }
        }
        Op::Bitcast => a,
        Op::Convert => match (source, kind) {
            (Kind::F32, Kind::F64) => (f(a) as f64).to_bits(),
            (Kind::F64, Kind::F32) => (d(a) as f32).to_bits() as u64,
            (Kind::I32, Kind::F64) => (a as i32 as f64).to_bits(),
            _ => narrow(wide(a, source)),
        },
    }
}
