//! One refused program per rule, each with its code; and the programs that must pass.

mod mutate;
mod visible;

use super::verify;
use crate::base::{Code, Diagnostic};
use crate::cuda_tile::parse::parse;

fn judge(text: &str) -> Vec<Diagnostic> {
    let parsed = parse(text);
    match parsed.module {
        Some(module) => verify(&module),
        None => panic!("{:#?} in {text}", parsed.diagnostics),
    }
}

fn entry(params: &str, body: &str) -> String {
    format!("cuda_tile.module @m {{ entry @k({params}) {{\n{body}\nreturn\n}} }}")
}

const PARAMS: &str = "%i: tile<i32>, %l: tile<i64>, %b: tile<i1>, %f: tile<f32>, %h: tile<f16>, %d: tile<f64>, %p: tile<ptr<f32>>, %q: tile<ptr<i32>>, %c: tile<i8>";

/// The body of an entry is refused with exactly this code.
#[track_caller]
fn refused(code: Code, body: &str) -> Diagnostic {
    let found = judge(&entry(PARAMS, body));
    let codes: Vec<Code> = found.iter().map(|d| d.code).collect();
    assert_eq!(codes, [code], "{body}: {found:#?}");
    found.into_iter().next().expect("one diagnostic")
}

#[track_caller]
fn accepted(body: &str) {
    assert_eq!(judge(&entry(PARAMS, body)), vec![], "{body}");
}

#[test]
fn tile_types() {
    let d = refused(Code::BadDimension, "%t = iota : tile<96xi32>");
    assert_eq!(d.message, "tile dimension 96 is not a power of two");
    assert_eq!(d.help.as_deref(), Some("use 64 or 128, and mask the rest"));
    refused(Code::TileTooLarge, "%t = constant <f32: 0.0> : tile<8192x4096xf32>");
    accepted("%t = constant <f32: 0.0> : tile<4096x4096xf32>");
    refused(Code::BadDimension, "%t = constant <f4E2M1FN: 0.0> : tile<f4E2M1FN>");
    refused(Code::BadElementType, "%a = int_to_ptr %l : tile<i64> -> tile<ptr<i4>>");
}

#[test]
fn a_bad_type_is_reported_once() {
    let found = judge(&entry("", "%t = iota : tile<96xi32>\n%u = addi %t, %t : tile<96xi32>"));
    assert_eq!(found.len(), 1, "{found:#?}");
}

#[test]
fn all_errors_are_reported_in_order() {
    let found = judge(&entry(
        "%f: tile<f32>",
        "%a = addi %f, %f : tile<f32>\n%t = iota : tile<96xi32>\n%b = absi %f : tile<f32>",
    ));
    let codes: Vec<Code> = found.iter().map(|d| d.code).collect();
    assert_eq!(codes, [Code::BadElementType, Code::BadDimension, Code::BadElementType]);
}

#[test]
fn element_types() {
    refused(Code::BadElementType, "%r = addi %f, %f : tile<f32>");
    refused(Code::BadElementType, "%r = addf %i, %i : tile<i32>");
    refused(Code::BadElementType, "%r = exti %i signed : tile<i32> -> tile<i8>");
    refused(Code::BadElementType, "%r = exti %i signed : tile<i32> -> tile<i32>");
    refused(Code::BadElementType, "%r = trunci %c : tile<i8> -> tile<i32>");
    refused(Code::BadElementType, "%r = ftof %f : tile<f32> -> tile<f32>");
    refused(Code::BadElementType, "%r = bitcast %f : tile<f32> -> tile<i64>");
    refused(Code::BadElementType, "%r = bitcast %l : tile<i64> -> tile<ptr<f32>>");
    refused(Code::BadElementType, "%r = int_to_ptr %i : tile<i32> -> tile<ptr<f32>>");
    refused(Code::BadElementType, "%r = ptr_to_int %p : tile<ptr<f32>> -> tile<i32>");
    refused(Code::BadElementType, "%r = itof %i signed : tile<i32> -> tile<f8E8M0FNU>");
    refused(Code::BadElementType, "%r = select %i, %f, %f : tile<i32>, tile<f32>");
    refused(Code::BadElementType, "assert %i, \"no\" : tile<i32>");
    accepted("%r = exti %c signed : tile<i8> -> tile<i64>\n%s = ptr_to_int %p : tile<ptr<f32>> -> tile<i64>");
}

