//! The formatter of `print_tko`: C's conversions, applied to whole tiles.
//!
//! ```text
//! format("x = %d, t = %.2f\n", [7 : i32, [[1, 2], [3, 4]] : 2x2xf32])  =>  "x = 7, t = [[1.00, 2.00], [3.00, 4.00]]\n"
//! ```
//!
//! A conversion prints one whole tile: a scalar as in C, a tile as nested brackets with `, ` between elements, each
//! element under the same flags, width and precision. Conversions `d i u o x X c` take integers, `e E f F g G a A`
//! floats (either takes the other's elements converted, which C's callers must do by hand: an integer under `%f` prints
//! as that number, a float under `%d` is truncated); `%p` prints an address; `%%` is a percent sign. `%s`, `%n` and
//! everything that C does not define are refused, since a kernel's format string is untrusted. Length modifiers (`ll`,
//! `h`, `z`, ...) are accepted and ignored: the element type determines the width. A string that is not a valid format
//! may still be in the form of older documents: one `%` for each argument, and no letter or digit after any of them.
//! Each `%` then prints its argument in the default format: `%d`, `%g` or `%p`.

use super::convert::to_f64;
use super::{DType, Ty};
use crate::base::Quoted;

/// A tile to print.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrintValue {
    pub ty: Ty,
    /// Empty for a scalar.
    pub shape: Vec<u64>,
    /// Row-major, one per element, or one for all.
    pub bits: Vec<u64>,
}

/// A piece of a format string.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Text(String),
    Conversion(Spec),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    /// `None` is the default format of the element type.
    conversion: Option<char>,
}

/// A part of a format of C's `printf`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    Text(Quoted),
    /// A conversion: the characters between its `%` and its letter except a length, and the letter.
    Value {
        flags: String,
        letter: char,
    },
}

/// Greater widths and precisions are refused.
const WIDEST: usize = 4096;
const ENDS_WITHIN: &str = "the format ends within a conversion";

/// The number of arguments that a format string takes, given how many there are (which decides whether bare `%` count),
/// or the reason why it is not a format.
pub fn conversions(fmt: &str, args: usize) -> Result<usize, String> {
    let pieces = parse(fmt, args)?;
    Ok(pieces.iter().filter(|p| matches!(p, Piece::Conversion(_))).count())
}

/// Formats `args`; the error names the fault of the format.
pub fn format(fmt: &str, args: &[PrintValue]) -> Result<String, String> {
    let pieces = pieces(fmt, args.len())?;
    let mut out = String::new();
    let mut args = args.iter();
    for piece in pieces {
        match piece {
            Piece::Text(t) => out.push_str(&t),
            Piece::Conversion(spec) => {
                if let Some(arg) = args.next() {
                    tile(&mut out, &spec, arg);
                }
            }
        }
    }
    Ok(out)
}

/// Splits a format into its parts, for values of these types. The error names the fault of the format.
pub fn parts(format: &Quoted, args: &[Ty]) -> Result<Vec<Part>, String> {
    let mut letters = args.iter().map(|ty| default_letter(*ty));
    let part = |piece| match piece {
        Piece::Text(text) => Part::Text(Quoted::new(&text)),
        Piece::Conversion(spec) => {
            let letter = letters.next().unwrap_or('d');
            Part::Value { flags: spec.flags(), letter: spec.conversion.unwrap_or(letter) }
        }
    };
    Ok(pieces(format.raw(), args.len())?.into_iter().map(part).collect())
}

/// The pieces of a format that has a conversion for each value.
fn pieces(fmt: &str, args: usize) -> Result<Vec<Piece>, String> {
    let pieces = parse(fmt, args)?;
    let wanted = pieces.iter().filter(|p| matches!(p, Piece::Conversion(_))).count();
    if wanted != args {
        return Err(format!("the format has {wanted} conversions for {args} values"));
    }
    Ok(pieces)
}

/// The letter of the conversion that a bare `%` stands for.
fn default_letter(ty: Ty) -> char {
    match ty {
        Ty::Ptr(_) => 'p',
        Ty::Num(d) if d.is_float() => 'g',
        Ty::Num(_) => 'd',
    }
}

