//! `split_edges`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::{self, Refs, refs};
use crate::num::DType;
use crate::tile::Context;
use crate::tile::affine;
use crate::tile::edit::{self, Visit};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "split_edges",
    doc: "\
Turns edge conditions into loop bounds, so that the main loop has no masks.

```text
for j in 0..128: free                            for j in 0..max(0, min(128, N - by*128)): free
  store C[i*N + by*128 + j] = %v          -->      store C[i*N + by*128 + j] = %v
      where by*128 + j < N

for j in 0..1024: free                           for j in 0..max(0, min(1024, n)): free
  %x = load src[j] where j < n else -inf  -->      x[j] = load src[j]
  x[j] = %x                                      for j in max(0, min(1024, n))..1024: free
                                                   x[j] = -inf

for j in 0..512: free                            for j in 0..128: free
  %x = load a[j] where j < 128 else 0              %x = load a[j]
  %y = load b[j - 128] where j >= 128 else 0       store C[j] = %x
  %in = test j < 128                       -->   for j in 128..512: free
  store C[j] = select(%in, %x, %y)                 %y = load b[j - 128]
                                                   store C[j] = %y

for j in 0..64: free                             inside = test by < heads
  store O[j] = %v where by < heads        -->    if inside:
                                                   for j in 0..64: free
                                                     store O[j] = %v
```

A condition counts when it is linear in the loop's axis with a constant factor and everything else in it is fixed while
the loop runs. Where every effect of the body hangs on the condition the iterations beyond the bound are dropped;
otherwise they follow in a loop of their own, where the condition is false. Where all bounds are known and conditions fail
separately, as in a concatenation, each piece between two bounds is a loop of its own, which loads what it takes. Outer loops go first, so a row condition is
tested once per row, not per element; a condition that the loop does not change is tested before it.

Where the target has masks for lanes, a loop of at most 96 iterations stays whole if its only conditions are those of loads of
neighbours: lanes of its vectors are off instead.

Knob: `split_edges` (0 turns the rule off).

Refuses serial loops, contractions, loops that hold register tiles, assertions or very many statements, and loops that are placed
already; says nothing of loops without such conditions.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !ctx.knobs.split_edges {
        log.skipped("kernel", "knob off");
        return None;
    }
    edit::rewrite(p, &mut |kernel, s| {
        let Stmt::For(f) = s else { return Visit::Into };
        let site = axis_site(kernel, f.axis);
        let refusal = refuse(kernel, f);
        let facts = refs(&f.body);
        if let Some(fixed) = fixed(f, &facts) {
            if let Some(why) = refusal {
                log.skipped(site, why);
                return Visit::Into;
            }
            log.applied(format!("{site}, a condition that it does not change"));
            return Visit::Again(unswitch(kernel, f, &fixed));
        }
        if ctx.target.vector.masks.is_some_and(|least| turns_lanes_off(kernel, least, f, &facts)) {
            log.skipped(site, "its conditions turn lanes of few vectors off");
            return Visit::Leave;
        }
        if let Some(cuts) = cuts(f, &facts) {
            if let Some(why) = refusal {
                log.skipped(site, why);
                return Visit::Into;
            }
            log.applied(format!("{site}, in {} pieces", cuts.len() + 1));
            return Visit::Again(pieces(kernel, f, &cuts, &facts));
        }
        let Some((conds, mid)) = bounded(f, &facts) else { return Visit::Into };
        if let Some(why) = refusal {
            log.skipped(site, why);
            return Visit::Into;
        }
        log.applied(site);
        Visit::Again(split(kernel, f, conds, mid))
    })
}

