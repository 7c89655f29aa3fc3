//! Completions, pages for `man`, and the long version.

use crate::lab;

use std::process::Command;

use lab::{Lab, err, expect, out};

/// The subcommands, as `girih --help` lists them.
fn subcommands(lab: &Lab) -> Vec<String> {
    let help = out(&lab.girih(&["--help"]));
    let lines = help.lines().skip_while(|l| *l != "Commands:").skip(1).take_while(|l| l.starts_with("  "));
    let names: Vec<String> = lines.filter_map(|l| l.split_whitespace().next()).map(String::from).collect();
    assert!(names.len() > 10, "{help}");
    names.into_iter().filter(|n| n != "help").collect()
}

#[test]
fn completions_know_every_command() {
    let lab = Lab::new("completions");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let o = lab.girih(&["completions", shell]);
        expect(&o, 0, "");
        for name in subcommands(&lab) {
            assert!(out(&o).contains(&name), "{shell}: no {name}");
        }
        assert!(out(&o).contains("schedules"), "{shell}: no flags");
    }
    let o = lab.girih(&["completions", "zhs"]);
    assert!(o.status.code() == Some(2) && err(&o).contains("zsh"), "{}", err(&o));
    // Bash itself reads it, and completes.
    let script = lab.file("girih.bash", &out(&lab.girih(&["completions", "bash"])));
    let asked = format!(
        "source {script}; COMP_WORDS=(girih disas); COMP_CWORD=1; _girih girih disas girih; echo ${{COMPREPLY[@]}}"
    );
    if let Ok(done) = Command::new("bash").args(["-c", &asked]).output() {
        assert_eq!(out(&done).trim(), "disassemble", "{}", err(&done));
    }
}

#[test]
fn every_command_has_a_page() {
    let lab = Lab::new("man");
    let folder = lab.path("man");
    expect(&lab.girih(&["man", &folder]), 0, "");
    for name in subcommands(&lab) {
        let page =
            std::fs::read_to_string(format!("{folder}/girih-{name}.1")).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(page.contains(".SH NAME") && page.contains(".SH OPTIONS"), "{name}");
    }
    assert!(std::fs::read_to_string(format!("{folder}/girih.1")).unwrap().contains("girih"));
    let file = lab.file("taken", "");
    expect(&lab.girih(&["man", &file]), 1, "cannot be written");
}

#[test]
fn the_version_says_what_it_was_built_by() {
    let lab = Lab::new("version");
    let short = lab.girih(&["--version"]);
    for words in [["--version", "-v"], ["-v", "--version"], ["-V", "--verbose"]] {
        let o = lab.girih(&words);
        expect(&o, 0, "");
        assert!(out(&o).starts_with(out(&short).trim_end()), "{}", out(&o));
        for line in ["built", "C compiler", "processor"] {
            assert!(out(&o).lines().any(|l| l.starts_with(line)), "{}", out(&o));
        }
    }
}
