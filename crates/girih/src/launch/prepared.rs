//! One launch: arguments fitted, facts tested, the right version compiled, then run, as often as wanted.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use girih_compiler::base::host::Waiting;
use girih_compiler::base::launch::Assumptions;
use girih_compiler::base::launch::{Launch, Trap};
use girih_compiler::base::memory::{Fault, Memory};
use girih_compiler::base::provenance::SourceId;
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::cuda_tile::eval;
use girih_compiler::explain;
use girih_compiler::loops::launch_facts::{self, Traffic};

use crate::compile::version::{FAST, Native, Version};
use crate::cuda::{self, launch::Loaded};
use crate::error::{Error, Result};
use crate::launch::blocks::{self, FloatControl, Run, Stop};
use crate::launch::host::{self, Held, NativeHost, STALL};
use crate::launch::simulate;
use crate::launch::unwritten::{Notes, Noting};
use crate::memory::args::{self, Arg, Bound, Extent, ParamKind};
use crate::memory::regions::RealMemory;
use crate::options::{Device, Options, PrintOrder, Printer};
use crate::program::Kernel;
use crate::system::machine;
use crate::system::signals::{self, Launching};
use girih_compiler::spec::MAX_GRID;

/// The outcome of a launch.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Running alone, in seconds.
    pub seconds: f64,
    /// The evaluator's findings, and elements that a checked launch left unwritten.
    pub warnings: Vec<Diagnostic>,
}

/// How a prepared launch was compiled.
#[derive(Clone, Copy, Debug)]
pub struct Compiled {
    /// From tile program to loaded code, in seconds.
    pub seconds: f64,
    /// The native code was found on disk.
    pub cached: bool,
    /// The assumptions of the version that runs, which hold for this launch.
    pub assume: Assumptions,
}

/// A launch ready to run. The arguments stay borrowed.
pub struct Prepared<'a> {
    kernel: &'a Kernel<'a>,
    bound: Bound<'a>,
    grid: [u32; 3],
    native: Option<(Arc<Version>, Native)>,
    /// The version that the simulator runs.
    simulated: Option<Arc<Version>>,
    /// The version that the GPU runs.
    loaded: Option<(Arc<Version>, Arc<Loaded>)>,
    compiled: Option<Compiled>,
}

/// Refuses an axis without blocks, or with more than can be counted.
pub(crate) fn check_grid(grid: [u32; 3]) -> Result<()> {
    match grid.into_iter().find(|n| !(1..=MAX_GRID).contains(n)) {
        None => Ok(()),
        Some(n) => {
            let message = format!("a grid of {n} blocks along one axis is not possible (1 to {MAX_GRID})");
            Err(Error::Argument { code: Code::BadGrid, message })
        }
    }
}

/// Refuses a grid that cannot be counted, and a block to run alone that is not in it.
fn check_blocks(options: &Options, grid: [u32; 3]) -> Result<()> {
    check_grid(grid)?;
    if grid.iter().map(|&n| i128::from(n)).product::<i128>() > i128::from(i64::MAX) {
        let message = format!(
            "a grid of {} has more blocks than can be counted (2^63 - 1)",
            grid.map(|n| n.to_string()).join(",")
        );
        return Err(Error::Argument { code: Code::BadGrid, message });
    }
    if let Some(block) = options.block
        && block.iter().zip(&grid).any(|(b, g)| b >= g)
    {
        let list = |a: [u32; 3]| a.map(|n| n.to_string()).join(",");
        let message = format!("block {} lies outside the grid {}", list(block), list(grid));
        return Err(Error::Argument { code: Code::BadGrid, message });
    }
    Ok(())
}

/// A launch whose facts were tested, in all that those depend on, and the version it can use.
pub(crate) struct Fit {
    grid: [u32; 3],
    slots: Vec<u64>,
    extents: Vec<Option<Extent>>,
    /// No memory is reached through addresses in memory.
    direct: bool,
    overlap: bool,
    version: Arc<Version>,
}

impl Fit {
    /// The same launch on the same memory: nothing has to be computed.
    fn is_same(&self, grid: [u32; 3], bound: &Bound<'_>) -> bool {
        let direct = self.direct && bound.reached.is_empty();
        direct && self.grid == grid && self.slots == bound.slots && self.extents == bound.extents
    }

