//! `swap_operands`

use std::collections::BTreeSet;

use crate::base::rule::{Log, Rule};
use crate::index::gcd;
use crate::loops::ir::*;
use crate::loops::model::Plan;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::affine::{self, MOST_APART};
use crate::tile::contraction::num_type;
use crate::tile::heuristics::blocking::MOST_ROWS;
use crate::tile::heuristics::swap_operands::{
    FETCHED, HIGH, MULTIPLIED, ONE_BY_ONE, OPERAND, PLANE, STRETCH, VECTORS, WAYS,
};
use crate::tile::lines::keeps_rows;
use crate::tile::primitives::model::{self, Act, swap};
use crate::tile::primitives::stage_read::overlap;
use crate::tile::primitives::{self, names_of};
use crate::tile::rules::site_of;
use crate::tile::steps::known_at_load;
use crate::tile::tile_nest::{OpenNest, Side, Sum, slice};

pub const RULE: Rule<Plan, Context> = Rule {
    name: "swap_operands",
    doc: "\
Swaps the rows and columns of a product if fewer elements are then transposed, or fewer lanes compute for nothing.

```text
for i in 0..64: free                                 for i in 0..64: free
  for j in 0..576: free                                for j in 0..576: free
    for k in 0..25088: reduce contraction m=i n=j  -->   for k in 0..25088: reduce contraction m=j n=i
      acc <- fma(g[i*25088 + k], x[j*25088 + k], acc)      acc <- fma(x[j*25088 + k], g[i*25088 + k], acc)
```

The right operand is read in vectors along the columns. If its memory runs along the sum, packing transposes all of it, while rows
of the left operand are read, or copied, in place. If both run along the sum, as in the gradient of a convolution's weights, or in
`x @ w.T` with weights that come with the call, the smaller operand should be the right one: then that operand and the result are
transposed, unless the result lies along the rows: then it is transposed now.

Windows are read in vectors along an image, whose rows seldom fill whole vectors; where short rows are numbered one after the
other, elements are gathered one by one. As the left operand, windows are read one by one in any case, from a copy that they share
(`stage_inputs`). Vectors then run along the channels of the output, and rows of the image that were separate products become rows
of one product. So do the pixels of a small image that a convolution of one pixel reads: 49 of 7 x 7 fill three vectors of 16, and one
lane of a fourth (0.85 of the time for 160 to 960 channels), 196 of 14 x 14 fill six register tiles of two vectors, and four lanes of a
seventh (0.82 of the time for 576 to 96 channels). Channels that fill one vector are enough (0.88 of the time for four groups of 16 to 16 over
3 x 3 pixels of 56 x 56 on a Zen 4).

Where the planes of an image meet in few sets of the second cache, as planes of 128 x 128 do, a row finds none of the rows that the one
before has copied: rows of one product copy them once (0.93 of the time for 64 to 32 channels over 3 x 3 pixels of 128 x 128 on a Zen 4,
0.95 for 128 to 32 of 64 x 64).

Knob: `swap` (0 turns the rule off).

Refuses right operands that are weights or lie well along the columns, operands in no order, extents that are not constants, rows that fill no
vector, and products for which it saves too little.
",
    run: |plan, ctx, log| primitives::run(plan, ctx, log, policy),
};

fn policy(plan: &Plan, ctx: &Context, log: &mut Log) -> Vec<model::Step> {
    let mut steps = vec![];
    for step in plan.steps.iter().filter(|step| step.kernel.open) {
        let kernel = &step.kernel;
        for s in &kernel.body {
            let Some(Ok(nest)) = OpenNest::of(s) else { continue };
            let site = format!("{}, {}", kernel.name, site_of(kernel, s));
            let products = Products {
                kernel,
                ctx,
                nest: &nest,
                is_weight: &|mem| known_at_load(step, &plan.arrays, mem).is_some(),
            };
            let name = |sum: &Sum<'_>| names_of(kernel, &sum.loops[..1]).first().copied();
            match (products.rows(), nest.sums.first().and_then(|sum| Some((sum, name(sum)?)))) {
                (Ok(rows), Some((sum, at))) => {
                    log.applied(site);
                    let (kernel, batch) = (kernel.name.clone(), rows != sum.roles.n);
                    steps.push(model::Step { kernel, act: Act::Swap { at, batch } });
                }
                (Ok(_), None) => {}
                (Err(why), _) => log.skipped(site, why),
            }
        }
    }
    steps
}

