//! Finds the statements of a list that read a buffer, write it, or touch memory.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::nest::has_fence;
use crate::index::Ix;
use crate::loops::ir::{BufId, Kernel, Stmt};
use crate::loops::walk;

/// A read of the producer's buffer.
pub struct Reader {
    /// Its statement in the list the producer stands in.
    pub at: usize,
    pub idx: Vec<Ix>,
    /// The most runs per element of the buffer; `None` if it is unknown.
    pub repeats: Option<u64>,
    /// In the innermost loop of a contraction.
    pub contraction: bool,
    /// The list that holds it, as a number.
    pub list: usize,
}

pub fn readers(kernel: &Kernel, body: &[Stmt], from: usize, buf: BufId, uses: &Uses) -> Vec<Reader> {
    let elements = kernel.bufs[buf].shape.iter().product::<u64>().max(1);
    let mut out = Vec::new();
    let mut lists = 0;
    for (at, stmt) in uses.of(buf, body).filter(|&(at, _)| at >= from) {
        let mut found = Vec::new();
        find(std::slice::from_ref(stmt), buf, Some(1), false, &mut lists, &mut found);
        out.extend(found.into_iter().map(|(idx, runs, contraction, list)| Reader {
            at,
            idx,
            repeats: runs.map(|r: u64| r.div_ceil(elements)),
            contraction,
            list,
        }));
    }
    out
}

type Found = (Vec<Ix>, Option<u64>, bool, usize);

fn find(body: &[Stmt], buf: BufId, runs: Option<u64>, contraction: bool, lists: &mut usize, out: &mut Vec<Found>) {
    let list = *lists;
    *lists += 1;
    for stmt in body {
        match stmt {
            Stmt::Read { buf: b, idx, .. } if *b == buf => out.push((idx.clone(), runs, contraction, list)),
            Stmt::For(f) => {
                let trips = match (&f.lo, &f.hi, &f.step) {
                    (Ix::Const(lo), Ix::Const(hi), Ix::Const(1)) => Some((hi - lo).max(0) as u64),
                    _ => None,
                };
                let runs = runs.zip(trips).map(|(a, b)| a.saturating_mul(b));
                find(&f.body, buf, runs, contraction || f.contraction.is_some(), lists, out);
            }
            Stmt::Loop { body } => find(body, buf, None, false, lists, out),
            _ => {
                for inner in walk::bodies(stmt) {
                    find(inner, buf, runs, contraction, lists, out);
                }
            }
        }
    }
}

/// The statements of a list that mention a buffer, write it, or store to memory. Positions do not change while a list
/// is worked on: a removed statement leaves an empty one.
#[derive(Default)]
pub struct Uses {
    pub mention: FxHashMap<BufId, BTreeSet<usize>>,
    pub write: FxHashMap<BufId, BTreeSet<usize>>,
    /// Statements with stores, atomics or ordered accesses.
    pub memory: BTreeSet<usize>,
}

impl Uses {
    pub fn index(body: &[Stmt]) -> Uses {
        let mut uses = Uses::default();
        (0..body.len()).for_each(|at| uses.add(body, at));
        uses
    }

    pub fn add(&mut self, body: &[Stmt], at: usize) {
        let Some(stmt) = body.get(at) else { return };
        let stmt = std::slice::from_ref(stmt);
        for buf in walk::buffer_uses(stmt).into_keys() {
            self.mention.entry(buf).or_default().insert(at);
        }
        let effects = walk::effects(stmt);
        for buf in effects.bufs_written {
            self.write.entry(buf).or_default().insert(at);
        }
        if !effects.stores.is_empty() || has_fence(stmt) {
            self.memory.insert(at);
        }
    }

    pub fn of<'a>(&'a self, buf: BufId, body: &'a [Stmt]) -> impl Iterator<Item = (usize, &'a Stmt)> {
        self.mention.get(&buf).into_iter().flatten().filter_map(|&at| Some((at, body.get(at)?)))
    }
}
