//! Operands that are windows: what overlaps is copied once.
//!
//! In: the statements of an operand whose place counts by the sum and of the operand's own axis, `x[c, y + ky, x + kx]`. Out: a
//! copy of what the windows lie on, with zeros where they hang over, and where in it an element of the operand is.
//!
//! ```text
//! b = load x[c*3136 + j + kx - 1] where j + kx - 1 >= 0 and ..     -->     slab[c, p] = load x[c*3136 + p - 1] where p - 1 >= 0 ..
//!                                                                          b = slab[c, j + kx]
//! ```

use std::collections::BTreeMap;

use crate::index::{Cmp, Cond, gcd};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::edit::{self, new_axis};
use crate::tile::heuristics::stage_inputs::MOST_APART;
use crate::tile::rules::split_digits::{Digit, digits_of};
use crate::tile::tile_nest::Extent;

/// A copy of what windows lie on.
pub(super) struct Slab {
    pub shape: Vec<u64>,
    /// The loops that fill it, outermost first, and their body without the write.
    pub loops: Vec<Extent>,
    pub body: Vec<Stmt>,
    /// Where an element of the operand lies.
    pub idx: Vec<Ix>,
}

/// A digit of one of the two axes.
#[derive(Clone, Copy)]
struct Counted {
    digit: Digit,
    /// The axis that stands for it.
    axis: AxisId,
    own: bool,
    /// What the index of the load counts it by.
    factor: i64,
}

/// One dimension of a slab.
enum Dim {
    Alone(Counted),
    /// `own*s + sum*t + before`.
    Pair {
        own: Counted,
        sum: Counted,
        s: i64,
        t: i64,
        before: i64,
    },
}

impl Dim {
    fn extent(&self) -> i64 {
        match self {
            Dim::Alone(c) => c.digit.count,
            Dim::Pair { own, sum, s, t, .. } => s * (own.digit.count - 1) + t.abs() * (sum.digit.count - 1) + 1,
        }
    }

    fn factor(&self) -> i64 {
        match self {
            Dim::Alone(c) => c.factor.abs(),
            Dim::Pair { own, s, .. } => own.factor / s,
        }
    }
}

