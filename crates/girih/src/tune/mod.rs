//! Schedules found by trying them: the knobs, the order in which they are tried, and the records of the results.
//!
//! In: a way to evaluate knobs. Out: the best of them, and a record on disk that later compilations of the same kernel on the
//! same machine use.
//!
//! * [`space`]: knobs and the values to try    * [`search`]: which to try next    * [`records`]: the results, on disk
//!
//! How a candidate is run, checked and timed is up to the caller.

pub mod records;
pub mod search;
pub mod space;

use crate::options::{Device, Options};
use crate::system::machine;

pub use records::{Record, Records};
pub use search::{Outcome, Search};

/// Knobs by name.
pub type Candidate = std::collections::BTreeMap<&'static str, i64>;

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

/// The options with the knobs of a record, where there is one and nothing else was chosen.
pub(crate) fn applied(mut options: Options, key: impl FnOnce() -> String) -> Options {
    if !options.tuned || !options.knobs.is_empty() || options.device == Device::Eval {
        return options;
    }
    let Some(records) = Records::of(&options.cache).filter(Records::any) else { return options };
    let note = |text: String| options.notes.iter().for_each(|tell| tell(&text));
    match records.find(&key(), &machine(&options)) {
        Ok(Some(record)) => {
            note(format!("schedule: {}", record.summary()));
            options.knobs = record.knobs.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        }
        Ok(None) => {}
        Err(why) => note(format!("schedule: the default; {why}")),
    }
    options
}
