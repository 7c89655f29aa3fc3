//! Convolutions, as sums of products over mapped windows.
//!
//! The mathematics is in [`conv`] and [`conv_transpose`], which rules of several sources call.

use super::expr::Tensor;
use super::types::bounded;
use super::window::{Slide, masked, masked_by, onnx_slides, spatial};
use super::{Call, old};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{Arg, MapSource, axis, scalar};
use crate::index::{Cmp, Cond, Ix, Mask};

rules! {
    conv "A sum of products over windows; padding is a mask that reads 0, and groups are an axis of their own.\n\n\
         `y = conv(x, w, b)` --> `xw = map x[n, c, o*stride + k*dilation - pad] else 0`, `y = dot xw, w over c, k`, \
         `y + b`\n\n\
         Refuses channels that the groups do not divide." {
        "onnx.Conv" => old(onnx_conv),
    }
    conv_transpose "The adjoint of a convolution, as a sum of products over the windows that reach an output position.\n\n\
         Positions with the same remainder by the stride, a phase, are reached through the same taps. So phases are an axis, \
         or, if they are few and differ in their numbers of taps, products of their own: no product is computed only to be masked.\n\n\
         `y = conv_transpose(x, w, b)` --> `xw = map x[n, c, q + (r + pad)//stride - t] else 0`, `ww = map \
         w[c, m, t*stride + (r + pad)%stride]`, `z = dot xw, ww over c, t`, `y = map z[n, o%stride, m, o//stride]`, \
         `y + b`" {
        "onnx.ConvTranspose" => old(onnx_conv_transpose),
    }
}

/// `x [n, c, d..]` with `w [m, c / groups, k..]`, giving `[n, m, o..]`. Sums are made in `wide`, the type of the result.
pub fn conv(b: &mut Builder<'_>, x: Arg, w: Arg, slides: &[Slide], groups: i64, wide: Elem) -> Result<Arg> {
    let (xs, ws) = (b.shape(x), b.shape(w));
    let n = slides.len();
    if xs.len() != n + 2 || ws.len() != n + 2 {
        return Err(Refusal::new(format!(
            "a convolution over {n} axes needs operands of rank {}; they are {} and {}",
            n + 2,
            b.shape_text(&xs),
            b.shape_text(&ws)
        )));
    }
    let g = Ix::Const(groups);
    if groups < 1
        || !b.same(&xs[1], &Ix::mul(ws[1].clone(), g.clone()))
        || ws[0].as_const().is_some_and(|m| m % groups != 0)
    {
        return Err(Refusal::new(format!(
            "{} and {} do not fit a convolution with {groups} groups",
            b.shape_text(&xs),
            b.shape_text(&ws)
        )));
    }
    let per_group = b.simplify(&Ix::floor_div(ws[0].clone(), g.clone()));
    let counts = slides.iter().zip(&xs[2..]).map(|(s, d)| s.counted(b, d, false)).collect::<Result<Vec<Ix>>>()?;
    if counts.iter().zip(&xs[2..]).any(|(count, d)| count.is_const(0) && !d.is_const(0)) {
        let (x, w) = (b.shape_text(&xs), b.shape_text(&ws));
        return Err(Refusal::new(format!("the input {x}, with its padding, is smaller than the weight {w}")));
    }
    // [n, (groups), m / groups, o.., c / groups, k..]: x has no m, w has neither n nor o.
    let grouped = usize::from(groups > 1);
    let (m_at, o_at) = (1 + grouped, 2 + grouped);
    let (c_at, k_at) = (o_at + n, o_at + n + 1);
    let mut x_shape = vec![xs[0].clone()];
    let mut w_shape = vec![Ix::Const(1)];
    if grouped == 1 {
        x_shape.push(g.clone());
        w_shape.push(g);
    }
    x_shape.push(Ix::Const(1));
    w_shape.push(per_group.clone());
    x_shape.extend(counts.iter().cloned());
    w_shape.extend(vec![Ix::Const(1); n]);
    x_shape.push(ws[1].clone());
    w_shape.push(ws[1].clone());
    x_shape.extend(slides.iter().map(|s| s.size.clone()));
    w_shape.extend(ws[2..].iter().cloned());
    let in_group = |at: Ix, each: &Ix| if grouped == 1 { Ix::add(Ix::mul(axis(1), each.clone()), at) } else { at };
    let mut x_coords = vec![axis(0), in_group(axis(c_at), &ws[1])];
    let mut w_coords = vec![in_group(axis(m_at), &per_group), axis(c_at)];
    for (d, slide) in slides.iter().enumerate() {
        x_coords.push(slide.place(axis(o_at + d), axis(k_at + d)));
        w_coords.push(axis(k_at + d));
    }
    let zero = b.scalar_like(x, 0.0);
    let xw = masked(b, "windows", x, x_shape, x_coords, zero);
    let ww = b.map("weight", w, w_shape, w_coords);
    let axes: Vec<usize> = (c_at..k_at + n).collect();
    let y = b.dot(xw, ww, wide, &axes, false)?;
    if grouped == 0 {
        return Ok(y);
    }
    let mut out = vec![xs[0].clone(), ws[0].clone()];
    out.extend(counts);
    b.reshape(y, &out)
}

