//! `group_blocks`

use std::collections::BTreeMap;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::blocking::Blocks;
use crate::tile::contraction::num_type;
use crate::tile::cost::{self, Cost, Product};
use crate::tile::edit::{const_trip, most_trips, over_blocks};
use crate::tile::l2_reuse::Waves;
use crate::tile::matrix;
use crate::tile::primitives::{self, LoopRef, Step};
use crate::tile::rules::site_of;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "group_blocks",
    doc: "\
Numbers the blocks of a product so that blocks which run at the same time share rows and columns of the operands, and L2 keeps more
of these: column by column through a group of rows, then through the next group.

```text
for jb in 0..32: free block(y)                   for jb in 0..32: free block(y)
  for ib in 0..32: free block(x)         -->       for ib in 0..32: free block(x, groups of 8)
    ...                                              ...

 0 32 64 ..                                       0  8 16 ..
 1 33 65 ..                                       1  9 17 ..
 2 34 66 ..                                       2 10 18 ..
```

Which block has which number makes no difference but to caches. A block computes its row and its column from its number when
the loops become the grid; the last group has the rows that are left.

The number of rows of a group follows from the blocks that run at once, the bytes of operands that their rows and columns have
and the bytes that L2 keeps (`tile/l2_reuse.rs`); the trace gives the bytes that come from memory with and without groups.

Knob: `group`, the rows of a group; 0 turns the rule off.

Refuses products with one row or one column of blocks; products whose operands L2 keeps in any order of blocks; and loops whose
length only the launch knows.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let mut steps = vec![];
    for s in &p.body {
        let Some(nest) = Nest::of(s) else { continue };
        let site = site_of(p, s);
        match nest.group(p, ctx) {
            Ok((rows, why)) => {
                log.applied(format!("{site}: {why}"));
                let innermost = nest.over.last().map(|f| f.axis);
                steps.extend(innermost.map(|axis| Step::Group { at: LoopRef { axis, nth: 0 }, rows }));
            }
            Err(why) => log.skipped(site, why),
        }
    }
    steps
}

/// The blocks of a product.
struct Nest<'a> {
    /// Outermost first.
    over: Vec<&'a For>,
    product: &'a For,
    roles: &'a Contraction,
}

impl<'a> Nest<'a> {
    /// `None` if a statement is not a product that blocks share, or has groups already.
    fn of(s: &'a Stmt) -> Option<Nest<'a>> {
        let mut over = vec![];
        let mut at = s;
        while let Stmt::For(f) = at {
            match f.place {
                Place::Block { group: 0, .. } => over.push(&**f),
                Place::Block { .. } => return None,
                _ => break,
            }
            match &f.body[..] {
                [inner] if over_blocks(inner).is_some() => at = inner,
                _ => break,
            }
        }
        let product = product(&over.last()?.body)?;
        Some(Nest { over, product, roles: product.contraction.as_ref()? })
    }

    /// How many rows a group has, and why.
    fn group(&self, kernel: &Kernel, ctx: &Context) -> Result<(u32, String), String> {
        if ctx.knobs.group == Some(0) {
            return Err("knob off".into());
        }
        let [.., y, x] = self.over[..] else { return Err("it has one row or one column of blocks".into()) };
        let (Some(rows), Some(cols)) = (const_trip(x), const_trip(y)) else {
            return Err("how many blocks there are, only the launch knows".into());
        };
        if rows < 2 || cols < 2 {
            return Err("it has one row or one column of blocks".into());
        }
        let mut shared = Shared { x: x.axis, y: y.axis, bytes: BTreeMap::new() };
        let known = shared.body(&x.body, &mut vec![]);
        known.ok_or("how long its loops are, only the launch knows")?;
        let [row, col] = shared.sides();
        let waves = self.waves(kernel, ctx, [rows, cols]).map(|at_once| Waves {
            rows,
            cols,
            row,
            col,
            at_once,
            kept: ctx.target.kept() as f64,
        });
        let waves = waves.ok_or("the target says nothing of its speed")?;
        let now = waves.fetched(rows);
        let needs = |wave: f64| format!("{} blocks at once have {} of operands", waves.at_once, cost::bytes(wave));
        let kept = cost::bytes(waves.kept);
        let group = match ctx.knobs.group {
            Some(given) if u64::from(given) >= rows => return Err(format!("all {rows} rows of blocks are one group")),
            Some(given) => given.into(),
            None => waves.group().ok_or_else(|| match now.wave <= waves.kept {
                true => format!("{}, and L2 keeps {kept}", needs(now.wave)),
                false => format!("{}; L2 keeps {kept}, and no order needs a tenth less", needs(now.wave)),
            })?,
        };
        let own = waves.fetched(group);
        let (wave, memory) = (cost::bytes(now.wave), cost::bytes(now.memory));
        let why = format!(
            "groups of {group} of {rows} rows: {} rather than {wave}, and L2 keeps {kept}; {} of operands come from \
             memory rather than {memory}",
            needs(own.wave),
            cost::bytes(own.memory)
        );
        Ok((group as u32, why))
    }

    /// Blocks that run at once.
    fn waves(&self, kernel: &Kernel, ctx: &Context, [rows, cols]: [u64; 2]) -> Option<u64> {
        let [.., bm, bn] = kernel.bufs.get(self.roles.acc)?.shape[..] else { return None };
        let (operand, acc) = (kernel.vals.get(self.roles.b)?.ty.num()?, num_type(kernel, self.roles.acc)?);
        let operand = matrix::multiplied(ctx, operand);
        let bk = const_trip(self.product)?;
        let product = Product { batch: 1, m: rows * bm, n: cols * bn, k: bk, operand, acc };
        let cost = Cost::of(&ctx.target, &product, Blocks { bm, bn, bk })?;
        Some(cost.multiprocessors * cost.together)
    }
}

/// The first contraction of a body.
fn product(body: &[Stmt]) -> Option<&For> {
    body.iter().find_map(|s| match s {
        Stmt::For(f) if f.contraction.is_some() => Some(&**f),
        s => walk::bodies(s).into_iter().find_map(|body| product(body)),
    })
}

/// The bytes that a block loads of each array that other blocks load too: those of its row, or those of its column.
struct Shared {
    x: AxisId,
    y: AxisId,
    /// Bytes by array, and whether the blocks of a row share them.
    bytes: BTreeMap<(ValId, bool), f64>,
}

impl Shared {
    /// Statements in loops of these axes and extents; `None` where an extent is not known.
    fn body(&mut self, body: &[Stmt], around: &mut Vec<(AxisId, f64)>) -> Option<()> {
        for s in body {
            match s {
                Stmt::Load { mem, .. } => {
                    let (by_x, by_y) = (mem.index.has_axis(self.x), mem.index.has_axis(self.y));
                    if by_x != by_y {
                        let own = around.iter().filter(|(axis, _)| mem.index.has_axis(*axis)).map(|(_, n)| n);
                        let bytes = own.product::<f64>() * mem.elem.bytes() as f64;
                        let most = self.bytes.entry((mem.base, by_x)).or_default();
                        *most = most.max(bytes);
                    }
                }
                Stmt::For(f) => {
                    around.push((f.axis, most_trips(f)? as f64));
                    self.body(&f.body, around)?;
                    around.pop();
                }
                s => walk::bodies(s).into_iter().try_for_each(|body| self.body(body, around))?,
            }
        }
        Some(())
    }

