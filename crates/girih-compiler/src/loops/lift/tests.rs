//! The lift against the evaluators.

use crate::cuda_tile::parse::parse;
use crate::loops::print::{Stage, print};

#[test]
#[ignore]
fn show() {
    for file in std::env::var("FILE").unwrap().split_whitespace() {
        println!("======== {file}");
        show_one(file);
    }
}
fn show_one(file: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    let parsed = parse(&text);
    let module = parsed.module.expect("parses");
    let name = module.entries().next().unwrap().name.clone();
    let mut kernel = super::lift(&module, &name).expect("lifts");
    let ctx = crate::base::rule::Context {
        target: Default::default(),
        knobs: crate::base::target::Knobs { all: vec![] },
        assume: crate::base::target::Assumptions { no_wrap: true, no_alias: true },
    };
    if std::env::var("LIFTED").is_ok() {
        println!("{}", print(&kernel, Stage::Loop));
    }
    for round in 0..4 {
        let mut changed = false;
        for rule in crate::loops::fuse::RULES {
            let mut log = Default::default();
            if let Some(next) = (rule.run)(&kernel, &ctx, &mut log) {
                kernel = next;
                changed = true;
                println!("-- round {round} {} {log:?}", rule.name);
                if std::env::var("STEPS").is_ok() {
                    println!("{}", print(&kernel, Stage::Loop));
                }
            }
        }
        if !changed {
            break;
        }
    }
    println!("{}", print(&kernel, Stage::Loop));
}
