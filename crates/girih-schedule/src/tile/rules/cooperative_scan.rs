//! `cooperative_scan`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::num::DType;
use crate::tile::Context;
use crate::tile::contraction::prev_power;
use crate::tile::cost::{self, Scans};
use crate::tile::edit::const_trip;
use crate::tile::heuristics::cooperative_scan::{GUESS, SHORTEST, STRETCH};
use crate::tile::primitives::scan::{self, GROUP, scanned};
use crate::tile::primitives::{Names, Script, Step};
use crate::tile::rows;
use crate::tile::rules::axis_site;
use crate::tile::tile_nest::check_bounds;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "cooperative_scan",
    doc: "\
Gives a scan, in which each element is what all elements up to it come to, to all threads of a block. They bring a stretch of the row
to shared memory; each folds a few neighbours; what they have is folded in groups, and what the groups have by one thread; then every
element is combined with what stands before it. In an open kernel each row gets a block for that.

```text
for i in 0..64: free                             for b in 0..64: free block(x)
  local acc = 0.0                                  local acc = 0.0
  for k in 0..2048: serial                         for u in 0..256: free
    v = x[i, k] + acc                                for e in 0..8: free
    y[i, k] = v                           -->          line[u, e] = x[b, u*8 + e]
    acc = v                                        for u in 0..256: free
                                                     line[u, ..] = its sums from the left; part[u] = the last of them
                                                   for g in 0..16: free
                                                     part[g, ..] = what stands before each; group[g] = the sum of all
                                                   group[..] = acc and what stands before each
                                                   for u in 0..256: free
                                                     for e in 0..8: free
                                                       y[b, u*8 + e] = line[u, e] + part[u] + group[u//16]
```

Rows that are too long for shared memory go by in stretches, one after the other. Sums of floats are added in another order than the
program's, always in the same one. Rows stay with one thread each where there are so many of them that this takes less, by the
target's numbers.

Knob: `scan` (0 turns the rule off), `threads` (256).

Refuses short rows, blocks that have many rows, folds that are not associative, and what else is done with both the fold up to an
element and the one before it.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !ctx.knobs.scan {
        return None;
    }
    let mut script = Script::new(p, ctx, log);
    if p.open {
        rows_to_blocks(&mut script, p);
    }
    let kernel = script.kernel.clone();
    let names = Names::of(&kernel);
    for (f, shared) in scan::sites(&kernel) {
        let site = axis_site(&kernel, f.axis);
        let done = shared.and_then(|shared| {
            let shares = Shares::of(ctx, f, shared.dtype, shared.rows)?;
            let at = names.name(f).ok_or("its loop has no name")?;
            let Shares { threads, each } = shares;
            script.try_step(Step::Scan { at, threads, each })?;
            Ok(shares.text(f))
        });
        script.log.described(site, done);
    }
    script.done()
}

/// Returns true if the threads of a block can share a loop: it is a scan of a row that is long enough.
pub fn is_shared(kernel: &Kernel, s: &Stmt) -> bool {
    matches!(scanned(kernel, s), Some((f, Ok(_))) if f.hi.as_const().is_none_or(|n| n >= SHORTEST))
}

/// Threads, and elements of each in a stretch.
struct Shares {
    threads: u32,
    each: u32,
}

impl Shares {
    fn of(ctx: &Context, f: &For, dtype: DType, rows: u64) -> Result<Shares, &'static str> {
        let known = f.hi.as_const();
        if known.is_some_and(|n| n < SHORTEST) {
            return Err("it is shorter than two warps");
        }
        let most = u64::from(prev_power(ctx.knobs.threads));
        let length = known.map_or(GUESS, |n| n as u64);
        let useful = length.div_ceil(4).next_power_of_two().max(GROUP as u64);
        let threads = useful.min(most / rows.next_power_of_two());
        if threads < GROUP as u64 {
            return Err("its rows have threads enough, one each");
        }
        let room = STRETCH / (dtype.bytes() * rows * threads);
        if room == 0 {
            return Err("its rows do not fit shared memory");
        }
        let stretches = length.div_ceil(room * threads).max(1);
        let each = length.div_ceil(stretches).div_ceil(threads);
        // Four elements are moved at once.
        let each = if each > 4 { each.next_multiple_of(4) } else { each }.min(room).max(1);
        Ok(Shares { threads: threads as u32, each: each as u32 })
    }

    fn text(&self, f: &For) -> String {
        let Shares { threads, each } = self;
        let stretch = i64::from(*threads) * i64::from(*each);
        match f.hi.as_const().map(|n| (n + stretch - 1) / stretch) {
            Some(1) => format!("{threads} threads with {each} elements each"),
            Some(n) => format!("{threads} threads with {each} elements each, {n} times"),
            None => format!("{threads} threads with {each} elements each at a time"),
        }
    }
}

