//! `girih explain`: a compilation as a page. Its stages side by side, linked line by line; each rule with its changes and
//! refusals; the graph of a model with its kernels, and their times.
//!
//! In: the arguments of `girih compile`. Out: one file that needs nothing else, whole or not at all; or with `--serve`
//! the page at a port of this machine, which follows the file.
//!
//! [`serve`] shows the page at a port; `girih_page` writes it.

mod serve;

use girih::Device;
use girih::explain::Explained;
use girih::model::Profile;
use girih_page::explain::{self, Time, Times};

use super::compile;
use super::model::{self, Given};
use super::run::profile::size;
use super::run::timing::duration;
use super::runnable::{Asked, Often, Subject};
use crate::cli::{ExplainArgs, LaunchArgs};
use crate::failure::Failure;
use crate::{scripts, source};

pub fn run(args: &ExplainArgs) -> Result<(), Failure> {
    if let Some(given) = model::given(&args.kernel)
        && given.answers()?
    {
        return Ok(());
    }
    if let Some(port) = args.serve {
        return serve::run(args, port);
    }
    let Some(path) = &args.html else {
        return Err(Failure::usage("name the page to write, --html FILE, or show it with --serve"));
    };
    let text = page(args)?;
    compile::whole(path, &text).map_err(Failure::from)
}

/// The page of a compilation as things are now.
fn page(args: &ExplainArgs) -> Result<String, Failure> {
    let (explained, profile) = explained(args)?;
    Ok(explain::page(&title(args), &explained, profile.as_ref().map(times).as_ref()))
}

/// A profile in words.
fn times(profile: &Profile) -> Times {
    let total: f64 = profile.steps.iter().map(|s| s.seconds).sum();
    let launches = profile.steps.iter().map(|s| Time {
        time: duration(s.seconds),
        share: 100.0 * s.seconds / total.max(1e-12),
        bytes: size(s.bytes),
        of_limit: 100.0 * profile.fraction(s),
    });
    let about = format!(
        "A run takes {} (median of {}), {} of it in kernels. The limit is what {:.1} GFLOP/s and {:.1} GB/s, {}, allow; data in caches may \
         pass it.",
        duration(profile.seconds),
        profile.runs,
        duration(total),
        profile.limits.flops / 1e9,
        profile.limits.bytes / 1e9,
        if profile.measured { "measured here" } else { "as the GPU's maker gives them" }
    );
    Times { launches: launches.collect(), about }
}

/// The name of the explained input, in a few words.
fn title(args: &ExplainArgs) -> String {
    let file = args.kernel.file.as_deref().map(|f| f.display().to_string());
    args.kernel.expression.clone().or(file).unwrap_or_default()
}

fn explained(args: &ExplainArgs) -> Result<(Explained, Option<Profile>), Failure> {
    let Some(subject) = Subject::read(&args.kernel)? else {
        return Err(Failure::usage("a question has no compilation to explain"));
    };
    if args.profile && !matches!(subject, Subject::Model(_)) {
        return Err(Failure::usage("--profile works with models only, not with tile programs"));
    }
    subject.refuse(&[("--entry", args.kernel.entry.is_some())])?;
    let within = Failure::within(&subject.source());
    let options = source::options(&args.kernel)?;
    let compiled = subject.inspect(&args.kernel, &args.args, options.clone())?;
    let mut explained = compiled.explain_with_assembly().map_err(&within)?;
    match &subject {
        Subject::Model(Given::Expression(text)) => {
            explained.add_source(text, |file| file == girih_compiler::source::expr::PLACE);
        }
        // The lines of the user's are those of the script.
        Subject::Program(_, program) => {
            if let Some((script, _)) = args.kernel.file.as_deref().and_then(scripts::kernel_of)
                && let Ok(text) = std::fs::read_to_string(script)
                && let Ok(path) = std::fs::canonicalize(script)
            {
                let is_script = |file: &str| std::fs::canonicalize(file).is_ok_and(|other| other == path);
                explained.add_python(program.module(), &text, is_script);
            }
        }
        Subject::Model(_) | Subject::KernelIr(..) => {}
    }
    if !args.profile {
        return Ok((explained, None));
    }
    if options.device != Device::Cpu || explained.stages.iter().any(|s| s.name == "cuda") {
        return Err(Failure::usage("--profile measures on this machine's CPU; leave out --target"));
    }
    let launch = LaunchArgs { grid: None, args: args.args.clone(), block: None };
    let runnable = subject.open(&Asked { kernel: &args.kernel, launch: &launch, seed: 0 }, options)?;
    let mut run = runnable.start(Often::Again).map_err(&within)?;
    Ok((explained, Some(run.profile().map_err(&within)?)))
}
