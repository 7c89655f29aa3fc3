//! `tile` of a contraction that no loop over blocks stands around: its tiles are the blocks of the grid.
//!
//! ```text
//! for i in 0..512: free                            for jb in 0..56: free block(y)
//!   for j in 0..3584: free                           for ib in 0..1: free block(x)
//!     acc = 0                                          local acc[512, 64] = 0
//!     for k in 0..3584: reduce contraction   -->       for kt in 0..14: serial
//!       acc <- fma(x[i, k], w[j, k], acc)                for i: for j: for kk in 0..256: reduce contraction
//!     store out[i*3584 + j] = acc + b[j]                   acc[i, j] <- fma(x[..], w[..], acc[i, j])
//!                                                      for i: for j: free
//!                                                        store out[..] = acc[i, j] + b[jb*64 + j]
//! ```
//!
//! The accumulator becomes a tile; what computes an operand, and what follows the sum, get loops of their own. Several row, column
//! or summed axes become one, the last running fastest. Where a tile does not divide an extent, accesses get masks. Legal for a nest
//! that holds no other loops than those of its sums.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::Facts;
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::contraction::num_type;
use crate::tile::edit;
use crate::tile::primitives::MOST_BYTES;
use crate::tile::target::Capability;
use crate::tile::tile_nest::*;

/// The axes of a nest, by what a product does with them.
pub struct Sides {
    pub m: Side,
    pub n: Side,
    pub k: Side,
    pub batch: Side,
}

impl Sides {
    pub fn of(nest: &OpenNest<'_>, facts: &Facts) -> Result<Sides, String> {
        let first = nest.sums.first().ok_or("its sum is not in this nest")?;
        let roles = &first.roles;
        check_bounds(&nest.free)?;
        check_bounds(&first.loops)?;
        let role = |a: &AxisId| roles.m.contains(a) || roles.n.contains(a);
        let batch: Vec<AxisId> = nest.free.iter().map(|f| f.axis).filter(|a| !role(a)).collect();
        Ok(Sides {
            m: Side::of(&roles.m, &nest.free, facts),
            n: Side::of(&roles.n, &nest.free, facts),
            k: Side::of(&roles.k, &first.loops, facts),
            batch: Side::of(&batch, &nest.free, facts),
        })
    }
}

/// Cuts a nest into tiles of `block` rows, columns and terms.
pub fn cut(kernel: &mut Kernel, ctx: &Context, nest: &OpenNest<'_>, block: [u64; 3]) -> Result<Stmt, String> {
    let facts = kernel.facts();
    let Sides { mut m, mut n, mut k, batch } = Sides::of(nest, &facts)?;
    if block.contains(&0) {
        return Err("a tile has a row, a column and a term at least".into());
    }
    // A tile may be larger than the product: accesses past the end are masked.
    (m.block, n.block, k.block) = (block[0], block[1], block[2]);
    let acc =
        nest.sums.first().and_then(|sum| num_type(kernel, sum.roles.acc)).ok_or("its accumulator holds addresses")?;
    let largest = block[0].max(block[2]).saturating_mul(block[1].max(block[2])).saturating_mul(acc.bytes());
    if largest > MOST_BYTES {
        return Err(format!("a tile would have {largest} bytes; {MOST_BYTES} are the most"));
    }
    Tiling::new(kernel, ctx, facts, Sides { m, n, k, batch }).build(nest)
}

/// A nest that is being cut.
struct Tiling<'a> {
    b: Build<'a>,
    cuts: Cuts,
}

/// Where it is cut.
struct Cuts {
    sides: Sides,
    outer: Outer,
}

impl Cuts {
    /// The old axes, given positions in a tile and along a stretch of the sum.
    fn frame(&self, facts: &Facts, i: Option<AxisId>, j: Option<AxisId>, kk: Option<(&Side, AxisId)>) -> Frame {
        let (Sides { m, n, batch, .. }, outer) = (&self.sides, &self.outer);
        let mut sides = vec![(batch, outer.block(2))];
        sides.extend(i.map(|i| (m, m.pieces().at(outer.block(0), i))));
        sides.extend(j.map(|j| (n, n.pieces().at(outer.block(1), j))));
        sides.extend(kk.map(|(k, kk)| (k, k.pieces().at(outer.stretch(), kk))));
        Frame::new(facts, &sides)
    }
}

