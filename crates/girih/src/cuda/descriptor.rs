//! Tensor maps: TMA's descriptions of arrays, for the values of a launch.

use std::ffi::c_int;

use girih_compiler::index::{Ix, ValId};
use girih_compiler::kernel::ir::{Elem, Kernel, Tensor};
use girih_compiler::num::DType;

use super::driver::{Driver, TensorMap};
use super::{Error, Result};

/// `CU_TENSOR_MAP_DATA_TYPE_...`.
pub fn data_type(dtype: DType) -> c_int {
    match (dtype, dtype.bits()) {
        (DType::F16, _) => 6,
        (DType::F32 | DType::TF32, _) => 7,
        (DType::F64, _) => 8,
        (DType::BF16, _) => 9,
        (_, 64) => 5,
        (_, 32) => 3,
        (_, 16) => 1,
        _ => 0,
    }
}

/// `CU_TENSOR_MAP_SWIZZLE_...`.
pub fn swizzle(bytes: u32) -> c_int {
    match bytes {
        32 => 1,
        64 => 2,
        128 => 3,
        _ => 0,
    }
}

/// The inputs of a tensor map; dimensions from the innermost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Numbers {
    pub data_type: c_int,
    pub base: u64,
    pub dims: Vec<u64>,
    /// Bytes, of all dimensions but the innermost.
    pub strides: Vec<u64>,
    pub extents: Vec<u32>,
    pub swizzle: c_int,
}

impl Numbers {
    /// The numbers of a kernel's tensor for a grid and given arguments.
    pub fn of(kernel: &Kernel, tensor: &Tensor, grid: [i64; 3], args: &[u64]) -> Numbers {
        let position = |val: ValId| kernel.params.iter().position(|p| *p == val);
        let of = |val: ValId| position(val).and_then(|at| args.get(at)).copied().unwrap_or(0);
        let leaf = |ix: &Ix| match ix {
            Ix::Val { val, zext } => match kernel.vals.get(*val).map(|v| v.ty.elem) {
                Some(Elem::Num(d)) if d.bits() < 64 => {
                    let shift = 64 - d.bits();
                    let high = of(*val) << shift;
                    if *zext { (high >> shift) as i64 } else { high as i64 >> shift }
                }
                _ => of(*val) as i64,
            },
            Ix::Grid(d) => grid.get(usize::from(*d)).copied().unwrap_or(1),
            _ => 0,
        };
        let bytes = tensor.elem.bytes() as i64;
        Numbers {
            data_type: data_type(tensor.elem),
            base: of(tensor.base),
            dims: tensor.dims.iter().rev().map(|ix| ix.eval(&leaf) as u64).collect(),
            strides: tensor.strides.iter().rev().map(|ix| ix.eval(&leaf).wrapping_mul(bytes) as u64).collect(),
            extents: tensor.extents.iter().rev().copied().collect(),
            swizzle: swizzle(tensor.swizzle),
        }
    }

    /// The tensor map, as the driver writes it.
    ///
    /// # Errors
    /// The driver does not take the numbers.
    pub fn encoded(&self, driver: &Driver) -> Result<TensorMap> {
        let mut map = TensorMap([0; 16]);
        let rank = self.dims.len();
        if rank == 0 || self.extents.len() != rank || self.strides.len() + 1 < rank {
            return Err(Error::Failed { what: "a tensor map", reason: "its numbers do not fit together".into() });
        }
        let mut strides = self.strides.clone();
        // One dimension has no strides, and yet they are read.
        strides.push(0);
        let steps = vec![1u32; rank];
        // SAFETY: each list is as long as the rank says.
        let status = unsafe {
            (driver.functions.tensor_map)(
                &mut map,
                self.data_type,
                rank as u32,
                self.base,
                self.dims.as_ptr(),
                strides.as_ptr(),
                self.extents.as_ptr(),
                steps.as_ptr(),
                0,
                self.swizzle,
                L2_128_BYTES,
                0,
            )
        };
        driver.expect("cuTensorMapEncodeTiled", status)?;
        Ok(map)
    }
}

/// `CU_TENSOR_MAP_L2_PROMOTION_L2_128B`.
const L2_128_BYTES: c_int = 2;
