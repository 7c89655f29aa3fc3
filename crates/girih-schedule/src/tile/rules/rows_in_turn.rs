//! `rows_in_turn`

use std::collections::BTreeMap;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::{self, BufUse};
use crate::tile::Context;
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::rows_in_turn::COMBINED;
use crate::tile::primitives::privatise;
use crate::tile::primitives::{self, LoopRef, Step};
use crate::tile::rules::{axis_site, cooperative_reduce, cooperative_scan};
use crate::tile::target::MemoryKind;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "rows_in_turn",
    doc: "\
Lets all threads of a block take the rows of a tile one after the other where a row is long and there are few: the threads share its
reductions. Each row gets a buffer of its own for its part of a tile.

```text
local v: f32[4, 65536]                           for i in 0..4: serial
for i in 0..4: free                                local v: f32[1, 65536]
  m = -inf                                         m = -inf
  for j in 0..65536: reduce combine max(m)         for j in 0..65536: reduce combine max(m)
    v[i, j] <- x[i, j]                    -->        v[0, j] <- x[i, j]
    m <- max(v[i, j], m)                             m <- max(v[0, j], m)
  for k in 0..65536: free                          for k in 0..65536: free
    y[i, k] = v[i, k] - m                            y[i, k] = v[0, k] - m
```

Otherwise each row is one thread's, or scans of several rows go on side by side, each with a part of the threads and all of its results in
shared memory. `cooperative_reduce`, `cooperative_scan` and `spread_threads` then give the loops of a row to the
threads.

Refuses models' kernels (their rows are blocks), products, and rows for which one thread each takes less time: many or short ones.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if p.open {
        return None;
    }
    primitives::run(p, ctx, log, policy)
}

/// The loops over rows, outermost first, each with how deep it stands in its nest.
fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let mut nests: Vec<Vec<&For>> = vec![];
    primitives::look(p, &mut |_, f| {
        if !f.is_free_unplaced() {
            return f.place == Place::None;
        }
        let chain = edit::free_chain(f);
        if let Some(row) = Row::of(p, &chain, ctx) {
            let site = axis_site(p, f.axis);
            match row.refusal(ctx) {
                None => {
                    log.applied(format!("{site}: {} rows of {} elements", row.count, row.length));
                    nests.push(chain);
                }
                Some(why) => log.skipped(site, why),
            }
        }
        false
    });
    let all: Vec<&For> = nests.iter().flatten().copied().collect();
    if all.is_empty() {
        return vec![];
    }
    let uses = walk::buffer_uses(&p.body);
    let mut steps = vec![Step::Serial { loops: primitives::names_of(p, &all) }];
    for depth in 0..nests.iter().map(Vec::len).max().unwrap_or(0) {
        let loops: Vec<&For> =
            nests.iter().filter_map(|n| n.get(depth).copied()).filter(|f| has_own(f, p, &uses)).collect();
        let loops: Vec<LoopRef> = primitives::names_of(p, &loops);
        if !loops.is_empty() {
            steps.push(Step::Privatise { loops });
        }
    }
    steps
}

/// Returns true if iterations of a loop over rows have buffers of their own, of more than one element along the rows.
fn has_own(f: &For, p: &Kernel, uses: &BTreeMap<BufId, BufUse>) -> bool {
    privatise::parts(f, uses).into_iter().any(|(buf, at)| p.bufs[buf].shape.get(at).is_some_and(|n| *n > 1))
}

/// The rows of a nest: how many there are, and what a thread does for one.
struct Row {
    count: u64,
    /// Elements of the longest reduction or scan.
    length: u64,
    /// It has scans that threads can share, and shared memory has no room for the rows.
    scans: bool,
    product: bool,
}

impl Row {
    /// `None` where no reduction or scan of a row can be shared, or it is not known how many rows there are.
    fn of(p: &Kernel, chain: &[&For], ctx: &Context) -> Option<Row> {
        let count = chain.iter().try_fold(1u64, |n, f| n.checked_mul(const_trip(f)?))?;
        let mut row = Row { count, length: 0, scans: false, product: false };
        let (lanes, mut found) = (ctx.target.axes.lanes, false);
        let body = &chain.last()?.body;
        let tiles = walk::buffer_uses(body).into_keys().map(|buf| &p.bufs[buf]).filter(|b| b.space == Space::Scratch);
        let is_long = tiles.map(Buf::bytes).fold(0, u64::saturating_add) > ctx.target.bytes_of(MemoryKind::Shared);
        for s in body {
            let Stmt::For(f) = s else { continue };
            let folds = f.kind == LoopKind::Reduce && cooperative_reduce::refusal(f, lanes).is_none();
            let scans = is_long && cooperative_scan::is_shared(p, s);
            if folds || scans {
                row.length = row.length.max(const_trip(f)?);
                row.scans |= scans;
                found = true;
            }
        }
        row.product = walk::contractions(body).next().is_some();
        found.then_some(row)
    }

