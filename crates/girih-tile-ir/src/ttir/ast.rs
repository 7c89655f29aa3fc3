//! TTIR as its text has it: functions of blocks of operations, values numbered, nothing interpreted yet.
//!
//! Invariants: every value that an operation uses was defined before it in the text; every successor names a block of the
//! same region; operations are those of [`super::table`].

use crate::base::{IdMap, Span};
use crate::cuda_tile::ir::{Elements, TileType};
use crate::cuda_tile::loc::Loc;
use crate::ttir::table::Row;
use girih_base::id_type;

id_type! {
    /// A value of a module.
    V
}

/// A type. A scalar is a tile without dimensions.
#[derive(Clone, PartialEq, Debug)]
pub enum Ty {
    Tile(TileType),
    /// A type that Girih does not know, as it is written.
    Other(String),
}

#[derive(Clone, PartialEq, Debug)]
pub enum Attr {
    Unit,
    Bool(bool),
    Int(i64),
    Ints(Vec<i64>),
    /// Numbers with a type: `dense<16> : tensor<1xi32>`.
    Elements(Elements),
    Str(String),
    /// A word, or words between `<` and `>`.
    Word(String),
    /// Anything else, without its meaning.
    Other,
}

#[derive(Clone, Debug)]
pub struct Value {
    pub ty: Ty,
    pub name: String,
    pub span: Span,
}

/// The number of a block in its region, and the values that its arguments get.
pub type Successor = (usize, Vec<V>);

#[derive(Clone, Debug)]
pub struct Op {
    pub row: &'static Row,
    pub operands: Vec<V>,
    pub results: Vec<V>,
    pub attrs: Vec<(String, Attr)>,
    /// Words before the types, each with the number of operands before it.
    pub words: Vec<(usize, String)>,
    pub regions: Vec<Region>,
    pub successors: Vec<Successor>,
    pub span: Span,
    pub loc: Loc,
}

impl Op {
    pub fn attr(&self, name: &str) -> Option<&Attr> {
        self.attrs.iter().find(|(n, _)| n == name).map(|(_, a)| a)
    }
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.attr(name) {
            Some(Attr::Int(i)) => Some(*i),
            Some(Attr::Bool(b)) => Some(i64::from(*b)),
            Some(Attr::Unit) => Some(1),
            _ => None,
        }
    }
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.attr(name) {
            Some(Attr::Str(s) | Attr::Word(s)) => Some(s),
            _ => None,
        }
    }
    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.attr(name) {
            Some(Attr::Ints(v)) => Some(v.clone()),
            Some(Attr::Elements(e)) => {
                let sign = |bits: u64| crate::num::literal::sign_extend(e.dtype, bits);
                let rank: u64 = e.shape.iter().product();
                Some(
                    (0..rank.min(64) as usize)
                        .filter_map(|i| e.bits.get(i).or(e.bits.first()))
                        .map(|&b| sign(b))
                        .collect(),
                )
            }
            Some(Attr::Int(i)) => Some(vec![*i]),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Block {
    pub args: Vec<V>,
    pub ops: Vec<Op>,
}

#[derive(Clone, Debug, Default)]
pub struct Region {
    pub blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
pub struct Func {
    pub name: String,
    pub public: bool,
    pub params: Vec<Param>,
    pub results: Vec<Ty>,
    pub body: Region,
    pub span: Span,
    pub loc: Loc,
}

#[derive(Clone, Debug)]
pub struct Param {
    pub value: V,
    pub attrs: Vec<(String, Attr)>,
    pub loc: Loc,
}

#[derive(Clone, Debug, Default)]
pub struct Module {
    pub values: IdMap<V, Value>,
    pub funcs: Vec<Func>,
}