/// `x [n, c, d..]` with `w [c, m / groups, k..]`, giving `[n, m, o..]`, where `o` are the `extents`: element
/// `d*stride + k*dilation - before` of the result receives `x[d] * w[k]`.
pub fn conv_transpose(
    b: &mut Builder<'_>,
    x: Arg,
    w: Arg,
    slides: &[Slide],
    extents: &[Ix],
    groups: i64,
    wide: Elem,
) -> Result<Arg> {
    let (xs, ws) = (b.shape(x), b.shape(w));
    let n = slides.len();
    let g = Ix::Const(groups);
    let fits = xs.len() == n + 2 && ws.len() == n + 2 && groups >= 1 && b.same(&xs[1], &ws[0]);
    if !fits || xs[1].as_const().is_some_and(|c| c % groups != 0) {
        return Err(Refusal::new(format!(
            "{} and {} do not fit a transposed convolution with {groups} groups",
            b.shape_text(&xs),
            b.shape_text(&ws)
        )));
    }
    let c_each = b.simplify(&Ix::floor_div(xs[1].clone(), g.clone()));
    let phases: Vec<Phases> = slides.iter().map(Phases::of).collect();
    let of = Transposed { x, w, slides, extents, g: g.clone(), c_each, phases: &phases, wide };
    let mut out = vec![xs[0].clone(), b.simplify(&Ix::mul(ws[1].clone(), g))];
    out.extend(extents.iter().cloned());
    if phases.iter().all(|p| p.count == 1) {
        let y = of.product(b, None)?;
        return b.reshape(y, &out);
    }
    // The phases of a position are its remainder.
    let remainder = |d: usize| Ix::modulo(axis(2 + d), Ix::Const(phases[d].count));
    let each = ws[1].clone();
    let place = |phase: Vec<Ix>| {
        let mut coords = vec![axis(0), Ix::floor_div(axis(1), each.clone())];
        coords.extend(phase);
        coords.push(Ix::modulo(axis(1), each.clone()));
        coords.extend(phases.iter().enumerate().map(|(d, p)| Ix::floor_div(axis(2 + d), Ix::Const(p.count))));
        coords
    };
    let Some(apart) = apart(&phases, slides) else {
        let y = of.product(b, None)?;
        return Ok(b.map("phases", y, out, place((0..n).map(remainder).collect())));
    };
    let (mut args, mut sources) = (vec![], vec![]);
    for phase in apart.iter().filter(|phase| !phase.iter().any(|p| p.taps == 0)) {
        let conds = phase.iter().enumerate().filter(|(d, _)| phases[*d].count > 1);
        let conds = conds.map(|(d, p)| Cond::new(remainder(d), Cmp::Eq, Ix::Const(p.at))).collect();
        let coords = place(vec![Ix::Const(0); n]);
        sources.push(MapSource { arg: args.len() as u32, coords, when: Mask { conds, vals: vec![] } });
        args.push(of.product(b, Some(phase))?);
    }
    // Positions that no tap reaches.
    sources.push(MapSource { arg: args.len() as u32, coords: vec![], when: Mask::default() });
    args.push(scalar(wide, 0.0));
    Ok(b.map_sources("phases", args, out, sources))
}

/// A phase along one axis, when it is a number: which it is, and how many taps it has.
#[derive(Clone, Copy)]
struct Phase {
    at: i64,
    taps: i64,
}

