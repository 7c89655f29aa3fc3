//! Gathers and scatters of PyTorch.

use super::arithmetic::divide_rounded;
use super::expr::{Tensor, all, along};
use super::types::same_place;
use super::{Call, normal_axis};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::ir::{self, Arg, Coord, ReduceOp, ScanOp, ScatterOp};
use crate::index::Ix;

rules! {
    embedding "Rows of a table, or positions along an axis, by an index tensor. An index outside is an error of the run.\n\n\
         `y = embedding(w, at)` --> `y = gather w[at, i1]`" {
        "aten.embedding" => |c| embedding(c, true),
        "aten.index_select" => |c| embedding(c, false),
    }
    gather "Along one axis by an index tensor of the result's shape.\n\n`y = gather(x, 1, at)` --> `y = gather x[i0, at]`" {
        "aten.gather" | "aten.take_along_dim" | "aten.take" => gather,
    }
    index "Advanced indexing: several index tensors, broadcast; negative ones count from the end.\n\n\
         `y = index(x, None, at)` --> `y = gather x[i0, select(at < 0, at + n, at)]`\n\n\
         Refuses masks of bools: their result's shape depends on data." {
        "aten.index" | "aten._unsafe_index" => |c| {
            let a = advanced(c.x(0), c.args.get(1..).unwrap_or_default())?;
            Ok::<_, Refusal>(c.x(0).gather(&a.indices, a.coords, a.shape))
        },
    }
    index_put "A copy in which indexed elements are replaced, or added to (`accumulate`).\n\n\
         `y = index_put(x, at, v)` --> `y = scatter set x[at] with v`\n\n\
         A mask of bools of the tensor's shape, with one value, is a selection." {
        "aten.index_put" | "aten._unsafe_index_put" => index_put,
    }
    scatter "Along one axis, into the positions of an index tensor.\n\n\
         `y = scatter(x, 0, at, v)` --> `y = scatter set x[at, i1] with v`\n\n\
         `y = scatter_reduce(x, 0, at, v, sum, include_self=False)` --> `z = scatter set x[at, i1] with 0`, \
         `y = scatter add z[at, i1] with v`\n\n\
         A mean is a sum over a count." {
        "aten.scatter" | "aten.scatter_add" | "aten.scatter_reduce" | "aten.index_add" => |c| scatter(c, "value"),
        "aten.index_copy" => |c| scatter(c, "source"),
        "aten.index_fill" | "aten.index_reduce" => |c| scatter(c, "value"),
    }
    put "A copy in which elements numbered in row-major order are replaced, or added to (`accumulate`).\n\n\
         `y = put(x, at, v)` --> `y = scatter set x[select(at < 0, at + n, at)] with v`, flat" {
        "aten.put" => put,
    }
    masked_scatter "A copy in which the elements that a mask names are replaced, in row-major order, by the first elements of a \
         source.\n\n`y = masked_scatter(x, m, s)` --> `at = (scan sum m) - 1`, `y = select(m, gather s[at], x)`" {
        "aten.masked_scatter" => masked_scatter,
    }
    one_hot "`y = one_hot(x, n)` --> `y = x == i1` as i64\n\nRefuses a number of classes that depends on data." {
        "aten.one_hot" => one_hot,
    }
}

