//! `keep_tiles`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::index::{Facts, gcd, simplify};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::{self, Visit};
use crate::tile::heuristics::keep_tiles::FOLDED;
use crate::tile::numbered::Numbered;
use crate::tile::rules::spread_threads;
use crate::tile::target::MemoryKind;
use crate::tile::tile_nest::check_bounds;
use crate::tile::wide;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "keep_tiles",
    doc: "\
Keeps a tile in the registers of a block's threads if every nest that writes or reads it goes through it in the same order, so
that no thread needs the elements of another.

```text
local x: f32[1000]                               local x: f32[256, 4] private
for i in 0..1000: free                           for t in 0..256: thread: for e in 0..4:
  x[i] = load src[i]                               x[t, e] = load src[e*256 + t]        where that is below 1000
for k in 0..1000: reduce thread          -->     for t in 0..256: reduce thread combine add(s)
    combine add(s)                                 for e in 0..4: s <- x[t, e] + s
  s <- x[k] + s                                  for t in 0..256: thread: for e in 0..4:
for j in 0..1000: free                             store dst[e*256 + t] = x[t, e] / s
  store dst[j] = x[j] / s
```

Nests that share such a tile, or are joined by several, are spread alike: a thread takes the number of neighbouring elements that one
access of global memory moves in all of them, or one element if a reduction reads global memory. The nests are unrolled.

If tiles do not fit in shared memory, the largest that could be kept go to each thread's own memory, behind its registers, and their
nests stay loops. So do tiles that a loop goes through part by part, as the results of a scan of a long row: where a part is a multiple of
the threads, each of its elements is the thread's that has it in the other nests.

Knob: `keep_tiles`, the most registers of a thread that tiles may take; a quarter of a thread's registers by default. 0 turns the
rule off.

A nest that goes backwards through a tile which shared memory has no room for is run from its other end.

Refuses tiles that are needed in another order, by contractions that other rules have spread, or outside of nests of known length,
and tiles that take more registers.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let turned = turned(p, ctx);
    let p = turned.as_ref().unwrap_or(p);
    let threads = spread_threads::threads(p, ctx);
    let mut found = Found { kernel: p, threads, facts: p.facts(), tiles: BTreeMap::new(), nests: vec![] };
    found.body(&p.body);
    let Found { mut tiles, nests, .. } = found;
    let mut kernel = p.clone();
    let kept = |tiles: &BTreeMap<BufId, State>| {
        tiles.iter().filter(|(_, state)| state.is_ok()).map(|(buf, _)| *buf).collect::<BTreeSet<BufId>>()
    };
    let alike = shares(p, ctx, threads, &nests, &kept(&tiles));
    let most = most(ctx, threads);
    let mut taken = 0;
    for (buf, state) in &mut tiles {
        let b = &p.bufs[*buf];
        if state.is_ok() {
            let words = b.element_bytes().div_ceil(4) as i64;
            let needs = own(b, lanes_of(&alike, *buf), threads).saturating_mul(words);
            match taken + needs <= most {
                true => taken += needs,
                false => {
                    let held = if taken > 0 { format!(", {taken} of them taken") } else { String::new() };
                    let why =
                        format!("it takes {needs} registers of each of {threads} threads; there are {most}{held}");
                    *state = Err(Why::Registers(why));
                }
            }
        }
    }
    let spilled = spilled(p, ctx, threads, &tiles);
    for (buf, state) in &mut tiles {
        if spilled.contains(buf) {
            *state = Ok(());
        }
        let b = &p.bufs[*buf];
        if let Err(why) = state {
            let why = why.clone().into_text();
            log.skipped(format!("tile {}", b.name), why);
        }
    }
    tiles.retain(|_, state| state.is_ok());
    if tiles.is_empty() {
        return None;
    }
    let mut shares = shares(p, ctx, threads, &nests, &kept(&tiles));
    shares.iter_mut().for_each(|s| s.rolled = !s.tiles.is_disjoint(&spilled));
    for buf in tiles.keys() {
        let b = &mut kernel.bufs[*buf];
        let own = own(b, lanes_of(&shares, *buf), threads);
        (b.shape, b.space) = (vec![threads as u64, own as u64], Space::Private);
        let place = if spilled.contains(buf) { ", in their own memory: shared memory has no room for it" } else { "" };
        log.applied(format!("tile {}: {own} elements of each of {threads} threads{place}", b.name));
    }
    edit::rewrite(&kernel, &mut |kernel, s| {
        let Stmt::For(f) = s else { return Visit::Into };
        match shares.iter().find(|share| share.nests.contains(&f.axis)) {
            Some(share) => Visit::Replace(vec![share.spread(kernel, f, threads)]),
            None if f.place == Place::Thread => Visit::Leave,
            None => Visit::Into,
        }
    })
}

