//! Loops over the blocks of a cluster: each block does its own iteration, and where they combine, each block reads the
//! values of all of them.
//!
//! ```text
//! for m in 0..4: reduce member                   var s_own = 0.0
//!     combine add(s) from 0.0 x 4                ...
//!   ...                                   -->    if tx == 0 { store s_blocks[0] = s_own }
//!                                                barrier cluster
//!                                                part = load s_blocks[0] of 0  ...  part_3 = load s_blocks[0] of 3
//! ```
//! Each loop runs once in a block and has a slot of its own, so no block overwrites a slot that others still read. The
//! kernel ends with a barrier of the cluster, so that no block ends before that.

use super::vector::store;
use super::{Lower, Res, Storage, blocks, ty};
use crate::kernel::ir as k;
use crate::loops::{cluster_block, ir as l};

impl Lower<'_> {
    pub(super) fn member_loop(&mut self, f: &l::For) -> Res<()> {
        let cluster = self.cluster.as_ref().map_or(1, |c| c.blocks);
        if cluster < 2 {
            return Err(self.unplaced(f, "it stands in no loop over clusters"));
        }
        if let (l::LoopKind::Reduce, Some(c)) = (f.kind, &f.combine) {
            return self.combined_by_blocks(f, c, cluster);
        }
        if cluster_block::is_whole(f, cluster) {
            return self.run(&f.body);
        }
        let then = self.inner(|s| s.run(&f.body))?;
        let lhs = self.ix(&blocks::member(cluster))?;
        let some = k::Cond { lhs, cmp: k::Cmp::Lt, rhs: self.ix(&f.hi)? };
        self.push(k::Stmt::If { mask: k::Mask { conds: vec![some], vals: vec![] }, then, els: vec![] });
        Ok(())
    }

    /// A reduction that the blocks of a cluster do together.
    fn combined_by_blocks(&mut self, f: &l::For, c: &l::Combine, cluster: u32) -> Res<()> {
        let l::CombineOp::Scalar { op, identity } = c.op;
        let mut own = vec![];
        for &acc in &c.accs {
            let b = self.buf(acc)?;
            let t = ty(b.ty, 1);
            let var = self.value(&format!("{}_own", b.name), t);
            self.push(k::Stmt::Var { var, init: k::Opnd::Const { dtype: t.dtype(), bits: identity } });
            let Storage::Var(whole) = self.storage(acc)? else {
                return Err(self.unplaced(f, "its accumulator is not a scalar"));
            };
            self.storage.insert(acc, Storage::Var(var));
            own.push((acc, whole, var));
        }
        self.run(&f.body)?;
        let (mut slots, mut first) = (vec![], vec![]);
        for (acc, whole, var) in own {
            self.storage.insert(acc, Storage::Var(whole));
            let name = format!("{}_blocks", self.buf(acc)?.name);
            let slot = self.shared_slot(&name, k::Space::Shared, self.out.vals[var].ty.elem, 1)?;
            let place = k::Address::Slot { buf: slot, index: k::Ix::Const(0) };
            first.push(store(place.clone(), k::Opnd::Val(var)));
            slots.push((place, whole));
        }
        match self.out.threads {
            1 => first.into_iter().for_each(|s| self.push(s)),
            _ => {
                let mask = k::Mask {
                    conds: vec![k::Cond { lhs: k::Ix::Thread, cmp: k::Cmp::Eq, rhs: k::Ix::Const(0) }],
                    vals: vec![],
                };
                self.push(k::Stmt::If { mask, then: first, els: vec![] });
            }
        }
        self.push(k::Stmt::ClusterBarrier);
        for (place, whole) in slots {
            let t = self.out.vals[whole].ty;
            let mut parts = vec![];
            for of in 0..cluster {
                let dst = self.value("part", t);
                self.push(k::Stmt::LoadOf { dst, place: place.clone(), of });
                parts.push(dst);
            }
            let total = self.halved("part", op, parts).ok_or("a cluster has no blocks")?;
            self.combined(op, whole, total);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::legalise::{Options, legalise};
    use crate::kernel::print;
    use crate::loops::parse::parse;

    #[test]
    fn blocks_combine() {
        let text = r#"tile kernel k(x: ptr f32, y: ptr f32, z: ptr f32) open:
  for b in 0..3: free block(x)
    local s: f32
    s = 0.0
    for m in 0..4: reduce member combine add(s) from -0.0 x 4
      for k in 0..128: reduce thread combine add(s) from -0.0 x 64
        v: f32 = load x[b*512 + m*128 + k]
        a: f32 = s
        c: f32 = a + v
        s = c
    d: f32 = s
    for m2 in 0..1: free member
      for t in 0..1: free thread
        store y[b] = d
    for m3 in 0..4: free member
      for t2 in 0..64: free thread
        store z[b*256 + m3*64 + t2] = d
"#;
        let (tile, _) = parse(text).unwrap();
        let kernel = legalise(&tile, &Options { shared: 1 << 16, ..Options::default() }).unwrap();
        assert_eq!(crate::kernel::verify::verify(&kernel), [""; 0]);
        let made = print::print(&kernel);
        for line in [
            "grid (12, 1, 1) threads 64 cluster 4",
            "  shared s_blocks: f32[1] at ",
            "    store s_blocks[0] = s_own",
            "load s_blocks[0] of 3",
            "  if bx%4 < 1 {",
        ] {
            assert!(made.contains(line), "{line}\n{made}");
        }
        let lines: Vec<&str> = made.lines().map(str::trim).collect();
        assert_eq!(lines.iter().filter(|l| **l == "barrier").count(), 1, "{made}");
        assert_eq!(lines.iter().filter(|l| **l == "barrier cluster").count(), 2, "{made}");
        assert_eq!(lines[lines.len() - 2], "barrier cluster", "{made}");
    }
}