    /// The same launch on other memory: equal scalars, equal lengths, and as much of each array before its first element.
    fn is_alike(&self, grid: [u32; 3], bound: &Bound<'_>, overlap: bool) -> bool {
        let here = self.slots.iter().copied().zip(self.extents.iter().copied());
        let there = bound.slots.iter().copied().zip(bound.extents.iter().copied());
        let alike = |(slot, extent): (u64, Option<Extent>), (other, of_other): (u64, Option<Extent>)| match (
            extent, of_other,
        ) {
            (None, None) => slot == other,
            (Some(a), Some(b)) => a.bytes == b.bytes && slot.wrapping_sub(a.start) == other.wrapping_sub(b.start),
            _ => false,
        };
        self.grid == grid && self.overlap == overlap && here.zip(there).all(|(a, b)| alike(a, b))
    }

    fn remember(&mut self, bound: &Bound<'_>) {
        self.slots.clone_from(&bound.slots);
        self.extents.clone_from(&bound.extents);
        self.direct = bound.reached.is_empty();
    }
}

/// How many launches are remembered per kernel.
const FITS: usize = 8;

impl<'a> Prepared<'a> {
    pub(crate) fn new(kernel: &'a Kernel<'a>, grid: [u32; 3], args: &'a mut [Arg<'_>]) -> Result<Prepared<'a>> {
        check_blocks(kernel.options(), grid)?;
        let bound = args::bind(kernel.name(), kernel.params(), args)?;
        let read_only = bound.extents.iter().flatten().any(|e| !e.writable);
        let mut prepared =
            Prepared { kernel, bound, grid, native: None, simulated: None, loaded: None, compiled: None };
        kernel.options().check_device()?;
        if kernel.options().device != Device::Eval || read_only {
            let start = Instant::now();
            let version = prepared.choose(prepared.bound.overlap())?;
            prepared.check_sizes(&version)?;
            prepared.compile(version, start)?;
        }
        Ok(prepared)
    }

    /// On raw addresses: as `new`, but reuses the checks of the last launches.
    pub(crate) fn raw(kernel: &'a Kernel<'a>, grid: [u32; 3], bound: Bound<'a>) -> Result<Prepared<'a>> {
        check_blocks(kernel.options(), grid)?;
        let mut prepared =
            Prepared { kernel, bound, grid, native: None, simulated: None, loaded: None, compiled: None };
        kernel.options().check_device()?;
        if kernel.options().device == Device::Eval {
            return Ok(prepared);
        }
        let start = Instant::now();
        let version = prepared.fitting()?;
        prepared.compile(version, start)?;
        Ok(prepared)
    }

    /// The version for this launch, which it may use as the last launches were tested, or as it is tested now.
    fn fitting(&self) -> Result<Arc<Version>> {
        let Prepared { kernel, bound, grid, .. } = self;
        if let Some(fit) = kernel.fits.lock().iter().find(|f| f.is_same(*grid, bound)) {
            return Ok(fit.version.clone());
        }
        // Overlaps between memory that is only read do no harm.
        let overlap = bound.overlap() && bound.conflict(&kernel.version(FAST)?.traffic.writes);
        if let Some(fit) = kernel.fits.lock().iter_mut().find(|f| f.is_alike(*grid, bound, overlap)) {
            fit.remember(bound);
            return Ok(fit.version.clone());
        }
        let version = self.choose(overlap)?;
        self.check_sizes(&version)?;
        let (slots, extents) = (bound.slots.clone(), bound.extents.clone());
        let direct = bound.reached.is_empty();
        let mut fits = kernel.fits.lock();
        fits.truncate(FITS - 1);
        fits.insert(0, Fit { grid: *grid, slots, extents, direct, overlap, version: version.clone() });
        Ok(version)
    }

    fn compile(&mut self, version: Arc<Version>, start: Instant) -> Result<()> {
        match self.kernel.options().device {
            Device::Cpu => {
                let native = self.kernel.native(&version)?;
                let seconds = start.elapsed().as_secs_f64();
                self.compiled = Some(Compiled { seconds, cached: native.cached, assume: version.assume });
                self.native = Some((version, native));
            }
            Device::Sim => self.simulated = Some(version),
            Device::Cuda => {
                let loaded = self.kernel.loaded(&version)?;
                let seconds = start.elapsed().as_secs_f64();
                self.compiled = Some(Compiled { seconds, cached: false, assume: version.assume });
                self.loaded = Some((version, loaded));
            }
            Device::Eval => {}
        }
        Ok(())
    }

    /// The fastest version whose assumptions hold for this launch.
    fn choose(&self, overlap: bool) -> Result<Arc<Version>> {
        let no_alias = !overlap;
        let fast = self.kernel.version(Assumptions { no_alias, ..FAST })?;
        if launch_facts::holds(&fast.lowered.tile, &self.launch()) {
            return Ok(fast);
        }
        self.kernel.version(Assumptions { no_wrap: false, no_alias })
    }

    fn launch(&self) -> Launch {
        let mut launch = Launch::new(self.grid, self.bound.slots.clone());
        launch.seed = self.kernel.options().seed;
        launch.only_block = self.kernel.options().block;
        launch.sample = self.kernel.options().sample.filter(|_| self.kernel.options().device == Device::Sim);
        launch
    }

    /// The launch for an evaluator, within the memory that is left.
    fn evaluated(&self) -> Launch {
        Launch { budget: machine::budget(), ..self.launch() }
    }

    /// Refuses buffers that are too small for the launch's accesses, and shared ones that would be written.
    fn check_sizes(&self, version: &Version) -> Result<()> {
        let params = self.kernel.params();
        for (i, extent) in self.bound.extents.iter().enumerate() {
            if extent.is_some_and(|e| !e.writable) && version.traffic.writes.get(i) == Some(&true) {
                return Err(Error::argument(format!(
                    "argument `{}` was given as a shared slice, but the kernel may write it; pass a `&mut` slice",
                    params[i].name
                )));
            }
        }
        // With checks on, the run itself says where.
        if self.kernel.options().check { Ok(()) } else { self.check_overrun(version) }
    }

    /// Refuses buffers that are too small for an access that certainly happens.
    fn check_overrun(&self, version: &Version) -> Result<()> {
        // A single block is not the whole grid.
        if self.kernel.options().block.is_some() {
            return Ok(());
        }
        let params = self.kernel.params();
        let indices = |i: usize, dtype| match params.get(i)?.kind {
            ParamKind::Pointer(_) => self.bound.indices(i, dtype),
            ParamKind::Scalar(_) => None,
        };
        match launch_facts::overrun(&version.lowered.loops, self.grid, &self.bound.slots, &indices) {
            None => Ok(()),
            Some(o) => Err(Error::Argument {
                code: Code::BufferTooSmall,
                message: format!(
                    "buffer `{}` holds {}, but the kernel {} index {}",
                    params.get(o.param).map_or("?", |p| &p.name),
                    args::count_of(&o.indices),
                    if o.write { "writes" } else { "reads" },
                    o.index
                ),
            }),
        }
    }

    /// `None` on the evaluator, which compiles nothing.
    pub fn compiled(&self) -> Option<Compiled> {
        self.compiled
    }

    /// For [`Options::sample`]: the number of blocks whose threads run some `statements` statements together, but at least `least`.
    /// `None` where the grid has no more, and on other devices than the simulator.
    #[doc(hidden)]
    pub fn sample(&self, statements: f64, least: u64) -> Option<u64> {
        simulate::sample(&self.simulated.as_ref()?.lowered, &self.launch(), statements, least)
    }

    pub fn kernel(&self) -> &Kernel<'a> {
        self.kernel
    }
    pub fn grid(&self) -> [u32; 3] {
        self.grid
    }

    /// Operations of the kernel's contractions in the launch, a multiply and an add each; `None` where the kernel computes a
    /// loop's bound.
    pub fn flops(&self) -> Option<f64> {
        self.kernel.contraction_work(self.grid, &self.bound.slots)
    }

    /// The bytes of the arrays that the kernel reads, and of those that it writes.
    pub fn bytes(&self) -> u64 {
        let bytes = |i: usize| self.bound.extents.get(i)?.as_ref().map(|e| e.bytes);
        self.accessed().filter_map(|(i, read, write)| Some(bytes(i)? * (u64::from(read) + u64::from(write)))).sum()
    }

    /// The positions of the arguments whose memory the kernel both reads and writes: another launch starts from other values.
    pub fn updated(&self) -> Vec<usize> {
        self.accessed().filter(|(_, read, write)| *read && *write).map(|(i, ..)| i).collect()
    }

    /// The arguments with memory of their own, and whether the kernel reads and writes it through any parameter.
    fn accessed(&self) -> impl Iterator<Item = (usize, bool, bool)> {
        let Traffic { reads, writes, .. } = self.traffic();
        let owner = &self.bound.owner;
        let any = move |of: usize, used: &[bool]| owner.iter().zip(used).any(|(o, used)| *o == of && *used);
        let own = owner.iter().enumerate().filter(|(i, o)| i == *o).map(|(i, _)| i);
        own.map(move |i| (i, any(i, &reads), any(i, &writes)))
    }

    /// The parameters whose memory the kernel reads or writes; all, where it has not been compiled.
    pub fn traffic(&self) -> Traffic {
        let compiled = self.native.as_ref().map(|(version, _)| version);
        match compiled.or(self.loaded.as_ref().map(|(version, _)| version)) {
            Some(version) => version.traffic.clone(),
            None => {
                let pointers: Vec<bool> = self.bound.extents.iter().map(Option::is_some).collect();
                Traffic { reads: pointers.clone(), fills: vec![false; pointers.len()], writes: pointers }
            }
        }
    }

    /// Runs the launch and waits for it.
    pub fn run(&mut self) -> Result<Report> {
        match (&self.native, &self.simulated, &self.loaded) {
            (Some((version, native)), _, _) => self.run_native(version, native),
            (None, Some(version), _) => self.run_sim(version),
            (None, None, Some((version, loaded))) => self.run_on_gpu(version, loaded),
            (None, None, None) => self.run_eval(),
        }
    }

    /// On the GPU, whose prints have all arrived when the launch has ended.
    fn run_on_gpu(&self, version: &Version, loaded: &Loaded) -> Result<Report> {
        let addresses = self.kernel.global_addresses(&version.lowered.tile)?;
        let mut memory = self.bound.memory(self.kernel.params());
        self.kernel.globals().register(&mut memory);
        let globals = addresses.into_iter().map(|at| at as u64).collect();
        let launch = Launch { globals, ..self.launch() };
        let one = Launching::begin()?;
        let seconds = cuda::launch::run(loaded, &version.lowered, &launch, &mut memory, self.bound.stream)?;
        drop(one);
        Ok(Report { seconds, warnings: vec![] })
    }

    fn run_native(&self, version: &Version, native: &Native) -> Result<Report> {
        let options = self.kernel.options();
        let addresses = self.kernel.global_addresses(&version.lowered.loops)?;
        let mut memory = RealMemory::new();
        if options.check {
            memory = self.bound.memory(self.kernel.params());
            self.kernel.globals().register(&mut memory);
        }
        let host = NativeHost {
            messages: &version.messages,
            memory: &memory,
            text: self.kernel.program().text(),
            grid: self.grid,
            order: options.print_order,
            printer: options.printer.as_ref(),
            held: Mutex::default(),
        };
        let only = options.block.map(|[x, y, z]| {
            let (gx, gy) = (i64::from(self.grid[0]), i64::from(self.grid[1]));
            let at = i64::from(x) + gx * (i64::from(y) + gy * i64::from(z));
            (at, at + 1)
        });
        let mut extents = self.bound.extent_table();
        let mut notes = (options.check && only.is_none()).then(|| Notes::of(&self.bound, &version.traffic));
        if let Some(notes) = &mut notes {
            notes.enter(&mut extents);
        }
        let run = Run {
            kernel: native.kernel,
            args: &self.bound.slots,
            grid: self.grid,
            only,
            globals: &addresses,
            extents: &extents,
            order: version.order,
            threads: options.thread_count() as usize,
            cost: Some(&version.cost),
        };
        let start = Instant::now();
        // SAFETY: arguments, globals and extents were bound to the parameters of the entry that was compiled. That the
        // program keeps to the memory it was given is the trust that `Kernel::launch` states.
        let outcome = unsafe { blocks::run(&run, &host) };
        let seconds = start.elapsed().as_secs_f64();
        host.finish();
        match outcome {
            Ok(()) => {
                // A load whose value nobody needs may not be there to be checked.
                if options.check {
                    self.check_overrun(version)?;
                }
                let warnings =
                    notes.map(|notes| notes.warnings(&self.bound, self.kernel.params(), &version.lowered.loops));
                Ok(Report { seconds, warnings: warnings.unwrap_or_default() })
            }
            Err(Stop::Error(error)) => Err(error),
            Err(Stop::Fault(fault)) => Err(Error::Fault { kernel: self.kernel.name().into(), what: fault.text() }),
            Err(Stop::Trap(trap)) => {
                let trap = version.messages.trap(&trap, self.grid, self.kernel.params(), &self.bound);
                Err(Error::Trap(Box::new(trap)))
            }
        }
    }

    fn run_eval(&self) -> Result<Report> {
        let module = self.kernel.program.module();
        let globals = self.kernel.module_globals()?;
        let options = eval::Options { globals, ..eval::Options::default() };
        self.interpreted(&mut |launch, memory, host| {
            Ok(eval::run_with(module, self.kernel.name(), launch, memory, host, &options)?.warnings)
        })
    }

    fn run_sim(&self, version: &Version) -> Result<Report> {
        let addresses = self.kernel.global_addresses(&version.lowered.tile)?;
        let globals: Vec<u64> = addresses.into_iter().map(|at| at as u64).collect();
        let module = self.kernel.program.module();
        let lines = self.kernel.program.text();
        let places = |source: SourceId| explain::origin(module, lines, source);
        self.interpreted(&mut |launch, memory, host| {
            let launch = Launch { globals: globals.clone(), ..launch.clone() };
            simulate::kernel(&version.lowered, &places, &launch, memory, host, self.kernel.options()).map(|()| vec![])
        })
    }

    /// A run on an interpreter, which `run` is.
    fn interpreted(&self, run: &mut Interpreter<'_>) -> Result<Report> {
        let options = self.kernel.options();
        let mut memory = self.bound.memory(self.kernel.params());
        self.kernel.globals().register(&mut memory);
        let mut host = EvalHost {
            order: options.print_order,
            printer: options.printer.as_ref(),
            held: Held::default(),
            progress: Instant::now(),
            turns: 0,
            text: self.kernel.program().text(),
        };
        let cooperative = signals::Cooperative::enter();
        let one = Launching::begin()?;
        let start = Instant::now();
        let control = FloatControl::standard();
        // A program that cannot be lowered says so when it is compiled.
        let version = (options.check && options.block.is_none()).then(|| self.kernel.version(FAST).ok()).flatten();
        let mut notes = version.as_ref().map(|version| Notes::of(&self.bound, &version.traffic));
        let outcome = match &mut notes {
            None => run(&self.evaluated(), &mut memory, &mut host),
            Some(notes) => {
                let starts = self.bound.extents.iter().map(|e| e.as_ref().map(|e| e.start)).collect();
                run(&self.evaluated(), &mut Noting { memory: &mut memory, notes, starts }, &mut host)
            }
        };
        drop(control);
        let seconds = start.elapsed().as_secs_f64();
        let stopped = signals::stopping();
        drop(one);
        drop(cooperative);
        for ([z, y, x], text) in std::mem::take(&mut host.held).into_texts() {
            host::deliver(host.printer, [x, y, z], &text);
        }
        match outcome {
            Ok(mut warnings) => {
                if let (Some(notes), Some(version)) = (&notes, &version) {
                    warnings.extend(notes.warnings(&self.bound, self.kernel.params(), &version.lowered.loops));
                }
                Ok(Report { seconds, warnings })
            }
            Err(_) if stopped => Err(Error::Interrupted),
            // The program cannot run on any device, so the program is refused, as the compiler would.
            Err(trap) if trap.code == Code::LibraryNeeded => {
                let refusal = Diagnostic { span: trap.span, ..Diagnostic::error(trap.code, trap.message) };
                Err(Error::Program(vec![refusal.from(*trap.frames)]))
            }
            Err(trap) => Err(Error::Trap(Box::new(trap))),
        }
    }
}

