//! `normalize`: a loop counts from 0 in steps of 1.
//!
//! ```text
//! for s in 0..n step 64: serial                    for s in 0..(n + 63)//64: serial
//!   x = load K[(s + j)*64]               -->         x = load K[(s*64 + j)*64]
//! ```
//!
//! Legal for loops that run in order, are not placed, and step by a constant. Bounds of 64 bits that only the launch knows could
//! overflow.

use super::line::{LoopRef, replace};
use crate::index::simplify;
use crate::loops::ir::*;
use crate::num::DType;
use crate::tile::edit;

pub fn apply(kernel: &mut Kernel, loops: &[LoopRef]) -> Result<(), String> {
    let facts = kernel.facts();
    for at in loops {
        replace(kernel, *at, &mut |kernel, f| {
            let step = legal(kernel, f)?;
            let by = || Ix::Const(step);
            let mut out = f.clone();
            let trips = Ix::floor_div(Ix::add(Ix::sub(f.hi.clone(), f.lo.clone()), Ix::Const(step - 1)), by());
            (out.lo, out.hi, out.step) = (Ix::Const(0), simplify(&trips, &facts), Ix::Const(1));
            let place = Ix::add(f.lo.clone(), Ix::mul(Ix::Axis(f.axis), by()));
            edit::put_axis(&mut out.body, f.axis, &place, &facts);
            Ok(vec![Stmt::For(Box::new(out))])
        })?;
    }
    Ok(())
}

/// The step of a loop that can count from 0, or why it cannot.
pub fn legal(kernel: &Kernel, f: &For) -> Result<i64, String> {
    if f.kind != LoopKind::Serial || f.place != Place::None {
        return Err("it does not run in order, or is placed already".into());
    }
    let step = f.step.as_const().filter(|n| (1..1 << 31).contains(n)).ok_or("its step is not a constant above 0")?;
    if f.lo.is_const(0) && step == 1 {
        return Err("it counts from 0 in steps of 1 already".into());
    }
    let small = |leaf: &Ix| match leaf {
        Ix::Const(n) => n.abs() < 1 << 31,
        Ix::Val { val, .. } => matches!(kernel.vals[*val].ty, Ty::Num(d) if d.bits() <= 32 && d != DType::I1),
        _ => true,
    };
    if [&f.lo, &f.hi].iter().any(|ix| ix.any_leaf(&mut |leaf| !small(leaf))) {
        return Err("its bounds have 64 bits".into());
    }
    Ok(step)
}