    fn refusal(&self, ctx: &Context) -> Option<String> {
        let threads = u64::from(ctx.knobs.threads);
        if self.product {
            return Some("a row holds a product".into());
        }
        // The threads have no part each of a row that another rule gives to all of them beside others.
        if self.scans {
            return None;
        }
        let one_each = self.length * self.count.div_ceil(threads);
        let in_turn = self.count.saturating_mul(self.length.div_ceil(threads) + COMBINED);
        (in_turn >= one_each)
            .then(|| format!("{} rows of {} elements take less time with a thread for each", self.count, self.length))
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const SOFTMAX: &str = r#"loop kernel k(x: ptr f32, y: ptr f32):
  local v: f32[4, 4096]
  for i in 0..4: free
    local m: f32
    m = -inf
    for j in 0..4096: reduce combine max(m) from -inf
      a: f32 = load x[i*4096 + j]
      v[i, j] = a
      m0: f32 = m
      m1: f32 = max(a, m0)
      m = m1
    top: f32 = m
    for k in 0..4096: free
      b: f32 = v[i, k]
      d: f32 = b - top
      store y[i*4096 + k] = d
"#;

    #[test]
    fn a_row_is_its_threads_and_has_its_part_of_the_tile() {
        let (out, log) = apply("rows_in_turn", &kernel(SOFTMAX), &gpu(&[]));
        assert_eq!(log.applied, ["loop i: 4 rows of 4096 elements"]);
        let made = text(&out);
        assert!(made.contains("  for i in 0..4: serial\n    local v: f32[1, 4096]\n"), "{made}");
        assert!(made.contains("v[0, j] = a\n") && made.contains("b: f32 = v[0, k]\n"), "{made}");
        // A tile that is used again behind the rows stays.
        let again = format!("{SOFTMAX}  for q in 0..4: free\n    c: f32 = v[q, 0]\n    store y[q] = c\n");
        let made = text(&apply("rows_in_turn", &kernel(&again), &gpu(&[])).0);
        assert!(made.contains("  local v: f32[4, 4096]\n  for i in 0..4: serial\n"), "{made}");
    }

    #[test]
    fn scans_take_turns_where_shared_memory_has_no_room_for_their_results() {
        let scan = r#"loop kernel k(x: ptr i32, y: ptr i32):
  local sums: i32[4, 65536]
  for i in 0..4: free
    local s: i32
    s = 0
    for k in 0..65536: serial
      v: i32 = load x[i*65536 + k]
      a: i32 = s
      b: i32 = a + v
      s = b
      sums[i, k] = b
    for j in 0..65536: free
      t: i32 = sums[i, j]
      store y[i*65536 + j] = t
"#;
        let (out, log) = apply("rows_in_turn", &kernel(scan), &gpu(&[]));
        assert_eq!(log.applied, ["loop i: 4 rows of 65536 elements"]);
        assert!(text(&out).contains("  for i in 0..4: serial\n    local sums: i32[1, 65536]\n"), "{}", text(&out));
        let short = scan.replace("65536", "1024");
        let log = apply("rows_in_turn", &kernel(&short), &gpu(&[])).1;
        assert_eq!((log.applied.len(), log.skipped.len()), (0, 0));
    }

    #[test]
    fn many_or_short_rows_have_a_thread_each() {
        for (rows, elements) in [(256, 4096), (4, 64), (64, 128)] {
            let text = SOFTMAX.replace("f32[4, 4096]", &format!("f32[{rows}, {elements}]"));
            let text = text.replace("i in 0..4:", &format!("i in 0..{rows}:")).replace("4096", &elements.to_string());
            let why = format!("loop i: {rows} rows of {elements} elements take less time with a thread for each");
            assert_eq!(refusals("rows_in_turn", &text, &gpu(&[])), [why]);
        }
    }
}
