// Blocks of threads on the CPU, for the test `cuda_kernels`: a thread is a fibre that runs until it waits. What the emitted
// source calls that is an instruction of PTX has here what the PTX ISA says of it; a function that is missing does not compile.
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <vector>

#define __grid_constant__
#define __cluster_dims__(...)
#define __align__(n) __attribute__((aligned(n)))
// One block runs at a time.
#define __shared__ static

struct girih_dim { unsigned x, y, z; };
static girih_dim threadIdx, blockIdx, gridDim;

#define VECTOR(T, name)                                                                                                \
  struct __align__(2 * sizeof(T)) name##2 { T x, y; };                                                                 \
  struct __align__(4 * sizeof(T)) name##4 { T x, y, z, w; };
VECTOR(float, float)
VECTOR(int, int)
VECTOR(unsigned, uint)
VECTOR(short, short)
VECTOR(unsigned short, ushort)
VECTOR(signed char, char)
VECTOR(unsigned char, uchar)
VECTOR(double, double)
VECTOR(long long, longlong)

// Dynamic shared memory of each block of a cluster: `extern __shared__` is the test's to replace.
enum { GIRIH_SHARED = 232448, GIRIH_CLUSTER = 8 };
alignas(1024) static unsigned char girih_shared[GIRIH_CLUSTER][GIRIH_SHARED];

namespace girih {
enum { MOST = 1024, LANES = 32, STACK = 256 << 10 };

struct Copy { void *to; const void *from; int bytes; bool on; };

struct Fibre {
  ucontext_t context;
  char *stack;
  bool done;
  // Copies begun, the ends of their groups, and those that have landed.
  Copy copies[512];
  int begun, landed, ends[64], groups;
  unsigned exchanges;
};

static Fibre fibres[MOST];
static ucontext_t scheduler;
// Threads of a block, and blocks of a cluster: fibres are numbered through all of them.
static int current, threads, cluster;
static int live[GIRIH_CLUSTER], waiting[GIRIH_CLUSTER];
static unsigned meetings[GIRIH_CLUSTER];
static int first_waiting[GIRIH_CLUSTER];
static unsigned first_meetings[GIRIH_CLUSTER];
static int all_live, all_waiting;
static unsigned all_meetings;
static int warp_waiting[MOST / LANES], warp_live[MOST / LANES];
static unsigned warp_meetings[MOST / LANES];
static unsigned long long progress;
// Copies land when they are waited for, or at once.
static bool late;
static unsigned long long words[MOST / LANES][2][LANES][6];

static void give_way() { swapcontext(&fibres[current].context, &scheduler); }

static int block_of_cluster() { return current / threads; }
static unsigned char *shared() { return girih_shared[block_of_cluster()]; }

static void meet_block() {
  int own = block_of_cluster();
  unsigned now = meetings[own];
  if (++waiting[own] == live[own]) {
    waiting[own] = 0, meetings[own]++, progress++;
    return;
  }
  while (meetings[own] == now) give_way();
}

static void meet_first(int count) {
  int own = block_of_cluster();
  unsigned now = first_meetings[own];
  if (++first_waiting[own] == count) {
    first_waiting[own] = 0, first_meetings[own]++, progress++;
    return;
  }
  while (first_meetings[own] == now) give_way();
}

static void meet_cluster() {
  unsigned now = all_meetings;
  if (++all_waiting == all_live) {
    all_waiting = 0, all_meetings++, progress++;
    return;
  }
  while (all_meetings == now) give_way();
}

static void meet_warp() {
  int warp = current / LANES;
  unsigned now = warp_meetings[warp];
  if (++warp_waiting[warp] == warp_live[warp]) {
    warp_waiting[warp] = 0, warp_meetings[warp]++, progress++;
    return;
  }
  while (warp_meetings[warp] == now) give_way();
}

// What each lane of the warp has of so many words: places of this thread's warp, good until its next exchange but one.
static unsigned long long (*exchange(const unsigned long long *own, int n))[6] {
  Fibre &self = fibres[current];
  auto all = words[current / LANES][self.exchanges++ & 1];
  for (int i = 0; i < n; i++) all[current % LANES][i] = own[i];
  meet_warp();
  return all;
}

template <class T> static T of_lane(T x, int lane) {
  unsigned long long word = 0;
  memcpy(&word, &x, sizeof x);
  T out;
  memcpy(&out, exchange(&word, 1)[lane], sizeof out);
  return out;
}

static void land(const Copy &c) {
  if (c.on) memcpy(c.to, c.from, c.bytes);
  else memset(c.to, 0, c.bytes);
}

static void copy(void *to, const void *from, int bytes, bool on) {
  Fibre &self = fibres[current];
  Copy c = {to, from, bytes, on};
  if (!late) return land(c);
  if (self.begun - self.landed >= 512) abort();
  self.copies[self.begun++ % 512] = c;
}

static void commit() {
  Fibre &self = fibres[current];
  self.ends[self.groups++ % 64] = self.begun;
}

static void wait_groups(int left) {
  Fibre &self = fibres[current];
  if (self.groups - left <= 0) return;
  int end = self.ends[(self.groups - left - 1) % 64];
  while (self.landed < end) land(self.copies[self.landed++ % 512]);
}

// An mbarrier's eight bytes.
struct Mbarrier { int bytes; unsigned short pending; unsigned char count, phase; };

static void settle(Mbarrier *m) {
  if (m->pending == 0 && m->bytes == 0) m->phase++, m->pending = m->count, progress++;
}

template <class... P> static void call(void (*kernel)(P...), const unsigned long long *args);
} // namespace girih

