//! Systems of linear equations: factors of matrices, and what follows from them.
//!
//! Matrices are the last two axes, others are batches. A column is eliminated in each round of a loop, over all of the matrix, so
//! neither the number of kernels nor the size of code depends on how large it is. All is computed in f64.

use super::types::floating;
use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::repeat::Rounds;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, Coord, ReduceOp, ScatterOp};
use crate::index::Ix;
use crate::num::op::Predicate;

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "lu",
        handles: &["aten.linalg_lu_factor_ex", "aten.linalg_lu", "aten.lu_unpack"],
        doc: "The factors of a matrix with its rows in another order, by Gaussian elimination with partial pivoting (Golub and \
              Van Loan, Matrix Computations, algorithm 3.4.1): in each round the row with the greatest element of the column comes \
              to the diagonal.\n\n\
              `LU, pivots, info = linalg_lu_factor_ex(A)` --> `p = reduce argmax abs A[k.., k]`, the rows `k` and `p` of `A` exchanged, \
              `A = select(i > k and j > k, A - A[i, k]/A[k, k]*A[k, j], ..)`, in a `repeat`\n\n\
              Refuses factors without pivots.",
        run: factors,
    },
    Decomposition {
        name: "determinant",
        handles: &["aten._linalg_det", "aten._linalg_slogdet", "onnx.Det"],
        doc: "The product of the diagonal of U, or the sum of its logarithms, and the sign of the exchanges of rows.\n\n\
              `y = Det(A)` --> `y = reduce prod LU[i, i] * sign`",
        run: determinant,
    },
    Decomposition {
        name: "solve",
        handles: &["aten._linalg_solve_ex", "aten.linalg_inv_ex", "aten.linalg_lu_solve"],
        doc: "Both triangular systems after the factors; the inverse solves for the unit matrix.\n\n\
              `X = linalg_solve(A, B)` --> `X = U^-1 L^-1 B[permutation]`\n\n\
              A matrix that has no inverse gives what the division by zero does, and `info` names the pivot, as in PyTorch.",
        run: solve,
    },
    Decomposition {
        name: "triangular",
        handles: &[
            "aten.linalg_solve_triangular",
            "aten.triangular_solve",
            "aten.linalg_cholesky_ex",
            "aten.cholesky_solve",
            "aten.cholesky_inverse",
        ],
        doc: "Substitution, a row of the unknowns in each round; and Cholesky's factor, a column in each.\n\n\
              `X = linalg_solve_triangular(L, B, upper=False)` --> `x = B[k]/L[k, k]`, `B = select(i > k, B - L[i, k]*x, ..)`, in a `repeat`",
        run: triangular,
    },
];

const F64: Elem = Elem::F64;

/// What stands for a coordinate of the last two axes.
#[derive(Clone, Copy)]
enum At {
    /// The axis of the result itself.
    Own,
    /// The element of a tensor of integers, which broadcasts to the result's shape.
    Of(Arg),
}

/// The elements of a matrix at rows and columns, with as many of these.
fn pick(b: &mut Builder<'_>, a: Arg, [row, column]: [At; 2], [rows, columns]: [Ix; 2]) -> Result<Arg> {
    let mut shape = b.shape(a);
    let first = shape.len() - 2;
    shape[first] = rows;
    shape[first + 1] = columns;
    let mut indices = vec![];
    let mut coords: Vec<Coord> = (0..first).map(|d| Coord::Ix(ir::axis(d))).collect();
    for (d, at) in [(first, row), (first + 1, column)] {
        coords.push(match at {
            At::Own => Coord::Ix(ir::axis(d)),
            At::Of(index) => {
                indices.push(index);
                Coord::Arg(indices.len() as u32)
            }
        });
    }
    b.gather(a, &indices, coords, shape)
}

/// The number of each row, `[m, 1]`, or of each column, `[1, n]`.
fn rows(b: &mut Builder<'_>, m: &Ix) -> Arg {
    b.index(ir::axis(0), Elem::I64, vec![m.clone(), Ix::Const(1)])
}

