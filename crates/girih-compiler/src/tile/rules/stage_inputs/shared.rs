//! Operands that the threads of a block share.

use std::collections::{BTreeMap, BTreeSet};

use super::{Placed, contiguous_axis, rebuild};
use crate::base::rule::Log;
use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::tile::Context;
use crate::tile::contraction::{Nest, nest_at};
use crate::tile::edit::{self, Visit, free_loop, new_axis};
use crate::tile::rules::site_of;
use crate::tile::target::MemoryKind;
use crate::tile::wide;

/// Brings the operands of every contraction into shared memory.
pub(super) fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let mut staged = BTreeSet::new();
    walk::visit(&p.body, &mut |s| {
        if let Stmt::Stage { buf, .. } = s {
            staged.insert(*buf);
        }
    });
    edit::rewrite(p, &mut |kernel, s| match nest_at(s) {
        None => Visit::Into,
        Some(Err(why)) => {
            log.skipped(site_of(kernel, s), why);
            Visit::Leave
        }
        Some(Ok(nest)) if nest.free.len() > 2 => {
            log.skipped(site_of(kernel, s), "it is one of several products that threads do side by side");
            Visit::Leave
        }
        Some(Ok(nest)) => {
            let site = site_of(kernel, s);
            match stage_nest(kernel, ctx, &nest, &staged, &site, log) {
                Some(new) => Visit::Replace(new),
                None => Visit::Leave,
            }
        }
    })
}

fn stage_nest(
    kernel: &mut Kernel,
    ctx: &Context,
    nest: &Nest,
    staged: &BTreeSet<BufId>,
    site: &str,
    log: &mut Log,
) -> Option<Vec<Stmt>> {
    let mut reduce = nest.reduce.clone();
    let mut stages: Vec<Placed> = Vec::new();
    for (name, left) in [("a", true), ("b", false)] {
        let site = format!("{site}, operand {name}");
        match stage(kernel, ctx, nest, left, staged) {
            Ok((placed, at, read)) => {
                // What is read takes the role of what it was computed from.
                if let (Some(value), Some(roles)) = (walk::def(&read), &mut reduce.contraction) {
                    let role = if left { &mut roles.a } else { &mut roles.b };
                    *role = value;
                }
                reduce.body[at] = read;
                stages.push(placed);
                log.applied(site);
            }
            Err(why) => log.skipped(site, why),
        }
    }
    if stages.is_empty() {
        return None;
    }
    edit::drop_unused(&mut reduce.body);
    Some(rebuild(nest, reduce, stages))
}

