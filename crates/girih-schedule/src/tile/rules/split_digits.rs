//! `split_digits`

use std::collections::BTreeSet;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::affine::{self, MOST_APART, Stride};
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::split_digits::{MOST_UNROLLED, WORTHWHILE};
use crate::tile::primitives::{self, LoopRef, Script, Step, digits};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "split_digits",
    doc: "\
Splits a loop that counts several things at once into a loop for each. A quotient or remainder of each iteration becomes the axis of
a loop, and conditions on it are tested outside of the other loops.

```text
for k in 0..576: free                            for k1 in 0..64: free
  %x = load a[k//9*49 + k//3%3*7 + k%3]   -->      for k2 in 0..3: free
  p[k] = %x                                          for k3 in 0..3: free
                                                       %x = load a[k1*49 + k2*7 + k3]
                                                       p[k1*9 + k2*3 + k3] = %x
```

If the loop inside walks along a quotient or remainder of its own, so that its elements have to be found and tested one by one, digits
that the conditions do not mention go inside of it: the place found for one serves them all.

```text
for k in 0..576: free                            for k2 in 0..9: free
  for j in 0..196: free                            for j1 in 0..14: free
    %x = load a[k//9*196 + j + k%9]       -->        for j2 in 0..14: free
         where j//14 + k%9 < 14                        for k1 in 0..64: free
    p[k, j] = %x                                         %x = load a[k1*196 + j1*14 + j2 + k2] where j1 + k2 < 14
                                                         p[k1*9 + k2, j1*14 + j2] = %x
```

A fold that keeps its order, as the sum of a register tile, is split in the first way only.

An innermost loop, whose quotients belong to vectors, is split in two cases: if it copies under conditions on the quotients, where
the fastest digit becomes the loop of the vectors; and if the fastest digit counts two to four kinds of elements that the loop
stores in turn.

Leaves alone other innermost loops, and the loops of a product. Refuses lengths that are not constants, unless they are multiples
of such kinds, and divisors that do not divide the next one, or the length.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let mut script = Script::new(p, ctx, log);
    // Loops that stay as they are.
    let mut stay: Vec<LoopRef> = vec![];
    loop {
        let sites = sites(&script.kernel, &stay);
        if sites.is_empty() {
            return script.done();
        }
        let mut lines = vec![];
        // Loops behind one keep their names where it is split, and not the other way round.
        for (at, f) in sites.into_iter().rev() {
            let site = axis_site(&script.kernel, f.axis);
            let counts = digits(&script.kernel, &f);
            let made = counts.and_then(|counts| script.attempt(|script| split(script, at, &f, counts)));
            if made.is_err() {
                stay.push(at);
            }
            lines.push((site, made));
        }
        for (site, made) in lines.into_iter().rev() {
            script.log.outcome(site, made);
        }
    }
}

/// The loops that count several things, but for those that stay; loops inside of one follow when it is split.
fn sites(kernel: &Kernel, stay: &[LoopRef]) -> Vec<(LoopRef, For)> {
    let mut out = vec![];
    primitives::look(kernel, &mut |at, f| {
        let split = wants(f) && !stay.contains(&at);
        if split {
            out.push((at, f.clone()));
        }
        !split
    });
    out
}

/// Returns true for a loop whose digits should be loops of their own.
fn wants(f: &For) -> bool {
    let outer = f.body.iter().any(|s| !walk::bodies(s).is_empty());
    let conditional = || f.kind == LoopKind::Free && digits_tested(&f.body, f.axis).is_some();
    // A fold in a fixed order keeps it.
    let ordered = f.kind == LoopKind::Reduce && f.combine.is_none();
    if !(ordered || f.kind == LoopKind::Free) || f.place != Place::None || digits::has_role(f) {
        return false;
    }
    let radices = radices(&f.body, f.axis);
    // The fastest digit of an innermost loop has to be worth a loop of vectors.
    let fastest = radices.first().copied().unwrap_or(0);
    !radices.is_empty() && (outer || fastest >= WORTHWHILE && conditional() || few_in_turn(f, &radices))
}

