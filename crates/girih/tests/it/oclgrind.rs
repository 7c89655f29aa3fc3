//! Races that the simulator finds, an outsider finds too, and the other way round: kernels that use no asynchronous copies
//! and exchange nothing within a warp are printed as OpenCL and run under Oclgrind, which has a detector of data races.
//!
//! Kernels are those of models, of `tests/cuda` and of `tests/races`, as they are and without each of their barriers in turn.
//! The two must say the same of each; of one that has no race they must leave the same bytes in memory.
//!
//! `make oclgrind` runs it; Debian's package is called `oclgrind`.

use crate::folder;
use crate::gpu_programs;
use crate::kernel_files;
use crate::opencl;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use folder::Folder;
use girih_compiler::base::host::Silent;
use girih_compiler::base::launch::Launch;
use girih_compiler::base::memory::VecMemory;
use girih_compiler::kernel::ir::{Kernel, Stmt};
use girih_compiler::kernel::sim;
use girih_compiler::loops;
use gpu_programs::{TARGETS, fill, programs};
use kernel_files::{Given, KernelFile};

/// Kernels of models without asynchronous copies; exponentials and the like are left out, as OpenCL's may differ.
const MODELS: &[&str] = &[
    "torch.randn(70, 36) @ torch.randn(36, 50)",
    "torch.randn(40, 24).double() @ torch.randn(24, 36).double()",
    "torch.nn.Linear(72, 130)(torch.randn(70, 72))",
    "torch.relu(torch.nn.Linear(64, 33)(torch.randn(40, 64)))",
    "torch.matmul(torch.randn(3, 33, 40), torch.randn(3, 40, 34))",
    "torch.nn.Conv2d(3, 8, 3)(torch.randn(1, 3, 10, 10))",
    "torch.randn(33, 65).transpose(0, 1) + 1",
    "torch.sum(torch.randn(5, 777), dim=1)",
    "torch.cumsum(torch.randn(4, 50), 1)",
    "torch.sort(torch.randn(3, 20))[0]",
    "torch.arange(1000) * 3 % 7",
];
const KNOBS: [&[&str]; 3] = [
    &["slots=1", "async_copy=0", "tma=0"],
    &["slots=2", "async_copy=0", "tma=0"],
    &["slots=3", "async_copy=0", "tma=0", "kc=8"],
];
const SEEDS: u64 = 4;

struct Case {
    name: String,
    kernel: Kernel,
    loops: loops::ir::Kernel,
    args: Vec<Given>,
    /// Where the kernel does not give it.
    grid: Option<[u32; 3]>,
}

impl Case {
    fn contents(&self) -> Vec<Vec<u8>> {
        let of = |(i, arg): (usize, &Given)| match arg {
            Given::Array(d, n) => fill(*d, *n, i as u64),
            Given::Number(d, n) => n.to_le_bytes()[..d.bytes() as usize].to_vec(),
        };
        self.args.iter().enumerate().map(of).collect()
    }

    fn numbers(&self, memory: &mut VecMemory) -> Vec<u64> {
        let of = |((i, arg), bytes): ((usize, &Given), Vec<u8>)| match arg {
            Given::Array(..) => memory.add(&format!("a{i}"), bytes),
            Given::Number(_, n) => *n,
        };
        self.args.iter().enumerate().zip(self.contents()).map(of).collect()
    }

    fn grid(&self, args: &[u64]) -> [u32; 3] {
        self.grid.unwrap_or_else(|| self.kernel.blocks(args).expect("a grid").map(|n| n as u32))
    }

    /// The memory after the kernel has run; `None` where the simulator finds something.
    fn simulated(&self, kernel: &Kernel) -> Option<Vec<Vec<u8>>> {
        let mut left = None;
        for seed in 0..SEEDS {
            let mut memory = VecMemory::new();
            let args = self.numbers(&mut memory);
            let launch = Launch::new(self.grid(&args), args.clone());
            let ran = sim::run(kernel, &self.loops, &launch, &mut memory, &mut Silent, &sim::Options::of_seed(seed));
            ran.and_then(|report| report.clean()).ok()?;
            let arrays = self.args.iter().zip(&args).filter(|(arg, _)| matches!(arg, Given::Array(..)));
            left = Some(arrays.map(|(_, at)| memory.bytes(*at).expect("an array").to_vec()).collect());
        }
        left
    }

