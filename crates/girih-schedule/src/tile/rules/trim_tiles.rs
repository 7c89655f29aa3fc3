//! `trim_tiles`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::index::{Cmp, Cond, Facts, simplify};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::rules::{axis_site, mark_unroll};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "trim_tiles",
    doc: "\
Ends loops that fill a buffer at the last element that is read: a tile at the edge, or one with fewer rows than it has room for, is
computed only as far as its rows go.

```text
for i1 in 0..4: free                                for i1 in 0..min(4, (n + 7)//8): free
  for i2 in 0..8: free                                for i2 in 0..8: free
    acc[i1*8 + i2] = ..                      -->        acc[i1*8 + i2] = ..
for i in 0..min(32, n): free                        for i in 0..min(32, n): free
  store C[i] = acc[i]                                 store C[i] = acc[i]
```

Operands of the elements that are left out are not copied any more either.

Knob: `trim` (0 turns the rule off).

Refuses innermost loops, short loops (`mark_unroll`), loops that do more than write to buffers of the tile, and buffers that are read
up to different ends.
",
    run,
};

/// Ends from which on they are too long to be computed each time.
const LONGEST: usize = 32;
/// How often what became shorter makes more shorter: sums, what is copied for them, and what that was copied for.
const ROUNDS: usize = 3;

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !ctx.knobs.trim {
        log.skipped("kernel", "knob off");
        return None;
    }
    let mut out: Option<Kernel> = None;
    for _ in 0..ROUNDS {
        let kernel = out.as_ref().unwrap_or(p);
        let ends = Buffers::of(kernel, ctx).ends(kernel);
        if ends.is_empty() {
            break;
        }
        let mut next = kernel.clone();
        walk::visit_bodies_mut(&mut next.body, &mut |body| {
            for s in body.iter_mut() {
                if let Stmt::For(f) = s
                    && let Some(hi) = ends.get(&f.axis)
                {
                    f.hi = hi.clone();
                }
            }
            body.retain(|s| !matches!(s, Stmt::For(f) if ends.contains_key(&f.axis) && f.lo == f.hi));
        });
        ends.keys().for_each(|axis| log.applied(axis_site(kernel, *axis)));
        out = Some(next);
    }
    out
}

/// The common value of all, at least one; `None` if one is not known or differs.
fn same(mut all: impl Iterator<Item = Option<Ix>>) -> Option<Ix> {
    let first = all.next()??;
    all.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

/// How many tiles of a size it takes to that end.
fn tiles(end: Ix, size: i64) -> Ix {
    match end {
        Ix::Min(a, b) => Ix::min(tiles(*a, size), tiles(*b, size)),
        Ix::Max(a, b) => Ix::max(tiles(*a, size), tiles(*b, size)),
        end => Ix::ceil_div(end, Ix::Const(size)),
    }
}

/// One read or write of a buffer, and the loops around it.
struct Access<'a> {
    idx: &'a [Ix],
    around: Vec<&'a For>,
}

/// How a kernel uses a buffer.
#[derive(Default)]
struct Uses<'a> {
    /// The axes of the loops that it is declared in.
    scope: BTreeSet<AxisId>,
    reads: Vec<Access<'a>>,
    writes: Vec<Access<'a>>,
    /// It is used in another way too.
    otherwise: bool,
}

struct Buffers<'a> {
    ctx: &'a Context,
    uses: BTreeMap<BufId, Uses<'a>>,
    /// Loops with a constant end that hold others and are not written out, with the buffers from outside that they write.
    fills: Vec<(&'a For, BTreeSet<BufId>)>,
}

