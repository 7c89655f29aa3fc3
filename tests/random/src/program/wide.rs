//! Operations that front ends emit less often: several operands in one scan or reduction, scaled products, small formats,
//! rows chosen by data, tables of pointers, reductions in memory, assertions.

use super::{Maker, Val, elements, ty};
use girih_compiler::num::DType;

impl Maker {
    pub(super) fn wide(&mut self) {
        match self.rng.below(10) {
            0 => self.pair_scan(),
            1 => self.largest_with_index(),
            2 => self.scaled_product(),
            3 => self.small_format(),
            4 => self.bytes(),
            5 => self.insert(),
            6 => self.rows(),
            7 => self.pointer_table(),
            8 => self.reduce_into_view(),
            _ => self.assertion(),
        }
    }

    fn int_tile(&mut self) -> Option<Val> {
        self.find(|v| !v.shape.is_empty() && v.dtype.is_int() && v.dtype != DType::I1)
    }

    /// Two sums at a time; the second takes the first in.
    fn pair_scan(&mut self) {
        let Some(a) = self.int_tile() else { return };
        let b = self.like(&a);
        let (dim, reverse) = (self.rng.below(a.shape.len()), self.rng.chance(50));
        let (d, t, e) = (a.dtype, a.ty(), format!("tile<{}>", a.dtype));
        let (r, s) = (self.fresh(), self.fresh());
        self.line(format!(
            "{r}, {s} = scan {}, {} dim={dim} reverse={reverse} identities=[0 : {d}, 0 : {d}] : {t}, {t} -> {t}, {t} (%e: {e}, %c: {e}, %f: {e}, %g: {e}) {{",
            a.name, b.name
        ));
        self.line(format!("  %r = addi %e, %c : {e}"));
        self.line(format!("  %s = xori %f, %g : {e}"));
        self.line(format!("  yield %r, %s : {e}, {e}"));
        self.line("}".into());
        for name in [r, s] {
            self.pool.push(Val { name, small: false, ..a.clone() });
        }
    }

    /// The largest element and where it is, the first of several.
    fn largest_with_index(&mut self) {
        let Some(a) = self.int_tile() else { return };
        let (n, dim) = (elements(&a.shape), self.rng.below(a.shape.len()));
        let i32s = ty(&a.shape, "i32");
        let flat = self.hidden(&[n], DType::I32, format!("iota : {}", ty(&[n], "i32")));
        let at = self.hidden(&a.shape, DType::I32, format!("reshape {} : {} -> {i32s}", flat.name, flat.ty()));
        let mut shape = a.shape.clone();
        shape.remove(dim);
        let (d, e, i) = (a.dtype, format!("tile<{}>", a.dtype), "tile<i32>");
        let low = format!("{:#x}", 1u64 << (d.bits() - 1));
        let (most, place) = (self.fresh(), self.fresh());
        self.line(format!(
            "{most}, {place} = reduce {}, {} dim={dim} identities=[{low} : {d}, 0 : i32] : {}, {i32s} -> {}, {} (%e: {e}, %c: {e}, %f: {i}, %g: {i}) {{",
            a.name,
            at.name,
            a.ty(),
            ty(&shape, d.name()),
            ty(&shape, "i32")
        ));
        for line in [
            format!("%gt = cmpi greater_than %e, %c, signed : {e} -> tile<i1>"),
            format!("%eq = cmpi equal %e, %c, signed : {e} -> tile<i1>"),
            format!("%lt = cmpi less_than %f, %g, signed : {i} -> tile<i1>"),
            "%tie = andi %eq, %lt : tile<i1>".to_string(),
            "%take = ori %gt, %tie : tile<i1>".to_string(),
            format!("%r = select %take, %e, %c : tile<i1>, {e}"),
            format!("%s = select %take, %f, %g : tile<i1>, {i}"),
            format!("yield %r, %s : {e}, {i}"),
        ] {
            self.line(format!("  {line}"));
        }
        self.line("}".into());
        self.pool.push(Val { name: most, shape: shape.clone(), dtype: d, small: false });
        self.pool.push(Val { name: place, shape, dtype: DType::I32, small: false });
    }

