//! Pipelines with roles: a warp fills, the others compute.
//!
//! ```text
//! for k in 0..n: serial pipeline(3, roles)           if tx < 256 {
//!   stage s: f32[64, 32] shared tensor: ...            for k in 0..n {
//!   use s                                    -->         wait full[k%3] parity k//3%2
//!                                                        use s
//!                                                        syncwarp
//!                                                        if tx%32 == 0 { arrive free[k%3] }
//!                                                      }
//!                                                    } else {
//!                                                      if tx == 256 {
//!                                                        for k in 0..n {
//!                                                          wait free[k%3] parity (k//3 + 1)%2
//!                                                          fill(k)
//!                                                        }
//!                                                      }
//!                                                    }
//! ```
//! A consumer warp arrives once all its lanes have read a generation, so that one arrival is expected from each warp.
//! Nobody has read a generation before it is first filled; the phase before the first counts as complete.
//!
//! In a cluster a warp arrives at the mbarriers of all blocks: one block fills the data that is the same in all blocks
//! ([`super::tensor`]), and it waits until every block has read the generation before.
//!
//! Where products of warpgroups overlap, a warp arrives for a generation at the end of the next iteration, after the
//! wait for the product that read it; and for the last generation after the loop, where iterations do more than multiply and the block goes on.
//!
//! Products with sums in tensor memory are begun by one thread, and it is their end that tells the producer warp of a free
//! generation ([`super::tcgen05`]).
//!
//! Where the threads that compute need many registers, a whole warpgroup fills, and gives up registers for them
//! (`registers`). Such a block goes apart for good ([`Apart`]): what it does beside the filling, also before and after
//! the loop and in all the tiles that it takes in turn, is done by the threads that compute, which meet among
//! themselves (`barrier first`). A compiler that saw their arrays behind both branches would keep them in the registers of the
//! threads that fill, too, which have none left; and the warp that fills goes on to the next tile while the results of
//! one are stored.
//!
//! ```text
//! for round in 0..r {                                 if tx < 256 {
//!   acc = 0                                             registers more 240
//!   for k in 0..n: serial pipeline(3, roles) ...        for round in 0..r { acc = 0   for k ...   store acc }
//!   store acc                                    -->  } else {
//! }                                                     registers fewer 24
//!                                                       if tx == 256 { for round in 0..r { for k in 0..n { fill(k) } } }
//!                                                     }
//! ```

use super::blocks::Bound;
use super::pipeline::{Begun, exists};
use super::tensor::Full;
use super::wgmma::Flight;
use super::{Lower, Res};
use crate::kernel::ir as k;
use crate::kernel::registers::{self, UNIT};
use crate::loops::ir as l;
use crate::loops::overlap::Overlap;
use crate::loops::walk;

/// The most registers of a thread that computes.
const MOST: u32 = 240;
/// The registers that a thread keeps if it only starts copies.
const FEWEST: u32 = 24;
/// The words of its own from which on a thread gets more registers.
const MANY: u64 = 96;

/// Threads that fill beside those that compute: a warp, or, in a block that goes `apart`, a warpgroup that gives up most of its
/// registers where that is worth it.
pub(super) fn producers(kernel: &l::Kernel, consumers: u32, warp: u32, apart: bool) -> u32 {
    let group = warp * k::WARPGROUP;
    let mut found = false;
    walk::visit(&kernel.body, &mut |s| {
        found |= matches!(s, l::Stmt::For(f) if matches!(f.place, l::Place::Pipeline { roles: true, .. }));
    });
    let private = kernel.bufs.values().filter(|b| b.space == l::Space::Private && b.shape.len() > 1);
    let own: u64 = private.map(|b| b.bytes() / 4 / b.shape[0].max(1)).sum();
    match found {
        false => 0,
        true if apart && own >= MANY && consumers.is_multiple_of(group) && more(consumers, group).is_some() => group,
        true => warp,
    }
}

/// The registers of each thread at the start, where a warpgroup fills, and of the threads that compute; `None` if they get no more
/// than without it.
fn more(consumers: u32, group: u32) -> Option<[u32; 2]> {
    let at_first = registers::at_first(consumers + group);
    let pool = at_first * (consumers + group);
    let more = ((pool - FEWEST * group) / consumers / UNIT * UNIT).min(MOST);
    (at_first < MOST && more > at_first).then_some([at_first, more])
}

