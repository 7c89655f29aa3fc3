//! Pooling of PyTorch.

use super::Call;
use super::expr::Tensor;
use super::pool::{least, max_places, max_windows, mean_windows, sum_windows};
use super::types::{numbers, same_place};
use super::window::Slide;
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::ir::{self, MapSource, ReduceOp};
use crate::index::{Cmp, Cond, Ix, Mask};

rules! {
    torch_pool "The greatest element, or the mean, of each window. Padding is -inf for the maximum and 0 for the mean, which \
         counts it unless told not to.\n\n\
         `y = max_pool2d(x)` --> `xw = map x[n, c, o*stride + k - padding] else -inf`, `y = reduce max xw over k`" {
        "aten.max_pool1d" | "aten.max_pool2d" | "aten.max_pool3d" | "aten.max_pool2d_with_indices" |
        "aten.max_pool3d_with_indices" | "aten.avg_pool1d" | "aten.avg_pool2d" | "aten.avg_pool3d" => pool,
    }
    adaptive_pool "Pools over a given number of windows: window `o` of `m` covers `o*n//m` to `ceil((o + 1)*n/m)`.\n\n\
         `y = adaptive_avg_pool2d(x, 1)` --> `y = mean(x)` over space\n\n\
         Where the windows differ in length, each is read as the longest and masked." {
        "aten.adaptive_avg_pool1d" | "aten.adaptive_avg_pool2d" | "aten.adaptive_avg_pool3d" |
        "aten._adaptive_avg_pool2d" | "aten._adaptive_avg_pool3d" | "aten.adaptive_max_pool1d" |
        "aten.adaptive_max_pool2d" | "aten.adaptive_max_pool3d" => adaptive,
    }
}

/// The operand with a batch, and whether it had none.
fn batched<'g>(c: &Call<'g>, n: usize) -> Result<(Tensor<'g>, bool)> {
    match c.x(0).rank()? {
        r if r == n + 2 => Ok((c.x(0), false)),
        r if r == n + 1 => Ok((c.x(0).unsqueeze(&[0]), true)),
        r => Err(Refusal::new(format!("pooling over {n} axes takes a tensor of rank {} or {}, not {r}", n + 1, n + 2))),
    }
}

fn axes_of(name: &str) -> usize {
    name.split_once("pool").and_then(|(_, rest)| rest.get(..1)?.parse().ok()).unwrap_or(2)
}

fn pool<'g>(c: &Call<'g>) -> Result<Vec<Tensor<'g>>> {
    let n = axes_of(c.name);
    let (x, single) = batched(c, n)?;
    let sizes = numbers(c, "kernel_size", n, 1)?;
    let strides = match c.ints("stride")? {
        Some(s) if !s.is_empty() => numbers(c, "stride", n, 1)?,
        _ => sizes.clone(),
    };
    let padding = numbers(c, "padding", n, 0)?;
    let dilation = numbers(c, "dilation", n, 1)?;
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
    let from = x.shape()?;
    let ceil = c.flag("ceil_mode", false)?;
    let count = |(s, d): (&Slide, &Ix)| c.cx.read(|b| s.counted(b, d, ceil));
    let counts = slides.iter().zip(&from[2..]).map(count).collect::<Result<Vec<Ix>>>()?;
    let results = if c.name.contains("avg") {
        vec![match c.float_of("divisor_override")? {
            Some(divisor) => (sum_windows(x, &slides, &counts)? / divisor).to(x.elem()),
            None => mean_windows(x, &slides, &counts, c.flag("count_include_pad", true)?)?,
        }]
    } else {
        let mut results = vec![max_windows(x, &slides, &counts)?];
        if c.name.ends_with("with_indices") {
            // Positions are numbered within each plane.
            let mut at = c.cx.int(0);
            for (d, place) in max_places(x, &slides, &counts)?.into_iter().enumerate() {
                at = at * c.cx.extent(&from[2 + d], Elem::I64) + place;
            }
            results.push(at);
        }
        results
    };
    Ok(results.into_iter().map(|y| if single { y.squeeze(&[0]) } else { y }).collect())
}

