//! Kernel IR as OpenCL C: of what a thread of a GPU does, the part that is neither asynchronous nor between lanes of a warp.
//!
//! In: a kernel. Out: a kernel function called `k`, a line for each statement, or why there is none. This shares nothing
//! with the printer of CUDA, so that the two cannot share an error.
//!
//! ```text
//! shared acc: f32[8] at 0                  __local float *acc = (__local float *)(shared + 0);
//! v: f32 = load x[tx]                      float v = x[tx];
//! store acc[tx//32] = v where tx%32 == 0   if (tx % 32 == 0) acc[tx / 32] = v;
//! barrier                                  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
//! ```

use girih_compiler::index::{Cond, Ix, Mask};
use girih_compiler::kernel::ir::*;
use girih_compiler::num::op::{Predicate, Rounding, Signedness};
use girih_compiler::num::{DType, ScalarOp, convert};

const HEAD: &str = "#pragma OPENCL FP_CONTRACT OFF
long quotient(long a, long b) { long q = a / b; return a % b < 0 ? q - 1 : q; }
long remainder_of(long a, long b) { long r = a % b; return r < 0 ? r + b : r; }
";

/// The source, or the feature that it would need.
pub fn source(kernel: &Kernel) -> Result<String, String> {
    if !kernel.tensors.is_empty() || kernel.mbarriers() > 0 || !kernel.globals.is_empty() {
        return Err("TMA, mbarriers or globals".into());
    }
    let mut printer = Printer { kernel, out: String::new(), depth: 1 };
    printer.block(&kernel.body)?;
    let param = |val: &ValId| {
        let Val { name, ty } = &kernel.vals[*val];
        Ok(match ty.elem {
            Elem::Ptr(d) => format!("__global {} *{name}", word(d)?),
            Elem::Num(d) => format!("{} {name}", word(d)?),
        })
    };
    let params: Vec<String> = kernel.params.iter().map(param).collect::<Result<_, String>>()?;
    let mut text = format!("{HEAD}__kernel void k({}) {{\n", params.join(", "));
    let places = [
        ("bx", "get_group_id(0)"),
        ("by", "get_group_id(1)"),
        ("bz", "get_group_id(2)"),
        ("gx", "get_num_groups(0)"),
        ("gy", "get_num_groups(1)"),
        ("gz", "get_num_groups(2)"),
        ("tx", "get_local_id(0)"),
    ];
    places.iter().for_each(|(name, is)| text += &format!("  const long {name} = {is};\n"));
    if kernel.shared > 0 {
        text += &format!("  __local uchar shared[{}] __attribute__((aligned(16)));\n", kernel.shared);
    }
    for slot in kernel.slots.values() {
        let (ty, name, offset) = (word(slot.elem.held())?, &slot.name, slot.offset);
        text += &match slot.is_shared() {
            true => format!("  __local {ty} *{name} = (__local {ty} *)(shared + {offset});\n"),
            false => format!("  {ty} {name}[{}] __attribute__((aligned(16)));\n", slot.len.max(1)),
        };
    }
    Ok(text + &printer.out + "}\n")
}

/// OpenCL's name of a type. A truth value is held as a byte.
fn word(d: DType) -> Result<&'static str, String> {
    Ok(match d {
        DType::I1 => "uchar",
        DType::I8 => "char",
        DType::I16 => "short",
        DType::I32 => "int",
        DType::I64 => "long",
        DType::F32 => "float",
        DType::F64 => "double",
        _ => return Err(format!("elements of {d}")),
    })
}

struct Printer<'a> {
    kernel: &'a Kernel,
    out: String,
    depth: usize,
}