/// Gives each row of the nests of free loops around a scan a block, where that takes less than a thread for each row.
fn rows_to_blocks(script: &mut Script<'_>, p: &Kernel) {
    let ctx = script.ctx;
    let shares = |s: &Stmt| {
        let (f, dtype) = scanned(p, s)?;
        Shares::of(ctx, f, dtype.ok()?, 1).ok().map(|shares| (f.clone(), shares))
    };
    if let Some((f, _)) = p.body.iter().find_map(&shares) {
        let enclose = Step::Enclose { loops: vec![], name: "b".into() };
        match script.try_step(enclose) {
            Ok(_) => script.log.applied(format!("{}, one block", axis_site(p, f.axis))),
            Err(why) => script.log.skipped(axis_site(p, f.axis), why),
        }
        return;
    }
    rows::to_blocks(script, p, &mut |chain, body, log| {
        let Some((scan, shares)) = body.iter().find_map(&shares).filter(|_| check_bounds(chain).is_ok()) else {
            return false;
        };
        let site = axis_site(p, chain[0].axis);
        if let Err(why) = pays(ctx, chain, &scan, &shares) {
            log.skipped(site, why);
            return false;
        }
        log.applied(format!("{site}, a block each"));
        true
    });
}

/// Whether a block for each row takes less than a thread for each.
fn pays(ctx: &Context, chain: &[&For], scan: &For, shares: &Shares) -> Result<(), String> {
    let known = chain.iter().try_fold(1u64, |n, f| n.checked_mul(const_trip(f)?));
    let beside = |s: &Stmt, axis: AxisId| {
        let mem = match s {
            Stmt::Load { mem, .. } | Stmt::Store { mem, .. } => mem,
            _ => return None,
        };
        let apart = mem.index.linear(axis).map(|(by, _)| by);
        let bytes = mem.elem.bytes().max(1) as f64;
        Some(match apart.and_then(|by| by.as_const()) {
            Some(-1..=1) => bytes,
            _ => bytes.max(cost::SECTOR),
        })
    };
    let moved = |axis: AxisId| scan.body.iter().filter_map(|s| beside(s, axis)).sum::<f64>();
    let scans = Scans {
        rows: known.unwrap_or(GUESS),
        length: const_trip(scan).unwrap_or(GUESS),
        threads: shares.threads.into(),
        each: shares.each.into(),
        alone: chain.last().map_or(0.0, |f| moved(f.axis)),
        shared: moved(scan.axis),
    };
    match scans.seconds(&ctx.target) {
        Some([alone, shared]) if alone <= shared => {
            Err(format!("a thread for each of its rows takes {}, a block {}", cost::time(alone), cost::time(shared)))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const ROWS: &str = r#"loop kernel k(x: ptr f32, y: ptr f32) open:
  for i in 0..64: free
    local acc: f32
    acc = 0.0
    for k in 0..2048: serial
      v: f32 = load x[i*2048 + k]
      a: f32 = acc
      b: f32 = v + a
      store y[i*2048 + k] = b
      acc = b
"#;

    /// What a tile program's block does: rows of integers, from the end.
    const TILE: &str = r#"loop kernel k(x: ptr i32, y: ptr i32):
  local sums: i32[2, 512]
  for i in 0..2: free
    local s: i32
    s = 0
    for k in 0..512: serial
      v: i32 = load x[bx*1024 + i*512 - k + 511]
      a: i32 = s
      b: i32 = a + v
      s = b
      sums[i, 511 - k] = b
    for j in 0..512: free
      t: i32 = sums[i, j]
      store y[bx*1024 + i*512 + j] = t
"#;

    #[test]
    fn threads_share_a_row() {
        let (out, log) = apply("cooperative_scan", &kernel(ROWS), &gpu(&[]));
        assert_eq!(log.applied, ["loop i, a block each", "loop k: 256 threads with 8 elements each"]);
        let made = text(&out);
        for part in [
            "for b in 0..64: free block(x)\n",
            "local line: f32[256, 8]\n",
            "local part: f32[16, 16]\n",
            "v: f32 = load x[b*2048 + u*8 + e]\n",
            "for j in 0..8: serial\n",
            "for j_1 in 0..16: serial\n",
            "store y[b*2048 + u_1*8 + e_1] = ",
        ] {
            assert!(made.contains(part), "{part}\n{made}");
        }
        // No element lies beyond the row, so none is tested for that.
        assert!(!made.contains("if "), "{made}");
    }

    #[test]
    fn long_rows_go_by_in_stretches() {
        let long = ROWS.replace("2048", "100000").replace("0..64", "0..3");
        let (out, log) = apply("cooperative_scan", &kernel(&long), &gpu(&[]));
        assert_eq!(log.applied[1], "loop k: 256 threads with 32 elements each, 13 times");
        let made = text(&out);
        assert!(made.contains("for c in 0..13: serial\n"), "{made}");
        assert!(made.contains("c*8192 + u*32 + e < 100000"), "{made}");
        let unknown = ROWS.replace("x: ptr f32", "x: ptr f32, n: i64").replace("2048", "n");
        let (out, log) = apply("cooperative_scan", &kernel(&unknown), &gpu(&[]));
        assert_eq!(log.applied[1], "loop k: 256 threads with 4 elements each at a time");
        assert!(text(&out).contains("for c in 0..(n + 1023)//1024: serial\n"), "{}", text(&out));
    }

    #[test]
    fn rows_of_a_tile_are_shared_side_by_side() {
        let (out, log) = apply("cooperative_scan", &kernel(TILE), &gpu(&[]));
        assert_eq!(log.applied, ["loop k: 128 threads with 4 elements each"]);
        let made = text(&out);
        assert!(made.contains("local line: i32[2, 128, 4]\n"), "{made}");
        assert!(made.contains(", u_1*-4 - e_1 + 511] = "), "{made}");
    }

    /// A scan of `sums` that leaves its results there.
    const IN_PLACE: &str = r#"loop kernel k(y: ptr i32):
  local sums: i32[2, 512]
  for i in 0..2: free
    local s: i32
    s = 0
    for k in 0..512: serial
      v: i32 = sums[i, k]
      a: i32 = s
      b: i32 = a + v
      s = b
      sums[i, k] = b
"#;

    #[test]
    fn a_scan_may_replace_its_elements() {
        let (out, log) = apply("cooperative_scan", &kernel(IN_PLACE), &gpu(&[]));
        assert_eq!(log.applied, ["loop k: 128 threads with 4 elements each"]);
        assert!(text(&out).contains("sums[i_5, u_1*4 + e_1] = "), "{}", text(&out));
        for (from, to) in [
            // It reads what the iteration before has written, or what another row has.
            ("v: i32 = sums[i, k]", "v: i32 = sums[i, max(k - 1, 0)]"),
            ("sums[i, k]", "sums[0, k]"),
            // It reads its own result.
            (
                "      sums[i, k] = b\n",
                "      sums[i, k] = b\n      c: i32 = sums[i, k]\n      store y[i*512 + k] = c\n",
            ),
        ] {
            assert!(IN_PLACE.contains(from), "{from}");
            let said = refusals("cooperative_scan", &IN_PLACE.replace(from, to), &gpu(&[])).join("; ");
            assert!(said.ends_with("it may read what it has stored"), "{to}: {said}");
        }
    }

    #[test]
    fn many_rows_keep_a_thread_each() {
        let columns = ROWS.replace("0..64", "0..100000").replace("i*2048 + k", "k*100000 + i");
        let (out, log) = apply("cooperative_scan", &kernel(&columns), &gpu(&[]));
        assert_eq!(text(&out), text(&kernel(&columns)).replace("loop kernel", "tile kernel"));
        assert!(log.skipped[0].1.starts_with("a thread for each of its rows takes "), "{:?}", log.skipped);
    }

    #[test]
    fn what_one_thread_scans_says_why() {
        let says = |text: &str, from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            refusals("cooperative_scan", &text.replace(from, to), &gpu(&[])).join("; ")
        };
        for (from, to, why) in [
            ("0..512: serial", "0..32: serial", "it is shorter than two warps"),
            ("a + v", "a - v", "what it folds by is not one associative operation"),
            ("a + v", "a + a", "what it folds by is not one associative operation"),
            (
                "      s = b\n",
                "      c: i32 = a + b\n      s = b\n      store y[k] = c\n",
                "it uses the fold up to an element and the one before it",
            ),
            ("      sums[i, 511 - k] = b\n", "", "it uses the fold of all elements alone"),
            ("      sums[i, 511 - k] = b\n", "      store y[k] = b\n", "it may read what it has stored"),
            ("    s = 0\n", "    s = 0\n    store y[i] = 0\n", "more is done in a row"),
        ] {
            let said = says(TILE, from, to);
            assert!(said.ends_with(why), "{said}\n{why}");
        }
        let many = TILE.replace("[2, 512]", "[64, 512]").replace("0..2:", "0..64:");
        assert!(says(&many, "0..64:", "0..64:").ends_with("its rows have threads enough, one each"));
        let floats = TILE.replace("i32", "f32").replace("s = 0\n", "s = 0.0\n");
        assert!(says(&floats, "a + v", "a + v").ends_with("the program states the order of its floats"));
        let off = apply("cooperative_scan", &kernel(ROWS), &gpu(&["scan=0"]));
        assert_eq!((off.1.applied.len(), off.1.skipped.len()), (0, 0));
    }
}