/// Why a loop stays whole, whatever its conditions.
fn refuse(kernel: &Kernel, f: &For) -> Option<&'static str> {
    if f.kind == LoopKind::Serial || f.step != Ix::Const(1) {
        return Some("its iterations run in order");
    }
    if f.contraction.is_some() || f.place != Place::None {
        return Some("it is placed already");
    }
    let (mut statements, mut tiles, mut asserts) = (0, false, false);
    walk::visit(&f.body, &mut |s| {
        statements += 1;
        asserts |= matches!(s, Stmt::Assert { .. });
        tiles |= matches!(s, Stmt::Local { buf } if kernel.bufs[*buf].space != Space::Scratch);
    });
    if tiles {
        return Some("it holds a register tile");
    }
    if asserts {
        return Some("it contains an assertion, which must run once per element");
    }
    (statements > MOST_STATEMENTS).then_some("its body is long")
}

/// Iterations of a loop whose vectors rather have lanes that are off than loops of their own, at most.
const FEW: i64 = 96;

/// Whether the only conditions of a short loop are those of loads of neighbours.
fn turns_lanes_off(kernel: &Kernel, least: u32, f: &For, facts: &Refs) -> bool {
    let short = edit::at_most(&f.hi).is_some_and(|n| n <= FEW) && f.kind == LoopKind::Free && f.place == Place::None;
    if !short || !edit::can_be_off(kernel, least, &f.body) {
        return false;
    }
    let off = |m: &Mask| {
        let by = |ix: &Ix| affine::coef(ix, f.axis, &facts.vals_defined).and_then(|c| c.as_const());
        m.conds.iter().all(|c| match (by(&c.lhs), by(&c.rhs)) {
            (Some(a), Some(b)) => (a - b).abs() <= 1 && !matches!(c.cmp, Cmp::Eq | Cmp::Ne),
            _ => false,
        }) && m.vals.iter().all(|v| !facts.vals_defined.contains(v))
    };
    let mut any = false;
    f.body.iter().all(|s| match (s, walk::mask(s)) {
        (_, None) => true,
        (_, Some(m)) if m.is_always() => true,
        (Stmt::Load { mem, .. }, Some(m)) => {
            any = true;
            affine::stride(&mem.index, f.axis, &facts.vals_defined) == affine::Stride::Unit && off(m)
        }
        _ => false,
    }) && any
}

/// Bodies longer than this are not copied.
const MOST_STATEMENTS: usize = 64;

/// Conditions that fail together: a mask that holds one of them is off when any fails.
#[derive(Default)]
struct Group {
    conds: Vec<Cond>,
    vals: Vec<ValId>,
}

impl Group {
    fn masks(&self, mask: &Mask) -> bool {
        mask.conds.iter().any(|c| self.conds.contains(c)) || mask.vals.iter().any(|v| self.vals.contains(v))
    }

    fn masks_whole(&self, mask: &Mask) -> bool {
        self.conds.iter().all(|c| mask.conds.contains(c)) && self.vals.iter().all(|v| mask.vals.contains(v))
    }

    /// Whether every mask holds all of them or none.
    fn is_uniform(&self, body: &[Stmt]) -> bool {
        let mut uniform = true;
        walk::visit(body, &mut |s| {
            uniform &= walk::mask(s).is_none_or(|m| !self.masks(m) || self.masks_whole(m));
        });
        uniform
    }
}

/// Conditions that the whole loop leaves as they are: all of them if they fail together, otherwise the first. None where
/// they are many, since each would double the code.
fn fixed(f: &For, facts: &Refs) -> Option<Group> {
    let mut all = Group::default();
    let outside = |ix: &Ix| {
        !ix.has_axis(f.axis)
            && ix.axes().iter().all(|a| !facts.axes_defined.contains(a))
            && ix.vals().iter().all(|v| !facts.vals_defined.contains(v))
    };
    walk::visit(&f.body, &mut |s| {
        let Some(mask) = walk::mask(s) else { return };
        for c in mask.conds.iter().filter(|c| outside(&c.lhs) && outside(&c.rhs)) {
            if !all.conds.contains(c) {
                all.conds.push(c.clone());
            }
        }
        for v in mask.vals.iter().filter(|v| !facts.vals_defined.contains(v)) {
            if !all.vals.contains(v) {
                all.vals.push(*v);
            }
        }
    });
    let count = all.conds.len() + all.vals.len();
    if count == 0 || all.is_uniform(&f.body) {
        return (count > 0).then_some(all);
    }
    if count > MOST_CONDITIONS {
        return None;
    }
    all.vals.truncate(if all.conds.is_empty() { 1 } else { 0 });
    all.conds.truncate(1);
    Some(all)
}

