//! `prefetch`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::tile::Context;
use crate::tile::affine;
use crate::tile::edit::{self, Visit, most_trips};
use crate::tile::heuristics::prefetch::{AHEAD, FORESEEN, LONGEST, ROUNDS};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "prefetch",
    doc: "\
Prefetches memory some iterations before it is read, if a loop reads short pieces that lie far apart. A processor foresees accesses
to contiguous memory and to small strides. Pieces on other pages, though, arrive one after another, each with the full latency of
memory, since the work between two of them fills the window in which the processor looks ahead.

```text
for kk in 0..256: reduce                         for kk in 0..256: reduce
  for j in 0..32: free vector(16)                  prefetch B[(kk + 16)*4096 + jb*32]
    b: f32 = load B[kk*4096 + jb*32 + j]   -->     prefetch B[(kk + 16)*4096 + jb*32 + 16]
    ..                                             for j in 0..32: free vector(16)
                                                     b: f32 = load B[kk*4096 + jb*32 + j]
                                                     ..
```

A prefetch is for the data of a later iteration, at least 4 and at most 32 ahead, so that some 2 KiB are on their way. The data need
not exist: a prefetch cannot fail.

Rows that a table gives, `a[rows[i] + step*32 + k]`, are at no known distance from each other. Where the next step of a serial loop goes
on in each of them, each row's next piece is prefetched while this one is copied.

Knob: `prefetch` (0 turns the rule off).

Refuses pieces shorter than a line of the cache, or so long that the processor follows them by itself; pieces that lie less
than 2 KiB apart; loops whose iterations are few, or read no more than a core's first cache keeps; and pieces with holes.
",
    run,
};

/// Bytes that the processor brings at once.
const LINE: u64 = 64;

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let far = far_pieces(p, ctx, log);
    let on = rows_that_go_on(far.as_ref().unwrap_or(p), ctx, log);
    on.or(far)
}

fn far_pieces(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    edit::rewrite(p, &mut |kernel, s| {
        let Stmt::For(f) = s else { return Visit::Into };
        let asked = pieces(f, ctx.target.cache(1));
        if asked.is_empty() {
            return Visit::Into;
        }
        let site = axis_site(kernel, f.axis);
        if !ctx.knobs.prefetch {
            log.skipped(site, "knob off");
            return Visit::Leave;
        }
        log.applied(site);
        let mut new = f.clone();
        new.body.splice(0..0, asked);
        Visit::Replace(vec![Stmt::For(new)])
    })
}

/// Prefetches the pieces of rows that a stage reads where a table says, if the next iteration of a serial loop around goes on in each row.
fn rows_that_go_on(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let mut out = p.clone();
    let mut body = std::mem::take(&mut out.body);
    let mut sites = vec![];
    walk::visit_mut(&mut body, &mut |s| {
        let Stmt::For(steps) = s else { return };
        if steps.kind != LoopKind::Serial {
            return;
        }
        let stages =
            steps.body.iter_mut().filter_map(|s| if let Stmt::Stage { body, .. } = s { Some(body) } else { None });
        for s in stages.flatten() {
            let Stmt::For(rows) = s else { continue };
            let next = next_pieces(&mut out, steps.axis, rows);
            if !next.is_empty() {
                sites.push(axis_site(&out, rows.axis));
                rows.body.splice(0..0, next);
            }
        }
    });
    if sites.is_empty() {
        return None;
    }
    for site in sites {
        match ctx.knobs.prefetch {
            true => log.applied(site),
            false => log.skipped(site, "knob off"),
        }
    }
    out.body = body;
    ctx.knobs.prefetch.then_some(out)
}

