//! The properties of each scalar operation in every stage, one row each: its spelling, its operands and result, its
//! cost.
//!
//! In: an operation. Out: its [`Row`], and the properties that follow from it ([`ScalarOp::arity`],
//! [`ScalarOp::accepts`], ...). [`eval::apply`](super::eval::apply) computes the operation.
//!
//! Example: `MaxI` is spelled `max` if the declared type is an integer, takes two integers of one type and gives that
//! type, counts as index arithmetic when computed again, and folds a reduction.
//!
//! Invariant: no other code matches over all operations for any of these.

use super::convert::nan;
use super::op::{Predicate as P, Rounding as R, Signedness as S};
use super::{DType, ScalarOp, Ty};

/// The kind of number that an operation works on, if its base name is shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Any,
    Float,
    Int,
}

impl Class {
    pub fn of(dtype: DType) -> Class {
        if dtype.is_float() { Class::Float } else { Class::Int }
    }
    pub(super) fn letter(self) -> &'static str {
        match self {
            Class::Any => "",
            Class::Float => "f",
            Class::Int => "i",
        }
    }
}

/// Operands and result. `T` is the type that the operation is applied at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// This number of operands, `T -> T`, for f16, bf16, f32 and f64; with flush-to-zero only for f32.
    Floats(usize),
    /// This number of operands, `T -> T`, for integers.
    Ints(usize),
    /// `(i32, i32, T) -> T`, for f32 or for i32; for i32 the words may hold bytes.
    Pairs,
    /// `(T, i32) -> T`, for the floats of `Floats`.
    IntPower,
    /// `(T, T) -> i1`, for the floats of `Floats`.
    CompareFloats,
    /// `(T, T) -> i1`, for integers and addresses.
    CompareInts,
    /// `(i1, T, T) -> T`, for any type.
    Select,
    /// `T -> T`, for any type; an i64 becomes an address too.
    Copy,
    /// `T -> to`: any float format to any other.
    FloatToFloat,
    FloatToInt,
    IntToFloat,
    /// `T -> to`, which is wider.
    Extend,
    /// `T -> to`, which is narrower.
    Truncate,
    /// `T -> to` of the same width; addresses are as wide as i64, and one may become an address of another type.
    Bits,
    /// `(ptr<T>, integer) -> ptr<T>`
    Offset,
    /// `ptr<T> -> i64`
    ToAddress,
    /// `i64 -> ptr<to>` or `ptr<T> -> ptr<to>`
    FromAddress,
}

/// The work of computing a value once more, for a rule that weighs this against storing it; from little to much.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Repeat {
    /// Integer arithmetic as in subscripts.
    Index,
    /// A conversion between number types.
    Convert,
    /// Anything else.
    Compute,
}

pub struct Row {
    /// The name before the attributes, and without the letter of its class.
    pub(super) base: &'static str,
    pub(super) class: Class,
    form: Form,
    repeat: Repeat,
    /// The cost of the operation, in bytes moved.
    cost: i64,
    /// Instructions of a GPU's warp for it, on operands of 32 bits.
    issues: u32,
    /// True if a reduction may combine by the operation, in any order.
    folds: bool,
}

const fn row(base: &'static str, class: Class, form: Form, repeat: Repeat, cost: i64) -> Row {
    Row { base, class, form, repeat, cost, issues: 1, folds: false }
}

impl Row {
    const fn issues(self, issues: u32) -> Row {
        Row { issues, ..self }
    }

    const fn folds(self) -> Row {
        Row { folds: true, ..self }
    }
}

/// A row for each operation, with every attribute at its default.
macro_rules! table {
    ($($name:ident { $($field:ident : $value:expr),* } => $row:expr;)*) => {
        /// Every operation with its attributes at their defaults.
        pub(super) const ALL: &[ScalarOp] = &[$(ScalarOp::$name { $($field: $value),* }),*];

        impl ScalarOp {
            pub(super) fn row(self) -> &'static Row {
                match self {
                    $(ScalarOp::$name { .. } => {
                        const ROW: &Row = &$row;
                        ROW
                    })*
                }
            }

            /// The operation with every attribute at its default.
            pub(super) fn plain(self) -> ScalarOp {
                match self {
                    $(ScalarOp::$name { .. } => ScalarOp::$name { $($field: $value),* },)*
                }
            }
        }
    };
}

