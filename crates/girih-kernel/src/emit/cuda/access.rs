//! Loads and stores as CUDA: elements, two or four of them at once as `float4` and its like, and more as a union of words
//! and elements, `f16x8`.

use super::atomic::register;
use super::stmt::{Printer, Result};
use crate::index::{Ix, Mask};
use crate::kernel::ir::*;
use crate::num::DType;

/// Stores an element of 4 bits. Another thread may store the other element of the byte, so each changes only its own
/// bits.
const STORE_HALF: &str = "INLINE void store_half(void *p, long long i, unsigned char x) {
  unsigned long long at = (unsigned long long)p + (i >> 1);
  unsigned *word = (unsigned *)(at & ~3ull);
  int s = (int)(at & 3) * 8 + (int)(i & 1) * 4;
  atomicAnd(word, ~(15u << s));
  atomicOr(word, (x & 15u) << s);
}
";

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

/// The words that a vector of more than four elements is moved as.
fn words(ty: Ty) -> Option<&'static str> {
    match (ty.lanes, u64::from(ty.lanes) * ty.dtype().bytes()) {
        (..=4, _) => None,
        (_, 8) => Some("uint2"),
        _ => Some("uint4"),
    }
}

/// The memory operand of a PTX instruction.
pub(super) struct Target {
    /// `&count[0]`
    pub address: String,
    pub dtype: DType,
    pub memory: Memory,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    Global,
    Shared,
    /// The memory that the address is in at run time.
    Any,
}

impl Memory {
    /// The word in the instruction, the suffix of the function's name, and the operand that holds the pointer `p`.
    pub fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Memory::Global => (".global", "", "\"l\"(__cvta_generic_to_global(p))"),
            Memory::Shared => (".shared", "_shared", "\"r\"((unsigned int)__cvta_generic_to_shared(p))"),
            Memory::Any => ("", "_any", "\"l\"(p)"),
        }
    }
}

