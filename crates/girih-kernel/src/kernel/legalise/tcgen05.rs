//! Products with sums in tensor memory.
//!
//! ```text
//!                                                      if tx < 32 { tcgen05 alloc tmem[0] columns 128   tcgen05 relinquish }
//!                                                      barrier
//! for t: free thread: acc[t, ..] = 0.0                 sums: i32 = load tmem[0]
//! for kt in 0..n: serial pipeline(4, roles)            if tx == 0 {
//!   stage a_s ..   stage b_s ..                          for kt in 0..n {
//!   for t in 0..128: free thread                           wait full[kt%4] parity ..
//!     for r in 0..4: free tcgen05                          for k in 0..4 { tcgen05 mma f16 to sums = a_s[..] .., b_s[..] .. }
//!       for c in 0..32: free tcgen05              -->      tcgen05 commit free[kt%4]
//!         for k in 0..64: reduce tcgen05                 }
//!           ...                                          tcgen05 commit done[0]
//! for t: free thread: store .. acc[t, ..]              }
//!                                                      wait done[0] parity 0   fence after_sync
//!                                                      tcgen05 load acc from sums + tx//32%4*2097152   tcgen05 wait acc
//!                                                      fence before_sync   store .. acc[..]
//!                                                      barrier   fence after_sync
//!                                                      if tx < 32 { tcgen05 dealloc sums columns 128 }
//! ```
//! One thread multiplies for each group of four warps, or for neighbouring groups with the same rows. The products of an iteration are
//! in flight until the mbarrier has counted that tells of free slots: the warp that fills waits for it, the others do not. Without
//! such a warp all threads wait for the products of an iteration at its end, or at the end of the next one where they overlap.
//!
//! The sums begin with zeros, so the first product replaces what the columns had.

use super::pipeline::{exists, once};
use super::roles::when;
use super::tensor::Full;
use super::{Lower, Res, Storage};
use crate::index::{Facts, simplify};
use crate::kernel::ir as k;
use crate::kernel::tcgen05::{Instruction, LEAST_COLUMNS, Matrix, MmaKind};
use crate::loops::fresh_sums::begin_at_zero;
use crate::loops::ir as l;
use crate::loops::matrix::{Product, Side};
use crate::loops::panels::{GROUP, How, Lies, TALL};
use crate::loops::walk;
use crate::num::DType;

/// The tensor memory of a block.
#[derive(Clone)]
pub(super) struct TensorMemory {
    /// The value that has its address, and how many columns there are.
    base: k::ValId,
    columns: u32,
    /// The columns of the sums of a group, and the groups that one thread multiplies for.
    cols: u64,
    joined: u64,
    groups: u64,
    /// The mbarriers that count the products of an iteration, or of all of them.
    done: k::BufId,
    /// The iteration of the pipeline whose product is built.
    iteration: k::Ix,
}

/// Address of tensor memory from one lane to the next.
const LANE: i64 = 1 << 16;
/// Steps of the sum that are written out.
const MOST_STEPS: u64 = 8;

/// The product of a kernel with sums in tensor memory: the loop over its threads and the outermost of its own loops.
pub(super) fn product_in(body: &[l::Stmt]) -> Option<(&l::For, &l::For)> {
    let mut threads = walk::loops(body).filter(|f| f.place == l::Place::Thread);
    threads.find_map(|t| {
        let inner = |s: &'_ l::Stmt| s.is_placed(l::Place::Tcgen05);
        let at = t.body.iter().position(inner)?;
        let l::Stmt::For(f) = &t.body[at] else { return None };
        Some((t, &**f))
    })
}

