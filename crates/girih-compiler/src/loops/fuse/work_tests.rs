//! The rules' work grows with the program, not with its square: counted in statements and index expressions looked at, so that a busy machine
//! changes nothing.

use crate::base::work::looked_at;
use crate::pipeline::{self, Options, Silent};

const TILE: &str = "tile<128xf32>";

/// An entry that loads a tile of `%p`, does `n` operations and stores the last value.
fn program(n: usize, operation: impl Fn(usize) -> String) -> String {
    let pointers = "tile<128xptr<f32>>";
    let mut body = format!(
        "%i = iota : tile<128xi32>\n%r = reshape %p : tile<ptr<f32>> -> tile<1xptr<f32>>\n\
         %b = broadcast %r : tile<1xptr<f32>> -> {pointers}\n%q = offset %b, %i : {pointers}, tile<128xi32> -> {pointers}\n\
         %v0, %t0 = load_ptr_tko weak %q : {pointers} -> {TILE}, token\n"
    );
    (1..=n).for_each(|k| body += &operation(k));
    body += &format!("%t = store_ptr_tko weak %q, %v{n} : {pointers}, {TILE} -> token\n");
    format!("cuda_tile.module @m {{\nentry @k(%p: tile<ptr<f32>>) {{\n{body}}}\n}}\n")
}

/// What the rules looked at.
fn work(text: &str) -> u64 {
    let module = pipeline::front(text).unwrap_or_else(|d| panic!("{d:#?}")).module;
    let before = looked_at();
    pipeline::lower(&module, "k", &Options::default(), &mut Silent).unwrap_or_else(|d| panic!("{d:#?}"));
    looked_at() - before
}

#[track_caller]
fn linear(what: &str, operation: impl Fn(usize) -> String) {
    let (small, large) = (work(&program(1000, &operation)), work(&program(8000, &operation)));
    assert!(large <= 10 * small, "{what}: {small} for 1,000 operations, {large} for 8,000");
}

#[test]
fn a_chain() {
    linear("a chain", |k| format!("%v{k} = addf %v{}, %v0 : {TILE}\n", k - 1));
}

#[test]
fn values_that_are_used_twice() {
    linear("values used twice", |k| format!("%v{k} = addf %v{}, %v{} : {TILE}\n", k - 1, k.saturating_sub(2)));
}

#[test]
fn stores_in_between() {
    let pointers = "tile<128xptr<f32>>";
    linear("stores in between", |k| {
        let next = format!("%v{k} = addf %v{}, %v0 : {TILE}\n", k - 1);
        match k % 4 {
            0 => format!("{next}%s{k} = store_ptr_tko weak %q, %v{k} : {pointers}, {TILE} -> token\n"),
            _ => next,
        }
    });
}
