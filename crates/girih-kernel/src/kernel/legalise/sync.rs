//! Places the barriers at which the threads of a block wait for each other.
//!
//! In: a placed kernel. Out: the statements before which there must be a barrier. A statement inside a loop over
//! threads runs on its threads; every other statement runs on all threads alike.
//!
//! ```text
//! for t in 0..128: thread:  s[t] = ...                 s is written
//! ------------------------------------ barrier         s is read, perhaps what another thread wrote
//! for t in 0..128: thread:  ... = s[127 - t]
//! ------------------------------------ barrier         s is written while a slower thread may still read
//! for t in 0..128: thread:  s[t] = ...
//! ```
//!
//! The rule compares effects: if one of two statements writes what the other reads or writes, there is a barrier
//! between them. The effects at the end of an iteration also meet the beginning of the next: the kernel is walked until
//! no loop's end adds an effect, each walk visiting each statement once. Shared buffers do not overlap each other, nor
//! do the arrays of an open kernel; arguments that a user launches with may overlap, so there all of global memory is
//! one thing.

use super::{pipeline, tcgen05, threads};
use crate::loops::ir::*;
use crate::loops::walk::{self, Part, parts};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Memory that threads share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Global,
    /// An array of an open kernel, by its parameter.
    Array(ValId),
    Buf(BufId),
    /// The partial accumulators of all loops that combine theirs in the same place.
    Partials(u32),
}

/// The accesses since the last barrier.
#[derive(Clone, Default, PartialEq)]
struct Since {
    read: BTreeSet<Thing>,
    written: BTreeSet<Thing>,
}

impl Since {
    fn meets(&self, next: &Since) -> bool {
        next.read.intersection(&self.written).next().is_some()
            || next.written.iter().any(|thing| self.written.contains(thing) || self.read.contains(thing))
    }

    fn add(&mut self, other: &Since) {
        self.read.extend(&other.read);
        self.written.extend(&other.written);
    }
}

/// How the threads of a block go through a kernel.
#[derive(Clone, Copy)]
pub(super) struct Goes {
    /// The axis of the loop over the iterations that a block takes in turn, through which a pipeline goes on.
    pub rounds: Option<AxisId>,
    /// Its first generations are filled in the iteration before.
    pub ahead: bool,
    /// The threads that fill a pipeline do nothing else.
    pub apart: bool,
}

/// The statements of a kernel before which there must be a barrier; `open` if its arrays do not overlap. `met` are buffers with
/// bytes of others.
pub(super) fn barriers(
    kernel: &Kernel,
    open: bool,
    goes: Goes,
    met: &BTreeMap<BufId, Vec<BufId>>,
    warp: u32,
) -> FxHashSet<*const Stmt> {
    let apart = open && walk::effects(&kernel.body).bases().all(|base| kernel.params.iter().any(|p| p.val == base));
    let (before, ends, left) = (FxHashSet::default(), FxHashMap::default(), vec![]);
    let places = threads::places(&kernel.body, warp);
    let mut sync = Sync { kernel, warp, apart, goes, met, places, before, ends, news: true, left };
    while std::mem::take(&mut sync.news) {
        sync.body(&kernel.body, &mut Since::default());
    }
    sync.before
}

struct Sync<'a> {
    kernel: &'a Kernel,
    /// Lanes of a warp.
    warp: u32,
    /// Arrays do not overlap.
    apart: bool,
    goes: Goes,
    met: &'a BTreeMap<BufId, Vec<BufId>>,
    /// The places of the partial accumulators of loops.
    places: FxHashMap<AxisId, u32>,
    before: FxHashSet<*const Stmt>,
    /// For each loop: the accesses before the ends of its iterations, as far as they were seen.
    ends: FxHashMap<*const Stmt, Since>,
    /// The current walk saw an end that no walk before it saw.
    news: bool,
    /// For each loop around: the accesses before an early exit from an iteration.
    left: Vec<Since>,
}

