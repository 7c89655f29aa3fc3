//! Methods of tensors that describe them, or change their type.

use super::create::declared;
use super::{Args, DTYPES, Entry, run};
use crate::graph::{Attr, Attrs, Elem};
use crate::source::expr::error::Res;
use crate::source::expr::eval::Eval;
use crate::source::expr::value::{State, Value};

#[rustfmt::skip]
pub const ENTRIES: &[Entry] = &[
    run("Tensor", "size(input: Tensor, dim: int? = None)", size, "The shape, or one extent."),
    run("Tensor", "dim(input: Tensor)", dim, "The number of dimensions."),
    run("Tensor torch", "numel(input: Tensor)", numel, "The number of elements."),
    run("Tensor", "nelement(input: Tensor)", numel, "The number of elements."),
    run("Tensor torch", "is_floating_point(input: Tensor)", is_floating_point, "True if the elements are floats."),
    run("Tensor", "element_size(input: Tensor)", element_size, "Bytes of an element."),
    run("Tensor", "to(input: Tensor, *args: any, dtype: dtype? = None)", to, "In another type; a device changes nothing."),
    run("Tensor", "type(input: Tensor, dtype: dtype)", to, "In another type."),
    run("Tensor", "type_as(input: Tensor, other: Tensor)", type_as, "In another tensor's type."),
    run("Tensor", "float(input: Tensor)", |e, a| as_type(e, a, Elem::F32), "In float32."),
    run("Tensor", "double(input: Tensor)", |e, a| as_type(e, a, Elem::F64), "In float64."),
    run("Tensor", "half(input: Tensor)", |e, a| as_type(e, a, Elem::F16), "In float16."),
    run("Tensor", "bfloat16(input: Tensor)", |e, a| as_type(e, a, Elem::BF16), "In bfloat16."),
    run("Tensor", "long(input: Tensor)", |e, a| as_type(e, a, Elem::I64), "In int64."),
    run("Tensor", "int(input: Tensor)", |e, a| as_type(e, a, Elem::I32), "In int32."),
    run("Tensor", "bool(input: Tensor)", |e, a| as_type(e, a, Elem::BOOL), "True where an element is not 0."),
    run("Tensor", "view_as(input: Tensor, other: Tensor)", view_as, "In another tensor's shape."),
    run("Tensor", "reshape_as(input: Tensor, other: Tensor)", view_as, "In another tensor's shape."),
    run("Tensor", "expand_as(input: Tensor, other: Tensor)", expand_as, "Stretched to another tensor's shape."),
    run("Tensor", "cpu(input: Tensor)", same, "The tensor itself."),
    run("Tensor", "cuda(input: Tensor)", same, "The tensor itself."),
    run("Tensor", "requires_grad_(input: Tensor, requires_grad: bool = True)", same, "The tensor itself."),
    run("Tensor", "copy_(input: Tensor, src: Tensor)", copy, "Takes another tensor's elements."),
    run("Tensor", "fill_(input: Tensor, value: number)", fill, "Becomes one number everywhere."),
    run("Tensor", "zero_(input: Tensor)", zero, "Becomes 0 everywhere."),
    run("Tensor", "item(input: Tensor)", item, "Refused: elements are not known while the text is evaluated."),
    run("Tensor", "tolist(input: Tensor)", item, "Refused: elements are not known while the text is evaluated."),
    run("aten", "cast_module(module: any, dtype: dtype)", cast_module, ""),
    run("aten", "fields(module: any)", fields, ""),
    run("torch", "device(name: any)", device, "Accepted; everything is on the CPU."),
    run("torch", "compile(model: any)", |_, a| Ok(a.get("model").clone()), "The function or module itself."),
];

fn size(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let t = a.tensor(e, "input")?;
    let shape = Value::ints(&e.shape(&t));
    match a.get("dim") {
        Value::None => Ok(shape),
        at => e.item(&shape, &at.clone()),
    }
}
fn dim(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let t = a.tensor(e, "input")?;
    Ok(Value::Int(e.rank(&t) as i64))
}
fn numel(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let t = a.tensor(e, "input")?;
    Ok(Value::extent(e.graph.numel(&e.shape(&t))))
}
fn is_floating_point(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let t = a.tensor(e, "input")?;
    Ok(Value::Bool(e.elem(&t).is_float()))
}
fn element_size(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let t = a.tensor(e, "input")?;
    Ok(Value::Int(e.elem(&t).dtype.bytes() as i64))
}
fn same(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    Ok(Value::Tensor(a.tensor(e, "input")?))
}
fn as_type(e: &mut Eval<'_>, a: &Args<'_>, elem: Elem) -> Res<Value> {
    let t = a.tensor(e, "input")?;
    Ok(Value::Tensor(e.cast(&t, elem)?))
}

