//! Poolings of PyTorch.

use super::pool::{least, max_places, max_windows, mean_windows, sum_windows};
use super::types::{numbers, same_place};
use super::window::Slide;
use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, MapSource, ReduceOp};
use crate::index::{Cmp, Cond, Ix, Mask};

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "torch_pool",
        handles: &[
            "aten.max_pool1d",
            "aten.max_pool2d",
            "aten.max_pool3d",
            "aten.max_pool2d_with_indices",
            "aten.max_pool3d_with_indices",
            "aten.avg_pool1d",
            "aten.avg_pool2d",
            "aten.avg_pool3d",
        ],
        doc: "The greatest element, or the mean, of each window. Padding is -inf for the maximum and 0 for the mean, which \
              counts it unless told not to.\n\n\
              `y = max_pool2d(x)` --> `xw = map x[n, c, o*stride + k - padding] else -inf`, `y = reduce max xw over k`",
        run: pool,
    },
    Decomposition {
        name: "adaptive_pool",
        handles: &[
            "aten.adaptive_avg_pool1d",
            "aten.adaptive_avg_pool2d",
            "aten.adaptive_avg_pool3d",
            "aten._adaptive_avg_pool2d",
            "aten._adaptive_avg_pool3d",
            "aten.adaptive_max_pool1d",
            "aten.adaptive_max_pool2d",
            "aten.adaptive_max_pool3d",
        ],
        doc: "As many windows as asked for: window `o` of `m` covers `o*n//m` to `ceil((o + 1)*n/m)`.\n\n\
              `y = adaptive_avg_pool2d(x, 1)` --> `y = mean(x)` over space\n\n\
              Where the windows differ in length, each is read as the longest and masked.",
        run: adaptive,
    },
];

/// The operand with a batch, and whether it got one here.
fn batched(b: &mut Builder<'_>, x: Arg, n: usize) -> Result<(Arg, bool)> {
    match b.rank(x) {
        r if r == n + 2 => Ok((x, false)),
        r if r == n + 1 => Ok((b.unsqueeze(x, &[0])?, true)),
        r => Err(Refusal::new(format!("pooling over {n} axes takes a tensor of rank {} or {}, not {r}", n + 1, n + 2))),
    }
}

fn axes_of(name: &str) -> usize {
    name.split_once("pool").and_then(|(_, rest)| rest.get(..1)?.parse().ok()).unwrap_or(2)
}

fn pool(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let n = axes_of(call.name);
    let (x, single) = batched(b, call.arg(0)?, n)?;
    let sizes = numbers(call, "kernel_size", n, 1)?;
    let strides = match call.ints("stride")? {
        Some(s) if !s.is_empty() => numbers(call, "stride", n, 1)?,
        _ => sizes.clone(),
    };
    let padding = numbers(call, "padding", n, 0)?;
    let dilation = numbers(call, "dilation", n, 1)?;
    if sizes.iter().chain(&strides).chain(&dilation).any(|s| !(1..=1 << 31).contains(s)) {
        return Err(Refusal::new("windows, strides and dilations of a pooling must be positive"));
    }
    if padding.iter().zip(&sizes).any(|(p, s)| *p < 0 || 2 * p > *s) {
        return Err(Refusal::new("the padding of a pooling must be at most half of its window"));
    }
    let slides: Vec<Slide> = (0..n)
        .map(|d| Slide {
            size: Ix::Const(sizes[d]),
            stride: strides[d],
            dilation: dilation[d],
            before: Ix::Const(padding[d]),
            after: Ix::Const(padding[d]),
        })
        .collect();
    let from = b.shape(x);
    let ceil = call.flag("ceil_mode", false)?;
    let counts: Vec<Ix> = slides.iter().zip(&from[2..]).map(|(s, d)| b.simplify(&s.count(d, ceil))).collect();
    let mut results = vec![];
    if call.name.contains("avg") {
        let y = match call.float_of("divisor_override")? {
            Some(divisor) => {
                let (narrow, sum) = (b.elem(x), sum_windows(b, x, &slides, &counts)?);
                let divisor = b.scalar_like(sum, divisor);
                let y = b.div(sum, divisor)?;
                b.convert(y, narrow)?
            }
            None => mean_windows(b, x, &slides, &counts, call.flag("count_include_pad", true)?)?,
        };
        results.push(y);
    } else {
        results.push(max_windows(b, x, &slides, &counts)?);
        if call.name.ends_with("with_indices") {
            // Positions are numbered within each plane.
            let places = max_places(b, x, &slides, &counts)?;
            let mut at = ir::int_scalar(Elem::I64, 0);
            for (d, place) in places.into_iter().enumerate() {
                let extent = super::reductions::extent(b, from[2 + d].clone(), Elem::I64)?;
                let scaled = b.mul(at, extent)?;
                at = b.add(scaled, place)?;
            }
            results.push(at);
        }
    }
    results.into_iter().map(|y| if single { b.squeeze(y, &[0]) } else { Ok(y) }).collect()
}

