//! `turn`: two free loops in square blocks, so that memory is walked along its lines by loads and by stores.
//!
//! ```text
//! for i in 0..64: free                             for j1 in 0..4: free
//!   for j in 0..64: free                             for i1 in 0..4: free
//!     %x = load X[j*M + i]                  -->        local block: f32[16, 16]
//!     store Y[i*N + j] = %x                            for j2 in 0..16: free
//!                                                        for i2 in 0..16: free
//!                                                          block[j2, i2] = load X[(j1*16 + j2)*M + (i1*16 + i2)]
//!                                                      for i2 in 0..16: free
//!                                                        for j2 in 0..16: free
//!                                                          store Y[(i1*16 + i2)*N + (j1*16 + j2)] = block[j2, i2]
//! ```
//!
//! Elements that are loaded along the first loop are converted and pass through a local buffer; everything else runs along the second
//! loop. Rows and columns that do not fill a block get smaller blocks. Legal for free loops that stand in each other with nothing
//! between them, do not bound each other, and hold loads, arithmetic and stores.

use std::collections::BTreeMap;

use super::Names;
use super::line::{LoopRef, look, replace};
use super::split::Pieces;
use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::tile::affine::{self, Stride};
use crate::tile::edit::{self, new_axis};

/// The longest side of a block.
const MOST: u32 = 256;

/// Blocks of `size` by `size`; loads go along the first loop, all else along the second.
pub fn apply(kernel: &mut Kernel, loops: &[LoopRef], size: u32) -> Result<(), String> {
    let [t, s] = loops else { return Err("it takes two loops: the one that loads go along, and the other".into()) };
    if !(2..=MOST).contains(&size) {
        return Err(format!("the sides of a block are from 2 to {MOST}, not {size}"));
    }
    // The outermost loop of the nest.
    let (names, mut top) = (Names::of(kernel), None);
    look(kernel, &mut |at, f| {
        if top.is_none() {
            let chain = edit::free_chain(f);
            let has = |of: &LoopRef| chain.iter().any(|f| names.name(f).as_ref() == Some(of));
            top = (f.is_free_unplaced() && has(t) && has(s)).then_some(at);
        }
        top.is_none()
    });
    let top = top.ok_or("they are not free loops that stand in each other with nothing between them")?;
    replace(kernel, top, &mut |kernel, f| {
        let chain = edit::free_chain(f);
        let at = |of: &LoopRef| chain.iter().position(|f| f.axis == of.axis).ok_or("the loops are gone");
        turned(kernel, &chain, at(t)?, at(s)?, size.into())
    })
}

fn turned(kernel: &mut Kernel, chain: &[&For], t: usize, s: usize, size: i64) -> Result<Vec<Stmt>, String> {
    legal(chain)?;
    let [.., last] = chain else { return Err("the nest has no loops".into()) };
    if t == s || [s, t].iter().any(|&x| !chain[x].lo.is_const(0)) {
        return Err("its loops do not start at 0".into());
    }
    let others = chain.iter().enumerate().filter(|(at, _)| *at != s && *at != t);
    let others: Vec<For> = others.map(|(_, f)| For { body: vec![], ..(*f).clone() }).collect();
    let mut body = vec![];
    for of_t in 0..Cut::parts(chain[t], size) {
        for of_s in 0..Cut::parts(chain[s], size) {
            let own = if body.is_empty() { last.body.clone() } else { walk::clone_fresh(kernel, &last.body) };
            let (of_t, of_s) = (Cut::new(kernel, chain[t], of_t, size), Cut::new(kernel, chain[s], of_s, size));
            let outer = [&of_t, &of_s].into_iter().filter_map(|cut| cut.outer.clone());
            let block =
                through_block(kernel, &own, &of_t, &of_s, size).ok_or("nothing is loaded along the first loop")?;
            body.extend(nest(outer.collect(), block));
        }
    }
    Ok(nest(others, body))
}

/// Checks that perfectly nested loops may run in another order.
pub fn legal(chain: &[&For]) -> Result<(), &'static str> {
    let body = chain.last().map_or(&[][..], |f| &f.body);
    if body.iter().any(|s| !edit::is_pure(s) && !matches!(s, Stmt::Write { .. } | Stmt::Store { .. })) {
        return Err("it holds more than loads, arithmetic and stores");
    }
    if chain.iter().any(|f| f.lo.axes().iter().chain(&f.hi.axes()).any(|a| chain.iter().any(|f| f.axis == *a))) {
        return Err("the bounds of its loops depend on each other");
    }
    Ok(())
}

/// A loop cut into blocks, or a part of one: what whole blocks leave over is a block of its own, where that is known.
struct Cut {
    axis: AxisId,
    /// The loop over the blocks; none over one.
    outer: Option<For>,
    inner: For,
    /// Where the first block starts.
    first: i64,
    pieces: Pieces,
}

impl Cut {
    /// How many parts a loop has.
    fn parts(f: &For, size: i64) -> usize {
        let rest = Pieces::of(f, size).rest();
        if rest.is_some_and(|(first, _)| first > 0) { 2 } else { 1 }
    }