fn columns(b: &mut Builder<'_>, n: &Ix) -> Arg {
    b.index(ir::axis(1), Elem::I64, vec![Ix::Const(1), n.clone()])
}

fn int(x: i64) -> Arg {
    ir::int_scalar(Elem::I64, x)
}

/// A matrix in f64, with its type as it came and its extents.
fn matrix(b: &mut Builder<'_>, a: Arg) -> Result<(Arg, Elem, [Ix; 2])> {
    let a = floating(b, a)?;
    let elem = b.elem(a);
    let shape = b.shape(a);
    let [.., m, n] = &shape[..] else {
        return Err(Refusal::new(format!("a matrix has at least two axes, not {}", b.shape_text(&shape))));
    };
    let extents = [m.clone(), n.clone()];
    Ok((b.convert(a, F64)?, elem, extents))
}

/// A square matrix in f64, with its type as it came and its extent.
fn square(b: &mut Builder<'_>, a: Arg) -> Result<(Arg, Elem, Ix)> {
    let (a, elem, [n, columns]) = matrix(b, a)?;
    if !b.same(&n, &columns) {
        let shape = b.shape(a);
        return Err(Refusal::new(format!("{} is not square", b.shape_text(&shape))));
    }
    Ok((a, elem, n))
}

/// 1 where two tensors are equal, 0 elsewhere.
fn ones(b: &mut Builder<'_>, x: Arg, y: Arg) -> Result<Arg> {
    let same = b.compare(Predicate::Equal, x, y)?;
    b.select(same, ir::scalar(F64, 1.0), ir::scalar(F64, 0.0))
}

fn unit_matrix(b: &mut Builder<'_>, n: &Ix) -> Result<Arg> {
    let (row, column) = (rows(b, n), columns(b, n));
    ones(b, row, column)
}

/// Which row each comes from when the rows `k` and `p` are exchanged.
fn exchange(b: &mut Builder<'_>, row: Arg, k: Arg, p: Arg) -> Result<Arg> {
    let (is_k, is_p) = (b.compare(Predicate::Equal, row, k)?, b.compare(Predicate::Equal, row, p)?);
    let source = b.select(is_p, k, row)?;
    b.select(is_k, p, source)
}

/// What every round of a loop gave, `[rounds, ..]`, as `[.., rounds]`.
fn rounds_last(b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
    let order: Vec<usize> = (1..b.rank(x)).chain([0]).collect();
    b.transpose(x, &order)
}

/// A matrix after the elimination of the column `k`: of the rows that `below` says, that column is `factor`, and what stands right of
/// it is less its product with `top`.
fn eliminated(b: &mut Builder<'_>, a: Arg, [factor, top]: [Arg; 2], k: Arg, below: Arg, column: Arg) -> Result<Arg> {
    let product = b.mul(factor, top)?;
    let rest = b.sub(a, product)?;
    let (right, here) = (b.compare(Predicate::GreaterThan, column, k)?, b.compare(Predicate::Equal, column, k)?);
    let kept = b.select(here, factor, a)?;
    let changed = b.select(right, rest, kept)?;
    b.select(below, changed, a)
}

fn transposed(b: &mut Builder<'_>, a: Arg) -> Result<Arg> {
    let rank = b.rank(a);
    b.swap_axes(a, rank - 2, rank - 1)
}

/// `[.., 1, 1]` as `[..]`.
fn scalars(b: &mut Builder<'_>, a: Arg) -> Result<Arg> {
    let rank = b.rank(a);
    b.squeeze(a, &[rank - 2, rank - 1])
}

/// The factors of a matrix: L below the diagonal, whose own is 1, and U; which row of it each row was, `[.., m, 1]`; and of each round
/// the row that came to the diagonal, `[.., rounds]`.
struct Factors {
    lu: Arg,
    from: Arg,
    pivots: Arg,
}

