//! The parts of the C host code that GPU models and programs share: the table of kernels, their tensor maps, and
//! launches.

use girih_compiler::emit::cuda::{Entry, FLAGS, Unit};
use girih_compiler::index::Ix;
use girih_compiler::kernel::ir::{Elem, Kernel, Tensor, ValId};
use girih_compiler::num::DType;
use girih_compiler::pipeline::{self, Lowered};
use girih_compiler::tile::target::Target;

use super::super::expr::exact;
use super::super::plan::bug;
use super::super::{File, Library, header, label};
use crate::compile::gpu;
use crate::cuda;
use crate::error::{Error, Result};

/// The kernels of a library as CUDA.
pub struct Source<'a> {
    name: &'a str,
    kernels: Vec<&'a Kernel>,
    unit: Unit,
    target: Target,
}

impl<'a> Source<'a> {
    pub fn new(name: &'a str, lowered: &[&'a Lowered], target: Target) -> Result<Source<'a>> {
        let kernels: Vec<&Kernel> = lowered.iter().map(|l| &l.kernel).collect();
        let unit = pipeline::emit_cuda(&kernels, &target).map_err(|d| Error::Program(vec![d]))?;
        Ok(Source { name, kernels, unit, target })
    }

    fn entries(&self) -> impl Iterator<Item = (&Kernel, &Entry)> {
        self.kernels.iter().copied().zip(&self.unit.entries)
    }

    /// The kernels for a reader: geometry, arguments in order, descriptors; and the type that holds them.
    pub fn header(&self) -> String {
        let nvcc = format!("nvcc {} -arch={} -cubin", FLAGS.join(" "), self.target.name);
        let mut out = header::filled(KERNELS, &[("$name", self.name), ("$nvcc", &nvcc)]);
        for (n, (kernel, entry)) in self.entries().enumerate() {
            out += &format!("//   {n}  {}: {} threads, {} bytes\n", entry.name, entry.threads, entry.dynamic_shared);
            let param = |v: &ValId| kernel.vals.get(*v).map(|v| format!("{} {}", v.ty, v.name));
            let params: Vec<String> = kernel.params.iter().filter_map(param).collect();
            out += &format!("//      ({})\n", params.join(", "));
            for tensor in kernel.tensors.values() {
                out += &format!("//      {}\n", described(kernel, tensor));
            }
        }
        let count = self.kernels.len().max(1).to_string();
        out + &header::filled(FIND, &[("$name", self.name), ("$count", &count)])
    }

    /// The C before the functions.
    pub fn text(&self) -> Result<String> {
        let (name, count) = (self.name, self.kernels.len().max(1));
        let mut out = format!(
            "// cc -c {name}.c, with the headers of CUDA; link -lcuda\n#include \"{name}.h\"\n#include <string.h>\n"
        );
        out += include_str!("launch.c");
        out += &format!(
            "\ntypedef {name}_kernels girih_kernels;\n\nstatic const girih_kernel girih_table[{count}] = {{\n"
        );
        for (kernel, entry) in self.entries() {
            let maps = kernel.tensors.len();
            out += &format!("  {{\"{}\", {}, {}, {maps}}},\n", entry.name, entry.threads, entry.dynamic_shared);
        }
        let maps = self.kernels.iter().map(|k| k.tensors.len()).max().unwrap_or(0);
        let params = self.kernels.iter().map(|k| k.params.len() + k.tensors.len()).max().unwrap_or(0);
        out +=
            &format!("}};\n\nenum {{ GIRIH_MOST_MAPS = {}, GIRIH_MOST_PARAMS = {} }};\n", maps.max(1), params.max(1));
        if maps > 0 {
            out += include_str!("../exact.c");
        }
        out += &self.describe()?;
        out += include_str!("step.c");
        out += &header::filled(FOUND, &[("$name", name), ("$count", &self.kernels.len().to_string())]);
        Ok(out)
    }

    /// Returns true if `exact.c` is part of [`Source::text`].
    pub fn has_exact(&self) -> bool {
        self.kernels.iter().any(|k| !k.tensors.is_empty())
    }

    /// The function that writes the tensor maps of a launch.
    fn describe(&self) -> Result<String> {
        let mut out =
            "\nstatic CUresult girih_describe(int n, const int64_t *grid, const uint64_t *args, CUtensorMap *maps) {\n"
                .to_string();
        out += "  CUresult result = CUDA_SUCCESS;\n  int bad = 0;\n  (void)grid, (void)args, (void)maps, (void)bad;\n";
        out += "  switch (n) {\n";
        for (n, kernel) in self.kernels.iter().enumerate().filter(|(_, k)| !k.tensors.is_empty()) {
            out += &format!("  case {n}:\n");
            for (at, tensor) in kernel.tensors.values().enumerate() {
                out += &encoded(kernel, tensor, at)?;
            }
            out += "    break;\n";
        }
        out += "  default: break;\n  }\n  return result;\n}\n";
        Ok(out)
    }

    /// The library: its source and machine code, and these other files.
    pub fn library(self, mut files: Vec<File>) -> Result<Library> {
        let name = self.name;
        let mut missing = vec![];
        match gpu::cubin(&self.unit, &self.kernels, &self.target) {
            Ok(bytes) => files.insert(0, File { name: format!("{name}.cubin"), what: "the machine code", bytes }),
            Err(Error::Cuda(why @ cuda::Error::Missing { .. })) => {
                missing.push(format!("{name}.cubin is not made: {why}"))
            }
            Err(error) => return Err(error),
        }
        files.insert(0, File::text(format!("{name}.cu"), "the kernels", self.unit.text));
        Ok(Library { name: name.into(), files, command: "cc $atexample.c $at$name.c -lcuda", missing })
    }
}

