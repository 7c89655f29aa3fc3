//! Python's own functions, methods of its lists, dicts and strings, and the module `math`.

use super::{Args, Does, Entry, run};
use crate::source::expr::ast::{Binary, Compare};
use crate::source::expr::error::{Res, Stop};
use crate::source::expr::eval::{Eval, LONGEST};
use crate::source::expr::value::Value;

#[rustfmt::skip]
const FUNCTIONS: &[Entry] = &[
    run("python", "len(value: any)", len, "The number of items; of a tensor: its first extent."),
    run("python", "range(start: int, stop: int? = None, step: int = 1)", range, "Integers to loop over."),
    run("python", "enumerate(items: any, start: int = 0)", enumerate, "Pairs of position and item."),
    run("python", "zip(*lists: any)", zip, "Tuples of the items of several lists."),
    run("python", "reversed(items: any)", reversed, "The items from the last to the first."),
    run("python", "sorted(items: any, *, reverse: bool = False)", sorted, "The numbers or strings in order."),
    run("python", "sum(items: any, start: any = 0)", sum, "The sum of a list."),
    run("python", "min(*values: any)", |e, a| extreme(e, a, Compare::Lt), "The smallest."),
    run("python", "max(*values: any)", |e, a| extreme(e, a, Compare::Gt), "The greatest."),
    run("python", "abs(value: any)", abs, "The absolute value."),
    run("python", "round(value: number, digits: int? = None)", round, "The nearest integer, or the nearest number with the given digits."),
    run("python", "pow(base: any, exponent: any)", |e, a| e.binary_op(Binary::Pow, a.get("base"), a.get("exponent")), "base ** exponent."),
    run("python", "any(items: any)", |e, a| every(e, a, true), "True if any item is true."),
    run("python", "all(items: any)", |e, a| every(e, a, false), "True if all items are true."),
    run("python", "isinstance(value: any, class: any)", |e, a| Ok(Value::Bool(e.is_instance(a.get("value"), a.get("class"))?)), "True if the value is an instance of a class."),
    run("python", "hasattr(value: any, name: str)", hasattr, "True if the value has an attribute."),
    run("python", "getattr(value: any, name: str, default: any = None)", getattr, "An attribute by name."),
    run("python", "setattr(value: any, name: str, new: any)", setattr, "Sets an attribute by name."),
    run("python", "map(function: any, items: any)", map, "The function's results."),
    run("python", "print(*values: any)", |_, _| Ok(Value::None), "Accepted; prints nothing."),
    run("python", "callable(value: any)", |_, a| Ok(Value::Bool(matches!(a.get("value"), Value::Function(_) | Value::Library(..) | Value::Bound(..) | Value::Class(_) | Value::Object(_)))), "True if the value can be called."),
];

#[rustfmt::skip]
pub const MATH: &[Entry] = &[
    run("math", "sqrt(x: number)", |e, a| real(e, a, f64::sqrt), "The square root."),
    run("math", "exp(x: number)", |e, a| real(e, a, f64::exp), "e to the power of x."),
    run("math", "log(x: number, base: number? = None)", log, "The logarithm, natural or to a base."),
    run("math", "log2(x: number)", |e, a| real(e, a, f64::log2), "The logarithm to base 2."),
    run("math", "log10(x: number)", |e, a| real(e, a, f64::log10), "The logarithm to base 10."),
    run("math", "sin(x: number)", |e, a| real(e, a, f64::sin), "The sine."),
    run("math", "cos(x: number)", |e, a| real(e, a, f64::cos), "The cosine."),
    run("math", "tan(x: number)", |e, a| real(e, a, f64::tan), "The tangent."),
    run("math", "tanh(x: number)", |e, a| real(e, a, f64::tanh), "The hyperbolic tangent."),
    run("math", "atan(x: number)", |e, a| real(e, a, f64::atan), "The inverse of the tangent."),
    run("math", "fabs(x: number)", |e, a| real(e, a, f64::abs), "The absolute value."),
    run("math", "pow(x: number, y: number)", |e, a| Ok(Value::Float(both(e, a)?.0.powf(both(e, a)?.1))), "x ** y."),
    run("math", "floor(x: number)", |e, a| whole(e, a, f64::floor), "Rounded down."),
    run("math", "ceil(x: number)", |e, a| whole(e, a, f64::ceil), "Rounded up."),
    run("math", "trunc(x: number)", |e, a| whole(e, a, f64::trunc), "Rounded towards 0."),
    run("math", "isnan(x: number)", |e, a| Ok(Value::Bool(one(e, a)?.is_nan())), "True if x is not a number."),
    run("math", "isinf(x: number)", |e, a| Ok(Value::Bool(one(e, a)?.is_infinite())), "True if x is infinite."),
    run("math", "gcd(x: int, y: int)", gcd, "The greatest common divisor."),
    run("math", "isqrt(x: int)", isqrt, "The integer part of the square root."),
    run("math", "prod(items: any)", prod, "The product of a list."),
];