/// The index at its place in a result of `rank` axes: it takes the axes from `at` on.
fn in_place(index: Tensor<'_>, at: usize, rank: usize) -> Result<Tensor<'_>> {
    let after: Vec<usize> = (index.rank()?..rank.saturating_sub(at)).collect();
    Ok(if index.is_number() { index } else { index.unsqueeze(&after) })
}

fn embedding<'g>(c: &Call<'g>, table: bool) -> Result<Tensor<'g>> {
    let (x, index) = (c.x(0), c.x(1).placed());
    let one = || vec![Ix::Const(1)];
    if !table {
        expect_vector(index)?;
    }
    if !table && x.rank()? == 0 {
        // A tensor of rank 0 is a line of one element.
        normal_axis(c.int("dim", 0)?, 1)?;
        return Ok(x.unsqueeze(&[0]).gather(&[index.reshape(&one())], vec![Coord::Arg(1)], one()).squeeze(&[0]));
    }
    let (from, own) = (x.shape()?, index.shape()?);
    let axis = if table { 0 } else { normal_axis(c.int("dim", 0)?, from.len())? };
    if table && from.len() != 2 {
        return Err(Refusal::new(format!("an embedding table has two axes, not {}", from.len())));
    }
    let own = if table || own.len() == 1 { own } else { one() };
    let index = if index.rank()? == own.len() { index } else { index.reshape(&own) };
    let shape: Vec<Ix> = from[..axis].iter().chain(&own).chain(&from[axis + 1..]).cloned().collect();
    let coords = (0..from.len()).map(|d| match d {
        d if d < axis => Coord::Ix(ir::axis(d)),
        d if d == axis => Coord::Arg(1),
        d => Coord::Ix(ir::axis(d - 1 + own.len())),
    });
    Ok(x.gather(&[in_place(index, axis, shape.len())?], coords.collect(), shape))
}

/// Refuses an index of rank 2 or more: whole slices are chosen by a vector or a scalar.
fn expect_vector(index: Tensor<'_>) -> Result<()> {
    match index.rank()? {
        0 | 1 => Ok(()),
        _ => Err(Refusal::new(format!(
            "slices are chosen by a vector of indices, not by a tensor of shape {}",
            index.shape_text()
        ))),
    }
}

/// An index that may count from the end, where it is not known not to.
fn wrapped<'g>(index: Tensor<'g>, extent: &Ix) -> Tensor<'g> {
    if index.ints().is_some_and(|ints| ints.iter().all(|i| index.cx.range(i).lo >= 0)) {
        return index;
    }
    let n = index.cx.extent(extent, index.elem());
    index.below(0.0).select(index + n, index)
}

fn gather<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (mut x, mut index) = (c.x(0), c.x(1).placed());
    if c.name == "aten.take" || !c.has("dim") {
        let n = x.numel()?;
        let x = x.reshape(std::slice::from_ref(&n));
        let index = if c.name == "aten.take_along_dim" { index.flat() } else { index };
        let index = wrapped(index, &n);
        return Ok(x.gather(&[index], vec![Coord::Arg(1)], index.shape()?));
    }
    let (shape, rank) = (index.shape()?, x.rank()?);
    if rank == 0 {
        return Ok(x.unsqueeze(&[0]).gather(&[index], vec![Coord::Arg(1)], shape));
    }
    let axis = normal_axis(c.int("dim", 0)?, rank)?;
    if shape.is_empty() {
        return Ok(x.gather_along(index.unsqueeze(&all(rank)), axis).squeeze(&all(rank)));
    }
    if shape.len() != rank {
        return Err(Refusal::new(format!("an index of rank {} does not fit a tensor of rank {rank}", shape.len())));
    }
    if c.name == "aten.take_along_dim" {
        // Both broadcast, except along the axis.
        let (mut xs, mut is) = (x.shape()?, shape);
        let (n, m) = (std::mem::replace(&mut xs[axis], Ix::Const(1)), std::mem::replace(&mut is[axis], Ix::Const(1)));
        let mut shape = c.cx.broadcast_shape(&[xs, is])?;
        shape[axis] = n.clone();
        x = x.broadcast_to(&shape);
        shape[axis] = m;
        index = wrapped(index.broadcast_to(&shape), &n);
    }
    Ok(x.gather_along(index, axis))
}

/// The meaning of the index tensors of advanced indexing.
struct Advanced<'g> {
    indices: Vec<Tensor<'g>>,
    coords: Vec<Coord>,
    shape: Vec<Ix>,
}

