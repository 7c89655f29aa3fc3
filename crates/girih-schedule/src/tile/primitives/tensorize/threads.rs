//! Register tiles of the threads of a block.

use std::collections::{BTreeMap, BTreeSet};

use super::registers::Parts;
use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::num::DType;
use crate::tile::Context;
use crate::tile::accumulator::{self, Kept, Numbering, Tile, keep};
use crate::tile::affine::{self, Stride};
use crate::tile::contraction::{Nest, num_type, power_in};
use crate::tile::edit::{self, new_axis};
use crate::tile::sharing::Share;

/// Gives each thread its rows and columns of an accumulator.
pub fn apply(kernel: &mut Kernel, ctx: &Context, acc: BufId, each: [u64; 2]) -> Result<(), String> {
    let dtype = num_type(kernel, acc).ok_or("its accumulator holds addresses")?;
    let shape = accumulator::matrix(kernel, acc)?;
    divides(shape, each)?;
    limits(ctx, dtype, shape, each)?;
    let nests = accumulator::nests(kernel, acc)?;
    let [r, c] = Layouts::of(kernel, &nests[0]).together();
    let [rows, cols] = [("r", 0, r), ("c", 1, c)].map(|(name, of, lanes)| {
        let together = power_in(each[of]).min(lanes);
        let threads = shape[of] / each[of];
        Share { name, threads, each: each[of], together, apart: threads * together }
    });
    Tile { acc, shape, rows, cols, numbering: Numbering::Squares, whole: true }.place(kernel, &contraction)
}

/// Says why threads would not have equal shares.
pub fn divides([m, n]: [u64; 2], [rows, cols]: [u64; 2]) -> Result<(), String> {
    let whole = |n: u64, each: u64| each > 0 && n.is_multiple_of(each);
    if whole(m, rows) && whole(n, cols) {
        Ok(())
    } else {
        Err(format!("a tile of {rows}x{cols} does not divide {m}x{n}"))
    }
}

/// Says why a thread lacks registers or a block threads.
pub fn limits(ctx: &Context, dtype: DType, [m, n]: [u64; 2], [rows, cols]: [u64; 2]) -> Result<(), String> {
    let registers = rows.saturating_mul(cols).saturating_mul(dtype.bytes().div_ceil(4));
    let has = u64::from(ctx.target.vector.registers) * u64::from(ctx.target.vector.bytes) / 4;
    if registers > has {
        return Err(format!("tiles of {rows}x{cols} take {registers} registers of a thread, which has at most {has}"));
    }
    let (used, most) = ((m / rows) * (n / cols), u64::from(ctx.target.axes.threads));
    if used > most {
        return Err(format!("tiles of {rows}x{cols} take {used} threads of a block, which has at most {most}"));
    }
    Ok(())
}

/// Along which of its axes each operand's buffer runs.
#[derive(Clone, Copy)]
struct Layouts {
    /// Elements of a row, or of a column, that one access takes along it.
    rows: u64,
    cols: u64,
}

impl Layouts {
    fn of(kernel: &Kernel, nest: &Nest) -> Layouts {
        let roles = nest.roles;
        let parts = Parts::of(nest);
        let along = |list: &[Stmt], own: AxisId| match side(kernel, list, nest.roles.k, own) {
            Some((_, Along::Own, lanes)) => lanes,
            _ => 1,
        };
        Layouts { rows: along(&parts.rows, roles.m), cols: along(&parts.cols, roles.n) }
    }

