//! `bound`: accesses past the end of memory that a block has for itself do nothing.
//!
//! ```text
//! p: ptr f32 = alloca 512 align 64                 p: ptr f32 = alloca 512 align 64
//! store p[i + n] = v                      -->      store p[i + n] = v where 0 <= i + n and i + n < 128
//! ```
//!
//! A computed address is compared as a number with that of the memory. An address that may be of several memories goes with the
//! beginning and the size of its own. Where accesses are checked, the one that leaves its memory also stops the kernel. Legal where an
//! access may leave one of the memories, and operations other than `select` choose no address.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::Facts;
use crate::loops::addresses::{Origin, Origins};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::{DType, ScalarOp};
use crate::tile::edit;

pub fn apply(kernel: &mut Kernel, check: bool, memories: &[ValId]) -> Result<(), String> {
    let bounded = Bounded::of(kernel, check, memories);
    if let (true, Some((name, why))) = (bounded.done.is_empty(), bounded.refused.first()) {
        return Err(format!("{name}: {why}"));
    }
    if bounded.done.is_empty() {
        return Err("no access may leave it".into());
    }
    *kernel = bounded.kernel;
    Ok(())
}

/// A kernel whose accesses stay within its memory.
pub struct Bounded {
    pub kernel: Kernel,
    /// The memories some of whose accesses had to be bounded.
    pub done: Vec<String>,
    /// Accesses that cannot be, by their memory, and why.
    pub refused: Vec<(String, &'static str)>,
}

impl Bounded {
    pub fn of(p: &Kernel, check: bool, of: &[ValId]) -> Bounded {
        let memories = walk::stmts(&p.body).filter_map(|s| match s {
            Stmt::Alloca { dst, bytes, .. } if of.contains(dst) => Some((*dst, *bytes)),
            _ => None,
        });
        let memories: BTreeMap<_, _> = memories.collect();
        let mut kernel = p.clone();
        let mut body = std::mem::take(&mut kernel.body);
        let facts = p.facts();
        let mut bound = Bound {
            kernel: &mut kernel,
            memories,
            origins: Origins::of(p),
            facts,
            apart: distances(p),
            mixed: None,
            check,
            done: vec![],
            refused: vec![],
        };
        if bound.is_one_mixed(&body) {
            bound.mixed = Some(Mixed::default());
        }
        bound.list(&mut body);
        let Bound { done, refused, .. } = bound;
        kernel.body = body;
        Bounded { kernel, done, refused }
    }
}

/// Where the memory of an address begins, as a number, and how many bytes it has.
#[derive(Clone, Copy)]
struct Extent {
    start: Opnd,
    bytes: Opnd,
}

/// The extents of addresses that may be of several memories.
#[derive(Default)]
struct Mixed {
    /// Where each memory of the block begins.
    starts: BTreeMap<ValId, ValId>,
    vals: BTreeMap<ValId, Extent>,
    /// The buffers of starts and of bytes beside a buffer of addresses.
    bufs: BTreeMap<BufId, (BufId, BufId)>,
}

fn whole(value: i64) -> Opnd {
    Opnd::Const { dtype: DType::I64, bits: value as u64 }
}

struct Bound<'a> {
    kernel: &'a mut Kernel,
    memories: BTreeMap<ValId, u64>,
    origins: Origins,
    facts: Facts,
    /// Distances between addresses that are computed already.
    apart: Vec<(ValId, ValId, ValId)>,
    /// Where an access needs it: what is known of addresses that may be of several memories.
    mixed: Option<Mixed>,
    check: bool,
    /// The memories some of whose accesses were bounded.
    done: Vec<String>,
    refused: Vec<(String, &'static str)>,
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
            let beside = self.beside(&s);
            out.push(s);
            out.extend(beside);
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
        let of = self.memories_of(&self.origins.val(mem.base));
        let Some(&first) = of.first() else { return };
        let names: Vec<&str> = of.iter().map(|v| self.kernel.vals[*v].name.as_str()).collect();
        let name = names.join(" or ");
        let bytes = self.memories.get(&first).copied().unwrap_or(0);
        let is_one = self.origins.only(mem.base).is_some();
        if if is_one { self.is_bounded(mem, first, bytes, mask) } else { self.is_measured(mem, mask) } {
            return;
        }
        let placed = if is_one { Some(self.place(mem, first, bytes)) } else { self.mixed_place(mem) };
        let Some((index, end, computed)) = placed else {
            return self.refused.push((name, "an address may be of this memory or of something else"));
        };
        let inside = [Cond::new(Ix::Const(0), Cmp::Le, index.clone()), Cond::new(index, Cmp::Lt, end)];
        let open: Vec<Cond> =
            (inside.into_iter()).filter(|c| self.facts.decide(c) != Some(true) && !mask.conds.contains(c)).collect();
        if open.is_empty() {
            return;
        }
        out.extend(computed);
        let open = Mask { conds: open, vals: vec![] };
        if self.check {
            let elements = bytes * 8 / u64::from(mem.elem.bits().max(1));
            let holds = if of.len() == 1 { format!(", which holds {elements} elements") } else { String::new() };
            let message = format!("an index is outside of the block's memory `{name}`{holds}");
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
    fn place(&mut self, mem: &Mem, of: ValId, bytes: u64) -> (Ix, Ix, Vec<Stmt>) {
        let bits = i64::from(mem.elem.bits()).max(1);
        let last = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX / 8);
        if mem.base == of {
            return (mem.index.clone(), Ix::Const(last(bytes) * 8 / bits), vec![]);
        }
        let (at, first) = self.number("at", ScalarOp::PtrToInt, vec![Opnd::Val(mem.base)]);
        let (start, second) = self.number("start", ScalarOp::PtrToInt, vec![Opnd::Val(of)]);
        let (apart, third) = self.number("apart", ScalarOp::SubI, vec![Opnd::Val(at), Opnd::Val(start)]);
        let (index, end) = computed(mem, apart, bytes);
        (index, Ix::Const(end), vec![first, second, third])
    }

    /// A value that is computed.
    fn number(&mut self, name: &str, op: ScalarOp, args: Vec<Opnd>) -> (ValId, Stmt) {
        let dst = self.fresh(name);
        (dst, Stmt::Let { dst, op, args })
    }

    fn fresh(&mut self, name: &str) -> ValId {
        self.kernel.vals.push(Val { ty: Ty::Num(DType::I64), name: name.to_string() })
    }

    /// The memories of the block among what an address was made of.
    fn memories_of(&self, from: &BTreeSet<Origin>) -> Vec<ValId> {
        let of = |from: &Origin| match from {
            Origin::Of(v) if self.memories.contains_key(v) => Some(*v),
            _ => None,
        };
        from.iter().filter_map(of).collect()
    }

    /// Returns true for some memory of the block's and something else.
    fn is_mixed(&self, from: &BTreeSet<Origin>) -> bool {
        from.len() > 1 && !self.memories_of(from).is_empty()
    }

    /// Returns true if an access through an address of several memories is not bounded yet.
    fn is_one_mixed(&self, body: &[Stmt]) -> bool {
        walk::stmts(body).any(|s| match s {
            Stmt::Load { mem, mask, .. }
            | Stmt::Store { mem, mask, .. }
            | Stmt::Rmw { mem, mask, .. }
            | Stmt::Cas { mem, mask, .. } => self.is_mixed(&self.origins.val(mem.base)) && !self.is_measured(mem, mask),
            _ => false,
        })
    }

    /// Returns true if an access through an address of several memories was bounded before.
    fn is_measured(&self, mem: &Mem, mask: &Mask) -> bool {
        let of_these = self.apart.iter().filter(|(base, ..)| *base == mem.base);
        of_these.into_iter().any(|(.., apart)| {
            let mut counts = |leaf: &Ix| matches!(leaf, Ix::Val { val, .. } if val == apart);
            mask.conds.iter().any(|c| c.lhs.any_leaf(&mut counts))
        })
    }

    /// Where the memory of an address begins, and its bytes. Memory that is not the block's own begins at 0 and has no end here.
    fn extent(&self, v: ValId) -> Option<Extent> {
        let mixed = self.mixed.as_ref()?;
        if let Some(known) = mixed.vals.get(&v) {
            return Some(*known);
        }
        let from = self.origins.val(v);
        match (self.memories_of(&from).first(), self.origins.only(v)) {
            (None, _) => Some(Extent { start: whole(0), bytes: whole(i64::MAX / 8) }),
            (Some(of), Some(_)) => {
                let bytes = self.memories.get(of).and_then(|bytes| i64::try_from(*bytes).ok())?;
                Some(Extent { start: Opnd::Val(*mixed.starts.get(of)?), bytes: whole(bytes) })
            }
            _ => None,
        }
    }

    /// The statements beside a statement that make the extents of its addresses known.
    fn beside(&mut self, s: &Stmt) -> Vec<Stmt> {
        if self.mixed.is_none() {
            return vec![];
        }
        match s {
            Stmt::Alloca { dst, .. } => {
                let (start, made) = self.number("start", ScalarOp::PtrToInt, vec![Opnd::Val(*dst)]);
                if let Some(mixed) = &mut self.mixed {
                    mixed.starts.insert(*dst, start);
                }
                vec![made]
            }
            Stmt::Local { buf } if self.is_mixed(&self.origins.buf(*buf)) => {
                let Buf { name, shape, .. } = self.kernel.bufs[*buf].clone();
                let ty = Ty::Num(DType::I64);
                let mut made =
                    |part: &str| self.kernel.bufs.push(Buf::new(format!("{name}_{part}"), ty, shape.clone()));
                let (start, bytes) = (made("start"), made("bytes"));
                if let Some(mixed) = &mut self.mixed {
                    mixed.bufs.insert(*buf, (start, bytes));
                }
                vec![Stmt::Local { buf: start }, Stmt::Local { buf: bytes }]
            }
            Stmt::Write { buf, idx, value: Opnd::Val(v) } => {
                let Some((start, bytes)) = self.mixed.as_ref().and_then(|m| m.bufs.get(buf).copied()) else {
                    return vec![];
                };
                let Some(extent) = self.extent(*v) else { return vec![] };
                let write = |buf, value| Stmt::Write { buf, idx: idx.clone(), value };
                vec![write(start, extent.start), write(bytes, extent.bytes)]
            }
            Stmt::Read { dst, buf, idx } => {
                let Some((start, bytes)) = self.mixed.as_ref().and_then(|m| m.bufs.get(buf).copied()) else {
                    return vec![];
                };
                let (first, second) = (self.fresh("start"), self.fresh("bytes"));
                self.know(*dst, Extent { start: Opnd::Val(first), bytes: Opnd::Val(second) });
                let read = |dst, buf| Stmt::Read { dst, buf, idx: idx.clone() };
                vec![read(first, start), read(second, bytes)]
            }
            Stmt::Let { dst, op, args } if self.is_mixed(&self.origins.val(*dst)) => self.chosen(*dst, *op, args),
            _ => vec![],
        }
    }

    /// The extent of an address that an operation gives.
    fn chosen(&mut self, dst: ValId, op: ScalarOp, args: &[Opnd]) -> Vec<Stmt> {
        let of = |bound: &Self, arg: &Opnd| if let Opnd::Val(v) = arg { bound.extent(*v) } else { None };
        match (op, args) {
            (ScalarOp::PtrAdd | ScalarOp::Copy, [from, ..]) => {
                if let Some(extent) = of(self, from) {
                    self.know(dst, extent);
                }
                vec![]
            }
            (ScalarOp::Select, [cond, a, b]) => {
                let (Some(a), Some(b)) = (of(self, a), of(self, b)) else { return vec![] };
                let (start, first) = self.number("start", ScalarOp::Select, vec![*cond, a.start, b.start]);
                let (bytes, second) = self.number("bytes", ScalarOp::Select, vec![*cond, a.bytes, b.bytes]);
                self.know(dst, Extent { start: Opnd::Val(start), bytes: Opnd::Val(bytes) });
                vec![first, second]
            }
            _ => vec![],
        }
    }

    fn know(&mut self, v: ValId, extent: Extent) {
        if let Some(mixed) = &mut self.mixed {
            mixed.vals.insert(v, extent);
        }
    }

    /// Where an access through an address of several memories lies, as [`Bound::place`] says it.
    fn mixed_place(&mut self, mem: &Mem) -> Option<(Ix, Ix, Vec<Stmt>)> {
        let extent = self.extent(mem.base)?;
        let (at, first) = self.number("at", ScalarOp::PtrToInt, vec![Opnd::Val(mem.base)]);
        let (apart, second) = self.number("apart", ScalarOp::SubI, vec![Opnd::Val(at), extent.start]);
        let (index, _) = computed(mem, apart, 0);
        let size = (i64::from(mem.elem.bits()) / 8).max(1);
        let end = match extent.bytes {
            Opnd::Val(bytes) => Ix::add(Ix::val(bytes), Ix::Const(1 - size)),
            Opnd::Const { bits, .. } => Ix::Const((bits as i64) - (size - 1)),
        };
        Some((index, end, vec![first, second]))
    }

    /// Returns true if an access through a computed address was bounded before.
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

/// Differences that the kernel computes of an address: the address, what is subtracted (an address or a number), and the value.
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
                && let Some(pointer) = numbers.get(a)
            {
                found.push((*pointer, numbers.get(b).copied().unwrap_or(*b), *dst));
            }
        }
        _ => {}
    });
    found
}
