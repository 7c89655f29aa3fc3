//! `promote_alloca`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::index::{Facts, simplify};
use crate::loops::ir::*;
use crate::loops::walk::{self, Part, parts};
use crate::tile::Context;
use crate::tile::edit::{self, Visit};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "promote_alloca",
    doc: "\
Makes memory that a program takes for its block a buffer, which threads can then share.

```text
p: ptr f32 = alloca 512 align 64                 local p: f32[128]
for i in 0..128: free                            for i in 0..128: free
  store p[i] = v                          -->      p[i] = v
for j in 0..128: free                            for j in 0..128: free
  w: f32 = load p[127 - j]                         w: f32 = p[127 - j]
```

Memory of which each access names an element of a row, as `p[i*64 + j]` with `j` in `0..64` does, becomes a buffer of rows, `p[i, j]`.

Refuses memory whose address is used for anything but loads and stores of its own elements: an address that is passed on, moved by
offsets that differ, or read as another type, and atomics.
",
    run,
};

fn run(p: &Kernel, _: &Context, log: &mut Log) -> Option<Kernel> {
    let mut found: BTreeMap<ValId, Result<(), &'static str>> = BTreeMap::new();
    walk::visit(&p.body, &mut |s| {
        if let Stmt::Alloca { dst, .. } = s {
            found.insert(*dst, Ok(()));
        }
    });
    if found.is_empty() {
        return None;
    }
    walk::visit(&p.body, &mut |s| {
        let own = match s {
            Stmt::Load { mem, order, .. } | Stmt::Store { mem, order, .. } => {
                if let Some(state) = found.get_mut(&mem.base) {
                    let same = p.vals[mem.base].ty == Ty::Ptr(mem.elem) && mem.elem.bits() >= 8;
                    if !same || *order != Order::Weak {
                        *state = Err("an access is ordered, or of another type than its elements");
                    }
                }
                Some(mem.base)
            }
            _ => None,
        };
        let mut uses = 0;
        walk::each_use(s, &mut |v| {
            uses += usize::from(own == Some(v));
            if let Some(state) = found.get_mut(&v)
                && (own != Some(v) || uses > 1)
            {
                *state = Err("its address is used for more than loads and stores of its elements");
            }
        });
        parts(s, &mut |part| {
            if let Part::Ix(ix) = part {
                for v in ix.vals() {
                    if let Some(state) = found.get_mut(&v) {
                        *state = Err("its address is used for more than loads and stores of its elements");
                    }
                }
            }
        });
    });
    let mut kernel = p.clone();
    let mut promoted: BTreeMap<ValId, Promoted> = BTreeMap::new();
    let mut accesses = BTreeMap::new();
    accessed(&p.body, &mut p.facts(), &found, &mut accesses);
    walk::visit(&p.body, &mut |s| {
        let Stmt::Alloca { dst, bytes, .. } = s else { return };
        let (Some(state), Ty::Ptr(dtype)) = (found.get(dst), p.vals[*dst].ty) else { return };
        let name = p.vals[*dst].name.clone();
        match state {
            Err(why) => log.skipped(name, *why),
            Ok(()) => {
                let elements = (bytes / dtype.bytes()).max(1);
                let (shape, at) = rows(elements, accesses.get(dst).map_or(&[], |all| all));
                match &shape[..] {
                    [_] => log.applied(format!("{name}: {elements} elements")),
                    shape => log.applied(format!("{name}: {elements} elements, as {shape:?}")),
                }
                let buf = kernel.bufs.push(Buf::new(name, Ty::Num(dtype), shape));
                promoted.insert(*dst, Promoted { buf, at });
            }
        }
    });
    if promoted.is_empty() {
        return None;
    }
    edit::rewrite(&kernel, &mut |kernel, s| match s {
        Stmt::Alloca { dst, .. } => match promoted.get(dst) {
            Some(to) => Visit::Replace(vec![Stmt::Local { buf: to.buf }]),
            None => Visit::Leave,
        },
        Stmt::Load { dst, mem, mask, other, .. } => match promoted.get(&mem.base) {
            Some(to) => Visit::Replace(load(kernel, to.buf, *dst, to.place(&mem.index), mask, *other)),
            None => Visit::Leave,
        },
        Stmt::Store { mem, value, mask, .. } => match promoted.get(&mem.base) {
            Some(to) => {
                let write = Stmt::Write { buf: to.buf, idx: to.place(&mem.index), value: *value };
                Visit::Replace(match mask.is_always() {
                    true => vec![write],
                    false => edit::when(kernel, "stored", mask.clone(), vec![write], vec![]),
                })
            }
            None => Visit::Leave,
        },
        _ => Visit::Into,
    })
}

