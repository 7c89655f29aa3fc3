//! Kernels on the GPU, on arrays of the host and of the device.
//!
//! In: a kernel lowered for the device's target, a launch with addresses, and the memory that they point to. Out: the
//! memory changed. Arrays of the host are copied to the device and back, each once however many arguments are parts of
//! it; those of the device are taken as they are.

use std::ffi::c_void;

use girih_compiler::base::launch::Launch;
use girih_compiler::base::memory::Memory as HostMemory;
use girih_compiler::kernel::ir::{Elem, Global, Stmt};
use girih_compiler::loops::launch_facts;
use girih_compiler::pipeline::{self, Lowered};

use super::descriptor::Numbers;
use super::device::{self, Device, Event, Memory};
use super::driver::{Handle, TensorMap};
use super::image;
use crate::compile::cache::Cache;
use crate::compile::gpu;
use crate::error::{Error, Result};
use crate::options::Options;

/// A kernel that the device has loaded.
pub struct Loaded {
    device: &'static Device,
    function: Handle,
    threads: u32,
    shared: u64,
    /// Where the kernel's globals lie, and their bytes; not those of constants.
    globals: Vec<Option<(u64, u64)>>,
}

/// Compiles a kernel, or finds it on disk, and loads it.
///
/// # Errors
/// [`cuda::Error::Missing`](super::Error::Missing) without NVRTC, where the kernel is not on disk and the driver is not the stand-in.
pub fn load(lowered: &Lowered, options: &Options, cache: &Cache) -> Result<Loaded> {
    let device = Device::get()?;
    let target = options.resolved_target();
    if target.name != device.target {
        return Err(Error::argument(format!(
            "{} runs kernels for {}, not for {}",
            device.name, device.target, target.name
        )));
    }
    let kernels = [&lowered.kernel];
    let unit = pipeline::emit_cuda(&kernels, &target).map_err(|d| Error::Program(vec![d]))?;
    let key = format!("{}\n{}", target.name, unit.text);
    let module = device.module(&key, || {
        // The stand-in runs Kernel IR.
        let cubin = match device.driver.is_stand_in() {
            true => vec![],
            false => cache.bytes(&format!("cubin\n{key}"), || gpu::cubin(&unit, &kernels, &target))?,
        };
        Ok(image::write(&cubin, &unit, &[lowered], target.name))
    })?;
    let Some(entry) = unit.entries.first() else { return Err(Error::Internal("a unit has no entry".into())) };
    let function = module.function(entry.name.as_str(), entry.dynamic_shared)?;
    let of = |(global, name): (&Global, &String)| (!global.array.constant).then(|| module.global(name)).transpose();
    let globals = lowered.kernel.globals.iter().zip(&entry.globals).map(of).collect::<super::Result<_>>()?;
    Ok(Loaded { device, function, threads: entry.threads, shared: entry.dynamic_shared, globals })
}

/// Runs a launch on the host's and the device's memory, on a stream if one is given. Waits for it, unless it is on a stream and
/// nothing comes back to the host; gives the seconds that the kernel took, as far as somebody waited.
///
/// # Errors
/// The driver's; a block alone, which only the simulator runs.
pub fn run(
    loaded: &Loaded,
    lowered: &Lowered,
    launch: &Launch,
    memory: &mut dyn HostMemory,
    on: Option<u64>,
) -> Result<f64> {
    if launch.only_block.is_some() {
        return Err(Error::argument("a block alone runs on the simulator: `--device sim`"));
    }
    let device = Device::get()?;
    let mut arrays = Arrays::of(device, lowered, launch, memory)?;
    let globals = || launch.globals.iter().zip(&loaded.globals).filter_map(|(at, global)| Some((*at, (*global)?)));
    for (at, (to, bytes)) in globals() {
        device::to_device(device, to, &host_bytes(memory, at, bytes)?)?;
    }
    arrays.copy_in(memory)?;
    let grid = lowered.kernel.blocks(&launch.args).unwrap_or(launch.grid.map(i64::from));
    let stream = on.unwrap_or(0) as Handle;
    if on.is_some() && arrays.copied.is_empty() && globals().next().is_none() {
        start(loaded, lowered, grid, &arrays.args, stream)?;
        return Ok(0.0);
    }
    let timer = Timer::start(device, stream)?;
    start(loaded, lowered, grid, &arrays.args, stream)?;
    let seconds = timer.stop().map_err(|error| of_kernel(error, lowered))?;
    for (at, (from, bytes)) in globals() {
        let mut kept = vec![0; bytes as usize];
        device::to_host(device, &mut kept, from)?;
        memory.write(at, &kept).map_err(|_| missing())?;
    }
    arrays.copy_out(memory)?;
    Ok(seconds)
}

/// Adds the likely cause to a kernel's failure: the driver reports a trap only as a failure.
fn of_kernel(error: super::Error, lowered: &Lowered) -> super::Error {
    match error {
        super::Error::Driver { call, name, reason } if asserts(&lowered.kernel.body) => {
            let reason = format!("{reason}; an assertion of `{}` that does not hold ends it so", lowered.kernel.name);
            super::Error::Driver { call, name, reason }
        }
        other => other,
    }
}

fn asserts(body: &[Stmt]) -> bool {
    body.iter().any(|s| match s {
        Stmt::Assert { .. } => true,
        Stmt::For { body, .. } | Stmt::Loop { body } => asserts(body),
        Stmt::If { then, els, .. } => asserts(then) || asserts(els),
        _ => false,
    })
}

