//! Parses the facts about parameters that a cuTile kernel's name carries.
//!
//! In: a symbol such as `add_Kt1_A1f32_1i16t1_p16_A2f16_2t1l0_w_Sf32_I128`. Out: calling convention 1 and four
//! parameters: an array of rank 1 whose length is a multiple of 16, stride 1 and address a multiple of 16; an array of
//! rank 2 with 64-bit indices whose last stride is 1; an f32; the constant 128.
//!
//! ```text
//! symbol   = name "_K" convention { "_" param }
//! param    = "A" array | "L" groups ["i"] "A" array | "T" count { param } | "D" text text count { param }
//!          | "S" dtype | "P" dtype | "M" | "R" | constant
//! array    = rank dtype { "_" mask {axis} } [ "_" ["p" int] groups ["i"] ["u" | "w"] ]
//! axis     = "s" int (length) | "i" int (length is a multiple) | "t" int (stride) | "v" int (stride is a multiple)
//!          | "l" int (stride is at least)
//! groups   = { "g" hex }        mask = hex, one bit per axis        int = ["_"] digits, "_" for minus
//! constant = "B" bit | "I" int | "F" 16 hex digits | "Cn_" | "Cs_" text | "Ce_" text text text | "Cd_" dtype
//! text     = { letter | digit | "_" escape } "_z"
//! ```

/// The promises about one axis of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    pub length: Option<i64>,
    pub length_multiple: i64,
    /// Strides count elements.
    pub stride: Option<i64>,
    pub stride_multiple: i64,
    pub stride_least: Option<i64>,
}

