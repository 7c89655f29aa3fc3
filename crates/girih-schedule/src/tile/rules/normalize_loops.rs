//! `normalize_loops`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::primitives::{self, Step, normalize};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "normalize_loops",
    doc: "\
Lets the loops around products count from 0 in steps of 1, as pipelines and copies of boxes do. Programs often count elements:
`for k in range(0, K, BLOCK_K)`.

```text
for s in 0..n step 64: serial                    for s in 0..(n + 63)//64: serial
  b_s[j, k] = load K[(s + j)*64 + k]     -->       b_s[j, k] = load K[(s*64 + j)*64 + k]
```

Refuses loops whose step is not a constant, and bounds of 64 bits that only the launch knows.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, _: &Context, log: &mut Log) -> Vec<Step> {
    let mut loops = vec![];
    primitives::look(p, &mut |at, f| {
        let product = walk::loops(&f.body).any(|l| l.contraction.is_some());
        if !product || f.kind != LoopKind::Serial || f.counts_from_zero() {
            return true;
        }
        if log.outcome(axis_site(p, f.axis), normalize::legal(p, f)).is_some() {
            loops.push(at);
        }
        true
    });
    if loops.is_empty() { vec![] } else { vec![Step::Normalize { loops }] }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const SUM: &str = r#"loop kernel k(A: ptr f16, B: ptr f16, C: ptr f32, n: i32, m: i64):
  local acc: f32[16, 8]
  for s in 0..n step 64: serial
    for i in 0..16: free
      for j in 0..8: free
        for k in 0..64: reduce contraction m=i n=j k=k a=a b=b acc=acc
          a: f16 = load A[i*64 + s + k] where s + k < n else 0.0
          b: f16 = load B[(s + k)*8 + j] where s + k < n else 0.0
          c: f32 = acc[i, j]
          a1: f32 = f32(a)
          b1: f32 = f32(b)
          d: f32 = fma(a1, b1, c)
          acc[i, j] = d
  x: f32 = acc[0, 0]
  store C[0] = x
"#;

    #[test]
    fn loops_count_from_nothing_in_steps_of_one() {
        let (out, log) = apply("normalize_loops", &kernel(SUM), &gpu(&[]));
        assert_eq!(log.applied, ["loop s"]);
        let made = text(&out);
        for part in ["for s in 0..(n + 63)//64: serial", "load A[i*64 + s*64 + k] where s*64 + k < n"] {
            assert!(made.contains(part), "{part} is not in\n{made}");
        }
        let later = text(&apply("normalize_loops", &kernel(&SUM.replace("0..n step", "5..n step")), &gpu(&[])).0);
        assert!(later.contains("for s in 0..(n + 58)//64: serial") && later.contains("s*64 + k + 5"), "{later}");
        // A loop in another one, which a block takes in turn.
        let inner = SUM.lines().map(|l| {
            if l.starts_with("  for s") || l.starts_with("    ") { format!("  {l}\n") } else { format!("{l}\n") }
        });
        let nested: String = inner.collect();
        let nested = nested.replace("    for s in 0..n", "  for u in 3..n step 2: serial\n    for s in u..n");
        let (out, log) = apply("normalize_loops", &kernel(&nested), &gpu(&[]));
        assert_eq!(log.applied, ["loop u", "loop s"]);
        let made = text(&out);
        assert!(made.contains("for u in 0..(n//2 - 1): serial"), "{made}");
        assert!(made.contains("for s in 0..(n - u*2 + 60)//64: serial"), "{made}");
        // No product, nothing to do.
        let plain = SUM.replace(" contraction m=i n=j k=k a=a b=b acc=acc", "");
        assert_eq!(text(&apply("normalize_loops", &kernel(&plain), &gpu(&[])).0), text(&kernel(&plain)));
    }

    #[test]
    fn other_steps_and_bounds_are_refused() {
        for (from, to, why) in [
            ("0..n step 64", "0..n step n", "its step is not a constant above 0"),
            ("0..n step 64", "0..m step 64", "its bounds have 64 bits"),
        ] {
            let other = SUM.replace(from, to);
            assert_eq!(refusals("normalize_loops", &other, &gpu(&[])), [format!("loop s: {why}")]);
        }
    }
}
