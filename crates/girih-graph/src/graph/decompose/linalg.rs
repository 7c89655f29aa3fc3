//! Systems of linear equations: factors of matrices, and what follows from them.
//!
//! Matrices are the last two axes, others are batches. A column is eliminated in each round of a loop, over all of the matrix, so
//! neither the number of kernels nor the size of code depends on how large it is. All is computed in f64.

use super::Call;
use super::expr::{Cx, Loop, Tensor, along};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::ir::{self, Coord, ReduceOp, ScatterOp};
use crate::index::Ix;

rules! {
    lu "The factors of a matrix with its rows in another order, by Gaussian elimination with partial pivoting (Golub and \
         Van Loan, Matrix Computations, algorithm 3.4.1): in each round the row with the greatest element of the column comes \
         to the diagonal.\n\n\
         `LU, pivots, info = linalg_lu_factor_ex(A)` --> `p = reduce argmax abs A[k.., k]`, the rows `k` and `p` of `A` exchanged, \
         `A = select(i > k and j > k, A - A[i, k]/A[k, k]*A[k, j], ..)`, in a `repeat`\n\n\
         Refuses factors without pivots." {
        "aten.linalg_lu_factor_ex" => |c| {
            let (a, elem, extents) = matrix(pivoted(c)?)?;
            let f = lu(a, extents)?;
            Ok::<_, Refusal>([f.lu.to(elem), f.numbered(), f.info()?])
        },
        "aten.linalg_lu" => |c| {
            let (a, elem, extents) = matrix(pivoted(c)?)?;
            let f = lu(a, extents.clone())?;
            unpacked(c, f.lu, f.from, elem, extents)
        },
        "aten.lu_unpack" => |c| {
            let (a, elem, extents) = matrix(pivoted(c)?)?;
            unpacked(c, a, exchanged(a, c.x(1))?, elem, extents)
        },
    }
    determinant "The product of the diagonal of U, or the sum of its logarithms, and the sign of the exchanges of rows.\n\n\
         `y = Det(A)` --> `y = reduce prod LU[i, i] * sign`" {
        "aten._linalg_det" => |c| determinant(c, product),
        "aten._linalg_slogdet" => |c| determinant(c, sign_and_logarithm),
        "onnx.Det" => |c| determinant(c, product).map(|all| all[0]),
    }
    solve "Both triangular systems after the factors; the inverse solves for the unit matrix.\n\n\
         `X = linalg_solve(A, B)` --> `X = U^-1 L^-1 B[permutation]`\n\n\
         A matrix that has no inverse gives what the division by zero does, and `info` names the pivot, as in PyTorch." {
        "aten._linalg_solve_ex" => solve,
        "aten.linalg_inv_ex" => |c| {
            let (a, elem, n) = square(c.x(0))?;
            let f = lu(a, [n.clone(), n.clone()])?;
            let x = solved(f.lu, f.from, unit_matrix(c.cx, &n))?;
            Ok::<_, Refusal>([x.to(elem), f.info()?])
        },
        "aten.linalg_lu_solve" => lu_solve,
    }
    triangular "Substitution, a row of the unknowns in each round; and Cholesky's factor, a column in each.\n\n\
         `X = linalg_solve_triangular(L, B, upper=False)` --> `x = B[k]/L[k, k]`, `B = select(i > k, B - L[i, k]*x, ..)`, in a `repeat`" {
        "aten.linalg_solve_triangular" => |c| {
            let (a, elem, _) = square(c.x(0))?;
            let upper = c.flag("upper", false)?;
            Ok::<_, Refusal>(triangular(c, a, upper, c.x(1))?.to(elem))
        },
        "aten.triangular_solve" => |c| {
            let (a, elem, _) = square(c.x(1))?;
            let upper = c.flag("upper", true)?;
            Ok::<_, Refusal>([triangular(c, a, upper, c.x(0))?.to(elem), a.to(elem)])
        },
        "aten.linalg_cholesky_ex" => |c| {
            let (a, elem, n) = square(c.x(0))?;
            let upper = c.flag("upper", false)?;
            let (l, info) = cholesky(if upper { a.transposed() } else { a }, &n)?;
            Ok::<_, Refusal>([if upper { l.transposed() } else { l }.to(elem), info])
        },
        "aten.cholesky_solve" => |c| {
            let (l, elem, _) = lower(c, c.x(1))?;
            Ok::<_, Refusal>(by_cholesky(l, c.x(0).to(F64))?.to(elem))
        },
        "aten.cholesky_inverse" => |c| {
            let (l, elem, n) = lower(c, c.x(0))?;
            Ok::<_, Refusal>(by_cholesky(l, unit_matrix(c.cx, &n))?.to(elem))
        },
    }
}

