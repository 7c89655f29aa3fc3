//! The rules of operations on values; memory is in `access`, regions are in `control`.

use super::types::{is_permutation, show, show_tile};
use super::{ALLOW_TMA, LATENCY, Verifier, name};
use crate::base::Code;
use crate::base::words::closest;
use crate::cuda_tile::ir::*;
use crate::cuda_tile::words::Words;
use crate::num::exact::Numbers;
use crate::num::op::{Rounding, Signedness};
use crate::num::{DType, printf};

/// The element types that an operation takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// i1 i8 i16 i32 i64
    Int,
    /// f16 bf16 f32 f64
    Float,
    Bool,
    /// Any number but i4.
    Number,
    AnyFloat,
    Pointer,
}

impl Kind {
    pub(super) fn admits(self, e: Elem) -> bool {
        match (self, e) {
            (Kind::Pointer, Elem::Ptr(_)) => true,
            (_, Elem::Ptr(_)) | (Kind::Pointer, _) => false,
            (Kind::Int, Elem::Num(d)) => d.is_int() && d != DType::I4,
            (Kind::Float, Elem::Num(d)) => d.is_base_float(),
            (Kind::Bool, Elem::Num(d)) => d == DType::I1,
            (Kind::Number, Elem::Num(d)) => d != DType::I4,
            (Kind::AnyFloat, Elem::Num(d)) => d.is_float(),
        }
    }
    fn words(self) -> &'static str {
        match self {
            Kind::Int => "i1, i8, i16, i32 or i64",
            Kind::Float => "f16, bf16, f32 or f64",
            Kind::Bool => "i1",
            Kind::Number => "a number",
            Kind::AnyFloat => "a floating-point type",
            Kind::Pointer => "a pointer",
        }
    }
}

/// A rule's verdict; `None` means that an error has been reported, so later rules that need the value are skipped.
pub(super) type Checked<T = ()> = Option<T>;

impl<'a> Verifier<'a> {
    pub(super) fn operation(&mut self, id: OpId, op: &'a Op) {
        let _ = self.rules(id, op);
    }

