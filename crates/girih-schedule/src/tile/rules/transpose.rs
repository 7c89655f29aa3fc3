//! `transpose`

use std::collections::BTreeMap;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::refs;
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::contraction::prev_power;
use crate::tile::edit::{self, Visit, const_trip};
use crate::tile::heuristics::named;
use crate::tile::heuristics::transpose::{MOST, MOST_SQUARES};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "transpose",
    doc: "\
Moves a square of elements that is read along one axis and written along the other in vector registers: both loops
become vectors, read along the outer one and written along the inner one, and transposed in between.

```text
for kk in 0..16: free                            for kk in 0..16: free vector(16)
  for j in 0..16: free                             for j in 0..16: free vector(16)
    %x = block[j, kk]                     -->        %x = block[j, kk]
    pack[kk, j] = %x                                 pack[kk, j] = %x
```

Knobs: `transpose` (0 turns the rule off), `lanes`.

Refuses when the rows of a square are more than the vector registers, the loops are not whole squares,
an access is masked or ordered, and where something is computed on the way.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    edit::rewrite(p, &mut |kernel, s| {
        let Stmt::For(outer) = s else { return Visit::Into };
        let [Stmt::For(inner)] = &outer.body[..] else { return Visit::Into };
        if !turns(kernel, outer, inner) {
            return Visit::Into;
        }
        let site = axis_site(kernel, outer.axis);
        match lanes_of(kernel, ctx, outer, inner) {
            Ok(lanes) => {
                log.applied(site);
                Visit::Replace(vec![squares(kernel, outer, inner, lanes)])
            }
            Err(why) => {
                log.skipped(site, why);
                Visit::Leave
            }
        }
    })
}

/// True if a pair of loops reads along the outer axis, far apart along the inner one, and writes along the inner one.
fn turns(kernel: &Kernel, outer: &For, inner: &For) -> bool {
    let open = |f: &For| f.kind == LoopKind::Free && f.place == Place::None;
    let (Some(load), Some(store)) = (inner.body.first(), inner.body.last()) else { return false };
    let varying = refs(&inner.body).vals_defined;
    let along = |s: &Stmt, axis: AxisId| match s {
        Stmt::Load { mem, .. } | Stmt::Store { mem, .. } => affine::stride(&mem.index, axis, &varying),
        Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } => match kernel.bufs.get(*buf) {
            Some(b) => affine::buf_stride(b, idx, axis, &varying),
            None => Stride::Irregular,
        },
        _ => Stride::Irregular,
    };
    let (t, s) = (outer.axis, inner.axis);
    let reads = matches!(load, Stmt::Load { .. } | Stmt::Read { .. });
    let writes = matches!(store, Stmt::Store { .. } | Stmt::Write { .. });
    let read_along_t = along(load, t) == Stride::Unit && along(load, s) == Stride::Far;
    let written_along_s = along(store, s) == Stride::Unit && along(store, t) == Stride::Far;
    open(outer) && open(inner) && reads && writes && read_along_t && written_along_s
}

/// The pair of loops as vectors, square by square where there are many.
fn squares(kernel: &mut Kernel, outer: &For, inner: &For, lanes: u32) -> Stmt {
    let place = Place::Vector { lanes };
    let pair = |outer: For, inner: For| {
        let inner = Stmt::For(Box::new(For { place, ..inner }));
        Stmt::For(Box::new(For { place, body: vec![inner], ..outer }))
    };
    let side = |f: &For| const_trip(f).unwrap_or(0) / u64::from(lanes);
    let (t, s) = (side(outer), side(inner));
    if t * s <= MOST_SQUARES {
        return pair(outer.clone(), inner.clone());
    }
    let [t1, t2] = ["1", "2"].map(|d| edit::new_axis(kernel, outer.axis, d));
    let [s1, s2] = ["1", "2"].map(|d| edit::new_axis(kernel, inner.axis, d));
    let at = |of: AxisId, within: AxisId| Ix::Axis(of) * Ix::Const(lanes.into()) + Ix::Axis(within);
    let by = BTreeMap::from([(outer.axis, at(t1, t2)), (inner.axis, at(s1, s2))]);
    let body = edit::place_axes(&inner.body, &by, &BTreeMap::new());
    let part = |axis, f: &For| For { axis, hi: Ix::Const(lanes.into()), ..f.clone() };
    let square = pair(part(t2, outer), For { body, ..part(s2, inner) });
    edit::free_loop(t1, Ix::Const(t as i64), vec![edit::free_loop(s1, Ix::Const(s as i64), vec![square])])
}

