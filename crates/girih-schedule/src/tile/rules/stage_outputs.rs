//! `stage_outputs`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::index::{Facts, Poly};
use crate::loops::ir::*;
use crate::loops::walk::{self, effects, refs};
use crate::num::DType;
use crate::tile::Context;
use crate::tile::boxes::BoxCopy;
use crate::tile::edit::{self, const_trip, free_loop, new_axis};
use crate::tile::matrix;
use crate::tile::reuse;
use crate::tile::target::{Capability, MemoryKind};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "stage_outputs",
    doc: "\
Collects the results of a product in shared memory, and copies them to their array row by row; where TMA can, one thread begins
the copies of whole boxes.

```text
for i in 0..128: for j in 0..128: free           for i in 0..128: for j in 0..128: free
  v = acc[i, j]                                    v = acc[i, j]
  o = f16(v)                                       o = f16(v)
  store y[(ib*128 + i)*N + jb*128 + j] = o         y_s[j//64, i, j%64] = o
                                          -->    for p in 0..2: free tensor
                                                   for i in 0..128: for j in 0..64: free
                                                     o = y_s[p, i, j]
                                                     store y[(ib*128 + i)*N + jb*128 + p*64 + j] = o
                                                       where ib*128 + i < M and jb*128 + p*64 + j < N
```

A thread of the matrix unit has two neighbours of a row, and eight rows are stored at once: with elements of one or two bytes,
each row is a part of a sector, which is then written in several steps. The tile takes the bytes of the stages of the loop before
it, which are free by then.

Knob: `stage_outputs` (0 turns the rule off); `tma=0` leaves the copies to all threads.

Refuses elements of four bytes and more, which fill sectors; stores that are not along the rows; and tiles that do not fit shared
memory. It says why TMA does not copy one.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    edit::rewrite_blocks(p, &mut |kernel, facts, body| {
        let mut body = body.to_vec();
        let mut changed = false;
        let mut at = 0;
        while at < body.len() {
            let Some(found) = Output::of(kernel, ctx, &body, at) else {
                at += 1;
                continue;
            };
            let name = kernel.vals[found.mem.base].name.clone();
            match found.staged(kernel, ctx, facts, &body) {
                Ok((made, how)) => {
                    log.applied(format!("{name}: {how}"));
                    let count = made.len();
                    body.splice(at..=at, made);
                    at += count;
                    changed = true;
                }
                Err(why) => {
                    log.skipped(name, why);
                    at += 1;
                }
            }
        }
        changed.then_some(body)
    })
}

/// Bytes of the rows that TMA and the banks of shared memory like.
const ROW: u64 = 128;

/// A nest that stores what became of each element of a product.
struct Output<'a> {
    /// Its position among the statements of the block.
    at: usize,
    shape: [u64; 2],
    i: &'a For,
    j: &'a For,
    mem: &'a Mem,
    mask: &'a Mask,
    value: Opnd,
    site: SiteId,
}

