//! The options kernels are loaded and run under: one value for the process, replaced as a whole.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::Arc;

use girih::{CachePolicy, Options, PrintOrder};
use girih_compiler::base::Diagnostic;
use serde_json::{Map, Value, json};

use crate::failure::{self, Failure, Result};
use girih::sync::Brief;

/// Options and when they were set.
pub struct Current {
    /// Differs from one setting to the next.
    pub generation: u64,
    pub options: Options,
    /// SIGINT stops a launch and goes on to the host's handler.
    pub interrupt: bool,
}

static CURRENT: Brief<Option<Arc<Current>>> = Brief::new(None);

/// The options in force; before any were set, those of the environment.
pub fn current() -> Arc<Current> {
    let mut slot = CURRENT.lock();
    slot.get_or_insert_with(|| {
        let options = Options::from_env().unwrap_or_else(|message| {
            eprintln!("girih: {message}; the default is used");
            Options::default()
        });
        Arc::new(Current { generation: 0, options: prepared(options), interrupt: false })
    })
    .clone()
}

/// Prints go to the registered receiver, after the launch and by block, so that they come from the launching thread.
fn prepared(mut options: Options) -> Options {
    options.print_order = PrintOrder::Index;
    options.printer = Some(Arc::new(|_, text| print(text)));
    options
}

type PrintFn = unsafe extern "C" fn(*mut c_void, *const u8, usize);

/// A function of the host program that receives texts.
#[derive(Clone, Copy)]
pub struct Receiver {
    pub function: PrintFn,
    pub user: *mut c_void,
}

// SAFETY: the host program gives the pair for use on every thread that launches.
unsafe impl Send for Receiver {}

impl Receiver {
    fn take(self, text: &str) {
        // SAFETY: the host program gives the function to be called like this; the text lives as long as the call.
        unsafe { (self.function)(self.user, text.as_ptr(), text.len()) }
    }
}

static PRINTER: Brief<Option<Receiver>> = Brief::new(None);
static WARNER: Brief<Option<Receiver>> = Brief::new(None);

/// Sets who receives the text that kernels print.
pub fn set_printer(printer: Option<Receiver>) {
    *PRINTER.lock() = printer;
}

/// Sets who receives the findings of launches that succeed.
pub fn set_warner(warner: Option<Receiver>) {
    *WARNER.lock() = warner;
}

/// Hands on a finding of a launch that succeeded; standard error shows it if nobody asked for findings.
pub fn warn(found: &Diagnostic) {
    let warner = *WARNER.lock();
    match warner {
        Some(receiver) => receiver.take(&failure::finding(found)),
        None => eprintln!("girih: {}: {}", found.code.text(), found.message),
    }
}

pub fn print(text: &str) {
    let printer = *PRINTER.lock();
    match printer {
        Some(receiver) => receiver.take(text),
        None => {
            use std::io::Write;
            let mut out = std::io::stdout().lock();
            // A reader that went away is not a reason to stop computing.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    }
}

/// Changes the options that a JSON object names; changes nothing if anything in it is wrong.
pub fn set(text: &str) -> Result<()> {
    let object: Map<String, Value> =
        serde_json::from_str(text).map_err(|e| Failure::value(format!("the options are not a JSON object: {e}")))?;
    let before = current();
    let mut options = before.options.clone();
    let mut interrupt = before.interrupt;
    for (name, value) in &object {
        let wrong = |want: &str| Failure::value(format!("option `{name}` must be {want}, not {value}"));
        let flag = || value.as_bool().ok_or_else(|| wrong("true or false"));
        match name.as_str() {
            "device" => {
                let text = value.as_str().ok_or_else(|| wrong("the name of a device"))?;
                options.device = text.parse().map_err(Failure::value)?;
            }
            "check" => options.check = flag()?,
            "interrupt" => interrupt = flag()?,
            "threads" if value.is_null() => options.threads = None,
            "threads" => {
                let count = value.as_u64().filter(|n| (1..=1024).contains(n));
                options.threads = Some(count.ok_or_else(|| wrong("a number from 1 to 1024, or null"))? as u32);
            }
            "cache" => {
                options.cache = match value.as_str() {
                    Some("default") => CachePolicy::Default,
                    Some("off") => CachePolicy::Off,
                    Some(path) if !path.is_empty() => CachePolicy::At(PathBuf::from(path)),
                    _ => return Err(wrong("\"default\", \"off\" or a folder")),
                }
            }
            "compiler" if value.is_null() => options.compiler = None,
            "compiler" => {
                options.compiler = Some(value.as_str().ok_or_else(|| wrong("a command, or null"))?.to_string());
            }
            "knobs" => {
                let knobs: BTreeMap<String, i64> =
                    serde_json::from_value(value.clone()).map_err(|_| wrong("an object of numbers"))?;
                options.knobs = knobs.into_iter().collect();
                options.all_knobs().map_err(|e| Failure::value(e.to_string()))?;
            }
            _ => return Err(Failure::value(format!("unknown option `{name}`"))),
        }
    }
    let mut slot = CURRENT.lock();
    let generation = slot.as_ref().map_or(before.generation, |c| c.generation) + 1;
    *slot = Some(Arc::new(Current { generation, options, interrupt }));
    Ok(())
}

/// All options, as `set` takes them.
pub fn json() -> String {
    let current = current();
    let options = &current.options;
    let cache = match &options.cache {
        CachePolicy::Default => "default".to_string(),
        CachePolicy::Off => "off".to_string(),
        CachePolicy::At(path) => path.display().to_string(),
    };
    json!({
        "device": options.device.to_string(),
        "check": options.check,
        "threads": options.threads,
        "cache": cache,
        "compiler": options.compiler,
        "knobs": options.knobs.iter().cloned().collect::<BTreeMap<String, i64>>(),
        "interrupt": current.interrupt,
    })
    .to_string()
}
