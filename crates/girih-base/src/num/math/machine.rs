//! One text, two machines: the functions of this folder are written once over [`X`], a value on a [`Machine`]. On
//! [`Concrete`] they compute; on a [`Recorder`] the same calls record a `Program`.
//!
//! Example: `fn f<M: Machine>(x: X<M>) -> X<M> { x * x + 1.0 }` is `x*x + 1` on either, in the precision of `x`.

use std::cell::RefCell;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Shl, Shr, Sub};

use super::program::{Kind, Op, Program, Step, Usual, Val, apply};

pub trait Machine: Copy {
    type V: Copy;
    /// The first operand's kind is `source`; operands past the operation's arity are ignored.
    fn step(self, op: Op, kind: Kind, source: Kind, args: &[Self::V]) -> Self::V;
    /// Notes that a value is equal to a simpler one where a mask holds, which it nearly always does: see [`Usual`].
    #[inline(always)]
    fn usually(self, _mask: Self::V, _value: Self::V, _simple: Self::V) {}
}

/// Executes.
#[derive(Clone, Copy)]
pub struct Concrete;

impl Machine for Concrete {
    type V = u64;
    #[inline(always)]
    fn step(self, op: Op, kind: Kind, source: Kind, args: &[u64]) -> u64 {
        let arg = |i: usize| if i < args.len() { args[i] } else { 0 };
        apply(op, kind, source, [arg(0), arg(1), arg(2)])
    }
}

/// Records; equal steps are written once.
pub struct Recorder {
    params: Vec<Kind>,
    steps: RefCell<Vec<Step>>,
    usual: RefCell<Option<Usual>>,
}

impl Recorder {
    pub fn new(params: Vec<Kind>) -> Recorder {
        Recorder { params, steps: RefCell::new(Vec::new()), usual: RefCell::new(None) }
    }

    pub fn arity(&self) -> usize {
        self.params.len()
    }

    pub fn param(&self, i: usize) -> X<&Recorder> {
        X { m: self, kind: self.params[i], v: Val(i as u32) }
    }

    /// The program that ends in `result`, without steps that do not contribute to it.
    pub fn finish(&self, name: &str, result: Val) -> Program {
        let steps = self.steps.borrow();
        let n = self.params.len();
        let mut live = vec![false; n + steps.len()];
        live[result.0 as usize] = true;
        let usual = self.usual.borrow();
        for usual in usual.iter() {
            let simple = usual.same.iter().map(|(_, simple)| *simple);
            simple.chain([usual.mask]).for_each(|v| live[v.0 as usize] = true);
        }
        for (i, step) in steps.iter().enumerate().rev() {
            if live[n + i] {
                step.args.iter().for_each(|a| live[a.0 as usize] = true);
            }
        }
        let mut renamed: Vec<Val> = (0..n as u32).map(Val).collect();
        let mut kept = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            renamed.push(Val((n + kept.len()) as u32));
            if live[n + i] {
                let args = step.args.iter().map(|a| renamed[a.0 as usize]).collect();
                kept.push(Step { op: step.op, args, kind: step.kind });
            }
        }
        let named = |v: Val| renamed[v.0 as usize];
        let usual = usual.as_ref().map(|u| Usual {
            mask: named(u.mask),
            same: u.same.iter().map(|&(value, simple)| (named(value), named(simple))).collect(),
        });
        Program { name: name.to_string(), params: self.params.clone(), steps: kept, result: named(result), usual }
    }
}

impl Machine for &Recorder {
    type V = Val;
    fn step(self, op: Op, kind: Kind, _source: Kind, args: &[Val]) -> Val {
        let step = Step { op, args: args.to_vec(), kind };
        let mut steps = self.steps.borrow_mut();
        let at = steps.iter().position(|s| *s == step).unwrap_or_else(|| {
            steps.push(step);
            steps.len() - 1
        });
        Val((self.params.len() + at) as u32)
    }
    fn usually(self, mask: Val, value: Val, simple: Val) {
        let mut usual = self.usual.borrow_mut();
        let usual = usual.get_or_insert_with(|| Usual { mask, same: vec![] });
        debug_assert_eq!(usual.mask, mask, "one mask is tested");
        usual.same.push((value, simple));
    }
}

