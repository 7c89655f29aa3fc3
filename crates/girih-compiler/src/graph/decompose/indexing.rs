//! Gathers and scatters of PyTorch.

use super::arithmetic::divide_rounded;
use super::types::{element, needed, same_place, scaled};
use super::{Call, Decomposition, normal_axis};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, Coord, ReduceOp, ScanOp, ScatterOp};
use crate::index::Ix;
use crate::num::op::Predicate;

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "embedding",
        handles: &["aten.embedding", "aten.index_select"],
        doc: "Rows of a table, or positions along an axis, by an index tensor. An index outside is an error of the run.\n\n\
              `y = embedding(w, at)` --> `y = gather w[at, i1]`",
        run: embedding,
    },
    Decomposition {
        name: "gather",
        handles: &["aten.gather", "aten.take_along_dim", "aten.take"],
        doc: "Along one axis by an index tensor of the result's shape.\n\n`y = gather(x, 1, at)` --> `y = gather x[i0, at]`",
        run: gather,
    },
    Decomposition {
        name: "index",
        handles: &["aten.index", "aten._unsafe_index"],
        doc: "Advanced indexing: several index tensors, broadcast; negative ones count from the end.\n\n\
              `y = index(x, None, at)` --> `y = gather x[i0, select(at < 0, at + n, at)]`\n\n\
              Refuses masks of bools: their result's shape depends on data.",
        run: index,
    },
    Decomposition {
        name: "index_put",
        handles: &["aten.index_put", "aten._unsafe_index_put"],
        doc: "A copy in which indexed elements are replaced, or added to (`accumulate`).\n\n\
              `y = index_put(x, at, v)` --> `y = scatter set x[at] with v`\n\n\
              A mask of bools of the tensor's shape, with one value, is a selection.",
        run: index_put,
    },
    Decomposition {
        name: "scatter",
        handles: &[
            "aten.scatter",
            "aten.scatter_add",
            "aten.scatter_reduce",
            "aten.index_add",
            "aten.index_copy",
            "aten.index_fill",
            "aten.index_reduce",
        ],
        doc: "Along one axis, into the positions of an index tensor.\n\n\
              `y = scatter(x, 0, at, v)` --> `y = scatter set x[at, i1] with v`\n\n\
              `y = scatter_reduce(x, 0, at, v, sum, include_self=False)` --> `z = scatter set x[at, i1] with 0`, \
              `y = scatter add z[at, i1] with v`\n\n\
              A mean is a sum over a count.",
        run: scatter,
    },
    Decomposition {
        name: "put",
        handles: &["aten.put"],
        doc: "A copy in which elements numbered in row-major order are replaced, or added to (`accumulate`).\n\n\
              `y = put(x, at, v)` --> `y = scatter set x[select(at < 0, at + n, at)] with v`, flat",
        run: put,
    },
    Decomposition {
        name: "masked_scatter",
        handles: &["aten.masked_scatter"],
        doc: "A copy in which the elements that a mask names are replaced, in row-major order, by the first elements of a \
              source.\n\n`y = masked_scatter(x, m, s)` --> `at = (scan sum m) - 1`, `y = select(m, gather s[at], x)`",
        run: masked_scatter,
    },
    Decomposition {
        name: "one_hot",
        handles: &["aten.one_hot"],
        doc: "`y = one_hot(x, n)` --> `y = x == i1` as i64\n\nRefuses a number of classes that depends on data.",
        run: one_hot,
    },
];

/// The index at its place in a result of `rank` axes, of which it takes those from `at` on.
fn placed(b: &mut Builder<'_>, index: Arg, at: usize, rank: usize) -> Result<Arg> {
    let own = b.rank(index);
    let after: Vec<usize> = (own..rank.saturating_sub(at)).collect();
    if matches!(index, Arg::Scalar { .. }) {
        return Ok(index);
    }
    b.unsqueeze(index, &after)
}

/// Elements of a scalar index become a tensor, since gathers read tensors.
fn as_tensor(b: &mut Builder<'_>, index: Arg) -> Arg {
    match index {
        Arg::Scalar { elem, .. } => b.full(index, elem, vec![]),
        _ => index,
    }
}

