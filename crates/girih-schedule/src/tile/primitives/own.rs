//! `own`: each thread of a block has some elements of a tile for itself, in registers.
//!
//! ```text
//! local x: f32[1000]                               local x: f32[256, 4] private
//! for i in 0..1000: free                           for t in 0..256: thread: for e in 0..4:
//!   x[i] = load src[i]                               x[t, e] = load src[e*256 + t]        where that is below 1000
//! for k in 0..1000: reduce thread          -->     for t in 0..256: reduce thread combine add(s)
//!     combine add(s)                                 for e in 0..4: s <- x[t, e] + s
//!   s <- x[k] + s                                  for t in 0..256: thread: for e in 0..4:
//! for j in 0..1000: free                             store dst[e*256 + t] = x[t, e] / s
//!   store dst[j] = x[j] / s
//! ```
//!
//! Nests that share such a tile, or are joined by several, are spread alike: a thread takes the number of neighbouring elements that
//! one access of global memory moves in all of them, or one element if a reduction reads global memory. The nests are unrolled, or
//! `rolled`: then tiles are in each thread's own memory.
//!
//! Legal where every nest that writes or reads the tile goes through it in the same order, so that no thread needs the elements of
//! another.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::{Facts, gcd, simplify};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::{self, Visit};
use crate::tile::numbered::Numbered;
use crate::tile::primitives::bind::spread::{self, Rounds};
use crate::tile::tile_nest::check_bounds;
use crate::tile::wide;

/// Elements of a thread that are written out, at most.
const MOST_UNROLLED: i64 = 4096;

pub fn apply(kernel: &mut Kernel, ctx: &Context, bufs: &[BufId], threads: u32, rolled: bool) -> Result<(), String> {
    spread::can_have(ctx, threads)?;
    let threads = i64::from(threads);
    let p = kernel.clone();
    let Found { mut tiles, nests, .. } = Found::of(&p, threads);
    for buf in bufs {
        match tiles.remove(buf) {
            Some(Ok(()) | Err(Why::Registers(_))) => {}
            Some(Err(Why::Shared(why))) => return Err(why),
            None => return Err("it is not a tile of the block's own".into()),
        }
    }
    let mut shares = shares(&p, ctx, threads, &nests, &bufs.iter().copied().collect());
    shares.iter_mut().for_each(|s| s.rolled = rolled);
    for buf in bufs {
        let own = own(&p.bufs[*buf], lanes_of(&shares, *buf), threads);
        if own > MOST_UNROLLED && !rolled {
            return Err(format!("each thread would have {own} elements; {MOST_UNROLLED} are written out at most"));
        }
        let b = &mut kernel.bufs[*buf];
        (b.shape, b.space) = (vec![threads as u64, own as u64], Space::Private);
    }
    let spread = edit::rewrite(kernel, &mut |kernel, s| {
        let Stmt::For(f) = s else { return Visit::Into };
        match shares.iter().find(|share| share.nests.contains(&f.axis)) {
            Some(share) => Visit::Replace(vec![share.spread(kernel, f, threads)]),
            None if f.place == Place::Thread => Visit::Leave,
            None => Visit::Into,
        }
    });
    if let Some(spread) = spread {
        *kernel = spread;
    }
    Ok(())
}

/// Why threads do not have a tile for themselves.
#[derive(Clone, Debug)]
pub enum Why {
    /// Threads have too few registers for it.
    Registers(String),
    /// Threads need each other's elements, or nobody knows.
    Shared(String),
}

impl Why {
    pub fn into_text(self) -> String {
        match self {
            Why::Registers(text) | Why::Shared(text) => text,
        }
    }
}

pub type State = Result<(), Why>;

fn elements(b: &Buf) -> i64 {
    b.shape.iter().try_fold(1i64, |n, d| n.checked_mul(i64::try_from(*d).ok()?)).unwrap_or(i64::MAX >> 16)
}

/// Elements of a tile that one thread has, at most.
pub fn own(b: &Buf, lanes: i64, threads: i64) -> i64 {
    let all = lanes * threads;
    (elements(b) / all + i64::from(elements(b) % all != 0)) * lanes
}

