//! The rules on whole kernels: what they make of them, that a second run changes nothing, and what they refuse.

use super::primitives::{Line, Step};
use super::rules::OF_KERNELS;
#[cfg(test)]
use super::target::MemoryKind;
use super::target::Target;
use super::{Context, rules};
use crate::base::host::Silent;
use crate::base::launch::Launch;
use crate::base::memory::VecMemory;
use crate::base::rule::Log;
use crate::graph::{Graph, decompose};
use crate::loops::eval::run;
use crate::loops::ir::*;
use crate::loops::model::{self, Plan};
use crate::loops::parse::parse;
use crate::loops::print::{Dialect, print};
use crate::loops::verify::verify;
use crate::num::op::Rounding;
use crate::num::{DType, ScalarOp, eval};
use crate::source::expr;

pub fn context() -> Context {
    Context::default()
}

/// A machine that loads and stores whole vectors only.
pub fn without_masks() -> Context {
    let mut ctx = context();
    ctx.target.vector.masks = None;
    ctx
}

pub fn with_knobs(knobs: &[&str]) -> Context {
    let mut ctx = context();
    for k in knobs {
        ctx.knobs.set(k).unwrap();
    }
    ctx
}

pub fn kernel(text: &str) -> Kernel {
    match parse(text) {
        Ok((k, _)) => k,
        Err(e) => panic!("{}: {:?}\n{text}", e.message, e.span),
    }
}

pub fn text(k: &Kernel) -> String {
    print(k, Dialect::Tile)
}

/// Runs one rule by the name of its file; checks that the steps that it states do the same, and that a second run changes nothing.
pub fn apply(name: &str, k: &Kernel, ctx: &Context) -> (Kernel, Log) {
    let (rule, _) = OF_KERNELS.iter().find(|(r, _)| r.name == name).unwrap();
    let mut log = Log { record: true, ..Log::default() };
    let out = (rule.run)(k, ctx, &mut log).unwrap_or_else(|| k.clone());
    let mut replayed = k.clone();
    for line in &log.steps {
        let step = Line::parse(line).unwrap().and_then(|line| Step::read(&line, &replayed));
        let done = step.and_then(|step| step.apply(&mut replayed, ctx));
        done.unwrap_or_else(|why| panic!("{name}: {line}: {why}\n{}", text(&replayed)));
    }
    assert_eq!(text(&replayed), text(&out), "{name} does more than its steps: {:#?}", log.steps);
    let again = (rule.run)(&out, ctx, &mut Log::default());
    assert!(again.is_none(), "{name} is not idempotent:\n{}\n-->\n{}", text(&out), text(&again.unwrap()));
    // The result of a rule reads back.
    assert_eq!(text(&kernel(&text(&out))), text(&out));
    (out, log)
}

/// A GPU, with knobs given.
pub fn gpu(knobs: &[&str]) -> Context {
    Context { target: Target::named("sm_90a").unwrap(), ..with_knobs(knobs) }
}

/// Runs all rules in order.
pub fn schedule(k: &Kernel, ctx: &Context) -> Kernel {
    rules(&ctx.target).list.iter().fold(k.clone(), |k, rule| apply(rule.name, &k, ctx).0)
}

/// A product of `m` rows, `n` columns and `k` terms of f32, with what loads its operands, into `acc`.
pub fn contraction([m, n, k]: [u64; 3], a: &str, b: &str) -> String {
    let name = |load: &str| load.split('[').next().unwrap_or_default().to_string();
    format!(
        "loop kernel k({}: ptr f32, {}: ptr f32):\n  local acc: f32[{m}, {n}]\n  for i in 0..{m}: free\n    for j in 0..{n}: free\n      \
         for kk in 0..{k}: reduce contraction m=i n=j k=kk a=a b=b acc=acc\n        a: f32 = load {a}\n        b: f32 = load {b}\n        \
         c: f32 = acc[i, j]\n        d: f32 = fma(a, b, c)\n        acc[i, j] = d\n",
        name(a),
        name(b)
    )
}

