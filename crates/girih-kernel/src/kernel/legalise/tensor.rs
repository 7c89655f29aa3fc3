//! The stages of a pipeline that TMA fills.
//!
//! ```text
//! for k in 0..n: serial pipeline(3)                      if tx == 0 { for i in 0..3 { init full[i] count 1 }  fence init }
//!   stage s: f32[64, 32] shared tensor: ...              barrier
//!     v = load x[i*256 + (k*32 + j)] where ...   -->     if tx == 0 { for p in 0..2 { fill(p) } }
//!   use s                                                for k in 0..n {
//!                                                          wait full[k%3] parity k//3%2
//!                                                          barrier
//!                                                          if tx == 0 and k + 2 < n { fill(k + 2) }
//!                                                          use s
//!                                                        }
//! fill(k):  arrive full[k%3] expect 8192
//!           copy tensor s[k%3*2048] = x_map[0, k*32] on full[k%3]
//! ```
//!
//! Boxes that TMA copies back to global memory have a loop of their own: see [`Lower::store_boxes`].
//!
//! In a cluster every block has its own mbarriers, slots and bytes. A box that is the same in all blocks is copied to
//! all of them by one block (`copy tensor .. all`); where there are several such boxes, each by another block.
//!
//! One mbarrier for each generation counts the bytes of all its boxes, so that one wait is enough. The barrier after
//! the wait ensures that all threads are done with the generation that is filled next.

use super::{Lower, Res};
use crate::index::Facts;
use crate::kernel::ir as k;
use crate::loops::ir as l;
use crate::num::DType;
use crate::tile::boxes::BoxCopy;

/// The mbarriers of a pipeline: one for each generation.
#[derive(Clone, Copy)]
pub(super) struct Full {
    slot: k::BufId,
    /// The mbarriers that signal that a generation has been read, if there are any.
    pub free: Option<k::BufId>,
    depth: u32,
    /// The bytes of all boxes of a generation.
    bytes: u32,
}

impl Full {
    fn of(self, at: &k::Ix) -> k::Address {
        self.generation(self.slot, at)
    }

    pub fn generation(self, buf: k::BufId, at: &k::Ix) -> k::Address {
        k::Address::Slot { buf, index: k::Ix::modulo(at.clone(), k::Ix::Const(self.depth.into())) }
    }
}

