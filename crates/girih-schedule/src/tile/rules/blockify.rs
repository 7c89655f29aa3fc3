//! `blockify`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::edit;
use crate::tile::heuristics::blockify::{
    BLOCK_WORK, GUESS, LEAST_COLUMNS, MOST_COLUMNS, MOST_KEPT, PIECE_COLUMNS, PIECE_ROWS, SMALL, SPLIT_FROM,
};
use crate::tile::numbered::Numbered;
use crate::tile::primitives::bind::{self, To};
use crate::tile::primitives::hoist;
use crate::tile::primitives::{LoopRef, Names, Script, Step};
use crate::tile::rules::interchange::{self, ColumnFolds};
use crate::tile::rules::{compute_once, site_of};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "blockify",
    doc: "\
Shares the outer loops of an open kernel among blocks.

```text
for a0 in 0..4096: free                          for b in 0..512: free block(x)
  for a1 in 0..2048: free                          for r in 0..8: free
    store out[a0*2048 + a1] = ...         -->        for a1 in 0..2048: free
                                                       store out[(b*8 + r)*2048 + a1] = ...
```

The loops around the innermost one are rows, numbered from the last loop to the first; a block takes a power of two of
them, so many that starting it does not show, and so few that each thread gets four blocks. Few rows of very many
elements are cut along y, too: columns that are folded once into a piece for each thread, since long runs of a row are
read faster. Where loads walk memory along another axis than stores, or rows compute much alike, a block has a piece of 64 x 256
elements. Nests that stand side by side get blocks of their own; small ones share one.

Refuses kernels whose grid the launch gives; nests that need what another one stores, or that follow a reduction which
each block would repeat; and elements of less than a byte, of which two share one.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !p.open {
        log.skipped("grid", "the launch gives it");
        return None;
    }
    if let Err(why) = bind::nests_apart(p) {
        log.skipped("grid", why);
        return None;
    }
    let (mut script, names) = (Script::new(p, ctx, log), Names::of(p));
    let mut changed = false;
    // Small nests that are waiting for others, and their elements.
    let (mut small, mut waiting): (Vec<LoopRef>, i64) = (vec![], 0);
    let several = p.body.iter().filter(|s| bind::is_nest(s)).count() > 1;
    for s in &p.body {
        let f = match s {
            Stmt::For(f) if bind::is_nest(s) && f.place == Place::None => f,
            _ => continue,
        };
        let Some(at) = names.name(f) else { continue };
        if several {
            let elements = elements(f).filter(|n| *n <= SMALL);
            if elements.is_none_or(|n| waiting + n > SMALL) {
                together(&mut script, &mut small);
                waiting = 0;
            }
            if let Some(n) = elements {
                small.push(at);
                waiting += n;
                changed = true;
                continue;
            }
        }
        let site = site_of(p, s);
        match script.attempt(|script| share(script, at)) {
            Ok(true) => {
                script.log.applied(site);
                changed = true;
            }
            Ok(false) if several => together(&mut script, &mut vec![at]),
            Ok(false) => script.log.skipped(site, "it is one block's work"),
            Err(why) => script.log.skipped(site, why),
        }
    }
    together(&mut script, &mut small);
    script.done().filter(|_| changed)
}

/// Nests that one block does.
fn together(script: &mut Script<'_>, loops: &mut Vec<LoopRef>) {
    let loops = std::mem::take(loops);
    if !loops.is_empty()
        && let Err(why) = script.step(Step::Enclose { loops, name: "b".into() })
    {
        script.log.skipped("small nests", why);
    }
}

/// The elements that a nest computes, where that is known.
fn elements(f: &For) -> Option<i64> {
    let inner = f.body.iter().filter_map(|s| match s {
        Stmt::For(inner) if inner.kind == LoopKind::Free => Some(elements(inner)),
        _ => None,
    });
    let inner = inner.sum::<Option<i64>>()?.max(1);
    f.hi.as_const()?.checked_mul(inner)
}