use Class::{Any, Float, Int};
use Form::*;
use Repeat::{Compute, Convert, Index};

const N: R = R::NearestEven;

table! {
    AddF { rounding: N, ftz: false } => row("add", Float, Floats(2), Compute, 1).folds();
    SubF { rounding: N, ftz: false } => row("sub", Float, Floats(2), Compute, 1);
    MulF { rounding: N, ftz: false } => row("mul", Float, Floats(2), Compute, 1).folds();
    DivF { rounding: N, ftz: false } => row("div", Float, Floats(2), Compute, 4).issues(15);
    Fma { rounding: N, ftz: false } => row("fma", Any, Floats(3), Compute, 1);
    DotF {} => row("dot2", Float, Pairs, Compute, 1);
    Sqrt { rounding: N, ftz: false } => row("sqrt", Any, Floats(1), Compute, 4).issues(14);
    Rsqrt { ftz: false } => row("rsqrt", Any, Floats(1), Compute, 4).issues(28);
    MaxF { nan: false, ftz: false } => row("max", Float, Floats(2), Compute, 1).folds();
    MinF { nan: false, ftz: false } => row("min", Float, Floats(2), Compute, 1).folds();
    NegF {} => row("neg", Float, Floats(1), Compute, 1);
    AbsF {} => row("abs", Float, Floats(1), Compute, 1);
    Ceil {} => row("ceil", Any, Floats(1), Compute, 1);
    Floor {} => row("floor", Any, Floats(1), Compute, 1);
    RoundEven {} => row("round", Any, Floats(1), Compute, 4);
    RemF {} => row("rem", Float, Floats(2), Compute, 16).issues(70);
    Exp {} => row("exp", Any, Floats(1), Compute, 16).issues(18);
    Exp2 { ftz: false } => row("exp2", Any, Floats(1), Compute, 16).issues(18);
    Exp2Approx {} => row("exp2_approx", Any, Floats(1), Compute, 2).issues(1);
    Log {} => row("log", Any, Floats(1), Compute, 16).issues(34);
    Log2 {} => row("log2", Any, Floats(1), Compute, 16).issues(36);
    Sin {} => row("sin", Any, Floats(1), Compute, 16).issues(168);
    Cos {} => row("cos", Any, Floats(1), Compute, 16).issues(166);
    Tan {} => row("tan", Any, Floats(1), Compute, 16).issues(217);
    Sinh {} => row("sinh", Any, Floats(1), Compute, 16).issues(108);
    Cosh {} => row("cosh", Any, Floats(1), Compute, 16).issues(79);
    Tanh {} => row("tanh", Any, Floats(1), Compute, 16).issues(31);
    Erf {} => row("erf", Any, Floats(1), Compute, 4).issues(24);
    ErfInv {} => row("erfinv", Any, Floats(1), Compute, 64).issues(419);
    NormalQuantile {} => row("ndtri", Any, Floats(1), Compute, 64).issues(421);
    LogGamma {} => row("lgamma", Any, Floats(1), Compute, 64).issues(720);
    Digamma {} => row("digamma", Any, Floats(1), Compute, 64).issues(768);
    BesselI0e {} => row("i0e", Any, Floats(1), Compute, 64).issues(300);
    BesselI1e {} => row("i1e", Any, Floats(1), Compute, 64).issues(300);
    Pow {} => row("pow", Any, Floats(2), Compute, 16).issues(128);
    Atan2 {} => row("atan2", Any, Floats(2), Compute, 16).issues(53);
    PowI {} => row("powi", Any, IntPower, Compute, 16).issues(60);
    CmpF { pred: P::Equal, ordered: true } => row("cmpf", Any, CompareFloats, Compute, 1);

    AddI {} => row("add", Int, Ints(2), Index, 1).folds();
    SubI {} => row("sub", Int, Ints(2), Index, 1);
    MulI {} => row("mul", Int, Ints(2), Index, 1).folds();
    DotI {} => row("dot2", Int, Pairs, Compute, 1);
    DotB {} => row("dot4", Any, Pairs, Compute, 1);
    MulHi {} => row("mulhi", Any, Ints(2), Compute, 4);
    DivI { sign: S::Signed, rounding: R::Zero } => row("div", Int, Ints(2), Compute, 4).issues(33);
    RemI { sign: S::Signed } => row("rem", Int, Ints(2), Compute, 4).issues(28);
    MaxI { sign: S::Signed } => row("max", Int, Ints(2), Index, 4).folds();
    MinI { sign: S::Signed } => row("min", Int, Ints(2), Index, 4).folds();
    Shl {} => row("shl", Any, Ints(2), Index, 4).issues(3);
    Shr { sign: S::Signed } => row("shr", Any, Ints(2), Index, 4).issues(2);
    NegI {} => row("neg", Int, Ints(1), Index, 4);
    AbsI {} => row("abs", Int, Ints(1), Compute, 4);
    And {} => row("and", Any, Ints(2), Index, 1).folds();
    Or {} => row("or", Any, Ints(2), Index, 1).folds();
    Xor {} => row("xor", Any, Ints(2), Index, 1).folds();
    CmpI { pred: P::Equal, sign: S::Signed } => row("cmpi", Any, CompareInts, Index, 1);

    Select {} => row("select", Any, Form::Select, Compute, 1);
    Copy {} => row("copy", Any, Form::Copy, Index, 0).issues(0);
    FToF { to: DType::F32, rounding: N } => row("ftof", Any, FloatToFloat, Convert, 1);
    FToI { to: DType::I32, sign: S::Signed } => row("ftoi", Any, FloatToInt, Compute, 1);
    IToF { to: DType::F32, sign: S::Signed } => row("itof", Any, IntToFloat, Convert, 1);
    ExtI { to: DType::I64, sign: S::Signed } => row("ext", Any, Extend, Index, 1);
    TruncI { to: DType::I32 } => row("trunc", Any, Truncate, Index, 1);
    Bitcast { to: DType::I32 } => row("bitcast", Any, Bits, Convert, 4);
    PtrAdd {} => row("ptradd", Any, Offset, Index, 4);
    PtrToInt {} => row("ptrtoint", Any, ToAddress, Index, 4);
    IntToPtr { to: DType::I8 } => row("inttoptr", Any, FromAddress, Index, 4);
}

