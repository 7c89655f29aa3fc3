//! A file of a header and parts, which is told from a damaged one before anything of it is used.
//!
//! ```text
//! "girih model 1\n\0\0"    16 bytes, which say what it is
//! length, hash             of the header: 8 bytes, little-endian, and 32 of BLAKE3
//! header                   JSON, with the length of all parts
//! parts                    each at a multiple of 4096 bytes, so that it can be mapped
//! ```

use std::path::Path;

use bytes::Bytes;
use serde_json::{Value, json};

use super::files;
use crate::error::{Error, Result};

const PAGE: u64 = 4096;

/// What a container holds.
pub struct Form {
    /// Ends in zeros, before them the number of the form.
    pub magic: &'static [u8; 16],
    /// For messages: `saved model`.
    pub what: &'static str,
}

/// The parts of a file that is written.
#[derive(Default)]
pub struct Parts<'a> {
    bytes: Vec<&'a [u8]>,
    next: u64,
}

impl<'a> Parts<'a> {
    /// Adds a part; says where it lies and how long it is.
    pub fn add(&mut self, bytes: &'a [u8]) -> [u64; 2] {
        let at = self.next;
        self.bytes.push(bytes);
        self.next = (at + bytes.len() as u64).next_multiple_of(PAGE);
        [at, bytes.len() as u64]
    }
}

pub fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

impl Form {
    /// Bytes before the header.
    fn head(&self) -> usize {
        self.magic.len() + 8 + 32
    }

    /// Writes a file; it appears whole or not at all.
    pub fn write(&self, path: &Path, mut header: Value, parts: Parts) -> Result<()> {
        header["length"] = json!(parts.next);
        let header = header.to_string();
        let mut head = self.magic.to_vec();
        head.extend((header.len() as u64).to_le_bytes());
        head.extend(blake3::hash(header.as_bytes()).as_bytes());
        head.extend(header.as_bytes());
        head.resize(head.len().next_multiple_of(PAGE as usize), 0);
        let zeros = [0u8; PAGE as usize];
        let mut all: Vec<&[u8]> = vec![&head];
        for part in parts.bytes {
            let rest = part.len().next_multiple_of(PAGE as usize) - part.len();
            all.extend([part, zeros.get(..rest).unwrap_or_default()]);
        }
        files::write_parts(path, &all).map_err(|e| Error::file(path, format!("cannot be written: {e}")))
    }

    /// The header of a whole file, and where its parts begin.
    pub fn header(&self, bytes: &[u8]) -> std::result::Result<(Value, u64), String> {
        let what = self.what;
        let (head, name) = (self.head(), self.magic.len());
        let ends = || format!("the {what} ends too early: it was cut short");
        if bytes.get(..name) != Some(&self.magic[..]) {
            let kind = self.magic.iter().position(u8::is_ascii_digit).unwrap_or(name);
            return Err(match bytes.starts_with(&self.magic[..kind]) {
                true => format!("the {what} is in a form that this version of girih does not read"),
                false => format!("it is not {} {what}", if what.starts_with('e') { "an" } else { "a" }),
            });
        }
        let length = bytes.get(name..name + 8).and_then(|b| b.try_into().ok()).ok_or_else(ends)?;
        let end =
            usize::try_from(u64::from_le_bytes(length)).ok().and_then(|n| head.checked_add(n)).ok_or_else(ends)?;
        let text = bytes.get(head..end).ok_or_else(ends)?;
        let damaged = || format!("the {what} is damaged: its header is not what was written");
        if bytes.get(name + 8..head) != Some(&blake3::hash(text).as_bytes()[..]) {
            return Err(damaged());
        }
        let header: Value = serde_json::from_slice(text).map_err(|_| damaged())?;
        let base = (end as u64).next_multiple_of(PAGE);
        let whole = header["length"].as_u64().and_then(|n| base.checked_add(n)).ok_or_else(damaged)?;
        if bytes.len() as u64 != whole {
            return Err(ends());
        }
        Ok((header, base))
    }
}

/// The part at a place that a header names, if it lies in the file.
pub fn part(bytes: &Bytes, base: u64, place: &Value) -> Option<Bytes> {
    let (at, length) = (place[0].as_u64()?, place[1].as_u64()?);
    let from = base.checked_add(at).filter(|_| at % PAGE == 0)?;
    let to = from.checked_add(length)?;
    let (from, to) = (usize::try_from(from).ok()?, usize::try_from(to).ok()?);
    (to <= bytes.len()).then(|| bytes.slice(from..to))
}
