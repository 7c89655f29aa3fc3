//! Threads that wait for each other, or for what never comes.

use super::{Kind, Options, clean, found, kernel, schedules, simulate};
use crate::base::Code;
use crate::base::host::Host;
use crate::base::launch::Launch;
use crate::base::memory::VecMemory;
use crate::kernel::sim::run;
use crate::kernel::{parse, verify};
use crate::loops;

/// The findings in a kernel that the verifier refuses, and its report as text.
fn refused(threads: u32, body: &str) -> (Vec<(Kind, u32, u32)>, String) {
    let text = format!("kernel k(o: ptr<i32>) threads {threads} scratch 0 {{\n{body}\n}}\n");
    let k = parse::parse(&text).unwrap_or_else(|d| panic!("{}\n{text}", d.message));
    assert_ne!(verify::verify(&k), [""; 0], "{text}");
    let (report, _) = simulate(&k, [1, 1, 1], &[("o", vec![0; 64])], &[], &Options::default());
    for options in schedules() {
        assert_eq!(
            found(&simulate(&k, [1, 1, 1], &[("o", vec![0; 64])], &[], &options).0),
            found(&report),
            "{options:?}"
        );
    }
    (found(&report), report.to_string())
}

#[test]
fn a_barrier_that_some_do_not_reach() {
    let (kinds, text) = refused(64, "if tx < 5 {\nbarrier\n}");
    assert_eq!(kinds, [(Kind::Divergent, 3, 3)]);
    assert!(
        text.contains("threads 0-4 wait at line 3: `barrier`") && text.contains("threads 5-63 have ended"),
        "{text}"
    );
    let (kinds, text) = refused(64, "if tx == 63 {\nreturn\n}\nbarrier");
    assert_eq!(kinds, [(Kind::Divergent, 5, 5)]);
    assert!(text.contains("thread 63 has ended"), "{text}");
}

#[test]
fn barriers_at_different_statements() {
    let (kinds, text) = refused(64, "if tx < 32 {\nbarrier\n} else {\nbarrier\n}");
    assert_eq!(kinds, [(Kind::Divergent, 3, 3)]);
    assert!(text.contains("threads 0-31 wait at line 3") && text.contains("threads 32-63 wait at line 5"), "{text}");
    let (kinds, _) = refused(32, "if tx < 7 {\nsyncwarp\n} else {\nsyncwarp\n}");
    assert_eq!(kinds, [(Kind::Divergent, 3, 3)]);
    let (kinds, _) = refused(32, "if tx < 7 {\nt: i32 = index tx\nu: i32 = shuffle xor t, 1:i32\n}");
    assert_eq!(kinds, [(Kind::Divergent, 4, 4)]);
}

#[test]
fn threads_that_wait_for_each_other_forever() {
    let (kinds, text) = refused(32, "if tx < 16 {\nbarrier\n} else {\nsyncwarp\n}");
    assert_eq!(kinds, [(Kind::Deadlock, 3, 3)]);
    assert!(text.contains("threads 0-15 wait at line 3: `barrier`"), "{text}");
    assert!(text.contains("threads 16-31 wait at line 5: `syncwarp`"), "{text}");
    assert!(text.contains("stopped: the threads of a block wait for each other forever (block 0,0,0)"), "{text}");
}

#[test]
fn a_barrier_in_a_loop_that_all_leave_together_is_clean() {
    let text = "kernel k(o: ptr<i32>, n: i32) threads 96 scratch 0 shared 16 {
  shared s: i32[4] at 0
  for i in 0..n step 1 {
    v: i32 = index i
    store s[0] = v where tx == i
    barrier
    w: i32 = load s[0]
    barrier
    if w == 5 {
      break
    }
    store o[i] = w where tx == 95 - i
  }
}
";
    clean(text, [1, 1, 1], &[("o", vec![-1; 8])], &[8], &[0, 1, 2, 3, 4, -1, -1, -1]);
}

