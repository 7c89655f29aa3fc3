//! Loads, stores, atomics and allocas.

use std::rc::Rc;

use super::machine::{Block, Cx, Machine};
use super::race::Access;
use super::scalar::integer;
use super::value::{Origin, Tile, Token, Val};
use super::view::{self, OutsideView, Places, Run, ViewIndex};
use crate::base::Code;
use crate::base::launch::Trap;
use crate::cuda_tile::ir::*;
use crate::num::op::{Rounding, ScalarOp, Signedness};
use crate::num::{DType, eval};

/// An access in progress: its number within the block, its record in the shadow, and the token it waits for.
#[derive(Clone)]
struct Started {
    number: u32,
    record: Option<u32>,
    token: Rc<Token>,
    has_token: bool,
    /// An atomic, or a load or store with an order.
    strong: bool,
}

impl<'a> Machine<'a> {
    pub fn load(&mut self, block: &mut Block, cx: Cx<'a>) -> Result<Vec<Val>, Trap> {
        let op = cx.op;
        let ty = self.result(cx, 0)?;
        let dtype = ty.num().ok_or_else(|| self.malformed(cx))?;
        let n = ty.elements() as usize;
        let (places, padding, token) = if op.opcode == Opcode::LoadPtrTko {
            let padding = op.operand(2).map(|v| self.tile(block, cx, v)).transpose()?;
            (self.pointers(block, cx, 0, 1, n)?, padding, op.operand(3))
        } else {
            let (places, padding) = self.view_places(block, cx, 0, 1)?;
            if padding.is_none() && places.beyond() {
                self.unpadded.insert(cx.here);
            }
            let fill = Tile::new(ty, vec![padding.map_or(0, |p| view::padding_bits(p, dtype))]);
            (places, Some(fill), op.operand(2))
        };
        let started = self.begin(block, cx, token)?;
        if op.ordering() == MemoryOrdering::Acquire {
            self.acquire(cx);
        }
        let mut bits: Vec<u64> = match &padding {
            Some(p) => (0..n).map(|i| p.get(i)).collect(),
            None => vec![0; n],
        };
        let mut poison: Vec<Origin> = match &padding {
            Some(p) if p.poison.is_some() => (0..n).map(|i| p.origin(i)).collect(),
            Some(_) => vec![],
            None => vec![cx.here; n],
        };
        let size = dtype.bytes() as usize;
        let mut buffer = vec![];
        places.runs(dtype, |run| {
            buffer.resize(run.count * size, 0);
            if self.memory.read(run.addr, &mut buffer).is_err() {
                return Err(self.fault(cx, &ty.shape, run, size, "reads"));
            }
            self.watch(&started, run, size, false);
            for (i, bytes) in buffer.chunks_exact(size).enumerate() {
                bits[run.first + i] = decode(dtype, bytes, run.high);
            }
            if !poison.is_empty() {
                poison[run.first..run.first + run.count].fill(0);
            }
            Ok(())
        })?;
        let tile = Tile::new(ty, bits).with_poison(poison);
        Ok(vec![Val::Tile(tile), self.end(started)])
    }

