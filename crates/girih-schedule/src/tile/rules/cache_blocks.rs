//! `cache_blocks`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::contraction::{Found, Nest, nest_over, nests, num_type};
use crate::tile::primitives::{Script, Step};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "cache_blocks",
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

Knobs: `kc` (256), `nc`, `mc` (chosen so that packed operands take at most half of L2 each; a left operand that is read in place
takes at most a sixteenth, since its rows are far apart and meet in few sets of the cache).

Refuses when everything fits, and when an extent has no divisor to cut by.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let mut script = Script::new(p, ctx, log);
    for Found { over, site, .. } in nests(p) {
        let step = nest_over(&script.kernel, over).map_err(String::from).and_then(|(at, nest)| {
            let [m, n, k] = blocks(&script.kernel, ctx, &nest)?;
            Ok(Step::Tile { at, m, n, k })
        });
        let made = step.and_then(|step| script.try_step(step));
        script.log.outcome(site, made);
    }
    script.done()
}

/// The rows, columns and terms of a block.
fn blocks(kernel: &Kernel, ctx: &Context, nest: &Nest) -> Result<[u32; 3], String> {
    let bytes = num_type(kernel, nest.roles.acc).map_or(8, |d| d.bytes());
    let kc = divisor(nest.k, ctx.knobs.kc.into());
    let room = ctx.target.cache(2) / 2 / (kc * bytes).max(1);
    let nc = divisor(nest.n, ctx.knobs.nc.map_or(room.max(64), u64::from));
    let rows = if in_place(nest) { room / 8 } else { room };
    let mc = divisor(nest.m, ctx.knobs.mc.map_or(rows.max(64), u64::from));
    if (kc, nc, mc) == (nest.k, nest.n, nest.m) {
        return Err("its operands fit the caches".to_string());
    }
    if kc.min(nc).min(mc) < 8 {
        return Err(format!("{}x{}x{} has no divisors to cut by", nest.m, nest.n, nest.k));
    }
    let number = |n: u64| u32::try_from(n).map_err(|_| "a block of it is too long".to_string());
    Ok([number(mc)?, number(nc)?, number(kc)?])
}

/// True if the rows of the left operand are read in place, a row's length apart in memory.
fn in_place(nest: &Nest) -> bool {
    let of = |s: &Stmt| match s {
        Stmt::Load { dst, mem, .. } if *dst == nest.roles.a => mem.index.linear(nest.roles.m).map(|(by, _)| by),
        _ => None,
    };
    let apart = nest.reduce.body.iter().find_map(of).and_then(|by| by.as_const());
    apart.is_some_and(|by| by >= nest.k as i64)
}

/// The greatest divisor of `n` up to `most` that is `n` itself or a power of two times its odd part's divisor.
fn divisor(n: u64, most: u64) -> u64 {
    let mut d = n;
    while d > most && d.is_multiple_of(2) {
        d /= 2;
    }
    d
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, contraction, kernel, refusals, schedule, text, with_knobs};

    fn large() -> String {
        contraction([64, 2048, 1024], "A[i*1024 + kk]", "B[kk*2048 + j]")
    }

    #[test]
    fn a_large_contraction_is_cut_into_stretches_of_k_then_columns() {
        let (out, _) = apply("cache_blocks", &kernel(&large()), &context());
        let want = r#"tile kernel k(A: ptr f32, B: ptr f32):
  local acc: f32[64, 2048]
  for kko in 0..4: serial
    for jo in 0..4: free
      for i in 0..64: free
        for j in 0..512: free
          for kk in 0..256: reduce contraction m=i n=j k=kk a=a b=b acc=acc
            a: f32 = load A[i*1024 + (kko*256 + kk)]
            b: f32 = load B[(kko*256 + kk)*2048 + (jo*512 + j)]
            c: f32 = acc[i, jo*512 + j]
            d: f32 = fma(a, b, c)
            acc[i, jo*512 + j] = d
"#;
        assert_eq!(text(&out), want);
        // The blocks get packed operands and register tiles like any other contraction.
        let all = text(&schedule(&kernel(&large()), &context()));
        assert!(all.contains("acc_r: f32[8, 32] register(16)") && all.contains("b_pack: f32[16, 256, 32]"), "{all}");
    }

    #[test]
    fn it_refuses_what_fits_and_what_has_no_divisors() {
        let small = large().replace("2048", "64").replace("1024", "64");
        assert_eq!(refusals("cache_blocks", &small, &context()), ["contraction into acc: its operands fit the caches"]);
        let odd = large().replace("2048", "64").replace("1024", "12");
        let why = refusals("cache_blocks", &odd, &with_knobs(&["kc=8"]));
        assert_eq!(why, ["contraction into acc: 64x64x12 has no divisors to cut by"]);
    }
}
