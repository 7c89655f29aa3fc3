//! On a terminal a compilation that takes long shows its current step, on one line that is gone at the end; elsewhere it
//! says nothing.

use crate::lab;

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::process::{Command, Stdio};

use lab::{ADD, Lab};

/// A compiler that takes a second and a half longer.
fn slow(lab: &Lab) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = lab.file("slow-cc", "#!/bin/sh\nsleep 1.5\nexec cc \"$@\"\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The output of a command to a standard error that is a terminal.
fn on_a_terminal(command: &mut Command) -> String {
    let (mut ours, mut theirs) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: two integers to write to; the rest may be left out.
    let opened = unsafe { libc::openpty(&mut ours, &mut theirs, null, null.cast(), null.cast()) };
    assert_eq!(opened, 0);
    // SAFETY: both were just opened, and nothing else has them.
    let (mut ours, theirs) = unsafe { (File::from_raw_fd(ours), File::from_raw_fd(theirs)) };
    let mut child = command.env("TERM", "xterm").stdout(Stdio::null()).stderr(theirs).spawn().unwrap();
    // The command holds the other end that it was given.
    command.stderr(Stdio::null());
    let mut said = vec![];
    // Reading fails where nobody holds the other end any more.
    let _ = ours.read_to_end(&mut said);
    assert!(child.wait().unwrap().success(), "{}", String::from_utf8_lossy(&said));
    String::from_utf8_lossy(&said).into_owned()
}

/// Returns true if the line was taken away after it was last written.
fn is_gone(said: &str) -> bool {
    said.rsplit_once("\r\x1b[K").is_some_and(|(_, end)| !end.contains("compiling"))
}

#[test]
fn a_terminal_is_told_how_far_a_long_compilation_is() {
    let lab = Lab::new("progress-shown");
    let (add, cc) = (lab.file("add.mlir", ADD), slow(&lab));
    let said = on_a_terminal(lab.command(&["run", &add]).env("GIRIH_CC", &cc));
    assert!(said.contains("\r\x1b[Kcompiling add: the C compiler"), "{said:?}");
    assert!(is_gone(&said), "the line stays: {said:?}");

    let model = "torch.exp(torch.randn(8))";
    let said = on_a_terminal(lab.command(&["run", "-c", model]).env("GIRIH_CC", &cc));
    assert!(said.contains("compiling k_exp (1 of 1): the C compiler"), "{said:?}");
    assert!(is_gone(&said), "the line stays: {said:?}");
}

#[test]
fn a_short_one_says_nothing() {
    let lab = Lab::new("progress-short");
    let add = lab.file("add.mlir", ADD);
    on_a_terminal(&mut lab.command(&["run", &add]));
    // The second time its object is in the cache.
    let said = on_a_terminal(&mut lab.command(&["run", &add]));
    assert!(!said.contains("compiling"), "{said:?}");
}

#[test]
fn programs_are_told_nothing() {
    let lab = Lab::new("progress-json");
    let (add, cc) = (lab.file("add.mlir", ADD), slow(&lab));
    let said = on_a_terminal(lab.command(&["run", &add, "--json", "--no-cache"]).env("GIRIH_CC", &cc));
    assert!(!said.contains("compiling"), "{said:?}");
    let out = lab::finish(lab.command(&["run", &add, "--no-cache"]).env("GIRIH_CC", &cc));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success() && !said.contains("compiling") && !said.contains('\r'), "{said:?}");
}
