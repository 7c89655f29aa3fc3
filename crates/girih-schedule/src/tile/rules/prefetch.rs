//! `prefetch`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::edit::most_trips;
use crate::tile::heuristics::prefetch::{AHEAD, ROUNDS};
use crate::tile::primitives::prefetch::panel::{self, Panel};
use crate::tile::primitives::prefetch::{self, Piece};
use crate::tile::primitives::{self, Step};
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

The panels that register tiles read, such as packed weights, are contiguous, but the processor follows memory to the end of a page only.
Panels of several pages are prefetched, too. Where loops around a panel read it again and again, the first pass would wait for memory, and
the others would leave memory idle. Then each iteration asks for its part of the next panel.

```text
for i in 0..7: free                              for i in 0..7: free
  for kk in 0..144: reduce                         for kk in 0..144: reduce
    for j in 0..32: free vector(16)         -->      prefetch w[k0*4608 + (i*144 + kk)//2*16 + 4608]
      b: f32 = load w[k0*4608 + kk*32 + j]           for j in 0..32: free vector(16)
      ..                                               b: f32 = load w[k0*4608 + kk*32 + j]
                                                       ..
```

Rows that a table gives, `a[rows[i] + step*32 + k]`, are at no known distance from each other. Where the next step of a serial loop goes
on in each of them, each row's next piece is prefetched while this one is copied.

A pass through a row whose elements are in the cache asks for the memory that a later pass writes. A processor reads a line before it
changes it; a pass that only writes would wait for that.

```text
for k in 0..1024: reduce vector(16)              for k in 0..1024: reduce vector(16)
  exp[k] = exp(x[r*1024 + k] - largest)            prefetch y[r*1024 + k]
  sum <- sum + exp[k]                      -->     exp[k] = exp(x[r*1024 + k] - largest)
for j in 0..1024: free vector(16)                  sum <- sum + exp[k]
  store y[r*1024 + j] = exp[j] * scale           for j in 0..1024: free vector(16)
                                                   store y[r*1024 + j] = exp[j] * scale
```

A pass that touches no memory, only arrays of its own, asks for what an earlier pass reads in the next block.

Knob: `prefetch` (0 turns the rule off).

Refuses pieces shorter than a line of the cache, or so long that the processor follows them by itself; pieces that lie less
than 2 KiB apart; loops whose iterations are few, or read no more than a core's first cache keeps; and pieces with holes.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let (mut steps, mut sites, mut again) = (vec![], vec![], vec![]);
    primitives::look(p, &mut |at, f| {
        let panels = if prefetch::sums_in_registers(f) { panel::panels(&p.body, f) } else { vec![] };
        let far = |panel: &Panel<'_>| panel.all.is_none_or(|all| all > ctx.target.cache(1));
        let ask = panels.iter().any(far);
        again.extend(panels.into_iter().map(|panel| (panel.mem.base, panel.start)));
        if ask {
            sites.push(f.axis);
            steps.push(Step::PrefetchPanel { at });
            return false;
        }
        let Some(ahead) = far_ahead(f, ctx.target.cache(1), &again) else { return true };
        sites.push(f.axis);
        steps.push(Step::Prefetch { at, ahead });
        false
    });
    // Rows of tables, in loops that ask for nothing yet.
    primitives::look(p, &mut |at, f| {
        let stages = f.kind == LoopKind::Serial && f.body.iter().any(|s| matches!(s, Stmt::Stage { .. }));
        if !stages || steps.iter().any(|s| matches!(s, Step::Prefetch { at: other, .. } if *other == at)) {
            return true;
        }
        let asking = prefetch::ask_in_rows(&mut p.clone(), &mut f.clone(), 1);
        if !asking.is_empty() {
            sites.extend(asking);
            steps.push(Step::Prefetch { at, ahead: 1 });
        }
        true
    });
    for pair in prefetch::passes::passes(p, &p.body) {
        sites.push(pair[1].axis);
        let loops = pair.into_iter().flat_map(|f| primitives::names_of(p, &[f])).collect();
        steps.push(Step::PrefetchPass { loops });
    }
    for axis in sites {
        match ctx.knobs.prefetch {
            true => log.applied(axis_site(p, axis)),
            false => log.skipped(axis_site(p, axis), "knob off"),
        }
    }
    if ctx.knobs.prefetch { steps } else { vec![] }
}

