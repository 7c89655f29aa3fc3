//! `stage_inputs`

mod operand_types;

use std::collections::BTreeSet;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::refs;
use crate::num::DType;
use crate::tile::Context;
use crate::tile::affine;
use crate::tile::contraction::{Nest, TileShape, nest_around, num_type, sums};
use crate::tile::heuristics::stage_inputs::{FEW_READERS, LONG_ROW};
use crate::tile::lines::keeps_rows;
use crate::tile::primitives::retype::Known;
use crate::tile::primitives::stage_read::{self, How, Side};
use crate::tile::primitives::{LoopRef, Script, Step, hoist, look};
use crate::tile::target::Capability;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "stage_inputs",
    doc: "\
Brings the operands of a contraction close to where they are used.

On a CPU it packs them: converted, with edges filled in, in the order in which the register tiles will read them. The right
operand goes into panels as wide as a register tile, the left one into rows (or, where its memory runs along m, into panels
as high as a register tile).

```text
for i in 0..128: free                            stage a_pack:
  for j in 0..128: free                            for i in 0..128: for kk in 0..64:
    for kk in 0..64: reduce contraction              a_pack[i, kk] = ext(load A[...] where ... else 0)
      %a = load A[...] where ... else 0   -->    stage b_pack:
      %b = load B[...] where ... else 0            for kk in 0..64: for jp in 0..4: for jj in 0..32:
      acc[i, j] <- ext(%a) * ext(%b)                 b_pack[jp, kk, jj] = ext(load B[...] where ... else 0)
                                                 for i: for j: for kk: reduce contraction
                                                   acc[i, j] <- a_pack[i, kk] * b_pack[j // 32, kk, j % 32]
```

Windows that overlap share one copy of what they lie on (`stage_inputs/windows.rs`), where that is less than half of them, or
less than three quarters of those of the left operand, whose elements are read one by one:

```text
%b = load x[kk//3*56 + j + kk%3 - 1]             stage b_pack: f32[48, 66]
     where j + kk%3 - 1 >= 0 and ..        -->     for k1 in 0..48: for p in 0..66:
                                                     b_pack[k1, p] = load x[k1*56 + p - 1] where p - 1 >= 0 and ..
                                                 %b = b_pack[kk//3, j + kk%3]
```

On a GPU they go into memory that the threads of a block share, as they are, in rows that run as the operand's memory does,
so that neighbouring threads copy neighbouring elements; 16 bytes at a time where arrays and extents are known to be multiples.

```text
for i in 0..128: free                            stage a_s: f32[128, 32] shared
  for j in 0..128: free                            for i in 0..128: for kk1 in 0..8: for kk2 in 0..4: vector(4)
    for kk in 0..32: reduce contraction              a_s[i, kk1*4 + kk2] = load A[..]
      acc[i, j] <- (load A[..]) * (load B[..])   -->   stage b_s: ...
                                                 for i: for j: for kk: reduce contraction
                                                   acc[i, j] <- a_s[i, kk] * b_s[j, kk]
```

Where the matrix unit has no product of what is loaded, operands are held as the narrowest type of its that has all their numbers,
so that the product stays the same: f8 as f16 where the machine has no products of f8, f4 as f8 or f16, f4 times their scales as f16
or bf16, f8 times powers of two as tf32, and integers of 4 bits as those of 8.

The copy stands directly before the nest, inside the loops the operand depends on; on a GPU before a serial loop each iteration
of which would copy the same. Nothing in a contraction nest stores
to memory, so the loads pass no store.

Knobs: `stage_a`, `stage_b` (0 never, 1 always).

Refuses when the operand depends on both m and n, reads the accumulator or an ordered load, is staged already, or is
just as good in place: it needs no conversion and no mask, and is read once; or it is in panels already; or it is the
left one and its memory runs along k (rows of 64 elements or more are walked by the caches as well as a copy is); or its memory runs
along m, few panels of columns read it, and the first cache keeps what a register tile reads (rows a power of two apart share few
places there); or it is a small buffer. On a GPU also where it takes more than half of a block's shared memory.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let threads = ctx.target.has(Capability::Threads);
    let mut script = Script::new(p, ctx, log);
    if threads {
        for (buf, to) in operand_types::own_tiles(p, ctx) {
            script.log.applied(format!("{}, held as {}", p.bufs[buf].name, to.name()));
            script.step(Step::Retype { buf, to }).ok()?;
        }
    }
    let all: Vec<LoopRef> = sums(&script.kernel).into_iter().map(|(at, ..)| at).collect();
    for at in all {
        let Ok((_, nest)) = nest_around(&script.kernel, at) else { continue };
        let site = format!("contraction into {}", script.kernel.bufs[nest.roles.acc].name);
        let chosen = if threads { shared(&script.kernel, ctx, &nest) } else { packed(&script.kernel, ctx, &nest) };
        match chosen {
            Ok(choice) => stage(&mut script, at, &site, choice),
            Err(why) => script.log.skipped(site, why),
        }
    }
    if threads {
        before_loops(&mut script);
    }
    script.done()
}

