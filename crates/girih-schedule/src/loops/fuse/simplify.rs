//! Simplification: removes statements that are decided, unused or trivial.

use std::collections::{BTreeMap, BTreeSet};

use super::nest::{never, replace};
use super::ranges::facts;
use crate::base::launch::Assumptions;
use crate::base::rule::{Log, Rule};
use crate::index::{self, AxisId, Facts, Ix, Mask, ValId};
use crate::loops::ir::{BufId, Kernel, LoopKind, Opnd, Stmt, Ty};
use crate::loops::walk;
use crate::num::{DType, ScalarOp, eval};

pub const RULE: Rule<Kernel, Assumptions> = Rule {
    name: "simplify",
    doc: "\
Index expressions are simplified by the ranges of their axes, decided conditions are dropped, constants fold, loops that
run once become their body, and what nothing uses is removed: values, buffers, loops.

```text
for i in 0..1:
  t[(i*64 + j) // 64] = x where j < 64     -->     t[0] = x
```",
    run,
};

fn run(kernel: &Kernel, _: &Assumptions, log: &mut Log) -> Option<Kernel> {
    let mut kernel = kernel.clone();
    let before = kernel.body.clone();
    let mut body = std::mem::take(&mut kernel.body);
    let roles = walk::contractions(&body).flat_map(|(_, c)| [c.a, c.b]).collect();
    let axes = walk::contractions(&body).flat_map(|(_, c)| [&c.m, &c.n, &c.k]);
    let role_axes = axes.flatten().copied().collect();
    let mut s = Simplify { kernel: &kernel, roles, role_axes, facts: facts(&kernel), map: BTreeMap::new() };
    s.list(&mut body);
    let map = std::mem::take(&mut s.map);
    replace(&mut body, &map);
    sink_roles(&mut body);
    remove_dead(&mut body);
    let changed = body != before;
    kernel.body = body;
    if changed {
        log.applied("kernel");
    }
    changed.then_some(kernel)
}

struct Simplify<'a> {
    kernel: &'a Kernel,
    roles: BTreeSet<ValId>,
    role_axes: BTreeSet<AxisId>,
    facts: Facts,
    map: BTreeMap<ValId, Opnd>,
}

