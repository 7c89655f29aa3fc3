//! Models are written here byte by byte, after protobuf's encoding and the field numbers of `onnx.proto`.

use bytes::Bytes;

use super::{Options, import, import_assuming};
use crate::base::Diagnostic;
use crate::graph::{Constant, Elem, Graph, Op};

fn varint(mut v: u64) -> Vec<u8> {
    let mut out = vec![];
    while v >= 128 {
        out.push(v as u8 | 128);
        v >>= 7;
    }
    out.push(v as u8);
    out
}

fn int(field: u64, v: i64) -> Vec<u8> {
    [varint(field << 3), varint(v as u64)].concat()
}

fn sub(field: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

fn text(field: u64, s: &str) -> Vec<u8> {
    sub(field, s.as_bytes())
}

/// A dimension is a number or a name; an empty name is an unknown one.
fn shape(dims: &[&str]) -> Vec<u8> {
    let dim = |d: &&str| match d.parse::<i64>() {
        Ok(n) => sub(1, &int(1, n)),
        Err(_) if d.is_empty() => sub(1, &[]),
        Err(_) => sub(1, &text(2, d)),
    };
    dims.iter().flat_map(dim).collect()
}

fn value(name: &str, elem: i64, dims: &[&str]) -> Vec<u8> {
    let tensor = [int(1, elem), sub(2, &shape(dims))].concat();
    [text(1, name), sub(2, &sub(1, &tensor))].concat()
}

fn tensor(name: &str, elem: i64, dims: &[i64], raw: &[u8]) -> Vec<u8> {
    let dims: Vec<u8> = dims.iter().flat_map(|d| int(1, *d)).collect();
    [dims, int(2, elem), text(8, name), sub(9, raw)].concat()
}

fn longs(name: &str, values: &[i64]) -> Vec<u8> {
    let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    tensor(name, 7, &[values.len() as i64], &raw)
}

fn node(op: &str, name: &str, inputs: &[&str], outputs: &[&str], attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut out: Vec<u8> = inputs.iter().flat_map(|s| text(1, s)).collect();
    out.extend(outputs.iter().flat_map(|s| text(2, s)));
    out.extend([text(3, name), text(4, op)].concat());
    out.extend(attributes.iter().flat_map(|a| sub(5, a)));
    out
}

fn int_attr(name: &str, v: i64) -> Vec<u8> {
    [text(1, name), int(3, v), int(20, 2)].concat()
}

fn graph_attr(name: &str, graph: &[u8]) -> Vec<u8> {
    [text(1, name), sub(6, graph), int(20, 5)].concat()
}

fn graph(nodes: &[Vec<u8>], initializers: &[Vec<u8>], inputs: &[Vec<u8>], outputs: &[Vec<u8>]) -> Vec<u8> {
    let part = |field: u64, list: &[Vec<u8>]| -> Vec<u8> { list.iter().flat_map(|m| sub(field, m)).collect() };
    [part(1, nodes), text(2, "g"), part(5, initializers), part(11, inputs), part(12, outputs)].concat()
}

fn model(graph: &[u8], opset: i64) -> Vec<u8> {
    [int(1, 10), sub(7, graph), sub(8, &int(2, opset))].concat()
}

fn read(bytes: &[u8]) -> Result<Graph, Vec<Diagnostic>> {
    import(&Bytes::copy_from_slice(bytes), &Options::default())
}

fn messages(bytes: &[u8]) -> Vec<String> {
    match read(bytes) {
        Ok(_) => vec![],
        Err(list) => list.iter().map(|d| format!("{} {}", d.code.text(), d.message)).collect(),
    }
}

fn output_type(g: &Graph, i: usize) -> String {
    let v = &g.values[g.outputs[i].value];
    let dims: Vec<String> = v.shape.iter().map(|d| g.ix_text(d)).collect();
    format!("{} [{}]", v.elem, dims.join(", "))
}

/// `[batch, seq, 12]` to heads `[batch, seq, 4, 3]` and back by the arithmetic of exporters: Shape, Gather, Concat.
fn heads() -> Vec<u8> {
    let nodes = [
        node("Shape", "shape", &["x"], &["s"], &[]),
        node("Gather", "rows", &["s", "zero"], &["b"], &[int_attr("axis", 0)]),
        node("Unsqueeze", "", &["b", "axes"], &["b1"], &[]),
        node("Concat", "", &["b1", "rest"], &["to"], &[int_attr("axis", 0)]),
        node("Reshape", "split", &["x", "to"], &["y"], &[]),
    ];
    let initializers = [longs("axes", &[0]), longs("rest", &[-1, 4, 3]), tensor("zero", 7, &[], &[0; 8])];
    let inputs = [value("x", 1, &["batch", "seq", "12"])];
    model(&graph(&nodes, &initializers, &inputs, &[value("y", 1, &["batch", "seq", "4", "3"])]), 17)
}

#[test]
fn shape_arithmetic_keeps_symbols() {
    let g = read(&heads()).unwrap();
    assert_eq!(output_type(&g, 0), "f32 [batch, seq, 4, 3]");
    let reshape =
        g.nodes.values().find(|n| matches!(&n.op, Op::Source { name, .. } if name == "onnx.Reshape")).unwrap();
    assert_eq!(g.origins[reshape.origin].name, "split");
}

#[test]
fn one_name_is_one_symbol() {
    let nodes = [node("Identity", "", &["a"], &["c"], &[]), node("Identity", "", &["b"], &["d"], &[])];
    let inputs = [value("a", 1, &["n", ""]), value("b", 1, &["n", "past_n"])];
    let g = read(&model(&graph(&nodes, &[], &inputs, &[value("c", 1, &["n", ""]), value("d", 1, &["n", "k"])]), 13));
    let g = g.unwrap();
    let names: Vec<(&str, i64)> = g.symbols.values().map(|s| (s.name.as_str(), s.lo)).collect();
    assert_eq!(names, [("n", 1), ("a_d1", 1), ("past_n", 0)]);
}

#[test]
fn everything_unsupported_is_listed_at_once() {
    let nodes = [
        node("Frobnicate", "one", &["x"], &["a"], &[]),
        node("Identity", "two", &["a"], &["b"], &[]),
        node("Frobnicate", "three", &["b"], &["c"], &[]),
        node("Unheard", "", &["x"], &["d"], &[]),
    ];
    let outputs = [value("c", 1, &[]), value("d", 1, &[])];
    let bytes = model(&graph(&nodes, &[], &[value("x", 1, &["2"])], &outputs), 21);
    assert_eq!(
        messages(&bytes),
        [
            "E0802 operator Frobnicate (version 21) is not supported: `one` (Frobnicate), `three` (Frobnicate)",
            "E0802 operator Unheard (version 21) is not supported: of `d` (Unheard)",
        ]
    );
}

#[test]
fn what_the_file_states_of_elements_must_hold() {
    let nodes = [node("Identity", "", &["x"], &["y"], &[])];
    let of =
        |elem, dims: &[&str]| model(&graph(&nodes, &[], &[value("x", 1, &["2", "n"])], &[value("y", elem, dims)]), 21);
    assert_eq!(messages(&of(1, &["2", "7"])), Vec::<String>::new());
    // Tools leave shapes that were true before.
    assert_eq!(messages(&of(1, &["3", "n", "4"])), Vec::<String>::new());
    assert_eq!(messages(&of(7, &["2", "n"])), ["E0803 the model says that `y` holds i64, but it holds f32"]);
}

#[test]
fn shapes_that_are_known_fix_dimensions_of_the_same_name() {
    // `?` is not a name.
    let inputs = [value("x", 1, &["n", "?", "?"]), value("z", 1, &["n", "m"])];
    let nodes = [node("Identity", "", &["x"], &["y"], &[]), node("Identity", "", &["z"], &["w"], &[])];
    let file = model(&graph(&nodes, &[], &inputs, &[value("y", 1, &["a"]), value("w", 1, &["b"])]), 21);
    let of = |shapes: &[(&str, &[u64])]| {
        let shapes = shapes.iter().map(|(name, shape)| (name.to_string(), shape.to_vec())).collect();
        match import(&file.clone().into(), &Options { shapes, ..Options::default() }) {
            Ok(g) => (0..g.outputs.len()).map(|i| output_type(&g, i)).collect::<Vec<_>>().join(", "),
            Err(errors) => errors[0].message.clone(),
        }
    };
    assert_eq!(of(&[]), "f32 [n, x_d1, x_d2], f32 [n, m]");
    assert_eq!(of(&[("x", &[2, 3, 4])]), "f32 [2, 3, 4], f32 [2, m]");
    assert_eq!(of(&[("x", &[2, 3, 4]), ("z", &[2, 5])]), "f32 [2, 3, 4], f32 [2, 5]");
    assert_eq!(of(&[("x", &[2, 3])]), "input `x` has shape [2, 3], but the model declares 3 axes");
    let wrong = "input `z` has shape [3, 5], but along axis 0 `n` is 2";
    assert_eq!(of(&[("x", &[2, 3, 4]), ("z", &[3, 5])]), wrong);
}

#[test]
fn a_known_condition_takes_its_branch() {
    let branch = |source: &str, name: &str| {
        graph(&[node("Identity", "", &[source], &[name], &[])], &[], &[], &[value(name, 1, &["2"])])
    };
    let attributes = [graph_attr("then_branch", &branch("x", "t")), graph_attr("else_branch", &branch("z", "e"))];
    let nodes = [node("If", "choice", &["c"], &["y"], &attributes)];
    let inputs = [value("x", 1, &["2"]), value("z", 1, &["3"])];
    let of = |c: u8| model(&graph(&nodes, &[tensor("c", 9, &[], &[c])], &inputs, &[value("y", 1, &["n"])]), 21);
    assert_eq!(output_type(&read(&of(1)).unwrap(), 0), "f32 [2]");
    assert_eq!(output_type(&read(&of(0)).unwrap(), 0), "f32 [3]");
}

#[test]
fn branches_that_data_chooses_between_give_the_same_types() {
    let branch =
        |op: &str, name: &str| graph(&[node(op, "", &["x"], &[name], &[])], &[], &[], &[value(name, 1, &["a", "b"])]);
    let of = |then: &str, other: &str| {
        let attributes =
            [graph_attr("then_branch", &branch(then, "t")), graph_attr("else_branch", &branch(other, "e"))];
        let nodes = [node("If", "choice", &["c"], &["y"], &attributes)];
        let inputs = [value("x", 1, &["n", "3"]), value("c", 9, &[])];
        read(&model(&graph(&nodes, &[], &inputs, &[value("y", 1, &["a", "b"])]), 21))
    };
    assert_eq!(output_type(&of("Neg", "Identity").unwrap(), 0), "f32 [n, 3]");
    let message = of("Neg", "Transpose").unwrap_err()[0].message.clone();
    let types = "its branches give `y` different types, f32 [n, 3] and f32 [3, n]";
    assert!(message.contains(types) && message.contains("`choice` (If)"), "{message}");
}

#[test]
fn functions_are_inlined_with_their_attributes() {
    // f(a) {axis = 1 by default} = Flatten(a, axis)
    let flatten = {
        let axis = [text(1, "axis"), text(21, "at"), int(20, 2)].concat();
        node("Flatten", "", &["a"], &["r"], &[axis])
    };
    let function = [
        text(1, "f"),
        text(4, "a"),
        text(5, "r"),
        sub(7, &flatten),
        sub(9, &int(2, 21)),
        text(10, "mine"),
        sub(11, &int_attr("at", 1)),
    ]
    .concat();
    let call = |name: &str, out: &str, attributes: &[Vec<u8>]| {
        [node("f", name, &["x"], &[out], attributes), text(7, "mine")].concat()
    };
    let nodes = [call("", "y", &[]), call("", "z", &[int_attr("at", 2)])];
    let g = graph(
        &nodes,
        &[],
        &[value("x", 1, &["2", "3", "5"])],
        &[value("y", 1, &["2", "15"]), value("z", 1, &["6", "5"])],
    );
    let bytes = [model(&g, 21), sub(25, &function)].concat();
    let g = read(&bytes).unwrap();
    assert_eq!([output_type(&g, 0), output_type(&g, 1)], ["f32 [2, 15]", "f32 [6, 5]"]);
}

#[test]
fn a_function_that_calls_itself_ends() {
    let again = [node("f", "", &["a"], &["r"], &[]), text(7, "mine")].concat();
    let function = [text(1, "f"), text(4, "a"), text(5, "r"), sub(7, &again), text(10, "mine")].concat();
    let g = graph(std::slice::from_ref(&again), &[], &[value("a", 1, &[])], &[value("r", 1, &[])]);
    let bytes = [model(&g, 21), sub(25, &function)].concat();
    assert!(messages(&bytes)[0].contains("nest more than 32 deep"), "{:?}", messages(&bytes));
}

#[test]
fn weights_stay_in_their_folder() {
    let entry = |k: &str, v: &str| sub(13, &[text(1, k), text(2, v)].concat());
    let of = |file: &str| {
        let t =
            [int(1, 2), int(2, 1), text(8, "w"), entry("location", file), entry("offset", "16"), int(14, 1)].concat();
        model(&graph(&[node("Identity", "", &["w"], &["y"], &[])], &[t], &[], &[value("y", 1, &["2"])]), 21)
    };
    assert!(read(&of("w/a.bin")).is_ok());
    for outside in ["../w.bin", "/etc/passwd", "a/../../b", "C:w", "..\\w", "."] {
        assert!(messages(&of(outside))[0].starts_with("E0804 "), "{outside}");
    }
}

#[test]
fn a_known_input_is_a_constant() {
    let nodes = [node("Reshape", "", &["x", "to"], &["y"], &[])];
    let inputs = [value("x", 1, &["6"]), value("to", 7, &["2"])];
    let bytes = model(&graph(&nodes, &[], &inputs, &[value("y", 1, &["", ""])]), 21);
    assert!(messages(&bytes)[0].contains("must be known when the model is compiled"));
    let mut options = Options::default();
    let data: Vec<u8> = [2i64, 3].iter().flat_map(|v| v.to_le_bytes()).collect();
    let data = crate::graph::ConstData::Bytes(data.into());
    options.known.insert("to".into(), Constant { name: String::new(), elem: Elem::I64, shape: vec![2], data });
    let g = import(&Bytes::from(bytes), &options).unwrap();
    assert_eq!((output_type(&g, 0).as_str(), g.inputs.len()), ("f32 [2, 3]", 1));
}

#[test]
fn damaged_files_are_refused_or_read() {
    let bytes = heads();
    for cut in 0..bytes.len() {
        assert!(read(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    for at in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            drop(read(&changed));
        }
    }
}

#[test]
fn empty_messages_do_not_fill_memory() {
    // Two bytes each, and far more in memory.
    let bytes = sub(7, &[10u8, 0].repeat(1 << 20));
    assert_eq!(messages(&bytes).len(), 1);
    assert!(messages(&bytes)[0].contains("empty entries"), "{:?}", messages(&bytes));
}

#[test]
fn a_fault_names_its_byte() {
    assert_eq!(
        messages(&[0x3a, 0x10, 0x0a]),
        ["E0801 the model cannot be read at byte 0: a field announces 16 bytes where 1 are left"]
    );
}

#[test]
fn softmax_of_every_version_is_read() {
    let softmax = |opset: i64| {
        let nodes = [node("Softmax", "", &["x"], &["y"], &[int_attr("axis", 1)])];
        let io = |name: &str| value(name, 1, &["n", "3", "4"]);
        read(&model(&graph(&nodes, &[], &[io("x")], &[io("y")]), opset)).unwrap()
    };
    for opset in [7, 11, 12, 13] {
        let g = softmax(opset);
        assert_eq!(output_type(&g, 0), "f32 [n, 3, 4]");
        let stated = g.nodes.values().any(|n| matches!(&n.op, Op::Source { name, .. } if name == "onnx.Softmax"));
        assert!(stated, "version {opset}");
    }
}

#[test]
fn assumptions_make_a_model_of_what_is_refused() {
    // Two sums that cannot be read without an assumption, and a shape of the second.
    let nodes = [
        node("Add", "", &["x", "z"], &["a"], &[]),
        node("Add", "", &["u", "v"], &["b"], &[]),
        node("Reshape", "", &["b", "pairs"], &["y"], &[]),
    ];
    let inputs = [value("x", 1, &["n"]), value("z", 1, &["m"]), value("u", 1, &["k", "3"]), value("v", 1, &["j", "3"])];
    let outputs = [value("a", 1, &["p"]), value("y", 1, &["q", "r"])];
    let file = Bytes::from(model(&graph(&nodes, &[longs("pairs", &[-1, 6])], &inputs, &outputs), 21));
    let of = |extents: [u64; 4]| {
        let shapes = extents.iter().zip(["x", "z", "u", "v"]).map(|(n, name)| match name {
            "x" | "z" => (name.to_string(), vec![*n]),
            _ => (name.to_string(), vec![*n, 3]),
        });
        import_assuming(&file, &Options::default(), &shapes.collect()).map(|(graph, assumed)| {
            let types = [output_type(&graph, 0), output_type(&graph, 1)];
            (types.join(", "), assumed.texts().join(", "))
        })
    };
    let made = of([5, 5, 4, 4]).unwrap();
    assert_eq!(made.1, "m = n, k is a multiple of 2, j = k");
    assert_eq!(made.0, "f32 [n], f32 [k_by_2, 6]");
    // Extents of 1 stretch.
    assert_eq!(of([1, 7, 8, 1]).unwrap().1, "n = 1, k is a multiple of 2, j = 1");
    // Nothing makes them fit.
    let refused = of([5, 6, 4, 4]).unwrap_err();
    assert!(refused[0].message.contains("the shapes [5] and [6] do not broadcast"), "{refused:?}");
    // Nothing is assumed about an input without a given shape.
    let few = [("x".to_string(), vec![5])].into();
    assert!(import_assuming(&file, &Options::default(), &few).is_err());
}
