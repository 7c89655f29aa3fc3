//! How to compile and run: one value with a default for everything.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use girih_compiler::base::budget::bytes_text;
use girih_compiler::base::launch::Assumptions;
use girih_compiler::num::DType;
use girih_compiler::pipeline;
use girih_compiler::tile::knobs::Knobs;
use girih_compiler::tile::schedule::Schedule;
use girih_compiler::tile::target::Target;

use crate::compile::version::{FAST, PLANNED};
use crate::compile::widen;
use crate::cuda;
use crate::error::Error;
use crate::launch::simulate::Simulated;
use crate::system::machine;

/// Where a kernel runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Device {
    /// Native code on this machine's cores.
    #[default]
    Cpu,
    /// The reference evaluator: slow, exact, and strict about undefined behaviour.
    Eval,
    /// The simulator: the kernels of a GPU target, thread by thread, with a report of their errors.
    Sim,
    /// The first GPU that the driver knows.
    Cuda,
}

impl std::str::FromStr for Device {
    type Err = String;
    fn from_str(text: &str) -> Result<Device, String> {
        match text {
            "cpu" => Ok(Device::Cpu),
            "eval" => Ok(Device::Eval),
            "sim" => Ok(Device::Sim),
            "cuda" => Ok(Device::Cuda),
            _ => Err(format!("unknown device `{text}`; the devices are cpu, eval, sim and cuda")),
        }
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Device::Cpu => "cpu",
            Device::Eval => "eval",
            Device::Sim => "sim",
            Device::Cuda => "cuda",
        })
    }
}

/// Where compiled kernels are kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum CachePolicy {
    /// `$GIRIH_CACHE_DIR`, or a folder in the user's cache.
    #[default]
    Default,
    At(PathBuf),
    /// Nothing is kept or found.
    Off,
}

/// When a block's output leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PrintOrder {
    /// As blocks finish.
    #[default]
    Finish,
    /// After the launch, by block index.
    Index,
    /// On the evaluator, when the block prints, which goes on when the text was taken; natively as blocks finish.
    AtOnce,
}

/// Receives a block's complete output.
pub type Printer = Arc<dyn Fn([u32; 3], &str) + Send + Sync>;

