//! Shapes, ranges, the grid, and what moves elements within a tile.

use super::*;
use crate::num::op::Predicate;

pub fn make_range(c: &mut Conv, op: &Op) -> Res<()> {
    let ty = c.gives(op, 0)?;
    let Elem::Num(dtype) = ty.elem else { return c.refuse(op, "a range holds integers") };
    let (start, end) = (op.int("start").unwrap_or(0), op.int("end").unwrap_or(-1));
    if ty.shape.len() != 1 || end.checked_sub(start) != Some(ty.elements() as i64) {
        return c.error(op, Code::BadShape, format!("a range from {start} to {end} does not fill its type"));
    }
    let mut v = c.tile(Opcode::Iota, &[], vec![], ty.clone());
    if start != 0 {
        let first = c.fill(&ty.shape, dtype, start as u64);
        v = c.same(Opcode::AddI, &[v, first]);
    }
    c.bind(op, 0, v)
}

/// The number of the block, or of blocks, along an axis.
pub fn grid_number(c: &mut Conv, op: &Op, opcode: Opcode) -> Res<()> {
    let axis = match (op.words.first().map(|(_, w)| w.as_str()), op.int("axis")) {
        (Some("x"), _) | (None, Some(0)) => 0,
        (Some("y"), _) | (None, Some(1)) => 1,
        (Some("z"), _) | (None, Some(2)) => 2,
        _ => return c.error(op, Code::UnknownWord, "the axes of the grid are x, y and z"),
    };
    let all = c.emit(opcode, &[], vec![], vec![Type::scalar(DType::I32); 3]);
    c.bind(op, 0, all[axis])
}

pub fn splat(c: &mut Conv, op: &Op) -> Res<()> {
    let (v, ty) = (c.arg(op, 0)?, c.gives(op, 0)?);
    if !c.tile_ty(v).shape.is_empty() {
        return c.error(op, Code::BadRank, "`tt.splat` repeats a scalar");
    }
    let v = c.spread(v, &ty.shape);
    c.bind(op, 0, v)
}

pub fn reshape(c: &mut Conv, op: &Op) -> Res<()> {
    let (v, ty) = (c.arg(op, 0)?, c.gives(op, 0)?);
    let v = c.reshaped(v, &ty.shape);
    c.bind(op, 0, v)
}

pub fn broadcast(c: &mut Conv, op: &Op) -> Res<()> {
    let (v, ty) = (c.arg(op, 0)?, c.gives(op, 0)?);
    if c.tile_ty(v).shape.len() != ty.shape.len() {
        return c.error(op, Code::BadRank, "`tt.broadcast` keeps the rank");
    }
    let v = c.spread(v, &ty.shape);
    c.bind(op, 0, v)
}

pub fn transpose(c: &mut Conv, op: &Op) -> Res<()> {
    let (v, ty) = (c.arg(op, 0)?, c.gives(op, 0)?);
    let order: Vec<i32> = op.ints("order").unwrap_or_default().iter().map(|&d| d as i32).collect();
    if order.len() < 2 {
        return c.bind(op, 0, v);
    }
    let v = c.tile(Opcode::Permute, &[&[v]], vec![(AttrKey::Permutation, Attr::I32s(order))], ty);
    c.bind(op, 0, v)
}

fn joined(c: &mut Conv, a: ValueId, b: ValueId, dim: usize, ty: TileType) -> ValueId {
    c.tile(Opcode::Cat, &[&[a], &[b]], vec![(AttrKey::Dim, Attr::Int(dim as i64))], ty)
}

pub fn cat(c: &mut Conv, op: &Op) -> Res<()> {
    c.count(op, 2..=2)?;
    let (a, b, ty) = (c.arg(op, 0)?, c.arg(op, 1)?, c.gives(op, 0)?);
    let v = joined(c, a, b, 0, ty);
    c.bind(op, 0, v)
}

/// Two tiles side by side in a new last dimension.
pub fn join(c: &mut Conv, op: &Op) -> Res<()> {
    c.count(op, 2..=2)?;
    let (a, b, ty) = (c.arg(op, 0)?, c.arg(op, 1)?, c.gives(op, 0)?);
    let mut shape = c.tile_ty(a).shape.clone();
    let dim = shape.len();
    shape.push(1);
    let (a, b) = (c.reshaped(a, &shape), c.reshaped(b, &shape));
    let v = joined(c, a, b, dim, ty);
    c.bind(op, 0, v)
}

/// The parts of the last dimension, which has two elements.
pub fn split(c: &mut Conv, op: &Op) -> Res<()> {
    let v = c.arg(op, 0)?;
    let ty = c.tile_ty(v).clone();
    let Some((2, outer)) = ty.shape.split_last() else {
        return c.error(op, Code::BadShape, "`tt.split` needs a last dimension of two elements");
    };
    for i in 0..2 {
        let part = half(c, v, i);
        let part = c.reshaped(part, outer);
        c.bind(op, i, part)?;
    }
    Ok(())
}

