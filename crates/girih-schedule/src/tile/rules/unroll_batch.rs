//! `unroll_batch`

use std::collections::BTreeSet;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::named;
use crate::tile::heuristics::unroll_batch::MOST;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "unroll_batch",
    doc: "\
Splits a batched product of tiles into several products of matrices, each with an accumulator of its own.

```text
local acc: f32[2, 32, 32]                        local acc_0: f32[32, 32]
for h in 0..2: for i: for j:                     local acc_1: f32[32, 32]
  acc[h, i, j] = 0                               for i: for j: acc_0[i, j] = 0
for k in 0..n: serial                     -->    for i: for j: acc_1[i, j] = 0
  for h in 0..2: for i: for j: for l:            for k in 0..n: serial
    acc[h, i, j] <- a[..] * b[..]                  for i: for j: for l: acc_0[i, j] <- a[..] * b[..]
                                                   for i: for j: for l: acc_1[i, j] <- a[..] * b[..]
```

Refuses batches of more than eight, and accumulators that something touches otherwise than batch by batch.
",
    run,
};

fn run(p: &Kernel, _: &Context, log: &mut Log) -> Option<Kernel> {
    if p.open {
        return None;
    }
    let mut kernel = p.clone();
    let mut changed = false;
    let mut refused = BTreeSet::new();
    // An accumulator with several batches loses one at a time.
    while let Some(acc) = batched(&kernel, &refused) {
        let Buf { name, shape, .. } = kernel.bufs[acc].clone();
        match split(&kernel, acc) {
            Ok(new) => {
                log.applied(format!("contraction into {name}: {} products", shape[0]));
                (kernel, changed) = (new, true);
            }
            Err(why) => {
                log.skipped(format!("contraction into {name}"), why);
                refused.insert(acc);
            }
        }
    }
    changed.then_some(kernel)
}

/// An accumulator that is more than a matrix.
fn batched(p: &Kernel, refused: &BTreeSet<BufId>) -> Option<BufId> {
    let mut found = None;
    walk::visit(&p.body, &mut |s| {
        if let Stmt::For(f) = s
            && let Some(c) = &f.contraction
            && p.bufs[c.acc].shape.len() > 2
            && !refused.contains(&c.acc)
        {
            found.get_or_insert(c.acc);
        }
    });
    found
}

fn split(p: &Kernel, acc: BufId) -> Result<Kernel, String> {
    let old = p.bufs[acc].clone();
    let (count, shape) = (old.shape[0], old.shape[1..].to_vec());
    if count > MOST {
        return Err(format!("a batch of {count} is more than {}", named!(MOST)));
    }
    let mut kernel = Kernel { body: vec![], ..p.clone() };
    let parts: Vec<BufId> = (0..count)
        .map(|n| kernel.bufs.push(Buf { name: format!("{}_{n}", old.name), shape: shape.clone(), ..old.clone() }))
        .collect();
    kernel.body = body(&mut kernel, &p.body, acc, &parts)?;
    Ok(kernel)
}

/// Statements with a buffer in parts by its first subscript.
fn body(kernel: &mut Kernel, stmts: &[Stmt], acc: BufId, parts: &[BufId]) -> Result<Vec<Stmt>, String> {
    let mut out = vec![];
    for s in stmts {
        if !walk::buffer_uses(std::slice::from_ref(s)).contains_key(&acc) {
            out.push(s.clone());
            continue;
        }
        match s {
            Stmt::Local { .. } => out.extend(parts.iter().map(|buf| Stmt::Local { buf: *buf })),
            Stmt::For(f) if is_batch(f, acc, parts.len() as u64) => {
                for (n, part) in parts.iter().enumerate() {
                    let by = [(f.axis, Ix::Const(n as i64))].into();
                    let mut copy = edit::place_axes(&walk::clone_fresh(kernel, &f.body), &by, &Default::default());
                    walk::visit_mut(&mut copy, &mut |s| match s {
                        Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } if *buf == acc => {
                            *buf = *part;
                            idx.remove(0);
                        }
                        Stmt::For(f) => {
                            if let Some(c) = f.contraction.as_mut().filter(|c| c.acc == acc) {
                                c.acc = *part;
                            }
                        }
                        _ => {}
                    });
                    out.extend(copy);
                }
            }
            Stmt::For(f) if f.kind == LoopKind::Serial => {
                let inner = body(kernel, &f.body, acc, parts)?;
                out.push(Stmt::For(Box::new(For { body: inner, ..(**f).clone() })));
            }
            Stmt::Loop { body: inner } => out.push(Stmt::Loop { body: body(kernel, inner, acc, parts)? }),
            Stmt::If { cond, then, els } => {
                let (then, els) = (body(kernel, then, acc, parts)?, body(kernel, els, acc, parts)?);
                out.push(Stmt::If { cond: *cond, then, els });
            }
            _ => return Err("something touches its accumulator otherwise than batch by batch".to_string()),
        }
    }
    Ok(out)
}