pub const GEMM: &str = r#"loop kernel gemm(A: ptr f16, B: ptr f16, C: ptr f32, M: i32, N: i32, K: i32):
  local acc: f32[128, 128]
  for i0 in 0..128: free
    for j0 in 0..128: free
      acc[i0, j0] = 0.0
  for k in 0..(K + 63)//64: serial
    for i in 0..128: free
      for j in 0..128: free
        for kk in 0..64: reduce contraction m=i n=j k=kk a=a0 b=b0 acc=acc
          a0: f16 = load A[(bx*128 + i)*K + (k*64 + kk)] where bx*128 + i < M and k*64 + kk < K else 0x0
          b0: f16 = load B[(k*64 + kk)*N + (by*128 + j)] where k*64 + kk < K and by*128 + j < N else 0x0
          c0: f32 = acc[i, j]
          a1: f32 = f32(a0)
          b1: f32 = f32(b0)
          c1: f32 = fma(a1, b1, c0)
          acc[i, j] = c1
  for i1 in 0..128: free
    for j1 in 0..128: free
      c: f32 = acc[i1, j1]
      store C[(bx*128 + i1)*N + (by*128 + j1)] = c where bx*128 + i1 < M and by*128 + j1 < N
"#;

pub const BF16_PRODUCT: &str = r#"loop kernel k(A: ptr bf16, B: ptr bf16, C: ptr f32) open:
  for i in 0..512: free
    for j in 0..768: free
      local acc: f32
      acc = 0.0
      for k in 0..1024: reduce contraction m=i n=j k=k a=a b=b acc=acc
        a: bf16 = load A[i*1024 + k]
        b: bf16 = load B[k*768 + j]
        x: f32 = f32(a)
        y: f32 = f32(b)
        c: f32 = acc
        d: f32 = fma(x, y, c)
        acc = d
      s: f32 = acc
      store C[i*768 + j] = s
"#;

pub const COUNT: &str = "\
loop kernel k(x: ptr i32, y: ptr i32, n: i32):
  for j in 0..64: free
    local s: i32
    s = 0
    j1: i32 = index j
    for i in 0..100: reduce combine add(s) from 0
      v: i32 = load x[i]
      e: i1 = v == j1
      k: i32 = index i
      m: i1 = k < n
      b: i1 = e & m
      o: i32 = ext.u.i32(b)
      s0: i32 = s
      s1: i32 = o + s0
      s = s1
    t: i32 = s
    store y[j] = t
";

pub const SOFTMAX: &str = r#"loop kernel softmax(src: ptr f32, dst: ptr f32, n: i32):
  local x: f32[1024]
  local m: f32
  local s: f32
  for j in 0..1024: free
    v: f32 = load src[bx*n + j] where j < n else -inf
    x[j] = v
  m = -inf
  for j1 in 0..1024: reduce combine max.nan(m) from -inf
    m0: f32 = m
    v1: f32 = x[j1]
    m1: f32 = max.nan(m0, v1)
    m = m1
  s = 0.0
  top: f32 = m
  for j2 in 0..1024: reduce combine add(s) from -0.0
    v2: f32 = x[j2]
    d: f32 = v2 - top
    e: f32 = exp(d)
    x[j2] = e
    s0: f32 = s
    s1: f32 = s0 + e
    s = s1
  total: f32 = s
  for j3 in 0..1024: free
    v3: f32 = x[j3]
    q: f32 = v3 / total
    store dst[bx*n + j3] = q where j3 < n
"#;

pub const TRANSPOSE: &str = r#"loop kernel transpose(X: ptr f32, Y: ptr f32, M: i32, N: i32):
  for i in 0..64: free
    for j in 0..64: free
      v: f32 = load X[(bx*64 + i)*N + (by*64 + j)] where bx*64 + i < M and by*64 + j < N else 0.0
      store Y[(by*64 + j)*M + (bx*64 + i)] = v where by*64 + j < N and bx*64 + i < M
"#;

pub const COLUMN_SUMS: &str = r#"loop kernel sums(X: ptr f32, Y: ptr f32):
  for j in 0..256: free
    local s: f32
    s = 0.0
    for i in 0..64: reduce combine add(s) from -0.0
      x: f32 = load X[i*256 + j]
      s0: f32 = s
      s1: f32 = x + s0
      s = s1
    t: f32 = s
    store Y[bx*256 + j] = t
"#;

pub const VECTOR_ADD: &str = r#"loop kernel add(a: ptr f32, b: ptr f32, c: ptr f32, n: i32):
  for j in 0..1024: free
    x: f32 = load a[bx*1024 + j] where bx*1024 + j < n
    y: f32 = load b[bx*1024 + j] where bx*1024 + j < n
    z: f32 = x + y
    store c[bx*1024 + j] = z where bx*1024 + j < n
