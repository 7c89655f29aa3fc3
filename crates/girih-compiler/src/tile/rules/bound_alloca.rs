//! `bound_alloca`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::index::Facts;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::{DType, ScalarOp};
use crate::tile::Context;
use crate::tile::edit;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "bound_alloca",
    doc: "\
Keeps a program within memory that it takes for its block: accesses past its end do nothing, so that they harm no one else's
memory. Where accesses are checked, they stop the kernel.

```text
p: ptr f32 = alloca 512 align 64                 p: ptr f32 = alloca 512 align 64
for i in 0..128: free                            for i in 0..128: free
  store p[i] = v                                   store p[i] = v
  store p[i + n] = v                      -->      store p[i + n] = v where 0 <= i + n and i + n < 128
```

An address that was computed is compared as a number with that of the memory. Refuses addresses that may be of that memory or of
something else.
",
    run,
};

fn run(p: &Kernel, cx: &Context, log: &mut Log) -> Option<Kernel> {
    let mut memories = BTreeMap::new();
    walk::visit(&p.body, &mut |s| {
        if let Stmt::Alloca { dst, bytes, .. } = s {
            memories.insert(*dst, *bytes);
        }
    });
    if memories.is_empty() {
        return None;
    }
    let sources = Sources::of(p, &memories);
    let mut kernel = p.clone();
    let mut body = std::mem::take(&mut kernel.body);
    let facts = p.facts();
    let mut bound = Bound {
        kernel: &mut kernel,
        memories,
        sources,
        facts,
        apart: distances(p),
        check: cx.check,
        done: vec![],
        log,
    };
    bound.list(&mut body);
    let done = bound.done;
    for name in &done {
        log.applied(name.clone());
    }
    kernel.body = body;
    (!done.is_empty()).then_some(kernel)
}

/// What the address in a value or a buffer may be of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Alloca(ValId),
    Other,
}

/// Of every address, found by following it through operations and buffers until nothing is new.
#[derive(Default)]
struct Sources {
    vals: BTreeMap<ValId, BTreeSet<Source>>,
    bufs: BTreeMap<BufId, BTreeSet<Source>>,
}

impl Sources {
    fn of(kernel: &Kernel, memories: &BTreeMap<ValId, u64>) -> Sources {
        let mut found = Sources::default();
        for &dst in memories.keys() {
            found.vals.entry(dst).or_default().insert(Source::Alloca(dst));
        }
        let is_address = |v: ValId| matches!(kernel.vals[v].ty, Ty::Ptr(_));
        loop {
            let mut grew = false;
            walk::visit(&kernel.body, &mut |s| match s {
                Stmt::Let { dst, args, .. } if is_address(*dst) => {
                    let addresses = args.iter().filter_map(|a| match a {
                        Opnd::Val(v) if is_address(*v) => Some(*v),
                        _ => None,
                    });
                    let mut from: Vec<_> = addresses.map(|v| found.val(v)).collect();
                    if from.is_empty() {
                        // A number became an address.
                        from.push(BTreeSet::from([Source::Other]));
                    }
                    grew |= add(found.vals.entry(*dst).or_default(), from.into_iter().flatten());
                }
                Stmt::Read { dst, buf, .. } if is_address(*dst) => {
                    let from = found.bufs.get(buf).cloned().unwrap_or_default();
                    grew |= add(found.vals.entry(*dst).or_default(), from);
                }
                Stmt::Write { buf, value: Opnd::Val(v), .. } if is_address(*v) => {
                    let from = found.val(*v);
                    grew |= add(found.bufs.entry(*buf).or_default(), from);
                }
                _ => {}
            });
            if !grew {
                return found;
            }
        }
    }

    /// Of a value that nothing above defines, such as a parameter: something else.
    fn val(&self, v: ValId) -> BTreeSet<Source> {
        self.vals.get(&v).cloned().unwrap_or_else(|| BTreeSet::from([Source::Other]))
    }
}

fn add(to: &mut BTreeSet<Source>, from: impl IntoIterator<Item = Source>) -> bool {
    let before = to.len();
    to.extend(from);
    to.len() > before
}

struct Bound<'a> {
    kernel: &'a mut Kernel,
    memories: BTreeMap<ValId, u64>,
    sources: Sources,
    facts: Facts,
    /// Distances between addresses that are computed already.
    apart: Vec<(ValId, ValId, ValId)>,
    check: bool,
    /// The memories some of whose accesses were bounded.
    done: Vec<String>,
    log: &'a mut Log,
}

