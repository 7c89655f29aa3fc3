//! A kernel lowered under some assumptions and its native code, shared by launches of tile programs and steps of models.

use std::sync::{Arc, OnceLock};

use girih_compiler::base::launch::Assumptions;
use girih_compiler::loops::launch_facts::{self, Traffic};
use girih_compiler::pipeline::{self, Lowered};

use crate::compile::cache::{self, Cache};
use crate::compile::cc::{self, Compiler};
use crate::compile::module::{Module, NativeKernel};
use crate::compile::progress::{self, Working};
use crate::cuda::launch::{self, Loaded};
use crate::error::{Error, Result};
use crate::launch::blocks::{BlockOrder, Cost};
use crate::launch::host::Messages;
use crate::options::{CachePolicy, Options};
use crate::system::sync::{Built, once};

/// The assumptions of the version that is tried first.
pub(crate) const FAST: Assumptions = Assumptions { no_wrap: true, no_alias: true };

/// The assumptions for kernels of models: their arrays do not overlap, but index arithmetic on loaded values may wrap,
/// since no step's launch tests obligations. Their index expressions are exact as they are written.
pub(crate) const PLANNED: Assumptions = Assumptions { no_wrap: false, no_alias: true };

/// A kernel lowered under some assumptions, and its compiled code.
pub(crate) struct Version {
    pub assume: Assumptions,
    pub lowered: Lowered,
    pub messages: Messages,
    pub order: BlockOrder,
    pub traffic: Traffic,
    pub cost: Cost,
    native: Built<Native>,
    loaded: Built<Arc<Loaded>>,
}

/// A loaded kernel and how it came to be.
#[derive(Clone, Debug)]
pub(crate) struct Native {
    pub kernel: NativeKernel,
    pub cached: bool,
}

impl Version {
    pub fn new(lowered: Lowered, assume: Assumptions) -> Version {
        Version {
            assume,
            messages: Messages::of(&lowered.loops).with_asserts(&lowered.tile),
            order: launch_facts::block_order(&lowered.loops),
            traffic: launch_facts::traffic(&lowered.loops),
            cost: Cost::default(),
            lowered,
            native: Built::default(),
            loaded: Built::default(),
        }
    }

    /// The C it is compiled from.
    pub fn source(&self, options: &Options) -> Result<String> {
        let unit = pipeline::emit_c(&[&self.lowered.kernel], &options.resolved_target());
        unit.map(|unit| unit.text).map_err(|d| Error::Program(vec![d]))
    }

    /// The compiled form, built or loaded once.
    pub fn native(&self, tools: &Tools, options: &Options) -> Result<Native> {
        self.native.get_or_make(|| {
            let _working = Working::compiling();
            progress::kernel(&self.lowered.loops.name);
            progress::at("C");
            let source = self.source(options)?;
            progress::at("the C compiler");
            let cache = tools.cache(options)?;
            let (module, cached) = load(&cache, &source, || tools.compiler(options))?;
            let kernel = module.kernel(0, self.lowered.loops.params.len())?;
            Ok(Native { kernel, cached })
        })
    }

    /// The kernel as the GPU has loaded it, once.
    pub fn loaded(&self, tools: &Tools, options: &Options) -> Result<Arc<Loaded>> {
        self.loaded.get_or_make(|| {
            let _working = Working::compiling();
            progress::kernel(&self.lowered.loops.name);
            progress::at("CUDA");
            let cache = tools.cache(options)?;
            launch::load(&self.lowered, options, &cache).map(Arc::new)
        })
    }
}

/// The object of a source, loaded, and whether it was compiled before. Another process may empty the cache at any time:
/// where the object has gone before it is loaded, it is compiled again, at last where nobody else removes it.
fn load<'c>(cache: &Cache, source: &str, compiler: impl Fn() -> Result<&'c Compiler>) -> Result<(Module, bool)> {
    for _ in 0..ATTEMPTS {
        let entry = cache.find_or_build(source, &compiler)?;
        // SAFETY: the cache built the object from emitted C, in a folder only the user can write, and compared its hash.
        match unsafe { Module::load(&entry.object, &entry.hash) } {
            Err(_) if !entry.object.exists() => continue,
            // Compiled on another machine, with a newer C library perhaps.
            Err(_) if entry.brought => {
                let entry = cache.get_or_build(source, compiler()?)?;
                // SAFETY: as above.
                return Ok((unsafe { Module::load(&entry.object, &entry.hash) }?, entry.cached));
            }
            loaded => return Ok((loaded?, entry.cached)),
        }
    }
    let alone = Cache::private(None)?;
    let entry = alone.get_or_build(source, compiler()?)?;
    // SAFETY: as above.
    Ok((unsafe { Module::load(&entry.object, &entry.hash) }?, false))
}

/// How often an object may vanish between being found and being loaded.
const ATTEMPTS: usize = 4;

/// The cache and the C compiler that some options mean, found when they are first needed.
#[derive(Default)]
pub(crate) struct Tools {
    cache: OnceLock<Arc<Cache>>,
    compiler: OnceLock<Compiler>,
}

impl Tools {
    pub fn cache(&self, options: &Options) -> Result<Arc<Cache>> {
        if let Some(cache) = self.cache.get() {
            return Ok(cache.clone());
        }
        let cache = Arc::new(match &options.cache {
            CachePolicy::Default => Cache::open(cache::default_dir().as_deref())?,
            CachePolicy::At(dir) => Cache::open(Some(dir))?,
            CachePolicy::Off => Cache::private(None)?,
        });
        Ok(once(&self.cache, || cache).clone())
    }

    /// Why the cache is not the one asked for, once it has been needed.
    pub fn cache_warning(&self) -> Option<String> {
        self.cache.get().and_then(|c| c.warning())
    }

    pub fn compiler(&self, options: &Options) -> Result<&Compiler> {
        if let Some(compiler) = self.compiler.get() {
            return Ok(compiler);
        }
        let cache = self.cache(options)?;
        let notes = (options.cache != CachePolicy::Off).then(|| cache.dir());
        let compiler = cc::find(options.compiler.as_deref())?.probe(notes)?;
        Ok(once(&self.compiler, || compiler))
    }
}
