//! The obligations of a kernel's fast version, as a C function that tests them with a launch's grid and arguments.
//!
//! Invariant: it returns true only where [`girih_compiler::loops::launch_facts::holds`] does.

use girih_compiler::index::Ix;
use girih_compiler::loops::ir::{Kernel, Obligation, Ty};
use girih_compiler::num::DType;

use super::expr::{literal, range};

/// `girih_holds_<n>`.
pub fn function(n: usize, kernel: &Kernel) -> String {
    let mut out = format!(
        "\nGIRIH_HELPER int girih_holds_{n}(const int64_t *grid, const uint64_t *args) {{\n  (void)grid, (void)args;\n"
    );
    for obligation in &kernel.obligations {
        match test(obligation, kernel) {
            Some(text) => out += &format!("  do {{\n{text}  }} while (0);\n"),
            None => out += "  return 0;\n",
        }
    }
    out + "  return 1;\n}\n"
}

/// The test of one; `None` where it is about something that a launch does not know.
fn test(obligation: &Obligation, kernel: &Kernel) -> Option<String> {
    let leaf = |ix: &Ix| match ix {
        Ix::Axis(a) => obligation.axes.iter().position(|(axis, ..)| axis == a).map(|i| format!("a{i}")),
        Ix::Block(d) if *d < 3 => Some(format!("girih_between(0, grid[{d}] - 1)")),
        Ix::Grid(d) if *d < 3 => Some(format!("girih_between(grid[{d}], grid[{d}])")),
        Ix::Val { val, zext } => {
            let at = kernel.params.iter().position(|p| p.val == *val)?;
            let Ty::Num(dtype) = kernel.params.get(at)?.ty else { return None };
            let value = argument(at, dtype, *zext)?;
            Some(format!("girih_between({value}, {value})"))
        }
        _ => None,
    };
    let mut out = String::new();
    for (i, (_, lo, hi)) in obligation.axes.iter().enumerate() {
        let (lo, hi) = (range(lo, &leaf)?, range(hi, &leaf)?);
        out += &format!("    const girih_wide lo{i} = {lo}.lo, hi{i} = {hi}.hi;\n    if (hi{i} <= lo{i}) break;\n");
        out += &format!("    const girih_range a{i} = girih_between(lo{i}, hi{i} - 1);\n    (void)a{i};\n");
    }
    let (least, most) = (literal(obligation.lo), literal(obligation.hi));
    out += &format!("    const girih_range v = {};\n", range(&obligation.ix, &leaf)?);
    Some(out + &format!("    if (v.lo < {least} || v.hi > {most}) return 0;\n"))
}

fn argument(at: usize, dtype: DType, zext: bool) -> Option<String> {
    match (dtype.bits(), zext) {
        (1, true) => Some(format!("(args[{at}] & 1)")),
        (1, false) => Some(format!("-(int64_t)(args[{at}] & 1)")),
        (bits @ (8 | 16 | 32 | 64), true) => Some(format!("(uint{bits}_t)args[{at}]")),
        (bits @ (8 | 16 | 32 | 64), false) => Some(format!("(int{bits}_t)args[{at}]")),
        _ => None,
    }
}
