//! Mounts, limits and signals: a run ends with its result or a reason, and leaves nothing running and nothing lying about.

use crate::lab;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use lab::{ADD, Lab, Running, err, expect, finish, out, until};

/// Runs a script in which `$M` is a file system of its own, mounted with some options; `None` where nobody may mount.
fn mounted(lab: &Lab, options: &str, script: &str) -> Option<Output> {
    let folder = lab.path("mount");
    std::fs::create_dir_all(&folder).unwrap();
    let may = |inner: &str| format!("unshare -Urm sh -c 'mount -t tmpfs -o {options} tmpfs \"$M\" && {inner}'");
    let mut probe = lab.shell(&may("true"));
    probe.env("M", &folder).stdout(Stdio::null()).stderr(Stdio::null());
    if !probe.status().is_ok_and(|s| s.success()) {
        return None;
    }
    let mut command = lab.shell(&may(script));
    Some(finish(command.env("M", &folder)))
}

#[test]
fn a_cache_that_is_mounted_noexec_is_used_and_told() {
    let lab = Lab::new("noexec");
    let add = lab.file("add.mlir", ADD);
    let script = format!(
        "export GIRIH_CACHE_DIR=\"$M/c\"; \"$GIRIH\" run {add} --print c; \"$GIRIH\" run {add} --json; \"$GIRIH\" doctor >&2"
    );
    let Some(o) = mounted(&lab, "size=16m,noexec", &script) else { return };
    let (said, told) = (out(&o), err(&o));
    assert!(said.starts_with("c = [1.0, 2.0, 3.0") && said.contains("\"cached\":true"), "{said}{told}");
    assert!(told.contains("W0505") && told.contains("noexec"), "{told}");
    let doctor = told.lines().any(|l| l.starts_with("MISSING cache ") && l.contains("noexec"));
    assert!(doctor, "{told}");
    // Neither place can run anything.
    let both = format!("export GIRIH_CACHE_DIR=\"$M/c\" TMPDIR=\"$M\"; \"$GIRIH\" run {add} --print c");
    let o = mounted(&lab, "size=16m,noexec", &both).unwrap();
    assert!(out(&o).starts_with("c = [1.0, 2.0, 3.0"), "{}{}", out(&o), err(&o));
}

#[test]
fn a_full_disk_under_the_cache_is_told() {
    let lab = Lab::new("full-cache");
    let add = lab.file("add.mlir", ADD);
    // Room for folders, not for a kernel.
    let script = format!("export GIRIH_CACHE_DIR=\"$M/c\"; \"$GIRIH\" run {add} --print c");
    let Some(o) = mounted(&lab, "size=8k", &script) else { return };
    expect(&o, 0, "W0505");
    assert!(out(&o).starts_with("c = [1.0, 2.0, 3.0"), "{}", out(&o));
    assert!(err(&o).contains("No space left") && err(&o).contains("GIRIH_CACHE_DIR"), "{}", err(&o));
}

#[test]
fn a_temporary_folder_that_is_missing_is_replaced() {
    let lab = Lab::new("no-tmp");
    let add = lab.file("add.mlir", ADD);
    for more in [&[][..], &["--no-cache"]] {
        let mut command = lab.command(&[&["run", &add, "--print", "c"], more].concat());
        let o = finish(command.env("TMPDIR", lab.path("nowhere")));
        expect(&o, 0, "");
        assert!(out(&o).starts_with("c = [1.0, 2.0, 3.0"), "{}", out(&o));
    }
}

/// Whoever is not root runs under a limit on processes that is reached at once.
#[test]
fn a_limit_on_processes_is_no_panic() {
    let lab = Lab::new("nproc");
    let add = lab.file("add.mlir", ADD);
    // SAFETY: asks.
    let other = if unsafe { libc::geteuid() } == 0 { "exec setpriv --reuid 65534 --clear-groups" } else { "exec" };
    if other != "exec" && !Command::new("setpriv").arg("--version").output().is_ok_and(|o| o.status.success()) {
        return;
    }
    let own = lab.path("own");
    std::fs::create_dir_all(&own).unwrap();
    mode(&lab.path(""), 0o755);
    if other != "exec" {
        std::os::unix::fs::chown(&own, Some(65534), None).unwrap();
    }
    let run = |limit: u32, words: &str| {
        let inner = format!("ulimit -u {limit}; GIRIH_CACHE_DIR=\"{own}/c\" exec \"$GIRIH\" {words}");
        let mut command = lab.shell(&format!("{other} sh -c '{inner}'"));
        // Where the program lies, others may not look.
        command.env("GIRIH", reachable(&lab));
        finish(&mut command)
    };
    // Compiled without a limit, it runs with fewer threads.
    let words = format!("run {add} --print c");
    expect(&run(100_000, &words), 0, "");
    for limit in [1, 2, 3, 4, 6] {
        for words in [
            words.clone(),
            format!("{words} --no-cache"),
            format!("bench {add} --time 0.1"),
            format!("run {add} --verify --no-cache"),
        ] {
            let o = run(limit, &words);
            let told = err(&o);
            assert!(!told.contains("internal error") && !told.contains("panicked"), "{limit} {words}: {told}");
            assert!(matches!(o.status.code(), Some(0..=3)), "{limit} {words}: {:?} {told}", o.status);
        }
        assert!(out(&run(limit, &words)).starts_with("c = [1.0, 2.0, 3.0"), "{limit}");
    }
}