/// Shares the outer loops of a nest among blocks; `false` where one block is enough.
fn share(script: &mut Script<'_>, nest: LoopRef) -> Result<bool, String> {
    const GONE: &str = "the loop is gone";
    let threads = i64::from(script.ctx.target.axes.workers.max(1));
    let outer = script.find(nest).ok_or(GONE)?;
    let chain = edit::free_chain(&outer);
    let (inner, around) = chain.split_last().ok_or(GONE)?;
    let folds = interchange::column_folds(&script.kernel, inner);
    let columns = folds.is_some();
    let across = interchange::runs_across(&script.kernel, around, inner)
        .or_else(|| shared_along(&script.kernel, around, inner).filter(|_| script.ctx.knobs.once));
    let mut rows: Vec<LoopRef> = chain.iter().map(|f| LoopRef { axis: f.axis, nth: 0 }).collect();
    rows[0] = nest;
    let mut inside = rows.pop().ok_or(GONE)?;
    if let Some(t) = across {
        // A block has a square piece, which is walked along both axes.
        let [tiles, within] = cut(script, rows[t], PIECE_ROWS)?;
        let [pieces, columns] = cut(script, inside, PIECE_COLUMNS)?;
        rows[t] = tiles;
        rows.push(pieces);
        let order = rows.iter().copied().chain([within, columns]).collect();
        script.step(Step::Reorder { loops: order })?;
        inside = within;
    }
    let leaf = across.is_some() || columns || !inner.body.iter().any(|s| matches!(s, Stmt::For(_)));
    let guess = |ix: &Ix| {
        ix.eval(&|leaf| match leaf {
            Ix::Const(c) => *c,
            _ => GUESS,
        })
    };
    // The loop that stays in the block as a vector; without one, everything but the loop's body is rows.
    let vector = if leaf { Some(script.find(inside).ok_or(GONE)?) } else { None };
    let each = vector.as_ref().map_or(1, |f| work_of(&f.body, &guess));
    let width = vector.as_ref().map_or(1, |f| guess(&f.hi).max(1));
    let work = if leaf { width.saturating_mul(each) } else { work_of(&inner.body, &guess) };
    if !leaf {
        rows.push(inside);
    }
    let over: Vec<For> = rows.iter().map(|at| script.find(*at)).collect::<Option<_>>().ok_or(GONE)?;
    if over.iter().any(|f| f.hi.is_const(0)) {
        return Ok(false);
    }
    let count = guess(&Numbered::new(&over, &script.kernel.facts()).total).max(1);
    let wanted = threads * 4;
    // A power of two, so that blocks are even where the rows are. An array that each row fills alike is filled once for all rows of a block.
    let fills = !leaf && inner.body[..hoist::alike(inner)].iter().any(|s| matches!(s, Stmt::For(_)));
    let worth = if fills { i64::MAX } else { BLOCK_WORK / work };
    let per_block = worth.clamp(1, (count / wanted).max(1));
    let per_block = 1 << per_block.ilog2();
    let mut part = None;
    if let Some(f) = &vector {
        // Few rows of many elements: blocks share them.
        let most = folds.as_ref().map_or(i64::MAX, most_columns);
        let wide = columns && width > most;
        // Rows that are gone through once are read in runs as long as can be.
        let shares = if folds.is_some_and(|f| f.folds == 1) { threads } else { wanted };
        let chunk = ((width * count / shares).clamp(1, width) + 255) / 256 * 256;
        let chunk = if columns { chunk.min(most) } else { chunk.max(BLOCK_WORK / 4) };
        let several = f.hi.as_const().is_none_or(|n| n > chunk);
        if several && (wide || across.is_none() && work >= SPLIT_FROM && count < wanted) {
            let name = &script.kernel.axes[f.axis].name;
            let names = [format!("{name}b"), name.clone()];
            part = script.step(Step::Split { at: inside, size: chunk as u32, names, guard: false })?.first().copied();
        }
    }
    let made = part.is_some() || !rows.is_empty();
    if !rows.is_empty() {
        let name = if per_block > 1 { "n" } else { "b" };
        let mut b = *script.step(Step::Fuse { loops: rows, name: name.into() })?.first().ok_or(GONE)?;
        if per_block > 1 {
            let names = ["b", "r"].map(String::from);
            let made = script.step(Step::Split { at: b, size: per_block as u32, names, guard: false })?;
            let [over, row] = made[..] else { return Err(GONE.into()) };
            if let Some(part) = part {
                script.step(Step::Reorder { loops: vec![part, row] })?;
            }
            b = over;
        }
        script.step(Step::Bind { loops: vec![b], to: To::Block(0) })?;
    }
    if let Some(part) = part {
        script.step(Step::Bind { loops: vec![part], to: To::Block(1) })?;
    }
    Ok(made)
}

