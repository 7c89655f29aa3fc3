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
//!                                                  tensorize kk as groups 1 x 2
//!                                                    the same, and four warps with rows below each other follow one another
//!                                                  tensorize r, r_1 as warpgroup
//!                                                    groups of four warps multiply what warps did
//!                                                  tensorize r as tcgen05
//!                                                    the same with sums in tensor memory
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
use super::part::{Part, Reader, Says, Writer};
use crate::base::words::suggestion;
use crate::loops::ir::*;
use crate::loops::panels::WARPS as WARPS_OF_GROUP;
use crate::tile::Context;
use crate::tile::accumulator::Numbering;
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
    /// The same in groups of four warps, each with rows and columns of its own: how many groups there are.
    Groups(Warps),
    /// Warps that have whole rows.
    Rows(u64),
    /// Groups of four warps that hold their sums in registers, or in tensor memory.
    Warpgroup,
    Tcgen05,
}

impl Part for Unit {
    fn read(r: &mut Reader<'_>, _: Says) -> Result<Unit, String> {
        const UNITS: [&str; 8] = ["groups", "registers", "rows", "tcgen05", "threads", "tiles", "warpgroup", "warps"];
        r.before = "as";
        let unit = r.word(&format!("a unit: {}", UNITS.join(", ")))?;
        let square = |r: &mut Reader<'_>| {
            let rows = r.number("rows", 1)?;
            r.choice(&[("x", ())])?;
            Ok::<_, String>((rows, r.number("columns", 1)?))
        };
        match unit {
            "warpgroup" => Ok(Unit::Warpgroup),
            "tcgen05" => Ok(Unit::Tcgen05),
            "groups" => {
                square(r).map(|(down, across)| Unit::Groups(Warps { down: down.into(), across: across.into() }))
            }
            "rows" => r.number("warps", 1).map(|warps| Unit::Rows(warps.into())),
            "threads" => square(r).map(|(rows, cols)| Unit::Threads { rows: rows.into(), cols: cols.into() }),
            "warps" => square(r).map(|(down, across)| Unit::Warps(Warps { down: down.into(), across: across.into() })),
            "registers" | "tiles" => {
                let (rows, cols) = square(r)?;
                r.choice(&[("by", ())])?;
                let shape = TileShape { rows, cols, lanes: r.number("lanes", 1)? };
                Ok(Unit::Registers { shape, tiles: unit == "tiles" })
            }
            _ => Err(format!("unknown unit `{unit}`; {}", suggestion("units", unit, UNITS.into_iter()))),
        }
    }

    fn write(&self, w: &mut Writer<'_>, _: Says) {
        w.line.before = "as";
        w.by(&match *self {
            Unit::Registers { shape: TileShape { rows, cols, lanes }, tiles } => {
                format!("{} {rows} x {cols} by {lanes}", if tiles { "tiles" } else { "registers" })
            }
            Unit::Threads { rows, cols } => format!("threads {rows} x {cols}"),
            Unit::Warps(Warps { down, across }) => format!("warps {down} x {across}"),
            Unit::Groups(Warps { down, across }) => format!("groups {down} x {across}"),
            Unit::Rows(warps) => format!("rows {warps}"),
            Unit::Warpgroup => "warpgroup".into(),
            Unit::Tcgen05 => "tcgen05".into(),
        });
    }
}

pub fn apply(kernel: &mut Kernel, ctx: &Context, loops: &[LoopRef], unit: Unit) -> Result<(), String> {
    match unit {
        Unit::Warpgroup => return warpgroup::apply(kernel, ctx, loops, Place::Warpgroup),
        Unit::Tcgen05 => return warpgroup::apply(kernel, ctx, loops, Place::Tcgen05),
        _ => {}
    }
    let [sum] = loops[..] else { return Err("it takes one loop, over the terms of a contraction".into()) };
    let threads = ctx.target.has(Capability::Threads);
    let seen = kernel.clone();
    let (over, nest) = nest_around(&seen, sum)?;
    let acc = nest.roles.acc;
    match unit {
        Unit::Threads { .. } | Unit::Warps(_) | Unit::Groups(_) | Unit::Rows(_) if !threads => {
            Err(format!("{} has no threads of blocks", ctx.target.name))
        }
        Unit::Threads { rows, cols } => threads::apply(kernel, ctx, acc, [rows, cols]),
        Unit::Warps(warps) => warps::apply(kernel, ctx, acc, warps, Numbering::Warps),
        Unit::Groups(Warps { down, across }) => {
            let warps = Warps { down: down.saturating_mul(WARPS_OF_GROUP), across };
            warps::apply(kernel, ctx, acc, warps, Numbering::Groups)
        }
        Unit::Rows(warps) => rows::apply(kernel, ctx, acc, warps),
        _ if threads => Err(format!("the sums of {} are those of its threads", ctx.target.name)),
        Unit::Registers { shape, tiles } => {
            vector_sums(num_type(kernel, acc).ok_or("its accumulator holds addresses")?)?;
            replace(kernel, over, &mut |kernel, f| {
                let nest = nest_of(f).ok_or("it is not a contraction")??;
                registers::apply(kernel, ctx, &nest, shape, tiles)
            })
        }
        Unit::Warpgroup | Unit::Tcgen05 => Ok(()),
    }
}