/// The attributes of an operation, each present where the operation has it.
#[derive(Default)]
pub(super) struct Fields<'a> {
    pub rounding: Option<&'a mut R>,
    pub ftz: Option<&'a mut bool>,
    pub nan: Option<&'a mut bool>,
    pub sign: Option<&'a mut S>,
    pub pred: Option<&'a mut P>,
    pub ordered: Option<&'a mut bool>,
    pub to: Option<&'a mut DType>,
}

pub(super) fn fields(op: &mut ScalarOp) -> Fields<'_> {
    use ScalarOp::*;
    let none = Fields::default();
    match op {
        AddF { rounding, ftz }
        | SubF { rounding, ftz }
        | MulF { rounding, ftz }
        | DivF { rounding, ftz }
        | Fma { rounding, ftz }
        | Sqrt { rounding, ftz } => Fields { rounding: Some(rounding), ftz: Some(ftz), ..none },
        Rsqrt { ftz } | Exp2 { ftz } => Fields { ftz: Some(ftz), ..none },
        MaxF { nan, ftz } | MinF { nan, ftz } => Fields { nan: Some(nan), ftz: Some(ftz), ..none },
        CmpF { pred, ordered } => Fields { pred: Some(pred), ordered: Some(ordered), ..none },
        DivI { sign, rounding } => Fields { sign: Some(sign), rounding: Some(rounding), ..none },
        RemI { sign } | MaxI { sign } | MinI { sign } | Shr { sign } => Fields { sign: Some(sign), ..none },
        CmpI { pred, sign } => Fields { pred: Some(pred), sign: Some(sign), ..none },
        FToF { to, rounding } => Fields { to: Some(to), rounding: Some(rounding), ..none },
        FToI { to, sign } | IToF { to, sign } | ExtI { to, sign } => Fields { to: Some(to), sign: Some(sign), ..none },
        TruncI { to } | Bitcast { to } | IntToPtr { to } => Fields { to: Some(to), ..none },
        DotF | DotI | DotB | NegF | AbsF | Ceil | Floor | RoundEven | RemF | Exp | Exp2Approx | Log | Log2 | Sin
        | Cos | Tan | Sinh | Cosh | Tanh | Erf | ErfInv | NormalQuantile | LogGamma | Digamma | BesselI0e
        | BesselI1e | Pow | Atan2 | PowI | AddI | SubI | MulI | MulHi | Shl | NegI | AbsI | And | Or | Xor | Select
        | Copy | PtrAdd | PtrToInt => none,
    }
}

