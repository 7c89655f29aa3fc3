//! Assumptions about a model's extents that no rule can prove but the given shapes satisfy.
//!
//! Rules ask whether extents are equal, and which of them is greater. If the ranges of the symbols do not decide it,
//! that becomes a [`Question`]. In: the questions of an operation that was refused, and the value that each symbol has
//! in a call. Out: an assumption about the symbols, as weak as was found, that answers one of the questions as the call
//! does. A graph that is made under assumptions has inputs of such extents (`[n*16]`, or the same symbol twice), so
//! that [`super::bind`] tests them whenever the model is called.
//!
//! ```text
//! n = m                 for n = 5, m = 5    m is n
//! n = 1                 for n = 1           n is 1
//! (b*n)//16*16 = b*n    for b = 3, n = 32   n is 16*k
//! min(n, 512) = n       for n = 40          n is at most 512
//! t - s = n             for t = 8, s = 3    t is s + n
//! ```
//!
//! Invariant: every assumption holds in the call.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;

use super::bind::eval_exact;
use super::ir::MAX_EXTENT;
use crate::base::id::Id;
use crate::index::text::{Names, ix_text};
use crate::index::{AxisId, Cmp, Cond, Facts, Interval, Ix, Poly, ValId, gcd, simplify};

/// A question of a rule about the symbols that no fact answered.
#[derive(Clone, PartialEq, Debug)]
pub enum Question {
    /// The rule goes on if the condition holds.
    Holds(Cond),
    /// The rule goes on if it is known whether the condition holds.
    Whether(Cond),
    /// The rule goes on if the number is known.
    Which(Ix),
}

/// The questions of one operation, the last of them if they are many.
#[derive(Debug, Default)]
pub struct Asked(RefCell<VecDeque<Question>>);

impl Asked {
    pub fn add(&self, question: Question) {
        let mut all = self.0.borrow_mut();
        if !all.contains(&question) {
            all.push_back(question);
            let many = all.len() > MOST_QUESTIONS;
            many.then(|| all.pop_front());
        }
    }
    /// Decides a condition by the facts; if they do not decide it, it becomes a question.
    pub fn decided(&self, cond: Cond, facts: &Facts, ask: fn(Cond) -> Question) -> Option<bool> {
        let known = facts.decide(&cond);
        if known.is_none() {
            self.add(ask(cond));
        }
        known
    }
    pub fn take(&mut self) -> Vec<Question> {
        std::mem::take(self.0.get_mut()).into()
    }
}

/// The most questions of one operation that are kept.
const MOST_QUESTIONS: usize = 64;
/// How many assumptions may follow from one another for one question.
const DEEPEST: usize = 6;
/// How many assumptions are tried for one question.
const MOST_TRIES: usize = 200;
/// The greatest divisor that an extent is assumed to be a multiple of.
const GREATEST_DIVISOR: i64 = 1 << 16;

/// The origin of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A dimension of the model.
    Dimension,
    /// The quotient of a dimension by a divisor.
    Quotient,
    /// The amount by which one extent is longer than another.
    Excess,
}

#[derive(Clone, Debug)]
struct Assumed {
    name: String,
    kind: Kind,
    lo: i64,
    hi: Option<i64>,
    /// Its value in the call.
    value: i64,
    /// Its expression in terms of the others; it is then not a symbol any more.
    is: Option<Ix>,
    /// True if its range was narrowed.
    narrowed: bool,
}

/// Symbols by name, and the assumptions about them.
#[derive(Clone, Debug, Default)]
pub struct Assumptions {
    symbols: Vec<Assumed>,
}

impl Names for Assumptions {
    fn axis(&self, axis: AxisId) -> Cow<'_, str> {
        format!("i{}", axis.0).into()
    }
    fn val(&self, val: ValId) -> Cow<'_, str> {
        self.name(val).unwrap_or("?").into()
    }
}

impl Assumptions {
    /// Adds a dimension with its value in the call, and the range that it has without assumptions.
    pub fn dimension(&mut self, name: &str, lo: i64, hi: Option<i64>, value: i64) {
        if self.position(name).is_none() {
            self.push(name.into(), Kind::Dimension, lo, hi, value);
        }
    }

