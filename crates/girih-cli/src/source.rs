//! Files named on the command line, and the kernel chosen in one.

use std::io::Read;
use std::path::Path;

use girih::spec::{LaunchComment, launch_comments};
use girih::{Kernel, Options, Program, build};
pub use girih_compiler::base::words::suggestion;
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::cuda_tile::bytecode::is_bytecode;
use girih_compiler::tile::schedule::{self, Schedule};
use girih_compiler::tile::target::Target;

use crate::cli::KernelArgs;
use crate::commands::by_hand;
use crate::failure::Failure;
use crate::render::{self, Source};
use crate::scripts;

/// Reads a file, or standard input for `-`.
pub fn read(path: &Path) -> Result<Source, Failure> {
    let fail = |message: String| Failure::from(girih::Error::file(path, message));
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut f| f.read_to_end(&mut bytes))
    };
    read.map_err(|e| fail(format!("cannot be read: {e}")))?;
    let name = if path == Path::new("-") { "<stdin>".to_string() } else { path.display().to_string() };
    if is_bytecode(&bytes) {
        return Ok(Source { name, text: "".into(), bytecode: Some(bytes.into()) });
    }
    let text = String::from_utf8(bytes)
        .map_err(|e| fail(format!("it is neither tile bytecode nor UTF-8 text ({})", e.utf8_error())))?;
    Ok(Source { name, text: text.into(), bytecode: None })
}

/// The file that a command was given.
pub fn file(args: &KernelArgs) -> Result<&Path, Failure> {
    args.file.as_deref().ok_or_else(|| Failure::usage("name a file"))
}

/// The program of a source.
pub fn load(source: &Source) -> girih::Result<Program> {
    match &source.bytecode {
        Some(bytes) => Program::from_bytes(bytes),
        None => Program::from_text(&source.text),
    }
}

/// A file read, verified, its warnings shown.
pub fn program(path: &Path) -> Result<(Source, Program), Failure> {
    if by_hand::is_one(path) {
        let file = path.display();
        let more = format!(
            "`girih run {file}` and `girih sim {file}` run it, `girih compile {file} --ir cuda` prints its CUDA"
        );
        return Err(girih::Error::file(path, format!("it holds Kernel IR, not a tile program: {more}")).into());
    }
    let source = read(path)?;
    let program = load(&source).map_err(Failure::within(&source))?;
    render::all(&source, program.warnings());
    Ok((source, program))
}

/// The program that a command was given: a file, or a kernel of a script.
pub fn chosen(args: &KernelArgs) -> Result<(Source, Program), Failure> {
    let path = file(args)?;
    let Some((script, kernel)) = scripts::kernel_of(path) else {
        if args.signature.is_some() {
            return Err(Failure::usage("--signature is for a kernel of a Python script, `script.py:kernel`"));
        }
        return program(path);
    };
    let Some(signature) = &args.signature else {
        let message =
            "say for what arguments the kernel is compiled: --signature \"*fp32:16, *fp32:16, i32, BLOCK=1024\"";
        return Err(Failure::usage(message));
    };
    let text = scripts::text(script, kernel, signature)?;
    let source = Source { name: path.display().to_string(), text: text.into(), bytecode: None };
    let program = load(&source).map_err(Failure::within(&source))?;
    render::all(&source, program.warnings());
    Ok((source, program))
}

/// The launch comment that applies to an entry, or to the whole file.
pub fn launch_comment(source: &Source, entry: Option<&str>) -> Result<Option<LaunchComment>, Failure> {
    let all =
        launch_comments(&source.text).map_err(|message| Failure::within(source)(girih::Error::argument(message)))?;
    Ok(all.into_iter().find(|c| entry.is_none() || c.entry.is_none() || c.entry.as_deref() == entry))
}