/// `given[d]` indexes axis `d` of `x`; those left out are kept whole.
fn advanced<'g>(x: Tensor<'g>, given: &[Arg]) -> Result<Advanced<'g>> {
    let (cx, from) = (x.cx, x.shape()?);
    if given.len() > from.len() {
        return Err(Refusal::new(format!("{} indices are too many for a tensor of rank {}", given.len(), from.len())));
    }
    let mut at: Vec<Option<Tensor<'g>>> = vec![None; from.len()];
    for (d, &g) in given.iter().enumerate().filter(|(_, g)| **g != Arg::Absent) {
        let g = cx.tensor(g);
        if g.elem().is_bool() || g.elem() == Elem::U8 {
            return Err(Refusal::new("indexing by a mask gives a shape that depends on data")
                .help("use torch.where or masked_fill"));
        }
        at[d] = Some(wrapped(g.placed().to(Elem::I64), &from[d]));
    }
    let used: Vec<usize> = (0..from.len()).filter(|d| at[*d].is_some()).collect();
    let shapes = used.iter().filter_map(|d| at[*d]).map(Tensor::shape).collect::<Result<Vec<Vec<Ix>>>>()?;
    let common = cx.broadcast_shape(&shapes)?;
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
                indices.push(in_place(g.broadcast_to(&common), start, shape.len())?);
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

fn index_put<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let x = c.x(0);
    let Some((&values, given)) = c.args.get(1..).and_then(|rest| rest.split_last()) else {
        return Err(Refusal::new("the values are missing"));
    };
    let values = c.cx.tensor(values).to(x.elem());
    let accumulate = c.flag("accumulate", false)?;
    if let &[mask] = given
        && let mask = c.cx.tensor(mask)
        && mask.elem().is_bool()
        && values.rank()? == 0
    {
        let mask = mask.unsqueeze(&(mask.rank()?..x.rank()?).collect::<Vec<_>>());
        return Ok(mask.select(if accumulate { x + values } else { values }, x));
    }
    let a = advanced(x, given)?;
    let op = if accumulate { ScatterOp::Add } else { ScatterOp::Set };
    Ok(x.scatter(&a.indices, values.spread(&a.shape), a.coords, op))
}

/// The fate of an element that updates meet.
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

fn scatter<'g>(c: &Call<'g>, source: &str) -> Result<Tensor<'g>> {
    let (x, mut index) = (c.x(0), c.x(1).placed());
    // A tensor of rank 0 is a line of one element.
    let single = x.rank()? == 0;
    let x = if single { x.unsqueeze(&[0]) } else { x };
    let rank = x.rank()?;
    let axis = normal_axis(c.int("dim", 0)?, rank)?;
    let merge = Merge::of(c)?;
    let by_axis = c.name.starts_with("aten.index_");
    let src = c.needed(2, source).element_of(x.elem());
    let shape = if by_axis {
        // The index numbers whole slices.
        expect_vector(index)?;
        let mut shape = x.shape()?;
        shape[axis] = index.numel()?;
        index = in_place(index.flat(), axis, rank)?;
        shape
    } else {
        if index.rank()? == 0 {
            index = index.unsqueeze(&all(rank));
        }
        index.shape()?
    };
    let src = c.scaled(src, "alpha");
    // The source may be larger than the index.
    let updates = match src.rank()? {
        // A scalar is not a slice, and a vector of one element is not a scalar.
        r if matches!(c.name, "aten.index_add" | "aten.index_reduce") && r != c.x(0).rank()? => {
            let (source, x) = (src.shape_text(), c.x(0).shape_text());
            return Err(Refusal::new(format!("a source of shape {source} does not fit a tensor of shape {x}")));
        }
        0 => src.spread(&shape),
        // PyTorch refuses a source that would have to be repeated.
        r if r == rank && by_axis && c.cx.same_shape(&src.shape()?, &shape) => src,
        r if r == rank && by_axis => {
            return Err(Refusal::new(format!("a source of shape {} does not fit the slices", src.shape_text())));
        }
        r if r == rank => src.map("part", shape.clone(), same_place(rank)),
        r => return Err(Refusal::new(format!("a source of rank {r} does not fit a tensor of rank {rank}"))),
    };
    let index = index.broadcast_to(&shape).to(Elem::I64);
    let y = merged(x, &Into { index, axis, shape }, updates, merge, c.flag("include_self", true)?)?;
    Ok(if single { y.squeeze(&[0]) } else { y })
}

/// Where updates of a shape go.
struct Into<'g> {
    index: Tensor<'g>,
    axis: usize,
    shape: Vec<Ix>,
}