impl<'a> Buffers<'a> {
    fn of(kernel: &'a Kernel, ctx: &'a Context) -> Buffers<'a> {
        let mut all = Buffers { ctx, uses: BTreeMap::new(), fills: vec![] };
        all.list(&kernel.body, &mut vec![]);
        all
    }

    fn list(&mut self, body: &'a [Stmt], around: &mut Vec<&'a For>) {
        for s in body {
            let access = |idx: &'a [Ix]| Access { idx, around: around.clone() };
            match s {
                Stmt::Read { buf, idx, .. } => self.uses.entry(*buf).or_default().reads.push(access(idx)),
                Stmt::Write { buf, idx, .. } => self.uses.entry(*buf).or_default().writes.push(access(idx)),
                _ => walk::parts(s, &mut |part| match part {
                    walk::Part::DefBuf(buf) => {
                        self.uses.entry(*buf).or_default().scope = around.iter().map(|f| f.axis).collect();
                    }
                    walk::Part::ReadBuf(buf) | walk::Part::WriteBuf(buf) => {
                        self.uses.entry(*buf).or_default().otherwise = true;
                    }
                    _ => {}
                }),
            }
            let Stmt::For(f) = s else {
                walk::bodies(s).into_iter().for_each(|inner| self.list(inner, around));
                continue;
            };
            around.push(f);
            self.list(&f.body, around);
            around.pop();
            let nest = f.hi.as_const().is_some() && f.body.iter().any(|s| !walk::bodies(s).is_empty());
            if nest && !mark_unroll::is_short(s, self.ctx) && f.kind == LoopKind::Free && f.place == Place::None {
                let refs = walk::refs(&f.body);
                self.fills.push((f, refs.bufs_written.difference(&refs.bufs_defined).copied().collect()));
            }
        }
    }

    /// Where loops may end, that went further.
    fn ends(&self, kernel: &Kernel) -> BTreeMap<AxisId, Ix> {
        let mut facts = kernel.facts();
        walk::visit(&kernel.body, &mut |s| {
            if let Stmt::For(f) = s {
                facts.set_axis(f.axis, &f.lo, &f.hi);
            }
        });
        let found = self.fills.iter().filter_map(|(f, buffers)| Some((f.axis, self.end(kernel, f, buffers, &facts)?)));
        found.collect()
    }

    fn end(&self, kernel: &Kernel, f: &For, buffers: &BTreeSet<BufId>, facts: &Facts) -> Option<Ix> {
        let does = walk::effects(&f.body);
        if buffers.is_empty() || !does.stores.is_empty() || does.ordered || does.prints || does.traps || does.leaves {
            return None;
        }
        let ends = buffers.iter().map(|buf| self.uses.get(buf)?.end(kernel, f, facts));
        let end = same(ends)?;
        if end == f.lo {
            return Some(end);
        }
        let all = Cond::new(end.clone(), Cmp::Ge, f.hi.clone());
        let end = simplify(&Ix::min(f.hi.clone(), end), facts);
        // It does not end before it begins.
        let end = if f.lo.is_const(0) { end } else { Ix::max(f.lo.clone(), end) };
        (facts.decide(&all) != Some(true) && end != f.hi && end.size() <= LONGEST).then_some(end)
    }
}

