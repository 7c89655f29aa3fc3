//! Loops over blocks become the grid.
//!
//! ```text
//! for r in 0..16: free block(x)                  grid (16, 1, 1)
//!   store y[r*64] = v                    -->     store y[bx*64] = v
//! ```
//!
//! Nests of such loops that are side by side share the grid: along one dimension each has its own range of blocks.
//! Every block repeats the statements beside the nests.
//!
//! Where blocks go in groups, a block computes its own iterations. The last group may be shorter:
//!
//! ```text
//! for j in 0..6: free block(y)                             number = by*10 + bx
//!   for i in 0..10: free block(x, groups of 4)     -->     first = number//24*4    within = number%24
//!     ...                                                  rows = min(4, 10 - first)
//!                                                          i = first + within%rows    j = within//rows
//! ```
//! Where there are fewer blocks than iterations, each block has a loop over the iterations that it takes in turn, in
//! [`super::persistent_loop`]. So it has where a program says so itself.

use crate::base::id::Id;
use crate::index::{Cmp, Cond, Mask};
use crate::loops::ir::*;
use crate::loops::{cluster_block, walk};
use crate::num::DType;
use crate::tile::edit;
use crate::tile::persistent_loop::GoesOn;

/// The kernel of one block.
pub(super) struct Bound {
    pub kernel: Kernel,
    /// `None` where the launch gives it.
    pub grid: Option<[Ix; 3]>,
    /// The axes of loops over blocks that are computed from the block's number, and the values that stand for them.
    pub numbers: Vec<(AxisId, ValId)>,
    /// The loop over a block's iterations, where it has several.
    pub rounds: Option<Rounds>,
    /// The blocks of a cluster, if there are clusters, and the index expressions in which they differ.
    pub cluster: Option<Cluster>,
    /// True if 32 bits are enough for the numbers of the current blocks.
    int: bool,
}

/// Returns true if a count fits in 32 bits.
fn is_int(count: &Ix) -> bool {
    count.as_const().is_some_and(|n| n <= i32::MAX.into())
}

/// Blocks that form a cluster: neighbours in a loop over blocks.
#[derive(Clone)]
pub(super) struct Cluster {
    pub blocks: u32,
    axis: AxisId,
}

/// The number of the current block in its cluster.
pub(super) fn member(blocks: u32) -> Ix {
    Ix::modulo(Ix::Block(0), Ix::Const(blocks.into()))
}

impl Cluster {
    /// Returns true if an index expression is the same in all blocks of a cluster: it consists of constants,
    /// parameters, and axes of loops in a block and of other loops over blocks.
    pub fn alike(&self, ix: &Ix, kernel: &Kernel) -> bool {
        let params = kernel.params.len();
        !ix.any_leaf(&mut |leaf| match leaf {
            Ix::Const(_) => false,
            Ix::Axis(axis) => *axis == self.axis,
            Ix::Block(dim) => *dim == 0,
            Ix::Val { val, .. } => val.index() >= params,
            _ => true,
        })
    }
}

/// The loop over the iterations that a block takes in turn.
#[derive(Clone)]
pub(super) struct Rounds {
    pub axis: AxisId,
    /// The number of iterations of the block.
    pub count: Ix,
    /// The statements at the start of the loop's body that compute the position of an iteration.
    pub numbers: Vec<Stmt>,
    /// The first generations of an iteration are filled in the one before. Otherwise each iteration begins with filling them, as it may
    /// have fewer.
    pub ahead: bool,
}

/// A loop over blocks.
struct Over {
    axis: AxisId,
    dim: u8,
    extent: Ix,
    group: u32,
}

/// One nest of loops over blocks: its extents along x, y and z, and the work of one block.
struct Part {
    grid: [Ix; 3],
    body: Vec<Stmt>,
}

