//! Looking into a compilation, of a kernel and of a model alike.

use girih_compiler::explain::{Explained, StageText};
use girih_compiler::pipeline::trace::Trace;
use girih_compiler::pipeline::{Observer, Stage};

use super::assembly;
use crate::error::Result;
use crate::options::Options;

/// A compilation in stages: of an entry of a tile program, or of a model.
pub trait Inspect {
    /// The stages that [`Inspect::ir`] gives, in order.
    fn stages(&self) -> &'static [Stage];

    fn options(&self) -> &Options;

    /// The text at a stage.
    ///
    /// # Errors
    /// A stage that is not one of [`Inspect::stages`]; diagnostics of a program that cannot be compiled.
    fn ir(&self, stage: Stage) -> Result<String>;

    /// The registers, spills, memory and occupancy of each kernel on a GPU's multiprocessor, as a table.
    ///
    /// # Errors
    /// A target that is not a GPU; NVIDIA's compiler missing, or refusing the source.
    fn resources(&self) -> Result<String>;

    /// Compiles once more as far as kernel IR, telling the observer what happens.
    ///
    /// # Errors
    /// Diagnostics, those of the observer among them.
    fn observe(&self, observer: &mut dyn Observer) -> Result<()>;

    /// All stages at once, linked line by line, and the rewrites of each rule.
    ///
    /// # Errors
    /// Diagnostics of the compilation.
    fn explain(&self) -> Result<Explained>;

    /// The same, and the machine code of the source as the last stage.
    ///
    /// # Errors
    /// Diagnostics of the compilation. A compiler that is missing is a note in place of its code.
    fn explain_with_assembly(&self) -> Result<Explained> {
        let mut explained = self.explain()?;
        assembly::add(&mut explained, self.options());
        Ok(explained)
    }

    /// The source text, or for a model its operations, with the source of each line; `None` for handwritten Kernel IR.
    fn written(&self) -> Option<StageText>;

    /// All stages as files: `trace`, `knobs`, then each stage, `1.cuda_tile`, `2.loop`, ...; up to the first error, with
    /// the trace that led to it.
    ///
    /// # Errors
    /// The errors of the compilation and of `write`.
    fn dump(&self, write: &mut dyn FnMut(&str, &str) -> Result<()>) -> Result<()> {
        let mut trace = Trace::new(true);
        let outcome = self.observe(&mut trace);
        write("trace", &trace.text)?;
        outcome?;
        write("knobs", &self.options().all_knobs()?.listing())?;
        for (i, stage) in self.stages().iter().enumerate() {
            write(&format!("{}.{}", i + 1, stage.name()), &self.ir(*stage)?)?;
        }
        Ok(())
    }
}
