//! Every kind of trap names the place in the user's file, and the calls it was inlined through, on every device.

use super::common::*;
use girih::{Arg, Device, Options};
use girih_compiler::base::launch::Trap;
use girih_compiler::base::{Code, location::chain_text};

/// The locations that the programs below use: a line of a kernel, and a line of a helper called there.
const LOCATIONS: &str = "\
#file = #cuda_tile.di_file<\"k.py\" in \"/home/user\">
#unit = #cuda_tile.di_compile_unit<file = #file>
#kernel = #cuda_tile.di_subprogram<file = #file, line = 1, name = \"kernel\", linkageName = \"k\", compileUnit = #unit, scopeLine = 1>
#helper = #cuda_tile.di_subprogram<file = #file, line = 20, name = \"helper\", linkageName = \"h\", compileUnit = #unit, scopeLine = 20>
#entry = #cuda_tile.di_loc<loc(\"/home/user/k.py\":1:0) in #kernel>
#call = #cuda_tile.di_loc<loc(\"/home/user/k.py\":7:8) in #kernel>
#inner = #cuda_tile.di_loc<loc(\"/home/user/k.py\":22:4) in #helper>
#here = loc(callsite(#inner at #call))
#store = #cuda_tile.di_loc<loc(\"/home/user/k.py\":9:4) in #kernel>
";
const CHAIN: &str = "/home/user/k.py:22:4 in helper, called from /home/user/k.py:7:8 in kernel";

fn located(params: &str, body: &str) -> girih::Program {
    parsed(&format!(
        "cuda_tile.module @m {{\n  entry @k({params}) {{\n{body}    return\n  }} loc(#entry)\n}}\n{LOCATIONS}"
    ))
}