fn lanes_of(kernel: &Kernel, ctx: &Context, outer: &For, inner: &For) -> Result<u32, String> {
    let say = |why: &str| Err(why.to_string());
    if !ctx.knobs.transpose || !ctx.knobs.vectorise {
        return say("knob off");
    }
    let [load, store] = &inner.body[..] else { return say("something is computed on the way") };
    let (dst, value) = match (load, store) {
        (Stmt::Load { dst, .. } | Stmt::Read { dst, .. }, Stmt::Store { value, .. } | Stmt::Write { value, .. }) => {
            (*dst, *value)
        }
        _ => return say("something is computed on the way"),
    };
    if value != Opnd::Val(dst) {
        return say("it writes something other than it reads");
    }
    for s in [load, store] {
        match s {
            Stmt::Load { mask, order, .. } | Stmt::Store { mask, order, .. }
                if !mask.is_always() || *order != Order::Weak =>
            {
                return say("an access is masked or ordered");
            }
            Stmt::Read { buf, .. } if matches!(store, Stmt::Write { buf: to, .. } if to == buf) => {
                return say("it reads the buffer that it writes");
            }
            _ => {}
        }
    }
    let Some(Ty::Num(dtype)) = kernel.vals.get(dst).map(|v| v.ty) else { return say("it moves addresses") };
    // 4-bit elements have no vectors in memory, and those of one bit are masks.
    if dtype.bits() < 8 {
        return say("an element takes less than a byte of memory");
    }
    let (Some(t), Some(s)) = (const_trip(outer), const_trip(inner)) else {
        return say("its loops have no constant trip counts");
    };
    if t > MOST || s > MOST {
        return Err(format!("{t} x {s} elements are more than a block of {}", named!(MOST)));
    }
    let native = u64::from(ctx.target.lanes_of(dtype.bytes()));
    let native = ctx.knobs.lanes.map_or(native, u64::from).min(t).min(s) as u32;
    let lanes = prev_power(native);
    if lanes < 4 || !t.is_multiple_of(lanes as u64) || !s.is_multiple_of(lanes as u64) {
        return Err(format!("{t} x {s} elements cannot be cut into squares of {lanes} lanes"));
    }
    if lanes > ctx.target.vector.registers {
        return Err(format!("{lanes} vectors are more than the registers"));
    }
    Ok(lanes)
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text, with_knobs};

    const SQUARE: &str = r#"loop kernel k(p: ptr f32):
  local block: f32[16, 16]
  local pack: f32[16, 32]
  for kk in 0..16: free
    for j in 0..16: free
      x: f32 = block[j, kk]
      pack[kk, 16 + j] = x
"#;

    #[test]
    fn both_loops_of_a_square_become_vectors() {
        let (out, _) = apply("transpose", &kernel(SQUARE), &context());
        let out = text(&out);
        assert!(out.contains("for kk in 0..16: free vector(16)\n    for j in 0..16: free vector(16)"), "{out}");
        let (out, _) = apply("transpose", &kernel(SQUARE), &with_knobs(&["lanes=8"]));
        assert!(text(&out).contains("for j in 0..16: free vector(8)"), "{}", text(&out));
        // Sixteen squares of four lanes are more than is written out.
        let (out, _) = apply("transpose", &kernel(SQUARE), &with_knobs(&["lanes=4"]));
        let want = "  for kk1 in 0..4: free
    for j1 in 0..4: free
      for kk2 in 0..4: free vector(4)
        for j2 in 0..4: free vector(4)
          x: f32 = block[j1*4 + j2, kk1*4 + kk2]
          pack[kk1*4 + kk2, j1*4 + j2 + 16] = x
";
        assert!(text(&out).contains(want), "{}", text(&out));
    }

    #[test]
    fn what_is_no_plain_square_is_refused() {
        for (from, to, why) in [
            ("for j in 0..16", "for j in 0..12", "16 x 12 elements cannot be cut into squares of 8 lanes"),
            ("for j in 0..16", "for j in 0..bx", "its loops have no constant trip counts"),
            ("x: f32 = block[j, kk]", "x: f32 = load p[j*16 + kk] where j < 9", "an access is masked or ordered"),
            ("+ j] = x", "+ j] = 1.0", "it writes something other than it reads"),
        ] {
            let changed = SQUARE.replace(from, to);
            assert_eq!(refusals("transpose", &changed, &context()), [format!("loop kk: {why}")]);
        }
        let why = refusals("transpose", SQUARE, &with_knobs(&["transpose=0"]));
        assert_eq!(why, ["loop kk: knob off"]);
        // A copy of rows to rows is not a transposition.
        assert_eq!(refusals("transpose", &SQUARE.replace("block[j, kk]", "block[kk, j]"), &context()), [""; 0]);
    }
}
