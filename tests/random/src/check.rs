//! Runs one program through bytecode and back, and through the evaluators: the tile program, the lifted loops, the IR
//! after every rule, and kernel IR; then the same for a GPU, whose kernel IR the simulator runs.

use crate::data::{self, Image};
use crate::program::{Param, Program};
use girih_compiler::base::launch::Assumptions;
use girih_compiler::base::launch::{Launch, Trap};
use girih_compiler::base::memory::{Memory, VecMemory};
use girih_compiler::base::{Code, Diagnostic, host};
use girih_compiler::cuda_tile::bytecode::{self, write::VERSIONS};
use girih_compiler::cuda_tile::{self, ir::Module};
use girih_compiler::kernel::sim;
use girih_compiler::pipeline::{self, Event, Lowered, Observer, Options};
use girih_compiler::tile::target::Target;
use girih_compiler::{kernel, loops};

/// Operations that the reference may take for a program.
const MOST_STEPS: u64 = 20_000_000;

/// Where a program went wrong.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// `parse`, `eval`, `lift`, `l:001_splice_producers`, `legalise`, `kernel`, `cpu`, ...
    pub stage: String,
    pub what: String,
}

impl Mismatch {
    fn new(stage: &str, what: impl Into<String>) -> Mismatch {
        Mismatch { stage: stage.into(), what: what.into() }
    }
}

/// A program that every evaluator agrees on, ready to be compiled.
pub struct Checked {
    pub program: Program,
    pub want: Image,
    pub lowered: Lowered,
    pub options: Options,
}

pub enum Verdict {
    Agrees(Box<Checked>),
    /// The reference found something undefined in it.
    Undefined,
}

fn place(program: &Program, image: &Image) -> (VecMemory, Launch, Vec<u64>) {
    let mut memory = VecMemory::new();
    let (mut slots, mut addresses) = (vec![], vec![]);
    let mut images = image.iter();
    for param in &program.params {
        match param {
            Param::Buffer { name, .. } => {
                let at = memory.add(name, images.next().cloned().unwrap_or_default());
                addresses.push(at);
                slots.push(at);
            }
            Param::Int { value, .. } => slots.push(u64::from(*value as u32)),
        }
    }
    (memory, Launch::new(program.grid, slots), addresses)
}

fn collect(memory: &VecMemory, addresses: &[u64]) -> Image {
    addresses.iter().map(|&a| memory.bytes(a).unwrap_or_default().to_vec()).collect()
}

fn first(diagnostics: &[Diagnostic]) -> String {
    diagnostics
        .iter()
        .find(|d| d.is_error())
        .map_or_else(|| "no diagnostic".into(), |d| format!("{}: {}", d.code.text(), d.message))
}

struct AfterEveryRule<'a> {
    program: &'a Program,
    image: &'a Image,
    want: &'a Image,
}

impl AfterEveryRule<'_> {
    fn agrees(&self, kernel: &loops::ir::Kernel) -> Result<(), String> {
        let (mut memory, launch, addresses) = place(self.program, self.image);
        if !loops::launch_facts::holds(kernel, &launch) {
            // This version is not for this launch; the general one is made and checked in its place.
            return Ok(());
        }
        loops::eval::run(kernel, &launch, &mut memory, &mut host::Silent)
            .map_err(|t| format!("trap: {}", t.message))?;
        match data::difference(self.program, self.want, &collect(&memory, &addresses)) {
            Some(difference) => Err(difference),
            None => Ok(()),
        }
    }
}

impl Observer for AfterEveryRule<'_> {
    fn see(&mut self, event: &Event<'_>) -> Result<(), Diagnostic> {
        let (Event::Loop(ran) | Event::Tile(ran)) = event else { return Ok(()) };
        let Some(after) = ran.after else { return Ok(()) };
        self.agrees(after).map_err(|what| Diagnostic::error(Code::InternalBug, ran.name).help(what))
    }
}

/// Options that differ from program to program: assumptions on and off, vector widths.
fn options(seed: u64) -> Options {
    let mut options = Options::default();
    if seed % 4 == 1 {
        options.assume = Assumptions { no_wrap: false, no_alias: false };
    }
    if seed % 5 == 2 {
        options.target = options.target.with_vectors(32, 16);
    }
    options.check = seed % 7 == 3;
    options
}

/// Bytecode of any version, and the text of NVIDIA's disassembler, stand for the same program.
fn bytecode_agrees(module: &Module, seed: u64) -> Result<(), String> {
    let (_, oldest) = bytecode::write_oldest(module).map_err(|d| first(&d))?;
    let version = VERSIONS[seed as usize % VERSIONS.len()].max(oldest);
    let bytes = bytecode::write(module, version).map_err(|d| first(&d))?;
    let read = bytecode::read(&bytes).map_err(|d| first(&d))?.module;
    let text = cuda_tile::print::print_nvidia_debug(module);
    if cuda_tile::print::print_nvidia_debug(&read) != text {
        return Err("the text is not that of what was read from bytecode".into());
    }
    let parsed = cuda_tile::parse::parse(&text);
    let Some(parsed) = parsed.module else { return Err(first(&parsed.diagnostics)) };
    for (from, again) in [("bytecode", &read), ("text", &parsed)] {
        match bytecode::write(again, version) {
            Ok(other) if other == bytes => {}
            Ok(_) => return Err(format!("bytecode {version} of what was read from {from} differs")),
            Err(d) => return Err(first(&d)),
        }
    }
    Ok(())
}

