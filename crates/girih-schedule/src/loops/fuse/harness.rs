//! Runs one tile program through the evaluators of cuda_tile and of Loop IR, before and after every rule.

use super::rules;
use crate::base::host::Silent;
use crate::base::launch::Assumptions;
use crate::base::launch::Launch;
use crate::base::memory::VecMemory;
use crate::base::rule::Log;
use crate::cuda_tile::ir::Module;
use crate::cuda_tile::{self, parse::parse};
use crate::loops::ir::Kernel;
use crate::loops::lift::lift;
use crate::loops::print::{Dialect, print};
use crate::loops::verify::verify;
use crate::loops::{self, launch_facts};
use crate::num::DType;
use crate::num::convert::from_f64;
use crate::num::op::Rounding;

/// An argument of a launch.
#[derive(Clone, Copy)]
pub enum Arg {
    /// A buffer of this many elements with small, varied contents.
    Buf(DType, usize),
    /// The buffer of an earlier argument, offset by this many bytes.
    Alias(usize, u64),
    Int(i64),
    Real(f32),
}

pub fn module(text: &str) -> Module {
    let parsed = parse(text);
    let errors: Vec<_> = parsed.diagnostics.iter().filter(|d| d.is_error()).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{text}");
    parsed.module.expect("a module")
}

fn contents(d: DType, n: usize, salt: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut state = 0x9E37_79B9u64.wrapping_mul(salt as u64 + 1);
    let mut nibble = None;
    for _ in 0..n {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let small = ((state >> 40) % 17) as i64 - 8;
        let bits = if d.is_float() {
            from_f64(d, small as f64 * 0.25, Rounding::NearestEven)
        } else {
            small as u64 & d.mask()
        };
        if d.bits() == 4 {
            match nibble.take() {
                None => nibble = Some(bits),
                Some(low) => out.push((low | bits << 4) as u8),
            }
        } else {
            out.extend(&bits.to_le_bytes()[..d.bytes() as usize]);
        }
    }
    out
}

struct World {
    memory: VecMemory,
    slots: Vec<u64>,
}

fn world(args: &[Arg]) -> World {
    let mut memory = VecMemory::new();
    let mut slots: Vec<u64> = Vec::new();
    for (i, a) in args.iter().enumerate() {
        let slot = match *a {
            Arg::Buf(d, n) => memory.add(&format!("arg{i}"), contents(d, n, i)),
            Arg::Alias(of, by) => slots[of] + by,
            Arg::Int(v) => v as u64,
            Arg::Real(v) => v.to_bits() as u64,
        };
        slots.push(slot);
    }
    World { memory, slots }
}

fn snapshot(w: &World, args: &[Arg]) -> Vec<Vec<u8>> {
    let bufs = args.iter().zip(&w.slots).filter(|(a, _)| matches!(a, Arg::Buf(..)));
    bufs.map(|(_, &s)| w.memory.bytes(s).unwrap_or(&[]).to_vec()).collect()
}

/// The memory that a launch leaves, by the evaluator of tile programs.
pub fn reference(module: &Module, entry: &str, grid: [u32; 3], args: &[Arg]) -> Vec<Vec<u8>> {
    let mut w = world(args);
    let launch = Launch::new(grid, masked(module, entry, &w.slots));
    cuda_tile::eval::run(module, entry, &launch, &mut w.memory, &mut Silent)
        .unwrap_or_else(|t| panic!("reference: {t:?}"));
    snapshot(&w, args)
}

/// Integer arguments cut to their parameters' widths.
fn masked(module: &Module, entry: &str, slots: &[u64]) -> Vec<u64> {
    let f = module.entry(entry).expect("the entry");
    let of = |i: usize| f.tile_ty(f.params()[i]).and_then(|t| t.num()).map_or(u64::MAX, |d| d.mask());
    slots.iter().enumerate().map(|(i, &s)| s & of(i)).collect()
}

pub fn run_loops(kernel: &Kernel, module: &Module, grid: [u32; 3], args: &[Arg]) -> Result<Vec<Vec<u8>>, String> {
    let mut w = world(args);
    let launch = Launch::new(grid, masked(module, &kernel.name, &w.slots));
    loops::eval::run(kernel, &launch, &mut w.memory, &mut Silent).map_err(|t| format!("{t:?}"))?;
    Ok(snapshot(&w, args))
}

