//! TTIR: what Triton prints for the kernels of `tests/triton/kernels.py` (`tests/ttir`), read whole and broken.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::cuda_tile::print;
use girih_compiler::pipeline;
use girih_compiler::ttir::{is_ttir, read};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ttir")
}

/// Every file of `tests/ttir`, by name.
fn files() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "ttir"))
        .map(|p| (p.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&p).unwrap()))
        .collect();
    found.sort();
    assert!(found.len() > 10);
    found
}

/// Converts `lines` within a kernel of two pointers and a tile of eight numbers.
fn kernel(lines: &str) -> Result<String, Vec<Diagnostic>> {
    let text = format!(
        r#"module {{
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>) {{
    %r = tt.make_range {{end = 8 : i32, start = 0 : i32}} : tensor<8xi32>
    %pp = tt.splat %p : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %pa = tt.addptr %pp, %r : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    %x = tt.load %pa : tensor<8x!tt.ptr<f32>>
    {lines} loc(#user)
    tt.return
  }}
}}
#here = loc("kernel.py":7:3)
#user = loc("y"(#here))
"#
    );
    pipeline::front(&text).map(|front| print::print(&front.module))
}

fn refused(lines: &str) -> Diagnostic {
    match kernel(lines) {
        Ok(text) => panic!("accepted: {text}"),
        Err(mut all) => all.remove(0),
    }
}

/// The Tile IR of each file stands beside it; `BLESS=1` writes it.
#[test]
fn files_become_tile_ir() {
    let mut wrong = vec![];
    for (name, text) in files() {
        assert!(is_ttir(&text), "{name}");
        let front = pipeline::front(&text).unwrap_or_else(|e| panic!("{name}: {e:#?}"));
        let printed = print::print(&front.module);
        // Reading it again finds every value where it is defined.
        if let Err(e) = pipeline::front(&printed) {
            panic!("{name}: {e:#?}\n{printed}");
        }
        let path = folder().join(format!("{name}.mlir"));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &printed).unwrap();
        } else if std::fs::read_to_string(&path).unwrap_or_default() != printed {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "these become something else; BLESS=1 and read the diff: {wrong:?}");
}