/// Neighbouring elements of a tile that one thread has.
pub fn lanes_of(shares: &[Share], buf: BufId) -> i64 {
    shares.iter().find(|s| s.tiles.contains(&buf)).map_or(1, |s| s.lanes)
}

/// A nest of free loops, or a reduction that all threads fold together, by its outermost axis; and the tiles it touches, each with the
/// place of the nest's first element in it.
pub struct Walked<'a> {
    f: &'a For,
    tiles: BTreeMap<BufId, Ix>,
    /// A divisor of these places.
    step: i64,
}

/// The uses that a kernel's nests make of its tiles.
pub struct Found<'a> {
    kernel: &'a Kernel,
    threads: i64,
    facts: Facts,
    /// Each tile of the block, or why it cannot be kept.
    pub tiles: BTreeMap<BufId, State>,
    pub nests: Vec<Walked<'a>>,
}

impl<'a> Found<'a> {
    pub fn of(kernel: &'a Kernel, threads: i64) -> Found<'a> {
        let mut found = Found { kernel, threads, facts: kernel.facts(), tiles: BTreeMap::new(), nests: vec![] };
        found.body(&kernel.body);
        found
    }

    /// Statements that every thread of the block comes by.
    fn body(&mut self, body: &'a [Stmt]) {
        for s in body {
            match s {
                Stmt::Local { buf } => {
                    let b = &self.kernel.bufs[*buf];
                    if !b.shape.is_empty() && b.space == Space::Scratch {
                        self.tiles.entry(*buf).or_insert(Ok(()));
                    }
                }
                Stmt::For(f) if f.is_free_unplaced() => self.nest(f),
                Stmt::For(f) if f.kind == LoopKind::Reduce && f.place == Place::Thread => self.nest(f),
                Stmt::For(f) if f.place == Place::Thread => self.refuse(s, "a nest that uses it is spread already"),
                Stmt::For(f) => {
                    if let Some(stream) = &f.stream {
                        self.not([stream.acc].into(), "a running sum of weights uses it");
                    }
                    self.body(&f.body);
                }
                Stmt::Loop { body } => self.body(body),
                Stmt::If { then, els, .. } => {
                    self.body(then);
                    self.body(els);
                }
                _ => self.refuse(s, "a statement outside of nests uses it"),
            }
        }
    }

    fn not(&mut self, bufs: BTreeSet<BufId>, why: &str) {
        for buf in bufs {
            if let Some(state) = self.tiles.get_mut(&buf)
                && !matches!(state, Err(Why::Shared(_)))
            {
                *state = Err(Why::Shared(why.to_string()));
            }
        }
    }

    fn refuse(&mut self, s: &Stmt, why: &str) {
        self.not(touched(std::slice::from_ref(s)), why);
    }

    fn nest(&mut self, f: &'a For) {
        let all = touched(&f.body);
        let tiles: BTreeSet<BufId> = all.iter().copied().filter(|b| self.tiles.contains_key(b)).collect();
        if tiles.is_empty() {
            return;
        }
        if let Some(why) = self.unknown(f) {
            return self.not(tiles, why);
        }
        let chain = chain(f);
        let mut facts = self.facts.clone();
        let mut number = Ix::Const(0);
        for f in &chain {
            facts.set_axis(f.axis, &Ix::Const(0), &f.hi);
            number = Ix::add(Ix::mul(number, f.hi.clone()), Ix::Axis(f.axis));
        }
        let number = simplify(&number, &facts);
        let (mut others, mut firsts) = (BTreeSet::new(), BTreeMap::new());
        walk::visit(&f.body, &mut |s| match s {
            Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } if tiles.contains(buf) => {
                let at = simplify(&Ix::row_major(idx, &self.kernel.bufs[*buf].shape), &facts);
                let first = match at == number {
                    true => Ix::Const(0),
                    false => simplify(&Ix::sub(at, number.clone()), &facts),
                };
                let same = *firsts.entry(*buf).or_insert_with(|| first.clone()) == first;
                let fixed = chain.iter().all(|f| !first.has_axis(f.axis));
                if !same || !fixed || self.step_of(&first).is_none() {
                    others.insert(*buf);
                }
            }
            Stmt::Read { .. } | Stmt::Write { .. } => {}
            s => others.extend(itself(s).into_iter().filter(|b| tiles.contains(b))),
        });
        firsts.retain(|buf, _| !others.contains(buf));
        self.not(others, "a nest needs its elements in another order");
        for (buf, first) in &firsts {
            if !first.is_const(0)
                && let Some(state @ Ok(())) = self.tiles.get_mut(buf)
            {
                *state = Err(Why::Registers("a loop goes through it part by part".into()));
            }
        }
        let step = firsts.values().filter_map(|first| self.step_of(first)).fold(0, gcd);
        self.nests.push(Walked { f, tiles: firsts, step });
    }

