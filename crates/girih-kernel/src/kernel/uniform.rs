//! Determines which values the threads of a block share, and whether threads reach their barriers together.
//!
//! In: a kernel whose statements are well-formed. Out: what each value [`Varies`] by, and the barriers and shuffles that
//! only some threads reach, as sentences for `verify`.
//!
//! ```text
//! w: i32 = index tx//32             by the warp
//! x: f32 = load s[tx%32]            by the lane: by all five bits of its number, alike in every warp
//! y: f32 = shuffle xor x, 16        likewise
//! z: f32 = add x, y                 by four bits: the lanes l and l^16 have added the same two numbers
//! if bx > 0 { barrier }             all threads of a block take it
//! if w == 0 { shuffle .. }          all lanes of a warp do
//! if tx < 5 { barrier }             refused
//! ```
//! Invariants: the threads that a value varies by only grow in number, and the walk is repeated until nothing changes,
//! so that values carried around loops are seen. Five such halvings leave no bit: all threads of a block have the
//! result of a reduction over the block. An unordered load gives all threads the same value where its address and mask
//! are the same, since a kernel without races has no write between their loads; ordered loads and atomics give each
//! thread its own. A thread that has left a loop or the kernel takes no part in what follows there.

use super::ir::*;
use super::print::print_numbered;
use super::verify::Problem;
use crate::base::id::Id;
use crate::index::{Cmp, Cond};
use crate::num::ScalarOp;
use rustc_hash::FxHashMap;

/// The threads between which a value, or a branch, may differ. All other threads have the same value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Varies {
    pub across: Across,
    /// The bits of a lane's number that it depends on; those above a warp's lanes say nothing.
    pub lanes: u32,
}

/// Lanes of the same number, in different warps of a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Across {
    /// They have the same value.
    #[default]
    Nothing,
    /// Lanes of one warpgroup have the same value.
    Groups,
    /// Each may have another value.
    Warps,
}

impl Varies {
    const NOT: Varies = Varies { across: Across::Nothing, lanes: 0 };
    const BY_WARP: Varies = Varies { across: Across::Warps, lanes: 0 };
    /// Each thread may have its own.
    const BY_THREAD: Varies = Varies { across: Across::Warps, lanes: u32::MAX };

    fn and(self, other: Varies) -> Varies {
        Varies { across: self.across.max(other.across), lanes: self.lanes | other.lanes }
    }
}

/// The threads that each value varies by.
pub fn varies(kernel: &Kernel) -> Vec<Varies> {
    analyse(kernel).vals
}

/// Barriers, warp barriers and shuffles that only some of the threads that wait there reach together.
pub(super) fn problems(kernel: &Kernel) -> Vec<Problem> {
    let walk = analyse(kernel);
    if walk.divergent.is_empty() {
        return vec![];
    }
    let (text, starts) = print_numbered(kernel);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let of = |way: Varies| match way.across {
        Across::Groups if way.lanes == 0 => "the warpgroup",
        Across::Warps if way.lanes == 0 => "the warp",
        _ => "the thread",
    };
    let say = |(statement, way): &(usize, Varies)| {
        let line = starts.get(*statement).copied().unwrap_or(0);
        let shown = lines.get((line as usize).wrapping_sub(1)).copied().unwrap_or("?");
        let (all, decides) = match shown {
            "barrier" => ("threads of the block", of(*way)),
            _ if shown.starts_with("wgmma") || shown.starts_with("registers") => ("threads of the warpgroup", of(*way)),
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
        vals: vec![Varies::NOT; kernel.vals.len()],
        axes: vec![Varies::NOT; kernel.axes.len()],
        slots: vec![Varies::NOT; kernel.slots.len()],
        exchanged: FxHashMap::default(),
        loops: vec![],
        returned: Varies::NOT,
        open: vec![],
        next_loop: 0,
        next: 0,
        divergent: vec![],
        rose: true,
    };
    while std::mem::take(&mut walk.rose) {
        (walk.next, walk.next_loop) = (0, 0);
        walk.divergent.clear();
        walk.body(&kernel.body, Varies::NOT);
    }
    walk
}

struct Walk<'a> {
    k: &'a Kernel,
    vals: Vec<Varies>,
    axes: Vec<Varies>,
    /// The content of each slot of the scratch.
    slots: Vec<Varies>,
    /// The results of shuffles since the current body began: the exchanged value, and the bit of the lane's number that
    /// it was exchanged by.
    exchanged: FxHashMap<ValId, (ValId, u32)>,
    /// The threads that have left a loop early, by the loop's number in the text.
    loops: Vec<Varies>,
    /// The threads that have returned.
    returned: Varies,
    /// The numbers of the loops around the statement.
    open: Vec<usize>,
    next_loop: usize,
    /// The next statement's number.
    next: usize,
    divergent: Vec<(usize, Varies)>,
    rose: bool,
}