"#;

pub const GEMM_TRANSPOSED: &str = r#"loop kernel gemm_t(A: ptr f16, B: ptr f16, C: ptr f32, M: i32, N: i32, K: i32):
  local acc: f32[128, 128]
  for i in 0..128: free
    for j in 0..128: free
      for kk in 0..64: reduce contraction m=i n=j k=kk a=a0 b=b0 acc=acc
        a0: f16 = load A[kk*M + (bx*128 + i)] where bx*128 + i < M and kk < K
        b0: f16 = load B[(by*128 + j)*K + kk] where kk < K and by*128 + j < N
        a1: f32 = f32(a0)
        b1: f32 = f32(b0)
        c0: f32 = acc[i, j]
        c1: f32 = fma(a1, b1, c0)
        acc[i, j] = c1
  for i1 in 0..128: free
    for j1 in 0..128: free
      c: f32 = acc[i1, j1]
      store C[(bx*128 + i1)*128 + j1] = c
"#;

/// A model in one line, as a graph and as kernels.
pub fn plan_of(text: &str) -> (Graph, Plan) {
    planned(text, true)
}

/// The plan of a machine whose blocks have many threads.
pub fn plan_for_threads(text: &str) -> (Graph, Plan) {
    planned(text, false)
}

fn planned(text: &str, workers: bool) -> (Graph, Plan) {
    let torch = expr::evaluate(text, &[]).unwrap().graph;
    let graph = decompose::decompose(&torch, &mut |_| {}).unwrap();
    let options = model::Options { workers, ..Default::default() };
    let plan = model::lower(&graph, &options, &mut Log::default()).unwrap();
    (graph, plan)
}

/// A rule that looks at all kernels of a model.
pub type OfPlans = fn(&Plan, &Context, &mut Log) -> Option<Plan>;

/// The result of a rule for a plan; asserts that each of its steps is well-formed.
pub fn split_by(rule: OfPlans, plan: &Plan, ctx: &Context) -> (Option<Plan>, Log) {
    let mut log = Log::default();
    let out = rule(plan, ctx, &mut log);
    for step in out.iter().flat_map(|p| &p.steps) {
        let text = print(&step.kernel, Dialect::Loop);
        assert_eq!(verify(&step.kernel, Dialect::Loop), [], "{text}");
        assert_eq!(step.args.len(), step.kernel.params.len(), "{text}");
    }
    (out, log)
}

/// Compares with the text kept beside the tests; `BLESS=1` writes it anew.
#[cfg(test)]
fn golden(name: &str, loops: &str) {
    let path = format!("{}/src/tile/goldens/{name}.tile", env!("CARGO_MANIFEST_DIR"));
    let got = text(&schedule(&kernel(loops), &context()));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &got).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(got, want, "{name} is scheduled otherwise; BLESS=1 accepts it:\n{got}");
}

#[test]
fn a_gemm_with_partial_edges_packs_its_operands_and_keeps_masks_out_of_its_loops() {
    golden("gemm", GEMM);
}

#[test]
fn transposed_operands_go_into_panels() {
    golden("gemm_transposed", GEMM_TRANSPOSED);
}

#[test]
fn a_softmax_row_runs_in_vectors() {
    golden("softmax", SOFTMAX);
}

#[test]
fn a_vector_add_is_one_loop_without_masks() {
    golden("vector_add", VECTOR_ADD);
}

#[test]
fn a_transpose_goes_in_blocks() {
    golden("transpose", TRANSPOSE);
}

#[test]
fn column_sums_go_row_by_row() {
    golden("column_sums", COLUMN_SUMS);
}

/// The reasons a rule gives on a kernel that it leaves alone.
pub fn refusals(name: &str, loops: &str, ctx: &Context) -> Vec<String> {
    let k = kernel(loops);
    let (out, log) = apply(name, &k, ctx);
    assert_eq!(text(&out), text(&k), "{name} was to refuse");
    log.skipped.into_iter().map(|(site, why)| format!("{site}: {why}")).collect()
}

