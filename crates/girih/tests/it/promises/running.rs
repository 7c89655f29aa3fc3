//! The floating-point environment, and the order of printed text.

use super::common::*;
use girih::{Arg, Device, PrintOrder};
use std::sync::{Arc, Mutex};

#[cfg(target_arch = "x86_64")]
mod control {
    pub fn get() -> u32 {
        let mut value = 0u32;
        // SAFETY: stores the control register into a local.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack)) };
        value
    }
    pub fn set(value: u32) {
        // SAFETY: the tests set flushing and rounding bits only, and put the old value back before any float is computed.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack)) };
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_hosts_rounding_and_flushing_change_nothing() {
    let n = 256;
    let body = [
        spread("x", "ptr<f32>", n),
        spread("y", "ptr<f32>", n),
        iota("i", n),
        splat("third", "0x3EAAAAAB", "f32", n),
        at("xp", "x", "i", "f32", "i32", n),
        at("yp", "y", "i", "f32", "i32", n),
        load("u", "xp", "f32", n),
        op2("v", "mulf", "u", "third", "f32", n),
        store("v", "yp", "f32", n),
    ]
    .concat();
    let program = program("%x: tile<ptr<f32>>, %y: tile<ptr<f32>>", &body);
    // Subnormals, results that are subnormal, results that round.
    let x: Vec<f32> = (0..256u32).map(|i| f32::from_bits(i * 0x0001_2345 + 1)).chain([]).collect();
    let expected: Vec<u32> = x.iter().map(|x| (x * f32::from_bits(0x3EAA_AAAB)).to_bits()).collect();
    assert!(expected.iter().filter(|&&b| b != 0 && b < 0x80_0000).count() > 50);
    for device in DEVICES {
        for threads in [1, 4] {
            let kernel = kernel(&program, options(device).threads(threads));
            let mut y = vec![0f32; 256];
            let mut args = [Arg::from(&x[..]), Arg::from(&mut y[..])];
            let mut prepared = kernel.prepare([1; 3], &mut args).unwrap();
            let old = control::get();
            // Flush to zero, denormals are zero, round towards positive infinity.
            let odd = 0x1f80 | 0x8000 | 0x0040 | 0x4000;
            control::set(odd);
            let outcome = prepared.run();
            let after = control::get();
            control::set(old);
            outcome.unwrap();
            assert_eq!(after & !0x3f, odd, "{device}");
            let bits: Vec<u32> = y.iter().map(|y| y.to_bits()).collect();
            assert_eq!(bits, expected, "{device}, {threads} threads");
        }
    }
}

type Printed = Arc<Mutex<Vec<([u32; 3], String)>>>;

fn recorder() -> (Printed, impl Fn([u32; 3], &str) + Send + Sync + 'static) {
    let all: Printed = Arc::default();
    let into = all.clone();
    (all, move |block: [u32; 3], text: &str| into.lock().unwrap().push((block, text.to_string())))
}

const PRINTS: &str = "    %bx, %by, %bz = get_tile_block_id : tile<i32>\n    %c0 = constant <i32: 0> : tile<i32>\n    %c1 = \
                      constant <i32: 1> : tile<i32>\n    %c3 = constant <i32: 3> : tile<i32>\n    for %k in (%c0 to %c3, step %c1) : \
                      tile<i32> {\n      %t = print_tko \"%i.%i \", %bx, %k : tile<i32>, tile<i32> -> token\n    }\n    %t = print_tko \
                      \"end %i\\n\", %by : tile<i32> -> token\n";

#[test]
fn a_blocks_text_stays_together() {
    let program = program("", PRINTS);
    for device in DEVICES {
        for order in [PrintOrder::Finish, PrintOrder::Index] {
            let (printed, printer) = recorder();
            let mut options = options(device).printer(printer);
            options.print_order = order;
            options.seed = 12345;
            kernel(&program, options).launch([20, 3, 1], &mut []).unwrap();
            let mut got = printed.lock().unwrap().clone();
            if order == PrintOrder::Finish {
                got.sort_by_key(|(b, _)| (b[2], b[1], b[0]));
            }
            let blocks = (0..3u32).flat_map(|y| (0..20u32).map(move |x| [x, y, 0]));
            let want: Vec<_> = blocks.map(|[x, y, z]| ([x, y, z], format!("{x}.0 {x}.1 {x}.2 end {y}\n"))).collect();
            assert_eq!(got, want, "{device}, {order:?}");
        }
    }
}

#[test]
fn text_before_a_trap_is_printed() {
    let body = format!(
        "{PRINTS}    %ok = cmpi not_equal %bx, %c3, signed : tile<i32> -> tile<i1>\n    assert %ok, \"three\" : tile<i1>\n"
    );
    let program = program("", &body);
    for device in DEVICES {
        for order in [PrintOrder::Finish, PrintOrder::Index] {
            let (printed, printer) = recorder();
            let mut options = options(device).printer(printer);
            options.print_order = order;
            let trap = trap(&program, options, 8, &mut []);
            assert_eq!(trap.block, [3, 0, 0]);
            let printed = printed.lock().unwrap();
            assert!(printed.contains(&([3, 0, 0], "3.0 3.1 3.2 end 0\n".to_string())), "{device}: {printed:?}");
        }
    }
}

#[test]
fn one_device_repeats_itself() {
    // The same launch, ten times, on different numbers of threads: the same bits.
    let n = 64;
    let body = [
        "    %bx, %by, %bz = get_tile_block_id : tile<i32>\n".into(),
        spread("x", "ptr<f32>", n),
        iota("i", n),
        at("p", "x", "i", "f32", "i32", n),
        load("u", "p", "f32", n),
        format!(
            "    %sum = reduce %u dim=0 identities=[0.0 : f32] : tile<{n}xf32> -> tile<f32>\n    (%e: tile<f32>, %a: tile<f32>) {{\n      \
             %s = addf %e, %a : tile<f32>\n      yield %s : tile<f32>\n    }}\n"
        ),
        "    %to = offset %out, %bx : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>\n    %t = store_ptr_tko weak %to, %sum : \
         tile<ptr<f32>>, tile<f32> -> token\n"
            .into(),
    ]
    .concat();
    let program = program("%x: tile<ptr<f32>>, %out: tile<ptr<f32>>", &body);
    let x: Vec<f32> = (0..64).map(|i| (i as f32).sin()).collect();
    let mut seen: Option<Vec<u32>> = None;
    for threads in [1, 2, 3, 8] {
        let mut out = vec![0f32; 100];
        let kernel = kernel(&program, options(Device::Cpu).threads(threads));
        kernel.launch([100, 1, 1], &mut [Arg::from(&x[..]), Arg::from(&mut out[..])]).unwrap();
        let bits: Vec<u32> = out.iter().map(|x| x.to_bits()).collect();
        assert_eq!(*seen.get_or_insert(bits.clone()), bits, "{threads} threads");
    }
}
