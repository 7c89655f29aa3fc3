//! Operators: Python's on known values, ATen's on tensors.

use std::rc::Rc;

use super::{Eval, LONGEST};
use crate::index::{Cmp, Cond, Ix};
use crate::source::expr::ast::{Binary, Compare};
use crate::source::expr::error::{Res, Stop};
use crate::source::expr::value::Value;

pub(super) fn range_len(start: i64, stop: i64, step: i64) -> i64 {
    let (a, b, s) = (i128::from(start), i128::from(stop), i128::from(step));
    let n = match s {
        0 => 0,
        s if s > 0 => (b - a + s - 1).div_euclid(s),
        s => (a - b - s - 1).div_euclid(-s),
    };
    n.clamp(0, i64::MAX.into()) as i64
}

/// A known number.
#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Float(f64),
}

fn number(v: &Value) -> Option<Number> {
    match v {
        Value::Bool(b) => Some(Number::Int((*b).into())),
        Value::Int(i) => Some(Number::Int(*i)),
        Value::Float(x) => Some(Number::Float(*x)),
        _ => None,
    }
}

fn ix_of(v: &Value) -> Option<Ix> {
    match v {
        Value::Bool(b) => Some(Ix::Const((*b).into())),
        Value::Int(i) => Some(Ix::Const(*i)),
        Value::Extent(ix) => Some(ix.clone()),
        _ => None,
    }
}