fn lu(b: &mut Builder<'_>, a: Arg, [m, n]: [Ix; 2]) -> Result<Factors> {
    let mut shape = b.shape(a);
    let rank = shape.len();
    shape[rank - 1] = Ix::Const(1);
    let numbers = rows(b, &m);
    let from = b.broadcast_to(numbers, &shape)?;
    let rounds = b.simplify(&Ix::min(m.clone(), n.clone()));
    if rounds.is_const(0) {
        let shape = [&shape[..rank - 2], &[rounds]].concat();
        return Ok(Factors { lu: a, from, pivots: b.full(int(0), Elem::I64, shape) });
    }
    let of = Rounds { rounds, conditional: false, carried: &[int(0), a, from], rows: &[], read: &[], given: &[false] };
    let results = b.repeat(&of, |b, state, _, _| {
        let [k, a, from] = *state else { return Err(Refusal::new("a loop lost its state")) };
        let (row, column, one) = (rows(b, &m), columns(b, &n), Ix::Const(1));
        let candidates = pick(b, a, [At::Own, At::Of(k)], [m.clone(), one.clone()])?;
        let size = b.abs(candidates)?;
        let done = b.compare(Predicate::LessThan, row, k)?;
        let size = b.select(done, ir::scalar(F64, -1.0), size)?;
        let pivot = b.reduce(ReduceOp::ArgMax { last: false }, size, &[rank - 2], true)?;
        let source = exchange(b, row, k, pivot)?;
        let a = pick(b, a, [At::Of(source), At::Own], [m.clone(), n.clone()])?;
        let from = pick(b, from, [At::Of(source), At::Own], [m.clone(), one.clone()])?;
        let diagonal = pick(b, a, [At::Of(k), At::Of(k)], [one.clone(), one.clone()])?;
        let left = pick(b, a, [At::Own, At::Of(k)], [m.clone(), one.clone()])?;
        let top = pick(b, a, [At::Of(k), At::Own], [one.clone(), n.clone()])?;
        // Below a pivot that is zero all are.
        let zero = b.compare(Predicate::Equal, diagonal, ir::scalar(F64, 0.0))?;
        let divisor = b.select(zero, ir::scalar(F64, 1.0), diagonal)?;
        let factor = b.div(left, divisor)?;
        let below = b.compare(Predicate::GreaterThan, row, k)?;
        let a = eliminated(b, a, [factor, top], k, below, column)?;
        let next = b.add(k, int(1))?;
        let pivot = scalars(b, pivot)?;
        Ok((vec![next, a, from], vec![pivot]))
    })?;
    let [_, lu, from, pivots] = results[..] else { return Err(Refusal::new("a loop lost its results")) };
    Ok(Factors { lu, from, pivots: rounds_last(b, pivots)? })
}

impl Factors {
    /// As LAPACK counts them, from 1.
    fn numbered(&self, b: &mut Builder<'_>) -> Result<Arg> {
        let from_1 = b.add(self.pivots, int(1))?;
        b.convert(from_1, Elem::I32)
    }
    /// The diagonal of U, `[.., k]`.
    fn diagonal(&self, b: &mut Builder<'_>) -> Result<Arg> {
        diagonal(b, self.lu)
    }
    /// The number of the first pivot that is zero, from 1; 0 where there is none.
    fn info(&self, b: &mut Builder<'_>) -> Result<Arg> {
        let u = self.diagonal(b)?;
        let bad = b.compare(Predicate::Equal, u, ir::scalar(F64, 0.0))?;
        first(b, bad)
    }
}

/// The place of the first that is true along the last axis, from 1, as i32; 0 where there is none.
fn first(b: &mut Builder<'_>, bad: Arg) -> Result<Arg> {
    let (shape, last) = (b.shape(bad), b.rank(bad) - 1);
    let most = int(i64::from(i32::MAX));
    let place = b.index(Ix::add(ir::axis(last), Ix::Const(1)), Elem::I64, shape);
    let place = b.select(bad, place, most)?;
    let least = b.reduce(ReduceOp::Min, place, &[last], false)?;
    let none = b.compare(Predicate::GreaterThanOrEqual, least, most)?;
    let place = b.select(none, int(0), least)?;
    b.convert(place, Elem::I32)
}

