//! `tensorize LOOP as rows N`: rows that the lanes of N warps have: products on the matrix unit, and what is done with their rows in between.
//!
//! In: nests over the same rows, joined by the tiles that they write and read. Out: four lanes have a row of every tile, as the
//! matrix unit has its sums, in registers; what a row folds is folded by each lane and then among the four.
//!
//! ```text
//! local s: f32[64, 64], m: f32[64]                 local s: f32[128, 2, 16] private, m: f32[128, 2] private
//! for i: for j: for k: contraction into s          for t: for r: for c: for k: matrix into s[t, r, c]
//! for i in 0..64: free                             local best: f32[128, 2] private, part: f32[128, 2] private
//!   local best = -inf                        -->   for t: thread: for r: best[t, r] = -inf
//!   for j: reduce combine max(best)                for t: for r: part[t, r] = -inf; for c: part <- max(s[t, r, c], part)
//!     best <- max(s[i, j], best)                   for t: for r: for q in 0..4: reduce lanes combine max(best)
//!   m[i] = best                                      best <- max(part[t//4*4 + q, r], best)
//! for i: for j: for k: contraction                 for t: for r: m[t, r] = best[t, r]
//!   o[i, j] <- s[i, k] * v[k, j]                   for t: for r: for c: for k: matrix, s from the four lanes' registers
//! ```

mod join;
mod row;

use std::collections::BTreeSet;

use super::warps;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::accumulator::{Numbering, Tile};
use crate::tile::contraction::nest_at;
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::named;
use crate::tile::heuristics::warp_rows::MOST_REGISTERS;
use crate::tile::matrix;
use crate::tile::sharing::Share;
use crate::tile::target::Capability;
use join::Joined;
use row::Row;

/// Lanes that have a row.
pub const LANES: u64 = 4;
/// Rows and columns of one product's sums.
pub const ROWS: u64 = 16;
const COLS: u64 = 8;

/// Gives the rows of a product, and of all that is joined with it, to the lanes of warps.
pub fn apply(kernel: &mut Kernel, ctx: &Context, acc: BufId, warps: u64) -> Result<(), String> {
    if !ctx.target.has(Capability::Products) {
        return Err(format!("{} has no products of warps", ctx.target.name));
    }
    let rows = Rows::of(kernel, ctx, acc, warps)?;
    rows.place(kernel, ctx.knobs.tf32)?;
    matrix::check(kernel)
}

/// The buffers that lie in the registers of the lanes, in a kernel to which the step applies.
pub fn joined(kernel: &Kernel, ctx: &Context, acc: BufId, warps: u64) -> Result<Vec<BufId>, String> {
    let rows = Rows::of(kernel, ctx, acc, warps)?;
    Ok(rows.tiles.iter().chain(&rows.lines).copied().collect())
}

/// Nests over the same rows, and what joins them.
struct Rows {
    rows: u64,
    /// What has columns, and what is one number for each row.
    tiles: BTreeSet<BufId>,
    lines: BTreeSet<BufId>,
    down: u64,
}

