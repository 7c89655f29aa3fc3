//! Sums of products by labels.

use super::types::together;
use super::{Call, old};
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, ReduceOp};
use crate::index::Ix;

rules! {
    einsum "Each operand's axes have labels; labels missing from the result are summed over. Operands are taken from left \
         to right, two at a time.\n\n`y = einsum(ij,jk->ik, a, b)` --> `y[i, k] = reduce dot a[i, j], b[j, k] over j`\n\n\
         Refuses labels that stand for different extents." {
        "aten.einsum" | "onnx.Einsum" => old(einsum),
    }
}

/// A label: a letter, or the number of an axis under the ellipsis counted from its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Label {
    Ellipsis(usize),
    Letter(char),
}

/// The labels of one operand with `rank` axes; without a rank, the ellipsis has `more` axes.
fn labels(term: &str, rank: Option<usize>, more: usize) -> Result<Vec<Label>> {
    let mut out = vec![];
    let mut rest = term;
    let letters = term.chars().filter(|c| c.is_alphabetic()).count();
    let hidden = match rank {
        Some(rank) => rank.saturating_sub(letters),
        None => more,
    };
    while let Some(c) = rest.chars().next() {
        if let Some(tail) = rest.strip_prefix("...") {
            out.extend((0..hidden).rev().map(Label::Ellipsis));
            rest = tail;
        } else if c.is_alphabetic() {
            out.push(Label::Letter(c));
            rest = &rest[c.len_utf8()..];
        } else {
            return Err(Refusal::new(format!("{c:?} is not a label of an equation")));
        }
    }
    match rank {
        Some(rank) if out.len() != rank => {
            Err(Refusal::new(format!("the labels {term:?} do not fit a tensor of rank {rank}")))
        }
        _ => Ok(out),
    }
}

/// A tensor whose axes have different labels.
struct Term {
    x: Arg,
    labels: Vec<Label>,
}

fn einsum(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let equation: String = call.text("equation")?.unwrap_or_default().chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match equation.split_once("->") {
        Some((i, o)) => (i, Some(o)),
        None => (equation.as_str(), None),
    };
    let parts: Vec<&str> = inputs.split(',').collect();
    if parts.len() != call.args.len() || call.args.is_empty() {
        return Err(Refusal::new(format!("the equation has {} terms for {} operands", parts.len(), call.args.len())));
    }
    let operands = together(b, call.args)?;
    let mut terms = vec![];
    for (part, x) in parts.iter().zip(operands) {
        let labels = labels(part, Some(b.rank(x)), 0)?;
        terms.push(diagonal(b, x, labels)?);
    }
    // Extents, and the widest ellipsis.
    let mut extents: Vec<(Label, Ix)> = vec![];
    for t in &terms {
        for (label, n) in t.labels.iter().zip(b.shape(t.x)) {
            match extents.iter_mut().find(|(l, _)| l == label) {
                None => extents.push((*label, n)),
                Some((_, have)) if have.is_const(1) => *have = n,
                Some((_, have)) if n.is_const(1) || b.same(have, &n) || b.is_one(&n) => {}
                Some((_, have)) if b.is_one(have) => *have = n,
                Some((_, have)) => {
                    return Err(Refusal::new(format!(
                        "a label of the equation stands for both {} and {}",
                        b.graph.ix_text(have),
                        b.graph.ix_text(&n)
                    )));
                }
            }
        }
    }
    let more = extents.iter().filter(|(l, _)| matches!(l, Label::Ellipsis(_))).count();
    let wanted = match output {
        Some(o) => labels(o, None, more)?,
        None => {
            // The ellipsis, then the letters that occur once, in order.
            let mut out: Vec<Label> = (0..more).rev().map(Label::Ellipsis).collect();
            let count = |c: char| inputs.chars().filter(|x| *x == c).count();
            let mut once: Vec<Label> =
                inputs.chars().filter(|c| c.is_alphabetic() && count(*c) == 1).map(Label::Letter).collect();
            once.sort_unstable();
            out.extend(once);
            out
        }
    };
    if let Some(l) = wanted.iter().find(|l| !extents.iter().any(|(e, _)| e == *l)) {
        return Err(Refusal::new(format!("{l:?} of the result is not in any operand")));
    }
    if (1..wanted.len()).any(|i| wanted[..i].contains(&wanted[i])) {
        return Err(Refusal::new("a label is twice in the result"));
    }
    let mut rest = terms.into_iter();
    let Some(mut acc) = rest.next() else { return Ok(vec![]) };
    let mut later: Vec<Term> = rest.collect();
    if later.is_empty() {
        acc = summed(b, acc, &wanted)?;
    }
    while !later.is_empty() {
        let next = later.remove(0);
        let needed = |l: &Label| wanted.contains(l) || later.iter().any(|t| t.labels.contains(l));
        // Labels that only one of the two has and nobody needs are summed first.
        let keep = |own: &Term, other: &Term| -> Vec<Label> {
            own.labels.iter().filter(|l| needed(l) || other.labels.contains(l)).copied().collect()
        };
        let (left, right) = (keep(&acc, &next), keep(&next, &acc));
        let (p, q) = (summed(b, acc, &left)?, summed(b, next, &right)?);
        let mut all: Vec<Label> = vec![];
        for l in wanted.iter().chain(&p.labels).chain(&q.labels) {
            if !all.contains(l) && (p.labels.contains(l) || q.labels.contains(l)) {
                all.push(*l);
            }
        }
        let (kept, folded): (Vec<Label>, Vec<Label>) = all.iter().partition(|l| needed(l));
        let order: Vec<Label> = kept.iter().chain(&folded).copied().collect();
        let (x, y) = (spread(b, &p, &order)?, spread(b, &q, &order)?);
        let axes: Vec<usize> = (kept.len()..order.len()).collect();
        let narrow = b.elem(x);
        let z = if axes.is_empty() {
            b.mul(x, y)?
        } else {
            let wide = b.wide(x);
            let z = b.dot(x, y, wide, &axes, false)?;
            b.convert(z, narrow)?
        };
        acc = Term { x: z, labels: kept };
    }
    let y = spread(b, &acc, &wanted)?;
    let shape: Vec<Ix> =
        wanted.iter().filter_map(|l| extents.iter().find(|(e, _)| e == l)).map(|(_, n)| n.clone()).collect();
    Ok(vec![b.broadcast_to(y, &shape)?])
}

