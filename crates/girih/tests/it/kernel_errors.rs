//! The errors of rustc and `#[girih::kernel]` for wrong kernels: each file of tests/kernel_errors is compiled, and each
//! of its lines has the errors that its comments `//~ text` name, and no others.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library beside this test, which is the newest.
fn library(folder: &Path) -> PathBuf {
    let named = |p: &PathBuf| {
        let name = p.file_name().and_then(|n| n.to_str()).unwrap_or("");
        name.strip_prefix("libgirih-").is_some_and(|rest| rest.ends_with(".rlib"))
    };
    let found = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).filter(named);
    found.max_by_key(|p| p.metadata().unwrap().modified().unwrap()).expect("the library is built before its tests")
}

#[test]
fn errors_are_at_their_lines() {
    let dependencies = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let library = library(&dependencies);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel_errors");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10);
    let failed: Vec<String> = files.iter().filter_map(|file| check(file, &library, &dependencies).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

fn check(file: &Path, library: &Path, dependencies: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut wanted: Vec<(usize, &str)> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        wanted.extend(line.split("//~").skip(1).map(|w| (i + 1, w.trim())));
    }
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let out = Command::new(rustc)
        .args([
            "--edition",
            "2024",
            "--emit",
            "metadata",
            "-o",
            "/dev/null",
            "--error-format",
            "short",
            "--cap-lints",
            "allow",
        ])
        .arg(format!("-Ldependency={}", dependencies.display()))
        .arg(format!("--extern=girih={}", library.display()))
        .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))
        .arg(file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr).replace("girih::lang::", "");
    let name = file.file_name().unwrap().to_string_lossy();
    // `path:line:column: error[E0277]: message`; a message may go on in further lines.
    let mut found: Vec<(usize, String)> = Vec::new();
    for line in said.lines() {
        if let Some((_, rest)) = line.split_once(&format!("{name}:"))
            && let Some((at, message)) = rest.split_once(": error")
        {
            let row = at.split(':').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            found.push((row, message.to_string()));
        }
    }
    for (row, text) in &wanted {
        // rustc may say the same of an operator and of its operand.
        let before = found.len();
        found.retain(|(at, message)| at != row || !message.contains(text));
        if found.len() == before {
            return Err(format!("{name}:{row}: no error `{text}` in\n{said}"));
        }
    }
    if found.is_empty() { Ok(()) } else { Err(format!("{name}: unexpected errors {found:?} in\n{said}")) }
}
