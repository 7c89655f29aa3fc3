//! Makes a failing program smaller by dropping lines (a region goes as a whole) as long as it still fails the same way.

use crate::program::Program;

/// The line after the region that opens at `at`, or after the line itself.
fn end_of(lines: &[&str], at: usize) -> usize {
    let mut depth = 0i64;
    for (i, line) in lines.iter().enumerate().skip(at) {
        depth += line.matches('{').count() as i64 - line.matches('}').count() as i64;
        if depth <= 0 && !line.trim_start().starts_with("} else") {
            return i + 1;
        }
    }
    lines.len()
}

/// `fails` says whether a program still goes wrong in the way that matters. Tries at most `tries` programs.
pub fn shrink(program: &Program, tries: usize, fails: &mut dyn FnMut(&Program) -> bool) -> Program {
    let mut best = program.clone();
    let mut left = tries;
    loop {
        let mut changed = false;
        let mut at = best.text.lines().count();
        while at > 0 {
            at -= 1;
            let lines: Vec<&str> = best.text.lines().collect();
            let Some(line) = lines.get(at) else { continue };
            let keep = ["cuda_tile.module", "entry", "}", "return", "yield", "continue", "break"];
            if keep.iter().any(|k| line.trim_start().starts_with(k)) {
                continue;
            }
            if left == 0 {
                return best;
            }
            left -= 1;
            let end = end_of(&lines, at);
            let text: String = lines[..at].iter().chain(&lines[end..]).map(|l| format!("{l}\n")).collect();
            let candidate = Program { text, ..best.clone() };
            if fails(&candidate) {
                best = candidate;
                changed = true;
            }
        }
        if !changed {
            return best;
        }
    }
}