fn adaptive(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let n = axes_of(call.name);
    let mean = call.name.contains("avg");
    let (x, single) = batched(b, call.arg(0)?, n)?;
    let from = b.shape(x);
    // An entry left out keeps the extent.
    let kept = |d: usize| from.get(2 + d).cloned().unwrap_or(Ix::Const(1));
    let want = call.open_extents("output_size")?.unwrap_or_default();
    let mut want: Vec<Ix> = want.into_iter().enumerate().map(|(d, n)| n.unwrap_or_else(|| kept(d))).collect();
    if want.len() == 1 {
        want = vec![want[0].clone(); n];
    }
    if want.len() != n {
        return Err(Refusal::new(format!("output_size has {} numbers, but needs {n}", want.len())));
    }
    let (narrow, wide) = (b.elem(x), if mean { b.wide(x) } else { b.elem(x) });
    let x = b.convert(x, wide)?;
    // [n, c, o.., k..]: the positions of a window that are outside of it are masked.
    let rank = 2 + n;
    let mut shape = from[..2].to_vec();
    shape.extend(want.iter().cloned());
    let mut coords = same_place(2);
    let (mut conds, mut divisor) = (vec![], Ix::Const(1));
    for d in 0..n {
        let (len, out) = (&from[2 + d], &want[d]);
        let (o, k) = (ir::axis(2 + d), ir::axis(rank + d));
        let start = Ix::floor_div(Ix::mul(o.clone(), len.clone()), out.clone());
        let (size, exact) = match (len.as_const(), out.as_const()) {
            (_, Some(1)) => (len.clone(), true),
            (Some(l), Some(o)) if o > 0 && l % o == 0 => (Ix::Const(l / o), true),
            _ if b.same(len, out) => (Ix::Const(1), true),
            _ if b.facts().range(out).lo >= 1 => {
                let longest = Ix::add(Ix::ceil_div(len.clone(), out.clone()), Ix::Const(1));
                (b.simplify(&longest), false)
            }
            _ => return Err(Refusal::new("adaptive pooling needs at least one window")),
        };
        if exact {
            coords.push(Ix::add(Ix::mul(o, size.clone()), k));
            divisor = Ix::mul(divisor, size.clone());
        } else {
            let end = Ix::ceil_div(Ix::mul(Ix::add(o, Ix::Const(1)), len.clone()), out.clone());
            let at = Ix::add(start.clone(), k);
            conds.push(Cond::new(at.clone(), Cmp::Lt, end.clone()));
            coords.push(at);
            divisor = Ix::mul(divisor, Ix::sub(end, start));
        }
        shape.push(size);
    }
    let outside = if mean { b.scalar_like(x, 0.0) } else { least(wide) };
    let always = conds.is_empty();
    let mut sources = vec![MapSource { arg: 0, coords, when: Mask { conds, vals: vec![] } }];
    let mut args = vec![x];
    if !always {
        sources.push(MapSource { arg: 1, coords: vec![], when: Mask::default() });
        args.push(outside);
    }
    let xw = b.map_sources("windows", args, shape, sources);
    let axes: Vec<usize> = (rank..rank + n).collect();
    let y = b.reduce(if mean { ReduceOp::Sum } else { ReduceOp::Max }, xw, &axes, false)?;
    let y = if mean {
        let shape = b.shape(y);
        let divisor = match b.simplify(&divisor).as_const() {
            Some(c) => ir::scalar(wide, c as f64),
            None => {
                let d = b.index(divisor, Elem::I64, shape);
                b.convert(d, wide)?
            }
        };
        let y = b.div(y, divisor)?;
        b.convert(y, narrow)?
    } else {
        y
    };
    let y = if single { b.squeeze(y, &[0])? } else { y };
    if mean {
        return Ok(vec![y]);
    }
    Ok(vec![y, positions(b, xw, &from, &want, rank, single)?])
}

/// Where in its plane the greatest element of each window is.
fn positions(b: &mut Builder<'_>, xw: Arg, from: &[Ix], want: &[Ix], rank: usize, single: bool) -> Result<Arg> {
    let shape = b.shape(xw);
    let n = want.len();
    let sizes = shape[rank..].to_vec();
    let mut flat = shape[..rank].to_vec();
    let count = b.numel(&sizes);
    flat.push(count);
    let windows = b.reshape(xw, &flat)?;
    let mut k = b.reduce(ReduceOp::ArgMax { last: false }, windows, &[rank], false)?;
    let (mut at, mut scale) = (ir::int_scalar(Elem::I64, 0), Ix::Const(1));
    for d in (0..n).rev() {
        let size = super::reductions::extent(b, sizes[d].clone(), Elem::I64)?;
        let own = if d == 0 { k } else { b.rem(k, size)? };
        k = b.div(k, size)?;
        let start = Ix::floor_div(Ix::mul(ir::axis(2 + d), from[2 + d].clone()), want[d].clone());
        let start = b.index(start, Elem::I64, shape[..rank].to_vec());
        let place = b.add(own, start)?;
        let factor = super::reductions::extent(b, scale.clone(), Elem::I64)?;
        let part = b.mul(place, factor)?;
        at = b.add(part, at)?;
        scale = Ix::mul(scale, from[2 + d].clone());
    }
    if single { b.squeeze(at, &[0]) } else { Ok(at) }
}