    fn loaded(&mut self, dtype: DType, shape: &[u64]) -> Val {
        let tiles = self.blocks();
        self.view_input(dtype, shape, "%lin", tiles);
        self.pool[self.pool.len() - 1].clone()
    }

    /// Rows of 8-bit floats with a power of two for every 32 of them.
    fn scaled_product(&mut self) {
        let (m, n, blocks) = (1 << self.rng.range(0, 4), 1 << self.rng.range(0, 4), 1 << self.rng.range(0, 1));
        let k = blocks * 32;
        let dtype = *self.rng.pick(&[DType::F8E4M3FN, DType::F8E5M2]);
        let (a, b) = (self.loaded(dtype, &[m, k]), self.loaded(dtype, &[k, n]));
        let scale = |l: &mut Maker, shape: [u64; 2]| {
            let value = *l.rng.pick(&["0.25", "1.0", "8.0"]);
            let t = ty(&shape, "f8E8M0FNU");
            l.hidden(&shape, DType::F8E8M0FNU, format!("constant <f8E8M0FNU: {value}> : {t}"))
        };
        let (sa, sb) = (scale(self, [m, blocks]), scale(self, [blocks, n]));
        let acc = self.constant(&[m, n], DType::F32);
        let text = format!(
            "mmaf_scaled {}, {}, {}, {}, {} : {}, {}, {}, {}, {}",
            a.name,
            b.name,
            acc.name,
            sa.name,
            sb.name,
            a.ty(),
            b.ty(),
            acc.ty(),
            sa.ty(),
            sb.ty()
        );
        self.def(&[m, n], DType::F32, false, text);
    }

    /// To a small format and back.
    fn small_format(&mut self) {
        let Some(a) = self.find(|v| v.dtype.is_base_float()) else { return };
        let small = *self.rng.pick(&[DType::F8E4M3FN, DType::F8E5M2, DType::F4E2M1FN, DType::F8E8M0FNU]);
        let rounding = match small {
            DType::F8E8M0FNU => *self.rng.pick(&[" rounding<zero>", " rounding<positive_inf>"]),
            // Two of them share a byte.
            DType::F4E2M1FN if elements(&a.shape) < 2 => return,
            _ => "",
        };
        let (t, s) = (a.ty(), ty(&a.shape, small.name()));
        let b = self.hidden(&a.shape, small, format!("ftof {}{rounding} : {t} -> {s}", a.name));
        let to = *self.rng.pick(&[DType::F32, DType::F16, DType::F64]);
        let back = ty(&a.shape, to.name());
        self.def(&a.shape, to, false, format!("ftof {} : {s} -> {back}", b.name));
    }

    /// A row as bytes and as elements of another width.
    fn bytes(&mut self) {
        let whole = |d: DType| matches!(d.bits(), 16 | 32 | 64);
        let Some(a) = self.find(|v| v.shape.len() == 1 && whole(v.dtype) && v.shape[0] <= 64) else { return };
        let n = a.shape[0] * a.dtype.bytes();
        let packed = self.def(&[n], DType::I8, false, format!("pack {} : {} -> {}", a.name, a.ty(), ty(&[n], "i8")));
        let to = *self.rng.pick(&[DType::I16, DType::I32]);
        if n % to.bytes() == 0 {
            let shape = [n / to.bytes()];
            let text = format!("unpack {} : {} -> {}", packed.name, packed.ty(), ty(&shape, to.name()));
            self.def(&shape, to, false, text);
        }
    }

    fn insert(&mut self) {
        let Some(a) = self.find(|v| v.shape.iter().any(|&n| n > 1)) else { return };
        let Some(dim) = a.shape.iter().position(|&n| n > 1) else { return };
        let mut shape = a.shape.clone();
        shape[dim] /= 2;
        let part = match self.find(|v| v.shape == shape && v.dtype == a.dtype) {
            Some(v) => v,
            None if a.dtype.is_base_float() || a.dtype.is_int() => self.constant(&shape, a.dtype),
            None => return,
        };
        let at = *self.rng.pick(&["%i0", "%i1"]);
        let index: Vec<&str> = (0..shape.len()).map(|d| if d == dim { at } else { "%i0" }).collect();
        let text = format!("insert {}, {}[{}] : {}, {}", part.name, a.name, index.join(", "), part.ty(), a.ty());
        self.def(&a.shape, a.dtype, false, text);
    }