/// The most phases that have products of their own.
const MOST_PRODUCTS: usize = 8;

/// All phases, where each had better have a product of its own: where they have different numbers of taps, an axis over them would
/// make products for taps that are not there.
fn apart(phases: &[Phases], slides: &[Slide]) -> Option<Vec<Vec<Phase>>> {
    let mut all: Vec<Vec<Phase>> = vec![vec![]];
    let mut differ = false;
    for (p, slide) in phases.iter().zip(slides) {
        let (size, before) = (slide.size.as_const()?, slide.before.as_const()?);
        if !p.divides {
            return None;
        }
        differ |= size % p.count != 0;
        let of = |at: i64| {
            let first = ((at + before.rem_euclid(p.count)) * p.step).rem_euclid(p.count);
            let left = size.saturating_sub(first).max(0);
            Phase { at, taps: left / p.count + i64::from(left % p.count > 0) }
        };
        let longer = |phase: &Vec<Phase>| {
            (0..p.count).map(|at| phase.iter().copied().chain([of(at)]).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        if all.len().saturating_mul(p.count as usize) > MOST_PRODUCTS {
            return None;
        }
        all = all.iter().flat_map(longer).collect();
    }
    differ.then_some(all)
}

/// A transposed convolution.
struct Transposed<'a> {
    x: Arg,
    w: Arg,
    slides: &'a [Slide],
    extents: &'a [Ix],
    g: Ix,
    /// Channels of `x` in each group.
    c_each: Ix,
    phases: &'a [Phases],
    wide: Elem,
}

impl Transposed<'_> {
    /// `[n, groups, phase.., m / groups, place..]`: all phases, or one.
    fn product(&self, b: &mut Builder<'_>, only: Option<&Vec<Phase>>) -> Result<Arg> {
        let Transposed { x, w, slides, phases, .. } = *self;
        let (xs, ws, n) = (b.shape(x), b.shape(w), slides.len());
        // [n, groups, phase.., m / groups, place.., c / groups, k..]
        let (m_at, o_at, c_at, k_at) = (2 + n, 3 + n, 3 + 2 * n, 4 + 2 * n);
        let counts = || phases.iter().map(|p| if only.is_some() { Ix::Const(1) } else { Ix::Const(p.count) });
        let taps: Vec<Ix> = match only {
            Some(phase) => phase.iter().map(|p| Ix::Const(p.taps)).collect(),
            None => phases.iter().zip(&ws[2..]).map(|(p, k)| Ix::ceil_div(k.clone(), Ix::Const(p.count))).collect(),
        };
        let taps: Vec<Ix> = taps.iter().map(|t| b.simplify(t)).collect();
        let places = phases.iter().zip(self.extents).map(|(p, n)| Ix::ceil_div(n.clone(), Ix::Const(p.count)));
        let places: Vec<Ix> = places.map(|n| b.simplify(&n)).collect();
        let mut x_shape = vec![xs[0].clone(), self.g.clone()];
        x_shape.extend(counts());
        x_shape.push(Ix::Const(1));
        x_shape.extend(places);
        x_shape.push(self.c_each.clone());
        x_shape.extend(taps.iter().cloned());
        let mut w_shape = vec![Ix::Const(1), self.g.clone()];
        w_shape.extend(counts());
        w_shape.push(ws[1].clone());
        w_shape.extend(vec![Ix::Const(1); n]);
        w_shape.push(self.c_each.clone());
        w_shape.extend(taps);
        let channel = Ix::add(Ix::mul(axis(1), self.c_each.clone()), axis(c_at));
        let (mut coords, mut conds) = (vec![axis(0), channel.clone()], vec![]);
        let (mut w_coords, mut w_conds) = (vec![channel, axis(m_at)], vec![]);
        for (d, (slide, along)) in slides.iter().zip(phases).enumerate() {
            let phase = only.map_or(axis(2 + d), |phase| Ix::Const(phase[d].at));
            let k = along.tap(slide, phase.clone(), axis(k_at + d));
            let o = Ix::add(Ix::mul(axis(o_at + d), Ix::Const(along.count)), phase.clone());
            let from = Ix::sub(Ix::add(o, slide.before.clone()), Ix::mul(k.clone(), Ix::Const(slide.dilation)));
            let stride = Ix::Const(slide.stride);
            let at = if along.divides {
                along.from(slide, phase, axis(o_at + d), axis(k_at + d))
            } else {
                Ix::floor_div(from.clone(), stride.clone())
            };
            conds.push(Cond::new(if along.divides { at.clone() } else { from.clone() }, Cmp::Ge, Ix::Const(0)));
            conds.push(Cond::new(at.clone(), Cmp::Lt, xs[2 + d].clone()));
            if !along.divides {
                conds.push(Cond::new(Ix::modulo(from, stride), Cmp::Eq, Ix::Const(0)));
            }
            if only.is_none() && slide.size.as_const().is_none_or(|k| k % along.count != 0) {
                w_conds.push(Cond::new(k.clone(), Cmp::Lt, slide.size.clone()));
            }
            coords.push(at);
            w_coords.push(k);
        }
        let zeros = [b.scalar_like(x, 0.0), b.scalar_like(w, 0.0)];
        let xw = masked_by(b, "windows", x, x_shape, coords, conds, zeros[0]);
        let ww = masked_by(b, "weight", w, w_shape, w_coords, w_conds, zeros[1]);
        let axes: Vec<usize> = (c_at..k_at + n).collect();
        b.dot(xw, ww, self.wide, &axes, false)
    }
}

