//! A kernel with its arguments: building it, caching it, launching it.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use girih_compiler::base::Diagnostic;

use super::builder::{Builder, build, here};
use super::element::{Constant, Elem, ElementType, Kind};
use super::tile::Tile;
use crate::Stage;
use crate::error::{Error, Result};
use crate::launch::prepared::Report;
use crate::memory::args::Arg;
use crate::options::Options;
use crate::program::{Kernel, Program};
use crate::system::sync::Brief;

/// Where a kernel is written, for messages.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Origin {
    name: &'static str,
    place: &'static Location<'static>,
    folder: &'static str,
}
impl Origin {
    #[track_caller]
    pub fn here(name: &'static str, folder: &'static str) -> Origin {
        Origin { name, place: Location::caller(), folder }
    }
}

/// A parameter with its argument.
#[doc(hidden)]
pub struct Parameter<'a> {
    name: &'static str,
    ty: ElementType,
    argument: Arg<'a>,
}
impl<'a> Parameter<'a> {
    pub fn read<T: Elem + crate::Element>(name: &'static str, elements: &'a [T]) -> Parameter<'a> {
        Parameter { name, ty: ElementType { kind: Kind::Pointer, ..T::TYPE }, argument: Arg::from(elements) }
    }
    pub fn written<T: Elem + crate::Element>(name: &'static str, elements: &'a mut [T]) -> Parameter<'a> {
        Parameter { name, ty: ElementType { kind: Kind::Pointer, ..T::TYPE }, argument: Arg::from(elements) }
    }
    pub fn scalar<T: Constant>(name: &'static str, value: T) -> Parameter<'a>
    where
        Arg<'a>: From<T>,
    {
        Parameter { name, ty: T::TYPE, argument: Arg::from(value) }
    }
}

/// A parameter inside of the kernel.
#[doc(hidden)]
pub fn parameter<T: Elem>(position: usize) -> Tile<T> {
    here(|b| Tile::of(b.params[position]))
}

/// Distinguishes instances of a function with different type parameters.
#[doc(hidden)]
pub fn instance<F: 'static>(_: &F) -> TypeId {
    TypeId::of::<F>()
}

/// The kernels that were made of one function so far, by type parameters and constants.
#[doc(hidden)]
pub struct Made(Brief<BTreeMap<Key, Arc<One>>>);

/// The choice of type parameters, and the constants.
type Key = (TypeId, Vec<String>);

/// One of them, compiled for the options that came so far.
struct One {
    program: Arc<Program>,
    kernels: Brief<BTreeMap<String, Arc<Kernel<'static>>>>,
}

impl Made {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Made {
        Made(Brief::new(BTreeMap::new()))
    }
}

/// The size of a grid of blocks: one to three numbers.
pub trait Grid {
    #[doc(hidden)]
    fn blocks(self) -> [u32; 3];
}
impl Grid for u32 {
    fn blocks(self) -> [u32; 3] {
        [self, 1, 1]
    }
}
impl Grid for [u32; 1] {
    fn blocks(self) -> [u32; 3] {
        [self[0], 1, 1]
    }
}
impl Grid for [u32; 2] {
    fn blocks(self) -> [u32; 3] {
        [self[0], self[1], 1]
    }
}
impl Grid for [u32; 3] {
    fn blocks(self) -> [u32; 3] {
        self
    }
}

/// A kernel with its arguments, as a function marked `#[girih::kernel]` returns it.
pub struct Launch<'a> {
    made: &'static Made,
    origin: Origin,
    key: Key,
    parameters: Vec<Parameter<'a>>,
    body: Box<dyn Fn() + 'a>,
    options: Options,
}

