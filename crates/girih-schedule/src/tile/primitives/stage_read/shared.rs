//! Operands that the threads of a block share.

use std::collections::{BTreeMap, BTreeSet};

use super::{Side, Staged, computing, element, piece, separate};
use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::num::{DType, ScalarOp};
use crate::tile::Context;
use crate::tile::contraction::{Nest, Operand};
use crate::tile::edit::{self, free_loop, new_axis};
use crate::tile::primitives::retype::{Known, conversions};
use crate::tile::target::{Capability, MemoryKind};
use crate::tile::wide;

/// Brings an operand into shared memory.
pub(super) fn stage(
    kernel: &mut Kernel,
    ctx: &Context,
    (p, nest): (&Kernel, &Nest),
    operand: &Operand,
    (side, held): (Side, Option<DType>),
) -> Result<Staged, String> {
    if !ctx.target.has(Capability::Threads) {
        return Err(format!("{} has no threads that share memory", ctx.target.name));
    }
    nest.alone()?;
    if let Some(to) = held.filter(|to| !Known::of(p).fits(operand.value, *to)) {
        return Err(format!("{to} may not have every number of it"));
    }
    let (value, slice) = match held {
        Some(_) => (operand.value, operand.slice.clone()),
        None => as_loaded(kernel, nest, operand, side),
    };
    let stmts = computing(nest, &slice);
    let facts = refs(&stmts);
    separate(p, nest, &stmts, &facts, side)?;
    if let [Stmt::Read { .. }] = &stmts[..] {
        return Err("it is a tile of the block's own".to_string());
    }
    let (own, extent) = side.own(nest);
    let dtype = held.map_or_else(|| element(kernel, value), Ok)?;
    // As memory runs, so that neighbouring threads read neighbouring elements.
    let along_k = piece(kernel, &stmts, (nest.roles.k, nest.k), 1) > 0;
    let (outer, inner) = if along_k { (own, nest.roles.k) } else { (nest.roles.k, own) };
    let (rows, cols) = if along_k { (extent, nest.k) } else { (nest.k, extent) };
    let name = format!("{}_s", side.name());
    let buf = Buf { space: Space::Shared, ..Buf::new(name, Ty::Num(dtype), vec![rows, cols]) };
    let bytes = buf.bytes();
    if bytes > ctx.target.bytes_of(MemoryKind::Shared) / 2 {
        return Err(format!("it takes {bytes} bytes of shared memory, more than half of a block's"));
    }
    let buf = kernel.bufs.push(buf);

    let (row, col) = (new_axis(kernel, outer, ""), new_axis(kernel, inner, ""));
    let by = BTreeMap::from([(outer, Ix::Axis(row)), (inner, Ix::Axis(col))]);
    let renamed = walk::Renaming::fresh(kernel, &stmts);
    let mut body = edit::place_axes(&stmts, &by, &BTreeMap::new());
    renamed.apply(&mut body);
    let lanes = match &body[..] {
        [load @ Stmt::Load { .. }] => wide::lanes(kernel, ctx, load, col, cols, &BTreeSet::new()),
        _ => 1,
    };
    let mut copied = renamed.vals.get(&value).copied().unwrap_or(value);
    // The operand as its type has it, computed of what is held.
    let mut then = None;
    let mut read = value;
    if held.is_some() {
        let (wide, Val { name, .. }) = (element(kernel, value)?, kernel.vals[value].clone());
        let (to, from) = conversions(dtype, wide);
        let mut val = || kernel.vals.push(Val { ty: Ty::Num(dtype), name: name.clone() });
        let narrowed = val();
        read = val();
        body.push(Stmt::Let { dst: narrowed, op: to, args: vec![Opnd::Val(copied)] });
        then = Some(Stmt::Let { dst: value, op: from, args: vec![Opnd::Val(read)] });
        copied = narrowed;
    }
    let copied = Opnd::Val(copied);
    body.push(Stmt::Write { buf, idx: vec![Ix::Axis(row), Ix::Axis(col)], value: copied });
    let mut line = free_loop(col, Ix::Const(cols as i64), body);
    if let Stmt::For(each) = &line {
        let groups = wide::in_groups(kernel, each, lanes, |lane, body| vec![wide::at_once(lane, lanes, body)]);
        line = Stmt::For(Box::new(groups));
    }
    let fill = free_loop(row, Ix::Const(rows as i64), vec![line]);
    let stage = Stmt::Stage { buf, filled: Filled::Copied, body: vec![fill] };

    let idx = [outer, inner].map(Ix::Axis).to_vec();
    let at = slice.last().copied().unwrap_or(0);
    Ok(Staged { depth: 0, stage, at, read: Stmt::Read { dst: read, buf, idx }, then })
}

