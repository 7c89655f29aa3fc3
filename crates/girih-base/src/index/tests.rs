//! Simplification, intervals, divisibility and affine forms against evaluation on random expressions.

use super::*;

struct Random(u64);

impl Random {
    fn next(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn ix(&mut self, depth: u32) -> Ix {
        if depth == 0 || self.next(5) == 0 {
            return match self.next(6) {
                0 => Ix::Const(self.next(40) as i64 - 10),
                1 => Ix::Const(1 << self.next(7)),
                2 | 3 => Ix::Axis(AxisId(self.next(4) as u32)),
                4 => Ix::Val { val: ValId(self.next(2) as u32), zext: self.next(2) == 0 },
                _ if self.next(2) == 0 => Ix::Block(0),
                _ => Ix::Grid(0),
            };
        }
        let a = Box::new(self.ix(depth - 1));
        let b = Box::new(self.ix(depth - 1));
        // Divisors are positive: constants, or a value known to be.
        let known = || Ix::Val { val: ValId(1), zext: false };
        let divisor = match self.next(7) {
            0 | 1 => known(),
            // Several of what is known.
            6 => Ix::Mul(Box::new(known()), Box::new(Ix::Const(2 << self.next(4)))),
            2 => Ix::Add(Box::new(Ix::FloorDiv(Box::new(known()), Box::new(Ix::Const(4)))), Box::new(Ix::Const(1))),
            _ => Ix::Const(1 << self.next(7)),
        };
        match self.next(10) {
            0 | 1 => Ix::Add(a, b),
            2 => Ix::Sub(a, b),
            3 => Ix::Mul(a, b),
            4 => Ix::Mul(a, Box::new(Ix::Const(1 << self.next(7)))),
            5 => Ix::FloorDiv(a, Box::new(divisor)),
            6 => Ix::Mod(a, Box::new(divisor)),
            7 => Ix::Min(a, b),
            8 => Ix::Max(a, b),
            // A quotient and a remainder that may belong together.
            _ => {
                let (d, k) = (divisor, Ix::Const(self.next(3) as i64 - 1));
                let mut q = Ix::FloorDiv(a.clone(), Box::new(d.clone()));
                if self.next(3) == 0 {
                    q = Ix::Mod(Box::new(q), Box::new(Ix::Const(1 << self.next(4))));
                }
                let r = Ix::Mod(a, Box::new(if self.next(4) == 0 { Ix::Const(8) } else { d.clone() }));
                if self.next(3) == 0 {
                    // More than the quotient, times the divisor.
                    q = Ix::Add(Box::new(self.ix(1)), Box::new(q));
                }
                let q = Ix::Mul(Box::new(Ix::Mul(Box::new(q), Box::new(d))), Box::new(k.clone()));
                Ix::Add(Box::new(q), Box::new(Ix::Mul(Box::new(r), Box::new(k))))
            }
        }
    }
}

/// Where axis 3 ends: a computed extent, `(v1 - 1)//2 + 1`.
fn last_end() -> Ix {
    let less = Ix::Sub(Box::new(Ix::val(ValId(1))), Box::new(Ix::Const(1)));
    Ix::Add(Box::new(Ix::FloorDiv(Box::new(less), Box::new(Ix::Const(2)))), Box::new(Ix::Const(1)))
}

fn facts() -> Facts {
    let mut f = Facts::new();
    f.axes.insert(AxisId(0), Interval::new(0, 63));
    f.axes.insert(AxisId(1), Interval::new(0, 7));
    f.axes.insert(AxisId(2), Interval::new(-5, 5));
    f.vals.insert(ValId(0), Interval::new(-1000, 1000));
    f.vals.insert(ValId(1), Interval::new(1, 64));
    f.set_axis(AxisId(3), &Ix::Const(0), &last_end());
    f.axis_divisors.insert(AxisId(1), 1);
    f.val_divisors.insert(ValId(0), 8);
    f.grids[0] = Some(Interval::new(1, 16));
    f
}

/// Values the facts allow. Value 0 read with zero extension is taken as 64 bits wide.
fn draw(r: &mut Random) -> impl Fn(&Ix) -> i64 + use<> {
    let vals = [(r.next(251) as i64 - 125) * 8, 1 + r.next(64) as i64];
    let end = (vals[1] - 1) / 2 + 1;
    let axes = [r.next(64) as i64, r.next(8) as i64, r.next(11) as i64 - 5, r.next(end as u64) as i64];
    let grid = 1 + r.next(16) as i64;
    let block = r.next(grid as u64) as i64;
    move |leaf| match leaf {
        Ix::Axis(a) => axes[a.0 as usize],
        Ix::Val { val, .. } => vals[val.0 as usize],
        Ix::Block(_) => block,
        _ => grid,
    }
}

#[test]
fn simplification_keeps_the_value() {
    let (mut r, f) = (Random(3), facts());
    let (mut smaller, mut unchanged) = (0, 0);
    for _ in 0..20_000 {
        let ix = r.ix(4);
        let simple = simplify(&ix, &f);
        assert!(simple.size() <= ix.size(), "{ix:?} -> {simple:?}");
        if simple == ix {
            unchanged += 1
        } else {
            smaller += 1
        }
        for _ in 0..8 {
            let at = draw(&mut r);
            assert_eq!(simple.eval(&at), ix.eval(&at), "{ix:?} -> {simple:?}");
        }
    }
    assert!(smaller > 5_000 && unchanged > 1_000, "{smaller} {unchanged}");
}

#[test]
fn intervals_and_divisors_hold() {
    let (mut r, f) = (Random(5), facts());
    for _ in 0..20_000 {
        let ix = r.ix(4);
        let (range, tight, divisor) = (f.range(&ix), f.tight_range(&ix), f.divisor(&ix));
        assert!(tight.within(range));
        for _ in 0..8 {
            let at = draw(&mut r);
            let value = ix.eval(&at);
            assert!(tight.contains(value as i128), "{ix:?} is {value}, not in {tight:?}");
            assert_eq!(value as i128 % divisor as i128, 0, "{ix:?} is {value}, divisor {divisor}");
        }
    }
}

#[test]
fn decided_conditions_hold() {
    let (mut r, f) = (Random(7), facts());
    let mut decided = 0;
    for _ in 0..20_000 {
        let cmp = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge][r.next(6) as usize];
        let cond = Cond::new(r.ix(3), cmp, r.ix(3));
        for _ in 0..8 {
            let at = draw(&mut r);
            let truth = cond.eval(&at);
            assert_eq!(cond.negate().eval(&at), !truth);
            assert_eq!(Cond::new(cond.rhs.clone(), cmp.swap(), cond.lhs.clone()).eval(&at), truth);
            assert!(f.decide(&cond).is_none_or(|d| d == truth), "{cond:?}");
        }
        decided += f.decide(&cond).is_some() as u32;
    }
    assert!(decided > 3_000, "{decided}");
}