impl ScalarOp {
    /// The number of operands.
    pub fn arity(self) -> usize {
        match self.row().form {
            Floats(n) | Ints(n) => n,
            Form::Select | Pairs => 3,
            IntPower | CompareFloats | CompareInts | Offset => 2,
            Form::Copy
            | FloatToFloat
            | FloatToInt
            | IntToFloat
            | Extend
            | Truncate
            | Bits
            | ToAddress
            | FromAddress => 1,
        }
    }

    /// The number of the operand whose type is the type that the operation is applied at.
    pub fn typed_by(self) -> usize {
        match self.row().form {
            Pairs => 2,
            Form::Select => 1,
            _ => 0,
        }
    }

    /// The type of an operand of an operation that is applied at `ty`. An integer of any type may be added to an
    /// address.
    pub fn operand(self, at: usize, ty: Ty) -> Ty {
        match (self.row().form, at) {
            (Form::Select, 0) => Ty::Num(DType::I1),
            (IntPower, 1) | (Pairs, 0 | 1) => Ty::Num(DType::I32),
            (Offset, 1) => Ty::Num(DType::I64),
            _ => ty,
        }
    }

    /// The type of the result, if the operation always determines it; `None` if it is that of the operands.
    pub fn to(mut self) -> Option<DType> {
        match self.row().form {
            CompareFloats | CompareInts => Some(DType::I1),
            ToAddress => Some(DType::I64),
            _ => fields(&mut self).to.map(|to| *to),
        }
    }

    /// The type of the result of an operation that is applied at numbers of type `ty`; for `IntToPtr` and `PtrAdd` that
    /// of the pointee.
    pub fn result(self, ty: DType) -> DType {
        self.to().unwrap_or(ty)
    }

    /// The operation for the name of a function of libdevice, or of a similar library; functions that Tile IR has
    /// operations for are not among them.
    pub fn of_library(name: &str) -> Option<ScalarOp> {
        Some(match name {
            "erf" => ScalarOp::Erf,
            "erfinv" => ScalarOp::ErfInv,
            "rint" | "nearbyint" => ScalarOp::RoundEven,
            "lgamma" => ScalarOp::LogGamma,
            "normcdfinv" => ScalarOp::NormalQuantile,
            "i0e" => ScalarOp::BesselI0e,
            "i1e" => ScalarOp::BesselI1e,
            _ => return None,
        })
    }

