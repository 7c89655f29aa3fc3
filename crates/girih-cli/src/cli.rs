//! The command line's grammar.

mod folder;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use girih::Device;
use girih_compiler::cuda_tile::bytecode::{Version, write};
use girih_compiler::tile::knobs::Knobs;

pub use folder::{FolderArgs, GenerateArgs};

/// A tile compiler: compiles tile kernels and models to native code and to CUDA, and shows every stage.
#[derive(Parser)]
#[command(name = "girih", version, arg_required_else_help = true, after_help = environment())]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// The variables of the environment, for `--help`.
fn environment() -> String {
    let own = [("GIRIH_PYTHON", "the Python that has the package girih"), ("NO_COLOR", "messages without colours")];
    let all = girih::options::VARIABLES.into_iter().chain(own);
    let lines: String = all.map(|(name, text)| format!("\n  {name:<16}  {text}")).collect();
    format!("Environment:{lines}")
}

#[derive(Subcommand)]
pub enum Command {
    /// Compile a kernel and run it.
    Run(RunArgs),
    /// Show a kernel at a stage of its compilation.
    Compile(CompileArgs),
    /// Write a model or a tile program as a library of C, or as CUDA, that needs nothing of Girih.
    Build(BuildArgs),
    /// Run the kernels of a GPU on the simulator: races and other faults, and the cost of each statement.
    Sim(SimArgs),
    /// Show a compilation as a page: its stages linked line by line, the rewrites of each rule, the graph of a model.
    Explain(ExplainArgs),
    /// Search for a faster schedule of a kernel or a model, and keep it for later runs.
    Tune(TuneArgs),
    /// Parse and verify tile programs.
    Check(CheckArgs),
    /// Print bytecode as text.
    Disassemble(DisassembleArgs),
    /// Rewrite tile programs in the standard layout.
    Fmt(FmtArgs),
    /// Write a tile program as bytecode.
    Assemble(AssembleArgs),
    /// Serve an editor: diagnostics, hover, completion, renaming and more for tile programs, over standard input and output.
    Lsp,
    /// List the operations of tile programs, or show the page of one.
    Ops(OpsArgs),
    /// List the rewrite rules and knobs, or explain one rule.
    Rules(RulesArgs),
    /// Report this machine's compilers, processor and GPU, and what is missing.
    Doctor(DoctorArgs),
    /// Inspect, clear or move the cache of compiled kernels.
    Cache {
        #[command(subcommand)]
        action: CacheAction,
    },
    /// Compare kernels with memcpy and NumPy on this machine.
    Bench(BenchArgs),
    /// Continue a text with the model of a Hugging Face folder.
    Generate(GenerateArgs),
    /// Print a script of completions for a shell.
    Completions(CompletionsArgs),
    /// Write pages for `man`.
    Man(ManArgs),
    /// Run a cuTile Python program; `girih cutile --help` lists its options.
    #[command(disable_help_flag = true)]
    Cutile(CutileArgs),
}

#[derive(Args)]
pub struct CompletionsArgs {
    pub shell: clap_complete::Shell,
}

