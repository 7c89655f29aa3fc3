//! An entry of a tile program, with its grid and arguments.

use std::cell::RefCell;

use girih::model::Profile;
use girih::widen::{self, ErrorBound};
use girih::{Buffer, Compiled, Device, Inspect, Kernel, Options, Param, Report, Stage, Traffic};
use girih_compiler::graph::Elem;
use serde_json::{Value as Json, json};

use super::{Array, Often, Run, Runnable};
use crate::cli::LaunchArgs;
use crate::commands::run::arguments::{self, Arguments, Value};
use crate::commands::run::timing;
use crate::failure::Failure;
use crate::render::{self, Source};
use crate::{output, source};

/// The grid and the arguments that the flags and the file's comment ask for.
pub fn launch_of(
    source: &Source,
    kernel: &str,
    params: &[Param],
    args: &LaunchArgs,
) -> Result<([u32; 3], Arguments), Failure> {
    let comment = source::launch_comment(source, Some(kernel))?.unwrap_or_default();
    let grid = args.grid.or(comment.grid).unwrap_or([1, 1, 1]);
    Ok((grid, Arguments::resolve(source, params, &args.args, comment.args)?))
}

pub struct Launch {
    source: Source,
    kernel: Kernel<'static>,
    grid: [u32; 3],
    /// As they were given; empty once the only run has taken them.
    arguments: RefCell<Arguments>,
}

impl Launch {
    pub fn new(source: &Source, kernel: Kernel<'static>, launch: &LaunchArgs) -> Result<Launch, Failure> {
        let (grid, arguments) = launch_of(source, kernel.name(), kernel.params(), launch)?;
        Ok(Launch { source: source.clone(), kernel, grid, arguments: arguments.into() })
    }
}

impl Runnable for Launch {
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
        Some(self.kernel.tuning_key())
    }

    fn under(&self, options: Options) -> girih::Result<Box<dyn Runnable>> {
        let kernel = self.kernel.beside(options);
        let arguments = self.arguments.borrow().duplicate()?;
        Ok(Box::new(Launch { source: self.source.clone(), kernel, grid: self.grid, arguments: arguments.into() }))
    }

    fn position(&self, name: &str) -> Result<usize, Failure> {
        arguments::result(&self.source, self.kernel.params(), &self.arguments.borrow(), name)
    }

    fn start(&self, often: Often) -> girih::Result<Box<dyn Run + '_>> {
        let arguments = often.arguments(&self.arguments)?;
        Ok(Box::new(Launched { of: self, arguments, known: None }))
    }

    fn reordered(&self) -> Option<&'static str> {
        let text = self.kernel.ir(Stage::Tile).unwrap_or_default();
        let several = text.lines().any(|l| l.contains("reduce vector(") && l.contains(" combine "));
        several.then_some(
            "native code adds up vectors in another, fixed order; `--knob vectorise=0` keeps the evaluator's, and without \
             `--bits` floats are compared within a bound",
        )
    }
}

/// A run of a [`Launch`].
struct Launched<'a> {
    of: &'a Launch,
    arguments: Arguments,
    /// Known from the first run on.
    known: Option<Known>,
}

struct Known {
    traffic: Traffic,
    compiled: Option<Compiled>,
    /// The arrays that a run starts from and changes.
    updated: Vec<usize>,
}

impl Launched<'_> {
    fn scalars(&self) -> Vec<u64> {
        let bits = |v: &Value| if let Value::Scalar { bits, .. } = v { *bits } else { 0 };
        self.arguments.values.iter().map(bits).collect()
    }

    fn written(&self, at: usize) -> bool {
        self.known.as_ref().is_none_or(|known| known.traffic.writes.get(at) == Some(&true))
    }
}

