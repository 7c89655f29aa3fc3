//! Contraction nests, and the register tile they get.
//!
//! ```text
//! for i in 0..128: free
//!   for j in 0..128: free
//!     for kk in 0..64: reduce contraction(m i, n j, k kk, a %a, b %b, acc)
//!       %a = load ...        the operands, as the program has them
//!       %b = load ...
//!       ...                  conversions
//!       acc[i, j] <- %a * %b + acc[i, j]
//! ```

use super::edit::const_trip;
use super::primitives::{LoopRef, Names, look};
use super::rules::site_of_loop;
use super::rules::split_digits::digits_of;
use super::tile_nest::multiplies;
use super::{Context, affine};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::{DType, ScalarOp};
use crate::tile::heuristics::contraction::{ENOUGH, IN_FLIGHT, LEAST_ROW};

/// Perfectly nested free loops around one contraction's reduce loop. The innermost two free loops are `m` and `n`, in
/// either order; constant extents.
pub struct Nest<'a> {
    /// The free loops, outermost first.
    pub free: Vec<&'a For>,
    pub reduce: &'a For,
    pub roles: Roles,
    pub m: u64,
    pub n: u64,
    pub k: u64,
}

/// The roles of a contraction of one axis each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Roles {
    pub m: AxisId,
    pub n: AxisId,
    pub k: AxisId,
    pub a: ValId,
    pub b: ValId,
    pub acc: BufId,
}

impl Roles {
    fn of(c: &Contraction) -> Option<Roles> {
        match (&c.m[..], &c.n[..], &c.k[..]) {
            ([m], [n], [k]) => Some(Roles { m: *m, n: *n, k: *k, a: c.a, b: c.b, acc: c.acc }),
            _ => None,
        }
    }
}

/// One operand of the product.
pub struct Operand {
    /// The multiply's argument.
    pub value: ValId,
    /// The statements of the reduce body that compute it, by position.
    pub slice: Vec<usize>,
}

/// The nest that starts at a statement: `None` where there is none, `Err` with the reason where its form is not the one above.
pub fn nest_at(stmt: &Stmt) -> Option<Result<Nest<'_>, &'static str>> {
    if let Stmt::For(f) = stmt { nest_of(f) } else { None }
}

/// The nest that a loop is the outermost of.
pub fn nest_of(outermost: &For) -> Option<Result<Nest<'_>, &'static str>> {
    let mut free = Vec::new();
    let mut f = outermost;
    loop {
        if let Some(roles) = &f.contraction {
            return Some(finish(free, f, roles));
        }
        if f.kind != LoopKind::Free {
            return None;
        }
        free.push(f);
        let [Stmt::For(only)] = &f.body[..] else { return None };
        f = only;
    }
}

/// A contraction of a kernel.
pub struct Found<'a> {
    /// The outermost of its loops.
    pub over: LoopRef,
    /// As messages name it.
    pub site: String,
    /// The loop over its terms and the nest, or why its form is another.
    pub nest: Result<(LoopRef, Nest<'a>), &'static str>,
}

/// The contractions of a kernel, in order.
pub fn nests(kernel: &Kernel) -> Vec<Found<'_>> {
    let mut out = vec![];
    each(kernel, &mut |over, f, nest| out.push(Found { over, site: site_of_loop(kernel, f), nest }));
    out
}

/// Shows `f` the contractions of a kernel: the outermost of its loops by name, and the loop over its terms with the nest.
fn each<'a>(kernel: &'a Kernel, f: &mut dyn FnMut(LoopRef, &'a For, Result<(LoopRef, Nest<'a>), &'static str>)) {
    let names = Names::of(kernel);
    look(kernel, &mut |over, outermost| {
        let Some(nest) = nest_of(outermost) else { return true };
        let named = |nest: Nest<'a>| Some((names.name(nest.reduce)?, nest));
        f(over, outermost, nest.and_then(|nest| named(nest).ok_or("its loops are not a nest of their own")));
        false
    });
}

/// The loops over the terms of contractions, and the nest of each with the outermost of its loops.
pub fn sums(kernel: &Kernel) -> Vec<(LoopRef, LoopRef, Nest<'_>)> {
    let mut out = vec![];
    each(kernel, &mut |over, _, nest| out.extend(nest.ok().map(|(at, nest)| (at, over, nest))));
    out
}

