//! The programs that several of the tests take.

pub const ADD: &str = "loop kernel k(x: ptr f32, y: ptr f32) open:\n  for i in 0..3: free\n    for j in 0..20: free\n      \
                   a: f32 = load x[i*20 + j]\n      b: f32 = a + a\n      store y[i*20 + j] = b\n";

pub const SUMS: &str = "loop kernel k(x: ptr f32, y: ptr f32) open:\n  for i in 0..3: free\n    local s: f32\n    s = 0.0\n    \
                    for k in 0..70: reduce combine add(s) from 0.0\n      v: f32 = load x[i*70 + k]\n      a: f32 = s\n      \
                    b: f32 = a + v\n      s = b\n    t: f32 = s\n    store y[i] = t\n";

pub const ROWS: &str = "loop kernel k(x: ptr f32, y: ptr f32) open:\n  for i in 0..4: free\n    t: f32 = load x[i]\n    \
                    for j in 0..50: free\n      store y[i*50 + j] = t\n";

pub const TURNED: &str = "loop kernel k(x: ptr f32, y: ptr f32) open:\n  for i in 0..8: free\n    for j in 0..8: free\n      \
                      a: f32 = load x[j*8 + i]\n      store y[i*8 + j] = a\n";

pub const OWN: &str = "loop kernel k(x: ptr f32, y: ptr f32):\n  local v: f32[3, 20]\n  for i in 0..3: free\n    \
                   for j in 0..20: free\n      a: f32 = load x[i*20 + j]\n      v[i, j] = a\n    \
                   for k in 0..20: free\n      b: f32 = v[i, 19 - k]\n      store y[i*20 + k] = b\n";

pub const EDGE: &str = "loop kernel k(x: ptr f32, y: ptr f32, n: i32):\n  for j in 0..64: free\n    \
                    a: f32 = load x[j] where j < n else 1.0\n    store y[j] = a\n";

pub const BLOCKS: &str = "tile kernel k(x: ptr f32, y: ptr f32, n: i32) open:\n  for b in 0..3: free block(x)\n    \
                      for t in 0..8: free thread\n      for r in 0..2: free unroll\n        \
                      a: f32 = load x[b*16 + r*8 + t] where b*16 + r*8 + t < n else 1.0\n        \
                      store y[b*16 + r*8 + t] = a\n";

pub const TILES: &str = "loop kernel k(x: ptr f32, y: ptr f32, n: i64 in 1..1025):\n  local t: f32[32]\n  \
                     for i1 in 0..4: free\n    for i2 in 0..8: free\n      a: f32 = load x[i1*8 + i2]\n      \
                     t[i1*8 + i2] = a\n  for i in 0..min(32, n): free\n    b: f32 = t[i]\n    store y[i] = b\n";

pub const PRODUCT: &str = r#"loop kernel k(A: ptr f32, B: ptr f32, C: ptr f32, n: i32):
  local acc: f32[20, 64]
  for i0 in 0..20: free
    for j0 in 0..64: free
      acc[i0, j0] = 0.0
  for i in 0..20: free
    for j in 0..64: free
      for q in 0..24: reduce contraction m=i n=j k=q a=a b=b acc=acc
        a: f32 = load A[i*24 + q] where q < n else 0.0
        b: f32 = load B[q*64 + j]
        c: f32 = acc[i, j]
        d: f32 = fma(a, b, c)
        acc[i, j] = d
  for i1 in 0..20: free
    for j1 in 0..64: free
      s: f32 = acc[i1, j1]
      store C[i1*64 + j1] = s
"#;