impl<'a> Output<'a> {
    fn of(kernel: &Kernel, ctx: &Context, body: &'a [Stmt], at: usize) -> Option<Output<'a>> {
        let Stmt::For(i) = &body[at] else { return None };
        let Some(Stmt::For(j)) = i.body.last() else { return None };
        let open = |f: &For| f.kind == LoopKind::Free && f.place == Place::None;
        let Some(Stmt::Store { mem, mask, value, order: Order::Weak, site }) = j.body.last() else { return None };
        let shape = [const_trip(i)?, const_trip(j)?];
        let place = [Ix::Axis(i.axis), Ix::Axis(j.axis)];
        let acc = j.body.iter().find_map(|s| match s {
            Stmt::Read { buf, idx, .. } if *idx == place && products(kernel, ctx, &body[..at], *buf) => Some(buf),
            _ => None,
        })?;
        let pure = |body: &[Stmt]| body[..body.len() - 1].iter().all(edit::is_pure);
        let all = open(i) && open(j) && pure(&i.body) && pure(&j.body) && kernel.bufs[*acc].shape == shape;
        all.then_some(Output { at, shape, i, j, mem, mask, value: *value, site: *site })
    }

    /// The statements that replace the nest, and a description of the copy.
    fn staged(
        &self,
        kernel: &mut Kernel,
        ctx: &Context,
        facts: &Facts,
        body: &[Stmt],
    ) -> Result<(Vec<Stmt>, String), String> {
        let [rows, cols] = self.shape;
        let size = self.mem.elem.bytes();
        if !ctx.knobs.stage_outputs {
            return Err("knob off".into());
        }
        if size >= 4 || self.mem.elem.bits() < 8 || self.mem.elem == DType::I1 {
            return Err(format!("elements of {} bits are stored as they are", self.mem.elem.bits()));
        }
        let along = Poly::expanded(&self.mem.index).coefficient(&Ix::Axis(self.j.axis)) == 1;
        if !along || self.mem.index.linear(self.j.axis).is_none() {
            return Err("it is not stored along its rows".into());
        }
        let defined: BTreeSet<ValId> = refs(&self.i.body).vals_defined.into_iter().collect();
        let own = |ix: &Ix| ix.vals().iter().any(|v| defined.contains(v));
        let masked = self.mask.conds.iter().any(|c| own(&c.lhs) || own(&c.rhs));
        if defined.contains(&self.mem.base) || own(&self.mem.index) || masked || !self.mask.vals.is_empty() {
            return Err("where it is stored is computed for each element".into());
        }
        let needed = reuse::needed(kernel, rows * cols * size);
        let room = ctx.target.bytes_of(MemoryKind::Shared);
        if needed > room {
            return Err(format!("its tile makes {needed} bytes of shared memory, and a block has at most {room}"));
        }
        match self.boxed(kernel, ctx, facts, body) {
            Ok((made, out, boxes)) => {
                *kernel = made;
                let how = if boxes == 1 { "one box".to_string() } else { format!("{boxes} boxes") };
                Ok((out, format!("{rows} x {cols}, {how} by TMA")))
            }
            Err(why) => Ok((self.nests(kernel, None), format!("{rows} x {cols}, by all threads: {why}"))),
        }
    }

    /// A kernel with the tile, the nest and its copy by TMA, and how many boxes it has.
    fn boxed(
        &self,
        kernel: &Kernel,
        ctx: &Context,
        facts: &Facts,
        body: &[Stmt],
    ) -> Result<(Kernel, Vec<Stmt>, u64), String> {
        let swizzle = self.swizzle(ctx, body)?;
        let mut made = kernel.clone();
        let mut out = self.nests(&mut made, Some(swizzle));
        let copy = BoxCopy::of(&made, facts, &out.split_off(out.len() - 1))?;
        if let Some(why) = copy.refused(&made) {
            return Err(why);
        }
        copy.can_swizzle(swizzle)?;
        out.extend(copy.body(&mut made));
        if let Some(Stmt::For(f)) = out.last_mut() {
            f.place = Place::TmaStore;
        }
        Ok((made, out, copy.count()))
    }

    /// The bytes of a row within which TMA exchanges pieces.
    fn swizzle(&self, ctx: &Context, body: &[Stmt]) -> Result<u64, String> {
        if !ctx.target.has(Capability::TensorCopies) {
            return Err(format!("{} has no TMA", ctx.target.name));
        }
        if !ctx.knobs.tma || !ctx.knobs.swizzle {
            return Err("a knob is off".into());
        }
        let [before, behind] = [effects(&body[..self.at]), effects(&body[self.at + 1..])];
        let own = effects(&body[self.at..=self.at]);
        let touched =
            [&before.stores, &behind.stores, &before.loads, &own.loads].iter().any(|b| b.contains(&self.mem.base));
        if touched || [&before, &behind].iter().any(|e| e.atomic || e.ordered) {
            return Err("the kernel touches the array otherwise, which nothing orders with TMA".into());
        }
        if !behind.loads.is_empty() {
            return Err("the kernel loads from global memory behind it".into());
        }
        let row = self.shape[1] * self.mem.elem.bytes();
        match row {
            32 | 64 | ROW => Ok(row),
            _ if row.is_multiple_of(ROW) => Ok(ROW),
            _ => Err(format!("rows of {row} bytes are not swizzled")),
        }
    }

    /// The nest with shared memory for its array, and the copy from there. With a swizzle the rows are split into parts of
    /// `swizzle` bytes.
    fn nests(&self, kernel: &mut Kernel, swizzle: Option<u64>) -> Vec<Stmt> {
        let [rows, cols] = self.shape;
        let elem = self.mem.elem;
        let name = format!("{}_s", kernel.vals[self.mem.base].name);
        let part = swizzle.map_or(cols, |bytes| bytes / elem.bytes());
        let parts = cols / part;
        let shape = if parts > 1 { vec![parts, rows, part] } else { vec![rows, cols] };
        let buf =
            Buf { space: Space::Shared, swizzle: swizzle.unwrap_or(0) as u32, ..Buf::new(name, Ty::Num(elem), shape) };
        let buf = kernel.bufs.push(buf);
        let place = |p: Option<Ix>, i: Ix, j: Ix| p.into_iter().chain([i, j]).collect::<Vec<Ix>>();

        let (i, j, each) = (Ix::Axis(self.i.axis), Ix::Axis(self.j.axis), Ix::Const(part as i64));
        let idx = match parts {
            1 => place(None, i, j),
            _ => place(Some(Ix::floor_div(j.clone(), each.clone())), i, Ix::modulo(j, each.clone())),
        };
        let mut inner = self.j.clone();
        inner.body.pop();
        inner.body.push(Stmt::Write { buf, idx, value: self.value });
        let mut outer = self.i.clone();
        outer.body.pop();
        outer.body.push(Stmt::For(Box::new(inner)));

        let [r, c] = [self.i.axis, self.j.axis].map(|axis| new_axis(kernel, axis, ""));
        let p = (parts > 1).then(|| new_axis(kernel, self.j.axis, "p"));
        let own = p.map(Ix::Axis);
        let col = own.clone().map_or(Ix::Axis(c), |p| Ix::add(Ix::mul(p, each), Ix::Axis(c)));
        let by = BTreeMap::from([(self.i.axis, Ix::Axis(r)), (self.j.axis, col)]);
        let ty = Ty::Num(elem);
        let value = kernel.vals.push(Val { ty, name: kernel.vals[self.mem.base].name.clone() });
        let store = Stmt::Store {
            mem: self.mem.clone(),
            value: Opnd::Val(value),
            mask: self.mask.clone(),
            order: Order::Weak,
            site: self.site,
        };
        let mut copy = edit::place_axes(&[store], &by, &BTreeMap::new());
        copy.insert(0, Stmt::Read { dst: value, buf, idx: place(own, Ix::Axis(r), Ix::Axis(c)) });
        let loops = [Some((c, part)), Some((r, rows)), p.map(|p| (p, parts))];
        let copy =
            loops.into_iter().flatten().fold(copy, |body, (axis, n)| vec![free_loop(axis, Ix::Const(n as i64), body)]);
        [Stmt::Local { buf }, Stmt::For(Box::new(outer))].into_iter().chain(copy).collect()
    }
}

/// True if a buffer is the sum of a product that the matrix unit computes.
fn products(kernel: &Kernel, ctx: &Context, before: &[Stmt], acc: BufId) -> bool {
    let (mut found, mut all) = (false, true);
    walk::visit(before, &mut |s| {
        let Stmt::For(f) = s else { return };
        let Some(roles) = f.contraction.as_ref().filter(|c| c.acc == acc) else { return };
        let operands = f.body.iter().filter_map(|s| match s {
            Stmt::Read { buf, .. } if *buf != acc => Some(*buf),
            _ => None,
        });
        for buf in operands {
            found = true;
            all &= matrix::taken(kernel, ctx, buf, roles.acc).is_some();
        }
    });
    found && all && ctx.knobs.tensor_core
}

#[cfg(test)]
mod tests {
    use crate::tile::Context;
    use crate::tile::target::Target;
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const PRODUCT: &str = r#"tile kernel k(A: ptr f16 div 16, B: ptr f16 div 16, C: ptr f16 div 16, m: i32, n: i32 div 8):
  local acc: f32[64, 128]
  for i in 0..64: free
    for j in 0..128: free
      acc[i, j] = 0.0
  for kt in 0..8: serial
    stage a_s: f16[64, 64] shared tensor:
      for i1 in 0..64: free
        for k1 in 0..64: free
          a: f16 = load A[(bx*64 + i1)*512 + (kt*64 + k1)] where bx*64 + i1 < m and kt*64 + k1 < 512 else 0.0
          a_s[i1, k1] = a
    stage b_s: f16[64, 128] shared tensor:
      for k2 in 0..64: free
        for j2 in 0..128: free
          b: f16 = load B[(kt*64 + k2)*n + (by*128 + j2)] where kt*64 + k2 < 512 and by*128 + j2 < n else 0.0
          b_s[k2, j2] = b
    for i3 in 0..64: free
      for j3 in 0..128: free
        for k3 in 0..64: reduce contraction m=i3 n=j3 k=k3 a=x b=w acc=acc
          x: f16 = a_s[i3, k3]
          v: f32 = f32(x)
          w: f16 = b_s[k3, j3]
          v1: f32 = f32(w)
          s: f32 = acc[i3, j3]
          next: f32 = fma(v, v1, s)
          acc[i3, j3] = next
  for i4 in 0..64: free
    for j4 in 0..128: free
      o: f32 = acc[i4, j4]
      h: f16 = f16(o)
      store C[(bx*64 + i4)*n + (by*128 + j4)] = h where bx*64 + i4 < m and by*128 + j4 < n
"#;

