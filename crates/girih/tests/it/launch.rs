//! Launches through the library: arguments, versions, globals, prints, traps.

use std::sync::{Arc, Mutex};

use girih::{Arg, Buffer, CachePolicy, Device, Error, Options, PrintOrder, Program};
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::num::DType;
use girih_compiler::pipeline::{Event, Observer};

/// One cache for this test binary's kernels, so that runs after the first are quick and the user's is left alone.
fn options(device: Device) -> Options {
    Options::default().device(device).cache(CachePolicy::At(std::env::temp_dir().join("girih-launch-tests")))
}

/// y[i] = x[i] + d for the 64 elements of each block, block b at offset 64*b.
const SHIFT: &str = r#"cuda_tile.module @m {
  entry @shift(%x: tile<ptr<i32>>, %y: tile<ptr<i32>>, %d: tile<i32>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %c64 = constant <i32: 64> : tile<i32>
    %start = muli %bx, %c64 : tile<i32>
    %start_r = reshape %start : tile<i32> -> tile<1xi32>
    %start_b = broadcast %start_r : tile<1xi32> -> tile<64xi32>
    %lane = iota : tile<64xi32>
    %i = addi %start_b, %lane : tile<64xi32>
    %x_r = reshape %x : tile<ptr<i32>> -> tile<1xptr<i32>>
    %x_b = broadcast %x_r : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %x_p = offset %x_b, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %y_r = reshape %y : tile<ptr<i32>> -> tile<1xptr<i32>>
    %y_b = broadcast %y_r : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %y_p = offset %y_b, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %v, %t0 = load_ptr_tko weak %x_p : tile<64xptr<i32>> -> tile<64xi32>, token
    %d_r = reshape %d : tile<i32> -> tile<1xi32>
    %d_b = broadcast %d_r : tile<1xi32> -> tile<64xi32>
    %w = addi %v, %d_b : tile<64xi32>
    %t1 = store_ptr_tko weak %y_p, %w token=%t0 : tile<64xptr<i32>>, tile<64xi32> -> token
  }
}
"#;

const DEVICES: [Device; 2] = [Device::Cpu, Device::Eval];

#[test]
fn slices_and_buffers() {
    let program = Program::from_text(SHIFT).unwrap();
    for device in DEVICES {
        let kernel = program.entry("shift").unwrap().with_options(options(device));
        let x: Vec<i32> = (0..256).collect();
        let mut y = Buffer::zeroed(DType::I32, &[256]).unwrap();
        kernel.launch([4, 1, 1], &mut [Arg::from(&x[..]), Arg::from(&mut y), Arg::from(5i32)]).unwrap();
        assert_eq!(y.to_vec::<i32>().unwrap(), (5..261).collect::<Vec<i32>>(), "{device}");
    }
}

#[test]
fn aliased_and_overlapping_arguments_keep_program_order() {
    let program = Program::from_text(SHIFT).unwrap();
    for device in DEVICES {
        let kernel = program.entry("shift").unwrap().with_options(options(device));
        // In place.
        let mut a: Vec<i32> = (0..128).collect();
        kernel.launch([2, 1, 1], &mut [Arg::from(&mut a[..]), Arg::same_as(0), Arg::from(1i32)]).unwrap();
        assert_eq!(a, (1..129).collect::<Vec<i32>>(), "{device}");
    }
    // Overlapping by one element: each block loads its 64 elements before it stores any, so elements 1..=64 become the
    // old 0..=63 plus 10.
    let kernel = program.entry("shift").unwrap().with_options(options(Device::Cpu));
    let mut a: Vec<i32> = (0..65).collect();
    let start = a.as_mut_ptr();
    // SAFETY: both ranges lie in `a`, which is not used until the launch is over.
    let (x, y) =
        unsafe { (Arg::from_raw(DType::I32, start.cast(), 256), Arg::from_raw(DType::I32, start.add(1).cast(), 256)) };
    kernel.launch([1, 1, 1], &mut [x, y, Arg::from(10i32)]).unwrap();
    assert_eq!(a[0], 0);
    assert!((1..65).all(|i| a[i] == i as i32 - 1 + 10), "{a:?}");
}

#[test]
fn unaligned_slices() {
    let program = Program::from_text(SHIFT).unwrap();
    let kernel = program.entry("shift").unwrap().with_options(options(Device::Cpu));
    let x: Vec<i32> = (0..80).collect();
    let mut y = vec![0i32; 80];
    for shift in 0..16 {
        kernel.launch([1, 1, 1], &mut [Arg::from(&x[shift..]), Arg::from(&mut y[shift..]), Arg::from(1i32)]).unwrap();
        assert_eq!(y[shift + 63], shift as i32 + 64);
    }
}

