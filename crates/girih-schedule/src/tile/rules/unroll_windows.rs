//! `unroll_windows`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::index::{Facts, simplify};
use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::tile::Context;
use crate::tile::affine::{self, MOST_APART, Stride};
use crate::tile::edit::{self, Visit, const_trip};
use crate::tile::heuristics::unroll_windows::{MOST_GATHERED, MOST_STATEMENTS, MOST_TAPS};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "unroll_windows",
    doc: "\
Unrolls the windows of poolings and of convolutions by channel, so that vectors run along the positions of the result, and
splits off the positions whose windows reach into the padding.

```text
for j in 0..n: free                              for j in 0..1: free
  local s                                          ... with masks
  s = 0.0                                        for j in 0..16: free
  for k in 0..3: reduce                            %x0 = load x[j]
    %x = load x[j + k - 1]                         %s0 = 0.0 + %x0
      where j + k - 1 >= 0 else 0.0     -->        %x1 = load x[j + 1]
    s <- s + %x                                    %s1 = %s0 + %x1
  store y[j] = s                                   %x2 = load x[j + 2]
                                                   %s2 = %s1 + %x2
                                                   store y[j + 1] = %s2
```

Each element keeps the order of its sum. The two innermost loops are split where a condition begins or ceases to
hold, and the innermost one also where its whole vectors end; if the machine can mask lanes off, the vectors at the edges keep
their masks instead. Loops of unknown length stay whole.

Refuses windows of more than 64 positions (16 where neighbours load elements that lie backwards) or of unknown size, folds that hold anything but loads and
arithmetic, and results or loads that lie apart.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !p.open {
        return None;
    }
    let facts = p.facts();
    edit::rewrite(p, &mut |kernel, s| {
        let Stmt::For(f) = s else { return Visit::Into };
        if f.kind != LoopKind::Free || f.place != Place::None {
            return Visit::Into;
        }
        let chain = edit::free_chain(f);
        let inner = chain[chain.len() - 1];
        if !inner.body.iter().any(is_fold) {
            return Visit::Into;
        }
        let site = axis_site(kernel, inner.axis);
        match expand(kernel, ctx, &facts, &chain) {
            Ok(new) => {
                log.applied(site);
                Visit::Replace(new)
            }
            Err(why) => {
                log.skipped(site, why);
                Visit::Leave
            }
        }
    })
}

fn is_fold(s: &Stmt) -> bool {
    matches!(s, Stmt::For(f) if f.kind == LoopKind::Reduce)
}

fn expand(kernel: &mut Kernel, ctx: &Context, facts: &Facts, chain: &[&For]) -> Result<Vec<Stmt>, &'static str> {
    let [outer @ .., inner] = chain else { return Err("it is not a loop") };
    let taps = taps(&inner.body)?;
    if taps > MOST_TAPS {
        return Err("its windows have many positions");
    }
    check(kernel, inner, taps)?;
    let mut flat = vec![];
    flatten(kernel, &inner.body, &mut flat);
    promote(&mut flat)?;

    let lanes = flat.iter().filter_map(stored_bytes).max().map_or(1, |b| i64::from(ctx.target.lanes_of(b.into())));
    let elements = flat.iter().filter_map(|s| match s {
        Stmt::Load { mem, .. } | Stmt::Store { mem, .. } => Some(mem.elem.bytes()),
        _ => None,
    });
    let masks = elements.min().zip(ctx.target.vector.masks).is_some_and(|(bytes, least)| bytes >= least.into());
    let columns = match const_trip(inner).map(|n| n as i64) {
        Some(extent) => {
            let (lo, hi) = interior(&flat, inner.axis, extent, facts);
            let cut = match masks {
                true if side_by_side(&flat, inner.axis) => in_vectors(extent, (lo, hi), lanes),
                true => pieces(extent, lo, hi, 1),
                false => pieces(extent, lo, hi, lanes),
            };
            cut.into_iter().map(Some).collect()
        }
        // Whole: how far the interior goes is for a later rule to say.
        None => vec![None],
    };
    let row = outer.last().and_then(|f| Some((*f, const_trip(f)? as i64)));
    let rows = row.map_or(vec![], |(f, n)| {
        let (lo, hi) = interior(&flat, f.axis, n, facts);
        pieces(n, lo, hi, 1)
    });
    if flat.len() * columns.len() * rows.len().max(1) > MOST_STATEMENTS {
        return Err("its body is long");
    }

    let mut facts = facts.clone();
    for f in outer {
        facts.set_axis(f.axis, &f.lo, &f.hi);
    }
    let mut body = vec![];
    let cut_rows = rows.len() > 1;
    for &at in if cut_rows { &rows[..] } else { &[(0, 0)] } {
        let (mut facts, mut part) = (facts.clone(), flat.clone());
        let row = row.filter(|_| cut_rows).map(|(f, _)| f);
        if let Some(f) = row {
            part = shifted(&part, f.axis, at);
            facts.set_axis(f.axis, &Ix::Const(0), &Ix::Const(at.1 - at.0));
        }
        let mut nest: Vec<Stmt> = vec![];
        for &at in &columns {
            nest.extend(walk::clone_fresh(kernel, &[piece(inner, &part, at, &facts)]));
        }
        if let Some(f) = row {
            let rows = For { hi: Ix::Const(at.1 - at.0), body: nest, ..(*f).clone() };
            nest = walk::clone_fresh(kernel, &[Stmt::For(Box::new(rows))]);
        }
        body.extend(nest);
    }
    let rest = if cut_rows { &outer[..outer.len() - 1] } else { outer };
    for f in rest.iter().rev() {
        body = vec![Stmt::For(Box::new(For { body, ..(*f).clone() }))];
    }
    Ok(body)
}

