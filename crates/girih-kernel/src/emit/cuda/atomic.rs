//! Atomic operations, and loads and stores with an order, as PTX in small functions.
//!
//! ```text
//! old: i32 = rmw add count[0], 1 acq_rel   -->   int old = atomic_add_i32_acq_rel(&count[0], 1);
//! ```
//! Where the memory is known, the instruction names it: `atom.global`, `atom.shared`. The scope is the GPU: `.gpu`.
//! Where no instruction exists for an operation at a type, it becomes a loop of compare-and-swap on the bits.

use super::access::Target;
use super::stmt::{Printer, Result};
use crate::emit::cstyle::library::bits_ty;
use crate::kernel::ir::*;
use crate::num::DType;
use crate::num::ScalarOp;
use crate::num::op::Rounding;

/// The word for the order in PTX, which is also part of the function's name.
fn word(order: Order) -> &'static str {
    match order {
        Order::Weak | Order::Relaxed => "relaxed",
        Order::Acquire => "acquire",
        Order::Release => "release",
        Order::AcqRel => "acq_rel",
    }
}

/// The constraint of a register of `bits` bits.
pub(super) fn register(bits: u32) -> char {
    match bits {
        64 => 'l',
        32 => 'r',
        _ => 'h',
    }
}

impl Printer<'_> {
    fn bits_of(&mut self, d: DType, x: &str) -> String {
        match d {
            DType::F32 | DType::F64 | DType::TF32 => format!("{}({x})", self.support.call(&format!("bits_{d}"), 1)),
            _ => format!("({}){x}", self.support.ty(bits_ty(d), 1)),
        }
    }

    fn of_bits(&mut self, d: DType, bits: &str) -> String {
        match d {
            DType::F32 | DType::F64 | DType::TF32 => format!("{}({bits})", self.support.call(&format!("float_{d}"), 1)),
            DType::I1 => format!("{bits} != 0"),
            _ => format!("({}){bits}", self.support.ty(d.name(), 1)),
        }
    }

    pub(super) fn ordered_load(&mut self, ty: Ty, at: &Target, order: Order) -> Result<String> {
        let order = word(if matches!(order, Order::Release | Order::AcqRel) { Order::Acquire } else { order });
        let (d, (space, suffix, p)) = (at.dtype, at.memory.words());
        let (name, bits) = (format!("load_{}_{order}{suffix}", bits_ty(d)), d.bytes() * 8);
        let u = self.support.ty(bits_ty(d), 1);
        // PTX has no registers of 8 bits.
        let (held, r) = if bits == 8 { ("unsigned short", 'h') } else { (u.as_str(), register(bits as u32)) };
        let body = format!(
            "  {held} r;\n  asm volatile(\"ld.{order}.gpu{space}.u{bits} %0, [%1];\" : \"={r}\"(r) : {p} : \"memory\");\n  \
             return ({u})r;\n"
        );
        self.support.block(&name, &format!("INLINE {u} {name}(const void *p) {{\n{body}}}\n"));
        let value = format!("{name}({})", at.address);
        Ok(match ty.elem {
            Elem::Num(d) => self.of_bits(d, &value),
            Elem::Ptr(_) => format!("({}){value}", self.ty(ty)),
        })
    }

    pub(super) fn ordered_store(&mut self, ty: Ty, at: &Target, v: &str, order: Order) -> Result<String> {
        let order = word(if matches!(order, Order::Acquire | Order::AcqRel) { Order::Release } else { order });
        let (d, (space, suffix, p)) = (at.dtype, at.memory.words());
        let (name, bits) = (format!("store_{}_{order}{suffix}", bits_ty(d)), d.bytes() * 8);
        let u = self.support.ty(bits_ty(d), 1);
        let r = register(bits as u32);
        let x = if bits == 8 { "(unsigned short)x" } else { "x" };
        let body = format!(
            "  asm volatile(\"st.{order}.gpu{space}.u{bits} [%0], %1;\" : : {p}, \"{r}\"({x}) : \"memory\");\n"
        );
        self.support.block(&name, &format!("INLINE void {name}(void *p, {u} x) {{\n{body}}}\n"));
        let v = match ty.elem {
            Elem::Num(d) => self.bits_of(d, v),
            Elem::Ptr(_) => format!("({u}){v}"),
        };
        Ok(format!("{name}({}, {v});", at.address))
    }

    pub(super) fn rmw(&mut self, op: RmwOp, at: &Target, v: &str, order: Order) -> Result<String> {
        let d = at.dtype;
        let (bits, order) = (d.bits(), word(order));
        if !(matches!(bits, 32 | 64) || op == RmwOp::AddF && bits == 16) {
            return self.refuse(&format!(
                "an atomic operation on {d}; a GPU has them for 32 and 64 bits, and additions of f16 and bf16"
            ));
        }
        let (suffix, r) = match (op, d) {
            (RmwOp::And | RmwOp::Or | RmwOp::Xor | RmwOp::Xchg, _) => (format!("b{bits}"), register(bits)),
            (RmwOp::Max | RmwOp::Min, _) => (format!("s{bits}"), register(bits)),
            (RmwOp::AddF, DType::F32) => ("f32".to_string(), 'f'),
            (RmwOp::AddF, DType::F64) => ("f64".to_string(), 'd'),
            (RmwOp::AddF, DType::F16 | DType::BF16) => return self.add_by_swap(at, v, order),
            _ => (format!("u{bits}"), register(bits)),
        };
        let instruction = match op {
            RmwOp::And => "and",
            RmwOp::Or => "or",
            RmwOp::Xor => "xor",
            RmwOp::Xchg => "exch",
            RmwOp::Max | RmwOp::UMax => "max",
            RmwOp::Min | RmwOp::UMin => "min",
            RmwOp::Add | RmwOp::AddF => "add",
        };
        // A float is exchanged as its bits.
        let swaps = op == RmwOp::Xchg && d.is_float();
        let unsigned = if matches!(op, RmwOp::UMax | RmwOp::UMin) { "u" } else { "" };
        let of = if swaps { bits_ty(d) } else { d.name() };
        let t = self.support.ty(of, 1);
        let (space, suffix_of, p) = at.memory.words();
        let name = format!("atomic_{unsigned}{instruction}_{of}_{order}{suffix_of}");
        let body = format!(
            "  {t} old;\n  asm volatile(\"atom{space}.{order}.gpu.{instruction}.{suffix} %0, [%1], %2;\" : \"={r}\"(old) : \
             {p}, \"{r}\"(x) : \"memory\");\n  return old;\n"
        );
        self.support.block(&name, &format!("INLINE {t} {name}(void *p, {t} x) {{\n{body}}}\n"));
        if swaps {
            let v = self.bits_of(d, v);
            return Ok(self.of_bits(d, &format!("{name}({}, {v})", at.address)));
        }
        Ok(format!("{name}({}, {v})", at.address))
    }

    /// Adds an f16 or bf16: tries until no other thread wrote in between.
    fn add_by_swap(&mut self, at: &Target, v: &str, order: &str) -> Result<String> {
        let d = at.dtype;
        let swap = self.swap(at, order);
        let u = self.support.ty(bits_ty(d), 1);
        let t = self.support.ty(d.name(), 1);
        let name = format!("atomic_add_{d}_{order}{}", at.memory.words().1);
        let add = ScalarOp::AddF { rounding: Rounding::NearestEven, ftz: false };
        let next = self.scalar(add, Elem::Num(d), &["seen", "x"]);
        let body = format!(
            "  {u} seen = *(volatile {u} *)p;\n  for (;;) {{\n    {u} next = {next};\n    \
             {u} old = {swap}(p, seen, next);\n    if (old == seen) return old;\n    seen = old;\n  }}\n"
        );
        self.support.block(&name, &format!("INLINE {t} {name}(void *p, {t} x) {{\n{body}}}\n"));
        Ok(format!("{name}({}, {v})", at.address))
    }

    /// The function that swaps bits if they are as expected.
    fn swap(&mut self, at: &Target, order: &str) -> String {
        let (d, (space, suffix, p)) = (at.dtype, at.memory.words());
        let (bits, r) = (d.bits(), register(d.bits()));
        let u = self.support.ty(bits_ty(d), 1);
        let name = format!("atomic_cas_{}_{order}{suffix}", bits_ty(d));
        let body = format!(
            "  {u} old;\n  asm volatile(\"atom{space}.{order}.gpu.cas.b{bits} %0, [%1], %2, %3;\" : \"={r}\"(old) : {p}, \
             \"{r}\"(want), \"{r}\"(next) : \"memory\");\n  return old;\n"
        );
        self.support.block(&name, &format!("INLINE {u} {name}(void *p, {u} want, {u} next) {{\n{body}}}\n"));
        name
    }

    pub(super) fn cas(&mut self, at: &Target, c: &str, v: &str, order: Order) -> Result<String> {
        let d = at.dtype;
        if !matches!(d.bits(), 16 | 32 | 64) {
            return self.refuse(&format!("a compare-and-swap of {d}; a GPU has it for 16, 32 and 64 bits"));
        }
        let swap = self.swap(at, word(order));
        let (want, next) = (self.bits_of(d, c), self.bits_of(d, v));
        Ok(self.of_bits(d, &format!("{swap}({}, {want}, {next})", at.address)))
    }
}
