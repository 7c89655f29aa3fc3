//! A shared object of compiled kernels, loaded and checked. It is never unloaded, and never loaded twice: an object is
//! identified by the hash of its bytes, not by its file.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::compile::abi::{ABI_VERSION, KernelFn, Meta};
use crate::compile::scratch::Scratch;
use crate::error::{Error, Result};
use crate::system::files::{Memory, read_regular};
use crate::system::sync::Brief;

/// A loaded translation unit; kernel `n` of it is `girih_n`.
#[derive(Clone, Copy)]
pub struct Module {
    library: &'static Library,
}

/// The loaded modules, by the hash of their bytes.
static LOADED: Brief<BTreeMap<[u8; 32], Module>> = Brief::new(BTreeMap::new());

/// A kernel's entry point and its requirements.
#[derive(Clone, Copy, Debug)]
pub struct NativeKernel {
    pub entry: KernelFn,
    pub meta: Meta,
}

/// The loader's error, and how to mend it.
fn load_error(reason: &str) -> Error {
    Error::Load(format!("{reason}; `girih cache clear` removes what was compiled, `girih doctor` shows the compiler"))
}

/// The loader's own words.
fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), |s| s.to_string())
}

impl Module {
    /// Loads a compiled translation unit from a file, whose bytes have this hash. Where the file's place forbids that (it is
    /// mounted `noexec`), a copy of it is loaded.
    ///
    /// # Safety
    /// Loading runs the object's code: it must have been built from C that the compiler emitted, and only the user may
    /// have been able to write it. [`crate::compile::cache::Cache::get_or_build`] gives such objects.
    pub unsafe fn load(object: &Path, hash: &[u8; 32]) -> Result<Module> {
        if let Some(known) = LOADED.lock().get(hash) {
            return Ok(*known);
        }
        // SAFETY: the caller vouches for the object; emitted C has no initialisers.
        match unsafe { Library::new(object) } {
            Ok(library) => Ok(Module::keep(library, hash)),
            Err(error) => {
                let same = |bytes: &Vec<u8>| blake3::hash(bytes).as_bytes() == hash;
                let copied = read_regular(object).ok().filter(same);
                // SAFETY: as above.
                let copied = copied.and_then(|bytes| unsafe { Module::of_bytes(&bytes) }.ok());
                copied.ok_or_else(|| load_error(&reason(&error)))
            }
        }
    }

    /// Loads a compiled translation unit from a copy in a temporary folder or, where none will do (it is full, missing or mounted
    /// `noexec`), in memory.
    ///
    /// # Safety
    /// As of [`Module::load`].
    pub unsafe fn of_bytes(bytes: &[u8]) -> Result<Module> {
        let hash = blake3::hash(bytes);
        if let Some(known) = LOADED.lock().get(hash.as_bytes()) {
            return Ok(*known);
        }
        // SAFETY: as the function's own contract says.
        let open = |path: &Path| unsafe { Library::new(path) }.map_err(|e| reason(&e));
        let in_folder = || -> std::result::Result<Library, String> {
            // In a folder of its own, whose name no other object has: the loader knows objects by their names.
            let (folder, path) = in_folder(bytes).map_err(|e| format!("no temporary folder takes it: {e}"))?;
            let library = open(&path);
            drop(folder);
            library
        };
        let in_memory = || -> std::result::Result<Library, String> {
            let memory = Memory::new(bytes).map_err(|e| format!("memory does not take it: {e}"))?;
            open(memory.path())
        };
        let library = in_folder().or_else(|first| in_memory().map_err(|second| format!("{first}; {second}")));
        library.map(|l| Module::keep(l, hash.as_bytes())).map_err(|why| load_error(&why))
    }

    /// Records a loaded object. If another thread was faster, its copy is used.
    fn keep(library: Library, hash: &[u8; 32]) -> Module {
        let module = Module { library: Box::leak(Box::new(library)) };
        *LOADED.lock().entry(*hash).or_insert(module)
    }

    /// Kernel `index`, taking `nparams` parameters.
    pub fn kernel(&self, index: usize, nparams: usize) -> Result<NativeKernel> {
        let (name, meta_name) = (format!("girih_{index}"), format!("girih_{index}_meta"));
        // SAFETY: emitted C exports `girih_N_meta` as a constant `girih_meta`, whose layout `Meta` repeats.
        let meta =
            unsafe { **self.library.get::<*const Meta>(meta_name.as_bytes()).map_err(|e| load_error(&reason(&e)))? };
        if meta.abi != ABI_VERSION || meta.nparams as usize != nparams {
            return Err(Error::Load(format!(
                "{name} has interface {} with {} parameters, expected {ABI_VERSION} with {nparams}",
                meta.abi, meta.nparams
            )));
        }
        // SAFETY: emitted C exports `girih_N` with the signature `KernelFn`; the object is never unloaded.
        let entry = unsafe { *self.library.get::<KernelFn>(name.as_bytes()).map_err(|e| load_error(&reason(&e)))? };
        Ok(NativeKernel { entry, meta })
    }
}

/// A file with the object in a folder that goes with the first value.
fn in_folder(bytes: &[u8]) -> io::Result<(Scratch, PathBuf)> {
    let folder = Scratch::new()?;
    let path = folder.path().join("k.so");
    std::fs::write(&path, bytes)?;
    Ok((folder, path))
}
