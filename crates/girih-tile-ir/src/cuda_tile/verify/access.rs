//! The rules of memory operations and views.

use super::ops::{Checked, Kind};
use super::types::{show, show_tile};
use super::{Verifier, name};
use crate::base::Code;
use crate::cuda_tile::ir::*;
use crate::cuda_tile::words::Words;
use crate::num::DType;

impl<'a> Verifier<'a> {
    pub(super) fn memory_op(&mut self, op: &'a Op) -> Checked {
        use Opcode as O;
        match op.opcode {
            O::MakeToken => self.result_token(op, 0),
            O::JoinTokens => {
                if op.operands.len() < 2 {
                    self.error(Code::BadArity, op.span, "`join_tokens` needs two tokens or more");
                }
                for &v in &op.operands {
                    self.is_token(op, v)?;
                }
                self.result_token(op, 0)
            }
            O::GdcLaunchDependentsTko | O::GdcWaitTko | O::MemoryFenceAliasTko => {
                self.token(op, 0)?;
                self.result_token(op, 0)
            }
            O::Alloca => self.alloca(op),
            O::LoadPtrTko => self.load_ptr(op),
            O::StorePtrTko => self.store_ptr(op),
            O::LoadViewTko
            | O::StoreViewTko
            | O::AtomicRedViewTko
            | O::MultimemLoadReduceViewTko
            | O::MultimemReduceViewTko
            | O::MultimemStoreViewTko => self.view_access(op),
            O::AtomicCasTko | O::AtomicRmwTko => self.atomic(op),
            O::MakeTensorView => self.make_tensor_view(op),
            O::MakePartitionView | O::MakeStridedView | O::MakeGatherScatterView => self.make_view(op),
            O::GetTensorShape | O::GetIndexSpaceShape => self.extents(op),
            O::ExpScatterStore => self.scatter_store(op),
            _ => Some(()),
        }
    }

    fn is_token(&mut self, op: &Op, v: ValueId) -> Checked {
        match self.ty(v)? {
            Type::Token => Some(()),
            other => {
                let text = format!("`{}` takes a token here, not {}", name(op), show(other));
                self.error(Code::TypeMismatch, op.span, text);
                None
            }
        }
    }
    /// The optional token of a group.
    pub(super) fn token(&mut self, op: &Op, group: usize) -> Checked {
        match op.operand(group) {
            Some(v) => self.is_token(op, v),
            None => Some(()),
        }
    }
    fn result_token(&mut self, op: &Op, i: usize) -> Checked {
        self.is_token(op, *op.results.get(i)?)
    }

    /// Ordering and scope: weak accesses have no scope, all others need one.
    fn ordering(&mut self, op: &Op, allowed: &[MemoryOrdering]) {
        let ordering = op.ordering();
        let word = |o| match o {
            MemoryOrdering::Weak => "weak",
            MemoryOrdering::Relaxed => "relaxed",
            MemoryOrdering::Acquire => "acquire",
            MemoryOrdering::Release => "release",
            MemoryOrdering::AcqRel => "acq_rel",
        };
        if !allowed.contains(&ordering) {
            let list = allowed.iter().map(|&o| word(o)).collect::<Vec<_>>().join(", ");
            let text = format!("`{}` cannot be {}", name(op), word(ordering));
            self.error_help(Code::BadOrdering, op.span, text, format!("it may be {list}"));
            return;
        }
        let scope = op.attr(AttrKey::MemoryScope).is_some();
        if ordering == MemoryOrdering::Weak && scope {
            self.error(Code::BadOrdering, op.span, "a weak access must not have a scope");
        } else if ordering != MemoryOrdering::Weak && !scope {
            let text = format!("a {} access needs a scope", word(ordering));
            self.error_help(Code::BadOrdering, op.span, text, "add tl_blk, device or sys");
        }
    }

