//! One kernel per rule, broken in one place; and every example, lifted.

use super::parse::parse;
use super::print::{Dialect, print};
use super::verify::verify;

fn breaches(text: &str) -> Vec<String> {
    let (kernel, stage) = parse(text).unwrap_or_else(|e| panic!("{}\n{text}", e.message));
    verify(&kernel, stage).into_iter().map(|d| d.message).collect()
}

const HEAD: &str = "kernel k(p: ptr f32, q: ptr i32, n: i32, x: f32, c: i1):\n  local s: f32\n  local b: f32[4, 8]\n";

fn only(stage: &str, body: &str, message: &str) {
    let body: String = body.lines().map(|l| format!("  {l}\n")).collect();
    let found = breaches(&format!("{stage} {HEAD}{body}"));
    assert!(found.len() == 1 && found[0].contains(message), "{body}{found:?}");
}

#[test]
fn well_formed_kernels_pass() {
    let text = r#"  b[3, 7] = x
  for i in 0..n: reduce vector(8) combine add(s) from 0.0 x 2
    v: f32 = load p[i] where i < n and c else 0.0 acquire
    o: f32 = s
    w: f32 = max(o, v)
    s = w
  prefetch p[n + 4096]
  stage t: f32[2, 4]:
    for j in 0..4: free unroll
      t[0, j] = x
  for j in 0..n step 2: serial
    if c:
      break
    else:
      return
  old: i32 = atomic max q[n], 1 relaxed
  y: f32 = f32(old)
"#;
    assert_eq!(breaches(&format!("tile {HEAD}{text}")), [""; 0]);
}