pub(super) fn bind(kernel: &Kernel) -> Result<Bound, String> {
    let mut out =
        Bound { kernel: kernel.clone(), grid: None, numbers: vec![], rounds: None, cluster: None, int: false };
    if !kernel.open {
        out.rounds = tiles(&kernel.body);
        return Ok(out);
    }
    out.kernel.open = false;
    let (mut shared, mut parts) = (vec![], vec![]);
    for s in std::mem::take(&mut out.kernel.body) {
        match s {
            Stmt::For(f) if matches!(f.place, Place::Block { .. }) => parts.push(out.part(*f)),
            other => shared.push(other),
        }
    }
    if out.rounds.is_some() && parts.len() > 1 {
        return Err("blocks take the iterations of one nest in turn, and there are several".to_string());
    }
    if out.cluster.is_some() && (parts.len() > 1 || out.rounds.is_some()) {
        return Err(
            "a kernel with clusters needs a single nest over blocks, with one iteration for each cluster".to_string()
        );
    }
    let (grid, body) = side_by_side(&mut out.kernel, parts);
    out.kernel.body = shared;
    out.kernel.body.extend(body);
    out.grid = Some(grid);
    Ok(out)
}

/// The loop over tiles that a program's block takes in turn, where TMA fills the pipeline in it.
fn tiles(body: &[Stmt]) -> Option<Rounds> {
    let f = edit::over_tiles(body)?;
    let by_tma = |s: &Stmt| matches!(s, Stmt::For(p) if p.stages().0.iter().any(|s| s.filled(Filled::Tma)));
    let rounds = || Rounds { axis: f.axis, count: f.hi.clone(), numbers: vec![], ahead: goes_on(&f.body) };
    f.body.iter().any(by_tma).then(rounds)
}

fn goes_on(body: &[Stmt]) -> bool {
    matches!(GoesOn::of(body), Ok(Some(_)))
}

impl Bound {
    fn part(&mut self, mut f: For) -> Part {
        let (mut over, mut body) = (vec![], vec![]);
        let mut takers = 0;
        while let Place::Block { dim, group, takers: own, cluster } = f.place {
            takers = takers.max(own);
            if cluster > 1 {
                self.cluster = Some(Cluster { blocks: cluster, axis: f.axis });
            }
            over.push(Over { axis: f.axis, dim, extent: f.hi.clone(), group });
            body = std::mem::take(&mut f.body);
            match body.pop() {
                Some(Stmt::For(inner)) if body.is_empty() && matches!(inner.place, Place::Block { .. }) => f = *inner,
                last => {
                    body.extend(last);
                    break;
                }
            }
        }
        if takers > 0 {
            return self.in_turn(takers, &over, body);
        }
        if let Some(blocks) = cluster_block::blocks(&body) {
            return self.clusters(blocks, &over, body);
        }
        let mut grid = [1, 1, 1].map(Ix::Const);
        for o in &over {
            if let Some(slot) = grid.get_mut(usize::from(o.dim)) {
                *slot = o.extent.clone();
            }
        }
        let mut first = vec![];
        if let Some(Pair { around, own, fast, slow }) = Pair::of(&over) {
            let number = Ix::add(Ix::mul(Ix::Block(slow.dim), fast.extent.clone()), Ix::Block(fast.dim));
            self.int = is_int(&Ix::mul(slow.extent.clone(), fast.extent.clone()));
            self.in_groups(around, own, number, &mut first);
        }
        walk::subst_axes(&mut body, &mut |a| {
            let computed = self.numbers.iter().any(|(axis, _)| *axis == a);
            over.iter().find(|o| o.axis == a && !computed).map(|o| Ix::Block(o.dim))
        });
        first.extend(body);
        Part { grid, body: first }
    }

    /// Runs each iteration on a cluster of `blocks` blocks.
    fn clusters(&mut self, blocks: u32, over: &[Over], mut body: Vec<Stmt>) -> Part {
        let each = Ix::Const(blocks.into());
        let mut grid = [1, 1, 1].map(Ix::Const);
        if let [o] = over {
            self.cluster = Some(Cluster { blocks, axis: o.axis });
            grid[0] = Ix::mul(o.extent.clone(), each.clone());
        }
        let mut axes = vec![];
        walk::visit(&body, &mut |s| {
            if let Stmt::For(f) = s
                && f.place == Place::ClusterBlock
            {
                axes.push(f.axis);
            }
        });
        walk::subst_axes(&mut body, &mut |a| match over {
            [o] if o.axis == a => Some(Ix::floor_div(Ix::Block(0), each.clone())),
            _ => axes.contains(&a).then(|| member(blocks)),
        });
        Part { grid, body }
    }

