//! `interchange`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::edit::{self, Visit, at_most, new_axis};
use crate::tile::primitives::split::Pieces;
use crate::tile::rules::axis_site;
use crate::tile::rules::split_digits::digits_tested;

mod columns;
pub(super) use columns::{ColumnFolds, column_folds};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "interchange",
    doc: "\
Reorders loops so that memory is walked in order.

A free nest gets the axis along which it stores innermost. Where its loads run along another axis, the two are cut into
blocks of 16 x 16, and what is loaded goes through a local buffer: memory is only walked along its lines, which are
whole lines for elements of four bytes, and conversions run in order too. What whole blocks leave over has smaller ones.

```text
for i in 0..64: free                             for j1 in 0..4: free
  for j in 0..64: free                             for i1 in 0..4: free
    %x = load X[j*M + i]                  -->        local block: f32[16, 16]
    store Y[i*N + j] = %x                            for j2 in 0..16: free
                                                       for i2 in 0..16: free
                                                         block[j2, i2] = load X[(j1*16 + j2)*M + (i1*16 + i2)]
                                                     for i2 in 0..16: free
                                                       for j2 in 0..16: free
                                                         store Y[(i1*16 + i2)*N + (j1*16 + j2)] = block[j2, i2]
```

Folds that walk down the columns of a row-major tile become folds that add row to row: the loop is cut at each of them, and
what an iteration keeps becomes an array with an element for each column, or a row of them. Each column keeps its order. Rows are folded eight or
four at a time, and a long sum of floats goes in stretches of 64 rows, which are added up one by one.

```text
for j in 0..256: free                            local s: f32[256]
  local s                                        for j in 0..256: free
  s = 0.0                                          s[j] = 0.0
  for i in 0..64: reduce combine add(s)   -->    for i in 0..64: reduce
    s <- x[i, j] + s                               for j in 0..256: free
  out[j] = s                                         s[j] <- x[i, j] + s[j]
                                                 for j in 0..256: free
                                                   out[j] = s[j]
```

Knob: `interchange` (0 turns the rule off).

Refuses when bounds of the loops depend on each other, a column decides how many rows are folded, or what is kept of the
columns fills the caches.
",
    run,
};

const BLOCK: i64 = 16;

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !ctx.knobs.interchange {
        log.skipped("kernel", "knob off");
        return None;
    }
    edit::rewrite(p, &mut |kernel, s| {
        let Stmt::For(f) = s else { return Visit::Into };
        if f.kind != LoopKind::Free || f.place != Place::None {
            return Visit::Into;
        }
        let chain = edit::free_chain(f);
        let innermost = &chain[chain.len() - 1];
        let columns = innermost.body.iter().any(|s| !walk::bodies(s).is_empty());
        let result = if !columns {
            reorder(kernel, &chain)
        } else if chain.len() == 1 {
            columns::fold_rows(kernel, f)
        } else {
            return Visit::Into;
        };
        let site = axis_site(kernel, f.axis);
        match result {
            Ok(Some(new)) => {
                log.applied(site);
                if columns { Visit::Again(new) } else { Visit::Replace(new) }
            }
            Ok(None) => Visit::Into,
            Err(why) => {
                log.skipped(site, why);
                Visit::Into
            }
        }
    })
}

/// How the accesses of straight-line statements go along an axis.
struct Strides {
    stores: Vec<Stride>,
    loads: Vec<Stride>,
}

fn strides(
    kernel: &Kernel,
    body: &[Stmt],
    axis: AxisId,
    varying: &BTreeSet<ValId>,
    except: &BTreeSet<BufId>,
) -> Strides {
    let mut out = Strides { stores: vec![], loads: vec![] };
    for s in body {
        match s {
            Stmt::Load { mem, .. } => out.loads.push(affine::stride(&mem.index, axis, varying)),
            Stmt::Store { mem, .. } => out.stores.push(affine::stride(&mem.index, axis, varying)),
            Stmt::Read { buf, idx, .. } if !except.contains(buf) => {
                out.loads.push(affine::buf_stride(&kernel.bufs[*buf], idx, axis, varying));
            }
            Stmt::Write { buf, idx, .. } if !except.contains(buf) => {
                out.stores.push(affine::buf_stride(&kernel.bufs[*buf], idx, axis, varying));
            }
            _ => {}
        }
    }
    out
}

