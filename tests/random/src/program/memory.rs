//! Where values come from and go to: parameters, views of every kind, pointers, masks.

use super::{INPUTS, Maker, Param, Shape, Val, elements, ty};
use crate::rng::Rng;
use girih_compiler::num::DType;

impl Maker {
    pub(super) fn input(&mut self) {
        let dtype = *self.rng.pick(INPUTS);
        let shape = self.shape();
        match self.rng.below(10) {
            0..5 => self.view_input(dtype, &shape, "%lin", self.blocks()),
            5..8 => self.pointer_input(dtype, &shape),
            8 => self.strided_input(dtype, &shape),
            _ => self.gather(dtype, &shape),
        }
    }

    pub(super) fn buffer(&mut self, dtype: DType, len: u64, output: bool) -> String {
        let name = format!("{}{}", if output { "out" } else { "in" }, self.params.len());
        let seed = self.rng.next();
        self.params.push(Param::Buffer { name: name.clone(), dtype, len: len.max(1) as usize, seed, output });
        name
    }

    /// The tensor of a view over `tiles` tiles of `shape` along dimension 0, edges partial at random: its extents.
    pub(super) fn extents(&mut self, shape: &[u64], tiles: u64) -> Vec<u64> {
        let partial = |rng: &mut Rng, t: u64| if rng.chance(50) { t } else { rng.range(1, t as i64) as u64 };
        let mut dims: Vec<u64> = shape.iter().map(|&t| partial(&mut self.rng, t)).collect();
        dims[0] += (tiles - 1) * shape[0];
        dims
    }

    /// Declares a tensor view and a partition view over it; returns the view's name and type, and the buffer's length.
    pub(super) fn partition(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[u64],
        dims: &[u64],
        padding: Option<&str>,
    ) -> (String, String) {
        let rank = shape.len();
        let swap = rank == 2 && self.rng.chance(25);
        let dims: Vec<u64> = if swap { vec![dims[1], dims[0]] } else { dims.to_vec() };
        let mut strides = vec![1u64; rank];
        for d in (0..rank - 1).rev() {
            strides[d] = strides[d + 1] * dims[d + 1];
        }
        let (mut shape_args, mut stride_args, mut shape_ty, mut stride_ty, mut dynamic) =
            (vec![], vec![], vec![], vec![], false);
        for d in 0..rank {
            let mut one = |value: u64, args: &mut Vec<String>, types: &mut Vec<String>, may: bool| {
                if may && self.rng.chance(40) {
                    let p = format!("n{}", self.params.len());
                    self.params.push(Param::Int { name: p.clone(), value: value as i32 });
                    args.push(format!("%{p}"));
                    types.push("?".into());
                    dynamic = true;
                } else {
                    args.push(value.to_string());
                    types.push(value.to_string());
                }
            };
            one(dims[d], &mut shape_args, &mut shape_ty, true);
            one(strides[d], &mut stride_args, &mut stride_ty, d + 1 < rank);
        }
        let tensor = format!("tensor_view<{}x{dtype}, strides=[{}]>", shape_ty.join("x"), stride_ty.join(","));
        let tv = self.fresh();
        let index = if dynamic { "tile<i32> -> " } else { "" };
        self.line(format!(
            "{tv} = make_tensor_view %{name}, shape = [{}], strides = [{}] : {index}{tensor}",
            shape_args.join(", "),
            stride_args.join(", ")
        ));
        let tile = shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x");
        let pad = padding.map(|p| format!("padding_value = {p}, ")).unwrap_or_default();
        let map = if swap { ", dim_map=[1, 0]" } else { "" };
        let view_ty = format!("partition_view<tile=({tile}), {pad}{tensor}{map}>");
        let view = self.fresh();
        self.line(format!("{view} = make_partition_view {tv} : {view_ty}"));
        (view, view_ty)
    }

