//! The command line: NVIDIA's options, in the forms that its own tool takes (`-name`, `--name`, `=value` or the next
//! word, `-O3`).

use cuda::container::{GPUS, Options};

/// The request of a command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    Help,
    Version,
    ListVersions,
    Assemble(Box<Job>),
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Job {
    pub input: String,
    pub output: String,
    pub options: Options,
    /// A file of remarks is wanted.
    pub remarks: Option<String>,
}

/// A command line that cannot be followed, and the exit code for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    pub message: String,
    pub exit: u8,
}

fn wrong(exit: u8, message: impl Into<String>) -> Wrong {
    Wrong { message: message.into(), exit }
}

/// How an option takes its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Text,
    Number,
    /// One of these.
    One(&'static [&'static str]),
}

const KINDS: &[&str] = &["none", "all", "memory", "tensorcore"];

/// Names, value, and what it does.
const OPTIONS: &[(&[&str], Takes, &str)] = &[
    (&["gpu-name", "arch"], Takes::One(&GPUS), "the chip the program asks about; it runs on the CPU all the same"),
    (&["opt-level", "O"], Takes::Number, "0 to 3, 3 by default; kept with the program"),
    (&["output-file", "o"], Takes::Text, "the file to write; elf.o by default"),
    (&["lineinfo"], Takes::Nothing, "keep line numbers; they are always kept"),
    (&["device-debug", "g"], Takes::Nothing, "for debugging; kept with the program"),
    (&["sanitize"], Takes::One(&["memcheck"]), "accepted; use GIRIH_CHECK=1 to check accesses"),
    (&["preview"], Takes::Text, "accepted: names of preview features"),
    (&["apply-controls"], Takes::Text, "accepted and not needed"),
    (&["l"], Takes::Text, "refused: libraries hold code for GPUs"),
    (&["host-arch"], Takes::One(&["x86_64", "aarch64"]), "accepted: this machine is the host"),
    (&["host-os"], Takes::One(&["linux", "windows"]), "accepted: this machine is the host"),
    (&["remarks"], Takes::One(KINDS), "which remarks to write; there are none so far"),
    (&["remarks-passed"], Takes::One(KINDS), "like --remarks, for what was done"),
    (&["remarks-missed"], Takes::One(KINDS), "like --remarks, for what was not done"),
    (&["remarks-failed"], Takes::One(KINDS), "like --remarks, for what could not be done"),
    (&["remarks-analysis"], Takes::One(KINDS), "like --remarks, for what was found"),
    (&["remark-format"], Takes::One(&["command-line", "yaml"]), "yaml writes a file of remarks"),
    (&["remarks-output-file"], Takes::Text, "the name of that file; tileir_remarks.yaml by default"),
    (&["help", "h", "help-list", "help-hidden", "help-list-hidden"], Takes::Nothing, "print this help"),
    (&["version"], Takes::Nothing, "print the version of Girih"),
    (&["list-versions"], Takes::Nothing, "print the versions of bytecode that can be read"),
];

pub fn help() -> String {
    let mut out = String::from(
        "Girih's stand-in for tileiras: checks a tile program and wraps it for Girih's libcuda.so.1\n\n\
         Usage: tileiras [options] <bytecode or tile text>\n\nOptions:\n",
    );
    for (names, takes, text) in OPTIONS {
        let mut left: Vec<String> =
            names.iter().take(2).map(|n| if n.len() == 1 { format!("-{n}") } else { format!("--{n}") }).collect();
        left.sort_by_key(|n| std::cmp::Reverse(n.len()));
        let value = match takes {
            Takes::Nothing => String::new(),
            Takes::Text => "=<value>".to_string(),
            Takes::Number => "=<n>".to_string(),
            Takes::One(of) if of.len() > 4 => "=<name>".to_string(),
            Takes::One(of) => format!("=<{}>", of.join("|")),
        };
        out += &format!("  {:<52} {text}\n", left.join(", ") + &value);
    }
    out + &format!("\nChips: {}\n", GPUS.join(" "))
}

/// Splits a word that is an option into its name and the value after `=`.
fn split(word: &str) -> Option<(&str, Option<&str>)> {
    let name = word.strip_prefix('-').filter(|n| !n.is_empty())?;
    let name = name.strip_prefix('-').unwrap_or(name);
    Some(name.split_once('=').map_or((name, None), |(n, v)| (n, Some(v))))
}

