//! Operations that only move elements: broadcast, cat, extract, insert, permute, pack, unpack, iota.

use super::value::{Origin, Tile, row_major, walk};
use crate::cuda_tile::ir::{Elem, TileType};
use crate::num::DType;

pub fn broadcast(source: &Tile, ty: &TileType) -> Tile {
    let from = row_major(&source.shape);
    let strides: Vec<u64> = source.shape.iter().zip(&from).map(|(&n, &s)| if n == 1 { 0 } else { s }).collect();
    source.gather(ty, walk(&ty.shape, &strides))
}

pub fn permute(source: &Tile, ty: &TileType, perm: &[i32]) -> Tile {
    let from = row_major(&source.shape);
    let strides: Vec<u64> = perm.iter().map(|&p| from.get(p as usize).copied().unwrap_or(0)).collect();
    source.gather(ty, walk(&ty.shape, &strides))
}

/// `index` counts subtiles; the caller has checked it.
pub fn extract(source: &Tile, ty: &TileType, index: &[u64]) -> Tile {
    let from = row_major(&source.shape);
    let start: u64 = index.iter().zip(&ty.shape).zip(&from).map(|((&i, &n), &s)| i * n * s).sum();
    source.gather(ty, walk(&ty.shape, &from).map(move |i| i + start as usize))
}

/// `destination` with the subtile at `index` replaced by `source`.
pub fn insert(source: &Tile, destination: &Tile, ty: &TileType, index: &[u64]) -> Tile {
    let to = row_major(&destination.shape);
    let start: u64 = index.iter().zip(source.shape.iter()).zip(&to).map(|((&i, &n), &s)| i * n * s).sum();
    let mut bits: Vec<u64> = (0..destination.len()).map(|i| destination.get(i)).collect();
    let at = || walk(&source.shape, &to).map(|i| i + start as usize);
    for (i, d) in at().enumerate() {
        bits[d] = source.get(i);
    }
    let out = Tile::new(ty, bits);
    if source.poison.is_none() && destination.poison.is_none() {
        return out;
    }
    let mut poison: Vec<Origin> = (0..destination.len()).map(|i| destination.origin(i)).collect();
    for (i, d) in at().enumerate() {
        poison[d] = source.origin(i);
    }
    out.with_poison(poison)
}

pub fn cat(lhs: &Tile, rhs: &Tile, ty: &TileType, dim: usize) -> Tile {
    let inner: u64 = lhs.shape.iter().skip(dim).product();
    let inner2: u64 = rhs.shape.iter().skip(dim).product();
    let n = ty.elements();
    let pick = |i: u64| {
        let (outer, r) = (i / (inner + inner2), i % (inner + inner2));
        if r < inner { (lhs, outer * inner + r) } else { (rhs, outer * inner2 + r - inner) }
    };
    let all = |f: fn(&Tile, usize) -> u64| {
        (0..n)
            .map(|i| {
                let (t, j) = pick(i);
                f(t, j as usize)
            })
            .collect::<Vec<u64>>()
    };
    let out = Tile::new(ty, all(|t, j| t.get(j)));
    if lhs.poison.is_none() && rhs.poison.is_none() {
        return out;
    }
    out.with_poison(all(|t, j| t.origin(j) as u64).into_iter().map(|o| o as Origin).collect())
}

pub fn iota(ty: &TileType) -> Tile {
    let mask = ty.num().map_or(u64::MAX, DType::mask);
    Tile::new(ty, (0..ty.elements()).map(|i| i & mask).collect())
}

/// Reinterprets the bytes of a rank-1 tile, little-endian, narrow elements from the low bits up; both pack and unpack.
pub fn reinterpret(source: &Tile, ty: &TileType) -> Tile {
    let (Elem::Num(from), Elem::Num(to)) = (source.elem, ty.elem) else { return Tile::undefined(ty, 1) };
    let (wide, narrow) = (from.bits() as usize, to.bits() as usize);
    let n = ty.elements() as usize;
    let mut bits = vec![0u64; n];
    let mut poison = vec![0; n];
    let step = wide.min(narrow);
    for chunk in 0..(n * narrow / step) {
        let at = chunk * step;
        let (si, so) = (at / wide, at % wide);
        let (di, d_o) = (at / narrow, at % narrow);
        if si >= source.len() || di >= n {
            break;
        }
        let piece = (source.get(si) >> so) & if step == 64 { u64::MAX } else { (1 << step) - 1 };
        bits[di] |= piece << d_o;
        if poison[di] == 0 {
            poison[di] = source.origin(si);
        }
    }
    Tile::new(ty, bits).with_poison(poison)
}