/// How the positions of a result are reached along an axis of a transposed convolution. Positions of one remainder by the stride,
/// a phase, are reached through the same taps, each `stride` after the one before: of the others the products are never made.
struct Phases {
    count: i64,
    /// The factor of a remainder that gives the first tap.
    step: i64,
    /// True if the stride divides the rest of a position without its tap.
    divides: bool,
}

impl Phases {
    fn of(slide: &Slide) -> Phases {
        let stride = slide.stride;
        // The inverse of the dilation, where it has one; trying all is enough for strides that are of any use.
        let inverse = || (0..stride).find(|step| (step * (slide.dilation % stride)) % stride == 1 % stride);
        match if stride <= MOST_PHASES { inverse() } else { None } {
            Some(step) => Phases { count: stride, step, divides: true },
            None => Phases { count: 1, step: 0, divides: false },
        }
    }

    /// The first tap of a phase.
    fn first(&self, slide: &Slide, phase: Ix) -> Ix {
        let at = Ix::mul(Ix::add(phase, slide.before.clone()), Ix::Const(self.step));
        Ix::modulo(at, Ix::Const(self.count))
    }

    /// A tap of a phase.
    fn tap(&self, slide: &Slide, phase: Ix, at: Ix) -> Ix {
        match self.count {
            1 => at,
            count => Ix::add(Ix::mul(at, Ix::Const(count)), self.first(slide, phase)),
        }
    }

    /// The element that reaches the `place`th position of a phase through a tap.
    fn from(&self, slide: &Slide, phase: Ix, place: Ix, at: Ix) -> Ix {
        let dilation = Ix::Const(slide.dilation);
        let past = Ix::add(phase.clone(), slide.before.clone());
        // The first of neighbouring taps is the remainder.
        let first = || Ix::mul(self.first(slide, phase), dilation.clone());
        let offset = if slide.dilation == 1 { past } else { Ix::sub(past, first()) };
        Ix::sub(Ix::add(place, Ix::floor_div(offset, Ix::Const(self.count))), Ix::mul(at, dilation))
    }
}

/// Strides up to which the phases of a transposed convolution are axes of their own.
const MOST_PHASES: i64 = 64;

/// Adds `bias [m]` to the channels of `y`, and rounds to `narrow`.
pub fn finish(b: &mut Builder<'_>, mut y: Arg, bias: Option<Arg>, narrow: Elem) -> Result<Arg> {
    if let Some(bias) = bias {
        let wide = b.elem(y);
        let bias = b.convert(bias, wide)?;
        let bias = per_channel(b, bias, &b.shape(y))?;
        y = b.add(y, bias)?;
    }
    b.convert(y, narrow)
}

/// See [`per_channel`].
pub(super) fn by_channel<'g>(v: Tensor<'g>, shape: &[Ix]) -> Tensor<'g> {
    v.cx.made(&[v], |b| per_channel(b, v.arg, shape))
}

