//! A program with every float made float64, to see how much of a result is rounding.

use girih_compiler::cuda_tile::ir::{Attr, AttrKey, Elem, Elements, Func, Module, Op, Opcode, Rounding, Type};
use girih_compiler::num::{DType, convert};

use girih_compiler::num::values;

/// The module over float64, or why there is none: an operation that looks at the bits of floats.
pub fn widen(module: &Module) -> Result<Module, String> {
    let mut wide = module.clone();
    for global in &mut wide.globals {
        widen_elements(&mut global.value);
    }
    for func in &mut wide.funcs {
        if let Some(op) = func.ops.values().find(|op| looks_at_bits(func, op)) {
            return Err(format!("`{:?}` looks at the bits of its operand", op.opcode));
        }
        for v in func.values.keys().collect::<Vec<_>>() {
            widen_type(&mut func.values[v].ty);
        }
        func.results.iter_mut().for_each(widen_type);
        for o in func.ops.keys().collect::<Vec<_>>() {
            widen_attrs(&mut func.ops[o]);
        }
    }
    Ok(wide)
}

/// The type a value of `dtype` is widened to.
pub fn widened(dtype: DType) -> DType {
    if dtype.is_float() { DType::F64 } else { dtype }
}

/// The bits of a value under its widened type.
pub fn widen_bits(dtype: DType, bits: u64) -> u64 {
    if dtype.is_float() { convert::to_f64(dtype, bits).to_bits() } else { bits }
}

fn widen_type(ty: &mut Type) {
    match ty {
        Type::Tile(t) => match &mut t.elem {
            Elem::Num(d) | Elem::Ptr(d) => *d = widened(*d),
        },
        Type::TensorView(t) => t.elem = widened(t.elem),
        Type::View(v) => v.tensor.elem = widened(v.tensor.elem),
        Type::Token => {}
    }
}

fn widen_elements(e: &mut Elements) {
    for bits in &mut e.bits {
        *bits = widen_bits(e.dtype, *bits);
    }
    e.dtype = widened(e.dtype);
}

fn widen_attrs(op: &mut Op) {
    // Flushing and approximate modes belong to f32.
    op.attrs.retain(|(key, _)| *key != AttrKey::FlushToZero);
    for (_, attr) in &mut op.attrs {
        match attr {
            Attr::Elements(e) => widen_elements(e),
            Attr::Identities(list) => {
                for (dtype, bits) in list {
                    *bits = widen_bits(*dtype, *bits);
                    *dtype = widened(*dtype);
                }
            }
            Attr::Rounding(r) if matches!(r, Rounding::Approx | Rounding::Full) => *r = Rounding::NearestEven,
            _ => {}
        }
    }
}

/// Operations whose meaning is in the width of a float.
fn looks_at_bits(func: &Func, op: &Op) -> bool {
    let is_float = |v: &girih_compiler::cuda_tile::ir::ValueId| match func.tile_ty(*v).map(|t| t.elem) {
        Some(Elem::Num(d) | Elem::Ptr(d)) => d.is_float(),
        None => false,
    };
    let any = op.operands.iter().chain(&op.results).any(is_float);
    match op.opcode {
        Opcode::Pack | Opcode::Unpack | Opcode::MmaFScaled | Opcode::PtrToInt => any,
        Opcode::Bitcast | Opcode::PtrToPtr => any && !op.operands.iter().chain(&op.results).all(is_float),
        _ => false,
    }
}

/// The coarsest float type that arithmetic results of an entry have: its epsilon bounds the rounding of one step.
pub fn coarsest(func: &Func) -> Option<DType> {
    let digits = |d: DType| match d {
        DType::F64 => 53,
        DType::F32 => 24,
        DType::F16 | DType::TF32 => 11,
        DType::BF16 => 8,
        _ => 3,
    };
    let computes = |op: &&Op| {
        !matches!(
            op.opcode,
            Opcode::LoadPtrTko
                | Opcode::LoadViewTko
                | Opcode::MultimemLoadReduceViewTko
                | Opcode::Constant
                | Opcode::Reshape
                | Opcode::Broadcast
                | Opcode::Permute
        )
    };
    let results = func.ops.values().filter(computes).flat_map(|op| &op.results);
    results.filter_map(|&v| func.tile_ty(v)?.num()).filter(|d| d.is_float()).min_by_key(|&d| digits(d))
}

/// Half a unit in the last place of 1.
pub fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON / 2.0,
        DType::F32 => f64::from(f32::EPSILON) / 2.0,
        DType::F16 | DType::TF32 => 2f64.powi(-11),
        DType::BF16 => 2f64.powi(-8),
        DType::F8E5M2 => 2f64.powi(-3),
        _ if dtype.is_float() => 2f64.powi(-4),
        _ => 0.0,
    }
}

/// How far rounding may move results: `8 * sqrt(K) * eps * (largest value)`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ErrorBound {
    /// K: the length of the longest chain of dependent roundings, such as the terms of the longest sum; at least 1.
    pub chain: f64,
    /// The rounding of the coarsest float type that is computed in.
    pub eps: f64,
}

impl ErrorBound {
    /// The largest error that rounding explains in results of a type whose largest value is `scale`; integers are exact.
    pub fn of(&self, dtype: DType, scale: f64) -> f64 {
        let eps = self.eps.max(epsilon(dtype));
        if dtype.is_float() { 8.0 * self.chain.sqrt() * eps * scale } else { 0.0 }
    }
}

/// The largest error of an array against its widened counterpart.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Deviation {
    /// Largest absolute error; infinite when one side is not finite and the other differs.
    pub error: f64,
    /// The element it was found at.
    pub element: u64,
    /// The largest magnitude expected.
    pub scale: f64,
}

/// Compares an array with the one computed in float64. Not-a-number agrees with not-a-number, and an infinity with a
/// value that the narrow type cannot hold.
pub fn deviation(got: &crate::Buffer, want: &crate::Buffer) -> Deviation {
    let mut worst = Deviation { error: 0.0, element: 0, scale: 0.0 };
    for i in 0..got.elements().min(want.elements()) {
        let (g, w) = (values::to_f64(got.dtype(), got.get(i)), values::to_f64(want.dtype(), want.get(i)));
        if w.is_finite() {
            worst.scale = worst.scale.max(w.abs());
        }
        let narrowed = values::to_f64(got.dtype(), narrow(got.dtype(), w));
        let error = if g == w || g.is_nan() && w.is_nan() || g.is_infinite() && g == narrowed {
            0.0
        } else if g.is_finite() && w.is_finite() {
            (g - w).abs()
        } else {
            f64::INFINITY
        };
        if error > worst.error {
            worst = Deviation { error, element: i, ..worst };
        }
    }
    worst
}

fn narrow(dtype: DType, x: f64) -> u64 {
    if dtype.is_float() { values::from_f64(dtype, x) } else { x as i64 as u64 & dtype.mask() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Buffer;

    #[test]
    fn deviation_finds_the_worst_element() {
        let got = Buffer::from_slice(&[1f32, 2.0, f32::NAN, f32::INFINITY]).unwrap();
        let want = Buffer::from_slice(&[1f64, 2.5, f64::NAN, 1e300]).unwrap();
        let d = deviation(&got, &want);
        assert_eq!((d.error, d.element, d.scale), (0.5, 1, 1e300));
        let bad = Buffer::from_slice(&[f64::NAN; 4]).unwrap();
        assert_eq!(deviation(&got, &bad).error, f64::INFINITY);
    }
}