pub fn parse(words: &[String]) -> Result<Request, Wrong> {
    let mut job = Job { output: "elf.o".into(), ..Job::default() };
    let mut gpu = None;
    let (mut yaml, mut file) = (false, "tileir_remarks.yaml".to_string());
    let mut inputs = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some((name, mut value)) = split(word) else {
            inputs.push(word.clone());
            continue;
        };
        let mut found = OPTIONS.iter().find(|(names, ..)| names.contains(&name));
        // `-O3`, `-ofile`: the value follows the letter.
        if found.is_none() && !word.starts_with("--") && value.is_none() {
            let (letter, rest) = name.split_at_checked(1).unwrap_or((name, ""));
            let sticks = |o: &&(&[&str], Takes, &str)| o.0.contains(&letter) && o.1 != Takes::Nothing;
            found = OPTIONS.iter().find(sticks);
            value = found.map(|_| rest);
        }
        let Some((names, takes, _)) = found else {
            return Err(wrong(1, format!("tileiras: unknown option '{word}'; see tileiras --help")));
        };
        let name = names.first().copied().unwrap_or(name);
        let value = match (takes, value) {
            (Takes::Nothing, None) => "",
            (Takes::Nothing, Some(_)) => return Err(wrong(1, format!("tileiras: --{name} takes no value"))),
            (_, Some(value)) => value,
            (_, None) => {
                words.next().map(String::as_str).ok_or_else(|| wrong(1, format!("tileiras: --{name} needs a value")))?
            }
        };
        if let Takes::One(of) = takes
            && !of.contains(&value)
        {
            return Err(wrong(
                1,
                format!("tileiras: unknown value '{value}' of --{name}; the values are {}", of.join(", ")),
            ));
        }
        match name {
            "help" => return Ok(Request::Help),
            "version" => return Ok(Request::Version),
            "list-versions" => return Ok(Request::ListVersions),
            "gpu-name" => gpu = Some(value.to_string()),
            "opt-level" => {
                let level = value.parse::<u8>().ok().filter(|&n| n <= 3);
                let no = || wrong(2, format!("error: expected an optimization level from 0 to 3, found '{value}'"));
                job.options.opt_level = level.ok_or_else(no)?;
            }
            "output-file" => job.output = value.to_string(),
            "lineinfo" => job.options.lineinfo = true,
            "device-debug" => job.options.device_debug = true,
            "l" => return Err(wrong(1, format!("error: library '{value}' holds code for GPUs and cannot be used"))),
            "remark-format" => yaml = value == "yaml",
            "remarks-output-file" => file = value.to_string(),
            _ => {}
        }
    }
    match inputs.as_slice() {
        [] => return Err(wrong(1, "error: no input file; see tileiras --help")),
        [input] => job.input = input.clone(),
        [_, extra, ..] => {
            return Err(wrong(1, format!("tileiras: expected one input file, found another, '{extra}'")));
        }
    }
    job.options.gpu_name = gpu.ok_or_else(|| wrong(2, "error: --gpu-name is missing"))?;
    job.remarks = yaml.then_some(file);
    Ok(Request::Assemble(Box::new(job)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(String::from).collect()
    }
    fn job(line: &str) -> Job {
        match parse(&words(line)) {
            Ok(Request::Assemble(job)) => *job,
            other => panic!("{other:?}"),
        }
    }
    fn exit(line: &str) -> u8 {
        parse(&words(line)).unwrap_err().exit
    }

    #[test]
    fn options_in_every_form() {
        let want = Job {
            input: "a.bc".into(),
            output: "b".into(),
            options: Options { gpu_name: "sm_90".into(), opt_level: 1, lineinfo: true, ..Options::default() },
            remarks: None,
        };
        for line in [
            "a.bc -o b --gpu-name sm_90 -O1 --lineinfo",
            "--gpu-name=sm_90 -opt-level=1 -lineinfo -output-file b a.bc",
            "-arch sm_90 -O 1 --o=b --lineinfo a.bc --sanitize=memcheck --preview=x,y --remarks=all",
        ] {
            assert_eq!(job(line), want, "{line}");
        }
        let with = job("a.bc --gpu-name sm_80 --remark-format=yaml --remarks-output-file=r.yaml -g");
        assert_eq!((with.remarks.as_deref(), with.options.device_debug), (Some("r.yaml"), true));
        assert_eq!(with.output, "elf.o");
    }

    #[test]
    fn what_is_wrong_has_its_exit_code() {
        assert_eq!(exit("a.bc --gpu-name sm_75"), 1);
        assert_eq!(exit("a.bc"), 2);
        assert_eq!(exit("a.bc --gpu-name sm_80 -O5"), 2);
        assert_eq!(exit("a.bc --gpu-name sm_80 --bogus"), 1);
        assert_eq!(exit("a.bc b.bc --gpu-name sm_80"), 1);
        assert_eq!(exit("--gpu-name sm_80"), 1);
        assert_eq!(exit("a.bc --gpu-name"), 1);
        assert_eq!(exit("a.bc --lineinfo=1"), 1);
        assert_eq!(exit("a.bc -é --gpu-name sm_80"), 1);
    }
}
