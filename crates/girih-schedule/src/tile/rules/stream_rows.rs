//! `stream_rows`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::num::DType;
use crate::tile::Context;
use crate::tile::heuristics::stream_rows::{COPYING, MANY, NARROW};
use crate::tile::matrix;
use crate::tile::primitives::tile::stream::{Sides, StreamNest};
use crate::tile::primitives::{LoopRef, Names, Script, Step, look};
use crate::tile::rules::axis_site;
use crate::tile::target::{Capability, MatrixUnit, MemoryKind, Target};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "stream_rows",
    doc: "\
Takes a weighted sum with normalised exponentials, as in attention, a block of rows and a stretch of keys at a time. The
scores of a stretch are a tile of their own; the greatest of them corrects what was summed before, once for the stretch.
Stretches of which a mask leaves no key to any row of the block, as behind the diagonal of causal attention, are not taken; the blocks of a
GPU that take most come first, so that none of them is alone at the end.

```text
for i in 0..128: free                            for ib in 0..2: free block(x)
  acc = 0, m = -inf, l = 0                         local acc[64, 64], m[64], l[64]
  for key in 0..512: serial stream        -->      for kt in 0..4: serial
    s = sum over k of q[i, k] * x[key, k]            s[i, j] = sum over k of q[..] * x[kt*128 + j, k]
    m, l, acc <- the recurrence                      for i: m[i], l[i], shrink <- the scores' maximum and sum
  store out[..] = acc[n] / l                         acc[i, n] <- acc[i, n]*shrink + sum over j of s[i, j] * v[..]
                                                   for i: for n: store out[..] = acc[i, n] / l[i]
```

Rows and keys are so many that scores, keys and sums stay in the second cache; on a GPU at most 64 of both, so that scores and
sums stay in registers, and at most 128 where warpgroups multiply.

Refuses scores that are not a sum, nests that hold other loops, and on a GPU rows of which shared memory does not hold sixteen.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !p.open {
        return None;
    }
    let mut script = Script::new(p, ctx, log);
    for s in &p.body {
        let (Stmt::For(first), Some(nest)) = (s, StreamNest::of(s)) else { continue };
        let chosen = nest.and_then(|nest| choose(p, ctx, &nest));
        let made = chosen.and_then(|step| script.try_step(step));
        script.log.outcome(axis_site(p, first.axis), made);
    }
    for at in growing(&script.kernel) {
        let site = axis_site(&script.kernel, at.axis);
        if script.try_step(Step::Reverse { loops: vec![at] }).is_ok() {
            script.log.applied(format!("{site}: its last blocks, which take longest, come first"));
        }
    }
    script.done()
}

/// The loops over blocks of a GPU whose later blocks go through more stretches than the earlier ones.
fn growing(p: &Kernel) -> Vec<LoopRef> {
    let mut out = vec![];
    look(p, &mut |at, f| {
        let Place::Block { .. } = f.place else { return true };
        let Some(last) = f.hi.as_const().filter(|n| *n > 1) else { return true };
        let grows = f.body.iter().any(|s| {
            let Stmt::For(inner) = s else { return false };
            let known = !inner.hi.any_leaf(&mut |l| !matches!(l, Ix::Const(_)) && *l != Ix::Axis(f.axis));
            let stretches = |n: i64| inner.hi.eval(&|leaf| leaf.as_const().unwrap_or(n));
            inner.kind == LoopKind::Serial && known && stretches(0) < stretches(last - 1)
        });
        out.extend(grows.then_some(at));
        true
    });
    out
}

/// How a nest is cut.
fn choose(p: &Kernel, ctx: &Context, nest: &StreamNest<'_>) -> Result<Step, String> {
    let sides = Sides::of(nest, &p.facts())?;
    let [deep, width] = sides.lengths()?;
    let bytes = |dtype: Option<DType>| dtype.map_or(8, |d| d.bytes());
    let sum_of = match p.bufs.get(nest.roles.acc).map(|b| b.ty) {
        Some(Ty::Num(d)) => Some(d),
        _ => None,
    };
    let operand = nest.sum.operand(p);
    // The matrix unit's sums are in registers.
    let unit = operand.zip(sum_of).and_then(|(x, acc)| matrix::operand(&ctx.target, matrix::multiplied(ctx, x), acc));
    let in_registers = unit.is_some_and(|of| deep.is_multiple_of(of.terms().into()) && width.is_multiple_of(8));
    let sum = if in_registers { 0 } else { bytes(sum_of) };
    let room = Room { target: &ctx.target, deep, width, operand: bytes(operand), sum };
    let (rows, keys) = sizes(sides.m.known(), sides.keys.known(), &room)
        .ok_or("shared memory does not hold sixteen of its rows and keys")?;
    let at = Names::of(p).name(nest.stream).ok_or("its loop has no name")?;
    let [rows, keys] = [rows, keys].map(|n| u32::try_from(n).map_err(|_| "a tile is too large"));
    Ok(Step::Stream { at, rows: rows?, keys: keys? })
}

