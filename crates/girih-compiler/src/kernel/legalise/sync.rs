//! Where the threads of a block wait for each other.
//!
//! In: a placed kernel. Out: the statements before which there must be a barrier. What stands in a loop over threads runs
//! on its threads; everything else runs on all threads alike.
//!
//! ```text
//! for t in 0..128: thread:  s[t] = ...                 s is written
//! ------------------------------------ barrier         s is read, perhaps what another thread wrote
//! for t in 0..128: thread:  ... = s[127 - t]
//! ------------------------------------ barrier         s is written while a slower thread may still read
//! for t in 0..128: thread:  s[t] = ...
//! ```
//!
//! The rule is that of effects: between two statements of which one writes what the other reads or writes there is a
//! barrier. A loop is walked twice, since what the end of an iteration did meets the beginning of the next. Shared buffers
//! are apart from each other; global memory is one thing, as arguments may overlap.

use crate::loops::ir::*;
use crate::loops::walk::{self, Part, parts};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// What threads share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Global,
    Buf(BufId),
    /// The partial accumulators of a loop that threads combine, by the loop's axis.
    Partials(AxisId),
}

/// What happened since the last barrier.
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

/// The statements of a kernel before which there must be a barrier; none where a block has one thread.
pub(super) fn barriers(kernel: &Kernel) -> FxHashSet<*const Stmt> {
    let mut sync = Sync { kernel, before: FxHashSet::default(), left: vec![] };
    if super::threads::of(&kernel.body) > 1 {
        sync.body(&kernel.body, &mut Since::default());
    }
    sync.before
}

struct Sync<'a> {
    kernel: &'a Kernel,
    before: FxHashSet<*const Stmt>,
    /// For each loop around: what had happened where an iteration was left early.
    left: Vec<Since>,
}

impl Sync<'_> {
    fn body(&mut self, body: &[Stmt], since: &mut Since) {
        body.iter().for_each(|s| self.stmt(s, since));
    }

    fn stmt(&mut self, s: &Stmt, since: &mut Since) {
        match s {
            Stmt::For(f) if f.place != Place::Thread => self.repeated(&f.body, since),
            Stmt::Loop { body } => self.repeated(body, since),
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
                    Stmt::For(f) if f.kind == LoopKind::Reduce => Some(Thing::Partials(f.axis)),
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

    /// A body that may run any number of times.
    fn repeated(&mut self, body: &[Stmt], since: &mut Since) {
        let before = since.clone();
        for _ in 0..2 {
            self.left.push(Since::default());
            self.body(body, since);
            since.add(&self.left.pop().unwrap_or_default());
            since.add(&before);
        }
    }

    fn effects(&self, s: &Stmt) -> Since {
        let mut out = Since::default();
        walk::visit(std::slice::from_ref(s), &mut |s| {
            parts(s, &mut |part| match part {
                Part::ReadBuf(buf) if self.is_shared(*buf) => _ = out.read.insert(Thing::Buf(*buf)),
                Part::WriteBuf(buf) if self.is_shared(*buf) => _ = out.written.insert(Thing::Buf(*buf)),
                _ => {}
            });
            match s {
                Stmt::Load { .. } => _ = out.read.insert(Thing::Global),
                Stmt::Store { .. } | Stmt::Rmw { .. } | Stmt::Cas { .. } => _ = out.written.insert(Thing::Global),
                _ => {}
            }
        });
        out
    }

    fn is_shared(&self, buf: BufId) -> bool {
        self.kernel.bufs.get(buf).is_some_and(|b| b.space == Space::Shared)
    }
}
