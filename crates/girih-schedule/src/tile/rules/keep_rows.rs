//! `keep_rows`

use std::collections::BTreeSet;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::{self, effects, refs};
use crate::tile::Context;
use crate::tile::edit::{self, const_trip};
use crate::tile::target::MemoryKind;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "keep_rows",
    doc: "\
Loads a row only once, into a tile of the block, if the threads of the block go through it more than once.

```text
for k in 0..1000: reduce thread combine max(m)   local x_k: f32[1000]
  m <- max(x[b*1000 + k], m)                     for i in 0..1000: free
for k in 0..1000: reduce thread combine add(s)     x_k[i] = x[b*1000 + i]
  s <- exp(x[b*1000 + k] - m) + s         -->    for k in 0..1000: reduce thread combine max(m)
for j in 0..1000: free                             m <- max(x_k[k], m)
  y[b*1000 + j] = exp(x[b*1000 + j] - m) / s     for k in 0..1000: reduce thread combine add(s)
                                                   s <- exp(x_k[k] - m) + s
                                                 for j in 0..1000: free
                                                   y[b*1000 + j] = exp(x_k[j] - m) / s
```

`keep_tiles` then keeps the tile in the threads' registers; a tile that is too long for them stays in shared memory.

Knob: `keep_rows` (0 turns the rule off).

Refuses rows of unknown length, rows that leave no room in shared memory for a second block, and arrays that the kernel stores to.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !p.open {
        return None;
    }
    let stored = effects(&p.body).stores;
    edit::rewrite_blocks(p, &mut |kernel, _, body| keep(kernel, ctx, body, &stored, log))
}

/// A loop that goes through a row: all threads fold it together, or do something with each element.
fn pass(s: &Stmt) -> Option<&For> {
    let Stmt::For(f) = s else { return None };
    let straight = f.body.iter().all(|s| walk::bodies(s).is_empty());
    let counts = f.lo.is_const(0) && f.step.is_const(1) && straight;
    let folds = f.kind == LoopKind::Reduce && f.place == Place::Thread && f.combine.is_some();
    let each = f.kind == LoopKind::Free && f.place == Place::None;
    (counts && (folds || each)).then_some(f)
}

/// The row that a pass reads: a load in which the axis of every pass has one name, so that it is equal for all passes over the row.
#[derive(Clone, PartialEq)]
struct Row {
    mem: Mem,
    mask: Mask,
    other: Option<Opnd>,
}

/// Stands for the axis of whatever pass reads a row; no axis of a kernel has this number.
const ANY: AxisId = AxisId(u32::MAX);

impl Row {
    /// The row, and the operation that reads it.
    fn of(f: &For, s: &Stmt) -> Option<(Row, SiteId)> {
        let Stmt::Load { mem, mask, other, order: Order::Weak, site, .. } = s else { return None };
        let own = refs(&f.body).vals_defined;
        if !walk::refs_of(s).vals_used.is_disjoint(&own) || !mem.index.has_axis(f.axis) {
            return None;
        }
        let mut any = |leaf: &Ix| (*leaf == Ix::Axis(f.axis)).then_some(Ix::Axis(ANY));
        let index = mem.index.replace_leaves(&mut any);
        let mask = mask.replace_leaves(&mut any);
        Some((Row { mem: Mem { index, ..mem.clone() }, mask, other: *other }, *site))
    }
}

impl Row {
    /// A buffer for all of it, and the loop that loads it.
    fn tile(&self, kernel: &mut Kernel, extent: u64, site: SiteId) -> (BufId, [Stmt; 2]) {
        let name = kernel.params.iter().find(|p| p.val == self.mem.base).map_or("row", |p| p.name.as_str());
        let (name, ty) = (name.to_string(), Ty::Num(self.mem.elem));
        let buf = kernel.bufs.push(Buf::new(format!("{name}_k"), ty, vec![extent]));
        let dst = kernel.vals.push(Val { ty, name });
        let axis = kernel.axes.push(Axis { name: "i".into(), from: None });
        let mut at = |leaf: &Ix| (*leaf == Ix::Axis(ANY)).then_some(Ix::Axis(axis));
        let mem = Mem { index: self.mem.index.replace_leaves(&mut at), ..self.mem.clone() };
        let mask = self.mask.replace_leaves(&mut at);
        let load = Stmt::Load { dst, mem, mask, other: self.other, order: Order::Weak, site };
        let write = Stmt::Write { buf, idx: vec![Ix::Axis(axis)], value: Opnd::Val(dst) };
        (buf, [Stmt::Local { buf }, edit::free_loop(axis, Ix::Const(extent as i64), vec![load, write])])
    }
}

