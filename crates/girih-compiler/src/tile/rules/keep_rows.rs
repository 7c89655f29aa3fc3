//! `keep_rows`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::index::{Facts, simplify};
use crate::loops::ir::*;
use crate::loops::walk::{self, effects, refs};
use crate::tile::Context;
use crate::tile::edit::{self, const_trip, new_axis};
use crate::tile::target::MemoryKind;
use crate::tile::wide;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "keep_rows",
    doc: "\
Loads a row that the threads of a block go through more than once only once, and keeps it in their registers.

```text
for k in 0..1000: reduce thread combine max(m)   local x_k: f32[256, 4] private
  m <- max(x[b*1000 + k], m)                     for t in 0..256: thread: for e in 0..4:
for k in 0..1000: reduce thread combine add(s)     x_k[t, e] = x[b*1000 + e*256 + t]          where that is below 1000
  s <- exp(x[b*1000 + k] - m) + s         -->    for t in 0..256: reduce thread combine max(m)
for j in 0..1000: free                             for e in 0..4: m <- max(x_k[t, e], m)
  y[b*1000 + j] = exp(x[b*1000 + j] - m) / s     for t in 0..256: reduce thread combine add(s)
                                                   for e in 0..4: s <- exp(x_k[t, e] - m) + s
                                                 for t in 0..256: thread: for e in 0..4:
                                                   y[b*1000 + e*256 + t] = exp(x_k[t, e] - m) / s
```

Elements that one access moves stay together in a thread, so loads and stores are as wide as they were. Each thread folds its
elements in ascending order, then the threads combine.

Rows that are too long for registers go to shared memory, as long as they leave room there for a second block.

Knob: `keep_rows`, the most registers of a thread that rows may take (32); 0 turns the rule off.

Refuses rows of unknown length, those that take more of both, and arrays that the kernel stores to.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !p.open {
        return None;
    }
    let mut kernel = p.clone();
    let body = std::mem::take(&mut kernel.body);
    let stored = effects(&body).stores;
    let mut changed = false;
    kernel.body = blocks(&mut kernel, ctx, body, &stored, &mut changed, log);
    changed.then_some(kernel)
}

/// Statements inside loops over blocks.
fn blocks(
    kernel: &mut Kernel,
    ctx: &Context,
    mut body: Vec<Stmt>,
    stored: &BTreeSet<ValId>,
    changed: &mut bool,
    log: &mut Log,
) -> Vec<Stmt> {
    if let Some(new) = keep(kernel, ctx, &body, stored, log) {
        *changed = true;
        return new;
    }
    for s in &mut body {
        if let Stmt::For(f) = s
            && matches!(f.place, Place::Block { .. })
        {
            f.body = blocks(kernel, ctx, std::mem::take(&mut f.body), stored, changed, log);
        }
    }
    body
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

/// What a pass reads, the same for all passes that read it: the load with the pass' axis by one name.
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
    /// A buffer for it, and a value to load it by.
    fn buffer(&self, kernel: &mut Kernel, space: Space, shape: Vec<u64>) -> (BufId, ValId) {
        let name = kernel.params.iter().find(|p| p.val == self.mem.base).map_or("row", |p| p.name.as_str());
        let (name, ty) = (name.to_string(), Ty::Num(self.mem.elem));
        let buf = kernel.bufs.push(Buf { space, ..Buf::new(format!("{name}_k"), ty, shape) });
        (buf, kernel.vals.push(Val { ty, name }))
    }

    /// The load of one of its elements.
    fn load(&self, dst: ValId, element: &Ix, site: SiteId) -> Stmt {
        let mut at = |leaf: &Ix| (*leaf == Ix::Axis(ANY)).then(|| element.clone());
        let mem = Mem { index: self.mem.index.replace_leaves(&mut at), ..self.mem.clone() };
        Stmt::Load { dst, mem, mask: self.mask.replace_leaves(&mut at), other: self.other, order: Order::Weak, site }
    }
}