fn devices() -> [(Options, &'static str); 3] {
    [
        (options(Device::Cpu), "cpu"),
        (options(Device::Cpu).check(true), "cpu with checks"),
        (options(Device::Eval), "eval"),
    ]
}

#[track_caller]
fn at_the_helper(trap: &Trap, code: Code, what: &str) {
    assert_eq!(trap.code, code, "{what}: {}", trap.message);
    assert_eq!(chain_text(&trap.frames), CHAIN, "{what}");
    assert_eq!(trap.place().map(|p| (&*p.file, p.line, p.column)), Some(("/home/user/k.py", 22, 4)), "{what}");
}

#[test]
fn an_assertion_in_a_loop_that_is_fused_with_others() {
    let body = "    %lo = constant <i32: 0> : tile<i32>
    %hi = constant <i32: 4> : tile<i32>
    %one = constant <i32: 1> : tile<i32>
    %most = constant <f32: 100.0> : tile<64xf32>
    %zero = constant <f32: 0.0> : tile<64xf32>
    %tv = make_tensor_view %x, shape = [256], strides = [1] : tensor_view<256xf32, strides=[1]>
    %v = make_partition_view %tv : partition_view<tile=(64), tensor_view<256xf32, strides=[1]>>
    %sum = for %i in (%lo to %hi, step %one) : tile<i32> iter_values(%s = %zero) -> (tile<64xf32>) {
      %a, %t = load_view_tko weak %v[%i] : partition_view<tile=(64), tensor_view<256xf32, strides=[1]>>, tile<i32> -> tile<64xf32>, token
      %small = cmpf less_than ordered %a, %most : tile<64xf32> -> tile<64xi1>
      assert %small, \"too large\" : tile<64xi1> loc(#here)
      %e = mulf %a, %a : tile<64xf32>
      %n = addf %s, %e : tile<64xf32>
      continue %n : tile<64xf32>
    }
    %u = store_view_tko weak %sum, %v[%lo] : tile<64xf32>, partition_view<tile=(64), tensor_view<256xf32, strides=[1]>>, tile<i32> -> token
";
    let program = located("%x: tile<ptr<f32>>", body);
    for (options, what) in devices() {
        let mut x = [1f32; 256];
        x[130] = 200.0;
        let trap = trap(&program, options.clone(), 1, &mut [Arg::from(&mut x[..])]);
        at_the_helper(&trap, Code::AssertFailed, what);
        assert_eq!(trap.element, Some(vec![2]), "{what}");
        // Nothing is wrong: the sum of four squares.
        let mut x = [2f32; 256];
        kernel(&program, options).launch([1; 3], &mut [Arg::from(&mut x[..])]).unwrap();
        assert_eq!(x[..64], [16f32; 64], "{what}");
    }
}

#[test]
fn accesses_out_of_bounds() {
    let pointers = "    %p1 = reshape %x : tile<ptr<i32>> -> tile<1xptr<i32>>
    %pn = broadcast %p1 : tile<1xptr<i32>> -> tile<8xptr<i32>>
    %i = iota : tile<8xi32>
    %p = offset %pn, %i : tile<8xptr<i32>>, tile<8xi32> -> tile<8xptr<i32>>
    %one = constant <i32: 1> : tile<8xi32>\n";
    let accesses = [
        "%v, %t = load_ptr_tko weak %p : tile<8xptr<i32>> -> tile<8xi32>, token loc(#here)
    %u = store_ptr_tko weak %pn, %v : tile<8xptr<i32>>, tile<8xi32> -> token",
        "%t = store_ptr_tko weak %p, %one : tile<8xptr<i32>>, tile<8xi32> -> token loc(#here)",
        "%v, %t = atomic_rmw_tko relaxed device %p, add, %one : tile<8xptr<i32>>, tile<8xi32> -> tile<8xi32>, token loc(#here)",
        "%v, %t = atomic_cas_tko relaxed device %p, %one, %one : tile<8xptr<i32>>, tile<8xi32> -> tile<8xi32>, token loc(#here)",
    ];
    for access in accesses {
        let program = located("%x: tile<ptr<i32>>", &format!("{pointers}    {access}\n"));
        for (options, what) in devices().into_iter().skip(1) {
            let mut x = [0i32; 5];
            let trap = trap(&program, options, 1, &mut [Arg::from(&mut x[..])]);
            at_the_helper(&trap, Code::OutOfBounds, &format!("{what}: {access}"));
        }
    }
}

#[test]
fn a_step_that_is_not_positive() {
    let body = "    %c0 = constant <i32: 0> : tile<i32>
    for %k in (%c0 to %s, step %c0) : tile<i32> {
      continue loc(#store)
    } loc(#here)
";
    let program = located("%s: tile<i32>", body);
    for (options, what) in devices() {
        at_the_helper(&trap(&program, options, 1, &mut [Arg::from(3)]), Code::StepNotPositive, what);
    }
}

#[test]
fn an_undefined_value_is_reported_where_it_is_made() {
    let body = "    %one = constant <i32: 1> : tile<i32>
    %q = divi %one, %s signed : tile<i32> loc(#here)
    %r = addi %q, %one : tile<i32> loc(#call)
    %t = store_ptr_tko weak %x, %r : tile<ptr<i32>>, tile<i32> -> token loc(#store)
";
    let program = located("%x: tile<ptr<i32>>, %s: tile<i32>", body);
    let mut x = [0i32];
    let trap = trap(&program, options(Device::Eval), 1, &mut [Arg::from(&mut x[..]), Arg::from(0)]);
    at_the_helper(&trap, Code::UndefinedUsed, "eval");
    assert!(trap.message.contains("divides by zero"), "{}", trap.message);
    let user = trap.user.unwrap();
    assert_eq!(
        (user.op.as_str(), chain_text(&user.frames).as_str()),
        ("store_ptr_tko", "/home/user/k.py:9:4 in kernel")
    );
}

#[test]
fn warnings_and_errors_of_a_program() {
    let bad = format!(
        "cuda_tile.module @m {{\n  entry @k(%s: tile<i32>) {{\n    %a = addf %s, %s : tile<i32> loc(#here)\n    return\n  }} loc(#entry)\n}}\n{LOCATIONS}"
    );
    let error = girih::Program::from_text(&bad).err().expect("an error");
    assert_eq!(chain_text(error.frames()), CHAIN);
    assert_eq!(error.place().map(|p| p.line), Some(22));
}