/// The positions that the folds of a body visit.
fn taps(body: &[Stmt]) -> Result<u64, &'static str> {
    let mut all = 1u64;
    for s in body {
        let Stmt::For(f) = s else { continue };
        if f.kind == LoopKind::Serial || f.contraction.is_some() || f.stream.is_some() || f.place != Place::None {
            return Err("its reduction is not over a window");
        }
        let trip = const_trip(f).ok_or("the bounds of its reduction are not constants")?;
        all = all.max(trip.saturating_mul(taps(&f.body)?));
    }
    Ok(all)
}

/// Checks that the body can run for several iterations at once, when it is unrolled.
fn check(kernel: &Kernel, inner: &For, taps: u64) -> Result<(), &'static str> {
    let facts = refs(&inner.body);
    let (mut why, mut near) = (None, false);
    let own = |b: &BufId| facts.bufs_defined.contains(b) && kernel.bufs[*b].shape.is_empty();
    walk::visit(&inner.body, &mut |s| match s {
        Stmt::For(_) | Stmt::Let { .. } | Stmt::Index { .. } | Stmt::Test { .. } => {}
        Stmt::Load { mem, order: Order::Weak, .. } => {
            let by = affine::coef(&mem.index, inner.axis, &facts.vals_defined).and_then(|c| c.as_const());
            match by {
                Some(0) => {}
                Some(-1 | 1..=MOST_APART) => near = true,
                Some(by) if by.abs() <= MOST_APART && taps <= MOST_GATHERED => near = true,
                _ => why = Some("its loads lie apart"),
            }
        }
        Stmt::Store { mem, order: Order::Weak, .. } => {
            if affine::stride(&mem.index, inner.axis, &facts.vals_defined) != Stride::Unit {
                why = Some("its results lie apart");
            }
        }
        Stmt::Local { buf } | Stmt::Read { buf, .. } | Stmt::Write { buf, .. } if own(buf) => {}
        _ => why = Some("it holds more than loads and arithmetic"),
    });
    match why {
        Some(why) => Err(why),
        None if near => Ok(()),
        None => Err("it loads nothing along its axis"),
    }
}

/// The iterations of the loops in a body, one after another.
fn flatten(kernel: &mut Kernel, body: &[Stmt], out: &mut Vec<Stmt>) {
    for s in body {
        let Stmt::For(f) = s else {
            out.push(s.clone());
            continue;
        };
        for k in 0..const_trip(f).unwrap_or(0) {
            let by = BTreeMap::from([(f.axis, Ix::Const(k as i64))]);
            let copy = edit::place_axes(&f.body, &by, &BTreeMap::new());
            let mut renaming = walk::Renaming::fresh(kernel, &copy);
            renaming.bufs.clear();
            let mut copy = copy;
            renaming.apply(&mut copy);
            flatten(kernel, &copy, out);
        }
    }
}

/// Makes values of what scalar buffers hold.
fn promote(body: &mut Vec<Stmt>) -> Result<(), &'static str> {
    let mut held: BTreeMap<BufId, Opnd> = BTreeMap::new();
    let mut out = vec![];
    for s in body.drain(..) {
        match s {
            Stmt::Local { .. } => {}
            Stmt::Write { buf, value, .. } => _ = held.insert(buf, value),
            Stmt::Read { dst, buf, .. } => {
                let value = *held.get(&buf).ok_or("it reads what nothing wrote")?;
                out.push(edit::copy_of(dst, value));
            }
            s => out.push(s),
        }
    }
    *body = out;
    Ok(())
}

