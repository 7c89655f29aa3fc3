//! `swap KERNEL.LOOP by batch?`: the sum over a loop has its operands, and so its rows and columns, the other way around.
//!
//! ```text
//! for k: reduce contraction m=i n=j a=x b=y          for k: reduce contraction m=j n=i a=y b=x
//!   acc <- fma(x, y, acc)                    -->       acc <- fma(y, x, acc)
//! ```
//!
//! `batch`: the axes of a batch that only the right operand depends on become rows too. Legal where the multiplications commute, and for
//! all sums of a nest together, which run side by side: they must get the same rows.

use std::collections::{BTreeMap, BTreeSet};

use super::nest_of;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::ScalarOp;
use crate::tile::primitives::line::LoopRef;
use crate::tile::tile_nest::{OpenNest, Sum, slice};

/// Swaps the operands of all sums of the nest whose sum the loop is.
pub fn apply(kernel: &mut Kernel, at: LoopRef, batch: bool) -> Result<(), String> {
    let (place, swapped) = {
        let (place, nest) = nest_of(kernel, at)?;
        (place, swapped(&nest, batch)?)
    };
    swap(&mut kernel.body[place..=place], &swapped);
    Ok(())
}

/// A sum with its operands swapped.
struct Swapped {
    rows: Vec<AxisId>,
    /// The value that the multiplication defines.
    product: ValId,
}

/// The sums of a nest by their accumulators.
fn swapped(nest: &OpenNest<'_>, batch: bool) -> Result<BTreeMap<BufId, Swapped>, String> {
    let one = |sum: &Sum<'_>| {
        let roles = sum.roles;
        let product = multiplication(sum).ok_or("its products do not commute")?;
        let joined = if batch { joined(nest, sum) } else { vec![] };
        let is_row = |f: &&For| joined.contains(&f.axis) || roles.n.contains(&f.axis);
        let rows = match batch {
            true => nest.free.iter().copied().filter(is_row).map(|f| f.axis).collect(),
            false => roles.n.clone(),
        };
        if rows.is_empty() || roles.m.is_empty() {
            return Err("it has no rows, or no columns".to_string());
        }
        Ok((roles.acc, Swapped { rows, product }))
    };
    let sums = nest.sums.iter().map(one).collect::<Result<BTreeMap<BufId, Swapped>, String>>()?;
    let mut rows = sums.values().map(|swapped| &swapped.rows);
    let first = rows.next();
    if rows.any(|rows| Some(rows) != first) {
        return Err("the sums of its nest would have different rows".to_string());
    }
    Ok(sums)
}

/// The axes of a batch that only the right operand of a sum depends on.
pub fn joined(nest: &OpenNest<'_>, sum: &Sum<'_>) -> Vec<AxisId> {
    let all: Vec<&Stmt> = nest.around.iter().chain(&sum.inside).copied().collect();
    let axes = |value: ValId| -> BTreeSet<AxisId> {
        slice(&all, &[value]).into_iter().flat_map(|s| walk::refs_of(s).axes_used).collect()
    };
    let (left, right) = (axes(sum.x), axes(sum.y));
    let of_batch = |a: &AxisId| !sum.roles.m.contains(a) && !sum.roles.n.contains(a);
    let axes = nest.free.iter().map(|f| f.axis).filter(of_batch);
    axes.filter(|a| right.contains(a) && !left.contains(a)).collect()
}

/// The product of the operands of a sum, if it may as well take them the other way around.
pub fn multiplication(sum: &Sum<'_>) -> Option<ValId> {
    sum.inside.iter().find_map(|s| match s {
        Stmt::Let { dst, op: ScalarOp::Fma { .. } | ScalarOp::MulI, args }
            if matches!(args[..], [Opnd::Val(x), Opnd::Val(y), ..] if (x, y) == (sum.x, sum.y)) =>
        {
            Some(*dst)
        }
        _ => None,
    })
}

/// The same sums with their operands, and so rows and columns, swapped.
fn swap(body: &mut [Stmt], swapped: &BTreeMap<BufId, Swapped>) {
    walk::visit_mut(body, &mut |s| match s {
        Stmt::For(f) => {
            if let Some(c) = &mut f.contraction
                && let Some(new) = swapped.get(&c.acc)
            {
                c.n = std::mem::replace(&mut c.m, new.rows.clone());
                std::mem::swap(&mut c.a, &mut c.b);
            }
        }
        Stmt::Let { dst, args, .. } if swapped.values().any(|new| new.product == *dst) => args.swap(0, 1),
        _ => {}
    });
}
