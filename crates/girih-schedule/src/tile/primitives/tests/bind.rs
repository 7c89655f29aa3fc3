use super::*;

#[test]
fn elements_become_threads() {
    let made = steps(
        ADD,
        &["fuse i, j -> n", "split n by 32 guard -> b, t", "bind b to block.x", "bind t to thread"],
        &gpu(&[]),
        &[60, 60],
    );
    let want = "\
tile kernel k(x: ptr f32, y: ptr f32) open:
  for b in 0..2: free block(x)
    for t in 0..32: free thread
      mine: i1 = test b*32 + t < 60
      if mine:
        a: f32 = load x[b*32 + t]
        b_1: f32 = a + a
        store y[b*32 + t] = b_1
";
    assert_eq!(made, want);
}

#[test]
fn threads_share_a_block() {
    let wide = &["split j by 4 -> j1, j2", "unroll j2", "bind i to block.x", "bind j1 to thread 32", "vector j2 by 4"];
    let made = steps(ADD, wide, &gpu(&[]), &[60, 60]);
    assert!(made.contains("for t in 0..5: free thread\n      local a_w: f32[4]\n"), "{made}");
    assert!(made.contains("free vector(4)\n        a: f32 = load x[i*20 + t*4 + j2]\n"), "{made}");
    // A tile that threads share, and a sum that each of them computes.
    let tile = "loop kernel k(x: ptr f32, y: ptr f32) open:\n  for b in 0..3: free block(x)\n    local t: f32[20]\n    \
                for i in 0..20: free\n      v: f32 = load x[b*20 + i]\n      t[i] = v\n    for j in 0..20: free\n      \
                w: f32 = t[19 - j]\n      store y[b*20 + j] = w\n";
    let made = steps(tile, &["bind i, j to thread 8"], &gpu(&[]), &[60, 60]);
    assert!(made.contains("local t: f32[20] shared"), "{made}");
    let kept = steps(&tile.replace("t[19 - j]", "t[j]"), &["own t by 8"], &gpu(&[]), &[60, 60]);
    assert!(kept.contains("local t: f32[8, "), "{kept}");
    let kept = steps(tile, &["reverse j", "own t by 16 rolled"], &gpu(&[]), &[60, 60]);
    assert!(kept.contains("local t: f32[16, 2] private"), "{kept}");
    for (line, why) in [
        ("own t by 16", "a nest needs its elements in another order"),
        ("own t by 16 roled", "unexpected `roled`; did you mean `rolled`?"),
        ("own t by 4096", "a block has 1 to 1024 threads, not 4096"),
        ("own u by 16", "unknown buffer `u`; the buffers are t"),
    ] {
        let said = one(tile, line, &gpu(&[])).map(|k| text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
    }
    let twice = tile.replace(
        "      w: f32 = t[19 - j]\n",
        "      u: f32 = t[19 - j]\n      v_1: f32 = load x[b*20 + j]\n      w: f32 = u + v_1\n",
    );
    let made = steps(&twice, &["stage_row i, j"], &gpu(&[]), &[60, 60]);
    assert!(made.matches("load x[").count() == 1 && made.contains("local x_k: f32[20]"), "{made}");
    for (text, line, why) in [
        (tile, "stage_row i, j", "no row is read by several of them"),
        (&twice, "stage_row b", "it does not stand in a block"),
        (&twice.replace(") open:", "):"), "stage_row i, j", "other arrays of a program may share memory with it"),
        (&twice.replace("store y", "store x"), "stage_row i, j", "the kernel stores to its array"),
        (
            &twice.replace("j in 0..20", "j in 0..19"),
            "stage_row i, j",
            "its length is not known, or not the same everywhere",
        ),
    ] {
        assert_eq!(one(text, line, &gpu(&[])).map(|_| ()), Err(why.to_string()), "{line}\n{text}");
    }
    let counts = "loop kernel k(x: ptr f32, y: ptr f32):\n  v: f32 = load x[0] acquire\n  store y[0] = v\n";
    let made = steps(counts, &["bind to thread 32"], &gpu(&[]), &[1, 1]);
    assert!(made.contains("local once: f32[1] shared"), "{made}");
}
