//! The text of types, in the bare form.

use crate::cuda_tile::ir::*;
use crate::cuda_tile::words::Words;

/// The text of a type, in the bare form.
pub fn type_text(ty: &Type) -> String {
    match ty {
        Type::Tile(t) => {
            let dims: String = t.shape.iter().map(|d| format!("{d}x")).collect();
            match t.elem {
                Elem::Num(d) => format!("tile<{dims}{d}>"),
                Elem::Ptr(d) => {
                    let attr = t.ptr_attr.map_or(String::new(), |a| format!(", <{}>", a.word()));
                    format!("tile<{dims}ptr<{d}{attr}>>")
                }
            }
        }
        Type::TensorView(t) => tensor_view_text(t),
        Type::View(v) => view_text(v),
        Type::Token => "token".into(),
    }
}

fn dim_text(d: &Option<i64>) -> String {
    d.map_or("?".into(), |d| d.to_string())
}

pub(super) fn join<T>(items: &[T], separator: &str, text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(separator)
}

fn tensor_view_text(t: &TensorViewType) -> String {
    let dims: String = t.shape.iter().map(|d| dim_text(d) + "x").collect();
    let attr = t.ptr_attr.map_or(String::new(), |a| format!(", #cuda_tile.ptr_attr<{}>", a.word()));
    if t.shape.is_empty() {
        return format!("tensor_view<{}{attr}>", t.elem);
    }
    format!("tensor_view<{dims}{}, strides=[{}]{attr}>", t.elem, join(&t.strides, ",", dim_text))
}

fn view_text(v: &TileViewType) -> String {
    let tile = join(&v.tile, "x", i32::to_string);
    let padding = v.padding.map_or(String::new(), |p| format!("padding_value = {}, ", p.word()));
    let tensor = tensor_view_text(&v.tensor);
    let identity = v.dim_map.iter().enumerate().all(|(i, &d)| i as i32 == d);
    let map = if identity { String::new() } else { format!(", dim_map=[{}]", join(&v.dim_map, ", ", i32::to_string)) };
    match &v.kind {
        ViewKind::Partition => format!("partition_view<tile=({tile}), {padding}{tensor}{map}>"),
        ViewKind::Strided { traversal_strides } => {
            let strides = join(traversal_strides, ",", i32::to_string);
            format!("strided_view<tile=({tile}), traversal_strides=[{strides}], {padding}{tensor}{map}>")
        }
        ViewKind::GatherScatter { sparse_dim } => {
            format!("gather_scatter_view<tile=({tile}), {padding}{tensor}, sparse_dim={sparse_dim}>")
        }
    }
}
