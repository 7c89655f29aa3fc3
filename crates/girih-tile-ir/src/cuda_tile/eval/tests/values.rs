//! Operations on values: arithmetic, shapes, products, folds, control flow, printing.

use super::*;

/// Evaluates `text`, which defines `%r`, and prints it with `format`.
fn shows(text: &str, ty: &str, format: &str) -> String {
    prints(&format!("{text}\nprint_tko \"{format}\", %r : {ty} -> token"))
}

fn ints(text: &str, ty: &str) -> String {
    shows(text, ty, "%d")
}
fn floats(text: &str, ty: &str) -> String {
    shows(text, ty, "%g")
}

#[test]
fn integer_arithmetic_wraps() {
    let two =
        "%a = constant <i8: [100, -100, 7, -7]> : tile<4xi8>\n%b = constant <i8: [100, 100, 2, 2]> : tile<4xi8>\n";
    let check =
        |op: &str, want: &str| assert_eq!(ints(&format!("{two}%r = {op} : tile<4xi8>"), "tile<4xi8>"), want, "{op}");
    check("addi %a, %b", "[-56, 0, 9, -5]");
    check("subi %a, %b", "[0, 56, 5, -9]");
    check("muli %a, %b", "[16, -16, 14, -14]");
    check("divi %a, %b signed", "[1, -1, 3, -3]");
    check("divi %a, %b signed rounding<negative_inf>", "[1, -1, 3, -4]");
    check("divi %a, %b signed rounding<positive_inf>", "[1, -1, 4, -3]");
    check("divi %a, %b unsigned", "[1, 1, 3, 124]");
    check("remi %a, %b signed", "[0, 0, 1, -1]");
    check("remi %a, %b unsigned", "[0, 56, 1, 1]");
    check("maxi %a, %b signed", "[100, 100, 7, 2]");
    check("maxi %a, %b unsigned", "[100, -100, 7, -7]");
    check("mini %a, %b signed", "[100, -100, 2, -7]");
    check("andi %a, %b", "[100, 4, 2, 0]");
    check("ori %a, %b", "[100, -4, 7, -5]");
    check("xori %a, %b", "[0, -8, 5, -5]");
    check("absi %a", "[100, 100, 7, 7]");
    check("negi %a", "[-100, 100, -7, 7]");
    // 156 * 100 = 15600 = 0x3cf0, 249 * 2 = 498 = 0x1f2
    check("mulhii %a, %b", "[39, 60, 0, 1]");
}

#[test]
fn shifts_and_comparisons() {
    let two = "%a = constant <i16: [1, -16, 3, 256]> : tile<4xi16>\n%b = constant <i16: [15, 2, 1, 0]> : tile<4xi16>\n";
    let check =
        |op: &str, want: &str| assert_eq!(ints(&format!("{two}%r = {op} : tile<4xi16>"), "tile<4xi16>"), want, "{op}");
    check("shli %a, %b", "[-32768, -64, 6, 256]");
    check("shri %a, %b signed", "[0, -4, 1, 256]");
    check("shri %a, %b unsigned", "[0, 16380, 1, 256]");
    let cmp = |op: &str, want: &str| {
        let text = format!("{two}%r = cmpi {op} : tile<4xi16> -> tile<4xi1>");
        assert_eq!(ints(&text, "tile<4xi1>"), want, "{op}");
    };
    cmp("less_than %a, %b, signed", "[1, 1, 0, 0]");
    cmp("less_than %a, %b, unsigned", "[1, 0, 0, 0]");
    cmp("not_equal %a, %a, signed", "[0, 0, 0, 0]");
}

