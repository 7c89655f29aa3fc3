//! `register_tile`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::refs;
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::contraction::{self, Nest, num_type};
use crate::tile::edit::{self, free_loop, new_axis};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "register_tile",
    doc: "\
Runs a contraction one register tile of the accumulator at a time: `rows` x `cols` accumulators stay in registers over the
whole reduction.

```text
for i in 0..128: free                            for j1 in 0..4: free
  for j in 0..128: free                            for i1 in 0..16: free
    for kk in 0..64: reduce contraction   -->        register_tile acc (i2 8, j2 32 by 16 lanes):
      acc[i, j] <- a[i, kk] * b[kk, j]                 for kk in 0..64: reduce contraction
                                                         acc[i1*8 + i2, j1*32 + j2] <- ...
```

The columns run outermost, so that a packed panel of the right operand stays in L1 while the rows pass over it.

Knobs: `register_tile` (0 turns the rule off), `rows`, `cols`, `lanes` (chosen from the vector registers).

Refuses when the accumulator's type is not held in vectors, the tile does not divide the contraction, or an operand
still has a mask or does not lie along n.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    contraction::rewrite(p, log, &mut |kernel, nest| tile(kernel, ctx, nest))
}

fn tile(kernel: &mut Kernel, ctx: &Context, nest: &Nest) -> Result<Stmt, String> {
    if !ctx.knobs.register_tile {
        return Err("knob off".to_string());
    }
    let roles = nest.roles;
    let acc = num_type(kernel, roles.acc).ok_or("its accumulator holds addresses")?;
    let shape = nest.tile_shape(ctx, acc)?;
    check_body(kernel, nest, shape.cols)?;

    let [i1, i2] = ["1", "2"].map(|d| new_axis(kernel, roles.m, d));
    let [j1, j2] = ["1", "2"].map(|d| new_axis(kernel, roles.n, d));
    let (rows, cols) = (shape.rows as i64, shape.cols as i64);
    let (row_tiles, col_tiles) = (nest.m as i64 / rows, nest.n as i64 / cols);
    let place = |outer: AxisId, count: i64, size: i64, inner: AxisId| {
        if count == 1 { Ix::Axis(inner) } else { Ix::Axis(outer) * Ix::Const(size) + Ix::Axis(inner) }
    };
    let by = BTreeMap::from([(roles.m, place(i1, row_tiles, rows, i2)), (roles.n, place(j1, col_tiles, cols, j2))]);
    let body = edit::place_axes(&nest.reduce.body, &by, &BTreeMap::from([(i2, rows), (j2, cols)]));
    let contraction =
        Some(Contraction { m: vec![i2], n: vec![j2], k: vec![roles.k], a: roles.a, b: roles.b, acc: roles.acc });
    let reduce = Stmt::For(Box::new(For { contraction, body, ..nest.reduce.clone() }));
    let mut out = Stmt::RegisterTile {
        acc: roles.acc,
        i: i2,
        rows: shape.rows,
        j: j2,
        cols: shape.cols,
        lanes: shape.lanes,
        body: vec![reduce],
    };
    if row_tiles > 1 {
        out = free_loop(i1, Ix::Const(row_tiles), vec![out]);
    }
    if col_tiles > 1 {
        out = free_loop(j1, Ix::Const(col_tiles), vec![out]);
    }
    for f in nest.free.iter().rev().skip(2) {
        out = Stmt::For(Box::new(For { body: vec![out], ..(*f).clone() }));
    }
    Ok(out)
}

