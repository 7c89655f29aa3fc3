//! Threads that wait for each other: all lanes of a warp, all threads of a block, the first of them.
//!
//! Threads meet when all that have not ended wait. If they wait at different statements, or some have ended, they still
//! meet, as on a GPU, and the watch is told. If no thread can run and none meet, the block is stuck.

use super::block::{Block, Group, Machine, Member, Wait, Warp, join};
use super::code::{Inst, Program};
use super::ops;
use super::step::At;
use super::watch::{Lacks, Left, Meeting, Scope, Standing, Watch, Wrong};
use crate::base::Code;
use crate::base::launch::Trap;
use crate::kernel::ir::WARPGROUP;

impl<const W: usize, V: Watch> Machine<'_, W, V> {
    /// A group begins to wait at the instruction it stands at.
    pub(super) fn wait(
        &mut self,
        block: &mut Block<W, V::Local>,
        warp: usize,
        group: usize,
        for_whom: Wait,
    ) -> Result<(), Trap> {
        let group = &mut block.warps[warp].groups[group];
        group.waits = Some(for_whom);
        let lanes = group.lanes.count_ones();
        match for_whom {
            Wait::Block => block.members[self.member(warp)].waiting += lanes,
            Wait::Cluster => block.waiting += lanes,
            Wait::Warp | Wait::First(_) | Wait::Phase(_) | Wait::Registers(_) => {}
        }
        self.settle(block, warp)
    }

    /// Lanes of a warp have ended.
    pub(super) fn end(&mut self, block: &mut Block<W, V::Local>, warp: usize, group: usize) -> Result<(), Trap> {
        let of = &mut block.warps[warp];
        let ended = of.groups.remove(group).lanes;
        of.live &= !ended;
        block.live -= ended.count_ones();
        let member = self.member(warp);
        block.members[member].live -= ended.count_ones();
        if block.members[member].live == 0 {
            self.tell_left(block, member);
        }
        self.settle(block, warp)
    }

    /// Reports the copies and products that still touch the block's shared memory, which another block may have next.
    fn tell_left(&mut self, block: &mut Block<W, V::Local>, member: usize) {
        let (warps, count) = (self.program.warps(W), self.program.mbarriers as usize);
        let of = member * warps..(member + 1) * warps;
        let mut left: Vec<(At, usize, Left)> = vec![];
        left.extend(self.stores_left(block, &of).into_iter().map(|(at, lane)| (at, lane, Left::Store)));
        let mbarriers = block.mbarriers.iter().skip(member * count).take(count);
        left.extend(mbarriers.flat_map(|m| m.unseen()).map(|(at, lane)| (at, lane, Left::Box)));
        let group = WARPGROUP as usize;
        let wrong = of.clone().filter(|warp| !(warp - member * warps).is_multiple_of(group)).filter_map(|warp| {
            let first = warp - (warp - member * warps) % group;
            Some((warp, block.warps[warp].products.differs(&block.warps[first].products)?))
        });
        let wrong: Vec<(usize, u32)> = wrong.collect();
        for (warp, statement) in wrong {
            let at = At { block: block.id, statement, warp, lanes: 1, lasts: true };
            self.wrong(at, 0, Wrong::Tensor("the warps of a group give a `wgmma` different panels".to_string()));
        }
        left.extend(self.tensor_left(block, member));
        for warp in of {
            let at = |statement, lanes| At { block: block.id, statement, warp, lanes, lasts: true };
            let Warp { flights, products, .. } = &block.warps[warp];
            let copies = flights.left().map(|(s, lanes)| (at(s, lanes), lanes.trailing_zeros() as usize, Left::Copy));
            left.extend(copies.chain(products.left().map(|s| (at(s, 1), 0, Left::Product))));
        }
        left.into_iter().for_each(|(at, lane, what)| self.wrong(at, lane, Wrong::Left(what)));
    }

    /// Lets groups go on that wait for threads which have all come.
    fn settle(&mut self, block: &mut Block<W, V::Local>, warp: usize) -> Result<(), Trap> {
        let of = &block.warps[warp];
        let lanes = of.groups.iter().filter(|g| g.waits == Some(Wait::Warp)).fold(0, |all, g| all | g.lanes);
        if lanes != 0 && lanes == of.live {
            self.meet_warp(block, warp)?;
        }
        let member = self.member(warp);
        self.meet_first(block, member);
        let Member { live, waiting, .. } = block.members[member];
        if waiting != 0 && waiting == live {
            self.meet_block(block, Some(member));
        }
        if block.waiting != 0 && block.waiting == block.live {
            self.meet_block(block, None);
        }
        Ok(())
    }

    fn meet_warp(&mut self, block: &mut Block<W, V::Local>, warp: usize) -> Result<(), Trap> {
        let program = self.program;
        let of = &mut block.warps[warp];
        join(&mut of.groups);
        if of.groups.len() > 1 || of.live != of.began {
            let ended = of.began & !of.live;
            let standing = of.groups.iter().map(|g| standing::<W>(program, warp, g, None)).collect();
            let ended = threads::<W>(warp, ended);
            let scope = Scope::Warp(warp as u32);
            self.watch.uneven(Meeting { block: block.id, scope, standing, ended });
        }
        let mut ordered = true;
        for number in 0..block.warps[warp].groups.len() {
            let of = &mut block.warps[warp];
            let group = &mut of.groups[number];
            let Group { at: here, lanes, .. } = *group;
            (group.at, group.waits) = (here + 1, None);
            match program.code.get(here as usize) {
                Some(Inst::Shuffle { dst, kind, value, by }) => {
                    ordered = false;
                    let (from, by) = (of.regs[*value as usize], of.regs[by.lane(0)]);
                    let to = &mut of.regs[*dst as usize];
                    ops::each::<W>(lanes, |l| to[l] = from[kind.source(l as u32, by[l], W as u32) as usize % W]);
                }
                Some(inst @ (Inst::Wgmma { .. } | Inst::WgmmaCommit | Inst::WgmmaWait { .. })) => {
                    ordered = false;
                    let statement = program.statements.get(here as usize).copied().unwrap_or(0);
                    let at = At { block: block.id, statement, warp, lanes, lasts: true };
                    self.warpgroups(block, at, here, inst)?;
                }
                Some(
                    inst @ (Inst::Tcgen05Alloc { .. }
                    | Inst::Tcgen05Relinquish
                    | Inst::Tcgen05Dealloc { .. }
                    | Inst::Tcgen05Load { .. }
                    | Inst::Tcgen05Wait { .. }),
                ) => {
                    ordered = false;
                    let statement = program.statements.get(here as usize).copied().unwrap_or(0);
                    let at = At { block: block.id, statement, warp, lanes, lasts: false };
                    self.of_tensor_memory(block, at, here, inst)?;
                }
                Some(inst @ (Inst::LoadMatrix { .. } | Inst::Mma { .. })) => {
                    ordered = false;
                    let statement = program.statements.get(here as usize).copied().unwrap_or(0);
                    let at = At { block: block.id, statement, warp, lanes, lasts: false };
                    self.matrices(block, at, inst)?;
                }
                _ => {}
            }
        }
        self.watch.met(&mut block.local, Scope::Warp(warp as u32), ordered);
        Ok(())
    }

    /// Lets the first threads of a block go on, if all that have not ended wait for each other.
    fn meet_first(&mut self, block: &mut Block<W, V::Local>, member: usize) {
        let (each, program) = (self.program.warps(W), self.program);
        let of = member * each..(member + 1) * each;
        let waits = |g: &Group| if let Some(Wait::First(count)) = g.waits { Some(count) } else { None };
        let Some(count) = block.warps[of.clone()].iter().flat_map(|w| &w.groups).find_map(waits) else { return };
        let (first, others) =
            (of.start..of.start + (count as usize / W).min(each), of.start + count as usize / W..of.end);
        let comes = |g: &Group| g.waits == Some(Wait::First(count));
        if !block.warps[first.clone()].iter().flat_map(|w| &w.groups).all(comes) {
            return;
        }
        for warp in &mut block.warps[first.clone()] {
            join(&mut warp.groups);
        }
        let groups = |of: std::ops::Range<usize>| {
            let warps = block.warps.iter().enumerate().take(of.end).skip(of.start);
            warps.flat_map(|(w, of)| of.groups.iter().map(move |g| (w, g)))
        };
        let ended = |of: std::ops::Range<usize>| -> Vec<u32> {
            let warps = block.warps.iter().enumerate().take(of.end).skip(of.start);
            warps.flat_map(|(w, of)| threads::<W>(w, of.began & !of.live)).collect()
        };
        let at = groups(first.clone()).next().map(|(_, g)| g.at);
        let strays = groups(others.start.min(of.end)..of.end).any(|(_, g)| comes(g));
        if strays || !ended(first.clone()).is_empty() || groups(first.clone()).any(|(_, g)| Some(g.at) != at) {
            let come = groups(of.clone()).filter(|(_, g)| comes(g));
            let standing = together(come.map(|(w, g)| standing::<W>(program, w, g, None)).collect());
            let scope = Scope::First(member as u32, count);
            self.watch.uneven(Meeting { block: block.id, scope, standing, ended: ended(first.clone()) });
        }
        for group in block.warps[first].iter_mut().flat_map(|w| &mut w.groups) {
            (group.at, group.waits) = (group.at + 1, None);
        }
        self.watch.met(&mut block.local, Scope::First(member as u32, count), true);
    }

    /// Lets the threads of one block of a cluster go on, or those of all its blocks.
    fn meet_block(&mut self, block: &mut Block<W, V::Local>, member: Option<usize>) {
        let program = self.program;
        let each = program.warps(W);
        let (from, to) = member.map_or((0, block.warps.len()), |m| (m * each, (m + 1) * each));
        let threads_of = program.threads * member.map_or(program.cluster, |_| 1);
        let live = member.map_or(block.live, |m| block.members[m].live);
        for warp in &mut block.warps[from..to] {
            join(&mut warp.groups);
        }
        let mut places = block.warps[from..to].iter().flat_map(|w| &w.groups).map(|g| g.at);
        let first = places.next();
        if live != threads_of || places.any(|at| Some(at) != first) {
            let warps = block.warps.iter().enumerate().take(to).skip(from);
            let groups = warps.flat_map(|(w, of)| of.groups.iter().map(move |g| standing::<W>(program, w, g, None)));
            let standing = together(groups.collect());
            let warps = block.warps.iter().enumerate().take(to).skip(from);
            let ended = warps.flat_map(|(w, of)| threads::<W>(w, of.began & !of.live));
            let ended = ended.collect();
            self.watch.uneven(Meeting {
                block: block.id,
                scope: member.map_or(Scope::Cluster, |m| Scope::Block(m as u32)),
                standing,
                ended,
            });
        }
        for group in block.warps[from..to].iter_mut().flat_map(|w| &mut w.groups) {
            (group.at, group.waits) = (group.at + 1, None);
        }
        let scope = match member {
            Some(member) => {
                block.members[member].waiting = 0;
                Scope::Block(member as u32)
            }
            None => {
                block.waiting = 0;
                Scope::Cluster
            }
        };
        self.watch.met(&mut block.local, scope, true);
    }

    /// The end of a run in which no thread of a block can go on.
    pub(super) fn stuck(&mut self, block: &Block<W, V::Local>) -> Trap {
        let warps = block.warps.iter().enumerate();
        let program = self.program;
        let one = |w: usize, g: &Group| {
            let lacks = match g.waits {
                Some(Wait::Phase(number)) => {
                    block.mbarriers.get(number as usize).map(|m| Lacks::Phase(m.missing(number)))
                }
                Some(Wait::Registers(asks)) => Some(self.lacks_registers(block, w, asks)),
                _ => None,
            };
            standing::<W>(program, w, g, lacks)
        };
        let groups: Vec<Standing> = warps.flat_map(|(w, of)| of.groups.iter().map(move |g| one(w, g))).collect();
        self.watch.stuck(block.id, together(groups));
        self.trap(block.id, Code::OutOfFuel, None, "the threads of a block wait for each other forever".to_string())
    }
}

fn threads<const W: usize>(warp: usize, lanes: u32) -> Vec<u32> {
    (0..W as u32).filter(|l| lanes >> l & 1 == 1).map(|l| (warp * W) as u32 + l).collect()
}

/// The threads of a group, and the statement that they stand at.
fn standing<const W: usize>(program: &Program, warp: usize, group: &Group, lacks: Option<Lacks>) -> Standing {
    let statement = program.statements.get(group.at as usize).copied().unwrap_or(0);
    Standing { statement, threads: threads::<W>(warp, group.lanes), lacks }
}

/// The same with each statement once, in the order of the text.
fn together(all: Vec<Standing>) -> Vec<Standing> {
    let mut out: Vec<Standing> = vec![];
    for one in all {
        match out.iter_mut().find(|s| (s.statement, s.lacks) == (one.statement, one.lacks)) {
            Some(same) => same.threads.extend(one.threads),
            None => out.push(one),
        }
    }
    out.iter_mut().for_each(|s| s.threads.sort_unstable());
    out.sort_by_key(|s| s.statement);
    out
}