static void __syncthreads() { girih::meet_block(); }
static void __syncwarp() { girih::meet_warp(); }
template <class T> static T __shfl_xor_sync(unsigned, T x, int by) { return girih::of_lane(x, girih::current % 32 ^ by); }
template <class T> static T __shfl_sync(unsigned, T x, int lane) { return girih::of_lane(x, lane & 31); }
template <class T> static T __shfl_down_sync(unsigned, T x, int by) {
  int lane = girih::current % 32;
  return girih::of_lane(x, lane + by < 32 ? lane + by : lane);
}
static void __trap() { fprintf(stderr, "trap\n"), abort(); }

#define STORE(name)                                                                                                    \
  template <class V> static void store_##name(void *p, V v) { memcpy(p, &v, sizeof v); }                               \
  template <class V> static void store_##name##_shared(void *p, V v) { memcpy(p, &v, sizeof v); }
#define STORES(T) STORE(T##x2) STORE(T##x4) STORE(T##x8) STORE(T##x16)
STORES(f8E4M3FN) STORES(f8E5M2) STORES(f32) STORES(f64) STORES(f16) STORES(bf16) STORES(i8) STORES(i16) STORES(i32) STORES(i64) STORES(i1)

#define COPY(n)                                                                                                        \
  static void copy_async_##n(void *to, const void *from) { girih::copy(to, from, n, true); }                           \
  static void copy_async_##n##_or_zero(void *to, const void *from, bool on) { girih::copy(to, from, n, on); }
COPY(4) COPY(8) COPY(16)
static void copy_async_commit() { girih::commit(); }
#define WAIT(n) static void copy_async_wait_##n() { girih::wait_groups(n); }
WAIT(0) WAIT(1) WAIT(2) WAIT(3) WAIT(4) WAIT(5) WAIT(6) WAIT(7)

static void mbarrier_init(void *p, int count) {
  *(girih::Mbarrier *)p = {0, (unsigned short)count, (unsigned char)count, 0};
}
static void mbarrier_arrive(void *p) {
  auto m = (girih::Mbarrier *)p;
  m->pending--, girih::settle(m);
}
static void mbarrier_arrive_expect(void *p, int bytes) {
  auto m = (girih::Mbarrier *)p;
  m->bytes += bytes, m->pending--, girih::settle(m);
}
static void mbarrier_wait(void *p, int parity) {
  auto m = (girih::Mbarrier *)p;
  while ((m->phase & 1) == parity) girih::give_way();
}
// The same place in the shared memory of another block of the cluster.
static void *girih_place_of(void *p, int block) { return (unsigned char *)p + (block - girih::block_of_cluster()) * GIRIH_SHARED; }
static void *place_of(void *p, int block) { return girih_place_of(p, block); }
static void mbarrier_arrive_of(void *p, int block) { mbarrier_arrive(girih_place_of(p, block)); }
static void mbarrier_wait_cluster(void *p, int parity) { mbarrier_wait(p, parity); }
static void cluster_sync() { girih::meet_cluster(); }
static void fence_mbarrier_init() {}
static void fence_async() {}