    pub fn store(&mut self, block: &mut Block, cx: Cx<'a>) -> Result<Vec<Val>, Trap> {
        let op = cx.op;
        let (value, places, token) = match op.opcode {
            Opcode::StorePtrTko => {
                let value = self.arg(block, cx, 1)?;
                (value.clone(), self.pointers(block, cx, 0, 2, value.len())?, op.operand(3))
            }
            Opcode::StoreViewTko => {
                let value = self.arg(block, cx, 0)?;
                let (places, _) = self.view_places(block, cx, 1, 2)?;
                (value, places, op.operand(3))
            }
            Opcode::MultimemStoreViewTko => {
                let value = self.arg(block, cx, 1)?;
                let (places, _) = self.view_places(block, cx, 0, 2)?;
                (value, places, op.operand(3))
            }
            _ => {
                let value = self.arg(block, cx, 0)?;
                let places = self.scatter_places(block, cx, &value)?;
                (value, places, op.operand(4))
            }
        };
        let dtype = value.elem_num().ok_or_else(|| self.malformed(cx))?;
        let started = self.begin(block, cx, token)?;
        let size = dtype.bytes() as usize;
        let shape = value.shape.clone();
        places.runs(dtype, |run| {
            let elements = run.first..run.first + run.count;
            if value.poison.is_some()
                && let Some(i) = elements.clone().find(|&i| value.origin(i) != 0)
            {
                return Err(self.undefined(cx, "a stored value", value.origin(i), &shape, i));
            }
            let mut bytes = encode(dtype, elements.map(|i| value.get(i)));
            if dtype.bits() == 4 {
                let mut old = [0];
                if self.memory.read(run.addr, &mut old).is_err() {
                    return Err(self.fault(cx, &shape, run, size, "writes"));
                }
                let new = value.get(run.first) as u8 & 15;
                bytes = vec![if run.high { old[0] & 0x0f | new << 4 } else { old[0] & 0xf0 | new }];
            }
            if self.memory.write(run.addr, &bytes).is_err() {
                return Err(self.fault(cx, &shape, run, size, "writes"));
            }
            self.watch(&started, run, size, true);
            Ok(())
        })?;
        if op.ordering() == MemoryOrdering::Release {
            self.release(cx);
        }
        Ok(vec![self.end(started)])
    }

    pub fn atomic(&mut self, block: &mut Block, cx: Cx<'a>) -> Result<Vec<Val>, Trap> {
        let op = cx.op;
        let (value, compare, places, token) = match op.opcode {
            Opcode::AtomicCasTko => {
                let (compare, value) = (self.arg(block, cx, 1)?, self.arg(block, cx, 2)?);
                let n = value.len();
                self.check(cx, compare.len() == n)?;
                (value, Some(compare), self.pointers(block, cx, 0, 3, n)?, op.operand(4))
            }
            Opcode::AtomicRmwTko => {
                let value = self.arg(block, cx, 1)?;
                (value.clone(), None, self.pointers(block, cx, 0, 2, value.len())?, op.operand(3))
            }
            Opcode::MultimemReduceViewTko => {
                let value = self.arg(block, cx, 1)?;
                (value, None, self.view_places(block, cx, 0, 2)?.0, op.operand(3))
            }
            _ => {
                let value = self.arg(block, cx, 2)?;
                (value, None, self.view_places(block, cx, 0, 1)?.0, op.operand(3))
            }
        };
        let dtype = value.elem_num().ok_or_else(|| self.malformed(cx))?;
        let mode = match op.attr(AttrKey::Mode) {
            Some(Attr::Mode(m)) => Some(*m),
            _ if op.opcode == Opcode::MultimemReduceViewTko => Some(op.reduction().mode(dtype)),
            _ => None,
        };
        let update = match (mode, &compare) {
            (None, Some(_)) => None,
            (Some(m), None) => Some(m),
            _ => return Err(self.malformed(cx)),
        };
        let started = Started { strong: true, ..self.begin(block, cx, token)? };
        // An exchange that does not take place only reads.
        let failed = compare.as_ref().and_then(|_| self.shadow.begin(cx.linear, started.number, cx.here));
        let failed = Started { record: failed, ..started.clone() };
        if matches!(op.ordering(), MemoryOrdering::Acquire | MemoryOrdering::AcqRel) {
            self.acquire(cx);
        }
        let size = dtype.bytes() as usize;
        let n = value.len();
        // Masked-off elements return the comparand; of a read-modify-write they are unspecified.
        let mut old: Vec<u64> = (0..n).map(|i| compare.as_ref().map_or(0, |c| c.get(i))).collect();
        let mut poison: Vec<Origin> = match &compare {
            Some(c) if c.poison.is_some() => (0..n).map(|i| c.origin(i)).collect(),
            Some(_) => vec![],
            None => vec![cx.here; n],
        };
        let shape = value.shape.clone();
        let mut bytes = vec![0; size];
        places.runs(dtype, |run| {
            for k in 0..run.count {
                let i = run.first + k;
                let one = Run { first: i, count: 1, addr: run.addr.wrapping_add((k * size) as u64), high: false };
                for t in [Some(&value), compare.as_ref()].into_iter().flatten() {
                    if t.origin(i) != 0 {
                        return Err(self.undefined(cx, "the operand of an atomic", t.origin(i), &shape, i));
                    }
                }
                if self.memory.read(one.addr, &mut bytes).is_err() {
                    return Err(self.fault(cx, &shape, one, size, "updates"));
                }
                let was = decode(dtype, &bytes, false);
                let new = match (update, &compare) {
                    (Some(mode), _) => Some(updated(mode, dtype, was, value.get(i))),
                    (None, Some(c)) => (c.get(i) == was).then(|| value.get(i)),
                    _ => None,
                };
                if let Some(new) = new
                    && self.memory.write(one.addr, &encode(dtype, [new].into_iter())).is_err()
                {
                    return Err(self.fault(cx, &shape, one, size, "updates"));
                }
                self.watch(if new.is_some() { &started } else { &failed }, one, size, new.is_some());
                old[i] = was;
                if !poison.is_empty() {
                    poison[i] = 0;
                }
            }
            Ok(())
        })?;
        if matches!(op.ordering(), MemoryOrdering::Release | MemoryOrdering::AcqRel) {
            self.release(cx);
        }
        let token = self.end(started);
        if matches!(op.opcode, Opcode::AtomicRedViewTko | Opcode::MultimemReduceViewTko) {
            return Ok(vec![token]);
        }
        let ty = self.result(cx, 0)?;
        Ok(vec![Val::Tile(Tile::new(ty, old).with_poison(poison)), token])
    }

