//! Nodes that hold tensors or graphs: `Constant`, `If` and `FlexAttention`.

use super::attributes::resolve;
use super::importer::{Body, Importer, Slot, node_text};
use super::proto::{Attribute, Graph as GraphProto, Node};
use super::strings::text;
use super::tensor;
use crate::base::Code;
use crate::graph::build::repeat::{Rounds, number_inputs, state_or_row};
use crate::graph::build::{Refusal, Result};
use crate::graph::{Arg, Attr, Attrs, Builder, ConstData, Constant, Elem, OriginId, ValueId, ir};
use crate::index::Ix;

impl<'m> Importer<'m> {
    pub(super) fn constant_node(&mut self, node: &'m Node, body: Body<'_, 'm>) -> Option<Vec<Slot>> {
        let origin = self.graph.add_origin("onnx.Constant", &node.name, None);
        let given = node.attributes.iter().find_map(|a| Some((a.name.as_str(), resolve(a, body.bound)?)));
        let Some((name, a)) = given else {
            self.error(Code::BadModel, format!("node {} has no value", node_text(node)));
            return None;
        };
        let of = |elem: Elem, shape: Vec<u64>, bytes: Vec<u8>| Constant {
            name: node.outputs.first().cloned().unwrap_or_default(),
            elem,
            shape,
            data: ConstData::Bytes(bytes.into()),
        };
        let many = |n: usize| vec![n as u64];
        let constant = match name {
            "value" => {
                let Some(t) = &a.t else {
                    self.error(Code::BadModel, format!("node {} has no value", node_text(node)));
                    return None;
                };
                let name = node.outputs.first().map_or(node.name.as_str(), String::as_str);
                match tensor::constant(t, name, &self.words) {
                    Ok(constant) => constant,
                    Err(trouble) => {
                        self.trouble(trouble, node_text(node));
                        return None;
                    }
                }
            }
            "value_float" => of(Elem::F32, vec![], a.f.to_le_bytes().to_vec()),
            "value_int" => of(Elem::I64, vec![], a.i.to_le_bytes().to_vec()),
            "value_floats" => {
                let bytes = a.floats.iter().flat_map(|v| v.to_le_bytes()).collect();
                of(Elem::F32, many(a.floats.len()), bytes)
            }
            "value_ints" => {
                let bytes = a.ints.iter().flat_map(|v| v.to_le_bytes()).collect();
                of(Elem::I64, many(a.ints.len()), bytes)
            }
            "value_string" => of(Elem::STRING, vec![], self.words.number(&text(&a.s)).to_le_bytes().to_vec()),
            "value_strings" => {
                let bytes = a.strings.iter().flat_map(|s| self.words.number(&text(s)).to_le_bytes()).collect();
                of(Elem::STRING, many(a.strings.len()), bytes)
            }
            other => {
                self.unsupported(format!("attribute `{other}` of operator Constant"), node_text(node));
                return None;
            }
        };
        Some(vec![self.constant(constant, origin)])
    }

