//! `digits`: a loop that counts several things at once as a loop for each.
//!
//! ```text
//! for k in 0..576: free                            for k1 in 0..64: free
//!   %x = load a[k//9*49 + k//3%3*7 + k%3]   -->      for k2 in 0..3: free
//!   p[k] = %x                                          for k3 in 0..3: free
//!                                                        %x = load a[k1*49 + k2*7 + k3]
//!                                                        p[k1*9 + k2*3 + k3] = %x
//! ```
//!
//! Quotients and remainders of an iteration become the axes of loops. Legal for a free loop, or a reduction in a fixed order, that
//! counts nothing of a product, where the digits divide its length.

use std::collections::BTreeMap;

use super::line::{LoopRef, replace};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::edit::{self, const_trip};

/// `counts` are those of all digits but the slowest; with `unroll` the copies of the fastest one are written out.
pub fn apply(kernel: &mut Kernel, at: LoopRef, counts: &[u32], names: &[String], unroll: bool) -> Result<(), String> {
    if counts.len() + 1 != names.len() {
        return Err("expected `->` and a name more than there are counts".into());
    }
    replace(kernel, at, &mut |kernel, f| {
        let all = counts.iter().try_fold(1i64, |n, c| n.checked_mul((*c).into())).filter(|n| *n > 1);
        let all = all.ok_or("its digits count nothing, or too much")?;
        legal(kernel, f, all)?;
        let known = const_trip(f).map(|n| n as i64);
        let slowest = known.map_or_else(|| Ix::floor_div(f.hi.clone(), Ix::Const(all)), |n| Ix::Const(n / all));
        let each: Vec<Ix> = [slowest].into_iter().chain(counts.iter().map(|c| Ix::Const((*c).into()))).collect();
        let (mut position, mut weight, mut extents, mut loops) = (Ix::Const(0), all, BTreeMap::new(), vec![]);
        for (n, (count, name)) in each.into_iter().zip(names).enumerate() {
            let axis = edit::named_axis(kernel, f.axis, name.clone());
            if n > 0 {
                weight /= i64::from(counts[n - 1]);
            }
            position = Ix::add(position, Ix::mul(Ix::Axis(axis), Ix::Const(weight)));
            extents.extend(count.as_const().map(|n| (axis, n)));
            loops.push((axis, count));
        }
        let mut body = edit::place_axes(&f.body, &BTreeMap::from([(f.axis, position)]), &extents);
        let mut place = if unroll { Place::Unroll } else { f.place };
        for (axis, hi) in loops.into_iter().rev() {
            body = vec![Stmt::For(Box::new(For { axis, hi, body, place, ..f.clone() }))];
            place = f.place;
        }
        Ok(body)
    })
}

fn legal(kernel: &Kernel, f: &For, all: i64) -> Result<(), String> {
    let ordered = f.kind == LoopKind::Reduce && f.combine.is_none();
    if !(ordered || f.kind == LoopKind::Free) || f.place != Place::None || !f.counts_from_zero() {
        return Err(
            "it is not free or a reduction in a fixed order, is placed already, or does not count from 0".into()
        );
    }
    if has_role(f) {
        return Err("it counts rows, columns or terms of a product".into());
    }
    match const_trip(f) {
        Some(n) if n.is_multiple_of(all as u64) => Ok(()),
        Some(n) => Err(format!("{all} does not divide its {n} iterations")),
        None if kernel.facts().divisor(&f.hi).is_multiple_of(all as u64) => Ok(()),
        None => Err(format!("its length is not known to be a multiple of {all}")),
    }
}

/// True if the loop counts rows, columns or terms of a product.
pub fn has_role(f: &For) -> bool {
    let counted = |c: &Contraction| [&c.m, &c.n, &c.k].into_iter().flatten().any(|a| *a == f.axis);
    f.contraction.is_some() || walk::contractions(&f.body).any(|(_, c)| counted(c))
}
