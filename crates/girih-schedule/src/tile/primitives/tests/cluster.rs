use super::*;

/// Rows that are reduced, and then divided by what that comes to.
const SHARES: &str = "loop kernel k(x: ptr f32, y: ptr f32, z: ptr f32) open:\n  for i in 0..3: free\n    local s: f32\n    s = 0.0\n    \
                      for k in 0..70: reduce combine add(s) from 0.0\n      v: f32 = load x[i*70 + k]\n      a: f32 = s\n      \
                      b: f32 = a + v\n      s = b\n    t: f32 = s\n    store z[i] = t\n    for j in 0..70: free\n      \
                      w: f32 = load x[i*70 + j]\n      d: f32 = w + t\n      store y[i*70 + j] = d\n";

#[test]
fn blocks_of_a_cluster_share_a_row() {
    for blocks in [2, 4, 8] {
        let lines = ["bind i to block.x", &format!("bind k, j to cluster {blocks}")];
        let made = steps(SHARES, &lines, &gpu(&[]), &[210, 210, 3]);
        let line = format!("for m in 0..{blocks}: reduce member combine add(s) from 0.0 x {blocks}\n");
        assert!(made.contains(&line) && made.contains("0..1: free member\n      store z[i] = t\n"), "{made}");
    }
    let blocks = steps(SHARES, &["bind i to block.x"], &gpu(&[]), &[210, 210, 3]);
    let ordered = blocks.replace(" combine add(s) from 0.0", "");
    let kept = blocks.replace("    local s: f32\n", "    local s: f32\n    local q: f32[70]\n");
    let fed = blocks.replace("store z[i]", "store x[i]");
    let open = blocks.replace("z: ptr f32)", "z: ptr f32, n: i64)").replace("j in 0..70", "j in 0..n");
    for (text, line, target, why) in [
        (SHARES, "bind k, j to cluster 4", "sm_90a", "no loop is over blocks"),
        (&blocks, "bind k, j to cluster 4", "sm_80", "sm_80 has no clusters of blocks"),
        (&blocks, "bind k, j to cluster 3", "sm_90a", "expected a power of two of blocks, from 2 to "),
        (&blocks, "bind k to cluster 4", "sm_90a", "they are not all loops that stand in the loop over blocks"),
        (&blocks, "bind k, j to cluster", "sm_90a", "expected a number of blocks behind `cluster`"),
        (&ordered, "bind k, j to cluster 4", "sm_90a", "the blocks of a cluster do each their own"),
        (&kept, "bind k, j to cluster 4", "sm_90a", "outside of such loops each block of a cluster has scalars alone"),
        (&fed, "bind k, j to cluster 4", "sm_90a", "a block of a cluster may read what another one stores"),
        (&open, "bind k, j to cluster 4", "sm_90a", "the length of a loop is not known, or it is placed"),
    ] {
        let mut ctx = gpu(&[]);
        ctx.target = crate::tile::target::Target::named(target).unwrap();
        let said = one(text, line, &ctx).map(|k| self::text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}\n{text}");
    }
}
