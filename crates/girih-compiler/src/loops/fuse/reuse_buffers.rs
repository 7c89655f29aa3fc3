//! A buffer that begins where another of its kind ends takes its storage.

use super::coalesce_carried::rename;
use crate::base::rule::{Context, Log, Rule};
use crate::index::Ix;
use crate::loops::ir::{BufId, Kernel, Stmt};
use crate::loops::walk::{self, Part};

pub const RULE: Rule<Kernel> = Rule {
    name: "007_reuse_buffers",
    doc: "\
Where the last loop that reads one buffer is the first that writes another of the same type and shape, element by element,
the second takes the first's storage.

```text
for j: e[j] = exp(x[j])     -->     for j: x[j] = exp(x[j])
for j: C[j] = e[j]                  for j: C[j] = x[j]
```

Refused unless every use of the old element comes before every use of the new one.",
    run,
};

fn run(kernel: &Kernel, _ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let mut kernel = kernel.clone();
    let mut body = std::mem::take(&mut kernel.body);
    let applied = log.applied.len();
    list(&kernel, &mut body, log);
    kernel.body = body;
    (log.applied.len() > applied).then_some(kernel)
}

fn list(kernel: &Kernel, body: &mut Vec<Stmt>, log: &mut Log) {
    for s in body.iter_mut() {
        for inner in walk::bodies_mut(s) {
            list(kernel, inner, log);
        }
    }
    let declared = |body: &[Stmt]| -> Vec<BufId> {
        body.iter().filter_map(|s| if let Stmt::Local { buf } = s { Some(*buf) } else { None }).collect()
    };
    let mut rest = declared(body);
    while !rest.is_empty() {
        let old = rest.remove(0);
        // The new one may in turn be replaced, so the same old buffer is tried until nothing follows it.
        while let Some(at) = rest.iter().position(|&new| follows(kernel, body, old, new)) {
            let new = rest.remove(at);
            log.applied(format!("{} in {}", kernel.bufs[new].name, kernel.bufs[old].name));
            body.retain(|s| !matches!(s, Stmt::Local { buf } if *buf == new));
            rename(body, new, old);
        }
    }
}

fn follows(kernel: &Kernel, body: &[Stmt], old: BufId, new: BufId) -> bool {
    let (a, b) = (&kernel.bufs[old], &kernel.bufs[new]);
    if a.shape.is_empty() || a.shape != b.shape || a.ty != b.ty {
        return false;
    }
    // Storage that is only shared between different loops is shared when scratch memory is laid out.
    let last = body.iter().rposition(|s| uses(s, old));
    last.is_some() && last == body.iter().position(|s| uses(s, new)) && ends_before(body, old, new)
}

/// Whether, in every run of the list, the last use of `old` comes before the first of `new`, element by element.
fn ends_before(body: &[Stmt], old: BufId, new: BufId) -> bool {
    let (Some(last), Some(first)) = (body.iter().rposition(|s| uses(s, old)), body.iter().position(|s| uses(s, new)))
    else {
        return true;
    };
    if last != first {
        return last < first;
    }
    let Stmt::For(f) = &body[last] else { return false };
    let mut common: Option<Vec<usize>> = None;
    walk::visit(&f.body, &mut |s| {
        if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s
            && (*buf == old || *buf == new)
        {
            let here = |d: &usize| idx.get(*d) == Some(&Ix::Axis(f.axis));
            let dims = match common.take() {
                None => (0..idx.len()).filter(here).collect(),
                Some(dims) => dims.into_iter().filter(here).collect(),
            };
            common = Some(dims);
        }
    });
    common.is_some_and(|dims: Vec<usize>| !dims.is_empty()) && ends_before(&f.body, old, new)
}

fn uses(s: &Stmt, buf: BufId) -> bool {
    let mut found = false;
    walk::visit(std::slice::from_ref(s), &mut |s| {
        walk::parts(s, &mut |p| {
            if let Part::ReadBuf(b) | Part::WriteBuf(b) | Part::RoleBuf(b) = p {
                found |= *b == buf;
            }
        });
    });
    found
}