    fn push(&mut self, name: String, kind: Kind, lo: i64, hi: Option<i64>, value: i64) -> ValId {
        let name = (0..).map(|n| name.clone() + &"'".repeat(n)).find(|n| self.position(n).is_none()).unwrap_or(name);
        self.symbols.push(Assumed { name, kind, lo, hi, value, is: None, narrowed: false });
        ValId(self.symbols.len() as u32 - 1)
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.symbols.iter().position(|s| s.name == name)
    }

    /// The expression that a name is assumed to equal; its leaves are symbols, named by [`Assumptions::name`].
    pub fn meaning(&self, name: &str) -> Option<&Ix> {
        self.symbols.get(self.position(name)?)?.is.as_ref()
    }
    pub fn name(&self, val: ValId) -> Option<&str> {
        self.symbols.get(val.index()).map(|s| s.name.as_str())
    }
    /// Its range; `None` if nothing is assumed about it.
    pub fn range(&self, name: &str) -> Option<(i64, Option<i64>)> {
        let symbol = self.symbols.get(self.position(name)?)?;
        (symbol.narrowed || symbol.kind != Kind::Dimension).then_some((symbol.lo, symbol.hi))
    }

    /// The assumptions in words, one for each dimension that has one: `m = n`, `n is a multiple of 16`.
    pub fn texts(&self) -> Vec<String> {
        self.symbols.iter().filter(|s| s.kind == Kind::Dimension).filter_map(|s| self.text(s)).collect()
    }

    fn text(&self, symbol: &Assumed) -> Option<String> {
        let name = &symbol.name;
        let least = || format!("{name} is at least {}", symbol.lo);
        let Some(is) = &symbol.is else {
            return match (symbol.narrowed, symbol.hi) {
                (false, _) => None,
                // An upper bound of 32 bits need not be mentioned: memory holds less.
                (true, Some(hi)) if hi >= i32::MAX.into() => (symbol.lo > 1).then(least),
                (true, None) => Some(least()),
                (true, Some(hi)) if symbol.lo <= 1 => Some(format!("{name} is at most {hi}")),
                (true, Some(hi)) => Some(format!("{name} is from {} to {hi}", symbol.lo)),
            };
        };
        let made =
            |kind: Kind| is.vals().into_iter().find(|v| self.symbols.get(v.index()).is_some_and(|s| s.kind == kind));
        let without = |v: ValId| {
            let rest = is.subst_vals(&mut |x, _| (x == v).then_some(Ix::Const(0)));
            ix_text(&simplify(&rest, &Facts::new()), self)
        };
        Some(match (made(Kind::Excess), made(Kind::Quotient)) {
            (Some(excess), _) => format!("{name} is at least {}", without(excess)),
            (None, Some(times)) => {
                let divisor = Poly::expanded(is).coefficient(&Ix::val(times));
                match without(times).as_str() {
                    "0" => format!("{name} is a multiple of {divisor}"),
                    rest => format!("{name} is {rest} more than a multiple of {divisor}"),
                }
            }
            (None, None) => format!("{name} = {}", ix_text(is, self)),
        })
    }

    /// The condition that must hold for the answer that the call gives to a question over symbols with these `names`.
    /// `None` if that answer does not help, or a symbol has no value.
    fn wanted(&self, question: &Question, names: &dyn Fn(ValId) -> Option<String>) -> Option<Cond> {
        let own = |ix: &Ix| -> Option<Ix> {
            let mut all = true;
            let ix = ix.subst_vals(&mut |v, _| match names(v).and_then(|name| self.position(&name)) {
                Some(at) => Some(Ix::val(ValId(at as u32))),
                None => {
                    all = false;
                    None
                }
            });
            (all && ix.axes().is_empty()).then_some(ix)
        };
        let cond = match question {
            Question::Holds(c) | Question::Whether(c) => Cond::new(own(&c.lhs)?, c.cmp, own(&c.rhs)?),
            Question::Which(ix) => {
                let ix = own(ix)?;
                let value = self.value(&ix)?;
                Cond::new(ix, Cmp::Eq, Ix::Const(value))
            }
        };
        match (question, cond.cmp.holds(self.value(&cond.lhs)?, self.value(&cond.rhs)?)) {
            (_, true) => Some(cond),
            (Question::Whether(_), false) => Some(cond.negate()),
            (_, false) => None,
        }
    }

