//! `Loop` and `Scan`: loops of the graph, whose body is read once. A few rounds are written out; so are loops that only
//! a known number of rounds makes possible: with state that changes its shape, or bodies that use the number of the
//! round.

use super::attributes::resolve;
use super::counted::Round;
use super::importer::{Body, Importer, Slot, node_text};
use super::lists::List;
use super::proto::{Graph as GraphProto, Node};
use crate::base::Code;
use crate::graph::build::repeat::{Rounds, number_inputs};
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::normal_axis;
use crate::graph::ir::MAX_EXTENT;
use crate::graph::{Arg, Builder, Elem, OriginId, ValueId};
use crate::index::Ix;
use crate::num::op::Predicate;

/// The most rounds that are always written out.
const FEW_ROUNDS: i64 = 4;
/// The most rounds that are written out where there cannot be a loop.
const MOST_ROUNDS: i64 = 1024;

/// Operand `i`, where it is a tensor.
fn present(args: &[Slot], i: usize) -> Option<Arg> {
    match args.get(i) {
        Some(Slot::Is(x)) if *x != Arg::Absent => Some(*x),
        _ => None,
    }
}

/// Why a loop with an unknown number of rounds is refused.
const UNKNOWN: &str = "how often it runs must be known when the model is compiled";

impl<'m> Importer<'m> {
    pub(super) fn inner_graph(&mut self, node: &'m Node, body: Body<'_, 'm>) -> Option<&'m GraphProto> {
        let a = node.attributes.iter().find(|a| a.name == "body");
        let graph = a.and_then(|a| resolve(a, body.bound)).and_then(|a| a.g.as_deref());
        if graph.is_none() {
            self.error(Code::BadModel, format!("node {} has no body", node_text(node)));
        }
        graph
    }

    /// One round: the body with these inputs, all of them tensors.
    pub(super) fn round(
        &mut self,
        graph: &'m GraphProto,
        inputs: &[Arg],
        node: &Node,
        body: Body<'_, 'm>,
        origin: OriginId,
    ) -> Option<Vec<Arg>> {
        let inputs: Vec<Slot> = inputs.iter().copied().map(Slot::Is).collect();
        let results = self.round_of(graph, &inputs, node, body, origin)?;
        self.tensors(node, &results)
    }

    /// Slots that must all be tensors.
    pub(super) fn tensors(&mut self, node: &Node, slots: &[Slot]) -> Option<Vec<Arg>> {
        if !self.no_lists(node, slots) {
            return None;
        }
        let one = |slot: &Slot| match slot {
            Slot::Is(arg) => Some(*arg),
            Slot::Refused | Slot::List(_) => None,
        };
        slots.iter().map(one).collect()
    }

    /// One round: the body with these inputs; `None` where a result was refused.
    pub(super) fn round_of(
        &mut self,
        graph: &'m GraphProto,
        inputs: &[Slot],
        node: &Node,
        body: Body<'_, 'm>,
        origin: OriginId,
    ) -> Option<Vec<Slot>> {
        if inputs.len() != graph.inputs.len() {
            let (given, has) = (inputs.len(), graph.inputs.len());
            self.error(Code::BadModel, format!("node {} gives {given} values to a body of {has}", node_text(node)));
            return None;
        }
        self.push_scope(false);
        for (info, arg) in graph.inputs.iter().zip(inputs) {
            self.define(&info.name, *arg);
        }
        self.initializers(graph, origin);
        self.body(&graph.nodes, Body { depth: body.depth + 1, ..body });
        let results = self.results(graph.outputs.iter().map(|o| o.name.as_str()), node);
        self.pop_scope();
        results.filter(|all| !all.contains(&Slot::Refused))
    }

    pub(super) fn known(&mut self, x: Option<Arg>, origin: OriginId) -> Option<i64> {
        let list = Builder::new(&mut self.graph, origin).ints(x?)?;
        match &list[..] {
            [one] => one.as_const(),
            _ => None,
        }
    }

    pub(super) fn refused<T>(&mut self, node: &Node, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(x) => Some(x),
            Err(refusal) => {
                self.refuse(node, refusal);
                None
            }
        }
    }

