//! Tensors from nothing: random ones are inputs of the graph, the rest are constants or computed.

use bytes::Bytes;

use super::{Args, Entry, input, run};
use crate::graph::build::number_of;
use crate::graph::ir::{self, Arg, Attr, axis};
use crate::graph::{Elem, Fill, Role};
use crate::index::Ix;
use crate::num::op::Predicate;
use crate::source::expr::error::{Res, Stop};
use crate::source::expr::eval::{Eval, LONGEST};
use crate::source::expr::value::{Declared, State, Tensor, Value};

#[rustfmt::skip]
pub const ENTRIES: &[Entry] = &[
    input("torch", "randn(*size: ints, dtype: dtype? = None)", randn, "An input of normally distributed numbers."),
    input("torch", "rand(*size: ints, dtype: dtype? = None)", rand, "An input of numbers between 0 and 1."),
    input("torch", "randint(low: int, high: any = None, size: any = None, *, dtype: dtype? = None)", randint, "An input of integers from low to high - 1."),
    input("torch", "zeros(*size: ints, dtype: dtype? = None)", zeros, "Zeros."),
    input("torch", "ones(*size: ints, dtype: dtype? = None)", ones, "Ones."),
    input("torch", "empty(*size: ints, dtype: dtype? = None)", zeros, "Zeros: nothing here is left undefined."),
    input("torch", "full(size: ints, fill_value: number, *, dtype: dtype? = None)", full, "One number everywhere."),
    input("torch", "arange(start: number, end: number? = None, step: number = 1, *, dtype: dtype? = None)", arange, "start, start + step, ... below end."),
    input("torch", "linspace(start: number, end: number, steps: int, *, dtype: dtype? = None)", linspace, "Numbers from start to end at equal distances."),
    input("torch", "eye(n: int, m: int? = None, *, dtype: dtype? = None)", eye, "1 on the diagonal, else 0."),
    run("torch", "tensor(data: any, *, dtype: dtype? = None)", tensor, "A constant from a number or nested lists."),
    run("torch", "as_tensor(data: any, dtype: dtype? = None)", tensor, "The same as tensor."),
    run("torch", "randn_like(input: Tensor, *, dtype: dtype? = None)", randn_like, "An input of normally distributed numbers, in another's shape."),
    run("torch", "rand_like(input: Tensor, *, dtype: dtype? = None)", rand_like, "An input of numbers between 0 and 1, in another's shape."),
    run("torch", "zeros_like(input: Tensor, *, dtype: dtype? = None)", zeros_like, "Zeros in another's shape and type."),
    run("torch", "ones_like(input: Tensor, *, dtype: dtype? = None)", ones_like, "Ones in another's shape and type."),
    run("torch", "empty_like(input: Tensor, *, dtype: dtype? = None)", zeros_like, "Zeros in another's shape and type."),
    run("torch", "full_like(input: Tensor, fill_value: number, *, dtype: dtype? = None)", full_like, "One number, in another's shape and type."),
    run("Tensor", "new_zeros(input: Tensor, *size: ints, dtype: dtype? = None)", new_zeros, "Zeros of the tensor's type."),
    run("Tensor", "new_ones(input: Tensor, *size: ints, dtype: dtype? = None)", new_ones, "Ones of the tensor's type."),
    run("Tensor", "new_full(input: Tensor, size: ints, fill_value: number, dtype: dtype? = None)", new_full, "One number, in the tensor's type."),
    run("torch", "manual_seed(seed: int)", nothing, "Accepted; inputs have fixed seeds of their own."),
    run("nn", "Parameter(data: Tensor, requires_grad: bool = True)", parameter, "A weight: an input that is given once."),
    run("aten", "uniform(bound: float, size: ints, dtype: dtype? = None)", weight_uniform, ""),
    run("aten", "normal(size: ints, dtype: dtype? = None)", weight_normal, ""),
    run("aten", "filled(value: float, size: ints, dtype: dtype? = None)", weight_filled, ""),
];

fn extents(e: &mut Eval<'_>, a: &Args<'_>, name: &str) -> Res<Vec<Ix>> {
    match a.extents(name) {
        Some(x) => Ok(x),
        None => e.fail(format!("`{name}` must be integers")),
    }
}

fn made(e: &mut Eval<'_>, elem: Elem, shape: Vec<Ix>, role: Role, fill: Fill) -> Res<Value> {
    Ok(Value::Tensor(e.input(elem, shape, role, fill)?))
}

fn float_input(e: &mut Eval<'_>, a: &Args<'_>, shape: Vec<Ix>, like: Elem, fill: Fill) -> Res<Value> {
    let elem = a.elem("dtype").unwrap_or(like);
    if !elem.is_float() {
        return e.fail(format!("random floats cannot have the type {elem}"));
    }
    made(e, elem, shape, Role::Argument, fill)
}

