//! What a kernel's loop nests say about how it must be launched.

use std::collections::BTreeMap;

use girih_compiler::loops::ir::{AxisId, Cond, For, Ix, Kernel, LoopKind, Mem, Order, Stmt, Ty, ValId};
use girih_compiler::num::DType;

use crate::blocks::BlockOrder;

/// Which blocks may run together, and in which order.
pub fn block_order(kernel: &Kernel) -> BlockOrder {
    fn scan(body: &[Stmt], in_loop: bool, found: &mut BlockOrder) {
        for stmt in body {
            let ordered = match stmt {
                Stmt::Rmw { .. } | Stmt::Cas { .. } => true,
                Stmt::Load { order, .. } | Stmt::Store { order, .. } => *order != Order::Weak,
                _ => false,
            };
            if ordered && in_loop {
                *found = BlockOrder::Together;
            } else if ordered && *found == BlockOrder::Ranges {
                *found = BlockOrder::Increasing;
            }
            for_each_body(stmt, &mut |inner| scan(inner, in_loop || matches!(stmt, Stmt::Loop { .. }), found));
        }
    }
    let mut found = BlockOrder::Ranges;
    scan(&kernel.body, false, &mut found);
    found
}

fn for_each_body<'a>(stmt: &'a Stmt, f: &mut dyn FnMut(&'a [Stmt])) {
    match stmt {
        Stmt::For(l) => f(&l.body),
        Stmt::Loop { body } | Stmt::Stage { body, .. } | Stmt::RegisterTile { body, .. } => f(body),
        Stmt::If { then, els, .. } => {
            f(then);
            f(els);
        }
        _ => {}
    }
}

/// What a kernel does to the memory of its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Per parameter: elements may be read.
    pub reads: Vec<bool>,
    /// Per parameter: elements may be written.
    pub writes: Vec<bool>,
}

/// Reads and writes per parameter; an access whose address is computed counts against every pointer parameter.
pub fn traffic(kernel: &Kernel) -> Traffic {
    let pointer: Vec<bool> = kernel.params.iter().map(|p| matches!(p.ty, Ty::Ptr(_))).collect();
    let mut t = Traffic { reads: vec![false; pointer.len()], writes: vec![false; pointer.len()] };
    let mut note = |mem: &Mem, read: bool, write: bool| {
        let direct = kernel.params.iter().position(|p| p.val == mem.base);
        for (i, &is_pointer) in pointer.iter().enumerate() {
            if is_pointer && direct.is_none_or(|d| d == i) {
                t.reads[i] |= read;
                t.writes[i] |= write;
            }
        }
    };
    fn scan(body: &[Stmt], note: &mut dyn FnMut(&Mem, bool, bool)) {
        for stmt in body {
            match stmt {
                Stmt::Load { mem, .. } => note(mem, true, false),
                Stmt::Store { mem, .. } => note(mem, false, true),
                Stmt::Rmw { mem, .. } | Stmt::Cas { mem, .. } => note(mem, true, true),
                _ => {}
            }
            for_each_body(stmt, &mut |inner| scan(inner, note));
        }
    }
    scan(&kernel.body, &mut note);
    t
}

/// An access that will happen and lies outside its buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overrun {
    pub param: usize,
    pub write: bool,
    /// The element that will be touched.
    pub index: i128,
    pub elements: u64,
}

/// Looks for an access that provably happens in this launch and lies outside the parameter's memory. `elements` gives a
/// parameter's size in elements of a type. Finding none proves nothing.
///
/// A candidate is a point: a block and a value for each enclosing axis, at which the conditions hold. Any such point of a
/// nest that always runs is executed, so one whose index is too large (or negative) is a proof.
pub fn overrun(
    kernel: &Kernel,
    grid: [u32; 3],
    slots: &[u64],
    elements: &dyn Fn(usize, DType) -> Option<u64>,
) -> Option<Overrun> {
    if leaves_early(&kernel.body) {
        return None;
    }
    let mut search = Search::new(kernel, grid, slots, elements);
    search.body(&kernel.body);
    search.found
}

/// Whether a `return` could end a block before an access is reached.
fn leaves_early(body: &[Stmt]) -> bool {
    body.iter().enumerate().any(|(i, stmt)| {
        let mut inside = false;
        for_each_body(stmt, &mut |inner| inside |= leaves_early(inner));
        inside || matches!(stmt, Stmt::Return) && i + 1 < body.len()
    }) || matches!(body, [Stmt::Return])
}