/// The axis of `around` along which a load of a free loop walks memory, where the loop itself walks it far apart and stores side
/// by side: such loops are best run in square pieces.
pub(super) fn runs_across(kernel: &Kernel, around: &[&For], f: &For) -> Option<usize> {
    if f.body.iter().any(|s| !edit::is_pure(s) && !matches!(s, Stmt::Store { .. })) {
        return None;
    }
    let varying = refs(&f.body).vals_defined;
    let of = |axis| strides(kernel, &f.body, axis, &varying, &BTreeSet::new());
    let own = of(f.axis);
    let far = |at: &usize| matches!(own.loads[*at], Stride::Far | Stride::Irregular);
    let other: Vec<Strides> = around.iter().map(|a| of(a.axis)).collect();
    let across = |at: usize| (0..around.len()).find(|t| other[*t].loads[at] == Stride::Unit);
    let big = |f: &For| f.lo.is_const(0) && at_most(&f.hi).is_none_or(|n| n > BLOCK);
    let t =
        (own.stores.first() == Some(&Stride::Unit)).then(|| (0..own.loads.len()).filter(far).find_map(across))??;
    (big(f) && big(around[t])).then_some(t)
}

/// `Ok(None)`: it is fine as it is.
fn reorder(kernel: &mut Kernel, chain: &[&For]) -> Result<Option<Vec<Stmt>>, &'static str> {
    let [.., last] = chain else { return Ok(None) };
    if chain.len() < 2 {
        return Ok(None);
    }
    let varying = refs(&last.body).vals_defined;
    let all: Vec<Strides> =
        chain.iter().map(|f| strides(kernel, &last.body, f.axis, &varying, &BTreeSet::new())).collect();
    // The first store decides; of several axes along which it runs, the innermost.
    let along = |at: &usize| all[*at].stores.first() == Some(&Stride::Unit) && at_most(&chain[*at].hi) != Some(1);
    let Some(s) = (0..all.len()).rev().find(along) else { return Ok(None) };
    let far = |x: &Strides, at: usize| matches!(x.loads[at], Stride::Far | Stride::Irregular);
    let conflict = (0..all[s].loads.len())
        .filter(|&at| far(&all[s], at))
        .find_map(|at| (0..all.len()).find(|&t| t != s && all[t].loads[at] == Stride::Unit));
    let big = |f: &For| at_most(&f.hi).is_none_or(|n| n > BLOCK);
    let block = conflict.filter(|&t| big(chain[t]) && big(chain[s]));
    if s + 1 == chain.len() && block.is_none() {
        return Ok(None);
    }
    if digits_tested(&last.body, chain[s].axis).is_some_and(|axes| !axes.contains(&last.axis)) {
        return Err("its elements are tested one by one along the axis that it stores along");
    }
    if last.body.iter().any(|s| !edit::is_pure(s) && !matches!(s, Stmt::Write { .. } | Stmt::Store { .. })) {
        return Err("it holds more than loads, arithmetic and stores");
    }
    let axes: BTreeSet<AxisId> = chain.iter().map(|f| f.axis).collect();
    if chain.iter().any(|f| f.lo.axes().iter().chain(&f.hi.axes()).any(|a| axes.contains(a))) {
        return Err("the bounds of its loops depend on each other");
    }
    let mut order: Vec<For> = chain.iter().map(|f| For { body: vec![], ..(*f).clone() }).collect();
    let Some(t) = block else {
        let inner = order.remove(s);
        order.push(inner);
        return Ok(Some(nest(order, last.body.clone())));
    };
    if [s, t].iter().any(|&x| !chain[x].lo.is_const(0)) {
        return Err("its loops do not start at 0");
    }
    let mut at = 0;
    order.retain(|_| {
        at += 1;
        at - 1 != s && at - 1 != t
    });
    let mut body = vec![];
    for of_t in 0..Cut::parts(chain[t]) {
        for of_s in 0..Cut::parts(chain[s]) {
            let own = if body.is_empty() { last.body.clone() } else { walk::clone_fresh(kernel, &last.body) };
            let (of_t, of_s) = (Cut::new(kernel, chain[t], of_t), Cut::new(kernel, chain[s], of_s));
            let outer = [&of_t, &of_s].into_iter().filter_map(|cut| cut.outer.clone());
            let block = through_block(kernel, &own, &of_t, &of_s);
            body.extend(nest(outer.collect(), block));
        }
    }
    Ok(Some(nest(order, body)))
}