    /// An optional mask of the shape of the pointers.
    fn mask(&mut self, op: &'a Op, group: usize, pointers: &TileType) -> Checked {
        if op.operand(group).is_none() {
            return Some(());
        }
        let m = self.tile(op, group)?;
        self.kind(op, m, Kind::Bool, "the mask")?;
        self.same_shape(op, &[pointers, m])
    }

    /// The first operand, a tile of pointers, and the type of the elements that it points to.
    fn pointees(&mut self, op: &'a Op) -> Checked<(&'a TileType, TileType)> {
        let p = self.tile(op, 0)?;
        self.kind(op, p, Kind::Pointer, "the pointers")?;
        let Elem::Ptr(d) = p.elem else { return None };
        Some((p, TileType::of(p.shape.clone(), Elem::Num(d))))
    }

    fn alloca(&mut self, op: &'a Op) -> Checked {
        let r = self.result_tile(op, 0)?;
        self.rank(op, r, 0, "the result")?;
        self.kind(op, r, Kind::Pointer, "the result")?;
        let Elem::Ptr(d) = r.elem else { return None };
        let (n, align) = (op.int(AttrKey::NumElem).unwrap_or(0), op.int(AttrKey::Alignment).unwrap_or(0));
        if n <= 0 {
            return self.attribute(op, format!("num_elem = {n} must be positive"));
        }
        if n as u64 > (1 << 48) / d.bytes().max(1) {
            return self.attribute(op, format!("num_elem = {n} is too large for any memory"));
        }
        if align <= 0 || !(align as u64).is_power_of_two() || (align as u64) < d.bytes() {
            return self.attribute(op, format!("alignment = {align} must be a power of two of at least {}", d.bytes()));
        }
        Some(())
    }

    fn load_ptr(&mut self, op: &'a Op) -> Checked {
        self.ordering(op, &[MemoryOrdering::Weak, MemoryOrdering::Relaxed, MemoryOrdering::Acquire]);
        let (p, want) = self.pointees(op)?;
        self.mask(op, 1, p)?;
        if op.operand(2).is_some() {
            let pad = self.tile(op, 2)?;
            self.same(op, &want, pad)?;
        }
        self.token(op, 3)?;
        let r = self.result_tile(op, 0)?;
        self.same(op, &want, r)?;
        self.result_token(op, 1)
    }

    fn store_ptr(&mut self, op: &'a Op) -> Checked {
        self.ordering(op, &[MemoryOrdering::Weak, MemoryOrdering::Relaxed, MemoryOrdering::Release]);
        let (p, want) = self.pointees(op)?;
        let v = self.tile(op, 1)?;
        self.same(op, &want, v)?;
        self.mask(op, 2, p)?;
        self.token(op, 3)?;
        self.result_token(op, 0)
    }

    /// Returns true if an atomic mode works on an element type.
    fn mode_fits(mode: AtomicMode, d: DType) -> bool {
        match mode {
            AtomicMode::AddF => d.is_base_float(),
            AtomicMode::Xchg => matches!(d, DType::I32 | DType::I64 | DType::F32 | DType::F64),
            _ => matches!(d, DType::I32 | DType::I64),
        }
    }

    fn atomic(&mut self, op: &'a Op) -> Checked {
        use MemoryOrdering as M;
        self.ordering(op, &[M::Relaxed, M::Acquire, M::Release, M::AcqRel]);
        let (p, want) = self.pointees(op)?;
        let cas = op.opcode == Opcode::AtomicCasTko;
        for group in 1..if cas { 3 } else { 2 } {
            let v = self.tile(op, group)?;
            self.same(op, &want, v)?;
        }
        let d = want.num()?;
        let fits = match op.attr(AttrKey::Mode) {
            // GPUs have it for 16 bits, too, which the specification leaves out and Triton's programs use.
            _ if cas => Self::mode_fits(AtomicMode::Xchg, d) || matches!(d, DType::I16 | DType::F16 | DType::BF16),
            Some(Attr::Mode(m)) => Self::mode_fits(*m, d),
            _ => return self.attribute(op, "`atomic_rmw_tko` needs a mode"),
        };
        if !fits {
            let text = format!("this atomic does not work on {d}");
            let help = "integers are i32 or i64; addf takes f16, bf16, f32 or f64; exchanges take 32 or 64 bits";
            self.error_help(Code::BadElementType, op.span, text, help);
            return None;
        }
        let mask = if cas { 3 } else { 2 };
        self.mask(op, mask, p)?;
        self.token(op, mask + 1)?;
        let r = self.result_tile(op, 0)?;
        self.same(op, &want, r)?;
        self.result_token(op, 1)
    }