/// The meaning of a name that the text does not define.
pub fn python(name: &str) -> Option<Value> {
    Some(match name {
        "torch" => Value::Module("torch"),
        "nn" => Value::Module("nn"),
        "F" => Value::Module("F"),
        "math" => Value::Module("math"),
        "int" => Value::Type("int"),
        "float" => Value::Type("float"),
        "bool" => Value::Type("bool"),
        "str" => Value::Type("str"),
        "list" => Value::Type("list"),
        "tuple" => Value::Type("tuple"),
        "dict" => Value::Type("dict"),
        "object" => Value::Type("object"),
        _ => Value::Library(FUNCTIONS.iter().find(|f| f.name() == name)?, None),
    })
}

pub fn python_names() -> impl Iterator<Item = &'static str> {
    let types = ["torch", "nn", "F", "math", "int", "float", "bool", "str", "list", "tuple", "dict"];
    FUNCTIONS.iter().map(Entry::name).chain(types)
}

/// `int(x)`, `list(x)`.
pub fn construct(e: &mut Eval<'_>, name: &str, args: Vec<Value>, keywords: Vec<(String, Value)>) -> Res<Value> {
    if name == "dict" && args.is_empty() {
        return Ok(Value::dict(keywords.into_iter().map(|(k, v)| (Value::str(&k), v)).collect()));
    }
    let arg = args.into_iter().next();
    Ok(match (name, arg) {
        ("list", None) => Value::list(vec![]),
        ("tuple", None) => Value::tuple(vec![]),
        ("dict", None) => Value::dict(vec![]),
        ("int", None) => Value::Int(0),
        ("float", None) => Value::Float(0.0),
        ("list", Some(v)) => Value::list(e.items(&v)?),
        ("tuple", Some(v)) => Value::tuple(e.items(&v)?),
        ("dict", Some(v @ Value::Dict(_))) => v,
        ("bool", Some(v)) => Value::Bool(e.truth(&v)?),
        ("int" | "float", Some(Value::Tensor(_))) => {
            return e.fail_help(
                "the values of a tensor are not known while the text is evaluated",
                "convert its type with `.to(torch.int64)`",
            );
        }
        ("int", Some(v @ (Value::Int(_) | Value::Extent(_)))) => v,
        ("int", Some(Value::Bool(b))) => Value::Int(b.into()),
        ("int", Some(Value::Float(x))) if x.is_finite() && x.abs() < 9e18 => Value::Int(x as i64),
        ("float", Some(v @ Value::Float(_))) => v,
        ("float", Some(Value::Int(i))) => Value::Float(i as f64),
        ("float", Some(Value::Bool(b))) => Value::Float(f64::from(u8::from(b))),
        ("float", Some(Value::Str(s))) => match &*s.to_ascii_lowercase() {
            "inf" | "infinity" | "+inf" => Value::Float(f64::INFINITY),
            "-inf" | "-infinity" => Value::Float(f64::NEG_INFINITY),
            "nan" => Value::Float(f64::NAN),
            other => match other.parse() {
                Ok(x) => Value::Float(x),
                Err(_) => return e.fail("this string is not a number"),
            },
        },
        ("str", Some(Value::Int(i))) => Value::str(&i.to_string()),
        ("str", Some(v @ Value::Str(_))) => v,
        ("object", None) => Value::None,
        (name, Some(v)) => {
            let kind = v.kind();
            return e.fail(format!("{kind} cannot become {name}"));
        }
        (name, None) => return e.fail(format!("{name} needs a value")),
    })
}

/// The methods of a list, dict, string or tuple.
pub fn methods_of(v: &Value) -> &'static [&'static str] {
    match v {
        Value::List(_) => &["append", "extend", "insert", "pop", "reverse", "copy", "index"],
        Value::Dict(_) => &["items", "keys", "values", "get", "update"],
        Value::Str(_) => &["lower", "upper", "startswith", "endswith", "split", "strip"],
        Value::Tuple(_) => &["index", "count", "numel"],
        _ => &[],
    }
}