    /// Returns true if the assumptions answer a question already.
    pub fn answers(&self, question: &Question, names: &dyn Fn(ValId) -> Option<String>) -> bool {
        self.wanted(question, names).is_some_and(|cond| self.decide(&self.now(&cond)).is_some())
    }

    /// Makes assumptions that answer a question as the call does. `names` gives the name of each symbol of the
    /// question. `None` if it is answered already, or nothing was found.
    pub fn answer(&self, question: &Question, names: &dyn Fn(ValId) -> Option<String>) -> Option<Assumptions> {
        let cond = self.wanted(question, names)?;
        if self.decide(&self.now(&cond)).is_some() {
            return None;
        }
        self.solve(&cond, DEEPEST, &mut { MOST_TRIES })
    }

    fn value(&self, ix: &Ix) -> Option<i64> {
        let values: Vec<i64> = self.symbols.iter().map(|s| s.value).collect();
        eval_exact(ix, &values)
    }

    fn facts(&self) -> Facts {
        let mut facts = Facts::new();
        for (at, s) in self.symbols.iter().enumerate() {
            let range = Interval::new(s.lo.into(), s.hi.unwrap_or(MAX_EXTENT).into());
            facts.vals.insert(ValId(at as u32), range);
        }
        facts
    }

    /// An expression over the remaining symbols.
    fn resolved(&self, ix: &Ix) -> Ix {
        let is = |v: ValId| self.symbols.get(v.index()).and_then(|s| s.is.as_ref());
        let placed = ix.subst_vals(&mut |v, _| is(v).map(|is| self.resolved(is)));
        simplify(&placed, &self.facts())
    }

    fn now(&self, cond: &Cond) -> Cond {
        Cond::new(self.resolved(&cond.lhs), cond.cmp, self.resolved(&cond.rhs))
    }

    /// Returns the truth of a condition over the remaining symbols, if it is the same for all their values.
    fn decide(&self, cond: &Cond) -> Option<bool> {
        let same = Poly::expanded(&cond.lhs).minus(&Poly::expanded(&cond.rhs)).is_zero();
        match cond.cmp {
            Cmp::Eq | Cmp::Le | Cmp::Ge if same => Some(true),
            _ => self.facts().decide(cond),
        }
    }

    /// Assumptions that make a condition true that is true in the call.
    fn solve(&self, cond: &Cond, depth: usize, tries: &mut usize) -> Option<Assumptions> {
        let cond = self.now(cond);
        match self.decide(&cond) {
            Some(true) => return Some(self.clone()),
            Some(false) => return None,
            None => {}
        }
        if depth == 0 || *tries == 0 {
            return None;
        }
        *tries -= 1;
        // First decide which of the two is less: the rest then has no minimum.
        if let Some((a, b)) = choice(&cond.lhs).or_else(|| choice(&cond.rhs)) {
            let (less, more) = if self.value(&a)? <= self.value(&b)? { (a, b) } else { (b, a) };
            let chosen = self.solve(&Cond::new(less, Cmp::Le, more), depth - 1, tries);
            if let Some(found) = chosen.and_then(|chosen| chosen.solve(&cond, depth - 1, tries)) {
                return Some(found);
            }
        }
        let candidates = match cond.cmp {
            Cmp::Eq => self.equal(&cond),
            Cmp::Ne => {
                let less = self.value(&cond.lhs)? < self.value(&cond.rhs)?;
                return self.solve(&Cond { cmp: if less { Cmp::Lt } else { Cmp::Gt }, ..cond }, depth - 1, tries);
            }
            _ => self.ordered(&cond),
        };
        let residues = self.residues(&cond);
        let fixed =
            self.symbols_of(&cond).into_iter().filter_map(|v| self.with(v, Ix::Const(self.symbols[v.index()].value)));
        candidates.into_iter().chain(residues).chain(fixed).find_map(|next| next.solve(&cond, depth - 1, tries))
    }