impl Sync<'_> {
    fn body(&mut self, body: &[Stmt], since: &mut Since) {
        let mut boxes = false;
        for s in body {
            // A barrier follows the fence that shows the threads' writes to TMA.
            if s.is_placed(Place::TmaStore) && !boxes {
                self.before.insert(std::ptr::from_ref(s));
                *since = Since::default();
            }
            boxes = s.is_placed(Place::TmaStore);
            self.stmt(s, since);
        }
    }

    fn stmt(&mut self, s: &Stmt, since: &mut Since) {
        match s {
            Stmt::For(f) if matches!(f.place, Place::Pipeline { .. }) => {
                self.pipelined(s, f, since);
                if tcgen05::product_in(&f.body).is_some() {
                    // Every thread has waited for the end of the products that read the stages.
                    let staged = |thing: &Thing| {
                        let of = |s: &Stmt| matches!(s, Stmt::Stage { buf, .. } if *thing == Thing::Buf(*buf));
                        f.stages().0.iter().any(of)
                    };
                    since.read.retain(|thing| !staged(thing));
                    since.written.retain(|thing| !staged(thing));
                }
            }
            Stmt::For(f) if self.goes.rounds == Some(f.axis) => {
                // The pipeline in it is begun before.
                let stages = f.body.iter().filter_map(|s| match s {
                    Stmt::For(p) if matches!(p.place, Place::Pipeline { roles: false, .. }) => Some(p.stages().0),
                    _ => None,
                });
                if self.goes.ahead {
                    stages.for_each(|stages| self.filled(s, stages, since));
                }
                self.repeated(s, &f.body, since);
            }
            // Such a loop runs once in a block, or not at all in blocks without an iteration.
            Stmt::For(f) if f.place == Place::ClusterBlock => {
                let before = since.clone();
                self.body(&f.body, since);
                match f.combine {
                    // All threads of the cluster meet before they read the values of its blocks.
                    Some(_) => *since = Since::default(),
                    None => since.add(&before),
                }
            }
            Stmt::For(f) if !matches!(f.place, Place::Thread | Place::TmaStore) => self.repeated(s, &f.body, since),
            Stmt::Loop { body } => self.repeated(s, body, since),
            Stmt::Stage { body, .. } => self.body(body, since),
            Stmt::Break | Stmt::Continue => {
                if let Some(left) = self.left.last_mut() {
                    left.add(since);
                }
            }
            Stmt::If { then, els, .. } => {
                let mut other = since.clone();
                self.body(then, since);
                self.body(els, &mut other);
                since.add(&other);
            }
            _ => {
                let combines = match s {
                    Stmt::For(f) if f.kind == LoopKind::Reduce => {
                        let meet = f.combine.as_ref().is_none_or(|c| threads::by_shared_memory(c, self.warp));
                        meet.then(|| Thing::Partials(self.places.get(&f.axis).copied().unwrap_or(0)))
                    }
                    _ => None,
                };
                let mut next = self.effects(s);
                next.written.extend(combines);
                let at = std::ptr::from_ref(s);
                if self.before.contains(&at) || since.meets(&next) {
                    self.before.insert(at);
                    *since = Since::default();
                }
                match combines {
                    None => since.add(&next),
                    // There is a barrier between the partial accumulators' writes and reads.
                    Some(partials) => *since = Since { read: BTreeSet::from([partials]), ..Since::default() },
                }
            }
        }
    }

    /// A loop, whose body may run any number of times.
    fn repeated(&mut self, of: &Stmt, body: &[Stmt], since: &mut Since) {
        let of = std::ptr::from_ref(of);
        if let Some(end) = self.ends.get(&of) {
            since.add(end);
        }
        let before = since.clone();
        self.left.push(Since::default());
        self.body(body, since);
        since.add(&self.left.pop().unwrap_or_default());
        let known = self.ends.entry(of).or_default();
        let old = known.clone();
        known.add(since);
        self.news |= *known != old;
        since.add(&before);
    }

    /// Stages are filled before a statement.
    fn filled(&mut self, s: &Stmt, stages: &[Stmt], since: &mut Since) {
        let at = std::ptr::from_ref(s);
        if self.before.contains(&at) || since.meets(&self.effects_of(stages)) {
            self.before.insert(at);
            *since = Since::default();
        }
    }

    /// A pipeline: the first generations are filled before it, and each iteration begins with a barrier, unless the
    /// pipeline is free of them. After the barrier all threads see the current generation, and another generation is
    /// being filled.
    fn pipelined(&mut self, s: &Stmt, f: &For, since: &mut Since) {
        let (stages, rest) = f.stages();
        let at = std::ptr::from_ref(s);
        let fill = self.effects_of(stages);
        // A warp that goes on with the next tile waits until its generations have been read.
        let by_a_warp = matches!(f.place, Place::Pipeline { roles: true, .. }) && self.goes.rounds.is_some();
        if !self.goes.ahead && !by_a_warp {
            self.filled(s, stages, since);
        }
        if let Place::Pipeline { depth, roles, .. } = f.place
            && pipeline::is_free(f, depth, self.goes.rounds.is_some())
        {
            // Only a part of the threads runs the iterations: what these share with the statements before meets them here. All
            // threads meet once the mbarriers are there, which is before the tiles that a block takes in turn, and before all
            // where threads go apart.
            if roles && (self.before.contains(&at) || since.meets(&self.effects_of(rest))) {
                if self.goes.rounds.is_some() || self.goes.apart {
                    self.before.insert(at);
                }
                *since = Since::default();
            }
            // A generation is filled again when all consumer warps have read it: a warp that sees the last generation
            // knows that all of them are past the first. Nothing is known about the accesses of the other threads.
            if roles && f.hi.as_const().is_some_and(|n| n > i64::from(depth)) {
                let mut alike = Since::default();
                if !self.goes.apart {
                    self.alike(&self.kernel.body, &mut alike);
                }
                let touched = |thing: &Thing| alike.read.contains(thing) || alike.written.contains(thing);
                since.read.retain(touched);
                since.written.retain(touched);
            }
            // Readers of data that TMA writes wait for it themselves.
            since.read.extend(&fill.read);
            return self.repeated(s, rest, since);
        }
        since.add(&fill);
        let before = std::mem::replace(since, Since { written: BTreeSet::new(), ..fill.clone() });
        self.left.push(Since::default());
        self.body(rest, since);
        since.add(&self.left.pop().unwrap_or_default());
        since.add(&fill);
        // After a barrier none of the earlier accesses matter.
        if f.hi.as_const().is_none_or(|n| n <= 0) {
            since.add(&before);
        }
    }

    /// The accesses that all threads make alike, including a warp that fills for the others: those outside any loop
    /// over threads.
    fn alike(&self, body: &[Stmt], out: &mut Since) {
        for s in body {
            match s {
                Stmt::For(f) if matches!(f.place, Place::Thread | Place::TmaStore) => {}
                Stmt::Stage { .. } => {}
                s => match &walk::bodies(s)[..] {
                    [] => out.add(&self.effects(s)),
                    inner => inner.iter().for_each(|body| self.alike(body, out)),
                },
            }
        }
    }

    fn effects(&self, s: &Stmt) -> Since {
        self.effects_of(std::slice::from_ref(s))
    }

    fn effects_of(&self, body: &[Stmt]) -> Since {
        let mut out = Since::default();
        walk::visit(body, &mut |s| {
            parts(s, &mut |part| match part {
                Part::ReadBuf(buf) if self.is_shared(*buf) => out.read.extend(self.bytes_of(*buf)),
                Part::WriteBuf(buf) if self.is_shared(*buf) => out.written.extend(self.bytes_of(*buf)),
                _ => {}
            });
            let thing = |mem: &Mem| if self.apart { Thing::Array(mem.base) } else { Thing::Global };
            match s {
                Stmt::Load { mem, .. } => _ = out.read.insert(thing(mem)),
                Stmt::Store { mem, .. } | Stmt::Rmw { mem, .. } | Stmt::Cas { mem, .. } => {
                    out.written.insert(thing(mem));
                }
                _ => {}
            }
        });
        out
    }

    /// A buffer, and the buffers whose bytes it may share.
    fn bytes_of(&self, buf: BufId) -> impl Iterator<Item = Thing> {
        let others = self.met.get(&buf).into_iter().flatten().copied();
        [buf].into_iter().chain(others).map(Thing::Buf)
    }

    fn is_shared(&self, buf: BufId) -> bool {
        self.kernel.bufs.get(buf).is_some_and(|b| b.space == Space::Shared)
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::ir::Stmt;
    use crate::kernel::legalise::{Options, legalise};
    use crate::loops::parse::parse;

    /// The barriers in the kernel that a body of Tile IR becomes.
    fn barriers(body: &str) -> usize {
        let (kernel, _) = parse(&format!("tile kernel k(p: ptr f32, n: i64):\n{body}")).unwrap();
        fn count(body: &[Stmt]) -> usize {
            let of = |s: &Stmt| match s {
                Stmt::Barrier => 1,
                Stmt::For { body, .. } | Stmt::Loop { body } => count(body),
                Stmt::If { then, els, .. } => count(then) + count(els),
                _ => 0,
            };
            body.iter().map(of).sum()
        }
        let options = Options { shared: 1 << 16, ..Options::default() };
        count(&legalise(&kernel, &options).unwrap().body)
    }

    /// Loops in each other around statements that are indented as their body.
    fn nested(depth: usize, body: &[&str]) -> String {
        let mut text = "  local s: f32[32] shared\n".to_string();
        for d in 0..depth {
            text += &format!("{}for i{d} in 0..n: serial\n", "  ".repeat(d + 1));
        }
        body.iter().for_each(|line| text += &format!("{}{line}\n", "  ".repeat(depth + 1)));
        text
    }

    const FILL: [&str; 2] = ["for t in 0..32: free thread", "  s[t] = 1.0"];
    const READ: [&str; 3] = ["for u in 0..32: free thread", "  v: f32 = s[31 - u]", "  store p[u] = v"];

    #[test]
    fn ends_of_iterations_meet_beginnings() {
        let both: Vec<&str> = FILL.into_iter().chain(READ).collect();
        // One before the read; in a loop another before the next iteration's write, however deep.
        assert_eq!(barriers(&nested(0, &both)), 1);
        for depth in [1, 2, 5] {
            assert_eq!(barriers(&nested(depth, &both)), 2, "{depth}");
        }
        assert_eq!(barriers(&nested(0, &FILL)), 0);
        // An iteration that is left before its barrier.
        let left = ["if stop:", "  break"];
        let test = ["stop: i1 = test n < 5"];
        let all: Vec<&str> = test.into_iter().chain(FILL).chain(left).chain(READ).collect();
        let text = nested(1, &all) + "  for w in 0..32: free thread\n    x: f32 = s[31 - w]\n    store p[w] = x\n";
        assert_eq!(barriers(&text), 3);
    }

    /// Several warps meet in shared memory, and once more before their partial sums are overwritten; lanes of one warp
    /// do not.
    #[test]
    fn one_warp_combines_without_barriers() {
        let sum = |ways: u32| {
            format!(
                "  for i in 0..n: serial\n    local s: f32\n    s = 0.0\n    for k in 0..1000: reduce thread combine add(s) \
                 from -0.0 x {ways}\n      v: f32 = load p[k]\n      a: f32 = s\n      b: f32 = a + v\n      s = b\n"
            )
        };
        assert_eq!((barriers(&sum(64)), barriers(&sum(32))), (2, 0));
    }

    /// Many reductions take turns with a few places in shared memory, without more barriers.
    #[test]
    fn finished_reductions_leave_their_memory() {
        let sum = |n: usize| {
            format!(
                "  local s{n}: f32\n  s{n} = 0.0\n  for k{n} in 0..1000: reduce thread combine add(s{n}) from -0.0 x 64\n    \
                 v{n}: f32 = load p[k{n}]\n    a{n}: f32 = s{n}\n    b{n}: f32 = a{n} + v{n}\n    s{n} = b{n}\n"
            )
        };
        let all = |count: usize| (0..count).map(sum).collect::<String>();
        assert_eq!([1, 4, 20].map(|n| barriers(&all(n))), [1, 4, 20]);
        let shared = |count: usize| {
            let (kernel, _) = parse(&format!("tile kernel k(p: ptr f32, n: i64):\n{}", all(count))).unwrap();
            legalise(&kernel, &Options { shared: 1 << 16, ..Options::default() }).unwrap().shared
        };
        assert_eq!([1, 4, 20].map(shared), [256, 1024, 1024]);
    }

    #[test]
    fn the_walk_is_as_long_as_the_kernel() {
        let both: Vec<&str> = FILL.into_iter().chain(READ).collect();
        assert_eq!(barriers(&nested(30, &both)), 2);
    }
}