    fn new(kernel: &mut Kernel, f: &For, part: usize, size: i64) -> Cut {
        let inner = new_axis(kernel, f.axis, "2");
        let pieces = Pieces::of(f, size);
        if let Some((first, rest)) = pieces.rest().filter(|_| part > 0) {
            let inner = For { axis: inner, hi: Ix::Const(rest), body: vec![], ..f.clone() };
            return Cut { axis: f.axis, outer: None, inner, first, pieces };
        }
        let outer = new_axis(kernel, f.axis, "1");
        let pieces = if Cut::parts(f, size) > 1 { pieces.whole().unwrap_or(pieces) } else { pieces };
        let [outer, inner] = pieces.loops(f, [outer, inner], &kernel.facts());
        Cut { axis: f.axis, outer: Some(outer), inner, first: 0, pieces }
    }

    /// The position that the loop's axis stood for, at an offset in the block.
    fn position(&self, offset: AxisId) -> Ix {
        match &self.outer {
            Some(outer) => self.pieces.at(outer.axis, offset),
            None => Ix::add(Ix::Const(self.first), Ix::Axis(offset)),
        }
    }
}

/// One block, or none where nothing is loaded along `t`: what is goes, converted, through a local buffer; the rest then runs along `s`.
fn through_block(kernel: &mut Kernel, body: &[Stmt], t: &Cut, s: &Cut, size: i64) -> Option<Vec<Stmt>> {
    let varying = refs(body).vals_defined;
    let mut out = Vec::new();
    let mut left = body.to_vec();
    for load in body {
        let along = |axis| match load {
            Stmt::Load { mem, .. } => affine::stride(&mem.index, axis, &varying),
            Stmt::Read { buf, idx, .. } => affine::buf_stride(&kernel.bufs[*buf], idx, axis, &varying),
            _ => Stride::Same,
        };
        if along(t.axis) != Stride::Unit || along(s.axis) == Stride::Same {
            continue;
        }
        let mut fixed = true;
        walk::each_use(load, &mut |v| fixed &= !varying.contains(&v));
        let Some(mut value) = walk::def(load).filter(|_| fixed) else { continue };
        // Conversions of the element come along.
        let mut moved = vec![load.clone()];
        while let Some(next) = sole_conversion(&left, value) {
            value = walk::def(&next).unwrap_or(value);
            moved.push(next);
        }
        let ty = kernel.vals[value].ty;
        let shape = vec![size as u64, size as u64];
        let buf = kernel.bufs.push(Buf::new("block", ty, shape.clone()));
        let Some(at) = left.iter().position(|x| moved.last() == Some(x)) else { continue };
        // A value that is only moved is turned where it goes; one that more is computed of, before.
        let turned = (left.len() > moved.len() + 1).then(|| kernel.bufs.push(Buf::new("turned", ty, shape)));
        let (of_s, of_t) = (Ix::Axis(s.inner.axis), Ix::Axis(t.inner.axis));
        left[at] = match turned {
            Some(turned) => Stmt::Read { dst: value, buf: turned, idx: vec![of_t, of_s] },
            None => Stmt::Read { dst: value, buf, idx: vec![of_s, of_t] },
        };
        left.retain(|x| !moved.contains(x));

        let [s2, t2] = [s.inner.axis, t.inner.axis].map(|a| new_axis(kernel, a, ""));
        let by = BTreeMap::from([(s.axis, s.position(s2)), (t.axis, t.position(t2))]);
        let renaming = walk::Renaming::fresh(kernel, &moved);
        let mut fill = edit::place_axes(&moved, &by, &BTreeMap::new());
        renaming.apply(&mut fill);
        let value = Opnd::Val(renaming.vals.get(&value).copied().unwrap_or(value));
        fill.push(Stmt::Write { buf, idx: vec![Ix::Axis(s2), Ix::Axis(t2)], value });
        out.push(Stmt::Local { buf });
        out.extend(nest(vec![For { axis: s2, ..s.inner.clone() }, For { axis: t2, ..t.inner.clone() }], fill));
        if let Some(turned) = turned {
            let [s3, t3] = [s.inner.axis, t.inner.axis].map(|a| new_axis(kernel, a, ""));
            let dst = kernel.vals.push(Val { ty, name: kernel.bufs[buf].name.clone() });
            let turn = vec![
                Stmt::Read { dst, buf, idx: vec![Ix::Axis(s3), Ix::Axis(t3)] },
                Stmt::Write { buf: turned, idx: vec![Ix::Axis(t3), Ix::Axis(s3)], value: Opnd::Val(dst) },
            ];
            out.push(Stmt::Local { buf: turned });
            out.extend(nest(vec![For { axis: t3, ..t.inner.clone() }, For { axis: s3, ..s.inner.clone() }], turn));
        }
    }
    if out.is_empty() {
        return None;
    }
    let by = BTreeMap::from([(s.axis, s.position(s.inner.axis)), (t.axis, t.position(t.inner.axis))]);
    let body = edit::place_axes(&left, &by, &BTreeMap::new());
    out.extend(nest(vec![t.inner.clone(), s.inner.clone()], body));
    Some(out)
}

/// The only statement that uses a value, when it is an operation of nothing else.
fn sole_conversion(body: &[Stmt], value: ValId) -> Option<Stmt> {
    let mut users = body.iter().filter(|s| {
        let mut uses = false;
        walk::each_use(s, &mut |v| uses |= v == value);
        uses
    });
    let only = users.next()?;
    let alone = matches!(only, Stmt::Let { args, .. } if args[..] == [Opnd::Val(value)]);
    (alone && users.next().is_none()).then(|| only.clone())
}

fn nest(loops: Vec<For>, mut body: Vec<Stmt>) -> Vec<Stmt> {
    for mut f in loops.into_iter().rev() {
        f.body = body;
        body = vec![Stmt::For(Box::new(f))];
    }
    body
}
