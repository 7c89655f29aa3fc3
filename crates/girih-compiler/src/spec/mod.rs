//! The text forms of launches: argument specifications, grids, and launch comments in a tile file.
//!
//! ```text
//! SPEC := DTYPE ":" NUMBER                                     a scalar
//!       | ("zeros"|"ones"|"arange"|"rand"|"randn") ":" DTYPE "[" (N ("x" N)*)? "]" ("@" SEED)?
//!       | FILE.npy | DTYPE "@" FILE.npy                         an array, or its bit patterns under another type
//!       | "@" NAME                                              the buffer of another parameter again
//!       | "ptrs:" NAME ("+" NAME)*                              a table of the addresses of other buffers
//! ```

use std::path::PathBuf;

use crate::cuda_tile::ir::{Elem as TileElem, Func, Type};
use crate::cuda_tile::verify;
use crate::graph::{self, Elem};
use crate::num::{DType, parse_float, values};

/// One parameter of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Without `%`.
    pub name: String,
    pub kind: ParamKind,
}

/// The kind of values that a parameter takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamKind {
    Scalar(DType),
    Pointer(DType),
}

impl ParamKind {
    /// An argument that fits, as it is written.
    pub fn example(self) -> String {
        match self {
            ParamKind::Scalar(dtype) => format!("{dtype}:64"),
            ParamKind::Pointer(dtype) if dtype.is_int() => format!("rand:{dtype}[64]"),
            ParamKind::Pointer(dtype) => format!("randn:{dtype}[64]"),
        }
    }
}

impl std::fmt::Display for ParamKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ParamKind::Scalar(d) => write!(f, "{d}"),
            ParamKind::Pointer(d) => write!(f, "ptr<{d}>"),
        }
    }
}

/// The parameters of an entry, in order.
pub fn params(entry: &Func) -> Result<Vec<Param>, String> {
    let mut params = Vec::new();
    for (i, &value) in entry.params().iter().enumerate() {
        let kind = match entry.ty(value) {
            Type::Tile(t) => match t.elem {
                TileElem::Num(d) => ParamKind::Scalar(d),
                TileElem::Ptr(d) => ParamKind::Pointer(d),
            },
            other => {
                let (name, other) = (&entry.name, verify::show(other));
                return Err(format!("parameter {i} of `{name}` is {other}, which no launch can pass"));
            }
        };
        let name = entry.values.get(value).and_then(|v| v.name.clone()).unwrap_or_else(|| i.to_string());
        params.push(Param { name, kind });
    }
    Ok(params)
}

/// A description of an argument.
#[derive(Clone, PartialEq, Debug)]
pub enum ArgSpec {
    Scalar { dtype: DType, bits: u64 },
    Fill { fill: Fill, dtype: DType, shape: Vec<u64>, seed: Option<u64> },
    File { path: PathBuf, dtype: Option<DType> },
    Same(String),
    Pointers(Vec<String>),
}

/// The initial contents of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    Zeros,
    Ones,
    /// 0, 1, 2, ... (integers wrap, floats round).
    Arange,
    /// Floats: uniform in [0, 1). Integers: every value of the type alike.
    Rand,
    /// Floats: about normal, mean 0, deviation 1, never past 6.
    Randn,
}

