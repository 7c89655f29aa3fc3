//! `pair LOOP, ..`: the terms of sums of products are taken two at a time, or four, by the instruction that adds the products of the
//! elements of two words.
//!
//! ```text
//! for k in 0..1024: reduce contraction               for k2 in 0..512: reduce contraction
//!   x: bf16 = load A[i*1024 + k]                       x = word(load A[i*1024 + k2*2], load A[i*1024 + k2*2 + 1])
//!   y: bf16 = load B[k*768 + j]                -->     y = word(load B[k2*1536 + j], load B[k2*1536 + 768 + j])
//!   acc <- fma(f32(x), f32(y), acc)                    acc <- dot2(x, y, acc)
//! ```
//!
//! Legal where the processor has the instruction, for sums that multiply and add and do nothing else for a term, whose terms fill whole
//! words or can end in zeros; floats only where the order of terms is not a program's. The sums of a nest run side by side: all are
//! paired, each along the loop that is named.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::index::simplify;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::op::{Rounding, Signedness};
use crate::num::{DType, ScalarOp};
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::edit;
use crate::tile::heuristics::named;
use crate::tile::heuristics::pair_terms::ENOUGH_ROWS;
use crate::tile::primitives::line::{LoopRef, loop_at};
use crate::tile::target::MatrixUnit;
use crate::tile::tile_nest::{slice, sum, widened};

/// Pairs the terms along loops. `is_weight`: the words of such a right operand are made elsewhere, beforehand.
pub fn apply(
    kernel: &mut Kernel,
    ctx: &Context,
    loops: &[LoopRef],
    is_weight: &dyn Fn(&Mem) -> bool,
) -> Result<(), String> {
    let p = kernel.clone();
    let mut axes = vec![];
    for at in loops {
        let f = loop_at(&p, *at)?;
        if f.place != Place::None {
            return Err("the loop is placed already".to_string());
        }
        axes.push(f.axis);
    }
    let (mut words, mut done) = (Words::default(), 0);
    for at in 0..p.body.len() {
        let mut made: BTreeMap<AxisId, For> = BTreeMap::new();
        let mut found = vec![];
        sums_of(&p.body[at], &mut vec![], &mut found);
        if found.is_empty() {
            for f in folds_of(&p.body[at]).into_iter().filter(|f| axes.contains(&f.axis)) {
                let why = "it does more for each term than add the product of two elements that are loaded as words";
                let new = if p.open { fold(kernel, ctx, f, &mut words) } else { None };
                made.insert(f.axis, new.ok_or(why)?);
            }
        } else {
            let over = |f: &For| axes.iter().find(|a| loops_of(f).iter().any(|f| f.axis == **a)).copied();
            let named = found.iter().filter(|(f, _)| over(f).is_some()).count();
            if named == 0 {
                continue;
            }
            // The sums of a nest run side by side, so all are paired or none.
            let mut ready = vec![];
            for (f, _) in &found {
                let over = over(f).ok_or("the nest has other sums, which run beside it")?;
                ready.push((f.axis, Pairs::of(&p, ctx, f, &Asked::Step { over }, is_weight)?));
            }
            for (axis, pairs) in ready {
                made.insert(axis, pairs.made(kernel, &mut words));
            }
        }
        done += made.len();
        put(&mut kernel.body[at..=at], made);
    }
    if done < loops.len() {
        return Err("it is not the loop of a sum of products".to_string());
    }
    // Addresses of words are computed once, before all else.
    kernel.body.splice(0..0, words.casts);
    Ok(())
}

/// The loops of a statement that fold and may be reassociated.
pub fn folds_of(s: &Stmt) -> Vec<&For> {
    walk::loops(std::slice::from_ref(s)).filter(|f| f.kind == LoopKind::Reduce && f.combine.is_some()).collect()
}

/// The loops of a sum, from the outermost one on.
fn loops_of(f: &For) -> Vec<&For> {
    let mut all = vec![f];
    while let Some(Stmt::For(next)) = all.last().filter(|f| f.contraction.is_none()).and_then(|f| f.body.last()) {
        all.push(next);
    }
    all
}

