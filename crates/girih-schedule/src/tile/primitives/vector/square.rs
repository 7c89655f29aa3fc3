//! `vector` of two loops that stand in each other: a square that is read along one and written along the other.
//!
//! ```text
//! for kk in 0..16: free                            for kk in 0..16: free vector(16)
//!   for j in 0..16: free                             for j in 0..16: free vector(16)
//!     x = block[j, kk]                     -->         x = block[j, kk]
//!     pack[kk, j] = x                                  pack[kk, j] = x
//! ```
//!
//! The rows of a square are vectors, which are transposed in registers. Legal for whole squares of elements that are moved as they
//! are, without masks.

use crate::loops::ir::*;
use crate::loops::walk::refs;
use crate::num::DType;
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::edit::const_trip;

/// True if a pair of loops reads along the outer axis, far apart along the inner one, and writes along the inner one.
pub fn turns(kernel: &Kernel, outer: &For, inner: &For) -> bool {
    let open = For::is_free_unplaced;
    let (Some(load), Some(store)) = (inner.body.first(), inner.body.last()) else { return false };
    let varying = refs(&inner.body).vals_defined;
    let along = |s: &Stmt, axis: AxisId| match s {
        Stmt::Load { mem, .. } | Stmt::Store { mem, .. } => affine::stride(&mem.index, axis, &varying),
        Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } => match kernel.bufs.get(*buf) {
            Some(b) => affine::buf_stride(b, idx, axis, &varying),
            None => Stride::Irregular,
        },
        _ => Stride::Irregular,
    };
    let (t, s) = (outer.axis, inner.axis);
    let reads = matches!(load, Stmt::Load { .. } | Stmt::Read { .. });
    let writes = matches!(store, Stmt::Store { .. } | Stmt::Write { .. });
    let read_along_t = along(load, t) == Stride::Unit && along(load, s) == Stride::Far;
    let written_along_s = along(store, s) == Stride::Unit && along(store, t) == Stride::Far;
    open(outer) && open(inner) && reads && writes && read_along_t && written_along_s
}

/// Checks that a pair of loops can run in squares of `lanes` lanes.
pub fn legal(kernel: &Kernel, ctx: &Context, outer: &For, inner: &For, lanes: u32) -> Result<(), String> {
    if !turns(kernel, outer, inner) {
        return Err("what it moves is not read along the outer loop and written along the inner one".into());
    }
    moved(kernel, inner)?;
    let whole = |f: &For| const_trip(f).is_some_and(|n| n.is_multiple_of(lanes.into()));
    if !whole(outer) || !whole(inner) {
        return Err(format!("its loops do not run over whole squares of {lanes} lanes"));
    }
    if lanes > ctx.target.vector.registers {
        return Err(format!("{lanes} vectors are more than the registers"));
    }
    Ok(())
}

/// The type of the elements that a pair of loops moves as they are.
pub fn moved(kernel: &Kernel, inner: &For) -> Result<DType, String> {
    let say = |why: &str| Err(why.to_string());
    let [load, store] = &inner.body[..] else { return say("something is computed on the way") };
    let (dst, value) = match (load, store) {
        (Stmt::Load { dst, .. } | Stmt::Read { dst, .. }, Stmt::Store { value, .. } | Stmt::Write { value, .. }) => {
            (*dst, *value)
        }
        _ => return say("something is computed on the way"),
    };
    if value != Opnd::Val(dst) {
        return say("it writes something other than it reads");
    }
    for s in [load, store] {
        match s {
            Stmt::Load { mask, order, .. } | Stmt::Store { mask, order, .. }
                if !mask.is_always() || *order != Order::Weak =>
            {
                return say("an access is masked or ordered");
            }
            Stmt::Read { buf, .. } if matches!(store, Stmt::Write { buf: to, .. } if to == buf) => {
                return say("it reads the buffer that it writes");
            }
            _ => {}
        }
    }
    let Some(Ty::Num(dtype)) = kernel.vals.get(dst).map(|v| v.ty) else { return say("it moves addresses") };
    // 4-bit elements have no vectors in memory, and those of one bit are masks.
    if dtype.bits() < 8 {
        return say("an element takes less than a byte of memory");
    }
    Ok(dtype)
}
