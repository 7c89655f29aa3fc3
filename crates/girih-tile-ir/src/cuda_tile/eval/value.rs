//! The contents of an SSA value while a block runs.
//!
//! A tile is its elements in row-major order, each as bits in a `u64`; one element stands for a splat. If an element is
//! undefined, there is one *origin* per element too: 0 for a defined element, otherwise the operation that made it
//! undefined (see [`Origin`]). Tiles are cheap to clone: shape, bits and origins are shared.

use std::rc::Rc;

use crate::cuda_tile::ir::{Elem, TileType, TileViewType};

/// The operation that made an element undefined, numbered over the whole module from 1; 0 is "defined".
pub type Origin = u32;

#[derive(Clone, Debug)]
pub struct Tile {
    pub elem: Elem,
    pub shape: Rc<[u64]>,
    /// One element (a splat) or all.
    pub bits: Rc<Vec<u64>>,
    /// As long as `bits` when present.
    pub poison: Option<Rc<Vec<Origin>>>,
}

impl Tile {
    pub fn new(ty: &TileType, bits: Vec<u64>) -> Tile {
        Tile { elem: ty.elem, shape: ty.shape.as_slice().into(), bits: Rc::new(bits), poison: None }
    }
    pub fn scalar(elem: Elem, bits: u64) -> Tile {
        Tile { elem, shape: Rc::from([]), bits: Rc::new(vec![bits]), poison: None }
    }
    /// A tile of `ty` whose elements are all undefined.
    pub fn undefined(ty: &TileType, origin: Origin) -> Tile {
        Tile { poison: Some(Rc::new(vec![origin])), ..Tile::new(ty, vec![0]) }
    }
    /// `poison` is dropped if all its origins are 0; that of a splat may be as long as the tile.
    pub fn with_poison(mut self, poison: Vec<Origin>) -> Tile {
        self.poison = None;
        if poison.iter().any(|&p| p != 0) {
            if self.bits.len() < poison.len() {
                let all = (0..poison.len()).map(|i| self.get(i)).collect();
                self.bits = Rc::new(all);
            }
            self.poison = Some(Rc::new(poison));
        }
        self
    }
    /// The same elements under another type with the same number of elements.
    pub fn retyped(&self, ty: &TileType) -> Tile {
        Tile { elem: ty.elem, shape: ty.shape.as_slice().into(), ..self.clone() }
    }
    pub fn len(&self) -> usize {
        self.shape.iter().product::<u64>() as usize
    }
    pub fn is_splat(&self) -> bool {
        self.bits.len() == 1
    }
    pub fn get(&self, i: usize) -> u64 {
        if self.bits.len() == 1 { self.bits[0] } else { self.bits[i] }
    }
    pub fn origin(&self, i: usize) -> Origin {
        match &self.poison {
            None => 0,
            Some(p) if p.len() == 1 => p[0],
            Some(p) => p[i],
        }
    }
    /// The first undefined element and its origin.
    pub fn first_poison(&self) -> Option<(usize, Origin)> {
        let p = self.poison.as_ref()?;
        p.iter().enumerate().find(|(_, o)| **o != 0).map(|(i, o)| (i, *o))
    }
    /// The elements picked by row-major source positions.
    pub fn gather(&self, ty: &TileType, source: impl Iterator<Item = usize> + Clone) -> Tile {
        if self.is_splat() {
            return self.retyped(ty);
        }
        let mut out = Tile::new(ty, source.clone().map(|i| self.bits[i]).collect());
        if self.poison.is_some() {
            out = out.with_poison(source.map(|i| self.origin(i)).collect());
        }
        out
    }
}

/// A tensor in memory: a base address, a shape and strides in elements.
#[derive(Clone, Debug)]
pub struct TensorView {
    pub base: u64,
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
}

/// A partition, strided or gather/scatter view of a tensor.
#[derive(Clone, Debug)]
pub struct TileView {
    pub ty: TileViewType,
    pub tensor: Rc<TensorView>,
}

/// The accesses that tokens order before a point: those numbered below `before`, and a few more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Token {
    pub before: u32,
    pub also: Vec<u32>,
}

/// A token keeps at most this many accesses beside its prefix; with more, it claims all accesses up to the last of
/// them, so that there is no false warning.
const TOKEN_LIMIT: usize = 64;

impl Token {
    pub fn covers(&self, access: u32) -> bool {
        access < self.before || self.also.binary_search(&access).is_ok()
    }
    pub fn join(&self, other: &Token) -> Token {
        let mut also = self.also.clone();
        also.extend_from_slice(&other.also);
        Token { before: self.before.max(other.before), also }.tidy()
    }
    pub fn with(&self, access: u32) -> Token {
        let mut also = self.also.clone();
        also.push(access);
        Token { before: self.before, also }.tidy()
    }
    fn tidy(mut self) -> Token {
        self.also.sort_unstable();
        self.also.dedup();
        if self.also.len() > TOKEN_LIMIT {
            self.before = self.also.last().map_or(self.before, |a| a + 1);
        }
        let before = self.before;
        self.also.retain(|&a| a >= before);
        while self.also.first() == Some(&self.before) {
            self.also.remove(0);
            self.before += 1;
        }
        self
    }
}

#[derive(Clone, Debug)]
pub enum Val {
    Tile(Tile),
    TensorView(Rc<TensorView>),
    View(Rc<TileView>),
    Token(Rc<Token>),
}

impl Val {
    /// The bytes of its elements; elements that several values share count for each value.
    pub fn bytes(&self) -> u64 {
        match self {
            Val::Tile(t) => 8 * t.bits.len() as u64 + 4 * t.poison.as_ref().map_or(0, |p| p.len() as u64),
            _ => 0,
        }
    }
}

/// The row-major strides of a shape.
pub fn row_major(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    strides
}

/// The multi-dimensional index of a row-major position.
pub fn unravel(mut i: u64, shape: &[u64]) -> Vec<u64> {
    let mut out = vec![0; shape.len()];
    for d in (0..shape.len()).rev() {
        out[d] = i % shape[d].max(1);
        i /= shape[d].max(1);
    }
    out
}

/// For every element of `shape` in row-major order, the dot product of its index with `strides`.
pub fn walk(shape: &[u64], strides: &[u64]) -> Walk {
    Walk {
        shape: shape.to_vec(),
        strides: strides.to_vec(),
        index: vec![0; shape.len()],
        at: 0,
        left: shape.iter().product(),
    }
}

#[derive(Clone)]
pub struct Walk {
    shape: Vec<u64>,
    strides: Vec<u64>,
    index: Vec<u64>,
    at: u64,
    left: u64,
}

impl Iterator for Walk {
    type Item = usize;
    fn next(&mut self) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let out = self.at as usize;
        for d in (0..self.shape.len()).rev() {
            self.index[d] += 1;
            self.at += self.strides[d];
            if self.index[d] < self.shape[d] {
                break;
            }
            self.at -= self.strides[d] * self.shape[d];
            self.index[d] = 0;
        }
        Some(out)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}