/// Conditions that a loop does not change and that fail separately, at most.
const MOST_CONDITIONS: usize = 2;

/// `if conditions: the loop without them, else: the loop with what they mask off left out`.
fn unswitch(kernel: &mut Kernel, f: &For, group: &Group) -> Vec<Stmt> {
    let mask = Mask { conds: group.conds.clone(), vals: group.vals.clone() };
    let mut main = f.clone();
    assume(&mut main.body, group);
    let mut els = vec![];
    if !ends_with(&f.body, group) {
        els = vec![Stmt::For(Box::new(f.clone()))];
        deny(&mut els, group);
        edit::drop_unused(&mut els);
        els = walk::clone_fresh(kernel, &els);
    }
    let then = vec![Stmt::For(Box::new(main))];
    edit::when(kernel, "inside", mask, then, els)
}

/// How a condition goes along an axis: whether it holds below a value or from it on.
#[derive(Clone, Copy)]
struct Turn {
    at: i64,
    below: bool,
}

/// Where a condition turns, as far as that is known.
fn turn(c: &Cond, axis: AxisId, facts: &Refs) -> Option<Turn> {
    if let Some(at) = upper_bound(c, axis, facts) {
        return Some(Turn { at: at.as_const()?, below: true });
    }
    let cmp = match c.cmp {
        Cmp::Lt => Cmp::Ge,
        Cmp::Le => Cmp::Gt,
        Cmp::Gt => Cmp::Le,
        Cmp::Ge => Cmp::Lt,
        _ => return None,
    };
    let at = upper_bound(&Cond { cmp, ..c.clone() }, axis, facts)?;
    Some(Turn { at: at.as_const()?, below: false })
}

/// Where conditions that fail separately turn within a loop of known bounds. None where a piece would be short or there are many.
fn cuts(f: &For, facts: &Refs) -> Option<Vec<i64>> {
    let (lo, hi) = (f.lo.as_const()?, f.hi.as_const()?);
    let (mut cuts, mut size, mut from) = (vec![], 0, false);
    walk::visit(&f.body, &mut |s| {
        size += 1;
        for turn in walk::mask(s).into_iter().flat_map(|m| &m.conds).filter_map(|c| turn(c, f.axis, facts)) {
            if lo < turn.at && turn.at < hi {
                cuts.push(turn.at);
                from |= !turn.below;
            }
        }
    });
    cuts.sort_unstable();
    cuts.dedup();
    let bounds: Vec<i64> = [lo].into_iter().chain(cuts.iter().copied()).chain([hi]).collect();
    let long = bounds.windows(2).all(|w| w[1].saturating_sub(w[0]) >= LEAST_PIECE);
    let few = size * (cuts.len() + 1) <= MOST_STATEMENTS * 4;
    (from && long && few && cuts.len() < MOST_PIECES).then_some(cuts)
}

/// Iterations of a piece, at least.
const LEAST_PIECE: i64 = 16;
const MOST_PIECES: usize = 16;

/// A loop cut where conditions turn: in each piece it is known whether they hold.
fn pieces(kernel: &mut Kernel, f: &For, cuts: &[i64], facts: &Refs) -> Vec<Stmt> {
    let first = f.lo.as_const().unwrap_or(i64::MIN);
    let starts = [first].into_iter().chain(cuts.iter().copied());
    let ends = cuts.iter().map(|at| Ix::Const(*at)).chain([f.hi.clone()]);
    let mut out = vec![];
    for (start, hi) in starts.zip(ends) {
        let (mut holds, mut fails) = (Group::default(), Group::default());
        walk::visit(&f.body, &mut |s| {
            for c in walk::mask(s).into_iter().flat_map(|m| &m.conds) {
                // What turns beyond the loop is one thing in all pieces.
                let Some(turn) = turn(c, f.axis, facts) else { continue };
                let group = if (start < turn.at) == turn.below { &mut holds } else { &mut fails };
                group.conds.push(c.clone());
            }
        });
        let mut piece = For { lo: Ix::Const(start), hi, ..f.clone() };
        deny(&mut piece.body, &fails);
        assume(&mut piece.body, &holds);
        edit::choose(&mut piece.body);
        edit::drop_unused(&mut piece.body);
        out.extend(walk::clone_fresh(kernel, &[Stmt::For(Box::new(piece))]));
    }
    out
}

