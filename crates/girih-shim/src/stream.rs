//! Streams and events.
//!
//! Work has finished when the call that submits it returns, so streams are in order by themselves, waiting is over at
//! once, and an event is the time at which it was recorded.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::codes::{self, Code};
use crate::context::primary;
use crate::driver;
use crate::failure::{Failure, Result};
use crate::ffi::Out;
use crate::graph::{self, Work};
use crate::handles::{Handle, Table};
use girih::sync::Brief;

pub struct Stream {
    pub id: u64,
    flags: c_uint,
    priority: c_int,
}

static STREAMS: Table<Stream> = Table::new("stream");

/// The stream behind a handle. Null and 1 are the legacy stream, 2 is the thread's own; they always exist.
pub fn stream(handle: Handle) -> Result<Arc<Stream>> {
    match handle.0 {
        0..=2 => Ok(Arc::new(Stream { id: handle.0.max(1) as u64, flags: 0, priority: 0 })),
        _ => STREAMS.get(handle),
    }
}

fn create(flags: c_uint, priority: c_int) -> Handle {
    static NEXT: AtomicU64 = AtomicU64::new(3);
    STREAMS.insert(Stream { id: NEXT.fetch_add(1, Ordering::Relaxed), flags, priority })
}

pub struct Event {
    /// True if it may be asked for times.
    timed: bool,
    recorded: Brief<Option<Instant>>,
}

static EVENTS: Table<Event> = Table::new("event");

impl Event {
    pub fn record(&self) {
        *self.recorded.lock() = Some(Instant::now());
    }
    fn time(&self) -> Result<Instant> {
        let wrong = |message: &str| Failure::new(codes::ERROR_INVALID_HANDLE, message);
        if !self.timed {
            return Err(wrong("the event was created without timing"));
        }
        self.recorded.lock().ok_or_else(|| wrong("the event was never recorded"))
    }
}

pub fn event(handle: Handle) -> Result<Arc<Event>> {
    EVENTS.get(handle)
}

fn elapsed(out: Out<f32>, from: Handle, to: Handle) -> Result<()> {
    let (from, to) = (event(from)?.time()?, event(to)?.time()?);
    let ms = match to.checked_duration_since(from) {
        Some(d) => d.as_secs_f64() * 1e3,
        None => -(from.duration_since(to).as_secs_f64() * 1e3),
    };
    out.set(ms as f32)
}

/// A function of the host program that work in a stream calls.
pub type HostFn = Option<unsafe extern "C" fn(*mut c_void)>;
type Callback = Option<unsafe extern "C" fn(Handle, Code, *mut c_void)>;

/// Calls a function of the host program.
pub fn call_host(function: HostFn, data: *mut c_void) -> Result<()> {
    let function = function.ok_or_else(|| Failure::value("the function is null"))?;
    // SAFETY: the host program gives the function to be called with this value, once.
    unsafe { function(data) };
    Ok(())
}

driver! {
    fn cuStreamCreate(out: Out<Handle>, flags: c_uint) { out.set(create(flags, 0)) }
    fn cuStreamCreateWithPriority(out: Out<Handle>, flags: c_uint, priority: c_int) {
        out.set(create(flags, priority))
    }
    fn cuStreamDestroy_v2(handle: Handle) { STREAMS.remove(handle).map(drop) }
    fn cuStreamSynchronize(handle: Handle) { graph::not_captured(handle) }
    fn cuStreamQuery(handle: Handle) { graph::not_captured(handle) }
    fn cuStreamWaitEvent(handle: Handle, awaited: Handle, _flags: c_uint) {
        stream(handle)?;
        event(awaited).map(drop)
    }
    fn cuStreamGetCtx(handle: Handle, out: Out<Handle>) {
        stream(handle)?;
        out.set(primary())
    }
    fn cuStreamGetId(handle: Handle, id: Out<c_ulonglong>) { id.set(stream(handle)?.id) }
    fn cuStreamGetFlags(handle: Handle, flags: Out<c_uint>) { flags.set(stream(handle)?.flags) }
    fn cuStreamGetPriority(handle: Handle, priority: Out<c_int>) { priority.set(stream(handle)?.priority) }
    fn cuStreamGetDevice(handle: Handle, device: Out<c_int>) {
        stream(handle)?;
        device.set(0)
    }
    fn cuStreamAddCallback(handle: Handle, callback: Callback, data: *mut c_void, _flags: c_uint) {
        graph::not_captured(handle)?;
        let callback = callback.ok_or_else(|| Failure::value("the callback is null"))?;
        // SAFETY: the host program gives the callback to be called with these values, once.
        unsafe { callback(handle, codes::SUCCESS, data) };
        Ok(())
    }
    fn cuLaunchHostFunc(handle: Handle, function: HostFn, data: *mut c_void) {
        graph::submit(handle, Work::Host { function, data: data.expose_provenance() })
    }
    fn cuStreamAttachMemAsync(handle: Handle, _start: u64, _bytes: usize, _flags: c_uint) { stream(handle).map(drop) }
    fn cuThreadExchangeStreamCaptureMode(mode: Out<c_int>) { mode.set(0) }

    fn cuEventCreate(out: Out<Handle>, flags: c_uint) {
        out.set(EVENTS.insert(Event { timed: flags & 2 == 0, recorded: Brief::new(None) }))
    }
    fn cuEventDestroy_v2(handle: Handle) { EVENTS.remove(handle).map(drop) }
    fn cuEventRecord(handle: Handle, on: Handle) { graph::submit(on, Work::Record(event(handle)?)) }
    fn cuEventRecordWithFlags(handle: Handle, on: Handle, _flags: c_uint) {
        graph::submit(on, Work::Record(event(handle)?))
    }
    fn cuEventQuery(handle: Handle) { event(handle).map(drop) }
    fn cuEventSynchronize(handle: Handle) { event(handle).map(drop) }
    fn cuEventElapsedTime(out: Out<f32>, from: Handle, to: Handle) { elapsed(out, from, to) }
    fn cuEventElapsedTime_v2(out: Out<f32>, from: Handle, to: Handle) { elapsed(out, from, to) }
}
