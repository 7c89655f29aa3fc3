//! Nodes that hold tensors or graphs: `Constant` and `If`.

use super::attributes::resolve;
use super::importer::{Body, Importer, Scope, Slot, node_text};
use super::proto::{Attribute, Graph as GraphProto, Node};
use super::tensor;
use crate::base::Code;
use crate::graph::build::Refusal;
use crate::graph::{Arg, Builder, ConstData, Constant, Elem, OriginId};

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
                match tensor::constant(t, name) {
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
            other => {
                self.unsupported(format!("attribute `{other}` of operator Constant"), node_text(node));
                return None;
            }
        };
        Some(vec![self.constant(constant, origin)])
    }

    /// The branch taken where the condition is known; otherwise both, and a choice between their results.
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
            _ => {
                let a = self.inner(then, node, body, origin)?;
                let b = self.inner(other, node, body, origin)?;
                self.choose(node, cond, &a, &b, origin)
            }
        }
    }

    fn choose(&mut self, node: &Node, cond: Arg, a: &[Slot], b: &[Slot], origin: OriginId) -> Option<Vec<Slot>> {
        let mut out = vec![];
        for pair in a.iter().zip(b) {
            let (Slot::Is(x), Slot::Is(y)) = pair else { return None };
            let mut builder = Builder::new(&mut self.graph, origin);
            let same =
                builder.elem(*x) == builder.elem(*y) && builder.same_shape(&builder.shape(*x), &builder.shape(*y));
            let one = builder.numel(&builder.shape(cond)).is_const(1);
            let chosen = if same && one {
                builder.reshape(cond, &[]).and_then(|c| builder.select(c, *x, *y))
            } else {
                Err(Refusal::new(
                    "its branches give different types, but its condition is not known when the model is \
                                  compiled",
                ))
            };
            match chosen {
                Ok(x) => out.push(Slot::Is(x)),
                Err(refusal) => {
                    self.refuse(node, refusal);
                    return None;
                }
            }
        }
        Some(out)
    }

    /// Appends an inner graph without inputs of its own.
    fn inner(&mut self, graph: &'m GraphProto, node: &Node, body: Body<'_, 'm>, origin: OriginId) -> Option<Vec<Slot>> {
        if !self.deeper(body.depth, node) {
            return None;
        }
        self.scopes.push(Scope::default());
        self.initializers(graph, origin);
        self.body(&graph.nodes, Body { depth: body.depth + 1, ..body });
        let results = self.results(graph.outputs.iter().map(|o| o.name.as_str()), node);
        self.scopes.pop();
        results
    }
}
