//! The output of commands: all of it arrives or the command fails, and long words are shortened.

use crate::lab;

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Stdio;

use lab::{ADD, Lab, Running, TWO, err, expect, out};

/// Commands that write to standard output, each in its own way.
fn writers(lab: &Lab) -> Vec<Vec<String>> {
    let (add, two, bad) = (lab.file("add.mlir", ADD), lab.file("two.mlir", TWO), lab.file("bad.mlir", "nonsense"));
    let loose = lab.file("loose.mlir", &ADD.replace("    %c_r", "      %c_r"));
    let relu = "torch.relu(torch.ones(3))";
    let all: &[&[&str]] = &[
        &["--help"],
        &["--version"],
        &["run", "--help"],
        &["ops"],
        &["ops", "addf"],
        &["ops", "--json"],
        &["rules"],
        &["rules", "vectorise"],
        &["doctor"],
        &["doctor", "--json"],
        &["cache", "info"],
        &["cache", "clear"],
        &["check", "--json", &bad],
        &["fmt", "--check", &loose],
        &["disassemble", &add],
        &["assemble", &add],
        &["compile", &add, "--ir", "c"],
        &["compile", &add, "-vv"],
        &["compile", &add, "--verify-each"],
        &["compile", "-c", relu, "--verify-each"],
        &["compile", "-c", relu, "--ir", "tensor"],
        &["compile", "-c", "help"],
        &["run", "-c", "help"],
        &["run", "-c", relu],
        &["run", "-c", relu, "--verify"],
        &["run", "-c", relu, "--compare", "eval"],
        &["run", "-c", relu, "--verify-each"],
        &["run", "-c", relu, "--json"],
        &["run", &add, "--json"],
        &["run", &add, "--print", "c"],
        &["run", &add, "--verify"],
        &["run", &add, "--verify-each"],
        &["run", &add, "--compare", "eval"],
        &["run", &two, "--entry", "first"],
        &["run", &two, "--entry", "first", "--device", "eval"],
        &["run", &two, "--entry", "first", "--print-order", "index"],
    ];
    all.iter().map(|args| args.iter().map(|a| a.to_string()).collect()).collect()
}

#[test]
fn a_full_disk_is_a_failure() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let lab = Lab::new("full");
    for args in writers(&lab) {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let child = lab.command(&args).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let o = Running::new(child).output();
        assert_eq!(o.status.code(), Some(1), "{args:?}: {}", err(&o));
        assert!(err(&o).contains("standard output cannot be written: No space left"), "{args:?}: {}", err(&o));
        // The command itself went well: there is nothing else to say.
        assert_eq!(err(&o).matches("error[").count(), 1, "{args:?}: {}", err(&o));
    }
}

#[test]
fn a_reader_that_went_away_ends_a_command_in_silence() {
    let lab = Lab::new("pipe");
    for args in writers(&lab) {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = lab.command(&args).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let o = Running::new(child).output();
        assert_eq!((o.status.code(), err(&o)), (Some(141), String::new()), "{args:?}");
    }
}

#[test]
fn a_standard_error_that_takes_nothing_is_no_crash() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let lab = Lab::new("stderr");
    let add = lab.file("add.mlir", ADD);
    let all: [(&[&str], i32); 4] =
        [(&["run", &add], 0), (&["run", "none.mlir"], 1), (&["run", &add, "--grid", "0"], 2), (&["ops", "addg"], 1)];
    for (args, code) in all {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let child = lab.command(args).stdout(Stdio::null()).stderr(full).spawn().unwrap();
        assert_eq!(Running::new(child).output().status.code(), Some(code), "{args:?}");
    }
}