/// Whether a body breaks or continues its own loop.
fn jumps(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Break | Stmt::Continue => true,
        Stmt::If { then, els, .. } => jumps(then) || jumps(els),
        _ => false,
    })
}

/// Whether a body holds nothing that may trap or never end.
fn ends_well(body: &[Stmt]) -> bool {
    body.iter().all(|stmt| {
        let mut well = !matches!(stmt, Stmt::Assert { .. } | Stmt::Loop { .. });
        for_each_body(stmt, &mut |inner| well &= ends_well(inner));
        well
    })
}

struct Search<'a> {
    kernel: &'a Kernel,
    grid: [u32; 3],
    slots: &'a [u64],
    elements: &'a dyn Fn(usize, DType) -> Option<u64>,
    loops: Vec<&'a For>,
    found: Option<Overrun>,
}

/// A point: the block, then the axes of the loops around, outermost first, as iteration numbers.
struct Point {
    block: [i128; 3],
    axes: BTreeMap<AxisId, i128>,
}

impl<'a> Search<'a> {
    fn new(
        kernel: &'a Kernel,
        grid: [u32; 3],
        slots: &'a [u64],
        elements: &'a dyn Fn(usize, DType) -> Option<u64>,
    ) -> Search<'a> {
        Search { kernel, grid, slots, elements, loops: Vec::new(), found: None }
    }

    /// Steps into a loop at its first iteration; how often it runs.
    fn enter(&self, l: &For, point: &mut Point) -> Option<f64> {
        let (lo, hi, step) = (self.eval(&l.lo, point)?, self.eval(&l.hi, point)?, self.eval(&l.step, point)?);
        point.axes.insert(l.axis, lo);
        (step > 0).then(|| ((hi - lo).max(0) as f64 / step as f64).ceil())
    }

    /// Searches a body; whether what follows it is certain to be reached.
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
                // Whether these run is not known.
                stmt => {
                    let mut passes = true;
                    for_each_body(stmt, &mut |inner| passes &= ends_well(inner));
                    if !passes {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn access(&mut self, mem: &Mem, mask: &girih_compiler::loops::ir::Mask, write: bool) {
        if self.found.is_some() || !mask.vals.is_empty() {
            return;
        }
        let Some(param) = self.kernel.params.iter().position(|p| p.val == mem.base) else { return };
        let Some(elements) = (self.elements)(param, mem.elem) else { return };
        if let Some(index) = self.furthest(&mem.index, &mask.conds)
            && (index >= i128::from(elements) || index < 0)
        {
            self.found = Some(Overrun { param, write, index, elements });
        }
    }

    /// A large value that the index takes at some point where the conditions hold.
    fn furthest(&self, index: &Ix, conds: &[Cond]) -> Option<i128> {
        let mut point = Point { block: [0; 3], axes: BTreeMap::new() };
        let depth = 3 + self.loops.len();
        // From the outermost variable inwards, the largest value that leaves the conditions satisfiable with the
        // variables further in at their smallest; found by halving, and checked in the end, so that an index or a
        // condition that is not monotone costs an opportunity and no truth.
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
        (self.holds(conds, &mut point, &chosen)?).then(|| self.eval(index, &point))?
    }

    /// Whether the index grows with variable `v`.
    fn rises(&self, index: &Ix, point: &mut Point, chosen: &[i128], v: usize) -> Option<bool> {
        if self.trips(point, chosen, v)? < 2 {
            self.place(point, chosen)?;
            return Some(false);
        }
        let mut moved = chosen.to_vec();
        self.place(point, &moved)?;
        let before = self.eval(index, point)?;
        moved[v] = 1;
        self.place(point, &moved)?;
        Some(self.eval(index, point)? >= before)
    }

    /// How many values variable `v` takes, given those further out.
    fn trips(&self, point: &mut Point, chosen: &[i128], v: usize) -> Option<i128> {
        if v < 3 {
            return Some(i128::from(*self.grid.get(v)?));
        }
        self.place(point, chosen)?;
        let l = self.loops.get(v - 3)?;
        let (lo, hi, step) = (self.eval(&l.lo, point)?, self.eval(&l.hi, point)?, self.eval(&l.step, point)?);
        (step > 0).then(|| (hi - lo + step - 1).max(0) / step)
    }

    /// Moves to the chosen iteration numbers; `None` when a bound cannot be computed.
    fn place(&self, point: &mut Point, chosen: &[i128]) -> Option<()> {
        point.block.copy_from_slice(chosen.get(..3)?);
        for (l, &t) in self.loops.iter().zip(chosen.get(3..)?) {
            let at = self.eval(&l.lo, point)?.checked_add(self.eval(&l.step, point)?.checked_mul(t)?)?;
            point.axes.insert(l.axis, at);
        }
        Some(())
    }

    /// Whether the point exists (every loop around runs that far) and the conditions hold at it.
    fn holds(&self, conds: &[Cond], point: &mut Point, chosen: &[i128]) -> Option<bool> {
        self.place(point, chosen)?;
        for l in &self.loops {
            if *point.axes.get(&l.axis)? >= self.eval(&l.hi, point)? {
                return Some(false);
            }
        }
        for c in conds {
            let (a, b) = (self.eval(&c.lhs, point)?, self.eval(&c.rhs, point)?);
            if !c.cmp.holds(a, b) {
                return Some(false);
            }
        }
        Some(true)
    }

    fn eval(&self, ix: &Ix, point: &Point) -> Option<i128> {
        let two = |a: &Ix, b: &Ix| Some((self.eval(a, point)?, self.eval(b, point)?));
        match ix {
            Ix::Const(c) => Some(i128::from(*c)),
            Ix::Axis(a) => point.axes.get(a).copied(),
            Ix::Val { val, zext } => self.param(*val, *zext),
            Ix::Block(d) => point.block.get(usize::from(*d)).copied(),
            Ix::Grid(d) => self.grid.get(usize::from(*d)).map(|&g| i128::from(g)),
            Ix::Add(a, b) => two(a, b).and_then(|(a, b)| a.checked_add(b)),
            Ix::Sub(a, b) => two(a, b).and_then(|(a, b)| a.checked_sub(b)),
            Ix::Mul(a, b) => two(a, b).and_then(|(a, b)| a.checked_mul(b)),
            Ix::FloorDiv(a, b) => two(a, b).filter(|&(_, b)| b > 0).map(|(a, b)| a.div_euclid(b)),
            Ix::Mod(a, b) => two(a, b).filter(|&(_, b)| b > 0).map(|(a, b)| a.rem_euclid(b)),
            Ix::Min(a, b) => two(a, b).map(|(a, b)| a.min(b)),
            Ix::Max(a, b) => two(a, b).map(|(a, b)| a.max(b)),
        }
    }

    fn param(&self, val: ValId, zext: bool) -> Option<i128> {
        let i = self.kernel.params.iter().position(|p| p.val == val)?;
        let Ty::Num(dtype) = self.kernel.params.get(i)?.ty else { return None };
        let bits = *self.slots.get(i)? & dtype.mask();
        let shift = 64 - dtype.bits();
        Some(if zext { i128::from(bits) } else { i128::from((bits << shift) as i64 >> shift) })
    }
}

/// The work of a launch that its loops' bounds tell: floating or integer operations of contractions (a multiply and an
/// add each), edges of partial tiles included. `None` where a bound is computed by the kernel.
pub fn contraction_work(kernel: &Kernel, grid: [u32; 3], slots: &[u64]) -> Option<f64> {
    let mut work = 0.0;
    walk_trips(kernel, grid, slots, &mut |l, around, trips| {
        if l.contraction.is_some() {
            work += 2.0 * around * trips;
        }
    })?;
    Some(work * grid.iter().map(|&g| f64::from(g)).product::<f64>())
}

/// The longest chain of dependent steps: the product of the trip counts of nested reduce and serial loops.
pub fn longest_accumulation(kernel: &Kernel, grid: [u32; 3], slots: &[u64]) -> Option<f64> {
    fn chain(search: &Search<'_>, body: &[Stmt], point: &mut Point) -> Option<f64> {
        let mut longest = 1f64;
        for stmt in body {
            let inner = match stmt {
                Stmt::For(l) => {
                    let trips = search.enter(l, point)?;
                    let own = if l.kind == LoopKind::Free { 1.0 } else { trips.max(1.0) };
                    own * chain(search, &l.body, point)?
                }
                Stmt::If { then, els, .. } => chain(search, then, point)?.max(chain(search, els, point)?),
                Stmt::Loop { body } => chain(search, body, point)?,
                _ => 1.0,
            };
            longest = longest.max(inner);
        }
        Some(longest)
    }
    let mut point = Point { block: [0; 3], axes: BTreeMap::new() };
    chain(&Search::new(kernel, grid, slots, &|_, _| None), &kernel.body, &mut point)
}

/// Calls `f` for each loop with the product of the trip counts around it and its own, in block 0.
fn walk_trips(kernel: &Kernel, grid: [u32; 3], slots: &[u64], f: &mut dyn FnMut(&For, f64, f64)) -> Option<()> {
    fn walk(
        search: &Search<'_>,
        body: &[Stmt],
        around: f64,
        point: &mut Point,
        f: &mut dyn FnMut(&For, f64, f64),
    ) -> Option<()> {
        for stmt in body {
            match stmt {
                Stmt::For(l) => {
                    let trips = search.enter(l, point)?;
                    f(l, around, trips);
                    walk(search, &l.body, around * trips, point, f)?;
                }
                Stmt::If { then, els, .. } => {
                    walk(search, then, around, point, f)?;
                    walk(search, els, around, point, f)?;
                }
                Stmt::Loop { body } => walk(search, body, around, point, f)?,
                _ => {}
            }
        }
        Some(())
    }
    let mut point = Point { block: [0; 3], axes: BTreeMap::new() };
    walk(&Search::new(kernel, grid, slots, &|_, _| None), &kernel.body, 1.0, &mut point, f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use girih_compiler::loops::ir::Cmp;
    use girih_compiler::loops::ir::{Axis, Mask, Opnd, Param, Place, RmwOp, SiteId, Val};

    fn add(a: Ix, b: Ix) -> Ix {
        Ix::Add(Box::new(a), Box::new(b))
    }
    fn mul(a: Ix, b: i64) -> Ix {
        Ix::Mul(Box::new(a), Box::new(Ix::Const(b)))
    }

    /// A kernel over (A: ptr f32, n: i32) with axes named as needed.
    fn kernel(body: Vec<Stmt>) -> Kernel {
        let mut k = Kernel { name: "k".into(), body, ..Kernel::default() };
        for (name, ty) in [("A", Ty::Ptr(DType::F32)), ("n", Ty::Num(DType::I32))] {
            let val = k.vals.push(Val { ty, name: name.into() });
            k.params.push(Param { name: name.into(), ty, val, div_by: 1, range: None });
        }
        for _ in 0..3 {
            k.axes.push(Axis { name: "i".into(), from: None });
        }
        k
    }
    fn mem(index: Ix) -> Mem {
        Mem { base: ValId(0), index, elem: DType::F32 }
    }
    fn load(index: Ix, conds: Vec<Cond>) -> Stmt {
        let mask = Mask { conds, vals: vec![] };
        Stmt::Load { dst: ValId(9), mem: mem(index), mask, other: None, order: Order::Weak, site: SiteId(0) }
    }
    fn store(index: Ix, order: Order) -> Stmt {
        let value = Opnd::Const { dtype: DType::F32, bits: 0 };
        Stmt::Store { mem: mem(index), value, mask: Mask::default(), order, site: SiteId(0) }
    }
    fn nest(axis: u32, hi: Ix, body: Vec<Stmt>) -> Stmt {
        Stmt::For(Box::new(For {
            axis: AxisId(axis),
            lo: Ix::Const(0),
            hi,
            step: Ix::Const(1),
            kind: LoopKind::Free,
            place: Place::None,
            combine: None,
            contraction: None,
            stream: None,
            body,
        }))
    }
    fn n() -> Ix {
        Ix::Val { val: ValId(1), zext: false }
    }
    fn find(k: &Kernel, grid: [u32; 3], n: u64, len: u64) -> Option<i128> {
        overrun(k, grid, &[4096, n], &|_, _| Some(len)).map(|o| o.index)
    }

    #[test]
    fn nothing_is_certain_after_an_assertion() {
        let cond = Opnd::Const { dtype: DType::I1, bits: 0 };
        let assert = Stmt::Assert { cond, message: String::new(), site: SiteId(0) };
        let walk = || nest(0, Ix::Const(128), vec![load(Ix::Axis(AxisId(0)), vec![])]);
        assert_eq!(find(&kernel(vec![walk(), assert.clone()]), [1, 1, 1], 0, 4), Some(127));
        assert_eq!(find(&kernel(vec![assert, walk()]), [1, 1, 1], 0, 4), None);
        assert_eq!(find(&kernel(vec![Stmt::Loop { body: vec![] }, walk()]), [1, 1, 1], 0, 4), None);
    }

    #[test]
    fn a_plain_nest_reaches_its_corner() {
        // A[bx*128 + i] for i in 0..128
        let k =
            kernel(vec![nest(0, Ix::Const(128), vec![load(add(mul(Ix::Block(0), 128), Ix::Axis(AxisId(0))), vec![])])]);
        assert_eq!(find(&k, [32, 1, 1], 0, 4096), None);
        assert_eq!(find(&k, [32, 1, 1], 0, 4095), Some(4095));
        assert_eq!(find(&k, [1, 1, 1], 0, 128), None);
    }

    #[test]
    fn a_mask_is_respected() {
        // where bx*128 + i < n
        let at = add(mul(Ix::Block(0), 128), Ix::Axis(AxisId(0)));
        let cond = Cond { lhs: at.clone(), cmp: Cmp::Lt, rhs: n() };
        let k = kernel(vec![nest(0, Ix::Const(128), vec![load(at, vec![cond])])]);
        assert_eq!(find(&k, [32, 1, 1], 1000, 1000), None);
        assert_eq!(find(&k, [32, 1, 1], 1000, 999), Some(999));
        assert_eq!(find(&k, [2, 1, 1], 1000, 256), None);
        assert_eq!(find(&k, [2, 1, 1], 0, 0), None);
    }

    #[test]
    fn falling_and_negative_indices() {
        // A[i - 3] and A[7 - i] for i in 0..n
        let falling = Ix::Sub(Box::new(Ix::Const(7)), Box::new(Ix::Axis(AxisId(0))));
        let k = kernel(vec![nest(0, n(), vec![load(falling, vec![])])]);
        assert_eq!(find(&k, [1, 1, 1], 8, 8), None);
        assert_eq!(find(&k, [1, 1, 1], 8, 7), Some(7));
        assert_eq!(find(&k, [1, 1, 1], 0, 1), None);
        let k = kernel(vec![load(Ix::Const(-3), vec![])]);
        assert_eq!(find(&k, [1, 1, 1], 0, 10), Some(-3));
    }

    #[test]
    fn what_may_not_run_proves_nothing() {
        let far = || load(Ix::Const(1 << 40), vec![]);
        let cond = Opnd::Const { dtype: DType::I1, bits: 1 };
        let k = kernel(vec![Stmt::If { cond, then: vec![far()], els: vec![] }]);
        assert_eq!(find(&k, [1, 1, 1], 0, 1), None);
        let early = Stmt::If { cond, then: vec![Stmt::Return], els: vec![] };
        assert_eq!(find(&kernel(vec![early, far()]), [1, 1, 1], 0, 1), None);
        assert_eq!(find(&kernel(vec![far(), Stmt::Return]), [1, 1, 1], 0, 1), Some(1 << 40));
        assert_eq!(find(&kernel(vec![nest(0, Ix::Const(0), vec![far()])]), [1, 1, 1], 0, 1), None);
    }

    #[test]
    fn ordered_accesses_decide_the_order_of_blocks() {
        let plain = store(Ix::Const(0), Order::Weak);
        let ordered = store(Ix::Const(0), Order::Release);
        let rmw = Stmt::Rmw {
            dst: ValId(3),
            op: RmwOp::Add,
            mem: mem(Ix::Const(0)),
            value: Opnd::Const { dtype: DType::F32, bits: 0 },
            mask: Mask::default(),
            order: Order::Relaxed,
            site: SiteId(0),
        };
        assert_eq!(block_order(&kernel(vec![plain.clone()])), BlockOrder::Ranges);
        assert_eq!(block_order(&kernel(vec![plain.clone(), ordered])), BlockOrder::Increasing);
        let tile = nest(0, Ix::Const(4), vec![rmw.clone()]);
        assert_eq!(block_order(&kernel(vec![tile])), BlockOrder::Increasing);
        assert_eq!(
            block_order(&kernel(vec![Stmt::Loop { body: vec![plain.clone()] }, rmw.clone()])),
            BlockOrder::Increasing
        );
        assert_eq!(
            block_order(&kernel(vec![Stmt::Loop { body: vec![nest(0, Ix::Const(4), vec![rmw])] }])),
            BlockOrder::Together
        );
    }

    #[test]
    fn traffic_per_parameter() {
        let t = traffic(&kernel(vec![nest(0, n(), vec![load(Ix::Const(0), vec![])])]));
        assert_eq!((t.reads, t.writes), (vec![true, false], vec![false, false]));
        let mut elsewhere = store(Ix::Const(0), Order::Weak);
        if let Stmt::Store { mem, .. } = &mut elsewhere {
            mem.base = ValId(7);
        }
        assert_eq!(traffic(&kernel(vec![elsewhere])).writes, [true, false]);
    }
}
