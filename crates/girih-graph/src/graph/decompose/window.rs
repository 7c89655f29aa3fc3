//! Sliding windows over the spatial axes of a tensor: what convolutions and poolings have in common.
//!
//! In: `x [n, c, d1, .., ds]` and one [`Slide`] for each spatial axis. Out: how long the result's axes are, and maps that
//! read `x` at (output position, position in the window). A position in the padding reads a scalar.

use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{Arg, MapSource, axis};
use crate::index::{Cmp, Cond, Ix, Mask};

use super::Call;
use super::types::bounded;

/// How a window moves along one axis.
#[derive(Clone, Debug)]
pub struct Slide {
    /// Positions in the window.
    pub size: Ix,
    pub stride: i64,
    pub dilation: i64,
    /// Padding before and after.
    pub before: Ix,
    pub after: Ix,
}

impl Slide {
    /// From the first to the last position of a window, both counted.
    pub fn reach(&self) -> Ix {
        Ix::add(Ix::mul(Ix::sub(self.size.clone(), Ix::Const(1)), Ix::Const(self.dilation)), Ix::Const(1))
    }

    /// How many windows there are along an axis of `extent`. With `ceil` also one that begins inside and ends outside.
    pub fn count(&self, extent: &Ix, ceil: bool) -> Ix {
        let padded = Ix::add(Ix::add(extent.clone(), self.before.clone()), self.after.clone());
        let room = Ix::sub(padded, self.reach());
        let stride = Ix::Const(self.stride);
        let whole = Ix::add(
            if ceil { Ix::ceil_div(room, stride.clone()) } else { Ix::floor_div(room, stride.clone()) },
            Ix::Const(1),
        );
        let inside = Ix::add(extent.clone(), self.before.clone());
        let count = if ceil { Ix::min(whole, Ix::ceil_div(inside, stride)) } else { whole };
        Ix::max(count, Ix::Const(0))
    }

    /// The same, simplified. Refuses an axis that is known to be too short for a window.
    pub fn counted(&self, b: &Builder<'_>, extent: &Ix, ceil: bool) -> Result<Ix> {
        let padded = b.simplify(&Ix::add(Ix::add(extent.clone(), self.before.clone()), self.after.clone()));
        // A window that ends one stride outside gives no result, which is what the formula of ONNX says.
        let least = Ix::sub(self.reach(), Ix::Const(self.stride));
        if b.facts().decide(&Cond::new(padded.clone(), Cmp::Lt, least)) == Some(true) {
            let (window, padded) = (b.graph.ix_text(&b.simplify(&self.reach())), b.graph.ix_text(&padded));
            return Err(Refusal::new(format!(
                "a window over {window} positions does not fit an axis of {padded} with its padding"
            )));
        }
        Ok(b.simplify(&self.count(extent, ceil)))
    }

    /// Where window `at` begins in the tensor (negative in the padding).
    pub fn start(&self, at: Ix) -> Ix {
        Ix::sub(Ix::mul(at, Ix::Const(self.stride)), self.before.clone())
    }

    /// The place in the tensor of position `k` of window `at`.
    pub fn place(&self, at: Ix, k: Ix) -> Ix {
        Ix::add(self.start(at), Ix::mul(k, Ix::Const(self.dilation)))
    }

    /// How many positions of window `at` lie in `lo..hi`.
    pub fn inside(&self, at: Ix, lo: Ix, hi: Ix) -> Ix {
        let start = self.start(at);
        let (reach, step) = (self.reach(), Ix::Const(self.dilation));
        let to = Ix::max(Ix::min(Ix::sub(hi, start.clone()), reach), Ix::Const(0));
        let from = Ix::max(Ix::sub(lo, start), Ix::Const(0));
        Ix::max(Ix::sub(Ix::ceil_div(to, step.clone()), Ix::ceil_div(from, step)), Ix::Const(0))
    }
}