#[test]
fn linear_forms_add_up() {
    let mut r = Random(11);
    let mut found = 0;
    for _ in 0..20_000 {
        let (ix, axis) = (r.ix(3), AxisId(r.next(4) as u32));
        let Some((factor, rest)) = ix.linear(axis) else { continue };
        found += !factor.is_const(0) as u32;
        assert!(!factor.has_axis(axis) && !rest.has_axis(axis));
        for _ in 0..4 {
            let at = draw(&mut r);
            let sum = at(&Ix::Axis(axis)).wrapping_mul(factor.eval(&at)).wrapping_add(rest.eval(&at));
            assert_eq!(sum, ix.eval(&at), "{ix:?}");
        }
    }
    assert!(found > 1_000, "{found}");
}

fn axis(n: u32) -> Ix {
    Ix::Axis(AxisId(n))
}

#[test]
fn what_the_passes_count_on() {
    let f = facts();
    let (i, j, n) = (axis(0), axis(1), Ix::val(ValId(0)));
    let tile = i.clone() * 8.into() + j.clone();
    assert_eq!(simplify(&Ix::FloorDiv(Box::new(tile.clone()), Box::new(Ix::Const(8))), &f), i);
    assert_eq!(simplify(&Ix::Mod(Box::new(tile.clone()), Box::new(Ix::Const(8))), &f), j);
    assert_eq!(simplify(&Ix::FloorDiv(Box::new(tile.clone()), Box::new(Ix::Const(512))), &f), Ix::Const(0));
    let n4 = n.clone() * 4.into() - n.clone() - n.clone() * 3.into() + 2.into();
    assert_eq!(simplify(&n4, &f), Ix::Const(2));
    // A row's start over the row's length.
    let k = Ix::val(ValId(1));
    let row = i.clone() * k.clone();
    assert_eq!(simplify(&Ix::FloorDiv(Box::new(row.clone()), Box::new(k.clone())), &f), i);
    assert_eq!(simplify(&Ix::Mod(Box::new(row.clone()), Box::new(k.clone())), &f), Ix::Const(0));
    // Quotients and remainders join where they belong together, over several extents and symbols too.
    let divided = |d: &Ix| Ix::FloorDiv(Box::new(tile.clone()), Box::new(d.clone()));
    let rest = |of: &Ix, d: &Ix| Ix::Mod(Box::new(of.clone()), Box::new(d.clone()));
    let (five, fifteen) = (Ix::Const(5), Ix::Const(15));
    let three = divided(&five) * 350.into() + rest(&tile, &five) * 70.into();
    assert_eq!(simplify(&three, &f), i.clone() * 560.into() + j.clone() * 70.into());
    let three = divided(&fifteen) * 15.into() + rest(&divided(&five), &3.into()) * 5.into() + rest(&tile, &five);
    assert_eq!(simplify(&three, &f), tile);
    assert_eq!(simplify(&(divided(&k) * k.clone() + rest(&tile, &k)), &f), tile);
    let apart = divided(&five) * 6.into() + rest(&tile, &five);
    assert_eq!(simplify(&apart, &f), apart);
    // So do those by an extent that is computed; no remainder is as great as what it is by.
    let extent = Ix::FloorDiv(Box::new(k.clone() - 1.into()), Box::new(Ix::Const(4))) + 1.into();
    let row = (i.clone() * 16.into() + divided(&extent)) * extent.clone() + rest(&tile, &extent);
    let [whole, rows] = [simplify(&row, &f), simplify(&(i.clone() * 16.into() * extent.clone() + tile.clone()), &f)];
    assert_eq!(simplify(&(whole - rows), &f), Ix::Const(0));
    assert_eq!(f.decide(&Cond::new(rest(&tile, &extent), Cmp::Lt, extent.clone())), Some(true));
    assert_eq!(f.decide(&Cond::new(rest(&tile, &k) + 1.into(), Cmp::Lt, k.clone())), None);
    // The form a kernel engineer wrote stays.
    let address = (Ix::Block(0) * 128.into() + i.clone()) * k.clone() + j.clone();
    assert_eq!(simplify(&address, &f), address);
    assert_eq!(address.linear(AxisId(0)), Some((k.clone(), Ix::Block(0) * 128.into() * k + j)));
    assert_eq!(address.linear(AxisId(1)).map(|(factor, _)| factor), Some(Ix::Const(1)));
    assert_eq!(f.decide(&Cond::new(i.clone() + 1.into(), Cmp::Gt, i.clone())), Some(true));
    assert_eq!(f.decide(&Cond::new(Ix::Block(0), Cmp::Lt, Ix::Grid(0))), None);
}

