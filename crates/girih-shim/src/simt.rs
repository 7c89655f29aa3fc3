//! Kernels that Girih compiled for a GPU: their Kernel IR on the simulator.
//!
//! In: an image of [`girih::cuda::image`], which holds the Kernel IR behind the machine code. Out: functions that are launched as
//! a GPU's are. Launches that a GPU would refuse or fail at are refused: a block size other than the kernel's, shared memory that
//! was not requested, tensor maps that do not fit, unallocated memory; so are the simulator's findings.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use girih::cuda::descriptor::Numbers;
use girih::cuda::device::target_of;
use girih::cuda::image::{self, Described};
use girih::regions::RealMemory;
use girih::sim;
use girih::sync::Brief;
use girih_compiler::base::Code;
use girih_compiler::base::host::Host;
use girih_compiler::base::launch::Launch;
use girih_compiler::kernel::ir::{Elem, Global};

use crate::codes;
use crate::context::capability;
use crate::driver;
use crate::failure::{Failure, Result};
use crate::ffi::{In, Out};
use crate::handles::{Handle, Table};
use crate::memory::{self, Origin};
use crate::options;

/// Shared memory that a launch may ask for without more ado, and that a block can have at most.
const STATIC_SHARED: u64 = 48 << 10;
/// `CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK`, `..._SHARED_SIZE_BYTES` and `..._MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const MAX_THREADS: c_int = 0;
const SHARED: c_int = 1;
const DYNAMIC_SHARED: c_int = 8;

pub struct Module {
    handle: Brief<Handle>,
    kernels: Vec<Arc<Described>>,
    functions: Brief<BTreeMap<String, Handle>>,
    /// Addresses and bytes, by name.
    globals: BTreeMap<String, (u64, u64)>,
}

pub struct Function {
    module: Handle,
    kernel: Arc<Described>,
    /// The addresses of its globals.
    globals: Vec<u64>,
    /// Dynamic shared memory that a launch may ask for.
    most_shared: Brief<u64>,
    most: u64,
}

static MODULES: Table<Module> = Table::new("module");
static FUNCTIONS: Table<Function> = Table::new("function");

pub fn module(handle: Handle) -> Option<Arc<Module>> {
    MODULES.find(handle)
}

pub fn function(handle: Handle) -> Option<Arc<Function>> {
    FUNCTIONS.find(handle)
}

/// Returns true if an image is machine code, or the description that Girih puts behind it.
///
/// # Safety
/// `image` must be the start of something that a driver loads.
pub unsafe fn is_image(image: *const u8) -> bool {
    // SAFETY: each byte is read after those that such a thing begins with.
    let starts = |magic: &[u8]| magic.iter().enumerate().all(|(i, b)| unsafe { *image.wrapping_add(i) } == *b);
    starts(b"\x7fELF") || starts(b"\x7fGirihK\n")
}

/// Loads an image.
///
/// # Safety
/// `image` must be the start of a whole image.
pub unsafe fn load(image: *const u8) -> Result<Handle> {
    let bytes = |at: u64, n: usize| {
        // SAFETY: the caller vouches for the bytes that the image's own tables describe.
        Some(unsafe { std::slice::from_raw_parts(image.wrapping_add(usize::try_from(at).ok()?), n) }.to_vec())
    };
    let bad = |code, what: String| Failure::new(code, what);
    let (target, kernels) = image::read(&bytes).map_err(|why| {
        bad(codes::ERROR_INVALID_IMAGE, format!("machine code for a GPU runs here only if Girih made it: {why}"))
    })?;
    let (major, minor) = capability();
    if target_of((major as u32, minor as u32)) != Some(&target) {
        let message =
            format!("the machine code is for {target}, and the device has compute capability {major}.{minor}");
        return Err(bad(codes::ERROR_NO_BINARY_FOR_GPU, message));
    }
    let mut globals = BTreeMap::new();
    for kernel in &kernels {
        for (name, global) in kernel.globals.iter().zip(&kernel.kernel.globals) {
            if !globals.contains_key(name) {
                globals.insert(name.clone(), define(global)?);
            }
        }
    }
    let kernels = kernels.into_iter().map(Arc::new).collect();
    let handle = MODULES.insert(Module { handle: Brief::default(), kernels, functions: Brief::default(), globals });
    *MODULES.get(handle)?.handle.lock() = handle;
    Ok(handle)
}

