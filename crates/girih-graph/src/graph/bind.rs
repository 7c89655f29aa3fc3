//! The values of a graph's symbols, from the shapes of its inputs.
//!
//! In: a graph, a shape for each of its inputs, and the values of symbols that are given outright. Out: a value for each
//! symbol, such that every input has the extents the graph declares. For `x: f32[s0, 2048]` and `mask: bool[s0, s0 + 1]`,
//! the shapes `[3, 2048]` and `[3, 4]` give `s0 = 3`. A symbol that is not an extent, an integer that the model computes with,
//! may be negative; it has to be given.
//!
//! Invariant: what comes back satisfies every declared extent, the symbols' ranges and the graph's guards.

use super::ir::{Graph, MAX_EXTENT, SymId, ValueId};
use crate::base::id::Id;
use crate::base::{Code, Diagnostic};
use crate::index::{AxisId, Ix, Mask, ValId};

/// A symbol's value, and the input and the axis that it was taken from; `None` where it was given.
struct Found {
    value: i64,
    from: Option<(usize, usize)>,
}

/// The values of the symbols, in their order, for inputs of the given shapes (one for each of `graph.inputs`). `given`
/// are values in the symbols' order; for a symbol without one, the shapes determine the value.
///
/// # Errors
/// `E0806`, naming the input and the extents: a shape too many or too few, a wrong rank, an extent that is not the
/// declared one, a symbol bound to two values or outside its range, or one that the shapes do not determine.
pub fn bind_symbols(graph: &Graph, shapes: &[Vec<u64>], given: &[Option<i64>]) -> Result<Vec<i64>, Diagnostic> {
    if shapes.len() != graph.inputs.len() {
        return Err(error(format!("{} inputs are given, but the model has {}", shapes.len(), graph.inputs.len())));
    }
    let mut found: Vec<Option<Found>> = vec![];
    for (at, symbol) in graph.symbols.values().enumerate() {
        let value = given.get(at).copied().flatten();
        if let Some(value) = value.filter(|value| !symbol.admits(*value)) {
            let range = range(symbol.lo, symbol.hi);
            return Err(error(format!("{} is {value}, which must be {range}", symbol.name)));
        }
        found.push(value.map(|value| Found { value, from: None }));
    }
    let mut pending: Vec<(usize, usize, Ix, i64)> = vec![];
    for (i, (input, shape)) in graph.inputs.iter().zip(shapes).enumerate() {
        let Some(value) = graph.values.get(input.value) else { continue };
        if value.shape.len() != shape.len() {
            let help = format!("it has {} axes, but the model expects {}", shape.len(), value.shape.len());
            return Err(error(format!(
                "input `{}` has shape {}, not {}",
                value.name,
                plain(shape),
                declared(graph, input.value)
            ))
            .help(help));
        }
        for (axis, (extent, &given)) in value.shape.iter().zip(shape).enumerate() {
            let given = i64::try_from(given).ok().filter(|g| *g <= MAX_EXTENT);
            let Some(given) = given else {
                return Err(error(format!("axis {axis} of input `{}` is longer than 2^40", value.name)));
            };
            pending.push((i, axis, extent.clone(), given));
        }
    }
    // Extents that are one symbol first, then those with one unknown symbol left, until nothing follows any more.
    loop {
        let mut progress = false;
        for (input, axis, extent, given) in &pending {
            let known = |sym: usize| found.get(sym).and_then(|f| f.as_ref()).map(|f| f.value);
            if let Some((sym, value)) = solve(extent, *given, &known) {
                let symbol = &graph.symbols[SymId::from_index(sym)];
                if !symbol.admits(value) {
                    return Err(error(format!(
                        "axis {axis} of input `{}` makes {} {value}, which must be {}",
                        name(graph, *input),
                        symbol.name,
                        range(symbol.lo, symbol.hi)
                    )));
                }
                found[sym] = Some(Found { value, from: Some((*input, *axis)) });
                progress = true;
            }
        }
        if !progress {
            break;
        }
    }
    let mut values = vec![];
    for ((id, symbol), f) in graph.symbols.iter().zip(&found) {
        match f {
            Some(f) => values.push(f.value),
            None if !is_used(graph, id) => values.push(symbol.lo),
            None => return Err(error(format!("the inputs' shapes do not say what {} is", symbol.name))),
        }
    }
    for (input, axis, extent, given) in &pending {
        if eval_extent(extent, &values) == Some(*given) {
            continue;
        }
        let (name, text) = (name(graph, *input), graph.ix_text(extent));
        let mut message = format!("axis {axis} of input `{name}` has extent {given}, not {text}");
        let from: Vec<String> = extent
            .vals()
            .into_iter()
            .filter_map(|v| {
                let f = found.get(v.index())?.as_ref()?;
                let symbol = graph.symbols.get(SymId::from_index(v.index()))?;
                let from = f.from.map_or(String::new(), |(input, axis)| {
                    format!(" from axis {axis} of `{}`", self::name(graph, input))
                });
                Some(format!("{} is {}{from}", symbol.name, f.value))
            })
            .collect();
        if !from.is_empty() {
            message = format!("{message}: {}", from.join(", "));
        }
        return Err(error(message));
    }
    for cond in &graph.guards {
        let (lhs, rhs) = (eval_exact(&cond.lhs, &values), eval_exact(&cond.rhs, &values));
        if !lhs.zip(rhs).is_some_and(|(lhs, rhs)| cond.cmp.holds(lhs, rhs)) {
            let (text, known) = (graph.ix_text(&cond.lhs), lhs.map_or("beyond 64 bits".into(), |n| n.to_string()));
            let wanted = graph.mask_text(&Mask { conds: vec![cond.clone()], vals: vec![] });
            return Err(error(format!("{text} is {known}: the model is compiled for {wanted}")));
        }
    }
    Ok(values)
}