    fn view(&mut self, op: &'a Op, group: usize) -> Checked<&'a TileViewType> {
        match self.ty(op.operand(group)?)? {
            Type::View(v) => Some(v),
            other => {
                let text = format!("`{}` takes a view of tiles, not {}", name(op), show(other));
                self.error_help(Code::TypeMismatch, op.span, text, "make one with `make_partition_view`");
                None
            }
        }
    }

    fn view_access(&mut self, op: &'a Op) -> Checked {
        use MemoryOrdering as M;
        use Opcode as O;
        // The groups of view, index, value and token.
        let (v, i, value, t) = match op.opcode {
            O::LoadViewTko | O::MultimemLoadReduceViewTko => (0, 1, None, 2),
            O::StoreViewTko => (1, 2, Some(0), 3),
            O::MultimemReduceViewTko | O::MultimemStoreViewTko => (0, 2, Some(1), 3),
            _ => (0, 1, Some(2), 3),
        };
        match op.opcode {
            O::LoadViewTko | O::MultimemLoadReduceViewTko => self.ordering(op, &[M::Weak, M::Relaxed, M::Acquire]),
            O::StoreViewTko | O::MultimemStoreViewTko => self.ordering(op, &[M::Weak, M::Relaxed, M::Release]),
            O::MultimemReduceViewTko => self.ordering(op, &[M::Relaxed, M::Release]),
            _ => self.ordering(op, &[M::Relaxed]),
        }
        let view = self.view(op, v)?;
        let want = TileType::of(view.tile.iter().map(|&n| n.max(0) as u64).collect(), Elem::Num(view.tensor.elem));
        let tile = match value {
            Some(g) => self.tile(op, g)?,
            None => self.result_tile(op, 0)?,
        };
        self.same(op, &want, tile)?;
        self.indices(op, op.group(i), view)?;
        if let Some(Attr::Bools(b)) = op.attr(AttrKey::Inbounds)
            && b.len() != view.tile.len()
        {
            return self.attribute(op, format!("`inbounds` needs {} truth values, not {}", view.tile.len(), b.len()));
        }
        match op.opcode {
            O::AtomicRedViewTko => self.reduction(op, view)?,
            O::MultimemLoadReduceViewTko | O::MultimemReduceViewTko | O::MultimemStoreViewTko => {
                self.multicast(op, view)?;
            }
            _ => {}
        }
        self.token(op, t)?;
        self.result_token(op, if value.is_none() { 1 } else { 0 })
    }

    /// Checks accesses to memory that several devices share: they go through partition views, of elements that can be
    /// combined there.
    fn multicast(&mut self, op: &Op, view: &TileViewType) -> Checked {
        let name = name(op);
        if view.kind != ViewKind::Partition {
            self.error(Code::BadView, op.span, format!("`{name}` needs a partition view"));
            return None;
        }
        if view.tensor.ptr_attr != Some(PtrAttr::Multicast) {
            let text = format!("`{name}` needs a view of multicast memory");
            let help = "give the base pointer the type `tile<ptr<..., <multicast>>>`";
            self.error_help(Code::BadView, op.span, text, help);
            return None;
        }
        let (d, half) = (view.tensor.elem, [DType::F16, DType::BF16]);
        let fits = match op.reduction() {
            _ if matches!(d, DType::I32 | DType::I64) => true,
            Reduction::Add => d.is_base_float(),
            Reduction::Min | Reduction::Max => op.opcode == Opcode::MultimemLoadReduceViewTko && half.contains(&d),
            _ => false,
        };
        if !fits {
            let what = match op.reduction() {
                Reduction::Add => String::new(),
                r => format!(" with {}", r.word()),
            };
            return self.element(op, format!("`{name}`{what} does not work on {d}"));
        }
        Some(())
    }

    fn reduction(&mut self, op: &Op, view: &TileViewType) -> Checked {
        if matches!(op.attr(AttrKey::MemoryScope), Some(Attr::MemoryScope(MemoryScope::Sys))) {
            self.error(Code::BadOrdering, op.span, "`atomic_red_view_tko` needs scope tl_blk or device");
        }
        let Some(Attr::Mode(mode)) = op.attr(AttrKey::Mode) else {
            return self.attribute(op, "`atomic_red_view_tko` needs a mode");
        };
        if *mode == AtomicMode::Xchg {
            return self.attribute(op, "`atomic_red_view_tko` does not support exchange");
        }
        if !Self::mode_fits(*mode, view.tensor.elem) {
            return self.element(op, format!("this atomic does not work on {}", view.tensor.elem));
        }
        if view.padding.is_some() || matches!(view.kind, ViewKind::GatherScatter { .. }) {
            let text = "`atomic_red_view_tko` needs a partition or strided view without padding";
            self.error(Code::BadView, op.span, text);
            return None;
        }
        Some(())
    }

    /// One index per dimension, all scalars of one integer type; along a sparse dimension a list.
    fn indices(&mut self, op: &'a Op, index: &[ValueId], view: &TileViewType) -> Checked {
        if index.len() != view.tile.len() {
            let text = format!("a view of rank {} needs as many indices, not {}", view.tile.len(), index.len());
            self.error(Code::BadArity, op.span, text);
            return None;
        }
        let sparse = match view.kind {
            ViewKind::GatherScatter { sparse_dim } => Some(sparse_dim as usize),
            _ => None,
        };
        let mut scalar: Option<&TileType> = None;
        for (d, &v) in index.iter().enumerate() {
            let t = self.operand_tile(op, v)?;
            self.kind(op, t, Kind::Int, "an index")?;
            if sparse == Some(d) {
                if t.shape != [view.tile[d].max(0) as u64] {
                    let text = format!(
                        "the index along the sparse dimension must be a list of {}, not {}",
                        view.tile[d],
                        show_tile(t)
                    );
                    self.error(Code::BadRank, op.span, text);
                    return None;
                }
                continue;
            }
            self.rank(op, t, 0, "an index")?;
            match scalar {
                Some(first) => self.same(op, first, t)?,
                None => scalar = Some(t),
            }
        }
        Some(())
    }

    fn make_tensor_view(&mut self, op: &'a Op) -> Checked {
        let base = self.tile(op, 0)?;
        self.rank(op, base, 0, "the base")?;
        self.kind(op, base, Kind::Pointer, "the base")?;
        let ty = match self.ty(*op.results.first()?)? {
            Type::TensorView(t) => t,
            other => {
                self.mismatch(op, "a tensor view", &show(other));
                return None;
            }
        };
        if base.elem != Elem::Ptr(ty.elem) {
            self.mismatch(op, &show_tile(base), &format!("a tensor view of {}", ty.elem));
            return None;
        }
        if base.ptr_attr != ty.ptr_attr {
            self.mismatch(op, &show_tile(base), &show(self.ty(*op.results.first()?)?));
            return None;
        }
        for (group, list, what) in [(1, &ty.shape, "extents"), (2, &ty.strides, "strides")] {
            let dynamic = list.iter().filter(|n| n.is_none()).count();
            if op.group(group).len() != dynamic {
                let text = format!("the type has {dynamic} dynamic {what}, but {} are given", op.group(group).len());
                self.error(Code::BadArity, op.span, text);
                return None;
            }
        }
        let mut first: Option<&TileType> = None;
        for &v in op.group(1).iter().chain(op.group(2)) {
            let t = self.operand_tile(op, v)?;
            self.rank(op, t, 0, "an extent or stride")?;
            self.kind(op, t, Kind::Int, "an extent or stride")?;
            match first {
                Some(f) => self.same(op, f, t)?,
                None => first = Some(t),
            }
        }
        Some(())
    }

    fn make_view(&mut self, op: &'a Op) -> Checked {
        let (source, result) = (self.ty(op.operand(0)?)?, self.ty(*op.results.first()?)?);
        let (Type::TensorView(tensor), Type::View(view)) = (source, result) else {
            self.mismatch(op, &show(source), &show(result));
            return None;
        };
        let kind = match op.opcode {
            Opcode::MakePartitionView => matches!(view.kind, ViewKind::Partition),
            Opcode::MakeStridedView => matches!(view.kind, ViewKind::Strided { .. }),
            _ => matches!(view.kind, ViewKind::GatherScatter { .. }),
        };
        if !kind || view.tensor != **tensor {
            self.mismatch(op, &show(source), &show(result));
        }
        Some(())
    }

    fn extents(&mut self, op: &'a Op) -> Checked {
        let source = self.ty(op.operand(0)?)?;
        let rank = match (source, op.opcode) {
            (Type::TensorView(t), Opcode::GetTensorShape) => t.shape.len(),
            (Type::View(v), Opcode::GetIndexSpaceShape) => v.tile.len(),
            _ => {
                let text = format!("`{}` does not take {}", name(op), show(source));
                self.error(Code::TypeMismatch, op.span, text);
                return None;
            }
        };
        if op.results.len() != rank {
            let text = format!("`{}` gives {rank} numbers here, not {}", name(op), op.results.len());
            self.error(Code::BadArity, op.span, text);
            return None;
        }
        let mut first: Option<&TileType> = None;
        for i in 0..rank {
            let t = self.result_tile(op, i)?;
            self.rank(op, t, 0, "a result")?;
            self.kind(op, t, Kind::Int, "a result")?;
            match first {
                Some(f) => self.same(op, f, t)?,
                None => first = Some(t),
            }
        }
        Some(())
    }

    fn scatter_store(&mut self, op: &'a Op) -> Checked {
        let src = self.tile(op, 0)?;
        let dst = match self.ty(op.operand(1)?)? {
            Type::TensorView(t) => t,
            other => {
                self.mismatch(op, "a tensor view", &show(other));
                return None;
            }
        };
        let rows = self.tile(op, 2)?;
        let dim = self.dim(op, src)?;
        self.kind(op, rows, Kind::Int, "the rows")?;
        self.rank(op, rows, 1, "the rows")?;
        let rank = src.shape.len();
        let fits = dst.shape.len() == rank && src.elem == Elem::Num(dst.elem) && rows.shape == [src.shape[dim]];
        if !fits {
            let text = format!(
                "{} rows {} do not fit {}",
                show_tile(src),
                show_tile(rows),
                show(&Type::TensorView(Box::new((**dst).clone())))
            );
            self.error(Code::TypeMismatch, op.span, text);
            return None;
        }
        if op.group(3).len() + 1 != rank {
            let text = format!("a scatter of rank {rank} needs {} offsets, not {}", rank - 1, op.group(3).len());
            self.error(Code::BadArity, op.span, text);
            return None;
        }
        for &v in op.group(3) {
            let t = self.operand_tile(op, v)?;
            self.rank(op, t, 0, "an offset")?;
            self.kind(op, t, Kind::Int, "an offset")?;
        }
        self.token(op, 4)?;
        self.result_token(op, 0)
    }
}
