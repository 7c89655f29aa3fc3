//! Arrays in global memory that a module brings along.
//!
//! ```text
//! global @lock: i32[1] align 4 = [0]      -->  __device__ __align__(4) int global_lock_i32[1] = {0};
//! ```
//! Kernels of a unit share equal globals; different globals get different names. Values that C++ cannot write as
//! numbers, such as infinities or elements of less than a byte, are given by their bits.

use crate::emit::cstyle::ops::literal;
use crate::emit::cstyle::support::Support;
use crate::kernel::ir::Global;
use crate::num::DType;

/// Values on a line.
const VALUES: usize = 16;

#[derive(Default)]
pub(super) struct Globals<'a> {
    all: Vec<(&'a Global, String)>,
}

impl<'a> Globals<'a> {
    /// The global's name in the source. No identifier of a kernel has a type in it, and no helper begins so.
    pub fn name(&mut self, global: &'a Global) -> String {
        if let Some((_, name)) = self.all.iter().find(|(other, _)| *other == global) {
            return name.clone();
        }
        let alike = |name: &str| self.all.iter().any(|(_, other)| other == name);
        // Names with two `_` inside are the user's.
        let words: Vec<&str> = global.name.as_str().split('_').filter(|w| !w.is_empty()).collect();
        let word = words.join("_");
        let of = |n: usize| match n {
            1 => format!("global_{word}_{}", global.array.dtype),
            n => format!("global_{word}_{n}_{}", global.array.dtype),
        };
        let name = (1..).map(of).find(|name| !alike(name)).unwrap_or_default();
        self.all.push((global, name.clone()));
        name
    }

    /// Their definitions, a line each where they are short.
    pub fn text(&self, support: &mut Support) -> String {
        self.all.iter().map(|(global, name)| definition(support, global, name)).collect()
    }
}

fn definition(support: &mut Support, global: &Global, name: &str) -> String {
    let array = &global.array;
    let (d, bits) = (&array.dtype, &array.bits);
    let finite = |bits: &u64| match d {
        DType::F32 | DType::TF32 => f32::from_bits(*bits as u32).is_finite(),
        DType::F64 => f64::from_bits(*bits).is_finite(),
        _ => true,
    };
    let plain = matches!(d, DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::F32 | DType::TF32 | DType::F64);
    let (ty, values): (String, Vec<String>) = if plain && bits.iter().all(finite) {
        (support.memory_ty(d.name(), 1), bits.iter().map(|b| literal(support.dialect, *d, *b)).collect())
    } else if d.bits() == 4 {
        let pair = |pair: &[u64]| pair[0] & 15 | pair.get(1).map_or(0, |high| (high & 15) << 4);
        (support.ty("u8", 1), bits.chunks(2).map(|p| format!("{:#x}", pair(p))).collect())
    } else {
        let word = ["u8", "u16", "u32", "u64"][d.bytes().clamp(1, 8).ilog2() as usize];
        let mask = u64::MAX >> (64 - 8 * d.bytes().clamp(1, 8));
        (support.ty(word, 1), bits.iter().map(|b| format!("{:#x}", b & mask)).collect())
    };
    let constant = if array.constant { "const " } else { "" };
    let align = array.align.max(d.bytes()).max(1);
    let begin = format!("__device__ {constant}__align__({align}) {ty} {name}[{}] = {{", values.len().max(1));
    match values.len() {
        0 => format!("{begin}}};\n"),
        n if n <= VALUES => format!("{begin}{}}};\n", values.join(", ")),
        _ => {
            let lines: String = values.chunks(VALUES).map(|line| format!("  {},\n", line.join(", "))).collect();
            format!("{begin}\n{lines}}};\n")
        }
    }
}
