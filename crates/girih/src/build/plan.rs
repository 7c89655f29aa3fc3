//! A model as functions of C see it: the caller's arrays and extents, and where every other array lies.
//!
//! In: a model taken apart, and its weights. Out: expressions of C, over the parameters of a function, for extents, sizes
//! and places, shared by [`super::cpu`] and [`super::cuda`].

use std::collections::BTreeMap;

use girih_compiler::graph::{Elem, MAX_EXTENT, SymId};
use girih_compiler::index::{Cmp, Cond, Ix};
use girih_compiler::loops::model::{ArrayId, ArrayPlace, LoopId, Move, Part, Step, StepArg};

use super::expr::{exact, literal};
use super::names::Names;
use super::weights::Weights;
use super::{header, label};
use crate::error::{Error, Result};
use crate::model::extent;
use crate::model::plan_export::{ALIGN, Life, Parts, place};
use crate::model::tensor::bytes_of;
use crate::options::Options;

/// An array of the caller: an input or an output.
pub struct Port {
    /// Its parameter.
    pub name: String,
    pub elem: Elem,
    /// `batch * 3 * 224`, as text and for people.
    pub shape: Vec<Ix>,
    pub called: String,
}

/// Where something lies that a step is given.
pub enum Place {
    /// The value of a symbol.
    Symbol(String),
    /// Where this parameter points.
    Caller(String),
    /// At these bytes of the weights and the arrays computed from them at load.
    Weights(usize),
    Loaded(u64),
    /// At these bytes of the arena, an expression.
    Arena(String),
    /// So many bytes behind another place: a row that a loop is at.
    Behind(Box<Place>, String),
}

/// How a language spells the parts of a loop that are not steps.
pub trait Spelled {
    /// A step, by its place among [`Parts::steps`].
    fn step(&self, at: usize) -> Result<String>;
    /// A copy of `bytes` bytes.
    fn copy(&self, to: Place, from: Place, bytes: &str) -> String;
    /// Statements that leave the loop unless a bool is true.
    fn leave(&self, condition: Place) -> String;
}

pub struct Planned<'a> {
    pub parts: &'a Parts<'a>,
    pub name: &'a str,
    pub weights: &'a Weights,
    pub symbols: Vec<String>,
    /// By position in the graph; parameters have none.
    pub inputs: BTreeMap<u32, Port>,
    pub outputs: Vec<Port>,
    /// The temporary arrays, and when each is needed.
    temporary: BTreeMap<ArrayId, (usize, [u32; 2])>,
    /// Where the steps of load write, if a caller runs them.
    loaded: BTreeMap<ArrayId, u64>,
    pub loaded_bytes: u64,
}

/// The bytes of an array that no symbol has a say in.
fn known_bytes(elem: Elem, shape: &[Ix]) -> Result<u64> {
    let extents = extent::shape(shape, &[]).ok_or_else(|| bug("an extent is not a number"))?;
    bytes_of(elem, &extents).ok_or_else(|| Error::argument("an array of the model is too large"))
}

impl<'a> Planned<'a> {
    pub fn new(parts: &'a Parts<'a>, name: &'a str, weights: &'a Weights) -> Result<Planned<'a>> {
        let graph = &parts.graph;
        let mut names = Names::of_function();
        let symbols: Vec<String> = graph.symbols.values().map(|s| names.fresh(&s.name)).collect();
        let port = |names: &mut Names, called: &str, elem, shape: &[Ix]| Port {
            name: names.fresh(called),
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
        let mut planned = Planned {
            parts,
            name,
            weights,
            symbols,
            inputs,
            outputs,
            temporary: BTreeMap::new(),
            loaded: BTreeMap::new(),
            loaded_bytes: 0,
        };
        planned.find_temporary();
        planned.find_loaded()?;
        Ok(planned)
    }

    /// Arrays that are neither the caller's nor weights, with the steps that name them first and last.
    fn find_temporary(&mut self) {
        let outputs = &self.parts.plan.outputs;
        let lives = self.parts.plan.lives().into_iter().filter(|(id, _)| !outputs.contains(id));
        self.temporary = lives.enumerate().map(|(at, (id, life))| (id, (at, life))).collect();
    }

    /// The steps of a run and their loops.
    pub fn run(&self, by: &dyn Spelled, placed: &Option<(Vec<u64>, u64)>) -> Result<String> {
        let plan = &self.parts.plan;
        self.spell(&plan.parts(0..plan.steps.len(), None), by, placed)
    }