    pub fn alloca(&mut self, block: &mut Block, cx: Cx<'a>) -> Result<Vec<Val>, Trap> {
        let ty = self.result(cx, 0)?;
        let Elem::Ptr(d) = ty.elem else { return Err(self.malformed(cx)) };
        let count = cx.op.int(AttrKey::NumElem).unwrap_or(0).max(0) as u64;
        let align = cx.op.int(AttrKey::Alignment).unwrap_or(1).max(1) as u64;
        let len = if d.bits() == 4 { count.div_ceil(2) } else { count.saturating_mul(d.bytes()) };
        if len > 1 << 32 {
            return Err(self.trap(cx, Code::OutOfBounds, format!("{len} bytes are too many for an alloca"), None));
        }
        let depth = block.calls.len();
        // A loop that executes this alloca again gets the memory of the last iteration.
        if let Some(a) = block.allocas.iter().find(|a| a.0 == depth && a.1 == cx.id) {
            return Ok(vec![Val::Tile(Tile::new(ty, vec![a.4]))]);
        }
        let addr = match self.free.iter().position(|f| f.0 == len && f.1 == align) {
            Some(i) => self.free.swap_remove(i).2,
            None => {
                self.room_for(block, cx, Some(len))?;
                self.hold_alloca(len);
                let addr = self.memory.allocate(len, align);
                self.named.push((addr, len, "alloca".to_string()));
                addr
            }
        };
        self.shadow.forget(addr, len);
        block.allocas.push((depth, cx.id, len, align, addr));
        Ok(vec![Val::Tile(Tile::new(ty, vec![addr]))])
    }

    /// The places of a pointer tile under an optional mask; the mask must be defined, and the addresses where it is
    /// true.
    fn pointers(&self, block: &Block, cx: Cx<'a>, at: usize, mask: usize, n: usize) -> Result<Places, Trap> {
        let at = self.arg(block, cx, at)?;
        let on = cx.op.operand(mask).map(|v| self.tile(block, cx, v)).transpose()?;
        self.check(cx, at.len() == n && on.as_ref().is_none_or(|m| m.len() == n))?;
        if let Some(m) = &on {
            self.defined(cx, m, "a mask")?;
        }
        if at.poison.is_some() {
            let bad = (0..n).find(|&i| at.origin(i) != 0 && on.as_ref().is_none_or(|m| m.get(i) & 1 == 1));
            if let Some(i) = bad {
                return Err(self.undefined(cx, "an address", at.origin(i), &at.shape, i));
            }
        }
        Ok(Places::Pointers { at, on })
    }