fn embedding(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, index) = (call.arg(0)?, call.arg(1)?);
    let index = as_tensor(b, index);
    let table = call.name == "aten.embedding";
    if !table && b.rank(x) == 0 {
        // A tensor of rank 0 is a line of one element.
        let (x, index) = (b.unsqueeze(x, &[0])?, b.reshape(index, &[Ix::Const(1)])?);
        let y = b.gather(x, &[index], vec![Coord::Arg(1)], vec![Ix::Const(1)])?;
        return Ok(vec![b.squeeze(y, &[0])?]);
    }
    let (mut from, own) = (b.shape(x), b.shape(index));
    let axis = if table { 0 } else { normal_axis(call.int("dim", 0)?, from.len())? };
    if table && from.len() != 2 {
        return Err(Refusal::new(format!("an embedding table has two axes, not {}", from.len())));
    }
    let own = if table || own.len() == 1 { own } else { vec![Ix::Const(1)] };
    let index = if b.rank(index) == own.len() { index } else { b.reshape(index, &own)? };
    let shape: Vec<Ix> = from[..axis].iter().chain(&own).chain(&from[axis + 1..]).cloned().collect();
    let coords = (0..from.len()).map(|d| match d {
        d if d < axis => Coord::Ix(ir::axis(d)),
        d if d == axis => Coord::Arg(1),
        d => Coord::Ix(ir::axis(d - 1 + own.len())),
    });
    let coords = coords.collect();
    from.clear();
    let index = placed(b, index, axis, shape.len())?;
    Ok(vec![b.gather(x, &[index], coords, shape)?])
}

fn along(axis: usize, rank: usize) -> Vec<Coord> {
    (0..rank).map(|d| if d == axis { Coord::Arg(1) } else { Coord::Ix(ir::axis(d)) }).collect()
}

/// An index that may count from the end, where it is not known not to.
fn wrapped(b: &mut Builder<'_>, index: Arg, extent: &Ix) -> Result<Arg> {
    if let Some(ints) = b.ints(index) {
        let facts = b.facts();
        if ints.iter().all(|i| facts.range(i).lo >= 0) {
            return Ok(index);
        }
    }
    let zero = b.scalar_like(index, 0.0);
    let n = super::reductions::extent(b, extent.clone(), b.elem(index))?;
    let low = b.compare(Predicate::LessThan, index, zero)?;
    let from_end = b.add(index, n)?;
    b.select(low, from_end, index)
}

fn gather(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (mut x, mut index) = (call.arg(0)?, call.arg(1)?);
    index = as_tensor(b, index);
    if call.name == "aten.take" || !call.has("dim") {
        let n = b.numel(&b.shape(x));
        x = b.reshape(x, std::slice::from_ref(&n))?;
        if call.name == "aten.take_along_dim" {
            let m = b.numel(&b.shape(index));
            index = b.reshape(index, &[m])?;
        }
        index = wrapped(b, index, &n)?;
        let shape = b.shape(index);
        return Ok(vec![b.gather(x, &[index], vec![Coord::Arg(1)], shape)?]);
    }
    let shape = b.shape(index);
    if b.rank(x) == 0 {
        let x = b.unsqueeze(x, &[0])?;
        return Ok(vec![b.gather(x, &[index], vec![Coord::Arg(1)], shape)?]);
    }
    let rank = b.rank(x);
    let axis = normal_axis(call.int("dim", 0)?, rank)?;
    if shape.is_empty() {
        index = b.unsqueeze(index, &(0..rank).collect::<Vec<_>>())?;
        let y = b.gather(x, &[index], along(axis, rank), vec![Ix::Const(1); rank])?;
        return Ok(vec![b.squeeze(y, &(0..rank).collect::<Vec<_>>())?]);
    }
    if b.rank(index) != rank {
        return Err(Refusal::new(format!("an index of rank {} does not fit a tensor of rank {rank}", b.rank(index))));
    }
    if call.name == "aten.take_along_dim" {
        // Both broadcast, except along the axis.
        let (mut xs, mut is) = (b.shape(x), b.shape(index));
        let (n, m) = (std::mem::replace(&mut xs[axis], Ix::Const(1)), std::mem::replace(&mut is[axis], Ix::Const(1)));
        let mut shape = b.broadcast_shape(&[xs, is])?;
        shape[axis] = n.clone();
        x = b.broadcast_to(x, &shape)?;
        shape[axis] = m;
        index = b.broadcast_to(index, &shape)?;
        index = wrapped(b, index, &n)?;
    }
    let shape = b.shape(index);
    Ok(vec![b.gather(x, &[index], along(axis, rank), shape)?])
}