fn raise(at: Option<&mut Varies>, by: Varies, rose: &mut bool) {
    if let Some(known) = at
        && known.and(by) != *known
    {
        *known = known.and(by);
        *rose = true;
    }
}

impl Walk<'_> {
    fn val(&self, v: ValId) -> Varies {
        self.vals.get(v.index()).copied().unwrap_or(Varies::BY_THREAD)
    }

    fn opnd(&self, o: &Opnd) -> Varies {
        match o {
            Opnd::Val(v) => self.val(*v),
            Opnd::Const { .. } => Varies::NOT,
        }
    }

    fn opnds(&self, all: &[Opnd]) -> Varies {
        all.iter().fold(Varies::NOT, |sum, o| sum.and(self.opnd(o)))
    }

    fn warp(&self) -> i64 {
        self.k.warp.max(1).into()
    }

    /// The number of a thread's part, in parts of `threads` threads.
    fn part(&self, threads: i64) -> Varies {
        let warp = self.warp();
        match threads {
            n if n <= 0 => Varies::BY_THREAD,
            n if n % warp == 0 => Varies { lanes: 0, ..self.parts(n) },
            n if warp % n == 0 => Varies { lanes: !(n as u32 - 1), ..self.parts(warp) },
            _ => Varies::BY_THREAD,
        }
    }

    /// The variation of a value that differs only between parts of `threads` threads; in a block of one part it does
    /// not vary.
    fn parts(&self, threads: i64) -> Varies {
        match threads {
            n if n <= 0 || n % self.warp() != 0 => Varies::BY_THREAD,
            _ if self.k.threads <= self.k.warp => Varies::NOT,
            n if n % i64::from(self.k.warpgroup().max(1)) != 0 => Varies::BY_WARP,
            _ if self.k.threads <= self.k.warpgroup() => Varies::NOT,
            _ => Varies { across: Across::Groups, lanes: 0 },
        }
    }

    fn thread(&self) -> Varies {
        Varies { lanes: u32::MAX, ..self.parts(self.warp()) }
    }

    fn ix(&self, ix: &Ix) -> Varies {
        match (ix, ix.operands()) {
            (Ix::FloorDiv(..), Some((Ix::Thread, Ix::Const(by)))) => self.part(*by),
            // The last bits of the lane's number.
            (Ix::Mod(..), Some((Ix::Thread, Ix::Const(by)))) if *by > 0 && self.warp() % by == 0 => {
                Varies { lanes: *by as u32 - 1, ..Varies::NOT }
            }
            (_, Some((a, b))) => self.ix(a).and(self.ix(b)),
            (Ix::Thread, _) => self.thread(),
            (Ix::Axis(a), _) => self.axes.get(a.index()).copied().unwrap_or(Varies::BY_THREAD),
            (Ix::Val { val, .. }, _) => self.val(*val),
            _ => Varies::NOT,
        }
    }

    fn cond(&self, cond: &Cond) -> Varies {
        // `tx < 64`: a warp is on one side.
        let (cmp, bound) = match (&cond.lhs, &cond.rhs) {
            (Ix::Thread, Ix::Const(c)) => (cond.cmp, *c),
            (Ix::Const(c), Ix::Thread) => (cond.cmp.swap(), *c),
            (lhs, rhs) => return self.ix(lhs).and(self.ix(rhs)),
        };
        let first_of_others = match cmp {
            Cmp::Lt | Cmp::Ge => Some(bound),
            Cmp::Le | Cmp::Gt => bound.checked_add(1),
            Cmp::Eq | Cmp::Ne => None,
        };
        match first_of_others {
            // On one side there is nobody, or a part is on one side.
            Some(first) if first <= 0 || first >= i64::from(self.k.threads) => Varies::NOT,
            Some(first) => self.parts(first),
            None => self.thread(),
        }
    }

    fn mask(&self, mask: &Mask) -> Varies {
        let conds = mask.conds.iter().map(|c| self.cond(c));
        conds.chain(mask.vals.iter().map(|v| self.val(*v))).fold(Varies::NOT, Varies::and)
    }

    /// The variation of an operation's result. If the operands are a value and the same value from another lane, and
    /// their order does not matter, both lanes get the same result.
    fn computed(&self, op: ScalarOp, ty: Elem, args: &[Opnd]) -> Varies {
        let all = self.opnds(args);
        let &[Opnd::Val(a), Opnd::Val(b)] = args else { return all };
        let bit = [(a, b), (b, a)].into_iter().find_map(|(own, other)| {
            let (of, bit) = self.exchanged.get(&other)?;
            (*of == own).then_some(*bit)
        });
        match bit {
            Some(bit) if op.folds(ty.held()) && self.k.threads.is_multiple_of(self.k.warp.max(1)) => {
                Varies { lanes: all.lanes & !bit & self.k.warp.saturating_sub(1), ..all }
            }
            _ => all,
        }
    }

    fn shuffled(&self, kind: Shuffle, value: ValId, by: &Opnd) -> Varies {
        let (value, from) = (self.val(value), self.opnd(by));
        match kind {
            // All lanes of a warp have the same to give.
            _ if value.lanes == 0 => Varies { across: value.across, lanes: 0 },
            Shuffle::Idx => Varies { across: value.across.max(from.across), lanes: from.lanes },
            Shuffle::Xor if matches!(by, Opnd::Const { .. }) => value,
            _ => Varies { lanes: u32::MAX, ..value.and(from) },
        }
    }

    fn define(&mut self, v: ValId, by: Varies) {
        raise(self.vals.get_mut(v.index()), by, &mut self.rose);
    }

    fn address(&self, place: &Address) -> Varies {
        match place {
            Address::Mem { base, index, .. } => self.val(*base).and(self.ix(index)),
            Address::Slot { index, .. } => self.ix(index),
        }
    }

    /// The variation of a value that threads load from a place.
    fn loaded(&self, place: &Address) -> Varies {
        let held = match place {
            Address::Slot { buf, .. } if self.k.slots.get(*buf).is_some_and(|s| s.space == Space::Scratch) => {
                self.slots.get(buf.index()).copied().unwrap_or(Varies::BY_THREAD)
            }
            _ => Varies::NOT,
        };
        held.and(self.address(place))
    }

    fn body(&mut self, body: &[Stmt], way: Varies) {
        self.exchanged.clear();
        for stmt in body {
            let left = self.open.last().and_then(|l| self.loops.get(*l)).copied().unwrap_or_default();
            self.stmt(stmt, way.and(left).and(self.returned));
        }
        self.exchanged.clear();
    }

    fn looped(&mut self, body: &[Stmt], way: Varies) {
        let number = self.next_loop;
        self.next_loop += 1;
        if self.loops.len() <= number {
            self.loops.resize(number + 1, Varies::NOT);
        }
        self.open.push(number);
        self.body(body, way);
        self.open.pop();
    }

    /// All lanes of a warp meet, in warps that `most` lets go different ways.
    fn meets(&mut self, at: usize, way: Varies, most: Across) {
        if way.across > most || way.lanes != 0 {
            self.divergent.push((at, way));
        }
    }

    /// Warpgroups meet, each on its own. If all threads come and the last ones are not a whole group, not all of that
    /// group do.
    fn groups_meet(&mut self, at: usize, way: Varies) {
        let whole = way != Varies::NOT || self.k.threads.is_multiple_of(self.k.warpgroup().max(1));
        self.meets(at, if whole { way } else { Varies::BY_WARP }, Across::Groups);
    }

    /// `way`: who runs the statement together.
    fn stmt(&mut self, stmt: &Stmt, way: Varies) {
        let at = self.next;
        self.next += 1;
        match stmt.runs() {
            Runs::Block | Runs::Cluster => self.meets(at, way, Across::Nothing),
            Runs::Group => self.groups_meet(at, way),
            Runs::Warp => self.meets(at, way, Across::Warps),
            Runs::Any | Runs::Alone | Runs::Threads => {}
        }
        match stmt {
            Stmt::For { axis, lo, hi, step, body, .. } => {
                let by = self.ix(lo).and(self.ix(hi)).and(self.ix(step));
                raise(self.axes.get_mut(axis.index()), by, &mut self.rose);
                self.looped(body, way.and(by));
            }
            Stmt::Loop { body } => self.looped(body, way),
            Stmt::Break | Stmt::Continue => {
                let left = self.open.last().and_then(|l| self.loops.get_mut(*l));
                raise(left, way, &mut self.rose);
            }
            Stmt::Return => raise(Some(&mut self.returned), way, &mut self.rose),
            Stmt::If { mask, then, els } => {
                let way = way.and(self.mask(mask));
                self.body(then, way);
                self.body(els, way);
            }
            Stmt::Let { dst, op, ty, args } => self.define(*dst, self.computed(*op, *ty, args)),
            Stmt::Shuffle { dst, kind, value, by } => {
                if let (Shuffle::Xor, Opnd::Const { bits, .. }) = (kind, by)
                    && bits.is_power_of_two()
                    && *bits < self.k.warp.into()
                {
                    self.exchanged.insert(*dst, (*value, *bits as u32));
                }
                self.define(*dst, self.shuffled(*kind, *value, by));
            }
            Stmt::LoadMatrix { dst, .. } | Stmt::Scratch { dst, .. } => self.define(*dst, Varies::BY_THREAD),
            Stmt::SharedAddr { dst, .. } => self.define(*dst, Varies::NOT),
            Stmt::Load { dst, order, .. } if *order != Order::Weak => self.define(*dst, Varies::BY_THREAD),
            _ => self.joined(stmt, way),
        }
    }

    /// Threads that run a statement together and have the same operands get the same results.
    fn joined(&mut self, stmt: &Stmt, way: Varies) {
        let mut by = Varies::NOT;
        stmt.parts(&mut |part| by = by.and(self.operand(part)));
        stmt.parts(&mut |part| match part {
            Part::Defines(val) => self.define(val, by),
            Part::Updates(val) => {
                self.exchanged.retain(|_, (of, _)| *of != val);
                self.define(val, by.and(way));
            }
            Part::At(Address::Slot { buf, .. }, access) => self.writes(*buf, access, by.and(way)),
            Part::Slot(buf, access) => self.writes(buf, access, by.and(way)),
            _ => {}
        });
    }

    fn operand(&self, part: Part) -> Varies {
        match part {
            Part::Moves(opnd) | Part::Takes(opnd) | Part::Shows(opnd) => self.opnd(&opnd),
            Part::Feeds(val) => self.val(val),
            Part::Index(ix) => self.ix(ix),
            Part::Mask(mask) => self.mask(mask),
            Part::At(place, Access::Reads) => self.loaded(place),
            // Each thread sees what the ones before it left.
            Part::At(_, Access::Combines | Access::Compares) => Varies::BY_THREAD,
            Part::At(place, _) => self.address(place),
            Part::Defines(_) | Part::Updates(_) | Part::Slot(..) | Part::Tensor(..) => Varies::NOT,
            Part::Axis(_) | Part::Body(_) => Varies::NOT,
        }
    }

    fn writes(&mut self, buf: BufId, access: Access, by: Varies) {
        let by = match access {
            Access::Writes | Access::Combines | Access::Compares => by,
            Access::Multiplies => Varies::BY_THREAD,
            Access::Reads | Access::Waits | Access::Names => return,
        };
        raise(self.slots.get_mut(buf.index()), by, &mut self.rose);
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

    /// The verifier's error for a kernel of two warps, if there is one.
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
            // A later iteration sees a value of an earlier one.
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

    /// A value of each lane combined by halving, by these bits of the lane's number, and a barrier that depends on it.
    fn halving(value: &str, op: &str, bits: &[u32]) -> String {
        let mut text = format!("v0: i32 = {value}\n");
        for (n, bit) in bits.iter().enumerate() {
            let next = n + 1;
            text += &format!("o{n}: i32 = shuffle xor v{n}, {bit}:i32\nv{next}: i32 = {op} v{n}, o{n}\n");
        }
        text + &format!("if v{} > 3 {{\nbarrier\n}}", bits.len())
    }

    #[test]
    fn what_threads_fold_together_they_all_have() {
        let (all, own, of_warp) = ([16, 8, 4, 2, 1], "load s[tx%16]", "index tx");
        for op in ["addi", "muli", "xor"] {
            assert_eq!(refused(&halving(own, op, &all)), None, "{op}");
        }
        assert_eq!(refused(&halving(own, "addi", &[1, 2, 4, 8])), None);
        let by = |text: &str, what: &str| {
            let message = refused(text).unwrap_or_else(|| panic!("accepted: {text}"));
            assert!(message.contains(what), "{text}: {message}");
        };
        // Two lanes subtract each other's, a bit is left out or stands twice, and warps have sums of their own.
        by(&halving(own, "subi", &all), "the thread");
        by(&halving(own, "addi", &[8, 4, 2]), "the thread");
        by(&halving(own, "addi", &[8, 4, 2, 2]), "the thread");
        by(&halving(of_warp, "addi", &all), "the warp");
        // A variable has changed since.
        let changed = "l: i32 = load s[tx%2]\nvar x: i32 = l\nw: i32 = shuffle xor x, 1:i32\n";
        let used = "y: i32 = addi x, w\nif y > 0 {\nbarrier\n}\n";
        assert_eq!(refused(&format!("{changed}{used}")), None);
        by(&format!("{changed}m: i32 = muli l, 3:i32\nx = m\n{used}"), "the thread");
        by(&format!("{changed}loop {{\n{used}if n > 0 {{\nbreak\n}}\nm: i32 = muli l, 3:i32\nx = m\n}}"), "the thread");
        // One lane's is everybody's.
        assert_eq!(refused("l: i32 = index tx%32\nx: i32 = shuffle idx l, 3:i32\nif x > 3 {\nbarrier\n}"), None);
        by("l: i32 = index tx\nx: i32 = shuffle idx l, 3:i32\nif x > 3 {\nbarrier\n}", "the warp");
    }

    #[test]
    fn what_values_vary_by() {
        let k = kernel(64, "a: i32 = index tx%32\nb: i32 = index tx//32 + bx\nc: i32 = addi b, a\nd: i32 = addi b, n");
        let by_name = |name: &str| {
            let of = k.vals.iter().find(|(_, v)| v.name.as_str() == name).map(|(id, _)| id.index());
            varies(&k)[of.unwrap()]
        };
        assert_eq!(
            ["n", "a", "b", "c", "d"].map(by_name),
            [
                Varies::NOT,
                Varies { across: Across::Nothing, lanes: 31 },
                Varies::BY_WARP,
                Varies { across: Across::Warps, lanes: 31 },
                Varies::BY_WARP
            ]
        );
    }
}