    /// The neutral element of an operation that a schedule may reassociate: `op(x, neutral)` is `x` for every x. In a
    /// maximum or minimum where a number wins over NaN, the neutral element is NaN: an infinity would win over a line
    /// of NaNs.
    pub fn neutral(self, d: DType) -> Option<u64> {
        use ScalarOp as O;
        let minimum = 1u64 << (d.bits() - 1);
        let one = |d| match d {
            DType::F16 => Some(0x3C00),
            DType::BF16 => Some(0x3F80),
            DType::F32 => Some(0x3F80_0000),
            DType::F64 => Some(0x3FF0_0000_0000_0000),
            _ => None,
        };
        let infinity = |d| match d {
            DType::F16 => Some(0x7C00),
            DType::BF16 => Some(0x7F80),
            DType::F32 => Some(0x7F80_0000),
            DType::F64 => Some(0x7FF0_0000_0000_0000),
            _ => None,
        };
        match self {
            // -0 is the only number that leaves every other number unchanged, -0 included.
            O::AddF { rounding: R::NearestEven, .. } if d.is_base_float() => Some(minimum),
            O::MulF { rounding: R::NearestEven, .. } => one(d),
            O::MaxF { nan: false, .. } | O::MinF { nan: false, .. } if d.is_base_float() => Some(nan(d)),
            O::MaxF { .. } => infinity(d).map(|b| b | minimum),
            O::MinF { .. } => infinity(d),
            O::AddI | O::Or | O::Xor => Some(0),
            O::MulI => Some(1),
            O::And => Some(d.mask()),
            O::MaxI { sign: S::Signed } => Some(minimum),
            O::MaxI { sign: S::Unsigned } => Some(0),
            O::MinI { sign: S::Signed } => Some(d.mask() ^ minimum),
            O::MinI { sign: S::Unsigned } => Some(d.mask()),
            _ => None,
        }
    }

    /// Returns true if the operation takes operands of these types to that one.
    pub fn accepts(mut self, from: &[Ty], to: Ty) -> bool {
        let (arity, by) = (self.arity(), self.typed_by());
        let Some(&ty) = from.get(by).filter(|_| from.len() == arity) else { return false };
        let form = self.row().form;
        let fields = fields(&mut self);
        let flushes = fields.ftz.is_some_and(|f| *f);
        let given = fields.to.map(|to| *to);
        let operands = |own: &dyn Fn(usize) -> Ty| from.iter().enumerate().all(|(at, t)| *t == own(at));
        let computed = matches!(ty, Ty::Num(d) if d.is_base_float() && !(flushes && d != DType::F32));
        let int = |t: Ty| matches!(t, Ty::Num(d) if d.is_int());
        let float = |t: Ty| matches!(t, Ty::Num(d) if d.is_float());
        let address = |t: Ty| matches!(t, Ty::Ptr(_));
        let numbers = given.is_some_and(|d| to == Ty::Num(d));
        let bits = |t: Ty| t.held().bits();
        let alike = || operands(&|_| ty);
        match form {
            Floats(_) => computed && alike() && to == ty,
            Ints(_) => int(ty) && alike() && to == ty,
            Pairs => {
                let own = if self.row().class == Float { DType::F32 } else { DType::I32 };
                from[..2] == [Ty::Num(DType::I32); 2] && ty == Ty::Num(own) && to == ty
            }
            IntPower => computed && from.get(1) == Some(&Ty::Num(DType::I32)) && to == ty,
            CompareFloats => computed && alike() && to == Ty::Num(DType::I1),
            CompareInts => (int(ty) || address(ty)) && alike() && to == Ty::Num(DType::I1),
            Form::Select => from.first() == Some(&Ty::Num(DType::I1)) && from.get(2) == Some(&ty) && to == ty,
            Form::Copy => to == ty || (address(to) && ty == Ty::Num(DType::I64)),
            FloatToFloat => float(ty) && float(to) && numbers,
            FloatToInt => float(ty) && int(to) && numbers,
            IntToFloat => int(ty) && float(to) && numbers,
            Extend => int(ty) && int(to) && numbers && bits(ty) < bits(to),
            Truncate => int(ty) && int(to) && numbers && bits(ty) > bits(to),
            Bits => match (ty, to) {
                (Ty::Num(a), Ty::Num(b)) => numbers && a.bits() == b.bits(),
                (Ty::Ptr(_), Ty::Num(b)) => numbers && b == DType::I64,
                (Ty::Num(a), Ty::Ptr(b)) => a == DType::I64 && given == Some(b),
                (Ty::Ptr(_), Ty::Ptr(b)) => given == Some(b),
            },
            Offset => address(ty) && from.get(1).is_some_and(|t| int(*t)) && to == ty,
            ToAddress => address(ty) && to == Ty::Num(DType::I64),
            FromAddress => (address(ty) || ty == Ty::Num(DType::I64)) && given.is_some_and(|d| to == Ty::Ptr(d)),
        }
    }

