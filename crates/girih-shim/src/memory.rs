//! Memory: the host's, 256-byte aligned, every allocation known, so that frees and copies are checked and kernels under
//! `--check` know the live ranges.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::sync::OnceLock;

use crate::codes;
use crate::context::{check_device, primary};
use crate::driver;
use crate::failure::{Failure, Result};
use crate::ffi::{In, Out};
use crate::graph::{self, Work};
use crate::handles::{Handle, Table};
use girih::sync::{Brief, BriefGuard, once};

const ALIGN: usize = 256;

/// Who gave out a range of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    Device,
    Host,
    Managed,
    /// The host program told of it; it is not ours to free.
    Declared,
}

#[derive(Clone, Debug)]
pub struct Range {
    pub start: u64,
    pub bytes: u64,
    pub origin: Origin,
    pub name: String,
    /// Never given twice.
    pub id: u64,
}

#[derive(Default)]
struct Memory {
    /// By start. A declared range may lie within another; it never replaces one that was allocated.
    ranges: BTreeMap<u64, Range>,
    used: u64,
    next: u64,
}

fn memory() -> BriefGuard<'static, Memory> {
    static MEMORY: Brief<Memory> = Brief::new(Memory { ranges: BTreeMap::new(), used: 0, next: 0 });
    MEMORY.lock()
}

/// A field of `/proc/meminfo` in bytes.
fn meminfo(field: &str) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|l| l.split(':').next() == Some(field))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok()?.checked_mul(1024)
}

/// Bytes of memory this machine has.
pub fn total() -> usize {
    static TOTAL: OnceLock<usize> = OnceLock::new();
    *once(&TOTAL, || meminfo("MemTotal").unwrap_or(8 << 30))
}

fn layout(bytes: u64) -> Option<std::alloc::Layout> {
    let bytes = usize::try_from(bytes).ok()?.checked_next_multiple_of(ALIGN)?;
    std::alloc::Layout::from_size_align(bytes.max(ALIGN), ALIGN).ok()
}

pub fn allocate(bytes: usize, origin: Origin) -> Result<u64> {
    let refuse = || Failure::new(codes::ERROR_OUT_OF_MEMORY, format!("there is no room for {bytes} bytes"));
    if bytes == 0 {
        return Err(Failure::value("a size of zero bytes was given"));
    }
    let mut memory = memory();
    let used = memory.used.checked_add(bytes as u64).filter(|&n| n <= total() as u64).ok_or_else(refuse)?;
    let layout = layout(bytes as u64).ok_or_else(refuse)?;
    // SAFETY: the layout's size is not zero.
    let start = unsafe { std::alloc::alloc(layout) };
    if start.is_null() {
        return Err(refuse());
    }
    let start = start.expose_provenance() as u64;
    memory.used = used;
    memory.next += 1;
    let id = memory.next;
    memory.ranges.insert(start, Range { start, bytes: bytes as u64, origin, name: format!("allocation {id}"), id });
    Ok(start)
}

/// Frees an allocation unless that was done already, and the address given out again since.
pub fn free_same(start: u64, id: u64) {
    if around(start).is_some_and(|r| r.start == start && r.id == id) {
        // Another thread may have freed it just now.
        let _ = free(start, &[Origin::Device]);
    }
}

/// Frees memory that `allocate` gave with one of these origins; does nothing for null.
pub fn free(start: u64, origins: &[Origin]) -> Result<()> {
    if start == 0 {
        return Ok(());
    }
    let mut memory = memory();
    let found = memory.ranges.get(&start).filter(|r| origins.contains(&r.origin)).cloned();
    let Some(range) = found else {
        return Err(Failure::value(format!("{start:#x} was not allocated by such a call, or was freed already")));
    };
    memory.ranges.remove(&start);
    memory.used = memory.used.saturating_sub(range.bytes);
    let Some(layout) = layout(range.bytes) else { return Ok(()) };
    // SAFETY: the range was allocated with this layout, and is forgotten now, so it is freed once.
    unsafe { std::alloc::dealloc(std::ptr::with_exposed_provenance_mut(start as usize), layout) };
    Ok(())
}

/// The smallest known range around an address.
pub fn around(address: u64) -> Option<Range> {
    let memory = memory();
    let before = memory.ranges.range(..=address).rev().map(|(_, r)| r);
    before.take(64).filter(|r| address - r.start < r.bytes).min_by_key(|r| r.bytes).cloned()
}

