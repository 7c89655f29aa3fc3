//! `tileify`

use std::collections::BTreeMap;

use crate::base::rule::{Log, Rule};
use crate::index::simplify;
use crate::loops::ir::*;
use crate::loops::matrix::Operand;
use crate::tile::Context;
use crate::tile::affine;
use crate::tile::blocking::{Blocks, Extents, Operands, Types, blocks_of, panel_width};
use crate::tile::boxes;
use crate::tile::contraction::num_type;
use crate::tile::cost::{Cost, Product};
use crate::tile::edit;
use crate::tile::heuristics::blocking::MOST_ROWS;
use crate::tile::heuristics::tileify::{GUESS, LEAST_STRETCH, MOST_STRETCH};
use crate::tile::matrix;
use crate::tile::primitives::tile::open::Sides;
use crate::tile::primitives::{Names, Script, Step};
use crate::tile::rules::site_of;
use crate::tile::target::Capability;
use crate::tile::tile_nest::*;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "tileify",
    doc: "\
Cuts an open contraction into tiles of rows and columns, one for each block of the grid, and its sum into stretches. The
accumulator becomes a tile; what computes an operand, and what follows the sum, get loops of their own.

```text
for i in 0..512: free                            for jb in 0..56: free block(y)
  for j in 0..3584: free                           for ib in 0..1: free block(x)
    acc = 0                                          local acc[512, 64] = 0
    for k in 0..3584: reduce contraction   -->       for kt in 0..14: serial
      acc <- fma(x[i, k], w[j, k], acc)                for i: for j: for kk in 0..256: reduce contraction
    store out[i*3584 + j] = acc + b[j]                   acc[i, j] <- fma(x[..], w[..], acc[i, j])
                                                     for i: for j: free
                                                       store out[..] = acc[i, j] + b[jb*64 + j]
```

Knobs: of a GPU `mc` and `nc`, the rows and columns of a block, and `kc`, the longest stretch of the sum.

Several row, column or summed axes become one, the last running fastest. Sizes follow the caches, the registers and the
threads (`tile/blocking.rs`); for a GPU the trace says what they cost (`tile/cost.rs`). Where they do not divide an extent, accesses get masks.

Refuses nests that hold other loops than those of the sum, such as a reduction that an operand needs.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !p.open {
        return None;
    }
    let mut script = Script::new(p, ctx, log);
    for at in 0..p.body.len() {
        let Some((site, chosen)) = choose(&script.kernel, ctx, at) else { continue };
        let done = chosen.and_then(|(step, cost)| script.try_step(step).map(|_| cost));
        match done {
            Ok(None) => script.log.applied(site),
            Ok(Some(cost)) => script.log.applied(format!("{site}: {cost}")),
            Err(why) => script.log.skipped(site, why),
        }
    }
    script.done()
}

/// A step, and what it costs a GPU.
type Chosen = (Step, Option<String>);

/// How a statement of a kernel is cut, and what that costs; `None` where it has no contraction.
fn choose(kernel: &Kernel, ctx: &Context, at: usize) -> Option<(String, Result<Chosen, String>)> {
    let s = &kernel.body[at];
    let nest = OpenNest::of(s)?;
    let chosen = nest.and_then(|nest| {
        let (blocks, cost) = blocks(kernel, ctx, &nest)?;
        let sum = nest.sums.first().and_then(|sum| sum.loops.first()).ok_or("its sum is not in this nest")?;
        let at = Names::of(kernel).name(sum).ok_or("its sum has no name")?;
        let [m, n, k] = [blocks.bm, blocks.bn, blocks.bk].map(|n| u32::try_from(n).map_err(|_| "a tile is too large"));
        Ok((Step::Tile { at, m: m?, n: n?, k: k? }, cost))
    });
    Some((site_of(kernel, s), chosen))
}