/// The elements at a place of the last dimension.
pub fn half(c: &mut Conv, v: ValueId, at: usize) -> ValueId {
    let mut ty = c.tile_ty(v).clone();
    let rank = ty.shape.len();
    if let Some(last) = ty.shape.last_mut() {
        *last = 1;
    }
    let zero = c.fill(&[], DType::I32, 0);
    let last = c.fill(&[], DType::I32, at as u64);
    let mut index = vec![zero; rank];
    if let Some(i) = index.last_mut() {
        *i = last;
    }
    c.tile(Opcode::Extract, &[&[v], &index], vec![], ty)
}

impl Conv<'_> {
    /// Memory of the block for a tile's elements, reserved once: a pointer to it.
    pub(super) fn scratch(&mut self, dtype: DType, elements: u64) -> ValueId {
        let region = std::mem::replace(&mut self.region, Func::BODY);
        let ty = TileType::of(vec![], Elem::Ptr(dtype));
        let attrs = vec![(AttrKey::NumElem, Attr::Int(elements as i64)), (AttrKey::Alignment, Attr::Int(64))];
        let v = self.tile(Opcode::Alloca, &[], attrs, ty);
        let ops = &mut self.func.regions[Func::BODY].ops;
        if let Some(last) = ops.pop() {
            ops.insert(0, last);
        }
        self.region = region;
        v
    }

    /// Pointers to the elements at `index`.
    pub(super) fn pointers(&mut self, base: ValueId, index: ValueId) -> ValueId {
        let shape = self.tile_ty(index).shape.clone();
        let base = self.spread(base, &shape);
        let ty = self.tile_ty(base).clone();
        self.tile(Opcode::Offset, &[&[base], &[index]], vec![], ty)
    }

    /// 0, 1, 2 ... along a dimension, times a number, in a tile of a shape.
    fn ramp(&mut self, shape: &[u64], dim: usize, times: u64) -> ValueId {
        let n = shape[dim];
        let mut v = self.tile(Opcode::Iota, &[], vec![], TileType::of(vec![n], Elem::Num(DType::I32)));
        let mut line = vec![1; shape.len()];
        line[dim] = n;
        v = self.reshaped(v, &line);
        if times != 1 {
            let times = self.fill(&line, DType::I32, times);
            v = self.same(Opcode::MulI, &[v, times]);
        }
        self.spread(v, shape)
    }

    /// The row-major numbers of a tile's elements, those along `dim` taken from `index` where it is given.
    pub(super) fn numbers(&mut self, of: &[u64], shape: &[u64], index: Option<(usize, ValueId)>) -> ValueId {
        let mut sum = None;
        for dim in 0..shape.len() {
            let stride: u64 = of[dim + 1..].iter().product();
            let term = match index {
                Some((at, index)) if at == dim => {
                    let times = self.fill(shape, DType::I32, stride);
                    self.same(Opcode::MulI, &[index, times])
                }
                _ => self.ramp(shape, dim, stride),
            };
            sum = Some(match sum {
                Some(sum) => self.same(Opcode::AddI, &[sum, term]),
                None => term,
            });
        }
        sum.unwrap_or_else(|| self.fill(shape, DType::I32, 0))
    }
}

fn unsigned() -> Vec<(AttrKey, Attr)> {
    vec![(AttrKey::Signedness, Attr::Signedness(Signedness::Unsigned))]
}

/// Places in a tile as i32. TTIR's integers have no sign, and no place is below 0: 200 in eight bits is 200.
fn as_place(c: &mut Conv, v: ValueId, dtype: DType) -> ValueId {
    match dtype.bits().cmp(&32) {
        std::cmp::Ordering::Greater => c.converted(Opcode::TruncI, v, DType::I32, vec![]),
        std::cmp::Ordering::Less => c.converted(Opcode::ExtI, v, DType::I32, unsigned()),
        std::cmp::Ordering::Equal => v,
    }
}