/// A loop cut into blocks, or a part of one: what whole blocks leave over is a block of its own, where that is known.
struct Cut {
    axis: AxisId,
    /// The loop over the blocks; none over one.
    outer: Option<For>,
    inner: For,
    /// Where the first block starts.
    first: i64,
    pieces: Pieces,
}

impl Cut {
    /// How many parts a loop has.
    fn parts(f: &For) -> usize {
        let rest = Pieces::of(f, BLOCK).rest();
        if rest.is_some_and(|(first, _)| first > 0) { 2 } else { 1 }
    }

    fn new(kernel: &mut Kernel, f: &For, part: usize) -> Cut {
        let inner = new_axis(kernel, f.axis, "2");
        let pieces = Pieces::of(f, BLOCK);
        if let Some((first, rest)) = pieces.rest().filter(|_| part > 0) {
            let inner = For { axis: inner, hi: Ix::Const(rest), body: vec![], ..f.clone() };
            return Cut { axis: f.axis, outer: None, inner, first, pieces };
        }
        let outer = new_axis(kernel, f.axis, "1");
        let pieces = if Cut::parts(f) > 1 { pieces.whole().unwrap_or(pieces) } else { pieces };
        let [outer, inner] = pieces.loops(f, [outer, inner], &kernel.facts());
        Cut { axis: f.axis, outer: Some(outer), inner, first: 0, pieces }
    }

    /// The position that the loop's axis stood for, at an offset in the block.
    fn position(&self, offset: AxisId) -> Ix {
        match &self.outer {
            Some(outer) => self.pieces.at(outer.axis, offset),
            None => Ix::add(Ix::Const(self.first), Ix::Axis(offset)),
        }
    }
}

/// One block: what is loaded along `t` goes, converted, through a local buffer; the rest then runs along `s`.
fn through_block(kernel: &mut Kernel, body: &[Stmt], t: &Cut, s: &Cut) -> Vec<Stmt> {
    let varying = refs(body).vals_defined;
    let mut out = Vec::new();
    let mut left = body.to_vec();
    for load in body {
        let along = |axis| match load {
            Stmt::Load { mem, .. } => affine::stride(&mem.index, axis, &varying),
            Stmt::Read { buf, idx, .. } => affine::buf_stride(&kernel.bufs[*buf], idx, axis, &varying),
            _ => Stride::Same,
        };
        if along(t.axis) != Stride::Unit || along(s.axis) == Stride::Same {
            continue;
        }
        let mut fixed = true;
        walk::each_use(load, &mut |v| fixed &= !varying.contains(&v));
        let Some(mut value) = walk::def(load).filter(|_| fixed) else { continue };
        // Conversions of the element come along.
        let mut moved = vec![load.clone()];
        while let Some(next) = sole_conversion(&left, value) {
            value = walk::def(&next).unwrap_or(value);
            moved.push(next);
        }
        let ty = kernel.vals[value].ty;
        let shape = vec![BLOCK as u64, BLOCK as u64];
        let buf = kernel.bufs.push(Buf::new("block", ty, shape.clone()));
        let Some(at) = left.iter().position(|x| moved.last() == Some(x)) else { continue };
        // What is only moved is turned where it goes; what more is computed of, before.
        let turned = (left.len() > moved.len() + 1).then(|| kernel.bufs.push(Buf::new("turned", ty, shape)));
        let (of_s, of_t) = (Ix::Axis(s.inner.axis), Ix::Axis(t.inner.axis));
        left[at] = match turned {
            Some(turned) => Stmt::Read { dst: value, buf: turned, idx: vec![of_t, of_s] },
            None => Stmt::Read { dst: value, buf, idx: vec![of_s, of_t] },
        };
        left.retain(|x| !moved.contains(x));

        let [s2, t2] = [s.inner.axis, t.inner.axis].map(|a| new_axis(kernel, a, ""));
        let by = BTreeMap::from([(s.axis, s.position(s2)), (t.axis, t.position(t2))]);
        let renaming = walk::Renaming::fresh(kernel, &moved);
        let mut fill = edit::place_axes(&moved, &by, &BTreeMap::new());
        renaming.apply(&mut fill);
        let value = Opnd::Val(renaming.vals.get(&value).copied().unwrap_or(value));
        fill.push(Stmt::Write { buf, idx: vec![Ix::Axis(s2), Ix::Axis(t2)], value });
        out.push(Stmt::Local { buf });
        out.extend(nest(vec![For { axis: s2, ..s.inner.clone() }, For { axis: t2, ..t.inner.clone() }], fill));
        if let Some(turned) = turned {
            let [s3, t3] = [s.inner.axis, t.inner.axis].map(|a| new_axis(kernel, a, ""));
            let dst = kernel.vals.push(Val { ty, name: kernel.bufs[buf].name.clone() });
            let turn = vec![
                Stmt::Read { dst, buf, idx: vec![Ix::Axis(s3), Ix::Axis(t3)] },
                Stmt::Write { buf: turned, idx: vec![Ix::Axis(t3), Ix::Axis(s3)], value: Opnd::Val(dst) },
            ];
            out.push(Stmt::Local { buf: turned });
            out.extend(nest(vec![For { axis: t3, ..t.inner.clone() }, For { axis: s3, ..s.inner.clone() }], turn));
        }
    }
    let by = BTreeMap::from([(s.axis, s.position(s.inner.axis)), (t.axis, t.position(t.inner.axis))]);
    let body = edit::place_axes(&left, &by, &BTreeMap::new());
    out.extend(nest(vec![t.inner.clone(), s.inner.clone()], body));
    out
}