    /// The places of a view's tile, and the view's padding.
    fn view_places(
        &self,
        block: &Block,
        cx: Cx<'a>,
        view: usize,
        index: usize,
    ) -> Result<(Places, Option<Padding>), Trap> {
        let v = cx.op.operand(view).ok_or_else(|| self.malformed(cx))?;
        let Val::View(v) = self.value(block, cx, v)? else { return Err(self.malformed(cx)) };
        let mut numbers = vec![];
        for &i in cx.op.group(index) {
            let t = self.tile(block, cx, i)?;
            self.defined(cx, &t, "the index of a view")?;
            numbers.push((0..t.len()).map(|k| t.get(k)).collect());
        }
        self.check(cx, numbers.len() == v.ty.tile.len() && v.tensor.shape.len() == numbers.len())?;
        let inbounds = match cx.op.attr(AttrKey::Inbounds) {
            Some(Attr::Bools(b)) => b.as_slice(),
            _ => &[],
        };
        let places = view::places(&v, &ViewIndex(numbers), inbounds).map_err(|OutsideView { dim, index, limit }| {
            let promise = inbounds.get(dim) == Some(&true) && (index as i128) < limit as i128;
            let message = match promise {
                true => format!(
                    "the tile at index {index} along dimension {dim} reaches outside the \
                     tensor, which `inbounds` rules out"
                ),
                false => format!(
                    "the index {index} along dimension {dim} lies outside the view, which has {limit} tiles there"
                ),
            };
            self.trap(cx, Code::IndexOutside, message, None)
        })?;
        Ok((places, v.ty.padding))
    }

    fn scatter_places(&self, block: &Block, cx: Cx<'a>, value: &Tile) -> Result<Places, Trap> {
        let v = cx.op.operand(1).ok_or_else(|| self.malformed(cx))?;
        let Val::TensorView(dst) = self.value(block, cx, v)? else { return Err(self.malformed(cx)) };
        let rows = self.arg(block, cx, 2)?;
        self.defined(cx, &rows, "the index of a row")?;
        let mut starts = vec![];
        for &o in cx.op.group(3) {
            let t = self.tile(block, cx, o)?;
            self.defined(cx, &t, "the index of a view")?;
            starts.push(t.get(0));
        }
        let dim = cx.op.int(AttrKey::Dim).unwrap_or(0) as usize;
        let rank = value.shape.len();
        self.check(
            cx,
            dim < rank && dst.shape.len() == rank && starts.len() + 1 == rank && value.shape[dim] == rows.len() as u64,
        )?;
        let rows: Vec<u64> = (0..rows.len()).map(|i| rows.get(i)).collect();
        Ok(view::scatter(&dst, &value.shape, dim, &rows, &starts))
    }

    fn begin(&mut self, block: &mut Block, cx: Cx<'a>, token: Option<ValueId>) -> Result<Started, Trap> {
        let has_token = token.is_some();
        let token = match token.map(|v| self.value(block, cx, v)).transpose()? {
            Some(Val::Token(t)) => t,
            None => Rc::new(Token::default()),
            Some(_) => return Err(self.malformed(cx)),
        };
        let number = block.accesses;
        block.accesses = number.saturating_add(1);
        let record = self.shadow.begin(cx.linear, number, cx.here);
        Ok(Started { number, record, token, has_token, strong: cx.op.ordering() != MemoryOrdering::Weak })
    }

    fn end(&self, s: Started) -> Val {
        Val::Token(if s.record.is_some() { Rc::new(s.token.with(s.number)) } else { s.token })
    }

    /// Looks for races of an access.
    fn watch(&mut self, s: &Started, run: Run, size: usize, write: bool) {
        if let Some(record) = s.record {
            let token = s.has_token.then_some(&*s.token);
            let access = Access { record, token, write, strong: s.strong };
            self.shadow.touch(access, run.addr, (run.count * size) as u64);
        }
    }

    /// Notes that the block acquires, unless the operation's scope is the block itself.
    fn acquire(&mut self, cx: Cx<'a>) {
        if !block_scope(cx.op) {
            self.shadow.acquire(cx.linear);
        }
    }