/// The copies that are wanted of the operands of a nest.
#[derive(Default)]
struct Choice {
    /// Each operand with the forms that are tried in turn, or why it stays where it is.
    sides: Vec<(Side, Result<Vec<How>, String>)>,
    /// Something to say of both.
    skipped: Option<(&'static str, &'static str)>,
}

fn stage(script: &mut Script, at: LoopRef, site: &str, choice: Choice) {
    if let Some((of, why)) = choice.skipped {
        script.log.skipped(format!("{site}, {of}"), why);
    }
    for (side, forms) in choice.sides {
        let site = format!("{site}, operand {}", side.name());
        let tried = forms.and_then(|forms| {
            let mut refused = String::new();
            for how in forms {
                match script.try_step(Step::StageRead { at, side, how }) {
                    Ok(_) => return Ok(how),
                    Err(why) => refused = why,
                }
            }
            Err(refused)
        });
        match tried {
            Ok(How::Shared(Some(held))) => script.log.applied(format!("{site}, held as {}", held.name())),
            Ok(_) => script.log.applied(site),
            Err(why) => script.log.skipped(site, why),
        }
    }
}

/// Operands in the order in which register tiles read them. What depends on fewer of the loops around comes first: the other then stands
/// inside of these.
fn packed(kernel: &Kernel, ctx: &Context, nest: &Nest) -> Result<Choice, String> {
    let Some(acc) = num_type(kernel, nest.roles.acc) else { return Ok(Choice::default()) };
    let shape = nest.tile_shape(ctx, acc)?;
    let mut sides = vec![];
    for side in [Side::A, Side::B] {
        let operand = side.of(nest)?;
        let stmts = stage_read::computing(nest, &operand.slice);
        let facts = refs(&stmts);
        let choose = || {
            stage_read::separate(kernel, nest, &stmts, &facts, side)?;
            // Vectors are taken out of whole ones where elements lie close together.
            let run = |along| stage_read::piece(kernel, &stmts, along, affine::MOST_APART);
            let along_own = run(side.own(nest)) > run((nest.roles.k, nest.k));
            if let Some(why) = fine_in_place(kernel, ctx, nest, &stmts, side == Side::A, shape, along_own) {
                return Err(why.to_string());
            }
            Ok(vec![
                How::Windows,
                match side {
                    Side::B => How::Panels(shape.cols),
                    Side::A if along_own && shape.rows > 1 => How::Panels(shape.rows),
                    Side::A => How::Rows,
                },
            ])
        };
        sides.push((stage_read::depth(nest, &facts), (side, choose())));
    }
    sides.sort_by_key(|(depth, _)| *depth);
    Ok(Choice { sides: sides.into_iter().map(|(_, side)| side).collect(), skipped: None })
}

/// Operands that the threads of a block share.
fn shared(kernel: &Kernel, ctx: &Context, nest: &Nest) -> Result<Choice, String> {
    nest.alone()?;
    let (a, b) = nest.operands()?;
    let types = operand_types::types(&Known::of(kernel), ctx, nest, [&a, &b]);
    let skipped = types.err().map(|why| ("types of the matrix unit", why));
    let form = |side, held: Option<DType>| (side, Ok(vec![How::Shared(held)]));
    let [a, b] = types.unwrap_or_default();
    Ok(Choice { sides: vec![form(Side::A, a), form(Side::B, b)], skipped })
}

/// Puts stages that each iteration of a serial loop would fill with the same before it, from the innermost loop on.
fn before_loops(script: &mut Script) {
    let mut loops = vec![];
    look(&script.kernel, &mut |at, f| {
        if f.kind == LoopKind::Serial {
            loops.push(at);
        }
        true
    });
    for at in loops.into_iter().rev() {
        let Some(f) = script.find(at) else { continue };
        let said: Vec<String> = hoist::stages_alike(&script.kernel, &f)
            .into_iter()
            .map(|b| format!("{}, before the loop {}", script.kernel.bufs[b].name, script.kernel.axes[f.axis].name))
            .collect();
        if !said.is_empty() && script.step(Step::Hoist { at }).is_ok() {
            said.into_iter().for_each(|one| script.log.applied(one));
        }
    }
}