/// Attributes `strides`, `pads`, `dilations` and `auto_pad` as ONNX has them, for spatial axes of these extents.
pub fn onnx_slides(b: &Builder<'_>, call: &Call<'_>, extents: &[Ix], sizes: &[Ix]) -> Result<Vec<Slide>> {
    let n = extents.len();
    let list = |name: &str, count: usize, default: i64| -> Result<Vec<i64>> {
        let given = call.ints(name)?.filter(|l| !l.is_empty()).unwrap_or_else(|| vec![default; count]);
        bounded(name, &given)?;
        if given.len() == count {
            return Ok(given);
        }
        Err(Refusal::new(format!("attribute {name} has {} entries, but needs {count}", given.len())))
    };
    let (strides, dilations) = (list("strides", n, 1)?, list("dilations", n, 1)?);
    let pads = list("pads", 2 * n, 0)?;
    if sizes.len() != n {
        return Err(Refusal::new(format!(
            "a window over {} axes does not fit a tensor with {n} spatial axes",
            sizes.len()
        )));
    }
    if let Some(bad) = strides.iter().chain(&dilations).find(|s| **s < 1) {
        return Err(Refusal::new(format!("a stride or dilation must be 1 or more, not {bad}")));
    }
    let auto = call.text("auto_pad")?.unwrap_or("NOTSET");
    let mut out = vec![];
    for d in 0..n {
        let mut slide = Slide {
            size: sizes[d].clone(),
            stride: strides[d],
            dilation: dilations[d],
            before: Ix::Const(0),
            after: Ix::Const(0),
        };
        match auto {
            "NOTSET" | "" => {
                (slide.before, slide.after) = (Ix::Const(pads[d]), Ix::Const(pads[n + d]));
            }
            "VALID" => {}
            "SAME_UPPER" | "SAME_LOWER" => {
                let stride = Ix::Const(slide.stride);
                let windows = Ix::ceil_div(extents[d].clone(), stride.clone());
                let needed = Ix::add(Ix::mul(Ix::sub(windows, Ix::Const(1)), stride), slide.reach());
                let total = b.simplify(&Ix::max(Ix::sub(needed, extents[d].clone()), Ix::Const(0)));
                let less = Ix::floor_div(total.clone(), Ix::Const(2));
                let more = Ix::sub(total, less.clone());
                let (before, after) = if auto == "SAME_UPPER" { (less, more) } else { (more, less) };
                (slide.before, slide.after) = (b.simplify(&before), b.simplify(&after));
            }
            other => return Err(Refusal::new(format!("auto_pad is {other:?}, which ONNX does not define"))),
        }
        out.push(slide);
    }
    Ok(out)
}

/// The attribute `kernel_shape` of a pooling.
pub fn kernel_shape(call: &Call<'_>) -> Result<Vec<Ix>> {
    let sizes = call.ints("kernel_shape")?.unwrap_or_default();
    if sizes.is_empty() || sizes.iter().any(|s| *s < 1 || *s > 1 << 31) {
        return Err(Refusal::new("attribute kernel_shape must be a list of positive integers"));
    }
    Ok(sizes.into_iter().map(Ix::Const).collect())
}

/// `x [n, c, d..]` as `[n, c, windows.., positions..]`; `outside` (a scalar of its type) where a window leaves it.
pub fn windows(b: &mut Builder<'_>, x: Arg, slides: &[Slide], counts: &[Ix], outside: Arg) -> Arg {
    let from = b.shape(x);
    let lead = from.len() - slides.len();
    let mut shape: Vec<Ix> = from[..lead].to_vec();
    shape.extend(counts.iter().cloned());
    shape.extend(slides.iter().map(|s| s.size.clone()));
    let mut coords: Vec<Ix> = (0..lead).map(axis).collect();
    for (d, slide) in slides.iter().enumerate() {
        coords.push(slide.place(axis(lead + d), axis(lead + slides.len() + d)));
    }
    masked(b, "windows", x, shape, coords, outside)
}

/// `x[coords]` where the coordinates lie inside `x`, else the scalar `outside`.
pub fn masked(b: &mut Builder<'_>, name: &str, x: Arg, shape: Vec<Ix>, coords: Vec<Ix>, outside: Arg) -> Arg {
    let mut conds = vec![];
    for (c, extent) in coords.iter().zip(b.shape(x)) {
        conds.push(Cond::new(c.clone(), Cmp::Ge, Ix::Const(0)));
        conds.push(Cond::new(c.clone(), Cmp::Lt, extent));
    }
    masked_by(b, name, x, shape, coords, conds, outside)
}