    /// The same if all types are numbers.
    pub fn accepts_numbers(self, from: &[DType], to: DType) -> bool {
        let mut types = [Ty::Num(to); 3];
        let Some(types) = types.get_mut(..from.len()) else { return false };
        types.iter_mut().zip(from).for_each(|(ty, d)| *ty = Ty::Num(*d));
        self.accepts(types, Ty::Num(to))
    }

    pub fn is_comparison(self) -> bool {
        matches!(self.row().form, CompareFloats | CompareInts)
    }

    /// The type that a number without a type has as an operand, where the result's type is `to` and the first operand's
    /// `first`; `None` if neither decides.
    pub fn untyped(self, at: usize, to: Option<Ty>, first: Option<Ty>) -> Option<DType> {
        let number = |ty: Option<Ty>| match ty {
            Some(Ty::Num(d)) => Some(d),
            _ => None,
        };
        match self.row().form {
            CompareFloats | CompareInts => number(first.filter(|_| at > 0)),
            Form::Select | Pairs | IntPower | Floats(_) | Ints(_) | Form::Copy => {
                number(to.map(|to| self.operand(at, to)))
            }
            FloatToFloat | FloatToInt | IntToFloat | Extend | Truncate | Bits | Offset | ToAddress | FromAddress => {
                None
            }
        }
    }

    /// Returns true if a reduction of such values may combine by the operation, in any order.
    pub fn folds(self, dtype: DType) -> bool {
        self.row().folds && self.accepts_numbers(&[dtype; 2], dtype)
    }

    /// The cost of the operation, in bytes moved: see `loops::model::fuse`.
    pub fn cost(self) -> i64 {
        self.row().cost
    }

    /// Instructions of a GPU's warp for the operation on operands of a type: what NVRTC 13 compiles it to for `sm_90a`, by the
    /// difference of two kernels (`sm_80` to `sm_120` are alike).
    pub fn issues(self, dtype: DType) -> u32 {
        let row = self.row();
        match dtype {
            // Widened, computed in f32, rounded.
            DType::F16 | DType::BF16 if row.class == Class::Float || row.issues > 1 => row.issues + 3,
            DType::I64 | DType::F64 => 2 * row.issues,
            _ => row.issues,
        }
    }