#[test]
fn float_arithmetic() {
    let two = "%a = constant <f32: [1.5, -2.0, 7.0, 0.0]> : tile<4xf32>\n%b = constant <f32: [0.5, 4.0, 2.0, 1.0]> : tile<4xf32>\n";
    let check = |op: &str, want: &str| {
        assert_eq!(floats(&format!("{two}%r = {op} : tile<4xf32>"), "tile<4xf32>"), want, "{op}")
    };
    check("addf %a, %b", "[2, 2, 9, 1]");
    check("subf %a, %b", "[1, -6, 5, -1]");
    check("mulf %a, %b", "[0.75, -8, 14, 0]");
    check("divf %a, %b", "[3, -0.5, 3.5, 0]");
    check("remf %a, %b", "[0, -2, 1, 0]");
    check("fma %a, %b, %a", "[2.25, -10, 21, 0]");
    check("maxf %a, %b", "[1.5, 4, 7, 1]");
    check("minf %a, %b", "[0.5, -2, 2, 0]");
    check("negf %a", "[-1.5, 2, -7, -0]");
    check("absf %a", "[1.5, 2, 7, 0]");
    check("floor %a", "[1, -2, 7, 0]");
    check("ceil %a", "[2, -2, 7, 0]");
    check("sqrt %b", "[0.707107, 2, 1.41421, 1]");
    check("rsqrt %b", "[1.41421, 0.5, 0.707107, 1]");
    check("exp2 %b", "[1.41421, 16, 4, 2]");
    check("log2 %b", "[-1, 2, 1, 0]");
    check("pow %b, %b", "[0.707107, 256, 4, 1]");
    check("atan2 %a, %b", "[1.24905, -0.463648, 1.2925, 0]");
    check("tanh %b", "[0.462117, 0.999329, 0.964028, 0.761594]");
}

#[test]
fn rounding_modes_and_flush_to_zero() {
    // 1 + 2^-30 lies just above 1.
    let two =
        "%a = constant <f32: [1.0, -1.0]> : tile<2xf32>\n%b = constant <f32: [0x30800000, 0xB0800000]> : tile<2xf32>\n";
    let bits = |op: &str| {
        let text = format!("{two}%q = {op} : tile<2xf32>\n%r = bitcast %q : tile<2xf32> -> tile<2xi32>");
        shows(&text, "tile<2xi32>", "%x")
    };
    assert_eq!(bits("addf %a, %b"), "[3f800000, bf800000]");
    assert_eq!(bits("addf %a, %b rounding<positive_inf>"), "[3f800001, bf800000]");
    assert_eq!(bits("addf %a, %b rounding<negative_inf>"), "[3f800000, bf800001]");
    assert_eq!(bits("addf %a, %b rounding<zero>"), "[3f800000, bf800000]");
    let tiny = "%a = constant <f32: 0x00000005> : tile<f32>\n%z = constant <f32: 0.0> : tile<f32>\n";
    let sum = |flag: &str| {
        let text = format!("{tiny}%q = addf %a, %z {flag} : tile<f32>\n%r = bitcast %q : tile<f32> -> tile<i32>");
        shows(&text, "tile<i32>", "%x")
    };
    assert_eq!((sum(""), sum("flush_to_zero")), ("5".into(), "0".into()));
}

#[test]
fn nan_rules() {
    let two = "%n = constant <f32: 0x7FC00000> : tile<f32>\n%x = constant <f32: 2.0> : tile<f32>\n";
    let f = |op: &str| floats(&format!("{two}%r = {op} : tile<f32>"), "tile<f32>");
    assert_eq!(
        (f("maxf %n, %x"), f("minf %x, %n"), f("maxf %n, %x propagate_nan")),
        ("2".into(), "2".into(), "nan".into())
    );
    let c = |op: &str| ints(&format!("{two}%r = cmpf {op} : tile<f32> -> tile<i1>"), "tile<i1>");
    assert_eq!(c("less_than ordered %n, %x"), "0");
    assert_eq!(c("less_than unordered %n, %x"), "1");
    assert_eq!(c("equal ordered %x, %x"), "1");
}

