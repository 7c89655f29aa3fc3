//! Strings at the border of a model, which computes with their numbers.
//!
//! In: strings, and the list of those that the model has. Out: tensors of `string`, each element a place in that list, or behind it
//! for a string that the model does not have; and back. Two elements of a run have one number where they are one string.

use std::collections::BTreeMap;

use girih_compiler::graph::Elem;

use super::tensor::Tensor;
use crate::error::{Error, Result};

/// The strings of one run.
#[derive(Clone, Debug, Default)]
pub struct Strings {
    list: Vec<String>,
    places: BTreeMap<String, usize>,
}

impl Strings {
    /// Begins with those of a model: [`super::OnnxModel::strings`], or the list of its graph.
    pub fn of(known: &[String]) -> Strings {
        let places = known.iter().enumerate().map(|(at, word)| (word.clone(), at)).collect();
        Strings { list: known.to_vec(), places }
    }

    /// A tensor of these strings in row-major order.
    ///
    /// # Errors
    /// A shape of more or fewer elements.
    pub fn tensor<S: AsRef<str>>(&mut self, words: &[S], shape: &[u64]) -> Result<Tensor> {
        let mut tensor = Tensor::zeroed(Elem::STRING, shape)?;
        if tensor.buffer().elements() != words.len() as u64 {
            return Err(Error::argument(format!("{} strings do not make the shape {shape:?}", words.len())));
        }
        for (at, word) in words.iter().map(AsRef::as_ref).enumerate() {
            let next = self.list.len();
            let place = *self.places.entry(word.to_string()).or_insert(next);
            if place == next {
                self.list.push(word.to_string());
            }
            tensor.buffer_mut().set(at as u64, place as u64);
        }
        Ok(tensor)
    }

    /// The strings of a tensor in row-major order; empty ones for numbers that no string of the run has.
    pub fn words(&self, tensor: &Tensor) -> Vec<&str> {
        let place = |at: u64| usize::try_from(tensor.buffer().get(at)).ok();
        let word = |at: u64| place(at).and_then(|place| self.list.get(place)).map_or("", String::as_str);
        (0..tensor.buffer().elements()).map(word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back() {
        let mut strings = Strings::of(&["a".into(), "c".into()]);
        let x = strings.tensor(&["c", "b", "a", "b"], &[2, 2]).expect("a shape of four");
        assert_eq!((0..4).map(|at| x.buffer().get(at)).collect::<Vec<_>>(), [1, 2, 0, 2]);
        assert_eq!(strings.words(&x), ["c", "b", "a", "b"]);
        assert!(strings.tensor(&["c"], &[2]).is_err());
    }
}
