//! Dense `u32` ids and the maps they index.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A dense id: a `u32` that indexes an [`IdMap`].
pub trait Id: Copy + Eq + Ord + std::hash::Hash {
    fn from_index(index: usize) -> Self;
    fn index(self) -> usize;
}

/// Declares an id type.
#[macro_export]
macro_rules! id_type {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);
        impl $crate::base::id::Id for $name {
            fn from_index(index: usize) -> Self {
                $name(index as u32)
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

/// A vector indexed by an id type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdMap<K, V> {
    items: Vec<V>,
    key: PhantomData<K>,
}

impl<K: Id, V> Default for IdMap<K, V> {
    fn default() -> Self {
        IdMap { items: Vec::new(), key: PhantomData }
    }
}

impl<K: Id, V> IdMap<K, V> {
    pub fn new() -> Self {
        Self::default()
    }
    pub fn reserve(&mut self, more: usize) {
        self.items.reserve_exact(more);
    }
    pub fn push(&mut self, value: V) -> K {
        self.items.push(value);
        K::from_index(self.items.len() - 1)
    }
    /// Forgets the newest entries, so that `len` remain.
    pub fn truncate(&mut self, len: usize) {
        self.items.truncate(len);
    }
    pub fn len(&self) -> usize {
        self.items.len()
    }
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    pub fn get(&self, key: K) -> Option<&V> {
        self.items.get(key.index())
    }
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> {
        self.items.iter().enumerate().map(|(i, v)| (K::from_index(i), v))
    }
    pub fn values(&self) -> std::slice::Iter<'_, V> {
        self.items.iter()
    }
    pub fn values_mut(&mut self) -> std::slice::IterMut<'_, V> {
        self.items.iter_mut()
    }
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = K> + use<K, V> {
        (0..self.items.len()).map(K::from_index)
    }
}

impl<K: Id, V> Index<K> for IdMap<K, V> {
    type Output = V;
    fn index(&self, key: K) -> &V {
        &self.items[key.index()]
    }
}

impl<K: Id, V> IndexMut<K> for IdMap<K, V> {
    fn index_mut(&mut self, key: K) -> &mut V {
        &mut self.items[key.index()]
    }
}
