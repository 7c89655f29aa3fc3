//! `--arg NAME=SPEC` of models: arrays, lists of strings as JSON has them, and numbers for symbolic extents.

use girih::model::{Strings, Tensor};
use girih::spec::ArgSpec;
use girih::{Buffer, npy};
use girih_compiler::graph::Elem;

use serde_json::Value;

use crate::failure::Failure;

/// The arguments that the flags give, in their order.
#[derive(Default)]
pub struct Arguments {
    pub tensors: Vec<(String, Tensor)>,
    /// `X=["red", "blue"]`, or a `.npy` file of strings.
    texts: Vec<(String, Texts)>,
    /// The numbers of strings in the model.
    pub strings: Strings,
    /// `N=32`.
    pub symbols: Vec<(String, i64)>,
}

/// Strings and the shape that they have.
type Texts = (Vec<u64>, Vec<String>);

/// The strings of nested lists of JSON.
fn texts(value: &Value) -> Option<Texts> {
    match value {
        Value::String(word) => Some((vec![], vec![word.clone()])),
        Value::Array(all) => {
            let (mut inner, mut words) = (None, vec![]);
            for part in all {
                let (shape, more) = texts(part)?;
                words.extend(more);
                if *inner.get_or_insert_with(|| shape.clone()) != shape {
                    return None;
                }
            }
            Some((std::iter::once(all.len() as u64).chain(inner.unwrap_or_default()).collect(), words))
        }
        _ => None,
    }
}

impl Arguments {
    pub fn resolve(flags: &[(String, String)]) -> Result<Arguments, Failure> {
        let mut all = Arguments::default();
        for (i, (name, text)) in flags.iter().enumerate() {
            if let Ok(n) = text.parse::<i64>() {
                all.symbols.push((name.clone(), n));
                continue;
            }
            if text.starts_with(['[', '"']) {
                let strings = serde_json::from_str::<Value>(text).ok().as_ref().and_then(texts);
                let wanted = || {
                    let wanted = r#"expected strings, as `["red", "blue"]` or `[["red"], ["blue"]]`"#;
                    Failure::usage(format!("--arg {name}: {wanted}, found `{text}`"))
                };
                all.texts.push((name.clone(), strings.ok_or_else(wanted)?));
                continue;
            }
            let spec: ArgSpec = text.parse().map_err(|e| Failure::usage(format!("--arg {name}: {e}")))?;
            let buffer = match spec {
                ArgSpec::Scalar { dtype, bits } => {
                    let mut buffer = Buffer::zeroed(dtype, &[])?;
                    buffer.set(0, bits);
                    buffer
                }
                ArgSpec::Fill { fill, dtype, shape, seed } => {
                    // Without a seed each input gets its own.
                    Buffer::filled(fill, dtype, &shape, seed.unwrap_or(i as u64 + 1))?
                }
                ArgSpec::File { path, dtype } => {
                    if let Some(strings) = npy::read_strings(&path)? {
                        all.texts.push((name.clone(), strings));
                        continue;
                    }
                    let buffer = npy::read(&path)?;
                    match dtype {
                        Some(dtype) => buffer.reinterpret(dtype)?,
                        None => buffer,
                    }
                }
                ArgSpec::Same(_) | ArgSpec::Pointers(_) => {
                    let text = format!("--arg {name}: each input of a model needs its own array");
                    return Err(Failure::usage(text));
                }
            };
            all.tensors.push((name.clone(), Tensor::new(Elem::of(buffer.dtype()), buffer)?));
        }
        Ok(all)
    }

    /// Gives strings the numbers that they have in a model.
    pub fn number(&mut self, known: &[String]) -> girih::Result<()> {
        self.strings = Strings::of(known);
        for (name, (shape, words)) in std::mem::take(&mut self.texts) {
            self.tensors.push((name, self.strings.tensor(&words, &shape)?));
        }
        Ok(())
    }

    /// Names and types, for expressions.
    pub fn types(&self) -> Vec<(String, Elem, Vec<u64>)> {
        self.tensors.iter().map(|(n, t)| (n.clone(), t.elem(), t.shape().to_vec())).collect()
    }

    /// Arrays of integers are unsigned where the model wants them so: `.npy` files do not say it here.
    pub fn fit(&mut self, model: &girih::model::Model) -> girih::Result<()> {
        let ports = model.inputs();
        let given = std::mem::take(&mut self.tensors);
        for (name, tensor) in given {
            let want = ports.iter().find(|p| p.name == name).map(|p| p.elem);
            let tensor = match want {
                Some(elem) if elem.dtype == tensor.dtype() && !elem.text => Tensor::new(elem, tensor.into_buffer())?,
                _ => tensor,
            };
            self.tensors.push((name, tensor));
        }
        Ok(())
    }

    /// Leaves those that the model takes.
    pub fn keep(&mut self, model: &girih::model::Model) {
        let ports = model.inputs();
        self.tensors.retain(|(name, _)| ports.iter().any(|p| p.name == *name));
    }

    pub fn arrays(&self) -> Vec<(&str, &Tensor)> {
        self.tensors.iter().map(|(n, t)| (n.as_str(), t)).collect()
    }
    pub fn extents(&self) -> Vec<(&str, i64)> {
        self.symbols.iter().map(|(n, v)| (n.as_str(), *v)).collect()
    }
}
