//! `wide_access`

use std::collections::BTreeMap;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::primitives::vector::accesses;
use crate::tile::primitives::{self, LoopRef, Step};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "wide_access",
    doc: "\
Lets a thread access contiguous elements at once: 16 bytes are one instruction, and nothing is fetched from memory twice.

```text
for v in 0..4: free unroll                       local x_w: f32[4]      for v in 0..4: free vector(4)
  x = load A[t*4 + v]                                                     x_w[v] = load A[t*4 + v]
  y = exp(x)                              -->    local y_w: f32[4]      for v in 0..4: free unroll
  store C[t*4 + v] = y                                                    y_w[v] = exp(x_w[v])
                                                                        for v in 0..4: free vector(4)
                                                                          store C[t*4 + v] = y_w[v]
```

Buffers that the threads of a block share are accessed in the same way, and so are rows that threads fold together: each thread folds
groups of neighbours. Arrays of a model start at multiples of 16 bytes; arrays of a tile program do if the program assumes it.

Refuses loops of other lengths than 2, 4, 8 and 16, accesses that do not start at a multiple of their size, and accesses whose mask
may hold for only some of their elements.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let mut steps: BTreeMap<u32, Vec<LoopRef>> = BTreeMap::new();
    primitives::look(p, &mut |at, f| {
        if let Some(lanes) = accesses::widest(p, ctx, f) {
            log.applied(axis_site(p, f.axis));
            steps.entry(lanes).or_default().push(at);
        }
        true
    });
    steps.into_iter().map(|(lanes, loops)| Step::Vector { loops, lanes, ways: 1 }).collect()
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const SCALE: &str = r#"tile kernel k(x: ptr f32 div 16, y: ptr f32 div 16, n: i32 div 8):
  for t in 0..128: free thread
    for v in 0..4: free unroll
      a: f32 = load x[bx*512 + t*4 + v] where t*4 + v < n
      b: f32 = a * 2.0
      store y[bx*512 + t*4 + v] = b where t*4 + v < n
"#;

    #[test]
    fn what_threads_share_is_read_at_once_where_nothing_writes_it() {
        let shared = SCALE.replace("  for t in", "  local s: f32[512] shared\n  for t in");
        let reads = shared.replace("load x[bx*512 + t*4 + v] where t*4 + v < n", "s[t*4 + v]");
        let (out, _) = apply("wide_access", &kernel(&reads), &gpu(&[]));
        assert!(text(&out).contains("for v in 0..4: free vector(4)\n      a: f32 = s[t*4 + v]\n"), "{}", text(&out));
        for other in ["s[t + v]", "s[t*4 + 3 - v]"] {
            let (out, _) = apply("wide_access", &kernel(&reads.replace("s[t*4 + v]", other)), &gpu(&[]));
            assert!(text(&out).contains(&format!("free unroll\n      a: f32 = {other}\n")), "{}", text(&out));
        }
        let written = reads.replace("      store y", "      s[t*4 + v] = b\n      store y");
        let (out, _) = apply("wide_access", &kernel(&written), &gpu(&[]));
        assert!(text(&out).contains("free unroll\n      a: f32 = s[t*4 + v]\n"), "{}", text(&out));
    }

    #[test]
    fn what_threads_share_is_written_at_once_also_in_parts_of_rows() {
        let shared = SCALE.replace("  for t in", "  local s: f32[8, 64] shared\n  for t in");
        let place = "s[(t*4 + v)//64, (t*4 + v)%64]";
        let writes =
            shared.replace("      store y[bx*512 + t*4 + v] = b where t*4 + v < n\n", &format!("      {place} = b\n"));
        assert_ne!(writes, shared);
        let (out, _) = apply("wide_access", &kernel(&writes), &gpu(&[]));
        let want = "for v_2 in 0..4: free vector(4)\n      b_1: f32 = b_w[v_2]\n      s[t*4//64, t*4%64 + v_2] = b_1\n";
        assert!(text(&out).contains(want), "{}", text(&out));
        // Parts that begin within the elements of a thread.
        let odd = writes.replace("(t*4 + v)//64, (t*4 + v)%64", "(t*4 + v + 2)//64, (t*4 + v + 2)%64");
        assert!(text(&apply("wide_access", &kernel(&odd), &gpu(&[])).0).contains("_w[v_1]\n"));
        assert!(text(&apply("wide_access", &kernel(&odd), &gpu(&[])).0).contains("s[(t*4 + v_1 + 2)//64"));
    }

    #[test]
    fn loads_go_before_and_stores_after() {
        let (out, log) = apply("wide_access", &kernel(SCALE), &gpu(&[]));
        assert_eq!(log.applied, ["loop v"]);
        let want = r#"tile kernel k(x: ptr f32 div 16, y: ptr f32 div 16, n: i32 div 8):
  for t in 0..128: free thread
    local a_w: f32[4]
    for v in 0..4: free vector(4)
      a: f32 = load x[bx*512 + t*4 + v] where t*4 < n
      a_w[v] = a
    local b_w: f32[4]
    for v_1 in 0..4: free unroll
      a_1: f32 = a_w[v_1]
      b: f32 = a_1 * 2.0
      b_w[v_1] = b
    for v_2 in 0..4: free vector(4)
      b_1: f32 = b_w[v_2]
      store y[bx*512 + t*4 + v_2] = b_1 where t*4 < n
"#;
        assert_eq!(text(&out), want);
    }

    #[test]
    fn what_is_not_aligned_or_not_masked_alike_stays() {
        for (from, to) in [
            ("n: i32 div 8", "n: i32"),
            ("x[bx*512 + t*4 + v]", "x[bx*512 + t*4 + v + 1]"),
            ("x[bx*512 + t*4 + v]", "x[bx*512 + t*4 + v*2]"),
            ("x: ptr f32 div 16", "x: ptr f32 div 8"),
        ] {
            let one = SCALE.replace(from, to).replace("store y[bx*512 + t*4 + v]", "store y[bx*512 + t*4 + v*3]");
            assert_ne!(one, SCALE);
            assert_eq!(refusals("wide_access", &one, &gpu(&[])), Vec::<String>::new(), "{to}");
        }
        // An index that differs from element to element in other ways.
        let gather = SCALE.replace("store y[bx*512 + t*4 + v]", "i: i32 = i32(b)\n      store y[i*4 + v]");
        let (out, _) = apply("wide_access", &kernel(&gather), &gpu(&[]));
        assert!(text(&out).contains("store y[i*4 + v_1] = b"), "{}", text(&out));
    }

    #[test]
    fn an_access_does_not_pass_another_of_the_same_memory() {
        let acquires =
            SCALE.replace("      a: f32 = load x", "      f: f32 = load y[0] acquire\n      a: f32 = load x");
        let (out, _) = apply("wide_access", &kernel(&acquires), &gpu(&[]));
        let (first, then) = (text(&out).find("acquire").unwrap(), text(&out).find("load x").unwrap());
        assert!(first < then, "{}", text(&out));
        for (first, then) in
            [("store y[bx*512 + t*4 + v] = 1.0", "load y"), ("store x[bx*512 + t*4 + v] = 1.0", "load x")]
        {
            let order = SCALE.replace("      a: f32 = load x", &format!("      {first}\n      a: f32 = {then}"));
            let order = order.replace("store y[bx*512 + t*4 + v] = b", "store y[t*3 + v*5] = b");
            let (out, _) = apply("wide_access", &kernel(&order), &gpu(&[]));
            let (store, load) = (text(&out).find("= 1.0").unwrap(), text(&out).find(then).unwrap());
            assert!(store < load, "{}", text(&out));
        }
    }
}
