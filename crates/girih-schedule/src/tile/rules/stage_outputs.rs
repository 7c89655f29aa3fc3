//! `stage_outputs`

use crate::base::rule::{Log, Rule};
use crate::index::Poly;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit;
use crate::tile::matrix;
use crate::tile::primitives::stage_write::{By, Results};
use crate::tile::primitives::{LoopRef, Names, Script, Step};
use crate::tile::target::Capability;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "stage_outputs",
    doc: "\
Collects the results of a product in shared memory, and copies them to their array row by row; where TMA can, one thread begins
the copies of whole boxes.

```text
for i in 0..128: for j in 0..128: free           for i in 0..128: for j in 0..128: free
  v = acc[i, j]                                    v = acc[i, j]
  o = f16(v)                                       o = f16(v)
  store y[(ib*128 + i)*N + jb*128 + j] = o         y_s[j//64, i, j%64] = o
                                          -->    for p in 0..2: free tensor
                                                   for i in 0..128: for j in 0..64: free
                                                     o = y_s[p, i, j]
                                                     store y[(ib*128 + i)*N + jb*128 + p*64 + j] = o
                                                       where ib*128 + i < M and jb*128 + p*64 + j < N
```

A thread of the matrix unit has two neighbours of a row, and eight rows are stored at once: with elements of one or two bytes,
each row is a part of a sector, which is then written in several steps. The tile takes the bytes of the stages of the loop before
it, which are free by then.

Knob: `stage_outputs` (0 turns the rule off); `tma=0` leaves the copies to all threads.

Refuses elements of four bytes and more, which fill sectors; stores that are not along the rows; and tiles that do not fit shared
memory. It says why TMA does not copy one.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let mut script = Script::new(p, ctx, log);
    for (at, results) in sites(p, ctx) {
        let name = p.vals[results.mem.base].name.clone();
        let [rows, cols] = results.shape;
        let done = fits(ctx, &results).and_then(|()| match by_tma(&mut script, at) {
            Ok(()) => Ok("by TMA".to_string()),
            Err(why) => {
                script.try_step(Step::StageResults { at, by: By::Threads }).map(|_| format!("by all threads: {why}"))
            }
        });
        script.log.described(&name, done.map(|how| format!("{rows} x {cols}, {how}")));
    }
    script.done()
}

/// The nests that store what became of each element of a product.
fn sites<'a>(p: &'a Kernel, ctx: &Context) -> Vec<(LoopRef, Results<'a>)> {
    let (names, mut out) = (Names::of(p), vec![]);
    for body in edit::block_bodies(&p.body) {
        for (at, s) in body.iter().enumerate() {
            let found = Results::of(s).filter(|found| of_product(p, ctx, found, &body[..at]));
            let name = if let Stmt::For(f) = s { names.name(f) } else { None };
            out.extend(name.zip(found));
        }
    }
    out
}

/// True if a nest stores what becomes of each element of a sum that the matrix unit computes.
fn of_product(p: &Kernel, ctx: &Context, nest: &Results<'_>, before: &[Stmt]) -> bool {
    let place = [Ix::Axis(nest.i.axis), Ix::Axis(nest.j.axis)];
    let acc = nest.j.body.iter().find_map(|s| match s {
        Stmt::Read { buf, idx, .. } if *idx == place && products(p, ctx, before, *buf) => Some(*buf),
        _ => None,
    });
    acc.is_some_and(|acc| p.bufs[acc].shape == nest.shape)
}

/// Refuses results that are stored well as they are.
fn fits(ctx: &Context, nest: &Results<'_>) -> Result<(), String> {
    if !ctx.knobs.stage_outputs {
        return Err("knob off".into());
    }
    let (elem, index) = (nest.mem.elem, &nest.mem.index);
    if elem.bytes() >= 4 {
        return Err(format!("elements of {} bits are stored as they are", elem.bits()));
    }
    let along = Poly::expanded(index).coefficient(&Ix::Axis(nest.j.axis)) == 1;
    match along && index.linear(nest.j.axis).is_some() {
        true => Ok(()),
        false => Err("it is not stored along its rows".into()),
    }
}

fn by_tma(script: &mut Script<'_>, at: LoopRef) -> Result<(), String> {
    let ctx = script.ctx;
    if ctx.target.has(Capability::TensorCopies) && !(ctx.knobs.tma && ctx.knobs.swizzle) {
        return Err("a knob is off".into());
    }
    script.try_step(Step::StageResults { at, by: By::Tma }).map(drop)
}

/// True if a buffer is the sum of a product that the matrix unit computes.
fn products(kernel: &Kernel, ctx: &Context, before: &[Stmt], acc: BufId) -> bool {
    let (mut found, mut all) = (false, true);
    walk::visit(before, &mut |s| {
        let Stmt::For(f) = s else { return };
        let Some(roles) = f.contraction.as_ref().filter(|c| c.acc == acc) else { return };
        let operands = f.body.iter().filter_map(|s| match s {
            Stmt::Read { buf, .. } if *buf != acc => Some(*buf),
            _ => None,
        });
        for buf in operands {
            found = true;
            all &= matrix::taken(kernel, ctx, buf, roles.acc).is_some();
        }
    });
    found && all && ctx.knobs.tensor_core
}

