//! NumPy's `.npy` files: versions 1 to 3 in, version 1 out.
//!
//! Reading converts: Fortran order to C order, foreign byte order to the machine's, unsigned integers to the signless
//! ones of the same width, bool to i1. bf16 and the 8-bit floats have no NumPy type and travel as u16 and u8 bit
//! patterns. The header is parsed within fixed bounds, so a hostile file gives an error.

use std::io::Read;
use std::path::Path;

use girih_compiler::num::DType;

use crate::error::{Error, Result};
use crate::memory::buffer::Buffer;
use crate::system::files;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
const MAX_HEADER: usize = 1 << 16;
const MAX_RANK: usize = 64;

/// The fields of a header.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Header {
    dtype: DType,
    big_endian: bool,
    fortran: bool,
    shape: Vec<u64>,
}

/// Reads the array in a file.
pub fn read(path: &Path) -> Result<Buffer> {
    let fail = |message: String| Error::file(path, message);
    let mut file = std::fs::File::open(path).map_err(|e| fail(format!("cannot be read: {e}")))?;
    let size = file.metadata().map(|m| m.len()).unwrap_or(0);
    read_from(&mut file, size).map_err(fail)
}

/// The most bytes of an array of strings.
const MOST_TEXT: u64 = 1 << 32;

