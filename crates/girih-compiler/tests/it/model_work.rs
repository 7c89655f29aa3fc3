//! Work on a model grows with the model, and not with its square: counted in what is looked at of the graph, of index
//! expressions and of statements, from the captured graph to kernel IR.

use girih_compiler::base::work::looked_at;
use girih_compiler::graph::build::{Builder, Result};
use girih_compiler::graph::ir::{Arg, Graph, Output, Role};
use girih_compiler::graph::{Attr, Elem};
use girih_compiler::index::Ix;
use girih_compiler::pipeline::{self, Options, Silent};

fn shape(of: &[usize]) -> Vec<Ix> {
    of.iter().map(|n| Ix::Const(*n as i64)).collect()
}

fn input(graph: &mut Graph, name: &str, of: &[usize]) -> Arg {
    graph.add_input(name, Elem::F32, shape(of), Role::Argument).into()
}

fn aten(b: &mut Builder<'_>, name: &str, args: &[Arg], attrs: &[(&str, i64)]) -> Arg {
    let attrs = attrs.iter().map(|(k, v)| (k.to_string(), Attr::Int(Ix::Const(*v)))).collect();
    b.source(name, args.to_vec(), attrs).unwrap()[0]
}

/// The number of statements looked at while a model is lowered; `make` gives the model's outputs.
fn work(make: impl Fn(&mut Builder<'_>, &[Arg]) -> Result<Vec<Arg>>, inputs: usize, of: &[usize]) -> u64 {
    let mut graph = Graph { name: "test".into(), ..Graph::default() };
    let args: Vec<Arg> = (0..inputs).map(|i| input(&mut graph, &format!("x{i}"), of)).collect();
    let origin = graph.add_origin("aten.test", "", None);
    let outputs = make(&mut Builder::new(&mut graph, origin), &args).unwrap();
    for (i, out) in outputs.into_iter().enumerate() {
        let Arg::Value(value) = out else { panic!("a scalar output") };
        graph.outputs.push(Output { name: format!("out{i}"), value });
    }
    let before = looked_at();
    let options = Options::default();
    let model = pipeline::lower_model(&graph, &options, &mut Silent).unwrap_or_else(|d| panic!("{d:#?}"));
    for step in model.scheduled.load.into_iter().chain(model.scheduled.steps) {
        pipeline::lower_loops(step.kernel, &options, &mut options.rewrites(), &mut Silent)
            .unwrap_or_else(|d| panic!("{d:#?}"));
    }
    looked_at() - before
}

/// Eight times the model, at most ten times the work.
#[track_caller]
fn linear(what: &str, n: usize, work: impl Fn(usize) -> u64) {
    let (small, large) = (work(n), work(8 * n));
    assert!(large <= 10 * small, "{what}: {small} looked at for {n}, {large} for {}", 8 * n);
}

#[test]
fn a_concatenation() {
    linear("a concatenation", 1000, |n| work(|b, x| Ok(vec![aten(b, "aten.cat", x, &[("dim", 0)])]), n, &[4]));
}

#[test]
fn a_stack_of_rows_of_one_tensor() {
    linear("a stack", 500, |n| {
        let rows = |b: &mut Builder<'_>, x: &[Arg]| {
            let row = |i| aten(b, "aten.select", &[x[0]], &[("dim", 0), ("index", n as i64 - 1 - i as i64)]);
            let rows: Vec<Arg> = (0..n).map(row).collect();
            Ok(vec![aten(b, "aten.stack", &rows, &[("dim", 0)])])
        };
        work(rows, 1, &[n, 4])
    });
}

#[test]
fn pieces_of_a_concatenation() {
    linear("pieces", 250, |n| {
        let pieces = |b: &mut Builder<'_>, x: &[Arg]| {
            let whole = aten(b, "aten.cat", x, &[("dim", 0)]);
            let piece = |i| b.slice(whole, 0, Ix::Const(4 * i as i64), 1, Ix::Const(4));
            let pieces = (0..n).map(piece).collect::<Result<Vec<Arg>>>()?;
            Ok(pieces.into_iter().map(|p| aten(b, "aten.exp", &[p], &[])).collect())
        };
        work(pieces, n, &[4])
    });
}

#[test]
fn many_results() {
    linear("many results", 500, |n| {
        let each = |b: &mut Builder<'_>, x: &[Arg]| {
            (0..n).map(|i| b.add(x[0], b.scalar_like(x[0], i as f64))).collect::<Result<Vec<Arg>>>()
        };
        work(each, 1, &[8])
    });
}

#[test]
fn a_chain() {
    linear("a chain", 1000, |n| {
        let chain = |b: &mut Builder<'_>, x: &[Arg]| {
            Ok(vec![(0..n).try_fold(x[0], |y, i| if i % 2 == 0 { b.add(y, x[0]) } else { b.mul(y, y) })?])
        };
        work(chain, 1, &[8])
    });
}

#[test]
fn products_of_one_operand() {
    linear("products", 125, |n| {
        let products =
            |b: &mut Builder<'_>, x: &[Arg]| Ok(x[1..].iter().map(|w| aten(b, "aten.mm", &[x[0], *w], &[])).collect());
        work(products, n + 1, &[32, 32])
    });
}

#[test]
fn a_chain_of_products() {
    linear("a chain of products", 125, |n| {
        let chain =
            |b: &mut Builder<'_>, x: &[Arg]| Ok(vec![(0..n).fold(x[0], |y, _| aten(b, "aten.mm", &[y, x[0]], &[]))]);
        work(chain, 1, &[32, 32])
    });
}

#[test]
fn maps_between_operations() {
    linear("maps", 250, |n| {
        let chain = |b: &mut Builder<'_>, x: &[Arg]| {
            (0..n)
                .try_fold(x[0], |y, i| {
                    let shape = if i % 2 == 0 { shape(&[10, 12]) } else { shape(&[12, 10]) };
                    let y = b.transpose(y, &[1, 0])?;
                    let y = b.reshape(y, &[Ix::Const(120)])?;
                    let y = b.add(y, b.scalar_like(y, 1.0))?;
                    b.reshape(y, &shape)
                })
                .map(|y| vec![y])
        };
        work(chain, 1, &[12, 10])
    });
}
