//! `bind` to threads that share all that a block does.
//!
//! ```text
//! local x: f32[1024]                               local x: f32[1024] shared
//! for j in 0..1024: free                           for t in 0..256: free thread
//!   v = load src[j]                                  for e in 0..4: free
//!   x[j] = v                                -->        v = load src[e*256 + t]
//!                                                      x[e*256 + t] = v
//! old = atomic add count[0], 1                     local once: i32[1] shared
//!                                                  for t in 0..1: free thread
//!                                                    old = atomic add count[0], 1
//!                                                    once[0] = old
//!                                                  old = once[0]
//! ```
//!
//! Each nest of free loops is shared by its elements, tiles lie in memory that the threads share, and the first thread does what is
//! done once. Scalars, and reductions into them, are computed by every thread alike. Legal for all nests that threads come by.

use rustc_hash::FxHashSet;

use crate::index::Facts;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::primitives::line::{LoopRef, look_where};
use crate::tile::primitives::split::Pieces;
use crate::tile::tile_nest::check_bounds;
use crate::tile::{Context, edit, wide};

/// The nests of free loops that every thread of a block comes by, outermost loops only.
pub fn nests(kernel: &Kernel) -> Vec<(LoopRef, &For)> {
    let mut out = vec![];
    // One thread begins a copy by TMA.
    let enter = |s: &Stmt| !matches!(s, Stmt::Stage { filled: Filled::Tma, .. });
    look_where(kernel, &enter, &mut |at, f| {
        let nest = is_nest(f);
        if nest {
            out.push((at, f));
        }
        !nest && !matches!(f.place, Place::Thread | Place::TmaStore)
    });
    out
}

fn is_nest(f: &For) -> bool {
    f.is_free_unplaced()
}

pub fn apply(kernel: &mut Kernel, ctx: &Context, loops: &[LoopRef], threads: u32) -> Result<(), String> {
    can_have(ctx, threads)?;
    let all: Vec<LoopRef> = nests(kernel).into_iter().map(|(at, _)| at).collect();
    if loops.iter().any(|at| !all.contains(at)) {
        return Err("a loop is not free, is placed, or stands in another free loop".into());
    }
    if let Some(other) = all.iter().find(|at| !loops.contains(at)) {
        let name = kernel.axes.get(other.axis).map_or("", |a| a.name.as_str());
        return Err(format!("the threads come by the free loop `{name}`, too: name it"));
    }
    let body = std::mem::take(&mut kernel.body);
    let mut used = FxHashSet::default();
    walk::visit(&body, &mut |s| walk::each_use(s, &mut |v| _ = used.insert(v)));
    let facts = kernel.facts();
    let mut spread = Spread { ctx, threads: threads.into(), facts, kernel, used, changed: false };
    let body = spread.body(body);
    let changed = spread.changed;
    kernel.body = body;
    if changed { Ok(()) } else { Err("the threads share all that a block does".into()) }
}

/// Checks that a block can have a number of threads.
pub fn can_have(ctx: &Context, threads: u32) -> Result<(), String> {
    match ctx.target.axes.threads {
        1 => Err(format!("{} runs a block on one thread", ctx.target.name)),
        most if threads == 0 || threads > most => Err(format!("a block has 1 to {most} threads, not {threads}")),
        _ => Ok(()),
    }
}

struct Spread<'a> {
    ctx: &'a Context,
    threads: i64,
    facts: Facts,
    kernel: &'a mut Kernel,
    /// Values that some statement reads.
    used: FxHashSet<ValId>,
    changed: bool,
}