/// `x[coords]` where conditions hold, else the scalar `outside`.
pub fn masked_by(
    b: &mut Builder<'_>,
    name: &str,
    x: Arg,
    shape: Vec<Ix>,
    coords: Vec<Ix>,
    conds: Vec<Cond>,
    outside: Arg,
) -> Arg {
    if conds.is_empty() {
        return b.map(name, x, shape, coords);
    }
    let inside = MapSource { arg: 0, coords, when: Mask { conds, vals: vec![] } };
    let otherwise = MapSource { arg: 1, coords: vec![], when: Mask::default() };
    b.map_sources(name, vec![x, outside], shape, vec![inside, otherwise])
}

/// The extents after the first two, which every operation on windows needs.
pub fn spatial(b: &Builder<'_>, x: Arg) -> Result<Vec<Ix>> {
    let shape = b.shape(x);
    match shape.get(2..) {
        Some(rest) if !rest.is_empty() => Ok(rest.to_vec()),
        _ => Err(Refusal::new(format!(
            "a tensor of shape {} has no spatial axes; [batch, channels, ..] is expected",
            b.shape_text(&shape)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slide(size: i64, stride: i64, dilation: i64, before: i64, after: i64) -> Slide {
        Slide { size: Ix::Const(size), stride, dilation, before: Ix::Const(before), after: Ix::Const(after) }
    }

    /// Counts worked by hand: where a window may begin.
    #[test]
    fn windows_are_counted() {
        let count = |s: &Slide, n: i64, ceil: bool| s.count(&Ix::Const(n), ceil).as_const();
        assert_eq!(count(&slide(3, 1, 1, 0, 0), 5, false), Some(3));
        assert_eq!(count(&slide(3, 2, 1, 1, 1), 32, false), Some(16));
        assert_eq!(count(&slide(3, 1, 2, 0, 0), 5, false), Some(1));
        // Begins at 0 and 2; with ceil at 4 too, though it ends at 6 of 5... and not where it would begin outside.
        assert_eq!(count(&slide(2, 2, 1, 0, 0), 5, true), Some(3));
        assert_eq!(count(&slide(1, 2, 1, 0, 1), 4, true), Some(2));
        assert_eq!(count(&slide(7, 1, 1, 0, 0), 3, false), Some(0));
    }

    /// An axis that is too short for a window is refused; one stride less gives no window, as ONNX counts them.
    #[test]
    fn short_axes_are_refused() {
        let mut graph = crate::graph::Graph::default();
        let origin = graph.add_origin("pool", "y", None);
        let b = Builder::new(&mut graph, origin);
        let counted = |s: &Slide, n: i64| s.counted(&b, &Ix::Const(n), false).map(|n| n.as_const());
        assert_eq!(counted(&slide(3, 2, 1, 1, 0), 1).ok(), Some(Some(0)));
        assert_eq!(counted(&slide(3, 1, 2, 1, 1), 3).ok(), Some(Some(1)));
        let refusal = counted(&slide(3, 1, 2, 1, 0), 2).err().map(|r| r.message);
        assert_eq!(refusal.as_deref(), Some("a window over 5 positions does not fit an axis of 3 with its padding"));
    }

    #[test]
    fn positions_inside_are_counted() {
        let inside = |s: &Slide, at: i64| s.inside(Ix::Const(at), Ix::Const(0), Ix::Const(4)).as_const();
        // Positions -1 0 1, 1 2 3, 3 4 5 of 0..4.
        let s = slide(3, 2, 1, 1, 2);
        assert_eq!([inside(&s, 0), inside(&s, 1), inside(&s, 2)], [Some(2), Some(3), Some(1)]);
        // With steps of two: -1 1 3, 1 3 5.
        let s = slide(3, 2, 2, 1, 2);
        assert_eq!([inside(&s, 0), inside(&s, 1)], [Some(2), Some(2)]);
    }
}
