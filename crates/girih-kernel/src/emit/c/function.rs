//! Whole kernels as C functions: parameters, scratch and the loop over blocks.

use super::stmt::Printer;
use crate::emit::cstyle::support::Support;
use crate::emit::cstyle::{Indices, Lines};
use crate::kernel::ir::*;
use crate::kernel::nan_bits::observed;
use crate::num::DType;

/// The callers of a translation unit's kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Callers {
    /// A program that loads the unit's object: kernels are exported, with descriptions.
    Outside,
    /// Code that follows in the same unit.
    Inside,
}

/// The text of a kernel's functions, and the statement of each line that has one; statements are counted in order of
/// the text.
pub type Function = (String, Vec<(u32, usize)>);
/// The statement that has no form in C, `None` for the kernel as a whole; and the reason.
pub type Refused = (Option<usize>, String);

/// The kernel as the C function `girih_<n>` and, for callers outside, its description.
pub fn function(support: &mut Support, kernel: &Kernel, n: usize, callers: Callers) -> Result<Function, Refused> {
    if kernel.threads != 1 {
        return Err((None, format!("a block has {} threads, and C has one", kernel.threads)));
    }
    let out = Lines { depth: 2, ..Lines::default() };
    let (ix, observed) = (Indices::new(kernel, &super::DIALECT), observed(kernel));
    let mut p = Printer { kernel, support, ix, out, observed, lines: vec![], next: 0, refused: None };
    p.block(&kernel.body);
    if let Some((statement, message)) = p.refused.take() {
        return Err((Some(statement), message));
    }
    let (body, mut lines) = (std::mem::take(&mut p.out.text), std::mem::take(&mut p.lines));
    p.out.depth = 0;
    let params = p.params(&body);
    let slots = p.slots(&body);
    for helper in std::mem::take(&mut p.ix.used) {
        p.support.call(helper, 1);
    }
    p.support.ty("i64", 1);
    let mut head = Lines::default();
    head.line(&format!("// kernel {}", kernel.name));
    let inside = if callers == Callers::Inside { "static " } else { "" };
    head.open(&format!("{inside}int32_t girih_{n}(const girih_args *args, girih_ctx *ctx, int64_t lo, int64_t hi) {{"));
    params.iter().chain(&slots).for_each(|l| head.line(l));
    let used = |word: &str| contains_word(&body, word);
    if ["bx", "by", "gx", "bz"].into_iter().any(used) {
        head.line("const i64 gx = ctx->grid[0];");
    }
    if ["by", "gy", "bz"].into_iter().any(used) {
        head.line("const i64 gy = ctx->grid[1];");
    }
    if used("gz") {
        head.line("const i64 gz = ctx->grid[2];");
    }
    let tiles = super::amx::used(kernel);
    if tiles.is_some() {
        head.line("tiles_begin();");
    }
    head.open("for (i64 block = lo; block < hi; block++) {");
    head.line("if (*ctx->abort && ctx->stop(ctx)) return 1;");
    for (word, value) in [("bx", "block % gx"), ("by", "block / gx % gy"), ("bz", "block / gx / gy")] {
        if used(word) {
            head.line(&format!("const i64 {word} = {value};"));
        }
    }
    lines.iter_mut().for_each(|(line, _)| *line += head.count);
    head.text.push_str(&body);
    if used("next_block") {
        head.line("next_block:;");
    }
    head.close("}");
    if !contains_word(&head.text, "args->slot") && !head.text.contains("args->") {
        head.line("(void)args;");
    }
    if tiles == Some(super::amx::Left::Free) {
        head.line("tiles_end();");
    }
    head.line("return 0;");
    head.close("}");
    if callers == Callers::Outside {
        let (abi, params, scratch) = (super::ABI, kernel.params.len(), kernel.scratch);
        head.line(&format!("const girih_meta girih_{n}_meta = {{{abi}, {params}, {scratch}}};"));
    }
    Ok((head.text, lines))
}

fn contains_word(text: &str, word: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    text.match_indices(word).any(|(i, _)| {
        let before = i.checked_sub(1).is_none_or(|j| !is_word(text.as_bytes()[j]));
        before && text.as_bytes().get(i + word.len()).is_none_or(|&b| !is_word(b))
    })
}

impl Printer<'_> {
    fn params(&mut self, body: &str) -> Vec<String> {
        let mut out = Vec::new();
        for (n, &p) in self.kernel.params.iter().enumerate() {
            let val = &self.kernel.vals[p];
            if !contains_word(body, val.name.as_str()) {
                continue;
            }
            let slot = format!("args->slot[{n}]");
            let ty = self.ty(val.ty);
            let value = match val.ty.elem {
                Elem::Ptr(_) => format!("({ty})(uintptr_t){slot}"),
                Elem::Num(d) if matches!(d, DType::F32 | DType::F64 | DType::TF32) => {
                    let f = self.support.call(&format!("float_{d}"), 1);
                    format!("{f}({slot})")
                }
                Elem::Num(DType::I1) => format!("{slot} & 1"),
                Elem::Num(_) => format!("({ty}){slot}"),
            };
            out.push(format!("const {ty} {} = {value};", val.name).replacen(
                &format!("const {ty} "),
                &match val.ty.elem {
                    Elem::Ptr(_) => format!("{ty}const "),
                    Elem::Num(_) => format!("const {ty} "),
                },
                1,
            ));
        }
        out
    }

    fn slots(&mut self, body: &str) -> Vec<String> {
        let mut out = Vec::new();
        for slot in self.kernel.slots.values() {
            if contains_word(body, slot.name.as_str()) {
                let ty = self.support.memory_ty(slot.elem.held().name(), 1);
                out.push(format!(
                    "{ty} *const {} = ({ty} *)((char *)ctx->scratch + {}); // {}[{}]",
                    slot.name,
                    slot.offset,
                    slot.elem.held(),
                    slot.len
                ));
            }
        }
        out
    }
}