/// A statement of a row.
enum Part<'a> {
    Alone(&'a Stmt),
    Columns(&'a For),
    Fold(&'a For, &'a Combine),
}

impl Rows {
    fn of(kernel: &Kernel, ctx: &Context, acc: BufId, down: u64) -> Result<Rows, String> {
        let [rows, _] = kernel.bufs[acc].shape[..] else { return Err("it is not a matrix".to_string()) };
        if kernel.bufs[acc].space == Space::Private {
            return Err("it lies in registers already".to_string());
        }
        let fit = down.is_power_of_two() && down <= u64::from(ctx.target.axes.threads) / 32;
        if !fit || !rows.is_multiple_of(ROWS * down) {
            return Err(format!("{down} warps do not share {rows} rows, 16 at a time"));
        }
        let mut made = Rows { rows, tiles: [acc].into(), lines: BTreeSet::new(), down };
        Joined::find(kernel, &mut made)?;
        let each = rows / (8 * down);
        let words = |b: &Buf| b.element_bytes().div_ceil(4).max(1);
        let own =
            |b: &BufId| kernel.bufs[*b].shape.get(1).map_or(1, |n| n / LANES) * each * kernel.bufs[*b].element_bytes();
        let taken: u64 =
            made.tiles.iter().chain(&made.lines).map(|b| own(b).div_ceil(words(&kernel.bufs[*b]) * 4)).sum();
        if taken > MOST_REGISTERS {
            return Err(format!("they take {taken} registers of a thread; there are {}", named!(MOST_REGISTERS)));
        }
        Ok(made)
    }

    fn has(&self, buf: BufId) -> bool {
        self.tiles.contains(&buf) || self.lines.contains(&buf)
    }

    fn share(&self) -> Share {
        Share { name: "r", threads: 8 * self.down, each: self.rows / (8 * self.down), together: 1, apart: 8 }
    }

    /// The columns of a thread, of so many.
    fn columns(n: u64) -> Share {
        Share { name: "c", threads: LANES, each: n / LANES, together: 2, apart: 8 }
    }

    fn threads(&self) -> u64 {
        32 * self.down
    }

    fn tile(&self, acc: BufId, n: u64) -> Tile {
        let shape = [self.rows, n];
        let (rows, cols) = (self.share(), Rows::columns(n));
        Tile { acc, shape, rows, cols, numbering: Numbering::Warps, whole: true }
    }

    fn place(self, kernel: &mut Kernel, tf32: bool) -> Result<(), String> {
        let body = std::mem::take(&mut kernel.body);
        kernel.body = self.body(kernel, body, tf32)?;
        let (threads, each) = (self.threads(), self.share().each);
        for buf in self.tiles.iter().chain(&self.lines) {
            let b = &mut kernel.bufs[*buf];
            let cols = b.shape.get(1).map(|n| n / LANES);
            b.shape = [threads, each].into_iter().chain(cols).collect();
            b.space = Space::Private;
        }
        Ok(())
    }

    fn body(&self, kernel: &mut Kernel, body: Vec<Stmt>, tf32: bool) -> Result<Vec<Stmt>, String> {
        let mut out = Vec::with_capacity(body.len());
        for mut s in body {
            if let Stmt::Stage { buf, body, .. } = &mut s
                && self.has(*buf)
            {
                out.push(Stmt::Local { buf: *buf });
                out.extend(self.body(kernel, std::mem::take(body), tf32)?);
                continue;
            }
            if matches!(s, Stmt::Local { .. })
                || !walk::buffer_uses(std::slice::from_ref(&s)).keys().any(|b| self.has(*b))
            {
                out.push(s);
                continue;
            }
            match (nest_at(&s), &s) {
                (Some(Ok(nest)), _) => {
                    let acc = nest.roles.acc;
                    out.push(warps::product(&self.tile(acc, nest.n), kernel, &nest, tf32, &self.tiles)?);
                }
                (_, Stmt::For(f)) if f.is_free_unplaced() => self.row(kernel, f, &mut out)?,
                _ => {
                    for inner in walk::bodies_mut(&mut s) {
                        *inner = self.body(kernel, std::mem::take(inner), tf32)?;
                    }
                    out.push(s);
                }
            }
        }
        Ok(out)
    }

    /// A nest over the rows, by the lanes that have them: a loop over threads for what stands between folds, and two for a fold.
    fn row(&self, kernel: &mut Kernel, f: &For, out: &mut Vec<Stmt>) -> Result<(), String> {
        let parts = parts(f)?;
        let mut of = Row::new(self, f.axis);
        of.declare(kernel, &parts, out);
        let mut rest = &parts[..];
        while !rest.is_empty() {
            let alone = rest.iter().position(|p| matches!(p, Part::Fold(..))).unwrap_or(rest.len());
            if rest[..alone].iter().any(|p| !matches!(p, Part::Alone(Stmt::Local { .. }))) {
                out.push(of.between(kernel, &rest[..alone])?);
            }
            rest = &rest[alone..];
            if let Some((Part::Fold(fold, combine), others)) = rest.split_first() {
                out.extend(of.fold(kernel, fold, combine)?);
                rest = others;
            }
        }
        Ok(())
    }
}

/// The statements of a row, where all are of the kinds that lanes can share.
fn parts(f: &For) -> Result<Vec<Part<'_>>, String> {
    f.body.iter().map(part).collect()
}

