//! Sums of products: the normal form behind simplification and comparison of index expressions.

use super::facts::{Facts, Interval};
use super::{Cmp, Cond, Ix};

/// `base + sum of coeff * product of factors`, like terms gathered. Factors are leaves, divisions, remainders, minima and
/// maxima (and, unless expanded, sums that are multiplied), in ascending order; terms are in order of appearance.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Poly {
    pub base: i128,
    pub terms: Vec<(Vec<Ix>, i128)>,
    /// True if a coefficient left 128 bits: nothing is known then.
    overflow: bool,
}

/// Products with more terms than this are not multiplied out.
const MOST_TERMS: usize = 64;

impl Poly {
    pub fn constant(c: i128) -> Poly {
        Poly { base: c, ..Poly::default() }
    }
    fn atom(ix: Ix) -> Poly {
        Poly { terms: vec![(vec![ix], 1)], ..Poly::default() }
    }

    /// The expression with products of sums multiplied out.
    pub fn expanded(ix: &Ix) -> Poly {
        Poly::of(ix, true)
    }
    /// The expression with products of sums kept as they are, except products by constants.
    pub fn gathered(ix: &Ix) -> Poly {
        Poly::of(ix, false)
    }

    fn of(ix: &Ix, expand: bool) -> Poly {
        match ix {
            Ix::Const(c) => Poly::constant(*c as i128),
            Ix::Add(a, b) => Poly::of(a, expand).plus(&Poly::of(b, expand)),
            Ix::Sub(a, b) => Poly::of(a, expand).minus(&Poly::of(b, expand)),
            Ix::Mul(a, b) => {
                let (p, q) = (Poly::of(a, expand), Poly::of(b, expand));
                let simple = (p.is_one() && q.is_one()) || p.terms.is_empty() || q.terms.is_empty();
                if simple || (expand && p.terms.len() * q.terms.len() <= MOST_TERMS) {
                    return p.times(&q);
                }
                let sealed = |p: Poly, ix: &Ix| p.sealed().unwrap_or(Poly::atom(ix.clone()));
                sealed(p, a).times(&sealed(q, b))
            }
            atom => Poly::atom(atom.clone()),
        }
    }

    /// Returns true if the polynomial is a number or one term.
    fn is_one(&self) -> bool {
        self.terms.is_empty() || (self.terms.len() == 1 && self.base == 0)
    }

    /// The polynomial as one term: a sum becomes a factor of it. `None` when a coefficient does not fit 64 bits.
    fn sealed(self) -> Option<Poly> {
        if self.is_one() { Some(self) } else { self.to_ix().map(Poly::atom) }
    }

    fn push(&mut self, factors: Vec<Ix>, coeff: i128) {
        match self.terms.iter_mut().find(|(f, _)| *f == factors) {
            Some((_, c)) => match c.checked_add(coeff) {
                Some(sum) => *c = sum,
                None => self.overflow = true,
            },
            None => self.terms.push((factors, coeff)),
        }
    }

    pub fn plus(&self, other: &Poly) -> Poly {
        self.combine(other, 1)
    }
    pub fn minus(&self, other: &Poly) -> Poly {
        self.combine(other, -1)
    }

    fn combine(&self, other: &Poly, sign: i128) -> Poly {
        let mut out = self.clone();
        out.overflow |= other.overflow;
        let base = other.base.checked_mul(sign).and_then(|b| out.base.checked_add(b));
        out.base = base.unwrap_or(0);
        out.overflow |= base.is_none();
        for (factors, coeff) in &other.terms {
            match coeff.checked_mul(sign) {
                Some(c) => out.push(factors.clone(), c),
                None => out.overflow = true,
            }
        }
        out.terms.retain(|(_, c)| *c != 0);
        out
    }

    pub fn times(&self, other: &Poly) -> Poly {
        let mut out = Poly { overflow: self.overflow || other.overflow, ..Poly::default() };
        let one = |p: &Poly| {
            let mut terms = p.terms.clone();
            if p.base != 0 {
                terms.push((Vec::new(), p.base));
            }
            terms
        };
        for (f, c) in &one(self) {
            for (g, d) in &one(other) {
                let Some(product) = c.checked_mul(*d) else {
                    out.overflow = true;
                    continue;
                };
                if f.is_empty() && g.is_empty() {
                    out.base = product;
                    continue;
                }
                let mut factors: Vec<Ix> = f.iter().chain(g).cloned().collect();
                factors.sort();
                out.push(factors, product);
            }
        }
        out.terms.retain(|(_, c)| *c != 0);
        out
    }

