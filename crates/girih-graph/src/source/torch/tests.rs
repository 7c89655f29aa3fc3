use super::*;
use crate::graph::ir::Op;
use crate::graph::{Attr, decompose};

/// RMSNorm of PyTorch with a sequence of any length.
const NORM: &str = r#"{"format": "girih.torch", "version": 1, "name": "Norm",
  "symbols": [{"name": "s0", "lo": 2, "hi": 4096}],
  "inputs": [{"name": "x", "dtype": "f32", "shape": [1, "s0", 64], "role": "argument"},
             {"name": "w", "dtype": "f32", "shape": [64], "role": "parameter"}],
  "constants": [{"name": "c", "dtype": "f16", "shape": [2], "values": [1.5, "-inf"]}],
  "nodes": [{"op": "aten.rms_norm", "args": [{"t": "x"}, {"t": "w"}],
             "attrs": {"normalized_shape": [64], "eps": 1e-6},
             "results": [{"name": "y", "dtype": "f32", "shape": [1, ["//", ["*", "s0", 2], 2], 64]}],
             "module": "layers.0.norm", "place": ["model.py", 12]}],
  "outputs": [{"name": "out", "value": "y"}]}"#;

fn changed(from: &str, to: &str) -> String {
    assert!(NORM.contains(from), "{from}");
    NORM.replace(from, to)
}

fn messages(json: &str) -> Vec<String> {
    match import(json) {
        Ok(_) => vec![],
        Err(all) => all.into_iter().map(|d| format!("{}: {}", d.code.text(), d.message)).collect(),
    }
}

#[test]
fn a_graph_is_read() {
    let graph = import(NORM).unwrap();
    assert_eq!(graph.inputs.len(), 2);
    assert_eq!((graph.inputs[0].role, graph.inputs[1].role), (Role::Argument, Role::Parameter));
    let y = &graph.values[graph.outputs[0].value];
    assert_eq!((y.name.as_str(), y.elem, y.shape.len()), ("y", Elem::F32, 3));
    let (node, _) = graph.def(graph.outputs[0].value).unwrap();
    let Op::Source { name, attrs } = &node.op else { panic!("{node:?}") };
    assert_eq!(name, "aten.rms_norm");
    assert_eq!(attrs["eps"], Attr::Float(1e-6));
    let origin = &graph.origins[node.origin];
    assert_eq!(origin.name, "layers.0.norm");
    assert_eq!(origin.place.as_ref().unwrap().to_string(), "model.py:12:1");
    let halves = graph.constants.values().next().unwrap();
    // 1.5 and minus infinity as f16, by hand.
    assert_eq!(halves.data, crate::graph::ConstData::Bytes(Bytes::from_static(&[0x00, 0x3e, 0x00, 0xfc])));
    decompose::decompose(&graph, &mut |_| {}).unwrap();
}