    fn symbols_of(&self, cond: &Cond) -> Vec<ValId> {
        let mut all = cond.lhs.vals();
        all.extend(cond.rhs.vals());
        all.sort();
        all.dedup();
        // Later symbols come first: they are expressed by earlier ones.
        all.reverse();
        all
    }

    /// A symbol in terms of the others; `None` where it would be outside its range for some of their values, unless its
    /// range can be theirs.
    fn with(&self, v: ValId, is: Ix) -> Option<Assumptions> {
        let mut next = self.clone();
        let is = self.resolved(&is);
        let symbol = self.symbols.get(v.index())?;
        if is.vals().contains(&v) || self.value(&is)? != symbol.value {
            return None;
        }
        let (lo, hi) = (symbol.lo, symbol.hi);
        match &is {
            Ix::Val { val, .. } => {
                let other = &mut next.symbols[val.index()];
                let before = (other.lo, other.hi);
                other.lo = other.lo.max(lo);
                other.hi = other.hi.into_iter().chain(hi).min();
                // A dimension's range is reported if it changed.
                other.narrowed |= before != (other.lo, other.hi);
            }
            _ => {
                let range = self.facts().tight_range(&is);
                let below = range.lo < i128::from(lo.min(0));
                if below || hi.is_some_and(|hi| range.hi > hi.into()) {
                    return None;
                }
            }
        }
        next.symbols[v.index()].is = Some(is);
        Some(next)
    }

    /// Assumptions that make two sides equal: a symbol equals the rest, or two symbols are one.
    fn equal(&self, cond: &Cond) -> Vec<Assumptions> {
        let apart = Poly::expanded(&cond.lhs).minus(&Poly::expanded(&cond.rhs));
        let symbols = self.symbols_of(cond);
        let mut found = vec![];
        for v in &symbols {
            let leaf = Ix::val(*v);
            let sign = apart.coefficient(&leaf);
            let elsewhere = apart.terms.iter().filter(|(f, _)| f.iter().any(|x| x.vals().contains(v))).count() != 1;
            if sign.abs() != 1 || elsewhere {
                continue;
            }
            let alone = Poly::expanded(&leaf).times(&Poly::constant(sign));
            let rest = apart.minus(&alone).times(&Poly::constant(-sign));
            // A sum of symbols, which a shape can express.
            let linear = rest.terms.iter().all(|(f, _)| matches!(&f[..], [Ix::Val { .. }]));
            found.extend(rest.to_ix().filter(|_| linear).and_then(|rest| self.with(*v, rest)));
        }
        for (at, v) in symbols.iter().enumerate() {
            let value = |v: &ValId| self.symbols.get(v.index()).map(|s| s.value);
            let others = symbols[at + 1..].iter().filter(|w| value(w) == value(v));
            found.extend(others.filter_map(|w| self.with(*v, Ix::val(*w))));
        }
        found
    }

