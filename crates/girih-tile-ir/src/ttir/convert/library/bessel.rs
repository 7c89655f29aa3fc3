//! Bessel functions of order 0 and 1, in f64.
//!
//! Up to 8 a Chebyshev series in x^2, of the second kind beside its logarithm; beyond, `sqrt(2/(pi x)) (P cos(t) - Q sin(t))`
//! with `t = x - pi/4` or `x - 3 pi/4`, where P and Q are series in 1/x^2. The series were made from 50-digit values and are summed by
//! Clenshaw's recurrence. The error is within 2e-15 of the greater of 1 and the value, up to where `sin` and `cos` of x lose digits.

use super::*;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

impl Conv<'_> {
    fn sum(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.same(Opcode::AddF, &[a, b])
    }
    fn less(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.same(Opcode::SubF, &[a, b])
    }
    fn times(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.same(Opcode::MulF, &[a, b])
    }
}

/// The sum of a Chebyshev series at `s`.
fn series(c: &mut Conv, terms: &[f64], s: ValueId) -> ValueId {
    let twice = c.sum(s, s);
    let (mut one, mut two) = (like(c, s, 0.0), like(c, s, 0.0));
    for &term in terms.iter().skip(1).rev() {
        let term = like(c, s, term);
        let rest = c.less(term, two);
        two = one;
        one = c.same(Opcode::Fma, &[twice, one, rest]);
    }
    let first = like(c, s, terms.first().copied().unwrap_or(0.0));
    let rest = c.less(first, two);
    c.same(Opcode::Fma, &[s, one, rest])
}

/// x^2/32 - 1 of an x up to 8.
fn nearness(c: &mut Conv, x: ValueId) -> ValueId {
    let eight = like(c, x, 8.0);
    let x = c.same(Opcode::MinF, &[x, eight]);
    let (scale, one) = (like(c, x, 1.0 / 32.0), like(c, x, -1.0));
    let square = c.times(x, x);
    c.same(Opcode::Fma, &[square, scale, one])
}

/// The function up to 8 without its logarithm.
fn near(c: &mut Conv, x: ValueId, even: &[f64], odd: &[f64], order: u32) -> ValueId {
    let s = nearness(c, x);
    if order == 0 {
        return series(c, even, s);
    }
    let v = series(c, odd, s);
    c.times(v, x)
}

/// From 8 on: of the first kind, or of the second.
fn far(c: &mut Conv, x: ValueId, order: u32, second: bool) -> ValueId {
    let eight = like(c, x, 8.0);
    let x = c.same(Opcode::MaxF, &[x, eight]);
    let inverse = c.same(Opcode::DivF, &[eight, x]);
    let square = c.times(inverse, inverse);
    let (two, minus) = (like(c, x, 2.0), like(c, x, -1.0));
    let s = c.same(Opcode::Fma, &[square, two, minus]);
    let (p, q) = if order == 0 { (&P0[..], &Q0[..]) } else { (&P1[..], &Q1[..]) };
    let (p, q) = (series(c, p, s), series(c, q, s));
    let q = c.times(q, inverse);
    let (cos, sin) = (c.same(Opcode::Cos, &[x]), c.same(Opcode::Sin, &[x]));
    let (sum, difference) = (c.sum(cos, sin), c.less(sin, cos));
    let (cos, sin) = if order == 0 { (sum, difference) } else { (difference, c.same(Opcode::NegF, &[sum])) };
    let v = if second {
        let (a, b) = (c.times(p, sin), c.times(q, cos));
        c.sum(a, b)
    } else {
        let (a, b) = (c.times(p, cos), c.times(q, sin));
        c.less(a, b)
    };
    let scale = like(c, x, FRAC_2_PI);
    let size = c.same(Opcode::DivF, &[scale, x]);
    let size = c.same(Opcode::Sqrt, &[size]);
    let half = like(c, x, FRAC_1_SQRT_2);
    let size = c.times(size, half);
    let v = c.times(v, size);
    // Infinitely far it is 0, where the angle is NaN.
    let (limit, zero) = (like(c, x, f64::INFINITY), like(c, x, 0.0));
    let end = c.floats_compare(Predicate::Equal, x, limit);
    c.choose(end, zero, v)
}

