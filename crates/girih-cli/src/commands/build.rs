//! `girih build`: a model or a tile program as files that need nothing of Girih.

use std::path::Path;

use girih::build::{self, Cpu, Library, folder};
use girih::{Device, Options};
use girih_compiler::base::words::suggestion;
use serde_json::Value;

use super::model::{self, Given};
use crate::cli::BuildArgs;
use crate::failure::Failure;
use crate::{scripts, source};

pub fn run(args: &BuildArgs) -> Result<(), Failure> {
    if args.kernel.check {
        return Err(Failure::usage("--check is for kernels that girih runs; a library does not check its accesses"));
    }
    let given = model::given(&args.kernel);
    if let Some(given) = &given
        && given.answers()?
    {
        return Ok(());
    }
    let name = name(args)?;
    let (options, cpu) = options(args)?;
    folder::check(&args.output, args.force)?;
    let target = options.resolved_target().name;
    let library = match &given {
        Some(given) => of_model(args, given, &name, cpu, options)?,
        None => of_program(args, &name, cpu, &options)?,
    };
    let list = folder::write(&args.output, &library, target, args.force)?;
    match args.json {
        true => {
            let mut list = list;
            list["command"] = Value::from(library.command(&args.output.to_string_lossy()));
            list["folder"] = Value::from(args.output.to_string_lossy());
            outln!("{list}")
        }
        false => tell(&args.output, &library),
    }
}

/// The name that was given, or that of the file.
fn name(args: &BuildArgs) -> Result<String, Failure> {
    if let Some(name) = &args.name {
        if !build::is_name(name) {
            let help = format!("did you mean `{}`?", build::from_text(name));
            return Err(Failure::usage(format!(
                "--name {name}: expected an identifier of C that is not a word of it; {help}"
            )));
        }
        return Ok(name.clone());
    }
    let file = args.kernel.file.as_deref().filter(|f| *f != Path::new("-"));
    let kernel = file.and_then(scripts::kernel_of).map(|(_, kernel)| kernel.to_string());
    let stem = kernel.or_else(|| Some(file?.file_stem()?.to_string_lossy().into_owned()));
    Ok(build::from_text(stem.as_deref().unwrap_or("model")))
}

/// The options that the flags ask for; and the processors, where they are not this machine's.
fn options(args: &BuildArgs) -> Result<(Options, Option<Cpu>), Failure> {
    let mut options = source::options(&args.kernel)?.device(Device::Cpu).check(false);
    if args.cpu == "native" {
        return Ok((options, None));
    }
    let names = || build::CPUS.iter().map(|c| c.name).chain(["native"]);
    let Some(cpu) = build::CPUS.into_iter().find(|cpu| cpu.name == args.cpu) else {
        let help = suggestion("processors", &args.cpu, names());
        return Err(Failure::usage(format!("unknown processor `{}`; {help}", args.cpu)));
    };
    if options.target.as_ref().is_some_and(|t| t.name != "cpu") {
        return Err(Failure::usage("--cpu is for the target cpu"));
    }
    // Tuned schedules are for this machine.
    options.tuned = false;
    options.target = Some(build::target_named(cpu, options.thread_count()));
    Ok((options, Some(cpu)))
}

fn of_model(
    args: &BuildArgs,
    given: &Given,
    name: &str,
    cpu: Option<Cpu>,
    options: Options,
) -> Result<Library, Failure> {
    model::refuse_flags(&[("--entry", args.kernel.entry.is_some())])?;
    let within = Failure::within(&given.source());
    let mut arguments = model::arguments::Arguments::resolve(&args.args)?;
    if let (Some((symbol, _)), false) = (arguments.symbols.first(), given.is_onnx()) {
        return Err(Failure::usage(format!("--arg {symbol}: extents are arguments of the library's functions")));
    }
    let model = given.open(&mut arguments, options)?.with_seed(args.seed);
    arguments.fit(&model).map_err(&within)?;
    build::of_model(&model, name, cpu, &arguments.arrays()).map_err(&within)
}

fn of_program(args: &BuildArgs, name: &str, cpu: Option<Cpu>, options: &Options) -> Result<Library, Failure> {
    if let Some((argument, _)) = args.args.first() {
        return Err(Failure::usage(format!(
            "--arg {argument}: arguments of a kernel are those of the library's functions"
        )));
    }
    let (source, program) = source::chosen(&args.kernel)?;
    let within = Failure::within(&source);
    let entries = program.entries();
    if let Some(entry) = args.kernel.entry.as_deref().filter(|e| !entries.contains(e)) {
        let help = suggestion("entries", entry, entries.iter().copied());
        return Err(Failure::usage(format!("unknown entry `{entry}`; {help}")));
    }
    if entries.is_empty() {
        return Err(Failure::usage("the program has no entry to build"));
    }
    build::of_program(&program, name, args.kernel.entry.as_deref(), cpu, options).map_err(within)
}

/// The files, with a description of each, and the command that builds against them.
fn tell(dir: &Path, library: &Library) -> Result<(), Failure> {
    let widest = library.files.iter().map(|f| f.name.len()).max().unwrap_or(0);
    for file in &library.files {
        outln!("{}/{:widest$}  {:>10}  {}", dir.display(), file.name, bytes(file.bytes.len()), file.what)?;
    }
    for why in &library.missing {
        say!("note: {why}");
    }
    outln!("build: {}", library.command(&dir.display().to_string()))
}

fn bytes(n: usize) -> String {
    match n {
        0..=9999 => format!("{n} B"),
        10_000..=9_999_999 => format!("{} KiB", n >> 10),
        _ => format!("{} MiB", n >> 20),
    }
}