impl Lower<'_> {
    /// Declares the tensors and the mbarriers of the stages that TMA fills; `None` where there are none. Stages that
    /// are filled once are filled before the first iteration. With `readers`, there are also mbarriers that count that
    /// number of readers of a generation.
    pub(super) fn tensors(
        &mut self,
        stages: &[l::Stmt],
        depth: u32,
        once: bool,
        readers: Option<u32>,
    ) -> Res<Option<Full>> {
        let mut bytes = 0;
        for stage in stages {
            let l::Stmt::Stage { buf, filled: l::Filled::Tma, body } = stage else { continue };
            let b = self.buf(*buf)?;
            // The masks hold all that is known.
            let copy = BoxCopy::of(self.src, &Facts::new(), body);
            let copy = copy.map_err(|why| format!("buffer {} cannot be filled by TMA: {why}", b.name))?;
            bytes += copy.bytes() * copy.count();
            let tensor = self.tensor(&copy, b.swizzle)?;
            self.tensors.insert(*buf, (tensor, copy));
        }
        if bytes == 0 {
            return Ok(None);
        }
        let slot = self.shared_slot("full", k::Space::Mbarrier, k::Elem::Num(DType::I64), depth.into())?;
        let bytes = u32::try_from(bytes).map_err(|_| "a generation has too many bytes".to_string())?;
        let free = match readers {
            Some(_) => Some(self.shared_slot("free", k::Space::Mbarrier, k::Elem::Num(DType::I64), depth.into())?),
            None => None,
        };
        let full = Full { slot, free, depth, bytes };
        let init = self.by_one_thread([], |s| {
            let axis = s.axis_named("g");
            let on = k::Address::Slot { buf: slot, index: k::Ix::Axis(axis) };
            let (lo, hi, step) = (k::Ix::Const(0), k::Ix::Const(depth.into()), k::Ix::Const(1));
            let mut body = vec![k::Stmt::InitBarrier { on, count: 1 }];
            if let (Some(buf), Some(count)) = (free, readers) {
                let on = k::Address::Slot { buf, index: k::Ix::Axis(axis) };
                // The readers of all blocks of a cluster.
                body.push(k::Stmt::InitBarrier { on, count: count * s.out.cluster });
            }
            s.push(k::Stmt::For { axis, lo, hi, step, unroll: 0, body });
            s.push(k::Stmt::Fence { kind: k::Fence::Init });
            Ok(())
        })?;
        self.push(init);
        // Otherwise each iteration begins with a barrier.
        if self.out.cluster > 1 {
            self.push(k::Stmt::ClusterBarrier);
        } else if depth > 1 || once {
            self.meet();
        }
        Ok(Some(full))
    }

    fn axis_named(&mut self, name: &str) -> k::AxisId {
        let name = self.names.fresh(name);
        self.new_axis(name, None)
    }

    fn tensor(&mut self, copy: &BoxCopy, swizzle: u32) -> Res<k::TensorId> {
        let base = match self.scalar(&l::Opnd::Val(copy.base))? {
            k::Opnd::Val(base) => base,
            k::Opnd::Const { .. } => return Err("TMA copies from a parameter's array".to_string()),
        };
        let name = self.out.vals[base].name.to_string();
        let dims = copy.dims.iter().map(|d| self.ix(&d.extent)).collect::<Res<Vec<_>>>()?;
        let (_, outer) = copy.dims.split_last().ok_or("a box has no dimensions")?;
        let strides = outer.iter().map(|d| self.ix(&d.stride)).collect::<Res<Vec<_>>>()?;
        let extents = copy.dims.iter().map(|d| d.count as u32).collect();
        let name = self.names.fresh(&format!("{name}_map"));
        Ok(self.out.tensors.push(k::Tensor { name, base, elem: copy.elem, dims, strides, extents, swizzle }))
    }

    /// `if tx == 0 { ... }`, with a further condition.
    pub(super) fn by_one_thread(
        &mut self,
        also: impl IntoIterator<Item = k::Cond>,
        build: impl FnOnce(&mut Self) -> Res<()>,
    ) -> Res<k::Stmt> {
        let then = self.inner(build)?;
        let first = k::Cond { lhs: k::Ix::Thread, cmp: k::Cmp::Eq, rhs: k::Ix::Const(0) };
        let mask = k::Mask { conds: [first].into_iter().chain(also).collect(), vals: vec![] };
        Ok(k::Stmt::If { mask, then, els: vec![] })
    }

    /// Begins to fill the generation of an iteration, in one thread.
    pub(super) fn fill_boxes(&mut self, f: &l::For, stages: &[l::Stmt], at: &k::Ix, full: Full) -> Res<()> {
        let on = full.of(&self.turn(f, at)?);
        self.push(k::Stmt::Arrive { on: on.clone(), bytes: Some(full.bytes), of: None });
        let blocks = self.out.cluster;
        let mut copied = 0;
        for stage in stages {
            let l::Stmt::Stage { buf, filled: l::Filled::Tma, .. } = stage else { continue };
            let Some((tensor, copy)) = self.tensors.get(buf).cloned() else { continue };
            let super::Storage::Slot(slot) = self.storage(*buf)? else {
                return Err("TMA copies to shared memory".to_string());
            };
            let mut idx = vec![l::Ix::Const(0); self.buf(*buf)?.shape.len()];
            let all = self.cluster.as_ref().is_some_and(|c| copy.dims.iter().all(|d| c.alike(&d.from, self.src)));
            self.at_axis(f.axis, at.clone(), vec![], |s| -> Res<()> {
                let mut one = |s: &mut Self, idx: &[l::Ix]| -> Res<()> {
                    let linear = s.linear(*buf, idx)?;
                    let to = k::Address::Slot { buf: slot, index: s.ix(&linear)? };
                    let from = copy.dims.iter().map(|d| s.ix(&d.from)).collect::<Res<Vec<_>>>()?;
                    let copy = k::Stmt::TmaLoad { to, tensor, from, on: on.clone(), all };
                    if !all {
                        s.push(copy);
                        return Ok(());
                    }
                    let number = k::Ix::modulo(k::Ix::Block(0), k::Ix::Const(blocks.into()));
                    let (cmp, rhs) = (k::Cmp::Eq, k::Ix::Const((copied % blocks).into()));
                    let mask = k::Mask { conds: vec![k::Cond { lhs: number, cmp, rhs }], vals: vec![] };
                    s.push(k::Stmt::If { mask, then: vec![copy], els: vec![] });
                    copied += 1;
                    Ok(())
                };
                let Some((axis, count)) = copy.several else { return one(s, &idx) };
                (0..count as i64).try_for_each(|n| {
                    idx[0] = l::Ix::Const(n);
                    s.at_axis(axis, k::Ix::Const(n), vec![], |s| one(s, &idx))
                })
            })?;
        }
        Ok(())
    }

    /// Boxes that one thread copies from shared memory, and waits for: then other threads may write there again.
    pub(super) fn store_boxes(&mut self, f: &l::For) -> Res<()> {
        let copy = BoxCopy::written(self.src, f).map_err(|why| self.unplaced(f, &why))?;
        if self.out.threads == 1 {
            return Err(self.unplaced(f, "a block has one thread"));
        }
        let b = self.buf(copy.buf)?;
        let super::Storage::Slot(slot) = self.storage(copy.buf)? else {
            return Err(self.unplaced(f, "TMA copies from shared memory"));
        };
        let tensor = self.tensor(&copy, b.swizzle)?;
        let mut idx = vec![l::Ix::Const(0); b.shape.len()];
        let store = self.by_one_thread([], |s| {
            let one = |s: &mut Self, idx: &[l::Ix]| -> Res<()> {
                let linear = s.linear(copy.buf, idx)?;
                let from = k::Address::Slot { buf: slot, index: s.ix(&linear)? };
                let to = copy.dims.iter().map(|d| s.ix(&d.from)).collect::<Res<Vec<_>>>()?;
                s.push(k::Stmt::TmaStore { tensor, to, from });
                Ok(())
            };
            match copy.several {
                None => one(s, &idx)?,
                Some((axis, count)) => (0..count as i64).try_for_each(|n| {
                    idx[0] = l::Ix::Const(n);
                    s.at_axis(axis, k::Ix::Const(n), vec![], |s| one(s, &idx))
                })?,
            }
            s.push(k::Stmt::StoreCommit);
            s.push(k::Stmt::StoreWait { left: 0 });
            Ok(())
        })?;
        self.push(store);
        Ok(())
    }

    /// Waits until the generation of an iteration is filled.
    pub(super) fn wait_boxes(&mut self, at: &k::Ix, full: Full) {
        let two = k::Ix::Const(2);
        let parity = k::Ix::modulo(k::Ix::floor_div(at.clone(), k::Ix::Const(full.depth.into())), two);
        self.push(k::Stmt::WaitPhase { on: full.of(at), parity });
    }
}