fn part(s: &Stmt) -> Result<Part<'_>, String> {
    let straight =
        |s: &Stmt| edit::is_pure(s) || matches!(s, Stmt::Write { .. } | Stmt::Store { order: Order::Weak, .. });
    match s {
        Stmt::For(l) => {
            let flat = l.place == Place::None && l.contraction.is_none() && l.body.iter().all(straight);
            if !flat || !const_trip(l).is_some_and(|n| n > 0 && n.is_multiple_of(COLS)) {
                return Err(OTHER.to_string());
            }
            match (l.kind, &l.combine) {
                (LoopKind::Free, _) => Ok(Part::Columns(l)),
                (LoopKind::Reduce, Some(c)) if c.ways == 1 && c.accs.len() == 1 => Ok(Part::Fold(l, c)),
                _ => Err("the order of a reduction is fixed".to_string()),
            }
        }
        s if straight(s) || matches!(s, Stmt::Local { .. }) => Ok(Part::Alone(s)),
        _ => Err(OTHER.to_string()),
    }
}

const OTHER: &str = "a nest does more with a row than lanes can share";

#[cfg(test)]
mod tests {
    use crate::tile::tests::ATTENTION;
    use crate::tile::tests::{apply, gpu, kernel, text};

    fn staged() -> String {
        text(&apply("stage_inputs", &kernel(ATTENTION), &gpu(&[])).0)
    }

    #[test]
    fn four_lanes_have_a_row_of_every_tile() {
        let (out, log) = apply("tensor_core", &kernel(&staged()), &gpu(&[]));
        assert_eq!(log.applied, ["rows of s: o, s, a_s_1, m, l: 2 rows for each lane of 2 warps"]);
        let made = text(&out);
        for part in [
            "local s: f32[64, 2, 4] private",
            "local m: f32[64, 2] private",
            "local a_s_1: f16[64, 2, 4] private",
            "= best_part[t_6//4*4 + q_2, r_6]",
            "f16 = a_s_1[t_12//4*4 + j8_21%8//2, r_12, j8_21//8*2 + j8_21%2]",
            "store M[kt*32 + (r_10*8 + (t_10//32*16 + t_10%32//4))] = now_2 where t_10%4 == 0",
        ] {
            assert!(made.contains(part), "{part} is not in\n{made}");
        }
    }

    #[test]
    fn only_the_lane_that_stores_a_row_loads_what_it_stores() {
        let text_of = |from: &str, to: &str| staged().replace(from, to);
        let store = staged().lines().find(|l| l.contains("store M[")).unwrap().trim().to_string();
        let (place, value) = store.trim_start_matches("store ").split_once(" = ").unwrap();
        let in_place = format!("was: f32 = load {place}\n      then: f32 = was + {value}\n      store {place} = then");
        let made = text(&apply("tensor_core", &kernel(&text_of(&store, &in_place)), &gpu(&[])).0);
        let load = made.lines().find(|l| l.contains("= load M[")).unwrap();
        assert!(load.contains("where t_10%4 == 0"), "{load}");
        // A value that all lanes need is loaded by all: none may store it.
        let needed = format!("{in_place}\n      m[i5] = was");
        let (_, log) = apply("tensor_core", &kernel(&text_of(&store, &needed)), &gpu(&[]));
        let why = "one lane would store what others still load".to_string();
        assert!(log.skipped.contains(&("rows of s".to_string(), why)), "{:?}", log.skipped);
    }

    #[test]
    fn what_lanes_cannot_share_stays_in_memory() {
        let text = staged();
        for (from, to, why) in [
            ("x9: f32 = o[i9, n9]", "x9: f32 = o[i9, 15 - n9]", "a nest needs their elements in another order"),
            ("l9: f32 = l[i9]", "l9: f32 = l[31 - i9]", "a nest needs their elements in another order"),
            ("reduce combine add(sum) from 0.0", "reduce", "the order of a reduction is fixed"),
            ("for n7 in 0..16", "for n7 in 0..15", "a nest does more with a row than lanes can share"),
            ("  for kt in", "  z: f32 = m[0]\n  for kt in", "a statement outside of nests uses them"),
        ] {
            let changed = text.replace(from, to);
            assert_ne!(changed, text, "{from}");
            let (_, log) = apply("tensor_core", &kernel(&changed), &gpu(&[]));
            let said = ("rows of s".to_string(), why.to_string());
            assert!(log.skipped.contains(&said), "{from}: {:?}", log.skipped);
        }
    }
}
