//! Kernel IR by hand, with its grid and arguments: a kernel of many threads runs on the simulator, whose findings are errors; a kernel of
//! one thread on the evaluator.

use std::cell::RefCell;
use std::time::Instant;

use girih::model::Profile;
use girih::widen::ErrorBound;
use girih::{Buffer, Device, Error, Inspect, KernelIr, Options, Report};
use girih_compiler::graph::Elem;
use serde_json::{Value as Json, json};

use super::{Array, Often, Run, Runnable};
use crate::commands::run::arguments::{self, Arguments, Value};
use crate::commands::run::timing;
use crate::failure::Failure;
use crate::render::Source;

pub struct ByHand {
    source: Source,
    kernel: KernelIr,
    grid: [u32; 3],
    /// As they were given; empty once the only run has taken them.
    arguments: RefCell<Arguments>,
}

impl ByHand {
    pub fn new(source: &Source, kernel: KernelIr, grid: [u32; 3], arguments: Arguments) -> ByHand {
        ByHand { source: source.clone(), kernel, grid, arguments: arguments.into() }
    }
}

impl Runnable for ByHand {
    fn source(&self) -> &Source {
        &self.source
    }
    fn name(&self) -> &str {
        self.kernel.name()
    }
    fn inspect(&self) -> &dyn Inspect {
        &self.kernel
    }
    fn key(&self) -> Option<String> {
        None
    }
    fn under(&self, options: Options) -> girih::Result<Box<dyn Runnable>> {
        let (kernel, arguments) = (self.kernel.clone().with_options(options), self.arguments.borrow().duplicate()?);
        Ok(Box::new(ByHand::new(&self.source, kernel, self.grid, arguments)))
    }
    fn position(&self, name: &str) -> Result<usize, Failure> {
        arguments::result(&self.source, self.kernel.params(), &self.arguments.borrow(), name)
    }
    fn start(&self, often: Often) -> girih::Result<Box<dyn Run + '_>> {
        let arguments = often.arguments(&self.arguments)?;
        Ok(Box::new(Started { of: self, arguments, ran: false }))
    }
    fn reordered(&self) -> Option<&'static str> {
        None
    }
}

/// A run of a [`ByHand`].
struct Started<'a> {
    of: &'a ByHand,
    arguments: Arguments,
    ran: bool,
}

/// The error of an option that asks for the program behind a kernel.
fn no_program() -> Error {
    Error::argument("Kernel IR has no program that its results could be compared with")
}

impl Run for Started<'_> {
    fn run(&mut self) -> girih::Result<Report> {
        if std::mem::replace(&mut self.ran, true) {
            for i in 0..self.arguments.values.len() {
                self.arguments.restore(&self.of.arguments.borrow(), i);
            }
        }
        let start = Instant::now();
        let (kernel, grid, mut views) = (&self.of.kernel, self.of.grid, self.arguments.views());
        match self.of.options().device {
            Device::Sim => kernel.simulate(grid, &mut views)?,
            _ => kernel.run(grid, &mut views)?,
        }
        Ok(Report { seconds: start.elapsed().as_secs_f64(), ..Report::default() })
    }

    fn results(&self) -> Vec<Array<'_>> {
        let all = self.of.kernel.params().iter().zip(&self.arguments.values);
        all.filter_map(|(param, value)| match value {
            Value::Buffer(buffer) => {
                let elem = Elem::of(buffer.dtype());
                Some(Array { name: &param.name, buffer, elem, words: vec![], written: true })
            }
            _ => None,
        })
        .collect()
    }

    fn facts(&self, summary: &mut Json) {
        summary["kernel"] = json!(self.of.name());
    }
    fn verify_each(&mut self) -> girih::Result<String> {
        Err(no_program())
    }
    fn reference(&self) -> girih::Result<Result<Vec<Buffer>, String>> {
        Err(no_program())
    }
    fn error_bound(&self) -> girih::Result<ErrorBound> {
        Err(no_program())
    }
    fn stored_by(&self, _: usize, _: u64) -> girih::Result<Option<String>> {
        Ok(None)
    }
    fn rates(&mut self, _: f64, _: &mut Json) -> girih::Result<String> {
        Ok(format!("on the device {}", self.of.options().device))
    }
    fn profile(&mut self) -> girih::Result<Profile> {
        Err(Error::argument("Kernel IR has no profile: it runs on the simulator or the evaluator"))
    }
    fn tell(&self, seconds: f64) -> Result<(), Failure> {
        let (name, device) = (self.of.name(), self.of.options().device);
        say!("ran `{name}` on {device} in {}; `--print NAME` shows a buffer", timing::duration(seconds));
        Ok(())
    }
}
