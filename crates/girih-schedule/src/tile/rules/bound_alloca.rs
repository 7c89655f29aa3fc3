//! `bound_alloca`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::primitives::bound::Bounded;
use crate::tile::primitives::line::memories;
use crate::tile::primitives::{self, Step};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "bound_alloca",
    doc: "\
Keeps a program within memory that it takes for its block: accesses past its end do nothing, so that they harm no one else's
memory. Where accesses are checked, and on the simulator, they stop the kernel.

```text
p: ptr f32 = alloca 512 align 64                 p: ptr f32 = alloca 512 align 64
for i in 0..128: free                            for i in 0..128: free
  store p[i] = v                                   store p[i] = v
  store p[i + n] = v                      -->      store p[i + n] = v where 0 <= i + n and i + n < 128
```

A computed address is compared as a number with that of the memory. An address that may belong to that memory or to another one is
accompanied by the beginning and the size of its memory. Refuses addresses that are chosen by other operations than `select`.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let memories = memories(&p.body);
    if memories.is_empty() {
        return vec![];
    }
    let Bounded { done, refused, .. } = Bounded::of(p, ctx.check, &memories);
    refused.into_iter().for_each(|(name, why)| log.skipped(name, why));
    done.iter().for_each(|name| log.applied(name.clone()));
    if done.is_empty() { vec![] } else { vec![Step::Bound { memories }] }
}

#[cfg(test)]
mod tests {
    use crate::tile::Context;
    use crate::tile::tests::{apply, context, gpu, kernel, text};

    const SHIFTED: &str = r#"loop kernel k(x: ptr f32, y: ptr f32, n: i32):
  p: ptr f32 = alloca 512 align 64
  for i in 0..128: free
    v: f32 = load x[i]
    store p[i] = v
    store p[i + n] = v where i < n
  for j in 0..128: free
    w: f32 = load p[127 - j]
    store y[j] = w
"#;

    #[test]
    fn what_may_leave_the_memory_does_nothing_there() {
        let (out, log) = apply("bound_alloca", &kernel(SHIFTED), &context());
        assert_eq!(log.applied, ["p"]);
        let made = text(&out);
        let bounded: Vec<&str> = made.lines().filter(|l| l.contains("0 <= i + n")).collect();
        assert!(bounded.len() == 1 && bounded[0].contains("store p[i + n] = v where "), "{made}");
        assert!(bounded[0].contains("i < n") && bounded[0].contains("i + n < 128"), "{made}");
        assert!(made.contains("    store p[i] = v\n") && made.contains("load p[127 - j]\n"), "{made}");
        // A bounded access stays unchanged.
        assert!(apply("bound_alloca", &out, &gpu(&[])).1.applied.is_empty());
    }

    #[test]
    fn what_is_checked_stops() {
        let (out, _) = apply("bound_alloca", &kernel(SHIFTED), &Context { check: true, ..context() });
        let text = text(&out);
        assert!(text.contains("an index is outside of the block's memory `p`, which holds 128 elements"), "{text}");
        assert!(text.contains("active: i1 = test i < n"), "{text}");
    }

    #[test]
    fn computed_addresses_are_compared_as_numbers() {
        let moved = SHIFTED.replace("    store y[j] = w\n", "    q: ptr f32 = p + 1:i64\n    store q[j] = w\n");
        let (out, _) = apply("bound_alloca", &kernel(&moved), &context());
        let text = text(&out);
        assert!(text.contains("apart: i64 = "), "{text}");
        let bounded = text.lines().find(|l| l.contains("store q[j] = w where ")).expect("a bounded store");
        assert!(bounded.contains("0 <= ") && bounded.contains("apart") && bounded.contains("< 509"), "{text}");
    }

    /// The memory that is chosen is the one that counts.
    #[test]
    fn an_address_of_either_goes_with_its_extent() {
        let alone = SHIFTED.replace("    store p[i + n] = v where i < n\n", "");
        let either = alone.replace(
            "    store y[j] = w\n",
            "    c: i1 = test j < n\n    q: ptr f32 = select(c, p, y)\n    store q[j] = w\n",
        );
        let (out, log) = apply("bound_alloca", &kernel(&either), &context());
        assert_eq!(log.applied, ["p"]);
        let made = text(&out);
        assert!(made.contains("start_1: i64 = select(c, start, 0)"), "{made}");
        assert!(made.contains("bytes: i64 = select(c, 512, "), "{made}");
        assert!(made.contains("store q[j] = w where 0 <= apart + j*4 and apart + j*4 < bytes - 3"), "{made}");
    }

    #[test]
    fn an_address_that_is_carried_takes_its_extent_along() {
        let alone = SHIFTED.replace("    store p[i + n] = v where i < n\n", "");
        let carried = alone.replace(
            "    store y[j] = w\n",
            "    local b: ptr f32\n    b = y\n    if n_0:\n      b = p\n    q: ptr f32 = b\n    store q[j] = w\n",
        );
        let carried = carried.replace("  for j in", "  n_0: i1 = test 0 < n\n  for j in");
        let made = text(&apply("bound_alloca", &kernel(&carried), &context()).0);
        for line in ["local b_start: i64", "b_start = start", "b_bytes = 512", "bytes: i64 = b_bytes"] {
            assert!(made.contains(line), "{line}\n{made}");
        }
    }
}
