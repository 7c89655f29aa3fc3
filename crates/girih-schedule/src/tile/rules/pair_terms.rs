//! `pair_terms`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::primitives::pair::{self, Asked, Pairs, Words};
use crate::tile::primitives::{self, LoopRef, Step, names_of};
use crate::tile::rules::{axis_site, site_of};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "pair_terms",
    doc: "\
Takes the terms of a sum of products two at a time, where the processor has an instruction that adds two products of bf16, or
of integers of 8 or 16 bits, to each lane of a vector; four of unsigned by signed bytes. Two or four neighbouring elements of an
operand become one word of 32 bits.

```text
for k in 0..1024: reduce contraction               for k2 in 0..512: reduce contraction
  x: bf16 = load A[i*1024 + k]                       x = word(load A[i*1024 + k2*2], load A[i*1024 + k2*2 + 1])
  y: bf16 = load B[k*768 + j]                -->     y = word(load B[k2*1536 + j], load B[k2*1536 + 768 + j])
  acc <- fma(f32(x), f32(y), acc)                    acc <- dot2(x, y, acc)
```

If the memory of an operand runs along the sum, a word is one load. Words are packed like elements (`stage_inputs`); the words of
weights are packed once, when the model is loaded (`pack_weights`).

A model's sum of single products, as of one row by a matrix, is paired if the words of both operands are single loads (weights of bytes
are turned so when the model is loaded, where it can be into panels, in which words of up to 64 sums lie side by side):

```text
for k in 0..1024: reduce combine add(s)            for k2 in 0..512: reduce combine add(s)
  v = f32(load x[k]) * f32(load w[j*1024 + k])       v = dot2(load x_pairs[k2], load w_pairs[j*512 + k2], 0)
  s <- v + s                                 -->     s <- v + s
```

Knob: `pairs` (0 turns the rule off).

A sum over several axes, as of a convolution, is paired along one of them: an axis along which a word is one load, or else the
outermost axis that has an even number of terms. Where no axis has, or only the launch knows, zeros fill the last word:

```text
for k in 0..n: reduce contraction          -->     for k2 in 0..(n + 1)//2: reduce contraction
  x: bf16 = load A[i*n + k]                          x = word(load A[i*n + k2*2], load A[i*n + k2*2 + 1] where k2*2 + 1 < n else 0)
```

Refuses floats of tile programs, whose sums keep their order; sums whose number of terms is not known to be even if their operands
are more than loads (bytes are taken by two where four do not divide it); operands of other types; products of few rows, whose words
would have too few uses; and bf16 on Intel processors without a matrix unit, which multiply f32 faster.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let loops = chosen(p, ctx, log, &|_| false);
    if loops.is_empty() { vec![] } else { vec![Step::Pair { loops }] }
}

/// The kernel with its terms paired where that can be; of right operands that are weights the words are made beforehand.
pub fn paired(p: &Kernel, ctx: &Context, log: &mut Log, is_weight: &dyn Fn(&Mem) -> bool) -> Option<Kernel> {
    let loops = chosen(p, ctx, log, is_weight);
    let mut kernel = (!loops.is_empty()).then(|| p.clone())?;
    match pair::apply(&mut kernel, ctx, &loops, is_weight) {
        Ok(()) => Some(kernel),
        Err(why) => {
            log.skipped("a step", why);
            None
        }
    }
}

/// The loops along which terms are worth pairing.
fn chosen(p: &Kernel, ctx: &Context, log: &mut Log, is_weight: &dyn Fn(&Mem) -> bool) -> Vec<LoopRef> {
    let mut loops: Vec<&For> = vec![];
    for s in &p.body {
        let mut found = vec![];
        pair::sums_of(s, &mut vec![], &mut found);
        if found.is_empty() {
            // The products of a person's program are rounded as it says.
            let folds = if p.open && ctx.knobs.pairs { pair::folds_of(s) } else { vec![] };
            for f in folds {
                if pair::fold(&mut p.clone(), ctx, f, &mut Words::default()).is_some() {
                    log.applied(axis_site(p, f.axis));
                    loops.push(f);
                }
            }
            continue;
        }
        let site = site_of(p, s);
        let ready = found.iter().map(|(f, rows)| Pairs::of(p, ctx, f, &Asked::Rule { rows: *rows }, is_weight));
        // The sums of a nest run side by side, so all are paired or none.
        let ready = log.outcome(site, ready.collect::<Result<Vec<_>, _>>());
        loops.extend(ready.iter().flatten().map(|pairs| pairs.over));
    }
    names_of(p, &loops)
}