/// The page of schedules has the forms and meanings of the tables. `BLESS=1` writes them anew.
#[test]
fn the_page_of_schedules_has_every_form() {
    use super::primitives::{self, model};
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schedule.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once("| step | meaning |\n").unwrap();
    let between = rest.split_once("\n\n").unwrap().1.split_once("| step | meaning |\n").unwrap().0;
    let of_plans = forms(model::FORMS.iter().flat_map(|row| row.docs), &model::words().collect::<Vec<_>>());
    let of_kernels = forms(primitives::FORMS.iter().flat_map(|row| row.docs), &primitives::words().collect::<Vec<_>>());
    let want = format!("{before}{of_plans}\n{between}{of_kernels}");
    if std::env::var_os("BLESS").is_some() {
        return std::fs::write(path, &want).unwrap();
    }
    assert!(page == want, "docs/schedule.md is stale; BLESS=1 writes it anew");
}

/// The descriptions of steps as a table of Markdown.
#[cfg(test)]
fn forms<'a>(docs: impl Iterator<Item = &'a &'a str>, words: &[&str]) -> String {
    // A line that begins with the word of a primitive has a form; the others go on.
    let mut rows: Vec<String> = vec![];
    for line in docs.map(|line| line.trim()) {
        let word = line.strip_prefix('`').and_then(|l| l.split([' ', '`']).next());
        match (line.split_once(": "), rows.last_mut()) {
            (Some((form, meaning)), _) if word.is_some_and(|word| words.contains(&word)) => {
                rows.push(format!("| {form} | {meaning}"))
            }
            (_, Some(last)) => *last += &format!(" {line}"),
            _ => panic!("{line}"),
        }
    }
    format!("| step | meaning |\n|---|---|\n{} |\n", rows.join(" |\n"))
}

#[test]
fn rules_are_documented() {
    for (rule, _) in OF_KERNELS {
        assert!(rule.doc.contains("-->") && rule.doc.contains("efuses"), "{}", rule.name);
    }
}

#[test]
fn a_machine_gets_the_rules_that_it_has_what_they_need_for() {
    let names = |t: &Target| rules(t).named().map(|(name, _)| name).collect::<Vec<_>>();
    let cpu = names(&Target::cpu());
    assert_eq!(cpu[..2], ["t:005_bound_alloca", "t:006_pair_terms"]);
    // Numbers are positions in the list that the machine gets.
    let of_gpus = names(&Target::named("sm_90a").unwrap());
    assert_eq!(of_gpus[..2], ["t:005_bound_alloca", "t:006_promote_alloca"]);
    // Every rule is some machine's, and some are all machines'.
    let bare_names = |all: &[String]| all.iter().map(|n| n[6..].to_string()).collect::<std::collections::BTreeSet<_>>();
    let (one, other) = (bare_names(&cpu), bare_names(&of_gpus));
    assert_eq!(one.union(&other).count(), OF_KERNELS.len());
    let shared =
        ["bound_alloca", "count_bins", "mark_unroll", "register_tile", "stage_inputs", "stream_rows", "tileify"];
    assert_eq!(one.intersection(&other).map(String::as_str).collect::<Vec<_>>(), shared);
    let mut scalar = Target::cpu();
    scalar.vector.arithmetic = false;
    let of_scalar = names(&scalar);
    assert!(of_scalar.iter().all(|n| !n.contains("vector")) && of_scalar[0] == "t:003_bound_alloca", "{of_scalar:?}");
    let mut bare = Target::cpu();
    bare.memories.retain(|m| matches!(m.kind, MemoryKind::Shared));
    assert_eq!(names(&bare)[0], "t:001_bound_alloca");
}

/// Arguments to run a kernel on: elements per pointer parameter, and the scalars, in the order of the parameters.
pub struct Case {
    pub loops: String,
    pub grid: [u32; 3],
    pub args: Vec<u64>,
}

pub fn case(loops: &str, grid: [u32; 3], args: &[u64]) -> Case {
    Case { loops: loops.to_string(), grid, args: args.to_vec() }
}

fn fill(dtype: DType, count: u64, seed: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for i in 0..count {
        let n = ((i * 2654435761 + seed * 97) >> 7) % 17;
        let bits = if dtype.is_int() {
            n.wrapping_sub(8) & dtype.mask()
        } else {
            let x = ((n as f32 - 8.0) / 4.0).to_bits() as u64;
            eval::apply(ScalarOp::FToF { to: dtype, rounding: Rounding::NearestEven }, DType::F32, &[x])
        };
        out.extend_from_slice(&bits.to_le_bytes()[..dtype.bytes() as usize]);
    }
    out
}