/// An extent's value, if it is a number from 0 to [`MAX_EXTENT`] and no step on the way leaves 64 bits.
pub fn eval_extent(extent: &Ix, symbols: &[i64]) -> Option<i64> {
    eval_exact(extent, symbols).filter(|n| (0..=MAX_EXTENT).contains(n))
}

/// The value of an expression over symbols; `None` when it has axes, or where a step leaves 64 bits.
pub fn eval_exact(ix: &Ix, symbols: &[i64]) -> Option<i64> {
    let Some((a, b)) = ix.operands() else {
        return match ix {
            Ix::Const(c) => Some(*c),
            Ix::Val { val, .. } => symbols.get(val.index()).copied(),
            _ => None,
        };
    };
    let (a, b) = (eval_exact(a, symbols)?, eval_exact(b, symbols)?);
    match ix {
        Ix::Add(..) => a.checked_add(b),
        Ix::Sub(..) => a.checked_sub(b),
        Ix::Mul(..) => a.checked_mul(b),
        Ix::FloorDiv(..) => (b > 0).then(|| a.div_euclid(b)),
        Ix::Mod(..) => (b > 0).then(|| a.rem_euclid(b)),
        Ix::Min(..) => Some(a.min(b)),
        _ => Some(a.max(b)),
    }
}

/// The one unknown symbol of an extent and its value, where the extent is linear in it.
fn solve(extent: &Ix, given: i64, known: &dyn Fn(usize) -> Option<i64>) -> Option<(usize, i64)> {
    let unknown: Vec<ValId> = extent.vals().into_iter().filter(|v| known(v.index()).is_none()).collect();
    let &[val] = &unknown[..] else { return None };
    let axis = AxisId(0);
    let placed = extent.replace_leaves(&mut |leaf| match leaf {
        Ix::Val { val: v, .. } if *v == val => Some(Ix::Axis(axis)),
        Ix::Val { val: v, .. } => known(v.index()).map(Ix::Const),
        _ => None,
    });
    let (factor, rest) = placed.linear(axis)?;
    let (factor, rest) = (factor.as_const()?, rest.as_const()?);
    let product = given.checked_sub(rest)?;
    // A remainder: no value fits, which the final comparison reports.
    let value = product.checked_div(factor)?;
    Some((val.index(), value))
}

/// Returns true if anything depends on the symbol.
fn is_used(graph: &Graph, sym: SymId) -> bool {
    let mentions = |ix: &Ix| ix.vals().contains(&ValId(sym.0));
    let in_op = |op: &super::Op| {
        use super::{Coord, Op};
        match op {
            Op::Index(ix) => mentions(ix),
            Op::IndexMap(sources) => sources.iter().any(|s| {
                s.coords.iter().any(mentions) || s.when.conds.iter().any(|c| mentions(&c.lhs) || mentions(&c.rhs))
            }),
            Op::Gather(coords) | Op::Scatter { coords, .. } => {
                coords.iter().any(|c| matches!(c, Coord::Ix(ix) if mentions(ix)))
            }
            Op::Source { .. } => true,
            Op::Repeat(r) => mentions(&r.rounds) || is_used(&r.body, sym),
            _ => false,
        }
    };
    graph.values.values().any(|v| v.shape.iter().any(mentions)) || graph.nodes.values().any(|n| in_op(&n.op))
}