// Fragments, of which lane l has the words that the PTX ISA gives it.
template <int N, bool TRANS> static void rows(const void *p, int *out) {
  unsigned long long place = (unsigned long long)p;
  auto all = girih::exchange(&place, 1);
  int l = girih::current % 32;
  for (int n = 0; n < N; n++) {
    auto row = [&](int r) { return (const unsigned char *)all[n * 8 + r][0]; };
    if (TRANS) {
      for (int b = 0; b < 4; b++) ((unsigned char *)&out[n])[b] = row(l % 4 * 2 + b / 2)[l / 4 * 2 + b % 2];
    } else {
      memcpy(&out[n], row(l / 4) + l % 4 * 4, 4);
    }
  }
}
#define LDMATRIX(n, T, suffix, trans)                                                                                  \
  static T ldmatrix_x##n##suffix(const void *p) {                                                                      \
    int out[n];                                                                                                        \
    rows<n, trans>(p, out);                                                                                            \
    T v;                                                                                                               \
    memcpy(&v, out, sizeof v);                                                                                         \
    return v;                                                                                                          \
  }
LDMATRIX(4, int4, , false) LDMATRIX(4, int4, _trans, true) LDMATRIX(2, int2, , false) LDMATRIX(2, int2, _trans, true)

struct Half { static float of(const unsigned char *p) { unsigned short x; memcpy(&x, p, 2); return f32_from_f16(x); } enum { BYTES = 2 }; };
struct Brain { static float of(const unsigned char *p) { unsigned x = p[0] << 16 | p[1] << 24; return bits_as<float>(x); } enum { BYTES = 2 }; };
struct Tensor { static float of(const unsigned char *p) { unsigned x; memcpy(&x, p, 4); return bits_as<float>(x & 0xffffe000); } enum { BYTES = 4 }; };
// f8 with four and with five bits of exponent; the first has one NaN and no infinity.
struct Four {
  static float of(const unsigned char *p) {
    int e = *p >> 3 & 15, m = *p & 7;
    float x = e == 15 && m == 7 ? NAN : e ? ldexpf(8 + m, e - 10) : ldexpf(m, -9);
    return *p >> 7 ? -x : x;
  }
  enum { BYTES = 1 };
};
struct Five { static float of(const unsigned char *p) { return f32_from_f16(*p << 8); } enum { BYTES = 1 }; };
struct Signed { static int of(const unsigned char *p) { return (signed char)*p; } enum { BYTES = 1 }; };
struct Unsigned { static int of(const unsigned char *p) { return *p; } enum { BYTES = 1 }; };

static float plus(float a, float b, float c) { return fmaf(a, b, c); }
static int plus(int a, int b, int c) { return (int)((unsigned)a * (unsigned)b + (unsigned)c); }

template <class A, class B, class S> static void product(S *c, S *d, int4 a, int2 b) {
  unsigned long long own[6] = {(unsigned)a.x, (unsigned)a.y, (unsigned)a.z, (unsigned)a.w, (unsigned)b.x, (unsigned)b.y};
  auto all = girih::exchange(own, 6);
  enum { TERMS = 32 / A::BYTES, HALF = TERMS / 2 };
  auto element = [&](int line, int word, int k, int bytes) {
    int at = line * 16 + k % HALF * bytes;
    return (const unsigned char *)&all[at / 4][word] + at % 4;
  };
  int l = girih::current % 32;
  for (int half = 0; half < 2; half++) {
    for (int e = 0; e < 2; e++) {
      S sum = half ? d[e] : c[e];
      for (int k = 0; k < TERMS; k++) {
        S x = A::of(element(l / 4, half + 2 * (k / HALF), k, A::BYTES));
        S y = B::of(element(l % 4 * 2 + e, 4 + k / HALF, k, B::BYTES));
        sum = plus(x, y, sum);
      }
      (half ? d : c)[e] = sum;
    }
  }
}
static void mma_f16(float *c, float *d, int4 a, int2 b) { product<Half, Half>(c, d, a, b); }
static void mma_bf16(float *c, float *d, int4 a, int2 b) { product<Brain, Brain>(c, d, a, b); }
static void mma_tf32(float *c, float *d, int4 a, int2 b) { product<Tensor, Tensor>(c, d, a, b); }
static void mma_s8(int *c, int *d, int4 a, int2 b) { product<Signed, Signed>(c, d, a, b); }
static void mma_u8(int *c, int *d, int4 a, int2 b) { product<Unsigned, Unsigned>(c, d, a, b); }
static void mma_u8_s8(int *c, int *d, int4 a, int2 b) { product<Unsigned, Signed>(c, d, a, b); }
static void mma_s8_u8(int *c, int *d, int4 a, int2 b) { product<Signed, Unsigned>(c, d, a, b); }
// The sums of one product lie between those of another.
template <class A, class B, class S> static void product_by_2(S *c, S *d, int4 a, int2 b) {
  S low[2] = {c[0], c[2]}, high[2] = {d[0], d[2]};
  product<A, B>(low, high, a, b);
  c[0] = low[0], c[2] = low[1], d[0] = high[0], d[2] = high[1];
}
#define BYTE_FLOATS(name, A, B)                                                                                         \
  static void mma_##name(float *c, float *d, int4 a, int2 b) { product<A, B>(c, d, a, b); }                            \
  static void mma_##name##_by_2(float *c, float *d, int4 a, int2 b) { product_by_2<A, B>(c, d, a, b); }
