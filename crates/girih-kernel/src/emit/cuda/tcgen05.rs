//! Products with sums in tensor memory as PTX in small functions.
//!
//! ```text
//! tcgen05 alloc tmem[0] columns 128    -->   tcgen05_alloc_128(&tmem[0]);
//! tcgen05 mma f16 to sums = a_s[0] descriptor 0x4000404000000000, b_s[0] descriptor .. by 0x8200010 add where k > 0
//!     -->   tcgen05_mma_f16(sums, tcgen05_operand(&a_s[0], 0x4000404000000000ull), .., 0x8200010u, k > 0);
//! tcgen05 commit done[0]               -->   tcgen05_commit(&done[0]);
//! tcgen05 load acc from sums           -->   tcgen05_load_128_f32(acc, sums);
//! tcgen05 wait acc                     -->   tcgen05_wait_128_f32(acc);
//! ```
//! A wait for loads takes the array as operands, so that no use of it is moved before the wait.

use super::stmt::Printer;
use crate::index::{Ix, Mask};
use crate::kernel::ir::*;
use crate::kernel::tcgen05::MmaKind;

/// The most columns of one load: 16 lanes of 256 bits, 32 times.
const WIDEST: u64 = 256;

/// Returns true if statements use tensor memory.
pub(super) fn is_in(body: &[Stmt]) -> bool {
    let mut found = false;
    statements(body, &mut |s| found |= s.words().starts_with("tcgen05"));
    found
}

fn list(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

impl Printer<'_> {
    pub(super) fn tcgen05_alloc(&mut self, to: &Address, columns: u32) {
        let name = format!("tcgen05_alloc_{columns}");
        let body = format!(
            "  asm volatile(\"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], {columns};\" : : \"r\"((unsigned \
             int)__cvta_generic_to_shared(to)) : \"memory\");\n"
        );
        self.support.block(&name, &format!("INLINE void {name}(void *to) {{\n{body}}}\n"));
        let address = self.target(to).address;
        self.out.line(&format!("{name}({address});"));
    }

    pub(super) fn tcgen05_dealloc(&mut self, at: &Ix, columns: u32) {
        let name = format!("tcgen05_dealloc_{columns}");
        let body = format!(
            "  asm volatile(\"tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, {columns};\" : : \"r\"(at) : \"memory\");\n"
        );
        self.support.block(&name, &format!("INLINE void {name}(int at) {{\n{body}}}\n"));
        let at = self.ix.print(at);
        self.out.line(&format!("{name}({at});"));
    }

    /// The 64 bits that describe an operand: its address in units of 16 bytes, and the number.
    fn described(&mut self, of: &Described) -> String {
        let text = "INLINE unsigned long long tcgen05_operand(const void *p, unsigned long long number) {\n  unsigned int at = (unsigned \
                    int)__cvta_generic_to_shared(p);\n  return number | (at & 0x3ffff) >> 4;\n}\n";
        self.support.block("tcgen05_operand", text);
        format!("tcgen05_operand({}, {:#x}ull)", self.target(&of.place).address, of.number)
    }

    pub(super) fn tcgen05_mma(
        &mut self,
        kind: MmaKind,
        sums: &Ix,
        [a, b]: [&Described; 2],
        instruction: u32,
        add: &Mask,
    ) {
        let (word, name) = (kind.word(), format!("tcgen05_mma_{}", kind.word()));
        let body = format!(
            "  asm volatile(\"{{ .reg .pred add; setp.ne.b32 add, %4, 0; tcgen05.mma.cta_group::1.kind::{word} [%0], %1, %2, %3, add; \
             }}\" : : \"r\"(sums), \"l\"(a), \"l\"(b), \"r\"(instruction), \"r\"((int)add) : \"memory\");\n"
        );
        let params = "int sums, unsigned long long a, unsigned long long b, unsigned int instruction, bool add";
        self.support.block(&name, &format!("INLINE void {name}({params}) {{\n{body}}}\n"));
        let (sums, a, b, add) = (self.ix.print(sums), self.described(a), self.described(b), self.mask(add));
        self.out.line(&format!("{name}({sums}, {a}, {b}, {instruction:#x}u, {add});"));
    }

    pub(super) fn tcgen05_commit(&mut self, on: &Address) {
        let body = "  asm volatile(\"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];\" : : \"r\"((unsigned \
                    int)__cvta_generic_to_shared(p)) : \"memory\");\n";
        self.support.block("tcgen05_commit", &format!("INLINE void tcgen05_commit(void *p) {{\n{body}}}\n"));
        let address = self.target(on).address;
        self.out.line(&format!("tcgen05_commit({address});"));
    }

    /// An array's name, its length, the word and the type of its elements, and the constraint of a register for them.
    fn tcgen05_array(&self, acc: BufId) -> (String, u64, &'static str, &'static str, char) {
        let Slot { name, len, elem, .. } = &self.kernel.slots[acc];
        let (word, ty, r) = if elem.held().is_float() { ("f32", "float", 'f') } else { ("s32", "int", 'r') };
        (name.to_string(), *len, word, ty, r)
    }

    /// Loads the lower sixteen lanes, then the upper ones, in as many columns at a time as one instruction takes.
    pub(super) fn tcgen05_load(&mut self, acc: BufId, at: &Ix) {
        let (array, cols, word, ty, r) = self.tcgen05_array(acc);
        let (name, row) = (format!("tcgen05_load_{cols}_{word}"), cols / 4);
        let mut body = String::new();
        for half in 0..2 {
            let mut from = 0;
            while from < cols {
                let wide = WIDEST.min(1 << (cols - from).ilog2());
                // Two elements of a row and two of the row eight below, for each eight columns.
                let first = |j: u64| (2 * half * row + from / 4 + 2 * j, (2 * half + 1) * row + from / 4 + 2 * j);
                let of = (0..wide / 8).flat_map(|j| [first(j).0, first(j).0 + 1, first(j).1, first(j).1 + 1]);
                let registers = list((0..wide / 2).map(|n| format!("%{n}")));
                let outputs = list(of.map(|n| format!("\"={r}\"(c[{n}])")));
                body += &format!(
                    "  asm volatile(\"tcgen05.ld.sync.aligned.16x256b.x{}.b32 {{{registers}}}, [%{}];\" : {outputs} : \"r\"(at + {}) : \
                     \"memory\");\n",
                    wide / 8,
                    wide / 2,
                    (half << 20) + from,
                );
                from += wide;
            }
        }
        self.support.block(&name, &format!("INLINE void {name}({ty} *c, int at) {{\n{body}}}\n"));
        let at = self.ix.print(at);
        self.out.line(&format!("{name}({array}, {at});"));
    }

    pub(super) fn tcgen05_wait(&mut self, acc: BufId) {
        let (array, cols, word, ty, r) = self.tcgen05_array(acc);
        let name = format!("tcgen05_wait_{cols}_{word}");
        let operands = list((0..cols).map(|n| format!("\"+{r}\"(c[{n}])")));
        let body = format!("  asm volatile(\"tcgen05.wait::ld.sync.aligned;\" : {operands} : : \"memory\");\n");
        self.support.block(&name, &format!("INLINE void {name}({ty} *c) {{\n{body}}}\n"));
        self.out.line(&format!("{name}({array});"));
    }
}
