use super::*;
use crate::compile::abi::{ABI_VERSION, Meta};

#[test]
fn threads_are_woken_where_they_are_worth_it() {
    let cost = Cost::default();
    let asleep = |cost: &Cost, blocks| cost.threads(8, blocks, || 0);
    assert_eq!(asleep(&cost, 4), 8);
    cost.learn(10, Duration::from_micros(10));
    assert_eq!((asleep(&cost, 10), asleep(&cost, 45), asleep(&cost, 1 << 40)), (1, 3, 8));
    // Who is awake helps with less.
    let awake = |blocks, workers| cost.threads(8, blocks, || workers);
    assert_eq!((awake(2, 7), awake(10, 1), awake(10, 7), awake(45, 1), awake(45, 7)), (1, 2, 3, 3, 8));
    // Once slow, perhaps held up; slow again and again, so it is.
    cost.learn(1, Duration::from_millis(1));
    assert!(asleep(&cost, 10) > 1);
    cost.learn(1000, Duration::from_micros(10));
    assert_eq!(asleep(&cost, 1000), 1);
}

#[test]
fn costs_are_measured_at_first_and_now_and_then() {
    let cost = Cost::default();
    assert_eq!((0..100).filter(|_| cost.asks(1)).count(), 0);
    assert_eq!((0..160).filter(|_| cost.asks(2)).count(), 16 + 9);
}

struct Quiet {
    printed: Mutex<Vec<(i64, String)>>,
}
impl Host for Quiet {
    unsafe fn format(&self, site: u32, block: i64, _: *const *const c_void) -> String {
        format!("{block}:{site} ")
    }
    fn print(&self, block: i64, text: &str) {
        self.printed.lock().unwrap().push((block, text.to_string()));
    }
    fn stalled(&self, _: &[Waiting]) {}
    fn live(&self, addr: u64, _: u64) -> bool {
        addr == 4096
    }
}
fn quiet() -> Quiet {
    Quiet { printed: Mutex::new(Vec::new()) }
}
fn kernel(entry: crate::compile::abi::KernelFn, scratch: u64) -> NativeKernel {
    NativeKernel { entry, meta: Meta { abi: ABI_VERSION, nparams: 1, scratch } }
}
fn spec(
    entry: crate::compile::abi::KernelFn,
    args: &[u64],
    grid: [u32; 3],
    order: BlockOrder,
    threads: usize,
) -> Run<'_> {
    Run { kernel: kernel(entry, 4096), args, grid, only: None, globals: &[], extents: &[], order, threads, cost: None }
}

fn run(spec: &Run<'_>, host: &Quiet) -> std::result::Result<(), Stop> {
    // SAFETY: each test passes its kernel the memory that the kernel expects.
    unsafe { super::run(spec, host) }
}

/// Adds 1 to the slot of each block, after writing over its scratch.
unsafe extern "C" fn mark(args: *const u64, ctx: *mut Context, lo: i64, hi: i64) -> i32 {
    for block in lo..hi {
        // SAFETY: the test passes an array of one atomic per block, and 4096 bytes of scratch.
        unsafe {
            (*ctx).scratch.write_bytes(1, 4096);
            (*(*args as *const AtomicI64).add(block as usize)).fetch_add(1, Ordering::Relaxed);
        }
    }
    0
}

#[test]
fn each_block_runs_once_in_every_order() {
    for order in [BlockOrder::Ranges, BlockOrder::Locked, BlockOrder::Increasing, BlockOrder::Together] {
        for threads in [1, 2, 5] {
            let marks: Vec<AtomicI64> = (0..210).map(|_| AtomicI64::new(0)).collect();
            run(&spec(mark, &[marks.as_ptr() as u64], [7, 6, 5], order, threads), &quiet()).unwrap();
            assert!(marks.iter().all(|m| m.load(Ordering::Relaxed) == 1), "{order:?} {threads}");
        }
    }
}

/// A grid barrier: every block adds one, then spins until all have.
unsafe extern "C" fn barrier(args: *const u64, ctx: *mut Context, lo: i64, hi: i64) -> i32 {
    // SAFETY: the test passes one atomic.
    let (count, ctx_ref) = unsafe { (&*(*args as *const AtomicI64), &*ctx) };
    for block in lo..hi {
        count.fetch_add(1, Ordering::SeqCst);
        while count.load(Ordering::SeqCst) < ctx_ref.grid[0] {
            // SAFETY: the pool's own callbacks, called as a kernel calls them.
            unsafe {
                if (*ctx_ref.abort).load(Ordering::Relaxed) != 0 {
                    return 1;
                }
                (ctx_ref.yield_now)(ctx, 3, block);
            }
        }
    }
    0
}

