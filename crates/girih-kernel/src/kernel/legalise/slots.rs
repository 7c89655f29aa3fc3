//! Assigns local buffers their places in the scratch and in shared memory: slots of the scratch whose buffers' lives do
//! not overlap share bytes.
//!
//! In the scratch, long buffers that live at the same time begin at different places of a page. A processor compares the places
//! first when it asks whether a load reads what an earlier store still holds, and waits where they are the same: passes that
//! read and write elements of four rows of 4096 bytes took 0.73 us together, and take 0.51 since they lie apart (Zen 4).
//!
//! In shared memory each buffer has bytes of its own as long as there is room, but for those behind stages (`tile/reuse.rs`): sharing
//! bytes takes barriers. Where the room does not suffice, buffers whose lives do not overlap share bytes there too.
//!
//! A buffer lives from its declaration to its last use; a use inside a loop that does not hold the declaration lasts to
//! the end of that loop. Statements are numbered in program order; slots are placed first-fit, 64-byte aligned.

use super::{Res, SCRATCH_LIMIT, pipeline};
use crate::loops::ir as l;
use crate::loops::walk;
use crate::tile::{boxes, reuse};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

pub struct Slots {
    offsets: FxHashMap<l::BufId, u64>,
    /// Bytes of the memory that the threads of a block share.
    pub shared: u64,
    /// For a buffer in shared memory: the buffers that share bytes with it and that threads may still read when its
    /// life begins.
    pub met: BTreeMap<l::BufId, Vec<l::BufId>>,
    /// Byte offsets of the allocas not yet met, in program order: in shared memory where a block has several threads.
    allocas: std::collections::VecDeque<u64>,
    pub total: u64,
}

struct Life {
    start: u32,
    end: u32,
    /// The loops that hold the declaration.
    depth: usize,
}

#[derive(Default)]
struct Scan {
    clock: u32,
    lives: Vec<(l::BufId, Life)>,
    place: FxHashMap<l::BufId, usize>,
    /// Enclosing loops: the buffers used in each.
    loops: Vec<Vec<l::BufId>>,
    allocas: Vec<(u64, u64)>,
    /// Some alloca is made by each thread of a loop over threads.
    own_allocas: bool,
    in_threads: bool,
    /// The number of generations of a pipeline's stages, and the generation that threads may still read when the
    /// pipeline has ended.
    generations: FxHashMap<l::BufId, (u64, Option<u64>)>,
}

const ALIGN: u64 = 64;
/// The bytes of a page, buffers long enough to be at many of its places, how far apart these begin in it, and by how much one moves
/// that begins too near: an odd number of lines, so that buffers come to all places.
const PAGE: u64 = 4096;
const LONG: u64 = 1024;
const NEAR: u64 = 256;
const MOVE: u64 = 13 * ALIGN;
/// The alignment of slots in shared memory: that of a thread's widest access.
const SHARED_ALIGN: u64 = 16;
/// The alignment of boxes that TMA copies.
const BOX_ALIGN: u64 = 128;

impl Slots {
    pub fn offset(&self, buf: l::BufId) -> u64 {
        self.offsets.get(&buf).copied().unwrap_or(0)
    }

    /// The offset of the next alloca in program order.
    pub fn next_alloca(&mut self) -> Option<u64> {
        self.allocas.pop_front()
    }

    /// The places of the buffers and of the memory that is taken by its address, in blocks of `threads` threads that can have `room`
    /// bytes of shared memory.
    pub fn assign(kernel: &l::Kernel, threads: u32, room: u64) -> Res<Slots> {
        let mut scan = Scan::default();
        scan.block(kernel, &kernel.body)?;
        if threads > 1 && scan.own_allocas {
            return Err(
                "each thread of a block would take memory by its address; take it before the loop over threads"
                    .to_string(),
            );
        }
        let own = scan.placed(kernel, threads, &FxHashMap::default())?;
        let turns = if own.shared > room { scan.turns(kernel) } else { FxHashMap::default() };
        if turns.is_empty() { Ok(own) } else { scan.placed(kernel, threads, &turns) }
    }
}

