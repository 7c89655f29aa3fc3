//! Handwritten or edited Kernel IR: one kernel, without a source program.
//!
//! In: the text that `girih compile --ir kernel` prints. Out: its CUDA and machine code, and runs on the simulator.

use girih_compiler::base::launch::Launch;
use girih_compiler::base::memory::Memory;
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::explain::{self, Explained, StageText};
use girih_compiler::kernel::ir::{Elem, Kernel};
use girih_compiler::kernel::{parse, print, verify};
use girih_compiler::pipeline::{Lowered, Observer, Stage};
use girih_compiler::tile::target::Capability;

use crate::compile::gpu;
use crate::compile::inspect::Inspect;
use crate::error::{Error, Result};
use crate::launch::simulate;
use crate::memory::args::{self, Arg, Param, ParamKind};
use crate::options::{Device, Options};

/// A kernel read from the text of its Kernel IR, and found valid.
///
/// ```
/// use girih::{Arg, KernelIr};
///
/// let kernel = KernelIr::from_text(
///     "kernel twice(x: ptr<f32>) threads 32 scratch 0 {
///        v: f32 = load x[tx]
///        w: f32 = addf v, v
///        store x[tx] = w
///      }",
/// )?;
/// let mut x = vec![1.5f32; 32];
/// kernel.simulate([1, 1, 1], &mut [Arg::from(&mut x[..])])?;
/// assert_eq!(x[31], 3.0);
/// # Ok::<(), girih::Error>(())
/// ```
#[derive(Clone)]
pub struct KernelIr {
    kernel: Kernel,
    params: Vec<Param>,
    options: Options,
}

impl KernelIr {
    /// Parses and verifies a kernel.
    ///
    /// # Errors
    /// [`Error::Program`] with each error and its place; all broken invariants are reported together.
    pub fn from_text(text: &str) -> Result<KernelIr> {
        let (kernel, statements) = parse::parse_located(text).map_err(|d| Error::Program(vec![d]))?;
        let located = |p: verify::Problem| {
            let d = Diagnostic::error(Code::InvalidIr, p.message);
            match p.statement.and_then(|n| statements.get(n)) {
                Some(span) => d.at(*span),
                None => d,
            }
        };
        let wrong: Vec<Diagnostic> = verify::problems(&kernel).into_iter().map(located).collect();
        if !wrong.is_empty() {
            return Err(Error::Program(wrong));
        }
        let param = |v: &_| {
            let val = &kernel.vals[*v];
            let kind = match val.ty.elem {
                Elem::Ptr(d) => ParamKind::Pointer(d),
                Elem::Num(d) => ParamKind::Scalar(d),
            };
            Param { name: val.name.as_str().to_string(), kind }
        };
        let params = kernel.params.iter().map(param).collect();
        Ok(KernelIr { kernel, params, options: Options::default() })
    }

    /// The same kernel under other options; their target is the GPU that it is for.
    pub fn with_options(self, options: Options) -> KernelIr {
        KernelIr { options, ..self }
    }

    pub fn name(&self) -> &str {
        self.kernel.name.as_str()
    }

    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.kernel.threads
    }

    /// Runs the kernel as [`KernelIr::simulate`] does, or on the evaluator where a block has one thread.
    ///
    /// # Errors
    /// The errors of `simulate`.
    pub fn run(&self, grid: [u32; 3], args: &mut [Arg<'_>]) -> Result<()> {
        if self.kernel.threads > 1 {
            return self.simulate(grid, args);
        }
        self.launched(grid, args, simulate::evaluated)
    }

    /// Runs the kernel on the simulator, over a grid of blocks; a kernel that states its grid has that one.
    ///
    /// # Errors
    /// Arguments that do not fit the kernel; a trap that ends the run, and without a watcher the simulator's findings.
    pub fn simulate(&self, grid: [u32; 3], args: &mut [Arg<'_>]) -> Result<()> {
        self.launched(grid, args, simulate::alone)
    }

    fn launched(
        &self,
        grid: [u32; 3],
        args: &mut [Arg<'_>],
        run: impl FnOnce(&Lowered, &Launch, &mut dyn Memory, &Options) -> Result<()>,
    ) -> Result<()> {
        let bound = args::bind(self.name(), &self.params, args)?;
        let mut memory = bound.memory(&self.params);
        let mut launch = Launch::new(grid, bound.slots.clone());
        (launch.only_block, launch.sample) = (self.options.block, self.options.sample);
        let lowered = Lowered { kernel: self.kernel.clone(), loops: Default::default(), tile: Default::default() };
        run(&lowered, &launch, &mut memory, &self.options.clone().device(Device::Sim))
    }
}

impl Inspect for KernelIr {
    fn stages(&self) -> &'static [Stage] {
        let stages = Stage::of(&self.options.resolved_target(), false);
        let from = stages.iter().position(|s| *s == Stage::Kernel).unwrap_or(0);
        &stages[from..]
    }

    fn options(&self) -> &Options {
        &self.options
    }

    fn ir(&self, stage: Stage) -> Result<String> {
        let target = self.options.resolved_target();
        match stage {
            Stage::Kernel => Ok(print::print(&self.kernel)),
            Stage::Torch | Stage::Tensor | Stage::CudaTile | Stage::Loop | Stage::Schedule | Stage::Tile => {
                Err(Error::argument(format!("Kernel IR has no stage {}", stage.name())))
            }
            Stage::C if self.kernel.threads > 1 && !target.has(Capability::Threads) => Err(Error::argument(format!(
                "`{}` is for blocks of {} threads, and the target is {}; name a GPU: --target sm_90a",
                self.name(),
                self.kernel.threads,
                target.name
            ))),
            Stage::C | Stage::Cuda | Stage::Ptx | Stage::Sass => gpu::text(stage, &[&self.kernel], &target),
        }
    }

    fn resources(&self) -> Result<String> {
        gpu::resources(&[&self.kernel], &self.options.resolved_target())
    }

    fn written(&self) -> Option<StageText> {
        None
    }

    fn explain(&self) -> Result<Explained> {
        Ok(explain::kernel_ir(&self.kernel, &self.options.resolved_target()))
    }

    /// No rule applies to a kernel that is written.
    fn observe(&self, _: &mut dyn Observer) -> Result<()> {
        Ok(())
    }
}