#[test]
fn shapes_and_types_agree() {
    let t = "%t = constant <f32: 0.0> : tile<2x4xf32>\n";
    let bad = |code, text: &str| refused(code, &format!("{t}{text}"));
    bad(Code::TypeMismatch, "%r = broadcast %t : tile<2x4xf32> -> tile<4x4xf32>");
    bad(Code::TypeMismatch, "%r = reshape %t : tile<2x4xf32> -> tile<16xf32>");
    bad(Code::TypeMismatch, "%r = permute %t [1, 0] : tile<2x4xf32> -> tile<2x4xf32>");
    bad(Code::BadAttribute, "%r = permute %t [1, 1] : tile<2x4xf32> -> tile<4x2xf32>");
    bad(Code::TypeMismatch, "%r = cat %t, %t dim = 0 : tile<2x4xf32>, tile<2x4xf32> -> tile<2x4xf32>");
    bad(Code::BadAttribute, "%r = cat %t, %t dim = 2 : tile<2x4xf32>, tile<2x4xf32> -> tile<4x4xf32>");
    bad(Code::BadArity, "%r = extract %t[%i] : tile<2x4xf32> -> tile<1x2xf32>");
    bad(Code::TypeMismatch, "%r = extract %t[%l, %l] : tile<2x4xf32> -> tile<1x2xf32>");
    bad(Code::BadRank, "%r = iota : tile<2x4xi32>");
    bad(Code::BadAttribute, "%r = iota : tile<512xi8>");
    bad(Code::TypeMismatch, "%r = ftof %t : tile<2x4xf32> -> tile<4x2xf16>");
    bad(Code::BadRank, "%r = pack %t : tile<2x4xf32> -> tile<32xi8>");
    let w = bad(
        Code::ConstantIndexOutside,
        "%n = constant <i32: 2> : tile<i32>\n%r = extract %t[%n, %n] : tile<2x4xf32> -> tile<1x1xf32>",
    );
    assert!(!w.is_error());
}

#[test]
fn roundings() {
    refused(Code::BadRounding, "%r = addf %h, %h flush_to_zero : tile<f16>");
    refused(Code::BadRounding, "%r = divf %d, %d rounding<approx> : tile<f64>");
    refused(Code::BadRounding, "%r = exp %h rounding<approx> : tile<f16>");
    refused(Code::BadRounding, "%r = addf %f, %f rounding<approx> : tile<f32>");
    refused(Code::BadRounding, "%r = ftof %f rounding<approx> : tile<f32> -> tile<f16>");
    // As NVIDIA's disassembler answers for each pair: nearest_even, zero, negative_inf, positive_inf, nearest_away.
    let modes = ["nearest_even", "zero", "negative_inf", "positive_inf", "nearest_away"];
    for (from, to, answers) in [
        ("f32", "f16", "yynnn"),
        ("f64", "bf16", "yynnn"),
        ("f64", "f32", "yyyyn"),
        ("f32", "tf32", "yynny"),
        ("f64", "tf32", "yynnn"),
        ("f16", "bf16", "yynnn"),
        ("f16", "f32", "yyyyy"),
        ("tf32", "f32", "yyyyy"),
        ("f8E8M0FNU", "f32", "yynnn"),
        ("f8E8M0FNU", "f64", "yyyyy"),
        ("f8E5M3FNU", "f16", "yynnn"),
        ("f8E5M3FNU", "bf16", "yyyyy"),
        ("f32", "f8E5M2", "ynnnn"),
        ("f16", "f8E8M0FNU", "nynyn"),
    ] {
        for (mode, answer) in modes.iter().zip(answers.chars()) {
            let one = format!("%one = constant <{from}: 1.0> : tile<{from}>\n");
            let text = format!("{one}%r = ftof %one rounding<{mode}> : tile<{from}> -> tile<{to}>");
            if answer == 'y' { accepted(&text) } else { drop(refused(Code::BadRounding, &text)) }
        }
    }
    refused(Code::BadRounding, "%r = divi %i, %i unsigned rounding<negative_inf> : tile<i32>");
    accepted("%r = divf %f, %f rounding<approx> flush_to_zero : tile<f32>\n%s = exp %f rounding<approx> : tile<f32>");
    refused(Code::BadAttribute, "%r = negi %i overflow<no_unsigned_wrap> : tile<i32>");
}

