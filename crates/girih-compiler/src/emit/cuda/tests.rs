//! The CUDA of small kernels, short enough to read.

use super::{Unit, emit};
use crate::kernel::{parse::parse, verify::verify};
use crate::tile::target::Target;

fn unit(texts: &[&str]) -> Unit {
    let kernels: Vec<_> = texts.iter().map(|t| parse(t).unwrap()).collect();
    for (kernel, text) in kernels.iter().zip(texts) {
        assert_eq!(verify(kernel), Vec::<String>::new(), "{text}");
    }
    emit(&kernels.iter().collect::<Vec<_>>(), &Target::named("sm_90a").unwrap()).unwrap()
}

#[test]
fn show() {
    for file in std::fs::read_dir("/work/cuda/tests/cuda").unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        println!("{}", unit(&[&text]).text);
    }
}
