//! 002_cache_blocks

use std::collections::BTreeMap;

use crate::base::rule::{Context, Log, Rule};
use crate::loops::ir::*;
use crate::tile::contraction::{Nest, nest_at, num_type};
use crate::tile::edit::{self, Visit, free_loop, new_axis};
use crate::tile::rules::site_of;

pub const RULE: Rule<Kernel> = Rule {
    name: "002_cache_blocks",
    doc: "\
Cuts a contraction whose operands do not fit the caches into blocks that do. The reduction is cut into stretches of
`kc` that run one after another, in ascending order, so each sum keeps its order; then `nc` columns and `mc` rows.

```text
for i in 0..1024: free                           for ko in 0..16: serial
  for j in 0..1024: free                           for jo in 0..4: free
    for kk in 0..4096: reduce contraction   -->      for i in 0..1024: free
      acc[i, j] <- a[i, kk] * b[kk, j]                 for j in 0..256: free
                                                         for kk in 0..256: reduce contraction
                                                           acc[i, jo*256 + j] <- a[i, ko*256 + kk] * b[...]
```

Knobs: `kc` (256), `nc`, `mc` (chosen so that the packed operands take half of L2 each at most).

Refuses when everything fits, and when an extent has no divisor to cut by.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    edit::rewrite(p, &mut |kernel, s| match nest_at(s) {
        None => Visit::Into,
        Some(Err(why)) => {
            log.skipped(site_of(kernel, s), why);
            Visit::Leave
        }
        Some(Ok(nest)) => match cut(kernel, ctx, &nest) {
            Ok(new) => {
                log.applied(site_of(kernel, s));
                Visit::Replace(vec![new])
            }
            Err(why) => {
                log.skipped(site_of(kernel, s), why);
                Visit::Leave
            }
        },
    })
}

fn cut(kernel: &mut Kernel, ctx: &Context, nest: &Nest) -> Result<Stmt, String> {
    let bytes = num_type(kernel, nest.roles.acc).map_or(8, |d| d.bytes());
    let knob = |name: &str, auto: u64| ctx.knobs.get(name).map_or(auto, |v| v as u64);
    let kc = divisor(nest.k, knob("kc", 256));
    let room = ctx.target.l2_bytes / 2 / (kc * bytes).max(1);
    let nc = divisor(nest.n, knob("nc", room.max(64)));
    let mc = divisor(nest.m, knob("mc", room.max(64)));
    if (kc, nc, mc) == (nest.k, nest.n, nest.m) {
        return Err("its operands fit the caches".to_string());
    }
    if kc.min(nc).min(mc) < 8 {
        return Err(format!("{}x{}x{} has no divisors to cut by", nest.m, nest.n, nest.k));
    }

    let mut by = BTreeMap::new();
    let mut around = Vec::new();
    for (axis, extent, block, kind) in [
        (nest.roles.k, nest.k, kc, LoopKind::Serial),
        (nest.roles.n, nest.n, nc, LoopKind::Free),
        (nest.roles.m, nest.m, mc, LoopKind::Free),
    ] {
        if block == extent {
            continue;
        }
        let name = format!("{}o", kernel.axes[axis].name);
        let outer = new_axis(kernel, &name);
        by.insert(axis, Ix::Axis(outer) * Ix::Const(block as i64) + Ix::Axis(axis));
        around.push((outer, (extent / block) as i64, kind));
    }

    let mut reduce = nest.reduce.clone();
    reduce.hi = Ix::Const(kc as i64);
    reduce.body = edit::place_axes(&nest.reduce.body, &by, &BTreeMap::new());
    let mut out = Stmt::For(Box::new(reduce));
    for f in nest.free.iter().rev().take(2) {
        let block = if f.axis == nest.roles.m { mc } else { nc };
        out = Stmt::For(Box::new(For { hi: Ix::Const(block as i64), body: vec![out], ..(*f).clone() }));
    }
    for (axis, count, kind) in around.into_iter().rev() {
        out = free_loop(axis, Ix::Const(count), vec![out]);
        if let Stmt::For(f) = &mut out {
            f.kind = kind;
        }
    }
    for f in nest.free.iter().rev().skip(2) {
        out = Stmt::For(Box::new(For { body: vec![out], ..(*f).clone() }));
    }
    Ok(out)
}

/// The greatest divisor of `n` up to `most` that is `n` itself or a power of two times its odd part's divisor.
fn divisor(n: u64, most: u64) -> u64 {
    let mut d = n;
    while d > most && d.is_multiple_of(2) {
        d /= 2;
    }
    d
}
