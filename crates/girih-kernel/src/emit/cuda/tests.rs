//! The CUDA of small kernels, short enough to read, and what there is none of.

use super::{Refusal, Unit, emit};
use crate::base::Label;
use crate::kernel::ir::Kernel;
use crate::kernel::{parse::parse, print::print_numbered, verify::verify};
use crate::tile::target::Target;

fn kernel(text: &str) -> Kernel {
    let kernel = parse(text).unwrap_or_else(|d| panic!("{}: {text}", d.message));
    assert_eq!(verify(&kernel), Vec::<String>::new(), "{text}");
    kernel
}

fn emitted(kernels: &[&Kernel], target: &str) -> Result<Unit, Refusal> {
    emit(kernels, &Target::named(target).unwrap())
}

fn cuda(text: &str) -> String {
    emitted(&[&kernel(text)], "sm_90a").unwrap().text
}

fn refusal(text: &str) -> String {
    let kernel = kernel(text);
    let refusal = emitted(&[&kernel], "sm_80").unwrap_err();
    let (printed, starts) = print_numbered(&kernel);
    let line = refusal.statement.map_or("", |s| printed.lines().nth(starts[s] as usize - 1).unwrap().trim());
    format!("{line}: {}", refusal.message)
}

#[test]
fn a_kernel_as_an_engineer_writes_it() {
    let text = cuda(
        "\
kernel scale(x: ptr<f32>, y: ptr<f32>, n: i32) threads 256 scratch 0 {
  inside: i1 = test bx*256 + tx < n
  v: f32 = load x[bx*256 + tx] where inside else 1.0:f32
  w: f32 = fma v, 2.0:f32, 0.5:f32
  store y[bx*256 + tx] = w where inside
}
",
    );
    assert_eq!(
        text,
        "\
// Girih kernels: scale
// nvcc --std=c++17 --fmad=false --device-int128

typedef long long i64;

// kernel scale: 256 threads
extern \"C\" __global__ void __launch_bounds__(256) scale_kernel(const float *x, float *y, int n) {
  const int bx = blockIdx.x, tx = threadIdx.x;
  bool inside = (i64)bx * 256 + tx < n;
  float v = inside ? x[(i64)bx * 256 + tx] : 1.0f;
  float w = __fmaf_rn(v, 2.0f, 0.5f);
  if (inside) y[(i64)bx * 256 + tx] = w;
}
"
    );
}

const BLOCK_SUM: &str = "\
kernel block_sum(x: ptr<f16>, y: ptr<f32>) threads 64 scratch 0 shared 8 {
  shared part: f32[2] at 0
  h: f16x4 = load x[bx*256 + tx*4]
  var sum: f32 = 0.0:f32
  for l in 0..4 step 1 unroll 4 {
    e: f16 = lane h[l]
    f: f32 = ftof.f32 e
    s: f32 = addf sum, f
    sum = s
  }
  near: f32 = shuffle xor sum, 16:i32
  both: f32 = addf sum, near
  if tx%32 == 0 {
    store part[tx//32] = both
  }
  barrier
  old: f32 = rmw addf y[bx], both where tx == 0 relaxed
}
";

#[test]
fn threads_meet_and_exchange() {
    let text = cuda(BLOCK_SUM);
    assert_eq!(
        &text[text.find("typedef").unwrap()..],
        "\
typedef unsigned short f16;
typedef long long i64;
#define INLINE static __device__ __forceinline__
INLINE float f32_from_f16(f16 x) {
  float r;
  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : \"h\"(x));
  return r;
}
INLINE float atomic_add_f32_relaxed(void *p, float x) {
  float old;
  asm volatile(\"atom.global.relaxed.gpu.add.f32 %0, [%1], %2;\" : \"=f\"(old) : \
\"l\"(__cvta_generic_to_global(p)), \"f\"(x) : \"memory\");
  return old;
}

// kernel block_sum: 64 threads, 8 bytes of shared memory
extern \"C\" __global__ void __launch_bounds__(64) block_sum_kernel(const f16 *x, float *y) {
  const int bx = blockIdx.x, tx = threadIdx.x;
  __shared__ __align__(16) float part[2];
  ushort4 h = *(const ushort4 *)&x[(i64)bx * 256 + tx * 4];
  float sum = 0.0f;
  #pragma unroll
  for (int l = 0; l < 4; l++) {
    f16 e = (&h.x)[l];
    float f = f32_from_f16(e);
    float s = sum + f;
    sum = s;
  }
  float near = __shfl_xor_sync(0xffffffffu, sum, 16);
  float both = sum + near;
  if ((tx & 31) == 0) {
    part[tx >> 5] = both;
  }
  __syncthreads();
  float old = tx == 0 ? atomic_add_f32_relaxed(&y[bx], both) : 0.0f;
}
"
    );
}

