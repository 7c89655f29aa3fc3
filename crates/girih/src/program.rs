//! A tile program, its kernels, and their stages.

use std::path::Path;
use std::sync::Arc;

use girih_compiler::base::launch::Assumptions;
use girih_compiler::base::launch::Trap;
use girih_compiler::base::{Code, Diagnostic, Span};
use girih_compiler::cuda_tile::{self, bytecode, ir::Module as TileModule};
use girih_compiler::explain::{self, Explained, StageText, Watch};
use girih_compiler::kernel;
use girih_compiler::loops::ir::{Global, Kernel as LoopKernel};
use girih_compiler::loops::launch_facts::work;
use girih_compiler::loops::{self, lift};
use girih_compiler::pipeline::{self, Front, Lowered, Observer, Silent, Stage};
use girih_compiler::spec;
use girih_compiler::tile::schedule::Writer;

use crate::compile::cache::Cache;
use crate::compile::gpu;
use crate::compile::inspect::Inspect;
use crate::compile::progress::{self, Working};
use crate::compile::version::{FAST, Native, Tools, Version};
use crate::compile::widen::{self, ErrorBound};
use crate::cuda::launch::Loaded;
use crate::error::{Error, Result};
use crate::launch::prepared::{Fit, Prepared, Report};
use crate::memory::args::{self, Arg, Param, RawArgs};
use crate::memory::globals::Globals;
use crate::options::{Device, Options};
use crate::system::sync::{Brief, Built};
use crate::tune;

/// A tile program that was read and found valid.
///
/// A program is code: natively, a kernel reads and writes where its pointers lead. Run programs that you would run as
/// any other code, or with [`Options::check`], which tests every access.
pub struct Program {
    text: String,
    module: TileModule,
    warnings: Vec<Diagnostic>,
    globals: Arc<Globals>,
}

impl Program {
    /// Parses and verifies tile text; all errors are reported together.
    pub fn from_text(text: &str) -> Result<Program> {
        let Front { module, warnings } = pipeline::front(text).map_err(Error::Program)?;
        Ok(Program { text: text.to_string(), module, warnings, globals: Arc::default() })
    }

    /// Reads and verifies bytecode, or parses and verifies text. Diagnostics of bytecode point to bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Program> {
        if bytecode::is_bytecode(bytes) {
            let Front { module, warnings } = pipeline::front_bytecode(bytes).map_err(Error::Program)?;
            return Ok(Program { text: String::new(), module, warnings, globals: Arc::default() });
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Program::from_text(text),
            Err(e) => {
                let at = Span::new(e.valid_up_to(), e.valid_up_to());
                let message = format!("this is neither tile bytecode nor UTF-8 text ({e})");
                Err(Error::Program(vec![Diagnostic::error(Code::NotBytecode, message).at(at)]))
            }
        }
    }

    /// Reads a file of tile text or bytecode.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Program> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|e| Error::file(path, format!("cannot be read: {e}")))?;
        Program::from_bytes(&bytes)
    }

    /// The standard layout of a tile program's text.
    pub fn format(text: &str) -> Result<String> {
        cuda_tile::print::format(text).map_err(Error::Program)
    }

    /// The text it was made from, which diagnostics point into; empty for bytecode.
    pub fn text(&self) -> &str {
        &self.text
    }
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }
    /// The names of the entries, in the order of the text.
    pub fn entries(&self) -> Vec<&str> {
        self.module.entries().map(|f| f.name.as_str()).collect()
    }
    /// The parsed program.
    pub fn module(&self) -> &TileModule {
        &self.module
    }

    /// The same program with every float made float64, or why there is none.
    pub fn widened(&self) -> std::result::Result<Program, String> {
        let module = widen::widen(&self.module)?;
        Ok(Program { text: self.text.clone(), module, warnings: Vec::new(), globals: Arc::default() })
    }

    /// Resets the program's globals, which keep the values that launches wrote, to their initial values.
    pub fn reset_globals(&self) {
        for global in lift::globals(&self.module) {
            self.globals.reset(&global);
        }
    }

    /// The program in the words and layout of NVIDIA's own tools.
    pub fn nvidia_text(&self) -> String {
        cuda_tile::print::print_nvidia(&self.module)
    }

    /// The program as bytecode, at a version or at the oldest one that can express it, and that version.
    pub fn bytecode(&self, version: Option<bytecode::Version>) -> Result<(Vec<u8>, bytecode::Version)> {
        match version {
            Some(version) => bytecode::write(&self.module, version).map(|bytes| (bytes, version)),
            None => bytecode::write_oldest(&self.module),
        }
        .map_err(|mut errors| {
            pipeline::add_frames(&self.module, &mut errors);
            Error::Program(errors)
        })
    }

    /// The same with the debug location of every statement.
    pub fn nvidia_debug_text(&self) -> String {
        cuda_tile::print::print_nvidia_debug(&self.module)
    }

    /// A kernel, compiled when it is first needed.
    pub fn entry(&self, name: &str) -> Result<Kernel<'_>> {
        let Some(entry) = self.module.entry(name) else {
            let entries = self.entries().into_iter().map(String::from).collect();
            return Err(Error::NoEntry { name: name.to_string(), entries });
        };
        let params = spec::params(entry).map_err(Error::argument)?;
        Ok(Kernel::new(Held::Borrowed(self), name.to_string(), params))
    }

    /// The same as [`Program::entry`], for callers that keep kernels longer than the borrow of the program.
    pub fn shared_entry(self: &Arc<Program>, name: &str) -> Result<Kernel<'static>> {
        let Kernel { name, params, .. } = self.entry(name)?;
        Ok(Kernel::new(Held::Shared(self.clone()), name, params))
    }
}