/// The buffer that memory has become.
struct Promoted {
    buf: BufId,
    /// The subscripts of each element that is accessed, where the buffer has rows.
    at: BTreeMap<Ix, Vec<Ix>>,
}

impl Promoted {
    fn place(&self, index: &Ix) -> Vec<Ix> {
        self.at.get(index).cloned().unwrap_or_else(|| vec![index.clone()])
    }
}

/// The elements that loads and stores name, with what is known of the loops around them.
type Accesses = BTreeMap<ValId, Vec<(Ix, Facts)>>;

fn accessed<T>(body: &[Stmt], facts: &mut Facts, of: &BTreeMap<ValId, T>, out: &mut Accesses) {
    for s in body {
        match s {
            Stmt::Load { mem, .. } | Stmt::Store { mem, .. } if of.contains_key(&mem.base) => {
                out.entry(mem.base).or_default().push((mem.index.clone(), facts.clone()));
            }
            Stmt::For(f) => facts.set_axis(f.axis, &f.lo, &f.hi),
            _ => {}
        }
        walk::bodies(s).into_iter().for_each(|inner| accessed(inner, facts, of, out));
    }
}

/// The shape of memory in which every access stays in a row, and the subscripts of each.
fn rows(elements: u64, accesses: &[(Ix, Facts)]) -> (Vec<u64>, BTreeMap<Ix, Vec<Ix>>) {
    let by = |ix: &Ix, axis| Some(ix.linear(axis)?.0.as_const()?.unsigned_abs());
    let lengths: BTreeSet<u64> =
        accesses.iter().flat_map(|(ix, _)| ix.axes().into_iter().filter_map(|axis| by(ix, axis))).collect();
    let (mut outer, mut last) = (vec![], elements);
    let mut at: Vec<Vec<Ix>> = accesses.iter().map(|(ix, _)| vec![ix.clone()]).collect();
    for length in lengths.into_iter().rev().filter(|n| *n > 1) {
        let split = |((_, facts), idx): (&(Ix, Facts), &Vec<Ix>)| {
            let (ix, around) = idx.split_last()?;
            let length = Ix::Const(i64::try_from(length).ok()?);
            let row = simplify(&Ix::floor_div(ix.clone(), length.clone()), facts);
            let own = simplify(&Ix::modulo(ix.clone(), length), facts);
            let plain = !divides(&row) && !divides(&own);
            plain.then(|| around.iter().cloned().chain([row, own]).collect::<Vec<Ix>>())
        };
        if length < last
            && last.is_multiple_of(length)
            && let Some(split) = accesses.iter().zip(&at).map(split).collect()
        {
            outer.push(last / length);
            (last, at) = (length, split);
        }
    }
    outer.push(last);
    let mut places: BTreeMap<Ix, Vec<Ix>> = BTreeMap::new();
    for ((ix, _), idx) in accesses.iter().zip(at) {
        if *places.entry(ix.clone()).or_insert_with(|| idx.clone()) != idx {
            return (vec![elements], BTreeMap::new());
        }
    }
    (outer, places)
}

fn divides(ix: &Ix) -> bool {
    matches!(ix, Ix::FloorDiv(..) | Ix::Mod(..)) || ix.operands().is_some_and(|(a, b)| divides(a) || divides(b))
}