impl Run for Launched<'_> {
    fn run(&mut self) -> girih::Result<Report> {
        for &i in self.known.iter().flat_map(|known| &known.updated) {
            self.arguments.restore(&self.of.arguments.borrow(), i);
        }
        self.of.kernel.program().reset_globals();
        let mut views = self.arguments.views();
        let mut prepared = self.of.kernel.prepare(self.of.grid, &mut views)?;
        let report = prepared.run()?;
        if self.known.is_none() {
            let (traffic, compiled, updated) = (prepared.traffic(), prepared.compiled(), prepared.updated());
            self.known = Some(Known { traffic, compiled, updated });
        }
        Ok(report)
    }

    fn results(&self) -> Vec<Array<'_>> {
        let all = self.of.kernel.params().iter().zip(&self.arguments.values).enumerate();
        all.filter_map(|(i, (param, value))| match value {
            Value::Buffer(buffer) => {
                let (elem, written) = (Elem::of(buffer.dtype()), self.written(i));
                Some(Array { name: &param.name, buffer, elem, words: vec![], written })
            }
            _ => None,
        })
        .collect()
    }

    fn facts(&self, summary: &mut Json) {
        let compiled = self.known.as_ref().and_then(|known| known.compiled);
        summary["kernel"] = json!(self.of.name());
        summary["compile_s"] = json!(compiled.map_or(0.0, |c| c.seconds));
        summary["cached"] = json!(compiled.is_some_and(|c| c.cached));
        summary["no_wrap"] = json!(compiled.map(|c| c.assume.no_wrap));
        summary["no_alias"] = json!(compiled.map(|c| c.assume.no_alias));
    }

    fn verify_each(&mut self) -> girih::Result<String> {
        let checked = self.of.kernel.verify_each(self.of.grid, &mut self.arguments.views())?;
        Ok(format!("verify-each: {checked} rewrites, none changes what the first and the last block store"))
    }

    fn reference(&self) -> girih::Result<Result<Vec<Buffer>, String>> {
        let kernel = &self.of.kernel;
        let wide = match kernel.program().widened() {
            Ok(wide) => wide,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut inputs = self.of.arguments.borrow().widened()?;
        let options = Options { device: Device::Eval, ..kernel.options().clone() };
        wide.entry(kernel.name())?.with_options(options).launch(self.of.grid, &mut inputs.views())?;
        let own = |value| if let Value::Buffer(buffer) = value { Some(buffer) } else { None };
        Ok(Ok(inputs.values.into_iter().filter_map(own).collect()))
    }

    fn error_bound(&self) -> girih::Result<ErrorBound> {
        Ok(self.of.kernel.error_bound(self.of.grid, &self.scalars()))
    }

    fn stored_by(&self, position: usize, element: u64) -> girih::Result<Option<String>> {
        let own = |(i, value): (usize, &Value)| matches!(value, Value::Buffer(_)).then_some(i);
        let Some(param) = self.arguments.values.iter().enumerate().filter_map(own).nth(position) else {
            return Ok(None);
        };
        let evaluator = self.of.kernel.beside(Options { device: Device::Eval, ..self.of.kernel.options().clone() });
        let mut fresh = self.of.arguments.borrow().duplicate()?;
        let Some(store) = evaluator.find_store(self.of.grid, &mut fresh.views(), param, element)? else {
            return Ok(Some("the evaluator stores nothing there".to_string()));
        };
        let source = &self.of.source;
        let place = store.span.map(|s| render::place(&source.text, s.start));
        let place = place.map_or(String::new(), |(line, column)| format!(" at {}:{line}:{column}", source.name));
        Ok(Some(format!("it is stored by `{}`{place} in block {:?}", store.op, store.block)))
    }

    fn rates(&mut self, seconds: f64, summary: &mut Json) -> girih::Result<String> {
        let mut views = self.arguments.views();
        let prepared = self.of.kernel.prepare(self.of.grid, &mut views)?;
        let bytes = prepared.bytes() as f64 / seconds / 1e9;
        summary["gbytes_per_s"] = json!(bytes);
        let Some(flops) = prepared.flops().filter(|&flops| flops > 0.0) else { return Ok(format!("{bytes:.2} GB/s")) };
        let flops = flops / seconds / 1e9;
        summary["gflop_per_s"] = json!(flops);
        Ok(format!("{flops:.1} GFLOP/s"))
    }

    fn profile(&mut self) -> girih::Result<Profile> {
        let seconds = timing::repeated(self)?;
        self.of.kernel.prepare(self.of.grid, &mut self.arguments.views())?.profile(seconds)
    }

    /// The launch, and how to see its results. A kernel that prints and stores nothing has shown everything.
    fn tell(&self, seconds: f64) -> Result<(), Failure> {
        let kernel = &self.of.kernel;
        let writes = kernel.writes().unwrap_or_default();
        let written: Vec<(&str, String)> = (kernel.params().iter().enumerate())
            .filter(|(i, _)| writes.get(*i) == Some(&true))
            .filter_map(|(i, p)| Some((p.name.as_str(), arguments::type_text(self.arguments.buffer(i)?))))
            .collect();
        if written.is_empty() && output::printed() {
            return Ok(());
        }
        let ([x, y, z], device) = (self.of.grid, kernel.options().device);
        let ran = format!("ran `{}` on {device}, grid {x},{y},{z}, in {}", kernel.name(), timing::duration(seconds));
        match written.first() {
            None => say!("{ran}; it stores nothing"),
            Some((first, _)) => {
                let list: Vec<String> = written.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
                say!("{ran}; it stores to {}", list.join(", "));
                say!("`--print {first}` shows it, `--save {first}=FILE.npy` keeps it, `--verify` checks it");
            }
        }
        Ok(())
    }

    fn sample(&mut self, statements: f64, least: u64) -> girih::Result<Option<[u64; 2]>> {
        let mut views = self.arguments.views();
        let blocks = self.of.kernel.prepare(self.of.grid, &mut views)?.sample(statements, least);
        Ok(blocks.map(|blocks| [blocks, self.of.grid.iter().map(|n| u64::from(*n)).product()]))
    }
}

impl Arguments {
    /// A copy whose floats are float64.
    fn widened(&self) -> girih::Result<Arguments> {
        let one = |v: &Value| {
            Ok(match v {
                Value::Scalar { dtype, bits } => {
                    Value::Scalar { dtype: widen::widened(*dtype), bits: widen::widen_bits(*dtype, *bits) }
                }
                Value::Buffer(b) if b.dtype().is_float() => {
                    let mut wide = Buffer::zeroed(widen::widened(b.dtype()), b.shape())?;
                    for i in 0..b.elements() {
                        wide.set(i, widen::widen_bits(b.dtype(), b.get(i)));
                    }
                    Value::Buffer(wide)
                }
                Value::Buffer(b) => Value::Buffer(b.duplicate()?),
                Value::Same(i) => Value::Same(*i),
                Value::Pointers(of) => Value::Pointers(of.clone()),
            })
        };
        Ok(Arguments { values: self.values.iter().map(one).collect::<girih::Result<_>>()? })
    }
}