pub fn method(e: &mut Eval<'_>, v: &Value, name: &str, args: Vec<Value>, keywords: Vec<(String, Value)>) -> Res<Value> {
    if !keywords.is_empty() && name != "update" {
        return e.fail(format!("`{name}` takes no named arguments"));
    }
    let first = args.first().cloned();
    Ok(match (v, name, first) {
        (Value::List(l), "append", Some(x)) if args.len() == 1 => {
            if l.borrow().len() >= LONGEST {
                return e.fail("this list becomes too long");
            }
            l.borrow_mut().push(x);
            Value::None
        }
        (Value::List(l), "extend", Some(x)) => {
            let more = e.items(&x)?;
            if l.borrow().len() + more.len() > LONGEST {
                return e.fail("this list becomes too long");
            }
            l.borrow_mut().extend(more);
            Value::None
        }
        (Value::List(l), "insert", Some(Value::Int(at))) => {
            let len = l.borrow().len();
            if len >= LONGEST {
                return e.fail("this list becomes too long");
            }
            let at = if at < 0 { at + len as i64 } else { at }.clamp(0, len as i64) as usize;
            l.borrow_mut().insert(at, args.get(1).cloned().unwrap_or(Value::None));
            Value::None
        }
        (Value::List(l), "pop", at) => {
            let len = l.borrow().len() as i64;
            let at = match at {
                Some(Value::Int(i)) => i,
                _ => -1,
            };
            let at = if at < 0 { at + len } else { at };
            match usize::try_from(at).ok().filter(|at| (*at as i64) < len) {
                Some(at) => l.borrow_mut().remove(at),
                None => return e.fail("the list does not have this item"),
            }
        }
        (Value::List(l), "reverse", None) => {
            l.borrow_mut().reverse();
            Value::None
        }
        (Value::List(l), "copy", None) => Value::list(l.borrow().to_vec()),
        (Value::List(_) | Value::Tuple(_), "index", Some(x)) => {
            let items = e.items(v)?;
            match items.iter().position(|i| e.equal(i, &x)) {
                Some(at) => Value::Int(at as i64),
                None => return e.fail("the list does not have this item"),
            }
        }
        (Value::Tuple(t), "count", Some(x)) => Value::Int(t.iter().filter(|i| e.equal(i, &x)).count() as i64),
        (Value::Tuple(_), "numel", None) => {
            let mut all = Value::Int(1);
            for i in e.items(v)? {
                all = e.binary_op(Binary::Mul, &all, &i)?;
            }
            all
        }
        (Value::Dict(d), "items", None) => {
            Value::list(d.borrow().iter().map(|(k, v)| Value::tuple(vec![k.clone(), v.clone()])).collect())
        }
        (Value::Dict(d), "keys", None) => Value::list(d.borrow().iter().map(|(k, _)| k.clone()).collect()),
        (Value::Dict(d), "values", None) => Value::list(d.borrow().iter().map(|(_, v)| v.clone()).collect()),
        (Value::Dict(d), "get", Some(key)) => {
            let found = d.borrow().iter().find(|(k, _)| e.equal(k, &key)).map(|(_, v)| v.clone());
            found.unwrap_or_else(|| args.get(1).cloned().unwrap_or(Value::None))
        }
        (Value::Dict(_), "update", more) => {
            let mut pairs: Vec<(Value, Value)> = keywords.into_iter().map(|(k, v)| (Value::str(&k), v)).collect();
            if let Some(Value::Dict(d)) = more {
                pairs.extend(d.borrow().iter().cloned());
            }
            for (k, x) in pairs {
                e.set_item(v, &k, x)?;
            }
            Value::None
        }
        (Value::Str(s), "lower", None) => Value::str(&s.to_lowercase()),
        (Value::Str(s), "upper", None) => Value::str(&s.to_uppercase()),
        (Value::Str(s), "strip", None) => Value::str(s.trim()),
        (Value::Str(s), "startswith", Some(Value::Str(x))) => Value::Bool(s.starts_with(&*x)),
        (Value::Str(s), "endswith", Some(Value::Str(x))) => Value::Bool(s.ends_with(&*x)),
        (Value::Str(s), "split", None) => Value::list(s.split_whitespace().map(Value::str).collect()),
        (Value::Str(s), "split", Some(Value::Str(x))) if !x.is_empty() => {
            Value::list(s.split(&*x).map(Value::str).collect())
        }
        _ => {
            let kind = v.kind();
            return e.fail(format!("`{name}` of {kind} does not take these arguments"));
        }
    })
}