/// The strings in a file, and their shape; `None` where it holds numbers.
pub fn read_strings(path: &Path) -> Result<Option<(Vec<u64>, Vec<String>)>> {
    let fail = |message: String| Error::file(path, message);
    let mut file = std::fs::File::open(path).map_err(|e| fail(format!("cannot be read: {e}")))?;
    let size = file.metadata().map(|m| m.len()).unwrap_or(0);
    let (head, before) = head(&mut file).map_err(fail)?;
    let Some((width, wide, big)) = text_descr(&head.descr) else { return Ok(None) };
    let count = head.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
    let bytes = count.and_then(|n| n.checked_mul(width)).filter(|n| *n <= MOST_TEXT);
    let Some((count, bytes)) = count.zip(bytes).filter(|(_, n)| size.saturating_sub(before) >= *n) else {
        return Err(fail(format!("it does not hold strings of its shape {:?}", head.shape)));
    };
    if head.fortran && head.shape.len() > 1 {
        return Err(fail("its strings are in Fortran order: save `numpy.ascontiguousarray` of it".into()));
    }
    let mut data = vec![0u8; bytes as usize];
    file.read_exact(&mut data).map_err(|e| fail(format!("cannot be read: {e}")))?;
    let letter = |four: &[u8]| {
        let four: [u8; 4] = four.try_into().ok()?;
        char::from_u32(if big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
    };
    let word = |at: u64| {
        let own = &data[(at * width) as usize..((at + 1) * width) as usize];
        match wide {
            true => own.chunks_exact(4).map(letter).collect::<Option<String>>(),
            false => String::from_utf8(own.to_vec()).ok(),
        }
    };
    let words = (0..count).map(|at| word(at).map(|w| w.trim_end_matches('\0').to_string())).collect::<Option<_>>();
    let words = words.ok_or_else(|| fail("it holds strings that are not Unicode".into()))?;
    Ok(Some((head.shape, words)))
}

/// Bytes of an element that is a string, whether they are four for each letter, and whether their order is turned.
fn text_descr(descr: &str) -> Option<(u64, bool, bool)> {
    let name = descr.trim_start_matches(['<', '>', '|', '=']);
    let big = descr.starts_with('>') || cfg!(target_endian = "big") && !descr.starts_with('<');
    let length = |rest: &str| rest.parse::<u64>().ok();
    match name.strip_prefix('U') {
        Some(rest) => Some((length(rest)?.checked_mul(4)?, true, big)),
        None => Some((length(name.strip_prefix('S')?)?, false, big)),
    }
}

/// Writes an array of strings, as long as the longest of them.
pub fn write_strings(path: &Path, words: &[&str], shape: &[u64]) -> Result<()> {
    let longest = words.iter().map(|w| w.chars().count()).max().unwrap_or(0).max(1);
    let mut data = vec![];
    for word in words {
        let letters = word.chars().map(u32::from).chain(std::iter::repeat(0)).take(longest);
        data.extend(letters.flat_map(u32::to_le_bytes));
    }
    files::write_parts(path, &[&header_of(&format!("<U{longest}"), shape), &data])
        .map_err(|e| Error::file(path, format!("cannot be written: {e}")))
}

/// The entries of a header.
struct Head {
    descr: String,
    fortran: bool,
    shape: Vec<u64>,
}

/// The header of a file, and how many bytes it takes.
fn head(source: &mut dyn Read) -> std::result::Result<(Head, u64), String> {
    let short = |_| "it ends within the .npy header".to_string();
    let mut start = [0u8; 8];
    source.read_exact(&mut start).map_err(|_| "it is not a .npy file (too short)".to_string())?;
    if &start[..6] != MAGIC {
        return Err("it is not a .npy file (the first bytes are not NumPy's)".to_string());
    }
    let (len, len_size) = match start[6] {
        1 => {
            let mut b = [0u8; 2];
            source.read_exact(&mut b).map_err(short)?;
            (usize::from(u16::from_le_bytes(b)), 2u64)
        }
        2 | 3 => {
            let mut b = [0u8; 4];
            source.read_exact(&mut b).map_err(short)?;
            (u32::from_le_bytes(b) as usize, 4)
        }
        v => return Err(format!("its .npy version {v} is unknown")),
    };
    if len > MAX_HEADER {
        return Err(format!("its .npy header of {len} bytes is too long"));
    }
    let mut text = vec![0u8; len];
    source.read_exact(&mut text).map_err(short)?;
    let text = std::str::from_utf8(&text).map_err(|_| "its .npy header is not text".to_string())?;
    Ok((parse_head(text)?, 8 + len_size + len as u64))
}

/// Reads an array; `size` is how many bytes the source holds, 0 when that is not known.
pub fn read_from(source: &mut dyn Read, size: u64) -> std::result::Result<Buffer, String> {
    let (head, before) = head(source)?;
    let header = head.numbers()?;
    let width = header.dtype.bytes();
    let count = header.shape.iter().try_fold(1u64, |a, &b| a.checked_mul(b));
    let Some(bytes) = count.and_then(|c| c.checked_mul(width)).filter(|&b| b <= 1 << 46) else {
        return Err(format!("its shape {:?} is too large", header.shape));
    };
    let have = size.saturating_sub(before);
    if size > 0 && have < bytes {
        return Err(format!("it holds {have} bytes of data where its shape {:?} needs {bytes}", header.shape));
    }
    let Header { dtype, big_endian, fortran, shape } = header;
    let transpose = fortran && shape.len() > 1 && bytes > 0;
    let mut buffer = Buffer::zeroed(dtype, &shape).map_err(|e| e.to_string())?;
    source.read_exact(buffer.bytes_mut()).map_err(|_| "it ends before its data does".to_string())?;
    if width > 1 && big_endian != cfg!(target_endian = "big") {
        buffer.bytes_mut().chunks_exact_mut(width as usize).for_each(<[u8]>::reverse);
    }
    if dtype == DType::I1 {
        buffer.bytes_mut().iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
    if transpose {
        let mut rows = Buffer::zeroed(dtype, &shape).map_err(|e| e.to_string())?;
        to_row_major(buffer.bytes(), rows.bytes_mut(), &shape, width as usize);
        buffer = rows;
    }
    Ok(buffer)
}

/// Copies column-major `from` into row-major `to`.
fn to_row_major(from: &[u8], to: &mut [u8], shape: &[u64], width: usize) {
    let mut strides = vec![0usize; shape.len()];
    let mut stride = width;
    for (s, &n) in strides.iter_mut().zip(shape) {
        *s = stride;
        stride *= n as usize;
    }
    let mut index = vec![0u64; shape.len()];
    for element in to.chunks_exact_mut(width) {
        let at: usize = index.iter().zip(&strides).map(|(&i, &s)| i as usize * s).sum();
        element.copy_from_slice(&from[at..at + width]);
        for (i, &n) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < n {
                break;
            }
            *i = 0;
        }
    }
}

/// Writes an array; the file appears whole or not at all.
pub fn write(path: &Path, buffer: &Buffer) -> Result<()> {
    write_as(path, buffer, false)
}

/// The same for an array whose integers may be unsigned.
pub fn write_as(path: &Path, buffer: &Buffer, unsigned: bool) -> Result<()> {
    let header = header_text(buffer.dtype(), unsigned, buffer.shape());
    files::write_parts(path, &[&header, buffer.bytes()])
        .map_err(|e| Error::file(path, format!("cannot be written: {e}")))
}

fn header_text(dtype: DType, unsigned: bool, shape: &[u64]) -> Vec<u8> {
    // 4-bit elements lie two to a byte, so the array of bytes is all that can be said.
    let bytes;
    let shape = if dtype.bits() == 4 {
        bytes = [shape.iter().product::<u64>().div_ceil(2)];
        &bytes[..]
    } else {
        shape
    };
    let descr = match (unsigned, dtype) {
        (true, DType::I8) => "|u1",
        (true, DType::I16) => "<u2",
        (true, DType::I32) => "<u4",
        (true, DType::I64) => "<u8",
        _ => descr(dtype),
    };
    header_of(descr, shape)
}

fn header_of(descr: &str, shape: &[u64]) -> Vec<u8> {
    let dims = match shape {
        [one] => format!("({one},)"),
        _ => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {dims}, }}");
    // The data starts at a multiple of 64 bytes.
    let padding = 63 - (10 + text.len()) % 64;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let mut out = MAGIC.to_vec();
    out.extend([1, 0]);
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
    out
}

