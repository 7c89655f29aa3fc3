//! How long a kernel would take on its target, from what the simulator counted.
//!
//! In: the [`Work`] that a [`Report`] counted for a kernel, and a [`Target`] that says how fast it is. Out: an
//! [`Estimate`].
//!
//! ```text
//! estimate for sm_90a, not measured: 2.6 us, bound by memory
//!   memory 2.5 us (8.4 MB), L2 940 ns (8.4 MB), L1 270 ns, latency 1.0 us, issue 540 ns
//!   1024 blocks, 8 at once on each of 132 multiprocessors (no more threads), 97 % busy
//! ```
//!
//! A roofline, as `tile/cost.rs` draws it from the schedule alone, with more roofs. Memory delivers each sector once.
//! Multiprocessors take the same time for each block, and wait for the one that has most. Blocks that were not run are taken to be
//! like those that were; they touch other parts of the arrays, up to the size of each. [`Estimate::seconds`] adds the parts up.

use std::fmt;

use super::WARP;
use super::count::SECTOR;
use super::instruction::Instruction;
use super::report::{Report, Row, Touched};
use crate::kernel::ir::{Elem, Kernel, Stmt, Transposed, statements};
use crate::kernel::tcgen05::Instruction as Tcgen05;
use crate::loops::matrix::{COLS, Operand, ROWS};
use crate::tile::cost;
use crate::tile::heuristics::cost::{FETCHED, ISSUED, LATENCY, OTHER_REGISTERS};
use crate::tile::target::{Gpu, Target};

/// Seconds that each launch takes besides its kernel: without them, two small kernels would do as well as one.
pub const LAUNCH: f64 = 2e-6;
/// Cycles in which a warp issues an instruction, at least: it has a result after four, and about every second instruction needs that of
/// the one before it. (The measured times of `bench/results/h200*.json`: 0.87 of them are within 1.3 of the estimate; 0.82 with 1.5, 0.56 with 3.)
const DEPENDENT: f64 = 2.25;
/// Instructions of an iteration besides its body: it counts, tests, and jumps, and moves the addresses on.
const LOOPING: f64 = 3.0;
/// Instructions of a load of four matrices of bytes that are transposed: each word is put together from two.
const TRANSPOSING: f64 = 9.0;
/// Bytes of a multiprocessor's own cache, without what blocks take as shared memory, and those that it delivers in a cycle.
const CACHE: f64 = 192.0 * 1024.0;
const CACHED: f64 = 128.0;
/// The power at which the times of parts that work side by side are added up: two parts of the same time take 1.26 times as long as one.
/// (2 and 4: 0.84 and 0.85 of those times are within 1.3.)
const SIDE_BY_SIDE: f64 = 3.0;
/// Requests to global memory of a warp that are under way.
const OUTSTANDING: f64 = 4.0;
/// Cycles that a barrier of a block takes.
const BARRIER: f64 = 30.0;
/// Registers of a thread.
const MOST_REGISTERS: u64 = 255;

/// Blocks of a kernel that a target has at once, however few registers its threads need; `None` where that is not known.
pub fn resident(kernel: &Kernel, target: &Target) -> Option<u64> {
    let gpu = target.gpu?;
    let (together, _) = cost::room(target, &gpu, kernel.threads.into(), 1, kernel.shared);
    Some(together.saturating_mul(target.axes.workers.max(1).into()))
}

/// The work of a launch, as far as the estimate needs it: what some of its blocks did, counted.
///
/// It has no time and no target, so that the counts of a kernel can be kept beside its measured time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Work {
    /// Threads of a block, registers of a thread, and bytes of a block's shared memory.
    pub threads: u64,
    pub registers: u64,
    pub shared: u64,
    /// The blocks of the grid; `counted` are those that were run, and all that follows is what they did together.
    pub blocks: u64,
    pub counted: u64,
    /// Requests of warps to global memory, and the sectors of 32 bytes that these took.
    pub requests: u64,
    pub sectors: u64,
    /// The arrays that were touched.
    pub touched: Vec<Touched>,
    /// Sectors that blocks loaded, each block each of them once; and those that a block loaded again.
    pub loaded: u64,
    pub reloaded: u64,
    /// Wavefronts of shared memory.
    pub wavefronts: u64,
    /// Instructions of warps.
    pub issued: f64,
    /// Operations of the matrix unit, by warps and by warpgroups, as ones of 16-bit operands: one of twice the bytes is two.
    pub products: [f64; 2],
    /// Times that all threads of a block met.
    pub barriers: u64,
}