/// A block whose one pipeline a warp or a warpgroup fills, while the other threads do all the rest.
pub(super) struct Apart {
    consumers: u32,
    /// The registers of a thread that computes, where a warpgroup gives up its own.
    registers: Option<u32>,
    pipeline: l::For,
    depth: u32,
    /// The loop over the tiles that the block takes in turn.
    rounds: Option<l::For>,
    /// The pure statements before that loop, and in it, that compute what the filling needs.
    before: Vec<l::Stmt>,
    within: Vec<l::Stmt>,
}

impl Apart {
    /// `None` where all threads fill, the pipeline stands in another loop or a branch, or the filling needs more than indices.
    pub fn of(bound: &Bound, warp: u32) -> Option<Apart> {
        let (kernel, rounds) = (&bound.kernel, bound.rounds.as_ref().map(|r| r.axis));
        let consumers = super::threads::of(&kernel.body, warp);
        let group = warp * k::WARPGROUP;
        let registers = match producers(kernel, consumers, warp, true) {
            0 => return None,
            n if n == group => more(consumers, group).map(|[_, more]| more),
            _ => None,
        };
        let filled =
            |s: &l::Stmt| matches!(s, l::Stmt::For(f) if matches!(f.place, l::Place::Pipeline { roles: true, .. }));
        let in_turn = |s: &l::Stmt| matches!(s, l::Stmt::For(f) if Some(f.axis) == rounds && f.body.iter().any(filled));
        let at = kernel.body.iter().position(|s| filled(s) || in_turn(s))?;
        let (before, l::Stmt::For(first)) = (&kernel.body[..at], &kernel.body[at]) else { return None };
        let (rounds, within, pipeline) = match first.place {
            l::Place::Pipeline { .. } => (None, &[][..], first),
            _ => {
                let at = first.body.iter().position(filled)?;
                let l::Stmt::For(pipeline) = &first.body[at] else { return None };
                (Some((**first).clone()), &first.body[..at], pipeline)
            }
        };
        let l::Place::Pipeline { depth, .. } = pipeline.place else { return None };
        // The warp that fills would wait for readers who have left.
        if walk::effects(&kernel.body).leaves {
            return None;
        }
        let fills = walk::refs(pipeline.stages().0);
        let mut needed = fills.vals_used;
        let number = |axis: &l::AxisId| bound.numbers.iter().find(|(of, _)| of == axis).map(|(_, val)| *val);
        needed.extend(fills.axes_used.iter().filter_map(number));
        for hi in [&pipeline.hi].into_iter().chain(rounds.iter().map(|f| &f.hi)) {
            hi.any_leaf(&mut |leaf| {
                match leaf {
                    l::Ix::Val { val, .. } => _ = needed.insert(*val),
                    l::Ix::Axis(axis) => needed.extend(number(axis)),
                    _ => {}
                }
                false
            });
        }
        let mut slice = |list: &[l::Stmt]| -> Option<Vec<l::Stmt>> {
            let mut out = vec![];
            for s in list.iter().rev() {
                let refs = walk::refs(std::slice::from_ref(s));
                if refs.vals_defined.is_disjoint(&needed) {
                    continue;
                }
                if !matches!(s, l::Stmt::Let { .. } | l::Stmt::Index { .. } | l::Stmt::Test { .. }) {
                    return None;
                }
                needed.extend(refs.vals_used);
                needed.extend(refs.axes_used.iter().filter_map(number));
                out.insert(0, s.clone());
            }
            Some(out)
        };
        let within = slice(within)?;
        let before = slice(before)?;
        Some(Apart { consumers, registers, pipeline: (**pipeline).clone(), depth, rounds, before, within })
    }
}

pub(super) fn when(lhs: k::Ix, cmp: k::Cmp, rhs: i64, then: Vec<k::Stmt>, els: Vec<k::Stmt>) -> k::Stmt {
    let cond = k::Cond { lhs, cmp, rhs: k::Ix::Const(rhs) };
    k::Stmt::If { mask: k::Mask { conds: vec![cond], vals: vec![] }, then, els }
}

