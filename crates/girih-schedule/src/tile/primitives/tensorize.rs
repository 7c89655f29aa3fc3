//! `tensorize`: the sums of a contraction are computed by a unit of the machine.
//!
//! ```text
//! for i: for j: for kk: reduce contraction         tensorize kk as registers 8 x 32 by 16
//!   acc[i, j] <- a[i, kk] * b[kk, j]                 tiles of 8 rows and two vectors of 16 stay in a processor's registers
//!                                                  tensorize kk as tiles 8 x 32 by 16
//!                                                    whole tiles on the processor's matrix unit, the rest as above
//!                                                  tensorize kk as threads 8 x 8
//!                                                    each thread of a block has 8 rows and 8 columns in registers
//!                                                  tensorize kk as warps 4 x 2
//!                                                    4 x 2 warps share the rows and columns, on the matrix unit
//!                                                  tensorize kk as rows 4
//!                                                    each lane of 4 warps has parts of some rows, of this sum and of all that is
//!                                                    computed from its rows, on the matrix unit
//!                                                  tensorize r, r_1 as warpgroup
//!                                                    groups of four warps multiply what warps did
//! ```
//!
//! Each of the sums has the terms and the order that it had. A unit says what it cannot compute.

pub mod registers;
pub mod rows;
pub mod threads;
pub mod tiles;
pub mod warpgroup;
pub mod warps;

use super::line::{LoopRef, replace};
use crate::base::words::suggestion;
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::contraction::{TileShape, nest_around, nest_of, num_type, vector_sums};
use crate::tile::matrix::Warps;
use crate::tile::target::Capability;

/// The unit that computes sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Vector registers of a processor; with `tiles` its matrix unit where whole tiles are.
    Registers {
        shape: TileShape,
        tiles: bool,
    },
    /// Threads, each with these numbers of rows and columns.
    Threads {
        rows: u64,
        cols: u64,
    },
    Warps(Warps),
    /// Warps that have whole rows.
    Rows(u64),
    Warpgroup,
}

impl Unit {
    pub fn words(self) -> Vec<String> {
        let text = match self {
            Unit::Registers { shape: TileShape { rows, cols, lanes }, tiles } => {
                format!("{} {rows} x {cols} by {lanes}", if tiles { "tiles" } else { "registers" })
            }
            Unit::Threads { rows, cols } => format!("threads {rows} x {cols}"),
            Unit::Warps(Warps { down, across }) => format!("warps {down} x {across}"),
            Unit::Rows(warps) => format!("rows {warps}"),
            Unit::Warpgroup => "warpgroup".into(),
        };
        text.split(' ').map(String::from).collect()
    }

    pub fn read(words: &[String]) -> Result<Unit, String> {
        const UNITS: [&str; 6] = ["registers", "rows", "threads", "tiles", "warpgroup", "warps"];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let number = |word: &str| match word.parse::<u32>() {
            Ok(n) if n > 0 => Ok(n),
            _ => Err(format!("expected a whole number from 1 on, found `{word}`")),
        };
        match words[..] {
            ["warpgroup"] => Ok(Unit::Warpgroup),
            ["rows", warps] => Ok(Unit::Rows(number(warps)?.into())),
            ["rows", ..] => Err("expected `rows WARPS`".into()),
            ["threads", rows, "x", cols] => {
                Ok(Unit::Threads { rows: number(rows)?.into(), cols: number(cols)?.into() })
            }
            ["warps", down, "x", across] => {
                Ok(Unit::Warps(Warps { down: number(down)?.into(), across: number(across)?.into() }))
            }
            [unit @ ("registers" | "tiles"), rows, "x", cols, "by", lanes] => {
                let shape = TileShape { rows: number(rows)?, cols: number(cols)?, lanes: number(lanes)? };
                Ok(Unit::Registers { shape, tiles: unit == "tiles" })
            }
            ["warpgroup", extra, ..] => Err(format!("unexpected `{extra}`")),
            [unit @ ("threads" | "warps"), ..] => Err(format!("expected `{unit} ROWS x COLUMNS`")),
            [unit @ ("registers" | "tiles"), ..] => Err(format!("expected `{unit} ROWS x COLUMNS by LANES`")),
            [unit, ..] => Err(format!("unknown unit `{unit}`; {}", suggestion("units", unit, UNITS.into_iter()))),
            [] => Err(format!("expected `as` and a unit: {}", UNITS.join(", "))),
        }
    }
}

pub fn apply(kernel: &mut Kernel, ctx: &Context, loops: &[LoopRef], unit: Unit) -> Result<(), String> {
    if unit == Unit::Warpgroup {
        return warpgroup::apply(kernel, ctx, loops);
    }
    let [sum] = loops[..] else { return Err("it takes one loop, over the terms of a contraction".into()) };
    let threads = ctx.target.has(Capability::Threads);
    let seen = kernel.clone();
    let (over, nest) = nest_around(&seen, sum)?;
    let acc = nest.roles.acc;
    match unit {
        Unit::Threads { .. } | Unit::Warps(_) | Unit::Rows(_) if !threads => {
            Err(format!("{} has no threads of blocks", ctx.target.name))
        }
        Unit::Threads { rows, cols } => threads::apply(kernel, ctx, acc, [rows, cols]),
        Unit::Warps(warps) => warps::apply(kernel, ctx, acc, warps),
        Unit::Rows(warps) => rows::apply(kernel, ctx, acc, warps),
        _ if threads => Err(format!("the sums of {} are those of its threads", ctx.target.name)),
        Unit::Registers { shape, tiles } => {
            vector_sums(num_type(kernel, acc).ok_or("its accumulator holds addresses")?)?;
            replace(kernel, over, &mut |kernel, f| {
                let nest = nest_of(f).ok_or("it is not a contraction")??;
                registers::apply(kernel, ctx, &nest, shape, tiles)
            })
        }
        Unit::Warpgroup => Ok(()),
    }
}