#[test]
fn conversions() {
    let i = |text: &str, ty: &str| ints(text, ty);
    assert_eq!(i("%a = constant <i8: -1> : tile<i8>\n%r = exti %a signed : tile<i8> -> tile<i32>", "tile<i32>"), "-1");
    assert_eq!(
        i("%a = constant <i8: -1> : tile<i8>\n%r = exti %a unsigned : tile<i8> -> tile<i32>", "tile<i32>"),
        "255"
    );
    assert_eq!(i("%a = constant <i32: 511> : tile<i32>\n%r = trunci %a : tile<i32> -> tile<i8>", "tile<i8>"), "-1");
    assert_eq!(
        i("%a = constant <f32: -3.75> : tile<f32>\n%r = ftoi %a signed : tile<f32> -> tile<i32>", "tile<i32>"),
        "-3"
    );
    let f = |text: &str, ty: &str| floats(text, ty);
    assert_eq!(
        f("%a = constant <i32: -3> : tile<i32>\n%r = itof %a signed : tile<i32> -> tile<f16>", "tile<f16>"),
        "-3"
    );
    assert_eq!(
        f("%a = constant <i8: -3> : tile<i8>\n%r = itof %a unsigned : tile<i8> -> tile<f32>", "tile<f32>"),
        "253"
    );
    // 1/3 in bf16 has 8 significant bits: 0.333984375
    assert_eq!(
        f("%a = constant <f32: 0.33333334> : tile<f32>\n%r = ftof %a : tile<f32> -> tile<bf16>", "tile<bf16>"),
        "0.333984"
    );
    // the largest f8E4M3FN is 448
    assert_eq!(
        f("%a = constant <f32: 450.0> : tile<f32>\n%r = ftof %a : tile<f32> -> tile<f8E4M3FN>", "tile<f8E4M3FN>"),
        "448"
    );
}

#[test]
fn shapes() {
    let t = "%t = constant <i32: [[0, 1, 2, 3], [4, 5, 6, 7]]> : tile<2x4xi32>\n";
    let r = |op: &str, ty: &str| ints(&format!("{t}{op}"), ty);
    assert_eq!(
        r("%r = permute %t [1, 0] : tile<2x4xi32> -> tile<4x2xi32>", "tile<4x2xi32>"),
        "[[0, 4], [1, 5], [2, 6], [3, 7]]"
    );
    assert_eq!(
        r("%r = reshape %t : tile<2x4xi32> -> tile<2x2x2xi32>", "tile<2x2x2xi32>"),
        "[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]"
    );
    assert_eq!(
        r("%r = cat %t, %t dim = 0 : tile<2x4xi32>, tile<2x4xi32> -> tile<4x4xi32>", "tile<4x4xi32>"),
        "[[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3], [4, 5, 6, 7]]"
    );
    assert_eq!(
        r("%r = cat %t, %t dim = 1 : tile<2x4xi32>, tile<2x4xi32> -> tile<2x8xi32>", "tile<2x8xi32>"),
        "[[0, 1, 2, 3, 0, 1, 2, 3], [4, 5, 6, 7, 4, 5, 6, 7]]"
    );
    let index = "%i0 = constant <i32: 0> : tile<i32>\n%i1 = constant <i32: 1> : tile<i32>\n";
    assert_eq!(
        r(&format!("{index}%r = extract %t[%i1, %i1] : tile<2x4xi32> -> tile<1x2xi32>"), "tile<1x2xi32>"),
        "[[6, 7]]"
    );
    let patch = "%p = constant <i32: [[-1, -2]]> : tile<1x2xi32>\n";
    assert_eq!(
        r(&format!("{index}{patch}%r = insert %p, %t[%i0, %i1] : tile<1x2xi32>, tile<2x4xi32>"), "tile<2x4xi32>"),
        "[[0, 1, -1, -2], [4, 5, 6, 7]]"
    );
    let column = "%c = constant <i32: [[5], [6]]> : tile<2x1xi32>\n";
    assert_eq!(
        ints(&format!("{column}%r = broadcast %c : tile<2x1xi32> -> tile<2x4xi32>"), "tile<2x4xi32>"),
        "[[5, 5, 5, 5], [6, 6, 6, 6]]"
    );
    assert_eq!(ints("%r = iota : tile<4xi8>", "tile<4xi8>"), "[0, 1, 2, 3]");
}

