//! The file that `tileiras` writes and `cuLibraryLoadData` reads: a program, and the options it was made with.
//!
//! ```text
//!  0  7f 47 69 72 69 68 00 0a   magic
//!  8  u32  version of this form   u32  length of the header (40)
//! 16  u32  length of the options   u32  0
//! 24  u64  length of the program
//! 32  u64  checksum of all that follows and of the lengths
//! 40  the options, as JSON; the program: bytecode, or tile text
//! ```
//! Numbers are little-endian. A driver is handed an address and no length, so the form says how long it is.

use std::path::Path;

use serde_json::{Value, json};

use crate::codes;
use crate::failure::{Failure, Result};

pub const MAGIC: [u8; 8] = *b"\x7fGirih\0\n";
const VERSION: u32 = 1;
const HEADER: usize = 40;
/// Longer programs and options are taken for damage.
const MOST: u64 = 1 << 30;

/// How a program is to be compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    pub gpu_name: String,
    pub opt_level: u8,
    pub lineinfo: bool,
    pub device_debug: bool,
    /// The names of the kernels' arguments for messages, where the front end gives them.
    pub arguments: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options { gpu_name: "sm_100".into(), opt_level: 3, lineinfo: false, device_debug: false, arguments: Vec::new() }
    }
}

/// The chips that `tileiras` knows.
pub const GPUS: [&str; 12] =
    ["sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_100", "sm_103", "sm_107", "sm_110", "sm_120", "sm_121"];

impl Options {
    pub fn json(&self) -> Value {
        json!({
            "gpu_name": self.gpu_name,
            "opt_level": self.opt_level,
            "lineinfo": self.lineinfo,
            "device_debug": self.device_debug,
            "arguments": self.arguments,
        })
    }

    /// The options that a JSON object names; the rest by default.
    pub fn from_json(text: &str) -> std::result::Result<Options, String> {
        let value: Value = serde_json::from_str(text).map_err(|e| format!("the options are not JSON: {e}"))?;
        let object = value.as_object().ok_or("the options are not a JSON object")?;
        let mut options = Options::default();
        for (name, value) in object {
            let wrong = || format!("option `{name}` cannot be {value}");
            match name.as_str() {
                "gpu_name" => {
                    let name = value.as_str().filter(|n| GPUS.contains(n)).ok_or_else(wrong)?;
                    options.gpu_name = name.to_string();
                }
                "opt_level" => options.opt_level = value.as_u64().filter(|&n| n <= 3).ok_or_else(wrong)? as u8,
                "lineinfo" => options.lineinfo = value.as_bool().ok_or_else(wrong)?,
                "device_debug" => options.device_debug = value.as_bool().ok_or_else(wrong)?,
                "arguments" => {
                    let names = value.as_array().ok_or_else(wrong)?.iter();
                    let names = names.map(|n| n.as_str().map(str::to_string)).collect::<Option<_>>();
                    options.arguments = names.ok_or_else(wrong)?;
                }
                _ => return Err(format!("unknown option `{name}`")),
            }
        }
        Ok(options)
    }
}

