//! Random numbers that depend on a seed and a counter alone: the same for every grid and every machine.
//!
//! Source: Philox 4x32 with 10 rounds, from J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as
//! easy as 1, 2, 3", SC 2011. The numbers are those of the functions of these names in Python.

use super::builder::here;
use super::element::Integer;
use super::operators::{cos, log, maximum, select, sqrt, umulhi};
use super::shapes::zeros;
use super::tile::Tile;

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// Four words for a seed and a counter of four words.
fn philox(seed: u64, counter: [Tile<u32>; 4]) -> [Tile<u32>; 4] {
    let shape = counter.map(|c| here(|b| b.shape(c.id))).into_iter().max_by_key(Vec::len).unwrap_or_default();
    let [mut a, mut b, mut c, mut d] = counter.map(|c| here(|b| Tile::of(b.broadcast_to(c.id, &shape))));
    let [mut k0, mut k1] = [seed as u32, (seed >> 32) as u32];
    for _ in 0..ROUNDS {
        (a, b, c, d) = (
            umulhi(c, MULTIPLIERS[1]) ^ b ^ k0,
            c * MULTIPLIERS[1],
            umulhi(a, MULTIPLIERS[0]) ^ d ^ k1,
            a * MULTIPLIERS[0],
        );
        (k0, k1) = (k0.wrapping_add(WEYL[0]), k1.wrapping_add(WEYL[1]));
    }
    [a, b, c, d]
}

/// Four tiles of random words of the shape of `offset`, which counts the numbers drawn.
#[track_caller]
pub fn randint4x<T: Integer>(seed: u64, offset: Tile<T>) -> [Tile<u32>; 4] {
    let zero = || zeros::<u32>([]);
    let high = if T::TYPE.bits == 64 { (offset.to::<u64>() >> 32).to() } else { zero() };
    philox(seed, [offset.to(), high, zero(), zero()])
}
/// Random words of the shape of `offset`, which counts the numbers drawn.
#[track_caller]
pub fn randint<T: Integer>(seed: u64, offset: Tile<T>) -> Tile<u32> {
    randint4x(seed, offset)[0]
}

fn uniform(x: Tile<u32>) -> Tile<f32> {
    let x = x.to::<i32>();
    let negative = super::operators::less(x, 0);
    select::<i32, _, _>(negative, -x - 1, x).to::<f32>() * 4.656_612_7e-10
}
/// Random numbers, uniform in [0, 1), of the shape of `offset`.
#[track_caller]
pub fn rand<T: Integer>(seed: u64, offset: Tile<T>) -> Tile<f32> {
    uniform(randint(seed, offset))
}
/// Random numbers, normal with mean 0 and deviation 1, of the shape of `offset` (G. E. P. Box and M. E. Muller, 1958).
#[track_caller]
pub fn randn<T: Integer>(seed: u64, offset: Tile<T>) -> Tile<f32> {
    let [x, y, ..] = randint4x(seed, offset);
    let radius = sqrt(log(maximum(uniform(x), 1.0e-7)) * -2.0);
    let angle = uniform(y) * (2.0 * std::f32::consts::PI);
    radius * cos(angle)
}
