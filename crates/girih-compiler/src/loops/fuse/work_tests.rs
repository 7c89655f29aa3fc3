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

/// The number of statements that the rules looked at.
fn work(text: &str) -> u64 {
    let module = pipeline::front(text).unwrap_or_else(|d| panic!("{d:#?}")).module;
    let before = looked_at();
    pipeline::lower(&module, "k", &Options::default(), &mut Silent).unwrap_or_else(|d| panic!("{d:#?}"));
    looked_at() - before
}

#[track_caller]
fn linear(what: &str, operation: impl Fn(usize) -> String) {
    grows_with(1000, what, operation);
}

/// Eight times as many operations take about eight times the work.
#[track_caller]
fn grows_with(n: usize, what: &str, operation: impl Fn(usize) -> String) {
    let (small, large) = (work(&program(n, &operation)), work(&program(8 * n, &operation)));
    assert!(large <= 10 * small, "{what}: {small} for {n} operations, {large} for {}", 8 * n);
}

/// A condition of its own for each operation.
fn condition(k: usize) -> String {
    format!(
        "%x{k}, %y{k}, %z{k} = get_tile_block_id : tile<i32>\n%n{k} = constant <i32: {k}> : tile<i32>\n\
         %c{k} = cmpi less_than %x{k}, %n{k}, signed : tile<i32> -> tile<i1>\n"
    )
}

#[test]
fn branches_one_after_the_other() {
    grows_with(60, "tiles of branches", |k| {
        let last = k - 1;
        format!(
            "{}%v{k} = if %c{k} -> ({TILE}) {{\n%w{k} = addf %v{last}, %v0 : {TILE}\nyield %w{k} : {TILE}\n}} else {{\n\
             yield %v{last} : {TILE}\n}}\n",
            condition(k)
        )
    });
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