    /// Rows of a matrix chosen by data, read through a view and stored in another order.
    fn rows(&mut self) {
        let dtype = *self.rng.pick(&[DType::F32, DType::I32, DType::F16, DType::I8, DType::F64]);
        let (rows, columns) = (1u64 << self.rng.range(0, 4), 1u64 << self.rng.range(0, 4));
        let (height, width) = (32, self.rng.range(1, columns as i64) as u64);
        let source = self.buffer(dtype, height * width, false);
        let picked = self.loaded(DType::I32, &[rows]);
        let last = self.hidden(&[rows], DType::I32, format!("constant <i32: 63> : {}", picked.ty()));
        // Some rows lie past the end and are padding.
        let at = self.hidden(&[rows], DType::I32, format!("andi {}, {} : {}", picked.name, last.name, picked.ty()));
        let tensor = format!("tensor_view<{height}x{width}x{dtype}, strides=[{width},1]>");
        let view = |m: &mut Maker, name: &str, tensor: &str, make: &str| {
            let padding = if m.rng.chance(50) { "zero" } else { "neg_zero" };
            let padding = if dtype.is_float() { padding } else { "zero" };
            let vt = format!(
                "gather_scatter_view<tile=({rows}x{columns}), padding_value = {padding}, {tensor}, sparse_dim=0>"
            );
            let (tv, v) = (m.fresh(), m.fresh());
            m.line(format!("{tv} = make_tensor_view %{name}, {make} : {tensor}"));
            m.line(format!("{v} = make_gather_scatter_view {tv} : {vt}"));
            (v, vt)
        };
        let make = format!("shape = [{height}, {width}], strides = [{width}, 1]");
        let (v, vt) = view(self, &source, &tensor, &make);
        let (x, t, tile) = (self.fresh(), self.fresh(), ty(&[rows, columns], dtype.name()));
        let index = format!("[{}, %i0] : {vt}, {}, tile<i32>", at.name, at.ty());
        self.line(format!("{x}, {t} = load_view_tko weak {v}{index} -> {tile}, token"));
        self.pool.push(Val { name: x.clone(), shape: vec![rows, columns], dtype, small: false });
        if self.nested == 0 && self.rng.chance(50) {
            // Every block writes rows of its own, in reverse.
            let target = self.buffer(dtype, rows * self.blocks() * columns, true);
            let total = rows * self.blocks();
            let tensor = format!("tensor_view<{total}x{columns}x{dtype}, strides=[{columns},1]>");
            let make = format!("shape = [{total}, {columns}], strides = [{columns}, 1]");
            let (v, vt) = view(self, &target, &tensor, &make);
            let it = ty(&[rows], "i32");
            let lane = self.hidden(&[rows], DType::I32, format!("iota : {it}"));
            let size = self.hidden(&[], DType::I32, format!("constant <i32: {rows}> : tile<i32>"));
            let end = self.hidden(&[], DType::I32, format!("muli %lin, {} : tile<i32>", size.name));
            let most = self.hidden(&[], DType::I32, format!("constant <i32: {}> : tile<i32>", rows - 1));
            let top = self.hidden(&[], DType::I32, format!("addi {}, {} : tile<i32>", end.name, most.name));
            let one = self.hidden(&[1], DType::I32, format!("reshape {} : tile<i32> -> tile<1xi32>", top.name));
            let all = self.hidden(&[rows], DType::I32, format!("broadcast {} : tile<1xi32> -> {it}", one.name));
            let at = self.hidden(&[rows], DType::I32, format!("subi {}, {} : {it}", all.name, lane.name));
            let token = self.fresh();
            self.line(format!(
                "{token} = store_view_tko weak {x}, {v}[{}, %i0] : {tile}, {vt}, {it}, tile<i32> -> token",
                at.name
            ));
        }
    }