    /// Returns true if a loop carries known integers alone and gives no rows: shapes may depend on them.
    fn counts(&mut self, graph: &GraphProto, args: &[Slot], origin: OriginId) -> bool {
        let b = Builder::new(&mut self.graph, origin);
        let known = |slot: &Slot| matches!(slot, Slot::Is(x) if b.ints(*x).is_some());
        args.len() > 2 && args[2..].iter().all(known) && graph.outputs.len() + 1 == args.len()
    }

    /// `(rounds?, condition?, carried...)`
    pub(super) fn repeat(&mut self, node: &'m Node, args: Vec<Slot>, body: Body<'_, 'm>) -> Option<Vec<Slot>> {
        let graph = self.inner_graph(node, body)?;
        if !self.deeper(body.depth, node) {
            return None;
        }
        let origin = self.graph.add_origin("onnx.Loop", &node.name, None);
        let given = |i: usize| present(&args, i);
        let most = match given(0) {
            None => Some(i64::MAX),
            some => self.known(some, origin),
        };
        let begins = match given(1) {
            None => Some(1),
            some => self.known(some, origin),
        };
        let few = most.is_some_and(|n| n <= FEW_ROUNDS || n <= MOST_ROUNDS && self.counts(graph, &args, origin))
            || begins == Some(0);
        let said = self.said();
        if !few {
            match self.looped(node, graph, &args, body, origin) {
                Some(Ok(results)) => return Some(results),
                // A body that looks at the number of the round is written out.
                refused if most.is_some_and(|n| n <= MOST_ROUNDS) || refused.is_none() && most == Some(i64::MAX) => {
                    self.unsay(said);
                }
                refused => {
                    self.refused(node, refused?);
                    return None;
                }
            }
        }
        let Some(most) = most else {
            self.refuse(node, Refusal::new(UNKNOWN));
            return None;
        };
        let mut carried: Vec<Slot> = args.iter().skip(2).copied().collect();
        let stacked = graph.outputs.len().saturating_sub(1 + carried.len());
        let mut rows: Vec<Vec<Arg>> = vec![vec![]; stacked];
        let yes = Builder::new(&mut self.graph, origin).int_constant(Elem::BOOL, &[], &[1]);
        let mut condition = given(1).unwrap_or(yes);
        for round in 0..most {
            match self.known(Some(condition), origin) {
                Some(0) => break,
                Some(_) if round < MOST_ROUNDS => {}
                Some(_) => {
                    self.refuse(node, Refusal::new(format!("it runs more than {MOST_ROUNDS} times")));
                    return None;
                }
                None => {
                    self.refuse(node, Refusal::new(UNKNOWN));
                    return None;
                }
            }
            if !self.spend(node) {
                return None;
            }
            let counter = Builder::new(&mut self.graph, origin).int_constant(Elem::I64, &[], &[round]);
            let inputs = [&[Slot::Is(counter), Slot::Is(condition)], &carried[..]].concat();
            let mut results = self.round_of(graph, &inputs, node, body, origin)?;
            let given = results.split_off((1 + carried.len()).min(results.len()));
            carried = results.split_off(1.min(results.len()));
            condition = self.tensors(node, &results)?.first().copied()?;
            let given = self.tensors(node, &given)?;
            for (row, x) in rows.iter_mut().zip(given) {
                row.push(x);
            }
        }
        let none = rows.iter().any(Vec::is_empty);
        let empty = if none { self.no_rows(node, graph, &carried, body, origin)? } else { vec![] };
        let mut out = carried;
        if none {
            out.extend(empty.into_iter().map(Slot::Is));
            return Some(out);
        }
        for row in rows {
            let stacked = self.stack(&row, 0, origin);
            out.push(Slot::Is(self.refused(node, stacked)?));
        }
        Some(out)
    }