impl Prepared<'_> {
    /// Runs the evaluator until an operation stores the element.
    pub(crate) fn find_store(&self, param: usize, element: u64) -> Result<Option<Trap>> {
        let params = self.kernel.params();
        let (Some(ParamKind::Pointer(dtype)), Some(Some(extent))) =
            (params.get(param).map(|p| p.kind), self.bound.extents.get(param))
        else {
            return Ok(None);
        };
        let at = extent.start + if dtype.bits() == 4 { element / 2 } else { element * dtype.bytes() };
        let mut memory = Watched { memory: self.bound.memory(params), at, hit: false };
        let entry = self.kernel.name();
        let outcome = eval::run(self.kernel.program().module(), entry, &self.evaluated(), &mut memory, &mut Mute);
        match outcome {
            Err(trap) if memory.hit => Ok(Some(trap)),
            _ if signals::interrupted() => Err(Error::Interrupted),
            Err(trap) => Err(Error::Trap(Box::new(trap))),
            Ok(_) => Ok(None),
        }
    }
}

/// Memory in which a write to one byte is a fault, so that the evaluator names the operation that wrote it.
struct Watched {
    memory: RealMemory,
    at: u64,
    hit: bool,
}

impl Memory for Watched {
    fn read(&self, addr: u64, out: &mut [u8]) -> std::result::Result<(), Fault> {
        self.memory.read(addr, out)
    }
    fn write(&mut self, addr: u64, bytes: &[u8]) -> std::result::Result<(), Fault> {
        if (addr..addr.saturating_add(bytes.len() as u64)).contains(&self.at) {
            self.hit = true;
            return Err(Fault { addr, len: bytes.len() as u64 });
        }
        self.memory.write(addr, bytes)
    }
    fn allocate(&mut self, len: u64, align: u64) -> u64 {
        self.memory.allocate(len, align)
    }
    fn region(&self, addr: u64) -> Option<(String, u64, u64)> {
        self.memory.region(addr)
    }
}