#[derive(Args)]
pub struct ManArgs {
    /// The folder to write to: `girih.1`, `girih-run.1` and so on.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Options of every command that compiles a kernel.
#[derive(Args)]
pub struct KernelArgs {
    /// Tile text (.mlir, .ttir), bytecode, a model (.onnx, .json as girih.torch saves it, or a Hugging Face folder), or a kernel
    /// of a Python script, `script.py:kernel`; `-` is standard input.
    #[arg(required_unless_present = "expression")]
    pub file: Option<PathBuf>,
    /// For `script.py:kernel`: its parameters in order, `*fp32:16, i32, BLOCK=1024`. `*` is a pointer, `:16` says that 16 divides it.
    #[arg(long, value_name = "TYPES", allow_hyphen_values = true)]
    pub signature: Option<String>,
    /// A PyTorch model in one line: `torch.softmax(torch.randn(8,128), -1)`; `help` lists what is supported.
    #[arg(short = 'c', value_name = "EXPR", conflicts_with = "file", allow_hyphen_values = true)]
    pub expression: Option<String>,
    /// The entry to use; required if the file has several.
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// The target to compile for: `cpu`, this machine; `x86-64-v3`, a typical processor of this level; `sm_80`, `sm_90a`, `sm_100a` or
    /// `sm_120`, an NVIDIA GPU [env: GIRIH_TARGET].
    #[arg(long, value_name = "T")]
    pub target: Option<String>,
    /// Worker threads; one per core by default [env: GIRIH_THREADS].
    #[arg(long, value_name = "N", value_parser = girih::options::threads, allow_hyphen_values = true)]
    pub threads: Option<u32>,
    /// Check every memory access of native code [env: GIRIH_CHECK=1].
    #[arg(long)]
    pub check: bool,
    /// Set a knob; `girih rules` lists them.
    #[arg(long = "knob", value_name = "K=V", value_parser = knob)]
    pub knobs: Vec<(String, i64)>,
    /// Ignore the schedule that `girih tune` has found [env: GIRIH_TUNED=0].
    #[arg(long)]
    pub no_tuned: bool,
    /// Follow the schedule of a file in place of the rules' choices; `girih compile --ir schedule` prints one.
    #[arg(long, value_name = "FILE")]
    pub schedule: Option<PathBuf>,
    /// Refuse a model whose weights, temporary arrays and results take more, such as 500M or 2G.
    #[arg(long, value_name = "SIZE", value_parser = girih::options::bytes, allow_hyphen_values = true)]
    pub max_memory: Option<u64>,
    #[command(flatten)]
    pub folder: FolderArgs,
}

/// Options of every command that launches a kernel.
#[derive(Args)]
pub struct LaunchArgs {
    /// Blocks along x, y and z.
    #[arg(long, value_name = "X,Y,Z", value_parser = girih::spec::grid, allow_hyphen_values = true)]
    pub grid: Option<[u32; 3]>,
    /// An argument: NAME=FILE.npy, NAME=i32:512, NAME=randn:f16[64x64], NAME=@OTHER, NAME=ptrs:A+B; for a model also N=32,
    /// a symbolic extent.
    #[arg(long = "arg", value_name = "NAME=SPEC", value_parser = pair)]
    pub args: Vec<(String, String)>,
    /// Run one block of the grid.
    #[arg(long, value_name = "X,Y,Z", value_parser = block, allow_hyphen_values = true)]
    pub block: Option<[u32; 3]>,
}

#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub kernel: KernelArgs,
    #[command(flatten)]
    pub launch: LaunchArgs,
    /// Write a buffer to a file after the launch.
    #[arg(long, value_name = "NAME=FILE.npy", value_parser = pair)]
    pub save: Vec<(String, String)>,
    /// Print a buffer after the launch.
    #[arg(long, value_name = "NAME")]
    pub print: Vec<String>,
    /// Where to run: `cpu`; `cuda`, an NVIDIA GPU; `sim`, a simulated GPU; or `eval`, the reference evaluator [env: GIRIH_DEVICE].
    #[arg(long)]
    pub device: Option<Device>,
    /// Compare the results with the same launch in float64, within a stated bound.
    #[arg(long)]
    pub verify: bool,
    /// Run on another device too and compare: integers exactly, floats within the bound of --verify.
    #[arg(long, value_name = "DEVICE")]
    pub compare: Option<Device>,
    /// With --compare: require floats to agree in every bit too.
    #[arg(long, requires = "compare")]
    pub bits: bool,
    /// Repeat the launch and report the median time.
    #[arg(long)]
    pub time: bool,
    /// Show where the time goes, kernel by kernel, beside the machine's limits; for a model also how much memory it takes.
    #[arg(long)]
    pub profile: bool,
    /// Evaluate on these arguments before and after each rule (for a tile program, the first and the last block); stop at
    /// the first rule that changes the answer.
    #[arg(long)]
    pub verify_each: bool,
    /// -v says whose schedule is used; -vv also the estimated time of the simulator's kernels on the target.
    #[arg(short, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print one JSON object at the end of standard output.
    #[arg(long)]
    pub json: bool,
    /// Neither read from nor write to the cache of compiled kernels.
    #[arg(long)]
    pub no_cache: bool,
    /// Order of printed text: `finish` (as blocks end) or `index`.
    #[arg(long, value_name = "ORDER", value_parser = ["finish", "index"], default_value = "finish")]
    pub print_order: String,
    /// Order in which the evaluator runs blocks, and the simulator's schedule of the threads [env: GIRIH_SEED]; 0 is
    /// round-robin. For a model also the seed of generated inputs.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// With --device sim or --compare sim: run every launch under N schedules, from the seed on, which must leave the same bits
    /// [env: GIRIH_SCHEDULES].
    #[arg(long, value_name = "N", value_parser = girih::options::schedules, allow_hyphen_values = true)]
    pub schedules: Option<u64>,
}