fn randn(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let shape = extents(e, a, "size")?;
    float_input(e, a, shape, Elem::F32, Fill::Normal)
}
fn rand(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let shape = extents(e, a, "size")?;
    float_input(e, a, shape, Elem::F32, Fill::Uniform { lo: 0.0, hi: 1.0 })
}
fn randn_like(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let t = a.tensor(e, "input")?;
    let (shape, elem) = (e.shape(&t), e.elem(&t));
    float_input(e, a, shape, elem, Fill::Normal)
}
fn rand_like(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let t = a.tensor(e, "input")?;
    let (shape, elem) = (e.shape(&t), e.elem(&t));
    float_input(e, a, shape, elem, Fill::Uniform { lo: 0.0, hi: 1.0 })
}

/// `randint(high, size)` or `randint(low, high, size)`.
fn randint(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let (low, high, size) = match (a.get("low"), a.get("high"), a.get("size")) {
        (Value::Int(high), size @ (Value::Tuple(_) | Value::List(_)), Value::None) => (0, *high, size.clone()),
        (Value::Int(high), Value::None, size) => (0, *high, size.clone()),
        (Value::Int(low), Value::Int(high), size) => (*low, *high, size.clone()),
        _ => return e.fail("randint is called `randint(high, size)` or `randint(low, high, size)`"),
    };
    if low >= high {
        return e.fail(format!("there is no integer from {low} to {high} - 1"));
    }
    let mut shape = vec![];
    for v in e.items(&size)? {
        match v {
            Value::Int(i) => shape.push(Ix::Const(i)),
            Value::Extent(ix) => shape.push(ix),
            other => {
                let kind = other.kind();
                return e.fail(format!("`size` must hold integers, found {kind}"));
            }
        }
    }
    let elem = a.elem("dtype").unwrap_or(Elem::I64);
    if elem.is_float() {
        return e.fail_help("random integers need an integer type", "convert them: `.float()`");
    }
    made(e, elem, shape, Role::Argument, Fill::Integers { lo: low, hi: high })
}

/// One number everywhere; it becomes a node when it is used, and a weight when it becomes a parameter.
fn constant(e: &mut Eval<'_>, elem: Elem, shape: Vec<Ix>, value: f64) -> Res<Value> {
    let t = e.input(elem, shape, Role::Argument, Fill::Constant(value))?;
    if let State::Pending(d) = &mut *t.state.borrow_mut() {
        d.constant = true;
    }
    Ok(Value::Tensor(t))
}

fn zeros(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let shape = extents(e, a, "size")?;
    constant(e, a.elem("dtype").unwrap_or(Elem::F32), shape, 0.0)
}
fn ones(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let shape = extents(e, a, "size")?;
    constant(e, a.elem("dtype").unwrap_or(Elem::F32), shape, 1.0)
}
/// `fill_value` everywhere, as an element of `elem`, or of its own type where that is not given.
fn filled(e: &mut Eval<'_>, a: &Args<'_>, shape: Vec<Ix>, elem: Option<Elem>) -> Res<Value> {
    let fill = a.get("fill_value");
    let (value, own, exact) = match fill {
        Value::Int(i) => (*i as f64, Elem::I64, i.unsigned_abs() <= 1 << 53),
        Value::Bool(b) => (f64::from(u8::from(*b)), Elem::BOOL, true),
        Value::Float(x) => (*x, Elem::F32, true),
        _ => return e.fail("`fill_value` must be a known number"),
    };
    let elem = elem.unwrap_or(own);
    let held = match ir::scalar(elem, value) {
        Arg::Scalar { bits, .. } => number_of(elem, bits),
        _ => value,
    };
    let plain = elem.is_bool() || held == value || elem.is_float() && held.is_finite() == value.is_finite();
    if exact && plain {
        return constant(e, elem, shape, value);
    }
    // The operation itself cuts off, wraps or refuses numbers that do not fit.
    let Some(number) = e.number(fill) else { return e.fail("`fill_value` must be a known number") };
    let size = Attr::List(shape.into_iter().map(Attr::Int).collect());
    let attrs = [("size".to_string(), size), ("dtype".to_string(), Attr::Elem(elem))];
    Ok(Value::Tensor(e.aten1("aten.full", vec![number], attrs.into_iter().collect())?))
}

