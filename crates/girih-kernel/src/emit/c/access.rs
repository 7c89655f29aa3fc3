//! Loads, stores and atomic operations as C.

use super::stmt::Printer;
use crate::emit::cstyle::library::bits_ty;
use crate::emit::cstyle::ops::Ops;
use crate::emit::cstyle::support::Support;
use crate::index::Mask;
use crate::kernel::ir::*;
use crate::num::{DType, ScalarOp};

fn order(order: Order) -> &'static str {
    match order {
        Order::Weak | Order::Relaxed => "__ATOMIC_RELAXED",
        Order::Acquire => "__ATOMIC_ACQUIRE",
        Order::Release => "__ATOMIC_RELEASE",
        Order::AcqRel => "__ATOMIC_ACQ_REL",
    }
}

impl Printer<'_> {
    /// The lvalue of an access; vectors are read and written at any alignment.
    pub(super) fn place(&mut self, place: &Address, lanes: u32) -> String {
        let (name, index, elem) = match place {
            Address::Mem { base, index, elem } => {
                let name = self.name(*base).to_string();
                if self.val_ty(*base).elem == Elem::Ptr(*elem) {
                    (name, index, *elem)
                } else {
                    (format!("(({} *){name})", self.support.memory_ty(elem.name(), 1)), index, *elem)
                }
            }
            Address::Slot { buf, index } => {
                let slot = &self.kernel.slots[*buf];
                (slot.name.to_string(), index, slot.elem.held())
            }
        };
        let index = self.ix.print(index);
        if lanes > 1 {
            let of = if elem == DType::I1 { "u8" } else { elem.name() };
            let ty = self.support.memory_ty(of, lanes);
            format!("*({ty} *)&{name}[{index}]")
        } else {
            format!("{name}[{index}]")
        }
    }

    pub(super) fn place_dtype(&self, place: &Address) -> (DType, bool) {
        match place {
            Address::Mem { elem, .. } => (*elem, true),
            Address::Slot { buf, .. } => (self.kernel.slots[*buf].elem.held(), false),
        }
    }

    pub(super) fn load(&mut self, dst: ValId, place: &Address, ord: Order) -> String {
        let ty = self.val_ty(dst);
        let (d, global) = self.place_dtype(place);
        let at = self.place(place, ty.lanes);
        if ty.is_vector() {
            return if d == DType::I1 {
                format!("{}({at} != 0)", self.support.call("widen_i32_i8", ty.lanes))
            } else {
                at
            };
        }
        if d.bits() == 4 && global {
            let (name, index) = self.split(place);
            return format!("{}({name}, {index})", self.support.call("load_half", 1));
        }
        if ord != Order::Weak {
            let u = bits_ty(d);
            self.support.ty(u, 1);
            let ord = if ord == Order::AcqRel || ord == Order::Release { Order::Acquire } else { ord };
            let bits = format!("__atomic_load_n(({u} *)&{at}, {})", order(ord));
            return self.value_of_bits(d, &bits);
        }
        match ty.elem {
            Elem::Num(DType::I1) => format!("{at} != 0"),
            Elem::Num(_) => at,
            Elem::Ptr(_) => {
                let ty = self.ty(ty);
                format!("({ty})(uintptr_t){at}")
            }
        }
    }

    pub(super) fn split(&mut self, place: &Address) -> (String, String) {
        match place {
            Address::Mem { base, index, .. } => (format!("(void *){}", self.name(*base)), self.ix.print(index)),
            Address::Slot { buf, index } => (format!("(void *){}", self.kernel.slots[*buf].name), self.ix.print(index)),
        }
    }

    fn value_of_bits(&mut self, d: DType, bits: &str) -> String {
        match d {
            DType::F32 | DType::F64 | DType::TF32 => {
                let f = self.support.call(&format!("float_{d}"), 1);
                format!("{f}({bits})")
            }
            DType::I1 => format!("{bits} != 0"),
            _ => format!("({}){bits}", self.support.ty(d.name(), 1)),
        }
    }

    fn bits_of_value(&mut self, d: DType, x: &str) -> String {
        match d {
            DType::F32 | DType::F64 | DType::TF32 => {
                let f = self.support.call(&format!("bits_{d}"), 1);
                format!("{f}({x})")
            }
            _ => format!("({}){x}", self.support.ty(bits_ty(d), 1)),
        }
    }

    pub(super) fn store(&mut self, place: &Address, value: Opnd, mask: &Mask, ord: Order) {
        let ty = match value {
            Opnd::Val(v) => self.val_ty(v),
            Opnd::Const { dtype, .. } => Ty::num(dtype, 1),
        };
        let (d, global) = self.place_dtype(place);
        let v = self.opnd(value, ty);
        let at = self.place(place, ty.lanes);
        let statement = if ty.is_vector() && d == DType::I1 {
            let u8 = self.support.ty("u8", ty.lanes);
            format!("{at} = __builtin_convertvector({v} & 1, {u8});")
        } else if ty.is_vector() {
            format!("{at} = {v};")
        } else if d.bits() == 4 && global {
            let (name, index) = self.split(place);
            format!("{}({name}, {index}, {v});", self.support.call("store_half", 1))
        } else if ord != Order::Weak {
            let u = bits_ty(d);
            let bits = self.bits_of_value(d, &v);
            let ord = if ord == Order::AcqRel || ord == Order::Acquire { Order::Release } else { ord };
            format!("__atomic_store_n(({u} *)&{at}, {bits}, {});", order(ord))
        } else if let Elem::Ptr(_) = ty.elem {
            format!("{at} = (i64)(uintptr_t){v};")
        } else {
            format!("{at} = {v};")
        };
        if mask.is_always() {
            self.out.line(&statement);
        } else {
            let cond = self.mask(mask);
            self.out.line(&format!("if ({cond}) {statement}"));
        }
    }

    /// A helper that loads or stores some lanes of a vector: one instruction if the processor has masks for lanes.
    pub(super) fn some(&mut self, ty: Ty, stores: bool) -> String {
        let (lanes, d) = (ty.lanes, ty.dtype());
        let (full, one) = (self.ty(ty), self.support.memory_ty(d.name(), 1));
        let name = format!("{}_some_{full}", if stores { "store" } else { "load" });
        let (bits, bytes) = (d.bits(), d.bits() / 8 * lanes);
        let i64 = self.support.ty("i64", 1);
        let head = match stores {
            false => format!("INLINE {full} {name}(const {one} *p, {i64} from, {i64} to, {full} v) {{\n"),
            true => format!("INLINE void {name}({one} *p, {i64} from, {i64} to, {full} v) {{\n"),
        };
        let mut body = format!("  from = from < 0 ? 0 : from;\n  to = to > {lanes} ? {lanes} : to;\n");
        let by_lane = match stores {
            false => "  for (i64 l = from; l < to; l++) v[l] = p[l];\n  return v;\n",
            true => "  for (i64 l = from; l < to; l++) p[l] = v[l];\n",
        };
        // The compiler's own types of integers, which its functions take.
        let of = match bits {
            8 => Some(("char", "qi")),
            16 => Some(("short", "hi")),
            32 => Some(("int", "si")),
            64 => Some(("long long", "di")),
            _ => None,
        };
        match of.filter(|_| [16, 32, 64].contains(&bytes)) {
            Some((int, kind)) => {
                let mask = match lanes {
                    0..=8 => "unsigned char",
                    9..=16 => "unsigned short",
                    17..=32 => "unsigned",
                    _ => "unsigned long long",
                };
                let verb = if stores { "stored" } else { "loadd" };
                let call = format!("__builtin_ia32_{verb}qu{kind}{}_mask((void *)p, (some)v, m)", bytes * 8);
                let act = if stores { format!("  {call};\n") } else { format!("  return ({full}){call};\n") };
                let own = format!("  typedef {int} some __attribute__((vector_size({bytes})));\n");
                body.push_str(&format!(
                    "#if defined(__AVX512BW__) && defined(__AVX512VL__)\n{own}  \
                     {mask} m = from < to ? (2ull << (to - 1)) - (1ull << from) : 0;\n{act}"
                ));
                if bits >= 32 && bytes <= 32 {
                    // This instruction's mask is the highest bit of each lane.
                    let verb = if stores { "store" } else { "load" };
                    let wide = if bytes == 32 { "256" } else { "" };
                    let element = if bits == 32 { "d" } else { "q" };
                    let call = format!("__builtin_ia32_mask{verb}{element}{wide}((");
                    let all = (0..lanes).map(|l| l.to_string()).collect::<Vec<_>>().join(", ");
                    let act = match stores {
                        false => format!("return ({full})({call}const some *)p, on) | ((some)v & ~on));\n"),
                        true => format!("{call}some *)p, on, (some)v);\n"),
                    };
                    body.push_str(&format!(
                        "#elif defined(__AVX2__)\n{own}  from = from > {lanes} ? {lanes} : from;\n  \
                         some at = {{{all}}}, on = (at >= ({int})from) & (at < ({int})to);\n  {act}"
                    ));
                }
                body.push_str(&format!("#else\n{by_lane}#endif\n"));
            }
            None => body.push_str(by_lane),
        }
        self.support.block(&name, &format!("{head}{body}}}\n"));
        name
    }

    pub(super) fn rmw(&mut self, op: RmwOp, d: DType, at: &str, v: &str, ord: Order) -> String {
        let u = bits_ty(d);
        self.support.ty(u, 1);
        let t = self.support.ty(d.name(), 1);
        let order_name = order(ord);
        let direct = match op {
            RmwOp::And => Some("and"),
            RmwOp::Or => Some("or"),
            RmwOp::Xor => Some("xor"),
            RmwOp::Add => Some("add"),
            _ => None,
        };
        if let Some(name) = direct {
            return format!("({t})__atomic_fetch_{name}(({u} *)&{at}, ({u}){v}, {order_name})");
        }
        if op == RmwOp::Xchg {
            let bits = self.bits_of_value(d, v);
            return self.value_of_bits(d, &format!("__atomic_exchange_n(({u} *)&{at}, {bits}, {order_name})"));
        }
        let name = format!("atomic_{}_{d}", format!("{op:?}").to_lowercase());
        let old = self.value_of_bits(d, "seen");
        let scalar = |s: &mut Support, op: ScalarOp| Ops { support: s, lanes: 1 }.expr(op, Elem::Num(d), &["old", "x"]);
        use crate::num::op::{Rounding, Signedness};
        let next = match op {
            RmwOp::AddF => scalar(self.support, ScalarOp::AddF { rounding: Rounding::NearestEven, ftz: false }),
            RmwOp::Max => scalar(self.support, ScalarOp::MaxI { sign: Signedness::Signed }),
            RmwOp::Min => scalar(self.support, ScalarOp::MinI { sign: Signedness::Signed }),
            RmwOp::UMax => scalar(self.support, ScalarOp::MaxI { sign: Signedness::Unsigned }),
            _ => scalar(self.support, ScalarOp::MinI { sign: Signedness::Unsigned }),
        };
        let bits = self.bits_of_value(d, "next");
        let text = format!(
            "INLINE {t} {name}({u} *p, {t} x, int order) {{\n  {u} seen = __atomic_load_n(p, __ATOMIC_RELAXED);\n  \
             for (;;) {{\n    {t} old = {old};\n    {t} next = {next};\n    \
             if (__atomic_compare_exchange_n(p, &seen, {bits}, 0, order, __ATOMIC_RELAXED)) return old;\n  }}\n}}\n"
        );
        self.support.block(&name, &text);
        format!("{name}(({u} *)&{at}, {v}, {order_name})")
    }

    pub(super) fn cas(&mut self, d: DType, at: &str, c: &str, v: &str, ord: Order) -> String {
        let u = bits_ty(d);
        self.support.ty(u, 1);
        let t = self.support.ty(d.name(), 1);
        let name = format!("atomic_cas_{d}");
        let (want, next, old) =
            (self.bits_of_value(d, "want"), self.bits_of_value(d, "next"), self.value_of_bits(d, "seen"));
        let failure = "order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED";
        let text = format!(
            "INLINE {t} {name}({u} *p, {t} want, {t} next, int order) {{\n  {u} seen = {want};\n  \
             __atomic_compare_exchange_n(p, &seen, {next}, 0, order, {failure});\n  return {old};\n}}\n"
        );
        self.support.block(&name, &text);
        format!("{name}(({u} *)&{at}, {c}, {v}, {})", order(ord))
    }
}
