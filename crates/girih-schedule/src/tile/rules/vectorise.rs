//! `vectorise`

use std::collections::BTreeMap;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::ScalarOp;
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::contraction::prev_power;
use crate::tile::edit;
use crate::tile::heuristics::vectorise::LATENCY;
use crate::tile::primitives::{self, LoopRef, Step, vector};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "vectorise",
    doc: "\
Runs innermost loops in vector registers. A free loop takes as many iterations at a time as a register holds elements of
the widest type in its body; a reduction that may be reassociated also keeps several accumulators (`ways`) going, as far as registers go.

```text
for j in 0..n: free                              for j in 0..n: free vector(16)
  %x = load a[j]                          -->      %x = load a[j]
  store c[j] = %x                                  store c[j] = %x
for j in 0..1024: reduce combine add(s)          for j in 0..1024: reduce vector(16) combine add(s) ... x 4
```

Knobs: `vectorise` (0 turns the rule off), `lanes`, `ways` (4).

Refuses when the loop holds control flow, atomics, ordered accesses or prints; when it stores anywhere but to the next
element each time, or to all of the next few; when an address is computed per element; when the order of its reduction is
fixed; when it only moves elements that lie apart; and when it runs too few times to fill a vector.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    if !ctx.knobs.vectorise {
        log.skipped("kernel", "knob off");
        return vec![];
    }
    let mut steps: BTreeMap<(u32, u32), Vec<LoopRef>> = BTreeMap::new();
    primitives::look(p, &mut |at, f| {
        let innermost = f.body.iter().all(|s| walk::bodies(s).is_empty());
        if !innermost || f.kind == LoopKind::Serial || f.place != Place::None || f.body.is_empty() {
            return true;
        }
        let site = axis_site(p, f.axis);
        if let Some(of) = log.outcome(site, vector::legal(p, f).and_then(|()| lanes(p, ctx, f))) {
            steps.entry(of).or_default().push(at);
        }
        false
    });
    steps.into_iter().map(|((lanes, ways), loops)| Step::Vector { loops, lanes, ways }).collect()
}

/// How many lanes a loop has, and how many vectors of accumulators.
fn lanes(kernel: &Kernel, ctx: &Context, f: &For) -> Result<(u32, u32), String> {
    let varying = edit::varying(&f.body, f.axis);
    let bytes = f.body.iter().map(|s| widest(kernel, s)).max().unwrap_or(1);
    let scattered = |s: &Stmt| match s {
        Stmt::Load { mem, .. } => !close(affine::coef(&mem.index, f.axis, &varying)),
        Stmt::Read { buf, idx, .. } => !contiguous(affine::buf_stride(&kernel.bufs[*buf], idx, f.axis, &varying)),
        _ => false,
    };
    let computes = f.body.iter().any(|s| matches!(s, Stmt::Let { op, .. } if *op != ScalarOp::Copy));
    if !computes && f.body.iter().any(scattered) {
        return Err("it only moves elements that lie apart".to_string());
    }
    let native = ctx.target.lanes_of(bytes.into());
    let lanes = ctx.knobs.lanes.map_or(native, prev_power);
    let trip = edit::most_trips(f).map(|t| t.min(1 << 20) as u32);
    // A last step with some lanes masked off is not slower than a whole one.
    let can_be_off = |least| edit::can_be_off(kernel, least, &f.body);
    let off = ctx.target.vector.masks.is_some_and(can_be_off);
    let free = f.kind == LoopKind::Free;
    let fits = |t: u32| if off && free && ctx.knobs.lanes.is_none() { t.next_power_of_two() } else { prev_power(t) };
    let lanes = trip.map_or(lanes, |t| lanes.min(fits(t)));
    if lanes < 2 || trip.is_some_and(|t| t < 4) {
        return Err("too few iterations to fill a vector".to_string());
    }
    let ways = f.combine.as_ref().map_or(1, |combine| {
        // Half of the registers hold accumulators, of all that the loop folds.
        let most = (ctx.target.vector.registers / 2 / combine.accs.len().max(1) as u32).max(1);
        ways_of(trip, lanes, prev_power(ctx.knobs.ways.min(most)), off)
    });
    Ok((lanes, ways))
}

/// How many vectors a reduction adds to in turn. The elements that whole groups of vectors leave over are added vector by vector where
/// lanes can be off, and one by one elsewhere, so a short row takes few vectors, which leave few elements over.
fn ways_of(trip: Option<u32>, lanes: u32, most: u32, off: bool) -> u32 {
    let Some(trip) = trip else { return most };
    let cycles = |ways: u32| {
        let group = lanes * ways;
        let left = trip % group;
        let left = if off { left.div_ceil(lanes) } else { left };
        trip / group * ways.max(LATENCY) + LATENCY * (ways.ilog2() + left)
    };
    let powers = (0..=most.ilog2()).map(|bits| 1 << bits).filter(|ways| ways * lanes <= trip);
    powers.rev().min_by_key(|ways| cycles(*ways)).unwrap_or(1)
}

fn contiguous(stride: Stride) -> bool {
    matches!(stride, Stride::Same | Stride::Unit)
}

/// True if elements lie side by side, or so close together that the elements between them may be loaded as well.
fn close(step: Option<Ix>) -> bool {
    matches!(step, Some(Ix::Const(0..=affine::MOST_APART)))
}