    fn together(self) -> [u64; 2] {
        [self.rows, self.cols]
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Along {
    Own,
    Sum,
    Neither,
}

/// An operand's read, along which axis its buffer runs, and how many elements one access takes.
fn side<'a>(kernel: &Kernel, list: &'a [Stmt], k: AxisId, own: AxisId) -> Option<(&'a Stmt, Along, u64)> {
    let (first, rest) = list.split_first()?;
    let Stmt::Read { buf, idx, .. } = first else { return None };
    if rest.iter().any(|s| !matches!(s, Stmt::Let { .. })) {
        return None;
    }
    let b = &kernel.bufs[*buf];
    let Ty::Num(dtype) = b.ty else { return None };
    let none = BTreeSet::new();
    let along = |axis| affine::buf_stride(b, idx, axis, &none) == Stride::Unit;
    // Columns of the accumulator are stored four at a time; along the sum more elements of fewer bytes go together.
    let (is, most) = match (along(own), along(k)) {
        (true, _) => (Along::Own, 4),
        (_, true) => (Along::Sum, 8),
        _ => (Along::Neither, 1),
    };
    let even = b.shape.last().map_or(1, |n| power_in(*n));
    let lanes = even.min((16 / dtype.bytes()).clamp(1, most));
    Some((first, is, lanes))
}

/// The sum: step by step of the reduction, each operand's elements of a thread into registers, then the products.
fn contraction(tile: &Tile, kernel: &mut Kernel, nest: &Nest) -> Result<Stmt, String> {
    let parts = Parts::of(nest);
    let k = nest.roles.k;
    // The elements along the sum that one access takes are taken before they are needed.
    let sides = [(&parts.rows, nest.roles.m), (&parts.cols, nest.roles.n)];
    let ahead = |(list, own): &(&Vec<Stmt>, AxisId)| match side(kernel, list, k, *own) {
        Some((_, Along::Sum, lanes)) => Some(lanes),
        _ => None,
    };
    let step = sides.iter().filter_map(ahead).min().unwrap_or(1);
    let step = power_in(nest.k).min(step);
    tile.threads_around(kernel, |kernel, thread| {
        let (outer, inner) = (new_axis(kernel, k, "1"), new_axis(kernel, k, "2"));
        let first = Ix::mul(Ix::Axis(outer), Ix::Const(step as i64));
        let at = if step > 1 { Ix::add(first.clone(), Ix::Axis(inner)) } else { Ix::Axis(outer) };
        let (mut before, mut body) =
            (vec![], edit::place_axes(&parts.once, &[(k, at.clone())].into(), &BTreeMap::new()));
        let mut kept = BTreeMap::new();
        let needed = refs(&parts.sums).vals_used;
        for (left, list, own, share, from) in [
            (true, &parts.rows, nest.roles.m, tile.rows, &thread.row),
            (false, &parts.cols, nest.roles.n, tile.cols, &thread.col),
        ] {
            let load = Load { left, list, own, share, from, k, at: &at, first: &first, inner, step, needed: &needed };
            load.build(kernel, &mut before, &mut body, &mut kept);
        }
        let [m, n] = [nest.roles.m, nest.roles.n];
        let registers = match tile.whole {
            true => tile.acc,
            false => {
                let Buf { ty, name, .. } = &kernel.bufs[tile.acc];
                let part = Buf::new(format!("{name}_r"), *ty, vec![tile.rows.each, tile.cols.each]);
                kernel.bufs.push(part)
            }
        };
        body.extend(tile.rows.slots(kernel, m, &thread.row, false, &mut |kernel, r, row| {
            tile.cols.slots(kernel, n, &thread.col, false, &mut |_, c, col| {
                let mut out: Vec<Stmt> = kept.values().map(|k: &Kept| k.read(&r, &c)).collect();
                let by = [(m, row.clone()), (n, col), (k, at.clone())].into();
                let mut sums = edit::place_axes(&parts.sums, &by, &BTreeMap::new());
                walk::subst_vals(&mut sums, &mut |v| kept.get(&v).map(|k| Opnd::Val(k.again)));
                tile.in_registers(&mut sums, registers, &tile.slot(&thread, &r, &c));
                out.extend(sums);
                out
            })
        }));
        if step > 1 {
            body = vec![edit::loop_with(inner, Ix::Const(step as i64), body, |f| {
                (f.kind, f.place) = (LoopKind::Reduce, Place::Unroll);
            })];
        }
        before.extend(body);
        let steps = Ix::Const((nest.k / step) as i64);
        let steps = edit::loop_with(outer, steps, before, |f| f.kind = LoopKind::Reduce);
        if tile.whole {
            return Ok(vec![steps]);
        }
        let mut out = vec![Stmt::Local { buf: registers }];
        out.extend(tile.copied(kernel, &thread, [m, n], registers, false));
        out.push(steps);
        out.extend(tile.copied(kernel, &thread, [m, n], registers, true));
        Ok(out)
    })
}

/// What brings a thread's elements of one operand into registers.
struct Load<'a> {
    left: bool,
    list: &'a [Stmt],
    own: AxisId,
    share: Share,
    from: &'a Ix,
    k: AxisId,
    /// The step of the sum, and the first of those taken together.
    at: &'a Ix,
    first: &'a Ix,
    inner: AxisId,
    step: u64,
    needed: &'a BTreeSet<ValId>,
}