impl Simplify<'_> {
    fn ix(&self, ix: &Ix) -> Ix {
        index::simplify(ix, &self.facts)
    }
    fn opnd(&self, o: Opnd) -> Opnd {
        match o {
            Opnd::Val(v) => self.map.get(&v).copied().unwrap_or(o),
            constant => constant,
        }
    }

    fn mask(&self, mask: &Mask) -> Mask {
        let Some(mut out) = self.facts.simplify_mask(mask) else {
            return Mask { conds: vec![never()], vals: vec![] };
        };
        out.vals.clear();
        for &v in &mask.vals {
            match self.opnd(Opnd::Val(v)) {
                Opnd::Const { bits: 0, .. } => return Mask { conds: vec![never()], vals: vec![] },
                Opnd::Const { .. } => {}
                Opnd::Val(v) => out.vals.push(v),
            }
        }
        Mask::default().and(&out)
    }

    fn list(&mut self, body: &mut Vec<Stmt>) {
        let mut out = Vec::with_capacity(body.len());
        for mut s in std::mem::take(body) {
            walk::parts_mut(&mut s, &mut |p| {
                if let walk::PartMut::Ix(ix) = p {
                    *ix = self.ix(ix);
                }
            });
            if let Some(m) = walk::mask_mut(&mut s) {
                *m = self.mask(m);
            }
            self.stmt(s, &mut out);
            // Statements after a jump are never reached.
            if matches!(out.last(), Some(Stmt::Break | Stmt::Continue | Stmt::Return)) {
                break;
            }
        }
        *body = out;
    }

    fn stmt(&mut self, s: Stmt, out: &mut Vec<Stmt>) {
        let is_never = |m: &Mask| m.conds.first() == Some(&never());
        match s {
            Stmt::Let { dst, op, args } => {
                let args: Vec<Opnd> = args.into_iter().map(|a| self.opnd(a)).collect();
                match self.fold(dst, op, &args) {
                    Some(value) if !self.roles.contains(&dst) => {
                        self.map.insert(dst, value);
                    }
                    _ => out.push(Stmt::Let { dst, op, args }),
                }
            }
            Stmt::Index { dst, ix: Ix::Const(c) } if !self.roles.contains(&dst) => {
                let dtype = match self.kernel.vals[dst].ty {
                    Ty::Num(d) | Ty::Ptr(d) => d,
                };
                self.map.insert(dst, Opnd::Const { dtype, bits: c as u64 & dtype.mask() });
            }
            Stmt::Test { dst, mask } if mask.is_always() || is_never(&mask) => {
                let bits = mask.is_always() as u64;
                self.map.insert(dst, Opnd::Const { dtype: DType::I1, bits });
            }
            Stmt::Load { dst, ref mem, ref mask, other, .. } if is_never(mask) && !self.roles.contains(&dst) => {
                let value = match (other, self.kernel.vals[dst].ty) {
                    (Some(o), _) => Some(self.opnd(o)),
                    (None, Ty::Num(_)) => Some(Opnd::Const { dtype: mem.elem, bits: 0 }),
                    (None, Ty::Ptr(_)) => None,
                };
                match value {
                    Some(v) => {
                        self.map.insert(dst, v);
                    }
                    None => out.push(s),
                }
            }
            Stmt::Store { ref mask, .. } if is_never(mask) => {}
            Stmt::Assert { cond, .. } if matches!(self.opnd(cond), Opnd::Const { bits: 1, .. }) => {}
            Stmt::If { cond, mut then, mut els } => match self.opnd(cond) {
                Opnd::Const { bits, .. } => {
                    let arm = if bits != 0 { &mut then } else { &mut els };
                    self.list(arm);
                    out.append(arm);
                }
                cond => {
                    self.list(&mut then);
                    self.list(&mut els);
                    if !then.is_empty() || !els.is_empty() {
                        out.push(Stmt::If { cond, then, els });
                    }
                }
            },
            Stmt::For(mut f) => {
                if self.facts.range(&f.hi).hi <= self.facts.range(&f.lo).lo {
                    return;
                }
                self.facts.set_axis(f.axis, &f.lo, &f.hi);
                self.list(&mut f.body);
                let once = match (&f.lo, &f.hi, &f.step) {
                    (Ix::Const(lo), Ix::Const(hi), Ix::Const(step)) => *lo < *hi && lo.saturating_add(*step) >= *hi,
                    _ => false,
                };
                let jumps = f.kind == LoopKind::Serial && leaves(&f.body);
                if once && !jumps && !self.role_axes.contains(&f.axis) && f.contraction.is_none() {
                    let lo = f.lo.clone();
                    walk::subst_axis(&mut f.body, f.axis, &lo);
                    out.append(&mut f.body);
                } else if !f.body.is_empty() {
                    out.push(Stmt::For(f));
                }
            }
            Stmt::Loop { mut body } => {
                self.list(&mut body);
                out.push(Stmt::Loop { body });
            }
            s => out.push(s),
        }
    }

    /// The operand that a computation comes down to.
    fn fold(&self, dst: ValId, op: ScalarOp, args: &[Opnd]) -> Option<Opnd> {
        if op == ScalarOp::Copy {
            return args.first().copied();
        }
        let Ty::Num(to) = self.kernel.vals[dst].ty else { return None };
        if op == ScalarOp::Select {
            let [Opnd::Const { bits, .. }, a, b] = args else { return None };
            return Some(if *bits != 0 { *a } else { *b });
        }
        let mut bits = Vec::new();
        let mut ty = None;
        for a in args {
            let Opnd::Const { dtype, bits: b } = a else { return None };
            ty = ty.or(Some(*dtype));
            bits.push(*b);
        }
        Some(Opnd::Const { dtype: to, bits: eval::apply(op, ty?, &bits) })
    }
}

