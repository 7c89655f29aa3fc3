//! The knobs that are tried, and their values; and the lines of a schedule, whose values the schedule gives.
//!
//! None of the knobs changes a kernel's results, but for the order of float sums: a knob that changes precision (`tf32`) is not tried.

use girih_compiler::base::words::suggestion;
use girih_compiler::tile::knobs;
use girih_compiler::tile::schedule::Schedule;
use girih_compiler::tile::target::Target;

use super::Setting;

/// A setting and the values to try.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    pub setting: Setting,
    pub values: Vec<i64>,
}

/// A knob and the values to try.
type Knob = (&'static str, &'static [i64]);

macro_rules! axes {
    ($($name:literal: $values:expr;)*) => { &[$(($name, &$values),)*] };
}

/// The axes for a CPU, in decreasing order of effect.
const CPU: &[Knob] = axes! {
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

const GPU: &[Knob] = axes! {
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

/// The knobs of the search for a target.
fn of(target: &Target) -> &'static [Knob] {
    if target.axes.threads > 1 { GPU } else { CPU }
}

/// The name of a knob that some target's schedule is searched along.
pub fn known(name: &str) -> Option<&'static str> {
    CPU.iter().chain(GPU).map(|(known, _)| *known).find(|known| *known == name)
}

/// The settings of a search: knobs, and then the lines of the schedule that the best of them give.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Space {
    pub knobs: Vec<Axis>,
    pub lines: bool,
}

/// The name that stands for the lines of the schedule among those of knobs.
pub const LINES: &str = "schedule";

/// The space of these knobs alone, and of the lines of the schedule where one is named [`LINES`]; everything where none is named.
///
/// # Errors
/// A name that no knob has, or one that is not tried for the target.
pub fn chosen(target: &Target, names: &[String]) -> Result<Space, String> {
    let all = of(target);
    let axis = |(name, values): &Knob| Axis { setting: Setting::Knob(name), values: values.to_vec() };
    if names.is_empty() {
        return Ok(Space { knobs: all.iter().map(axis).collect(), lines: true });
    }
    let one = |name: &String| match all.iter().find(|(known, _)| known == name) {
        Some(knob) => Ok(axis(knob)),
        None if knobs::ALL.iter().any(|k| k.name == name) => {
            let list: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
            Err(format!("knob `{name}` is not tried for {}; those that are: {}", target.name, list.join(", ")))
        }
        None => {
            let help = suggestion("knobs", name, all.iter().map(|(name, _)| *name).chain([LINES]));
            Err(format!("unknown knob `{name}`; {help}"))
        }
    };
    let (lines, knobs): (Vec<&String>, Vec<&String>) = names.iter().partition(|name| *name == LINES);
    Ok(Space { knobs: knobs.into_iter().map(one).collect::<Result<_, String>>()?, lines: !lines.is_empty() })
}

/// The axes of a schedule's lines.
pub fn lines(schedule: &Schedule) -> Vec<Axis> {
    let axis = |(site, values)| Axis { setting: Setting::Line(site), values };
    schedule.sites().into_iter().map(axis).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use girih_compiler::tile::knobs::Knobs;

    #[test]
    fn every_value_is_one_that_its_knob_takes() {
        for (name, values) in CPU.iter().chain(GPU) {
            for value in *values {
                Knobs::default().set(&format!("{name}={value}")).unwrap();
            }
        }
    }

    #[test]
    fn knobs_are_chosen_by_name() {
        let cpu = Target::cpu();
        let kc = chosen(&cpu, &["kc".into()]).unwrap();
        assert_eq!((kc.knobs[0].setting, kc.knobs.len(), kc.lines), (Setting::Knob("kc"), 1, false));
        let lines = chosen(&cpu, &["schedule".into()]).unwrap();
        assert_eq!((lines.knobs.len(), lines.lines), (0, true));
        assert!(chosen(&cpu, &["kd".into()]).unwrap_err().starts_with("unknown knob `kd`; did you mean `kc`"));
        assert!(chosen(&cpu, &["slots".into()]).unwrap_err().starts_with("knob `slots` is not tried for cpu; "));
        assert!(chosen(&cpu, &["tf32".into()]).is_err());
    }
}