#[cfg(test)]
mod tests {
    use crate::tile::Context;
    use crate::tile::target::Target;
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const PRODUCT: &str = r#"tile kernel k(A: ptr f16 div 16, B: ptr f16 div 16, C: ptr f16 div 16, m: i32, n: i32 div 8):
  local acc: f32[64, 128]
  for i in 0..64: free
    for j in 0..128: free
      acc[i, j] = 0.0
  for kt in 0..8: serial
    stage a_s: f16[64, 64] shared tensor:
      for i1 in 0..64: free
        for k1 in 0..64: free
          a: f16 = load A[(bx*64 + i1)*512 + (kt*64 + k1)] where bx*64 + i1 < m and kt*64 + k1 < 512 else 0.0
          a_s[i1, k1] = a
    stage b_s: f16[64, 128] shared tensor:
      for k2 in 0..64: free
        for j2 in 0..128: free
          b: f16 = load B[(kt*64 + k2)*n + (by*128 + j2)] where kt*64 + k2 < 512 and by*128 + j2 < n else 0.0
          b_s[k2, j2] = b
    for i3 in 0..64: free
      for j3 in 0..128: free
        for k3 in 0..64: reduce contraction m=i3 n=j3 k=k3 a=x b=w acc=acc
          x: f16 = a_s[i3, k3]
          v: f32 = f32(x)
          w: f16 = b_s[k3, j3]
          v1: f32 = f32(w)
          s: f32 = acc[i3, j3]
          next: f32 = fma(v, v1, s)
          acc[i3, j3] = next
  for i4 in 0..64: free
    for j4 in 0..128: free
      o: f32 = acc[i4, j4]
      h: f16 = f16(o)
      store C[(bx*64 + i4)*n + (by*128 + j4)] = h where bx*64 + i4 < m and by*128 + j4 < n
"#;

    fn on(name: &str) -> Context {
        Context { target: Target::named(name).unwrap(), ..Context::default() }
    }

    #[test]
    fn tiles_go_back_as_boxes() {
        let (out, log) = apply("stage_outputs", &kernel(PRODUCT), &gpu(&[]));
        assert_eq!(log.applied, ["C: 64 x 128, by TMA"]);
        let (_, tail) = text(&out).split_once("  local C_s").map(|(a, b)| (a.to_string(), b.to_string())).unwrap();
        let want = r#": f16[2, 64, 64] shared swizzle(128)
  for i4 in 0..64: free
    for j4 in 0..128: free
      o: f32 = acc[i4, j4]
      h: f16 = f16(o)
      C_s[j4//64, i4, j4%64] = h
  for j4p in 0..2: free tensor
    for i4_1 in 0..64: free
      for j4_1 in 0..64: free
        C_1: f16 = C_s[j4p, i4_1, j4_1]
        store C[(bx*64 + i4_1)*n + (by*128 + j4p*64 + j4_1)] = C_1 where bx*64 + i4_1 < m and by*128 + j4p*64 + j4_1 < n
"#;
        assert_eq!(tail, want);
    }

    #[test]
    fn where_there_is_no_tma_all_threads_copy() {
        for (ctx, why) in [(on("sm_80"), "sm_80 has no TMA"), (gpu(&["tma=0"]), "a knob is off")] {
            let (out, log) = apply("stage_outputs", &kernel(PRODUCT), &ctx);
            assert_eq!(log.applied, [format!("C: 64 x 128, by all threads: {why}")]);
            let out = text(&out);
            assert!(out.contains("local C_s: f16[64, 128] shared\n") && !out.contains("free tensor"), "{out}");
        }
        let few = PRODUCT.replace("[64, 128]\n  for i in 0..64", "[4, 128]\n  for i in 0..4");
        let few = few
            .replace("[64, 64] shared tensor:\n      for i1 in 0..64", "[4, 64] shared tensor:\n      for i1 in 0..4");
        let few = few.replace("for i3 in 0..64", "for i3 in 0..4").replace("for i4 in 0..64", "for i4 in 0..4");
        let applied = apply("stage_outputs", &kernel(&few), &gpu(&[])).1.applied;
        let follow = "boxes of 512 bytes with a swizzle do not follow each other";
        assert_eq!(applied, [format!("C: 4 x 128, by all threads: {follow}")]);
        // Rows that begin anywhere, and an array that the kernel reads.
        let why = |program: &str| apply("stage_outputs", &kernel(program), &gpu(&[])).1.applied;
        let odd = PRODUCT.replace("n: i32 div 8", "n: i32");
        let unaligned = "its array or its rows are not known to begin at multiples of 16 bytes";
        assert_eq!(why(&odd), [format!("C: 64 x 128, by all threads: {unaligned}")]);
        let read = PRODUCT.replace(
            "      h: f16 = f16(o)\n",
            "      c: f16 = load C[(bx*64 + i4)*n + (by*128 + j4)]\n      d: f32 = f32(c)\n      e: f32 = o + d\n      h: f16 = f16(e)\n",
        );
        let other = "the kernel touches the array otherwise, which nothing orders with TMA";
        assert_eq!(why(&read), [format!("C: 64 x 128, by all threads: {other}")]);
    }

    #[test]
    fn what_is_stored_well_stays() {
        let wide = PRODUCT
            .replace("C: ptr f16", "C: ptr f32")
            .replace("      h: f16 = f16(o)\n", "")
            .replace("= h where", "= o where");
        assert_eq!(refusals("stage_outputs", &wide, &gpu(&[])), ["C: elements of 32 bits are stored as they are"]);
        assert_eq!(refusals("stage_outputs", PRODUCT, &gpu(&["stage_outputs=0"])), ["C: knob off"]);
        let down = PRODUCT.replace("(bx*64 + i4)*n + (by*128 + j4)]", "(by*128 + j4)*m + (bx*64 + i4)]");
        assert_eq!(refusals("stage_outputs", &down, &gpu(&[])), ["C: it is not stored along its rows"]);
        // Nothing is said of sums that no matrix unit computes.
        assert_eq!(refusals("stage_outputs", PRODUCT, &gpu(&["tensor_core=0"])), Vec::<String>::new());
    }
}