impl<'a> Tiling<'a> {
    fn new(kernel: &'a mut Kernel, ctx: &Context, mut facts: Facts, sides: Sides) -> Tiling<'a> {
        let Sides { m, n, k, batch } = &sides;
        let like = |side: &Side| side.axes.first().map_or(AxisId(0), |a| a.0);
        let (like_m, like_n, like_k) = (like(m), like(n), like(k));
        let x = edit::new_axis(kernel, like_m, "b");
        let y = edit::new_axis(kernel, like_n, "b");
        let z = match batch.axes[..] {
            [(one, _)] => edit::new_axis(kernel, one, ""),
            _ => kernel.axes.push(Axis { name: "batch".into(), from: None }),
        };
        let stretch = edit::new_axis(kernel, like_k, "t");
        let grid = [(x, m.pieces().count(&facts)), (y, n.pieces().count(&facts)), (z, batch.extent.clone())];
        let outer = Outer { grid, stretch, stretches: k.pieces().count(&facts) };
        outer.enter(&mut facts);
        let b = Build { kernel, facts, narrow: ctx.target.has(Capability::Threads) };
        Tiling { b, cuts: Cuts { sides, outer } }
    }

    fn build(mut self, nest: &OpenNest<'_>) -> Result<Stmt, String> {
        let (bm, bn) = (self.cuts.sides.m.block, self.cuts.sides.n.block);
        let mut tiles: BTreeMap<BufId, BufId> = BTreeMap::new();
        let mut body = vec![];
        // The machinery of the sums: their accumulators and what these start from.
        let is_of_sum = |s: &Stmt| match s {
            Stmt::Local { buf } | Stmt::Write { buf, .. } => nest.sums.iter().any(|sum| sum.roles.acc == *buf),
            _ => false,
        };
        let around: Vec<&Stmt> = nest.around.iter().copied().filter(|s| !is_of_sum(s)).collect();
        if around.iter().any(|s| matches!(s, Stmt::Local { .. } | Stmt::Write { .. })) {
            return Err("it keeps values of its own".to_string());
        }
        for sum in &nest.sums {
            let acc = sum.roles.acc;
            let start = nest.around.iter().find_map(|s| match s {
                Stmt::Write { buf, value, .. } if *buf == acc => Some(*value),
                _ => None,
            });
            let old = self.b.kernel.bufs.get(acc).cloned().ok_or("it has no accumulator")?;
            let tile = self.b.kernel.bufs.push(Buf { shape: vec![bm, bn], ..old });
            tiles.insert(acc, tile);
            let (i, j) = (self.b.axis("i", bm), self.b.axis("j", bn));
            let value = start.ok_or("its sum starts from nothing")?;
            let init = Stmt::Write { buf: tile, idx: vec![Ix::Axis(i), Ix::Axis(j)], value };
            body.push(Stmt::Local { buf: tile });
            body.push(loops(&[(i, bm), (j, bn)], vec![init]));
        }
        let (mut inner, mut asserted) = (vec![], BTreeSet::new());
        for sum in &nest.sums {
            let tile = tiles.get(&sum.roles.acc).copied().ok_or("it has no accumulator")?;
            self.contraction(sum, &around, tile, &mut asserted, &mut inner)?;
        }
        body.extend(self.cuts.outer.in_stretches(inner));
        // The statements behind the sums: all that is stored, and the assertions that no operand took along.
        let (i, j) = (self.b.axis("i", bm), self.b.axis("j", bn));
        let ends = |s: &Stmt| !edit::is_pure(s) && !asserted.contains(&std::ptr::from_ref(s));
        let used: Vec<ValId> = around.iter().filter(|s| ends(s)).flat_map(|s| reads(s)).collect();
        let needed = slice(&around, &used);
        let keep = |s: &Stmt| ends(s) || needed.iter().any(|n| std::ptr::eq(*n, s));
        let mut rest: Vec<Stmt> = around.iter().filter(|s| keep(s)).map(|s| (*s).clone()).collect();
        let at = vec![Ix::Axis(i), Ix::Axis(j)];
        to_tiles(&mut rest, &tiles.iter().map(|(old, tile)| (*old, (*tile, at.clone()))).collect());
        let rest = self.cuts.frame(&self.b.facts, Some(i), Some(j), None).copy(self.b.kernel, &rest);
        body.push(nested(&[(i, bm), (j, bn)], rest));
        self.cuts.outer.in_blocks(body)
    }

    /// One contribution to a tile, with operands that are more than a load computed into buffers first.
    fn contraction(
        &mut self,
        sum: &Sum<'_>,
        around: &[&Stmt],
        tile: BufId,
        asserted: &mut BTreeSet<*const Stmt>,
        out: &mut Vec<Stmt>,
    ) -> Result<(), String> {
        let Sides { m, n, k, .. } = &self.cuts.sides;
        let (bm, bn, bk) = (m.block, n.block, k.block);
        let (i, j, kk) = (self.b.axis("i", bm), self.b.axis("j", bn), self.b.axis("kk", bk));
        // Each sum has loops of its own, as long as the others'.
        let own_k = Side { block: bk, ..Side::of(&sum.roles.k, &sum.loops, &self.b.facts) };
        let found = operands_of(around, sum, m, n)?;
        asserted.extend(found.iter().flatten().map(|s| std::ptr::from_ref(*s)));
        let mut operands = vec![];
        let each = [(sum.x, sum.roles.a, true), (sum.y, sum.roles.b, false)];
        for ((value, role, left), stmts) in each.into_iter().zip(&found) {
            let own = if left { (i, bm) } else { (j, bn) };
            let cuts = &self.cuts;
            let frame = |b: &Build<'_>, p: AxisId, q: AxisId| match left {
                true => cuts.frame(&b.facts, Some(p), None, Some((&own_k, q))),
                false => cuts.frame(&b.facts, None, Some(p), Some((&own_k, q))),
            };
            operands.push(self.b.operand(stmts, value, Some(role), left, own, (kk, bk), &frame, out)?);
        }
        let [a, b] = &operands[..] else { return Err("it does not have two operands".to_string()) };
        let multiply = self.b.multiply(sum, a, b, tile, &[Ix::Axis(i), Ix::Axis(j)])?;
        out.push(self.b.contraction(tile, [(i, bm), (j, bn), (kk, bk)], a, b, multiply));
        Ok(())
    }
}
