//! Integer arithmetic becomes exact index expressions, comparisons become conditions, addresses become a base and an
//! index.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use super::addressed;
use super::affine::at_launch;
use super::differing::{Contents, Differing};
use super::ranges::{Range, interval, range, signed_range};
use crate::base::launch::Assumptions;
use crate::base::rule::{Log, Rule};
use crate::index::{AxisId, Cmp, Cond, Facts, Ix, Mask, ValId};
use crate::loops::ir::{BufId, Kernel, LoopKind, Mem, Obligation, Opnd, Stmt, Ty};
use crate::loops::walk;
use crate::num::literal::sign_extend;
use crate::num::op::{Predicate, Rounding, Signedness};
use crate::num::{DType, ScalarOp};

pub const RULE: Rule<Kernel, Assumptions> = Rule {
    name: "promote_index",
    doc: "\
An integer computed from block ids, axes, parameters and constants becomes an index expression wherever it is provably
exact, so that addresses are affine and masks are bounds.

```text
o = b * 128 + j          : i32
m = cmp lt o, n                      -->     x = load A[bx*128 + j] where bx*128 + j < n
p = ptradd A, o
x = load p[0] where m
```

Proofs use the ranges of axes, of block ids (below 2^24) and of the types, and powers of two that divide values: `x*64 + j`
does not wrap for a `j` below 64, whatever `x`. Where they do not suffice and the kernel is
compiled for launches that do not wrap, what is missing becomes an obligation that the launch tests, where an address or a
condition depends on it. Values loaded from memory stay values; one that is the same along a loop may be a term of a sum whose
other terms go on along it, `row + k`, so that neighbours are seen.",
    run,
};

fn run(kernel: &Kernel, assume: &Assumptions, log: &mut Log) -> Option<Kernel> {
    let (out, _) = promoted(kernel, assume, true);
    if out.body == kernel.body {
        return None;
    }
    log.applied(format!("index arithmetic, {} obligations", out.obligations.len()));
    Some(out)
}

/// The kernel as the rule leaves it, but for reads of the first of a run: it has the same statements in the same places. And what is
/// known of its values.
pub(super) fn forms(kernel: &Kernel, assume: &Assumptions) -> (Kernel, Forms) {
    promoted(kernel, assume, false)
}

/// `runs`: an element of a buffer that holds runs is found from the first of its run.
fn promoted(kernel: &Kernel, assume: &Assumptions, runs: bool) -> (Kernel, Forms) {
    let mut kernel = kernel.clone();
    let mut body = std::mem::take(&mut kernel.body);
    let mut p = Promote {
        no_wrap: assume.no_wrap,
        runs,
        forms: Forms::default(),
        axes: Vec::new(),
        varying: BTreeSet::new(),
        differing: Differing::default(),
        contents: Contents::of(&body),
        firsts: BTreeSet::new(),
        duties: Duties::of(&kernel.obligations),
        addressed: addressed::values(&body),
        proves: false,
        facts: kernel.facts(),
        kernel,
    };
    p.list(&mut body);
    let Promote { duties, mut kernel, forms, .. } = p;
    kernel.body = body;
    kernel.obligations.extend(duties.new);
    (kernel, forms)
}

/// The known forms of a kernel's values.
#[derive(Default)]
pub(super) struct Forms(BTreeMap<ValId, Form>);

impl Forms {
    /// The expression of an integer.
    pub fn int(&self, o: Opnd) -> Option<Ix> {
        match o {
            Opnd::Const { dtype, bits } if dtype.is_int() => Some(Ix::Const(sign_extend(dtype, bits))),
            Opnd::Const { .. } => None,
            Opnd::Val(val) => match self.0.get(&val) {
                Some(Form::Int(ix)) => Some(ix.clone()),
                _ => Some(Ix::val(val)),
            },
        }
    }

    /// The condition that a truth value is, if it is one.
    pub fn cond(&self, o: Opnd) -> Option<Cond> {
        let Opnd::Val(val) = o else { return None };
        match self.0.get(&val) {
            Some(Form::Cond(Mask { conds, vals })) if vals.is_empty() && conds.len() == 1 => conds.first().cloned(),
            _ => None,
        }
    }
}

