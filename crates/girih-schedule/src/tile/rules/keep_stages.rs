//! `keep_stages`

use std::collections::BTreeMap;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::{self, Part};
use crate::num::ScalarOp;
use crate::tile::Context;
use crate::tile::edit::const_trip;
use crate::tile::heuristics::keep_stages::{LEAST, PART};
use crate::tile::primitives::keep::Kept;
use crate::tile::primitives::{self, Step};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "keep_stages",
    doc: "\
Keeps the copies of an operand that a block made for the blocks after it that read the same.

Blocks of a product that follow each other often share a panel of an operand: with the block's number b, the columns are b//8. A worker
then copies the panel once, and reads its own copies, which lie side by side, for the other blocks. Rows of an array that are a power of
two apart fall into the same few places of a cache, so that the array itself would come from farther away each time.

```text
for step in 0..32: serial                        for step in 0..32: serial
  stage b_pack: f32[2, 32, 32]             -->     if step >= b_seen[0]:
    b_pack[jp, k, j] = load b[.. + bx//8*64]         b_kept[min(step, 63), jp, k, j] = load b[.. + bx//8*64]
```

`keep` (see docs/schedule.md) says what has to be equal for that. As many iterations keep their copies as half of the second cache holds.

Refuses stages that depend on the block's number in another way than by a division (each block then reads another panel), loops with too
few copies to keep, and what the primitive refuses.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let mut stages = vec![];
    for s in &p.body {
        if let Stmt::For(f) = s {
            stages
                .extend(f.body.iter().filter_map(|s| if let Stmt::Stage { buf, .. } = s { Some(*buf) } else { None }));
        }
    }
    if stages.is_empty() {
        return vec![];
    }
    let pace = Paces::of(p);
    let kept: u64 = p.bufs.values().filter(|b| matches!(b.space, Space::Kept { .. })).map(Buf::bytes).sum();
    let mut room = (ctx.target.cache(2) / PART).saturating_sub(kept);
    let mut steps = vec![];
    for buf in stages {
        let (site, bytes) = (p.bufs[buf].name.clone(), p.bufs[buf].bytes().max(1));
        let chosen = Kept::of(p, buf).and_then(|kept| {
            if kept
                .values
                .iter()
                .map(|ix| pace.ix(ix))
                .chain(kept.tables.iter().map(|b| pace.buf(*b)))
                .any(|p| p == Pace::Block)
            {
                return Err("each block reads another".into());
            }
            let slots = (room / bytes).min(const_trip(kept.looped).unwrap_or(u64::MAX));
            if slots < LEAST {
                return Err(format!("{slots} of its copies, of {bytes} bytes each, would stay; {LEAST} are worth it"));
            }
            Ok(slots.min(u64::from(u32::MAX)))
        });
        match chosen {
            Ok(slots) => {
                room -= slots * bytes;
                log.applied(format!("{site}, {slots} copies"));
                steps.push(Step::Keep { buf, slots: slots as u32 });
            }
            Err(why) => log.skipped(site, why),
        }
    }
    steps
}

/// How often a value changes from block to block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
enum Pace {
    #[default]
    Never,
    /// It depends on a quotient of the block's number.
    Seldom,
    Block,
}

/// The paces of a kernel's values and buffers.
#[derive(Default)]
struct Paces {
    vals: BTreeMap<ValId, Pace>,
    bufs: BTreeMap<BufId, Pace>,
}

impl Paces {
    fn of(p: &Kernel) -> Paces {
        let mut paces = Paces::default();
        paces.list(&p.body, Pace::Never);
        paces
    }

    fn ix(&self, ix: &Ix) -> Pace {
        match ix {
            Ix::Const(_) | Ix::Axis(_) | Ix::Grid(_) | Ix::Thread => Pace::Never,
            Ix::Block(0) => Pace::Block,
            // Blocks are numbered along x first.
            Ix::Block(_) => Pace::Seldom,
            Ix::Val { val, .. } => self.val(*val),
            Ix::FloorDiv(a, b) => quotient(self.ix(a), self.ix(b), b.is_const(1)),
            Ix::Add(a, b) | Ix::Sub(a, b) | Ix::Mul(a, b) | Ix::Mod(a, b) | Ix::Min(a, b) | Ix::Max(a, b) => {
                self.ix(a).max(self.ix(b))
            }
        }
    }

    fn val(&self, v: ValId) -> Pace {
        self.vals.get(&v).copied().unwrap_or_default()
    }

    fn buf(&self, b: BufId) -> Pace {
        self.bufs.get(&b).copied().unwrap_or_default()
    }

    fn opnd(&self, x: &Opnd) -> Pace {
        if let Opnd::Val(v) = x { self.val(*v) } else { Pace::Never }
    }

    /// The pace of all that a statement mentions.
    fn mentioned(&self, s: &Stmt) -> Pace {
        let mut pace = Pace::Never;
        walk::parts(s, &mut |part| {
            pace = pace.max(match part {
                Part::UseVal(v) => self.val(*v),
                Part::Opnd(x) => self.opnd(x),
                Part::Ix(ix) => self.ix(ix),
                Part::ReadBuf(b) => self.buf(*b),
                _ => Pace::Never,
            });
        });
        pace
    }

    fn list(&mut self, body: &[Stmt], around: Pace) {
        for s in body {
            let pace = match s {
                Stmt::Let { op: ScalarOp::DivI { .. }, args, .. } => match &args[..] {
                    [a, b] => quotient(self.opnd(a), self.opnd(b), false),
                    _ => Pace::Block,
                },
                _ => self.mentioned(s),
            };
            if let Some(v) = walk::def(s) {
                self.vals.insert(v, pace);
            }
            if let Stmt::Write { buf, .. } = s {
                let had = self.buf(*buf);
                self.bufs.insert(*buf, had.max(pace).max(around));
            }
            for inner in walk::bodies(s) {
                self.list(inner, around.max(pace));
            }
        }
    }
}

fn quotient(of: Pace, by: Pace, by_one: bool) -> Pace {
    if by_one || by == Pace::Block { of.max(by) } else { of.min(Pace::Seldom).max(by) }
}