/// A slab of an operand whose loads go through memory alike, as those of a word do, if that is so much smaller than the operand
/// that it pays. `vectors` are read along the own axis; `unseen` tells whether nothing sees elements for which a condition on it
/// does not hold.
pub(super) fn slab(
    kernel: &mut Kernel,
    stmts: &[Stmt],
    own: Extent,
    sum: Extent,
    vectors: bool,
    unseen: &dyn Fn(&Cond) -> bool,
) -> Option<Slab> {
    let (mut by, mut extents, mut counted) = (BTreeMap::new(), BTreeMap::new(), vec![]);
    for (of, (axis, n)) in [own, sum].into_iter().enumerate() {
        let n = i64::try_from(n).ok()?;
        let digits = digits_of(stmts, axis, n).ok()?;
        let mut position = Ix::Const(0);
        for digit in digits.iter().rev() {
            let d = new_axis(kernel, axis, "");
            position = Ix::add(position, Ix::mul(Ix::Axis(d), Ix::Const(digit.weight)));
            extents.insert(d, digit.count);
            counted.push(Counted { digit: *digit, axis: d, own: of == 0, factor: 0 });
        }
        by.insert(axis, position);
    }
    let mut placed = edit::place_axes(stmts, &by, &extents);
    let mut loads: Vec<(&Mem, &mut Mask)> = placed
        .iter_mut()
        .filter_map(|s| if let Stmt::Load { mem, mask, .. } = s { Some((&*mem, mask)) } else { None })
        .collect();
    let (first, _) = loads.first()?;
    if loads.iter().any(|(_, mask)| !mask.vals.is_empty()) {
        return None;
    }
    for c in &mut counted {
        let factor = |mem: &Mem| mem.index.linear(c.axis)?.0.as_const();
        let by = factor(first)?;
        if loads.iter().any(|(mem, _)| factor(mem) != Some(by)) {
            return None;
        }
        c.factor = by;
    }
    // Edges are conditions on a whole axis.
    let one = counted.iter().filter(|c| c.own).count() == 1;
    // What nothing is read by may be anything; it has no dimension.
    counted.retain(|c| c.factor != 0);
    let all = Mask { conds: loads.iter().flat_map(|(_, mask)| mask.conds.clone()).collect(), vals: vec![] };
    let whole = |leaf: &Ix| counted.iter().any(|c| c.own && *leaf == Ix::Axis(c.axis)).then_some(Ix::Axis(own.0));
    let dims = dims(&counted, &all, &|edge| one && unseen(&edge.replace_leaves(&mut |leaf| whole(leaf))))?;
    let size: i64 = dims.iter().try_fold(1i64, |n, d| n.checked_mul(d.extent()))?;
    let elements = i64::try_from(own.1.checked_mul(sum.1)?).ok()?;
    // Other copies for vectors are as good where windows share little; elements that are read one by one gain by any sharing.
    let (part, of) = if vectors { (1, 2) } else { (3, 4) };
    if size.checked_mul(of)? > elements.checked_mul(part)? {
        return None;
    }
    if vectors && !matches!(dims.last(), Some(Dim::Pair { own, s: 1, .. }) if own.digit.weight == 1 && own.factor == 1)
    {
        return None;
    }
    if vectors && counted.iter().filter(|c| c.own).count() != 1 {
        return None;
    }
    let (mut put, mut axes, mut loops, mut idx) = (BTreeMap::new(), BTreeMap::new(), vec![], vec![]);
    let at = |c: &Counted| {
        let (axis, n) = if c.own { own } else { sum };
        c.digit.of(Ix::Axis(axis), n as i64)
    };
    for dim in &dims {
        let like = match dim {
            Dim::Alone(c) => c,
            Dim::Pair { own, .. } => own,
        };
        let axis = new_axis(kernel, like.axis, "");
        axes.insert(axis, dim.extent());
        loops.push((axis, u64::try_from(dim.extent()).ok()?));
        match dim {
            Dim::Alone(c) => {
                put.insert(c.axis, Ix::Axis(axis));
                idx.push(at(c));
            }
            Dim::Pair { own, sum, s, t, before } => {
                let place = Ix::sub(Ix::Axis(axis), Ix::Const(*before));
                for (_, mask) in &mut loads {
                    relax(mask, dim, axis)?;
                }
                let (o, k) = match (*s, *t) {
                    (1, _) => (place, Ix::Const(0)),
                    (_, 1) => (Ix::Const(0), place),
                    _ => (Ix::Const(0), Ix::sub(Ix::Const(*before), Ix::Axis(axis))),
                };
                put.insert(own.axis, o);
                put.insert(sum.axis, k);
                let scaled = |c: &Counted, by: i64| Ix::mul(at(c), Ix::Const(by));
                let both = match *t < 0 {
                    true => Ix::sub(scaled(own, *s), scaled(sum, -t)),
                    false => Ix::add(scaled(own, *s), scaled(sum, *t)),
                };
                idx.push(Ix::add(both, Ix::Const(*before)));
            }
        }
    }
    let body = edit::place_axes(&placed, &put, &axes);
    let left = walk::refs(&body).axes_used;
    if extents.keys().any(|d| left.contains(d)) {
        return None;
    }
    Some(Slab { shape: loops.iter().map(|(_, n)| *n).collect(), loops, body, idx })
}

/// Whether an operand is read in windows that overlap, given its own axes and the sum's with their extents.
pub fn overlap(index: &Ix, mask: &Mask, own: &[(AxisId, i64)], sum: &[(AxisId, i64)]) -> bool {
    let counted = |own: bool| {
        move |(axis, count): &(AxisId, i64)| {
            let factor = index.linear(*axis)?.0.as_const().filter(|f| *f != 0)?;
            Some(Counted { digit: Digit { count: *count, weight: 1 }, axis: *axis, own, factor })
        }
    };
    let all: Vec<Counted> = own.iter().filter_map(counted(true)).chain(sum.iter().filter_map(counted(false))).collect();
    mask.vals.is_empty() && dims(&all, mask, &|_| true).is_some()
}

/// The dimensions of a slab, the one that memory runs along last; `None` where no two digits count the same.
fn dims(counted: &[Counted], mask: &Mask, unseen: &dyn Fn(&Cond) -> bool) -> Option<Vec<Dim>> {
    let mut left: Vec<Counted> = counted.to_vec();
    let mut out = vec![];
    while let Some(at) = left.iter().rposition(|c| !c.own) {
        let sum = left.remove(at);
        let pairs = left.iter().enumerate().filter(|(_, c)| c.own);
        let pairs = pairs.filter_map(|(at, own)| Some((at, pair(*own, sum, mask, unseen)?)));
        match pairs.min_by_key(|(_, dim)| dim.extent()) {
            Some((at, dim)) => {
                left.remove(at);
                out.push(dim);
            }
            None => out.push(Dim::Alone(sum)),
        }
    }
    if !out.iter().any(|d| matches!(d, Dim::Pair { .. })) {
        return None;
    }
    out.extend(left.into_iter().map(Dim::Alone));
    // Whatever is alone is counted by no condition that another digit is in.
    out.sort_by_key(|d| std::cmp::Reverse(d.factor()));
    Some(out)
}