#[test]
fn asynchronous_copies_and_wide_vectors() {
    let text = cuda(
        "\
kernel k(x: ptr<f16>, n: i32) threads 64 scratch 0 shared 2048 {
  shared s: f16[1024] at 0
  copy async s[tx*8] = x[tx*8] bytes 16
  copy async s[512 + tx*2] = x[tx*2] bytes 4 where tx*2 < n
  commit
  wait groups 1
  v: f16x8 = load s[tx*8]
  e: f16 = lane v[3]
  var w: f16x8 = 0.0:f16
  lane w[5] = e
  store x[tx*8] = w
  store s[tx*8] = v
}
",
    );
    for line in [
        "  asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\" : : \"r\"((unsigned int)__cvta_generic_to_shared(to)), \
         \"l\"(__cvta_generic_to_global(from)) : \"memory\");",
        "INLINE void copy_async_4_or_zero(void *to, const void *from, bool on) {",
        "cp.async.ca.shared.global [%0], [%1], 4, %2;",
        "\"r\"(on ? 4 : 0) : \"memory\"",
        "asm volatile(\"cp.async.commit_group;\" : : : \"memory\");",
        "asm volatile(\"cp.async.wait_group 1;\" : : : \"memory\");",
        "union f16x8 { uint4 words; f16 at[8]; };",
        "  asm volatile(\"st.global.v4.u32 [%0], {%1, %2, %3, %4};\" : : \"l\"(__cvta_generic_to_global(p)), \
         \"r\"(v.words.x), \"r\"(v.words.y), \"r\"(v.words.z), \"r\"(v.words.w) : \"memory\");",
        "  copy_async_16(&s[tx * 8], &x[tx * 8]);",
        "  copy_async_4_or_zero(&s[512 + tx * 2], &x[tx * 2], tx * 2 < n);",
        "  copy_async_commit();",
        "  copy_async_wait_1();",
        "  f16x8 v = f16x8{*(const uint4 *)&s[tx * 8]};",
        "  f16 e = v.at[3];",
        "  f16x8 w = all_f16x8(0x0);",
        "  w.at[5] = e;",
        "  store_f16x8(&x[tx * 8], w);",
        "  store_f16x8_shared(&s[tx * 8], v);",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn mbarriers_and_tma() {
    let text = "\
kernel k(x: ptr<f32>, n: i32) threads 64 scratch 0 shared 8320 {
  shared s: f32[2048] at 0
  shared full: mbarrier[2] at 8192
  tensor x_map: f32[n, 64] of x strides (64) box [32, 32] swizzle 128
  if tx == 0 {
    init full[0] count 1
    fence init
    fence async
    arrive full[1]
    arrive full[0] expect 4096
    copy tensor s[0] = x_map[bx*32, 32] on full[0]
  }
  wait full[bx%2] parity by
}
";
    let printed = cuda(text);
    for line in [
        "struct __align__(128) TensorMap { unsigned long long words[16]; };",
        "k_kernel(const float *x, int n, const __grid_constant__ TensorMap x_map) {",
        "  __shared__ __align__(1024) float s[2048];",
        "  if (threadIdx.x == 0) prefetch_tensor_map(&x_map);",
        "    mbarrier_init(&full[0], 1);",
        "    fence_mbarrier_init();",
        "    fence_async();",
        "    mbarrier_arrive(&full[1]);",
        "    mbarrier_arrive_expect(&full[0], 4096);",
        // The innermost coordinate stands first.
        "    copy_tensor_2d(&s[0], &x_map, 32, (i64)bx * 32, &full[0]);",
        "  mbarrier_wait(&full[bx & 1], by);",
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];",
        "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    let kernel = kernel(text);
    let refusal = emitted(&[&kernel], "sm_80").unwrap_err();
    assert_eq!(refusal.message, "a block has mbarriers and TMA; sm_80 has neither");
}