/// Arrays as arrays of words.
#[derive(Default)]
pub struct Words {
    of: BTreeMap<ValId, ValId>,
    casts: Vec<Stmt>,
}

impl Words {
    /// The address of an array's words.
    fn base(&mut self, kernel: &mut Kernel, base: ValId) -> ValId {
        *self.of.entry(base).or_insert_with(|| {
            let name = kernel.vals.get(base).map_or_else(String::new, |v| format!("{}_pairs", v.name));
            let dst = kernel.vals.push(Val { ty: Ty::Ptr(DType::I32), name });
            kernel.sources.vals.copy(base, dst);
            let op = ScalarOp::IntToPtr { to: DType::I32 };
            self.casts.push(Stmt::Let { dst, op, args: vec![Opnd::Val(base)] });
            dst
        })
    }
}

/// An element whose word is one load: neighbours along the sum lie side by side, the first at a multiple of as many.
struct Joined<'a> {
    load: &'a Stmt,
    mem: &'a Mem,
    /// The element, and what its bits are turned around by, if they are.
    value: ValId,
    turned: Option<u64>,
    /// Elements of a word.
    width: i64,
}

impl<'a> Joined<'a> {
    fn of(kernel: &Kernel, stmts: &[&'a Stmt], axis: AxisId, width: i64) -> Option<Joined<'a>> {
        let (load, rest) = stmts.split_first()?;
        let Stmt::Load { dst, mem, mask, order: Order::Weak, .. } = load else { return None };
        let (value, turned) = match rest {
            [] => (*dst, None),
            [Stmt::Let { dst: value, op: ScalarOp::Xor, args }] => match args[..] {
                [Opnd::Val(x), Opnd::Const { bits, .. }] if x == *dst => (*value, Some(bits)),
                _ => return None,
            },
            _ => return None,
        };
        let param = kernel.params.iter().any(|p| p.val == mem.base);
        if !param || !mem.index.vals().is_empty() || !mask.is_always() || i64::from(mem.elem.bits()) * width != 32 {
            return None;
        }
        let joined = Joined { load, mem, value, turned, width };
        let whole = Ix::mul(joined.index(kernel, axis, axis), Ix::Const(width));
        let follows = |nth: i64| {
            let apart = Ix::sub(joined.nth(axis, axis, nth), whole.clone());
            simplify(&apart, &kernel.facts()).is_const(nth)
        };
        let unit = affine::stride(&mem.index, axis, &BTreeSet::new()) == Stride::Unit;
        let side_by_side = if unit { follows(0) } else { (0..width).all(follows) };
        side_by_side.then_some(joined)
    }

    /// Where an element of a word lies, whose number is `word`.
    fn nth(&self, axis: AxisId, word: AxisId, nth: i64) -> Ix {
        let at = || Ix::add(Ix::mul(Ix::Axis(word), Ix::Const(self.width)), Ix::Const(nth));
        self.mem.index.subst_axes(&mut |a| (a == axis).then(at))
    }

    fn first(&self, axis: AxisId, word: AxisId) -> Ix {
        self.nth(axis, word, 0)
    }

    /// The same in words.
    fn index(&self, kernel: &Kernel, axis: AxisId, word: AxisId) -> Ix {
        let first = self.first(axis, word);
        simplify(&Ix::floor_div(first, Ix::Const(self.width)), &kernel.facts())
    }

    /// The load of a word, put behind `body`.
    fn made(
        &self,
        kernel: &mut Kernel,
        words: &mut Words,
        axis: AxisId,
        pair: AxisId,
        body: &mut Vec<Stmt>,
    ) -> Option<ValId> {
        let Stmt::Load { dst: element, order, site, .. } = self.load else { return None };
        let index = self.index(kernel, axis, pair);
        let base = words.base(kernel, self.mem.base);
        let name = kernel.vals.get(*element).map_or_else(String::new, |v| v.name.clone());
        let dst = kernel.vals.push(Val { ty: Ty::Num(DType::I32), name });
        kernel.sources.vals.copy(*element, dst);
        let mem = Mem { base, index, elem: DType::I32 };
        body.push(Stmt::Load { dst, mem, mask: Mask::default(), other: None, order: *order, site: *site });
        let Some(bits) = self.turned else { return Some(dst) };
        let bits = (0..self.width).fold(0, |word, part| word | bits << (32 / self.width * part));
        let name = kernel.vals.get(self.value).map_or_else(String::new, |v| v.name.clone());
        let turned = kernel.vals.push(Val { ty: Ty::Num(DType::I32), name });
        kernel.sources.vals.copy(self.value, turned);
        let args = vec![Opnd::Val(dst), Opnd::Const { dtype: DType::I32, bits }];
        body.push(Stmt::Let { dst: turned, op: ScalarOp::Xor, args });
        Some(turned)
    }
}

/// Puts loops in the place of those over the axes that they are listed by.
fn put(body: &mut [Stmt], mut made: BTreeMap<AxisId, For>) {
    walk::visit_mut(body, &mut |s| {
        if let Stmt::For(f) = s
            && let Some(new) = made.remove(&f.axis)
        {
            **f = new;
        }
    });
}

/// A loop that adds up products and nothing else, over pairs; `None` where it is another.
pub fn fold(kernel: &mut Kernel, ctx: &Context, f: &For, words: &mut Words) -> Option<For> {
    let terms = terms(f)?.as_const().filter(|n| *n > 0)?;
    let all: Vec<&Stmt> = f.body.iter().collect();
    // Floats are multiplied and added in one step, integers in two.
    let (step, wide, before) = all.iter().find_map(|s| match s {
        Stmt::Let { op: ScalarOp::Fma { rounding: Rounding::NearestEven, ftz: false }, args, .. } => match args[..] {
            [Opnd::Val(x), Opnd::Val(y), Opnd::Val(acc)] => Some((*s, [x, y], Opnd::Val(acc))),
            _ => None,
        },
        Stmt::Let { op: ScalarOp::MulI, args, .. } => match args[..] {
            [Opnd::Val(x), Opnd::Val(y)] => Some((*s, [x, y], Opnd::Const { dtype: DType::I32, bits: 0 })),
            _ => None,
        },
        _ => None,
    })?;
    let product = walk::def(step)?;
    let [(is_float, x, _), (other, y, _)] =
        [element(kernel, &all, wide[0]).ok()?, element(kernel, &all, wide[1]).ok()?];
    let (op, unit) = operation(is_float);
    if is_float != other {
        return None;
    }
    let quads = quads(kernel, ctx, &all, wide).filter(|_| terms % 4 == 0);
    let (op, unit, width, [x, y]) = match quads {
        Some(bytes) => (ScalarOp::DotB, MatrixUnit::ByteQuads, 4, bytes),
        None => (op, unit, 2, [x, y]),
    };
    if terms % width != 0 || !ctx.target.matrix_units.contains(&unit) {
        return None;
    }
    let operands = [slice(&all, &[x]), slice(&all, &[y])];
    let joined = [Joined::of(kernel, &operands[0], f.axis, width)?, Joined::of(kernel, &operands[1], f.axis, width)?];
    // The other statements read the sum, add a product of integers to it, and write it, in the same way for each term.
    let accs: Vec<BufId> = f.combine.iter().flat_map(|c| c.accs.clone()).collect();
    let of_sum = |s: &Stmt| match s {
        Stmt::Let { op: ScalarOp::AddI, args, .. } => args.contains(&Opnd::Val(product)),
        Stmt::Read { buf, .. } | Stmt::Write { buf, .. } => accs.contains(buf),
        _ => false,
    };
    let computed = slice(&all, &wide);
    let is = |s: &Stmt, other: &Stmt| std::ptr::eq(s, other);
    let rest: Vec<&Stmt> = all.iter().copied().filter(|s| !computed.iter().any(|c| is(c, s))).collect();
    let elements: BTreeSet<ValId> = computed.iter().filter_map(|s| walk::def(s)).collect();
    let plain = rest.iter().filter(|s| !is(s, step)).all(|s| {
        let facts = walk::refs_of(s);
        of_sum(s) && !facts.axes_used.contains(&f.axis) && facts.vals_used.is_disjoint(&elements)
    });
    let sums = rest.iter().filter(|s| matches!(s, Stmt::Let { .. })).count();
    let sum = |s: &&Stmt| matches!(s, Stmt::Read { dst, .. } if before == Opnd::Val(*dst));
    if !plain || sums != if is_float { 1 } else { 2 } || is_float && !rest.iter().any(sum) {
        return None;
    }
    // The operation adds to the sum, which the addition of integers did.
    let added = |s: &&&Stmt| matches!(s, Stmt::Let { op: ScalarOp::AddI, .. });
    let (last, before) = match rest.iter().find(added) {
        Some(Stmt::Let { dst, args, .. }) => (*dst, args.iter().copied().find(|a| *a != Opnd::Val(product))?),
        _ => (product, before),
    };
    let axis = edit::new_axis(kernel, f.axis, "2");
    let mut body = vec![];
    let x = joined[0].made(kernel, words, f.axis, axis, &mut body)?;
    let y = joined[1].made(kernel, words, f.axis, axis, &mut body)?;
    let paired = Stmt::Let { dst: last, op, args: vec![Opnd::Val(x), Opnd::Val(y), before] };
    let made = |s: &Stmt| if walk::def(s) == Some(last) { paired.clone() } else { s.clone() };
    body.extend(rest.into_iter().filter(|s| last == product || !is(s, step)).map(made));
    Some(For { axis, hi: Ix::Const(terms / width), body, ..f.clone() })
}

/// The unsigned and the signed byte that two factors are extended from, where the processor adds four of their products at once.
fn quads(kernel: &Kernel, ctx: &Context, inside: &[&Stmt], factors: [ValId; 2]) -> Option<[ValId; 2]> {
    let [(x, of_x), (y, of_y)] = [byte(kernel, inside, factors[0])?, byte(kernel, inside, factors[1])?];
    let found = of_x != of_y && ctx.target.matrix_units.contains(&MatrixUnit::ByteQuads);
    found.then_some(if of_y == Signedness::Unsigned { [y, x] } else { [x, y] })
}

/// How many terms a loop has, where it counts them from 0.
fn terms(f: &For) -> Option<&Ix> {
    (f.counts_from_zero()).then_some(&f.hi)
}

/// True if this many terms are known to make up whole words.
fn whole(kernel: &Kernel, terms: &Ix, width: i64) -> bool {
    kernel.facts().divisor(terms).is_multiple_of(width.unsigned_abs())
}

/// The loops of sums of products, of each the outermost, with the number of rows around it where that is known.
pub fn sums_of<'a>(s: &'a Stmt, around: &mut Vec<&'a For>, out: &mut Vec<(&'a For, Option<i64>)>) {
    let Stmt::For(f) = s else {
        walk::bodies(s).into_iter().flatten().for_each(|s| sums_of(s, around, out));
        return;
    };
    if f.stream.is_some() {
        return;
    }
    if let Some(roles) = contraction(f) {
        let extent = |axis: &AxisId| around.iter().find(|f| f.axis == *axis).and_then(|f| f.hi.as_const());
        out.push((f, roles.m.iter().map(extent).product()));
        return;
    }
    around.push(f);
    f.body.iter().for_each(|s| sums_of(s, around, out));
    around.pop();
}