impl Fill {
    pub const NAMES: [(&'static str, Fill); 5] = [
        ("zeros", Fill::Zeros),
        ("ones", Fill::Ones),
        ("arange", Fill::Arange),
        ("rand", Fill::Rand),
        ("randn", Fill::Randn),
    ];

    /// Why a buffer of this type cannot be filled like this.
    pub fn refusal(self, dtype: DType) -> Option<String> {
        (self == Fill::Randn && dtype.is_int())
            .then(|| format!("randn gives floats, but {dtype} is an integer type; use rand"))
    }

    /// The bits of element `i`; random ones depend on `seed` and `i` alone.
    pub fn element(self, dtype: DType, seed: u64, i: u64) -> u64 {
        match self {
            Fill::Zeros => 0,
            Fill::Ones => values::one(dtype),
            Fill::Arange if dtype.is_int() => i & dtype.mask(),
            Fill::Arange => values::from_f64(dtype, i as f64),
            Fill::Rand => values::uniform(dtype, seed, i),
            Fill::Randn => values::from_f64(dtype, values::normal(seed, i)),
        }
    }
}

/// The bits of element `i` of the `at`-th input of a model; `None` where the input must be given. Random ones depend on the seed, the
/// input and the place alone.
pub fn input_element(fill: graph::Fill, elem: Elem, seed: u64, at: usize, i: u64) -> Option<u64> {
    let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(at as u64 + 1);
    let dtype = elem.dtype;
    let from = |x: f64| match elem.is_bool() {
        true => u64::from(x != 0.0),
        false if dtype.is_int() => x as i64 as u64 & dtype.mask(),
        false => values::from_f64(dtype, x),
    };
    let unit = || f64::from_bits(values::uniform(DType::F64, seed, i));
    Some(match fill {
        graph::Fill::Given => return None,
        graph::Fill::Normal if dtype.is_float() => Fill::Randn.element(dtype, seed, i),
        graph::Fill::Normal => from(values::normal(seed, i).round()),
        graph::Fill::Uniform { lo, hi } => from(lo + (hi - lo) * unit()),
        graph::Fill::Integers { lo, hi } => {
            let span = hi.saturating_sub(lo).max(1) as f64;
            from(lo as f64 + (unit() * span).floor())
        }
        graph::Fill::Constant(x) => from(x),
    })
}

/// An element type's name in any case.
fn dtype(name: &str) -> Result<DType, String> {
    let any_case = || DType::ALL.into_iter().find(|d| d.name().eq_ignore_ascii_case(name));
    DType::from_name(name).or_else(any_case).ok_or_else(|| {
        let names: Vec<&str> = DType::ALL.iter().map(|d| d.name()).collect();
        format!("unknown element type `{name}`; the types are {}", names.join(", "))
    })
}

impl std::str::FromStr for ArgSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<ArgSpec, String> {
        if let Some(name) = text.strip_prefix('@') {
            return if name.is_empty() {
                Err("`@` needs the name of a parameter".into())
            } else {
                Ok(ArgSpec::Same(name.into()))
            };
        }
        if let Some(names) = text.strip_prefix("ptrs:") {
            let names: Vec<String> = names.split('+').map(String::from).collect();
            return if names.iter().any(String::is_empty) {
                Err("`ptrs:` needs names of parameters, `ptrs:A+B`".into())
            } else {
                Ok(ArgSpec::Pointers(names))
            };
        }
        if let Some((kind, rest)) = text.split_once(':') {
            if let Some((_, fill)) = Fill::NAMES.iter().find(|(n, _)| *n == kind) {
                return fill_spec(*fill, rest);
            }
            if let Ok(dtype) = dtype(kind) {
                return Ok(ArgSpec::Scalar { dtype, bits: number(dtype, rest)? });
            }
        }
        if let Some((name, path)) = text.split_once('@')
            && path.ends_with(".npy")
            && let Ok(dtype) = dtype(name)
        {
            return Ok(ArgSpec::File { path: path.into(), dtype: Some(dtype) });
        }
        if text.ends_with(".npy") {
            return Ok(ArgSpec::File { path: text.into(), dtype: None });
        }
        Err(format!(
            "expected an argument, found `{text}`; write FILE.npy, `i32:512`, `f32:2.5`, `randn:f16[512x512]` (or zeros, ones, arange, \
             rand), `@A` or `ptrs:A+B`"
        ))
    }
}

fn fill_spec(fill: Fill, text: &str) -> Result<ArgSpec, String> {
    let (text, seed) = match text.split_once('@') {
        Some((t, seed)) => (t, Some(seed.parse::<u64>().map_err(|_| format!("expected a seed, found `{seed}`"))?)),
        None => (text, None),
    };
    let wanted = || format!("expected a buffer type such as `f32[4x128]`, found `{text}`");
    let (name, dims) = text.split_once('[').ok_or_else(wanted)?;
    let dims = dims.strip_suffix(']').ok_or_else(wanted)?;
    let dims: Vec<&str> = if dims.is_empty() { vec![] } else { dims.split('x').collect() };
    let shape = dims.iter().map(|d| d.parse::<u64>().map_err(|_| wanted())).collect::<Result<Vec<u64>, String>>()?;
    Ok(ArgSpec::Fill { fill, dtype: dtype(name)?, shape, seed })
}

/// The bits of a number written for a type: decimal, `0x` for a bit pattern, `true` and `false` for i1.
fn number(dtype: DType, text: &str) -> Result<u64, String> {
    let bad = || format!("expected a number of type {dtype}, found `{text}`");
    if dtype.is_float() {
        return parse_float(dtype, &text.to_ascii_lowercase()).ok_or_else(bad);
    }
    if let Some(hex) = text.strip_prefix("0x") {
        let bits = u64::from_str_radix(hex, 16).map_err(|_| bad())?;
        return if bits & !dtype.mask() == 0 {
            Ok(bits)
        } else {
            Err(format!("`{text}` has more than {} bits", dtype.bits()))
        };
    }
    if dtype == DType::I1 && (text == "true" || text == "false") {
        return Ok(u64::from(text == "true"));
    }
    let value = text.parse::<i128>().map_err(|_| bad())?;
    let (lo, hi) = (-(1i128 << (dtype.bits() - 1)), (1i128 << dtype.bits()) - 1);
    if (lo..=hi).contains(&value) {
        Ok(value as u64 & dtype.mask())
    } else {
        Err(format!("{text} does not fit {dtype}"))
    }
}

/// Most blocks along one axis.
pub const MAX_GRID: u32 = (1 << 24) - 1;