#[test]
fn pack_and_unpack_are_little_endian() {
    let t = "%t = constant <i16: [0x0102, 0x0304]> : tile<2xi16>\n%r = pack %t : tile<2xi16> -> tile<4xi8>";
    assert_eq!(ints(t, "tile<4xi8>"), "[2, 1, 4, 3]");
    let t = "%t = constant <i8: [0x21, 0x43]> : tile<2xi8>\n%r = unpack %t : tile<2xi8> -> tile<4xi4>\n%s = exti %r unsigned : tile<4xi4> -> tile<4xi8>";
    assert_eq!(prints(&format!("{t}\nprint_tko \"%d\", %s : tile<4xi8> -> token")), "[1, 2, 3, 4]");
}

#[test]
fn select_takes_only_the_chosen_arm() {
    let text = "%z = constant <i32: [0, 1]> : tile<2xi32>
        %a = constant <i32: 10> : tile<2xi32>
        %q = divi %a, %z signed : tile<2xi32>
        %m = constant <i1: [0, 1]> : tile<2xi1>
        %r = select %m, %q, %z : tile<2xi1>, tile<2xi32>";
    assert_eq!(ints(text, "tile<2xi32>"), "[0, 10]");
}

#[test]
fn products() {
    let text = "%a = constant <f16: [[1.0, 2.0], [3.0, 4.0]]> : tile<2x2xf16>
        %b = constant <f16: [[5.0, 6.0], [7.0, 8.0]]> : tile<2x2xf16>
        %c = constant <f32: [[100.0, 0.0], [0.0, 0.5]]> : tile<2x2xf32>
        %r = mmaf %a, %b, %c : tile<2x2xf16>, tile<2x2xf16>, tile<2x2xf32>";
    assert_eq!(floats(text, "tile<2x2xf32>"), "[[119, 22], [43, 50.5]]");
    let text = "%a = constant <i8: [[[1, -2]], [[3, 4]]]> : tile<2x1x2xi8>
        %b = constant <i8: [[[5], [-1]], [[7], [8]]]> : tile<2x2x1xi8>
        %c = constant <i32: [[[10]], [[20]]]> : tile<2x1x1xi32>
        %r = mmai %a, %b, %c signed unsigned : tile<2x1x2xi8>, tile<2x2x1xi8>, tile<2x1x1xi32>";
    // 10 + 1*5 + -2*255, 20 + 3*7 + 4*8
    assert_eq!(ints(text, "tile<2x1x1xi32>"), "[[[-495]], [[73]]]");
}

#[test]
fn mmaf_rounds_an_f16_accumulator_once() {
    // 2048 + 1 + 1 in f16 steps would stay 2048 twice; in f32 it is 2050.
    let text = "%a = constant <f16: [[1.0, 1.0]]> : tile<1x2xf16>
        %b = constant <f16: [[1.0], [1.0]]> : tile<2x1xf16>
        %c = constant <f16: [[2048.0]]> : tile<1x1xf16>
        %r = mmaf %a, %b, %c : tile<1x2xf16>, tile<2x1xf16>, tile<1x1xf16>";
    assert_eq!(floats(text, "tile<1x1xf16>"), "[[2050]]");
}

