//! `pad_smem`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::conflicts;
use crate::tile::heuristics::pad_smem::MOST_STEPS;
use crate::tile::primitives::layout::{self, WIDEST};
use crate::tile::primitives::{self, Step};
use crate::tile::{Context, boxes};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "pad_smem",
    doc: "\
Makes the rows of a buffer in shared memory longer than their elements need, so that the elements that the lanes of a warp touch at
once lie in different banks.

```text
local s: f32[32, 32] shared                      local s: f32[32, 33] shared
for t in 0..32: free thread               -->    for t in 0..32: free thread
  x = s[t, 0]        32 lanes, one bank            x = s[t, 0]        32 lanes, 32 banks
```

For every access of the buffer by threads, the passes that one warp's request takes are counted, as the simulator counts
them; a loop that runs longer weighs more. The least padding with the fewest passes is taken. Rows that are moved several
elements at once stay multiples of 16 bytes.

Knob: `pad_smem` (0 turns the rule off).

Refuses buffers of one dimension, buffers that TMA fills (it leaves no gaps), buffers without bank conflicts, and padding that does
not fit shared memory.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let filled = boxes::filled(p);
    let mut room = layout::room(p, ctx);
    let mut steps = vec![];
    for (buf, accesses) in conflicts::accesses(p).into_iter().filter(|(buf, _)| !filled.contains(buf)) {
        let b = &p.bufs[buf];
        let Some((width, rows)) = b.shape.split_last().filter(|(_, rows)| rows.iter().product::<u64>() > 1) else {
            continue;
        };
        let unit = if accesses.iter().any(|a| a.is_wide()) { WIDEST } else { 4 };
        let step = unit.div_ceil(b.element_bytes()).max(1);
        let cost = |pad| conflicts::passes(&accesses, &Buf { shape: [rows, &[width + pad]].concat(), ..b.clone() });
        let (now, least) = cost(0);
        if now == least {
            continue;
        }
        if !ctx.knobs.pad_smem {
            log.skipped(&b.name, "knob off");
            continue;
        }
        if b.swizzle != 0 {
            log.skipped(&b.name, "its rows are swizzled");
            continue;
        }
        let better = (1..=MOST_STEPS).map(|n| n * step).map(|pad| (cost(pad).0, pad)).min().filter(|(c, _)| *c < now);
        let Some((passes, pad)) = better else {
            log.skipped(&b.name, format!("no padding takes fewer than {now} passes where {least} would do"));
            continue;
        };
        let more = rows.iter().product::<u64>() * pad * b.element_bytes();
        if more > room {
            log.skipped(&b.name, format!("there is no room for {more} more bytes of shared memory"));
            continue;
        }
        room -= more;
        log.applied(format!("{}: {passes} passes instead of {now}", b.name));
        steps.push(Step::Pad { buf, elements: pad as u32 });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::layout;
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const COLUMN: &str = r#"tile kernel k(x: ptr f32):
  local s: f32[32, 32] shared
  for t in 0..32: free thread
    for e in 0..32: free
      s[e, t] = 1.0
  for u in 0..32: free thread
    for k in 0..32: free
      v: f32 = s[u, k]
      store x[k*32 + u] = v
"#;

    #[test]
    fn swizzled_rows_keep_their_length() {
        let swizzled = COLUMN.replace("f32[32, 32] shared", "f32[32, 32] shared swizzle(32)");
        let swizzled =
            swizzled.replace("f32[32, 32]", "f32[32, 8]").replace("0..32: free\n      v", "0..8: free\n      v");
        let swizzled = swizzled.replace("0..32: free thread\n    for e", "0..8: free thread\n    for e");
        assert_eq!(refusals("pad_smem", &swizzled, &gpu(&[])), ["s: its rows are swizzled"]);
    }

    #[test]
    fn columns_and_rows_lie_in_different_banks() {
        let (out, log) = apply("pad_smem", &kernel(COLUMN), &gpu(&[]));
        assert_eq!(log.applied, ["s: 64 passes instead of 1056"]);
        assert!(text(&out).contains("local s: f32[32, 33] shared"), "{}", text(&out));
        assert_eq!(refusals("pad_smem", COLUMN, &gpu(&["pad_smem=0"])), ["s: knob off"]);
    }

    #[test]
    fn rows_that_are_moved_in_groups_stay_aligned() {
        let wide = COLUMN.replace(
            "    for k in 0..32: free\n      v: f32 = s[u, k]\n",
            "    for k in 0..4: free vector(4)\n      v: f32 = s[u, k]\n",
        );
        let (out, log) = apply("pad_smem", &kernel(&wide), &gpu(&[]));
        assert_eq!(log.applied, ["s: 36 passes instead of 64"]);
        assert!(text(&out).contains("local s: f32[32, 36] shared"), "{}", text(&out));
        let refused = layout::pad(&mut kernel(&wide), &gpu(&[]), out.bufs.keys().next().unwrap(), 1).unwrap_err();
        assert_eq!(refused, "its rows are moved several elements at once, and 132 bytes are not a multiple of 16");
    }

    #[test]
    fn what_meets_in_no_bank_stays_as_it_is() {
        let good = COLUMN.replace("s[u, k]", "s[k, u]");
        assert_eq!(refusals("pad_smem", &good, &gpu(&[])), Vec::<String>::new());
    }
}
