//! Strings, which no kernel sees: inside of a graph each is a number, its place in the list of all that the file has.
//!
//! In: a model. Out: [`Words`], in an order of their own, and nodes that compare with strings or give some as nodes over integers.
//! Whoever runs the graph hands over numbers, and gives a string that the file does not have one behind its list; see
//! [`crate::graph::Graph::strings`].
//!
//! ```text
//! y = LabelEncoder(x) {keys_strings = ["no", "yes"], values_int64s = [0, 1]}      strings of the file: ["no", "yes"]
//! -->
//! ids = girih.numbers x
//! y = onnx.LabelEncoder ids {keys_int64s = [0, 1], values_int64s = [0, 1]}
//! ```

use std::collections::BTreeSet;

use super::proto::{Attribute, Graph, Model, Node, Tensor};
use crate::graph::decompose::onnx::dtype::elem;
use crate::graph::{Attr, Attrs, Elem};
use crate::index::Ix;

/// The default of `LabelEncoder` and `CategoryMapper` for a key that they do not have.
const UNUSED: &str = "_Unused";

/// Operators that move elements, count them, or compare them with others.
const MOVES: &[&str] = &[
    "ArrayFeatureExtractor",
    "Compress",
    "Concat",
    "DepthToSpace",
    "Equal",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Identity",
    "OneHot",
    "Reshape",
    "ReverseSequence",
    "ScatterElements",
    "ScatterND",
    "Shape",
    "Size",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
    "Where",
    "ZipMap",
];

/// Returns true if an operator takes strings as they come.
pub(super) fn moves(op: &str) -> bool {
    MOVES.contains(&op)
}

/// The strings of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    /// In ascending order.
    pub list: Vec<String>,
}

impl Words {
    pub fn of(model: &Model) -> Words {
        let mut all = BTreeSet::new();
        model.graph.iter().for_each(|graph| of_graph(graph, &mut all));
        for f in &model.functions {
            f.nodes.iter().for_each(|node| of_node(node, &mut all));
            f.defaults.iter().for_each(|a| of_attribute(a, &mut all));
        }
        Words { list: all.into_iter().collect() }
    }

    /// The number of a string of the file.
    pub fn number(&self, word: &str) -> i64 {
        self.list.binary_search_by(|known| known.as_str().cmp(word)).map_or(-1, |at| at as i64)
    }
}

/// How a file spells a string.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn of_graph(graph: &Graph, all: &mut BTreeSet<String>) {
    graph.nodes.iter().for_each(|node| of_node(node, all));
    graph.initializers.iter().for_each(|t| of_tensor(t, all));
}

fn of_node(node: &Node, all: &mut BTreeSet<String>) {
    node.attributes.iter().for_each(|a| of_attribute(a, all));
    if ["LabelEncoder", "CategoryMapper"].contains(&node.op.as_str()) {
        all.insert(UNUSED.into());
    }
}

fn of_attribute(a: &Attribute, all: &mut BTreeSet<String>) {
    // Others are words of the operator: the modes of trees.
    if a.name.ends_with("_string") || a.name.ends_with("_strings") {
        all.extend(
            a.strings.iter().chain([&a.s].into_iter().filter(|s| !s.is_empty() || a.kind == 3)).map(|s| text(s)),
        );
    }
    a.t.iter().for_each(|t| of_tensor(t, all));
    a.g.iter().for_each(|g| of_graph(g, all));
}

fn of_tensor(t: &Tensor, all: &mut BTreeSet<String>) {
    if elem(t.data_type) == Ok(Elem::STRING) {
        all.extend(t.strings.iter().map(|s| text(s)));
    }
}

/// The strings among the operands and results of a node.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Uses {
    /// Its first operand must be strings.
    pub takes: bool,
    /// Its first result is strings.
    pub gives: bool,
}

