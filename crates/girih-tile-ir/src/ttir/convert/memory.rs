//! Loads, stores and atomics, through pointers.

use super::*;
use crate::cuda_tile::ir::{AtomicMode, MemoryOrdering, MemoryScope};

pub fn add_pointer(c: &mut Conv, op: &Op) -> Res<()> {
    c.count(op, 2..=2)?;
    let (ptr, mut offset) = (c.arg(op, 0)?, c.arg(op, 1)?);
    let shape = c.tile_ty(ptr).shape.clone();
    offset = c.spread(offset, &shape);
    let ty = c.tile_ty(ptr).clone();
    let v = c.tile(Opcode::Offset, &[&[ptr], &[offset]], vec![], ty);
    c.bind(op, 0, v)
}

fn weak() -> Vec<(AttrKey, Attr)> {
    vec![(AttrKey::MemoryOrdering, Attr::MemoryOrdering(MemoryOrdering::Weak))]
}

fn relaxed(scope: MemoryScope) -> Vec<(AttrKey, Attr)> {
    vec![
        (AttrKey::MemoryOrdering, Attr::MemoryOrdering(MemoryOrdering::Relaxed)),
        (AttrKey::MemoryScope, Attr::MemoryScope(scope)),
    ]
}

/// A load, and its token.
pub fn get(
    c: &mut Conv,
    ptr: ValueId,
    mask: Option<ValueId>,
    other: Option<ValueId>,
    token: Option<ValueId>,
) -> (ValueId, ValueId) {
    read(c, ptr, mask, other, token, weak())
}

fn read(
    c: &mut Conv,
    ptr: ValueId,
    mask: Option<ValueId>,
    other: Option<ValueId>,
    token: Option<ValueId>,
    attrs: Vec<(AttrKey, Attr)>,
) -> (ValueId, ValueId) {
    let ty = pointee(c.tile_ty(ptr));
    let groups: [&[ValueId]; 4] = [&[ptr], mask.as_slice(), other.as_slice(), token.as_slice()];
    let made = c.emit(Opcode::LoadPtrTko, &groups, attrs, vec![Type::Tile(ty), Type::Token]);
    (made[0], made[1])
}

/// A store's token.
pub fn put(c: &mut Conv, ptr: ValueId, value: ValueId, mask: Option<ValueId>, token: Option<ValueId>) -> ValueId {
    let groups: [&[ValueId]; 4] = [&[ptr], &[value], mask.as_slice(), token.as_slice()];
    c.emit(Opcode::StorePtrTko, &groups, weak(), vec![Type::Token])[0]
}

/// The token of additions to the block's own memory, each whole.
pub fn add(c: &mut Conv, ptr: ValueId, value: ValueId, mask: ValueId, token: ValueId) -> ValueId {
    let mut attrs = relaxed(MemoryScope::TileBlock);
    attrs.push((AttrKey::Mode, Attr::Mode(AtomicMode::Add)));
    let ty = pointee(c.tile_ty(ptr));
    c.emit(Opcode::AtomicRmwTko, &[&[ptr], &[value], &[mask], &[token]], attrs, vec![Type::Tile(ty), Type::Token])[1]
}

fn pointee(ty: &TileType) -> TileType {
    match ty.elem {
        Elem::Ptr(d) | Elem::Num(d) => TileType::of(ty.shape.clone(), Elem::Num(d)),
    }
}

/// Refuses what does not lead to memory.
fn is_pointer(c: &Conv, op: &Op, v: ValueId) -> Res<()> {
    match c.tile_ty(v).elem {
        Elem::Ptr(_) => Ok(()),
        Elem::Num(d) => c.error(op, Code::BadElementType, format!("`{}` goes through pointers, not {d}", op.row.name)),
    }
}

pub fn load(c: &mut Conv, op: &Op) -> Res<()> {
    c.count(op, 1..=3)?;
    let args = c.args(op)?;
    is_pointer(c, op, args[0])?;
    if op.ints("boundaryCheck").is_some_and(|dims| !dims.is_empty()) {
        return c.refuse(op, "a load through a block pointer is rewritten before Girih reads a module");
    }
    let volatile = op.int("isVolatile").unwrap_or(0) != 0;
    let attrs = if volatile { relaxed(MemoryScope::Sys) } else { weak() };
    let before = c.before_read();
    let (v, token) = read(c, args[0], args.get(1).copied(), args.get(2).copied(), before, attrs);
    // A volatile read stands where it is.
    if volatile {
        c.did_write(token)
    } else {
        c.did_read(token)
    }
    c.bind(op, 0, v)
}

pub fn store(c: &mut Conv, op: &Op) -> Res<()> {
    c.count(op, 2..=3)?;
    let args = c.args(op)?;
    is_pointer(c, op, args[0])?;
    if op.ints("boundaryCheck").is_some_and(|dims| !dims.is_empty()) {
        return c.refuse(op, "a store through a block pointer is rewritten before Girih reads a module");
    }
    let before = c.before_write();
    let token = put(c, args[0], args[1], args.get(2).copied(), before);
    c.did_write(token);
    Ok(())
}

