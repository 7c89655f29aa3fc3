//! `parallel_blocks`

use crate::base::rule::{Context, Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;

pub const RULE: Rule<Kernel> = Rule {
    name: "parallel_blocks",
    doc: "\
The blocks of the grid run on the worker pool.

```text
kernel add(...)            -->  kernel add(...) parallel
```

Never refuses: blocks are independent unless they say otherwise, by atomics or ordered accesses, and then the pool hands
them out one at a time in increasing order, so that a block may wait for any lower one. The site says which it is.
",
    run,
};

fn run(p: &Kernel, _: &Context, log: &mut Log) -> Option<Kernel> {
    if p.parallel {
        log.skipped("grid", "its blocks run in parallel already");
        return None;
    }
    let effects = walk::effects(&p.body);
    log.applied(if effects.ordered || effects.atomic { "grid, blocks claimed in order" } else { "grid" });
    Some(Kernel { parallel: true, ..p.clone() })
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel};

    #[test]
    fn blocks_that_may_wait_for_each_other_are_named() {
        let plain = kernel("loop kernel k(p: ptr i32):\n  store p[bx] = 1\n");
        let (out, log) = apply("parallel_blocks", &plain, &context());
        assert!(out.parallel);
        assert_eq!(log.applied, ["grid"]);
        let atomic = kernel("loop kernel k(p: ptr i32):\n  o: i32 = atomic add p[0], 1 relaxed\n");
        let (_, log) = apply("parallel_blocks", &atomic, &context());
        assert_eq!(log.applied, ["grid, blocks claimed in order"]);
    }
}