/// The nest that a loop is the outermost of, with the loop over its terms.
///
/// # Errors
/// The loop is not one of a contraction, or why the nest has another form.
pub fn nest_over(kernel: &Kernel, over: LoopRef) -> Result<(LoopRef, Nest<'_>), &'static str> {
    let mut found = Err("it is not a contraction any more");
    each(kernel, &mut |at, _, nest| {
        if at == over {
            found = nest;
        }
    });
    found
}

/// The nest of the sum over a loop, and the outermost of its loops.
///
/// # Errors
/// The loop is not one over the terms of a contraction.
pub fn nest_around(kernel: &Kernel, sum: LoopRef) -> Result<(LoopRef, Nest<'_>), String> {
    let found = sums(kernel).into_iter().find(|(at, ..)| *at == sum);
    let (_, over, nest) = found.ok_or("it is not the loop over the terms of a contraction")?;
    Ok((over, nest))
}

fn finish<'a>(free: Vec<&'a For>, reduce: &'a For, roles: &'a Contraction) -> Result<Nest<'a>, &'static str> {
    let roles = Roles::of(roles).ok_or("its rows, columns or sum run over several axes")?;
    let [.., p, q] = &free[..] else { return Err("its m and n loops do not surround it directly") };
    let (m, n) = match (p.axis == roles.m, q.axis == roles.n, p.axis == roles.n, q.axis == roles.m) {
        (true, true, _, _) => (p, q),
        (_, _, true, true) => (q, p),
        _ => return Err("its m and n loops do not surround it directly"),
    };
    let (Some(m), Some(n), Some(k)) = (const_trip(m), const_trip(n), const_trip(reduce)) else {
        return Err("an extent is not a constant");
    };
    if m == 0 || n == 0 || k == 0 {
        return Err("an extent is 0");
    }
    Ok(Nest { free, reduce, roles, m, n, k })
}

impl Nest<'_> {
    /// A statement inside the free loops.
    pub fn around(&self, inner: Stmt) -> Stmt {
        let inside = |s, f: &&For| f.around(vec![s]);
        self.free.iter().rev().fold(inner, inside)
    }

    /// The sum once more, with values and an axis of its own.
    pub fn fresh_reduce(&self, kernel: &mut Kernel) -> (For, Roles) {
        let mut copy = self.reduce.clone();
        let renaming = walk::Renaming::fresh(kernel, std::slice::from_ref(&Stmt::For(Box::new(copy.clone()))));
        renaming.apply(&mut copy.body);
        let axis = |a: AxisId| renaming.axes.get(&a).copied().unwrap_or(a);
        let val = |v: ValId| renaming.vals.get(&v).copied().unwrap_or(v);
        copy.axis = axis(copy.axis);
        let Roles { k, a, b, .. } = self.roles;
        (copy, Roles { k: axis(k), a: val(a), b: val(b), ..self.roles })
    }

    /// Checks that only rows and columns stand around the sum: threads share one product at a time.
    pub fn alone(&self) -> Result<(), &'static str> {
        match self.free.len() {
            2 => Ok(()),
            _ => Err("it is one of several products that threads do side by side"),
        }
    }

    /// The left and right operands of the product.
    pub fn operands(&self) -> Result<(Operand, Operand), &'static str> {
        let body = &self.reduce.body;
        for s in body {
            let Stmt::Let { op, args, .. } = s else { continue };
            if !multiplies(*op) && !matches!(op, ScalarOp::MulF { .. }) {
                continue;
            }
            let [Opnd::Val(x), Opnd::Val(y), ..] = &args[..] else { continue };
            let (sx, sy) = (walk::slice(body.iter(), &[*x]), walk::slice(body.iter(), &[*y]));
            let has = |s: &[usize], v: ValId| s.iter().any(|&i| defines(&body[i], v));
            let (left, right) = (Operand { value: *x, slice: sx }, Operand { value: *y, slice: sy });
            if has(&left.slice, self.roles.a) && has(&right.slice, self.roles.b) {
                return Ok((left, right));
            }
            if has(&left.slice, self.roles.b) && has(&right.slice, self.roles.a) {
                return Ok((right, left));
            }
        }
        Err("its product is not of its two operands")
    }
}

fn defines(s: &Stmt, v: ValId) -> bool {
    walk::def(s) == Some(v)
}

/// The register tile of a contraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TileShape {
    pub rows: u32,
    pub cols: u32,
    pub lanes: u32,
}

