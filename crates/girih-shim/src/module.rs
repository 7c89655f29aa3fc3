//! Libraries, modules and their kernels. A module is a library under another name, a function a kernel.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::sync::Arc;

use girih::{Kernel, Param, ParamKind, Program};

use crate::codes;
use crate::container;
use crate::context::check_device;
use crate::driver;
use crate::failure::{self, Failure, Result};
use crate::ffi::{Out, Text};
use crate::handles::{Handle, Table};
use crate::launch::Plan;
use crate::options;
use crate::simt;
use girih::sync::Brief;

pub struct Library {
    program: Arc<Program>,
    /// The names of the kernels' arguments for messages; there may be fewer names than arguments.
    arguments: Vec<String>,
    /// The handles of kernels that were asked for.
    kernels: Brief<BTreeMap<String, Handle>>,
}

/// A kernel, and all about it that does not depend on a launch.
pub struct Loaded {
    pub name: CString,
    pub program: Arc<Program>,
    pub plan: Plan,
    library: Handle,
    /// The kernel under the options of a generation.
    kernel: Brief<Option<(u64, Arc<Kernel<'static>>)>>,
    attributes: Brief<BTreeMap<c_int, c_int>>,
}

static LIBRARIES: Table<Library> = Table::new("library");
static KERNELS: Table<Loaded> = Table::new("kernel");

pub fn kernel(handle: Handle) -> Result<Arc<Loaded>> {
    KERNELS.get(handle)
}

impl Loaded {
    /// The kernel under the options in force.
    pub fn under(&self, current: &options::Current) -> Result<Arc<Kernel<'static>>> {
        let mut slot = self.kernel.lock();
        match &*slot {
            Some((generation, kernel)) if *generation == current.generation => Ok(kernel.clone()),
            _ => {
                let kernel = self.program.shared_entry(&self.name.to_string_lossy());
                let kernel = kernel.map_err(|e| failure::from_girih(&e, Some(&self.program)))?;
                let kernel = kernel.with_param_names(|i| self.plan.name(i)).with_options(current.options.clone());
                let kernel = Arc::new(kernel);
                *slot = Some((current.generation, kernel.clone()));
                Ok(kernel)
            }
        }
    }
}

/// Reads and verifies a program in any form.
fn load((options, bytes): (container::Options, Vec<u8>)) -> Result<Handle> {
    let program = Program::from_bytes(&bytes).map_err(|e| {
        let mut failure = failure::from_girih(&e, None);
        failure.code = codes::ERROR_INVALID_IMAGE;
        failure
    })?;
    let (program, arguments) = (Arc::new(program), options.arguments);
    Ok(LIBRARIES.insert(Library { program, arguments, kernels: Brief::default() }))
}

fn load_image(image: *const c_void) -> Result<Handle> {
    if image.is_null() {
        return Err(Failure::value("the image is null"));
    }
    // SAFETY: the caller gives the driver the start of a whole image.
    if unsafe { simt::is_image(image.cast()) } {
        // SAFETY: as above.
        return unsafe { simt::load(image.cast()) };
    }
    // SAFETY: as above.
    load(unsafe { container::read_image(image.cast()) }?)
}

fn load_file(path: Text) -> Result<Handle> {
    load(container::read_file(Path::new(&path.get()?))?)
}

fn find(library: Handle, name: &str) -> Result<Handle> {
    if let Some(module) = simt::module(library) {
        return module.find(name);
    }
    let lib = LIBRARIES.get(library)?;
    let mut kernels = lib.kernels.lock();
    if let Some(&handle) = kernels.get(name) {
        return Ok(handle);
    }
    let entry = lib.program.entry(name).map_err(|e| failure::from_girih(&e, Some(&lib.program)))?;
    let loaded = Loaded {
        name: CString::new(name).map_err(|_| Failure::value("a name holds a zero byte"))?,
        program: lib.program.clone(),
        plan: Plan::new(name, entry.params(), &lib.arguments),
        library,
        kernel: Brief::default(),
        attributes: Brief::default(),
    };
    let handle = KERNELS.insert(loaded);
    kernels.insert(name.to_string(), handle);
    Ok(handle)
}

