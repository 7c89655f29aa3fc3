//! The pages of Torch IR and Tensor IR: their examples read back, decompose into each other and compute what the pages
//! say; the grammar is that of the printer.

use std::path::PathBuf;

use girih_compiler::graph::decompose::decompose;
use girih_compiler::graph::eval::{Options, Tensor, evaluate, no_files};
use girih_compiler::graph::parse::{check, no_data};
use girih_compiler::graph::print::{Dialect, print};

fn page(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/ir").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The block of text that begins with some words.
fn block(page: &str, start: &str) -> String {
    let from = page.find(&format!("```text\n{start}")).unwrap() + "```text\n".len();
    let len = page[from..].find("```").unwrap();
    page[from..from + len].to_string()
}

#[test]
fn the_example_is_followed_from_stage_to_stage() {
    let (torch, tensor) = (block(&page("torch.md"), "torch graph"), block(&page("tensor.md"), "tensor graph"));
    let (graph, dialect) = check(&torch, &no_data).unwrap();
    assert_eq!((print(&graph, dialect), dialect), (torch, Dialect::Torch));
    let primitives = decompose(&graph, &mut |_| {}).unwrap();
    assert_eq!(print(&primitives, Dialect::Tensor), tensor);
    let (back, dialect) = check(&tensor, &no_data).unwrap();
    assert_eq!((print(&back, dialect), dialect), (tensor, Dialect::Tensor));
    let x = Tensor::from_f32(&[2, 2], vec![1.0, 7.0, 1.0, -1.0]).unwrap();
    let w = Tensor::from_f32(&[2], vec![1.0, 10.0]).unwrap();
    for g in [&graph, &back] {
        let out = evaluate(g, &[x.clone(), w.clone()], &no_files, &Options::default()).unwrap();
        for (got, want) in out[0].numbers().iter().zip([0.2, 14.0, 1.0, -10.0]) {
            assert!((got - want).abs() < 1e-5, "{got} is not {want}");
        }
    }
}

#[test]
fn the_grammar_is_the_printers() {
    let source = include_str!("../../../girih-graph/src/graph/print.rs");
    let doc: String = source
        .lines()
        .map_while(|l| l.strip_prefix("//!"))
        .map(|l| format!("{}\n", l.strip_prefix(' ').unwrap_or(l)))
        .collect();
    assert_eq!(block(&page("tensor.md"), "graph   :="), block(&doc, "graph   :="));
}