/// The known form of a value.
#[derive(Clone)]
enum Form {
    /// The value, read as signed, is exactly this.
    Int(Ix),
    /// The address of this element after that base.
    Ptr(ValId, Ix),
    Cond(Mask),
}

struct Promote {
    no_wrap: bool,
    runs: bool,
    forms: Forms,
    /// Enclosing loops: axis, bounds, least and greatest value.
    axes: Vec<(AxisId, Ix, Ix, Range)>,
    /// Values that free and reduce loops compute anew for every element, and that are not index expressions.
    varying: BTreeSet<ValId>,
    /// The enclosing free and reduce loops along which values differ.
    differing: Differing,
    /// The index expressions that buffers hold.
    contents: Contents,
    /// Values that are the first of a run.
    firsts: BTreeSet<ValId>,
    duties: Duties,
    /// The values that addresses and conditions depend on.
    addressed: FxHashSet<ValId>,
    /// The current value is not one of `addressed`: the launch gets no obligation for it.
    proves: bool,
    /// The powers of two that divide values.
    facts: Facts,
    kernel: Kernel,
}

const MAX_NODES: usize = 128;
fn nodes(ix: &Ix) -> usize {
    match ix.operands() {
        Some((a, b)) => 1 + nodes(a) + nodes(b),
        None => 1,
    }
}

/// The conditions that the launch tests beside a kernel's obligations, each once.
struct Duties {
    new: Vec<Obligation>,
    /// All of them, [without names](unnamed).
    known: FxHashSet<Obligation>,
}

impl Duties {
    fn of(obligations: &[Obligation]) -> Duties {
        Duties { new: vec![], known: obligations.iter().map(unnamed).collect() }
    }

    fn add(&mut self, duty: Obligation) {
        if self.known.insert(unnamed(&duty)) {
            self.new.push(duty);
        }
    }
}

/// The obligation with names of axes that only their order decides: it says the same of loops that run over the same.
fn unnamed(o: &Obligation) -> Obligation {
    let name = |at: usize| AxisId(u32::MAX - at as u32);
    let renamed = |ix: &Ix| ix.subst_axes(&mut |x| Some(Ix::Axis(name(o.axes.iter().position(|(y, ..)| x == *y)?))));
    let axes = o.axes.iter().enumerate().map(|(at, (_, lo, hi))| (name(at), renamed(lo), renamed(hi))).collect();
    Obligation { ix: renamed(&o.ix), axes, ..*o }
}

impl Promote {
    fn dtype(&self, v: ValId) -> Option<DType> {
        match self.kernel.vals[v].ty {
            Ty::Num(d) if d.is_int() && d.bits() >= 8 => Some(d),
            _ => None,
        }
    }

    fn range(&self, ix: &Ix) -> Range {
        range(ix, &self.kernel, &|a| self.axes.iter().rev().find(|(b, ..)| *b == a).map(|(.., r)| *r))
    }

    /// Returns true if the expression lies in `lo..=hi`: provably, or because the launch will check it.
    fn within(&mut self, ix: &Ix, (lo, hi): Range) -> bool {
        let (least, most) = self.range(ix);
        if lo <= least && most <= hi || self.fits_behind_a_multiple(ix, (lo, hi)) {
            return true;
        }
        if let Some(spelled) = self.contents.spelled(ix) {
            return self.within(&spelled, (lo, hi));
        }
        if !self.no_wrap || self.proves || most < lo || hi < least || self.surely_leaves(ix, (lo, hi)) {
            return false;
        }
        let outer: Vec<(AxisId, Ix, Ix)> =
            self.axes.iter().map(|(a, lo, hi, _)| (*a, lo.clone(), hi.clone())).collect();
        if !at_launch(ix, &outer, &self.kernel) {
            return false;
        }
        // The axes it mentions, and the axes that their bounds mention.
        let mut needed: BTreeSet<AxisId> = ix.axes().into_iter().collect();
        for (a, lo, hi) in outer.iter().rev() {
            if needed.contains(a) {
                needed.extend(lo.axes());
                needed.extend(hi.axes());
            }
        }
        let axes = outer.into_iter().filter(|(a, ..)| needed.contains(a)).collect();
        let clamp = |v: i128| v.clamp(i64::MIN as i128, i64::MAX as i128) as i64;
        let duty = Obligation { ix: ix.clone(), axes, lo: clamp(lo), hi: clamp(hi) };
        self.duties.add(duty);
        true
    }

