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
    /// Keyed by the pointer and the stored value; a constant has no value.
    stores: BTreeMap<(ValId, Option<ValId>), SourceId>,
}

impl PartialEq for Sources {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Sources {
    /// The statement is made for an operation: remembers it where nothing that is defined says so.
    pub fn note(&mut self, stmt: &Stmt, source: Option<SourceId>) {
        if let (Some(key), Some(source)) = (stored(stmt), source) {
            self.stores.entry(key).or_insert(source);
        }
    }
}

/// The key of a store to global memory.
fn stored(stmt: &Stmt) -> Option<(ValId, Option<ValId>)> {
    match stmt {
        Stmt::Store { place: Address::Mem { base, .. }, value, .. } => match value {
            Opnd::Val(v) => Some((*base, Some(*v))),
            Opnd::Const { .. } => Some((*base, None)),
        },
        _ => None,
    }
}

/// The operation that each statement was made for, in order of the text.
pub fn of_statements(kernel: &Kernel) -> OfStatements {
    let mut out = vec![];
    block(kernel, &kernel.body, None, &mut out);
    out
}

fn block(kernel: &Kernel, body: &[Stmt], around: Option<SourceId>, out: &mut OfStatements) {
    for stmt in body {
        let at = out.len();
        out.push(vec![]);
        let own = own(&kernel.sources, stmt);
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
        inner.iter().for_each(|body| block(kernel, body, own.or(around), out));
        let mut sources: Vec<SourceId> = match own {
            Some(own) => vec![own],
            None => out[at + 1..].iter().flatten().copied().collect(),
        };
        sources.sort();
        sources.dedup();
        out[at] = sources;
    }
}

/// The operation that the tables give for a statement: that of the value it defines or the loop it opens, or else that
/// of the first array that it reads or writes.
fn own(s: &Sources, stmt: &Stmt) -> Option<SourceId> {
    if let Some(source) = stored(stmt).and_then(|key| s.stores.get(&key)) {
        return Some(*source);
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda_tile::parse::parse;
    use crate::loops::provenance as loops;
    use crate::pipeline::{self, Options, Silent};
    use crate::tile::target::Target;

    const ADD: &str = "cuda_tile.module @m {
  entry @add(%a: tile<ptr<f32>>, %c: tile<ptr<f32>>) {
    %i = iota : tile<128xi32>
    %as = reshape %a : tile<ptr<f32>> -> tile<1xptr<f32>>
    %ab = broadcast %as : tile<1xptr<f32>> -> tile<128xptr<f32>>
    %ap = offset %ab, %i : tile<128xptr<f32>>, tile<128xi32> -> tile<128xptr<f32>>
    %x, %t = load_ptr_tko weak %ap : tile<128xptr<f32>> -> tile<128xf32>, token
    %y = mulf %x, %x : tile<128xf32>
    %cs = reshape %c : tile<ptr<f32>> -> tile<1xptr<f32>>
    %cb = broadcast %cs : tile<1xptr<f32>> -> tile<128xptr<f32>>
    %cp = offset %cb, %i : tile<128xptr<f32>>, tile<128xi32> -> tile<128xptr<f32>>
    %u = store_ptr_tko weak %cp, %y : tile<128xptr<f32>>, tile<128xf32> -> token
  }
}
";

    /// A statement that is written out at a stage was made for the operation that starts there.
    #[test]
    fn loads_products_and_stores_belong_to_their_operations_at_every_stage() {
        let module = parse(ADD).module.unwrap();
        for target in ["x86-64-v4", "sm_80"] {
            let target = Target::named(target).unwrap_or_default();
            let options = Options { target, ..Options::default() };
            let lowered = pipeline::lower(&module, "add", &options, &mut Silent).unwrap();
            let of = |s: &[SourceId]| -> Vec<&str> {
                s.iter().map(|s| ADD[s.0 as usize..].split_whitespace().next().unwrap_or("")).collect()
            };
            for (kernel, stage) in [(&lowered.loops, "loop"), (&lowered.tile, "tile")] {
                for (stmt, sources) in loops::resolve(kernel) {
                    let want = match stmt {
                        crate::loops::ir::Stmt::Load { .. } => "load_ptr_tko",
                        crate::loops::ir::Stmt::Store { .. } => "store_ptr_tko",
                        crate::loops::ir::Stmt::Let { op: crate::num::ScalarOp::MulF { .. }, .. } => "mulf",
                        _ => continue,
                    };
                    assert_eq!(of(&sources), [want], "{stage}: {stmt:?}");
                }
            }
            let mut stmts = vec![];
            statements(&lowered.kernel.body, &mut |stmt| stmts.push(stmt));
            let all = of_statements(&lowered.kernel);
            assert_eq!(all.len(), stmts.len());
            let mut seen = [0; 3];
            for (stmt, sources) in stmts.iter().zip(&all) {
                let (at, want) = match stmt {
                    Stmt::Load { place: Address::Mem { .. }, .. } => (0, "load_ptr_tko"),
                    Stmt::Store { place: Address::Mem { .. }, .. } => (1, "store_ptr_tko"),
                    Stmt::Let { op: crate::num::ScalarOp::MulF { .. }, .. } => (2, "mulf"),
                    _ => continue,
                };
                seen[at] += 1;
                assert_eq!(of(sources), [want], "{stmt:?}");
            }
            assert!(seen.iter().all(|n| *n > 0), "{seen:?}");
        }
    }
}
