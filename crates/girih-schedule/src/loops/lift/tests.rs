//! The lowering of single operations. `loops::fuse` tests the results, together with the rules.

use super::lift;
use crate::cuda_tile::parse::parse;
use crate::loops::ir::{Kernel, Stmt};
use crate::loops::print::{Dialect, print};
use crate::loops::walk;

fn lifted(params: &str, body: &str) -> Kernel {
    let text = format!("cuda_tile.module @m {{\nentry @k({params}) {{\n{body}\nreturn\n}}\n}}\n");
    let module = parse(&text).module.expect("a module");
    lift(&module, "k").expect("a kernel")
}

fn text(params: &str, body: &str) -> String {
    print(&lifted(params, body), Dialect::Loop)
}

#[test]
fn a_tile_value_is_a_buffer_and_its_own_nest() {
    let text = text("", "%a = iota : tile<8xi32>\n%b = addi %a, %a : tile<8xi32>");
    let expected = "\
  local a: i32[8]
  for i in 0..8: free
    i_1: i32 = index i
    a[i] = i_1
  local b: i32[8]
  for i_2 in 0..8: free
    a_1: i32 = a[i_2]
    a_2: i32 = a[i_2]
    v: i32 = a_1 + a_2
    b[i_2] = v
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_scalar_is_a_value() {
    let kernel = lifted("%x: tile<f32>", "%y = addf %x, %x rounding<nearest_even> : tile<f32>");
    assert!(matches!(kernel.body[..], [Stmt::Let { .. }]), "{}", print(&kernel, Dialect::Loop));
}

#[test]
fn a_constant_step_is_not_checked_but_any_other_is() {
    let looped = |step: &str| {
        let body = format!(
            "%a = constant <i32: 0> : tile<i32>\n%b = constant <i32: {step}> : tile<i32>\nfor %k in (%a to %n, step %S) : tile<i32> {{ continue }}"
        );
        let mut asserts = Vec::new();
        for step in ["%b", "%n"] {
            let kernel = lifted("%n: tile<i32>", &body.replace("%S", step));
            walk::visit(&kernel.body, &mut |s| {
                if let Stmt::Assert { message, site, .. } = s {
                    asserts.push((message.contains("step"), kernel.sites[*site].op.clone()));
                }
            });
        }
        asserts
    };
    let check = (true, "for".to_string());
    assert_eq!(looped("0"), [check.clone(), check.clone()]);
    assert_eq!(looped("1"), [check]);
}

#[test]
fn views_vanish_into_indices_and_conditions() {
    let tv = "tensor_view<?x?xf32, strides=[?,1]>";
    let body = format!(
        "%x, %y, %z = get_tile_block_id : tile<i32>
         %t = make_tensor_view %A, shape = [%M, %N], strides = [%N, 1] : tile<i32> -> {tv}
         %v = make_partition_view %t : partition_view<tile=(4x8), padding_value = neg_inf, {tv}, dim_map=[1, 0]>
         %a, %t0 = load_view_tko weak %v[%x, %y] : partition_view<tile=(4x8), padding_value = neg_inf, {tv}, dim_map=[1, 0]>, tile<i32> -> tile<4x8xf32>, token"
    );
    let text = text("%A: tile<ptr<f32>>, %M: tile<i32>, %N: tile<i32>", &body);
    let load = text.lines().find(|l| l.contains("= load")).unwrap_or_default().trim();
    assert!(load.contains("else -inf"), "{load}");
    assert!(load.contains("< N and") && load.contains("< M "), "{load}");
}

#[test]
fn a_fact_about_a_parameter_is_kept() {
    let kernel = lifted("%A: tile<ptr<f32>>", "%a = assume div_by<16>, %A : tile<ptr<f32>>");
    assert_eq!(kernel.params[0].div_by, 16);
}

/// cuTile promises of the stride of a dimension of one element what is not so.
#[test]
fn what_is_said_of_strides_that_nothing_steps_by_is_not_believed() {
    let of = |shape: &str, ty: &str| {
        let body = format!(
            "%t = assume div_by<16>, %s : tile<i32>
             %v = make_tensor_view %A, shape = [{shape}%n], strides = [%t, 1] : tile<i32> -> tensor_view<{ty}x?xi8, strides=[?,1]>"
        );
        let kernel = lifted("%A: tile<ptr<i8>>, %s: tile<i32>, %m: tile<i32>, %n: tile<i32>", &body);
        kernel.params[1].div_by
    };
    assert_eq!(of("1, ", "1"), 1);
    assert_eq!(of("2, ", "2"), 16);
    assert_eq!(of("%m, ", "?"), 16);
}

#[test]
fn a_function_of_a_library_is_refused() {
    let text = "cuda_tile.module @m { entry @k(%x: tile<4xf32>) {
        %y = experimental$extern_elementwise %x {libname = \"l\", libpath = \"p\", pure = true, symbol = \"s\"} : (tile<4xf32>) -> tile<4xf32>
        return } }";
    let module = parse(text).module.expect("a module");
    let errors = lift(&module, "k").expect_err("a refusal");
    assert_eq!(errors[0].code, crate::base::Code::LibraryNeeded);
}