#[cfg(test)]
mod tests {
    use crate::tile::Context;
    use crate::tile::target::MatrixUnit;
    use crate::tile::tests::{BF16_PRODUCT, apply, context, kernel, refusals, text, with_knobs};

    fn pairs(knobs: &[&str]) -> Context {
        let mut ctx = with_knobs(knobs);
        ctx.target.matrix_units = vec![MatrixUnit::FloatPairs];
        ctx
    }

    #[test]
    fn two_terms_are_one_operation() {
        let (out, log) = apply("pair_terms", &kernel(BF16_PRODUCT), &pairs(&[]));
        assert_eq!(log.applied, ["contraction into acc"]);
        let want = r#"      for k2 in 0..512: reduce contraction m=i n=j k=k2 a=a b=b_7 acc=acc
        a: i32 = load A_pairs[i*512 + k2]
        b: bf16 = load B[k2*1536 + j]
        b_1: i16 = bitcast.i16(b)
        b_2: i32 = ext.u.i32(b_1)
        b_3: bf16 = load B[(k2*2 + 1)*768 + j]
        b_4: i16 = bitcast.i16(b_3)
        b_5: i32 = ext.u.i32(b_4)
        b_6: i32 = b_5 << 16
        b_7: i32 = b_2 | b_6
        c: f32 = acc
        d: f32 = dot2(a, b_7, c)
        acc = d
"#;
        let made = text(&out);
        let lines: String = made.lines().skip(6).take(13).map(|l| format!("{l}\n")).collect();
        assert_eq!(lines, want, "{made}");
    }

    #[test]
    fn bytes_of_one_row_are_multiplied_by_fours() {
        let row = |terms: i64, x: &str| {
            format!(
                "loop kernel k(X: ptr i8, W: ptr i8, Y: ptr i32) open:
  for j in 0..64: free
    local s: i32
    s = 0
    for k in 0..{terms}: reduce combine add(s) from 0
      x: i8 = load X[k]
      a: i32 = {x}(x)
      w: i8 = load W[j*{terms} + k]
      b: i32 = ext.i32(w)
      p: i32 = a * b
      t: i32 = s
      v: i32 = p + t
      s = v
    y: i32 = s
    store Y[j] = y
"
            )
        };
        let mut ctx = context();
        ctx.target.matrix_units = vec![MatrixUnit::IntegerPairs, MatrixUnit::ByteQuads];
        let (out, log) = apply("pair_terms", &kernel(&row(256, "ext.u.i32")), &ctx);
        assert_eq!(log.applied, ["loop k"]);
        let want = "    for k2 in 0..64: reduce combine add(s) from 0
      x: i32 = load X_pairs[k2]
      w: i32 = load W_pairs[j*64 + k2]
      t: i32 = s
      v: i32 = dot4(x, w, t)
      s = v
";
        assert!(text(&out).contains(want), "{}", text(&out));
        // Bytes of one sign, and sums that four do not divide, stay.
        for (terms, x) in [(256, "ext.i32"), (254, "ext.u.i32")] {
            assert!(refusals("pair_terms", &row(terms, x), &ctx).is_empty());
        }
        ctx.target.matrix_units.pop();
        assert!(refusals("pair_terms", &row(256, "ext.u.i32"), &ctx).is_empty());
    }