impl Printer<'_> {
    pub(super) fn target(&mut self, place: &Address) -> Target {
        let (array, index, dtype) = self.place_parts(place);
        let memory = match place {
            Address::Slot { buf, .. } if self.kernel.slots[*buf].space == Space::Shared => Memory::Shared,
            Address::Mem { .. } if !self.own => Memory::Global,
            _ => Memory::Any,
        };
        Target { address: format!("&{array}[{index}]"), dtype, memory }
    }

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
                (name, self.subscript(index), *elem)
            }
            Address::Slot { buf, index } => {
                let slot = &self.kernel.slots[*buf];
                (slot.name.to_string(), self.subscript(index), slot.elem.held())
            }
        }
    }

    /// An index in brackets needs no parentheses around it.
    fn subscript(&mut self, index: &Ix) -> String {
        let text = self.ix.print(index);
        match text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
            Some(inner) if !inner.contains(['(', ')']) => inner.to_string(),
            _ => text,
        }
    }

    /// Returns true if two elements share a byte of the place.
    fn halves(&self, place: &Address) -> bool {
        matches!(place, Address::Mem { elem, .. } if elem.bits() == 4)
    }

    pub(super) fn load(&mut self, dst: ValId, place: &Address, order: Order) -> Result<String> {
        let ty = self.val_ty(dst);
        let (array, index, _) = self.place_parts(place);
        if ty.is_vector() {
            let vector = self.vector(ty)?;
            self.weak(order, "a load of several elements")?;
            return Ok(match words(ty) {
                Some(words) => format!("{vector}{{*(const {words} *)&{array}[{index}]}}"),
                None => format!("*(const {vector} *)&{array}[{index}]"),
            });
        }
        if self.halves(place) {
            if order != Order::Weak {
                let u8 = self.support.ty("u8", 1);
                let address = format!("(const {u8} *){array} + (({index}) >> 1)");
                let byte = Target { address, dtype: DType::I8, memory: self.target(place).memory };
                let byte = self.ordered_load(Ty::num(DType::I8, 1), &byte, order)?;
                return Ok(format!("({byte} >> (({index}) & 1) * 4) & 15"));
            }
            return Ok(format!(
                "{}((const {} *){array}, {index})",
                self.support.call("load_half", 1),
                self.support.ty("u8", 1)
            ));
        }
        if order != Order::Weak {
            let at = self.target(place);
            return self.ordered_load(ty, &at, order);
        }
        Ok(match ty.elem {
            Elem::Num(DType::I1) => format!("{array}[{index}] != 0"),
            Elem::Num(_) => format!("{array}[{index}]"),
            Elem::Ptr(_) => format!("({}){array}[{index}]", self.ty(ty)),
        })
    }

    pub(super) fn store(&mut self, place: &Address, value: Opnd, mask: &Mask, order: Order) -> Result<()> {
        let (array, index, _) = self.place_parts(place);
        let ty = match value {
            Opnd::Val(v) => self.val_ty(v),
            Opnd::Const { dtype, .. } => Ty::num(dtype, 1),
        };
        let v = self.opnd(value, ty);
        let statement = if ty.is_vector() {
            self.weak(order, "a store of several elements")?;
            self.vector_store(ty, place, &v)?
        } else if self.halves(place) {
            self.support.block("store_half", STORE_HALF);
            let stored = format!("store_half({array}, {index}, {v});");
            // Its atomic operations have no order of their own.
            if order == Order::Weak { stored } else { format!("{{ __threadfence(); {stored} }}") }
        } else if order != Order::Weak {
            let at = self.target(place);
            self.ordered_store(ty, &at, &v, order)?
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

    /// A store of several elements at once. The compiler may not join stores of single elements, so this names the
    /// instruction.
    fn vector_store(&mut self, ty: Ty, place: &Address, v: &str) -> Result<String> {
        let (vector, at) = (self.vector(ty)?, self.target(place));
        if at.memory == Memory::Any {
            return Ok(format!("*({vector} *){} = {v};", at.address));
        }
        let (d, (space, suffix, p)) = (at.dtype, at.memory.words());
        // The content of a register: an element, or a word of a vector of many.
        let (bits, moved, of) = match words(ty) {
            Some(_) => (32, ty.lanes * d.bytes() as u32 / 4, "v.words"),
            None => (d.bytes() * 8, ty.lanes, "v"),
        };
        let (kind, r) = match d {
            DType::F32 | DType::TF32 => ('f', 'f'),
            DType::F64 => ('f', 'd'),
            _ => ('u', register(bits as u32)),
        };
        let cast = if bits == 8 { "(unsigned short)" } else { "" };
        let parts = ["x", "y", "z", "w"].iter().take(moved as usize);
        let operands: Vec<String> = parts.map(|part| format!("\"{r}\"({cast}{of}.{part})")).collect();
        let numbers: Vec<String> = (1..=moved).map(|n| format!("%{n}")).collect();
        let name = format!("store_{d}x{}{suffix}", ty.lanes);
        let body = format!(
            "  asm volatile(\"st{space}.v{moved}.{kind}{bits} [%0], {{{}}};\" : : {p}, {} : \"memory\");\n",
            numbers.join(", "),
            operands.join(", ")
        );
        self.support.block(&name, &format!("INLINE void {name}(void *p, {vector} v) {{\n{body}}}\n"));
        Ok(format!("{name}({}, {v});", at.address))
    }

    fn weak(&self, order: Order, what: &str) -> Result<()> {
        match order {
            Order::Weak => Ok(()),
            _ => self.refuse(&format!("{what} has no memory order on a GPU")),
        }
    }

    /// The type that moves several elements.
    pub(super) fn vector(&mut self, ty: Ty) -> Result<String> {
        let none = || format!("a thread of a GPU moves 2, 4, 8 or 16 elements and at most 16 bytes at once, not {ty}");
        self.vector_ty(ty).map_or_else(|| self.refuse(&none()), Ok)
    }

    fn vector_ty(&mut self, ty: Ty) -> Option<String> {
        let Elem::Num(d) = ty.elem else { return None };
        if !matches!(ty.lanes, 2 | 4 | 8 | 16) || d.bits() == 4 || u64::from(ty.lanes) * d.bytes() > 16 {
            return None;
        }
        let Some(words) = words(ty) else { return Some(format!("{}{}", vector_base(d), ty.lanes)) };
        let (name, element) = (format!("{d}x{}", ty.lanes), self.support.memory_ty(d.name(), 1));
        self.support.block(&name, &format!("union {name} {{ {words} words; {element} at[{}]; }};\n", ty.lanes));
        Some(name)
    }

    /// An element of a vector: `v.y`, `v.at[5]`.
    pub(super) fn element(&mut self, vector: ValId, lane: &Ix) -> Result<String> {
        let ty = self.val_ty(vector);
        self.vector(ty)?;
        let name = self.name(vector).to_string();
        let constant = match lane {
            Ix::Const(at) if !(0..i64::from(ty.lanes)).contains(at) => {
                return self.refuse(&format!("element {at} of a vector of {}", ty.lanes));
            }
            Ix::Const(at) => Some(*at as usize),
            _ => None,
        };
        // An element with a variable index is reached through memory, unless the compiler unrolls the access.
        Ok(match (words(ty), constant) {
            (Some(_), _) => format!("{name}.at[{}]", self.ix.print(lane)),
            (None, Some(at)) => format!("{name}.{}", ["x", "y", "z", "w"].get(at).unwrap_or(&"x")),
            (None, None) => format!("(&{name}.x)[{}]", self.ix.print(lane)),
        })
    }

    /// A vector of equal elements; a vector without a type is refused where it is used.
    pub(super) fn all(&mut self, ty: Ty, one: &str) -> String {
        let Some(vector) = self.vector_ty(ty) else { return one.to_string() };
        if words(ty).is_none() {
            return format!("{vector}{{{}}}", vec![one; ty.lanes as usize].join(", "));
        }
        let (name, element) = (format!("all_{vector}"), self.support.memory_ty(ty.dtype().name(), 1));
        let body = format!("  {vector} v;\n  for (int i = 0; i < {}; i++) v.at[i] = x;\n  return v;\n", ty.lanes);
        self.support.block(&name, &format!("INLINE {vector} {name}({element} x) {{\n{body}}}\n"));
        format!("{name}({one})")
    }
}
