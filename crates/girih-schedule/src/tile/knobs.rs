//! The choices that the rules of Tile IR take: each a typed field of [`Knobs`], with its range, its default and what it
//! decides stated once, here.
//!
//! In: `kc=128`, of the command line or of a tuning result. Out: fields that rules read, and who chose them. A misspelt
//! knob does not compile in a rule; elsewhere it is refused with a suggestion.

use crate::base::words::suggestion;
use std::fmt::Write;

/// The name, range and meaning of a knob.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    pub name: &'static str,
    pub least: i64,
    pub most: i64,
    /// A value is a multiple of this.
    pub step: i64,
    /// The decision that it makes.
    pub doc: &'static str,
}

/// A type that a knob has.
trait Choice: Copy {
    fn of(value: i64) -> Self;
    /// As it is set; `None` where the rule chooses.
    fn value(self) -> Option<i64>;
}

impl Choice for u32 {
    fn of(value: i64) -> u32 {
        value.clamp(0, u32::MAX.into()) as u32
    }
    fn value(self) -> Option<i64> {
        Some(self.into())
    }
}

impl Choice for bool {
    fn of(value: i64) -> bool {
        value != 0
    }
    fn value(self) -> Option<i64> {
        Some(self.into())
    }
}

impl<T: Choice> Choice for Option<T> {
    fn of(value: i64) -> Option<T> {
        Some(T::of(value))
    }
    fn value(self) -> Option<i64> {
        self.and_then(T::value)
    }
}

macro_rules! knobs {
    ($($name:ident: $ty:ty = $default:expr, $least:literal to $most:literal $(by $step:literal)?, $doc:literal;)*) => {
        /// All knobs of a compilation. Where one is `None`, a rule chooses from the target.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct Knobs {
            $(#[doc = $doc] pub $name: $ty,)*
            /// The names of the knobs that were set, in the order of the fields.
            given: Vec<&'static str>,
        }

        impl Default for Knobs {
            fn default() -> Knobs {
                Knobs { $($name: $default,)* given: vec![] }
            }
        }

        /// Every knob, in the order of the fields.
        pub const ALL: &[Description] = &[
            $(Description { name: stringify!($name), least: $least, most: $most, step: 1 $(* $step)?, doc: $doc },)*
        ];

        impl Knobs {
            /// A knob's value by name; `None` where the rule chooses, or where there is no such knob.
            pub fn value(&self, name: &str) -> Option<i64> {
                match name {
                    $(stringify!($name) => Choice::value(self.$name),)*
                    _ => None,
                }
            }

            fn put(&mut self, name: &str, value: i64) {
                match name {
                    $(stringify!($name) => self.$name = Choice::of(value),)*
                    _ => {}
                }
            }
        }
    };
}

