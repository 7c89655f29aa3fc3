//! The calling convention between the pool and a compiled kernel, as the emitted C declares it.

use std::ffi::c_void;
use std::sync::atomic::AtomicI32;

/// Counts changes of the layouts below; part of every cache key and of `girih_meta`.
pub const ABI_VERSION: u32 = girih_compiler::emit::c::ABI;

/// `girih_ctx`: the services that the host offers a kernel.
#[repr(C)]
pub struct Context {
    pub grid: [i64; 3],
    /// This worker's scratch, 64-byte aligned.
    pub scratch: *mut u8,
    /// Nonzero: ask `stop`.
    pub abort: *const AtomicI32,
    /// The base address of each module global.
    pub globals: *const *mut u8,
    /// Two numbers per parameter: the byte addresses [lo, hi) of its region, or 0, 0.
    pub extent: *const i64,
    pub host: *mut c_void,
    pub trap: unsafe extern "C" fn(*mut Context, site: i32, kind: i32, block: i64, element: i64, value: i64),
    pub print: unsafe extern "C" fn(*mut Context, site: i32, block: i64, args: *const *const c_void),
    pub yield_now: unsafe extern "C" fn(*mut Context, site: i32, block: i64),
    pub check: unsafe extern "C" fn(*mut Context, addr: u64, len: i64) -> i32,
    /// Nonzero: return soon. May take long: the host handles its pending events in it.
    pub stop: unsafe extern "C" fn(*mut Context) -> i32,
}

/// `girih_meta`, exported beside each kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    pub abi: u32,
    pub nparams: u32,
    /// Bytes of scratch per worker.
    pub scratch: u64,
}

/// Runs blocks `lo..hi` of the linear order, x fastest; 0: done, 1: trapped or aborted.
pub type KernelFn = unsafe extern "C" fn(args: *const u64, ctx: *mut Context, lo: i64, hi: i64) -> i32;

/// The kinds of trap a kernel reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrapKind {
    Assert,
    Step,
    Read,
    Write,
    Alloca,
}

impl TrapKind {
    pub fn from_code(code: i32) -> TrapKind {
        match code {
            0 => TrapKind::Assert,
            1 => TrapKind::Step,
            2 => TrapKind::Read,
            3 => TrapKind::Write,
            _ => TrapKind::Alloca,
        }
    }
}
