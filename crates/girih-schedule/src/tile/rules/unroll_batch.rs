//! `unroll_batch`

use std::collections::BTreeSet;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::primitives::{Script, Step};

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

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if p.open {
        return None;
    }
    let mut script = Script::new(p, ctx, log);
    let mut refused = BTreeSet::new();
    // An accumulator with several batches loses one at a time.
    while let Some(buf) = batched(&script.kernel, &refused) {
        let Buf { name, shape, .. } = script.kernel.bufs[buf].clone();
        match script.try_step(Step::Unbatch { buf }) {
            Ok(_) => script.log.applied(format!("contraction into {name}: {} products", shape[0])),
            Err(why) => {
                script.log.skipped(format!("contraction into {name}"), why);
                refused.insert(buf);
            }
        }
    }
    script.done()
}

/// An accumulator that is more than a matrix.
fn batched(p: &Kernel, refused: &BTreeSet<BufId>) -> Option<BufId> {
    let mut accs = walk::contractions(&p.body).map(|(_, c)| c.acc);
    accs.find(|acc| p.bufs[*acc].shape.len() > 2 && !refused.contains(acc))
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