impl<'g> Into<'g> {
    fn put(&self, x: Tensor<'g>, updates: Tensor<'g>, op: ScatterOp) -> Tensor<'g> {
        x.scatter(&[self.index], updates, along(self.axis, self.shape.len()), op)
    }
    /// One number at all the places.
    fn put_all(&self, x: Tensor<'g>, number: Tensor<'g>, op: ScatterOp) -> Tensor<'g> {
        self.put(x, number.fill(self.shape.clone()), op)
    }
}

fn merged<'g>(x: Tensor<'g>, into: &Into<'g>, updates: Tensor<'g>, merge: Merge, whole: bool) -> Result<Tensor<'g>> {
    let nothing = |op: ReduceOp, elem: Elem| x.cx.tensor(Arg::Scalar { elem, bits: op.identity(elem) });
    let folded = |op| match op {
        ReduceOp::Prod => ScatterOp::Mul,
        ReduceOp::Max => ScatterOp::Max,
        ReduceOp::Min => ScatterOp::Min,
        _ => ScatterOp::Add,
    };
    Ok(match merge {
        Merge::Replace => into.put(x, updates, ScatterOp::Set),
        Merge::Fold(op) => {
            let x = if whole { x } else { into.put_all(x, nothing(op, x.elem()), ScatterOp::Set) };
            into.put(x, updates, folded(op))
        }
        Merge::Mean => {
            let (elem, x) = (x.elem(), x.wide());
            let (wide, updates) = (x.elem(), updates.to(x.elem()));
            let start = if whole { x } else { into.put_all(x, nothing(ReduceOp::Sum, wide), ScatterOp::Set) };
            let sum = into.put(start, updates, ScatterOp::Add);
            let counts = x.like(if whole { 1.0 } else { 0.0 }).fill(x.shape()?);
            let counts = into.put_all(counts, x.like(1.0), ScatterOp::Add).max(1.0);
            if wide.is_float() { sum / counts } else { divide_rounded(sum, counts, true) }.to(elem)
        }
    })
}

/// `(x, index, source)`
fn put<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (x, at, source) = (c.x(0), c.x(1).placed(), c.x(2).placed());
    let (shape, n) = (x.shape()?, x.numel()?);
    let line = x.flat();
    let count = at.numel()?;
    let at = wrapped(at.flat(), &n);
    let op = if c.flag("accumulate", false)? { ScatterOp::Add } else { ScatterOp::Set };
    Ok(line.scatter(&[at], source.reshape(&[count]), vec![Coord::Arg(1)], op).reshape(&shape))
}

/// `(x, mask, source)`
fn masked_scatter<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let shape = c.cx.broadcast_shape(&[c.x(0).shape()?, c.x(1).shape()?])?;
    let (x, mask) = (c.x(0).broadcast_to(&shape), c.x(1).broadcast_to(&shape));
    let source = c.x(2).flat();
    let at = (mask.flat().to(Elem::I64).scan(ScanOp::Sum, 0) - 1).reshape(&shape);
    // An element that is not replaced reads any position; a mask that names more elements than the source has fails at run time.
    let at = mask.select(at, 0);
    Ok(mask.select(source.gather(&[at], vec![Coord::Arg(1)], shape), x))
}

fn one_hot<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let classes = c.extents("num_classes")?.and_then(|c| c.first().cloned()).unwrap_or(Ix::Const(-1));
    if classes.as_const().is_some_and(|c| c < 1) {
        return Err(Refusal::new("one_hot without a number of classes gives a shape that depends on data")
            .help("pass num_classes"));
    }
    let x = c.x(0).placed();
    if x.elem() != Elem::I64 {
        return Err(Refusal::new(format!("one_hot takes i64 classes, not {}", x.elem())));
    }
    // A gather from 0, 1, ... gives each class again, and reports one that is not among them.
    let shape = x.shape()?;
    let at = c.cx.index(ir::axis(0), Elem::I64, vec![classes]);
    let x = at.gather(&[x], vec![Coord::Arg(1)], shape.clone());
    Ok(x.unsqueeze(&[shape.len()]).equals(at).to(Elem::I64))
}