    /// The rows of a loop that runs zero times: their type is that of the first round's rows.
    fn no_rows(
        &mut self,
        node: &'m Node,
        graph: &'m GraphProto,
        carried: &[Slot],
        body: Body<'_, 'm>,
        origin: OriginId,
    ) -> Option<Vec<Arg>> {
        let said = self.said();
        self.open(node, &[], &[])?;
        let at = self.depth() - 1;
        let mut state = vec![];
        for slot in carried {
            state.push(match *slot {
                Slot::Is(x) => Slot::Is(self.inside(at, x)),
                Slot::List(id) => self.list_inside(at, id),
                Slot::Refused => Slot::Refused,
            });
        }
        let mut b = Builder::new(&mut self.graph, origin);
        let (counter, yes) = (b.int_constant(Elem::I64, &[], &[0]), b.int_constant(Elem::BOOL, &[], &[1]));
        let inputs = [&[Slot::Is(counter), Slot::Is(yes)], &state[..]].concat();
        let results = self.round_of(graph, &inputs, node, body, origin);
        let rows = results.as_ref().and_then(|all| all.get(1 + carried.len()..)).unwrap_or_default();
        let rows = self.tensors(node, rows).unwrap_or_default();
        let b = Builder::new(&mut self.graph, origin);
        let types: Vec<(Elem, Vec<Ix>)> = rows.iter().map(|x| (b.elem(*x), b.shape(*x))).collect();
        self.close();
        if results.is_none() || self.complains(&said) {
            return None;
        }
        let mut b = Builder::new(&mut self.graph, origin);
        let none = |(elem, shape): (Elem, Vec<Ix>)| {
            b.full(crate::graph::ir::scalar(elem, 0.0), elem, [&[Ix::Const(0)], &shape[..]].concat())
        };
        Some(types.into_iter().map(none).collect())
    }