#[test]
fn scaled_product_scales_blocks_of_k() {
    let ones = vec!["1.0"; 32].join(", ");
    let rhs = vec!["[1.0]"; 64].join(", ");
    let text = format!(
        "%a = constant <f8E4M3FN: [[{ones}, {ones}]]> : tile<1x64xf8E4M3FN>
        %b = constant <f8E4M3FN: [{rhs}]> : tile<64x1xf8E4M3FN>
        %c = constant <f32: [[0.5]]> : tile<1x1xf32>
        %s = constant <f8E8M0FNU: [[1.0, 4.0]]> : tile<1x2xf8E8M0FNU>
        %u = constant <f8E8M0FNU: [[2.0], [1.0]]> : tile<2x1xf8E8M0FNU>
        %r = mmaf_scaled %a, %b, %c, %s, %u : tile<1x64xf8E4M3FN>, tile<64x1xf8E4M3FN>, tile<1x1xf32>, tile<1x2xf8E8M0FNU>, tile<2x1xf8E8M0FNU>"
    );
    // 0.5 + 32 * 1*2 + 32 * 4*1
    assert_eq!(floats(&text, "tile<1x1xf32>"), "[[192.5]]");
}

#[test]
fn reduce_and_scan_take_element_then_accumulator() {
    let t = "%t = constant <i32: [[1, 2, 3, 4], [5, 6, 7, 8]]> : tile<2x4xi32>\n";
    let sub = "(%e: tile<i32>, %a: tile<i32>) { %d = subi %e, %a : tile<i32>\nyield %d : tile<i32> }";
    // e - a from 0: 1, 2-1=1, 3-1=2, 4-2=2
    let text = format!("{t}%r = reduce %t dim=1 identities=[0 : i32] : tile<2x4xi32> -> tile<2xi32> {sub}");
    assert_eq!(ints(&text, "tile<2xi32>"), "[2, 2]");
    let text = format!("{t}%r = reduce %t dim=0 identities=[0 : i32] : tile<2x4xi32> -> tile<4xi32> {sub}");
    assert_eq!(ints(&text, "tile<4xi32>"), "[4, 4, 4, 4]");
    let text =
        format!("{t}%r = scan %t dim=1 reverse=false identities=[0 : i32] : tile<2x4xi32> -> tile<2x4xi32> {sub}");
    assert_eq!(ints(&text, "tile<2x4xi32>"), "[[1, 1, 2, 2], [5, 1, 6, 2]]");
    let text =
        format!("{t}%r = scan %t dim=1 reverse=true identities=[0 : i32] : tile<2x4xi32> -> tile<2x4xi32> {sub}");
    // from the right: 4, 3-4=-1, 2+1=3, 1-3=-2
    assert_eq!(ints(&text, "tile<2x4xi32>"), "[[-2, 3, -1, 4], [-2, 7, -1, 8]]");
}

#[test]
fn reduce_of_two_operands_with_a_branch() {
    // argmax by `if`: runs through the stack, not the compiled body
    let text = "%v = constant <f32: [1.0, 9.0, 3.0, 9.0]> : tile<4xf32>
        %i = iota : tile<4xi32>
        %m, %r = reduce %v, %i dim=0 identities=[-1.0 : f32, -1 : i32] : tile<4xf32>, tile<4xi32> -> tile<f32>, tile<i32>
        (%e: tile<f32>, %a: tile<f32>, %j: tile<i32>, %b: tile<i32>) {
          %c = cmpf greater_than ordered %e, %a : tile<f32> -> tile<i1>
          %x, %y = if %c -> (tile<f32>, tile<i32>) { yield %e, %j : tile<f32>, tile<i32> } else { yield %a, %b : tile<f32>, tile<i32> }
          yield %x, %y : tile<f32>, tile<i32>
        }";
    assert_eq!(ints(text, "tile<i32>"), "1");
}