/// Receives the simulator's report on each kernel of a run, in order.
pub type Watcher = Arc<dyn Fn(&Simulated<'_>) + Send + Sync>;

/// Receives a remark on a large simulation before it begins, a sentence for each kernel.
pub type Announce = Arc<dyn Fn(&str) + Send + Sync>;

/// Receives the estimated time of each simulated kernel, by name, on its target.
pub type Estimates = Arc<dyn Fn(&str, &girih_compiler::kernel::sim::Estimate) + Send + Sync>;

/// Everything a compilation and a launch may be told.
#[derive(Clone, Default)]
pub struct Options {
    pub device: Device,
    /// Check every memory access of native code.
    pub check: bool,
    /// Worker threads; one per core when absent.
    pub threads: Option<u32>,
    /// This machine when absent; on the simulator, `simulated`.
    pub target: Option<Target>,
    /// The simulator's target where none is chosen; sm_90a when absent.
    pub simulated: Option<Target>,
    /// Knobs that differ from their defaults.
    pub knobs: Vec<(String, i64)>,
    /// Use the schedules that `girih tune` has found, where no knob is set; so it is with the environment's options.
    pub tuned: bool,
    /// Is told which schedule is used, where it is not the default.
    pub notes: Option<Announce>,
    pub cache: CachePolicy,
    /// The C compiler's command; when absent `cc`, `gcc`, `clang`, `zig cc` or that of the Python package `ziglang`.
    pub compiler: Option<String>,
    pub print_order: PrintOrder,
    /// Standard output when absent.
    pub printer: Option<Printer>,
    /// Run this block alone; of a model on the simulator, of each kernel that has one of that number.
    pub block: Option<[u32; 3]>,
    /// On the simulator: run this number of blocks of each grid alone, spread evenly over it, unless blocks may wait for each
    /// other. The estimate is then of all blocks; other results than those of these blocks are not written.
    pub sample: Option<u64>,
    /// Stop rewriting after this many rewrites, to find the one that breaks something.
    pub stop_after: Option<usize>,
    /// A schedule to follow in place of the rules' choices; `--ir schedule` prints one.
    pub schedule: Option<Arc<Schedule>>,
    /// Order in which the evaluator runs blocks; 0 is round-robin. On the simulator, the schedule of the threads.
    pub seed: u64,
    /// Simulate every launch under as many schedules, from the seed on, which must leave the same bits; 1 when absent.
    pub schedules: Option<u64>,
    /// Takes the simulator's reports, findings included; when absent, a finding is an error of the run.
    pub watcher: Option<Watcher>,
    /// Takes the estimates of the simulator's kernels.
    pub estimates: Option<Estimates>,
    /// Is told the size of each simulated kernel that will take more than some seconds; nobody is when absent.
    pub announce: Option<Announce>,
    /// Statements that all threads of a simulated kernel may run together; some 69 billion when absent.
    pub steps: Option<u64>,
    /// When a simulation ends, in the middle of a kernel if need be, as if it were interrupted; never when absent.
    pub deadline: Option<Instant>,
    /// Keep in the simulator's reports the data for pictures.
    pub record: bool,
    /// Refuse a model whose arrays take more bytes than this: its weights, the arrays computed from them when it is loaded,
    /// its temporary arrays and its results.
    pub max_memory: Option<u64>,
    /// Do not compare the weights of a saved model, and the arrays computed from them, with their hashes: damage on the disk
    /// then goes unnoticed.
    pub unverified: bool,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("device", &self.device)
            .field("check", &self.check)
            .field("threads", &self.threads)
            .field("knobs", &self.knobs)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// A text that equal options share; `None` where they hold functions, which cannot be compared.
    pub(crate) fn identity(&self) -> Option<String> {
        let functions = self.notes.is_some()
            || self.printer.is_some()
            || self.watcher.is_some()
            || self.estimates.is_some()
            || self.announce.is_some();
        let Options { device, check, threads, target, simulated, knobs, tuned, cache, compiler, .. } = self;
        let Options { print_order, block, sample, stop_after, seed, steps, record, max_memory, schedule, .. } = self;
        let schedule = schedule.as_ref().map(|s| s.text());
        let first = format!("{:?}", (device, check, threads, target, simulated, knobs, tuned, cache, compiler));
        let second =
            format!("{:?}", (print_order, block, sample, stop_after, seed, steps, record, max_memory, schedule));
        (!functions).then(|| first + &second)
    }

    /// How much rounding moves a number, at most, where the coarsest float type is this one: products in f32 are of tf32 where
    /// the knob says so.
    pub fn rounding(&self, coarsest: Option<DType>) -> f64 {
        let on_gpu = matches!(self.device, Device::Sim | Device::Cuda);
        let cut = on_gpu && self.knobs.iter().any(|(name, value)| name == "tf32" && *value != 0);
        let eps = coarsest.map_or(0.0, widen::epsilon);
        if cut && eps > 0.0 { eps.max(widen::epsilon(DType::TF32)) } else { eps }
    }

    /// The defaults, as the environment changes them; [`VARIABLES`] says how. An error names the variable.
    pub fn from_env() -> Result<Options, String> {
        let get = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let mut options = Options { tuned: true, ..Options::default() };
        if let Some(v) = get("GIRIH_TUNED") {
            options.tuned = flag(&v).map_err(|e| format!("GIRIH_TUNED: {e}"))?;
        }
        if let Some(v) = get("GIRIH_DEVICE") {
            options.device = v.parse().map_err(|e| format!("GIRIH_DEVICE: {e}"))?;
        }
        if let Some(v) = get("GIRIH_THREADS") {
            options.threads = Some(threads(&v).map_err(|e| format!("GIRIH_THREADS: {e}"))?);
        }
        if let Some(v) = get("GIRIH_CHECK") {
            options.check = flag(&v).map_err(|e| format!("GIRIH_CHECK: {e}"))?;
        }
        // Other devices compile for this machine, regardless of the simulated target.
        if let Some(v) = get("GIRIH_TARGET") {
            let target = Target::named(&v);
            if target.is_none() && machine::cpu(&v).is_none() {
                let names = Target::NAMES.into_iter().chain(families()).collect::<Vec<_>>().join(", ");
                return Err(format!("GIRIH_TARGET: unknown target `{v}`; the targets are {names}"));
            }
            options.simulated = target.filter(|t| t.axes.threads > 1);
        }
        if let Some(v) = get("GIRIH_SEED") {
            options.seed = v.parse().map_err(|_| format!("GIRIH_SEED: expected a number, found `{v}`"))?;
        }
        if let Some(v) = get("GIRIH_SCHEDULES") {
            options.schedules = Some(schedules(&v).map_err(|e| format!("GIRIH_SCHEDULES: {e}"))?);
        }
        if let Some(v) = get(machine::FAMILY)
            && machine::cpu(&v).is_none()
        {
            let names = families().collect::<Vec<_>>().join(", ");
            return Err(format!("{}: unknown family of processors `{v}`; they are {names}", machine::FAMILY));
        }
        options.compiler = get("GIRIH_CC").or_else(|| get("CC"));
        crate::compile::cache::capacity()?;
        Ok(options)
    }

    /// An error where arrays take more than the limit allows.
    pub(crate) fn allow(&self, bytes: u64, what: &str) -> Result<(), Error> {
        match self.max_memory {
            Some(limit) if bytes > limit => {
                let (bytes, limit) = (bytes_text(bytes), bytes_text(limit));
                Err(Error::argument(format!("{what} take {bytes}, more than the limit of {limit}")))
            }
            _ => Ok(()),
        }
    }

    pub fn device(mut self, device: Device) -> Options {
        self.device = device;
        self
    }
    pub fn check(mut self, check: bool) -> Options {
        self.check = check;
        self
    }
    pub fn threads(mut self, threads: u32) -> Options {
        self.threads = Some(threads.max(1));
        self
    }
    pub fn cache(mut self, cache: CachePolicy) -> Options {
        self.cache = cache;
        self
    }
    pub fn knob(mut self, name: &str, value: i64) -> Options {
        self.knobs.push((name.to_string(), value));
        self
    }
    pub fn printer(mut self, printer: impl Fn([u32; 3], &str) + Send + Sync + 'static) -> Options {
        self.printer = Some(Arc::new(printer));
        self
    }

    /// The compiler's options, under the assumptions of a version.
    pub(crate) fn pipeline(&self, assume: Assumptions) -> crate::Result<pipeline::Options> {
        Ok(pipeline::Options {
            target: self.resolved_target(),
            knobs: self.all_knobs()?,
            assume,
            check: self.check,
            simulated: self.device == Device::Sim,
            stop_after: self.stop_after,
            // It is of the version that is compiled first.
            schedule: self.schedule.clone().filter(|_| assume == FAST || assume == PLANNED),
        })
    }

    /// Every knob of the compiler, with those of these options set.
    ///
    /// # Errors
    /// A knob that does not exist, or a value out of its range.
    pub fn all_knobs(&self) -> crate::Result<Knobs> {
        let mut knobs = Knobs::default();
        for (name, value) in &self.knobs {
            knobs.set(&format!("{name}={value}")).map_err(Error::argument)?;
        }
        Ok(knobs)
    }

    pub fn thread_count(&self) -> u32 {
        self.threads.unwrap_or_else(machine::threads).max(1)
    }
    /// The target, by default this machine, sm_90a for the simulator, and the GPU's own target for a GPU.
    pub fn resolved_target(&self) -> Target {
        let simulated = || self.simulated.clone().or_else(|| Target::named(SIMULATED));
        let own = || match self.device {
            Device::Sim => simulated(),
            Device::Cuda => cuda::device::Device::found().ok().and_then(|d| Target::named(d.target)).or_else(simulated),
            Device::Cpu | Device::Eval => None,
        };
        self.target.clone().or_else(own).unwrap_or_else(|| machine::target(self.thread_count()))
    }

    /// Refuses a target that the device does not run.
    pub(crate) fn check_device(&self) -> crate::Result<()> {
        if self.device == Device::Cuda {
            cuda::device::Device::found()?;
        }
        // Without a chosen target the device's own fits; a launch does not probe the machine.
        let Some(target) = &self.target else { return Ok(()) };
        let threads = target.axes.threads > 1;
        match self.device {
            Device::Cpu if threads => Err(Error::argument(format!(
                "kernels for {0} cannot run on this machine; `--device sim --target {0}` simulates them",
                target.name
            ))),
            Device::Cuda if !threads => Err(Error::argument(format!(
                "a GPU does not run kernels for the target {}; without `--target` they are compiled for the GPU at hand",
                target.name
            ))),
            Device::Sim if !threads => Err(Error::argument(format!(
                "the simulator runs kernels of GPUs, not of the target {}; name one: --target {SIMULATED}",
                target.name
            ))),
            _ => Ok(()),
        }
    }
}

/// The target of the simulator where none is chosen.
const SIMULATED: &str = "sm_90a";

/// The environment variables of the library, with their meaning.
pub const VARIABLES: [(&str, &str); 12] = [
    ("GIRIH_DEVICE", "where to run: cpu; eval, the reference evaluator; sim, the simulator of a GPU; or cuda, a GPU"),
    ("GIRIH_THREADS", "worker threads, 1 to 1024; one per core by default"),
    ("GIRIH_CHECK", "1 checks every memory access of native code, 0 does not"),
    (
        "GIRIH_SEED",
        "the order in which the device eval runs blocks, and the schedule of the device sim's threads; 0 by default",
    ),
    (
        "GIRIH_SCHEDULES",
        "1 to 1000: how many schedules, from GIRIH_SEED on, the device sim runs every launch under; they must leave the same bits",
    ),
    ("GIRIH_TUNED", "0 ignores the schedules that `girih tune` has found, 1 uses them"),
    (
        "GIRIH_CUDA_DRIVER",
        "the driver of the device cuda; by default libcuda.so.1 where the system looks for it. girih-shim has one that simulates a GPU",
    ),
    (
        "GIRIH_CC",
        "the C compiler's command; by default that of CC, or else cc, gcc, clang, `zig cc`, or the Python package ziglang",
    ),
    (
        machine::FAMILY,
        "compile for processors of this family alone, as `girih build --cpu` has them, rather than for all that this one has",
    ),
    ("GIRIH_CACHE_DIR", "the folder of compiled kernels; by default girih in XDG_CACHE_HOME or in ~/.cache"),
    (
        "GIRIH_CACHE_SIZE",
        "the limit on its size, such as 500M or 2G (default 1G); the least recently used kernels are removed first",
    ),
    (
        "GIRIH_TARGET",
        "the target to compile for: cpu, this machine; sm_80, sm_90a, sm_100a or sm_120, to look at or to simulate; in Python \
         what the device sim simulates",
    ),
];

fn families() -> impl Iterator<Item = &'static str> {
    machine::cpus().map(|cpu| cpu.name)
}