    /// A number that divides every value of a place, and that the threads divide; 0 for the place 0. `None` where it is not a sum of
    /// multiples of axes, with enough elements between its values that each thread has some.
    fn step_of(&self, place: &Ix) -> Option<i64> {
        let (mut rest, mut step) = (place.clone(), 0);
        for axis in place.axes() {
            let (by, others) = rest.linear(axis)?;
            (rest, step) = (others, gcd(step, by.as_const()?));
        }
        step = gcd(step, rest.as_const()?);
        (step % self.threads == 0).then_some(step)
    }

    /// Why the elements of a nest cannot be given out to threads one by one.
    fn unknown(&self, f: &For) -> Option<&'static str> {
        let chain = chain(f);
        if check_bounds(&chain).is_err() {
            return Some("the bounds of a nest's loops depend on each other");
        }
        let total = chain.iter().try_fold(1i64, |n, f| n.checked_mul(f.hi.as_const()?));
        if total.is_none_or(|n| n <= 0) {
            return Some("a nest's length is not known");
        }
        let folds = f.kind == LoopKind::Reduce;
        let all = f.combine.as_ref().is_some_and(|c| i64::from(c.ways) == self.threads);
        (folds && !all).then_some("a reduction is not of all threads")
    }
}

fn chain(f: &For) -> Vec<&For> {
    if f.kind == LoopKind::Reduce { vec![f] } else { edit::free_chain(f) }
}

/// The buffers that statements name.
fn touched(body: &[Stmt]) -> BTreeSet<BufId> {
    let of = |s: &Stmt| match s {
        Stmt::Read { buf, .. } | Stmt::Write { buf, .. } => vec![*buf],
        s => itself(s),
    };
    walk::stmts(body).flat_map(of).collect()
}

/// The buffers that a statement names otherwise than by an element.
fn itself(s: &Stmt) -> Vec<BufId> {
    match s {
        Stmt::Stage { buf, .. } => vec![*buf],
        Stmt::Print { args, .. } => args
            .iter()
            .filter_map(|a| match a {
                PrintArg::Buf(buf) => Some(*buf),
                PrintArg::Scalar(_) => None,
            })
            .collect(),
        Stmt::For(f) => f.stream.iter().map(|s| s.acc).collect(),
        _ => vec![],
    }
}

/// Nests that are spread alike, by their outermost axes, because tiles join them.
pub struct Share {
    pub tiles: BTreeSet<BufId>,
    nests: BTreeSet<AxisId>,
    /// The first place of a nest's elements in a tile, by the nest's outermost axis.
    firsts: BTreeMap<(AxisId, BufId), Ix>,
    /// Neighbouring elements of one thread.
    lanes: i64,
    /// A thread's elements are in its memory: it goes through them in a loop.
    rolled: bool,
}

pub fn shares(kernel: &Kernel, ctx: &Context, threads: i64, nests: &[Walked], kept: &BTreeSet<BufId>) -> Vec<Share> {
    let mut out: Vec<Share> = vec![];
    for walked in nests {
        let tiles: BTreeSet<BufId> = walked.tiles.keys().filter(|buf| kept.contains(buf)).copied().collect();
        if tiles.is_empty() {
            continue;
        }
        let lanes = lanes(kernel, ctx, walked, threads);
        let firsts = walked.tiles.iter().map(|(buf, first)| ((walked.f.axis, *buf), first.clone())).collect();
        let mut new = Share { tiles, nests: [walked.f.axis].into(), firsts, lanes, rolled: false };
        let (with, apart): (Vec<Share>, Vec<Share>) = out.into_iter().partition(|s| !s.tiles.is_disjoint(&new.tiles));
        for other in with {
            new.tiles.extend(other.tiles);
            new.nests.extend(other.nests);
            new.firsts.extend(other.firsts);
            new.lanes = new.lanes.min(other.lanes);
        }
        out = apart;
        out.push(new);
    }
    out
}

