//! Compiled kernels and tuned schedules in a file, for machines without a compiler: `girih cache export` and `import`.
//!
//! The file is a [container](crate::system::container). A kernel is its C, whose first line is the command that compiled it, and its
//! object; it is kept under the hash of the C alone, since another machine cannot ask the compiler what it is
//! (`Cache::find_or_build`). Where a file says what is, names of files are made here, never taken from it: nothing outside of the
//! cache is written. All hashes are compared before the first file is.
//!
//! Machine code is loaded and run: who imports a file trusts whoever wrote it.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use memmap2::Mmap;
use serde_json::{Value, json};

use crate::compile::abi::ABI_VERSION;
use crate::compile::cache::{Cache, Content, lacking};
use crate::error::{Error, Result};
use crate::options::CachePolicy;
use crate::system::container::{Form, Parts};
use crate::system::files::open_named;
use crate::tune::records::{Record, Records};

const FORM: Form = Form { magic: b"girih cache 2\n\0\0", what: "exported cache" };
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How much was moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    pub kernels: u64,
    pub schedules: u64,
    pub bytes: u64,
}

/// The outcome of importing a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Imported {
    pub new: Moved,
    /// Kernels and schedules that were here already.
    pub known: u64,
    /// Kernels that this processor cannot run, and the features that it lacks.
    pub lacking: Option<(u64, String)>,
}

/// Writes the cache and the schedules beside it to a file.
pub fn export(cache: &Cache, schedules: &CachePolicy, path: &Path) -> Result<Moved> {
    let contents = cache.contents();
    let records = Records::of(schedules).map(|r| r.all()).unwrap_or_default();
    if contents.is_empty() && records.is_empty() {
        return Err(Error::file(cache.dir(), "the cache is empty: there is nothing to export"));
    }
    let mut parts = Parts::default();
    let (mut kernels, mut images) = (vec![], vec![]);
    let mut moved = Moved { schedules: records.len() as u64, ..Moved::default() };
    for content in &contents {
        moved.kernels += 1;
        match content {
            Content::Kernel { source, object } => {
                moved.bytes += object.len() as u64;
                let (text, code) = (parts.add(source.as_bytes()), parts.add(object));
                kernels.push(json!([text, code]));
            }
            Content::Bytes { key, bytes } => {
                moved.bytes += bytes.len() as u64;
                images.push(json!([key, parts.add(bytes)]));
            }
        }
    }
    let header = json!({
        "version": VERSION,
        "abi": ABI_VERSION,
        "architecture": std::env::consts::ARCH,
        "kernels": kernels,
        "images": images,
        "schedules": records.iter().map(Record::json).collect::<Vec<_>>(),
    });
    FORM.write(path, header, parts)?;
    Ok(moved)
}

/// Imports a file into the cache.
///
/// # Errors
/// A file that cannot be read, was not written by [`export`], is damaged, or is of another version or architecture: then
/// nothing is imported. A cache that cannot be written: entries imported before stay, and are whole.
pub fn import(cache: &Cache, schedules: &CachePolicy, path: &Path) -> Result<Imported> {
    let wrong = |what: String| Error::file(path, what);
    let bytes = mapped(path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
    let whole = FORM.open(&bytes, true, 1, &|_| ()).map_err(wrong)?;
    let header = &whole.header;
    let version = header["version"].as_str().unwrap_or_default();
    if version != VERSION || header["abi"] != ABI_VERSION {
        let message =
            format!("it was exported by girih {version}, and this is {VERSION}: export it there with this version");
        return Err(wrong(message));
    }
    let (own, architecture) = (std::env::consts::ARCH, header["architecture"].as_str().unwrap_or_default());
    if architecture != own {
        return Err(wrong(format!("it was exported on a processor of {architecture}, and this is {own}")));
    }
    let damaged = || wrong("the exported cache is damaged: an entry is not what was written".to_string());
    let list = |name: &str| header[name].as_array().map_or(&[][..], Vec::as_slice);
    let part = |number: &Value| whole.part(number).ok_or_else(damaged);
    let (mut kernels, mut images, mut records) = (vec![], vec![], vec![]);
    for k in list("kernels") {
        let (source, object) = (part(&k[0])?, part(&k[1])?);
        let text = std::str::from_utf8(&source).ok().filter(|t| t.starts_with("// ")).ok_or_else(damaged)?;
        kernels.push((text.to_string(), object));
    }
    for i in list("images") {
        let hex = |key: &&str| key.len() == 40 && key.bytes().all(|b| b.is_ascii_hexdigit());
        images.push((i[0].as_str().filter(hex).ok_or_else(damaged)?, part(&i[1])?));
    }
    for r in list("schedules") {
        records.push(Record::of(r).filter(Record::has_key).ok_or_else(damaged)?);
    }

    let mut done = Imported::default();
    let mut count = |new: bool, length: usize| {
        if new {
            done.new.kernels += 1;
            done.new.bytes += length as u64;
        } else {
            done.known += 1;
        }
    };
    let mut left = (0, Vec::new());
    for (source, object) in &kernels {
        let features = lacking(source);
        if features.is_empty() {
            count(cache.bring(source, object)?, object.len());
        } else {
            left.0 += 1;
            left.1.extend(features);
        }
    }
    for (key, image) in images {
        count(cache.bring_bytes(key, image.as_ref())?, image.len());
    }
    left.1.sort();
    left.1.dedup();
    done.lacking = (left.0 > 0).then(|| (left.0, left.1.join(", ")));
    if let Some(kept) = Records::of(schedules) {
        for record in records {
            // A schedule that was found on this machine stays.
            if matches!(kept.find(&record.key, &record.machine), Ok(Some(_))) {
                done.known += 1;
            } else {
                kept.write(&record)?;
                done.new.schedules += 1;
            }
        }
    }
    cache.fit();
    Ok(done)
}

/// A file as bytes; only the pages that are looked at are read.
fn mapped(path: &Path) -> std::io::Result<Bytes> {
    struct Whole(Arc<Mmap>);
    impl AsRef<[u8]> for Whole {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let file = open_named(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the mapping is read only. As with models, nobody may cut the file short meanwhile.
    Ok(Bytes::from_owner(Whole(Arc::new(unsafe { Mmap::map(&file) }?))))
}
