//! Products that a processor computes on its tiles.
//!
//! ```text
//! for i in 0..32: free matrix                tile 0 load acc[..] by 128      and 1, 2, 3: 32 x 32 sums
//!   for j in 0..32: free matrix              for k in 0..256 step 16 {
//!     for k in 0..256: reduce matrix           tile 4 load A[..] by 512      and 5: 32 rows
//!       ...                           -->      tile 6 load b[..] by 32       and 7: 32 columns
//!                                              tile 0 add bf16 4, 6          and the other three
//!                                            }
//!                                            tile 0 store acc[..] by 128     and the others
//! ```

use super::{Lower, Res, Storage};
use crate::kernel::ir as k;
use crate::loops::amx::{AmxProduct, SIDE};
use crate::loops::ir as l;

impl Lower<'_> {
    pub(super) fn product_of_tiles(&mut self, f: &l::For) -> Res<()> {
        let p = AmxProduct::of(self.src, f).map_err(|why| self.unplaced(f, why))?;
        let [m, n, k] = p.axes;
        let [down, across, steps] = p.extents.map(|n| n / SIDE);
        if down > 2 || across > 2 {
            return Err(self.unplaced(f, "it has more sums than there are tiles"));
        }
        let zero = k::Ix::Const(0);
        let sums: Vec<(u32, [k::Ix; 3])> = (0..down)
            .flat_map(|r| (0..across).map(move |c| (r, c)))
            .map(|(r, c)| ((r * 2 + c) as u32, [at_tile(r), at_tile(c), zero.clone()]))
            .collect();
        self.check_rows(p.a, (m, p.extents[0]), (k, p.extents[2]))?;
        self.check_rows(p.b, (k, p.extents[2]), (n, p.extents[1]))?;
        for (tile, at) in &sums {
            let (place, by) = self.tile_at(p.sums, p.axes, at, m)?;
            self.push(k::Stmt::AmxLoad { tile: *tile, place, by });
        }
        self.times(k, steps, 0, |s, step| {
            let term = k::Ix::mul(step, k::Ix::Const(SIDE as i64));
            for r in 0..down {
                let (place, by) = s.tile_at(p.a, p.axes, &[at_tile(r), zero.clone(), term.clone()], m)?;
                s.push(k::Stmt::AmxLoad { tile: ROWS + r as u32, place, by });
            }
            for c in 0..across {
                let (place, by) = s.tile_at(p.b, p.axes, &[zero.clone(), at_tile(c), term.clone()], k)?;
                s.push(k::Stmt::AmxLoad { tile: COLS + c as u32, place, by });
            }
            for (tile, _) in &sums {
                s.push(k::Stmt::AmxDot { of: p.of, sums: *tile, a: ROWS + tile / 2, b: COLS + tile % 2 });
            }
            Ok(())
        })?;
        for (tile, at) in &sums {
            let (place, by) = self.tile_at(p.sums, p.axes, at, m)?;
            self.push(k::Stmt::AmxStore { tile: *tile, place, by });
        }
        Ok(())
    }

    /// The place of a tile whose first element is at these positions, and the distance of its rows along an axis.
    fn tile_at(
        &mut self,
        of: &l::Stmt,
        axes: [l::AxisId; 3],
        at: &[k::Ix; 3],
        rows: l::AxisId,
    ) -> Res<(k::Address, k::Ix)> {
        let [m, n, k] = axes;
        let [i, j, l] = at.clone();
        self.at_axis(m, i, vec![], |s| s.at_axis(n, j, vec![], |s| s.at_axis(k, l, vec![], |s| s.tile(of, rows))))
    }

    fn tile(&mut self, of: &l::Stmt, rows: l::AxisId) -> Res<(k::Address, k::Ix)> {
        let apart = |index: &l::Ix| index.linear(rows).map(|(by, _)| by).ok_or("a tile's rows lie anywhere");
        match of {
            l::Stmt::Load { mem, .. } => {
                let by = self.ix(&apart(&mem.index)?)?;
                Ok((self.place(mem)?, by))
            }
            l::Stmt::Read { buf, idx, .. } => {
                let Storage::Slot(slot) = self.storage(*buf)? else { return Err("a tile is of no array".to_string()) };
                let linear = self.linear(*buf, idx)?;
                let by = self.ix(&apart(&linear)?)?;
                Ok((self.place_in(*buf, slot, &linear)?, by))
            }
            _ => Err("a tile is of no array".to_string()),
        }
    }

    /// Checks the array elements that tiles load, row by row.
    fn check_rows(&mut self, of: &l::Stmt, rows: (l::AxisId, u64), along: (l::AxisId, u64)) -> Res<()> {
        let l::Stmt::Load { mem, site, .. } = of else { return Ok(()) };
        if !self.options.check {
            return Ok(());
        }
        self.times(rows.0, rows.1, 0, |s, _| {
            s.at_axis(along.0, k::Ix::Const(0), vec![], |s| {
                let place = s.place(mem)?;
                s.check(mem, &place, along.1 as u32, &k::Mask::default(), false, *site)
            })
        })
    }
}

/// The tiles that hold an operand's rows and columns; those before them hold sums.
const ROWS: u32 = 4;
const COLS: u32 = 6;

fn at_tile(number: u64) -> k::Ix {
    k::Ix::Const((number * SIDE) as i64)
}