    fn rules(&mut self, id: OpId, op: &'a Op) -> Checked {
        self.arity(op)?;
        if let Some(Attr::Hints(h)) = op.attr(AttrKey::OptimizationHints) {
            match op.opcode {
                Opcode::LoadViewTko | Opcode::StoreViewTko => self.hints(h, op.span, &[LATENCY, ALLOW_TMA]),
                _ => self.hints(h, op.span, &[LATENCY]),
            }
        }
        use Opcode as O;
        match op.opcode {
            O::Broadcast
            | O::Reshape
            | O::Permute
            | O::Cat
            | O::Extract
            | O::Insert
            | O::Pack
            | O::Unpack
            | O::Iota => self.shape_op(op),
            O::Constant => self.constant(op),
            O::GetGlobal => self.get_global(op),
            O::GetNumTileBlocks | O::GetTileBlockId => {
                for i in 0..3 {
                    self.scalar(op, self.result(op, i), DType::I32, "a block coordinate")?;
                }
                Some(())
            }
            O::Offset => {
                let (p, o) = (self.tile(op, 0)?, self.tile(op, 1)?);
                self.kind(op, p, Kind::Pointer, "the pointers")?;
                self.kind(op, o, Kind::Int, "the offsets")?;
                self.same_shape(op, &[p, o])?;
                let r = self.result_tile(op, 0)?;
                self.same(op, p, r)
            }
            O::MmaF | O::MmaFScaled | O::MmaI => self.product(op),
            O::Select => {
                let (c, x, y, r) = (self.tile(op, 0)?, self.tile(op, 1)?, self.tile(op, 2)?, self.result_tile(op, 0)?);
                self.kind(op, c, Kind::Bool, "the condition")?;
                self.same(op, x, y)?;
                self.same(op, x, r)?;
                if x.elem == Elem::Num(DType::F4E2M1FN) {
                    self.element(op, "select does not take f4E2M1FN; unpack to a wider type first");
                }
                self.same_shape(op, &[c, x])
            }
            O::Bitcast
            | O::ExtI
            | O::TruncI
            | O::FToF
            | O::FToI
            | O::IToF
            | O::IntToPtr
            | O::PtrToInt
            | O::PtrToPtr => self.conversion(op),
            O::Assert => {
                let c = self.tile(op, 0)?;
                self.kind(op, c, Kind::Bool, "the condition")
            }
            O::Break | O::Continue | O::Yield | O::Return => self.terminator(id, op),
            O::For => self.for_op(op),
            O::If => self.if_op(op),
            O::Loop => self.loop_op(op),
            O::Reduce | O::Scan => self.fold(op),
            O::ExpGenerate => self.generate(op),
            O::ExpCall => self.call(op),
            O::CmpF | O::CmpI => {
                let (x, y, r) = (self.tile(op, 0)?, self.tile(op, 1)?, self.result_tile(op, 0)?);
                self.kind(op, x, if op.opcode == O::CmpF { Kind::Float } else { Kind::Int }, "the operands")?;
                self.same(op, x, y)?;
                self.kind(op, r, Kind::Bool, "the result")?;
                self.same_shape(op, &[x, r])
            }
            O::PowI => {
                let (x, e) = (self.tile(op, 0)?, self.tile(op, 1)?);
                self.kind(op, x, Kind::Float, "the operand")?;
                if e.elem != Elem::Num(DType::I32) {
                    return self
                        .element(op, format!("the exponent of `{}` must be i32, not {}", name(op), show_tile(e)));
                }
                self.same_shape(op, &[x, e])?;
                let r = self.result_tile(op, 0)?;
                self.same(op, x, r)
            }
            O::AbsF
            | O::AddF
            | O::Atan2
            | O::Ceil
            | O::Cos
            | O::CosH
            | O::DivF
            | O::Exp
            | O::Exp2
            | O::Floor
            | O::Fma => self.float_op(op),
            O::Log
            | O::Log2
            | O::MaxF
            | O::MinF
            | O::MulF
            | O::NegF
            | O::Pow
            | O::RemF
            | O::Rsqrt
            | O::Sin
            | O::SinH => self.float_op(op),
            O::Sqrt | O::SubF | O::Tan | O::TanH => self.float_op(op),
            O::AbsI
            | O::AddI
            | O::DivI
            | O::MaxI
            | O::MinI
            | O::MulHiI
            | O::MulI
            | O::NegI
            | O::RemI
            | O::ShlI
            | O::ShrI => self.int_op(op),
            O::SubI | O::AndI | O::OrI | O::XorI => self.int_op(op),
            O::Assume => self.assume(op),
            O::PrintTko => self.print(op),
            O::OptimizationBarrier => {
                let (x, r) = (self.ty(*op.operands.first()?)?, self.ty(*op.results.first()?)?);
                if x != r {
                    self.mismatch(op, &show(x), &show(r));
                }
                Some(())
            }
            O::ExpExternElementwise => {
                let r = self.result_tile(op, 0)?;
                let args: Vec<_> =
                    (0..op.operands.len()).map(|i| self.operand_tile(op, op.operands[i])).collect::<Option<_>>()?;
                for a in args {
                    self.same_shape(op, &[a, r])?;
                }
                Some(())
            }
            _ => self.memory_op(op),
        }
    }

    /// Checks the number of operands, results and regions against the table.
    fn arity(&mut self, op: &Op) -> Checked {
        use crate::cuda_tile::ops::{Arity, info};
        let info = info(op.opcode);
        let total: u64 = op.groups.iter().map(|&g| g as u64).sum();
        let fits = |(g, &n): (&crate::cuda_tile::ops::Group, &u32)| match g.arity {
            Arity::One => n == 1,
            Arity::Optional => n <= 1,
            Arity::Many => true,
        };
        let groups = op.groups.len() == info.operands.len() && info.operands.iter().zip(&op.groups).all(fits);
        let fixed = info.results.iter().filter(|g| g.arity == Arity::One).count();
        let results = if info.has_variadic_results() { op.results.len() >= fixed } else { op.results.len() == fixed };
        let regions = (info.regions.0..=info.regions.1).contains(&op.regions.len());
        let known = op.operands.iter().chain(&op.results).all(|&v| self.func.values.get(v).is_some());
        if groups && total == op.operands.len() as u64 && results && regions && known {
            return Some(());
        }
        self.error(
            Code::BadArity,
            op.span,
            format!("`{}` has the wrong number of operands, results or regions", info.name),
        );
        None
    }