/// Rows of a block, and how many keys it takes at once.
fn sizes(rows: Option<u64>, keys: Option<u64>, room: &Room<'_>) -> Option<(u64, u64)> {
    let target = room.target;
    if target.has(Capability::Threads) {
        // Four warps with the rows of one product each; scores and sums are in registers where the matrix unit makes them.
        let least = if room.sum == 0 && !target.has(Capability::TensorCopies) { COPYING } else { 16 };
        let of = |n: Option<u64>, most: u64| n.map_or(64, |n| n.max(1).next_multiple_of(16).min(most));
        let smaller = |n: u64| (n / 2).next_multiple_of(16).min(n);
        // Of long rows few blocks fit a multiprocessor; eight warps share what they are multiplied with.
        // Two warpgroups share them, too; narrow rows leave registers for longer stretches of keys.
        let many = room.sum == 0 && rows.is_some_and(|n| n >= MANY);
        let grouped = target.matrix_units.contains(&MatrixUnit::Wgmma) && room.operand == 2;
        let long = many && (room.deep >= 128 || grouped);
        let narrow = long && grouped && room.width <= NARROW && room.deep <= NARROW;
        let mut rows = of(rows, if long { 128 } else { 64 }).max(least);
        let mut keys = of(keys, if narrow { 128 } else { 64 });
        while !room.holds(rows, keys) {
            (rows, keys) = match (rows, keys) {
                (16, 16) => return None,
                (rows, keys) if keys >= rows => (rows, smaller(keys)),
                (rows, keys) => (smaller(rows), keys),
            };
        }
        return Some((rows, keys));
    }
    // The scores and the keys' block stay in the second cache with room to spare.
    let most = if target.cache(2) >= 1 << 20 { 128 } else { 64 };
    let rows = rows.map_or(32, |m| m.max(1).next_multiple_of(8).min(64));
    Some((rows, keys.map_or(most, |k| k.max(1).next_multiple_of(16).min(most))))
}

/// What a block's tiles have to fit into.
struct Room<'a> {
    target: &'a Target,
    /// Elements of a row of queries and keys, and of values.
    deep: u64,
    width: u64,
    /// Bytes of an element of these, and of a score and a sum; 0 where they are in registers.
    operand: u64,
    sum: u64,
}

impl Room<'_> {
    /// Whether shared memory holds the tiles of so many rows and keys, with a fifth of it to spare for longer rows.
    fn holds(&self, rows: u64, keys: u64) -> bool {
        let operands = ((rows + keys) * self.deep + keys * self.width) * self.operand;
        let sums = rows * (keys + self.width) * self.sum;
        operands + sums <= self.target.bytes_of(MemoryKind::Shared) / 5 * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fit_shared_memory() {
        let of = |name: &str, deep: u64, bytes: u64, rows: Option<u64>| {
            let target = Target::named(name).unwrap();
            sizes(
                rows,
                None,
                &Room { target: &target, deep, width: deep, operand: bytes, sum: if bytes == 2 { 0 } else { bytes } },
            )
        };
        assert_eq!(of("sm_90a", 64, 2, None), Some((64, 64)));
        assert_eq!(of("sm_90a", 64, 2, Some(7)), Some((16, 64)));
        assert_eq!(of("sm_80", 64, 2, Some(7)), Some((32, 64)));
        assert_eq!(of("sm_120", 128, 2, None), Some((64, 64)));
        assert_eq!(of("sm_90a", 128, 2, Some(4096)), Some((128, 64)));
        assert_eq!(of("sm_90a", 64, 2, Some(4096)), Some((128, 64)));
        assert_eq!(of("sm_120", 64, 2, Some(4096)), Some((64, 64)));
        assert_eq!(of("sm_120", 128, 4, None), Some((32, 32)));
        let target = Target::named("sm_90a").unwrap();
        let keys = |deep: u64| {
            let room = Room { target: &target, deep, width: deep, operand: 2, sum: 0 };
            sizes(Some(4096), Some(4096), &room)
        };
        assert_eq!([64, 128].map(keys), [Some((128, 128)), Some((128, 64))]);
        assert_eq!(of("sm_120", 256, 8, None), None);
        assert_eq!(of("sm_80", 256, 8, None), Some((16, 16)));
    }
}