fn diagonal(b: &mut Builder<'_>, a: Arg) -> Result<Arg> {
    let mut shape = b.shape(a);
    let (Some(n), Some(m)) = (shape.pop(), shape.pop()) else { return Err(Refusal::new("a matrix has two axes")) };
    let d = shape.len();
    shape.push(b.simplify(&Ix::min(m, n)));
    let coords = (0..d).chain([d, d]).map(ir::axis).collect();
    Ok(b.map("diagonal", a, shape, coords))
}

/// The part of a matrix on one side of the diagonal, which is 1 or the matrix's own.
fn half(b: &mut Builder<'_>, a: Arg, [m, n]: [Ix; 2], lower: bool, unit: bool) -> Result<Arg> {
    let a = pick(b, a, [At::Own, At::Own], [m.clone(), n.clone()])?;
    let (row, column) = (rows(b, &m), columns(b, &n));
    let inside = match (lower, unit) {
        (true, true) => Predicate::GreaterThan,
        (true, false) => Predicate::GreaterThanOrEqual,
        (false, true) => Predicate::LessThan,
        (false, false) => Predicate::LessThanOrEqual,
    };
    let inside = b.compare(inside, row, column)?;
    let kept = b.select(inside, a, ir::scalar(F64, 0.0))?;
    if !unit {
        return Ok(kept);
    }
    let same = b.compare(Predicate::Equal, row, column)?;
    b.select(same, ir::scalar(F64, 1.0), kept)
}

/// The matrix that brings rows back to where they were.
fn permutation(b: &mut Builder<'_>, from: Arg, m: &Ix) -> Result<Arg> {
    let from = transposed(b, from)?;
    let row = rows(b, m);
    ones(b, row, from)
}

/// Which row each was, after the exchanges of LAPACK's pivots `[.., rounds]`: `[.., m, 1]`.
fn exchanged(b: &mut Builder<'_>, pivots: Arg, m: &Ix) -> Result<Arg> {
    let pivots = b.convert(pivots, Elem::I64)?;
    let pivots = b.sub(pivots, int(1))?;
    let last = b.rank(pivots) - 1;
    let order: Vec<usize> = [last].into_iter().chain(0..last).collect();
    let by_round = b.transpose(pivots, &order)?;
    let rounds = b.shape(by_round)[0].clone();
    let mut shape = b.shape(pivots);
    shape[last] = m.clone();
    shape.push(Ix::Const(1));
    let numbers = rows(b, m);
    let start = b.broadcast_to(numbers, &shape)?;
    if rounds.is_const(0) {
        return Ok(start);
    }
    let of = Rounds {
        rounds,
        conditional: false,
        carried: &[int(0), start],
        rows: &[(by_round, false)],
        read: &[],
        given: &[],
    };
    let results = b.repeat(&of, |b, state, given, _| {
        let ([k, from], [pivot]) = (state, given) else { return Err(Refusal::new("a loop lost its state")) };
        let rank = b.rank(*pivot);
        let pivot = b.unsqueeze(*pivot, &[rank, rank + 1])?;
        let row = rows(b, m);
        let source = exchange(b, row, *k, pivot)?;
        let from = pick(b, *from, [At::Of(source), At::Own], [m.clone(), Ix::Const(1)])?;
        Ok((vec![b.add(*k, int(1))?, from], vec![]))
    })?;
    Ok(results[1])
}

fn factors(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (a, elem, [m, n]) = matrix(b, call.arg(0)?)?;
    if !call.flag("pivot", true)? {
        return Err(Refusal::new("factors without pivots are not supported"));
    }
    let (lu, from) = match call.name {
        "aten.lu_unpack" => (a, exchanged(b, call.arg(1)?, &m)?),
        _ => {
            let f = lu(b, a, [m.clone(), n.clone()])?;
            if call.name == "aten.linalg_lu_factor_ex" {
                return Ok(vec![b.convert(f.lu, elem)?, f.numbered(b)?, f.info(b)?]);
            }
            (f.lu, f.from)
        }
    };
    let k = b.simplify(&Ix::min(m.clone(), n.clone()));
    let p = permutation(b, from, &m)?;
    let l = half(b, lu, [m, k.clone()], true, true)?;
    let u = half(b, lu, [k, n], false, false)?;
    let empty = |b: &mut Builder<'_>| b.full(ir::scalar(elem, 0.0), elem, vec![Ix::Const(0)]);
    let (data, pivots) = (call.flag("unpack_data", true)?, call.flag("unpack_pivots", true)?);
    let p = if pivots { b.convert(p, elem)? } else { empty(b) };
    if !data {
        return Ok(vec![p, empty(b), empty(b)]);
    }
    Ok(vec![p, b.convert(l, elem)?, b.convert(u, elem)?])
}

