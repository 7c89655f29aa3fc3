//! Records of schedules that were found to be faster than the default, a small file for each kernel and machine.
//!
//! ```text
//! $GIRIH_CACHE_DIR/tuned/KEY-MACHINE.json      KEY: the kernel's source and entry; MACHINE: a hash of the machine it was tuned for
//! ```
//! Invariants: a file appears whole, by rename; one that does not read as a record, or has a knob that is not tried, is as if it
//! were not there. A record changes how a kernel is computed, never what.

use std::path::PathBuf;

use std::collections::BTreeMap;

use girih_compiler::tile::schedule::Schedule;
use serde_json::{Value, json};

use super::{Candidate, Setting, changes, knobs, setting, space, text, without_changes};
use crate::compile::cache::default_dir;
use crate::error::{Error, Result};
use crate::options::CachePolicy;
use crate::system::files::{read_regular, replace};

/// The version whose records count.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A schedule that was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// The kernel's name, for people.
    pub name: String,
    pub key: String,
    pub machine: String,
    /// The version of Girih that found it.
    pub version: String,
    /// The knobs, and the changes of the schedule that they give.
    pub settings: Candidate,
    /// The changed schedule, where there are changes.
    pub schedule: Option<Schedule>,
    /// How many times as fast as the default.
    pub speedup: f64,
    /// By counts and the estimate, not by a clock.
    pub estimated: bool,
    /// `2026-11-23`.
    pub date: String,
}

impl Record {
    pub fn new(name: &str, key: &str, machine: &str, settings: Candidate, speedup: f64, estimated: bool) -> Record {
        let (name, key, machine) = (name.to_string(), key.to_string(), machine.to_string());
        let (version, date) = (VERSION.to_string(), today());
        Record { name, key, machine, version, settings, schedule: None, speedup, estimated, date }
    }

    /// The record with the schedule that its changes make.
    pub fn with_schedule(self, schedule: Option<Schedule>) -> Record {
        Record { schedule: schedule.map(Schedule::kept), ..self }
    }

    /// `tuned on 2026-11-23, 1.31x: kc=128 rows=8; 2 changes of the schedule`.
    pub fn summary(&self) -> String {
        let how = if self.estimated { " by the estimate" } else { "" };
        format!("tuned on {}, {:.2}x{how}: {}", self.date, self.speedup, self.settings_text())
    }

    /// `kc=128 rows=8; 2 changes of the schedule`.
    pub fn settings_text(&self) -> String {
        let changed = match changes(&self.settings).len() {
            0 => None,
            1 => Some("1 change of the schedule".to_string()),
            n => Some(format!("{n} changes of the schedule")),
        };
        let knobs = without_changes(&self.settings);
        let knobs = (changed.is_none() || !knobs.is_empty()).then(|| text(&knobs));
        knobs.into_iter().chain(changed).collect::<Vec<_>>().join("; ")
    }

    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "key": self.key,
            "machine": self.machine,
            "girih": self.version,
            "knobs": knobs(&self.settings),
            "changes": changes(&self.settings).iter().map(|(site, n)| (site.to_string(), *n)).collect::<BTreeMap<_, _>>(),
            "schedule": self.schedule.as_ref().map(Schedule::text),
            "speedup": self.speedup,
            "estimated": self.estimated,
            "date": self.date,
        })
    }

    /// Reads the output of [`Record::json`].
    pub fn of(value: &Value) -> Option<Record> {
        let text = |name: &str| value.get(name)?.as_str().map(String::from);
        let mut settings = Candidate::new();
        let changes = match value.get("changes") {
            Some(changes) => Some(changes.as_object()?),
            None => None,
        };
        for (name, value) in value.get("knobs")?.as_object()?.iter().chain(changes.into_iter().flatten()) {
            let (setting, value) = setting(&format!("{name}={}", value.as_i64()?)).ok()?;
            if let Setting::Knob(name) = setting {
                space::known(name)?;
            }
            settings.insert(setting, value);
        }
        let schedule = match value.get("schedule") {
            None | Some(Value::Null) => None,
            Some(text) => Some(Schedule::parse("tuned", text.as_str()?).ok()?.kept()),
        };
        Some(Record {
            name: text("name")?,
            key: text("key")?,
            machine: text("machine")?,
            version: text("girih")?,
            settings,
            schedule,
            speedup: value.get("speedup")?.as_f64()?,
            estimated: value.get("estimated")?.as_bool()?,
            date: text("date")?,
        })
    }

    /// Returns true if its key has the form that [`super::key`] gives, and so can be part of a file's name.
    pub fn has_key(&self) -> bool {
        self.key.len() == 32 && self.key.bytes().all(|b| b.is_ascii_hexdigit())
    }

    fn file(key: &str, machine: &str) -> String {
        format!("{key}-{}.json", &blake3::hash(machine.as_bytes()).to_hex()[..16])
    }
}

/// The folder of the records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Records {
    dir: PathBuf,
}

impl Records {
    /// Beside the cache of compiled kernels; `None` where nothing is kept.
    pub fn of(cache: &CachePolicy) -> Option<Records> {
        let dir = match cache {
            CachePolicy::Default => default_dir()?,
            CachePolicy::At(dir) => dir.clone(),
            CachePolicy::Off => return None,
        };
        Some(Records { dir: dir.join("tuned") })
    }

    pub fn dir(&self) -> &std::path::Path {
        &self.dir
    }

    /// Returns true if there may be any.
    pub fn any(&self) -> bool {
        self.dir.is_dir()
    }

    fn read(&self, file: &str) -> Option<Record> {
        Record::of(&serde_json::from_slice(&read_regular(&self.dir.join(file)).ok()?).ok()?)
    }