knobs! {
    rows: Option<u32> = None, 1 to 32, "Rows of a contraction's register tile.";
    cols: Option<u32> = None, 1 to 512, "Columns of a contraction's register tile; a multiple of the vector lanes.";
    lanes: Option<u32> = None, 1 to 64, "Elements per vector, for every vector loop and register tile.";
    kc: u32 = 256, 8 to 1048576, "Longest stretch of a contraction's reduction run at once; of a GPU, in shared memory.";
    mc: Option<u32> = None, 8 to 1048576, "Most rows of a contraction run at once; of a GPU, the rows of a block, as a power of two.";
    nc: Option<u32> = None, 8 to 1048576, "Most columns of a contraction run at once; of a GPU, the columns of a block, as a power of two.";
    ways: u32 = 4, 1 to 16, "Independent vector accumulators of a reduction.";
    stage_a: Option<bool> = None, 0 to 1, "Pack a contraction's left operand: 0 never, 1 always.";
    stage_b: Option<bool> = None, 0 to 1, "Pack a contraction's right operand: 0 never, 1 always.";
    tensor_core: bool = true, 0 to 1, "Multiply on the matrix unit of a GPU.";
    wgmma: bool = true, 0 to 1, "Multiply by groups of four warps, where the matrix unit has such products: `wgmma`, `tcgen05`.";
    overlap: Option<bool> = None, 0 to 1, "Let the last product of an iteration go on while warpgroups begin the next.";
    warp_specialize: Option<bool> = None, 0 to 1, "Let a warp of its own fill a pipeline by TMA.";
    tf32: bool = false, 0 to 1, "Cut f32 off to tf32 (10 bits of the fraction) to multiply on the matrix unit.";
    exact_exp: bool = false, 0 to 1, "Compute the weights of a softmax exactly, also where they are rounded to f16 or bf16.";
    fast_acc: bool = false, 0 to 1, "Multiply floats of one byte by groups of four warps, which add with fewer bits than f32 has.";
    register_tile: bool = true, 0 to 1, "Hold tiles of a contraction's accumulator in registers.";
    split_edges: bool = true, 0 to 1, "Turn edge conditions into loop bounds, or into tests of whole blocks.";
    once: bool = true, 0 to 1, "Compute once what the rows of a block have alike.";
    strip: bool = true, 0 to 1, "Keep strips of the arrays that loops carry in registers.";
    interchange: bool = true, 0 to 1, "Reorder and block loops so that memory is walked in order.";
    trim: bool = true, 0 to 1, "End loops that fill a tile where nothing of it is read any more.";
    swap: bool = true, 0 to 1, "Make the rows of a product its columns, where fewer elements are transposed then.";
    pairs: bool = true, 0 to 1, "Take the terms of a sum of products two at a time, where the processor can.";
    tiles: bool = true, 0 to 1, "Multiply whole tiles on the processor's matrix unit, where it has one.";
    pack: bool = true, 0 to 1, "Lay weights out in panels when a model is loaded.";
    transpose: bool = true, 0 to 1, "Transpose squares of elements in vector registers.";
    vectorise: bool = true, 0 to 1, "Run innermost loops in vector registers.";
    prefetch: bool = true, 0 to 1, "Ask for memory before it is read, where short pieces of it lie far apart.";
    group: Option<u32> = None, 0 to 65535, "Rows of blocks that a product goes through column by column before the next, for L2; 0 leaves them in order.";
    persist: Option<u32> = None, 0 to 32, "Blocks on each multiprocessor that take the tiles of a product in turn; 0 launches a block for each tile.";
    cluster: Option<u32> = None, 1 to 8, "Blocks of a cluster, which bring an operand that they share to all by one copy; a warp must fill the pipeline.";
    cluster_rows: Option<u32> = None, 1 to 8, "Blocks of a cluster that have a row which is reduced; 1 makes none.";
    split_rows: Option<u32> = None, 1 to 256, "Parts of a row that is reduced, which different blocks fold; 1 leaves it whole.";
    scan: bool = true, 0 to 1, "Let the threads of a block share a scan, sums of floats in another order.";
    split_k: Option<u32> = None, 1 to 256, "Parts of a contraction's sum, or of the keys of attention of a few rows, that different blocks compute; 1 leaves it whole.";
    slots: Option<u32> = None, 1 to 8, "Slots of a stage: how many iterations' operands are in shared memory at once.";
    async_copy: bool = true, 0 to 1, "Fill stages by copies that go on while threads compute.";
    keep_rows: bool = true, 0 to 1, "Load rows that a block reads more than once only once.";
    keep_tiles: Option<u32> = None, 0 to 128, "Registers of a thread that tiles may take which no other thread needs; 0 keeps none.";
    tma: bool = true, 0 to 1, "Fill stages by copies of boxes that one thread begins.";
    stage_outputs: bool = true, 0 to 1, "Bring what products store to shared memory first, where they would store parts of sectors.";
    swizzle: bool = true, 0 to 1, "Exchange pieces of the rows that TMA fills, so that fewer accesses meet in a bank.";
    pad_smem: bool = true, 0 to 1, "Pad the rows of shared memory so that fewer accesses meet in a bank.";
    threads: u32 = 256, 32 to 1024 by 32, "Threads of a block of a GPU; a multiple of 32.";
    unroll: u32 = 16, 0 to 64, "Greatest number of copies a loop nest is unrolled into; 0 unrolls nothing.";
}