#[test]
fn orderings_and_scopes() {
    let load = |word: &str| format!("%v, %t = load_ptr_tko {word} %p : tile<ptr<f32>> -> tile<f32>, token");
    accepted(&load("weak"));
    accepted(&load("acquire device"));
    refused(Code::BadOrdering, &load("release device"));
    refused(Code::BadOrdering, &load("weak device"));
    refused(Code::BadOrdering, &load("relaxed"));
    refused(Code::BadOrdering, "%t = store_ptr_tko acquire sys %p, %f : tile<ptr<f32>>, tile<f32> -> token");
    refused(
        Code::BadOrdering,
        "%r, %t = atomic_rmw_tko weak device %q, add, %i : tile<ptr<i32>>, tile<i32> -> tile<i32>, token",
    );
}

#[test]
fn memory_operations() {
    refused(Code::TypeMismatch, "%v, %t = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f16>, token");
    refused(Code::TypeMismatch, "%t = store_ptr_tko weak %p, %i : tile<ptr<f32>>, tile<i32> -> token");
    refused(
        Code::BadElementType,
        "%r, %t = atomic_rmw_tko relaxed device %p, add, %f : tile<ptr<f32>>, tile<f32> -> tile<f32>, token",
    );
    accepted("%r, %t = atomic_rmw_tko relaxed device %p, addf, %f : tile<ptr<f32>>, tile<f32> -> tile<f32>, token");
    refused(Code::BadAttribute, "%a = alloca num_elem = 4, alignment = 3 : tile<ptr<f32>>");
    refused(Code::BadAttribute, "%a = alloca num_elem = 4, alignment = 2 : tile<ptr<f32>>");
    refused(Code::BadArity, "%t = make_token : token\n%j = join_tokens %t : token");
}

#[test]
fn views() {
    let tensor = "%tv = make_tensor_view %p, shape = [8, 8], strides = [8, 1] : tensor_view<8x8xf32, strides=[8,1]>\n";
    let bad = |code, text: &str| refused(code, &format!("{tensor}{text}"));
    let ty = "tensor_view<8x8xf32, strides=[8,1]>";
    bad(Code::BadView, &format!("%v = make_partition_view %tv : partition_view<tile=(4), {ty}>"));
    bad(Code::BadDimension, &format!("%v = make_partition_view %tv : partition_view<tile=(3x4), {ty}>"));
    bad(Code::BadView, &format!("%v = make_partition_view %tv : partition_view<tile=(4x4), {ty}, dim_map=[0, 0]>"));
    bad(
        Code::BadView,
        &format!("%v = make_strided_view %tv : strided_view<tile=(4x4), traversal_strides=[0,1], {ty}>"),
    );
    bad(
        Code::BadView,
        &format!("%v = make_gather_scatter_view %tv : gather_scatter_view<tile=(4x4), {ty}, sparse_dim=2>"),
    );
    bad(
        Code::TypeMismatch,
        "%v = make_partition_view %tv : partition_view<tile=(4x4), tensor_view<8x4xf32, strides=[8,1]>>",
    );
    let view = format!("partition_view<tile=(4x4), {ty}>");
    let make = format!("%v = make_partition_view %tv : {view}\n");
    bad(
        Code::BadArity,
        &format!("{make}%x, %t = load_view_tko weak %v[%i] : {view}, tile<i32> -> tile<4x4xf32>, token"),
    );
    bad(
        Code::TypeMismatch,
        &format!("{make}%x, %t = load_view_tko weak %v[%i, %i] : {view}, tile<i32> -> tile<4x8xf32>, token"),
    );
    bad(
        Code::BadElementType,
        &format!("{make}%x, %t = load_view_tko weak %v[%f, %f] : {view}, tile<f32> -> tile<4x4xf32>, token"),
    );
    let ints = "tensor_view<8xi32, strides=[1]>";
    let whole = format!("%iv = make_tensor_view %q, shape = [8], strides = [1] : {ints}\n");
    refused(
        Code::BadView,
        &format!("{whole}%v = make_partition_view %iv : partition_view<tile=(4), padding_value = nan, {ints}>"),
    );
    refused(
        Code::TypeMismatch,
        "%tv = make_tensor_view %p, shape = [8], strides = [1] : tensor_view<8xi32, strides=[1]>",
    );
}

/// A line about a view `%v` of multicast memory and a tile `%x` for it; `VIEW` and `ELEM` stand for their types.
fn multicast(elem: &str, line: &str) -> String {
    let tensor = format!("tensor_view<64x{elem}, strides=[1], #cuda_tile.ptr_attr<multicast>>");
    let view = format!("partition_view<tile=(8), {tensor}>");
    let line = line.replace("VIEW", &view).replace("ELEM", elem);
    format!(
        "%m = int_to_ptr %l : tile<i64> -> tile<ptr<{elem}, <multicast>>>
        %t = make_tensor_view %m, shape = [64], strides = [1] : tile<ptr<{elem}, <multicast>>> -> {tensor}
        %v = make_partition_view %t : {view}
        %x = constant <{elem}: 1> : tile<8x{elem}>
        {line}"
    )
}