/// What the index tensors of advanced indexing mean.
struct Advanced {
    indices: Vec<Arg>,
    coords: Vec<Coord>,
    shape: Vec<Ix>,
}

/// `given[d]` indexes axis `d` of `x`; those left out are kept whole.
fn advanced(b: &mut Builder<'_>, x: Arg, given: &[Arg]) -> Result<Advanced> {
    let from = b.shape(x);
    if given.len() > from.len() {
        return Err(Refusal::new(format!("{} indices are too many for a tensor of rank {}", given.len(), from.len())));
    }
    let mut at: Vec<Option<Arg>> = vec![None; from.len()];
    for (d, &g) in given.iter().enumerate() {
        if g == Arg::Absent {
            continue;
        }
        if b.elem(g).is_bool() || b.elem(g) == Elem::U8 {
            return Err(Refusal::new("indexing by a mask gives a shape that depends on data")
                .help("use torch.where or masked_fill"));
        }
        let g = as_tensor(b, g);
        let g = b.convert(g, Elem::I64)?;
        at[d] = Some(wrapped(b, g, &from[d])?);
    }
    let used: Vec<usize> = (0..from.len()).filter(|d| at[*d].is_some()).collect();
    let shapes: Vec<Vec<Ix>> = used.iter().filter_map(|d| at[*d]).map(|g| b.shape(g)).collect();
    let common = b.broadcast_shape(&shapes)?;
    // Their axes stand where the first index does if all are neighbours, and first of all otherwise.
    let neighbours = used.windows(2).all(|w| w[1] == w[0] + 1);
    let start = if neighbours { used.first().copied().unwrap_or(0) } else { 0 };
    let whole: Vec<usize> = (0..from.len()).filter(|d| at[*d].is_none()).collect();
    let before = if neighbours { start } else { 0 };
    let mut shape: Vec<Ix> = whole[..before].iter().map(|d| from[*d].clone()).collect();
    shape.extend(common.iter().cloned());
    shape.extend(whole[before..].iter().map(|d| from[*d].clone()));
    let (mut coords, mut indices, mut seen) = (vec![], vec![], 0);
    for g in &at {
        match g {
            Some(g) => {
                let g = b.broadcast_to(*g, &common)?;
                indices.push(placed(b, g, start, shape.len())?);
                coords.push(Coord::Arg(indices.len() as u32));
            }
            None => {
                let place = if seen < before { seen } else { seen + common.len() };
                coords.push(Coord::Ix(ir::axis(place)));
                seen += 1;
            }
        }
    }
    Ok(Advanced { indices, coords, shape })
}

fn index(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let a = advanced(b, x, call.args.get(1..).unwrap_or_default())?;
    Ok(vec![b.gather(x, &a.indices, a.coords, a.shape)?])
}

fn index_put(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let Some((&values, given)) = call.args.get(1..).and_then(|rest| rest.split_last()) else {
        return Err(Refusal::new("the values are missing"));
    };
    let values = b.convert(values, b.elem(x))?;
    let accumulate = call.flag("accumulate", false)?;
    if let &[mask] = given
        && b.elem(mask).is_bool()
        && b.rank(values) == 0
    {
        let lead = b.rank(mask);
        let rest: Vec<usize> = (lead..b.rank(x)).collect();
        let mask = b.unsqueeze(mask, &rest)?;
        let new = if accumulate { b.add(x, values)? } else { values };
        return Ok(vec![b.select(mask, new, x)?]);
    }
    let a = advanced(b, x, given)?;
    let updates = match values {
        Arg::Scalar { elem, .. } => b.full(values, elem, a.shape),
        _ => b.broadcast_to(values, &a.shape)?,
    };
    let op = if accumulate { ScatterOp::Add } else { ScatterOp::Set };
    Ok(vec![b.scatter(x, &a.indices, updates, a.coords, op)?])
}