#[test]
fn clusters() {
    let text = "\
kernel k(x: ptr<f32>, n: i32) threads 64 cluster 2 scratch 0 shared 8320 {
  shared s: f32[2048] at 0
  shared full: mbarrier[2] at 8192
  tensor x_map: f32[n, 64] of x strides (64) box [32, 32] swizzle 128
  barrier cluster
  if tx == 0 {
    arrive full[1] of 1
    copy tensor s[0] = x_map[by*32, 32] on full[0] all
  }
  wait full[bx%2] parity by
  barrier cluster
}
";
    let printed = cuda(text);
    for line in [
        "// kernel k: 64 threads, 8320 bytes of shared memory, clusters of 2 blocks",
        "extern \"C\" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(64) k_kernel(",
        // Each block of a cluster has memory of its own, which the launch sizes.
        "  extern __shared__ __align__(1024) unsigned char shared_u8[];",
        "  cluster_sync();",
        "    mbarrier_arrive_of(&full[1], 1);",
        "    copy_tensor_all_2d(&s[0], &x_map, 32, by * 32, &full[0], 3);",
        "  mbarrier_wait_cluster(&full[bx & 1], by);",
        "\"barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\"",
        "\"{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }\"",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], \
         [%2], %5;",
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 ended, [%1], %2;",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    let read = "kernel k(x: ptr<f32>) threads 64 cluster 2 scratch 0 shared 16 {\n  shared s: f32[1] at 0\n  barrier cluster\n  \
                v: f32 = load s[0] of 1\n  store x[tx] = v\n  barrier cluster\n}\n";
    let printed = cuda(read);
    for line in ["  float v = *(float *)place_of(&s[0], 1);", "asm volatile(\"mapa.u64 %0, %1, %2;\""] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    let refusal =
        emitted(&[&kernel("kernel k(x: ptr<f32>) threads 64 cluster 2 scratch 0 {\n  barrier cluster\n}\n")], "sm_80");
    assert_eq!(refusal.unwrap_err().message, "clusters of 2 blocks; sm_80 has none of more than 1");
}

#[test]
fn products_of_warpgroups() {
    let text = "\
kernel k(x: ptr<f32>) threads 256 scratch 96 shared 24576 {
  slot acc: f32[16] at 0
  slot a_f: i32[8] at 64
  shared a_s: f16[8192] at 0
  shared b_s: f16[4096] at 16384
  fence registers
  wgmma bf16 acc add a_s[tx//128*4096] swizzle 128 strides (0, 1024), b_s[16] trans swizzle 64 strides (4096, 512)
  wgmma bf16 acc add a_f[4], b_s[16] trans swizzle 64 strides (4096, 512)
  wgmma commit
  wgmma wait 0 acc
}
";
    let kernel = kernel(text);
    let printed = emitted(&[&kernel], "sm_90a").unwrap().text;
    for line in [
        "  __shared__ __align__(1024) f16 a_s[8192];",
        "  __shared__ __align__(512) f16 b_s[4096];",
        "  fence_registers();",
        "  wgmma_bf16_32_nt(acc, wgmma_panel_128(&a_s[(tx >> 7) * 4096], 0, 1024), wgmma_panel_64(&b_s[16], 4096, 512));",
        "  wgmma_bf16_32_rt(acc, &a_f[4], wgmma_panel_64(&b_s[16], 4096, 512));",
        "%15}, {%16, %17, %18, %19}, %20, add, 1, 1, 1; }\" : \"+f\"(c[0]),",
        ": \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b), \"r\"(1) : \"memory\"",
        "  wgmma_commit();",
        "  wgmma_wait_0_16_f32(acc);",
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, \
         %15}, %16, %17, add, 1, 1, 0, 1; }\" : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[8]), \"+f\"(c[9]), \"+f\"(c[2]),",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    let refusal = emitted(&[&kernel], "sm_100a").unwrap_err();
    assert_eq!(refusal.message, "a block has products of warpgroups; sm_100a has none");
}

