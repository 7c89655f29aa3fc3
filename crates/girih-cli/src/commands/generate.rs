//! `girih generate`: becomes `python -m girih.huggingface generate`, which streams the text.

use std::ffi::OsString;

use super::cutile::become_python;
use crate::cli::GenerateArgs;
use crate::failure::Failure;

pub fn run(args: &GenerateArgs) -> Result<(), Failure> {
    let flag = |name: &str, value: String| OsString::from(format!("--{name}={value}"));
    let mut all: Vec<OsString> = vec![
        "generate".into(),
        flag("prompt", args.prompt.clone()),
        flag("max-tokens", args.max_tokens.to_string()),
        flag("temperature", args.temperature.to_string()),
        flag("top-p", args.top_p.to_string()),
        flag("seed", args.seed.to_string()),
    ];
    all.extend(args.dtype.as_ref().map(|dtype| flag("dtype", dtype.clone())));
    all.extend(args.quantize.as_ref().map(|kind| flag("quantize", kind.clone())));
    let flags = [(args.json, "--json"), (args.profile, "--profile")];
    all.extend(flags.iter().filter(|(given, _)| *given).map(|(_, name)| OsString::from(name)));
    all.extend(["--".into(), args.folder.clone().into_os_string()]);
    become_python("girih.huggingface", &all)
}
