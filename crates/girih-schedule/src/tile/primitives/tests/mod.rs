//! Every primitive on an example: what it makes of it, that this computes the same, and what it refuses. One file for each primitive or
//! family of them, and the programs that several files take in `programs.rs`.

use super::*;
use crate::loops::print::Dialect;
use crate::loops::verify::verify;
use crate::tile::target::MatrixUnit;
use crate::tile::tests::{ATTENTION, apply, case, evaluate};
use crate::tile::tests::{context, gpu, kernel, text};
use programs::*;

mod attention;
mod bind;
mod cluster;
mod count;
mod distribute;
mod hoist;
mod keep;
mod memory;
mod pair;
mod peel;
mod privatise;
mod products;
mod programs;
mod recompute;
mod refusals;
mod rfactor;
mod scan;
mod split;
mod stage_write;
mod strip;
mod windows;

fn one(before: &str, line: &str, ctx: &Context) -> Result<Kernel, String> {
    let mut k = kernel(before);
    let line = Line::parse(line).unwrap()?;
    let step = Step::read(&line, &k)?;
    // The text of a step is read back as the same step.
    let printed = step.line(&k).to_string();
    assert_eq!(Line::parse(&printed).unwrap().and_then(|line| Step::read(&line, &k)), Ok(step.clone()), "{printed}");
    step.apply(&mut k, ctx)?;
    Ok(k)
}

/// Steps one after the other; every kernel on the way computes what the first one does. `@` is the loop over the terms of a contraction.
fn steps(before: &str, lines: &[&str], ctx: &Context, elements: &[u64]) -> String {
    let mut k = kernel(before);
    let want = evaluate(&k, &case(before, [1, 1, 1], elements));
    for line in lines {
        let now = text(&k);
        let sum = now.lines().find(|l| l.contains("reduce contraction")).and_then(|l| l.split_whitespace().nth(1));
        let line = &line.replace('@', sum.unwrap_or("@"));
        k = one(&now, line, ctx).unwrap_or_else(|why| panic!("{line}: {why}\n{}", text(&k)));
        let wrong: Vec<String> = verify(&k, Dialect::Tile).into_iter().map(|d| d.message).collect();
        assert!(wrong.is_empty(), "{line}: {wrong:?}\n{}", text(&k));
        let got = evaluate(&k, &case(&text(&k), [1, 1, 1], elements));
        assert!(got == want, "{line} changes the value\n{}", text(&k));
    }
    text(&k)
}

/// Every primitive reads, in the order of the alphabet.
#[test]
fn every_primitive_has_a_form_that_reads() {
    for word in words() {
        let line = Line { targets: vec!["q".into()], ..Line::new(word) };
        let said = Step::read(&line, &kernel(ADD)).map(|_| ()).unwrap_err();
        assert!(!said.contains("unknown primitive"), "{word}: {said}");
    }
    assert!(words().is_sorted());
}
