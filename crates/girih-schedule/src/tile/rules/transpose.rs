//! `transpose`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::contraction::prev_power;
use crate::tile::edit::const_trip;
use crate::tile::heuristics::named;
use crate::tile::heuristics::transpose::{MOST, MOST_SQUARES};
use crate::tile::primitives::vector::square;
use crate::tile::primitives::{self, LoopRef, Names, Script, Step};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "transpose",
    doc: "\
Moves a square of elements that is read along one axis and written along the other in vector registers: both loops
become vectors, read along the outer one and written along the inner one, and transposed in between.

```text
for kk in 0..16: free                            for kk in 0..16: free vector(16)
  for j in 0..16: free                             for j in 0..16: free vector(16)
    %x = block[j, kk]                     -->        %x = block[j, kk]
    pack[kk, j] = %x                                 pack[kk, j] = %x
```

Knobs: `transpose` (0 turns the rule off), `lanes`.

Refuses when the rows of a square are more than the vector registers, the loops are not whole squares,
an access is masked or ordered, and where something is computed on the way.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let mut squares = vec![];
    let names = Names::of(p);
    primitives::look(p, &mut |at, outer| {
        let [Stmt::For(inner)] = &outer.body[..] else { return true };
        if !square::turns(p, outer, inner) {
            return true;
        }
        let site = axis_site(p, outer.axis);
        match (lanes_of(p, ctx, outer, inner), names.name(inner)) {
            (Ok(lanes), Some(within)) => {
                log.applied(site);
                squares.push((at, within, lanes));
            }
            (Err(why), _) => log.skipped(site, why),
            _ => {}
        }
        false
    });
    let mut script = Script::new(p, ctx, log);
    // Loops behind one keep their names where it is replaced, and not the other way round.
    for (outer, inner, lanes) in squares.into_iter().rev() {
        if let Err(why) = script.attempt(|script| as_vectors(script, outer, inner, lanes)) {
            script.log.skipped("a step", why);
        }
    }
    script.done()
}

/// The pair of loops as vectors, square by square where there are many.
fn as_vectors(script: &mut Script<'_>, outer: LoopRef, inner: LoopRef, lanes: u32) -> Result<(), String> {
    let side = |at| script.find(at).and_then(|f| const_trip(&f)).unwrap_or(0) / u64::from(lanes);
    if side(outer) * side(inner) <= MOST_SQUARES {
        script.step(Step::Vector { loops: vec![outer, inner], lanes, ways: 1 })?;
        return Ok(());
    }
    let mut cut = |at: LoopRef| {
        let name = script.kernel.axes[at.axis].name.clone();
        let names = ["1", "2"].map(|n| format!("{name}{n}"));
        script.step(Step::Split { at, size: lanes, names, guard: false })
    };
    let (t, s) = (cut(outer)?, cut(inner)?);
    let ([t1, t2], [s1, s2]) = (
        t[..].try_into().map_err(|_| "a split makes two loops")?,
        s[..].try_into().map_err(|_| "a split makes two loops")?,
    );
    script.step(Step::Reorder { loops: vec![t1, s1, t2, s2] })?;
    script.step(Step::Vector { loops: vec![t2, s2], lanes, ways: 1 })?;
    Ok(())
}

/// How many lanes the squares of a pair of loops have.
fn lanes_of(kernel: &Kernel, ctx: &Context, outer: &For, inner: &For) -> Result<u32, String> {
    if !ctx.knobs.transpose || !ctx.knobs.vectorise {
        return Err("knob off".into());
    }
    let dtype = square::moved(kernel, inner)?;
    let (Some(t), Some(s)) = (const_trip(outer), const_trip(inner)) else {
        return Err("its loops have no constant trip counts".into());
    };
    if t > MOST || s > MOST {
        return Err(format!("{t} x {s} elements are more than a block of {}", named!(MOST)));
    }
    let native = u64::from(ctx.target.lanes_of(dtype.bytes()));
    let native = ctx.knobs.lanes.map_or(native, u64::from).min(t).min(s) as u32;
    let lanes = prev_power(native);
    if lanes < 4 || !t.is_multiple_of(lanes as u64) || !s.is_multiple_of(lanes as u64) {
        return Err(format!("{t} x {s} elements cannot be cut into squares of {lanes} lanes"));
    }
    if lanes > ctx.target.vector.registers {
        return Err(format!("{lanes} vectors are more than the registers"));
    }
    Ok(lanes)
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text, with_knobs};

    const SQUARE: &str = r#"loop kernel k(p: ptr f32):
  local block: f32[16, 16]
  local pack: f32[16, 32]
  for kk in 0..16: free
    for j in 0..16: free
      x: f32 = block[j, kk]
      pack[kk, 16 + j] = x
"#;

    #[test]
    fn both_loops_of_a_square_become_vectors() {
        let (out, _) = apply("transpose", &kernel(SQUARE), &context());
        let out = text(&out);
        assert!(out.contains("for kk in 0..16: free vector(16)\n    for j in 0..16: free vector(16)"), "{out}");
        let (out, _) = apply("transpose", &kernel(SQUARE), &with_knobs(&["lanes=8"]));
        assert!(text(&out).contains("for j in 0..16: free vector(8)"), "{}", text(&out));
        // Sixteen squares of four lanes are more than is written out.
        let (out, _) = apply("transpose", &kernel(SQUARE), &with_knobs(&["lanes=4"]));
        let want = "  for kk1 in 0..4: free
    for j1 in 0..4: free
      for kk2 in 0..4: free vector(4)
        for j2 in 0..4: free vector(4)
          x: f32 = block[j1*4 + j2, kk1*4 + kk2]
          pack[kk1*4 + kk2, j1*4 + j2 + 16] = x
";
        assert!(text(&out).contains(want), "{}", text(&out));
    }

    #[test]
    fn what_is_no_plain_square_is_refused() {
        for (from, to, why) in [
            ("for j in 0..16", "for j in 0..12", "16 x 12 elements cannot be cut into squares of 8 lanes"),
            ("for j in 0..16", "for j in 0..bx", "its loops have no constant trip counts"),
            ("x: f32 = block[j, kk]", "x: f32 = load p[j*16 + kk] where j < 9", "an access is masked or ordered"),
            ("+ j] = x", "+ j] = 1.0", "it writes something other than it reads"),
        ] {
            let changed = SQUARE.replace(from, to);
            assert_eq!(refusals("transpose", &changed, &context()), [format!("loop kk: {why}")]);
        }
        let why = refusals("transpose", SQUARE, &with_knobs(&["transpose=0"]));
        assert_eq!(why, ["loop kk: knob off"]);
        // A copy of rows to rows is not a transposition.
        assert_eq!(refusals("transpose", &SQUARE.replace("block[j, kk]", "block[kk, j]"), &context()), [""; 0]);
    }
}