/// How the elements of a row lie among the threads: element `(e*threads + t)*lanes + l` is the thread's `e*lanes + l`.
#[derive(Clone, Copy)]
struct Share {
    extent: i64,
    threads: i64,
    lanes: i64,
}

impl Share {
    fn turns(self) -> i64 {
        (self.extent / self.lanes + self.threads - 1) / self.threads
    }

    /// Elements of a thread.
    fn own(self) -> i64 {
        self.turns() * self.lanes
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
    let threads = passes.iter().find_map(|(_, f)| f.combine.as_ref()).map(|c| i64::from(c.ways))?;
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
    let extents: BTreeSet<Option<i64>> = rows
        .iter()
        .flat_map(|(.., readers)| readers)
        .filter_map(|at| pass(&body[*at]))
        .map(|f| const_trip(f).map(|n| n as i64))
        .collect();
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
    let readers: BTreeSet<usize> = rows.iter().flat_map(|(.., readers)| readers.iter().copied()).collect();
    let lanes = together(kernel, ctx, body, &readers, extent, threads);
    let share = Share { extent, threads, lanes };
    let words = |row: &Row| (row.mem.elem.bytes().div_ceil(4) as i64).max(1) * share.own();
    let (needs, most) = (rows.iter().map(|(row, ..)| words(row)).sum::<i64>(), i64::from(ctx.knobs.keep_rows));
    let bytes: u64 = rows.iter().map(|(row, ..)| row.mem.elem.bytes().saturating_mul(extent as u64)).sum();
    let room = ctx.target.bytes_of(MemoryKind::Shared) / 2;
    if needs > most && most > 0 && bytes <= room {
        log.applied(format!("{site}: {bytes} bytes of shared memory"));
        return Some(shared(kernel, body, &rows, &readers, first, extent));
    }
    if needs > most {
        let registers =
            format!("{extent} elements take {needs} registers of each of {threads} threads, more than {most}");
        log.skipped(site, format!("{registers}, and {bytes} bytes of shared memory, more than {room}"));
        return None;
    }
    log.applied(format!("{site}: {needs} registers of each of {threads} threads"));
    let mut out = vec![];
    let mut kept: Vec<(Row, BufId)> = vec![];
    for (at, s) in body.iter().enumerate() {
        if at == first {
            for (row, site, _) in &rows {
                let made = fill(kernel, row, *site, share, &mut kept);
                out.extend(made);
            }
        }
        match pass(s) {
            Some(f) if readers.contains(&at) => out.push(through(kernel, f, share, &kept)),
            _ => out.push(s.clone()),
        }
    }
    Some(out)
}

/// Elements that one access takes: as many as everything in the passes takes together, if there are enough for all threads.
fn together(
    kernel: &Kernel,
    ctx: &Context,
    body: &[Stmt],
    readers: &BTreeSet<usize>,
    extent: i64,
    threads: i64,
) -> i64 {
    let of = |f: &For| {
        let varying = refs(&f.body).vals_defined;
        let accesses = f.body.iter().filter(|s| matches!(s, Stmt::Load { .. } | Stmt::Store { .. }));
        accesses.map(|s| wide::lanes(kernel, ctx, s, f.axis, extent as u64, &varying) as i64).min()
    };
    let all = readers.iter().filter_map(|at| of(pass(&body[*at])?)).min().unwrap_or(1);
    let enough = |lanes: &i64| extent / lanes >= threads || *lanes == 1;
    [16, 8, 4, 2, 1].into_iter().filter(|n| *n <= all).find(enough).unwrap_or(1)
}

/// Loops of a thread over its elements, and what is done with each: `inner` is given the subscript and the element.
fn own_elements(
    kernel: &mut Kernel,
    like: AxisId,
    t: AxisId,
    share: Share,
    kind: LoopKind,
    inner: impl FnOnce(&mut Kernel, Ix, Ix) -> Vec<Stmt>,
) -> Vec<Stmt> {
    let Share { extent, threads, lanes } = share;
    let (e, l) = (new_axis(kernel, like, "1"), new_axis(kernel, like, "2"));
    let mut facts = Facts::new();
    for (axis, n) in [(t, threads), (e, share.turns()), (l, lanes)] {
        facts.set_axis(axis, &Ix::Const(0), &Ix::Const(n));
    }
    let lane = if lanes > 1 { Ix::Axis(l) } else { Ix::Const(0) };
    let turn = if share.turns() > 1 { Ix::Axis(e) } else { Ix::Const(0) };
    let group = simplify(&(turn.clone() * Ix::Const(threads) + Ix::Axis(t)), &facts);
    let own = simplify(&(turn * Ix::Const(lanes) + lane.clone()), &facts);
    let element = simplify(&(group.clone() * Ix::Const(lanes) + lane), &facts);
    let mut body = inner(kernel, own, element);
    walk::map_ixs(&mut body, &mut |ix| *ix = simplify(ix, &facts));
    let unrolled =
        |axis, n: i64, body| edit::loop_with(axis, Ix::Const(n), body, |f| (f.kind, f.place) = (kind, Place::Unroll));
    if lanes > 1 {
        body = vec![unrolled(l, lanes, body)];
    }
    if extent % (threads * lanes) != 0 {
        let exists = Cond::new(group * Ix::Const(lanes), Cmp::Lt, Ix::Const(extent));
        body = edit::when(kernel, "mine", Mask { conds: vec![exists], vals: vec![] }, body, vec![]);
    }
    if share.turns() > 1 {
        body = vec![unrolled(e, share.turns(), body)];
    }
    body
}

/// The statements of a block with the rows in memory that its threads share.
fn shared(
    kernel: &mut Kernel,
    body: &[Stmt],
    rows: &[(Row, SiteId, Vec<usize>)],
    readers: &BTreeSet<usize>,
    first: usize,
    extent: i64,
) -> Vec<Stmt> {
    let mut kept = vec![];
    let mut out = vec![];
    for (at, s) in body.iter().enumerate() {
        if at == first {
            for (row, site, _) in rows {
                let (buf, dst) = row.buffer(kernel, Space::Shared, vec![extent as u64]);
                let axis = kernel.axes.push(Axis { name: "i".into(), from: None });
                let mut fill = vec![row.load(dst, &Ix::Axis(axis), *site)];
                fill.push(Stmt::Write { buf, idx: vec![Ix::Axis(axis)], value: Opnd::Val(dst) });
                out.push(Stmt::Local { buf });
                out.push(edit::free_loop(axis, Ix::Const(extent), fill));
                kept.push((row.clone(), buf));
            }
        }
        match pass(s) {
            Some(f) if readers.contains(&at) => {
                let idx = vec![Ix::Axis(f.axis)];
                let body = f.body.iter().map(|s| read(f, s, &kept, &idx).unwrap_or_else(|| s.clone())).collect();
                out.push(Stmt::For(Box::new(For { body, ..f.clone() })));
            }
            _ => out.push(s.clone()),
        }
    }
    out
}

/// The read of a kept row that a load of a pass becomes.
fn read(f: &For, s: &Stmt, kept: &[(Row, BufId)], idx: &[Ix]) -> Option<Stmt> {
    let (row, _) = Row::of(f, s)?;
    let (_, buf) = kept.iter().find(|(r, _)| *r == row)?;
    Some(Stmt::Read { dst: walk::def(s)?, buf: *buf, idx: idx.to_vec() })
}

/// A row's buffer, and the loop that loads it.
fn fill(kernel: &mut Kernel, row: &Row, site: SiteId, share: Share, kept: &mut Vec<(Row, BufId)>) -> Vec<Stmt> {
    let (buf, dst) = row.buffer(kernel, Space::Private, vec![share.threads as u64, share.own() as u64]);
    kept.push((row.clone(), buf));
    let t = kernel.axes.push(Axis { name: "t".into(), from: None });
    let body = own_elements(kernel, t, t, share, LoopKind::Free, |_, own, element| {
        let value = Opnd::Val(dst);
        vec![row.load(dst, &element, site), Stmt::Write { buf, idx: vec![Ix::Axis(t), own], value }]
    });
    let all = edit::loop_with(t, Ix::Const(share.threads), body, |f| f.place = Place::Thread);
    vec![Stmt::Local { buf }, all]
}

/// A pass whose threads go through the elements that they have.
fn through(kernel: &mut Kernel, f: &For, share: Share, kept: &[(Row, BufId)]) -> Stmt {
    let t = kernel.axes.push(Axis { name: "t".into(), from: None });
    let folds = f.kind == LoopKind::Reduce;
    let kind = if folds { LoopKind::Reduce } else { LoopKind::Free };
    let body = own_elements(kernel, f.axis, t, share, kind, |_, own, element| {
        let places = BTreeMap::from([(f.axis, element)]);
        let mut body = vec![];
        for s in &f.body {
            match read(f, s, kept, &[Ix::Axis(t), own.clone()]) {
                Some(read) => body.push(read),
                None => body.extend(edit::place_axes(std::slice::from_ref(s), &places, &BTreeMap::new())),
            }
        }
        body
    });
    let place = |new: &mut For| {
        new.place = Place::Thread;
        if folds {
            (new.kind, new.combine) = (LoopKind::Reduce, f.combine.clone());
        }
    };
    edit::loop_with(t, Ix::Const(share.threads), body, place)
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

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
        assert_eq!(log.applied, ["row along k: 4 registers of each of 256 threads"]);
        let made = text(&out);
        assert_eq!(made.matches("load x[").count(), 1, "{made}");
        for line in [
            "    local x_k: f32[256, 4] private\n",
            "          x_1: f32 = load x[b*1000 + t1*512 + t*2 + t2]\n",
            "    for t_1 in 0..256: reduce thread combine max(m) from -inf x 256\n",
            "          x1: f32 = x_k[t_1, k1*2 + k2]\n",
            "          store y[b*1000 + a*512 + t_2*2 + c] = d\n",
        ] {
            let line = line.replace("a*512", "j1*512").replace("+ c]", "+ j2]");
            assert!(made.contains(&line), "{line}{made}");
        }
        // Rows that divide have no test, those shorter than the threads one element each.
        let even = ROWS.replace("1000", "1024");
        let (out, _) = apply("keep_rows", &kernel(&even), &gpu(&[]));
        assert!(!text(&out).contains("test") && text(&out).contains("t*4 + t2]"), "{}", text(&out));
        let short = ROWS.replace("1000", "100");
        let (out, _) = apply("keep_rows", &kernel(&short), &gpu(&[]));
        assert!(text(&out).contains("f32[256, 1] private") && text(&out).contains("test t < 100"), "{}", text(&out));
    }