fn name(graph: &Graph, input: usize) -> &str {
    graph.inputs.get(input).and_then(|i| graph.values.get(i.value)).map_or("?", |v| &v.name)
}

fn declared(graph: &Graph, v: ValueId) -> String {
    graph.values.get(v).map_or_else(String::new, |v| {
        let parts: Vec<String> = v.shape.iter().map(|d| graph.ix_text(d)).collect();
        format!("[{}]", parts.join(", "))
    })
}

fn plain(shape: &[u64]) -> String {
    format!("{shape:?}")
}

fn range(lo: i64, hi: Option<i64>) -> String {
    match hi {
        Some(hi) => format!("from {lo} to {hi}"),
        None => format!("at least {lo}"),
    }
}

fn error(message: String) -> Diagnostic {
    Diagnostic::error(Code::ModelInput, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Elem, Role};

    fn graph() -> Graph {
        let mut g = Graph::default();
        let s = g.add_symbol("s", 1, Some(100));
        let t = g.add_symbol("t", 0, None);
        let twice = Ix::add(Ix::mul(s.ix(), Ix::Const(2)), t.ix());
        g.add_input("x", Elem::F32, vec![twice, Ix::Const(8)], Role::Argument);
        g.add_input("y", Elem::F32, vec![s.ix()], Role::Argument);
        g
    }

    #[test]
    fn symbols_follow_from_the_shapes() {
        // 2*3 + t = 10
        assert_eq!(bind_symbols(&graph(), &[vec![10, 8], vec![3]], &[]), Ok(vec![3, 4]));
    }

    #[test]
    fn what_does_not_fit_names_the_input() {
        let message = |shapes: &[Vec<u64>]| bind_symbols(&graph(), shapes, &[]).unwrap_err().message;
        assert_eq!(message(&[vec![10], vec![3]]), "input `x` has shape [10], not [s*2 + t, 8]");
        assert_eq!(message(&[vec![10, 9], vec![3]]), "axis 1 of input `x` has extent 9, not 8");
        assert_eq!(message(&[vec![10, 8], vec![0]]), "axis 0 of input `y` makes s 0, which must be from 1 to 100");
        assert_eq!(message(&[vec![5, 8], vec![3]]), "axis 0 of input `x` makes t -1, which must be at least 0");
        assert_eq!(message(&[vec![5, 8]]), "1 inputs are given, but the model has 2");
        let mut g = graph();
        let s = SymId(0).ix();
        g.add_input("z", Elem::F32, vec![s], Role::Argument);
        let found = bind_symbols(&g, &[vec![10, 8], vec![3], vec![4]], &[]).unwrap_err().message;
        assert_eq!(found, "axis 0 of input `z` has extent 4, not s: s is 3 from axis 0 of `y`");
    }
    #[test]
    fn symbols_may_be_given_and_negative() {
        let mut g = graph();
        let k = g.add_symbol("k", -5, Some(5));
        g.add_input("z", Elem::F32, vec![Ix::add(SymId(0).ix(), k.ix())], Role::Argument);
        let bind =
            |given: &[Option<i64>]| bind_symbols(&g, &[vec![10, 8], vec![3], vec![1]], given).map_err(|d| d.message);
        assert_eq!(bind(&[None, None, Some(-2)]), Ok(vec![3, 4, -2]));
        assert_eq!(bind(&[]), Ok(vec![3, 4, -2]));
        assert_eq!(bind(&[Some(3), Some(4), Some(-2)]), Ok(vec![3, 4, -2]));
        assert_eq!(bind(&[None, None, Some(-6)]), Err("k is -6, which must be from -5 to 5".into()));
        let found = "axis 0 of input `z` has extent 1, not s + k: s is 3 from axis 0 of `y`, k is -1";
        assert_eq!(bind(&[None, None, Some(-1)]), Err(found.into()));
    }
}
