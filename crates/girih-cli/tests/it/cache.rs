//! The cache of compiled kernels, under every kind of damage: a run is right, the cache stays small, and nothing hangs.

use crate::lab;

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
        "socket" => drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
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
    let kinds = ["pipe", "folder", "loop", "dangling", "device", "socket", "empty", "text", "unreadable", "nothing"];
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

/// Each process compiles two kernels, and each removes kernels that others have just compiled.
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

// ---- kernels on their way to other machines

/// A command on a machine that has another cache, `other`, and no C compiler.
fn elsewhere(lab: &Lab, args: &[&str]) -> Command {
    let mut c = lab.command(args);
    c.env("GIRIH_CACHE_DIR", lab.path("other")).env("PATH", lab.path("empty")).env("GIRIH_CC", "/nonexistent/cc");
    c
}

/// Writes a file again with another header, whose hash is right.
fn with_header(file: &[u8], change: impl Fn(&str) -> String) -> Vec<u8> {
    let length = u64::from_le_bytes(file[16..24].try_into().unwrap()) as usize;
    let header = change(std::str::from_utf8(&file[56..56 + length]).unwrap());
    let header = format!("{header:width$}", width = (56 + header.len()).next_multiple_of(4096) - 56);
    let parts = &file[56 + length..];
    let mut out = file[..16].to_vec();
    out.extend((header.len() as u64).to_le_bytes());
    out.extend(blake3::hash(header.as_bytes()).as_bytes());
    out.extend(header.as_bytes());
    out.extend(parts);
    out
}

#[test]
fn kernels_go_to_machines_without_a_compiler() {
    let lab = Lab::new("moved");
    let (add, gate) = (lab.file("add.mlir", ADD), lab.file("gate.json", lab::GATE));
    let file = lab.path("kernels.girih");
    expect(&lab.girih(&["cache", "export", &file]), 1, "the cache is empty");
    assert!(!run(&lab, &add));
    let model = ["run", &gate, "--arg", "x=randn:f32[3x64]", "--arg", "w=randn:f32[32x64]", "--print", "y"];
    let wanted = lab.girih(&model);
    expect(&wanted, 0, "");
    let tuned = lab.0.join("cache/tuned");
    let key = "0123456789abcdef0123456789abcdef";
    fs::create_dir_all(&tuned).unwrap();
    let record = format!(
        r#"{{"name":"add","key":"{key}","machine":"here","girih":"{}","knobs":{{}},"speedup":1.5,"estimated":false,"date":"2026-11-25"}}"#,
        env!("CARGO_PKG_VERSION")
    );
    fs::write(tuned.join(format!("{key}-0000000000000000.json")), record).unwrap();
    let said = lab.girih(&["cache", "export", &file]);
    expect(&said, 0, "");
    assert!(out(&said).starts_with("wrote 3 kernels and 1 schedule, "), "{}", out(&said));

    expect(&finish(&mut elsewhere(&lab, &["run", &add, "--print", "c"])), 1, "no C compiler was found");
    let said = finish(&mut elsewhere(&lab, &["cache", "import", &file]));
    expect(&said, 0, "");
    assert!(out(&said).starts_with("imported 3 kernels and 1 schedule, "), "{}", out(&said));
    let ran = finish(&mut elsewhere(&lab, &["run", &add, "--print", "c", "--json"]));
    expect(&ran, 0, "");
    assert!(out(&ran).starts_with("c = [1.0, 2.0, 3.0") && out(&ran).contains("\"cached\":true"), "{}", out(&ran));
    let ran = finish(&mut elsewhere(&lab, &model));
    expect(&ran, 0, "");
    assert_eq!(out(&ran).lines().next(), out(&wanted).lines().next());
    // Once more changes nothing; and what was brought can go on from there.
    let said = finish(&mut elsewhere(&lab, &["cache", "import", &file]));
    assert!(
        out(&said).starts_with("imported 0 kernels and 0 schedules") && out(&said).contains("; 4 were here already")
    );
    let further = lab.path("further.girih");
    expect(&finish(&mut elsewhere(&lab, &["cache", "export", &further])), 0, "");
    assert_eq!(fs::read(&further).unwrap().len(), fs::read(&file).unwrap().len());
    // An entry that is damaged afterwards is not run.
    for entry in fs::read_dir(lab.path("other/v1")).unwrap().map(|f| f.unwrap().path()).filter(|p| p.is_dir()) {
        fs::write(entry.join("k.so"), "nonsense").unwrap();
    }
    expect(&finish(&mut elsewhere(&lab, &["run", &add, "--print", "c"])), 1, "no C compiler was found");
    // A machine with a compiler compiles what it cannot load.
    let said = finish(lab.command(&["run", &add, "--print", "c"]).env("GIRIH_CACHE_DIR", lab.path("other")));
    expect(&said, 0, "");
}

