use super::*;

/// A row of pieces that are added to an array, which is summed up.
pub const PIECES: &str = "loop kernel k(x: ptr f32, y: ptr f32, n: i32):\n  local t: f32[64]\n  for i in 0..64: free\n    t[i] = 0.5\n  \
    for k in 0..n step 64: serial\n    for j in 0..64: free\n      a: f32 = load x[k + j] where k + j < n else 0.25\n      b: f32 = t[j]\n      \
    c: f32 = a + b\n      t[j] = c\n  local s: f32\n  s = -0.0\n  for l in 0..64: reduce combine add(s) from -0.0\n    d: f32 = t[l]\n    \
    e: f32 = s\n    g: f32 = d + e\n    s = g\n  z: f32 = s\n  store y[bx] = z\n";

/// Rows that leave strips empty, in part, or full.
#[test]
fn strips_compute_what_the_array_did() {
    let elements = [600, 1];
    let lengths = [0, 1, 16, 40, 63, 64, 65, 100, 128, 150, 520];
    for n in lengths {
        let program =
            PIECES.replace(", n: i32", "").replace("0..n", &format!("0..{n}")).replace("< n", &format!("< {n}"));
        for by in ["16 x 1", "8 x 2", "16 x 2 x 3", "4 x 16", "16 x 4 x 1"] {
            let made = steps(&program, &[&format!("strip k by {by}")], &context(), &elements);
            assert!(made.contains("local t_r: f32["), "{made}");
        }
    }
}

#[test]
fn an_array_in_registers_is_no_longer_in_memory() {
    let made = text(&one(PIECES, "strip k by 16 x 2", &context()).unwrap());
    let want = "\
  local s: f32
  s = -0.0
  local s_parts: f32[32] register(16)
  for l2 in 0..32: free vector(16)
    s_parts[l2] = -0.0
  for j1 in 0..2: reduce
    local t_r: f32[32] register(16)
    for i2 in 0..32: free vector(16)
      t_r[i2] = 0.5
    for k in 0..n step 64: serial
      whole: i1 = test k + j1*32 + 31 < n
      if whole:
        for j2 in 0..32: free vector(16)
          a: f32 = load x[k + j1*32 + j2]
          b: f32 = t_r[j2]
          c: f32 = a + b
          t_r[j2] = c
      else:
        off: i1 = test k + j1*32 >= n
        if off:
          for j2_1 in 0..32: free vector(16)
            b_1: f32 = t_r[j2_1]
            c_1: f32 = 0.25 + b_1
            t_r[j2_1] = c_1
        else:
          for j2_2 in 0..32: free vector(16)
            a_1: f32 = load x[k + j1*32 + j2_2] where k + j1*32 + j2_2 < n else 0.25
            b_2: f32 = t_r[j2_2]
            c_2: f32 = a_1 + b_2
            t_r[j2_2] = c_2
    for l2_1 in 0..32: free vector(16)
      d: f32 = t_r[l2_1]
      e: f32 = s_parts[l2_1]
      g: f32 = d + e
      s_parts[l2_1] = g
  for l2_2 in 0..32: reduce vector(16) combine add(s) from -0.0 x 2
    part: f32 = s_parts[l2_2]
    acc: f32 = s
    v: f32 = acc + part
    s = v
  z: f32 = s
  store y[bx] = z
";
    assert!(made.ends_with(want), "{made}");
    let made = text(&one(PIECES, "strip k by 16 x 2 x 5", &context()).unwrap());
    assert!(
        made.contains("few: i1 = test n <= 320\n  if few:\n    local s_parts") && made.contains("  else:\n    local t"),
        "{made}"
    );
}