/// Two digits that are only ever counted together, so that fewer places are read than there are pairs of them; or there is an
/// edge on the own one, beyond which nothing is seen.
fn pair(own: Counted, sum: Counted, mask: &Mask, unseen: &dyn Fn(&Cond) -> bool) -> Option<Dim> {
    let unit = gcd(own.factor, sum.factor);
    let (s, t) = (own.factor / unit, sum.factor / unit);
    let before = if t < 0 { t.checked_neg()?.checked_mul(sum.digit.count - 1)? } else { 0 };
    if s < 1 || s != 1 && t.abs() != 1 || s > MOST_APART || t.abs() > MOST_APART {
        return None;
    }
    let dim = Dim::Pair { own, sum, s, t, before };
    if dim.extent() >= own.digit.count.checked_mul(sum.digit.count)? {
        return None;
    }
    let together = |ix: &Ix| {
        let of = |c: &Counted| ix.linear(c.axis)?.0.as_const();
        let (o, k) = (of(&own)?, of(&sum)?);
        Some((o, k, o.checked_mul(sum.factor)? == k.checked_mul(own.factor)?))
    };
    for c in &mask.conds {
        let (lhs, rhs) = (together(&c.lhs)?, together(&c.rhs)?);
        let edge = || matches!((lhs, rhs), ((1, 0, _), (0, 0, _))) && c.cmp == Cmp::Lt && unseen(c);
        if !(lhs.2 && rhs.2 || edge()) {
            return None;
        }
    }
    Some(dim)
}

