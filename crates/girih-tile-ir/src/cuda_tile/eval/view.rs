//! The places of a tile's elements: pointer tiles with masks, and tiles of views.
//!
//! A partition view's tile at index `i` starts at element `i * tile` of each tensor dimension, a strided view's at
//! `i * traversal_stride`; tile dimension `d` runs along tensor dimension `dim_map[d]`. A gather/scatter view takes
//! elements at the listed positions along its sparse dimension and at consecutive positions from the given start along
//! the others. Indices are unsigned. Elements outside the tensor are *off*: padded when loaded, dropped when stored.

use super::value::{TensorView, Tile, TileView, unravel};
use crate::cuda_tile::ir::{Padding, ViewKind};
use crate::num::DType;
use crate::num::convert::from_f64;
use crate::num::op::Rounding;

/// The place of each element of a tile, in row-major order.
pub enum Places {
    /// One address per element, and the elements that are on.
    Pointers { at: Tile, on: Option<Tile> },
    /// For every tile dimension the element offset of each position, `None` if it is off; the offset of an element is
    /// the sum over the dimensions.
    Grid { base: u64, offsets: Vec<Vec<Option<i64>>>, shape: Vec<u64> },
}

/// Elements at consecutive addresses: the row-major position of the first one, their number, and the byte address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub first: usize,
    pub count: usize,
    pub addr: u64,
    /// For 4-bit elements: the element is the high half of its byte.
    pub high: bool,
}

/// The most elements of a run, so that its bytes fit in a small buffer.
const RUN: usize = 4096;

impl Places {
    /// Returns true if some element of a view's tile lies outside the tensor.
    pub fn beyond(&self) -> bool {
        match self {
            Places::Pointers { .. } => false,
            Places::Grid { offsets, .. } => offsets.iter().flatten().any(Option::is_none),
        }
    }

    /// Calls `f` on maximal runs of elements that are on, in row-major order. 4-bit elements come one at a time.
    pub fn runs<E>(&self, dtype: DType, mut f: impl FnMut(Run) -> Result<(), E>) -> Result<(), E> {
        let size = dtype.bytes();
        let four = dtype.bits() == 4;
        let mut open: Option<Run> = None;
        let mut push = |i: usize, addr: u64, high: bool| -> Result<(), E> {
            if let Some(run) = &mut open {
                let next = run.addr.wrapping_add(run.count as u64 * size);
                if !four && i == run.first + run.count && addr == next && run.count < RUN {
                    run.count += 1;
                    return Ok(());
                }
                f(*run)?;
            }
            open = Some(Run { first: i, count: 1, addr, high });
            Ok(())
        };
        match self {
            Places::Pointers { at, on } => {
                for i in 0..at.len() {
                    if on.as_ref().is_none_or(|m| m.get(i) & 1 == 1) {
                        push(i, at.get(i), false)?;
                    }
                }
            }
            Places::Grid { base, offsets, shape } => {
                let place = |e: i64| {
                    let bytes = if four { e >> 1 } else { e.wrapping_mul(size as i64) };
                    (base.wrapping_add(bytes as u64), four && e & 1 == 1)
                };
                let n = shape.iter().product::<u64>();
                let width = shape.last().copied().unwrap_or(1);
                for row in 0..n / width.max(1) {
                    let outer = unravel(row, &shape[..shape.len().saturating_sub(1)]);
                    let start =
                        outer.iter().zip(offsets).try_fold(0i64, |sum, (&i, o)| Some(sum.wrapping_add(o[i as usize]?)));
                    let Some(start) = start else { continue };
                    match offsets.last() {
                        None => {
                            let (addr, high) = place(start);
                            push(0, addr, high)?;
                        }
                        Some(last) => {
                            for (j, o) in last.iter().enumerate() {
                                if let Some(o) = o {
                                    let (addr, high) = place(start.wrapping_add(*o));
                                    push((row * width) as usize + j, addr, high)?;
                                }
                            }
                        }
                    }
                }
            }
        }
        match open {
            Some(run) => f(run),
            None => Ok(()),
        }
    }
}

/// The distance between the tiles of a view along each tile dimension.
fn steps(view: &TileView) -> Vec<i64> {
    match &view.ty.kind {
        ViewKind::Partition => view.ty.tile.iter().map(|&t| t as i64).collect(),
        ViewKind::Strided { traversal_strides } => traversal_strides.iter().map(|&t| t as i64).collect(),
        ViewKind::GatherScatter { .. } => vec![1; view.ty.tile.len()],
    }
}