fn stored_bytes(s: &Stmt) -> Option<u32> {
    match s {
        Stmt::Store { mem, .. } => Some(mem.elem.bytes() as u32),
        _ => None,
    }
}

/// The iterations of `0..extent` in which all conditions on the axis alone hold; all where there are none such.
fn interior(body: &[Stmt], axis: AxisId, extent: i64, facts: &Facts) -> (i64, i64) {
    let (mut from, mut to) = (0, extent);
    for c in body.iter().filter_map(walk::mask).flat_map(|m| &m.conds) {
        let none = BTreeSet::new();
        let by = |ix| affine::coef(ix, axis, &none).and_then(|c| c.as_const());
        let (Some(l), Some(r)) = (by(&c.lhs), by(&c.rhs)) else { continue };
        let at_zero = Ix::sub(affine::rest(&c.lhs, axis), affine::rest(&c.rhs, axis));
        let (by, Some(at)) = (l - r, simplify(&at_zero, facts).as_const()) else { continue };
        if by <= 0 {
            continue;
        }
        // by*axis + at against 0
        match c.cmp {
            Cmp::Lt => to = to.min(ceil_div(-at, by)),
            Cmp::Le => to = to.min(ceil_div(1 - at, by)),
            Cmp::Ge => from = from.max(ceil_div(-at, by)),
            Cmp::Gt => from = from.max(ceil_div(1 - at, by)),
            _ => {}
        }
    }
    if from < to { (from, to) } else { (0, extent) }
}

fn ceil_div(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}

/// Where a loop is cut: before the interior, whole vectors of it, shorter ones, single elements, and after it.
fn pieces(extent: i64, lo: i64, hi: i64, lanes: i64) -> Vec<(i64, i64)> {
    let mut out = vec![(0, lo)];
    let (mut at, mut width) = (lo, lanes.max(1));
    while at < hi {
        let to = if width < 4 { hi } else { at + (hi - at) / width * width };
        out.push((at, to));
        (at, width) = (to, width / 2);
    }
    out.push((hi, extent));
    out.retain(|(from, to)| from < to);
    out
}

/// True if neighbouring iterations load neighbours: then iterations at an edge are lanes that are masked off.
fn side_by_side(body: &[Stmt], axis: AxisId) -> bool {
    let defined = refs(body).vals_defined;
    body.iter().all(|s| match s {
        Stmt::Load { mem, .. } => matches!(affine::stride(&mem.index, axis, &defined), Stride::Same | Stride::Unit),
        _ => true,
    })
}

/// Where a loop is cut whose vectors may have lanes that are off: a vector at each edge that has masks, and what is between.
fn in_vectors(extent: i64, (lo, hi): (i64, i64), lanes: i64) -> Vec<(i64, i64)> {
    let first = if lo > 0 { lanes.max(lo).min(extent) } else { 0 };
    let last = if hi < extent { (extent - lanes).min(hi).max(first) } else { extent };
    let mut out = vec![(0, first), (first, last), (last, extent)];
    out.retain(|(from, to)| from < to);
    out
}

/// The body with an axis that begins at the start of a piece.
fn shifted(body: &[Stmt], axis: AxisId, at: (i64, i64)) -> Vec<Stmt> {
    let by = BTreeMap::from([(axis, Ix::add(Ix::Axis(axis), Ix::Const(at.0)))]);
    edit::place_axes(body, &by, &BTreeMap::new())
}

/// A piece of the innermost loop, or all of it, without the conditions that are decided there.
fn piece(inner: &For, body: &[Stmt], at: Option<(i64, i64)>, facts: &Facts) -> Stmt {
    let mut facts = facts.clone();
    let hi = at.map_or(inner.hi.clone(), |at| Ix::Const(at.1 - at.0));
    facts.set_axis(inner.axis, &Ix::Const(0), &hi);
    let mut body = at.map_or(body.to_vec(), |at| shifted(body, inner.axis, at));
    edit::decide(&mut body, &facts);
    edit::drop_unused(&mut body);
    Stmt::For(Box::new(For { hi, body, ..inner.clone() }))
}

#[cfg(test)]
mod tests {
    use super::pieces;
    use crate::tile::tests::{apply, context, kernel, refusals, text, without_masks};