#[derive(Args)]
pub struct SimArgs {
    #[command(flatten)]
    pub kernel: KernelArgs,
    #[command(flatten)]
    pub launch: LaunchArgs,
    /// Run N blocks of each grid, spread evenly over it; the estimate is of the whole grid, and results of other blocks are missing.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "block")]
    pub sample: Option<u64>,
    /// The first schedule of the threads; schedules differ by their seeds.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Run under N schedules, from the first on; by default 5, one of each kind, or only the one that --seed names.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub schedules: Option<u64>,
    /// Fail where an access of shared memory takes more than X times the wavefronts that it needs; 1 is without conflicts.
    #[arg(long, value_name = "X", value_parser = ratio)]
    pub max_bank_conflicts: Option<f64>,
    /// Fail where an access of global memory takes more than X times the sectors that it needs; 1 is fully coalesced.
    #[arg(long, value_name = "X", value_parser = ratio)]
    pub max_sectors: Option<f64>,
    /// Stop a kernel whose threads together run more than N statements, and say where.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
    /// Write the report of the first schedule as a page with pictures: banks, a timeline of warps, the source line by line.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// With --html: beside it the same run with this knob, `pad_smem=0`; may be repeated.
    #[arg(long, value_name = "K=V", value_parser = knob, requires = "html")]
    pub against: Vec<(String, i64)>,
    /// Write a buffer to a file, as the first schedule leaves it.
    #[arg(long, value_name = "NAME=FILE.npy", value_parser = pair)]
    pub save: Vec<(String, String)>,
    /// Print a buffer, as the first schedule leaves it.
    #[arg(long, value_name = "NAME")]
    pub print: Vec<String>,
    /// For Kernel IR: run this kernel on the same arguments too, and fail where its results differ in a bit.
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// For a model: an input, or in one line the type of a name that it does not define, `x=randn:f32[4x128]`.
    #[arg(long = "arg", value_name = "NAME=SPEC", value_parser = pair)]
    pub args: Vec<(String, String)>,
    /// Write the page here. It needs nothing else, no network either.
    #[arg(long, value_name = "FILE", conflicts_with = "serve")]
    pub html: Option<PathBuf>,
    /// For a model: run it, and show the time of each kernel.
    #[arg(long)]
    pub profile: bool,
    /// Show the page at http://127.0.0.1:PORT, for this machine alone, and again whenever the file changes.
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "7411")]
    pub serve: Option<u16>,
}

