//! `box`, `pad` and `swizzle`: where the elements of a buffer in shared memory lie.
//!
//! ```text
//! local s: f32[32, 32] shared              -->     local s: f32[32, 33] shared
//! stage b_s: f32[128, 32] shared tensor    -->     stage b_s: f32[128, 32] shared swizzle(128) tensor
//! stage b_s: f16[64, 128] shared tensor    -->     stage b_s: f16[2, 64, 64] shared tensor
//! ... b_s[kk, x]                                   ... b_s[x//64, kk, x%64]
//! ```
//!
//! Buffers that TMA fills can be swizzled, and all others padded; subscripts stay as they are. Rows that are longer than a swizzle takes are
//! cut into boxes, which lie one behind the other.

use crate::index::{Facts, simplify};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::boxes::BoxCopy;
use crate::tile::target::MemoryKind;
use crate::tile::{Context, boxes, conflicts};

pub fn swizzle(kernel: &mut Kernel, buf: BufId, bytes: u32) -> Result<(), String> {
    if !boxes::filled(kernel).contains(&buf) {
        return Err("TMA does not fill it".into());
    }
    can_swizzle(kernel, buf, bytes)?;
    kernel.bufs[buf].swizzle = bytes;
    Ok(())
}

/// Bytes of a row.
pub fn row(b: &Buf) -> u64 {
    b.shape.last().map_or(0, |n| n * b.element_bytes())
}

pub fn can_swizzle(kernel: &Kernel, buf: BufId, bytes: u32) -> Result<(), String> {
    let (b, row) = (&kernel.bufs[buf], row(&kernel.bufs[buf]));
    match () {
        _ if !matches!(row, 32 | 64 | 128) => Err(format!("its rows have {row} bytes; 32, 64 and 128 are swizzled")),
        _ if row != u64::from(bytes) => Err(format!("its rows have {row} bytes")),
        _ if !b.bytes().is_multiple_of(8 * row) => Err(format!("it has {} bytes", b.bytes())),
        _ => Ok(()),
    }?;
    let mut boxes = Ok(());
    walk::visit(&kernel.body, &mut |s| match s {
        // All that is to be known is in the masks.
        Stmt::Stage { buf: of, body, .. } if *of == buf && boxes.is_ok() => {
            boxes = BoxCopy::of(kernel, &Facts::new(), body).and_then(|copy| copy.can_swizzle(bytes.into()));
        }
        _ => {}
    });
    boxes
}

/// Bytes of shared memory that are left.
pub fn room(p: &Kernel, ctx: &Context) -> u64 {
    let used: u64 = p.bufs.values().filter(|b| b.space == Space::Shared).map(Buf::bytes).sum();
    ctx.target.bytes_of(MemoryKind::Shared).saturating_sub(used)
}

pub fn pad(kernel: &mut Kernel, ctx: &Context, buf: BufId, elements: u32) -> Result<(), String> {
    let b = &kernel.bufs[buf];
    if b.space != Space::Shared || b.shape.len() < 2 {
        return Err("it has no rows in shared memory".into());
    }
    if boxes::filled(kernel).contains(&buf) {
        return Err("TMA leaves no gaps".into());
    }
    let rows: u64 = b.shape.split_last().map_or(1, |(_, rows)| rows.iter().product());
    let (more, room) = (rows * u64::from(elements) * b.element_bytes(), room(kernel, ctx));
    if more > room {
        return Err(format!("{more} more bytes of shared memory are needed, and {room} are left"));
    }
    let wide = conflicts::accesses(kernel).remove(&buf).is_some_and(|all| all.iter().any(|a| a.is_wide()));
    let then = row(b) + u64::from(elements) * b.element_bytes();
    if wide && !then.is_multiple_of(WIDEST) {
        return Err(format!(
            "its rows are moved several elements at once, and {then} bytes are not a multiple of {WIDEST}"
        ));
    }
    if let Some(last) = kernel.bufs[buf].shape.last_mut() {
        *last += u64::from(elements);
    }
    Ok(())
}

/// The bytes of the widest access; rows that are moved so are a multiple of it.
pub const WIDEST: u64 = 16;

/// Cuts the rows of a buffer that TMA fills into boxes of `columns` columns.
pub fn in_boxes(kernel: &mut Kernel, buf: BufId, columns: u32) -> Result<(), String> {
    if !boxes::filled(kernel).contains(&buf) {
        return Err("TMA does not fill it".into());
    }
    let part = u64::from(columns);
    let b = &kernel.bufs[buf];
    let [rows, cols] = b.shape[..] else { return Err("it has no rows of columns".into()) };
    if b.swizzle != 0 || cols <= part || !cols.is_multiple_of(part.max(1)) {
        return Err(format!("its rows of {cols} elements are swizzled, or not whole boxes of {part}"));
    }
    let mut facts = kernel.facts();
    for f in walk::loops(&kernel.body) {
        facts.set_axis(f.axis, &f.lo, &f.hi);
    }
    let before = kernel.clone();
    kernel.bufs[buf].shape = vec![cols / part, rows, part];
    let mut body = std::mem::take(&mut kernel.body);
    let mut done = Ok(());
    walk::visit_mut(&mut body, &mut |s| match s {
        Stmt::Stage { buf: of, body, .. } if *of == buf => {
            // All that is to be known is in the masks.
            match BoxCopy::of(&before, &Facts::new(), body) {
                Ok(copy) if copy.count() > 1 => done = Err("each of its rows is a box already".into()),
                Ok(copy) => *body = copy.split(kernel, part).body(kernel),
                Err(why) => done = Err(why),
            }
        }
        Stmt::Read { buf: of, idx, .. } if *of == buf => {
            if let [row, col] = &idx[..] {
                let by = Ix::Const(part as i64);
                let of = |ix: Ix| simplify(&ix, &facts);
                *idx = vec![of(Ix::floor_div(col.clone(), by.clone())), row.clone(), of(Ix::modulo(col.clone(), by))];
            }
        }
        Stmt::Print { args, .. } if args.contains(&PrintArg::Buf(buf)) => done = Err("it is printed as it lies".into()),
        _ => {}
    });
    kernel.body = body;
    done
}