/// The conditions that hold up to a bound, and the first iteration in which one fails, or the end of the loop.
fn bounded(f: &For, facts: &Refs) -> Option<(Group, Ix)> {
    let mut group = Group::default();
    let mut bound: Option<Ix> = None;
    walk::visit(&f.body, &mut |s| {
        for c in walk::mask(s).into_iter().flat_map(|m| &m.conds) {
            if !group.conds.contains(c)
                && let Some(at) = upper_bound(c, f.axis, facts)
            {
                group.conds.push(c.clone());
                bound = Some(match bound.take() {
                    None => at,
                    Some(b) => Ix::min(b, at),
                });
            }
        }
    });
    let bound = bound?;
    // What follows a split starts at its bound and is not split again.
    let mid = middle(f, bound.clone());
    let after = matches!(&f.lo, Ix::Max(_, b) if matches!(&**b, Ix::Min(_, at) if **at == bound));
    (!after && mid != f.lo).then_some((group, mid))
}

/// Where a loop goes from its main part to the rest.
fn middle(f: &For, bound: Ix) -> Ix {
    Ix::max(f.lo.clone(), Ix::min(f.hi.clone(), bound))
}

/// Whether every effect of a body hangs on the conditions.
fn ends_with(body: &[Stmt], group: &Group) -> bool {
    body.iter().all(|s| match s {
        Stmt::Store { mask, order: Order::Weak, .. } => group.masks_whole(mask),
        Stmt::For(f) if f.kind == LoopKind::Free => ends_with(&f.body, group),
        _ => edit::is_pure(s),
    })
}

/// The least value of the axis for which the condition is false, when it is true below and false from there on.
fn upper_bound(c: &Cond, axis: AxisId, facts: &Refs) -> Option<Ix> {
    // lhs - rhs = by*axis + (at - of)
    let (l, r) = (affine::coef(&c.lhs, axis, &facts.vals_defined)?, affine::coef(&c.rhs, axis, &facts.vals_defined)?);
    let by = l.as_const()?.checked_sub(r.as_const()?)?;
    if c.lhs.axes().iter().chain(&c.rhs.axes()).any(|a| facts.axes_defined.contains(a)) {
        return None;
    }
    let (lhs, rhs) = (affine::rest(&c.lhs, axis), affine::rest(&c.rhs, axis));
    // by*axis < room, or by*axis <= room - 1
    let room = match (by > 0, c.cmp) {
        (true, Cmp::Lt) => Ix::sub(rhs, lhs),
        (true, Cmp::Le) => Ix::add(Ix::sub(rhs, lhs), Ix::Const(1)),
        (false, Cmp::Gt) if by < 0 => Ix::sub(lhs, rhs),
        (false, Cmp::Ge) if by < 0 => Ix::add(Ix::sub(lhs, rhs), Ix::Const(1)),
        _ => return None,
    };
    Some(Ix::ceil_div(room, Ix::Const(by.checked_abs()?)))
}

fn split(kernel: &mut Kernel, f: &For, group: Group, mid: Ix) -> Vec<Stmt> {
    let mut main = f.clone();
    main.hi = mid.clone();
    assume(&mut main.body, &group);
    if mid == f.hi || ends_with(&f.body, &group) {
        return vec![Stmt::For(Box::new(main))];
    }
    let mut rest = vec![Stmt::For(Box::new(For { lo: mid, ..f.clone() }))];
    // Otherwise it is not known which of the conditions fail.
    if group.is_uniform(&f.body) {
        deny(&mut rest, &group);
        edit::drop_unused(&mut rest);
    }
    let mut out = vec![Stmt::For(Box::new(main))];
    out.extend(walk::clone_fresh(kernel, &rest));
    out
}

