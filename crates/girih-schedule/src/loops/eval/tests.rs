//! Small kernels with results worked out here.

use super::run;
use crate::base::host::{Host, Silent};
use crate::base::launch::{Launch, Trap};
use crate::base::memory::VecMemory;
use crate::base::{Budget, Code};
use crate::loops::parse::parse;

fn bytes<T: Copy, const N: usize>(items: &[T], f: fn(T) -> [u8; N]) -> Vec<u8> {
    items.iter().flat_map(|x| f(*x)).collect()
}

fn f32s(items: &[f32]) -> Vec<u8> {
    bytes(items, f32::to_le_bytes)
}

fn i32s(items: &[i32]) -> Vec<u8> {
    bytes(items, i32::to_le_bytes)
}

/// Runs a kernel whose first parameters are the buffers and whose last are the scalars; gives the buffers back.
fn try_on(text: &str, grid: [u32; 3], seed: u64, buffers: &[Vec<u8>], scalars: &[u64]) -> Result<Vec<Vec<u8>>, Trap> {
    let (kernel, _) = parse(text).unwrap_or_else(|e| panic!("{} {:?}", e.message, e.span));
    let mut memory = VecMemory::new();
    let addresses: Vec<u64> = buffers.iter().map(|b| memory.add("buffer", b.clone())).collect();
    let args = addresses.iter().chain(scalars).copied().collect();
    run(&kernel, &Launch { seed, ..Launch::new(grid, args) }, &mut memory, &mut Silent)?;
    Ok(addresses.iter().map(|a| memory.bytes(*a).unwrap().to_vec()).collect())
}

fn on(text: &str, grid: [u32; 3], buffers: &[Vec<u8>], scalars: &[u64]) -> Vec<Vec<u8>> {
    try_on(text, grid, 0, buffers, scalars).unwrap_or_else(|t| panic!("{t:?}"))
}

fn trap_of(text: &str, buffers: &[Vec<u8>], scalars: &[u64]) -> Trap {
    try_on(text, [1; 3], 0, buffers, scalars).unwrap_err()
}

#[test]
fn a_masked_tile_loop_writes_its_range_only() {
    let text = r#"loop kernel k(x: ptr f32, y: ptr f32, n: i32):
  for i in 0..4: free
    a: f32 = load x[bx*4 + i] where bx*4 + i < n else 9.0
    b: f32 = a + 0.5
    store y[bx*4 + i] = b where bx*4 + i < n
"#;
    let x: Vec<f32> = (0..6).map(|i| i as f32).collect();
    let out = on(text, [2, 1, 1], &[f32s(&x), f32s(&[-1.0; 8])], &[6]);
    assert_eq!(out[1], f32s(&[0.5, 1.5, 2.5, 3.5, 4.5, 5.5, -1.0, -1.0]));
}

