//! `girih doctor`: what this machine has and what is missing.

use girih::cache::{Cache, default_dir};
use girih::{Options, cc, cuda, machine};
use serde_json::json;

use crate::cli::DoctorArgs;
use crate::failure::Failure;

pub fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let options = Options::from_env().map_err(Failure::usage)?;
    let target = options.resolved_target();
    let cache = Cache::open(default_dir().as_deref());
    // It is said below.
    girih::cache::take_warnings();
    let notes = cache.as_ref().ok().filter(|c| !c.is_private()).map(|c| c.dir());
    let compiler = cc::find(options.compiler.as_deref()).and_then(|c| c.probe(notes));
    let (compiler_text, flags, compiler_ok) = match &compiler {
        Ok(c) => (c.description(), c.flags.join(" "), true),
        Err(e) => (e.to_string(), String::new(), false),
    };
    let (cache_text, cache_ok) = match &cache {
        Ok(c) => match c.warning() {
            None => (format!("{}, of at most {} MiB", c.dir().display(), c.capacity() >> 20), true),
            Some(warning) => (warning, false),
        },
        Err(e) => (e.to_string(), false),
    };
    let features = machine::features();
    let (gpu, gpu_ok) = match cuda::device::Device::found() {
        Ok(d) => {
            let (major, minor) = d.capability;
            (format!("{}, compute capability {major}.{minor}, kernels for {}", d.name, d.target), true)
        }
        Err(e) => (e.to_string(), false),
    };
    let (nvrtc, nvrtc_ok) = match cuda::Nvrtc::load(&cuda::Places::from_environment()) {
        Ok(n) => (format!("{} ({}.{})", n.path.display(), n.version.0, n.version.1), true),
        Err(e) => (e.to_string(), false),
    };
    if args.json {
        let report = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "arch": std::env::consts::ARCH,
            "threads": target.axes.workers,
            "vector_bytes": target.vector.bytes,
            "vector_registers": target.vector.registers,
            "fma": target.vector.fma,
            "l1_bytes": target.cache(1),
            "l2_bytes": target.cache(2),
            "l3_bytes": target.cache(3),
            "features": features,
            "compiler": compiler_text,
            "compiler_ok": compiler_ok,
            "flags": flags,
            "cache": cache_text,
            "cache_ok": cache_ok,
            "gpu": gpu,
            "gpu_ok": gpu_ok,
            "nvrtc": nvrtc,
            "nvrtc_ok": nvrtc_ok,
        });
        outln!("{report}")?;
    } else {
        let kib = |bytes: u64| bytes >> 10;
        let mark = |ok: bool| if ok { "ok     " } else { "MISSING" };
        outln!("girih {}", env!("CARGO_PKG_VERSION"))?;
        outln!(
            "ok      processor   {}, {} threads, vectors of {} bytes, {} registers{}",
            std::env::consts::ARCH,
            target.axes.workers,
            target.vector.bytes,
            target.vector.registers,
            if target.vector.fma { ", fma" } else { "" }
        )?;
        outln!(
            "ok      caches      {} KiB, {} KiB, {} KiB",
            kib(target.cache(1)),
            kib(target.cache(2)),
            kib(target.cache(3))
        )?;
        outln!("ok      features    {}", if features.is_empty() { "none".into() } else { features.join(" ") })?;
        outln!("{} C compiler  {compiler_text}", mark(compiler_ok))?;
        if compiler_ok {
            outln!("ok      flags       {flags}")?;
        }
        outln!("{} cache       {cache_text}", mark(cache_ok))?;
        // These are needed only on request.
        let mark = |ok: bool| if ok { "ok     " } else { "none   " };
        outln!("{} GPU         {gpu}", mark(gpu_ok))?;
        outln!("{} NVRTC       {nvrtc}", mark(nvrtc_ok))?;
        outln!("ok      evaluator   `--device eval` needs nothing")?;
    }
    if compiler_ok { Ok(()) } else { Err(Failure::Said(1)) }
}
