use super::*;

/// The diagnostics of a text, one a line, with the text each points at.
fn report(text: &str) -> String {
    let lines = parse(text).diagnostics.into_iter().map(|d| {
        let at = d.span.and_then(|s| text.get(s.start as usize..s.end as usize)).unwrap_or("?");
        format!("{} {} [{}]", d.code.text(), d.message, at.lines().next().unwrap_or(""))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The conformance programs, where they lie beside the project.
fn conformance() -> Option<std::fs::ReadDir> {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().find_map(|dir| std::fs::read_dir(dir.join("shared/conformance/tile")).ok())
}

#[test]
fn conformance_programs_are_read() {
    let Some(entries) = conformance() else { return };
    let mut files: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
    files.sort();
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let parsed = parse(&text);
        let rejected = ["op_14", "op_73", "op_75"].iter().any(|n| name.starts_with(n)) || name.contains("fragment");
        assert_eq!(parsed.module.is_none(), rejected, "{name}: {}", report(&text));
        if rejected {
            assert!(parsed.diagnostics.iter().any(|d| d.is_error() && d.span.is_some()), "{name}");
        }
        let warns =
            ["op_20", "op_54", "op_70", "program_01", "program_03", "program_08"].iter().any(|n| name.starts_with(n));
        let has = parsed.diagnostics.iter().any(|d| d.code == Code::OldSpelling);
        assert_eq!(has, warns, "{name}: {}", report(&text));
    }
}

/// A program around statements of an entry with a few parameters.
fn body(statements: &str) -> String {
    format!("entry @k(%n: tile<i32>, %v: tile<4xf32>, %c: tile<i1>, %p: tile<ptr<f32>>) {{\n{statements}\n}}")
}

#[track_caller]
fn rejects(text: &str, want: &str) {
    let parsed = parse(text);
    assert!(parsed.module.is_none(), "accepted: {text}");
    assert_eq!(report(text), want);
}

#[track_caller]
fn accepts(text: &str, want: &str) {
    let parsed = parse(text);
    assert!(parsed.module.is_some(), "{}", report(text));
    assert_eq!(report(text), want);
}

#[test]
fn e0101_syntax() {
    rejects(&body("  %a = absi %n tile<i32>"), "E0101 expected `:` and the types, found `tile` [tile]");
    rejects("entry @k() {", "E0101 the file ends inside a block []");
    rejects("cuda_tile.module @m {", "E0101 the file ends inside a module []");
    rejects(&body("  assert %c, \"open"), "E0101 expected a string, found a string without a closing quote [\"open]");
}

#[test]
fn e0102_unknown_operation() {
    let text = body("  %a = adff %v, %v : tile<4xf32>\n  %b = absf %a : tile<4xf32>");
    rejects(&text, "E0102 unknown operation `adff` [adff]");
    assert_eq!(parse(&text).diagnostics[0].help.as_deref(), Some("did you mean `addf`?"));
}

#[test]
fn e0103_undefined_value() {
    rejects(&body("  %a = absi %nn : tile<i32>"), "E0103 the value %nn is not defined here [%nn]");
    // A value of an inner region is not visible after it.
    let inner = body("  if %c {\n    %x = absi %n : tile<i32>\n  }\n  %y = absi %x : tile<i32>");
    rejects(&inner, "E0103 the value %x is not defined here [%x]");
}

#[test]
fn e0104_redefinition() {
    let text = body("  %a = absi %n : tile<i32>\n  %a = absi %n : tile<i32>");
    rejects(&text, "E0104 %a is defined twice [%a]");
    assert_eq!(parse(&text).diagnostics[0].labels.len(), 1);
    rejects("entry @k() {}\nentry @k() {}", "E0104 @k is defined twice [@k]");
    // Siblings may share a name.
    accepts(&body("  if %c {\n    %x = absi %n : tile<i32>\n  } else {\n    %x = absi %n : tile<i32>\n  }"), "");
}

#[test]
fn e0105_too_large() {
    let deep = |n: usize| body(&format!("{}{}", "if %c {\n".repeat(n), "}\n".repeat(n)));
    accepts(&deep(150), "");
    rejects(&deep(5000), "E0105 the text nests deeper than 200 levels [{]");
    let list = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(report(&body(&format!("  %a = constant <i32: {list}> : tile<i32>"))).starts_with("E0105"));
    let big = body("  %a = iota : tile<4294967296x4294967296xi32>");
    assert!(report(&big).starts_with("E0105 the tile has more elements"), "{}", report(&big));
    assert!(report("!a = !a\nentry @k(%x: !a) {}").contains("E0105"));
    let doubled: String = (1..40).map(|i| format!("#a{i} = [#a{0}, #a{0}]\n", i - 1)).collect();
    assert!(report(&format!("#a0 = 1\n{doubled}entry @k() {{}}")).contains("E0105"));
}

#[test]
fn e0106_bad_literal() {
    rejects(&body("  %a = constant <i8: 256> : tile<i8>"), "E0106 256 is not a number of type i8 [256]");
    rejects(&body("  %a = constant <i8: -129> : tile<i8>"), "E0106 -129 is not a number of type i8 [-129]");
    rejects(&body("  %a = constant <f16: 0x10000> : tile<f16>"), "E0106 0x10000 is not a number of type f16 [0x10000]");
}

#[test]
fn e0107_no_module() {
    rejects("", "E0107 the file has no module and no entry []");
    rejects("// nothing\n", "E0107 the file has no module and no entry [/]");
    rejects("%0 = iota : tile<4xi32>", "E0107 this statement is outside any entry [%0]");
    let both = "E0107 the operation `addi` is outside any entry [addi]\nE0103 the value %a is not defined here [%a]";
    rejects("addi %a, %b : tile<i32>", both);
    // Statements after an entry may use its names.
    let strayed = format!("{}\naddi %n, %n : tile<i32>", body(""));
    rejects(&strayed, "E0107 the operation `addi` is outside any entry [addi]");
}

#[test]
fn e0108_result_count() {
    rejects(&body("  %a, %b = absi %n : tile<i32>"), "E0108 `absi` has one result, but 2 are named [%a]");
    let pack = "  %r:3 = get_tile_block_id : tile<i32>\n";
    // As in MLIR, the name alone is the first of them.
    let [first, named] = ["%r", "%r#0"].map(|r| parse(&body(&format!("{pack}  %a = absi {r} : tile<i32>"))).module);
    let operand = |m: Option<Module>| m.and_then(|m| m.funcs[0].ops.values().nth(1)?.operand(0)).unwrap();
    assert_eq!(operand(first), operand(named));
    rejects(
        &body(&format!("{pack}  %a = absi %r#3 : tile<i32>")),
        "E0108 %r stands for 3 values; there is no #3 [%r#3]",
    );
    accepts(&body(&format!("{pack}  %a = absi %r#2 : tile<i32>")), "");
}

#[test]
fn e0109_unknown_type() {
    rejects(&body("  %a = absi %n : tile<i33>"), "E0109 unknown element type `i33` [i33]");
    rejects(&body("  %a = absi %n : i32"), "E0109 `i32` is an element type, not the type of a value [i32]");
    rejects("entry @k(%a: tiel<i32>) {}", "E0109 unknown type `tiel` [tiel]");
}

#[test]
fn e0110_unknown_word() {
    let text = body("  %a = cmpi les_than %n, %n, signed : tile<i32> -> tile<i1>");
    assert!(report(&text).starts_with("E0110 expected equal, not_equal"), "{}", report(&text));
    assert_eq!(parse(&text).diagnostics[0].help.as_deref(), Some("did you mean `less_than`?"));
}

#[test]
fn e0111_unknown_alias() {
    rejects("entry @k(%a: !missing) {}", "E0111 the alias `!missing` is not defined [!missing]");
    accepts("entry @k(%a: !later) {}\n!later = tile<i32>", "");
}

#[test]
fn e0112_bad_shape() {
    rejects(
        &body("  %a = constant <i32: [1, 2]> : tile<4xi32>"),
        "E0112 the constant lists 2 elements, but its type has 4 [constant <i32: [1, 2]> : tile<4xi32>]",
    );
    rejects(
        &body("  %a = constant <i32: [[1, 2], [3]]> : tile<2x2xi32>"),
        "E0112 this list has 1 elements, but the ones before it have 2 [[3]]",
    );
    let view = "  %a = make_tensor_view %p, shape = [8], strides = [2] : tensor_view<8xf32, strides=[1]>";
    rejects(&body(view), "E0112 the strides given are [2], but those of the type are [1] [[2]]");
}

#[test]
fn e0113_operand_count() {
    rejects(&body("  yield %n, %c : tile<i32>"), "E0113 2 operands need as many types, found 1 [tile<i32>]");
    rejects(
        &body("  %a = \"cuda_tile.addi\"(%n) <{overflow = #cuda_tile.overflow<none>}> : (tile<i32>) -> tile<i32>"),
        "E0113 `addi` has no operand for `rhs` [(%n) <{overflow = #cuda_tile.overflow<none>}>]",
    );
}

#[test]
fn e0114_missing_attribute() {
    rejects(
        &body("  %a = \"cuda_tile.remi\"(%n, %n) : (tile<i32>, tile<i32>) -> tile<i32>"),
        "E0114 `remi` needs the attribute `signedness` [(%n, %n)]",
    );
}

#[test]
fn e0201_type_mismatch() {
    let text = body("  %a = absi %n : tile<i64>");
    rejects(&text, "E0201 %n has type `tile<i32>`, but is used as `tile<i64>` [tile<i64>]");
    let labels: Vec<_> = parse(&text).diagnostics[0]
        .labels
        .iter()
        .map(|(s, l)| (&text[s.start as usize..s.end as usize], l.clone()))
        .collect();
    assert_eq!(labels, [("%n", "defined here".to_string()), ("%n", "used here".to_string())]);
}

#[test]
fn w0901_old_spellings() {
    accepts(&body("  print \"hello\\n\""), "W0901 `print` is an older spelling of `print_tko` [print]");
    let old = body("  print_tko \"<%, %> tiles\", %n, %v : tile<i32>, tile<4xf32> -> token");
    accepts(&old, "W0901 a `%` without a conversion is an older placeholder [\"<%, %> tiles\"]");
    assert_eq!(parse(&old).diagnostics[0].help.as_deref(), Some("write \"<%i, %f> tiles\""));
    let m = parse(&old).module.unwrap();
    let op = m.funcs[0].ops.values().next().unwrap();
    assert_eq!(op.attr(AttrKey::Str), Some(&Attr::Str("<%i, %f> tiles".into())));
    accepts(&body("  print_tko \"100%% %+08.3f\\n\", %v : tile<4xf32> -> token"), "");
    accepts("entry @k(%a: tile<8xF4E2M1FN>) {}", "W0901 `F4E2M1FN` is an older spelling of an element type [F4E2M1FN]");
}

#[test]
fn w0904_extensions() {
    let text = body("  %a = internal$optimization_barrier %n : tile<i32>");
    accepts(
        &text,
        "W0904 `internal$optimization_barrier` is an extension; the public dialect has no such operation [internal$optimization_barrier]",
    );
    assert_eq!(parse(&text).diagnostics[0].severity, crate::base::Severity::Note);
}

#[test]
fn w0905_ignored_attribute() {
    accepts(
        &body("  %a = absi %n {note = \"mine\"} : tile<i32>"),
        "W0905 `absi` has no attribute `note`; it is ignored [{note = \"mine\"}]",
    );
}

#[test]
fn all_errors_of_a_file_are_reported() {
    let text = body(
        "  %a = frob %n : tile<i32>
  %b = addi %a, %n : tile<i32>
  %d = addi %n %n : tile<i32>
  for %i in (%zero to %n, step %n) : tile<i32> {
    %e = absi %i : tile<i32>
    %f = absf %v : tile<5xf3>
    if %e2 {
      continue
    }
  }
  %g = absi %d : tile<i32>
  %h = absi %n : tile<i64>",
    );
    let codes: Vec<_> = parse(&text).diagnostics.iter().map(|d| d.code.text()).collect();
    assert_eq!(codes, ["E0102", "E0101", "E0103", "E0109", "E0201"], "{}", report(&text));
}

#[test]
fn white_space_and_prefixes_do_not_matter() {
    let plain = "cuda_tile.module @m {\n  entry @k(%p: tile<4x8xptr<f32>>, %t: token) {\n    %x, %u = load_ptr_tko weak %p token = %t : tile<4x8xptr<f32>> -> tile<4x8xf32>, token\n    return\n  }\n}\n";
    let spaced = "cuda_tile . module";
    assert!(parse(spaced).module.is_none());
    let other = "module {cuda_tile.module @m{cuda_tile.entry@k(%p :!cuda_tile.tile < 4 x 8 x !cuda_tile.ptr < f32 > >,%t:!cuda_tile.token)\n{ // here\n%x,%u=cuda_tile.load_ptr_tko weak%p token=%t:tile<4x8xptr<f32>>\n->tile<4x8x\nf32>,token}}}";
    let print = |t: &str| crate::cuda_tile::print::print(&parse(t).module.unwrap_or_else(|| panic!("{}", report(t))));
    assert_eq!(print(other), plain);
    assert_eq!(print(plain), plain);
}

#[test]
fn locations_are_resolved() {
    let text = "#loc = loc(unknown)\n#loc1 = loc(\"a.py\":2:3)\nentry @k() {\n  %a = iota : tile<4xi32> loc(#loc1)\n  %b = iota : tile<4xi32> loc(callsite(#loc1 at #loc2))\n  return loc(#loc)\n}\n#loc2 = loc(\"b.py\":4:5)\n";
    let m = parse(text).module.unwrap();
    let locs: Vec<_> = m.funcs[0].ops.values().map(|o| o.loc.clone()).collect();
    let (a, b) = (Loc::file("a.py", 2, 3), Loc::file("b.py", 4, 5));
    assert_eq!(locs, [a.clone(), Loc::call_site(a, b).unwrap(), Loc::UNKNOWN]);
}

/// A generator of numbers for mutations.
struct Random(u64);
impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n
    }
}