    pub fn range(&self, facts: &Facts) -> Interval {
        let sum = self.range_of_terms(facts);
        let least = self.at_bounds(facts, |coeff| coeff < 0);
        let most = self.at_bounds(facts, |coeff| coeff > 0);
        let lo = least.map_or(sum.lo, |p| sum.lo.max(p.range_of_terms(facts).lo));
        let hi = most.map_or(sum.hi, |p| sum.hi.min(p.range_of_terms(facts).hi));
        Interval { lo, hi }
    }

    fn range_of_terms(&self, facts: &Facts) -> Interval {
        if self.overflow {
            return Interval::ALL;
        }
        let mut sum = Interval::point(self.base);
        for (factors, coeff) in &self.terms {
            let product = factors.iter().fold(Interval::point(1), |p, f| p.mul(facts.range(f)));
            sum = sum.add(product.mul(Interval::point(*coeff)));
        }
        sum
    }

    /// The polynomial with `d - 1` for `x%d`, and for an axis that ends at `d`, in each term with a chosen coefficient;
    /// `d` is not a number. `None` if there is no such term.
    fn at_bounds(&self, facts: &Facts, chosen: impl Fn(i128) -> bool) -> Option<Poly> {
        let end = |factor: &Ix| match factor {
            Ix::Mod(_, d) if d.as_const().is_none() && facts.range(d).lo > 0 => Some((**d).clone()),
            Ix::Axis(a) => facts.ends.get(a).cloned(),
            _ => None,
        };
        let most = |(factors, coeff): &(Vec<Ix>, i128)| {
            let (at, end) = factors.iter().enumerate().find_map(|(at, f)| Some((at, end(f)?)))?;
            let others = factors.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, f)| f);
            let others: Vec<Ix> = others.cloned().collect();
            if !chosen(*coeff) || others.iter().any(|f| facts.range(f).lo < 0) {
                return None;
            }
            let others = match others.is_empty() {
                true => Poly::constant(*coeff),
                false => Poly { terms: vec![(others, *coeff)], ..Poly::default() },
            };
            Some(Poly::expanded(&end).minus(&Poly::constant(1)).times(&others))
        };
        let all: Vec<Option<Poly>> = self.terms.iter().map(most).collect();
        if all.iter().all(Option::is_none) {
            return None;
        }
        let mut out = self.clone();
        let mut bounded = all.iter().map(Option::is_some);
        out.terms.retain(|_| !bounded.next().unwrap_or(false));
        Some(all.iter().flatten().fold(out, |sum, most| sum.plus(most)))
    }

    /// The polynomial as an expression; `None` when a coefficient does not fit 64 bits. Subtractions print as such.
    pub fn to_ix(&self) -> Option<Ix> {
        if self.overflow {
            return None;
        }
        let mut out: Option<Ix> = None;
        let positive = self.terms.iter().filter(|(_, c)| *c > 0);
        let negative = self.terms.iter().filter(|(_, c)| *c < 0);
        for (factors, coeff) in positive.chain(negative) {
            let size = i64::try_from(coeff.abs()).ok()?;
            // Factors that are known at launch are to the right of factors that vary.
            let mut factors: Vec<&Ix> = factors.iter().collect();
            factors.sort_by_key(|f| match f {
                Ix::Axis(_) | Ix::Block(_) => 1,
                Ix::Val { .. } | Ix::Grid(_) => 2,
                _ => 0,
            });
            let product = factors.into_iter().cloned().reduce(Ix::mul)?;
            let term = Ix::mul(product, Ix::Const(size));
            out = Some(match out {
                None if *coeff < 0 => Ix::mul(term, Ix::Const(-1)),
                None => term,
                Some(sum) if *coeff < 0 => Ix::sub(sum, term),
                Some(sum) => Ix::add(sum, term),
            });
        }
        let base = Ix::Const(i64::try_from(self.base).ok()?);
        Some(match out {
            Some(sum) => Ix::add(sum, base),
            None => base,
        })
    }

    pub fn as_const(&self) -> Option<i128> {
        (!self.overflow && self.terms.is_empty()).then_some(self.base)
    }

    /// `(q, r)` with `self = by * q + r`, `q` as large as the terms allow; `by` is positive.
    pub fn split(&self, by: i128) -> (Poly, Poly) {
        let mut q = Poly { base: self.base.div_euclid(by), overflow: self.overflow, ..Poly::default() };
        let mut r = Poly { base: self.base.rem_euclid(by), overflow: self.overflow, ..Poly::default() };
        for (factors, coeff) in &self.terms {
            if coeff % by == 0 {
                q.terms.push((factors.clone(), coeff / by));
            } else {
                r.terms.push((factors.clone(), *coeff));
            }
        }
        (q, r)
    }

    /// The factors and the coefficient, if the polynomial is a number or one term.
    fn as_term(&self) -> Option<(Vec<Ix>, i128)> {
        match &self.terms[..] {
            [] if !self.overflow => Some((vec![], self.base)),
            [(factors, coeff)] if self.base == 0 && !self.overflow => Some((factors.clone(), *coeff)),
            _ => None,
        }
    }

    /// `(q, r)` with `self = by * q + r`, where terms have the factors of `by`.
    pub fn split_by_factor(&self, by: &Ix) -> (Poly, Poly) {
        let mut q = Poly { overflow: self.overflow, ..Poly::default() };
        let mut r = Poly { base: self.base, overflow: self.overflow, ..Poly::default() };
        let term = Poly::expanded(by).as_term().filter(|(_, times)| *times > 0);
        let (own, times) = term.unwrap_or_else(|| (vec![by.clone()], 1));
        for (factors, coeff) in &self.terms {
            match without(factors, &own).filter(|_| coeff % times == 0) {
                Some(rest) if rest.is_empty() => q.base += coeff / times,
                Some(rest) => q.push(rest, coeff / times),
                None => r.terms.push((factors.clone(), *coeff)),
            }
        }
        (q, r)
    }

    /// The terms whose factors satisfy `holds`, and the others with the base.
    pub fn partition(&self, holds: impl Fn(&[Ix]) -> bool) -> (Poly, Poly) {
        let (terms, rest) = self.terms.iter().cloned().partition(|(factors, _)| holds(factors));
        (Poly { terms, base: 0, ..self.clone() }, Poly { terms: rest, ..self.clone() })
    }

    /// The coefficient of a leaf by itself.
    pub fn coefficient(&self, leaf: &Ix) -> i128 {
        self.terms.iter().find(|(factors, _)| matches!(&factors[..], [only] if only == leaf)).map_or(0, |(_, c)| *c)
    }

    /// Joins the quotient and the remainder of the same division: `x//d*d + x%d` is `x`, and `x//d%e*d + x%d` is
    /// `x%(d*e)`; likewise `(y + x//d)*d + x%d`, where more than the quotient is multiplied, is `y*d + x`.
    pub fn rejoined(mut self) -> Poly {
        while let Some(Pair { quotients, remainder, whole, left }) = self.pair() {
            let Some((factors, coeff)) = self.terms.get(remainder).cloned().filter(|_| !quotients.contains(&remainder))
            else {
                break;
            };
            let rest: Vec<Ix> = factors.into_iter().filter(|f| !matches!(f, Ix::Mod(..))).collect();
            let mut others = Poly { overflow: self.overflow, ..Poly::default() };
            match rest.is_empty() {
                true => others.base = coeff,
                false => others.push(rest, coeff),
            }
            let mut index = 0;
            self.terms.retain(|_| {
                index += 1;
                index - 1 != remainder && !quotients.contains(&(index - 1))
            });
            self = self.plus(&Poly::expanded(&whole).times(&others)).plus(&left);
        }
        self
    }

    /// A quotient and a remainder of the same division, both multiplied by the same factors.
    fn pair(&self) -> Option<Pair> {
        self.terms.iter().enumerate().find_map(|(remainder, (factors, coeff))| {
            // With several remainders in one product it is not clear which quotient belongs to which remainder.
            let [x, d] = match &factors.iter().filter(|f| matches!(f, Ix::Mod(..))).collect::<Vec<_>>()[..] {
                [Ix::Mod(x, d)] => [x, d],
                _ => return None,
            };
            let of_x = match (&**x, &**d) {
                (Ix::FloorDiv(y, n), Ix::Const(d)) if n.as_const().is_some_and(|n| n.checked_mul(*d).is_some()) => {
                    Ix::floor_div((**y).clone(), Ix::Const(n.as_const()? * d))
                }
                _ => Ix::floor_div((**x).clone(), (**d).clone()),
            };
            let mut wanted: Vec<Ix> = factors.iter().filter(|f| !matches!(f, Ix::Mod(..))).cloned().collect();
            if let Some(quotients) = self.quotients(&of_x, d, &wanted, *coeff) {
                return Some(Pair { quotients, remainder, whole: (**x).clone(), left: Poly::default() });
            }
            let (own, by) = Poly::expanded(d).as_term().unwrap_or_else(|| (vec![(**d).clone()], 1));
            let times = coeff.checked_mul(by)?;
            wanted.extend(own);
            wanted.sort();
            // The one factor of a term that is left without the factors of the other term.
            let left = |factors: &[Ix]| <[Ix; 1]>::try_from(without(factors, &wanted)?).ok().map(|[only]| only);
            // The sum of the remainder and a quotient, or the quotient's remainder.
            let whole = |part: &Ix| match part {
                all if *all == of_x => Some((**x).clone()),
                Ix::Mod(quotient, e) if **quotient == of_x => {
                    let both = match (e.as_const(), d.as_const()) {
                        (Some(e), Some(d)) => Ix::Const(e.checked_mul(d)?),
                        _ => Poly::gathered(&Ix::mul((**e).clone(), (**d).clone())).to_ix()?,
                    };
                    Some(Ix::modulo((**x).clone(), both))
                }
                _ => None,
            };
            self.terms.iter().enumerate().find_map(|(quotient, (factors, c))| {
                let rest = left(factors).filter(|_| *c == times)?;
                if let Some(whole) = whole(&rest) {
                    return Some(Pair { quotients: vec![quotient], remainder, whole, left: Poly::default() });
                }
                // The quotient and other terms, their sum times `d`.
                let (Ix::Add(..) | Ix::Sub(..)) = &rest else { return None };
                let sum = Poly::gathered(&rest);
                let (part, whole) = sum.terms.iter().find_map(|(factors, c)| match &factors[..] {
                    [part] if *c == 1 => Some((part, whole(part)?)),
                    _ => None,
                })?;
                let more = sum.minus(&Poly::atom(part.clone())).sealed()?;
                let left = more.times(&Poly { terms: vec![(wanted.clone(), times)], ..Poly::default() });
                Some(Pair { quotients: vec![quotient], remainder, whole, left })
            })
        })
    }

    /// The positions of the terms of `x//d*d` times other factors and a coefficient, if `d` is a sum, whose product has
    /// been multiplied out.
    fn quotients(&self, of_x: &Ix, d: &Ix, others: &[Ix], coeff: i128) -> Option<Vec<usize>> {
        d.operands()?;
        let d = Poly::expanded(d);
        if d.terms.len() + usize::from(d.base != 0) < 2 {
            return None;
        }
        let factors = others.iter().chain([of_x]).cloned().collect::<Vec<_>>();
        let all = Poly { terms: vec![(factors, coeff)], ..Poly::default() }.times(&d);
        all.terms.iter().map(|term| self.terms.iter().position(|t| t == term)).collect()
    }

    /// The greatest common divisor of the terms' coefficients, and of `with`.
    pub fn gcd(&self, with: i128) -> i128 {
        self.terms.iter().fold(with, |g, (_, c)| gcd(g, c.abs()))
    }

    /// The greatest common divisors of `with` and each of the terms' coefficients that are neither 1 nor `with`.
    pub fn divisors(&self, with: i128) -> Vec<i128> {
        let each = self.terms.iter().map(|(_, c)| gcd(with, c.abs()));
        each.filter(|g| 1 < *g && *g < with).collect()
    }

    pub fn is_zero(&self) -> bool {
        !self.overflow && self.base == 0 && self.terms.is_empty()
    }
}