/// A memory with the arguments of a kernel, its launch, and where its buffers are.
pub fn place(k: &Kernel, case: &Case) -> (VecMemory, Launch, Vec<u64>) {
    let mut memory = VecMemory::new();
    let (mut args, mut buffers) = (vec![], vec![]);
    for (at, (param, &arg)) in k.params.iter().zip(&case.args).enumerate() {
        match param.ty {
            Ty::Ptr(d) => {
                let address = memory.add(&param.name, fill(d, arg, at as u64));
                buffers.push(address);
                args.push(address);
            }
            Ty::Num(_) => args.push(arg),
        }
    }
    let launch = Launch::new(case.grid, args);
    (memory, launch, buffers)
}

pub fn contents(memory: &VecMemory, buffers: &[u64]) -> Vec<Vec<u8>> {
    buffers.iter().map(|b| memory.bytes(*b).unwrap().to_vec()).collect()
}

pub fn evaluate(k: &Kernel, case: &Case) -> Vec<Vec<u8>> {
    let (mut memory, launch, buffers) = place(k, case);
    if let Err(trap) = run(k, &launch, &mut memory, &mut Silent) {
        panic!("{}\n{}", trap.message, text(k));
    }
    contents(&memory, &buffers)
}

/// Two products with folds between them, as in attention: exact, since nothing is divided.
pub const ATTENTION: &str = r#"loop kernel k(Q: ptr f16, K: ptr f16, V: ptr f16, O: ptr f32, M: ptr f32):
  local o: f32[32, 16]
  local m: f32[32]
  local l: f32[32]
  for i1 in 0..32: free
    for j1 in 0..16: free
      o[i1, j1] = 0.0
  for i2 in 0..32: free
    m[i2] = -64.0
    l[i2] = 0.0
  for kt in 0..3: serial
    local s: f32[32, 16]
    for i3 in 0..32: free
      for j3 in 0..16: free
        s[i3, j3] = 0.0
    for i4 in 0..32: free
      for j4 in 0..16: free
        for k4 in 0..16: reduce contraction m=i4 n=j4 k=k4 a=q b=k acc=s
          q: f16 = load Q[i4*16 + k4]
          k: f16 = load K[kt*256 + j4*16 + k4]
          q1: f32 = f32(q)
          k1: f32 = f32(k)
          a4: f32 = s[i4, j4]
          b4: f32 = fma(q1, k1, a4)
          s[i4, j4] = b4
    for i5 in 0..32: free
      local best: f32
      best = -inf
      for j5 in 0..16: reduce combine max(best) from -inf
        x5: f32 = s[i5, j5]
        y5: f32 = x5 * 0.5
        s[i5, j5] = y5
        a5: f32 = best
        b5: f32 = max(y5, a5)
        best = b5
      old: f32 = m[i5]
      met: f32 = best
      now: f32 = max(old, met)
      m[i5] = now
      less: f32 = old - now
      local sum: f32
      sum = 0.0
      for j6 in 0..16: reduce combine add(sum) from 0.0
        x6: f32 = s[i5, j6]
        y6: f32 = x6 - now
        s[i5, j6] = y6
        a6: f32 = sum
        b6: f32 = y6 + a6
        sum = b6
      before: f32 = l[i5]
      more: f32 = sum
      after: f32 = before + more
      l[i5] = after
      store M[kt*32 + i5] = now
      for n7 in 0..16: free
        x7: f32 = o[i5, n7]
        y7: f32 = x7 + less
        o[i5, n7] = y7
    for i8 in 0..32: free
      for n8 in 0..16: free
        for j8 in 0..16: reduce contraction m=i8 n=n8 k=j8 a=w b=v acc=o
          x8: f32 = s[i8, j8]
          w: f16 = f16(x8)
          v: f16 = load V[kt*256 + j8*16 + n8]
          w1: f32 = f32(w)
          v1: f32 = f32(v)
          a8: f32 = o[i8, n8]
          b8: f32 = fma(w1, v1, a8)
          o[i8, n8] = b8
  for i9 in 0..32: free
    for n9 in 0..16: free
      x9: f32 = o[i9, n9]
      l9: f32 = l[i9]
      y9: f32 = x9 + l9
      store O[i9*16 + n9] = y9
"#;
