//! Model files and files of weights, mapped into memory: nothing is read before it is used, and nothing is copied.
//!
//! A file must not be cut short while the model is in use. A native kernel that reads behind the new end is stopped; for
//! anything else that reads there the system ends the process, as for any mapped file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::graph::{ConstData, Graph};
use memmap2::{Mmap, UncheckedAdvice};

use super::tensor::bytes_of;
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
        let mut open: BTreeMap<PathBuf, std::result::Result<Bytes, String>> = BTreeMap::new();
        let ids: Vec<_> = graph.constants.keys().collect();
        for id in ids {
            let constant = &mut graph.constants[id];
            let need = bytes_of(constant.elem, &constant.shape);
            if let ConstData::External { file, offset, len } = &constant.data {
                match self.external(&mut open, folder, file, *offset, *len) {
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

    fn external(
        &mut self,
        open: &mut BTreeMap<PathBuf, std::result::Result<Bytes, String>>,
        folder: Option<&Path>,
        file: &str,
        offset: u64,
        len: u64,
    ) -> std::result::Result<Bytes, String> {
        let name = Path::new(file);
        let inside = name.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        if file.is_empty() || !inside {
            return Err(format!("its file `{file}` is not in the model's folder"));
        }
        let Some(folder) = folder else {
            return Err(format!("it is in the file `{file}`, but the model was given without a folder"));
        };
        let path = folder.join(name);
        if !open.contains_key(&path) {
            // The model names this file: a pipe would be waited for, and a device may have no end.
            let mapped = match open_named(&path) {
                // A link may lead elsewhere.
                Ok(_) if !within(folder, &path) => Err(format!("its file `{file}` leads out of the model's folder")),
                Ok(opened) => self
                    .map(opened)
                    .map(|m| m.0)
                    .map_err(|e| format!("its file {} cannot be mapped: {e}", path.display())),
                Err(e) => Err(format!("its file {} cannot be read: {e}", path.display())),
            };
            open.insert(path.clone(), mapped);
        }
        let Some(Ok(bytes)) = open.get(&path) else {
            return Err(open.remove(&path).and_then(|r| r.err()).unwrap_or_default());
        };
        let end = offset.checked_add(len);
        match (usize::try_from(offset), end.and_then(|e| usize::try_from(e).ok())) {
            (Ok(start), Some(end)) if end <= bytes.len() => Ok(bytes.slice(start..end)),
            _ => Err(format!(
                "bytes {offset} to {} of {} are needed, but it holds {}",
                end.map_or("the end of time".into(), |e| e.to_string()),
                path.display(),
                bytes.len()
            )),
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