BYTE_FLOATS(e4m3, Four, Four) BYTE_FLOATS(e5m2, Five, Five) BYTE_FLOATS(e4m3_e5m2, Four, Five) BYTE_FLOATS(e5m2_e4m3, Five, Four)
static void mma_s8_by_2(int *c, int *d, int4 a, int2 b) { product_by_2<Signed, Signed>(c, d, a, b); }
static void mma_u8_by_2(int *c, int *d, int4 a, int2 b) { product_by_2<Unsigned, Unsigned>(c, d, a, b); }
static void mma_s8_u8_by_2(int *c, int *d, int4 a, int2 b) { product_by_2<Signed, Unsigned>(c, d, a, b); }
static void mma_u8_s8_by_2(int *c, int *d, int4 a, int2 b) { product_by_2<Unsigned, Signed>(c, d, a, b); }

// Products of warpgroups: a thread computes its own elements when it waits for them. A panel is its number in a list.
struct girih_panel { const unsigned char *at; unsigned row, lead, stride; };
static std::vector<girih_panel> girih_panels;
// A left operand in registers: the words of all lanes, as `exchange` gives them.
struct girih_words { unsigned long long of[32][4]; bool are; };
struct girih_product { void *sums; unsigned long long a, b; int cols, group; bool trans_a, trans_b; void (*run)(const girih_product &); girih_words words; };
static std::vector<girih_product> girih_products[girih::MOST];
static int girih_product_groups[girih::MOST];

#define PANEL(bytes)                                                                                                   \
  static unsigned long long wgmma_panel_##bytes(const void *p, unsigned lead, unsigned stride) {                       \
    girih_panels.push_back({(const unsigned char *)p, bytes, lead, stride});                                           \
    return girih_panels.size() - 1;                                                                                    \
  }
PANEL(32) PANEL(64) PANEL(128)

static const unsigned char *girih_element(const girih_panel &p, bool trans, unsigned line, unsigned k, unsigned size) {
  unsigned in_row = p.row / size;
  unsigned byte = trans ? line / in_row * p.lead + line % in_row * size + k / 8 * p.stride + k % 8 * p.row
                        : line / 8 * p.stride + line % 8 * p.row + k * size;
  auto at = (unsigned long long)(p.at + byte);
  return (const unsigned char *)(at ^ (at >> 7 & (p.row / 16 - 1)) << 4);
}
template <class T, class S> static void girih_multiply(const girih_product &p) {
  int t = girih::current % girih::threads % 128, l = t % 32, each = p.cols / 4;
  for (int n = 0; n < 2 * each; n++) {
    int row = t / 32 * 16 + l / 4 + n / each * 8, own = n % each, column = own / 2 * 8 + l % 4 * 2 + own % 2;
    S *sum = (S *)p.sums + n;
    for (int k = 0; k < 32 / T::BYTES; k++) {
      int half = 16 / T::BYTES, at = k % half * T::BYTES;
      auto own_a = (const unsigned char *)&p.words.of[l / 4 * 4 + at / 4][n / each + 2 * (k / half)] + at % 4;
      S x = T::of(p.words.are ? own_a : girih_element(girih_panels[p.a], p.trans_a, row, k, T::BYTES));
      S y = T::of(girih_element(girih_panels[p.b], p.trans_b, column, k, T::BYTES));
      *sum = plus(x, y, *sum);
    }
  }
}
static void fence_registers() {}
static void wgmma_commit() { girih_product_groups[girih::current]++; }
static void wgmma_wait(int left) {
  auto &all = girih_products[girih::current];
  while (!all.empty() && all[0].group < girih_product_groups[girih::current] - left) {
    all[0].run(all[0]);
    all.erase(all.begin());
  }
}
#define PRODUCT(T, S, name, n, how, a, b)                                                                              \
  static void wgmma_##name##_##n##_##how(S *c, unsigned long long x, unsigned long long y) {                           \
    int group = girih_product_groups[girih::current];                                                                  \
    girih_products[girih::current].push_back({c, x, y, n, group, a, b, girih_multiply<T, S>, {}});                     \
  }
