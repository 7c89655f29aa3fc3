//! ONNX matrix products and sums over named axes.

use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::{Call, Decomposition};
use crate::graph::ir::{self, Arg, ReduceOp};
use crate::index::Ix;

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "onnx_matmul",
        handles: &["onnx.MatMul"],
        doc: "NumPy's matrix product.\n\n`y = MatMul(a, b)` --> `y = reduce dot a, b`",
        run: |b, call| Ok(vec![b.matmul(call.arg(0)?, call.arg(1)?)?]),
    },
    Decomposition {
        name: "onnx_gemm",
        handles: &["onnx.Gemm"],
        doc: "A matrix product, scaled, plus a scaled bias.\n\n\
              `y = Gemm(a, b, c)` --> `y = alpha * (reduce dot a, b) + beta * c`",
        run: gemm,
    },
    Decomposition {
        name: "onnx_matmul_integer",
        handles: &["onnx.MatMulInteger"],
        doc: "A product of 8-bit integers less their zero points, in 32 bits.\n\n\
              `y = MatMulInteger(a, b, za, zb)` --> `y = reduce dot (a - za), (b - zb)`",
        run: matmul_integer,
    },
    Decomposition {
        name: "onnx_einsum",
        handles: &["onnx.Einsum"],
        doc: "A sum of products over named axes; the operands are multiplied from left to right, and an axis is summed as \
              soon as nothing to the right needs it.\n\n\
              `y = Einsum(a, b) {ij,jk->ik}` --> `y = reduce dot a, b over j`",
        run: einsum_call,
    },
];

fn gemm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (mut x, mut w) = (call.arg(0)?, call.arg(1)?);
    if b.rank(x) != 2 || b.rank(w) != 2 {
        return Err(Refusal::new("its operands must be matrices"));
    }
    if call.flag("transA", false) {
        x = b.swap_axes(x, 0, 1)?;
    }
    if call.flag("transB", false) {
        w = b.swap_axes(w, 0, 1)?;
    }
    let mut y = b.matmul(x, w)?;
    let scaled = |b: &mut Builder<'_>, x: Arg, by: f64| {
        let factor = b.scalar_like(x, by);
        if by == 1.0 { Ok(x) } else { b.mul(x, factor) }
    };
    y = scaled(b, y, call.float("alpha", 1.0))?;
    if let Some(c) = call.opt(2) {
        let c = scaled(b, c, call.float("beta", 1.0))?;
        let shape = b.shape(y);
        let c = b.broadcast_to(c, &shape)?;
        y = b.add(y, c)?;
    }
    Ok(vec![y])
}

fn matmul_integer(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let one = |b: &mut Builder<'_>, i: usize, rows: bool| -> Result<Arg> {
        let x = call.arg(i)?;
        let x = b.convert(x, Elem::I32)?;
        let Some(zero) = call.opt(i + 2) else { return Ok(x) };
        let mut zero = b.convert(zero, Elem::I32)?;
        // One for each row of the first operand, or each column of the second.
        if rows && b.rank(zero) == 1 && !b.shape(zero)[0].is_const(1) {
            zero = b.unsqueeze(zero, &[1])?;
        }
        b.sub(x, zero)
    };
    let (x, y) = (one(b, 0, true)?, one(b, 1, false)?);
    Ok(vec![b.matmul(x, y)?])
}

fn einsum_call(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let text = call.text("equation").ok_or_else(|| Refusal::new("its equation is missing"))?;
    Ok(vec![einsum(b, text, call.args)?])
}

/// An axis of an einsum: a letter, or one of those that `...` stands for, counted from the last.
type Label = (char, usize);

/// The labels of one term; `hidden` axes stand where `...` does.
fn labels(term: &str, hidden: usize) -> Result<Vec<Label>> {
    let mut out = vec![];
    let mut rest = term;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            out.extend((0..hidden).rev().map(|i| ('.', i)));
            rest = after;
        } else if c.is_ascii_alphabetic() {
            out.push((c, 0));
            rest = &rest[1..];
        } else {
            return Err(Refusal::new(format!("the equation holds `{c}`")));
        }
    }
    Ok(out)
}