fn full(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let shape = extents(e, a, "size")?;
    filled(e, a, shape, a.elem("dtype"))
}
fn like(e: &mut Eval<'_>, a: &Args<'_>, value: f64) -> Res<Value> {
    let t = a.tensor(e, "input")?;
    let (shape, elem) = (e.shape(&t), e.elem(&t));
    constant(e, a.elem("dtype").unwrap_or(elem), shape, value)
}
fn zeros_like(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    like(e, a, 0.0)
}
fn ones_like(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    like(e, a, 1.0)
}
fn full_like(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let t = a.tensor(e, "input")?;
    let (shape, elem) = (e.shape(&t), e.elem(&t));
    filled(e, a, shape, Some(a.elem("dtype").unwrap_or(elem)))
}
fn new(e: &mut Eval<'_>, a: &Args<'_>, value: f64) -> Res<Value> {
    let t = a.tensor(e, "input")?;
    let shape = extents(e, a, "size")?;
    let elem = e.elem(&t);
    constant(e, a.elem("dtype").unwrap_or(elem), shape, value)
}
fn new_zeros(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    new(e, a, 0.0)
}
fn new_ones(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    new(e, a, 1.0)
}
fn new_full(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let t = a.tensor(e, "input")?;
    let shape = extents(e, a, "size")?;
    let elem = e.elem(&t);
    filled(e, a, shape, Some(a.elem("dtype").unwrap_or(elem)))
}

/// `start + i * step` for each position, computed in f64 for floats.
fn ramp(e: &mut Eval<'_>, name: &str, elem: Elem, count: Ix, start: f64, step: f64) -> Res<Value> {
    e.check_size(elem, std::slice::from_ref(&count))?;
    let arg = e.build(name, |b| {
        let at = b.index(axis(0), Elem::I64, vec![count]);
        let at = b.convert(at, Elem::F64)?;
        let step = ir::scalar(Elem::F64, step);
        let scaled = b.mul(at, step)?;
        let start = ir::scalar(Elem::F64, start);
        let sum = b.add(scaled, start)?;
        b.convert(sum, elem)
    })?;
    Ok(Value::Tensor(e.of_arg(arg)?))
}

fn arange(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let (start, end) = match a.get("end") {
        Value::None => (Value::Int(0), a.get("start").clone()),
        end => (a.get("start").clone(), end.clone()),
    };
    let step = a.get("step").clone();
    let ix = |v: &Value| match v {
        Value::Int(i) => Some(Ix::Const(*i)),
        Value::Extent(ix) => Some(ix.clone()),
        _ => None,
    };
    let dtype = a.elem("dtype");
    if let (Some(start), Some(end), Value::Int(step)) = (ix(&start), ix(&end), &step)
        && *step != 0
    {
        let distance = if *step > 0 { Ix::sub(end, start.clone()) } else { Ix::sub(start.clone(), end) };
        let by = step.unsigned_abs().min(i64::MAX as u64) as i64;
        let count = Ix::max(Ix::Const(0), Ix::ceil_div(distance, Ix::Const(by)));
        let count = e.simplify(&count);
        e.check_size(Elem::I64, std::slice::from_ref(&count))?;
        let elem = dtype.unwrap_or(Elem::I64);
        let at = Ix::add(Ix::mul(axis(0), Ix::Const(*step)), start);
        let arg = e.build("aten.arange", |b| {
            let ints = b.index(at, if elem.is_int() { elem } else { Elem::I64 }, vec![count]);
            b.convert(ints, elem)
        })?;
        return Ok(Value::Tensor(e.of_arg(arg)?));
    }
    let number = |v: &Value| match v {
        Value::Int(i) => Some(*i as f64),
        Value::Float(x) => Some(*x),
        _ => None,
    };
    let (Some(start), Some(end), Some(step)) = (number(&start), number(&end), number(&step)) else {
        return e.fail("the bounds of arange must be known numbers");
    };
    if step == 0.0 {
        return e.fail("the step of arange cannot be 0");
    }
    let count = ((end - start) / step).ceil();
    if !(0.0..1e12).contains(&count) {
        return e.fail("arange from start does not reach end");
    }
    ramp(e, "aten.arange", dtype.unwrap_or(Elem::F32), Ix::Const(count as i64), start, step)
}

fn linspace(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let (Some(start), Some(end), Some(steps)) = (a.float("start"), a.float("end"), a.int("steps")) else {
        return e.fail("the bounds of linspace must be known numbers");
    };
    if steps < 0 {
        return e.fail("`steps` cannot be negative");
    }
    let step = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0 };
    ramp(e, "aten.linspace", a.elem("dtype").unwrap_or(Elem::F32), Ix::Const(steps), start, step)
}

fn eye(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let Some(n) = a.extents("n").and_then(|l| l.first().cloned()) else { return e.fail("`n` must be an integer") };
    let m = a.extents("m").and_then(|l| l.first().cloned()).unwrap_or_else(|| n.clone());
    let elem = a.elem("dtype").unwrap_or(Elem::F32);
    let shape = vec![n, m];
    e.check_size(elem, &shape)?;
    let arg = e.build("aten.eye", |b| {
        let row = b.index(axis(0), Elem::I64, shape.clone());
        let column = b.index(axis(1), Elem::I64, shape);
        let equal = b.compare(Predicate::Equal, row, column)?;
        b.convert(equal, elem)
    })?;
    Ok(Value::Tensor(e.of_arg(arg)?))
}