impl Lower<'_> {
    fn tensor_memory(&self) -> Res<&TensorMemory> {
        self.tensor_memory.as_ref().ok_or_else(|| "a block has no tensor memory".to_string())
    }

    /// Returns true if the iterations of a pipeline multiply in tensor memory.
    pub(super) fn multiplies_in_tensor_memory(&self, f: &l::For) -> bool {
        self.tensor_memory.is_some() && product_in(&f.body).is_some()
    }

    /// Threads that multiply.
    pub(super) fn multipliers(&self) -> Option<u32> {
        self.tensor_memory.as_ref().map(|m| (m.groups / m.joined) as u32)
    }

    /// Allocates the columns of the block's product, where it has one in tensor memory.
    pub(super) fn allocate_tensor_memory(&mut self) -> Res<()> {
        let Some((t, f)) = product_in(&self.src.body) else { return Ok(()) };
        if walk::effects(&self.src.body).leaves || self.out.cluster > 1 {
            return Err(self.unplaced(f, "a block with tensor memory ends early, or is one of a cluster"));
        }
        let threads = t.hi.as_const().unwrap_or(0).max(0) as u64;
        let (p, [_, right]) = self.product_of_groups(t.axis, threads, f)?;
        let pipeline = walk::loops(&self.src.body).find(|l| {
            let pipelined = matches!(l.place, l::Place::Pipeline { .. });
            pipelined && product_in(&l.body).is_some()
        });
        let pipeline = pipeline.ok_or_else(|| self.unplaced(f, "no pipeline holds it"))?;
        if !begin_at_zero(self.src, &self.src.body, pipeline.axis, p.acc) {
            return Err(self.unplaced(f, "its sums do not begin with zeros"));
        }
        let (groups, cols) = (threads / GROUP, p.cols * 4);
        let joined = p.joined(self.src, threads, right);
        let columns = u32::try_from((groups * cols).next_power_of_two()).unwrap_or(u32::MAX).max(LEAST_COLUMNS);
        let slot = self.shared_slot("tmem", k::Space::Shared, k::Elem::Num(DType::I32), 1)?;
        let commits = self.commits(pipeline);
        let done = self.shared_slot("done", k::Space::Mbarrier, k::Elem::Num(DType::I64), commits as u64)?;
        let to = k::Address::Slot { buf: slot, index: k::Ix::Const(0) };
        let allocate = vec![k::Stmt::Tcgen05Alloc { to: to.clone(), columns }, k::Stmt::Tcgen05Relinquish];
        let warp = i64::from(self.out.warp);
        self.push(when(k::Ix::Thread, k::Cmp::Lt, warp, allocate, vec![]));
        let init = self.by_one_thread([], |s| {
            // The thread's fence behind the mbarriers of the stages shows these, too.
            for n in 0..commits {
                let on = k::Address::Slot { buf: done, index: k::Ix::Const(n) };
                s.push(k::Stmt::InitBarrier { on, count: (groups / joined) as u32 });
            }
            Ok(())
        })?;
        self.push(init);
        // The warp that allocates needs no fence.
        if joined < groups {
            self.push(k::Stmt::Fence { kind: k::Fence::BeforeSync });
        }
        self.meet();
        if joined < groups {
            self.push(k::Stmt::Fence { kind: k::Fence::AfterSync });
        }
        let base = self.value("sums", k::Ty::num(DType::I32, 1));
        self.push(k::Stmt::Load { dst: base, place: to, mask: k::Mask::default(), other: None, order: k::Order::Weak });
        let iteration = k::Ix::Const(0);
        self.tensor_memory = Some(TensorMemory { base, columns, cols, joined, groups, done, iteration });
        Ok(())
    }

    /// How many mbarriers count commits in turn: where a second commit may come before every thread has waited for the first.
    fn commits(&self, pipeline: &l::For) -> i64 {
        let l::Place::Pipeline { depth, roles, .. } = pipeline.place else { return 1 };
        let once = roles || once(pipeline, depth).is_some();
        if once && self.rounds.is_none() { 1 } else { 2 }
    }

    /// Gives the columns back, behind all that threads do there.
    pub(super) fn free_tensor_memory(&mut self) {
        let Some(TensorMemory { base, columns, .. }) = self.tensor_memory else { return };
        // Where a block takes several tiles, threads meet behind the loads of each.
        if self.rounds.is_none() {
            self.meet();
            self.push(k::Stmt::Fence { kind: k::Fence::AfterSync });
        }
        let at = k::Ix::Val { val: base, zext: false };
        let free = vec![k::Stmt::Tcgen05Dealloc { at, columns }];
        let warp = i64::from(self.out.warp);
        self.push(when(k::Ix::Thread, k::Cmp::Lt, warp, free, vec![]));
    }

    fn product_of_groups(&self, thread: l::AxisId, threads: u64, f: &l::For) -> Res<(Product, [Lies; 2])> {
        let p = Product::of(self.src, (thread, threads), f).map_err(|why| self.unplaced(f, why))?;
        let both = p.lies(self.src, threads, TALL).map_err(|why| self.unplaced(f, why))?;
        match both {
            [How::Panel(left), How::Panel(right)] => Ok((p, [left, right])),
            _ => Err(self.unplaced(f, "its left operand is in registers")),
        }
    }

    /// The columns of the sums of a thread's group, in the first lane of its warp where that counts.
    fn sums_of(&self, lanes: bool) -> Res<k::Ix> {
        let TensorMemory { base, cols, groups, joined, .. } = self.tensor_memory()?;
        let mut at = k::Ix::Val { val: *base, zext: false };
        if lanes {
            let warp = k::Ix::floor_div(k::Ix::Thread, k::Ix::Const(self.out.warp.into()));
            let quarter = k::Ix::modulo(warp, k::Ix::Const(k::WARPGROUP.into()));
            at = k::Ix::add(at, k::Ix::mul(quarter, k::Ix::Const(i64::from(self.out.warp) * LANE)));
        }
        if *groups > 1 && (lanes || groups != joined) {
            let group = k::Ix::floor_div(k::Ix::Thread, k::Ix::Const(GROUP as i64));
            at = k::Ix::add(at, k::Ix::mul(group, k::Ix::Const(*cols as i64)));
        }
        Ok(at)
    }

    /// The steps of a product of one iteration, by the thread that multiplies.
    pub(super) fn product_in_tensor_memory(&mut self, f: &l::For) -> Res<()> {
        let thread = self.axes.iter().find(|(_, ix)| **ix == k::Ix::Thread).map(|(axis, _)| *axis);
        let thread = thread.ok_or_else(|| self.unplaced(f, "only threads compute on the matrix unit"))?;
        let threads = u64::from(self.active);
        let (p, [left, right]) = self.product_of_groups(thread, threads, f)?;
        let TensorMemory { joined, cols, iteration, groups, .. } = self.tensor_memory()?.clone();
        let of = [p.a.of, p.b.of];
        let transposed = [left.transposed, right.transposed];
        let instruction = Instruction { of, transposed, rows: TALL as u32, cols: (cols * joined) as u32 }.encode();
        let steps = p.terms / u64::from(p.a.of.terms());
        let mut facts = Facts::new();
        for (axis, n) in [(thread, threads), (p.axes[2], steps)] {
            facts.set_axis(axis, &l::Ix::Const(0), &l::Ix::Const(n as i64));
        }
        let step = l::Ix::Axis(p.axes[2]);
        let sums = self.sums_of(false)?;
        let unroll = if steps <= MOST_STEPS { steps as u32 } else { 0 };
        // The first of all threads multiplies, or the first of each group.
        let first = |side: &Side| -> Vec<l::Ix> {
            let of = |axis: l::AxisId| (axis == thread && groups == joined).then_some(l::Ix::Const(0));
            p.first(side, &step).iter().map(|ix| ix.subst_axes(&mut |axis| of(axis))).collect()
        };
        self.times(p.axes[2], steps, unroll, |s, at| {
            let a = s.described(&p.a, &first(&p.a), &facts, left)?;
            let b = s.described(&p.b, &first(&p.b), &facts, right)?;
            let number = k::Ix::add(k::Ix::mul(iteration.clone(), k::Ix::Const(steps as i64)), at);
            let later = k::Cond { lhs: number, cmp: k::Cmp::Gt, rhs: k::Ix::Const(0) };
            let add = k::Mask { conds: vec![later], vals: vec![] };
            let kind = MmaKind::of(p.a.of);
            s.push(k::Stmt::Tcgen05Mma { kind, sums: sums.clone(), a, b, instruction, add });
            Ok(())
        })
    }

    fn described(&mut self, side: &Side, idx: &[l::Ix], facts: &Facts, lies: Lies) -> Res<k::Described> {
        let buf = self.shared_operand(side)?;
        let linear = simplify(&self.linear(side.buf, idx)?, facts);
        let place = k::Address::Slot { buf, index: self.ix(&linear)? };
        let Lies { row, lead, stride, .. } = lies;
        let number = Matrix { swizzle: row as u32, lead: lead as u32, stride: stride as u32 }.encode();
        Ok(k::Described { place, number })
    }

    /// Lets only the threads that multiply run statements.
    fn by_multipliers(&self, then: Vec<k::Stmt>) -> Res<k::Stmt> {
        let TensorMemory { joined, groups, .. } = self.tensor_memory()?;
        let number = match joined == groups {
            true => k::Ix::Thread,
            false => k::Ix::modulo(k::Ix::Thread, k::Ix::Const((GROUP * joined) as i64)),
        };
        Ok(when(number, k::Cmp::Eq, 0, then, vec![]))
    }

    /// Builds the product of an iteration of a pipeline.
    fn multiply(&mut self, f: &l::For, at: &k::Ix) -> Res<()> {
        let (_, rest) = f.stages();
        if let Some(memory) = &mut self.tensor_memory {
            memory.iteration = at.clone();
        }
        self.at_axis(f.axis, at.clone(), vec![], |s| s.run(rest))
    }

    fn done(&self, number: k::Ix) -> Res<k::Address> {
        let buf = self.tensor_memory()?.done;
        let commits = k::Ix::Const(self.out.slots[buf].len as i64);
        Ok(k::Address::Slot { buf, index: k::Ix::modulo(number, commits) })
    }

    /// All threads wait for the products up to a commit on `done`, by the number of the commit.
    fn wait_for_product(&mut self, number: k::Ix) -> Res<()> {
        let commits = k::Ix::Const(self.out.slots[self.tensor_memory()?.done].len as i64);
        let parity = k::Ix::modulo(k::Ix::floor_div(number.clone(), commits), k::Ix::Const(2));
        let on = self.done(number)?;
        self.push(k::Stmt::WaitPhase { on, parity });
        Ok(())
    }

    /// The loop of a pipeline that a warp fills: one thread multiplies.
    pub(super) fn multiplied_by_one(&mut self, f: &l::For, (full, free): (Full, k::BufId)) -> Res<()> {
        let (zero, one, hi) = (k::Ix::Const(0), k::Ix::Const(1), self.ix(&f.hi)?);
        let axis = self.axis_of(f.axis);
        let at = k::Ix::Axis(axis);
        let round = self.round()?;
        let then = self.inner(|s| {
            let body = s.inner(|s| {
                let turn = s.turn(f, &at)?;
                s.wait_boxes(&turn, full);
                s.multiply(f, &at)?;
                s.push(k::Stmt::Tcgen05Commit { on: full.generation(free, &turn) });
                Ok(())
            })?;
            s.push(k::Stmt::For { axis, lo: zero, hi, step: one, unroll: 0, body });
            let on = s.done(round.clone())?;
            s.push(k::Stmt::Tcgen05Commit { on });
            Ok(())
        })?;
        let multiply = self.by_multipliers(then)?;
        self.push(multiply);
        // The other lanes of that thread's warp wait here, not in a loop beside it.
        self.push(k::Stmt::SyncWarp);
        self.wait_for_product(round)?;
        self.load_sums(f)
    }

    /// The number of the current round of the block.
    fn round(&mut self) -> Res<k::Ix> {
        match self.rounds.as_ref().map(|rounds| rounds.axis) {
            Some(axis) => self.ix(&l::Ix::Axis(axis)),
            None => Ok(k::Ix::Const(0)),
        }
    }

    /// The product of an iteration of a pipeline that the threads themselves fill, and the wait for it or for the one before. `all`:
    /// no slot is filled again, and the wait is behind the loop.
    pub(super) fn multiplied_by_all(&mut self, f: &l::For, at: &k::Ix, overlap: bool, all: bool) -> Res<()> {
        let turn = self.turn(f, at)?;
        let then = self.inner(|s| {
            s.multiply(f, at)?;
            if !all {
                let on = s.done(turn.clone())?;
                s.push(k::Stmt::Tcgen05Commit { on });
            }
            Ok(())
        })?;
        let multiply = self.by_multipliers(then)?;
        self.push(multiply);
        if all {
            return Ok(());
        }
        self.push(k::Stmt::SyncWarp);
        if !overlap {
            return self.wait_for_product(turn);
        }
        let before = self.inner(|s| s.wait_for_product(k::Ix::sub(turn, k::Ix::Const(1))))?;
        let first = exists(&k::Ix::Const(0), at);
        self.push(k::Stmt::If { mask: k::Mask { conds: vec![first], vals: vec![] }, then: before, els: vec![] });
        Ok(())
    }

    /// Behind the loop of such a pipeline: the wait for what is still in flight, and the sums.
    pub(super) fn end_of_products(&mut self, f: &l::For, hi: &k::Ix, overlap: bool, all: bool) -> Res<()> {
        let last = k::Ix::sub(hi.clone(), k::Ix::Const(1));
        let number = if all { k::Ix::Const(0) } else { self.turn(f, &last)? };
        if all {
            let on = self.done(number.clone())?;
            let commit = self.by_multipliers(vec![k::Stmt::Tcgen05Commit { on }])?;
            self.push(commit);
            self.push(k::Stmt::SyncWarp);
        }
        if all || overlap {
            self.wait_for_product(number)?;
        }
        self.load_sums(f)
    }

    /// The threads get the sums of their rows.
    fn load_sums(&mut self, f: &l::For) -> Res<()> {
        let (t, product) = product_in(&f.body).ok_or("a pipeline has no product")?;
        let threads = t.hi.as_const().unwrap_or(0).max(0) as u64;
        let (p, _) = self.product_of_groups(t.axis, threads, product)?;
        let Storage::Slot(acc) = self.storage(p.acc)? else {
            return Err(self.unplaced(product, "its sums are in no array"));
        };
        if self.out.slots[acc].len != p.rows * p.cols {
            return Err(self.unplaced(product, "its sums are a part of an array"));
        }
        self.push(k::Stmt::Fence { kind: k::Fence::AfterSync });
        let at = self.sums_of(true)?;
        self.push(k::Stmt::Tcgen05Load { acc, at });
        self.push(k::Stmt::Tcgen05Wait { acc });
        self.push(k::Stmt::Fence { kind: k::Fence::BeforeSync });
        if self.rounds.is_some() {
            // The products of the next tile replace them.
            self.meet();
            self.push(k::Stmt::Fence { kind: k::Fence::AfterSync });
        }
        Ok(())
    }
}