/// The attributes of an operator of `ai.onnx.ml` that are strings, under the names that they have as integers; says what is
/// strings then. `None` for another operator.
///
/// # Errors
/// The part of it that is not supported.
pub(super) fn numbered(op: &str, attrs: &mut Attrs, words: &Words, strings_come: bool) -> Option<Result<Uses, String>> {
    let (keys, labels) = ("keys_int64s", "classlabels_ints");
    Some(match op {
        "LabelEncoder" => {
            if let Some(classes) = take_words(attrs, "classes_strings", words) {
                let places = list((0..classes.len() as i64).collect());
                let both = if strings_come { [list(classes), places] } else { [places, list(classes)] };
                return Some(Ok(mapped(attrs, both, words, strings_come)));
            }
            let takes = rename(attrs, &["keys_strings", "keys_tensor"], keys, words);
            let gives = rename(attrs, &["values_strings", "values_tensor"], "values_int64s", words);
            if gives {
                default(attrs, &["default_string", "default_tensor"], words);
            }
            Ok(Uses { takes, gives })
        }
        "CategoryMapper" => {
            let (strings, numbers) = (take_words(attrs, "cats_strings", words), attrs.remove("cats_int64s"));
            let Some((strings, numbers)) = strings.zip(numbers) else {
                return Some(Err("it has no categories".into()));
            };
            let both = if strings_come { [list(strings), numbers] } else { [numbers, list(strings)] };
            Ok(mapped(attrs, both, words, strings_come))
        }
        "OneHotEncoder" => Ok(Uses { takes: rename(attrs, &["cats_strings"], "cats_int64s", words), gives: false }),
        "TfIdfVectorizer" => Ok(Uses { takes: rename(attrs, &["pool_strings"], "pool_int64s", words), gives: false }),
        "TreeEnsembleClassifier" | "LinearClassifier" | "SVMClassifier" => {
            let labels = if op == "TreeEnsembleClassifier" { "classlabels_int64s" } else { labels };
            let gives = rename(attrs, &["classlabels_strings"], labels, words);
            match attrs.get(labels) {
                // Every other class would be number 0.
                Some(Attr::List(all)) if gives && all.len() == 1 => Err("one label that is a string".into()),
                _ => Ok(Uses { takes: false, gives }),
            }
        }
        _ => return None,
    })
}

/// A `LabelEncoder` of what an older operator says.
fn mapped(attrs: &mut Attrs, [keys, values]: [Attr; 2], words: &Words, strings_come: bool) -> Uses {
    attrs.insert("keys_int64s".into(), keys);
    attrs.insert("values_int64s".into(), values);
    if !strings_come {
        attrs.remove("default_int64");
        default(attrs, &["default_string"], words);
    }
    Uses { takes: strings_come, gives: !strings_come }
}

fn list(numbers: Vec<i64>) -> Attr {
    Attr::List(numbers.into_iter().map(|n| Attr::Int(Ix::Const(n))).collect())
}

/// The numbers of strings that are an attribute: a list of them, or a tensor.
fn take_words(attrs: &mut Attrs, name: &str, words: &Words) -> Option<Vec<i64>> {
    let one = |a: &Attr| match a {
        Attr::Str(s) => Some(words.number(s)),
        Attr::Int(Ix::Const(n)) => Some(*n),
        _ => None,
    };
    let numbers = match attrs.get(name)? {
        Attr::List(parts) => match &parts[..] {
            [] => return None,
            [Attr::Elem(elem), _, Attr::List(values)] if *elem == Elem::STRING => values.iter().map(one).collect(),
            [Attr::Elem(_), ..] => return None,
            all => all.iter().map(one).collect(),
        },
        lone => one(lone).map(|n| vec![n]),
    };
    attrs.remove(name);
    numbers
}

/// Moves the first of these attributes that is strings to another name; says whether there was one.
fn rename(attrs: &mut Attrs, names: &[&str], to: &str, words: &Words) -> bool {
    let found = names.iter().find_map(|name| take_words(attrs, name, words));
    let is = found.is_some();
    if let Some(numbers) = found {
        attrs.insert(to.into(), list(numbers));
    }
    is
}

/// Makes the default for an unknown key an integer.
fn default(attrs: &mut Attrs, names: &[&str], words: &Words) {
    let found = names.iter().find_map(|name| take_words(attrs, name, words)?.first().copied());
    let number = found.unwrap_or_else(|| words.number(UNUSED));
    attrs.insert("default_int64".into(), Attr::Int(Ix::Const(number)));
}