    pub(super) fn index(&self, rank: usize, first: &str) -> String {
        std::iter::once(first).chain(std::iter::repeat_n("%i0", rank - 1)).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn view_input(&mut self, dtype: DType, shape: &[u64], first: &str, tiles: u64) {
        let dims = self.extents(shape, tiles);
        let name = self.buffer(dtype, elements(&dims), false);
        let padding = if dtype.is_base_float() && self.rng.chance(30) {
            *self.rng.pick(&["nan", "pos_inf", "neg_inf", "neg_zero"])
        } else {
            "zero"
        };
        let (view, view_ty) = self.partition(&name, dtype, shape, &dims, Some(padding));
        let index = self.index(shape.len(), first);
        let (v, t) = (self.fresh(), self.fresh());
        let tile = ty(shape, dtype.name());
        self.line(format!("{v}, {t} = load_view_tko weak {view}[{index}] : {view_ty}, tile<i32> -> {tile}, token"));
        self.pool.push(Val { name: v, shape: shape.to_vec(), dtype, small: false });
    }

    /// A view whose tiles overlap or leave gaps.
    pub(super) fn strided_input(&mut self, dtype: DType, shape: &[u64]) {
        let rank = shape.len();
        let steps: Vec<u64> = shape.iter().map(|&t| self.rng.range(1, 2 * t as i64) as u64).collect();
        let mut dims: Vec<u64> = shape.iter().map(|&t| self.rng.range(1, t as i64) as u64).collect();
        dims[0] += (self.blocks() - 1) * steps[0];
        let name = self.buffer(dtype, elements(&dims), false);
        let mut strides = vec![1u64; rank];
        for d in (0..rank - 1).rev() {
            strides[d] = strides[d + 1] * dims[d + 1];
        }
        let list = |v: &[u64], by: &str| v.iter().map(u64::to_string).collect::<Vec<_>>().join(by);
        let tensor = format!("tensor_view<{}x{dtype}, strides=[{}]>", list(&dims, "x"), list(&strides, ","));
        let tv = self.fresh();
        self.line(format!(
            "{tv} = make_tensor_view %{name}, shape = [{}], strides = [{}] : {tensor}",
            list(&dims, ", "),
            list(&strides, ", ")
        ));
        let view_ty = format!(
            "strided_view<tile=({}), traversal_strides=[{}], padding_value = zero, {tensor}>",
            list(shape, "x"),
            list(&steps, ",")
        );
        let (view, v, t) = (self.fresh(), self.fresh(), self.fresh());
        self.line(format!("{view} = make_strided_view {tv} : {view_ty}"));
        let (index, tile) = (self.index(rank, "%lin"), ty(shape, dtype.name()));
        self.line(format!("{v}, {t} = load_view_tko weak {view}[{index}] : {view_ty}, tile<i32> -> {tile}, token"));
        self.pool.push(Val { name: v, shape: shape.to_vec(), dtype, small: false });
    }

    /// Loads through pointers whose offsets come from data.
    pub(super) fn gather(&mut self, dtype: DType, shape: &[u64]) {
        let len = 64;
        let name = self.buffer(dtype, len, false);
        let index = match self.find(|v| v.shape == shape && v.dtype == DType::I32) {
            Some(v) => v,
            None => {
                self.view_input(DType::I32, shape, "%lin", self.blocks());
                self.pool[self.pool.len() - 1].clone()
            }
        };
        let last = self.hidden(shape, DType::I32, format!("constant <i32: {}> : {}", len - 1, index.ty()));
        let safe = self.hidden(shape, DType::I32, format!("andi {}, {} : {}", index.name, last.name, index.ty()));
        let ones: Shape = vec![1; shape.len()];
        let ptr = format!("ptr<{dtype}>");
        let p1 = self.hidden(&ones, dtype, format!("reshape %{name} : {} -> {}", ty(&[], &ptr), ty(&ones, &ptr)));
        let pn =
            self.hidden(shape, dtype, format!("broadcast {} : {} -> {}", p1.name, ty(&ones, &ptr), ty(shape, &ptr)));
        let (pt, vt) = (ty(shape, &ptr), ty(shape, dtype.name()));
        let p = self.hidden(shape, dtype, format!("offset {}, {} : {pt}, {} -> {pt}", pn.name, safe.name, safe.ty()));
        let (v, t) = (self.fresh(), self.fresh());
        self.line(format!("{v}, {t} = load_ptr_tko weak {} : {pt} -> {vt}, token", p.name));
        self.pool.push(Val { name: v, shape: shape.to_vec(), dtype, small: false });
    }

    /// A loop that carries a tile of pointers and moves it on each trip, and a sum of what it reads.
    pub(super) fn advancing(&mut self) {
        let dtype = *self.rng.pick(&[DType::I32, DType::F32, DType::F16]);
        let shape = self.shape();
        let (n, trips) = (elements(&shape), self.rng.range(1, 3) as u64);
        // Room for every block's start and every trip.
        let name = self.buffer(dtype, n * (self.blocks() + trips), false);
        let p = self.pointers(&name, dtype, &shape);
        let (pt, vt) = (ty(&shape, &format!("ptr<{dtype}>")), ty(&shape, dtype.name()));
        let init = self.constant(&shape, dtype);
        let step = self.hidden(&shape, DType::I32, format!("constant <i32: {n}> : {}", ty(&shape, "i32")));
        let bound = self.hidden(&[], DType::I32, format!("constant <i32: {trips}> : tile<i32>"));
        let [sum, end, iv, acc, at, v, t, next, moved] = std::array::from_fn(|_| self.fresh());
        self.line(format!(
            "{sum}, {end} = for {iv} in (%i0 to {}, step %i1) : tile<i32> iter_values({acc} = {}, {at} = {}) -> ({vt}, {pt}) {{",
            bound.name, init.name, p.name
        ));
        let add = if dtype.is_float() { "addf" } else { "addi" };
        self.line(format!("  {v}, {t} = load_ptr_tko weak {at} : {pt} -> {vt}, token"));
        self.line(format!("  {next} = {add} {acc}, {v} : {vt}"));
        self.line(format!("  {moved} = offset {at}, {} : {pt}, {} -> {pt}", step.name, step.ty()));
        self.line(format!("  continue {next}, {moved} : {vt}, {pt}"));
        self.line("}".into());
        self.pool.push(Val { name: sum, shape, dtype, small: false });
    }

    /// `base + lin * n + 0..n` as a tile of pointers of the shape.
    pub(super) fn pointers(&mut self, name: &str, dtype: DType, shape: &[u64]) -> Val {
        let n = elements(shape);
        let ones: Shape = vec![1; shape.len()];
        let flat = self.hidden(&[n], DType::I32, format!("iota : {}", ty(&[n], "i32")));
        let lane =
            self.hidden(shape, DType::I32, format!("reshape {} : {} -> {}", flat.name, flat.ty(), ty(shape, "i32")));
        let size = self.hidden(&[], DType::I32, format!("constant <i32: {n}> : tile<i32>"));
        let start = self.hidden(&[], DType::I32, format!("muli %lin, {} : tile<i32>", size.name));
        let start1 =
            self.hidden(&ones, DType::I32, format!("reshape {} : tile<i32> -> {}", start.name, ty(&ones, "i32")));
        let startn = self.hidden(
            shape,
            DType::I32,
            format!("broadcast {} : {} -> {}", start1.name, start1.ty(), ty(shape, "i32")),
        );
        let index = self.hidden(shape, DType::I32, format!("addi {}, {} : {}", startn.name, lane.name, lane.ty()));
        let ptr = format!("ptr<{dtype}>");
        let p1 = self.hidden(&ones, dtype, format!("reshape %{name} : {} -> {}", ty(&[], &ptr), ty(&ones, &ptr)));
        let pn =
            self.hidden(shape, dtype, format!("broadcast {} : {} -> {}", p1.name, ty(&ones, &ptr), ty(shape, &ptr)));
        self.hidden(
            shape,
            dtype,
            format!("offset {}, {} : {}, {} -> {}", pn.name, index.name, ty(shape, &ptr), index.ty(), ty(shape, &ptr)),
        )
    }

    /// A mask: `lane < limit`, or a random i1 tile of the pool.
    pub(super) fn mask(&mut self, shape: &[u64]) -> Val {
        if let Some(v) = self.find(|v| v.shape == shape && v.dtype == DType::I1) {
            return v;
        }
        let n = elements(shape);
        let flat = self.hidden(&[n], DType::I32, format!("iota : {}", ty(&[n], "i32")));
        let lane =
            self.hidden(shape, DType::I32, format!("reshape {} : {} -> {}", flat.name, flat.ty(), ty(shape, "i32")));
        let limit = self.rng.range(0, n as i64);
        let bound = self.hidden(shape, DType::I32, format!("constant <i32: {limit}> : {}", ty(shape, "i32")));
        let pred = *self.rng.pick(&["less_than", "greater_than_or_equal", "not_equal"]);
        self.hidden(
            shape,
            DType::I1,
            format!("cmpi {pred} {}, {}, signed : {} -> {}", lane.name, bound.name, lane.ty(), ty(shape, "i1")),
        )
    }

    pub(super) fn pointer_input(&mut self, dtype: DType, shape: &[u64]) {
        let name = self.buffer(dtype, elements(shape) * self.blocks(), false);
        let p = self.pointers(&name, dtype, shape);
        let (pt, vt) = (ty(shape, &format!("ptr<{dtype}>")), ty(shape, dtype.name()));
        let (v, t) = (self.fresh(), self.fresh());
        if self.rng.chance(50) && (dtype.is_base_float() || dtype.is_int()) {
            let mask = self.mask(shape);
            let pad = self.constant(shape, dtype);
            self.line(format!(
                "{v}, {t} = load_ptr_tko weak {}, {}, {} : {pt}, {}, {vt} -> {vt}, token",
                p.name,
                mask.name,
                pad.name,
                mask.ty()
            ));
        } else {
            self.line(format!("{v}, {t} = load_ptr_tko weak {} : {pt} -> {vt}, token", p.name));
        }
        self.pool.push(Val { name: v, shape: shape.to_vec(), dtype, small: false });
    }

    pub(super) fn output(&mut self) {
        let mut v = self.any();
        if v.shape.is_empty() {
            v = self.def(
                &[1],
                v.dtype,
                v.small,
                format!("reshape {} : {} -> {}", v.name, v.ty(), ty(&[1], v.dtype.name())),
            );
        }
        let token = self.fresh();
        if self.rng.chance(60) {
            let tiles = self.blocks();
            let dims = self.extents(&v.shape, tiles);
            let name = self.buffer(v.dtype, elements(&dims), true);
            let in_place = self.rng.chance(30) && (v.dtype.is_base_float() || v.dtype.is_int());
            let (view, view_ty) = self.partition(&name, v.dtype, &v.shape, &dims, in_place.then_some("zero"));
            let index = self.index(v.shape.len(), "%lin");
            if in_place {
                let (old, t, tile) = (self.fresh(), self.fresh(), v.ty());
                self.line(format!(
                    "{old}, {t} = load_view_tko weak {view}[{index}] : {view_ty}, tile<i32> -> {tile}, token"
                ));
                let op = if v.dtype.is_float() { "mulf" } else { "xori" };
                v = self.def(&v.shape.clone(), v.dtype, false, format!("{op} {old}, {} : {tile}", v.name));
                self.line(format!(
                    "{token} = store_view_tko weak {}, {view}[{index}] token = {t} : {tile}, {view_ty}, tile<i32> -> token",
                    v.name
                ));
                return;
            }
            self.line(format!(
                "{token} = store_view_tko weak {}, {view}[{index}] : {}, {view_ty}, tile<i32> -> token",
                v.name,
                v.ty()
            ));
        } else {
            let name = self.buffer(v.dtype, elements(&v.shape) * self.blocks(), true);
            let p = self.pointers(&name, v.dtype, &v.shape);
            let pt = ty(&v.shape, &format!("ptr<{}>", v.dtype));
            if matches!(v.dtype, DType::I32 | DType::I64) && self.rng.chance(30) {
                let (old, mode) = (self.fresh(), *self.rng.pick(&["add", "max", "umin", "xor", "xchg"]));
                let mask = self.mask(&v.shape);
                self.line(format!(
                    "{old}, {token} = atomic_rmw_tko relaxed device {}, {mode}, {}, {} : {pt}, {}, {} -> {}, token",
                    p.name,
                    v.name,
                    mask.name,
                    v.ty(),
                    mask.ty(),
                    v.ty()
                ));
            } else if self.rng.chance(40) {
                let mask = self.mask(&v.shape);
                self.line(format!(
                    "{token} = store_ptr_tko weak {}, {}, {} : {pt}, {}, {} -> token",
                    p.name,
                    v.name,
                    mask.name,
                    v.ty(),
                    mask.ty()
                ));
            } else {
                self.line(format!("{token} = store_ptr_tko weak {}, {} : {pt}, {} -> token", p.name, v.name, v.ty()));
            }
        }
    }
}