/// The lives of buffers in shared memory that may take turns with their bytes.
type Turns = FxHashMap<l::BufId, (u32, u32)>;

/// A buffer in shared memory, where it lies, and its length.
type Used = (l::BufId, u64, u64);

impl Scan {
    fn placed(&self, kernel: &l::Kernel, threads: u32, turns: &Turns) -> Res<Slots> {
        let scan = self;
        let mut placed: Vec<(u32, u32, u64, u64)> = Vec::new();
        let mut offsets = FxHashMap::default();
        let (mut total, mut shared) = (0u64, 0u64);
        let boxes = boxes::copied(kernel);
        let behind = reuse::behind_stages(kernel);
        let mut used: Vec<Used> = vec![];
        let apart = |a: l::BufId, b: l::BufId| match (turns.get(&a), turns.get(&b)) {
            (Some(a), Some(b)) => a.1 < b.0 || b.1 < a.0,
            _ => false,
        };
        for (buf, life) in &scan.lives {
            let b = kernel.bufs.get(*buf).ok_or("a buffer is not declared")?;
            let generations = scan.generations.get(buf).map_or(1, |(count, _)| *count);
            let bytes = byte_len(b).and_then(|n| n.checked_mul(generations));
            let bytes = bytes.ok_or_else(|| too_large(&kernel.name, u64::MAX))?;
            match b.space {
                l::Space::Kept { .. } => {}
                l::Space::Scratch | l::Space::Private if !b.shape.is_empty() => {}
                l::Space::Scratch | l::Space::Register { .. } | l::Space::Private => continue,
                l::Space::Shared => {
                    let align =
                        if boxes.contains(buf) { BOX_ALIGN.max(u64::from(b.swizzle) * 8) } else { SHARED_ALIGN };
                    if !offsets.contains_key(buf) {
                        let free = behind.get(buf).map_or(&[][..], |b| b);
                        let busy = used.iter().filter(|(b, _, _)| !free.contains(b) && !apart(*b, *buf));
                        let busy = busy.map(|(_, at, len)| (*at, *len));
                        let at = first_fit(busy.collect(), bytes, align, false);
                        offsets.insert(*buf, at);
                        used.push((*buf, at, bytes));
                        shared = shared.max(at.saturating_add(bytes).next_multiple_of(SHARED_ALIGN));
                    }
                    continue;
                }
            }
            let kept = matches!(b.space, l::Space::Kept { .. });
            let (life_start, life_end) = if kept { (0, u32::MAX) } else { (life.start, life.end) };
            let busy = placed
                .iter()
                .filter(|(start, end, _, _)| *start <= life_end && life_start <= *end)
                .map(|&(_, _, at, len)| (at, len));
            let at = first_fit(busy.collect(), bytes, ALIGN, threads <= 1);
            placed.push((life_start, life_end, at, bytes));
            offsets.insert(*buf, at);
            total = total.max(at.saturating_add(bytes));
            if total > SCRATCH_LIMIT {
                return Err(too_large(&kernel.name, total));
            }
        }
        let mut allocas = std::collections::VecDeque::new();
        for &(bytes, align) in &scan.allocas {
            if threads > 1 {
                let at = shared.next_multiple_of(align.clamp(SHARED_ALIGN, BOX_ALIGN));
                allocas.push_back(at);
                shared = at.saturating_add(bytes).checked_next_multiple_of(SHARED_ALIGN).unwrap_or(u64::MAX);
                continue;
            }
            let at = total.next_multiple_of(align.clamp(ALIGN, 4096));
            allocas.push_back(at);
            total = at.saturating_add(bytes);
            if total > SCRATCH_LIMIT {
                return Err(too_large(&kernel.name, total));
            }
        }
        let mut met = scan.met(kernel, &used, &behind);
        met.extend(in_turn(used, turns));
        // Vector code may read a whole last vector's worth at most up to the end of a slot, never past it.
        Ok(Slots { offsets, shared, met, allocas, total: total.next_multiple_of(ALIGN) })
    }
}