impl Eval<'_> {
    pub(super) fn binary(&mut self, op: Binary, a: &Value, b: &Value) -> Res<Value> {
        match (a, b) {
            (Value::Unknown, _) | (_, Value::Unknown) => Err(Stop),
            (Value::Tensor(_), _) | (_, Value::Tensor(_)) => self.tensor_binary(op, a, b),
            _ => self.known_binary(op, a, b),
        }
    }

    fn tensor_binary(&mut self, op: Binary, a: &Value, b: &Value) -> Res<Value> {
        let name = match op {
            Binary::Add => "aten.add",
            Binary::Sub => "aten.sub",
            Binary::Mul => "aten.mul",
            Binary::MatMul => "aten.matmul",
            Binary::Div => "aten.div",
            Binary::FloorDiv => "aten.floor_divide",
            Binary::Mod => "aten.remainder",
            Binary::Pow => "aten.pow",
            Binary::Shl => "aten.bitwise_left_shift",
            Binary::Shr => "aten.bitwise_right_shift",
            Binary::And => "aten.bitwise_and",
            Binary::Or => "aten.bitwise_or",
            Binary::Xor => "aten.bitwise_xor",
        };
        self.operation(name, op.text(), a, b)
    }

    /// A binary operation of ATen on tensors or numbers.
    fn operation(&mut self, name: &str, sign: &str, a: &Value, b: &Value) -> Res<Value> {
        let mut args = vec![];
        for v in [a, b] {
            let arg = match v {
                Value::Tensor(t) if !(name == "aten.matmul" && self.rank(t) == 0) => Some(self.arg(t)),
                _ if name == "aten.matmul" => None,
                other => self.number(other),
            };
            let Some(arg) = arg else {
                let (a, b) = (a.kind(), b.kind());
                return self.fail(format!("`{sign}` cannot be applied to {a} and {b}"));
            };
            args.push(arg);
        }
        Ok(Value::Tensor(self.aten1(name, args, Default::default())?))
    }

    fn known_binary(&mut self, op: Binary, a: &Value, b: &Value) -> Res<Value> {
        if let (Some(x), Some(y)) = (number(a), number(b)) {
            return self.numbers(op, x, y, a, b);
        }
        if let (Some(x), Some(y)) = (ix_of(a), ix_of(b)) {
            return self.extents(op, x, y);
        }
        match (op, a, b) {
            (_, Value::Extent(_), Value::Float(_)) | (_, Value::Float(_), Value::Extent(_)) => self.fail_help(
                "an extent that is known only at run time cannot be combined with a float",
                "give the extent a number, or make the scale an input",
            ),
            (Binary::Div, Value::Extent(_), _) | (Binary::Div, _, Value::Extent(_)) => {
                self.fail_help("`/` of an extent that is known only at run time gives a float", "use `//`")
            }
            (Binary::Add, Value::Str(x), Value::Str(y)) => {
                if x.len() + y.len() > LONGEST {
                    return self.fail("this string becomes too long");
                }
                Ok(Value::Str(format!("{x}{y}").into()))
            }
            (Binary::Add, Value::List(x), Value::List(y)) => {
                let joined: Vec<Value> = x.borrow().iter().chain(y.borrow().iter()).cloned().collect();
                if joined.len() > LONGEST {
                    return self.fail("this list becomes too long");
                }
                Ok(Value::list(joined))
            }
            (Binary::Add, Value::Tuple(x), Value::Tuple(y)) => {
                if x.len() + y.len() > LONGEST {
                    return self.fail("this tuple becomes too long");
                }
                Ok(Value::tuple(x.iter().chain(y.iter()).cloned().collect()))
            }
            (Binary::Mul, Value::List(_) | Value::Tuple(_) | Value::Str(_), Value::Int(n))
            | (Binary::Mul, Value::Int(n), Value::List(_) | Value::Tuple(_) | Value::Str(_)) => {
                let sequence = if matches!(a, Value::Int(_)) { b } else { a };
                let items = self.items(sequence)?;
                let times = if items.is_empty() { 0 } else { usize::try_from(*n).unwrap_or(0) };
                if items.len().saturating_mul(times) > LONGEST {
                    return self.fail("this list becomes too long");
                }
                let repeated: Vec<Value> = (0..times).flat_map(|_| items.iter().cloned()).collect();
                Ok(match sequence {
                    Value::Tuple(_) => Value::tuple(repeated),
                    Value::Str(s) => Value::Str(s.repeat(times).into()),
                    _ => Value::list(repeated),
                })
            }
            _ => {
                let (sign, a, b) = (op.text(), a.kind(), b.kind());
                self.fail(format!("`{sign}` cannot be applied to {a} and {b}"))
            }
        }
    }

    fn numbers(&mut self, op: Binary, x: Number, y: Number, a: &Value, b: &Value) -> Res<Value> {
        if let (Number::Int(x), Number::Int(y)) = (x, y) {
            let both = matches!((a, b), (Value::Bool(_), Value::Bool(_)));
            let int = |v: Option<i64>| v.map(Value::Int);
            let zero = y == 0 && matches!(op, Binary::Div | Binary::FloorDiv | Binary::Mod);
            if zero {
                return self.fail("division by zero");
            }
            let result = match op {
                Binary::Add => int(x.checked_add(y)),
                Binary::Sub => int(x.checked_sub(y)),
                Binary::Mul => int(x.checked_mul(y)),
                Binary::Div => Some(Value::Float(x as f64 / y as f64)),
                Binary::FloorDiv => int(floor_div(x, y)),
                Binary::Mod => int(floor_div(x, y).and_then(|q| x.checked_sub(q.checked_mul(y)?))),
                Binary::Pow if y < 0 => Some(Value::Float((x as f64).powf(y as f64))),
                Binary::Pow => int(u32::try_from(y).ok().and_then(|y| x.checked_pow(y))),
                Binary::Shl => int(u32::try_from(y).ok().filter(|y| *y < 63).and_then(|y| x.checked_mul(1 << y))),
                Binary::Shr => int(u32::try_from(y).ok().map(|y| x >> y.min(63))),
                Binary::And if both => Some(Value::Bool(x & y != 0)),
                Binary::Or if both => Some(Value::Bool(x | y != 0)),
                Binary::Xor if both => Some(Value::Bool(x ^ y != 0)),
                Binary::And => Some(Value::Int(x & y)),
                Binary::Or => Some(Value::Int(x | y)),
                Binary::Xor => Some(Value::Int(x ^ y)),
                Binary::MatMul => return self.fail("`@` needs tensors"),
            };
            return match result {
                Some(v) => Ok(v),
                None => self.fail("this integer does not fit in 64 bits"),
            };
        }
        let float = |n| match n {
            Number::Int(i) => i as f64,
            Number::Float(x) => x,
        };
        let (x, y) = (float(x), float(y));
        if y == 0.0 && matches!(op, Binary::Div | Binary::FloorDiv | Binary::Mod) {
            return self.fail("division by zero");
        }
        Ok(Value::Float(match op {
            Binary::Add => x + y,
            Binary::Sub => x - y,
            Binary::Mul => x * y,
            Binary::Div => x / y,
            Binary::FloorDiv => (x / y).floor(),
            Binary::Mod => x - (x / y).floor() * y,
            Binary::Pow => x.powf(y),
            _ => {
                let sign = op.text();
                return self.fail(format!("`{sign}` cannot be applied to floats"));
            }
        }))
    }

    /// Arithmetic on extents that symbols determine.
    fn extents(&mut self, op: Binary, x: Ix, y: Ix) -> Res<Value> {
        let positive = |e: &Self, d: &Ix| e.facts().range(d).lo > 0;
        let ix = match op {
            Binary::Add => Ix::add(x, y),
            Binary::Sub => Ix::sub(x, y),
            Binary::Mul => Ix::mul(x, y),
            Binary::FloorDiv if positive(self, &y) => Ix::floor_div(x, y),
            Binary::Mod if positive(self, &y) => Ix::modulo(x, y),
            Binary::Div => {
                return self.fail_help("`/` of an extent that is known only at run time gives a float", "use `//`");
            }
            Binary::Pow if y.is_const(2) => Ix::mul(x.clone(), x),
            _ => {
                let sign = op.text();
                return self.fail(format!("`{sign}` is not supported on extents that are known only at run time"));
            }
        };
        if leaves(&ix) > 200 {
            return self.fail("this extent is too complicated");
        }
        let ix = self.simplify(&ix);
        Ok(Value::extent(ix))
    }

    pub(super) fn compare(&mut self, op: Compare, a: &Value, b: &Value) -> Res<Value> {
        match op {
            Compare::Is => return Ok(Value::Bool(self.identical(a, b))),
            Compare::IsNot => return Ok(Value::Bool(!self.identical(a, b))),
            Compare::In | Compare::NotIn => {
                let found = self.contains(a, b)?;
                return Ok(Value::Bool(found == (op == Compare::In)));
            }
            _ => {}
        }
        if matches!(a, Value::Unknown) || matches!(b, Value::Unknown) {
            return Err(Stop);
        }
        let (name, cmp, sign) = match op {
            Compare::Eq => ("aten.eq", Cmp::Eq, "=="),
            Compare::Ne => ("aten.ne", Cmp::Ne, "!="),
            Compare::Lt => ("aten.lt", Cmp::Lt, "<"),
            Compare::Le => ("aten.le", Cmp::Le, "<="),
            Compare::Gt => ("aten.gt", Cmp::Gt, ">"),
            _ => ("aten.ge", Cmp::Ge, ">="),
        };
        let none = matches!(a, Value::None) || matches!(b, Value::None);
        if !none && (matches!(a, Value::Tensor(_)) || matches!(b, Value::Tensor(_))) {
            return self.operation(name, sign, a, b);
        }
        if let (Some(x), Some(y)) = (number(a), number(b)) {
            let holds = match (x, y) {
                (Number::Int(x), Number::Int(y)) => cmp.holds(x, y),
                (x, y) => {
                    let float = |n| match n {
                        Number::Int(i) => i as f64,
                        Number::Float(x) => x,
                    };
                    let (x, y) = (float(x), float(y));
                    match cmp {
                        Cmp::Eq => x == y,
                        Cmp::Ne => x != y,
                        Cmp::Lt => x < y,
                        Cmp::Le => x <= y,
                        Cmp::Gt => x > y,
                        Cmp::Ge => x >= y,
                    }
                }
            };
            return Ok(Value::Bool(holds));
        }
        if let (Some(x), Some(y)) = (ix_of(a), ix_of(b)) {
            if let Some(holds) = self.facts().decide(&Cond::new(x.clone(), cmp, y.clone())) {
                return Ok(Value::Bool(holds));
            }
            let text = format!("{} {sign} {}", self.graph.ix_text(&x), self.graph.ix_text(&y));
            return self.fail_help(
                format!("it is known only at run time whether {text}"),
                "give the extent a number in place of the name",
            );
        }
        match cmp {
            Cmp::Eq => Ok(Value::Bool(self.equal(a, b))),
            Cmp::Ne => Ok(Value::Bool(!self.equal(a, b))),
            _ => match (a, b) {
                (Value::Str(x), Value::Str(y)) => Ok(Value::Bool(cmp.holds(x, y))),
                _ => {
                    let (a, b) = (a.kind(), b.kind());
                    self.fail(format!("`{sign}` cannot compare {a} and {b}"))
                }
            },
        }
    }

    /// `==` of values that are not tensors.
    pub(in crate::source::expr) fn equal(&self, a: &Value, b: &Value) -> bool {
        self.equal_within(a, b, 30)
    }

    /// Values nested more deeply than `depth` are not equal.
    fn equal_within(&self, a: &Value, b: &Value, depth: u32) -> bool {
        let same = |x: &[Value], y: &[Value]| {
            depth > 0 && x.len() == y.len() && x.iter().zip(y).all(|(a, b)| self.equal_within(a, b, depth - 1))
        };
        match (a, b) {
            (Value::None, Value::None) | (Value::Ellipsis, Value::Ellipsis) => true,
            (Value::Str(x) | Value::Device(x), Value::Str(y) | Value::Device(y)) => x == y,
            (Value::Dtype(x), Value::Dtype(y)) => x == y,
            (Value::Tuple(x), Value::Tuple(y)) => same(x, y),
            (Value::List(x), Value::List(y)) => Rc::ptr_eq(x, y) || same(&x.borrow(), &y.borrow()),
            _ => match (number(a), number(b), ix_of(a), ix_of(b)) {
                (Some(Number::Int(x)), Some(Number::Int(y)), ..) => x == y,
                (Some(Number::Float(x)), Some(Number::Float(y)), ..) => x == y,
                (Some(Number::Int(x)), Some(Number::Float(y)), ..)
                | (Some(Number::Float(y)), Some(Number::Int(x)), ..) => x as f64 == y,
                (_, _, Some(x), Some(y)) => self.simplify(&x) == self.simplify(&y),
                _ => self.identical(a, b),
            },
        }
    }

    fn identical(&self, a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::None, Value::None) | (Value::Ellipsis, Value::Ellipsis) => true,
            (Value::Bool(x), Value::Bool(y)) => x == y,
            (Value::Int(x), Value::Int(y)) => x == y,
            (Value::Str(x), Value::Str(y)) => x == y,
            (Value::Dtype(x), Value::Dtype(y)) => x == y,
            (Value::Tensor(x), Value::Tensor(y)) => Rc::ptr_eq(x, y),
            (Value::Object(x), Value::Object(y)) => Rc::ptr_eq(x, y),
            (Value::Class(x), Value::Class(y)) => Rc::ptr_eq(x, y),
            (Value::List(x), Value::List(y)) => Rc::ptr_eq(x, y),
            (Value::Type(x), Value::Type(y)) => x == y,
            _ => false,
        }
    }

    fn contains(&mut self, a: &Value, b: &Value) -> Res<bool> {
        match (a, b) {
            (Value::Str(x), Value::Str(y)) => Ok(y.contains(&**x)),
            (_, Value::Tuple(_) | Value::List(_) | Value::Dict(_) | Value::Range(..)) => {
                let items = self.items(b)?;
                Ok(items.iter().any(|i| self.equal(a, i)))
            }
            _ => {
                let kind = b.kind();
                self.fail(format!("`in` is not supported for {kind}"))
            }
        }
    }
}

fn floor_div(x: i64, y: i64) -> Option<i64> {
    let q = x.checked_div(y)?;
    let exact = q.checked_mul(y)? == x;
    Some(if !exact && (x < 0) != (y < 0) { q - 1 } else { q })
}

fn leaves(ix: &Ix) -> usize {
    let mut n = 0;
    ix.for_each_leaf(&mut |_| n += 1);
    n
}
