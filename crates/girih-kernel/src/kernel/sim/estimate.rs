//! How long a kernel would take on its target, from what the simulator counted.
//!
//! In: a kernel, its [`Report`], the blocks of its grid, and a [`Target`] that says how fast it is. Out: an [`Estimate`].
//!
//! ```text
//! estimate for sm_90a, not measured: 2.5 us, bound by memory
//!   memory 2.5 us (8.4 MB), L2 1.3 us (8.4 MB), latency 1.0 us, issue 540 ns, arithmetic 210 ns
//!   1024 blocks, 8 at once on each of 132 multiprocessors (no more threads), 97 % busy
//! ```
//!
//! A roofline, as `tile/cost.rs` draws it from the schedule alone: the parts of the machine work side by side, and the slowest
//! says how long all take. Memory delivers each sector once. Multiprocessors take the same time for each block, and wait for the
//! one that has most. Blocks that were not run are taken to be like those that were; they touch other parts of the arrays, up to
//! the size of each.

use std::fmt;

use super::WARP;
use super::instruction::Instruction;
use super::report::{Report, Row, Touched};
use crate::kernel::ir::{Kernel, Stmt, statements};
use crate::loops::matrix::{COLS, Operand, ROWS};
use crate::tile::cost;
use crate::tile::heuristics::cost::{FETCHED, ISSUED, LATENCY, OTHER_REGISTERS};
use crate::tile::target::{Gpu, Target};

/// Cycles until a warp's next statement can use what the last one computed.
const DEPENDENT: f64 = 4.0;
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

/// A resource that limits the kernel, and the time it takes.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// `memory`, `L2`, `shared memory`.
    pub name: &'static str,
    pub seconds: f64,
    /// The bytes moved, for memory and L2.
    pub bytes: Option<f64>,
}

/// How long a kernel would take on a target, without its launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Estimate {
    pub target: &'static str,
    /// The parts that take any time; the slowest decides.
    pub parts: Vec<Part>,
    /// The blocks of the grid; `counted` are those that were run and counted.
    pub blocks: u64,
    pub counted: u64,
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
    /// `None` where nothing ran, or where the target says nothing of its speed.
    pub fn of(kernel: &Kernel, report: &Report, blocks: u64, target: &Target) -> Option<Estimate> {
        let gpu = target.gpu?;
        if report.blocks == 0 || report.total.executions == 0 {
            return None;
        }
        let blocks = blocks.max(report.blocks);
        let multiprocessors = u64::from(target.axes.workers.max(1));
        let threads = u64::from(report.threads);
        let registers = (kernel.scratch.div_ceil(4) + OTHER_REGISTERS).min(MOST_REGISTERS);
        let (together, limit) = cost::room(target, &gpu, threads, registers, report.shared_bytes);
        let mut estimate = Estimate {
            target: target.name,
            parts: vec![],
            blocks,
            counted: report.blocks,
            multiprocessors,
            together,
            limit,
            waves: blocks.div_ceil(multiprocessors.saturating_mul(together)),
            busy: cost::busy(blocks, multiprocessors),
        };
        estimate.parts = estimate.parts(kernel, report, target, &gpu);
        estimate.parts.retain(|p| p.seconds > 0.0);
        Some(estimate)
    }

    fn parts(&self, kernel: &Kernel, r: &Report, target: &Target, gpu: &Gpu) -> Vec<Part> {
        let scale = self.blocks as f64 / self.counted as f64;
        let all = self.multiprocessors as f64;
        // Multiprocessors that have a block, and the warps on each of them.
        let active = self.blocks.min(self.multiprocessors) as f64;
        let resident = self.blocks.div_ceil(self.multiprocessors).min(self.together);
        let warps = (resident * u64::from(r.threads).div_ceil(u64::from(WARP))) as f64;
        // The time of work that is spread over the multiprocessors, where each one does `rate` of it per cycle.
        let spread = |work: f64, rate: f64| work * scale / (rate * gpu.clock * all * self.busy);

        let sector = 32.0;
        let moved = r.total.global.taken as f64 * sector * scale;
        // Blocks that were not run touch other sectors of the arrays, as long as these have some.
        let of = |t: &Touched| (t.sectors as f64 * sector * scale).min((t.bytes as f64).max(t.sectors as f64 * sector));
        let arrays = r.touched.iter().map(of).sum::<f64>().min(moved);
        let requests = r.total.global.requests as f64;
        let flight = warps * OUTSTANDING * ratio(r.total.global.taken as f64 * sector, requests) / LATENCY;
        let first = if requests > 0.0 { self.waves as f64 * LATENCY / gpu.clock } else { 0.0 };
        let arithmetic = r.instructions().get(&Instruction::Arithmetic).copied().unwrap_or(0) as f64;
        let wavefronts = r.total.shared.taken as f64;
        let issued = issued(kernel, r) / f64::from(WARP);
        let barriers = r.barriers as f64 / self.counted as f64 * self.waves as f64;
        let bytes = |name, seconds, bytes| Part { name, seconds, bytes: Some(bytes) };
        let part = |name, seconds| Part { name, seconds, bytes: None };
        vec![
            bytes("memory", arrays / gpu.bandwidth, arrays),
            bytes("L2", moved / cost::l2(target, gpu).min(FETCHED * gpu.clock * active), moved),
            part("latency", ratio(moved, flight * gpu.clock * active).max(first)),
            part("issue", spread(issued, ISSUED.min(warps / DEPENDENT))),
            part("arithmetic", 2.0 * arithmetic * scale / (gpu.peak * self.busy)),
            part("matrix unit", products(kernel, r, gpu) * scale / self.busy),
            part("shared memory", spread(wavefronts, 1.0)),
            part("barriers", barriers * BARRIER / gpu.clock),
        ]
    }

    /// The kernel's time: that of its slowest part.
    pub fn seconds(&self) -> f64 {
        self.parts.iter().map(|p| p.seconds).fold(0.0, f64::max)
    }

    /// The part that takes longest.
    pub fn bound(&self) -> &'static str {
        self.parts.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds)).map_or("nothing", |p| p.name)
    }
}

