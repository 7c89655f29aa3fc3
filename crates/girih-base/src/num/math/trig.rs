//! sin, cos and tan: reduction by multiples of pi/2, then minimax polynomials on `[-pi/4, pi/4]`.
//!
//! sin, cos and tan of usual f32 stay in f32: pi/2 is split into three parts, and the first leaves no error, since its
//! products with small integers lie on the grid of the argument. tan is a quotient of two polynomials there, keeps the
//! reduced argument as a pair, and takes the rounding of the divisor from the dividend. Other f32 compute in f64. Small arguments are reduced
//! as Cody and Waite do, with fused multiply-adds and, for f64, three parts of pi/2. Large arguments multiply by the
//! bits of 2/pi that matter (Payne and Hanek's idea), cut into chunks whose products with the argument are exact as one
//! or two f64, so whole turns fall away exactly; the chunks are picked by selects, without a table in memory.

use super::machine::{Machine, X};
use super::program::Kind;

const PIO2: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591833e-33];

/// pi/2 in three f32, each less than the number that it approximates, so that a zero keeps its sign.
const PIO2_SINGLE: [f64; 3] = [1.570796251296997, 7.549789415861596e-08, 5.3903279409461824e-15];
/// (sin x - x) / x^3 and (cos x - 1) / x^2, in x^2, for f32
const SIN_SINGLE: [f64; 3] = [-0.16666654908632686, 0.008332175846356121, -0.0001951697747255064];
const COS_SINGLE: [f64; 4] =
    [-0.4999999972401028, 0.041666623194669135, -0.0013886759563065466, 2.4390042624956467e-05];
/// Pi/2 in three parts for tan, which reduces its argument to a pair of numbers. The second part has few bits, so that multiplying it by an
/// integer up to 2^15 is exact.
const PIO2_SINGLE_TAN: [f64; 3] = [1.570796251296997, 7.543712854385376e-08, 6.07710062827671e-11];
/// tan x = (x + x^3 p(x^2)) / (1 + x^2 q(x^2)), for f32
const TAN_SINGLE: [[f64; 2]; 2] =
    [[-0.11135544627904892, 0.001074739033356309], [-0.4446887671947479, 0.015970982611179352]];
/// Greatest f32 argument that is computed in f32.
const USUAL_SINGLE: f64 = 32768.0;

const SIN32: [f64; 4] = [-0.16666666641609942, 0.008333329383267273, -0.00019839333868893784, 2.71830159590347e-06];
const COS32: [f64; 4] = [0.04166666662278296, -0.0013888883749439678, 2.4799518943339395e-05, -2.7210148490832197e-07];
/// (sin x - x) / x^3 and (cos x - 1 + x^2/2) / x^4, in x^2
const SIN64: [f64; 6] = [
    -0.16666666666666632,
    0.008333333333322422,
    -0.0001984126982981292,
    2.755731369310615e-06,
    -2.5050758221244224e-08,
    1.589679784941712e-10,
];
const COS64: [f64; 6] = [
    0.0416666666666666,
    -0.0013888888888874123,
    2.4801587289479853e-05,
    -2.7557314351458066e-07,
    2.0875723133015225e-09,
    -1.1359639676411042e-11,
];

/// 2/pi in chunks of 28 bits, as integers.
const CHUNKS28: [f64; 8] =
    [170891318.0, 240010261.0, 44024437.0, 131200308.0, 232525238.0, 43358524.0, 70845471.0, 240214955.0];
/// 2/pi in chunks of 48 bits, as integers.
const CHUNKS48: [f64; 26] = [
    179192535600708.0,
    23270068279249.0,
    269607407508322.0,
    164485373595713.0,
    279625518014139.0,
    217023475117626.0,
    72902017812041.0,
    51582721954332.0,
    279404452032809.0,
    183888630658549.0,
    51381843323292.0,
    123311537225281.0,
    63298527134547.0,
    63722760724363.0,
    208877819469816.0,
    167125197363215.0,
    262985436846602.0,
    119981743701711.0,
    43752994852678.0,
    69709976300077.0,
    128813497838565.0,
    265511607155191.0,
    152087256787963.0,
    105214343208200.0,
    94571694849147.0,
    118386223725600.0,
];

/// `a + b` and its rounding error (Knuth).
pub(super) fn two_sum<M: Machine>(a: X<M>, b: X<M>) -> (X<M>, X<M>) {
    let sum = a + b;
    let other = sum - a;
    (sum, (a - (sum - other)) + (b - other))
}

/// An argument reduced: `x = quadrant * pi/2 + hi + lo`; the quadrant's last two bits count.
struct Reduced<M: Machine> {
    quadrant: X<M>,
    hi: X<M>,
    lo: X<M>,
}

/// x modulo 4, exactly, in `[-2, 2]`.
fn modulo4<M: Machine>(x: X<M>) -> X<M> {
    (x * 0.25).rint().fma(-4.0, x)
}

