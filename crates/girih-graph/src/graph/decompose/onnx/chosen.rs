//! Operators of ONNX whose number of results depends on the data: computed while the model is compiled, from constants.

use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::{Call, normal_axis, old};
use crate::graph::ir::{self, Arg, Coord};
use crate::index::Ix;

rules! {
    onnx_non_max_suppression "Boxes by falling score, without those that overlap a better one; boxes and scores are constants.\n\n\
         `y = NonMaxSuppression(boxes, scores)` --> `y = constant [[batch, class, box], ..]`" {
        "onnx.NonMaxSuppression" => old(non_max_suppression),
    }
    onnx_unique "The distinct elements or slices of a constant.\n\n\
         `y, first, inverse, counts = Unique(x)` --> `y = gather x[first]`, and constants" {
        "onnx.Unique" => old(unique),
    }
}

/// The most elements that are compared with one another.
const MOST: usize = 4096;

fn unknown(what: &str) -> Refusal {
    Refusal::new(format!("how many {what} it gives depends on data, which must be known when the model is compiled"))
}

/// The extents and the numbers of a constant.
fn known(b: &Builder<'_>, x: Arg, what: &str) -> Result<(Vec<usize>, Vec<f64>)> {
    let shape: Option<Vec<usize>> =
        b.shape(x).iter().map(|d| d.as_const().and_then(|d| usize::try_from(d).ok())).collect();
    let numbers = b.floats(x).zip(shape).filter(|(all, shape)| all.len() == shape.iter().product::<usize>());
    numbers.map(|(all, shape)| (shape, all)).ok_or_else(|| unknown(what))
}

/// A number that an operand of one element holds.
fn one(b: &Builder<'_>, call: &Call<'_>, i: usize, default: f64) -> Result<f64> {
    let Some(x) = call.opt(i) else { return Ok(default) };
    known(b, x, "boxes")?.1.first().copied().ok_or_else(|| Refusal::new(format!("operand {i} is empty")))
}

/// The corners `[y1, x1, y2, x2]` of a box, the lower ones first.
fn corners(of: &[f64], centre: bool) -> [f32; 4] {
    let f = |i: usize| of.get(i).copied().unwrap_or(0.0) as f32;
    if centre {
        let (x, y, w, h) = (f(0), f(1), f(2), f(3));
        return [y - h / 2.0, x - w / 2.0, y + h / 2.0, x + w / 2.0];
    }
    [f(0).min(f(2)), f(1).min(f(3)), f(0).max(f(2)), f(1).max(f(3))]
}

/// The part of their union that two boxes share.
fn overlap(a: &[f32; 4], b: &[f32; 4]) -> f32 {
    let side = |low: usize, high: usize| (a[high].min(b[high]) - a[low].max(b[low])).max(0.0);
    let area = |of: &[f32; 4]| (of[2] - of[0]) * (of[3] - of[1]);
    let shared = side(0, 2) * side(1, 3);
    let all = area(a) + area(b) - shared;
    if area(a) <= 0.0 || area(b) <= 0.0 || all <= 0.0 { 0.0 } else { shared / all }
}

/// `(boxes [b, n, 4], scores [b, c, n], most?, overlap?, score?)`
fn non_max_suppression(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (of, boxes) = known(b, call.arg(0)?, "boxes")?;
    let (by, scores) = known(b, call.arg(1)?, "boxes")?;
    let (&[batches, n, 4], &[same, classes, count]) = (&of[..], &by[..]) else {
        return Err(Refusal::new("boxes must be [batch, count, 4] and scores [batch, classes, count]"));
    };
    if batches != same || n != count {
        return Err(Refusal::new(format!("{batches} times {n} boxes do not fit {same} times {count} scores")));
    }
    if n > MOST {
        return Err(Refusal::new(format!("more than {MOST} boxes are not supported")));
    }
    let most = one(b, call, 2, 0.0)?.max(0.0) as usize;
    let limit = one(b, call, 3, 0.0)? as f32;
    let least = call.opt(4).map(|_| one(b, call, 4, 0.0)).transpose()?.map(|s| s as f32);
    let centre = call.flag("center_point_box", false)?;
    let mut chosen = vec![];
    for batch in 0..batches {
        let all: Vec<[f32; 4]> = (0..n).map(|i| corners(&boxes[(batch * n + i) * 4..][..4], centre)).collect();
        for class in 0..classes {
            let score = |i: usize| scores[(batch * classes + class) * n + i] as f32;
            let mut order: Vec<usize> = (0..n).filter(|i| least.is_none_or(|least| score(*i) > least)).collect();
            order.sort_by(|i, j| score(*j).total_cmp(&score(*i)));
            let mut kept: Vec<usize> = vec![];
            for i in order {
                if kept.len() >= most {
                    break;
                }
                if kept.iter().all(|k| overlap(&all[i], &all[*k]) <= limit) {
                    kept.push(i);
                }
            }
            chosen.extend(kept.into_iter().flat_map(|i| [batch as i64, class as i64, i as i64]));
        }
    }
    Ok(vec![b.int_constant(Elem::I64, &[chosen.len() as u64 / 3, 3], &chosen)])
}