    /// Two buffers by their addresses in memory, one chosen by the block.
    fn pointer_table(&mut self) {
        let dtype = *self.rng.pick(&[DType::F32, DType::I32, DType::I8, DType::F16]);
        let shape = self.shape();
        let n = elements(&shape);
        let buffers = [self.buffer(dtype, n, false), self.buffer(dtype, n, false)];
        let (pointer, i64p) = (format!("tile<ptr<{dtype}>>"), "tile<ptr<i64>>");
        let table = self.fresh();
        self.line(format!("{table} = alloca num_elem = 2, alignment = 8 : {i64p}"));
        let mut token = String::new();
        for (buffer, at) in buffers.iter().zip(["%i0", "%i1"]) {
            let [word, place, done] = std::array::from_fn(|_| self.fresh());
            self.line(format!("{word} = ptr_to_int %{buffer} : {pointer} -> tile<i64>"));
            self.line(format!("{place} = offset {table}, {at} : {i64p}, tile<i32> -> {i64p}"));
            let after = if token.is_empty() { String::new() } else { format!(" token={token}") };
            self.line(format!("{done} = store_ptr_tko weak {place}, {word}{after} : {i64p}, tile<i64> -> token"));
            token = done;
        }
        let [odd, place, word, read, base, tv, v, x, t] = std::array::from_fn(|_| self.fresh());
        self.line(format!("{odd} = andi %lin, %i1 : tile<i32>"));
        self.line(format!("{place} = offset {table}, {odd} : {i64p}, tile<i32> -> {i64p}"));
        self.line(format!("{word}, {read} = load_ptr_tko weak {place} token={token} : {i64p} -> tile<i64>, token"));
        self.line(format!("{base} = int_to_ptr {word} : tile<i64> -> {pointer}"));
        let list = |by: &str| shape.iter().map(u64::to_string).collect::<Vec<_>>().join(by);
        let mut strides = vec![1u64; shape.len()];
        for d in (0..shape.len().saturating_sub(1)).rev() {
            strides[d] = strides[d + 1] * shape[d + 1];
        }
        let steps = |by: &str| strides.iter().map(u64::to_string).collect::<Vec<_>>().join(by);
        let tensor = format!("tensor_view<{}x{dtype}, strides=[{}]>", list("x"), steps(","));
        let vt = format!("partition_view<tile=({}), padding_value = zero, {tensor}>", list("x"));
        self.line(format!(
            "{tv} = make_tensor_view {base}, shape = [{}], strides = [{}] : {tensor}",
            list(", "),
            steps(", ")
        ));
        self.line(format!("{v} = make_partition_view {tv} : {vt}"));
        let index = self.index(shape.len(), "%i0");
        let tile = ty(&shape, dtype.name());
        self.line(format!("{x}, {t} = load_view_tko weak {v}[{index}] : {vt}, tile<i32> -> {tile}, token"));
        self.pool.push(Val { name: x, shape, dtype, small: false });
    }

    /// Every block adds to the same tile; the order does not show.
    fn reduce_into_view(&mut self) {
        if self.nested > 0 {
            return;
        }
        let Some(a) = self.find(|v| matches!(v.dtype, DType::I32 | DType::I64) && !v.shape.is_empty()) else { return };
        let dims = self.extents(&a.shape, 1);
        let name = self.buffer(a.dtype, elements(&dims), true);
        let (view, vt) = self.partition(&name, a.dtype, &a.shape, &dims, None);
        let index = self.index(a.shape.len(), "%i0");
        let mode = *self.rng.pick(&["add", "max", "umin", "xor", "and"]);
        let token = self.fresh();
        self.line(format!(
            "{token} = atomic_red_view_tko relaxed device {view}[{index}], {mode}, {} : {}, {vt}, tile<i32> -> token",
            a.name,
            a.ty()
        ));
    }

    /// One that holds: an integer is itself.
    fn assertion(&mut self) {
        let Some(a) = self.int_tile() else { return };
        let i1 = ty(&a.shape, "i1");
        let b = self.hidden(&a.shape, a.dtype, format!("negi {} : {}", a.name, a.ty()));
        let c = self.hidden(&a.shape, a.dtype, format!("negi {} : {}", b.name, a.ty()));
        let text = format!("cmpi equal {}, {}, signed : {} -> {i1}", a.name, c.name, a.ty());
        let same = self.hidden(&a.shape, DType::I1, text);
        self.line(format!("assert {}, \"the same\" : {i1}", same.name));
    }
}