fn determinant(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (a, elem, n) = square(b, call.arg(0)?)?;
    // PyTorch factors the transposed one where its memory is in rows.
    let a = transposed(b, a)?;
    let f = lu(b, a, [n.clone(), n])?;
    let u = f.diagonal(b)?;
    let shape = b.shape(f.pivots);
    let last = shape.len() - 1;
    let own = b.index(ir::axis(last), Elem::I64, shape);
    let moved = b.compare(Predicate::NotEqual, f.pivots, own)?;
    let signs = b.select(moved, ir::scalar(F64, -1.0), ir::scalar(F64, 1.0))?;
    let sign = b.reduce(ReduceOp::Prod, signs, &[last], false)?;
    let mut out = match call.name {
        "aten._linalg_slogdet" => {
            let zero = ir::scalar(F64, 0.0);
            let (above, below) =
                (b.compare(Predicate::GreaterThan, u, zero)?, b.compare(Predicate::LessThan, u, zero)?);
            let down = b.select(below, ir::scalar(F64, -1.0), u)?;
            let signs = b.select(above, ir::scalar(F64, 1.0), down)?;
            let of_u = b.reduce(ReduceOp::Prod, signs, &[last], false)?;
            let size = b.abs(u)?;
            let logs = b.log(size)?;
            vec![b.mul(of_u, sign)?, b.reduce(ReduceOp::Sum, logs, &[last], false)?]
        }
        _ => {
            let product = b.reduce(ReduceOp::Prod, u, &[last], false)?;
            vec![b.mul(product, sign)?]
        }
    };
    if !call.name.starts_with("onnx") {
        out.push(f.lu);
    }
    let mut out = out.into_iter().map(|x| b.convert(x, elem)).collect::<Result<Vec<Arg>>>()?;
    if !call.name.starts_with("onnx") {
        out.push(f.numbered(b)?);
    }
    Ok(out)
}

/// `X` of `A X = B` for a triangular `A`.
fn substitute(b: &mut Builder<'_>, a: Arg, x: Arg, lower: bool, unit: bool) -> Result<Arg> {
    let (of_a, of_x) = (b.shape(a), b.shape(x));
    let ([batch_a @ .., n, _], [batch_x @ .., _, count]) = (&of_a[..], &of_x[..]) else {
        return Err(Refusal::new("a matrix has two axes"));
    };
    let batch = b.broadcast_shape(&[batch_a.to_vec(), batch_x.to_vec()])?;
    let with = |m: &Ix, n: &Ix| [&batch[..], &[m.clone(), n.clone()]].concat();
    let (a, x) = (b.broadcast_to(a, &with(n, n))?, b.broadcast_to(x, &with(n, count))?);
    if n.is_const(0) || count.is_const(0) {
        return Ok(x);
    }
    let last = b.known_ints(Elem::I64, &[Ix::sub(n.clone(), Ix::Const(1))]);
    let start = if lower { int(0) } else { b.squeeze(last, &[0])? };
    let of = Rounds { rounds: n.clone(), conditional: false, carried: &[start, x], rows: &[], read: &[a], given: &[] };
    let results = b.repeat(&of, |b, state, _, read| {
        let ([k, x], [a]) = (state, read) else { return Err(Refusal::new("a loop lost its state")) };
        let (row, one) = (rows(b, n), Ix::Const(1));
        let mut found = pick(b, *x, [At::Of(*k), At::Own], [one.clone(), count.clone()])?;
        if !unit {
            let diagonal = pick(b, *a, [At::Of(*k), At::Of(*k)], [one.clone(), one.clone()])?;
            found = b.div(found, diagonal)?;
        }
        let factor = pick(b, *a, [At::Own, At::Of(*k)], [n.clone(), one])?;
        let product = b.mul(factor, found)?;
        let rest = b.sub(*x, product)?;
        let open = if lower { Predicate::GreaterThan } else { Predicate::LessThan };
        let (open, here) = (b.compare(open, row, *k)?, b.compare(Predicate::Equal, row, *k)?);
        let x = b.select(open, rest, *x)?;
        let x = b.select(here, found, x)?;
        Ok((vec![b.add(*k, int(if lower { 1 } else { -1 }))?, x], vec![]))
    })?;
    Ok(results[1])
}