#[test]
fn a_shared_slice_is_not_written() {
    let program = Program::from_text(SHIFT).unwrap();
    let (x, y) = (vec![0i32; 64], vec![0i32; 64]);
    for device in DEVICES {
        let kernel = program.entry("shift").unwrap().with_options(options(device));
        let error = kernel.launch([1, 1, 1], &mut [Arg::from(&x[..]), Arg::from(&y[..]), Arg::from(1i32)]).unwrap_err();
        assert!(error.to_string().contains("argument `y` was given as a shared slice"), "{error}");
    }
}

#[test]
fn small_buffers_are_refused_before_the_launch() {
    let program = Program::from_text(SHIFT).unwrap();
    let kernel = program.entry("shift").unwrap().with_options(options(Device::Cpu));
    let (x, mut y) = (vec![0i32; 128], vec![0i32; 127]);
    let error = kernel.launch([2, 1, 1], &mut [Arg::from(&x[..]), Arg::from(&mut y[..]), Arg::from(1i32)]).unwrap_err();
    assert_eq!(error.code(), Some(Code::BufferTooSmall));
    assert_eq!(error.to_string(), "buffer `y` holds 127 elements, but the kernel writes index 127");
    // One block less fits.
    kernel.launch([1, 1, 1], &mut [Arg::from(&x[..]), Arg::from(&mut y[..]), Arg::from(1i32)]).unwrap();
}

#[test]
fn grids_and_blocks_out_of_range() {
    let program = Program::from_text(SHIFT).unwrap();
    let (x, mut y) = (vec![0i32; 64], vec![0i32; 64]);
    for grid in [[0, 1, 1], [1, 1 << 24, 1]] {
        let kernel = program.entry("shift").unwrap();
        let error = kernel.launch(grid, &mut [Arg::from(&x[..]), Arg::from(&mut y[..]), Arg::from(1i32)]).unwrap_err();
        assert_eq!(error.code(), Some(Code::BadGrid), "{error}");
    }
    let one = Options { block: Some([1, 0, 0]), ..options(Device::Cpu) };
    let kernel = program.entry("shift").unwrap().with_options(one);
    let error = kernel.launch([1, 1, 1], &mut [Arg::from(&x[..]), Arg::from(&mut y[..]), Arg::from(1i32)]).unwrap_err();
    assert_eq!(error.code(), Some(Code::BadGrid));
}

#[test]
fn one_block_alone() {
    let program = Program::from_text(SHIFT).unwrap();
    for device in DEVICES {
        let kernel =
            program.entry("shift").unwrap().with_options(Options { block: Some([1, 0, 0]), ..options(device) });
        let (x, mut y) = (vec![7i32; 192], vec![0i32; 192]);
        kernel.launch([3, 1, 1], &mut [Arg::from(&x[..]), Arg::from(&mut y[..]), Arg::from(0i32)]).unwrap();
        assert!(y.iter().enumerate().all(|(i, &v)| v == if (64..128).contains(&i) { 7 } else { 0 }), "{device}");
    }
}

/// Stores at an i32 index computed as bx * step, which wraps for large steps: y[(bx * step) mod 2^32] = bx.
const WRAP: &str = r#"cuda_tile.module @m {
  entry @wrap(%y: tile<ptr<i32>>, %step: tile<i32>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %i = muli %bx, %step : tile<i32>
    %p = offset %y, %i : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %t = store_ptr_tko weak %p, %bx : tile<ptr<i32>>, tile<i32> -> token
  }
}
"#;

#[test]
fn an_index_that_wraps_takes_the_general_version() {
    let program = Program::from_text(WRAP).unwrap();
    for device in DEVICES {
        let kernel = program.entry("wrap").unwrap().with_options(options(device));
        let mut y = vec![-1i32; 4];
        // 3 * 0x55555556 = 0x1_0000_0002: block 3 stores element 2 once wrapped; 1 and 2 would lie far outside.
        let grid = [4, 1, 1];
        let only = Options { block: Some([3, 0, 0]), ..options(device) };
        let wrapping = program.entry("wrap").unwrap().with_options(only);
        wrapping.launch(grid, &mut [Arg::from(&mut y[..]), Arg::from(0x5555_5556i32)]).unwrap();
        assert_eq!(y, [-1, -1, 3, -1], "{device}");
        kernel.launch(grid, &mut [Arg::from(&mut y[..]), Arg::from(1i32)]).unwrap();
        assert_eq!(y, [0, 1, 2, 3], "{device}");
    }
}