#[test]
fn a_matrix_product_in_registers_with_a_stage() {
    let text = r#"tile kernel mm(a: ptr f32, b: ptr f32, c: ptr f32):
  local acc: f32[4, 8]
  stage p: f32[2, 3, 4]:
    for kk in 0..3: free
      for jj in 0..8: free
        v: f32 = load b[kk*8 + jj]
        p[jj//4, kk, jj%4] = v
  for i1 in 0..4 step 2: serial
    for j1 in 0..8 step 4: serial
      local acc_r: f32[2, 4] register(4)
      for i2 in 0..2: free unroll
        for j2 in 0..4: free vector(4)
          acc_r[i2, j2] = 0.0
      for k in 0..3: reduce
        for i3 in 0..2: free unroll
          x: f32 = load a[(i1 + i3)*3 + k]
          for j3 in 0..4: free vector(4)
            y: f32 = p[(j1 + j3)//4, k, (j1 + j3)%4]
            z: f32 = acc_r[i3, j3]
            f: f32 = fma(x, y, z)
            acc_r[i3, j3] = f
      for i4 in 0..2: free unroll
        for j4 in 0..4: free vector(4)
          w: f32 = acc_r[i4, j4]
          acc[i1 + i4, j1 + j4] = w
  for i in 0..4: free
    for j in 0..8: free vector(4)
      r: f32 = acc[i, j]
      store c[i*8 + j] = r
"#;
    let a: Vec<f32> = (0..12).map(|i| i as f32 - 5.0).collect();
    let b: Vec<f32> = (0..24).map(|i| (i * i % 7) as f32).collect();
    let mut want = Vec::new();
    for i in 0..4 {
        for j in 0..8 {
            want.push((0..3).map(|k| a[i * 3 + k] * b[k * 8 + j]).sum::<f32>());
        }
    }
    let out = on(text, [1; 3], &[f32s(&a), f32s(&b), f32s(&[0.0; 32])], &[]);
    assert_eq!(out[2], f32s(&want));
}

fn sum_kernel(place: &str) -> String {
    format!(
        r#"tile kernel sum(x: ptr f32, y: ptr f32, lo: i32, hi: i32):
  local s: f32
  s = 100.0
  for i in lo..hi: reduce {place}
    v: f32 = load x[i]
    old: f32 = s
    new: f32 = old + v
    s = new
  r: f32 = s
  store y[0] = r
"#
    )
}

#[test]
fn a_vector_reduction_computes_the_fixed_tree() {
    // Values whose sum depends on the order.
    let x: Vec<f32> = (0..64).map(|i| 1.0 / (1 + i) as f32 + if i % 5 == 0 { 1e6 } else { 0.0 }).collect();
    for (lo, hi) in [(0, 64), (3, 60), (0, 5), (7, 7), (0, 8), (1, 10), (9, 2)] {
        let (lanes, ways) = (4usize, 2usize);
        let parts = lanes * ways;
        let items: &[f32] = if lo < hi { &x[lo..hi] } else { &[] };
        let whole = items.len() / parts * parts;
        let mut p = vec![0f32; parts];
        for (i, v) in items[..whole].iter().enumerate() {
            p[i % parts] += v;
        }
        for (i, v) in items[whole..].iter().enumerate() {
            p[i % lanes] += v;
        }
        let tree = ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
        let want = 100.0 + tree;
        let text = sum_kernel("vector(4) combine add(s) from 0.0 x 2");
        let out = on(&text, [1; 3], &[f32s(&x), f32s(&[0.0])], &[lo as u64, hi as u64]);
        assert_eq!(out[1], f32s(&[want]), "{lo}..{hi}");
        // Unplaced: in order.
        let text = sum_kernel("combine add(s) from 0.0 x 2");
        let out = on(&text, [1; 3], &[f32s(&x), f32s(&[0.0])], &[lo as u64, hi as u64]);
        assert_eq!(out[1], f32s(&[items.iter().fold(100.0, |s, v| s + v)]), "{lo}..{hi}");
    }
}

#[test]
fn loops_break_continue_and_return() {
    let text = r#"loop kernel k(y: ptr i32, n: i32):
  local s: i32
  s = 0
  for i in 0..n step 3: serial
    even: i1 = test i%2 == 0
    if even:
      continue
    stop: i1 = test i > 15
    if stop:
      break
    ii: i32 = index i
    a: i32 = s
    b: i32 = a + ii
    s = b
  loop:
    c: i32 = s
    d: i32 = c * 2
    s = d
    big: i1 = d > 100
    if big:
      break
  e: i32 = s
  store y[0] = e
  neg: i1 = n < 0
  if neg:
    return
  else:
    store y[1] = n
"#;
    // 3 + 9 + 15 = 27, doubled until above 100: 108.
    let out = on(text, [1; 3], &[i32s(&[0, 0])], &[100]);
    assert_eq!(out[0], i32s(&[108, 100]));
}

#[test]
fn small_elements_in_memory() {
    let text = r#"loop kernel k(n: ptr i4, b: ptr i1, t: ptr tf32, h: ptr i16):
  for i in 0..4: free
    v: i4 = load n[i]
    w: i16 = i16(v)
    store h[i] = w
    u: i4 = v + 1
    store n[i + 4] = u
  p: i1 = load b[1]
  store b[0] = p
  z: i1 = load b[2]
  store b[1] = z
  f: tf32 = load t[1]
  store t[0] = f
"#;
    let nibbles = vec![0x71, 0x8f, 0xaa, 0xbb];
    let out = on(text, [1; 3], &[nibbles, vec![9, 7, 0], f32s(&[0.0, 2.0]), vec![0; 8]], &[]);
    assert_eq!(out[3], bytes(&[1i16, 7, -1, -8], i16::to_le_bytes));
    assert_eq!(out[0], [0x71, 0x8f, 0x82, 0x90]);
    assert_eq!(out[1], [1, 0, 0]);
    assert_eq!(out[2], f32s(&[2.0, 2.0]));
}

#[test]
fn pointers_globals_and_allocas() {
    let text = r#"loop kernel k(y: ptr i32, n: i8):
  global @table: i32[3] align 16 = [7, -8, 9]
  g: ptr i32 = global @table
  m: ptr i32 = alloca 8 align 8
  q: ptr i32 = g + n
  v: i32 = load q[2]
  store m[1] = v
  w: i32 = load m[1]
  a: i64 = ptrtoint(g)
  b: i64 = ptrtoint(q)
  d: i64 = a - b
  e: i32 = i32(d)
  store y[0] = w
  store y[1] = e
"#;
    let out = on(text, [1; 3], &[i32s(&[0, 0])], &[0xff]);
    assert_eq!(out[0], i32s(&[-8, 4]));
}

#[test]
fn a_spin_lock_guards_a_plain_counter() {
    let text = r#"loop kernel k(lock: ptr i32, count: ptr i32):
  for turn in 0..3: serial
    loop:
      old: i32 = cas lock[0], 0, 1 acquire
      free: i1 = old == 0
      if free:
        break
    local seen: i32
    v: i32 = load count[0]
    seen = v
    for wait in 0..20000: serial
      pass
    w: i32 = seen
    next: i32 = w + 1
    store count[0] = next
    done: i32 = atomic xchg lock[0], 0 release
"#;
    for seed in [0, 1, 7] {
        let out = try_on(text, [5, 2, 1], seed, &[i32s(&[0]), i32s(&[0])], &[]).unwrap();
        assert_eq!(out[1], i32s(&[30]));
    }
}

#[test]
fn a_grid_barrier_lets_low_blocks_wait_for_high_ones() {
    let text = r#"loop kernel k(arrived: ptr i32, y: ptr i32):
  mine: i32 = index bx + 1
  store y[bx] = mine
  n: i32 = atomic add arrived[0], 1 acq_rel
  loop:
    seen: i32 = load arrived[0] acquire
    all: i1 = test seen == gx
    if all:
      break
  other: i32 = load y[gx - 1 - bx]
  store y[gx + bx] = other
"#;
    let out = on(text, [6, 1, 1], &[i32s(&[0]), i32s(&[0; 12])], &[]);
    assert_eq!(out[1], i32s(&[1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1]));
}

#[test]
fn atomics_give_the_old_value() {
    let text = r#"loop kernel k(m: ptr i32, y: ptr i32, f: ptr f32):
  a: i32 = atomic add m[0], 5 relaxed
  b: i32 = atomic umax m[0], -1 relaxed
  c: i32 = atomic max m[0], 3 relaxed
  d: i32 = atomic xor m[0], 1 where bx == 1 relaxed
  e: i32 = cas m[0], 3, 10 relaxed
  g: i32 = cas m[0], 3, 11 relaxed
  h: f32 = atomic addf f[0], 0.5 relaxed
  store y[0] = a
  store y[1] = b
  store y[2] = c
  store y[3] = d
  store y[4] = e
  store y[5] = g
"#;
    let out = on(text, [1; 3], &[i32s(&[2]), i32s(&[9; 6]), f32s(&[1.0])], &[]);
    assert_eq!(out[1], i32s(&[2, 7, -1, 0, 3, 10]));
    assert_eq!((&out[0], &out[2]), (&i32s(&[10]), &f32s(&[1.5])));
}

struct Listener(Vec<([u32; 3], String)>, u32);

impl Host for Listener {
    fn print(&mut self, block: [u32; 3], text: &str) {
        self.0.push((block, text.to_string()));
    }
    fn interrupted(&self) -> bool {
        self.1 == 0
    }
}

#[test]
fn printing_is_one_piece_per_block() {
    let text = r#"loop kernel k():
  x: i32 = index bx*10 + by
  print "x = %d\n", x
  print "done\n"
"#;
    let (kernel, _) = parse(text).unwrap();
    let mut host = Listener(vec![], 1);
    run(&kernel, &Launch::new([2, 2, 1], vec![]), &mut VecMemory::new(), &mut host).unwrap();
    let want = [([0, 0, 0], 0), ([1, 0, 0], 10), ([0, 1, 0], 1), ([1, 1, 0], 11)];
    assert_eq!(host.0, want.map(|(b, x)| (b, format!("x = {x}\ndone\n"))));
    let mut host = Listener(vec![], 1);
    let launch = Launch { only_block: Some([1, 1, 0]), ..Launch::new([2, 2, 1], vec![]) };
    run(&kernel, &launch, &mut VecMemory::new(), &mut host).unwrap();
    assert_eq!(host.0.len(), 1);
}

#[test]
fn a_sample_is_spread_over_the_grid() {
    let text = "loop kernel k(y: ptr i32):\n  x: i32 = index bx\n  print \"%d\", x\n";
    let ran = |text: &str, sample| {
        let (kernel, _) = parse(text).unwrap();
        let (mut host, mut memory) = (Listener(vec![], 1), VecMemory::new());
        let y = crate::base::memory::Memory::allocate(&mut memory, 8, 8);
        let launch = Launch { sample: Some(sample), ..Launch::new([5, 3, 1], vec![y]) };
        run(&kernel, &launch, &mut memory, &mut host).unwrap();
        host.0.iter().map(|(block, _)| block[0] + 5 * block[1]).collect::<Vec<_>>()
    };
    assert_eq!(ran(text, 4), [0, 5, 7, 14]);
    assert_eq!(ran(text, 1), [0]);
    assert_eq!(ran(text, 14), (0..13).chain([14]).collect::<Vec<_>>());
    assert_eq!(ran(text, 15), (0..15).collect::<Vec<_>>());
    // Blocks that may wait for each other all run.
    let waits = text.replace("  print", "  o: i32 = load y[0] acquire\n  print");
    assert_eq!(ran(&waits, 4).len(), 15);
}

#[test]
fn an_endless_loop_can_be_interrupted() {
    let (kernel, _) = parse("loop kernel k():\n  loop:\n    pass\n").unwrap();
    let mut host = Listener(vec![], 0);
    let trap = run(&kernel, &Launch::new([1; 3], vec![]), &mut VecMemory::new(), &mut host).unwrap_err();
    assert_eq!(trap.code, Code::Interrupted);
}

#[test]
fn traps_name_the_operation() {
    let t = trap_of("loop kernel k(n: i32):\n  c: i1 = n < 3\n  assert c, \"n is small\" !assert\n", &[], &[4]);
    assert_eq!((t.code, t.message.as_str(), t.op.as_str()), (Code::AssertFailed, "n is small", "assert"));
    let t = trap_of("loop kernel k(n: i32):\n  for i in 0..4 step n: serial\n    pass\n", &[], &[0]);
    assert_eq!(t.code, Code::StepNotPositive);
    let text = "loop kernel k(p: ptr f32, n: i32):\n  x: f32 = load p[n] !load_view_tko\n";
    let t = trap_of(text, &[f32s(&[1.0])], &[1]);
    assert_eq!((t.code, t.op.as_str()), (Code::OutOfBounds, "load_view_tko"));
    assert!(t.message.contains("`buffer`"), "{}", t.message);
    assert_eq!(trap_of("loop kernel k(n: i32):\n  pass\n", &[], &[]).code, Code::BadArgument);
}

#[test]
fn broken_kernels_trap_instead_of_panicking() {
    for body in [
        "local b: i32[4]\n  x: i32 = b[n]",
        "local b: i32[4]\n  b[0, 1] = n",
        "break",
        "if false:\n    local b: i32\n  x: i32 = b",
        "local s: i32\n  for i in 0..4: reduce vector(3) combine add(s) from 0\n    pass",
    ] {
        let t = trap_of(&format!("loop kernel k(n: i32):\n  {body}\n"), &[], &[4]);
        assert_eq!(t.code, Code::InvalidIr, "{body}: {}", t.message);
    }
    let zero = on(
        "loop kernel k(y: ptr i32):\n  local b: i32[4]\n  x: i32 = b[2]\n  store y[0] = x\n",
        [1; 3],
        &[i32s(&[5])],
        &[],
    );
    assert_eq!(zero[0], i32s(&[0]));
    on("loop kernel k(n: i32):\n  x: i32 = index n//n + n%n\n", [1; 3], &[], &[0]);
}

#[test]
fn buffers_fit_the_budget_or_are_refused() {
    let run_in = |limit: u64, elements: u64, grid: u32| {
        let text =
            format!("loop kernel k(x: ptr f32):\n  local b: f32[{elements}]\n  v: f32 = b[bx]\n  store x[bx] = v\n");
        let (kernel, _) = parse(&text).unwrap_or_else(|e| panic!("{} {:?}", e.message, e.span));
        let mut memory = VecMemory::new();
        let x = memory.add("x", vec![0xff; 4 * grid as usize]);
        let launch = Launch { budget: Budget::of_memory(limit), ..Launch::new([grid, 1, 1], vec![x]) };
        run(&kernel, &launch, &mut memory, &mut Silent)?;
        Ok::<_, Trap>(memory.bytes(x).unwrap().to_vec())
    };
    for elements in [1000, 100_000, 1 << 40] {
        let trap = run_in(4000, elements, 2).unwrap_err();
        assert_eq!(trap.code, Code::OutOfMemory, "{}", trap.message);
    }
    for (mib, grid) in [(1, 1), (2, 100)] {
        // Blocks one after the other share their memory.
        assert_eq!(run_in(mib << 20, 100_000, grid).unwrap(), vec![0; 4 * grid as usize]);
    }
}
