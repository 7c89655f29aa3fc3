//! Makes a random valid tile program: typed values grow in a pool, a few are stored at the end.
//!
//! Every statement stands on one line and every region on lines of its own, so that a failing program can be shrunk by
//! dropping lines. What the specification leaves undefined is avoided (divisors are made odd, shifts are masked, floats are
//! clamped before they become integers, edge tiles have padding); float sums are over small integers, so that every order
//! of addition gives the same bits.

use crate::rng::Rng;
use girih_compiler::num::DType;

/// A parameter of the program and what it is launched with.
#[derive(Clone, Debug)]
pub enum Param {
    Buffer { name: String, dtype: DType, len: usize, seed: u64, output: bool },
    Int { name: String, value: i32 },
}

#[derive(Clone, Debug)]
pub struct Program {
    pub text: String,
    pub grid: [u32; 3],
    pub params: Vec<Param>,
}

impl Program {
    /// The launch as a comment that `girih run` reads, with data of the same types and sizes.
    pub fn launch_line(&self) -> String {
        let mut line = format!("// launch: grid={},{},{}", self.grid[0], self.grid[1], self.grid[2]);
        for param in &self.params {
            line += &match param {
                Param::Buffer { name, dtype, len, .. } => {
                    let fill = if dtype.is_float() { "randn" } else { "rand" };
                    format!(" {name}={fill}:{dtype}[{len}]")
                }
                Param::Int { name, value } => format!(" {name}=i32:{value}"),
            };
        }
        line
    }
}

type Shape = Vec<u64>;

#[derive(Clone)]
struct Val {
    name: String,
    shape: Shape,
    dtype: DType,
    /// A float that is a small integer: sums of it are exact in any order.
    small: bool,
}

struct Maker {
    rng: Rng,
    lines: Vec<String>,
    depth: usize,
    pool: Vec<Val>,
    next: usize,
    params: Vec<Param>,
    grid: [u32; 3],
    nested: usize,
}

/// The types of inputs, common ones more often.
const INPUTS: &[DType] = &[
    DType::F32,
    DType::F32,
    DType::F32,
    DType::F16,
    DType::F16,
    DType::BF16,
    DType::F64,
    DType::I32,
    DType::I32,
    DType::I8,
    DType::I16,
    DType::I64,
    DType::I1,
    DType::F8E4M3FN,
    DType::F8E5M2,
];
const INTS: &[DType] = &[DType::I8, DType::I16, DType::I32, DType::I64];
const FLOATS: &[DType] = &[DType::F16, DType::BF16, DType::F32, DType::F64];

/// The program of a seed, always the same.
pub fn make(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let grid = [rng.range(1, 3) as u32, rng.range(1, 2) as u32, 1];
    let mut m = Maker { rng, lines: vec![], depth: 2, pool: vec![], next: 0, params: vec![], grid, nested: 0 };
    m.prologue();
    for _ in 0..m.rng.range(1, 3) {
        m.input();
    }
    for _ in 0..m.rng.range(3, 18) {
        m.step();
    }
    for _ in 0..m.rng.range(1, 3) {
        m.output();
    }
    m.finish()
}

fn ty(shape: &[u64], elem: &str) -> String {
    let dims: String = shape.iter().map(|d| format!("{d}x")).collect();
    format!("tile<{dims}{elem}>")
}

fn elements(shape: &[u64]) -> u64 {
    shape.iter().product()
}

impl Val {
    fn ty(&self) -> String {
        ty(&self.shape, self.dtype.name())
    }
}

impl Maker {
    fn line(&mut self, text: String) {
        self.lines.push(format!("{}{text}", "  ".repeat(self.depth)));
    }

    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    /// Emits `name = text` and puts the value into the pool.
    fn def(&mut self, shape: &[u64], dtype: DType, small: bool, text: String) -> Val {
        let name = self.fresh();
        self.line(format!("{name} = {text}"));
        let val = Val { name, shape: shape.to_vec(), dtype, small };
        self.pool.push(val.clone());
        val
    }