/// Every known range.
pub fn all() -> Vec<girih::Reached> {
    let memory = memory();
    let one = |r: &Range| girih::Reached { name: r.name.clone(), start: r.start, bytes: r.bytes };
    memory.ranges.values().map(one).collect()
}

pub fn declare(start: u64, bytes: u64, name: &str) -> Result<()> {
    if start == 0 || start.checked_add(bytes).is_none() {
        return Err(Failure::value(format!("{start:#x} with {bytes} bytes is not a range of memory")));
    }
    let mut memory = memory();
    if memory.ranges.get(&start).is_some_and(|r| r.origin != Origin::Declared) {
        return Ok(());
    }
    memory.next += 1;
    let range = Range { start, bytes, origin: Origin::Declared, name: name.to_string(), id: memory.next };
    memory.ranges.insert(start, range);
    Ok(())
}

pub fn forget(start: u64) -> Result<()> {
    let mut memory = memory();
    match memory.ranges.get(&start).map(|r| r.origin) {
        Some(Origin::Declared) => drop(memory.ranges.remove(&start)),
        Some(_) => {}
        None => return Err(Failure::value(format!("{start:#x} was not declared"))),
    }
    Ok(())
}

/// Refuses a range that starts in an allocation of ours and ends past it, and one that starts at null.
fn check(what: &str, start: u64, bytes: u64) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    if start == 0 {
        return Err(Failure::value(format!("the {what} is null")));
    }
    match around(start).filter(|r| r.origin != Origin::Declared) {
        Some(r) if bytes > r.bytes - (start - r.start) => Err(Failure::value(format!(
            "the {what}, {bytes} bytes from {start:#x} on, ends past its allocation of {} bytes at {:#x}",
            r.bytes, r.start
        ))),
        _ => Ok(()),
    }
}