pub fn check(program: &Program, seed: u64) -> Result<Verdict, Mismatch> {
    let front = pipeline::front(&program.text).map_err(|d| Mismatch::new("front", first(&d)))?;
    let module: &Module = &front.module;
    bytecode_agrees(module, seed).map_err(|what| Mismatch::new("bytecode", what))?;
    let image = data::image(program);
    let (mut memory, launch, addresses) = place(program, &image);
    // No random program runs for long; one that lost its `break` as it was shrunk runs for ever.
    let limited = cuda_tile::eval::Options { fuel: Some(MOST_STEPS), ..Default::default() };
    match cuda_tile::eval::run_with(module, "random", &launch, &mut memory, &mut cuda_tile::eval::Silent, &limited) {
        Ok(_) => {}
        Err(trap) if trap.code == Code::UndefinedUsed => return Ok(Verdict::Undefined),
        Err(trap) => return Err(Mismatch::new("eval", format!("{}: {}", trap.code.text(), trap.message))),
    }
    let want = collect(&memory, &addresses);

    let lifted = loops::lift::lift(module, "random").map_err(|d| Mismatch::new("lift", first(&d)))?;
    let mut each = AfterEveryRule { program, image: &image, want: &want };
    each.agrees(&lifted).map_err(|what| Mismatch::new("lift", what))?;

    let mut options = options(seed);
    let mut lower = |options: &Options| {
        pipeline::lower(module, "random", options, &mut each).map_err(|d| match d.first() {
            Some(d) if d.help.is_some() => Mismatch::new(&d.message, d.help.clone().unwrap_or_default()),
            _ => Mismatch::new("lower", first(&d)),
        })
    };
    let mut lowered = lower(&options)?;
    if options.assume.no_wrap && !loops::launch_facts::holds(&lowered.loops, &launch) {
        options.assume.no_wrap = false;
        lowered = lower(&options)?;
    }
    for (kernel, stage) in [(&lowered.loops, loops::print::Dialect::Loop), (&lowered.tile, loops::print::Dialect::Tile)]
    {
        let text = loops::print::print(kernel, stage);
        match loops::parse::parse(&text) {
            Ok((again, _)) if loops::print::print(&again, stage) == text => {}
            Ok(_) => return Err(Mismatch::new("print loop IR", "printing, parsing and printing again differs")),
            Err(d) => return Err(Mismatch::new("print loop IR", d.message)),
        }
    }
    if let Some(breach) = kernel::verify::verify(&lowered.kernel).into_iter().next() {
        return Err(Mismatch::new("legalise", breach));
    }
    let text = kernel::print::print(&lowered.kernel);
    match kernel::parse::parse(&text) {
        Ok(again) if kernel::print::print(&again) == text => {}
        Ok(_) => return Err(Mismatch::new("print kernel IR", "printing, parsing and printing again differs")),
        Err(d) => return Err(Mismatch::new("print kernel IR", d.message)),
    }
    let (mut memory, launch, addresses) = place(program, &image);
    kernel::eval::run(&lowered.kernel, &lowered.tile, &launch, &mut memory, &mut host::Silent)
        .map_err(|t| Mismatch::new("kernel", format!("trap: {}", t.message)))?;
    if let Some(difference) = data::difference(program, &want, &collect(&memory, &addresses)) {
        return Err(Mismatch::new("kernel", difference));
    }
    simulate(program, module, seed, &options, &mut each)?;
    Ok(Verdict::Agrees(Box::new(Checked { program: program.clone(), want, lowered, options })))
}

/// The program for a GPU: each rule, then what the simulator says of the kernel and what it stores.
fn simulate(
    program: &Program,
    module: &Module,
    seed: u64,
    like: &Options,
    each: &mut AfterEveryRule<'_>,
) -> Result<(), Mismatch> {
    let gpus = ["sm_80", "sm_90a", "sm_100a", "sm_120"];
    let name = gpus[seed as usize % gpus.len()];
    let mut options = Options { target: Target::named(name).unwrap_or_default(), check: false, ..like.clone() };
    options.knobs.threads = [256, 32, 128][seed as usize % 3];
    let lowered = match pipeline::lower(module, "random", &options, each) {
        Ok(lowered) => lowered,
        // An operation that GPUs do not run yet is refused by name, such as an alloca.
        Err(d) if d.iter().any(|d| d.code == Code::CannotLower) => return Ok(()),
        Err(d) => match d.first() {
            Some(d) if d.help.is_some() => {
                return Err(Mismatch::new(&d.message, d.help.clone().unwrap_or_default()));
            }
            _ => return Err(Mismatch::new("lower for a GPU", first(&d))),
        },
    };
    let (mut memory, launch, addresses) = place(program, each.image);
    let wrong = |what| Mismatch::new("simulator", format!("{what}\n{}", kernel::print::print(&lowered.kernel)));
    simulated(&lowered, &launch, &mut memory, seed).map_err(|t| wrong(t.message))?;
    match data::difference(program, each.want, &collect(&memory, &addresses)) {
        Some(difference) => Err(wrong(difference)),
        None => Ok(()),
    }
}

/// A kernel of threads under the schedule of a seed; what the simulator finds is an error.
pub fn simulated(made: &Lowered, launch: &Launch, memory: &mut dyn Memory, seed: u64) -> Result<(), Trap> {
    let options = sim::Options::of_seed(seed);
    sim::run(&made.kernel, &made.tile, launch, memory, &mut host::Silent, &options)?.clean().map(drop)
}
