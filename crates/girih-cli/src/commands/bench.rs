//! `girih bench`: kernels against memcpy and NumPy, measured in turns in one run, so that the ratios hold on a noisy
//! machine. NumPy takes part when `python3` (or `.venv/bin/python`) can import it.

mod bytecode;
mod folder;
mod numpy;
mod start;
mod suites;

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use girih::{Arg, Buffer, Fill, Options, Program};
use girih_compiler::num::DType;
use serde_json::json;

use super::run::timing::duration;
use crate::cli::BenchArgs;
use crate::failure::Failure;
use crate::source::suggestion;
use bytecode::Bytecode;
use numpy::NumPy;
use start::Start;

/// One measured kernel.
struct Case {
    name: &'static str,
    /// Group that the command line names.
    group: &'static str,
    text: &'static str,
    grid: [u32; 3],
    /// Shapes of the f32 buffers, in parameter order.
    buffers: &'static [&'static [u64]],
    /// Scalars after the buffers.
    scalars: &'static [Scalar],
    /// Operations, or 0 where only bytes count.
    flops: f64,
    /// Bytes read and written.
    bytes: f64,
    /// The same in NumPy, over arrays `b[0]`, `b[1]`, ...
    numpy: &'static str,
}

#[derive(Clone, Copy)]
enum Scalar {
    I32(i32),
    F32(f32),
}

const GEMM: &str = include_str!("bench/kernels/gemm_f32.mlir");
const ADD: &str = include_str!("bench/kernels/vector_add.mlir");
const SAXPY: &str = include_str!("bench/kernels/saxpy.mlir");

const CASES: [Case; 4] = [
    Case {
        name: "gemm 1024x1024x1024",
        group: "gemm",
        text: GEMM,
        grid: [8, 8, 1],
        buffers: &[&[1024, 1024], &[1024, 1024], &[1024, 1024]],
        scalars: &[Scalar::I32(1024), Scalar::I32(1024), Scalar::I32(1024)],
        flops: 2.0 * 1024.0 * 1024.0 * 1024.0,
        bytes: 3.0 * 4.0 * 1024.0 * 1024.0,
        numpy: "np.matmul(b[0], b[1], out=b[2])",
    },
    Case {
        name: "gemm 512x3584x3584",
        group: "gemm",
        text: GEMM,
        grid: [4, 28, 1],
        buffers: &[&[512, 3584], &[3584, 3584], &[512, 3584]],
        scalars: &[Scalar::I32(512), Scalar::I32(3584), Scalar::I32(3584)],
        flops: 2.0 * 512.0 * 3584.0 * 3584.0,
        bytes: 4.0 * (2.0 * 512.0 * 3584.0 + 3584.0 * 3584.0),
        numpy: "np.matmul(b[0], b[1], out=b[2])",
    },
    Case {
        name: "vecadd 16M",
        group: "vecadd",
        text: ADD,
        grid: [16384, 1, 1],
        buffers: &[&[1 << 24], &[1 << 24], &[1 << 24]],
        scalars: &[Scalar::I32(1 << 24)],
        flops: 0.0,
        bytes: 3.0 * 4.0 * 16_777_216.0,
        numpy: "np.add(b[0], b[1], out=b[2])",
    },
    Case {
        name: "saxpy 4096x4096",
        group: "saxpy",
        text: SAXPY,
        grid: [64, 16, 1],
        buffers: &[&[4096, 4096], &[4096, 4096]],
        scalars: &[Scalar::F32(2.5), Scalar::I32(4096), Scalar::I32(4096)],
        flops: 0.0,
        bytes: 3.0 * 4.0 * 16_777_216.0,
        numpy: "np.add(np.multiply(b[0], np.float32(2.5), out=t), b[1], out=b[1])",
    },
];

/// The benchmarks that the command line may name.
const GROUPS: [&str; 5] = ["gemm", "vecadd", "saxpy", "start", "bytecode"];

/// The first of the options that only suites take, if one is given.
fn of_suites(args: &BenchArgs) -> Option<&'static str> {
    let all = [
        ("--against", args.against.is_some()),
        ("--filter", args.filter.is_some()),
        ("--device", args.device.is_some()),
        ("--output", args.output.is_some()),
        ("several numbers of threads", args.threads.len() > 1),
    ];
    all.into_iter().find_map(|(flag, given)| given.then_some(flag))
}

pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    if let [name] = &args.names[..]
        && std::path::Path::new(name).is_dir()
    {
        return folder::run(args, name);
    }
    if let Some(flag) = args.folder.flags().first() {
        return Err(Failure::usage(format!("{flag} is for a Hugging Face folder")));
    }
    let suite = |name: &String| suites::NAMES.contains(&name.as_str());
    if !args.report.is_empty() || (!args.names.is_empty() && args.names.iter().all(suite)) {
        return suites::run(args);
    }
    for name in &args.names {
        if !GROUPS.contains(&name.as_str()) {
            if suite(name) {
                return Err(Failure::usage(format!("`{name}` is a suite, which runs with other suites alone")));
            }
            let all = GROUPS.into_iter().chain(suites::NAMES);
            return Err(Failure::usage(format!("unknown benchmark `{name}`; {}", suggestion("benchmarks", name, all))));
        }
    }
    if let Some(flag) = of_suites(args) {
        return Err(Failure::usage(format!("{flag}: only suites take this; they are {}", suites::NAMES.join(", "))));
    }
    let rounds = args.rounds.unwrap_or(15);
    let mut options = Options::from_env().map_err(Failure::usage)?;
    options.threads = args.threads.first().copied().or(options.threads);
    let threads = options.thread_count() as usize;
    let mut numpy = NumPy::start(threads);
    if !args.json {
        match &numpy {
            Ok(n) => outln!("{threads} threads; NumPy {}; medians of {} rounds in turns", n.version, rounds)?,
            Err(reason) => outln!("{threads} threads; without NumPy ({reason}); medians of {} rounds", rounds)?,
        }
    }
    let mut results = Vec::new();
    let wanted = |group: &str| args.names.is_empty() || args.names.iter().any(|n| n == group);
    for case in CASES.iter().filter(|c| wanted(c.group)) {
        let result = measure(case, &options, threads, rounds, numpy.as_mut().ok())?;
        if !args.json {
            show(case, &result)?;
        }
        results.push(result.json(case, threads));
        if girih::interrupted() {
            return Err(girih::Error::Interrupted.into());
        }
    }
    if wanted("start") {
        let start = Start::measure(rounds)?;
        if !args.json {
            start.show()?;
        }
        results.push(start.json());
    }
    if wanted("bytecode") {
        let bytecode = Bytecode::measure(rounds)?;
        if !args.json {
            bytecode.show()?;
        }
        results.push(bytecode.json());
    }
    if args.json {
        outln!("{}", json!(results))?;
    }
    Ok(())
}

/// Medians in seconds.
struct Measured {
    kernel: f64,
    /// The time of a copy that reads and writes the same number of bytes as the kernel.
    copy: f64,
    numpy: Option<f64>,
}

impl Measured {
    /// How the kernel's bandwidth compares with a copy's.
    fn of_copy(&self) -> f64 {
        self.copy / self.kernel
    }
    fn json(&self, case: &Case, threads: usize) -> serde_json::Value {
        json!({
            "name": case.name,
            "threads": threads,
            "median_s": self.kernel,
            "gflop_per_s": case.flops / self.kernel / 1e9,
            "gbytes_per_s": case.bytes / self.kernel / 1e9,
            "of_memcpy": self.of_copy(),
            "numpy_s": self.numpy,
            "of_numpy": self.numpy.map(|n| n / self.kernel),
        })
    }
}

fn show(case: &Case, m: &Measured) -> Result<(), Failure> {
    let rate = if case.flops > 0.0 {
        format!("{:7.1} GFLOP/s", case.flops / m.kernel / 1e9)
    } else {
        format!("{:7.1} GB/s, {:.2} of memcpy", case.bytes / m.kernel / 1e9, m.of_copy())
    };
    let numpy = m.numpy.map_or(String::new(), |n| format!("  {:.2} of NumPy ({})", n / m.kernel, duration(n)));
    outln!("{:<22} {:>10}  {rate}{numpy}", case.name, duration(m.kernel))
}

fn measure(
    case: &Case,
    options: &Options,
    threads: usize,
    rounds: u32,
    mut numpy: Option<&mut NumPy>,
) -> Result<Measured, Failure> {
    let program = Program::from_text(case.text)?;
    let name = program.entries().first().map(|s| s.to_string()).unwrap_or_default();
    let kernel = program.entry(&name)?.with_options(options.clone());
    let mut buffers = Vec::new();
    for (i, shape) in case.buffers.iter().enumerate() {
        buffers.push(Buffer::filled(Fill::Rand, DType::F32, shape, i as u64 + 1)?);
    }
    let mut args: Vec<Arg> = buffers.iter_mut().map(Arg::from).collect();
    args.extend(case.scalars.iter().map(|s| match s {
        Scalar::I32(x) => Arg::from(*x),
        Scalar::F32(x) => Arg::from(*x),
    }));
    let mut prepared = kernel.prepare(case.grid, &mut args)?;
    let half = case.bytes as u64 / 2;
    let from = Buffer::filled(Fill::Ones, DType::I8, &[half], 0)?;
    let mut to = Buffer::zeroed(DType::I8, &[half])?;
    if let Some(numpy) = numpy.as_deref_mut() {
        numpy.prepare(case.buffers, case.numpy).map_err(Failure::usage)?;
    }
    let (mut kernel_s, mut copy_s, mut numpy_s) = (Vec::new(), Vec::new(), Vec::new());
    // One round to warm up, which does not count.
    for round in 0..=rounds {
        let k = prepared.run()?.seconds;
        let c = copy(from.bytes(), to.bytes_mut(), threads);
        let n = match numpy.as_deref_mut() {
            Some(numpy) => Some(numpy.run().map_err(Failure::usage)?),
            None => None,
        };
        if round > 0 {
            kernel_s.push(k);
            copy_s.push(c);
            numpy_s.extend(n);
        }
    }
    let numpy = (!numpy_s.is_empty()).then(|| median(numpy_s));
    Ok(Measured { kernel: median(kernel_s), copy: median(copy_s), numpy })
}

/// NaN of nothing.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Seconds that a plain copy takes, shared out over the threads.
fn copy(from: &[u8], to: &mut [u8], threads: usize) -> f64 {
    let piece = from.len().div_ceil(threads.max(1));
    let start = Instant::now();
    let pieces = Mutex::new(from.chunks(piece).zip(to.chunks_mut(piece)));
    girih::threads::share(threads, &|| {
        let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((from, to)) = next() {
            to.copy_from_slice(from);
        }
    });
    start.elapsed().as_secs_f64()
}
