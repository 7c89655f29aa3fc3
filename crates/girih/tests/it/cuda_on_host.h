// What emitted CUDA calls that C++ does not have, for the test `cuda_scalar`. Written from NVIDIA's documentation of each
// function, and of the PTX instruction where the source has PTX.
#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)

template <class To, class From> static To bits_as(From x) {
  To to;
  static_assert(sizeof to == sizeof x, "the same bits");
  memcpy(&to, &x, sizeof to);
  return to;
}
static unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
static float __uint_as_float(unsigned x) { return bits_as<float>(x); }
static float __int_as_float(int x) { return bits_as<float>(x); }
static long long __double_as_longlong(double x) { return bits_as<long long>(x); }
static double __longlong_as_double(long long x) { return bits_as<double>(x); }
static unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  unsigned long long both = (unsigned long long)y << 32 | x, made = 0;
  for (int b = 0; b < 4; b++) made |= (both >> (s >> b * 4 & 7) * 8 & 255) << b * 8;
  return made;
}
static int __clzll(unsigned long long x) { return x ? __builtin_clzll(x) : 64; }
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned __int128)a * b >> 64; }

static int __float2int_rz(float x) {
  return x != x ? 0 : x >= 2147483648.0f ? 2147483647 : x < -2147483648.0f ? -2147483647 - 1 : (int)x;
}
static unsigned __float2uint_rz(float x) { return !(x > 0) ? 0 : x >= 4294967296.0f ? 4294967295u : (unsigned)x; }

// Rounded arithmetic: the processor's, in that mode.
#define ROUNDED(suffix, mode)                                                                                         \
  template <class F, class Op> static F rounded_##suffix(Op op, F a, F b, F c) {                                       \
    volatile F x = a, y = b, z = c;                                                                                    \
    fesetround(mode);                                                                                                  \
    volatile F r = op(x, y, z);                                                                                        \
    fesetround(FE_TONEAREST);                                                                                          \
    return r;                                                                                                          \
  }                                                                                                                    \
  static float __fadd_##suffix(float a, float b) { return rounded_##suffix([](float x, float y, float) { return x + y; }, a, b, a); }      \
  static float __fsub_##suffix(float a, float b) { return rounded_##suffix([](float x, float y, float) { return x - y; }, a, b, a); }      \
  static float __fmul_##suffix(float a, float b) { return rounded_##suffix([](float x, float y, float) { return x * y; }, a, b, a); }      \
  static float __fdiv_##suffix(float a, float b) { return rounded_##suffix([](float x, float y, float) { return x / y; }, a, b, a); }      \
  static float __fmaf_##suffix(float a, float b, float c) { return rounded_##suffix([](float x, float y, float z) { return fmaf(x, y, z); }, a, b, c); } \
  static float __fsqrt_##suffix(float a) { return rounded_##suffix([](float x, float, float) { return sqrtf(x); }, a, a, a); }              \
  static double __dadd_##suffix(double a, double b) { return rounded_##suffix([](double x, double y, double) { return x + y; }, a, b, a); } \
  static double __dsub_##suffix(double a, double b) { return rounded_##suffix([](double x, double y, double) { return x - y; }, a, b, a); } \
  static double __dmul_##suffix(double a, double b) { return rounded_##suffix([](double x, double y, double) { return x * y; }, a, b, a); } \
  static double __ddiv_##suffix(double a, double b) { return rounded_##suffix([](double x, double y, double) { return x / y; }, a, b, a); } \
  static double __fma_##suffix(double a, double b, double c) { return rounded_##suffix([](double x, double y, double z) { return fma(x, y, z); }, a, b, c); } \
  static double __dsqrt_##suffix(double a) { return rounded_##suffix([](double x, double, double) { return sqrt(x); }, a, a, a); }
ROUNDED(rn, FE_TONEAREST)
ROUNDED(rz, FE_TOWARDZERO)
ROUNDED(rd, FE_DOWNWARD)
ROUNDED(ru, FE_UPWARD)

// cvt.f32.f16, cvt.rn.f16.f32, cvt.rn.f16.f64: a NaN becomes the canonical one.
static float f32_from_f16(unsigned short x) { return (float)bits_as<_Float16>(x); }
static unsigned short f16_from_f32(float x) { return x != x ? 0x7fff : bits_as<unsigned short>((_Float16)x); }
static unsigned short f16_from_f64(double x) { return x != x ? 0x7fff : bits_as<unsigned short>((_Float16)x); }
// cvt.rn.bf16.f32
static unsigned short bf16_from_f32(float x) {
  unsigned u = bits_as<unsigned>(x);
  return x != x ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
// fma.rn.f16, fma.rn.bf16: the exact product and sum. What is rounded on the way to more bits than are wanted is made odd, so that the
// last rounding does not take it for a tie.
static double odd_sum(double a, double b) {
  volatile double sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
  long long bits = bits_as<long long>((double)sum);
  if (!isfinite((double)sum) || error == 0 || bits & 1) return sum;
  return bits_as<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}
static float odd_f32(double x) {
  float near = (float)x;
  if (!isfinite(x) || near == x) return near;
  unsigned bits = bits_as<unsigned>(near);
  return bits_as<float>((fabs((double)near) > fabs(x) ? bits - 1 : bits) | 1);
}
static unsigned short soft_fma_rn_f16(unsigned short a, unsigned short b, unsigned short c) {
  double r = odd_sum((double)f32_from_f16(a) * f32_from_f16(b), f32_from_f16(c));
  return r != r ? 0x7e00 : f16_from_f64(r);
}
static float f32_of_bf16(unsigned short x) { return bits_as<float>((unsigned)x << 16); }
static unsigned short soft_fma_rn_bf16(unsigned short a, unsigned short b, unsigned short c) {
  double r = odd_sum((double)f32_of_bf16(a) * f32_of_bf16(b), f32_of_bf16(c));
  return r != r ? 0x7fc0 : bf16_from_f32(odd_f32(r));
}
// max.f32, max.NaN.f32 and those of min: the zeros are ordered.
static float larger(float a, float b) { return a > b || (a == b && !signbit(a)) ? a : b; }
static float smaller(float a, float b) { return a < b || (a == b && signbit(a)) ? a : b; }
static float maxf_num_f32(float a, float b) { return a != a ? b : b != b ? a : larger(a, b); }
static float minf_num_f32(float a, float b) { return a != a ? b : b != b ? a : smaller(a, b); }
static float maxf_nan_f32(float a, float b) { return a != a ? a : b != b ? b : larger(a, b); }
static float minf_nan_f32(float a, float b) { return a != a ? a : b != b ? b : smaller(a, b); }
static float at_least_f32(float a, float b) { return maxf_nan_f32(a, b); }
static float at_most_f32(float a, float b) { return minf_nan_f32(a, b); }
static void __threadfence() {}