/// Reads a text and, if it is a program, writes it in every way.
fn survives(text: &str) {
    let parsed = parse(text);
    assert_eq!(parsed.module.is_none(), parsed.diagnostics.iter().any(Diagnostic::is_error));
    for d in &parsed.diagnostics {
        let s = d.span.unwrap_or_else(|| panic!("{d:?} has no place"));
        assert!(text.get(s.start as usize..s.end as usize).is_some(), "{d:?} points outside of the text");
    }
    if let Some(m) = parsed.module {
        let ours = crate::cuda_tile::print::print(&m);
        assert!(parse(&ours).module.is_some(), "{ours}\nfrom\n{text}");
        crate::cuda_tile::print::print_nvidia(&m);
        crate::cuda_tile::print::format(text).unwrap();
    }
}

#[test]
fn broken_texts_are_survived() {
    let sources = [include_str!("../testdata/all.mlir"), include_str!("../testdata/generic.mlir"), LOCATED];
    let pieces = [
        "%",
        "}",
        "{",
        "(",
        ")",
        "<",
        ">",
        "[",
        "]",
        ":",
        ",",
        "->",
        "=",
        "\"",
        "0x",
        "99999999999999999999",
        "-",
        "#loc",
        "!t",
        "é",
        "\0",
        "//",
        "tile<",
        "?",
        "loc(",
        "token",
        "\n",
        "1e",
        ".",
    ];
    let mut random = Random(7);
    for source in sources {
        for cut in (0..source.len()).step_by(37).filter(|&i| source.is_char_boundary(i)) {
            survives(&source[..cut]);
        }
        let words: Vec<&str> = source.split_inclusive([' ', '\n', ',', '(', '<', '>']).collect();
        for _ in 0..1500 {
            let mut changed = words.clone();
            for _ in 0..1 + random.below(3) {
                let at = random.below(changed.len());
                match random.below(5) {
                    0 => drop(changed.remove(at)),
                    1 => changed[at] = pieces[random.below(pieces.len())],
                    2 => changed.insert(at, pieces[random.below(pieces.len())]),
                    3 => changed[at] = words[random.below(words.len())],
                    _ => {
                        let other = random.below(changed.len());
                        changed.swap(at, other);
                    }
                }
            }
            survives(&changed.concat());
        }
    }
}