#[test]
fn blocks_that_all_wait_for_each_other_get_a_thread_each() {
    let count = AtomicI64::new(0);
    run(&spec(barrier, &[&raw const count as u64], [200, 1, 1], BlockOrder::Together, 2), &quiet()).unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 200);
}

/// Block b waits for block b - 1.
unsafe extern "C" fn chain(args: *const u64, ctx: *mut Context, lo: i64, hi: i64) -> i32 {
    // SAFETY: the test passes one atomic.
    let (last, ctx_ref) = unsafe { (&*(*args as *const AtomicI64), &*ctx) };
    for block in lo..hi {
        while last.load(Ordering::Acquire) != block {
            // SAFETY: as above.
            unsafe { (ctx_ref.yield_now)(ctx, 0, block) };
        }
        last.store(block + 1, Ordering::Release);
    }
    0
}

#[test]
fn a_block_may_wait_for_lower_ones() {
    for threads in [1, 2, 4] {
        let last = AtomicI64::new(0);
        let args = [&raw const last as u64];
        run(&spec(chain, &args, [3000, 1, 1], BlockOrder::Increasing, threads), &quiet()).unwrap();
        assert_eq!(last.load(Ordering::SeqCst), 3000);
    }
}

/// Traps in blocks 5 and above; block 0 waits for the abort flag.
unsafe extern "C" fn trap(_: *const u64, ctx: *mut Context, lo: i64, hi: i64) -> i32 {
    // SAFETY: the context lives during the call.
    let ctx_ref = unsafe { &*ctx };
    for block in lo..hi {
        // SAFETY: the pool's own callbacks.
        unsafe {
            if block == 0 {
                while (*ctx_ref.abort).load(Ordering::Relaxed) == 0 {
                    (ctx_ref.yield_now)(ctx, 0, block);
                }
                return 1;
            }
            if block >= 5 {
                assert_eq!((ctx_ref.check)(ctx, 4096, 1), 1);
                assert_eq!((ctx_ref.check)(ctx, 4097, 1), 0);
                (ctx_ref.print)(ctx, 9, block, std::ptr::null());
                (ctx_ref.trap)(ctx, 4, 2, block, 17, -3);
                return 1;
            }
        }
    }
    0
}

#[test]
fn a_trap_stops_the_others_and_says_where() {
    let host = quiet();
    let stop = run(&spec(trap, &[0], [8, 1, 1], BlockOrder::Together, 2), &host).unwrap_err();
    let Stop::Trap(t) = stop else { panic!("{stop:?}") };
    assert_eq!((t.kind, t.site, t.element, t.value), (TrapKind::Read, 4, Some(17), -3));
    assert!(t.block >= 5);
    assert!(!host.printed.lock().unwrap().is_empty(), "text printed before a trap is flushed");
}

/// Prints twice per block.
unsafe extern "C" fn talk(_: *const u64, ctx: *mut Context, lo: i64, hi: i64) -> i32 {
    for block in lo..hi {
        for site in 0..2 {
            // SAFETY: the pool's own callback.
            unsafe { ((*ctx).print)(ctx, site, block, std::ptr::null()) };
        }
    }
    0
}

#[test]
fn a_blocks_prints_leave_as_one_piece() {
    let host = quiet();
    run(&spec(talk, &[0], [50, 1, 1], BlockOrder::Ranges, 3), &host).unwrap();
    let mut printed = host.printed.into_inner().unwrap();
    printed.sort();
    let want: Vec<_> = (0..50).map(|b| (b, format!("{b}:0 {b}:1 "))).collect();
    assert_eq!(printed, want);
}

#[test]
fn one_block_only() {
    let host = quiet();
    let mut spec = spec(talk, &[0], [4, 4, 1], BlockOrder::Ranges, 2);
    spec.only = Some((6, 7));
    run(&spec, &host).unwrap();
    assert_eq!(host.printed.into_inner().unwrap(), [(6, "6:0 6:1 ".to_string())]);
}

#[test]
fn coordinates_go_x_fastest() {
    assert_eq!(coordinates(0, [3, 4, 5]), [0, 0, 0]);
    assert_eq!(coordinates(3 + 3 * 4 * 2 + 1, [3, 4, 5]), [1, 1, 2]);
}