/// Bytes of the widest number a statement works on.
pub(super) fn widest(kernel: &Kernel, s: &Stmt) -> u32 {
    let mut bytes = 1;
    let mut see = |v: ValId| {
        if let Some(Val { ty: Ty::Num(d), .. }) = kernel.vals.get(v) {
            bytes = bytes.max(d.bytes() as u32);
        }
    };
    match s {
        Stmt::Let { dst, args, .. } => {
            see(*dst);
            for a in args {
                match a {
                    Opnd::Val(v) => see(*v),
                    Opnd::Const { .. } => {}
                }
            }
        }
        Stmt::Index { dst, .. } | Stmt::Load { dst, .. } | Stmt::Read { dst, .. } => see(*dst),
        Stmt::Store { mem, .. } => bytes = bytes.max(mem.elem.bytes() as u32),
        Stmt::Write { buf, .. } => {
            if let Some(Buf { ty: Ty::Num(d), .. }) = kernel.bufs.get(*buf) {
                bytes = bytes.max(d.bytes() as u32);
            }
        }
        _ => {}
    }
    bytes
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{SOFTMAX, apply, context, kernel, refusals, text, with_knobs};

    fn one(line: &str) -> String {
        format!(
            "loop kernel k(p: ptr f32, q: ptr i64, n: i32):\n  local t: f32[64]\n  for j in 0..64: free\n    {line}\n"
        )
    }

    #[test]
    fn lanes_follow_the_widest_type_and_the_trip_count() {
        for (loops, lanes) in [
            (one("store p[j] = 1.0"), 16),
            (one("store q[j] = 1"), 8),
            (one("store p[j] = 1.0").replace("0..64", "0..8"), 8),
            (one("store p[j] = 1.0").replace("0..64", "0..min(8, n)"), 8),
        ] {
            let (out, _) = apply("vectorise", &kernel(&loops), &context());
            assert!(text(&out).contains(&format!("free vector({lanes})")), "{}", text(&out));
        }
        let (out, _) = apply("vectorise", &kernel(&one("store p[j] = 1.0")), &with_knobs(&["lanes=4"]));
        assert!(text(&out).contains("free vector(4)"));
    }

    #[test]
    fn dimensions_of_one_element_are_no_obstacle() {
        let loops = one("t[j, 0] = 1.0").replace("f32[64]", "f32[64, 1]");
        let (out, _) = apply("vectorise", &kernel(&loops), &context());
        assert!(text(&out).contains("free vector(16)"), "{}", text(&out));
        let apart = one("t[j, 0] = 1.0").replace("f32[64]", "f32[64, 2]");
        let why = "loop j: it writes elements that do not follow one another";
        assert_eq!(refusals("vectorise", &apart, &context()), [why]);
    }

    #[test]
    fn assertions_run_in_vectors() {
        let k = one("x: f32 = load p[j]\n    c: i1 = x < 1.0\n    assert c, \"small\"");
        let (out, _) = apply("vectorise", &kernel(&k), &context());
        assert!(text(&out).contains("free vector(16)"), "{}", text(&out));
    }

    #[test]
    fn short_reductions_keep_fewer_accumulators() {
        for (n, ways) in [(64, " x 4"), (32, " x 2"), (16, "\n")] {
            let k = SOFTMAX.replace("1024", &n.to_string());
            let (out, _) = apply("vectorise", &kernel(&k), &context());
            let out = text(&out);
            let line = out.lines().find(|l| l.contains("combine add")).unwrap().to_string() + "\n";
            assert!(line.contains("reduce vector(16)") && line.contains(ways), "{line}");
        }
    }

    #[test]
    fn short_rows_leave_little_over() {
        let ways = |trip| super::ways_of(Some(trip), 16, 4, false);
        assert_eq!([ways(4096), ways(64), ways(128), ways(197)], [4; 4]);
        assert_eq!([ways(49), ways(16), ways(33)], [1, 1, 2]);
        assert_eq!(super::ways_of(None, 16, 4, false), 4);
        // Where lanes can be off, 40 elements that four vectors leave over are three vectors more.
        let ways = |trip| super::ways_of(Some(trip), 16, 4, true);
        assert_eq!([ways(1000), ways(197), ways(112), ways(33), ways(17)], [4, 4, 2, 2, 1]);
    }

    #[test]
    fn what_does_not_run_in_vectors_is_refused() {
        for (line, why) in [
            ("store p[j*2] = 1.0", "it stores to elements that do not follow one another"),
            ("t[63 - j] = 1.0", "it writes elements that do not follow one another"),
            ("o: i64 = atomic add q[j], 1", "it holds an atomic"),
            ("print \"%d\", n", "it prints"),
            ("store p[j] = 1.0 release", "it holds an ordered access"),
            ("r: ptr f32 = p + n", "it computes addresses"),
        ] {
            assert_eq!(refusals("vectorise", &one(line), &context()), [format!("loop j: {why}")]);
        }
        let few = one("store p[j] = 1.0").replace("0..64", "0..3");
        assert_eq!(refusals("vectorise", &few, &context()), ["loop j: too few iterations to fill a vector"]);
        let fixed = SOFTMAX.replace(" combine max.nan(m) from -inf", "").replace(" combine add(s) from -0.0", "");
        let (_, log) = apply("vectorise", &kernel(&fixed), &context());
        assert_eq!(log.skipped.len(), 2);
        assert_eq!(log.skipped[0].1, "the order of its reduction is fixed");
    }
}
