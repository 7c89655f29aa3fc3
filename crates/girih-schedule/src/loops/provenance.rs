//! Which operations of the user's program the statements of Loop IR and Tile IR were made for.
//!
//! In: a kernel whose tables record the operations of some values, axes, buffers and sites. Out: the operations of
//! every statement. A statement belongs to the value that it defines; if a rule added that value, to the values that it
//! reads; failing that, to the loop around it, or to the first statement that uses it. A statement with a body and
//! without an operation of its own belongs to the operations of its body.
//!
//! ```text
//! for j in 0..8: free                        addf
//!   x: f32 = a[j]                            addf         read for it
//!   on: i1 = test j < n                      addf         a rule's: nothing it reads has a source, the loop has
//!   y: f32 = select on, x, 0.0               addf         a rule's: from x
//! ```

use std::collections::BTreeMap;

use super::ir::*;
use super::walk;
use crate::base::provenance::{OfStatements, Side, SourceId};

/// The tables of a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sources {
    pub vals: Side<ValId>,
    pub axes: Side<AxisId>,
    pub bufs: Side<BufId>,
    pub sites: Side<SiteId>,
}

impl Sources {
    /// Pairs the operations of two kernels that differ only in the operations they were made for, such as those of two
    /// layers.
    pub fn pairs(&self, other: &Sources) -> Vec<(SourceId, SourceId)> {
        fn beside<K: crate::base::id::Id>(a: &Side<K>, b: &Side<K>, out: &mut Vec<(SourceId, SourceId)>) {
            out.extend(a.iter().filter_map(|(key, source)| Some((source, b.get(key)?))));
        }
        let mut out = vec![];
        beside(&self.vals, &other.vals, &mut out);
        beside(&self.axes, &other.axes, &mut out);
        beside(&self.bufs, &other.bufs, &mut out);
        beside(&self.sites, &other.sites, &mut out);
        out.sort();
        out.dedup();
        out
    }
}

/// The operations that each statement was made for, in order of the text.
pub fn of_statements(kernel: &Kernel) -> OfStatements {
    resolve(kernel).into_iter().map(|(_, sources)| sources).collect()
}

/// The statements in order of the text, with the operations they were made for.
pub fn resolve(kernel: &Kernel) -> Vec<(&Stmt, Vec<SourceId>)> {
    let mut r = Resolver { sources: kernel.sources.clone(), learning: true, out: vec![] };
    // Writes to a buffer tell the operation that it serves; its declaration and its first value belong to that
    // operation too.
    r.block(&kernel.body, None);
    r.learning = false;
    r.out.clear();
    r.block(&kernel.body, None);
    r.follow();
    r.out
}

struct Resolver<'k> {
    /// The sources that are known so far.
    sources: Sources,
    /// In the first walk, loops say nothing about the statements in them.
    learning: bool,
    out: Vec<(&'k Stmt, Vec<SourceId>)>,
}

impl<'k> Resolver<'k> {
    fn block(&mut self, body: &'k [Stmt], around: Option<SourceId>) {
        for stmt in body {
            self.stmt(stmt, around);
        }
    }

    fn stmt(&mut self, stmt: &'k Stmt, around: Option<SourceId>) {
        let at = self.out.len();
        self.out.push((stmt, vec![]));
        let bodies = walk::bodies(stmt);
        let own = self.own(stmt);
        if bodies.is_empty() {
            let source = own.or_else(|| self.read(stmt)).or(around.filter(|_| !self.learning));
            self.learn(stmt, source);
            self.out[at].1 = source.into_iter().collect();
            return;
        }
        for body in bodies {
            self.block(body, own.or(around));
        }
        let mut inside: Vec<SourceId> = match own {
            Some(own) => vec![own],
            None => self.out[at + 1..].iter().flat_map(|(_, sources)| sources).copied().collect(),
        };
        inside.sort();
        inside.dedup();
        self.out[at].1 = inside;
    }

    /// A statement without a known operation, such as a test that a rule added, belongs to the first statement that
    /// uses it.
    fn follow(&mut self) {
        let mut users: BTreeMap<ValId, Vec<SourceId>> = BTreeMap::new();
        for (stmt, sources) in self.out.iter_mut().rev() {
            if sources.is_empty()
                && let Some(of) = walk::def(stmt).and_then(|dst| users.get(&dst))
            {
                *sources = of.clone();
            }
            if !sources.is_empty() {
                walk::each_use(stmt, &mut |v| drop(users.insert(v, sources.clone())));
            }
        }
    }

    /// The operation that the tables give for the statement.
    fn own(&self, stmt: &Stmt) -> Option<SourceId> {
        let s = &self.sources;
        if let Some(dst) = walk::def(stmt)
            && let Some(source) = s.vals.get(dst)
        {
            return Some(source);
        }
        match stmt {
            Stmt::For(f) => s.axes.get(f.axis),
            Stmt::Read { buf, .. } | Stmt::Write { buf, .. } | Stmt::Local { buf } | Stmt::Stage { buf, .. } => {
                s.bufs.get(*buf)
            }
            _ => s.sites.get(walk::site(stmt)?),
        }
    }

    /// The first source of the values that a statement reads; parameters have none.
    fn read(&self, stmt: &Stmt) -> Option<SourceId> {
        let mut first = None;
        walk::each_use(stmt, &mut |v| first = first.or(self.sources.vals.get(v)));
        first
    }

    /// The source of a statement is the source of the value or the buffer that it defines.
    fn learn(&mut self, stmt: &Stmt, source: Option<SourceId>) {
        if let Some(dst) = walk::def(stmt) {
            self.sources.vals.set(dst, source);
        }
        if let Stmt::Write { buf, .. } = stmt
            && self.sources.bufs.get(*buf).is_none()
        {
            self.sources.bufs.set(*buf, source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::provenance::SourceId;
    use crate::loops::parse::parse;

    #[test]
    fn what_a_rule_makes_belongs_to_what_it_reads() {
        let text = "tile kernel k(a: ptr f32, n: i64):\n  for j in 0..8: free\n    x: f32 = load a[j]\n    on: i1 = test j < n\n    \
                    y: f32 = select(on, x, 0.0)\n    store a[j] = y\n  for i in 0..8: free\n    store a[i] = 1.0\n";
        let (mut kernel, _) = parse(text).unwrap();
        let val = |name: &str| kernel.vals.iter().find(|(_, v)| v.name == name).unwrap().0;
        let (x, j) = (val("x"), kernel.axes.iter().find(|(_, a)| a.name == "j").unwrap().0);
        kernel.sources.vals.set(x, Some(SourceId(7)));
        kernel.sources.axes.set(j, Some(SourceId(3)));
        let found: Vec<Vec<u32>> =
            of_statements(&kernel).into_iter().map(|s| s.into_iter().map(|s| s.0).collect()).collect();
        // for j, load, test (by its loop), select (by its first operand), store (by y); for i and its store: unknown.
        assert_eq!(found, [vec![3], vec![7], vec![3], vec![7], vec![7], vec![], vec![]]);
        // A value without a source of its own takes that of the first operand that has one.
        kernel.sources.axes = Side::default();
        let found: Vec<Vec<u32>> =
            of_statements(&kernel).into_iter().map(|s| s.into_iter().map(|s| s.0).collect()).collect();
        // The test exists for the value that it chooses.
        assert_eq!(found, [vec![7], vec![7], vec![7], vec![7], vec![7], vec![], vec![]]);
    }
}
