//! Properties that hold for any input. The fuzz targets call these checks, and so do the tests that replay earlier
//! findings.

use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::cuda_tile::bytecode::{self, Version};
use girih_compiler::cuda_tile::ir::{FuncKind, Module};
use girih_compiler::cuda_tile::parse::parse;
use girih_compiler::cuda_tile::print::{print, print_nvidia, print_nvidia_debug};
use girih_compiler::cuda_tile::verify;
use girih_compiler::graph::Graph;
use girih_compiler::{pipeline, source, ttir};

use super::memory::peak_of;

/// Reading may take this much memory, and [`MULTIPLE`] times the file.
const BASE: usize = 24 << 20;
const MULTIPLE: usize = 256;

fn errors(module: &Module) -> bool {
    verify(module).iter().any(Diagnostic::is_error)
}

/// Bytes are a module, or refused with a place in them; in little memory.
pub fn read(bytes: &[u8]) -> Option<(Module, Version)> {
    let (result, peak) = peak_of(|| bytecode::read(bytes));
    let most = BASE + MULTIPLE * bytes.len();
    assert!(peak <= most, "reading {} bytes took {peak}", bytes.len());
    match result {
        Ok(read) => {
            if !errors(&read.module) {
                print(&read.module);
                print_nvidia(&read.module);
                print_nvidia_debug(&read.module);
            }
            Some((read.module, read.version))
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "refused without a word");
            for d in diagnostics {
                let span = d.span.unwrap_or_else(|| panic!("{d:?} has no place"));
                assert!(span.start <= span.end && span.end as usize <= bytes.len(), "{d:?} is outside the file");
            }
            None
        }
    }
}

/// A program that was read, verifies and has only entries is written at its version, and reads back the same. Written
/// again, it has the same locations too; the first time, locations that no reader of NVIDIA's would take may become others.
pub fn roundtrip(bytes: &[u8]) {
    let Some((module, version)) = read(bytes) else { return };
    let functions = module.funcs.iter().any(|f| f.kind != FuncKind::Entry);
    if errors(&module) || functions || version > Version::V13_4 {
        return;
    }
    let text = print_nvidia(&module);
    let again = rewritten(&module, version);
    assert_eq!(print_nvidia(&again), text);
    assert_eq!(print_nvidia_debug(&rewritten(&again, version)), print_nvidia_debug(&again));
}

fn rewritten(module: &Module, version: Version) -> Module {
    let text = || print_nvidia_debug(module);
    let written = bytecode::write(module, version).unwrap_or_else(|d| panic!("not written: {d:?}\n{}", text()));
    let again = bytecode::read(&written).unwrap_or_else(|d| panic!("not read back: {d:?}\n{}", text()));
    assert_eq!(again.version, version);
    again.module
}

/// Text is parsed or refused; a program that verifies is printed with its locations, and the print is parsed as the same.
pub fn text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let parsed = parse(text);
    let Some(module) = parsed.module else {
        assert!(parsed.diagnostics.iter().any(Diagnostic::is_error), "refused without a word");
        return;
    };
    if errors(&module) {
        return;
    }
    let printed = print_nvidia_debug(&module);
    let again = parse(&printed);
    let module = again.module.unwrap_or_else(|| panic!("not parsed: {:?}\n{printed}", again.diagnostics));
    assert_eq!(print_nvidia_debug(&module), printed);
    print(&module);
}

/// TTIR is read in little memory, or refused with a reason; what it becomes, if that verifies, is printed and parsed as the same.
pub fn ttir(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (result, peak) = peak_of(|| ttir::read(text));
    // An operation may become a few dozen, and a block that several ways reach several.
    let most = BASE + 64 * MULTIPLE * bytes.len();
    assert!(peak <= most, "reading {} bytes took {peak}", bytes.len());
    match result {
        Ok(module) if !errors(&module) => {
            let printed = print(&module);
            let again = parse(&printed);
            let module = again.module.unwrap_or_else(|| panic!("not parsed: {:?}\n{printed}", again.diagnostics));
            assert_eq!(print(&module), printed);
        }
        Ok(_) => {}
        Err(diagnostics) => assert!(!diagnostics.is_empty(), "refused without a word"),
    }
}

/// An ONNX model becomes a graph or is refused with reasons, in little memory; a small graph becomes C.
pub fn onnx(bytes: &[u8]) {
    if let Some(graph) = model(bytes) {
        lowered(&graph);
    }
}

/// The first half of [`onnx`].
pub fn model(bytes: &[u8]) -> Option<Graph> {
    let file = bytes::Bytes::copy_from_slice(bytes);
    let options = source::onnx::Options { listed: Some(LISTED), ..source::onnx::Options::default() };
    let (result, peak) = peak_of(|| source::onnx::import(&file, &options));
    let most = BASE + LISTED as usize + 8 * MULTIPLE * bytes.len();
    assert!(peak <= most, "reading {} bytes took {peak}", bytes.len());
    match result {
        Ok(graph) => Some(graph),
        Err(diagnostics) => {
            refused(&diagnostics);
            None
        }
    }
}

/// A one-line expression becomes a graph or is refused at a place in it, in little memory; a small graph becomes C.
pub fn expr(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (result, peak) = peak_of(|| source::expr::evaluate(text, &[]));
    // The prelude's modules, and the steps that any text may take.
    let most = EXPRESSION + MULTIPLE * bytes.len();
    assert!(peak <= most, "evaluating {} bytes took {peak}", bytes.len());
    match result {
        Ok(evaluated) => lowered(&evaluated.graph),
        Err(diagnostics) => {
            refused(&diagnostics);
            for d in diagnostics {
                let span = d.span.unwrap_or_else(|| panic!("{d:?} has no place"));
                assert!(span.start <= span.end && span.end as usize <= bytes.len(), "{d:?} is outside the text");
            }
        }
    }
}

/// The most memory that lists of decompositions may take in these checks.
const LISTED: u64 = 16 << 20;
/// The most memory that evaluating any expression takes.
const EXPRESSION: usize = 1 << 30;
/// Graphs with more operations are not lowered here: that would make runs slow, not deep.
const SMALL: usize = 64;
/// Lowering a small graph may take this much.
const LOWERING: usize = 1 << 30;

fn refused(diagnostics: &[Diagnostic]) {
    assert!(diagnostics.iter().any(Diagnostic::is_error), "refused without a word");
    assert!(diagnostics.iter().all(|d| d.code != Code::InternalBug), "a bug of ours: {diagnostics:?}");
}

/// A small graph is lowered to C, or refused.
fn lowered(graph: &Graph) {
    if graph.nodes.len() > SMALL {
        return;
    }
    let options = pipeline::Options::default();
    let lower = || -> Result<(), Vec<Diagnostic>> {
        let model = pipeline::lower_model(graph, &options, &mut pipeline::Silent)?;
        for step in model.scheduled.load.iter().chain(&model.scheduled.steps) {
            let lowered =
                pipeline::lower_loops(step.kernel.clone(), &options, &mut options.rewrites(), &mut pipeline::Silent)?;
            pipeline::emit_c(&[&lowered.kernel], &options.target).expect("C of a kernel");
        }
        Ok(())
    };
    let (result, peak) = peak_of(lower);
    assert!(peak <= LOWERING, "lowering {} operations took {peak}", graph.nodes.len());
    if let Err(diagnostics) = result {
        refused(&diagnostics);
    }
}