/// How many iterations ahead a loop asks for what it reads, if that is worth it. Memory that begins like a panel of
/// `again` was asked for before.
fn far_ahead(f: &For, cache: u64, again: &[(ValId, Ix)]) -> Option<u32> {
    let trips = most_trips(f)?;
    let ahead = |bytes: u64| (AHEAD / bytes.max(1)).clamp(4, 32);
    let new = |piece: &Piece<'_>| piece.start(f).is_none_or(|start| !again.contains(&start));
    let each = prefetch::far_pieces(f, cache).into_iter().filter(new).map(|piece| ahead(piece.bytes));
    each.filter(|n| trips >= ROUNDS * n).max().and_then(|n| u32::try_from(n).ok())
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
    fn panels_of_register_tiles_are_asked_for() {
        let panel = |terms: u32| {
            format!(
                "  for k in 0..{terms}: reduce\n    local r: f32[32] register(16)\n    for j in 0..32: free\n      a: f32 = load A[k*32 + j]\n      r[j] = a\n"
            )
        };
        assert_eq!(asked(&panel(64)), ["prefetch A[(k + 16)*32]", "prefetch A[(k + 16)*32 + 16]"]);
        // A page, and a loop that keeps nothing in registers.
        assert_eq!(asked(&panel(48)), [""; 0]);
        assert_eq!(asked(&panel(64).replace("reduce", "free").replace(" register(16)", "")), [""; 0]);
    }

    /// A panel of columns of weights that two loops over rows read again, in each stretch of a sum.
    fn passes(stretches: u32, index: &str) -> String {
        format!(
            "  for s in 0..{stretches}: serial\n   for p in 0..2: free\n    for i in 0..7: free\n     for k in 0..36: reduce\n      \
             local r: f32[32] register(16)\n      for j in 0..32: free\n       a: f32 = load A[{index}]\n       r[j] = a\n"
        )
    }

    #[test]
    fn passes_over_a_panel_ask_for_the_next_one() {
        let panel = |stretches| asked(&passes(stretches, "s*1152 + k*32 + j"));
        // 72 lines in 504 iterations: each is asked for four times at most.
        assert_eq!(panel(32), ["prefetch A[s*1152 + ((p*7 + i)*36 + k)//4*16 + 1152]"]);
        // More lines than iterations.
        let wide = passes(32, "s*18432 + k*512 + q*32 + j")
            .replace("      local", "      for q in 0..16: reduce\n       local");
        let wide = wide
            .replace("      for j", "       for j")
            .replace("       a:", "        a:")
            .replace("       r[", "        r[");
        let made = asked(&wide);
        assert_eq!(made.len(), 3, "{made:?}");
        assert_eq!(made[2], "prefetch A[s*18432 + ((p*7 + i)*36 + k)*48 + 18464]");
        // The first cache keeps all of it, the panel has holes, and nothing reads it again.
        assert_eq!(panel(4), [""; 0]);
        assert_eq!(asked(&passes(32, "s*2304 + k*64 + j")), [""; 0]);
        assert_eq!(asked(&passes(32, "((s*2 + p)*7 + i)*1152 + k*32 + j")), [""; 0]);
    }

    /// A row that is read for its largest element, folded a second time, and written.
    fn row(second: &str, stored: &str) -> String {
        format!(
            "  local m: f32\n  local s: f32\n  m = -inf\n  for i in 0..1024: reduce vector(16) combine max(m) from -inf x 4\n    \
             a: f32 = load A[bx*n + i]\n    m0: f32 = m\n    m1: f32 = max(m0, a)\n    m = m1\n  s = 0.0\n  top: f32 = m\n  \
             for k in 0..1024: reduce vector(16) combine add(s) from -0.0 x 4\n    b: f32 = load {second}\n    d: f32 = b - top\n    \
             s0: f32 = s\n    s1: f32 = s0 + d\n    s = s1\n  total: f32 = s\n  \
             for j in 0..1024: free vector(16)\n    store {stored} = total\n"
        )
    }

    #[test]
    fn a_pass_over_known_elements_asks_for_what_the_next_one_writes() {
        assert_eq!(asked(&row("A[bx*n + k]", "A[bx*n + j + 2048]")), ["prefetch A[bx*n + k + 2048]"]);
        // Weights of all rows are near, too.
        assert_eq!(asked(&row("A[k]", "A[bx*n + j + 2048]")).len(), 1);
        // What reads from memory waits for that already, and addresses must be known.
        for (second, stored) in [
            ("A[bx*n + k + 8]", "A[bx*n + j + 2048]"),
            ("A[bx*n + k]", "A[bx*n + j*2 + 2048]"),
            ("A[bx*n + k]", "A[bx*n + j + 2048] release"),
        ] {
            let row = row(second, stored).replace("] release = total", "] = total release");
            assert_eq!(asked(&row), [""; 0], "{row}");
        }
        // Short rows, and a pass over other elements.
        assert_eq!(asked(&row("A[bx*n + k]", "A[bx*n + j + 2048]").replace("1024: ", "128: ")), [""; 0]);
        assert_eq!(asked(&row("A[bx*n + k]", "A[bx*n + j + 2048]").replace("k in 0..1024", "k in 0..512")), [""; 0]);
    }

    #[test]
    fn a_pass_over_arrays_asks_for_what_the_next_block_reads() {
        let passes = |index: &str, middle: &str| {
            format!(
                "  local x: f32[1024]\n  for i in 0..1024: free vector(16)\n    a: f32 = load A[{index}]\n    x[i] = a\n  \
                 for k in 0..1024: free vector(16)\n    b: f32 = x[k]\n    c: f32 = b + b\n    {middle}\n"
            )
        };
        assert_eq!(asked(&passes("bx*n + i", "x[k] = c")), ["prefetch A[(bx + 1)*n + k]"]);
        // The same in each block, elements apart, and a pass with memory of its own.
        for (index, middle) in [("i", "x[k] = c"), ("bx*n + i*2", "x[k] = c"), ("bx*n + i", "store A[k] = c")] {
            assert_eq!(asked(&passes(index, middle)), [""; 0], "{index} {middle}");
        }
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
