//! `print` and `parse` are inverse on every construct, `parse` answers any text, and `verify` finds what is broken.

use bytes::Bytes;

use super::eval::{Options, Tensor, evaluate, no_files};
use super::ir::*;
use super::parse::{check, no_data, parse};
use super::print::{Dialect, data_of, line_of_node, print};
use super::verify::verify;
use super::{Builder, Elem};
use crate::index::Ix;
use crate::num::ScalarOp;
use crate::num::op::Rounding;

/// One of each construct, as it is printed.
const ALL: &str = include_str!("testdata/all.torch");

#[test]
fn every_construct_reads_back() {
    let parsed = parse(ALL, &no_data).unwrap();
    assert_eq!(print(&parsed.graph, parsed.dialect), ALL);
    let named = ALL.replace("128, 400", r#""blk.0 \"q\"", 400"#);
    let other = parse(&named, &no_data).unwrap();
    assert_eq!(print(&other.graph, other.dialect), named);
    let g = &parsed.graph;
    // Each node stands on a line of its own, which begins with its first result.
    for (at, node) in g.nodes.values().enumerate() {
        let line = ALL.lines().nth(line_of_node(g, at) as usize - 1).unwrap();
        let name = super::names::Names::of(g).value(node.results[0]);
        assert!(line.trim_start().starts_with(&format!("{name}: ")), "{name}: {line}");
    }
    assert_eq!((&g.name[..], &g.symbols[SymId(0)].name[..]), ("all of it", "batch size"));
    assert_eq!(g.values[ValueId(0)].name, "x.0");
    let origin = |i: u32| {
        let o = &g.origins[g.nodes[NodeId(i)].origin];
        (&o.op[..], &o.name[..])
    };
    assert_eq!(
        [origin(0), origin(1), origin(3), origin(4), origin(5), origin(6), origin(9), origin(11)],
        [
            ("onnx.Constant", "c"),
            ("onnx.Constant", "c"),
            ("aten.linear", "layers.0"),
            ("odd op", ""),
            ("aten.mul", ""),
            ("aten.mul", ""),
            ("two words", "there"),
            ("", "")
        ]
    );
    let layer = include_str!("testdata/layer.tensor");
    let (graph, dialect) = check(layer, &no_data).unwrap();
    assert_eq!(print(&graph, dialect), layer);
    let spanned = parsed.spans.iter().map(|s| &ALL[s.start as usize..s.end as usize]).nth(6);
    assert_eq!(spanned, Some("max: f32[batch_size, 4] = max.nan mul, 0.5"));
}

/// A graph that a builder makes, with constants of both kinds.
fn built() -> Graph {
    let mut g = Graph { name: "rms".into(), ..Graph::default() };
    let s = g.add_symbol("s", 1, None);
    let x = g.add_input("x", Elem::F32, vec![s.ix(), Ix::Const(80)], Role::Argument);
    let origin = g.add_origin("aten.rms_norm", "norm", None);
    let mut b = Builder::new(&mut g, origin);
    let bytes: Vec<u8> = (0..80).flat_map(|i| (i as f32 / 8.0).to_le_bytes()).collect();
    let w = b.constant("w.weight", Elem::F32, &[80], Bytes::from(bytes));
    let bias = b.constant("b", Elem::F32, &[1], Bytes::from(2f32.to_le_bytes().to_vec()));
    let square = b.mul(x.into(), x.into()).unwrap();
    let mean = b.mean(square, &[1], true).unwrap();
    let scale = b.rsqrt(mean).unwrap();
    let y = b.mul(x.into(), scale).unwrap();
    let y = b.mul(y, w).unwrap();
    let y = b.add(y, bias).unwrap();
    let (Arg::Value(value), Arg::Value(copy)) = (y, b.transpose(y, &[1, 0]).unwrap()) else { panic!() };
    g.outputs = vec![Output { name: "y".into(), value }, Output { name: "copy".into(), value: copy }];
    g
}

#[test]
fn a_built_graph_reads_back_and_computes_the_same() {
    let g = built();
    assert_eq!(verify(&g, Dialect::Tensor), []);
    let text = print(&g, Dialect::Tensor);
    assert!(text.contains(r#"constant data("w_weight") !aten.rms_norm "norm""#), "{text}");
    let (back, dialect) = check(&text, &data_of(&g)).unwrap();
    assert_eq!((print(&back, dialect), dialect), (text.clone(), Dialect::Tensor));
    let x = Tensor::from_f32(&[2, 80], (0..160).map(|i| i as f32 - 70.0).collect()).unwrap();
    let run = |g: &Graph| evaluate(g, std::slice::from_ref(&x), &no_files, &Options::default()).unwrap();
    for (a, b) in run(&g).iter().zip(run(&back)) {
        assert!(a.same(&b));
    }
    assert_eq!(parse(&text, &no_data).unwrap_err().message, "the elements of `w_weight` are not in the text");
}

#[test]
fn names_in_the_text_are_unique_and_no_key_words() {
    let mut g = Graph::default();
    let names = ["true", "i0", "f32", "a.b", "a_b", "1", "", "x", "x", "é"];
    for name in names {
        let v = g.add_input(name, Elem::F32, vec![], Role::Argument);
        g.outputs.push(Output { name: format!("{name} out {}", v.0), value: v });
    }
    let text = print(&g, Dialect::Tensor);
    let back = parse(&text, &no_data).unwrap().graph;
    assert_eq!(print(&back, Dialect::Tensor), text);
    let real: Vec<&str> = back.inputs.iter().map(|i| &back.values[i.value].name[..]).collect();
    assert_eq!(real, names);
    assert!(text.contains("true_1 \"true\": f32[] = input\n"), "{text}");
}

#[test]
fn malformed_text_is_refused_at_its_place() {
    let refuse = |body: &str, place: &str, message: &str| {
        let text = format!("tensor graph g(s in 1..):\n  x: f32[s, 4] = input\n  i: i64[s] = input\n  {body}\n");
        let d = parse(&text, &no_data).unwrap_err();
        let span = d.span.unwrap();
        assert_eq!((&text[span.start as usize..span.end as usize], &d.message[..]), (place, message), "{body}");
    };
    refuse("y: f32[s, 4] = add x, z", "z", "`z` is not defined above");
    refuse("y: f32[s, 4] = add x, s", "s", "`s` is a symbol, not a tensor");
    refuse("y: f32[x, 4] = add x, x", "x", "`x` is a tensor, not a symbol or an axis");
    refuse("y: f32[i1, 4] = add x, x", "i1", "an extent must not depend on a position");
    refuse("x: f32[s, 4] = add x, x", "x", "`x` is defined twice");
    refuse("f16: f32[s, 4] = add x, x", "f16", "`f16` cannot be used as a name");
    refuse("y: f33[s, 4] = add x, x", "f33", "expected an element type, found `f33`");
    refuse("y: f32[s, 4] = frob x", "frob", "unknown operation `frob`");
    refuse("y: i64[s] = add i, 1.5", "1.5", "expected a constant of type i64, found `1.5`");
    refuse("y: f32[2] = constant [1.0]", "[", "1 elements are given, but the shape has 2");
    refuse("y: f32[s] = constant [1.0]", "[", "the shape of a constant must be known");
    refuse("y: f32[4] = reduce sum x over", "", "expected an integer, found the end of the line");
    refuse("y: f32[s, 4] = scan dot x along 1", "dot", "expected a running fold, found `dot`");
    refuse("y: f32[s, 4] = map x[i0, $]", "$", "unexpected character");
    refuse("output z", "z", "`z` is not defined above");
    let nested = format!("y: f32[s, 4] = map x[{}", "(".repeat(1000));
    let text = format!("tensor graph g(s in 1..):\n  x: f32[s, 4] = input\n  {nested}\n");
    assert_eq!(parse(&text, &no_data).unwrap_err().message, "the index expression nests too deeply");
    assert_eq!(parse("tensor graph g(s in 3..2):\n", &no_data).unwrap_err().span.unwrap().start, 15);
}

#[test]
fn broken_rules_are_all_reported() {
    let broken = |body: &str, message: &str| {
        let head = "tensor graph g(s in 1..8):\n  x: f32[s, 4] = input\n  i: i64[s] = input\n  h: f16[s, 4] = input\n";
        let text = format!("{head}  {body}\n");
        let found = check(&text, &no_data).expect_err(body);
        assert_eq!(found.iter().map(|d| &d.message[..]).collect::<Vec<_>>(), [message], "{body}");
        assert_eq!(found[0].span.map(|s| s.start as usize), Some(head.len() + 2));
    };
    broken("y: f32[s, 4] = aten.relu x", "`y`: aten.relu is not a primitive operation, as Tensor IR needs");
    broken("y: f32[s, 4] = add x, h", "`y`: the operation is not defined on f32, f16 with result f32");
    broken("y: f32[s, 4] = mul x", "`y`: it must have 2 operands, not 1");
    broken("y: f32[4, s] = neg x", "`y`: operand 1 has shape [s, 4], not [4, s]");
    broken("y: f32[s, 4] = ftof.f16 x", "`y`: the operation is not defined on f32 with result f32");
    broken("y: f32[s, 4] = exp i", "`y`: operand 1 has shape [s], not [s, 4]");
    broken("y: f32[s] = exp i", "`y`: the operation is not defined on i64 with result f32");
    broken("y: f32[s] = reduce sum x over 1", "`y`: the result has shape [s], not [s, 1]");
    broken("y: f32[s, 1] = reduce sum x over 2", "`y`: axis 2 is out of range for a tensor of rank 2");
    broken("y: f32[1, 1] = reduce sum x over 1, 0", "`y`: the axes must ascend");
    broken("y: f32[s, 1] = reduce dot x, h over 1", "`y`: f32 and f16 are different types");
    broken("y: f32[s, 1] = reduce argmax x over 1", "`y`: this fold of f32 does not give f32");
    broken("y: f16[s, 1] = reduce and h over 1", "`y`: this fold of f16 does not give f16");
    broken("y: f32[s, 4] = map x[i0]", "`y`: 1 coordinates are given for a tensor of rank 2");
    broken("y: f32[s, 4] = map x[i0, i2]", "`y`: the axis i2 is not defined here");
    broken(
        "y: f32[s, 4] = map x[i0, i1] where i0 < 3",
        "`y`: its last source has a condition, so some elements have none",
    );
    broken("y: f32[2, 5] = map x[0, i1]", "`y`: the coordinate i1 lies outside axis 1, whose extent is 4");
    broken("y: f32[2, 4] = map x[0, i1 - 1]", "`y`: the coordinate i1 - 1 lies outside axis 1, whose extent is 4");
    broken("y: f32[s, 2] = map x[i0, i1] where i1 < 1 else h[i0, i1]", "`y`: a source is f16, but the result is f32");
    broken("y: f32[s] = gather x[i]", "`y`: 1 coordinates are given for a tensor of rank 2");
    broken("y: f32[2] = gather x[i, 0]", "`y`: an index tensor has shape [s], not [2]");
    broken("y: f32[s, 4] = gather x[x, 0]", "`y`: an index must be an integer, not f32");
    broken("y: f32[s, 4] = scan sum x along 2", "`y`: axis 2 is out of range for a tensor of rank 2");
    broken("y: f32[s, 4], z: i32[s, 4] = sort x along 1", "`y`: positions must be i64, not i32");
    broken("y: f32[s - 9] = map 0.0", "`y`: the extent s - 9 is negative");
    broken("y: f32[2] = index i0", "`y`: an index must be an integer, not f32");
    broken("y: f64[s, 4] = add.ftz x, x", "`y`: the operation is not defined on f32, f32 with result f64");
    let two = "tensor graph g():\n  x: f32[2] = input\n  y: f32[3] = neg x\n  z: f32[2] = ceil y\n  output x\n  output x = y\n";
    let found = check(two, &no_data).unwrap_err();
    let messages: Vec<&str> = found.iter().map(|d| &d.message[..]).collect();
    assert_eq!(
        messages,
        ["`y`: operand 1 has shape [2], not [3]", "`z`: operand 1 has shape [3], not [2]", "two outputs are named `x`"]
    );
}

#[test]
fn a_broken_graph_prints_and_is_reported() {
    let mut g = built();
    g.nodes[NodeId(2)].args[0] = ValueId(9999).into();
    g.nodes[NodeId(3)].op = Op::Elementwise(ScalarOp::AddF { rounding: Rounding::NearestEven, ftz: false });
    g.nodes[NodeId(5)].results.clear();
    let text = print(&g, Dialect::Tensor);
    assert!(text.contains("mul ?v9999, x"), "{text}");
    let found = verify(&g, Dialect::Tensor);
    assert!(found.len() >= 3, "{found:?}");
    let x = Tensor::from_f32(&[1, 80], vec![0.0; 80]).unwrap();
    assert!(evaluate(&g, &[x], &no_files, &Options::default()).is_err());
}