    fn on(name: &str) -> Context {
        Context { target: Target::named(name).unwrap(), ..Context::default() }
    }

    #[test]
    fn tiles_go_back_as_boxes() {
        let (out, log) = apply("stage_outputs", &kernel(PRODUCT), &gpu(&[]));
        assert_eq!(log.applied, ["C: 64 x 128, 2 boxes by TMA"]);
        let (_, tail) = text(&out).split_once("  local C_s").map(|(a, b)| (a.to_string(), b.to_string())).unwrap();
        let want = r#": f16[2, 64, 64] shared swizzle(128)
  for i4 in 0..64: free
    for j4 in 0..128: free
      o: f32 = acc[i4, j4]
      h: f16 = f16(o)
      C_s[j4//64, i4, j4%64] = h
  for j4p in 0..2: free tensor
    for i4_1 in 0..64: free
      for j4_1 in 0..64: free
        C_1: f16 = C_s[j4p, i4_1, j4_1]
        store C[(bx*64 + i4_1)*n + (by*128 + j4p*64 + j4_1)] = C_1 where bx*64 + i4_1 < m and by*128 + j4p*64 + j4_1 < n
"#;
        assert_eq!(tail, want);
    }

    #[test]
    fn where_there_is_no_tma_all_threads_copy() {
        for (ctx, why) in [(on("sm_80"), "sm_80 has no TMA"), (gpu(&["tma=0"]), "a knob is off")] {
            let (out, log) = apply("stage_outputs", &kernel(PRODUCT), &ctx);
            assert_eq!(log.applied, [format!("C: 64 x 128, by all threads: {why}")]);
            let out = text(&out);
            assert!(out.contains("local C_s: f16[64, 128] shared\n") && !out.contains("free tensor"), "{out}");
        }
        let few = PRODUCT.replace("[64, 128]\n  for i in 0..64", "[4, 128]\n  for i in 0..4");
        let few = few
            .replace("[64, 64] shared tensor:\n      for i1 in 0..64", "[4, 64] shared tensor:\n      for i1 in 0..4");
        let few = few.replace("for i3 in 0..64", "for i3 in 0..4").replace("for i4 in 0..64", "for i4 in 0..4");
        let applied = apply("stage_outputs", &kernel(&few), &gpu(&[])).1.applied;
        let follow = "boxes of 512 bytes with a swizzle do not follow each other";
        assert_eq!(applied, [format!("C: 4 x 128, by all threads: {follow}")]);
        // Rows that begin anywhere, and an array that the kernel reads.
        let why = |program: &str| apply("stage_outputs", &kernel(program), &gpu(&[])).1.applied;
        let odd = PRODUCT.replace("n: i32 div 8", "n: i32");
        let unaligned = "its array or its rows are not known to begin at multiples of 16 bytes";
        assert_eq!(why(&odd), [format!("C: 64 x 128, by all threads: {unaligned}")]);
        let read = PRODUCT.replace(
            "      h: f16 = f16(o)\n",
            "      c: f16 = load C[(bx*64 + i4)*n + (by*128 + j4)]\n      d: f32 = f32(c)\n      e: f32 = o + d\n      h: f16 = f16(e)\n",
        );
        let other = "the kernel touches the array otherwise, which nothing orders with TMA";
        assert_eq!(why(&read), [format!("C: 64 x 128, by all threads: {other}")]);
    }

    #[test]
    fn what_is_stored_well_stays() {
        let wide = PRODUCT
            .replace("C: ptr f16", "C: ptr f32")
            .replace("      h: f16 = f16(o)\n", "")
            .replace("= h where", "= o where");
        assert_eq!(refusals("stage_outputs", &wide, &gpu(&[])), ["C: elements of 32 bits are stored as they are"]);
        assert_eq!(refusals("stage_outputs", PRODUCT, &gpu(&["stage_outputs=0"])), ["C: knob off"]);
        let down = PRODUCT.replace("(bx*64 + i4)*n + (by*128 + j4)]", "(by*128 + j4)*m + (bx*64 + i4)]");
        assert_eq!(refusals("stage_outputs", &down, &gpu(&[])), ["C: it is not stored along its rows"]);
        // Nothing is said of sums that no matrix unit computes.
        assert_eq!(refusals("stage_outputs", PRODUCT, &gpu(&["tensor_core=0"])), Vec::<String>::new());
    }
}