/// The part of an operand that is held in shared memory, as a value, and the statements that compute it: the element as memory
/// has it takes the least room; conversions are for the registers.
pub fn as_loaded(kernel: &Kernel, nest: &Nest, operand: &Operand, side: Side) -> (ValId, Vec<usize>) {
    let role = if side == Side::A { nest.roles.a } else { nest.roles.b };
    let loaded = |at: &&usize| walk::def(&nest.reduce.body[**at]) == Some(role);
    let inside = refs(&nest.reduce.body).vals_defined;
    let alone = |at: &usize| {
        let load = &nest.reduce.body[*at];
        matches!(load, Stmt::Load { .. }) && walk::refs_of(load).vals_used.is_disjoint(&inside)
    };
    let before = narrow(kernel, nest, operand);
    let bytes = |v: ValId| element(kernel, v).map_or(0, |d| d.bytes());
    match operand.slice.iter().find(loaded) {
        // What is rounded before it is multiplied takes less room than what is loaded.
        _ if before.0 != operand.value && bytes(before.0) < bytes(role) => before,
        Some(at) if alone(at) => (role, vec![*at]),
        _ => before,
    }
}

/// What an operand is before it is converted to a wider type, or to f32 from tf32, if that is the last that is done, and how it is computed.
fn narrow(kernel: &Kernel, nest: &Nest, operand: &Operand) -> (ValId, Vec<usize>) {
    if let Some((last, rest)) = operand.slice.split_last()
        && let Stmt::Let { dst, op: ScalarOp::FToF { .. } | ScalarOp::ExtI { .. }, args } = &nest.reduce.body[*last]
        && let [Opnd::Val(from)] = args[..]
        && let (Ok(wide), Ok(own)) = (element(kernel, *dst), element(kernel, from))
        && (own.bytes() < wide.bytes() || own == DType::TF32)
        && rest.iter().any(|at| walk::def(&nest.reduce.body[*at]) == Some(from))
    {
        let until = rest.iter().rposition(|at| walk::def(&nest.reduce.body[*at]) == Some(from)).map_or(0, |at| at + 1);
        return (from, rest[..until].to_vec());
    }
    (operand.value, operand.slice.clone())
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, text};

    const GATHER: &str = r#"loop kernel k(A: ptr f16, B: ptr f32, at: ptr i32):
  local acc: f32[8, 8]
  for i in 0..8: free
    for j in 0..8: free
      for kk in 0..16: reduce contraction m=i n=j k=kk a=a b=b acc=acc
        n: i32 = load at[kk]
        a: f16 = load A[i*16 + n]
        x: f32 = f32(a)
        b: f32 = load B[kk*8 + j]
        c: f32 = acc[i, j]
        d: f32 = fma(x, b, c)
        acc[i, j] = d
"#;

    /// What an operand's place depends on is computed where the operand is copied.
    #[test]
    fn an_operand_is_staged_with_what_its_place_depends_on() {
        let (out, log) = apply("stage_inputs", &kernel(GATHER), &gpu(&[]));
        assert_eq!(log.applied.len(), 2);
        let made = text(&out);
        assert!(made.contains("stage a_s: f16[") && made.contains("= load at["), "{made}");
        // The role is that of what is read now.
        assert_eq!(crate::loops::verify::verify(&out, crate::loops::print::Dialect::Tile), [], "{made}");
        let plain = GATHER.replace("        n: i32 = load at[kk]\n", "").replace("i*16 + n", "i*16 + kk");
        let (out, _) = apply("stage_inputs", &kernel(&plain), &gpu(&[]));
        assert!(text(&out).contains("stage a_s: f16[8, 16] shared"), "{}", text(&out));
    }
}
