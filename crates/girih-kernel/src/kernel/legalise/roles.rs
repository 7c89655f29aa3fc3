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
//! Where the threads that compute need many registers, a whole warpgroup fills, and gives up registers for them
//! (`registers`). Their own work before and after the loop stands between their statements `registers`
//! then ([`gather`]): a compiler that sees those arrays behind both branches keeps them in the registers of the threads
//! that fill, too, which have none left.
//!
//! ```text
//! if tx < 256 { acc = 0 }
//! barrier                                                 barrier
//! if tx < 256 { registers more 240   for k ... }          if tx < 256 { registers more 240   acc = 0   for k ...   store acc
//! else { registers fewer 24   fill }                -->                 registers fewer 168 }
//! barrier   if tx >= 256 { registers more 168 }           else { registers fewer 24   fill }
//! if tx < 256 { store acc }                               barrier   if tx >= 256 { registers more 168 }
//! ```

use std::collections::BTreeSet;

use super::pipeline::exists;
use super::tensor::Full;
use super::wgmma::Flight;
use super::{Lower, Res};
use crate::base::IdMap;
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

/// Threads that fill beside those that compute: a warp, or a warpgroup that gives up most of its registers.
pub(super) fn producers(kernel: &l::Kernel, consumers: u32, warp: u32) -> u32 {
    let group = warp * k::WARPGROUP;
    let mut found = false;
    walk::visit(&kernel.body, &mut |s| {
        found |= matches!(s, l::Stmt::For(f) if matches!(f.place, l::Place::Pipeline { roles: true, .. }));
    });
    let private = kernel.bufs.values().filter(|b| b.space == l::Space::Private && b.shape.len() > 1);
    let own: u64 = private.map(|b| b.bytes() / 4 / b.shape[0].max(1)).sum();
    match found {
        false => 0,
        true if own >= MANY && consumers.is_multiple_of(group) && more(consumers, group).is_some() => group,
        true => warp,
    }
}

/// The registers of each thread at the start, where a warpgroup fills, and of the threads that compute in the loop;
/// `None` if they get no more than without it.
fn more(consumers: u32, group: u32) -> Option<[u32; 2]> {
    let at_first = registers::at_first(consumers + group);
    let pool = at_first * (consumers + group);
    let more = ((pool - FEWEST * group) / consumers / UNIT * UNIT).min(MOST);
    (at_first < MOST && more > at_first).then_some([at_first, more])
}

fn when(lhs: k::Ix, cmp: k::Cmp, rhs: i64, then: Vec<k::Stmt>, els: Vec<k::Stmt>) -> k::Stmt {
    let cond = k::Cond { lhs, cmp, rhs: k::Ix::Const(rhs) };
    k::Stmt::If { mask: k::Mask { conds: vec![cond], vals: vec![] }, then, els }
}

