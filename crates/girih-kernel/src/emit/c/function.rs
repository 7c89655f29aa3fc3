//! Whole kernels as C functions: parameters, scratch and the loop over blocks.

use super::parts::{self, Limits, Name, Parts};
use super::stmt::Printer;
use crate::emit::cstyle::support::Support;
use crate::emit::cstyle::{Indices, Lines};
use crate::kernel::ir::*;
use crate::kernel::nan_bits::observed;
use crate::num::DType;
use rustc_hash::FxHashSet;

/// The callers of a translation unit's kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Callers {
    /// A program that loads the unit's object: kernels are exported, with descriptions.
    Outside,
    /// Code that follows in the same unit.
    Inside,
}

/// The form of a unit's functions.
#[derive(Clone, Copy)]
pub struct Form {
    pub callers: Callers,
    pub limits: Limits,
}

/// The text of a kernel's functions, and the statement of each line that has one; statements are counted in order of
/// the text.
pub type Function = (String, Vec<(u32, usize)>);
/// The statement that has no form in C, `None` for the kernel as a whole; and the reason.
pub type Refused = (Option<usize>, String);

/// The kernel as the C function `girih_<n>` and, for callers outside, its description. The functions of its parts stand
/// before it.
pub fn function(support: &mut Support, kernel: &Kernel, n: usize, form: Form) -> Result<Function, Refused> {
    if kernel.threads != 1 {
        return Err((None, format!("a block has {} threads, and C has one", kernel.threads)));
    }
    let out = Lines { depth: 2, ..Lines::default() };
    let (ix, observed) = (Indices::new(kernel, &super::DIALECT), observed(kernel));
    let parts =
        Parts::of(kernel, form.limits).map(|parts| Cut { parts, of: n, within: None, loops: 0, made: Made::default() });
    let mut p = Printer { kernel, support, ix, out, observed, lines: vec![], next: 0, refused: None, parts };
    p.support.ty("i64", 1);
    p.block(&kernel.body);
    if let Some((statement, message)) = p.refused.take() {
        return Err((Some(statement), message));
    }
    let (body, mut lines) = (std::mem::take(&mut p.out.text), std::mem::take(&mut p.lines));
    p.out.depth = 0;
    let words = words(&body);
    let prologue = p.prologue(&words);
    for helper in std::mem::take(&mut p.ix.used) {
        p.support.call(helper, 1);
    }
    let mut head = Lines::default();
    let before = p.parts_before(&mut head);
    head.line(&format!("// kernel {}", kernel.name));
    let inside = if form.callers == Callers::Inside { "static " } else { "" };
    head.open(&format!("{inside}int32_t girih_{n}(const girih_args *args, girih_ctx *ctx, int64_t lo, int64_t hi) {{"));
    prologue.iter().for_each(|l| head.line(l));
    let tiles = super::amx::used(kernel);
    if tiles.is_some() {
        head.line("tiles_begin();");
    }
    for slot in kernel.slots.values().filter(|s| s.space == Space::Kept { zeroed: true }) {
        head.line(&format!("__builtin_memset((char *)ctx->scratch + {}, 0, {});", slot.offset, slot.bytes()));
    }
    let cut = p.parts.as_ref();
    if cut.is_some() {
        head.line(&format!("girih_{n}_live live = {{.args = args, .ctx = ctx}};"));
    }
    head.open("for (i64 block = lo; block < hi; block++) {");
    head.line("if (*ctx->abort && ctx->stop(ctx)) return 1;");
    if cut.is_some() {
        head.line("live.block = block;");
    }
    if words.contains("leave") {
        head.line("int32_t leave;");
    }
    position(&words).iter().for_each(|l| head.line(l));
    lines.iter_mut().for_each(|(line, _)| *line += head.count);
    head.text.push_str(&body);
    if words.contains("next_block") {
        head.line("next_block:;");
    }
    head.close("}");
    if !head.text.contains("args->") && cut.is_none() {
        head.line("(void)args;");
    }
    if tiles == Some(super::amx::Left::Free) {
        head.line("tiles_end();");
    }
    head.line("return 0;");
    head.close("}");
    if form.callers == Callers::Outside {
        let (abi, params, scratch) = (super::ABI, kernel.params.len(), kernel.scratch);
        head.line(&format!("const girih_meta girih_{n}_meta = {{{abi}, {params}, {scratch}}};"));
    }
    Ok((head.text, before.into_iter().chain(lines).collect()))
}

