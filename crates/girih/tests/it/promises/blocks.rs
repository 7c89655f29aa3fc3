//! Blocks that wait for each other, and state that outlives a launch.

use super::common::*;
use girih::{Arg, Device};

/// Spins until `%p` satisfies `%value HOW %want`, reading with acquire.
fn wait_until(p: &str, how: &str, want: &str) -> String {
    format!(
        "    loop {{\n      %seen, %seen_t = load_ptr_tko acquire device %{p} : tile<ptr<i32>> -> tile<i32>, token\n      %done = \
         cmpi {how} %seen, %{want}, signed : tile<i32> -> tile<i1>\n      if %done {{\n        break\n      }}\n      continue\n    }}\n"
    )
}

const BLOCK: &str = "    %bx, %by, %bz = get_tile_block_id : tile<i32>\n    %gx, %gy, %gz = get_num_tile_blocks : tile<i32>\n    \
                     %c0 = constant <i32: 0> : tile<i32>\n    %c1 = constant <i32: 1> : tile<i32>\n";

#[test]
fn a_spin_lock_guards_a_plain_sum() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/mutex.mlir")).unwrap();
    for device in DEVICES {
        let program = parsed(&text);
        let kernel = program.entry("mutex").unwrap().with_options(options(device));
        let mut total = [0i32];
        kernel.launch([64, 1, 1], &mut [Arg::from(&mut total[..])]).unwrap();
        assert_eq!(total, [64 * 63 / 2], "{device}");
        // The lock was given back, so the loaded module can be run again.
        kernel.launch([16, 2, 2], &mut [Arg::from(&mut total[..])]).unwrap();
        assert_eq!(total, [64 * 63 / 2 + 4 * 120], "{device}");
    }
}

#[test]
fn a_grid_barrier() {
    // Each block writes its number, waits for all 64, then sums all the numbers.
    let body = [
        BLOCK.to_string(),
        "    %mine = offset %data, %bx : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>\n".into(),
        "    %t0 = store_ptr_tko weak %mine, %bx : tile<ptr<i32>>, tile<i32> -> token\n".into(),
        "    %old, %t1 = atomic_rmw_tko acq_rel device %count, add, %c1 token=%t0 : tile<ptr<i32>>, tile<i32> -> tile<i32>, token\n"
            .into(),
        wait_until("count", "greater_than_or_equal", "gx"),
        spread("data", "ptr<i32>", 64),
        iota("lane", 64),
        at("dp", "data", "lane", "i32", "i32", 64),
        load("x", "dp", "i32", 64),
        "    %sum = reduce %x dim=0 identities=[0 : i32] : tile<64xi32> -> tile<i32>\n    (%e: tile<i32>, %a: tile<i32>) {\n      %s = \
         addi %e, %a : tile<i32>\n      yield %s : tile<i32>\n    }\n"
            .into(),
        "    %to = offset %out, %bx : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>\n".into(),
        "    %t2 = store_ptr_tko weak %to, %sum : tile<ptr<i32>>, tile<i32> -> token\n".into(),
    ]
    .concat();
    let program = program("%data: tile<ptr<i32>>, %count: tile<ptr<i32>>, %out: tile<ptr<i32>>", &body);
    for device in DEVICES {
        let (mut data, mut count, mut out) = ([-1i32; 64], [0i32], [0i32; 64]);
        run(&program, device, 64, &mut [Arg::from(&mut data[..]), Arg::from(&mut count[..]), Arg::from(&mut out[..])]);
        assert_eq!(out, [2016; 64], "{device}");
        assert_eq!(count, [64]);
    }
}

#[test]
fn a_block_waits_for_a_higher_one() {
    // flags[g] = 1 at the start; block b waits for flag b + 1, then sets its own: the last goes first.
    let body = [
        BLOCK.to_string(),
        "    %after = addi %bx, %c1 : tile<i32>\n".into(),
        "    %theirs = offset %flags, %after : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>\n".into(),
        wait_until("theirs", "not_equal", "c0"),
        "    %mine = offset %flags, %bx : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>\n".into(),
        "    %rank, %t0 = atomic_rmw_tko relaxed device %order, add, %c1 : tile<ptr<i32>>, tile<i32> -> tile<i32>, token\n".into(),
        "    %rank1 = addi %rank, %c1 : tile<i32>\n".into(),
        "    %t1 = store_ptr_tko release device %mine, %rank1 token=%t0 : tile<ptr<i32>>, tile<i32> -> token\n".into(),
    ]
    .concat();
    let program = program("%flags: tile<ptr<i32>>, %order: tile<ptr<i32>>", &body);
    for device in DEVICES {
        let mut flags = [0i32; 33];
        flags[32] = 99;
        let mut order = [0i32];
        run(&program, device, 32, &mut [Arg::from(&mut flags[..]), Arg::from(&mut order[..])]);
        assert!(flags[..32].iter().zip(0..).all(|(&f, b)| f == 32 - b), "{device}: {flags:?}");
    }
}