    /// A value that later steps do not pick up.
    fn hidden(&mut self, shape: &[u64], dtype: DType, text: String) -> Val {
        let name = self.fresh();
        self.line(format!("{name} = {text}"));
        Val { name, shape: shape.to_vec(), dtype, small: false }
    }

    fn prologue(&mut self) {
        self.line("%bx, %by, %bz = get_tile_block_id : tile<i32>".into());
        self.line(format!("%gx = constant <i32: {}> : tile<i32>", self.grid[0]));
        self.line("%row = muli %by, %gx : tile<i32>".into());
        self.line("%lin = addi %row, %bx : tile<i32>".into());
        self.line("%i0 = constant <i32: 0> : tile<i32>".into());
        self.line("%i1 = constant <i32: 1> : tile<i32>".into());
        for (name, dtype) in [("%bx", DType::I32), ("%lin", DType::I32)] {
            self.pool.push(Val { name: name.into(), shape: vec![], dtype, small: false });
        }
    }

    fn shape(&mut self) -> Shape {
        let rank = *self.rng.pick(&[1, 1, 1, 2, 2, 2, 2, 3]);
        let most = [0, 8, 5, 3][rank];
        (0..rank).map(|_| 1 << self.rng.range(0, most)).collect()
    }

    fn constant(&mut self, shape: &[u64], dtype: DType) -> Val {
        let text = if dtype == DType::I1 {
            self.rng.pick(&["true", "false"]).to_string()
        } else if dtype.is_int() {
            let limit = if self.rng.chance(80) { 9 } else { (1i64 << (dtype.bits().min(40) - 1)) - 1 };
            self.rng.range(-limit, limit).to_string()
        } else {
            self.rng.pick(&["0.0", "1.0", "-1.0", "0.5", "-2.0", "3.25", "1.0e-3", "100.0"]).to_string()
        };
        self.def(shape, dtype, false, format!("constant <{}: {text}> : {}", dtype, ty(shape, dtype.name())))
    }

    /// The number of blocks; `%lin` counts them.
    fn blocks(&self) -> u64 {
        self.grid[0] as u64 * self.grid[1] as u64
    }

    fn input(&mut self) {
        let dtype = *self.rng.pick(INPUTS);
        let shape = self.shape();
        match self.rng.below(10) {
            0..5 => self.view_input(dtype, &shape, "%lin", self.blocks()),
            5..8 => self.pointer_input(dtype, &shape),
            8 => self.strided_input(dtype, &shape),
            _ => self.gather(dtype, &shape),
        }
    }

    fn buffer(&mut self, dtype: DType, len: u64, output: bool) -> String {
        let name = format!("{}{}", if output { "out" } else { "in" }, self.params.len());
        let seed = self.rng.next();
        self.params.push(Param::Buffer { name: name.clone(), dtype, len: len.max(1) as usize, seed, output });
        name
    }

    /// The tensor of a view over `tiles` tiles of `shape` along dimension 0, edges partial at random: its extents.
    fn extents(&mut self, shape: &[u64], tiles: u64) -> Vec<u64> {
        let partial = |rng: &mut Rng, t: u64| if rng.chance(50) { t } else { rng.range(1, t as i64) as u64 };
        let mut dims: Vec<u64> = shape.iter().map(|&t| partial(&mut self.rng, t)).collect();
        dims[0] += (tiles - 1) * shape[0];
        dims
    }