    fn spell(&self, parts: &[Part], by: &dyn Spelled, placed: &Option<(Vec<u64>, u64)>) -> Result<String> {
        let plan = &self.parts.plan;
        let mut out = String::new();
        for part in parts {
            let (id, range) = match part {
                Part::Step(at) => {
                    out += &by.step(self.parts.load_steps() + at)?;
                    continue;
                }
                Part::Loop(id, range) => (*id, range.clone()),
            };
            let l = plan.loops.get(id).ok_or_else(|| bug("a loop vanished"))?;
            let moves = |moves: &[Move]| -> Result<String> {
                let one = |(from, to): &Move| {
                    let array = plan.arrays.get(*to).ok_or_else(|| bug("an array vanished"))?;
                    let bytes = self.bytes(array.elem, &array.shape)?;
                    Ok(by.copy(self.place(*to, placed)?, self.place(*from, placed)?, &bytes))
                };
                moves.iter().map(one).collect()
            };
            let (round, rounds) = (round_of(id), rounds_of(id));
            out += &format!("\n{}  const int64_t {rounds} = {};\n", moves(&l.before)?, self.ix(&l.rounds)?);
            out += &format!("  for (int64_t {round} = 0; {round} < {rounds}; {round}++) {{\n");
            let mut body = match l.condition {
                Some(condition) => by.leave(self.place(condition, placed)?),
                None => String::new(),
            };
            body += &moves(&l.first)?;
            body += &self.spell(&plan.parts(range, Some(id)), by, placed)?;
            body += &moves(&l.last)?;
            out.extend(body.lines().map(|line| if line.is_empty() { "\n".into() } else { format!("  {line}\n") }));
            out += "  }\n";
        }
        Ok(out)
    }