    /// Returns true for a multiple of a power of two and less than that power, `x*64 + j`: the greatest multiple has room for it.
    fn fits_behind_a_multiple(&self, ix: &Ix, (lo, hi): Range) -> bool {
        let Ix::Add(a, b) = ix else { return false };
        [(a, b), (b, a)].into_iter().any(|(multiple, rest)| {
            let by = i128::from(self.facts.divisor(multiple));
            let (first, last) = self.range(multiple);
            let (least, most) = self.range(rest);
            lo <= first && last <= hi && (hi + 1) % by == 0 && 0 <= least && most < by
        })
    }

    /// A power of two that divides an integer: one that wraps, as its width is a power of two, keeps it.
    fn divisor(&self, op: ScalarOp, args: &[Opnd]) -> Option<u64> {
        let of = |at: usize| Some(self.facts.divisor(&self.int(*args.get(at)?)?));
        match op {
            ScalarOp::AddI | ScalarOp::SubI => Some(of(0)?.min(of(1)?)),
            ScalarOp::MulI => Some(of(0)?.saturating_mul(of(1)?)),
            ScalarOp::Shl => {
                let by = self.int(*args.get(1)?)?.as_const().filter(|by| (0..31).contains(by))?;
                Some(of(0)?.saturating_mul(1 << by))
            }
            _ => None,
        }
    }

    /// Returns true if some element of the first block leaves `lo..=hi` in every launch, so that an obligation would
    /// never hold.
    fn surely_leaves(&self, ix: &Ix, (lo, hi): Range) -> bool {
        let corner = |last: bool| {
            interval(ix, &|leaf| match leaf {
                Ix::Axis(a) => match self.axes.iter().rev().find(|(b, ..)| a == b) {
                    Some((_, Ix::Const(lo), Ix::Const(hi), _)) if lo < hi => {
                        let at = if last { hi - 1 } else { *lo } as i128;
                        (at, at)
                    }
                    _ => self.range(leaf),
                },
                Ix::Block(_) => (0, 0),
                _ => self.range(leaf),
            })
        };
        [corner(false), corner(true)].into_iter().any(|(least, most)| most < lo || hi < least)
    }
    fn natural(&mut self, ix: &Ix) -> bool {
        self.within(ix, (0, i64::MAX as i128))
    }

    /// The value of an integer operand as an index expression.
    fn int(&self, o: Opnd) -> Option<Ix> {
        if let Opnd::Val(val) = o {
            self.dtype(val)?;
        }
        self.forms.int(o)
    }

    fn cond(&self, o: Opnd) -> Option<Mask> {
        match o {
            Opnd::Const { bits: 0, .. } => Some(Mask { conds: vec![super::nest::never()], vals: vec![] }),
            Opnd::Const { .. } => Some(Mask::default()),
            Opnd::Val(v) => match self.forms.0.get(&v) {
                Some(Form::Cond(m)) => Some(m.clone()),
                _ => None,
            },
        }
    }

    /// Replaces the values in an index expression by their own expressions.
    fn ix(&mut self, ix: &Ix) -> Ix {
        let forms: BTreeMap<ValId, Ix> =
            ix.vals().into_iter().filter_map(|v| Some((v, self.int(Opnd::Val(v))?))).collect();
        let mut natural = BTreeSet::new();
        ix.for_each_leaf(&mut |leaf| {
            if let Ix::Val { val, zext: true } = leaf
                && let Some(form) = forms.get(val)
                && !matches!(form, Ix::Val { val, .. } if self.varying.contains(val))
                && self.natural(form)
            {
                natural.insert(*val);
            }
        });
        ix.subst_vals(&mut |v, zext| forms.get(&v).filter(|_| !zext || natural.contains(&v)).cloned())
    }

    fn mask(&mut self, mask: &Mask) -> Mask {
        let mut out = Mask::default();
        for c in &mask.conds {
            let c = Cond { lhs: self.ix(&c.lhs), cmp: c.cmp, rhs: self.ix(&c.rhs) };
            out = out.and(&Mask { conds: vec![c], vals: vec![] });
        }
        for &v in &mask.vals {
            let m = self.cond(Opnd::Val(v)).unwrap_or(Mask { conds: vec![], vals: vec![v] });
            out = out.and(&m);
        }
        out
    }