#[derive(Args)]
#[command(mut_arg("file", |file| file.required_unless_present_any(["list", "forget"])))]
pub struct TuneArgs {
    #[command(flatten)]
    pub kernel: KernelArgs,
    #[command(flatten)]
    pub launch: LaunchArgs,
    /// Where candidates run: `cpu` and `cuda`, by the clock; `sim`, by the simulator's estimate for --target.
    #[arg(long)]
    pub device: Option<Device>,
    /// Seconds to search for.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds, allow_hyphen_values = true)]
    pub budget: f64,
    /// Candidates to try at most.
    #[arg(long, value_name = "N", value_parser = positive)]
    pub trials: Option<usize>,
    /// Seed of the search: decides where it continues when it is stuck.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Try this knob, or `schedule`, the lines of the schedule; may be repeated. By default everything that matters for the target.
    #[arg(long, value_name = "KNOB")]
    pub vary: Vec<String>,
    /// With `--device sim`: candidates that run at the same time, each a process; or `ray` or `dask`, which run them.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<Jobs>,
    /// Evaluate these knobs and changes of lines, `kc=64,7.1=128,9.out=1`, and print one JSON object.
    #[arg(long, value_name = "SETTINGS", allow_hyphen_values = true)]
    pub candidate: Option<String>,
    /// Print each batch of candidates as a line of JSON, and read their outcomes as one.
    #[arg(long, hide = true)]
    pub batches: bool,
    /// List the schedules that were found.
    #[arg(long)]
    pub list: bool,
    /// Forget the schedules of a kernel, by its name or its key, or `all`.
    #[arg(long, value_name = "KERNEL", conflicts_with = "list")]
    pub forget: Option<String>,
    /// Print the outcome of each candidate.
    #[arg(short, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Who evaluates the candidates of a search.
#[derive(Clone, Debug)]
pub enum Jobs {
    Processes(usize),
    Engine(String),
}

fn jobs(text: &str) -> Result<Jobs, String> {
    match (text, text.parse::<usize>()) {
        ("ray" | "dask", _) => Ok(Jobs::Engine(text.to_string())),
        (_, Ok(n)) if (1..=1024).contains(&n) => Ok(Jobs::Processes(n)),
        _ => Err(format!("expected a number of processes from 1 to 1024, `ray` or `dask`, found `{text}`")),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|s: &f64| *s > 0.0 && *s <= 1e6);
    seconds.ok_or_else(|| format!("expected seconds, more than 0, found `{text}`"))
}

fn positive(text: &str) -> Result<usize, String> {
    let n = text.parse().ok().filter(|n: &usize| *n > 0);
    n.ok_or_else(|| format!("expected a whole number from 1 on, found `{text}`"))
}

#[derive(Args)]
pub struct CompileArgs {
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// The stage to print: cuda_tile (for a model: torch, tensor), loop, schedule, tile, kernel, then c, or for a GPU cuda, ptx, sass.
    #[arg(long, value_name = "STAGE", value_parser = stage)]
    pub ir: Option<girih::Stage>,
    /// For a model: an input, or in one line the type of a name that it does not define, `x=randn:f32[4x128]`.
    #[arg(long = "arg", value_name = "NAME=SPEC", value_parser = pair)]
    pub args: Vec<(String, String)>,
    /// Print each kernel's resources on a GPU: registers, spills, local and shared memory, occupancy. This needs NVRTC, which
    /// the Python package `nvidia-cuda-nvrtc` brings.
    #[arg(long)]
    pub resources: bool,
    /// With `--ir cuda_tile`: print the whole program as NVIDIA's own tools do.
    #[arg(long)]
    pub nvidia: bool,
    /// -v counts what each rule changed and refused; -vv shows each change and the reason for each refusal.
    #[arg(short, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Write every stage into a folder.
    #[arg(long, value_name = "DIR")]
    pub dump: Option<PathBuf>,
    /// Write here instead of to standard output.
    #[arg(short, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Evaluate before and after each rule, a model on the inputs that --arg gives, a tile program at the launch of its
    /// comment; stop at the first rule that changes the answer.
    #[arg(long)]
    pub verify_each: bool,
    /// Apply only the first N rewrites, to find the one that breaks something.
    #[arg(long, value_name = "N")]
    pub stop_after: Option<usize>,
}

#[derive(Args)]
pub struct BuildArgs {
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// The folder to write; it must not exist, or be empty.
    #[arg(short, value_name = "DIR")]
    pub output: PathBuf,
    /// The name of the library and the prefix of its functions; by default the file's.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The processors that the library is for: `native`, this machine's; `baseline`, any of its kind; a level, such as x86-64-v3; or `aarch64`.
    #[arg(long, value_name = "CPU", default_value = "native")]
    pub cpu: String,
    /// For a model: a parameter that it does not have, w=FILE.npy, or the type of a name in one line, x=randn:f32[4x128].
    #[arg(long = "arg", value_name = "NAME=SPEC", value_parser = pair)]
    pub args: Vec<(String, String)>,
    /// Seed of the random weights of a model in one line.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Replace the files that an earlier build wrote into the folder.
    #[arg(long)]
    pub force: bool,
    /// Print one JSON object that lists the files.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct CheckArgs {
    /// Tile texts (.mlir), bytecode, models (.onnx), or Python scripts (.py), whose kernels are checked without running the
    /// script; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print one JSON object per diagnostic on standard output.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct DisassembleArgs {
    /// Bytecode (or tile text); `-` is standard input.
    pub file: PathBuf,
    /// Write here instead of to standard output.
    #[arg(short, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Print debug locations too.
    #[arg(short = 'g', long)]
    pub debug: bool,
}

#[derive(Args)]
pub struct FmtArgs {
    /// Tile texts (.mlir), rewritten in place; `-` goes from standard input to standard output.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Change nothing; name the files that would change, and exit 1 if there are any.
    #[arg(long)]
    pub check: bool,
}

#[derive(Args)]
pub struct AssembleArgs {
    /// Tile text (.mlir) or bytecode; `-` is standard input.
    pub file: PathBuf,
    /// Write the bytecode here, such as kernel.tileirbc; standard output by default, unless that is a terminal.
    #[arg(short, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// The version of the format: 13.1 to 13.4; by default the oldest that can express the program.
    #[arg(long, alias = "version", value_name = "V", value_parser = bytecode_version)]
    pub bytecode_version: Option<Version>,
}

#[derive(Args)]
pub struct OpsArgs {
    /// An operation: addf, load_view_tko.
    pub name: Option<String>,
    /// Print JSON: an array of all operations, or the object of one.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct RulesArgs {
    /// A rule: stage_inputs, 006_stage_inputs or t:006_stage_inputs; or an operation of a model, such as aten.rms_norm.
    pub name: Option<String>,
}

#[derive(Args)]
pub struct DoctorArgs {
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Subcommand)]
pub enum CacheAction {
    /// Show where the cache is and how large it is.
    Info,
    /// Remove every compiled kernel.
    Clear,
    /// Write compiled kernels and tuned schedules to a file, for machines without a compiler.
    Export {
        /// The file to write.
        file: PathBuf,
    },
    /// Take compiled kernels and tuned schedules from a file that `girih cache export` wrote; their machine code will be run.
    Import {
        /// The file to read.
        file: PathBuf,
    },
}

