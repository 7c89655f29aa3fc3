//! Which operations of the user's program the statements of Kernel IR were made for.
//!
//! In: a kernel that `legalise` made, whose tables record the operations of values, axes, slots and stores. Out: the
//! operations of every statement. Statements that order the threads (barriers, waits, fences) derive from all
//! operations and belong to none. A loop or a branch without an operation of its own belongs to the operations of its
//! body.
//!
//! ```text
//! for k in 0..64 step 1 {         mmaf          its axis
//!   x: f32 = load a[k]            mmaf          its value
//!   barrier                       -
//! }
//! store c[tx] = y                 store_view    the store of y to c
//! ```

use std::collections::BTreeMap;

use super::ir::*;
use crate::base::provenance::{OfStatements, Side, SourceId};

/// The tables of a kernel. They do not count in a comparison of kernels: a kernel that was read from its text has none.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    pub vals: Side<ValId>,
    pub axes: Side<AxisId>,
    pub slots: Side<BufId>,
    /// The operations of stores to global memory, which define nothing: keyed by the whole statement, in order of the text where
    /// several are equal.
    stores: BTreeMap<String, Vec<Option<SourceId>>>,
}

impl PartialEq for Sources {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Sources {
    /// The statement, behind all others so far, is made for an operation: remembers it where nothing that is defined says so.
    pub fn note(&mut self, stmt: &Stmt, source: Option<SourceId>) {
        if let Some(key) = stored(stmt) {
            self.stores.entry(key).or_default().push(source);
        }
    }
}

/// The key of a store to global memory.
pub fn stored(stmt: &Stmt) -> Option<String> {
    let (mut stores, mut defines) = (false, false);
    stmt.parts(&mut |part| match part {
        Part::At(Address::Mem { .. }, Access::Writes) => stores = true,
        Part::Defines(_) | Part::Updates(_) | Part::Body(_) => defines = true,
        _ => {}
    });
    (stores && !defines).then(|| format!("{stmt:?}"))
}

/// The operation that each statement was made for, in order of the text.
pub fn of_statements(kernel: &Kernel) -> OfStatements {
    let mut out = vec![];
    Walk { sources: &kernel.sources, met: BTreeMap::new() }.block(&kernel.body, None, &mut out);
    out
}

/// A walk over the statements in order of the text.
struct Walk<'a> {
    sources: &'a Sources,
    /// How many stores equal to this one came before.
    met: BTreeMap<String, usize>,
}

impl Walk<'_> {
    fn block(&mut self, body: &[Stmt], around: Option<SourceId>, out: &mut OfStatements) {
        for stmt in body {
            let at = out.len();
            out.push(vec![]);
            let own = self.store(stmt).or_else(|| own(self.sources, stmt));
            let mut inner: Vec<&[Stmt]> = vec![];
            stmt.parts(&mut |part| {
                if let Part::Body(body) = part {
                    inner.push(body);
                }
            });
            if inner.is_empty() {
                let source = if orders(stmt) { None } else { own.or(around) };
                out[at] = source.into_iter().collect();
                continue;
            }
            inner.iter().for_each(|body| self.block(body, own.or(around), out));
            let mut sources: Vec<SourceId> = match own {
                Some(own) => vec![own],
                None => out[at + 1..].iter().flatten().copied().collect(),
            };
            sources.sort();
            sources.dedup();
            out[at] = sources;
        }
    }

    /// The source that was noted for a store. A copy that was made later is for the same operation as the last one noted.
    fn store(&mut self, stmt: &Stmt) -> Option<SourceId> {
        let key = stored(stmt)?;
        let noted = self.sources.stores.get(&key)?;
        let before = self.met.entry(key).or_default();
        let source = noted.get(*before).or(noted.last()).copied().flatten();
        *before += 1;
        source
    }
}

/// Looks up the operation of a statement: the operation of the value that it defines or of the loop that it opens, or else
/// the operation of the first array that it reads or writes.
fn own(s: &Sources, stmt: &Stmt) -> Option<SourceId> {
    let mut said: Option<Option<SourceId>> = None;
    stmt.parts(&mut |part| {
        let says = match part {
            Part::Defines(val) | Part::Updates(val) => s.vals.get(val),
            Part::Axis(axis) => s.axes.get(axis),
            Part::At(_, Access::Waits | Access::Names) => return,
            Part::At(Address::Slot { buf, .. }, _) => s.slots.get(*buf),
            Part::Slot(buf, _) => s.slots.get(buf),
            _ => return,
        };
        said = said.or(Some(says));
    });
    let stored_value = || match stmt {
        Stmt::Store { value: Opnd::Val(v), .. } => s.vals.get(*v),
        _ => None,
    };
    said.flatten().or_else(stored_value)
}

/// Returns true if a statement only orders the accesses of others.
fn orders(stmt: &Stmt) -> bool {
    let mut moves = false;
    stmt.parts(&mut |part| moves |= matches!(part, Part::At(..)));
    match stmt.work() {
        Work::Barrier => true,
        Work::AsyncCopy => !moves,
        _ => matches!(stmt, Stmt::Poll | Stmt::Yield { .. }),
    }
}