/// The element type of a buffer, when it holds numbers.
pub fn num_type(kernel: &Kernel, buf: BufId) -> Option<DType> {
    kernel.bufs.get(buf)?.ty.num()
}

impl Nest<'_> {
    /// The width of the panels along n in which an operand lies already, in memory or packed.
    pub fn panel_width(&self) -> Option<u64> {
        // Runs that a table gives are not panels: they lie anywhere.
        let given = |ix: &Ix| ix.vals().iter().any(|v| self.reduce.body.iter().any(|s| defines(s, *v)));
        let find = |ix: &Ix| affine::panels(ix, self.roles.n).filter(|_| !given(ix));
        let width = self.reduce.body.iter().find_map(|s| match s {
            Stmt::Load { mem, .. } => find(&mem.index),
            Stmt::Read { buf, idx, .. } if *buf != self.roles.acc => idx.iter().find_map(find),
            _ => None,
        });
        width.and_then(|w| u64::try_from(w).ok())
    }

    /// The register tile of this nest: as wide as the panels its right operand lies in, or as [`tile_shape`] chooses.
    pub fn tile_shape(&self, ctx: &Context, acc: DType) -> Result<TileShape, String> {
        let native = u64::from(ctx.target.lanes_of(acc.bytes()));
        let panels = self.panel_width().filter(|w| w.is_multiple_of(native.max(1)) && self.n.is_multiple_of(*w));
        let columns = panels.filter(|_| ctx.knobs.cols.is_none()).unwrap_or(self.n);
        let shape = tile_shape(ctx, acc, self.m, columns)?;
        // Rows that are counted through those of an image had better not go on in the next of those.
        let within = self
            .row_of_rows()
            .and_then(|row| tile_shape(ctx, acc, row, columns).ok().filter(|t| row.is_multiple_of(t.rows.into())));
        Ok(within.unwrap_or(shape))
    }

    /// The number of rows that follow each other in memory, if the left operand goes through its rows in groups of that number.
    fn row_of_rows(&self) -> Option<u64> {
        let digits = digits_of(&self.reduce.body, self.roles.m, i64::try_from(self.m).ok()?).ok()?;
        let [fastest, _, ..] = digits[..] else { return None };
        u64::try_from(fastest.count).ok().filter(|row| *row >= LEAST_ROW)
    }
}

/// Chooses the register tile of an m x n accumulator: two vectors wide where n allows, and as high as registers for the operands
/// permit, so that eight or more independent multiply-adds are in flight and each operand element loaded is used several times.
/// Smaller tiles cover the rows and the vectors that are left over: [`parts`].
pub fn tile_shape(ctx: &Context, acc: DType, m: u64, n: u64) -> Result<TileShape, String> {
    vector_sums(acc)?;
    let native = ctx.target.lanes_of(acc.bytes());
    let wanted = ctx.knobs.lanes.map_or(native, prev_power);
    let lanes = wanted.min(power_in(n).min(1 << 16) as u32);
    if lanes < 2 {
        return Err(format!("{n} columns do not fill a vector"));
    }
    let registers = (ctx.target.vector.registers / (lanes / native).max(1)).max(4);
    let vectors = (n / u64::from(lanes)).min(8) as u32;
    let rows = match ctx.knobs.rows {
        Some(rows) => m.min(rows.into()) as u32,
        None => rows_of_tile(registers, vectors.min(2), m),
    };
    // With one row, each vector of the right operand is used once, and needs no register of its own.
    let held = if rows == 1 { registers / 2 } else { (registers - 1) / (rows + 1) };
    let wide = prev_power(vectors.min(held).min(ENOUGH / rows));
    let cols = ctx.knobs.cols.unwrap_or(wide * lanes);
    if !n.is_multiple_of(lanes.into()) || u64::from(cols) > n || !cols.is_multiple_of(lanes) {
        return Err(format!("a tile of {cols} columns by {lanes} lanes does not divide {n}"));
    }
    Ok(TileShape { rows, cols, lanes })
}

/// Returns an error if sums of a type are not kept in vector registers.
pub fn vector_sums(acc: DType) -> Result<(), String> {
    match acc {
        DType::F32 | DType::F64 | DType::I32 | DType::I64 => Ok(()),
        _ => Err(format!("accumulators of {acc} are not held in vectors")),
    }
}