impl Lower<'_> {
    /// Declares the buffers that a warp fills for the others, and the mbarriers between them.
    pub(super) fn begin_roles(&mut self, f: &l::For, depth: u32) -> Res<Option<Full>> {
        self.declare_stages(f, depth)?;
        let consumers = super::threads::of(&self.src.body, self.out.warp);
        let readers = self.multipliers().unwrap_or(consumers / self.out.warp);
        self.tensors(f.stages().0, depth, false, Some(readers))
    }

    /// Builds statements of the threads that compute.
    fn of_consumers<T>(&mut self, consumers: u32, build: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        let all = std::mem::replace(&mut self.active, consumers);
        let done = build(self);
        self.active = all;
        done
    }

    /// A block whose threads go apart.
    pub(super) fn going_apart(&mut self, body: &[l::Stmt], apart: &Apart) -> Res<Vec<k::Stmt>> {
        let Apart { consumers, registers, pipeline, depth, rounds, before, within } = apart;
        let begin = |count: u32, more| k::Stmt::Registers { count, more };
        self.inner(|s| {
            s.allocate_tensor_memory()?;
            let full = s.begin_roles(pipeline, *depth)?;
            s.begun = Some((pipeline.axis, Begun::by_a_warp(full)));
            let (full, free) = s.free_of(pipeline, full)?;
            let compute = s.inner(|s| {
                registers.iter().for_each(|n| s.push(begin(*n, true)));
                s.first = Some(*consumers);
                let done = s.of_consumers(*consumers, |s| s.run(body));
                s.free_tensor_memory();
                s.first = None;
                done
            })?;
            let fill = s.inner(|s| {
                s.run(before)?;
                let Some(rounds) = rounds else { return s.filling(pipeline, (full, free), *depth) };
                let (axis, hi) = (s.axis_of(rounds.axis), s.ix(&rounds.hi)?);
                let each = s.at_axis(rounds.axis, k::Ix::Axis(axis), vec![], |s| {
                    s.inner(|s| {
                        s.run(within)?;
                        s.filling(pipeline, (full, free), *depth)
                    })
                });
                let (lo, step) = (k::Ix::Const(0), k::Ix::Const(1));
                s.push(k::Stmt::For { axis, lo, hi, step, unroll: 0, body: each? });
                Ok(())
            })?;
            let first = i64::from(*consumers);
            let fill = when(k::Ix::Thread, k::Cmp::Eq, first, fill, vec![]);
            let fewer = registers.map(|_| begin(FEWEST, false));
            s.push(when(k::Ix::Thread, k::Cmp::Lt, first, compute, fewer.into_iter().chain([fill]).collect()));
            Ok(())
        })
    }

    /// All threads meet that run the current statements.
    pub(super) fn meet(&mut self) {
        let all = match self.first {
            Some(count) => k::Stmt::BarrierFirst { count },
            None => k::Stmt::Barrier,
        };
        self.push(all);
    }

    fn free_of(&self, f: &l::For, full: Option<Full>) -> Res<(Full, k::BufId)> {
        full.and_then(|full| Some((full, full.free?))).ok_or_else(|| self.unplaced(f, "TMA fills none of its stages"))
    }

    /// The loop of the thread that fills.
    fn filling(&mut self, f: &l::For, (full, free): (Full, k::BufId), depth: u32) -> Res<()> {
        let (lo, hi, step) = (k::Ix::Const(0), self.ix(&f.hi)?, k::Ix::Const(1));
        let axis = self.axis_of(f.axis);
        let at = k::Ix::Axis(axis);
        let body = self.inner(|s| {
            let turn = s.turn(f, &at)?;
            let (phase, two) = (k::Ix::floor_div(turn.clone(), k::Ix::Const(depth.into())), k::Ix::Const(2));
            let parity = k::Ix::modulo(k::Ix::add(phase, k::Ix::Const(1)), two);
            s.push(k::Stmt::WaitPhase { on: full.generation(free, &turn), parity });
            s.fill_boxes(f, f.stages().0, &at, full)
        })?;
        self.push(k::Stmt::For { axis, lo, hi, step, unroll: 0, body });
        Ok(())
    }

    pub(super) fn specialised(&mut self, f: &l::For, depth: u32, overlap: bool) -> Res<()> {
        let (_, rest) = f.stages();
        let goes_on = if overlap { Overlap::of(self.src, f).ok() } else { None };
        // A block that goes on with another tile waits for its last product, so that the producer warp learns that its
        // operands have been read.
        let overlap = matches!(goes_on, Some(Overlap::Product)) && self.rounds.is_none();
        let consumers = super::threads::of(&self.src.body, self.out.warp);
        let full = match &self.begun {
            Some((axis, begun)) if *axis == f.axis => begun.full(),
            _ => self.begin_roles(f, depth)?,
        };
        let (full, free) = self.free_of(f, full)?;
        let (zero, one, hi) = (k::Ix::Const(0), k::Ix::Const(1), self.ix(&f.hi)?);

        let axis = self.axis_of(f.axis);
        let at = k::Ix::Axis(axis);
        // A generation has been read.
        let read = |s: &mut Self, generation: &k::Ix| {
            s.push(k::Stmt::SyncWarp);
            let lane = k::Ix::modulo(k::Ix::Thread, k::Ix::Const(s.out.warp.into()));
            let on = full.generation(free, generation);
            let blocks = s.out.cluster;
            let of = |block| (blocks > 1).then_some(block);
            let arrive = (0..blocks).map(|block| k::Stmt::Arrive { on: on.clone(), bytes: None, of: of(block) });
            when(lane, k::Cmp::Eq, 0, arrive.collect(), vec![])
        };
        let iteration = |s: &mut Self| {
            let turn = s.turn(f, &at)?;
            s.wait_boxes(&turn, full);
            s.of_consumers(consumers, |s| s.at_axis(f.axis, at.clone(), vec![], |s| s.run(rest)))?;
            // The generation that a product has read: the one of the iteration before, if products overlap.
            let of = if overlap { k::Ix::sub(at.clone(), one.clone()) } else { turn };
            let arrive = read(s, &of);
            s.push(if overlap { when(at.clone(), k::Cmp::Ge, 1, vec![arrive], vec![]) } else { arrive });
            Ok(())
        };
        let compute = self.inner(|s| {
            if s.multiplies_in_tensor_memory(f) {
                return s.of_consumers(consumers, |s| s.multiplied_by_one(f, (full, free)));
            }
            if let Some(Overlap::Last(parts)) = &goes_on {
                let stages = |s: &mut Self, at: &k::Ix| {
                    let turn = s.turn(f, at)?;
                    s.wait_boxes(&turn, full);
                    Ok(())
                };
                let each = |s: &mut Self, at: &k::Ix, before: Option<&k::Ix>| {
                    if before.is_none() {
                        stages(s, at)?;
                    }
                    // The stages of the next iteration: a wait in a loop, behind which NVIDIA's compiler moves nothing of what stands
                    // before it. It moves computations behind the wait for a product, which they are to hide.
                    let next = |s: &mut Self| {
                        let at = k::Ix::add(at.clone(), one.clone());
                        let then = s.inner(|s| stages(s, &at))?;
                        let mask = k::Mask { conds: vec![exists(&at, &hi)], vals: vec![] };
                        s.push(k::Stmt::If { mask, then, els: vec![] });
                        Ok(())
                    };
                    s.of_consumers(consumers, |s| s.overlapped(f, parts, at, before, next))?;
                    let Some(before) = before else { return Ok(()) };
                    let turn = s.turn(f, before)?;
                    let arrive = read(s, &turn);
                    s.push(arrive);
                    Ok(())
                };
                return s.turned(f, hi.clone(), each, |s, at| {
                    let acc = s.of_consumers(consumers, |s| s.last_product(f, parts, at, false))?;
                    s.push(k::Stmt::WgmmaWait { left: 0, acc, behind: vec![] });
                    // Nobody fills it again where the block has no further tile.
                    if s.rounds.is_some() {
                        let turn = s.turn(f, at)?;
                        let arrive = read(s, &turn);
                        s.push(arrive);
                    }
                    Ok(())
                });
            }
            let flight = if overlap { Flight::ONE } else { Flight::NONE };
            s.in_flight(flight, |s| {
                let body = s.inner(iteration)?;
                let (lo, hi, step) = (zero.clone(), hi.clone(), one.clone());
                s.push(k::Stmt::For { axis, lo, hi, step, unroll: 0, body });
                Ok(())
            })
        })?;

        if self.first.is_some() {
            compute.into_iter().for_each(|stmt| self.push(stmt));
            return Ok(());
        }
        let fill = self.inner(|s| s.filling(f, (full, free), depth))?;
        let first = i64::from(consumers);
        let fill = when(k::Ix::Thread, k::Cmp::Eq, first, fill, vec![]);
        self.push(when(k::Ix::Thread, k::Cmp::Lt, first, compute, vec![fill]));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiprocessor_has_the_registers_of_all() {
        assert_eq!([128, 256, 384].map(|consumers| more(consumers, 128)), [None, Some([168, 240]), Some([128, 160])]);
        for groups in 2..=7 {
            let consumers = groups * 128;
            let Some([_, more]) = more(consumers, 128) else { continue };
            assert!(more * consumers + FEWEST * 128 <= registers::ALL && more.is_multiple_of(UNIT), "{groups}");
        }
    }
}
