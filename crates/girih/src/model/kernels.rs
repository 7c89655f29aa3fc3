//! The kernels of a model: compiled several at a time, those that are equal but for names once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use girih_compiler::base::rule::Rewrites;
use girih_compiler::index::Ix;
use girih_compiler::kernel::ir;
use girih_compiler::loops::ir::{Kernel, Ty};
use girih_compiler::loops::model::{Step, StepArg};
use girih_compiler::pipeline::{self, Silent};

use super::binding::Grid;
use super::saved::Saved;
use crate::compile::progress::{self, Shown, Working};
use crate::compile::version::{Native, PLANNED, Tools, Version};
use crate::error::{Error, Result};
use crate::memory::args::{Param, ParamKind};
use crate::options::Options;
use crate::system::threads;

/// Told that `done` of `total` kernels are compiled, and which is next.
pub type Progress = dyn Fn(usize, usize, &str) + Send + Sync;

pub(super) struct Compiled {
    pub(super) version: Version,
    pub(super) native: Native,
    pub(super) params: Vec<Param>,
}

/// The blocks of a step's kernel, over the symbols that it is given.
pub(super) fn grid_of(step: &Step, kernel: &ir::Kernel) -> Grid {
    let symbol = |leaf: &Ix| match leaf {
        Ix::Val { val, .. } => match step.args.get(kernel.params.iter().position(|p| p == val)?) {
            Some(StepArg::Symbol(s)) => Some(s.ix()),
            _ => None,
        },
        _ => None,
    };
    let one = || [Ix::Const(1), Ix::Const(1), Ix::Const(1)];
    kernel.grid.clone().unwrap_or_else(one).map(|n| n.replace_leaves(&mut { symbol }))
}

fn params(kernel: &Kernel) -> Vec<Param> {
    let kind = |ty: Ty| match ty {
        Ty::Num(d) => ParamKind::Scalar(d),
        Ty::Ptr(d) => ParamKind::Pointer(d),
    };
    kernel.params.iter().map(|p| Param { name: p.name.clone(), kind: kind(p.ty) }).collect()
}

/// Lowers and compiles kernels, several at a time; kernels that a saved model has are not compiled.
pub(super) fn compile(
    kernels: &[&Kernel],
    rewrites: Rewrites,
    options: &Options,
    tools: &Tools,
    told: Option<&Progress>,
    saved: Option<&Saved>,
) -> Result<Vec<Compiled>> {
    let _working = Working::compiling();
    let pipeline_options = options.pipeline(PLANNED)?;
    // Found once for all threads. Where there is none, kernels that were brought here need none.
    if !kernels.is_empty() && saved.is_none() {
        let _ = tools.compiler(options);
    }
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // Where the number of rewrites is limited, kernels share the limit and are lowered one after the other.
    let counted = options.stop_after.is_some();
    let rewrites = Mutex::new(rewrites);
    let taken = || rewrites.lock().unwrap_or_else(PoisonError::into_inner);
    let one = |kernel: &Kernel| -> Result<Compiled> {
        progress::kernel(&kernel.name);
        let mut own = taken().clone();
        let lowered = pipeline::lower_loops(kernel.clone(), &pipeline_options, &mut own, &mut Shown(&mut Silent))
            .map_err(Error::Program)?;
        if counted {
            *taken() = own;
        }
        if !lowered.loops.obligations.is_empty() || !lowered.loops.globals.is_empty() {
            return Err(Error::Internal(format!("the kernel {} has obligations or globals", kernel.name)));
        }
        let version = Version::new(lowered, PLANNED);
        let params = params(&version.lowered.loops);
        let kept = match saved {
            Some(saved) => saved.native(&version.source(options)?, params.len()),
            None => None,
        };
        let native = match kept {
            Some(native) => native,
            None => version.native(tools, options)?,
        };
        Ok(Compiled { native, params, version })
    };
    let results: Mutex<Vec<(usize, Result<Compiled>)>> = Mutex::default();
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(kernel) = kernels.get(at) else { break };
            progress::count(at + 1, kernels.len());
            if let Some(told) = told {
                told(done.load(Ordering::Relaxed), kernels.len(), &kernel.name);
            }
            let result = one(kernel);
            if result.is_err() {
                // Nobody begins another.
                next.store(kernels.len(), Ordering::Relaxed);
            }
            done.fetch_add(1, Ordering::Relaxed);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    let threads = if counted { 1 } else { (options.thread_count() as usize).min(kernels.len()) };
    threads::share(threads, &work);
    if let Some(told) = told {
        told(kernels.len(), kernels.len(), "");
    }
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, r)| r).collect()
}