impl Spec {
    /// The text of the conversion between `%` and its letter.
    fn flags(&self) -> String {
        let signs = [(self.left, '-'), (self.plus, '+'), (self.space, ' '), (self.alternate, '#'), (self.zero, '0')];
        let mut out: String = signs.iter().filter(|s| s.0).map(|s| s.1).collect();
        if self.width > 0 {
            out += &self.width.to_string();
        }
        if let Some(precision) = self.precision {
            out += &format!(".{precision}");
        }
        out
    }
}

/// Returns true if no letter that could end a conversion follows one of its `%`; NVIDIA's verifier searches in the same
/// way.
pub fn unterminated(fmt: &str) -> bool {
    let mut rest = fmt;
    while let Some(at) = rest.find('%') {
        rest = &rest[at + 1..];
        match rest.find(|c| "diuoxXeEfFgGaAcspn%".contains(c)) {
            None => return true,
            Some(0) if rest.starts_with('%') => rest = &rest[1..],
            Some(_) => {}
        }
    }
    false
}

fn parse(fmt: &str, args: usize) -> Result<Vec<Piece>, String> {
    if unterminated(fmt) {
        return Err(ENDS_WITHIN.to_string());
    }
    match printf(fmt) {
        Ok(pieces) if pieces.iter().filter(|p| matches!(p, Piece::Conversion(_))).count() == args => Ok(pieces),
        other => {
            // The older form: the same number of percent signs and arguments, none followed by a letter or digit.
            let bare = fmt.split('%').skip(1).all(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()));
            if args > 0 && bare && fmt.matches('%').count() == args {
                let mut pieces = vec![];
                for (i, text) in fmt.split('%').enumerate() {
                    if i > 0 {
                        pieces.push(Piece::Conversion(Spec::default()));
                    }
                    pieces.push(Piece::Text(text.to_string()));
                }
                return Ok(pieces);
            }
            other
        }
    }
}

fn printf(fmt: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = vec![];
    let mut text = String::new();
    let mut chars = fmt.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let mut spec = Spec::default();
        while let Some(&f) = chars.peek() {
            match f {
                '-' => spec.left = true,
                '+' => spec.plus = true,
                ' ' => spec.space = true,
                '#' => spec.alternate = true,
                '0' => spec.zero = true,
                _ => break,
            }
            chars.next();
        }
        let number = |chars: &mut std::iter::Peekable<std::str::Chars>| -> Result<usize, String> {
            let mut n = 0usize;
            while let Some(d) = chars.peek().and_then(|c| c.to_digit(10)) {
                n = n * 10 + d as usize;
                if n > WIDEST {
                    return Err(format!("a width or precision above {WIDEST} in a format"));
                }
                chars.next();
            }
            Ok(n)
        };
        spec.width = number(&mut chars)?;
        if chars.peek() == Some(&'.') {
            chars.next();
            spec.precision = Some(number(&mut chars)?);
        }
        while chars.peek().is_some_and(|c| "hljztLq".contains(*c)) {
            chars.next();
        }
        match chars.next() {
            Some('%') => text.push('%'),
            Some(c) if "diuoxXcpeEfFgGaA".contains(c) => {
                spec.conversion = Some(c);
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Conversion(spec));
            }
            Some(c @ ('s' | 'n')) => return Err(format!("`%{c}` is refused in a kernel's format")),
            Some(c) => return Err(format!("`%{}` is not a conversion", c.escape_default())),
            None => return Err(ENDS_WITHIN.to_string()),
        }
    }
    pieces.push(Piece::Text(text));
    Ok(pieces)
}

fn tile(out: &mut String, spec: &Spec, v: &PrintValue) {
    fn level(out: &mut String, spec: &Spec, v: &PrintValue, shape: &[u64], at: &mut usize) {
        match shape {
            [] => {
                let bits = v.bits.get(*at).or(v.bits.first()).copied().unwrap_or(0);
                out.push_str(&element(spec, v, bits));
                *at += 1;
            }
            [n, inner @ ..] => {
                out.push('[');
                for i in 0..*n {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    level(out, spec, v, inner, at);
                }
                out.push(']');
            }
        }
    }
    level(out, spec, v, &v.shape, &mut 0);
}