impl Work {
    /// The work of a grid of `blocks` blocks; `None` where nothing ran.
    pub fn of(kernel: &Kernel, report: &Report, blocks: u64) -> Option<Work> {
        if report.blocks == 0 || report.total.executions == 0 {
            return None;
        }
        Some(Work {
            threads: report.threads.into(),
            registers: (kernel.scratch.div_ceil(4) + OTHER_REGISTERS).min(MOST_REGISTERS),
            shared: report.shared_bytes,
            blocks: blocks.max(report.blocks),
            counted: report.blocks,
            requests: report.total.global.requests,
            sectors: report.total.global.taken,
            touched: report.touched.clone(),
            loaded: report.loaded,
            reloaded: report.reloaded,
            wavefronts: report.total.shared.taken,
            issued: issued(kernel, report),
            products: products(kernel, report),
            barriers: report.barriers,
        })
    }
}

/// A resource that limits the kernel, and the time it takes.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// `memory`, `L2`, `shared memory`.
    pub name: &'static str,
    pub seconds: f64,
    /// The bytes moved, for memory and L2.
    pub bytes: Option<f64>,
    /// Warps do it in turns with their other own parts.
    pub own: bool,
}

/// How long a kernel would take on a target, without its launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Estimate {
    pub target: &'static str,
    pub work: Work,
    /// The parts that take any time; the slowest decides.
    pub parts: Vec<Part>,
    pub multiprocessors: u64,
    /// Blocks that a multiprocessor holds at once, and the resource that limits them.
    pub together: u64,
    pub limit: &'static str,
    /// How often the multiprocessors fill with blocks.
    pub waves: u64,
    /// The fraction of the multiprocessors' time that blocks fill.
    pub busy: f64,
}

impl Estimate {
    /// `None` where the target says nothing of its speed.
    pub fn of(work: Work, target: &Target) -> Option<Estimate> {
        let gpu = target.gpu?;
        let multiprocessors = u64::from(target.axes.workers.max(1));
        let (together, limit) = cost::room(target, &gpu, work.threads, work.registers, work.shared);
        let mut estimate = Estimate {
            target: target.name,
            parts: vec![],
            multiprocessors,
            together,
            limit,
            waves: work.blocks.div_ceil(multiprocessors.saturating_mul(together)),
            busy: cost::busy(work.blocks, multiprocessors),
            work,
        };
        estimate.parts = estimate.parts(target, &gpu);
        estimate.parts.retain(|p| p.seconds > 0.0);
        Some(estimate)
    }

    fn parts(&self, target: &Target, gpu: &Gpu) -> Vec<Part> {
        let w = &self.work;
        let scale = w.blocks as f64 / w.counted as f64;
        let all = self.multiprocessors as f64;
        // Multiprocessors that have a block, and the warps on each of them.
        let active = w.blocks.min(self.multiprocessors) as f64;
        let resident = w.blocks.div_ceil(self.multiprocessors).min(self.together);
        let warps = (resident * w.threads.div_ceil(u64::from(WARP))) as f64;
        // The time of work that is spread over the multiprocessors, where each one does `rate` of it per cycle.
        let spread = |work: f64, rate: f64| work * scale / (rate * gpu.clock * all * self.busy);

        let sector = SECTOR as f64;
        // The multiprocessor's own cache has what a block loads again, as far as it holds the loads of the blocks there.
        let kept = ratio(CACHE, w.loaded as f64 / w.counted as f64 * sector * resident as f64).min(1.0);
        let moved = (w.sectors as f64 - kept * w.reloaded as f64).max(0.0) * sector * scale;
        // Blocks that were not run touch other sectors of the arrays, as long as these have some.
        let of = |t: &Touched| (t.sectors as f64 * sector * scale).min((t.bytes as f64).max(t.sectors as f64 * sector));
        let arrays = w.touched.iter().map(of).sum::<f64>().min(moved);
        let flight = warps * OUTSTANDING * ratio(w.sectors as f64 * sector, w.requests as f64) / LATENCY;
        let first = if w.requests > 0 { self.waves as f64 * LATENCY / gpu.clock } else { 0.0 };
        let barriers = w.barriers as f64 / w.counted as f64 * self.waves as f64;
        let [by_warps, by_groups] = w.products.map(|n| n * scale / self.busy);
        // Warpgroups leave their operands in shared memory to the matrix unit.
        let own = by_groups == 0.0;
        let bytes = |name, seconds, bytes| Part { name, seconds, bytes: Some(bytes), own: false };
        let part = |name, seconds, own| Part { name, seconds, bytes: None, own };
        vec![
            bytes("memory", arrays / gpu.bandwidth, arrays),
            bytes("L2", moved / cost::l2(target, gpu).min(FETCHED * gpu.clock * active), moved),
            part("L1", spread(w.sectors as f64 * sector, CACHED), false),
            part("latency", ratio(moved, flight * gpu.clock * active).max(first), false),
            part("issue", spread(w.issued, ISSUED.min(warps / DEPENDENT)), true),
            part("matrix unit", by_warps / gpu.products + ratio(by_groups, gpu.grouped), own),
            part("shared memory", spread(w.wavefronts as f64, 1.0), own),
            part("barriers", barriers * BARRIER / gpu.clock, false),
        ]
    }

