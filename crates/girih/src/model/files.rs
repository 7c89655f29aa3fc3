//! Model files and files of weights, mapped into memory: nothing is read before it is used, and nothing is copied.
//!
//! A file must not be cut short while the model is in use. A native kernel that reads behind the new end is stopped; for
//! anything else that reads there the system ends the process, as for any mapped file.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use girih_compiler::base::words::did_you_mean;
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::graph::{ConstData, Elem, Graph, Part};
use memmap2::{Mmap, UncheckedAdvice};

use super::decode::decoded;
use super::tensor::bytes_of;
use super::weights::Weights;
use crate::error::{Error, Result};
use crate::system::files::open_named;

struct Shared(Arc<Mmap>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The mapped files of a model.
#[derive(Clone, Default)]
pub struct Files {
    maps: Vec<Arc<Mmap>>,
}

/// A file that constants lie in.
struct Opened {
    path: PathBuf,
    bytes: Bytes,
    /// Its tensors, once one of them was asked for by its name.
    weights: Option<std::result::Result<Weights, String>>,
}

impl Opened {
    /// Bytes of the file as they are.
    fn range(&self, offset: u64, len: u64) -> std::result::Result<Bytes, String> {
        let end = offset.checked_add(len);
        match (usize::try_from(offset), end.and_then(|e| usize::try_from(e).ok())) {
            (Ok(start), Some(end)) if end <= self.bytes.len() => Ok(self.bytes.slice(start..end)),
            _ => Err(format!(
                "bytes {offset} to {} of {} are needed, but it holds {}",
                end.map_or("the end of time".into(), |e| e.to_string()),
                self.path.display(),
                self.bytes.len()
            )),
        }
    }

    /// A tensor of a file of weights, in place where its elements are of that type.
    fn tensor(&mut self, name: &str, elem: Elem, shape: &[u64]) -> std::result::Result<Bytes, String> {
        let path = self.path.clone();
        let file = path.display();
        let Some(format) = Weights::format_of(&self.path) else {
            return Err(format!("{file} is not a file of weights; .safetensors and .gguf are"));
        };
        let read = || Weights::read(&self.path, format).map_err(|e| e.to_string());
        let weights = self.weights.get_or_insert_with(read).as_ref().map_err(String::clone)?;
        let Some(tensor) = weights.tensors.iter().find(|t| t.name == name) else {
            let names = weights.tensors.iter().map(|t| t.name.as_str());
            let near = did_you_mean(name, names).map_or(String::new(), |near| format!("; {near}"));
            return Err(format!("{file} has no tensor `{name}`{near}"));
        };
        if tensor.shape != shape {
            return Err(format!("the tensor `{name}` of {file} has the shape {:?}, not {shape:?}", tensor.shape));
        }
        let (kind, from, len) = (tensor.kind.clone(), tensor.from, tensor.bytes);
        let bytes = self.range(from, len)?;
        if kind == elem.to_string().to_ascii_uppercase() {
            return Ok(bytes);
        }
        let decoded = decoded(&kind, &bytes, elem);
        decoded
            .map(Bytes::from)
            .ok_or_else(|| format!("elements {kind} of the tensor `{name}` of {file} cannot be read as {elem}"))
    }
}

impl Files {
    /// Maps a file.
    pub fn open(&mut self, path: &Path) -> std::io::Result<Bytes> {
        Ok(self.open_whole(path)?.0)
    }

    /// The same, and the file that it maps, to map parts of it another way.
    pub fn open_whole(&mut self, path: &Path) -> std::io::Result<(Bytes, File)> {
        self.map(File::open(path)?)
    }

    fn map(&mut self, mut file: File) -> std::io::Result<(Bytes, File)> {
        let data = file.metadata()?;
        if data.is_dir() {
            return Err(std::io::Error::from(std::io::ErrorKind::IsADirectory));
        }
        // A pipe cannot be mapped; an empty file has nothing to map.
        if !data.is_file() || data.len() == 0 {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            return Ok((Bytes::from(bytes), file));
        }
        // SAFETY: the mapping is read only. That nobody cuts the file short meanwhile is said in the module's head.
        let map = Arc::new(unsafe { Mmap::map(&file) }?);
        // In huge pages, memory that is released piece by piece would stay with its neighbours. A system without huge pages
        // refuses the call.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::NoHugePage);
        self.maps.push(map.clone());
        Ok((Bytes::from_owner(Shared(map)), file))
    }

    /// Replaces constants that lie in other files by their mapped bytes, and checks how long all constants are. All that
    /// is wrong is reported together.
    pub fn resolve(&mut self, graph: &mut Graph, folder: Option<&Path>) -> Result<()> {
        let mut errors = vec![];
        let mut open = BTreeMap::new();
        let ids: Vec<_> = graph.constants.keys().collect();
        for id in ids {
            let constant = &mut graph.constants[id];
            let need = bytes_of(constant.elem, &constant.shape);
            if let ConstData::External { file, part, len } = &constant.data {
                let found = self.external(&mut open, folder, file).and_then(|file| match part {
                    Part::Offset(offset) => file.range(*offset, *len),
                    Part::Tensor(name) => file.tensor(name, constant.elem, &constant.shape),
                });
                match found {
                    Ok(bytes) => constant.data = ConstData::Bytes(bytes),
                    Err(message) => {
                        let name = &constant.name;
                        errors.push(Diagnostic::error(Code::ExternalData, format!("the weight `{name}`: {message}")));
                        continue;
                    }
                }
            }
            if let ConstData::Bytes(bytes) = &constant.data
                && need != Some(bytes.len() as u64)
            {
                let need = need.map_or("too many to count".into(), |n| n.to_string());
                let text =
                    format!("the weight `{}` has {} bytes where its shape needs {need}", constant.name, bytes.len());
                errors.push(Diagnostic::error(Code::ExternalData, text));
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(Error::Program(errors)) }
    }

    fn external<'o>(
        &mut self,
        open: &'o mut BTreeMap<PathBuf, Opened>,
        folder: Option<&Path>,
        file: &str,
    ) -> std::result::Result<&'o mut Opened, String> {
        let name = Path::new(file);
        let inside = name.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        if file.is_empty() || !inside {
            return Err(format!("its file `{file}` is not in the model's folder"));
        }
        let Some(folder) = folder else {
            return Err(format!("it is in the file `{file}`, but the model was given without a folder"));
        };
        let path = folder.join(name);
        match open.entry(path) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => {
                let path = new.key();
                // The model names this file: a pipe would be waited for, and a device may have no end.
                let opened =
                    open_named(path).map_err(|e| format!("its file {} cannot be read: {e}", path.display()))?;
                // A link may lead elsewhere.
                if !within(folder, path) {
                    return Err(format!("its file `{file}` leads out of the model's folder"));
                }
                let mapped = self.map(opened);
                let (bytes, _) = mapped.map_err(|e| format!("its file {} cannot be mapped: {e}", path.display()))?;
                let opened = Opened { path: path.clone(), bytes, weights: None };
                Ok(new.insert(opened))
            }
        }
    }

    /// Lets go of the memory behind bytes that lie in a mapped file; it comes back from the file when it is read again.
    pub fn release(&self, bytes: &[u8]) {
        let start = bytes.as_ptr() as usize;
        for map in &self.maps {
            let base = map.as_ptr() as usize;
            let Some(offset) = start.checked_sub(base).filter(|o| o + bytes.len() <= map.len()) else { continue };
            // Whole pages only: their ends may belong to a neighbour.
            const PAGE: usize = 4096;
            let (first, end) = (offset.next_multiple_of(PAGE), (offset + bytes.len()) / PAGE * PAGE);
            if first < end {
                // SAFETY: the mapping is of a file and read only, so its pages are read again from there.
                let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, first, end - first) };
            }
        }
    }
}

fn within(folder: &Path, path: &Path) -> bool {
    let real = |p: &Path| if p.as_os_str().is_empty() { Path::new(".").canonicalize() } else { p.canonicalize() };
    matches!((real(folder), real(path)), (Ok(folder), Ok(path)) if path.starts_with(&folder))
}
