//! Initialisation, the device, and contexts.
//!
//! There is one device: this machine. A context is a name for its memory and streams; it holds nothing of its own, so
//! everything works under any context, or none.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::codes::{self, Code};
use crate::failure::{self, Failure, Result};
use crate::ffi::{Out, Text};
use crate::handles::{Handle, Table};
use crate::{driver, memory, options};
use girih::sync::once;

/// The version of the driver's interface that is spoken here: 13.4.
const VERSION: c_int = 13040;
/// The compute capability that front ends are told, so that they use every feature of the language.
/// The compute capability that the device says it has: 10.0, or that of GIRIH_SHIM_CAPABILITY.
pub fn capability() -> (c_int, c_int) {
    static OF: OnceLock<(c_int, c_int)> = OnceLock::new();
    *once(&OF, || {
        let text = std::env::var("GIRIH_SHIM_CAPABILITY").unwrap_or_default();
        let parts = text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        parts.unwrap_or((10, 0))
    })
}

pub struct Context {
    id: u64,
    flags: AtomicUsize,
}

static CONTEXTS: Table<Context> = Table::new("context");

thread_local! {
    static CURRENT: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

fn create(flags: c_uint) -> Handle {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed) as u64;
    CONTEXTS.insert(Context { id, flags: AtomicUsize::new(flags as usize) })
}

/// The device's own context, which is never destroyed.
pub fn primary() -> Handle {
    static PRIMARY: OnceLock<Handle> = OnceLock::new();
    *once(&PRIMARY, || create(0))
}

/// How often the primary context was retained.
static RETAINED: AtomicUsize = AtomicUsize::new(0);

fn current() -> Handle {
    CURRENT.with_borrow(|stack| stack.last().copied().unwrap_or_default())
}

fn context(handle: Handle) -> Result<Arc<Context>> {
    let handle = if handle == Handle::NULL { current() } else { handle };
    CONTEXTS.get(handle).map_err(|f| Failure::new(codes::ERROR_INVALID_CONTEXT, f.message))
}

pub fn check_device(device: c_int) -> Result<()> {
    match device {
        0 => Ok(()),
        n => Err(Failure::new(codes::ERROR_INVALID_DEVICE, format!("there is only device 0, but {n} was given"))),
    }
}

fn device_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    once::<String>(&NAME, || {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find(|l| l.starts_with("model name")).and_then(|l| l.split_once(':'));
        format!("Girih CPU ({})", model.map_or(std::env::consts::ARCH, |(_, name)| name.trim()))
    })
}

const UUID: [u8; 16] = *b"girih-cpu-device";

fn attribute(number: c_int) -> Result<c_int> {
    let target = || options::current().options.resolved_target();
    Ok(match number {
        // The most threads in a block, and along each of its axes.
        1..=3 => 1024,
        4 => 64,
        // Blocks along each axis of a grid.
        5..=7 => girih::spec::MAX_GRID as c_int,
        // Shared memory of a block; by default, per multiprocessor, and at most.
        8 => 48 << 10,
        81 => 228 << 10,
        97 => 227 << 10,
        // Constant memory, the warp, the pitch of copies, registers of a block and of a multiprocessor.
        9 => 64 << 10,
        10 => 32,
        11 => c_int::MAX,
        12 | 82 => 64 << 10,
        // Clock rates in kHz, the width of the bus: plausible numbers.
        13 => 3_000_000,
        36 => 3_200_000,
        37 => 128,
        14 | 51 => 512,
        // Multiprocessors are cores.
        16 => options::current().options.thread_count() as c_int,
        // Copies run beside kernels, the device shares the host's memory, and host memory can be mapped.
        15 | 18 | 19 | 40 | 41 => 1,
        // Front ends flush a buffer of this size before each measurement: the last-level cache, at most 8 MiB so that
        // it is quick.
        38 => target().cache(3).min(8 << 20) as c_int,
        39 => 2048,
        75 => capability().0,
        76 => capability().1,
        // Managed memory, pageable memory, the host's page tables, direct access, memory pools.
        83 | 88 | 89 | 91 | 100 | 101 | 115 => 1,
        106 => 32,
        n if (1..=160).contains(&n) => 0,
        n => return Err(Failure::value(format!("unknown device attribute {n}"))),
    })
}