fn adaptive<'g>(c: &Call<'g>) -> Result<Vec<Tensor<'g>>> {
    let n = axes_of(c.name);
    let mean = c.name.contains("avg");
    let (given, single) = batched(c, n)?;
    let (from, cx) = (given.shape()?, c.cx);
    // An entry left out keeps the extent.
    let kept = |d: usize| from.get(2 + d).cloned().unwrap_or(Ix::Const(1));
    let want = c.open_extents("output_size")?.unwrap_or_default();
    let mut want: Vec<Ix> = want.into_iter().enumerate().map(|(d, n)| n.unwrap_or_else(|| kept(d))).collect();
    if want.len() == 1 {
        want = vec![want[0].clone(); n];
    }
    if want.len() != n {
        return Err(Refusal::new(format!("output_size has {} numbers, but needs {n}", want.len())));
    }
    let x = if mean { given.wide() } else { given };
    // [n, c, o.., k..]: the positions of a window that are outside of it are masked.
    let rank = 2 + n;
    let mut shape = [&from[..2], &want[..]].concat();
    let mut coords = same_place(2);
    let (mut conds, mut divisor) = (vec![], Ix::Const(1));
    for d in 0..n {
        let (len, out) = (&from[2 + d], &want[d]);
        let (o, k) = (ir::axis(2 + d), ir::axis(rank + d));
        let start = Ix::floor_div(Ix::mul(o.clone(), len.clone()), out.clone());
        let (size, exact) = match (len.as_const(), out.as_const()) {
            (_, Some(1)) => (len.clone(), true),
            (Some(l), Some(o)) if o > 0 && l % o == 0 => (Ix::Const(l / o), true),
            _ if cx.same(len, out) => (Ix::Const(1), true),
            _ if cx.range(out).lo >= 1 => {
                let longest = Ix::add(Ix::ceil_div(len.clone(), out.clone()), Ix::Const(1));
                (cx.simplify(&longest), false)
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
    let always = conds.is_empty();
    let mut sources = vec![MapSource { arg: 0, coords, when: Mask { conds, vals: vec![] } }];
    let mut args = vec![x.arg];
    if !always {
        sources.push(MapSource { arg: 1, coords: vec![], when: Mask::default() });
        args.push(if mean { x.like(0.0).arg } else { least(x.elem()) });
    }
    let xw = cx.made(&[x], |b| Ok(b.map_sources("windows", args, shape, sources)));
    let y = xw.reduce(if mean { ReduceOp::Sum } else { ReduceOp::Max }, &(rank..rank + n).collect::<Vec<_>>(), false);
    let unbatched = |y: Tensor<'g>| if single { y.squeeze(&[0]) } else { y };
    if !mean {
        let y = unbatched(y);
        return Ok(vec![y, unbatched(positions(xw, &from, &want, rank)?)]);
    }
    let divisor = match cx.simplify(&divisor).as_const() {
        Some(c) => x.like(c as f64),
        None => cx.index(divisor, Elem::I64, y.shape()?).to(x.elem()),
    };
    Ok(vec![unbatched((y / divisor).to(given.elem()))])
}

/// Where in its plane the greatest element of each window is.
fn positions<'g>(xw: Tensor<'g>, from: &[Ix], want: &[Ix], rank: usize) -> Result<Tensor<'g>> {
    let (shape, cx) = (xw.shape()?, xw.cx);
    let sizes = &shape[rank..];
    let windows = xw.reshape(&[&shape[..rank], &[cx.numel(sizes)]].concat());
    let mut k = windows.reduce(ReduceOp::ArgMax { last: false }, &[rank], false);
    let (mut at, mut scale) = (cx.int(0), Ix::Const(1));
    for d in (0..want.len()).rev() {
        let size = cx.extent(&sizes[d], Elem::I64);
        let own = if d == 0 { k } else { k % size };
        k = k / size;
        let start = Ix::floor_div(Ix::mul(ir::axis(2 + d), from[2 + d].clone()), want[d].clone());
        let place = own + cx.index(start, Elem::I64, shape[..rank].to_vec());
        at = place * cx.extent(&scale, Elem::I64) + at;
        scale = Ix::mul(scale, from[2 + d].clone());
    }
    Ok(at)
}