impl Lower<'_> {
    /// Declares the buffers that a warp fills for the others, and the mbarriers between them.
    pub(super) fn begin_roles(&mut self, f: &l::For, depth: u32) -> Res<Option<Full>> {
        self.declare_stages(f, depth)?;
        let consumers = super::threads::of(&self.src.body, self.out.warp);
        self.tensors(f.stages().0, depth, false, Some(consumers / self.out.warp))
    }

    /// Builds statements of the threads that compute.
    fn of_consumers<T>(&mut self, consumers: u32, build: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        let all = std::mem::replace(&mut self.active, consumers);
        let done = build(self);
        self.active = all;
        done
    }

    pub(super) fn specialised(&mut self, f: &l::For, depth: u32, overlap: bool) -> Res<()> {
        let (stages, rest) = f.stages();
        let goes_on = if overlap { Overlap::of(self.src, f).ok() } else { None };
        // A block that goes on with another tile waits for its last product, so that the producer warp learns that its
        // operands have been read.
        let overlap = matches!(goes_on, Some(Overlap::Product)) && self.rounds.is_none();
        let consumers = super::threads::of(&self.src.body, self.out.warp);
        let group = self.out.warpgroup();
        let more = more(consumers, group).filter(|_| self.out.threads - consumers == group);
        let full = match &self.begun {
            Some(begun) => begun.full(),
            None => self.begin_roles(f, depth)?,
        };
        let Some((full, free)) = full.and_then(|full| Some((full, full.free?))) else {
            return Err(self.unplaced(f, "TMA fills none of its stages"));
        };
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
            let flight = if overlap { Flight::One(None) } else { Flight::None };
            s.in_flight(flight, |s| {
                let body = s.inner(iteration)?;
                let (lo, hi, step) = (zero.clone(), hi.clone(), one.clone());
                s.push(k::Stmt::For { axis, lo, hi, step, unroll: 0, body });
                Ok(())
            })
        })?;

        let axis = self.axis_of(f.axis);
        let at = k::Ix::Axis(axis);
        let body = self.inner(|s| {
            let turn = s.turn(f, &at)?;
            let (phase, two) = (k::Ix::floor_div(turn.clone(), k::Ix::Const(depth.into())), k::Ix::Const(2));
            let parity = k::Ix::modulo(k::Ix::add(phase, k::Ix::Const(1)), two);
            s.push(k::Stmt::WaitPhase { on: full.generation(free, &turn), parity });
            s.fill_boxes(f, stages, &at, full)
        })?;
        let fill = k::Stmt::For { axis, lo: zero, hi, step: one, unroll: 0, body };
        let first = i64::from(consumers);
        let fill = when(k::Ix::Thread, k::Cmp::Eq, first, vec![fill], vec![]);
        let begin = |count, more| k::Stmt::Registers { count, more };
        let Some([all, more]) = more else {
            self.push(when(k::Ix::Thread, k::Cmp::Lt, first, compute, vec![fill]));
            return Ok(());
        };
        let compute = [vec![begin(more, true)], compute, vec![begin(all, false)]].concat();
        self.push(when(k::Ix::Thread, k::Cmp::Lt, first, compute, vec![begin(FEWEST, false), fill]));
        // All threads go on with the registers they had before. Most of those that fill have nothing to wait for in the
        // loop: they take their registers back when the others have returned the ones they got.
        self.push(k::Stmt::Barrier);
        self.push(when(k::Ix::Thread, k::Cmp::Ge, first, vec![begin(all, true)], vec![]));
        Ok(())
    }
}

/// Moves into the branch of the threads that compute what these alone do before and after it.
pub(super) fn gather(body: &mut Vec<k::Stmt>, slots: &IdMap<k::BufId, k::Slot>) {
    for stmt in &mut *body {
        match stmt {
            k::Stmt::For { body, .. } | k::Stmt::Loop { body } => gather(body, slots),
            k::Stmt::If { then, els, .. } => {
                gather(then, slots);
                gather(els, slots);
            }
            _ => {}
        }
    }
    let Some(at) = body.iter().position(|s| begins(s).is_some()) else { return };
    let Some(own) = begins(&body[at]).cloned() else { return };
    // Behind it come a barrier, and the others' registers.
    let tail = (at + 3).min(body.len());
    // Where the rest meets other threads, what stands before it; a value that it defines would be used there.
    let count = match body[tail..].iter().all(|s| alone(s, &own)) {
        true => body.len() - tail,
        false => body[tail..].iter().take_while(|s| is_own(s, &own) && alone(s, &own)).count(),
    };
    let behind: Vec<k::Stmt> = body.drain(tail..tail + count).collect();
    let behind = unwrapped(behind, &own);
    let mut before = vec![];
    let mut between = BTreeSet::new();
    for n in (0..at).rev() {
        match own_slots(&body[n], slots).filter(|_| is_own(&body[n], &own)) {
            Some(used) if used.is_disjoint(&between) => before.insert(0, body.remove(n)),
            _ => between.extend(touched(&body[n])),
        }
    }
    let at = at - before.len();
    let before = unwrapped(before, &own);
    if let k::Stmt::If { then, .. } = &mut body[at] {
        let returns = then.len() - 1;
        then.splice(returns..returns, behind);
        then.splice(1..1, before);
    }
}

