//! The neighbours and weights of resampling along one axis.
//!
//! In: how an axis is resampled ([`Kernel`]), its extents and a scale. Out: for each position of the result, which positions
//! of the operand count and with what weight.

/// For each position of the result along an axis, which positions of the operand count and with what weight: `count` of
/// them each.
#[derive(Clone, Debug, PartialEq)]
pub struct Taps {
    pub count: usize,
    pub index: Vec<i64>,
    pub weight: Vec<f64>,
    /// Positions whose result is the extrapolation value.
    pub outside: Vec<bool>,
}

/// How an axis is resampled.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub mode: Mode,
    pub coords: Coords,
    pub antialias: bool,
    pub exclude_outside: bool,
    /// The cubic's parameter.
    pub a: f64,
    /// Positions of nearest neighbours are computed in f32, as ONNX Runtime does: 1.5 / 0.6 - 0.5 is 2, and no less.
    pub single: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Nearest(Nearest),
    Linear,
    Cubic,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nearest {
    PreferFloor,
    PreferCeil,
    Floor,
    Ceil,
}

/// From a position of the result to one of the operand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Coords {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    /// As TensorFlow's nearest neighbours of old: `(o + 0.5) / scale`.
    TfHalfPixel,
    /// From `start` to `end`, fractions of the operand's extent.
    Crop(f64, f64),
}