/// NumPy's name of the type an element type is stored as.
pub fn descr(dtype: DType) -> &'static str {
    match dtype {
        DType::I1 => "|b1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::F32 | DType::TF32 => "<f4",
        DType::F64 => "<f8",
        DType::BF16 => "<u2",
        DType::I4
        | DType::F8E4M3FN
        | DType::F8E5M2
        | DType::F8E8M0FNU
        | DType::F8E5M3FNU
        | DType::F4E2M1FN
        | DType::F8E4M3FNUZ
        | DType::F8E5M2FNUZ => "|u1",
    }
}

fn parse_descr(text: &str) -> std::result::Result<(DType, bool), String> {
    let unknown = || format!("its element type '{text}' is not supported (bool, ints and floats of 8 to 64 bits are)");
    let (big, name) = match text.as_bytes().first() {
        Some(b'<') => (false, &text[1..]),
        Some(b'>') => (true, &text[1..]),
        Some(b'|' | b'=') => (cfg!(target_endian = "big"), &text[1..]),
        _ => (cfg!(target_endian = "big"), text),
    };
    let dtype = match name {
        "b1" | "?" => DType::I1,
        "i1" | "u1" => DType::I8,
        "i2" | "u2" => DType::I16,
        "i4" | "u4" => DType::I32,
        "i8" | "u8" => DType::I64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        _ => return Err(unknown()),
    };
    Ok((dtype, big))
}

/// Parses the header's dictionary: exactly the keys `descr`, `fortran_order` and `shape`, in any order.
fn parse_head(text: &str) -> std::result::Result<Head, String> {
    let mut p = Parser { rest: text };
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    p.expect('{')?;
    while !p.accept('}') {
        let key = p.string()?;
        p.expect(':')?;
        match key {
            "descr" => descr = Some(p.string()?),
            "fortran_order" => fortran = Some(p.boolean()?),
            "shape" => shape = Some(p.shape()?),
            _ => return Err(format!("its .npy header has an unknown key '{}'", key.escape_default())),
        }
        if !p.accept(',') {
            p.expect('}')?;
            break;
        }
    }
    if !p.rest.trim().is_empty() {
        return Err("its .npy header goes on after its end".to_string());
    }
    let missing = |key: &str| format!("its .npy header has no '{key}'");
    Ok(Head {
        descr: descr.ok_or_else(|| missing("descr"))?.to_string(),
        fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
        shape: shape.ok_or_else(|| missing("shape"))?,
    })
}

impl Head {
    fn numbers(self) -> std::result::Result<Header, String> {
        let (dtype, big_endian) = parse_descr(&self.descr)?;
        Ok(Header { dtype, big_endian, fortran: self.fortran, shape: self.shape })
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn accept(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
    fn expect(&mut self, c: char) -> std::result::Result<(), String> {
        if self.accept(c) { Ok(()) } else { Err(format!("its .npy header lacks a '{c}'")) }
    }
    fn string(&mut self) -> std::result::Result<&'a str, String> {
        let quote = if self.accept('\'') {
            '\''
        } else if self.accept('"') {
            '"'
        } else {
            // NumPy writes a list here for structured types.
            return Err("its .npy header lacks a string (structured types are not supported)".to_string());
        };
        let (inside, rest) = self.rest.split_once(quote).ok_or("its .npy header has an unclosed string")?;
        self.rest = rest;
        Ok(inside)
    }
    fn boolean(&mut self) -> std::result::Result<bool, String> {
        self.rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err("its .npy header lacks True or False".to_string())
    }
    fn shape(&mut self) -> std::result::Result<Vec<u64>, String> {
        self.expect('(')?;
        let mut shape = Vec::new();
        while !self.accept(')') {
            self.rest = self.rest.trim_start();
            let digits = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at(digits);
            let n = number.parse::<u64>().map_err(|_| "its .npy header has a bad shape".to_string())?;
            // Python 2 wrote long integers with an L.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            shape.push(n);
            if shape.len() > MAX_RANK {
                return Err(format!("its .npy shape has more than {MAX_RANK} dimensions"));
            }
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(shape)
    }
}

#[cfg(test)]
mod tests;
