//! `blockify`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::index::simplify;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit;
use crate::tile::numbered::Numbered;
use crate::tile::rules::interchange;
use crate::tile::rules::site_of;

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
read faster. Where loads walk memory along another axis than stores, a block has a piece of 64 x 256
elements. Nests that stand side by side get blocks of their own; small ones share one.

Refuses kernels whose grid the launch gives; nests that need what another one stores, or that follow a reduction which
each block would repeat; and elements of less than a byte, of which two share one.
",
    run,
};

/// Elements that a block should at least compute, so that starting it does not show.
const BLOCK_WORK: i64 = 1 << 14;
/// Elements of an innermost loop from which it is shared among blocks.
const SPLIT_FROM: i64 = 1 << 13;
/// Rows and columns of a piece that is read along one of its sides and written along the other.
const PIECE_ROWS: i64 = 64;
const PIECE_COLUMNS: i64 = 256;
/// Elements up to which nests that follow one another are one block's.
const SMALL: i64 = 1 << 13;
/// Extents that are not known are taken to be this long.
const GUESS: i64 = 512;

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !p.open {
        log.skipped("grid", "the launch gives it");
        return None;
    }
    if let Err(why) = check(p) {
        log.skipped("grid", why);
        return None;
    }
    let mut kernel = p.clone();
    let mut changed = false;
    // Small nests that are waiting for others, and their elements.
    let (mut out, mut small, mut waiting): (Vec<Stmt>, Vec<Stmt>, i64) = (vec![], vec![], 0);
    let several = p.body.iter().filter(|s| is_nest(s)).count() > 1;
    for s in &p.body {
        let f = match s {
            Stmt::For(f) if is_nest(s) && f.place == Place::None => f,
            _ => {
                out.push(s.clone());
                continue;
            }
        };
        if several {
            let elements = elements(f).filter(|n| *n <= SMALL);
            if elements.is_none_or(|n| waiting + n > SMALL) {
                out.extend(together(&mut kernel, std::mem::take(&mut small)));
                waiting = 0;
            }
            if let Some(n) = elements {
                small.push(s.clone());
                waiting += n;
                changed = true;
                continue;
            }
        }
        let site = site_of(p, s);
        match share(&mut kernel, f, ctx.target.axes.workers) {
            Some(shared) => {
                log.applied(site);
                out.push(shared);
                changed = true;
            }
            None if several => out.extend(together(&mut kernel, vec![s.clone()])),
            None => {
                log.skipped(site, "it is one block's work");
                out.push(s.clone());
            }
        }
    }
    out.extend(together(&mut kernel, small));
    kernel.body = out;
    changed.then_some(kernel)
}

/// Columns that a block folds at most: what it has of each lies in a cache. Runs of 4096 elements of a row are read half as
/// fast again as those of 1024, and twice as fast as those of 512, where they do not begin with a page.
const MOST_COLUMNS: i64 = 4096;

fn is_nest(s: &Stmt) -> bool {
    matches!(s, Stmt::For(f) if f.kind == LoopKind::Free)
}

/// Whether the nests may run in any order, each in blocks.
pub(super) fn check(p: &Kernel) -> Result<(), String> {
    if !p.body.iter().any(is_nest) {
        return Err("the outermost loop is not free".to_string());
    }
    let (mut loaded, mut stored, mut narrow) = (BTreeSet::new(), BTreeSet::new(), false);
    walk::visit(&p.body, &mut |s| match s {
        Stmt::Load { mem, .. } => _ = loaded.insert(mem.base),
        Stmt::Store { mem, .. } => {
            stored.insert(mem.base);
            narrow |= mem.elem.bits() < 8 && mem.elem.bits() > 1;
        }
        _ => {}
    });
    if narrow {
        return Err("two of its elements share a byte".to_string());
    }
    let nests = p.body.iter().filter(|s| is_nest(s)).count();
    if nests > 1 && loaded.intersection(&stored).next().is_some() {
        return Err("a nest loads what another one stores".to_string());
    }
    for s in p.body.iter().filter(|s| !is_nest(s)) {
        let alone = edit::is_pure(s) || matches!(s, Stmt::Local { .. } | Stmt::Write { .. } | Stmt::Assert { .. });
        if !alone {
            return Err("every block would repeat the statements beside the free loops".to_string());
        }
    }
    Ok(())
}

