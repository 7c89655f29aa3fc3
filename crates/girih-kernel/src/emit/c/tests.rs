//! The C of one kernel, small enough to read.

use super::{Limits, emit, emit_cut};
use crate::kernel::legalise::{Options, legalise};
use crate::loops::parse;
use crate::tile::target::Target;

fn c_of(text: &str, check: bool) -> String {
    let (kernel, _) = parse::parse(text).unwrap();
    let lowered = legalise(&kernel, &Options { check, ..Options::default() }).unwrap();
    emit(&[&lowered], &Target::cpu()).unwrap().text
}

const ROW_SUM: &str = "\
tile kernel row_sum(X: ptr f32, Y: ptr f32, n: i32):
  local sum: f32
  sum = 0.0
  for j in 0..n: reduce vector(16) combine add(sum) from -0.0 x 1
    x: f32 = load X[bx*n + j]
    s: f32 = sum
    t: f32 = s + x
    sum = t
  total: f32 = sum
  store Y[bx] = total
";

#[test]
fn a_vector_reduction_reads_as_c() {
    let c = c_of(ROW_SUM, false);
    let kernel = &c[c.find("// kernel").unwrap()..];
    assert_eq!(
        kernel,
        "\
// kernel row_sum
int32_t girih_0(const girih_args *args, girih_ctx *ctx, int64_t lo, int64_t hi) {
  f32_m *const X = (f32_m *)(uintptr_t)args->slot[0];
  f32_m *const Y = (f32_m *)(uintptr_t)args->slot[1];
  const i32 n = (i32)args->slot[2];
  const i64 gx = ctx->grid[0];
  for (i64 block = lo; block < hi; block++) {
    if (*ctx->abort && ctx->stop(ctx)) return 1;
    const i64 bx = block % gx;
    f32 sum = 0.0f;
    i64 split = max(((i64)n >> 4) * 16, 0);
    f32x16 sum_part = splat_f32_x16(-0.0f);
    for (i64 j = 0; j < split; j += 16) {
      f32x16 x = *(f32x16_m *)&X[bx * (i64)n + j];
      f32x16 t = sum_part + x;
      sum_part = t;
    }
    if ((i64)n - split > 0) {
      f32x16 before = sum_part;
      f32x16 x_2 = load_some_f32x16(&X[bx * (i64)n + split], 0, (i64)n - split, splat_f32_x16(0.0f));
      f32x16 t_2 = sum_part + x_2;
      sum_part = t_2;
      i32x16 lane_ = splat_i32_x16(0 - ((i64)n - split)) + (i32x16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
      i1x16 on = lane_ < splat_i32_x16(0);
      f32x16 kept = select_f32_x16(on, sum_part, before);
      sum_part = kept;
    }
    f32 sum_all = reduce_addf_f32x16(sum_part);
    f32 sum_sum = sum + sum_all;
    sum = sum_sum;
    Y[bx] = sum;
  }
  return 0;
}
const girih_meta girih_0_meta = {2, 3, 0};
"
    );
}

#[test]
fn a_checked_vector_is_checked_once() {
    let c = c_of(ROW_SUM, true);
    let line = "if (outside(ctx, 0, (uint64_t)(uintptr_t)&X[bx * (i64)n + j], 64)) \
                { ctx->trap(ctx, 0, 2, block, -1, (int64_t)((uint64_t)(uintptr_t)&X[bx * (i64)n + j])); return 1; }";
    assert!(c.contains(line), "{c}");
}

#[test]
fn a_loop_that_may_wait_yields_after_it_tried() {
    let c = c_of(
        "\
loop kernel k(lock: ptr i32, bins: ptr i32):
  loop:
    old: i32 = cas lock[0], 0, 1 acquire
    taken: i1 = old == 0
    if taken:
      break
  for i in 0..1024: serial
    count: i32 = atomic add bins[i], 1
  free: i32 = atomic xchg lock[0], 0 release
",
        false,
    );
    // Taking the lock may need another block; counting does not.
    let kernel = &c[c.find("// kernel").unwrap()..];
    assert_eq!(kernel.matches("ctx->yield(").count(), 1, "{kernel}");
    let place = |what: &str| kernel.find(what).unwrap();
    assert!(place("atomic_cas_i32(") < place("ctx->yield(") && place("ctx->yield(") < place("i < 1024"), "{kernel}");
}

#[test]
fn a_kernel_of_several_threads_is_no_c() {
    let text = "kernel k(o: ptr<i32>) threads 64 scratch 0 {\n  store o[tx] = 1:i32\n  barrier\n}\n";
    let kernel = crate::kernel::parse::parse(text).unwrap();
    assert!(emit(&[&kernel], &Target::cpu()).unwrap_err().message.contains("a block has 64 threads, and C has one"));
}

/// Runs of statements are functions; the kernel keeps the loop around them, and a part that leaves it says so.
#[test]
fn a_kernel_above_the_limit_is_printed_in_parts() {
    let text = "\
kernel k(x: ptr<f32>, o: ptr<f32>, n: i32) scratch 0 {
  a: f32 = load x[bx]
  var s: f32 = a
  for i in 0..n step 1 {
    v: f32 = load x[i]
    t: f32 = addf v, s
    s = t
    big: i1 = cmpf.gt t, 9.0:f32
    if big {
      break
    }
  }
  store o[bx] = s
}
";
    let kernel = crate::kernel::parse::parse(text).unwrap();
    let limits = Limits { large: 3, most: 3, fewest: 1 };
    let c = emit_cut(&[&kernel], &Target::cpu(), limits).unwrap().text;
    let part = |n: usize| {
        let from =
            &c[c.find(&format!("APART int32_t girih_0_part_{n}(")).unwrap_or_else(|| panic!("no part {n}: {c}"))..];
        from[..from.find("\n}").unwrap()].to_string()
    };
    // The first part gives `s`, the second adds to it, the third leaves the loop.
    assert!(
        part(1).contains("live->s = s;") && part(2).contains("f32 s = live->s;") && part(2).contains("live->s = s;")
    );
    assert!(part(3).contains("return 3;"), "{c}");
    let whole = &c[c.find("// kernel k").unwrap()..];
    assert!(whole.contains("leave = girih_0_part_3(&live);") && whole.contains("if (leave == 3) break;"), "{whole}");
    // GCC must not look into a part from its caller.
    assert!(c.contains("#define APART static __attribute__((noipa))"), "{c}");
    assert!(!emit(&[&kernel], &Target::cpu()).unwrap().text.contains("girih_0_part_"));
}

/// Places are compared as whole numbers: those that wrap around are not neighbours.
#[test]
fn computed_places_are_gathered_by_one_call() {
    let kernel = |index: &str| {
        format!(
            "tile kernel k(X: ptr f32, at: ptr i32, Y: ptr f32, n: i32):\n  for j in 0..64: free vector(16)\n    \
             i: i32 = load at[j]\n    x: f32 = load X[{index}]\n    store Y[j] = x\n"
        )
    };
    let c = c_of(&kernel("i + n*4"), false);
    assert!(c.contains("x = gather_f32_i32_x16(X, (i64)n * 4, i);"), "{c}");
    assert!(c.contains("if (at[0] <= at[15] && all_i1_x16("), "{c}");
    // Another multiple than one, and a checked access, are loads one after the other.
    assert!(!c_of(&kernel("i*2"), false).contains("gather_"));
    assert!(!c_of(&kernel("i + n*4"), true).contains("gather_"));
}
