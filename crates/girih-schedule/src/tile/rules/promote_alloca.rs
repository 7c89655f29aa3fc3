//! `promote_alloca`

use std::collections::BTreeMap;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::{self, Part, parts};
use crate::tile::Context;
use crate::tile::edit::{self, Visit};

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

Refuses memory whose address is used for anything but loads and stores of its own elements: an address that is passed on, moved by
offsets that differ, or read as another type, and atomics.
",
    run,
};

fn run(p: &Kernel, _: &Context, log: &mut Log) -> Option<Kernel> {
    let mut found: BTreeMap<ValId, Result<(), &'static str>> = BTreeMap::new();
    walk::visit(&p.body, &mut |s| {
        if let Stmt::Alloca { dst, .. } = s {
            found.insert(*dst, Ok(()));
        }
    });
    if found.is_empty() {
        return None;
    }
    walk::visit(&p.body, &mut |s| {
        let own = match s {
            Stmt::Load { mem, order, .. } | Stmt::Store { mem, order, .. } => {
                if let Some(state) = found.get_mut(&mem.base) {
                    let same = p.vals[mem.base].ty == Ty::Ptr(mem.elem) && mem.elem.bits() >= 8;
                    if !same || *order != Order::Weak {
                        *state = Err("an access is ordered, or of another type than its elements");
                    }
                }
                Some(mem.base)
            }
            _ => None,
        };
        let mut uses = 0;
        walk::each_use(s, &mut |v| {
            uses += usize::from(own == Some(v));
            if let Some(state) = found.get_mut(&v)
                && (own != Some(v) || uses > 1)
            {
                *state = Err("its address is used for more than loads and stores of its elements");
            }
        });
        parts(s, &mut |part| {
            if let Part::Ix(ix) = part {
                for v in ix.vals() {
                    if let Some(state) = found.get_mut(&v) {
                        *state = Err("its address is used for more than loads and stores of its elements");
                    }
                }
            }
        });
    });
    let mut kernel = p.clone();
    let mut promoted = BTreeMap::new();
    walk::visit(&p.body, &mut |s| {
        let Stmt::Alloca { dst, bytes, .. } = s else { return };
        let (Some(state), Ty::Ptr(dtype)) = (found.get(dst), p.vals[*dst].ty) else { return };
        let name = p.vals[*dst].name.clone();
        match state {
            Err(why) => log.skipped(name, *why),
            Ok(()) => {
                let elements = (bytes / dtype.bytes()).max(1);
                log.applied(format!("{name}: {elements} elements"));
                let buf = kernel.bufs.push(Buf::new(name, Ty::Num(dtype), vec![elements]));
                promoted.insert(*dst, buf);
            }
        }
    });
    if promoted.is_empty() {
        return None;
    }
    edit::rewrite(&kernel, &mut |kernel, s| match s {
        Stmt::Alloca { dst, .. } => match promoted.get(dst) {
            Some(to) => Visit::Replace(vec![Stmt::Local { buf: *to }]),
            None => Visit::Leave,
        },
        Stmt::Load { dst, mem, mask, other, .. } => match promoted.get(&mem.base) {
            Some(to) => Visit::Replace(load(kernel, *to, *dst, &mem.index, mask, *other)),
            None => Visit::Leave,
        },
        Stmt::Store { mem, value, mask, .. } => match promoted.get(&mem.base) {
            Some(to) => {
                let write = Stmt::Write { buf: *to, idx: vec![mem.index.clone()], value: *value };
                Visit::Replace(match mask.is_always() {
                    true => vec![write],
                    false => edit::when(kernel, "stored", mask.clone(), vec![write], vec![]),
                })
            }
            None => Visit::Leave,
        },
        _ => Visit::Into,
    })
}

/// A load as a read; where its mask does not hold, nothing is read.
fn load(kernel: &mut Kernel, to: BufId, dst: ValId, index: &Ix, mask: &Mask, other: Option<Opnd>) -> Vec<Stmt> {
    let idx = vec![index.clone()];
    if mask.is_always() {
        return vec![Stmt::Read { dst, buf: to, idx }];
    }
    let Val { ty, name } = kernel.vals[dst].clone();
    let chosen = kernel.bufs.push(Buf::new(name.clone(), ty, vec![]));
    let read = kernel.vals.push(Val { ty, name });
    let set = |value| Stmt::Write { buf: chosen, idx: vec![], value };
    let value = other.unwrap_or(Opnd::Const { dtype: ty.held(), bits: 0 });
    let then = vec![Stmt::Read { dst: read, buf: to, idx }, set(Opnd::Val(read))];
    let mut out = vec![Stmt::Local { buf: chosen }, set(value)];
    out.extend(edit::when(kernel, "loaded", mask.clone(), then, vec![]));
    out.push(Stmt::Read { dst, buf: chosen, idx: vec![] });
    out
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
