//! Exact arithmetic in integers, rounded once, as a block of C, for every directed rounding and every small format. The
//! same algorithms as `num::soft` and `num::convert`.

use super::dialect::Dialect;

/// The block as a dialect writes it.
pub fn block(dialect: &Dialect) -> String {
    let u64 = dialect.base("u64").map_or("uint64_t", |b| b.spelling);
    let text = SOFT.replace("UNUSED ", dialect.soft_unused).replace("STATIC ", dialect.soft);
    let text = text.replace("CLZ(", dialect.clzll).replace("uint64_t", u64);
    match dialect.base("u128").filter(|b| b.defined) {
        Some(wide) => {
            format!("typedef {} soft_u128;\n{}", wide.spelling, text.replace("unsigned __int128", "soft_u128"))
        }
        None => text,
    }
}

/// The block. Formats are rows of `soft_formats`; rounding modes are numbered 0 nearest even, 1 zero, 2 down, 3 up,
/// 4 nearest away. A value is (kind, sign, mantissa, exponent) with kind 0 finite, 1 infinite, 2 NaN.
const SOFT: &str = r#"typedef struct { int exponent, fraction, bias, sign, subnormals, specials, padding; } soft_format;
typedef struct { int kind, sign, exponent; uint64_t mantissa; } soft_value;
enum { F16, BF16, F32, F64, TF32, F8E5M2, F8E4M3FN, F8E5M3FNU, F8E8M0FNU, F4E2M1FN, F8E4M3FNUZ, F8E5M2FNUZ };
STATIC const soft_format soft_formats[] = {
  {5, 10, 15, 1, 1, 0, 0}, {8, 7, 127, 1, 1, 0, 0}, {8, 23, 127, 1, 1, 0, 0}, {11, 52, 1023, 1, 1, 0, 0},
  {8, 10, 127, 1, 1, 0, 13}, {5, 2, 15, 1, 1, 0, 0}, {4, 3, 7, 1, 1, 1, 0}, {5, 3, 15, 0, 1, 1, 0},
  {8, 0, 127, 0, 0, 1, 0}, {2, 1, 1, 1, 1, 2, 0}, {4, 3, 8, 1, 1, 3, 0}, {5, 2, 16, 1, 1, 3, 0},
};
STATIC int soft_clz(unsigned __int128 x) {
  uint64_t high = x >> 64, low = x;
  return high ? CLZ(high) : low ? 64 + CLZ(low) : 128;
}
STATIC uint64_t soft_ones(soft_format f) { return (1ULL << (f.exponent + f.fraction)) - 1; }
STATIC uint64_t soft_infinity(soft_format f) { return soft_ones(f) >> f.fraction << f.fraction; }
STATIC uint64_t soft_nan(int type) {
  soft_format f = soft_formats[type];
  if (f.specials == 3) return 1ULL << (f.exponent + f.fraction);
  return (f.specials ? soft_ones(f) : soft_infinity(f) | 1ULL << (f.fraction - 1)) << f.padding;
}
STATIC soft_value soft_decode(int type, uint64_t bits) {
  soft_format f = soft_formats[type == TF32 ? F32 : type];
  uint64_t code = bits & soft_ones(f), fraction = code & ((1ULL << f.fraction) - 1);
  int field = code >> f.fraction, sub = field == 0 && f.subnormals;
  soft_value v = {0, f.sign && (bits >> (f.exponent + f.fraction) & 1), 0, 0};
  if (f.specials == 0 && code >= soft_infinity(f)) v.kind = 1 + (code > soft_infinity(f));
  if (f.specials == 1 && code == soft_ones(f)) v.kind = 2;
  if (f.specials == 3 && code == 0 && v.sign) v.kind = 2;
  v.mantissa = sub ? fraction : fraction | 1ULL << f.fraction;
  v.exponent = (sub ? 1 : field) - f.bias - f.fraction;
  return v;
}
STATIC uint64_t soft_encode(int type, int sign, unsigned __int128 mantissa, int exponent, int rounding) {
  soft_format f = soft_formats[type];
  uint64_t signed_zero = sign && f.sign && f.specials != 3 ? 1ULL << (f.exponent + f.fraction) : 0;
  int top = exponent + 127 - soft_clz(mantissa), lowest = 1 - f.bias - !f.subnormals;
  if (mantissa == 0 || (!f.subnormals && top < lowest)) return signed_zero << f.padding;
  int unit = (top > lowest ? top : lowest) - f.fraction, shift = unit - exponent;
  unsigned __int128 lost = 0, half = 1;
  uint64_t kept;
  if (shift <= 0) kept = (uint64_t)(mantissa << -shift);
  else if (shift < 128) {
    kept = (uint64_t)(mantissa >> shift);
    lost = mantissa & (((unsigned __int128)1 << shift) - 1);
    half = (unsigned __int128)1 << (shift - 1);
  } else if (shift == 128) kept = 0, lost = mantissa, half = (unsigned __int128)1 << 127;
  else kept = 0, lost = 1, half = 2;
  int outward = rounding == 1 ? 0 : rounding == 2 ? sign : rounding == 3 ? !sign : 1;
  int up = rounding >= 1 && rounding <= 3 ? outward && lost != 0
         : rounding == 4 ? lost >= half : lost > half || (lost == half && (kept & 1));
  kept += up;
  if (kept == 2ULL << f.fraction) kept >>= 1, unit++;
  uint64_t hidden = 1ULL << f.fraction, code;
  int field = unit + f.fraction + f.bias;
  if (kept < hidden) code = kept;
  else if (field >= 1 << f.exponent) code = ~0ULL;
  else code = ((uint64_t)field << f.fraction) | (kept - hidden);
  uint64_t largest = f.specials == 0 ? soft_infinity(f) - 1 : f.specials == 1 ? soft_ones(f) - 1 : soft_ones(f);
  if (code > largest) {
    if (outward && (f.specials & 1)) return soft_nan(type);
    code = !outward || f.specials == 2 ? largest : soft_infinity(f);
  }
  if (f.specials == 3 && sign && code) code |= 1ULL << (f.exponent + f.fraction);
  return (signed_zero | code) << f.padding;
}
STATIC uint64_t soft_infinite(int type, int sign) {
  soft_format f = soft_formats[type];
  if (f.specials & 1) return soft_nan(type);
  return ((f.specials ? soft_ones(f) : soft_infinity(f)) | (sign && f.sign ? 1ULL << (f.exponent + f.fraction) : 0)) << f.padding;
}
UNUSED uint64_t soft_convert(int from, int to, int rounding, uint64_t bits) {
  soft_value v = soft_decode(from, bits);
  if (v.kind == 2) return soft_nan(to);
  if (v.kind == 1) return soft_infinite(to, v.sign);
  return soft_encode(to, v.sign, v.mantissa, v.exponent, rounding);
}
STATIC uint64_t soft_sum(int type, int sa, unsigned __int128 ma, int ea, int sb, unsigned __int128 mb, int eb, int rounding) {
  int down = rounding == 2;
  if (ma == 0 && mb == 0) return soft_encode(type, sa == sb ? sa : down, 0, 0, 0);
  if (ma == 0) return soft_encode(type, sb, mb, eb, rounding);
  if (mb == 0) return soft_encode(type, sa, ma, ea, rounding);
  int za = soft_clz(ma) - 3, zb = soft_clz(mb) - 3;
  ma <<= za, ea -= za, mb <<= zb, eb -= zb;
  if (ea < eb) {
    int s = sa, e = ea;
    unsigned __int128 m = ma;
    sa = sb, ea = eb, ma = mb, sb = s, eb = e, mb = m;
  }
  int by = ea - eb;
  if (by >= 128) mb = mb != 0;
  else if (by > 0) mb = mb >> by | ((mb & (((unsigned __int128)1 << by) - 1)) != 0);
  if (sa == sb) return soft_encode(type, sa, ma + mb, ea, rounding);
  if (ma == mb) return soft_encode(type, down, 0, 0, 0);
  return ma > mb ? soft_encode(type, sa, ma - mb, ea, rounding) : soft_encode(type, sb, mb - ma, ea, rounding);
}
UNUSED uint64_t soft_add(int type, int rounding, uint64_t x, uint64_t y) {
  soft_value a = soft_decode(type, x), b = soft_decode(type, y);
  if (a.kind == 2 || b.kind == 2 || (a.kind && b.kind && a.sign != b.sign)) return soft_nan(type);
  if (a.kind || b.kind) return soft_infinite(type, a.kind ? a.sign : b.sign);
  return soft_sum(type, a.sign, a.mantissa, a.exponent, b.sign, b.mantissa, b.exponent, rounding);
}
UNUSED uint64_t soft_fma(int type, int rounding, uint64_t x, uint64_t y, uint64_t z) {
  soft_value a = soft_decode(type, x), b = soft_decode(type, y), c = soft_decode(type, z);
  int sign = a.sign != b.sign;
  if (a.kind == 2 || b.kind == 2 || c.kind == 2) return soft_nan(type);
  if (a.kind || b.kind) {
    if ((!a.kind && a.mantissa == 0) || (!b.kind && b.mantissa == 0) || (c.kind && c.sign != sign)) return soft_nan(type);
    return soft_infinite(type, sign);
  }
  if (c.kind) return soft_infinite(type, c.sign);
  return soft_sum(type, sign, (unsigned __int128)a.mantissa * b.mantissa, a.exponent + b.exponent, c.sign, c.mantissa,
                  c.exponent, rounding);
}
UNUSED uint64_t soft_mul(int type, int rounding, uint64_t x, uint64_t y) {
  soft_value a = soft_decode(type, x), b = soft_decode(type, y);
  int sign = a.sign != b.sign;
  if (a.kind == 2 || b.kind == 2) return soft_nan(type);
  if (a.kind || b.kind) {
    if ((!a.kind && a.mantissa == 0) || (!b.kind && b.mantissa == 0)) return soft_nan(type);
    return soft_infinite(type, sign);
  }
  return soft_encode(type, sign, (unsigned __int128)a.mantissa * b.mantissa, a.exponent + b.exponent, rounding);
}
UNUSED uint64_t soft_div(int type, int rounding, uint64_t x, uint64_t y) {
  soft_value a = soft_decode(type, x), b = soft_decode(type, y);
  int sign = a.sign != b.sign, a0 = !a.kind && a.mantissa == 0, b0 = !b.kind && b.mantissa == 0;
  if (a.kind == 2 || b.kind == 2 || (a.kind && b.kind) || (a0 && b0)) return soft_nan(type);
  if (a.kind || b0) return soft_infinite(type, sign);
  if (b.kind || a0) return soft_encode(type, sign, 0, 0, 0);
  int up = CLZ(a.mantissa);
  unsigned __int128 dividend = (unsigned __int128)(a.mantissa << up) << 64;
  unsigned __int128 quotient = dividend / b.mantissa | (dividend % b.mantissa != 0);
  return soft_encode(type, sign, quotient, a.exponent - up - 64 - b.exponent, rounding);
}
UNUSED uint64_t soft_sqrt(int type, int rounding, uint64_t x) {
  soft_value a = soft_decode(type, x);
  if (a.kind == 0 && a.mantissa == 0) return x;
  if (a.kind == 2 || a.sign) return soft_nan(type);
  if (a.kind == 1) return x;
  int up = CLZ(a.mantissa) + 62;
  if ((a.exponent - up) & 1) up--;
  unsigned __int128 square = (unsigned __int128)a.mantissa << up, root = 0;
  for (int bit = 63; bit >= 0; bit--) {
    unsigned __int128 next = root | (unsigned __int128)1 << bit;
    if (next * next <= square) root = next;
  }
  return soft_encode(type, 0, root | (root * root != square), (a.exponent - up) / 2, rounding);
}
"#;
