//! Index expressions of a graph as text: symbols by name, axes of the result as `i0`, `i1`, ...

use std::borrow::Cow;

use super::ir::{Graph, SymId};
use crate::base::id::Id;
use crate::index::text::{self, Names};
use crate::index::{AxisId, Ix, Mask, ValId};

impl Names for Graph {
    fn axis(&self, axis: AxisId) -> Cow<'_, str> {
        format!("i{}", axis.0).into()
    }
    fn val(&self, val: ValId) -> Cow<'_, str> {
        match self.symbols.get(SymId::from_index(val.index())) {
            Some(symbol) => Cow::Borrowed(&symbol.name),
            None => format!("?{}", val.0).into(),
        }
    }
}

impl Graph {
    /// `s0*2 + i1//64`.
    pub fn ix_text(&self, ix: &Ix) -> String {
        text::ix_text(ix, self)
    }

    /// `i0 < s0 and i1 >= 2`; empty for the mask that always holds.
    pub fn mask_text(&self, mask: &Mask) -> String {
        if mask.is_always() { String::new() } else { text::mask_text(mask, self) }
    }
}
