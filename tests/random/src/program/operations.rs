//! Statements that compute: a random operation on values of the pool, its result back into the pool.

use super::{FLOATS, INTS, Maker, Shape, Val, elements, ty};
use girih_compiler::num::DType;

impl Maker {
    pub(super) fn elementwise(&mut self) {
        let a = self.any();
        let (t, shape, dtype) = (a.ty(), a.shape.clone(), a.dtype);
        if dtype.is_base_float() {
            let round =
                *self.rng.pick(&["", "", "", "rounding<zero> ", "rounding<positive_inf> ", "rounding<negative_inf> "]);
            let ftz = if dtype == DType::F32 && self.rng.chance(10) { "flush_to_zero " } else { "" };
            let text = match self.rng.below(22) {
                op @ 0..5 => {
                    let b = self.like(&a);
                    let name = ["addf", "subf", "mulf", "addf", "divf"][op];
                    format!("{name} {}, {} {round}{ftz}: {t}", a.name, b.name)
                }
                5 => {
                    let (b, c) = (self.like(&a), self.like(&a));
                    format!("fma {}, {}, {} {round}{ftz}: {t}", a.name, b.name, c.name)
                }
                op @ 6..8 => {
                    let b = self.like(&a);
                    let nan = if self.rng.chance(40) { "propagate_nan " } else { "" };
                    format!("{} {}, {} {ftz}{nan}: {t}", ["maxf", "minf"][op - 6], a.name, b.name)
                }
                op @ 8..12 => format!("{} {} : {t}", ["absf", "negf", "ceil", "floor"][op - 8], a.name),
                12 => format!("sqrt {} {round}{ftz}: {t}", a.name),
                op @ 13..21 => {
                    let name = ["exp", "exp2", "log", "log2", "sin", "cos", "tanh", "rsqrt"][op - 13];
                    format!("{name} {} : {t}", a.name)
                }
                _ => {
                    let b = self.like(&a);
                    format!("{} {}, {} : {t}", self.rng.pick(&["pow", "atan2", "remf"]), a.name, b.name)
                }
            };
            self.def(&shape, dtype, false, text);
        } else if dtype.is_int() {
            let sign = *self.rng.pick(&["signed", "unsigned"]);
            let b = self.like(&a);
            let one_bit = dtype == DType::I1;
            let text = match self.rng.below(14) {
                op @ 0..3 if !one_bit => format!("{} {}, {} : {t}", ["addi", "subi", "muli"][op], a.name, b.name),
                op @ 3..5 if !one_bit => format!("{} {}, {} {sign} : {t}", ["maxi", "mini"][op - 3], a.name, b.name),
                op @ 5..7 if !one_bit => {
                    // An odd divisor is not zero; -1 is left out by unsigned division, where it is only large.
                    let one = self.hidden(&shape, dtype, format!("constant <{dtype}: 1> : {t}"));
                    let odd = self.hidden(&shape, dtype, format!("ori {}, {} : {t}", b.name, one.name));
                    format!("{} {}, {} unsigned : {t}", ["divi", "remi"][op - 5], a.name, odd.name)
                }
                op @ 7..9 if !one_bit => {
                    let width = self.hidden(&shape, dtype, format!("constant <{dtype}: {}> : {t}", dtype.bits() - 1));
                    let amount = self.hidden(&shape, dtype, format!("andi {}, {} : {t}", b.name, width.name));
                    let suffix = if op == 7 { String::new() } else { format!("{sign} ") };
                    format!("{} {}, {} {suffix}: {t}", ["shli", "shri"][op - 7], a.name, amount.name)
                }
                9 if !one_bit => format!("negi {} : {t}", a.name),
                10 if !one_bit => format!("mulhii {}, {} : {t}", a.name, b.name),
                _ => format!("{} {}, {} : {t}", self.rng.pick(&["andi", "ori", "xori"]), a.name, b.name),
            };
            self.def(&shape, dtype, false, text);
        }
    }

    pub(super) fn convert(&mut self) {
        let a = self.any();
        let (t, shape) = (a.ty(), a.shape.clone());
        let sign = *self.rng.pick(&["signed", "unsigned"]);
        if a.dtype.is_float() {
            if a.dtype.is_base_float() && self.rng.chance(35) {
                // Clamped, a float fits every integer type used here; NaN goes to a bound (max prefers the number).
                let to = *self.rng.pick(INTS);
                let clamp = |m: &mut Maker, op: &str, v: &Val, bound: &str| {
                    let c = m.hidden(&shape, a.dtype, format!("constant <{}: {bound}> : {t}", a.dtype));
                    m.hidden(&shape, a.dtype, format!("{op} {}, {} : {t}", v.name, c.name))
                };
                let low = clamp(self, "maxf", &a, if sign == "signed" { "-100.0" } else { "0.0" });
                let both = clamp(self, "minf", &low, "100.0");
                self.def(&shape, to, false, format!("ftoi {} {sign} : {t} -> {}", both.name, ty(&shape, to.name())));
            } else {
                let to = *self.rng.pick(FLOATS);
                if to != a.dtype {
                    self.def(&shape, to, a.small, format!("ftof {} : {t} -> {}", a.name, ty(&shape, to.name())));
                }
            }
            return;
        }
        match self.rng.below(3) {
            0 => {
                let to = *self.rng.pick(FLOATS);
                let text = format!("itof {} {sign} : {t} -> {}", a.name, ty(&shape, to.name()));
                self.def(&shape, to, a.dtype == DType::I1, text);
            }
            _ => {
                let to = *self.rng.pick(INTS);
                let text = match to.bits().cmp(&a.dtype.bits()) {
                    std::cmp::Ordering::Greater => format!("exti {} {sign} : {t} -> {}", a.name, ty(&shape, to.name())),
                    std::cmp::Ordering::Less => format!("trunci {} : {t} -> {}", a.name, ty(&shape, to.name())),
                    std::cmp::Ordering::Equal => return,
                };
                self.def(&shape, to, false, text);
            }
        }
    }

