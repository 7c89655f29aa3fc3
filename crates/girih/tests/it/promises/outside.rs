//! `--check` finds the same errors as the evaluator: tiles outside their view, broken `inbounds`, subtiles outside their tile,
//! negative extents, and the accesses of `bounds.rs`. Programs are made from each kind of view and access; indices and
//! extents then change from launch to launch, and the two verdicts are compared: whether it traps, why, and where.

use super::common::*;
use girih::{Arg, Device, Error, Kernel, Program};
use girih_compiler::base::{Code, Span};

/// An access, and which of its operands the launches change.
struct Case {
    what: String,
    program: Program,
    /// Tile indices are of this many bits.
    bits: u32,
}

/// A view over `%x` of `%m` times `%n` elements, rows 20 apart, and accesses at `%i`, `%j`.
fn view(kind: &str, dims: &str, access: &str, bits: u32, inbounds: &str) -> Case {
    let tensor = "tensor_view<?x?xi32, strides=[?,1]>";
    let (make, ty) = match kind {
        "partition" => ("make_partition_view", format!("partition_view<tile=(4x8), {tensor}{dims}>")),
        "padded" => {
            ("make_partition_view", format!("partition_view<tile=(4x8), padding_value = zero, {tensor}{dims}>"))
        }
        "strided" => {
            ("make_strided_view", format!("strided_view<tile=(4x8), traversal_strides=[3,5], {tensor}{dims}>"))
        }
        "gather 0" => ("make_gather_scatter_view", format!("gather_scatter_view<tile=(4x8), {tensor}, sparse_dim=0>")),
        _ => ("make_gather_scatter_view", format!("gather_scatter_view<tile=(4x8), {tensor}, sparse_dim=1>")),
    };
    let int = format!("tile<i{bits}>");
    let (i, j, ints) = match kind {
        "gather 0" => ("%rows", "%j", format!("tile<4xi{bits}>, {int}")),
        "gather 1" => ("%i", "%columns", format!("{int}, tile<8xi{bits}>")),
        _ => ("%i", "%j", int.clone()),
    };
    // Positions that start at %i, or %j, and go up by one: some of them outside.
    let many = |name: &str, from: &str, n: u32| {
        format!(
            "    %{name}0 = iota : tile<{n}xi{bits}>\n    %{name}1 = reshape %{from} : {int} -> tile<1xi{bits}>\n    \
             %{name}2 = broadcast %{name}1 : tile<1xi{bits}> -> tile<{n}xi{bits}>\n    \
             %{name} = addi %{name}0, %{name}2 : tile<{n}xi{bits}>\n"
        )
    };
    let at = format!("%v[{i}, {j}]");
    let one = "%one = constant <i32: 1> : tile<4x8xi32>\n    ";
    let access_text = match access {
        "load" => format!("%u, %t = load_view_tko weak {at}{inbounds} : {ty}, {ints} -> tile<4x8xi32>, token"),
        "store" => format!("{one}%t = store_view_tko weak %one, {at}{inbounds} : tile<4x8xi32>, {ty}, {ints} -> token"),
        _ => format!(
            "{one}%t = atomic_red_view_tko relaxed device {at}, add, %one : tile<4x8xi32>, {ty}, {ints} -> token"
        ),
    };
    let keep = match access {
        "load" => {
            "    %yt = make_tensor_view %y, shape = [4, 8], strides = [8, 1] : tensor_view<4x8xi32, strides=[8,1]>\n    \
             %yv = make_partition_view %yt : partition_view<tile=(4x8), tensor_view<4x8xi32, strides=[8,1]>>\n    \
             %o = constant <i32: 0> : tile<i32>\n    \
             %k = store_view_tko weak %u, %yv[%o, %o] : tile<4x8xi32>, partition_view<tile=(4x8), tensor_view<4x8xi32, \
             strides=[8,1]>>, tile<i32> -> token\n"
        }
        _ => "",
    };
    let body = format!(
        "    %rows_of = constant <i32: 20> : tile<i32>\n    \
         %tv = make_tensor_view %x, shape = [%m, %n], strides = [%rows_of, 1] : tile<i32> -> {tensor}\n    \
         %v = {make} %tv : {ty}\n{}{}    {access_text}\n{keep}",
        many("rows", "i", 4),
        many("columns", "j", 8)
    );
    let params = format!("%x: tile<ptr<i32>>, %y: tile<ptr<i32>>, %m: tile<i32>, %n: tile<i32>, %i: {int}, %j: {int}");
    let what = format!("{kind}{dims} {access} i{bits}{inbounds}");
    Case { what, program: program(&params, &body), bits }
}