/// The position of the block in the grid, as far as a text uses it.
fn position(used: &FxHashSet<&str>) -> Vec<String> {
    let words = [("bx", "block % gx"), ("by", "block / gx % gy"), ("bz", "block / gx / gy")];
    words
        .into_iter()
        .filter(|(word, _)| used.contains(word))
        .map(|(word, value)| format!("const i64 {word} = {value};"))
        .collect()
}

/// The words of a text.
fn words(text: &str) -> FxHashSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect()
}

/// The head of a part. GCC 12 takes calls of parts for calls without effects where it analyses them together with their
/// caller, and leaves them out (`noinline` does not keep it from that).
const APART: &str = "\
#if defined(__has_attribute) && !defined(__clang__)
#define APART static __attribute__((noipa))
#else
#define APART static __attribute__((noinline))
#endif
";

/// A kernel that is printed in parts.
pub(super) struct Cut {
    pub parts: Parts,
    /// The number of the kernel.
    of: usize,
    /// The part that is being printed.
    within: Option<usize>,
    /// The loops of the part around the statement that is being printed.
    pub loops: usize,
    made: Made,
}

/// The functions of the parts printed so far, and the statements of their lines.
#[derive(Default)]
struct Made {
    out: Lines,
    lines: Vec<(u32, usize)>,
}

/// A name that several functions of a kernel use: the word, and the word with its type.
struct Field {
    word: String,
    declared: String,
}