/// An integer-valued float below 2^51, as an integer.
fn to_int<M: Machine>(x: X<M>) -> X<M> {
    (x + super::exp::magic(x)).as_int()
}

/// Cody and Waite's reduction, for |x| below 2^30.
fn reduce_small<M: Machine>(x: X<M>, single: bool) -> Reduced<M> {
    let magic = super::exp::magic(x);
    let shifted = x.fma(std::f64::consts::FRAC_2_PI, magic);
    let n = shifted - magic;
    let quadrant = shifted.as_int();
    if single {
        let hi = n.fma(-PIO2[1], n.fma(-PIO2[0], x));
        return Reduced { quadrant, hi, lo: x.float(0.0) };
    }
    let p = n * PIO2[0];
    let p_low = n.fma(PIO2[0], -p);
    let (r, d) = two_sum(x - p, -p_low);
    let q = n * PIO2[1];
    let q_low = n.fma(PIO2[1], -q);
    let (r, e) = two_sum(r, -q);
    let low = (d + e) - n.fma(PIO2[2], q_low);
    let hi = r + low;
    Reduced { quadrant, hi, lo: (r - hi) + low }
}

/// Reduces an f64 that is a finite f32 of 2^26 or more: the products with five chunks of 2/pi are exact.
fn reduce_large_single<M: Machine>(x: X<M>) -> Reduced<M> {
    // Chunks before the window contribute whole multiples of four quadrants.
    let starts = [53, 81, 109].map(|e| x.float(2f64.powi(e)).le(x));
    let pick = |at: [X<M>; 4]| at[0].or_if(starts[0], at[1]).or_if(starts[1], at[2]).or_if(starts[2], at[3]);
    let scaled = x * pick([0, 1, 2, 3].map(|j| x.float(2f64.powi(-28 * (j + 1)))));
    let product = |k: usize| {
        let chunk = pick([0, 1, 2, 3].map(|j| x.float(CHUNKS28[j + k])));
        scaled * x.float(2f64.powi(-28 * k as i32)) * chunk
    };
    let (sum, a) = two_sum(modulo4(product(0)), modulo4(product(1)));
    let (sum, b) = two_sum(sum, product(2));
    let n = sum.rint();
    let turns = (sum - n) + ((a + b) + product(3) + product(4));
    Reduced { quadrant: to_int(n), hi: turns * PIO2[0], lo: x.float(0.0) }
}

/// Reduces any finite f64 of 2^30 or more in size.
fn reduce_large<M: Machine>(x: X<M>) -> Reduced<M> {
    let bits = x.as_int();
    let exponent = (bits >> 52 & x.int(0x7ff)) - 1023;
    // The first chunk that matters: (exponent - 54) / 48.
    let beyond = exponent - 54;
    let start = ((beyond * 1366) >> 16).or_if(beyond.lt(0), 0);
    let scaled = (bits - (((start << 5) + (start << 4)) << 52)).as_float();
    let mut window = CHUNKS48.map(|c| x.float(c));
    for level in [16usize, 8, 4, 2, 1] {
        let skip = (start & x.int(level as i64)).ne(0);
        for i in 0..(level + 4).min(window.len() - level) {
            window[i] = window[i].or_if(skip, window[i + level]);
        }
    }
    let product = |k: usize| {
        let factor = scaled * x.float(2f64.powi(-48 * (k as i32 + 1)));
        let p = factor * window[k];
        (p, factor.fma(window[k], -p))
    };
    let products = [product(0), product(1), product(2), product(3), product(4)];
    let (sum, a) = two_sum(modulo4(products[0].0), modulo4(products[0].1));
    let (sum, b) = two_sum(sum, modulo4(products[1].0));
    let (sum, c) = two_sum(sum, products[1].1);
    let (sum, d) = two_sum(sum, products[2].0);
    let n = sum.rint();
    let (mut hi, mut lo) = (sum - n, products[4].0);
    for term in [products[2].1, products[3].0, products[3].1, a, b, c, d] {
        let (s, error) = two_sum(hi, term);
        hi = s;
        lo = lo + error;
    }
    let turns = hi + lo;
    let turns_low = (hi - turns) + lo;
    let p = turns * PIO2[0];
    let p_low = turns.fma(PIO2[0], -p) + turns_low.fma(PIO2[0], turns * PIO2[1]);
    let hi = p + p_low;
    Reduced { quadrant: to_int(n), hi, lo: (p - hi) + p_low }
}

