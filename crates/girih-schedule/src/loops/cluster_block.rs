//! Loops over the blocks of a cluster.
//!
//! In: a kernel of Tile IR, its loop over blocks, and the statements in it. Out: the number of blocks of a cluster, and
//! the error in a loop over them.
//!
//! ```text
//! for b in 0..4: free block(x)                                       a cluster of 8 blocks
//!   local s: f32
//!   s = 0.0
//!   for m in 0..8: reduce member combine add(s) from 0.0 x 8         block m of it
//!     ...
//!   for m2 in 0..1: free member                                      the first alone
//!     store y[b] = ...
//! ```
//! Invariants: a loop over the blocks of a cluster runs once in a block, so no block writes memory that another one
//! reads, except where they combine. Outside such loops there are only scalars, and every block has its own copy of
//! them.

use super::ir::*;
use super::walk::{self, Part, parts};

/// Blocks of a cluster at most.
pub const MOST: i64 = 16;

/// The loops over blocks of a cluster in the body of a loop over clusters.
fn loops(body: &[Stmt]) -> impl Iterator<Item = &For> {
    body.iter().filter_map(|s| match s {
        Stmt::For(f) if f.place == Place::ClusterBlock => Some(&**f),
        _ => None,
    })
}

/// The blocks of a cluster, where the body of a loop over blocks has loops over them.
pub fn blocks(body: &[Stmt]) -> Option<u32> {
    let most = loops(body).map(|f| f.hi.as_const().unwrap_or(0)).max()?;
    u32::try_from(most).ok()
}

/// Returns true if all blocks of a cluster have an iteration of a loop over them.
pub fn is_whole(f: &For, blocks: u32) -> bool {
    f.hi.as_const() == Some(blocks.into())
}

/// The error in a loop over the blocks of a cluster, which stands in a loop over clusters, if there is one.
pub fn problem(kernel: &Kernel, nest: &For, f: &For) -> Option<&'static str> {
    let blocks = blocks(&nest.body).unwrap_or(0);
    let Place::Block { dim: 0, group: 0, takers: 0, cluster: 0 } = nest.place else {
        return Some("clusters are counted along x, each by itself");
    };
    let over = |s: &Stmt| matches!(s, Stmt::For(f) if matches!(f.place, Place::Block { .. }));
    if kernel.body.iter().filter(|s| over(s)).count() > 1 {
        return Some("clusters are of the only loop over blocks");
    }
    if !f.lo.is_const(0) || !f.hi.as_const().is_some_and(|n| (1..=MOST).contains(&n)) || blocks < 2 {
        return Some("a cluster has 2 to 16 blocks, which are counted from 0");
    }
    match (f.kind, &f.combine) {
        (LoopKind::Free, None) => {}
        (LoopKind::Reduce, Some(c)) if c.ways == blocks && is_whole(f, blocks) => {}
        _ => return Some("the blocks of a cluster do each their own, or combine what all of them have"),
    }
    let scalar = |buf: &BufId| kernel.bufs.get(*buf).is_some_and(|b| b.shape.is_empty());
    let alike = |s: &Stmt| match s {
        Stmt::For(f) => f.place == Place::ClusterBlock,
        Stmt::Local { buf } | Stmt::Write { buf, .. } | Stmt::Read { buf, .. } => scalar(buf),
        Stmt::Let { .. } | Stmt::Index { .. } | Stmt::Test { .. } | Stmt::Load { order: Order::Weak, .. } => true,
        _ => false,
    };
    if !nest.body.iter().all(alike) {
        return Some("outside of such loops each block of a cluster has scalars alone");
    }
    let folded = |buf: &BufId| f.combine.as_ref().is_some_and(|c| c.accs.contains(buf));
    let effects = walk::effects(&f.body);
    let mut own = vec![];
    walk::visit(&f.body, &mut |s| {
        parts(s, &mut |part| {
            if let Part::DefBuf(buf) = part {
                own.push(*buf);
            }
        });
    });
    if effects.bufs_written.iter().any(|buf| !own.contains(buf) && !folded(buf)) {
        return Some("what a block of a cluster writes another one does not see");
    }
    let stored = walk::effects(&nest.body).stores;
    let loaded = walk::stmts(&nest.body).any(|s| matches!(s, Stmt::Load { mem, .. } if stored.contains(&mem.base)));
    loaded.then_some("a block of a cluster may read what another one stores")
}

#[cfg(test)]
mod tests {
    use crate::loops::parse::parse;
    use crate::loops::print::Dialect;
    use crate::loops::verify::verify;

    const KERNEL: &str = r#"tile kernel k(x: ptr f32, y: ptr f32) open:
  for b in 0..3: free block(x)
    local s: f32
    s = 0.0
    for m in 0..4: reduce member combine add(s) from -0.0 x 4
      for k in 0..100: reduce combine add(s) from -0.0
        v: f32 = load x[b*400 + m*100 + k]
        a: f32 = s
        c: f32 = a + v
        s = c
    for m2 in 0..1: free member
      d: f32 = s
      store y[b] = d
"#;

    #[test]
    fn a_row_of_a_cluster() {
        let (kernel, _) = parse(KERNEL).unwrap();
        assert_eq!(verify(&kernel, Dialect::Tile), []);
    }

    #[test]
    fn what_clusters_are_not() {
        for (from, to, why) in [
            ("block(x)", "block(y)", "clusters are counted along x"),
            ("block(x)", "block(x, clusters of 3)", "clusters are counted along x"),
            ("0..4: reduce member", "0..17: reduce member", "a cluster has 2 to 16 blocks"),
            ("from -0.0 x 4", "from -0.0 x 2", "combine what all of them have"),
            ("0..1: free member", "0..9: free member", "combine what all of them have"),
            (
                "for m in 0..4: reduce member combine add(s) from -0.0 x 4",
                "for m in 0..4: free member",
                "another one does not see",
            ),
            ("store y[b] = d", "store x[b] = d", "may read what another one stores"),
            ("    s = 0.0", "    store y[b] = 0.0\n    s = 0.0", "scalars alone"),
            ("    for m2 in 0..1: free member", "    if true:", "scalars alone"),
        ] {
            assert!(KERNEL.contains(from), "{from}");
            let Ok((kernel, _)) = parse(&KERNEL.replacen(from, to, 1)) else { panic!("{from} -> {to}") };
            let all = format!("{:?}", verify(&kernel, Dialect::Tile));
            assert!(all.contains(why), "{to}: {all}");
        }
        let deeper = KERNEL
            .replace("  for b in 0..3: free block(x)", "  for b in 0..3: free block(x)\n   for q in 0..1: serial");
        let deeper = deeper.replace("\n    ", "\n     ");
        let (kernel, _) = parse(&deeper).unwrap_or_else(|e| panic!("{e:?}\n{deeper}"));
        assert!(format!("{:?}", verify(&kernel, Dialect::Tile)).contains("in the loop over blocks itself"));
    }
}