/// How many schedules of the simulator a text asks for.
pub fn schedules(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|n| (1..=1000).contains(n));
    count.ok_or_else(|| format!("expected a number from 1 to 1000, found `{text}`"))
}

/// Parses a text that means on or off.
pub fn flag(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(format!("expected on (1, true, yes, on) or off (0, false, no, off), found `{text}`")),
    }
}

/// A number of bytes: `1048576`, `500M`, `2G`, `1.5GiB`; the units are powers of 1024.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("expected a size such as 500M or 2G, found `{text}`");
    let upper = text.trim().to_ascii_uppercase();
    let end = upper.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(upper.len());
    let (number, unit) = upper.split_at(end);
    let scale: u64 = match unit.trim() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        "T" | "TB" | "TIB" => 1 << 40,
        _ => return Err(wrong()),
    };
    match number.parse::<u64>() {
        Ok(n) => n.checked_mul(scale).ok_or_else(wrong),
        Err(_) => Ok((number.parse::<f64>().map_err(|_| wrong())? * scale as f64) as u64),
    }
}

/// A number of threads as text.
pub fn threads(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(n) if (1..=1024).contains(&n) => Ok(n),
        _ => Err(format!("expected a number of threads from 1 to 1024, found `{text}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_on_or_off() {
        for (text, on) in [("1", true), ("TRUE", true), ("yes", true), ("On", true), ("0", false), ("no", false)] {
            assert_eq!(flag(text), Ok(on), "{text}");
        }
        for text in ["maybe", "2", "", "-1", "yess"] {
            assert!(flag(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, n) in
            [("0", 0), ("123", 123), ("1k", 1024), ("500M", 500 << 20), ("1.5GiB", 3 << 29), ("2 TB", 2 << 40)]
        {
            assert_eq!(bytes(text), Ok(n), "{text}");
        }
        for text in ["", "M", "lots", "-1", "1X", "1.2.3", "99999999999T"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
