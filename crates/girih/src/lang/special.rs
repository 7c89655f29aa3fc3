//! Functions made of others: the error function, elements chosen by a tile, memory of a block.
//!
//! The polynomials are minimax in the relative error, those of the Python package: `erf` of f32 is within 2 units in the last place.

use super::builder::{WRONG, here};
use super::element::{Constant, Elem, Float, Integer, Number, PtrMut};
use super::operators::{How, abs, choose, compare_ids, convert, exp, fma, greater, less, minimum, select};
use super::shapes::{full_like, widened};
use super::tile::Tile;

/// erf(x) = x + x P(x^2) for |x| up to 1; relative error 1.3e-9.
const NEAR: [f32; 7] =
    [0.128_379_17, -0.376_126_26, 0.112_835_854, -0.026_853_81, 0.005_188_327_7, -0.000_801_019_37, 7.853_861e-5];
/// erf(x) = 1 - exp(Q(x)) from 1 to 4, where f32 has reached 1; relative error 1.1e-9.
const FAR: [f32; 7] =
    [-0.000_341_523_6, -1.127_089_1, -0.638_144_85, -0.103_106_75, 0.021_838_062, -0.002_947_657_8, 0.000_186_379_14];

/// The polynomial at `x`, its constant term first, by Horner's rule.
fn polynomial(coefficients: &[f32], x: Tile<f32>) -> Tile<f32> {
    let mut rest = coefficients.iter().rev();
    let first = full_like(x, rest.next().copied().unwrap_or(0.0));
    rest.fold(first, |sum, c| fma(sum, x, *c))
}

/// The error function, of floats of 16 and 32 bits.
#[track_caller]
pub fn erf<T: Float<Wide = f32>>(x: Tile<T>) -> Tile<T> {
    let wide = x.to::<f32>();
    let size = abs(wide);
    let near = fma(wide, polynomial(&NEAR, wide * wide), wide);
    let far = 1.0 - exp(polynomial(&FAR, minimum(size, 4.0)));
    let far = select::<f32, _, _>(less(wide, 0.0), -far, far);
    select::<f32, _, _>(greater(size, 1.0), far, near).to()
}

/// Elements of a tile chosen along an axis by a tile of integers, which has its shape except for that dimension.
#[track_caller]
pub fn gather<T: Number, I: Integer>(source: Tile<T>, index: Tile<I>, axis: i32) -> Tile<T> {
    let picked = here(|b| {
        let axis = b.axis(source.id, axis)?;
        let (own, wanted) = (b.shape(source.id), b.shape(index.id));
        let same =
            own.len() == wanted.len() && own.iter().zip(&wanted).enumerate().all(|(i, (x, y))| i == axis || x == y);
        if index.id == WRONG || !same {
            let message =
                format!("{} cannot choose from {} along the axis {axis}", b.describe(index.id), b.describe(source.id));
            b.fail(message, None);
            return None;
        }
        // One of the elements is the one chosen: all others count as nothing.
        let with_one = |shape: &[i32], at: usize| {
            let mut s = shape.to_vec();
            s.insert(at, 1);
            s
        };
        let choices = b.reshape(source.id, &with_one(&own, axis));
        let index = convert(b, index.id, <i32 as Elem>::TYPE);
        let wanted = b.reshape(index, &with_one(&wanted, axis + 1));
        let n = own[axis];
        let numbers = b.compute(<i32 as Elem>::TYPE, &[n], vec![format!("iota : tile<{n}xi32>").into()]);
        let mut along = vec![1; own.len() + 1];
        along[axis + 1] = n;
        let numbers = b.reshape(numbers, &along);
        let chosen = compare_ids(b, How::Equal, wanted, numbers);
        let nothing = b.constant(T::ZERO, &[]);
        let picked = choose(b, chosen, choices, nothing);
        Some((widened::<T>(b, picked), axis))
    });
    match picked {
        Some((picked, axis)) => Tile::<T::Wide>::of(picked).sum(axis as i32 + 1).to(),
        None => Tile::of(WRONG),
    }
}

/// The address of `n` elements that belong to this block; their initial values are undefined.
#[track_caller]
pub fn shared<T: Constant>(n: i32) -> Tile<PtrMut<T>> {
    here(|b| {
        if n < 1 {
            return Tile::of(b.fail(format!("a block's memory must have at least one element, not {n}"), None));
        }
        let ty = <PtrMut<T> as Elem>::TYPE;
        Tile::of(b.compute(
            ty,
            &[],
            vec![format!("alloca num_elem = {n}, alignment = 64 : {}", ty.tile_ir(&[])).into()],
        ))
    })
}