/// A jump that leaves the list, or goes on with the loop whose body it is.
fn leaves(body: &[Stmt]) -> bool {
    let e = walk::effects(body);
    e.leaves && has_jump(body)
}
fn has_jump(body: &[Stmt]) -> bool {
    body.iter().any(|s| match s {
        Stmt::Break | Stmt::Continue => true,
        Stmt::Loop { .. } => false,
        Stmt::For(f) if f.kind == LoopKind::Serial => false,
        _ => walk::bodies(s).into_iter().any(|b| has_jump(b)),
    })
}

/// A contraction's operands are the values before their conversions.
fn sink_roles(body: &mut [Stmt]) {
    for s in body.iter_mut() {
        for inner in walk::bodies_mut(s) {
            sink_roles(inner);
        }
        let Stmt::For(f) = s else { continue };
        let Some(c) = &mut f.contraction else { continue };
        for role in [&mut c.a, &mut c.b] {
            while let Some(source) = f.body.iter().find_map(|s| match s {
                Stmt::Let { dst, op: ScalarOp::FToF { .. } | ScalarOp::ExtI { .. } | ScalarOp::Copy, args }
                    if dst == role =>
                {
                    match args[..] {
                        [Opnd::Val(v)] if f.body.iter().any(|s| walk::def(s) == Some(v)) => Some(v),
                        _ => None,
                    }
                }
                _ => None,
            }) {
                *role = source;
            }
        }
    }
}

/// The values and buffers that statements with effects need.
#[derive(Default)]
struct Live {
    vals: BTreeSet<ValId>,
    bufs: BTreeSet<BufId>,
    grew: bool,
}

impl Live {
    /// Returns true if the statement is needed; if so, the values and buffers that it uses are needed too.
    fn mark(&mut self, s: &Stmt) -> bool {
        let mut needed = match s {
            Stmt::Write { buf, .. } => self.bufs.contains(buf),
            Stmt::Local { .. } => return false,
            Stmt::Load { dst, order, .. } => self.vals.contains(dst) || *order != crate::loops::ir::Order::Weak,
            Stmt::Alloca { dst, .. } => self.vals.contains(dst),
            Stmt::Rmw { .. } | Stmt::Cas { .. } | Stmt::Loop { .. } => true,
            Stmt::For(_) | Stmt::If { .. } => false,
            s => walk::def(s).is_none_or(|v| self.vals.contains(&v)),
        };
        // Later statements need earlier ones: a walk from the end finds a whole chain at once.
        for inner in walk::bodies(s).into_iter().rev() {
            for s in inner.iter().rev() {
                needed |= self.mark(s);
            }
        }
        if needed {
            walk::each_use(s, &mut |v| self.grew |= self.vals.insert(v));
            walk::parts(s, &mut |p| {
                if let walk::Part::ReadBuf(b) | walk::Part::RoleBuf(b) = p {
                    self.grew |= self.bufs.insert(*b);
                }
            });
        }
        needed
    }

    fn sweep(&mut self, body: &mut Vec<Stmt>) {
        body.retain_mut(|s| {
            if let Stmt::Local { buf } = s {
                return self.bufs.contains(buf);
            }
            if !self.mark(s) {
                return false;
            }
            for inner in walk::bodies_mut(s) {
                self.sweep(inner);
            }
            true
        });
    }
}

fn remove_dead(body: &mut Vec<Stmt>) {
    let mut live = Live::default();
    loop {
        live.grew = false;
        for s in body.iter().rev() {
            live.mark(s);
        }
        if !live.grew {
            break;
        }
    }
    live.sweep(body);
}