/// The products of a nest.
struct Products<'a> {
    kernel: &'a Kernel,
    ctx: &'a Context,
    nest: &'a OpenNest<'a>,
    /// True if memory is a weight that is known when the model is loaded.
    is_weight: &'a dyn Fn(&Mem) -> bool,
}

impl Products<'_> {
    /// The rows of the sums, where they had better be swapped: the old columns, and the axes of a batch whose products differ only
    /// in their windows.
    fn rows(&self) -> Result<Vec<AxisId>, String> {
        if !self.ctx.knobs.swap {
            return Err("knob off".to_string());
        }
        let sums = self.nest.sums.iter().map(|sum| self.of(sum)).collect::<Result<Vec<_>, String>>()?;
        let (first, others) = sums.split_first().ok_or("it has no sum")?;
        // The sums of a nest run side by side.
        if others.iter().any(|rows| rows != first) {
            return Err("its sums would have different rows".to_string());
        }
        Ok(first.clone())
    }

    fn of(&self, sum: &Sum<'_>) -> Result<Vec<AxisId>, String> {
        let facts = self.kernel.facts();
        let extent = |axes: &[AxisId], loops: &[&For]| Side::of(axes, loops, &facts).known();
        let roles = sum.roles;
        let extents =
            (extent(&roles.m, &self.nest.free), extent(&roles.n, &self.nest.free), extent(&roles.k, &sum.loops));
        let (Some(m), Some(n), Some(k)) = extents else { return Err("an extent is not a constant".to_string()) };
        let lanes = num_type(self.kernel, roles.acc).map_or(1, |acc| u64::from(self.ctx.target.lanes_of(acc.bytes())));
        if m < lanes {
            return Err(format!("{m} rows fill no vector"));
        }
        swap::multiplication(sum).ok_or("its products do not commute")?;
        let (left, right) = (self.operand(sum, sum.x, &roles.m)?, self.operand(sum, sum.y, &roles.n)?);
        let times = |factors: &[u64]| factors.iter().fold(1, |n: u64, f| n.saturating_mul(*f));
        // Lanes of the last register tile that compute for no column.
        let beyond =
            |columns: u64| columns.next_multiple_of(lanes * if columns > lanes { VECTORS } else { 1 }) - columns;
        // Every block of rows packs the right operand anew.
        let packed = |rows: u64, columns: u64, operand: &Operand| match operand.along {
            Along::Own => 0,
            Along::Sum => times(&[rows.div_ceil(MOST_ROWS), columns, k, operand.price()]),
        };
        if right.known {
            return Err("its right operand is packed when the model is loaded".to_string());
        }
        // Results are transposed on one of the ways: this number of elements for each column.
        let (kept, turned) = if self.stored_along(&roles.m) { (m, 0) } else { (0, m) };
        if right.along == Along::Sum {
            let weights = if left.known { 0 } else { packed(n, m, &left) };
            let now = packed(m, n, &right).saturating_add(times(&[kept, n]));
            let then = weights.saturating_add(times(&[turned, n]));
            if then.saturating_mul(2) > now {
                return Err(format!("it transposes {now} elements, and would transpose {then}"));
            }
            return Ok(roles.n.clone());
        }
        // Columns that are numbered through rows or images that blocks do not divide are gathered one by one.
        let piecemeal =
            if right.windows { roles.n.len() > 1 } else { right.run < n && !right.run.is_multiple_of(PLANE) };
        if !(right.windows || piecemeal || beyond(n) > 0) {
            return Err("its right operand lies along the columns".to_string());
        }
        let batch: Vec<AxisId> = swap::joined(self.nest, sum);
        let count = extent(&batch, &self.nest.free).ok_or("an extent is not a constant")?;
        let rows = times(&[count, n]);
        // The elements that are gathered now, and the lanes that compute for no column.
        let gathered = match (piecemeal, right.apart) {
            (true, _) => times(&[n, k, ONE_BY_ONE]),
            (false, 1) => 0,
            (false, _) => times(&[n, k]),
        };
        let now = times(&[count, gathered.saturating_add(times(&[m, k, beyond(n)]) / MULTIPLIED)]);
        // Each row of an image copies the rows around it anew; rows of one product share them.
        let again = if right.windows { self.fetched_again(sum, &batch) } else { 0 };
        let together = (MOST_ROWS / n.max(1)).max(1);
        let now = now.saturating_add(times(&[kept, rows])).saturating_add(times(&[again, n, FETCHED]));
        let weights = if left.known { 0 } else { times(&[packed(rows, m, &left), OPERAND]) };
        // Other rows than windows, and than those that the first cache keeps where they lie, are copied again for each block of columns,
        // vectors of them at once.
        let copied = if right.windows || right.kept { 0 } else { times(&[rows, k, m.div_ceil(PLANE)]) / 2 };
        let then = weights
            .saturating_add(copied)
            .saturating_add(times(&[turned, rows]))
            .saturating_add(times(&[again, n, FETCHED]) / together)
            .saturating_add(times(&[rows, k, beyond(m)]) / MULTIPLIED);
        if then.saturating_add(then / 8) > now {
            return Err(format!("it costs as much as {now} transposed elements, and would cost {then}"));
        }
        let is_row = |f: &&For| batch.contains(&f.axis) || roles.n.contains(&f.axis);
        Ok(self.nest.free.iter().copied().filter(is_row).map(|f| f.axis).collect())
    }

    /// True if the first cache keeps what rows of a register tile read in a stretch of the sum, where it lies.
    fn kept(&self, mem: &Mem, (axis, terms): (AxisId, i64), varying: &BTreeSet<ValId>) -> bool {
        keeps_rows(self.ctx.target.cache(1), mem, HIGH, (axis, terms.unsigned_abs().min(STRETCH)), varying)
    }

    /// How many elements of each column windows fetch again from beyond the second cache, since the rows around an image's row
    /// belong to other products: where more planes meet in a part of that cache than it holds lines of.
    fn fetched_again(&self, sum: &Sum<'_>, batch: &[AxisId]) -> u64 {
        let all: Vec<&Stmt> = self.nest.around.iter().chain(&sum.inside).copied().collect();
        let loads = slice(&all, &[sum.y]);
        let Some(Stmt::Load { mem, .. }) = loads.iter().find(|s| matches!(s, Stmt::Load { .. })) else { return 0 };
        let apart = |axis: AxisId| mem.index.linear(axis)?.0.as_const();
        let extent = |axis: AxisId| {
            let all = self.nest.free.iter().chain(&sum.loops);
            all.filter(|f| f.axis == axis).find_map(|f| u64::try_from(f.hi.as_const()?).ok())
        };
        let images = || batch.iter().filter_map(|a| Some((apart(*a)?, extent(*a)?)));
        let [channel, windows @ ..] = &sum.roles.k[..] else { return 0 };
        let (Some(plane), Some(planes)) = (apart(*channel), extent(*channel)) else { return 0 };
        let cache = self.ctx.target.cache(2);
        let meet = gcd(plane.saturating_mul(mem.elem.bytes() as i64), (cache / WAYS) as i64).unsigned_abs();
        if cache < WAYS || meet == 0 || planes <= cache / meet {
            return 0;
        }
        let rows: u64 = images().map(|(_, n)| n).product();
        let again = windows.iter().filter_map(|k| {
            let (row, n) = (apart(*k)?, extent(*k)?);
            images().any(|(of, _)| of == row).then_some(n.saturating_sub(1))
        });
        rows.saturating_mul(planes).saturating_mul(again.sum())
    }

    /// True if results lie side by side along the last of some axes.
    fn stored_along(&self, axes: &[AxisId]) -> bool {
        let Some(axis) = axes.last() else { return false };
        let (mut stores, mut along) = (0, true);
        walk::visit(&self.kernel.body, &mut |s| {
            if let Stmt::Store { mem, .. } = s {
                stores += 1;
                along &= mem.index.linear(*axis).is_some_and(|(factor, _)| factor.is_const(1));
            }
        });
        stores > 0 && along
    }

    /// How an operand lies.
    fn operand(&self, sum: &Sum<'_>, value: ValId, owns: &[AxisId]) -> Result<Operand, String> {
        let all: Vec<&Stmt> = self.nest.around.iter().chain(&sum.inside).copied().collect();
        let stmts = slice(&all, &[value]);
        let varying: BTreeSet<ValId> = stmts.iter().filter_map(|s| walk::def(s)).collect();
        let counted = |axes: &[AxisId], loops: &[&For]| -> Vec<(AxisId, i64)> {
            let of = |a: &AxisId| loops.iter().find(|f| f.axis == *a).and_then(|f| Some((*a, f.hi.as_const()?)));
            axes.iter().filter_map(of).collect()
        };
        let (own, terms) = (counted(owns, &self.nest.free), counted(&sum.roles.k, &sum.loops));
        let fastest = |axes: &[(AxisId, i64)]| axes.iter().rev().copied().find(|(_, n)| *n > 1);
        // How far apart elements lie along an axis, if so close that vectors are taken out of whole ones, and how many.
        let run = |axis: Option<(AxisId, i64)>, ix: &Ix| -> Option<(i64, i64)> {
            let (axis, n) = axis?;
            let apart = affine::coef(ix, axis, &varying)?.as_const()?;
            (1..=MOST_APART).contains(&apart).then_some((apart, n))
        };
        let depends = |axes: &[AxisId], on: &[AxisId]| on.iter().any(|a| axes.contains(a));
        let mut found: Option<Operand> = None;
        for s in &stmts {
            let Stmt::Load { mem, mask, .. } = s else { continue };
            // A load that is the same along one of them is small beside the operand.
            let here = mem.index.axes();
            if !depends(&here, owns) || !depends(&here, &sum.roles.k) {
                continue;
            }
            let (of_own, of_sum) = (run(fastest(&own), &mem.index), run(fastest(&terms), &mem.index));
            // Windows lie along both: along the longer one side by side.
            let along = match (of_own, of_sum) {
                (None, None) => return Err("an operand lies in another order".to_string()),
                (Some((_, own)), Some((_, sum))) if own >= sum => Along::Own,
                (Some(_), None) => Along::Own,
                _ => Along::Sum,
            };
            let operand = Operand {
                along,
                apart: of_own.map_or(1, |(apart, _)| apart),
                run: side_by_side(&mem.index, &own),
                masked: !mask.is_always(),
                windows: stmts.len() <= 2 && overlap(&mem.index, mask, &own, &terms),
                known: stmts.len() <= 2 && (self.is_weight)(mem),
                kept: mask.is_always() && fastest(&terms).is_some_and(|term| self.kept(mem, term, &varying)),
            };
            let before = found.get_or_insert(operand);
            before.masked |= !mask.is_always();
            if before.along != along {
                return Err("an operand is computed from what lies in several orders".to_string());
            }
        }
        found.ok_or("an operand is not loaded".to_string())
    }
}

