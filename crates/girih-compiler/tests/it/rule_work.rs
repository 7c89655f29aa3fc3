//! The rules' work grows with the program, not with its square: counted in statements and index expressions looked at, so that a busy machine
//! changes nothing.

use girih_compiler::base::work::looked_at;
use girih_compiler::pipeline::{self, Options, Silent};
use girih_compiler::tile::target::Target;

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
    work_for(text, &Options::default())
}

fn work_for(text: &str, options: &Options) -> u64 {
    let module = pipeline::front(text).unwrap_or_else(|d| panic!("{d:#?}")).module;
    let before = looked_at();
    pipeline::lower(&module, "k", options, &mut Silent).unwrap_or_else(|d| panic!("{d:#?}"));
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

/// Three times as many operations take about three times the work. Nests grow up to a limit, which these programs are beyond.
#[track_caller]
fn proportional(what: &str, text: &dyn Fn(usize) -> String) {
    let (small, large) = (work(&text(400)), work(&text(1200)));
    assert!(large <= 4 * small, "{what}: {small} for 400 operations, {large} for 1200");
}

/// Adds the scalar `%s{k}` to the tile.
fn spread(k: usize) -> String {
    format!(
        "%one{k} = reshape %s{k} : tile<f32> -> tile<1xf32>\n%all{k} = broadcast %one{k} : tile<1xf32> -> {TILE}\n\
         %v{k} = addf %v{}, %all{k} : {TILE}\n",
        k - 1
    )
}

/// A scalar of its own for each operation, `%s{k}`.
#[allow(clippy::type_complexity)]
fn scalars() -> [(&'static str, fn(usize) -> String); 4] {
    [
        ("branches", |k| {
            let constants =
                format!("%f{k} = constant <f32: 1.5> : tile<f32>\n%g{k} = constant <f32: 2.5> : tile<f32>\n");
            let branch = format!(
                "%s{k} = if %c{k} -> (tile<f32>) {{ yield %f{k} : tile<f32> }} else {{ yield %g{k} : tile<f32> }}\n"
            );
            condition(k) + &constants + &branch
        }),
        ("arithmetic", |k| {
            condition(k)
                + &format!(
                    "%d{k} = divi %x{k}, %n{k} signed : tile<i32>\n%s{k} = itof %d{k} signed : tile<i32> -> tile<f32>\n"
                )
        }),
        ("loads", |k| {
            format!(
                "%n{k} = constant <i32: {k}> : tile<i32>\n%o{k} = offset %p, %n{k} : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>\n\
                 %s{k}, %u{k} = load_ptr_tko weak %o{k} : tile<ptr<f32>> -> tile<f32>, token\n"
            )
        }),
        ("reductions", |k| {
            format!(
                "%s{k} = reduce %v{} dim=0 identities=[0.0 : f32] : {TILE} -> tile<f32> (%e{k}: tile<f32>, %a{k}: tile<f32>) {{\n\
                 %w{k} = addf %e{k}, %a{k} : tile<f32>\nyield %w{k} : tile<f32>\n}}\n",
                k - 1
            )
        }),
    ]
}

/// The values that the tables of the lowered kernel hold.
fn values(text: &str) -> usize {
    let module = pipeline::front(text).unwrap_or_else(|d| panic!("{d:#?}")).module;
    let lowered = pipeline::lower(&module, "k", &Options::default(), &mut Silent).unwrap_or_else(|d| panic!("{d:#?}"));
    lowered.loops.vals.len()
}

/// Numbers that tiles of the same list take. A link of the chain of tiles gets no values for the links before it.
#[test]
fn scalars_in_tiles() {
    for (what, scalar) in scalars() {
        let text = |n| program(n, |k| scalar(k) + &spread(k));
        proportional(what, &text);
        let (small, large) = (values(&text(100)), values(&text(400)));
        assert!(large <= 5 * small, "{what}: {small} values for 100 operations, {large} for 400");
    }
}

/// The same, all numbers before all tiles, and in a loop.
#[test]
fn scalars_before_tiles() {
    for (what, scalar) in scalars().into_iter().filter(|(what, _)| *what != "reductions") {
        for in_loop in [false, true] {
            let text = |n: usize| {
                let first: String = (1..=n).map(scalar).collect();
                let rest: String = (1..=n).map(spread).collect();
                let (open, close) = match in_loop {
                    true => (
                        format!(
                            "%lo = constant <i32: 0> : tile<i32>\n%up = constant <i32: 7> : tile<i32>\n\
                             %by = constant <i32: 1> : tile<i32>\n%last = for %at in (%lo to %up, step %by) : tile<i32> \
                             iter_values(%carried = %v0) -> ({TILE}) {{\n"
                        ),
                        format!("continue %v{n} : {TILE}\n}}\n%z = addf %last, %v0 : {TILE}\n"),
                    ),
                    false => (String::new(), format!("%z = addf %v{n}, %v0 : {TILE}\n")),
                };
                let body = first + &open + &rest + &close;
                let whole = body + "%t = store_ptr_tko";
                program(0, |_| String::new()).replace("%t = store_ptr_tko", &whole).replace("%q, %v0 :", "%q, %z :")
            };
            proportional(&format!("{what}, in a loop: {in_loop}"), &text);
        }
    }
}

#[test]
fn loads_with_masks() {
    let (pointers, mask) = ("tile<128xptr<f32>>", "tile<128xi1>");
    let load = |k: usize| {
        format!(
            "%n{k} = constant <i32: {k}> : tile<128xi32>\n%o{k} = offset %q, %n{k} : {pointers}, tile<128xi32> -> {pointers}\n\
             %c{k} = cmpi less_than %i, %n{k}, signed : tile<128xi32> -> {mask}\n\
             %l{k}, %u{k} = load_ptr_tko weak %o{k}, %c{k}, %v0 : {pointers}, {mask}, {TILE} -> {TILE}, token\n\
             %v{k} = addf %v{}, %l{k} : {TILE}\n",
            k - 1
        )
    };
    proportional("loads with masks", &|n| program(n, load));
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

/// The values `%{name}0`, `%{name}1`, .. and their types.
fn list(name: &str, n: usize) -> (String, String) {
    let values: Vec<String> = (0..n).map(|i| format!("%{name}{i}")).collect();
    (values.join(", "), vec!["tile<i32>"; n].join(", "))
}

/// Eight branches, one after the other, that change `n` numbers each.
fn carried(n: usize) -> String {
    let mut body = String::from("%x, %y, %z = get_tile_block_id : tile<i32>\n");
    (0..n).for_each(|i| body += &format!("%a0_{i} = addi %x, %y : tile<i32>\n"));
    for k in 1..=8 {
        let (results, types) = list(&format!("a{k}_"), n);
        let (same, _) = list(&format!("a{}_", k - 1), n);
        let (new, _) = list(&format!("b{k}_"), n);
        body += &format!(
            "%n{k} = constant <i32: {k}> : tile<i32>\n%c{k} = cmpi less_than %x, %n{k}, signed : tile<i32> -> tile<i1>\n"
        );
        body += &format!("{results} = if %c{k} -> ({types}) {{\n");
        (0..n).for_each(|i| body += &format!("%b{k}_{i} = muli %a{}_{i}, %n{k} : tile<i32>\n", k - 1));
        body += &format!("yield {new} : {types}\n}} else {{\nyield {same} : {types}\n}}\n");
    }
    for i in 0..n {
        body += &format!(
            "%i{i} = constant <i32: {i}> : tile<i32>\n%p{i} = offset %p, %i{i} : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>\n\
             %t{i} = store_ptr_tko weak %p{i}, %a8_{i} : tile<ptr<i32>>, tile<i32> -> token\n"
        );
    }
    format!("cuda_tile.module @m {{\nentry @k(%p: tile<ptr<i32>>) {{\n{body}}}\n}}\n")
}

/// A processor and GPUs.
fn targets() -> [Options; 3] {
    let gpu = |name| Options { target: Target::named(name).unwrap(), ..Options::default() };
    [Options::default(), gpu("sm_80"), gpu("sm_90a")]
}

#[test]
fn branches_that_carry_many_values() {
    for options in targets() {
        let (small, large) = (work_for(&carried(50), &options), work_for(&carried(400), &options));
        assert!(large <= 10 * small, "{}: {small} for 50 values, {large} for 400", options.target.name);
    }
}

/// Lines of values are broken at the columns that fit, without a look at the rest of the line.
#[test]
fn printed_branches_that_carry_many_values() {
    let printed = |n| {
        let module = pipeline::front(&carried(n)).unwrap_or_else(|d| panic!("{d:#?}")).module;
        let before = looked_at();
        assert!(girih_compiler::cuda_tile::print::print(&module).len() > 100 * n);
        looked_at() - before
    };
    let (small, large) = (printed(50), printed(400));
    assert!(large <= 10 * small, "{small} for 50 values, {large} for 400");
}

/// Numbers, branches and reductions on GPUs, beyond the limit of nests: twice as many take about twice the work.
#[test]
fn families_on_gpus() {
    for options in targets().into_iter().skip(1).step_by(2) {
        for (what, scalar) in scalars() {
            let text = |n| program(n, |k| scalar(k) + &spread(k));
            let (small, large) = (work_for(&text(400), &options), work_for(&text(800), &options));
            assert!(large * 10 < small * 26, "{what} for {}: {small} for 400, {large} for 800", options.target.name);
        }
    }
}