    #[test]
    fn a_sum_over_several_axes_is_paired_along_one() {
        let windows = "loop kernel k(A: ptr bf16, X: ptr bf16, C: ptr f32) open:
  for i in 0..64: free
    for j in 0..50: free
      local acc: f32
      acc = 0.0
      for c in 0..16: reduce
        for r in 0..3: reduce contraction m=i n=j k=(c, r) a=a b=b acc=acc
          a: bf16 = load A[i*48 + c*3 + r]
          b: bf16 = load X[c*52 + j + r] where j + r < 51 else 0.0
          x: f32 = f32(a)
          y: f32 = f32(b)
          s: f32 = acc
          d: f32 = fma(x, y, s)
          acc = d
      t: f32 = acc
      store C[i*50 + j] = t
";
        let (out, log) = apply("pair_terms", &kernel(windows), &pairs(&[]));
        assert_eq!(log.applied, ["contraction into acc"]);
        let made = text(&out);
        for line in [
            "for c2 in 0..8: reduce\n",
            "for r in 0..3: reduce contraction m=i n=j k=(c2, r)",
            "load A[i*48 + c2*6 + r]",
            "load A[i*48 + (c2*2 + 1)*3 + r]",
            "load X[c2*104 + j + r] where j + r < 51 else 0.0",
        ] {
            assert!(made.contains(line), "{line}: {made}");
        }
        // No axis has an even number of terms: the longest is.
        let (out, _) = apply("pair_terms", &kernel(&windows.replace("0..16", "0..15")), &pairs(&[]));
        let made = text(&out);
        for line in [
            "for c2 in 0..8: reduce\n",
            "load A[i*48 + (c2*2 + 1)*3 + r] where c2*2 + 1 < 15 else 0",
            "load X[(c2*2 + 1)*52 + j + r] where j + r < 51 and c2*2 + 1 < 15 else 0.0",
        ] {
            assert!(made.contains(line), "{line}: {made}");
        }
    }

    #[test]
    fn zeros_fill_the_last_word() {
        for (terms, words) in [("1023", "0..512"), ("n", "0..(n + 1)//2"), ("n*3", "0..(n*3 + 1)//2")] {
            let product =
                BF16_PRODUCT.replace("0..1024", &format!("0..{terms}")).replace("C: ptr f32", "C: ptr f32, n: i64");
            let (out, log) = apply("pair_terms", &kernel(&product), &pairs(&[]));
            assert_eq!(log.applied, ["contraction into acc"], "{terms}");
            let made = text(&out);
            for line in [
                format!("for k2 in {words}: reduce"),
                "bf16 = load A[i*1024 + k2*2]\n".to_string(),
                format!("bf16 = load A[i*1024 + (k2*2 + 1)] where k2*2 + 1 < {terms} else 0.0"),
                format!("bf16 = load B[(k2*2 + 1)*768 + j] where k2*2 + 1 < {terms} else 0.0"),
            ] {
                assert!(made.contains(&line), "{line}: {made}");
            }
        }
        // An even number needs none.
        let product = BF16_PRODUCT.replace("0..1024", "0..n*2").replace("C: ptr f32", "C: ptr f32, n: i64");
        let (out, _) = apply("pair_terms", &kernel(&product), &pairs(&[]));
        assert!(!text(&out).contains("where"), "{}", text(&out));
        // 0 times NaN is NaN.
        let computed = BF16_PRODUCT
            .replace("0..1024", "0..1023")
            .replace("a: bf16 = load A[i*1024 + k]", "a_0: bf16 = load A[i*1024 + k]\n        a: bf16 = div(1.0, a_0)");
        let why = refusals("pair_terms", &computed, &pairs(&[]));
        assert_eq!(why, ["contraction into acc: the number of its terms is not known to be even"]);
    }

    #[test]
    fn what_cannot_be_paired_is_refused() {
        let few = BF16_PRODUCT.replace("0..512", "0..4");
        let wide = BF16_PRODUCT
            .replace("ptr bf16", "ptr f32")
            .replace(": bf16", ": f32")
            .replace("f32(a)", "a * 1.0")
            .replace("f32(b)", "b * 1.0");
        let closed = BF16_PRODUCT.replace(") open:", "):");
        let mut slow = pairs(&[]);
        slow.target.vector.slow_pairs = true;
        let more = BF16_PRODUCT.replace("        c: f32", "        store C[k] = x\n        c: f32");
        for (text, ctx, why) in [
            (BF16_PRODUCT, context(), "cpu has no products of pairs of its type"),
            (BF16_PRODUCT, pairs(&["pairs=0"]), "knob off"),
            (&few, pairs(&[]), "there are less than 8 (ENOUGH_ROWS) rows for a word"),
            (&closed, pairs(&[]), "the order of its terms is the program's"),
            (&wide, pairs(&[]), "its operands are f32"),
            (&more, pairs(&[]), "it does more for each term than multiply and add"),
            (BF16_PRODUCT, slow, "cpu multiplies f32 faster than pairs of bf16"),
        ] {
            assert_eq!(refusals("pair_terms", text, &ctx), [format!("contraction into acc: {why}")]);
        }
    }
}
