//! Loops over blocks become the grid.
//!
//! ```text
//! for r in 0..16: free block(x)                  grid (16, 1, 1)
//!   store y[r*64] = v                    -->     store y[bx*64] = v
//! ```
//!
//! Nests of such loops that stand side by side share the grid: along one dimension each has its own range of blocks.
//! What stands beside them is repeated by every block.

use crate::index::{Cmp, Cond, Mask};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::DType;

/// One nest of loops over blocks: its extents along x, y and z, and what one block does.
struct Part {
    grid: [Ix; 3],
    body: Vec<Stmt>,
}

/// The kernel of one block, and the grid: `None` where the launch gives it.
pub(super) fn bind(kernel: &Kernel) -> (Kernel, Option<[Ix; 3]>) {
    let mut out = kernel.clone();
    if !kernel.open {
        return (out, None);
    }
    out.open = false;
    let (mut shared, mut parts) = (vec![], vec![]);
    for s in std::mem::take(&mut out.body) {
        match s {
            Stmt::For(f) if matches!(f.place, Place::Block { .. }) => parts.push(part(*f)),
            other => shared.push(other),
        }
    }
    let (grid, body) = side_by_side(&mut out, parts);
    out.body = shared;
    out.body.extend(body);
    (out, Some(grid))
}

fn part(mut f: For) -> Part {
    let one = || Ix::Const(1);
    let mut grid = [one(), one(), one()];
    loop {
        let Place::Block { dim } = f.place else { break };
        let (axis, mut body) = (f.axis, std::mem::take(&mut f.body));
        walk::subst_axes(&mut body, &mut |a| (a == axis).then_some(Ix::Block(dim)));
        if let Some(slot) = grid.get_mut(usize::from(dim)) {
            *slot = f.hi.clone();
        }
        match body.pop() {
            Some(Stmt::For(inner)) if body.is_empty() && matches!(inner.place, Place::Block { .. }) => f = *inner,
            last => {
                body.extend(last);
                return Part { grid, body };
            }
        }
    }
    Part { grid, body: vec![] }
}

/// Every block belongs to one of the parts.
fn side_by_side(kernel: &mut Kernel, mut parts: Vec<Part>) -> ([Ix; 3], Vec<Stmt>) {
    let one = || Ix::Const(1);
    let Some(last) = parts.pop() else { return ([one(), one(), one()], vec![]) };
    if parts.is_empty() {
        return (last.grid, last.body);
    }
    parts.push(last);
    // Along columns, where the parts have the same rows.
    let same = |d: usize| parts.iter().all(|p| p.grid[d] == parts[0].grid[d]);
    let along: u8 = if same(0) && same(2) { 1 } else { 0 };
    let at = usize::from(along);
    let mut grid = parts[0].grid.clone();
    for p in &parts[1..] {
        for (d, (n, own)) in grid.iter_mut().zip(&p.grid).enumerate().filter(|(d, _)| *d != at) {
            debug_assert_ne!(d, at);
            *n = if n == own { n.clone() } else { Ix::max(n.clone(), own.clone()) };
        }
    }
    let mut before = Ix::Const(0);
    let mut ranges = vec![];
    for p in &mut parts {
        let own = Ix::sub(Ix::Block(along), before.clone());
        if !before.is_const(0) {
            walk::map_ixs(&mut p.body, &mut |ix| {
                *ix = ix.replace_leaves(&mut |leaf| (*leaf == Ix::Block(along)).then(|| own.clone()));
            });
        }
        before = Ix::add(before, p.grid[at].clone());
        let mut conds = vec![Cond::new(Ix::Block(along), Cmp::Lt, before.clone())];
        for (d, n) in (0u8..).zip(&grid).filter(|(d, _)| *d != along) {
            if *n != p.grid[usize::from(d)] {
                conds.push(Cond::new(Ix::Block(d), Cmp::Lt, p.grid[usize::from(d)].clone()));
            }
        }
        ranges.push(conds);
    }
    grid[at] = before;
    // The last part has what is left, unless it is smaller than the others along another dimension.
    let mut rest: Vec<Stmt> = vec![];
    for (p, mut conds) in parts.into_iter().zip(ranges).rev() {
        if rest.is_empty() {
            conds.remove(0);
        }
        if conds.is_empty() {
            rest = p.body;
            continue;
        }
        // Along the other dimensions a part that is too small has idle blocks: they must not fall to the next part.
        let (first, others) = conds.split_first().map_or((None, &[][..]), |(f, o)| (Some(f.clone()), o));
        let mut body = p.body;
        let test = |kernel: &mut Kernel, conds: Vec<Cond>| {
            let dst = kernel.vals.push(Val { ty: Ty::Num(DType::I1), name: "mine".into() });
            (Stmt::Test { dst, mask: Mask { conds, vals: vec![] } }, Opnd::Val(dst))
        };
        if rest.is_empty() {
            let all: Vec<Cond> = first.into_iter().chain(others.iter().cloned()).collect();
            let (s, cond) = test(kernel, all);
            rest = vec![s, Stmt::If { cond, then: body, els: vec![] }];
            continue;
        }
        if !others.is_empty() {
            let (s, cond) = test(kernel, others.to_vec());
            body = vec![s, Stmt::If { cond, then: body, els: vec![] }];
        }
        let (s, cond) = test(kernel, first.into_iter().collect());
        rest = vec![s, Stmt::If { cond, then: body, els: rest }];
    }
    (grid, rest)
}