/// Two arrays in one loop. Other statements behind the loop read one of them.
#[test]
fn what_others_read_is_written() {
    let both =
        PIECES.replace("  for k in", "  local q: f32[1, 64]\n  for m in 0..64: free\n    q[0, m] = 1.0\n  for k in");
    let both = both
        .replace("      c: f32", "      o: f32 = q[0, j]\n      p: f32 = max(o, a)\n      q[0, j] = p\n      c: f32");
    let both =
        both.replace("  z: f32", "  for w in 0..64: free\n    r: f32 = q[0, 63 - w]\n    store y[w + 1] = r\n  z: f32");
    let both = both.replace(", n: i32", "").replace("0..n", "0..150").replace("< n", "< 150");
    for by in ["16 x 2", "16 x 4", "8 x 1 x 3", "8 x 2 x 1"] {
        let made = steps(&both, &[&format!("strip k by {by}")], &context(), &[200, 65]);
        assert!(made.contains("q[0, "), "{made}");
    }
    // A statement that reads the array before the reduction, and a value that the reduction needs, keep it in memory.
    let early = PIECES.replace("  s = -0.0\n", "  s = -0.0\n  u: f32 = t[3]\n").replace("f32 = d + e", "f32 = u + e");
    let made = text(&one(&early, "strip k by 16 x 2", &context()).unwrap());
    assert!(made.contains("t[j1*32 + j2_3] = t_1\n") && !made.contains("s_parts"), "{made}");
}

#[test]
fn loops_that_carry_more_stay() {
    let changed = |from: &str, to: &str| {
        assert!(PIECES.contains(from), "{from}");
        PIECES.replace(from, to)
    };
    let (first, rest) = PIECES.split_at(PIECES.find("  for k in").unwrap());
    let (each, last) = rest.split_at(rest.find("  local s").unwrap());
    let each = each.replace("  for k", "    for k").replace("\n    ", "\n      ");
    let outside = format!("{first}  for o in 0..2: serial\n{}\n{last}", each.trim_end());
    for (before, why) in [
        (
            changed("t[j] = c", "t[j] = c\n      store y[j] = c"),
            "its elements are not only loaded, computed and carried",
        ),
        (changed("b: f32 = t[j]", "b: f32 = t[63 - j]"), "an element needs others of the iteration before"),
        (changed("a + b\n", "a + b\n      h: f32 = t[0]\n"), "an element needs others of the iteration before"),
        (
            changed("    for j in", "    w: f32 = t[7]\n    for j in"),
            "an iteration holds more than values and a loop over the elements",
        ),
        (
            changed("    for j in", "    store y[k] = 1.0\n    for j in"),
            "an iteration holds more than values and a loop over the elements",
        ),
        (
            changed("    for j in", "    assert true, \"no\"\n    for j in"),
            "an iteration holds more than values and a loop over the elements",
        ),
        (
            changed("    for j in 0..64: free", "    for j in 0..min(64, n - k): free"),
            "how many elements an iteration goes through is not a constant",
        ),
        (
            changed("t[i] = 0.5", "u: f32 = load x[i]\n    t[i] = u"),
            "what it carries does not begin with values of its elements",
        ),
        (changed("for i in 0..64", "for i in 0..63"), "what it carries does not begin with values of its elements"),
        (outside, "what it carries does not begin before it"),
        (changed("else 0.25", "else 0.25 acquire"), "its elements are not only loaded, computed and carried"),
        (changed("      t[j] = c", "      pass"), "it changes no array element by element"),
    ] {
        assert_eq!(one(&before, "strip k by 16 x 2", &context()).map(|k| text(&k)), Err(why.to_string()), "{before}");
    }
    for (line, why) in [
        ("strip k by 16 x 3", "16 x 3 are not powers of two from 2 to 64 and from 1 to 16"),
        ("strip k by 16 x 8", "strips of 128 do not divide 64 elements"),
        ("strip j by 16 x 2", "it changes no array element by element"),
    ] {
        assert_eq!(one(PIECES, line, &context()).map(|k| text(&k)), Err(why.to_string()));
    }
    let why = one(PIECES, "strip k by 16 x 2", &gpu(&[])).map(|k| text(&k));
    assert_eq!(why, Err("threads have no vector registers".to_string()));
}