impl Knobs {
    /// Sets a knob from `NAME=VALUE`, and gives its name and value; the error is one plain sentence.
    pub fn set(&mut self, text: &str) -> Result<(&'static str, i64), String> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("expected NAME=VALUE for a knob, found `{text}`"))?;
        let (name, value) = (name.trim(), value.trim());
        let Some(at) = ALL.iter().position(|k| k.name == name) else {
            let help = suggestion("knobs", name, ALL.iter().map(|k| k.name));
            return Err(format!("unknown knob `{name}`; {help}"));
        };
        let Description { name, least, most, step, .. } = ALL[at];
        let number: i64 = value.parse().map_err(|_| format!("knob `{name}` must be a whole number, not `{value}`"))?;
        if number < least || number > most {
            return Err(format!("knob `{name}` must be from {least} to {most}, not {number}"));
        }
        if number % step != 0 {
            return Err(format!("knob `{name}` must be a multiple of {step} from {least} to {most}, not {number}"));
        }
        self.put(name, number);
        if !self.given.contains(&name) {
            self.given.push(name);
            self.given.sort_by_key(|name| ALL.iter().position(|k| k.name == *name));
        }
        Ok((name, number))
    }

    /// The knobs that were set.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, i64)> + '_ {
        self.given.iter().filter_map(|name| Some((*name, self.value(name)?)))
    }

    /// Every knob with its value and who chose it, one a line: `kc = 128 (given)`.
    pub fn listing(&self) -> String {
        let mut text = String::new();
        for Description { name, .. } in ALL {
            let _ = match (self.value(name), self.given.contains(name)) {
                (Some(value), true) => writeln!(text, "{name} = {value} (given)"),
                (Some(value), false) => writeln!(text, "{name} = {value} (default)"),
                (None, _) => writeln!(text, "{name}: its rule chooses"),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_and_remember_who_chose_them() {
        let mut k = Knobs::default();
        assert_eq!((k.rows, k.kc, k.vectorise), (None, 256, true));
        assert_eq!(k.set("rows=4"), Ok(("rows", 4)));
        assert_eq!(k.set(" kc = 128 "), Ok(("kc", 128)));
        assert_eq!(k.set("vectorise=0"), Ok(("vectorise", 0)));
        assert_eq!((k.rows, k.kc, k.vectorise), (Some(4), 128, false));
        assert_eq!(k.set("rows=99").unwrap_err(), "knob `rows` must be from 1 to 32, not 99");
        assert_eq!(k.rows, Some(4));
        assert_eq!(k.set("rows=x").unwrap_err(), "knob `rows` must be a whole number, not `x`");
        assert_eq!(
            k.set("threads=100").unwrap_err(),
            "knob `threads` must be a multiple of 32 from 32 to 1024, not 100"
        );
        assert!(k.set("rows").unwrap_err().contains("NAME=VALUE"));
        let lines = k.listing();
        for line in ["rows = 4 (given)\n", "kc = 128 (given)\n", "ways = 4 (default)\n", "mc: its rule chooses\n"] {
            assert!(lines.contains(line), "{line} is not in\n{lines}");
        }
    }

    #[test]
    fn defaults_lie_in_their_ranges_and_every_name_is_a_field() {
        let defaults = Knobs::default();
        for k in ALL {
            assert!(defaults.value(k.name).is_none_or(|v| (k.least..=k.most).contains(&v)), "{}", k.name);
            for value in [k.least, k.most] {
                let mut set = Knobs::default();
                set.set(&format!("{}={value}", k.name)).unwrap();
                assert_eq!(set.value(k.name), Some(value));
            }
        }
    }

    #[test]
    fn a_misspelt_name_gets_a_suggestion() {
        let say = |t: &str| Knobs::default().set(t).unwrap_err();
        assert_eq!(say("vectorize=0"), "unknown knob `vectorize`; did you mean `vectorise`?");
        assert!(say("tile_width=3").contains("the knobs are rows, cols"));
    }
}