/// Why packing would gain nothing, if so.
fn fine_in_place(
    kernel: &Kernel,
    ctx: &Context,
    nest: &Nest,
    stmts: &[Stmt],
    left: bool,
    shape: TileShape,
    along_own: bool,
) -> Option<&'static str> {
    let knob = if left { ctx.knobs.stage_a } else { ctx.knobs.stage_b };
    let [only] = stmts else { return None };
    let plain = match only {
        Stmt::Load { mask, mem, .. } => mask.is_always() && mem.elem.bits() >= 8,
        Stmt::Read { .. } => true,
        _ => false,
    };
    // A vector of the right operand is read along n.
    if !plain || !(left || along_own) || knob == Some(true) {
        return None;
    }
    if knob == Some(false) {
        return Some("knob off");
    }
    let uses = if left { nest.n / shape.cols as u64 } else { nest.m.div_ceil(shape.rows as u64) };
    if uses <= 1 {
        return Some("each element is read once, in place");
    }
    if let Stmt::Load { mem, .. } = only {
        let few = left && along_own && uses <= FEW_READERS;
        let terms = (nest.roles.k, nest.k);
        if few && keeps_rows(ctx.target.cache(1), mem, shape.rows.into(), terms, &BTreeSet::new()) {
            return Some("the first cache keeps the rows of a tile, read in place");
        }
        if !left && in_panels(&mem.index, nest, shape) {
            return Some("it is in panels already");
        }
        if left && !along_own && nest.k >= LONG_ROW {
            return Some("its rows are read from end to end in place");
        }
    }
    if let Stmt::Read { buf, .. } = only {
        let bytes = kernel.bufs.get(*buf).map_or(u64::MAX, |b| b.shape.iter().product::<u64>() * b.element_bytes());
        if bytes <= ctx.target.cache(1) / 2 || left && !along_own {
            return Some("its buffer is small or already in order");
        }
    }
    None
}