#[derive(Args)]
pub struct BenchArgs {
    /// The benchmarks to run: gemm, vecadd, saxpy, start, bytecode; all of these by default. Or suites of models beside
    /// PyTorch and others: elementwise, reductions, matmul, lowprec, attention, conv, recurrent, order, blocks, models, launch,
    /// jit, layouts, quantised, llm, compile, decoder, gpu; or triton, kernels of Triton's beside PyTorch. Or a Hugging Face
    /// folder, whose model runs beside PyTorch.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    #[command(flatten)]
    pub folder: FolderArgs,
    /// Worker threads; one per core by default [env: GIRIH_THREADS]. A suite takes several numbers, and by default one thread
    /// and one per core.
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = girih::options::threads, allow_hyphen_values = true)]
    pub threads: Vec<u32>,
    /// Rounds of alternating measurements; 15 by default, 7 for a suite.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Contestants of a suite: torch, torch.compile, onnxruntime, numpy, jax, triton; by default those that are installed, except
    /// torch.compile, jax and triton.
    #[arg(long, value_name = "NAMES")]
    pub against: Option<String>,
    /// Where the rows of a suite run: cpu, or cuda, the first GPU; by default on processors, those of `gpu` on the GPU.
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Only the rows of a suite whose name holds this text.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub filter: Option<String>,
    /// Draw the results that suites wrote to these files as one page.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "names")]
    pub report: Vec<PathBuf>,
    /// Write a suite's rows to a JSON file, or the page of --report to this one.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print JSON: an array with an object for each benchmark, or a suite's results as --output writes them.
    #[arg(long)]
    pub json: bool,
}

fn bytecode_version(text: &str) -> Result<Version, String> {
    let known = write::VERSIONS.into_iter();
    known.clone().find(|v| v.to_string() == text).ok_or_else(|| {
        let names: Vec<String> = known.map(|v| v.to_string()).collect();
        format!("the versions that girih writes are {}", names.join(", "))
    })
}

#[derive(Args)]
pub struct CutileArgs {
    /// Options of `python -m girih.cutile`, the script, and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub args: Vec<std::ffi::OsString>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.to_string(), value.to_string())),
        _ => Err(format!("expected NAME=VALUE, found `{text}`")),
    }
}

/// A budget: how many times the least may be taken.
fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|r: &f64| r.is_finite() && *r >= 1.0);
    ratio.ok_or_else(|| format!("expected a number from 1 on, found `{text}`"))
}

fn knob(text: &str) -> Result<(String, i64), String> {
    let (name, value) = Knobs::default().set(text)?;
    Ok((name.to_string(), value))
}

/// Like a grid, but counting from zero.
fn block(text: &str) -> Result<[u32; 3], String> {
    let mut block = [0u32; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err(format!("`{text}` has {} numbers; a block has at most 3", parts.len()));
    }
    for (slot, part) in block.iter_mut().zip(parts) {
        *slot = part.trim().parse().map_err(|_| format!("expected a block number, found `{}`", part.trim()))?;
    }
    Ok(block)
}

fn stage(text: &str) -> Result<girih::Stage, String> {
    girih::Stage::from_name(text).ok_or_else(|| {
        let names = |all: &[girih::Stage]| all.iter().map(|s| s.name()).collect::<Vec<_>>().join(", ");
        let (tile, model) = (names(&girih::Stage::PROGRAM), names(&girih::Stage::MODEL));
        format!("the stages of a tile program are {tile}; those of a model are {model}; on a GPU, cuda, ptx or sass stands for c")
    })
}
