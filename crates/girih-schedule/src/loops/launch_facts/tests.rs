use super::*;
use crate::loops::ir::{
    Axis, AxisId, Cmp, Cond, For, Ix, LoopKind, Mask, Opnd, Param, Place, RmwOp, SiteId, Val, ValId,
};
use crate::num::DType;

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
    overrun(k, grid, &[4096, n], &|_, _| Some(0..i128::from(len))).map(|o| o.index)
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
    let k = kernel(vec![nest(0, Ix::Const(128), vec![load(add(mul(Ix::Block(0), 128), Ix::Axis(AxisId(0))), vec![])])]);
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

/// The order of the blocks of a kernel of this body.
fn order_of(body: &str) -> BlockOrder {
    let text = format!("loop kernel k(lock: ptr i32, count: ptr i32):\n{body}");
    let (kernel, _) = crate::loops::parse::parse(&text).unwrap_or_else(|e| panic!("{text}{} {:?}", e.message, e.span));
    block_order(&kernel)
}

const TAKE: &str = "  loop:
    old: i32 = cas lock[bx%8], 0, 1 acquire
    taken: i1 = old == 1
    if taken:
      pass
    else:
      break
";
const ADD: &str = "  seen: i32 = load count[0]
  next: i32 = seen + 1
  store count[0] = next
";
const GIVE: &str = "  gone: i32 = atomic xchg lock[bx%8], 0 release\n";

#[test]
fn blocks_that_wait_for_a_lock_run_in_any_order() {
    let lines = |parts: &[&str]| order_of(&parts.concat());
    assert_eq!(lines(&[TAKE, ADD, GIVE]), BlockOrder::Locked);
    let flag = "  flag: i32 = atomic xchg lock[bx%8 + 8], 1 acq_rel\n";
    assert_eq!(lines(&[TAKE, flag, ADD, GIVE]), BlockOrder::Locked);
    assert_eq!(lines(&[TAKE, ADD, "  store lock[bx%8] = 0 release\n"]), BlockOrder::Locked);
    let until_free = "  loop:
    old: i32 = cas lock[bx%8], 0, 1 acquire
    free: i1 = old == 0
    if free:
      break
";
    assert_eq!(lines(&[until_free, ADD, GIVE]), BlockOrder::Locked);
    let inner = |text: &str| text.lines().map(|line| format!("  {line}\n")).collect::<String>();
    let turns = format!("  for turn in 0..3: serial\n{}{}{}", inner(TAKE), inner(ADD), inner(GIVE));
    assert_eq!(order_of(&turns), BlockOrder::Locked);
}

#[test]
fn blocks_that_wait_for_more_than_a_lock_do_not() {
    let lines = |parts: &[&str]| order_of(&parts.concat());
    // It is not given back, or elsewhere, or not by all, or with another value.
    assert_eq!(lines(&[TAKE, ADD]), BlockOrder::Together);
    assert_eq!(lines(&[TAKE, ADD, &GIVE.replace("bx%8", "bx%4")]), BlockOrder::Together);
    assert_eq!(lines(&[TAKE, ADD, &GIVE.replace(" release", " where bx < 3 release")]), BlockOrder::Together);
    assert_eq!(lines(&[TAKE, ADD, &GIVE.replace(", 0", ", 1")]), BlockOrder::Together);
    let leave = "  done: i1 = test bx == 5\n  if done:\n    return\n";
    assert_eq!(lines(&[TAKE, leave, GIVE]), BlockOrder::Together);
    // Another block opens the gate.
    let gate = "  first: i1 = test bx == 7\n  if first:\n    opened: i32 = atomic xchg lock[0], 0 release\n";
    assert_eq!(lines(&[gate, TAKE, ADD, GIVE]), BlockOrder::Together);
    assert_eq!(lines(&["  n: i32 = atomic add lock[0], 1 relaxed\n", TAKE, ADD, GIVE]), BlockOrder::Together);
    // A word that another block sets is waited for, and not changed.
    let set = TAKE.replace(", 0, 1", ", 1, 1");
    assert_eq!(lines(&[&set, ADD, GIVE]), BlockOrder::Together);
    // It waits for a second lock, or a word, while it has the first.
    let second = TAKE.replace("bx%8", "bx%8 + 8").replace("old", "old2").replace("taken", "taken2");
    let back = GIVE.replace("bx%8", "bx%8 + 8").replace("gone", "gone2");
    assert_eq!(lines(&[TAKE, &second, ADD, &back, GIVE]), BlockOrder::Together);
    assert_eq!(lines(&[TAKE, ADD, GIVE, &second, &back]), BlockOrder::Locked);
    let word = "  loop:\n    w: i32 = load count[1] acquire\n    set: i1 = w == 1\n    if set:\n      break\n";
    assert_eq!(lines(&[TAKE, word, GIVE]), BlockOrder::Together);
}