    pub(super) fn reshaping(&mut self) {
        let a = self.any();
        let t = a.ty();
        let emit = |m: &mut Maker, shape: &[u64], text: String| {
            let text = format!("{text} : {t} -> {}", ty(shape, a.dtype.name()));
            m.def(shape, a.dtype, a.small, text);
        };
        match self.rng.below(6) {
            // reshape: move a factor of two from one dimension to another, or add and drop ones
            0 | 1 => {
                let mut shape = a.shape.clone();
                if shape.len() < 3 {
                    let at = self.rng.below(shape.len() + 1);
                    shape.insert(at, 1);
                }
                let (i, j) = (self.rng.below(shape.len()), self.rng.below(shape.len()));
                if i != j && shape[i] > 1 {
                    shape[i] /= 2;
                    shape[j] *= 2;
                }
                emit(self, &shape, format!("reshape {}", a.name));
            }
            2 => {
                let mut shape = a.shape.clone();
                let mut grew = false;
                for i in 0..shape.len() {
                    if shape[i] == 1 && elements(&shape) < 512 {
                        shape[i] = 1 << self.rng.range(0, 3);
                        grew = true;
                    }
                }
                if grew {
                    emit(self, &shape, format!("broadcast {}", a.name));
                }
            }
            3 if a.shape.len() >= 2 => {
                let mut perm: Vec<usize> = (0..a.shape.len()).collect();
                for i in 0..perm.len() {
                    let j = self.rng.below(perm.len());
                    perm.swap(i, j);
                }
                let shape: Shape = perm.iter().map(|&p| a.shape[p]).collect();
                emit(self, &shape, format!("permute {} {perm:?}", a.name));
            }
            4 if !a.shape.is_empty() && elements(&a.shape) <= 512 => {
                let b = self.like(&a);
                let dim = self.rng.below(a.shape.len());
                let mut shape = a.shape.clone();
                shape[dim] *= 2;
                let text =
                    format!("cat {}, {} dim = {dim} : {t}, {t} -> {}", a.name, b.name, ty(&shape, a.dtype.name()));
                self.def(&shape, a.dtype, a.small && b.small, text);
            }
            5 if !a.shape.is_empty() => {
                let mut shape = a.shape.clone();
                let mut index = vec![];
                for s in shape.iter_mut() {
                    let cut = if *s > 1 && self.rng.chance(50) { 2 } else { 1 };
                    *s /= cut;
                    let at = self.rng.below(cut as usize);
                    index.push(if at == 0 { "%i0" } else { "%i1" });
                }
                emit(self, &shape, format!("extract {}[{}]", a.name, index.join(", ")));
            }
            _ => {}
        }
    }

    /// A float tile of small integers of the shape of some tile, for sums.
    pub(super) fn small(&mut self, dtype: DType, shape: &[u64]) -> Val {
        let n = elements(shape);
        let flat = self.hidden(&[n], DType::I32, format!("iota : {}", ty(&[n], "i32")));
        let lane =
            self.hidden(shape, DType::I32, format!("reshape {} : {} -> {}", flat.name, flat.ty(), ty(shape, "i32")));
        let three = self.hidden(shape, DType::I32, format!("constant <i32: 3> : {}", ty(shape, "i32")));
        let few = self.hidden(shape, DType::I32, format!("andi {}, {} : {}", lane.name, three.name, lane.ty()));
        self.def(shape, dtype, true, format!("itof {} signed : {} -> {}", few.name, lane.ty(), ty(shape, dtype.name())))
    }