    /// The branch that is taken, if the condition is known; otherwise each branch as a loop of one round or none.
    pub(super) fn branch(&mut self, node: &'m Node, args: Vec<Arg>, body: Body<'_, 'm>) -> Option<Vec<Slot>> {
        let graph = |name: &str| -> Option<&'m GraphProto> {
            let a: &'m Attribute = node.attributes.iter().find(|a| a.name == name)?;
            resolve(a, body.bound)?.g.as_deref()
        };
        let (Some(then), Some(other), Some(&cond)) = (graph("then_branch"), graph("else_branch"), args.first()) else {
            self.error(Code::BadModel, format!("node {} lacks a condition or a branch", node_text(node)));
            return None;
        };
        let origin = self.graph.add_origin("onnx.If", &node.name, None);
        let known = Builder::new(&mut self.graph, origin).ints(cond);
        match known.as_deref() {
            Some([ix]) if ix.as_const().is_some() => {
                let taken = if ix.is_const(0) { other } else { then };
                self.inner(taken, node, body, origin)
            }
            known => {
                let extents =
                    known.is_some_and(|all| all.len() == 1) && computes_extents(then) && computes_extents(other);
                if extents && let Some(chosen) = self.chosen(node, cond, [then, other], body, origin) {
                    return Some(chosen);
                }
                let both = self.either(node, cond, then, other, body, origin)?;
                Some(self.refused(node, both)?.into_iter().map(Slot::Is).collect())
            }
        }
    }

    /// The results of two branches that compute extents, and a condition that does too: both are computed, so that the choice
    /// is known. `None` if that cannot be done.
    fn chosen(
        &mut self,
        node: &'m Node,
        cond: Arg,
        branches: [&'m GraphProto; 2],
        body: Body<'_, 'm>,
        origin: OriginId,
    ) -> Option<Vec<Slot>> {
        let said = self.said();
        let mut results = branches.map(|graph| self.inner(graph, node, body, origin));
        if self.complains(&said) {
            self.unsay(said);
            return None;
        }
        let [then, other] = results.each_mut().map(Option::take);
        let mut b = Builder::new(&mut self.graph, origin);
        let (then, other) = (then?, other?);
        if then.len() != other.len() {
            return None;
        }
        let mut out = vec![];
        for pair in then.into_iter().zip(other) {
            let (Slot::Is(x), Slot::Is(y)) = pair else { return None };
            let alike = b.elem(x) == b.elem(y) && b.same_shape(&b.shape(x), &b.shape(y));
            if !alike || b.ints(x).is_none() || b.ints(y).is_none() {
                return None;
            }
            let test = b.reshape(cond, &[]).and_then(|cond| b.convert(cond, Elem::BOOL)).ok()?;
            out.push(Slot::Is(b.select(test, x, y).ok()?));
        }
        Some(out)
    }

    /// Runs one of two branches, as a loop of at most one round for each; the second loop begins with the results of
    /// the first. `None` where a branch was refused.
    fn either(
        &mut self,
        node: &'m Node,
        cond: Arg,
        then: &'m GraphProto,
        other: &'m GraphProto,
        body: Body<'_, 'm>,
        origin: OriginId,
    ) -> Option<Result<Vec<Arg>>> {
        let mut b = Builder::new(&mut self.graph, origin);
        let mut test = || {
            let cond = b.reshape(cond, &[])?;
            let cond = b.convert(cond, Elem::BOOL)?;
            Ok([cond, b.not(cond)?])
        };
        let tests = match test() {
            Ok(tests) => tests,
            Err(refusal) => return Some(Err(refusal)),
        };
        let (mut branches, mut types) = (vec![], vec![]);
        for graph in [then, other] {
            let said = self.said();
            self.open(node, &[], &[])?;
            let results = self.inner(graph, node, body, origin);
            let refused = results.as_ref().is_some_and(|all| all.contains(&Slot::Refused));
            if let Some(all) = &results
                && !self.no_lists(node, all)
            {
                self.close();
                return None;
            }
            let mut b = Builder::new(&mut self.graph, origin);
            let results = results.map(|all| {
                let one = |slot: &Slot| match slot {
                    Slot::Is(x) => b.tensor(*x).ok(),
                    Slot::Refused | Slot::List(_) => None,
                };
                all.iter().map(one).collect::<Option<Vec<ValueId>>>()
            });
            let (made, args) = self.close();
            if refused || self.complains(&said) {
                return None;
            }
            let results = results?;
            let Some(results) = results else {
                return Some(Err(Refusal::new("a branch gives an optional value, and data choose the branch")));
            };
            types.push(
                results.iter().map(|v| (made.values[*v].elem, made.values[*v].shape.clone())).collect::<Vec<_>>(),
            );
            branches.push((made, args, results));
        }
        let mut b = Builder::new(&mut self.graph, origin);
        let [first, second] = &types[..] else { return None };
        if let Some(why) = differ(&b, node, first, second) {
            return Some(Err(why));
        }
        // Before the first branch there is no result yet.
        let mut now: Vec<Arg> =
            first.iter().map(|(elem, shape)| b.full(ir::scalar(*elem, 0.0), *elem, shape.clone())).collect();
        for ((mut made, read, results), goes) in branches.into_iter().zip(tests) {
            let state = [&[goes], &now[..]].concat();
            let args = match state.iter().map(|x| b.tensor(*x)).collect::<Result<Vec<ValueId>>>() {
                Ok(args) => args,
                Err(refusal) => return Some(Err(refusal)),
            };
            for x in &args {
                state_or_row(b.graph, &mut made, *x, false);
            }
            made.inputs.rotate_right(args.len());
            number_inputs(&mut made);
            let done = Arg::Scalar { elem: Elem::BOOL, bits: 0 };
            let next: Vec<Arg> = [done].into_iter().chain(results.into_iter().map(Arg::Value)).collect();
            let of =
                Rounds { rounds: Ix::Const(1), conditional: true, carried: &state, rows: &[], read: &[], given: &[] };
            now = match b.repeated(made, &of, [args, read].concat(), &next, &[]) {
                Ok(all) => all[1..].to_vec(),
                Err(refusal) => return Some(Err(refusal)),
            };
        }
        Some(Ok(now))
    }

    /// Attention whose scores and probabilities pass through graphs of the model, if it has them.
    pub(super) fn flex_attention(&mut self, node: &'m Node, args: Vec<Arg>, body: Body<'_, 'm>) -> Option<Vec<Slot>> {
        let attrs = self.attrs(node, body)?;
        let one = |slots: Vec<Slot>| match slots[..] {
            [Slot::Is(x)] => Some(x),
            _ => None,
        };
        let scores = self.append(node, "onnx.FlexAttention.scores", args.clone(), attrs).and_then(one)?;
        let scores = self.modified(node, "score_mod", scores, body)?;
        let axis = Attrs::from([("axis".into(), Attr::Int(Ix::Const(-1))), ("opset".into(), Attr::Int(Ix::Const(13)))]);
        let weights = self.append(node, "onnx.Softmax", vec![scores], axis).and_then(one)?;
        let weights = self.modified(node, "prob_mod", weights, body)?;
        self.append(node, "onnx.FlexAttention.result", [&args[..], &[weights]].concat(), Attrs::new())
    }

    /// Applies a graph of the node to a value, which keeps its type and its shape; returns the value itself where there
    /// is no such graph.
    fn modified(&mut self, node: &'m Node, name: &str, x: Arg, body: Body<'_, 'm>) -> Option<Arg> {
        let attribute = node.attributes.iter().find(|a| a.name == name);
        let Some(graph) = attribute.and_then(|a| resolve(a, body.bound)).and_then(|a| a.g.as_deref()) else {
            return Some(x);
        };
        if !self.deeper(body.depth, node) {
            return None;
        }
        let origin = self.graph.add_origin("onnx.FlexAttention", &node.name, None);
        let results = self.round(graph, &[x], node, body, origin)?;
        let b = Builder::new(&mut self.graph, origin);
        let text = |x: Arg| format!("{} {}", b.elem(x), b.shape_text(&b.shape(x)));
        let why = match results[..] {
            [y] if b.elem(y) == b.elem(x) && b.same_shape(&b.shape(y), &b.shape(x)) => return Some(y),
            [y] => format!("its {name} makes {} of {}, which must stay as it is", text(y), text(x)),
            _ => format!("its {name} gives {} values, not one", results.len()),
        };
        self.refuse(node, Refusal::new(why));
        None
    }

    /// Appends an inner graph without inputs of its own.
    fn inner(&mut self, graph: &'m GraphProto, node: &Node, body: Body<'_, 'm>, origin: OriginId) -> Option<Vec<Slot>> {
        if !self.deeper(body.depth, node) {
            return None;
        }
        self.push_scope(false);
        self.initializers(graph, origin);
        self.body(&graph.nodes, Body { depth: body.depth + 1, ..body });
        let results = self.results(graph.outputs.iter().map(|o| o.name.as_str()), node);
        self.pop_scope();
        results
    }
}