/// How many of each digit there are but the slowest one, which comes first.
fn digits(kernel: &Kernel, f: &For) -> Result<Vec<i64>, String> {
    let Some(n) = const_trip(f).and_then(|n| i64::try_from(n).ok()) else {
        // The fastest digit alone, of a loop whose length is not known but a multiple of it.
        let radices = radices(&f.body, f.axis);
        let count = radices.first().copied().unwrap_or(1);
        let whole = f.lo.is_const(0) && f.step == Ix::Const(1);
        let fits = whole && kernel.facts().divisor(&f.hi).is_multiple_of(count as u64);
        return if few_in_turn(f, &radices) && fits {
            Ok(vec![count])
        } else {
            Err("its length is not a constant".into())
        };
    };
    let all = digits_of(&f.body, f.axis, n)?;
    if all.len() < 2 {
        return Err("all its iterations have one quotient".into());
    }
    Ok(all.iter().rev().skip(1).map(|d| d.count).collect())
}

fn split(script: &mut Script<'_>, at: LoopRef, f: &For, counts: Vec<i64>) -> Result<(), String> {
    let known = const_trip(f).is_some();
    // The few terms of a fold that keeps its order stand one after the other.
    let unroll = f.kind == LoopKind::Reduce && counts.last().is_some_and(|n| *n <= MOST_UNROLLED);
    let name = script.kernel.axes[f.axis].name.clone();
    let names = (1..=counts.len() + 1).map(|n| format!("{name}{n}")).collect();
    let counts: Result<Vec<u32>, _> = counts.into_iter().map(u32::try_from).collect();
    let counts = counts.map_err(|_| "it has too many digits")?;
    let loops = script.step(Step::Digits { at, counts, names, unroll })?;
    // Where the loop inside tests its elements one by one, digits that the conditions do not mention go inside of it.
    let Some(slowest) = script.find(loops[0]).filter(|f| f.kind == LoopKind::Free && known) else { return Ok(()) };
    let chain = edit::free_chain(&slowest);
    let Some((inner, between)) = chain.get(loops.len()..).and_then(|c| c.split_last()) else { return Ok(()) };
    let Some(tested) = digits_tested(&inner.body, inner.axis) else { return Ok(()) };
    let inside = |at: &&LoopRef| {
        let many = script.find(**at).and_then(|f| const_trip(&f)).is_some_and(|n| n as i64 >= WORTHWHILE);
        many && !tested.contains(&at.axis)
    };
    let (within, outside): (Vec<&LoopRef>, Vec<&LoopRef>) = loops.iter().partition(inside);
    if within.is_empty() {
        return Ok(());
    }
    let between: Vec<AxisId> = between.iter().chain([inner]).map(|f| f.axis).collect();
    let between = primitives::names_behind(&script.kernel, loops[0], &between);
    let loops = outside.into_iter().chain(&between).chain(within).copied().collect();
    script.step(Step::Reorder { loops }).map(|_| ())
}

/// True if an innermost loop makes elements of a few kinds in turn, side by side: then the loop of each kind can be a vector.
fn few_in_turn(f: &For, radices: &BTreeSet<i64>) -> bool {
    let mut at = radices.iter().copied();
    let kinds = at.next().is_some_and(|n| (2..=MOST_APART).contains(&n));
    let next = at.next().or(edit::most_trips(f).and_then(|n| n.try_into().ok())).unwrap_or(i64::MAX);
    let many = radices.first().is_some_and(|n| next / n >= WORTHWHILE);
    let varying = walk::refs(&f.body).vals_defined;
    let mut stores = f.body.iter().filter_map(|s| match s {
        Stmt::Store { mem, .. } => Some(&mem.index),
        _ => None,
    });
    let follow = |ix: &Ix| affine::stride(ix, f.axis, &varying) == Stride::Unit;
    f.kind == LoopKind::Free && kinds && many && stores.next().is_some_and(follow) && stores.all(follow)
}

/// The divisors by which expressions divide an axis.
pub(super) fn radices(body: &[Stmt], axis: AxisId) -> BTreeSet<i64> {
    fn of(ix: &Ix, axis: AxisId, out: &mut BTreeSet<i64>) {
        // The axis itself, perhaps divided already.
        fn divided(ix: &Ix, axis: AxisId) -> Option<i64> {
            match ix {
                Ix::Axis(a) if *a == axis => Some(1),
                Ix::FloorDiv(a, c) => divided(a, axis)?.checked_mul(c.as_const().filter(|c| *c > 0)?),
                _ => None,
            }
        }
        if let Ix::FloorDiv(a, c) | Ix::Mod(a, c) = ix
            && let (Some(by), Some(c)) = (divided(a, axis), c.as_const().filter(|c| *c > 0))
        {
            out.extend([by, by.saturating_mul(c)]);
        }
        if let Some((a, b)) = ix.operands() {
            of(a, axis, out);
            of(b, axis, out);
        }
    }
    let mut out = BTreeSet::new();
    walk::visit(body, &mut |s| {
        walk::parts(s, &mut |p| {
            if let walk::Part::Ix(ix) = p {
                of(ix, axis, &mut out);
            }
        });
    });
    out.remove(&1);
    out
}