#[test]
fn every_statement_has_its_line() {
    let (a, b) = (kernel(BLOCK_SUM), kernel("kernel b(x: ptr<i32>) scratch 0 {\n  store x[0] = 1:i32\n}\n"));
    let unit = emitted(&[&a, &b], "sm_80").unwrap();
    let lines: Vec<&str> = unit.text.lines().collect();
    let (printed, starts) = print_numbered(&a);
    assert_eq!(unit.lines.len(), starts.len() + 1);
    for line in &unit.lines[..starts.len()] {
        let (cuda, ir) =
            (lines[line.line as usize - 1], printed.lines().nth(starts[line.statement] as usize - 1).unwrap());
        // Loops begin with their pragma, and what has a name has it in both.
        let name = ir.trim().trim_start_matches("var ").split([':', ' ']).next().unwrap();
        let same = match name {
            "for" => cuda.contains("#pragma unroll"),
            "if" => cuda.contains("if ("),
            "store" => cuda.contains("part["),
            "barrier" => cuda.contains("__syncthreads"),
            name => cuda.contains(&format!("{name} = ")),
        };
        assert!(same, "{ir} --> {cuda}");
    }
    let last = *unit.lines.last().unwrap();
    assert_eq!((lines[last.line as usize - 1].trim(), last.kernel, last.statement), ("x[0] = 1;", 1, 0));
    // A line without a statement belongs to the line before.
    assert_eq!(unit.statement(last.line + 1), Some(last));
    assert_eq!(unit.statement(1), None);
}

#[test]
fn shared_memory_beyond_what_is_static_is_the_launch_s() {
    let text = "kernel k(x: ptr<f32>) threads 32 scratch 0 shared 65536 {\n  shared a: f32[64] at 0\n  shared b: f64[8] at 512\n  \
                store a[tx] = 1.0:f32\n  store b[0] = 2.0:f64 where tx == 0\n}\n";
    let unit = emitted(&[&kernel(text)], "sm_90a").unwrap();
    assert_eq!((unit.entries[0].dynamic_shared, unit.entries[0].threads), (65536, 32));
    let lines = [
        "  extern __shared__ __align__(128) unsigned char shared_u8[];",
        "  float *const a = (float *)(shared_u8 + 0); // float[64]",
        "  double *const b = (double *)(shared_u8 + 512); // double[8]",
    ];
    assert!(unit.text.contains(&lines.join("\n")), "{}", unit.text);
}