/// `4`, `4,4` or `4,4,2`.
pub fn grid(text: &str) -> Result<[u32; 3], String> {
    let mut grid = [1u32; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err(format!("`{text}` has {} numbers; a grid has at most 3", parts.len()));
    }
    for (slot, part) in grid.iter_mut().zip(parts) {
        *slot = match part.trim().parse::<u32>() {
            Ok(n) if (1..=MAX_GRID).contains(&n) => n,
            _ => return Err(format!("expected a number of blocks from 1 to {MAX_GRID}, found `{}`", part.trim())),
        };
    }
    Ok(grid)
}

/// A launch written in a file's comments.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LaunchComment {
    pub entry: Option<String>,
    pub grid: Option<[u32; 3]>,
    pub args: Vec<(String, ArgSpec)>,
}

/// The launch comments of a tile program, or of Kernel IR with `#` in place of `//`: lines
/// `// launch: grid=4,4 A=randn:f16[512x512] ...`, which may name their entry with `entry=NAME`.
pub fn launch_comments(text: &str) -> Result<Vec<LaunchComment>, String> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let comment = line.strip_prefix("//").or_else(|| line.strip_prefix('#'));
        let Some(launch) = comment.and_then(|l| l.trim_start().strip_prefix("launch:")) else {
            continue;
        };
        let mut comment = LaunchComment::default();
        for word in launch.split_whitespace() {
            let at = |e: String| format!("the launch comment on line {}: {e}", number + 1);
            let (name, value) =
                word.split_once('=').ok_or_else(|| at(format!("expected NAME=VALUE, found `{word}`")))?;
            match name {
                "grid" => comment.grid = Some(grid(value).map_err(at)?),
                "entry" => comment.entry = Some(value.to_string()),
                _ => comment.args.push((name.to_string(), value.parse().map_err(at)?)),
            }
        }
        found.push(comment);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ArgSpec, String> {
        text.parse()
    }

    #[test]
    fn scalars() {
        for (text, dtype, bits) in [
            ("i32:512", DType::I32, 512),
            ("i32:-1", DType::I32, 0xffff_ffff),
            ("i8:255", DType::I8, 255),
            ("i64:-9223372036854775808", DType::I64, 1 << 63),
            ("i1:true", DType::I1, 1),
            ("f32:2.5", DType::F32, 0x4020_0000),
            ("F32:-inf", DType::F32, 0xff80_0000),
            ("f32:0x7fc00001", DType::F32, 0x7fc0_0001),
            ("bf16:1", DType::BF16, 0x3f80),
            ("f16:1e-3", DType::F16, 0x1419),
        ] {
            assert_eq!(parse(text), Ok(ArgSpec::Scalar { dtype, bits }), "{text}");
        }
        for text in ["i8:256", "i8:-129", "i32:", "i32:1.5", "f32:abc", "i16:0x10000", "i99:1", ":", "", "x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn buffers_and_references() {
        assert_eq!(
            parse("randn:f16[512x16]@7"),
            Ok(ArgSpec::Fill { fill: Fill::Randn, dtype: DType::F16, shape: vec![512, 16], seed: Some(7) })
        );
        assert_eq!(
            parse("zeros:i1[]"),
            Ok(ArgSpec::Fill { fill: Fill::Zeros, dtype: DType::I1, shape: vec![], seed: None })
        );
        assert_eq!(parse("a@b.npy"), Ok(ArgSpec::File { path: "a@b.npy".into(), dtype: None }));
        assert_eq!(parse("bf16@d/x.npy"), Ok(ArgSpec::File { path: "d/x.npy".into(), dtype: Some(DType::BF16) }));
        assert_eq!(parse("@A"), Ok(ArgSpec::Same("A".into())));
        assert_eq!(parse("ptrs:A+B"), Ok(ArgSpec::Pointers(vec!["A".into(), "B".into()])));
        for text in
            ["zeros:f32", "zeros:f32[", "zeros:f32[2x]", "zeros:f32[-1]", "zeros:q[1]", "rand:f32[1]@x", "@", "ptrs:A+"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn grids() {
        assert_eq!(grid("4"), Ok([4, 1, 1]));
        assert_eq!(grid("4,5, 6"), Ok([4, 5, 6]));
        assert_eq!(grid("16777215"), Ok([16777215, 1, 1]));
        for text in ["", "0", "1,0", "16777216", "1,2,3,4", "-1", "a"] {
            assert!(grid(text).is_err(), "{text}");
        }
    }

    #[test]
    fn comments() {
        let text = "// launch: grid=4,4 A=zeros:f32[4] n=i32:3\nmodule\n  //launch: entry=b\n// launches nothing\n";
        let found = launch_comments(text).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].grid, found[0].args.len(), &found[0].args[1].0[..]), (Some([4, 4, 1]), 2, "n"));
        assert_eq!(found[1].entry.as_deref(), Some("b"));
        assert!(launch_comments("x\n// launch: grid=0").unwrap_err().contains("line 2"));
        assert!(launch_comments("// launch: A").is_err());
    }
}