#[test]
fn operations_are_converted() {
    let cases = [
        ("%y = arith.addf %x, %x : tensor<8xf32>", "addf"),
        ("%y = arith.cmpf ord, %x, %x : tensor<8xf32>", "andi"),
        ("%y = arith.cmpi ult, %r, %r : tensor<8xi32>", "cmpi less_than"),
        ("%y = tt.expand_dims %x {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>", "tile<1x8xf32>"),
        ("%y:2 = arith.mului_extended %r, %r : tensor<8xi32>", "mulhii"),
        ("%y = arith.constant dense<[1, 2, 3, 4, 5, 6, 7, 8]> : tensor<8xi8>", "[1, 2, 3, 4, 5, 6, 7, 8]"),
        ("%y = arith.constant 0xFF800000 : f32", "0xFF800000"),
        ("%y = math.erf %x : tensor<8xf32>", "extern_elementwise"),
        ("%y = arith.maximumf %x, %x : tensor<8xf32>", "propagate_nan"),
        ("tt.store %pa, %x : tensor<8x!tt.ptr<f32>>", "token = %"),
        (r#"%y = "arith.addf"(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>"#, "addf"),
    ];
    for (line, part) in cases {
        let text = kernel(line).unwrap_or_else(|e| panic!("{line}: {e:#?}"));
        assert!(text.contains(part), "{line} becomes\n{text}");
    }
}

/// The types that only Triton's programs have print as Tile IR that is read again.
#[test]
fn rare_floats_are_read_again() {
    for to in ["f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3FN", "f8E5M2"] {
        let narrow = format!("%n = tt.fp_to_fp %x, rounding = rtne : tensor<8xf32> -> tensor<8x{to}>\n    ");
        for line in [
            format!("%y = arith.extf %n : tensor<8x{to}> to tensor<8xf32>"),
            format!("%y = tt.bitcast %n : tensor<8x{to}> -> tensor<8xi8>"),
            format!("%y = math.absf %n : tensor<8x{to}>"),
            format!("%y = arith.constant dense<1.5> : tensor<8x{to}>"),
            format!("%y = tt.int_to_ptr %c : i64 -> !tt.ptr<{to}>"),
        ] {
            let line = format!("%c = arith.constant 64 : i64\n    {narrow}{line}");
            let text = kernel(&line).unwrap_or_else(|e| panic!("{line}: {e:#?}"));
            assert!(text.contains(to), "{line} becomes\n{text}");
            let again = pipeline::front(&text).unwrap_or_else(|e| panic!("{line}: {e:#?}\n{text}"));
            assert_eq!(print::print(&again.module), text, "{line}");
        }
    }
}

/// An unsupported operation is refused by name, at the user's line.
#[test]
fn refusals_name_the_operation_and_the_line() {
    let cases = [
        ("%y = tt.frobnicate %x : tensor<8xf32>", Code::UnknownOp, "`tt.frobnicate`"),
        (
            r#"%y = tt.elementwise_inline_asm "x" {packed_element = 1 : i32, pure = true} %x : tensor<8xf32> -> tensor<8xf32>"#,
            Code::UnknownOp,
            "inline_asm",
        ),
        ("ttg.local_load %x : tensor<8xf32>", Code::UnknownOp, "`ttg.local_load`"),
        ("%y = arith.truncf %x : tensor<8xf32> to tensor<8xf8E4M3B11FNUZ>", Code::UnknownType, "f8E4M3B11FNUZ"),
        ("%y = arith.addf %x, %nothing : tensor<8xf32>", Code::UndefinedValue, "`%nothing`"),
        ("%y = arith.addf %x, %r : tensor<8xf32>", Code::TypeMismatch, "addf"),
        ("%y = tt.load %x : tensor<8xf32>", Code::OperandCount, "tt.load"),
        (
            r#"%y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_nonesuch"} : (tensor<8xf32>) -> tensor<8xf32>"#,
            Code::UnknownOp,
            "__nv_nonesuch",
        ),
        ("%y = arith.cmpf wat, %x, %x : tensor<8xf32>", Code::UnknownWord, "`wat`"),
    ];
    for (line, code, part) in cases {
        let d = refused(line);
        assert_eq!(d.code, code, "{line}: {d:#?}");
        assert!(d.message.contains(part), "{line}: {d:#?}");
        let place = d.frames.iter().next().map(|f| (f.place.file.to_string(), f.place.line));
        assert_eq!(place, Some(("kernel.py".to_string(), 7)), "{line}: {d:#?}");
    }
}

#[test]
fn other_texts_are_not_ttir() {
    for text in
        ["", "module", "module {", "cuda_tile.module @k { }", "module { cuda_tile.module @k {} }", "loop kernel k()"]
    {
        assert!(!is_ttir(text), "{text}");
    }
    assert!(is_ttir("// a\n#loc = loc(unknown)\nmodule attributes {a = {}} {\n  tt.func @k() {"));
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

fn survives(text: &str) {
    let done = catch_unwind(AssertUnwindSafe(|| {
        let _ = read(text);
        let _ = pipeline::front(text);
    }));
    assert!(done.is_ok(), "a panic for\n{text}");
}

/// Cut short anywhere, a file is refused; with characters changed it is refused or read, and nothing panics.
#[test]
fn broken_files_are_refused() {
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    for (name, text) in files() {
        let end = text.rfind('}').unwrap();
        for at in (0..end).filter(|at| text.is_char_boundary(*at)).step_by(1 + text.len() / 1500) {
            survives(&text[..at]);
            assert!(read(&text[..at]).is_err(), "{name} cut at {at} is read");
        }
        for _ in 0..300 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len());
                match rng.below(3) {
                    0 => bytes[at] = b" %#!{}()<>[]:,=-0123456789abxfi\"\n"[rng.below(33)],
                    1 => drop(bytes.remove(at)),
                    _ => {
                        let from = rng.below(bytes.len());
                        let part = bytes[from..(from + rng.below(20)).min(bytes.len())].to_vec();
                        bytes.splice(at..at, part);
                    }
                }
            }
            if let Ok(text) = String::from_utf8(bytes) {
                survives(&text);
            }
        }
    }
}