/// A vector over the channels of `shape [n, c, ..]` as `[c, 1, ..]`.
fn per_channel(b: &mut Builder<'_>, v: Arg, shape: &[Ix]) -> Result<Arg> {
    b.expect_shape("a vector over channels", v, shape.get(1..2).unwrap_or_default())?;
    let axes: Vec<usize> = (1..shape.len().saturating_sub(1)).collect();
    b.unsqueeze(v, &axes)
}

/// The spatial extents of a weight; `kernel_shape`, where given, must agree.
pub(super) fn kernel_of(b: &Builder<'_>, call: &Call<'_>, w: Arg) -> Result<Vec<Ix>> {
    let sizes = spatial(b, w)?;
    if let Some(given) = call.extents("kernel_shape")?.filter(|g| !g.is_empty())
        && !b.same_shape(&given, &sizes)
    {
        return Err(Refusal::new(format!(
            "kernel_shape is {}, but the weight is {}",
            b.shape_text(&given),
            b.shape_text(&b.shape(w))
        )));
    }
    Ok(sizes)
}

fn onnx_conv(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, w) = (call.arg(0)?, call.arg(1)?);
    let sizes = kernel_of(b, call, w)?;
    let slides = onnx_slides(b, call, &spatial(b, x)?, &sizes)?;
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let y = conv(b, x, w, &slides, call.int("group", 1)?, wide)?;
    Ok(vec![finish(b, y, call.opt(2), narrow)?])
}

fn onnx_conv_transpose(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, w) = (call.arg(0)?, call.arg(1)?);
    let sizes = kernel_of(b, call, w)?;
    let inputs = spatial(b, x)?;
    let n = inputs.len();
    let zeros = || vec![0i64; n];
    let adds = call.ints("output_padding")?.filter(|l| !l.is_empty()).unwrap_or_else(zeros);
    let wanted = call.ints("output_shape")?.filter(|l| !l.is_empty());
    bounded("output_padding", &adds)?;
    bounded("output_shape", wanted.as_deref().unwrap_or_default())?;
    if adds.len() != n || wanted.as_ref().is_some_and(|w| w.len() != n && w.len() != n + 2) {
        return Err(Refusal::new("output_padding and output_shape need one entry for each spatial axis"));
    }
    let wanted = wanted.map(|w| w.get(w.len() - n..).unwrap_or_default().to_vec());
    let auto = call.text("auto_pad")?.unwrap_or("NOTSET").to_string();
    let mut slides = onnx_slides(b, &explicit_padding(call)?, &inputs, &sizes)?;
    let mut extents = vec![];
    for (d, slide) in slides.iter_mut().enumerate() {
        let last = Ix::mul(Ix::sub(inputs[d].clone(), Ix::Const(1)), Ix::Const(slide.stride));
        let full = b.simplify(&Ix::add(Ix::add(last, slide.reach()), Ix::Const(adds[d])));
        let same = auto.starts_with("SAME");
        let target = match &wanted {
            Some(shape) => Some(Ix::Const(shape[d])),
            None if same => Some(Ix::mul(inputs[d].clone(), Ix::Const(slide.stride))),
            None => None,
        };
        if let Some(target) = target {
            let total = b.simplify(&Ix::sub(full, target.clone()));
            let less = Ix::floor_div(total.clone(), Ix::Const(2));
            // SAME_UPPER puts the odd one at the end.
            slide.before = if auto == "SAME_UPPER" { less } else { Ix::sub(total, less) };
            slide.before = b.simplify(&slide.before);
            extents.push(b.simplify(&target));
        } else {
            let cut = Ix::add(slide.before.clone(), slide.after.clone());
            extents.push(b.simplify(&Ix::sub(full, cut)));
        }
    }
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let y = conv_transpose(b, x, w, &slides, &extents, call.int("group", 1)?, wide)?;
    Ok(vec![finish(b, y, call.opt(2), narrow)?])
}

/// The operation with explicit padding only: automatic padding means something else for transposed convolutions.
fn explicit_padding<'g>(call: &Call<'g>) -> Result<Call<'g>> {
    let automatic = call.text("auto_pad")?.is_some_and(|a| !matches!(a, "NOTSET" | ""));
    Ok(call.hiding(if automatic { &["auto_pad", "pads"] } else { &["auto_pad"] }))
}
