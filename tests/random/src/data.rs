//! The memory a program is launched on, made from its seeds, and the comparison of two results.

use crate::program::{Param, Program};
use crate::rng::Rng;
use girih_compiler::num::op::Rounding;
use girih_compiler::num::{DType, convert};

/// The bytes of every buffer, in parameter order; scalars are left out.
pub type Image = Vec<Vec<u8>>;

fn element(rng: &mut Rng, dtype: DType) -> u64 {
    if dtype == DType::I1 {
        return rng.below(2) as u64;
    }
    if dtype.is_int() {
        let value = if rng.chance(85) { rng.range(-20, 20) as u64 } else { rng.next() };
        return value & dtype.mask();
    }
    if dtype.is_base_float() && rng.chance(4) {
        let special = *rng.pick(&[f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0, 1e-40, 3e38, 65504.0]);
        return convert::from_f64(dtype, special, Rounding::NearestEven);
    }
    convert::from_f64(dtype, rng.range(-64, 64) as f64 / 16.0, Rounding::NearestEven)
}

/// Inputs hold random elements, outputs a pattern, so that a store too many or too few shows.
pub fn image(program: &Program) -> Image {
    let mut image = vec![];
    for param in &program.params {
        if let Param::Buffer { dtype, len, seed, output, .. } = param {
            let mut rng = Rng::new(*seed);
            let mut bytes = vec![];
            for _ in 0..*len {
                let bits = if *output { 0x5A5A_5A5A_5A5A_5A5A } else { element(&mut rng, *dtype) };
                bytes.extend_from_slice(&bits.to_le_bytes()[..dtype.bytes() as usize]);
            }
            image.push(bytes);
        }
    }
    image
}

/// The first difference of two images, NaNs being equal; `None` when there is none.
pub fn difference(program: &Program, want: &Image, got: &Image) -> Option<String> {
    let buffers = program.params.iter().filter_map(|p| match p {
        Param::Buffer { name, dtype, .. } => Some((name, *dtype)),
        Param::Int { .. } => None,
    });
    for ((name, dtype), (want, got)) in buffers.zip(want.iter().zip(got)) {
        let size = dtype.bytes() as usize;
        let read = |bytes: &[u8]| {
            let mut raw = [0; 8];
            raw[..size].copy_from_slice(bytes);
            u64::from_le_bytes(raw)
        };
        for (i, (w, g)) in want.chunks(size).zip(got.chunks(size)).enumerate() {
            let (w, g) = (read(w), read(g));
            let both_nan = dtype.is_float() && convert::is_nan(dtype, w) && convert::is_nan(dtype, g);
            if w != g && !both_nan {
                return Some(format!("{name}[{i}] ({dtype}): expected bits {w:#x}, got {g:#x}"));
            }
        }
    }
    None
}
