//! The simplifier: gathers like terms, and lets intervals resolve divisions, remainders, minima and maxima.
//!
//! ```text
//! (i*64 + j)//64, 0 <= j < 64   -->   i
//! (i*64 + j)%64,  0 <= j < 64   -->   j
//! n*4 - n - n*3 + 2             -->   2
//! i//5*15 + i%5*3               -->   i*3
//! i//5%7*5 + i%5                -->   i%35
//! min(i, 127),    0 <= i < 64   -->   i
//! ```
//! The value is the same for every value of the leaves that the facts allow.

use rustc_hash::FxHashSet;

use super::facts::{Facts, Interval};
use super::poly::Poly;
use super::{Cmp, Cond, Ix, gcd};

/// An equal expression, at most as large.
pub fn simplify(ix: &Ix, facts: &Facts) -> Ix {
    simplify_but(ix, facts, &FxHashSet::default())
}

/// Long expressions that are already simple: an expression that contains them is simplified without visiting them
/// again.
#[derive(Default)]
pub struct Simple(FxHashSet<Ix>);

/// The least number of leaves and operations of a long expression, and the most long expressions that are remembered.
const LONG: usize = 24;
const MOST: usize = 1 << 12;

impl Simple {
    /// As [`simplify`]. The facts may only have grown since the last time.
    pub fn simplify(&mut self, ix: &Ix, facts: &Facts) -> Ix {
        let simple = simplify_but(ix, facts, &self.0);
        if simple.size() >= LONG {
            if self.0.len() >= MOST {
                self.0.clear();
            }
            self.0.insert(simple.clone());
        }
        simple
    }
}

fn simplify_but(ix: &Ix, facts: &Facts, simple: &FxHashSet<Ix>) -> Ix {
    let Some((a, b)) = ix.operands() else {
        return facts.range(ix).as_point().and_then(|p| i64::try_from(p).ok()).map_or(ix.clone(), Ix::Const);
    };
    if !simple.is_empty() && simple.contains(ix) {
        return ix.clone();
    }
    let same = ix.with_operands(simplify_but(a, facts, simple), simplify_but(b, facts, simple));
    let better = step(&same, facts);
    match better {
        Some(better) if better.size() <= same.size() => better,
        _ => same,
    }
}

/// Rewrites the outermost operation; its operands are already simple.
fn step(ix: &Ix, facts: &Facts) -> Option<Ix> {
    if let Some(p) = facts.tight_range(ix).as_point() {
        return i64::try_from(p).ok().map(Ix::Const);
    }
    match ix {
        Ix::Add(..) | Ix::Sub(..) | Ix::Mul(..) => {
            let gathered = Poly::gathered(ix).rejoined().to_ix();
            let expanded = Poly::expanded(ix).rejoined().to_ix();
            match (gathered, expanded) {
                (Some(g), Some(e)) => Some(if e.size() < g.size() { e } else { g }),
                (g, e) => g.or(e),
            }
        }
        Ix::FloorDiv(a, b) => quotient(a, b, facts),
        Ix::Mod(a, b) => remainder(a, b, facts),
        Ix::Min(a, b) | Ix::Max(a, b) => {
            let at_most = |x: &Ix, y: &Ix| facts.decide(&Cond::new(x.clone(), Cmp::Le, y.clone()));
            let le = at_most(a, b).or_else(|| at_most(b, a).map(|yes| !yes))?;
            let least = if le { a } else { b };
            let most = if le { b } else { a };
            Some(if matches!(ix, Ix::Min(..)) { (**least).clone() } else { (**most).clone() })
        }
        _ => None,
    }
}

/// `a = by*q + r`, and `Some(n)` when `r // by` is always `n`.
fn divide(a: &Ix, b: &Ix, facts: &Facts) -> Option<(Poly, Poly, Option<i128>)> {
    let sum = Poly::expanded(a);
    match b.as_const() {
        Some(by) if by > 0 => {
            let (q, r) = sum.split(by as i128);
            let part = r.range(facts).floor_div(Interval::point(by as i128)).as_point();
            Some((q, r, part))
        }
        Some(_) => None,
        None => {
            let divisor = facts.range(b);
            if divisor.lo < 1 {
                return None;
            }
            let (q, r) = sum.split_by_factor(b);
            let rest = r.range(facts);
            Some((q, r, (rest.lo >= 0 && rest.hi < divisor.lo).then_some(0)))
        }
    }
}