fn unload(library: Handle) -> Result<()> {
    if simt::module(library).is_some() {
        return simt::unload(library);
    }
    LIBRARIES.remove(library)?;
    KERNELS.retain(|k| k.library != library);
    Ok(())
}

/// Bytes of a parameter in an argument list.
pub fn param_bytes(param: &Param) -> usize {
    match param.kind {
        ParamKind::Pointer(_) => 8,
        ParamKind::Scalar(dtype) => dtype.bytes() as usize,
    }
}

fn attribute(kernel: Handle, number: c_int) -> Result<c_int> {
    if let Some(function) = simt::function(kernel) {
        return function.attribute(number);
    }
    let loaded = KERNELS.get(kernel)?;
    let set = loaded.attributes.lock().get(&number).copied();
    Ok(set.unwrap_or(match number {
        // The most threads in a block; a tile kernel is launched with one.
        0 => 1024,
        // Shared, constant and local memory; registers.
        1..=3 => 0,
        4 => 1,
        // The versions of PTX and of the binary: 100 stands for compute capability 10.0.
        5 | 6 => 100,
        7..=16 => 0,
        n => return Err(Failure::value(format!("unknown kernel attribute {n}"))),
    }))
}

fn set_attribute(kernel: Handle, number: c_int, value: c_int) -> Result<()> {
    if let Some(function) = simt::function(kernel) {
        return function.set_attribute(number, value);
    }
    attribute(kernel, number)?;
    KERNELS.get(kernel)?.attributes.lock().insert(number, value);
    Ok(())
}

fn param_info(kernel: Handle, index: usize, offset: Out<usize>, size: Out<usize>) -> Result<()> {
    let loaded = KERNELS.get(kernel)?;
    let field = loaded.plan.fields.get(index).ok_or_else(|| {
        Failure::value(format!(
            "the kernel has {} parameters, but number {index} was asked for",
            loaded.plan.fields.len()
        ))
    })?;
    offset.set(field.offset)?;
    size.set_if(field.bytes);
    Ok(())
}

fn global(library: Handle, name: Text, address: Out<u64>, bytes: Out<usize>) -> Result<()> {
    if let Some(module) = simt::module(library) {
        let (start, length) = module.global(&name.get()?)?;
        address.set_if(start);
        bytes.set_if(length as usize);
        return Ok(());
    }
    LIBRARIES.get(library)?;
    let message = format!("the global `{}` cannot be reached from outside", name.get()?);
    Err(Failure::new(codes::ERROR_NOT_FOUND, message))
}