impl Kernel {
    /// The weights of the neighbours at `floor(x) + first, ..` where `ratio` in 0..1 is the fraction of `x`.
    fn weights(&self, ratio: f64, scale: f64) -> (i64, Vec<f64>) {
        let shrink = if self.antialias { scale.min(1.0) } else { 1.0 };
        let cubic = |x: f64| {
            let (x, a) = (x.abs(), self.a);
            if x <= 1.0 {
                ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
            } else if x < 2.0 {
                ((x - 5.0) * x + 8.0) * x * a - 4.0 * a
            } else {
                0.0
            }
        };
        let (radius, f): (f64, &dyn Fn(f64) -> f64) = match self.mode {
            Mode::Nearest(n) => {
                let up = match n {
                    Nearest::PreferFloor => ratio > 0.5,
                    Nearest::PreferCeil => ratio >= 0.5,
                    Nearest::Floor => false,
                    Nearest::Ceil => ratio > 0.0,
                };
                return (up.into(), vec![1.0]);
            }
            Mode::Linear => (1.0, &|x: f64| (1.0 - x.abs()).max(0.0)),
            Mode::Cubic => (2.0, &cubic),
        };
        let first = (-radius / shrink).floor() as i64 + 1;
        let last = (radius / shrink).ceil() as i64;
        let mut weights: Vec<f64> = (first..=last).map(|i| f((i as f64 - ratio) * shrink)).collect();
        if self.antialias {
            let sum: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|w| *w /= sum);
        }
        (first, weights)
    }

    /// Bytes that [`Kernel::taps`] takes while it lists them, and that the tables made of them keep.
    pub fn listing(&self, out: i64, scale: f64) -> u64 {
        let shrink = if self.antialias { scale.min(1.0) } else { 1.0 };
        let width = match self.mode {
            Mode::Nearest(_) => 1.0,
            Mode::Linear => 2.0 / shrink + 2.0,
            Mode::Cubic => 4.0 / shrink + 2.0,
        };
        // Rounds towards the greatest where there are more than can be counted.
        (out.max(0) as f64 * (64.0 * width + 64.0)) as u64
    }

    /// Resampling `len` positions to `out`. `scale` may differ from their quotient, where the model gives it.
    pub fn taps(&self, len: i64, out: i64, scale: f64) -> Taps {
        let round = |x: f64| if self.single && matches!(self.mode, Mode::Nearest(_)) { f64::from(x as f32) } else { x };
        let scale = round(scale);
        let wide = scale * len as f64;
        let (n, mut rows) = (len as f64, vec![]);
        let mut outside = vec![];
        for o in 0..out {
            let o = o as f64;
            let x = match self.coords {
                Coords::HalfPixel => round((o + 0.5) / scale) - 0.5,
                Coords::HalfPixelSymmetric => n / 2.0 * (1.0 - out as f64 / wide) + (o + 0.5) / scale - 0.5,
                Coords::PytorchHalfPixel if wide == 1.0 => -0.5,
                Coords::PytorchHalfPixel => round((o + 0.5) / scale) - 0.5,
                Coords::AlignCorners if wide == 1.0 => 0.0,
                Coords::AlignCorners => o * (n - 1.0) / (wide - 1.0),
                Coords::Asymmetric => o / scale,
                Coords::TfHalfPixel => (o + 0.5) / scale,
                Coords::Crop(start, end) if wide == 1.0 => (start + end) * 0.5 * (n - 1.0),
                Coords::Crop(start, end) => start * (n - 1.0) + o * (end - start) * (n - 1.0) / (wide - 1.0),
            };
            let x = round(x);
            outside.push(matches!(self.coords, Coords::Crop(..)) && (x < 0.0 || x > n - 1.0));
            let floor = x.floor();
            let (first, weights) = self.weights(x - floor, scale);
            rows.push((floor as i64 + first, weights));
        }
        let count = rows.iter().map(|(_, w)| w.len()).max().unwrap_or(1);
        let (mut index, mut weight) = (vec![], vec![]);
        for (first, mut weights) in rows {
            weights.resize(count, 0.0);
            let at: Vec<i64> = (0..count as i64).map(|t| first + t).collect();
            if self.exclude_outside {
                for (w, i) in weights.iter_mut().zip(&at) {
                    if *i < 0 || *i >= len {
                        *w = 0.0;
                    }
                }
                let sum: f64 = weights.iter().sum();
                if sum != 0.0 {
                    weights.iter_mut().for_each(|w| *w /= sum);
                }
            }
            index.extend(at.iter().map(|i| (*i).clamp(0, (len - 1).max(0))));
            weight.extend(weights);
        }
        Taps { count, index, weight, outside }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(mode: Mode, coords: Coords) -> Kernel {
        Kernel { mode, coords, antialias: false, exclude_outside: false, a: -0.75, single: false }
    }

    /// Twice as many positions: they lie at -1/4, 1/4, 3/4, 5/4 of the operand's.
    #[test]
    fn linear_weights_are_distances() {
        let taps = kernel(Mode::Linear, Coords::HalfPixel).taps(2, 4, 2.0);
        assert_eq!(taps.count, 2);
        assert_eq!(taps.index, [0, 0, 0, 1, 0, 1, 1, 1]);
        assert_eq!(taps.weight, [0.25, 0.75, 0.75, 0.25, 0.25, 0.75, 0.75, 0.25]);
    }

    #[test]
    fn nearest_rounds_as_asked() {
        let index = |n, out, scale| kernel(Mode::Nearest(n), Coords::HalfPixel).taps(4, out, scale).index;
        // Half as many: between two each, at 1/2 and 5/2.
        assert_eq!(index(Nearest::PreferFloor, 2, 0.5), [0, 2]);
        assert_eq!(index(Nearest::PreferCeil, 2, 0.5), [1, 3]);
        assert_eq!(index(Nearest::Ceil, 2, 0.5), [1, 3]);
        assert_eq!(index(Nearest::Floor, 8, 2.0), [0, 0, 0, 1, 1, 2, 2, 3]);
    }

    /// Corners stay corners, and weights of a cubic sum to 1.
    #[test]
    fn aligned_corners_and_cubic_sums() {
        let taps = kernel(Mode::Linear, Coords::AlignCorners).taps(3, 5, 5.0 / 3.0);
        assert_eq!((taps.index[8], taps.weight[8]), (2, 1.0));
        let taps = kernel(Mode::Cubic, Coords::HalfPixel).taps(5, 8, 1.6);
        for row in taps.weight.chunks(4) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-15);
        }
    }

    #[test]
    fn a_crop_marks_what_lies_outside() {
        let taps = kernel(Mode::Linear, Coords::Crop(0.0, 1.5)).taps(3, 4, 4.0 / 3.0);
        assert_eq!(taps.outside, [false, false, false, true]);
    }
}
