//! Moves factors of the columns of a product into its weights: the scales of batch norms behind convolutions, and those of layers.
//!
//! In: Tensor IR. Out: the same graph but for rounding, where weights are multiplied when the model is loaded, and nothing is at each
//! run. What is added on the way, as a bias, is multiplied likewise.
//!
//! ```text
//! d [1, 8, 6, 6, 1] = dot x, (map w[i1, i4]) over 4        w [8, 3], s [8]: parameters
//! c [1, 8, 6, 6] = map d[0, i1, i2, i3, 0]
//! y = mul c, (map s[i1])
//!   -->
//! v [8, 3] = mul w, (map s[i0])                            once
//! d [1, 8, 6, 6, 1] = dot x, (map v[i1, i4]) over 4
//! y [1, 8, 6, 6] = map d[0, i1, i2, i3, 0]
//! ```

use std::collections::BTreeSet;

use super::build::Builder;
use super::copy::Copying;
use super::ir::{Arg, Graph, MapSource, Node, Op, ReduceOp, Role, ValueId, axis};
use crate::base::rule::Log;
use crate::graph::Elem;
use crate::index::Ix;
use crate::num::ScalarOp;

/// Weights that have more elements than this many times the product's are not copied.
const MOST_TIMES: i64 = 16;

/// Moves the factors; `log` gets the names of the products.
pub fn scaled(graph: &Graph, log: &mut Log) -> Option<Graph> {
    // The products and what follows them are made anew at their factors, and left out before.
    let (known, uses, none) = (known(graph), graph.uses(), BTreeSet::new());
    let mut pass = Pass { graph, known, uses, left_out: none.clone(), anew: none, copy: Copying::new(graph) };
    pass.run(&mut Log::default());
    if pass.anew.is_empty() {
        return None;
    }
    pass.left_out = std::mem::take(&mut pass.anew);
    pass.copy = Copying::new(graph);
    pass.run(log);
    Some(pass.copy.finish())
}

/// The values that depend on parameters and constants alone, of known extents.
fn known(graph: &Graph) -> Vec<bool> {
    let mut known = vec![false; graph.values.len()];
    for input in &graph.inputs {
        known[input.value.0 as usize] = input.role == Role::Parameter;
    }
    for node in graph.nodes.values() {
        let plain = matches!(node.op, Op::Constant(_) | Op::Elementwise(_) | Op::IndexMap(_) | Op::Reduce { .. });
        let all = plain && node.values().all(|v| known[v.0 as usize]);
        for v in &node.results {
            known[v.0 as usize] = all && graph.values[*v].shape.iter().all(|n| n.as_const().is_some());
        }
    }
    known
}

/// A tensor read at coordinates over the axes of another.
#[derive(Clone)]
struct Read {
    source: ValueId,
    coords: Vec<Ix>,
}

impl Read {
    /// A value as a read of the tensor that it only spreads; the value itself otherwise.
    fn of(graph: &Graph, v: ValueId) -> Read {
        if let Some((source, read)) = graph.def(v).and_then(|(node, _)| node.spread()) {
            return Read { source, coords: read.coords.clone() };
        }
        let own = |(d, n): (usize, &Ix)| if n.is_const(1) { Ix::Const(0) } else { axis(d) };
        Read { source: v, coords: graph.values[v].shape.iter().enumerate().map(own).collect() }
    }

    /// This read over the axes of the tensor that `coords` index, which must name each axis of this one; `None` otherwise.
    fn within(&self, coords: &[Ix]) -> Option<Read> {
        let place = |c: &Ix| match c {
            Ix::Const(_) => Some(c.clone()),
            other => coords.iter().position(|own| own == other).map(axis),
        };
        Some(Read { source: self.source, coords: self.coords.iter().map(place).collect::<Option<_>>()? })
    }

    fn is_spread(&self) -> bool {
        self.coords.iter().any(|c| matches!(c, Ix::Axis(_)))
    }
}