impl Uses<'_> {
    /// How many iterations of a loop write what is read outside of it.
    fn end(&self, kernel: &Kernel, f: &For, facts: &Facts) -> Option<Ix> {
        let is_inside = |a: &&Access<'_>| a.around.iter().any(|l| l.axis == f.axis);
        if self.otherwise || self.scope.contains(&f.axis) {
            return None;
        }
        let inside: Vec<&Access<'_>> = self.reads.iter().chain(&self.writes).filter(is_inside).collect();
        // One dimension goes by tiles of the loop: each iteration alone reads and writes its tile.
        let rank = inside.first()?.idx.len();
        let tile = |d: usize| {
            let of = |a: &&Access<'_>| {
                let (by, rest) = a.idx.get(d)?.linear(f.axis)?;
                let (by, range) = (by.as_const().filter(|by| *by > 0)?, facts.range(&rest));
                (range.lo >= 0 && range.hi < i128::from(by)).then_some(by)
            };
            let by = of(inside.first()?)?;
            inside.iter().all(|a| of(a) == Some(by)).then_some((d, by))
        };
        let (d, by) = (0..rank).find_map(tile)?;
        let reads = self.reads.iter().filter(|a| !is_inside(a));
        let end = same(reads.map(|read| self.behind(kernel, read, read.idx.get(d)?, facts)))?;
        Some(if by == 1 { end } else { simplify(&tiles(end, by), facts) })
    }

    /// A bound that an index of a read always stays below, if it is known where the buffer is declared.
    fn behind(&self, kernel: &Kernel, read: &Access<'_>, index: &Ix, facts: &Facts) -> Option<Ix> {
        let known = |ix: &Ix| {
            let param = |v: &ValId| kernel.params.iter().any(|p| p.val == *v);
            ix.axes().iter().all(|a| self.scope.contains(a)) && ix.vals().iter().all(param)
        };
        let own = read.around.iter().find(|f| *index == Ix::Axis(f.axis) && !self.scope.contains(&f.axis));
        if let Some(f) = own {
            return known(&f.hi).then(|| f.hi.clone());
        }
        let mut last = index.clone();
        for f in read.around.iter().rev() {
            if self.scope.contains(&f.axis) || !last.has_axis(f.axis) {
                continue;
            }
            let (by, rest) = last.linear(f.axis)?;
            by.as_const().filter(|by| *by > 0)?;
            last = Ix::add(Ix::mul(Ix::sub(f.hi.clone(), Ix::Const(1)), by), rest);
        }
        known(&last).then(|| simplify(&Ix::add(last, Ix::Const(1)), facts))
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text, with_knobs};

    const TILE: &str = "loop kernel k(n: i64 in 1..1025, A: ptr f32, C: ptr f32):
  local a: f32[32, 4]
  local acc: f32[32]
  for r in 0..32: free
    for k in 0..4: free
      x: f32 = load A[r*4 + k]
      a[r, k] = x
  for i1 in 0..4: free
    for i2 in 0..8: free
      y: f32 = a[i1*8 + i2, 3]
      acc[i1*8 + i2] = y
  for i in 0..min(32, n): free
    z: f32 = acc[i]
    store C[i] = z
";

    #[test]
    fn a_tile_is_computed_as_far_as_it_is_read() {
        let (out, log) = apply("trim_tiles", &kernel(TILE), &context());
        assert_eq!(log.applied, ["loop i1", "loop r"]);
        let made = text(&out);
        for line in ["for i1 in 0..min(4, (n + 7)//8): free", "for r in 0..min(4, (n + 7)//8)*8: free"] {
            assert!(made.contains(line), "{line}: {made}");
        }
        // Elements beyond the last one that is read are not filled any more.
        let rest = TILE.replace(
            "  for i1 in",
            "  for s in 5..32: free\n    for q in 0..20: free\n      b[s, q] = 0.0\n  for i1 in",
        );
        let rest = rest.replace("  local acc", "  local b: f32[32, 20]\n  local acc");
        let rest = format!("{rest}  for t in 0..5: free\n    u: f32 = b[t, 0]\n    store C[t] = u\n");
        let made = text(&apply("trim_tiles", &kernel(&rest), &context()).0);
        assert!(!made.contains("for s") && made.contains("for t"), "{made}");
    }

    #[test]
    fn what_is_read_elsewhere_is_computed() {
        let all = TILE.replace("0..min(32, n)", "0..32");
        let other =
            TILE.replace("    store C[i] = z\n", "    w: f32 = acc[31 - i]\n    v: f32 = z + w\n    store C[i] = v\n");
        let apart = TILE.replace("acc[i1*8 + i2] = y", "acc[i1 + i2*4] = y");
        let short = TILE.replace("0..8: free", "0..2: free").replace("*8", "*2");
        let stores = TILE.replace("      acc[i1*8 + i2] = y", "      acc[i1*8 + i2] = y\n      store C[i1*8 + i2] = y");
        for program in [&all, &other, &apart, &stores] {
            let (_, log) = apply("trim_tiles", &kernel(program), &context());
            assert_eq!(log.applied, Vec::<String>::new(), "{program}");
        }
        let (_, log) = apply("trim_tiles", &kernel(&short), &context());
        assert_eq!(log.applied, ["loop r"], "what is written out stays");
        assert_eq!(refusals("trim_tiles", TILE, &with_knobs(&["trim=0"])), ["kernel: knob off"]);
    }
}
