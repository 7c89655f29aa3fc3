//! `vector`: several iterations of an innermost loop at a time, in vector registers.
//!
//! ```text
//! for j in 0..n: free                              for j in 0..n: free vector(16)
//!   %x = load a[j]                          -->      %x = load a[j]
//!   store c[j] = %x                                  store c[j] = %x
//! ```
//!
//! Legal for straight arithmetic that stores to neighbouring elements; of a reduction, where it may be reassociated. Two loops
//! that stand in each other and turn what they move: [`square`]. On a GPU a thread moves several elements at a
//! time: [`accesses`].

pub mod accesses;
pub mod square;

use super::Names;
use super::line::{LoopRef, change};
use std::collections::BTreeSet;

use crate::loops::ir::*;
use crate::loops::walk::{self, Refs, refs};
use crate::num::ScalarOp;
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::edit;
use crate::tile::target::Capability;

/// A reduction keeps `ways` vectors of accumulators.
pub fn apply(kernel: &mut Kernel, ctx: &Context, loops: &[LoopRef], lanes: u32, ways: u32) -> Result<(), String> {
    if !lanes.is_power_of_two() || !ways.is_power_of_two() || !(2..=64).contains(&lanes) || ways > 16 {
        return Err(format!("{lanes} x {ways} are not powers of two from 2 to 64 and from 1 to 16"));
    }
    if ctx.target.has(Capability::Threads) {
        return match ways {
            1 => accesses::apply(kernel, ctx, loops, lanes),
            _ => Err("a thread has no vector registers for accumulators".into()),
        };
    }
    let names = Names::of(kernel);
    let named = |f: &For| names.name(f).is_some_and(|at| loops.contains(&at));
    let mut within: Vec<*const For> = vec![];
    let check = &mut |kernel: &Kernel, f: &For| match &f.body[..] {
        [Stmt::For(inner)] if named(inner) => {
            within.push(&raw const **inner);
            square::legal(kernel, ctx, f, inner, lanes)
        }
        _ if within.contains(&std::ptr::from_ref(f)) => Ok(()),
        _ => legal(kernel, f),
    };
    change(kernel, loops, check, &mut |f| {
        f.place = Place::Vector { lanes };
        if let Some(combine) = &mut f.combine {
            combine.ways = ways;
        }
    })
}

/// Checks that the iterations of a loop can run several at once.
pub fn legal(kernel: &Kernel, f: &For) -> Result<(), String> {
    if f.kind == LoopKind::Serial || f.place != Place::None || f.body.iter().any(|s| !walk::bodies(s).is_empty()) {
        return Err("it runs in order, is placed already, or holds other loops".to_string());
    }
    if f.step != Ix::Const(1) {
        return Err("its step is not 1".to_string());
    }
    if f.kind == LoopKind::Reduce && f.combine.is_none() {
        return Err("the order of its reduction is fixed".to_string());
    }
    let facts = refs(&f.body);
    let varying = edit::varying(&f.body, f.axis);
    let accs: &[BufId] = f.combine.as_ref().map_or(&[], |c| &c.accs);
    let mut turns = 0;
    for (at, s) in f.body.iter().enumerate() {
        // Stores that fill the places between them are one.
        turns = match edit::stores_in_turn(&f.body[at..], f.axis, &facts.vals_defined) {
            Some(group) if turns == 0 => group.len(),
            _ => turns,
        };
        match turns {
            0 => check(kernel, f, &facts, &varying, accs, s)?,
            _ => turns -= 1,
        }
    }
    Ok(())
}

/// Checks that a statement can run for several iterations at once.
fn check(
    kernel: &Kernel,
    f: &For,
    facts: &Refs,
    varying: &BTreeSet<ValId>,
    accs: &[BufId],
    s: &Stmt,
) -> Result<(), String> {
    let say = |why: &str| Err(why.to_string());
    let memory = |mem: &Mem, order: Order| {
        if order != Order::Weak {
            return say("it holds an ordered access");
        }
        if facts.vals_defined.contains(&mem.base) {
            return say("an address is computed per element");
        }
        if mem.elem.bits() < 8 && mem.elem.bits() > 1 {
            return say("an element takes less than a byte of memory");
        }
        Ok(())
    };
    match s {
        Stmt::Let { dst, op, .. } => match kernel.vals.get(*dst).map(|v| v.ty) {
            Some(Ty::Num(_)) if *op != ScalarOp::PtrToInt => Ok(()),
            _ => say("it computes addresses"),
        },
        Stmt::Index { .. } | Stmt::Test { .. } | Stmt::Assert { .. } => Ok(()),
        Stmt::Load { mem, order, .. } => memory(mem, *order),
        Stmt::Store { mem, order, .. } => {
            memory(mem, *order)?;
            match affine::stride(&mem.index, f.axis, varying) {
                Stride::Unit => Ok(()),
                _ => say("it stores to elements that do not follow one another"),
            }
        }
        Stmt::Read { buf, .. } | Stmt::Write { buf, .. } if accs.contains(buf) => Ok(()),
        Stmt::Read { buf, .. } if facts.bufs_written.contains(buf) && !same_place(f, *buf) => {
            say("it reads what another iteration may have written")
        }
        Stmt::Read { buf, .. } => match kernel.bufs.get(*buf).map(|b| b.ty) {
            Some(Ty::Num(_)) => Ok(()),
            _ => say("it reads addresses"),
        },
        Stmt::Write { buf, idx, .. } => {
            if !matches!(kernel.bufs.get(*buf).map(|b| b.ty), Some(Ty::Num(_))) {
                return say("it keeps addresses");
            }
            match affine::buf_stride(&kernel.bufs[*buf], idx, f.axis, varying) {
                Stride::Unit => Ok(()),
                _ => say("it writes elements that do not follow one another"),
            }
        }
        Stmt::Rmw { .. } | Stmt::Cas { .. } => say("it holds an atomic"),
        Stmt::Print { .. } => say("it prints"),
        _ => say("it holds more than straight-line arithmetic"),
    }
}

/// Whether all reads and writes of a buffer in the loop are at one place per iteration.
fn same_place(f: &For, buf: BufId) -> bool {
    let mut places = f.body.iter().filter_map(|s| match s {
        Stmt::Read { buf: b, idx, .. } | Stmt::Write { buf: b, idx, .. } if *b == buf => Some(idx),
        _ => None,
    });
    let first = places.next();
    places.all(|p| Some(p) == first)
}