impl Spread<'_> {
    /// Statements that every thread of the block comes by.
    fn body(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(body.len());
        for s in body {
            self.stmt(s, &mut out);
        }
        out
    }

    fn stmt(&mut self, mut s: Stmt, out: &mut Vec<Stmt>) {
        match &s {
            Stmt::For(f) if f.place == Place::Thread => out.push(s),
            // One thread begins it.
            Stmt::Stage { filled: Filled::Tma, .. } => out.push(s),
            Stmt::For(f) if f.place == Place::TmaStore => out.push(s),
            Stmt::For(f) if is_nest(f) => {
                self.changed = true;
                let made = self.nest(f);
                out.push(made);
            }
            Stmt::For(_) | Stmt::Loop { .. } | Stmt::If { .. } | Stmt::Stage { .. } => {
                for b in walk::bodies_mut(&mut s) {
                    let inner = std::mem::take(b);
                    *b = self.body(inner);
                }
                out.push(s);
            }
            Stmt::Local { buf } => {
                let b = &mut self.kernel.bufs[*buf];
                if !b.shape.is_empty() && b.space == Space::Scratch {
                    b.space = Space::Shared;
                    self.changed = true;
                }
                out.push(s);
            }
            Stmt::Load { order: Order::Weak, .. } => out.push(s),
            Stmt::Write { buf, .. } if self.kernel.bufs[*buf].shape.is_empty() => out.push(s),
            Stmt::Load { dst, .. } | Stmt::Rmw { dst, .. } | Stmt::Cas { dst, .. } if self.used.contains(dst) => {
                let dst = *dst;
                self.passed_on(s, dst, out);
            }
            Stmt::Load { .. }
            | Stmt::Rmw { .. }
            | Stmt::Cas { .. }
            | Stmt::Store { .. }
            | Stmt::Write { .. }
            | Stmt::Print { .. }
            | Stmt::Assert { .. } => {
                let once = self.once(vec![s]);
                out.push(once);
            }
            _ => out.push(s),
        }
    }

    /// Done by the first thread.
    fn once(&mut self, body: Vec<Stmt>) -> Stmt {
        self.changed = true;
        let t = self.kernel.axes.push(Axis { name: "t".into(), from: None });
        edit::loop_with(t, Ix::Const(1), body, |f| f.place = Place::Thread)
    }

    /// Done by the first thread, and what it got read by all.
    fn passed_on(&mut self, mut s: Stmt, dst: ValId, out: &mut Vec<Stmt>) {
        let Val { ty, name } = self.kernel.vals[dst].clone();
        let own = self.kernel.vals.push(Val { ty, name });
        walk::parts_mut(&mut s, &mut |part| {
            if let walk::PartMut::DefVal(v) = part {
                *v = own;
            }
        });
        let buf = self.kernel.bufs.push(Buf { space: Space::Shared, ..Buf::new("once", ty, vec![1]) });
        let idx = vec![Ix::Const(0)];
        let keep = Stmt::Write { buf, idx: idx.clone(), value: Opnd::Val(own) };
        let once = self.once(vec![s, keep]);
        out.extend([Stmt::Local { buf }, once, Stmt::Read { dst, buf, idx }]);
    }

    /// A nest of free loops, element by element.
    fn nest(&mut self, f: &For) -> Stmt {
        let mut chain = edit::free_chain(f);
        if check_bounds(&chain).is_err() {
            chain.truncate(1);
        }
        let mut facts = self.facts.clone();
        // The elements of one access go to one thread, where every thread still has something to do.
        let enough = |n: Option<i64>| n.is_some_and(|n| n >= self.threads);
        let numbered = wide::numbered(self.kernel, self.ctx, &chain, &facts, &enough);
        let Some((numbered, body)) = numbered else { return Stmt::For(Box::new(f.clone())) };
        let threads = numbered.total.as_const().map_or(self.threads, |n| n.clamp(1, self.threads));
        let rounds = Rounds::new(self.kernel, numbered.total.clone(), threads, &mut facts);
        let body = numbered.body(self.kernel, body, &rounds.number(), threads, &facts);
        rounds.around(f, body, |_| {})
    }
}

/// How threads share the numbers of a nest's elements: neighbours take neighbouring numbers, round after round.
pub struct Rounds {
    pub thread: AxisId,
    threads: i64,
    /// The loop over the rounds, with how many there are; `None` of one.
    loops: Option<(AxisId, Ix)>,
}

impl Rounds {
    /// Enters the ranges of its axes into `facts`.
    pub fn new(kernel: &mut Kernel, total: Ix, threads: i64, facts: &mut Facts) -> Rounds {
        let mut axis = |name: &str| kernel.axes.push(Axis { name: name.into(), from: None });
        let thread = axis("t");
        facts.set_axis(thread, &Ix::Const(0), &Ix::Const(threads));
        let count = Pieces::new(total, threads).count(facts);
        let loops = (!count.is_const(1)).then(|| (axis("e"), count));
        if let Some((e, count)) = &loops {
            facts.set_axis(*e, &Ix::Const(0), count);
        }
        Rounds { thread, threads, loops }
    }

    /// The round, from 0 on.
    pub fn round(&self) -> Ix {
        self.loops.as_ref().map_or(Ix::Const(0), |(e, _)| Ix::Axis(*e))
    }

    /// The number that a thread takes in a round.
    pub fn number(&self) -> Ix {
        Ix::add(Ix::mul(self.round(), Ix::Const(self.threads)), Ix::Axis(self.thread))
    }

    /// The loops over threads and rounds around what is done with an element of a nest or reduction `f`.
    pub fn around(self, f: &For, mut body: Vec<Stmt>, of_round: impl FnOnce(&mut For)) -> Stmt {
        if let Some((e, count)) = self.loops {
            body = vec![edit::loop_with(e, count, body, of_round)];
        }
        edit::loop_with(self.thread, Ix::Const(self.threads), body, |l| {
            (l.place, l.kind, l.combine) = (Place::Thread, f.kind, f.combine.clone());
        })
    }
}
