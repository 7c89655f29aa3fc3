//! Helpers that the rules for ONNX operators share: operands that must be known when the model is compiled, axes that are an
//! attribute or an operand, indices that count from the end.

use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::types::distinct;
use crate::graph::decompose::{Call, normal_axis};
use crate::graph::ir::{self, Arg, MAX_EXTENT};
use crate::index::Ix;
use crate::num::op::Predicate;

/// The integers of operand `i`, which the shapes and constants must determine.
pub(super) fn known(b: &Builder<'_>, call: &Call<'_>, i: usize, what: &str) -> Result<Vec<Ix>> {
    let x = call.arg(i)?;
    b.ints(x).ok_or_else(|| {
        Refusal::new(format!("its {what} must be known when the model is compiled"))
            .help("make it a constant of the model, or give the value of the input it depends on at compile time")
    })
}

/// The same, free of symbols.
pub(super) fn known_ints(b: &Builder<'_>, call: &Call<'_>, i: usize, what: &str) -> Result<Vec<i64>> {
    let list = known(b, call, i, what)?;
    let list: Option<Vec<i64>> = list.iter().map(|ix| b.number(ix)).collect();
    list.ok_or_else(|| Refusal::new(format!("its {what} must not depend on a dimension known only at run time")))
}

/// The integers of the attribute `axes` or, where it is missing, of operand `i`; `None` where both are missing.
pub(super) fn axes_either(b: &Builder<'_>, call: &Call<'_>, i: usize) -> Result<Option<Vec<i64>>> {
    match (call.ints("axes")?, call.opt(i)) {
        (Some(list), _) => Ok(Some(list)),
        (None, Some(_)) => Ok(Some(known_ints(b, call, i, "axes")?)),
        (None, None) => Ok(None),
    }
}

/// Axes counted from the end when negative, ascending and each once.
pub(super) fn normal_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    let mut out = distinct(axes.iter().map(|a| normal_axis(*a, rank)).collect::<Result<Vec<usize>>>()?)?;
    out.sort_unstable();
    Ok(out)
}

/// An extent as an operand of an element type.
pub(super) fn extent_arg(b: &mut Builder<'_>, extent: &Ix, elem: Elem) -> Arg {
    match extent.as_const() {
        Some(n) => ir::int_scalar(elem, n),
        None => b.index(extent.clone(), elem, vec![]),
    }
}

/// Indices into a dimension as i64, those that count from the end made to count from the start.
pub(super) fn from_start(b: &mut Builder<'_>, indices: Arg, extent: &Ix) -> Result<Arg> {
    let elem = b.elem(indices);
    if !elem.is_int() {
        return Err(Refusal::new(format!("indices are integers, not {elem}")));
    }
    let indices = b.convert(indices, Elem::I64)?;
    let known = b.ints(indices);
    let never_negative = |ix: &Ix| b.facts().range(ix).lo >= 0;
    if elem.unsigned || known.is_some_and(|list| list.iter().all(never_negative)) {
        return Ok(indices);
    }
    let zero = ir::int_scalar(Elem::I64, 0);
    let extent = extent_arg(b, extent, Elem::I64);
    let negative = b.compare(Predicate::LessThan, indices, zero)?;
    let moved = b.add(indices, extent)?;
    b.select(negative, moved, indices)
}

/// An integer that may stand for "to the end", brought near the longest extent.
pub(super) fn tame(ix: &Ix) -> Ix {
    match ix.as_const() {
        Some(c) => Ix::Const(c.clamp(-2 * MAX_EXTENT, 2 * MAX_EXTENT)),
        None => ix.clone(),
    }
}

/// The scalar or one-element tensor as a tensor of rank 0.
pub(super) fn lone(b: &mut Builder<'_>, x: Arg, what: &str) -> Result<Arg> {
    if b.rank(x) == 0 {
        return Ok(x);
    }
    let one = b.is_one(&b.numel(&b.shape(x)));
    if !one {
        return Err(Refusal::new(format!("its {what} must be one number, not {}", b.shape_text(&b.shape(x)))));
    }
    b.reshape(x, &[])
}
