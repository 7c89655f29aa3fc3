//! Sequences of tensors and optional values: lists that the importer holds and the graph does not contain.
//!
//! In: nodes that make, change and read lists (`SequenceInsert`, `SplitToSequence`, `Optional`). Out: their tensors.
//! The number of tensors has to be known when the model is compiled, except where a loop adds one in each round: these
//! are the rows of a tensor.
//!
//! ```text
//! s = SequenceConstruct(a, b)        -->   s is [a, b]
//! y = SequenceAt(s, 1)               -->   y is b
//! loop { s = SequenceInsert(s, x) }  -->   s is the rows of the tensor that the loop gives
//! y = ConcatFromSequence(s)          -->   y = concat a, b; of rows: y = reshape rows
//! ```

use super::importer::{Body, Importer, Slot, node_text};
use super::proto::Node;
use crate::base::Code;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::normal_axis;
use crate::graph::{Arg, Attr, Attrs, Builder, Elem, OriginId};
use crate::index::Ix;

/// The most tensors of a list.
const MOST_ITEMS: i64 = 1024;
/// The number of tensors that take about the memory of a node.
const ITEMS_OF_A_NODE: usize = 16;

/// Which list a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ListId(u32);

#[derive(Clone, Debug)]
pub(super) enum List {
    Items(Vec<Arg>),
    /// The rows of a tensor.
    Rows(Arg),
    /// The tensors that a loop has put into a list so far, followed by those of this round.
    Grown(Vec<Arg>),
}

/// Returns true if a node handles lists, whatever its operands are.
pub(super) fn handles(op: &str) -> bool {
    op.starts_with("Sequence") && op != "SequenceMap"
        || matches!(
            op,
            "SplitToSequence" | "ConcatFromSequence" | "Optional" | "OptionalHasElement" | "OptionalGetElement"
        )
}

impl<'m> Importer<'m> {
    pub(super) fn list(&mut self, list: List) -> Slot {
        self.lists.push(list);
        Slot::List(ListId(self.lists.len() as u32 - 1))
    }

    pub(super) fn listed(&self, id: ListId) -> Option<&List> {
        self.lists.get(id.0 as usize)
    }

    /// A list of a graph around a body as one of the body's.
    pub(super) fn list_inside(&mut self, at: usize, id: ListId) -> Slot {
        if let Some(known) = self.around.get(at).and_then(|around| around.lists.get(&id)) {
            return Slot::List(*known);
        }
        let Some(list) = self.listed(id).cloned() else { return Slot::Refused };
        let mut inside = |all: Vec<Arg>| all.into_iter().map(|x| self.inside(at, x)).collect();
        let list = match list {
            List::Items(all) => List::Items(inside(all)),
            List::Grown(all) => List::Grown(inside(all)),
            List::Rows(x) => List::Rows(self.inside(at, x)),
        };
        let slot = self.list(list);
        if let (Slot::List(inner), Some(around)) = (slot, self.around.get_mut(at)) {
            around.lists.insert(id, inner);
        }
        slot
    }

    /// The results of a node that handles lists.
    pub(super) fn list_node(&mut self, node: &'m Node, inputs: &[Slot], body: Body<'_, 'm>) -> Option<Vec<Slot>> {
        if inputs.contains(&Slot::Refused) {
            return None;
        }
        // An optional value has its type as an attribute, which its value has too.
        let attrs = if node.op.starts_with("Optional") { Attrs::new() } else { self.attrs(node, body)? };
        let origin = self.graph.add_origin(&format!("onnx.{}", node.op), &node.name, None);
        let made = self.on_lists(node, inputs, &attrs, origin);
        let slot = self.refused(node, made)?;
        // A list takes memory as nodes do.
        let length = |list: &List| match list {
            List::Items(all) | List::Grown(all) => all.len(),
            List::Rows(_) => 1,
        };
        let count = if let Slot::List(id) = slot { self.listed(id).map_or(0, length) } else { 0 };
        self.spend_many(count / ITEMS_OF_A_NODE, node).then(|| vec![slot])
    }