struct Pass<'g> {
    graph: &'g Graph,
    known: Vec<bool>,
    uses: Vec<usize>,
    /// The values that are not copied.
    left_out: BTreeSet<ValueId>,
    /// The values that were made anew instead.
    anew: BTreeSet<ValueId>,
    copy: Copying<'g>,
}

impl Pass<'_> {
    fn run(&mut self, log: &mut Log) {
        for node in self.graph.nodes.values() {
            match self.moved(node) {
                Some((result, made)) => {
                    self.copy.bind(result, made);
                    log.applied(format!("{}: its factor is in the weights", self.graph.values[result].name));
                }
                None if node.results.iter().any(|v| self.left_out.contains(v)) => {}
                None => self.copy.node(node),
            }
        }
    }

    fn is_known(&self, v: ValueId) -> bool {
        self.known[v.0 as usize]
    }

    /// The value that a multiplication by a factor becomes, if the factor can be in the weights.
    fn moved(&mut self, node: &Node) -> Option<(ValueId, Arg)> {
        let Op::Elementwise(ScalarOp::MulF { .. }) = node.op else { return None };
        let ([Arg::Value(a), Arg::Value(b)], [result]) = (&node.args[..], &node.results[..]) else { return None };
        let (x, by) = match (self.is_known(*a), self.is_known(*b)) {
            (false, true) => (*a, *b),
            (true, false) => (*b, *a),
            _ => return None,
        };
        let factor = Some(Read::of(self.graph, by)).filter(Read::is_spread)?;
        let mut anew = vec![by];
        let made = self.times(x, &factor, &mut anew)?;
        // Values that other nodes need, too, stay.
        self.anew.extend(anew.into_iter().filter(|v| self.uses[v.0 as usize] == 1));
        let name = &self.graph.values[*result].name;
        Some((*result, self.builder(node).name(made, name)))
    }

    /// A value times a factor that is read over its axes; `anew` gets the values that are made anew for it.
    fn times(&mut self, v: ValueId, factor: &Read, anew: &mut Vec<ValueId>) -> Option<Arg> {
        let graph = self.graph;
        anew.push(v);
        let (node, _) = graph.def(v)?;
        if self.uses[v.0 as usize] != 1 || graph.values[v].elem != Elem::F32 {
            return None;
        }
        match &node.op {
            Op::IndexMap(_) => {
                let (of, MapSource { coords, .. }) = node.spread()?;
                let made = self.times(of, &factor.within(coords)?, anew)?;
                let to = &graph.values[v];
                Some(self.builder(node).map(&to.name, made, to.shape.clone(), coords.clone()))
            }
            Op::Elementwise(op @ (ScalarOp::AddF { .. } | ScalarOp::SubF { .. })) => {
                let [Arg::Value(a), Arg::Value(b)] = node.args[..] else { return None };
                let (x, other) = if self.is_known(a) { (b, a) } else { (a, b) };
                let second = matches!(op, ScalarOp::SubF { .. }) && self.is_known(a);
                if second || self.is_known(x) || !self.is_known(other) {
                    return None;
                }
                let added = Read::of(graph, other);
                let inner = factor.within(&added.coords)?;
                anew.push(other);
                let made = self.times(x, factor, anew)?;
                let scaled = self.multiplied(node, added.source, &inner)?;
                let shape = graph.values[other].shape.clone();
                let mut b = self.builder(node);
                let spread = b.map(&graph.values[other].name, scaled, shape, added.coords);
                b.elementwise(*op, &[made, spread]).ok()
            }
            Op::Reduce { op: ReduceOp::Dot, axes } => {
                let [Arg::Value(a), Arg::Value(b)] = node.args[..] else { return None };
                let first = self.is_known(a);
                if first == self.is_known(b) {
                    return None;
                }
                let (weights, other) = if first { (a, b) } else { (b, a) };
                let read = Read::of(graph, weights);
                let inner = factor.within(&read.coords)?;
                let count =
                    |v: ValueId| graph.values[v].shape.iter().filter_map(Ix::as_const).fold(1, i64::saturating_mul);
                if read.source == weights || count(read.source) / MOST_TIMES > count(v) {
                    return None;
                }
                anew.push(weights);
                let scaled = self.multiplied(node, read.source, &inner)?;
                let other = self.copy.arg(Arg::Value(other));
                let k: Vec<usize> = axes.iter().map(|d| *d as usize).collect();
                let to = &graph.values[weights];
                let mut b = self.builder(node);
                let spread = b.map(&to.name, scaled, to.shape.clone(), read.coords);
                let operands = if first { [spread, other] } else { [other, spread] };
                let made = b.dot(operands[0], operands[1], Elem::F32, &k, true).ok()?;
                Some(b.name(made, &graph.values[v].name))
            }
            _ => None,
        }
    }

    /// A tensor of floats that is known at load, times a factor over its axes.
    fn multiplied(&mut self, node: &Node, x: ValueId, factor: &Read) -> Option<Arg> {
        let of = &self.graph.values[x];
        if [x, factor.source].iter().any(|v| self.graph.values[*v].elem != Elem::F32) {
            return None;
        }
        let operands = [x, factor.source].map(|v| self.copy.arg(Arg::Value(v)));
        let mut b = self.builder(node);
        let spread = b.map("scale", operands[1], of.shape.clone(), factor.coords.clone());
        let made = b.mul(operands[0], spread).ok()?;
        Some(b.name(made, &format!("{}_scaled", of.name)))
    }

    fn builder(&mut self, node: &Node) -> Builder<'_> {
        Builder::new(&mut self.copy.out, node.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::eval::{self, Tensor};
    use crate::graph::parse::{check, no_data};
    use crate::graph::print::{Dialect, print};

    /// A convolution of one pixel, and what follows it.
    fn conv(then: &str) -> Graph {
        let text = format!(
            "tensor graph g():\n  x: f32[2, 3, 4, 4] = input\n  w: f32[8, 3] = parameter\n  s: f32[8] = parameter\n  \
             b: f32[8] = parameter\n  p: f32[2, 8, 4, 4, 3] = map x[i0, i4, i2, i3]\n  \
             q: f32[2, 8, 4, 4, 3] = map w[i1, i4]\n  d: f32[2, 8, 4, 4, 1] = reduce dot p, q over 4\n  \
             c: f32[2, 8, 4, 4] = map d[i0, i1, i2, i3, 0]\n  t: f32[2, 8, 4, 4] = map s[i1]\n  \
             a: f32[2, 8, 4, 4] = map b[i1]\n{then}  output out0 = y\n"
        );
        check(&text, &no_data).unwrap().0
    }

    /// The graph after the pass, whose results are the same but for rounding.
    fn moved(graph: &Graph) -> Option<String> {
        let out = scaled(graph, &mut Log::default())?;
        assert!(crate::graph::verify::verify(&out, Dialect::of(&out)).is_empty());
        let inputs: Vec<Tensor> = (graph.inputs.iter().zip(1u32..))
            .map(|(input, salt)| {
                let shape: Vec<u64> =
                    graph.values[input.value].shape.iter().map(|n| n.as_const().unwrap() as u64).collect();
                let number = |at: u64| ((at * 37 + u64::from(salt) * 11) % 64) as f32 / 16.0 - 2.0;
                let bits = (0..shape.iter().product::<u64>()).map(|at| u64::from(number(at).to_bits()));
                Tensor::from_bits(Elem::F32, &shape, bits.collect()).unwrap()
            })
            .collect();
        let run = |g: &Graph| -> Vec<f32> {
            let out = eval::evaluate(g, &inputs, &eval::no_files, &eval::Options::default()).unwrap();
            let bytes = out[0].to_bytes();
            bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
        };
        for (before, after) in run(graph).iter().zip(run(&out)) {
            assert!((before - after).abs() <= 1e-5 * before.abs().max(1.0), "{before} {after}");
        }
        Some(print(&out, Dialect::of(&out)))
    }

    #[test]
    fn a_factor_of_channels_is_in_the_weights() {
        let text = moved(&conv("  y: f32[2, 8, 4, 4] = mul c, t\n")).unwrap();
        let want = "  a: f32[2, 8, 4, 4] = map b[i1]
  scale: f32[8, 3] = map s[i0]
  w_scaled: f32[8, 3] = mul w, scale
  q: f32[2, 8, 4, 4, 3] = map w_scaled[i1, i4]
  d: f32[2, 8, 4, 4, 1] = reduce dot p, q over 4
  y: f32[2, 8, 4, 4] = map d[i0, i1, i2, i3, 0]
  output out0 = y
";
        assert!(text.ends_with(want), "{text}");
        // On the left, too.
        assert!(moved(&conv("  y: f32[2, 8, 4, 4] = mul t, c\n")).is_some());
    }

    #[test]
    fn weights_are_multiplied_as_they_lie_for_the_product() {
        let graph = conv("  y: f32[2, 8, 4, 4] = mul c, t\n");
        let turned = print(&graph, Dialect::of(&graph)).replace("w: f32[8, 3]", "w: f32[3, 8]");
        let turned =
            turned.replace("  q: ", "  u: f32[8, 3] = map w[i1, i0]\n  q: ").replace("map w[i1, i4]", "map u[i1, i4]");
        let text = moved(&check(&turned, &no_data).unwrap().0).unwrap();
        assert!(text.contains("u_scaled: f32[8, 3] = mul u, scale\n"), "{text}");
    }

    #[test]
    fn sums_with_biases_are_multiplied_in_both_terms() {
        for then in [
            "  e: f32[2, 8, 4, 4] = add c, a\n  y: f32[2, 8, 4, 4] = mul e, t\n",
            "  e: f32[2, 8, 4, 4] = add a, c\n  y: f32[2, 8, 4, 4] = mul e, t\n",
            "  e: f32[2, 8, 4, 4] = sub c, a\n  y: f32[2, 8, 4, 4] = mul e, t\n",
        ] {
            let text = moved(&conv(then)).unwrap();
            assert!(text.contains("b_scaled: f32[8] = mul b, scale"), "{then}: {text}");
        }
    }

    #[test]
    fn other_factors_stay() {
        for then in [
            // Factors of columns of the image, of all, and given with the call.
            "  u: f32[2, 8, 4, 4] = map w[i3, 0]\n  y: f32[2, 8, 4, 4] = mul c, u\n",
            "  y: f32[2, 8, 4, 4] = mul c, 2.0\n",
            "  u: f32[2, 8, 4, 4] = map x[i0, 0, i2, i3]\n  y: f32[2, 8, 4, 4] = mul c, u\n",
            // Factors of values other than a product with a bias.
            "  e: f32[2, 8, 4, 4] = sub a, c\n  y: f32[2, 8, 4, 4] = mul e, t\n",
            "  e: f32[2, 8, 4, 4] = exp c\n  y: f32[2, 8, 4, 4] = mul e, t\n",
            // A factor of a product that something else needs.
            "  e: f32[2, 8, 4, 4] = mul c, t\n  y: f32[2, 8, 4, 4] = add e, c\n",
        ] {
            assert_eq!(moved(&conv(then)), None, "{then}");
        }
    }

    #[test]
    fn large_weights_of_few_rows_are_not_copied() {
        let text = "tensor graph g():\n  x: f32[1, 64] = input\n  w: f32[64, 64] = parameter\n  s: f32[64] = parameter\n  \
                    p: f32[1, 64, 64] = map x[i0, i2]\n  q: f32[1, 64, 64] = map w[i1, i2]\n  \
                    d: f32[1, 64, 1] = reduce dot p, q over 2\n  c: f32[1, 64] = map d[i0, i1, 0]\n  \
                    t: f32[1, 64] = map s[i1]\n  y: f32[1, 64] = mul c, t\n  output out0 = y\n";
        let made = |rows: u32| {
            let text = text.replace("[1, 64", &format!("[{rows}, 64"));
            moved(&check(&text, &no_data).unwrap().0)
        };
        assert_eq!(made(1), None);
        assert!(made(4).is_some());
    }
}