/// The elements that a nest computes, where that is known.
fn elements(f: &For) -> Option<i64> {
    let own = f.hi.as_const()?;
    match &f.body[..] {
        [Stmt::For(inner)] if inner.kind == LoopKind::Free => own.checked_mul(elements(inner)?),
        _ => Some(own),
    }
}

/// Small nests as the work of one block.
pub(super) fn together(kernel: &mut Kernel, body: Vec<Stmt>) -> Option<Stmt> {
    if body.is_empty() {
        return None;
    }
    let axis = kernel.axes.push(Axis { name: "b".into(), from: None });
    Some(edit::block_loop(axis, 0, Ix::Const(1), body))
}

/// A nest with its outer loops shared among blocks; `None` where one block is enough.
fn share(kernel: &mut Kernel, nest: &For, threads: u32) -> Option<Stmt> {
    let (mut chain, mut inner) = (vec![], nest.clone());
    let inner = loop {
        match inner.body.pop() {
            Some(Stmt::For(next))
                if inner.body.is_empty() && next.kind == LoopKind::Free && inner.contraction.is_none() =>
            {
                chain.push(inner);
                inner = *next;
            }
            last => {
                inner.body.extend(last);
                break inner;
            }
        }
    };
    let folds = interchange::column_folds(kernel, &inner);
    let columns = folds > 0;
    let across = interchange::runs_across(kernel, &chain, &inner);
    let (mut chain, mut inner) = (chain, inner);
    if let Some(t) = across {
        // A block has a square piece, which is walked along both axes.
        let of = chain.remove(t);
        let (tiles, rows) = cut(kernel, of, PIECE_ROWS, &mut inner.body);
        chain.insert(t, tiles);
        let mut body = std::mem::take(&mut inner.body);
        let (pieces, columns) = cut(kernel, inner, PIECE_COLUMNS, &mut body);
        chain.push(pieces);
        inner = For { body: vec![Stmt::For(Box::new(For { body, ..columns }))], ..rows };
    }
    let leaf = across.is_some() || columns || !inner.body.iter().any(|s| matches!(s, Stmt::For(_)));
    let guess = |ix: &Ix| {
        ix.eval(&|leaf| match leaf {
            Ix::Const(c) => *c,
            _ => GUESS,
        })
    };
    // The loop that stays in the block as a vector; without one, everything but the loop's body is rows.
    let (rows, vector) = if leaf { (chain, Some(inner)) } else { (chain.into_iter().chain([inner]).collect(), None) };
    let each = match &vector {
        Some(f) => work_of(&f.body, &guess),
        None => 1,
    };
    let width = vector.as_ref().map_or(1, |f| guess(&f.hi).max(1));
    let work: i64 = match &vector {
        Some(_) => width.saturating_mul(each),
        None => rows.last().map_or(1, |f| work_of(&f.body, &guess)),
    };
    if rows.iter().any(|f| f.hi.is_const(0)) {
        return None;
    }
    let mut facts = kernel.facts();
    let numbered = Numbered::new(&rows, &facts);
    let total = numbered.total.clone();
    let count = guess(&total).max(1);
    let wanted = i64::from(threads.max(1)) * 4;

    let mut blocks: Vec<(AxisId, u8, Ix)> = vec![];
    // A power of two, so that blocks are even where the rows are.
    let per_block = (BLOCK_WORK / work).clamp(1, (count / wanted).max(1));
    let per_block = 1 << per_block.ilog2();
    let mut body = match vector {
        Some(mut f) => {
            // Few rows of many elements: blocks share them.
            let wide = columns && width > MOST_COLUMNS;
            // Rows that are gone through once are read in runs as long as can be.
            let shares = if folds == 1 { i64::from(threads.max(1)) } else { wanted };
            let chunk = ((width * count / shares).clamp(1, width) + 255) / 256 * 256;
            let chunk = if columns { chunk.min(MOST_COLUMNS) } else { chunk.max(BLOCK_WORK / 4) };
            let several = f.hi.as_const().is_none_or(|n| n > chunk);
            if several && (wide || across.is_none() && work >= SPLIT_FROM && count < wanted) {
                let chunks = simplify(&Ix::ceil_div(f.hi.clone(), Ix::Const(chunk)), &facts);
                let part = edit::new_axis(kernel, f.axis, "b");
                let start = Ix::mul(Ix::Axis(part), Ix::Const(chunk));
                let left = Ix::sub(f.hi.clone(), start.clone());
                f.hi = match f.hi.as_const() {
                    Some(n) if n % chunk == 0 => Ix::Const(chunk),
                    _ => Ix::min(Ix::Const(chunk), left),
                };
                let axis = f.axis;
                let moved = Ix::add(start, Ix::Axis(axis));
                f.body = edit::place_axes(&f.body, &[(axis, moved)].into(), &BTreeMap::from([(axis, chunk)]));
                blocks.push((part, 1, chunks));
            }
            vec![Stmt::For(Box::new(f))]
        }
        None => rows.last().map_or(vec![], |f| f.body.clone()),
    };
    if !rows.is_empty() {
        let count = match per_block {
            1 => total.clone(),
            _ => simplify(&Ix::ceil_div(total.clone(), Ix::Const(per_block)), &facts),
        };
        let b = kernel.axes.push(Axis { name: "b".into(), from: None });
        facts.set_axis(b, &Ix::Const(0), &count);
        let row_axis = (per_block > 1).then(|| kernel.axes.push(Axis { name: "r".into(), from: None }));
        let first = Ix::mul(Ix::Axis(b), Ix::Const(per_block));
        let row = match row_axis {
            Some(axis) => Ix::add(first.clone(), Ix::Axis(axis)),
            None => Ix::Axis(b),
        };
        if let Some(axis) = row_axis {
            facts.set_axis(axis, &Ix::Const(0), &Ix::Const(per_block));
        }
        numbered.place(&mut body, &row, &facts);
        if let Some(axis) = row_axis {
            let hi = match total.as_const() {
                Some(n) if n % per_block == 0 => Ix::Const(per_block),
                _ => Ix::min(Ix::Const(per_block), Ix::sub(total, first)),
            };
            body = vec![edit::free_loop(axis, hi, body)];
        }
        blocks.push((b, 0, count));
    }
    if blocks.is_empty() {
        return None;
    }
    for (axis, dim, count) in blocks {
        body = vec![edit::block_loop(axis, dim, count, body)];
    }
    body.pop()
}

