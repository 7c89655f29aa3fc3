//! `spread_threads`

use crate::base::rule::{Log, Rule};
use crate::index::{Facts, simplify};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit;
use crate::tile::rules::site_of;
use crate::tile::tile_nest::check_bounds;
use crate::tile::wide;
use rustc_hash::FxHashSet;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "spread_threads",
    doc: "\
Spreads what a block does over its threads: each nest of free loops on its own, element by element. Tiles go into memory
that the threads share; what is done once is done by the first thread, and what it got is passed on to the others that need it.

```text
local x: f32[1024]                               local x: f32[1024] shared
for j in 0..1024: free                           for t in 0..256: free thread
  v = load src[j]                                  for e in 0..4: free
  x[j] = v                                -->        v = load src[e*256 + t]
                                                     x[e*256 + t] = v
old = atomic add count[0], 1                     local once: i32[1] shared
                                                 for t in 0..1: free thread
                                                   old = atomic add count[0], 1
                                                   once[0] = old
                                                 old = once[0]
```

Scalars, and reductions into them, are computed by every thread alike. Barriers are not this rule's: they follow from who
reads and writes what.

Knob: `threads` (256).

Refuses nothing; says which nests it spreads.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let mut kernel = p.clone();
    let body = std::mem::take(&mut kernel.body);
    let facts = kernel.facts();
    let mut used = FxHashSet::default();
    walk::visit(&body, &mut |s| {
        walk::each_use(s, &mut |v| {
            used.insert(v);
        })
    });
    let mut spread = Spread { ctx, threads: threads(p, ctx), facts, kernel, used, log, changed: false };
    let body = spread.body(body);
    let Spread { mut kernel, changed, .. } = spread;
    kernel.body = body;
    changed.then_some(kernel)
}

/// Threads of a block: as many as another rule chose already, or whole warps that its largest nest can use.
pub(in crate::tile) fn threads(p: &Kernel, ctx: &Context) -> i64 {
    let (mut chosen, mut most) = (None, 1u32);
    walk::visit(&p.body, &mut |s| {
        let Stmt::For(f) = s else { return };
        if f.place == Place::Thread {
            let own = f.combine.as_ref().map_or(f.hi.as_const().unwrap_or(0), |c| c.ways.into());
            chosen = chosen.max(Some(own));
        } else if f.kind == LoopKind::Free && f.place == Place::None {
            let elements = edit::free_chain(f).iter().try_fold(1i64, |n, f| n.checked_mul(f.hi.as_const()?));
            let elements = elements.and_then(|n| u32::try_from(n).ok()).unwrap_or(u32::MAX);
            most = most.max(elements);
        }
    });
    let useful = most.min(ctx.knobs.threads).next_multiple_of(ctx.target.axes.lanes);
    chosen.unwrap_or(useful.into())
}

struct Spread<'a> {
    ctx: &'a Context,
    threads: i64,
    facts: Facts,
    kernel: Kernel,
    /// Values that some statement reads.
    used: FxHashSet<ValId>,
    log: &'a mut Log,
    changed: bool,
}

