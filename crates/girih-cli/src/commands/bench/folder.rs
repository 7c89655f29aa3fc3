//! A Hugging Face folder beside PyTorch: becomes `python -m girih.huggingface bench`.

use std::ffi::OsString;

use crate::cli::BenchArgs;
use crate::commands::cutile::become_python;
use crate::failure::Failure;

pub fn run(args: &BenchArgs, folder: &str) -> Result<(), Failure> {
    if let Some(flag) = super::of_suites(args) {
        return Err(Failure::usage(format!("{flag}: a Hugging Face folder does not take this")));
    }
    let mut all: Vec<OsString> = vec!["bench".into()];
    all.extend(args.folder.flags().into_iter().map(OsString::from));
    all.extend(args.threads.first().map(|n| format!("--threads={n}").into()));
    all.extend(args.rounds.map(|n| format!("--rounds={n}").into()));
    all.extend(args.json.then(|| OsString::from("--json")));
    all.extend(["--".into(), folder.into()]);
    become_python("girih.huggingface", &all)
}