    fn on_lists(&mut self, node: &'m Node, inputs: &[Slot], attrs: &Attrs, origin: OriginId) -> Result<Slot> {
        let int = |name: &str| match attrs.get(name) {
            Some(Attr::Int(Ix::Const(n))) => Some(*n),
            _ => None,
        };
        let tensor = |i: usize| match inputs.get(i) {
            Some(Slot::Is(Arg::Absent)) | None => Ok(None),
            Some(Slot::Is(x)) => Ok(Some(*x)),
            _ => Err(Refusal::new(format!("operand {} must be a tensor", i + 1))),
        };
        let needed = |i: usize| tensor(i)?.ok_or_else(|| Refusal::new(format!("operand {} is missing", i + 1)));
        match (node.op.as_str(), inputs.first()) {
            ("Identity", Some(slot)) => return Ok(*slot),
            ("SequenceEmpty", _) => return Ok(self.list(List::Items(vec![]))),
            ("SequenceConstruct", _) => {
                let all = (0..inputs.len()).map(needed).collect::<Result<Vec<Arg>>>()?;
                return Ok(self.list(List::Items(all)));
            }
            ("SplitToSequence", _) => {
                let keep = int("keepdims").unwrap_or(1) != 0;
                return self.split(needed(0)?, tensor(1)?, int("axis").unwrap_or(0), keep, origin);
            }
            // An optional value is a list of one or none; where there is one, it may be a list itself.
            ("Optional" | "OptionalGetElement", Some(&slot)) if slot != Slot::Is(Arg::Absent) => return Ok(slot),
            ("Optional", _) => return Ok(Slot::Is(Arg::Absent)),
            ("OptionalHasElement", first) => {
                let has = first.is_some_and(|slot| *slot != Slot::Is(Arg::Absent));
                let mut b = Builder::new(&mut self.graph, origin);
                return Ok(Slot::Is(b.int_constant(Elem::BOOL, &[], &[has.into()])));
            }
            ("OptionalGetElement", _) => return Err(Refusal::new("the optional value is empty")),
            _ => {}
        }
        let Some(&Slot::List(id)) = inputs.first() else { return Err(Refusal::new("operand 1 must be a sequence")) };
        let list = self.listed(id).cloned().ok_or_else(|| Refusal::new("the sequence is not known"))?;
        match node.op.as_str() {
            "SequenceInsert" => {
                let x = needed(1)?;
                let list = match (list, tensor(2)?) {
                    (List::Grown(mut all), None) => {
                        all.push(x);
                        List::Grown(all)
                    }
                    (List::Items(mut all), at) => {
                        let at = at.map(|at| self.place(at, all.len() + 1, origin)).transpose()?;
                        if all.len() as i64 >= MOST_ITEMS {
                            return Err(Refusal::new(format!("a sequence of more than {MOST_ITEMS} tensors")));
                        }
                        all.insert(at.unwrap_or(all.len()), x);
                        List::Items(all)
                    }
                    _ => return Err(grown()),
                };
                Ok(self.list(list))
            }
            "SequenceErase" => {
                let List::Items(mut all) = list else { return Err(grown()) };
                let at = match tensor(1)? {
                    Some(at) => self.place(at, all.len(), origin)?,
                    None => all.len().checked_sub(1).ok_or_else(|| Refusal::new("the sequence is empty"))?,
                };
                all.remove(at);
                Ok(self.list(List::Items(all)))
            }
            "SequenceLength" => {
                let mut b = Builder::new(&mut self.graph, origin);
                Ok(Slot::Is(match list {
                    List::Items(all) => b.int_constant(Elem::I64, &[], &[all.len() as i64]),
                    List::Rows(x) => {
                        let count = b.shape(x).first().cloned().unwrap_or(Ix::Const(0));
                        b.index(count, Elem::I64, vec![])
                    }
                    List::Grown(_) => return Err(grown()),
                }))
            }
            "SequenceAt" => {
                let at = needed(1)?;
                match list {
                    List::Items(all) if self.known(Some(at), origin).is_some() => {
                        let at = self.place(at, all.len(), origin)?;
                        Ok(Slot::Is(all[at]))
                    }
                    List::Items(all) => {
                        let rows = self.rows_of(&all, origin)?;
                        self.row(rows, at, origin)
                    }
                    List::Rows(x) => self.row(x, at, origin),
                    List::Grown(_) => Err(grown()),
                }
            }
            "ConcatFromSequence" => {
                let axis = int("axis").ok_or_else(|| Refusal::new("the attribute `axis` is missing"))?;
                self.joined(list, axis, int("new_axis").unwrap_or(0) != 0, origin).map(Slot::Is)
            }
            other => Err(Refusal::new(format!("{other} of a sequence is not supported"))),
        }
    }