/// The kernel with those nests run from their other end that go so through tiles which shared memory has no room for: `for i in 0..n:
/// y[i] = t[n - 1 - i]` becomes `for i in 0..n: y[n - 1 - i] = t[i]`.
fn turned(p: &Kernel, ctx: &Context) -> Option<Kernel> {
    let room = ctx.target.bytes_of(MemoryKind::Shared);
    let is_long = |buf: BufId| p.bufs.get(buf).is_some_and(|b| b.space == Space::Scratch && b.bytes() > room);
    edit::rewrite(p, &mut |kernel, s| match s {
        Stmt::For(f) if f.kind == LoopKind::Free && f.place == Place::None => {
            let backwards: BTreeMap<AxisId, Ix> = backwards(kernel, f, &is_long)
                .into_iter()
                .map(|f| (f.axis, Ix::sub(f.hi.clone(), Ix::add(Ix::Axis(f.axis), Ix::Const(1)))))
                .collect();
            if backwards.is_empty() {
                return Visit::Leave;
            }
            let mut body = vec![s.clone()];
            let facts = kernel.facts();
            walk::subst_axes(&mut body, &mut |axis| backwards.get(&axis).cloned());
            walk::map_ixs(&mut body, &mut |ix| *ix = simplify(ix, &facts));
            Visit::Replace(body)
        }
        Stmt::For(f) if f.place != Place::None => Visit::Leave,
        _ => Visit::Into,
    })
}

/// The loops of a nest along which all accesses to long tiles go backwards. None where others go forwards.
fn backwards<'a>(kernel: &Kernel, f: &'a For, is_long: &dyn Fn(BufId) -> bool) -> Vec<&'a For> {
    let chain = edit::free_chain(f);
    if check_bounds(&chain).is_err() {
        return vec![];
    }
    let mut signs: BTreeMap<AxisId, BTreeSet<bool>> = BTreeMap::new();
    walk::visit(&f.body, &mut |s| {
        if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s
            && is_long(*buf)
        {
            let at = Ix::row_major(idx, &kernel.bufs[*buf].shape);
            for f in &chain {
                if let Some(by) = at.linear(f.axis).and_then(|(by, _)| by.as_const()).filter(|by| *by != 0) {
                    signs.entry(f.axis).or_default().insert(by < 0);
                }
            }
        }
    });
    let all_backwards = |f: &&For| signs.get(&f.axis).is_some_and(|s| s.len() == 1 && s.contains(&true));
    chain.into_iter().filter(all_backwards).collect()
}

/// Why a tile is not kept.
#[derive(Clone, Debug)]
enum Why {
    /// Threads have too few registers for it.
    Registers(String),
    /// Threads need each other's elements, or nobody knows.
    Shared(String),
}

impl Why {
    fn into_text(self) -> String {
        match self {
            Why::Registers(text) | Why::Shared(text) => text,
        }
    }
}

type State = Result<(), Why>;

