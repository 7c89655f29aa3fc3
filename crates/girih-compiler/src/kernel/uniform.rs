//! What the threads of a block have in common, and whether they meet where they wait for each other.
//!
//! In: a kernel whose statements are well-formed. Out: a [`Level`] for each value, and the barriers and shuffles that
//! only some threads reach, as sentences for `verify`.
//!
//! ```text
//! w: i32 = index tx//32             warp
//! x: f32 = load s[tx]               lane
//! if bx > 0 { barrier }             all threads of a block take it
//! if w == 0 { shuffle .. }          all lanes of a warp do
//! if tx < 5 { barrier }             refused
//! ```
//! Invariants: levels only rise, and the walk is repeated until none does, so what flows around loops is seen. A load
//! that is not ordered gives all threads the same where its address and mask are the same, since a kernel without races has
//! no write between their loads; ordered loads and atomics give each thread its own. A thread that has left a loop or the
//! kernel takes no part in what follows there.

use super::ir::*;
use super::print::print_numbered;
use super::verify::Problem;
use crate::base::id::Id;
use crate::index::{Cmp, Cond};

/// Which threads of a block are sure to have the same value, or to go the same way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Level {
    /// All of them.
    #[default]
    Block,
    /// Those of one warpgroup.
    Group,
    /// Those of one warp.
    Warp,
    /// None.
    Lane,
}

/// The level of every value.
pub fn levels(kernel: &Kernel) -> Vec<Level> {
    analyse(kernel).vals
}

/// Barriers, warp barriers and shuffles that not all who wait there reach together.
pub(super) fn problems(kernel: &Kernel) -> Vec<Problem> {
    let walk = analyse(kernel);
    if walk.divergent.is_empty() {
        return vec![];
    }
    let (text, starts) = print_numbered(kernel);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let of = |level| match level {
        Level::Group => "the warpgroup",
        Level::Warp => "the warp",
        _ => "the thread",
    };
    let say = |(statement, level): &(usize, Level)| {
        let line = starts.get(*statement).copied().unwrap_or(0);
        let shown = lines.get((line as usize).wrapping_sub(1)).copied().unwrap_or("?");
        let (all, decides) = match shown {
            "barrier" => ("threads of the block", of(*level)),
            _ if shown.starts_with("wgmma") || shown.starts_with("registers") => {
                ("threads of the warpgroup", of(*level))
            }
            _ => ("lanes of the warp", "the lane"),
        };
        let message = format!(
            "`{shown}` is not reached by all {all} together: whether and how often it runs depends on \
             {decides}; move it out of that branch or loop, or behind the place where some return"
        );
        Problem { statement: Some(*statement), message }
    };
    walk.divergent.iter().map(say).collect()
}

fn analyse(kernel: &Kernel) -> Walk<'_> {
    let mut walk = Walk {
        k: kernel,
        vals: vec![Level::Block; kernel.vals.len()],
        axes: vec![Level::Block; kernel.axes.len()],
        slots: vec![Level::Block; kernel.slots.len()],
        loops: vec![],
        returned: Level::Block,
        open: vec![],
        next_loop: 0,
        next: 0,
        divergent: vec![],
        rose: true,
    };
    while std::mem::take(&mut walk.rose) {
        (walk.next, walk.next_loop) = (0, 0);
        walk.divergent.clear();
        walk.body(&kernel.body, Level::Block);
    }
    walk
}

struct Walk<'a> {
    k: &'a Kernel,
    vals: Vec<Level>,
    axes: Vec<Level>,
    /// What a slot of the scratch holds.
    slots: Vec<Level>,
    /// Who has left a loop early, by the loop's number in the text.
    loops: Vec<Level>,
    /// Who has returned.
    returned: Level,
    /// The numbers of the loops around the statement.
    open: Vec<usize>,
    next_loop: usize,
    /// The next statement's number.
    next: usize,
    divergent: Vec<(usize, Level)>,
    rose: bool,
}

fn raise(at: Option<&mut Level>, to: Level, rose: &mut bool) {
    if let Some(level) = at
        && *level < to
    {
        *level = to;
        *rose = true;
    }
}