#define FROM_REGISTERS(T, S, name, n, how, b)                                                                          \
  static void wgmma_##name##_##n##_##how(S *c, const int *x, unsigned long long y) {                                   \
    int group = girih_product_groups[girih::current];                                                                  \
    unsigned long long own[4] = {(unsigned)x[0], (unsigned)x[1], (unsigned)x[2], (unsigned)x[3]};                      \
    auto all = girih::exchange(own, 4);                                                                                \
    girih_product p = {c, 0, y, n, group, false, b, girih_multiply<T, S>, {}};                                         \
    for (int l = 0; l < 32; l++) for (int w = 0; w < 4; w++) p.words.of[l][w] = all[l][w];                             \
    p.words.are = true;                                                                                                \
    girih_products[girih::current].push_back(p);                                                                       \
  }
#define PRODUCTS(T, name, n)                                                                                           \
  PRODUCT(T, float, name, n, nn, false, false) PRODUCT(T, float, name, n, nt, false, true)                             \
  PRODUCT(T, float, name, n, tn, true, false) PRODUCT(T, float, name, n, tt, true, true)                               \
  FROM_REGISTERS(T, float, name, n, rn, false) FROM_REGISTERS(T, float, name, n, rt, true)
#define COLUMNS(n, sums)                                                                                               \
  PRODUCTS(Half, f16, n) PRODUCTS(Brain, bf16, n) PRODUCT(Tensor, float, tf32, n, nn, false, false)                    \
  PRODUCT(Four, float, e4m3, n, nn, false, false) PRODUCT(Five, float, e5m2, n, nn, false, false)                        \
  PRODUCT(Signed, int, s8, n, nn, false, false) PRODUCT(Unsigned, int, u8, n, nn, false, false)                        \
  static void wgmma_wait_0_##sums##_f32(float *) { wgmma_wait(0); }                                                    \
  static void wgmma_wait_0_##sums##_s32(int *) { wgmma_wait(0); }                                                      \
  static void wgmma_wait_1_##sums##_f32(float *) { wgmma_wait(1); }                                                    \
  static void wgmma_wait_1_##sums##_s32(int *) { wgmma_wait(1); }
COLUMNS(8, 4) COLUMNS(16, 8) COLUMNS(24, 12) COLUMNS(32, 16) COLUMNS(48, 24) COLUMNS(64, 32) COLUMNS(128, 64) COLUMNS(256, 128)

// Tensor memory: words of 128 lanes, and the columns that are taken. Addresses have the lane in their upper half.
static unsigned girih_tensor_memory[GIRIH_CLUSTER][128][512];
static int girih_columns[GIRIH_CLUSTER];
// Addresses in shared memory have 18 bits; what they were made from is found by them.
static std::vector<const unsigned char *> girih_addresses;
static unsigned long long __cvta_generic_to_shared(const void *p) {
  girih_addresses.push_back((const unsigned char *)p);
  return (unsigned long long)p & 0x3ffff;
}
struct girih_tall { int sums; girih_panel operands[2]; unsigned instruction; bool add; int kind; };
static std::vector<girih_tall> girih_talls[girih::MOST];