/// Tiles that registers have no room for, and shared memory neither.
fn spilled(p: &Kernel, ctx: &Context, threads: i64, tiles: &BTreeMap<BufId, State>) -> BTreeSet<BufId> {
    let own = |buf: &BufId| matches!(tiles.get(buf), Some(Ok(())));
    let shared = |b: &Buf| !b.shape.is_empty() && matches!(b.space, Space::Scratch | Space::Shared);
    let mut bytes = BTreeMap::new();
    walk::visit(&p.body, &mut |s| {
        if let Stmt::Local { buf } | Stmt::Stage { buf, .. } = s
            && shared(&p.bufs[*buf])
            && !own(buf)
        {
            bytes.insert(*buf, p.bufs[*buf].bytes());
        }
    });
    let mut needs: u64 = bytes.values().fold(0, |sum, n| sum.saturating_add(*n));
    let room = ctx.target.bytes_of(MemoryKind::Shared).saturating_sub(FOLDED * threads.unsigned_abs());
    let mut could: Vec<(u64, BufId)> = tiles
        .iter()
        .filter(|(_, state)| matches!(state, Err(Why::Registers(_))))
        .map(|(buf, _)| (p.bufs[*buf].bytes(), *buf))
        .collect();
    could.sort_unstable();
    let mut out = BTreeSet::new();
    while needs > room
        && let Some((bytes, buf)) = could.pop()
    {
        needs -= bytes;
        out.insert(buf);
    }
    // Tiles that are left may take turns with shared memory.
    out
}

/// The registers of a thread that tiles may take.
fn most(ctx: &Context, threads: i64) -> i64 {
    let own = i64::from(ctx.target.vector.registers * ctx.target.vector.bytes / 4);
    let whole = ctx.target.gpu.map_or(own, |gpu| i64::from(gpu.registers) / threads.max(1));
    ctx.knobs.keep_tiles.map_or(own.min(whole) / 4, i64::from)
}

fn elements(b: &Buf) -> i64 {
    b.shape.iter().try_fold(1i64, |n, d| n.checked_mul(i64::try_from(*d).ok()?)).unwrap_or(i64::MAX >> 16)
}

/// Elements of a tile that one thread has, at most.
fn own(b: &Buf, lanes: i64, threads: i64) -> i64 {
    let all = lanes * threads;
    (elements(b) / all + i64::from(elements(b) % all != 0)) * lanes
}

/// Neighbouring elements of a tile that one thread has.
fn lanes_of(shares: &[Share], buf: BufId) -> i64 {
    shares.iter().find(|s| s.tiles.contains(&buf)).map_or(1, |s| s.lanes)
}

/// A nest of free loops, or a reduction that all threads fold together, by its outermost axis; and the tiles it touches, each with the
/// place of the nest's first element in it.
struct Walked<'a> {
    f: &'a For,
    tiles: BTreeMap<BufId, Ix>,
    /// A divisor of these places.
    step: i64,
}

/// The uses that a kernel's nests make of its tiles.
struct Found<'a> {
    kernel: &'a Kernel,
    threads: i64,
    facts: Facts,
    /// Each tile of the block, or why it cannot be kept.
    tiles: BTreeMap<BufId, State>,
    nests: Vec<Walked<'a>>,
}

