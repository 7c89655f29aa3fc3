//! The knobs that are tried, and their values.
//!
//! None of them changes a kernel's results, but for the order of float sums: a knob that changes precision (`tf32`) is not tried.

use girih_compiler::base::words::suggestion;
use girih_compiler::tile::knobs;
use girih_compiler::tile::target::Target;

/// A knob and the values to try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Axis {
    pub name: &'static str,
    pub values: &'static [i64],
}

macro_rules! axes {
    ($($name:literal: $values:expr;)*) => { &[$(Axis { name: $name, values: &$values },)*] };
}

/// The axes for a CPU, in decreasing order of effect.
const CPU: &[Axis] = axes! {
    "kc": [64, 128, 256, 512, 1024];
    "nc": [64, 128, 256, 512, 2048];
    "mc": [16, 32, 64, 128, 256];
    "rows": [1, 2, 4, 6, 8, 12];
    "cols": [16, 32, 48, 64];
    "lanes": [4, 8, 16, 32];
    "ways": [1, 2, 4, 8];
    "stage_a": [0, 1];
    "stage_b": [0, 1];
    "unroll": [0, 2, 4, 8, 16];
    "interchange": [0, 1];
    "register_tile": [0, 1];
    "transpose": [0, 1];
    "split_edges": [0, 1];
};

const GPU: &[Axis] = axes! {
    "nc": [32, 64, 128, 256];
    "mc": [16, 32, 64, 128, 256];
    "kc": [16, 32, 64, 128];
    "threads": [64, 128, 256, 512];
    "slots": [1, 2, 3, 4];
    "split_k": [1, 2, 4, 8];
    "split_rows": [1, 4, 16, 64];
    "tensor_core": [0, 1];
    "wgmma": [0, 1];
    "warp_specialize": [0, 1];
    "cluster": [1, 2];
    "persist": [0, 1, 2];
    "group": [0, 2, 4, 8, 16];
    "overlap": [0, 1];
    "stage_outputs": [0, 1];
    "tma": [0, 1];
    "async_copy": [0, 1];
    "swizzle": [0, 1];
    "pad_smem": [0, 1];
    "keep_rows": [0, 1];
    "keep_tiles": [0, 16, 32, 64];
    "unroll": [0, 4, 8, 16];
    "split_edges": [0, 1];
};

/// The axes of the search for a target.
pub fn of(target: &Target) -> &'static [Axis] {
    if target.axes.threads > 1 { GPU } else { CPU }
}

/// The name of a knob that some target's schedule is searched along.
pub fn known(name: &str) -> Option<&'static str> {
    CPU.iter().chain(GPU).map(|axis| axis.name).find(|known| *known == name)
}

/// The axes of these knobs alone; all of them where none is named.
///
/// # Errors
/// A name that no knob has, or one that is not tried for the target.
pub fn chosen(target: &Target, names: &[String]) -> Result<Vec<Axis>, String> {
    let all = of(target);
    if names.is_empty() {
        return Ok(all.to_vec());
    }
    let one = |name: &String| match all.iter().find(|axis| axis.name == name) {
        Some(axis) => Ok(*axis),
        None if knobs::ALL.iter().any(|k| k.name == name) => {
            let list: Vec<&str> = all.iter().map(|axis| axis.name).collect();
            Err(format!("knob `{name}` is not tried for {}; those that are: {}", target.name, list.join(", ")))
        }
        None => {
            let help = suggestion("knobs", name, all.iter().map(|axis| axis.name));
            Err(format!("unknown knob `{name}`; {help}"))
        }
    };
    names.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use girih_compiler::tile::knobs::Knobs;

    #[test]
    fn every_value_is_one_that_its_knob_takes() {
        for axis in CPU.iter().chain(GPU) {
            for value in axis.values {
                Knobs::default().set(&format!("{}={value}", axis.name)).unwrap();
            }
        }
    }

    #[test]
    fn knobs_are_chosen_by_name() {
        let cpu = Target::cpu();
        assert_eq!(chosen(&cpu, &["kc".into()]).unwrap()[0].name, "kc");
        assert!(chosen(&cpu, &["kd".into()]).unwrap_err().starts_with("unknown knob `kd`; did you mean `kc`"));
        assert!(chosen(&cpu, &["slots".into()]).unwrap_err().starts_with("knob `slots` is not tried for cpu; "));
        assert!(chosen(&cpu, &["tf32".into()]).is_err());
    }
}