/// What becomes of an element that updates meet.
#[derive(Clone, Copy, PartialEq)]
enum Merge {
    Replace,
    Fold(ReduceOp),
    Mean,
}

impl Merge {
    fn of(call: &Call<'_>) -> Result<Merge> {
        Ok(match (call.name, call.text("reduce")?) {
            ("aten.scatter_add" | "aten.index_add", _) | (_, Some("add" | "sum")) => Merge::Fold(ReduceOp::Sum),
            (_, Some("multiply" | "prod")) => Merge::Fold(ReduceOp::Prod),
            (_, Some("amax")) => Merge::Fold(ReduceOp::Max),
            (_, Some("amin")) => Merge::Fold(ReduceOp::Min),
            (_, Some("mean")) => Merge::Mean,
            (_, Some(other)) => return Err(Refusal::new(format!("scatter by {other} is not supported"))),
            _ => Merge::Replace,
        })
    }
}

fn scatter(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (mut x, index) = (call.arg(0)?, call.arg(1)?);
    let mut index = as_tensor(b, index);
    // A tensor of rank 0 is a line of one element.
    let single = b.rank(x) == 0;
    if single {
        x = b.unsqueeze(x, &[0])?;
    }
    let rank = b.rank(x);
    let axis = normal_axis(call.int("dim", 0)?, rank)?;
    let merge = Merge::of(call)?;
    let by_axis = call.name.starts_with("aten.index_");
    let mut src = needed(b, call, 2, if call.name == "aten.index_copy" { "source" } else { "value" })?;
    src = element(b, src, b.elem(x))?;
    let shape = if by_axis {
        // The index numbers whole slices.
        let mut shape = b.shape(x);
        let n = b.numel(&b.shape(index));
        let line = b.reshape(index, std::slice::from_ref(&n))?;
        shape[axis] = n;
        index = placed(b, line, axis, rank)?;
        shape
    } else {
        if b.rank(index) == 0 {
            index = b.unsqueeze(index, &(0..rank).collect::<Vec<_>>())?;
        }
        b.shape(index)
    };
    src = scaled(b, call, src, "alpha")?;
    // The source may be larger than the index.
    let updates = match src {
        Arg::Scalar { elem, .. } => b.full(src, elem, shape.clone()),
        _ if b.rank(src) == 0 => b.broadcast_to(src, &shape)?,
        _ if b.rank(src) == rank => {
            if by_axis {
                b.broadcast_to(src, &shape)?
            } else {
                b.map("part", src, shape.clone(), same_place(rank))
            }
        }
        _ => {
            return Err(Refusal::new(format!("a source of rank {} does not fit a tensor of rank {rank}", b.rank(src))));
        }
    };
    let index = b.broadcast_to(index, &shape)?;
    let index = b.convert(index, Elem::I64)?;
    let into = Into { index, coords: along(axis, rank), shape };
    let y = merged(b, x, &into, updates, merge, call.flag("include_self", true)?)?;
    Ok(vec![if single { b.squeeze(y, &[0])? } else { y }])
}

/// Where updates of a shape go.
struct Into {
    index: Arg,
    coords: Vec<Coord>,
    shape: Vec<Ix>,
}

impl Into {
    fn put(&self, b: &mut Builder<'_>, x: Arg, updates: Arg, op: ScatterOp) -> Result<Arg> {
        b.scatter(x, &[self.index], updates, self.coords.clone(), op)
    }
    /// One number at all the places.
    fn put_all(&self, b: &mut Builder<'_>, x: Arg, number: Arg, op: ScatterOp) -> Result<Arg> {
        let updates = b.full(number, b.elem(x), self.shape.clone());
        self.put(b, x, updates, op)
    }
}

