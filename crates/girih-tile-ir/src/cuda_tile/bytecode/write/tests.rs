use super::*;
use crate::cuda_tile::parse::parse;

fn module(text: &str) -> Module {
    let parsed = parse(text);
    parsed.module.unwrap_or_else(|| panic!("{:#?}", parsed.diagnostics))
}

/// Taken apart by hand: 13.1, one entry without parameters or places that returns.
#[test]
fn the_smallest_program() {
    let bytes = write(&module("entry @k() {\n  return\n}\n"), Version::V13_1).unwrap();
    let mut expected = MAGIC.to_vec();
    expected.extend([13, 1, 0, 0]);
    // One function: name 0, type 0, kernel, no places, 3 bytes: return, no results, no operands.
    expected.extend([0x82, 9, 8, 0xcb]);
    expected.extend([1, 0, 0, 2, 0, 3, 0x5c, 0, 0]);
    // One type: a function of nothing.
    expected.extend([0x85, 11, 4, 0xcb, 0xcb, 0xcb, 0xcb]);
    expected.truncate(expected.len() - 4);
    let at = expected.len();
    expected.resize(at.next_multiple_of(4), 0xcb);
    expected.extend([1, 0xcb, 0xcb, 0xcb, 0, 0, 0, 0, 16, 0, 0]);
    expected.extend([0x81, 9, 4]);
    let at = expected.len();
    expected.resize(at.next_multiple_of(4), 0xcb);
    expected.extend([1, 0xcb, 0xcb, 0xcb, 0, 0, 0, 0, b'k', 0]);
    assert_eq!(bytes, expected);
}

fn codes(text: &str, version: Version) -> Vec<String> {
    write(&module(text), version).err().unwrap_or_default().into_iter().map(|d| d.message).collect()
}

#[test]
fn what_is_newer_is_refused_unless_it_says_nothing() {
    let entry = |body: &str| format!("entry @k(%x: tile<f32>, %n: tile<i32>) {{\n{body}\n  return\n}}\n");
    for (first, what, body) in [
        ("13.2", "the operation `atan2`", "%y = atan2 %x, %x : tile<f32>"),
        ("13.2", "`overflow` of `negi`", "%y = negi %n overflow<no_signed_wrap> : tile<i32>"),
        ("13.2", "`rounding_mode` of `tanh`", "%y = tanh %x rounding<approx> : tile<f32>"),
        ("13.3", "`rounding_mode` of `exp`", "%y = exp %x rounding<approx> : tile<f32>"),
        ("13.2", "`unsignedCmp` of `for`", "for unsigned %i in (%n to %n, step %n) : tile<i32> {\n}"),
        ("13.2", "the operand `token` of `print_tko`", "%t = make_token : token\nprint_tko \"\" token = %t -> token"),
        ("13.2", "the result of `print_tko`", "%t = print_tko \"\" -> token\n%u = join_tokens %t, %t : token"),
        (
            "13.4",
            "`saturating` of `ftoi`",
            "%y = ftoi %x signed rounding<nearest_int_to_zero> saturating : tile<f32> -> tile<i32>",
        ),
        ("13.3", "the element type `i4`", "%y = trunci %n : tile<i32> -> tile<i4>"),
        (
            "13.1",
            "",
            "%y = exp %x : tile<f32>\n%z = tanh %x : tile<f32>\n%w = negi %n : tile<i32>\nprint_tko \"\" -> token",
        ),
    ] {
        let text = entry(body);
        for version in VERSIONS {
            let expected = match version.to_string().as_str() < first {
                true => vec![format!("{what} cannot be written as bytecode {version}: it needs {first} or later")],
                false => vec![],
            };
            assert_eq!(codes(&text, version), expected, "{body}");
        }
        assert_eq!(write_oldest(&module(&text)).unwrap().1.to_string(), first);
    }
}

#[test]
fn everything_is_written_once() {
    let text = "entry @k(%x: tile<f32>) {\n  assert %t, \"said twice\" : tile<i1>\n  return\n}\n";
    let text = text.replace("  assert", "  %t = constant <i1: true> : tile<i1>\n  %u = constant <i1: true> : tile<i1>\n  assert %u, \"said twice\" : tile<i1>\n  assert");
    let bytes = write(&module(&text), Version::V13_1).unwrap();
    let said = bytes.windows(10).filter(|w| w == b"said twice").count();
    assert_eq!(said, 1);
    assert_eq!(bytes, write(&module(&text), Version::V13_1).unwrap());
    let full = "entry @k() {\n  %c = constant <i32: 7> : tile<1024xi32>\n  return\n}\n";
    assert!(write(&module(full), Version::V13_1).unwrap().len() < 128, "a splat takes one element");
}

#[test]
fn places_without_a_scope_get_that_of_their_function() {
    let text = "entry @k(%x: tile<f32>) {\n  %y = absf %x : tile<f32> loc(\"lib/a.py\":7:2)\n  return\n}\n";
    let bytes = write(&module(text), Version::V13_1).unwrap();
    let read = crate::cuda_tile::bytecode::read(&bytes).unwrap().module;
    let chain = |loc: &Loc| crate::base::location::chain_text(&loc.frames());
    assert_eq!(chain(&read.funcs[0].ops.values().next().unwrap().loc), "lib/a.py:7:2 in k");
    assert_eq!(read.funcs[0].loc.scope().and_then(Scope::function).unwrap().file.directory.as_ref(), "lib");
    assert!(crate::cuda_tile::verify(&read).is_empty());
}

/// The module read from each file of the corpus is written at every version that can express it, and reads back as it
/// was.
#[test]
fn the_corpus_is_written_at_every_version() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/bytecode/corpus");
    let (mut written, mut refused) = (0, 0);
    for folder in std::fs::read_dir(corpus).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let file = file.unwrap().path();
            let Ok(first) = crate::cuda_tile::bytecode::read(&std::fs::read(&file).unwrap()) else { continue };
            let text = crate::cuda_tile::print::print_nvidia_debug(&first.module);
            for version in VERSIONS {
                let Ok(bytes) = write(&first.module, version) else {
                    assert!(version < first.version || first.version > Version::V13_4, "{}", file.display());
                    refused += 1;
                    continue;
                };
                let again =
                    crate::cuda_tile::bytecode::read(&bytes).unwrap_or_else(|d| panic!("{}: {d:?}", file.display()));
                assert_eq!(again.version, version);
                assert_eq!(crate::cuda_tile::print::print_nvidia_debug(&again.module), text, "{}", file.display());
                assert_eq!(write(&again.module, version).unwrap(), bytes, "{}", file.display());
                written += 1;
            }
        }
    }
    assert!(written > 500 && refused > 20, "{written} written, {refused} refused");
}