/// Memory with a global's initial value.
fn define(global: &Global) -> Result<(u64, u64)> {
    let array = &global.array;
    let packed = |pair: &[u64]| (pair[0] & 15) as u8 | pair.get(1).map_or(0, |high| (high & 15) << 4) as u8;
    let bytes: Vec<u8> = match array.dtype.bits() {
        4 => array.bits.chunks(2).map(packed).collect(),
        _ => array.bits.iter().flat_map(|b| b.to_le_bytes()[..array.dtype.bytes() as usize].to_vec()).collect(),
    };
    let start = memory::allocate(bytes.len().max(1), Origin::Device)?;
    memory::copy(start, bytes.as_ptr().expose_provenance() as u64, bytes.len())?;
    Ok((start, bytes.len() as u64))
}

pub fn unload(handle: Handle) -> Result<()> {
    let module = MODULES.remove(handle)?;
    FUNCTIONS.retain(|f| f.module != handle);
    module.globals.values().try_for_each(|(start, _)| memory::free(*start, &[Origin::Device]))
}

impl Module {
    pub fn find(&self, name: &str) -> Result<Handle> {
        let mut functions = self.functions.lock();
        if let Some(found) = functions.get(name) {
            return Ok(*found);
        }
        let kernel = self.kernels.iter().find(|k| k.entry == name).cloned();
        let kernel =
            kernel.ok_or_else(|| Failure::new(codes::ERROR_NOT_FOUND, format!("the module has no kernel `{name}`")))?;
        let globals =
            kernel.globals.iter().filter_map(|name| self.globals.get(name)).map(|(start, _)| *start).collect();
        // A kernel without dynamic shared memory may ask for none: the compiler has reserved its static memory.
        let most = if kernel.dynamic_shared > 0 { STATIC_SHARED } else { 0 };
        let function =
            Function { module: *self.handle.lock(), kernel, globals, most_shared: Brief::new(most), most: 227 << 10 };
        let handle = FUNCTIONS.insert(function);
        functions.insert(name.to_string(), handle);
        Ok(handle)
    }

    pub fn global(&self, name: &str) -> Result<(u64, u64)> {
        let found = self.globals.get(name).copied();
        found.ok_or_else(|| Failure::new(codes::ERROR_NOT_FOUND, format!("the module has no global `{name}`")))
    }
}

impl Function {
    pub fn attribute(&self, number: c_int) -> Result<c_int> {
        let kernel = &self.kernel.kernel;
        Ok(match number {
            MAX_THREADS => kernel.threads as c_int,
            SHARED => (kernel.shared - self.kernel.dynamic_shared.min(kernel.shared)) as c_int,
            DYNAMIC_SHARED => *self.most_shared.lock() as c_int,
            2..=16 => 0,
            n => return Err(Failure::value(format!("unknown kernel attribute {n}"))),
        })
    }

    pub fn set_attribute(&self, number: c_int, value: c_int) -> Result<()> {
        self.attribute(number)?;
        if number != DYNAMIC_SHARED {
            return Err(Failure::value(format!("the kernel attribute {number} cannot be set")));
        }
        let value = u64::try_from(value).ok().filter(|n| *n <= self.most);
        let most = self.most;
        *self.most_shared.lock() = value.ok_or_else(|| {
            Failure::value(format!("a block of the device has at most {most} bytes of shared memory"))
        })?;
        Ok(())
    }