/// The contraction of a loop, or of the loop that is the last statement in it.
fn contraction(f: &For) -> Option<&Contraction> {
    match (&f.contraction, f.body.last()) {
        (Some(roles), _) => Some(roles),
        (None, Some(Stmt::For(next))) if f.kind == LoopKind::Reduce => contraction(next),
        _ => None,
    }
}

/// An element of an operand.
struct Element<'a> {
    /// The statements that compute it.
    made: Vec<&'a Stmt>,
    value: ValId,
    /// The operation that extends it to 16 bits.
    extend: Option<ScalarOp>,
    joined: Option<Joined<'a>>,
}

/// The value that an element is taken from, and the operation that extends it.
type Taken = (ValId, Option<ScalarOp>);

impl<'a> Element<'a> {
    fn of(kernel: &Kernel, inside: &[&'a Stmt], axis: AxisId, (value, extend): Taken, width: i64) -> Element<'a> {
        let made = slice(inside, &[value]);
        let joined = Joined::of(kernel, &made, axis, width);
        Element { made, value, extend, joined }
    }

    /// True if zeros can stand for elements that do not exist: nothing but loads needs the axis.
    fn can_end(&self) -> bool {
        self.made.iter().all(|s| matches!(s, Stmt::Load { order: Order::Weak, .. } | Stmt::Let { .. }))
    }

    /// True if the element is 0 where its load is off.
    fn ends_in_zero(&self) -> bool {
        match self.made[..] {
            [Stmt::Load { other, .. }] => matches!(other, None | Some(Opnd::Const { bits: 0, .. })),
            _ => false,
        }
    }
}

/// Who asks for pairs.
pub enum Asked {
    /// A rule, which wants them where they gain something: the number of rows around the sum, where that is known.
    Rule { rows: Option<i64> },
    /// A step, of terms that follow each other along this axis.
    Step { over: AxisId },
}

/// A sum whose terms can be paired.
pub struct Pairs<'a> {
    /// The loops of the sum, outermost first, and which of them the terms of a word follow each other in.
    loops: Vec<&'a For>,
    pub over: &'a For,
    /// Elements of a word.
    width: i64,
    /// True if the last word has all its elements.
    whole: bool,
    roles: &'a Contraction,
    operands: [Element<'a>; 2],
    /// Which of them is the first of the operation.
    first: usize,
    /// The other statements of the loop, without the multiplication and the addition that are one operation now.
    rest: Vec<&'a Stmt>,
    sum: ValId,
    /// The value that the products are added to.
    before: Opnd,
    op: ScalarOp,
}

impl<'a> Pairs<'a> {
    /// The pairs of a sum, by its outermost loop. The words of right operands that are weights are made where those are packed.
    pub fn of(
        kernel: &Kernel,
        ctx: &Context,
        f: &'a For,
        asked: &Asked,
        is_weight: &dyn Fn(&Mem) -> bool,
    ) -> Result<Pairs<'a>, String> {
        let by_rule = matches!(asked, Asked::Rule { .. });
        let found = sum(f)?;
        let inside = &found.inside;
        let (x, y) = (element(kernel, inside, found.x)?, element(kernel, inside, found.y)?);
        if x.0 != y.0 {
            return Err("its operands are a float and an integer".to_string());
        }
        let (mut op, mut unit) = operation(x.0);
        let (mut taken, mut width) = ([(x.1, x.2), (y.1, y.2)], 2);
        // The unsigned one is the operation's first operand.
        let mut unsigned = 0;
        if let Some([first, second]) = quads(kernel, ctx, inside, [found.x, found.y])
            && found.loops.iter().filter_map(|f| terms(f)).any(|n| whole(kernel, n, 4) || !whole(kernel, n, 2))
        {
            unsigned = usize::from(byte(kernel, inside, found.y).is_some_and(|(y, _)| y == first));
            let of_both = if unsigned == 0 { [first, second] } else { [second, first] };
            (op, unit, taken, width) = (ScalarOp::DotB, MatrixUnit::ByteQuads, of_both.map(|v| (v, None)), 4);
        }
        // Integers are exact in any order.
        if !kernel.open && op == ScalarOp::DotF {
            return Err("the order of its terms is the program's".to_string());
        }
        if !ctx.target.matrix_units.contains(&unit) {
            return Err(format!("{} has no products of pairs of its type", ctx.target.name));
        }
        if by_rule && !ctx.knobs.pairs {
            return Err("knob off".to_string());
        }
        if by_rule && op == ScalarOp::DotF && ctx.target.vector.slow_pairs {
            return Err(format!("{} multiplies f32 faster than pairs of bf16", ctx.target.name));
        }
        // Words that are one load are the best; those along the outermost loop, of rows of what is read, the next.
        let elements = |over: &For| taken.map(|taken| Element::of(kernel, inside, over.axis, taken, width));
        let wanted = |f: &&&For| match asked {
            Asked::Rule { .. } => true,
            Asked::Step { over } => f.axis == *over,
        };
        let along = found.loops.iter().filter(wanted).filter_map(|f| {
            let (whole, mut elements) = (whole(kernel, terms(f)?, width), elements(f));
            if !whole {
                elements.iter_mut().for_each(|e| e.joined = None);
            }
            // Any integer times 0 is 0; NaN times 0 is NaN.
            let zeros = elements.iter().filter(|e| e.ends_in_zero()).count();
            let ends = elements.iter().all(Element::can_end) && zeros >= if op == ScalarOp::DotF { 2 } else { 1 };
            (whole || ends).then_some((*f, whole, elements))
        });
        // Where a word is left unfilled, the longest loop has the fewest for its length.
        let best = |(over, whole, e): &(&For, bool, [Element<'_>; 2])| {
            let long = if *whole { 0 } else { over.hi.as_const().unwrap_or(i64::MAX) };
            (Reverse(*whole), Reverse(e.iter().filter(|e| e.joined.is_some()).count()), Reverse(long))
        };
        let Some((over, whole, operands)) = along.min_by_key(best) else {
            return Err("the number of its terms is not known to be even".to_string());
        };
        let mut loads =
            operands[1].made.iter().filter_map(|s| if let Stmt::Load { mem, .. } = s { Some(mem) } else { None });
        let weight = loads.all(is_weight);
        if by_rule && weight && width == 2 && operands[1].extend.is_some() {
            return Err("words of bytes, made beforehand, would take twice the memory".to_string());
        }
        if let Asked::Rule { rows: Some(rows) } = asked
            && !weight
            && *rows < ENOUGH_ROWS
        {
            return Err(format!("there are less than {} rows for a word", named!(ENOUGH_ROWS)));
        }
        let [x, y] = operands;
        // Words of weights are made where they are packed.
        let operands = [x, Element { joined: y.joined.filter(|_| !weight), ..y }];
        let acc = found.roles.acc;
        let write = inside.iter().rev().find(|s| matches!(s, Stmt::Write { buf, .. } if *buf == acc));
        let Some(Stmt::Write { value: Opnd::Val(new), .. }) = write else {
            return Err("its sum is not written".to_string());
        };
        let (mut sum, mut before, mut one) = (None, None, vec![]);
        for s in inside {
            let Stmt::Let { dst, op, args } = s else { continue };
            match (op, &args[..]) {
                (ScalarOp::Fma { .. }, [Opnd::Val(x), Opnd::Val(y), z]) if (*x, *y) == (found.x, found.y) => {
                    (sum, before) = (Some(*dst), Some(*z));
                    one.push(std::ptr::from_ref(*s));
                }
                (ScalarOp::MulI, [Opnd::Val(x), Opnd::Val(y)]) if (*x, *y) == (found.x, found.y) => {
                    one.push(std::ptr::from_ref(*s));
                    let product = Opnd::Val(*dst);
                    for s in inside {
                        if let Stmt::Let { dst, op: ScalarOp::AddI, args } = s
                            && let [p, z] = args[..]
                            && (p == product || z == product)
                        {
                            (sum, before) = (Some(*dst), Some(if p == product { z } else { p }));
                            one.push(std::ptr::from_ref(*s));
                        }
                    }
                }
                _ => {}
            }
        }
        let (Some(sum), Some(before)) = (sum, before) else { return Err("its products are not added up".to_string()) };
        let of_operands = slice(inside, &[found.x, found.y]);
        let is_in = |list: &[&Stmt], s: &Stmt| list.iter().any(|o| std::ptr::eq(*o, s));
        let rest: Vec<&Stmt> = inside
            .iter()
            .copied()
            .filter(|s| !is_in(&of_operands, s) && !one.contains(&std::ptr::from_ref(*s)))
            .collect();
        let own = slice(inside, &[*new]);
        let writes = |s: &Stmt| write.is_some_and(|w| std::ptr::eq(*w, s));
        // Nothing else is done for each term, and the product is used by the sum alone.
        let only = rest.iter().all(|s| writes(s) || is_in(&own, s) && edit::is_pure(s));
        let uses = |v: &ValId| rest.iter().any(|s| walk::refs_of(s).vals_used.contains(v));
        if !only || *new != sum || one.len() > 2 || of_operands.iter().filter_map(|s| walk::def(s)).any(|v| uses(&v)) {
            return Err("it does more for each term than multiply and add".to_string());
        }
        if operands.iter().any(|e| e.made.is_empty() || !e.made.iter().all(|s| edit::is_pure(s))) {
            return Err("its operands are not computed for each term alone".to_string());
        }
        Ok(Pairs {
            loops: found.loops,
            over,
            width,
            whole,
            roles: found.roles,
            operands,
            first: unsigned,
            rest,
            sum,
            before,
            op,
        })
    }

    /// The number of words.
    fn words(&self) -> Ix {
        let begun = if self.whole { 0 } else { self.width - 1 };
        Ix::floor_div(Ix::add(self.over.hi.clone(), Ix::Const(begun)), Ix::Const(self.width))
    }

    /// The loop over words.
    fn made(&self, kernel: &mut Kernel, words: &mut Words) -> For {
        let axis = edit::new_axis(kernel, self.over.axis, "2");
        let mut body = vec![];
        let words = self.operands.each_ref().map(|operand| {
            let joined = operand.joined.as_ref().and_then(|j| j.made(kernel, words, self.over.axis, axis, &mut body));
            joined.unwrap_or_else(|| self.word(kernel, axis, operand, &mut body))
        });
        let after = |s: &&&Stmt| matches!(s, Stmt::Write { .. });
        body.extend(self.rest.iter().filter(|s| !after(s)).map(|s| (*s).clone()));
        let args = vec![Opnd::Val(words[self.first]), Opnd::Val(words[1 - self.first]), self.before];
        body.push(Stmt::Let { dst: self.sum, op: self.op, args });
        body.extend(self.rest.iter().filter(after).map(|s| (*s).clone()));
        edit::drop_unused(&mut body);
        let k = self.roles.k.iter().map(|a| if *a == self.over.axis { axis } else { *a }).collect();
        let roles = Contraction { k, a: words[0], b: words[1], ..self.roles.clone() };
        let (last, around) = self.loops.split_last().map_or((self.over, &[][..]), |(last, around)| (*last, around));
        let with = |f: &For, body: Vec<Stmt>| {
            let (axis, hi) = match f.axis == self.over.axis {
                true => (axis, self.words()),
                false => (f.axis, f.hi.clone()),
            };
            For { axis, hi, contraction: f.contraction.as_ref().map(|_| roles.clone()), body, ..f.clone() }
        };
        around.iter().rev().fold(with(last, body), |inner, f| with(f, vec![Stmt::For(Box::new(inner))]))
    }

    /// Turns off a load of this part of a word behind the last term.
    fn end(&self, s: &mut Stmt, word: AxisId, part: i64) {
        let Stmt::Load { mem, mask, other, .. } = s else { return };
        let place = Ix::add(Ix::mul(Ix::Axis(word), Ix::Const(self.width)), Ix::Const(part));
        mask.conds.push(Cond { lhs: place, cmp: Cmp::Lt, rhs: self.over.hi.clone() });
        other.get_or_insert(Opnd::Const { dtype: mem.elem, bits: 0 });
    }

    /// Neighbouring elements as one word.
    fn word(&self, kernel: &mut Kernel, axis: AxisId, operand: &Element<'_>, body: &mut Vec<Stmt>) -> ValId {
        let Element { made, value: element, extend, .. } = operand;
        let own: Vec<Stmt> = made.iter().map(|s| (*s).clone()).collect();
        let name = kernel.vals.get(*element).map_or_else(Default::default, |v| v.name.clone());
        let mut parts = vec![];
        for part in 0..self.width {
            let place = Ix::add(Ix::mul(Ix::Axis(axis), Ix::Const(self.width)), Ix::Const(part));
            let by = BTreeMap::from([(self.over.axis, place)]);
            let extents = self.words().as_const().map(|n| (axis, n));
            let mut copy = edit::place_axes(&own, &by, &extents.into_iter().collect());
            if !self.whole && part > 0 {
                copy.iter_mut().for_each(|s| self.end(s, axis, part));
            }
            let renamed = walk::Renaming::fresh(kernel, &copy);
            renamed.apply(&mut copy);
            body.extend(copy);
            let mut make = |dtype: DType, op: ScalarOp, args: Vec<Opnd>| {
                let dst = kernel.vals.push(Val { ty: Ty::Num(dtype), name: name.clone() });
                kernel.sources.vals.copy(*element, dst);
                body.push(Stmt::Let { dst, op, args });
                Opnd::Val(dst)
            };
            let mut value = Opnd::Val(renamed.vals.get(element).copied().unwrap_or(*element));
            if self.op == ScalarOp::DotF {
                value = make(DType::I16, ScalarOp::Bitcast { to: DType::I16 }, vec![value]);
            } else if let Some(op) = extend {
                value = make(DType::I16, *op, vec![value]);
            }
            let op = ScalarOp::ExtI { to: DType::I32, sign: Signedness::Unsigned };
            value = make(DType::I32, op, vec![value]);
            if part > 0 {
                let by = Opnd::Const { dtype: DType::I32, bits: (32 / self.width * part) as u64 };
                value = make(DType::I32, ScalarOp::Shl, vec![value, by]);
            }
            parts.push(value);
        }
        let mut either = |x: Opnd, y: Opnd| {
            let dst = kernel.vals.push(Val { ty: Ty::Num(DType::I32), name: name.clone() });
            kernel.sources.vals.copy(*element, dst);
            body.push(Stmt::Let { dst, op: ScalarOp::Or, args: vec![x, y] });
            Opnd::Val(dst)
        };
        let word = parts.into_iter().reduce(&mut either);
        let Some(Opnd::Val(word)) = word else { return *element };
        word
    }
}

/// The operation that adds two products at once, and what a processor needs for it.
fn operation(is_float: bool) -> (ScalarOp, MatrixUnit) {
    match is_float {
        true => (ScalarOp::DotF, MatrixUnit::FloatPairs),
        false => (ScalarOp::DotI, MatrixUnit::IntegerPairs),
    }
}

/// For an operand of a product: true if it is a float, the value before its conversion, and the operation that extends that to 16
/// bits.
fn element(kernel: &Kernel, list: &[&Stmt], value: ValId) -> Result<(bool, ValId, Option<ScalarOp>), String> {
    let number = |v: ValId| match kernel.vals.get(v).map(|v| v.ty) {
        Some(Ty::Num(dtype)) => Ok(dtype),
        _ => Err("its operands are addresses".to_string()),
    };
    let (from, op) = widened(kernel, list.iter().copied(), value).unwrap_or((value, ScalarOp::Copy));
    let (dtype, wide) = (number(from)?, number(value)?);
    match (dtype, op, wide) {
        (DType::BF16, ScalarOp::FToF { .. }, DType::F32) => Ok((true, from, None)),
        (DType::I16, ScalarOp::ExtI { sign: Signedness::Signed, .. }, DType::I32) => Ok((false, from, None)),
        (DType::I8, ScalarOp::ExtI { sign, .. }, DType::I32) => {
            Ok((false, from, Some(ScalarOp::ExtI { to: DType::I16, sign })))
        }
        _ if dtype == wide => Err(format!("its operands are {dtype}")),
        _ => Err(format!("its operands are {dtype} multiplied as {wide}")),
    }
}

/// The byte that an integer is, and how it was extended.
fn byte(kernel: &Kernel, list: &[&Stmt], value: ValId) -> Option<(ValId, Signedness)> {
    let (from, op) = widened(kernel, list.iter().copied(), value)?;
    let ScalarOp::ExtI { sign, .. } = op else { return None };
    match kernel.vals.get(from)?.ty {
        Ty::Num(DType::I8) => Some((from, sign)),
        // A value that was extended before keeps its sign.
        _ => byte(kernel, list, from).filter(|(_, first)| *first == Signedness::Unsigned || sign == Signedness::Signed),
    }
}
