//! The functions of [`Context`] that a running kernel calls back.
//!
//! Invariant: a callback runs on the kernel's thread but counts as outside of it ([`Outside`]), so that a fault here is not
//! reported as the kernel's.

use std::ffi::c_void;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::{NativeTrap, Waiting, Worker, now, stop_asked};
use crate::compile::abi::{Context, TrapKind};
use crate::launch::faults::Outside;
use crate::launch::host::STALL;
use crate::system::signals::{ABORT, STOP};

/// The worker behind a context.
///
/// # Safety
/// `ctx` must be a context made in `claim` whose kernel is running; the callbacks below are called by that kernel, on its
/// thread, one at a time.
unsafe fn worker<'a>(ctx: *mut Context) -> &'a mut Worker<'a> {
    // SAFETY: as the function's own contract says.
    unsafe { &mut *(*ctx).host.cast::<Worker>() }
}

pub(super) unsafe extern "C" fn on_trap(ctx: *mut Context, site: i32, kind: i32, block: i64, element: i64, value: i64) {
    let _outside = Outside::enter();
    // SAFETY: called by the kernel with its own context.
    let worker = unsafe { worker(ctx) };
    worker.flush();
    let trap = NativeTrap {
        kind: TrapKind::from_code(kind),
        site: site as u32,
        block,
        element: u64::try_from(element).ok(),
        value,
    };
    let mut first = worker.shared.trap.lock().unwrap_or_else(PoisonError::into_inner);
    if first.is_none_or(|t| trap.block < t.block) {
        *first = Some(trap);
    }
    ABORT.store(STOP, Ordering::SeqCst);
}

pub(super) unsafe extern "C" fn on_stop(ctx: *mut Context) -> i32 {
    let _outside = Outside::enter();
    // SAFETY: called by the kernel with its own context.
    let slot = unsafe { worker(ctx) }.slot;
    i32::from(stop_asked(slot))
}

pub(super) unsafe extern "C" fn on_print(ctx: *mut Context, site: i32, block: i64, args: *const *const c_void) {
    let _outside = Outside::enter();
    // SAFETY: called by the kernel with its own context.
    let worker = unsafe { worker(ctx) };
    if worker.text_block != block {
        worker.flush();
        worker.text_block = block;
    }
    // SAFETY: the kernel passes one pointer per argument of the print at `site`.
    let text = unsafe { worker.shared.host.format(site as u32, block, args) };
    worker.text += &text;
}

pub(super) unsafe extern "C" fn on_yield(ctx: *mut Context, site: i32, block: i64) {
    let _outside = Outside::enter();
    // SAFETY: called by the kernel with its own context.
    let worker = unsafe { worker(ctx) };
    let shared = worker.shared;
    worker.yields = worker.yields.wrapping_add(1);
    if let Some(waiting) = shared.waiting.get(worker.slot) {
        waiting.store((block << 20) | (i64::from(site) + 1), Ordering::Relaxed);
    }
    if shared.spare_cores && worker.yields % 64 != 0 {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
    if worker.yields % 1024 == 0 {
        let (now, last) = (now(), shared.progress.load(Ordering::Relaxed));
        let late = now.saturating_sub(last) >= STALL.as_millis() as u64;
        if late && shared.progress.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let places = shared.waiting.iter().map(|w| w.load(Ordering::Relaxed)).filter(|&w| w != 0);
            let waiting: Vec<Waiting> =
                places.map(|w| Waiting { block: w >> 20, site: (w & 0xf_ffff) as u32 - 1 }).collect();
            shared.host.stalled(&waiting);
        }
    }
}

pub(super) unsafe extern "C" fn on_check(ctx: *mut Context, addr: u64, len: i64) -> i32 {
    let _outside = Outside::enter();
    // SAFETY: called by the kernel with its own context.
    let (worker, scratch) = unsafe { (worker(ctx), (*ctx).scratch as u64) };
    let Ok(len) = u64::try_from(len) else { return 0 };
    let in_scratch = addr
        .checked_sub(scratch)
        .and_then(|at| at.checked_add(len))
        .is_some_and(|end| end <= worker.shared.run.kernel.meta.scratch);
    i32::from(in_scratch || worker.shared.host.live(addr, len))
}