    /// Runs a launch and waits.
    pub fn launch(&self, grid: [c_uint; 3], block: [c_uint; 3], shared: c_uint, params: In<In<u8>>) -> Result<()> {
        let kernel = &self.kernel.kernel;
        let refuse = |message: String| Err(Failure::value(message).detail("kernel", kernel.name.as_str()));
        if grid.contains(&0) || grid[0] > i32::MAX as u32 || grid[1].max(grid[2]) > 65535 {
            return refuse(format!("a grid of {grid:?} blocks is not possible"));
        }
        if block != [kernel.threads, 1, 1] {
            return refuse(format!(
                "the kernel has {} threads in a block, and is launched with {block:?}",
                kernel.threads
            ));
        }
        let most = *self.most_shared.lock();
        if u64::from(shared) > most {
            return refuse(format!(
                "{shared} bytes of dynamic shared memory are more than the {most} that the function may have"
            ));
        }
        if u64::from(shared) < self.kernel.dynamic_shared {
            let message =
                format!("{shared} bytes of dynamic shared memory, and the kernel uses {}", self.kernel.dynamic_shared);
            return Err(Failure::new(codes::ERROR_ILLEGAL_ADDRESS, message).detail("kernel", kernel.name.as_str()));
        }
        let args = self.arguments(grid, params)?;
        let launch = Launch { globals: self.globals.clone(), ..Launch::new(grid, args) };
        self.run(&launch)
    }

    /// The arguments' values. The tensor maps behind them must be those of the arguments.
    fn arguments(&self, grid: [u32; 3], params: In<In<u8>>) -> Result<Vec<u64>> {
        let kernel = &self.kernel.kernel;
        let mut args = Vec::with_capacity(kernel.params.len());
        for (at, param) in kernel.params.iter().enumerate() {
            let bytes = match kernel.vals.get(*param).map(|v| v.ty.elem) {
                Some(Elem::Num(dtype)) => dtype.bytes() as usize,
                _ => 8,
            };
            let (from, mut word) = (params.at(at)?, [0u8; 8]);
            for (i, byte) in word.iter_mut().enumerate().take(bytes) {
                *byte = from.at(i)?;
            }
            args.push(u64::from_le_bytes(word));
        }
        for (n, tensor) in kernel.tensors.values().enumerate() {
            let given = Encoded::of(params.at(kernel.params.len() + n)?)?;
            let want = Numbers::of(kernel, tensor, grid.map(i64::from), &args);
            if given.numbers() != Some(want.clone()) {
                let message = format!("the tensor map of {} is of {:?}, not of {want:?}", tensor.name, given.numbers());
                return Err(Failure::value(message).detail("kernel", kernel.name.as_str()));
            }
        }
        Ok(args)
    }

    fn run(&self, launch: &Launch) -> Result<()> {
        let mut memory = RealMemory::new();
        for range in memory::all() {
            let start = std::ptr::with_exposed_provenance_mut(range.start as usize);
            // SAFETY: the range is allocated; to free it while a kernel runs breaks the driver's contract.
            unsafe { memory.register(&range.name, start, range.bytes) };
        }
        let Described { kernel, tile, .. } = &*self.kernel;
        let options = &options::current().options;
        let schedules = sim::Options::of_seed(options.seed).schedules(options.schedules.unwrap_or(1));
        let mut clean = |report: sim::Report| report.clean().map(drop);
        let ran = sim::run_under(&schedules, (kernel, tile), launch, &mut memory, &mut Printing, &mut clean);
        ran.map_err(|trap| {
            let code = match trap.code {
                Code::AssertFailed => codes::ERROR_ASSERT,
                Code::OutOfBounds => codes::ERROR_ILLEGAL_ADDRESS,
                _ => codes::ERROR_LAUNCH_FAILED,
            };
            Failure::new(code, trap.message.clone())
                .detail("kernel", kernel.name.as_str())
                .detail("diagnostic", trap.code.text())
        })
    }
}

/// Forwards the prints of kernels.
struct Printing;

impl Host for Printing {
    fn print(&mut self, _: [u32; 3], text: &str) {
        options::print(text);
    }
    fn interrupted(&self) -> bool {
        girih::interrupted()
    }
}

/// A tensor map, in the words that [`encode`] writes: a mark, what it is of, then numbers from the innermost dimension.
#[derive(Clone, Copy)]
struct Encoded([u64; 16]);

const MARK: u64 = 0x7067_6972_6968;

impl Encoded {
    fn of(from: In<u8>) -> Result<Encoded> {
        let mut words = [0u64; 16];
        for (n, word) in words.iter_mut().enumerate() {
            let mut bytes = [0u8; 8];
            for (i, byte) in bytes.iter_mut().enumerate() {
                *byte = from.at(8 * n + i)?;
            }
            *word = u64::from_le_bytes(bytes);
        }
        Ok(Encoded(words))
    }

