//! `chunk_matmul_k`

use std::collections::BTreeSet;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::contraction::{self, Found, Nest};
use crate::tile::heuristics::chunk_matmul_k::SHORTEST;
use crate::tile::heuristics::named;
use crate::tile::primitives::{self, LoopRef, Script, Step};
use crate::tile::target::MemoryKind;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "chunk_matmul_k",
    doc: "\
Cuts the sum of a contraction into stretches whose operands shared memory holds twice, so that one can be fetched while the
other is used.

```text
for k in 0..n: serial                            for kc in 0..4*n: serial
  for i in 0..128: free                            for i in 0..128: free
    for j in 0..128: free                            for j in 0..128: free
      for kk in 0..128: reduce contraction  -->        for kk in 0..32: reduce contraction
        a = load A[i*K + k*128 + kk]                     a = load A[i*K + kc*32 + kk]
        ...                                              ...
```

A serial loop that holds nothing else counts the stretches too; otherwise they get a loop of their own.

Refuses contractions whose operands fit twice into half of a block's shared memory (once, where they stand in a serial loop with
other things, as in attention), are tiles of the block's own, or have no
stretch of four elements or more that fits.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let within = among_others(&p.body);
    let mut script = Script::new(p, ctx, log);
    for Found { site, nest, .. } in contraction::nests(p) {
        let Ok((sum, nest)) = nest else { continue };
        let chosen = stretch(p, ctx, &nest, within.contains(&nest.roles.k));
        let step = |length: u64| Step::Tile { at: sum, m: nest.m as u32, n: nest.n as u32, k: length as u32 };
        let around = serial_around(p, nest.free[0]);
        let done =
            chosen.and_then(|length| script.attempt(|script| cut(script, step(length), around)).map(|()| length));
        script.log.described(&site, done.map(|length| format!("stretches of {length}")));
    }
    script.done()
}

/// A loop over stretches, which is one with a serial loop that holds nothing else.
fn cut(script: &mut Script<'_>, step: Step, around: Option<LoopRef>) -> Result<(), String> {
    let made = script.step(step)?;
    let (Some(outer), [inner]) = (around, &made[..]) else { return Ok(()) };
    let name = format!("{}c", script.kernel.axes[outer.axis].name);
    script.step(Step::Fuse { loops: vec![outer, *inner], name }).map(|_| ())
}

/// The serial loop around a nest, if it holds nothing else.
fn serial_around(p: &Kernel, nest: &For) -> Option<LoopRef> {
    let mut found = None;
    primitives::look(p, &mut |at, f| {
        let alone = matches!(&f.body[..], [Stmt::For(l)] if std::ptr::eq(&**l, nest));
        if alone && f.kind == LoopKind::Serial && f.place == Place::None && f.counts_from_zero() {
            found = Some(at);
        }
        found.is_none()
    });
    found
}

/// The axes of sums that stand in a serial loop with other things: a loop over stretches would stand within that one, and only
/// one of two such loops can fetch ahead.
fn among_others(body: &[Stmt]) -> BTreeSet<AxisId> {
    let serial = walk::loops(body).filter(|f| f.kind == LoopKind::Serial && f.body.len() > 1);
    serial.flat_map(|f| walk::contractions(&f.body)).map(|(sum, _)| sum.axis).collect()
}

/// How long a stretch may be. `within`: in a loop that does other things.
fn stretch(kernel: &Kernel, ctx: &Context, nest: &Nest, within: bool) -> Result<u64, String> {
    nest.alone()?;
    let (a, b) = nest.operands()?;
    let loaded = |at: &usize| matches!(nest.reduce.body[*at], Stmt::Load { .. });
    if !a.slice.iter().any(loaded) || !b.slice.iter().any(loaded) {
        return Err("an operand is a tile of the block's own".to_string());
    }
    let bytes = |v: ValId| match kernel.vals.get(v).map(|v| v.ty) {
        Some(Ty::Num(d)) => d.bytes(),
        _ => 8,
    };
    let row = nest.m * bytes(nest.roles.a) + nest.n * bytes(nest.roles.b);
    let room = ctx.target.bytes_of(MemoryKind::Shared) / 2;
    let slots = if within { 1 } else { 2 };
    let fits = |length: u64| slots * length.saturating_mul(row) <= room;
    if fits(nest.k) {
        let (slots, takes) = if within { ("a slot", "takes") } else { ("two slots", "take") };
        let bytes = if within { nest.k * row } else { 2 * nest.k * row };
        return Err(format!("{slots} of its operands {takes} {bytes} bytes, and half of shared memory has {room}"));
    }
    let longest = (0..nest.k.trailing_zeros() + 1).rev().map(|bits| 1u64 << bits).find(|n| fits(*n));
    let found = longest.filter(|n| *n >= SHORTEST && *n < nest.k);
    found.ok_or_else(|| format!("no stretch of {} elements or more divides {} and fits", named!(SHORTEST), nest.k))
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{GEMM, apply, contraction, gpu, kernel, refusals, text};

    #[test]
    fn a_loop_around_counts_the_stretches() {
        let long = GEMM.replace("f16", "f32").replace("0x0", "0.0");
        let (out, log) = apply("chunk_matmul_k", &kernel(&long), &gpu(&[]));
        assert_eq!(log.applied, ["contraction into acc: stretches of 32"]);
        let made = text(&out);
        assert!(made.contains("  for kc in 0..(K + 63)//64*2: serial\n    for i in 0..128: free\n"), "{made}");
        assert!(made.contains("load A[(bx*128 + i)*K + kk + kc*32] where bx*128 + i < M and kk + kc*32 < K"), "{made}");
    }

    #[test]
    fn without_one_they_get_a_loop_of_their_own() {
        let whole = contraction([128, 128, 1024], "A[i*1024 + kk]", "B[kk*128 + j]");
        let (out, log) = apply("chunk_matmul_k", &kernel(&whole), &gpu(&[]));
        assert_eq!(log.applied, ["contraction into acc: stretches of 32"]);
        let made = text(&out);
        assert!(made.contains("  for kko in 0..32: serial\n    for i in 0..128: free\n"), "{made}");
        assert!(made.contains("load A[i*1024 + (kko*32 + kk)]"), "{made}");
        let odd = whole.replace("1024", "1023");
        let why = ["contraction into acc: no stretch of 4 (SHORTEST) elements or more divides 1023 and fits"];
        assert_eq!(refusals("chunk_matmul_k", &odd, &gpu(&[])), why);
    }

    #[test]
    fn what_fits_twice_stays_whole() {
        let why =
            ["contraction into acc: two slots of its operands take 65536 bytes, and half of shared memory has 116224"];
        assert_eq!(refusals("chunk_matmul_k", GEMM, &gpu(&[])), why);
    }
}