const F64: Elem = Elem::F64;

/// A coordinate of the last two axes.
#[derive(Clone, Copy)]
enum At<'g> {
    /// The axis of the result itself.
    Own,
    /// The element of a tensor of integers, which broadcasts to the result's shape.
    Of(Tensor<'g>),
}

/// The elements of a matrix at rows and columns, with as many of these.
fn pick<'g>(a: Tensor<'g>, [row, column]: [At<'g>; 2], [rows, columns]: [&Ix; 2]) -> Result<Tensor<'g>> {
    let mut shape = a.shape()?;
    let first = shape.len() - 2;
    shape[first] = rows.clone();
    shape[first + 1] = columns.clone();
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
    Ok(a.gather(&indices, coords, shape))
}

/// The number of each row, `[m, 1]`, or of each column, `[1, n]`.
fn rows<'g>(cx: &'g Cx<'g>, m: &Ix) -> Tensor<'g> {
    cx.index(ir::axis(0), Elem::I64, vec![m.clone(), Ix::Const(1)])
}

fn columns<'g>(cx: &'g Cx<'g>, n: &Ix) -> Tensor<'g> {
    cx.index(ir::axis(1), Elem::I64, vec![Ix::Const(1), n.clone()])
}

/// A matrix in f64, with its type as it came and its extents.
fn matrix(a: Tensor<'_>) -> Result<(Tensor<'_>, Elem, [Ix; 2])> {
    let a = a.floating();
    match &a.shape()?[..] {
        [.., m, n] => Ok((a.to(F64), a.elem(), [m.clone(), n.clone()])),
        _ => Err(Refusal::new(format!("a matrix has at least two axes, not {}", a.shape_text()))),
    }
}

/// A square matrix in f64, with its type as it came and its extent.
fn square(a: Tensor<'_>) -> Result<(Tensor<'_>, Elem, Ix)> {
    let (a, elem, [n, columns]) = matrix(a)?;
    if !a.cx.same(&n, &columns) {
        return Err(Refusal::new(format!("{} is not square", a.shape_text())));
    }
    Ok((a, elem, n))
}

/// The operand, whose factors have pivots.
fn pivoted<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    match c.flag("pivot", true)? {
        true => Ok(c.x(0)),
        false => Err(Refusal::new("factors without pivots are not supported")),
    }
}

/// 1 where two tensors are equal, 0 elsewhere.
fn ones<'g>(x: Tensor<'g>, y: Tensor<'g>) -> Tensor<'g> {
    x.equals(y).select(x.cx.number(F64, 1.0), 0.0)
}

fn unit_matrix<'g>(cx: &'g Cx<'g>, n: &Ix) -> Tensor<'g> {
    ones(rows(cx, n), columns(cx, n))
}

/// Which row each comes from when the rows `k` and `p` are exchanged.
fn exchange<'g>(row: Tensor<'g>, k: Tensor<'g>, p: Tensor<'g>) -> Tensor<'g> {
    let (is_k, is_p) = (row.equals(k), row.equals(p));
    is_k.select(p, is_p.select(k, row))
}

/// The rows that the rounds of a loop gave, `[rounds, ..]`, as `[.., rounds]`.
fn rounds_last(x: Tensor<'_>) -> Result<Tensor<'_>> {
    Ok(x.transpose(&(1..x.rank()?).chain([0]).collect::<Vec<_>>()))
}

/// A matrix after the elimination of the column `k`: of the rows that `below` says, that column is `factor`, and what stands right of
/// it is less its product with `top`.
fn eliminated<'g>(
    a: Tensor<'g>,
    [factor, top]: [Tensor<'g>; 2],
    k: Tensor<'g>,
    below: Tensor<'g>,
    column: Tensor<'g>,
) -> Tensor<'g> {
    let rest = a - factor * top;
    let (right, here) = (column.above(k), column.equals(k));
    let kept = here.select(factor, a);
    below.select(right.select(rest, kept), a)
}