/// The element type that `.to(...)` asks for, given as a type or by another tensor; a device asks for none.
fn wanted(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Option<Elem>> {
    if let Some(elem) = a.elem("dtype") {
        return Ok(Some(elem));
    }
    let Value::Tuple(args) = a.get("args") else { return Ok(None) };
    for v in args.iter() {
        match v {
            Value::Dtype(elem) => return Ok(Some(*elem)),
            Value::Tensor(t) => return Ok(Some(e.elem(t))),
            Value::Type("float") => return Ok(Some(Elem::F32)),
            Value::Type("int") => return Ok(Some(Elem::I64)),
            Value::Type("bool") => return Ok(Some(Elem::BOOL)),
            Value::Str(s) if s.starts_with("cpu") || s.starts_with("cuda") || s.starts_with("mps") => {}
            Value::Device(_) | Value::Bool(_) | Value::None => {}
            other => {
                let kind = other.kind();
                let names: Vec<&str> = DTYPES.iter().map(|(n, _)| *n).take(1).collect();
                return e.fail(format!("`to` takes a dtype such as torch.{}, found {kind}", names.join("")));
            }
        }
    }
    Ok(None)
}
fn to(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let t = a.tensor(e, "input")?;
    match wanted(e, a)? {
        Some(elem) => Ok(Value::Tensor(e.cast(&t, elem)?)),
        None => Ok(Value::Tensor(t)),
    }
}
fn type_as(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let (t, other) = (a.tensor(e, "input")?, a.tensor(e, "other")?);
    let elem = e.elem(&other);
    Ok(Value::Tensor(e.cast(&t, elem)?))
}

fn shaped(e: &mut Eval<'_>, a: &Args<'_>, name: &str) -> Res<Value> {
    let (t, other) = (a.tensor(e, "input")?, a.tensor(e, "other")?);
    let size = Attr::List(e.shape(&other).into_iter().map(Attr::Int).collect());
    let arg = e.arg(&t);
    let out = e.aten1(name, vec![arg], Attrs::from([("size".into(), size)]))?;
    t.shared.set(true);
    out.shared.set(true);
    Ok(Value::Tensor(out))
}
fn view_as(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    shaped(e, a, "aten.view")
}
fn expand_as(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    shaped(e, a, "aten.expand")
}

fn copy(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let t = Value::Tensor(a.tensor(e, "input")?);
    e.set_item(&t, &Value::Ellipsis, a.get("src").clone())?;
    Ok(t)
}
fn fill(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let t = Value::Tensor(a.tensor(e, "input")?);
    e.set_item(&t, &Value::Ellipsis, a.get("value").clone())?;
    Ok(t)
}
fn zero(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let t = Value::Tensor(a.tensor(e, "input")?);
    e.set_item(&t, &Value::Ellipsis, Value::Int(0))?;
    Ok(t)
}
fn item(e: &mut Eval<'_>, _: &Args<'_>) -> Res<Value> {
    e.fail_help(
        "the values of a tensor are not known while the text is evaluated",
        "keep it a tensor: operations on tensors take it as it is",
    )
}
fn device(_: &mut Eval<'_>, _: &Args<'_>) -> Res<Value> {
    Ok(Value::Device("cpu".into()))
}

/// The tensors and modules that a module holds, as pairs of name and value.
fn fields(_: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let Value::Object(o) = a.get("module") else { return Ok(Value::list(vec![])) };
    let held = o.fields.borrow();
    let pairs = held.iter().filter(|(_, v)| matches!(v, Value::Tensor(_) | Value::Object(_)));
    Ok(Value::list(pairs.map(|(n, v)| Value::tuple(vec![Value::str(n), v.clone()])).collect()))
}

/// `module.half()`: the weights that are floats change their type.
fn cast_module(e: &mut Eval<'_>, a: &Args<'_>) -> Res<Value> {
    let Some(elem) = a.elem("dtype") else { return e.fail("a dtype is missing") };
    let mut work = vec![(a.get("module").clone(), 0)];
    let mut seen = 0;
    while let Some((v, depth)) = work.pop() {
        seen += 1;
        if depth > 64 || seen > LARGEST {
            return e.fail("this module holds too many others");
        }
        let Value::Object(o) = v else { continue };
        for (name, field) in o.fields.borrow().iter() {
            match field {
                Value::Object(child) if child.class.is("Module") && name != "_items" => {
                    work.push((Value::Object(child.clone()), depth + 1));
                }
                Value::Tensor(t) if e.elem(t).is_float() && !declared(t, |d| d.elem = elem) => {
                    if let State::Ready(_) = *t.state.borrow() {
                        return e.fail("the type of a module's weights must be changed before they are used");
                    }
                }
                _ => {}
            }
        }
    }
    Ok(a.get("module").clone())
}

/// Modules within a module.
const LARGEST: usize = 100_000;
