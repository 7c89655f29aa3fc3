//! Makes a random valid tile program: typed values grow in a pool, a few are stored at the end.
//!
//! Every statement is on one line and every region on lines of its own, so that a failing program can be shrunk by dropping
//! lines. Behaviour that the specification leaves undefined is avoided (divisors are made odd, shifts are masked, floats
//! are clamped before they become integers, edge tiles have padding); float sums are over small integers, so that every
//! order of addition gives the same bits.

mod control;
mod memory;
mod operations;
mod wide;

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
            0..22 => self.elementwise(),
            22..30 => self.wide(),
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
            97 => {
                let (shape, dtype) = (self.shape(), *self.rng.pick(&[DType::F32, DType::I32, DType::F16, DType::I64]));
                self.constant(&shape, dtype);
            }
            _ => self.wide(),
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
