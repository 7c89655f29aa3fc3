//! Pieces of tile text, and launches on both devices.

use std::path::Path;

use girih::{Arg, CachePolicy, Device, Error, Kernel, Options, Program};
use girih_compiler::base::launch::Assumptions;
use girih_compiler::base::launch::Trap;

pub const DEVICES: [Device; 2] = [Device::Cpu, Device::Eval];

pub fn options(device: Device) -> Options {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("promises");
    Options::default().device(device).threads(4).cache(CachePolicy::At(dir))
}

/// A program with one entry `k`.
pub fn program(params: &str, body: &str) -> Program {
    let text = format!("cuda_tile.module @m {{\n  entry @k({params}) {{\n{body}  }}\n}}\n");
    parsed(&text)
}

#[track_caller]
pub fn parsed(text: &str) -> Program {
    match Program::from_text(text) {
        Ok(program) => program,
        Err(Error::Program(all)) => panic!("{text}\n{all:#?}"),
        Err(e) => panic!("{e}"),
    }
}

pub fn kernel(program: &Program, options: Options) -> Kernel<'_> {
    program.entry("k").unwrap().with_options(options)
}

/// Runs `k` on the device and says under which assumptions (none on the evaluator).
#[track_caller]
pub fn run(program: &Program, device: Device, grid: u32, args: &mut [Arg<'_>]) -> Option<Assumptions> {
    let kernel = kernel(program, options(device));
    let mut prepared = kernel.prepare([grid, 1, 1], args).unwrap();
    prepared.run().unwrap();
    prepared.compiled().map(|c| c.assume)
}

/// The trap that a run ends in.
#[track_caller]
pub fn trap(program: &Program, options: Options, grid: u32, args: &mut [Arg<'_>]) -> Trap {
    match kernel(program, options).launch([grid, 1, 1], args) {
        Err(Error::Trap(trap)) => *trap,
        other => panic!("no trap: {other:?}"),
    }
}

/// `%NAME_n`: the scalar, repeated.
pub fn spread(name: &str, ty: &str, n: u64) -> String {
    format!(
        "    %{name}_1 = reshape %{name} : tile<{ty}> -> tile<1x{ty}>\n    %{name}_n = broadcast %{name}_1 : tile<1x{ty}> \
         -> tile<{n}x{ty}>\n"
    )
}

/// `%AS`: the addresses of `%BASE_n` (see [`spread`]) at `%INDEX`.
pub fn at(address: &str, base: &str, index: &str, elem: &str, int: &str, n: u64) -> String {
    format!(
        "    %{address} = offset %{base}_n, %{index} : tile<{n}xptr<{elem}>>, tile<{n}x{int}> -> tile<{n}xptr<{elem}>>\n"
    )
}

pub fn load(dst: &str, address: &str, elem: &str, n: u64) -> String {
    format!("    %{dst}, %{dst}_t = load_ptr_tko weak %{address} : tile<{n}xptr<{elem}>> -> tile<{n}x{elem}>, token\n")
}

/// Masked-off elements get `%OTHER`.
pub fn load_where(dst: &str, address: &str, mask: &str, other: &str, elem: &str, n: u64) -> String {
    format!(
        "    %{dst}, %{dst}_t = load_ptr_tko weak %{address}, %{mask}, %{other} : tile<{n}xptr<{elem}>>, tile<{n}xi1>, \
         tile<{n}x{elem}> -> tile<{n}x{elem}>, token\n"
    )
}

pub fn store(value: &str, address: &str, elem: &str, n: u64) -> String {
    format!(
        "    %{address}_{value} = store_ptr_tko weak %{address}, %{value} : tile<{n}xptr<{elem}>>, tile<{n}x{elem}> -> token\n"
    )
}

pub fn store_where(value: &str, address: &str, mask: &str, elem: &str, n: u64) -> String {
    format!(
        "    %{address}_{value} = store_ptr_tko weak %{address}, %{value}, %{mask} : tile<{n}xptr<{elem}>>, \
         tile<{n}x{elem}>, tile<{n}xi1> -> token\n"
    )
}

/// `%DST = OP %A, %B REST` on tiles.
pub fn op2(dst: &str, op: &str, a: &str, b: &str, ty: &str, n: u64) -> String {
    format!("    %{dst} = {op} %{a}, %{b} : tile<{n}x{ty}>\n")
}

pub fn splat(dst: &str, value: &str, ty: &str, n: u64) -> String {
    format!("    %{dst} = constant <{ty}: {value}> : tile<{n}x{ty}>\n")
}

pub fn compare(dst: &str, how: &str, a: &str, b: &str, int: &str, n: u64) -> String {
    format!("    %{dst} = cmpi {how} %{a}, %{b}, signed : tile<{n}x{int}> -> tile<{n}xi1>\n")
}

pub fn iota(dst: &str, n: u64) -> String {
    format!("    %{dst} = iota : tile<{n}xi32>\n")
}