/// The statements of a block with the rows kept that they read more than once.
fn keep(
    kernel: &mut Kernel,
    ctx: &Context,
    body: &[Stmt],
    stored: &BTreeSet<ValId>,
    log: &mut Log,
) -> Option<Vec<Stmt>> {
    let passes: Vec<(usize, &For)> = body.iter().enumerate().filter_map(|(at, s)| Some((at, pass(s)?))).collect();
    passes.iter().find(|(_, f)| f.combine.is_some())?;
    // Each row, and the passes that read it.
    let mut rows: Vec<(Row, SiteId, Vec<usize>)> = vec![];
    for (at, f) in &passes {
        for (row, site) in f.body.iter().filter_map(|s| Row::of(f, s)) {
            match rows.iter_mut().find(|(r, ..)| *r == row) {
                Some((.., readers)) if readers.contains(at) => {}
                Some((.., readers)) => readers.push(*at),
                None => rows.push((row, site, vec![*at])),
            }
        }
    }
    rows.retain(|(.., readers)| readers.len() > 1);
    let (.., readers) = rows.first()?;
    let extents: BTreeSet<Option<u64>> =
        rows.iter().flat_map(|(.., readers)| readers).filter_map(|at| pass(&body[*at])).map(const_trip).collect();
    let first = *readers.iter().min()?;
    let site = kernel.axes.get(pass(&body[first])?.axis).map_or(String::new(), |a| format!("row along {}", a.name));
    let extent = match extents.into_iter().collect::<Vec<_>>()[..] {
        [Some(extent)] if extent > 0 => extent,
        _ => {
            log.skipped(site, "its length is not known, or not the same everywhere");
            return None;
        }
    };
    if rows.iter().any(|(row, ..)| stored.contains(&row.mem.base)) {
        log.skipped(site, "the kernel stores to its array");
        return None;
    }
    let bytes: u64 = rows.iter().map(|(row, ..)| row.mem.elem.bytes().saturating_mul(extent)).sum();
    let room = ctx.target.bytes_of(MemoryKind::Shared) / 2;
    if !ctx.knobs.keep_rows || bytes > room {
        let long = format!("{extent} elements take {bytes} bytes of shared memory, more than {room}");
        log.skipped(site, if ctx.knobs.keep_rows { long } else { "knob off".into() });
        return None;
    }
    log.applied(format!("{site}: {bytes} bytes"));
    let mut kept = vec![];
    let mut out = vec![];
    for (at, s) in body.iter().enumerate() {
        if at == first {
            for (row, site, _) in &rows {
                let (buf, made) = row.tile(kernel, extent, *site);
                out.extend(made);
                kept.push((row, buf));
            }
        }
        out.push(match pass(s) {
            Some(f) => {
                let body = f.body.iter().map(|s| read(f, s, &kept).unwrap_or_else(|| s.clone())).collect();
                Stmt::For(Box::new(For { body, ..f.clone() }))
            }
            None => s.clone(),
        });
    }
    Some(out)
}

/// The read of a kept row that a load of a pass becomes.
fn read(f: &For, s: &Stmt, kept: &[(&Row, BufId)]) -> Option<Stmt> {
    let (row, _) = Row::of(f, s)?;
    let (_, buf) = kept.iter().find(|(r, _)| **r == row)?;
    Some(Stmt::Read { dst: walk::def(s)?, buf: *buf, idx: vec![Ix::Axis(f.axis)] })
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, schedule, text};

    const ROWS: &str = r#"tile kernel k(x: ptr f32, y: ptr f32) open:
  for b in 0..64: free block(x)
    local m: f32
    m = -inf
    for k in 0..1000: reduce thread combine max(m) from -inf x 256
      x1: f32 = load x[b*1000 + k]
      m0: f32 = m
      m1: f32 = max(x1, m0)
      m = m1
    top: f32 = m
    for j in 0..1000: free
      x2: f32 = load x[b*1000 + j]
      d: f32 = x2 - top
      store y[b*1000 + j] = d
"#;

    #[test]
    fn a_row_is_loaded_once() {
        let (out, log) = apply("keep_rows", &kernel(ROWS), &gpu(&[]));
        assert_eq!(log.applied, ["row along k: 4000 bytes"]);
        let made = text(&out);
        assert_eq!(made.matches("load x[").count(), 1, "{made}");
        for line in
            ["local x_k: f32[1000]\n", "x_1: f32 = load x[b*1000 + i]\n", "x1: f32 = x_k[k]\n", "x2: f32 = x_k[j]\n"]
        {
            assert!(made.contains(line), "{line}{made}");
        }
        // Nothing is read twice.
        let once = ROWS.replace("load x[b*1000 + j]", "load x[b*1000 + j + 1]");
        assert_eq!(refusals("keep_rows", &once, &gpu(&[])), Vec::<String>::new());
    }

    #[test]
    fn it_stays_in_registers_where_it_fits() {
        let all = |rows: &str, knobs: &[&str]| text(&schedule(&kernel(rows), &gpu(knobs)));
        let made = all(ROWS, &[]);
        assert!(made.contains("local x_k: f32[256, 4] private\n") && made.contains("*512 + t*2 + "), "{made}");
        // Rows that divide have no test, those shorter than the threads one element each.
        let even = all(&ROWS.replace("1000", "1024"), &[]);
        assert!(!even.contains("test") && even.contains("t*4 + "), "{even}");
        assert!(all(&ROWS.replace("1000", "100"), &[]).contains("f32[256, 1] private"));
        for made in [all(&ROWS.replace("1000", "20000"), &[]), all(ROWS, &["keep_tiles=0"])] {
            assert!(made.contains("shared\n") && !made.contains("private"), "{made}");
        }
    }

    #[test]
    fn what_cannot_be_kept_says_why() {
        for (from, to, why) in [
            ("1000", "90000", "row along k: 90000 elements take 360000 bytes of shared memory, more than 116224"),
            ("store y[", "store x[", "row along k: the kernel stores to its array"),
            ("for j in 0..1000", "for j in 0..999", "row along k: its length is not known, or not the same everywhere"),
        ] {
            assert_eq!(refusals("keep_rows", &ROWS.replace(from, to), &gpu(&[])), [why], "{to}");
        }
        assert_eq!(refusals("keep_rows", ROWS, &gpu(&["keep_rows=0"])), ["row along k: knob off"]);
    }
}
