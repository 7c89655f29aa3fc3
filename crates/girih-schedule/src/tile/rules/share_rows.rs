//! `share_rows`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::cost::Cost;
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::share_rows::SHORTEST;
use crate::tile::primitives::{Script, Step};
use crate::tile::rows;
use crate::tile::rules::{axis_site, spread_threads};
use crate::tile::tile_nest::check_bounds;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "share_rows",
    doc: "\
Gives each row of a nest a block if the work of a row goes through arrays of its own: a sort, whose steps compare pairs of an array,
or a list of the elements that go to one place. The array becomes shared memory, and `spread_threads` gives each of the loops over it to the
threads of the block.

```text
for i in 0..64: free                             for b in 0..64: free block(x)
  local items: i64[4096]                           local items: i64[4096]
  for j in 0..4096: free                           for j in 0..4096: free
    items[j] = x[i, j]                    -->        items[j] = x[b, j]
  for p in 0..12: serial                           for p in 0..12: serial
    for t in 0..2048: free                           for t in 0..2048: free
      items[..], items[..] = ..                        items[..], items[..] = ..
```

Refuses rows whose arrays do not fit shared memory or are shorter than two warps. It leaves rows that are reduced to
`cooperative_reduce`.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !p.open {
        return None;
    }
    let mut script = Script::new(p, ctx, log);
    match shared(p, &p.body, ctx) {
        Some(Ok(())) => {
            script.log.applied("body, one block");
            script.step(Step::Enclose { loops: vec![], name: "b".into() }).ok()?;
            return script.done();
        }
        Some(Err(why)) => {
            script.log.skipped("body", why);
            return None;
        }
        None => {}
    }
    rows::to_blocks(&mut script, p, &mut |chain, body, log| {
        let site = axis_site(p, chain[0].axis);
        match shared(p, body, ctx).filter(|_| check_bounds(chain).is_ok()) {
            Some(Ok(())) => log.applied(format!("{site}, a block each")),
            Some(Err(why)) => {
                log.skipped(site, why);
                return false;
            }
            None => return false,
        }
        true
    });
    if script.changed() {
        for s in &script.kernel.body {
            let threads = spread_threads::threads(&Kernel { body: vec![s.clone()], ..script.kernel.clone() }, ctx);
            if let Some(cost) =
                Cost::of_nest(&ctx.target, s, threads.unsigned_abs()).filter(|_| edit::over_blocks(s).is_some())
            {
                script.log.applied(cost.to_string());
            }
        }
    }
    script.done()
}

/// Checks that the work of a row goes through arrays of its own, and that threads can share the loops that fill them. `None` if
/// not, and an error if blocks have no room for the arrays.
fn shared(p: &Kernel, body: &[Stmt], ctx: &Context) -> Option<Result<(), String>> {
    let arrays: Vec<BufId> = body
        .iter()
        .filter_map(|s| match s {
            Stmt::Local { buf } if !p.bufs[*buf].shape.is_empty() => Some(*buf),
            _ => None,
        })
        .collect();
    if arrays.is_empty() || body.iter().any(|s| matches!(s, Stmt::For(f) if f.kind == LoopKind::Reduce)) {
        return None;
    }
    let least = SHORTEST * u64::from(ctx.target.axes.lanes);
    if !long(body, &arrays, least) {
        return None;
    }
    let bytes: u64 = arrays.iter().map(|b| p.bufs[*b].bytes()).sum();
    let most = ctx.target.bytes_of(crate::tile::target::MemoryKind::Shared);
    if bytes > most {
        return Some(Err(format!("its arrays take {bytes} bytes of {most} that blocks share")));
    }
    Some(Ok(()))
}

/// True if a free loop, within serial ones at most, has at least `least` iterations and writes one of the arrays.
fn long(body: &[Stmt], arrays: &[BufId], least: u64) -> bool {
    body.iter().any(|s| match s {
        Stmt::For(f) if f.is_free_unplaced() => {
            let trips = edit::free_chain(f).iter().try_fold(1u64, |n, f| n.checked_mul(const_trip(f)?));
            trips.is_some_and(|n| n >= least) && walk::effects(&f.body).bufs_written.iter().any(|b| arrays.contains(b))
        }
        Stmt::For(f) if f.kind == LoopKind::Serial && f.place == Place::None => long(&f.body, arrays, least),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    /// Each row turned round within halves that lie ever closer.
    const ROWS: &str = r#"loop kernel k(x: ptr f32, y: ptr f32) open:
  for i in 0..3: free
    local row: f32[128]
    for j in 0..128: free
      v: f32 = load x[i*128 + j]
      row[j] = v
    for p in 0..7: serial
      for t in 0..64: free
        a: f32 = row[t]
        b: f32 = row[127 - t]
        row[t] = b
        row[127 - t] = a
    for j1 in 0..128: free
      w: f32 = row[j1]
      store y[i*128 + j1] = w
"#;

    #[test]
    fn a_row_gets_a_block() {
        let (out, log) = apply("share_rows", &kernel(ROWS), &gpu(&[]));
        assert_eq!(log.applied[0], "loop i, a block each");
        assert!(log.applied[1].starts_with("3 blocks of 128 threads "), "{:?}", log.applied);
        let made = text(&out);
        assert!(made.contains("  for b in 0..3: free block(x)\n    local row: f32[128]\n"), "{made}");
        assert!(made.contains("load x[b*128 + j]"), "{made}");
        // Once it is placed, a nest is not a row any more.
        assert!(apply("share_rows", &out, &gpu(&[])).1.applied.is_empty());
    }

    #[test]
    fn one_row_is_one_block() {
        let row = ROWS.replace("  for i in 0..3: free\n", "").replace("i*128 + ", "").replace("\n    ", "\n  ");
        let (out, log) = apply("share_rows", &kernel(&row), &gpu(&[]));
        assert_eq!(log.applied, ["body, one block"]);
        assert!(text(&out).contains("  for b in 0..1: free block(x)\n    local row: f32[128]\n"), "{}", text(&out));
    }

    #[test]
    fn other_rows_stay() {
        let long = ROWS.replace("128", "100000").replace("127", "99999");
        let why = "loop i: its arrays take 400000 bytes of 232448 that blocks share";
        assert_eq!(refusals("share_rows", &long, &gpu(&[])), [why]);
        let short = ROWS.replace("128", "32").replace("127", "31").replace("0..64", "0..16");
        assert_eq!(
            text(&apply("share_rows", &kernel(&short), &gpu(&[])).0),
            text(&kernel(&short)).replace("loop k", "tile k")
        );
    }
}