// An operand as the descriptor of 64 bits says: address, leading and stride offsets in units of 16 bytes, swizzle.
static girih_panel girih_described(unsigned long long number) {
  const unsigned char *from = nullptr;
  for (auto p : girih_addresses) if (((unsigned long long)p >> 4 & 0x3fff) == (number & 0x3fff)) from = p;
  unsigned lead = number >> 16 & 0x3fff, stride = number >> 32 & 0x3fff, swizzle = number >> 61;
  unsigned row = swizzle == 2 ? 128 : swizzle == 4 ? 64 : swizzle == 6 ? 32 : 0;
  if (!from || !row || (number >> 46 & 7) != 1) abort();
  return {from, row, lead * 16, stride * 16};
}
template <class A, class B, class S> static void girih_multiply_tall(const girih_tall &p) {
  unsigned i = p.instruction, rows = (i >> 24 & 31) * 16, cols = (i >> 17 & 63) * 8;
  if (rows != 128 || p.sums >> 16) abort();
  for (unsigned m = 0; m < rows; m++) {
    for (unsigned n = 0; n < cols; n++) {
      unsigned *word = &girih_tensor_memory[girih::block_of_cluster()][m][(p.sums & 0xffff) + n];
      S sum = 0;
      if (p.add) memcpy(&sum, word, 4);
      for (unsigned k = 0; k < 32 / A::BYTES; k++) {
        S x = A::of(girih_element(p.operands[0], i >> 15 & 1, m, k, A::BYTES));
        S y = B::of(girih_element(p.operands[1], i >> 16 & 1, n, k, B::BYTES));
        sum = plus(x, y, sum);
      }
      memcpy(word, &sum, 4);
    }
  }
}
static void girih_run_tall(const girih_tall &p) {
  unsigned d = p.instruction >> 4 & 3, a = p.instruction >> 7 & 7, b = p.instruction >> 10 & 7;
  if (d != (p.kind == 3 ? 2 : 1)) abort();
  switch (p.kind << 8 | a << 4 | b) {
    case 0x000: return girih_multiply_tall<Half, Half, float>(p);
    case 0x011: return girih_multiply_tall<Brain, Brain, float>(p);
    case 0x122: return girih_multiply_tall<Tensor, Tensor, float>(p);
    case 0x200: return girih_multiply_tall<Four, Four, float>(p);
    case 0x201: return girih_multiply_tall<Four, Five, float>(p);
    case 0x210: return girih_multiply_tall<Five, Four, float>(p);
    case 0x211: return girih_multiply_tall<Five, Five, float>(p);
    case 0x300: return girih_multiply_tall<Unsigned, Unsigned, int>(p);
    case 0x301: return girih_multiply_tall<Unsigned, Signed, int>(p);
    case 0x310: return girih_multiply_tall<Signed, Unsigned, int>(p);
    case 0x311: return girih_multiply_tall<Signed, Signed, int>(p);
    default: abort();
  }
}
static void girih_alloc(void *to, int columns) {
  girih::meet_warp();
  int own = girih::block_of_cluster();
  if (girih::current % 32 == 0) {
    if (girih_columns[own] + columns > 512) abort();
    girih_columns[own] += columns;
    int address = 512 - girih_columns[own];
    memcpy(to, &address, 4);
  }
  girih::meet_warp();
}
static void girih_dealloc(int columns) {
  girih::meet_warp();
  if (girih::current % 32 == 0) girih_columns[girih::block_of_cluster()] -= columns;
}
#define ALLOCATE(n)                                                                                                    \
  static void tcgen05_alloc_##n(void *to) { girih_alloc(to, n); }                                                      \
  static void tcgen05_dealloc_##n(int) { girih_dealloc(n); }
ALLOCATE(32) ALLOCATE(64) ALLOCATE(128) ALLOCATE(256) ALLOCATE(512)
static void tcgen05_relinquish() {}
static void tcgen05_before_sync() {}
static void tcgen05_after_sync() {}
#define TALL(name, kind)                                                                                               \
  static void tcgen05_mma_##name(int sums, unsigned long long a, unsigned long long b, unsigned i, bool add) {         \
    girih_panel left = girih_described(a), right = girih_described(b);                                            \
    girih_addresses.clear();                                                                                            \
    girih_tall p = {sums, {left, right}, i, add, kind};                                                                       \
    if (girih::late) girih_talls[girih::current].push_back(p);                                                         \
    else girih_run_tall(p);                                                                                            \
  }
