//! `split_inner_for_swizzle`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::primitives::{Script, Step, layout};
use crate::tile::{Context, boxes, conflicts};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "split_inner_for_swizzle",
    doc: "\
Splits the rows of a buffer that TMA fills into parts of 128 bytes (64 or 32 where rows are not a whole number of those), which lie one
behind the other: a swizzle exchanges pieces of no longer rows. Each part is a box of its own.

```text
stage b_s: f16[64, 128] shared tensor:           stage b_s: f16[2, 64, 64] shared tensor:
  for k in 0..64: for j in 0..128:                 for jp in 0..2: for k in 0..64: for j in 0..64:
    v = load w[(kt*64 + k)*N + jb*128 + j]  -->      v = load w[(kt*64 + k)*N + jb*128 + jp*64 + j]
    b_s[k, j] = v                                    b_s[jp, k, j] = v
... b_s[kk, x]                                   ... b_s[x//64, kk, x%64]
```

Knob: `swizzle` (0 turns the rule off).

Refuses rows that are not longer, and buffers whose accesses would not take fewer passes with a swizzle.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let mut script = Script::new(p, ctx, log);
    for buf in boxes::filled(p) {
        let name = &p.bufs[buf].name;
        match choose(&script.kernel, ctx, buf) {
            Ok(Some(step)) => {
                if let Err(why) = script.try_step(step) {
                    script.log.skipped(name, why);
                } else if let [parts, _, cols] = script.kernel.bufs[buf].shape[..] {
                    script.log.applied(format!("{name}: {parts} boxes of {cols} columns"));
                }
            }
            Ok(None) => {}
            Err(why) => script.log.skipped(name, why),
        }
    }
    script.done()
}

/// The bytes of the parts of a row of more bytes.
pub fn part(row: u64) -> Option<u64> {
    [128, 64, 32].into_iter().find(|part| row.is_multiple_of(*part)).filter(|part| row > *part)
}

/// How the rows of a buffer are cut; `None` where they are good as they are.
fn choose(p: &Kernel, ctx: &Context, buf: BufId) -> Result<Option<Step>, String> {
    let b = &p.bufs[buf];
    let ([_, _], Some(bytes)) = (&b.shape[..], part(layout::row(b))) else { return Ok(None) };
    let accesses = |k: &Kernel| conflicts::accesses(k).remove(&buf).unwrap_or_default();
    let (now, least) = conflicts::passes(&accesses(p), b);
    if now == least {
        return Ok(None);
    }
    if !ctx.knobs.swizzle {
        return Err("knob off".to_string());
    }
    let columns = (bytes / b.element_bytes().max(1)) as u32;
    let mut then = p.clone();
    layout::in_boxes(&mut then, buf, columns)?;
    let with = Buf { swizzle: bytes as u32, ..then.bufs[buf].clone() };
    let (passes, _) = conflicts::passes(&accesses(&then), &with);
    if passes >= now {
        return Err(format!("no swizzle takes fewer than {now} passes then"));
    }
    Ok(Some(Step::Box { buf, columns }))
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, schedule, text};

    pub(crate) const PRODUCT: &str = r#"loop kernel k(A: ptr f16 div 16, B: ptr f16 div 16, C: ptr f32 div 16):
  local acc: f32[64, 128]
  for i0 in 0..64: free
    for j0 in 0..128: free
      acc[i0, j0] = 0.0
  for k in 0..8: serial
    for i in 0..64: free
      for j in 0..128: free
        for kk in 0..64: reduce contraction m=i n=j k=kk a=a0 b=b0 acc=acc
          a0: f16 = load A[(bx*64 + i)*512 + (k*64 + kk)] where bx*64 + i < 100 and k*64 + kk < 512 else 0.0
          b0: f16 = load B[(k*64 + kk)*304 + (by*128 + j)] where k*64 + kk < 512 and by*128 + j < 300 else 0.0
          c0: f32 = acc[i, j]
          a1: f32 = f32(a0)
          b1: f32 = f32(b0)
          c1: f32 = fma(a1, b1, c0)
          acc[i, j] = c1
  for i1 in 0..64: free
    for j1 in 0..128: free
      c: f32 = acc[i1, j1]
      store C[(bx*64 + i1)*304 + (by*128 + j1)] = c where bx*64 + i1 < 100 and by*128 + j1 < 300
"#;

    #[test]
    fn long_rows_are_boxes_of_their_own() {
        let made = text(&schedule(&kernel(PRODUCT), &gpu(&["wgmma=0"])));
        let stage = "    stage b_s: f16[2, 64, 64] shared swizzle(128) tensor:\n";
        assert!(made.contains(stage), "{made}");
        for part in ["for j1p in 0..2: free", "b_s[j1p, ", "b_s[t_1//32%2, kk1_1, "] {
            assert!(made.contains(part), "{part} is not in\n{made}");
        }
        // The rows of the left operand are as long as a swizzle takes.
        assert!(made.contains("stage a_s: f16[64, 64] shared swizzle(128) tensor:"), "{made}");
    }

    #[test]
    fn without_a_swizzle_there_is_nothing_to_split_for() {
        let off = gpu(&["swizzle=0"]);
        let made = schedule(&kernel(PRODUCT), &off);
        assert!(!text(&made).contains("[2, 64, 64]"), "{}", text(&made));
        let (placed, _) = apply("stage_inputs", &kernel(PRODUCT), &off);
        assert_eq!(refusals("split_inner_for_swizzle", &text(&placed), &off), Vec::<String>::new());
    }
}