    /// Runs all iterations of a nest on `takers` blocks: block b takes iterations b, b + takers, b + 2*takers, ...
    fn in_turn(&mut self, takers: u32, over: &[Over], body: Vec<Stmt>) -> Part {
        let takers = Ix::Const(takers.into());
        let pair = Pair::of(over);
        let paired = |o: &Over| pair.as_ref().is_some_and(|p| p.around.axis == o.axis || p.own.axis == o.axis);
        // The loop that runs fastest first.
        let mut order: Vec<&Over> = over.iter().collect();
        order.sort_by_key(|o| (!paired(o), o.dim));
        let all = order.iter().fold(Ix::Const(1), |n, o| Ix::mul(n, o.extent.clone()));
        let axis = self.kernel.axes.push(Axis { name: "round".to_string(), from: None });
        let mut numbers = vec![];
        self.int = is_int(&all);
        let at = Ix::add(Ix::Block(0), Ix::mul(Ix::Axis(axis), takers.clone()));
        let mut left = Ix::val(self.value("tile", at, &mut numbers));
        let take = |left: &mut Ix, extent: Ix, last: bool| {
            let rest = Ix::floor_div(left.clone(), extent.clone());
            let whole = std::mem::replace(left, rest);
            if last { whole } else { Ix::modulo(whole, extent) }
        };
        let mut single = &order[..];
        if let Some(Pair { around, own, .. }) = pair {
            single = &order[2..];
            let extent = Ix::mul(around.extent.clone(), own.extent.clone());
            let number = take(&mut left, extent, single.is_empty());
            self.in_groups(around, own, number, &mut numbers);
        }
        for (at, o) in single.iter().enumerate() {
            let number = take(&mut left, o.extent.clone(), at + 1 == single.len());
            let name = self.name(o.axis);
            let val = self.value(&name, number, &mut numbers);
            self.numbers.push((o.axis, val));
        }
        let count = match (all.as_const(), takers.as_const()) {
            (Some(all), Some(takers)) if all % takers == 0 => Ix::Const(all / takers),
            _ => {
                let ends = Ix::add(all.clone(), Ix::sub(takers.clone(), Ix::Const(1)));
                Ix::floor_div(Ix::sub(ends, Ix::Block(0)), takers.clone())
            }
        };
        let whole = numbers.iter().cloned().chain(body).collect();
        let each = edit::loop_with(axis, count.clone(), whole, |f| f.kind = LoopKind::Serial);
        self.rounds = Some(Rounds { axis, count, numbers, ahead: true });
        Part { grid: [Ix::min(takers, all), Ix::Const(1), Ix::Const(1)], body: vec![each] }
    }

    fn name(&self, axis: AxisId) -> String {
        self.kernel.axes.get(axis).map_or(String::new(), |a| a.name.clone())
    }

    /// A value that is an index expression.
    fn value(&mut self, name: &str, ix: Ix, out: &mut Vec<Stmt>) -> ValId {
        let dtype = if self.int { DType::I32 } else { DType::I64 };
        let dst = self.kernel.vals.push(Val { ty: Ty::Num(dtype), name: name.to_string() });
        out.push(Stmt::Index { dst, ix });
        dst
    }

    /// Computes the iterations of a loop that goes in groups and of the loop around it, from the number of an iteration
    /// of both.
    fn in_groups(&mut self, around: &Over, own: &Over, number: Ix, out: &mut Vec<Stmt>) {
        let group = Ix::Const(own.group.into());
        let all = Ix::mul(group.clone(), around.extent.clone());
        let number = Ix::val(self.value("number", number, out));
        let first = Ix::mul(Ix::floor_div(number.clone(), all.clone()), group.clone());
        let first = Ix::val(self.value("first", first, out));
        let within = Ix::val(self.value("within", Ix::modulo(number, all), out));
        let even = own.extent.as_const().is_some_and(|n| n % i64::from(own.group) == 0);
        let size = match even {
            true => group,
            false => {
                let left = Ix::min(group, Ix::sub(own.extent.clone(), first.clone()));
                Ix::val(self.value("rows", left, out))
            }
        };
        let names = [self.name(own.axis), self.name(around.axis)];
        let at = self.value(&names[0], Ix::add(first, Ix::modulo(within.clone(), size.clone())), out);
        let line = self.value(&names[1], Ix::floor_div(within, size), out);
        self.numbers.extend([(own.axis, at), (around.axis, line)]);
    }
}