    fn release(&mut self, cx: Cx<'a>) {
        if !block_scope(cx.op) {
            self.shadow.release(cx.linear);
        }
    }

    /// The trap for an access outside every region: finds its first element there.
    fn fault(&self, cx: Cx<'a>, shape: &[u64], run: Run, size: usize, verb: &str) -> Trap {
        let mut byte = vec![0; size];
        let mut at = |k: usize| self.memory.read(run.addr.wrapping_add((k * size) as u64), &mut byte).is_err();
        let k = (0..run.count).find(|&k| at(k)).unwrap_or(0);
        let addr = run.addr.wrapping_add((k * size) as u64);
        let own = self.named.iter().find(|(start, len, _)| {
            addr >= start.saturating_sub(1 << 16) && addr < start.saturating_add(len.saturating_add(1 << 16))
        });
        let region = match own {
            Some((start, len, name)) => Some((name.clone(), *start, *len)),
            None => self.memory.region(addr),
        };
        let name = cx.name();
        let plural = if size == 1 { "" } else { "s" };
        let place = match region {
            None => "in no known region of memory".to_string(),
            Some((region, start, len)) if addr < start => {
                format!("{} bytes before the start of `{region}` ({len} bytes)", start - addr)
            }
            Some((region, start, len)) if addr >= start.saturating_add(len) => {
                format!("{} bytes past the end of `{region}` ({len} bytes)", addr - start - len)
            }
            Some((region, _, len)) => format!("across the end of `{region}` ({len} bytes)"),
        };
        let message = format!("`{name}` {verb} {size} byte{plural} at address {addr:#x}, {place}");
        self.trap(cx, Code::OutOfBounds, message, Some((shape, run.first + k)))
    }
}

fn block_scope(op: &Op) -> bool {
    matches!(op.attr(AttrKey::MemoryScope), Some(Attr::MemoryScope(MemoryScope::TileBlock)))
}

/// Little-endian bytes to the bits of an element; a nonzero byte is a true i1.
fn decode(dtype: DType, bytes: &[u8], high: bool) -> u64 {
    let mut all = [0; 8];
    for (a, b) in all.iter_mut().zip(bytes) {
        *a = *b;
    }
    let bits = u64::from_le_bytes(all);
    match dtype {
        DType::I1 => (bits != 0) as u64,
        d if d.bits() == 4 => (if high { bits >> 4 } else { bits }) & 15,
        _ => bits,
    }
}

/// The bytes of elements in memory; 4-bit elements two to a byte, low half first.
pub fn encode(dtype: DType, bits: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut out = vec![];
    if dtype.bits() == 4 {
        for (i, b) in bits.enumerate() {
            let nibble = b as u8 & 15;
            match out.last_mut() {
                Some(last) if i % 2 == 1 => *last |= nibble << 4,
                _ => out.push(nibble),
            }
        }
        return out;
    }
    let size = dtype.bytes() as usize;
    for b in bits {
        let b = b & dtype.mask();
        out.extend_from_slice(&b.to_le_bytes()[..size]);
    }
    out
}

/// The value that a read-modify-write leaves in memory.
fn updated(mode: AtomicMode, d: DType, was: u64, arg: u64) -> u64 {
    let int = |s| (integer(d, s, was), integer(d, s, arg));
    let pick = |(a, b): (i128, i128), less: bool| if (a <= b) == less { was } else { arg };
    let new = match mode {
        AtomicMode::And => was & arg,
        AtomicMode::Or => was | arg,
        AtomicMode::Xor => was ^ arg,
        AtomicMode::Add => was.wrapping_add(arg),
        AtomicMode::AddF => {
            return eval::apply(ScalarOp::AddF { rounding: Rounding::NearestEven, ftz: false }, d, &[was, arg]);
        }
        AtomicMode::Max => pick(int(Signedness::Signed), false),
        AtomicMode::Min => pick(int(Signedness::Signed), true),
        AtomicMode::UMax => pick(int(Signedness::Unsigned), false),
        AtomicMode::UMin => pick(int(Signedness::Unsigned), true),
        AtomicMode::Xchg => arg,
    };
    new & d.mask()
}