fn pointer(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

pub fn copy(to: u64, from: u64, bytes: usize) -> Result<()> {
    check("destination", to, bytes as u64)?;
    check("source", from, bytes as u64)?;
    if bytes > 0 {
        // SAFETY: the caller vouches for both ranges, as for any copy by the driver; `copy` allows them to overlap.
        unsafe { std::ptr::copy(pointer(from), pointer(to), bytes) };
    }
    Ok(())
}

/// Fills `rows` rows of `width` elements, `pitch` bytes apart, with an element of `size` bytes.
pub fn fill(to: u64, pitch: usize, value: u32, size: usize, width: usize, rows: usize) -> Result<()> {
    let too_large = || Failure::value("the range to fill is too large");
    let bytes = width.checked_mul(size).ok_or_else(too_large)?;
    if rows > 1 && pitch < bytes {
        return Err(Failure::value(format!("rows of {bytes} bytes do not fit a pitch of {pitch}")));
    }
    if bytes == 0 || rows == 0 {
        return Ok(());
    }
    let all = (rows - 1).checked_mul(pitch).and_then(|n| n.checked_add(bytes)).ok_or_else(too_large)?;
    check("destination", to, all as u64)?;
    if !to.is_multiple_of(size as u64) {
        return Err(Failure::value(format!("{to:#x} is not aligned to elements of {size} bytes")));
    }
    for row in 0..rows {
        let start = pointer(to).wrapping_add(row * pitch);
        // SAFETY: the caller vouches for the range; its alignment was tested.
        unsafe {
            match size {
                1 => start.write_bytes(value as u8, width),
                2 => std::slice::from_raw_parts_mut(start.cast::<u16>(), width).fill(value as u16),
                _ => std::slice::from_raw_parts_mut(start.cast::<u32>(), width).fill(value),
            }
        }
    }
    Ok(())
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Copy2D {
    src_x: usize,
    src_y: usize,
    src_type: c_int,
    src_host: u64,
    src_device: u64,
    src_array: u64,
    src_pitch: usize,
    dst_x: usize,
    dst_y: usize,
    dst_type: c_int,
    dst_host: u64,
    dst_device: u64,
    dst_array: u64,
    dst_pitch: usize,
    width: usize,
    height: usize,
}

fn copy_2d(c: Copy2D) -> Result<()> {
    let start = |kind, host, device, x: usize, y: usize, pitch: usize| {
        let base: u64 = match kind {
            1 => host,
            2 | 4 => device,
            n => return Err(Failure::unsupported(format!("memory of type {n} cannot be copied"))),
        };
        let offset = y.checked_mul(pitch).and_then(|n| n.checked_add(x));
        offset.and_then(|n| base.checked_add(n as u64)).ok_or_else(|| Failure::value("the copy is too large"))
    };
    let from = start(c.src_type, c.src_host, c.src_device, c.src_x, c.src_y, c.src_pitch)?;
    let to = start(c.dst_type, c.dst_host, c.dst_device, c.dst_x, c.dst_y, c.dst_pitch)?;
    for row in 0..c.height {
        let at = |base: u64, pitch: usize| base.checked_add((row as u64).checked_mul(pitch as u64)?);
        let (Some(to), Some(from)) = (at(to, c.dst_pitch), at(from, c.src_pitch)) else {
            return Err(Failure::value("the copy is too large"));
        };
        copy(to, from, c.width)?;
    }
    Ok(())
}

/// One attribute of an address, as the bytes of its value.
fn attribute(number: c_int, address: u64) -> Result<Vec<u8>> {
    let known = around(address);
    let need = || {
        let message = format!("{address:#x} is not in any allocation");
        known.clone().ok_or_else(|| Failure::value(message))
    };
    let origin = known.as_ref().map(|r| r.origin);
    let word = |n: u64| n.to_ne_bytes().to_vec();
    let int = |n: c_int| n.to_ne_bytes().to_vec();
    Ok(match number {
        1 => word(primary().0 as u64),
        // All memory is both the device's and the host's; the reported kind of a pointer follows from the function that
        // allocated it.
        2 => int(if origin == Some(Origin::Host) { 1 } else { 2 }),
        3 | 4 => word(address),
        // Copies of this memory are synchronous.
        6 => int(1),
        7 => word(need()?.id),
        8 => vec![u8::from(origin == Some(Origin::Managed))],
        9 => int(0),
        // No sharing between processes.
        10 => int(0),
        11 => word(need()?.start),
        12 => word(need()?.bytes),
        13 => vec![1],
        14 => word(0),
        15 => int(0),
        16 => word(3),
        17 => word(0),
        n => return Err(Failure::value(format!("unknown pointer attribute {n}"))),
    })
}

fn write_bytes(out: Out<u8>, bytes: &[u8]) -> Result<()> {
    bytes.iter().enumerate().try_for_each(|(i, &b)| out.at(i).set(b))
}

pub struct Pool {
    threshold: Brief<u64>,
}

static POOLS: Table<Pool> = Table::new("memory pool");

fn default_pool() -> Handle {
    static POOL: OnceLock<Handle> = OnceLock::new();
    *once(&POOL, || POOLS.insert(Pool { threshold: Brief::new(0) }))
}

/// `CUipcMemHandle` and `CUipcEventHandle`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IpcHandle([u8; 64]);

fn no_ipc() -> Result<()> {
    Err(Failure::unsupported("memory is not shared between processes"))
}

use Origin::{Device, Host, Managed};

driver! {
    fn cuMemGetInfo_v2(free: Out<usize>, all: Out<usize>) {
        free.set_if(meminfo("MemAvailable").unwrap_or_else(|| total() - (memory().used as usize).min(total())));
        all.set_if(total());
        Ok(())
    }
    fn cuMemAlloc_v2(out: Out<u64>, bytes: usize) { give(out, bytes, Device) }
    fn cuMemAllocPitch_v2(out: Out<u64>, pitch: Out<usize>, width: usize, height: usize, _element: c_uint) {
        let row = width.checked_next_multiple_of(ALIGN).ok_or_else(|| Failure::value("the rows are too wide"))?;
        let bytes = row.checked_mul(height).ok_or_else(|| {
            Failure::new(codes::ERROR_OUT_OF_MEMORY, format!("there is no room for {height} rows of {row} bytes"))
        })?;
        give(out, bytes, Device)?;
        pitch.set(row)
    }
    fn cuMemAllocManaged(out: Out<u64>, bytes: usize, _flags: c_uint) { give(out, bytes, Managed) }
    fn cuMemAllocHost_v2(out: Out<u64>, bytes: usize) { give(out, bytes, Host) }
    fn cuMemHostAlloc(out: Out<u64>, bytes: usize, _flags: c_uint) { give(out, bytes, Host) }
    fn cuMemAllocAsync(out: Out<u64>, bytes: usize, _stream: Handle) { give(out, bytes, Device) }
    fn cuMemAllocFromPoolAsync(out: Out<u64>, bytes: usize, pool: Handle, _stream: Handle) {
        POOLS.get(pool)?;
        give(out, bytes, Device)
    }
    fn cuMemFree_v2(start: u64) { free(start, &[Device, Managed]) }
    fn cuMemFreeAsync(start: u64, _stream: Handle) { free(start, &[Device, Managed]) }
    fn cuMemFreeHost(start: u64) { free(start, &[Host]) }
    fn cuMemGetAddressRange_v2(start: Out<u64>, bytes: Out<usize>, address: u64) {
        let range = around(address).ok_or_else(|| {
            Failure::new(codes::ERROR_NOT_FOUND, format!("{address:#x} is not in any allocation"))
        })?;
        start.set_if(range.start);
        bytes.set_if(range.bytes as usize);
        Ok(())
    }
    fn cuMemHostGetDevicePointer_v2(out: Out<u64>, address: u64, _flags: c_uint) { out.set(address) }
    fn cuMemHostGetFlags(flags: Out<c_uint>, _address: u64) { flags.set(0) }
    fn cuMemHostRegister_v2(start: u64, bytes: usize, _flags: c_uint) {
        declare(start, bytes as u64, "registered memory")
    }
    fn cuMemHostUnregister(start: u64) {
        forget(start).map_err(|f| Failure::new(codes::ERROR_HOST_MEMORY_NOT_REGISTERED, f.message))
    }

    fn cuMemcpy(to: u64, from: u64, bytes: usize) { copy(to, from, bytes) }
    fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, on: Handle) {
        graph::submit(on, Work::Copy { to, from, bytes })
    }
    fn cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize) { copy(to, from, bytes) }
    fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, on: Handle) {
        graph::submit(on, Work::Copy { to, from, bytes })
    }
    fn cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize) { copy(to, from, bytes) }
    fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, on: Handle) {
        graph::submit(on, Work::Copy { to, from, bytes })
    }
    fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) { copy(to, from, bytes) }
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, on: Handle) {
        graph::submit(on, Work::Copy { to, from, bytes })
    }
    fn cuMemcpyPeer(to: u64, _there: Handle, from: u64, _here: Handle, bytes: usize) { copy(to, from, bytes) }
    fn cuMemcpyPeerAsync(to: u64, _there: Handle, from: u64, _here: Handle, bytes: usize, on: Handle) {
        graph::submit(on, Work::Copy { to, from, bytes })
    }
    fn cuMemcpy2D_v2(params: In<Copy2D>) { copy_2d(params.get()?) }
    fn cuMemcpy2DUnaligned_v2(params: In<Copy2D>) { copy_2d(params.get()?) }
    fn cuMemcpy2DAsync_v2(params: In<Copy2D>, on: Handle) {
        graph::not_captured(on)?;
        copy_2d(params.get()?)
    }

    fn cuMemsetD8_v2(to: u64, value: u8, count: usize) { fill(to, 0, value.into(), 1, count, 1) }
    fn cuMemsetD16_v2(to: u64, value: u16, count: usize) { fill(to, 0, value.into(), 2, count, 1) }
    fn cuMemsetD32_v2(to: u64, value: c_uint, count: usize) { fill(to, 0, value, 4, count, 1) }
    fn cuMemsetD8Async(to: u64, value: u8, count: usize, on: Handle) {
        graph::submit(on, Work::Fill { to, pitch: 0, value: value.into(), size: 1, width: count, rows: 1 })
    }
    fn cuMemsetD16Async(to: u64, value: u16, count: usize, on: Handle) {
        graph::submit(on, Work::Fill { to, pitch: 0, value: value.into(), size: 2, width: count, rows: 1 })
    }
    fn cuMemsetD32Async(to: u64, value: c_uint, count: usize, on: Handle) {
        graph::submit(on, Work::Fill { to, pitch: 0, value, size: 4, width: count, rows: 1 })
    }
    fn cuMemsetD2D8_v2(to: u64, pitch: usize, value: u8, width: usize, height: usize) {
        fill(to, pitch, value.into(), 1, width, height)
    }
    fn cuMemsetD2D16_v2(to: u64, pitch: usize, value: u16, width: usize, height: usize) {
        fill(to, pitch, value.into(), 2, width, height)
    }
    fn cuMemsetD2D32_v2(to: u64, pitch: usize, value: c_uint, width: usize, height: usize) {
        fill(to, pitch, value, 4, width, height)
    }

    // All memory is everywhere already.
    fn cuMemPrefetchAsync(_start: u64, _bytes: usize, _device: c_int, _stream: Handle) { Ok(()) }
    fn cuMemPrefetchAsync_v2(_start: u64, _bytes: usize, _at: u64, _flags: c_uint, _stream: Handle) { Ok(()) }
    fn cuMemAdvise(_start: u64, _bytes: usize, _advice: c_int, _device: c_int) { Ok(()) }
    fn cuMemAdvise_v2(_start: u64, _bytes: usize, _advice: c_int, _at: u64) { Ok(()) }

    fn cuPointerGetAttribute(out: Out<u8>, number: c_int, address: u64) {
        write_bytes(out, &attribute(number, address)?)
    }
    fn cuPointerGetAttributes(count: c_uint, numbers: In<c_int>, outs: In<Out<u8>>, address: u64) {
        for i in 0..count as usize {
            if let Ok(value) = attribute(numbers.at(i)?, address) {
                write_bytes(outs.at(i)?, &value)?;
            }
        }
        Ok(())
    }
    fn cuPointerSetAttribute(_value: In<u8>, _number: c_int, _address: u64) { Ok(()) }

    fn cuDeviceGetDefaultMemPool(out: Out<Handle>, device: c_int) {
        check_device(device)?;
        out.set(default_pool())
    }
    fn cuDeviceGetMemPool(out: Out<Handle>, device: c_int) {
        check_device(device)?;
        out.set(default_pool())
    }
    fn cuDeviceSetMemPool(device: c_int, pool: Handle) {
        check_device(device)?;
        POOLS.get(pool).map(drop)
    }
    fn cuMemPoolCreate(out: Out<Handle>, _properties: In<u8>) {
        out.set(POOLS.insert(Pool { threshold: Brief::new(0) }))
    }
    fn cuMemPoolDestroy(pool: Handle) {
        if pool == default_pool() {
            return Err(Failure::value("the default pool cannot be destroyed"));
        }
        POOLS.remove(pool).map(drop)
    }
    fn cuMemPoolTrimTo(pool: Handle, _keep: usize) { POOLS.get(pool).map(drop) }
    fn cuMemPoolSetAttribute(pool: Handle, number: c_int, value: In<u64>) {
        let pool = POOLS.get(pool)?;
        if number == 4 {
            *pool.threshold.lock() = value.get()?;
        }
        Ok(())
    }
    fn cuMemPoolGetAttribute(pool: Handle, number: c_int, value: Out<u64>) {
        let pool = POOLS.get(pool)?;
        match number {
            // Reuse is a matter of course, and answered in an int.
            1..=3 => write_bytes(value.cast(), &1i32.to_ne_bytes()),
            4 => value.set(*pool.threshold.lock()),
            5..=8 => value.set(memory().used),
            n => Err(Failure::value(format!("unknown pool attribute {n}"))),
        }
    }
    fn cuMemPoolSetAccess(pool: Handle, _access: In<u8>, _count: usize) { POOLS.get(pool).map(drop) }

    fn cuIpcGetMemHandle(_out: Out<IpcHandle>, _address: u64) { no_ipc() }
    fn cuIpcOpenMemHandle_v2(_out: Out<u64>, _handle: IpcHandle, _flags: c_uint) { no_ipc() }
    fn cuIpcCloseMemHandle(_address: u64) { no_ipc() }
    fn cuIpcGetEventHandle(_out: Out<IpcHandle>, _event: Handle) { no_ipc() }
    fn cuIpcOpenEventHandle(_out: Out<Handle>, _handle: IpcHandle) { no_ipc() }
}

fn give(out: Out<u64>, bytes: usize, origin: Origin) -> Result<()> {
    if out.is_null() {
        return out.set(0);
    }
    out.set(allocate(bytes, origin)?)
}
