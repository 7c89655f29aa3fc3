use super::*;
use crate::base::Span;
use crate::cuda_tile::parse::renumber;

/// A module without its places.
pub(crate) fn without_places(m: &Module) -> Module {
    let mut m = m.clone();
    m.globals.iter_mut().for_each(|g| g.span = Span::default());
    m.later.iter_mut().for_each(|l| l.span = Span::default());
    for f in &mut m.funcs {
        f.span = Span::default();
        f.values = f.values.values().cloned().fold(Default::default(), |mut map, mut v| {
            v.span = Span::default();
            map.push(v);
            map
        });
        f.ops = f.ops.values().cloned().fold(Default::default(), |mut map, mut op| {
            op.span = Span::default();
            map.push(op);
            map
        });
    }
    m
}

/// A module without places, names and locations: what the disassembler's text keeps.
fn bare(m: &Module) -> Module {
    let mut m = without_places(m);
    m.name = None;
    m.producer = None;
    m.later.clear();
    for f in &mut m.funcs {
        f.loc = Loc::UNKNOWN;
        let values = f.values.keys().collect::<Vec<_>>();
        values.into_iter().for_each(|v| f.values[v].name = None);
        let ops = f.ops.keys().collect::<Vec<_>>();
        ops.into_iter().for_each(|o| f.ops[o].loc = Loc::UNKNOWN);
    }
    m
}

fn read(text: &str) -> Module {
    let parsed = parse(text);
    parsed.module.unwrap_or_else(|| panic!("{:?}\n{text}", parsed.diagnostics))
}

/// Every way of writing a program reads back as the program.
fn round_trip(name: &str, text: &str) {
    let m = read(text);
    let ours = print(&m);
    assert_eq!(without_places(&read(&ours)), without_places(&m), "{name}:\n{ours}");
    assert_eq!(print(&read(&ours)), ours, "{name}: printing is not stable");
    let theirs = print_nvidia(&m);
    assert_eq!(bare(&read(&theirs)), bare(&m), "{name}:\n{theirs}");
    assert_eq!(print_nvidia(&read(&theirs)), theirs, "{name}: printing is not stable");
    let formatted = format(text).unwrap();
    assert_eq!(without_places(&read(&formatted)), without_places(&m), "{name}:\n{formatted}");
    assert_eq!(format(&formatted).unwrap(), formatted, "{name}: formatting is not stable");
    for f in &m.funcs {
        assert_eq!(renumber(f), *f, "{name}");
    }
}

/// Files of a folder beside the project's folders, if it is there.
fn programs(folder: &str) -> Vec<(String, String)> {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(dir) = here.ancestors().find_map(|dir| std::fs::read_dir(dir.join(folder)).ok()) else { return vec![] };
    let mut out: Vec<_> =
        dir.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "mlir")).collect();
    out.sort();
    out.into_iter().map(|p| (p.display().to_string(), std::fs::read_to_string(&p).unwrap())).collect()
}

#[test]
fn disassembler_text_is_reproduced() {
    let text = include_str!("../testdata/nvidia.mlir");
    let written = print_nvidia(&read(text));
    for (a, b) in written.lines().zip(text.lines()) {
        assert_eq!(a, b);
    }
    assert_eq!(written, text);
    round_trip("nvidia.mlir", text);
}

#[test]
fn every_operation_round_trips() {
    round_trip("all.mlir", include_str!("../testdata/all.mlir"));
    round_trip("generic.mlir", include_str!("../testdata/generic.mlir"));
}

#[test]
fn conformance_programs_round_trip() {
    for (name, text) in programs("shared/conformance/tile").iter().chain(&programs("examples")) {
        if parse(text).module.is_some() {
            round_trip(name, text);
        }
    }
}

#[test]
fn numbers_read_back() {
    let text = |dtype: &str, values: &str| {
        format!("entry @k() {{\n  %x = constant <{dtype}: {values}> : tile<4x{dtype}>\n  return\n}}\n")
    };
    for dtype in ["f16", "bf16", "f32", "tf32", "f64", "f8E4M3FN", "f8E5M2", "f8E5M2FNUZ"] {
        for values in ["[0.1, -0.1, 1e-3, 448.0]", "[0x01, 0x03, 0x7F, 0x10]", "[-0.0, 0.0, 3.0, 2.5]"] {
            round_trip(dtype, &text(dtype, values));
        }
    }
    for (dtype, values) in [
        ("i1", "[true, 0, -1, false]"),
        ("i8", "[-128, 127, 255, 0x7F]"),
        ("i64", "[-9223372036854775808, 18446744073709551615, 1, 0]"),
    ] {
        round_trip(dtype, &text(dtype, values));
    }
}

