//! `promote`: memory that a program takes for its block becomes a buffer.
//!
//! ```text
//! p: ptr f32 = alloca 512 align 64                 local p: f32[4, 32]
//! store p[i*32 + j] = v                   -->      p[i, j] = v
//! w: f32 = load p[i*32 - j + 31]                   w: f32 = p[i, 31 - j]
//! ```
//!
//! Legal where its address is used for plain loads and stores of its own elements alone, and where every access stays within a row of
//! the shape that it gets.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::{Facts, simplify};
use crate::loops::ir::*;
use crate::loops::walk::{self, Part, parts};
use crate::num::DType;
use crate::tile::edit::{self, Visit};

pub fn apply(kernel: &mut Kernel, memory: ValId, shape: &[u64]) -> Result<(), String> {
    let found = Memory::of(kernel, memory)?;
    let count = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d)).unwrap_or(u64::MAX);
    if count != found.elements {
        return Err(format!("it has {} elements, and a buffer of {shape:?} {count}", found.elements));
    }
    let places = found.places(shape).ok_or("an access may leave its row")?;
    let buf = Buf::new(kernel.vals[memory].name.clone(), Ty::Num(found.dtype), shape.to_vec());
    let buf = kernel.bufs.push(buf);
    let place = |index: &Ix| places.get(index).cloned().unwrap_or_else(|| vec![index.clone()]);
    let made = edit::rewrite(kernel, &mut |kernel, s| match s {
        Stmt::Alloca { dst, .. } if *dst == memory => Visit::Replace(vec![Stmt::Local { buf }]),
        Stmt::Load { dst, mem, mask, other, .. } if mem.base == memory => {
            Visit::Replace(load(kernel, buf, *dst, place(&mem.index), mask, *other))
        }
        Stmt::Store { mem, value, mask, .. } if mem.base == memory => {
            let write = Stmt::Write { buf, idx: place(&mem.index), value: *value };
            Visit::Replace(match mask.is_always() {
                true => vec![write],
                false => edit::when(kernel, "stored", mask.clone(), vec![write], vec![]),
            })
        }
        _ => Visit::Into,
    });
    *kernel = made.ok_or("the memory is gone")?;
    Ok(())
}

/// Memory of a block whose elements alone are loaded and stored.
pub struct Memory {
    pub elements: u64,
    dtype: DType,
    /// Each access, with what is known of the loops around it.
    accesses: Vec<(Ix, Facts)>,
}

impl Memory {
    /// Refuses memory whose address is used for anything else.
    pub fn of(p: &Kernel, memory: ValId) -> Result<Memory, &'static str> {
        const MORE: &str = "its address is used for more than loads and stores of its elements";
        let Ty::Ptr(dtype) = p.vals[memory].ty else { return Err(MORE) };
        let (mut why, mut bytes) = (None, 0);
        walk::visit(&p.body, &mut |s| {
            let mut own = false;
            match s {
                Stmt::Load { mem, order, .. } | Stmt::Store { mem, order, .. } if mem.base == memory => {
                    own = true;
                    if dtype != mem.elem || dtype.bits() < 8 || *order != Order::Weak {
                        why = Some("an access is ordered, or of another type than its elements");
                    }
                }
                Stmt::Alloca { dst, bytes: own, .. } if *dst == memory => bytes = *own,
                _ => {}
            }
            let mut uses = 0;
            walk::each_use(s, &mut |v| uses += usize::from(v == memory));
            parts(s, &mut |part| {
                if let Part::Ix(ix) = part {
                    uses += 2 * usize::from(ix.vals().contains(&memory));
                }
            });
            if uses > usize::from(own) {
                why = Some(MORE);
            }
        });
        let mut accesses = vec![];
        accessed(&p.body, &mut p.facts(), memory, &mut accesses);
        let elements = (bytes / dtype.bytes()).max(1);
        why.map_or(Ok(Memory { elements, dtype, accesses }), Err)
    }

    /// The lengths of rows that accesses step by.
    pub fn lengths(&self) -> BTreeSet<u64> {
        let by = |ix: &Ix, axis| Some(ix.linear(axis)?.0.as_const()?.unsigned_abs());
        self.accesses.iter().flat_map(|(ix, _)| ix.axes().into_iter().filter_map(|axis| by(ix, axis))).collect()
    }

    /// The subscripts of each element that is accessed, in a buffer of that shape; `None` where an access may leave its row.
    pub fn places(&self, shape: &[u64]) -> Option<BTreeMap<Ix, Vec<Ix>>> {
        let mut places: BTreeMap<Ix, Vec<Ix>> = BTreeMap::new();
        for (ix, facts) in &self.accesses {
            let mut idx = vec![ix.clone()];
            for at in 1..shape.len() {
                let length = Ix::Const(i64::try_from(shape[at..].iter().product::<u64>()).ok()?);
                let last = idx.pop()?;
                let row = simplify(&Ix::floor_div(last.clone(), length.clone()), facts);
                let own = simplify(&Ix::modulo(last, length), facts);
                if divides(&row) || divides(&own) {
                    return None;
                }
                idx.extend([row, own]);
            }
            if *places.entry(ix.clone()).or_insert_with(|| idx.clone()) != idx {
                return None;
            }
        }
        Some(places)
    }
}

fn accessed(body: &[Stmt], facts: &mut Facts, memory: ValId, out: &mut Vec<(Ix, Facts)>) {
    for s in body {
        match s {
            Stmt::Load { mem, .. } | Stmt::Store { mem, .. } if mem.base == memory => {
                out.push((mem.index.clone(), facts.clone()));
            }
            Stmt::For(f) => facts.set_axis(f.axis, &f.lo, &f.hi),
            _ => {}
        }
        walk::bodies(s).into_iter().for_each(|inner| accessed(inner, facts, memory, out));
    }
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