#[test]
fn operations_on_multicast_memory() {
    let load = |how: &str, elem: &str, kind: &str| {
        let line = format!(
            "%r, %k = multimem_load_reduce_view_tko {how} %v[%i] attributes {{reduction = \
             #cuda_tile.multimem_reduction_kind<{kind}>}} : VIEW, tile<i32> -> tile<8xELEM>, token"
        );
        multicast(elem, &line)
    };
    let reduce = |how: &str, elem: &str, kind: &str| {
        let line = format!(
            "%k = multimem_reduce_view_tko {how} %v, %x[%i] attributes {{reduction = \
             #cuda_tile.multimem_reduction_kind<{kind}>}} : VIEW, tile<8xELEM>, tile<i32> -> token"
        );
        multicast(elem, &line)
    };
    let store = |how: &str, elem: &str| {
        multicast(
            elem,
            &format!("%k = multimem_store_view_tko {how} %v, %x[%i] : VIEW, tile<8xELEM>, tile<i32> -> token"),
        )
    };
    for elem in ["i32", "i64"] {
        for kind in ["add", "min", "max", "and", "or", "xor", "umin", "umax"] {
            accepted(&load("weak", elem, kind));
            accepted(&reduce("relaxed sys", elem, kind));
        }
    }
    for elem in ["f16", "bf16", "f32", "f64"] {
        accepted(&load("acquire device", elem, "add"));
        accepted(&reduce("release tl_blk", elem, "add"));
        accepted(&store("weak", elem));
        refused(Code::BadElementType, &load("weak", elem, "umin"));
        refused(Code::BadElementType, &reduce("relaxed device", elem, "max"));
    }
    accepted(&load("weak", "bf16", "max"));
    let d = refused(Code::BadElementType, &load("weak", "f32", "max"));
    assert_eq!(d.message, "`multimem_load_reduce_view_tko` with max does not work on f32");
    for elem in ["i1", "i8", "i16", "tf32", "f8E5M2"] {
        refused(Code::BadElementType, &load("weak", elem, "add"));
        refused(Code::BadElementType, &reduce("relaxed device", elem, "add"));
        refused(Code::BadElementType, &store("relaxed device", elem));
    }
    refused(Code::BadOrdering, &load("release device", "i32", "add"));
    refused(Code::BadOrdering, &load("weak device", "i32", "add"));
    refused(Code::BadOrdering, &reduce("acquire device", "i32", "add"));
    refused(Code::BadOrdering, &store("acquire device", "i32"));
    refused(Code::BadOrdering, &store("release", "i32"));
}

#[test]
fn multicast_memory_stays_what_it_is() {
    let view = |base: &str, tensor: &str| {
        format!(
            "%m = int_to_ptr %l : tile<i64> -> tile<ptr<f32{base}>>
            %t = make_tensor_view %m, shape = [64], strides = [1] : tile<ptr<f32{base}>> -> tensor_view<64xf32, strides=[1]{tensor}>"
        )
    };
    let kinds = ["none", "unicast", "multicast"];
    for (i, a) in kinds.iter().enumerate() {
        let (base, tensor) = (format!(", <{a}>"), format!(", #cuda_tile.ptr_attr<{a}>"));
        accepted(&view(&base, &tensor));
        refused(Code::TypeMismatch, &view(&base, ""));
        refused(Code::TypeMismatch, &view("", &tensor));
        let other = format!(", #cuda_tile.ptr_attr<{}>", kinds[(i + 1) % 3]);
        refused(Code::TypeMismatch, &view(&base, &other));
    }
    let through = |make: &str, tensor: &str, view: &str| {
        format!(
            "{}\n%v = {make} %t : {view}<tile=(8), {tensor}>
            %r, %k = multimem_load_reduce_view_tko weak %v[%i] : {view}<tile=(8), {tensor}>, tile<i32> -> tile<8xf32>, token",
            view_of(tensor)
        )
    };
    fn view_of(tensor: &str) -> String {
        let base = if tensor.contains("multicast") { ", <multicast>" } else { "" };
        format!(
            "%m = int_to_ptr %l : tile<i64> -> tile<ptr<f32{base}>>
            %t = make_tensor_view %m, shape = [64], strides = [1] : tile<ptr<f32{base}>> -> {tensor}"
        )
    }
    let shared = "tensor_view<64xf32, strides=[1], #cuda_tile.ptr_attr<multicast>>";
    accepted(&through("make_partition_view", shared, "partition_view"));
    refused(Code::BadView, &through("make_partition_view", "tensor_view<64xf32, strides=[1]>", "partition_view"));
    let strided = through("make_strided_view", shared, "strided_view");
    refused(Code::BadView, &strided.replace("tile=(8), ", "tile=(8), traversal_strides=[8], "));
}

