//! Pipelines: loops that fill buffers for later iterations.
//!
//! ```text
//! for k in 0..n: serial pipeline(3)              for p in 0..2 { if p < n { fill(p) }  commit }
//!   stage s: f32[64] shared async: ...           for k in 0..n {
//!   use s                                 -->      wait groups 1
//!                                                  barrier
//!                                                  if k + 2 < n { fill(k + 2) }  commit
//!                                                  use s[k%3*64 + ..]
//!                                                }
//! ```
//!
//! Each iteration makes one group of copies, an empty one at the end, so that the groups in flight are always those of
//! the next iterations. Its barrier does two things: after it, every thread sees the copies that any thread has waited
//! for, and all threads are done with the generation of the iteration before, which is filled next. One barrier is
//! enough at any depth.

//!
//! A pipeline with a generation for every iteration fills all of them before the first iteration, and no fill waits for
//! a free generation.
//!
//! Where products of warpgroups overlap, the product of an iteration still reads its generation during the next
//! iteration. After a barrier the pipeline therefore fills the generation of two iterations before, and one generation
//! fewer is filled ahead.
//!
//! Stages that TMA fills are in [`super::tensor`]. A pipeline of one generation fills it at the beginning of each
//! iteration.
//!
//! In a block that takes several iterations of a nest in turn, the pipeline continues from one of them to the next:
//! [`super::persistent_loop`].

use super::tensor::Full;
use super::wgmma::Flight;
use super::{Lower, Res};
use crate::kernel::ir as k;
use crate::loops::ir as l;
use crate::loops::overlap::{Overlap, Parts};
use crate::tile::edit;

/// How the stages of a pipeline are filled.
#[derive(Clone, Copy)]
struct Fills {
    /// Some stages are filled by loads and stores or by copies of a few bytes, which all threads make.
    threads: bool,
    /// Some of these copies go on while the threads do other things.
    copies: bool,
    /// Some stages are filled by TMA.
    full: Option<Full>,
}

/// The most iterations of a pipeline that has a generation for each iteration.
pub(super) fn once(f: &l::For, depth: u32) -> Option<i64> {
    edit::at_most(&f.hi).filter(|n| (0..=i64::from(depth)).contains(n))
}

/// Returns true if the iterations of a pipeline have no barrier of their own: TMA fills each generation once, or a
/// producer warp waits until all threads have read it, and every thread waits for the data itself. A pipeline that
/// `goes_on` fills each generation again.
pub(super) fn is_free(f: &l::For, depth: u32, goes_on: bool) -> bool {
    let (stages, _) = f.stages();
    let roles = matches!(f.place, l::Place::Pipeline { roles: true, .. });
    roles || !goes_on && once(f, depth).is_some() && stages.iter().all(|s| s.filled(l::Filled::Tma))
}

/// A pipeline whose buffers are declared and whose first generations are being filled.
#[derive(Clone)]
pub(super) struct Begun {
    fills: Fills,
    /// The number of its iterations, if there is a generation for each.
    once: Option<i64>,
    /// Iterations that are filled ahead.
    ahead: i64,
    hi: k::Ix,
    /// Its first generations are being filled.
    started: bool,
}

impl Begun {
    /// A pipeline that a warp fills: nothing is filled before it.
    pub fn by_a_warp(full: Option<Full>) -> Begun {
        let fills = Fills { threads: false, copies: false, full };
        Begun { fills, once: None, ahead: 0, hi: k::Ix::Const(0), started: true }
    }

    pub fn full(&self) -> Option<Full> {
        self.fills.full
    }
}

/// The condition that an iteration is one of the loop's.
pub(super) fn exists(at: &k::Ix, hi: &k::Ix) -> k::Cond {
    k::Cond { lhs: at.clone(), cmp: k::Cmp::Lt, rhs: hi.clone() }
}