/// `X` of `A X = B`, of the factors of `A`; `from` may have fewer batches than `B`.
fn solved(b: &mut Builder<'_>, lu: Arg, from: Arg, x: Arg) -> Result<Arg> {
    let (of_x, of_from) = (b.shape(x), b.shape(from));
    let (Some((n, [m, count])), Some(k)) =
        (of_x.split_last_chunk::<2>().map(|(n, l)| (n, l.clone())), of_from.len().checked_sub(2))
    else {
        return Err(Refusal::new("a matrix has two axes"));
    };
    let batch = b.broadcast_shape(&[n.to_vec(), of_from[..k].to_vec()])?;
    let with = |m: &Ix, n: &Ix| [&batch[..], &[m.clone(), n.clone()]].concat();
    let (x, from) = (b.broadcast_to(x, &with(&m, &count))?, b.broadcast_to(from, &with(&m, &Ix::Const(1)))?);
    let x = pick(b, x, [At::Of(from), At::Own], [m, count])?;
    let x = substitute(b, lu, x, true, true)?;
    substitute(b, lu, x, false, false)
}

/// `X` of `A^T X = B`, of the factors of `A`.
fn solved_transposed(b: &mut Builder<'_>, lu: Arg, from: Arg, x: Arg) -> Result<Arg> {
    let lu = transposed(b, lu)?;
    let x = substitute(b, lu, x, true, false)?;
    let x = substitute(b, lu, x, false, true)?;
    let shape = b.shape(x);
    let from = b.broadcast_to(from, &shape)?;
    let rank = shape.len();
    let coord = |d| if d == rank - 2 { Coord::Arg(1) } else { Coord::Ix(ir::axis(d)) };
    b.scatter(x, &[from], x, (0..rank).map(coord).collect(), ScatterOp::Set)
}

fn solve(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (a, elem, n) = square(b, call.arg(0)?)?;
    if call.name == "aten.linalg_inv_ex" {
        let f = lu(b, a, [n.clone(), n.clone()])?;
        let unit = unit_matrix(b, &n)?;
        let x = solved(b, f.lu, f.from, unit)?;
        return Ok(vec![b.convert(x, elem)?, f.info(b)?]);
    }
    let given = call.name == "aten.linalg_lu_solve";
    let left = call.flag("left", true)?;
    let x = call.arg(if given { 2 } else { 1 })?;
    let mut x = b.convert(x, F64)?;
    let (of_a, of_x) = (b.shape(a), b.shape(x));
    // As PyTorch tells vectors from matrices.
    let vector =
        !given && (of_x.len() == 1 || of_x.len() + 1 == of_a.len() && b.same_shape(&of_x, &of_a[..of_x.len()]));
    if vector {
        x = b.unsqueeze(x, &[of_x.len()])?;
    }
    if !left {
        x = transposed(b, x)?;
    }
    let mut results = vec![];
    let x = match given {
        true => {
            let from = exchanged(b, call.arg(1)?, &n)?;
            // X A = B is A^T X^T = B^T.
            match call.flag("adjoint", false)? == left {
                true => solved_transposed(b, a, from, x)?,
                false => solved(b, a, from, x)?,
            }
        }
        false => {
            let f = lu(b, a, [n.clone(), n])?;
            results = vec![b.convert(f.lu, elem)?, f.numbered(b)?, f.info(b)?];
            match left {
                true => solved(b, f.lu, f.from, x)?,
                false => solved_transposed(b, f.lu, f.from, x)?,
            }
        }
    };
    let x = if left { x } else { transposed(b, x)? };
    let rank = b.rank(x);
    let x = if vector { b.squeeze(x, &[rank - 1])? } else { x };
    results.insert(0, b.convert(x, elem)?);
    Ok(results)
}

