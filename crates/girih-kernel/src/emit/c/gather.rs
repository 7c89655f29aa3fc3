//! Loads of a vector's elements from computed places, which one loop over lanes describes, as one call.
//!
//! ```text
//! for l in 0..16 step 1 {
//!   at: i32 = lane places[l]
//!   x: f32 = load b[at + rest]          -->   v = gather_f32_i32_x16(b, rest, places);
//!   lane v[l] = x
//! }
//! ```
//! A processor with AVX-512 has an instruction for it, which takes half the time of loads one after the other.
//! Neighbours are read as a vector: rows of a matrix whose places a program computes, or takes from a table, often lie so.

use super::stmt::Printer;
use crate::kernel::ir::*;
use crate::num::DType;

/// A loop over the lanes of a vector that loads each element from its own place.
pub(super) struct Gather<'a> {
    to: ValId,
    base: ValId,
    elem: DType,
    places: ValId,
    /// The number that is added to each place.
    rest: Ix,
    /// The places' type.
    by: &'a Val,
}

impl<'a> Gather<'a> {
    pub(super) fn of(kernel: &'a Kernel, stmt: &Stmt) -> Option<Gather<'a>> {
        let Stmt::For { axis, lo: Ix::Const(0), hi: Ix::Const(lanes), step: Ix::Const(1), body, .. } = stmt else {
            return None;
        };
        let [
            Stmt::Lane { dst: at, vector: places, lane: Ix::Axis(a) },
            Stmt::Load { dst: x, place: Address::Mem { base, index, elem }, mask, other: None, order: Order::Weak },
            Stmt::SetLane { vector: to, lane: Ix::Axis(b), value: Opnd::Val(value) },
        ] = &body[..]
        else {
            return None;
        };
        let (by, made) = (&kernel.vals[*places], kernel.vals[*to].ty);
        let whole = [by.ty, made].iter().all(|ty| i64::from(ty.lanes) == *lanes && *lanes > 1);
        let plain = matches!(by.ty.elem, Elem::Num(DType::I32 | DType::I64))
            && made.elem == Elem::Num(*elem)
            && kernel.vals[*base].ty.elem == Elem::Ptr(*elem)
            && (8..=64).contains(&elem.bits())
            && *elem != DType::I1;
        if !(whole && plain && mask.is_always() && (a, b, value) == (axis, axis, x)) {
            return None;
        }
        let rest = without(index, *at)?;
        (!rest.has_axis(*axis) && !rest.vals().contains(at)).then_some(Gather {
            to: *to,
            base: *base,
            elem: *elem,
            places: *places,
            rest,
            by,
        })
    }
}

/// The rest of a sum beside a value that is one of its terms.
fn without(sum: &Ix, val: ValId) -> Option<Ix> {
    match sum {
        Ix::Val { val: v, zext: false } if *v == val => Some(Ix::Const(0)),
        Ix::Add(a, b) => match (without(a, val), without(b, val)) {
            (Some(a), None) => Some(Ix::add(a, (**b).clone())),
            (None, Some(b)) => Some(Ix::add((**a).clone(), b)),
            _ => None,
        },
        _ => None,
    }
}

/// The instruction that loads elements from places, the one that compares the places, and the feature that has both.
fn by_instruction(element: u32, place: u32, lanes: u32) -> Option<(&'static str, &'static str, &'static str)> {
    match (element, place, lanes) {
        (32, 32, 16) => Some(("vgatherdps", "vpcmpneqd", "__AVX512F__")),
        (32, 64, 8) => Some(("vgatherqps", "vpcmpneqq", "__AVX512F__")),
        (64, 64, 8) => Some(("vgatherqpd", "vpcmpneqq", "__AVX512F__")),
        (64, 32, 8) => Some(("vgatherdpd", "vpcmpneqd", "__AVX512VL__")),
        _ => None,
    }
}

impl Printer<'_> {
    pub(super) fn gather(&mut self, gather: &Gather) {
        let Gather { to, base, elem, places, rest, by } = gather;
        // The statements of the loop's body.
        self.next += 3;
        let lanes = by.ty.lanes;
        let place = by.ty.dtype();
        let (d, i) = (elem.name(), place.name());
        let (full, by) = (self.support.ty(d, lanes), self.ty(by.ty));
        let (one, all) = (self.support.memory_ty(d, 1), self.support.memory_ty(d, lanes));
        let (i64, i) = (self.support.ty("i64", 1), self.support.ty(i, 1));
        let (truth, holds) = (self.support.ty("i1", lanes), self.support.call("all_i1", lanes));
        let name = format!("gather_{d}_{i}_x{lanes}");
        let numbers = |text: &dyn Fn(u32) -> String| (0..lanes).map(text).collect::<Vec<_>>().join(", ");
        // Places that wrap around are as far from the first as neighbours, and end before it.
        let wide = by_instruction(elem.bits(), place.bits(), lanes).map_or(String::new(), |(load, compare, needs)| {
            let last = (1u64 << (place.bits() - 1)) - u64::from(lanes);
            format!(
                "  #if defined({needs}) && defined(__GCC_ASM_FLAG_OUTPUTS__)\n  int all;\n  {by} from = places - places[0], steps = ({by}){{{}}};\n  \
                 p += rest;\n  __asm__(\"{compare} %2, %1, %%k1\\n\\tkortestw %%k1, %%k1\" : \"=@ccz\"(all) : \"v\"(from), \"v\"(steps) : \"k1\");\n  \
                 if (all && places[0] <= {last}) return *(const {all} *)(p + places[0]);\n  {full} r;\n  \
                 __asm__(\"kxnorw %%k1, %%k1, %%k1\\n\\t{load} (%1, %2, {}), %0%{{%%k1%}}\" : \"=&v\"(r) : \"r\"(p), \"v\"(places), \
                 \"m\"(*(const char (*)[])p) : \"k1\");\n  return r;\n  #else\n",
                numbers(&|l| l.to_string()),
                elem.bytes(),
            )
        });
        let end = if wide.is_empty() { "" } else { "  #endif\n" };
        let body = format!(
            "{wide}  {i} at[{lanes}];\n  __builtin_memcpy(at, &places, sizeof at);\n  p += rest;\n  \
             if (at[0] <= at[{}] && {holds}(__builtin_convertvector(places - at[0] == ({by}){{{}}}, {truth})))\n    \
             return *(const {all} *)(p + at[0]);\n  return ({full}){{{}}};\n{end}",
            lanes - 1,
            numbers(&|l| l.to_string()),
            numbers(&|l| format!("p[at[{l}]]")),
        );
        let text = format!("INLINE {full} {name}(const {one} *p, {i64} rest, {by} places) {{\n{body}}}\n");
        self.support.block(&name, &text);
        let rest = self.ix.print(rest);
        let (to, base, places) = (self.name(*to), self.name(*base), self.name(*places));
        let line = format!("{to} = {name}({base}, {rest}, {places});");
        self.out.line(&line);
    }
}
