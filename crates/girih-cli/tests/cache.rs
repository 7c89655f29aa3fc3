//! The cache of compiled kernels, whatever is done to it: a run is right, the cache stays small, and nothing hangs.

mod lab;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lab::{ADD, Lab, Running, err, expect, finish, out};

/// The folders of compiled kernels.
fn entries(lab: &Lab) -> Vec<PathBuf> {
    let all = fs::read_dir(lab.path("cache/v1")).unwrap().map(|f| f.unwrap().path());
    let mut all: Vec<PathBuf> = all.filter(|p| p.is_dir()).collect();
    all.sort();
    all
}

fn run(lab: &Lab, file: &str) -> bool {
    let o = lab.girih(&["run", file, "--print", "c", "--json"]);
    expect(&o, 0, "");
    assert_eq!(err(&o), "");
    assert!(out(&o).starts_with("c = [1.0, 2.0, 3.0"), "{}", out(&o));
    out(&o).contains("\"cached\":true")
}

/// Puts something else where a file of the cache is.
fn damage(path: &Path, kind: &str) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir_all(path);
    match kind {
        "pipe" => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        "folder" => fs::create_dir_all(path.join("inner")).unwrap(),
        "loop" => std::os::unix::fs::symlink(path, path).unwrap(),
        "dangling" => std::os::unix::fs::symlink("/nonexistent/file", path).unwrap(),
        "device" => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
        "empty" => fs::write(path, "").unwrap(),
        "text" => fs::write(path, "nonsense\n").unwrap(),
        "unreadable" => {
            use std::os::unix::fs::PermissionsExt;
            fs::write(path, "nonsense\n").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
        }
        _ => {}
    }
}

#[test]
fn whatever_lies_in_the_cache_a_run_is_right() {
    let lab = Lab::new("damage");
    let add = lab.file("add.mlir", ADD);
    assert!(!run(&lab, &add));
    let entry = entries(&lab).remove(0);
    let kinds = ["pipe", "folder", "loop", "dangling", "device", "empty", "text", "unreadable", "nothing"];
    for name in ["k.so", "k.c", "meta", "lock", ""] {
        for kind in kinds {
            let path = if name.is_empty() { entry.clone() } else { entry.join(name) };
            damage(&path, kind);
            run(&lab, &add);
            // Mended: the next process finds it.
            assert!(run(&lab, &add), "{name} {kind}");
        }
    }
    let notes: Vec<PathBuf> = fs::read_dir(lab.path("cache/v1")).unwrap().map(|f| f.unwrap().path()).collect();
    for note in notes.iter().filter(|p| p.is_file()) {
        for kind in ["pipe", "folder", "loop", "text"] {
            damage(note, kind);
            assert!(run(&lab, &add), "{} {kind}", note.display());
        }
    }
}

#[test]
fn what_killed_processes_left_goes() {
    let lab = Lab::new("stale");
    let add = lab.file("add.mlir", ADD);
    run(&lab, &add);
    let entry = entries(&lab).remove(0);
    let mut child = Command::new("true").spawn().unwrap();
    let dead = child.id();
    child.wait().unwrap();
    let stale = |name: &str| entry.join(format!("{name}.tmp.{dead}.0"));
    let living = entry.join(format!("k.so.tmp.{}.0", std::process::id()));
    let leave = || {
        for name in ["k.so", "k.c", "meta"] {
            fs::write(stale(name), "half").unwrap();
        }
        fs::write(&living, "half").unwrap();
    };
    let gone = || ["k.so", "k.c", "meta"].iter().all(|name| !stale(name).exists());
    // Looking at the cache tidies it, and so does the next kernel that is compiled.
    leave();
    expect(&lab.girih(&["cache", "info"]), 0, "");
    assert!(gone() && living.exists());
    leave();
    let other = lab.file("other.mlir", &ADD.replace("addf %x, %y", "addf %y, %x"));
    assert!(!run(&lab, &other));
    assert!(gone() && living.exists());
    // Whoever builds an entry holds its lock, so nobody else can be at it.
    leave();
    fs::remove_file(entry.join("meta")).unwrap();
    assert!(!run(&lab, &add));
    assert!(gone() && !living.exists());
}

#[test]
fn the_cache_stays_within_its_size() {
    let lab = Lab::new("size");
    let files: Vec<String> =
        (0..5).map(|i| lab.file(&format!("{i}.mlir"), &ADD.replace("@add", &format!("@add{i}")))).collect();
    assert!(!run(&lab, &files[0]));
    let size: u64 = fs::read_dir(&entries(&lab)[0]).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).sum();
    let limit = (size * 7 / 2).to_string();
    let run = |file: &str| {
        let o = finish(lab.command(&["run", file, "--json"]).env("GIRIH_CACHE_SIZE", &limit));
        expect(&o, 0, "");
        out(&o).contains("\"cached\":true")
    };
    assert!(!run(&files[1]) && !run(&files[2]));
    // The first was used again: of four, the second goes.
    assert!(run(&files[0]));
    assert!(!run(&files[3]));
    assert_eq!(entries(&lab).len(), 3);
    assert!(run(&files[0]) && run(&files[2]) && run(&files[3]));
    assert!(!run(&files[1]));
    let info = |size: &str| finish(lab.command(&["cache", "info"]).env("GIRIH_CACHE_SIZE", size));
    let text = out(&info("64M"));
    assert!(text.contains("kernels  3") && text.contains("of at most 64 MiB (GIRIH_CACHE_SIZE)"), "{text}");
    assert!(out(&lab.girih(&["cache", "info"])).contains("of at most 1024 MiB"));
    for size in ["lots", "-1", "1Q"] {
        expect(&info(size), 2, "expected a size such as 500M or 2G");
        let o = finish(lab.command(&["run", &files[0]]).env("GIRIH_CACHE_SIZE", size));
        expect(&o, 2, "GIRIH_CACHE_SIZE");
    }
}

/// Each process compiles two kernels, and each removes what others have just compiled.
#[test]
fn processes_that_remove_each_others_kernels() {
    let lab = Lab::new("evict");
    let files: Vec<String> =
        (0..3).map(|i| lab.file(&format!("{i}.mlir"), &ADD.replace("@add", &format!("@add{i}")))).collect();
    for _ in 0..3 {
        let start = |file: &String| {
            let mut c = lab.command(&["run", file, "--print", "c"]);
            c.env("GIRIH_CACHE_SIZE", "0").stdout(Stdio::piped()).stderr(Stdio::piped());
            Running::new(c.spawn().unwrap())
        };
        let mut all: Vec<Running> = files.iter().chain(&files).map(start).collect();
        for _ in 0..3 {
            expect(&lab.girih(&["cache", "clear"]), 0, "");
        }
        for running in all.drain(..) {
            let o = running.output();
            expect(&o, 0, "");
            assert!(out(&o).starts_with("c = [1.0, 2.0, 3.0") && err(&o).is_empty(), "{}{}", out(&o), err(&o));
        }
    }
}
