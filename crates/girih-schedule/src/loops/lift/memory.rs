//! Memory: pointers, atomics, globals, and views dissolved into index expressions and conditions.

use std::borrow::Cow;
use std::rc::Rc;

use super::{Lift, Lifted, Result1, Tensor, bug, dtype_of, int_attr, konst, operand, result};
use crate::cuda_tile::ir::{Attr, AttrKey, Op, Opcode, Padding, TensorViewType, TileViewType, Type, ValueId, ViewKind};
use crate::index::{Cmp, Cond, Ix, Mask};
use crate::loops::ir::{LoopKind, Mem, Opnd, Order, RmwOp, SiteId, Stmt, Ty};
use crate::num::DType;
use crate::num::convert::from_f64;
use crate::num::op::Rounding;

fn rmw_op(op: &Op) -> Result1<RmwOp> {
    match op.attr(AttrKey::Mode) {
        Some(Attr::Mode(mode)) => Ok(*mode),
        _ => Err(bug("an atomic without a mode", op.span)),
    }
}

/// The memory that an operation accesses.
enum At<'o> {
    /// A tile of pointers, and the mask of its lanes.
    Pointers(ValueId, Option<ValueId>),
    /// The tile of a view that these indices (unsigned) name.
    View(Rc<Tensor>, Rc<TileViewType>, Cow<'o, [ValueId]>),
}