    pub fn repeat(self) -> Repeat {
        self.row().repeat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn num(dtype: DType) -> Ty {
        Ty::Num(dtype)
    }

    /// Compares with the comments of [`ScalarOp`].
    #[test]
    fn what_operations_take_and_give() {
        use DType::*;
        use ScalarOp::*;
        let ptr = Ty::Ptr(F32);
        let accepted: &[(ScalarOp, &[Ty], Ty)] = &[
            (AddF { rounding: N, ftz: true }, &[num(F32), num(F32)], num(F32)),
            (Fma { rounding: N, ftz: false }, &[num(BF16); 3], num(BF16)),
            (PowI, &[num(F64), num(I32)], num(F64)),
            (DotF, &[num(I32), num(I32), num(F32)], num(F32)),
            (DotI, &[num(I32); 3], num(I32)),
            (DotB, &[num(I32); 3], num(I32)),
            (CmpF { pred: P::Equal, ordered: true }, &[num(F16); 2], num(I1)),
            (CmpI { pred: P::Equal, sign: S::Signed }, &[ptr; 2], num(I1)),
            (ScalarOp::Select, &[num(I1), ptr, ptr], ptr),
            (ScalarOp::Copy, &[num(F8E5M2)], num(F8E5M2)),
            (ScalarOp::Copy, &[num(I64)], ptr),
            (FToF { to: F8E5M2, rounding: N }, &[num(F32)], num(F8E5M2)),
            (FToI { to: I8, sign: S::Signed }, &[num(F16)], num(I8)),
            (IToF { to: F64, sign: S::Unsigned }, &[num(I1)], num(F64)),
            (ExtI { to: I64, sign: S::Signed }, &[num(I32)], num(I64)),
            (TruncI { to: I4 }, &[num(I8)], num(I4)),
            (Bitcast { to: I32 }, &[num(F32)], num(I32)),
            (Bitcast { to: I64 }, &[ptr], num(I64)),
            (Bitcast { to: F16 }, &[ptr], Ty::Ptr(F16)),
            (PtrAdd, &[ptr, num(I8)], ptr),
            (PtrToInt, &[ptr], num(I64)),
            (IntToPtr { to: I8 }, &[num(I64)], Ty::Ptr(I8)),
        ];
        for (op, from, to) in accepted {
            assert!(op.accepts(from, *to), "{op:?} {from:?} {to:?}");
            assert!(!op.accepts(&from[1..], *to), "{op:?} with too few");
            assert!(!op.accepts(&[*from, &[from[0]]].concat(), *to), "{op:?} with too many");
            assert!(!op.accepts(from, num(TF32)), "{op:?} to tf32");
            assert_eq!(op.arity(), from.len());
            assert_eq!(op.operand(op.typed_by(), from[op.typed_by()]), from[op.typed_by()]);
        }
        let refused: &[(ScalarOp, &[Ty], Ty)] = &[
            (AddF { rounding: N, ftz: true }, &[num(F64), num(F64)], num(F64)),
            (AddF { rounding: N, ftz: false }, &[num(F32), num(F64)], num(F32)),
            (AddF { rounding: N, ftz: false }, &[num(I32), num(I32)], num(I32)),
            (NegF, &[num(F8E5M2)], num(F8E5M2)),
            (AddI, &[num(F32), num(F32)], num(F32)),
            (PowI, &[num(F64), num(I64)], num(F64)),
            (DotF, &[num(I32); 3], num(I32)),
            (DotI, &[num(I32), num(I32), num(F32)], num(F32)),
            (DotB, &[num(I32), num(I32), num(F32)], num(F32)),
            (PowI, &[num(F64), num(F64)], num(F64)),
            (ScalarOp::Select, &[num(I32), ptr, ptr], ptr),
            (ExtI { to: I64, sign: S::Signed }, &[num(I64)], num(I64)),
            (ExtI { to: I64, sign: S::Signed }, &[num(I32)], num(I32)),
            (TruncI { to: I8 }, &[num(I8)], num(I8)),
            (Bitcast { to: I64 }, &[num(F32)], num(I64)),
            (PtrAdd, &[num(I64), num(I64)], num(I64)),
            (PtrToInt, &[num(I64)], num(I64)),
            (IntToPtr { to: I8 }, &[num(I32)], Ty::Ptr(I8)),
        ];
        for (op, from, to) in refused {
            assert!(!op.accepts(from, *to), "{op:?} {from:?} {to:?}");
        }
    }

    /// Two lanes that fold each other's values get the same result.
    #[test]
    fn what_folds_does_not_mind_the_order() {
        for dtype in [DType::F32, DType::F16, DType::I32, DType::I8] {
            // Numbers of all kinds, including zeros of both signs and NaNs.
            let some: Vec<u64> =
                (0..64u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7 & dtype.mask()).collect();
            let bits: Vec<u64> = some.into_iter().chain([0, 1 << (dtype.bits() - 1), dtype.mask()]).collect();
            for op in ALL.iter().filter(|op| op.folds(dtype)) {
                for (a, b) in bits.iter().flat_map(|a| bits.iter().map(move |b| (*a, *b))) {
                    let both = |x, y| crate::num::eval::apply(*op, dtype, &[x, y]);
                    assert_eq!(both(a, b), both(b, a), "{op:?} {dtype} {a:#x} {b:#x}");
                }
            }
        }
    }

    #[test]
    fn what_folds_takes_two_of_its_type() {
        let folding = ALL.iter().filter(|op| op.folds(DType::F32) || op.folds(DType::I32));
        assert_eq!(folding.clone().count(), 11);
        assert!(folding.clone().all(|op| op.arity() == 2 && op.folds(DType::F64) != op.folds(DType::I1)));
        assert!(ALL.iter().all(|op| op.plain() == *op && op.row().cost >= 0));
    }
}
