//! `prefetch_panel LOOP`: passes over one panel of memory ask for the panel that follows.
//!
//! ```text
//! for k0 in 0..32: serial                             for k0 in 0..32: serial
//!   for i in 0..7: free                                 for i in 0..7: free
//!     for kk in 0..144: reduce                            for kk in 0..144: reduce
//!       for j in 0..32: free vector(16)        -->          prefetch w[k0*4608 + (i*144 + kk)//2*16 + 4608]
//!         b: f32 = load w[k0*4608 + kk*32 + j]              for j in 0..32: free vector(16)
//!         ..                                                  b: f32 = load w[k0*4608 + kk*32 + j]
//!                                                             ..
//! ```
//!
//! The first pass would wait for memory, which the others leave idle. So each iteration asks for its part of the next panel, and memory is
//! busy all the time. Legal everywhere: memory that is asked for need not exist.

use super::{Read, ask_first, asks_already, first, has_caches, lines, loads, piece};
use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::tile::Context;
use crate::tile::affine;
use crate::tile::edit::most_trips;
use crate::tile::lines::LINE;
use crate::tile::primitives::line::{LoopRef, loop_at};

pub fn apply(kernel: &mut Kernel, ctx: &Context, at: LoopRef) -> Result<(), String> {
    has_caches(ctx)?;
    let f = loop_at(kernel, at)?;
    let asked: Vec<Stmt> = panels(&kernel.body, f).iter().flat_map(Panel::prefetches).collect();
    if asked.is_empty() {
        return Err("it reads no panel of memory that the loops around it read again".into());
    }
    ask_first(kernel, at, &asked)
}

/// Contiguous memory that a loop reads from end to end, in each of several passes.
pub struct Panel<'a> {
    pub mem: &'a Mem,
    /// The index of its first element.
    pub start: Ix,
    bytes: u64,
    /// The bytes of all panels, where loops say how many there are.
    pub all: Option<u64>,
    /// The number of an iteration of the loop among those of all passes, and how many there are.
    number: Ix,
    iterations: u64,
}

impl Panel<'_> {
    /// A prefetch for each line of an iteration's part of the panel behind this one.
    fn prefetches(&self) -> Vec<Stmt> {
        let of_panel = self.bytes.div_ceil(LINE);
        let part = of_panel.div_ceil(self.iterations) * LINE;
        // Where there are more iterations than lines, some iterations ask for the same line. A power of two is quick to divide by.
        let alike = 1 << (self.iterations / of_panel).max(1).ilog2();
        let elements = |bytes: u64| Ix::Const((bytes / self.mem.elem.bytes()) as i64);
        let at = Ix::floor_div(self.number.clone(), Ix::Const(alike)) * elements(part);
        lines(self.mem, &(self.start.clone() + at + elements(self.bytes)), part).collect()
    }
}

/// The panels that a loop of a body reads while loops around it read them again.
pub fn panels<'a>(body: &'a [Stmt], f: &'a For) -> Vec<Panel<'a>> {
    if asks_already(f) {
        return vec![];
    }
    let (Some(around), mut found) = (loops_around(body, f), vec![]) else { return vec![] };
    loads(&f.body, &mut vec![], &mut found);
    let mut panels: Vec<Panel<'a>> = vec![];
    for panel in found.into_iter().filter_map(|read| panel(read, f, &around)) {
        if !panels.iter().any(|p| p.mem.base == panel.mem.base && p.start == panel.start) {
            panels.push(panel);
        }
    }
    panels
}

fn panel<'a>((mem, inner): Read<'a>, f: &For, around: &[&For]) -> Option<Panel<'a>> {
    let counted = |l: &For| Some((l.lo.as_const()?, most_trips(l).filter(|n| *n > 0 && l.place == Place::None)?));
    let again = |l: &&&For| !mem.index.has_axis(l.axis) && counted(l).is_some();
    let passes: Vec<&For> = around.iter().rev().take_while(again).copied().collect();
    let varying = refs(&passes.last()?.body).vals_defined;
    let (lo, trips) = counted(f)?;
    let wide = piece(&mem.index, &inner)?;
    let step = affine::coef(&mem.index, f.axis, &varying)?.as_const()?;
    if u64::try_from(step).ok() != Some(wide) || mem.index.vals().iter().any(|v| varying.contains(v)) {
        return None;
    }
    let start = first(mem, &inner).subst_axes(&mut |a| (a == f.axis).then_some(Ix::Const(lo)));
    let (mut number, mut iterations) = (Ix::Const(0), 1u64);
    for l in passes.into_iter().rev().chain([f]) {
        let (lo, trips) = counted(l)?;
        number = number * Ix::Const(trips as i64) + (Ix::Axis(l.axis) + Ix::Const(-lo));
        iterations = iterations.checked_mul(trips)?;
    }
    let bytes = wide.checked_mul(trips)?.checked_mul(mem.elem.bytes())?;
    let others = around.iter().filter(|l| mem.index.has_axis(l.axis));
    let all = others.map(|l| most_trips(l)).try_fold(bytes, |all, trips| all.checked_mul(trips?));
    Some(Panel { mem, start, bytes, all, number, iterations })
}

/// The loops of a body that hold a loop, outer ones first.
fn loops_around<'a>(body: &'a [Stmt], f: &For) -> Option<Vec<&'a For>> {
    body.iter().find_map(|s| {
        if matches!(s, Stmt::For(l) if std::ptr::eq(&**l, f)) {
            return Some(vec![]);
        }
        let mut inner = walk::bodies(s).into_iter().find_map(|b| loops_around(b, f))?;
        if let Stmt::For(l) = s {
            inner.insert(0, l);
        }
        Some(inner)
    })
}