fn flatten(e: &mut Eval<'_>, v: &Value, depth: usize, shape: &mut Vec<u64>, out: &mut Vec<Value>) -> Res<()> {
    match v {
        Value::List(_) | Value::Tuple(_) => {
            let items = e.items(v)?;
            if depth >= 12 {
                return e.fail("the lists are nested too deeply");
            }
            match shape.get(depth) {
                None => shape.push(items.len() as u64),
                Some(n) if *n == items.len() as u64 => {}
                Some(n) => {
                    let (n, have) = (*n, items.len());
                    return e.fail(format!("the lists have different lengths: {n} and {have}"));
                }
            }
            for item in &items {
                flatten(e, item, depth + 1, shape, out)?;
            }
            Ok(())
        }
        Value::Int(_) | Value::Float(_) | Value::Bool(_) if depth == shape.len() => {
            if out.len() >= LONGEST {
                return e.fail("this constant has too many elements");
            }
            out.push(v.clone());
            Ok(())
        }
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => e.fail("expected a list, found a number"),
        other => {
            let kind = other.kind();
            e.fail(format!("a constant must be made of numbers, found {kind}"))
        }
    }
}

fn tensor(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let data = a.get("data").clone();
    let dtype = a.elem("dtype");
    if let Value::Tensor(t) = &data {
        let elem = e.elem(t);
        return Ok(Value::Tensor(e.cast(t, dtype.unwrap_or(elem))?));
    }
    if let Value::Extent(_) = &data {
        return Ok(Value::Tensor(e.number_tensor(&data)?));
    }
    let (mut shape, mut numbers) = (vec![], vec![]);
    flatten(e, &data, 0, &mut shape, &mut numbers)?;
    let inferred = if numbers.iter().any(|v| matches!(v, Value::Float(_))) || numbers.is_empty() {
        Elem::F32
    } else if numbers.iter().all(|v| matches!(v, Value::Bool(_))) {
        Elem::BOOL
    } else {
        Elem::I64
    };
    let elem = dtype.unwrap_or(inferred);
    let width = elem.dtype.bytes() as usize;
    let mut bytes = vec![];
    for v in &numbers {
        let scalar = match v {
            Value::Int(i) => ir::int_scalar(elem, if elem.is_bool() { (*i != 0).into() } else { *i }),
            Value::Bool(b) => ir::int_scalar(elem, (*b).into()),
            Value::Float(x) if elem.is_bool() => ir::int_scalar(elem, (*x != 0.0).into()),
            Value::Float(x) => ir::scalar(elem, *x),
            _ => return Err(Stop),
        };
        let Arg::Scalar { bits, .. } = scalar else { return Err(Stop) };
        bytes.extend(bits.to_le_bytes().into_iter().take(width));
    }
    let arg = e.build("aten.lift_fresh_copy", |b| Ok(b.constant("const", elem, &shape, Bytes::from(bytes))))?;
    Ok(Value::Tensor(e.of_arg(arg)?))
}

fn nothing(_: &mut Eval<'_>, _: &Args<'_>) -> Res<Value> {
    Ok(Value::None)
}

/// A computed tensor keeps its type and shape; its values become those of a weight.
fn parameter(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let t = a.tensor(e, "data")?;
    let state = t.state.borrow().clone();
    let fill = match state {
        State::Pending(d) => d.fill,
        State::Ready(_) => Fill::Uniform { lo: -0.1, hi: 0.1 },
    };
    let (elem, shape) = (e.elem(&t), e.shape(&t));
    made(e, elem, shape, Role::Parameter, fill)
}

fn weight(e: &mut Eval<'_>, a: &Args<'_>, fill: Fill) -> Res<Value> {
    let shape = extents(e, a, "size")?;
    let elem = a.elem("dtype").unwrap_or(Elem::F32);
    if !elem.is_float() {
        return e.fail(format!("weights cannot have the type {elem}"));
    }
    made(e, elem, shape, Role::Parameter, fill)
}
fn weight_uniform(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let bound = a.float("bound").unwrap_or(1.0);
    weight(e, a, Fill::Uniform { lo: -bound, hi: bound })
}
fn weight_normal(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    weight(e, a, Fill::Normal)
}
fn weight_filled(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    weight(e, a, Fill::Constant(a.float("value").unwrap_or(0.0)))
}

/// A tensor in its declared form, for functions that change how inputs are made.
pub(super) fn declared(t: &Tensor, f: impl FnOnce(&mut Declared)) -> bool {
    match &mut *t.state.borrow_mut() {
        State::Pending(d) => {
            f(d);
            true
        }
        State::Ready(_) => false,
    }
}
