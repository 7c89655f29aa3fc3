//! `trim_tiles`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::primitives::{Script, Step, trim};
use crate::tile::rules::{axis_site, mark_unroll};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "trim_tiles",
    doc: "\
Ends loops that fill a buffer at the last element that is read: a tile at the edge, or one with fewer rows than it has room for, is
computed only as far as its rows go.

```text
for i1 in 0..4: free                                for i1 in 0..min(4, (n + 7)//8): free
  for i2 in 0..8: free                                for i2 in 0..8: free
    acc[i1*8 + i2] = ..                      -->        acc[i1*8 + i2] = ..
for i in 0..min(32, n): free                        for i in 0..min(32, n): free
  store C[i] = acc[i]                                 store C[i] = acc[i]
```

Operands of the elements that are left out are not copied any more either.

Knob: `trim` (0 turns the rule off).

Refuses innermost loops, short loops (`mark_unroll`), loops that do more than write to buffers of the tile, and buffers that are read
up to different ends.
",
    run,
};

/// How often what became shorter makes more shorter: sums, what is copied for them, and what that was copied for.
const ROUNDS: usize = 3;

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !ctx.knobs.trim {
        log.skipped("kernel", "knob off");
        return None;
    }
    let mut script = Script::new(p, ctx, log);
    for _ in 0..ROUNDS {
        let ends = trim::ends(&script.kernel, &|f| !mark_unroll::is_short(f, ctx));
        if ends.is_empty() {
            break;
        }
        let sites: Vec<String> = ends.iter().map(|(at, _)| axis_site(&script.kernel, at.axis)).collect();
        let loops = ends.into_iter().map(|(at, _)| at).collect();
        if let Err(why) = script.step(Step::Trim { loops }) {
            script.log.skipped("a step", why);
            break;
        }
        script.log.applied.extend(sites);
    }
    script.done()
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text, with_knobs};

    const TILE: &str = "loop kernel k(n: i64 in 1..1025, A: ptr f32, C: ptr f32):
  local a: f32[32, 4]
  local acc: f32[32]
  for r in 0..32: free
    for k in 0..4: free
      x: f32 = load A[r*4 + k]
      a[r, k] = x
  for i1 in 0..4: free
    for i2 in 0..8: free
      y: f32 = a[i1*8 + i2, 3]
      acc[i1*8 + i2] = y
  for i in 0..min(32, n): free
    z: f32 = acc[i]
    store C[i] = z
";

    #[test]
    fn a_tile_is_computed_as_far_as_it_is_read() {
        let (out, log) = apply("trim_tiles", &kernel(TILE), &context());
        assert_eq!(log.applied, ["loop i1", "loop r"]);
        let made = text(&out);
        for line in ["for i1 in 0..min(4, (n + 7)//8): free", "for r in 0..min(4, (n + 7)//8)*8: free"] {
            assert!(made.contains(line), "{line}: {made}");
        }
        // Elements beyond the last one that is read are not filled any more.
        let rest = TILE.replace(
            "  for i1 in",
            "  for s in 5..32: free\n    for q in 0..20: free\n      b[s, q] = 0.0\n  for i1 in",
        );
        let rest = rest.replace("  local acc", "  local b: f32[32, 20]\n  local acc");
        let rest = format!("{rest}  for t in 0..5: free\n    u: f32 = b[t, 0]\n    store C[t] = u\n");
        let made = text(&apply("trim_tiles", &kernel(&rest), &context()).0);
        assert!(!made.contains("for s") && made.contains("for t"), "{made}");
    }

    #[test]
    fn what_is_read_elsewhere_is_computed() {
        let all = TILE.replace("0..min(32, n)", "0..32");
        let other =
            TILE.replace("    store C[i] = z\n", "    w: f32 = acc[31 - i]\n    v: f32 = z + w\n    store C[i] = v\n");
        let apart = TILE.replace("acc[i1*8 + i2] = y", "acc[i1 + i2*4] = y");
        let short = TILE.replace("0..8: free", "0..2: free").replace("*8", "*2");
        let stores = TILE.replace("      acc[i1*8 + i2] = y", "      acc[i1*8 + i2] = y\n      store C[i1*8 + i2] = y");
        for program in [&all, &other, &apart, &stores] {
            let (_, log) = apply("trim_tiles", &kernel(program), &context());
            assert_eq!(log.applied, Vec::<String>::new(), "{program}");
        }
        let (_, log) = apply("trim_tiles", &kernel(&short), &context());
        assert_eq!(log.applied, ["loop r"], "what is written out stays");
        assert_eq!(refusals("trim_tiles", TILE, &with_knobs(&["trim=0"])), ["kernel: knob off"]);
    }
}