    fn window(positions: u32, by: u32, extent: u32) -> String {
        format!(
            r#"loop kernel k(x: ptr f32, y: ptr f32) open:
  for i in 0..4: free
    for j in 0..{extent}: free
      local s: f32
      s = 0.0
      for k in 0..{positions}: reduce combine add(s) from 0.0
        v: f32 = load x[i*64 + j*{by} + k - 1] where j*{by} + k - 1 >= 0 and j*{by} + k - 1 < 64 else 0.0
        s0: f32 = s
        s1: f32 = v + s0
        s = s1
      r: f32 = s
      store y[i*{extent} + j] = r
"#
        )
    }

    #[test]
    fn the_interior_has_no_masks_and_whole_vectors() {
        let (out, _) = apply("unroll_windows", &kernel(&window(3, 1, 64)), &without_masks());
        let out = text(&out);
        let loops: Vec<&str> = out.lines().map(str::trim).filter(|l| l.starts_with("for")).collect();
        let want =
            ["i in 0..4", "j in 0..1", "j_1 in 0..48", "j_2 in 0..8", "j_3 in 0..4", "j_4 in 0..2", "j_5 in 0..1"];
        assert_eq!(loops, want.map(|l| format!("for {l}: free")));
        assert!(!out.contains("where"), "{out}");
        // The first and the last element have two positions each.
        assert_eq!(out.matches("= load").count(), 4 * 3 + 2 * 2, "{out}");
    }

    #[test]
    fn strides_round_the_interior() {
        let extents = |ctx| {
            let (out, _) = apply("unroll_windows", &kernel(&window(3, 2, 33)), &ctx);
            let out = text(&out);
            let loops = out.lines().map(str::trim).filter_map(|l| l.strip_prefix("for j"));
            loops.filter_map(|l| Some(l.split_once("..")?.1.to_string())).collect::<Vec<_>>()
        };
        assert_eq!(extents(without_masks()), ["1: free", "16: free", "8: free", "4: free", "3: free", "1: free"]);
        assert_eq!(extents(context()), ["1: free", "31: free", "1: free"]);
    }

    #[test]
    fn vectors_at_the_edges_have_lanes_that_are_off() {
        let (out, _) = apply("unroll_windows", &kernel(&window(3, 1, 64)), &context());
        let out = text(&out);
        let loops: Vec<&str> = out.lines().map(str::trim).filter(|l| l.starts_with("for")).collect();
        let want = ["i in 0..4", "j in 0..16", "j_1 in 0..32", "j_2 in 0..16"];
        assert_eq!(loops, want.map(|l| format!("for {l}: free")));
        assert_eq!(out.matches("where").count(), 2, "{out}");
        assert_eq!(super::in_vectors(14, (2, 12), 16), [(0, 14)]);
        assert_eq!(super::in_vectors(64, (0, 62), 16), [(0, 48), (48, 64)]);
    }

    #[test]
    fn other_folds_say_why_not() {
        let why = |text: &str| refusals("unroll_windows", text, &context());
        assert_eq!(why(&window(65, 1, 64)), ["loop j: its windows have many positions"]);
        assert_eq!(why(&window(3, 8, 8)), ["loop j: its loads lie apart"]);
        assert_eq!(why(&window(17, 2, 24).replace("+ j*2", "+ 64 - j*2")), ["loop j: its loads lie apart"]);
        assert_eq!(
            why(&window(3, 1, 64).replace("store y[i*64 + j]", "store y[j*4 + i]")),
            ["loop j: its results lie apart"]
        );
        let unknown = window(3, 1, 64).replace("for k in 0..3", "for k in 0..max(bx, 3)");
        assert_eq!(why(&unknown), ["loop j: the bounds of its reduction are not constants"]);
    }

    #[test]
    fn rows_of_unknown_length_stay_whole() {
        let k = kernel(
            &window(3, 1, 64)
                .replace("+ k - 1 < 64", "+ k - 1 < n")
                .replace("0..64", "0..n")
                .replace("k(", "k(n: i64 in 1..4096, "),
        );
        let (out, log) = apply("unroll_windows", &k, &context());
        assert_eq!(log.applied, ["loop j"]);
        let text = text(&out);
        assert!(text.contains("for j in 0..n: free") && !text.contains("reduce"), "{text}");
        // The middle of a window always lies inside the array.
        assert!(text.contains("load x[i*64 + j + 1 - 1]"), "{text}");
    }

    #[test]
    fn pieces_are_vectors_first() {
        assert_eq!(pieces(30, 1, 29, 16), [(0, 1), (1, 17), (17, 25), (25, 29), (29, 30)]);
        assert_eq!(pieces(7, 0, 7, 16), [(0, 4), (4, 7)]);
        assert_eq!(pieces(5, 1, 3, 1), [(0, 1), (1, 3), (3, 5)]);
        assert_eq!(pieces(0, 0, 0, 16), []);
    }
}