impl<'a> Launch<'a> {
    #[doc(hidden)]
    pub fn new(
        made: &'static Made,
        origin: Origin,
        instance: TypeId,
        parameters: Vec<Parameter<'a>>,
        constants: Vec<String>,
        body: Box<dyn Fn() + 'a>,
    ) -> Launch<'a> {
        Launch { made, origin, key: (instance, constants), parameters, body, options: Options::default() }
    }

    /// The same under other options: another device, checks of every access, threads.
    pub fn with_options(self, options: Options) -> Launch<'a> {
        Launch { options, ..self }
    }

    /// Runs the kernel over a grid of blocks and waits for it. The first launch for its constants compiles it.
    ///
    /// # Trust
    /// That of [`Kernel::launch`]: accesses whose addresses follow from the arguments are tested against the lengths of the slices
    /// before anything runs; [`Options::check`] and [`Device::Eval`](crate::Device::Eval) test every access.
    pub fn launch(self, grid: impl Grid) -> Result<Report> {
        let kernel = self.kernel()?;
        let mut arguments: Vec<Arg<'a>> = self.parameters.into_iter().map(|p| p.argument).collect();
        kernel.launch(grid.blocks(), &mut arguments)
    }

    /// Compiles the kernel, so that the first launch finds it ready.
    pub fn compile(&self) -> Result<()> {
        self.kernel()?.compile()
    }

    /// The kernel as Tile IR text that reads back, without places.
    pub fn tile_ir(&self) -> Result<String> {
        Ok(self.build()?.text(false))
    }

    /// The kernel at a stage of its compilation.
    pub fn ir(&self, stage: Stage) -> Result<String> {
        self.kernel()?.ir(stage)
    }

    /// The compiled kernel itself, which is launched on [`Arg`]s.
    pub fn kernel(&self) -> Result<Arc<Kernel<'static>>> {
        let found = self.made.0.lock().get(&self.key).cloned();
        let one = match found {
            Some(one) => one,
            None => {
                let text = self.build()?.text(true);
                // The builder has checked types and shapes; errors that only Tile IR finds name the kernel's lines.
                let program = Arc::new(Program::from_text(&text).map_err(|e| self.explained(e))?);
                let one = Arc::new(One { program, kernels: Brief::new(BTreeMap::new()) });
                self.made.0.lock().entry(self.key.clone()).or_insert(one).clone()
            }
        };
        let make = || -> Result<Arc<Kernel<'static>>> {
            let name = one.program.entries().first().map(|n| n.to_string()).unwrap_or_default();
            Ok(Arc::new(one.program.shared_entry(&name)?.with_options(self.options.clone())))
        };
        let Some(key) = self.options.identity() else { return make() };
        if let Some(kernel) = one.kernels.lock().get(&key) {
            return Ok(kernel.clone());
        }
        let kernel = make()?;
        Ok(one.kernels.lock().entry(key).or_insert(kernel).clone())
    }

    fn build(&self) -> Result<Builder> {
        let mut builder = Builder::new(self.origin.name, self.origin.place);
        self.parameters.iter().for_each(|p| builder.parameter(p.name, p.ty));
        let mut built = build(builder, &*self.body);
        match std::mem::take(&mut built.errors) {
            errors if errors.is_empty() => Ok(built),
            errors => Err(self.explained(Error::Program(errors))),
        }
    }

    fn explained(&self, error: Error) -> Error {
        match error {
            Error::Program(diagnostics) => {
                let shown = diagnostics.iter().map(|d| rendered(d, self.origin.folder)).collect();
                Error::Kernel { diagnostics, shown }
            }
            other => other,
        }
    }
}

/// A diagnostic in rustc's manner, with the line if its file can be read.
fn rendered(diagnostic: &Diagnostic, folder: &str) -> String {
    let mut out = format!("error[{}]: {}", diagnostic.code.text(), diagnostic.message);
    let help = diagnostic.help.as_deref();
    let Some(place) = diagnostic.frames.first().map(|f| &f.place) else {
        return help.map_or(out.clone(), |h| format!("{out}\n  = help: {h}"));
    };
    let number = place.line.to_string();
    let margin = " ".repeat(number.len());
    out += &format!("\n{margin}--> {place}");
    if let Some(line) = source_line(&place.file, folder, place.line) {
        let column = (place.column as usize).saturating_sub(1);
        let before: String = line.chars().take(column).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        out += &format!("\n{margin} |\n{number} | {}\n{margin} | {before}^", line.trim_end());
    }
    if let Some(help) = help {
        out += &format!("\n{margin} = help: {help}");
    }
    out
}

/// rustc names files from where it ran, which is the package or the workspace it is in.
fn source_line(file: &str, folder: &str, line: u32) -> Option<String> {
    let tried = std::iter::once(PathBuf::from(file)).chain(Path::new(folder).ancestors().map(|a| a.join(file)));
    let text = tried.filter(|p| p.is_file()).find_map(|p| std::fs::read_to_string(p).ok())?;
    text.lines().nth((line as usize).checked_sub(1)?).map(String::from)
}
