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
fn stored(stmt: &Stmt) -> Option<String> {
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

/// The operation that the tables give for a statement: that of the value it defines or the loop it opens, or else that
/// of the first array that it reads or writes.
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
    /// Stores of constants to one array, equal ones among them, belong each to its own operation.
    #[test]
    fn stores_of_constants_belong_to_their_operations() {
        let head = "cuda_tile.module @m {
  entry @fill(%c: tile<ptr<f32>>) {
    %z = constant <f32: 0.0> : tile<64xf32>
    %o = constant <f32: 1.0> : tile<64xf32>
    %i = iota : tile<64xi32>
    %b = reshape %c : tile<ptr<f32>> -> tile<1xptr<f32>>
    %p = broadcast %b : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %p0 = offset %p, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %w = constant <i32: 64> : tile<64xi32>
    %p1 = offset %p0, %w : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
";
        // Every three stores of two values to two places.
        for n in 0..64 {
            let mut text = head.to_string();
            let mut want = vec![];
            for at in 0..3 {
                let (place, value) = (n >> (2 * at) & 1, if n >> (2 * at + 1) & 1 == 0 { "z" } else { "o" });
                text += "    ";
                want.push(SourceId(text.len() as u32 + 6));
                let token = if at == 0 { String::new() } else { format!(" token=%t{}", at - 1) };
                text += &format!("%t{at} = store_ptr_tko weak %p{place}, %{value}{token} : ");
                text += "tile<64xptr<f32>>, tile<64xf32> -> token\n";
            }
            text += "    return\n  }\n}\n";
            let module = parse(&text).module.unwrap();
            for target in ["x86-64-v4", "sm_80"] {
                let options = Options { target: Target::named(target).unwrap_or_default(), ..Options::default() };
                let lowered = pipeline::lower(&module, "fill", &options, &mut Silent).unwrap();
                let mut stmts = vec![];
                statements(&lowered.kernel.body, &mut |stmt| stmts.push(stmt));
                let all = of_statements(&lowered.kernel);
                let stores = stmts.iter().zip(&all).filter(|(stmt, _)| stored(stmt).is_some());
                let mut found: Vec<SourceId> = stores.flat_map(|(_, sources)| sources.clone()).collect();
                found.dedup();
                assert_eq!(found, want, "{target}\n{text}");
            }
        }
    }
}
