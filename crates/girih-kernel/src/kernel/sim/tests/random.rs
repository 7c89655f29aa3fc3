//! Random kernels without branches, whose races a few lines find by comparing every pair of accesses.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{Options, kernel, schedules, simulate};
use crate::base::Budget;
use crate::base::host::Silent;
use crate::base::launch::Launch;
use crate::base::memory::VecMemory;
use crate::kernel::{parse, sim};
use crate::loops;

const THREADS: u32 = 64;
const SHARED: u32 = 80;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Op {
    /// Accesses shared memory or the array: thread t touches element `(t*factor + offset) % modulus` if `t % of < on`.
    Access {
        shared: bool,
        write: bool,
        atomic: bool,
        factor: u32,
        offset: u32,
        modulus: u32,
        of: u32,
        on: u32,
    },
    Barrier,
    SyncWarp,
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % u64::from(n)) as u32
    }

    fn op(&mut self) -> Op {
        match self.below(10) {
            0 | 1 => Op::Barrier,
            2 | 3 => Op::SyncWarp,
            n => Op::Access {
                shared: n < 8,
                write: self.below(2) == 0,
                atomic: self.below(6) == 0,
                factor: 1 + self.below(3),
                offset: self.below(40),
                modulus: [SHARED, 64, 32, 7][self.below(4) as usize],
                of: 1 + self.below(8),
                on: 1 + self.below(4),
            },
        }
    }
}

/// The kernel; its first operation is on line 6, after shared memory was written and a barrier.
fn text(ops: &[Op]) -> String {
    let mut out = format!(
        "kernel k(g: ptr<i32>) threads {THREADS} scratch 0 shared {} {{
  shared s: i32[{SHARED}] at 0
  store s[tx] = 0:i32
  store s[tx + 16] = 0:i32 where tx >= 48
  barrier
",
        SHARED * 4
    );
    for (n, op) in ops.iter().enumerate() {
        let _ = match op {
            Op::Barrier => writeln!(out, "  barrier"),
            Op::SyncWarp => writeln!(out, "  syncwarp"),
            Op::Access { shared, write, atomic, factor, offset, modulus, of, on } => {
                let of_what = if *shared { "s" } else { "g" };
                let place = format!("{of_what}[(tx*{factor} + {offset})%{modulus}]");
                let (mask, order) = (format!("where tx%{of} < {on}"), if *atomic { " relaxed" } else { "" });
                match write {
                    true => writeln!(out, "  store {place} = {n}:i32 {mask}{order}"),
                    false => writeln!(out, "  v{n}: i32 = load {place} {mask}{order}"),
                }
            }
        };
    }
    out + "}\n"
}

/// The pairs of statements that race, the earlier in the text first.
fn races(ops: &[Op], blocks: u32) -> BTreeSet<(usize, usize)> {
    let element = |op: &Op, thread: u32| match op {
        Op::Access { factor, offset, modulus, of, on, .. } if thread % of < *on => {
            Some((thread * factor + offset) % modulus)
        }
        _ => None,
    };
    let mut out = BTreeSet::new();
    for (j, later) in ops.iter().enumerate() {
        for (i, earlier) in ops[..=j].iter().enumerate() {
            let (Op::Access { shared, write, atomic, .. }, Op::Access { shared: s, write: w, atomic: a, .. }) =
                (earlier, later)
            else {
                continue;
            };
            if shared != s || !(*write || *w) || (*atomic && *a) {
                continue;
            }
            let between = &ops[i..j];
            let met = between.contains(&Op::Barrier);
            let warp_met = met || between.contains(&Op::SyncWarp);
            let pair = |t: u32, u: u32| {
                let ordered = t == u || met || (t / 32 == u / 32 && warp_met);
                let touch = element(earlier, t).is_some() && element(earlier, t) == element(later, u);
                touch && (!ordered || (!*shared && blocks > 1))
            };
            if (0..THREADS).any(|t| (0..THREADS).any(|u| pair(t, u))) {
                out.insert((i, j));
            }
        }
    }
    out
}

