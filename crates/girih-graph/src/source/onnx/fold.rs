//! Short operations on constants are computed while the file is read, so that the numbers that shapes depend on are
//! known even if they are not integers (`Range` of floats, `Resize` by a quotient), and so that the graph holds no
//! arithmetic of exporters.

use crate::base::budget::{Budget, Limits, elements};
use crate::graph::ir::Def;
use crate::graph::{Arg, Attrs, Builder, ConstData, Constant, Elem, Graph, Op, ValueId, eval};
use crate::index::Ix;

/// The most elements of an operand or a result.
const MOST: u64 = 1024;
/// The most elements computed on the way.
const WORK: u64 = 1 << 20;
const MEMORY: u64 = 8 << 20;

/// Returns true if a constant is short enough to be examined.
pub(super) fn short(shape: &[u64]) -> bool {
    elements(shape).is_some_and(|n| n <= MOST)
}

/// The constant that a value is.
fn literal(graph: &Graph, v: ValueId) -> Option<Constant> {
    let value = graph.values.get(v)?;
    if let Def::Node(n, 0) = value.def
        && let Op::Constant(c) = &graph.nodes.get(n)?.op
    {
        let c = graph.constants.get(*c)?;
        return (short(&c.shape) && matches!(c.data, ConstData::Bytes(_))).then(|| c.clone());
    }
    let ints: Vec<i64> = value.ints.as_ref()?.iter().map(Ix::as_const).collect::<Option<_>>()?;
    let shape: Vec<u64> =
        value.shape.iter().map(|d| u64::try_from(d.as_const()?).ok()).collect::<Option<Vec<u64>>>()?;
    let elem: Elem = value.elem;
    if elem.dtype.bits() == 4 {
        return None;
    }
    let width = elem.dtype.bytes() as usize;
    let bytes: Vec<u8> = ints.iter().flat_map(|i| i.to_le_bytes().into_iter().take(width)).collect();
    Some(Constant { name: value.name.clone(), elem, shape, data: ConstData::Bytes(bytes.into()) })
}

/// The results of an operation all of whose operands are short constants.
pub(super) fn fold(graph: &Graph, name: &str, args: &[Arg], attrs: &Attrs) -> Option<Vec<Constant>> {
    let mut alone = Graph { listing: graph.listing.clone(), ..Graph::default() };
    let origin = alone.add_origin(name, "", None);
    let mut operands = vec![];
    for arg in args {
        operands.push(match arg {
            Arg::Value(v) => Builder::new(&mut alone, origin).constant_of(literal(graph, *v)?),
            other => *other,
        });
    }
    if !operands.iter().any(|a| matches!(a, Arg::Value(_))) {
        return None;
    }
    let results = Builder::new(&mut alone, origin).source(name, operands, attrs.clone()).ok()?;
    for result in &results {
        let &Arg::Value(value) = result else { return None };
        let shape = alone.values.get(value)?.shape.iter().map(|d| u64::try_from(d.as_const()?).ok());
        if !short(&shape.collect::<Option<Vec<u64>>>()?) {
            return None;
        }
        alone.outputs.push(crate::graph::Output { name: String::new(), value });
    }
    let budget = Budget::new(Limits { memory: MEMORY, work: WORK });
    let options = eval::Options { budget, ..eval::Options::default() };
    let tensors = eval::evaluate(&alone, &[], &eval::no_files, &options).ok()?;
    let constant = |t: eval::Tensor| Constant {
        name: String::new(),
        elem: t.elem,
        shape: t.shape.clone(),
        data: ConstData::Bytes(t.to_bytes().into()),
    };
    Some(tensors.into_iter().map(constant).collect())
}