    /// The body for each tensor of a sequence, with the tensors at its place in other sequences, and tensors that are the same
    /// for all.
    pub(super) fn sequence_map(&mut self, node: &'m Node, inputs: &[Slot], body: Body<'_, 'm>) -> Option<Vec<Slot>> {
        let graph = self.inner_graph(node, body)?;
        if inputs.contains(&Slot::Refused) || !self.deeper(body.depth, node) {
            return None;
        }
        let origin = self.graph.add_origin("onnx.SequenceMap", &node.name, None);
        let columns = inputs.iter().map(|slot| self.column(*slot, origin)).collect::<Result<Vec<_>>>();
        let columns = self.refused(node, columns)?;
        let lengths: Vec<usize> = columns.iter().filter_map(|c| c.as_ref().map(Vec::len)).collect();
        let (Some(Some(first)), true) = (columns.first(), lengths.windows(2).all(|pair| pair[0] == pair[1])) else {
            let why = format!("operand 1 must be a sequence, and others be as long: {lengths:?} tensors");
            self.refuse(node, Refusal::new(why));
            return None;
        };
        let mut made: Vec<Vec<Arg>> = vec![vec![]; graph.outputs.len()];
        for at in 0..first.len() {
            let of = |(slot, column): (&Slot, &Option<Vec<Arg>>)| match column {
                Some(all) => all.get(at).map_or(Slot::Refused, |x| Slot::Is(*x)),
                None => *slot,
            };
            let given: Vec<Slot> = inputs.iter().zip(&columns).map(of).collect();
            if !self.spend(node) {
                return None;
            }
            let results = self.round_of(graph, &given, node, body, origin)?;
            let results = self.tensors(node, &results)?;
            made.iter_mut().zip(results).for_each(|(list, x)| list.push(x));
        }
        Some(made.into_iter().map(|all| self.list(List::Items(all))).collect())
    }

    /// The tensors of a sequence whose number is known; `None` for what is a tensor itself.
    fn column(&mut self, slot: Slot, origin: OriginId) -> Result<Option<Vec<Arg>>> {
        let Slot::List(id) = slot else { return Ok(None) };
        match self.listed(id).cloned() {
            Some(List::Items(all)) => Ok(Some(all)),
            Some(List::Rows(x)) => {
                let mut b = Builder::new(&mut self.graph, origin);
                let count = b.shape(x).first().and_then(Ix::as_const).filter(|n| *n <= MOST_ITEMS).ok_or_else(grown)?;
                let row = |at: i64| b.slice(x, 0, Ix::Const(at), 1, Ix::Const(1)).and_then(|row| b.squeeze(row, &[0]));
                (0..count).map(row).collect::<Result<Vec<Arg>>>().map(Some)
            }
            _ => Err(grown()),
        }
    }

    /// A known position among `count`, counted from the end if it is negative.
    fn place(&mut self, at: Arg, count: usize, origin: OriginId) -> Result<usize> {
        let given = self.known(Some(at), origin);
        let given = given.ok_or_else(|| Refusal::new("its position must be known when the model is compiled"))?;
        let at = if given < 0 { given + count as i64 } else { given };
        let inside = usize::try_from(at).ok().filter(|at| *at < count);
        inside.ok_or_else(|| Refusal::new(format!("there is no position {given} among {count}")))
    }

    fn rows_of(&mut self, all: &[Arg], origin: OriginId) -> Result<Arg> {
        let mut b = Builder::new(&mut self.graph, origin);
        let parts = all.iter().map(|x| b.unsqueeze(*x, &[0])).collect::<Result<Vec<Arg>>>()?;
        if parts.is_empty() {
            return Err(Refusal::new("the sequence is empty"));
        }
        b.concat(&parts, 0)
    }

    fn row(&mut self, rows: Arg, at: Arg, origin: OriginId) -> Result<Slot> {
        let mut b = Builder::new(&mut self.graph, origin);
        let at = b.reshape(at, &[])?;
        let attrs = Attrs::from([("axis".into(), Attr::Int(Ix::Const(0)))]);
        let row = b.source("onnx.Gather", vec![rows, at], attrs)?;
        row.first().map(|x| Slot::Is(*x)).ok_or_else(|| Refusal::new("the sequence is empty"))
    }

