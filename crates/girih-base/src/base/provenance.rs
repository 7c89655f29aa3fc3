//! Links the parts of a kernel to the operations of the user's program that they were made for, so that a statement of
//! any stage can be shown with its counterparts in the others.
//!
//! Statements do not carry places themselves. The values, axes and buffers that they define do: each has a [`SourceId`]
//! in a table beside the kernel, which a front end fills and rules pass on with each copy. A value that a rule creates
//! has none: it belongs to the values that it is computed from, which `loops::provenance` and `kernel::provenance`
//! follow.
//!
//! Invariant: no rule makes a decision by it, and it does not count when kernels are compared: kernels that differ only
//! in it are equal.

use super::id::Id;
use std::marker::PhantomData;

crate::id_type! {
    /// An operation of the user's program. In a tile program: the byte of its text, or of its bytecode, at which the
    /// operation begins. In a model: its number among the origins of the graph.
    SourceId
}

/// The operations that the ids of a kernel were made for.
#[derive(Clone, Debug)]
pub struct Side<K> {
    known: Vec<Option<SourceId>>,
    key: PhantomData<K>,
}

impl<K> Default for Side<K> {
    fn default() -> Self {
        Side { known: Vec::new(), key: PhantomData }
    }
}

impl<K: Id> Side<K> {
    pub fn get(&self, key: K) -> Option<SourceId> {
        self.known.get(key.index()).copied().flatten()
    }

    /// `None` keeps the known source.
    pub fn set(&mut self, key: K, source: Option<SourceId>) {
        if source.is_some() {
            if self.known.len() <= key.index() {
                self.known.resize(key.index() + 1, None);
            }
            self.known[key.index()] = source;
        }
    }

    /// Gives a copy the source of its original.
    pub fn copy(&mut self, from: K, to: K) {
        self.set(to, self.get(from));
    }

    pub fn iter(&self) -> impl Iterator<Item = (K, SourceId)> + '_ {
        self.known.iter().enumerate().filter_map(|(i, s)| Some((K::from_index(i), (*s)?)))
    }
}

impl<K> PartialEq for Side<K> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The operations that each statement of a kernel was made for, in order of their numbers; statements are numbered in
/// order of the text, those inside others included.
pub type OfStatements = Vec<Vec<SourceId>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_source_of_its_original_and_makes_no_difference() {
        let mut side: Side<SourceId> = Side::default();
        side.set(SourceId(2), Some(SourceId(40)));
        side.set(SourceId(2), None);
        side.copy(SourceId(2), SourceId(5));
        side.copy(SourceId(9), SourceId(5));
        assert_eq!(side.get(SourceId(5)), Some(SourceId(40)));
        assert_eq!(side.get(SourceId(3)), None);
        assert_eq!(side.iter().collect::<Vec<_>>(), [(SourceId(2), SourceId(40)), (SourceId(5), SourceId(40))]);
        assert_eq!(side, Side::default());
    }
}
