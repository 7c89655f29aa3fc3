//! `wide_access`

use std::collections::BTreeMap;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::{self, Visit, const_trip};
use crate::tile::rules::axis_site;
use crate::tile::wide;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "wide_access",
    doc: "\
Lets a thread access contiguous elements at once: 16 bytes are one instruction, and nothing is fetched from memory twice.

```text
for v in 0..4: free unroll                       local x_w: f32[4]      for v in 0..4: free vector(4)
  x = load A[t*4 + v]                                                     x_w[v] = load A[t*4 + v]
  y = exp(x)                              -->    local y_w: f32[4]      for v in 0..4: free unroll
  store C[t*4 + v] = y                                                    y_w[v] = exp(x_w[v])
                                                                        for v in 0..4: free vector(4)
                                                                          store C[t*4 + v] = y_w[v]
```

Buffers that the threads of a block share are accessed in the same way, and so are rows that threads fold together: each thread folds
groups of neighbours. Arrays of a model start at multiples of 16 bytes; arrays of a tile program do if the program assumes it.

Refuses loops of other lengths than 2, 4, 8 and 16, accesses that do not start at a multiple of their size, and accesses whose mask
may hold for only some of their elements.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    edit::rewrite(p, &mut |kernel, s| {
        let Stmt::For(f) = s else { return Visit::Into };
        let straight = f.body.iter().all(|s| walk::bodies(s).is_empty());
        if (f.kind, f.place, straight) == (LoopKind::Reduce, Place::Thread, true) {
            let Some(folded) = in_groups(kernel, ctx, f) else { return Visit::Leave };
            log.applied(axis_site(kernel, f.axis));
            return Visit::Replace(vec![folded]);
        }
        let lanes = const_trip(f).filter(|n| [2, 4, 8, 16].contains(n));
        let (LoopKind::Free | LoopKind::Reduce, Place::Unroll, true, Some(lanes)) = (f.kind, f.place, straight, lanes)
        else {
            return Visit::Into;
        };
        let wide: Vec<bool> = at_once(kernel, ctx, f, lanes).into_iter().map(|n| n == lanes).collect();
        if !wide.contains(&true) {
            return Visit::Leave;
        }
        log.applied(axis_site(kernel, f.axis));
        Visit::Replace(widen(kernel, f, lanes, &wide))
    })
}

/// How many of `extent` elements along the loop each of its statements moves at once; 1 for what moves none.
fn at_once(kernel: &Kernel, ctx: &Context, f: &For, extent: u64) -> Vec<u64> {
    let varying = walk::refs(&f.body).vals_defined;
    let walk::Effects { bufs_read: read, bufs_written: written, .. } = walk::effects(&f.body);
    let of = |s: &Stmt| match s {
        Stmt::Write { buf, .. } if !read.contains(buf) => wide::shared_lanes(kernel, ctx, s, f.axis, extent),
        Stmt::Read { buf, .. } if !written.contains(buf) => wide::shared_lanes(kernel, ctx, s, f.axis, extent),
        Stmt::Write { .. } | Stmt::Read { .. } => 1,
        _ => wide::lanes(kernel, ctx, s, f.axis, extent, &varying),
    };
    f.body.iter().map(of).collect()
}

/// A fold that the threads share in groups of neighbours. A group has no more elements than every wide load takes at once, and
/// is small enough that each thread has one.
fn in_groups(kernel: &mut Kernel, ctx: &Context, f: &For) -> Option<Stmt> {
    let extent = const_trip(f).filter(|_| f.lo.is_const(0))?;
    let ways = u64::from(f.combine.as_ref()?.ways);
    let each = at_once(kernel, ctx, f, extent);
    let most = each.iter().copied().filter(|n| *n > 1).min()?;
    let lanes =
        std::iter::successors(Some(most), |n| Some(n / 2)).take_while(|n| *n > 1).find(|n| extent / n >= ways)?;
    let wide: Vec<bool> = each.iter().map(|n| *n >= lanes).collect();
    let mut lane = f.axis;
    let group = wide::in_groups(kernel, f, lanes, |axis, body| {
        lane = axis;
        body
    });
    let inner = For {
        axis: lane,
        lo: Ix::Const(0),
        hi: Ix::Const(lanes as i64),
        place: Place::Unroll,
        combine: None,
        body: group.body.clone(),
        ..f.clone()
    };
    let body = widen(kernel, &inner, lanes, &wide);
    Some(Stmt::For(Box::new(For { body, ..group })))
}