    /// Bytes that the blocks of a row share, and those of a column.
    fn sides(&self) -> [f64; 2] {
        [true, false].map(|row| self.bytes.iter().filter(|((_, by_x), _)| *by_x == row).map(|(_, n)| n).sum())
    }
}

#[cfg(test)]
mod tests {
    use crate::loops::ir::Kernel;
    use crate::tile::Context;
    use crate::tile::target::Target;
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    /// A product of f16, tiled.
    fn product(m: u64, n: u64, k: u64) -> Kernel {
        tiled(m, n, k, &gpu(&["mc=128", "nc=128"]))
    }

    fn tiled(m: u64, n: u64, k: u64, ctx: &Context) -> Kernel {
        let text = format!(
            r#"loop kernel k(x: ptr f16, w: ptr f16, out: ptr f32) open:
  for i in 0..{m}: free
    for j in 0..{n}: free
      local acc: f32
      acc = 0.0
      for k in 0..{k}: reduce contraction m=i n=j k=k a=a b=c acc=acc
        a: f16 = load x[i*{k} + k]
        c: f16 = load w[j*{k} + k]
        a1: f32 = f32(a)
        c1: f32 = f32(c)
        old: f32 = acc
        new: f32 = fma(a1, c1, old)
        acc = new
      sum: f32 = acc
      store out[i*{n} + j] = sum
"#
        );
        apply("tileify", &kernel(&text), ctx).0
    }

    /// The gain of a group depends on the bytes that L2 keeps and on the number of blocks; `--nocapture` shows it for each machine.
    #[test]
    fn the_machine_decides() {
        for size in [4096, 8192] {
            for name in &Target::NAMES[1..] {
                let ctx = Context { target: Target::named(name).unwrap(), ..Context::default() };
                let (_, log) = apply("group_blocks", &tiled(size, size, size, &ctx), &ctx);
                println!("{size}, {name}: {:?} {:?}", log.applied, log.skipped);
                let fits = size == 4096 && matches!(*name, "sm_100a" | "sm_120");
                assert_eq!(log.applied.is_empty(), fits, "{size}, {name}");
            }
        }
    }

    #[test]
    fn a_large_product_goes_in_groups() {
        let (out, log) = apply("group_blocks", &product(4096, 4096, 4096), &gpu(&[]));
        assert_eq!(
            log.applied,
            [
                "contraction into acc: groups of 16 of 32 rows: 264 blocks at once have 38 MB of operands rather than 43 MB, \
              and L2 keeps 26 MB; 153 MB of operands come from memory rather than 171 MB"
            ]
        );
        assert!(
            text(&out).contains("for jb in 0..32: free block(y)\n    for ib in 0..32: free block(x, groups of 16)")
        );
        let (out, _) = apply("group_blocks", &product(4096, 4096, 4096), &gpu(&["group=5"]));
        assert!(text(&out).contains("block(x, groups of 5)"));
    }

    #[test]
    fn others_stay_in_order() {
        let why = |[m, n, k]: [u64; 3], knobs: &[&str]| {
            let all = refusals("group_blocks", &text(&product(m, n, k)), &gpu(knobs));
            all.join("\n").replace("contraction into acc: ", "")
        };
        assert_eq!(why([4096, 4096, 4096], &["group=0"]), "knob off");
        assert_eq!(why([128, 4096, 4096], &[]), "it has one row or one column of blocks");
        assert_eq!(why([512, 512, 64], &["group=4"]), "all 4 rows of blocks are one group");
        assert_eq!(why([512, 512, 512], &[]), "264 blocks at once have 1.0 MB of operands, and L2 keeps 26 MB");
    }
}