/// The tensor dimension that tile dimension `d` runs along.
fn tensor_dim(view: &TileView, d: usize) -> usize {
    match view.ty.kind {
        ViewKind::GatherScatter { .. } => d,
        _ => view.ty.dim_map.get(d).map_or(d, |&m| m as usize),
    }
}

/// The number of tile indices along each dimension: the tensor's extent over the distance of tiles, rounded up.
pub fn index_space(view: &TileView) -> Vec<i64> {
    steps(view)
        .iter()
        .enumerate()
        .map(|(d, &step)| {
            let extent = view.tensor.shape.get(tensor_dim(view, d)).copied().unwrap_or(0);
            extent.max(0) / step.max(1) + (extent.max(0) % step.max(1) != 0) as i64
        })
        .collect()
}

/// The index of a tile: one number per dimension, but several along a sparse dimension.
pub struct ViewIndex(pub Vec<Vec<u64>>);

/// The reason why an index does not name a tile.
pub struct OutsideView {
    pub dim: usize,
    pub index: u64,
    pub limit: i64,
}

/// The places of the elements of a view's tile. `inbounds[d]` promises that no element is off along `d`.
pub fn places(view: &TileView, index: &ViewIndex, inbounds: &[bool]) -> Result<Places, OutsideView> {
    let (steps, limits) = (steps(view), index_space(view));
    let sparse = match view.ty.kind {
        ViewKind::GatherScatter { sparse_dim } => Some(sparse_dim as usize),
        _ => None,
    };
    let mut offsets = Vec::with_capacity(view.ty.tile.len());
    for (d, &tile) in view.ty.tile.iter().enumerate() {
        let numbers = index.0.get(d).map(Vec::as_slice).unwrap_or(&[]);
        let first = numbers.first().copied().unwrap_or(0);
        let dim = tensor_dim(view, d);
        let (extent, stride) =
            (view.tensor.shape.get(dim).copied().unwrap_or(0), view.tensor.strides.get(dim).copied().unwrap_or(0));
        if sparse.is_none() && first as i128 >= limits[d] as i128 {
            return Err(OutsideView { dim: d, index: first, limit: limits[d] });
        }
        let position = |t: usize| -> i128 {
            if sparse == Some(d) {
                numbers.get(t).copied().unwrap_or(u64::MAX) as i128
            } else {
                first as i128 * steps[d] as i128 + t as i128
            }
        };
        let along: Vec<Option<i64>> = (0..tile.max(0) as usize)
            .map(|t| {
                let p = position(t);
                (p < extent as i128).then(|| (p as i64).wrapping_mul(stride))
            })
            .collect();
        if inbounds.get(d) == Some(&true) && along.contains(&None) {
            return Err(OutsideView { dim: d, index: first, limit: limits[d] });
        }
        offsets.push(along);
    }
    let shape = view.ty.tile.iter().map(|&t| t as u64).collect();
    Ok(Places::Grid { base: view.tensor.base, offsets, shape })
}

/// The places that `experimental$scatter_store` writes with a block of rows: dimension `dim` takes the listed
/// positions, the others start at `starts` (in order, `dim` left out).
pub fn scatter(view: &TensorView, tile: &[u64], dim: usize, rows: &[u64], starts: &[u64]) -> Places {
    let mut starts = starts.iter().copied();
    let mut along = |d: usize, n: u64| -> Vec<Option<i64>> {
        let start = if d == dim { 0 } else { starts.next().unwrap_or(0) };
        let extent = view.shape.get(d).copied().unwrap_or(0) as i128;
        let stride = view.strides.get(d).copied().unwrap_or(0);
        let position = |t: u64| match d == dim {
            true => rows.get(t as usize).copied().unwrap_or(u64::MAX),
            false => start.saturating_add(t),
        };
        (0..n).map(position).map(|p| ((p as i128) < extent).then(|| (p as i64).wrapping_mul(stride))).collect()
    };
    let offsets = tile.iter().enumerate().map(|(d, &n)| along(d, n)).collect();
    Places::Grid { base: view.base, offsets, shape: tile.to_vec() }
}

/// The bits of a padding value.
pub fn padding_bits(p: Padding, dtype: DType) -> u64 {
    let value = match p {
        Padding::Zero => return 0,
        Padding::NegZero => -0.0,
        Padding::Nan => f64::NAN,
        Padding::PosInf => f64::INFINITY,
        Padding::NegInf => f64::NEG_INFINITY,
    };
    from_f64(dtype, value, Rounding::NearestEven)
}