/// The prefetches of what each iteration of `rows` reads in the next iteration of the loop over `step`, behind the entries of the tables
/// that they need.
fn next_pieces(kernel: &mut Kernel, step: AxisId, rows: &For) -> Vec<Stmt> {
    let (mut asked, mut found): (Vec<Stmt>, Vec<Read<'_>>) = (vec![], vec![]);
    if rows.place != Place::None || matches!(rows.body.first(), Some(Stmt::Read { .. } | Stmt::Prefetch { .. })) {
        return vec![];
    }
    loads(&rows.body, &mut vec![], &mut found);
    let (own, mut done) = (refs(&rows.body).vals_defined, vec![]);
    for (mem, inner) in &found {
        let bytes = mem.elem.bytes();
        let goes_on = mem.index.linear(step).and_then(|(by, _)| u64::try_from(by.as_const()?).ok());
        let piece = piece(&mem.index, inner).filter(|n| Some(*n) == goes_on).map(|n| n * bytes);
        let Some(piece) = piece.filter(|n| (LINE..=LONGEST).contains(n) && !done.contains(mem)) else { continue };
        let Some(entries) = entries(kernel, rows, &mem.index, &own, inner) else { continue };
        done.push(mem);
        let start = mem.index.subst_axes(&mut |a| {
            let first = inner.iter().any(|(axis, _)| *axis == a).then_some(Ix::Const(0));
            if a == step { Some(Ix::Axis(a) + Ix::Const(1)) } else { first }
        });
        let start = start.subst_vals(&mut |v, zext| {
            entries.iter().find(|(of, ..)| *of == v).map(|(_, val, _)| Ix::Val { val: *val, zext })
        });
        asked.extend(entries.into_iter().map(|(.., read)| read));
        for line in 0..piece.div_ceil(LINE) {
            let index = Ix::add(start.clone(), Ix::Const((line * LINE / bytes) as i64));
            asked.push(Stmt::Prefetch { mem: Mem { index, ..(*mem).clone() } });
        }
    }
    asked
}

/// A value of a body, its copy, and the read that makes the copy.
type Entry = (ValId, ValId, Stmt);

/// Copies of the entries of tables that an index mentions; `None` if it mentions none, or another value of the body.
fn entries(
    kernel: &mut Kernel,
    rows: &For,
    index: &Ix,
    own: &BTreeSet<ValId>,
    inner: &[(AxisId, u64)],
) -> Option<Vec<Entry>> {
    let wanted: Vec<ValId> = index.vals().into_iter().filter(|v| own.contains(v)).collect();
    let mut reads = BTreeMap::new();
    walk::visit(&rows.body, &mut |s| {
        if let Stmt::Read { dst, buf, idx } = s
            && !idx.iter().any(|ix| !ix.vals().is_empty() || inner.iter().any(|(a, _)| ix.has_axis(*a)))
        {
            reads.insert(*dst, (*buf, idx.clone()));
        }
    });
    let entry = |v: &ValId| {
        let (buf, idx) = reads.get(v).cloned()?;
        let val = kernel.vals.push(kernel.vals[*v].clone());
        Some((*v, val, Stmt::Read { dst: val, buf, idx }))
    };
    let found: Option<Vec<Entry>> = wanted.iter().map(entry).collect();
    found.filter(|found| !found.is_empty())
}

/// The prefetches of each iteration of a loop.
fn pieces(f: &For, cache: u64) -> Vec<Stmt> {
    // A loop that prefetches already gets no more prefetches.
    if matches!(f.body.first(), Some(Stmt::Prefetch { .. })) {
        return vec![];
    }
    let Some(trips) = most_trips(f).filter(|_| f.place == Place::None) else { return vec![] };
    let varying = refs(&f.body).vals_defined;
    let (mut asked, mut found): (Vec<Stmt>, Vec<Read<'_>>) = (vec![], vec![]);
    loads(&f.body, &mut vec![], &mut found);
    for (mem, inner) in &found {
        let bytes = mem.elem.bytes();
        let Some(stride) = affine::coef(&mem.index, f.axis, &varying) else { continue };
        // A stride that only the launch knows may be far.
        let far = stride.as_const().is_none_or(|n| {
            let apart = n.unsigned_abs().saturating_mul(bytes);
            apart > FORESEEN && apart.saturating_mul(trips) > 2 * cache
        });
        let Some(piece) = piece(&mem.index, inner).map(|n| n * bytes) else { continue };
        let ahead = (AHEAD / piece.max(1)).clamp(4, 32);
        if !far || !(LINE..=LONGEST).contains(&piece) || trips < ROUNDS * ahead {
            continue;
        }
        let start = mem.index.subst_axes(&mut |a| {
            let first = inner.iter().any(|(axis, _)| *axis == a).then_some(Ix::Const(0));
            if a == f.axis { Some(Ix::Axis(a) + Ix::Const(ahead as i64)) } else { first }
        });
        for line in 0..piece.div_ceil(LINE) {
            let index = Ix::add(start.clone(), Ix::Const((line * LINE / bytes) as i64));
            let one = Stmt::Prefetch { mem: Mem { index, ..(*mem).clone() } };
            if !asked.contains(&one) {
                asked.push(one);
            }
        }
    }
    asked
}

/// A load of whole bytes, and the loops around it with their iterations.
type Read<'a> = (&'a Mem, Vec<(AxisId, u64)>);

/// The loads in a body, but for those in loops whose iterations are not known.
fn loads<'a>(body: &'a [Stmt], inner: &mut Vec<(AxisId, u64)>, out: &mut Vec<Read<'a>>) {
    for s in body {
        match s {
            Stmt::Load { mem, order: Order::Weak, .. } if mem.elem.bits() >= 8 => out.push((mem, inner.clone())),
            Stmt::For(l) => {
                let Some(trips) = most_trips(l) else { continue };
                inner.push((l.axis, trips));
                loads(&l.body, inner, out);
                inner.pop();
            }
            _ => {}
        }
    }
}

