//! A compiled model in one file: its graph, its weights, the arrays computed from them, and the machine code of its kernels.
//!
//! The file is a [container](crate::system::container). Its header has the graph's text, the versions, and the number of each part.
//!
//! A load lowers the graph again, which takes milliseconds. It takes from the file the machine code of every kernel whose C is
//! the same, and the arrays that the steps of load wrote if the plan is the same. Kernels that another version, processor or
//! number of threads lowers differently are compiled anew; [`Model::recompiled`] says so. Weights stay in the file, which is
//! mapped.
//!
//! Machine code is loaded and run: if you give a file to [`Model::load`], you trust its author. A damaged or truncated file
//! is detected before any part of it is used: the whole file is read once and compared with the hashes in its header, at the
//! speed of the disk, by all threads. [`Options::unverified`] skips the weights and the arrays computed from them, for users
//! who trust the disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use girih_compiler::graph::parse::parse;
use girih_compiler::graph::print::{self, Dialect};
use girih_compiler::graph::{ConstData, Elem};
use girih_compiler::pipeline::{self, Silent};
use girih_compiler::tile::schedule::Schedule;
use memmap2::{MmapMut, MmapOptions};
use serde_json::{Value, json};

use super::files::Files;
use super::input_values::Given;
use super::load_order::largest_first;
use super::tensor::bytes_of;
use super::{Model, inputs};
use crate::compile::abi::ABI_VERSION;
use crate::compile::module::Module;
use crate::compile::version::Native;
use crate::error::{Error, Result};
use crate::options::{Device, Options};
use crate::system::container::{Form, Parts, Whole, hash};
use crate::system::files::read_regular;
use crate::system::machine;
use crate::system::sync::Brief;

const FORM: Form = Form { magic: b"girih model 2\n\0\0", what: "saved model" };
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The file of a model that was loaded.
pub(super) struct Saved {
    file: File,
    /// By the hash of their C: the bytes of the object.
    objects: BTreeMap<String, Bytes>,
    /// Name, place and length of the arrays that the steps of load wrote, in the order of the plan's arrays.
    loaded: Vec<(String, u64, u64)>,
    /// The version of the parameters that these were computed from.
    pub(super) parameters: u64,
    /// A hash of the plan.
    plan: String,
    /// Why no machine code of the file is used.
    refused: Option<String>,
    /// Why some of it could not be loaded here.
    failed: Brief<Option<String>>,
}

/// Identifies a kernel's C source.
fn key(source: &str) -> String {
    hash(format!("{ABI_VERSION}\n{source}").as_bytes())
}