impl Cond {
    /// The number that is negative where the condition holds, and nowhere else; `None` of an equality.
    fn negative(&self) -> Option<Poly> {
        let (lhs, rhs) = (Poly::expanded(&self.lhs), Poly::expanded(&self.rhs));
        match self.cmp {
            Cmp::Lt => Some(lhs.minus(&rhs)),
            Cmp::Le => Some(lhs.minus(&rhs).minus(&Poly::constant(1))),
            Cmp::Gt => Some(rhs.minus(&lhs)),
            Cmp::Ge => Some(rhs.minus(&lhs).minus(&Poly::constant(1))),
            Cmp::Eq | Cmp::Ne => None,
        }
    }

    /// Returns true if two comparisons say the same, `x < n` and `n > x + 0`. Nothing is said of equalities.
    pub fn says(&self, other: &Cond) -> bool {
        self.negative().zip(other.negative()).is_some_and(|(a, b)| a.minus(&b).is_zero())
    }
}

/// Factors without some of them; `None` if one of these is missing.
fn without(factors: &[Ix], some: &[Ix]) -> Option<Vec<Ix>> {
    let mut left = factors.to_vec();
    for f in some {
        left.remove(left.iter().position(|l| l == f)?);
    }
    Some(left)
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Terms that belong together: the positions of the terms of `x//d` times `d` and of `x%d`, and their sum.
struct Pair {
    quotients: Vec<usize>,
    remainder: usize,
    whole: Ix,
    /// The rest of the quotient's term.
    left: Poly,
}