driver! {
    fn cuLibraryLoadData(
        out: Out<Handle>, image: *const c_void, _jit: *const c_void, _jit_values: *const c_void, _jit_count: c_uint,
        _options: *const c_void, _values: *const c_void, _count: c_uint,
    ) {
        out.set(load_image(image)?)
    }
    fn cuLibraryLoadFromFile(
        out: Out<Handle>, path: Text, _jit: *const c_void, _jit_values: *const c_void, _jit_count: c_uint,
        _options: *const c_void, _values: *const c_void, _count: c_uint,
    ) {
        out.set(load_file(path)?)
    }
    fn cuLibraryUnload(library: Handle) { unload(library) }
    fn cuLibraryGetKernel(out: Out<Handle>, library: Handle, name: Text) { out.set(find(library, &name.get()?)?) }
    fn cuLibraryGetKernelCount(count: Out<c_uint>, library: Handle) {
        count.set(LIBRARIES.get(library)?.program.entries().len() as c_uint)
    }
    fn cuLibraryEnumerateKernels(out: Out<Handle>, room: c_uint, library: Handle) {
        let program = LIBRARIES.get(library)?.program.clone();
        for (i, name) in program.entries().into_iter().take(room as usize).enumerate() {
            out.at(i).set(find(library, name)?)?;
        }
        Ok(())
    }
    fn cuLibraryGetModule(out: Out<Handle>, library: Handle) {
        LIBRARIES.get(library)?;
        out.set(library)
    }
    fn cuLibraryGetGlobal(address: Out<u64>, bytes: Out<usize>, library: Handle, name: Text) {
        global(library, name, address, bytes)
    }

    fn cuModuleLoad(out: Out<Handle>, path: Text) { out.set(load_file(path)?) }
    fn cuModuleLoadData(out: Out<Handle>, image: *const c_void) { out.set(load_image(image)?) }
    fn cuModuleLoadDataEx(
        out: Out<Handle>, image: *const c_void, _count: c_uint, _options: *const c_void, _values: *const c_void,
    ) {
        out.set(load_image(image)?)
    }
    fn cuModuleLoadFatBinary(out: Out<Handle>, image: *const c_void) { out.set(load_image(image)?) }
    fn cuModuleUnload(module: Handle) { unload(module) }
    fn cuModuleGetFunction(out: Out<Handle>, module: Handle, name: Text) { out.set(find(module, &name.get()?)?) }
    fn cuModuleGetFunctionCount(count: Out<c_uint>, module: Handle) {
        count.set(LIBRARIES.get(module)?.program.entries().len() as c_uint)
    }
    fn cuModuleGetGlobal_v2(address: Out<u64>, bytes: Out<usize>, module: Handle, name: Text) {
        global(module, name, address, bytes)
    }
    fn cuModuleGetLoadingMode(mode: Out<c_int>) { mode.set(1) }

    fn cuKernelGetFunction(out: Out<Handle>, kernel: Handle) {
        KERNELS.get(kernel)?;
        out.set(kernel)
    }
    fn cuKernelGetLibrary(out: Out<Handle>, kernel: Handle) { out.set(KERNELS.get(kernel)?.library) }
    fn cuKernelGetName(name: Out<*const c_char>, kernel: Handle) { name.set(KERNELS.get(kernel)?.name.as_ptr()) }
    fn cuKernelGetAttribute(value: Out<c_int>, number: c_int, kernel: Handle, device: c_int) {
        check_device(device)?;
        value.set(attribute(kernel, number)?)
    }
    fn cuKernelSetAttribute(number: c_int, value: c_int, kernel: Handle, device: c_int) {
        check_device(device)?;
        set_attribute(kernel, number, value)
    }
    fn cuKernelGetParamInfo(kernel: Handle, index: usize, offset: Out<usize>, size: Out<usize>) {
        param_info(kernel, index, offset, size)
    }
    fn cuKernelSetCacheConfig(kernel: Handle, _config: c_int, _device: c_int) { KERNELS.get(kernel).map(drop) }
    fn cuFuncGetName(name: Out<*const c_char>, function: Handle) { name.set(KERNELS.get(function)?.name.as_ptr()) }
    fn cuFuncGetModule(out: Out<Handle>, function: Handle) { out.set(KERNELS.get(function)?.library) }
    fn cuFuncGetAttribute(value: Out<c_int>, number: c_int, function: Handle) {
        value.set(attribute(function, number)?)
    }
    fn cuFuncSetAttribute(function: Handle, number: c_int, value: c_int) { set_attribute(function, number, value) }
    fn cuFuncSetCacheConfig(function: Handle, _config: c_int) { KERNELS.get(function).map(drop) }
    fn cuFuncGetParamInfo(function: Handle, index: usize, offset: Out<usize>, size: Out<usize>) {
        param_info(function, index, offset, size)
    }
    fn cuFuncIsLoaded(state: Out<c_int>, function: Handle) {
        KERNELS.get(function)?;
        state.set(1)
    }
    fn cuFuncLoad(function: Handle) { KERNELS.get(function).map(drop) }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<c_int>, function: Handle, _block: c_int, _shared: usize,
    ) {
        KERNELS.get(function)?;
        blocks.set(1)
    }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>, function: Handle, _block: c_int, _shared: usize, _flags: c_uint,
    ) {
        KERNELS.get(function)?;
        blocks.set(1)
    }
}