/// Arrays without elements: `i // 0` of their extents is the place of no element.
#[test]
fn a_quotient_by_zero_is_zero() {
    let (i, none) = (Ix::Axis(AxisId(0)), Ix::Const(0));
    for quotient in [Ix::floor_div, Ix::modulo] {
        assert_eq!(quotient(i.clone(), none.clone()), none);
        assert_eq!(quotient(i.clone(), Ix::Const(-2)), none);
    }
    assert_eq!(i.unravel(&[4.into(), 0.into(), 2.into()])[0], none);
}

#[test]
fn extreme_constants_do_not_overflow() {
    let f = Facts::new();
    let (max, min) = (Ix::Const(i64::MAX), Ix::Const(i64::MIN));
    let big = Ix::Mul(Box::new(max.clone()), Box::new(Ix::val(ValId(5))));
    let mut huge = big.clone();
    for _ in 0..6 {
        huge = Ix::Mul(Box::new(huge.clone()), Box::new(Ix::Add(Box::new(huge), Box::new(min.clone()))));
    }
    let _ = simplify(&huge, &f);
    assert!(f.range(&huge).lo < i64::MIN as i128);
    assert_eq!(Ix::add(max.clone(), Ix::Const(1)), Ix::Add(Box::new(max), Box::new(Ix::Const(1))));
    let _ = simplify(&Ix::Sub(Box::new(Ix::Const(0)), Box::new(min)), &f);
}