fn element(spec: &Spec, v: &PrintValue, bits: u64) -> String {
    let conversion = spec.conversion.unwrap_or(default_letter(v.ty));
    match conversion {
        'p' => pad(spec, "", "0x", format!("{:x}", unsigned(v, bits)), false),
        'c' => {
            let c = char::from_u32(unsigned(v, bits) as u32 & 0xff).unwrap_or('?');
            pad(spec, "", "", c.to_string(), false)
        }
        'd' | 'i' => {
            let n = signed(v, bits);
            integer(spec, sign(spec, n < 0), "", n.unsigned_abs().to_string())
        }
        'u' => integer(spec, "", "", unsigned(v, bits).to_string()),
        'o' => integer(spec, "", if spec.alternate { "0" } else { "" }, format!("{:o}", unsigned(v, bits))),
        'x' | 'X' => {
            let n = unsigned(v, bits);
            let digits = if conversion == 'x' { format!("{n:x}") } else { format!("{n:X}") };
            let prefix = match (spec.alternate && n != 0, conversion) {
                (true, 'x') => "0x",
                (true, _) => "0X",
                _ => "",
            };
            integer(spec, "", prefix, digits)
        }
        _ => floating(spec, conversion, number(v, bits)),
    }
}

/// The element as a float; exact for every type but i64.
fn number(v: &PrintValue, bits: u64) -> f64 {
    match v.ty {
        Ty::Ptr(_) => bits as f64,
        Ty::Num(d) if d.is_float() => to_f64(d, bits),
        Ty::Num(_) => signed(v, bits) as f64,
    }
}

fn signed(v: &PrintValue, bits: u64) -> i64 {
    match v.ty {
        Ty::Num(d) if d.is_float() => number(v, bits) as i64,
        Ty::Num(DType::I1) => (bits & 1) as i64,
        ty => {
            let shift = 64 - ty.held().bits();
            ((bits << shift) as i64) >> shift
        }
    }
}

fn unsigned(v: &PrintValue, bits: u64) -> u64 {
    match v.ty {
        Ty::Num(d) if d.is_float() => signed(v, bits) as u64,
        ty => bits & ty.held().mask(),
    }
}

