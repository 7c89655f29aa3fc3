//! Subscripts: of lists, tuples, strings and dicts, and of tensors as NumPy and PyTorch define them.
//!
//! `x[1, :, None, ::2]` becomes `aten.select`, `aten.slice` and `aten.unsqueeze`; tensors and lists of integers make
//! one `aten.index`. Assignment goes the same way back: the changed view is put into its base tensor.

use super::Eval;
use crate::graph::ir::{self, Arg};
use crate::graph::{Attr, Attrs, Elem};
use crate::index::Ix;
use crate::source::expr::error::{Res, Stop};
use crate::source::expr::value::{Tensor, Value};

/// One step from a tensor to a view of it.
#[derive(Clone)]
enum Step {
    Select(i64, Ix),
    Slice(i64, Ix, Ix, i64),
    Unsqueeze(i64),
    /// Indices by dimension.
    Index(Vec<Option<Tensor>>),
}

fn int(x: i64) -> Attr {
    Attr::Int(Ix::Const(x))
}

impl Eval<'_> {
    pub fn item(&mut self, object: &Value, index: &Value) -> Res<Value> {
        match (object, index) {
            (Value::Unknown, _) | (_, Value::Unknown) => Err(Stop),
            (Value::Tensor(t), _) => {
                let steps = self.steps_of(t, index)?;
                let mut at = t.clone();
                for s in &steps {
                    at = self.view(&at, s)?;
                }
                Ok(Value::Tensor(at))
            }
            (Value::Dict(d), key) => {
                let found = d.borrow().iter().find(|(k, _)| self.equal(k, key)).map(|(_, v)| v.clone());
                match found {
                    Some(v) => Ok(v),
                    None => self.fail("the dict has no such key"),
                }
            }
            (Value::Object(o), Value::Str(name)) if o.get("_names").is_some() => match o.get(name) {
                Some(v) => Ok(v),
                None => self.fail(format!("it has no module `{name}`")),
            },
            (Value::Object(o), _) if o.get("_items").is_some() => match o.get("_items") {
                Some(items) => {
                    let got = self.item(&items, index)?;
                    if let (Value::List(l), Value::Class(c)) = (&got, &Value::Class(o.class.clone())) {
                        let items = l.borrow().to_vec();
                        return self.call(
                            &Value::Class(c.clone()),
                            if c.is("Sequential") { items } else { vec![Value::list(items)] },
                            vec![],
                        );
                    }
                    Ok(got)
                }
                None => Err(Stop),
            },
            (Value::List(_) | Value::Tuple(_) | Value::Str(_) | Value::Range(..), Value::Slice(s)) => {
                let items = self.items(object)?;
                let (start, stop, step) = self.slice_of(s, items.len() as i64)?;
                let n = super::operators::range_len(start, stop, step);
                let picked: Vec<Value> =
                    (0..n).filter_map(|i| items.get(usize::try_from(start + i * step).ok()?).cloned()).collect();
                Ok(match object {
                    Value::Tuple(_) => Value::tuple(picked),
                    Value::Str(_) => {
                        let text: String = picked
                            .iter()
                            .map(|v| if let Value::Str(s) = v { s.to_string() } else { String::new() })
                            .collect();
                        Value::str(&text)
                    }
                    _ => Value::list(picked),
                })
            }
            (Value::List(_) | Value::Tuple(_) | Value::Str(_) | Value::Range(..), Value::Int(_) | Value::Bool(_)) => {
                let i = if let Value::Int(i) = index { *i } else { i64::from(matches!(index, Value::Bool(true))) };
                let items = self.items(object)?;
                let at = if i < 0 { i.saturating_add(items.len() as i64) } else { i };
                match usize::try_from(at).ok().and_then(|at| items.get(at)) {
                    Some(v) => Ok(v.clone()),
                    None => {
                        let (kind, n) = (object.kind(), items.len());
                        self.fail(format!("{kind} of {n} has no item {i}"))
                    }
                }
            }
            (Value::List(_) | Value::Tuple(_) | Value::Str(_), other) => {
                let kind = other.kind();
                self.fail(format!("an index must be an integer or a slice, found {kind}"))
            }
            // Annotations such as `list[int]` are values too.
            (Value::Type(_) | Value::Class(_), _) => Ok(object.clone()),
            (other, _) => {
                let kind = other.kind();
                self.fail(format!("{kind} cannot be indexed"))
            }
        }
    }

    /// Start, stop and step of a slice over `len` known items, clamped as Python does.
    fn slice_of(&mut self, s: &[Value; 3], len: i64) -> Res<(i64, i64, i64)> {
        let mut part = |v: &Value| match v {
            Value::None => Ok(None),
            Value::Int(i) => Ok(Some(*i)),
            Value::Unknown => Err(Stop),
            other => {
                let kind = other.kind();
                self.fail(format!("a slice needs integers, found {kind}"))
            }
        };
        let (start, stop, step) = (part(&s[0])?, part(&s[1])?, part(&s[2])?.unwrap_or(1));
        if step == 0 {
            return self.fail("the step of a slice cannot be 0");
        }
        let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
        let clamp = |x: i64| (if x < 0 { x.saturating_add(len) } else { x }).clamp(low, high);
        let start = start.map_or(if step > 0 { low } else { high }, clamp);
        let stop = stop.map_or(if step > 0 { high } else { low }, clamp);
        Ok((start, stop, step))
    }

    fn ix(&mut self, v: &Value) -> Res<Ix> {
        match v {
            Value::Int(i) => Ok(Ix::Const(*i)),
            Value::Extent(ix) => Ok(ix.clone()),
            Value::Bool(b) => Ok(Ix::Const((*b).into())),
            Value::Unknown => Err(Stop),
            Value::Tensor(_) => self.fail_help(
                "the bounds of a slice must be known, found a tensor",
                "pick elements with `torch.gather` or index with a tensor of integers",
            ),
            other => {
                let kind = other.kind();
                self.fail(format!("an index must be an integer, found {kind}"))
            }
        }
    }

    fn steps_of(&mut self, t: &Tensor, index: &Value) -> Res<Vec<Step>> {
        let parts = match index {
            Value::Tuple(parts) => parts.to_vec(),
            one => vec![one.clone()],
        };
        let rank = self.rank(t);
        let mut used = 0;
        for p in &parts {
            used += match p {
                Value::None | Value::Ellipsis => 0,
                Value::Tensor(i) if self.elem(i).is_bool() => self.rank(i),
                _ => 1,
            };
        }
        if used > rank {
            let shape = self.shape(t);
            let shape = self.shape_text(&shape);
            return self.fail(format!("{used} indices are given for a tensor of shape {shape}"));
        }
        if parts.iter().filter(|p| matches!(p, Value::Ellipsis)).count() > 1 {
            return self.fail("`...` can appear only once in an index");
        }
        let (mut steps, mut dim) = (vec![], 0i64);
        let mut indices: Vec<(i64, Tensor)> = vec![];
        for p in &parts {
            match p {
                Value::None => {
                    steps.push(Step::Unsqueeze(dim));
                    dim += 1;
                }
                Value::Ellipsis => dim += (rank - used) as i64,
                Value::Slice(s) => {
                    let step = match &s[2] {
                        Value::None => 1,
                        Value::Int(i) if *i > 0 => *i,
                        _ => {
                            return self.fail_help(
                                "the step of a tensor's slice must be a positive integer",
                                "reverse with `torch.flip`",
                            );
                        }
                    };
                    let start = if matches!(s[0], Value::None) { Ix::Const(0) } else { self.ix(&s[0])? };
                    let stop = if matches!(s[1], Value::None) { Ix::Const(i64::MAX) } else { self.ix(&s[1])? };
                    if !(start.is_const(0) && stop.is_const(i64::MAX) && step == 1) {
                        steps.push(Step::Slice(dim, start, stop, step));
                    }
                    dim += 1;
                }
                Value::Tensor(i) => {
                    let spans = if self.elem(i).is_bool() { self.rank(i) as i64 } else { 1 };
                    if spans == 0 {
                        return self.fail("an index that is a bool must be a mask with dimensions");
                    }
                    indices.push((dim, i.clone()));
                    dim += spans;
                }
                Value::List(_) => {
                    let i = self.list_index(p)?;
                    indices.push((dim, i));
                    dim += 1;
                }
                Value::Bool(_) => return self.fail("an index that is a bool must be a mask with dimensions"),
                other => {
                    let i = self.ix(other)?;
                    // Beside tensors an integer is one of the indices.
                    steps.push(Step::Select(dim, i));
                }
            }
        }
        if !indices.is_empty() {
            let width = indices.iter().map(|(d, _)| *d + 1).max().unwrap_or(0);
            let mut by_dim = vec![None; usize::try_from(width).unwrap_or(0)];
            for (d, i) in indices {
                if let Some(slot) = usize::try_from(d).ok().and_then(|d| by_dim.get_mut(d)) {
                    *slot = Some(i);
                }
            }
            steps.push(Step::Index(by_dim));
        }
        Ok(steps)
    }

    /// `[0, 2, 1]` as a tensor of integers.
    fn list_index(&mut self, list: &Value) -> Res<Tensor> {
        let mut numbers = vec![];
        for v in self.items(list)? {
            let Value::Int(i) = v else { return self.fail("a list used as an index must hold integers") };
            numbers.push(i);
        }
        let n = numbers.len() as u64;
        let arg = self.build("aten.lift_fresh_copy", |b| Ok(b.int_constant(Elem::I64, &[n], &numbers)))?;
        self.of_arg(arg)
    }

    fn view(&mut self, t: &Tensor, step: &Step) -> Res<Tensor> {
        let arg = self.arg(t);
        let (name, args, attrs) = match step {
            Step::Select(dim, i) => (
                "aten.select",
                vec![arg],
                Attrs::from([("dim".into(), int(*dim)), ("index".into(), Attr::Int(i.clone()))]),
            ),
            Step::Slice(dim, start, stop, by) => ("aten.slice", vec![arg], slice_attrs(*dim, start, stop, *by)),
            Step::Unsqueeze(dim) => ("aten.unsqueeze", vec![arg], Attrs::from([("dim".into(), int(*dim))])),
            Step::Index(indices) => {
                let mut args = vec![arg];
                for i in indices {
                    args.push(match i {
                        Some(i) => self.arg(i),
                        None => Arg::Absent,
                    });
                }
                return self.aten1("aten.index", args, Attrs::new());
            }
        };
        let view = self.aten1(name, args, attrs)?;
        t.shared.set(true);
        view.shared.set(true);
        Ok(view)
    }

    pub fn set_item(&mut self, object: &Value, index: &Value, value: Value) -> Res<()> {
        match object {
            Value::Tensor(t) => {
                if t.shared.get() {
                    return self.fail_help(
                        "this changes in place a tensor that shares its memory with a view",
                        "`.clone()` it first",
                    );
                }
                let new = self.set_view(t, index, &value)?;
                t.shared.set(false);
                self.replace(t, &new)
            }
            Value::List(l) => {
                let Value::Int(i) = index else { return self.fail("the index of a list item must be an integer") };
                let n = l.borrow().len() as i64;
                let at = if *i < 0 { i + n } else { *i };
                match usize::try_from(at)
                    .ok()
                    .and_then(|at| l.borrow_mut().get_mut(at).map(|slot| std::mem::replace(slot, value)))
                {
                    Some(_) => Ok(()),
                    None => self.fail(format!("a list of {n} has no item {i}")),
                }
            }
            Value::Dict(d) => {
                let at = d.borrow().iter().position(|(k, _)| self.equal(k, index));
                let mut d = d.borrow_mut();
                match at.and_then(|at| d.get_mut(at)) {
                    Some(slot) => slot.1 = value,
                    None => d.push((index.clone(), value)),
                }
                Ok(())
            }
            Value::Unknown => Err(Stop),
            other => {
                let kind = other.kind();
                self.fail(format!("items of {kind} cannot be assigned"))
            }
        }
    }

    /// The tensor with the indexed part replaced.
    fn set_view(&mut self, t: &Tensor, index: &Value, value: &Value) -> Res<Tensor> {
        let elem = self.elem(t);
        // A mask of the tensor's own shape chooses between old and new elements.
        if let Value::Tensor(mask) = index
            && self.elem(mask).is_bool()
        {
            if let Value::Tensor(v) = value
                && self.rank(v) > 0
            {
                return self.fail_help(
                    "the number of elements that a mask selects is not known",
                    "write `x = torch.where(mask, values, x)`",
                );
            }
            let (t, mask) = (self.arg(t), self.arg(mask));
            let value = self.operand_in(value, elem)?;
            return self.aten1("aten.masked_fill", vec![t, mask, value], Attrs::new());
        }
        let steps = self.steps_of(t, index)?;
        let mut chain = vec![t.clone()];
        for s in &steps {
            if matches!(s, Step::Index(_)) {
                break;
            }
            let last = chain.last().cloned().unwrap_or_else(|| t.clone());
            chain.push(self.view(&last, s)?);
        }
        let last = chain.last().cloned().unwrap_or_else(|| t.clone());
        let operand = self.operand_in(value, elem)?;
        let mut new = match steps.last() {
            Some(Step::Index(indices)) => {
                let mut args = vec![self.arg(&last)];
                for i in indices {
                    args.push(match i {
                        Some(i) => self.arg(i),
                        None => Arg::Absent,
                    });
                }
                args.push(operand);
                self.aten1("aten.index_put", args, Attrs::new())?
            }
            _ => {
                let shape = self.shape(&last);
                let arg = self.build("aten.copy", |b| match operand {
                    Arg::Scalar { .. } => Ok(b.full(operand, elem, shape)),
                    _ => {
                        // Leading extents of 1 may be left over.
                        let mut have = b.shape(operand);
                        let extra = have.len().saturating_sub(shape.len());
                        let operand = if extra > 0 && have.iter().take(extra).all(|d| d.is_const(1)) {
                            b.squeeze(operand, &(0..extra).collect::<Vec<_>>())?
                        } else {
                            operand
                        };
                        have.clear();
                        b.broadcast_to(operand, &shape)
                    }
                })?;
                self.of_arg(arg)?
            }
        };
        let views = chain.len().saturating_sub(1);
        for (at, step) in steps.iter().take(views).enumerate().rev() {
            let Some(base) = chain.get(at).cloned() else { return Err(Stop) };
            let args = vec![self.arg(&base), self.arg(&new)];
            new = match step {
                Step::Select(dim, i) => {
                    let attrs = Attrs::from([("dim".into(), int(*dim)), ("index".into(), Attr::Int(i.clone()))]);
                    self.aten1("aten.select_scatter", args, attrs)?
                }
                Step::Slice(dim, start, stop, by) => {
                    self.aten1("aten.slice_scatter", args, slice_attrs(*dim, start, stop, *by))?
                }
                Step::Unsqueeze(dim) => {
                    let arg = self.arg(&new);
                    self.aten1("aten.squeeze", vec![arg], Attrs::from([("dim".into(), int(*dim))]))?
                }
                Step::Index(_) => return Err(Stop),
            };
        }
        Ok(new)
    }

    /// A value to be stored into a tensor of the type.
    fn operand_in(&mut self, value: &Value, elem: Elem) -> Res<Arg> {
        match value {
            Value::Tensor(v) => {
                let v = self.cast(v, elem)?;
                Ok(self.arg(&v))
            }
            Value::Int(i) => Ok(ir::int_scalar(elem, *i)),
            Value::Bool(b) => Ok(ir::int_scalar(elem, (*b).into())),
            Value::Float(x) => Ok(ir::scalar(elem, *x)),
            Value::Unknown => Err(Stop),
            other => {
                let kind = other.kind();
                self.fail(format!("{kind} cannot be stored in a tensor"))
            }
        }
    }
}

fn slice_attrs(dim: i64, start: &Ix, stop: &Ix, step: i64) -> Attrs {
    Attrs::from([
        ("dim".into(), int(dim)),
        ("start".into(), Attr::Int(start.clone())),
        ("end".into(), Attr::Int(stop.clone())),
        ("step".into(), int(step)),
    ])
}