    /// Arrays that steps of load write, one after the other.
    fn find_loaded(&mut self) -> Result<()> {
        for (id, array) in self.parts.plan.arrays.iter() {
            if array.place == ArrayPlace::Loaded && !self.weights.at.contains_key(&id) {
                let bytes: u64 =
                    self.bytes(array.elem, &array.shape)?.parse().map_err(|_| bug("a weight has no size"))?;
                self.loaded.insert(id, self.loaded_bytes);
                self.loaded_bytes = (self.loaded_bytes + bytes).next_multiple_of(ALIGN);
            }
        }
        Ok(())
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

    pub fn ix(&self, ix: &Ix) -> Result<String> {
        exact(ix, &self.leaf()).ok_or_else(|| bug("an extent does not follow from the symbols"))
    }

    /// The elements of an array.
    fn elements(&self, shape: &[Ix]) -> Result<String> {
        let too_large = || Error::argument("an array of the model is too large");
        let known =
            shape.iter().filter_map(Ix::as_const).try_fold(1i64, |n, d| n.checked_mul(d)).ok_or_else(too_large)?;
        let mut text = literal(known);
        for d in shape.iter().filter(|d| d.as_const().is_none()) {
            text = format!("girih_by(&bad, {text}, {})", self.ix(d)?);
        }
        Ok(text)
    }

    /// Returns true if an array has elements for every value of the symbols.
    fn has_elements(&self, shape: &[Ix]) -> bool {
        let symbol = |ix: &Ix| match ix {
            Ix::Val { val, .. } => self.parts.graph.symbols.get(SymId(val.0)).is_some_and(|s| s.lo > 0),
            _ => false,
        };
        shape.iter().all(|d| d.as_const().is_some_and(|n| n > 0) || symbol(d))
    }

    /// Its bytes.
    pub fn bytes(&self, elem: Elem, shape: &[Ix]) -> Result<String> {
        let elements = self.elements(shape)?;
        let known = elements.parse::<u64>().ok();
        Ok(match (known, elem.dtype.bits()) {
            (Some(n), 4) => n.div_ceil(2).to_string(),
            (Some(n), _) => (n * elem.dtype.bytes()).to_string(),
            (None, 4) => format!("(uint64_t)({elements} + 1) / 2"),
            (None, _) => format!("(uint64_t)girih_mul(&bad, {elements}, {})", elem.dtype.bytes()),
        })
    }

    /// The caller's arrays and extents that the functions take, as the header lists them.
    pub fn listed(&self) -> String {
        let mut out = String::new();
        if !self.symbols.is_empty() {
            out += "\n// Extents that a call gives:\n";
            for (symbol, s) in self.symbols.iter().zip(self.parts.graph.symbols.values()) {
                let most = s.hi.unwrap_or(MAX_EXTENT);
                out += &format!("//   {symbol}    {}, from {} to {most}\n", label(&s.name), s.lo);
            }
        }
        out += "\n// Arrays are row-major and without gaps. Outputs overlap nothing.\n";
        for (role, port) in self.inputs.values().map(|p| ("in ", p)).chain(self.outputs.iter().map(|p| ("out", p))) {
            // A product is one between spaces: no comment ends there.
            let extent = |d: &Ix| label(&self.parts.graph.ix_text(d)).replace("\\u{2a}", " * ");
            let shape: Vec<String> = port.shape.iter().map(extent).collect();
            let note = header::note(port.elem.dtype);
            let text = format!("{}: {}[{}]{note}", label(&port.called), port.elem, shape.join(", "));
            out += &format!("//   {role} {}    {text}\n", port.name);
        }
        out
    }

    /// `, int64_t batch`
    pub fn and_symbols(&self) -> String {
        self.symbols.iter().map(|s| format!(", int64_t {s}")).collect()
    }

    /// The room for the places of temporary arrays in C, which has no arrays without elements.
    pub fn room(&self) -> usize {
        self.temporary.len().max(1)
    }

    /// `girih_layout`, which finds where temporary arrays lie for given extents; nothing without symbols.
    pub fn layout(&self) -> Result<String> {
        if self.symbols.is_empty() {
            return Ok(String::new());
        }
        let mut out = format!("{}{}", include_str!("exact.c"), include_str!("place.c"));
        out += "\n// Where each temporary array lies, and the length of all.\n";
        out += &format!("static int girih_layout(uint64_t *at, uint64_t *length{}) {{\n", self.and_symbols());
        for (symbol, s) in self.symbols.iter().zip(self.parts.graph.symbols.values()) {
            let most = literal(s.hi.unwrap_or(MAX_EXTENT));
            out += &format!("  if ({symbol} < {} || {symbol} > {most}) return GIRIH_EXTENT;\n", literal(s.lo));
        }
        out += "  int bad = 0;\n";
        for Cond { lhs, cmp, rhs } in &self.parts.graph.guards {
            let sign = match cmp {
                Cmp::Lt => "<",
                Cmp::Le => "<=",
                Cmp::Gt => ">",
                Cmp::Ge => ">=",
                Cmp::Eq => "==",
                Cmp::Ne => "!=",
            };
            out += &format!("  if (!({} {sign} {}) || bad) return GIRIH_EXTENT;\n", self.ix(lhs)?, self.ix(rhs)?);
        }
        for port in self.inputs.values().chain(&self.outputs).filter(|p| p.shape.iter().any(|d| d.as_const().is_none()))
        {
            out += &format!("  (void){};\n", self.elements(&port.shape)?);
        }
        let (all, count, room) = (self.by_number(), self.temporary.len(), self.room());
        let lives: Vec<String> = all.iter().map(|(_, [a, b])| format!("{{{a}, {b}}}")).collect();
        let lives = if lives.is_empty() { "{0, 0}".into() } else { lives.join(", ") };
        out +=
            &format!("  static const uint32_t life[{room}][2] = {{{lives}}};\n  const uint64_t bytes[{room}] = {{\n");
        for (id, _) in &all {
            let array = self.parts.plan.arrays.get(*id).ok_or_else(|| bug("an array vanished"))?;
            out += &format!("    {},\n", self.bytes(array.elem, &array.shape)?);
        }
        out += if all.is_empty() { "    0,\n" } else { "" };
        out += &format!("  }};\n  for (int i = 0; i < {count}; i++) bad |= bytes[i] > (uint64_t)1 << 46;\n");
        out += &format!("  if (bad) return GIRIH_TOO_LARGE;\n  int work[{}];\n", 2 * room);
        out += &format!("  *length = (girih_place({count}, bytes, life, at, work) + 63) / 64 * 64;\n  return 0;\n}}\n");
        Ok(out)
    }

    /// Where temporary arrays lie, and their length, where no symbol has a say.
    pub fn placed(&self) -> Result<Option<(Vec<u64>, u64)>> {
        if !self.symbols.is_empty() {
            return Ok(None);
        }
        let mut lives = vec![];
        for (id, [first, last]) in self.by_number() {
            let array = self.parts.plan.arrays.get(id).ok_or_else(|| bug("an array vanished"))?;
            lives.push(Life { bytes: known_bytes(array.elem, &array.shape)?, first, last });
        }
        let placed = place(&lives).ok_or_else(|| Error::argument("the model's arrays are too large"))?;
        Ok(Some((placed.0, placed.1.next_multiple_of(ALIGN))))
    }

    /// An error if weights, and the temporary arrays and results of known size, take more than the limit allows.
    pub fn allow(&self, options: &Options) -> Result<()> {
        let mut bytes = (self.weights.bytes.len() as u64).saturating_add(self.loaded_bytes);
        if let Some((_, arena)) = self.placed()? {
            bytes = bytes.saturating_add(arena);
            for output in &self.outputs {
                bytes = bytes.saturating_add(known_bytes(output.elem, &output.shape)?);
            }
        }
        options.allow(bytes, "the model's weights, temporary arrays and results")
    }

    /// `if (...) `, where a step may have nothing to write.
    pub fn condition(&self, step: &Step) -> Result<String> {
        let arrays: Vec<_> = step.writes.iter().filter_map(|id| self.parts.plan.arrays.get(*id)).collect();
        if arrays.iter().any(|a| self.has_elements(&a.shape)) {
            return Ok(String::new());
        }
        let some =
            arrays.iter().map(|a| Ok(format!("{} != 0", self.elements(&a.shape)?))).collect::<Result<Vec<_>>>()?;
        Ok(format!("if ({}) ", if some.is_empty() { "0".to_string() } else { some.join(" || ") }))
    }

    /// The place of a step's argument.
    pub fn argument(&self, arg: &StepArg, placed: &Option<(Vec<u64>, u64)>) -> Result<Place> {
        match arg {
            StepArg::Array(id) => self.place(*id, placed),
            StepArg::Symbol(s) => {
                let name = self.symbols.get(s.0 as usize).ok_or_else(|| bug("a symbol vanished"))?;
                Ok(Place::Symbol(name.clone()))
            }
        }
    }

    fn place(&self, id: ArrayId, placed: &Option<(Vec<u64>, u64)>) -> Result<Place> {
        let array = self.parts.plan.arrays.get(id).ok_or_else(|| bug("an array vanished"))?;
        if let ArrayPlace::Row { of, within, reverse } = array.place {
            let (round, bytes) = (round_of(within), self.bytes(array.elem, &array.shape)?);
            let at = if reverse { format!("({} - 1 - {round})", rounds_of(within)) } else { round };
            return Ok(Place::Behind(Box::new(self.place(of, placed)?), format!("(uint64_t){at} * {bytes}")));
        }
        if let Some(at) = self.weights.at.get(&id) {
            return Ok(Place::Weights(*at));
        }
        if let Some(at) = self.loaded.get(&id) {
            return Ok(Place::Loaded(*at));
        }
        if let ArrayPlace::Input(i) = array.place {
            let port = self.inputs.get(&i).ok_or_else(|| bug("an input has no place"))?;
            return Ok(Place::Caller(port.name.clone()));
        }
        let output = self.parts.plan.outputs.iter().position(|o| *o == id);
        if let Some(port) = output.and_then(|k| self.outputs.get(k)) {
            return Ok(Place::Caller(port.name.clone()));
        }
        let number = self.temporary.get(&id).map(|(n, _)| *n).ok_or_else(|| bug("an array has no place"))?;
        Ok(Place::Arena(match placed {
            Some((at, _)) => at.get(number).copied().unwrap_or(0).to_string(),
            None => format!("at[{number}]"),
        }))
    }

    /// The outputs that no step writes in their place: their parameter, where they are copied from, and their bytes.
    pub fn copies(&self, placed: &Option<(Vec<u64>, u64)>) -> Result<Vec<(&str, Place, String)>> {
        let mut all = vec![];
        let outputs = &self.parts.plan.outputs;
        for (k, (port, id)) in self.outputs.iter().zip(outputs).enumerate() {
            let array = self.parts.plan.arrays.get(*id).ok_or_else(|| bug("an array vanished"))?;
            let first = outputs.iter().position(|o| o == id) == Some(k);
            if array.place != ArrayPlace::Temp || !first {
                all.push((port.name.as_str(), self.place(*id, placed)?, self.bytes(port.elem, &port.shape)?));
            }
        }
        Ok(all)
    }
}

/// The round that a loop is in, and how many it has; no symbol has such a name.
fn round_of(id: LoopId) -> String {
    format!("girih_round{}", id.0)
}

fn rounds_of(id: LoopId) -> String {
    format!("girih_rounds{}", id.0)
}

/// A mistake of this project.
pub fn bug(what: &str) -> Error {
    Error::Internal(what.to_string())
}