/// The only statement that uses a value, when it is an operation of nothing else.
fn sole_conversion(body: &[Stmt], value: ValId) -> Option<Stmt> {
    let mut users = body.iter().filter(|s| {
        let mut uses = false;
        walk::each_use(s, &mut |v| uses |= v == value);
        uses
    });
    let only = users.next()?;
    let alone = matches!(only, Stmt::Let { args, .. } if args[..] == [Opnd::Val(value)]);
    (alone && users.next().is_none()).then(|| only.clone())
}

fn nest(loops: Vec<For>, mut body: Vec<Stmt>) -> Vec<Stmt> {
    for mut f in loops.into_iter().rev() {
        f.body = body;
        body = vec![Stmt::For(Box::new(f))];
    }
    body
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{COLUMN_SUMS, apply, context, kernel, refusals, text};

    #[test]
    fn the_axis_of_the_stores_goes_innermost() {
        let k = kernel(
            "loop kernel k(p: ptr f32):\n  for i in 0..8: free\n    for j in 0..32: free\n      store p[j*8 + i] = 1.0\n",
        );
        let (out, _) = apply("interchange", &k, &context());
        let want = "tile kernel k(p: ptr f32):\n  for j in 0..32: free\n    for i in 0..8: free\n      store p[j*8 + i] = 1.0\n";
        assert_eq!(text(&out), want);
    }

    #[test]
    fn loops_whose_bounds_depend_on_each_other_stay() {
        let triangle = "loop kernel k(p: ptr f32):\n  for i in 0..8: free\n    for j in 0..i: free\n      store p[j*8 + i] = 1.0\n";
        let why = refusals("interchange", triangle, &context());
        assert_eq!(why, ["loop i: the bounds of its loops depend on each other"]);
    }

    #[test]
    fn a_fold_along_rows_stays() {
        let rows = COLUMN_SUMS.replace("X[i*256 + j]", "X[j*64 + i]");
        assert_eq!(refusals("interchange", &rows, &context()), Vec::<String>::new());
        let passed = COLUMN_SUMS.replace("    s = 0.0\n", "    s = 0.0\n    z: f32 = load Y[j]\n");
        let passed = passed.replace("s1: f32 = x + s0", "s2: f32 = x + s0\n      s1: f32 = s2 + z");
        let (out, _) = apply("interchange", &kernel(&passed), &context());
        let made = text(&out);
        assert!(made.contains("z_of[j] = z") && made.contains(": f32 = z_of[j_1]"), "{made}");
        let decides = COLUMN_SUMS.replace("    s = 0.0\n", "    s = 0.0\n    n: i32 = load C[j]\n");
        let decides =
            decides.replace("Y: ptr f32", "Y: ptr f32, C: ptr i32").replace("0..64: reduce", "0..min(n, 64): reduce");
        let why = refusals("interchange", &decides, &context());
        assert_eq!(why, ["loop j: a column decides how many rows are folded"]);
    }

    #[test]
    fn rows_that_keep_an_element_each_are_folded_one_by_one() {
        let scan = "loop kernel k(X: ptr f32, Y: ptr f32):\n  local t: f32[8, 16]\n  for a in 0..8: free\n    for b in 0..16: free\n      \
            x: f32 = load X[a*16 + b]\n      t[a, b] = x\n  for j in 0..16: free\n    local s: f32\n    s = 0.0\n    for i in 0..8: serial\n      \
            t0: f32 = t[i, j]\n      s0: f32 = s\n      s1: f32 = t0 + s0\n      s = s1\n      t[i, j] = s1\n  \
            for c in 0..8: free\n    for d in 0..16: free\n      y: f32 = t[c, d]\n      store Y[c*16 + d] = y\n";
        let made = text(&apply("interchange", &kernel(scan), &context()).0);
        assert!(made.contains("for i in 0..8: serial\n    for j_1 in 0..16: free"), "{made}");
        assert!(made.contains("t[i, j_1] = s1"), "{made}");
    }

    /// A column that is kept, folded, and stored: along the rows, or along the columns.
    fn normalised(store: &str) -> String {
        format!(
            "loop kernel k(X: ptr f32, Y: ptr f32):\n  for j in 0..48: free\n    local e: f32[24]\n    local s: f32\n    s = 0.0\n    \
             for i in 0..24: reduce combine add(s) from -0.0\n      x: f32 = load X[i*48 + j]\n      y: f32 = exp(x)\n      \
             e[i] = y\n      s0: f32 = s\n      s1: f32 = y + s0\n      s = s1\n    t: f32 = s\n    for c in 0..24: free\n      \
             z: f32 = e[c]\n      q: f32 = z / t\n      store Y[{store}] = q\n"
        )
    }

    #[test]
    fn rows_that_are_kept_of_columns_get_an_element_for_each() {
        let (out, log) = apply("interchange", &kernel(&normalised("c*48 + j")), &context());
        assert_eq!(log.applied, ["loop j", "loop j"]);
        let made = text(&out);
        assert!(made.contains("local e: f32[24, 48]"), "{made}");
        assert!(made.contains("for i8 in 0..3: reduce\n    for j_1 in 0..48: free"), "{made}");
        assert!(made.contains("for c in 0..24: free\n    for j_3 in 0..48: free"), "{made}");
        // Stored along the rows, what was kept goes through square blocks.
        let turned = text(&apply("interchange", &kernel(&normalised("j*24 + c")), &context()).0);
        assert!(turned.contains("local block: f32[16, 16]"), "{turned}");
        let many = normalised("c*48 + j").replace("f32[24]", "f32[65536]");
        let why = refusals("interchange", &many, &context());
        assert_eq!(why, ["loop j: what it keeps of its columns fills the caches"]);
    }

    #[test]
    fn passes_over_columns_are_cut_apart() {
        let twice = COLUMN_SUMS.replace(
            "    t: f32 = s\n",
            "    m: f32 = s\n    local g: f32\n    g = 0.0\n    for k in 0..30: reduce combine add(g) from -0.0\n      y: f32 = load X[k*256 + j]\n      \
             d: f32 = y - m\n      g0: f32 = g\n      g1: f32 = d + g0\n      g = g1\n    t: f32 = g\n",
        );
        let (out, log) = apply("interchange", &kernel(&twice), &context());
        assert_eq!(log.applied, ["loop j"]);
        let made = text(&out);
        let loops: Vec<&str> = made.lines().filter(|l| l.starts_with("  for")).collect();
        // Sixty-four rows are folded eight at a time, thirty one by one.
        let want = [
            "j in 0..256: free",
            "i8 in 0..8: reduce",
            "j_2 in 0..256: free",
            "k in 0..30: reduce",
            "j_4 in 0..256: free",
        ];
        assert_eq!(loops, want.map(|l| format!("  for {l}")), "{made}");
        assert!(made.contains("m_of[j_2] = m"), "{made}");
    }
}