    pub(super) fn reduce(&mut self) {
        let mut a = self.any();
        if a.shape.is_empty() || !(a.dtype.is_base_float() || (a.dtype.is_int() && a.dtype != DType::I1)) {
            return;
        }
        let dim = self.rng.below(a.shape.len());
        let e = format!("tile<{}>", a.dtype);
        let (identity, body) = if a.dtype.is_float() {
            match self.rng.below(3) {
                0 if elements(&a.shape) <= 128 => {
                    if !a.small {
                        let shape = a.shape.clone();
                        a = self.small(a.dtype, &shape);
                    }
                    ("0.0", format!("addf %e, %c : {e}"))
                }
                1 => ("0.0", format!("maxf %e, %c propagate_nan : {e}")),
                _ => ("0.0", format!("minf %e, %c : {e}")),
            }
        } else {
            match self.rng.below(6) {
                0 | 1 => ("0", format!("addi %e, %c : {e}")),
                2 => ("1", format!("muli %c, %e : {e}")),
                3 => ("0", format!("maxi %e, %c signed : {e}")),
                4 => ("0", format!("xori %e, %c : {e}")),
                // Not associative: stays in order.
                _ => ("1", format!("subi %e, %c : {e}")),
            }
        };
        let mut shape = a.shape.clone();
        shape.remove(dim);
        let result = self.fresh();
        self.line(format!(
            "{result} = reduce {} dim={dim} identities=[{identity} : {}] : {} -> {} (%e: {e}, %c: {e}) {{",
            a.name,
            a.dtype,
            a.ty(),
            ty(&shape, a.dtype.name())
        ));
        self.line(format!("  %r = {body}"));
        self.line(format!("  yield %r : {e}"));
        self.line("}".into());
        self.pool.push(Val { name: result, shape, dtype: a.dtype, small: false });
    }

    pub(super) fn scan(&mut self) {
        let a = self.any();
        if a.shape.is_empty() || !a.dtype.is_int() || a.dtype == DType::I1 {
            return;
        }
        let dim = self.rng.below(a.shape.len());
        let e = format!("tile<{}>", a.dtype);
        let reverse = self.rng.chance(40);
        let result = self.fresh();
        self.line(format!(
            "{result} = scan {} dim={dim} reverse={reverse} identities=[0 : {}] : {} -> {} (%e: {e}, %c: {e}) {{",
            a.name,
            a.dtype,
            a.ty(),
            a.ty()
        ));
        let op = *self.rng.pick(&["addi", "xori", "addi"]);
        self.line(format!("  %r = {op} %e, %c : {e}"));
        self.line(format!("  yield %r : {e}"));
        self.line("}".into());
        self.pool.push(Val { name: result, ..a });
    }

    pub(super) fn contract(&mut self) {
        let dim = |m: &mut Maker| 1u64 << m.rng.range(0, 5);
        let Some(a) = self.find(|v| {
            v.shape.len() == 2 && matches!(v.dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64 | DType::I8)
        }) else {
            let dtype = *self.rng.pick(&[DType::F16, DType::BF16, DType::F32, DType::F64, DType::I8]);
            let shape = [dim(self), dim(self)];
            let tiles = self.blocks();
            return self.view_input(dtype, &shape, "%lin", tiles);
        };
        let (m, k) = (a.shape[0], a.shape[1]);
        let b = match self.find(|v| v.dtype == a.dtype && v.shape.len() == 2 && v.shape[0] == k) {
            Some(b) => b,
            None => {
                let n = dim(self);
                let tiles = self.blocks();
                self.view_input(a.dtype, &[k, n], "%lin", tiles);
                self.pool[self.pool.len() - 1].clone()
            }
        };
        let shape = [m, b.shape[1]];
        let out = match a.dtype {
            DType::I8 => DType::I32,
            DType::F64 => DType::F64,
            DType::F16 if self.rng.chance(25) => DType::F16,
            _ => DType::F32,
        };
        let acc = match self.find(|v| v.shape == shape && v.dtype == out) {
            Some(v) => v,
            None => self.constant(&shape, out),
        };
        let (op, sign) = if a.dtype == DType::I8 {
            ("mmai", *self.rng.pick(&[" signed signed", " unsigned signed", " unsigned unsigned"]))
        } else {
            ("mmaf", "")
        };
        let text = format!("{op} {}, {}, {}{sign} : {}, {}, {}", a.name, b.name, acc.name, a.ty(), b.ty(), acc.ty());
        self.def(&shape, out, false, text);
    }

    pub(super) fn compare_select(&mut self) {
        let a = self.any();
        let pred = *self.rng.pick(&[
            "equal",
            "not_equal",
            "less_than",
            "less_than_or_equal",
            "greater_than",
            "greater_than_or_equal",
        ]);
        let b = self.like(&a);
        let i1 = ty(&a.shape, "i1");
        let text = if a.dtype.is_base_float() {
            format!(
                "cmpf {pred} {} {}, {} : {} -> {i1}",
                self.rng.pick(&["ordered", "unordered"]),
                a.name,
                b.name,
                a.ty()
            )
        } else if a.dtype.is_int() {
            format!(
                "cmpi {pred} {}, {}, {} : {} -> {i1}",
                a.name,
                b.name,
                self.rng.pick(&["signed", "unsigned"]),
                a.ty()
            )
        } else {
            return;
        };
        let c = self.def(&a.shape, DType::I1, false, text);
        if self.rng.chance(70) {
            let text = format!("select {}, {}, {} : {i1}, {}", c.name, a.name, b.name, a.ty());
            self.def(&a.shape, a.dtype, a.small && b.small, text);
        }
    }
}