impl Walk<'_> {
    fn val(&self, v: ValId) -> Level {
        self.vals.get(v.index()).copied().unwrap_or(Level::Lane)
    }

    fn opnd(&self, o: &Opnd) -> Level {
        match o {
            Opnd::Val(v) => self.val(*v),
            Opnd::Const { .. } => Level::Block,
        }
    }

    /// What differs only between parts of so many threads: a block of one part has nothing of the kind.
    fn of_parts(&self, threads: i64) -> Level {
        match threads {
            n if n <= 0 || n % i64::from(WARP) != 0 => Level::Lane,
            _ if self.k.threads <= WARP => Level::Block,
            n if n % i64::from(WARPGROUP) != 0 => Level::Warp,
            _ if self.k.threads <= WARPGROUP => Level::Block,
            _ => Level::Group,
        }
    }

    fn of_warp(&self) -> Level {
        self.of_parts(WARP.into())
    }

    fn ix(&self, ix: &Ix) -> Level {
        match (ix, ix.operands()) {
            (Ix::FloorDiv(..), Some((Ix::Thread, Ix::Const(by)))) => self.of_parts(*by),
            (_, Some((a, b))) => self.ix(a).max(self.ix(b)),
            (Ix::Thread, _) => Level::Lane,
            (Ix::Axis(a), _) => self.axes.get(a.index()).copied().unwrap_or(Level::Lane),
            (Ix::Val { val, .. }, _) => self.val(*val),
            _ => Level::Block,
        }
    }

    fn cond(&self, cond: &Cond) -> Level {
        // `tx < 64`: a warp is on one side.
        let (cmp, bound) = match (&cond.lhs, &cond.rhs) {
            (Ix::Thread, Ix::Const(c)) => (cond.cmp, *c),
            (Ix::Const(c), Ix::Thread) => (cond.cmp.swap(), *c),
            (lhs, rhs) => return self.ix(lhs).max(self.ix(rhs)),
        };
        let first_of_others = match cmp {
            Cmp::Lt | Cmp::Ge => Some(bound),
            Cmp::Le | Cmp::Gt => bound.checked_add(1),
            Cmp::Eq | Cmp::Ne => None,
        };
        match first_of_others {
            // On one side there is nobody, or a part is on one side.
            Some(first) if first <= 0 || first >= i64::from(self.k.threads) => Level::Block,
            Some(first) => self.of_parts(first),
            None => Level::Lane,
        }
    }

    fn mask(&self, mask: &Mask) -> Level {
        let conds = mask.conds.iter().map(|c| self.cond(c));
        conds.chain(mask.vals.iter().map(|v| self.val(*v))).max().unwrap_or_default()
    }

    fn define(&mut self, v: ValId, level: Level) {
        raise(self.vals.get_mut(v.index()), level, &mut self.rose);
    }

    fn address(&self, place: &Address) -> Level {
        match place {
            Address::Mem { base, index, .. } => self.val(*base).max(self.ix(index)),
            Address::Slot { index, .. } => self.ix(index),
        }
    }

    /// What all threads that load from there get.
    fn loaded(&self, place: &Address) -> Level {
        let held = match place {
            Address::Slot { buf, .. } if self.k.slots.get(*buf).is_some_and(|s| s.space == Space::Scratch) => {
                self.slots.get(buf.index()).copied().unwrap_or(Level::Lane)
            }
            _ => Level::Block,
        };
        held.max(self.address(place))
    }

    fn body(&mut self, body: &[Stmt], way: Level) {
        for stmt in body {
            let left = self.open.last().and_then(|l| self.loops.get(*l)).copied().unwrap_or_default();
            self.stmt(stmt, way.max(left).max(self.returned));
        }
    }

    fn looped(&mut self, body: &[Stmt], way: Level) {
        let number = self.next_loop;
        self.next_loop += 1;
        if self.loops.len() <= number {
            self.loops.resize(number + 1, Level::Block);
        }
        self.open.push(number);
        self.body(body, way);
        self.open.pop();
    }

    fn meets(&mut self, at: usize, way: Level, most: Level) {
        if way > most {
            self.divergent.push((at, way));
        }
    }

    /// Warpgroups meet, each on its own. Where all threads come and the last ones are no whole group, not all do.
    fn groups_meet(&mut self, at: usize, way: Level) {
        let whole = way != Level::Block || self.k.threads.is_multiple_of(WARPGROUP);
        self.meets(at, if whole { way } else { Level::Warp }, Level::Group);
    }

    /// `way`: who runs the statement together.
    fn stmt(&mut self, stmt: &Stmt, way: Level) {
        let at = self.next;
        self.next += 1;
        match stmt.runs() {
            Runs::Block | Runs::Cluster => self.meets(at, way, Level::Block),
            Runs::Group => self.groups_meet(at, way),
            Runs::Warp => self.meets(at, way, Level::Warp),
            Runs::Any | Runs::Alone | Runs::Threads => {}
        }
        match stmt {
            Stmt::For { axis, lo, hi, step, body, .. } => {
                let level = self.ix(lo).max(self.ix(hi)).max(self.ix(step));
                raise(self.axes.get_mut(axis.index()), level, &mut self.rose);
                self.looped(body, way.max(level));
            }
            Stmt::Loop { body } => self.looped(body, way),
            Stmt::Break | Stmt::Continue => {
                let left = self.open.last().and_then(|l| self.loops.get_mut(*l));
                raise(left, way, &mut self.rose);
            }
            Stmt::Return => raise(Some(&mut self.returned), way, &mut self.rose),
            Stmt::If { mask, then, els } => {
                let way = way.max(self.mask(mask));
                self.body(then, way);
                self.body(els, way);
            }
            Stmt::Shuffle { dst, kind, value, by } => {
                let (value, by) = (self.val(*value), self.opnd(by));
                let level = match kind {
                    _ if value <= Level::Warp => value,
                    Shuffle::Idx if by <= Level::Warp => self.of_warp(),
                    _ => Level::Lane,
                };
                self.define(*dst, level);
            }
            Stmt::LoadMatrix { dst, .. } | Stmt::Scratch { dst, .. } => self.define(*dst, Level::Lane),
            Stmt::Load { dst, order, .. } if *order != Order::Weak => self.define(*dst, Level::Lane),
            _ => self.joined(stmt, way),
        }
    }

    /// Threads that run a statement together and have the same operands get the same results.
    fn joined(&mut self, stmt: &Stmt, way: Level) {
        let mut level = Level::Block;
        stmt.parts(&mut |part| level = level.max(self.operand(part)));
        stmt.parts(&mut |part| match part {
            Part::Defines(val) => self.define(val, level),
            Part::Updates(val) => self.define(val, level.max(way)),
            Part::At(Address::Slot { buf, .. }, access) => self.writes(*buf, access, level.max(way)),
            Part::Slot(buf, access) => self.writes(buf, access, level.max(way)),
            _ => {}
        });
    }

    fn operand(&self, part: Part) -> Level {
        match part {
            Part::Moves(opnd) | Part::Takes(opnd) | Part::Shows(opnd) => self.opnd(&opnd),
            Part::Feeds(val) => self.val(val),
            Part::Index(ix) => self.ix(ix),
            Part::Mask(mask) => self.mask(mask),
            Part::At(place, Access::Reads) => self.loaded(place),
            // Each thread sees what the ones before it left.
            Part::At(_, Access::Combines | Access::Compares) => Level::Lane,
            Part::At(place, _) => self.address(place),
            Part::Defines(_) | Part::Updates(_) | Part::Slot(..) | Part::Tensor(..) => Level::Block,
            Part::Axis(_) | Part::Body(_) => Level::Block,
        }
    }

    fn writes(&mut self, buf: BufId, access: Access, level: Level) {
        let level = match access {
            Access::Writes | Access::Combines | Access::Compares => level,
            Access::Multiplies => Level::Lane,
            Access::Reads | Access::Waits | Access::Names => return,
        };
        raise(self.slots.get_mut(buf.index()), level, &mut self.rose);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{parse, verify};

    fn kernel(threads: u32, body: &str) -> Kernel {
        let text = format!(
            "kernel k(o: ptr<i32>, n: i32) threads {threads} scratch 64 shared 64 {{\n  slot t: i32[16] at 0\n  \
             shared s: i32[16] at 0\n{body}\n}}\n"
        );
        parse::parse(&text).unwrap_or_else(|d| panic!("{}\n{text}", d.message))
    }

    /// Whether the verifier refuses a kernel of two warps, and for what.
    fn refused(body: &str) -> Option<String> {
        let wrong = verify::verify(&kernel(64, body));
        assert!(wrong.len() <= 1, "{body}: {wrong:?}");
        wrong.into_iter().next()
    }

    #[test]
    fn what_all_threads_do_together_is_accepted() {
        for body in [
            "barrier",
            "if n > 3 {\nbarrier\n}",
            "for i in 0..n step 1 {\nbarrier\n}",
            "if bx == 0 {\nreturn\n}\nbarrier",
            "x: i32 = load o[bx]\nif x > 3 {\nbarrier\n}",
            "x: i32 = load s[0]\nfor i in 0..x step 1 {\nif i > 2 {\nbreak\n}\nbarrier\n}",
            "if tx < 5 {\nstore s[tx] = 1:i32\n}\nbarrier",
            "for i in tx..64 step 1 {\nstore t[0] = 1:i32\n}\nbarrier",
            "store t[1] = n\nx: i32 = load t[1]\nif x > 0 {\nbarrier\n}",
            "if tx//32 == 1 {\nsyncwarp\n}",
            "if tx < 32 {\ny: i32 = shuffle xor n, 1:i32\n}",
            "if 31 >= tx {\nsyncwarp\n}",
            "w: i32 = index tx//32\nfor i in 0..w step 1 {\nsyncwarp\n}",
            "l: i32 = index tx\nx: i32 = shuffle idx l, 3:i32\nif x > 3 {\nsyncwarp\n}",
        ] {
            assert_eq!(refused(body), None, "{body}");
        }
        assert_eq!(verify::verify(&kernel(32, "if tx//32 == 0 {\nbarrier\n}")), [""; 0]);
    }

    #[test]
    fn what_some_threads_reach_is_refused() {
        for (body, what) in [
            ("if tx < 5 {\nbarrier\n}", "line 5"),
            ("if tx < 32 {\nbarrier\n}", "depends on the warp"),
            ("if n > 3 {\n} else {\nif tx == 0 {\nbarrier\n}\n}", "depends on the thread"),
            ("if tx == 0 {\nreturn\n}\nbarrier", "line 7"),
            ("for i in 0..n step 1 {\nbarrier\nif tx == i {\nreturn\n}\n}", "line 5"),
            ("for i in tx..64 step 1 {\nbarrier\n}", "barrier"),
            ("loop {\nif tx > 3 {\nbreak\n}\nbarrier\n}", "barrier"),
            ("for i in 0..4 step 1 {\nif tx > 3 {\ncontinue\n}\nbarrier\n}", "barrier"),
            ("x: i32 = load s[tx%16]\nif x > 3 {\nbarrier\n}", "barrier"),
            ("x: i32 = load o[0] relaxed\nif x > 3 {\nbarrier\n}", "barrier"),
            ("x: i32 = rmw add o[0], 1:i32\nif x > 3 {\nbarrier\n}", "barrier"),
            ("var x: i32 = 0:i32\nif tx > 3 {\nx = 1:i32\n}\nif x > 0 {\nbarrier\n}", "barrier"),
            ("store t[1] = 1:i32 where tx > 1\nx: i32 = load t[1]\nif x > 0 {\nbarrier\n}", "barrier"),
            // What a later iteration sees of an earlier one.
            (
                "var x: i32 = 0:i32\nfor i in 0..4 step 1 {\nif x > 0 {\nbarrier\n}\ny: i32 = index tx\nx = y\n}",
                "barrier",
            ),
            ("if tx < 5 {\nsyncwarp\n}", "lanes of the warp"),
            ("if tx < 31 {\nsyncwarp\n}", "syncwarp"),
            ("if tx//16 == 0 {\nsyncwarp\n}", "syncwarp"),
            ("l: i32 = index tx\nx: i32 = shuffle xor l, 1:i32\nif x > 3 {\nsyncwarp\n}", "syncwarp"),
            ("if tx == 0 {\ny: i32 = shuffle down n, 1:i32\n}", "y: i32 = shuffle down n, 1:i32"),
        ] {
            let message = refused(body).unwrap_or_else(|| panic!("accepted: {body}"));
            assert!(message.contains(what), "{body}: {message}");
        }
    }

    #[test]
    fn levels_of_values() {
        let k = kernel(64, "a: i32 = index tx%32\nb: i32 = index tx//32 + bx\nc: i32 = addi b, a\nd: i32 = addi b, n");
        let by_name = |name: &str| {
            let of = k.vals.iter().find(|(_, v)| v.name.as_str() == name).map(|(id, _)| id.index());
            levels(&k)[of.unwrap()]
        };
        assert_eq!(["n", "a", "b", "c", "d"].map(by_name), {
            use Level::*;
            [Block, Lane, Warp, Lane, Warp]
        });
    }
}
