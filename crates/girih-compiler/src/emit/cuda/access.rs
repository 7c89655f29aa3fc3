//! Loads and stores as CUDA: elements, and two or four of them at once as `float4` and its like.

use super::stmt::{Printer, Result};
use crate::index::Mask;
use crate::kernel::ir::*;
use crate::num::DType;

/// CUDA's vector of elements of the type, without its length: `float` of `float4`.
pub(super) fn vector_base(d: DType) -> &'static str {
    match d {
        DType::F32 | DType::TF32 => "float",
        DType::F64 => "double",
        DType::I8 => "char",
        DType::I16 => "short",
        DType::I32 => "int",
        DType::I64 => "longlong",
        DType::F16 | DType::BF16 => "ushort",
        _ => "uchar",
    }
}

impl Printer<'_> {
    /// The array, the index and the element of a place.
    pub(super) fn place_parts(&mut self, place: &Address) -> (String, String, DType) {
        match place {
            Address::Mem { base, index, elem } => {
                let name = self.name(*base).to_string();
                let typed = self.val_ty(*base).elem == Elem::Ptr(*elem);
                let name = match typed {
                    true => name,
                    false => format!("(({} *){name})", self.support.memory_ty(elem.name(), 1)),
                };
                (name, self.ix.print(index), *elem)
            }
            Address::Slot { buf, index } => {
                let slot = &self.kernel.slots[*buf];
                (slot.name.to_string(), self.ix.print(index), slot.elem.held())
            }
        }
    }

    /// Whether two elements share a byte of the place.
    fn halves(&self, place: &Address) -> bool {
        matches!(place, Address::Mem { elem, .. } if elem.bits() == 4)
    }

    pub(super) fn load(&mut self, dst: ValId, place: &Address, order: Order) -> Result<String> {
        let ty = self.val_ty(dst);
        let (array, index, d) = self.place_parts(place);
        if ty.is_vector() {
            let vector = self.vector(ty)?;
            self.weak(order, "a load of several elements")?;
            return Ok(format!("*(const {vector} *)&{array}[{index}]"));
        }
        if self.halves(place) {
            self.weak(order, "a load of an element of 4 bits")?;
            return Ok(format!(
                "{}((const {} *){array}, {index})",
                self.support.call("load_half", 1),
                self.support.ty("u8", 1)
            ));
        }
        if order != Order::Weak {
            return self.ordered_load(ty, d, &format!("&{array}[{index}]"), order);
        }
        Ok(match ty.elem {
            Elem::Num(DType::I1) => format!("{array}[{index}] != 0"),
            Elem::Num(_) => format!("{array}[{index}]"),
            Elem::Ptr(_) => format!("({}){array}[{index}]", self.ty(ty)),
        })
    }

    pub(super) fn store(&mut self, place: &Address, value: Opnd, mask: &Mask, order: Order) -> Result<()> {
        let (array, index, d) = self.place_parts(place);
        let ty = match value {
            Opnd::Val(v) => self.val_ty(v),
            Opnd::Const { dtype, .. } => Ty::num(dtype, 1),
        };
        let v = self.opnd(value, ty);
        let statement = if ty.is_vector() {
            self.weak(order, "a store of several elements")?;
            format!("*({} *)&{array}[{index}] = {v};", self.vector(ty)?)
        } else if self.halves(place) {
            return self.refuse(
                "two elements of 4 bits share a byte, which two threads may write at once: store 8 bits instead",
            );
        } else if order != Order::Weak {
            self.ordered_store(ty, d, &format!("&{array}[{index}]"), &v, order)?
        } else if let Elem::Ptr(_) = ty.elem {
            format!("{array}[{index}] = (long long){v};")
        } else {
            format!("{array}[{index}] = {v};")
        };
        let line = match mask.is_always() {
            true => statement,
            false => format!("if ({}) {statement}", self.mask(mask)),
        };
        self.out.line(&line);
        Ok(())
    }

    fn weak(&self, order: Order, what: &str) -> Result<()> {
        match order {
            Order::Weak => Ok(()),
            _ => self.refuse(&format!("{what} has no memory order on a GPU")),
        }
    }

    /// The type that moves several elements.
    pub(super) fn vector(&self, ty: Ty) -> Result<String> {
        match (ty.elem, ty.lanes) {
            (Elem::Num(d), 2 | 4) if d.bits() != 4 && u64::from(ty.lanes) * d.bytes() <= 16 => {
                Ok(format!("{}{}", vector_base(d), ty.lanes))
            }
            _ => {
                self.refuse(&format!("a thread of a GPU moves 2 or 4 elements and at most 16 bytes at once, not {ty}"))
            }
        }
    }
}
