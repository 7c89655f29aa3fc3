//! Functions of libdevice on integers and on bits.

use super::*;

type Make = fn(&mut Conv, &[ValueId]) -> ValueId;

/// The functions, and how many operands each has.
pub(super) fn by_name(name: &str) -> Option<(usize, Make)> {
    Some(match name {
        "popc" | "popcll" => (1, bits_set),
        "clz" | "clzll" => (1, |c, a| leading_zeros(c, a[0])),
        "ffs" | "ffsll" => (1, first_set),
        "brev" | "brevll" => (1, |c, a| reversed(c, a[0])),
        "mulhi" | "mul64hi" => (2, |c, a| high_of_signed(c, a[0], a[1])),
        "mul24" => (2, |c, a| product_of_24(c, a, Signedness::Signed)),
        "umul24" => (2, |c, a| product_of_24(c, a, Signedness::Unsigned)),
        "hadd" => (2, |c, a| average(c, a, Signedness::Signed, Opcode::AndI, Opcode::AddI)),
        "uhadd" => (2, |c, a| average(c, a, Signedness::Unsigned, Opcode::AndI, Opcode::AddI)),
        "rhadd" => (2, |c, a| average(c, a, Signedness::Signed, Opcode::OrI, Opcode::SubI)),
        "urhadd" => (2, |c, a| average(c, a, Signedness::Unsigned, Opcode::OrI, Opcode::SubI)),
        "sad" => (3, |c, a| added_difference(c, a, Signedness::Signed)),
        "usad" => (3, |c, a| added_difference(c, a, Signedness::Unsigned)),
        "float_as_int" | "float_as_uint" => (1, |c, a| c.converted(Opcode::Bitcast, a[0], DType::I32, vec![])),
        "int_as_float" | "uint_as_float" => (1, |c, a| c.converted(Opcode::Bitcast, a[0], DType::F32, vec![])),
        "double_as_longlong" => (1, |c, a| c.converted(Opcode::Bitcast, a[0], DType::I64, vec![])),
        "longlong_as_double" => (1, |c, a| c.converted(Opcode::Bitcast, a[0], DType::F64, vec![])),
        _ => return None,
    })
}

fn sign(of: Signedness) -> Vec<(AttrKey, Attr)> {
    vec![(AttrKey::Signedness, Attr::Signedness(of))]
}

fn number(c: &mut Conv, like: ValueId, value: u64) -> ValueId {
    let ty = c.tile_ty(like).clone();
    c.fill(&ty.shape, ty.num().unwrap_or(DType::I32), value)
}

fn shifted(c: &mut Conv, v: ValueId, places: u64, of: Signedness) -> ValueId {
    let places = number(c, v, places);
    c.same_with(Opcode::ShrI, &[v, places], sign(of))
}

fn bits(c: &Conv, v: ValueId) -> u64 {
    u64::from(c.tile_ty(v).num().map_or(32, DType::bits))
}

/// As an i32, which counts of bits are.
fn counted(c: &mut Conv, v: ValueId) -> ValueId {
    if bits(c, v) > 32 { c.converted(Opcode::TruncI, v, DType::I32, vec![]) } else { v }
}

/// Every second group of `width` bits, from the lowest.
fn every_second(width: u64) -> u64 {
    (0..64 / (2 * width)).fold(0, |all, i| all | ((1 << width) - 1) << (2 * width * i))
}

/// How many bits of an integer are set, as an i32: sums of neighbours, of bits, of pairs, of fours and so on.
fn bits_set(c: &mut Conv, a: &[ValueId]) -> ValueId {
    let (mut v, n) = (a[0], bits(c, a[0]));
    let mut width = 1;
    while width < n {
        let mask = number(c, v, every_second(width));
        let high = shifted(c, v, width, Signedness::Unsigned);
        let (low, high) = (c.same(Opcode::AndI, &[v, mask]), c.same(Opcode::AndI, &[high, mask]));
        v = c.same(Opcode::AddI, &[low, high]);
        width *= 2;
    }
    counted(c, v)
}

/// The bits below the highest one are set, and then counted.
fn leading_zeros(c: &mut Conv, v: ValueId) -> ValueId {
    let (mut all, n) = (v, bits(c, v));
    let mut places = 1;
    while places < n {
        let lower = shifted(c, all, places, Signedness::Unsigned);
        all = c.same(Opcode::OrI, &[all, lower]);
        places *= 2;
    }
    let used = bits_set(c, &[all]);
    let width = number(c, used, n);
    c.same(Opcode::SubI, &[width, used])
}

/// The place of the lowest bit that is set, from 1; 0 where there is none: what is below it, counted.
fn first_set(c: &mut Conv, a: &[ValueId]) -> ValueId {
    let (zero, one) = (number(c, a[0], 0), number(c, a[0], 1));
    let less = c.same(Opcode::SubI, &[a[0], one]);
    let up_to = c.same(Opcode::XorI, &[a[0], less]);
    let count = bits_set(c, &[up_to]);
    let none = c.integers_compare(Predicate::Equal, Signedness::Signed, a[0], zero);
    let zero = number(c, count, 0);
    c.choose(none, zero, count)
}

/// Neighbours change places: bits, pairs, fours and so on.
fn reversed(c: &mut Conv, v: ValueId) -> ValueId {
    let (mut v, n) = (v, bits(c, v));
    let mut width = 1;
    while width < n {
        let mask = number(c, v, every_second(width));
        let high = shifted(c, v, width, Signedness::Unsigned);
        let (high, low) = (c.same(Opcode::AndI, &[high, mask]), c.same(Opcode::AndI, &[v, mask]));
        let places = number(c, v, width);
        let low = c.same(Opcode::ShlI, &[low, places]);
        v = c.same(Opcode::OrI, &[high, low]);
        width *= 2;
    }
    v
}

/// The high half of a signed product: each negative operand counts 2^bits too much in the unsigned one.
pub fn high_of_signed(c: &mut Conv, a: ValueId, b: ValueId) -> ValueId {
    let mut high = c.same(Opcode::MulHiI, &[a, b]);
    let zero = number(c, a, 0);
    for (x, y) in [(a, b), (b, a)] {
        let negative = c.integers_compare(Predicate::LessThan, Signedness::Signed, x, zero);
        let excess = c.choose(negative, y, zero);
        high = c.same(Opcode::SubI, &[high, excess]);
    }
    high
}

/// The product of the lower 24 bits.
fn product_of_24(c: &mut Conv, a: &[ValueId], of: Signedness) -> ValueId {
    let mut low = |v: ValueId| {
        let places = number(c, v, 8);
        let high = c.same(Opcode::ShlI, &[v, places]);
        shifted(c, high, 8, of)
    };
    let (x, y) = (low(a[0]), low(a[1]));
    c.same(Opcode::MulI, &[x, y])
}

/// The average without overflow: what both have and half of what one has, rounded down; or what either has less that half, rounded up.
fn average(c: &mut Conv, a: &[ValueId], of: Signedness, common: Opcode, then: Opcode) -> ValueId {
    let (shared, differs) = (c.same(common, a), c.same(Opcode::XorI, a));
    let half = shifted(c, differs, 1, of);
    c.same(then, &[shared, half])
}

/// `|x - y| + z`
fn added_difference(c: &mut Conv, a: &[ValueId], of: Signedness) -> ValueId {
    let (most, least) = (c.same_with(Opcode::MaxI, &a[..2], sign(of)), c.same_with(Opcode::MinI, &a[..2], sign(of)));
    let apart = c.same(Opcode::SubI, &[most, least]);
    c.same(Opcode::AddI, &[apart, a[2]])
}
