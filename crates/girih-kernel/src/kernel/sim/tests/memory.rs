//! Accesses that go wrong alone, and kernels of one thread.

use super::{Kind, Options, Policy, clean, found, kernel, simulate};
use crate::base::host::Silent;
use crate::base::launch::Launch;
use crate::base::memory::VecMemory;
use crate::kernel::{eval, sim};
use crate::loops;

fn kinds(body: &str) -> (Vec<(Kind, u32, u32)>, String) {
    let text = format!(
        "kernel k(o: ptr<i32>) threads 32 scratch 64 shared 256 {{\nslot t: i32[16] at 0\nshared s: i32[32] at 0\nshared u: \
         i32[32] at 128\n{body}\n}}\n"
    );
    let (report, _) = simulate(&kernel(&text), [1, 1, 1], &[("o", vec![0; 64])], &[], &Options::default());
    (found(&report), report.findings.first().map_or(String::new(), |f| f.to_string()))
}

#[test]
fn shared_memory_that_nobody_wrote() {
    let (all, text) = kinds("store s[tx] = 1:i32 where tx < 31\nbarrier\nx: i32 = load s[tx]\nstore o[tx] = x");
    assert_eq!(all, [(Kind::Unwritten, 7, 7)]);
    assert!(
        text.contains("by thread 31") && text.contains("element 31 of `s`") && text.contains("seen once"),
        "{text}"
    );
    // Each block begins anew.
    let text = "kernel k(o: ptr<i32>) threads 32 scratch 0 shared 128 {\nshared s: i32[32] at 0\nif bx == 0 {\nstore s[tx] = 1:i32\n\
                }\nx: i32 = load s[tx]\nstore o[bx*32 + tx] = x\n}\n";
    let (report, _) = simulate(&kernel(text), [2, 1, 1], &[("o", vec![0; 64])], &[], &Options::default());
    assert_eq!((found(&report), report.findings[0].thread.block), (vec![(Kind::Unwritten, 6, 6)], [1, 0, 0]));
}

#[test]
fn what_is_out_of_bounds_touches_nothing() {
    let (all, text) = kinds("store s[tx + 1] = 1:i32");
    assert_eq!(all, [(Kind::OutOfBounds, 5, 5)]);
    assert!(
        text.contains("writes element 32 of `s` in shared memory, which has 32") && text.contains("thread 31"),
        "{text}"
    );
    let (all, text) = kinds("x: i32 = load o[tx*3]\nstore o[tx] = x");
    assert_eq!(all[0], (Kind::OutOfBounds, 5, 5));
    assert!(
        text.contains("reads 4 bytes") && text.contains("of `o`, which has 256") && text.contains("seen 10 times"),
        "{text}"
    );
    let (all, text) = kinds("x: i32x4 = load t[14]\nstore o[0] = 1:i32 where tx == 0");
    assert_eq!(all, [(Kind::OutOfBounds, 5, 5)]);
    assert!(text.contains("elements 14 to 17 of `t` in scratch memory") && text.contains("seen 32 times"), "{text}");
    assert_eq!(kinds("store o[tx - 1] = 1:i32 where tx > 0").0, []);
    assert_eq!(kinds("a: i32 = rmw add s[40], 1:i32").0, [(Kind::OutOfBounds, 5, 5)]);
}

#[test]
fn a_vector_is_aligned_to_its_own_size() {
    assert_eq!(kinds("x: i32x2 = load o[tx*2]\nstore u[0] = 1:i32 where tx == 0").0, []);
    let (all, text) = kinds("x: i32x2 = load o[tx + 1]\nstore u[0] = 1:i32 where tx == 0");
    assert_eq!(all, [(Kind::Misaligned, 5, 5)]);
    assert!(text.contains("global memory is not aligned") && text.contains("seen 16 times"), "{text}");
    let (all, _) = kinds("x: i32x4 = load o[0]\nstore s[6] = x where true\nstore u[0] = 1:i32 where tx == 0");
    assert!(all.contains(&(Kind::Misaligned, 6, 6)), "{all:?}");
}

#[test]
fn every_thread_has_its_own_scratch() {
    let text = "kernel k(o: ptr<i32>) threads 64 scratch 16 {\nslot t: i32[4] at 0\nfor i in 0..4 step 1 {\nv: i32 = index tx*10 + i\n\
                store t[i] = v\n}\nx: i32 = load t[tx%4]\nstore o[tx] = x\n}\n";
    clean(text, [1, 1, 1], &[("o", vec![0; 64])], &[], &(0..64).map(|t| t * 10 + t % 4).collect::<Vec<_>>());
}

