//! `cluster_rows`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::cost::{self, Cost};
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::cluster_rows::{MEETING, MOST, SHORTEST};
use crate::tile::primitives::bind::To;
use crate::tile::primitives::{self, Script, Step};
use crate::tile::rows::{self, Around};
use crate::tile::rules::cooperative_reduce;
use crate::tile::tile_nest::check_bounds;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "cluster_rows",
    doc: "\
Assigns each row of a reduction with few, long rows to a cluster of blocks: every block has a part of the row, and all of them read
the partial results from each other's shared memory.

```text
for i in 0..4: free                              for b in 0..4: free block(x)
  local s = 0.0                                    local s = 0.0
  for k in 0..32768: reduce combine add(s)         for m in 0..4: reduce member combine add(s) from 0.0 x 4
    s <- x[i, k] + s                        -->      for k in 0..8192: reduce combine add(s)
  for j in 0..32768: free                              s <- x[b, m*8192 + k] + s
    y[i, j] = x[i, j] / s                          for m2 in 0..4: free member
                                                     for j in 0..8192: free
                                                       y[b, m2*8192 + j] = x[b, m2*8192 + j] / s
```

The first block of the cluster stores a value that is stored once for a row.

The estimate decides how many blocks a cluster has: it compares bytes, latency, and the time in which the blocks meet with those of
a block for each row, and of parts and a second kernel (`split_reduction`).

Knob: `cluster_rows` (the blocks of a cluster; 1 turns the rule off).

Refuses rows whose number or length only the launch knows, reductions in a fixed order, and kernels that keep more than scalars from one
loop over a row to the next.
",
    run,
};

/// Threads of the blocks of a cluster that Kernel IR counts together.
pub(super) const MOST_THREADS: u32 = 1024;

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let rows = Rows::of(p, ctx)?;
    let mut script = Script::new(p, ctx, log);
    let done = rows.blocks(p, ctx).and_then(|(best, why)| {
        script.attempt(|script| rows.cluster(script, p, best.blocks))?;
        Ok(format!("{} rows, {} blocks each, {why}", rows.count, best.blocks))
    });
    script.log.described(&*p.name, done);
    script.done()
}

/// Clusters of `blocks` blocks, and the seconds that they take.
pub(super) struct Choice {
    pub blocks: u32,
    pub time: f64,
}

/// The clusters that take the least time, where they take less than a block for each row, or that are asked for.
pub(super) fn best(p: &Kernel, ctx: &Context) -> Option<Choice> {
    Rows::of(p, ctx)?.blocks(p, ctx).ok().map(|(choice, _)| choice)
}

/// Why rows are cut into no parts.
pub(super) fn instead(Choice { blocks, time }: &Choice) -> String {
    match *time > 0.0 {
        true => format!("clusters of {blocks} blocks take {}", cost::time(*time)),
        false => format!("clusters of {blocks} blocks are asked for"),
    }
}

/// Rows of a kernel that are reduced.
struct Rows<'a> {
    /// The loops over the rows, outermost first; none where there is one row, and the whole kernel does it.
    free: Vec<&'a For>,
    /// The work of a row.
    body: &'a [Stmt],
    count: u64,
    /// Elements of the longest loop over a row.
    length: u64,
    /// Reductions, and other loops over a row.
    reductions: u64,
    others: u64,
}