    fn mem(&mut self, mem: &mut Mem) {
        mem.index = self.ix(&mem.index);
        if let Some(Form::Ptr(base, at)) = self.forms.0.get(&mem.base)
            && *base != mem.base
        {
            let (base, index) = (*base, Ix::add(at.clone(), mem.index.clone()));
            if self.within(&index, signed_range(DType::I64)) {
                (mem.base, mem.index) = (base, index);
            }
        }
    }

    fn list(&mut self, body: &mut Vec<Stmt>) {
        let mut firsts = vec![];
        for at in 0..body.len() {
            let (before, rest) = body.split_at_mut(at);
            let Some(s) = rest.first_mut() else { break };
            if let Some(m) = walk::mask_mut(s) {
                let m = m.clone();
                let new = self.mask(&m);
                if let Some(m) = walk::mask_mut(s) {
                    *m = new;
                }
            }
            match s {
                Stmt::Let { dst, op, args } => {
                    self.proves = !self.addressed.contains(dst);
                    let known = self.form(*dst, *op, args);
                    self.proves = false;
                    if let (None, Some(by)) = (&known, self.divisor(*op, args)) {
                        self.facts.val_divisors.insert(*dst, by);
                    }
                    self.know(*dst, known);
                }
                Stmt::Index { dst, ix } => {
                    self.proves = !self.addressed.contains(dst);
                    *ix = self.ix(ix);
                    let known = self.exact(*dst, Some(ix.clone()));
                    self.proves = false;
                    self.know(*dst, known);
                }
                Stmt::Test { dst, mask } => {
                    let known = self.plain(mask).then(|| Form::Cond(mask.clone()));
                    self.know(*dst, known);
                }
                Stmt::Load { dst, mem, .. } | Stmt::Rmw { dst, mem, .. } | Stmt::Cas { dst, mem, .. } => {
                    self.mem(mem);
                    self.know(*dst, None);
                }
                Stmt::Store { mem, .. } => self.mem(mem),
                Stmt::Read { dst, buf, idx } => {
                    for ix in idx.iter_mut() {
                        *ix = self.ix(ix);
                    }
                    self.contents.read(*dst, *buf, idx);
                    let form = self.in_run(*dst, *buf, idx, before).map(|(first, form)| {
                        firsts.extend(first.map(|s| (at, s)));
                        form
                    });
                    self.know(*dst, form);
                }
                Stmt::Write { buf, idx, value } => {
                    for ix in idx.iter_mut() {
                        *ix = self.ix(ix);
                    }
                    if let Some(ix) = self.int(*value)
                        && ix.vals().iter().all(|v| self.kernel.params.iter().any(|p| p.val == *v))
                    {
                        self.contents.written(*buf, idx, ix);
                    }
                }
                Stmt::GlobalAddr { .. } | Stmt::Alloca { .. } => {}
                Stmt::For(f) => {
                    f.lo = self.ix(&f.lo);
                    f.hi = self.ix(&f.hi);
                    f.step = self.ix(&f.step);
                    let (lo, hi) = (self.range(&f.lo).0, self.range(&f.hi).1 - 1);
                    self.axes.push((f.axis, f.lo.clone(), f.hi.clone(), (lo, hi.max(lo))));
                    let lane = f.kind != LoopKind::Serial;
                    if lane {
                        self.differing.enter(f);
                    }
                    self.list(&mut f.body);
                    if lane {
                        self.differing.leave();
                    }
                    self.axes.pop();
                }
                _ => {
                    for inner in walk::bodies_mut(s) {
                        self.list(inner);
                    }
                }
            }
            self.differing.define(s);
        }
        for (at, first) in firsts.into_iter().rev() {
            body.insert(at, first);
        }
    }

