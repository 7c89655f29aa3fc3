//! Float literals: text to bits with one rounding, and bits to text.
//!
//! In and out: `1.5`, `-2.0e-3`, `0x1.8p3` (a hexadecimal float), `0x7FC00000` (the bits themselves, as MLIR writes them;
//! 19 bits for tf32), `inf`, `nan`. Example: `parse_float(F16, "0.1")` is `0x2E66`, which [`format_float`] prints as `0.1`
//! and [`format_mlir`] as `9.997560e-02`. Invariant: `parse_float` of either printed form gives the bits back.

use std::cmp::Ordering;

use super::DType;
use super::convert::{Value, decode, encode, encode_value, is_nan, to_f64};
use super::op::Rounding;

/// The number of bits below those that a raw pattern gives.
fn padding(ty: DType) -> u32 {
    if ty == DType::TF32 { 13 } else { 0 }
}

/// The bits of a literal, correctly rounded to nearest even; `None` if the text is not a float literal, or a bit
/// pattern too wide for the type.
pub fn parse_float(ty: DType, text: &str) -> Option<u64> {
    let (negative, body) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    match body {
        "inf" => return Some(encode_value(ty, Value::Infinite { negative }, Rounding::NearestEven)),
        "nan" => return Some(encode_value(ty, Value::Nan, Rounding::NearestEven)),
        _ => {}
    }
    if let Some(hex) = body.strip_prefix("0x").or_else(|| body.strip_prefix("0X")) {
        if hex.contains(['p', 'P']) {
            return parse_hexadecimal(ty, negative, hex);
        }
        let plain = body.len() == text.len() && !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit());
        let bits = if plain { u64::from_str_radix(hex, 16).ok()? } else { return None };
        return (bits <= ty.mask() >> padding(ty)).then(|| bits << padding(ty));
    }
    parse_decimal(ty, negative, body)
}

/// Splits `digits[.digits]`, giving the digits without the point and the number of digits after the point.
fn digits(text: &str, radix: u32) -> Option<(String, i64)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let all = format!("{whole}{fraction}");
    (!all.is_empty() && all.chars().all(|c| c.is_digit(radix))).then_some((all, fraction.len() as i64))
}

/// An exponent; one that does not fit an i64 has the same effect as the largest.
fn exponent(text: &str) -> Option<i64> {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    if body.is_empty() || !body.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let magnitude = body.parse::<i64>().unwrap_or(i64::MAX).min(1 << 40);
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

fn parse_hexadecimal(ty: DType, negative: bool, text: &str) -> Option<u64> {
    let (mantissa, power) = text.split_once(['p', 'P'])?;
    let (digits, behind) = digits(mantissa, 16)?;
    let mut exponent = exponent(power)? - 4 * behind;
    let mut value = 0u128;
    for digit in digits.chars().filter_map(|c| c.to_digit(16)) {
        if value >> 120 == 0 {
            value = value << 4 | digit as u128;
        } else {
            value |= (digit != 0) as u128;
            exponent += 4;
        }
    }
    let exponent = exponent.clamp(-100_000, 100_000) as i32;
    Some(encode(ty, negative, value, exponent, Rounding::NearestEven))
}

fn parse_decimal(ty: DType, negative: bool, text: &str) -> Option<u64> {
    let (mantissa, power) = match text.split_once(['e', 'E']) {
        Some((mantissa, power)) => (mantissa, exponent(power)?),
        None => (text, 0),
    };
    let (digits, behind) = digits(mantissa, 10)?;
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(encode(ty, negative, 0, 0, Rounding::NearestEven));
    }
    let power = power - behind;
    // The nearest f64, and the side of it on which the literal lies, suffice for one rounding to any format.
    let nearest: f64 = format!("{digits}e{power}").parse().ok()?;
    let Value::Finite { mantissa, exponent, .. } = decode(DType::F64, nearest.to_bits()) else {
        return Some(encode(ty, negative, 1, 100_000, Rounding::NearestEven));
    };
    if ty == DType::F64 {
        return Some(nearest.to_bits() | (negative as u64) << 63);
    }
    if mantissa == 0 {
        return Some(encode(ty, negative, 1, -100_000, Rounding::NearestEven));
    }
    let mantissa = (mantissa as u128) << 64;
    let mantissa = match compare(digits, power, nearest) {
        Ordering::Less => mantissa - 1,
        Ordering::Equal => mantissa,
        Ordering::Greater => mantissa + 1,
    };
    Some(encode(ty, negative, mantissa, exponent - 64, Rounding::NearestEven))
}

/// `digits * 10^power` against a positive finite f64 close to it.
fn compare(digits: &str, power: i64, value: f64) -> Ordering {
    let Value::Finite { mantissa, exponent, .. } = decode(DType::F64, value.to_bits()) else {
        return Ordering::Less;
    };
    let mut left = Big(Vec::new());
    for chunk in digits.as_bytes().chunks(9) {
        let number = chunk.iter().fold(0, |n, b| n * 10 + (b - b'0') as u32);
        left.multiply_add(10u32.pow(chunk.len() as u32), number);
    }
    let mut right = Big(vec![mantissa as u32, (mantissa >> 32) as u32]);
    let tens = if power >= 0 { &mut left } else { &mut right };
    (0..power.unsigned_abs() / 9).for_each(|_| tens.multiply_add(1_000_000_000, 0));
    tens.multiply_add(10u32.pow(power.unsigned_abs() as u32 % 9), 0);
    let twos = if exponent >= 0 { &mut right } else { &mut left };
    twos.shift(exponent.unsigned_abs());
    left.compare(right)
}