impl Lift<'_> {
    pub(super) fn get_global(&mut self, op: &Op) -> Result1<()> {
        let Some(Attr::Str(name)) = op.attr(AttrKey::Name).or(op.attr(AttrKey::Global)) else {
            return Err(bug("a get_global without a name", op.span));
        };
        let Some(global) = self.module.globals.iter().position(|g| g.name == *name) else {
            return Err(bug("a global that is not there", op.span));
        };
        let result = result(op, 0)?;
        let dst = self.new_val(self.elem(result)?, &self.name(result, "global"));
        self.emit(Stmt::GlobalAddr { dst, global: global as u32 });
        self.bind(result, Lifted::Scalar(Opnd::Val(dst)));
        Ok(())
    }

    /// Block ids and grid sizes along x, y, z.
    pub(super) fn launch_numbers(&mut self, op: &Op, number: fn(u8) -> Ix) -> Result1<()> {
        for (d, &r) in op.results.iter().enumerate() {
            let dtype = dtype_of(self.elem(r)?);
            let value = self.index(number(d as u8), dtype);
            self.bind(r, Lifted::Scalar(value));
        }
        Ok(())
    }

    pub(super) fn alloca(&mut self, op: &Op) -> Result1<()> {
        let result = result(op, 0)?;
        let ty = self.elem(result)?;
        let elements = int_attr(op, AttrKey::NumElem)?.max(0) as u64;
        let dtype = dtype_of(ty);
        let bytes = if dtype.bits() == 4 { elements.div_ceil(2) } else { elements.saturating_mul(dtype.bytes()) };
        let align = op.int(AttrKey::Alignment).unwrap_or(1).max(1) as u64;
        let site = self.site(op);
        let dst = self.new_val(ty, &self.name(result, "scratch"));
        self.emit(Stmt::Alloca { dst, bytes, align, site });
        self.bind(result, Lifted::Scalar(Opnd::Val(dst)));
        Ok(())
    }

    // Accesses, of tiles of pointers and of tiles of views.

    /// The memory element of an access at an index of its tile, and the mask under which it takes place.
    fn access(&mut self, at: &At<'_>, idx: &[Ix], op: &Op) -> Result1<(Mem, Mask)> {
        match at {
            At::Pointers(pointer, mask) => self.pointee(*pointer, *mask, idx, op),
            At::View(tensor, view, indices) => self.element(tensor, view, indices, idx),
        }
    }

    /// The tile of a view that indices name.
    fn tile_of_view<'o>(&mut self, view: ValueId, indices: &'o [ValueId], op: &Op) -> Result1<At<'o>> {
        let (tensor, view) = self.view(view)?;
        self.check_tile(&tensor, &view, indices, op)?;
        Ok(At::View(tensor, view, indices.into()))
    }

    /// The memory element an address names, and the mask of its lane.
    fn pointee(&mut self, pointer: ValueId, mask: Option<ValueId>, idx: &[Ix], op: &Op) -> Result1<(Mem, Mask)> {
        let elem = dtype_of(self.elem(pointer)?);
        let Opnd::Val(base) = self.at(pointer, idx)? else { return Err(bug("a constant address", op.span)) };
        let never = Cond { lhs: Ix::Const(0), cmp: Cmp::Ne, rhs: Ix::Const(0) };
        let mask = match mask.map(|m| self.at(m, idx)).transpose()? {
            Some(Opnd::Val(v)) => Mask { conds: vec![], vals: vec![v] },
            Some(Opnd::Const { bits: 0, .. }) => Mask { conds: vec![never], vals: vec![] },
            Some(Opnd::Const { .. }) | None => Mask::default(),
        };
        Ok((Mem { base, index: Ix::Const(0), elem }, mask))
    }

    pub(super) fn load_ptr(&mut self, op: &Op) -> Result1<()> {
        let site = self.site(op);
        self.load(op, site, &At::Pointers(operand(op, 0)?, op.operand(1)))
    }

    pub(super) fn load_view(&mut self, op: &Op) -> Result1<()> {
        let site = self.site(op);
        let at = self.tile_of_view(operand(op, 0)?, op.group(1), op)?;
        self.load(op, site, &at)
    }

    fn load(&mut self, op: &Op, site: SiteId, at: &At<'_>) -> Result1<()> {
        let (loaded, order) = (result(op, 0)?, op.ordering());
        let (ty, name) = (self.elem(loaded)?, self.name(loaded, "x"));
        self.define_in_order(loaded, in_order(order), |l, idx| {
            let (mem, mask) = l.access(at, idx, op)?;
            let other = match at {
                At::Pointers(..) => op.operand(2).map(|p| l.at(p, idx)).transpose()?,
                At::View(_, view, _) => view.padding.map(|p| konst(mem.elem, padding_bits(p, mem.elem))),
            };
            let dst = l.new_val(ty, &name);
            l.emit(Stmt::Load { dst, mem, mask, other, order, site });
            Ok(Opnd::Val(dst))
        })?;
        self.token(op, 1);
        Ok(())
    }

    fn token(&mut self, op: &Op, i: usize) {
        if let Some(&t) = op.results.get(i) {
            self.bind(t, Lifted::Token);
        }
    }

    pub(super) fn store_ptr(&mut self, op: &Op) -> Result1<()> {
        let site = self.site(op);
        self.store(op, site, op.ordering(), &At::Pointers(operand(op, 0)?, op.operand(2)), operand(op, 1)?)
    }

    /// The groups of the view and the value are given; the third has the indices.
    pub(super) fn store_view(&mut self, op: &Op, view: usize, value: usize) -> Result1<()> {
        let site = self.site(op);
        let at = self.tile_of_view(operand(op, view)?, op.group(2), op)?;
        self.store(op, site, op.ordering(), &at, operand(op, value)?)
    }

    fn store(&mut self, op: &Op, site: SiteId, order: Order, at: &At<'_>, value: ValueId) -> Result1<()> {
        self.update(op, in_order(order), at, value, |_, mem, mask, value| Stmt::Store { mem, value, mask, order, site })
    }

    /// Writes memory for each element of a value.
    fn update(
        &mut self,
        op: &Op,
        kind: LoopKind,
        at: &At<'_>,
        value: ValueId,
        write: impl FnOnce(&mut Self, Mem, Mask, Opnd) -> Stmt,
    ) -> Result1<()> {
        let shape = &self.tile_ty(value)?.shape;
        self.nest(shape, kind, |l, idx| {
            // The rows of a view are read behind the value, and addresses before it.
            let early = matches!(at, At::Pointers(..)).then(|| l.access(at, idx, op)).transpose()?;
            let value = l.at(value, idx)?;
            let (mem, mask) = early.map_or_else(|| l.access(at, idx, op), Ok)?;
            let stmt = write(l, mem, mask, value);
            l.emit(stmt);
            Ok(())
        })?;
        self.token(op, 0);
        Ok(())
    }

    pub(super) fn atomic_cas(&mut self, op: &Op) -> Result1<()> {
        let (at, cmp, value) = (At::Pointers(operand(op, 0)?, op.operand(3)), operand(op, 1)?, operand(op, 2)?);
        let (order, site) = (op.ordering(), self.site(op));
        let old = result(op, 0)?;
        let (ty, name) = (self.elem(old)?, self.name(old, "old"));
        self.define_in_order(old, LoopKind::Serial, |l, idx| {
            let (mem, mask) = l.access(&at, idx, op)?;
            let (cmp, value) = (l.at(cmp, idx)?, l.at(value, idx)?);
            let dst = l.new_val(ty, &name);
            l.emit(Stmt::Cas { dst, mem, cmp, value, mask, order, site });
            Ok(Opnd::Val(dst))
        })?;
        self.token(op, 1);
        Ok(())
    }

    pub(super) fn atomic_rmw(&mut self, op: &Op) -> Result1<()> {
        let (at, value) = (At::Pointers(operand(op, 0)?, op.operand(2)), operand(op, 1)?);
        let (order, site, rmw) = (op.ordering(), self.site(op), rmw_op(op)?);
        let old = result(op, 0)?;
        let (ty, name) = (self.elem(old)?, self.name(old, "old"));
        self.define_in_order(old, LoopKind::Serial, |l, idx| {
            let (mem, mask) = l.access(&at, idx, op)?;
            let value = l.at(value, idx)?;
            let dst = l.new_val(ty, &name);
            l.emit(Stmt::Rmw { dst, op: rmw, mem, value, mask, order, site });
            Ok(Opnd::Val(dst))
        })?;
        self.token(op, 1);
        Ok(())
    }

    // Views.

    pub(super) fn make_tensor_view(&mut self, op: &Op) -> Result1<()> {
        let view = result(op, 0)?;
        let Type::TensorView(ty) = self.func().ty(view) else { return Err(bug("a tensor view was expected", op.span)) };
        let Opnd::Val(base) = self.scalar(operand(op, 0)?)? else { return Err(bug("a constant address", op.span)) };
        self.check_sizes(op.group(1), "an extent", op)?;
        self.check_sizes(op.group(2), "a stride", op)?;
        let shape = self.sizes(&ty.shape, op.group(1), op)?;
        let strides = self.sizes(&ty.strides, op.group(2), op)?;
        self.bind(view, Lifted::Tensor(Rc::new(Tensor { base, elem: ty.elem, shape, strides })));
        Ok(())
    }
    fn sizes(&self, stat: &[Option<i64>], dynamic: &[ValueId], op: &Op) -> Result1<Vec<Ix>> {
        let mut dynamic = dynamic.iter();
        stat.iter()
            .map(|s| match s {
                Some(n) => Ok(Ix::Const(*n)),
                None => {
                    let &v = dynamic.next().ok_or_else(|| bug("a dynamic size is missing", op.span))?;
                    Ok(self.ix(self.scalar(v)?, false))
                }
            })
            .collect()
    }

    pub(super) fn make_view(&mut self, op: &Op) -> Result1<()> {
        let (tensor, view) = (self.tensor(operand(op, 0)?)?, result(op, 0)?);
        let Type::View(ty) = self.func().ty(view) else { return Err(bug("a view was expected", op.span)) };
        self.bind(view, Lifted::View(tensor, Rc::new((**ty).clone())));
        Ok(())
    }
    fn tensor(&self, v: ValueId) -> Result1<Rc<Tensor>> {
        match self.value(v)? {
            Lifted::Tensor(t) | Lifted::View(t, _) => Ok(t),
            _ => Err(bug("a tensor view was expected", self.func().values[v].span)),
        }
    }
    fn view(&self, v: ValueId) -> Result1<(Rc<Tensor>, Rc<TileViewType>)> {
        match self.value(v)? {
            Lifted::View(t, ty) => Ok((t, ty)),
            _ => Err(bug("a view was expected", self.func().values[v].span)),
        }
    }

    pub(super) fn get_tensor_shape(&mut self, op: &Op) -> Result1<()> {
        let tensor = self.tensor(operand(op, 0)?)?;
        for (&r, size) in op.results.iter().zip(&tensor.shape) {
            let dtype = dtype_of(self.elem(r)?);
            let value = self.index(size.clone(), dtype);
            self.bind(r, Lifted::Scalar(value));
        }
        Ok(())
    }

    pub(super) fn get_index_space_shape(&mut self, op: &Op) -> Result1<()> {
        let (tensor, view) = self.view(operand(op, 0)?)?;
        for (i, &r) in op.results.iter().enumerate() {
            let dtype = dtype_of(self.elem(r)?);
            let value = self.index(tiles_along(&tensor, &view, i), dtype);
            self.bind(r, Lifted::Scalar(value));
        }
        Ok(())
    }

    /// The element at `idx` of the tile that the view's `indices` (unsigned) name, and the conditions under which it is in the tensor.
    fn element(
        &mut self,
        tensor: &Tensor,
        view: &TileViewType,
        indices: &[ValueId],
        idx: &[Ix],
    ) -> Result1<(Mem, Mask)> {
        let mut mask = Mask::default();
        let mut index = Ix::Const(0);
        for (i, (&v, ix)) in indices.iter().zip(idx).enumerate() {
            let d = tensor_dim(view, i);
            let (Some(size), Some(stride)) = (tensor.shape.get(d), tensor.strides.get(d)) else { continue };
            let sparse = matches!(view.kind, ViewKind::GatherScatter { sparse_dim } if sparse_dim as usize == i);
            let o = if sparse { self.at(v, std::slice::from_ref(ix))? } else { self.scalar(v)? };
            let number = self.ix(o, true);
            if dtype_of(self.opnd_ty(o)) == DType::I64 && !matches!(number, Ix::Const(c) if (0..1 << 31).contains(&c)) {
                // A 64-bit number times a tile's size might leave 64 bits.
                let limit = if sparse { size.clone() } else { tiles_along(tensor, view, i) };
                mask.conds.push(Cond { lhs: Ix::Const(0), cmp: Cmp::Le, rhs: number.clone() });
                mask.conds.push(Cond { lhs: number.clone(), cmp: Cmp::Lt, rhs: limit });
            }
            let at = if sparse { number } else { Ix::add(Ix::mul(number, Ix::Const(traversal(view, i))), ix.clone()) };
            mask.conds.push(Cond { lhs: at.clone(), cmp: Cmp::Lt, rhs: size.clone() });
            index = Ix::add(index, Ix::mul(at, stride.clone()));
        }
        Ok((Mem { base: tensor.base, index, elem: tensor.elem }, mask))
    }

    /// The groups of the indices and the value are given.
    pub(super) fn reduce_view(&mut self, op: &Op, indices: usize, value: usize) -> Result1<()> {
        let (value, order, site) = (operand(op, value)?, op.ordering(), self.site(op));
        let (tensor, _) = self.view(operand(op, 0)?)?;
        let rmw = match op.opcode {
            Opcode::MultimemReduceViewTko => op.reduction().mode(tensor.elem),
            _ => rmw_op(op)?,
        };
        let at = self.tile_of_view(operand(op, 0)?, op.group(indices), op)?;
        self.update(op, LoopKind::Serial, &at, value, |l, mem, mask, value| {
            let dst = l.new_val(Ty::Num(tensor.elem), "old");
            Stmt::Rmw { dst, op: rmw, mem, value, mask, order, site }
        })
    }

    /// Rows (along `dim`) chosen by a tile of row numbers; the other dimensions start at the offsets.
    pub(super) fn scatter_store(&mut self, op: &Op) -> Result1<()> {
        let (value, tensor) = (operand(op, 0)?, self.tensor(operand(op, 1)?)?);
        let (rows, offsets) = (operand(op, 2)?, op.group(3));
        let dim = int_attr(op, AttrKey::Dim)? as usize;
        let view = TileViewType {
            kind: ViewKind::GatherScatter { sparse_dim: dim as u32 },
            tile: vec![1; self.tile_ty(value)?.shape.len()],
            tensor: TensorViewType { elem: tensor.elem, shape: vec![], strides: vec![], ptr_attr: None },
            dim_map: vec![],
            padding: None,
        };
        let mut indices = offsets.to_vec();
        if dim > indices.len() {
            return Err(bug("a dimension out of range", op.span));
        }
        indices.insert(dim, rows);
        let site = self.site(op);
        self.store(op, site, Order::Weak, &At::View(tensor, Rc::new(view), indices.into()), value)
    }
}

