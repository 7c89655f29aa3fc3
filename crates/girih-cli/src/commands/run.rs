//! `girih run`: compile a kernel, run it on arguments, then save, print, verify, compare and time as asked.

pub mod arguments;
pub mod compare;
pub mod timing;
pub mod verify;

use std::path::Path;

use girih::{CachePolicy, Device, Kernel, Options, Param, PrintOrder};
use serde_json::json;

use super::{by_hand, model};
use crate::cli::{LaunchArgs, RunArgs};
use crate::failure::Failure;
use crate::render::Source;
use crate::{output, render, source};
use arguments::Arguments;

pub fn run(args: &RunArgs) -> Result<(), Failure> {
    if let Some(given) = model::given(&args.kernel) {
        return model::run::run(args, &given);
    }
    if args.profile {
        return Err(Failure::usage("--profile works with models only, not with tile programs"));
    }
    if let Some(file) = args.kernel.file.as_deref().filter(|file| by_hand::is_one(file)) {
        return by_hand::run(args, file);
    }
    let (source, program) = source::chosen(&args.kernel)?;
    let options = options(args)?;
    let kernel = source::choose(&source, &program, args.kernel.entry.as_deref())?.with_options(options);
    let within = Failure::within(&source);
    let (grid, mut arguments) = launch(&source, kernel.name(), kernel.params(), &args.launch)?;
    let shown = Shown::of(&source, kernel.params(), &arguments, &args.save, &args.print)?;

    if args.verify_each {
        let checked = kernel.verify_each(grid, &mut arguments.views()).map_err(&within)?;
        outln!("{}", super::compile::verified(checked))?;
    }

    // A copy of the arguments that the launch may overwrite and later steps need again.
    let again = args.verify || args.compare.is_some() || args.time;
    let before = if again { Some(arguments.duplicate().map_err(&within)?) } else { None };

    let mut views = arguments.views();
    let mut prepared = kernel.prepare(grid, &mut views).map_err(&within)?;
    let report = prepared.run().map_err(&within)?;
    render::all(&source, &report.warnings);
    let (traffic, compiled) = (prepared.traffic(), prepared.compiled());
    drop(prepared);
    drop(views);

    shown.show(&source, &arguments)?;
    let mut summary = json!({
        "kernel": kernel.name(),
        "device": kernel.options().device.to_string(),
        "threads": if kernel.options().device != Device::Cpu { 1 } else { kernel.options().thread_count() },
        "runs": 1,
        "min_s": report.seconds,
        "median_s": report.seconds,
        "compile_s": compiled.map_or(0.0, |c| c.seconds),
        "cached": compiled.is_some_and(|c| c.cached),
        "no_wrap": compiled.map(|c| c.assume.no_wrap),
        "no_alias": compiled.map(|c| c.assume.no_alias),
    });
    let mut good = true;
    if let (Some(before), true) = (&before, args.verify) {
        good &= verify::verify(&source, &kernel, grid, before, &arguments, &traffic, &mut summary)?;
    }
    if let (Some(before), Some(device)) = (&before, args.compare) {
        let elsewhere = compare::Elsewhere { device, bits: args.bits };
        good &= compare::compare(&source, &kernel, grid, before, &arguments, elsewhere, &mut summary)?;
    }
    if let (Some(before), true) = (&before, args.time) {
        timing::time(&source, &kernel, grid, before, &mut arguments, &traffic, args.json, &mut summary)?;
    }
    if args.json {
        outln!("{summary}")?;
    } else if args.save.is_empty() && args.print.is_empty() && !again {
        say_what_ran(&kernel, grid, report.seconds, &arguments);
    }
    if good { Ok(()) } else { Err(Failure::Said(1)) }
}

/// The grid and the arguments that the flags and the file's comment ask for.
pub(super) fn launch(
    source: &Source,
    kernel: &str,
    params: &[Param],
    args: &LaunchArgs,
) -> Result<([u32; 3], Arguments), Failure> {
    let comment = source::launch_comment(source, Some(kernel))?.unwrap_or_default();
    let grid = args.grid.or(comment.grid).unwrap_or([1, 1, 1]);
    Ok((grid, Arguments::resolve(source, params, &args.args, comment.args)?))
}

