//! `promote_alloca`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::primitives::line::memories;
use crate::tile::primitives::promote::Memory;
use crate::tile::primitives::{self, Step};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "promote_alloca",
    doc: "\
Makes memory that a program takes for its block a buffer, which threads can then share.

```text
p: ptr f32 = alloca 512 align 64                 local p: f32[128]
for i in 0..128: free                            for i in 0..128: free
  store p[i] = v                          -->      p[i] = v
for j in 0..128: free                            for j in 0..128: free
  w: f32 = load p[127 - j]                         w: f32 = p[127 - j]
```

Memory of which each access names an element of a row, as `p[i*64 + j]` with `j` in `0..64` does, becomes a buffer of rows, `p[i, j]`.

Refuses memory whose address is used for anything but loads and stores of its own elements: an address that is passed on, moved by
offsets that differ, or read as another type, and atomics.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, _: &Context, log: &mut Log) -> Vec<Step> {
    let mut steps = vec![];
    for memory in memories(&p.body) {
        let name = p.vals[memory].name.clone();
        match Memory::of(p, memory) {
            Err(why) => log.skipped(name, why),
            Ok(found) => {
                let (elements, shape) = (found.elements, rows(&found));
                match &shape[..] {
                    [_] => log.applied(format!("{name}: {elements} elements")),
                    shape => log.applied(format!("{name}: {elements} elements, as {shape:?}")),
                }
                steps.push(Step::Promote { memory, shape });
            }
        }
    }
    steps
}

/// The shape of memory in which every access stays in a row.
fn rows(memory: &Memory) -> Vec<u64> {
    let mut shape = vec![memory.elements];
    for length in memory.lengths().into_iter().rev().filter(|n| *n > 1) {
        let last = shape[shape.len() - 1];
        let rows = [&shape[..shape.len() - 1], &[last / length, length]].concat();
        if length < last && last.is_multiple_of(length) && memory.places(&rows).is_some() {
            shape = rows;
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const TURN: &str = r#"loop kernel k(x: ptr f32, y: ptr f32, n: i32):
  p: ptr f32 = alloca 512 align 64
  for i in 0..128: free
    v: f32 = load x[i]
    store p[i] = v where i < n
  for j in 0..128: free
    w: f32 = load p[127 - j] where j < n else 1.0
    store y[j] = w
"#;

    #[test]
    fn loads_and_stores_are_of_a_buffer() {
        let (out, log) = apply("promote_alloca", &kernel(TURN), &gpu(&[]));
        assert_eq!(log.applied, ["p: 128 elements"]);
        let want = r#"tile kernel k(x: ptr f32, y: ptr f32, n: i32):
  local p: f32[128]
  for i in 0..128: free
    v: f32 = load x[i]
    stored: i1 = test i < n
    if stored:
      p[i] = v
  for j in 0..128: free
    local w: f32
    w = 1.0
    loaded: i1 = test j < n
    if loaded:
      w_1: f32 = p[127 - j]
      w = w_1
    w_2: f32 = w
    store y[j] = w_2
"#;
        assert_eq!(text(&out), want);
    }

    #[test]
    fn memory_of_rows_has_their_shape() {
        let flip = TURN
            .replace("  for i in 0..128: free\n", "  for r in 0..4: free\n   for i in 0..32: free\n")
            .replace("load x[i]", "load x[r*32 + i]")
            .replace("store p[i] = v where i < n", "store p[r*32 + i] = v")
            .replace("  for j in 0..128: free\n", "  for q in 0..4: free\n   for j in 0..32: free\n")
            .replace("load p[127 - j] where j < n else 1.0", "load p[q*32 - j + 31]")
            .replace("store y[j]", "store y[q*32 + j]");
        let (out, log) = apply("promote_alloca", &kernel(&flip), &gpu(&[]));
        assert_eq!(log.applied, ["p: 128 elements, as [4, 32]"]);
        let made = text(&out);
        assert!(made.contains("p[r, i] = v") && made.contains("w: f32 = p[q, j*-1 + 31]"), "{made}");
        // An access that crosses rows leaves it one row.
        let across = flip.replace("p[q*32 - j + 31]", "p[q*32 + j + 1]").replace("q in 0..4", "q in 0..3");
        assert_eq!(apply("promote_alloca", &kernel(&across), &gpu(&[])).1.applied, ["p: 128 elements"]);
    }

    #[test]
    fn an_address_that_goes_elsewhere_stays_one() {
        for (from, to, why) in [
            (
                "load p[127 - j]",
                "load p[127 - j] acquire",
                "an access is ordered, or of another type than its elements",
            ),
            (
                "    store y[j] = w\n",
                "    q: ptr f32 = p + 1:i64\n    store q[j] = w\n",
                "its address is used for more than loads and stores of its elements",
            ),
        ] {
            let text = TURN.replace(from, to).replace("acquire where j < n else 1.0", "where j < n else 1.0 acquire");
            assert_eq!(refusals("promote_alloca", &text, &gpu(&[])), [format!("p: {why}")]);
        }
    }
}