struct Mute;

impl eval::Host for Mute {
    fn print(&mut self, _: [u32; 3], _: &str) {}
    fn interrupted(&self) -> bool {
        signals::interrupted()
    }
}

/// Runs a launch, and gives the warnings of the run.
type Interpreter<'a> =
    dyn FnMut(&Launch, &mut dyn Memory, &mut dyn eval::Host) -> std::result::Result<Vec<Diagnostic>, Trap> + 'a;

struct EvalHost<'a> {
    order: PrintOrder,
    printer: Option<&'a Printer>,
    /// By z, y, x: the linear order.
    held: Held<[u32; 3]>,
    /// When a block last finished, or a stall was last reported.
    progress: Instant,
    turns: u32,
    /// The program's text, for places.
    text: &'a str,
}

impl eval::Host for EvalHost<'_> {
    fn print(&mut self, [x, y, z]: [u32; 3], text: &str) {
        match self.order {
            PrintOrder::Finish | PrintOrder::AtOnce => host::deliver(self.printer, [x, y, z], text),
            PrintOrder::Index => self.held.push([z, y, x], text),
        }
    }
    fn at_once(&self) -> bool {
        self.order == PrintOrder::AtOnce
    }
    fn finished(&mut self, _: [u32; 3]) {
        self.progress = Instant::now();
    }
    fn gave_way(&mut self) -> bool {
        self.turns = self.turns.wrapping_add(1);
        let stalled = self.turns.is_multiple_of(256) && self.progress.elapsed() >= STALL;
        if stalled {
            self.progress = Instant::now();
        }
        stalled
    }
    fn waiting(&mut self, blocks: &[Waiting]) {
        host::say_stalled(self.text, blocks);
    }
    fn interrupted(&self) -> bool {
        signals::stopping_here()
    }
}