/// The elements of a tile at places along a dimension: through the block's own memory.
pub fn gather(c: &mut Conv, op: &Op) -> Res<()> {
    c.count(op, 2..=2)?;
    let (source, index, ty) = (c.arg(op, 0)?, c.arg(op, 1)?, c.gives(op, 0)?);
    let (from, places) = (c.tile_ty(source).clone(), c.tile_ty(index).shape.clone());
    let dim = op.int("axis").and_then(|d| usize::try_from(d).ok()).unwrap_or(usize::MAX);
    let others = from.shape.iter().zip(&places).enumerate().all(|(d, (a, b))| d == dim || b <= a);
    let numbers = c.dtype(op, index)?;
    if dim >= from.shape.len() || places.len() != from.shape.len() || !others || !numbers.is_int() {
        return c.error(op, Code::BadShape, "the places of `tt.gather` do not fit its tile");
    }
    let mut dtype = c.dtype(op, source)?;
    let mut source = source;
    if dtype == DType::I1 {
        source = c.converted(Opcode::ExtI, source, DType::I8, unsigned());
        dtype = DType::I8;
    }
    let index = as_place(c, index, numbers);
    let memory = c.scratch(dtype, from.elements());
    let all = c.numbers(&from.shape, &from.shape, None);
    let to = c.pointers(memory, all);
    let before = c.before_write();
    let token = memory::put(c, to, source, None, before);
    let at = c.numbers(&from.shape, &places, Some((dim, index)));
    let at = c.pointers(memory, at);
    let (mut v, token) = memory::get(c, at, None, None, Some(token));
    c.did_write(token);
    if ty.elem == Elem::Num(DType::I1) {
        v = c.converted(Opcode::TruncI, v, DType::I1, vec![]);
    }
    c.bind(op, 0, v)
}

/// Pairs of a number and a bin up to which a histogram compares each with each, and bins.
const MOST_PAIRS: u64 = 1 << 24;
const MOST_BINS: u64 = 1 << 14;

/// How often each number below the result's extent occurs: for each, how many elements are it. Schedules count them in one pass; where
/// the comparisons would be too many, the counts are in the block's own memory.
pub fn histogram(c: &mut Conv, op: &Op) -> Res<()> {
    c.count(op, 1..=2)?;
    let (numbers, ty) = (c.arg(op, 0)?, c.gives(op, 0)?);
    let (Elem::Num(counts @ (DType::I32 | DType::I64)), &[bins]) = (ty.elem, &ty.shape[..]) else {
        return c.refuse(op, "a histogram counts in i32 or i64");
    };
    let n = c.tile_ty(numbers).elements();
    let dtype = c.dtype(op, numbers)?;
    if !dtype.is_int() {
        return c.error(op, Code::BadElementType, format!("a histogram counts integers, not {dtype}"));
    }
    let numbers = if dtype == DType::I64 { numbers } else { as_place(c, numbers, dtype) };
    let numbers = c.reshaped(numbers, &[n]);
    let mask = match op.operands.len() {
        2 => {
            let mask = c.arg(op, 1)?;
            Some(c.reshaped(mask, &[n]))
        }
        _ => None,
    };
    let v = if n.saturating_mul(bins) > MOST_PAIRS || bins > MOST_BINS {
        counted_in_memory(c, numbers, mask, bins, counts)
    } else {
        compared(c, numbers, mask, bins, counts)
    };
    c.bind(op, 0, v)
}

fn compared(c: &mut Conv, numbers: ValueId, mask: Option<ValueId>, bins: u64, counts: DType) -> ValueId {
    let n = c.tile_ty(numbers).elements();
    let both = [n, bins];
    let column = c.reshaped(numbers, &[n, 1]);
    let column = c.spread(column, &both);
    let mut line = c.ramp(&both, 1, 1);
    if c.tile_ty(numbers).elem == Elem::Num(DType::I64) {
        line = c.converted(Opcode::ExtI, line, DType::I64, unsigned());
    }
    let mut hits = c.integers_compare(Predicate::Equal, Signedness::Signed, column, line);
    if let Some(mask) = mask {
        let mask = c.reshaped(mask, &[n, 1]);
        let mask = c.spread(mask, &both);
        hits = c.same(Opcode::AndI, &[hits, mask]);
    }
    let ones = c.converted(Opcode::ExtI, hits, counts, unsigned());
    c.folded(Opcode::AddI, ones, 0)
}

/// Zeros, then one atomic addition for each number that has a bin.
fn counted_in_memory(c: &mut Conv, numbers: ValueId, mask: Option<ValueId>, bins: u64, counts: DType) -> ValueId {
    let n = c.tile_ty(numbers).elements();
    let memory = c.scratch(counts, bins);
    let all = c.numbers(&[bins], &[bins], None);
    let to = c.pointers(memory, all);
    let zeros = c.fill(&[bins], counts, 0);
    let before = c.before_write();
    let cleared = memory::put(c, to, zeros, None, before);

    let wide = c.tile_ty(numbers).num().unwrap_or(DType::I32);
    let limit = c.fill(&[n], wide, bins);
    let mut inside = c.integers_compare(Predicate::LessThan, Signedness::Unsigned, numbers, limit);
    if let Some(mask) = mask {
        inside = c.same(Opcode::AndI, &[inside, mask]);
    }
    let at = if wide == DType::I64 { c.converted(Opcode::TruncI, numbers, DType::I32, vec![]) } else { numbers };
    let at = c.pointers(memory, at);
    let ones = c.fill(&[n], counts, 1);
    let added = memory::add(c, at, ones, inside, cleared);
    let (v, token) = memory::get(c, to, None, None, Some(added));
    c.did_write(token);
    v
}