impl Bound<'_> {
    fn list(&mut self, body: &mut Vec<Stmt>) {
        let mut out = Vec::with_capacity(body.len());
        for mut s in std::mem::take(body) {
            if let Stmt::For(f) = &s {
                self.facts.set_axis(f.axis, &f.lo, &f.hi);
            }
            for inner in walk::bodies_mut(&mut s) {
                self.list(inner);
            }
            self.access(&mut s, &mut out);
            out.push(s);
        }
        *body = out;
    }

    /// Bounds an access; what has to be computed for that goes to `out`.
    fn access(&mut self, s: &mut Stmt, out: &mut Vec<Stmt>) {
        let (Stmt::Load { mem, mask, site, .. }
        | Stmt::Store { mem, mask, site, .. }
        | Stmt::Rmw { mem, mask, site, .. }
        | Stmt::Cas { mem, mask, site, .. }) = s
        else {
            return;
        };
        let from = self.sources.val(mem.base);
        let mut memories = from.iter().filter_map(|s| if let Source::Alloca(v) = s { Some(*v) } else { None });
        let Some(of) = memories.next() else { return };
        let name = self.kernel.vals[of].name.clone();
        if from.len() > 1 {
            return self.log.skipped(name, "an address may be of this memory or of something else");
        }
        let bytes = self.memories.get(&of).copied().unwrap_or(0);
        if self.is_bounded(mem, of, bytes, mask) {
            return;
        }
        let (index, end, computed) = self.place(mem, of, bytes);
        let inside = [Cond::new(Ix::Const(0), Cmp::Le, index.clone()), Cond::new(index, Cmp::Lt, Ix::Const(end))];
        let open: Vec<Cond> =
            (inside.into_iter()).filter(|c| self.facts.decide(c) != Some(true) && !mask.conds.contains(c)).collect();
        if open.is_empty() {
            return;
        }
        out.extend(computed);
        let open = Mask { conds: open, vals: vec![] };
        if self.check {
            let elements = bytes * 8 / u64::from(mem.elem.bits().max(1));
            let message =
                format!("an index is outside of the block's memory `{name}`, which holds {elements} elements");
            let cond = self.kernel.vals.push(Val { ty: Ty::Num(DType::I1), name: "inside".to_string() });
            let assert = vec![
                Stmt::Test { dst: cond, mask: open.clone() },
                Stmt::Assert { cond: Opnd::Val(cond), message, site: *site },
            ];
            match mask.is_always() {
                true => out.extend(assert),
                false => out.extend(edit::when(self.kernel, "active", mask.clone(), assert, vec![])),
            }
        }
        *mask = mask.and(&open);
        if !self.done.contains(&name) {
            self.done.push(name);
        }
    }

    /// Where an access lies, from the start of the memory on; the end of that; and what computes it.
    fn place(&mut self, mem: &Mem, of: ValId, bytes: u64) -> (Ix, i64, Vec<Stmt>) {
        let bits = i64::from(mem.elem.bits()).max(1);
        let last = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX / 8);
        if mem.base == of {
            return (mem.index.clone(), last(bytes) * 8 / bits, vec![]);
        }
        let mut number = |name: &str, op, args| {
            let dst = self.kernel.vals.push(Val { ty: Ty::Num(DType::I64), name: name.to_string() });
            (dst, Stmt::Let { dst, op, args })
        };
        let (at, first) = number("at", ScalarOp::PtrToInt, vec![Opnd::Val(mem.base)]);
        let (start, second) = number("start", ScalarOp::PtrToInt, vec![Opnd::Val(of)]);
        let (apart, third) = number("apart", ScalarOp::SubI, vec![Opnd::Val(at), Opnd::Val(start)]);
        let (index, end) = computed(mem, apart, bytes);
        (index, end, vec![first, second, third])
    }

    /// Whether an access through a computed address was bounded before.
    fn is_bounded(&self, mem: &Mem, of: ValId, bytes: u64, mask: &Mask) -> bool {
        let of_these = |(base, start, _): &&(ValId, ValId, ValId)| (*base, *start) == (mem.base, of);
        self.apart.iter().filter(of_these).any(|(.., apart)| {
            let (index, end) = computed(mem, *apart, bytes);
            mask.conds.contains(&Cond::new(index, Cmp::Lt, Ix::Const(end)))
        })
    }
}