fn joined(c: &mut Conv, x: ValueId, near: ValueId, far: ValueId) -> ValueId {
    let limit = like(c, x, 8.0);
    let is_far = c.floats_compare(Predicate::GreaterThan, x, limit);
    let v = c.choose(is_far, far, near);
    // A NaN stays one.
    let known = c.floats_compare(Predicate::Equal, x, x);
    c.choose(known, v, x)
}

/// J0, which is even, or J1, which is odd.
pub(super) fn first(c: &mut Conv, x: ValueId, order: u32) -> ValueId {
    let size = c.same(Opcode::AbsF, &[x]);
    let (near, far) = (near(c, size, &J0, &J1, order), far(c, size, order, false));
    let v = joined(c, size, near, far);
    if order == 0 {
        return v;
    }
    let (zero, opposite) = (like(c, x, 0.0), c.same(Opcode::NegF, &[v]));
    let negative = c.floats_compare(Predicate::LessThan, x, zero);
    c.choose(negative, opposite, v)
}

/// Y0 or Y1: of negative numbers NaN, of zero the negative infinity.
pub(super) fn second(c: &mut Conv, x: ValueId, order: u32) -> ValueId {
    let plain = near(c, x, &Y0, &Y1, order);
    let (j, log) = (near(c, x, &J0, &J1, order), c.same(Opcode::Log, &[x]));
    let mut term = c.times(j, log);
    let zero = like(c, x, 0.0);
    if order == 1 {
        let one = like(c, x, 1.0);
        let inverse = c.same(Opcode::DivF, &[one, x]);
        term = c.less(term, inverse);
    }
    let scale = like(c, x, FRAC_2_PI);
    let close = c.same(Opcode::Fma, &[term, scale, plain]);
    let far = far(c, x, order, true);
    let v = joined(c, x, close, far);
    let (lowest, nan) = (like(c, x, f64::NEG_INFINITY), like(c, x, f64::NAN));
    let none = c.floats_compare(Predicate::Equal, x, zero);
    let v = c.choose(none, lowest, v);
    let negative = c.floats_compare(Predicate::LessThan, x, zero);
    c.choose(negative, nan, v)
}

/// I0 or I1: the function `name`, which is divided by e^|x|, times that, in two steps since e^|x| overflows before I0 does.
pub(super) fn modified(c: &mut Conv, x: ValueId, name: &str) -> ValueId {
    let (size, half) = (c.same(Opcode::AbsF, &[x]), like(c, x, 0.5));
    let half = c.times(size, half);
    let (scaled, root) = (external(c, &[x], name), c.same(Opcode::Exp, &[half]));
    let v = c.times(scaled, root);
    let v = c.times(v, root);
    let limit = like(c, x, f64::INFINITY);
    let end = c.floats_compare(Predicate::Equal, size, limit);
    let far = if name == "i0e" { size } else { x };
    c.choose(end, far, v)
}