/// One of several things that an axis counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Digit {
    pub count: i64,
    /// How many steps of the axis one of it is.
    pub weight: i64,
}

impl Digit {
    /// The digit of a position along the axis, which has `n` of them.
    pub fn of(&self, position: Ix, n: i64) -> Ix {
        let above = if self.weight == 1 { position } else { Ix::floor_div(position, Ix::Const(self.weight)) };
        if self.count * self.weight == n { above } else { Ix::modulo(above, Ix::Const(self.count)) }
    }
}

/// The digits into which statements take an axis of `n` iterations apart, from the fastest on.
pub(crate) fn digits_of(body: &[Stmt], axis: AxisId, n: i64) -> Result<Vec<Digit>, &'static str> {
    let (mut at, mut out) = (1, vec![]);
    for r in radices(body, axis).into_iter().filter(|r| *r < n).chain([n]) {
        if r % at != 0 {
            return Err("its divisors do not divide each other");
        }
        out.push(Digit { count: r / at, weight: at });
        at = r;
    }
    Ok(out)
}

/// Where statements copy an element, or a few that become one, under conditions on quotients or remainders of an axis: the axes
/// that they mention.
pub(super) fn digits_tested(copy: &[Stmt], axis: AxisId) -> Option<BTreeSet<AxisId>> {
    fn divides(ix: &Ix, axis: AxisId) -> bool {
        let here = matches!(ix, Ix::FloorDiv(a, _) | Ix::Mod(a, _) if a.axes().contains(&axis));
        here || ix.operands().is_some_and(|(a, b)| divides(a, axis) || divides(b, axis))
    }
    let [made @ .., Stmt::Write { .. }] = copy else { return None };
    if !made.iter().all(edit::is_pure) {
        return None;
    }
    let loads = made.iter().filter_map(|s| if let Stmt::Load { mask, .. } = s { Some(mask) } else { None });
    let masks: Vec<&Mask> = loads.collect();
    let sides: Vec<&Ix> = masks.iter().flat_map(|m| &m.conds).flat_map(|c| [&c.lhs, &c.rhs]).collect();
    let apart = masks.iter().all(|m| m.vals.is_empty()) && sides.iter().any(|ix| divides(ix, axis));
    apart.then(|| sides.into_iter().flat_map(|ix| ix.axes()).collect())
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text};

    fn gather(index: &str, n: u32) -> String {
        format!(
            "loop kernel g(a: ptr f32):\n  local p: f32[{n}, 4]\n  for k in 0..{n}: free\n    for j in 0..4: free\n      \
             x: f32 = load a[{index} + j]\n      p[k, j] = x\n"
        )
    }

    #[test]
    fn what_is_counted_together_is_counted_apart() {
        let (out, log) = apply("split_digits", &kernel(&gather("k//9*49 + k//3%3*7 + k%3", 36)), &context());
        assert_eq!(log.applied, ["loop k"]);
        let made = text(&out);
        for line in
            ["for k1 in 0..4: free", "for k2 in 0..3: free", "for k3 in 0..3: free", "load a[k1*49 + k2*7 + k3 + j]"]
        {
            assert!(made.contains(line), "{made}");
        }
        assert!(made.contains("p[k1*9 + k2*3 + k3, j]"), "{made}");
    }

    #[test]
    fn a_fold_keeps_its_order() {
        let fold = "loop kernel g(a: ptr f32):\n  local p: f32[4]\n  for k in 0..36: reduce\n    for j in 0..4: free\n      \
                    x: f32 = load a[k//9*20 + j + k%9] where j//2 + k%9 < 14 else 0.0\n      y: f32 = p[j]\n      z: f32 = x + y\n      p[j] = z\n";
        let (out, _) = apply("split_digits", &kernel(fold), &context());
        let made = text(&out);
        let at = |line: &str| made.find(line).unwrap_or_else(|| panic!("{line}: {made}"));
        assert!(at("for k1 in 0..4: reduce") < at("for k2 in 0..9: reduce"), "{made}");
        assert!(at("for k2 in 0..9: reduce") < at("for j"), "{made}");
    }

    #[test]
    fn what_is_found_for_one_element_serves_the_digits_that_no_condition_mentions() {
        let copy = |mask: &str| {
            format!(
                "loop kernel g(a: ptr f32):\n  local p: f32[36, 20]\n  for k in 0..36: free\n    for j in 0..20: free\n      \
                 x: f32 = load a[k//9*20 + j + k%9] where {mask}\n      p[k, j] = x\n"
            )
        };
        let made = |mask: &str| text(&apply("split_digits", &kernel(&copy(mask)), &context()).0);
        let inside = made("j//5 + k%9 < 4");
        let lines: Vec<&str> = inside.lines().map(str::trim).filter(|l| l.starts_with("for ")).collect();
        assert_eq!(
            lines,
            ["for k2 in 0..9: free", "for j1 in 0..4: free", "for j2 in 0..5: free", "for k1 in 0..4: free"],
            "{inside}"
        );
        // Other loops may stand between them.
        let panels = copy("j//5 + k%9 < 4")
            .replace("    for j in 0..20: free\n", "    for jp in 0..5: free\n     for j in 0..4: free\n")
            .replace("j//5", "(jp*4 + j)//5")
            .replace("p[k, j]", "p[k, jp*4 + j]");
        let panels = text(&apply("split_digits", &kernel(&panels), &context()).0);
        let lines: Vec<&str> = panels.lines().map(str::trim).filter(|l| l.starts_with("for ")).collect();
        assert_eq!(
            lines,
            ["for k2 in 0..9: free", "for jp in 0..5: free", "for j in 0..4: free", "for k1 in 0..4: free"],
            "{panels}"
        );
        // Elements side by side stay a vector.
        let whole = made("j + k%9 < 20");
        let lines: Vec<&str> = whole.lines().map(str::trim).filter(|l| l.starts_with("for ")).collect();
        assert_eq!(lines, ["for k1 in 0..4: free", "for k2 in 0..9: free", "for j in 0..20: free"], "{whole}");
    }

    #[test]
    fn loops_of_a_product_stay() {
        let product = "loop kernel k(x: ptr f32, w: ptr f32):\n  local acc: f32[4, 8]\n  for i in 0..4: free\n    for j in 0..8: free\n      \
                       for k in 0..9: reduce contraction m=i n=j k=k a=a b=c acc=acc\n        a: f32 = load x[i//2*9 + k]\n        \
                       c: f32 = load w[j//4*9 + k]\n        old: f32 = acc[i, j]\n        new: f32 = fma(a, c, old)\n        acc[i, j] = new\n";
        assert_eq!(refusals("split_digits", product, &context()), Vec::<String>::new());
    }

    #[test]
    fn kinds_in_turn_are_a_loop_of_their_own() {
        let pairs = |hi: &str| {
            format!(
                "loop kernel g(a: ptr f32, b: ptr f32, n: i32):\n  for i in 0..{hi}: free\n    \
                 x: f32 = load a[i//2] where i%2 < 1 else 0.0\n    store b[i] = x\n"
            )
        };
        let (out, log) = apply("split_digits", &kernel(&pairs("min(64, n*2)")), &context());
        assert_eq!(log.applied, ["loop i"]);
        let made = text(&out);
        for line in
            ["for i1 in 0..min(64, n*2)//2: free", "for i2 in 0..2: free", "load a[i1] where i2 < 1", "b[i1*2 + i2]"]
        {
            assert!(made.contains(line), "{line}: {made}");
        }
        assert_eq!(
            refusals("split_digits", &pairs("min(64, n)"), &context()),
            ["loop i: its length is not a constant"]
        );
    }

    #[test]
    fn other_divisors_stay() {
        let why = refusals("split_digits", &gather("k//4 + k%6", 36), &context());
        assert_eq!(why, ["loop k: its divisors do not divide each other"]);
        let why = refusals("split_digits", &gather("k//5", 36), &context());
        assert_eq!(why, ["loop k: its divisors do not divide each other"]);
        assert_eq!(refusals("split_digits", &gather("k*5", 36), &context()), Vec::<String>::new());
    }
}
