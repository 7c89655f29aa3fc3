//! Loops: a separate graph for the computation of a round, and the node that repeats it.

use super::{Builder, Refusal, Result};
use crate::graph::copy::Copying;
use crate::graph::ir::{self, Arg, ConstData, Constant, Def, Graph, Op, OriginId, Output, Repeat, Role, ValueId};
use crate::index::Ix;

/// A loop to be built: the fields of [`Repeat`], and its operands. Scalars become tensors where they must be.
pub struct Rounds<'a> {
    pub rounds: Ix,
    pub conditional: bool,
    /// The state before the first round.
    pub carried: &'a [Arg],
    /// Tensors that give each round one row, and whether the first round gets the last row.
    pub rows: &'a [(Arg, bool)],
    /// The values that every round reads.
    pub read: &'a [Arg],
    /// For each row that a round gives, whether the first round gives the last one.
    pub given: &'a [bool],
}

/// Begins the graph of a round: it has the symbols of the graph around it, and takes over that graph's list of origins,
/// which [`close`] gives back.
pub fn open(around: &mut Graph) -> Graph {
    Graph {
        name: "round".into(),
        symbols: around.symbols.clone(),
        guards: around.guards.clone(),
        origins: std::mem::take(&mut around.origins),
        listing: around.listing.clone(),
        ..Graph::default()
    }
}

/// Ends the graph of a round.
pub fn close(around: &mut Graph, body: &Graph) {
    around.origins = body.origins.clone();
    around.listing = body.listing.clone();
    // Facts that the round found out about the symbols hold around it too.
    around.symbols = body.symbols.clone();
    around.guards = body.guards.clone();
}

/// A tensor around a loop as one that all its rounds read, with the integers that are known to be in it.
pub fn read(around: &Graph, body: &mut Graph, x: ValueId) -> Arg {
    let Some(value) = around.values.get(x) else { return Arg::Absent };
    let new = body.add_input(&value.name, value.elem, value.shape.clone(), Role::Argument);
    body.values[new].ints = value.ints.clone();
    body.values[new].quotients = value.quotients.clone();
    new.into()
}

/// The state of a loop that begins as a tensor, or a row of one.
pub fn state_or_row(around: &Graph, body: &mut Graph, x: ValueId, row: bool) -> Arg {
    let Some(value) = around.values.get(x) else { return Arg::Absent };
    let shape = value.shape.get(usize::from(row)..).unwrap_or_default().to_vec();
    body.add_input(&value.name, value.elem, shape, Role::Argument).into()
}

/// Gives the inputs of a body their positions, after some have moved.
pub fn number_inputs(body: &mut Graph) {
    for (at, input) in body.inputs.iter().enumerate() {
        body.values[input.value].def = Def::Input(at as u32);
    }
}

/// A loop whose round is not made yet.
pub struct Begun {
    body: Graph,
    args: Vec<ValueId>,
    /// The state and the rows, as inputs of the body.
    inner: Vec<Arg>,
    all_read: Vec<Arg>,
}

impl Begun {
    /// The values that `round` makes of the state, the rows and the tensors that all rounds read.
    pub fn round<T>(
        &mut self,
        origin: OriginId,
        of: &Rounds<'_>,
        round: impl FnOnce(&mut Builder<'_>, &[Arg], &[Arg], &[Arg]) -> Result<T>,
    ) -> Result<T> {
        let (state, rows) = self.inner.split_at(of.carried.len());
        round(&mut Builder::new(&mut self.body, origin), state, rows, &self.all_read)
    }
}

impl Builder<'_> {
    /// The operand as a tensor; a scalar becomes one without axes.
    pub fn tensor(&mut self, x: Arg) -> Result<ValueId> {
        match x {
            Arg::Value(v) => Ok(v),
            Arg::Scalar { elem, .. } => match self.full(x, elem, vec![]) {
                Arg::Value(v) => Ok(v),
                _ => Err(Refusal::new("an operand is missing")),
            },
            Arg::Absent => Err(Refusal::new("an operand is missing")),
        }
    }

