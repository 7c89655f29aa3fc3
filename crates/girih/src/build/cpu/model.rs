//! The C of a model for a CPU: one function over the caller's buffers.
//!
//! ```c
//! size_t gate_arena(unsigned workers, int64_t rows);
//! int gate_run(const void *weights, void *arena, int64_t rows, const float *x, float *y);
//! ```

use super::super::expr::literal;
use super::super::plan::{Place, Planned, Spelled, bug};
use super::super::weights::{Weights, list};
use super::super::{File, header, label};
use super::archive;
use super::source::Source;
use crate::compile::cc::Compiler;
use crate::error::Result;
use crate::model::plan_export::{ALIGN, Parts};
use crate::options::Options;

/// The C, the header and, where it is large, the file of weights.
pub fn files(parts: &Parts<'_>, name: &str, compiler: &Compiler, options: &Options) -> Result<Vec<File>> {
    let weights = Weights::new(&parts.weights()?, true);
    let writer = Writer(Planned::new(parts, name, &weights)?);
    writer.allow(options)?;
    let command = archive::command(name, compiler);
    let mut files = vec![
        File::text(format!("{name}.h"), "the functions", writer.header(compiler)?),
        File::text(format!("{name}.c"), "the source", writer.source(&command, options)?),
    ];
    if weights.is_file() {
        files.push(File { name: format!("{name}.weights"), what: "the weights", bytes: weights.bytes });
    }
    Ok(files)
}

struct Writer<'a>(Planned<'a>);

impl<'a> std::ops::Deref for Writer<'a> {
    type Target = Planned<'a>;
    fn deref(&self) -> &Planned<'a> {
        &self.0
    }
}

impl Writer<'_> {
    /// The parameters that every call has.
    fn parameters(&self) -> String {
        let mut all = vec![];
        if self.weights.is_file() {
            all.push("const void *weights".to_string());
        }
        all.push("void *arena".to_string());
        all.extend(self.symbols.iter().map(|s| format!("int64_t {s}")));
        all.extend(self.inputs.values().map(|p| format!("const {} *{}", header::c_type(p.elem), p.name)));
        all.extend(self.outputs.iter().map(|p| format!("{} *{}", header::c_type(p.elem), p.name)));
        all.join(", ")
    }

    /// The same in a call.
    fn arguments(&self) -> String {
        let weights = self.weights.is_file().then_some("weights");
        let arrays = self.inputs.values().chain(&self.outputs).map(|p| p.name.as_str());
        let all = weights.into_iter().chain(["arena"]).chain(self.symbols.iter().map(String::as_str)).chain(arrays);
        all.collect::<Vec<_>>().join(", ")
    }

    fn header(&self, compiler: &Compiler) -> Result<String> {
        let (name, upper, parameters) = (self.name, self.name.to_uppercase(), self.parameters());
        let mut body = String::new();
        if self.weights.is_file() {
            let bytes = self.weights.bytes.len().to_string();
            body += &header::filled(WEIGHTS, &[("$name", name), ("$upper", &upper), ("$bytes", &bytes)]);
        }
        body += &self.listed();
        body += &header::filled(ARENA, &[("$name", name), ("$symbols", &self.and_symbols())]);
        if let (true, Some((_, length))) = (self.symbols.is_empty(), self.placed()?) {
            body += &format!("#define {upper}_ARENA_BYTES {}\n", length + self.scratch());
        }
        let words = [("$name", name), ("$parameters", parameters.as_str())];
        body += &header::filled(RUN, &words);
        body += &header::shared(name);
        body += &header::filled(RUN_ON, &words);
        let title = format!("The model {}.{}", label(&self.parts.graph.name), archive::needs(compiler));
        Ok(header::whole(name, &title, "", &body))
    }

    /// Bytes of scratch for a worker.
    fn scratch(&self) -> u64 {
        let most = self.parts.kernels.iter().map(|k| k.kernel.scratch).max().unwrap_or(0);
        most.next_multiple_of(ALIGN)
    }

    fn source(&self, command: &str, options: &Options) -> Result<String> {
        let kernels: Vec<_> = self.parts.kernels.iter().collect();
        let mut source = Source::new(self.name, command, &kernels, &options.resolved_target())?;
        let out = &mut source.text;
        self.weights_of(out);
        *out += &self.layout()?;
        self.arena(out)?;
        self.run(out)?;
        Ok(source.finish(self.name))
    }

    fn weights_of(&self, out: &mut String) {
        let (name, bytes) = (self.name, &self.weights.bytes);
        if self.weights.is_file() {
            *out += include_str!("map.c");
            let (length, head) = (bytes.len().to_string(), list(self.weights.head()));
            *out += &header::filled(MAP, &[("$name", name), ("$length", &length), ("$head", &head)]);
        } else if !bytes.is_empty() {
            *out +=
                &format!("\nstatic const uint8_t weights[] __attribute__((aligned(64))) = {{\n{}}};\n", list(bytes));
        }
    }

    /// The function that says how long the arena is.
    fn arena(&self, out: &mut String) -> Result<()> {
        let (name, scratch, symbols) = (self.name, self.scratch(), self.and_symbols());
        *out += &format!("\nsize_t {name}_arena(unsigned workers{symbols}) {{\n");
        let length = match self.placed()? {
            Some((_, length)) => length.to_string(),
            None => {
                *out += &format!("  uint64_t at[{}], length;\n", self.room());
                *out += &format!("  if (girih_layout(at, &length, {})) return 0;\n", self.symbols.join(", "));
                "length".into()
            }
        };
        *out += &format!("  return {length} + workers * (size_t){scratch};\n}}\n");
        Ok(())
    }

    fn run(&self, out: &mut String) -> Result<()> {
        let (name, parameters) = (self.name, self.parameters());
        *out += &format!("\nint {name}_run_on(const {name}_threads *threads, {parameters}) {{\n");
        let placed = self.placed()?;
        *out += "  int bad = 0, failed = 0;\n";
        *out += "  (void)arena, (void)bad, (void)failed;\n";
        let length = match &placed {
            Some((_, length)) => length.to_string(),
            None => {
                let room = self.room();
                *out += &format!("  uint64_t at[{room}], length;\n");
                *out += &format!(
                    "  if ((failed = girih_layout(at, &length, {}))) return failed;\n",
                    self.symbols.join(", ")
                );
                "length".into()
            }
        };
        let scratch = self.scratch();
        *out += &format!("  girih_launch launch = {{.threads = threads, .scratch_bytes = {scratch}}};\n");
        *out += &format!("  if (arena) launch.scratch = (char *)arena + {length};\n");
        *out += &self.0.run(&Steps { plan: &self.0, placed: &placed }, &placed)?;
        for (to, from, bytes) in self.copies(&placed)? {
            *out += &format!("  if ({bytes}) memcpy({to}, (const void *)(uintptr_t)({}), {bytes});\n", spelled(from));
        }
        *out += &format!(
            "  return 0;\n}}\n\nint {name}_run({parameters}) {{\n  return {name}_run_on(0, {});\n}}\n",
            self.arguments()
        );
        Ok(())
    }
}