#[test]
fn comments_stay_where_they_are() {
    let text = "\
// Above the module.

// And more.
cuda_tile.module @m { // behind the module
  // Above the entry.
  entry @k(%n: tile<i32>) { // behind the entry
    // First.
    %c = constant <i32: 1> : tile<i32>  // behind a statement

    // Second,
    // on two lines.
    %s = addi %n, %c : tile<i32>
    if %c2 {
      // Nothing here.
    } else {
      // Nor here.
    }
    // Before the end.
  }
  // After the entry.
}
// After all.
"
    .replace("    if %c2", "    %c2 = trunci %s : tile<i32> -> tile<i1>\n    if %c2");
    let want = text.replace("{ // behind", "{  // behind");
    assert_eq!(format(&text).unwrap(), want);
    assert_eq!(format(&want).unwrap(), want);
}

#[test]
fn comments_of_parameters_stay_where_they_are() {
    let text = "\
entry @k(
    // What is read.
    %from: tile<ptr<f32>>,  // aligned
    %n: tile<i32>) {  // behind the entry
  // First.
  %c = constant <i32: 1> : tile<i32>
}
";
    assert_eq!(format(text).unwrap(), text);
    round_trip("comments among parameters", text);
}

#[test]
fn names_stay_apart() {
    let mut m =
        read("entry @k(%a: tile<i32>) {\n  %b = absi %a : tile<i32>\n  %c = absi %b : tile<i32>\n  return\n}\n");
    let f = &mut m.funcs[0];
    for v in f.values.keys().collect::<Vec<_>>() {
        f.values[v].name = Some("x y".into());
    }
    let text = print(&m);
    assert!(text.contains("entry @k(%x_y: tile<i32>)"), "{text}");
    assert!(text.contains("%x_y_0 = absi %x_y : tile<i32>\n  %x_y_1 = absi %x_y_0"), "{text}");
}

#[test]
fn examples_are_formatted() {
    let examples = programs("examples");
    assert!(!examples.is_empty());
    for (name, text) in examples {
        assert_eq!(format(&text).unwrap(), text, "`girih fmt {name}` puts it right");
    }
}

#[test]
fn long_statements_are_broken() {
    let text = "\
entry @k(%first: tile<ptr<f32>>, %second: tile<ptr<f32>>, %third: tile<ptr<f32>>, %fourth: tile<i32>,
    %fifth: tile<i32>) {
  %x_all = make_tensor_view %first, shape = [%fourth, %fifth], strides = [%fifth, 1]  // behind the second line
      : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
  // Between.
  %lines = constant <f32: [1.0, 2.0, 3.0, 4.0]> : tile<4xf32>
}
";
    let want =
        text.replace("  // behind the second line", "").replace("[?,1]>\n", "[?,1]>  // behind the second line\n");
    assert_eq!(format(text).unwrap(), want);
    round_trip("long statements", text);
    assert!(print_nvidia(&read(text)).lines().any(|l| l.len() > 110));
}

#[test]
fn several_modules() {
    let text = "\
// about the first
cuda_tile.module @a {
  entry @k(%n: tile<i32>) {
    // the first result without its number
    %920:2 = for %i in (%n to %n, step %n) : tile<i32> iter_values(%x = %n, %y = %n) -> (tile<i32>, tile<i32>) {
      continue %y, %x : tile<i32>, tile<i32>
    }
    %s = addi %920, %920#1 : tile<i32>
    return
  } // at the end of k
  // before the brace of a
}

// about the second
cuda_tile.module @\"b c\" attributes {producer = \"me\"} {
  global @g <i32: [7, 7]> : tile<2xi32>
  entry @l(%t: token) {
    return
  }
}
cuda_tile.module @empty {
}
";
    round_trip("several modules", text);
    let formatted = format(text).unwrap();
    assert_eq!(formatted.matches("cuda_tile.module").count(), 3, "{formatted}");
    let order = [
        "// about the first",
        "@a",
        "// at the end of k",
        "// before the brace of a\n}",
        "// about the second",
        "@empty",
    ];
    let at: Vec<usize> =
        order.iter().map(|part| formatted.find(part).unwrap_or_else(|| panic!("{part}:\n{formatted}"))).collect();
    assert!(at.is_sorted(), "{at:?}\n{formatted}");
    assert!(formatted.contains("<i32: 7>"), "{formatted}");
    // Items outside any module stay outside of the module that follows.
    round_trip(
        "an entry before a module",
        "entry @k() {\n  return\n}\n\ncuda_tile.module @m {\n  entry @l() {\n    return\n  }\n}\n",
    );
}
