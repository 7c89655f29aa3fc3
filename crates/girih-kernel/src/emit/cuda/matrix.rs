//! The matrix unit of a warp as PTX in small functions.
//!
//! ```text
//! a: i32x4 = ldmatrix s[tx%32*64]                   -->   int4 a = ldmatrix_x4(&s[(tx & 31) * 64]);
//! mma f16 acc[0], acc[8] add a, b                    -->   mma_f16(&acc[0], &acc[8], a, b);
//! ```

use super::stmt::Printer;
use crate::kernel::ir::*;

/// The names of a fragment's registers.
const PARTS: [&str; 4] = ["x", "y", "z", "w"];

fn list(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns true if warps multiply floats of one byte.
pub(super) fn has_byte_floats(body: &[Stmt]) -> bool {
    body.iter().any(|s| match s {
        Stmt::Mma { of, .. } => of[0].is_byte_float(),
        Stmt::For { body, .. } | Stmt::Loop { body } => has_byte_floats(body),
        Stmt::If { then, els, .. } => has_byte_floats(then) || has_byte_floats(els),
        _ => false,
    })
}

impl Printer<'_> {
    pub(super) fn load_matrix(&mut self, dst: ValId, place: &Address, transposed: Transposed) -> String {
        if transposed.of_bytes() {
            return self.load_bytes(place, transposed);
        }
        let name = self.ldmatrix(self.val_ty(dst).lanes as usize, transposed == Transposed::Yes);
        format!("{name}({})", self.target(place).address)
    }

    fn ldmatrix(&mut self, words: usize, transposed: bool) -> String {
        let (suffix, how) = if transposed { ("_trans", ".trans") } else { ("", "") };
        let name = format!("ldmatrix_x{words}{suffix}");
        let ty = if words == 1 { "int".to_string() } else { format!("int{words}") };
        let parts = PARTS[..words].iter().map(|part| if words == 1 { "v".into() } else { format!("v.{part}") });
        let body = format!(
            "  {ty} v;\n  asm volatile(\"ldmatrix.sync.aligned.m8n8.x{words}{how}.shared.b16 {{{}}}, [%{words}];\" : {} : \
             \"r\"((unsigned int)__cvta_generic_to_shared(p)) : \"memory\");\n  return v;\n",
            list((0..words).map(|n| format!("%{n}"))),
            list(parts.map(|part| format!("\"=r\"({part})"))),
        );
        self.support.block(&name, &format!("INLINE {ty} {name}(const void *p) {{\n{body}}}\n"));
        name
    }

    /// Bytes across the sum, moved in pairs: the two words of a lane with four terms of two lines become one word for
    /// each line.
    fn load_bytes(&mut self, place: &Address, transposed: Transposed) -> String {
        let words = ["v.x, v.y, even", "v.x, v.y, odd", "v.z, v.w, even", "v.z, v.w, odd"];
        let (name, order) = match transposed {
            Transposed::Left => ("ldmatrix_left", [0, 1, 2, 3]),
            _ => ("ldmatrix_right", [0, 2, 1, 3]),
        };
        let made = list(order.iter().map(|at| format!("(int)__byte_perm({})", words[*at])));
        self.ldmatrix(4, true);
        let text = format!(
            "INLINE int4 {name}(const void *p) {{\n  int4 v = ldmatrix_x4_trans(p);\n  unsigned int even = threadIdx.x & 2 ? \
             0x2064 : 0x6420, odd = even | 0x1111;\n  return {{{made}}};\n}}\n"
        );
        self.support.block(name, &text);
        format!("{name}({})", self.target(place).address)
    }

    /// Adds a product to sums that lie `apart` elements from each other.
    pub(super) fn mma(&mut self, acc: &[Address; 2], apart: u32, a: ValId, b: ValId, of: [Operand; 2]) {
        let [left, right] = of.map(Operand::word);
        let mut name = if left == right { format!("mma_{left}") } else { format!("mma_{left}_{right}") };
        if apart != 1 {
            name.push_str(&format!("_by_{apart}"));
        }
        let (sum, ty, r) = if of[0].is_float() { ("f32", "float", 'f') } else { ("s32", "int", 'r') };
        let sums = ["c", "d"].iter().flat_map(|c| [0, apart].map(|at| format!("\"+{r}\"({c}[{at}])")));
        let operands =
            PARTS.iter().map(|p| format!("\"r\"(a.{p})")).chain(PARTS[..2].iter().map(|p| format!("\"r\"(b.{p})")));
        let body = format!(
            "  asm volatile(\"mma.sync.aligned.m16n8k{}.row.col.{sum}.{left}.{right}.{sum} {{%0, %1, %2, %3}}, \
             {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};\" : {} : {});\n",
            of[0].terms(),
            list(sums),
            list(operands),
        );
        let text = format!("INLINE void {name}({ty} *c, {ty} *d, int4 a, int2 b) {{\n{body}}}\n");
        self.support.block(&name, &text);
        let (low, high) = (self.target(&acc[0]).address, self.target(&acc[1]).address);
        self.out.line(&format!("{name}({low}, {high}, {}, {});", self.name(a), self.name(b)));
    }
}
