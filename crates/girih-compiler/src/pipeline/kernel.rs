//! The stages of one kernel: cuda_tile to Loop IR, Loop IR to Tile IR, Tile IR to Kernel IR.
//!
//! In: an entry of a tile program, or the kernel of a step of a model. Out: the same at the next IR. A rule whose result does not
//! verify is a bug of ours, named by the rule.

use super::{Event, Passes, add_frames, tell};
use crate::base::rule::{Log, Ran, Rules, Step};
use crate::base::{Code, Diagnostic};
use crate::loops::ir::{Kernel, Stmt};
use crate::loops::print::{Dialect, print};
use crate::loops::verify::verify;
use crate::loops::{fuse, lift, walk};
use crate::tile::schedule::{Entry, Schedule};
use crate::tile::target::MemoryKind;
use crate::{cuda_tile, kernel, tile};

/// The loops of an entry of a tile program.
pub fn lift(module: &cuda_tile::ir::Module, entry: &str, passes: &mut Passes<'_>) -> Result<Kernel, Vec<Diagnostic>> {
    passes.tell(Event::Begin("lift"))?;
    if let Some(schedule) = &passes.options.schedule {
        schedule.check(&passes.options.target, std::iter::once(entry))?;
    }
    let options = lift::Options { check: passes.options.check };
    lift::lift_with(module, entry, options).map_err(|mut diagnostics| {
        add_frames(module, &mut diagnostics);
        diagnostics
    })
}

/// The same loops after the rules of Loop IR, which know no machine.
pub fn splice(kernel: Kernel, passes: &mut Passes<'_>) -> Result<Kernel, Vec<Diagnostic>> {
    let assume = passes.options.assume;
    run(&fuse::rules(), kernel, &assume, passes, Dialect::Loop, |r| Event::Loop(r))
}

/// The loops placed on the target: by a schedule if one is given for the kernel, else by the rules of Tile IR.
pub fn place(loops: &Kernel, passes: &mut Passes<'_>) -> Result<Kernel, Vec<Diagnostic>> {
    let cx = passes.options.context();
    if let Some(schedule) = &passes.options.schedule
        && let Some(tile) = follow(schedule, loops, &cx, passes)?
    {
        return Ok(tile);
    }
    let rules = Rules { record: passes.observer.wants_steps(), ..tile::rules(&cx.target) };
    run(&rules, loops.clone(), &cx, passes, Dialect::Tile, |r| Event::Tile(r))
}

/// The statements of a placed kernel.
pub fn legalise(tile: &Kernel, passes: &mut Passes<'_>) -> Result<kernel::ir::Kernel, Vec<Diagnostic>> {
    passes.tell(Event::Begin("legalise"))?;
    let target = &passes.options.target;
    let warp = match target.axes.lanes {
        0 | 1 => kernel::legalise::Options::default().warp,
        lanes => lanes,
    };
    let (check, shared) = (passes.options.check, target.bytes_of(MemoryKind::Shared));
    let form = kernel::legalise::Options { check, shared, warp, apart: passes.options.assume.no_alias };
    let kernel = kernel::legalise::legalise(tile, &form)
        .map_err(|sentence| vec![at_largest_alloca(Diagnostic::error(Code::CannotLower, sentence), tile)])?;
    if let Some(first) = kernel::verify::verify(&kernel).first() {
        let bug = Diagnostic::error(Code::InternalBug, format!("legalise made IR that does not verify: {first}"));
        return Err(vec![bug.help(format!("the kernel IR:\n{}", kernel::print::print(&kernel)))]);
    }
    passes.tell(Event::Legalised { placed: tile, kernel: &kernel })?;
    Ok(kernel)
}

/// Does what a schedule says in place of the rules' choices; `None` where it says nothing of the kernel, or is a kept one that
/// cannot be followed.
fn follow(
    schedule: &Schedule,
    kernel: &Kernel,
    cx: &tile::Context,
    passes: &mut Passes<'_>,
) -> Result<Option<Kernel>, Vec<Diagnostic>> {
    let Some(entries) = schedule.of(&kernel.name) else { return Ok(None) };
    let replayed = replay(entries, kernel.clone(), cx, passes);
    replayed.map(Some).or_else(|all| schedule.refused(all).map(|()| None))
}

fn replay(
    entries: &[Entry],
    kernel: Kernel,
    cx: &tile::Context,
    passes: &mut Passes<'_>,
) -> Result<Kernel, Vec<Diagnostic>> {
    let mut now = kernel;
    for entry in entries {
        if passes.rewrites.is_over() {
            break;
        }
        let (name, mut log) = (entry.name(), Log { record: passes.observer.wants_steps(), ..Log::default() });
        passes.tell(Event::Begin(&name))?;
        let after = entry.replay(&now, cx, &mut log).map_err(|d| vec![d])?;
        if let Some(first) = verify(&after, Dialect::Tile).first() {
            return Err(vec![entry.wrong(format!("it makes a kernel that breaks a rule: {}", first.message))]);
        }
        let number = passes.rewrites.count();
        passes.tell(Event::Tile(&Ran { name: &name, before: &now, after: Some(&after), log: &log, number }))?;
        possible(&log)?;
        now = after;
    }
    Ok(now)
}

/// Runs the rules of a stage on a kernel. A rule whose result does not verify is a bug of ours, named by the rule.
fn run<C>(
    rules: &Rules<Kernel, C>,
    kernel: Kernel,
    cx: &C,
    passes: &mut Passes<'_>,
    form: Dialect,
    event: for<'r> fn(&'r Ran<'r, Kernel>) -> Event<'r>,
) -> Result<Kernel, Vec<Diagnostic>> {
    let Passes { rewrites, observer, .. } = passes;
    rules.run(kernel, cx, rewrites, &mut |step| match step {
        Step::Begin(name) => tell(*observer, Event::Begin(name)),
        Step::Ran(ran) => {
            if let Some(after) = ran.after
                && let Some(first) = verify(after, form).first()
            {
                let message = format!("rule {} made IR that does not verify: {}", ran.name, first.message);
                let help = format!("the IR after the rule:\n{}", print(after, form));
                return Err(vec![Diagnostic::error(Code::InternalBug, message).help(help)]);
            }
            tell(*observer, event(&ran))?;
            possible(ran.log)
        }
    })
}

/// Refuses requests of knobs that the target cannot satisfy.
fn possible(log: &Log) -> Result<(), Vec<Diagnostic>> {
    let said = log.impossible.iter().map(|why| Diagnostic::error(Code::CannotLower, why.clone()));
    let said: Vec<Diagnostic> = said.collect();
    if said.is_empty() { Ok(()) } else { Err(said) }
}

/// Places a refusal at the kernel's largest alloca, if it has one.
fn at_largest_alloca(refusal: Diagnostic, kernel: &Kernel) -> Diagnostic {
    let mut most = None;
    walk::visit(&kernel.body, &mut |s| {
        if let Stmt::Alloca { bytes, site, .. } = s
            && most.is_none_or(|(b, _)| b < *bytes)
        {
            most = Some((*bytes, *site));
        }
    });
    match most.and_then(|(_, site)| kernel.sites.get(site)) {
        Some(site) => Diagnostic { span: site.span, ..refusal.from(site.frames.clone()) },
        None => refusal,
    }
}