    /// Declares a tensor view and a partition view over it; returns the view's name and type, and the buffer's length.
    fn partition(
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

    fn index(&self, rank: usize, first: &str) -> String {
        std::iter::once(first).chain(std::iter::repeat_n("%i0", rank - 1)).collect::<Vec<_>>().join(", ")
    }

    fn view_input(&mut self, dtype: DType, shape: &[u64], first: &str, tiles: u64) {
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
    fn strided_input(&mut self, dtype: DType, shape: &[u64]) {
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
    fn gather(&mut self, dtype: DType, shape: &[u64]) {
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
    fn advancing(&mut self) {
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
    fn pointers(&mut self, name: &str, dtype: DType, shape: &[u64]) -> Val {
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
    fn mask(&mut self, shape: &[u64]) -> Val {
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

    fn pointer_input(&mut self, dtype: DType, shape: &[u64]) {
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

    fn find(&mut self, want: impl Fn(&Val) -> bool) -> Option<Val> {
        let found: Vec<&Val> = self.pool.iter().filter(|v| want(v)).collect();
        if found.is_empty() { None } else { Some((*self.rng.pick(&found)).clone()) }
    }

    fn any(&mut self) -> Val {
        let at = if self.rng.chance(60) {
            self.pool.len().saturating_sub(1 + self.rng.below(4))
        } else {
            self.rng.below(self.pool.len())
        };
        self.pool[at].clone()
    }

    /// Another value of the type, or a constant.
    fn like(&mut self, v: &Val) -> Val {
        let (shape, dtype) = (v.shape.clone(), v.dtype);
        match self.find(|o| o.shape == shape && o.dtype == dtype) {
            Some(o) if self.rng.chance(75) => o,
            _ if dtype.is_base_float() || dtype.is_int() => self.constant(&shape, dtype),
            _ => v.clone(),
        }
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..30 => self.elementwise(),
            30..40 => self.convert(),
            40..55 => self.reshaping(),
            55..63 => self.reduce(),
            63..66 => self.scan(),
            66..72 => self.contract(),
            72..78 => self.compare_select(),
            78..86 if self.nested < 2 => self.for_loop(),
            86..91 if self.nested < 2 => self.if_else(),
            91..93 if self.nested < 2 => self.counted_loop(),
            93..95 => self.input(),
            95..97 => self.advancing(),
            _ => {
                let (shape, dtype) = (self.shape(), *self.rng.pick(&[DType::F32, DType::I32, DType::F16, DType::I64]));
                self.constant(&shape, dtype);
            }
        }
    }

    fn elementwise(&mut self) {
        let a = self.any();
        let (t, shape, dtype) = (a.ty(), a.shape.clone(), a.dtype);
        if dtype.is_base_float() {
            let round =
                *self.rng.pick(&["", "", "", "rounding<zero> ", "rounding<positive_inf> ", "rounding<negative_inf> "]);
            let ftz = if dtype == DType::F32 && self.rng.chance(10) { "flush_to_zero " } else { "" };
            let text = match self.rng.below(22) {
                op @ 0..5 => {
                    let b = self.like(&a);
                    let name = ["addf", "subf", "mulf", "addf", "divf"][op];
                    format!("{name} {}, {} {round}{ftz}: {t}", a.name, b.name)
                }
                5 => {
                    let (b, c) = (self.like(&a), self.like(&a));
                    format!("fma {}, {}, {} {round}{ftz}: {t}", a.name, b.name, c.name)
                }
                op @ 6..8 => {
                    let b = self.like(&a);
                    let nan = if self.rng.chance(40) { "propagate_nan " } else { "" };
                    format!("{} {}, {} {ftz}{nan}: {t}", ["maxf", "minf"][op - 6], a.name, b.name)
                }
                op @ 8..12 => format!("{} {} : {t}", ["absf", "negf", "ceil", "floor"][op - 8], a.name),
                12 => format!("sqrt {} {round}{ftz}: {t}", a.name),
                op @ 13..21 => {
                    let name = ["exp", "exp2", "log", "log2", "sin", "cos", "tanh", "rsqrt"][op - 13];
                    format!("{name} {} : {t}", a.name)
                }
                _ => {
                    let b = self.like(&a);
                    format!("{} {}, {} : {t}", self.rng.pick(&["pow", "atan2", "remf"]), a.name, b.name)
                }
            };
            self.def(&shape, dtype, false, text);
        } else if dtype.is_int() {
            let sign = *self.rng.pick(&["signed", "unsigned"]);
            let b = self.like(&a);
            let one_bit = dtype == DType::I1;
            let text = match self.rng.below(14) {
                op @ 0..3 if !one_bit => format!("{} {}, {} : {t}", ["addi", "subi", "muli"][op], a.name, b.name),
                op @ 3..5 if !one_bit => format!("{} {}, {} {sign} : {t}", ["maxi", "mini"][op - 3], a.name, b.name),
                op @ 5..7 if !one_bit => {
                    // An odd divisor is not zero; -1 is left out by unsigned division, where it is only large.
                    let one = self.hidden(&shape, dtype, format!("constant <{dtype}: 1> : {t}"));
                    let odd = self.hidden(&shape, dtype, format!("ori {}, {} : {t}", b.name, one.name));
                    format!("{} {}, {} unsigned : {t}", ["divi", "remi"][op - 5], a.name, odd.name)
                }
                op @ 7..9 if !one_bit => {
                    let width = self.hidden(&shape, dtype, format!("constant <{dtype}: {}> : {t}", dtype.bits() - 1));
                    let amount = self.hidden(&shape, dtype, format!("andi {}, {} : {t}", b.name, width.name));
                    let suffix = if op == 7 { String::new() } else { format!("{sign} ") };
                    format!("{} {}, {} {suffix}: {t}", ["shli", "shri"][op - 7], a.name, amount.name)
                }
                9 if !one_bit => format!("negi {} : {t}", a.name),
                10 if !one_bit => format!("mulhii {}, {} : {t}", a.name, b.name),
                _ => format!("{} {}, {} : {t}", self.rng.pick(&["andi", "ori", "xori"]), a.name, b.name),
            };
            self.def(&shape, dtype, false, text);
        }
    }

    fn convert(&mut self) {
        let a = self.any();
        let (t, shape) = (a.ty(), a.shape.clone());
        let sign = *self.rng.pick(&["signed", "unsigned"]);
        if a.dtype.is_float() {
            if a.dtype.is_base_float() && self.rng.chance(35) {
                // Clamped, a float fits every integer type used here; NaN goes to a bound (max prefers the number).
                let to = *self.rng.pick(INTS);
                let clamp = |m: &mut Maker, op: &str, v: &Val, bound: &str| {
                    let c = m.hidden(&shape, a.dtype, format!("constant <{}: {bound}> : {t}", a.dtype));
                    m.hidden(&shape, a.dtype, format!("{op} {}, {} : {t}", v.name, c.name))
                };
                let low = clamp(self, "maxf", &a, if sign == "signed" { "-100.0" } else { "0.0" });
                let both = clamp(self, "minf", &low, "100.0");
                self.def(&shape, to, false, format!("ftoi {} {sign} : {t} -> {}", both.name, ty(&shape, to.name())));
            } else {
                let to = *self.rng.pick(FLOATS);
                if to != a.dtype {
                    self.def(&shape, to, a.small, format!("ftof {} : {t} -> {}", a.name, ty(&shape, to.name())));
                }
            }
            return;
        }
        match self.rng.below(3) {
            0 => {
                let to = *self.rng.pick(FLOATS);
                let text = format!("itof {} {sign} : {t} -> {}", a.name, ty(&shape, to.name()));
                self.def(&shape, to, a.dtype == DType::I1, text);
            }
            _ => {
                let to = *self.rng.pick(INTS);
                let text = match to.bits().cmp(&a.dtype.bits()) {
                    std::cmp::Ordering::Greater => format!("exti {} {sign} : {t} -> {}", a.name, ty(&shape, to.name())),
                    std::cmp::Ordering::Less => format!("trunci {} : {t} -> {}", a.name, ty(&shape, to.name())),
                    std::cmp::Ordering::Equal => return,
                };
                self.def(&shape, to, false, text);
            }
        }
    }

    fn reshaping(&mut self) {
        let a = self.any();
        let t = a.ty();
        let emit = |m: &mut Maker, shape: &[u64], text: String| {
            let text = format!("{text} : {t} -> {}", ty(shape, a.dtype.name()));
            m.def(shape, a.dtype, a.small, text);
        };
        match self.rng.below(6) {
            // reshape: move a factor of two from one dimension to another, or add and drop ones
            0 | 1 => {
                let mut shape = a.shape.clone();
                if shape.len() < 3 {
                    let at = self.rng.below(shape.len() + 1);
                    shape.insert(at, 1);
                }
                let (i, j) = (self.rng.below(shape.len()), self.rng.below(shape.len()));
                if i != j && shape[i] > 1 {
                    shape[i] /= 2;
                    shape[j] *= 2;
                }
                emit(self, &shape, format!("reshape {}", a.name));
            }
            2 => {
                let mut shape = a.shape.clone();
                let mut grew = false;
                for i in 0..shape.len() {
                    if shape[i] == 1 && elements(&shape) < 512 {
                        shape[i] = 1 << self.rng.range(0, 3);
                        grew = true;
                    }
                }
                if grew {
                    emit(self, &shape, format!("broadcast {}", a.name));
                }
            }
            3 if a.shape.len() >= 2 => {
                let mut perm: Vec<usize> = (0..a.shape.len()).collect();
                for i in 0..perm.len() {
                    let j = self.rng.below(perm.len());
                    perm.swap(i, j);
                }
                let shape: Shape = perm.iter().map(|&p| a.shape[p]).collect();
                emit(self, &shape, format!("permute {} {perm:?}", a.name));
            }
            4 if !a.shape.is_empty() && elements(&a.shape) <= 512 => {
                let b = self.like(&a);
                let dim = self.rng.below(a.shape.len());
                let mut shape = a.shape.clone();
                shape[dim] *= 2;
                let text =
                    format!("cat {}, {} dim = {dim} : {t}, {t} -> {}", a.name, b.name, ty(&shape, a.dtype.name()));
                self.def(&shape, a.dtype, a.small && b.small, text);
            }
            5 if !a.shape.is_empty() => {
                let mut shape = a.shape.clone();
                let mut index = vec![];
                for s in shape.iter_mut() {
                    let cut = if *s > 1 && self.rng.chance(50) { 2 } else { 1 };
                    *s /= cut;
                    let at = self.rng.below(cut as usize);
                    index.push(if at == 0 { "%i0" } else { "%i1" });
                }
                emit(self, &shape, format!("extract {}[{}]", a.name, index.join(", ")));
            }
            _ => {}
        }
    }

    /// A float tile of small integers of the shape of some tile, for sums.
    fn small(&mut self, dtype: DType, shape: &[u64]) -> Val {
        let n = elements(shape);
        let flat = self.hidden(&[n], DType::I32, format!("iota : {}", ty(&[n], "i32")));
        let lane =
            self.hidden(shape, DType::I32, format!("reshape {} : {} -> {}", flat.name, flat.ty(), ty(shape, "i32")));
        let three = self.hidden(shape, DType::I32, format!("constant <i32: 3> : {}", ty(shape, "i32")));
        let few = self.hidden(shape, DType::I32, format!("andi {}, {} : {}", lane.name, three.name, lane.ty()));
        self.def(shape, dtype, true, format!("itof {} signed : {} -> {}", few.name, lane.ty(), ty(shape, dtype.name())))
    }

    fn reduce(&mut self) {
        let mut a = self.any();
        if a.shape.is_empty() || !(a.dtype.is_base_float() || (a.dtype.is_int() && a.dtype != DType::I1)) {
            return;
        }
        let dim = self.rng.below(a.shape.len());
        let e = format!("tile<{}>", a.dtype);
        let (identity, body) = if a.dtype.is_float() {
            match self.rng.below(3) {
                0 if elements(&a.shape) <= 128 => {
                    if !a.small {
                        let shape = a.shape.clone();
                        a = self.small(a.dtype, &shape);
                    }
                    ("0.0", format!("addf %e, %c : {e}"))
                }
                1 => ("0.0", format!("maxf %e, %c propagate_nan : {e}")),
                _ => ("0.0", format!("minf %e, %c : {e}")),
            }
        } else {
            match self.rng.below(6) {
                0 | 1 => ("0", format!("addi %e, %c : {e}")),
                2 => ("1", format!("muli %c, %e : {e}")),
                3 => ("0", format!("maxi %e, %c signed : {e}")),
                4 => ("0", format!("xori %e, %c : {e}")),
                // Not associative: stays in order.
                _ => ("1", format!("subi %e, %c : {e}")),
            }
        };
        let mut shape = a.shape.clone();
        shape.remove(dim);
        let result = self.fresh();
        self.line(format!(
            "{result} = reduce {} dim={dim} identities=[{identity} : {}] : {} -> {} (%e: {e}, %c: {e}) {{",
            a.name,
            a.dtype,
            a.ty(),
            ty(&shape, a.dtype.name())
        ));
        self.line(format!("  %r = {body}"));
        self.line(format!("  yield %r : {e}"));
        self.line("}".into());
        self.pool.push(Val { name: result, shape, dtype: a.dtype, small: false });
    }

    fn scan(&mut self) {
        let a = self.any();
        if a.shape.is_empty() || !a.dtype.is_int() || a.dtype == DType::I1 {
            return;
        }
        let dim = self.rng.below(a.shape.len());
        let e = format!("tile<{}>", a.dtype);
        let reverse = self.rng.chance(40);
        let result = self.fresh();
        self.line(format!(
            "{result} = scan {} dim={dim} reverse={reverse} identities=[0 : {}] : {} -> {} (%e: {e}, %c: {e}) {{",
            a.name,
            a.dtype,
            a.ty(),
            a.ty()
        ));
        let op = *self.rng.pick(&["addi", "xori", "addi"]);
        self.line(format!("  %r = {op} %e, %c : {e}"));
        self.line(format!("  yield %r : {e}"));
        self.line("}".into());
        self.pool.push(Val { name: result, ..a });
    }

    fn contract(&mut self) {
        let dim = |m: &mut Maker| 1u64 << m.rng.range(0, 5);
        let Some(a) = self.find(|v| {
            v.shape.len() == 2 && matches!(v.dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64 | DType::I8)
        }) else {
            let dtype = *self.rng.pick(&[DType::F16, DType::BF16, DType::F32, DType::F64, DType::I8]);
            let shape = [dim(self), dim(self)];
            let tiles = self.blocks();
            return self.view_input(dtype, &shape, "%lin", tiles);
        };
        let (m, k) = (a.shape[0], a.shape[1]);
        let b = match self.find(|v| v.dtype == a.dtype && v.shape.len() == 2 && v.shape[0] == k) {
            Some(b) => b,
            None => {
                let n = dim(self);
                let tiles = self.blocks();
                self.view_input(a.dtype, &[k, n], "%lin", tiles);
                self.pool[self.pool.len() - 1].clone()
            }
        };
        let shape = [m, b.shape[1]];
        let out = match a.dtype {
            DType::I8 => DType::I32,
            DType::F64 => DType::F64,
            DType::F16 if self.rng.chance(25) => DType::F16,
            _ => DType::F32,
        };
        let acc = match self.find(|v| v.shape == shape && v.dtype == out) {
            Some(v) => v,
            None => self.constant(&shape, out),
        };
        let (op, sign) = if a.dtype == DType::I8 {
            ("mmai", *self.rng.pick(&[" signed signed", " unsigned signed", " unsigned unsigned"]))
        } else {
            ("mmaf", "")
        };
        let text = format!("{op} {}, {}, {}{sign} : {}, {}, {}", a.name, b.name, acc.name, a.ty(), b.ty(), acc.ty());
        self.def(&shape, out, false, text);
    }

    fn compare_select(&mut self) {
        let a = self.any();
        let pred = *self.rng.pick(&[
            "equal",
            "not_equal",
            "less_than",
            "less_than_or_equal",
            "greater_than",
            "greater_than_or_equal",
        ]);
        let b = self.like(&a);
        let i1 = ty(&a.shape, "i1");
        let text = if a.dtype.is_base_float() {
            format!(
                "cmpf {pred} {} {}, {} : {} -> {i1}",
                self.rng.pick(&["ordered", "unordered"]),
                a.name,
                b.name,
                a.ty()
            )
        } else if a.dtype.is_int() {
            format!(
                "cmpi {pred} {}, {}, {} : {} -> {i1}",
                a.name,
                b.name,
                self.rng.pick(&["signed", "unsigned"]),
                a.ty()
            )
        } else {
            return;
        };
        let c = self.def(&a.shape, DType::I1, false, text);
        if self.rng.chance(70) {
            let text = format!("select {}, {}, {} : {i1}, {}", c.name, a.name, b.name, a.ty());
            self.def(&a.shape, a.dtype, a.small && b.small, text);
        }
    }

    /// Runs `body` in a scope of its own: what it defines is gone afterwards.
    fn scope(&mut self, body: impl FnOnce(&mut Maker)) {
        let keep = self.pool.len();
        self.depth += 1;
        self.nested += 1;
        body(self);
        self.nested -= 1;
        self.depth -= 1;
        self.pool.truncate(keep);
    }

    fn carried(&mut self) -> Vec<Val> {
        (0..self.rng.range(1, 3)).map(|_| Val { small: false, ..self.any() }).collect()
    }

    /// For each value, one of the same type that is visible now.
    fn next_values(&mut self, carried: &[Val]) -> Vec<Val> {
        carried
            .iter()
            .map(|c| {
                let (shape, dtype) = (c.shape.clone(), c.dtype);
                let recent = self.pool.iter().rev().find(|v| v.shape == shape && v.dtype == dtype).cloned();
                let random = self.find(|v| v.shape == shape && v.dtype == dtype);
                if self.rng.chance(60) { recent } else { random }.unwrap_or_else(|| c.clone())
            })
            .collect()
    }

    fn names(vals: &[Val]) -> String {
        vals.iter().map(|v| v.name.clone()).collect::<Vec<_>>().join(", ")
    }

    fn types(vals: &[Val]) -> String {
        vals.iter().map(Val::ty).collect::<Vec<_>>().join(", ")
    }

    fn for_loop(&mut self) {
        let carried = self.carried();
        let trips = self.rng.range(0, 4);
        let bound = self.hidden(&[], DType::I32, format!("constant <i32: {trips}> : tile<i32>"));
        let results: Vec<Val> = carried.iter().map(|c| Val { name: self.fresh(), ..c.clone() }).collect();
        let args: Vec<Val> = carried.iter().map(|c| Val { name: self.fresh(), ..c.clone() }).collect();
        let iv = self.fresh();
        let inits: Vec<String> = args.iter().zip(&carried).map(|(a, c)| format!("{} = {}", a.name, c.name)).collect();
        self.line(format!(
            "{} = for {iv} in (%i0 to {}, step %i1) : tile<i32> iter_values({}) -> ({}) {{",
            Self::names(&results),
            bound.name,
            inits.join(", "),
            Self::types(&carried)
        ));
        self.scope(|m| {
            m.pool.extend(args.iter().cloned());
            m.pool.push(Val { name: iv.clone(), shape: vec![], dtype: DType::I32, small: false });
            if m.rng.chance(50) {
                let (dtype, shape) = (*m.rng.pick(INPUTS), m.shape());
                m.view_input(dtype, &shape, &iv, trips.max(1) as u64);
            }
            for _ in 0..m.rng.range(1, 6) {
                m.step();
            }
            if m.rng.chance(20) {
                let cond = m.hidden(&[], DType::I1, format!("cmpi equal {iv}, %i1, signed : tile<i32> -> tile<i1>"));
                let early = m.next_values(&args);
                m.line(format!("if {} {{", cond.name));
                m.line(format!("  continue {} : {}", Self::names(&early), Self::types(&early)));
                m.line("}".into());
            }
            let next = m.next_values(&args);
            m.line(format!("continue {} : {}", Self::names(&next), Self::types(&next)));
        });
        self.line("}".into());
        self.pool.extend(results);
    }

    fn if_else(&mut self) {
        let results: Vec<Val> = self.carried().into_iter().map(|c| Val { name: self.fresh(), ..c }).collect();
        let pred = *self.rng.pick(&["equal", "less_than"]);
        let cond = self.hidden(&[], DType::I1, format!("cmpi {pred} %lin, %i1, signed : tile<i32> -> tile<i1>"));
        self.line(format!("{} = if {} -> ({}) {{", Self::names(&results), cond.name, Self::types(&results)));
        for arm in 0..2 {
            self.scope(|m| {
                for _ in 0..m.rng.range(0, 4) {
                    m.step();
                }
                let fallback: Vec<Val> = results
                    .iter()
                    .map(|r| {
                        m.find(|v| v.shape == r.shape && v.dtype == r.dtype)
                            .unwrap_or_else(|| m.constant(&r.shape, r.dtype))
                    })
                    .collect();
                m.line(format!("yield {} : {}", Self::names(&fallback), Self::types(&fallback)));
            });
            self.line(if arm == 0 { "} else {".into() } else { "}".into() });
        }
        self.pool.extend(results);
    }

    /// `loop` with a counter and a break.
    fn counted_loop(&mut self) {
        let carried = self.carried();
        let results: Vec<Val> = carried.iter().map(|c| Val { name: self.fresh(), ..c.clone() }).collect();
        let args: Vec<Val> = carried.iter().map(|c| Val { name: self.fresh(), ..c.clone() }).collect();
        let counter = self.fresh();
        let trips = self.rng.range(0, 3);
        let bound = self.hidden(&[], DType::I32, format!("constant <i32: {trips}> : tile<i32>"));
        let inits: Vec<String> = args.iter().zip(&carried).map(|(a, c)| format!("{} = {}", a.name, c.name)).collect();
        let types = Self::types(&carried);
        self.line(format!(
            "{} = loop iter_values({counter} = %i0, {}) : tile<i32>, {types} -> {types} {{",
            Self::names(&results),
            inits.join(", ")
        ));
        self.scope(|m| {
            m.pool.extend(args.iter().cloned());
            let cond = m.hidden(
                &[],
                DType::I1,
                format!("cmpi greater_than_or_equal {counter}, {}, signed : tile<i32> -> tile<i1>", bound.name),
            );
            m.line(format!("if {} {{", cond.name));
            m.line(format!("  break {} : {types}", Self::names(&args)));
            m.line("}".into());
            for _ in 0..m.rng.range(1, 4) {
                m.step();
            }
            let more = m.hidden(&[], DType::I32, format!("addi {counter}, %i1 : tile<i32>"));
            let next = m.next_values(&args);
            m.line(format!("continue {}, {} : tile<i32>, {types}", more.name, Self::names(&next)));
        });
        self.line("}".into());
        self.pool.extend(results);
    }

    fn output(&mut self) {
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

    fn finish(self) -> Program {
        let params: Vec<String> = self
            .params
            .iter()
            .map(|p| match p {
                Param::Buffer { name, dtype, .. } => format!("%{name}: tile<ptr<{dtype}>>"),
                Param::Int { name, .. } => format!("%{name}: tile<i32>"),
            })
            .collect();
        let text = format!(
            "cuda_tile.module @random {{\n  entry @random({}) {{\n{}\n    return\n  }}\n}}\n",
            params.join(", "),
            self.lines.join("\n")
        );
        Program { text, grid: self.grid, params: self.params }
    }
}