    fn numbers(&self) -> Option<Numbers> {
        let [mark, of, base, rest @ ..] = &self.0;
        let [data_type, rank, swizzle] = [of & 0xff, of >> 8 & 0xff, of >> 16 & 0xff];
        let rank = rank as usize;
        (*mark == MARK && (1..=5).contains(&rank)).then(|| Numbers {
            data_type: data_type as c_int,
            base: *base,
            dims: rest[..rank].to_vec(),
            strides: rest[5..4 + rank].to_vec(),
            extents: (0..rank).map(|n| (rest[9 + n / 4] >> (16 * (n % 4))) as u32 & 0xffff).collect(),
            swizzle: swizzle as c_int,
        })
    }
}

/// Encodes a tensor map, with the checks of `cuTensorMapEncodeTiled`.
fn encode(of: &Numbers, bytes_of: u64, steps: &[u32]) -> std::result::Result<Encoded, String> {
    let rank = of.dims.len();
    let inner = u64::from(of.extents[0]) * bytes_of;
    let span = [u64::MAX, 32, 64, 128][of.swizzle.clamp(0, 3) as usize];
    if !of.base.is_multiple_of(16) {
        return Err(format!("the address {:#x} is not a multiple of 16", of.base));
    }
    if let Some(n) = of.dims.iter().find(|n| !(1..=1 << 32).contains(*n)) {
        return Err(format!("an extent of {n} is not from 1 to 2^32"));
    }
    if let Some(n) = of.strides.iter().find(|n| !n.is_multiple_of(16) || **n >= 1 << 40) {
        return Err(format!("a stride of {n} bytes is not a multiple of 16 below 2^40"));
    }
    if let Some(n) = of.extents.iter().find(|n| !(1..=256).contains(*n)) {
        return Err(format!("a box of {n} elements along a dimension is not from 1 to 256"));
    }
    if !inner.is_multiple_of(16) || inner > span || steps.iter().any(|s| *s != 1) {
        return Err(format!("rows of {inner} bytes do not fit the swizzle"));
    }
    let mut words = [0u64; 16];
    words[0] = MARK;
    words[1] = of.data_type as u64 | (rank as u64) << 8 | (of.swizzle as u64) << 16;
    words[2] = of.base;
    words[3..3 + rank].copy_from_slice(&of.dims);
    words[8..7 + rank].copy_from_slice(&of.strides);
    for (n, extent) in of.extents.iter().enumerate() {
        words[12 + n / 4] |= u64::from(*extent) << (16 * (n % 4));
    }
    Ok(Encoded(words))
}

driver! {
    fn cuTensorMapEncodeTiled(
        out: Out<[u64; 16]>, data_type: c_int, rank: c_uint, base: u64, dims: In<u64>, strides: In<u64>, extents: In<u32>,
        steps: In<u32>, _interleave: c_int, swizzle: c_int, _promotion: c_int, _fill: c_int,
    ) {
        let rank = rank as usize;
        let bytes = [1u64, 2, 4, 4, 8, 8, 2, 4, 8, 2].get(data_type as usize).copied();
        let (Some(bytes), 1..=5, 0..=3) = (bytes, rank, swizzle) else {
            return Err(Failure::value("a tensor map is of 1 to 5 dimensions, of a type and a swizzle that there are"));
        };
        let list = |n, from: In<u64>| (0..n).map(|i| from.at(i)).collect::<Result<Vec<u64>>>();
        let words = |from: In<u32>| (0..rank).map(|i| from.at(i)).collect::<Result<Vec<u32>>>();
        let of = Numbers {
            data_type, base, dims: list(rank, dims)?, strides: list(rank - 1, strides)?, extents: words(extents)?, swizzle,
        };
        let made = encode(&of, bytes, &words(steps)?).map_err(Failure::value)?;
        if !out.is_aligned(64) {
            return Err(Failure::value("the place of a tensor map is not a multiple of 64"));
        }
        out.set(made.0)
    }
}