/// True if the right operand lies in panels of whole tiles' columns, or all of it is one panel as wide as a tile.
fn in_panels(index: &Ix, nest: &Nest, shape: TileShape) -> bool {
    let columns = i64::from(shape.cols);
    let step = |axis| index.linear(axis).and_then(|(by, _)| by.as_const());
    let one = nest.n == u64::from(shape.cols) && step(nest.roles.n) == Some(1) && step(nest.roles.k) == Some(columns);
    one || affine::panels(index, nest.roles.n).is_some_and(|width| width % columns == 0)
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, contraction, kernel, refusals, schedule, text, with_knobs};

    fn plain() -> String {
        contraction([8, 32, 64], "A[i*64 + kk]", "B[kk*32 + j]")
    }

    #[test]
    fn operands_read_once_or_lying_well_stay_in_place() {
        assert_eq!(
            refusals("stage_inputs", &plain(), &context()),
            [
                "contraction into acc, operand a: each element is read once, in place",
                "contraction into acc, operand b: each element is read once, in place"
            ]
        );
        let local = plain().replace("8, 32", "128, 128").replace("0..8", "0..128").replace("0..32", "0..128");
        let local = local.replace("  local acc", "  local x: f32[128, 64]\n  local y: f32[64, 32]\n  local acc");
        let local = local.replace("load A[i*64 + kk]", "x[i, kk]").replace("load B[kk*32 + j]", "y[kk, j]");
        let why = refusals("stage_inputs", &local, &context());
        assert!(why.iter().all(|w| w.ends_with("its buffer is small or already in order")), "{why:?}");
        let (out, _) = apply("stage_inputs", &kernel(&local), &with_knobs(&["stage_b=1"]));
        assert!(text(&out).contains("b_pack: f32[4, 64, 32]"), "{}", text(&out));
    }

    #[test]
    fn long_rows_and_ready_panels_stay_in_place() {
        let large = plain().replace("8, 32", "128, 128").replace("0..8", "0..128").replace("0..32", "0..128");
        let panels = large.replace("B[kk*32 + j]", "B[(j//32)*2048 + kk*32 + j%32]");
        assert_eq!(
            refusals("stage_inputs", &panels, &context()),
            [
                "contraction into acc, operand a: its rows are read from end to end in place",
                "contraction into acc, operand b: it is in panels already"
            ]
        );
        let all = text(&schedule(&kernel(&panels), &context()));
        assert!(all.contains("load B[j1*2048 + kk*32 + j2_1]") && all.contains("j2_1 in 0..32"), "{all}");
        let short = large.replace("0..64", "0..32");
        let (out, log) = apply("stage_inputs", &kernel(&short), &context());
        assert_eq!(log.skipped, []);
        assert!(text(&out).contains("a_pack: f32[128, 32]"), "{}", text(&out));
    }

    #[test]
    fn rows_along_memory_stay_where_the_first_cache_keeps_them() {
        let along = |apart: u32| {
            let k = plain().replace("8, 32", "128, 64").replace("0..8", "0..128").replace("0..32", "0..64");
            k.replace("A[i*64 + kk]", &format!("A[kk*{apart} + i]"))
        };
        let why = refusals("stage_inputs", &along(196), &with_knobs(&["stage_b=0"]));
        assert_eq!(why[0], "contraction into acc, operand a: the first cache keeps the rows of a tile, read in place");
        // Rows of a power of two share few places of the cache. Panels that would do so, too, lie a line farther apart.
        let (out, _) = apply("stage_inputs", &kernel(&along(1024)), &context());
        assert!(text(&out).contains("a_pack: f32[16, 64, 8]"), "{}", text(&out));
        let long = along(1024).replace("0..64: reduce", "0..256: reduce");
        let (out, _) = apply("stage_inputs", &kernel(&long), &context());
        assert!(text(&out).contains("a_pack: f32[16, 258, 8]"), "{}", text(&out));
        // More panels of columns read all of it more often than a copy costs.
        let wide = along(196).replace("128, 64", "128, 256").replace("0..64: free", "0..256: free");
        let (out, _) = apply("stage_inputs", &kernel(&wide), &context());
        assert!(text(&out).contains("a_pack: f32[16, 64, 8]"), "{}", text(&out));
    }

    #[test]
    fn what_depends_on_both_axes_or_is_ordered_stays() {
        let both =
            plain().replace("A[i*64 + kk]", "A[i*64 + kk + j]").replace("0..8", "0..64").replace("8, 32", "64, 32");
        let why = refusals("stage_inputs", &both, &with_knobs(&["stage_b=0"]));
        assert_eq!(why[0], "contraction into acc, operand a: it depends on n");
        let ordered = plain().replace("load A[i*64 + kk]", "load A[i*64 + kk] acquire");
        let why = refusals("stage_inputs", &ordered, &context());
        assert_eq!(why[0], "contraction into acc, operand a: its load is ordered");
    }

    #[test]
    fn a_stage_stands_inside_the_loops_its_operand_depends_on() {
        let batched = r#"loop kernel k(A: ptr f16, B: ptr f16):
  local acc: f32[4, 32, 64]
  for b in 0..4: free
    for i in 0..32: free
      for j in 0..64: free
        for kk in 0..16: reduce contraction m=i n=j k=kk a=x b=y acc=acc
          x: f16 = load A[b*512 + i*16 + kk]
          y: f16 = load B[kk*64 + j]
          x1: f32 = f32(x)
          y1: f32 = f32(y)
          c: f32 = acc[b, i, j]
          d: f32 = fma(x1, y1, c)
          acc[b, i, j] = d
"#;
        let (out, _) = apply("stage_inputs", &kernel(batched), &context());
        let out = text(&out);
        let lines: Vec<&str> = out.lines().filter(|l| l.contains("stage") || l.contains("for b")).collect();
        assert_eq!(
            lines,
            ["  stage b_pack: f32[2, 16, 32]:", "  for b in 0..4: free", "    stage a_pack: f32[32, 16]:"]
        );
    }

    /// Rows anywhere, and columns in runs of 16: tables say where.
    const TABLES: &str = r#"loop kernel k(A: ptr f32, B: ptr f32, n: i32):
  local rows: i32[64]
  local columns: i32[64]
  local acc: f32[64, 64]
  for s in 0..n: serial
    for i in 0..64: free
      for j in 0..64: free
        for kk in 0..32: reduce contraction m=i n=j k=kk a=a b=b acc=acc
          row: i32 = rows[i]
          a: f32 = load A[row + kk + s*32] where kk < n - s*32 else 0.0
          first: i32 = columns[j//16*16]
          b: f32 = load B[(s*32 + kk)*n + first + j%16] where kk < n - s*32 else 0.0
          c: f32 = acc[i, j]
          d: f32 = fma(a, b, c)
          acc[i, j] = d
"#;

    #[test]
    fn rows_and_runs_that_tables_give_are_copied_by_vectors() {
        let all = text(&schedule(&kernel(TABLES), &context()));
        assert!(all.contains("a_pack_kept: f32[64, 64, 32]") && all.contains("b_pack: f32[2, 32, 32]"), "{all}");
        let lines: Vec<&str> = all.lines().map(str::trim).collect();
        let before = |load: &str| {
            let at = lines.iter().position(|l| l.contains(load)).unwrap_or_else(|| panic!("{load}\n{all}"));
            (lines[at - 2], lines[at - 1])
        };
        let (over, table) = before("= load A[row");
        assert!(over.contains("vector(16)") && table.contains("= rows[i"), "{all}");
        let (over, table) = before("= load B[");
        assert!(over.contains("in 0..16: free vector(16)") && table.contains("*16]"), "{all}");
        // The next step goes on in each row.
        assert!(lines.iter().any(|l| l.starts_with("prefetch A[row") && l.contains("(s + 1)*32")), "{all}");
    }
}