/// Every block adds 1 to a global; its last element is copied out.
const COUNTER: &str = r#"cuda_tile.module @m {
  global @counter <i32: [40, 2]> : tile<2xi32>
  entry @count(%out: tile<ptr<i32>>) {
    %g = get_global @counter : tile<ptr<i32>>
    %one = constant <i32: 1> : tile<i32>
    %old, %t0 = atomic_rmw_tko relaxed device %g, add, %one : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
    %new = addi %old, %one : tile<i32>
    %t1 = store_ptr_tko weak %out, %new : tile<ptr<i32>>, tile<i32> -> token
  }
}
"#;

#[test]
fn globals_live_as_long_as_the_program() {
    let program = Program::from_text(COUNTER).unwrap();
    let mut out = [0i32; 1];
    for launch in 1..=3 {
        let kernel = program.entry("count").unwrap().with_options(options(Device::Cpu));
        kernel.launch([1, 1, 1], &mut [Arg::from(&mut out[..])]).unwrap();
        assert_eq!(out[0], 40 + launch);
    }
    let fresh = Program::from_text(COUNTER).unwrap();
    fresh
        .entry("count")
        .unwrap()
        .with_options(options(Device::Cpu).check(true))
        .launch([1, 1, 1], &mut [Arg::from(&mut out[..])])
        .unwrap();
    assert_eq!(out[0], 41);
}

const TALK: &str = r#"cuda_tile.module @m {
  entry @talk() {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %v = constant <f32: [1.5, -2.0]> : tile<2xf32>
    print_tko "block %d ", %bx : tile<i32> -> token
    print_tko "has %.2f\n", %v : tile<2xf32> -> token
  }
}
"#;

#[test]
fn prints_leave_block_by_block_and_in_order_if_asked() {
    let program = Program::from_text(TALK).unwrap();
    for device in DEVICES {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = heard.clone();
        let listening = Options { print_order: PrintOrder::Index, ..options(device) }
            .printer(move |block, text| sink.lock().unwrap().push((block[0], text.to_string())));
        program.entry("talk").unwrap().with_options(listening).launch([20, 1, 1], &mut []).unwrap();
        let want: Vec<_> = (0..20).map(|b| (b, format!("block {b} has [1.50, -2.00]\n"))).collect();
        assert_eq!(*heard.lock().unwrap(), want, "{device}");
    }
}

#[test]
fn stages_and_unknown_names() {
    let program = Program::from_text(SHIFT).unwrap();
    assert_eq!(program.entries(), ["shift"]);
    assert!(matches!(program.entry("shfit"), Err(Error::NoEntry { .. })));
    let kernel = program.entry("shift").unwrap();
    for stage in girih::Stage::PROGRAM {
        assert!(kernel.ir(stage).unwrap().contains("shift"), "{}", stage.name());
    }
    let odd = program.entry("shift").unwrap().with_options(Options::default().knob("no_such_knob", 1));
    assert!(odd.ir(girih::Stage::C).is_err());
    assert!(matches!(Program::from_text("cuda_tile.module @m { entry"), Err(Error::Program(d)) if !d.is_empty()));
}

/// 16 blocks wait for each other three times over.
const BARRIER: &str = r#"cuda_tile.module @m {
  entry @barrier(%count: tile<ptr<i32>>) {
    %one = constant <i32: 1> : tile<i32>
    %all, %gy, %gz = get_num_tile_blocks : tile<i32>
    %old, %t0 = atomic_rmw_tko acq_rel device %count, add, %one : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
    loop {
      %now, %t1 = load_ptr_tko acquire device %count : tile<ptr<i32>> -> tile<i32>, token
      %done = cmpi greater_than_or_equal %now, %all, signed : tile<i32> -> tile<i1>
      if %done { break }
    }
  }
}
"#;

#[test]
fn a_grid_barrier_ends() {
    let program = Program::from_text(BARRIER).unwrap();
    for device in DEVICES {
        let kernel = program.entry("barrier").unwrap().with_options(options(device));
        let mut count = [0i32; 1];
        kernel.launch([64, 1, 1], &mut [Arg::from(&mut count[..])]).unwrap();
        assert_eq!(count[0], 64);
    }
}

#[derive(Default)]
struct Seen {
    rules: u32,
    kernels: u32,
}

impl Observer for Seen {
    fn see(&mut self, event: &Event<'_>) -> Result<(), Diagnostic> {
        match event {
            Event::Loop(_) | Event::Tile(_) => self.rules += 1,
            Event::Legalised { placed, kernel } => {
                assert_eq!(placed.params.len(), kernel.params.len());
                self.kernels += 1;
            }
            _ => {}
        }
        Ok(())
    }
}

#[test]
fn an_observer_is_told_of_rules_and_of_kernel_ir() {
    let program = Program::from_text(SHIFT).unwrap();
    let mut seen = Seen::default();
    program.entry("shift").unwrap().observe(&mut seen).unwrap();
    assert!(seen.rules > 10 && seen.kernels == 1, "{} rules, {} kernels", seen.rules, seen.kernels);
}