/// A label that stands twice reads a diagonal.
fn diagonal(b: &mut Builder<'_>, x: Arg, labels: Vec<Label>) -> Result<Term> {
    let mut own: Vec<Label> = vec![];
    for l in &labels {
        if !own.contains(l) {
            own.push(*l);
        }
    }
    if own.len() == labels.len() {
        return Ok(Term { x, labels });
    }
    let from = b.shape(x);
    let mut shape = vec![Ix::Const(1); own.len()];
    let mut coords = vec![];
    for (l, n) in labels.iter().zip(&from) {
        let at = own.iter().position(|o| o == l).unwrap_or(0);
        if !shape[at].is_const(1) && !b.same(&shape[at], n) {
            return Err(Refusal::new("a diagonal needs axes of equal extents"));
        }
        shape[at] = n.clone();
        coords.push(ir::axis(at));
    }
    Ok(Term { x: b.map("diagonal", x, shape, coords), labels: own })
}

/// Sums over the labels that are not kept.
fn summed(b: &mut Builder<'_>, t: Term, keep: &[Label]) -> Result<Term> {
    let axes: Vec<usize> = (0..t.labels.len()).filter(|d| !keep.contains(&t.labels[*d])).collect();
    if axes.is_empty() {
        return Ok(t);
    }
    let (narrow, wide) = (b.elem(t.x), b.wide(t.x));
    let x = b.convert(t.x, wide)?;
    let x = b.reduce(ReduceOp::Sum, x, &axes, false)?;
    let x = b.convert(x, narrow)?;
    Ok(Term { x, labels: t.labels.into_iter().filter(|l| keep.contains(l)).collect() })
}

/// The tensor with an axis for each label in order, of extent 1 where it has none.
fn spread(b: &mut Builder<'_>, t: &Term, order: &[Label]) -> Result<Arg> {
    let perm: Vec<usize> = order.iter().filter_map(|l| t.labels.iter().position(|o| o == l)).collect();
    let x = b.transpose(t.x, &perm)?;
    let missing: Vec<usize> = (0..order.len()).filter(|d| !t.labels.contains(&order[*d])).collect();
    b.unsqueeze(x, &missing)
}