#[test]
fn a_kernel_of_one_thread_means_what_the_evaluator_says() {
    for (grid, body) in [
        (1, "x: i32x4 = load o[0]\ny: i32x4 = muli x, x\nstore o[0] = y"),
        (
            1,
            "x: i32x8 = load o[0]\ny: i32 = reduce addi x\nl: i32 = lane x[2 + 1]\nlane x[0] = y\nlane x[1] = l\nstore o[0] = x",
        ),
        (1, "a: i32x4 = load o[0]\nb: i32x4 = load o[4]\nm: i32x4 = merge high 2 a, b\nstore o[0] = m"),
        (
            1,
            "var n: i32 = 0:i32\nfor i in 0..10 step 3 {\nif i == 6 {\ncontinue\n}\nm: i32 = addi n, 1:i32\nn = m\n}\nstore o[0] = n",
        ),
        (1, "store s[3] = 5:i32\nx: i32 = load s[3]\ny: i32 = load s[4]\nstore o[0] = x\nstore o[1] = y"),
        (
            1,
            "p: ptr<i32> = scratch 16\nstore p[1] = 3:i32\nx: i32 = load p[1]\nz: i32 = load p[2]\nstore o[1] = x\nstore o[2] = z",
        ),
        (3, "a: i32 = rmw add o[0], 4:i32\nb: i32 = cas o[2], 3:i32, 9:i32\nstore o[3 + bx] = a where bx < 2"),
        (
            4,
            "if bx < gx - 1 {\nloop {\nx: i32 = load o[bx + 1] acquire\nif x != 0 {\nbreak\n}\nyield site 0\n}\n}\nstore o[bx] = 1:i32 release",
        ),
    ] {
        let text = format!("kernel k(o: ptr<i32>) scratch 64 {{\nslot s: i32[16] at 0\n{body}\n}}\n");
        let k = kernel(&text);
        let o = vec![0, 0, 3, 0, 0, 6, -7, 8];
        let mut memory = VecMemory::new();
        let at = memory.add("o", o.iter().flat_map(|x: &i32| x.to_le_bytes()).collect());
        let (launch, placed) = (Launch::new([grid, 1, 1], vec![at]), loops::ir::Kernel::default());
        eval::run(&k, &placed, &launch, &mut memory, &mut Silent).unwrap();
        let expected: Vec<i32> =
            memory.bytes(at).unwrap().chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect();
        for policy in Policy::ALL {
            let options = Options { policy, ..Options::default() };
            let (report, left) = simulate(&k, [grid, 1, 1], &[("o", o.clone())], &[], &options);
            assert!(report.stopped.is_none(), "{report}");
            // The order of blocks that add decides what each of them sees.
            if grid == 1 || policy != Policy::Random {
                assert_eq!(left[0], expected, "{policy:?}: {text}");
            }
        }
    }
}

#[test]
fn what_cannot_begin_is_an_error() {
    let k = kernel("kernel k(o: ptr<i32>) threads 32 scratch 0 {\nstore o[tx] = 1:i32\n}\n");
    let placed = loops::ir::Kernel::default();
    let begin = |grid, args: Vec<u64>| {
        sim::run(&k, &placed, &Launch::new(grid, args), &mut VecMemory::new(), &mut Silent, &Options::default())
            .map(|r| r.blocks)
            .map_err(|t| t.message)
    };
    assert_eq!(begin([1, 1, 1], vec![]), Err("the kernel has 1 parameters, but 0 arguments were given".to_string()));
    assert!(begin([u32::MAX, 2, 1], vec![0]).unwrap_err().contains("the simulator takes less than"));
    let of_one = eval::run(&k, &placed, &Launch::new([1; 3], vec![0]), &mut VecMemory::new(), &mut Silent);
    assert!(of_one.unwrap_err().message.contains("only the simulator runs blocks of several threads"));
}

/// A thread's own arrays: the same element in every lane, another in each, under masks, of several elements at once, and
/// before they are written.
#[test]
fn arrays_of_a_thread() {
    let text = "\
kernel k(o: ptr<i32>) threads 64 scratch 48 {
  slot s: i32[8] at 0
  slot b: i8[4] at 32
  for i in 0..8 step 1 {
    v: i32 = index i*100 + tx
    store s[(i + tx)%8] = v
  }
  store s[3] = 7:i32 where tx%2 == 0
  store b[tx%4] = 1:i8
  x: i32 = load s[tx%8]
  p: i32x4 = load s[2]
  y: i32 = lane p[tx%4]
  c: i8 = load b[(tx + 1)%4]
  d: i8 = load b[2] where tx < 3
  store o[bx*256 + tx*4] = x
  store o[bx*256 + tx*4 + 1] = y
  e: i32 = ext.i32 c
  f: i32 = ext.i32 d
  store o[bx*256 + tx*4 + 2] = e
  store o[bx*256 + tx*4 + 3] = f
}
";
    let expected = (0..64i32).cycle().take(128).flat_map(|t| {
        let element = |at: i32| if at == 3 && t % 2 == 0 { 7 } else { (at - t).rem_euclid(8) * 100 + t };
        let poison = i32::from(0xa5u8 as i8);
        let d = if t >= 3 {
            0
        } else if t % 4 == 2 {
            1
        } else {
            poison
        };
        [element(t % 8), element(2 + t % 4), poison, d]
    });
    let expected: Vec<i32> = expected.collect();
    clean(text, [2, 1, 1], &[("o", vec![0; 512])], &[], &expected);
}

/// An index past a thread's own array is a report, wherever the other lanes are.
#[test]
fn past_an_array_of_a_thread() {
    for index in ["tx//32*4", "4", "0 - 1"] {
        let text = format!(
            "kernel k(o: ptr<i32>) threads 64 scratch 16 {{\n  slot s: i32[4] at 0\n  store s[{index}] = 1:i32\n}}\n"
        );
        let (report, _) = simulate(&kernel(&text), [1, 1, 1], &[("o", vec![0])], &[], &Options::default());
        assert!(report.stopped.is_some() || !report.is_clean(), "{index}: {report}");
    }
}