/// `x` to `(y, first, inverse, counts)`
fn unique(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut x = call.arg(0)?;
    let axis = match call.int_of("axis")? {
        Some(axis) => normal_axis(axis, b.rank(x))?,
        None => {
            let n = b.numel(&b.shape(x));
            x = b.reshape(x, &[n])?;
            0
        }
    };
    let shape: Option<Vec<usize>> =
        b.shape(x).iter().map(|d| d.as_const().and_then(|d| usize::try_from(d).ok())).collect();
    let whole = b.ints(x).and_then(|list| list.iter().map(|i| i.as_const().map(Number::Whole)).collect());
    let numbers: Option<Vec<Number>> = whole.or_else(|| Some(b.floats(x)?.into_iter().map(Number::Float).collect()));
    let (Some(shape), Some(numbers)) = (shape, numbers) else { return Err(unknown("elements")) };
    if numbers.len() > MOST || shape.iter().product::<usize>() != numbers.len() {
        return Err(Refusal::new(format!("more than {MOST} elements are not supported")));
    }
    let count = shape.get(axis).copied().unwrap_or(1);
    let inner: usize = shape.get(axis + 1..).unwrap_or_default().iter().product();
    let slice = |at: usize| -> Vec<Number> {
        let of = |(i, _): &(usize, &Number)| i / inner.max(1) % count.max(1) == at;
        numbers.iter().enumerate().filter(of).map(|(_, x)| *x).collect()
    };
    let slices: Vec<Vec<Number>> = (0..count).map(slice).collect();
    let mut first: Vec<usize> = vec![];
    for at in 0..count {
        if !first.iter().any(|f| slices[*f] == slices[at]) {
            first.push(at);
        }
    }
    if call.flag("sorted", true)? {
        first.sort_by(|i, j| {
            slices[*i].iter().zip(&slices[*j]).map(|(a, b)| a.order(b)).find(|o| o.is_ne()).unwrap_or(i.cmp(j))
        });
    }
    let place = |at: &Vec<Number>| first.iter().position(|f| slices[*f] == *at).unwrap_or(0) as i64;
    let inverse: Vec<i64> = slices.iter().map(place).collect();
    let counts: Vec<i64> =
        (0..first.len() as i64).map(|i| inverse.iter().filter(|p| **p == i).count() as i64).collect();
    let places: Vec<i64> = first.iter().map(|f| *f as i64).collect();
    let constant = |b: &mut Builder<'_>, list: &[i64]| b.int_constant(Elem::I64, &[list.len() as u64], list);
    let index = constant(b, &places);
    let mut out = b.shape(x);
    let rank = out.len();
    out[axis] = Ix::Const(places.len() as i64);
    let wide = b.unsqueeze(index, &(1..rank - axis).collect::<Vec<_>>())?;
    let coords = (0..rank).map(|d| if d == axis { Coord::Arg(1) } else { Coord::Ix(ir::axis(d)) }).collect();
    let y = b.gather(x, &[wide], coords, out)?;
    let (inverse, counts) = (constant(b, &inverse), constant(b, &counts));
    Ok(vec![y, index, inverse, counts])
}

#[derive(Clone, Copy, Debug)]
enum Number {
    Whole(i64),
    Float(f64),
}

impl Number {
    fn order(&self, other: &Number) -> std::cmp::Ordering {
        match (self, other) {
            (Number::Whole(a), Number::Whole(b)) => a.cmp(b),
            (Number::Float(a), Number::Float(b)) => a.partial_cmp(b).unwrap_or(a.is_nan().cmp(&b.is_nan())),
            _ => std::cmp::Ordering::Equal,
        }
    }
}

impl PartialEq for Number {
    /// NaNs are alike.
    fn eq(&self, other: &Number) -> bool {
        self.order(other).is_eq()
    }
}