/// `CUdevprop`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Properties {
    max_threads_per_block: c_int,
    max_threads_dim: [c_int; 3],
    max_grid_size: [c_int; 3],
    shared_mem_per_block: c_int,
    total_constant_memory: c_int,
    simd_width: c_int,
    mem_pitch: c_int,
    regs_per_block: c_int,
    clock_rate: c_int,
    texture_align: c_int,
}

fn write_name(out: Out<c_char>, length: c_int, name: &str) -> Result<()> {
    let room = usize::try_from(length).ok().filter(|&n| n > 0 && !out.is_null());
    let Some(room) = room else { return Err(Failure::value("there is no room for a name")) };
    let bytes = name.bytes().take(room - 1).chain([0]);
    for (i, byte) in bytes.enumerate() {
        out.at(i).set(byte as c_char)?;
    }
    Ok(())
}

driver! {
    fn cuInit(_flags: c_uint) { Ok(()) }
    fn cuDriverGetVersion(version: Out<c_int>) { version.set(VERSION) }

    fn cuGetErrorName(code: Code, text: Out<*const c_char>) {
        text.set(code.name().map_or(std::ptr::null(), |n| n.as_ptr()))?;
        code.name().map(drop).ok_or_else(|| Failure::value(format!("unknown error code {}", code.0)))
    }
    fn cuDeviceGet(device: Out<c_int>, ordinal: c_int) {
        check_device(ordinal)?;
        device.set(0)
    }
    fn cuDeviceGetCount(count: Out<c_int>) { count.set(1) }
    fn cuDeviceGetName(name: Out<c_char>, length: c_int, device: c_int) {
        check_device(device)?;
        write_name(name, length, device_name())
    }
    fn cuDeviceGetUuid(uuid: Out<[u8; 16]>, device: c_int) {
        check_device(device)?;
        uuid.set(UUID)
    }
    fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: c_int) {
        check_device(device)?;
        uuid.set(UUID)
    }
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: c_int) {
        check_device(device)?;
        bytes.set(memory::total())
    }
    fn cuDeviceGetAttribute(value: Out<c_int>, number: c_int, device: c_int) {
        check_device(device)?;
        value.set(attribute(number)?)
    }
    fn cuDeviceGetProperties(properties: Out<Properties>, device: c_int) {
        check_device(device)?;
        let get = |n| attribute(n).unwrap_or(0);
        properties.set(Properties {
            max_threads_per_block: get(1),
            max_threads_dim: [get(2), get(3), get(4)],
            max_grid_size: [get(5), get(6), get(7)],
            shared_mem_per_block: get(8),
            total_constant_memory: get(9),
            simd_width: get(10),
            mem_pitch: get(11),
            regs_per_block: get(12),
            clock_rate: get(13),
            texture_align: get(14),
        })
    }
    fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, device: c_int) {
        check_device(device)?;
        major.set(capability().0)?;
        minor.set(capability().1)
    }
    fn cuDeviceGetPCIBusId(name: Out<c_char>, length: c_int, device: c_int) {
        check_device(device)?;
        write_name(name, length, "0000:00:00.0")
    }
    fn cuDeviceGetByPCIBusId(device: Out<c_int>, name: Text) {
        match name.get()?.as_str() {
            "0000:00:00.0" => device.set(0),
            other => Err(Failure::new(codes::ERROR_INVALID_DEVICE, format!("there is no device at {other}"))),
        }
    }
    fn cuDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int) {
        check_device(device)?;
        check_device(peer)?;
        can.set(0)
    }

    fn cuDevicePrimaryCtxRetain(out: Out<Handle>, device: c_int) {
        check_device(device)?;
        out.set(primary())?;
        RETAINED.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    fn cuDevicePrimaryCtxRelease_v2(device: c_int) {
        check_device(device)?;
        let fewer = |n: usize| n.checked_sub(1);
        RETAINED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).map(drop).map_err(|_| {
            Failure::new(codes::ERROR_INVALID_CONTEXT, "the primary context was released more often than retained")
        })
    }
    fn cuDevicePrimaryCtxReset_v2(device: c_int) { check_device(device) }
    fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint) {
        check_device(device)?;
        context(primary())?.flags.store(flags as usize, Ordering::Relaxed);
        Ok(())
    }
    fn cuDevicePrimaryCtxGetState(device: c_int, flags: Out<c_uint>, active: Out<c_int>) {
        check_device(device)?;
        flags.set(context(primary())?.flags.load(Ordering::Relaxed) as c_uint)?;
        active.set((RETAINED.load(Ordering::Relaxed) > 0).into())
    }

    fn cuCtxCreate_v2(out: Out<Handle>, flags: c_uint, device: c_int) {
        check_device(device)?;
        let new = create(flags);
        out.set(new)?;
        CURRENT.with_borrow_mut(|stack| stack.push(new));
        Ok(())
    }
    fn cuCtxCreate_v4(out: Out<Handle>, _params: *const c_void, flags: c_uint, device: c_int) {
        check_device(device)?;
        let new = create(flags);
        out.set(new)?;
        CURRENT.with_borrow_mut(|stack| stack.push(new));
        Ok(())
    }
    fn cuCtxDestroy_v2(handle: Handle) {
        if handle == primary() {
            return Err(Failure::new(codes::ERROR_INVALID_CONTEXT, "the primary context cannot be destroyed"));
        }
        CONTEXTS.remove(handle).map_err(|f| Failure::new(codes::ERROR_INVALID_CONTEXT, f.message))?;
        CURRENT.with_borrow_mut(|stack| stack.retain(|&h| h != handle));
        Ok(())
    }
    fn cuCtxGetCurrent(out: Out<Handle>) { out.set(current()) }
    fn cuCtxSetCurrent(handle: Handle) {
        if handle != Handle::NULL {
            context(handle)?;
        }
        CURRENT.with_borrow_mut(|stack| {
            stack.pop();
            if handle != Handle::NULL {
                stack.push(handle);
            }
        });
        Ok(())
    }
    fn cuCtxPushCurrent_v2(handle: Handle) {
        if handle == Handle::NULL {
            return Err(Failure::new(codes::ERROR_INVALID_CONTEXT, "the context is null"));
        }
        context(handle)?;
        CURRENT.with_borrow_mut(|stack| stack.push(handle));
        Ok(())
    }
    fn cuCtxPopCurrent_v2(out: Out<Handle>) {
        let popped = CURRENT.with_borrow_mut(Vec::pop);
        let popped = popped.ok_or_else(|| Failure::new(codes::ERROR_INVALID_CONTEXT, "no context is current"))?;
        out.set_if(popped);
        Ok(())
    }
    fn cuCtxGetDevice(device: Out<c_int>) {
        context(Handle::NULL)?;
        device.set(0)
    }
    fn cuCtxGetDevice_v2(device: Out<c_int>, handle: Handle) {
        context(handle)?;
        device.set(0)
    }
    fn cuCtxGetId(handle: Handle, id: Out<c_ulonglong>) { id.set(context(handle)?.id) }
    fn cuCtxGetFlags(flags: Out<c_uint>) {
        flags.set(context(Handle::NULL)?.flags.load(Ordering::Relaxed) as c_uint)
    }
    fn cuCtxSetFlags(flags: c_uint) {
        context(Handle::NULL)?.flags.store(flags as usize, Ordering::Relaxed);
        Ok(())
    }
    fn cuCtxGetApiVersion(handle: Handle, version: Out<c_uint>) {
        context(handle)?;
        version.set(VERSION as c_uint)
    }
    fn cuCtxSynchronize() { Ok(()) }
    fn cuCtxSynchronize_v2(handle: Handle) { context(handle).map(drop) }
    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        least.set_if(0);
        greatest.set_if(0);
        Ok(())
    }
    fn cuCtxSetLimit(_limit: c_int, _value: usize) { Ok(()) }
    fn cuCtxGetLimit(value: Out<usize>, limit: c_int) {
        match limit {
            // Stack, printed text, heap.
            0 => value.set(1 << 10),
            1 | 2 => value.set(8 << 20),
            n => Err(Failure::new(codes::ERROR_UNSUPPORTED_LIMIT, format!("unknown limit {n}"))),
        }
    }
    fn cuCtxSetCacheConfig(_config: c_int) { Ok(()) }
    fn cuCtxGetCacheConfig(config: Out<c_int>) { config.set(0) }
    fn cuCtxResetPersistingL2Cache() { Ok(()) }
    fn cuProfilerStart() { Ok(()) }
    fn cuProfilerStop() { Ok(()) }
}

/// The text of an error code; after a failure with that code on this thread, the exact error. It does not count as a call
/// itself, so that asking keeps the failure.
#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorString(code: Code, text: Out<*const c_char>) -> Code {
    text.set_if(failure::describe(code.0).unwrap_or(std::ptr::null()));
    if code.meaning().is_some() && !text.is_null() { codes::SUCCESS } else { codes::ERROR_INVALID_VALUE }
}
