//! Loops over blocks become the grid.
//!
//! ```text
//! for r in 0..16: free block(x)                  grid (16, 1, 1)
//!   store y[r*64] = v                    -->     store y[bx*64] = v
//! ```
//!
//! Nests of such loops that are side by side share the grid: along one dimension each has its own range of blocks.
//! What is beside them is repeated by every block.

use crate::index::{Cmp, Cond, Mask};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::edit;

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
    let mut grid = [1, 1, 1].map(Ix::Const);
    while let Place::Block { dim } = f.place {
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

/// The grid of all parts together, and what a block does: it belongs to one of them.
fn side_by_side(kernel: &mut Kernel, parts: Vec<Part>) -> ([Ix; 3], Vec<Stmt>) {
    let Some(first) = parts.first() else { return ([1, 1, 1].map(Ix::Const), vec![]) };
    // Along columns, where the parts have the same rows.
    let same = |d: usize| parts.iter().all(|p| p.grid[d] == first.grid[d]);
    let along = if same(0) && same(2) { 1 } else { 0 };
    let mut grid = first.grid.clone();
    for p in &parts[1..] {
        for (d, n) in grid.iter_mut().enumerate().filter(|(d, _)| *d != along) {
            if *n != p.grid[d] {
                *n = Ix::max(n.clone(), p.grid[d].clone());
            }
        }
    }
    let mut end = Ix::Const(0);
    let mut ranges = vec![];
    for mut p in parts {
        let own = Ix::sub(Ix::Block(along as u8), end.clone());
        if !end.is_const(0) {
            walk::map_ixs(&mut p.body, &mut |ix| {
                *ix = ix.replace_leaves(&mut |leaf| (*leaf == Ix::Block(along as u8)).then(|| own.clone()));
            });
        }
        end = Ix::add(end, p.grid[along].clone());
        ranges.push((p, end.clone()));
    }
    grid[along] = end;
    let all = |conds| Mask { conds, vals: vec![] };
    let below = |d: usize, n: &Ix| Cond::new(Ix::Block(d as u8), Cmp::Lt, n.clone());
    let mut rest: Option<Vec<Stmt>> = None;
    for (p, end) in ranges.into_iter().rev() {
        // A part that is smaller than the grid along another dimension leaves blocks idle.
        let idle = (0..3).filter(|d| *d != along && grid[*d] != p.grid[*d]).map(|d| below(d, &p.grid[d]));
        let idle: Vec<Cond> = idle.collect();
        let body = if idle.is_empty() { p.body } else { edit::when(kernel, "mine", all(idle), p.body, vec![]) };
        rest = Some(match rest {
            None => body,
            Some(rest) => edit::when(kernel, "mine", all(vec![below(along, &end)]), body, rest),
        });
    }
    (grid, rest.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use crate::kernel::legalise::{Options, legalise};
    use crate::kernel::{eval, print};
    use crate::loops::parse::parse;
    use crate::{base, loops};

    /// The grid and the text of a kernel, whose Tile IR and Kernel IR store the same.
    fn bound(text: &str) -> String {
        use base::memory::{Memory, VecMemory};
        let (tile, _) = parse(text).unwrap();
        let errors = loops::verify::verify(&tile, loops::print::Dialect::Tile);
        assert!(errors.is_empty(), "{errors:?}");
        let kernel = legalise(&tile, &Options::default()).unwrap();
        let mut results = vec![];
        for placed in [true, false] {
            let mut memory = VecMemory::new();
            let args: Vec<u64> = tile.params.iter().map(|p| memory.add(&p.name, vec![0xa5; 4096])).collect();
            let launch = base::launch::Launch::new([1, 1, 1], args.clone());
            let mut host = base::host::Silent;
            match placed {
                true => loops::eval::run(&tile, &launch, &mut memory, &mut host).unwrap(),
                false => eval::run(&kernel, &tile, &launch, &mut memory, &mut host).unwrap(),
            }
            let mut bytes = vec![0; 4096 * args.len()];
            for (part, at) in bytes.chunks_mut(4096).zip(&args) {
                memory.read(*at, part).unwrap();
            }
            results.push(bytes);
        }
        assert_eq!(results[0], results[1]);
        print::print(&kernel)
    }

    #[test]
    fn one_nest_is_the_grid() {
        let text = bound(
            "tile kernel k(p: ptr i32) open:\n  for z in 0..3: free block(z)\n    for b in 0..4: free block(x)\n      v: i32 = index z*4 + b\n      store p[z*4 + b] = v\n",
        );
        assert!(text.contains("grid (4, 1, 3)") && text.contains("store p[bz*4 + bx]"), "{text}");
    }

    #[test]
    fn nests_side_by_side_have_ranges_of_blocks() {
        let part = |p: &str, y: u32, x: u32| {
            format!(
                "  for y{p} in 0..{y}: free block(y)\n    for x{p} in 0..{x}: free block(x)\n      v{p}: i32 = index y{p}*10 + x{p}\n      store {p}[y{p}*{x} + x{p}] = v{p}\n"
            )
        };
        let params = "p: ptr i32, q: ptr i32, r: ptr i32";
        let alike =
            bound(&format!("tile kernel k({params}) open:\n{}{}{}", part("p", 2, 3), part("q", 4, 3), part("r", 1, 3)));
        assert!(alike.contains("grid (3, 7, 1)") && alike.contains("by < 2") && alike.contains("by < 6"), "{alike}");
        // Of other sizes along both: along x, and some blocks are idle.
        let other =
            bound(&format!("tile kernel k({params}) open:\n{}{}{}", part("p", 2, 3), part("q", 4, 5), part("r", 1, 1)));
        assert!(other.contains("grid (9, 4, 1)") && other.contains("bx < 8") && other.contains("by < 1"), "{other}");
    }

    /// Each has tensors of its own, though blocks are counted from those of the nests before.
    #[test]
    fn nests_side_by_side_are_filled_by_tma() {
        let part = |p: &str, blocks: u32, fixed: &str| {
            let rows = blocks * 8 - 3;
            format!(
                "  for n{p} in 0..{blocks}: free block(x)
    for k{p} in 0..4: serial pipeline(2)
      stage s{p}: f32[8, 32] shared tensor:
        for i{p} in 0..8: free
          for j{p} in 0..32: free
            v{p}: f32 = load {p}[(n{p}*8 + i{p}{fixed})*128 + (k{p}*32 + j{p})] where n{p}*8 + i{p}{fixed} < {rows} and k{p}*32 + j{p} < 128 else 0.0
            s{p}[i{p}, j{p}] = v{p}
      for t{p} in 0..32: free thread
        w{p}: f32 = s{p}[3, t{p}]
        store o[n{p}*128 + k{p}*32 + t{p}] = w{p}
"
            )
        };
        let text = |fixed| {
            let parts = [part("p", 3, fixed), part("q", 2, fixed), part("r", 4, fixed)].concat();
            let params = "p: ptr f32 div 16, q: ptr f32 div 16, r: ptr f32 div 16, o: ptr f32";
            let (tile, _) = parse(&format!("tile kernel k({params}) open:\n{parts}")).unwrap();
            print::print(&legalise(&tile, &Options { shared: 1 << 14, ..Options::default() }).unwrap())
        };
        let out = text("");
        for (p, rows, from) in [("p", 21, "bx*8"), ("q", 13, "bx*8 - 24"), ("r", 29, "bx*8 - 40")] {
            assert!(out.contains(&format!("f32[{rows}, 128] of {p} strides (128) box [8, 32]")), "{out}");
            assert!(out.contains(&format!("{p}_map[{from}, 0]")), "{out}");
        }
        // What a program adds itself is a place, too.
        let out = text(" + 2");
        assert!(out.contains("f32[29, 128] of r") && out.contains("r_map[bx*8 - 38, 0]"), "{out}");
    }

    #[test]
    fn what_stands_beside_is_every_blocks() {
        let text = bound(
            "tile kernel k(p: ptr i32, q: ptr i32) open:\n  x: i32 = load q[0]\n  for b in 0..4: free block(x)\n    store p[b] = x\n",
        );
        assert!(text.contains("grid (4, 1, 1)") && text.contains("x: i32 = load q[0]"), "{text}");
        let none = bound("tile kernel k(p: ptr i32) open:\n  store p[3] = 1\n");
        assert!(none.contains("grid (1, 1, 1)"), "{none}");
    }
}
