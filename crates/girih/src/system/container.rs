//! A file of a header and parts, which is told from a damaged one before anything of it is used.
//!
//! ```text
//! "girih model 2\n\0\0"    16 bytes, which say what it is
//! length, hash             of the header: 8 bytes, little-endian, and 32 of BLAKE3
//! header                   JSON, then blanks to a multiple of 4096 bytes; `parts` has the length and the hash of each part
//! parts                    in order, each with zeros to a multiple of 4096 bytes, so that it can be mapped
//! ```
//!
//! Invariants: every byte of the file is compared or hashed. The header is hashed with its blanks and a part with its zeros;
//! where a part lies follows from the lengths before it, and nothing follows the last one. A caller names a part by its number
//! and gets it from [`Whole::part`], whose hash [`Form::open`] has compared unless the caller trusts the disk, or from
//! [`Whole::checked`], which compares it in any case.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use serde_json::{Value, json};

use super::files;
use super::threads;
use crate::error::{Error, Result};

const PAGE: usize = 4096;

/// The kind of a container.
pub struct Form {
    /// Ends in zeros, before them the number of the form.
    pub magic: &'static [u8; 16],
    /// For messages: `saved model`.
    pub what: &'static str,
}

/// The parts of a file that is written.
#[derive(Default)]
pub struct Parts<'a>(Vec<&'a [u8]>);

impl<'a> Parts<'a> {
    /// Adds a part; gives its number.
    pub fn add(&mut self, bytes: &'a [u8]) -> usize {
        self.0.push(bytes);
        self.0.len() - 1
    }
}

/// A file that was opened: its header, and its parts by number.
pub struct Whole {
    pub header: Value,
    bytes: Bytes,
    parts: Vec<Place>,
    what: &'static str,
}

struct Place {
    at: usize,
    length: usize,
    hash: String,
}

pub fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// The zeros between a part of a length and the next.
fn zeros(length: usize) -> &'static [u8] {
    static ZEROS: [u8; PAGE] = [0; PAGE];
    let rest = length.next_multiple_of(PAGE) - length;
    ZEROS.get(..rest).unwrap_or_default()
}

impl Form {
    /// Bytes before the header.
    fn head(&self) -> usize {
        self.magic.len() + 8 + 32
    }

    /// Writes a file; it appears whole or not at all.
    pub fn write(&self, path: &Path, mut header: Value, parts: Parts) -> Result<()> {
        let described = parts.0.iter().map(|part| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(part).update(zeros(part.len()));
            json!([part.len(), hasher.finalize().to_hex().as_str()])
        });
        header["parts"] = described.collect();
        let mut header = header.to_string().into_bytes();
        let end = (self.head() + header.len()).next_multiple_of(PAGE);
        header.resize(end - self.head(), b' ');
        let mut head = self.magic.to_vec();
        head.extend((header.len() as u64).to_le_bytes());
        head.extend(blake3::hash(&header).as_bytes());
        head.extend(header);
        let mut all: Vec<&[u8]> = vec![&head];
        for part in parts.0 {
            all.extend([part, zeros(part.len())]);
        }
        files::write_parts(path, &all).map_err(|e| Error::file(path, format!("cannot be written: {e}")))
    }

    /// Opens a whole file. Where the parts are to be verified, `threads` compare their hashes, and `read` is told of each.
    ///
    /// # Errors
    /// The fault of the file.
    pub fn open(
        &self,
        bytes: &Bytes,
        verify: bool,
        threads: usize,
        read: &(dyn Fn(&[u8]) + Sync),
    ) -> std::result::Result<Whole, String> {
        let (header, mut at) = self.header(bytes)?;
        let damaged = || format!("the {} is damaged: its header contradicts itself", self.what);
        let mut parts = vec![];
        for part in header["parts"].as_array().ok_or_else(damaged)? {
            let length = part[0].as_u64().and_then(|n| usize::try_from(n).ok()).ok_or_else(damaged)?;
            let hash = part[1].as_str().ok_or_else(damaged)?.to_string();
            parts.push(Place { at, length, hash });
            at = length.checked_next_multiple_of(PAGE).and_then(|n| at.checked_add(n)).ok_or_else(damaged)?;
        }
        if bytes.len() < at {
            return Err(self.cut_short());
        }
        if bytes.len() > at {
            return Err(format!("the {} is damaged: {} bytes follow its end", self.what, bytes.len() - at));
        }
        let whole = Whole { header, bytes: bytes.clone(), parts, what: self.what };
        match verify.then(|| whole.first_damaged(threads, read)).flatten() {
            Some(at) => Err(whole.damaged(at)),
            None => Ok(whole),
        }
    }

    fn cut_short(&self) -> String {
        format!("the {} ends too early: it was cut short", self.what)
    }

    /// The header of a file, and where its parts begin.
    fn header(&self, bytes: &[u8]) -> std::result::Result<(Value, usize), String> {
        let what = self.what;
        let (head, name) = (self.head(), self.magic.len());
        let ends = || self.cut_short();
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
        if bytes.get(name + 8..head) != Some(&blake3::hash(text).as_bytes()[..]) || !end.is_multiple_of(PAGE) {
            return Err(damaged());
        }
        Ok((serde_json::from_slice(text).map_err(|_| damaged())?, end))
    }
}

impl Whole {
    /// A part by its number, if there is one.
    pub fn part(&self, number: &Value) -> Option<Bytes> {
        let place = self.place(number)?;
        Some(self.bytes.slice(place.at..place.at + place.length))
    }

    /// The same, whose hash is compared now.
    pub fn checked(&self, number: &Value) -> std::result::Result<Option<Bytes>, String> {
        match self.place(number) {
            Some(place) if !self.is_whole(place) => Err(self.damaged(number.as_u64().unwrap_or(0) as usize)),
            _ => Ok(self.part(number)),
        }
    }

    fn damaged(&self, at: usize) -> String {
        format!("the {} is damaged: part {} of {} is not what was written", self.what, at + 1, self.parts.len())
    }

    /// A part with the zeros behind it.
    fn padded(&self, place: &Place) -> &[u8] {
        let end = (place.at + place.length).next_multiple_of(PAGE);
        self.bytes.get(place.at..end).unwrap_or_default()
    }

    fn is_whole(&self, place: &Place) -> bool {
        hash(self.padded(place)) == place.hash
    }

    /// Where it lies in the file, and how long it is.
    pub fn range(&self, number: &Value) -> Option<(u64, u64)> {
        self.place(number).map(|p| (p.at as u64, p.length as u64))
    }

    fn place(&self, number: &Value) -> Option<&Place> {
        self.parts.get(usize::try_from(number.as_u64()?).ok()?)
    }

    /// The first part whose hash is another one.
    fn first_damaged(&self, threads: usize, read: &(dyn Fn(&[u8]) + Sync)) -> Option<usize> {
        let next = AtomicUsize::new(0);
        let found = Mutex::new(None);
        threads::share(threads.min(self.parts.len()), &|| {
            while let at = next.fetch_add(1, Ordering::Relaxed)
                && let Some(place) = self.parts.get(at)
            {
                let same = self.is_whole(place);
                read(self.padded(place));
                if !same {
                    let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    *found = Some(found.map_or(at, |f: usize| f.min(at)));
                    next.store(self.parts.len(), Ordering::Relaxed);
                }
            }
        });
        found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