/// A load as a read; where its mask does not hold, nothing is read.
fn load(kernel: &mut Kernel, to: BufId, dst: ValId, idx: Vec<Ix>, mask: &Mask, other: Option<Opnd>) -> Vec<Stmt> {
    if mask.is_always() {
        return vec![Stmt::Read { dst, buf: to, idx }];
    }
    let Val { ty, name } = kernel.vals[dst].clone();
    let chosen = kernel.bufs.push(Buf::new(name.clone(), ty, vec![]));
    let read = kernel.vals.push(Val { ty, name });
    let set = |value| Stmt::Write { buf: chosen, idx: vec![], value };
    let value = other.unwrap_or(Opnd::Const { dtype: ty.held(), bits: 0 });
    let then = vec![Stmt::Read { dst: read, buf: to, idx }, set(Opnd::Val(read))];
    let mut out = vec![Stmt::Local { buf: chosen }, set(value)];
    out.extend(edit::when(kernel, "loaded", mask.clone(), then, vec![]));
    out.push(Stmt::Read { dst, buf: chosen, idx: vec![] });
    out
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const TURN: &str = r#"loop kernel k(x: ptr f32, y: ptr f32, n: i32):
  p: ptr f32 = alloca 512 align 64
  for i in 0..128: free
    v: f32 = load x[i]
    store p[i] = v where i < n
  for j in 0..128: free
    w: f32 = load p[127 - j] where j < n else 1.0
    store y[j] = w
"#;

    #[test]
    fn loads_and_stores_are_of_a_buffer() {
        let (out, log) = apply("promote_alloca", &kernel(TURN), &gpu(&[]));
        assert_eq!(log.applied, ["p: 128 elements"]);
        let want = r#"tile kernel k(x: ptr f32, y: ptr f32, n: i32):
  local p: f32[128]
  for i in 0..128: free
    v: f32 = load x[i]
    stored: i1 = test i < n
    if stored:
      p[i] = v
  for j in 0..128: free
    local w: f32
    w = 1.0
    loaded: i1 = test j < n
    if loaded:
      w_1: f32 = p[127 - j]
      w = w_1
    w_2: f32 = w
    store y[j] = w_2
"#;
        assert_eq!(text(&out), want);
    }

    #[test]
    fn memory_of_rows_has_their_shape() {
        let flip = TURN
            .replace("  for i in 0..128: free\n", "  for r in 0..4: free\n   for i in 0..32: free\n")
            .replace("load x[i]", "load x[r*32 + i]")
            .replace("store p[i] = v where i < n", "store p[r*32 + i] = v")
            .replace("  for j in 0..128: free\n", "  for q in 0..4: free\n   for j in 0..32: free\n")
            .replace("load p[127 - j] where j < n else 1.0", "load p[q*32 - j + 31]")
            .replace("store y[j]", "store y[q*32 + j]");
        let (out, log) = apply("promote_alloca", &kernel(&flip), &gpu(&[]));
        assert_eq!(log.applied, ["p: 128 elements, as [4, 32]"]);
        let made = text(&out);
        assert!(made.contains("p[r, i] = v") && made.contains("w: f32 = p[q, j*-1 + 31]"), "{made}");
        // An access that crosses rows leaves it one row.
        let across = flip.replace("p[q*32 - j + 31]", "p[q*32 + j + 1]").replace("q in 0..4", "q in 0..3");
        assert_eq!(apply("promote_alloca", &kernel(&across), &gpu(&[])).1.applied, ["p: 128 elements"]);
    }

    #[test]
    fn an_address_that_goes_elsewhere_stays_one() {
        for (from, to, why) in [
            (
                "load p[127 - j]",
                "load p[127 - j] acquire",
                "an access is ordered, or of another type than its elements",
            ),
            (
                "    store y[j] = w\n",
                "    q: ptr f32 = p + 1:i64\n    store q[j] = w\n",
                "its address is used for more than loads and stores of its elements",
            ),
        ] {
            let text = TURN.replace(from, to).replace("acquire where j < n else 1.0", "where j < n else 1.0 acquire");
            assert_eq!(refusals("promote_alloca", &text, &gpu(&[])), [format!("p: {why}")]);
        }
    }
}