#[test]
fn lanes_part_and_meet_again() {
    // Each thread its own trip count, and a value that depends on the way it went.
    let text = "kernel k(o: ptr<i32>) threads 64 scratch 0 {
  var n: i32 = 0:i32
  for i in 0..tx%7 step 1 {
    if i%2 == 0 {
      a: i32 = addi n, 10:i32
      n = a
      continue
    }
    b: i32 = addi n, 1:i32
    n = b
    if n > 20 and tx%2 == 0 {
      break
    }
  }
  syncwarp
  c: i32 = shuffle down n, 1:i32
  store o[tx] = c
}
";
    let of = |t: i32| {
        let mut n = 0;
        for i in 0..t % 7 {
            if i % 2 == 0 {
                n += 10;
                continue;
            }
            n += 1;
            if n > 20 && t % 2 == 0 {
                break;
            }
        }
        n
    };
    let expected: Vec<i32> = (0..64).map(|t| of(if t % 32 == 31 { t } else { t + 1 })).collect();
    clean(text, [1, 1, 1], &[("o", vec![0; 64])], &[], &expected);
}

/// The lane that has the lock is ahead of those that spin, and must get its turn.
#[test]
fn lanes_of_a_warp_that_wait_for_each_other() {
    let text = "kernel k(lock: ptr<i32>, o: ptr<i32>) threads 64 scratch 0 {
  loop {
    was: i32 = cas lock[0], 0:i32, 1:i32 acquire
    if was == 0 {
      x: i32 = load o[0]
      y: i32 = addi x, 1:i32
      store o[0] = y
      free: i32 = rmw xchg lock[0], 0:i32 release
      break
    }
  }
}
";
    clean(text, [2, 1, 1], &[("lock", vec![0]), ("o", vec![0])], &[], &[128]);
}

#[test]
fn warps_that_are_not_whole() {
    let text = "kernel k(o: ptr<i32>) threads 40 scratch 0 shared 160 {
  shared s: i32[40] at 0
  t: i32 = index tx
  store s[tx] = t
  barrier
  x: i32 = load s[39 - tx]
  store o[tx] = x
}
";
    clean(text, [1, 1, 1], &[("o", vec![0; 40])], &[], &(0..40).rev().collect::<Vec<_>>());
}

#[test]
fn a_run_that_does_not_end_says_where() {
    let text =
        "kernel k(o: ptr<i32>) threads 32 scratch 0 {\nloop {\nx: i32 = load o[tx]\nif x == 1 {\nbreak\n}\n}\n}\n";
    let options = Options { steps: 10_000, ..Options::default() };
    let (report, _) = simulate(&kernel(text), [1, 1, 1], &[("o", vec![0; 32])], &[], &options);
    let (trap, at) = report.stopped.as_ref().unwrap();
    assert_eq!(trap.code, Code::OutOfFuel);
    assert!(
        trap.message.contains("within 10000 statements") && (2..=5).contains(&at.as_ref().unwrap().line),
        "{report}"
    );
}

struct Impatient(std::cell::Cell<u32>);
impl Host for Impatient {
    fn print(&mut self, _: [u32; 3], _: &str) {}
    fn interrupted(&self) -> bool {
        self.0.set(self.0.get() + 1);
        self.0.get() > 3
    }
}

#[test]
fn a_run_can_be_interrupted() {
    let k = kernel("kernel k() threads 32 scratch 0 {\nloop {\npoll\n}\n}\n");
    let (launch, placed) = (Launch::new([1, 1, 1], vec![]), loops::ir::Kernel::default());
    let mut host = Impatient(std::cell::Cell::new(0));
    let report = run(&k, &placed, &launch, &mut VecMemory::new(), &mut host, &Options::default()).unwrap();
    assert_eq!(report.stopped.unwrap().0.code, Code::Interrupted);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let text = "kernel k(o: ptr<i32>) threads 64 scratch 0 {\nt: i32 = index tx\nstore o[tx%7] = t\n}\n";
    let of = |options: &Options| simulate(&kernel(text), [3, 1, 1], &[("o", vec![0; 7])], &[], options);
    let mut seen = vec![];
    for options in schedules() {
        assert_eq!(of(&options), of(&options));
        seen.push(of(&options).1);
    }
    seen.dedup();
    assert!(seen.len() > 2, "every schedule does the same: {seen:?}");
}