impl Default for Axis {
    fn default() -> Axis {
        Axis { length: None, length_multiple: 1, stride: None, stride_multiple: 1, stride_least: None }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Array {
    /// Such as `bf16`, in cuTile's spelling.
    pub dtype: String,
    pub axes: Vec<Axis>,
    /// A multiple of the address, in bytes.
    pub address_multiple: i64,
    /// Elements may lie over each other.
    pub overlaps_itself: bool,
    /// Lengths and strides are passed as `i64`.
    pub wide: bool,
}

impl Array {
    /// Bytes of an element; `None` for a type that is not known here.
    pub fn element_bytes(&self) -> Option<u64> {
        Some(match self.dtype.as_str() {
            "b8" | "u8" | "i8" | "f8m3fn" | "f8m2" | "f8m0fnu" => 1,
            "u16" | "i16" | "f16" | "bf16" => 2,
            "u32" | "i32" | "f32" | "tf32" => 4,
            "u64" | "i64" | "f64" => 8,
            _ => return None,
        })
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parameter {
    Array(Array),
    /// A table in memory, for each array its address, lengths and strides as `i64`; then how many there are.
    List(Array),
    Group(Vec<Parameter>),
    /// One value.
    Scalar,
    Pointer,
    /// Nothing is passed.
    Constant,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The Python function.
    pub function: String,
    pub convention: String,
    pub parameters: Vec<Parameter>,
}

/// `None` for a name that is not of this form.
pub fn parse(symbol: &str) -> Option<Signature> {
    let (function, rest) = symbol.rsplit_once("_K")?;
    let (convention, rest) = rest.split_at(rest.find('_').unwrap_or(rest.len()));
    if convention.is_empty() {
        return None;
    }
    let mut cursor = Cursor { rest, depth: 0 };
    let mut parameters = Vec::new();
    while !cursor.rest.is_empty() {
        cursor.eat("_")?;
        parameters.push(cursor.parameter()?);
    }
    Some(Signature { function: function.to_string(), convention: convention.to_string(), parameters })
}

struct Cursor<'a> {
    rest: &'a str,
    depth: u32,
}

/// No program nests deeper, and a hostile name ends here rather than on the stack.
const MAX_DEPTH: u32 = 32;
/// Largest rank that is believed.
const MAX_RANK: usize = 64;

impl<'a> Cursor<'a> {
    fn eat(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }
    fn has(&mut self, text: &str) -> bool {
        self.eat(text).is_some()
    }
    fn take(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !accept(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
    fn digits<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.take(|c| c.is_ascii_digit()).parse().ok()
    }
    fn int(&mut self) -> Option<i64> {
        if self.has("_") { self.digits::<i64>().map(|n| -n) } else { self.digits() }
    }
    fn multiple(&mut self) -> Option<i64> {
        self.int().filter(|&n| n > 0)
    }
    fn dtype(&mut self) -> Option<String> {
        let name = self.take(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        (!name.is_empty()).then(|| name.to_string())
    }
    fn groups(&mut self) {
        while self.has("g") {
            self.take(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
        }
    }

    /// Skips a text.
    fn text(&mut self) -> Option<()> {
        loop {
            self.take(|c| c.is_ascii_alphanumeric());
            self.eat("_")?;
            let escape = self.rest.chars().next().filter(char::is_ascii)?;
            self.rest = &self.rest[1..];
            if escape == 'z' {
                return Some(());
            }
        }
    }

    fn several(&mut self) -> Option<Parameter> {
        let count: usize = self.digits()?;
        if count > self.rest.len() {
            return None;
        }
        (0..count).map(|_| self.parameter()).collect::<Option<_>>().map(Parameter::Group)
    }

    fn parameter(&mut self) -> Option<Parameter> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let first = self.rest.chars().next().filter(char::is_ascii)?;
        self.rest = &self.rest[1..];
        let parameter = match first {
            'A' => Parameter::Array(self.array()?),
            'L' => {
                self.groups();
                self.has("i");
                self.eat("A")?;
                Parameter::List(self.array()?)
            }
            'T' => self.several()?,
            'D' => {
                self.text()?;
                self.text()?;
                self.several()?
            }
            'S' => self.dtype().map(|_| Parameter::Scalar)?,
            'P' => self.dtype().map(|_| Parameter::Pointer)?,
            'M' => Parameter::Pointer,
            'R' | 'B' | 'I' | 'F' | 'C' => {
                match first {
                    'B' => drop(self.digits::<u8>()?),
                    'I' => {
                        // A constant may be longer than any number here.
                        self.has("_");
                        self.take(|c| c.is_ascii_digit());
                    }
                    'F' => drop(self.take(|c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase())),
                    'C' if self.has("n_") => {}
                    'C' if self.has("s_") => self.text()?,
                    'C' if self.has("e_") => (0..3).try_for_each(|_| self.text())?,
                    'C' if self.has("d_") => drop(self.dtype()?),
                    'C' => return None,
                    _ => {}
                }
                Parameter::Constant
            }
            _ => return None,
        };
        self.depth -= 1;
        Some(parameter)
    }

    fn array(&mut self) -> Option<Array> {
        let rank = self.digits::<usize>().filter(|&n| n <= MAX_RANK)?;
        let dtype = self.dtype()?;
        let mut axes = vec![Axis::default(); rank];
        let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        while self.rest.strip_prefix('_').is_some_and(|r| r.starts_with(is_hex)) {
            self.eat("_")?;
            let mask = u64::from_str_radix(self.take(is_hex), 16).ok()?;
            let length = if self.has("s") { Some(self.int()?) } else { None };
            let length_multiple = if self.has("i") { Some(self.multiple()?) } else { None };
            let stride = if self.has("t") { Some(self.int()?) } else { None };
            let stride_multiple = if self.has("v") { Some(self.multiple()?) } else { None };
            let stride_least = if self.has("l") { Some(self.int()?) } else { None };
            if mask == 0 || mask.checked_shr(rank as u32).unwrap_or(0) != 0 {
                return None;
            }
            for (i, axis) in axes.iter_mut().enumerate().filter(|(i, _)| mask >> i & 1 == 1) {
                debug_assert!(i < MAX_RANK);
                axis.length = length.or(axis.length);
                axis.length_multiple = length_multiple.unwrap_or(axis.length_multiple);
                axis.stride = stride.or(axis.stride);
                axis.stride_multiple = stride_multiple.unwrap_or(axis.stride_multiple);
                axis.stride_least = stride_least.or(axis.stride_least);
            }
        }
        let mut array = Array { dtype, axes, address_multiple: 1, overlaps_itself: false, wide: false };
        if self.rest.strip_prefix('_').is_some_and(|r| r.starts_with(|c: char| c.is_ascii_lowercase())) {
            self.eat("_")?;
            if self.has("p") {
                array.address_multiple = self.multiple()?;
            }
            self.groups();
            array.overlaps_itself = self.has("i");
            array.wide = !self.has("u") && self.has("w");
        }
        Some(array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(symbol: &str) -> Array {
        match parse(&format!("k_Kt1_{symbol}")).unwrap().parameters.as_slice() {
            [Parameter::Array(a)] | [Parameter::List(a)] => a.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_example_of_the_module() {
        let s = parse("add_Kt1_A1f32_1i16t1_p16_A2f16_2t1_1l0_w_Sf32_I128").unwrap();
        assert_eq!((s.function.as_str(), s.convention.as_str(), s.parameters.len()), ("add", "t1", 4));
        assert_eq!(s.parameters[2..], [Parameter::Scalar, Parameter::Constant]);
        let Parameter::Array(a) = &s.parameters[0] else { panic!() };
        let axis = Axis { length_multiple: 16, stride: Some(1), ..Axis::default() };
        assert_eq!((a.axes.as_slice(), a.address_multiple, a.wide), ([axis].as_slice(), 16, false));
        let Parameter::Array(b) = &s.parameters[1] else { panic!() };
        assert_eq!((b.axes[0].stride_least, b.axes[1].stride, b.wide), (Some(0), Some(1), true));
        assert_eq!(b.element_bytes(), Some(2));
    }

    #[test]
    fn names_with_underscores_and_capitals() {
        assert_eq!(parse("my_K_kernel_Kt2").unwrap().function, "my_K_kernel");
        assert_eq!(parse("saxpy"), None);
        assert_eq!(parse("k_Kt1_Z"), None);
        assert_eq!(parse("k_K"), None);
    }

    #[test]
    fn lists_tuples_and_dataclasses() {
        let s = parse("k_Kt2_Lg0iA2f32_2t1_p16g1i_T2A1i64_1s8t1Sf32_D__main_____z_Point_z2B1Cn_").unwrap();
        let Parameter::List(a) = &s.parameters[0] else { panic!() };
        assert!(a.overlaps_itself && a.address_multiple == 16 && a.axes.len() == 2);
        let Parameter::Group(items) = &s.parameters[1] else { panic!() };
        let Parameter::Array(a) = &items[0] else { panic!() };
        assert_eq!((a.axes[0].length, &items[1]), (Some(8), &Parameter::Scalar));
        assert_eq!(s.parameters[2], Parameter::Group(vec![Parameter::Constant, Parameter::Constant]));
    }

    #[test]
    fn constants_pass_nothing() {
        let s = parse("k_Kt1_I_7_B0_F3ff8000000000000_Cs_a__b_7f_z_Cd_bf16_I99999999999999999999999").unwrap();
        assert!(s.parameters.iter().all(|p| *p == Parameter::Constant));
        assert_eq!(s.parameters.len(), 6);
    }

    #[test]
    fn masks_are_hexadecimal() {
        let a = array("A5f8m2_1ft1_3i4");
        assert_eq!(a.axes.iter().map(|a| a.stride).collect::<Vec<_>>(), [Some(1); 5]);
        assert_eq!(a.axes.iter().map(|a| a.length_multiple).collect::<Vec<_>>(), [4, 4, 1, 1, 1]);
        assert_eq!(array("A1f32_1l_3").axes[0].stride_least, Some(-3));
        assert_eq!(parse("k_Kt1_A1f32_2t1"), None);
        assert_eq!(parse("k_Kt1_A99999999999f32"), None);
    }

    #[test]
    fn hostile_names_end() {
        for bad in ["T9", "T1T1T1", "L", "A", "A1", "Cs_abc", "D_z", "A1f32_0t1", "é", "T99999999999999999999S"] {
            assert_eq!(parse(&format!("k_Kt1_{bad}")), None, "{bad}");
        }
        assert_eq!(parse(&format!("k_Kt1_{}", "T1".repeat(100_000))), None);
    }
}