/// The program of a kernel.
#[derive(Clone)]
pub(crate) enum Held<'p> {
    Borrowed(&'p Program),
    Shared(Arc<Program>),
}

impl std::ops::Deref for Held<'_> {
    type Target = Program;
    fn deref(&self) -> &Program {
        match self {
            Held::Borrowed(program) => program,
            Held::Shared(program) => program,
        }
    }
}

/// An entry of a program with the options it is compiled and run under.
pub struct Kernel<'p> {
    pub(crate) program: Held<'p>,
    name: String,
    params: Vec<Param>,
    options: Options,
    /// By assumptions: no wrapping, no aliases.
    versions: [[Built<Arc<Version>>; 2]; 2],
    /// Facts about the last launches on raw addresses.
    pub(crate) fits: Brief<Vec<Fit>>,
    tools: Tools,
}

impl<'p> Kernel<'p> {
    fn new(program: Held<'p>, name: String, params: Vec<Param>) -> Kernel<'p> {
        let (options, versions, fits) = (Options::default(), Default::default(), Brief::default());
        Kernel { program, name, params, options, versions, fits, tools: Tools::default() }
    }

    /// The same kernel under other options.
    pub fn with_options(self, options: Options) -> Kernel<'p> {
        let options = tune::applied(options, || self.tuning_key());
        Kernel { options, versions: Default::default(), fits: Brief::default(), tools: Tools::default(), ..self }
    }
    /// The same kernel under other options, beside this one.
    pub fn beside(&self, options: Options) -> Kernel<'p> {
        Kernel::new(self.program.clone(), self.name.clone(), self.params.clone()).with_options(options)
    }
    /// The kernel's name among the records of schedules.
    #[doc(hidden)]
    pub fn tuning_key(&self) -> String {
        tune::key("program", &cuda_tile::print::print(&self.program.module), &self.name)
    }
    /// The same kernel with names, by position, for parameters that have none, as in bytecode; messages use them.
    pub fn with_param_names(mut self, name: impl Fn(usize) -> Option<String>) -> Kernel<'p> {
        for (i, param) in self.params.iter_mut().enumerate().filter(|(i, p)| p.name == i.to_string()) {
            param.name = name(i).unwrap_or_else(|| std::mem::take(&mut param.name));
        }
        self
    }
    pub fn name(&self) -> &str {
        &self.name
    }
    pub fn program(&self) -> &Program {
        &self.program
    }
    pub fn params(&self) -> &[Param] {
        &self.params
    }
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The kernel's text at a stage, under the assumptions of its fast version.
    pub fn ir(&self, stage: Stage) -> Result<String> {
        let lowered = || self.lower(FAST, &mut Silent);
        Ok(match stage {
            Stage::Torch | Stage::Tensor => {
                return Err(Error::argument(format!("a tile program has no stage {}", stage.name())));
            }
            Stage::CudaTile => cuda_tile::print::print(&self.program.module),
            Stage::Schedule => {
                let mut writer = Writer::new(self.options.pipeline(FAST)?.context());
                self.lower(FAST, &mut writer)?;
                writer.finish()
            }
            Stage::Loop => loops::print::print(&lowered()?.loops, loops::print::Dialect::Loop),
            Stage::Tile => loops::print::print(&lowered()?.tile, loops::print::Dialect::Tile),
            Stage::Kernel => kernel::print::print(&lowered()?.kernel),
            Stage::C | Stage::Cuda | Stage::Ptx | Stage::Sass => {
                gpu::text(stage, &[&lowered()?.kernel], &self.options.resolved_target())?
            }
        })
    }

    /// Operations of the kernel's contractions in a launch (a multiply and an add each); `None` where the kernel computes
    /// a loop's bound. `slots` are the scalar arguments' bits by position.
    pub(crate) fn contraction_work(&self, grid: [u32; 3], slots: &[u64]) -> Option<f64> {
        work::contraction_work(&self.version(FAST).ok()?.lowered.loops, grid, slots)
    }
    /// How far rounding may move the results of a launch.
    #[doc(hidden)]
    pub fn error_bound(&self, grid: [u32; 3], slots: &[u64]) -> ErrorBound {
        let coarsest = self.program.module.entry(&self.name).and_then(widen::coarsest);
        let version = self.version(FAST).ok();
        let chain = version.and_then(|v| work::longest_accumulation(&v.lowered.loops, grid, slots));
        ErrorBound { chain: chain.unwrap_or(1.0).max(1.0), eps: self.options.rounding(coarsest) }
    }

    /// Which operation first stores element `element` of parameter `param`'s buffer in a launch on the evaluator.
    pub fn find_store(&self, grid: [u32; 3], args: &mut [Arg<'_>], param: usize, element: u64) -> Result<Option<Trap>> {
        self.prepare(grid, args)?.find_store(param, element)
    }

    /// For each of the kernel's parameters, whether the kernel writes through it.
    pub fn writes(&self) -> Result<Vec<bool>> {
        Ok(self.version(FAST)?.traffic.writes.clone())
    }

    /// Compiles the kernel for the launches to expect, so that the first one finds it ready; nothing on the evaluator.
    pub fn compile(&self) -> Result<()> {
        if self.options.device == Device::Cpu {
            let version = self.version(FAST)?;
            self.native(&version)?;
        }
        Ok(())
    }

    /// Runs the kernel on `args` over a grid of blocks and waits for it.
    ///
    /// # Trust
    /// This is a safe function on the condition stated at [`Program`]: the program is trusted as any other code is.
    /// Before a native run, accesses whose addresses follow from the arguments are tested against the lengths of the
    /// buffers, and a shared slice that the kernel could write is refused. Addresses that the kernel computes from data
    /// are not tested, and blocks that race on an element do so as threads of any program would. [`Options::check`]
    /// and [`Device::Eval`](crate::Device::Eval) test every access: then a wrong program is an [`Error::Trap`].
    pub fn launch(&self, grid: [u32; 3], args: &mut [Arg<'_>]) -> Result<Report> {
        self.prepare(grid, args)?.run()
    }

    /// Checks the arguments and compiles, so that [`Prepared::run`] only runs.
    pub fn prepare<'a>(&'a self, grid: [u32; 3], args: &'a mut [Arg<'_>]) -> Result<Prepared<'a>> {
        Prepared::new(self, grid, args)
    }

    /// Runs the kernel on addresses and waits for it; made to be cheap when it is repeated.
    ///
    /// # Safety
    /// The memory that the arguments describe must stay valid for as long as the launch runs, and no Rust reference to it
    /// may be in use.
    pub unsafe fn launch_raw(&self, grid: [u32; 3], args: RawArgs) -> Result<Report> {
        Prepared::raw(self, grid, args::bind_raw(&self.name, &self.params, args)?)?.run()
    }

    /// Lowers the fast version once more, telling the observer about every stage and rule.
    pub fn observe(&self, observer: &mut dyn Observer) -> Result<()> {
        self.lower(FAST, observer).map(drop)
    }

    fn lower(&self, assume: Assumptions, observer: &mut dyn Observer) -> Result<Lowered> {
        let options = self.options.pipeline(assume)?;
        let _working = Working::compiling();
        progress::kernel(&self.name);
        pipeline::lower(&self.program.module, &self.name, &options, &mut progress::Shown(observer))
            .map_err(Error::Program)
    }

    /// The version for some assumptions, lowered once.
    pub(crate) fn version(&self, assume: Assumptions) -> Result<Arc<Version>> {
        let [[neither, alias], [wrap, both]] = &self.versions;
        let version = match (assume.no_wrap, assume.no_alias) {
            (false, false) => neither,
            (false, true) => alias,
            (true, false) => wrap,
            (true, true) => both,
        };
        version.get_or_make(|| Ok(Arc::new(Version::new(self.lower(assume, &mut Silent)?, assume))))
    }

    /// The folder of compiled kernels.
    pub(crate) fn cache(&self) -> Result<Arc<Cache>> {
        self.tools.cache(&self.options)
    }

    /// Why the cache is not the one asked for, once it has been needed.
    pub fn cache_warning(&self) -> Option<String> {
        self.tools.cache_warning()
    }

    /// The compiled form of a version, built or loaded once.
    pub(crate) fn native(&self, version: &Version) -> Result<Native> {
        version.native(&self.tools, &self.options)
    }

    /// A version on the GPU, compiled and loaded once.
    pub(crate) fn loaded(&self, version: &Version) -> Result<Arc<Loaded>> {
        version.loaded(&self.tools, &self.options)
    }

    /// The addresses of the globals that a lowered kernel uses, in its order.
    pub(crate) fn global_addresses(&self, kernel: &LoopKernel) -> Result<Vec<*mut u8>> {
        kernel.globals.iter().map(|g: &Global| self.program.globals.address(g)).collect()
    }
    /// The addresses of the module's globals, in its order.
    pub(crate) fn module_globals(&self) -> Result<Vec<u64>> {
        let all = lift::globals(&self.program.module);
        all.iter().map(|g| Ok(self.program.globals.address(g)? as u64)).collect()
    }
    pub(crate) fn globals(&self) -> &Globals {
        &self.program.globals
    }
}

impl Inspect for Kernel<'_> {
    fn stages(&self) -> &'static [Stage] {
        Stage::of(&self.options.resolved_target(), false)
    }
    fn options(&self) -> &Options {
        Kernel::options(self)
    }
    fn ir(&self, stage: Stage) -> Result<String> {
        Kernel::ir(self, stage)
    }
    fn resources(&self) -> Result<String> {
        gpu::resources(&[&self.lower(FAST, &mut Silent)?.kernel], &self.options.resolved_target())
    }
    fn observe(&self, observer: &mut dyn Observer) -> Result<()> {
        Kernel::observe(self, observer)
    }
    fn written(&self) -> Option<StageText> {
        Some(explain::source_of(&self.program.module, &self.program.text))
    }
    fn explain(&self) -> Result<Explained> {
        let mut watch = Watch::new(&self.options.pipeline(FAST)?);
        let lowered = self.lower(FAST, &mut watch)?;
        let Program { module, text, .. } = &*self.program;
        Ok(explain::program(module, text, &lowered, watch, &self.options.resolved_target()))
    }
}
