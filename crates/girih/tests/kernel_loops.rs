//! Loop and tile IR as native code, against the evaluator, bit for bit.

mod calling;

use girih_compiler::base::launch::Launch;
use girih_compiler::base::memory::VecMemory;
use girih_compiler::base::target::Target;
use girih_compiler::kernel::legalise::{Options, legalise};
use girih_compiler::loops::{eval, ir, parse};
use girih_compiler::num::DType;

#[test]
fn show() {
    let text = std::fs::read_to_string(std::env::var("F").unwrap()).unwrap();
    for (k, _) in parse::parse_all(&text).unwrap() {
        let l = legalise(&k, &Target::default(), &Options { check: std::env::var("CHECK").is_ok() }).unwrap();
        println!("{}", girih_compiler::emit::c::emit(&[&l], &Target::default()));
    }
}
