//! Statements as C.

use std::collections::BTreeSet;

use super::amx;
use super::function::Cut;
use super::gather::Gather;
use super::parts;
use crate::emit::cstyle::library;
use crate::emit::cstyle::ops::{Ops, computes, literal};
use crate::emit::cstyle::support::Support;
use crate::emit::cstyle::{Indices, Lines};
use crate::index::{Ix, Mask};
use crate::kernel::ir::*;
use crate::num::convert::{is_nan, nan, sign_extend};
use crate::num::spell::{Class, spell};
use crate::num::{DType, ScalarOp};

pub(super) struct Printer<'a> {
    pub kernel: &'a Kernel,
    pub support: &'a mut Support,
    pub ix: Indices<'a>,
    pub out: Lines,
    /// The values whose NaNs are made canonical where they are computed.
    pub observed: BTreeSet<ValId>,
    /// The lines printed so far, from 1, and their statements.
    pub lines: Vec<(u32, usize)>,
    /// The number of the next statement.
    pub next: usize,
    /// The first statement that has no form in C, and the reason.
    pub refused: Option<(usize, String)>,
    /// A large kernel's parts.
    pub parts: Option<Cut>,
}

impl Printer<'_> {
    pub(super) fn ty(&mut self, ty: Ty) -> String {
        match ty.elem {
            Elem::Ptr(d) if !ty.is_vector() => format!("{} *", self.support.memory_ty(d.name(), 1)),
            _ => self.support.ty(ty.elem.held().name(), ty.lanes),
        }
    }

    pub(super) fn name(&self, val: ValId) -> &str {
        self.kernel.vals[val].name.as_str()
    }

    pub(super) fn val_ty(&self, val: ValId) -> Ty {
        self.kernel.vals[val].ty
    }

    /// An operand at a type: constants are printed as such, splatted if the type is a vector.
    pub(super) fn opnd(&mut self, o: Opnd, ty: Ty) -> String {
        match o {
            Opnd::Val(v) => self.name(v).to_string(),
            Opnd::Const { dtype, bits } if ty.is_vector() => {
                let f = self.support.call(&format!("splat_{dtype}"), ty.lanes);
                format!("{f}({})", self.scalar_literal(dtype, bits))
            }
            Opnd::Const { dtype, bits } => match ty.elem {
                Elem::Ptr(d) => {
                    let ty = self.support.memory_ty(d.name(), 1);
                    format!("({ty} *)(uintptr_t){bits}ull")
                }
                Elem::Num(_) => self.scalar_literal(dtype, bits),
            },
        }
    }

    /// A constant; a NaN with a sign or payload of its own is written by its bits.
    fn scalar_literal(&mut self, dtype: DType, bits: u64) -> String {
        let own_nan = matches!(dtype, DType::F32 | DType::F64) && is_nan(dtype, bits) && bits != nan(dtype);
        if own_nan {
            return format!("{}({bits:#x}ull)", self.support.call(&format!("float_{dtype}"), 1));
        }
        literal(self.support.dialect, dtype, bits)
    }

    fn define(&mut self, dst: ValId, value: &str) {
        let ty = self.ty(self.val_ty(dst));
        let space = if ty.ends_with('*') { "" } else { " " };
        let line = format!("{ty}{space}{} = {value};", self.name(dst));
        self.out.line(&line);
    }

    /// The mask as a C condition; always true is `1`.
    pub(super) fn mask(&mut self, mask: &Mask) -> String {
        self.ix.mask(mask, "1")
    }

    pub(super) fn block(&mut self, body: &[Stmt]) {
        let mut rest = body;
        while let [stmt, behind @ ..] = rest {
            if let Some((part, (run, behind))) =
                self.part().and_then(|(part, n)| Some((part, rest.split_at_checked(n)?)))
            {
                self.print_part(part, run);
                rest = behind;
                continue;
            }
            self.stmt(stmt);
            rest = behind;
        }
    }

    /// The body of a loop.
    fn looped(&mut self, body: &[Stmt]) {
        let loops = self.parts.as_ref().map_or(0, |cut| cut.loops);
        self.parts.iter_mut().for_each(|cut| cut.loops = loops + 1);
        self.block(body);
        self.parts.iter_mut().for_each(|cut| cut.loops = loops);
    }

    fn stmt(&mut self, stmt: &Stmt) {
        self.lines.push((self.out.count + 1, self.next));
        self.next += 1;
        match stmt {
            Stmt::Var { var, init } => {
                let init = self.opnd(*init, self.val_ty(*var));
                self.define(*var, &init);
            }
            Stmt::Set { var, value } => {
                let value = self.opnd(*value, self.val_ty(*var));
                let line = format!("{} = {value};", self.name(*var));
                self.out.line(&line);
            }
            Stmt::Let { dst, op, ty, args } => {
                let lanes = self.val_ty(*dst).lanes;
                let value = self.operation(*op, *ty, args, lanes, Some(*dst));
                self.define(*dst, &value);
            }
            Stmt::Splat { dst, value } => {
                let ty = self.val_ty(*dst);
                let scalar = self.opnd(*value, Ty { lanes: 1, ..ty });
                let f = self.support.call(&format!("splat_{}", ty.elem.held()), ty.lanes);
                let cast = if let Elem::Ptr(_) = ty.elem { "(i64)(uintptr_t)" } else { "" };
                self.define(*dst, &format!("{f}({cast}{scalar})"));
            }
            Stmt::Ramp { dst, base: start, step } => {
                let ty = self.val_ty(*dst);
                let d = ty.elem.held();
                let (start, step) = (self.ix.print(start), self.ix.print(step));
                let lanes: Vec<String> = (0..ty.lanes).map(|l| l.to_string()).collect();
                let vector = self.support.ty(d.name(), ty.lanes);
                let splat = self.support.call(&format!("splat_{d}"), ty.lanes);
                let lanes = format!("({vector}){{{}}}", lanes.join(", "));
                let scaled = if step == "1" { lanes } else { format!("{splat}({step}) * {lanes}") };
                self.define(*dst, &format!("{splat}({start}) + {scaled}"));
            }
            Stmt::Index { dst, ix } => {
                let text = self.ix.print(ix);
                let d = self.val_ty(*dst).elem.held();
                let text = match d {
                    DType::I64 => text,
                    DType::I1 => format!("({text}) & 1"),
                    _ => format!("({})({text})", self.support.ty(d.name(), 1)),
                };
                self.define(*dst, &text);
            }
            Stmt::Test { dst, mask } => {
                let text = self.mask(mask);
                self.define(*dst, &text);
            }
            Stmt::Prefetch { place } => {
                let line = format!("__builtin_prefetch(&{});", self.place(place, 1));
                self.out.line(&line);
            }
            Stmt::AmxLoad { tile, place, by } => self.tile("load", *tile, place, by),
            Stmt::AmxStore { tile, place, by } => self.tile("store", *tile, place, by),
            Stmt::AmxDot { of, sums, a, b } => {
                amx::declare(self.support);
                self.out.line(&format!("tile_add_{}({sums}, {a}, {b});", of.word()));
            }
            Stmt::Load { dst, place, mask, other, order } => {
                let value = self.load(*dst, place, *order);
                let text = if mask.is_always() {
                    value
                } else {
                    let ty = self.val_ty(*dst);
                    let zero = Opnd::Const { dtype: ty.elem.held(), bits: 0 };
                    let other = self.opnd(other.unwrap_or(zero), ty);
                    format!("{} ? {value} : {other}", self.mask(mask))
                };
                self.define(*dst, &text);
            }
            Stmt::Store { place, value, mask, order } => self.store(place, *value, mask, *order),
            Stmt::Lane { dst, vector, lane } => {
                let lane = self.ix.print(lane);
                let v = format!("{}[{lane}]", self.name(*vector));
                let ty = self.val_ty(*dst);
                let text = match ty.elem {
                    Elem::Num(DType::I1) => format!("{v} & 1"),
                    Elem::Num(_) => v,
                    Elem::Ptr(_) => format!("({})(uintptr_t){v}", self.ty(ty)),
                };
                self.define(*dst, &text);
            }
            Stmt::SetLane { vector, lane, value } => {
                let ty = self.val_ty(*vector);
                let lane = self.ix.print(lane);
                let v = self.opnd(*value, Ty { lanes: 1, ..ty });
                let text = match ty.elem {
                    Elem::Num(DType::I1) => format!("-(i32){v}"),
                    Elem::Num(_) => v,
                    Elem::Ptr(_) => format!("(i64)(uintptr_t){v}"),
                };
                let line = format!("{}[{lane}] = {text};", self.name(*vector));
                self.out.line(&line);
            }
            Stmt::Reduce { dst, op, vector } => self.reduce(*dst, *op, *vector),
            Stmt::Merge { dst, a, b, width, high } => {
                let f = self.merge(self.val_ty(*dst), *width, *high);
                let text = format!("{f}({}, {})", self.name(*a), self.name(*b));
                self.define(*dst, &text);
            }
            Stmt::LoadLanes { dst, place, from, to, other } => {
                let ty = self.val_ty(*dst);
                let f = self.some(ty, false);
                let other = self.opnd(*other, ty);
                let (at, from, to) = (self.place(place, 1), self.ix.print(from), self.ix.print(to));
                self.define(*dst, &format!("{f}(&{at}, {from}, {to}, {other})"));
            }
            Stmt::StoreLanes { place, value, from, to } => {
                let f = self.some(self.val_ty(*value), true);
                let (at, from, to) = (self.place(place, 1), self.ix.print(from), self.ix.print(to));
                let line = format!("{f}(&{at}, {from}, {to}, {});", self.name(*value));
                self.out.line(&line);
            }
            Stmt::Strided { dst, parts } => {
                let f = self.every(self.val_ty(*dst), parts.len() as u32);
                let parts: Vec<&str> = parts.iter().map(|p| self.name(*p)).collect();
                self.define(*dst, &format!("{f}({})", parts.join(", ")));
            }
            Stmt::Interleave { dst, parts, part } => {
                let f = self.interleave(self.val_ty(*dst), parts.len() as u32, *part);
                let parts: Vec<&str> = parts.iter().map(|p| self.name(*p)).collect();
                self.define(*dst, &format!("{f}({})", parts.join(", ")));
            }
            Stmt::All { dst, vector } => {
                let ty = self.val_ty(*vector);
                let f = self.support.call("all_i1", ty.lanes);
                let text = format!("{f}({})", self.name(*vector));
                self.define(*dst, &text);
            }
            Stmt::For { axis, lo, hi, step, unroll, body } => {
                if let Some(gather) = Gather::of(self.kernel, stmt) {
                    return self.gather(&gather);
                }
                self.ix.enter(*axis, lo, hi, step);
                let name = self.kernel.axes[*axis].name.to_string();
                let (lo, hi) = (self.ix.print(lo), self.ix.print(hi));
                let step = match step {
                    Ix::Const(1) => format!("{name}++"),
                    step => format!("{name} += {}", self.ix.print(step)),
                };
                if *unroll > 0 {
                    self.out.line(&format!("#pragma GCC unroll {unroll}"));
                }
                self.support.ty("i64", 1);
                self.out.open(&format!("for (i64 {name} = {lo}; {name} < {hi}; {step}) {{"));
                self.looped(body);
                self.out.close("}");
            }
            Stmt::Loop { body } => {
                self.out.open("for (;;) {");
                self.looped(body);
                self.out.close("}");
            }
            Stmt::Break => self.leave("break;", parts::BREAKS),
            Stmt::Continue => self.leave("continue;", parts::CONTINUES),
            Stmt::Return => self.leave("goto next_block;", parts::RETURNS),
            Stmt::If { mask, then, els } => {
                let cond = self.mask(mask);
                if then.is_empty() {
                    self.out.open(&format!("if (!({cond})) {{"));
                    self.block(els);
                    self.out.close("}");
                    return;
                }
                self.out.open(&format!("if ({cond}) {{"));
                self.block(then);
                if !els.is_empty() {
                    self.out.depth -= 1;
                    self.out.open("} else {");
                    self.block(els);
                }
                self.out.close("}");
            }
            Stmt::Rmw { dst, op, place, value, mask, order } => {
                let (d, _) = self.place_dtype(place);
                let ty = self.val_ty(*dst);
                let v = self.opnd(*value, ty);
                let at = self.place(place, 1);
                let call = self.rmw(*op, d, &at, &v, *order);
                self.masked(*dst, mask, &call, Opnd::Const { dtype: d, bits: 0 });
            }
            Stmt::Cas { dst, place, cmp, value, mask, order } => {
                let (d, _) = self.place_dtype(place);
                let ty = self.val_ty(*dst);
                let (c, v) = (self.opnd(*cmp, ty), self.opnd(*value, ty));
                let at = self.place(place, 1);
                let call = self.cas(d, &at, &c, &v, *order);
                self.masked(*dst, mask, &call, *cmp);
            }
            // Only a kernel of several threads has these, and no C is printed for such a kernel.
            Stmt::Poll => self.out.line("if (*ctx->abort && ctx->stop(ctx)) return 1;"),
            Stmt::Yield { site } => self.out.line(&format!("ctx->yield(ctx, {}, block);", site.0)),
            Stmt::Print { args, site, .. } => self.print(args, *site),
            Stmt::Assert { cond, element, site, .. } => {
                let cond = self.opnd(*cond, Ty::num(DType::I1, 1));
                let element = self.element(element);
                self.out
                    .line(&format!("if (!{cond}) {{ ctx->trap(ctx, {}, 0, block, {element}, 0); return 1; }}", site.0));
            }
            Stmt::Check { place, count, mask, write, param, element, site } => {
                let (d, global) = self.place_dtype(place);
                // In memory two 4-bit elements share a byte.
                let (address, bytes) = if d.bits() == 4 && global {
                    let (name, index) = self.split(place);
                    (format!("((uint64_t)(uintptr_t){name} + (({index}) >> 1))"), u64::from(*count).div_ceil(2))
                } else {
                    (format!("(uint64_t)(uintptr_t)&{}", self.place(place, 1)), d.bytes() * u64::from(*count))
                };
                let bad = match param {
                    Some(n) => {
                        self.support.block("outside", OUTSIDE);
                        format!("outside(ctx, {n}, {address}, {bytes})")
                    }
                    None => format!("!ctx->check(ctx, {address}, {bytes})"),
                };
                let active = (!mask.is_always()).then(|| self.mask(mask));
                let cond = active.as_ref().map_or_else(|| bad.clone(), |active| format!("{active} && {bad}"));
                let kind = if *write { 3 } else { 2 };
                let element = self.element(element);
                self.out.line(&format!(
                    "if ({cond}) {{ ctx->trap(ctx, {}, {kind}, block, {element}, (int64_t)({address})); return 1; }}",
                    site.0
                ));
                if *write {
                    self.support.block("wrote", WROTE);
                    let (n, of) = (param.map_or(-1, i64::from), self.kernel.params.len());
                    let when = active.map_or_else(String::new, |active| format!("if ({active}) "));
                    self.out.line(&format!("{when}wrote(ctx, {n}, {of}, {address}, {bytes});"));
                }
            }
            Stmt::GlobalAddr { dst, global } => {
                let ty = self.ty(self.val_ty(*dst));
                self.define(*dst, &format!("({ty})ctx->globals[{global}]"));
            }
            Stmt::Scratch { dst, offset } => {
                let ty = self.ty(self.val_ty(*dst));
                let offset = self.ix.print(offset);
                self.define(*dst, &format!("({ty})((char *)ctx->scratch + {offset})"));
            }
            _ => {
                let message = format!("`{}` is of blocks of several threads, and C has one", stmt.words());
                self.refused.get_or_insert((self.next.saturating_sub(1), message));
            }
        }
    }

    fn element(&mut self, element: &Option<Ix>) -> String {
        element.as_ref().map_or("-1".to_string(), |e| self.ix.print(e))
    }

    fn masked(&mut self, dst: ValId, mask: &Mask, call: &str, other: Opnd) {
        let text = if mask.is_always() {
            call.to_string()
        } else {
            let other = self.opnd(other, self.val_ty(dst));
            format!("{} ? {call} : {other}", self.mask(mask))
        };
        self.define(dst, &text);
    }

    /// An operation on printed operands; `dst` gives pointers their type.
    fn operation(&mut self, op: ScalarOp, elem: Elem, args: &[Opnd], lanes: u32, dst: Option<ValId>) -> String {
        let mut texts = Vec::new();
        for (i, arg) in args.iter().enumerate() {
            let own = op.operand(i, elem);
            let arg = match (op, i, arg) {
                (ScalarOp::PtrAdd, 1, &Opnd::Const { dtype, bits }) => {
                    Opnd::Const { dtype: DType::I64, bits: sign_extend(dtype, bits) as u64 }
                }
                _ => *arg,
            };
            let mut text = self.opnd(arg, Ty { elem: own, lanes });
            if let (ScalarOp::PtrAdd, 1, true, Opnd::Val(v)) = (op, i, lanes > 1, arg)
                && self.val_ty(v).elem.held() != DType::I64
            {
                let ty = self.support.ty("i64", lanes);
                text = format!("__builtin_convertvector({text}, {ty})");
            }
            texts.push(text);
        }
        let texts: Vec<&str> = texts.iter().map(|s| s.as_str()).collect();
        let text = Ops { support: self.support, lanes }.expr(op, elem, &texts);
        // C derives the type from the operands; a pointer may need a cast.
        match dst.map(|d| (d, self.val_ty(d))) {
            Some((_, ty @ Ty { elem: Elem::Ptr(_), lanes: 1 }))
                if !matches!(op, ScalarOp::PtrAdd | ScalarOp::Select) =>
            {
                let ty = self.ty(ty);
                format!("({ty})(uintptr_t){}", texts.first().copied().unwrap_or("0"))
            }
            Some((dst, _)) => self.settled(op, dst, text),
            None => text,
        }
    }

    /// The text of a float result, with its NaN made canonical if the kernel could tell the difference.
    fn settled(&mut self, op: ScalarOp, dst: ValId, text: String) -> String {
        let ty = self.val_ty(dst);
        match ty.elem {
            Elem::Num(d @ (DType::F32 | DType::F64)) if self.observed.contains(&dst) && computes(op) => {
                format!("{}({text})", self.support.call(&format!("canonical_{d}"), ty.lanes))
            }
            _ => text,
        }
    }

    /// The helper that merges two vectors of a type.
    fn merge(&mut self, ty: Ty, width: u32, high: bool) -> String {
        let (lanes, full) = (ty.lanes, self.ty(ty));
        let name = format!("merge_{}{width}_{full}", if high { "high" } else { "low" });
        // Lane l of the second vector is lane `lanes + l` of the pair.
        let from = |l: u32| match (l / width % 2, high) {
            (0, false) => l,
            (_, false) => lanes + l - width,
            (0, true) => l + width,
            (_, true) => lanes + l,
        };
        let picked: Vec<String> = (0..lanes).map(|l| from(l).to_string()).collect();
        let body = format!("  return __builtin_shufflevector(a, b, {});\n", picked.join(", "));
        self.support.block(&name, &format!("INLINE {full} {name}({full} a, {full} b) {{\n{body}}}\n"));
        name
    }

    fn tile(&mut self, way: &str, tile: u32, place: &Address, by: &Ix) {
        amx::declare(self.support);
        let (at, by) = (self.place(place, 1), self.ix.print(by));
        self.out.line(&format!("tile_{way}({tile}, &{at}, 4 * ({by}));"));
    }

    /// A helper that takes every `step`th element of `step` vectors.
    fn every(&mut self, ty: Ty, step: u32) -> String {
        let name = format!("every{step}_{}", self.ty(ty));
        self.picked(name, ty, step, &|l| every(ty.lanes, step, l))
    }

    /// A helper that interleaves the elements of several vectors and gives one part of the result.
    fn interleave(&mut self, ty: Ty, count: u32, part: u32) -> String {
        let name = format!("interleave{part}of{count}_{}", self.ty(ty));
        self.picked(name, ty, count, &|l| interleaved(ty.lanes, count, part, l))
    }

    /// A helper that takes its lanes out of `count` vectors: `from` gives the vector, and the lane of it, for each
    /// lane.
    fn picked(&mut self, name: String, ty: Ty, count: u32, from: &dyn Fn(u32) -> (u32, u32)) -> String {
        let (lanes, full) = (ty.lanes, self.ty(ty));
        let params: Vec<String> = (0..count).map(|p| format!("{full} v{p}")).collect();
        let mut body = String::new();
        let mut taken = "v0".to_string();
        for part in 1..count {
            let from = |l: u32| match from(l) {
                (p, at) if p == part => (lanes + at).to_string(),
                (0, at) if part == 1 => at.to_string(),
                _ => l.to_string(),
            };
            let picked: Vec<String> = (0..lanes).map(from).collect();
            body.push_str(&format!(
                "  {full} t{part} = __builtin_shufflevector({taken}, v{part}, {});\n",
                picked.join(", ")
            ));
            taken = format!("t{part}");
        }
        let params = params.join(", ");
        self.support.block(&name, &format!("INLINE {full} {name}({params}) {{\n{body}  return {taken};\n}}\n"));
        name
    }

    /// One call of a helper that folds halves of the vector until one value is left.
    fn reduce(&mut self, dst: ValId, op: ScalarOp, vector: ValId) {
        let ty = self.val_ty(vector);
        let d = ty.elem.held();
        let full = self.support.ty(d.name(), ty.lanes);
        let name = format!("reduce_{}_{full}", spell(op, Class::Any).replace('.', "_"));
        if !self.support.is_defined(&name) {
            let one = self.support.ty(d.name(), 1);
            let mut text = format!("INLINE {one} {name}({full} x{}) {{\n", ty.lanes);
            let mut lanes = ty.lanes;
            let of_two = format!("{}_{}", spell(op, Class::Any).replace('.', "_"), d.name());
            let whole = library::extremum_of_lanes(&of_two, lanes, &format!("x{lanes}"));
            if let Some((feature, body)) = &whole {
                text.push_str(&format!("#ifdef {feature}\n{body}#else\n"));
            }
            while lanes > 1 {
                let whole = format!("x{lanes}");
                lanes /= 2;
                let half = |from: u32| -> String {
                    let picked: Vec<String> = (from..from + lanes).map(|l| l.to_string()).collect();
                    match (lanes, d) {
                        (1, DType::I1) => format!("({whole}[{from}] & 1)"),
                        (1, _) => format!("{whole}[{from}]"),
                        _ => format!("__builtin_shufflevector({whole}, {whole}, {})", picked.join(", ")),
                    }
                };
                let n = if lanes > 1 { lanes.to_string() } else { String::new() };
                let t = self.support.ty(d.name(), lanes);
                text.push_str(&format!("  {t} a{n} = {}, b{n} = {};\n", half(0), half(lanes)));
                let folded =
                    Ops { support: self.support, lanes }.expr(op, ty.elem, &[&format!("a{n}"), &format!("b{n}")]);
                text.push_str(&match lanes {
                    1 => format!("  return {folded};\n"),
                    _ => format!("  {t} x{lanes} = {folded};\n"),
                });
            }
            text.push_str(if whole.is_some() { "#endif\n}\n" } else { "}\n" });
            self.support.block(&name, &text);
        }
        let text = format!("{name}({})", self.name(vector));
        let text = self.settled(op, dst, text);
        self.define(dst, &text);
    }

    fn print(&mut self, args: &[PrintArg], site: SiteId) {
        let mut pointers = Vec::new();
        self.out.open("{");
        for arg in args {
            match arg {
                PrintArg::Tile { slot, .. } => pointers.push(self.kernel.slots[*slot].name.to_string()),
                PrintArg::Scalar(Opnd::Val(v)) => pointers.push(format!("&{}", self.name(*v))),
                PrintArg::Scalar(Opnd::Const { dtype, bits }) => {
                    let ty = self.support.ty(dtype.name(), 1);
                    pointers.push(format!("&({ty}){{{}}}", literal(self.support.dialect, *dtype, *bits)));
                }
            }
        }
        if pointers.is_empty() {
            pointers.push("0".to_string());
        }
        self.out.line(&format!("const void *values[] = {{{}}};", pointers.join(", ")));
        self.out.line(&format!("ctx->print(ctx, {}, block, values);", site.0));
        self.out.close("}");
    }
}

const OUTSIDE: &str = "INLINE int outside(const girih_ctx *ctx, int param, uint64_t at, int64_t bytes) {
  return (at < (uint64_t)ctx->extent[2 * param]) | (at + bytes > (uint64_t)ctx->extent[2 * param + 1]);
}
";

/// Records written bytes, if the launch asks for it: the addresses of these records, a byte for each byte of a region,
/// stand behind the regions of the parameters. A parameter of -1 stands for any.
const WROTE: &str = "INLINE void wrote(const girih_ctx *ctx, int param, int params, uint64_t at, int64_t bytes) {
  for (int p = param < 0 ? 0 : param; p < (param < 0 ? params : param + 1); p++) {
    uint8_t *const seen = (uint8_t *)(uintptr_t)ctx->extent[2 * params + p];
    const uint64_t first = (uint64_t)ctx->extent[2 * p];
    if (seen && at >= first && at + bytes <= (uint64_t)ctx->extent[2 * p + 1])
      __builtin_memset(seen + (at - first), 1, bytes);
  }
}
";