/// `[.., 1, 1]` as `[..]`.
fn scalars(a: Tensor<'_>) -> Result<Tensor<'_>> {
    let rank = a.rank()?;
    Ok(a.squeeze(&[rank - 2, rank - 1]))
}

/// The factors of a matrix: L below the diagonal, whose own is 1, and U; which row of it each row was, `[.., m, 1]`; and of each round
/// the row that came to the diagonal, `[.., rounds]`.
struct Factors<'g> {
    lu: Tensor<'g>,
    from: Tensor<'g>,
    pivots: Tensor<'g>,
}

fn lu<'g>(a: Tensor<'g>, [m, n]: [Ix; 2]) -> Result<Factors<'g>> {
    let (mut shape, cx, one) = (a.shape()?, a.cx, &Ix::Const(1));
    let rank = shape.len();
    shape[rank - 1] = one.clone();
    let from = rows(cx, &m).broadcast_to(&shape);
    let rounds = cx.simplify(&Ix::min(m.clone(), n.clone()));
    if rounds.is_const(0) {
        let shape = [&shape[..rank - 2], &[rounds]].concat();
        return Ok(Factors { lu: a, from, pivots: cx.full(Elem::I64, 0.0, shape) });
    }
    let carried = [cx.int(0), a, from];
    let of = Loop { rounds, conditional: false, carried: &carried, rows: &[], read: &[], given: &[false] };
    let results = cx.repeat(&of, |cx, round| {
        let [k, a, from] = round.state()?;
        let (row, column) = (rows(cx, &m), columns(cx, &n));
        let size = pick(a, [At::Own, At::Of(k)], [&m, one])?.abs();
        let size = row.below(k).select(-1.0, size);
        let pivot = size.reduce(ReduceOp::ArgMax { last: false }, &[rank - 2], true);
        let source = exchange(row, k, pivot);
        let a = pick(a, [At::Of(source), At::Own], [&m, &n])?;
        let from = pick(from, [At::Of(source), At::Own], [&m, one])?;
        let diagonal = pick(a, [At::Of(k), At::Of(k)], [one, one])?;
        let left = pick(a, [At::Own, At::Of(k)], [&m, one])?;
        let top = pick(a, [At::Of(k), At::Own], [one, &n])?;
        // Below a pivot that is zero all are.
        let factor = left / diagonal.equals(0.0).select(1.0, diagonal);
        let a = eliminated(a, [factor, top], k, row.above(k), column);
        Ok((vec![k + 1, a, from], vec![scalars(pivot)?]))
    })?;
    let [_, lu, from, pivots] = results[..] else { return Err(Refusal::new("a loop lost its results")) };
    Ok(Factors { lu, from, pivots: rounds_last(pivots)? })
}

impl<'g> Factors<'g> {
    /// As LAPACK counts them, from 1.
    fn numbered(&self) -> Tensor<'g> {
        (self.pivots + 1).to(Elem::I32)
    }
    /// The number of the first pivot that is zero, from 1; 0 where there is none.
    fn info(&self) -> Result<Tensor<'g>> {
        first(diagonal(self.lu)?.equals(0.0))
    }
}

/// The place of the first that is true along the last axis, from 1, as i32; 0 where there is none.
fn first(bad: Tensor<'_>) -> Result<Tensor<'_>> {
    let shape = bad.shape()?;
    let last = shape.len() - 1;
    let most = i64::from(i32::MAX);
    let place = bad.cx.index(Ix::add(ir::axis(last), Ix::Const(1)), Elem::I64, shape);
    let least = bad.select(place, most).reduce(ReduceOp::Min, &[last], false);
    Ok(least.at_least(most).select(0, least).to(Elem::I32))
}

/// The diagonal, `[.., k]`.
fn diagonal(a: Tensor<'_>) -> Result<Tensor<'_>> {
    let mut shape = a.shape()?;
    let (Some(n), Some(m)) = (shape.pop(), shape.pop()) else { return Err(Refusal::new("a matrix has two axes")) };
    let d = shape.len();
    shape.push(a.cx.simplify(&Ix::min(m, n)));
    Ok(a.map("diagonal", shape, (0..d).chain([d, d]).map(ir::axis).collect()))
}

/// The part of a matrix on one side of the diagonal, which is 1 or the matrix's own.
fn half<'g>(a: Tensor<'g>, [m, n]: [&Ix; 2], lower: bool, unit: bool) -> Result<Tensor<'g>> {
    let a = pick(a, [At::Own, At::Own], [m, n])?;
    let (row, column) = (rows(a.cx, m), columns(a.cx, n));
    let inside = match (lower, unit) {
        (true, true) => row.above(column),
        (true, false) => row.at_least(column),
        (false, true) => row.below(column),
        (false, false) => row.at_most(column),
    };
    let kept = inside.select(a, 0.0);
    Ok(if unit { row.equals(column).select(1.0, kept) } else { kept })
}