#[test]
fn long_words_lose_their_middle() {
    let lab = Lab::new("long");
    let add = lab.file("add.mlir", ADD);
    // A file may be as long as it likes; an argument of a command has at most 128 KiB.
    let (word, digits, short) = ("x".repeat(1_000_000), "9".repeat(1_000_000), "y".repeat(100_000));
    let module = |body: &str| format!("cuda_tile.module @m {{ entry @k() {{ {body} }} }}");
    let assertion = "%no = constant <i1: false> : tile<i1>\n assert %no, \"WORD\" : tile<i1>";
    let files = [
        module(&word),
        module(&format!("%a = constant <i32: {digits}> : tile<i32>")),
        module(&format!("print_tko \"{word}")),
        module(&format!("%a = addf %{word}, %b : tile<f32>")),
        module(&format!("%a = constant <{word}: 1> : tile<f32>")),
        module(&assertion.replace("WORD", &word)),
        module(&assertion.replace("WORD", &"a b ".repeat(250_000))),
        format!("cuda_tile.module @m {{ entry @{word}() {{ addf }} }}"),
        format!("cuda_tile.module @m {{ entry @{word}() {{ }} entry @b() {{ }} }}"),
        format!("// launch: grid={word}\n{}", module("")),
        format!("// launch: {word}=i32:1\n{}", module("")),
        format!("// launch: a={word}\n{}", module("")),
    ];
    for (i, text) in files.iter().enumerate() {
        let file = lab.file(&format!("{i}.mlir"), text);
        for args in [&["run", &file][..], &["check", "--json", &file]] {
            let o = lab.girih(args);
            assert!(o.status.code().is_some_and(|c| c < 4), "{i} {args:?}: {:?}", o.status);
            let size = o.stdout.len() + o.stderr.len();
            assert!(size < 5000, "{i} {args:?}: {size} bytes");
        }
        assert!(!lab.girih(&["run", &file]).status.success(), "{i}");
    }
    let pair = format!("{short}=i32:1");
    let value = format!("a={short}");
    let (option, knob) = (format!("--{short}"), format!("{short}=1"));
    let attribute = format!("torch.{short}(3)");
    let lines: [&[&str]; 22] = [
        &[&short],
        &["run", &short],
        &["run", "-c", &short],
        &["run", "-c", &attribute],
        &["run", "-c", "x", "--arg", &value],
        &["run", &add, "--arg", &pair],
        &["run", &add, "--arg", &value],
        &["run", &add, "--arg", &short],
        &["run", &add, "--print", &short],
        &["run", &add, "--grid", &short],
        &["run", &add, "--block", &short],
        &["run", &add, "--entry", &short],
        &["run", &add, "--device", &short],
        &["run", &add, "--target", &short],
        &["run", &add, "--knob", &knob],
        &["run", &add, "--threads", &short],
        &["run", &add, &option],
        &["compile", &add, "--ir", &short],
        &["ops", &short],
        &["rules", &short],
        &["bench", &short],
        &["assemble", &add, "-o", &short],
    ];
    for args in lines {
        let o = lab.girih(args);
        let shown: Vec<String> = args.iter().map(|a| a.chars().take(12).collect()).collect();
        assert!(matches!(o.status.code(), Some(1 | 2)), "{shown:?}: {:?}", o.status);
        assert!(
            o.stderr.len() < 3000 && err(&o).contains("characters left out"),
            "{shown:?}: {} bytes",
            o.stderr.len()
        );
    }
    for name in ["GIRIH_DEVICE", "GIRIH_THREADS", "GIRIH_CHECK", "GIRIH_CC", "CC", "GIRIH_TARGET", "GIRIH_CACHE_SIZE"] {
        let o = lab::finish(lab.command(&["run", &add, "--no-cache"]).env(name, &short));
        assert!(!o.status.success() && o.stderr.len() < 2000, "{name}: {} bytes", o.stderr.len());
    }
}

#[test]
fn files_are_written_through_links() {
    let lab = Lab::new("links");
    let add = lab.file("add.mlir", ADD);
    lab.file("target.c", "old");
    let link = lab.path("link.c");
    std::os::unix::fs::symlink("target.c", &link).unwrap();
    expect(&lab.girih(&["compile", &add, "--ir", "c", "-o", &link]), 0, "");
    assert!(std::fs::read_to_string(lab.path("target.c")).unwrap().contains("girih_0"));
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(lab.names(), ["add.mlir", "link.c", "target.c"]);
}

#[test]
fn a_run_that_was_asked_for_nothing_says_what_it_did() {
    let lab = Lab::new("ran");
    let (add, two) = (lab.file("add.mlir", ADD), lab.file("two.mlir", TWO));
    for device in ["cpu", "eval"] {
        let o = lab.girih(&["run", &add, "--device", device]);
        expect(&o, 0, &format!("ran `add` on {device}, grid 4,1,1, in "));
        assert!(err(&o).contains("stores to c: f32[1000]") && err(&o).contains("`--print c`"), "{}", err(&o));
        assert_eq!(out(&o), "");
        let asked: [&[&str]; 5] =
            [&["--print", "c"], &["--json"], &["--verify"], &["--compare", "eval"], &["--save", "c=/dev/null"]];
        for more in asked {
            let o = lab.girih(&[&["run", &add, "--device", device], more].concat());
            expect(&o, 0, "");
            assert_eq!(err(&o), "", "{more:?}");
        }
        // A kernel that prints and stores nothing has shown everything.
        let o = lab.girih(&["run", &two, "--entry", "first", "--device", device]);
        assert_eq!((out(&o), err(&o)), ("first\n".to_string(), String::new()));
    }
}
