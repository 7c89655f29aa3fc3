//! Nothing of ours panics where the system refuses a thread: threads are begun by `Builder`, which says so.

use std::path::{Path, PathBuf};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for item in std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()) {
        match item.is_dir() {
            true if item.file_name().is_some_and(|n| n != "tests") => files(&item, found),
            false if item.extension().is_some_and(|e| e == "rs") => found.push(item),
            _ => {}
        }
    }
}

#[test]
fn threads_are_begun_by_what_can_refuse() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = vec![];
    for one in std::fs::read_dir(crates).unwrap().map(|f| f.unwrap().path().join("src")).filter(|p| p.is_dir()) {
        files(&one, &mut sources);
    }
    assert!(sources.len() > 300);
    for path in sources.iter().filter(|p| p.file_name().is_some_and(|n| n != "tests.rs")) {
        let text = std::fs::read_to_string(path).unwrap();
        let text = text.split("\nmod tests").next().unwrap_or_default();
        for (number, line) in text.lines().enumerate().filter(|(_, l)| !l.trim_start().starts_with("//")) {
            let panics = line.contains("thread::spawn(") || line.contains("scope.spawn(") || line.contains("s.spawn(");
            assert!(!panics, "{}:{}: {line}", path.display(), number + 1);
        }
    }
}