fn len(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let v = a.get("value");
    Ok(Value::Int(match v {
        Value::Tensor(t) => match e.shape(t).first() {
            Some(d) => return Ok(Value::extent(d.clone())),
            None => return e.fail("a tensor of rank 0 has no length"),
        },
        Value::Str(s) => s.chars().count() as i64,
        Value::Range(a, b, s) => e.range_length(*a, *b, *s),
        other => e.items(&other.clone())?.len() as i64,
    }))
}

fn range(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let (start, stop) = match a.get("stop") {
        Value::None => (Value::Int(0), a.get("start")),
        stop => (a.get("start").clone(), stop),
    };
    match (start, stop, a.get("step")) {
        (_, _, Value::Int(0)) => e.fail("the step of a range cannot be 0"),
        (Value::Int(a), Value::Int(b), Value::Int(s)) => Ok(Value::Range(a, *b, *s)),
        _ => e.fail_help(
            "a loop over an extent that is known only at run time cannot be unrolled",
            "write it with operations on whole tensors, or give the extent a number",
        ),
    }
}

fn enumerate(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let start = a.int("start").unwrap_or(0);
    let items = e.items(a.get("items"))?;
    let pairs = items.into_iter().enumerate().map(|(i, v)| {
        let at = start.saturating_add(i as i64);
        Value::tuple(vec![Value::Int(at), v])
    });
    Ok(Value::list(pairs.collect()))
}

fn zip(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let mut lists = vec![];
    for l in e.items(a.get("lists"))? {
        lists.push(e.items(&l)?);
    }
    let n = lists.iter().map(Vec::len).min().unwrap_or(0);
    let row = |i: usize| Value::tuple(lists.iter().filter_map(|l| l.get(i).cloned()).collect());
    Ok(Value::list((0..n).map(row).collect()))
}

fn reversed(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let mut items = e.items(a.get("items"))?;
    items.reverse();
    Ok(Value::list(items))
}

fn sorted(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let items = e.items(a.get("items"))?;
    let mut keyed = vec![];
    for v in items {
        let key = match &v {
            Value::Int(i) => (*i as f64, String::new()),
            Value::Float(x) => (*x, String::new()),
            Value::Str(s) => (0.0, s.to_string()),
            other => {
                let kind = other.kind();
                return e.fail(format!("{kind} cannot be sorted"));
            }
        };
        keyed.push((key, v));
    }
    keyed.sort_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    if a.is_true("reverse") {
        keyed.reverse();
    }
    Ok(Value::list(keyed.into_iter().map(|(_, v)| v).collect()))
}

fn sum(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let mut total = a.get("start").clone();
    for (i, v) in e.items(a.get("items"))?.iter().enumerate() {
        let from_zero = i == 0 && matches!(total, Value::Int(0)) && matches!(v, Value::Tensor(_));
        total = if from_zero { v.clone() } else { e.binary_op(Binary::Add, &total, v)? };
    }
    Ok(total)
}

fn extreme(e: &mut Eval<'_>, a: &Args<'_>, better: Compare) -> Res<Value> {
    let mut items = e.items(a.get("values"))?;
    if let [one @ (Value::List(_) | Value::Tuple(_) | Value::Range(..))] = items.as_slice() {
        let one = one.clone();
        items = e.items(&one)?;
    }
    let mut best: Option<Value> = None;
    for v in items {
        if let (Value::Int(_) | Value::Extent(_), Some(Value::Int(_) | Value::Extent(_))) = (&v, &best)
            && let Some(b) = &best
            && let Some(ix) = e.extreme_extent(b, &v, better == Compare::Lt)
        {
            best = Some(ix);
            continue;
        }
        best = Some(match best {
            None => v,
            Some(b) => {
                let wins = e.compare_op(better, &v, &b)?;
                if e.truth(&wins)? { v } else { b }
            }
        });
    }
    match best {
        Some(v) => Ok(v),
        None => e.fail("there is nothing to choose from"),
    }
}

fn abs(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    match a.get("value") {
        Value::Int(i) => match i.checked_abs() {
            Some(i) => Ok(Value::Int(i)),
            None => e.fail("this integer does not fit in 64 bits"),
        },
        Value::Float(x) => Ok(Value::Float(x.abs())),
        Value::Tensor(t) => {
            let arg = e.arg(t);
            Ok(Value::Tensor(e.aten1("aten.abs", vec![arg], Default::default())?))
        }
        other => {
            let kind = other.kind();
            e.fail(format!("{kind} has no absolute value"))
        }
    }
}