TALL(f16, 0) TALL(tf32, 1) TALL(f8f6f4, 2) TALL(i8, 3)
static void tcgen05_commit(void *p) {
  for (auto &one : girih_talls[girih::current]) girih_run_tall(one);
  girih_talls[girih::current].clear();
  mbarrier_arrive(p);
}
// Four rows of a thread, as 16 lanes of 256 bits are loaded.
static void girih_load(void *c, int at, int cols) {
  int t = girih::current % girih::threads, l = t % 32, each = cols / 4, lane = at >> 16;
  if (lane != t / 32 % 4 * 32) abort();
  for (int n = 0; n < cols; n++) {
    int row = lane + n / each * 8 + l / 4, own = n % each, column = (at & 0xffff) + own / 2 * 8 + l % 4 * 2 + own % 2;
    memcpy((unsigned *)c + n, &girih_tensor_memory[girih::block_of_cluster()][row][column], 4);
  }
}
#define LOADED(n)                                                                                                      \
  static void tcgen05_load_##n##_f32(float *c, int at) { girih_load(c, at, n); }                                       \
  static void tcgen05_load_##n##_s32(int *c, int at) { girih_load(c, at, n); }                                         \
  static void tcgen05_wait_##n##_f32(float *) {}                                                                       \
  static void tcgen05_wait_##n##_s32(int *) {}
LOADED(16) LOADED(32) LOADED(48) LOADED(64) LOADED(80) LOADED(96) LOADED(112) LOADED(128) LOADED(256)

// What `cuTensorMapEncodeTiled` would have written: the first word is the address of these, dimensions outermost first.
struct girih_tensor {
  unsigned long long base, size, rank, swizzle;
  long long extent[5], stride[5], box[5];
};

// `back` copies from shared memory to the array, and leaves out what lies outside.
static void copy_box(bool back, void *to, const void *map, const int *innermost, int rank, void *on) {
  auto t = *(const girih_tensor *const *)map;
  long long count = 1, from[5];
  for (int d = 0; d < rank; d++) count *= t->box[d], from[d] = innermost[rank - 1 - d];
  if ((int)t->rank != rank) abort();
  for (long long n = 0; n < count; n++) {
    long long rest = n, at = 0;
    bool inside = true;
    for (int d = rank - 1; d >= 0; d--) {
      long long x = from[d] + rest % t->box[d];
      rest /= t->box[d];
      inside &= 0 <= x && x < t->extent[d];
      at += x * t->stride[d];
    }
    unsigned long long byte = n * t->size, pieces = t->swizzle / 16;
    if (pieces) byte ^= (byte >> 7 & (pieces - 1)) << 4;
    char *of_array = (char *)t->base + at * t->size, *of_box = (char *)to + byte;
    if (inside && back) memcpy(of_array, of_box, t->size);
    else if (inside) memcpy(of_box, of_array, t->size);
    else if (!back) memset(of_box, 0, t->size);
  }
  if (back) return;
  auto m = (girih::Mbarrier *)on;
  m->bytes -= (int)(count * t->size), girih::settle(m);
}
static void copy_box_to(int blocks, void *to, const void *map, const int *innermost, int rank, void *on) {
  for (int block = 0; block < girih::cluster; block++)
    if (blocks >> block & 1) copy_box(false, girih_place_of(to, block), map, innermost, rank, girih_place_of(on, block));
}
template <class M> static void prefetch_tensor_map(const M *) {}
template <class M> static void copy_tensor_all_2d(void *to, const M *map, int x, int y, void *on, int blocks) { int at[] = {x, y}; copy_box_to(blocks, to, map, at, 2, on); }
template <class M> static void copy_tensor_all_3d(void *to, const M *map, int x, int y, int z, void *on, int blocks) { int at[] = {x, y, z}; copy_box_to(blocks, to, map, at, 3, on); }
template <class M> static void copy_tensor_1d(void *to, const M *map, int x, void *on) { int at[] = {x}; copy_box(false, to, map, at, 1, on); }
template <class M> static void copy_tensor_back_1d(const M *map, int x, const void *from) { int at[] = {x}; copy_box(true, (void *)from, map, at, 1, nullptr); }
template <class M> static void copy_tensor_2d(void *to, const M *map, int x, int y, void *on) { int at[] = {x, y}; copy_box(false, to, map, at, 2, on); }
template <class M> static void copy_tensor_back_2d(const M *map, int x, int y, const void *from) { int at[] = {x, y}; copy_box(true, (void *)from, map, at, 2, nullptr); }
template <class M> static void copy_tensor_3d(void *to, const M *map, int x, int y, int z, void *on) { int at[] = {x, y, z}; copy_box(false, to, map, at, 3, on); }
template <class M> static void copy_tensor_back_3d(const M *map, int x, int y, int z, const void *from) { int at[] = {x, y, z}; copy_box(true, (void *)from, map, at, 3, nullptr); }
template <class M> static void copy_tensor_4d(void *to, const M *map, int x, int y, int z, int u, void *on) { int at[] = {x, y, z, u}; copy_box(false, to, map, at, 4, on); }
template <class M> static void copy_tensor_back_4d(const M *map, int x, int y, int z, int u, const void *from) { int at[] = {x, y, z, u}; copy_box(true, (void *)from, map, at, 4, nullptr); }