/// `ij,jk->ik` with NumPy's rules for `...`, repeated letters and a missing right side.
pub(in crate::graph::decompose) fn einsum(b: &mut Builder<'_>, equation: &str, args: &[Arg]) -> Result<Arg> {
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != args.len() {
        return Err(Refusal::new(format!("the equation has {} terms for {} operands", terms.len(), args.len())));
    }
    let mut inputs: Vec<(Arg, Vec<Label>)> = vec![];
    for (term, &x) in terms.iter().zip(args) {
        let letters = term.chars().filter(char::is_ascii_alphabetic).count();
        let hidden = match (term.contains("..."), b.rank(x).checked_sub(letters)) {
            (true, Some(hidden)) => hidden,
            (false, Some(0)) => 0,
            _ => return Err(Refusal::new(format!("the term `{term}` does not fit an operand of rank {}", b.rank(x)))),
        };
        let list = labels(term, hidden)?;
        inputs.push(diagonal(b, x, list)?);
    }
    let hidden = inputs.iter().flat_map(|(_, l)| l).filter(|l| l.0 == '.').map(|l| l.1 + 1).max().unwrap_or(0);
    let output = match right {
        Some(right) => labels(right, hidden)?,
        None => {
            // The labels that stand once, in alphabetical order, behind those of `...`.
            let letters: Vec<char> = left.chars().filter(char::is_ascii_alphabetic).collect();
            let mut once: Vec<Label> =
                letters.iter().filter(|c| letters.iter().filter(|d| d == c).count() == 1).map(|c| (*c, 0)).collect();
            once.sort_unstable();
            (0..hidden).rev().map(|i| ('.', i)).chain(once).collect()
        }
    };
    for (i, l) in output.iter().enumerate() {
        if output[..i].contains(l) || !inputs.iter().any(|(_, list)| list.contains(l)) {
            return Err(Refusal::new(format!("the result's `{}` stands twice or in no operand", l.0)));
        }
    }
    let mut rest = inputs.into_iter();
    let Some(mut acc) = rest.next() else { return Err(Refusal::new("it has no operands")) };
    let mut rest: Vec<(Arg, Vec<Label>)> = rest.collect();
    let needed = |l: &Label, rest: &[(Arg, Vec<Label>)]| output.contains(l) || rest.iter().any(|(_, x)| x.contains(l));
    if rest.is_empty() {
        let over: Vec<usize> = (0..acc.1.len()).filter(|i| !needed(&acc.1[*i], &rest)).collect();
        if !over.is_empty() {
            let (narrow, wide) = (b.elem(acc.0), b.wide(acc.0));
            let x = b.convert(acc.0, wide)?;
            let x = b.reduce(ReduceOp::Sum, x, &over, false)?;
            acc.0 = b.convert(x, narrow)?;
            acc.1.retain(|l| output.contains(l));
        }
    }
    while !rest.is_empty() {
        let (y, of) = rest.remove(0);
        let mut all = acc.1.clone();
        all.extend(of.iter().filter(|l| !acc.1.contains(l)).copied().collect::<Vec<_>>());
        // Summed axes last, as products of matrices have them.
        let (mut kept, summed): (Vec<Label>, Vec<Label>) = all.into_iter().partition(|l| needed(l, &rest));
        let first = kept.len();
        kept.extend(&summed);
        let (p, q) = (arrange(b, acc.0, &acc.1, &kept)?, arrange(b, y, &of, &kept)?);
        let result = if summed.is_empty() {
            b.mul(p, q)?
        } else {
            if b.elem(p) != b.elem(q) {
                return Err(Refusal::new(format!("{} and {} are different element types", b.elem(p), b.elem(q))));
            }
            let (narrow, wide) = (b.elem(p), b.wide(p));
            let over: Vec<usize> = (first..kept.len()).collect();
            let dot = b.dot(p, q, wide, &over, false)?;
            b.convert(dot, narrow)?
        };
        kept.truncate(first);
        acc = (result, kept);
    }
    let perm: Option<Vec<usize>> = output.iter().map(|l| acc.1.iter().position(|m| m == l)).collect();
    match perm {
        Some(perm) => b.transpose(acc.0, &perm),
        None => Err(Refusal::new("the equation's result has an axis that its operands lack")),
    }
}

/// Axes with the same label become one: the diagonal.
fn diagonal(b: &mut Builder<'_>, x: Arg, list: Vec<Label>) -> Result<(Arg, Vec<Label>)> {
    let mut unique: Vec<Label> = vec![];
    for l in &list {
        if !unique.contains(l) {
            unique.push(*l);
        }
    }
    if unique.len() == list.len() {
        return Ok((x, list));
    }
    let from = b.shape(x);
    let mut shape: Vec<Option<Ix>> = vec![None; unique.len()];
    let mut coords = vec![];
    for (d, l) in list.iter().enumerate() {
        let at = unique.iter().position(|u| u == l).unwrap_or(0);
        match &shape[at] {
            None => shape[at] = Some(from[d].clone()),
            Some(have) if b.same(have, &from[d]) => {}
            Some(_) => return Err(Refusal::new(format!("the axes `{}` of one operand differ", l.0))),
        }
        coords.push(ir::axis(at));
    }
    let shape = shape.into_iter().flatten().collect();
    Ok((b.map("diagonal", x, shape, coords), unique))
}

/// The operand with its axes in the order of `to`, extent 1 where it has none.
fn arrange(b: &mut Builder<'_>, x: Arg, of: &[Label], to: &[Label]) -> Result<Arg> {
    let perm: Vec<usize> = to.iter().filter_map(|l| of.iter().position(|m| m == l)).collect();
    let x = b.transpose(x, &perm)?;
    let missing: Vec<usize> = (0..to.len()).filter(|i| !of.contains(&to[*i])).collect();
    b.unsqueeze(x, &missing)
}