/// For each of the buffers that take turns with bytes: the first of those that its bytes connect it with, which stands for all of
/// them. Where one of them is written, threads are done with the others.
fn in_turn(mut used: Vec<Used>, turns: &Turns) -> Vec<(l::BufId, Vec<l::BufId>)> {
    used.retain(|(buf, ..)| turns.contains_key(buf));
    used.sort_unstable_by_key(|(_, at, _)| *at);
    let mut out = vec![];
    let mut connected: Option<(l::BufId, u64)> = None;
    for (buf, at, len) in used {
        let (first, end) = connected.filter(|(_, end)| at < *end).unwrap_or((buf, at));
        connected = Some((first, end.max(at + len)));
        out.push((buf, vec![first]));
    }
    out
}

/// The first free offset for `bytes` bytes; `busy` holds the offset and length of each allocation. With `staggered`, one where no
/// other long allocation begins near the same place of a page.
fn first_fit(mut busy: Vec<(u64, u64)>, bytes: u64, align: u64, staggered: bool) -> u64 {
    busy.sort_unstable();
    let long: Vec<u64> =
        busy.iter().filter(|(_, len)| staggered && bytes.min(*len) >= LONG).map(|(at, _)| *at).collect();
    let near = |at: u64| long.iter().any(|&other| at.wrapping_sub(other).wrapping_add(NEAR) % PAGE < 2 * NEAR);
    // More buffers than a page has places lie as they come.
    let moved = |at: u64| (0..PAGE / ALIGN).map(|n| at.saturating_add(n * MOVE)).find(|&at| !near(at)).unwrap_or(at);
    let mut at = 0u64;
    for (start, len) in busy {
        if at.saturating_add(bytes) <= start {
            break;
        }
        at = at.max(moved(start.saturating_add(len).next_multiple_of(align)));
    }
    at
}

fn too_large(name: &str, bytes: u64) -> String {
    format!("kernel {name} needs {bytes} bytes of scratch memory per worker; the limit is {SCRATCH_LIMIT} bytes")
}

/// The extents of a buffer in its space; for a private buffer, those of one thread's part.
pub(super) fn own_shape(buf: &l::Buf) -> &[u64] {
    match (buf.space, &buf.shape[..]) {
        (l::Space::Private, [_, own @ ..]) => own,
        (_, all) => all,
    }
}

fn byte_len(buf: &l::Buf) -> Option<u64> {
    own_shape(buf).iter().try_fold(buf.element_bytes(), |n, &d| n.checked_mul(d))
}

impl Scan {
    fn declare(&mut self, buf: l::BufId) {
        let life = Life { start: self.clock, end: self.clock, depth: self.loops.len() };
        self.place.insert(buf, self.lives.len());
        self.lives.push((buf, life));
    }

    fn touch(&mut self, buf: l::BufId) {
        let Some(&at) = self.place.get(&buf) else { return };
        let life = &mut self.lives[at].1;
        life.end = self.clock;
        let depth = life.depth;
        if let Some(used) = self.loops.get_mut(depth) {
            used.push(buf);
        }
    }

    /// The lives of the buffers that may take turns: none where data moves while threads do other work, or between blocks.
    fn turns(&self, kernel: &l::Kernel) -> Turns {
        let (mut plain, mut declared) = (true, BTreeMap::<l::BufId, u32>::new());
        walk::visit(&kernel.body, &mut |s| match s {
            l::Stmt::Local { buf } => *declared.entry(*buf).or_default() += 1,
            // Stages keep their bytes.
            l::Stmt::Stage { buf, .. } => *declared.entry(*buf).or_default() += 2,
            l::Stmt::For(f) => {
                plain &= match f.place {
                    l::Place::Block { cluster, .. } => cluster == 0,
                    l::Place::None | l::Place::Vector { .. } | l::Place::Unroll | l::Place::Thread => true,
                    _ => false,
                };
            }
            _ => {}
        });
        let once = |buf: &l::BufId| declared.get(buf) == Some(&1) && kernel.bufs[*buf].space == l::Space::Shared;
        let lives = self.lives.iter().filter(|(buf, _)| plain && once(buf));
        lives.map(|(buf, life)| (*buf, (life.start, life.end))).collect()
    }