/// Statements of threads that take a cycle of their own: what is in registers and the tests of unrolled loops do not.
fn issued(kernel: &Kernel, report: &Report) -> f64 {
    let mut free = vec![];
    statements(&kernel.body, &mut |stmt| free.push(matches!(stmt, Stmt::For { unroll: 1.., .. })));
    let counts = |row: &&Row| row.kind != Instruction::Local && free.get(row.statement.number as usize) != Some(&true);
    report.rows.iter().filter(counts).map(|row| row.counts.executions as f64).sum()
}

fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

/// Seconds of the whole matrix unit for all products; the time of an operation follows the bytes of its operands.
fn products(kernel: &Kernel, report: &Report, gpu: &Gpu) -> f64 {
    let (warp, group) = (f64::from(WARP), 4.0 * f64::from(WARP));
    let time = |rows: u64, cols: u64, of: Operand, threads: f64, rate: f64| {
        let operations = (2 * rows * cols * u64::from(of.terms())) as f64;
        ratio(operations / threads * f64::from(of.bytes()) / 2.0, rate)
    };
    let mut each = vec![];
    statements(&kernel.body, &mut |stmt| {
        each.push(match stmt {
            Stmt::Mma { of: [a, _], .. } => time(ROWS, COLS, *a, warp, gpu.products),
            // Each thread has half of its 64 rows' columns.
            Stmt::Wgmma { acc, of, .. } => {
                let cols = kernel.slots.get(*acc).map_or(0, |s| 2 * s.len);
                time(64, cols, *of, group, gpu.grouped)
            }
            _ => 0.0,
        });
    });
    let of = |number: u32| each.get(number as usize).copied().unwrap_or(0.0);
    report.rows.iter().map(|row| of(row.statement.number) * row.counts.executions as f64).sum()
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
        let blocks = if self.blocks == 1 { "1 block".to_string() } else { format!("{} blocks", self.blocks) };
        write!(f, "  {blocks}, {} at once on each of {} multiprocessors", self.together, self.multiprocessors)?;
        writeln!(f, " (no more {}), {:.0} % busy", self.limit, 100.0 * self.busy)?;
        if self.counted < self.blocks {
            let counted = if self.counted == 1 { "1 block".to_string() } else { format!("{} blocks", self.counted) };
            writeln!(
                f,
                "  from {counted}: the others are taken to be alike, and to share no more of an array than its size says"
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
        Estimate::of(&kernel, &report(&kernel, blocks, bytes), of, &Target::named("sm_90a").unwrap()).unwrap()
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
        let of = |r: &Report| Estimate::of(&kernel, r, 1056, &Target::named("sm_90a").unwrap()).unwrap();
        let bytes = |e: &Estimate| e.parts.iter().find(|p| p.name == "memory").unwrap().bytes.unwrap();
        assert_eq!(bytes(&of(&r)), 1056.0 * 65536.0);
        r.touched[0].bytes = 1 << 20;
        assert_eq!(bytes(&of(&r)), 1048576.0);
    }

    #[test]
    fn what_does_not_run_is_not_estimated() {
        let kernel = parse(COPY).unwrap();
        let target = Target::named("sm_80").unwrap();
        assert_eq!(Estimate::of(&kernel, &report(&kernel, 0, 0), 4, &target), None);
        assert_eq!(Estimate::of(&kernel, &report(&kernel, 4, 4096), 4, &Target::cpu()), None);
    }
}