static void barrier_first(int count) { girih::meet_first(count); }
static void registers_more_240() {}
static void registers_fewer_168() {}
static void registers_fewer_24() {}
static void registers_more_168() {}
static void copy_tensor_commit() {}
static void copy_tensor_wait_0() {}

namespace girih {
template <class T> struct Argument { static T of(unsigned long long word) { T x; memcpy(&x, &word, sizeof x < 8 ? sizeof x : 8); return x; } };

template <class... P, size_t... I>
static void spread(void (*kernel)(P...), const unsigned long long *args, std::index_sequence<I...>) {
  kernel(Argument<P>::of(args[I])...);
}
template <class... P> static void call(void (*kernel)(P...), const unsigned long long *args) {
  spread(kernel, args, std::index_sequence_for<P...>());
}

static void (*entry)(const unsigned long long *);
static const unsigned long long *arguments;

static void thread() {
  entry(arguments);
  Fibre &self = fibres[current];
  int own = block_of_cluster();
  self.done = true, live[own]--, all_live--, warp_live[current / LANES]--, progress++;
  // Those who wait for everybody do not wait for this one.
  if (live[own] && waiting[own] == live[own]) waiting[own] = 0, meetings[own]++;
  if (all_live && all_waiting == all_live) all_waiting = 0, all_meetings++;
  int warp = current / LANES;
  if (warp_live[warp] && warp_waiting[warp] == warp_live[warp]) warp_waiting[warp] = 0, warp_meetings[warp]++;
  give_way();
}

// Runs all blocks. `mode`: 1 runs threads from the last to the first, 2 lands copies when they are waited for.
static int blocks(void (*kernel)(const unsigned long long *), const unsigned long long *args, const unsigned *grid, int count, int of_cluster, int mode) {
  entry = kernel, arguments = args, threads = count, cluster = of_cluster, late = mode & 2;
  int all = threads * cluster;
  if (all > MOST || cluster > GIRIH_CLUSTER || grid[0] % cluster) return 2;
  gridDim = {grid[0], grid[1], grid[2]};
  for (unsigned block = 0; block < grid[0] * grid[1] * grid[2]; block += cluster) {
    unsigned first = block % grid[0];
    blockIdx = {first, block / grid[0] % grid[1], block / grid[0] / grid[1]};
    memset(girih_shared, 0xa5, sizeof girih_shared[0] * cluster);
    girih_panels.clear();
    girih_addresses.clear();
    memset(girih_tensor_memory, 0xa5, sizeof girih_tensor_memory[0] * cluster);
    memset(girih_columns, 0, sizeof girih_columns);
    for (int n = 0; n < cluster; n++) live[n] = threads, waiting[n] = 0;
    all_live = all, all_waiting = 0;
    for (int t = 0; t < all; t++) {
      Fibre &f = fibres[t];
      if (!f.stack) f.stack = (char *)malloc(STACK);
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = f.stack, f.context.uc_stack.ss_size = STACK, f.context.uc_link = 0;
      makecontext(&f.context, thread, 0);
      f.done = false, f.begun = f.landed = f.groups = 0, f.exchanges = 0;
      girih_products[t].clear(), girih_product_groups[t] = 0, girih_talls[t].clear();
      warp_waiting[t / LANES] = 0, warp_live[t / LANES] = all - t / LANES * LANES < LANES ? all % LANES : LANES;
    }
    while (all_live) {
      unsigned long long before = progress;
      for (int n = 0; n < all; n++) {
        current = mode & 1 ? all - 1 - n : n;
        if (fibres[current].done) continue;
        threadIdx = {(unsigned)(current % threads), 0, 0};
        blockIdx.x = first + block_of_cluster();
        swapcontext(&scheduler, &fibres[current].context);
      }
      // Nobody can go on.
      if (all_live && before == progress) return 1;
    }
  }
  return 0;
}

static int run(void (*kernel)(const unsigned long long *), const unsigned long long *args, const unsigned *grid, int count, int of_cluster, int mode) {
  int stuck = blocks(kernel, args, grid, count, of_cluster, mode);
  for (Fibre &f : fibres) free(f.stack), f.stack = 0;
  return stuck;
}
} // namespace girih