    /// The kernel's time. A warp issues instructions, reads shared memory and waits for its own products one after the other, so the
    /// times of these parts are added. All other parts work at the same time: their times are added as third powers, so that the slowest
    /// part decides almost alone.
    pub fn seconds(&self) -> f64 {
        let (own, others): (Vec<&Part>, Vec<&Part>) = self.parts.iter().partition(|p| p.own);
        let own: f64 = own.iter().map(|p| p.seconds).sum();
        let all = others.iter().map(|p| p.seconds).chain([own]);
        all.map(|s| s.powf(SIDE_BY_SIDE)).sum::<f64>().powf(1.0 / SIDE_BY_SIDE)
    }

    /// The part that takes longest.
    pub fn bound(&self) -> &'static str {
        self.parts.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds)).map_or("nothing", |p| p.name)
    }
}

/// Instructions of warps that the statements take.
fn issued(kernel: &Kernel, report: &Report) -> f64 {
    let mut each = vec![];
    statements(&kernel.body, &mut |stmt| each.push(instructions(kernel, stmt)));
    let of = |row: &Row| each.get(row.statement.number as usize).copied().unwrap_or(1.0);
    report.rows.iter().map(|row| of(row) * row.counts.executions as f64).sum::<f64>() / f64::from(WARP)
}

/// Instructions of a warp that a statement takes. Arrays of a thread are registers, a compiler keeps the addresses of an iteration
/// in others, and unrolled loops have no tests.
fn instructions(kernel: &Kernel, stmt: &Stmt) -> f64 {
    match stmt {
        Stmt::For { unroll: 1.., .. } | Stmt::Index { .. } | Stmt::Var { .. } | Stmt::Set { .. } => 0.0,
        Stmt::For { .. } | Stmt::Loop { .. } => LOOPING,
        Stmt::Let { dst, op, ty: Elem::Num(dtype), .. } => {
            let lanes = kernel.vals.get(*dst).map_or(1, |val| val.ty.lanes);
            f64::from(op.issues(*dtype)) * f64::from(lanes)
        }
        Stmt::LoadMatrix { transposed: Transposed::Left | Transposed::Right, .. } => TRANSPOSING,
        _ if Instruction::of(kernel, stmt) == Instruction::Local => 0.0,
        _ => 1.0,
    }
}

fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

