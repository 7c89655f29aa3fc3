//! `swizzle`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::conflicts;
use crate::tile::primitives::{self, Step, layout};
use crate::tile::{Context, boxes};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "swizzle",
    doc: "\
Exchanges the 16-byte pieces of the rows that TMA fills, so that the elements that the lanes of a warp touch at once lie in different
banks. TMA does it on the way; it cannot leave the gaps that `pad_smem` makes.

```text
stage b_s: f32[128, 32] shared tensor: ...       stage b_s: f32[128, 32] shared swizzle(128) tensor: ...
for t in 0..256: free thread              -->    for t in 0..256: free thread
  x = b_s[t%16, 0..4]    8 lanes, 4 banks          x = b_s[t%16, 0..4]    8 lanes, 32 banks
```

Piece p of row r lies where piece p xor r would. Subscripts stay what they are; addresses follow when the kernel is lowered.
Passes are counted as `pad_smem` counts them.

Knob: `swizzle` (0 turns the rule off).

Refuses rows that are not 32, 64 or 128 bytes long, buffers that are not a multiple of eight times as long, and buffers without bank
conflicts.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let filled = boxes::filled(p);
    let mut steps = vec![];
    for (buf, accesses) in conflicts::accesses(p).into_iter().filter(|(buf, _)| filled.contains(buf)) {
        let b = &p.bufs[buf];
        let (now, least) = conflicts::passes(&accesses, b);
        if now == least {
            continue;
        }
        let bytes = layout::row(b) as u32;
        let (passes, _) = conflicts::passes(&accesses, &Buf { swizzle: bytes, ..b.clone() });
        let why = match layout::can_swizzle(p, buf, bytes) {
            _ if !ctx.knobs.swizzle => "knob off".to_string(),
            Err(why) => why,
            Ok(()) if passes >= now => format!("no swizzle takes fewer than {now} passes"),
            Ok(()) => {
                log.applied(format!("{}: {passes} passes instead of {now}", b.name));
                steps.push(Step::Swizzle { buf, bytes });
                continue;
            }
        };
        log.skipped(&b.name, why);
    }
    steps
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const READ: &str = r#"tile kernel k(A: ptr f32 div 16, x: ptr f32):
  for k in 0..8: serial
    stage s: f32[64, 32] shared tensor:
      for i in 0..64: free
        for j in 0..32: free
          a: f32 = load A[i*256 + (k*32 + j)] where i < 64 and k*32 + j < 256 else 0.0
          s[i, j] = a
    for t in 0..64: free thread
      for g in 0..8: free
        local r: f32[4]
        for v in 0..4: free vector(4)
          b: f32 = s[t, g*4 + v]
          r[v] = b
"#;

    #[test]
    fn rows_below_each_other_lie_in_different_banks() {
        let (out, log) = apply("swizzle", &kernel(READ), &gpu(&[]));
        assert_eq!(log.applied, ["s: 256 passes instead of 2048"]);
        assert!(text(&out).contains("stage s: f32[64, 32] shared swizzle(128) tensor:"), "{}", text(&out));
        for columns in [8, 16] {
            let short =
                READ.replace("[64, 32]", &format!("[64, {columns}]")).replace("0..32", &format!("0..{columns}"));
            let short = short.replace("0..8: free\n        local", &format!("0..{}: free\n        local", columns / 4));
            let (out, _) = apply("swizzle", &kernel(&short), &gpu(&[]));
            assert!(text(&out).contains(&format!("swizzle({})", columns * 4)), "{}", text(&out));
        }
    }

    #[test]
    fn others_stay() {
        let good = READ.replace("s[t, g*4 + v]", "s[g, t//32*4 + v]");
        assert_eq!(refusals("swizzle", &good, &gpu(&[])), Vec::<String>::new());
        assert_eq!(refusals("swizzle", READ, &gpu(&["swizzle=0"])), ["s: knob off"]);
        let long = READ.replace("[64, 32]", "[64, 64]").replace("0..32", "0..64");
        assert_eq!(refusals("swizzle", &long, &gpu(&[])), ["s: its rows have 256 bytes; 32, 64 and 128 are swizzled"]);
        // Each row is a box of its own, of the same elements.
        let same = READ.replace("A[i*256 + (k*32 + j)] where i < 64 and k*32", "A[k*32 + j] where k*32");
        let same = same.replace("f32[64,", "f32[32,").replace("0..64", "0..32");
        assert_eq!(
            refusals("swizzle", &same, &gpu(&[])),
            ["s: boxes of 128 bytes with a swizzle do not follow each other"]
        );
        // Nor are such boxes cut into narrower ones.
        let long = same.replace("[32, 32]", "[32, 64]").replace("j in 0..32", "j in 0..64").replace("k*32", "k*64");
        assert_eq!(refusals("split_inner_for_swizzle", &long, &gpu(&[])), ["s: each of its rows is a box already"]);
    }
}