    /// Appends a loop, whose round `round` makes as in [`Begun::round`].
    pub fn repeat(
        &mut self,
        of: &Rounds<'_>,
        round: impl FnOnce(&mut Builder<'_>, &[Arg], &[Arg], &[Arg]) -> Result<(Vec<Arg>, Vec<Arg>)>,
    ) -> Result<Vec<Arg>> {
        let mut begun = self.begin(of)?;
        let made = begun.round(self.origin, of, round);
        self.end(begun, of, made)
    }

    /// Begins the graph of a round, which the builder knows nothing of until [`Builder::end`].
    pub fn begin(&mut self, of: &Rounds<'_>) -> Result<Begun> {
        let mut args = vec![];
        for x in of.carried.iter().chain(of.rows.iter().map(|(x, _)| x)) {
            args.push(self.tensor(*x)?);
        }
        let mut body = open(self.graph);
        let mut inner = vec![];
        for (at, x) in args.iter().enumerate() {
            inner.push(state_or_row(self.graph, &mut body, *x, at >= of.carried.len()));
        }
        let mut all_read = vec![];
        for x in of.read {
            all_read.push(match x {
                Arg::Value(v) => {
                    args.push(*v);
                    read(self.graph, &mut body, *v)
                }
                other => *other,
            });
        }
        Ok(Begun { body, args, inner, all_read })
    }

    /// Appends the loop whose round [`Begun::round`] made.
    pub fn end(&mut self, begun: Begun, of: &Rounds<'_>, made: Result<(Vec<Arg>, Vec<Arg>)>) -> Result<Vec<Arg>> {
        close(self.graph, &begun.body);
        self.facts = self.graph.facts();
        let (state, rows) = made?;
        self.repeated(begun.body, of, begun.args, &state, &rows)
    }

    /// Appends a loop whose round was built: `args` are the inputs of the body, in order.
    pub fn repeated(
        &mut self,
        mut body: Graph,
        of: &Rounds<'_>,
        mut args: Vec<ValueId>,
        state: &[Arg],
        given: &[Arg],
    ) -> Result<Vec<Arg>> {
        if state.len() != of.carried.len() || given.len() != of.given.len() {
            return Err(Refusal::new("a round of the loop gives more or fewer values than it should"));
        }
        let origin = self.origin;
        let mut results = vec![];
        let mut b = Builder::new(&mut body, origin);
        for (at, x) in state.iter().enumerate() {
            let out = b.tensor(*x)?;
            let (before, after) = (&b.graph.inputs[at].value, &out);
            let (before, after) = (&b.graph.values[*before], &b.graph.values[*after]);
            if before.elem != after.elem || !b.same_shape(&before.shape, &after.shape) {
                let text = |v: &ir::Value| format!("{} {}", v.elem, b.shape_text(&v.shape));
                let (before, after) = (text(before), text(after));
                return Err(Refusal::new(format!("a round is given {before} and hands on {after}")));
            }
            results.push((before.name.clone(), before.elem, before.shape.clone()));
            b.graph.outputs.push(Output { name: format!("state{at}"), value: out });
        }
        for (at, x) in given.iter().enumerate() {
            let out = b.tensor(*x)?;
            let value = &b.graph.values[out];
            if value.elem.dtype.bits() == 4 {
                return Err(Refusal::new(format!("a round gives rows of {}, which share bytes", value.elem)));
            }
            let shape = [std::slice::from_ref(&of.rounds), &value.shape[..]].concat();
            results.push((value.name.clone(), value.elem, shape));
            b.graph.outputs.push(Output { name: format!("row{at}"), value: out });
        }
        for (x, _) in of.rows {
            let elem = self.elem(*x);
            if elem.dtype.bits() == 4 {
                return Err(Refusal::new(format!("a round gets rows of {elem}, which share bytes")));
            }
        }
        let mut repeat = Repeat {
            body,
            rounds: self.simplify(&of.rounds),
            conditional: of.conditional,
            carried: of.carried.len() as u32,
            rows: of.rows.iter().map(|r| r.1).collect(),
            given: of.given.to_vec(),
        };
        // Numbers that decompositions look at stay.
        lift_constants(self.graph, origin, &mut repeat, &mut args, |c| match &c.data {
            ConstData::Bytes(bytes) => bytes.len() > 8 * ir::MAX_KNOWN,
            ConstData::External { .. } => true,
        });
        let args = args.into_iter().map(Arg::Value).collect();
        let id = self.graph.add_node(Op::Repeat(Box::new(repeat)), args, results, origin);
        Ok(self.graph.nodes[id].results.iter().map(|v| Arg::Value(*v)).collect())
    }
}

/// Moves constants of a body into the graph around it, where all rounds read them. Returns the number of moved
/// constants.
pub fn lift_constants(
    around: &mut Graph,
    origin: OriginId,
    repeat: &mut Repeat,
    args: &mut Vec<ValueId>,
    which: impl Fn(&Constant) -> bool,
) -> usize {
    let from = std::mem::take(&mut repeat.body);
    let lifts = |op: &Op| match op {
        Op::Constant(c) => from.constants.get(*c).filter(|c| which(c)),
        _ => None,
    };
    if !from.nodes.values().any(|n| lifts(&n.op).is_some()) {
        repeat.body = from;
        return 0;
    }
    let mut copy = Copying::new(&from);
    let mut count = 0;
    for node in from.nodes.values() {
        let (Some(constant), Some(old)) = (lifts(&node.op), node.results.first()) else {
            copy.node(node);
            continue;
        };
        let Arg::Value(outer) = Builder::new(around, origin).constant_of(constant.clone()) else { continue };
        let inner = read(around, &mut copy.out, outer);
        copy.bind(*old, inner);
        args.push(outer);
        count += 1;
    }
    repeat.body = copy.finish();
    repeat.body.drop_dead_constants();
    count
}

/// The graph with all constants of its loops' bodies outside of them.
pub fn lift_all(graph: Graph) -> Graph {
    if !graph.nodes.values().any(|n| matches!(n.op, Op::Repeat(_))) {
        return graph;
    }
    let mut copy = Copying::new(&graph);
    for node in graph.nodes.values() {
        let Op::Repeat(r) = &node.op else {
            copy.node(node);
            continue;
        };
        let mut repeat = Repeat { body: lift_all(r.body.clone()), ..(**r).clone() };
        let args = node.args.iter().map(|a| copy.arg(*a));
        let mut args: Vec<ValueId> = args.filter_map(|a| if let Arg::Value(v) = a { Some(v) } else { None }).collect();
        lift_constants(&mut copy.out, node.origin, &mut repeat, &mut args, |_| true);
        copy.node_as(node, Op::Repeat(Box::new(repeat)), args.into_iter().map(Arg::Value).collect());
    }
    copy.finish()
}