/// Attention of 20 rows over 36 keys, each row as far as the keys before it.
pub const KEYS: &str = r#"loop kernel k(x: ptr f32, y: ptr f32, z: ptr f32, o: ptr f32) open:
  for b in 0..2: free
    for i in 0..20: free
      local dot: f32[16]
      for n in 0..16: free
        dot[n] = 0.0
      local m: f32
      m = -inf
      local l: f32
      l = 0.0
      for key in 0..36: serial stream score=select value=v greatest=m total=l acc=dot
        local s: f32
        s = 0.0
        for k in 0..8: reduce contraction m=i n=key k=k a=q b=w acc=s
          q: f32 = load x[b*160 + i*8 + k]
          w: f32 = load y[b*288 + key*8 + k]
          s1: f32 = s
          s2: f32 = fma(q, w, s1)
          s = s2
        at: i64 = index i - key
        seen: i1 = at >= 0
        score: f32 = s
        select: f32 = select(seen, score, -inf)
        m1: f32 = m
        m2: f32 = max.nan(m1, select)
        empty: i1 = m2 == -inf
        m3: f32 = select(empty, 0.0, m2)
        d1: f32 = m1 - m3
        e1: f32 = exp(d1)
        d2: f32 = select - m3
        e2: f32 = exp(d2)
        m = m2
        l1: f32 = l
        l2: f32 = l1 * e1
        l3: f32 = l2 + e2
        l = l3
        for n1 in 0..16: free
          v: f32 = load z[b*576 + key*16 + n1]
          a1: f32 = dot[n1]
          a2: f32 = a1 * e1
          a3: f32 = fma(e2, v, a2)
          dot[n1] = a3
      l4: f32 = l
      for n2 in 0..16: free
        a4: f32 = dot[n2]
        a5: f32 = a4 / l4
        store o[b*320 + i*16 + n2] = a5
"#;

/// Sums of columns that are subtracted from their elements.
pub const COLUMNS: &str = "loop kernel k(x: ptr f32, y: ptr f32) open:\n  for j in 0..20: free\n    local s: f32\n    s = 0.0\n    \
                       for k in 0..48: reduce combine add(s) from 0.0\n      v: f32 = load x[k*20 + j]\n      a: f32 = s\n      \
                       b: f32 = a + v\n      s = b\n    t: f32 = s\n    for i in 0..48: free\n      w: f32 = load x[i*20 + j]\n      \
                       d: f32 = w - t\n      store y[i*20 + j] = d\n";

pub const HALVES: &str = r#"tile kernel k(A: ptr f16, B: ptr f16, C: ptr f32):
  local t: f32[32, 16]
  for i3 in 0..32: free
    for k3 in 0..16: free
      z: f16 = load A[i3*16 + k3]
      z1: f32 = f32(z)
      t[i3, k3] = z1
  local acc: f32[32, 64]
  for i in 0..32: free
    for j in 0..64: free
      acc[i, j] = 0.0
  for i1 in 0..32: free
    for j1 in 0..64: free
      for q in 0..16: reduce contraction m=i1 n=j1 k=q a=x b=y acc=acc
        x: f16 = load A[i1*16 + q]
        y: f16 = load B[q*64 + j1]
        x1: f32 = f32(x)
        y1: f32 = f32(y)
        c: f32 = acc[i1, j1]
        d: f32 = fma(x1, y1, c)
        acc[i1, j1] = d
  for i2 in 0..32: free
    for j2 in 0..64: free
      s: f32 = acc[i2, j2]
      u: f32 = t[i2, j2//4]
      w: f32 = s + u
      store C[i2*64 + j2] = w
"#;

/// Two blocks in turn read the same 40 numbers, in an order that a buffer gives.
pub const SHARED_BY_TWO: &str = "tile kernel k(x: ptr f32, y: ptr f32):\n  i: i32 = index bx\n  two: i32 = div(i, 2)\n  local at: i32[8]\n  \
     for j in 0..8: free\n    v: i32 = index (j + two)%8\n    at[j] = v\n  local acc: f32[8]\n  for j_1 in 0..8: free\n    \
     acc[j_1] = 0.0\n  for turn in 0..5: serial\n    stage p: f32[8]:\n      for j_2 in 0..8: free\n        o: i32 = at[j_2]\n        \
     a: f32 = load x[two*40 + turn*8 + o]\n        p[j_2] = a\n    for j_3 in 0..8: free\n      b: f32 = p[j_3]\n      \
     c: f32 = acc[j_3]\n      d: f32 = b + c\n      acc[j_3] = d\n  for j_4 in 0..8: free\n    e: f32 = acc[j_4]\n    \
     store y[i*8 + j_4] = e\n";