/// The elements of a nest that a thread may have side by side: at most those that its accesses of global memory take together;
/// without such accesses, any number that divides its rows.
fn lanes(kernel: &Kernel, ctx: &Context, Walked { f, step, .. }: &Walked, threads: i64) -> i64 {
    let chain = chain(f);
    let (Some(inner), total) = (chain.last(), chain.iter().filter_map(|f| f.hi.as_const()).product::<i64>()) else {
        return 1;
    };
    let Some(extent) = edit::const_trip(inner) else { return 1 };
    let global = walk::stmts(&f.body).any(|s| matches!(s, Stmt::Load { .. } | Stmt::Store { .. }));
    // Every thread has some.
    let most = |all: i64| {
        let fits = |n: &i64| {
            *n <= all && extent.is_multiple_of(*n as u64) && total / n >= threads && step % (n * threads) == 0
        };
        [16, 8, 4, 2].into_iter().find(fits).unwrap_or(1)
    };
    if !global {
        return most(16);
    }
    let straight = inner.body.iter().all(|s| walk::bodies(s).is_empty());
    if f.kind == LoopKind::Reduce || !straight {
        return 1;
    }
    let varying = walk::refs(&inner.body).vals_defined;
    let accesses = inner.body.iter().filter(|s| matches!(s, Stmt::Load { .. } | Stmt::Store { .. }));
    most(accesses.map(|s| wide::lanes(kernel, ctx, s, inner.axis, extent, &varying) as i64).min().unwrap_or(1))
}

impl Share {
    /// A nest with its elements given out to threads, those of kept tiles where they have them.
    fn spread(&self, kernel: &mut Kernel, f: &For, threads: i64) -> Stmt {
        let folds = f.kind == LoopKind::Reduce;
        let chain = chain(f);
        let Some((inner, outer)) = chain.split_last() else { return Stmt::For(Box::new(f.clone())) };
        let mut facts = kernel.facts();
        let total = chain.iter().filter_map(|f| f.hi.as_const()).product::<i64>();
        let rounds = Rounds::new(kernel, Ix::Const(total / self.lanes), threads, &mut facts);
        let unrolled = |l: &mut For| (l.kind, l.place) = (f.kind, Place::Unroll);
        let placed = |body: &mut [Stmt], lane: Ix| {
            let own = Ix::add(Ix::mul(rounds.round(), Ix::Const(self.lanes)), lane);
            walk::visit_mut(body, &mut |s| {
                if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s
                    && self.tiles.contains(buf)
                {
                    let first = self.firsts.get(&(f.axis, *buf)).cloned().unwrap_or(Ix::Const(0));
                    let before = simplify(&Ix::floor_div(first, Ix::Const(threads)), &facts);
                    *idx = vec![Ix::Axis(rounds.thread), Ix::add(before, own.clone())];
                }
            });
        };
        let (numbered, body) = match self.lanes {
            1 => {
                let mut body = inner.body.clone();
                placed(&mut body, Ix::Const(0));
                (Numbered::new(chain.iter().copied(), &facts), body)
            }
            lanes => {
                let groups = wide::in_groups(kernel, inner, lanes as u64, |lane, mut body| {
                    placed(&mut body, Ix::Axis(lane));
                    vec![edit::loop_with(lane, Ix::Const(lanes), body, unrolled)]
                });
                (Numbered::new(outer.iter().copied().chain([&groups]), &facts), groups.body.clone())
            }
        };
        let number = simplify(&rounds.number(), &facts);
        let body = numbered.body(kernel, body, &number, threads, &facts);
        let of_round = |l: &mut For| match self.rolled {
            true if folds => l.kind = LoopKind::Serial,
            true => {}
            false => unrolled(l),
        };
        rounds.around(f, body, of_round)
    }
}