/// Drops conditions that hold.
fn assume(body: &mut [Stmt], group: &Group) {
    walk::visit_mut(body, &mut |s| {
        if let Some(mask) = walk::mask_mut(s) {
            mask.conds.retain(|c| !group.conds.contains(c));
            mask.vals.retain(|v| !group.vals.contains(v));
        }
        match s {
            Stmt::Test { dst, mask } if mask.is_always() => {
                *s = edit::copy_of(*dst, Opnd::Const { dtype: DType::I1, bits: 1 });
            }
            Stmt::Load { mask, other, .. } if mask.is_always() => *other = None,
            _ => {}
        }
    });
}

/// Removes what is masked off when one of the conditions fails.
fn deny(body: &mut Vec<Stmt>, group: &Group) {
    walk::visit_bodies_mut(body, &mut |body| {
        body.retain_mut(|s| {
            if !walk::mask(s).is_some_and(|m| group.masks(m)) {
                return true;
            }
            match s {
                Stmt::Load { dst, mem, other, order: Order::Weak, .. } => {
                    let value = other.unwrap_or(Opnd::Const { dtype: mem.elem, bits: 0 });
                    *s = edit::copy_of(*dst, value);
                    true
                }
                Stmt::Test { dst, .. } => {
                    *s = edit::copy_of(*dst, Opnd::Const { dtype: DType::I1, bits: 0 });
                    true
                }
                Stmt::Store { .. } => false,
                _ => true,
            }
        })
    });
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text, without_masks};

    #[test]
    fn several_conditions_leave_one_masked_rest() {
        let k = kernel(
            r#"loop kernel k(a: ptr f32, b: ptr f32, c: ptr f32, n: i32, m: i32):
  for j in 0..64: free
    x: f32 = load a[j] where j < n else 1.0
    y: f32 = load b[j] where j + bx*64 <= m else 2.0
    z: f32 = x + y
    store c[j] = z
"#,
        );
        let (out, _) = apply("split_edges", &k, &without_masks());
        let want = r#"tile kernel k(a: ptr f32, b: ptr f32, c: ptr f32, n: i32, m: i32):
  for j in 0..max(0, min(64, min(n, m - bx*64 + 1))): free
    x: f32 = load a[j]
    y: f32 = load b[j]
    z: f32 = x + y
    store c[j] = z
  for j_1 in max(0, min(64, min(n, m - bx*64 + 1)))..64: free
    x_1: f32 = load a[j_1] where j_1 < n else 1.0
    y_1: f32 = load b[j_1] where j_1 + bx*64 <= m else 2.0
    z_1: f32 = x_1 + y_1
    store c[j_1] = z_1
"#;
        assert_eq!(text(&out), want);
    }

    #[test]
    fn strides_round_up_and_falling_conditions_count() {
        let k = kernel(
            "loop kernel k(c: ptr f32, n: i32):\n  for j in 0..64: free\n    store c[j] = 1.0 where j*4 < n and 7 - j > 2\n",
        );
        let (out, _) = apply("split_edges", &k, &without_masks());
        assert!(text(&out).contains("for j in 0..max(0, min((n + 3)//4, 5)): free\n"), "{}", text(&out));
    }

    #[test]
    fn conditions_that_no_bound_expresses_stay() {
        for mask in ["j % 2 < n", "j == n", "j > n"] {
            let k = format!(
                "loop kernel k(c: ptr f32, n: i32):\n  for j in 0..64: free\n    store c[j] = 1.0 where {mask}\n"
            );
            assert_eq!(refusals("split_edges", &k, &without_masks()), Vec::<String>::new());
        }
        let serial = "loop kernel k(c: ptr f32, n: i32):\n  for j in 0..64: serial\n    store c[j] = 1.0 where j < n\n";
        assert_eq!(refusals("split_edges", serial, &without_masks()), ["loop j: its iterations run in order"]);
    }

    #[test]
    fn many_separate_conditions_do_not_multiply_the_code() {
        let line = |n: u32| format!("    x{n}: f32 = load a[j] where bx < {n}\n    store c[j + {n}] = x{n}\n");
        let body: String = (1..9).map(line).collect();
        let k = format!("loop kernel k(a: ptr f32, c: ptr f32):\n  for j in 0..64: free\n{body}");
        assert_eq!(refusals("split_edges", &k, &without_masks()), Vec::<String>::new());
        let two: String = (1..3).map(line).collect();
        let k = kernel(&format!("loop kernel k(a: ptr f32, c: ptr f32):\n  for j in 0..64: free\n{two}"));
        let (out, _) = apply("split_edges", &k, &without_masks());
        assert_eq!(text(&out).matches("for j").count(), 4, "{}", text(&out));
    }

    #[test]
    fn a_condition_that_the_loop_does_not_change_is_tested_before_it() {
        let k = kernel(
            r#"loop kernel k(a: ptr f32, c: ptr f32, n: i32, m: i1):
  local t: f32[64]
  for j in 0..64: free
    x: f32 = load a[j] where bx < n and j < n else 1.0
    t[j] = x
  for i in 0..64: free
    y: f32 = t[i]
    store c[i] = y where bx < n and m
"#,
        );
        let (out, _) = apply("split_edges", &k, &without_masks());
        let want = r#"tile kernel k(a: ptr f32, c: ptr f32, n: i32, m: i1):
  local t: f32[64]
  inside: i1 = test bx < n
  if inside:
    for j in 0..max(0, min(64, n)): free
      x: f32 = load a[j]
      t[j] = x
    for j_1 in max(0, min(64, n))..64: free
      x_1: f32 = 1.0
      t[j_1] = x_1
  else:
    for j_2 in 0..64: free
      x_2: f32 = 1.0
      t[j_2] = x_2
  inside_1: i1 = test bx < n and m
  if inside_1:
    for i in 0..64: free
      y: f32 = t[i]
      store c[i] = y
"#;
        assert_eq!(text(&out), want);
    }

    #[test]
    fn lanes_of_few_vectors_are_turned_off_instead() {
        let k = "loop kernel k(a: ptr f32, c: ptr f32, n: i32):\n  for j in 0..96: free\n    x: f32 = load a[j] where j < n else 1.0\n    \
                 store c[j] = x\n";
        assert_eq!(refusals("split_edges", k, &context()), ["loop j: its conditions turn lanes of few vectors off"]);
        // A longer loop, and one that drops iterations, are cut.
        for longer in [k.replace("0..96", "0..97"), k.replace("= x", "= x where j < n")] {
            let (_, log) = apply("split_edges", &kernel(&longer), &context());
            assert_eq!(log.applied, ["loop j"], "{longer}");
        }
    }

    #[test]
    fn each_source_of_a_concatenation_gets_a_loop() {
        let k = "loop kernel k(a: ptr f32, b: ptr f32, c: ptr f32):\n  for j in 0..512: free\n    x: f32 = load a[j] where j < 128 else 0.0\n    \
                 y: f32 = load b[j - 128] where j >= 128 else 0.0\n    is: i1 = test j < 128\n    v: f32 = select(is, x, y)\n    \
                 store c[j] = v\n";
        let (out, log) = apply("split_edges", &kernel(k), &context());
        assert_eq!(log.applied, ["loop j, in 2 pieces"]);
        let made = text(&out);
        let lines: Vec<&str> = made.lines().map(str::trim).collect();
        let want = [
            "for j in 0..128: free",
            "x: f32 = load a[j]",
            "store c[j] = x",
            "for j_1 in 128..512: free",
            "y: f32 = load b[j_1 - 128]",
            "store c[j_1] = y",
        ];
        assert_eq!(lines[1..], want, "{made}");
    }
}