struct Steps<'a> {
    plan: &'a Planned<'a>,
    placed: &'a Option<(Vec<u64>, u64)>,
}

impl Spelled for Steps<'_> {
    fn step(&self, at: usize) -> Result<String> {
        let plan = self.plan;
        let (step, kernel, grid) = plan.parts.steps().nth(at).ok_or_else(|| bug("a step vanished"))?;
        let what = crate::model::step_text(&plan.parts.graph, step);
        let grid = grid.iter().map(|n| plan.ix(n)).collect::<Result<Vec<_>>>()?.join(", ");
        let args = step.args.iter().map(|arg| Ok(spelled(plan.argument(arg, self.placed)?)));
        let args = args.collect::<Result<Vec<_>>>()?;
        let condition = plan.condition(step)?;
        let args = if args.is_empty() { "0".to_string() } else { args.join(", ") };
        let kernel = kernel.to_string();
        let call = header::filled(STEP, &[("$if", &condition), ("$n", &kernel), ("$grid", &grid), ("$args", &args)]);
        Ok(format!("\n  // {}\n{call}", label(&what)))
    }

    fn copy(&self, to: Place, from: Place, bytes: &str) -> String {
        let (to, from) = (spelled(to), spelled(from));
        format!("  if ({bytes}) memmove((void *)(uintptr_t)({to}), (const void *)(uintptr_t)({from}), {bytes});\n")
    }

    fn leave(&self, condition: Place) -> String {
        format!("  if (!*(const uint8_t *)(uintptr_t)({})) break;\n", spelled(condition))
    }
}

/// An argument of a step as 64 bits.
fn spelled(place: Place) -> String {
    match place {
        Place::Symbol(name) => format!("(uint64_t){name}"),
        Place::Caller(name) => format!("girih_at({name})"),
        Place::Weights(at) => format!("girih_at((const char *)weights + {at})"),
        // On a CPU, arrays computed at load lie among the weights.
        Place::Loaded(at) => literal(at as i64),
        Place::Arena(at) => format!("(uint64_t)(uintptr_t)arena + {at}"),
        Place::Behind(place, bytes) => format!("{} + {bytes}", spelled(*place)),
    }
}

const WEIGHTS: &str = "
// The weights are the file $name.weights. `$name_map` maps it; NULL where it cannot (see errno), EINVAL where it is not the
// file that was written with this header. A caller may read it into memory as well, at a multiple of 64.
#define $upper_WEIGHTS_BYTES $bytes
const void *$name_map(const char *path);
void $name_unmap(const void *weights);
";

const ARENA: &str = "
// Bytes of the arena, where temporary arrays lie: memory of the caller's at a multiple of 64, of one call at a time. 0
// where an extent is out of its range. `workers` is 1 for `$name_run`.
size_t $name_arena(unsigned workers$symbols);
";

const RUN: &str = "
// Runs the model on the calling thread, block by block; 0, or a number that `$name_message` puts in words.
int $name_run($parameters);
";

const RUN_ON: &str = "
// The same on the caller's threads, with an arena for their number. The results are the same in every bit.
int $name_run_on(const $name_threads *threads, $parameters);
";

const MAP: &str = "
const void *$name_map(const char *path) {
  static const uint8_t head[] = {
$head  };
  return girih_map(path, $length, head, sizeof head);
}

void $name_unmap(const void *weights) {
  munmap((void *)weights, $length);
}
";

const STEP: &str = "  $iffailed = girih_step(&launch, &bad, girih_$n, girih_said_$n,
    (const int64_t[]){$grid},
    (const uint64_t[]){$args});
  if (failed) return failed;
";
