//! Races in shared and global memory, and the same kernels without.

use crate::base::Label;
use crate::kernel::ir::AxisId;

use super::{Kind, Options, Policy, clean, found, kernel, racy, simulate};

fn transpose(pitch: u32, barrier: &str) -> String {
    format!(
        "kernel transpose(a: ptr<i32>, b: ptr<i32>) threads 256 scratch 0 shared 4224 {{
  shared tile: i32[1056] at 0
  for i in 0..4 step 1 {{
    x: i32 = load a[(by*32 + i*8 + tx//32)*64 + bx*32 + tx%32]
    store tile[(i*8 + tx//32)*{pitch} + tx%32] = x
  }}
  {barrier}
  for j in 0..4 step 1 {{
    y: i32 = load tile[tx%32*{pitch} + j*8 + tx//32]
    store b[(bx*32 + j*8 + tx//32)*64 + by*32 + tx%32] = y
  }}
}}
"
    )
}

fn matrix() -> [(&'static str, Vec<i32>); 2] {
    [("a", (0..64 * 64).collect()), ("b", vec![-1; 64 * 64])]
}

#[test]
fn a_transpose_needs_its_barrier() {
    let turned: Vec<i32> = (0..64 * 64).map(|n| n % 64 * 64 + n / 64).collect();
    for pitch in [32, 33] {
        clean(&transpose(pitch, "barrier"), [2, 2, 1], &matrix(), &[], &turned);
        let text = transpose(pitch, "");
        racy(&text, [2, 2, 1], &matrix(), &[], Kind::ReadAfterWrite, "store tile", "y: i32 = load tile");
    }
    // The lanes of a warp write columns that other warps read: a warp barrier is not enough.
    racy(&transpose(33, "syncwarp"), [2, 2, 1], &matrix(), &[], Kind::ReadAfterWrite, "store tile", "y: i32");
}

#[test]
fn a_report_names_statements_threads_and_the_element() {
    let k = kernel(&transpose(33, ""));
    let (report, _) = simulate(&k, [2, 2, 1], &matrix(), &[], &Options::default());
    let race = report.findings.iter().find(|f| f.kind == Kind::ReadAfterWrite).unwrap();
    let (first, writer) = race.first.as_ref().unwrap();
    assert_eq!((first.line, first.text.as_str()), (5, "store tile[(i*8 + tx//32)*33 + tx%32] = x"));
    assert_eq!((race.statement.line, race.statement.text.as_str()), (8, "y: i32 = load tile[tx%32*33 + j*8 + tx//32]"));
    // Thread t reads column `j*8 + t//32` of row `t%32`, which thread w wrote as row `i*8 + w//32`.
    let (w, t) = (writer.thread, race.thread.thread);
    assert_eq!((w / 32, w % 8), (t % 8, t / 32), "{race}");
    assert!(race.place.as_ref().unwrap().contains("of `tile` (bytes"), "{race}");
    assert!(race.count > 100 && writer.block == race.thread.block, "{race}");
}

#[test]
fn a_statement_has_the_users_line_of_the_loop_around_it() {
    let mut k = kernel(&transpose(33, ""));
    for (axis, line) in [(0, "turn.py:7"), (1, "turn.py:9")] {
        k.axes[AxisId(axis)].from = Some(Label::new(line));
    }
    let (report, _) = simulate(&k, [1, 1, 1], &matrix(), &[], &Options::default());
    let race = report.findings.iter().find(|f| f.kind == Kind::ReadAfterWrite).unwrap();
    let from = |s: &super::super::Statement| s.from.clone().unwrap();
    assert_eq!(from(&race.first.as_ref().unwrap().0), "turn.py:7");
    assert_eq!(from(&race.statement), "turn.py:9");
    let line = "line 5 of Kernel IR: `store tile[(i*8 + tx//32)*33 + tx%32] = x`";
    let shown = race.to_string();
    assert!(shown.lines().any(|l| l.trim_start().starts_with("turn.py:7 by thread") && l.ends_with(line)), "{shown}");
    // The loop's own text has no comment in it.
    assert!(report.rows.iter().any(|r| r.statement.text == "for i in 0..4 step 1"), "{report}");
}

fn tree(step: &str) -> String {
    format!(
        "kernel sum(a: ptr<i32>, o: ptr<i32>) threads 256 scratch 0 shared 1024 {{
  shared s: i32[256] at 0
  x: i32 = load a[tx]
  store s[tx] = x
  barrier
  var n: i32 = 128:i32
  loop {{
    if n == 0 {{
      break
    }}
    {step}
    m: i32 = index n//2
    n = m
  }}
  y: i32 = load s[0]
  store o[0] = y where tx == 0
}}
"
    )
}

const HALVE: &str = "if tx < n {
p: i32 = load s[tx]
q: i32 = load s[tx + n]
r: i32 = addi p, q
store s[tx] = r
}";

#[test]
fn a_tree_reduction() {
    let arrays = [("a", (0..256).map(|n| n * n).collect::<Vec<i32>>()), ("o", vec![0])];
    let sum = arrays[0].1.iter().sum();
    clean(&tree(&format!("{HALVE}\nbarrier")), [1, 1, 1], &arrays, &[], &[sum]);
    racy(&tree(HALVE), [1, 1, 1], &arrays, &[], Kind::ReadAfterWrite, "store s[tx] = r", "q: i32 = load");
    // The last rounds are within a warp, but lanes are not in lockstep: they need a warp barrier.
    let rounds = |last: &str| {
        let text = tree(&format!("if n >= 32 {{\n{HALVE}\nbarrier\n}}"));
        let mut tail = String::new();
        for n in [16, 8, 4, 2, 1] {
            tail += &format!(
                "if tx < 32 {{\np{n}: i32 = load s[tx]\nq{n}: i32 = load s[tx + {n}]\n{last}\nr{n}: i32 = addi p{n}, q{n}\n\
                 store s[tx] = r{n}\n{last}\n}}\n"
            );
        }
        text.replace("  y: i32 = load s[0]\n", &format!("{tail}barrier\n  y: i32 = load s[0]\n"))
    };
    clean(&rounds("syncwarp"), [1, 1, 1], &arrays, &[], &[sum]);
    racy(&rounds(""), [1, 1, 1], &arrays, &[], Kind::WriteAfterRead, "q16: i32 = load", "store s[tx] = r16");
}

/// The step of an article: every lane of a warp adds, as if only one did.
#[test]
fn a_tree_step_by_whole_warps_races_within_each() {
    let text = "kernel sum(a: ptr<i32>, o: ptr<i32>) threads 256 scratch 0 shared 32 {
  shared acc: i32[8] at 0
  x: i32 = load a[tx//32]
  store acc[tx//32] = x where tx%32 == 0
  barrier
  if tx//32 < 4 {
    p: i32 = load acc[tx//32]
    q: i32 = load acc[tx//32 + 4]
    r: i32 = addi p, q
    store acc[tx//32] = r
  }
  barrier
  y: i32 = load acc[0]
  store o[0] = y where tx == 0
}
";
    let arrays = [("a", vec![1, 2, 3, 4, 5, 6, 7, 8]), ("o", vec![0])];
    racy(text, [1, 1, 1], &arrays, &[], Kind::WriteAfterRead, "p: i32 = load acc[tx//32]", "store acc[tx//32] = r");
    racy(text, [1, 1, 1], &arrays, &[], Kind::WriteAfterWrite, "store acc[tx//32] = r", "store acc[tx//32] = r");
    let guarded = text.replace("if tx//32 < 4 {", "if tx//32 < 4 and tx%32 == 0 {");
    clean(&guarded, [1, 1, 1], &arrays, &[], &[6]);
    // One after the other, as lanes may run, they add several times.
    let k = kernel(text);
    let wrong = (0..200).any(|seed| {
        let options = Options { policy: Policy::Random, seed, ..Options::default() };
        simulate(&k, [1, 1, 1], &arrays, &[], &options).1[1] != [6]
    });
    assert!(wrong, "no schedule shows what the race does");
}

#[test]
fn a_shuffle_reduction() {
    let mut body = String::from("x0: i32 = load a[tx]\n");
    for (n, by) in [16, 8, 4, 2, 1].into_iter().enumerate() {
        body += &format!("t{n}: i32 = shuffle xor x{n}, {by}:i32\nx{}: i32 = addi x{n}, t{n}\n", n + 1);
    }
    body += "d: i32 = shuffle down x0, 3:i32\ni: i32 = shuffle idx x0, 5:i32\nstore o[tx] = x5\nstore o[64 + tx] = d\nstore o[128 + tx] = i\n";
    let text = format!("kernel warps(a: ptr<i32>, o: ptr<i32>) threads 64 scratch 0 {{\n{body}}}\n");
    let a: Vec<i32> = (0..64).map(|n| n * 3 + 1).collect();
    let sums = (0..64).map(|t| a[t / 32 * 32..][..32].iter().sum());
    let down = (0..64).map(|t| if t % 32 < 29 { a[t + 3] } else { a[t] });
    let idx = (0..64).map(|t| a[t / 32 * 32 + 5]);
    let expected: Vec<i32> = sums.chain(down).chain(idx).collect();
    clean(&text, [1, 1, 1], &[("a", a), ("o", vec![0; 192])], &[], &expected);
}

/// A shuffle exchanges values; CUDA promises no order of memory accesses around it.
#[test]
fn a_shuffle_orders_no_memory() {
    let text = |between: &str| {
        format!(
            "kernel k(o: ptr<i32>) threads 32 scratch 0 shared 128 {{\nshared s: i32[32] at 0\nt: i32 = index tx\nstore s[tx] = t\n\
             {between}\ny: i32 = load s[31 - tx]\nstore o[tx] = y\n}}\n"
        )
    };
    let o = [("o", vec![0; 32])];
    racy(&text("u: i32 = shuffle xor t, 1:i32"), [1; 3], &o, &[], Kind::ReadAfterWrite, "store s", "y: i32");
    clean(&text("syncwarp"), [1; 3], &o, &[], &(0..32).rev().collect::<Vec<_>>());
}

/// A ring of slots that is filled one slab ahead; the barrier before the fill or behind it.
fn ring(depth: u32, barrier_first: bool) -> String {
    let fill = format!("if k + 1 < n {{\nx: i32 = load a[(k + 1)*64 + tx]\nstore s[(k + 1)%{depth}*64 + tx] = x\n}}");
    let (one, two) = if barrier_first { ("barrier", fill.as_str()) } else { (fill.as_str(), "barrier") };
    format!(
        "kernel ring(a: ptr<i32>, o: ptr<i32>, n: i32) threads 64 scratch 0 shared {bytes} {{
  shared s: i32[{len}] at 0
  x0: i32 = load a[tx] where n > 0
  store s[tx] = x0 where n > 0
  var sum: i32 = 0:i32
  for k in 0..n step 1 {{
    {one}
    {two}
    y: i32 = load s[k%{depth}*64 + 63 - tx]
    t: i32 = addi sum, y
    sum = t
  }}
  store o[tx] = sum
}}
",
        bytes = depth * 256,
        len = depth * 64
    )
}

/// Returns true if a slot is written and read between two barriers, by going through the loop by hand.
fn ring_races(depth: u32, trips: u32, barrier_first: bool) -> bool {
    // Intervals between barriers, each with the slots that are filled and read in it.
    let mut intervals = vec![(vec![0], vec![])];
    for k in 0..trips {
        let fill = (k + 1 < trips).then_some((k + 1) % depth);
        if !barrier_first {
            intervals.last_mut().unwrap().0.extend(fill);
        }
        intervals.push((vec![], vec![]));
        if barrier_first {
            intervals.last_mut().unwrap().0.extend(fill);
        }
        intervals.last_mut().unwrap().1.push(k % depth);
    }
    trips > 0 && intervals.iter().any(|(filled, read)| filled.iter().any(|slot| read.contains(slot)))
}

#[test]
fn a_ring_of_slots_is_refilled_behind_its_readers() {
    let (mut raced, mut held) = (0, 0);
    for depth in 1..=6 {
        for barrier_first in [true, false] {
            let k = kernel(&ring(depth, barrier_first));
            for trips in 0..=8u32 {
                let a: Vec<i32> = (0..64 * 8).map(|n| n * 7 % 1001).collect();
                let sum = |t: usize| (0..trips as usize).map(|k| a[k * 64 + 63 - t]).sum();
                let expected: Vec<i32> = (0..64).map(sum).collect();
                for policy in [Policy::RoundRobin, Policy::Newest, Policy::Random] {
                    let options = Options { policy, ..Options::default() };
                    let arrays = [("a", a.clone()), ("o", vec![-1; 64])];
                    let (report, left) = simulate(&k, [1, 1, 1], &arrays, &[trips.into()], &options);
                    let case = format!("depth {depth}, {trips} trips, barrier first {barrier_first}\n{report}");
                    if ring_races(depth, trips, barrier_first) {
                        raced += 1;
                        let is = |f: &super::super::Finding| {
                            f.kind == Kind::WriteAfterRead || f.kind == Kind::ReadAfterWrite
                        };
                        assert!(report.findings.iter().any(is), "{case}");
                    } else {
                        held += 1;
                        assert!(report.is_clean(), "{case}");
                        // A single slot is filled before it is read, barriers or not.
                        assert!(left[1] == expected || depth == 1 && trips > 1, "{case}");
                    }
                }
            }
        }
    }
    // One slot from 2 trips on, or 3 with the barrier behind the fill; two slots from 3 on, there alone.
    assert_eq!((raced, held), (3 * (7 + 6 + 6), 3 * 108 - 3 * 19));
    // Two slots with the barrier behind the fill, as in an article: the slot is still read.
    let text = ring(2, false);
    let arrays = [("a", vec![1; 512]), ("o", vec![0; 64])];
    racy(&text, [1, 1, 1], &arrays, &[8], Kind::WriteAfterRead, "y: i32 = load s[k%2*64", "store s[(k + 1)%2*64");
}

#[test]
fn blocks_that_write_one_element() {
    let text = "kernel k(o: ptr<i32>) threads 32 scratch 0 {\nb: i32 = index bx\nstore o[0] = b where tx == 0\n}\n";
    let (report, _) = simulate(&kernel(text), [3, 1, 1], &[("o", vec![0])], &[], &Options::default());
    assert_eq!(found(&report), [(Kind::WriteAfterWrite, 3, 3)]);
    let f = &report.findings[0];
    assert_eq!((f.first.as_ref().unwrap().1.block, f.thread.block, f.count), ([0, 0, 0], [1, 0, 0], 2));
    assert_eq!(f.place.as_ref().map(|p| p.starts_with("bytes 0 to 3 of `o`")), Some(true), "{f}");
    // Each its own element, or atomics.
    clean(&text.replace("o[0]", "o[bx]"), [3, 1, 1], &[("o", vec![9; 3])], &[], &[0, 1, 2]);
    let added = "kernel k(o: ptr<i32>) threads 64 scratch 0 {\nold: i32 = rmw add o[0], 1:i32 relaxed\n}\n";
    clean(added, [3, 1, 1], &[("o", vec![5])], &[], &[197]);
    // A plain access is not atomic.
    let mixed = added.replace("}\n", "store o[0] = 1:i32 where tx == 7\n}\n");
    racy(&mixed, [1, 1, 1], &[("o", vec![5])], &[], Kind::WriteAfterWrite, "old: i32 = rmw", "store o[0]");
}

/// Block 0 hands an element to block 1: thread 5 writes it, thread 0 says so.
fn handed(before: &str, store: &str, load: &str, after: &str) -> String {
    format!(
        "kernel k(flag: ptr<i32>, data: ptr<i32>, o: ptr<i32>) threads 64 scratch 0 {{
  if bx == 0 {{
    store data[0] = 42:i32 where tx == 37
    {before}
    store flag[0] = 1:i32 where tx == 0 {store}
  }} else {{
    if tx == 0 {{
      loop {{
        f: i32 = load flag[0] {load}
        if f == 1 {{
          break
        }}
      }}
    }}
    {after}
    x: i32 = load data[0] where tx == 40
    store o[0] = x where tx == 40
  }}
}}
"
    )
}

#[test]
fn a_release_and_an_acquire_hand_over() {
    let arrays = [("flag", vec![0]), ("data", vec![0]), ("o", vec![0])];
    clean(&handed("barrier", "release", "acquire", "barrier"), [2, 1, 1], &arrays, &[], &[42]);
    let race = |text: &str| {
        racy(text, [2, 1, 1], &arrays, &[], Kind::ReadAfterWrite, "store data[0] = 42", "x: i32 = load data[0]");
    };
    race(&handed("barrier", "relaxed", "acquire", "barrier"));
    race(&handed("barrier", "release", "relaxed", "barrier"));
    race(&handed("", "release", "acquire", "barrier"));
    race(&handed("barrier", "release", "acquire", ""));
}

#[test]
fn a_mutex_orders_the_blocks_that_hold_it() {
    let text = |order: [&str; 2]| {
        format!(
            "kernel k(lock: ptr<i32>, o: ptr<i32>) threads 32 scratch 0 {{
  if tx == 0 {{
    loop {{
      was: i32 = cas lock[0], 0:i32, 1:i32 {}
      if was == 0 {{
        break
      }}
    }}
    x: i32 = load o[0]
    y: i32 = addi x, 1:i32
    store o[0] = y
    free: i32 = rmw xchg lock[0], 0:i32 {}
  }}
}}
",
            order[0], order[1]
        )
    };
    let arrays = [("lock", vec![0]), ("o", vec![0])];
    clean(&text(["acquire", "release"]), [7, 1, 1], &arrays, &[], &[7]);
    racy(&text(["relaxed", "release"]), [7, 1, 1], &arrays, &[], Kind::ReadAfterWrite, "store o[0] = y", "x: i32");
    racy(&text(["acquire", "relaxed"]), [7, 1, 1], &arrays, &[], Kind::ReadAfterWrite, "store o[0] = y", "x: i32");
}