/// A tensor map for a reader.
fn described(kernel: &Kernel, tensor: &Tensor) -> String {
    let base = kernel.vals.get(tensor.base).map_or("?", |v| v.name.as_str());
    let leaf = |ix: &Ix| match ix {
        Ix::Val { val, .. } => kernel.vals.get(*val).map(|v| v.name.to_string()),
        Ix::Grid(d) => Some(format!("grid[{d}]")),
        _ => None,
    };
    let list = |all: &[Ix]| {
        let one = |ix: &Ix| super::super::expr::plain(ix, &leaf).unwrap_or_else(|| "?".into());
        all.iter().rev().map(one).collect::<Vec<_>>().join(", ")
    };
    let boxes: Vec<String> = tensor.extents.iter().rev().map(u32::to_string).collect();
    format!(
        "{}: the {} elements ({}) of {base}, rows {} elements apart, in boxes of ({}), swizzled by {} bytes",
        tensor.name,
        tensor.elem,
        list(&tensor.dims),
        list(&tensor.strides),
        boxes.join(", "),
        tensor.swizzle
    )
}

/// The call that writes a tensor map.
fn encoded(kernel: &Kernel, tensor: &Tensor, at: usize) -> Result<String> {
    let position = |val| kernel.params.iter().position(|p| *p == val);
    let leaf = |ix: &Ix| match ix {
        Ix::Val { val, zext } => {
            let (at, ty) = (position(*val)?, kernel.vals.get(*val)?.ty);
            let sign = if *zext { "u" } else { "" };
            matches!(ty.elem, Elem::Num(d) if d.is_int() && d.bits() >= 8)
                .then(|| format!("({sign}int{}_t)args[{at}]", ty.elem.held().bits()))
        }
        Ix::Grid(d) => Some(format!("grid[{d}]")),
        _ => None,
    };
    let wrong = || bug("a tensor map does not follow from the arguments");
    let value = |ix: &Ix| exact(ix, &leaf).ok_or_else(wrong);
    let base = position(tensor.base).ok_or_else(wrong)?;
    let dims =
        tensor.dims.iter().rev().map(|ix| Ok(format!("(cuuint64_t){}", value(ix)?))).collect::<Result<Vec<_>>>()?;
    let bytes = |ix: &Ix| match ix.as_const().and_then(|n| n.checked_mul(tensor.elem.bytes() as i64)) {
        Some(n) => Ok(n.to_string()),
        None => Ok(format!("(cuuint64_t)girih_mul(&bad, {}, {})", value(ix)?, tensor.elem.bytes())),
    };
    let mut strides = tensor.strides.iter().rev().map(bytes).collect::<Result<Vec<_>>>()?;
    if strides.is_empty() {
        strides.push("0".into());
    }
    let boxes: Vec<String> = tensor.extents.iter().rev().map(u32::to_string).collect();
    let (rank, ones) = (dims.len(), vec!["1"; dims.len()].join(", "));
    let swizzle = if tensor.swizzle == 0 { "NONE".to_string() } else { format!("{}B", tensor.swizzle) };
    Ok(header::filled(
        ENCODED,
        &[
            ("$dims", &dims.join(", ")),
            ("$strides", &strides.join(", ")),
            ("$box", &boxes.join(", ")),
            ("$ones", &ones),
            ("$at", &at.to_string()),
            ("$type", data_type(tensor.elem)),
            ("$rank", &rank.to_string()),
            ("$base", &base.to_string()),
            ("$swizzle", &swizzle),
        ],
    ))
}

/// The driver's name for an element type.
fn data_type(dtype: DType) -> &'static str {
    match (dtype, dtype.bits()) {
        (DType::F16, _) => "FLOAT16",
        (DType::BF16, _) => "BFLOAT16",
        (DType::F32 | DType::TF32, _) => "FLOAT32",
        (DType::F64, _) => "FLOAT64",
        (_, 64) => "INT64",
        (_, 32) => "INT32",
        (_, 16) => "UINT16",
        _ => "UINT8",
    }
}

/// A comment with a user's text.
pub fn comment(text: &str) -> String {
    format!("  // {}\n", label(text))
}

const KERNELS: &str = "
// The kernels are those of the module $name.cubin, which NVRTC makes of $name.cu, or
// `$nvcc $name.cu`:
// threads of a block along x, bytes of dynamic shared memory, and arguments in order. After them come tensor maps, as
// cuTensorMapEncodeTiled writes them, dimensions from the innermost.
";

const FIND: &str = "typedef struct $name_kernels { CUfunction at[$count]; } $name_kernels;

// Finds them in the module, which must stay loaded. Results are those of CUDA; an extent out of its range is an invalid
// value.
CUresult $name_find($name_kernels *kernels, CUmodule module);
";

const FOUND: &str = "
CUresult $name_find($name_kernels *kernels, CUmodule module) {
  for (int n = 0; n < $count; n++) {
    CUresult result = cuModuleGetFunction(&kernels->at[n], module, girih_table[n].entry);
    if (!result && girih_table[n].shared)
      result = cuFuncSetAttribute(kernels->at[n], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  (int)girih_table[n].shared);
    if (result) return result;
  }
  return CUDA_SUCCESS;
}
";

const ENCODED: &str = "    {
      const cuuint64_t dims[] = {$dims};
      const cuuint64_t strides[] = {$strides};
      const cuuint32_t box[] = {$box}, steps[] = {$ones};
      if (bad) return CUDA_ERROR_INVALID_VALUE;
      result = cuTensorMapEncodeTiled(&maps[$at], CU_TENSOR_MAP_DATA_TYPE_$type, $rank,
        (void *)(uintptr_t)args[$base], dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_$swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
      if (result) return result;
    }
";