    #[test]
    fn what_cannot_be_kept_says_why() {
        for (from, to, why) in [
            (
                "1000",
                "90000",
                "row along k: 90000 elements take 352 registers of each of 256 threads, more than 32, and 360000 bytes of \
                 shared memory, more than 116224",
            ),
            ("store y[", "store x[", "row along k: the kernel stores to its array"),
            ("for j in 0..1000", "for j in 0..999", "row along k: its length is not known, or not the same everywhere"),
        ] {
            assert_eq!(refusals("keep_rows", &ROWS.replace(from, to), &gpu(&[])), [why], "{to}");
        }
        let long = ROWS.replace("1000", "9000");
        let (out, log) = apply("keep_rows", &kernel(&long), &gpu(&[]));
        assert_eq!(log.applied, ["row along k: 36000 bytes of shared memory"]);
        let made = text(&out);
        assert!(made.contains("local x_k: f32[9000] shared\n") && made.contains("x2: f32 = x_k[j]\n"), "{made}");
        // Nothing is read twice.
        let once = ROWS.replace("load x[b*1000 + j]", "load x[b*1000 + j + 1]");
        assert_eq!(refusals("keep_rows", &once, &gpu(&[])), Vec::<String>::new());
        let (out, _) = apply("keep_rows", &kernel(ROWS), &gpu(&["keep_rows=64"]));
        assert!(text(&out).contains("private"));
    }
}