fn quotient(a: &Ix, b: &Ix, facts: &Facts) -> Option<Ix> {
    // (x * (g*y + g*z)) // (g*d) = (x * (y + z)) // d, without multiplying out.
    if let Some(by) = b.as_const().filter(|&by| by > 0)
        && let g = gcd(content(a, by), by)
        && g > 1
    {
        let (a, by) = (divided(a, g), by / g);
        let whole = Ix::floor_div(a, Ix::Const(by));
        return step(&whole, facts).filter(|q| q.size() <= whole.size()).or(Some(whole));
    }
    let (q, r, part) = divide(a, b, facts)?;
    if let Some(n) = part {
        return q.plus(&Poly::constant(n)).to_ix();
    }
    let rest = match (b.as_const(), r.to_ix()?) {
        (Some(by), Ix::FloorDiv(x, y)) if y.as_const().is_some_and(|y| y > 0 && y.checked_mul(by).is_some()) => {
            Ix::floor_div(*x, Ix::Const(y.as_const()? * by))
        }
        (Some(by), _) => {
            // (g*s + c) // (g*d) = (s + c//g) // d, and so with any 0 <= c < g
            let (g, s) = match part_of(&r, by, facts) {
                Some((g, s, _)) => (g, s),
                None => {
                    let g = r.gcd(by as i128);
                    (g, r.split(g).0)
                }
            };
            Ix::floor_div(s.to_ix()?, Ix::Const(i64::try_from(by as i128 / g).ok()?))
        }
        (None, r) => Ix::floor_div(r, b.clone()),
    };
    Some(Ix::add(q.to_ix()?, rest))
}

/// The greatest divisor of `of` that shows in every term of an expression, whose terms are not multiplied out for it.
fn content(ix: &Ix, of: i64) -> i64 {
    match ix {
        Ix::Const(c) => gcd(*c, of),
        Ix::Mul(a, b) => {
            let one = content(a, of);
            one * content(b, of / one)
        }
        Ix::Add(a, b) | Ix::Sub(a, b) => content(b, content(a, of)),
        _ => 1,
    }
}

/// An expression divided by a divisor of its `content`.
fn divided(ix: &Ix, by: i64) -> Ix {
    match ix {
        Ix::Const(c) => Ix::Const(c / by),
        Ix::Mul(a, b) => {
            let one = content(a, by);
            Ix::mul(divided(a, one), divided(b, by / one))
        }
        Ix::Add(a, b) => Ix::add(divided(a, by), divided(b, by)),
        Ix::Sub(a, b) => Ix::sub(divided(a, by), divided(b, by)),
        same => same.clone(),
    }
}

fn remainder(a: &Ix, b: &Ix, facts: &Facts) -> Option<Ix> {
    let (_, r, part) = divide(a, b, facts)?;
    match (part, b.as_const()) {
        (Some(n), Some(by)) => r.minus(&Poly::constant(n.checked_mul(by as i128)?)).to_ix(),
        (Some(_), None) => r.to_ix(),
        (None, Some(by)) if let Some((g, s, c)) = part_of(&r, by, facts) => {
            // (g*s + c) % (g*d) = g*(s % d) + c
            let (g, d) = (i64::try_from(g).ok()?, i64::try_from(by as i128 / g).ok()?);
            Some(Ix::add(Ix::mul(Ix::modulo(s.to_ix()?, Ix::Const(d)), Ix::Const(g)), c.to_ix()?))
        }
        (None, _) => Some(Ix::modulo(r.to_ix()?, b.clone())),
    }
}

/// `sum = g*s + c` with `0 <= c < g`, for the greatest such part `g` of `by` where `c` is not 0.
fn part_of(sum: &Poly, by: i64, facts: &Facts) -> Option<(i128, Poly, Poly)> {
    let mut parts = sum.divisors(by.into());
    parts.sort_unstable();
    let split = |g: &i128| {
        let (s, c) = sum.split(*g);
        let range = c.range(facts);
        (range.lo >= 0 && range.hi < *g && !c.is_zero() && !s.is_zero()).then_some((*g, s, c))
    };
    parts.iter().rev().find_map(split)
}