/// The iterations of a nest of accesses with an order are not independent.
fn in_order(order: Order) -> LoopKind {
    if order == Order::Weak { LoopKind::Free } else { LoopKind::Serial }
}

/// The tensor dimension that dimension `i` of a view's tiles walks.
pub(super) fn tensor_dim(view: &TileViewType, i: usize) -> usize {
    match view.kind {
        ViewKind::GatherScatter { .. } => i,
        _ => view.dim_map.get(i).map_or(i, |&d| d as usize),
    }
}

/// Elements from one tile to the next along dimension `i`.
pub(super) fn traversal(view: &TileViewType, i: usize) -> i64 {
    match &view.kind {
        ViewKind::Strided { traversal_strides } => traversal_strides.get(i).copied().unwrap_or(1) as i64,
        ViewKind::Partition => view.tile.get(i).copied().unwrap_or(1) as i64,
        ViewKind::GatherScatter { .. } => 1,
    }
}

/// The size of a view's index space along dimension `i`.
pub(super) fn tiles_along(tensor: &Tensor, view: &TileViewType, i: usize) -> Ix {
    let size = tensor.shape.get(tensor_dim(view, i)).cloned().unwrap_or(Ix::Const(1));
    Ix::ceil_div(size, Ix::Const(traversal(view, i)))
}

/// The bits of a padding value.
fn padding_bits(padding: Padding, d: DType) -> u64 {
    let value = match padding {
        Padding::Zero => return 0,
        Padding::NegZero => -0.0,
        Padding::Nan => f64::NAN,
        Padding::PosInf => f64::INFINITY,
        Padding::NegInf => f64::NEG_INFINITY,
    };
    from_f64(d, value, Rounding::NearestEven)
}