/// Parts of a tile of 4x8 elements, read or replaced.
fn part(access: &str) -> Case {
    let int = "tile<i32>";
    let go = match access {
        "extract" => "%p = extract %whole[%i, %j] : tile<4x8xi32> -> tile<2x2xi32>".to_string(),
        _ => format!(
            "%new = constant <i32: 7> : tile<2x2xi32>\n    %q = insert %new, %whole[%i, %j] : tile<2x2xi32>, tile<4x8xi32>\n    \
             %o = constant <i32: 0> : {int}\n    %p = extract %q[%o, %o] : tile<4x8xi32> -> tile<2x2xi32>"
        ),
    };
    let ty = "tensor_view<2x2xi32, strides=[2,1]>";
    let body = format!(
        "    %flat = iota : tile<32xi32>\n    %whole = reshape %flat : tile<32xi32> -> tile<4x8xi32>\n    {go}\n    \
         %yt = make_tensor_view %y, shape = [2, 2], strides = [2, 1] : {ty}\n    \
         %yv = make_partition_view %yt : partition_view<tile=(2x2), {ty}>\n    %z = constant <i32: 0> : tile<i32>\n    \
         %k = store_view_tko weak %p, %yv[%z, %z] : tile<2x2xi32>, partition_view<tile=(2x2), {ty}>, tile<i32> -> token\n"
    );
    let params = format!("%x: tile<ptr<i32>>, %y: tile<ptr<i32>>, %m: tile<i32>, %n: tile<i32>, %i: {int}, %j: {int}");
    Case { what: access.to_string(), program: program(&params, &body), bits: 32 }
}

type Verdict = Option<(Code, String, Option<Span>, [u32; 3])>;

/// A device's verdict on a launch, and the results.
fn launch(case: &Case, kernel: &Kernel<'_>, x: usize, sizes: [i32; 2], at: [i64; 2]) -> (Verdict, Vec<i32>) {
    // Memory after the part that is passed does not belong to another argument.
    let (mut xs, mut ys) = ((0..4096).collect::<Vec<i32>>(), vec![-1i32; 32]);
    let number = |n: i64| match case.bits {
        8 => Arg::from(n as i8),
        16 => Arg::from(n as i16),
        32 => Arg::from(n as i32),
        _ => Arg::from(n),
    };
    let mut args = [
        Arg::from(&mut xs[..x]),
        Arg::from(&mut ys[..]),
        Arg::from(sizes[0]),
        Arg::from(sizes[1]),
        number(at[0]),
        number(at[1]),
    ];
    let verdict = match kernel.launch([1; 3], &mut args) {
        Ok(_) => None,
        Err(Error::Trap(trap)) => Some((trap.code, trap.op.clone(), trap.span, trap.block)),
        Err(e) => panic!("{}: {e}", case.what),
    };
    xs.extend(ys);
    (verdict, xs)
}

/// Compares the verdicts over indices and extents; says how many launches trapped and how many did not.
fn compare(case: &Case) -> (usize, usize) {
    let widest = match case.bits {
        64 => i64::MAX,
        n => (1 << (n - 1)) - 1,
    };
    let [cpu, eval] = [Device::Cpu, Device::Eval].map(|device| kernel(&case.program, options(device).check(true)));
    let indices = [-1, 0, 1, 2, 3, 7, 17, widest, -widest - 1];
    let (mut trapped, mut fine) = (0, 0);
    for sizes in [[8, 16], [7, 20], [1, 1], [0, 16], [20, 0], [-1, 16], [8, -3]] {
        for i in indices {
            for j in indices {
                // Both out of range at once says nothing that one does not.
                if i != 0 && j != 0 && i != j {
                    continue;
                }
                // And, of one view, a buffer that is too small.
                for &x in if sizes == [7, 20] { &[400, 15][..] } else { &[400] } {
                    let [native, exact] = [&cpu, &eval].map(|kernel| launch(case, kernel, x, sizes, [i, j]));
                    assert_eq!(native.0, exact.0, "{}: {sizes:?} at [{i}, {j}], {x} elements", case.what);
                    match exact.0 {
                        None => assert_eq!(native.1, exact.1, "{}: {sizes:?} at [{i}, {j}]", case.what),
                        Some((code, ..)) => assert!(
                            [Code::IndexOutside, Code::OutOfBounds].contains(&code),
                            "{}: {code:?} at [{i}, {j}]",
                            case.what
                        ),
                    }
                    *(if native.0.is_some() { &mut trapped } else { &mut fine }) += 1;
                }
            }
        }
    }
    (trapped, fine)
}

#[test]
fn tiles_of_views() {
    let mut cases = Vec::new();
    for (kind, dims, bits) in [
        ("partition", "", 32),
        ("partition", ", dim_map=[1, 0]", 64),
        ("padded", "", 8),
        ("strided", "", 32),
        ("strided", ", dim_map=[1, 0]", 16),
        ("gather 0", "", 32),
        ("gather 1", "", 64),
    ] {
        for access in ["load", "store"] {
            cases.push(view(kind, dims, access, bits, ""));
        }
        cases.push(view(kind, dims, "load", bits, " inbounds = [true, false]"));
        cases.push(view(kind, dims, "store", bits, " inbounds = [true, true]"));
    }
    cases.push(view("partition", "", "reduce", 32, ""));
    for case in &cases {
        let (trapped, fine) = compare(case);
        assert!(trapped > 50 && fine > 0, "{}: {trapped} trapped, {fine} did not", case.what);
    }
}

#[test]
fn parts_of_tiles() {
    for access in ["extract", "insert"] {
        let case = part(access);
        let (trapped, fine) = compare(&case);
        assert!(trapped > 50 && fine > 10, "{}: {trapped} trapped, {fine} did not", case.what);
    }
}