/// Where an access lies in bytes, by how far its address is from the start of the memory; and the end of that.
fn computed(mem: &Mem, apart: ValId, bytes: u64) -> (Ix, i64) {
    let bits = i64::from(mem.elem.bits()).max(1);
    let size = (bits / 8).max(1);
    let index = match bits {
        0..8 => Ix::floor_div(mem.index.clone(), Ix::Const(8 / bits)),
        _ => Ix::mul(mem.index.clone(), Ix::Const(size)),
    };
    (Ix::add(Ix::val(apart), index), i64::try_from(bytes).unwrap_or(i64::MAX / 8) - (size - 1))
}

/// Differences of two addresses that the kernel computes: the address, what is subtracted, and the value.
fn distances(p: &Kernel) -> Vec<(ValId, ValId, ValId)> {
    let (mut numbers, mut found) = (BTreeMap::new(), vec![]);
    walk::visit(&p.body, &mut |s| match s {
        Stmt::Let { dst, op: ScalarOp::PtrToInt, args } => {
            if let [Opnd::Val(pointer)] = args.as_slice() {
                numbers.insert(*dst, *pointer);
            }
        }
        Stmt::Let { dst, op: ScalarOp::SubI, args } => {
            if let [Opnd::Val(a), Opnd::Val(b)] = args.as_slice()
                && let (Some(a), Some(b)) = (numbers.get(a), numbers.get(b))
            {
                found.push((*a, *b, *dst));
            }
        }
        _ => {}
    });
    found
}

#[cfg(test)]
mod tests {
    use crate::tile::Context;
    use crate::tile::tests::{apply, context, gpu, kernel, refusals, text};

    const SHIFTED: &str = r#"loop kernel k(x: ptr f32, y: ptr f32, n: i32):
  p: ptr f32 = alloca 512 align 64
  for i in 0..128: free
    v: f32 = load x[i]
    store p[i] = v
    store p[i + n] = v where i < n
  for j in 0..128: free
    w: f32 = load p[127 - j]
    store y[j] = w
"#;

    #[test]
    fn what_may_leave_the_memory_does_nothing_there() {
        let (out, log) = apply("bound_alloca", &kernel(SHIFTED), &context());
        assert_eq!(log.applied, ["p"]);
        let made = text(&out);
        let bounded: Vec<&str> = made.lines().filter(|l| l.contains("0 <= i + n")).collect();
        assert!(bounded.len() == 1 && bounded[0].contains("store p[i + n] = v where "), "{made}");
        assert!(bounded[0].contains("i < n") && bounded[0].contains("i + n < 128"), "{made}");
        assert!(made.contains("    store p[i] = v\n") && made.contains("load p[127 - j]\n"), "{made}");
        // What is bounded stays as it is.
        assert!(apply("bound_alloca", &out, &gpu(&[])).1.applied.is_empty());
    }

    #[test]
    fn what_is_checked_stops() {
        let (out, _) = apply("bound_alloca", &kernel(SHIFTED), &Context { check: true, ..context() });
        let text = text(&out);
        assert!(text.contains("an index is outside of the block's memory `p`, which holds 128 elements"), "{text}");
        assert!(text.contains("active: i1 = test i < n"), "{text}");
    }

    #[test]
    fn computed_addresses_are_compared_as_numbers() {
        let moved = SHIFTED.replace("    store y[j] = w\n", "    q: ptr f32 = p + 1:i64\n    store q[j] = w\n");
        let (out, _) = apply("bound_alloca", &kernel(&moved), &context());
        let text = text(&out);
        assert!(text.contains("apart: i64 = "), "{text}");
        let bounded = text.lines().find(|l| l.contains("store q[j] = w where ")).expect("a bounded store");
        assert!(bounded.contains("0 <= ") && bounded.contains("apart") && bounded.contains("< 509"), "{text}");
    }

    #[test]
    fn an_address_of_either_is_refused() {
        let alone = SHIFTED.replace("    store p[i + n] = v where i < n\n", "");
        let either = alone.replace(
            "    store y[j] = w\n",
            "    c: i1 = test j < n\n    q: ptr f32 = select(c, p, y)\n    store q[0] = w\n",
        );
        let why = "p: an address may be of this memory or of something else";
        assert_eq!(refusals("bound_alloca", &either, &context()), [why]);
    }
}