    /// The form of an element of a buffer that holds runs, `t[j] = t[j//16*16] + j%16`: from the first of its run, which the
    /// returned statement reads if no statement before does.
    fn in_run(&mut self, dst: ValId, buf: BufId, idx: &[Ix], before: &[Stmt]) -> Option<(Option<Stmt>, Form)> {
        let bare = |ix: &Ix| if let Ix::Axis(a) = ix { Some(*a) } else { None };
        let axis = idx.iter().find_map(bare).filter(|a| self.differing.along(*a) && self.addressed.contains(&dst))?;
        self.runs.then_some(())?;
        let run = self.contents.run(dst, axis, &self.kernel.facts())?;
        let place = Ix::modulo(Ix::Axis(axis), Ix::Const(run));
        let to_first = |a| (a == axis).then(|| Ix::mul(Ix::floor_div(Ix::Axis(axis), Ix::Const(run)), Ix::Const(run)));
        let idx: Vec<Ix> = idx.iter().map(|ix| ix.subst_axes(&mut |a| to_first(a))).collect();
        let known = before.iter().find_map(|s| match s {
            Stmt::Read { dst, buf: b, idx: at } if *b == buf && *at == idx => Some(*dst),
            _ => None,
        });
        let first = known.unwrap_or_else(|| self.kernel.vals.push(self.kernel.vals[dst].clone()));
        let stmt = Stmt::Read { dst: first, buf, idx };
        if let Stmt::Read { idx, .. } = &stmt {
            self.contents.read(first, buf, idx);
        }
        self.differing.define(&stmt);
        self.varying.insert(first);
        self.firsts.insert(first);
        Some((known.is_none().then_some(stmt), Form::Int(Ix::add(Ix::val(first), place))))
    }

    /// Returns the condition's value if it holds always, or never.
    fn decide(&self, mask: &Mask) -> Option<bool> {
        let decided = |c: &Cond| {
            let ((a, b), (x, y)) = (self.range(&c.lhs), self.range(&c.rhs));
            let (always, never) = match c.cmp {
                Cmp::Lt => (b < x, a >= y),
                Cmp::Le => (b <= x, a > y),
                Cmp::Gt => (a > y, b <= x),
                Cmp::Ge => (a >= y, b < x),
                Cmp::Eq => (a == b && x == y && a == x, b < x || y < a),
                Cmp::Ne => (b < x || y < a, a == b && x == y && a == x),
            };
            if always { Some(true) } else { never.then_some(false) }
        };
        if mask.conds.iter().any(|c| decided(c) == Some(false)) {
            return Some(false);
        }
        (mask.vals.is_empty() && mask.conds.iter().all(|c| decided(c) == Some(true))).then_some(true)
    }

    fn know(&mut self, v: ValId, form: Option<Form>) {
        match form {
            Some(f) => {
                self.forms.0.insert(v, f);
            }
            None if self.differing.any() => {
                self.varying.insert(v);
            }
            None => {}
        }
    }

    /// The form of an integer that is the wrapped `ix`, if nothing is lost.
    fn exact(&mut self, dst: ValId, ix: Option<Ix>) -> Option<Form> {
        let (ix, d) = (ix?, self.dtype(dst)?);
        (!self.varies(&ix) && nodes(&ix) <= MAX_NODES && self.within(&ix, signed_range(d))).then_some(Form::Int(ix))
    }

    /// The form of a sum that loses nothing. A term may differ from lane to lane if it stays the same along a loop and the other terms
    /// show the step along that loop: a row's offset, and the place in the row.
    fn sum(&mut self, dst: ValId, ix: Option<Ix>) -> Option<Form> {
        let (ix, d) = (ix?, self.dtype(dst)?);
        let own = ix.vals().into_iter().filter(|v| self.varying.contains(v));
        let shows =
            own.into_iter().all(|v| self.firsts.contains(&v) || self.differing.same_along(v).any(|a| ix.has_axis(a)));
        (shows && nodes(&ix) <= MAX_NODES && self.within(&ix, signed_range(d))).then_some(Form::Int(ix))
    }

    /// True if the expression mentions a value that differs from lane to lane.
    fn varies(&self, ix: &Ix) -> bool {
        ix.any_leaf(&mut |l| matches!(l, Ix::Val { val, .. } if self.varying.contains(val)))
    }

    /// No condition on a value that differs from lane to lane.
    fn plain(&self, mask: &Mask) -> bool {
        mask.conds.iter().all(|c| !self.varies(&c.lhs) && !self.varies(&c.rhs))
    }

