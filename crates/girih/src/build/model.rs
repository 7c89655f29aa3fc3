//! The C of a model for a CPU: one function over the caller's buffers.
//!
//! ```c
//! size_t gate_arena(unsigned workers, int64_t rows);
//! int gate_run(const void *weights, void *arena, int64_t rows, const float *x, float *y);
//! ```

use std::collections::BTreeMap;

use girih_compiler::graph::{Elem, MAX_EXTENT, SymId};
use girih_compiler::index::Ix;
use girih_compiler::kernel::ir::Idents;
use girih_compiler::loops::model::{ArrayId, ArrayPlace, Step, StepArg};

use super::expr::{exact, literal};
use super::source::Source;
use super::weights::{Weights, list};
use super::{File, archive, header, label, names};
use crate::compile::cc::Compiler;
use crate::error::{Error, Result};
use crate::model::parts::{ALIGN, Life, Parts, place};
use crate::options::Options;

/// The C, the header and, where it is large, the file of weights.
pub fn files(parts: &Parts<'_>, name: &str, compiler: &Compiler, options: &Options) -> Result<Vec<File>> {
    let weights = Weights::new(&parts.weights()?);
    let writer = Writer::new(parts, name, &weights)?;
    let command = archive::command(name, compiler);
    let mut files = vec![
        File::text(format!("{name}.h"), "the functions", writer.header()?),
        File::text(format!("{name}.c"), "the source", writer.source(&command, options)?),
    ];
    if weights.is_file() {
        files.push(File { name: format!("{name}.weights"), what: "the weights", bytes: weights.bytes });
    }
    Ok(files)
}

/// An array of the caller: an input or an output.
struct Port {
    /// Its parameter.
    name: String,
    elem: Elem,
    /// `batch * 3 * 224`, as text and for people.
    shape: Vec<Ix>,
    called: String,
}

struct Writer<'a> {
    parts: &'a Parts<'a>,
    name: &'a str,
    weights: &'a Weights,
    symbols: Vec<String>,
    /// By position in the graph; parameters have none.
    inputs: BTreeMap<u32, Port>,
    outputs: Vec<Port>,
    /// The temporary arrays, and when each is needed.
    temporary: BTreeMap<ArrayId, (usize, [u32; 2])>,
}

