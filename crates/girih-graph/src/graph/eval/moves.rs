//! Gather and scatter: elements at coordinates that are given by data.

use super::map::{at, axis_facts, by_axis, every_position, placed};
use super::tensor::{Data, Rows, View, row_major};
use crate::graph::Elem;
use crate::graph::build::int_of;
use crate::graph::ir::{Coord, ScatterOp};
use crate::index::Ix;
use crate::num::eval;

/// A coordinate of an access.
enum Coordinate<'a> {
    /// A constant and tables by axis, which are added.
    Tables(i64, Vec<(usize, Vec<i64>)>),
    Expression(Ix),
    /// The element of an index tensor.
    Element(&'a View),
}

fn coordinates<'a>(
    coords: &[Coord],
    args: &'a [View],
    symbols: &[i64],
    shape: &[usize],
) -> Option<Vec<Coordinate<'a>>> {
    let facts = axis_facts(shape);
    let one = |c: &Coord| match c {
        Coord::Arg(a) => Some(Coordinate::Element(args.get(*a as usize)?)),
        Coord::Ix(ix) => {
            let ix = placed(ix, symbols, &facts);
            Some(match by_axis(&ix, shape) {
                Some((base, tables)) => Coordinate::Tables(base, tables),
                None => Coordinate::Expression(ix),
            })
        }
    };
    coords.iter().map(one).collect()
}

/// The place in the accessed tensor of a position of the result or the updates.
fn find(coordinates: &[Coordinate<'_>], extents: &[usize], strides: &[i64], pos: &[usize]) -> Result<i64, String> {
    let mut address = 0;
    for (axis, ((coordinate, &extent), stride)) in coordinates.iter().zip(extents).zip(strides).enumerate() {
        let c = match coordinate {
            Coordinate::Tables(base, tables) => {
                let part = |(d, t): &(usize, Vec<i64>)| pos.get(*d).and_then(|p| t.get(*p)).copied().unwrap_or(0);
                tables.iter().map(part).fold(*base, i64::wrapping_add)
            }
            Coordinate::Expression(ix) => at(ix, pos),
            Coordinate::Element(v) => int_of(v.elem, v.data.bits(v.at(pos))),
        };
        if c < 0 || c >= extent as i64 {
            return Err(format!("index {c} at {pos:?} is outside axis {axis}, whose extent is {extent}"));
        }
        address += stride * c;
    }
    Ok(address)
}

/// See `Op::Gather`; `shape` is the result's.
pub(super) fn gather(
    coords: &[Coord],
    args: &[View],
    symbols: &[i64],
    shape: &[usize],
    elem: Elem,
) -> Result<Data, String> {
    let bad = || "it does not have the operands of a gather".to_string();
    let from = args.first().ok_or_else(bad)?;
    let coordinates = coordinates(coords, args, symbols, shape).ok_or_else(bad)?;
    let mut out = Vec::with_capacity(shape.iter().product());
    every_position(shape, &mut |pos| {
        let address = from.offset + find(&coordinates, &from.shape, &from.strides, pos)?;
        out.push(from.data.bits(address as usize));
        Ok(())
    })?;
    Ok(Data::of_bits(elem.dtype, out))
}

/// The bits of every element of a view, in order.
pub(super) fn all_bits(x: &View) -> Vec<u64> {
    let mut out = Vec::with_capacity(x.len());
    Rows::new(&x.shape, &[x]).each_element(|at| out.push(x.data.bits(at as usize)));
    out
}

/// See `Op::Scatter`; `base` holds the elements of the first operand, in order.
pub(super) fn scatter(
    coords: &[Coord],
    op: ScatterOp,
    args: &[View],
    symbols: &[i64],
    mut base: Vec<u64>,
) -> Result<Data, String> {
    let bad = || "it does not have the operands of a scatter".to_string();
    let (Some(to), Some(updates)) = (args.first(), args.last()) else { return Err(bad()) };
    let elem = to.elem;
    let coordinates = coordinates(coords, args, symbols, &updates.shape).ok_or_else(bad)?;
    let strides = row_major(&to.shape);
    let combine = op.combines(elem);
    every_position(&updates.shape, &mut |pos| {
        let address = find(&coordinates, &to.shape, &strides, pos)?;
        let new = updates.data.bits(updates.at(pos));
        if let Some(slot) = base.get_mut(address as usize) {
            *slot = combine.map_or(new, |op| eval::apply(op, elem.dtype, &[*slot, new]));
        }
        Ok(())
    })?;
    Ok(Data::of_bits(elem.dtype, base))
}
