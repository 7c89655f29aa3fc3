//! Rules that hold for a type wherever it occurs.

use crate::base::Code;
use crate::cuda_tile::ir::*;
use crate::cuda_tile::words::Words;
use crate::num::DType;

/// The code, sentence and perhaps help line of an error.
pub type Problem = (Code, String, Option<String>);

/// The most elements of a tile.
pub const MOST_ELEMENTS: u64 = 1 << 24;

pub fn problems(ty: &Type) -> Vec<Problem> {
    match ty {
        Type::Tile(t) => tile_problems(t),
        Type::TensorView(t) => tensor_problems(t),
        Type::View(v) => view_problems(v),
        Type::Token => vec![],
    }
}

pub fn tile_problems(t: &TileType) -> Vec<Problem> {
    let mut out = vec![];
    for &n in &t.shape {
        dimension(n, "tile", &mut out);
    }
    elements(&t.shape, &mut out);
    match t.elem {
        Elem::Ptr(d) => pointee(d, &mut out),
        Elem::Num(DType::F4E2M1FN) if !t.shape.iter().any(|n| n % 2 == 0) => {
            out.push((
                Code::BadDimension,
                "a tile of f4E2M1FN needs an even dimension, since two elements share a byte".into(),
                None,
            ));
        }
        Elem::Num(_) => {}
    }
    out
}

fn pointee(d: DType, out: &mut Vec<Problem>) {
    if d == DType::I4 {
        out.push((Code::BadElementType, "a pointer cannot point to i4".into(), Some("load i8 and unpack it".into())));
    }
}

fn dimension(n: u64, what: &str, out: &mut Vec<Problem>) {
    if n == 0 {
        out.push((Code::BadDimension, format!("a {what} dimension must be positive"), None));
    } else if !n.is_power_of_two() {
        let above = n.checked_next_power_of_two().unwrap_or(1 << 63);
        let help = format!("use {} or {above}, and mask the rest", above / 2);
        out.push((Code::BadDimension, format!("{what} dimension {n} is not a power of two"), Some(help)));
    }
}

fn elements(shape: &[u64], out: &mut Vec<Problem>) {
    let n = shape.iter().try_fold(1u64, |p, &n| p.checked_mul(n));
    if n.is_none_or(|n| n > MOST_ELEMENTS) {
        let text = match n {
            Some(n) => format!("a tile of {n} elements is too large; the limit is {MOST_ELEMENTS}"),
            None => format!("the tile is too large; the limit is {MOST_ELEMENTS} elements"),
        };
        out.push((Code::TileTooLarge, text, None));
    }
}

fn tensor_problems(t: &TensorViewType) -> Vec<Problem> {
    let mut out = vec![];
    pointee(t.elem, &mut out);
    if t.shape.len() != t.strides.len() {
        let text = format!("a tensor view of rank {} needs as many strides, not {}", t.shape.len(), t.strides.len());
        out.push((Code::BadView, text, None));
    }
    for (list, what) in [(&t.shape, "extent"), (&t.strides, "stride")] {
        for n in list.iter().flatten().filter(|&&n| n <= 0) {
            out.push((Code::BadView, format!("the {what} {n} of a tensor view must be positive"), None));
        }
    }
    if t.elem == DType::F4E2M1FN && !t.shape.is_empty() {
        let unit = t.shape.iter().zip(&t.strides).any(|(n, s)| *s == Some(1) && n.is_none_or(|n| n % 2 == 0));
        if !unit {
            let text = "a tensor view of 4-bit elements needs a dimension of stride 1 and even extent".into();
            out.push((Code::BadView, text, None));
        }
    }
    out
}