    /// For each buffer that shares bytes with stages: the stages whose shared bytes may still be read.
    fn met(
        &self,
        kernel: &l::Kernel,
        used: &[Used],
        behind: &BTreeMap<l::BufId, Vec<l::BufId>>,
    ) -> BTreeMap<l::BufId, Vec<l::BufId>> {
        let read = |buf: l::BufId, at: u64, len: u64| match self.generations.get(&buf) {
            Some((_, Some(last))) => (at + last * kernel.bufs[buf].bytes(), kernel.bufs[buf].bytes()),
            _ => (at, len),
        };
        let one = |(buf, stages): (&l::BufId, &Vec<l::BufId>)| {
            let (_, at, len) = used.iter().find(|(b, _, _)| b == buf)?;
            let meets = used.iter().filter(|(b, from, bytes)| {
                let (from, bytes) = read(*b, *from, *bytes);
                stages.contains(b) && from < at + len && *at < from + bytes
            });
            Some((*buf, meets.map(|(b, _, _)| *b).collect()))
        };
        behind.iter().filter_map(one).collect()
    }

    fn in_loop(&mut self, kernel: &l::Kernel, body: &[l::Stmt]) -> Res<()> {
        self.loops.push(Vec::new());
        self.block(kernel, body)?;
        self.clock += 1;
        for buf in self.loops.pop().unwrap_or_default() {
            if let Some(&at) = self.place.get(&buf) {
                self.lives[at].1.end = self.clock;
            }
        }
        Ok(())
    }

