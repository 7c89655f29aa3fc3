//! `tma_copy`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::matrix;
use crate::tile::primitives::fill::{self, Engine};
use crate::tile::primitives::{Script, Step};
use crate::tile::rules::split_inner_for_swizzle;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "tma_copy",
    doc: "\
Fills the stages of a serial loop by copies of boxes, each of which one thread begins; no thread computes an address or
waits for an element.

```text
for kt in 0..112: serial                         for kt in 0..112: serial
  stage a_s: f32[64, 32] shared:                   stage a_s: f32[64, 32] shared tensor:
    for i in 0..64: for kk in 0..32:        -->      for i in 0..64: for kk in 0..32:
      v = load x[ib*229376 + i*3584 + kt*32 + kk]      v = load x[(ib*64 + i)*3584 + (kt*32 + kk)]
      a_s[i, kk] = v                                     where ib*64 + i < 512 and kt*32 + kk < 3584 else 0
                                                       a_s[i, kk] = v
```

The meaning of the stage stays written out; its masks are the extents of the tensor, past which TMA writes zeros. A dimension
without a mask goes as far as the loops and the grid do. The launch tests that strides are positive.

Knob: `tma` (0 turns the rule off).

Refuses copies that are not a box of a tensor: copies that compute, masks that are more than the ends of dimensions, arrays or rows
that are not known to begin at multiples of 16 bytes, more than 256 elements along a dimension; rows that threads would read
below each other and that are not a multiple of 32 bytes, since TMA leaves no gaps between rows and a swizzle exchanges
pieces of such rows only; loops in other loops than the one over tiles that a program's block takes in turn; kernels that store before the
loop, and between tiles those that may store to the array itself.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let mut bufs = vec![];
    for stage in fill::boxes(p, ctx) {
        let name = p.bufs[stage.buf].name.clone();
        let why = match &stage.copy {
            _ if !ctx.knobs.tma => Err("knob off".to_string()),
            Err(why) => Err(why.clone()),
            Ok(_) => banks(p, ctx, stage.buf, stage.readers),
        };
        if log.outcome(name, why).is_some() {
            bufs.push(stage.buf);
        }
    }
    if bufs.is_empty() {
        return None;
    }
    let mut script = Script::new(p, ctx, log);
    script.step(Step::Fill { bufs, by: Engine::Tma }).ok()?;
    script.done()
}

/// Says why rows that threads read below each other would share banks, swizzled or not.
fn banks(kernel: &Kernel, ctx: &Context, buf: BufId, readers: &[Stmt]) -> Result<(), String> {
    let b = &kernel.bufs[buf];
    let row = b.shape.last().map_or(0, |n| n * b.element_bytes());
    let (down, products) = (down(buf, readers), products(kernel, ctx, buf, readers));
    // Rows that are longer are split.
    let split = (!down || products) && split_inner_for_swizzle::part(row).is_some() && ctx.knobs.swizzle;
    if (down || products) && !(matches!(row, 32 | 64 | 128) || split) {
        return Err(format!("threads read its rows below each other, and rows of {row} bytes are not swizzled"));
    }
    Ok(())
}

/// True if the matrix unit, which reads eight rows at once, multiplies the elements of a buffer.
fn products(kernel: &Kernel, ctx: &Context, buf: BufId, readers: &[Stmt]) -> bool {
    let reads = |f: &For| f.body.iter().any(|s| matches!(s, Stmt::Read { buf: b, .. } if *b == buf));
    let taken = |acc| matrix::taken(kernel, ctx, buf, acc).is_some();
    ctx.knobs.tensor_core && walk::contractions(readers).any(|(f, c)| reads(f) && taken(c.acc))
}