#[test]
fn loops_carry_values() {
    let bounds =
        "%l = constant <i32: 2> : tile<i32>\n%u = constant <i32: 9> : tile<i32>\n%s = constant <i32: 3> : tile<i32>\n";
    let text = format!(
        "{bounds}%z = constant <i32: 0> : tile<i32>
        %r = for %i in (%l to %u, step %s) : tile<i32> iter_values(%a = %z) -> (tile<i32>) {{
          %odd = andi %i, %l : tile<i32>
          %c = trunci %i : tile<i32> -> tile<i1>
          if %c {{ continue %a : tile<i32> }}
          %n = addi %a, %i : tile<i32>
          continue %n : tile<i32>
        }}"
    );
    // 2, 5, 8: the odd 5 is skipped
    assert_eq!(ints(&text, "tile<i32>"), "10");
    let text = "%one = constant <i32: 1> : tile<i32>
        %ten = constant <i32: 10> : tile<i32>
        %r = loop iter_values(%a = %one) : tile<i32> -> tile<i32> {
          %d = addi %a, %a : tile<i32>
          %c = cmpi greater_than %d, %ten, signed : tile<i32> -> tile<i1>
          if %c { break %d : tile<i32> }
          continue %d : tile<i32>
        }";
    assert_eq!(ints(text, "tile<i32>"), "16");
}

#[test]
fn unsigned_loops_compare_unsigned() {
    let text = |word: &str| {
        format!(
            "%l = constant <i8: 126> : tile<i8>\n%u = constant <i8: -126> : tile<i8>\n%s = constant <i8: 1> : tile<i8>\n%z = constant <i8: 0> : tile<i8>
            %r = for {word} %i in (%l to %u, step %s) : tile<i8> iter_values(%a = %z) -> (tile<i8>) {{
              %n = addi %a, %s : tile<i8>
              continue %n : tile<i8>
            }}"
        )
    };
    assert_eq!(ints(&text("unsigned"), "tile<i8>"), "4");
    assert_eq!(ints(&text(""), "tile<i8>"), "0");
}

#[test]
fn a_step_that_is_not_positive_traps() {
    let trap = traps(
        "%l = constant <i32: 0> : tile<i32>\n%u = constant <i32: 4> : tile<i32>
        for %i in (%l to %u, step %l) : tile<i32> { continue }",
    );
    assert_eq!(trap.code, Code::StepNotPositive);
    assert!(trap.message.contains("step"), "{}", trap.message);
    assert_eq!(trap.op, "for");
}

#[test]
fn calls_and_generate() {
    let out = launch(
        "cuda_tile.module @m {
          experimental$func @twice(%x: tile<i32>) -> tile<i32> { %y = addi %x, %x : tile<i32>\n return %y : tile<i32> }
          entry @k() {
            %a = constant <i32: 21> : tile<i32>
            %b = experimental$call @twice(%a) : (tile<i32>) -> tile<i32>
            print_tko \"%d \", %b : tile<i32> -> token
            %g = experimental$generate { ^bb0(%i: tile<i32>, %j: tile<i32>): %s = subi %i, %j : tile<i32>\n yield %s : tile<i32> } : tile<2x4xi32>
            print_tko \"%d\", %g : tile<2x4xi32> -> token
            return
          } }",
        [1, 1, 1],
        0,
        vec![],
    );
    assert_eq!(out.result.err(), None);
    assert_eq!(out.printed, "42 [[0, -1, -2, -3], [1, 0, -1, -2]]");
}

#[test]
fn undefined_values_trap_where_they_are_used_and_name_their_birth() {
    let text = "%z = constant <i32: [1, 0]> : tile<2xi32>
        %q = divi %z, %z signed : tile<2xi32>
        %s = addi %q, %q : tile<2xi32>
        print_tko \"%d\", %s : tile<2xi32> -> token";
    let trap = traps(text);
    assert_eq!((trap.code, trap.op.as_str(), trap.element), (Code::UndefinedUsed, "divi", Some(vec![1])));
    assert!(trap.message.contains("print_tko"), "{}", trap.message);
    // Computing one is not an error.
    assert_eq!(prints("%z = constant <i32: 0> : tile<i32>\n%q = divi %z, %z signed : tile<i32>"), "");
}