/// In 32 bits as long as nothing overflows there, in 64 from where it might.
#[test]
fn indices_are_as_wide_as_they_need() {
    let text = cuda(
        "kernel k(x: ptr<f32>, n: i32, m: i64) threads 256 scratch 0 {\n  for i in 0..16 step 1 {\n    \
         for j in tx..n step 256 {\n      for l in 0..n step 1 {\n        \
         a: i64 = index (by*64 + i*4 + tx%4)*16 + tx//64\n        b: i64 = index by*64*65536 + 5\n        \
         c: i64 = index n + 1 - l\n        d: i64 = index (j + l)*3 + m\n        e: i64 = index n*n//4 + (n - 1)%n\n        \
         f: i32 = index i*100000000\n        store x[i*100000000*tx] = 1.0:f32\n      }\n    }\n  }\n}\n",
    );
    for line in [
        "for (int i = 0; i < 16; i++) {",
        // A step behind `n` there may be no `int`.
        "for (i64 j = tx; j < n; j += 256) {",
        "for (int l = 0; l < n; l++) {",
        "i64 a = (by * 64 + i * 4 + (tx & 3)) * 16 + (tx >> 6);",
        "i64 b = (i64)(by * 64) * 65536 + 5;",
        "i64 c = (i64)n + 1 - l;",
        "i64 d = (j + l) * 3 + m;",
        "i64 e = ((i64)n * n >> 2) + floormod_i64((i64)n - 1, n);",
        "int f = (int)(i * 100000000);",
        "x[(i64)(i * 100000000) * tx] = 1.0f;",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn integers_wrap_and_shift_as_the_evaluator_s() {
    let text = cuda(
        "kernel k(x: ptr<i32>) scratch 0 {\n  a: i32 = load x[0]\n  b: i32 = addi a, a\n  c: i32 = shr b, 3:i32\n  \
         d: i32 = mini.u c, a\n  store x[0] = d\n}\n",
    );
    for line in [
        "  return (int)((u32)a + (u32)b);",
        "  int b = add_i32(a, a);",
        "  return a >> ((u32)b < 32 ? b : 31);",
        "  return (u32)a < (u32)b ? a : b;",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn what_a_kernel_says_is_a_format_of_its_own() {
    let text = cuda(
        "\
kernel k(x: ptr<f32>) threads 32 scratch 8 shared 16 {
  slot bits: i1[2] at 0
  shared t: f16[4] at 0
  i: i32 = index bx
  l: i64 = index bx
  b: i8 = trunc.i8 i
  n: i4 = trunc.i4 i
  h: f16 = load t[1]
  f: f32 = load x[0]
  in_: i1 = test bx < 3
  print \"100%% of %5d, %-8.3f|%x %c\\n\", i, f, l, b site 0
  print \"%u %d %o %i %f %d\", b, n, n, in_, i, f site 0
  print \"%, %, %: % in all\", x, h, t[2, 2], bits[2] site 0
  print \"%p %p\", i, b site 0
  print \"\\\"); evil(\\\\\\\"?\\u{e9}\\u{0}\" site 0
  assert in_, \"100% \\\" wrong\" site 1
}
",
    );
    let lines = [
        r#"  printf("100%% of %5d, %-8.3f|%llx %c\n", i, (double)f, l, (int)((u8)b));"#,
        r#"  printf("%u %d %o %i %f %lld", (u8)b, ((n & 15) ^ 8) - 8, n & 15, in_, (double)i, (long long)((double)f));"#,
        r#"  printf("0x%llx, %g, [[%g, %g], [%g, %g]]: [%d, %d] in all", (unsigned long long)x, f64_from_f16(h), f64_from_f16(t[0]), f64_from_f16(t[1]), f64_from_f16(t[2]), f64_from_f16(t[3]), bits[0] != 0, bits[1] != 0);"#,
        r#"  printf("0x%llx 0x%llx", (unsigned long long)((u32)i), (unsigned long long)((u8)b));"#,
        r#"  printf("\042); evil(\134\042\077\303\251\000");"#,
        r#"  if (!in_) { printf("block %u,%u,%u: 100%% \042 wrong\n", blockIdx.x, blockIdx.y, blockIdx.z); __trap(); }"#,
    ];
    for line in lines {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let many =
        "kernel k(x: ptr<f32>) threads 32 scratch 256 {\n  slot t: i32[64] at 0\n  print \"%d\", t[8, 8] site 0\n}\n";
    assert!(
        refusal(many).ends_with(": a print of more than 32 values, which is what CUDA's takes"),
        "{}",
        refusal(many)
    );
}

#[test]
fn globals_are_arrays_that_kernels_share() {
    let first = "\
kernel first(o: ptr<i32>) scratch 0 {
  global @lock: i32[1] align 4 = [-1]
  global @halves: f16[2] align 2 constant = [1.0, 0x7e00]
  global @nibbles: i4[3] align 1 = [1, -1, 3]
  global @ends: f32[2] align 16 = [1.5, inf]
  global @for_: f64[1] align 8 = [0.5]
  lock: ptr<i32> = global @lock
  other: ptr<f64> = global @for_
  old: i32 = rmw add lock[0], 1:i32 relaxed
  store o[0] = old
}
";
    // Another module's lock of the same name begins with something else.
    let second = first.replace("first", "second").replace("[-1]", "[2]");
    let text = emitted(&[&kernel(first), &kernel(first), &kernel(&second)], "sm_90a").unwrap().text;
    for line in [
        "__device__ __align__(4) int global_lock_i32[1] = {-1};\n",
        "__device__ __align__(4) int global_lock_2_i32[1] = {2};\n",
        "__device__ const __align__(2) u16 global_halves_f16[2] = {0x3c00, 0x7e00};\n",
        "__device__ __align__(1) u8 global_nibbles_i4[2] = {0xf1, 0x3};\n",
        "__device__ __align__(16) u32 global_ends_f32[2] = {0x3fc00000, 0x7f800000};\n",
        "__device__ __align__(8) double global_for_f64[1] = {0.5};\n",
        "  int *lock = (int *)global_lock_i32;\n",
        "  int *lock = (int *)global_lock_2_i32;\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert_eq!(text.matches("__device__ __align__(4)").count(), 2, "{text}");
}

/// Names of a user's are identifiers that nothing of CUDA's is called, whatever they were.
#[test]
fn names_are_harmless() {
    let mut k = kernel("kernel k(x: ptr<f32>) scratch 0 {\n  store x[0] = 1.0:f32\n}\n");
    for (label, name) in [
        ("exp", "exp_kernel"),
        ("softmax_kernel", "softmax_kernel"),
        ("", "_kernel"),
        ("a*/ b\n#error", "a___u_2a__/ b"),
        ("kernel", "kernel_kernel"),
    ] {
        k.name = Label::new(label);
        let unit = emitted(&[&k, &k], "sm_80").unwrap();
        let (first, second) = (unit.entries[0].name.as_str(), unit.entries[1].name.as_str());
        assert!(first.bytes().chain(second.bytes()).all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{first}");
        assert!(first != second && unit.text.lines().all(|l| !l.starts_with("#error")), "{}", unit.text);
        if !name.contains('/') && !name.starts_with('_') {
            assert_eq!(first, name);
        }
    }
}

#[test]
fn elements_of_4_bits_change_their_own_bits_alone() {
    let text = cuda("kernel k(h: ptr<i4>) scratch 0 {\n  store h[bx] = 1:i4\n}\n");
    assert!(text.contains("  store_half(h, bx, "), "{text}");
    assert!(text.contains("atomicAnd(word, ~(15u << s));\n  atomicOr(word, (x & 15u) << s);\n"), "{text}");
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    let one = |body: &str| refusal(&format!("kernel k(x: ptr<f32>, h: ptr<i4>) scratch 0 {{\n  {body}\n}}\n"));
    for (body, message) in [
        ("poll", "poll: a worker's call of the pool of threads that runs blocks on a CPU"),
        (
            "check read x[0] count 1 site 0",
            "check read x[0] count 1 site 0: a check of an access, which the simulator makes of every one",
        ),
        (
            "print \"%s\" site 0",
            "print \"%s\" site 0: a print that cannot be written: `%s` is refused in a kernel's format",
        ),
        (
            "a: f32x8 = load x[0]",
            "a: f32x8 = load x[0]: a thread of a GPU moves 2, 4, 8 or 16 elements and at most 16 bytes at once, not f32x8",
        ),
        (
            "r: i64x4 = ramp 0 step 1",
            "r: i64x4 = ramp 0 step 1: arithmetic on vectors, which a thread of a GPU only moves",
        ),
    ] {
        assert_eq!(one(body), message);
    }
    let k = kernel("kernel k(x: ptr<f32>) threads 64 scratch 0 shared 150000 {\n  barrier\n}\n");
    let needs = "a block uses 150000 bytes of shared memory; sm_120 gives a block at most 101376";
    assert_eq!(emitted(&[&k], "sm_120").unwrap_err().message, needs);
    assert!(emitted(&[&k], "sm_80").is_ok());
    let cpu = emit(&[&k], &Target::cpu()).unwrap_err();
    assert_eq!(cpu.message, "CUDA needs a GPU as its target, such as sm_90a; found `cpu`");
}