/// The condition of the threads that compute, of a branch in which they get registers from those that fill.
fn begins(s: &k::Stmt) -> Option<&k::Mask> {
    let k::Stmt::If { mask, then, els } = s else { return None };
    let more = |of: Option<&k::Stmt>, is| matches!(of, Some(k::Stmt::Registers { more, .. }) if *more == is);
    (more(then.first(), true) && more(then.last(), false) && more(els.first(), false)).then_some(mask)
}

/// Returns true if a statement is done by the threads of a condition, and by these alone.
fn is_own(s: &k::Stmt, own: &k::Mask) -> bool {
    matches!(s, k::Stmt::If { mask, els, .. } if mask == own && els.is_empty())
}

/// Returns true if a statement meets no other thread, and has effects for the threads that compute only.
fn alone(s: &k::Stmt, own: &k::Mask) -> bool {
    let meets = |s: &k::Stmt| !matches!(s.runs(), k::Runs::Any | k::Runs::Threads) || s.work() == k::Work::Barrier;
    match s {
        s if is_own(s, own) => {
            let mut met = false;
            k::statements(std::slice::from_ref(s), &mut |s| met |= meets(s));
            !met
        }
        k::Stmt::If { then, els, .. } => then.iter().chain(els).all(|s| alone(s, own)),
        k::Stmt::For { body, .. } => body.iter().all(|s| alone(s, own)),
        s => {
            let mut updates = false;
            s.parts(&mut |part| updates |= matches!(part, k::Part::Updates(_)));
            s.work() == k::Work::Arithmetic && !updates
        }
    }
}

/// The statements without the condition that all of their threads meet.
fn unwrapped(body: Vec<k::Stmt>, own: &k::Mask) -> Vec<k::Stmt> {
    let one = |s: k::Stmt| match s {
        k::Stmt::If { mask, then, els } if mask == *own && els.is_empty() => then,
        k::Stmt::If { mask, then, els } => {
            vec![k::Stmt::If { mask, then: unwrapped(then, own), els: unwrapped(els, own) }]
        }
        k::Stmt::For { axis, lo, hi, step, unroll, body } => {
            vec![k::Stmt::For { axis, lo, hi, step, unroll, body: unwrapped(body, own) }]
        }
        s => vec![s],
    };
    body.into_iter().flat_map(one).collect()
}

/// The slots that a statement uses, where it uses nothing else but the thread's own.
fn own_slots(s: &k::Stmt, slots: &IdMap<k::BufId, k::Slot>) -> Option<BTreeSet<k::BufId>> {
    let mut other = false;
    k::statements(std::slice::from_ref(s), &mut |s| {
        other |= !matches!(s.runs(), k::Runs::Any) || s.work() == k::Work::Barrier;
        s.parts(&mut |part| match part {
            k::Part::At(k::Address::Slot { buf, .. }, _) => other |= slots[*buf].is_shared(),
            k::Part::Slot(buf, _) => other |= slots[buf].is_shared(),
            k::Part::At(..) | k::Part::Tensor(..) | k::Part::Updates(_) => other = true,
            _ => {}
        });
    });
    (!other).then(|| touched(s))
}

fn touched(s: &k::Stmt) -> BTreeSet<k::BufId> {
    let mut out = BTreeSet::new();
    k::statements(std::slice::from_ref(s), &mut |s| {
        s.parts(&mut |part| match part {
            k::Part::At(k::Address::Slot { buf, .. }, _) => _ = out.insert(*buf),
            k::Part::Slot(buf, _) => _ = out.insert(buf),
            _ => {}
        });
    });
    out
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
