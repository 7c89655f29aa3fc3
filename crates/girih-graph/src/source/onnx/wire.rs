//! Protobuf's wire format: bytes as numbered fields.
//!
//! In: bytes that may be anything. Out: a [`Message`] whose byte fields are slices of the input (nothing large is
//! copied), or a [`Fault`] that names the byte where reading stopped.
//!
//! A field is a varint `number << 3 | wire` and a payload: 0 a varint, 1 eight bytes, 2 a length and that many bytes, 5
//! four bytes. `08 07` is field 1 with the value 7.
//!
//! Invariants: every length is compared with the remaining bytes before anything is allocated; messages nest at most
//! [`DEEPEST`] levels; the messages of one file take at most [`MULTIPLE`] times its size.
//!
//! Source: protobuf.dev, "Encoding". Written here rather than generated: a few messages are read, never written, and
//! a fault must name its byte.

use bytes::Bytes;

/// Graphs nest in attributes of nodes: three levels of messages for each branch.
pub(super) const DEEPEST: u32 = 96;
/// Memory for messages, in multiples of the file's size, and a constant beside that.
const MULTIPLE: usize = 48;
const BASE: usize = 1 << 20;

/// The byte at which the bytes stop being a model, and the reason: one plain sentence without its end.
#[derive(Clone, Debug)]
pub struct Fault {
    pub at: usize,
    pub what: String,
}

type Res<T> = Result<T, Fault>;

pub(super) fn fault<T>(at: usize, what: impl Into<String>) -> Res<T> {
    Err(Fault { at, what: what.into() })
}

/// One kind of message.
pub(super) trait Message: Default {
    /// `a node`, for faults.
    const NAME: &'static str;
    /// Reads one field; a field with an unknown number is skipped.
    fn field(&mut self, f: &mut Field<'_>) -> Res<()>;
}

/// Reads a whole file.
pub(super) fn decode<T: Message>(bytes: &Bytes) -> Res<T> {
    let mut file = File { bytes: bytes.clone(), left: bytes.len().saturating_mul(MULTIPLE).saturating_add(BASE) };
    read(&mut file, 0, bytes.len(), 0)
}

struct File {
    bytes: Bytes,
    /// Bytes that messages may still take.
    left: usize,
}

#[derive(Clone, Copy)]
enum Payload {
    Varint(u64),
    Eight([u8; 8]),
    Four([u8; 4]),
    /// From, to.
    Bytes(usize, usize),
}

/// A field of the message being read.
pub(super) struct Field<'a> {
    pub number: u32,
    file: &'a mut File,
    payload: Payload,
    at: usize,
    depth: u32,
    of: &'static str,
}

impl File {
    fn slice(&self, from: usize, to: usize) -> Bytes {
        self.bytes.slice(from..to)
    }

    fn varint(&self, at: &mut usize, end: usize) -> Res<u64> {
        let (start, mut value) = (*at, 0u64);
        for shift in (0..70).step_by(7) {
            let Some(&byte) = self.bytes.get(*at).filter(|_| *at < end) else {
                return fault(start, "the file ends within a number");
            };
            *at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        fault(start, "a number has more than ten bytes")
    }

    fn take(&mut self, bytes: usize, at: usize) -> Res<()> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => fault(at, "the file holds far more empty entries than a model does"),
        }
    }

    fn next(&self, at: &mut usize, end: usize) -> Res<(u32, Payload)> {
        let start = *at;
        let tag = self.varint(at, end)?;
        let number = match u32::try_from(tag >> 3) {
            Ok(number) if number > 0 => number,
            _ => return fault(start, "a field does not have a valid number"),
        };
        let many = |n: usize| -> Res<&[u8]> {
            match self.bytes.get(*at..at.saturating_add(n)) {
                Some(b) if n <= end - *at => Ok(b),
                _ => fault(start, "the file ends within a field"),
            }
        };
        let payload = match tag & 7 {
            0 => Payload::Varint(self.varint(at, end)?),
            1 => Payload::Eight(many(8)?.try_into().unwrap_or_default()),
            5 => Payload::Four(many(4)?.try_into().unwrap_or_default()),
            2 => {
                let len = self.varint(at, end)?;
                match usize::try_from(len).ok().filter(|n| *n <= end - *at) {
                    Some(len) => {
                        let from = *at;
                        *at += len;
                        Payload::Bytes(from, from + len)
                    }
                    None => {
                        let left = end - *at;
                        return fault(start, format!("a field announces {len} bytes where {left} are left"));
                    }
                }
            }
            wire => {
                return fault(start, format!("a field has the wire type {wire}, which messages of ONNX do not use"));
            }
        };
        match payload {
            Payload::Eight(_) => *at += 8,
            Payload::Four(_) => *at += 4,
            _ => {}
        }
        Ok((number, payload))
    }
}

