//! The choices the tile rules take, by name.
//!
//! A knob without a value lets its rule choose from the target. `Knobs::set` takes the text of `--knob K=V` or of a
//! tuning result and keeps where the value came from.

use crate::base::target::{Knob, KnobSource, Knobs};

/// (name, least, greatest, what it decides)
const TABLE: &[(&str, i64, i64, &str)] = &[
    ("rows", 1, 32, "Rows of a contraction's register tile."),
    ("cols", 1, 512, "Columns of a contraction's register tile; a multiple of the vector lanes."),
    ("lanes", 1, 64, "Elements per vector, for every vector loop and register tile."),
    ("kc", 8, 1 << 20, "Longest stretch of a contraction's reduction run at once."),
    ("mc", 8, 1 << 20, "Most rows of a contraction run at once."),
    ("nc", 8, 1 << 20, "Most columns of a contraction run at once."),
    ("ways", 1, 16, "Independent vector accumulators of a reduction."),
    ("stage_a", 0, 1, "Pack a contraction's left operand: 0 never, 1 always."),
    ("stage_b", 0, 1, "Pack a contraction's right operand: 0 never, 1 always."),
    ("register_tile", 0, 1, "Hold tiles of a contraction's accumulator in registers."),
    ("split_edges", 0, 1, "Turn edge conditions into loop bounds."),
    ("interchange", 0, 1, "Reorder and block loops so that memory is walked in order."),
    ("transpose", 0, 1, "Transpose squares of elements in vector registers."),
    ("vectorise", 0, 1, "Run innermost loops in vector registers."),
    ("unroll", 0, 64, "Greatest number of copies a loop nest is unrolled into; 0 unrolls nothing."),
];

impl Knobs {
    /// Every knob, none set.
    pub fn default_set() -> Knobs {
        let knob = |&(name, min, max, doc): &(&'static str, i64, i64, &'static str)| Knob {
            name,
            doc,
            value: None,
            min,
            max,
            source: KnobSource::Default,
        };
        Knobs { all: TABLE.iter().map(knob).collect() }
    }

    /// The value of a knob, if it was set.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.all.iter().find(|k| k.name == name)?.value
    }

    /// Whether the rule that a 0/1 knob turns off may run.
    pub fn on(&self, name: &str) -> bool {
        self.get(name) != Some(0)
    }

    /// Sets a knob from `NAME=VALUE`; the error is one plain sentence.
    pub fn set(&mut self, text: &str, source: KnobSource) -> Result<(), String> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("a knob is set as NAME=VALUE, but `{text}` has no `=`"))?;
        let (name, value) = (name.trim(), value.trim());
        let Some(knob) = self.all.iter_mut().find(|k| k.name == name) else {
            let near = TABLE.iter().map(|row| (distance(name, row.0), row.0)).min().filter(|(d, _)| *d <= 2);
            return Err(match near {
                Some((_, near)) => format!("there is no knob `{name}`; did you mean `{near}`?"),
                None => {
                    let names: Vec<&str> = TABLE.iter().map(|row| row.0).collect();
                    format!("there is no knob `{name}`; the knobs are {}", names.join(", "))
                }
            });
        };
        let number: i64 = value.parse().map_err(|_| format!("knob `{name}` takes a whole number, not `{value}`"))?;
        if number < knob.min || number > knob.max {
            return Err(format!("knob `{name}` takes {} to {}, not {number}", knob.min, knob.max));
        }
        knob.value = Some(number);
        knob.source = source;
        Ok(())
    }
}

impl Default for Knobs {
    fn default() -> Knobs {
        Knobs::default_set()
    }
}

/// The number of single-letter edits between two names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let best = (row[j] + (x != *y) as usize).min(row[j + 1] + 1).min(next[j] + 1);
            next.push(best);
        }
        row = next;
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_and_remember_their_source() {
        let mut k = Knobs::default_set();
        assert_eq!(k.get("rows"), None);
        k.set("rows=4", KnobSource::CommandLine).unwrap();
        k.set(" kc = 128 ", KnobSource::Environment).unwrap();
        assert_eq!((k.get("rows"), k.get("kc")), (Some(4), Some(128)));
        assert_eq!(k.all.iter().find(|x| x.name == "rows").unwrap().source, KnobSource::CommandLine);
        assert_eq!(k.set("rows=99", KnobSource::CommandLine).unwrap_err(), "knob `rows` takes 1 to 32, not 99");
        assert_eq!(k.get("rows"), Some(4));
        assert_eq!(k.set("rows=x", KnobSource::CommandLine).unwrap_err(), "knob `rows` takes a whole number, not `x`");
        assert!(k.set("rows", KnobSource::CommandLine).unwrap_err().contains("NAME=VALUE"));
    }

    #[test]
    fn a_misspelt_name_gets_a_suggestion() {
        let mut k = Knobs::default_set();
        let say = |k: &mut Knobs, t: &str| k.set(t, KnobSource::CommandLine).unwrap_err();
        assert_eq!(say(&mut k, "vectorize=0"), "there is no knob `vectorize`; did you mean `vectorise`?");
        assert!(say(&mut k, "tile_width=3").contains("the knobs are rows, cols"));
    }
}
