//! Scalar operations as C expressions, for one value or a vector of them.

use super::dialect::Dialect;
use super::library::bits_ty;
use super::support::Support;
use crate::kernel::ir::Elem;
use crate::num::op::{Predicate, Rounding, Signedness};
use crate::num::{DType, ScalarOp, math};

/// Returns true if a NaN result of the operation is always the canonical one, whatever NaN went in.
pub fn computes(op: ScalarOp) -> bool {
    use ScalarOp::*;
    !matches!(op, NegF | AbsF | Select | Copy | Bitcast { .. } | IToF { .. } | PtrAdd | IntToPtr { .. })
}

/// A constant of the type.
pub fn literal(dialect: &Dialect, d: DType, bits: u64) -> String {
    match d {
        DType::F32 | DType::TF32 => {
            let value = f32::from_bits(bits as u32);
            if value.is_finite() { format!("{value:?}f") } else { (dialect.special)(DType::F32, bits) }
        }
        DType::F64 => {
            let value = f64::from_bits(bits);
            if value.is_finite() { format!("{value:?}") } else { (dialect.special)(d, bits) }
        }
        DType::I8 => (bits as i8).to_string(),
        DType::I16 => (bits as i16).to_string(),
        DType::I32 if bits as i32 == i32::MIN => "(-2147483647 - 1)".to_string(),
        DType::I32 => (bits as i32).to_string(),
        DType::I64 if bits as i64 == i64::MIN => "(-9223372036854775807ll - 1)".to_string(),
        DType::I64 => format!("{}ll", bits as i64),
        DType::I1 => (bits & 1).to_string(),
        _ => format!("{bits:#x}"),
    }
}

fn is_directed(rounding: Rounding) -> Option<&'static str> {
    match rounding {
        Rounding::Zero => Some("rz"),
        Rounding::NegativeInf => Some("rd"),
        Rounding::PositiveInf => Some("ru"),
        Rounding::NearestAway => Some("ra"),
        _ => None,
    }
}

fn sign(sign: Signedness) -> &'static str {
    match sign {
        Signedness::Signed => "s",
        Signedness::Unsigned => "u",
    }
}

fn unsigned(d: DType) -> &'static str {
    bits_ty(d)
}

fn cmp(pred: Predicate) -> &'static str {
    match pred {
        Predicate::Equal => "==",
        Predicate::NotEqual => "!=",
        Predicate::LessThan => "<",
        Predicate::LessThanOrEqual => "<=",
        Predicate::GreaterThan => ">",
        Predicate::GreaterThanOrEqual => ">=",
    }
}

/// Prints operations, and requests the helpers they need.
pub struct Ops<'a> {
    pub support: &'a mut Support,
    pub lanes: u32,
}