/// Cholesky's factor, the lower one, and the number of the first pivot that is not positive, from 1.
fn cholesky(b: &mut Builder<'_>, a: Arg, n: &Ix) -> Result<(Arg, Arg)> {
    if n.is_const(0) {
        let shape = b.shape(a);
        let info = b.full(ir::int_scalar(Elem::I32, 0), Elem::I32, shape[..shape.len() - 2].to_vec());
        return Ok((a, info));
    }
    let of =
        Rounds { rounds: n.clone(), conditional: false, carried: &[int(0), a], rows: &[], read: &[], given: &[false] };
    let results = b.repeat(&of, |b, state, _, _| {
        let [k, a] = *state else { return Err(Refusal::new("a loop lost its state")) };
        let (row, column, one) = (rows(b, n), columns(b, n), Ix::Const(1));
        let pivot = pick(b, a, [At::Of(k), At::Of(k)], [one.clone(), one.clone()])?;
        let root = b.sqrt(pivot)?;
        let left = pick(b, a, [At::Own, At::Of(k)], [n.clone(), one])?;
        let l = b.div(left, root)?;
        let across = transposed(b, l)?;
        let below = b.compare(Predicate::GreaterThanOrEqual, row, k)?;
        let a = eliminated(b, a, [l, across], k, below, column)?;
        let positive = b.compare(Predicate::GreaterThan, pivot, ir::scalar(F64, 0.0))?;
        let bad = b.not(positive)?;
        let bad = scalars(b, bad)?;
        Ok((vec![b.add(k, int(1))?, a], vec![bad]))
    })?;
    let [_, l, bad] = results[..] else { return Err(Refusal::new("a loop lost its results")) };
    let bad = rounds_last(b, bad)?;
    Ok((half(b, l, [n.clone(), n.clone()], true, false)?, first(b, bad)?))
}

fn triangular(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    // The matrix comes second where a solution is asked for by an older name.
    let second = matches!(call.name, "aten.triangular_solve" | "aten.cholesky_solve");
    let (a, elem, n) = square(b, call.arg(usize::from(second))?)?;
    let upper = call.flag("upper", call.name == "aten.triangular_solve")?;
    match call.name {
        "aten.linalg_cholesky_ex" => {
            let a = if upper { transposed(b, a)? } else { a };
            let (l, info) = cholesky(b, a, &n)?;
            let l = if upper { transposed(b, l)? } else { l };
            Ok(vec![b.convert(l, elem)?, info])
        }
        "aten.cholesky_solve" | "aten.cholesky_inverse" => {
            let l = if upper { transposed(b, a)? } else { a };
            let x = match second {
                true => {
                    let x = call.arg(0)?;
                    b.convert(x, F64)?
                }
                false => unit_matrix(b, &n)?,
            };
            let x = substitute(b, l, x, true, false)?;
            let across = transposed(b, l)?;
            let x = substitute(b, across, x, false, false)?;
            Ok(vec![b.convert(x, elem)?])
        }
        _ => {
            let x = call.arg(usize::from(!second))?;
            let x = b.convert(x, F64)?;
            let unit = call.flag("unitriangular", false)?;
            let left = call.flag("left", true)?;
            // X A = B is A^T X^T = B^T.
            let across = call.flag("transpose", false)? || !left;
            let (system, lower) = if across { (transposed(b, a)?, upper) } else { (a, !upper) };
            let x = if left { x } else { transposed(b, x)? };
            let x = substitute(b, system, x, lower, unit)?;
            let x = if left { x } else { transposed(b, x)? };
            let mut out = vec![b.convert(x, elem)?];
            if second {
                out.push(b.convert(a, elem)?);
            }
            Ok(out)
        }
    }
}