    // Access to operands and results.

    /// The tile type of the single operand of a group.
    pub(super) fn tile(&mut self, op: &'a Op, group: usize) -> Checked<&'a TileType> {
        self.operand_tile(op, op.operand(group)?)
    }
    pub(super) fn operand_tile(&mut self, op: &Op, v: ValueId) -> Checked<&'a TileType> {
        match self.ty(v)? {
            Type::Tile(t) => Some(t),
            other => {
                let text = format!("`{}` takes a tile here, not {}", name(op), show(other));
                self.error(Code::TypeMismatch, op.span, text);
                None
            }
        }
    }
    fn result(&self, op: &Op, i: usize) -> Option<ValueId> {
        op.results.get(i).copied()
    }
    pub(super) fn result_tile(&mut self, op: &Op, i: usize) -> Checked<&'a TileType> {
        match self.ty(*op.results.get(i)?)? {
            Type::Tile(t) => Some(t),
            other => {
                let text = format!("`{}` gives a tile here, not {}", name(op), show(other));
                self.error(Code::TypeMismatch, op.span, text);
                None
            }
        }
    }

    // Judgements.

    pub(super) fn kind(&mut self, op: &Op, t: &TileType, kind: Kind, what: &str) -> Checked {
        if kind.admits(t.elem) {
            return Some(());
        }
        let text = format!("{what} of `{}` must be {}, not {}", name(op), kind.words(), show_tile(t));
        self.error(Code::BadElementType, op.span, text);
        None
    }
    pub(super) fn element(&mut self, op: &Op, text: impl Into<String>) -> Checked {
        self.error(Code::BadElementType, op.span, text);
        None
    }
    pub(super) fn mismatch(&mut self, op: &Op, a: &str, b: &str) {
        self.error(Code::TypeMismatch, op.span, format!("the types of `{}` do not agree: {a} and {b}", name(op)));
    }
    pub(super) fn same(&mut self, op: &Op, a: &TileType, b: &TileType) -> Checked {
        if a == b {
            return Some(());
        }
        self.mismatch(op, &show_tile(a), &show_tile(b));
        None
    }
    pub(super) fn same_shape(&mut self, op: &Op, tiles: &[&TileType]) -> Checked {
        for pair in tiles.windows(2) {
            if let [a, b] = pair
                && a.shape != b.shape
            {
                let text = format!("the shapes of `{}` do not agree: {} and {}", name(op), show_tile(a), show_tile(b));
                self.error(Code::TypeMismatch, op.span, text);
                return None;
            }
        }
        Some(())
    }
    pub(super) fn attribute(&mut self, op: &Op, text: impl Into<String>) -> Checked {
        self.error(Code::BadAttribute, op.span, text);
        None
    }
    /// A value must be a scalar of one type.
    pub(super) fn scalar(&mut self, op: &Op, v: Option<ValueId>, d: DType, what: &str) -> Checked {
        let ty = self.ty(v?)?;
        if *ty == Type::scalar(d) {
            return Some(());
        }
        let text = format!("{what} of `{}` must be tile<{d}>, not {}", name(op), show(ty));
        self.error(Code::TypeMismatch, op.span, text);
        None
    }
    pub(super) fn rank(&mut self, op: &Op, t: &TileType, rank: usize, what: &str) -> Checked {
        if t.shape.len() == rank {
            return Some(());
        }
        let text = format!("{what} of `{}` must have rank {rank}, not {}", name(op), show_tile(t));
        self.error(Code::BadRank, op.span, text);
        None
    }

    // Rules.

    fn shape_op(&mut self, op: &'a Op) -> Checked {
        let r = self.result_tile(op, 0)?;
        let bad = |v: &mut Self, text: String| -> Checked {
            v.error(Code::TypeMismatch, op.span, text);
            None
        };
        if op.opcode == Opcode::Iota {
            self.kind(op, r, Kind::Int, "the result")?;
            self.rank(op, r, 1, "the result")?;
            let bits = r.num().map_or(64, DType::bits);
            let n = r.elements();
            if bits < 64 && n > 1 << bits {
                return self.attribute(op, format!("{n} different numbers do not fit {bits} bits"));
            }
            return Some(());
        }
        let s = self.tile(op, 0)?;
        if matches!(op.opcode, Opcode::Pack | Opcode::Unpack) {
            let (bytes, other) = if op.opcode == Opcode::Pack { (r, s) } else { (s, r) };
            self.rank(op, s, 1, "the source")?;
            self.rank(op, r, 1, "the result")?;
            if bytes.elem != Elem::Num(DType::I8) {
                return self.element(op, format!("`{}` works on a tile of i8, not {}", name(op), show_tile(bytes)));
            }
            let width = match other.elem {
                Elem::Num(d) if d.bits() != 8 => d.bits() as u64,
                _ => {
                    return self.element(
                        op,
                        format!("`{}` needs numbers whose width is not 8 bits, found {}", name(op), show_tile(other)),
                    );
                }
            };
            if other.elements().saturating_mul(width) != bytes.elements().saturating_mul(8) {
                return bad(
                    self,
                    format!("{} and {} do not have the same number of bytes", show_tile(s), show_tile(r)),
                );
            }
            return Some(());
        }
        if s.elem != r.elem {
            return bad(self, format!("`{}` keeps the element type: {} and {}", name(op), show_tile(s), show_tile(r)));
        }
        let what = name(op);
        match op.opcode {
            Opcode::Broadcast => {
                let fits =
                    s.shape.len() == r.shape.len() && s.shape.iter().zip(&r.shape).all(|(a, b)| a == b || *a == 1);
                if !fits {
                    self.error_help(
                        Code::TypeMismatch,
                        op.span,
                        format!("{} cannot be broadcast to {}", show_tile(s), show_tile(r)),
                        "only dimensions of size 1 stretch, and the ranks must be equal; reshape first",
                    );
                }
            }
            Opcode::Reshape => {
                if s.elements() != r.elements() {
                    return bad(
                        self,
                        format!(
                            "{} has {} elements and {} has {}",
                            show_tile(s),
                            s.elements(),
                            show_tile(r),
                            r.elements()
                        ),
                    );
                }
            }
            Opcode::Permute => {
                let Some(Attr::I32s(perm)) = op.attr(AttrKey::Permutation) else {
                    return self.attribute(op, "`permute` needs a permutation");
                };
                if s.shape.len() < 2 {
                    self.error(Code::BadRank, op.span, "`permute` needs a tile of rank 2 or more");
                    return None;
                }
                if !is_permutation(perm, s.shape.len()) {
                    return self
                        .attribute(op, format!("{perm:?} is not a permutation of {} dimensions", s.shape.len()));
                }
                let want: Vec<u64> = perm.iter().map(|&p| s.shape[p as usize]).collect();
                if want != r.shape {
                    let want = TileType { shape: want, ..s.clone() };
                    return bad(self, format!("the permutation gives {}, not {}", show_tile(&want), show_tile(r)));
                }
            }
            Opcode::Cat => {
                let b = self.tile(op, 1)?;
                if b.elem != s.elem || b.shape.len() != s.shape.len() {
                    return bad(self, format!("{} and {} cannot be joined", show_tile(s), show_tile(b)));
                }
                let dim = self.dim(op, s)?;
                let mut want = s.shape.clone();
                want[dim] = want[dim].saturating_add(b.shape[dim]);
                let others = s.shape.iter().zip(&b.shape).enumerate().all(|(d, (x, y))| d == dim || x == y);
                if !others {
                    return bad(self, format!("{} and {} differ outside dimension {dim}", show_tile(s), show_tile(b)));
                }
                if want != r.shape {
                    let want = TileType { shape: want, ..s.clone() };
                    return bad(self, format!("joining gives {}, not {}", show_tile(&want), show_tile(r)));
                }
            }
            _ => {
                // extract: source, result; insert: source is the part, destination the whole.
                let insert = op.opcode == Opcode::Insert;
                let whole = if insert { self.tile(op, 1)? } else { s };
                let part = if insert { s } else { r };
                if insert {
                    self.same(op, whole, r)?;
                }
                let fits = whole.shape.len() == part.shape.len()
                    && whole.shape.iter().zip(&part.shape).all(|(w, p)| *p != 0 && w % p == 0);
                if !fits {
                    return bad(self, format!("{} does not divide {} evenly", show_tile(part), show_tile(whole)));
                }
                let index = op.group(if insert { 2 } else { 1 });
                if index.len() != whole.shape.len() {
                    let text = format!("`{what}` needs {} indices, not {}", whole.shape.len(), index.len());
                    self.error(Code::BadArity, op.span, text);
                    return None;
                }
                for (d, &v) in index.iter().enumerate() {
                    self.scalar(op, Some(v), DType::I32, "an index")?;
                    let limit = whole.shape[d] / part.shape[d];
                    if let Some(i) = self.constant_scalar(v).filter(|&i| i >= limit) {
                        let text = format!("the subtile index {} along dimension {d} is not below {limit}", i as i32);
                        self.out.push(crate::base::Diagnostic::warning(Code::ConstantIndexOutside, text).at(op.span));
                    }
                }
            }
        }
        Some(())
    }

    /// The bits of a scalar constant.
    fn constant_scalar(&self, v: ValueId) -> Option<u64> {
        let op = self.op(self.func.def_op(v)?)?;
        match (op.opcode, op.attr(AttrKey::Value)) {
            (Opcode::Constant, Some(Attr::Elements(e))) => e.bits.first().copied(),
            _ => None,
        }
    }

    /// The `dim` attribute, in range of a tile's dimensions.
    pub(super) fn dim(&mut self, op: &Op, t: &TileType) -> Checked<usize> {
        let dim = op.int(AttrKey::Dim).unwrap_or(-1);
        match usize::try_from(dim) {
            Ok(d) if d < t.shape.len() => Some(d),
            _ => {
                self.attribute(op, format!("dim = {dim} is not a dimension of {}", show_tile(t)));
                None
            }
        }
    }

    fn constant(&mut self, op: &'a Op) -> Checked {
        let r = self.result_tile(op, 0)?;
        let Some(Attr::Elements(e)) = op.attr(AttrKey::Value) else {
            return self.attribute(op, "`constant` needs a value");
        };
        if r.elem == Elem::Num(DType::I4) {
            return self.element(op, "constants cannot have i4 elements");
        }
        if let Some(text) = elements_problem(e, r) {
            self.error(Code::BadConstant, op.span, text);
        }
        Some(())
    }

    fn get_global(&mut self, op: &'a Op) -> Checked {
        let r = self.result_tile(op, 0)?;
        self.rank(op, r, 0, "the result")?;
        self.kind(op, r, Kind::Pointer, "the result")?;
        let Some(Attr::Str(symbol)) = op.attr(AttrKey::Name) else {
            return self.attribute(op, "`get_global` needs a name");
        };
        let Some(g) = self.module.global(symbol) else {
            let close = closest(symbol, self.module.globals.iter().map(|g| g.name.as_str()));
            let text = format!("unknown global `@{symbol}`");
            match close {
                Some(c) => self.error_help(Code::BadSymbol, op.span, text, format!("did you mean `@{c}`?")),
                None => self.error(Code::BadSymbol, op.span, text),
            }
            return None;
        };
        if r.elem != Elem::Ptr(g.value.dtype) {
            self.mismatch(op, &show_tile(r), &format!("a global of {}", g.value.dtype));
        }
        Some(())
    }

    fn conversion(&mut self, op: &'a Op) -> Checked {
        let (s, r) = (self.tile(op, 0)?, self.result_tile(op, 0)?);
        self.same_shape(op, &[s, r])?;
        let i64 = Elem::Num(DType::I64);
        let int = |e: Elem| matches!(e, Elem::Num(d) if d.is_int());
        let rounding = op.rounding(Rounding::NearestEven);
        match op.opcode {
            Opcode::Bitcast => {
                for t in [s, r] {
                    self.kind(op, t, Kind::Number, "an operand")?;
                }
                let width = |t: &TileType| t.num().map_or(0, DType::bits);
                if width(s) != width(r) {
                    return self.element(op, format!("{} and {} differ in width", show_tile(s), show_tile(r)));
                }
            }
            Opcode::ExtI | Opcode::TruncI => {
                let (Elem::Num(a), Elem::Num(b)) = (s.elem, r.elem) else {
                    return self.element(op, format!("`{}` converts integers", name(op)));
                };
                if !int(s.elem) || !int(r.elem) {
                    return self.element(op, format!("`{}` converts integers, not {a} to {b}", name(op)));
                }
                let wider = op.opcode == Opcode::ExtI;
                if (wider && b.bits() <= a.bits()) || (!wider && b.bits() >= a.bits()) {
                    let way = if wider { "wider" } else { "narrower" };
                    return self.element(op, format!("`{}` needs a {way} result: {a} to {b}", name(op)));
                }
            }
            Opcode::FToF => {
                self.kind(op, s, Kind::AnyFloat, "the source")?;
                self.kind(op, r, Kind::AnyFloat, "the result")?;
                if s.elem == r.elem {
                    return self.element(op, format!("`ftof` needs two different types, found {} twice", show_tile(s)));
                }
                if let (Elem::Num(from), Elem::Num(to)) = (s.elem, r.elem)
                    && let allowed = roundings(from, to)
                    && !allowed.contains(&rounding)
                {
                    let words = allowed.iter().map(|r| format!("rounding<{}>", r.word())).collect::<Vec<_>>();
                    let text = format!("`ftof` does not take rounding<{}> from {from} to {to}", rounding.word());
                    self.error_help(Code::BadRounding, op.span, text, format!("write {}", words.join(" or ")));
                }
            }
            Opcode::FToI => {
                self.kind(op, s, Kind::AnyFloat, "the source")?;
                self.kind(op, r, Kind::Int, "the result")?;
                if op.rounding(Rounding::NearestIntToZero) != Rounding::NearestIntToZero {
                    self.error(Code::BadRounding, op.span, "`ftoi` only rounds with nearest_int_to_zero");
                }
            }
            Opcode::IToF => {
                self.kind(op, s, Kind::Int, "the source")?;
                self.kind(op, r, Kind::AnyFloat, "the result")?;
                if r.elem == Elem::Num(DType::F8E8M0FNU) {
                    return self.element(op, "`itof` does not convert to f8E8M0FNU");
                }
                if rounding != Rounding::NearestEven {
                    self.error(Code::BadRounding, op.span, "`itof` only rounds with nearest_even");
                }
            }
            Opcode::IntToPtr if s.elem != i64 || !Kind::Pointer.admits(r.elem) => {
                return self.element(
                    op,
                    format!("`int_to_ptr` converts i64 to a pointer, not {} to {}", show_tile(s), show_tile(r)),
                );
            }
            Opcode::PtrToInt if r.elem != i64 || !Kind::Pointer.admits(s.elem) => {
                return self.element(
                    op,
                    format!("`ptr_to_int` converts a pointer to i64, not {} to {}", show_tile(s), show_tile(r)),
                );
            }
            Opcode::PtrToPtr => {
                self.kind(op, s, Kind::Pointer, "the source")?;
                self.kind(op, r, Kind::Pointer, "the result")?;
            }
            _ => {}
        }
        Some(())
    }

    fn uniform(&mut self, op: &'a Op, kind: Kind) -> Checked<&'a TileType> {
        let r = self.result_tile(op, 0)?;
        self.kind(op, r, kind, "the operands")?;
        for &v in &op.operands {
            let t = self.operand_tile(op, v)?;
            self.same(op, t, r)?;
        }
        Some(r)
    }

    fn float_op(&mut self, op: &'a Op) -> Checked {
        let t = self.uniform(op, Kind::Float)?;
        let f32 = t.elem == Elem::Num(DType::F32);
        if op.flag(AttrKey::FlushToZero) && !f32 {
            let text = format!("flush_to_zero is for f32 only, not {}", show_tile(t));
            self.error(Code::BadRounding, op.span, text);
        }
        let Some(Attr::Rounding(rounding)) = op.attr(AttrKey::Rounding) else { return Some(()) };
        use Rounding as R;
        let ieee = matches!(rounding, R::NearestEven | R::Zero | R::NegativeInf | R::PositiveInf);
        let (allowed, narrow) = match op.opcode {
            Opcode::AddF | Opcode::SubF | Opcode::MulF | Opcode::Fma => (ieee, false),
            Opcode::DivF => (ieee || matches!(rounding, R::Approx | R::Full), matches!(rounding, R::Approx | R::Full)),
            Opcode::Sqrt => (ieee || *rounding == R::Approx, *rounding == R::Approx),
            Opcode::Exp | Opcode::TanH => (matches!(rounding, R::Approx | R::Full), *rounding == R::Approx),
            _ => (false, false),
        };
        if !allowed {
            self.error(Code::BadRounding, op.span, format!("`{}` does not take this rounding mode", name(op)));
        } else if narrow && !f32 {
            self.error(Code::BadRounding, op.span, format!("this rounding mode is for f32 only, not {}", show_tile(t)));
        }
        Some(())
    }

    fn int_op(&mut self, op: &'a Op) -> Checked {
        self.uniform(op, Kind::Int)?;
        if op.opcode == Opcode::NegI
            && matches!(op.attr(AttrKey::Overflow), Some(Attr::Overflow(Overflow::NoUnsignedWrap)))
        {
            return self.attribute(op, "`negi` does not take overflow<no_unsigned_wrap>");
        }
        if op.opcode == Opcode::DivI {
            let rounding = op.rounding(Rounding::Zero);
            if !matches!(rounding, Rounding::Zero | Rounding::NegativeInf | Rounding::PositiveInf) {
                self.error(Code::BadRounding, op.span, "`divi` rounds to zero, negative_inf or positive_inf");
            } else if rounding == Rounding::NegativeInf && op.signedness(AttrKey::Signedness) == Signedness::Unsigned {
                self.error(Code::BadRounding, op.span, "an unsigned `divi` does not round to negative_inf");
            }
        }
        Some(())
    }

    fn print(&mut self, op: &'a Op) -> Checked {
        let args = op.group(0).to_vec();
        for &v in &args {
            self.operand_tile(op, v)?;
        }
        let Some(Attr::Str(text)) = op.attr(AttrKey::Str) else {
            return self.attribute(op, "`print_tko` needs a format");
        };
        match printf::conversions(text, args.len()) {
            Ok(n) if n == args.len() => {}
            Ok(n) => {
                let text = format!("the format has {n} conversions for {} values", args.len());
                self.error(Code::FormatMismatch, op.span, text);
            }
            Err(text) => self.error_help(
                Code::FormatMismatch,
                op.span,
                text,
                "conversions are d i u o x X c e E f F g G a A p, and %% for a percent sign",
            ),
        }
        self.token(op, 1)
    }
}