impl Ops<'_> {
    fn call(&mut self, name: &str, args: &[&str]) -> String {
        let f = self.support.call(name, self.lanes);
        format!("{f}({})", args.join(", "))
    }

    fn ty(&mut self, base: &str) -> String {
        self.support.ty(base, self.lanes)
    }

    fn vector(&self) -> bool {
        self.lanes > 1
    }

    /// Converts every lane with C's own conversion.
    pub fn cast(&mut self, x: &str, base: &str) -> String {
        let ty = self.ty(base);
        if self.vector() { format!("__builtin_convertvector({x}, {ty})") } else { format!("({ty}){x}") }
    }

    /// Converts every lane from an integer type to another or to a float.
    fn cast_from(&mut self, from: &str, x: &str, to: &str) -> String {
        let bits =
            |base: &str| DType::from_name(&base.replace('u', "i")).filter(|d| d.is_int()).map_or(0, |d| d.bits());
        let wide = if matches!(to, "f32" | "f64") { "i32" } else { to };
        // C compilers widen lane by lane.
        if !self.vector() || bits(from) < 8 || bits(wide) <= bits(from) {
            return self.cast(x, to);
        }
        let widened = self.call(&format!("widen_{wide}_{from}"), &[x]);
        if wide == to { widened } else { self.cast(&widened, to) }
    }

    /// The operand as the unsigned integer of its width.
    fn as_unsigned(&mut self, d: DType, x: &str) -> String {
        let ty = self.ty(unsigned(d));
        format!("({ty}){x}")
    }

    /// Returns true if arithmetic at the type may overflow and the language leaves the result undefined; narrower
    /// integers are computed as `int`.
    fn wraps_by_helper(&self, d: DType) -> bool {
        !self.support.dialect.wraps && matches!(d, DType::I32 | DType::I64)
    }

    fn widen(&mut self, d: DType, x: &str) -> String {
        self.call(&format!("f32_from_{d}"), &[x])
    }

    fn narrow(&mut self, d: DType, x: &str) -> String {
        self.call(&format!("{d}_from_f32"), &[x])
    }

    /// A comparison's result (all ones per lane of `bits` wide, or 0/1) as i1.
    fn truth(&mut self, compare: String, bits: u32) -> String {
        match bits {
            8 | 16 if self.vector() => self.call(&format!("widen_i32_i{bits}"), &[&compare]),
            64 if self.vector() => self.cast(&format!("({compare})"), "i1"),
            _ => compare,
        }
    }

    /// `op` applied at elements `elem` to printed operands.
    pub fn expr(&mut self, op: ScalarOp, elem: Elem, args: &[&str]) -> String {
        use ScalarOp::*;
        let d = elem.held();
        let a = args.first().copied().unwrap_or("0");
        let b = args.get(1).copied().unwrap_or("0");
        match op {
            AddF { rounding, ftz } => self.float("add", "+", d, rounding, ftz, args),
            SubF { rounding, ftz } => self.float("sub", "-", d, rounding, ftz, args),
            MulF { rounding, ftz } => self.float("mul", "*", d, rounding, ftz, args),
            DivF { rounding, ftz } => self.float("div", "/", d, rounding, ftz, args),
            Fma { rounding, ftz } => self.float("fma", "", d, rounding, ftz, args),
            DotF => self.call("dot2_f32", args),
            DotI => self.call("dot2_i32", args),
            DotB => self.call("dot4_i32", args),
            Sqrt { rounding, ftz } => self.float("sqrt", "", d, rounding, ftz, args),
            MaxF { nan, ftz } => self.extremum(if nan { "maxf_nan" } else { "maxf_num" }, d, ftz, a, b),
            MinF { nan, ftz } => self.extremum(if nan { "minf_nan" } else { "minf_num" }, d, ftz, a, b),
            NegF => self.sign_bit(d, a, true),
            AbsF => self.sign_bit(d, a, false),
            Ceil | Floor | RoundEven => {
                let f = match op {
                    Ceil => "ceil",
                    Floor => "floor",
                    _ => "rint",
                };
                self.in_f32(d, |s, t, x| s.call(&format!("{f}_{t}"), x), &[a])
            }
            RemF if self.support.has(&format!("fmod_{d}")) => self.call(&format!("fmod_{d}"), &[a, b]),
            RemF => {
                let wide: Vec<String> = [a, b]
                    .iter()
                    .map(|x| if d == DType::F64 { x.to_string() } else { self.call(&format!("f64_from_{d}"), &[x]) })
                    .collect();
                let r = self.call("fmod_f64", &[&wide[0], &wide[1]]);
                match d {
                    DType::F64 => r,
                    DType::F32 => self.call("f32_from_f64", &[&r]),
                    _ => {
                        let r = self.call("f32_from_f64", &[&r]);
                        self.narrow(d, &r)
                    }
                }
            }
            Exp2Approx if self.support.has(&format!("exp2_approx_{d}")) => self.call(&format!("exp2_approx_{d}"), &[a]),
            Rsqrt { .. }
            | Exp
            | Exp2 { .. }
            | Exp2Approx
            | Log
            | Log2
            | Sin
            | Cos
            | Tan
            | Sinh
            | Cosh
            | Tanh
            | Erf
            | ErfInv
            | NormalQuantile
            | LogGamma
            | Digamma
            | BesselI0e
            | BesselI1e
            | Pow
            | Atan2
            | PowI => self.transcendental(op, d, args),
            CmpF { pred, ordered } => self.compare_floats(pred, ordered, d, a, b),

            AddI | SubI if d == DType::I1 => format!("{a} ^ {b}"),
            AddI | SubI | MulI | NegI if self.wraps_by_helper(d) => {
                let name = match op {
                    AddI => "add",
                    SubI => "sub",
                    MulI => "mul",
                    _ => "neg",
                };
                self.call(&format!("{name}_{d}"), args)
            }
            AddI => format!("{a} + {b}"),
            SubI => format!("{a} - {b}"),
            MulI if d == DType::I1 => format!("{a} & {b}"),
            MulI => format!("{a} * {b}"),
            MulHi => self.call(&format!("mulhi_{d}"), &[a, b]),
            DivI { sign: s, rounding } => {
                let r = match rounding {
                    Rounding::NegativeInf => "floor",
                    Rounding::PositiveInf => "ceil",
                    _ => "trunc",
                };
                self.call(&format!("divi_{}_{r}_{d}", sign(s)), &[a, b])
            }
            RemI { sign: s } => self.call(&format!("remi_{}_{d}", sign(s)), &[a, b]),
            MaxI { sign: s } if d == DType::I1 => {
                format!("{a} {} {b}", if s == Signedness::Signed { "&" } else { "|" })
            }
            MinI { sign: s } if d == DType::I1 => {
                format!("{a} {} {b}", if s == Signedness::Signed { "|" } else { "&" })
            }
            MaxI { sign: s } => self.call(&format!("maxi_{}_{d}", sign(s)), &[a, b]),
            MinI { sign: s } => self.call(&format!("mini_{}_{d}", sign(s)), &[a, b]),
            Shl | Shr { sign: Signedness::Unsigned } if d == DType::I1 => format!("{a} & ~{b}"),
            Shr { .. } if d == DType::I1 => a.to_string(),
            Shl => self.call(&format!("shl_{d}"), &[a, b]),
            Shr { sign: s } => self.call(&format!("shr_{}_{d}", sign(s)), &[a, b]),
            NegI | AbsI if d == DType::I1 => a.to_string(),
            NegI => format!("-{a}"),
            AbsI => self.call(&format!("absi_{d}"), &[a]),
            And => format!("{a} & {b}"),
            Or => format!("{a} | {b}"),
            Xor => format!("{a} ^ {b}"),
            CmpI { pred, sign: s } => {
                // A signed i1 is 0 or -1; a mask lane is too.
                let flip = d == DType::I1 && (s == Signedness::Signed) != self.vector();
                let (a, b) = if flip { (b, a) } else { (a, b) };
                let cast = s == Signedness::Unsigned && d != DType::I1;
                let (x, y) = if cast {
                    (self.as_unsigned(d, a), self.as_unsigned(d, b))
                } else {
                    (a.to_string(), b.to_string())
                };
                let bits = if d == DType::I1 { 32 } else { d.bits() };
                self.truth(format!("{x} {} {y}", cmp(pred)), bits)
            }

            Select => {
                let c = args.get(2).copied().unwrap_or("0");
                if self.vector() { self.call(&format!("select_{d}"), &[a, b, c]) } else { format!("{a} ? {b} : {c}") }
            }
            Copy => a.to_string(),
            FToF { to, .. } if to == d => a.to_string(),
            FToF { to, rounding } => match is_directed(rounding) {
                Some(r) => self.call(&format!("cvt_{r}_{to}_{d}"), &[a]),
                None => self.call(&format!("{to}_from_{d}"), &[a]),
            },
            FToI { to: DType::I32, sign: Signedness::Signed } if matches!(d, DType::F32 | DType::F16 | DType::BF16) => {
                let wide = if d == DType::F32 { a.to_string() } else { self.widen(d, a) };
                self.call("i32_trunc_f32", &[&wide])
            }
            FToI { to, sign: s } if self.support.has(&format!("ftoi_{}_{to}_f32", sign(s))) && d != DType::F64 => {
                let wide = if d == DType::F32 { a.to_string() } else { self.widen(d, a) };
                self.call(&format!("ftoi_{}_{to}_f32", sign(s)), &[&wide])
            }
            FToI { to, sign: s } if matches!(to.bits(), 8 | 16) && d != DType::F64 => {
                let wide = if d == DType::F32 { a.to_string() } else { self.widen(d, a) };
                self.call(&format!("ftoi_{}_{to}_f32", sign(s)), &[&wide])
            }
            FToI { to, sign: s } => {
                let wide = if d == DType::F64 { a.to_string() } else { self.call(&format!("f64_from_{d}"), &[a]) };
                self.call(&format!("ftoi_{}_{to}_f64", sign(s)), &[&wide])
            }
            IToF { to, sign: s } => self.int_to_float(d, to, s, a),
            ExtI { to, sign: Signedness::Signed } => match (d, self.vector()) {
                (DType::I1, false) => {
                    let x = self.cast(a, to.name());
                    format!("-{x}")
                }
                (DType::I4, _) => {
                    let x = self.sign_extended_i4(a);
                    self.cast_from("i8", &x, to.name())
                }
                _ => self.cast_from(d.name(), a, to.name()),
            },
            ExtI { to, sign: Signedness::Unsigned } => match (d, self.vector()) {
                (DType::I1, true) => self.cast(&format!("({a} & 1)"), to.name()),
                (DType::I1, false) => self.cast(a, to.name()),
                _ => {
                    let x = self.as_unsigned(d, a);
                    self.cast_from(unsigned(d), &x, to.name())
                }
            },
            TruncI { to: DType::I1 } if self.vector() => self.cast(&format!("-({a} & 1)"), "i1"),
            TruncI { to: DType::I1 } => format!("{a} & 1"),
            TruncI { to: DType::I4 } => self.cast(&format!("({a} & 15)"), "i4"),
            TruncI { to } => self.cast(a, to.name()),
            Bitcast { to } => self.bitcast(elem, to, a),
            PtrAdd if self.vector() => {
                let pointee = match elem {
                    Elem::Ptr(p) => p,
                    Elem::Num(n) => n,
                };
                format!("{a} + {b} * {}", pointee.bytes())
            }
            PtrAdd => format!("{a} + {b}"),
            PtrToInt if self.vector() => a.to_string(),
            PtrToInt => {
                let ty = self.ty("i64");
                format!("({ty}){a}")
            }
            IntToPtr { .. } if self.vector() => a.to_string(),
            IntToPtr { to } => {
                let ty = self.support.memory_ty(to.name(), 1);
                format!("({ty} *){a}")
            }
        }
    }

    fn float(&mut self, name: &str, infix: &str, d: DType, r: Rounding, ftz: bool, args: &[&str]) -> String {
        if ftz {
            let flushed: Vec<String> = args.iter().map(|a| self.call("ftz_f32", &[a])).collect();
            let flushed: Vec<&str> = flushed.iter().map(|s| s.as_str()).collect();
            let result = self.float(name, infix, d, r, false, &flushed);
            return self.call("ftz_f32", &[&result]);
        }
        if let Some(r) = is_directed(r) {
            let own = format!("{name}_{r}_{d}");
            let name = if self.support.has(&own) { own } else { format!("soft_{own}") };
            return self.call(&name, args);
        }
        match d {
            DType::F32 | DType::F64 if infix.is_empty() => self.call(&format!("{name}_{d}"), args),
            DType::F32 | DType::F64 => {
                format!("{} {infix} {}", args.first().copied().unwrap_or("0"), args.get(1).copied().unwrap_or("0"))
            }
            _ if name == "fma" => self.call(&format!("soft_fma_rn_{d}"), args),
            _ => {
                let wide: Vec<String> = args.iter().map(|a| self.widen(d, a)).collect();
                let wide: Vec<&str> = wide.iter().map(|s| s.as_str()).collect();
                let result = self.float(name, infix, DType::F32, r, false, &wide);
                self.narrow(d, &result)
            }
        }
    }

    fn in_f32(&mut self, d: DType, f: impl Fn(&mut Self, DType, &[&str]) -> String, args: &[&str]) -> String {
        if matches!(d, DType::F32 | DType::F64) {
            return f(self, d, args);
        }
        let wide: Vec<String> = args.iter().map(|a| self.widen(d, a)).collect();
        let wide: Vec<&str> = wide.iter().map(|s| s.as_str()).collect();
        let result = f(self, DType::F32, &wide);
        self.narrow(d, &result)
    }

    fn extremum(&mut self, name: &str, d: DType, ftz: bool, a: &str, b: &str) -> String {
        let (a, b) =
            if ftz { (self.call("ftz_f32", &[a]), self.call("ftz_f32", &[b])) } else { (a.to_string(), b.to_string()) };
        self.in_f32(d, |s, t, x| s.call(&format!("{name}_{t}"), x), &[&a, &b])
    }

    fn sign_bit(&mut self, d: DType, a: &str, flip: bool) -> String {
        let bit = 1u64 << (d.bits() - 1);
        match (d, flip) {
            (DType::F32 | DType::F64 | DType::TF32, true) => format!("-{a}"),
            (DType::F32 | DType::F64 | DType::TF32, false) => {
                let mask = if d == DType::F64 { "0x7fffffffffffffffull" } else { "0x7fffffffu" };
                let bits = self.call(&format!("bits_{d}"), &[a]);
                self.call(&format!("float_{d}"), &[&format!("{bits} & {mask}")])
            }
            (_, true) => format!("{a} ^ {bit:#x}"),
            (_, false) => format!("{a} & {:#x}", bit - 1),
        }
    }

    fn compare_floats(&mut self, pred: Predicate, ordered: bool, d: DType, a: &str, b: &str) -> String {
        let (x, y, bits) = match d {
            DType::F32 | DType::F64 => (a.to_string(), b.to_string(), d.bits()),
            DType::F16 | DType::BF16 => (self.widen(d, a), self.widen(d, b), 32),
            _ => (self.call(&format!("f64_from_{d}"), &[a]), self.call(&format!("f64_from_{d}"), &[b]), 64),
        };
        let not = |c: String| if self.vector() { format!("~({c})") } else { format!("!({c})") };
        let text = match (pred, ordered) {
            (Predicate::NotEqual, true) => format!("({x} < {y}) | ({x} > {y})"),
            (Predicate::Equal, false) => not(format!("({x} < {y}) | ({x} > {y})")),
            (Predicate::NotEqual, false) | (_, true) => format!("{x} {} {y}", cmp(pred)),
            (Predicate::LessThan, false) => not(format!("{x} >= {y}")),
            (Predicate::LessThanOrEqual, false) => not(format!("{x} > {y}")),
            (Predicate::GreaterThan, false) => not(format!("{x} <= {y}")),
            (Predicate::GreaterThanOrEqual, false) => not(format!("{x} < {y}")),
        };
        self.truth(text, bits)
    }

    /// An i4, which is held as 0 to 15, as an i8.
    fn sign_extended_i4(&mut self, a: &str) -> String {
        let i8 = self.ty("i8");
        format!("(({i8})({i8})({a} << 4) >> 4)")
    }

    fn int_to_float(&mut self, d: DType, to: DType, s: Signedness, a: &str) -> String {
        let unsigned = s == Signedness::Unsigned;
        if d == DType::I4 && !unsigned {
            let wide = self.sign_extended_i4(a);
            return self.int_to_float(DType::I8, to, s, &wide);
        }
        let value = match (d, self.vector(), unsigned) {
            (DType::I1, true, true) => format!("({a} & 1)"),
            (DType::I1, false, false) => format!("(-(int){a})"),
            (DType::I1, ..) => a.to_string(),
            (_, _, true) => self.as_unsigned(d, a),
            _ => a.to_string(),
        };
        // The lanes of masks are wide already.
        let from = if unsigned && d != DType::I1 { self::unsigned(d) } else { d.name() };
        match to {
            DType::F32 | DType::F64 => self.cast_from(from, &value, to.name()),
            DType::F16 => {
                let x = self.cast_from(from, &value, "f32");
                let x = if self.vector() { x } else { format!("({x})") };
                self.narrow(DType::F16, &x)
            }
            DType::BF16 if d.bits() <= 16 => {
                let x = self.cast_from(from, &value, "f32");
                self.narrow(DType::BF16, &x)
            }
            _ => self.call(&format!("itof_{}_{d}_{to}", sign(s)), &[a]),
        }
    }

    fn bitcast(&mut self, elem: Elem, to: DType, a: &str) -> String {
        let from = elem.held();
        if let Elem::Ptr(_) = elem {
            return self.expr(ScalarOp::PtrToInt, elem, &[a]);
        }
        if from == to {
            return a.to_string();
        }
        let is_float = |d: DType| matches!(d, DType::F32 | DType::F64 | DType::TF32);
        let bits = if is_float(from) {
            self.call(&format!("bits_{from}"), &[a])
        } else {
            let ty = self.ty(unsigned(from));
            format!("({ty}){a}")
        };
        if is_float(to) {
            return self.call(&format!("float_{to}"), &[&bits]);
        }
        let ty = self.ty(to.name());
        format!("({ty}){bits}")
    }

    fn transcendental(&mut self, op: ScalarOp, d: DType, args: &[&str]) -> String {
        let at = if d == DType::F64 { DType::F64 } else { DType::F32 };
        let Some(program) = math::program(op, at) else { return format!("0 /* {op:?} has no program */") };
        let f = super::math::function(self.support, &program, self.lanes);
        if d == at {
            return format!("{f}({})", args.join(", "));
        }
        let wide: Vec<String> = args
            .iter()
            .enumerate()
            .map(|(i, a)| if op == ScalarOp::PowI && i == 1 { a.to_string() } else { self.widen(d, a) })
            .collect();
        self.narrow(d, &format!("{f}({})", wide.join(", ")))
    }
}