impl Spread<'_> {
    /// Statements that every thread of the block comes by.
    fn body(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(body.len());
        for s in body {
            self.stmt(s, &mut out);
        }
        out
    }

    fn stmt(&mut self, mut s: Stmt, out: &mut Vec<Stmt>) {
        match &s {
            Stmt::For(f) if f.place == Place::Thread => out.push(s),
            // One thread begins it.
            Stmt::Stage { filled: Filled::Tma, .. } => out.push(s),
            Stmt::For(f) if f.place == Place::TmaStore => out.push(s),
            Stmt::For(f) if f.kind == LoopKind::Free && f.place == Place::None => {
                self.changed = true;
                self.log.applied(site_of(&self.kernel, &s));
                let made = self.nest(f);
                out.push(made);
            }
            Stmt::For(_) | Stmt::Loop { .. } | Stmt::If { .. } | Stmt::Stage { .. } => {
                for b in walk::bodies_mut(&mut s) {
                    let inner = std::mem::take(b);
                    *b = self.body(inner);
                }
                out.push(s);
            }
            Stmt::Local { buf } => {
                let b = &mut self.kernel.bufs[*buf];
                if !b.shape.is_empty() && b.space == Space::Scratch {
                    b.space = Space::Shared;
                    self.changed = true;
                }
                out.push(s);
            }
            Stmt::Load { order: Order::Weak, .. } => out.push(s),
            Stmt::Write { buf, .. } if self.kernel.bufs[*buf].shape.is_empty() => out.push(s),
            Stmt::Load { dst, .. } | Stmt::Rmw { dst, .. } | Stmt::Cas { dst, .. } if self.used.contains(dst) => {
                let dst = *dst;
                self.passed_on(s, dst, out);
            }
            Stmt::Load { .. }
            | Stmt::Rmw { .. }
            | Stmt::Cas { .. }
            | Stmt::Store { .. }
            | Stmt::Write { .. }
            | Stmt::Print { .. }
            | Stmt::Assert { .. } => {
                let once = self.once(vec![s]);
                out.push(once);
            }
            _ => out.push(s),
        }
    }

    /// Done by the first thread.
    fn once(&mut self, body: Vec<Stmt>) -> Stmt {
        self.changed = true;
        let t = self.kernel.axes.push(Axis { name: "t".into(), from: None });
        edit::loop_with(t, Ix::Const(1), body, |f| f.place = Place::Thread)
    }

    /// Done by the first thread, and what it got read by all.
    fn passed_on(&mut self, mut s: Stmt, dst: ValId, out: &mut Vec<Stmt>) {
        let Val { ty, name } = self.kernel.vals[dst].clone();
        let own = self.kernel.vals.push(Val { ty, name });
        walk::parts_mut(&mut s, &mut |part| {
            if let walk::PartMut::DefVal(v) = part {
                *v = own;
            }
        });
        let buf = self.kernel.bufs.push(Buf { space: Space::Shared, ..Buf::new("once", ty, vec![1]) });
        let idx = vec![Ix::Const(0)];
        let keep = Stmt::Write { buf, idx: idx.clone(), value: Opnd::Val(own) };
        let once = self.once(vec![s, keep]);
        out.extend([Stmt::Local { buf }, once, Stmt::Read { dst, buf, idx }]);
    }

    /// A nest of free loops, element by element.
    fn nest(&mut self, f: &For) -> Stmt {
        let mut chain = edit::free_chain(f);
        if check_bounds(&chain).is_err() {
            chain.truncate(1);
        }
        let mut facts = self.facts.clone();
        // What one access takes goes to one thread, where every thread still has something to do.
        let enough = |n: Option<i64>| n.is_some_and(|n| n >= self.threads);
        let numbered = wide::numbered(&mut self.kernel, self.ctx, &chain, &facts, &enough);
        let Some((numbered, body)) = numbered else { return Stmt::For(Box::new(f.clone())) };
        let total = &numbered.total;
        let threads = total.as_const().map_or(self.threads, |n| n.clamp(1, self.threads));
        let t = self.kernel.axes.push(Axis { name: "t".into(), from: None });
        facts.set_axis(t, &Ix::Const(0), &Ix::Const(threads));
        let rounds = simplify(&Ix::ceil_div(total.clone(), Ix::Const(threads)), &facts);
        let several = !rounds.is_const(1);
        let e = several.then(|| self.kernel.axes.push(Axis { name: "e".into(), from: None }));
        let own = match e {
            Some(e) => {
                facts.set_axis(e, &Ix::Const(0), &rounds);
                Ix::add(Ix::mul(Ix::Axis(e), Ix::Const(threads)), Ix::Axis(t))
            }
            None => Ix::Axis(t),
        };
        let mut body = numbered.body(&mut self.kernel, body, &own, threads, &facts);
        if let Some(e) = e {
            body = vec![edit::free_loop(e, rounds, body)];
        }
        edit::loop_with(t, Ix::Const(threads), body, |f| f.place = Place::Thread)
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, text};

    #[test]
    fn nests_are_spread_and_tiles_are_shared() {
        let k = r#"loop kernel k(src: ptr f32, dst: ptr f32):
  local x: f32[8, 100]
  for i in 0..8: free
    for j in 0..100: free
      v: f32 = load src[bx*800 + i*100 + j]
      x[i, j] = v
  for i1 in 0..8: free
    local s: f32
    s = 0.0
    for j1 in 0..100: reduce combine add(s) from -0.0
      w: f32 = x[i1, j1]
      a: f32 = s
      b: f32 = a + w
      s = b
    c: f32 = s
    store dst[bx*8 + i1] = c
"#;
        let (out, log) = apply("spread_threads", &kernel(k), &gpu(&[]));
        assert_eq!(log.applied, ["loop i", "loop i1"]);
        let want = r#"tile kernel k(src: ptr f32, dst: ptr f32):
  local x: f32[8, 100] shared
  for t in 0..256: free thread
    for e in 0..4: free
      mine: i1 = test e*256 + t < 800
      if mine:
        v: f32 = load src[bx*800 + e*256 + t]
        x[(e*256 + t)//100, (e*256 + t)%100] = v
  for t_1 in 0..8: free thread
    local s: f32
    s = 0.0
    for j1 in 0..100: reduce combine add(s) from -0.0
      w: f32 = x[t_1, j1]
      a: f32 = s
      b: f32 = a + w
      s = b
    c: f32 = s
    store dst[bx*8 + t_1] = c
"#;
        assert_eq!(text(&out), want);
        let (out, _) = apply("spread_threads", &kernel(k), &gpu(&["threads=32"]));
        assert!(text(&out).contains("for e in 0..7: free\n      mine"), "{}", text(&out));
    }

    #[test]
    fn what_is_done_once_is_passed_on() {
        let k = r#"loop kernel k(c: ptr i32, n: i32):
  loop:
    old: i32 = atomic add c[0], 1 relaxed
    more: i1 = old < n
    if more:
      store c[1] = old
    else:
      break
"#;
        let (out, _) = apply("spread_threads", &kernel(k), &gpu(&[]));
        let want = r#"tile kernel k(c: ptr i32, n: i32):
  loop:
    local once: i32[1] shared
    for t in 0..1: free thread
      old: i32 = atomic add c[0], 1 relaxed
      once[0] = old
    old_1: i32 = once[0]
    more: i1 = old_1 < n
    if more:
      for t_1 in 0..1: free thread
        store c[1] = old_1
    else:
      break
"#;
        assert_eq!(text(&out), want);
    }
}