/// Begins a launch on addresses of the device.
///
/// # Errors
/// The driver's.
pub fn start(loaded: &Loaded, lowered: &Lowered, grid: [i64; 3], args: &[u64], stream: Handle) -> Result<()> {
    if grid.contains(&0) {
        return Ok(());
    }
    let driver = loaded.device.driver;
    let kernel = &lowered.kernel;
    let [x, y, z] = grid.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let maps: Vec<TensorMap> = kernel
        .tensors
        .values()
        .map(|t| Numbers::of(kernel, t, grid, args).encoded(driver))
        .collect::<super::Result<_>>()?;
    let mut params: Vec<*const c_void> = args.iter().map(|a| std::ptr::from_ref(a).cast()).collect();
    params.extend(maps.iter().map(|m| std::ptr::from_ref(m).cast::<c_void>()));
    // SAFETY: the function takes these parameters, and each is at least as long as it reads; addresses were checked, or the
    // caller vouches for them.
    let status = unsafe {
        (driver.functions.launch)(
            loaded.function,
            x,
            y,
            z,
            loaded.threads,
            1,
            1,
            loaded.shared as u32,
            stream,
            params.as_ptr(),
            std::ptr::null(),
        )
    };
    Ok(driver.expect("cuLaunchKernel", status)?)
}

fn missing() -> Error {
    Error::Internal("memory of a launch is gone".into())
}

fn host_bytes(memory: &dyn HostMemory, start: u64, bytes: u64) -> Result<Vec<u8>> {
    let mut out = vec![0; bytes as usize];
    memory.read(start, &mut out).map_err(|_| missing())?;
    Ok(out)
}

/// The arguments of a launch, and the arrays of the host that they are of.
struct Arrays {
    args: Vec<u64>,
    copied: Vec<Copied>,
}

/// An array of the host, or several that overlap, and its copy.
struct Copied {
    start: u64,
    bytes: u64,
    written: bool,
    copy: Memory,
}

/// The alignment of the driver's allocations, in bytes.
const ALIGN: u64 = 256;

impl Copied {
    /// Allocates so that the copy has the host array's offset from a multiple of [`ALIGN`]: aligned host addresses stay
    /// aligned.
    fn new(device: &'static Device, start: u64, end: u64, written: bool) -> super::Result<Copied> {
        let copy = device.allocate(end - start + start % ALIGN)?;
        Ok(Copied { start, bytes: end - start, written, copy })
    }

    fn address(&self) -> u64 {
        self.copy.address + self.start % ALIGN
    }
}

impl Arrays {
    fn of(device: &'static Device, lowered: &Lowered, launch: &Launch, memory: &dyn HostMemory) -> Result<Arrays> {
        let kernel = &lowered.kernel;
        let writes = launch_facts::traffic(&lowered.loops).writes;
        let mut ranges: Vec<(u64, u64, bool)> = vec![];
        for (at, (param, address)) in kernel.params.iter().zip(&launch.args).enumerate() {
            let pointer = matches!(kernel.vals.get(*param).map(|v| v.ty.elem), Some(Elem::Ptr(_)));
            if !pointer || device.has(*address) {
                continue;
            }
            if let Some((_, start, bytes)) = memory
                .region(*address)
                .filter(|(_, start, bytes)| *bytes > 0 && *address >= *start && *address - start <= *bytes)
            {
                ranges.push((start, start + bytes, writes.get(at) != Some(&false)));
            }
        }
        ranges.sort_unstable();
        let mut joined: Vec<(u64, u64, bool)> = vec![];
        for (start, end, written) in ranges {
            match joined.last_mut() {
                Some(last) if start < last.1 => *last = (last.0, last.1.max(end), last.2 | written),
                _ => joined.push((start, end, written)),
            }
        }
        let mut copied = vec![];
        for (start, end, written) in joined {
            copied.push(Copied::new(device, start, end, written)?);
        }
        let place = |(param, address): (&_, &u64)| {
            let pointer = matches!(kernel.vals.get(*param).map(|v| v.ty.elem), Some(Elem::Ptr(_)));
            let within = |c: &&Copied| pointer && (c.start..c.start + c.bytes).contains(address);
            copied.iter().find(within).map_or(*address, |c| c.address() + (address - c.start))
        };
        let args = kernel.params.iter().zip(&launch.args).map(place).collect();
        Ok(Arrays { args, copied })
    }

    fn copy_in(&self, memory: &dyn HostMemory) -> Result<()> {
        for c in &self.copied {
            device::to_device(c.copy.device, c.address(), &host_bytes(memory, c.start, c.bytes)?)?;
        }
        Ok(())
    }

    fn copy_out(&mut self, memory: &mut dyn HostMemory) -> Result<()> {
        for c in self.copied.iter().filter(|c| c.written) {
            let mut bytes = vec![0; c.bytes as usize];
            device::to_host(c.copy.device, &mut bytes, c.address())?;
            memory.write(c.start, &bytes).map_err(|_| missing())?;
        }
        Ok(())
    }
}

/// The time between two moments of a stream.
struct Timer {
    device: &'static Device,
    stream: Handle,
    started: Event,
}

impl Timer {
    fn start(device: &'static Device, stream: Handle) -> super::Result<Timer> {
        let started = Event::new(device)?;
        started.record(stream)?;
        Ok(Timer { device, stream, started })
    }

    /// Waits for the work that was begun, and returns its seconds.
    fn stop(self) -> super::Result<f64> {
        let ended = Event::new(self.device)?;
        ended.record(self.stream)?;
        self.device.synchronize(self.stream)?;
        Ok(f64::from(self.started.until(&ended)?) / 1e3)
    }
}