/// How tiles cover an extent: where the first of them starts, how long they are and how many. Smaller tiles cover the rest:
/// their lengths are powers of two times `least`; if `least` is 1, one tile covers it.
pub fn parts(extent: u64, size: u32, least: u32) -> Vec<(u64, u32, u64)> {
    let mut out = vec![(0, size, extent / u64::from(size))];
    let mut first = extent - extent % u64::from(size);
    while first < extent {
        let rest = (extent - first) as u32;
        let size = if least == 1 { rest } else { prev_power(rest / least) * least };
        out.push((first, size, 1));
        first += u64::from(size);
    }
    out
}

/// The number of rows of a tile, `vectors` vectors wide, that takes the least time for m rows: besides the accumulators, each
/// vector of the right operand has a register, and the left operand has one.
fn rows_of_tile(registers: u32, vectors: u32, m: u64) -> u32 {
    let most = (ENOUGH / vectors).min((registers - 1) / vectors - 1).max(1);
    // A step of the sum takes as long as two multiply-adds for each row's vectors, or as those that are in flight, and a little more.
    let step = |rows: u64| rows.max((IN_FLIGHT / vectors).into()) + 1;
    let time = |rows: u64| m / rows * step(rows) + if m.is_multiple_of(rows) { 0 } else { step(m % rows) };
    let best =
        (1..=u64::from(most)).filter(|r| *r <= m).min_by_key(|r| (time(*r), !m.is_multiple_of(*r), most as u64 - r));
    best.unwrap_or(1) as u32
}

/// The greatest power of two that divides `x`; 0 for 0.
pub fn power_in(x: u64) -> u64 {
    x & x.wrapping_neg()
}

/// The greatest power of two up to `x` (at least 1).
pub fn prev_power(x: u32) -> u32 {
    if x < 2 { 1 } else { 1 << x.ilog2() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::target::Target;

    fn shape(target: Target, acc: DType, m: u64, n: u64) -> (u32, u32, u32) {
        let ctx = Context { target, ..Context::default() };
        let s = tile_shape(&ctx, acc, m, n).unwrap();
        (s.rows, s.cols, s.lanes)
    }

    #[test]
    fn tiles_and_smaller_ones_cover_an_extent() {
        assert_eq!(parts(48, 6, 1), [(0, 6, 8)]);
        assert_eq!(parts(64, 6, 1), [(0, 6, 10), (60, 4, 1)]);
        assert_eq!(parts(56, 16, 8), [(0, 16, 3), (48, 8, 1)]);
        assert_eq!(parts(120, 64, 8), [(0, 64, 1), (64, 32, 1), (96, 16, 1), (112, 8, 1)]);
    }

    #[test]
    fn tiles_follow_the_registers_and_the_extents() {
        let wide = Target::cpu();
        let narrow = Target::cpu().with_vectors(32, 16);
        assert_eq!(shape(wide.clone(), DType::F32, 128, 128), (8, 32, 16));
        assert_eq!(shape(wide.clone(), DType::F64, 128, 128), (8, 16, 8));
        assert_eq!(shape(wide.clone(), DType::F32, 16, 16), (16, 16, 16));
        assert_eq!(shape(wide.clone(), DType::F32, 4, 128), (4, 64, 16));
        assert_eq!(shape(wide.clone(), DType::F32, 1, 64), (1, 64, 16));
        assert_eq!(shape(wide.clone(), DType::F32, 7, 32), (7, 32, 16));
        // Seven tiles and one of four rows.
        assert_eq!(shape(wide.clone(), DType::F32, 60, 64), (8, 32, 16));
        assert_eq!(shape(wide.clone(), DType::F32, 18, 64), (6, 32, 16));
        assert_eq!(shape(wide, DType::F32, 32, 4), (16, 4, 4));
        // 12 accumulators of 16 registers, but where fewer leave no rows over.
        assert_eq!(shape(narrow.clone(), DType::F32, 128, 128), (6, 16, 8));
        assert_eq!(shape(narrow.clone(), DType::F32, 32, 128), (4, 16, 8));
        assert_eq!(shape(narrow.clone(), DType::F32, 1, 128), (1, 64, 8));
        assert_eq!(shape(narrow.clone(), DType::F32, 2, 128), (2, 32, 8));
        assert_eq!(shape(narrow.clone(), DType::F32, 1000, 8), (14, 8, 8));
        assert_eq!(shape(narrow.clone(), DType::F32, 64, 56), (6, 16, 8));
        assert_eq!(shape(narrow, DType::F32, 64, 28), (6, 8, 4));
    }
}