    /// Assumptions that make one side less than the other: the bound of a symbol, or one symbol that is longer than
    /// others.
    fn ordered(&self, cond: &Cond) -> Vec<Assumptions> {
        let (l, r) = (Poly::expanded(&cond.lhs), Poly::expanded(&cond.rhs));
        // At least 0.
        let rest = match cond.cmp {
            Cmp::Lt | Cmp::Le => r.minus(&l),
            _ => l.minus(&r),
        };
        let strict = matches!(cond.cmp, Cmp::Lt | Cmp::Gt);
        let rest = rest.minus(&Poly::constant(strict.into()));
        let mut found = vec![];
        if let [(factors, by)] = &rest.terms[..]
            && let [Ix::Val { val, .. }] = &factors[..]
        {
            let mut next = self.clone();
            let symbol = &mut next.symbols[val.index()];
            // by*v + base >= 0
            let bound = if *by > 0 { -rest.base.div_euclid(*by) } else { rest.base.div_euclid(-*by) };
            if let Ok(bound) = i64::try_from(bound) {
                match *by > 0 {
                    true => symbol.lo = symbol.lo.max(bound),
                    false => symbol.hi = Some(symbol.hi.map_or(bound, |hi| hi.min(bound))),
                }
                symbol.narrowed = true;
                let admits = symbol.lo <= symbol.value && symbol.hi.is_none_or(|hi| symbol.value <= hi);
                found.extend(admits.then_some(next));
            }
            return found;
        }
        let linear = rest.terms.iter().all(|(f, _)| matches!(&f[..], [Ix::Val { .. }]));
        for v in self.symbols_of(cond).into_iter().filter(|_| linear) {
            // v + rest >= 0: v is -rest and what it is longer by.
            let leaf = Ix::val(v);
            if rest.coefficient(&leaf) != 1 {
                continue;
            }
            let Some(least) = Poly::expanded(&leaf).minus(&rest).to_ix() else { continue };
            let Some((own, value)) = self.symbols.get(v.index()).zip(self.value(&least)) else { continue };
            let mut next = self.clone();
            let text = format!("{} above", own.name);
            let excess = next.push(text, Kind::Excess, 0, None, own.value - value);
            found.extend(next.with(v, Ix::add(least, Ix::val(excess))));
        }
        found
    }

    /// Assumptions that make divisions whole, or their remainders known: a symbol is a multiple of the divisor plus its
    /// own remainder.
    fn residues(&self, cond: &Cond) -> Vec<Assumptions> {
        let mut found: Vec<(i64, Assumptions)> = vec![];
        for v in self.symbols_of(cond) {
            let mut divisor = 1i64;
            for side in [&cond.lhs, &cond.rhs] {
                divisors(side, v, &mut divisor);
            }
            let Some(symbol) = self.symbols.get(v.index()).filter(|_| (2..=GREATEST_DIVISOR).contains(&divisor)) else {
                continue;
            };
            let (times, rest) = (symbol.value.div_euclid(divisor), symbol.value.rem_euclid(divisor));
            let least = (symbol.lo - rest + divisor - 1).div_euclid(divisor).max(0);
            let most = symbol.hi.map(|hi| (hi - rest).div_euclid(divisor));
            let mut next = self.clone();
            let text = format!("{} by {divisor}", symbol.name);
            let quotient = next.push(text, Kind::Quotient, least, most, times);
            let whole = Ix::mul(Ix::val(quotient), Ix::Const(divisor));
            found.extend(next.with(v, Ix::add(whole, Ix::Const(rest))).map(|next| (rest, next)));
        }
        // Multiples first: most divisions are meant to be whole.
        found.sort_by_key(|(rest, _)| *rest != 0);
        found.into_iter().map(|(_, next)| next).collect()
    }
}

/// The operands of the innermost minimum or maximum.
fn choice(ix: &Ix) -> Option<(Ix, Ix)> {
    let (a, b) = ix.operands()?;
    let inner = choice(a).or_else(|| choice(b));
    inner.or_else(|| matches!(ix, Ix::Min(..) | Ix::Max(..)).then(|| (a.clone(), b.clone())))
}

/// The common multiple of the divisors of a symbol.
fn divisors(ix: &Ix, v: ValId, all: &mut i64) {
    let Some((a, b)) = ix.operands() else { return };
    divisors(a, v, all);
    divisors(b, v, all);
    let (Ix::FloorDiv(..) | Ix::Mod(..), Some(by)) = (ix, b.as_const().filter(|n| *n > 1)) else { return };
    if !a.vals().contains(&v) {
        return;
    }
    // The symbol itself need not contain a factor that multiplies it.
    let factor = Poly::expanded(a).coefficient(&Ix::val(v));
    let by = by / i64::try_from(factor).ok().filter(|f| *f != 0).map_or(1, |f| gcd(by, f));
    *all = all.checked_mul(by / gcd(*all, by).max(1)).unwrap_or(i64::MAX);
}

#[cfg(test)]
#[path = "assume_tests.rs"]
mod tests;