/// `x` with updates merged in; unless `whole`, what they meet starts anew.
fn merged(b: &mut Builder<'_>, x: Arg, into: &Into, updates: Arg, merge: Merge, whole: bool) -> Result<Arg> {
    let elem = b.elem(x);
    let nothing = |op: ReduceOp, elem: Elem| Arg::Scalar { elem, bits: op.identity(elem) };
    let folded = |op| match op {
        ReduceOp::Prod => ScatterOp::Mul,
        ReduceOp::Max => ScatterOp::Max,
        ReduceOp::Min => ScatterOp::Min,
        _ => ScatterOp::Add,
    };
    match merge {
        Merge::Replace => into.put(b, x, updates, ScatterOp::Set),
        Merge::Fold(op) => {
            let x = if whole { x } else { into.put_all(b, x, nothing(op, elem), ScatterOp::Set)? };
            into.put(b, x, updates, folded(op))
        }
        Merge::Mean => {
            let wide = b.wide(x);
            let (x, updates) = (b.convert(x, wide)?, b.convert(updates, wide)?);
            let start = if whole { x } else { into.put_all(b, x, nothing(ReduceOp::Sum, wide), ScatterOp::Set)? };
            let sum = into.put(b, start, updates, ScatterOp::Add)?;
            let counts = b.shape(x);
            let (one, first) = (ir::scalar(wide, 1.0), ir::scalar(wide, if whole { 1.0 } else { 0.0 }));
            let counts = b.full(first, wide, counts);
            let counts = into.put_all(b, counts, one, ScatterOp::Add)?;
            let counts = b.max(counts, one)?;
            let y = if wide.is_float() { b.div(sum, counts)? } else { divide_rounded(b, sum, counts, true)? };
            b.convert(y, elem)
        }
    }
}

/// `(x, index, source)`
fn put(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, at, source) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    let (at, source) = (as_tensor(b, at), as_tensor(b, source));
    let (shape, count) = (b.shape(x), b.numel(&b.shape(at)));
    let n = b.numel(&shape);
    let line = b.reshape(x, std::slice::from_ref(&n))?;
    let at = b.reshape(at, std::slice::from_ref(&count))?;
    let at = wrapped(b, at, &n)?;
    let source = b.reshape(source, &[count])?;
    let op = if call.flag("accumulate", false)? { ScatterOp::Add } else { ScatterOp::Set };
    let y = b.scatter(line, &[at], source, vec![Coord::Arg(1)], op)?;
    Ok(vec![b.reshape(y, &shape)?])
}

/// `(x, mask, source)`
fn masked_scatter(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, mask, source) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    let shape = b.broadcast_shape(&[b.shape(x), b.shape(mask)])?;
    let (x, mask) = (b.broadcast_to(x, &shape)?, b.broadcast_to(mask, &shape)?);
    let (n, of) = (b.numel(&shape), b.numel(&b.shape(source)));
    let source = b.reshape(source, &[of])?;
    let flat = b.reshape(mask, &[n])?;
    let ones = b.convert(flat, Elem::I64)?;
    let count = b.scan(ScanOp::Sum, ones, 0, false, false)?;
    let at = b.sub(count, ir::int_scalar(Elem::I64, 1))?;
    let at = b.reshape(at, &shape)?;
    // What is not replaced reads anywhere; a mask that names more than the source has is an error of the run.
    let at = b.select(mask, at, ir::int_scalar(Elem::I64, 0))?;
    let coords = vec![Coord::Arg(1)];
    let found = b.gather(source, &[at], coords, shape)?;
    Ok(vec![b.select(mask, found, x)?])
}

fn one_hot(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let classes = call.extents("num_classes")?.and_then(|c| c.first().cloned()).unwrap_or(Ix::Const(-1));
    if classes.as_const().is_some_and(|c| c < 1) {
        return Err(Refusal::new("one_hot without a number of classes gives a shape that depends on data")
            .help("pass num_classes"));
    }
    let x = as_tensor(b, x);
    if b.elem(x) != Elem::I64 {
        return Err(Refusal::new(format!("one_hot takes i64 classes, not {}", b.elem(x))));
    }
    // A gather from 0, 1, ... gives each class again, and reports one that is not among them.
    let (rank, shape) = (b.rank(x), b.shape(x));
    let at = b.index(ir::axis(0), Elem::I64, vec![classes]);
    let x = b.gather(at, &[x], vec![Coord::Arg(1)], shape)?;
    let x = b.unsqueeze(x, &[rank])?;
    let hit = b.compare(Predicate::Equal, x, at)?;
    Ok(vec![b.convert(hit, Elem::I64)?])
}