#[test]
fn more_blocks_than_threads_wait_for_lower_ones() {
    // A chain of 5,000 blocks, each waiting for the one before it.
    let body = [
        BLOCK.to_string(),
        "    %before = offset %flags, %bx : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>\n".into(),
        wait_until("before", "not_equal", "c0"),
        "    %after = addi %bx, %c1 : tile<i32>\n".into(),
        "    %mine = offset %flags, %after : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>\n".into(),
        "    %got, %t0 = load_ptr_tko weak %before : tile<ptr<i32>> -> tile<i32>, token\n".into(),
        "    %next = addi %got, %c1 : tile<i32>\n".into(),
        "    %t1 = store_ptr_tko release device %mine, %next token=%t0 : tile<ptr<i32>>, tile<i32> -> token\n".into(),
    ]
    .concat();
    let program = program("%flags: tile<ptr<i32>>", &body);
    for device in DEVICES {
        let mut flags = vec![0i32; 5001];
        flags[0] = 1;
        run(&program, device, 5000, &mut [Arg::from(&mut flags[..])]);
        assert!(flags.iter().zip(1..).all(|(&f, b)| f == b), "{device}");
    }
}

#[test]
fn tables_of_two_entries_are_kept_apart() {
    let entry = |name: &str, values: &str| {
        let body = [
            spread("out", "ptr<i32>", 4),
            iota("i", 4),
            format!("    %v = constant <i32: [{values}]> : tile<4xi32>\n"),
            at("p", "out", "i", "i32", "i32", 4),
            store("v", "p", "i32", 4),
        ]
        .concat();
        format!("  entry @{name}(%out: tile<ptr<i32>>) {{\n{body}  }}\n")
    };
    let program = parsed(&format!(
        "cuda_tile.module @m {{\n{}{}}}\n",
        entry("first", "3, 1, 4, 1"),
        entry("second", "2, 7, 1, 8")
    ));
    for device in DEVICES {
        for (name, want) in [("first", [3, 1, 4, 1]), ("second", [2, 7, 1, 8]), ("first", [3, 1, 4, 1])] {
            let mut out = [0i32; 4];
            let kernel = program.entry(name).unwrap().with_options(options(device));
            kernel.launch([1; 3], &mut [Arg::from(&mut out[..])]).unwrap();
            assert_eq!(out, want, "{device}: {name}");
        }
    }
}

#[test]
fn globals_live_as_long_as_the_program() {
    let text = r#"cuda_tile.module @m {
  global @count <i32: [10, 20]> : tile<2xi32>
  entry @k(%out: tile<ptr<i32>>) {
    %p = get_global @count : tile<ptr<i32>>
    %c1 = constant <i32: 1> : tile<i32>
    %q = offset %p, %c1 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %old, %t = atomic_rmw_tko relaxed device %q, add, %c1 : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
    %t1 = store_ptr_tko weak %out, %old : tile<ptr<i32>>, tile<i32> -> token
  }
}
"#;
    for device in DEVICES.into_iter().chain([Device::Sim]) {
        let program = parsed(text);
        let mut seen = Vec::new();
        for _ in 0..2 {
            // Two kernels of one program share its globals.
            let kernel = kernel(&program, options(device));
            for _ in 0..2 {
                let mut out = [0i32];
                kernel.launch([1; 3], &mut [Arg::from(&mut out[..])]).unwrap();
                seen.push(out[0]);
            }
        }
        assert_eq!(seen, [20, 21, 22, 23], "{device}");
        program.reset_globals();
        let mut out = [0i32];
        run(&program, device, 1, &mut [Arg::from(&mut out[..])]);
        assert_eq!(out, [20], "{device}");
        let mut out = [0i32];
        run(&parsed(text), device, 1, &mut [Arg::from(&mut out[..])]);
        assert_eq!(out, [20], "{device}: another program starts afresh");
    }
}
