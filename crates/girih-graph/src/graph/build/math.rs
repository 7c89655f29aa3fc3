//! Arithmetic by element type, so that decompositions read like formulas.

use super::{Builder, Refusal, Result};
use crate::graph::Elem;
use crate::graph::ir::{self, Arg, ReduceOp};
use crate::num::op::{Predicate, Rounding, Signedness};
use crate::num::{DType, ScalarOp};

const NEAREST: Rounding = Rounding::NearestEven;

/// Converts between element types: floats round to nearest even, floats to integers truncate and saturate, anything to
/// bool asks whether it is not zero (see [`Builder::convert`]).
fn conversion(from: Elem, to: Elem) -> Option<ScalarOp> {
    Some(match (from.is_float(), to.is_float()) {
        (true, true) if from.dtype == to.dtype => return None,
        (true, true) => ScalarOp::FToF { to: to.dtype, rounding: NEAREST },
        (true, false) => ScalarOp::FToI { to: to.dtype, sign: to.sign() },
        (false, true) => ScalarOp::IToF { to: to.dtype, sign: from.sign() },
        (false, false) if from.dtype == to.dtype => return None,
        (false, false) if from.dtype.bits() < to.dtype.bits() => ScalarOp::ExtI { to: to.dtype, sign: from.sign() },
        (false, false) => ScalarOp::TruncI { to: to.dtype },
    })
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident => $op:expr;)*) => {
        $($(#[$doc])* pub fn $name(&mut self, x: Arg) -> Result<Arg> { self.elementwise($op, &[x]) })*
    };
}

impl Builder<'_> {
    /// `x` in another element type.
    pub fn convert(&mut self, x: Arg, to: Elem) -> Result<Arg> {
        let from = self.elem(x);
        if from == to {
            return Ok(x);
        }
        if to.is_bool() {
            let zero = self.scalar_like(x, 0.0);
            return self.compare(Predicate::NotEqual, x, zero);
        }
        if to.two_bits {
            return self.wrap_to_two_bits(x, to);
        }
        match conversion(from, to) {
            None => self.elementwise_to(ScalarOp::Copy, &[x], to),
            Some(op) => self.elementwise_to(op, &[x], to),
        }
    }

    /// Converts a float to an integer as processors do: truncated to 32 bits, or to 64 bits for targets with more than
    /// 32; numbers that do not fit there, and NaN, become the least integer. A narrower type takes the last bits, so
    /// that -1 is 255 in eight.
    pub fn truncated(&mut self, x: Arg, to: Elem) -> Result<Arg> {
        let long = to.dtype.bits() > 32 || (to.dtype.bits() == 32 && to.unsigned);
        let (wide, bits) = if long { (Elem::I64, 63) } else { (Elem::I32, 31) };
        let limit = 2f64.powi(bits);
        let x = if self.elem(x).dtype.is_base_float() { x } else { self.convert(x, Elem::F32)? };
        let (low, high) = (self.scalar_like(x, -limit), self.scalar_like(x, limit));
        let mut whole = self.convert(x, wide)?;
        // In a format that ends before the integers do, only infinities lie outside.
        let above = self.compare(Predicate::GreaterThanOrEqual, x, low)?;
        let below = self.compare(Predicate::LessThan, x, high)?;
        let fits = self.and(above, below)?;
        whole = self.select(fits, whole, ir::int_scalar(wide, -1 << bits))?;
        if to == Elem::U64 {
            // From 2^63 on the unsigned conversion gives the bits.
            let rest = self.convert(x, to)?;
            whole = self.convert(whole, to)?;
            let beyond = self.compare(Predicate::GreaterThanOrEqual, x, high)?;
            return self.select(beyond, rest, whole);
        }
        self.convert(whole, to)
    }

    /// The two last bits of an integer, with the sign that the second stands for.
    fn wrap_to_two_bits(&mut self, x: Arg, to: Elem) -> Result<Arg> {
        let byte = Elem { two_bits: false, ..to };
        let x = self.convert(x, byte)?;
        let mut last = self.elementwise(ScalarOp::And, &[x, ir::int_scalar(byte, 3)])?;
        if !to.unsigned {
            let sign = ir::int_scalar(byte, 2);
            last = self.elementwise(ScalarOp::Xor, &[last, sign])?;
            last = self.elementwise(ScalarOp::SubI, &[last, sign])?;
        }
        self.elementwise_to(ScalarOp::Copy, &[last], to)
    }

    unary! {
        exp => ScalarOp::Exp;
        log => ScalarOp::Log;
        sqrt => ScalarOp::Sqrt { rounding: NEAREST, ftz: false };
        rsqrt => ScalarOp::Rsqrt { ftz: false };
        tanh => ScalarOp::Tanh;
        erf => ScalarOp::Erf;
        sin => ScalarOp::Sin;
        cos => ScalarOp::Cos;
        floor => ScalarOp::Floor;
        ceil => ScalarOp::Ceil;
        /// To the nearest integer, ties to even.
        round_even => ScalarOp::RoundEven;
        /// For bools only.
        copy => ScalarOp::Copy;
    }

    /// `log(1 + x)` without loss near 0.
    ///
    /// Source: Kahan's correction, `log(u) * x / (u - 1)` with `u = 1 + x` rounded.
    pub fn log1p(&mut self, x: Arg) -> Result<Arg> {
        let one = self.scalar_like(x, 1.0);
        let (zero, inf) = (self.scalar_like(x, 0.0), self.scalar_like(x, f64::INFINITY));
        let u = self.add(x, one)?;
        let d = self.sub(u, one)?;
        let log = self.log(u)?;
        let ratio = self.div(x, d)?;
        let y = self.mul(log, ratio)?;
        let tiny = self.compare(Predicate::Equal, d, zero)?;
        let huge = self.compare(Predicate::Equal, x, inf)?;
        let itself = self.or(tiny, huge)?;
        self.select(itself, x, y)
    }
    /// `exp(x) - 1` without loss near 0: `tanh(x/2) * (exp(x) + 1)`.
    pub fn expm1(&mut self, x: Arg) -> Result<Arg> {
        let (half, one) = (self.scalar_like(x, 0.5), self.scalar_like(x, 1.0));
        let h = self.mul(x, half)?;
        let t = self.tanh(h)?;
        let e = self.exp(x)?;
        let e = self.add(e, one)?;
        self.mul(t, e)
    }

    pub fn neg(&mut self, x: Arg) -> Result<Arg> {
        if self.elem(x).is_bool() {
            return Err(Refusal::new("bools cannot be negated").help("use logical_not"));
        }
        let op = if self.elem(x).is_float() { ScalarOp::NegF } else { ScalarOp::NegI };
        self.elementwise(op, &[x])
    }
    pub fn abs(&mut self, x: Arg) -> Result<Arg> {
        let e = self.elem(x);
        match (e.is_float(), e.sign()) {
            (true, _) => self.elementwise(ScalarOp::AbsF, &[x]),
            (false, Signedness::Signed) => self.elementwise(ScalarOp::AbsI, &[x]),
            (false, Signedness::Unsigned) => Ok(x),
        }
    }
    /// Bools add as `or`.
    pub fn add(&mut self, a: Arg, b: Arg) -> Result<Arg> {
        if self.elem(a).is_bool() {
            return self.or(a, b);
        }
        self.by_type(a, b, ScalarOp::AddF { rounding: NEAREST, ftz: false }, ScalarOp::AddI)
    }
    pub fn sub(&mut self, a: Arg, b: Arg) -> Result<Arg> {
        if self.elem(a).is_bool() {
            return Err(Refusal::new("bools cannot be subtracted").help("use logical_xor"));
        }
        self.by_type(a, b, ScalarOp::SubF { rounding: NEAREST, ftz: false }, ScalarOp::SubI)
    }
    /// Bools multiply as `and`.
    pub fn mul(&mut self, a: Arg, b: Arg) -> Result<Arg> {
        if self.elem(a).is_bool() {
            return self.and(a, b);
        }
        self.by_type(a, b, ScalarOp::MulF { rounding: NEAREST, ftz: false }, ScalarOp::MulI)
    }
    /// Integers round to zero.
    pub fn div(&mut self, a: Arg, b: Arg) -> Result<Arg> {
        let sign = self.elem(a).sign();
        let int = ScalarOp::DivI { sign, rounding: Rounding::Zero };
        self.by_type(a, b, ScalarOp::DivF { rounding: NEAREST, ftz: false }, int)
    }
    /// The truncated remainder.
    pub fn rem(&mut self, a: Arg, b: Arg) -> Result<Arg> {
        let sign = self.elem(a).sign();
        self.by_type(a, b, ScalarOp::RemF, ScalarOp::RemI { sign })
    }
    /// NaN wins.
    pub fn max(&mut self, a: Arg, b: Arg) -> Result<Arg> {
        let sign = self.elem(a).sign();
        self.by_type(a, b, ScalarOp::MaxF { nan: true, ftz: false }, ScalarOp::MaxI { sign })
    }
    /// NaN wins.
    pub fn min(&mut self, a: Arg, b: Arg) -> Result<Arg> {
        let sign = self.elem(a).sign();
        self.by_type(a, b, ScalarOp::MinF { nan: true, ftz: false }, ScalarOp::MinI { sign })
    }
    /// Any number wins over NaN.
    pub fn max_number(&mut self, a: Arg, b: Arg) -> Result<Arg> {
        let sign = self.elem(a).sign();
        self.by_type(a, b, ScalarOp::MaxF { nan: false, ftz: false }, ScalarOp::MaxI { sign })
    }
    /// Any number wins over NaN.
    pub fn min_number(&mut self, a: Arg, b: Arg) -> Result<Arg> {
        let sign = self.elem(a).sign();
        self.by_type(a, b, ScalarOp::MinF { nan: false, ftz: false }, ScalarOp::MinI { sign })
    }
    /// A bool; comparisons with NaN are false, except that it is not equal to anything.
    pub fn compare(&mut self, pred: Predicate, a: Arg, b: Arg) -> Result<Arg> {
        let ordered = pred != Predicate::NotEqual;
        let sign = self.elem(a).sign();
        self.by_type(a, b, ScalarOp::CmpF { pred, ordered }, ScalarOp::CmpI { pred, sign })
    }
    /// `c ? a : b`, with a bool `c`.
    pub fn select(&mut self, c: Arg, a: Arg, b: Arg) -> Result<Arg> {
        self.elementwise(ScalarOp::Select, &[c, a, b])
    }
    pub fn and(&mut self, a: Arg, b: Arg) -> Result<Arg> {
        self.elementwise(ScalarOp::And, &[a, b])
    }
    pub fn or(&mut self, a: Arg, b: Arg) -> Result<Arg> {
        self.elementwise(ScalarOp::Or, &[a, b])
    }
    pub fn xor(&mut self, a: Arg, b: Arg) -> Result<Arg> {
        self.elementwise(ScalarOp::Xor, &[a, b])
    }
    /// The negation of bools.
    pub fn not(&mut self, a: Arg) -> Result<Arg> {
        let one = Arg::Scalar { elem: self.elem(a), bits: self.elem(a).dtype.mask() };
        self.elementwise(ScalarOp::Xor, &[a, one])
    }
    pub fn pow(&mut self, a: Arg, b: Arg) -> Result<Arg> {
        self.elementwise(ScalarOp::Pow, &[a, b])
    }

    fn by_type(&mut self, a: Arg, b: Arg, float: ScalarOp, int: ScalarOp) -> Result<Arg> {
        let op = if self.elem(a).is_float() { float } else { int };
        self.elementwise(op, &[a, b])
    }

    /// The type in which sums of `x` are computed: f32 for f16 and bf16.
    pub fn wide(&self, x: Arg) -> Elem {
        match self.elem(x).dtype {
            DType::F16 | DType::BF16 => Elem::F32,
            _ => self.elem(x),
        }
    }

    /// The mean over axes, computed in [`Builder::wide`]; the axes stay with extent 1 when `keep`.
    pub fn mean(&mut self, x: Arg, axes: &[usize], keep: bool) -> Result<Arg> {
        let (narrow, wide) = (self.elem(x), self.wide(x));
        let shape = self.shape(x);
        let x = self.convert(x, wide)?;
        let sum = self.reduce(ReduceOp::Sum, x, axes, keep)?;
        let count =
            axes.iter().filter_map(|a| shape.get(*a)).cloned().fold(crate::index::Ix::Const(1), crate::index::Ix::mul);
        let count = self.simplify(&count);
        let mean = match count.as_const() {
            // Exact where the count is a power of two; otherwise a division keeps the rounding right.
            Some(n) if n > 0 && (n as u64).is_power_of_two() => {
                let factor = ir::scalar(wide, 1.0 / n as f64);
                self.mul(sum, factor)?
            }
            Some(n) => {
                let n = ir::scalar(wide, n as f64);
                self.div(sum, n)?
            }
            None => {
                let n = self.index(count, Elem::I64, vec![]);
                let n = self.convert(n, wide)?;
                self.div(sum, n)?
            }
        };
        self.convert(mean, narrow)
    }

    /// `a [.., m, k] @ b [.., k, n]` with NumPy's rules for vectors and batches; sums of f16 and bf16 are computed in
    /// f32.
    pub fn matmul(&mut self, a: Arg, b: Arg) -> Result<Arg> {
        let narrow = self.elem(a);
        let y = self.matmul_wide(a, b)?;
        self.convert(y, narrow)
    }

    /// The same, with the result still in f32 where the operands are f16 or bf16.
    pub fn matmul_wide(&mut self, a: Arg, b: Arg) -> Result<Arg> {
        let wide = self.wide(a);
        self.matmul_in(a, b, wide)
    }

    /// The same, with sums and a result of type `wide`.
    pub fn matmul_in(&mut self, a: Arg, b: Arg, wide: Elem) -> Result<Arg> {
        let (ra, rb) = (self.rank(a), self.rank(b));
        if ra == 0 || rb == 0 {
            return Err(Refusal::new("a matrix product needs operands of rank 1 or more"));
        }
        let a2 = if ra == 1 { self.unsqueeze(a, &[0])? } else { a };
        let b2 = if rb == 1 { self.unsqueeze(b, &[1])? } else { b };
        let (sa, sb) = (self.shape(a2), self.shape(b2));
        let (ra2, rb2) = (sa.len(), sb.len());
        if !self.same(&sa[ra2 - 1], &sb[rb2 - 2]) {
            return Err(Refusal::new(format!(
                "a matrix product of {} and {} does not fit: {} columns meet {} rows",
                self.shape_text(&self.shape(a)),
                self.shape_text(&self.shape(b)),
                self.graph.ix_text(&sa[ra2 - 1]),
                self.graph.ix_text(&sb[rb2 - 2])
            )));
        }
        let narrow = self.elem(a);
        // Bytes may be unsigned in one and signed in the other.
        if narrow.dtype != self.elem(b).dtype {
            return Err(Refusal::new(format!("{narrow} and {} are different element types", self.elem(b))));
        }
        // [.., m, 1, k] and [.., n, k]: both contiguous along k once b is transposed by its reader.
        let a3 = self.unsqueeze(a2, &[ra2 - 1])?;
        let b3 = self.swap_axes(b2, rb2 - 2, rb2 - 1)?;
        let b3 = self.unsqueeze(b3, &[rb2 - 2])?;
        let rank = ra2.max(rb2) + 1;
        let mut out = self.dot(a3, b3, wide, &[rank - 1], false)?;
        let last = self.rank(out);
        if rb == 1 {
            out = self.squeeze(out, &[last - 1])?;
        }
        if ra == 1 {
            let at = self.rank(out) - if rb == 1 { 1 } else { 2 };
            out = self.squeeze(out, &[at])?;
        }
        Ok(out)
    }
}