    fn joined(&mut self, list: List, axis: i64, new: bool, origin: OriginId) -> Result<Arg> {
        let mut b = Builder::new(&mut self.graph, origin);
        match list {
            List::Items(all) => {
                let first = *all.first().ok_or_else(|| Refusal::new("the sequence is empty"))?;
                let axis = normal_axis(axis, b.rank(first) + usize::from(new))?;
                let parts = match new {
                    true => all.iter().map(|x| b.unsqueeze(*x, &[axis])).collect::<Result<Vec<Arg>>>()?,
                    false => all,
                };
                b.concat(&parts, axis)
            }
            List::Rows(x) => {
                let rank = b.rank(x) - 1;
                let axis = normal_axis(axis, rank + usize::from(new))?;
                // The rows' own axis goes before the one along which they are joined.
                let mut perm: Vec<usize> = (1..=rank).collect();
                perm.insert(axis, 0);
                let y = b.transpose(x, &perm)?;
                if new {
                    return Ok(y);
                }
                let mut shape = b.shape(y);
                let rows = shape.remove(axis);
                shape[axis] = b.simplify(&Ix::mul(rows, shape[axis].clone()));
                b.reshape(y, &shape)
            }
            List::Grown(_) => Err(grown()),
        }
    }

    fn split(&mut self, x: Arg, sizes: Option<Arg>, axis: i64, keep: bool, origin: OriginId) -> Result<Slot> {
        let mut b = Builder::new(&mut self.graph, origin);
        let shape = b.shape(x);
        let axis = normal_axis(axis, shape.len())?;
        let extent = shape[axis].clone();
        let sizes: Vec<Ix> = match sizes {
            None => match extent.as_const().filter(|n| *n <= MOST_ITEMS) {
                Some(n) => vec![Ix::Const(1); n.max(0) as usize],
                // One for each position: rows.
                None => {
                    let mut perm: Vec<usize> = (0..shape.len()).filter(|d| *d != axis).collect();
                    perm.insert(0, axis);
                    let rows = b.transpose(x, &perm)?;
                    let rows = if keep { b.unsqueeze(rows, &[axis + 1])? } else { rows };
                    return Ok(self.list(List::Rows(rows)));
                }
            },
            Some(given) => {
                let unknown = || {
                    Refusal::new("how long the tensors of the sequence are must be known when the model is compiled")
                };
                let list = b.ints(given).ok_or_else(unknown)?;
                match (b.rank(given), &list[..]) {
                    (0, [size]) => {
                        let (size, n) = b.number(size).zip(b.number(&extent)).ok_or_else(unknown)?;
                        if size < 1 || n / size >= MOST_ITEMS {
                            return Err(Refusal::new(format!("{n} in parts of {size}")));
                        }
                        (0..n).step_by(size as usize).map(|at| Ix::Const(size.min(n - at))).collect()
                    }
                    _ => list,
                }
            }
        };
        let total = sizes.iter().fold(Ix::Const(0), |sum, n| Ix::add(sum, n.clone()));
        if !b.same(&b.simplify(&total), &extent) {
            return Err(Refusal::new("its sizes do not add up to the extent that is split"));
        }
        let mut parts = vec![];
        let mut start = Ix::Const(0);
        let squeezes = !keep && sizes.iter().all(|n| n.is_const(1));
        for n in sizes {
            let part = b.slice(x, axis, start.clone(), 1, n.clone())?;
            parts.push(if squeezes { b.squeeze(part, &[axis])? } else { part });
            start = b.simplify(&Ix::add(start, n));
        }
        Ok(self.list(List::Items(parts)))
    }

    /// The tensor that a round adds to a list; reports an error and returns `None` unless it adds exactly one at the
    /// end.
    pub(super) fn grown_by_one(&mut self, slot: Slot, node: &Node) -> Option<Arg> {
        if let Slot::List(id) = slot
            && let Some(List::Grown(all)) = self.listed(id)
            && let [one] = all[..]
        {
            return Some(one);
        }
        self.refuse(node, Refusal::new("a round puts other than one tensor at the end of a sequence"));
        None
    }

    pub(super) fn no_lists(&mut self, node: &Node, slots: &[Slot]) -> bool {
        let list = slots.iter().any(|slot| matches!(slot, Slot::List(_)));
        if list {
            self.error(
                Code::UnsupportedOperator,
                format!("node {} takes a sequence, which is not supported", node_text(node)),
            );
        }
        !list
    }
}

fn grown() -> Refusal {
    Refusal::new("how many tensors the sequence has decides what it gives, and is not known when the model is compiled")
}