/// The tiles of a nest.
fn blocks(kernel: &Kernel, ctx: &Context, nest: &OpenNest<'_>) -> Result<(Blocks, Option<String>), String> {
    let mut facts = kernel.facts();
    let sides = Sides::of(nest, &facts)?;
    let Sides { m, n, k, batch } = &sides;
    let first = nest.sums.first().ok_or("its sum is not in this nest")?;
    let acc = num_type(kernel, first.roles.acc).ok_or("its accumulator holds addresses")?;
    // All right operands may lie in panels: along the columns as one axis.
    let column = edit::new_axis(&mut Kernel { body: vec![], ..kernel.clone() }, first.roles.k[0], "");
    facts.set_axis(column, &Ix::Const(0), &n.extent);
    let mut by = BTreeMap::new();
    n.split(&Ix::Axis(column), &mut by);
    let width = panel_width(&ctx.target, acc) as i64;
    let panels = |s: &Sum<'_>| match slice(&s.inside, &[s.roles.b])[..] {
        [Stmt::Load { mem, .. }] => {
            let ix = simplify(&mem.index.subst_axes(&mut |a| by.get(&a).cloned()), &facts);
            affine::panels(&ix, column) == Some(width)
        }
        _ => false,
    };
    let extents = Extents {
        batch: batch.known().unwrap_or(1),
        m: m.known(),
        n: n.known().unwrap_or(GUESS),
        k: k.known().unwrap_or(GUESS),
    };
    let operand = matrix::multiplied(ctx, first.operand(kernel).unwrap_or(acc));
    let operands = match () {
        _ if nest.sums.iter().all(panels) => Operands::Panels,
        () => in_memory(kernel, ctx, nest, Types { operand, acc }),
    };
    let mut blocks = blocks_of(ctx, extents, Types { operand, acc }, operands);
    if !ctx.target.has(Capability::Threads) {
        blocks.bk = whole_windows(k).unwrap_or(blocks.bk);
        blocks.bm = whole_rows(m, blocks.bm).unwrap_or(blocks.bm);
    }
    let cost = cost(kernel, ctx, nest, &sides, blocks);
    Ok((blocks, cost))
}

/// The operands of a nest on a GPU. They are boxes where warpgroups multiply and TMA brings both as they read them: loads without
/// a mask, of rows at multiples of 16 bytes, whose elements lie side by side along the rows, the columns or the sum.
pub(super) fn in_memory(kernel: &Kernel, ctx: &Context, nest: &OpenNest<'_>, types: Types) -> Operands {
    let are_boxes = nest.sums.iter().all(|sum| are_boxes(kernel, ctx, nest, sum, types));
    if are_boxes && !nest.sums.is_empty() { Operands::Boxes } else { Operands::Other }
}

fn are_boxes(kernel: &Kernel, ctx: &Context, nest: &OpenNest<'_>, sum: &Sum<'_>, types: Types) -> bool {
    let (knobs, of) = (&ctx.knobs, matrix::operand(&ctx.target, types.operand, types.acc));
    let asked = knobs.tma && knobs.wgmma && knobs.swizzle && knobs.tensor_core && knobs.slots != Some(1);
    let multiplies = |of: Operand| !of.is_byte_float() || knobs.fast_acc;
    if !ctx.target.has(Capability::WarpgroupProducts) || !asked || !of.is_some_and(multiplies) {
        return false;
    }
    let Contraction { m, n, k, a, b, .. } = sum.roles;
    let ([i], [j], [k]) = (&m[..], &n[..], &k[..]) else { return false };
    let facts = kernel.facts();
    let is_box = |operand: ValId, along: AxisId| {
        let [Stmt::Load { mem, mask, .. }] = slice(&sum.inside, &[operand])[..] else { return false };
        let stride = |axis: AxisId| Some(mem.index.linear(axis)?.0);
        let strides: Option<Vec<Ix>> = nest.free.iter().map(|f| f.axis).chain([*k]).map(stride).collect();
        let Some(strides) = strides.filter(|_| mem.elem == types.operand && mask.is_always()) else { return false };
        let far = |stride: &Ix| facts.divisor(stride).saturating_mul(mem.elem.bytes()) >= boxes::UNIT;
        let unit = |axis: AxisId| stride(axis).is_some_and(|stride| stride.is_const(1));
        let in_rows = unit(*k) || unit(along) && mem.elem.bytes() == 2;
        in_rows && strides.iter().filter(|stride| !stride.is_const(1)).all(far)
    };
    is_box(*a, *i) && is_box(*b, *j)
}

/// The cost of tiles on a GPU; `None` where extents or the machine's numbers are not known.
fn cost(kernel: &Kernel, ctx: &Context, nest: &OpenNest<'_>, sides: &Sides, tile: Blocks) -> Option<String> {
    let Sides { m, n, k, batch } = sides;
    let sum = nest.sums.first()?;
    let operand = matrix::multiplied(ctx, sum.operand(kernel)?);
    let acc = num_type(kernel, sum.roles.acc)?;
    let sums = nest.sums.len() as u64;
    let product = Product {
        batch: batch.known()?,
        m: m.known()?,
        n: n.known()?,
        k: k.known()?.saturating_mul(sums),
        operand,
        acc,
    };
    let cost = Cost::of(&ctx.target, &product, tile)?;
    let Blocks { bm, bn, bk } = tile;
    Some(format!("{bm} x {bn} x {bk}: {cost}"))
}

