//! Files of weights without a graph, as lists of their tensors: safetensors and GGUF.
//!
//! In: a file. Out: [`Weights`]: the name, the element type, the shape and the bytes of each tensor. Only headers are read.
//!
//! ```text
//! safetensors  length u64 | JSON {name: {"dtype": "BF16", "shape": [..], "data_offsets": [from, to]}} | data
//! GGUF         "GGUF" version u32 | tensors u64 | entries u64 | entries: key, type, value | tensors: name, rank, extents, type, offset
//! ```
//! Numbers are little-endian. GGUF's extents begin with the innermost; here they end with it.
//!
//! Invariants: a file may hold anything; nothing is allocated that it does not account for, and each tensor lies within the file.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::system::files;

/// A file of weights.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weights {
    pub format: Format,
    /// The entry `general.architecture` of GGUF.
    pub architecture: Option<String>,
    pub tensors: Vec<Weight>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Safetensors,
    Gguf,
}

/// A tensor of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weight {
    pub name: String,
    /// As the format calls it: `BF16`, `Q4_K`.
    pub kind: String,
    pub shape: Vec<u64>,
    /// The first of its bytes in the file, and their number.
    pub from: u64,
    pub bytes: u64,
}

/// The most bytes of a header of safetensors.
const HEADER: u64 = 100 << 20;
/// The most bytes of a name or a key in GGUF.
const NAME: u64 = 1 << 16;
/// The most axes of a tensor in GGUF, and arrays within arrays.
const RANK: u32 = 8;
/// Where data of GGUF begins, unless `general.alignment` says otherwise.
const ALIGNMENT: u64 = 32;

/// GGUF's element types: number, name, elements of a block, bytes of a block.
const KINDS: [(u32, &str, u64, u64); 28] = [
    (0, "F32", 1, 4),
    (1, "F16", 1, 2),
    (2, "Q4_0", 32, 18),
    (3, "Q4_1", 32, 20),
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (8, "Q8_0", 32, 34),
    (9, "Q8_1", 32, 36),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (15, "Q8_K", 256, 292),
    (16, "IQ2_XXS", 256, 66),
    (17, "IQ2_XS", 256, 74),
    (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18),
    (21, "IQ3_S", 256, 110),
    (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (30, "BF16", 1, 2),
];

impl Weights {
    /// The format of a file by its name.
    pub fn format_of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "safetensors" => Some(Format::Safetensors),
            "gguf" => Some(Format::Gguf),
            _ => None,
        }
    }

    /// Reads the header of a file.
    ///
    /// # Errors
    /// A file that cannot be read, that is cut short, or that does not keep to its format.
    pub fn read(path: &Path, format: Format) -> Result<Weights> {
        let fail = |why: String| Error::file(path, why);
        let file = files::open_named(path).map_err(|e| fail(format!("cannot be read: {e}")))?;
        let length = file.metadata().map_err(|e| fail(format!("cannot be read: {e}")))?.len();
        let mut header = Header { from: BufReader::new(file), left: length };
        match format {
            Format::Safetensors => safetensors(&mut header, length),
            Format::Gguf => gguf(&mut header, length),
        }
        .map_err(fail)
    }

    /// The bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.tensors.iter().fold(0, |n, t| n.saturating_add(t.bytes))
    }
}

/// The part of a file that is still to be read.
struct Header {
    from: BufReader<File>,
    left: u64,
}