/// The roundings that `ftof` takes: all if nothing is rounded, and otherwise those of NVIDIA's GPUs.
fn roundings(from: DType, to: DType) -> &'static [Rounding] {
    use Rounding::*;
    let exact = Numbers::of(from).zip(Numbers::of(to)).is_some_and(|(from, to)| {
        let smallest = |n: Numbers| n.least + n.digits as i32;
        from.digits <= to.digits && from.most <= to.most && smallest(from) >= smallest(to)
    });
    match (from, to) {
        (_, DType::F8E8M0FNU) => &[Zero, PositiveInf],
        (_, to) if to.bits() <= 8 => &[NearestEven],
        _ if exact => &[NearestEven, Zero, NegativeInf, PositiveInf, NearestAway],
        (DType::F64, DType::F32) => &[NearestEven, Zero, NegativeInf, PositiveInf],
        (DType::F32, DType::TF32) => &[NearestEven, Zero, NearestAway],
        _ => &[NearestEven, Zero],
    }
}

/// The error in the elements of a constant or global of a type, if there is one.
pub(super) fn elements_problem(e: &Elements, ty: &TileType) -> Option<String> {
    if ty.elem != Elem::Num(e.dtype) {
        return Some(format!("elements of {} cannot fill {}", e.dtype, show_tile(ty)));
    }
    let n = ty.shape.iter().try_fold(1u64, |p, &n| p.checked_mul(n))?;
    let whole = e.bits.len() as u64 == n && (e.shape == ty.shape || n == 1);
    if e.bits.len() != 1 && !whole {
        return Some(format!("{} elements of shape {:?} cannot fill {}", e.bits.len(), e.shape, show_tile(ty)));
    }
    let wide = e.bits.iter().find(|&&b| b & !e.dtype.mask() != 0)?;
    Some(format!("{wide} does not fit {}", e.dtype))
}