/// FNV-1a, in 64 bits.
fn checksum(parts: [&[u8]; 2]) -> u64 {
    let lengths = parts.map(|p| (p.len() as u64).to_le_bytes());
    let bytes = lengths.iter().flatten().chain(parts.into_iter().flatten());
    bytes.fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

pub fn write(options: &Options, program: &[u8]) -> Vec<u8> {
    let options = options.json().to_string();
    let mut out = Vec::with_capacity(HEADER + options.len() + program.len());
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend((HEADER as u32).to_le_bytes());
    out.extend((options.len() as u32).to_le_bytes());
    out.extend([0; 4]);
    out.extend((program.len() as u64).to_le_bytes());
    out.extend(checksum([options.as_bytes(), program]).to_le_bytes());
    out.extend(options.as_bytes());
    out.extend(program);
    out
}

/// The program in a container.
pub fn read(bytes: &[u8]) -> Result<(Options, Vec<u8>)> {
    parse(&|at, n| bytes.get(at..at.checked_add(n)?).map(<[u8]>::to_vec))
}

/// The length of a container that starts with these bytes, and its parts.
fn parse(get: &dyn Fn(usize, usize) -> Option<Vec<u8>>) -> Result<(Options, Vec<u8>)> {
    let bad = |what: &str| Failure::new(codes::ERROR_INVALID_IMAGE, format!("the compiled program {what}"));
    let cut = || bad("is cut off");
    let word = |at: usize| -> Result<u32> {
        let bytes = get(at, 4).and_then(|b| b.try_into().ok()).ok_or_else(cut)?;
        Ok(u32::from_le_bytes(bytes))
    };
    let long = |at: usize| -> Result<u64> { Ok(u64::from(word(at)?) | u64::from(word(at + 4)?) << 32) };
    if get(0, 8).ok_or_else(cut)? != MAGIC {
        return Err(bad("was not made by Girih"));
    }
    match word(8)? {
        VERSION => {}
        other => {
            return Err(bad(&format!(
                "has format {other}, but this version reads format {VERSION}: it was made by another version of tileiras"
            )));
        }
    }
    let (header, options, program, sum) = (word(12)?, u64::from(word(16)?), long(24)?, long(32)?);
    if header as usize != HEADER || options > MOST || program > MOST {
        return Err(bad("is damaged"));
    }
    let (options, program) = (options as usize, program as usize);
    let text = get(HEADER, options).ok_or_else(cut)?;
    let program = get(HEADER + options, program).ok_or_else(cut)?;
    if checksum([&text, &program]) != sum {
        return Err(bad("is damaged or cut off: its checksum is wrong"));
    }
    let text = String::from_utf8(text).map_err(|_| bad("is damaged"))?;
    let options = Options::from_json(&text).map_err(|e| bad(&format!("has unknown options: {e}")))?;
    Ok((options, program))
}

/// The image that a driver is given to load: a container, bytecode, or text that ends in a zero byte.
///
/// # Safety
/// `image` must be the start of one of these in readable memory, as long as its form says.
pub unsafe fn read_image(image: *const u8) -> Result<(Options, Vec<u8>)> {
    // SAFETY: the caller vouches for the bytes that the form announces; each part is read after the parts that announce
    // it.
    let get = |at: usize, n: usize| unsafe { std::slice::from_raw_parts(image.wrapping_add(at), n) };
    let starts = |magic: &[u8]| magic.iter().enumerate().all(|(i, &b)| get(i, 1) == [b]);
    if starts(&MAGIC) {
        return parse(&|at, n| Some(get(at, n).to_vec()));
    }
    if starts(&girih_compiler::cuda_tile::bytecode::MAGIC) {
        let length = bytecode_length(&|at| get(at, 1)[0])
            .ok_or_else(|| Failure::new(codes::ERROR_INVALID_IMAGE, "the bytecode's sections do not end"))?;
        return Ok((Options::default(), get(0, length).to_vec()));
    }
    // Machine code and archives of it have zero bytes early on; text has none.
    let first = get(0, 1)[0];
    if !(first.is_ascii_graphic() || first.is_ascii_whitespace()) {
        let message = "the image is not a container of Girih's, tile bytecode or tile text; compiled code for \
                       a GPU cannot run here";
        return Err(Failure::new(codes::ERROR_INVALID_IMAGE, message));
    }
    // SAFETY: text ends in a zero byte.
    let text = unsafe { std::ffi::CStr::from_ptr(image.cast()) };
    Ok((Options::default(), text.to_bytes().to_vec()))
}

/// Follows the sections of bytecode to their end.
fn bytecode_length(byte: &dyn Fn(usize) -> u8) -> Option<usize> {
    let mut at = 12usize;
    let varint = |at: &mut usize| -> Option<usize> {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let b = byte(*at);
            *at += 1;
            value |= u64::from(b & 0x7f) << shift;
            if b & 0x80 == 0 {
                return usize::try_from(value).ok().filter(|&n| n as u64 <= MOST);
            }
        }
        None
    };
    // There are seven kinds of section.
    for _ in 0..64 {
        let id = byte(at);
        at += 1;
        if id == 0 {
            return Some(at);
        }
        let length = varint(&mut at)?;
        if id & 0x80 != 0 {
            let align = varint(&mut at)?.max(1);
            at = at.checked_next_multiple_of(align)?;
        }
        at = at.checked_add(length).filter(|&n| n as u64 <= MOST)?;
    }
    None
}

/// A container, bytecode or text from a file.
pub fn read_file(path: &Path) -> Result<(Options, Vec<u8>)> {
    let bytes = std::fs::read(path)
        .map_err(|e| Failure::new(codes::ERROR_FILE_NOT_FOUND, format!("{} cannot be read: {e}", path.display())))?;
    if bytes.starts_with(&MAGIC) { read(&bytes) } else { Ok((Options::default(), bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let arguments = vec!["x".to_string(), "out".to_string()];
        let options =
            Options { gpu_name: "sm_90".into(), opt_level: 1, lineinfo: true, device_debug: false, arguments };
        let bytes = write(&options, b"program");
        assert_eq!(read(&bytes).unwrap(), (options.clone(), b"program".to_vec()));
        // SAFETY: the container is whole.
        assert_eq!(unsafe { read_image(bytes.as_ptr()) }.unwrap(), (options, b"program".to_vec()));
    }

    #[test]
    fn damage_is_found() {
        let bytes = write(&Options::default(), b"program");
        for n in 0..bytes.len() {
            assert_eq!(read(&bytes[..n]).unwrap_err().code, codes::ERROR_INVALID_IMAGE, "cut at {n}");
        }
        for at in (0..20).chain(24..bytes.len()) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x41;
            assert!(read(&damaged).is_err(), "byte {at}");
        }
        let mut newer = bytes.clone();
        newer[8] = 2;
        assert!(read(&newer).unwrap_err().message.contains("format 2, but this version reads format 1"));
    }

    #[test]
    fn text_and_foreign_code() {
        // SAFETY: the text ends in a zero byte; the others are told from their first bytes.
        unsafe {
            assert_eq!(read_image(c"cuda_tile.module".as_ptr().cast()).unwrap().1, b"cuda_tile.module");
            assert!(read_image(c"\x7fELF\x02\x01\x01".as_ptr().cast()).unwrap_err().message.contains("GPU"));
        }
    }
}
