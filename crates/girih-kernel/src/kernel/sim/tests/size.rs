//! The size of a simulation, against what its run counts.

use std::fmt::Write;

use super::super::Size;
use super::{Options, kernel, simulate};
use crate::base::launch::Launch;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % u64::from(n)) as u32
    }

    /// Statements in loops and branches that the kernel's numbers decide.
    fn body(&mut self, depth: u32, names: &mut u32, out: &mut String) {
        for _ in 0..1 + self.below(3) {
            *names += 1;
            let name = *names;
            let _ = match if depth == 0 { 9 } else { self.below(5) } {
                0 | 1 => {
                    let (lo, step) = (self.below(4), 1 + self.below(5));
                    let hi = ["n", "9", "(bx + 3)", "(n//2 + tx%4)"][self.below(4) as usize];
                    writeln!(out, "for a{name} in {lo}..{hi} step {step} {{")
                }
                2 => writeln!(out, "if tx%{} < {} {{", 2 + self.below(9), 1 + self.below(4)),
                3 => writeln!(out, "if n > {} and bx >= 0 {{", self.below(20)),
                _ => {
                    let _ = writeln!(out, "x{name}: i32 = load g[tx]");
                    continue;
                }
            };
            self.body(depth - 1, names, out);
            out.push_str("}\n");
        }
    }
}

fn ran(text: &str, grid: [u32; 3], n: u64) -> (f64, Size) {
    let kernel = kernel(text);
    let options = Options { races: false, ..Options::default() };
    let (report, _) = simulate(&kernel, grid, &[("g", vec![7; 256])], &[n], &options);
    (report.total.executions as f64, Size::of(&kernel, &Launch::new(grid, vec![0, n])))
}

#[test]
fn what_numbers_decide_is_told_exactly() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let (threads, n) = (32 * (1 + random.below(2)), u64::from(random.below(20)));
        let mut body = String::new();
        random.body(3, &mut 0, &mut body);
        let text = format!("kernel k(g: ptr<i32>, n: i32) threads {threads} scratch 0 {{\n{body}}}\n");
        let (count, size) = ran(&text, [1, 1, 1], n);
        assert_eq!((size.statements, size.at_least), (count, false), "{text}");
    }
}

#[test]
fn what_depends_on_blocks_and_outer_loops_is_told_at_their_middle() {
    let text = "kernel k(g: ptr<i32>, n: i32) threads 256 scratch 0 {
  for i in 0..n step 1 {
    for j in 0..i + bx step 1 {
      x: i32 = load g[tx]
    }
  }
}
";
    let (count, size) = ran(text, [8, 2, 1], 40);
    assert!((0.9..1.1).contains(&(size.statements / count)), "{size:?} of {count}");
    let one = Launch { only_block: Some([0, 0, 0]), ..Launch::new([8, 2, 1], vec![0, 40]) };
    assert!(Size::of(&kernel(text), &one).statements < size.statements / 16.0);
}

#[test]
fn what_memory_decides_is_counted_once() {
    let text = "kernel k(g: ptr<i32>, n: i32) threads 32 scratch 0 {
  v: i32 = load g[tx]
  for i in 0..v step 1 {
    x: i32 = load g[tx]
  }
}
";
    let (count, size) = ran(text, [2, 1, 1], 0);
    assert_eq!((count, size.statements, size.at_least), (64.0 * 16.0, 64.0 * 4.0, true));
    assert_eq!(size.to_string(), "at least 256 thread-statements");
}

#[test]
fn sizes_are_told_in_units() {
    let said = |statements| Size { statements, at_least: false }.to_string();
    assert_eq!(said(999.0), "about 999 thread-statements");
    assert_eq!(said(1234.0), "about 1.2 k thread-statements");
    assert_eq!(said(9.2e9), "about 9.2 G thread-statements");
    assert_eq!(said(4.56e13), "about 46 T thread-statements");
    assert_eq!(said(1e25), "about 10000000000 P thread-statements");
}