impl Model {
    /// Writes the model as it is compiled: with its weights, the parameters that it was given, and its machine code.
    ///
    /// # Errors
    /// The errors of its compilation; parameters that were not given; a file that cannot be written; a device that is not the CPU.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        if self.options.device != Device::Cpu {
            return Err(Error::argument("a model is saved as it is compiled for the device cpu"));
        }
        let parameters = self.parameters(&[])?;
        // A load parses this text: names that were not unique change there, and so does the C.
        let names = print::data_names(&self.graph);
        let named = self.graph.constants.values().zip(names.values());
        let data: BTreeMap<&str, &Bytes> = named
            .filter_map(|(c, name)| if let ConstData::Bytes(b) = &c.data { Some((name.as_str(), b)) } else { None })
            .collect();
        let text = print::print(&self.graph, Dialect::of(&self.graph));
        let read = parse(&text, &|name| data.get(name).map(|b| (*b).clone())).map_err(|d| Error::Program(vec![d]))?;
        let options = Options { tuned: false, ..self.options.clone() };
        let again = Model::new(read.graph, Files::default(), None)?.with_options(options);
        let again = Model { saved: self.saved.clone(), ..again };
        let ready = again.executable()?;
        let pipeline::Model { tensor, scheduled: mut plan, rewrites, .. } = again.lower(&mut Silent)?;
        largest_first(&mut plan);
        let packed = again.load_steps(&plan, &tensor, rewrites, &parameters)?;
        let mut objects = vec![];
        for source in ready.sources(&self.options)? {
            let known = self.saved.as_ref().and_then(|s| s.objects.get(&key(&source)).cloned());
            let bytes = match known {
                Some(bytes) => bytes,
                None => {
                    let compiler = || self.tools.compiler(&self.options);
                    let entry = self.tools.cache(&self.options)?.find_or_build(&source, compiler)?;
                    let read = read_regular(&entry.object);
                    Bytes::from(read.map_err(|e| Error::file(&entry.object, format!("cannot be read: {e}")))?)
                }
            };
            objects.push((key(&source), bytes));
        }

        let mut parts = Parts::default();
        let mut constants = vec![];
        for (constant, name) in self.graph.constants.values().zip(names.values()).filter(|(_, name)| !name.is_empty()) {
            let ConstData::Bytes(bytes) = &constant.data else { continue };
            constants.push(json!([name, parts.add(bytes)]));
        }
        let mut given = vec![];
        for (at, parameter) in parameters.iter().enumerate() {
            let Some(parameter) = parameter else { continue };
            let raw = parameter.raw();
            let length = bytes_of(raw.elem, raw.shape).and_then(|n| usize::try_from(n).ok());
            let length = length.ok_or_else(|| Error::argument("a parameter is too large"))?;
            let bytes: &[u8] = match length {
                0 => &[],
                // SAFETY: a parameter lies where it says, in the type and shape that were checked, as long as it is held.
                _ => unsafe { std::slice::from_raw_parts(raw.data, length) },
            };
            given.push(json!([inputs::name(&self.graph, at), raw.shape, parts.add(bytes)]));
        }
        let loaded: Vec<Value> = packed
            .loaded()
            .map(|(id, bytes)| json!([plan.arrays.get(id).map_or("", |a| a.name.as_str()), parts.add(bytes)]))
            .collect();
        let objects: Vec<Value> = objects.iter().map(|(key, bytes)| json!([key, parts.add(bytes)])).collect();
        let header = json!({
            "version": VERSION,
            "abi": ABI_VERSION,
            "features": machine::features(),
            "knobs": self.options.knobs,
            "schedule": self.options.schedule.as_ref().map(|schedule| schedule.text()),
            "check": self.options.check,
            "graph": text,
            "plan": ready.fingerprint,
            "constants": constants,
            "parameters": given,
            "loaded": loaded,
            "objects": objects,
        });
        FORM.write(path, header, parts)
    }

    /// Reads a file of [`Model::save`]. Knobs, schedule and checks are those it was saved with, unless the options have knobs or a schedule.
    ///
    /// The file holds machine code, which is run: load only files whose author you trust.
    ///
    /// # Errors
    /// A file that cannot be read, is not a saved model, is damaged or truncated.
    pub fn load(path: impl AsRef<Path>, options: Options) -> Result<Model> {
        let path = path.as_ref();
        let wrong = |what: String| Error::file(path, what);
        let mut mapped = Files::default();
        let (bytes, file) = mapped.open_whole(path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
        let threads = options.thread_count() as usize;
        let read = |part: &[u8]| mapped.release(part);
        let whole = FORM.open(&bytes, !options.unverified, threads, &read).map_err(wrong)?;
        let Whole { header, .. } = &whole;
        let part = |number: &Value| whole.part(number);
        let damaged = || wrong("the saved model is damaged: its header contradicts itself".to_string());
        let list = |name: &str| header[name].as_array().map_or(&[][..], Vec::as_slice);
        let mut constants = BTreeMap::new();
        for c in list("constants") {
            constants.insert(c[0].as_str().ok_or_else(damaged)?, part(&c[1]).ok_or_else(damaged)?);
        }
        let text = header["graph"].as_str().ok_or_else(damaged)?;
        let parsed = parse(text, &|name| constants.get(name).cloned()).map_err(|d| Error::Program(vec![d]))?;
        let mut objects = BTreeMap::new();
        for o in list("objects") {
            // It is run: no trust in the disk is enough for that.
            let object = whole.checked(&o[1]).map_err(wrong)?.ok_or_else(damaged)?;
            objects.insert(o[0].as_str().ok_or_else(damaged)?.to_string(), object);
        }
        let mut loaded = vec![];
        for l in list("loaded") {
            let (at, length) = whole.range(&l[1]).ok_or_else(damaged)?;
            loaded.push((l[0].as_str().ok_or_else(damaged)?.to_string(), at, length));
        }
        let plan = header["plan"].as_str().ok_or_else(damaged)?.to_string();
        let (refused, failed) = (refused(header), Brief::new(None));

        let mut options = Options { tuned: false, check: options.check || header["check"] == true, ..options };
        if options.knobs.is_empty() && options.schedule.is_none() {
            if let Some(text) = header["schedule"].as_str() {
                let schedule = Schedule::parse("the saved schedule", text).map_err(|_| damaged())?;
                options.schedule = Some(Arc::new(schedule.kept()));
            }
            let knob = |k: &Value| Some((k[0].as_str()?.to_string(), k[1].as_i64()?));
            options.knobs = list("knobs").iter().filter_map(knob).collect();
        }
        let model = Model::new(parsed.graph, mapped, None)?.with_options(options);
        let mut given = vec![];
        for p in list("parameters") {
            let at = inputs::position(&model.graph, p[0].as_str().ok_or_else(damaged)?)?;
            let shape = p[1].as_array().ok_or_else(damaged)?.iter().map(Value::as_u64).collect::<Option<Vec<_>>>();
            let (shape, bytes) = (shape.ok_or_else(damaged)?, part(&p[2]).ok_or_else(damaged)?);
            let elem = model.graph.inputs.get(at).and_then(|i| inputs::value(&model.graph, i)).map(|v| v.elem);
            let elem: Elem = elem.ok_or_else(damaged)?;
            inputs::check(&model.graph, at, elem, &shape)?;
            if bytes_of(elem, &shape) != Some(bytes.len() as u64) {
                return Err(damaged());
            }
            // In the mapping, which the model's files keep.
            given.push((at, Given::Raw { address: bytes.as_ptr().expose_provenance() as u64, shape, watched: false }));
        }
        if !given.is_empty() {
            model.hold(&mut *model.runs.take()?, given);
        }
        let parameters = model.given.lock().version;
        let saved = Saved { file, objects, loaded, parameters, plan, refused, failed };
        Ok(Model { saved: Some(Arc::new(saved)), ..model })
    }

    /// Why a loaded model had to be compiled anew; `None` where it was not.
    pub fn recompiled(&self) -> Option<String> {
        let saved = self.saved.as_ref()?;
        let ready = self.ready.get()?;
        let other = || "this machine compiles it otherwise: its processor, caches or threads are others".to_string();
        let failed = || saved.failed.lock().clone();
        saved.refused.clone().or_else(|| (!ready.as_saved).then(|| failed().unwrap_or_else(other)))
    }
}