#[test]
fn products() {
    let tiles = "%ta = constant <f16: 0.0> : tile<4x8xf16>\n%tb = constant <f16: 0.0> : tile<8x2xf16>\n%x = constant <f32: 0.0> : tile<4x2xf32>\n%y = constant <f32: 0.0> : tile<2x4xf32>\n%z = constant <f64: 0.0> : tile<4x2xf64>\n";
    let bad = |code, text: &str| refused(code, &format!("{tiles}{text}"));
    bad(Code::BadProduct, "%r = mmaf %ta, %tb, %y : tile<4x8xf16>, tile<8x2xf16>, tile<2x4xf32>");
    bad(Code::BadElementType, "%r = mmaf %ta, %tb, %z : tile<4x8xf16>, tile<8x2xf16>, tile<4x2xf64>");
    accepted(&format!("{tiles}%r = mmaf %ta, %tb, %x : tile<4x8xf16>, tile<8x2xf16>, tile<4x2xf32>"));
    let scaled = |k: u64| {
        format!(
            "%ta = constant <f8E4M3FN: 0.0> : tile<4x64xf8E4M3FN>\n%tb = constant <f8E4M3FN: 0.0> : tile<64x2xf8E4M3FN>\n%tc = constant <f32: 0.0> : tile<4x2xf32>
            %s = constant <f8E8M0FNU: 1.0> : tile<4x{k}xf8E8M0FNU>\n%t = constant <f8E8M0FNU: 1.0> : tile<{k}x2xf8E8M0FNU>
            %r = mmaf_scaled %ta, %tb, %tc, %s, %t : tile<4x64xf8E4M3FN>, tile<64x2xf8E4M3FN>, tile<4x2xf32>, tile<4x{k}xf8E8M0FNU>, tile<{k}x2xf8E8M0FNU>"
        )
    };
    accepted(&scaled(2));
    refused(Code::BadProduct, &scaled(4));
}

#[test]
fn terminators_and_loops() {
    let bounds = "%n = constant <i32: 4> : tile<i32>\n";
    let bad = |code, text: &str| refused(code, &format!("{bounds}{text}"));
    bad(Code::BadTerminator, "for %j in (%i to %n, step %n) : tile<i32> { break }");
    bad(Code::BadTerminator, "loop { return }");
    bad(Code::BadTerminator, "loop { if %b { return }\nbreak }");
    bad(Code::BadTerminator, "if %b { break }");
    bad(Code::BadTerminator, "if %b { continue }");
    bad(Code::TypeMismatch, "%r = loop : tile<i32> { break %f : tile<f32> }");
    bad(Code::TypeMismatch, "%r = if %b -> (tile<i32>) { yield %f : tile<f32> } else { yield %i : tile<i32> }");
    bad(Code::BadArity, "%r = if %b -> (tile<i32>) { yield %i : tile<i32> }");
    bad(Code::BadElementType, "if %i { }");
    bad(Code::BadElementType, "for %j in (%f to %f, step %f) : tile<f32> { continue }");
    accepted("if %b { return }");
    accepted("loop { if %b { break }\ncontinue }");
}

#[test]
fn folds() {
    let t = "%t = constant <f32: 0.0> : tile<8xf32>\n";
    let fold = |head: &str, args: &str, body: &str| {
        format!("{t}%r = reduce %t {head} : tile<8xf32> -> tile<f32> ({args}) {{ {body} }}")
    };
    let (head, args, body) = (
        "dim=0 identities=[0.0 : f32]",
        "%e: tile<f32>, %a: tile<f32>",
        "%s = addf %e, %a : tile<f32>\nyield %s : tile<f32>",
    );
    accepted(&fold(head, args, body));
    refused(Code::BadAttribute, &fold("dim=1 identities=[0.0 : f32]", args, body));
    refused(Code::TypeMismatch, &fold("dim=0 identities=[0 : i32]", args, body));
    refused(Code::ImpureBody, &fold(head, args, "print_tko \"x\" -> token\nyield %e : tile<f32>"));
    refused(Code::TypeMismatch, &fold(head, args, "yield %i : tile<i32>"));
    let d = refused(Code::BadRank, &fold(head, "%e: tile<2xf32>, %a: tile<f32>", "yield %a : tile<f32>"));
    assert_eq!(d.help.as_deref(), Some("write tile<f32>"));
    let text = "%t = constant <f32: 0.0> : tile<8x64xf32>\n%r = reduce %t dim=0 identities=[0.0 : f32] : tile<8x64xf32> -> tile<8xf32> (%e: tile<f32>, %a: tile<f32>) { yield %e : tile<f32> }";
    assert!(!refused(Code::ReducedShape, text).is_error());
}

