//! `cluster_blocks`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::primitives::{self, Step, blocks};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "cluster_blocks",
    doc: "\
Makes clusters of blocks that are neighbours along x: an operand that is the same for all of them is read from L2 once, by TMA
multicast, which brings it to the shared memory of each.

```text
for jb in 0..32: free block(y)                        for jb in 0..32: free block(y)
  for ib in 0..32: free block(x)                 -->    for ib in 0..32: free block(x, clusters of 2)
    for kt in 0..64: serial pipeline(3, roles)            for kt in 0..64: serial pipeline(3, roles)
      stage a_s: f16[128, 64] shared tensor: ...            stage a_s: f16[128, 64] shared tensor: ...
      stage b_s: f16[64, 128] shared tensor: ...            stage b_s: f16[64, 128] shared tensor: ...
```

Blocks of one column have the same slab of the right operand. One of them copies it to all; the warp that fills waits until the
warps of all blocks have read the generation before. The copies and the waits are derived when the loop is lowered.

Knob: `cluster`, the blocks of a cluster; 1 makes none, which is the default: clusters need a warp that fills, which no estimate
weighs.

Refuses pipelines without a warp that fills them (`warp_specialize`), and pipelines that have a slot for each iteration; operands
that no two blocks share; grids and groups of blocks that are not made of whole clusters.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let Some(blocks) = ctx.knobs.cluster.filter(|n| *n > 1) else { return vec![] };
    // A nest without a pipeline is not worth a message.
    let Some((over, alike)) = blocks::alike(p, ctx, blocks) else { return vec![] };
    let Some((at, innermost)) = over.last() else { return vec![] };
    let site = axis_site(p, innermost.axis);
    let said = alike.map(|alike| format!("{blocks} blocks have the same {}", alike.join(" and ")));
    if log.described(site, said) { vec![Step::Cluster { at: *at, blocks }] } else { vec![] }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    /// The slab is that of a column of blocks.
    const COLUMNS: &str = r#"tile kernel k(A: ptr f16 div 16, C: ptr f32) open:
  for y in 0..4: free block(y)
    for x in 0..6: free block(x)
      local sum: f32[64, 1] private
      for i in 0..64: free thread
        sum[i, 0] = 0.0
      for k in 0..8: serial pipeline(2, roles)
        stage s: f16[64, 32] shared tensor:
          for r in 0..64: free
            for v in 0..32: free
              a: f16 = load A[(y*64 + r)*256 + (k*32 + v)] where y*64 + r < 250 and k*32 + v < 256 else 0.0
              s[r, v] = a
        for u in 0..64: free thread
          b: f16 = s[63 - u, 7]
          b1: f32 = f32(b)
          c: f32 = sum[u, 0]
          d: f32 = b1 + c
          sum[u, 0] = d
      for w in 0..64: free thread
        e: f32 = sum[w, 0]
        store C[(y*6 + x)*64 + w] = e
"#;

    #[test]
    fn neighbours_that_share_an_operand_form_a_cluster() {
        let (out, log) = apply("cluster_blocks", &kernel(COLUMNS), &gpu(&["cluster=2"]));
        assert_eq!(log.applied, ["loop x: 2 blocks have the same s"]);
        assert_eq!(text(&out), text(&kernel(COLUMNS)).replace("block(x)", "block(x, clusters of 2)"));
        let grouped = COLUMNS.replace("block(x)", "block(x, groups of 2)");
        let (out, _) = apply("cluster_blocks", &kernel(&grouped), &gpu(&["cluster=2"]));
        assert!(text(&out).contains("block(x, groups of 2, clusters of 2)"));
    }

    #[test]
    fn others_do_not() {
        let why = |from: &str, to: &str, cluster: &str| {
            assert!(COLUMNS.contains(from), "{from}");
            let all = refusals("cluster_blocks", &COLUMNS.replace(from, to), &gpu(&[cluster]));
            all.join("\n").replace("loop x: ", "")
        };
        assert_eq!(why("y*64 + r", "x*64 + r", "cluster=2"), "no two of its blocks have the same of an operand");
        assert_eq!(why("(2, roles)", "(2)", "cluster=2"), "no warp of its own fills the pipeline");
        assert_eq!(why("0..6", "0..7", "cluster=2"), "its blocks are not known to make whole clusters of 2");
        assert_eq!(
            why("block(x)", "block(x, groups of 3)", "cluster=2"),
            "groups of 3 blocks do not make whole clusters of 2"
        );
        assert_eq!(
            why("k in 0..8", "k in 0..2", "cluster=2"),
            "a warp fills its pipeline, which has a slot for each iteration: nothing would be fetched ahead"
        );
        assert_eq!(
            why("0..6", "0..8", "cluster=8"),
            "8 of its blocks have more threads or mbarriers than a cluster may have"
        );
        // Nobody asks for one.
        assert_eq!(why("", "", "cluster=1"), "");
        let none: [&str; 0] = [];
        assert_eq!(refusals("cluster_blocks", COLUMNS, &gpu(&[])), none);
        let (clustered, _) = apply("cluster_blocks", &kernel(COLUMNS), &gpu(&["cluster=2"]));
        let persists = refusals("persist_blocks", &text(&clustered), &gpu(&["persist=1"]));
        assert_eq!(persists, ["loop y: its blocks form clusters"]);
    }
}