/// A value of some kind on a machine.
#[derive(Clone, Copy)]
pub struct X<M: Machine> {
    pub m: M,
    pub kind: Kind,
    pub v: M::V,
}

impl<M: Machine> X<M> {
    #[inline(always)]
    fn make(self, op: Op, kind: Kind, args: &[M::V]) -> X<M> {
        X { m: self.m, kind, v: self.m.step(op, kind, self.kind, args) }
    }
    /// The constant with these bits.
    #[inline(always)]
    pub fn bits(self, kind: Kind, bits: u64) -> X<M> {
        self.make(Op::Const(bits), kind, &[])
    }
    /// A float constant of this value's kind.
    #[inline(always)]
    pub fn float(self, value: f64) -> X<M> {
        let bits = if self.kind == Kind::F32 { (value as f32).to_bits() as u64 } else { value.to_bits() };
        self.bits(self.kind, bits)
    }
    /// An integer constant of this value's width.
    #[inline(always)]
    pub fn int(self, value: i64) -> X<M> {
        let bits = if self.kind.bits() == 32 { value as u32 as u64 } else { value as u64 };
        self.bits(self.kind.int(), bits)
    }
    /// `self * b + c`, rounded once.
    #[inline(always)]
    pub fn fma(self, b: impl Operand<M>, c: impl Operand<M>) -> X<M> {
        let (b, c) = (b.on(self), c.on(self));
        self.make(Op::Fma, self.kind, &[self.v, b.v, c.v])
    }
    #[inline(always)]
    pub fn sqrt(self) -> X<M> {
        self.make(Op::Sqrt, self.kind, &[self.v])
    }
    #[inline(always)]
    pub fn rint(self) -> X<M> {
        self.make(Op::Rint, self.kind, &[self.v])
    }
    /// The lesser of a number and this value; NaN if this value is NaN.
    #[inline(always)]
    pub fn at_most(self, high: f64) -> X<M> {
        self.make(Op::Min, self.kind, &[self.float(high).v, self.v])
    }
    /// The greater of a number and this value; NaN if this value is NaN.
    #[inline(always)]
    pub fn at_least(self, low: f64) -> X<M> {
        self.make(Op::Max, self.kind, &[self.float(low).v, self.v])
    }
    /// `self * 2^n`, rounded once; `shifted` is n + [`super::program::integer_bits`].
    #[inline(always)]
    pub fn scale(self, shifted: X<M>) -> X<M> {
        self.make(Op::Scale, self.kind, &[self.v, shifted.v])
    }
    /// The same if the result and 2^n are normal numbers, or this value is NaN.
    #[inline(always)]
    pub fn scale_normal(self, shifted: X<M>) -> X<M> {
        self.make(Op::ScaleNormal, self.kind, &[self.v, shifted.v])
    }
    #[inline(always)]
    pub fn sar(self, by: i64) -> X<M> {
        self.make(Op::Sar, self.kind, &[self.v, self.int(by).v])
    }
    #[inline(always)]
    fn compare(self, op: Op, b: impl Operand<M>) -> X<M> {
        let b = b.on(self);
        self.make(op, self.kind.mask(), &[self.v, b.v])
    }
    #[inline(always)]
    pub fn lt(self, b: impl Operand<M>) -> X<M> {
        self.compare(Op::Lt, b)
    }
    #[inline(always)]
    pub fn le(self, b: impl Operand<M>) -> X<M> {
        self.compare(Op::Le, b)
    }
    #[inline(always)]
    pub fn gt(self, b: impl Operand<M>) -> X<M> {
        let b = b.on(self);
        b.lt(self)
    }
    #[inline(always)]
    pub fn eq(self, b: impl Operand<M>) -> X<M> {
        self.compare(Op::Eq, b)
    }
    #[inline(always)]
    pub fn ne(self, b: impl Operand<M>) -> X<M> {
        self.compare(Op::Ne, b)
    }
    #[inline(always)]
    pub fn is_nan(self) -> X<M> {
        self.ne(self)
    }
    /// Selects by the mask `self`.
    #[inline(always)]
    pub fn select(self, yes: X<M>, no: X<M>) -> X<M> {
        self.make(Op::Select, yes.kind, &[self.v, yes.v, no.v])
    }
    /// This value, with the note that it is equal to `simple` where `mask` holds, which it nearly always does.
    #[inline(always)]
    pub fn usually(self, mask: X<M>, simple: X<M>) -> X<M> {
        self.m.usually(mask.v, self.v, simple.v);
        self
    }
    /// Selects by `self`, a mask that nearly always holds.
    #[inline(always)]
    pub fn usually_select(self, yes: X<M>, no: X<M>) -> X<M> {
        self.select(yes, no).usually(self, yes)
    }
    /// `self` where `mask` is false, else `other`.
    #[inline(always)]
    pub fn or_if(self, mask: X<M>, other: impl Operand<M>) -> X<M> {
        let other = other.on(self);
        mask.select(other, self)
    }
    #[inline(always)]
    pub fn bitcast(self, kind: Kind) -> X<M> {
        self.make(Op::Bitcast, kind, &[self.v])
    }
    #[inline(always)]
    pub fn as_int(self) -> X<M> {
        self.bitcast(self.kind.int())
    }
    #[inline(always)]
    pub fn as_float(self) -> X<M> {
        self.bitcast(if self.kind.bits() == 32 { Kind::F32 } else { Kind::F64 })
    }
    #[inline(always)]
    pub fn convert(self, kind: Kind) -> X<M> {
        self.make(Op::Convert, kind, &[self.v])
    }
    /// The sign bit alone, as an integer.
    #[inline(always)]
    pub fn sign(self) -> X<M> {
        let i = self.as_int();
        i & i.int(1 << (self.kind.bits() - 1))
    }
    #[inline(always)]
    pub fn abs(self) -> X<M> {
        let i = self.as_int();
        (i & i.int(!(1 << (self.kind.bits() - 1)))).as_float()
    }
    /// With the bits of `sign` (an integer: a sign bit or zero) exclusive-ored in.
    #[inline(always)]
    pub fn flip(self, sign: X<M>) -> X<M> {
        (self.as_int() ^ sign).as_float()
    }
    /// The polynomial `c[0] + c[1] x + ...` by Horner's rule, one fma a step.
    #[inline(always)]
    pub fn poly(self, c: &[f64]) -> X<M> {
        let mut y = self.float(c[c.len() - 1]);
        for &k in c.iter().rev().skip(1) {
            y = y.fma(self, k);
        }
        y
    }
}