impl Printer<'_> {
    /// The part that begins at the next statement of the kernel, and how many statements of its body it has.
    pub(super) fn part(&self) -> Option<(usize, usize)> {
        let cut = self.parts.as_ref()?;
        if cut.within.is_some() { None } else { cut.parts.begins(self.next) }
    }

    /// Prints statements as a function of their own, and its call in their place.
    pub(super) fn print_part(&mut self, part: usize, body: &[Stmt]) {
        let outside = std::mem::replace(&mut self.out, Lines { depth: 1, ..Lines::default() });
        let above = std::mem::take(&mut self.lines);
        self.enter(Some(part));
        self.block(body);
        self.enter(None);
        let inside = std::mem::replace(&mut self.out, outside);
        let lines = std::mem::replace(&mut self.lines, above);
        let words = words(&inside.text);
        let (prologue, position) = (self.prologue(&words), position(&words));
        self.support.block("apart", APART);
        let Some(cut) = &mut self.parts else { return };
        let of = cut.of;
        let mut out = std::mem::take(&mut cut.made.out);
        out.open(&format!("APART int32_t girih_{of}_part_{part}(girih_{of}_live *live) {{"));
        let derived: FxHashSet<&str> = prologue.iter().flat_map(|line| self::words(line)).collect();
        let uses = |word: &str| words.contains(word) || derived.contains(word);
        for (word, ty) in [("args", "const girih_args *const "), ("ctx", "girih_ctx *const ")] {
            if uses(word) {
                out.line(&format!("{ty}{word} = live->{word};"));
            }
        }
        if uses("block") || !position.is_empty() {
            out.line("const i64 block = live->block;");
        }
        prologue.iter().chain(&position).for_each(|l| out.line(l));
        for name in self.fields(|parts| parts.read(part)) {
            out.line(&format!("{} = live->{};", name.declared, name.word));
        }
        let before = out.count;
        out.text.push_str(&inside.text);
        out.count += inside.count;
        for Field { word, .. } in self.fields(|parts| parts.written(part)) {
            out.line(&format!("live->{word} = {word};"));
        }
        out.line("return 0;");
        out.close("}");
        if let Some(cut) = &mut self.parts {
            cut.made.lines.extend(lines.into_iter().map(|(line, statement)| (line + before, statement)));
            cut.made.out = out;
        }
        self.call(of, part);
    }

    fn enter(&mut self, part: Option<usize>) {
        if let Some(cut) = &mut self.parts {
            (cut.within, cut.loops) = (part, 0);
        }
    }

    /// The call of a part, with the names that pass to it and back.
    fn call(&mut self, of: usize, part: usize) {
        for Field { word, .. } in self.fields(|parts| parts.passed(part)) {
            self.out.line(&format!("live.{word} = {word};"));
        }
        let leaves = self.parts.as_ref().map(|cut| cut.parts.leaves(part).clone()).unwrap_or_default();
        let result = if leaves.is_empty() { "" } else { "leave = " };
        self.out.line(&format!("{result}girih_{of}_part_{part}(&live);"));
        let given = self.parts.as_ref().map(|cut| cut.parts.given(part)).unwrap_or_default();
        for (name, defined) in given {
            let Field { word, declared } = self.field(name);
            self.out.line(&format!("{} = live.{word};", if defined { &declared } else { &word }));
        }
        for reason in leaves {
            let then = match reason {
                parts::STOPS => "return 1",
                parts::RETURNS => "goto next_block",
                parts::BREAKS => "break",
                _ => "continue",
            };
            self.out.line(&format!("if (leave == {reason}) {then};"));
        }
    }

    /// A statement that leaves a loop or a block: `text`, or the return from the part that it stands in.
    pub(super) fn leave(&mut self, text: &str, reason: u32) {
        let within = self.parts.as_ref().and_then(|cut| cut.within.map(|part| (part, cut.loops)));
        let Some((part, loops)) = within else { return self.out.line(text) };
        if loops > 0 && reason != parts::RETURNS {
            return self.out.line(text);
        }
        if reason != parts::RETURNS {
            for Field { word, .. } in self.fields(|parts| parts.written_early(part)) {
                self.out.line(&format!("live->{word} = {word};"));
            }
        }
        self.out.line(&format!("return {reason};"));
    }

    /// The type of the fields, and the functions of all parts; the statements of its lines.
    fn parts_before(&mut self, head: &mut Lines) -> Vec<(u32, usize)> {
        let fields: Vec<String> =
            self.fields(|parts| parts.fields().collect()).into_iter().map(|f| f.declared).collect();
        let Some(cut) = &mut self.parts else { return vec![] };
        let made = std::mem::take(&mut cut.made);
        let live = format!("girih_{}_live", cut.of);
        head.open(&format!("typedef struct {live} {{"));
        head.line("const girih_args *args;");
        head.line("girih_ctx *ctx;");
        head.line("i64 block;");
        fields.iter().for_each(|field| head.line(&format!("{field};")));
        head.close(&format!("}} {live};"));
        let before = head.count;
        head.text.push_str(&made.out.text);
        head.count += made.out.count;
        made.lines.into_iter().map(|(line, statement)| (line + before, statement)).collect()
    }

    fn fields(&mut self, names: impl FnOnce(&Parts) -> Vec<Name>) -> Vec<Field> {
        let names = self.parts.as_ref().map(|cut| names(&cut.parts)).unwrap_or_default();
        names.into_iter().map(|name| self.field(name)).collect()
    }

    fn field(&mut self, name: Name) -> Field {
        let (word, ty) = match name {
            Name::Val(val) => (self.name(val).to_string(), self.ty(self.val_ty(val))),
            Name::Axis(axis) => (self.kernel.axes[axis].name.to_string(), "i64".to_string()),
        };
        let space = if ty.ends_with('*') { "" } else { " " };
        Field { declared: format!("{ty}{space}{word}"), word }
    }

    /// The parameters, slots and extents of the grid that a text uses.
    fn prologue(&mut self, used: &FxHashSet<&str>) -> Vec<String> {
        let mut lines = self.params(used);
        lines.extend(self.slots(used));
        let used = |word: &str| used.contains(word);
        if ["bx", "by", "gx", "bz"].into_iter().any(used) {
            lines.push("const i64 gx = ctx->grid[0];".to_string());
        }
        if ["by", "gy", "bz"].into_iter().any(used) {
            lines.push("const i64 gy = ctx->grid[1];".to_string());
        }
        if used("gz") {
            lines.push("const i64 gz = ctx->grid[2];".to_string());
        }
        lines
    }

    fn params(&mut self, used: &FxHashSet<&str>) -> Vec<String> {
        let mut out = Vec::new();
        for (n, &p) in self.kernel.params.iter().enumerate() {
            let val = &self.kernel.vals[p];
            if !used.contains(val.name.as_str()) {
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
            let declared = match val.ty.elem {
                Elem::Ptr(_) => format!("{ty}const"),
                Elem::Num(_) => format!("const {ty}"),
            };
            out.push(format!("{declared} {} = {value};", val.name));
        }
        out
    }

    fn slots(&mut self, used: &FxHashSet<&str>) -> Vec<String> {
        let mut out = Vec::new();
        for slot in self.kernel.slots.values() {
            if used.contains(slot.name.as_str()) {
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