    fn block(&mut self, kernel: &l::Kernel, body: &[l::Stmt]) -> Res<()> {
        for stmt in body {
            self.clock += 1;
            match stmt {
                l::Stmt::Local { buf } => self.declare(*buf),
                l::Stmt::Read { buf, .. } | l::Stmt::Write { buf, .. } => self.touch(*buf),
                l::Stmt::Print { args, .. } => {
                    for arg in args {
                        if let l::PrintArg::Buf(buf) = arg {
                            self.touch(*buf);
                        }
                    }
                }
                l::Stmt::For(f) => {
                    let around = self.in_threads;
                    self.in_threads |= f.place == l::Place::Thread;
                    if let Some(c) = &f.combine {
                        c.accs.iter().for_each(|&a| self.touch(a));
                    }
                    if let l::Place::Pipeline { depth, .. } = f.place {
                        // After the last iteration's barrier all threads are done with the earlier generations, unless
                        // a product goes on.
                        let overlap = matches!(f.place, l::Place::Pipeline { overlap: true, .. });
                        let last =
                            f.hi.as_const().filter(|n| *n > 0 && !overlap && !pipeline::is_free(f, depth, false));
                        let last = last.map(|n| (n as u64 - 1) % u64::from(depth));
                        let staged = f.stages().0.iter().filter_map(|s| match s {
                            l::Stmt::Stage { buf, .. } => Some((*buf, (depth.into(), last))),
                            _ => None,
                        });
                        self.generations.extend(staged);
                    }
                    self.in_loop(kernel, &f.body)?;
                    self.in_threads = around;
                }
                l::Stmt::Loop { body } => self.in_loop(kernel, body)?,
                l::Stmt::If { then, els, .. } => {
                    self.block(kernel, then)?;
                    self.block(kernel, els)?;
                }
                l::Stmt::Stage { buf, body, .. } => {
                    self.declare(*buf);
                    self.block(kernel, body)?;
                    self.clock += 1;
                }
                l::Stmt::Alloca { bytes, align, .. } => {
                    // In a loop every iteration gets the same memory: it lives no longer than the iteration.
                    self.allocas.push((*bytes, *align));
                    self.own_allocas |= self.in_threads;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::legalise::{Options, legalise};
    use crate::loops::parse::parse;

    /// Tiles of 1,024 elements, each made of the one before it.
    fn chain(tiles: usize, inside: &str) -> String {
        let link = |n: usize| {
            format!(
                "{inside}  local s{n}: f32[1024] shared\n{inside}  for t{n} in 0..1024: free thread\n{inside}    v{n}: f32 = {}\n\
                 {inside}    s{n}[t{n}] = v{n}\n",
                if n == 0 { "load p[t0]".into() } else { format!("s{}[1023 - t{n}]", n - 1) }
            )
        };
        let last = tiles - 1;
        let end = format!(
            "{inside}  for u in 0..1024: free thread\n{inside}    w: f32 = s{last}[u]\n{inside}    store p[u] = w\n"
        );
        let around = if inside.is_empty() { "" } else { "  for i in 0..n: serial\n" };
        format!("tile kernel k(p: ptr f32, n: i64):\n{around}{}{end}", (0..tiles).map(link).collect::<String>())
    }

    fn shared(text: &str, room: u64) -> Result<u64, String> {
        let (kernel, _) = parse(text).unwrap();
        let made = legalise(&kernel, &Options { shared: room, ..Options::default() });
        made.map(|k| k.shared).map_err(|e| e.to_string())
    }

    #[test]
    fn tiles_take_turns_where_there_is_no_room_for_all() {
        for inside in ["", "  "] {
            assert_eq!(shared(&chain(10, inside), 10 * 4096), Ok(10 * 4096));
            assert_eq!(shared(&chain(10, inside), 9 * 4096), Ok(2 * 4096));
            let why = shared(&chain(10, inside), 4096).unwrap_err();
            assert!(why.contains("needs 8192 bytes of shared memory"), "{why}");
        }
    }

    #[test]
    fn threads_take_no_memory_by_its_address() {
        let taken = |place: &str, at: &str| {
            format!(
                "tile kernel k(p: ptr f32):\n{at}  for t in 0..32: free{place}\n    q: ptr f32 = alloca 16 align 4\n\
                 \x20   x: f32 = load p[t]\n    store q[t%4] = x\n    y: f32 = load q[t%4]\n    store p[t] = y\n"
            )
        };
        let why = "each thread of a block would take memory by its address; take it before the loop over threads";
        let refused = shared(&taken(" thread", ""), 4096).unwrap_err();
        assert!(refused.contains(why), "{refused}");
        // One thread may, and so may a block before its threads.
        assert_eq!(shared(&taken("", ""), 4096).err(), None);
        let text = taken(" thread", "  q: ptr f32 = alloca 16 align 4\n").replacen(
            "    q: ptr f32 = alloca 16 align 4\n",
            "",
            1,
        );
        assert_eq!(shared(&text, 4096).err(), None);
    }

    /// Each link of the chain writes where threads may still read the link before the last one: a barrier stands between.
    #[test]
    fn threads_wait_before_they_write_where_others_read() {
        let barriers = |room: u64| {
            let (kernel, _) = parse(&chain(4, "")).unwrap();
            let made = legalise(&kernel, &Options { shared: room, ..Options::default() }).unwrap();
            made.body.iter().filter(|s| matches!(s, crate::kernel::ir::Stmt::Barrier)).count()
        };
        assert_eq!((barriers(4 * 4096), barriers(3 * 4096)), (4, 4));
    }

    /// No two of a few long allocations begin near the same place of a page; short ones, and more than a page has places for, lie
    /// side by side.
    #[test]
    fn long_buffers_begin_at_places_apart() {
        for bytes in [1024, 4000, 4096, 12288, 65536] {
            let mut busy: Vec<(u64, u64)> = vec![];
            for n in 0..7 {
                let at = super::first_fit(busy.clone(), bytes, super::ALIGN, true);
                assert!(at.is_multiple_of(super::ALIGN));
                for (other, len) in &busy {
                    let apart = at.abs_diff(*other) % super::PAGE;
                    assert!(
                        apart.min(super::PAGE - apart) >= super::NEAR,
                        "{bytes}: buffer {n} at {at}, one at {other}"
                    );
                    assert!(other + len <= at || at + bytes <= *other);
                }
                busy.push((at, bytes));
            }
        }
        let side_by_side =
            |bytes: u64, staggered: bool| super::first_fit(vec![(0, bytes)], bytes, super::ALIGN, staggered);
        assert_eq!((side_by_side(512, true), side_by_side(4096, false)), (512, 4096));
    }
}