impl<'a> Writer<'a> {
    fn new(parts: &'a Parts<'a>, name: &'a str, weights: &'a Weights) -> Result<Writer<'a>> {
        let graph = &parts.graph;
        let mut names = names::of_function();
        let symbols: Vec<String> = graph.symbols.values().map(|s| names.fresh(&s.name).to_string()).collect();
        let port = |names: &mut Idents, called: &str, elem, shape: &[Ix]| Port {
            name: names.fresh(called).to_string(),
            elem,
            shape: shape.to_vec(),
            called: called.to_string(),
        };
        let mut inputs = BTreeMap::new();
        for (at, input) in (0u32..).zip(&graph.inputs).filter(|(at, _)| !parts.is_parameter(*at)) {
            if let Some(value) = graph.values.get(input.value) {
                inputs.insert(at, port(&mut names, &value.name, value.elem, &value.shape));
            }
        }
        let mut outputs = vec![];
        for (output, id) in graph.outputs.iter().zip(&parts.plan.outputs) {
            let array = parts.plan.arrays.get(*id).ok_or_else(|| bug("an output is not an array"))?;
            outputs.push(port(&mut names, &output.name, array.elem, &array.shape));
        }
        let mut writer = Writer { parts, name, weights, symbols, inputs, outputs, temporary: BTreeMap::new() };
        writer.find_temporary();
        Ok(writer)
    }

    /// Arrays that are neither the caller's nor weights, with the steps that name them first and last.
    fn find_temporary(&mut self) {
        let mut found: BTreeMap<ArrayId, (usize, [u32; 2])> = BTreeMap::new();
        for (at, (step, ..)) in (0u32..).zip(self.parts.steps()) {
            let args = step.args.iter().filter_map(|arg| match arg {
                StepArg::Array(id) => Some(*id),
                StepArg::Symbol(_) => None,
            });
            for id in args.chain(step.reads.iter().copied()).chain(step.writes.iter().copied()) {
                let temporary = self.parts.plan.arrays.get(id).is_some_and(|a| a.place == ArrayPlace::Temp);
                if temporary && !self.parts.plan.outputs.contains(&id) {
                    let next = found.len();
                    found.entry(id).or_insert((next, [at, at])).1[1] = at;
                }
            }
        }
        self.temporary = found;
    }

    /// Temporary arrays in the order of their numbers.
    fn by_number(&self) -> Vec<(ArrayId, [u32; 2])> {
        let mut all: Vec<_> = self.temporary.iter().map(|(id, (number, life))| (*number, *id, *life)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, id, life)| (id, life)).collect()
    }

    fn leaf(&self) -> impl Fn(&Ix) -> Option<String> + '_ {
        |ix| match ix {
            Ix::Val { val, .. } => self.symbols.get(val.0 as usize).cloned(),
            _ => None,
        }
    }

    fn ix(&self, ix: &Ix) -> Result<String> {
        exact(ix, &self.leaf()).ok_or_else(|| bug("an extent does not follow from the symbols"))
    }

    /// The elements of an array.
    fn elements(&self, shape: &[Ix]) -> Result<String> {
        let too_large = || Error::argument("an array of the model is too large");
        let known = shape.iter().filter_map(Ix::as_const).try_fold(1i64, |n, d| n.checked_mul(d)).ok_or_else(too_large)?;
        let mut text = literal(known);
        for d in shape.iter().filter(|d| d.as_const().is_none()) {
            text = format!("girih_by(&bad, {text}, {})", self.ix(d)?);
        }
        Ok(text)
    }

    /// Whether an array has elements, whatever the symbols are.
    fn has_elements(&self, shape: &[Ix]) -> bool {
        let symbol = |ix: &Ix| match ix {
            Ix::Val { val, .. } => self.parts.graph.symbols.get(SymId(val.0)).is_some_and(|s| s.lo > 0),
            _ => false,
        };
        shape.iter().all(|d| d.as_const().is_some_and(|n| n > 0) || symbol(d))
    }

    /// Its bytes.
    fn bytes(&self, elem: Elem, shape: &[Ix]) -> Result<String> {
        let elements = self.elements(shape)?;
        let known = elements.parse::<u64>().ok();
        Ok(match (known, elem.dtype.bits()) {
            (Some(n), 4) => n.div_ceil(2).to_string(),
            (Some(n), _) => (n * elem.dtype.bytes()).to_string(),
            (None, 4) => format!("(uint64_t)({elements} + 1) / 2"),
            (None, _) => format!("(uint64_t)girih_mul(&bad, {elements}, {})", elem.dtype.bytes()),
        })
    }

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

    /// `, int64_t batch`
    fn and_symbols(&self) -> String {
        self.symbols.iter().map(|s| format!(", int64_t {s}")).collect()
    }

    fn header(&self) -> Result<String> {
        let (name, upper) = (self.name, self.name.to_uppercase());
        let mut body = String::new();
        if self.weights.is_file() {
            body += &format!(
                "\n// The weights are the file {name}.weights. `{name}_map` maps it; NULL where it cannot (see errno), EINVAL where it is \
                 not the file that\n// was written with this header. A caller may read it into memory as well, at a multiple of \
                 64.\n#define {upper}_WEIGHTS_BYTES {}\nconst void *{name}_map(const char *path);\nvoid {name}_unmap(const void \
                 *weights);\n",
                self.weights.bytes.len()
            );
        }
        if !self.symbols.is_empty() {
            body += "\n// Extents that a call gives:\n";
            for (symbol, s) in self.symbols.iter().zip(self.parts.graph.symbols.values()) {
                let most = s.hi.unwrap_or(MAX_EXTENT);
                body += &format!("//   {symbol}    {}, from {} to {most}\n", label(&s.name), s.lo);
            }
        }
        body += "\n// Arrays are row-major and without gaps. Outputs overlap nothing.\n";
        for (role, port) in self.inputs.values().map(|p| ("in ", p)).chain(self.outputs.iter().map(|p| ("out", p))) {
            let shape: Vec<String> = port.shape.iter().map(|d| self.parts.graph.ix_text(d)).collect();
            let note = header::note(port.elem.dtype);
            let text = format!("{} {}[{}]{note}", label(&port.called), port.elem, label(&shape.join(", ")));
            body += &format!("//   {role} {}    {text}\n", port.name);
        }
        body += &format!(
            "\n// Bytes of the arena, where temporary arrays lie: memory of the caller's at a multiple of 64, of one call at a time; \
             0 where an\n// extent is out of its range. `workers` is 1 for `{name}_run`.\nsize_t {name}_arena(unsigned workers{});\n",
            self.and_symbols()
        );
        if let (true, Some((_, length))) = (self.symbols.is_empty(), self.placed()?) {
            body += &format!("#define {upper}_ARENA_BYTES {}\n", length + self.scratch());
        }
        body += &format!(
            "\n// Runs the model on the calling thread, block by block; 0, or a number that `{name}_message` puts in words.\nint \
             {name}_run({});\n",
            self.parameters()
        );
        body += &header::shared(name);
        body += &format!(
            "\n// The same on the caller's threads, whose arena is that of so many workers. The results are the same bits.\nint \
             {name}_run_on(const {name}_threads *threads, {});\n",
            self.parameters()
        );
        let title = format!("The model {}.", label(&self.parts.graph.name));
        Ok(header::whole(name, &title, &body))
    }

    /// Bytes of scratch for a worker.
    fn scratch(&self) -> u64 {
        let most = self.parts.kernels.iter().map(|k| k.kernel.scratch).max().unwrap_or(0);
        most.next_multiple_of(ALIGN)
    }

    /// Where temporary arrays lie, and their length, where no symbol has a say.
    fn placed(&self) -> Result<Option<(Vec<u64>, u64)>> {
        if !self.symbols.is_empty() {
            return Ok(None);
        }
        let mut lives = vec![];
        for (id, [first, last]) in self.by_number() {
            let array = self.parts.plan.arrays.get(id).ok_or_else(|| bug("an array vanished"))?;
            let bytes = self.bytes(array.elem, &array.shape)?.parse().map_err(|_| bug("an extent is not a number"))?;
            lives.push(Life { bytes, first, last });
        }
        let placed = place(&lives).ok_or_else(|| Error::argument("the model's arrays are too large"))?;
        Ok(Some((placed.0, placed.1.next_multiple_of(ALIGN))))
    }

    fn source(&self, command: &str, options: &Options) -> Result<String> {
        let kernels: Vec<_> = self.parts.kernels.iter().collect();
        let mut source = Source::new(self.name, command, &kernels, &options.resolved_target());
        let out = &mut source.text;
        self.weights_of(out);
        if !self.symbols.is_empty() {
            *out += include_str!("exact.c");
            *out += include_str!("place.c");
        }
        self.layout(out)?;
        self.run(out)?;
        Ok(source.finish(self.name))
    }

    fn weights_of(&self, out: &mut String) {
        let (name, bytes) = (self.name, &self.weights.bytes);
        if self.weights.is_file() {
            *out += include_str!("map.c");
            let (length, head) = (bytes.len(), self.weights.head());
            *out += &format!(
                "\nconst void *{name}_map(const char *path) {{\n  static const uint8_t head[] = {{\n{}  }};\n  return girih_map(path, \
                 {length}, head, sizeof head);\n}}\n\nvoid {name}_unmap(const void *weights) {{\n  munmap((void *)weights, \
                 {length});\n}}\n",
                list(head)
            );
        } else if !bytes.is_empty() {
            *out += &format!("\nstatic const _Alignas(64) uint8_t weights[] = {{\n{}}};\n", list(bytes));
        }
    }

    /// Where temporary arrays lie, and the functions that say how long the arena is.
    fn layout(&self, out: &mut String) -> Result<()> {
        let (name, scratch, count) = (self.name, self.scratch(), self.temporary.len());
        let symbols = self.and_symbols();
        let length = match self.placed()? {
            Some((_, length)) => format!("{length}"),
            None => {
                let given = self.symbols.join(", ");
                *out += "\n// Where each temporary array lies, and the length of all.\n";
                *out += &format!("static int girih_layout(uint64_t *at, uint64_t *length{symbols}) {{\n");
                for (symbol, s) in self.symbols.iter().zip(self.parts.graph.symbols.values()) {
                    let most = literal(s.hi.unwrap_or(MAX_EXTENT));
                    *out += &format!("  if ({symbol} < {} || {symbol} > {most}) return GIRIH_EXTENT;\n", literal(s.lo));
                }
                *out += "  int bad = 0;\n";
                for port in self.inputs.values().chain(&self.outputs).filter(|p| p.shape.iter().any(|d| d.as_const().is_none())) {
                    *out += &format!("  (void){};\n", self.elements(&port.shape)?);
                }
                let room = count.max(1);
                *out += &format!("  static const uint32_t life[{room}][2] = {{");
                let all = self.by_number();
                let lives: Vec<String> = all.iter().map(|(_, [a, b])| format!("{{{a}, {b}}}")).collect();
                *out += &format!("{}}};\n", if lives.is_empty() { "{0, 0}".into() } else { lives.join(", ") });
                *out += &format!("  const uint64_t bytes[{room}] = {{\n");
                for (id, _) in &all {
                    let array = self.parts.plan.arrays.get(*id).ok_or_else(|| bug("an array vanished"))?;
                    *out += &format!("    {},\n", self.bytes(array.elem, &array.shape)?);
                }
                *out += if all.is_empty() { "    0,\n" } else { "" };
                *out += &format!(
                    "  }};\n  for (int i = 0; i < {count}; i++) bad |= bytes[i] > (uint64_t)1 << 46;\n  if (bad) return \
                     GIRIH_TOO_LARGE;\n  int work[{}];\n  *length = (girih_place({count}, bytes, life, at, work) + 63) / 64 * 64;\n  \
                     return 0;\n}}\n",
                    2 * room
                );
                *out += &format!("\nsize_t {name}_arena(unsigned workers{symbols}) {{\n  uint64_t at[{room}], length;\n");
                *out += &format!("  if (girih_layout(at, &length, {given})) return 0;\n  return length + workers * (size_t){scratch};\n}}\n");
                return Ok(());
            }
        };
        *out += &format!("\nsize_t {name}_arena(unsigned workers) {{\n  return {length} + workers * (size_t){scratch};\n}}\n");
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
                let room = self.temporary.len().max(1);
                *out += &format!("  uint64_t at[{room}], length;\n");
                *out += &format!("  if ((failed = girih_layout(at, &length, {}))) return failed;\n", self.symbols.join(", "));
                "length".into()
            }
        };
        let scratch = self.scratch();
        *out += &format!("  girih_launch launch = {{.threads = threads, .scratch_bytes = {scratch}}};\n");
        *out += &format!("  if (arena) launch.scratch = (char *)arena + {length};\n");
        for (step, kernel, grid) in self.parts.steps() {
            let what = crate::model::step_text(&self.parts.graph, step);
            *out += &format!("\n  // {}\n", label(&what));
            let grid = grid.iter().map(|n| self.ix(n)).collect::<Result<Vec<_>>>()?.join(", ");
            let args = step.args.iter().map(|arg| self.argument(arg, &placed)).collect::<Result<Vec<_>>>()?;
            let condition = self.condition(step)?;
            let args = if args.is_empty() { "0".to_string() } else { args.join(", ") };
            *out += &format!(
                "  {condition}failed = girih_step(&launch, &bad, girih_{kernel}, girih_said_{kernel},\n    (const int64_t[]){{{grid}}},\n    \
                 (const uint64_t[]){{{args}}});\n  if (failed) return failed;\n"
            );
        }
        for (k, (port, id)) in self.outputs.iter().zip(&self.parts.plan.outputs).enumerate() {
            if let Some(from) = self.copied(k, *id)? {
                let bytes = self.bytes(port.elem, &port.shape)?;
                *out += &format!("  if ({bytes}) memcpy({}, {from}, {bytes});\n", port.name);
            }
        }
        *out += &format!("  return 0;\n}}\n\nint {name}_run({parameters}) {{\n  return {name}_run_on(0, {});\n}}\n", self.arguments());
        Ok(())
    }

    /// `if (...) `, where a step may have nothing to write.
    fn condition(&self, step: &Step) -> Result<String> {
        let arrays: Vec<_> = step.writes.iter().filter_map(|id| self.parts.plan.arrays.get(*id)).collect();
        if arrays.iter().any(|a| self.has_elements(&a.shape)) {
            return Ok(String::new());
        }
        let some = arrays.iter().map(|a| Ok(format!("{} != 0", self.elements(&a.shape)?))).collect::<Result<Vec<_>>>()?;
        Ok(format!("if ({}) ", if some.is_empty() { "0".to_string() } else { some.join(" || ") }))
    }

    /// The address of an array of the caller's or of a weight; `None` for a temporary one.
    fn fixed(&self, id: ArrayId) -> Result<Option<String>> {
        let array = self.parts.plan.arrays.get(id).ok_or_else(|| bug("an array vanished"))?;
        if let Some(at) = self.weights.at.get(&id) {
            return Ok(Some(format!("(const char *)weights + {at}")));
        }
        if let ArrayPlace::Input(i) = array.place {
            let port = self.inputs.get(&i).ok_or_else(|| bug("an input has no place"))?;
            return Ok(Some(port.name.clone()));
        }
        let output = self.parts.plan.outputs.iter().position(|o| *o == id);
        Ok(output.and_then(|k| self.outputs.get(k)).map(|p| p.name.clone()))
    }

    /// An argument of a step as 64 bits.
    fn argument(&self, arg: &StepArg, placed: &Option<(Vec<u64>, u64)>) -> Result<String> {
        let id = match arg {
            StepArg::Symbol(s) => {
                let name = self.symbols.get(s.0 as usize).ok_or_else(|| bug("a symbol vanished"))?;
                return Ok(format!("(uint64_t){name}"));
            }
            StepArg::Array(id) => *id,
        };
        if let Some(fixed) = self.fixed(id)? {
            return Ok(format!("girih_at({fixed})"));
        }
        let number = self.temporary.get(&id).map(|(n, _)| *n).ok_or_else(|| bug("an array has no place"))?;
        let offset = match placed {
            Some((at, _)) => at.get(number).copied().unwrap_or(0).to_string(),
            None => format!("at[{number}]"),
        };
        Ok(format!("(uint64_t)(uintptr_t)arena + {offset}"))
    }

    /// Where an output is copied from, that no step writes in its place.
    fn copied(&self, k: usize, id: ArrayId) -> Result<Option<String>> {
        let array = self.parts.plan.arrays.get(id).ok_or_else(|| bug("an array vanished"))?;
        let first = self.parts.plan.outputs.iter().position(|o| *o == id);
        if array.place == ArrayPlace::Temp && first == Some(k) {
            return Ok(None);
        }
        self.fixed(id)
    }
}

fn bug(what: &str) -> Error {
    Error::Internal(what.to_string())
}