const LOCATED: &str = r##"entry @k() {
  %a = iota : tile<4xi32> loc(callsite(#inner at #cuda_tile.di_loc<loc("k.py":9:4) in #k>))
  %b = iota : tile<4xi32> loc("named"("k.py":3:1))
  %c = iota : tile<4xi32> loc(fused[unknown, "k.py":5:2])
  return loc(#loc)
} loc(#loc)
#file = #cuda_tile.di_file<"k.py" in "/src">
#unit = #cuda_tile.di_compile_unit<file = #file>
#k = #cuda_tile.di_subprogram<file = #file, line = 7, name = "k", linkageName = "k", compileUnit = #unit, scopeLine = 7>
#helper = #cuda_tile.di_subprogram<line = 1, file = #file, name = "helper", linkageName = "h", compileUnit = <file = #file>>
#block = #cuda_tile.di_lexical_block<scope = #helper, file = #file, line = 2, column = 4>
#inner = #cuda_tile.di_loc<"k.py":2:8 in #block>
#loc = #cuda_tile.di_loc<loc(#place) in #k>
#place = loc("k.py":7:0)
"##;

#[test]
fn locations_have_places_and_call_chains() {
    let text = LOCATED;
    let m = parse(text).module.unwrap_or_else(|| panic!("{}", report(text)));
    let chains: Vec<_> = m.funcs[0].ops.values().map(|o| crate::base::location::chain_text(&o.loc.frames())).collect();
    let expected = ["k.py:2:8 in helper, called from k.py:9:4 in k", "k.py:3:1", "k.py:5:2", "k.py:7:0 in k"];
    assert_eq!(chains, expected);
    let places: Vec<_> = m.funcs[0].ops.values().map(|o| o.loc.place().map(|p| p.line)).collect();
    assert_eq!(places, [Some(2), Some(3), Some(5), Some(7)]);
    let again = parse(&crate::cuda_tile::print::print(&m)).module.unwrap();
    assert!(again.funcs[0].ops.values().map(|o| &o.loc).eq(m.funcs[0].ops.values().map(|o| &o.loc)));
}

#[test]
fn locations_neither_recur_nor_grow_without_end() {
    let text = "entry @k() {\n  return loc(#a)\n}\n#a = loc(callsite(#b at #b))\n#b = loc(callsite(#a at #a))\n";
    assert!(report(text).contains("refers to itself"), "{}", report(text));
    let mut text = String::from("entry @k() {\n  return loc(#a60)\n}\n#a0 = loc(\"f\":1:1)\n");
    for i in 0..60 {
        text += &format!("#a{} = loc(callsite(#a{i} at #a{i}))\n", i + 1);
    }
    assert!(report(&text).contains("too many parts"), "{}", report(&text));
}