fn read<T: Message>(file: &mut File, from: usize, to: usize, depth: u32) -> Res<T> {
    if depth > DEEPEST {
        return fault(from, format!("messages nest more than {DEEPEST} levels deep"));
    }
    file.take(size_of::<T>(), from)?;
    let (mut message, mut at) = (T::default(), from);
    while at < to {
        let start = at;
        let (number, payload) = file.next(&mut at, to)?;
        message.field(&mut Field { number, file, payload, at: start, depth, of: T::NAME })?;
    }
    Ok(message)
}

impl Field<'_> {
    fn wrong<T>(&self, wanted: &str) -> Res<T> {
        fault(self.at, format!("field {} of {} is not {wanted}", self.number, self.of))
    }

    pub fn int(&self) -> Res<i64> {
        match self.payload {
            Payload::Varint(v) => Ok(v as i64),
            _ => self.wrong("a number"),
        }
    }
    /// An enumeration or an `int32`.
    pub fn int32(&self) -> Res<i32> {
        Ok(self.int()? as i32)
    }
    pub fn float(&self) -> Res<f32> {
        match self.payload {
            Payload::Four(b) => Ok(f32::from_le_bytes(b)),
            _ => self.wrong("a float"),
        }
    }
    pub fn bytes(&self) -> Res<Bytes> {
        match self.payload {
            Payload::Bytes(from, to) => Ok(self.file.slice(from, to)),
            _ => self.wrong("a string of bytes"),
        }
    }
    pub fn text(&mut self) -> Res<String> {
        let bytes = self.bytes()?;
        self.file.take(size_of::<String>(), self.at)?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_string()),
            Err(_) => self.wrong("text in UTF-8"),
        }
    }
    pub fn message<T: Message>(&mut self) -> Res<T> {
        match self.payload {
            Payload::Bytes(from, to) => read(self.file, from, to, self.depth + 1),
            _ => self.wrong("a message"),
        }
    }
    /// Adds the element or, packed, the elements of a repeated field of varints.
    pub fn ints(&mut self, out: &mut Vec<i64>) -> Res<()> {
        match self.payload {
            Payload::Varint(v) => out.push(v as i64),
            Payload::Bytes(mut at, to) => {
                while at < to {
                    out.push(self.file.varint(&mut at, to)? as i64);
                }
            }
            _ => return self.wrong("a list of numbers"),
        }
        Ok(())
    }
    pub fn floats(&self, out: &mut Vec<f32>) -> Res<()> {
        match self.payload {
            Payload::Four(b) => out.push(f32::from_le_bytes(b)),
            Payload::Bytes(from, to) if (to - from).is_multiple_of(4) => {
                let bytes = self.file.slice(from, to);
                out.extend(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)));
            }
            _ => return self.wrong("a list of floats"),
        }
        Ok(())
    }
    pub fn doubles(&self, out: &mut Vec<f64>) -> Res<()> {
        match self.payload {
            Payload::Eight(b) => out.push(f64::from_le_bytes(b)),
            Payload::Bytes(from, to) if (to - from).is_multiple_of(8) => {
                let bytes = self.file.slice(from, to);
                out.extend(bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)));
            }
            _ => return self.wrong("a list of doubles"),
        }
        Ok(())
    }
}