/// True if a loop goes through the batch: every access of the accumulator is at its axis.
fn is_batch(f: &For, acc: BufId, count: u64) -> bool {
    let mut own = f.kind == LoopKind::Free && f.place == Place::None && const_trip(f) == Some(count);
    walk::visit(&f.body, &mut |s| match s {
        Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } if *buf == acc => {
            own &= idx.first() == Some(&Ix::Axis(f.axis)) && !idx[1..].iter().any(|ix| ix.has_axis(f.axis));
        }
        Stmt::Print { .. } | Stmt::Stage { .. } => own = false,
        Stmt::For(inner) => {
            if let Some(c) = &inner.contraction {
                own &= ![&c.m, &c.n, &c.k].into_iter().any(|axes| axes.contains(&f.axis));
            }
        }
        _ => {}
    });
    own
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, schedule, text};

    const PRODUCT: &str = r#"loop kernel k(A: ptr f16, B: ptr f16, C: ptr f32):
  local acc: f32[2, 32, 32]
  for h in 0..2: free
    for i in 0..32: free
      for j in 0..32: free
        acc[h, i, j] = 0.0
  for k in 0..4: serial
    for h1 in 0..2: free
      for i1 in 0..32: free
        for j1 in 0..32: free
          for l in 0..32: reduce contraction m=i1 n=j1 k=l a=a b=b acc=acc
            a: f16 = load A[h1*4096 + i1*128 + (k*32 + l)]
            b: f16 = load B[h1*4096 + (k*32 + l)*32 + j1]
            x: f32 = f32(a)
            y: f32 = f32(b)
            c: f32 = acc[h1, i1, j1]
            d: f32 = fma(x, y, c)
            acc[h1, i1, j1] = d
  for h2 in 0..2: free
    for i2 in 0..32: free
      for j2 in 0..32: free
        s: f32 = acc[h2, i2, j2]
        store C[h2*1024 + i2*32 + j2] = s
"#;

    #[test]
    fn each_of_a_batch_is_a_product_of_matrices() {
        let (out, log) = apply("unroll_batch", &kernel(PRODUCT), &gpu(&[]));
        assert_eq!(log.applied, ["contraction into acc: 2 products"]);
        let made = text(&out);
        for line in [
            "  local acc_0: f32[32, 32]\n",
            "  local acc_1: f32[32, 32]\n",
            "load A[i1_1*128 + 4096 + ",
            "store C[i2_1*32 + 1024 + ",
        ] {
            assert!(made.contains(line), "{line}{made}");
        }
        let made = text(&schedule(&kernel(PRODUCT), &gpu(&[])));
        assert_eq!(made.matches("reduce matrix").count(), 2, "{made}");
    }

    #[test]
    fn what_is_no_batch_says_why() {
        let why = |from: &str, to: &str| refusals("unroll_batch", &PRODUCT.replace(from, to), &gpu(&[]));
        assert_eq!(
            why("s: f32 = acc[h2, i2, j2]", "s: f32 = acc[1 - h2, i2, j2]"),
            ["contraction into acc: something touches its accumulator otherwise than batch by batch"]
        );
        let many = PRODUCT.replace("0..2", "0..16").replace("f32[2,", "f32[16,");
        assert_eq!(
            refusals("unroll_batch", &many, &gpu(&[])),
            ["contraction into acc: a batch of 16 is more than 8 (MOST)"]
        );
    }
}
