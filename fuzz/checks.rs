//! What must hold for any input. The fuzz targets call these, and so do the tests that replay what was found.

use girih_compiler::base::Diagnostic;
use girih_compiler::cuda_tile::bytecode::{self, Version};
use girih_compiler::cuda_tile::ir::{FuncKind, Module};
use girih_compiler::cuda_tile::parse::parse;
use girih_compiler::cuda_tile::print::{print, print_nvidia, print_nvidia_debug};
use girih_compiler::cuda_tile::verify;
use girih_compiler::source;

use crate::memory::peak_of;

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

/// What was read, verifies and has entries alone is written at its version, and reads back as the same program. Written again, it has the
/// same locations too; the first time, those that no reader of NVIDIA's would take may become others.
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

/// An ONNX model becomes a graph or is refused with reasons, in little memory.
pub fn onnx(bytes: &[u8]) {
    let file = bytes::Bytes::copy_from_slice(bytes);
    let (result, peak) = peak_of(|| source::onnx::import(&file, &source::onnx::Options::default()));
    let most = BASE + 8 * MULTIPLE * bytes.len();
    assert!(peak <= most, "reading {} bytes took {peak}", bytes.len());
    if let Err(diagnostics) = result {
        assert!(diagnostics.iter().any(Diagnostic::is_error), "refused without a word");
    }
}