impl Printer<'_> {
    fn line(&mut self, text: &str) {
        self.out += &format!("{}{text}\n", "  ".repeat(self.depth));
    }

    fn name(&self, val: ValId) -> &str {
        self.kernel.vals[val].name.as_str()
    }

    fn ty(&self, val: ValId) -> Result<String, String> {
        let Ty { elem, lanes } = self.kernel.vals[val].ty;
        let Elem::Num(d) = elem else { return Err("an address that is computed".into()) };
        Ok(if lanes > 1 { format!("{}{lanes}", word(d)?) } else { word(d)?.to_string() })
    }

    fn define(&mut self, dst: ValId, value: &str) -> Result<(), String> {
        let line = format!("{} {} = {value};", self.ty(dst)?, self.name(dst));
        self.line(&line);
        Ok(())
    }

    fn opnd(&self, o: &Opnd) -> String {
        match o {
            Opnd::Val(v) => self.name(*v).to_string(),
            Opnd::Const { dtype: DType::F32, bits } => format!("as_float({:#x}u)", *bits as u32),
            Opnd::Const { dtype: DType::F64, bits } => format!("as_double({bits:#x}ul)"),
            Opnd::Const { dtype: DType::I1, bits } => (bits & 1).to_string(),
            Opnd::Const { dtype, bits } => match convert::sign_extend(*dtype, *bits) {
                i64::MIN => "(-9223372036854775807L - 1)".to_string(),
                n => format!("({n}L)"),
            },
        }
    }

    fn ix(&self, ix: &Ix) -> String {
        let two = |a: &Ix, op: &str, b: &Ix| format!("({} {op} {})", self.ix(a), self.ix(b));
        let call = |f: &str, a: &Ix, b: &Ix| format!("{f}({}, {})", self.ix(a), self.ix(b));
        match ix {
            Ix::Const(n) => format!("{n}L"),
            Ix::Axis(axis) => self.kernel.axes[*axis].name.to_string(),
            Ix::Val { val, zext } => match (zext, self.kernel.vals[*val].ty.dtype()) {
                (true, DType::I32) => format!("(long)(uint){}", self.name(*val)),
                (true, DType::I16) => format!("(long)(ushort){}", self.name(*val)),
                (true, DType::I8) => format!("(long)(uchar){}", self.name(*val)),
                (false, DType::I1) => format!("-(long){}", self.name(*val)),
                _ => format!("(long){}", self.name(*val)),
            },
            Ix::Block(at) => ["bx", "by", "bz"][usize::from(*at)].to_string(),
            Ix::Grid(at) => ["gx", "gy", "gz"][usize::from(*at)].to_string(),
            Ix::Thread => "tx".to_string(),
            Ix::Add(a, b) => two(a, "+", b),
            Ix::Sub(a, b) => two(a, "-", b),
            Ix::Mul(a, b) => two(a, "*", b),
            Ix::FloorDiv(a, b) => call("quotient", a, b),
            Ix::Mod(a, b) => call("remainder_of", a, b),
            Ix::Min(a, b) => call("min", a, b),
            Ix::Max(a, b) => call("max", a, b),
        }
    }

    fn mask(&self, mask: &Mask) -> String {
        let cond = |c: &Cond| format!("{} {} {}", self.ix(&c.lhs), c.cmp.sign(), self.ix(&c.rhs));
        let all = mask.conds.iter().map(cond).chain(mask.vals.iter().map(|v| self.name(*v).to_string()));
        let all: Vec<String> = all.collect();
        if all.is_empty() { "1".to_string() } else { all.join(" && ") }
    }

    /// A place, as an element or, where the value has several, as a vector.
    fn place(&self, place: &Address, lanes: u32) -> Result<String, String> {
        let (space, name, index, ty) = match place {
            Address::Mem { base, index, elem } => {
                let ty = self.kernel.vals[*base].ty.elem;
                if !self.kernel.params.contains(base) || ty != Elem::Ptr(*elem) {
                    return Err("an address that is computed".into());
                }
                ("__global ", self.name(*base), index, word(*elem)?)
            }
            Address::Slot { buf, index } => {
                let slot = &self.kernel.slots[*buf];
                let space = if slot.is_shared() { "__local " } else { "" };
                (space, slot.name.as_str(), index, word(slot.elem.held())?)
            }
        };
        let index = self.ix(index);
        Ok(match lanes {
            1 => format!("{name}[{index}]"),
            n => format!("*({space}{ty}{n} *)&{name}[{index}]"),
        })
    }

    fn lane(&self, vector: ValId, lane: &Ix) -> Result<String, String> {
        let name = self.name(vector);
        Ok(match lane {
            Ix::Const(at) => format!("{name}.s{at:x}"),
            _ => format!("(({} *)&{name})[{}]", word(self.kernel.vals[vector].ty.dtype())?, self.ix(lane)),
        })
    }

    fn block(&mut self, body: &[Stmt]) -> Result<(), String> {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn nested(&mut self, head: &str, body: &[Stmt]) -> Result<(), String> {
        self.line(&format!("{head} {{"));
        self.depth += 1;
        self.block(body)?;
        self.depth -= 1;
        self.line("}");
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), String> {
        match stmt {
            Stmt::Var { var: dst, init: value } | Stmt::Splat { dst, value } => {
                let value = format!("({})({})", self.ty(*dst)?, self.opnd(value));
                self.define(*dst, &value)?;
            }
            Stmt::Set { var, value } => self.line(&format!("{} = {};", self.name(*var), self.opnd(value))),
            Stmt::Let { dst, op, ty, args } => {
                let value = self.operation(*op, *ty, args)?;
                self.define(*dst, &value)?;
            }
            Stmt::Index { dst, ix } => self.define(*dst, &self.ix(ix))?,
            Stmt::Test { dst, mask } => self.define(*dst, &self.mask(mask))?,
            Stmt::Load { dst, place, mask, other, order: Order::Weak } => {
                let value = self.place(place, self.kernel.vals[*dst].ty.lanes)?;
                let other = other.as_ref().map_or("0".to_string(), |o| self.opnd(o));
                let value = if mask.is_always() { value } else { format!("({}) ? {value} : {other}", self.mask(mask)) };
                self.define(*dst, &value)?;
            }
            Stmt::Store { place, value, mask, order: Order::Weak } => {
                let lanes = if let Opnd::Val(v) = value { self.kernel.vals[*v].ty.lanes } else { 1 };
                let store = format!("{} = {};", self.place(place, lanes)?, self.opnd(value));
                self.line(&if mask.is_always() { store } else { format!("if ({}) {store}", self.mask(mask)) });
            }
            Stmt::Lane { dst, vector, lane } => self.define(*dst, &self.lane(*vector, lane)?)?,
            Stmt::SetLane { vector, lane, value } => {
                self.line(&format!("{} = {};", self.lane(*vector, lane)?, self.opnd(value)));
            }
            Stmt::Barrier => self.line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"),
            Stmt::For { axis, lo, hi, step, body, .. } => {
                let (name, [lo, hi, step]) = (&self.kernel.axes[*axis].name, [lo, hi, step].map(|ix| self.ix(ix)));
                self.nested(&format!("for (long {name} = {lo}; {name} < {hi}; {name} += {step})"), body)?;
            }
            Stmt::Loop { body } => self.nested("for (;;)", body)?,
            Stmt::Break => self.line("break;"),
            Stmt::Continue => self.line("continue;"),
            Stmt::Return => self.line("return;"),
            Stmt::If { mask, then, els } => {
                self.nested(&format!("if ({})", self.mask(mask)), then)?;
                self.nested("else", els)?;
            }
            other => {
                let debug = format!("{other:?}");
                return Err(debug.split([' ', '(']).next().unwrap_or_default().to_string());
            }
        }
        Ok(())
    }

    fn operation(&self, op: ScalarOp, ty: Elem, args: &[Opnd]) -> Result<String, String> {
        use ScalarOp::*;
        let args: Vec<String> = args.iter().map(|o| self.opnd(o)).collect();
        let [a, b, c] = [0, 1, 2].map(|i| args.get(i).cloned().unwrap_or_default());
        let Elem::Num(d) = ty else { return Err("an operation on addresses".into()) };
        let (nearest, t) = (Rounding::NearestEven, word(d)?);
        let comparison = |pred| match pred {
            Predicate::Equal => "==",
            Predicate::NotEqual => "!=",
            Predicate::LessThan => "<",
            Predicate::LessThanOrEqual => "<=",
            Predicate::GreaterThan => ">",
            Predicate::GreaterThanOrEqual => ">=",
        };
        let unsigned = |x: &str| format!("(u{t}){x}");
        // The same bits with a sign.
        let wrapped = |op: &str| format!("({t})({} {op} {})", unsigned(&a), unsigned(&b));
        Ok(match op {
            AddF { rounding, ftz: false } if rounding == nearest => format!("{a} + {b}"),
            SubF { rounding, ftz: false } if rounding == nearest => format!("{a} - {b}"),
            MulF { rounding, ftz: false } if rounding == nearest => format!("{a} * {b}"),
            DivF { rounding, ftz: false } if rounding == nearest && d == DType::F64 => format!("{a} / {b}"),
            Fma { rounding, ftz: false } if rounding == nearest => format!("fma({a}, {b}, {c})"),
            MaxF { nan: true, .. } => format!("{a} != {a} || {a} > {b} ? {a} : {b}"),
            MinF { nan: true, .. } => format!("{a} != {a} || {a} < {b} ? {a} : {b}"),
            NegF => format!("-{a}"),
            AbsF => format!("fabs({a})"),
            CmpF { pred, ordered: true } if pred != Predicate::NotEqual => format!("{a} {} {b}", comparison(pred)),
            CmpF { pred: Predicate::NotEqual, ordered: false } => format!("{a} != {b}"),
            AddI if d.bits() >= 8 => wrapped("+"),
            SubI if d.bits() >= 8 => wrapped("-"),
            MulI if d.bits() >= 8 => wrapped("*"),
            And => format!("{a} & {b}"),
            Or => format!("{a} | {b}"),
            Xor => format!("{a} ^ {b}"),
            CmpI { pred, sign: Signedness::Signed } if d.bits() >= 8 => {
                format!("({t}){a} {} ({t}){b}", comparison(pred))
            }
            CmpI { pred, .. } if d.bits() >= 8 => format!("{} {} {}", unsigned(&a), comparison(pred), unsigned(&b)),
            Shr { sign: Signedness::Signed } if d.bits() >= 8 => {
                format!("({t}){a} >> min((long){b}, {}L)", d.bits() - 1)
            }
            MaxI { sign: Signedness::Signed } => format!("max(({t}){a}, ({t}){b})"),
            MinI { sign: Signedness::Signed } => format!("min(({t}){a}, ({t}){b})"),
            Select => format!("{a} ? {b} : {c}"),
            Copy => a,
            ExtI { to, sign: Signedness::Signed } if d.bits() >= 8 => format!("({})({t}){a}", word(to)?),
            ExtI { to, .. } if d == DType::I1 => format!("({}){a}", word(to)?),
            TruncI { to } if to.bits() >= 8 => format!("({}){a}", word(to)?),
            IToF { to, sign: Signedness::Signed } if d.bits() >= 8 => format!("({})({t}){a}", word(to)?),
            other => {
                let debug = format!("{other:?}");
                return Err(debug.split([' ', '(']).next().unwrap_or_default().to_string());
            }
        })
    }
}