#[test]
fn atomics_of_shared_memory() {
    let text = |barrier: &str| {
        format!(
            "kernel histogram(a: ptr<i32>, o: ptr<i32>) threads 128 scratch 0 shared 16 {{
  shared h: i32[4] at 0
  store h[tx] = 0:i32 where tx < 4
  barrier
  v: i32 = load a[tx]
  old: i32 = rmw add h[v], 1:i32 relaxed
  {barrier}
  c: i32 = load h[tx] where tx < 4
  store o[tx] = c where tx < 4
}}
"
        )
    };
    let arrays = [("a", (0..128).map(|n| n % 3).collect()), ("o", vec![9; 4])];
    clean(&text("barrier"), [1, 1, 1], &arrays, &[], &[43, 43, 42, 0]);
    racy(&text(""), [1, 1, 1], &arrays, &[], Kind::ReadAfterWrite, "old: i32 = rmw", "c: i32 = load h");
}

#[test]
fn the_two_elements_of_a_byte_are_apart() {
    let store =
        |at: &str| format!("kernel k(h: ptr<i4>) threads 64 scratch 0 shared 0 {{\n  store h[{at}] = 1:i4\n}}\n");
    let (arrays, stored) = ([("h", vec![0; 8])], [0x1111_1111; 8]);
    clean(&store("tx"), [1, 1, 1], &arrays, &[], &stored);
    racy(&store("tx//2"), [1, 1, 1], &arrays, &[], Kind::WriteAfterWrite, "store h", "store h");
}