/// A stretch of a sum over several axes that goes through the inner ones as a whole, so that its elements are loops around each other
/// and no quotients: of a convolution, the windows of some channels; of the gradient of its weights, some rows of an image.
fn whole_windows(k: &Side) -> Option<u64> {
    if k.known()? <= MOST_STRETCH {
        return None;
    }
    whole(k, LEAST_STRETCH, MOST_STRETCH)
}

/// Rows of a block where they are counted by several axes and would end somewhere within an inner one.
fn whole_rows(m: &Side, rows: u64) -> Option<u64> {
    let mut left = rows;
    for (_, extent) in m.axes.iter().rev() {
        let extent = u64::try_from(extent.as_const()?).ok().filter(|n| *n > 0)?;
        if !left.is_multiple_of(extent) {
            return if extent.is_multiple_of(left) { None } else { whole(m, MOST_ROWS / 8, MOST_ROWS) };
        }
        left /= extent;
    }
    None
}

/// The longest part of a side, within limits, that goes through its inner axes as a whole and divides the next one.
fn whole(side: &Side, least: u64, most: u64) -> Option<u64> {
    let extents: Option<Vec<u64>> = side.axes.iter().map(|(_, n)| u64::try_from(n.as_const()?).ok()).collect();
    let extents = extents?;
    (1..extents.len()).find_map(|inner| {
        let (outer, window) = (extents[inner - 1], extents[inner..].iter().fold(1u64, |n, e| n.saturating_mul(*e)));
        let fits = |count: &u64| outer.is_multiple_of(*count) && (least..=most).contains(&count.saturating_mul(window));
        (window > 1).then(|| (1..=outer.min(most)).rev().find(fits).map(|count| count * window))?
    })
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, gpu, kernel, plan_of, refusals, text};

    const PRODUCT: &str = r#"loop kernel k(x: ptr f32, w: ptr f32, b: ptr f32, out: ptr f32) open:
  for i in 0..20: free
    for j in 0..70: free
      local acc: f32
      acc = 0.0
      for k in 0..300: reduce contraction m=i n=j k=k a=a b=c acc=acc
        a: f32 = load x[i*300 + k]
        c: f32 = load w[j*300 + k]
        old: f32 = acc
        new: f32 = fma(a, c, old)
        acc = new
      sum: f32 = acc
      bias: f32 = load b[j]
      y: f32 = sum + bias
      store out[i*70 + j] = y
