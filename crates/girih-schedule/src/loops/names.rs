//! One name per value, axis, buffer and global of a kernel, unique in it, taken from the hints in order of the text.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use super::ir::*;
use super::walk::{Part, parts, visit};
use crate::base::id::Id;
use crate::index::text;

/// Words that mean something in the text where a name could stand.
pub const RESERVED: &[&str] = &[
    "and", "as", "assert", "atomic", "alloca", "break", "bx", "by", "bz", "cas", "continue", "div", "else", "false",
    "for", "from", "global", "gx", "gy", "gz", "if", "in", "index", "inf", "kernel", "load", "local", "loop", "max",
    "min", "nan", "pass", "prefetch", "print", "ptr", "register", "require", "return", "shared", "stage", "step",
    "store", "test", "true", "tx", "where", "zext",
];

#[derive(Default)]
pub struct Names {
    vals: Vec<Option<String>>,
    axes: Vec<Option<String>>,
    bufs: Vec<Option<String>>,
    taken: FxHashSet<String>,
    /// The next number to try after a name.
    next: FxHashMap<String, u32>,
}

pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Names {
    pub fn of(kernel: &Kernel) -> Names {
        let mut names = Names {
            vals: vec![None; kernel.vals.len()],
            axes: vec![None; kernel.axes.len()],
            bufs: vec![None; kernel.bufs.len()],
            ..Names::default()
        };
        for param in &kernel.params {
            names.define_val(kernel, param.val, &param.name);
        }
        for obligation in &kernel.obligations {
            for (axis, ..) in &obligation.axes {
                names.define_axis(kernel, *axis);
            }
        }
        visit(&kernel.body, &mut |stmt| {
            parts(stmt, &mut |part| match part {
                Part::DefVal(v) => {
                    let hint = kernel.vals.get(*v).map_or("", |v| &v.name);
                    names.define_val(kernel, *v, hint);
                }
                Part::DefAxis(a) => names.define_axis(kernel, *a),
                Part::DefBuf(b) => names.define_buf(kernel, *b),
                _ => {}
            });
        });
        names
    }

    fn define_val(&mut self, kernel: &Kernel, val: ValId, hint: &str) {
        if val.index() < kernel.vals.len() && self.vals[val.index()].is_none() {
            self.vals[val.index()] = Some(self.fresh(hint, "v"));
        }
    }
    fn define_axis(&mut self, kernel: &Kernel, axis: AxisId) {
        if let Some(a) = kernel.axes.get(axis)
            && self.axes[axis.index()].is_none()
        {
            self.axes[axis.index()] = Some(self.fresh(&a.name, "i"));
        }
    }
    fn define_buf(&mut self, kernel: &Kernel, buf: BufId) {
        if let Some(b) = kernel.bufs.get(buf)
            && self.bufs[buf.index()].is_none()
        {
            self.bufs[buf.index()] = Some(self.fresh(&b.name, "t"));
        }
    }

    /// Makes the hint a name, with a number after it where the name is taken.
    fn fresh(&mut self, hint: &str, otherwise: &str) -> String {
        let mut base: String =
            hint.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
        if base.is_empty() {
            base = otherwise.to_string();
        } else if base.starts_with(|c: char| c.is_ascii_digit()) {
            base.insert_str(0, otherwise);
        }
        // `i1` may be an axis; a value of that name would only confuse the reader.
        let is_type = otherwise != "i" && crate::num::DType::from_name(&base).is_some();
        let reserved = RESERVED.contains(&base.as_str()) || is_type;
        if !reserved && self.taken.insert(base.clone()) {
            return base;
        }
        let mut n = self.next.get(&base).copied().unwrap_or(1);
        loop {
            let name = format!("{base}_{n}");
            n += 1;
            if self.taken.insert(name.clone()) {
                self.next.insert(base, n);
                return name;
            }
        }
    }

    pub fn val(&self, val: ValId) -> String {
        name_at(&self.vals, val.index(), "v")
    }
    pub fn axis(&self, axis: AxisId) -> String {
        name_at(&self.axes, axis.index(), "i")
    }
    pub fn buf(&self, buf: BufId) -> String {
        name_at(&self.bufs, buf.index(), "t")
    }
}

impl text::Names for Names {
    fn axis(&self, axis: AxisId) -> Cow<'_, str> {
        Names::axis(self, axis).into()
    }
    fn val(&self, val: ValId) -> Cow<'_, str> {
        Names::val(self, val).into()
    }
}

/// An id that nothing defines shows as `?v7`, which does not parse.
fn name_at(names: &[Option<String>], index: usize, kind: &str) -> String {
    names.get(index).cloned().flatten().unwrap_or_else(|| format!("?{kind}{index}"))
}