fn view_problems(v: &TileViewType) -> Vec<Problem> {
    let mut out = tensor_problems(&v.tensor);
    let mut bad = |text: String| out.push((Code::BadView, text, None));
    let rank = v.tensor.shape.len();
    if rank == 0 {
        bad("a view needs a tensor of rank 1 or more".into());
    }
    if v.tile.len() != rank {
        bad(format!("a view's tile must have the rank of its tensor, {rank}, not {}", v.tile.len()));
    }
    match &v.kind {
        ViewKind::Strided { traversal_strides } => {
            if traversal_strides.len() != v.tile.len() {
                bad(format!(
                    "a strided view of rank {} needs as many traversal strides, not {}",
                    v.tile.len(),
                    traversal_strides.len()
                ));
            }
            for n in traversal_strides.iter().filter(|&&n| n <= 0) {
                bad(format!("the traversal stride {n} must be positive"));
            }
        }
        ViewKind::GatherScatter { sparse_dim } => {
            if *sparse_dim as usize >= v.tile.len() {
                bad(format!("sparse_dim {sparse_dim} is not a dimension of the tile"));
            }
        }
        ViewKind::Partition => {}
    }
    if !matches!(v.kind, ViewKind::GatherScatter { .. }) && !is_permutation(&v.dim_map, v.tile.len()) {
        bad(format!("dim_map {:?} is not a permutation of the tile's dimensions", v.dim_map));
    }
    if matches!(v.padding, Some(Padding::NegZero | Padding::Nan | Padding::PosInf | Padding::NegInf))
        && v.tensor.elem.is_int()
    {
        bad(format!("elements of {} can only be padded with zero", v.tensor.elem));
    }
    if v.tile.iter().any(|&n| n <= 0) {
        bad("the dimensions of a view's tile must be positive".into());
        return out;
    }
    let shape: Vec<u64> = v.tile.iter().map(|&n| n as u64).collect();
    out.extend(tile_problems(&TileType::of(shape, Elem::Num(v.tensor.elem))));
    out
}

pub fn is_permutation(map: &[i32], rank: usize) -> bool {
    let mut sorted = map.to_vec();
    sorted.sort_unstable();
    sorted.len() == rank && sorted.iter().enumerate().all(|(i, &m)| m == i as i32)
}

/// The text of a type in messages.
pub fn show(ty: &Type) -> String {
    match ty {
        Type::Tile(t) => show_tile(t),
        Type::TensorView(t) => show_tensor(t),
        Type::View(v) => {
            let list = |l: &[i32], by: &str| l.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(by);
            let (name, extra, end) = match &v.kind {
                ViewKind::Partition => ("partition_view", String::new(), String::new()),
                ViewKind::Strided { traversal_strides } => {
                    ("strided_view", format!(", traversal_strides=[{}]", list(traversal_strides, ",")), String::new())
                }
                ViewKind::GatherScatter { sparse_dim } => {
                    ("gather_scatter_view", String::new(), format!(", sparse_dim={sparse_dim}"))
                }
            };
            let padding = match v.padding {
                None => "",
                Some(Padding::Zero) => ", padding_value = zero",
                Some(Padding::NegZero) => ", padding_value = neg_zero",
                Some(Padding::Nan) => ", padding_value = nan",
                Some(Padding::PosInf) => ", padding_value = pos_inf",
                Some(Padding::NegInf) => ", padding_value = neg_inf",
            };
            let map = match v.dim_map.iter().enumerate().all(|(i, &m)| m == i as i32) {
                true => String::new(),
                false => format!(", dim_map=[{}]", list(&v.dim_map, ", ")),
            };
            format!("{name}<tile=({}){extra}{padding}, {}{map}{end}>", list(&v.tile, "x"), show_tensor(&v.tensor))
        }
        Type::Token => "token".into(),
    }
}

pub fn show_tile(t: &TileType) -> String {
    let dims: String = t.shape.iter().map(|n| format!("{n}x")).collect();
    match t.elem {
        Elem::Num(d) => format!("tile<{dims}{d}>"),
        Elem::Ptr(d) => {
            format!("tile<{dims}ptr<{d}{}>>", t.ptr_attr.map_or(String::new(), |a| format!(", <{}>", a.word())))
        }
    }
}

fn show_tensor(t: &TensorViewType) -> String {
    let attr = t.ptr_attr.map_or(String::new(), |a| format!(", #cuda_tile.ptr_attr<{}>", a.word()));
    let number = |n: &Option<i64>| n.map_or("?".to_string(), |n| n.to_string());
    let dims: String = t.shape.iter().map(|n| number(n) + "x").collect();
    if t.strides.is_empty() {
        return format!("tensor_view<{dims}{}{attr}>", t.elem);
    }
    let strides = t.strides.iter().map(number).collect::<Vec<_>>().join(",");
    format!("tensor_view<{dims}{}, strides=[{strides}]{attr}>", t.elem)
}