/// The quadrant of x, which is at least 0, and the sine and cosine of its reduced argument. `single`: x is the exact
/// value of an f32, and the result needs only the precision of an f32.
fn sin_cos<M: Machine>(x: X<M>, single: bool) -> (X<M>, X<M>, X<M>) {
    let small = reduce_small(x, single);
    let large = if single { reduce_large_single(x) } else { reduce_large(x) };
    let is_small = x.lt(if single { 67108864.0 } else { 1073741824.0 });
    let choose = |small: X<M>, large: X<M>| match single {
        true => is_small.select(small, large),
        false => is_small.usually_select(small, large),
    };
    let quadrant = choose(small.quadrant, large.quadrant);
    let r = choose(small.hi, large.hi);
    let z = r * r;
    let (sin, cos) = if single {
        let half = z.fma(-0.5, 1.0);
        ((r * z).fma(z.poly(&SIN32), r), (z * z).fma(z.poly(&COS32), half))
    } else {
        let lo = choose(small.lo, large.lo);
        let half = z * 0.5;
        let low = (-half).fma(lo, lo);
        let sin = r + (r * z).fma(z.poly(&SIN64), low);
        let w = -half + 1.0;
        let cos = w + (((-w + 1.0) - half) + (z * z).fma(z.poly(&COS64), -(r * lo)));
        (sin, cos)
    };
    (quadrant, sin, cos)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Function {
    Sin,
    Cos,
    Tan,
}

/// sin or cos by quadrant: `sin` and `cos` belong to the reduced argument.
fn turned<M: Machine>(f: Function, quadrant: X<M>, sin: X<M>, cos: X<M>, sign: X<M>) -> X<M> {
    let odd = (quadrant & quadrant.int(1)).ne(0);
    let top = sign.kind.bits() as i64 - 2;
    let highest = sign.int(1 << (sign.kind.bits() - 1));
    match f {
        Function::Sin => odd.select(cos, sin).flip(((quadrant << top) ^ sign) & highest),
        _ => odd.select(sin, cos).flip(((quadrant + 1) << top) & highest),
    }
}

/// The multiple of pi/2 that is nearest to the size of x, as the sum that rounds to it and as a float.
fn turns<M: Machine>(x: X<M>) -> (X<M>, X<M>) {
    let magic = super::exp::magic(x);
    let shifted = x.abs().fma(std::f64::consts::FRAC_2_PI, magic);
    (shifted, shifted - magic)
}

/// Computes in f32 alone, for arguments up to [`USUAL_SINGLE`].
fn usual_single<M: Machine>(f: Function, x: X<M>) -> X<M> {
    let (shifted, n) = turns(x);
    if f == Function::Tan {
        return usual_tan_single(x, shifted, n);
    }
    let r = PIO2_SINGLE.iter().fold(x.abs(), |r, part| n.fma(-part, r));
    let z = r * r;
    let (sin, cos) = ((r * z).fma(z.poly(&SIN_SINGLE), r), z.fma(z.poly(&COS_SINGLE), 1.0));
    turned(f, shifted.as_int(), sin, cos, x.as_int())
}

fn usual_tan_single<M: Machine>(x: X<M>, shifted: X<M>, n: X<M>) -> X<M> {
    let [first, second, third] = PIO2_SINGLE_TAN.map(|part| -part);
    let nearest = n.fma(first, x.abs());
    let hi = n.fma(second, nearest);
    let of_second = n.fma(second, nearest - hi);
    let r = n.fma(third, hi);
    let low = n.fma(third, hi - r) + of_second;
    let z = r * r;
    // tan (r + low) = tan r + (1 + tan^2 r) low; the polynomials divide by the rest.
    let low = (low * z).fma(0.75, low);
    let divisor = z.poly(&TAN_SINGLE[1]);
    let cos = z.fma(divisor, 1.0);
    // sin / (cos + e) = (sin - e sin / cos) / cos, where r is near enough to sin / cos.
    let rounding = z.fma(divisor, -cos + 1.0);
    let low = (-r).fma(rounding, low);
    let sin = (r * z).fma(z.poly(&TAN_SINGLE[0]), low) + r;
    let odd = (shifted.as_int() & x.int(1)).ne(0);
    (odd.select(-cos, sin) / odd.select(sin, cos)).flip(x.sign())
}

pub fn trig<M: Machine>(f: Function, x: X<M>) -> X<M> {
    let single = x.kind == Kind::F32;
    let wide = if single { x.convert(Kind::F64) } else { x };
    let size = wide.abs();
    let (quadrant, sin, cos) = sin_cos(size, single);
    let y = match f {
        Function::Tan => {
            let odd = (quadrant & quadrant.int(1)).ne(0);
            (odd.select(-cos, sin) / odd.select(sin, cos)).flip(wide.sign())
        }
        _ => turned(f, quadrant, sin, cos, wide.as_int()),
    };
    let y = size.lt(f64::INFINITY).select(y, wide.float(f64::NAN));
    let y = if single { y.convert(Kind::F32) } else { y };
    if single { x.abs().lt(USUAL_SINGLE).usually_select(usual_single(f, x), y) } else { y }
}