/// A loop that goes in groups and the loop around it. One of the two is along the first dimension, in whose order
/// blocks start.
struct Pair<'a> {
    around: &'a Over,
    own: &'a Over,
    fast: &'a Over,
    slow: &'a Over,
}

impl<'a> Pair<'a> {
    fn of(over: &'a [Over]) -> Option<Pair<'a>> {
        let pair = over.windows(2).rev().find(|pair| pair[1].group > 0)?;
        let (around, own) = (&pair[0], &pair[1]);
        let (fast, slow) = if own.dim < around.dim { (own, around) } else { (around, own) };
        Some(Pair { around, own, fast, slow })
    }
}

/// The grid of all parts together, and the work of a block, which belongs to one part.
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

    /// Each iteration runs on one block, whatever the group is, even if the last group is not full.
    #[test]
    fn blocks_go_in_groups() {
        let nest = |p: &str, [rows, cols, group]: [u32; 3]| {
            format!(
                "  for z{p} in 0..2: free block(z)\n    for y{p} in 0..{cols}: free block(y)\n      for x{p} in 0..{rows}: free block(x, groups of {group})\n        v{p}: i32 = index (z{p}*{cols} + y{p})*{rows} + x{p}\n        store {p}[(z{p}*{cols} + y{p})*{rows} + x{p}] = v{p}\n"
            )
        };
        for (sizes, size) in [([8, 6, 4], "4"), ([10, 6, 4], "rows"), ([3, 5, 7], "rows")] {
            let text = bound(&format!("tile kernel k(p: ptr i32) open:\n{}", nest("p", sizes)));
            let [rows, cols, group] = sizes;
            for line in [
                format!("grid ({rows}, {cols}, 2)"),
                format!("number: i32 = index by*{rows} + bx"),
                format!("first: i32 = index number//{}*{group}", group * cols),
                format!("within%{size}"),
                format!("yp: i32 = index within//{size}"),
            ] {
                assert!(text.contains(&line), "{line}\n{text}");
            }
        }
        // Side by side, each counts its own blocks.
        let both = [nest("p", [5, 3, 2]), nest("q", [5, 4, 3])].concat();
        let text = bound(&format!("tile kernel k(p: ptr i32, q: ptr i32) open:\n{both}"));
        assert!(text.contains("grid (5, 7, 2)") && text.contains("(by - 3)*5 + bx"), "{text}");
    }

    /// With fewer blocks than iterations, each iteration still runs on one block.
    #[test]
    fn blocks_take_iterations_in_turn() {
        let nest = |[rows, cols, group, takers]: [u32; 4]| {
            let groups = if group > 0 { format!(", groups of {group}") } else { String::new() };
            format!(
                "tile kernel k(p: ptr i32) open:\n  for z in 0..3: free block(z, {takers} in turn)\n    for y in 0..{cols}: free block(y)\n      for x in 0..{rows}: free block(x{groups})\n        v: i32 = index (z*{cols} + y)*{rows} + x\n        store p[(z*{cols} + y)*{rows} + x] = v\n"
            )
        };
        for (sizes, lines) in [
            (
                [4, 5, 0, 7],
                ["for round in 0..(66 - bx)//7 step 1", "x: i32 = index tile%4", "z: i32 = index tile//4//5"],
            ),
            ([4, 5, 0, 6], ["for round in 0..10 step 1", "tile: i32 = index bx + round*6", "y: i32 = index tile//4%5"]),
            (
                [5, 4, 2, 7],
                ["number: i32 = index tile%20", "z: i32 = index tile//20", "rows: i32 = index min(2, 5 - first)"],
            ),
        ] {
            let text = bound(&nest(sizes));
            assert!(text.contains(&format!("grid ({}, 1, 1)", sizes[3])), "{text}");
            lines.iter().for_each(|line| assert!(text.contains(line), "{line}\n{text}"));
        }
        let few = bound(&nest([2, 1, 0, 50]));
        assert!(few.contains("grid (6, 1, 1)"), "{few}");
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
        // Nests that differ in both extents are placed along x, and some blocks are idle.
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
        // An offset that the program adds itself also becomes part of the box's place.
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