    /// A loop of the graph; `None` where its body was refused.
    fn looped(
        &mut self,
        node: &'m Node,
        graph: &'m GraphProto,
        args: &[Slot],
        body: Body<'_, 'm>,
        origin: OriginId,
    ) -> Option<Result<Vec<Slot>>> {
        let given = |i: usize| present(args, i);
        // A sequence that begins empty gets one tensor a round: rows.
        let empty = |slot: &Slot| match slot {
            Slot::List(id) => matches!(self.listed(*id), Some(List::Items(all)) if all.is_empty()),
            _ => true,
        };
        if !args.iter().all(empty) {
            return Some(Err(Refusal::new("how long the sequence becomes must be known when the model is compiled")));
        }
        let slots: Vec<Slot> = args.iter().skip(2).copied().collect();
        let tensor = |slot: &Slot| if let Slot::Is(x) = slot { Some(*x) } else { None };
        let carried: Vec<Arg> = slots.iter().filter_map(tensor).collect();
        let mut b = Builder::new(&mut self.graph, origin);
        // The greatest number of rounds: none, known, or a number that the model computes.
        let most = given(0).map(|x| (x, b.ints(x).and_then(|list| list.first().cloned())));
        let rounds = match &most {
            // `INT_MAX` stands for an endless loop.
            Some((_, Some(n))) if n.as_const().is_none_or(|n| n < i32::MAX.into()) => {
                b.simplify(&Ix::max(n.clone(), Ix::Const(0)))
            }
            _ => Ix::Const(MAX_EXTENT),
        };
        let limit = most.as_ref().filter(|(_, known)| known.is_none()).map(|(x, _)| *x);
        let condition = given(1);
        let known = condition.is_none_or(|c| b.ints(c).is_some_and(|l| matches!(&l[..], [x] if x.is_const(1))));
        let one = |b: &mut Builder<'_>, x: Arg, elem: Elem| -> Result<Arg> {
            let x = b.reshape(x, &[])?;
            b.convert(x, elem)
        };
        let zero = b.int_constant(Elem::I64, &[], &[0]);
        let begin = |b: &mut Builder<'_>| -> Result<Vec<ValueId>> {
            let mut goes = b.int_constant(Elem::BOOL, &[], &[1]);
            if let Some(c) = condition.filter(|_| !known) {
                goes = one(b, c, Elem::BOOL)?;
            }
            if let Some(limit) = limit {
                let limit = one(b, limit, Elem::I64)?;
                let some = b.compare(Predicate::LessThan, zero, limit)?;
                goes = b.and(goes, some)?;
            }
            [goes, zero].iter().chain(&carried).map(|x| b.tensor(*x)).collect()
        };
        let state = match begin(&mut b) {
            Ok(state) => state,
            Err(refusal) => return Some(Err(refusal)),
        };
        let said = self.said();
        let inputs = self.open(node, &state, &[])?;
        // A round runs only while the condition is true.
        let yes = Builder::new(&mut self.graph, origin).int_constant(Elem::BOOL, &[], &[1]);
        let mut inner = vec![Slot::Is(inputs[1]), Slot::Is(yes)];
        let mut tensors = inputs[2..].iter().copied();
        for slot in &slots {
            inner.push(match (slot, tensors.len()) {
                (Slot::List(_), _) | (_, 0) => self.list(List::Grown(vec![])),
                _ => tensors.next().map_or(Slot::Refused, Slot::Is),
            });
        }
        let results = self.round_of(graph, &inner, node, body, origin);
        let results = results.and_then(|all| self.grown(node, &slots, all));
        let counter = inputs[1];
        let limit = limit.map(|x| match x {
            Arg::Value(v) => self.inside(self.depth() - 1, v.into()),
            scalar => scalar,
        });
        let mut b = Builder::new(&mut self.graph, origin);
        let mut next = |results: &[Arg]| -> Result<(Vec<Arg>, bool)> {
            let count = b.add(counter, crate::graph::ir::int_scalar(Elem::I64, 1))?;
            let go_on = *results.first().ok_or_else(|| Refusal::new("its body gives no condition"))?;
            let always = b.ints(go_on).is_some_and(|l| matches!(&l[..], [x] if x.is_const(1)));
            let mut goes = one(&mut b, go_on, Elem::BOOL)?;
            if let Some(limit) = limit {
                let limit = one(&mut b, limit, Elem::I64)?;
                let more = b.compare(Predicate::LessThan, count, limit)?;
                goes = b.and(goes, more)?;
            }
            Ok(([&[goes, count], results.get(1..).unwrap_or_default()].concat(), always && limit.is_none()))
        };
        let next = results.as_ref().map(|r| next(r));
        let (mut made, args) = self.close();
        let go_on = results.as_ref().and_then(|all| all.first().copied());
        if next.is_none() || self.complains(&said) {
            return None;
        }
        let (mut results, always) = match next? {
            Ok(next) => next,
            Err(refusal) => return Some(Err(refusal)),
        };
        let mut conditional = !(always && known);
        let split = (carried.len() + 2).min(results.len());
        let mut rows = results.split_off(split);
        let mut rounds = rounds;
        if conditional && !rows.is_empty() && limit.is_none() {
            let b = Builder::new(&mut self.graph, origin);
            let one = |x: &ValueId| match b.ints(Arg::Value(*x)).as_deref() {
                Some([one]) => Some(one.clone()),
                _ => None,
            };
            let steps: Vec<(Option<Ix>, Arg)> = state.iter().map(one).zip(results.iter().copied()).collect();
            let round = Round { graph: &made, state: &steps };
            let begins = condition.map_or(Some(Ix::Const(1)), |c| b.ints(c)?.first().cloned());
            if let (Some(times), Some(begins)) = (go_on.and_then(|c| round.times(c)), begins) {
                let all = match times {
                    Some(times) => Ix::min(rounds, Ix::add(times, Ix::Const(1))),
                    None => rounds,
                };
                // The condition at the beginning is 0 or 1.
                rounds = b.simplify(&Ix::mul(all, begins));
                conditional = false;
            }
        }
        let (mut state, mut args) = (state, args);
        if !conditional {
            // No condition ends the loop.
            results.remove(0);
            state.remove(0);
            args.remove(0);
            made.inputs.remove(0);
            number_inputs(&mut made);
        } else if !rows.is_empty() {
            rows.clear();
            let why = "how often it runs decides a shape, and must be known when the model is compiled";
            return Some(Err(Refusal::new(why)));
        }
        let own = state.len() - carried.len();
        let state: Vec<Arg> = state.into_iter().map(Arg::Value).collect();
        let forward = vec![false; rows.len()];
        let of = Rounds { rounds, conditional, carried: &state, rows: &[], read: &[], given: &forward };
        let results = Builder::new(&mut self.graph, origin).repeated(made, &of, args, &results, &rows);
        Some(results.map(|all| {
            // Tensors, the rows of sequences, and rows.
            let (tensors, mut rest) = all[own..].split_at(carried.len().min(all.len() - own));
            let mut tensors = tensors.iter().copied();
            let mut out = vec![];
            for slot in &slots {
                out.push(match (slot, rest) {
                    (Slot::List(_), [first, more @ ..]) => {
                        rest = more;
                        self.list(List::Rows(*first))
                    }
                    _ => tensors.next().map_or(Slot::Refused, Slot::Is),
                });
            }
            out.extend(rest.iter().copied().map(Slot::Is));
            out
        }))
    }

    /// The results of a round: the condition, tensors of the state, the tensors that it adds to sequences, and rows.
    fn grown(&mut self, node: &'m Node, slots: &[Slot], results: Vec<Slot>) -> Option<Vec<Arg>> {
        let (mut first, mut grown, mut rows) = (vec![], vec![], vec![]);
        for (at, slot) in results.into_iter().enumerate() {
            match at.checked_sub(1).map(|at| slots.get(at)) {
                Some(Some(Slot::List(_))) => grown.push(Slot::Is(self.grown_by_one(slot, node)?)),
                Some(None) => rows.push(slot),
                _ => first.push(slot),
            }
        }
        self.tensors(node, &[first, grown, rows].concat())
    }

    /// Values one after the other along a new axis.
    fn stack(&mut self, row: &[Arg], axis: i64, origin: OriginId) -> Result<Arg> {
        let Some(first) = row.first() else {
            return Err(Refusal::new("it gives no rows, so they have no type"));
        };
        let mut b = Builder::new(&mut self.graph, origin);
        let axis = normal_axis(axis, b.rank(*first) + 1)?;
        let parts = row.iter().map(|x| b.unsqueeze(*x, &[axis])).collect::<Result<Vec<Arg>>>()?;
        b.concat(&parts, axis)
    }

    /// `(state..., scanned...)`
    pub(super) fn scan(&mut self, node: &'m Node, args: Vec<Arg>, body: Body<'_, 'm>) -> Option<Vec<Slot>> {
        let graph = self.inner_graph(node, body)?;
        if !self.deeper(body.depth, node) {
            return None;
        }
        let origin = self.graph.add_origin("onnx.Scan", &node.name, None);
        let list = |name: &str| {
            let a = node.attributes.iter().find(|a| a.name == name);
            a.and_then(|a| resolve(a, body.bound)).map_or(&[][..], |a| &a.ints[..])
        };
        let count = node.attributes.iter().find(|a| a.name == "num_scan_inputs");
        let count = count.and_then(|a| resolve(a, body.bound)).map_or(0, |a| a.i);
        let count = usize::try_from(count).ok().filter(|n| (1..=args.len()).contains(n));
        let Some(states) = count.map(|n| args.len() - n) else {
            self.error(Code::BadModel, format!("node {} scans more inputs than it has, or none", node_text(node)));
            return None;
        };
        let at = |name: &str, i: usize| list(name).get(i).copied().unwrap_or(0);
        let prepared = self.scanned(&args[states..], &|i| at("scan_input_axes", i), origin);
        let (axes, rounds) = self.refused(node, prepared)?;
        let few = rounds.as_const().filter(|n| (1..=FEW_ROUNDS).contains(n));
        let said = self.said();
        if few.is_none() {
            let given: Vec<bool> =
                (0..graph.outputs.len().saturating_sub(states)).map(|i| at("scan_output_directions", i) != 0).collect();
            let back: Vec<bool> = (0..axes.len()).map(|i| at("scan_input_directions", i) != 0).collect();
            let scanned: Vec<(Arg, usize)> = args[states..].iter().copied().zip(axes.iter().copied()).collect();
            let made = self.scan_loop(node, graph, &args[..states], &scanned, (&back, &given), &rounds, body, origin);
            match made {
                Some(Ok(mut results)) => {
                    for (i, x) in results.iter_mut().skip(states).enumerate() {
                        let mut b = Builder::new(&mut self.graph, origin);
                        let moved = normal_axis(at("scan_output_axes", i), b.rank(*x))
                            .and_then(|to| from_front(&mut b, *x, to));
                        *x = self.refused(node, moved)?;
                    }
                    return Some(results.into_iter().map(Slot::Is).collect());
                }
                _ if rounds.as_const().is_some_and(|n| (1..=MOST_ROUNDS).contains(&n)) => self.unsay(said),
                refused => {
                    self.refused(node, refused?);
                    return None;
                }
            }
        }
        let rounds = rounds.as_const()?;
        let mut state: Vec<Arg> = args[..states].to_vec();
        let stacked = graph.outputs.len().saturating_sub(states);
        let mut rows: Vec<Vec<Arg>> = vec![vec![]; stacked];
        for round in 0..rounds {
            if !self.spend(node) {
                return None;
            }
            let mut inputs = state.clone();
            for (i, (x, axis)) in args[states..].iter().zip(&axes).enumerate() {
                let place = if at("scan_input_directions", i) == 0 { round } else { rounds - 1 - round };
                let mut b = Builder::new(&mut self.graph, origin);
                let row = b.slice(*x, *axis, Ix::Const(place), 1, Ix::Const(1)).and_then(|r| b.squeeze(r, &[*axis]));
                inputs.push(self.refused(node, row)?);
            }
            let mut results = self.round(graph, &inputs, node, body, origin)?.into_iter();
            state = results.by_ref().take(states).collect();
            for (row, x) in rows.iter_mut().zip(results) {
                row.push(x);
            }
        }
        let mut out: Vec<Slot> = state.into_iter().map(Slot::Is).collect();
        for (i, mut row) in rows.into_iter().enumerate() {
            if at("scan_output_directions", i) != 0 {
                row.reverse();
            }
            let stacked = self.stack(&row, at("scan_output_axes", i), origin);
            out.push(Slot::Is(self.refused(node, stacked)?));
        }
        Some(out)
    }

    /// A scan as a loop of the graph; `None` where its body was refused.
    #[allow(clippy::too_many_arguments)]
    fn scan_loop(
        &mut self,
        node: &'m Node,
        graph: &'m GraphProto,
        state: &[Arg],
        scanned: &[(Arg, usize)],
        (back, given): (&[bool], &[bool]),
        rounds: &Ix,
        body: Body<'_, 'm>,
        origin: OriginId,
    ) -> Option<Result<Vec<Arg>>> {
        let mut b = Builder::new(&mut self.graph, origin);
        let begin = |b: &mut Builder<'_>| -> Result<(Vec<ValueId>, Vec<ValueId>)> {
            let state = state.iter().map(|x| b.tensor(*x)).collect::<Result<Vec<_>>>()?;
            let mut rows = vec![];
            for &(x, axis) in scanned {
                let mut perm: Vec<usize> = (0..b.rank(x)).filter(|d| *d != axis).collect();
                perm.insert(0, axis);
                let moved = b.transpose(x, &perm)?;
                rows.push(b.tensor(moved)?);
            }
            Ok((state, rows))
        };
        let (state, rows) = match begin(&mut b) {
            Ok(all) => all,
            Err(refusal) => return Some(Err(refusal)),
        };
        let said = self.said();
        let inputs = self.open(node, &state, &rows)?;
        let results = self.round(graph, &inputs, node, body, origin);
        let (made, args) = self.close();
        if self.complains(&said) {
            return None;
        }
        let results = results?;
        let (next, out) = results.split_at(state.len().min(results.len()));
        let state: Vec<Arg> = state.into_iter().map(Arg::Value).collect();
        let rows: Vec<(Arg, bool)> = rows.into_iter().map(Arg::Value).zip(back.iter().copied()).collect();
        let of = Rounds { rounds: rounds.clone(), conditional: false, carried: &state, rows: &rows, read: &[], given };
        Some(Builder::new(&mut self.graph, origin).repeated(made, &of, args, next, out))
    }

    /// The axes that a scan runs along, and how far.
    fn scanned(&mut self, xs: &[Arg], axis: &dyn Fn(usize) -> i64, origin: OriginId) -> Result<(Vec<usize>, Ix)> {
        let b = Builder::new(&mut self.graph, origin);
        let (mut axes, mut rounds) = (vec![], None);
        for (i, x) in xs.iter().enumerate() {
            let shape = b.shape(*x);
            let axis = normal_axis(axis(i), shape.len())?;
            let n = &shape[axis];
            if rounds.as_ref().is_some_and(|r| !b.same(r, n)) {
                return Err(Refusal::new("its inputs differ in length"));
            }
            rounds = Some(n.clone());
            axes.push(axis);
        }
        Ok((axes, rounds.unwrap_or(Ix::Const(0))))
    }
}

/// The first axis becomes axis `to`.
fn from_front(b: &mut Builder<'_>, x: Arg, to: usize) -> Result<Arg> {
    let mut perm: Vec<usize> = (1..b.rank(x)).collect();
    perm.insert(to, 0);
    b.transpose(x, &perm)
}
