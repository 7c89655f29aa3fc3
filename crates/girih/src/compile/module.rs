//! A shared object of compiled kernels, loaded and checked. It is never unloaded.

use std::mem::ManuallyDrop;
use std::path::Path;

use crate::compile::abi::{ABI_VERSION, KernelFn, Meta};
use crate::error::{Error, Result};

/// A loaded translation unit; kernel `n` of it is `girih_n`.
pub struct Module {
    library: ManuallyDrop<libloading::Library>,
}

/// A kernel's entry point and what it needs.
#[derive(Clone, Copy, Debug)]
pub struct NativeKernel {
    pub entry: KernelFn,
    pub meta: Meta,
}

/// The loader's own words, and what to do.
fn load_error(error: &libloading::Error) -> Error {
    let reason = std::error::Error::source(error).map_or_else(|| error.to_string(), |s| s.to_string());
    Error::Load(format!("{reason}; `girih cache clear` removes what was compiled, `girih doctor` shows the compiler"))
}

impl Module {
    /// Loads a compiled translation unit.
    ///
    /// # Safety
    /// Loading runs what is in the object: it must have been built from C that the compiler emitted, and only the user may
    /// have been able to write it. [`crate::compile::cache::Cache::get_or_build`] gives such objects.
    pub unsafe fn load(object: &Path) -> Result<Module> {
        // SAFETY: the caller vouches for the object; emitted C has no initialisers.
        let library = unsafe { libloading::Library::new(object) };
        let library = library.map_err(|e| load_error(&e))?;
        Ok(Module { library: ManuallyDrop::new(library) })
    }

    /// Kernel `index`, taking `nparams` parameters.
    pub fn kernel(&self, index: usize, nparams: usize) -> Result<NativeKernel> {
        let (name, meta_name) = (format!("girih_{index}"), format!("girih_{index}_meta"));
        // SAFETY: emitted C exports `girih_N_meta` as a constant `girih_meta`, whose layout `Meta` repeats.
        let meta = unsafe { **self.library.get::<*const Meta>(meta_name.as_bytes()).map_err(|e| load_error(&e))? };
        if meta.abi != ABI_VERSION || meta.nparams as usize != nparams {
            return Err(Error::Load(format!(
                "{name} has interface {} with {} parameters, expected {ABI_VERSION} with {nparams}",
                meta.abi, meta.nparams
            )));
        }
        // SAFETY: emitted C exports `girih_N` with the signature `KernelFn`; the object is never unloaded.
        let entry = unsafe { *self.library.get::<KernelFn>(name.as_bytes()).map_err(|e| load_error(&e))? };
        Ok(NativeKernel { entry, meta })
    }
}