/// The operators of a branch that only computes extents.
const OF_EXTENTS: &[&str] = &[
    "Abs",
    "Add",
    "And",
    "Cast",
    "Ceil",
    "Concat",
    "Constant",
    "Div",
    "Equal",
    "Floor",
    "Gather",
    "Greater",
    "GreaterOrEqual",
    "Identity",
    "Less",
    "LessOrEqual",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "Reshape",
    "Round",
    "Shape",
    "Size",
    "Slice",
    "Squeeze",
    "Sub",
    "Unsqueeze",
    "Where",
];

/// Returns true if a branch is short and may compute extents alone.
fn computes_extents(graph: &GraphProto) -> bool {
    graph.nodes.len() <= 32 && graph.nodes.iter().all(|node| OF_EXTENTS.contains(&node.op.as_str()))
}

/// The refusal of two branches, chosen by data, that cannot be one result: it names the first output whose types
/// differ.
fn differ(b: &Builder<'_>, node: &Node, then: &[(Elem, Vec<Ix>)], other: &[(Elem, Vec<Ix>)]) -> Option<Refusal> {
    if then.len() != other.len() {
        let (then, other) = (then.len(), other.len());
        return Some(Refusal::new(format!("its then_branch gives {then} values and its else_branch {other}")));
    }
    let at = then.iter().zip(other).position(|(x, y)| x.0 != y.0 || !b.same_shape(&x.1, &y.1))?;
    let text = |(elem, shape): &(Elem, Vec<Ix>)| format!("{elem} {}", b.shape_text(shape));
    let name = node.outputs.get(at).map_or("", String::as_str);
    let why = format!(
        "its branches give `{name}` different types, {} and {}, and its condition is not known when the model is compiled",
        text(&then[at]),
        text(&other[at])
    );
    Some(Refusal::new(why))
}