/// Which row of the factors `[.., m, n]` each was, after the exchanges of LAPACK's pivots `[.., min(m, n)]`: `[.., m, 1]`.
fn exchanged<'g>(factors: Tensor<'g>, pivots: Tensor<'g>) -> Result<Tensor<'g>> {
    let mut shape = factors.shape()?;
    let (Some(n), Some(m)) = (shape.pop(), shape.pop()) else { return Err(Refusal::new("a matrix has two axes")) };
    shape.push(factors.cx.simplify(&Ix::min(m.clone(), n)));
    let (pivots, m, one) = (pivots.of_shape("the tensor of pivots", &shape)?.to(Elem::I64) - 1, &m, &Ix::Const(1));
    let last = shape.len() - 1;
    let by_round = pivots.transpose(&[last].into_iter().chain(0..last).collect::<Vec<_>>());
    let rounds = std::mem::replace(&mut shape[last], m.clone());
    shape.push(one.clone());
    let start = rows(pivots.cx, m).broadcast_to(&shape);
    if rounds.is_const(0) {
        return Ok(start);
    }
    let (carried, each) = ([pivots.cx.int(0), start], [(by_round, false)]);
    let of = Loop { rounds, conditional: false, carried: &carried, rows: &each, read: &[], given: &[] };
    let results = pivots.cx.repeat(&of, |cx, round| {
        let ([k, from], [pivot]) = (round.state()?, &round.rows[..]) else {
            return Err(Refusal::new("a loop lost its state"));
        };
        let rank = pivot.rank()?;
        let pivot = pivot.unsqueeze(&[rank, rank + 1]);
        let source = exchange(rows(cx, m), k, pivot);
        let from = pick(from, [At::Of(source), At::Own], [m, one])?;
        Ok((vec![k + 1, from], vec![]))
    })?;
    Ok(results[1])
}

/// The matrix that brings rows back to where they were, L and U.
fn unpacked<'g>(
    c: &Call<'g>,
    lu: Tensor<'g>,
    from: Tensor<'g>,
    elem: Elem,
    [m, n]: [Ix; 2],
) -> Result<[Tensor<'g>; 3]> {
    let k = c.cx.simplify(&Ix::min(m.clone(), n.clone()));
    let from = from.transposed();
    let p = ones(rows(c.cx, &m), from);
    let (l, u) = (half(lu, [&m, &k], true, true)?, half(lu, [&k, &n], false, false)?);
    let empty = || c.cx.full(elem, 0.0, vec![Ix::Const(0)]);
    let (data, pivots) = (c.flag("unpack_data", true)?, c.flag("unpack_pivots", true)?);
    let p = if pivots { p.to(elem) } else { empty() };
    Ok(if data { [p, l.to(elem), u.to(elem)] } else { [p, empty(), empty()] })
}

/// The results of `f` on the diagonal of U and the sign of the exchanges, then the factors and the pivots.
fn determinant<'g>(c: &Call<'g>, f: fn(Tensor<'g>, Tensor<'g>, usize) -> Vec<Tensor<'g>>) -> Result<Vec<Tensor<'g>>> {
    let (a, elem, n) = square(c.x(0))?;
    // PyTorch factors the transposed one where its memory is in rows.
    let factors = lu(a.transposed(), [n.clone(), n])?;
    let u = diagonal(factors.lu)?;
    let shape = factors.pivots.shape()?;
    let last = shape.len() - 1;
    let own = c.cx.index(ir::axis(last), Elem::I64, shape);
    let signs = factors.pivots.differs(own).select(c.cx.number(F64, -1.0), 1.0);
    let sign = signs.reduce(ReduceOp::Prod, &[last], false);
    let mut out = f(u, sign, last);
    let own = !c.name.starts_with("onnx");
    out.extend(own.then_some(factors.lu));
    let mut out: Vec<Tensor<'g>> = out.into_iter().map(|x| x.to(elem)).collect();
    out.extend(own.then(|| factors.numbered()));
    Ok(out)
}