#[test]
fn files_that_are_no_exported_caches() {
    let lab = Lab::new("hostile-import");
    let add = lab.file("add.mlir", ADD);
    assert!(!run(&lab, &add));
    let file = lab.path("kernels.girih");
    expect(&lab.girih(&["cache", "export", &file]), 0, "");
    let whole = fs::read(&file).unwrap();
    let refuse = |bytes: &[u8], says: &str| {
        fs::write(lab.path("bad.girih"), bytes).unwrap();
        let said = finish(&mut elsewhere(&lab, &["cache", "import", &lab.path("bad.girih")]));
        expect(&said, 1, says);
        let kept = fs::read_dir(lab.path("other/v1")).into_iter().flatten().count();
        assert_eq!(kept, 0, "{says}: something was taken");
    };
    refuse(b"", "it is not an exported cache");
    refuse(b"nonsense that is long enough for a head of sixteen bytes", "it is not an exported cache");
    refuse(b"girih cache 9\n\0\0", "is in a form that this version of girih does not read");
    for length in [16, 30, 60, 4096, whole.len() - 1] {
        refuse(&whole[..length], "ends too early");
    }
    for at in [60, 70, 100] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        refuse(&bytes, "its header is not what was written");
    }
    // Parts, and the bytes between them.
    let base = 56 + u64::from_le_bytes(whole[16..24].try_into().unwrap()) as usize;
    for at in [base, base + 10, base + 4095, base + 8192, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        refuse(&bytes, "is not what was written");
    }
    refuse(&[&whole[..], b"0"].concat(), "1 bytes follow its end");
    let mut long = whole.clone();
    long[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    refuse(&long, "ends too early");
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    refuse(&with_header(&whole, |h| h.replace(&version, "\"version\":\"0.0.9\"")), "it was exported by girih 0.0.9");
    let machine = format!("\"architecture\":\"{}\"", std::env::consts::ARCH);
    refuse(&with_header(&whole, |h| h.replace(&machine, "\"architecture\":\"vax\"")), "exported on a processor of vax");
    // Names are not taken from the file.
    for key in ["../../../escaped", "/tmp/escaped", "v1", ""] {
        let images = format!("\"images\":[[\"{key}\",0]]");
        refuse(&with_header(&whole, |h| h.replace("\"images\":[]", &images)), "an entry is not what was written");
        let record = format!(
            r#""schedules":[{{"name":"n","key":"{key}","machine":"m","girih":"1","knobs":{{}},"speedup":1,"estimated":true,"date":"d"}}]"#
        );
        refuse(&with_header(&whole, |h| h.replace("\"schedules\":[]", &record)), "an entry is not what was written");
    }
    for part in ["99999", "18446744073709551615", "-1", "1.5", "null", "[0,1]"] {
        let kernels = format!("\"kernels\":[[{part},{part}]],\"old\":[");
        refuse(&with_header(&whole, |h| h.replace("\"kernels\":[", &kernels)), "an entry is not what was written");
    }
    assert!(!lab.0.join("escaped").exists() && !Path::new("/tmp/escaped").exists());
    expect(&finish(&mut elsewhere(&lab, &["cache", "import", &lab.path("missing")])), 1, "cannot be read");
    expect(&finish(&mut elsewhere(&lab, &["cache", "import", "/dev/zero"])), 1, "it is not an ordinary file");
    expect(&lab.girih(&["cache", "export", "/nonexistent/folder/file"]), 1, "cannot be written");

    // Kernels of another processor are left out.
    let source = fs::read_to_string(entries(&lab)[0].join("k.c")).unwrap();
    fs::write(entries(&lab)[0].join("k.c"), source.replacen(" -shared", " -mtile9000 -shared", 1)).unwrap();
    expect(&lab.girih(&["cache", "export", &file]), 0, "");
    let said = finish(&mut elsewhere(&lab, &["cache", "import", &file]));
    expect(&said, 0, "");
    assert!(out(&said).contains("1 kernel was left out: compiled for a processor with tile9000"), "{}", out(&said));
}