impl Header {
    /// The next bytes; `count` is bounded by who asks, and by the file.
    fn bytes(&mut self, count: u64) -> std::result::Result<Vec<u8>, String> {
        self.left = self.left.checked_sub(count).ok_or("it is cut short: its header goes on behind its end")?;
        let mut bytes = vec![0; count as usize];
        self.from.read_exact(&mut bytes).map_err(|e| format!("cannot be read: {e}"))?;
        Ok(bytes)
    }
    fn skip(&mut self, count: u64) -> std::result::Result<(), String> {
        self.left = self.left.checked_sub(count).ok_or("it is cut short: its header goes on behind its end")?;
        let by = i64::try_from(count).map_err(|_| "a part of its header is too large".to_string())?;
        self.from.seek_relative(by).map_err(|e| format!("cannot be read: {e}"))
    }
    fn u32(&mut self) -> std::result::Result<u32, String> {
        let bytes = self.bytes(4)?;
        Ok(bytes.iter().rev().fold(0, |n, b| n << 8 | u32::from(*b)))
    }
    fn u64(&mut self) -> std::result::Result<u64, String> {
        let bytes = self.bytes(8)?;
        Ok(bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    }
    fn text(&mut self) -> std::result::Result<String, String> {
        let length = self.u64()?;
        if length > NAME {
            return Err(format!("a name in its header has {length} bytes"));
        }
        String::from_utf8(self.bytes(length)?).map_err(|_| "a name in its header is not UTF-8".to_string())
    }
}

fn safetensors(header: &mut Header, length: u64) -> std::result::Result<Weights, String> {
    let count = header.u64()?;
    if count > HEADER {
        return Err(format!("it is not in the form of safetensors: its header has {count} bytes"));
    }
    let json: Value = serde_json::from_slice(&header.bytes(count)?)
        .map_err(|e| format!("it is not in the form of safetensors: its header is not JSON: {e}"))?;
    let Value::Object(told) = json else {
        return Err("it is not in the form of safetensors: its header is not a JSON object".into());
    };
    let mut tensors = vec![];
    for (name, told) in told.into_iter().filter(|(name, _)| name != "__metadata__") {
        let numbers =
            |key: &str| -> Option<Vec<u64>> { told.get(key)?.as_array()?.iter().map(Value::as_u64).collect() };
        let found = || {
            let kind = told.get("dtype")?.as_str()?.to_string();
            let [from, to] = numbers("data_offsets")?[..] else { return None };
            Some((kind, numbers("shape")?, from, to.checked_sub(from)?, to))
        };
        let Some((kind, shape, from, bytes, to)) = found() else {
            return Err(format!("it does not say where the tensor `{name}` lies"));
        };
        if to.checked_add(8 + count).is_none_or(|end| end > length) {
            return Err(format!("it is cut short: the tensor `{name}` ends behind its end"));
        }
        tensors.push(Weight { name, kind, shape, from: 8 + count + from, bytes });
    }
    Ok(Weights { format: Format::Safetensors, architecture: None, tensors })
}

fn gguf(header: &mut Header, length: u64) -> std::result::Result<Weights, String> {
    if header.bytes(4)? != b"GGUF" {
        return Err("it is not in the form of GGUF: it does not begin with GGUF".into());
    }
    let version = header.u32()?;
    if !(2..=3).contains(&version) {
        return Err(format!("its version of GGUF is {version}; 2 and 3 are read"));
    }
    let (count, entries) = (header.u64()?, header.u64()?);
    let (mut architecture, mut alignment) = (None, ALIGNMENT);
    for _ in 0..entries {
        let key = header.text()?;
        match (key.as_str(), header.u32()?) {
            ("general.architecture", 8) => architecture = Some(header.text()?),
            ("general.alignment", 4) => alignment = u64::from(header.u32()?),
            (_, kind) => skip_value(header, kind, 0)?,
        }
    }
    if !alignment.is_power_of_two() {
        return Err(format!("its data are aligned to {alignment} bytes, which is not a power of two"));
    }
    let mut tensors = vec![];
    let mut end = 0u64;
    for _ in 0..count {
        let (name, rank) = (header.text()?, header.u32()?);
        if rank > RANK {
            return Err(format!("the tensor `{name}` has {rank} axes"));
        }
        let mut shape = (0..rank).map(|_| header.u64()).collect::<std::result::Result<Vec<u64>, String>>()?;
        let (kind, offset) = (header.u32()?, header.u64()?);
        let Some((_, kind, block, size)) = KINDS.iter().find(|(number, ..)| *number == kind) else {
            return Err(format!("the elements of the tensor `{name}` have the type {kind}, which is unknown"));
        };
        if !shape.first().is_none_or(|n| n.is_multiple_of(*block)) {
            return Err(format!("rows of the tensor `{name}` are not whole blocks of {kind}"));
        }
        let elements = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        let bytes = elements.and_then(|n| (n / block).checked_mul(*size));
        let Some((bytes, to)) = bytes.and_then(|bytes| Some((bytes, offset.checked_add(bytes)?))) else {
            return Err(format!("the tensor `{name}` is too large"));
        };
        end = end.max(to);
        shape.reverse();
        tensors.push(Weight { name, kind: kind.to_string(), shape, from: offset, bytes });
    }
    let begin = (length - header.left).next_multiple_of(alignment);
    if begin.checked_add(end).is_none_or(|end| end > length) {
        return Err("it is cut short: its tensors end behind its end".into());
    }
    tensors.iter_mut().for_each(|t| t.from += begin);
    Ok(Weights { format: Format::Gguf, architecture, tensors })
}

/// Skips a value of GGUF's entries.
fn skip_value(header: &mut Header, kind: u32, depth: u32) -> std::result::Result<(), String> {
    let size = |kind| match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    };
    match kind {
        8 => {
            let length = header.u64()?;
            header.skip(length)
        }
        9 if depth < RANK => {
            let (of, count) = (header.u32()?, header.u64()?);
            if let Some(size) = size(of) {
                return header.skip(count.checked_mul(size).ok_or("an array in its header is too large")?);
            }
            (0..count).try_for_each(|_| skip_value(header, of, depth + 1))
        }
        kind => match size(kind) {
            Some(size) => header.skip(size),
            None => Err(format!("an entry of its header has the type {kind}, which is unknown")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, bytes: &[u8]) -> std::result::Result<Weights, String> {
        let path = std::env::temp_dir().join(format!("girih-weights-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let found = Weights::read(&path, Weights::format_of(&path).unwrap()).map_err(|e| e.to_string());
        std::fs::remove_file(&path).unwrap();
        found
    }

    fn text(of: &str) -> Vec<u8> {
        [&(of.len() as u64).to_le_bytes()[..], of.as_bytes()].concat()
    }

    /// A file with a string, a number, an array of strings, and two tensors.
    fn a_gguf() -> Vec<u8> {
        let mut out = [&b"GGUF"[..], &3u32.to_le_bytes(), &2u64.to_le_bytes(), &3u64.to_le_bytes()].concat();
        out.extend([text("general.architecture"), 8u32.to_le_bytes().to_vec(), text("llama")].concat());
        out.extend([text("a.number"), 6u32.to_le_bytes().to_vec(), vec![0; 4]].concat());
        let words = [text("a"), text("bc")].concat();
        out.extend([text("words"), 9u32.to_le_bytes().to_vec(), 8u32.to_le_bytes().to_vec()].concat());
        out.extend([&2u64.to_le_bytes()[..], &words].concat());
        for (name, shape, kind, offset) in [("q", vec![256u64, 3], 12u32, 0u64), ("b", vec![5], 0, 448)] {
            out.extend([text(name), (shape.len() as u32).to_le_bytes().to_vec()].concat());
            shape.iter().for_each(|n| out.extend(n.to_le_bytes()));
            out.extend([&kind.to_le_bytes()[..], &offset.to_le_bytes()].concat());
        }
        out.resize(out.len().next_multiple_of(32) + 448 + 20, 0);
        out
    }

    #[test]
    fn gguf_is_listed() {
        let found = read("a.gguf", &a_gguf()).unwrap();
        assert_eq!(found.architecture.as_deref(), Some("llama"));
        let listed: Vec<_> = found.tensors.iter().map(|t| (&t.name[..], &t.kind[..], &t.shape[..], t.bytes)).collect();
        assert_eq!(listed, [("q", "Q4_K", &[3, 256][..], 432), ("b", "F32", &[5][..], 20)]);
        assert_eq!(found.bytes(), 452);
    }

    #[test]
    fn safetensors_are_listed() {
        let header =
            r#"{"__metadata__": {"a": "b"}, "w": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}"#;
        let file = [text(header), vec![0; 12]].concat();
        let found = read("b.safetensors", &file).unwrap();
        assert_eq!(
            found.tensors,
            [Weight {
                name: "w".into(),
                kind: "BF16".into(),
                shape: vec![2, 3],
                from: 8 + header.len() as u64,
                bytes: 12
            }]
        );
        assert!(read("c.safetensors", &file[..file.len() - 1]).unwrap_err().contains("cut short: the tensor `w`"));
        assert!(read("d.safetensors", &[255; 16]).unwrap_err().contains("its header has"));
        assert!(read("e.safetensors", &text("[]")).unwrap_err().contains("not a JSON object"));
        let odd = header.replace("[0, 12]", "[12, 0]");
        assert!(read("f.safetensors", &text(&odd)).unwrap_err().contains("does not say where"));
    }

    #[test]
    fn broken_files_are_refused_without_much_memory() {
        let whole = a_gguf();
        for end in 0..whole.len() {
            assert!(read("g.gguf", &whole[..end]).is_err(), "{end}");
        }
        // Each number of the header, made huge.
        for at in 4..whole.len() - 468 {
            let mut bytes = whole.clone();
            bytes[at] = 0xff;
            let _ = read("h.gguf", &bytes);
            let to = (at + 8).min(bytes.len());
            bytes[at..to].fill(0xff);
            let _ = read("h.gguf", &bytes);
        }
        let mut old = whole.clone();
        old[4] = 1;
        assert!(read("i.gguf", &old).unwrap_err().contains("version of GGUF is 1"));
    }
}