fn sign(spec: &Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn integer(spec: &Spec, sign: &str, prefix: &str, mut digits: String) -> String {
    if let Some(p) = spec.precision {
        if p == 0 && digits == "0" {
            digits.clear();
        }
        let have = digits.len() + if prefix == "0" { 1 } else { 0 };
        digits.insert_str(0, &"0".repeat(p.saturating_sub(have)));
    }
    let prefix = if prefix == "0" && digits.starts_with('0') { "" } else { prefix };
    pad(spec, sign, prefix, digits, spec.precision.is_none())
}

fn floating(spec: &Spec, conversion: char, x: f64) -> String {
    let upper = conversion.is_ascii_uppercase();
    let sign = sign(spec, x.is_sign_negative() && !x.is_nan());
    if !x.is_finite() {
        let word = if x.is_nan() { "nan" } else { "inf" };
        let word = if upper { word.to_uppercase() } else { word.to_string() };
        return pad(spec, sign, "", word, false);
    }
    let x = x.abs();
    let body = match conversion.to_ascii_lowercase() {
        'f' => fixed(x, spec.precision.unwrap_or(6), spec.alternate),
        'e' => scientific(x, spec.precision.unwrap_or(6), spec.alternate),
        'a' => hexadecimal(x, spec.precision, spec.alternate),
        _ => general(x, spec.precision.unwrap_or(6).max(1), spec.alternate),
    };
    let prefix = if conversion.eq_ignore_ascii_case(&'a') { if upper { "0X" } else { "0x" } } else { "" };
    pad(spec, sign, prefix, if upper { body.to_uppercase() } else { body }, true)
}

fn fixed(x: f64, precision: usize, point: bool) -> String {
    let mut s = format!("{x:.precision$}");
    if precision == 0 && point {
        s.push('.');
    }
    s
}

/// `d.ddde+XX`
fn scientific(x: f64, precision: usize, point: bool) -> String {
    let s = format!("{x:.precision$e}");
    let (mantissa, exponent) = s.split_once('e').unwrap_or((&s, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(d) => ('-', d),
        None => ('+', exponent),
    };
    let point = if precision == 0 && point { "." } else { "" };
    format!("{mantissa}{point}e{sign}{digits:0>2}")
}

fn general(x: f64, precision: usize, keep: bool) -> String {
    let probe = format!("{x:.*e}", precision - 1);
    let exponent: i32 = probe.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let strip = |s: String| -> String {
        if keep || !s.contains('.') {
            return s;
        }
        s.trim_end_matches('0').trim_end_matches('.').to_string()
    };
    if exponent < -4 || exponent >= precision as i32 {
        let s = scientific(x, precision - 1, keep);
        match s.split_once('e') {
            Some((m, e)) => format!("{}e{e}", strip(m.to_string())),
            None => s,
        }
    } else {
        strip(fixed(x, (precision as i32 - 1 - exponent).max(0) as usize, keep))
    }
}

/// `h.hhhp+d` without the prefix; subnormals keep a leading zero, as in C's usual implementation.
fn hexadecimal(x: f64, precision: Option<usize>, point: bool) -> String {
    let bits = x.to_bits();
    let mut fraction = bits & ((1 << 52) - 1);
    let biased = (bits >> 52) as i32;
    let mut lead = (biased != 0) as u64;
    let exponent = match (biased, fraction) {
        (0, 0) => 0,
        (0, _) => -1022,
        _ => biased - 1023,
    };
    let mut digits = 13;
    if let Some(p) = precision.filter(|&p| p < 13) {
        let drop = (13 - p) * 4;
        let whole = lead << 52 | fraction;
        let (kept, rest, half) = (whole >> drop, whole & ((1 << drop) - 1), 1u64 << (drop - 1));
        let up = rest > half || rest == half && kept & 1 == 1;
        let rounded = (kept + up as u64) << drop;
        lead = rounded >> 52;
        fraction = rounded & ((1 << 52) - 1);
        digits = p;
    }
    let mut hex = format!("{fraction:013x}");
    match precision {
        None => hex = hex.trim_end_matches('0').to_string(),
        Some(p) if p > 13 => hex.push_str(&"0".repeat(p - 13)),
        Some(_) => hex.truncate(digits),
    }
    let point = if !hex.is_empty() || point { "." } else { "" };
    format!("{lead}{point}{hex}p{exponent:+}")
}

fn pad(spec: &Spec, sign: &str, prefix: &str, body: String, zeros: bool) -> String {
    let len = sign.len() + prefix.len() + body.chars().count();
    let fill = spec.width.saturating_sub(len);
    if spec.left {
        format!("{sign}{prefix}{body}{}", " ".repeat(fill))
    } else if spec.zero && zeros {
        format!("{sign}{prefix}{}{body}", "0".repeat(fill))
    } else {
        format!("{}{sign}{prefix}{body}", " ".repeat(fill))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(fmt: &str, dtype: DType, bits: u64) -> String {
        match format(fmt, &[PrintValue { ty: Ty::Num(dtype), shape: vec![], bits: vec![bits] }]) {
            Ok(s) => s,
            Err(e) => format!("error: {e}"),
        }
    }
    fn int(fmt: &str, n: i32) -> String {
        one(fmt, DType::I32, n as u32 as u64)
    }
    fn float(fmt: &str, x: f64) -> String {
        one(fmt, DType::F64, x.to_bits())
    }

    /// The expected texts are those of C's printf.
    #[test]
    fn integers_as_c_prints_them() {
        assert_eq!(int("[%5d]", -42), "[  -42]");
        assert_eq!(int("[%-5d]", 42), "[42   ]");
        assert_eq!(int("[%05d]", -42), "[-0042]");
        assert_eq!(int("[%+d]", 42), "[+42]");
        assert_eq!(int("[% d]", 42), "[ 42]");
        assert_eq!(int("[%.4d]", -7), "[-0007]");
        assert_eq!(int("[%6.3d]", 7), "[   007]");
        assert_eq!(int("[%06.3d]", 7), "[   007]");
        assert_eq!(int("[%.0d]", 0), "[]");
        assert_eq!(int("%u %%", -1), "4294967295 %");
        assert_eq!(int("%x", 255), "ff");
        assert_eq!(int("%#X", 255), "0XFF");
        assert_eq!(int("%#x", 0), "0");
        assert_eq!(int("%o", 8), "10");
        assert_eq!(int("%#o", 8), "010");
        assert_eq!(int("%lld", -3), "-3");
        assert_eq!(int("%c", 65), "A");
        assert_eq!(one("%d", DType::I1, 1), "1");
        assert_eq!(one("%d", DType::I8, 0xff), "-1");
        assert_eq!(one("%u", DType::I64, u64::MAX), "18446744073709551615");
    }

    #[test]
    fn floats_as_c_prints_them() {
        assert_eq!(float("%f", 1.5), "1.500000");
        assert_eq!(float("%.0f", 2.5), "2");
        assert_eq!(float("%#.0f", 2.0), "2.");
        assert_eq!(float("%e", 12345.678), "1.234568e+04");
        assert_eq!(float("%E", 0.0), "0.000000E+00");
        assert_eq!(float("%g", 0.0001), "0.0001");
        assert_eq!(float("%g", 0.00001), "1e-05");
        assert_eq!(float("%g", 1e6), "1e+06");
        assert_eq!(float("%g", 123456.0), "123456");
        assert_eq!(float("%#g", 1.0), "1.00000");
        assert_eq!(float("%.3g", 1234.0), "1.23e+03");
        assert_eq!(float("%+08.3f", 3.25159), "+003.252");
        assert_eq!(float("[%-8.1f]", 1.0), "[1.0     ]");
        assert_eq!(float("%a", 1.0), "0x1p+0");
        assert_eq!(float("%a", -0.15625), "-0x1.4p-3");
        assert_eq!(float("%.1a", 1.96875), "0x2.0p+0");
        assert_eq!(float("%A", 10.0), "0X1.4P+3");
        assert_eq!(float("[%5f]", f64::INFINITY), "[  inf]");
        assert_eq!(float("[%05F]", f64::NEG_INFINITY), "[ -INF]");
        assert_eq!(float("%f", f64::NAN), "nan");
        assert_eq!(one("%g", DType::F16, 0x3555), "0.333252");
    }

    #[test]
    fn tiles_nest_and_formats_must_fit() {
        let tile = PrintValue { ty: Ty::Num(DType::I32), shape: vec![2, 2], bits: vec![1, 2, 3, 4] };
        assert_eq!(format("%d;", std::slice::from_ref(&tile)), Ok("[[1, 2], [3, 4]];".into()));
        let scalar = PrintValue { shape: vec![], bits: vec![9], ..tile.clone() };
        assert_eq!(format("<%, %> tiles", &[scalar.clone(), scalar.clone()]), Ok("<9, 9> tiles".into()));
        for unfinished in ["<%, %>", "%d, %", "%d 100%"] {
            assert_eq!(format(unfinished, &[scalar.clone(), scalar.clone()]), Err(ENDS_WITHIN.into()));
        }
        let pointer = PrintValue { ty: Ty::Ptr(DType::I32), bits: vec![0x1f0], ..scalar.clone() };
        assert_eq!(format("%p", &[pointer]), Ok("0x1f0".into()));
        for bad in ["%n", "%s", "%d %d", "", "%5", "%y", "%99999d"] {
            assert!(format(bad, std::slice::from_ref(&scalar)).is_err(), "{bad}");
        }
        assert_eq!(conversions("%d %% %f", 2), Ok(2));
    }
}