"#;

    #[test]
    fn a_product_is_cut_into_blocks_with_masks_at_the_edges() {
        let (out, log) = apply("tileify", &kernel(PRODUCT), &context());
        assert_eq!(log.applied, ["contraction into acc"]);
        let want = r#"tile kernel k(x: ptr f32, w: ptr f32, b: ptr f32, out: ptr f32) open:
  for jb in 0..3: free block(y)
    local acc: f32[20, 32]
    for i in 0..20: free
      for j in 0..32: free
        acc[i, j] = 0.0
    for kt in 0..2: serial
      for i_1 in 0..20: free
        for j_1 in 0..32: free
          for kk in 0..150: reduce contraction m=i_1 n=j_1 k=kk a=a b=c acc=acc
            a: f32 = load x[i_1*300 + kt*150 + kk]
            c: f32 = load w[jb*9600 + j_1*300 + kt*150 + kk] where jb*32 + j_1 < 70 else 0.0
            old: f32 = acc[i_1, j_1]
            new: f32 = fma(a, c, old)
            acc[i_1, j_1] = new
    for i_2 in 0..20: free
      for j_2 in 0..32: free
        sum: f32 = acc[i_2, j_2]
        bias: f32 = load b[jb*32 + j_2] where jb*32 + j_2 < 70 else 0.0
        y: f32 = sum + bias
        store out[i_2*70 + jb*32 + j_2] = y where jb*32 + j_2 < 70
"#;
        assert_eq!(text(&out), want);
    }

    #[test]
    fn blocks_that_divide_what_is_not_known_have_no_masks() {
        let of = |columns: &str| {
            let k = PRODUCT.replace("0..70", &format!("0..{columns}")).replace("i*70", &format!("i*({columns})"));
            text(&apply("tileify", &kernel(&k.replace("k(", "k(n: i64 in 1..4096, ")), &context()).0)
        };
        assert!(!of("n*128").contains("where"), "{}", of("n*128"));
        for columns in ["n*96", "n*128 + 1"] {
            assert!(of(columns).contains("where"), "{}", of(columns));
        }
    }

    #[test]
    fn knobs_choose_the_blocks_of_threads() {
        let large = PRODUCT.replace("0..70", "0..4480").replace("0..20", "0..512").replace("i*70", "i*4480");
        let (out, _) = apply("tileify", &kernel(&large), &gpu(&["mc=64", "nc=40", "kc=16"]));
        let made = text(&out);
        assert!(made.contains("local acc: f32[64, 32]") && made.contains("for kk in 0..16: reduce"), "{made}");
    }

    #[test]
    fn a_computed_operand_gets_a_buffer_with_zeros_past_its_end() {
        let exp = PRODUCT.replace("a: f32 = load x[i*300 + k]", "z: f32 = load x[i*300 + k]\n        a: f32 = exp(z)");
        let odd = exp.replace("300", "257");
        let (out, _) = apply("tileify", &kernel(&odd), &context());
        let made = text(&out);
        assert!(made.contains("local a: f32[20, 256]") && made.contains("in_1: i1 = test kt*256 + kk < 257"), "{made}");
        assert!(made.contains("select(in_1, a_1, 0.0)"), "{made}");
    }

    #[test]
    fn rows_of_several_axes_become_one() {
        let two = PRODUCT
            .replace("for i in 0..20: free\n    for j", "for i0 in 0..4: free\n   for i1 in 0..5: free\n    for j")
            .replace("m=i ", "m=(i0, i1) ")
            .replace("x[i*300 + k]", "x[i1*1200 + i0*300 + k]")
            .replace("out[i*70 + j]", "out[i0*350 + i1*70 + j]");
        let (out, _) = apply("tileify", &kernel(&two), &context());
        let made = text(&out);
        assert!(made.contains("load x[i_1%5*1200 + i_1//5*300 + kt*150 + kk]"), "{made}");
        assert!(made.contains("store out[i_2*70 + jb*32 + j_2] = y"), "{made}");
    }

    /// Rows of an image are no panels: only as wide as register tiles are they read in place.
    #[test]
    fn remainders_of_other_widths_are_no_panels() {
        let large = PRODUCT.replace("0..70", "0..4480").replace("0..20", "0..512").replace("i*70", "i*4480");
        let columns = |index: &str| {
            let (out, _) = apply("tileify", &kernel(&large.replace("w[j*300 + k]", index)), &context());
            let made = text(&out);
            made.lines().find(|l| l.contains("local acc")).unwrap().to_string()
        };
        assert_eq!(columns("w[j//32*9600 + k*32 + j%32]"), "    local acc: f32[512, 64]");
        assert_eq!(columns("w[j//56*16800 + k*56 + j%56]"), "    local acc: f32[512, 128]");
        assert_eq!(columns("w[j*300 + k]"), "    local acc: f32[512, 128]");
    }

    /// Columns of blocks of products that warpgroups compute.
    #[test]
    fn blocks_are_wide_where_both_operands_are_boxes() {
        let columns = |product: &str, knobs: &[&str]| {
            let (_, plan) = plan_of(product);
            let (out, _) = apply("tileify", &plan.steps.last().unwrap().kernel, &gpu(knobs));
            let made = text(&out);
            let line = made.lines().find(|l| l.contains("local ") && l.contains("[128, ")).map(str::trim);
            line.and_then(|l| l.rsplit(", ").next()?.strip_suffix(']')).map(str::to_string)
        };
        let half = |m: u32, n: u32| format!("torch.randn({m}, {n}, dtype=torch.float16)");
        let product = |k: u32, n: u32| format!("{} @ {}", half(4096, k), half(k, n));
        assert_eq!(columns(&product(4096, 4096), &[]).as_deref(), Some("256"));
        for knob in ["tma=0", "wgmma=0", "swizzle=0", "slots=1", "tensor_core=0"] {
            assert_ne!(columns(&product(4096, 4096), &[knob]).as_deref(), Some("256"), "{knob}");
        }
        // Rows of 4100 elements begin at multiples of 8 bytes, and elements of every second column lie apart.
        assert_ne!(columns(&product(4096, 4100), &[]).as_deref(), Some("256"));
        let apart = format!("{} @ {}[:, ::2]", half(4096, 4096), half(4096, 8192));
        assert_ne!(columns(&apart, &[]).as_deref(), Some("256"));
    }

    #[test]
    fn what_has_another_form_is_refused() {
        let inner = "a: f32 = load x[i*300 + k]";
        for (from, to, why) in [
            (inner, "a: f32 = load x[i*300 + k + j]", "an operand depends on both rows and columns"),
            (
                "      local acc: f32\n",
                "      local t: f32\n      t = 1.0\n      local acc: f32\n",
                "it keeps values of its own",
            ),
        ] {
            let why = [format!("contraction into acc: {why}")];
            assert_eq!(refusals("tileify", &PRODUCT.replace(from, to), &context()), why);
        }
        // A kernel whose grid the launch gives is left alone.
        let given = PRODUCT.replace(") open:", "):");
        assert_eq!(refusals("tileify", &given, &context()), Vec::<String>::new());
    }
}