#[test]
fn threads_are_those_of_the_block() {
    let (any, block) = (Facts::new(), Facts { threads: Some(256), ..Facts::new() });
    assert_eq!((any.range(&Ix::Thread), block.range(&Ix::Thread)), (Interval::new(0, 1023), Interval::new(0, 255)));
    let warp = Ix::floor_div(Ix::Thread, Ix::Const(32));
    assert_eq!(block.decide(&Cond::new(warp.clone(), Cmp::Lt, Ix::Const(8))), Some(true));
    assert_eq!(any.decide(&Cond::new(warp, Cmp::Lt, Ix::Const(8))), None);
}

#[test]
fn the_least_of_several_is_told_once() {
    let (a, b) = (Ix::Axis(AxisId(0)), Ix::Axis(AxisId(1)));
    let least = |c: i64| Ix::min(Ix::Const(c), a.clone());
    assert_eq!(Ix::min(Ix::Const(7), least(7)), least(7));
    assert_eq!(Ix::min(Ix::Const(5), least(7)), least(5));
    assert_eq!(Ix::min(least(5), Ix::Const(7)), least(5));
    assert_eq!(Ix::min(a.clone(), least(7)), least(7));
    assert_eq!(Ix::min(Ix::Const(5), Ix::min(a.clone(), Ix::Const(7))), Ix::min(a.clone(), Ix::Const(5)));
    let most = |c: i64| Ix::max(a.clone(), Ix::Const(c));
    assert_eq!(Ix::max(Ix::Const(9), most(7)), most(9));
    assert_eq!(Ix::max(most(7), a.clone()), most(7));
    assert_eq!(Ix::max(b.clone(), most(7)), Ix::Max(Box::new(b), Box::new(most(7))));
}

#[test]
fn places_in_a_computed_image_are_one_number() {
    // (c*h + i//w)*w + i%w is c*h*w + i, and i//w < h where i < h*w
    let [h, w] = [0, 1].map(|v| {
        let less = Ix::Sub(Box::new(Ix::val(ValId(v))), Box::new(Ix::Const(1)));
        Ix::Add(Box::new(Ix::FloorDiv(Box::new(less), Box::new(Ix::Const(2)))), Box::new(Ix::Const(1)))
    });
    let mut f = Facts::new();
    for v in [0, 1] {
        f.vals.insert(ValId(v), Interval::new(1, 1 << 20));
    }
    let (c, i) = (Ix::Axis(AxisId(0)), Ix::Axis(AxisId(1)));
    f.set_axis(AxisId(0), &Ix::Const(0), &Ix::Const(16));
    f.set_axis(AxisId(1), &Ix::Const(0), &Ix::mul(h.clone(), w.clone()));
    let row = Ix::add(Ix::mul(c.clone(), h.clone()), Ix::floor_div(i.clone(), w.clone()));
    let place = Ix::add(Ix::mul(row, w.clone()), Ix::modulo(i.clone(), w.clone()));
    let simple = simplify(&place, &f);
    assert!(!simple.any_leaf(&mut |_| false) && format!("{simple:?}").matches("Mod").count() == 0, "{simple:?}");
    let same = Poly::expanded(&simple).minus(&Poly::expanded(&(c * h.clone() * w.clone() + i.clone())));
    assert!(same.is_zero(), "{simple:?}");
    assert_eq!(f.decide(&Cond::new(Ix::modulo(i.clone(), w.clone()), Cmp::Lt, w.clone())), Some(true));
    // An axis is less than where it ends, alone and as part of a place.
    f.set_axis(AxisId(2), &Ix::Const(0), &w);
    let j = Ix::Axis(AxisId(2));
    assert_eq!(f.decide(&Cond::new(j.clone(), Cmp::Lt, w.clone())), Some(true));
    assert_eq!(f.decide(&Cond::new(j.clone() + 1.into(), Cmp::Lt, w.clone())), None);
    f.set_axis(AxisId(3), &Ix::Const(0), &h);
    let place = Ix::Axis(AxisId(3)) * w.clone() + j;
    assert_eq!(f.decide(&Cond::new(place, Cmp::Lt, h * w)), Some(true));
}