/// The entry to use: the one named by the flag or the launch comment, or the only one.
pub fn choose<'p>(source: &Source, program: &'p Program, flag: Option<&str>) -> Result<Kernel<'p>, Failure> {
    let entries = program.entries();
    let comment = match flag {
        Some(_) => None,
        None => launch_comment(source, None)?.and_then(|c| c.entry),
    };
    match (flag.or(comment.as_deref()), entries.as_slice()) {
        (Some(name), _) => program.entry(name).map_err(|error| {
            let girih::Error::NoEntry { name, entries } = &error else { return Failure::within(source)(error) };
            let message = format!("unknown entry `{name}`");
            let mut d = Diagnostic::error(Code::NoEntry, message);
            d = d.help(suggestion("entries", name, entries.iter().map(String::as_str)));
            render::one(source, &d);
            Failure::Said(1)
        }),
        (None, [only]) => program.entry(only).map_err(Failure::within(source)),
        (None, []) => {
            render::one(source, &Diagnostic::error(Code::NoEntry, "the program has no entry to run"));
            Err(Failure::Said(1))
        }
        (None, many) => Err(Failure::usage(format!(
            "the program has several entries; choose one with --entry: {}",
            many.join(", ")
        ))),
    }
}

/// The options the environment and the flags ask for.
pub fn options(args: &KernelArgs) -> Result<Options, Failure> {
    if let (Some(flag), false) = (args.folder.flags().first(), args.file.as_deref().is_some_and(Path::is_dir)) {
        return Err(Failure::usage(format!("{flag} is for a Hugging Face folder")));
    }
    let mut options = Options::from_env().map_err(Failure::usage)?;
    let target = args.target.clone().or_else(|| std::env::var("GIRIH_TARGET").ok().filter(|t| !t.is_empty()));
    options.threads = args.threads.or(options.threads);
    match target.as_deref() {
        None => {}
        // This machine, for any device.
        Some("cpu") => options.target = Some(options.clone().device(girih::Device::Cpu).resolved_target()),
        Some(name) => {
            let family = || Some(build::target_named(build::cpu(name)?, options.thread_count()));
            let Some(target) = Target::named(name).or_else(family) else {
                let names = Target::NAMES.into_iter().chain(build::cpus().map(|cpu| cpu.name));
                return Err(Failure::usage(format!("unknown target `{name}`; {}", suggestion("targets", name, names))));
            };
            options.target = Some(target);
        }
    }
    options.check |= args.check;
    options.tuned &= !args.no_tuned;
    options.knobs = args.knobs.clone();
    if let Some(path) = &args.schedule {
        let schedule = schedule(path)?;
        // The knobs that the schedule was made with; knobs of the command line come after them and win.
        options.tuned = false;
        options.knobs.splice(0..0, schedule.knobs().iter().cloned());
        options.schedule = Some(std::sync::Arc::new(schedule));
    }
    options.max_memory = args.max_memory;
    options.printer = Some(std::sync::Arc::new(|_, text| crate::output::print(text)));
    // Repeated runs, of schedules or of a measurement, announce once.
    let told = std::sync::Mutex::new(std::collections::BTreeSet::new());
    options.announce = Some(std::sync::Arc::new(move |text| {
        if told.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(text.to_string()) {
            say!("{text}");
        }
    }));
    Ok(options)
}

/// Reads a schedule. Any file may be named here, so reading stops behind the most bytes that a schedule can have.
fn schedule(path: &Path) -> Result<Schedule, Failure> {
    let fail = |message: String| Failure::from(girih::Error::file(path, message));
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|e| fail(format!("cannot be read: {e}")))?;
    file.take(schedule::LONGEST as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| fail(format!("cannot be read: {e}")))?;
    let text = String::from_utf8(bytes).map_err(|e| fail(format!("it is not UTF-8 text ({})", e.utf8_error())))?;
    let name = path.display().to_string();
    Schedule::parse(&name, &text).map_err(|diagnostics| {
        render::all(&Source { name, ..Source::default() }, &diagnostics);
        Failure::Said(1)
    })
}

/// Says under `-v` which schedule is used, once.
pub fn notes(verbose: u8) -> Option<girih::options::Announce> {
    let told = std::sync::atomic::AtomicBool::new(verbose == 0);
    Some(std::sync::Arc::new(move |text: &str| {
        if !told.swap(true, std::sync::atomic::Ordering::Relaxed) {
            say!("{text}");
        }
    }))
}
