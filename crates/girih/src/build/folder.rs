//! A folder of files that appears whole or not at all.
//!
//! In: files and a folder's name. Out: the folder with them and `build.json`, which lists the files. A folder that is not
//! empty is left alone or, with `force`, loses the files of an earlier build that nobody has changed since.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{File, Library};
use crate::error::{Error, Result};
use crate::system::files::{temporary_beside, write_whole};
use crate::system::signals::{self, Compiling};

/// The list of written files.
pub const LIST: &str = "build.json";

/// A folder under a name that nobody looks for, removed with the value.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Refuses a folder that the library cannot be written to, before anything is compiled for it.
///
/// # Errors
/// A folder that is not empty, without `force`; with it, files that no build wrote under names that a build writes.
pub fn check(dir: &Path, force: bool) -> Result<()> {
    let here = || Path::new(".");
    let parent = dir.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(here);
    if !parent.is_dir() {
        return Err(Error::file(dir, format!("cannot be made: the folder {} does not exist", parent.display())));
    }
    earlier(dir, force).map(drop)
}

/// The files that an earlier build wrote into the folder, by name, with hashes; `None` where there is no folder.
fn earlier(dir: &Path, force: bool) -> Result<Option<BTreeMap<String, String>>> {
    let mut entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(dir).is_err() => return Ok(None),
        Err(e) => return Err(Error::file(dir, format!("cannot be used as a folder: {e}"))),
    };
    if entries.next().is_none() {
        return Ok(Some(BTreeMap::new()));
    }
    if !force {
        return Err(Error::file(
            dir,
            "it is not empty; name another folder, or replace what a build wrote there with --force",
        ));
    }
    let list = fs::read(dir.join(LIST)).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    let files = list.as_ref().and_then(|l| l["files"].as_array());
    let Some(files) = files else {
        let message =
            format!("it holds files that no build wrote: it has no {LIST}, so --force replaces nothing there");
        return Err(Error::file(dir, message));
    };
    let row = |f: &Value| Some((f["path"].as_str()?.to_string(), f["blake3"].as_str()?.to_string()));
    Ok(Some(files.iter().filter_map(row).filter(|(name, _)| is_plain(name)).collect()))
}

/// Returns true if a name is a plain file name: no `/`, no leading `.`.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && !name.starts_with('.')
}

/// Writes the library's files and their list; the list.
///
/// # Errors
/// A folder that [`check`] refuses, a file that was changed since it was written, a disk that is full.
pub fn write(dir: &Path, library: &Library, target: &str, force: bool) -> Result<Value> {
    let _compiling = Compiling::enter();
    check(dir, force)?;
    let list = listed(library, target);
    let text = format!("{}\n", serde_json::to_string_pretty(&list).map_err(|e| Error::Internal(e.to_string()))?);
    let list_file = File { name: LIST.into(), what: "this list", bytes: text.into_bytes() };
    let all: Vec<&File> = library.files.iter().chain([&list_file]).collect();
    match earlier(dir, force)? {
        None => fresh(dir, &all)?,
        Some(before) => replace(dir, &before, &all)?,
    }
    Ok(list)
}

fn listed(library: &Library, target: &str) -> Value {
    let file = |f: &File| {
        let hash = blake3::hash(&f.bytes).to_hex();
        json!({"path": f.name, "what": f.what, "bytes": f.bytes.len(), "blake3": hash.as_str()})
    };
    let files: Vec<Value> = library.files.iter().map(file).collect();
    json!({
        "name": library.name, "target": target, "files": files, "command": library.command(""), "missing": library.missing,
    })
}

fn fill(dir: &Path, shown: &Path, files: &[&File]) -> Result<()> {
    for file in files {
        if signals::interrupted() {
            return Err(Error::Interrupted);
        }
        let failed = |e| Error::file(shown.join(&file.name), format!("cannot be written: {e}"));
        write_whole(&dir.join(&file.name), &file.bytes).map_err(failed)?;
    }
    Ok(())
}

/// Makes the folder beside its place, then moves it there.
fn fresh(dir: &Path, files: &[&File]) -> Result<()> {
    let unfinished = Unfinished(temporary_beside(dir));
    let failed = |e| Error::file(dir, format!("cannot be made: {e}"));
    fs::create_dir(&unfinished.0).map_err(failed)?;
    fill(&unfinished.0, dir, files)?;
    fs::rename(&unfinished.0, dir).map_err(failed)
}

/// Puts new files in the place of old ones, the list last, and removes the old ones that are no longer made.
fn replace(dir: &Path, before: &BTreeMap<String, String>, files: &[&File]) -> Result<()> {
    for (name, hash) in before {
        let now = fs::read(dir.join(name)).ok().map(|bytes| blake3::hash(&bytes).to_hex().to_string());
        if now.is_some_and(|now| now != *hash) {
            return Err(Error::file(
                dir.join(name),
                "it was changed since it was built; move it away, and build again",
            ));
        }
    }
    for file in files.iter().filter(|f| f.name != LIST && !before.contains_key(&f.name)) {
        if fs::symlink_metadata(dir.join(&file.name)).is_ok() {
            return Err(Error::file(dir.join(&file.name), "no build wrote this file; move it away, and build again"));
        }
    }
    let unfinished = Unfinished(temporary_beside(&dir.join(".build")));
    fs::create_dir(&unfinished.0).map_err(|e| Error::file(dir, format!("cannot be written: {e}")))?;
    fill(&unfinished.0, dir, files)?;
    for file in files {
        let (from, to) = (unfinished.0.join(&file.name), dir.join(&file.name));
        fs::rename(from, &to).map_err(|e| Error::file(to, format!("cannot be written: {e}")))?;
    }
    for name in before.keys().filter(|name| !files.iter().any(|f| f.name == **name)) {
        let _ = fs::remove_file(dir.join(name));
    }
    Ok(())
}