fn round(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let Some(x) = a.float("value") else { return e.fail("round needs a known number") };
    match a.int("digits") {
        Some(d) => {
            let scale = 10f64.powi(d.clamp(-300, 300) as i32);
            Ok(Value::Float((x * scale).round_ties_even() / scale))
        }
        None => integer(e, x.round_ties_even()),
    }
}

fn integer(e: &mut Eval<'_>, x: f64) -> Res<Value> {
    if x.abs() < 9e18 { Ok(Value::Int(x as i64)) } else { e.fail("this number does not fit in 64 bits") }
}

fn every(e: &mut Eval<'_>, a: &Args<'_>, any: bool) -> Res<Value> {
    for v in e.items(a.get("items"))? {
        if e.truth(&v)? == any {
            return Ok(Value::Bool(any));
        }
    }
    Ok(Value::Bool(!any))
}

fn name_of(a: &Args<'_>) -> String {
    match a.get("name") {
        Value::Str(s) => s.to_string(),
        _ => String::new(),
    }
}
fn found(e: &mut Eval<'_>, a: &Args<'_>) -> Option<Value> {
    let before = e.errors.len();
    let out = e.attribute(a.get("value"), &name_of(a)).ok();
    e.errors.truncate(before);
    out
}
fn hasattr(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    Ok(Value::Bool(found(e, a).is_some()))
}
fn getattr(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    Ok(found(e, a).unwrap_or_else(|| a.get("default").clone()))
}
fn setattr(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    e.set_attribute(a.get("value"), &name_of(a), a.get("new").clone())?;
    Ok(Value::None)
}

fn map(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let mut out = vec![];
    for v in e.items(a.get("items"))? {
        out.push(e.call(a.get("function"), vec![v], vec![])?);
    }
    Ok(Value::list(out))
}

fn one(e: &mut Eval<'_>, a: &Args<'_>) -> Res<f64> {
    match a.float("x") {
        Some(x) => Ok(x),
        None => e.fail("this extent is known only at run time, so functions of `math` cannot take it"),
    }
}
fn both(e: &mut Eval<'_>, a: &Args<'_>) -> Res<(f64, f64)> {
    let x = one(e, a)?;
    match a.float("y") {
        Some(y) => Ok((x, y)),
        None => e.fail("`y` must be a known number"),
    }
}
fn real(e: &mut Eval<'_>, a: &Args<'_>, f: fn(f64) -> f64) -> Res<Value> {
    let x = one(e, a)?;
    let y = f(x);
    if y.is_nan() && !x.is_nan() {
        return e.fail(format!("the function is not defined at {x}"));
    }
    Ok(Value::Float(y))
}
fn whole(e: &mut Eval<'_>, a: &Args<'_>, f: fn(f64) -> f64) -> Res<Value> {
    if let Value::Extent(_) = a.get("x") {
        return Ok(a.get("x").clone());
    }
    let x = f(one(e, a)?);
    integer(e, x)
}
fn log(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let x = one(e, a)?;
    if x <= 0.0 {
        return e.fail(format!("the function is not defined at {x}"));
    }
    Ok(Value::Float(match a.float("base") {
        Some(b) => x.ln() / b.ln(),
        None => x.ln(),
    }))
}
fn gcd(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let (Some(x), Some(y)) = (a.int("x"), a.int("y")) else { return e.fail("gcd needs known integers") };
    let (mut x, mut y) = (x.unsigned_abs(), y.unsigned_abs());
    while y != 0 {
        (x, y) = (y, x % y);
    }
    i64::try_from(x).map(Value::Int).map_err(|_| Stop)
}
fn isqrt(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    match a.int("x").and_then(|x| u64::try_from(x).ok()) {
        Some(x) => Ok(Value::Int(x.isqrt() as i64)),
        None => e.fail("isqrt needs a known integer that is not negative"),
    }
}
fn prod(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let mut all = Value::Int(1);
    for v in e.items(a.get("items"))? {
        all = e.binary_op(Binary::Mul, &all, &v)?;
    }
    Ok(all)
}

/// The functions of Python, for the page of what is known.
pub(super) fn functions() -> &'static [Entry] {
    debug_assert!(FUNCTIONS.iter().all(|f| matches!(f.does, Does::Run(_))));
    FUNCTIONS
}