#[test]
fn lanes_fold_what_each_of_them_has() {
    let fold = r#"local part: f32[64, 2] private
for t in 0..64: free thread
  local m: f32
  m = -inf
  for z in 0..4: reduce lanes combine max(m) from -inf x 4
    a: f32 = part[t//4*4 + z, 1]
    o: f32 = m
    d: f32 = max(a, o)
    m = d
"#;
    let indented = |body: &str| body.lines().map(|l| format!("  {l}\n")).collect::<String>();
    assert_eq!(breaches(&format!("tile {HEAD}{}", indented(fold))), [""; 0]);
    for (from, to, message) in [
        ("t//4*4 + z", "t//8*8 + z", "it does more than fold what each of the lanes has"),
        ("part[t//4*4 + z, 1]", "part[t, 1]", "it does more than fold what each of the lanes has"),
        ("z in 0..4", "z in 0..2", "its iterations are not as many lanes"),
        ("max(a, o)", "max(o, o)", "it does more than fold what each of the lanes has"),
        ("    m = d", "    m = d\n    part[t, 0] = d", "it does more than fold what each of the lanes has"),
        (" combine max(m) from -inf x 4", "", "it does not combine"),
        ("0..64: free thread", "0..64: free", "only threads are lanes of a warp"),
    ] {
        let changed = fold.replace(from, to);
        assert_ne!(changed, fold);
        let found = breaches(&format!("tile {HEAD}{}", indented(&changed)));
        assert!(found.iter().any(|m| m.contains(message)), "{changed}{found:?}");
    }
}

#[test]
fn each_rule_is_kept() {
    for (body, message) in [
        ("b[4, 0] = x", "out of range"),
        ("b[0] = x", "rank 2"),
        ("b[0, 0] = 1:i32", "type is not the buffer's"),
        ("y: i32 = b[0, 0]", "type is not the buffer's"),
        ("y: i32 = addf(n, n)", "is not defined"),
        ("y: f32 = cmpi.lt(n, n)", "is not defined"),
        ("y: i8 = ext.i8(n)", "is not defined"),
        ("y: f32 = index n", "must be an integer"),
        ("y: i32 = index x", "only integers"),
        ("y: i32 = index n//0", "must be positive"),
        ("y: i32 = load p[0]", "that of the elements"),
        ("y: f32 = load p[0] where n", "must be i1"),
        ("y: f32 = load p[0] where c else 1:i32", "masked-off"),
        ("y: f32 = load n as f32[0]", "must be a pointer"),
        ("store p[0] = 1:i32", "that of the elements"),
        ("y: f32 = atomic add p[0], 1.0 relaxed", "is not defined"),
        ("if x:\n  pass", "must be an i1"),
        ("break", "nearest loop"),
        ("y: i32 = index tx + 1", "only Kernel IR has threads"),
        ("for i in 0..4: free\n  if c:\n    continue", "nearest loop"),
        ("for i in 0..4: serial\n  for j in 0..4: reduce\n    return", "cannot be left"),
        ("for i in 0..4 step 2: free\n  pass", "step by 1"),
        ("for i in 0..4: serial\n  for i in 0..4: serial\n    pass", "already"),
        ("for i in 0..4: serial\n  pass\ny: i32 = index i", "not belong to an enclosing loop"),
        ("if c:\n  y: i32 = 1\nz: i32 = copy(y)", "outside its body"),
        ("if c:\n  local t: i32\nt = 1", "no `local`"),
        ("local s: f32", "already alive"),
        ("for i in 0..4: free combine add(s) from 0.0\n  pass", "only a reduce loop"),
        ("for i in 0..4: reduce combine sub(s) from 0.0\n  pass", "cannot combine"),
        ("for i in 0..4: reduce combine add(b) from 0.0\n  pass", "rank 0"),
        ("for i in 0..4: reduce combine add(s) from 0.0 x 2\n  pass", "only a vector loop or"),
        ("m: ptr f32 = alloca 4 align 3", "power of two"),
    ] {
        only("loop", body, message);
    }
    for (body, message) in [
        ("for i in 0..4: free vector(4)\n  pass", "cannot place loops"),
        ("stage t: f32[2]:\n  pass", "cannot stage"),
        ("local t: f32[8] register(4)", "cannot place buffers"),
    ] {
        only("loop", body, message);
    }
    for (body, message) in [
        ("for i in 0..4: serial vector(4)\n  pass", "cannot have lanes"),
        ("for i in 0..4: free vector(3)\n  pass", "power of two"),
        ("for i in 0..n: free unroll\n  pass", "constant trip count"),
        ("local t: f32[4, 9] register(3)", "a power of two that divides its last extent"),
        ("local t: f32[8, 2] register(4)", "a power of two that divides its last extent"),
    ] {
        only("tile", body, message);
    }
}

#[test]
fn a_contraction_is_consistent() {
    let text = |k: &str, acc: &str| {
        format!(
            "loop {HEAD}  local a: f32[4, 8]\n  for i in 0..4: free\n    for j in 0..8: free\n      for kk in 0..2: reduce contraction m=i n=j k={k} a=u b=v acc={acc}\n        \
             u: f32 = load p[i]\n        v: f32 = load p[j]\n        o: f32 = a[i, j]\n        f: f32 = fma(u, v, o)\n        a[i, j] = f\n"
        )
    };
    assert_eq!(breaches(&text("kk", "a")), [""; 0]);
    assert!(breaches(&text("j", "a"))[0].contains("over its k"));
    assert!(breaches(&text("kk", "b"))[0].contains("write its accumulator"));
}

#[test]
fn what_is_lifted_from_the_examples_is_well_formed_and_reads_back() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut seen = 0;
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    for path in files.iter().filter(|p| p.extension().is_some_and(|e| e == "mlir")) {
        let source = std::fs::read_to_string(path).unwrap();
        let module = crate::cuda_tile::parse::parse(&source).module.unwrap();
        for entry in module.entries().map(|f| f.name.as_str()) {
            let kernel = super::lift::lift(&module, entry).unwrap_or_else(|e| panic!("{path:?}: {e:?}"));
            let text = print(&kernel, Dialect::Loop);
            let wrong = verify(&kernel, Dialect::Loop);
            assert!(wrong.is_empty(), "{path:?}: {:?}\n{text}", wrong.iter().map(|d| &d.message).collect::<Vec<_>>());
            let (back, stage) = parse(&text).unwrap_or_else(|e| panic!("{path:?}: {}\n{text}", e.message));
            assert_eq!(print(&back, stage), text);
            seen += 1;
        }
    }
    assert!(seen >= 10);
}

#[test]
fn blocks_go_in_groups_and_in_turn_where_they_can() {
    let nest =
        "  for j in 0..4: free block(y)\n    for i in 0..8: free block(x, groups of 2)\n      store p[j*8 + i] = 1.0\n";
    let found = |body: &str| {
        let all = breaches(&format!("tile kernel k(p: ptr f32, q: ptr f32) open:\n{body}"));
        all.iter().map(|m| m.rsplit("`: ").next().unwrap_or_default().to_string()).collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(found(nest), none);
    let twice = "loops over blocks that stand in each other count along different dimensions";
    assert_eq!(found(&nest.replace("block(y)", "block(x)").replace(", groups of 2", "")), [twice]);
    let in_turn = nest.replace("block(y)", "block(y, 3 in turn)");
    assert_eq!(found(&in_turn), none);
    let groups = "groups of blocks are of a loop inside another one over blocks";
    assert_eq!(found(&nest.replace("block(y)", "block(y, groups of 2)")), [groups]);
    let turn = "blocks take iterations in turn on the outermost loop over blocks of the only nest of them";
    assert_eq!(found(&nest.replace("groups of 2", "groups of 2, 3 in turn")), [turn]);
    let other = nest.replace("for j", "for l").replace("for i", "for h").replace("p[j*8 + i]", "q[l*8 + h]");
    assert_eq!(found(&format!("{in_turn}{other}")), [turn]);
}
