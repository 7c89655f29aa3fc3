//! Products that a processor's matrix unit computes tile by tile (AMX).
//!
//! ```text
//! for i in 0..32: free matrix
//!   for j in 0..32: free matrix
//!     for k in 0..256: reduce matrix            x and y are words: two bf16, or four bytes
//!       x = load A[i*512 + k]                   16 rows of 16 words are a tile
//!       y = b[k, j]                             16 words of 16 columns are one
//!       s = acc[i, j]
//!       v = dot2(x, y, s)
//!       acc[i, j] = v                           16 x 16 sums are one
//! ```
//!
//! The rows of a tile lie any number of elements apart; the elements of a row are adjacent.

use super::ir::*;
use crate::num::{DType, ScalarOp};

/// Rows of a tile, and its words in each.
pub const SIDE: u64 = 16;

/// The types of the words of two tiles that are multiplied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AmxTerms {
    /// Pairs of bf16, whose sums are f32.
    Bf16,
    /// Four unsigned bytes by four signed ones, whose sums are i32.
    U8S8,
}

impl AmxTerms {
    pub const WORDS: [(&'static str, AmxTerms); 2] = [("bf16", AmxTerms::Bf16), ("u8s8", AmxTerms::U8S8)];

    pub fn word(self) -> &'static str {
        AmxTerms::WORDS.iter().find(|(_, of)| *of == self).map_or("", |(word, _)| word)
    }

    /// The operation that multiplies two words and adds the products, and the type of the sums.
    pub fn op(self) -> (ScalarOp, DType) {
        match self {
            AmxTerms::Bf16 => (ScalarOp::DotF, DType::F32),
            AmxTerms::U8S8 => (ScalarOp::DotB, DType::I32),
        }
    }
}

/// Loops that form such a product.
#[derive(Clone, Copy)]
pub struct AmxProduct<'a> {
    /// Rows, columns and terms, and their axes.
    pub extents: [u64; 3],
    pub axes: [AxisId; 3],
    /// The loads or reads of the operands, and the read of the sums.
    pub a: &'a Stmt,
    pub b: &'a Stmt,
    pub sums: &'a Stmt,
    pub of: AmxTerms,
}

impl<'a> AmxProduct<'a> {
    /// # Errors
    /// Why the loops are not such a product.
    pub fn of(kernel: &Kernel, rows: &'a For) -> Result<AmxProduct<'a>, &'static str> {
        let form = "it is not a product of tiles: rows, columns, and a sum of words";
        let [Stmt::For(cols)] = &rows.body[..] else { return Err(form) };
        let [Stmt::For(sum)] = &cols.body[..] else { return Err(form) };
        let [a, b, sums, Stmt::Let { dst, op, args }, written] = &sum.body[..] else {
            return Err(form);
        };
        let of = AmxTerms::WORDS.iter().map(|(_, of)| *of).find(|of| of.op().0 == *op).ok_or(form)?;
        let loops = [rows, &**cols, &**sum];
        let kinds = [LoopKind::Free, LoopKind::Free, LoopKind::Reduce];
        if loops.iter().zip(kinds).any(|(f, kind)| f.kind != kind || f.combine.is_some()) {
            return Err(form);
        }
        let (Stmt::Read { dst: old, buf, idx }, Stmt::Write { buf: to, idx: at, value }) = (sums, written) else {
            return Err(form);
        };
        if (buf, idx, *value) != (to, at, Opnd::Val(*dst)) {
            return Err(form);
        }
        let value = |s: &Stmt| match s {
            Stmt::Load { dst, mem, mask, order: Order::Weak, .. } => {
                (mask.is_always() && mem.elem == DType::I32).then_some(*dst)
            }
            Stmt::Read { dst, buf, .. } => {
                kernel.bufs.get(*buf).is_some_and(|b| b.ty == Ty::Num(DType::I32)).then_some(*dst)
            }
            _ => None,
        };
        let (Some(left), Some(right)) = (value(a), value(b)) else { return Err("its operands are not words") };
        // Bytes are unsigned on the left.
        let (a, b) = match args[..] {
            [x, y, s] if s == Opnd::Val(*old) && x == Opnd::Val(left) && y == Opnd::Val(right) => (a, b),
            [x, y, s] if s == Opnd::Val(*old) && x == Opnd::Val(right) && y == Opnd::Val(left) => (b, a),
            _ => return Err(form),
        };
        let held = |b: &Buf| b.ty == Ty::Num(of.op().1) && b.space == Space::Scratch;
        if !kernel.bufs.get(*buf).is_some_and(held) {
            return Err("its sums are in no array of the block");
        }
        let extent = |f: &For| {
            let counts = f.counts_from_zero();
            f.hi.as_const().filter(|n| counts && *n > 0).map(|n| n as u64).filter(|n| n.is_multiple_of(SIDE))
        };
        let [Some(m), Some(n), Some(k)] = loops.map(extent) else { return Err("it has no whole number of tiles") };
        let made = AmxProduct { extents: [m, n, k], axes: loops.map(|f| f.axis), a, b, sums, of };
        let turned = AmxProduct { a: b, b: a, ..made };
        let fits = [made, turned].into_iter().take(if of == AmxTerms::Bf16 { 2 } else { 1 }).find(|p| p.lies(kernel));
        fits.ok_or("its operands or sums do not lie as tiles have them")
    }

    /// Returns true if the elements of each tile's row are adjacent and its rows are the same distance apart
    /// everywhere.
    fn lies(&self, kernel: &Kernel) -> bool {
        let [m, n, k] = self.axes;
        let by = |s: &Stmt, axis| index(kernel, s)?.linear(axis).map(|(by, _)| by);
        let lie = |s: &Stmt, down, along, not: Option<AxisId>| {
            let rows = by(s, down).is_some_and(|by| by.axes().is_empty());
            rows && by(s, along) == Some(Ix::Const(1)) && not.is_none_or(|axis| by(s, axis) == Some(Ix::Const(0)))
        };
        lie(self.a, m, k, Some(n)) && lie(self.b, k, n, Some(m)) && lie(self.sums, m, n, Some(k))
    }
}

/// The element that a load or a read of an array touches.
pub fn index(kernel: &Kernel, s: &Stmt) -> Option<Ix> {
    match s {
        Stmt::Load { mem, .. } => Some(mem.index.clone()),
        Stmt::Read { buf, idx, .. } => {
            let shape = &kernel.bufs.get(*buf)?.shape;
            (shape.len() == idx.len()).then(|| Ix::row_major(idx, shape))
        }
        _ => None,
    }
}