/// So that a mask may be narrowed to where a number means something.
#[test]
fn zero_decides_a_conjunction_and_ones_a_disjunction() {
    let text = |op: &str, with: &str| {
        format!(
            "%z = constant <i32: 0> : tile<i32>
            %q = remi %z, %z signed : tile<i32>
            %u = cmpi equal %q, %z, signed : tile<i32> -> tile<i1>
            %c = constant <i1: {with}> : tile<i1>
            %r = {op} %u, %c : tile<i1>
            %s = {op} %c, %u : tile<i1>
            %t = andi %r, %s : tile<i1>
            print_tko \"%d\", %t : tile<i1> -> token"
        )
    };
    assert_eq!(prints(&text("andi", "0")), "0");
    assert_eq!(prints(&text("ori", "1")), "1");
    for (op, with) in [("andi", "1"), ("ori", "0"), ("xori", "0"), ("xori", "1")] {
        assert_eq!(traps(&text(op, with)).code, Code::UndefinedUsed, "{op} {with}");
    }
}

#[test]
fn broken_promises_are_undefined() {
    let add = |flag: &str| {
        format!(
            "%a = constant <i8: 127> : tile<i8>\n%s = addi %a, %a {flag} : tile<i8>\nprint_tko \"%d\", %s : tile<i8> -> token"
        )
    };
    assert_eq!(prints(&add("")), "-2");
    assert_eq!(prints(&add("overflow<no_unsigned_wrap>")), "-2");
    assert_eq!(traps(&add("overflow<no_signed_wrap>")).op, "addi");
}

#[test]
fn assertions_and_assumptions_are_checked() {
    let trap = traps("%c = constant <i1: [1, 0]> : tile<2xi1>\nassert %c, \"both\" : tile<2xi1>");
    assert_eq!((trap.code, trap.element), (Code::AssertFailed, Some(vec![1])));
    assert!(trap.message.contains("both"));
    let fact =
        |fact: &str| format!("%t = constant <i16: [8, 9, 16, 17]> : tile<4xi16>\n%u = assume {fact}, %t : tile<4xi16>");
    for good in ["div_by<8, every 2 along 0>", "bounded<8, 17>", "bounded<?, ?>", "same_elements<[1]>", "div_by<1>"] {
        assert_eq!(prints(&fact(good)), "", "{good}");
    }
    for bad in [
        "div_by<8>",
        "div_by<16, every 2 along 0>",
        "div_by<8, every 4 along 0>",
        "bounded<9, ?>",
        "bounded<?, 16>",
        "same_elements<[2]>",
    ] {
        assert_eq!(traps(&fact(bad)).code, Code::FalseAssumption, "{bad}");
    }
}

#[test]
fn the_stride_of_a_dimension_of_one_element_may_be_anything() {
    let text = |shape: &str, more: &str| {
        format!(
            "%i = constant <i64: 0> : tile<i64>\n%q = int_to_ptr %i : tile<i64> -> tile<ptr<f32>>\n%three = constant <i32: 3> : tile<i32>
            %s0 = assume div_by<4>, %three : tile<i32>\n%s = assume bounded<0, ?>, %s0 : tile<i32>
            %v = make_tensor_view %q, shape = [{shape}], strides = [%s, 1] : tile<i32> -> tensor_view<{}xf32, strides=[?,1]>\n{more}",
            shape.replace(", ", "x")
        )
    };
    assert_eq!(prints(&text("1, 8", "")), "");
    assert_eq!(traps(&text("2, 8", "")).code, Code::FalseAssumption);
    assert_eq!(traps(&text("1, 8", "%n = negi %s0 : tile<i32>")).code, Code::FalseAssumption);
}

#[test]
fn printing() {
    let text = "%t = constant <f32: [[1.0, 2.5], [-3.0, 4.0]]> : tile<2x2xf32>
        %i = constant <i32: -7> : tile<i32>
        print_tko \"%5.1f|%d|%x|%%\\n\", %t, %i, %i : tile<2x2xf32>, tile<i32>, tile<i32> -> token";
    assert_eq!(prints(text), "[[  1.0,   2.5], [ -3.0,   4.0]]|-7|fffffff9|%\n");
}