impl<'a> Rows<'a> {
    /// `None` where a kernel does anything else.
    fn of(p: &'a Kernel, ctx: &Context) -> Option<Rows<'a>> {
        if ctx.target.axes.cluster < 2 {
            return None;
        }
        let reduced = |s: &Stmt| matches!(s, Stmt::For(f) if f.kind == LoopKind::Reduce);
        let around = Around::of(p, &reduced)?;
        let count = around.count()?;
        let Around { free, body, .. } = around;
        let mut rows = Rows { free, body, count, length: 0, reductions: 0, others: 0 };
        let scalar = |buf: &BufId| p.bufs.get(*buf).is_some_and(|b| b.shape.is_empty());
        for s in body {
            match s {
                Stmt::For(f) if f.place == Place::None => {
                    let straight = match f.kind {
                        LoopKind::Reduce => cooperative_reduce::refusal(f, ctx.target.axes.lanes).is_none(),
                        LoopKind::Free => f.body.iter().all(|s| edit::is_pure(s) || is_stored(s)),
                        LoopKind::Serial => false,
                    };
                    let length = const_trip(f).filter(|_| straight)?;
                    rows.length = rows.length.max(length);
                    *if f.kind == LoopKind::Reduce { &mut rows.reductions } else { &mut rows.others } += 1;
                }
                Stmt::Local { buf } | Stmt::Write { buf, .. } if scalar(buf) => {}
                s if edit::is_pure(s) || is_stored(s) => {}
                _ => return None,
            }
        }
        let stored = walk::effects(&p.body).stores;
        let loaded = walk::stmts(&p.body).any(|s| matches!(s, Stmt::Load { mem, .. } if stored.contains(&mem.base)));
        (rows.reductions > 0 && !loaded && check_bounds(&rows.free).is_ok()).then_some(rows)
    }

    /// Clusters of how many blocks, and what that takes beside a block for each row.
    fn blocks(&self, p: &Kernel, ctx: &Context) -> Result<(Choice, String), String> {
        let most = ctx.target.axes.cluster.min(MOST);
        let fit = |blocks: u32| u64::from(blocks) <= self.length;
        match ctx.knobs.cluster_rows {
            Some(1) => return Err("knob off".into()),
            Some(asked) => {
                let blocks = asked.min(most).next_power_of_two().min(most);
                if !fit(blocks) {
                    return Err(format!("its rows have {} elements", self.length));
                }
                return Ok((Choice { blocks, time: 0.0 }, "as asked for".into()));
            }
            None => {}
        }
        let workers = u64::from(ctx.target.axes.workers);
        if self.count * 2 > workers {
            return Err(format!("its {} rows have blocks for {workers} multiprocessors", self.count));
        }
        let whole = self.seconds(p, ctx, 1).ok_or("the target says nothing of its speed")?;
        let counts = (1..=most.ilog2()).map(|n| 1 << n);
        let long = |blocks: &u32| self.length / u64::from(*blocks) >= SHORTEST;
        let priced =
            counts.filter(long).filter_map(|blocks| Some(Choice { blocks, time: self.seconds(p, ctx, blocks)? }));
        match priced.min_by(|a, b| a.time.total_cmp(&b.time)) {
            Some(best) if best.time < whole => {
                let why = format!("{} rather than {}", cost::time(best.time), cost::time(whole));
                Ok((best, why))
            }
            _ => Err(format!("a block for each of its {} rows takes {}", self.count, cost::time(whole))),
        }
    }

    /// The seconds that the kernel takes with `blocks` blocks for a row.
    fn seconds(&self, p: &Kernel, ctx: &Context, blocks: u32) -> Option<f64> {
        let mut log = Log::default();
        let mut script = Script::new(p, ctx, &mut log);
        self.cluster(&mut script, p, blocks).ok()?;
        let nest = script.kernel.body.iter().find(|s| matches!(s, Stmt::For(_)))?;
        let threads = u64::from(ctx.knobs.threads.min(MOST_THREADS / blocks));
        let (rows, length) = (self.count * u64::from(blocks), self.length.div_ceil(blocks.into()));
        let latency = cost::of_rows(&ctx.target, rows, length, threads)? * (self.reductions + self.others) as f64;
        let meetings = if blocks > 1 { self.reductions + 1 } else { 0 };
        let meeting = MEETING * meetings as f64 / ctx.target.gpu?.clock;
        Some(Cost::of_nest(&ctx.target, nest, threads)?.time().max(latency) + meeting)
    }

    /// Gives each row `blocks` blocks.
    fn cluster(&self, script: &mut Script<'_>, p: &Kernel, blocks: u32) -> Result<(), String> {
        let over = |s: &'a Stmt| if let Stmt::For(f) = s { Some(&**f) } else { None };
        let row: Vec<&For> = self.body.iter().filter_map(over).collect();
        let row = primitives::names_of(p, &row);
        if self.free.is_empty() {
            script.step(Step::Enclose { loops: vec![], name: "b".into() })?;
        } else {
            rows::bind_blocks(script, primitives::names_of(p, &self.free))?;
        }
        if blocks > 1 {
            script.step(Step::Bind { loops: row, to: To::Cluster(blocks) })?;
        }
        Ok(())
    }
}

fn is_stored(s: &Stmt) -> bool {
    matches!(s, Stmt::Store { order: Order::Weak, mem, .. } if mem.elem.bits() >= 8)
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, text};