fn product<'g>(u: Tensor<'g>, sign: Tensor<'g>, last: usize) -> Vec<Tensor<'g>> {
    vec![u.reduce(ReduceOp::Prod, &[last], false) * sign]
}

fn sign_and_logarithm<'g>(u: Tensor<'g>, sign: Tensor<'g>, last: usize) -> Vec<Tensor<'g>> {
    let (above, below) = (u.above(0.0), u.below(0.0));
    let of_u = above.select(1.0, below.select(-1.0, u)).reduce(ReduceOp::Prod, &[last], false);
    let logs = u.abs().log();
    vec![of_u * sign, logs.sum(&[last], false)]
}

/// `X` of `A X = B` for a triangular `A`.
fn substitute<'g>(a: Tensor<'g>, x: Tensor<'g>, lower: bool, unit: bool) -> Result<Tensor<'g>> {
    let (of_a, of_x, cx, one) = (a.shape()?, x.shape()?, a.cx, &Ix::Const(1));
    let ([batch_a @ .., n, _], [batch_x @ .., _, count]) = (&of_a[..], &of_x[..]) else {
        return Err(Refusal::new("a matrix has two axes"));
    };
    let batch = cx.broadcast_shape(&[batch_a.to_vec(), batch_x.to_vec()])?;
    let with = |m: &Ix, n: &Ix| [&batch[..], &[m.clone(), n.clone()]].concat();
    let (a, x) = (a.broadcast_to(&with(n, n)), x.broadcast_to(&with(n, count)));
    if n.is_const(0) || count.is_const(0) {
        return Ok(x);
    }
    let last = cx.known_ints(Elem::I64, &[Ix::sub(n.clone(), Ix::Const(1))]);
    let start = if lower { cx.int(0) } else { last.squeeze(&[0]) };
    let (carried, read) = ([start, x], [a]);
    let of = Loop { rounds: n.clone(), conditional: false, carried: &carried, rows: &[], read: &read, given: &[] };
    let results = cx.repeat(&of, |cx, round| {
        let ([k, x], [a]) = (round.state()?, &round.read[..]) else {
            return Err(Refusal::new("a loop lost its state"));
        };
        let row = rows(cx, n);
        let mut found = pick(x, [At::Of(k), At::Own], [one, count])?;
        if !unit {
            found = found / pick(*a, [At::Of(k), At::Of(k)], [one, one])?;
        }
        let rest = x - pick(*a, [At::Own, At::Of(k)], [n, one])? * found;
        let (open, here) = (if lower { row.above(k) } else { row.below(k) }, row.equals(k));
        let x = here.select(found, open.select(rest, x));
        Ok((vec![k + if lower { 1 } else { -1 }, x], vec![]))
    })?;
    Ok(results[1])
}

/// `X` of `A X = B`, of the factors of `A`; `from` may have fewer batches than `B`.
fn solved<'g>(lu: Tensor<'g>, from: Tensor<'g>, x: Tensor<'g>) -> Result<Tensor<'g>> {
    let (of_x, of_from) = (x.shape()?, from.shape()?);
    let (Some((n, [m, count])), Some(k)) = (of_x.split_last_chunk::<2>(), of_from.len().checked_sub(2)) else {
        return Err(Refusal::new("a matrix has two axes"));
    };
    let batch = x.cx.broadcast_shape(&[n.to_vec(), of_from[..k].to_vec()])?;
    let with = |m: &Ix, n: &Ix| [&batch[..], &[m.clone(), n.clone()]].concat();
    let (x, from) = (x.broadcast_to(&with(m, count)), from.broadcast_to(&with(m, &Ix::Const(1))));
    let x = substitute(lu, pick(x, [At::Of(from), At::Own], [m, count])?, true, true)?;
    substitute(lu, x, false, false)
}

/// `X` of `A^T X = B`, of the factors of `A`.
fn solved_transposed<'g>(lu: Tensor<'g>, from: Tensor<'g>, x: Tensor<'g>) -> Result<Tensor<'g>> {
    let lu = lu.transposed();
    let x = substitute(lu, substitute(lu, x, true, false)?, false, true)?;
    let shape = x.shape()?;
    let from = from.broadcast_to(&shape);
    Ok(x.scatter(&[from], x, along(shape.len() - 2, shape.len()), ScatterOp::Set))
}

