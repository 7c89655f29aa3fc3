//! Reading bytes: numbers, counts and slices, each within the part of the file it belongs to.

use super::{Res, fail};
use crate::base::Code;

/// A place in the file and the end of the part that may be read. Offsets are those of the whole file.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Everything from `at` to the end of `bytes`; `bytes` begins at the start of the file.
    pub fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at: at.min(bytes.len()) }
    }
    pub fn at(&self) -> usize {
        self.at
    }
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }
    pub fn is_empty(&self) -> bool {
        self.left() == 0
    }

    /// The next `n` bytes; the cursor moves behind them.
    pub fn take(&mut self, n: usize, what: &str) -> Res<&'a [u8]> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..n)) {
            Some(taken) => {
                self.at += n;
                Ok(taken)
            }
            None => self.ends(n as u64, what),
        }
    }

    #[cold]
    fn ends<T>(&self, wanted: u64, what: &str) -> Res<T> {
        let left = self.left();
        let message = format!("{what} takes {}, but {} left", bytes(wanted), are(left as u64));
        fail(Code::Truncated, self.at, self.bytes.len(), message)
    }

    /// The next `n` bytes as a cursor of their own; this cursor moves behind them.
    pub fn part(&mut self, n: u64, what: &str) -> Res<Cursor<'a>> {
        let start = self.at;
        let len = usize::try_from(n).unwrap_or(usize::MAX);
        self.take(len, what)?;
        Ok(Cursor { bytes: &self.bytes[..self.at], at: start })
    }

    pub fn byte(&mut self, what: &str) -> Res<u8> {
        match self.bytes.get(self.at) {
            Some(&b) => {
                self.at += 1;
                Ok(b)
            }
            None => self.ends(1, what),
        }
    }

    /// A number in groups of seven bits, the low ones first; only the shortest form is accepted.
    #[inline]
    pub fn varint(&mut self, what: &str) -> Res<u64> {
        match self.bytes.get(self.at) {
            Some(&b) if b < 0x80 => {
                self.at += 1;
                Ok(b.into())
            }
            _ => self.long_varint(what),
        }
    }

    fn long_varint(&mut self, what: &str) -> Res<u64> {
        let start = self.at;
        let value = self.wide_varint(what)?;
        match u64::try_from(value) {
            Ok(value) => Ok(value),
            Err(_) => fail(Code::BadEncoding, start, self.at, format!("{what} does not fit 64 bits")),
        }
    }

    /// A number of up to 65 bits, one more than a word because [`Cursor::pattern`] has a sign.
    fn wide_varint(&mut self, what: &str) -> Res<u128> {
        let start = self.at;
        let mut value = 0u128;
        for shift in (0..).step_by(7) {
            let b = self.byte(what)?;
            let bits = u128::from(b & 0x7f);
            if shift > 64 || (bits << shift) >> 65 != 0 {
                return fail(Code::BadEncoding, start, self.at, format!("{what} does not fit 64 bits"));
            }
            value |= bits << shift;
            if b < 0x80 {
                if b == 0 && shift > 0 {
                    let message = format!("{what} is written with more bytes than it needs");
                    return fail(Code::BadEncoding, start, self.at, message);
                }
                break;
            }
        }
        Ok(value)
    }

    /// A signed number: zero, -1, 1, -2 and so on are written as 0, 1, 2, 3.
    pub fn signed(&mut self, what: &str) -> Res<i64> {
        let n = self.varint(what)?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// The bits of a float, written as a signed number. Some writers count the highest of 64 bits as a value instead of
    /// a sign, and then need a 65th.
    pub fn pattern(&mut self) -> Res<u64> {
        let start = self.at;
        let n = self.wide_varint("a number")?;
        let bits = (n >> 1) as u64;
        match (n & 1 == 1, n >> 64 == 0) {
            (false, _) => Ok(bits),
            (true, true) => Ok(!bits),
            (true, false) => fail(Code::BadEncoding, start, self.at, "a number does not fit 64 bits"),
        }
    }

    /// A number of items that take at least `each` bytes, checked to be no more than the bytes left can hold.
    pub fn count(&mut self, each: usize, what: &str) -> Res<usize> {
        let start = self.at;
        let n = self.varint(what)?;
        let most = (self.left() / each) as u64;
        if n > most {
            let message = format!("{what} is {n}, but {} left, enough for {most}", are(self.left() as u64));
            return fail(Code::Truncated, start, self.at, message);
        }
        Ok(n as usize)
    }

    /// A count, then this number of little-endian numbers of `WIDTH` bytes.
    pub fn numbers<const WIDTH: usize>(
        &mut self,
        most: usize,
        what: &str,
    ) -> Res<impl Iterator<Item = i64> + use<'a, WIDTH>> {
        let start = self.at;
        let n = self.count(WIDTH, what)?;
        if n > most {
            let message = format!("{what} is {n}; at most {most} are read");
            return fail(Code::BytecodeTooLarge, start, self.at, message);
        }
        Ok(words::<WIDTH>(self.take(n * WIDTH, what)?).map(|n| n as i64 | sign::<WIDTH>(n)))
    }

    /// Skips padding up to a multiple of `alignment` bytes after `start`.
    pub fn align(&mut self, start: usize, alignment: usize, what: &str) -> Res<()> {
        let padding = (self.at - start).next_multiple_of(alignment) - (self.at - start);
        self.take(padding, what).map(drop)
    }

    /// Fails if bytes are left.
    pub fn finish(&self, what: &str) -> Res<()> {
        match self.left() {
            0 => Ok(()),
            n => fail(Code::BadSection, self.at, self.bytes.len(), format!("{} left after {what}", are(n as u64))),
        }
    }
}

/// The bits above a number of `WIDTH` bytes that extend its sign.
fn sign<const WIDTH: usize>(n: u64) -> i64 {
    match 8 * WIDTH {
        64.. => 0,
        bits => (n >> (bits - 1)) as i64 * (-1 << bits),
    }
}

/// Little-endian numbers of `WIDTH` bytes.
pub(super) fn words<const WIDTH: usize>(bytes: &[u8]) -> impl Iterator<Item = u64> + use<'_, WIDTH> {
    bytes.chunks_exact(WIDTH).map(|c| c.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
}

fn bytes(n: u64) -> String {
    if n == 1 { "1 byte".into() } else { format!("{n} bytes") }
}

fn are(n: u64) -> String {
    match n {
        0 => "no bytes are".into(),
        1 => "1 byte is".into(),
        _ => format!("{n} bytes are"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_doubles_as_a_signed_number_and_as_one_of_65_bits() {
        let zigzag = |n: u128| {
            let mut bytes = Vec::new();
            let mut rest = n;
            while rest >= 0x80 {
                bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
            bytes
        };
        let read = |n: u128| Cursor::new(&zigzag(n), 0).pattern().ok();
        let bits = f64::NEG_INFINITY.to_bits();
        let signed = bits as i64;
        assert_eq!(read(((signed << 1) ^ (signed >> 63)) as u64 as u128), Some(bits));
        assert_eq!(read((bits as u128) << 1), Some(bits));
        assert_eq!(read(1.5f64.to_bits() as u128 * 2), Some(1.5f64.to_bits()));
        assert_eq!(read(0), Some(0));
        assert_eq!(read(u128::from(u64::MAX)), Some(i64::MIN as u64));
        assert_eq!(read((1 << 65) - 2), Some(u64::MAX));
        assert_eq!(read((1 << 65) - 1), None);
        assert_eq!(read(1 << 65), None);
        assert!(Cursor::new(&zigzag(1 << 64), 0).varint("a number").is_err());
    }
}
