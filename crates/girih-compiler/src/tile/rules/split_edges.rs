//! 006_split_edges

use crate::base::rule::{Context, Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::{self, Refs, refs};
use crate::num::DType;
use crate::tile::affine;
use crate::tile::edit::{self, Visit};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel> = Rule {
    name: "006_split_edges",
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
```

A condition counts when it is linear in the loop's axis with a constant factor and everything else in it is fixed while
the loop runs. Where every effect of the body hangs on the condition the iterations beyond the bound are dropped;
otherwise they follow in a loop of their own, where the condition is false. Outer loops go first, so a row condition is
tested once per row, not per element.

Knob: `split_edges` (0 turns the rule off).

Refuses loops without such conditions, serial loops, contractions, and loops that are placed already.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !ctx.knobs.on("split_edges") {
        log.skipped("kernel", "knob off");
        return None;
    }
    // The axes of the loops that run the iterations beyond a bound: they are not split again.
    let mut rests: Vec<AxisId> = Vec::new();
    edit::rewrite(p, &mut |kernel, s| {
        let Stmt::For(f) = s else { return Visit::Into };
        if rests.contains(&f.axis) {
            return Visit::Into;
        }
        match edges(f) {
            Ok(edges) => {
                log.applied(axis_site(kernel, f.axis));
                let parts = split(kernel, f, edges);
                rests.extend(parts.iter().skip(1).filter_map(|s| match s {
                    Stmt::For(rest) => Some(rest.axis),
                    _ => None,
                }));
                Visit::Again(parts)
            }
            Err(None) => Visit::Into,
            Err(Some(why)) => {
                log.skipped(axis_site(kernel, f.axis), why);
                Visit::Into
            }
        }
    })
}

/// Conditions that hold up to a bound.
struct Edges {
    conds: Vec<Cond>,
    /// The first iteration in which some condition fails, were the loop to run that far.
    bound: Ix,
    /// Nothing happens in iterations beyond the bound.
    ends: bool,
}

/// `Err(None)`: there is nothing to say about this loop.
fn edges(f: &For) -> Result<Edges, Option<&'static str>> {
    let facts = refs(&f.body);
    let mut conds: Vec<Cond> = Vec::new();
    let mut bound: Option<Ix> = None;
    walk::visit(&f.body, &mut |s| {
        for c in mask_of(s).into_iter().flat_map(|m| &m.conds) {
            if !conds.contains(c)
                && let Some(at) = upper_bound(c, f.axis, &facts)
            {
                conds.push(c.clone());
                bound = Some(match bound.take() {
                    None => at,
                    Some(b) => Ix::min(b, at),
                });
            }
        }
    });
    let Some(bound) = bound else { return Err(None) };
    // What follows a split starts at its bound.
    if matches!(&f.lo, Ix::Max(_, b) if matches!(&**b, Ix::Min(_, at) if **at == bound)) {
        return Err(None);
    }
    if f.kind == LoopKind::Serial || f.step != Ix::Const(1) {
        return Err(Some("its iterations run in order"));
    }
    if f.contraction.is_some() || f.place != Place::None {
        return Err(Some("it is placed already"));
    }
    let ends = conds.len() == 1 && ends_with(&f.body, &conds[0]);
    Ok(Edges { conds, bound, ends })
}

/// Whether every effect of a body hangs on the condition.
fn ends_with(body: &[Stmt], cond: &Cond) -> bool {
    body.iter().all(|s| match s {
        Stmt::Store { mask, order: Order::Weak, .. } => mask.conds.contains(cond),
        Stmt::For(f) if f.kind == LoopKind::Free => ends_with(&f.body, cond),
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

fn split(kernel: &mut Kernel, f: &For, edges: Edges) -> Vec<Stmt> {
    let mid = Ix::max(f.lo.clone(), Ix::min(f.hi.clone(), edges.bound));
    let mut main = f.clone();
    main.hi = mid.clone();
    assume(&mut main.body, &edges.conds);
    if edges.ends {
        return vec![Stmt::For(Box::new(main))];
    }
    let mut rest = vec![Stmt::For(Box::new(For { lo: mid, ..f.clone() }))];
    // With several conditions it is not known which of them fail.
    if let [cond] = &edges.conds[..] {
        deny(&mut rest, cond);
        edit::drop_unused(&mut rest);
    }
    let mut out = vec![Stmt::For(Box::new(main))];
    out.extend(walk::clone_fresh(kernel, &rest));
    out
}

/// Drops conditions that hold.
fn assume(body: &mut [Stmt], conds: &[Cond]) {
    for s in body {
        if let Some(mask) = mask_mut(s) {
            mask.conds.retain(|c| !conds.contains(c));
        }
        for b in walk::bodies_mut(s) {
            assume(b, conds);
        }
        match s {
            Stmt::Test { dst, mask } if mask.is_always() => {
                *s = edit::copy_of(*dst, Opnd::Const { dtype: DType::I1, bits: 1 });
            }
            Stmt::Load { mask, other, .. } if mask.is_always() => *other = None,
            _ => {}
        }
    }
}

/// Removes what is masked off by a condition that fails.
fn deny(body: &mut Vec<Stmt>, cond: &Cond) {
    body.retain_mut(|s| {
        for b in walk::bodies_mut(s) {
            deny(b, cond);
        }
        if !mask_mut(s).is_some_and(|m| m.conds.contains(cond)) {
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
    });
}

fn mask_of(s: &Stmt) -> Option<&Mask> {
    match s {
        Stmt::Test { mask, .. }
        | Stmt::Load { mask, .. }
        | Stmt::Store { mask, .. }
        | Stmt::Rmw { mask, .. }
        | Stmt::Cas { mask, .. } => Some(mask),
        _ => None,
    }
}

fn mask_mut(s: &mut Stmt) -> Option<&mut Mask> {
    match s {
        Stmt::Test { mask, .. }
        | Stmt::Load { mask, .. }
        | Stmt::Store { mask, .. }
        | Stmt::Rmw { mask, .. }
        | Stmt::Cas { mask, .. } => Some(mask),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text};

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
        let (out, _) = apply("split_edges", &k, &context());
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
        let (out, _) = apply("split_edges", &k, &context());
        assert!(text(&out).contains("for j in 0..max(0, min(64, min((n + 3)//4, 5))): free\n"), "{}", text(&out));
    }

    #[test]
    fn conditions_that_no_bound_expresses_stay() {
        for mask in ["j % 2 < n", "j == n", "j > n"] {
            let k = format!(
                "loop kernel k(c: ptr f32, n: i32):\n  for j in 0..64: free\n    store c[j] = 1.0 where {mask}\n"
            );
            assert_eq!(refusals("split_edges", &k, &context()), Vec::<String>::new());
        }
        let serial = "loop kernel k(c: ptr f32, n: i32):\n  for j in 0..64: serial\n    store c[j] = 1.0 where j < n\n";
        assert_eq!(refusals("split_edges", serial, &context()), ["loop j: its iterations run in order"]);
    }
}
