//! 001_parallel_blocks

use crate::base::rule::{Context, Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;

pub const RULE: Rule<Kernel> = Rule {
    name: "001_parallel_blocks",
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