/// The rules in order, until nothing changes; `check` sees the kernel after each change.
pub fn fuse(kernel: Kernel, assume: &Assumptions, check: &mut dyn FnMut(&str, &Kernel, &Kernel)) -> Kernel {
    let mut kernel = kernel;
    for _ in 0..6 {
        let mut changed = false;
        for rule in rules().list {
            if let Some(next) = (rule.run)(&kernel, assume, &mut Log::default()) {
                check(rule.name, &kernel, &next);
                kernel = next;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    kernel
}

/// Evaluates the first entry of the program everywhere; returns the kernel fused under every assumption that holds.
pub fn check(text: &str, grid: [u32; 3], args: &[Arg]) -> Kernel {
    let module = module(text);
    let entry = module.entries().next().expect("an entry").name.clone();
    let lifted = lift(&module, &entry).unwrap_or_else(|d| panic!("{d:#?}"));
    let expected = reference(&module, &entry, grid, args);
    let compare = |what: &str, before: &Kernel, after: &Kernel| {
        let errors = verify(after, Dialect::Loop);
        assert!(errors.is_empty(), "{what}: {errors:#?}\n{}", print(after, Dialect::Loop));
        let got = run_loops(after, &module, grid, args);
        if got.as_ref() != Ok(&expected) {
            let (before, after) = (print(before, Dialect::Loop), print(after, Dialect::Loop));
            let detail = match &got {
                Err(e) => e.clone(),
                Ok(got) => difference(got, &expected),
            };
            panic!("{what}: {detail}\n---- before\n{before}\n---- after\n{after}\n---- program\n{text}");
        }
    };
    compare("lift", &lifted, &lifted);
    let aliased = args.iter().any(|a| matches!(a, Arg::Alias(..)));
    let general = fuse(lifted.clone(), &Assumptions { no_wrap: false, no_alias: false }, &mut |rule, before, after| {
        compare(&format!("{rule} (general)"), before, after)
    });
    assert!(general.obligations.is_empty());
    let slots = masked(&module, &entry, &world(args).slots);
    let launch = Launch::new(grid, slots);
    let fast = fuse(lifted, &Assumptions { no_wrap: true, no_alias: !aliased }, &mut |rule, before, after| {
        if launch_facts::holds(after, &launch) {
            compare(&format!("{rule} (fast)"), before, after);
        }
    });
    if launch_facts::holds(&fast, &launch) { fast } else { general }
}

fn difference(got: &[Vec<u8>], expected: &[Vec<u8>]) -> String {
    for (b, (g, e)) in got.iter().zip(expected).enumerate() {
        if let Some(i) = g.iter().zip(e).position(|(x, y)| x != y) {
            let end = (i + 8).min(g.len());
            return format!("buffer {b} differs at byte {i}: {:?} instead of {:?}", &g[i..end], &e[i..end]);
        }
    }
    "no difference".to_string()
}

// Text of tile programs.

fn dims(shape: &[u64]) -> String {
    shape.iter().map(|n| format!("{n}x")).collect()
}

/// `tile<4x8xf32>`
pub fn tile(shape: &[u64], elem: &str) -> String {
    format!("tile<{}{elem}>", dims(shape))
}

/// `%{var}_p`: the addresses of a dense row-major tile from the parameter `param` on.
fn pointers(var: &str, param: &str, shape: &[u64], elem: &str) -> String {
    let n: u64 = shape.iter().product();
    let ones = vec![1; shape.len()];
    let ptr = format!("ptr<{elem}>");
    let (flat, ints) = (tile(&[n], "i32"), tile(shape, "i32"));
    let (one, many) = (tile(&ones, &ptr), tile(shape, &ptr));
    format!(
        "%{var}_i = iota : {flat}
         %{var}_r = reshape %{var}_i : {flat} -> {ints}
         %{var}_q = reshape %{param} : tile<{ptr}> -> {one}
         %{var}_b = broadcast %{var}_q : {one} -> {many}
         %{var}_p = offset %{var}_b, %{var}_r : {many}, {ints} -> {many}\n"
    )
}

/// Loads `%{var}` from the parameter `param`.
pub fn load(var: &str, param: &str, shape: &[u64], elem: &str) -> String {
    let (many, result) = (tile(shape, &format!("ptr<{elem}>")), tile(shape, elem));
    pointers(var, param, shape, elem)
        + &format!("%{var}, %{var}_t = load_ptr_tko weak %{var}_p : {many} -> {result}, token\n")
}

/// Stores `%{var}` to the parameter `param`.
pub fn store(var: &str, param: &str, shape: &[u64], elem: &str) -> String {
    let (many, value) = (tile(shape, &format!("ptr<{elem}>")), tile(shape, elem));
    let name = format!("{var}_to_{param}");
    pointers(&name, param, shape, elem)
        + &format!("%{name}_t = store_ptr_tko weak %{name}_p, %{var} : {many}, {value} -> token\n")
}

/// An entry `@k`.
pub fn entry(params: &str, body: &str) -> String {
    format!("cuda_tile.module @m {{\nentry @k({params}) {{\n{body}\nreturn\n}}\n}}\n")
}

/// A dense M x N view of a parameter.
pub fn tensor(name: &str, of: &str) -> String {
    format!(
        "%{name} = make_tensor_view %{of}, shape = [%M, %N], strides = [%N, 1] : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>\n"
    )
}