/// The loop over rows that compute the most alike, where a block had better do several of them.
fn shared_along(kernel: &Kernel, around: &[&For], inner: &For) -> Option<usize> {
    let spared = |(at, f): (usize, &&For)| Some((compute_once::worth(kernel, f, inner)?, at));
    around.iter().enumerate().filter_map(spared).max().map(|(_, at)| at)
}

/// The most columns of a block: what it keeps of each lies in a cache.
fn most_columns(folds: &ColumnFolds) -> i64 {
    let kept = i64::try_from(folds.kept).unwrap_or(i64::MAX);
    let fit = if kept == 0 { MOST_COLUMNS } else { MOST_KEPT / kept / LEAST_COLUMNS * LEAST_COLUMNS };
    fit.clamp(LEAST_COLUMNS, MOST_COLUMNS)
}

/// Cuts a loop into pieces of at most so many iterations: the loop over the pieces, and the loop within one.
fn cut(script: &mut Script<'_>, at: LoopRef, most: i64) -> Result<[LoopRef; 2], String> {
    let f = script.find(at).ok_or("the loop is gone")?;
    // A piece that divides the loop leaves no shorter one at its end.
    let even = f.hi.as_const().and_then(|n| [most, most / 2, most / 4].into_iter().find(|size| n % size == 0));
    let size = even.unwrap_or(most) as u32;
    let names = ["1", "2"].map(|suffix| format!("{}{suffix}", script.kernel.axes[f.axis].name));
    let made = script.step(Step::Split { at, size, names, guard: false })?;
    made.try_into().map_err(|_| "the loop is gone".to_string())
}