impl Lower<'_> {
    pub(super) fn pipelined(&mut self, f: &l::For, depth: u32, overlap: bool) -> Res<()> {
        let begun = match &self.begun {
            Some((axis, begun)) if *axis == f.axis => begun.clone(),
            _ => self.declared(f, depth, overlap)?,
        };
        if !begun.started {
            self.start(f, &begun)?;
        }
        if overlap && let Ok(Overlap::Last(parts)) = Overlap::of(self.src, f) {
            return self.overlapping(f, depth, &begun, &parts);
        }
        if self.multiplies_in_tensor_memory(f) {
            self.iterations(f, depth, &begun, overlap)?;
            return self.end_of_products(f, &begun.hi, overlap, begun.once.is_some());
        }
        let flight = match (overlap, begun.once) {
            (false, _) => Flight::NONE,
            (true, None) => Flight::ONE,
            (true, Some(_)) => Flight::ALL,
        };
        self.in_flight(flight, |s| s.iterations(f, depth, &begun, overlap))
    }

    /// A pipeline whose iterations begin a product that the next ones wait for.
    fn overlapping(&mut self, f: &l::For, depth: u32, begun: &Begun, parts: &Parts<'_>) -> Res<()> {
        self.turned(
            f,
            begun.hi.clone(),
            |s, at, before| {
                s.begin_iteration(f, depth, begun, at)?;
                s.overlapped(f, parts, at, before, |_| Ok(()))
            },
            |s, at| {
                let acc = s.last_product(f, parts, at, false)?;
                s.push(k::Stmt::WgmmaWait { left: 0, acc, behind: vec![] });
                Ok(())
            },
        )
    }

    /// A loop whose first iteration stands before it, and a part of whose last iteration stands behind it. `each` builds an
    /// iteration, given the one before; `rest` builds what is left of an iteration.
    pub(super) fn turned(
        &mut self,
        f: &l::For,
        hi: k::Ix,
        mut each: impl FnMut(&mut Self, &k::Ix, Option<&k::Ix>) -> Res<()>,
        rest: impl FnOnce(&mut Self, &k::Ix) -> Res<()>,
    ) -> Res<()> {
        let (zero, one) = (k::Ix::Const(0), k::Ix::Const(1));
        let all = self.inner(|s| {
            each(s, &zero, None)?;
            let axis = s.axis_of(f.axis);
            let at = k::Ix::Axis(axis);
            let before = k::Ix::sub(at.clone(), one.clone());
            let body = s.inner(|s| each(s, &at, Some(&before)))?;
            s.push(k::Stmt::For { axis, lo: one.clone(), hi: hi.clone(), step: one.clone(), unroll: 0, body });
            rest(s, &k::Ix::sub(hi.clone(), one.clone()))
        })?;
        if hi.as_const().is_some_and(|n| n > 0) {
            all.into_iter().for_each(|stmt| self.push(stmt));
        } else {
            let mask = k::Mask { conds: vec![exists(&zero, &hi)], vals: vec![] };
            self.push(k::Stmt::If { mask, then: all, els: vec![] });
        }
        Ok(())
    }

    /// Declares the buffers that a pipeline fills, and fills its first generations.
    pub(super) fn begin(&mut self, f: &l::For, depth: u32, overlap: bool) -> Res<Begun> {
        let begun = self.declared(f, depth, overlap)?;
        self.start(f, &begun)?;
        Ok(Begun { started: true, ..begun })
    }

    /// Declares the buffers that a pipeline fills.
    pub(super) fn declared(&mut self, f: &l::For, depth: u32, overlap: bool) -> Res<Begun> {
        let (stages, _) = f.stages();
        let filled = |how: l::Filled| stages.iter().any(|s| s.filled(how));
        let least = if filled(l::Filled::Tma) { 1 } else { 2 };
        let enough = !overlap || depth >= 3 || once(f, depth).is_some();
        let counts = f.lo.is_const(0) && f.step.is_const(1) && depth >= least && enough;
        if self.cluster.is_some() {
            return Err(self.unplaced(f, "in a cluster a warp fills"));
        }
        if self.out.threads == 1 || !counts || stages.is_empty() {
            return Err(
                self.unplaced(f, "only threads of a block fill the next iterations' buffers, from 0 in steps of 1")
            );
        }
        self.declare_stages(f, depth)?;
        let once = once(f, depth).filter(|_| self.rounds.is_none());
        let copies = filled(l::Filled::Async);
        let full = self.tensors(stages, depth, once.is_some(), None)?;
        let fills = Fills { threads: copies || filled(l::Filled::Copied), copies, full };
        let hi = self.ix(&f.hi)?;
        // All generations are filled before the first iteration and none again; or a product in flight reads its
        // generation one iteration later.
        let again = i64::from(depth) - if overlap { 2 } else { 1 };
        Ok(Begun { fills, once, ahead: once.unwrap_or(again), hi, started: false })
    }

    /// Fills the first generations of a pipeline.
    fn start(&mut self, f: &l::For, begun: &Begun) -> Res<()> {
        let Begun { fills, ahead, hi, .. } = begun.clone();
        let (stages, _) = f.stages();
        let (zero, one) = (k::Ix::Const(0), k::Ix::Const(1));
        // All the first iterations exist if the loop is known to be that long.
        let all = hi.as_const().is_some_and(|n| n >= ahead);
        let first_exists = |at: &k::Ix| if all { vec![] } else { vec![exists(at, &hi)] };
        if ahead == 1 {
            self.fill(f, stages, zero.clone(), first_exists(&zero), None, fills)?;
            self.commit(fills);
        } else if ahead != 0 {
            let first = self.axis_of(f.axis);
            let at = k::Ix::Axis(first);
            let body = self.inner(|s| {
                s.fill(f, stages, at.clone(), first_exists(&at), None, fills)?;
                s.commit(fills);
                Ok(())
            })?;
            self.push(k::Stmt::For { axis: first, lo: zero, hi: k::Ix::Const(ahead), step: one, unroll: 0, body });
        }
        Ok(())
    }

    fn iterations(&mut self, f: &l::For, depth: u32, begun: &Begun, overlap: bool) -> Res<()> {
        let (_, rest) = f.stages();
        let axis = self.axis_of(f.axis);
        let here = k::Ix::Axis(axis);
        let body = self.inner(|s| {
            s.begin_iteration(f, depth, begun, &here)?;
            if s.multiplies_in_tensor_memory(f) {
                return s.multiplied_by_all(f, &here, overlap, begun.once.is_some());
            }
            s.at_axis(f.axis, here.clone(), vec![], |s| s.run(rest))
        })?;
        let (lo, step) = (k::Ix::Const(0), k::Ix::Const(1));
        self.push(k::Stmt::For { axis, lo, hi: begun.hi.clone(), step, unroll: 0, body });
        Ok(())
    }

    /// Waits for the generation of an iteration, and fills another.
    fn begin_iteration(&mut self, f: &l::For, depth: u32, begun: &Begun, here: &k::Ix) -> Res<()> {
        let Begun { fills, once, ahead, hi, .. } = begun.clone();
        let (stages, _) = f.stages();
        let again = once.is_none();
        if depth == 1 && again {
            // All threads are done with the data of the iteration before.
            self.meet();
            self.fill(f, stages, here.clone(), vec![], None, fills)?;
            self.commit(fills);
        }
        if fills.copies {
            // Leaves the groups of later iterations in flight; the groups of iterations past the end are empty.
            self.push(k::Stmt::WaitGroups { left: (ahead as u32).saturating_sub(1) });
        }
        if let Some(full) = fills.full {
            let turn = self.turn(f, here)?;
            self.wait_boxes(&turn, full);
        }
        if depth > 1 && again {
            self.meet();
            let at = k::Ix::add(here.clone(), k::Ix::Const(ahead));
            self.fill(f, stages, at.clone(), vec![exists(&at, &hi)], None, fills)?;
            if let Some((next, mut conds)) = self.next_round()? {
                // After the last iteration of this pipeline come the first iterations of the next one.
                conds.insert(0, exists(&at, &hi).negate());
                self.fill(f, stages, k::Ix::sub(at, hi.clone()), conds, Some(next), fills)?;
            }
            self.commit(fills);
        } else if fills.threads {
            self.meet();
            if fills.copies && !again {
                self.push(k::Stmt::Commit);
            }
        }
        Ok(())
    }

    /// Declares the buffers that a pipeline fills, with `depth` generations each.
    pub(super) fn declare_stages(&mut self, f: &l::For, depth: u32) -> Res<()> {
        let iteration = self.iteration(f);
        f.stages().0.iter().try_for_each(|stage| {
            let l::Stmt::Stage { buf, .. } = stage else { return Ok(()) };
            self.generations.insert(*buf, (iteration.clone(), depth));
            self.local(*buf, 1)
        })
    }

    /// Fills the generation of an iteration where all conditions hold, perhaps of another round of the block.
    fn fill(
        &mut self,
        f: &l::For,
        stages: &[l::Stmt],
        at: k::Ix,
        conds: Vec<k::Cond>,
        round: Option<k::Ix>,
        fills: Fills,
    ) -> Res<()> {
        if let Some(full) = fills.full {
            let begun = self
                .by_one_thread(conds.clone(), |s| s.in_round(round.clone(), |s| s.fill_boxes(f, stages, &at, full)))?;
            self.push(begun);
        }
        if !fills.threads {
            return Ok(());
        }
        let each = |s: &mut Self| {
            stages.iter().try_for_each(|stage| match stage {
                l::Stmt::Stage { filled: l::Filled::Tma, .. } => Ok(()),
                l::Stmt::Stage { filled, body, .. } => {
                    s.copies = *filled == l::Filled::Async;
                    let done = s.run(body);
                    s.copies = false;
                    done
                }
                _ => Ok(()),
            })
        };
        let then = self.inner(|s| s.in_round(round, |s| s.at_axis(f.axis, at, vec![], each)))?;
        if conds.is_empty() {
            then.into_iter().for_each(|stmt| self.push(stmt));
        } else {
            self.push(k::Stmt::If { mask: k::Mask { conds, vals: vec![] }, then, els: vec![] });
        }
        Ok(())
    }

    /// Makes a group of the copies that fill a generation, or of none.
    fn commit(&mut self, fills: Fills) {
        if fills.copies {
            self.push(k::Stmt::Commit);
        }
    }

    /// Turns a load and the write of its value into an asynchronous copy. Returns true if the statements are these two.
    pub(super) fn copy_async(&mut self, body: &[l::Stmt]) -> Res<bool> {
        let lanes = self.vector.map_or(1, |v| v.lanes);
        let Some(copy) = edit::Copy::of(body, lanes.into()) else { return Ok(false) };
        let edit::Copy { mem, mask, site, buf, idx, bytes } =
            copy.map_err(|why| format!("a stage cannot be filled asynchronously: {why}"))?;
        let super::Storage::Slot(slot) = self.storage(buf)? else {
            return Err("an asynchronous copy goes to shared memory".to_string());
        };
        let index = self.linear(buf, idx)?;
        let to = self.place_in(buf, slot, &index)?;
        let mask = self.mask(mask)?;
        let from = self.place(mem)?;
        self.check(mem, &from, lanes, &mask, false, site)?;
        self.push(k::Stmt::CopyAsync { to, from, bytes, mask });
        Ok(true)
    }
}