/// True if a contraction reads a buffer whose rows run along its sum: threads have different rows, so they read elements that lie
/// below each other.
fn down(buf: BufId, readers: &[Stmt]) -> bool {
    walk::contractions(readers).any(|(f, c)| {
        let along = |ix: &Ix| c.k.iter().any(|k| ix.has_axis(*k));
        f.body.iter().any(|s| matches!(s, Stmt::Read { buf: b, idx, .. } if *b == buf && idx.last().is_some_and(along)))
    })
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const SLAB: &str = r#"tile kernel k(A: ptr f32 div 16, C: ptr f32, m: i32, s: i32 div 4):
  for k in 0..8: serial
    stage s1: f32[64, 32] shared:
      for i in 0..64: free
        for g in 0..8: free
          for v in 0..4: free vector(4)
            a: f32 = load A[(bx*64 + i)*256 + k*32 + (g*4 + v)]
            s1[i, g*4 + v] = a
    for u in 0..64: free
      x: f32 = s1[63 - u, 0]
      store C[u] = x
"#;

    fn copied(from: &str, to: &str) -> String {
        let slab = SLAB.replace("      store C[u] = x\n", "");
        assert!(slab.contains(from), "{from}");
        slab.replace(from, to)
    }

    /// The load that the rule makes.
    fn load(slab: &str) -> String {
        let (out, log) = apply("tma_copy", &kernel(slab), &gpu(&[]));
        assert_eq!(log.applied, ["s1"], "{:?}", log.skipped);
        let out = text(&out);
        assert!(out.contains("stage s1: f32[64, 32] shared tensor:"), "{out}");
        let line = out.lines().find(|l| l.contains("load")).unwrap_or_default();
        line.trim().trim_start_matches("a: f32 = load ").to_string()
    }

    #[test]
    fn the_extents_of_a_tensor_are_in_its_masks() {
        let launched =
            copied("k*32 + (g*4 + v)]", "k*32 + (g*4 + v)] where bx*64 + i < m and k*32 + g*4 < 200 else 0.0");
        let rows = "A[(bx*64 + i)*256 + (k*32 + g)] where bx*64 + i < m and k*32 + g < 200 else 0.0";
        assert_eq!(load(&launched), rows);
        // Strides that are known at the launch.
        let strides = launched.replace("*256", "*s");
        assert_eq!(load(&strides), rows.replace("*256", "*s"));
        // Batches that lie as far apart as the launch says.
        let batches = launched.replace("A[", "A[by*m*256 + ").replace("where bx", "where by < s and bx");
        assert_eq!(
            load(&batches),
            format!("A[by*(m*256) + {}", rows.trim_start_matches("A[")).replace("where", "where by < s and")
        );
        // Nothing steps along a dimension of one element.
        let one = strides.replace("< m ", "< 1 ").replace("s: i32 div 4", "s: i32");
        assert_eq!(load(&one), rows.replace("*256", "*4").replace("< m ", "< 1 "));
    }

    #[test]
    fn dimensions_without_masks_go_as_far_as_the_loops() {
        let open = copied(
            "tile kernel k(A: ptr f32 div 16, C: ptr f32, m: i32, s: i32 div 4):",
            "tile kernel k(A: ptr f32) open:",
        );
        let inner: String = open.lines().skip(1).map(|l| format!("    {l}\n")).collect();
        let grid = "  for b in 0..3: free block(y)\n    for ib in 0..5: free block(x)\n";
        let open = format!("tile kernel k(A: ptr f32) open:\n{grid}{inner}");
        let of = |index: &str, mask: &str| {
            let old = "(bx*64 + i)*256 + k*32 + (g*4 + v)]";
            assert!(open.contains(old), "{open}");
            load(&open.replace(old, &format!("{index} + k*32 + (g*4 + v)]{mask}")))
        };
        assert_eq!(
            of("(ib*64 + i)*256", ""),
            "A[(ib*64 + i)*256 + (k*32 + g)] where ib*64 + i < 320 and k*32 + g < 256 else 0.0"
        );
        // Two dimensions that are contiguous in memory become one, unless the inner one ends early.
        assert_eq!(
            of("b*81920 + ib*16384 + i*256", ""),
            "A[(b*320 + ib*64 + i)*256 + (k*32 + g)] where b*320 + ib*64 + i < 960 and k*32 + g < 256 else 0.0"
        );
        assert_eq!(
            of("b*76800 + ib*16384 + i*256", " where ib*64 + i < 300 else 0.0"),
            "A[b*76800 + (ib*64 + i)*256 + (k*32 + g)] where b < 3 and ib*64 + i < 300 and k*32 + g < 256 else 0.0"
        );
    }

    /// The launch knows the grid, the strides, and how long the loop is.
    #[test]
    fn dimensions_without_masks_go_as_far_as_the_grid_and_the_launch() {
        let given = copied("m: i32, s: i32 div 4", "n: i32, h: i32, s: i32 div 4, z: i32 div 8")
            .replace("k in 0..8", "k in 0..n");
        let of = |from: &str| {
            let place = "(bx*64 + i)*256 + k*32 + (g*4 + v)]";
            assert!(given.contains(place));
            load(&given.replace(place, from))
        };
        let part = "k*32 + (g*4 + v)]";
        assert_eq!(
            of(&format!("by*z + (bx*64 + i)*s + {part}")),
            "A[by*z + (bx*64 + i)*s + (k*32 + g)] where by < gy and bx*64 + i < gx*64 and k*32 + g < max(n*32, 1) else 0.0"
        );
        // A batch of heads, rows that have an end.
        assert_eq!(
            of(&format!("by//h*z + by%h*(s*8) + (bx*64 + i)*s + {part} where bx*64 + i < n else 0.0")),
            "A[by%h*(s*8) + by//h*z + (bx*64 + i)*s + (k*32 + g)] where by%h < h and by//h < (gy - 1)//h + 1 \
             and bx*64 + i < n and k*32 + g < max(n*32, 1) else 0.0"
        );
        // The launch tests what TMA demands.
        let out = text(&apply("tma_copy", &kernel(&given.replace("(bx*64 + i)*256", "(bx*64 + i)*s")), &gpu(&[])).0);
        for needed in ["require 1 <= s <= 274877906943", "require 1 <= gx*64 <= 4294967296"] {
            assert!(out.contains(needed), "{needed} is not in\n{out}");
        }
        for from in [format!("h*z + (bx*64 + i)*s + {part}"), format!("(bx - 1)*z + (bx*64 + i)*s + {part}")] {
            let slab = given.replace("(bx*64 + i)*256 + k*32 + (g*4 + v)]", &from);
            assert_eq!(refusals("tma_copy", &slab, &gpu(&[])), ["s1: how far the array goes is not known"], "{from}");
        }
    }

    /// The results of one tile are stored before the operands of the next are copied.
    #[test]
    fn loops_over_tiles_are_as_blocks() {
        let (head, slab) = SLAB.split_once('\n').unwrap();
        let slab = slab.replace("bx*64", "t*64").replace("      store C[u] = x\n", "");
        let slab: String = slab.lines().map(|l| format!("  {l}\n")).collect();
        let stored = |array: &str| {
            format!(
                "{head}\n  for t in 0..m: serial\n{slab}    for w in 0..64: free\n      store {array}[t*64 + w] = 1.0\n"
            )
        };
        let mut apart = gpu(&[]);
        apart.assume.no_alias = true;
        let (out, log) = apply("tma_copy", &kernel(&stored("C")), &apart);
        assert_eq!(log.applied, ["s1"], "{:?}", log.skipped);
        assert!(text(&out).contains("t*64 + i < max(m*64, 1) and k*32 + g < 256"), "{}", text(&out));
        let why = ["s1: the kernel stores to global memory before"];
        let alike = apply("tma_copy", &kernel(&stored("A")), &apart).1.skipped;
        assert_eq!(alike.iter().map(|(site, why)| format!("{site}: {why}")).collect::<Vec<_>>(), why);
        assert_eq!(refusals("tma_copy", &stored("C"), &gpu(&[])), why);
    }

    #[test]
    fn what_is_no_box_is_refused() {
        let all = "k*32 + (g*4 + v)]";
        let two = "k*32 + (g*4 + v)] where bx*64 + i < m and";
        for (from, to, why) in [
            ("s1[i, g*4 + v] = a", "s1[63 - i, g*4 + v] = a", "it does not fill the buffer in order"),
            (all, "(k - 1)*32 + (g*4 + v)]", "how far the array goes is not known"),
            (all, &format!("{two} k*32 + g*4 < 200 else 1.0"), "masked elements are something else than 0"),
            (all, &format!("{two} g*4 - i < 200 else 0.0"), "its mask is more than the ends of its dimensions"),
            (all, &format!("{two} bx*64 + i < 9 else 0.0"), "its mask is more than the ends of its dimensions"),
            ("(bx*64 + i)*256", "(bx*64 + i%8)*256", "its elements lie at no fixed distance"),
            ("for k in 0..8", "for k in 1..8", "its loop does not count from 0 in steps of 1"),
            ("  for k in", "  store C[0] = 1.0\n  for k in", "the kernel stores to global memory before"),
            (
                all,
                &format!("{two} k*32 + g*4 < 200 else 0.0").replace("A[", "A["),
                "its array or its rows are not known to begin at multiples of 16 bytes",
            ),
        ] {
            let mut slab = copied(from, to);
            if why.starts_with("its array") {
                slab = slab.replace("div 16", "div 8");
            }
            assert_eq!(refusals("tma_copy", &slab, &gpu(&[])), [format!("s1: {why}")], "{slab}");
        }
        assert_eq!(refusals("tma_copy", SLAB, &gpu(&[])), ["s1: the kernel stores to global memory before"]);
        assert_eq!(refusals("tma_copy", &copied("A[", "A["), &gpu(&["tma=0"])), ["s1: knob off"]);
    }
}