impl<M: Machine> X<M> {
    /// The same polynomial by Horner's rule in `square`, which is x * x: the same number of steps, but dependency
    /// chains of half the length.
    #[inline(always)]
    pub fn poly_by_pairs(self, square: X<M>, c: &[f64]) -> X<M> {
        let pair = |c: &[f64]| match *c {
            [low, high] => self.float(high).fma(self, low),
            [low, ..] => self.float(low),
            [] => self.float(0.0),
        };
        let mut pairs = c.chunks(2).rev();
        let mut y = pair(pairs.next().unwrap_or(&[]));
        for low in pairs {
            y = y.fma(square, pair(low));
        }
        y
    }
}

/// The right operand of an operator: a value, or a number that becomes a constant of the left value's kind.
pub trait Operand<M: Machine> {
    fn on(self, like: X<M>) -> X<M>;
}

impl<M: Machine> Operand<M> for X<M> {
    #[inline(always)]
    fn on(self, _: X<M>) -> X<M> {
        self
    }
}

impl<M: Machine> Operand<M> for f64 {
    #[inline(always)]
    fn on(self, like: X<M>) -> X<M> {
        like.float(self)
    }
}

impl<M: Machine> Operand<M> for i64 {
    #[inline(always)]
    fn on(self, like: X<M>) -> X<M> {
        like.int(self)
    }
}

macro_rules! operators {
    ($($trait:ident $name:ident $op:ident),*) => {
        $(impl<M: Machine, T: Operand<M>> $trait<T> for X<M> {
            type Output = X<M>;
            #[inline(always)]
            fn $name(self, rhs: T) -> X<M> {
                let rhs = rhs.on(self);
                self.make(Op::$op, self.kind, &[self.v, rhs.v])
            }
        })*
    };
}
operators!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div, BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor, Shl shl Shl, Shr shr Shr);

impl<M: Machine> Neg for X<M> {
    type Output = X<M>;
    #[inline(always)]
    fn neg(self) -> X<M> {
        if self.kind.is_float() { self.flip(self.int(1 << (self.kind.bits() - 1))) } else { self.int(0) - self }
    }
}
