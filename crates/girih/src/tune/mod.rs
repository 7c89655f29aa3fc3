//! Schedules found by trying them: knobs and changes of a schedule's lines, the order in which they are tried, and the records of the
//! results.
//!
//! In: a way to evaluate a candidate. Out: the best of them, and a record on disk that later compilations of the same kernel on the
//! same machine use.
//!
//! * [`space`]: settings and the values to try    * [`search`]: which to try next    * [`records`]: the results, on disk
//!
//! How a candidate is run, checked and timed is up to the caller.

pub mod records;
pub mod search;
pub mod space;

use std::collections::BTreeMap;
use std::sync::Arc;

use girih_compiler::tile::knobs::Knobs;
use girih_compiler::tile::schedule::changes::{Changes, Site};

use crate::options::{Device, Options};
use crate::system::machine;

pub use records::{Record, Records};
pub use search::{Outcome, Search};

/// Something that a search sets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Setting {
    /// A knob, by its name.
    Knob(&'static str),
    /// A place in the schedule that the knobs give.
    Line(Site),
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Setting::Knob(name) => f.write_str(name),
            Setting::Line(site) => site.fmt(f),
        }
    }
}

/// Settings and their values; those that it does not name are the default's.
pub type Candidate = BTreeMap<Setting, i64>;

/// The knobs of a candidate.
pub fn knobs(candidate: &Candidate) -> BTreeMap<&'static str, i64> {
    let knob = |(setting, value): (&Setting, &i64)| match setting {
        Setting::Knob(name) => Some((*name, *value)),
        Setting::Line(_) => None,
    };
    candidate.iter().filter_map(knob).collect()
}

/// A candidate without changes of the schedule.
pub fn without_changes(candidate: &Candidate) -> Candidate {
    knobs(candidate).into_iter().map(|(name, value)| (Setting::Knob(name), value)).collect()
}

/// The changes that a candidate makes to the schedule that its knobs give.
pub fn changes(candidate: &Candidate) -> Changes {
    let line = |(setting, value): (&Setting, &i64)| match setting {
        Setting::Line(site) => Some((*site, *value)),
        Setting::Knob(_) => None,
    };
    candidate.iter().filter_map(line).collect()
}

/// Reads the `K=V` that [`text`] separates by blanks.
///
/// # Errors
/// A knob that does not exist or does not take the value; a place that no schedule has.
pub fn setting(text: &str) -> std::result::Result<(Setting, i64), String> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Knobs::default().set(text).map(|(name, value)| (Setting::Knob(name), value));
    }
    let (site, value) = text.split_once('=').ok_or_else(|| format!("expected `PLACE=NUMBER`, found `{text}`"))?;
    let number = value.parse::<u32>().map_err(|_| format!("expected a whole number, found `{value}`"))?;
    Ok((Setting::Line(site.parse()?), number.into()))
}

/// `kc=128 nc=64`.
pub fn text(candidate: &Candidate) -> String {
    if candidate.is_empty() {
        return "the default".into();
    }
    candidate.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ")
}

/// The machine that a schedule is good for: a GPU target by its name, or this processor with its features and number of
/// threads.
pub fn machine(options: &Options) -> String {
    let target = options.resolved_target();
    if target.axes.threads > 1 {
        return target.name.to_string();
    }
    let (processor, features) = (machine::processor(), machine::features().join(" "));
    let (bytes, threads) = (target.vector.bytes, target.axes.workers);
    format!("{processor}, {threads} threads, vectors of {bytes} bytes ({features})")
}

/// A hash of a text.
pub fn hash(text: &str) -> [u8; 32] {
    *blake3::hash(text.as_bytes()).as_bytes()
}

/// The name that a kernel has among the records: everything that shapes its code but the machine and the knobs.
pub(crate) fn key(kind: &str, text: &str, entry: &str) -> String {
    blake3::hash(format!("{kind}\n{entry}\n{text}").as_bytes()).to_hex().as_str()[..32].to_string()
}

/// The options with the knobs and the schedule of a record, where there is one and nothing else was chosen.
pub(crate) fn applied(mut options: Options, key: impl FnOnce() -> String) -> Options {
    let chosen = !options.knobs.is_empty() || options.schedule.is_some();
    if !options.tuned || chosen || options.device == Device::Eval {
        return options;
    }
    let Some(records) = Records::of(&options.cache).filter(Records::any) else { return options };
    let note = |text: String| options.notes.iter().for_each(|tell| tell(&text));
    match records.find(&key(), &machine(&options)) {
        Ok(Some(record)) => {
            note(format!("schedule: {}", record.summary()));
            options.knobs =
                knobs(&record.settings).into_iter().map(|(name, value)| (name.to_string(), value)).collect();
            options.schedule = record.schedule.map(Arc::new);
        }
        Ok(None) => {}
        Err(why) => note(format!("schedule: the default; {why}")),
    }
    options
}
