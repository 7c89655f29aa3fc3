//! `async_copy`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::primitives::fill::{self, Engine};
use crate::tile::primitives::{self, Step};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "async_copy",
    doc: "\
Fills the stages of a pipeline by copies that go on while the threads compute, instead of by loads that they wait for.

```text
for kt in 0..112: serial pipeline(3)             for kt in 0..112: serial pipeline(3)
  stage a_s: f32[128, 36] shared:         -->      stage a_s: f32[128, 36] shared async:
    ...                                              ...
```

A copy moves 4, 8 or 16 bytes; where its mask does not hold it writes zeros. Nothing passes through registers.

Knob: `async_copy` (0 turns the rule off).

Refuses stages that compute what they store, elements of fewer than 4 bytes that are moved one at a time, and masked elements
that are something else than 0.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let mut bufs = vec![];
    for (buf, body) in fill::stages(p) {
        let name = &p.bufs[buf].name;
        let checked = if ctx.knobs.async_copy { fill::copies(body, 1) } else { Err("knob off") };
        if log.outcome(name, checked).is_some() {
            bufs.push(buf);
        }
    }
    if bufs.is_empty() { vec![] } else { vec![Step::Fill { bufs, by: Engine::Async }] }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const LOOP: &str = r#"tile kernel k(A: ptr f32, n: i32):
  for k in 0..n: serial pipeline(2)
    stage s: f32[256] shared:
      for t in 0..64: free thread
        for v in 0..4: free vector(4)
          a: f32 = load A[k*256 + t*4 + v] where k < n else 0.0
          s[t*4 + v] = a
    for u in 0..64: free thread
      x: f32 = s[63 - u]
"#;

    #[test]
    fn plain_copies_go_on_while_threads_compute() {
        let (out, log) = apply("async_copy", &kernel(LOOP), &gpu(&[]));
        assert_eq!(log.applied, ["s"]);
        assert!(text(&out).contains("    stage s: f32[256] shared async:\n"), "{}", text(&out));
    }

    #[test]
    fn what_is_more_than_a_copy_is_refused() {
        for (from, to, why) in [
            (
                "          s[t*4 + v] = a",
                "          b: f32 = a * 2.0\n          s[t*4 + v] = b",
                "it computes what it stores",
            ),
            ("else 0.0", "else 1.0", "masked elements are something else than 0"),
            ("f32", "f64", "its elements are not moved 4, 8 or 16 bytes at a time"),
        ] {
            assert_eq!(refusals("async_copy", &LOOP.replace(from, to), &gpu(&[])), [format!("s: {why}")]);
        }
        assert_eq!(refusals("async_copy", LOOP, &gpu(&["async_copy=0"])), ["s: knob off"]);
        let serial = LOOP.replace(" pipeline(2)", "");
        assert_eq!(refusals("async_copy", &serial, &gpu(&[])), Vec::<String>::new());
    }
}