#[test]
fn constants_prints_assumptions() {
    refused(Code::FormatMismatch, "print_tko \"%d %d\", %i : tile<i32> -> token");
    refused(Code::FormatMismatch, "print_tko \"%s\", %i : tile<i32> -> token");
    refused(Code::BadAssumption, "%r = assume div_by<3>, %i : tile<i32>");
    refused(Code::BadAssumption, "%r = assume bounded<5, 4>, %i : tile<i32>");
    refused(Code::BadAssumption, "%r = assume bounded<0, 300>, %c : tile<i8>");
    refused(Code::BadAssumption, "%r = assume div_by<4>, %f : tile<f32>");
    refused(Code::BadAssumption, "%r = assume same_elements<[1]>, %i : tile<i32>");
    accepted("print_tko \"%d 100%%\", %i : tile<i32> -> token");
}

#[test]
fn modules() {
    let codes = |text: &str| judge(text).iter().map(|d| d.code).collect::<Vec<_>>();
    assert_eq!(codes("cuda_tile.module @m { entry @k(%t: tile<4xf32>) { return } }"), [Code::BadRank]);
    assert_eq!(
        codes("cuda_tile.module @m { global @g <f32: [[0.0, 1.0]]> : tile<1x2xf32>\nentry @k() { return } }"),
        [Code::BadRank]
    );
    assert_eq!(
        codes("cuda_tile.module @m { global @g alignment = 3 <f32: [0.0, 1.0]> : tile<2xf32>\nentry @k() { return } }"),
        [Code::BadAttribute]
    );
    assert_eq!(codes(&entry("", "%g = get_global @nothing : tile<ptr<f32>>")), [Code::BadSymbol]);
    assert_eq!(codes(&entry("", "%r = experimental$call @nothing() : () -> tile<f32>")), [Code::BadSymbol]);
}

/// A module built by hand can express errors that no text can.
#[test]
fn malformed_modules_are_refused_without_a_panic() {
    use crate::cuda_tile::ir::*;
    let text = entry(
        "%i: tile<i32>",
        "%t = iota : tile<4xi32>\n%r = addi %i, %i : tile<i32>\n%c = constant <i32: [1, 2]> : tile<2xi32>\nif %i { }",
    );
    let Some(module) = parse(&text).module else { panic!("the text parses") };
    let codes = |m: &Module| verify(m).iter().map(|d| d.code).collect::<Vec<_>>();
    let op_of =
        |m: &Module, opcode| m.funcs[0].ops.iter().find(|(_, o)| o.opcode == opcode).map(|(id, _)| id).expect("there");
    let mut m = module.clone();
    let add = op_of(&m, Opcode::AddI);
    m.funcs[0].ops[add].operands.pop();
    assert!(codes(&m).contains(&Code::BadArity));
    let mut m = module.clone();
    let constant = op_of(&m, Opcode::Constant);
    for (_, a) in &mut m.funcs[0].ops[constant].attrs {
        if let Attr::Elements(e) = a {
            e.bits = vec![1, 2, 3];
        }
    }
    assert!(codes(&m).contains(&Code::BadConstant));
    let mut m = module.clone();
    m.funcs[0].regions[Func::BODY].ops.pop();
    assert!(codes(&m).contains(&Code::BadTerminator));
    let mut m = module.clone();
    m.funcs[0].hints = Hints(vec![("sm_100".into(), Attr::Int(1)), ("sm_100".into(), Attr::Dict(vec![]))]);
    assert_eq!(codes(&m).iter().filter(|&&c| c == Code::BadHint).count(), 2);
    let mut m = module;
    let twin = m.funcs[0].clone();
    m.funcs.push(twin);
    assert!(codes(&m).contains(&Code::BadSymbol));
}