/// Lengths that contradict the file, in a header whose hash is right.
#[test]
fn parts_that_lie_elsewhere_are_refused() {
    let lab = Lab::new("parts");
    let add = lab.file("add.mlir", ADD);
    assert!(!run(&lab, &add));
    let file = lab.path("kernels.girih");
    expect(&lab.girih(&["cache", "export", &file]), 0, "");
    let whole = fs::read(&file).unwrap();
    for length in ["18446744073709551615", "99999999999", "-1", "null", "1.5"] {
        let parts = format!("\"parts\":[[{length},\"\"],[");
        fs::write(lab.path("bad.girih"), with_header(&whole, |h| h.replace("\"parts\":[[", &parts))).unwrap();
        let said = finish(&mut elsewhere(&lab, &["cache", "import", &lab.path("bad.girih")]));
        assert_eq!(said.status.code(), Some(1), "{length}");
        let text = err(&said);
        assert!(text.contains("contradicts itself") || text.contains("ends too early"), "{length}: {text}");
    }
}

/// A kernel that another machine compiled is damaged as any other may be.
#[test]
fn whatever_lies_among_kernels_that_were_brought_a_run_is_right() {
    let lab = Lab::new("brought");
    let add = lab.file("add.mlir", ADD);
    assert!(!run(&lab, &add));
    let file = lab.path("kernels.girih");
    expect(&lab.girih(&["cache", "export", &file]), 0, "");
    for name in ["k.c", "k.so", "meta", "lock"] {
        for kind in ["pipe", "folder", "loop", "dangling", "device", "socket", "empty", "nothing"] {
            expect(&lab.girih(&["cache", "clear"]), 0, "");
            expect(&lab.girih(&["cache", "import", &file]), 0, "");
            damage(&entries(&lab).remove(0).join(name), kind);
            run(&lab, &add);
        }
    }
}

#[test]
fn a_full_disk_takes_no_half_kernels() {
    let lab = Lab::new("full-import");
    let add = lab.file("add.mlir", ADD);
    assert!(!run(&lab, &add));
    let file = lab.path("kernels.girih");
    if Path::new("/dev/full").exists() {
        expect(&lab.girih(&["cache", "export", "/dev/full"]), 1, "No space left");
    }
    expect(&lab.girih(&["cache", "export", &file]), 0, "");
    let limited = |what: &str| {
        let mut c = lab.shell(&format!("ulimit -f 2; \"$GIRIH\" cache {what}"));
        finish(c.env("GIRIH_CACHE_DIR", lab.path("other")))
    };
    expect(&limited(&format!("import '{file}'")), 1, "cannot be written");
    let left: Vec<PathBuf> = fs::read_dir(lab.path("other/v1")).unwrap().map(|f| f.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
    let mut c = lab.shell(&format!("ulimit -f 2; \"$GIRIH\" cache export '{}'", lab.path("half")));
    expect(&finish(&mut c), 1, "cannot be written");
    assert!(!lab.names().iter().any(|n| n.starts_with("half")), "{:?}", lab.names());
}

/// As over a network file system that knows no locks: all compile the same kernels at once.
#[test]
fn processes_that_share_a_cache_without_locks() {
    let lab = Lab::new("no-locks");
    let shim = lab.file(
        "shim.c",
        "#include <errno.h>\nint flock(int f, int o) { (void)f; (void)o; errno = ENOLCK; return -1; }\n",
    );
    let library = lab.path("shim.so");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o", &library, &shim]).status();
    assert!(built.unwrap().success());
    let files: Vec<String> =
        (0..2).map(|i| lab.file(&format!("{i}.mlir"), &ADD.replace("@add", &format!("@add{i}")))).collect();
    for round in 0..3 {
        let start = |file: &String| {
            let mut c = lab.command(&["run", file, "--print", "c"]);
            c.env("LD_PRELOAD", &library).stdout(Stdio::piped()).stderr(Stdio::piped());
            Running::new(c.spawn().unwrap())
        };
        let all: Vec<Running> = files.iter().chain(&files).chain(&files).map(start).collect();
        for running in all {
            let o = running.output();
            expect(&o, 0, "");
            assert!(out(&o).starts_with("c = [1.0, 2.0, 3.0") && err(&o).is_empty(), "{}{}", out(&o), err(&o));
        }
        if round == 0 {
            for file in &files {
                expect(&finish(lab.command(&["run", file]).env("LD_PRELOAD", &library)), 0, "");
            }
        }
        expect(&finish(lab.command(&["cache", "clear"]).env("LD_PRELOAD", &library)), 0, "");
    }
    // With locks again, nothing that was left behind is in the way.
    assert!(!run(&lab, &files[0]) && run(&lab, &files[0]));
}
