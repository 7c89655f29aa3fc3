//! A model with its inputs.

use std::rc::Rc;
use std::time::Instant;

use girih::model::{Compilation, Model, Prepared, Profile, Verified};
use girih::widen::ErrorBound;
use girih::{Buffer, Device, Inspect, Options, Report};
use girih_compiler::base::{Code, Diagnostic};
use serde_json::{Value as Json, json};

use super::{Array, Asked, Often, Run, Runnable};
use crate::commands::model::Given;
use crate::commands::model::arguments::Arguments;
use crate::commands::run::arguments::show_as;
use crate::commands::run::timing::duration;
use crate::failure::Failure;
use crate::render::{self, Source};
use crate::source::suggestion;

pub struct Opened {
    source: Source,
    model: Model,
    arguments: Rc<Arguments>,
    /// The names of its outputs.
    outputs: Vec<String>,
}

impl Opened {
    pub fn new(given: &Given, asked: &Asked<'_>, options: Options) -> Result<Opened, Failure> {
        let mut arguments = Arguments::resolve(&asked.launch.args)?;
        let model = given.open(&mut arguments, options)?.with_seed(asked.seed);
        arguments.fit(&model)?;
        Ok(Opened::of(given.source(), model, Rc::new(arguments)))
    }

    fn of(source: Source, model: Model, arguments: Rc<Arguments>) -> Opened {
        let outputs = model.outputs().into_iter().map(|output| output.name).collect();
        Opened { source, model, arguments, outputs }
    }
}

impl Runnable for Opened {
    fn source(&self) -> &Source {
        &self.source
    }
    fn name(&self) -> &str {
        self.model.name()
    }
    fn inspect(&self) -> &dyn Inspect {
        &self.model
    }
    fn key(&self) -> Option<String> {
        Some(self.model.tuning_key())
    }

    fn under(&self, options: Options) -> girih::Result<Box<dyn Runnable>> {
        let model = self.model.beside(options);
        Ok(Box::new(Opened::of(self.source.clone(), model, self.arguments.clone())))
    }

    fn position(&self, name: &str) -> Result<usize, Failure> {
        self.outputs.iter().position(|output| output == name).ok_or_else(|| {
            let d = Diagnostic::error(Code::ModelInput, format!("the model has no output `{name}`"));
            let d = d.help(suggestion("outputs", name, self.outputs.iter().map(String::as_str)));
            render::one(&self.source, &d);
            Failure::Said(1)
        })
    }

    fn start(&self, _: Often) -> girih::Result<Box<dyn Run + '_>> {
        let start = Instant::now();
        let compiled = match self.model.options().device {
            Device::Cpu | Device::Cuda => Some(self.model.compile()?),
            Device::Eval | Device::Sim => None,
        };
        let seconds = start.elapsed().as_secs_f64();
        let prepared = self.model.prepare(&self.arguments.arrays(), &self.arguments.extents())?;
        Ok(Box::new(Started { of: self, prepared, compiled, seconds }))
    }

    fn reordered(&self) -> Option<&'static str> {
        Some("native code folds sums in another, fixed order; without `--bits` floats are compared within a bound")
    }
}

/// A run of a model.
struct Started<'a> {
    of: &'a Opened,
    prepared: Prepared<'a>,
    compiled: Option<Compilation>,
    /// The time of the compilation.
    seconds: f64,
}

impl Run for Started<'_> {
    fn run(&mut self) -> girih::Result<Report> {
        let start = Instant::now();
        self.prepared.run()?;
        Ok(Report { seconds: start.elapsed().as_secs_f64(), ..Report::default() })
    }

    fn results(&self) -> Vec<Array<'_>> {
        let all = self.of.outputs.iter().zip(self.prepared.outputs());
        all.map(|(name, tensor)| {
            let words = if tensor.elem().text { self.of.arguments.strings.words(tensor) } else { vec![] };
            Array { name, buffer: tensor.buffer(), elem: tensor.elem(), words, written: true }
        })
        .collect()
    }

    fn facts(&self, summary: &mut Json) {
        summary["model"] = json!(self.of.name());
        summary["compile_s"] = json!(self.seconds);
        summary["cached"] = json!(self.compiled.is_some_and(|c| c.cached == c.kernels));
        summary["kernels"] = json!(self.compiled.map(|c| c.kernels));
        summary["steps"] = json!(self.compiled.map(|c| c.steps));
    }

    fn verify_each(&mut self) -> girih::Result<String> {
        let Verified { tensor, kernels, steps } = self.prepared.verify_each()?;
        let s = if steps == 1 { "" } else { "s" };
        Ok(format!(
            "verify-each: {tensor} rewrites of the graph and {kernels} in {steps} kernel{s}, none changes the answer"
        ))
    }

    fn reference(&self) -> girih::Result<Result<Vec<Buffer>, String>> {
        Ok(Ok(self.prepared.evaluate(true)?.into_iter().map(|(_, tensor)| tensor.into_buffer()).collect()))
    }

    fn error_bound(&self) -> girih::Result<ErrorBound> {
        self.prepared.error_bound()
    }

    fn stored_by(&self, _: usize, _: u64) -> girih::Result<Option<String>> {
        Ok(None)
    }

    fn rates(&mut self, _: f64, _: &mut Json) -> girih::Result<String> {
        let steps = self.compiled.map_or(0, |c| c.steps);
        Ok(format!("{steps} kernels a run, ready in {}", duration(self.seconds)))
    }

    fn profile(&mut self) -> girih::Result<Profile> {
        self.prepared.profile()
    }

    /// Shows all results.
    fn tell(&self, _: f64) -> Result<(), Failure> {
        for array in self.results() {
            outln!("{} = {}", array.name, show_as(array.buffer, array.elem, &array.words))?;
        }
        Ok(())
    }
}