impl<'a> Found<'a> {
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
                Stmt::For(f) if f.kind == LoopKind::Free && f.place == Place::None => self.nest(f),
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
    let mut out = BTreeSet::new();
    walk::visit(body, &mut |s| match s {
        Stmt::Read { buf, .. } | Stmt::Write { buf, .. } => {
            out.insert(*buf);
        }
        s => out.extend(itself(s)),
    });
    out
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
struct Share {
    tiles: BTreeSet<BufId>,
    nests: BTreeSet<AxisId>,
    /// The first place of a nest's elements in a tile, by the nest's outermost axis.
    firsts: BTreeMap<(AxisId, BufId), Ix>,
    /// Neighbouring elements of one thread.
    lanes: i64,
    /// A thread's elements are in its memory: it goes through them in a loop.
    rolled: bool,
}

fn shares(kernel: &Kernel, ctx: &Context, threads: i64, nests: &[Walked], kept: &BTreeSet<BufId>) -> Vec<Share> {
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
    let (Some(extent), mut global) = (edit::const_trip(inner), false) else { return 1 };
    walk::visit(&f.body, &mut |s| global |= matches!(s, Stmt::Load { .. } | Stmt::Store { .. }));
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
        let t = kernel.axes.push(Axis { name: "t".into(), from: None });
        let e = kernel.axes.push(Axis { name: "e".into(), from: None });
        let mut facts = kernel.facts();
        facts.set_axis(t, &Ix::Const(0), &Ix::Const(threads));
        let total = chain.iter().filter_map(|f| f.hi.as_const()).product::<i64>();
        let turns = (total / self.lanes + threads - 1) / threads;
        facts.set_axis(e, &Ix::Const(0), &Ix::Const(turns));
        let turn = if turns > 1 { Ix::Axis(e) } else { Ix::Const(0) };
        let unrolled = |axis, n: i64, body| {
            edit::loop_with(axis, Ix::Const(n), body, |l| (l.kind, l.place) = (f.kind, Place::Unroll))
        };
        let placed = |body: &mut [Stmt], lane: Ix| {
            let own = Ix::add(Ix::mul(turn.clone(), Ix::Const(self.lanes)), lane);
            walk::visit_mut(body, &mut |s| {
                if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s
                    && self.tiles.contains(buf)
                {
                    let first = self.firsts.get(&(f.axis, *buf)).cloned().unwrap_or(Ix::Const(0));
                    let before = simplify(&Ix::floor_div(first, Ix::Const(threads)), &facts);
                    *idx = vec![Ix::Axis(t), Ix::add(before, own.clone())];
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
                    vec![unrolled(lane, lanes, body)]
                });
                (Numbered::new(outer.iter().copied().chain([&groups]), &facts), groups.body.clone())
            }
        };
        let number = simplify(&Ix::add(Ix::mul(turn.clone(), Ix::Const(threads)), Ix::Axis(t)), &facts);
        let mut body = numbered.body(kernel, body, &number, threads, &facts);
        if turns > 1 {
            body = vec![match self.rolled {
                true => edit::loop_with(e, Ix::Const(turns), body, |l| {
                    l.kind = if folds { LoopKind::Serial } else { LoopKind::Free };
                }),
                false => unrolled(e, turns, body),
            }];
        }
        edit::loop_with(t, Ix::Const(threads), body, |l| {
            l.place = Place::Thread;
            if folds {
                (l.kind, l.combine) = (LoopKind::Reduce, f.combine.clone());
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const ROW: &str = r#"loop kernel k(src: ptr f32, dst: ptr f32):
  local x: f32[10, 100]
  for i in 0..10: free
    for j in 0..100: free
      v: f32 = load src[i*100 + j]
      x[i, j] = v
  local s: f32
  s = 0.0
  for i1 in 0..10: free
    for j1 in 0..100: free
      w: f32 = x[i1, j1]
      y: f32 = w * 2.0
      x[i1, j1] = y
  for i2 in 0..10: free
    for j2 in 0..100: free
      z: f32 = x[i2, j2]
      store dst[i2*100 + j2] = z
"#;

    #[test]
    fn what_no_other_thread_needs_is_kept() {
        let (out, log) = apply("keep_tiles", &kernel(ROW), &gpu(&[]));
        assert_eq!(log.applied, ["tile x: 4 elements of each of 256 threads"]);
        let made = text(&out);
        assert!(made.contains("local x: f32[256, 4] private"), "{made}");
        assert!(made.contains("mine: i1 = test e*256 + t < 1000"), "{made}");
        let (after, _) = apply("spread_threads", &out, &gpu(&[]));
        assert!(!text(&after).contains("shared"), "{}", text(&after));
    }

    /// A row of 240,000 bytes.
    #[test]
    fn what_shared_memory_has_no_room_for_is_in_the_threads_memory() {
        let long = ROW.replace("f32[10, 100]", "f32[600, 100]").replace("in 0..10:", "in 0..600:");
        let (out, log) = apply("keep_tiles", &kernel(&long), &gpu(&[]));
        let said = "tile x: 235 elements of each of 256 threads, in their own memory: shared memory has no room for it";
        assert_eq!(log.applied, [said]);
        let made = text(&out);
        assert!(made.contains("local x: f32[256, 235] private") && !made.contains("unroll"), "{made}");
        // One that fits stays where all threads see it.
        let short = ROW.replace("f32[10, 100]", "f32[500, 100]").replace("in 0..10:", "in 0..500:");
        assert_eq!(
            refusals("keep_tiles", &short, &gpu(&[])),
            ["tile x: it takes 196 registers of each of 256 threads; there are 63"]
        );
    }

    /// A loop writes it stretch by stretch, as a scan does; the nest behind it reads it whole.
    fn in_stretches(stretch: u32) -> String {
        format!(
            "loop kernel k(src: ptr f32, dst: ptr f32):\n  local r: f32[65536]\n  for c in 0..{}: serial\n    for u in 0..256: free\n      \
             for e in 0..{each}: free\n        v: f32 = load src[c*{stretch} + u*{each} + e]\n        r[c*{stretch} + u*{each} + e] = v\n  \
             for i in 0..65536: free\n    w: f32 = r[i]\n    store dst[65535 - i] = w\n",
            65536 / stretch,
            each = stretch / 256
        )
    }

    #[test]
    fn a_tile_that_a_loop_fills_in_stretches_is_in_the_threads_memory() {
        let (out, log) = apply("keep_tiles", &kernel(&in_stretches(8192)), &gpu(&[]));
        let place = ", in their own memory: shared memory has no room for it";
        assert_eq!(log.applied, [format!("tile r: 256 elements of each of 256 threads{place}")]);
        let made = text(&out);
        assert!(made.contains("r[t, c*32 + e"), "{made}");
        // A tile that fits stays in shared memory, and so does one whose stretches the threads do not divide.
        let small = in_stretches(8192).replace("65536", "16384").replace("c in 0..8", "c in 0..2");
        assert_eq!(refusals("keep_tiles", &small, &gpu(&[])), ["tile r: a loop goes through it part by part"]);
        let uneven = in_stretches(8192).replace("c*8192", "c*8191");
        assert_eq!(refusals("keep_tiles", &uneven, &gpu(&[])), ["tile r: a nest needs its elements in another order"]);
    }

    #[test]
    fn a_nest_that_goes_backwards_through_a_long_tile_is_turned() {
        let long = in_stretches(8192).replace("w: f32 = r[i]", "w: f32 = r[65535 - i]");
        let (out, log) = apply("keep_tiles", &kernel(&long), &gpu(&[]));
        assert!(log.applied[0].starts_with("tile r: 256 elements of each of 256 threads"), "{:?}", log.applied);
        // The store went backwards, too.
        assert!(text(&out).contains("store dst[e_1*256 + t_1] = "), "{}", text(&out));
        let both = long.replace("    store dst", "    q: f32 = r[i]\n    store dst[i] = q\n    store dst");
        assert_eq!(refusals("keep_tiles", &both, &gpu(&[])), ["tile r: a nest needs its elements in another order"]);
    }

    #[test]
    fn what_several_threads_need_is_not() {
        let why = |from: &str, to: &str, knobs: &[&str]| {
            assert!(ROW.contains(from), "{from}");
            refusals("keep_tiles", &ROW.replace(from, to), &gpu(knobs))
        };
        assert_eq!(
            why("z: f32 = x[i2, j2]", "z: f32 = x[i2, 99 - j2]", &[]),
            ["tile x: a nest needs its elements in another order"]
        );
        assert_eq!(
            why("  s = 0.0\n", "  s = 0.0\n  q: f32 = x[0, 0]\n", &[]),
            ["tile x: a statement outside of nests uses it"]
        );
        assert_eq!(why("for i2 in 0..10", "for i2 in 0..bx", &[]), ["tile x: a nest's length is not known"]);
        assert_eq!(
            why("local s", "local s", &["keep_tiles=3"]),
            ["tile x: it takes 4 registers of each of 256 threads; there are 3"]
        );
    }
}