#[test]
fn constants_lie_in_files_and_arguments_make_their_data() {
    let from = r#""dtype": "f16", "shape": [2], "values": [1.5, "-inf"]"#;
    let constant = |rest: &str| changed(from, rest);
    let graph = import(&constant(r#""dtype": "bf16", "shape": [3, 5], "file": "w.bin", "offset": 40"#)).unwrap();
    // 3 * 5 elements of two bytes.
    let wanted =
        crate::graph::ConstData::External { file: "w.bin".into(), part: crate::graph::Part::Offset(40), len: 30 };
    assert_eq!(graph.constants.values().next().unwrap().data, wanted);
    for (rest, message) in [
        (r#""dtype": "f32", "shape": [2], "file": 7, "offset": 0"#, "`file` is missing or not a string"),
        (r#""dtype": "f32", "shape": [2], "file": "w""#, "`offset` is missing"),
        (r#""dtype": "f32", "shape": [2], "file": "w", "tensor": 7"#, "`tensor` is missing or not a string"),
        (r#""dtype": "f32", "shape": [2], "file": "w", "offset": -1"#, "`offset` is negative"),
        (r#""dtype": "bool", "shape": [2], "file": "w", "offset": 0"#, "a file cannot hold elements of bool"),
    ] {
        assert_eq!(messages(&constant(rest)), [format!("E0801: constants[0]: {message}")]);
    }
    let large = r#""dtype": "f32", "shape": [4611686018427387904, 4], "file": "w", "offset": 0"#;
    assert!(!messages(&constant(large)).is_empty());

    let filled = |fill: &str| changed(r#""role": "argument"}"#, &format!(r#""role": "argument", "fill": {fill}}}"#));
    assert_eq!(import(&filled(r#""normal""#)).unwrap().inputs[0].fill, Fill::Normal);
    for wrong in [r#"["integers", 0, 4]"#, r#""uniform""#, "[]", r#"["integers", 4]"#] {
        let found = messages(&filled(wrong));
        assert!(found[0].starts_with("E0801: inputs[0].fill: expected \"normal\" for floats"), "{found:?}");
    }
    let integers = filled(r#"["integers", 0, 4]"#).replace(r#""x", "dtype": "f32""#, r#""x", "dtype": "i64""#);
    let Err(Failure::Nodes(_)) = examine(&integers) else { panic!("only the norm of integers is refused") };
}

#[test]
fn all_refused_nodes_are_reported_with_their_places() {
    let twice = r#""nodes": [
        {"op": "aten.no_such", "args": [{"t": "x"}], "results": [{"name": "u", "dtype": "f32", "shape": [3, 4]}], "module": "a"},
        {"op": "aten.nor_this", "args": [{"t": "u"}], "results": [null, {"name": "v", "dtype": "i64", "shape": []}]},"#;
    let json = changed("\"nodes\": [", twice);
    assert_eq!(messages(&json), ["E0802: aten.no_such in a is not supported", "E0802: aten.nor_this is not supported"]);
    let Err(Failure::Nodes(refused)) = examine(&json) else { panic!() };
    assert_eq!(refused.iter().map(|r| r.node).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn results_must_be_what_pytorch_says() {
    let said = messages(&changed("[\"//\", [\"*\", \"s0\", 2], 2]", "[\"+\", \"s0\", 1]"));
    let expected = "E0803: aten.rms_norm in layers.0.norm (model.py:12:1): result `y` would be f32 [1, s0, 64], but PyTorch \
                    makes it f32 [1, s0 + 1, 64]";
    assert_eq!(said, [expected]);
}

/// An LSTM of two directions over a sequence of any length.
const LSTM: &str = r#"{"format": "girih.torch", "version": 1, "symbols": [{"name": "t", "lo": 2, "hi": 4096}],
  "inputs": [{"name": "x", "dtype": "f32", "shape": ["t", 3, 5], "role": "argument"},
             {"name": "h", "dtype": "f32", "shape": [2, 3, 4], "role": "argument"},
             {"name": "w", "dtype": "f32", "shape": [16, 5], "role": "parameter"},
             {"name": "r", "dtype": "f32", "shape": [16, 4], "role": "parameter"},
             {"name": "b", "dtype": "f32", "shape": [16], "role": "parameter"}],
  "nodes": [{"op": "aten.lstm",
             "args": [{"t": "x"}, {"t": "h"}, {"t": "h"}, {"t": "w"}, {"t": "r"}, {"t": "b"}, {"t": "b"}, {"t": "w"},
                      {"t": "r"}, {"t": "b"}, {"t": "b"}],
             "attrs": {"has_biases": true, "num_layers": 1, "dropout": 0.5, "train": true, "bidirectional": true,
                       "batch_first": false},
             "results": [{"name": "y", "dtype": "f32", "shape": ["t", 3, 8]},
                         {"name": "hn", "dtype": "f32", "shape": [2, 3, 4]},
                         {"name": "cn", "dtype": "f32", "shape": [2, 3, 4]}]}],
  "outputs": [{"name": "out", "value": "y"}]}"#;

#[test]
fn recurrent_layers_are_loops() {
    let graph = decompose::decompose(&import(LSTM).unwrap(), &mut |_| {}).unwrap();
    let loops = |n: &&crate::graph::ir::Node| matches!(n.op, Op::Repeat(_));
    assert_eq!(graph.nodes.values().filter(loops).count(), 2);
    let few = decompose::decompose(&import(&LSTM.replace("\"t\", 3", "3, 3")).unwrap(), &mut |_| {}).unwrap();
    assert_eq!(few.nodes.values().filter(loops).count(), 0);
}

#[test]
fn recurrent_layers_that_do_not_fit() {
    for (from, to, why) in [
        ("\"num_layers\": 1", "\"num_layers\": 3", "8 weights do not fit 3 layers in 2 directions"),
        ("\"num_layers\": 1", "\"num_layers\": 1000000000000000000", "8 weights do not fit"),
        ("\"num_layers\": 1", "\"num_layers\": 0", "8 weights do not fit 0 layers"),
        ("\"has_biases\": true", "\"has_biases\": false", "8 weights do not fit 1 layers in 2 directions"),
        ("[2, 3, 4], \"role\"", "[1, 3, 4], \"role\"", "a state [1, 3, 4] does not fit 1 layers in 2 directions"),
        ("[16, 5], \"role\"", "[16, 6], \"role\"", "a weight [16, 6] does not fit 5 columns and a state of 4"),
        ("[16, 4], \"role\"", "[12, 4], \"role\"", "a weight [12, 4] does not fit 4 columns and a state of 4"),
        ("[16], \"role\"", "[15], \"role\"", "a bias does not fit a state of 4"),
        ("[\"t\", 3, 5], \"role\"", "[3, 5], \"role\"", "a recurrent layer needs an input of rank 3, not 2"),
    ] {
        assert!(LSTM.contains(from), "{from}");
        let said = messages(&LSTM.replace("\"train\": true", "\"train\": false").replace(from, to));
        assert!(said.len() == 1 && said[0].contains(why), "{to}: {said:?}");
    }
    let packed: String =
        LSTM.replace("\"bidirectional\": true,", "\"bidirectional\": true").replace("\"batch_first\": false", "");
    assert!(
        messages(&packed)[0].contains("a packed sequence has another batch at each step"),
        "{:?}",
        messages(&packed)
    );
}

#[test]
fn what_is_malformed_is_named() {
    let cases = [
        ("girih.torch", "x", "E0801: `format` is not \"girih.torch\""),
        ("\"version\": 1", "\"version\": 2", "E0801: only version 1 of the format is supported"),
        (
            "\"lo\": 2",
            "\"lo\": 5000",
            "E0801: symbols[0]: the range of symbol `s0` is empty, or not within -2^40 and 2^40",
        ),
        ("\"t\": \"x\"", "\"t\": \"z\"", "E0801: nodes[0].args[0].t: the tensor `z` is not defined before this"),
        ("\"t\": \"x\"", "\"u\": \"x\"", "E0801: nodes[0].args[0]: an argument needs `t`, `s` or `ix`"),
        ("[1, \"s0\", 64]", "[1, \"s1\", 64]", "E0801: inputs[0].shape[1]: unknown symbol `s1`"),
        (
            "[1, \"s0\", 64]",
            "[1, [\"//\", 3, \"s0\", 1], 64]",
            "E0801: inputs[0].shape[1]: an expression must be [operation, a, b]",
        ),
        (
            "\"*\", \"s0\", 2",
            "\"//\", \"s0\", 0",
            "E0801: nodes[0].results[0].shape[1][1]: the divisor must be positive",
        ),
        (
            "\"w\", \"dtype\": \"f32\"",
            "\"w\", \"dtype\": \"f33\"",
            "E0801: inputs[1].dtype: unknown element type `f33`",
        ),
        ("\"name\": \"w\"", "\"name\": \"x\"", "E0801: inputs[1]: two tensors are named `x`"),
        (
            "\"parameter\"",
            "\"weight\"",
            "E0801: inputs[1]: unknown role `weight`; the roles are argument and parameter",
        ),
        ("[1.5, \"-inf\"]", "[1.5]", "E0801: constants[0]: constant `c` has 1 values, which do not match its shape"),
        ("\"value\": \"y\"", "\"value\": \"q\"", "E0801: outputs[0]: the tensor `q` is not defined before this"),
        ("[\"model.py\", 12]", "[\"model.py\"]", "E0801: nodes[0].place: a place is a file and a line"),
    ];
    for (from, to, expected) in cases {
        assert_eq!(messages(&changed(from, to)), [expected], "{to}");
    }
    assert!(messages("{")[0].starts_with("E0801: the model is not valid JSON: EOF"));
}

/// The document cut at every length, and with pieces of it put in other places.
#[test]
fn broken_documents_end_in_messages() {
    for end in 0..NORM.len() {
        if NORM.is_char_boundary(end) {
            assert!(!messages(&NORM[..end]).is_empty());
        }
    }
    let tokens: Vec<&str> = NORM.split_inclusive([',', ':', '{', '[', ']', '}']).collect();
    let numbers =
        ["-1", "0", "9223372036854775807", "-9223372036854775808", "1e308", "null", "[]", "{}", "\"x\"", "true"];
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n as u64) as usize
    };
    for _ in 0..20_000 {
        let mut mutant: Vec<String> = tokens.iter().map(|t| (*t).to_owned()).collect();
        for _ in 0..1 + below(3) {
            let at = below(mutant.len());
            match below(4) {
                0 => mutant[at] = tokens[below(tokens.len())].to_owned(),
                1 => mutant.swap(at, 0),
                2 => {
                    let end = mutant[at].pop().map(String::from).unwrap_or_default();
                    mutant[at] = format!("{}{end}", numbers[below(numbers.len())]);
                }
                _ => mutant[at].clear(),
            }
        }
        let text = mutant.concat();
        if let Ok(graph) = import(&text) {
            let _ = decompose::decompose(&graph, &mut |_| {});
        }
    }
}

#[test]
fn an_output_may_replace_an_argument() {
    let replacing =
        |name: &str| changed("\"value\": \"y\"}]}", &format!("\"value\": \"y\", \"replaces\": \"{name}\"}}]}}"));
    assert_eq!(import(&replacing("x")).unwrap().replaced, [(0, 0)]);
    for name in ["w", "y"] {
        assert!(messages(&replacing(name)).iter().any(|m| m.contains(&format!("no argument is named `{name}`"))));
    }
}