    /// The same by Oclgrind.
    fn watched(&self, kernel: &Kernel, folder: &Path) -> Option<Vec<Vec<u8>>> {
        let text = opencl::source(kernel).expect("without barriers it needs no more");
        let args = self.numbers(&mut VecMemory::new());
        let [x, y, z] = self.grid(&args);
        let (threads, file) = (kernel.threads, folder.join("k.cl"));
        std::fs::write(&file, &text).expect("it is written");
        let mut run = format!("{}\nk\n{} {y} {z}\n{threads} 1 1\n", file.display(), x * threads);
        for (arg, bytes) in self.args.iter().zip(self.contents()) {
            let dump = if let Given::Array(..) = arg { " dump" } else { "" };
            let bytes: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
            run += &format!("<size={} uchar hex{dump}>\n{}\n", bytes.len(), bytes.join(" "));
        }
        let script = folder.join("k.sim");
        std::fs::write(&script, run).expect("it is written");
        let mut command = Command::new("oclgrind-kernel");
        // A load whose result is unused can race too.
        command.args(["--build-options", "-cl-opt-disable"]);
        command.args(["--data-races", "--uniform-writes", "--max-errors", "1", "--num-threads", "1"]).arg(&script);
        let done = command.output().expect("oclgrind-kernel, of Debian's package oclgrind");
        let (out, said) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        if said.contains("data race") {
            return None;
        }
        assert!(done.status.success() && said.trim().is_empty(), "{}: {said}\n{text}", self.name);
        let mut arrays: Vec<Vec<u8>> = vec![];
        for line in out.lines() {
            if line.starts_with("Argument ") {
                arrays.push(vec![]);
            } else if let (Some((_, byte)), Some(array)) = (line.split_once("] = 0x"), arrays.last_mut()) {
                array.push(u8::from_str_radix(byte, 16).expect("a byte"));
            }
        }
        Some(arrays)
    }
}

fn cases() -> Vec<Case> {
    let by_hand = |file: KernelFile| {
        let KernelFile { name, kernel, args, grid, .. } = file;
        Case { name, kernel, loops: loops::ir::Kernel::default(), args, grid: Some(grid) }
    };
    let mut all: Vec<Case> = ["cuda", "races"].into_iter().flat_map(kernel_files::of).map(by_hand).collect();
    for (at, text) in MODELS.iter().enumerate() {
        for (i, knobs) in KNOBS.into_iter().enumerate() {
            for program in programs(text, TARGETS[(at + i) % TARGETS.len()], knobs) {
                let args = program.arrays.iter().map(|(d, n)| Given::Array(*d, *n)).collect();
                let (kernel, loops) = (program.lowered.kernel, program.lowered.tile);
                // Other knobs may change nothing.
                if all.iter().all(|c| c.kernel.body != kernel.body) {
                    all.push(Case { name: program.name, kernel, loops, args, grid: None });
                }
            }
        }
    }
    all
}

/// Deletes one barrier: the one with `left` barriers before it.
fn without(body: &mut Vec<Stmt>, left: &mut usize) -> bool {
    for at in 0..body.len() {
        let done = match &mut body[at] {
            Stmt::Barrier if *left == 0 => {
                body.remove(at);
                true
            }
            Stmt::Barrier => {
                *left -= 1;
                false
            }
            Stmt::For { body, .. } | Stmt::Loop { body } => without(body, left),
            Stmt::If { then, els, .. } => without(then, left) || without(els, left),
            _ => false,
        };
        if done {
            return true;
        }
    }
    false
}

#[test]
#[ignore = "needs Oclgrind: `make oclgrind`"]
fn the_simulator_and_oclgrind_agree() {
    let folder = Folder::new("oclgrind");
    let (mut refused, mut wrong): (BTreeMap<String, usize>, Vec<String>) = Default::default();
    let (mut kernels, mut mutants, mut races) = (0, 0, 0);
    for case in cases() {
        if let Err(why) = opencl::source(&case.kernel) {
            *refused.entry(why).or_default() += 1;
            continue;
        }
        kernels += 1;
        for site in 0.. {
            // The kernel as it is, then without its barriers.
            let mut kernel = case.kernel.clone();
            let what = match site {
                0 => "as it is".to_string(),
                n if without(&mut kernel.body, &mut (n - 1)) => format!("without barrier {n}"),
                _ => break,
            };
            mutants += usize::from(site > 0);
            let (ours, theirs) = (case.simulated(&kernel), case.watched(&kernel, &folder.0));
            races += usize::from(ours.is_none());
            match (&ours, &theirs) {
                (None, None) => {}
                (Some(a), Some(b)) if a == b => {}
                (Some(_), Some(_)) => wrong.push(format!("{}, {what}: other values", case.name)),
                (Some(_), None) => wrong.push(format!("{}, {what}: Oclgrind alone finds a race", case.name)),
                (None, Some(_)) => wrong.push(format!("{}, {what}: the simulator alone finds a race", case.name)),
            }
        }
    }
    println!("{kernels} kernels, {mutants} without one of their barriers: both find races in {races}");
    refused.iter().for_each(|(why, n)| println!("{n} not in OpenCL: {why}"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(kernels >= 20 && races >= 20, "{kernels} kernels, {races} races");
}