#[test]
fn numbered_elements_of_images_are_their_numbers() {
    // ((x//(c*h*w)*c + x//(h*w)%c)*h + x//w%h)*w + x%w is x, whatever is not known.
    let mut f = Facts::new();
    for v in [0, 1] {
        f.vals.insert(ValId(v), Interval::new(1, 1 << 20));
    }
    f.axes.insert(AxisId(0), Interval::new(0, 1 << 40));
    for c in [Ix::Const(96), Ix::val(ValId(0)) * 4.into()] {
        let (x, h, w) = (Ix::Axis(AxisId(0)), Ix::val(ValId(0)) * 8.into(), Ix::val(ValId(1)) * 8.into());
        let place = |parts: &[Ix]| parts.iter().cloned().fold(Ix::Const(0), |n, p| simplify(&Ix::add(n, p), &f));
        let of = |by: &[&Ix]| by.iter().fold(Ix::Const(1), |n, b| simplify(&Ix::mul(n, (*b).clone()), &f));
        let image = place(&[
            Ix::mul(Ix::floor_div(x.clone(), of(&[&c, &h, &w])), c.clone()),
            Ix::modulo(Ix::floor_div(x.clone(), of(&[&h, &w])), c.clone()),
        ]);
        let row = place(&[Ix::mul(image, h.clone()), Ix::modulo(Ix::floor_div(x.clone(), w.clone()), h.clone())]);
        let place = place(&[Ix::mul(row, w.clone()), Ix::modulo(x.clone(), w)]);
        assert_eq!(place, x);
    }
}

#[test]
fn a_factor_of_every_term_divides_without_multiplying_out() {
    // The areas of square images after patches of them were taken: x*(x*32 + 32)//32, where x is long.
    let mut f = Facts::new();
    f.vals.insert(ValId(0), Interval::new(1, 1 << 20));
    let s = || Ix::floor_div(Ix::floor_div(Ix::val(ValId(0)) - 1.into(), 8.into()) - 1.into(), 2.into());
    for (times, by) in [(32, 32), (96, 32), (32, 96), (6, 4)] {
        let product = Ix::mul(s() + 1.into(), s() * times.into() + times.into());
        let common = gcd(times, by);
        let square = Ix::mul(s() + 1.into(), s() * (times / common).into() + (times / common).into());
        let simple = simplify(&Ix::floor_div(product, by.into()), &f);
        let wanted = simplify(&Ix::floor_div(square, (by / common).into()), &f);
        assert!(Poly::expanded(&simple).minus(&Poly::expanded(&wanted)).is_zero(), "{times}//{by}: {simple:?}");
        for n in [1, 2, 9, 40, 1000] {
            let x = ((n - 1_i64).div_euclid(8) - 1).div_euclid(2);
            assert_eq!(simple.eval(&|_| n), ((x + 1) * (x * times + times)).div_euclid(by), "{times}//{by} for {n}");
        }
    }
}