    fn files(&self) -> Vec<String> {
        let names = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut names: Vec<String> = names.map(|f| f.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| name.ends_with(".json"));
        names.sort();
        names
    }

    /// The record of a kernel on a machine. The error says why those that there are do not count.
    pub fn find(&self, key: &str, machine: &str) -> std::result::Result<Option<Record>, String> {
        if let Some(record) = self.read(&Record::file(key, machine)) {
            return match record.version == VERSION {
                true => Ok(Some(record)),
                false => Err(format!("it was tuned with Girih {}; `girih tune` tunes it anew", record.version)),
            };
        }
        let start = format!("{key}-");
        let other = self.files().into_iter().filter(|f| f.starts_with(&start)).find_map(|f| self.read(&f));
        match other {
            Some(other) => Err(format!("it was tuned on another machine ({})", other.machine)),
            None => Ok(None),
        }
    }

    /// All that can be read, in order of their names.
    pub fn all(&self) -> Vec<Record> {
        let mut all: Vec<Record> = self.files().iter().filter_map(|f| self.read(f)).collect();
        all.sort_by(|a, b| (&a.name, &a.key, &a.machine).cmp(&(&b.name, &b.key, &b.machine)));
        all
    }

    /// Checks that a record can be written, before a search begins.
    pub fn check(&self) -> Result<()> {
        let probe = self.dir.join("probe.tmp");
        std::fs::create_dir_all(&self.dir)
            .and_then(|()| replace(&probe, b""))
            .and_then(|()| std::fs::remove_file(&probe))
            .map_err(|e| Error::file(&self.dir, format!("a schedule cannot be kept there: {e}; set GIRIH_CACHE_DIR")))
    }

    pub fn write(&self, record: &Record) -> Result<()> {
        let path = self.dir.join(Record::file(&record.key, &record.machine));
        std::fs::create_dir_all(&self.dir)
            .and_then(|()| replace(&path, format!("{:#}\n", record.json()).as_bytes()))
            .map_err(|e| Error::file(&path, format!("the schedule cannot be kept: {e}; set GIRIH_CACHE_DIR")))
    }

    /// Removes those of a name or a key; of all kernels where it is `all`. How many they were.
    pub fn forget(&self, what: &str) -> Result<usize> {
        let mut removed = 0;
        for file in self.files() {
            let record = self.read(&file);
            let meant = |r: &Record| r.name == what || r.key.starts_with(what) && what.len() >= 8;
            if what == "all" || record.as_ref().is_some_and(meant) {
                let path = self.dir.join(file);
                std::fs::remove_file(&path).map_err(|e| Error::file(&path, format!("cannot be removed: {e}")))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Removes the record of one kernel on one machine, if there is one.
    pub fn drop(&self, key: &str, machine: &str) -> bool {
        std::fs::remove_file(self.dir.join(Record::file(key, machine))).is_ok()
    }
}

/// The date of today, UTC (days to a date: Howard Hinnant, `civil_from_days`).
fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    date(since.as_secs() / 86400)
}

fn date(days: u64) -> String {
    let z = days + 719_468;
    let (era, day) = (z / 146_097, z % 146_097);
    let year = (day - day / 1460 + day / 36524 - day / 146_096) / 365;
    let rest = day - (365 * year + year / 4 - year / 100);
    let month = (5 * rest + 2) / 153;
    let (d, m) = (rest - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    format!("{:04}-{m:02}-{d:02}", year + era * 400 + u64::from(m <= 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(name: &str) -> Records {
        let dir = std::env::temp_dir().join(format!("girih-tuned-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Records { dir }
    }

    #[test]
    fn a_record_is_found_by_its_kernel_and_machine() {
        let records = records("found");
        let record = Record::new("gemm", "k1", "sm_90a", Candidate::from([(Setting::Knob("kc"), 64)]), 1.25, true);
        assert_eq!(records.find("k1", "sm_90a"), Ok(None));
        records.check().unwrap();
        records.write(&record).unwrap();
        assert_eq!(records.find("k1", "sm_90a"), Ok(Some(record.clone())));
        assert_eq!(records.find("k2", "sm_90a"), Ok(None));
        assert!(records.find("k1", "sm_80").unwrap_err().contains("another machine (sm_90a)"));
        records.write(&Record { version: "0.0.0".into(), ..record.clone() }).unwrap();
        assert!(records.find("k1", "sm_90a").unwrap_err().contains("Girih 0.0.0"));
        assert_eq!((records.forget("gem").unwrap(), records.forget("gemm").unwrap(), records.all()), (0, 1, vec![]));
        std::fs::remove_dir_all(records.dir()).unwrap();
    }

    #[test]
    fn what_is_no_record_is_not_there() {
        let records = records("damaged");
        let record = Record::new("gemm", "k1", "cpu", Candidate::from([(Setting::Knob("kc"), 64)]), 1.25, false);
        records.write(&record).unwrap();
        let path = records.dir().join(Record::file("k1", "cpu"));
        let good = std::fs::read_to_string(&path).unwrap();
        for (from, to) in [("64", "3"), ("\"kc\"", "\"tf32\""), ("{", ""), ("1.25", "\"fast\"")] {
            assert!(good.contains(from));
            std::fs::write(&path, good.replace(from, to)).unwrap();
            assert_eq!(records.find("k1", "cpu"), Ok(None), "{to}");
        }
        std::fs::remove_dir_all(records.dir()).unwrap();
    }

    #[test]
    fn days_are_dates() {
        assert_eq!(
            (date(0), date(11_016), date(20_780)),
            ("1970-01-01".into(), "2000-02-29".into(), "2026-11-23".into())
        );
    }
}