#[test]
fn what_is_found_races_and_what_races_is_found() {
    let (mut raced, mut held) = (0, 0);
    for seed in 0..150u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let ops: Vec<Op> = (0..2 + seed % 7).map(|_| random.op()).collect();
        let (text, blocks) = (text(&ops), 1 + (seed % 2) as u32);
        let expected = races(&ops, blocks);
        let k = kernel(&text);
        for options in schedules().iter().step_by(2) {
            let (report, _) = simulate(&k, [blocks, 1, 1], &[("g", vec![0; SHARED as usize])], &[], options);
            let mut seen = BTreeSet::new();
            for f in &report.findings {
                assert!(f.kind.is_race(), "{report}\n{text}");
                let lines = [f.first.as_ref().unwrap().0.line, f.statement.line].map(|line| line as usize - 6);
                seen.insert((lines[0].min(lines[1]), lines[0].max(lines[1])));
            }
            assert!(seen.is_subset(&expected), "expected {expected:?}\n{report}\n{text}");
            assert_eq!(seen.is_empty(), expected.is_empty(), "expected {expected:?}\n{report}\n{text}");
        }
        if expected.is_empty() { held += 1 } else { raced += 1 }
    }
    assert!(raced > 40 && held > 25, "{raced} raced, {held} held");
}

const WHOLE: &str = "kernel k(g: ptr<i32>, n: i32) threads 64 scratch 32 shared 320
  slot t: i32[8] at 0
  shared s: i32[80] at 0
  for i in 0..n step 1
    x: i32x2 = load g[tx*2 + i]
    y: i32 = lane x[i%2]
    store s[tx] = y where tx < 40
    barrier
    if tx//32 == 1
      z: i32 = load s[79 - tx]
      u: i32 = shuffle down z, 3:i32
      store t[i] = u
    else
      w: i32 = rmw add s[tx%4], 1:i32 acquire
      syncwarp
    end
  end
  v: i32 = load t[tx%8]
  old: i32 = cas g[0], v, 3:i32 release
  store g[tx] = old
";

/// Every run of a kernel ends in a report or an error.
#[test]
fn no_kernel_makes_it_panic() {
    let words =
        ["tx", "n", "0", "1", "7", "64", "-1", "i", "s", "t", "g", "barrier", "syncwarp", "break", "return", "x", "y"];
    let mut ran = 0;
    for seed in 0..600u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
        let mut lines: Vec<String> = WHOLE.lines().map(String::from).collect();
        for _ in 0..1 + random.below(4) {
            let at = 1 + random.below(lines.len() as u32 - 1) as usize;
            let other = 3 + random.below(lines.len() as u32 - 3) as usize;
            match random.below(4) {
                0 => drop(lines.remove(at.max(3))),
                1 => lines.swap(at.max(3), other),
                2 => lines.insert(other, words[11 + random.below(4) as usize].to_string()),
                _ => {
                    let parts: Vec<&str> = lines[at].split_inclusive(' ').collect();
                    let which = random.below(parts.len() as u32) as usize;
                    let word = format!("{} ", words[random.below(words.len() as u32) as usize]);
                    lines[at] = parts.iter().enumerate().map(|(n, p)| if n == which { &word } else { *p }).collect();
                }
            }
        }
        // Blocks open and close by indentation here, so that lines may move.
        let braces = |line: &String| match line.trim() {
            "end" => "}".to_string(),
            "else" => "} else {".to_string(),
            text if ["kernel", "for", "if"].iter().any(|w| text.starts_with(w)) => format!("{text} {{"),
            text => text.to_string(),
        };
        let text = lines.iter().map(braces).collect::<Vec<_>>().join("\n") + "\n}\n";
        let Ok(k) = parse::parse(&text) else { continue };
        for policy in sim::Policy::ALL {
            let options = Options { policy, seed, steps: 20_000, ..Options::default() };
            let mut memory = VecMemory::new();
            let g = memory.add("g", vec![1; 800]);
            let launch = Launch { budget: Budget::of_memory(1 << 26), ..Launch::new([2, 1, 1], vec![g, 5]) };
            let placed = loops::ir::Kernel::default();
            let done = sim::run(&k, &placed, &launch, &mut memory, &mut Silent, &options);
            ran += u32::from(done.is_ok_and(|report| report.to_string().starts_with("k: ")));
        }
    }
    assert!(ran > 500, "only {ran} ran");
}