/// A loop cut into pieces of at most so many iterations: the loop over the pieces, and the loop within one. `body` is what stands in
/// it.
fn cut(kernel: &mut Kernel, f: For, most: i64, body: &mut [Stmt]) -> (For, For) {
    let [outer, inner] = ["1", "2"].map(|suffix| edit::new_axis(kernel, f.axis, suffix));
    // A piece that divides the loop leaves no shorter one at its end.
    let even = f.hi.as_const().and_then(|n| [most, most / 2, most / 4].into_iter().find(|size| n % size == 0));
    let size = even.unwrap_or(most);
    let start = Ix::mul(Ix::Axis(outer), Ix::Const(size));
    let hi = match even {
        Some(_) => Ix::Const(size),
        None => Ix::min(Ix::Const(size), Ix::sub(f.hi.clone(), start.clone())),
    };
    let count = simplify(&Ix::ceil_div(f.hi.clone(), Ix::Const(size)), &kernel.facts());
    let moved = Ix::add(start, Ix::Axis(inner));
    body.clone_from_slice(&edit::place_axes(body, &[(f.axis, moved)].into(), &BTreeMap::from([(inner, size)])));
    (For { axis: outer, hi: count, body: vec![], ..f.clone() }, For { axis: inner, hi, body: vec![], ..f })
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
        let fold = |columns: &str, rows: u32| {
            let text = format!(
                "loop kernel k(x: ptr f32, y: ptr f32, n: i64 in 1..64) open:\n  for j in 0..{columns}: free\n    local s: f32\n    \
                 s = 0.0\n    for i in 0..{rows}: reduce combine add(s) from 0.0\n      v: f32 = load x[i*({columns}) + j]\n      \
                 a: f32 = s\n      b: f32 = a + v\n      s = b\n    r: f32 = s\n    store y[j] = r\n"
            );
            text_of(&text)
        };
        fn text_of(loop_ir: &str) -> String {
            text(&apply("blockify", &kernel(loop_ir), &context()).0)
        }
        let many = fold("8192", 1000);
        assert!(many.contains("for jb in 0..2: free block(y)\n    for j in 0..4096: free"), "{many}");
        let wide = fold("100000", 4);
        assert!(wide.contains("for j in 0..min(4096, 100000 - jb*4096): free"), "{wide}");
        // What a symbol may be is no size.
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