/// The micro-kernel's loads: rows from anywhere, columns contiguous, no masks; the one effect is the write of `acc`.
fn check_body(kernel: &Kernel, nest: &Nest, cols: u32) -> Result<(), String> {
    let (m, n) = (nest.roles.m, nest.roles.n);
    // Panels are walked from end to end by tiles that divide them.
    let panel = |ix: &Ix| match affine::panels(ix, n) {
        Some(width) if width % cols as i64 == 0 => affine::in_panel(ix, n, width),
        _ => ix.clone(),
    };
    let facts = refs(&nest.reduce.body);
    let places: BTreeSet<&Vec<Ix>> = nest
        .reduce
        .body
        .iter()
        .filter_map(|s| match s {
            Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } if *buf == nest.roles.acc => Some(idx),
            _ => None,
        })
        .collect();
    if places.len() != 1 {
        return Err("the accumulator's place is not one per row and column".to_string());
    }
    for s in &nest.reduce.body {
        let along_n = match s {
            Stmt::Load { mask, .. } if !mask.is_always() => return Err("an operand has a mask".to_string()),
            Stmt::Load { order, .. } if *order != Order::Weak => return Err("an operand's load is ordered".to_string()),
            Stmt::Load { mem, .. } if mem.elem.bits() < 8 => {
                return Err("an operand has less than a byte per element".to_string());
            }
            Stmt::Load { mem, .. } if facts.vals_defined.contains(&mem.base) => {
                return Err("an operand's address is computed per element".to_string());
            }
            Stmt::Load { mem, .. } => affine::stride(&panel(&mem.index), n, &facts.vals_defined),
            Stmt::Read { buf, .. } if *buf == nest.roles.acc => Stride::Unit,
            Stmt::Read { buf, idx, .. } => {
                let idx: Vec<Ix> = match idx.iter().find_map(|ix| affine::panels(ix, n)) {
                    // The number of the panel does not change within a tile.
                    Some(width) if width % cols as i64 == 0 => {
                        idx.iter().map(|ix| affine::in_panel(ix, n, width)).collect()
                    }
                    _ => idx.clone(),
                };
                affine::buf_stride(&kernel.bufs[*buf], &idx, n, &facts.vals_defined)
            }
            Stmt::Write { buf, idx, .. } if *buf == nest.roles.acc => {
                if affine::buf_stride(&kernel.bufs[*buf], idx, n, &facts.vals_defined) != Stride::Unit {
                    return Err("the accumulator does not lie along n".to_string());
                }
                for ix in idx {
                    if ix.has_axis(nest.roles.k) || affine::stride(ix, m, &facts.vals_defined) == Stride::Irregular {
                        return Err("the accumulator's place is not one per row and column".to_string());
                    }
                }
                continue;
            }
            Stmt::Let { .. } => continue,
            _ => return Err("its body does more than multiply and add".to_string()),
        };
        if !matches!(along_n, Stride::Same | Stride::Unit) {
            return Err("an operand does not lie along n".to_string());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text, with_knobs};

    const PRODUCT: &str = r#"loop kernel k(A: ptr f32, B: ptr f32):
  local acc: f32[16, 64]
  for i in 0..16: free
    for j in 0..64: free
      for kk in 0..8: reduce contraction m=i n=j k=kk a=a b=b acc=acc
        a: f32 = load A[i*8 + kk]
        b: f32 = load B[kk*64 + j]
        c: f32 = acc[i, j]
        d: f32 = fma(a, b, c)
        acc[i, j] = d
"#;

    #[test]
    fn knobs_choose_the_tile() {
        let (out, _) = apply("register_tile", &kernel(PRODUCT), &with_knobs(&["rows=4", "cols=64"]));
        assert!(text(&out).contains("register_tile acc over i2 in 0..4, j2 in 0..64 lanes 16:"), "{}", text(&out));
        let why = refusals("register_tile", PRODUCT, &with_knobs(&["rows=3"]));
        assert_eq!(why, ["contraction into acc: a tile of 3x64 by 16 lanes does not divide 16x64"]);
        assert_eq!(
            refusals("register_tile", PRODUCT, &with_knobs(&["register_tile=0"])),
            ["contraction into acc: knob off"]
        );
    }

    #[test]
    fn what_the_micro_kernel_cannot_hold_is_refused() {
        for (from, to, why) in [
            ("load A[i*8 + kk]", "load A[i*8 + kk] where i < bx else 0.0", "an operand has a mask"),
            ("B[kk*64 + j]", "B[j*8 + kk]", "an operand does not lie along n"),
            ("acc[i, j] = d", "acc[j, i] = d", "the accumulator's place is not one per row and column"),
        ] {
            let changed = PRODUCT.replace(from, to);
            assert_eq!(refusals("register_tile", &changed, &context()), [format!("contraction into acc: {why}")]);
        }
        let narrow = PRODUCT.replace("0..64", "0..1").replace("16, 64", "16, 1");
        let why = refusals("register_tile", &narrow, &context());
        assert_eq!(why, ["contraction into acc: 1 columns do not fill a vector"]);
    }
}