/// The loop with its wide accesses before and after it.
fn widen(kernel: &mut Kernel, f: &For, lanes: u64, wide: &[bool]) -> Vec<Stmt> {
    let (mut before, mut body, mut after) = (vec![], vec![], vec![]);
    for (s, wide) in f.body.iter().zip(wide) {
        let value = match s {
            _ if !wide => {
                body.push(s.clone());
                continue;
            }
            Stmt::Store { value: Opnd::Const { .. }, .. } | Stmt::Write { value: Opnd::Const { .. }, .. } => {
                after.push(moved(kernel, f, lanes, |_| vec![s.clone()]));
                continue;
            }
            Stmt::Load { dst: value, .. }
            | Stmt::Read { dst: value, .. }
            | Stmt::Write { value: Opnd::Val(value), .. }
            | Stmt::Store { value: Opnd::Val(value), .. } => *value,
            _ => continue,
        };
        let Val { ty, name } = kernel.vals[value].clone();
        let buf = kernel.bufs.push(Buf::new(format!("{name}_w"), ty, vec![lanes]));
        let other = kernel.vals.push(Val { ty, name });
        before.push(Stmt::Local { buf });
        let at = vec![Ix::Axis(f.axis)];
        let mut access = s.clone();
        if let Stmt::Write { idx, .. } = &mut access {
            let facts = kernel.facts();
            idx.iter_mut().for_each(|ix| *ix = wide::of_group(ix, f.axis, lanes, &facts));
        }
        walk::parts_mut(&mut access, &mut |part| match part {
            walk::PartMut::DefVal(v) if *v == value => *v = other,
            walk::PartMut::Opnd(o) if *o == Opnd::Val(value) => *o = Opnd::Val(other),
            _ => {}
        });
        if matches!(s, Stmt::Load { .. } | Stmt::Read { .. }) {
            let keep = |at| Stmt::Write { buf, idx: at, value: Opnd::Val(other) };
            before.push(moved(kernel, f, lanes, |at| vec![access, keep(at)]));
            body.push(Stmt::Read { dst: value, buf, idx: at });
        } else {
            body.push(Stmt::Write { buf, idx: at, value: Opnd::Val(value) });
            let read = |at| Stmt::Read { dst: other, buf, idx: at };
            after.push(moved(kernel, f, lanes, |at| vec![read(at), access]));
        }
    }
    before.push(Stmt::For(Box::new(For { body, ..f.clone() })));
    before.extend(after);
    before
}