/// How many elements side by side the inner loops read, where these are all.
fn piece(index: &Ix, inner: &[(AxisId, u64)]) -> Option<u64> {
    let mut steps = BTreeMap::<u64, u64>::new();
    for (axis, trips) in inner {
        match index.linear(*axis)?.0.as_const()? {
            0 => {}
            step @ 1.. => *steps.entry(step as u64).or_insert(1) *= trips,
            _ => return None,
        }
    }
    let mut wide = 1u64;
    for (step, trips) in steps {
        if step > wide {
            return None;
        }
        wide = wide.max(step.checked_mul(trips.checked_sub(1)?)?.checked_add(wide)?);
    }
    Some(wide)
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, text, with_knobs};

    fn asked(body: &str) -> Vec<String> {
        let k = kernel(&format!("loop kernel k(A: ptr f32, n: i64):\n{body}"));
        let (out, _) = apply("prefetch", &k, &context());
        text(&out).lines().map(str::trim).filter(|l| l.starts_with("prefetch")).map(String::from).collect()
    }

    fn rows(step: &str, columns: u32) -> String {
        format!(
            "  local b: f32[{columns}]\n  for k in 0..256: free\n    for j in 0..{columns}: free\n      a: f32 = load A[k*{step} + j]\n      b[j] = a\n"
        )
    }

    #[test]
    fn short_pieces_far_apart_are_asked_for() {
        assert_eq!(asked(&rows("4096", 32)), ["prefetch A[(k + 16)*4096]", "prefetch A[(k + 16)*4096 + 16]"]);
        assert_eq!(asked(&rows("4096", 64)).first().map(String::as_str), Some("prefetch A[(k + 8)*4096]"));
        // As far as the launch says.
        assert_eq!(asked(&rows("n", 16)), ["prefetch A[(k + 32)*n]"]);
        // Two loops over one piece.
        let two =
            rows("4096", 32).replace("for j in 0..32: free\n", "for p in 0..2: free\n     for j in 0..32: free\n");
        let two = two.replace("k*4096 + j", "k*4096 + p*32 + j").replace("      ", "       ");
        assert_eq!(asked(&two).len(), 4);
    }

    #[test]
    fn what_the_processor_foresees_is_left_to_it() {
        for (step, columns) in [("4096", 256), ("512", 32), ("4096", 8), ("1", 32)] {
            assert_eq!(asked(&rows(step, columns)), [""; 0], "{step} {columns}");
        }
        let few = rows("4096", 32).replace("0..256", "0..8");
        let holes = rows("4096", 32).replace("+ j]", "+ j*2]");
        let ordered = rows("4096", 32).replace("+ j]", "+ j] acquire");
        for body in [few, holes, ordered] {
            assert_eq!(asked(&body), [""; 0], "{body}");
        }
    }

    #[test]
    fn the_knob_turns_it_off() {
        let k = kernel(&format!("loop kernel k(A: ptr f32, n: i64):\n{}", rows("4096", 32)));
        let (out, log) = apply("prefetch", &k, &with_knobs(&["prefetch=0"]));
        assert!(!text(&out).contains("prefetch"));
        assert_eq!(log.skipped, [("loop k".to_string(), "knob off".to_string())]);
    }
}