    const ROWS: &str = r#"loop kernel k(x: ptr f32, y: ptr f32, z: ptr f32) open:
  for i in 0..4: free
    local s: f32
    s = 0.0
    for k in 0..32768: reduce combine add(s) from -0.0
      v: f32 = load x[i*32768 + k]
      a: f32 = s
      b: f32 = a + v
      s = b
    t: f32 = s
    store z[i] = t
    for j in 0..32768: free
      w: f32 = load x[i*32768 + j]
      d: f32 = w / t
      store y[i*32768 + j] = d
"#;

    #[test]
    fn few_long_rows_get_clusters() {
        let (out, log) = apply("cluster_rows", &kernel(ROWS), &gpu(&["cluster_rows=4"]));
        assert_eq!(log.applied, ["k: 4 rows, 4 blocks each, as asked for"]);
        let want = r#"tile kernel k(x: ptr f32, y: ptr f32, z: ptr f32) open:
  for b in 0..4: free block(x)
    local s: f32
    s = 0.0
    for m in 0..4: reduce member combine add(s) from -0.0 x 4
      for k in 0..8192: reduce combine add(s) from -0.0
        v: f32 = load x[b*32768 + m*8192 + k]
        a: f32 = s
        b_1: f32 = a + v
        s = b_1
    t: f32 = s
    for m_1 in 0..1: free member
      store z[b] = t
    for m_2 in 0..4: free member
      for j in 0..8192: free
        w: f32 = load x[b*32768 + m_2*8192 + j]
        d: f32 = w / t
        store y[b*32768 + m_2*8192 + j] = d
"#;
        assert_eq!(text(&out), want);
        let odd = ROWS.replace("32768", "1001");
        let (out, _) = apply("cluster_rows", &kernel(&odd), &gpu(&["cluster_rows=4"]));
        assert!(text(&out).contains("for k in 0..min(256, m*-256 + 1001): reduce combine"), "{}", text(&out));
    }

    #[test]
    fn the_estimate_decides() {
        let says = |rows: u32, length: u32, target: &[&str]| {
            let text = ROWS.replace("0..4:", &format!("0..{rows}:")).replace("32768", &length.to_string());
            let (_, log) = apply("cluster_rows", &kernel(&text), &gpu(target));
            let skipped = log.skipped.into_iter().map(|(_, why)| why);
            log.applied.into_iter().chain(skipped).next().unwrap_or_default()
        };
        assert!(says(4, 32768, &[]).contains("rather than"), "{}", says(4, 32768, &[]));
        assert!(says(4, 600, &[]).contains("a block for each of its 4 rows"), "{}", says(4, 600, &[]));
        assert!(says(400, 32768, &[]).contains("its 400 rows have blocks for 132 multiprocessors"));
        assert_eq!(says(4, 32768, &["cluster_rows=1"]), "knob off");
    }

    #[test]
    fn others_are_left() {
        for (from, to) in
            [(" combine add(s) from -0.0", ""), ("0..4: free", "0..4: serial"), ("store z[i] = t", "store x[i] = t")]
        {
            assert!(ROWS.contains(from), "{from}");
            let (out, log) = apply("cluster_rows", &kernel(&ROWS.replace(from, to)), &gpu(&["cluster_rows=4"]));
            assert!(!text(&out).contains("member") && log.applied.is_empty(), "{to}");
        }
    }
}