/// How many elements counted through axes lie equally far apart.
fn side_by_side(index: &Ix, axes: &[(AxisId, i64)]) -> u64 {
    let (mut run, mut next): (i64, Option<i64>) = (1, None);
    for (axis, n) in axes.iter().rev().filter(|(_, n)| *n > 1) {
        let apart = index.linear(*axis).and_then(|(factor, _)| factor.as_const());
        let Some(apart) = apart.filter(|apart| next.is_none_or(|next| next == *apart)) else { break };
        (run, next) = (run.saturating_mul(*n), apart.checked_mul(*n));
    }
    run.unsigned_abs()
}

/// How an operand lies in memory.
struct Operand {
    along: Along,
    /// How far apart its elements lie along its own axis.
    apart: i64,
    /// How many elements lie side by side, or as far apart as that, counted through its own axes.
    run: u64,
    /// Squares of it are not all there, so that its elements go one by one where they are transposed.
    masked: bool,
    /// It is read in windows that overlap.
    windows: bool,
    /// It is known when the model is loaded, and packed then.
    known: bool,
    /// As the left operand it is read in place.
    kept: bool,
}

impl Operand {
    /// The cost of transposing one of its elements, in elements of whole squares.
    fn price(&self) -> u64 {
        if self.masked { ONE_BY_ONE } else { 1 }
    }
}