impl Load<'_> {
    fn build(
        &self,
        kernel: &mut Kernel,
        before: &mut Vec<Stmt>,
        body: &mut Vec<Stmt>,
        kept: &mut BTreeMap<ValId, Kept>,
    ) {
        let own = self.own;
        let mut rest = self.list;
        let mut raw = BTreeMap::new();
        if let Some((read, along, _)) = side(kernel, self.list, self.k, own)
            && let Some(val) = walk::def(read)
        {
            rest = &self.list[1..];
            let sum = along == Along::Sum && self.step > 1;
            let made = keep(kernel, val, self.left, self.share.each, sum.then_some((self.inner, self.step)));
            let lane = new_axis(kernel, self.k, "3");
            let vector = along == Along::Own;
            let copy = self.share.slots(kernel, own, self.from, vector, &mut |_, slot, position| {
                let k = if sum { Ix::add(self.first.clone(), Ix::Axis(lane)) } else { self.at.clone() };
                let by = [(own, position), (self.k, k)].into();
                let mut out = edit::place_axes(std::slice::from_ref(read), &by, &BTreeMap::new());
                let idx = std::iter::once(slot).chain(sum.then_some(Ix::Axis(lane))).collect();
                out.push(Stmt::Write { buf: made.buf, idx, value: Opnd::Val(val) });
                if sum {
                    let lanes = self.step as u32;
                    out = vec![edit::loop_with(lane, Ix::Const(lanes.into()), out, |f| {
                        f.place = Place::Vector { lanes }
                    })];
                }
                out
            });
            let to = if sum { before } else { &mut *body };
            to.push(Stmt::Local { buf: made.buf });
            to.extend(copy);
            raw.insert(val, made);
        }
        let computed: Vec<ValId> = rest.iter().filter_map(walk::def).filter(|v| self.needed.contains(v)).collect();
        if computed.is_empty() {
            kept.extend(raw);
            return;
        }
        let mut of = |v| (v, keep(kernel, v, self.left, self.share.each, None));
        let made: Vec<(ValId, Kept)> = computed.into_iter().map(&mut of).collect();
        body.extend(made.iter().map(|(_, k)| Stmt::Local { buf: k.buf }));
        body.extend(self.share.slots(kernel, own, self.from, false, &mut |_, slot, position| {
            let mut out: Vec<Stmt> = raw.values().map(|k: &Kept| k.read(&slot, &slot)).collect();
            let by = [(own, position), (self.k, self.at.clone())].into();
            let mut rest = edit::place_axes(rest, &by, &BTreeMap::new());
            walk::subst_vals(&mut rest, &mut |v| raw.get(&v).map(|k| Opnd::Val(k.again)));
            out.extend(rest);
            out.extend(made.iter().map(|(v, k)| k.write(&slot, *v)));
            out
        }));
        kept.extend(raw.into_iter().filter(|(v, _)| self.needed.contains(v)));
        kept.extend(made);
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{GEMM, apply, gpu, kernel, refusals, text};

    /// A product whose operands lie in shared memory: `a` runs along the sum, `b` along the columns.
    const PRODUCT: &str = r#"tile kernel k(A: ptr f32, bias: ptr f32, C: ptr f32):
  local a: f32[32, 16] shared
  local b: f32[16, 64] shared
  local acc: f32[32, 64]
  for i in 0..32: free
    for j in 0..64: free
      acc[i, j] = 0.0
  for k in 0..4: serial
    for i1 in 0..32: free
      for j1 in 0..64: free
        for kk in 0..16: reduce contraction m=i1 n=j1 k=kk a=x b=y acc=acc
          x: f32 = a[i1, kk]
          y: f32 = b[kk, j1]
          c: f32 = acc[i1, j1]
          d: f32 = fma(x, y, c)
          acc[i1, j1] = d
  for i2 in 0..32: free
    r: f32 = load A[i2]
    for j2 in 0..64: free
      s: f32 = acc[i2, j2]
      t: f32 = load bias[j2]
      u: f32 = s + t
      v: f32 = u * r
      store C[i2*64 + j2] = v
"#;

    #[test]
    fn a_tile_is_the_threads_from_its_start_to_its_end() {
        let (out, log) = apply("register_tile", &kernel(PRODUCT), &gpu(&[]));
        assert_eq!(log.applied, ["contraction into acc: 4 x 4 for each of 128 threads"]);
        let made = text(&out);
        let sum = r#"    for t_1 in 0..128: free thread
      for kk1 in 0..4: reduce
        local x_r: f32[4, 4]
        for r_1 in 0..4: free unroll
          for kk3 in 0..4: free vector(4)
            x: f32 = a[r_1*8 + (t_1//32*2 + t_1//2%2), kk1*4 + kk3]
            x_r[r_1, kk3] = x
        for kk2 in 0..4: reduce unroll
          local y_r: f32[4]
          for c_1 in 0..4: free vector(4)
            y: f32 = b[kk1*4 + kk2, (t_1//4%8*2 + t_1%2)*4 + c_1]
            y_r[c_1] = y
"#;
        assert!(made.contains("local acc: f32[128, 4, 4] private\n") && made.contains(sum), "{made}");
        // What belongs to a column is loaded before the rows.
        let end = r#"        bias_r"#;
        assert!(made.contains("t_r[c_") && !made.contains(end), "{made}");
    }

    #[test]
    fn another_use_of_the_accumulator_keeps_it_in_memory() {
        let other = PRODUCT.replace("s: f32 = acc[i2, j2]", "s: f32 = acc[i2, 63 - j2]");
        let (out, log) = apply("register_tile", &kernel(&other), &gpu(&[]));
        assert!(log.applied[0].contains("in registers during the sum only"), "{:?}", log.applied);
        let made = text(&out);
        assert!(made.contains("local acc: f32[32, 64]\n") && made.contains("local acc_r: f32[4, 4]"), "{made}");
    }

    #[test]
    fn knobs_choose_the_shares_and_the_block_has_a_limit() {
        let (out, _) = apply("register_tile", &kernel(PRODUCT), &gpu(&["rows=2", "cols=8"]));
        assert!(text(&out).contains("local acc: f32[128, 2, 8] private"), "{}", text(&out));
        for (knobs, why) in [
            (&["rows=3"][..], "a tile of 3x8 does not divide 32x64"),
            (
                &["rows=1", "cols=1"],
                "knobs `rows` and `cols`: tiles of 1x1 take 2048 threads of a block, which has at most 1024",
            ),
            (
                &["rows=32", "cols=32"],
                "knobs `rows` and `cols`: tiles of 32x32 take 1024 registers of a thread, which has at most 252",
            ),
            (&["register_tile=0"], "knob off"),
        ] {
            assert_eq!(refusals("register_tile", PRODUCT, &gpu(knobs)), [format!("contraction into acc: {why}")]);
        }
    }

    /// Every rule for a GPU in order: operands are staged and shared, and the accumulator is the threads' own.
    #[test]
    fn a_product_of_a_tile_program_is_spread_over_the_threads() {
        let out = crate::tile::tests::schedule(&kernel(GEMM), &gpu(&["tensor_core=0"]));
        let made = text(&out);
        for part in ["stage a_s: f16[128, 72] shared", "stage b_s: f16[64, 128] shared", "acc: f32[256, 8, 8] private"]
        {
            assert!(made.contains(part), "{part} is not in\n{made}");
        }
    }
}