fn mode(path: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Others who may write in a folder may rename what lies in it, and put a cache of their own there.
#[test]
fn a_cache_below_a_folder_that_others_may_write_is_not_used() {
    let lab = Lab::new("open-folder");
    let add = lab.file("add.mlir", ADD);
    let open = lab.path("open");
    std::fs::create_dir_all(&open).unwrap();
    let run = |cache: &str| finish(lab.command(&["run", &add, "--print", "c"]).env("GIRIH_CACHE_DIR", cache));
    for below in ["", "/cache", "/a/b/c"] {
        let cache = format!("{open}{below}");
        mode(&open, 0o777);
        let o = run(&cache);
        expect(&o, 0, "W0505");
        assert!(out(&o).starts_with("c = [1.0, 2.0, 3.0") && err(&o).contains("chmod go-w"), "{}", err(&o));
        assert!(entries(&cache) == 0, "{cache}");
        // With the sticky bit nobody may rename the folders of others.
        mode(&open, if below.is_empty() { 0o755 } else { 0o1777 });
        expect(&run(&cache), 0, "");
        assert_eq!(entries(&cache), 1, "{cache}");
    }
}

/// The number of kernels in a cache.
fn entries(cache: &str) -> usize {
    let found = std::fs::read_dir(Path::new(cache).join("v1")).into_iter().flatten();
    found.filter(|f| f.as_ref().unwrap().path().is_dir()).count()
}

/// A file that grows past the limit is an error with a reason; nothing is left of it.
#[test]
fn a_limit_on_files_is_told() {
    let lab = Lab::new("fsize");
    let add = lab.file("add.mlir", ADD);
    expect(&lab.girih(&["run", &add]), 0, "");
    for words in [
        format!("run {add} --save c={}", lab.path("c.npy")),
        format!("cache export {}", lab.path("kernels.girih")),
        format!("compile {add} --ir c -o {}", lab.path("add.c")),
    ] {
        let o = finish(&mut lab.shell(&format!("ulimit -f 1; exec \"$GIRIH\" {words}")));
        expect(&o, 1, "File too large");
        assert_eq!(lab.names(), ["add.mlir"], "{words}");
    }
}

/// The program in a folder that anybody may look into.
fn reachable(lab: &Lab) -> String {
    let copy = lab.path("girih");
    if !Path::new(&copy).exists() {
        std::fs::copy(env!("CARGO_BIN_EXE_girih"), &copy).unwrap();
    }
    copy
}

/// However it is told to end, its compiler ends with it, and its files go.
#[test]
fn signals_end_the_compiler_too() {
    let lab = Lab::new("ends");
    let add = lab.file("add.mlir", ADD);
    let mark = format!("girih-slow-{}", std::process::id());
    // A compiler of two processes, as gcc is: what does the work is not what was started.
    let slow = lab.file(
        "slow",
        &format!(
            "#!/bin/sh\ncase \"$*\" in *-shared*) touch {}; sh -c 'sleep 100; : {mark}';; esac\nexec cc \"$@\"\n",
            lab.path("begun")
        ),
    );
    assert!(Command::new("chmod").args(["+x", &slow]).status().unwrap().success());
    std::fs::create_dir_all(lab.path("tmp")).unwrap();
    for (signal, code) in
        [(libc::SIGTERM, 143), (libc::SIGHUP, 129), (libc::SIGINT, 130), (libc::SIGQUIT, 131), (libc::SIGXCPU, 152)]
    {
        let _ = std::fs::remove_file(lab.path("begun"));
        let mut command = lab.command(&["run", &add]);
        command.env("GIRIH_CC", &slow).env("TMPDIR", lab.path("tmp")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Running::new(command.spawn().unwrap());
        until("the compiler begins", || Path::new(&lab.path("begun")).exists());
        let start = Instant::now();
        child.signal(signal);
        assert_eq!(child.wait().code(), Some(code));
        assert!(start.elapsed() < Duration::from_secs(60));
        let running = || {
            let list = Command::new("ps").args(["-eo", "args"]).output().unwrap();
            out(&list).lines().any(|l| l.contains(&mark))
        };
        until("the compiler ends", || !running());
        let left: Vec<_> = std::fs::read_dir(lab.path("tmp")).unwrap().map(|f| f.unwrap().path()).collect();
        assert!(left.is_empty(), "{signal}: {left:?}");
        let kernels = std::fs::read_dir(lab.path("cache/v1")).unwrap().map(|f| f.unwrap().path());
        let kernels: Vec<_> = kernels.filter(|p| p.is_dir()).collect();
        assert!(kernels.is_empty(), "{signal}: {kernels:?}");
    }
}

/// Each block of the evaluator is short, and there are very many.
#[test]
fn many_short_blocks_are_interrupted() {
    let lab = Lab::new("short-blocks");
    let short = lab.file(
        "short.mlir",
        "cuda_tile.module @m {\n  entry @k(%p: tile<ptr<i32>>) {\n    %x, %y, %z = get_tile_block_id : tile<i32>\n    %zero = constant <i32: 0> : \
         tile<i32>\n    %first = cmpi equal %x, %zero, signed : tile<i32> -> tile<i1>\n    if %first {\n      print_tko \"runs\\n\" -> token\n    }\n    \
         %t = store_ptr_tko weak %p, %x : tile<ptr<i32>>, tile<i32> -> token\n  }\n}\n",
    );
    let args = ["run", &short, "--grid", "16777215", "--arg", "p=zeros:i32[1]", "--device", "eval"];
    let mut child = Running::new(lab.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    child.says(0, "runs");
    std::thread::sleep(Duration::from_millis(300));
    let start = Instant::now();
    child.interrupt();
    assert_eq!(child.wait().code(), Some(130));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