/// The axes that an operand's memory runs along.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Along {
    /// Its rows, or its columns.
    Own,
    Sum,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::print::{Dialect, print};
    use crate::loops::verify::verify;
    use crate::tile::tests::{context, plan_of, with_knobs};

    /// The one kernel of an expression after the rule, or why that leaves it alone.
    fn swapped(expression: &str, ctx: &Context) -> Result<String, String> {
        let (_, plan) = plan_of(expression);
        let mut log = Log::default();
        let Some(out) = (RULE.run)(&plan, ctx, &mut log) else { return Err(log.skipped.remove(0).1) };
        let again = (RULE.run)(&out, ctx, &mut Log::default());
        assert!(again.is_none(), "{expression}: a second run changes something");
        assert_eq!(verify(&out.steps[0].kernel, Dialect::Loop), []);
        Ok(print(&out.steps[0].kernel, Dialect::Loop))
    }

    #[test]
    fn the_smaller_of_two_operands_along_the_sum_is_transposed() {
        let product =
            |m: u32, n: u32| swapped(&format!("torch.randn({m}, 2000) @ torch.randn({n}, 2000).T"), &context());
        let made = product(64, 1000).unwrap();
        assert!(
            made.contains("contraction m=j n=i k=k a=x_1 b=x1_1") && made.contains("fma(x_1, x1_1, acc)"),
            "{made}"
        );
        assert_eq!(product(8, 1000).unwrap_err(), "8 rows fill no vector");
        assert_eq!(product(500, 500).unwrap_err(), "it transposes 1000000 elements, and would transpose 1250000");
        let other = swapped("torch.randn(64, 2000) @ torch.randn(2000, 1000)", &context());
        assert_eq!(other.unwrap_err(), "it costs as much as 256000 transposed elements, and would cost 1088000");
        let other = swapped("torch.randn(64, 2000) @ torch.randn(2000, 1024)", &context());
        assert_eq!(other.unwrap_err(), "its right operand lies along the columns");
    }

    #[test]
    fn windows_whose_rows_fill_no_vectors_become_rows() {
        let conv = |module: &str, input: &str| swapped(&format!("torch.nn.{module}(torch.randn({input}))"), &context());
        // The rows of an image, which were products of their own, are rows of one.
        let made = conv("Conv2d(64, 64, 3, padding=1)", "8, 64, 28, 28").unwrap();
        assert!(made.contains("m=(b0, b1, j) n=i"), "{made}");
        let made = conv("Conv2d(64, 64, 3, padding=1)", "8, 64, 14, 14").unwrap();
        assert!(made.contains("m=(j0, j1, j2) n=i"), "{made}");
        for (module, input, why) in [
            (
                "Conv2d(64, 64, 3, padding=1)",
                "1, 64, 64, 64",
                "it costs as much as 0 transposed elements, and would cost 262144",
            ),
            (
                "Conv2d(64, 24, 3, padding=1)",
                "8, 64, 28, 28",
                "it costs as much as 1032192 transposed elements, and would cost 2558976",
            ),
            (
                "Conv2d(64, 64, 1)",
                "1, 64, 28, 28",
                "it costs as much as 5461 transposed elements, and would cost 50176",
            ),
            ("Conv2d(64, 64, 1)", "1, 64, 32, 32", "its right operand lies along the columns"),
            ("Conv2d(24, 64, 1)", "1, 24, 7, 7", "it costs as much as 1920 transposed elements, and would cost 3136"),
        ] {
            assert_eq!(conv(module, input).unwrap_err(), why, "{module} of {input}");
        }
        // Planes of 128 x 128 meet in the second cache, and planes of 96 x 96 do not.
        let made = conv("Conv2d(64, 32, 3, padding=1)", "1, 64, 128, 128").unwrap();
        assert!(made.contains("m=(b, j) n=i"), "{made}");
        let why = conv("Conv2d(64, 32, 3, padding=1)", "1, 64, 96, 96").unwrap_err();
        assert_eq!(why, "it costs as much as 0 transposed elements, and would cost 294912");
        // Sixteen channels of each group fill one vector.
        let made = conv("Conv2d(64, 64, 3, padding=1, groups=4)", "1, 64, 56, 56").unwrap();
        assert!(made.contains("m=(b1, j) n=i"), "{made}");
        // Seven rows of seven pixels fill three vectors, and a lane of a fourth.
        let made = conv("Conv2d(160, 960, 1)", "1, 160, 7, 7").unwrap();
        assert!(made.contains("m=(j0, j1) n=i"), "{made}");
        // Twelve pixels beyond the twelve vectors of 14 x 14 pay where the sum is long, or the results are few.
        assert!(
            conv("Conv2d(384, 64, 1)", "1, 384, 14, 14").is_ok() && conv("Conv2d(96, 576, 1)", "1, 96, 14, 14").is_ok()
        );
        let why = conv("Conv2d(64, 384, 1)", "1, 64, 14, 14").unwrap_err();
        assert_eq!(why, "it costs as much as 57344 transposed elements, and would cost 75264");
        // 16 pixels of a row are a whole vector.
        let why = conv("Conv2d(384, 64, 1)", "1, 384, 16, 16").unwrap_err();
        assert_eq!(why, "its right operand lies along the columns");
        let off = swapped("torch.nn.Conv2d(64, 64, 3)(torch.randn(8, 64, 28, 28))", &with_knobs(&["swap=0"]));
        assert_eq!(off.unwrap_err(), "knob off");
    }

    #[test]
    fn pieces_of_several_images_become_rows() {
        // Images of 49 pixels fill no vectors, and a column that follows the last of one lies somewhere else.
        let made = swapped("torch.nn.Conv2d(512, 64, 1)(torch.randn(8, 512, 7, 7))", &context()).unwrap();
        assert!(made.contains("m=(j0, j1, j2) n=i"), "{made}");
    }
}