/// The ordering and the scope that the words of an atomic say.
fn order(c: &Conv, op: &Op) -> Res<Vec<(AttrKey, Attr)>> {
    let default = match op.row.name {
        "tt.atomic_load" | "tt.atomic_poll" => MemoryOrdering::Acquire,
        "tt.atomic_store" => MemoryOrdering::Release,
        _ => MemoryOrdering::AcqRel,
    };
    let (mut ordering, mut scope) = (default, MemoryScope::Device);
    for (_, word) in &op.words {
        match word.as_str() {
            "relaxed" => ordering = MemoryOrdering::Relaxed,
            "acquire" => ordering = MemoryOrdering::Acquire,
            "release" => ordering = MemoryOrdering::Release,
            "acq_rel" => ordering = MemoryOrdering::AcqRel,
            "gpu" => scope = MemoryScope::Device,
            "cta" => scope = MemoryScope::TileBlock,
            "sys" => scope = MemoryScope::Sys,
            "timeout" => {}
            other if mode(other).is_some() => {}
            other => return c.error(op, Code::UnknownWord, format!("`{other}` says nothing about an atomic")),
        }
    }
    Ok(vec![
        (AttrKey::MemoryOrdering, Attr::MemoryOrdering(ordering)),
        (AttrKey::MemoryScope, Attr::MemoryScope(scope)),
    ])
}

fn mode(word: &str) -> Option<AtomicMode> {
    Some(match word {
        "and" => AtomicMode::And,
        "or" => AtomicMode::Or,
        "xor" => AtomicMode::Xor,
        "add" => AtomicMode::Add,
        "fadd" => AtomicMode::AddF,
        "max" => AtomicMode::Max,
        "min" => AtomicMode::Min,
        "umax" => AtomicMode::UMax,
        "umin" => AtomicMode::UMin,
        "exch" => AtomicMode::Xchg,
        _ => return None,
    })
}

pub fn atomic_rmw(c: &mut Conv, op: &Op) -> Res<()> {
    c.count(op, 2..=3)?;
    let args = c.args(op)?;
    is_pointer(c, op, args[0])?;
    let Some(mode) = op.words.iter().find_map(|(_, word)| mode(word)) else {
        return c.error(op, Code::UnknownWord, "`tt.atomic_rmw` does not say what it does");
    };
    let mut attrs = order(c, op)?;
    attrs.push((AttrKey::Mode, Attr::Mode(mode)));
    let before = c.before_write();
    let mask = args.get(2).copied();
    let groups: [&[ValueId]; 4] = [&[args[0]], &[args[1]], mask.as_slice(), before.as_slice()];
    let ty = pointee(c.tile_ty(args[0]));
    let made = c.emit(Opcode::AtomicRmwTko, &groups, attrs, vec![Type::Tile(ty), Type::Token]);
    c.did_write(made[1]);
    c.bind(op, 0, made[0])
}

pub fn atomic_cas(c: &mut Conv, op: &Op) -> Res<()> {
    c.count(op, 3..=3)?;
    let args = c.args(op)?;
    is_pointer(c, op, args[0])?;
    let attrs = order(c, op)?;
    let before = c.before_write();
    let groups: [&[ValueId]; 5] = [&[args[0]], &[args[1]], &[args[2]], &[], before.as_slice()];
    let ty = pointee(c.tile_ty(args[0]));
    let made = c.emit(Opcode::AtomicCasTko, &groups, attrs, vec![Type::Tile(ty), Type::Token]);
    c.did_write(made[1]);
    c.bind(op, 0, made[0])
}

pub fn atomic_load(c: &mut Conv, op: &Op) -> Res<()> {
    c.count(op, 1..=3)?;
    let args = c.args(op)?;
    is_pointer(c, op, args[0])?;
    let attrs = order(c, op)?;
    let before = c.before_write();
    let (v, token) = read(c, args[0], args.get(1).copied(), args.get(2).copied(), before, attrs);
    c.did_write(token);
    c.bind(op, 0, v)
}

pub fn atomic_store(c: &mut Conv, op: &Op) -> Res<()> {
    c.count(op, 2..=3)?;
    let args = c.args(op)?;
    is_pointer(c, op, args[0])?;
    let attrs = order(c, op)?;
    let before = c.before_write();
    let mask = args.get(2).copied();
    let groups: [&[ValueId]; 4] = [&[args[0]], &[args[1]], mask.as_slice(), before.as_slice()];
    let token = c.emit(Opcode::StorePtrTko, &groups, attrs, vec![Type::Token])[0];
    c.did_write(token);
    Ok(())
}

/// Reads until the expected number is there. Tile IR has no clock: a read takes at least a nanosecond, so a time limit is a number of reads,
/// and is never cut short.
pub fn atomic_poll(c: &mut Conv, op: &Op) -> Res<()> {
    c.count(op, 2..=3)?;
    let args = c.args(op)?;
    is_pointer(c, op, args[0])?;
    let attrs = order(c, op)?;
    let v = c.poll(args[0], args[1], args.get(2).copied(), attrs);
    c.bind(op, 0, v)
}
