//! Small programs run against results worked out here.

mod dtypes;
mod memory;
mod values;

use super::*;
use crate::base::memory::VecMemory;
use crate::cuda_tile::parse::parse;
use crate::cuda_tile::verify;

/// A host that keeps what was printed.
#[derive(Default)]
struct Recorder {
    text: String,
}

impl Host for Recorder {
    fn print(&mut self, _block: [u32; 3], text: &str) {
        self.text.push_str(text);
    }
    fn interrupted(&self) -> bool {
        false
    }
}

struct Outcome {
    result: Result<Report, Trap>,
    /// The bytes of the buffers passed, after the run.
    buffers: Vec<Vec<u8>>,
    printed: String,
}

fn module(text: &str) -> Module {
    let parsed = parse(text);
    let errors: Vec<_> = parsed.diagnostics.iter().filter(|d| d.is_error()).collect();
    assert!(errors.is_empty(), "{errors:#?} in {text}");
    let module = parsed.module.expect("a module");
    let errors: Vec<_> = verify(&module).into_iter().filter(|d| d.is_error()).collect();
    assert!(errors.is_empty(), "{errors:#?} in {text}");
    module
}

/// An argument: a buffer or a scalar's bits.
enum Arg {
    Buffer(Vec<u8>),
    Scalar(u64),
}

/// Runs the first entry of a module.
fn launch(text: &str, grid: [u32; 3], seed: u64, args: Vec<Arg>) -> Outcome {
    let module = module(text);
    let entry = module.entries().next().map(|f| f.name.clone()).unwrap_or_default();
    let mut memory = VecMemory::new();
    let mut slots = vec![];
    let mut addresses = vec![];
    for (i, arg) in args.into_iter().enumerate() {
        match arg {
            Arg::Buffer(bytes) => {
                let addr = memory.add(&format!("buffer {i}"), bytes);
                addresses.push(addr);
                slots.push(addr);
            }
            Arg::Scalar(bits) => slots.push(bits),
        }
    }
    let mut host = Recorder::default();
    let launch = Launch { seed, ..Launch::new(grid, slots) };
    let options = Options { fuel: Some(10_000_000), ..Options::default() };
    let result = run_with(&module, &entry, &launch, &mut memory, &mut host, &options);
    let buffers = addresses.iter().map(|&a| memory.bytes(a).map(<[u8]>::to_vec).unwrap_or_default()).collect();
    Outcome { result, buffers, printed: host.text }
}

/// Runs an entry body on one block with the given parameter list.
fn body(params: &str, text: &str, args: Vec<Arg>) -> Outcome {
    launch(&format!("cuda_tile.module @m {{ entry @k({params}) {{\n{text}\nreturn\n}} }}"), [1, 1, 1], 0, args)
}

/// The output of an entry body.
fn prints(text: &str) -> String {
    let out = body("", text, vec![]);
    assert_eq!(out.result.as_ref().err(), None);
    out.printed
}

/// The trap of an entry body.
fn traps(text: &str) -> Trap {
    body("", text, vec![]).result.expect_err("the program should trap")
}

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
fn i32s(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
fn as_f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}
fn as_i32s(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks_exact(4).map(|c| i32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}