/// One operand: its stage, and the read that takes the place of the statement of the sum at a position.
fn stage(
    kernel: &mut Kernel,
    ctx: &Context,
    nest: &Nest,
    left: bool,
    staged: &BTreeSet<BufId>,
) -> Result<(Placed, usize, Stmt), String> {
    let (a, b) = nest.operands()?;
    let operand = if left { a } else { b };
    // The element as memory has it takes the least room; conversions are for the registers.
    let role = if left { nest.roles.a } else { nest.roles.b };
    let loaded = |at: &&usize| walk::def(&nest.reduce.body[**at]) == Some(role);
    let inside = refs(&nest.reduce.body).vals_defined;
    let alone = |at: &usize| {
        let load = &nest.reduce.body[*at];
        matches!(load, Stmt::Load { .. }) && walk::refs_of(load).vals_used.is_disjoint(&inside)
    };
    let (value, slice) = match operand.slice.iter().find(loaded) {
        Some(at) if alone(at) => (role, vec![*at]),
        _ => (operand.value, operand.slice.clone()),
    };
    let stmts: Vec<Stmt> = slice.iter().map(|&i| nest.reduce.body[i].clone()).collect();
    let facts = refs(&stmts);
    let (own, other, roles) = if left { (nest.roles.m, nest.roles.n, "n") } else { (nest.roles.n, nest.roles.m, "m") };
    if facts.axes_used.contains(&other) {
        return Err(format!("it depends on {roles}"));
    }
    if facts.bufs_read.iter().any(|b| staged.contains(b)) {
        return Err("it is in shared memory already".to_string());
    }
    if let [Stmt::Read { .. }] = &stmts[..] {
        return Err("it is a tile of the block's own".to_string());
    }
    if let Some(odd) = stmts.iter().find(|s| !edit::is_pure(s)) {
        return Err(match odd {
            Stmt::Load { .. } => "its load is ordered".to_string(),
            _ => "it is not a pure computation".to_string(),
        });
    }
    let Some(Ty::Num(dtype)) = kernel.vals.get(value).map(|v| v.ty) else {
        return Err("it is an address".to_string());
    };
    let extent = if left { nest.m } else { nest.n };
    let bytes = extent.saturating_mul(nest.k).saturating_mul(dtype.bytes());
    let room = ctx.target.bytes_of(MemoryKind::Shared) / 2;
    if bytes > room {
        return Err(format!("it takes {bytes} bytes of shared memory, more than half of a block's"));
    }

    // As memory runs, so that neighbouring threads read neighbouring elements.
    let along_k = contiguous_axis(kernel, &stmts, nest.roles.k, own, &facts) == Some(nest.roles.k);
    let (outer, inner) = if along_k { (own, nest.roles.k) } else { (nest.roles.k, own) };
    let (rows, cols) = if along_k { (extent, nest.k) } else { (nest.k, extent) };
    let buf =
        Buf { space: Space::Shared, ..Buf::new(if left { "a_s" } else { "b_s" }, Ty::Num(dtype), vec![rows, cols]) };
    let buf = kernel.bufs.push(buf);

    let row = new_axis(kernel, outer, "");
    let renamed = walk::Renaming::fresh(kernel, &stmts);
    let fill = |col: Ix, mask: &dyn Fn(&mut Stmt)| {
        let by = BTreeMap::from([(outer, Ix::Axis(row)), (inner, col.clone())]);
        let mut body = edit::place_axes(&stmts, &by, &BTreeMap::new());
        renamed.apply(&mut body);
        body.iter_mut().for_each(mask);
        let value = Opnd::Val(renamed.vals.get(&value).copied().unwrap_or(value));
        body.push(Stmt::Write { buf, idx: vec![Ix::Axis(row), col], value });
        body
    };
    let lanes = match &stmts[..] {
        [load @ Stmt::Load { .. }] => wide::lanes(kernel, ctx, load, inner, cols, &BTreeSet::new()),
        _ => 1,
    };
    let line = if lanes > 1 {
        let (group, lane) = (new_axis(kernel, inner, "1"), new_axis(kernel, inner, "2"));
        let start = Ix::mul(Ix::Axis(group), Ix::Const(lanes as i64));
        let at = Ix::add(start, Ix::Axis(lane));
        // The lanes are on or off together.
        let body = fill(at, &|s| {
            wide::mask_once(s, lane);
        });
        let vector =
            edit::loop_with(lane, Ix::Const(lanes as i64), body, |f| f.place = Place::Vector { lanes: lanes as u32 });
        free_loop(group, Ix::Const((cols / lanes) as i64), vec![vector])
    } else {
        let col = new_axis(kernel, inner, "");
        let body = fill(Ix::Axis(col), &|_| {});
        free_loop(col, Ix::Const(cols as i64), body)
    };
    let fill = free_loop(row, Ix::Const(rows as i64), vec![line]);
    let stage = Stmt::Stage { buf, filled: Filled::Copied, body: vec![fill] };

    let idx = [outer, inner].map(Ix::Axis).to_vec();
    let at = slice.last().copied().unwrap_or(0);
    Ok(((0, stage), at, Stmt::Read { dst: value, buf, idx }))
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
        assert!(made.contains("stage a_s: f32[") && made.contains("= load at["), "{made}");
        // The role is that of what is read now.
        assert_eq!(crate::loops::verify::verify(&out, crate::loops::print::Dialect::Tile), [], "{made}");
        let plain = GATHER.replace("        n: i32 = load at[kk]\n", "").replace("i*16 + n", "i*16 + kk");
        let (out, _) = apply("stage_inputs", &kernel(&plain), &gpu(&[]));
        assert!(text(&out).contains("stage a_s: f16[8, 16] shared"), "{}", text(&out));
    }
}