/// Conditions on the own digit alone, which say where a tile ends, as conditions on the places that a window reaches from inside.
fn relax(mask: &mut Mask, dim: &Dim, axis: AxisId) -> Option<()> {
    let Dim::Pair { own, sum, s, t, .. } = dim else { return Some(()) };
    for c in &mut mask.conds {
        let (factor, rest) = c.lhs.linear(own.axis)?;
        if !factor.is_const(1) || c.lhs.has_axis(sum.axis) || c.rhs.has_axis(own.axis) {
            continue;
        }
        let scaled = |ix: Ix| Ix::mul(ix, Ix::Const(*s));
        let more = Ix::Const(t.abs() * (sum.digit.count - 1));
        *c = Cond::new(Ix::add(Ix::Axis(axis), scaled(rest)), Cmp::Lt, Ix::add(scaled(c.rhs.clone()), more));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, contraction, kernel, text};

    /// A product of `m` rows, `n` columns and `k` terms after `stage_inputs`.
    fn staged(shape: [u64; 3], a: &str, b: &str) -> String {
        text(&apply("stage_inputs", &kernel(&contraction(shape, a, b)), &context()).0)
    }

    fn has(made: &str, lines: &[&str]) {
        for line in lines {
            assert!(made.contains(line), "{line}: {made}");
        }
    }

    #[test]
    fn windows_along_the_columns_share_a_row() {
        let padded = "X[kk//3*32 + j + kk%3 - 1] where j + kk%3 - 1 >= 0 and j + kk%3 - 1 < 32 else 0.0";
        let made = staged([8, 32, 48], "W[i*48 + kk]", padded);
        has(
            &made,
            &["stage b_pack: f32[16, 34]", "where j - 1 >= 0 and j - 1 < 32 else 0.0", "b_pack[kk_1//3, j_1 + kk_1%3]"],
        );
        // A tile that ends outside of the row: places are read that a window reaches from inside of it.
        let edge = "X[kk//3*28 + j + kk%3] where j < 26 else 0.0";
        has(&staged([8, 32, 48], "W[i*48 + kk]", edge), &["stage b_pack: f32[16, 34]", "where j < 28 else 0.0"]);
        // Turned windows, as in the gradient of an input.
        let turned = "X[kk//3*32 + j - kk%3 + 1] where j - kk%3 + 1 >= 0 and j - kk%3 + 1 < 32 else 0.0";
        let made = staged([8, 32, 48], "W[i*48 + kk]", turned);
        has(&made, &["stage b_pack: f32[16, 34]", "where j - 2 + 1 >= 0", "b_pack[kk_1//3, j_1 - kk_1%3 + 2]"]);
        // Vectors do not jump.
        let apart = "X[kk//3*64 + j*2 + kk%3] where j*2 + kk%3 < 64 else 0.0";
        has(&staged([8, 32, 48], "W[i*48 + kk]", apart), &["stage b_pack: f32[1, 48, 32]"]);
    }

    /// Elements beyond an edge are not 0 in a slab, so nothing may store a result of theirs.
    #[test]
    fn elements_beyond_an_edge_are_not_seen() {
        let product = |after: &str| {
            let b = "X[kk//3*28 + bx*32 + j + kk%3] where bx*32 + j < n else 0.0";
            contraction([8, 32, 48], "W[i*48 + kk]", b).replace("X: ptr f32", "X: ptr f32, y: ptr f32, n: i32")
                + "  for r in 0..8: free\n    for s in 0..32: free\n      e: f32 = acc[r, s]\n      g: f32 = max(e, 0.0)\n"
                + after
        };
        let shared = |after: &str| {
            let made = text(&apply("stage_inputs", &kernel(&product(after)), &context()).0);
            made.contains("stage b_pack: f32[16, 34]")
        };
        assert!(shared("      store y[r*700 + bx*32 + s] = g where bx*32 + s < n\n"));
        assert!(shared("      acc[r, s] = g\n"));
        for seen in [
            "      store y[r*700 + bx*32 + s] = g\n",
            "      store y[r*700 + bx*32 + s] = g where bx*32 + s < n + 1\n",
            "      store y[r*700 + bx*32 + s] = g where bx*32 + r < n\n",
            "      acc[r, 31 - s] = g\n",
            "      z: f32 = acc[r, 31 - s]\n      h: f32 = g + z\n      store y[r*700 + bx*32 + s] = h where bx*32 + s < n\n",
            "      z: f32 = acc[s//4, r]\n      h: f32 = g - z\n      acc[r, s] = h\n",
        ] {
            assert!(!shared(seen), "{seen}");
        }
    }

    #[test]
    fn windows_along_the_rows_share_an_image() {
        let conditions = |s: u32| {
            format!(
                "i//7*{s} + kk//3%3 - 1 >= 0 and i//7*{s} + kk//3%3 - 1 < {0} and i%7*{s} + kk%3 - 1 >= 0 and i%7*{s} + kk%3 - 1 < {0} \
                 else 0.0",
                7 * s
            )
        };
        let read = |s: u32| {
            let side = 7 * s;
            let place =
                format!("kk//9*{} + i//7*{} + kk//3%3*{side} + i%7*{s} + kk%3 - {}", side * side, side * s, side + 1);
            format!("X[{place}] where {}", conditions(s))
        };
        let made = staged([49, 32, 72], &read(1), "W[kk*32 + j]");
        has(&made, &["stage a_pack: f32[8, 9, 9]", "a_pack[kk_1//9, i_2//7 + kk_1//3%3, i_2%7 + kk_1%3]"]);
        let made = staged([49, 32, 72], &read(2), "W[kk*32 + j]");
        has(&made, &["stage a_pack: f32[8, 15, 15]", "a_pack[kk_1//9, i_2//7*2 + kk_1//3%3, i_2%7*2 + kk_1%3]"]);
    }

    #[test]
    fn words_of_two_channels_share_an_image_too() {
        let conditions = "j + kk%3 - 1 >= 0 and j + kk%3 - 1 < 32 else 0";
        let product = format!(
            "loop kernel k(W: ptr i32, X: ptr i16):\n  local acc: i32[8, 32]\n  for i in 0..8: free\n    for j in 0..32: free\n      \
             for kk in 0..48: reduce contraction m=i n=j k=kk a=a b=w acc=acc\n        a: i32 = load W[i*48 + kk]\n        \
             x: i16 = load X[kk//3*64 + j + kk%3 - 1] where {conditions}\n        y: i32 = ext.u.i32(x)\n        \
             u: i16 = load X[kk//3*64 + j + kk%3 + 31] where {conditions}\n        v: i32 = ext.u.i32(u)\n        \
             z: i32 = v << 16\n        w: i32 = y | z\n        c: i32 = acc[i, j]\n        d: i32 = dot2(a, w, c)\n        acc[i, j] = d\n"
        );
        let made = text(&apply("stage_inputs", &kernel(&product), &context()).0);
        has(&made, &["stage b_pack: i32[16, 34]", "b_pack[kk_1//3, j_1 + kk_1%3]"]);
    }

    #[test]
    fn what_shares_nothing_is_copied_as_before() {
        for read in ["X[kk*49 + i] where i < 40 else 0.0", "X[kk//9*49 + i + kk%9*3] where i + kk%9 < 49 else 0.0"] {
            let made = staged([49, 32, 72], read, "W[kk*32 + j]");
            assert!(!made.contains("a_pack: f32[8,"), "{made}");
        }
    }
}