/// Iterations of the loops in a body, roughly.
fn work_of(body: &[Stmt], guess: &dyn Fn(&Ix) -> i64) -> i64 {
    let of = |s: &Stmt| match s {
        Stmt::For(f) => guess(&f.hi).max(1).saturating_mul(work_of(&f.body, guess)),
        _ => 0,
    };
    body.iter().map(of).fold(1, i64::saturating_add)
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text};

    #[test]
    fn rows_are_shared_among_blocks() {
        let k = kernel(
            "loop kernel k(p: ptr f32) open:\n  for i in 0..30: free\n    for j in 0..100: free\n      store p[i*100 + j] = 1.0\n",
        );
        let (out, log) = apply("blockify", &k, &context());
        assert_eq!(log.applied, ["loop i"]);
        let want = "tile kernel k(p: ptr f32) open:
  for b in 0..15: free block(x)
    for r in 0..2: free
      for j in 0..100: free
        store p[b*200 + r*100 + j] = 1.0
";
        assert_eq!(text(&out), want);
    }

    #[test]
    fn few_long_rows_are_cut() {
        let k = kernel(
            "loop kernel k(p: ptr f32, n: i64 in 1..1000) open:\n  for j in 0..100000: free\n    store p[j] = 1.0\n",
        );
        let (out, _) = apply("blockify", &k, &context());
        let made = text(&out);
        assert!(
            made.contains("for jb in 0..8: free block(y)\n    for j in 0..min(12544, 100000 - jb*12544)"),
            "{made}"
        );
    }

    #[test]
    fn columns_that_are_folded_stay_together() {
        let fold_keeping = |kept: &str, columns: &str, rows: u32| {
            let text = format!(
                "loop kernel k(x: ptr f32, y: ptr f32, n: i64 in 1..64) open:\n  for j in 0..{columns}: free\n    {kept}local s: f32\n    \
                 s = 0.0\n    for i in 0..{rows}: reduce combine add(s) from 0.0\n      v: f32 = load x[i*({columns}) + j]\n      \
                 a: f32 = s\n      b: f32 = a + v\n      s = b\n    r: f32 = s\n    store y[j] = r\n"
            );
            text_of(&text)
        };
        let fold = |columns: &str, rows: u32| fold_keeping("", columns, rows);
        fn text_of(loop_ir: &str) -> String {
            text(&apply("blockify", &kernel(loop_ir), &context()).0)
        }
        let many = fold("8192", 1000);
        assert!(many.contains("for jb in 0..2: free block(y)\n    for j in 0..4096: free"), "{many}");
        let wide = fold("100000", 4);
        assert!(wide.contains("for j in 0..min(4096, 100000 - jb*4096): free"), "{wide}");
        // A row of 4000 bytes for each column fills the cache sooner.
        let kept = fold_keeping("local e: f32[1000]\n    ", "8192", 1000);
        assert!(kept.contains("for j in 0..128: free"), "{kept}");
        // The largest value of a symbol is not a size.
        let open = fold("n*2", 1000);
        assert!(open.contains(", n*2") || !open.contains("jb"), "{open}");
    }

    #[test]
    fn nests_side_by_side_get_blocks_of_their_own_and_small_ones_share() {
        let nest = |at: u32, n: u32| {
            format!(
                "  for i{at} in 0..{n}: free\n    for j{at} in 0..64: free\n      store p{at}[i{at}*64 + j{at}] = 1.0\n"
            )
        };
        let params = "p0: ptr f32, p1: ptr f32, p2: ptr f32, p3: ptr f32";
        let body = [nest(0, 4), nest(1, 4), nest(2, 4096), nest(3, 4)].concat();
        let (out, _) = apply("blockify", &kernel(&format!("loop kernel k({params}) open:\n{body}")), &context());
        let made = text(&out);
        let heads: Vec<&str> = made.lines().filter(|l| l.starts_with("  for")).collect();
        assert_eq!(
            heads,
            ["  for b in 0..1: free block(x)", "  for b_1 in 0..16: free block(x)", "  for b_2 in 0..1: free block(x)"],
            "{made}"
        );
    }

    #[test]
    fn what_blocks_would_repeat_or_need_of_each_other_is_refused() {
        let launched = "loop kernel k(p: ptr f32):\n  for i in 0..4096: free\n    store p[i] = 1.0\n";
        assert_eq!(refusals("blockify", launched, &context()), ["grid: the launch gives it"]);
        let sum = "loop kernel k(p: ptr f32, q: ptr f32) open:\n  local s: f32\n  s = 0.0\n  for k in 0..64: reduce combine add(s) from 0.0\n    x: f32 = load p[k]\n    o: f32 = s\n    t: f32 = x + o\n    s = t\n  r: f32 = s\n  for i in 0..4096: free\n    store q[i] = r\n";
        assert_eq!(
            refusals("blockify", sum, &context()),
            ["grid: every block would repeat the statements beside the free loops"]
        );
        let chain = "loop kernel k(p: ptr f32, q: ptr f32) open:\n  for i in 0..64: free\n    store p[i] = 1.0\n  for j in 0..64: free\n    x: f32 = load p[j]\n    store q[j] = x\n";
        assert_eq!(refusals("blockify", chain, &context()), ["grid: a nest loads what another one stores"]);
        let halves = "loop kernel k(p: ptr i4) open:\n  for i in 0..4096: free\n    store p[i] = 1:i4\n";
        assert_eq!(refusals("blockify", halves, &context()), ["grid: two of its elements share a byte"]);
    }
}
