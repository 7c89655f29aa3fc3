//! Accesses that provably happen in a launch and lie outside their memory.

use std::ops::Range;

use super::point::{Launched, Point};
use crate::loops::ir::{Cond, For, Ix, Kernel, Mask, Mem, Stmt};
use crate::loops::walk;
use crate::num::DType;

/// An access that will happen and lies outside its buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overrun {
    pub param: usize,
    pub write: bool,
    /// The element that will be touched.
    pub index: i128,
    /// The indices that the memory has.
    pub indices: Range<i128>,
}

/// Looks for an access that provably happens in this launch and lies outside the parameter's memory. `indices` gives
/// the indices that a parameter's memory has, in elements of a type. Finding none proves nothing.
///
/// A candidate is a point: a block and a value for each enclosing axis, at which the conditions hold. Any such point of
/// a nest that always runs is executed, so a point whose index is not among `indices` is a proof.
pub fn overrun(
    kernel: &Kernel,
    grid: [u32; 3],
    slots: &[u64],
    indices: &dyn Fn(usize, DType) -> Option<Range<i128>>,
) -> Option<Overrun> {
    if leaves_early(&kernel.body) {
        return None;
    }
    let launch = Launched { kernel, grid, slots };
    let mut search = Search { launch, indices, loops: Vec::new(), found: None };
    search.body(&kernel.body);
    search.found
}

/// Returns true if a `return` could end a block before an access is reached.
fn leaves_early(body: &[Stmt]) -> bool {
    body.iter().enumerate().any(|(i, stmt)| {
        walk::bodies(stmt).into_iter().any(|inner| leaves_early(inner))
            || matches!(stmt, Stmt::Return) && i + 1 < body.len()
    }) || matches!(body, [Stmt::Return])
}

/// Returns true if a body breaks or continues its own loop.
fn jumps(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Break | Stmt::Continue => true,
        Stmt::If { then, els, .. } => jumps(then) || jumps(els),
        _ => false,
    })
}

/// Returns true if a body holds nothing that may trap or never end.
fn ends_well(body: &[Stmt]) -> bool {
    body.iter().all(|stmt| {
        let may_not = matches!(stmt, Stmt::Assert { .. } | Stmt::Loop { .. });
        !may_not && walk::bodies(stmt).into_iter().all(|inner| ends_well(inner))
    })
}

struct Search<'a> {
    launch: Launched<'a>,
    indices: &'a dyn Fn(usize, DType) -> Option<Range<i128>>,
    loops: Vec<&'a For>,
    found: Option<Overrun>,
}

impl<'a> Search<'a> {
    /// Searches a body. Returns true if the statements after it are certain to be reached.
    fn body(&mut self, body: &'a [Stmt]) -> bool {
        for stmt in body {
            match stmt {
                Stmt::Load { mem, mask, .. } => self.access(mem, mask, false),
                Stmt::Store { mem, mask, .. } => self.access(mem, mask, true),
                Stmt::Rmw { mem, mask, .. } | Stmt::Cas { mem, mask, .. } => self.access(mem, mask, true),
                Stmt::For(l) if !jumps(&l.body) => {
                    self.loops.push(l);
                    let passes = self.body(&l.body);
                    self.loops.pop();
                    if !passes {
                        return false;
                    }
                }
                // These may trap or never end.
                Stmt::Assert { .. } | Stmt::Loop { .. } => return false,
                // It is not known whether the bodies of these run.
                stmt => {
                    if !walk::bodies(stmt).into_iter().all(|inner| ends_well(inner)) {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn access(&mut self, mem: &Mem, mask: &Mask, write: bool) {
        if self.found.is_some() || !mask.vals.is_empty() {
            return;
        }
        let Some(param) = self.launch.kernel.params.iter().position(|p| p.val == mem.base) else { return };
        let Some(indices) = (self.indices)(param, mem.elem) else { return };
        if let Some(index) = self.furthest(&mem.index, &mask.conds)
            && !indices.contains(&index)
        {
            self.found = Some(Overrun { param, write, index, indices });
        }
    }

    /// A large value that the index takes at some point where the conditions hold.
    fn furthest(&self, index: &Ix, conds: &[Cond]) -> Option<i128> {
        let mut point = Point::first();
        let depth = 3 + self.loops.len();
        // From the outermost variable inwards, the largest value that leaves the conditions satisfiable with the
        // variables further in at their smallest. It is found by halving, and checked in the end: an index or a
        // condition that is not monotone may hide an overrun, but never yields a false one.
        let mut chosen = vec![0i128; depth];
        for v in 0..depth {
            let rising = self.rises(index, &mut point, &chosen, v)?;
            if !rising {
                continue;
            }
            let (mut lo, mut hi) = (0, self.trips(&mut point, &chosen, v)? - 1);
            if hi < 0 {
                return None;
            }
            while lo < hi {
                let mid = (lo + hi + 1) / 2;
                chosen[v] = mid;
                if self.holds(conds, &mut point, &chosen) == Some(true) { lo = mid } else { hi = mid - 1 }
            }
            chosen[v] = lo;
        }
        (self.holds(conds, &mut point, &chosen)?).then(|| self.launch.eval(index, &point))?
    }

    /// Returns true if the index grows with variable `v`.
    fn rises(&self, index: &Ix, point: &mut Point, chosen: &[i128], v: usize) -> Option<bool> {
        if self.trips(point, chosen, v)? < 2 {
            self.place(point, chosen)?;
            return Some(false);
        }
        let mut moved = chosen.to_vec();
        self.place(point, &moved)?;
        let before = self.launch.eval(index, point)?;
        moved[v] = 1;
        self.place(point, &moved)?;
        Some(self.launch.eval(index, point)? >= before)
    }

    /// How many values variable `v` takes, given those further out.
    fn trips(&self, point: &mut Point, chosen: &[i128], v: usize) -> Option<i128> {
        if v < 3 {
            return Some(i128::from(*self.launch.grid.get(v)?));
        }
        self.place(point, chosen)?;
        let l = self.loops.get(v - 3)?;
        let (lo, hi, step) =
            (self.launch.eval(&l.lo, point)?, self.launch.eval(&l.hi, point)?, self.launch.eval(&l.step, point)?);
        (step > 0).then(|| (hi - lo + step - 1).max(0) / step)
    }

    /// Moves to the chosen iteration numbers; `None` when a bound cannot be computed.
    fn place(&self, point: &mut Point, chosen: &[i128]) -> Option<()> {
        point.block.copy_from_slice(chosen.get(..3)?);
        for (l, &t) in self.loops.iter().zip(chosen.get(3..)?) {
            let at = self.launch.eval(&l.lo, point)?.checked_add(self.launch.eval(&l.step, point)?.checked_mul(t)?)?;
            point.axes.insert(l.axis, at);
        }
        Some(())
    }

    /// Returns true if the point exists (every loop around runs that far) and the conditions hold at it.
    fn holds(&self, conds: &[Cond], point: &mut Point, chosen: &[i128]) -> Option<bool> {
        self.place(point, chosen)?;
        for l in &self.loops {
            if *point.axes.get(&l.axis)? >= self.launch.eval(&l.hi, point)? {
                return Some(false);
            }
        }
        for c in conds {
            let (a, b) = (self.launch.eval(&c.lhs, point)?, self.launch.eval(&c.rhs, point)?);
            if !c.cmp.holds(a, b) {
                return Some(false);
            }
        }
        Some(true)
    }
}