pub(super) fn options(args: &RunArgs) -> Result<Options, Failure> {
    let mut options = source::options(&args.kernel)?;
    options.device = args.device.unwrap_or(options.device);
    options.block = args.launch.block;
    options.seed = args.seed.unwrap_or(options.seed);
    if args.schedules.is_some() && options.device != Device::Sim && args.compare != Some(Device::Sim) {
        let message = "only the simulator has schedules of threads: --schedules needs --device sim or --compare sim";
        return Err(Failure::usage(message));
    }
    options.schedules = args.schedules.or(options.schedules);
    options.notes = source::notes(args.verbose);
    if args.verbose > 1 {
        options.estimates =
            Some(std::sync::Arc::new(|name, estimate| say!("{name}: {}", estimate.to_string().trim_end())));
    }
    if args.no_cache {
        options.cache = CachePolicy::Off;
    }
    if args.print_order == "index" {
        options.print_order = PrintOrder::Index;
    }
    Ok(options)
}

/// Without an option that shows results: the launch, and how to see its results. A kernel that prints and stores nothing
/// has shown everything.
fn say_what_ran(kernel: &Kernel<'_>, grid: [u32; 3], seconds: f64, arguments: &Arguments) {
    let writes = kernel.writes().unwrap_or_default();
    let written: Vec<(&str, String)> = (kernel.params().iter().enumerate())
        .filter(|(i, _)| writes.get(*i) == Some(&true))
        .filter_map(|(i, p)| Some((p.name.as_str(), arguments::type_text(arguments.buffer(i)?))))
        .collect();
    if written.is_empty() && output::printed() {
        return;
    }
    let ([x, y, z], device) = (grid, kernel.options().device);
    let ran = format!("ran `{}` on {device}, grid {x},{y},{z}, in {}", kernel.name(), timing::duration(seconds));
    match written.first() {
        None => say!("{ran}; it stores nothing"),
        Some((first, _)) => {
            let list: Vec<String> = written.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
            say!("{ran}; it stores to {}", list.join(", "));
            say!("`--print {first}` shows it, `--save {first}=FILE.npy` keeps it, `--verify` checks it");
        }
    }
}

/// The arrays that --save and --print name.
pub(super) struct Shown<'a> {
    saves: Vec<(usize, &'a Path)>,
    prints: Vec<(usize, &'a str)>,
}

impl<'a> Shown<'a> {
    /// A result that cannot be kept is better known before a long run than after.
    pub(super) fn of(
        source: &Source,
        params: &[Param],
        arguments: &Arguments,
        save: &'a [(String, String)],
        print: &'a [String],
    ) -> Result<Shown<'a>, Failure> {
        let saves = targets(source, params, arguments, save.iter().map(|(name, _)| name.as_str()))?;
        let prints = targets(source, params, arguments, print.iter().map(String::as_str))?;
        for (_, file) in save {
            let folder = Path::new(file).parent().filter(|p| !p.as_os_str().is_empty());
            if let Some(folder) = folder.filter(|p| !p.is_dir()) {
                let message = format!("cannot be written: the folder {} does not exist", folder.display());
                return Err(Failure::within(source)(girih::Error::file(file, message)));
            }
        }
        Ok(Shown {
            saves: saves.into_iter().zip(save).map(|(i, (_, file))| (i, Path::new(file))).collect(),
            prints: prints.into_iter().zip(print).map(|(i, name)| (i, name.as_str())).collect(),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.saves.is_empty() && self.prints.is_empty()
    }

    /// Saves and prints the results of a run.
    pub(super) fn show(&self, source: &Source, arguments: &Arguments) -> Result<(), Failure> {
        for (i, file) in &self.saves {
            if let Some(buffer) = arguments.buffer(*i) {
                girih::npy::write(file, buffer).map_err(Failure::within(source))?;
            }
        }
        for (i, name) in &self.prints {
            if let Some(buffer) = arguments.buffer(*i) {
                outln!("{name} = {}", arguments::show(buffer))?;
            }
        }
        Ok(())
    }
}

/// The buffers that --save or --print name.
fn targets<'a>(
    source: &Source,
    params: &[Param],
    arguments: &Arguments,
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<usize>, Failure> {
    names
        .map(|name| {
            let i = arguments::position(source, params, name)?;
            match arguments.buffer(i) {
                Some(_) => Ok(i),
                None => Err(Failure::usage(format!("`{name}` is not a buffer, so it cannot be saved or printed"))),
            }
        })
        .collect()
}