/// Chebyshev series: J0(x) on [0, 8], in x^2/32 - 1.
const J0: [f64; 17] = [
    0.15772797147489012,
    -0.008723442352852221,
    0.2651786132033368,
    -0.37009499387264977,
    0.15806710233209725,
    -0.034893769411408884,
    0.004819180069467605,
    -0.00046062616620627504,
    3.246032882100508e-05,
    -1.7619469077621507e-06,
    7.608163592418782e-08,
    -2.679253530557673e-09,
    7.848696314479465e-11,
    -1.9438346867370164e-12,
    4.125320595634374e-14,
    -7.588508125447546e-16,
    1.2218515873961411e-17,
];
/// Chebyshev series: J1(x)/x on [0, 8], in x^2/32 - 1.
const J1: [f64; 16] = [
    0.08104484632565812,
    -0.1489751450676521,
    0.1609992623572097,
    -0.08268049176681791,
    0.022213639654966037,
    -0.003646940600769276,
    0.0004050337728354822,
    -3.255554866857259e-05,
    1.9858774049915165e-06,
    -9.521984756750436e-08,
    3.687133759097148e-09,
    -1.178026622695885e-10,
    3.160154580348003e-12,
    -7.221755239651773e-14,
    1.4232144003513942e-15,
    -2.4441972916190464e-17,
];
/// Chebyshev series: Y0(x) - 2/pi ln(x) J0(x) on [0, 8], in x^2/32 - 1.
const Y0: [f64; 17] = [
    -0.03314611320328494,
    -0.2744743055297453,
    0.17903431407718265,
    0.26156734625504663,
    -0.17730201278114358,
    0.04719668959576339,
    -0.007287962479552079,
    0.0007531135932577742,
    -5.632079141056987e-05,
    3.206532537654801e-06,
    -1.44072332740187e-07,
    5.248794787330516e-09,
    -1.5837552541812015e-10,
    4.02633081830612e-12,
    -8.747341203310769e-14,
    1.6434898714919468e-15,
    -2.6977881152566837e-17,
];
/// Chebyshev series: (Y1(x) - 2/pi (ln(x) J1(x) - 1/x))/x on [0, 8], in x^2/32 - 1.
const Y1: [f64; 16] = [
    0.0025380132357417816,
    -0.01608717304766875,
    -0.09591204536083074,
    0.08445197259652346,
    -0.028328123944594365,
    0.005289897544167113,
    -0.0006414551451326356,
    5.505982873338744e-05,
    -3.53808001868935e-06,
    1.7707804556154404e-07,
    -7.11055004989928e-09,
    2.344337905911516e-10,
    -6.4651518414115946e-12,
    1.51429151205002e-13,
    -3.0511859694473254e-15,
    5.34668038572867e-17,
];
/// Chebyshev series: The amplitude of the cosine of order 0 from 8 on, in 128/x^2 - 1.
const P0: [f64; 14] = [
    0.9994603493475187,
    -0.0005365220468132117,
    3.0751847875194745e-06,
    -5.1705945376060975e-08,
    1.6306464635151382e-09,
    -7.86409137723707e-11,
    5.168262387349193e-12,
    -4.3045788699253914e-13,
    4.3265957431549404e-14,
    -5.069034095935236e-15,
    6.748072215733873e-16,
    -1.0011513723467786e-16,
    1.6305919233744186e-17,
    -2.880866169482871e-18,
];
/// Chebyshev series: That of the sine, times x/8, in 128/x^2 - 1.
const Q0: [f64; 14] = [
    -0.015555854605337009,
    6.838519942611649e-05,
    -7.414498411060647e-07,
    1.7972457247968992e-08,
    -7.27191593686632e-10,
    4.2201219046687385e-11,
    -3.206747420996635e-12,
    3.006145125351706e-13,
    -3.336328185322427e-14,
    4.255225040245461e-15,
    -6.09993013164005e-16,
    9.662128970303257e-17,
    -1.6686065214378146e-17,
    3.1082440486738143e-18,
];
/// Chebyshev series: The amplitude of the cosine of order 1 from 8 on, in 128/x^2 - 1.
const P1: [f64; 14] = [
    1.0009030408600137,
    0.0008989898330859408,
    -3.987284300488908e-06,
    6.177633960644299e-08,
    -1.8718907491063067e-09,
    8.816898659582339e-11,
    -5.704863640395645e-12,
    4.699195515230542e-13,
    -4.6842237839904895e-14,
    5.452674896044717e-15,
    -7.221180842274018e-16,
    1.0667689114335412e-16,
    -1.7312313216116335e-17,
    3.0492991197665872e-18,
];
/// Chebyshev series: That of the sine, times x/8, in 128/x^2 - 1.
const Q1: [f64; 14] = [
    0.04677778706953532,
    -9.62772354915708e-05,
    9.138615257955454e-07,
    -2.0959781384083424e-08,
    8.229193327650554e-10,
    -4.686363688176945e-11,
    3.5152187949686082e-12,
    -3.2643156743279e-13,
    3.5967765829165294e-14,
    -4.5612523950772974e-15,
    6.508282957783384e-16,
    -1.0269147531823243e-16,
    1.767635548776479e-17,
    -3.2834519872981614e-18,
];