/// Statements that move all elements at once.
fn moved(kernel: &mut Kernel, f: &For, lanes: u64, body: impl FnOnce(Vec<Ix>) -> Vec<Stmt>) -> Stmt {
    let axis = edit::new_axis(kernel, f.axis, "");
    let by = BTreeMap::from([(f.axis, Ix::Axis(axis))]);
    wide::at_once(axis, lanes, edit::place_axes(&body(vec![Ix::Axis(f.axis)]), &by, &BTreeMap::new()))
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const SCALE: &str = r#"tile kernel k(x: ptr f32 div 16, y: ptr f32 div 16, n: i32 div 8):
  for t in 0..128: free thread
    for v in 0..4: free unroll
      a: f32 = load x[bx*512 + t*4 + v] where t*4 + v < n
      b: f32 = a * 2.0
      store y[bx*512 + t*4 + v] = b where t*4 + v < n
"#;

    #[test]
    fn what_threads_share_is_read_at_once_where_nothing_writes_it() {
        let shared = SCALE.replace("  for t in", "  local s: f32[512] shared\n  for t in");
        let reads = shared.replace("load x[bx*512 + t*4 + v] where t*4 + v < n", "s[t*4 + v]");
        let (out, _) = apply("wide_access", &kernel(&reads), &gpu(&[]));
        assert!(text(&out).contains("for v in 0..4: free vector(4)\n      a: f32 = s[t*4 + v]\n"), "{}", text(&out));
        for other in ["s[t + v]", "s[t*4 + 3 - v]"] {
            let (out, _) = apply("wide_access", &kernel(&reads.replace("s[t*4 + v]", other)), &gpu(&[]));
            assert!(text(&out).contains(&format!("free unroll\n      a: f32 = {other}\n")), "{}", text(&out));
        }
        let written = reads.replace("      store y", "      s[t*4 + v] = b\n      store y");
        let (out, _) = apply("wide_access", &kernel(&written), &gpu(&[]));
        assert!(text(&out).contains("free unroll\n      a: f32 = s[t*4 + v]\n"), "{}", text(&out));
    }

    #[test]
    fn what_threads_share_is_written_at_once_also_in_parts_of_rows() {
        let shared = SCALE.replace("  for t in", "  local s: f32[8, 64] shared\n  for t in");
        let place = "s[(t*4 + v)//64, (t*4 + v)%64]";
        let writes =
            shared.replace("      store y[bx*512 + t*4 + v] = b where t*4 + v < n\n", &format!("      {place} = b\n"));
        assert_ne!(writes, shared);
        let (out, _) = apply("wide_access", &kernel(&writes), &gpu(&[]));
        let want = "for v_2 in 0..4: free vector(4)\n      b_1: f32 = b_w[v_2]\n      s[t*4//64, t*4%64 + v_2] = b_1\n";
        assert!(text(&out).contains(want), "{}", text(&out));
        // Parts that begin within the elements of a thread.
        let odd = writes.replace("(t*4 + v)//64, (t*4 + v)%64", "(t*4 + v + 2)//64, (t*4 + v + 2)%64");
        assert!(text(&apply("wide_access", &kernel(&odd), &gpu(&[])).0).contains("_w[v_1]\n"));
        assert!(text(&apply("wide_access", &kernel(&odd), &gpu(&[])).0).contains("s[(t*4 + v_1 + 2)//64"));
    }

    #[test]
    fn loads_go_before_and_stores_after() {
        let (out, log) = apply("wide_access", &kernel(SCALE), &gpu(&[]));
        assert_eq!(log.applied, ["loop v"]);
        let want = r#"tile kernel k(x: ptr f32 div 16, y: ptr f32 div 16, n: i32 div 8):
  for t in 0..128: free thread
    local a_w: f32[4]
    for v in 0..4: free vector(4)
      a: f32 = load x[bx*512 + t*4 + v] where t*4 < n
      a_w[v] = a
    local b_w: f32[4]
    for v_1 in 0..4: free unroll
      a_1: f32 = a_w[v_1]
      b: f32 = a_1 * 2.0
      b_w[v_1] = b
    for v_2 in 0..4: free vector(4)
      b_1: f32 = b_w[v_2]
      store y[bx*512 + t*4 + v_2] = b_1 where t*4 < n
"#;
        assert_eq!(text(&out), want);
    }

    #[test]
    fn what_is_not_aligned_or_not_masked_alike_stays() {
        for (from, to) in [
            ("n: i32 div 8", "n: i32"),
            ("x[bx*512 + t*4 + v]", "x[bx*512 + t*4 + v + 1]"),
            ("x[bx*512 + t*4 + v]", "x[bx*512 + t*4 + v*2]"),
            ("x: ptr f32 div 16", "x: ptr f32 div 8"),
        ] {
            let one = SCALE.replace(from, to).replace("store y[bx*512 + t*4 + v]", "store y[bx*512 + t*4 + v*3]");
            assert_ne!(one, SCALE);
            assert_eq!(refusals("wide_access", &one, &gpu(&[])), Vec::<String>::new(), "{to}");
        }
        // An index that differs from element to element in other ways.
        let gather = SCALE.replace("store y[bx*512 + t*4 + v]", "i: i32 = i32(b)\n      store y[i*4 + v]");
        let (out, _) = apply("wide_access", &kernel(&gather), &gpu(&[]));
        assert!(text(&out).contains("store y[i*4 + v_1] = b"), "{}", text(&out));
    }
}