    fn form(&mut self, dst: ValId, op: ScalarOp, args: &[Opnd]) -> Option<Form> {
        use ScalarOp as S;
        let first = *args.first()?;
        let second = args.get(1).copied();
        let pair = |p: &Promote| Some((p.int(first)?, p.int(second?)?));
        match op {
            S::Copy => match first {
                Opnd::Val(v) if matches!(self.kernel.vals[v].ty, Ty::Ptr(_)) => {
                    Some(self.forms.0.get(&v).cloned().unwrap_or(Form::Ptr(v, Ix::Const(0))))
                }
                o => match self.cond(o) {
                    Some(m) if self.kernel.vals[dst].ty == Ty::Num(DType::I1) => Some(Form::Cond(m)),
                    _ => {
                        let ix = self.int(o);
                        self.sum(dst, ix)
                    }
                },
            },
            S::AddI => {
                let (a, b) = pair(self)?;
                self.sum(dst, Some(Ix::add(a, b)))
            }
            S::SubI => {
                let (a, b) = pair(self)?;
                self.sum(dst, Some(Ix::sub(a, b)))
            }
            S::MulI => {
                let (a, b) = pair(self)?;
                let product = !self.varies(&a) || !self.varies(&b);
                self.sum(dst, product.then(|| Ix::mul(a, b)))
            }
            S::NegI => {
                let a = self.int(first)?;
                self.exact(dst, Some(Ix::sub(Ix::Const(0), a)))
            }
            S::ExtI { sign, .. } => {
                let a = self.int(first)?;
                (sign == Signedness::Signed || self.natural(&a)).then_some(())?;
                self.sum(dst, Some(a))
            }
            S::TruncI { .. } => {
                let a = self.int(first)?;
                // As good a leaf as the wider value, and one that cannot be too large.
                let leaf = matches!(a, Ix::Val { .. });
                let (least, most) = signed_range(self.dtype(dst)?);
                let (x, y) = self.range(&a);
                (!leaf || (least <= x && y <= most)).then_some(())?;
                self.sum(dst, Some(a))
            }
            S::MaxI { sign } | S::MinI { sign } => {
                let (a, b) = pair(self)?;
                let fine = sign == Signedness::Signed || (self.natural(&a) && self.natural(&b));
                let ix = if matches!(op, S::MaxI { .. }) { Ix::max(a, b) } else { Ix::min(a, b) };
                self.exact(dst, fine.then_some(ix))
            }
            S::Shl => {
                let (a, b) = pair(self)?;
                let by = b.as_const().filter(|c| (0..31).contains(c))?;
                self.exact(dst, Some(Ix::mul(a, Ix::Const(1 << by))))
            }
            S::Shr { sign } => {
                let (a, b) = pair(self)?;
                let by = b.as_const().filter(|c| (0..31).contains(c))?;
                (sign == Signedness::Signed || self.natural(&a)).then_some(())?;
                self.exact(dst, Some(Ix::floor_div(a, Ix::Const(1 << by))))
            }
            S::DivI { sign, rounding } => {
                let (a, b) = pair(self)?;
                self.within(&b, (1, i64::MAX as i128)).then_some(())?;
                let ix = match (sign, rounding) {
                    (Signedness::Signed, Rounding::NegativeInf) => Ix::floor_div(a, b),
                    (Signedness::Signed, Rounding::PositiveInf) => Ix::ceil_div(a, b),
                    (_, Rounding::PositiveInf) if self.natural(&a) => Ix::ceil_div(a, b),
                    (_, Rounding::PositiveInf) => return None,
                    _ if self.natural(&a) => Ix::floor_div(a, b),
                    _ => return None,
                };
                self.exact(dst, Some(ix))
            }
            S::RemI { .. } => {
                let (a, b) = pair(self)?;
                (self.within(&b, (1, i64::MAX as i128)) && self.natural(&a)).then_some(())?;
                self.exact(dst, Some(Ix::modulo(a, b)))
            }
            S::CmpI { pred, sign } => {
                let (lhs, rhs) = pair(self)?;
                let cmp = match pred {
                    Predicate::Equal => Cmp::Eq,
                    Predicate::NotEqual => Cmp::Ne,
                    Predicate::LessThan => Cmp::Lt,
                    Predicate::LessThanOrEqual => Cmp::Le,
                    Predicate::GreaterThan => Cmp::Gt,
                    Predicate::GreaterThanOrEqual => Cmp::Ge,
                };
                let mask = Mask { conds: vec![Cond { lhs: lhs.clone(), cmp, rhs: rhs.clone() }], vals: vec![] };
                if !self.plain(&mask) {
                    return None;
                }
                if sign == Signedness::Signed || matches!(cmp, Cmp::Eq | Cmp::Ne) {
                    return Some(Form::Cond(mask));
                }
                // A negative number is large as an unsigned number: it is not below a natural one.
                let positive = self.natural(&lhs);
                if !self.natural(&rhs) {
                    return None;
                }
                if matches!(cmp, Cmp::Lt | Cmp::Le) && !positive {
                    let positive = Cond { lhs: Ix::Const(0), cmp: Cmp::Le, rhs: lhs };
                    return Some(Form::Cond(Mask { conds: vec![positive], vals: vec![] }.and(&mask)));
                }
                positive.then_some(Form::Cond(mask))
            }
            S::And if self.kernel.vals[dst].ty == Ty::Num(DType::I1) => {
                let part = |p: &Promote, o: Opnd| match (p.cond(o), o) {
                    (Some(m), _) => m,
                    (None, Opnd::Val(v)) => Mask { conds: vec![], vals: vec![v] },
                    (None, _) => Mask::default(),
                };
                let (a, b) = (part(self, first), part(self, second?));
                Some(Form::Cond(a.and(&b)))
            }
            S::Xor if self.kernel.vals[dst].ty == Ty::Num(DType::I1) => {
                let m = match (self.cond(first)?, second?) {
                    (m, Opnd::Const { bits: 1, .. }) => m,
                    (m, Opnd::Const { bits: 0, .. }) => return Some(Form::Cond(m)),
                    _ => return None,
                };
                let [cond] = &m.conds[..] else { return None };
                m.vals.is_empty().then(|| Form::Cond(Mask { conds: vec![cond.negate()], vals: vec![] }))
            }
            S::Select => {
                let condition = self.cond(first)?;
                let chosen = if self.decide(&condition)? { second? } else { *args.get(2)? };
                let ix = self.int(chosen);
                self.exact(dst, ix)
            }
            S::PtrAdd => {
                let Opnd::Val(p) = first else { return None };
                let (base, at) = match self.forms.0.get(&p) {
                    Some(Form::Ptr(b, at)) => (*b, at.clone()),
                    _ => (p, Ix::Const(0)),
                };
                let ix = Ix::add(at, self.int(second?)?);
                (nodes(&ix) <= MAX_NODES && self.within(&ix, signed_range(DType::I64))).then_some(Form::Ptr(base, ix))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::parse::parse;
    use crate::loops::print::{Dialect, print};

    /// The load of a place in a row whose tile was found in memory.
    fn load(place: &str) -> String {
        let text = format!(
            "loop kernel k(T: ptr i32, A: ptr f32, O: ptr f32):
  t: i32 = load T[0]
  for j in 0..64: free
    i: i32 = index j
    {place}
    x: f32 = load A[q]
    store O[j] = x
"
        );
        let (kernel, _) = parse(&text).unwrap();
        let assume = Assumptions { no_wrap: true, no_alias: true };
        let out = (RULE.run)(&kernel, &assume, &mut Log::default()).unwrap_or(kernel);
        let text = print(&out, Dialect::Loop);
        let load = text.lines().find(|l| l.contains("load A")).expect("the load stays");
        load.rsplit("= ").next().unwrap_or("").trim().to_string()
    }

    #[test]
    fn a_tile_that_no_launch_knows_has_room_for_its_places() {
        assert_eq!(load("p: i32 = t * 64\n    q: i32 = p + i"), "load A[p + j]");
        assert_eq!(load("p: i32 = t << 6\n    q: i32 = i + p"), "load A[j + p]");
        assert_eq!(
            load("s: i32 = t * 48\n    r: i32 = s * 4\n    p: i32 = r + 256\n    q: i32 = p + i"),
            "load A[p + j]"
        );
        // The 33rd place of the last tile of 32 may be beyond 32 bits, and so may the place before the first.
        assert_eq!(load("p: i32 = t * 32\n    q: i32 = p + i"), "load A[q]");
        assert_eq!(load("p: i32 = t * 64\n    r: i32 = i + 1\n    q: i32 = p + r"), "load A[q]");
        assert_eq!(load("p: i32 = t * 64\n    r: i32 = i - 1\n    q: i32 = p + r"), "load A[q]");
    }
}