/// A natural number, least significant word first.
struct Big(Vec<u32>);

impl Big {
    fn multiply_add(&mut self, by: u32, plus: u32) {
        let mut carry = plus as u64;
        for word in &mut self.0 {
            let t = *word as u64 * by as u64 + carry;
            *word = t as u32;
            carry = t >> 32;
        }
        self.0.push(carry as u32);
        self.trim();
    }
    fn shift(&mut self, bits: u32) {
        self.multiply_add(1 << (bits % 32), 0);
        self.0.splice(0..0, vec![0; (bits / 32) as usize]);
    }
    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
    fn compare(mut self, mut other: Big) -> Ordering {
        self.trim();
        other.trim();
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

/// The shortest decimal that parses back to these bits, with a point or an exponent: `0.1`, `1.0`, `1e-7`, `inf`, `nan`.
/// Formats of 8 bits and less print as the f32 of that value (448 is `448.0`, though `450.0` would do).
pub fn format_float(ty: DType, bits: u64) -> String {
    if is_nan(ty, bits) {
        return "nan".into();
    }
    let value = to_f64(ty, bits);
    if ty == DType::F32 || ty.bits() <= 8 {
        return format!("{:?}", value as f32);
    }
    (0..17)
        .map(|precision| format!("{value:.precision$e}"))
        .find(|text| parse_float(ty, text) == Some(bits))
        .and_then(|text| text.parse::<f64>().ok())
        .map_or_else(|| format!("{value:?}"), |short| format!("{short:?}"))
}

/// The form in which MLIR prints a float attribute: six significant digits in `1.000000e+00` if they give the value
/// back, else enough digits in a plain form, else the bits (infinities and NaN).
pub fn format_mlir(ty: DType, bits: u64) -> String {
    let value = to_f64(ty, bits);
    if value.is_finite() {
        let (digits, power) = significant(value.abs(), 6);
        let sign = if value.is_sign_negative() { "-" } else { "" };
        let text = format!("{sign}{}.{:0<6}e{power:+03}", &digits[..1], &digits[1..]);
        if parse_float(ty, &text) == Some(bits) {
            return text;
        }
        let text = sign.to_string() + &plain(ty, value.abs());
        if text.contains('.') && parse_float(ty, &text) == Some(bits) {
            return text;
        }
    }
    format!("{:#X}", bits >> padding(ty)).replacen("0X", "0x", 1)
}

/// The first `count` digits, without trailing zeros, and the power of ten of the first. Digits far behind are cut off
/// before the rest is rounded half up, as in MLIR's printer: the number of digits cut off follows from the number of
/// bits.
fn significant(value: f64, count: usize) -> (String, i32) {
    if value == 0.0 {
        return ("0".into(), 0);
    }
    // The value is an odd integer times 2^exponent, so -exponent decimal places are exact.
    let stored = value.to_bits() & ((1 << 52) - 1);
    let field = (value.to_bits() >> 52) as i32 & 0x7ff;
    let (whole, exponent) = if field == 0 { (stored, -1074) } else { (stored | 1 << 52, field - 1075) };
    let exponent = exponent + whole.trailing_zeros() as i32;
    let places = (-exponent).max(0) as usize;
    let odd = (whole >> whole.trailing_zeros()) as f64;
    let bits = (odd.log2() + places as f64 * 5f64.log2() + exponent.max(0) as f64).floor() as usize + 1;
    let exact = format!("{value:.places$}");
    let mut kept: Vec<u8> = exact.bytes().filter(u8::is_ascii_digit).skip_while(|&b| b == b'0').collect();
    let mut power = kept.len() as i32 - 1 - places as i32;
    let cut = bits.saturating_sub((count * 196).div_ceil(59)) * 59 / 196;
    kept.truncate(kept.len().saturating_sub(cut).max(1));
    if kept.len() > count {
        let up = kept[count] >= b'5';
        kept.truncate(count);
        while up && kept.last() == Some(&b'9') {
            kept.pop();
        }
        match kept.last_mut() {
            Some(last) => *last += u8::from(up),
            None => {
                kept.push(b'1');
                power += 1;
            }
        }
    }
    while kept.len() > 1 && kept.last() == Some(&b'0') {
        kept.pop();
    }
    (kept.into_iter().map(char::from).collect(), power)
}

/// MLIR's second form: enough digits for a round trip, plain unless that takes more than three zeros of padding.
fn plain(ty: DType, value: f64) -> String {
    let precision = match ty {
        DType::F64 => 53,
        DType::F32 => 24,
        DType::F16 | DType::TF32 => 11,
        DType::BF16 => 8,
        DType::F8E4M3FN | DType::F8E5M3FNU | DType::F8E4M3FNUZ => 4,
        DType::F8E5M2 | DType::F8E5M2FNUZ => 3,
        DType::F4E2M1FN => 2,
        _ => 1,
    };
    let count = 2 + precision * 59 / 196;
    let (digits, power) = significant(value, count);
    let last = power - (digits.len() as i32 - 1);
    let scientific = match last {
        0.. => last > 3 || digits.len() as i32 + last > count as i32,
        _ => power < -3,
    };
    if scientific {
        let rest = if digits.len() == 1 { "0" } else { &digits[1..] };
        format!("{}.{rest}E{power:+}", &digits[..1])
    } else if last >= 0 {
        digits + &"0".repeat(last as usize)
    } else if power >= 0 {
        let whole = power as usize + 1;
        format!("{}.{}", &digits[..whole], &digits[whole..])
    } else {
        format!("0.{}{digits}", "0".repeat((-power - 1) as usize))
    }
}

#[cfg(test)]
mod tests;
