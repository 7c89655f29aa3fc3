//! Products of warpgroups as PTX in small functions.
//!
//! ```text
//! wgmma f16 acc add a_s[0] swizzle 128 strides (0, 1024), b_s[0] trans swizzle 128 strides (8192, 1024)
//!     -->   wgmma_f16_128_nt(acc, wgmma_panel_128(&a_s[0], 0, 1024), wgmma_panel_128(&b_s[0], 8192, 1024));
//! wgmma f16 acc add a_f[k*4], b_s[0] trans swizzle 128 strides (8192, 1024)
//!     -->   wgmma_f16_128_rt(acc, &a_f[k * 4], wgmma_panel_128(&b_s[0], 8192, 1024));
//! wgmma wait 0 acc
//!     -->   wgmma_wait_0_64_f32(acc);
//! ```
//! A wait takes the sums as operands, so that no read of them is moved before it.

use super::stmt::Printer;
use crate::kernel::ir::*;

/// The descriptor's number for rows of `swizzle` bytes.
fn layout(swizzle: u32) -> u32 {
    match swizzle {
        128 => 1,
        64 => 2,
        _ => 3,
    }
}

/// Returns true if statements have products of warpgroups with sums in registers.
pub(super) fn is_in(body: &[Stmt]) -> bool {
    let mut found = false;
    statements(body, &mut |s| {
        found |= matches!(s, Stmt::Wgmma { .. } | Stmt::WgmmaCommit | Stmt::WgmmaWait { .. });
        found |= matches!(s, Stmt::Fence { kind: Fence::Registers });
    });
    found
}

/// Returns true if warpgroups exchange registers.
pub(super) fn gives_registers(body: &[Stmt]) -> bool {
    let mut found = false;
    statements(body, &mut |s| found |= matches!(s, Stmt::Registers { .. }));
    found
}

/// The type of the sums in PTX and in C, and the constraint of a register for them.
fn held(is_float: bool) -> (&'static str, &'static str, char) {
    if is_float { ("f32", "float", 'f') } else { ("s32", "int", 'r') }
}

fn list(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

impl Printer<'_> {
    /// More or fewer registers for each thread of a warpgroup.
    pub(super) fn registers(&mut self, count: u32, more: bool) {
        let (word, way) = if more { ("inc", "more") } else { ("dec", "fewer") };
        let instruction = format!("setmaxnreg.{word}.sync.aligned.u32 {count}");
        self.bare(&format!("registers_{way}_{count}"), &instruction);
    }

    /// A panel as the 64 bits that describe it: where it begins and its strides in pieces of 16 bytes.
    fn panel(&mut self, panel: &Panel) -> String {
        let Panel { place, swizzle, lead, stride, .. } = panel;
        let name = format!("wgmma_panel_{swizzle}");
        let text = format!(
            "INLINE unsigned long long {name}(const void *p, unsigned int lead, unsigned int stride) {{\n  unsigned int at;\n  \
             asm(\"{{ .reg .u64 s; cvta.to.shared.u64 s, %1; cvt.u32.u64 %0, s; }}\" : \"=r\"(at) : \"l\"(p));\n  return \
             (unsigned long long)((at & 0x3ffff) >> 4) | (unsigned long long)(lead >> 4) << 16 | (unsigned long long)(stride \
             >> 4) << 32 | {}ull << 62;\n}}\n",
            layout(*swizzle)
        );
        self.support.block(&name, &text);
        format!("{name}({}, {lead}, {stride})", self.target(place).address)
    }

    pub(super) fn wgmma(&mut self, acc: BufId, a: &Left, b: &Panel, of: Operand) {
        let len = self.kernel.slots[acc].len;
        let (cols, each, word) = (2 * len, len / 2, of.word());
        let (sum, ty, r) = held(of.is_float());
        let left = a.panel();
        let way = |panel: &Panel| if panel.transposed { 't' } else { 'n' };
        let how: String = [left.map_or('r', way), way(b)].into_iter().collect();
        let name = format!("wgmma_{word}_{cols}_{how}");
        // In each eight columns, two sums of a row and two of the row eight below.
        let sums = (0..cols / 8).flat_map(|j| [2 * j, 2 * j + 1, each + 2 * j, each + 2 * j + 1]);
        // Floats may be negated, and those of two bytes transposed.
        let trans = left.into_iter().chain([b]).map(|p| u32::from(p.transposed).to_string());
        let more = list(
            match of {
                Operand::F16 | Operand::BF16 => ["add", "1", "1"].map(String::from).into_iter().chain(trans).collect(),
                Operand::TF32 | Operand::E4M3 | Operand::E5M2 => ["add", "1", "1"].map(String::from).to_vec(),
                Operand::S8 | Operand::U8 => vec!["add".to_string()],
            }
            .into_iter(),
        );
        let words = u64::from(Left::WORDS);
        // The operands behind the sums: the left one, the right one, and that the product is added.
        let (next, from, of_a, ty_a) = match left {
            Some(_) => (len + 1, format!("%{len}"), "\"l\"(a)".to_string(), "unsigned long long a"),
            None => {
                let names = list((len..len + words).map(|n| format!("%{n}")));
                let of_a = list((0..words).map(|n| format!("\"r\"(a[{n}])")));
                (len + words, format!("{{{names}}}"), of_a, "const int *a")
            }
        };
        let body = format!(
            "  asm volatile(\"{{ .reg .pred add; setp.ne.b32 add, %{}, 0; wgmma.mma_async.sync.aligned.m64n{cols}k{}.{sum}.{word}.{word} \
             {{{}}}, {from}, %{next}, {more}; }}\" : {} : {of_a}, \"l\"(b), \"r\"(1) : \"memory\");\n",
            next + 1,
            of.terms(),
            list((0..len).map(|n| format!("%{n}"))),
            list(sums.map(|n| format!("\"+{r}\"(c[{n}])"))),
        );
        let text = format!("INLINE void {name}({ty} *c, {ty_a}, unsigned long long b) {{\n{body}}}\n");
        self.support.block(&name, &text);
        let a = match a {
            Left::Panel(panel) => self.panel(panel),
            Left::Words(place) => self.target(place).address,
        };
        let b = self.panel(b);
        let acc = self.kernel.slots[acc].name.to_string();
        self.out.line(&format!("{name}({acc}, {a}, {b});"));
    }

    /// The sums, and the arrays that are computed before, are operands of the wait: no read of the former is moved before it, and
    /// no computation of the latter behind it.
    pub(super) fn wgmma_wait(&mut self, left: u32, acc: BufId, behind: &[BufId]) {
        let mut name = format!("wgmma_wait_{left}");
        let (mut params, mut args, mut operands) = (vec![], vec![], vec![]);
        for (n, buf) in [acc].iter().chain(behind).enumerate() {
            let Slot { name: array, len, elem, .. } = &self.kernel.slots[*buf];
            let (word, ty, r) = held(elem.held().is_float());
            let param = if n == 0 { "c".to_string() } else { format!("b{n}") };
            name += &format!("_{len}_{word}");
            params.push(format!("{ty} *{param}"));
            args.push(array.to_string());
            operands.extend((0..*len).map(|n| format!("\"+{r}\"({param}[{n}])")));
        }
        let (params, operands) = (list(params.into_iter()), list(operands.into_iter()));
        let body = format!("  asm volatile(\"wgmma.wait_group.sync.aligned {left};\" : {operands} : : \"memory\");\n");
        self.support.block(&name, &format!("INLINE void {name}({params}) {{\n{body}}}\n"));
        self.out.line(&format!("{name}({});", list(args.into_iter())));
    }
}