#[test]
fn blocks_print_in_order() {
    let out = launch(
        "cuda_tile.module @m { entry @k() {
          %x, %y, %z = get_tile_block_id : tile<i32>
          %gx, %gy, %gz = get_num_tile_blocks : tile<i32>
          print_tko \"%d,%d,%d/%d \", %x, %y, %z, %gx : tile<i32>, tile<i32>, tile<i32>, tile<i32> -> token
          return } }",
        [2, 1, 2],
        0,
        vec![],
    );
    assert_eq!(out.printed, "0,0,0/2 1,0,0/2 0,0,1/2 1,0,1/2 ");
}

#[test]
fn an_endless_loop_runs_out_of_fuel() {
    assert_eq!(traps("loop { continue }").code, Code::OutOfFuel);
}

#[test]
fn a_library_is_asked_for() {
    let trap = traps(
        "%a = constant <f32: 1.0> : tile<f32>
        %b = experimental$extern_elementwise %a {libname = \"lm\", libpath = \"\", pure = true, symbol = \"polygamma\"} : (tile<f32>) -> tile<f32>",
    );
    assert_eq!(trap.code, Code::LibraryNeeded);
    assert!(trap.message.contains("lm") && trap.message.contains("polygamma"));
}

/// A host that ends the run at the question of this number.
struct Impatient(std::cell::Cell<u32>);

impl Host for Impatient {
    fn print(&mut self, _block: [u32; 3], _text: &str) {}
    fn interrupted(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }
}

/// Runs an entry body until the host has been asked so often.
fn interrupted(text: &str, blocks: u32, asked: u32, fuel: Option<u64>) -> Result<Report, Trap> {
    let module = module(&format!("cuda_tile.module @m {{ entry @k() {{\n{text}\nreturn\n}} }}"));
    let mut host = Impatient(std::cell::Cell::new(asked));
    let options = Options { fuel, ..Options::default() };
    run_with(&module, "k", &Launch::new([blocks, 1, 1], vec![]), &mut VecMemory::new(), &mut host, &options)
}

/// However a run's work is spread, over blocks, operations or the elements of one operation, it is interrupted.
#[test]
fn every_kind_of_work_is_interrupted() {
    let many = |operation: &str, blocks| (operation.to_string(), blocks);
    for (text, blocks) in [
        many("%a = constant <i32: 1> : tile<i32>", 1 << 20),
        many("%a = iota : tile<65536xi32>\n%b = muli %a, %a : tile<65536xi32>", 4),
        many(
            "%a = iota : tile<65536xi32>\n%b = constant <i32: 0> : tile<i32>\nloop { %c = muli %a, %a : tile<65536xi32>\ncontinue }",
            1,
        ),
        many(
            "%a = constant <f16: 1.0> : tile<256x256xf16>\n%c = constant <f32: 0.0> : tile<256x256xf32>\n%b = mmaf %a, %a, %c : tile<256x256xf16>, \
             tile<256x256xf16>, tile<256x256xf32>",
            1,
        ),
    ] {
        let trap = interrupted(&text, blocks, 3, None).expect_err(&text);
        assert_eq!(trap.code, Code::Interrupted, "{text}");
    }
}

#[test]
fn fuel_is_for_all_blocks_together() {
    let text = "%a = constant <i32: 1> : tile<i32>";
    let all = interrupted(text, 100, u32::MAX, None).unwrap().steps;
    assert!(interrupted(text, 100, u32::MAX, Some(all)).is_ok());
    assert_eq!(interrupted(text, 100, u32::MAX, Some(all - 1)).unwrap_err().code, Code::OutOfFuel);
    assert_eq!(interrupted(text, 100, u32::MAX, Some(10)).unwrap_err().code, Code::OutOfFuel);
}