/// Operations of the matrix unit, by warps and by warpgroups, weighed by the bytes of their operands.
fn products(kernel: &Kernel, report: &Report) -> [f64; 2] {
    let (warp, group) = (f64::from(WARP), 4.0 * f64::from(WARP));
    let of = |rows: u64, cols: u64, of: Operand, threads: f64| {
        let operations = (2 * rows * cols * u64::from(of.terms())) as f64;
        operations / threads * f64::from(of.bytes()) / 2.0
    };
    let mut each = vec![];
    statements(&kernel.body, &mut |stmt| {
        each.push(match stmt {
            Stmt::Mma { of: [a, _], .. } => [of(ROWS, COLS, *a, warp), 0.0],
            // Each thread has half of its 64 rows' columns.
            // One thread begins it.
            Stmt::Tcgen05Mma { kind, instruction, .. } => match Tcgen05::decode(*kind, *instruction) {
                Ok(made) => [0.0, of(made.rows.into(), made.cols.into(), made.of[0], 1.0)],
                Err(_) => [0.0; 2],
            },
            Stmt::Wgmma { acc, of: operand, .. } => {
                let cols = kernel.slots.get(*acc).map_or(0, |s| 2 * s.len);
                [0.0, of(64, cols, *operand, group)]
            }
            _ => [0.0; 2],
        });
    });
    let mut all = [0.0; 2];
    for row in &report.rows {
        let one = each.get(row.statement.number as usize).copied().unwrap_or_default();
        (0..2).for_each(|i| all[i] += one[i] * row.counts.executions as f64);
    }
    all
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (target, time, bound) = (self.target, cost::time(self.seconds()), self.bound());
        writeln!(f, "estimate for {target}, not measured: {time}, bound by {bound}")?;
        let one = |p: &Part| {
            let bytes = p.bytes.map_or(String::new(), |b| format!(" ({})", cost::bytes(b)));
            format!("{} {}{bytes}", p.name, cost::time(p.seconds))
        };
        writeln!(f, "  {}", self.parts.iter().map(one).collect::<Vec<_>>().join(", "))?;
        let Work { blocks, counted, .. } = self.work;
        let some = |n: u64| if n == 1 { "1 block".to_string() } else { format!("{n} blocks") };
        let (blocks_of, together, all) = (some(blocks), self.together, self.multiprocessors);
        write!(f, "  {blocks_of}, {together} at once on each of {all} multiprocessors")?;
        writeln!(f, " (no more {}), {:.0} % busy", self.limit, 100.0 * self.busy)?;
        if counted < blocks {
            writeln!(
                f,
                "  from {}: the others are taken to be alike, and to share no more of an array than its size says",
                some(counted)
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::parse::parse;

    use super::super::{Requests, Statement};

    const COPY: &str = "kernel copy(a: ptr<f32>, o: ptr<f32>) threads 256 scratch 0 shared 0 {\n  x: f32 = load a[tx]\n  store o[tx] = x\n}\n";

    /// The report of `blocks` blocks that each move `bytes` bytes by statements of all their threads.
    fn report(kernel: &Kernel, blocks: u64, bytes: u64) -> Report {
        let mut r = Report::empty(kernel, &Default::default());
        let sectors = blocks * bytes / 32;
        (r.blocks, r.total.executions) = (blocks, blocks * 256);
        r.touched = vec![Touched { sectors, bytes: u64::MAX }];
        r.total.global = Requests { requests: sectors / 16, bytes: 0, taken: sectors, least: sectors };
        let statement = Statement { number: 0, line: 1, text: String::new(), from: None, cuda: None };
        r.rows.push(Row { statement, kind: Instruction::GlobalLoad, counts: r.total });
        r
    }

    fn estimate(blocks: u64, bytes: u64, of: u64) -> Estimate {
        let kernel = parse(COPY).unwrap();
        let work = Work::of(&kernel, &report(&kernel, blocks, bytes), of).unwrap();
        Estimate::of(work, &Target::named("sm_90a").unwrap()).unwrap()
    }

    #[test]
    fn twice_the_bytes_take_twice_the_time() {
        let (one, two) = (estimate(1056, 1 << 16, 1056), estimate(1056, 1 << 17, 1056));
        assert_eq!((one.bound(), two.bound()), ("memory", "memory"));
        assert!((two.seconds() / one.seconds() - 2.0).abs() < 1e-9, "{one}{two}");
    }

    #[test]
    fn a_sample_is_scaled_to_the_grid() {
        let (all, sample) = (estimate(1056, 1 << 16, 1056), estimate(8, 1 << 16, 1056));
        assert!((all.seconds() / sample.seconds() - 1.0).abs() < 1e-9, "{all}{sample}");
        assert!(sample.to_string().contains("from 8 blocks") && !all.to_string().contains("from"), "{sample}");
    }

    #[test]
    fn multiprocessors_without_a_block_do_not_help() {
        // The same work for each block: one block takes as long as one for each multiprocessor, and one more takes longer.
        let (one, all, more) = (estimate(1, 1 << 12, 1), estimate(132, 1 << 12, 132), estimate(133, 1 << 12, 133));
        let issue = |e: &Estimate| e.parts.iter().find(|p| p.name == "issue").unwrap().seconds;
        assert!((issue(&one) - issue(&all)).abs() < 1e-15 && one.seconds() <= all.seconds(), "{one}{all}");
        assert!(more.busy < 0.6 && more.seconds() >= all.seconds(), "{all}{more}");
        // The same bytes from fewer blocks come no faster.
        let few = estimate(33, 1 << 18, 33);
        let many = estimate(132, 1 << 16, 132);
        assert!(few.seconds() >= many.seconds(), "{few}{many}");
    }

    #[test]
    fn blocks_that_were_not_run_touch_no_more_than_the_arrays_have() {
        let kernel = parse(COPY).unwrap();
        let mut r = report(&kernel, 8, 1 << 16);
        let of =
            |r: &Report| Estimate::of(Work::of(&kernel, r, 1056).unwrap(), &Target::named("sm_90a").unwrap()).unwrap();
        let bytes = |e: &Estimate| e.parts.iter().find(|p| p.name == "memory").unwrap().bytes.unwrap();
        assert_eq!(bytes(&of(&r)), 1056.0 * 65536.0);
        r.touched[0].bytes = 1 << 20;
        assert_eq!(bytes(&of(&r)), 1048576.0);
    }

    #[test]
    fn what_does_not_run_is_not_estimated() {
        let kernel = parse(COPY).unwrap();
        assert_eq!(Work::of(&kernel, &report(&kernel, 0, 0), 4), None);
        let work = Work::of(&kernel, &report(&kernel, 4, 4096), 4).unwrap();
        assert_eq!(Estimate::of(work, &Target::cpu()), None);
    }
}