/// Why machine code of a file cannot be used here.
fn refused(header: &Value) -> Option<String> {
    let version = header["version"].as_str().unwrap_or_default();
    if version != VERSION || header["abi"] != ABI_VERSION {
        return Some(format!("it was saved by girih {version}, and this is {VERSION}"));
    }
    let here = machine::features();
    let wanted = header["features"].as_array().map_or(&[][..], Vec::as_slice);
    let lacking: Vec<&str> = wanted.iter().filter_map(Value::as_str).filter(|f| !here.contains(f)).collect();
    let list = lacking.join(", ");
    (!lacking.is_empty()).then(|| format!("it was saved for a processor with {list}, which this one lacks"))
}

impl Saved {
    /// The machine code of a C source, loaded.
    pub fn native(&self, source: &str, nparams: usize) -> Option<Native> {
        let object = self.objects.get(&key(source)).filter(|_| self.refused.is_none())?;
        // SAFETY: the caller of `Model::load` trusts the file.
        let kernel = unsafe { Module::of_bytes(object) }.and_then(|module| module.kernel(0, nparams));
        let note = |e: Error| {
            self.failed.lock().get_or_insert(format!("its machine code cannot be loaded: {e}"));
        };
        let kernel = kernel.map_err(note).ok()?;
        Some(Native { kernel, cached: true })
    }

    /// Memory with the arrays that the steps of load wrote, in the order of the plan's arrays, whose names and lengths
    /// `arrays` gives; `None` if the plan differs. It may be written, which changes no file.
    pub fn packed(&self, plan: &str, arrays: &[(&str, usize)]) -> Option<Vec<MmapMut>> {
        let same = |((name, _, length), (other, bytes)): (&(String, u64, u64), &(&str, usize))| {
            name == other && *length == *bytes as u64
        };
        let fits = self.plan == plan && arrays.len() == self.loaded.len() && self.loaded.iter().zip(arrays).all(same);
        if !fits || self.refused.is_some() {
            return None;
        }
        let map = |(_, at, length): &(String, u64, u64)| {
            if *length == 0 {
                return MmapMut::map_anon(1).ok();
            }
            let mut options = MmapOptions::new();
            options.offset(*at).len(usize::try_from(*length).ok()?);
            // SAFETY: a private mapping; that nobody cuts the file short meanwhile is said in the head of `files`.
            unsafe { options.map_copy(&self.file) }.ok()
        };
        self.loaded.iter().map(map).collect()
    }
}