/// `X` of `A X = B`, or of `X A = B`, then the factors of `A`.
fn solve<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 4]> {
    let (a, elem, n) = square(c.x(0))?;
    let left = c.flag("left", true)?;
    let x = c.x(1).to(F64);
    let (of_a, of_x) = (a.shape()?, x.shape()?);
    // As PyTorch tells vectors from matrices.
    let vector = of_x.len() == 1 || of_x.len() + 1 == of_a.len() && c.cx.same_shape(&of_x, &of_a[..of_x.len()]);
    let x = if vector { x.unsqueeze(&[of_x.len()]) } else { x };
    let turned = |x: Tensor<'g>| if left { x } else { x.transposed() };
    let x = turned(x);
    let f = lu(a, [n.clone(), n])?;
    let (factors, pivots, info) = (f.lu.to(elem), f.numbered(), f.info()?);
    // X A = B is A^T X^T = B^T.
    let x = turned(if left { solved(f.lu, f.from, x)? } else { solved_transposed(f.lu, f.from, x)? });
    let x = if vector { x.squeeze(&[x.rank()? - 1]) } else { x };
    Ok([x.to(elem), factors, pivots, info])
}

/// `(lu, pivots, B)`
fn lu_solve<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (a, elem, _) = square(c.x(0))?;
    let left = c.flag("left", true)?;
    let turned = |x: Tensor<'g>| if left { x } else { x.transposed() };
    let x = turned(c.x(2).to(F64));
    let from = exchanged(a, c.x(1))?;
    // X A = B is A^T X^T = B^T.
    let x = match c.flag("adjoint", false)? == left {
        true => solved_transposed(a, from, x)?,
        false => solved(a, from, x)?,
    };
    Ok(turned(x).to(elem))
}

/// Cholesky's factor, the lower one, and the number of the first pivot that is not positive, from 1.
fn cholesky<'g>(a: Tensor<'g>, n: &Ix) -> Result<(Tensor<'g>, Tensor<'g>)> {
    let (cx, one) = (a.cx, &Ix::Const(1));
    if n.is_const(0) {
        let shape = a.shape()?;
        return Ok((a, cx.full(Elem::I32, 0.0, shape[..shape.len() - 2].to_vec())));
    }
    let carried = [cx.int(0), a];
    let of = Loop { rounds: n.clone(), conditional: false, carried: &carried, rows: &[], read: &[], given: &[false] };
    let results = cx.repeat(&of, |cx, round| {
        let [k, a] = round.state()?;
        let (row, column) = (rows(cx, n), columns(cx, n));
        let pivot = pick(a, [At::Of(k), At::Of(k)], [one, one])?;
        let root = pivot.sqrt();
        let l = pick(a, [At::Own, At::Of(k)], [n, one])? / root;
        let across = l.transposed();
        let a = eliminated(a, [l, across], k, row.at_least(k), column);
        let bad = scalars(!pivot.above(0.0))?;
        Ok((vec![k + 1, a], vec![bad]))
    })?;
    let [_, l, bad] = results[..] else { return Err(Refusal::new("a loop lost its results")) };
    let bad = rounds_last(bad)?;
    Ok((half(l, [n, n], true, false)?, first(bad)?))
}

/// Cholesky's factor, the lower one, of one that may be the upper.
fn lower<'g>(c: &Call<'g>, a: Tensor<'g>) -> Result<(Tensor<'g>, Elem, Ix)> {
    let (a, elem, n) = square(a)?;
    Ok((if c.flag("upper", false)? { a.transposed() } else { a }, elem, n))
}

/// `X` of `L L^T X = B`.
fn by_cholesky<'g>(l: Tensor<'g>, x: Tensor<'g>) -> Result<Tensor<'g>> {
    let x = substitute(l, x, true, false)?;
    substitute(l.transposed(), x, false, false)
}

/// `X` of `A X = B`, or of `X A = B`, for a triangular `A` that may be transposed.
fn triangular<'g>(c: &Call<'g>, a: Tensor<'g>, upper: bool, x: Tensor<'g>) -> Result<Tensor<'g>> {
    let x = x.to(F64);
    let unit = c.flag("unitriangular", false)?;
    let left = c.flag("left", true)?;
    let turned = |x: Tensor<'g>| if left { x } else { x.transposed() };
    // X A = B is A^T X^T = B^T.
    let (system, lower) = match c.flag("transpose", false)? || !left {
        true => (a.transposed(), upper),
        false => (a, !upper),
    };
    Ok(turned(substitute(system, turned(x), lower, unit)?))
}
