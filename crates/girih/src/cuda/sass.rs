//! The machine code of a cubin as text, by `nvdisasm`.
//!
//! In: a cubin. Out: its SASS as people read it, and as functions of instructions.
//!
//! ```text
//! Function { name: "k", instructions: [Instruction { opcode: "LDG.E.128", operands: "R4,[R2.64]" }, ...] }
//! ```
//! `nvdisasm` is a process: it is ended when it takes longer than [`LIMIT`], or by Ctrl-C.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Error, Places, Result};
use crate::compile::scratch::Scratch;
use crate::system::signals::{self, Compiling, Registered};

const WHAT: &str = "nvdisasm, NVIDIA's disassembler";
/// Much longer than the largest kernels take.
const LIMIT: Duration = Duration::from_secs(60);
/// Bytes of an instruction.
const BYTES: usize = 16;

pub struct Sass {
    pub text: String,
    pub functions: Vec<Function>,
}

pub struct Function {
    pub name: String,
    pub instructions: Vec<Instruction>,
}

pub struct Instruction {
    /// `LDG.E.128`, with the predicate it is executed under before it where it has one: `@P0 LDG.E.128`.
    pub opcode: String,
    pub operands: String,
}

impl Function {
    /// Returns true if an instruction begins with these words: `LDG` is in `LDG.E.128`.
    pub fn has(&self, opcode: &str) -> bool {
        self.count(opcode) > 0
    }

    pub fn count(&self, opcode: &str) -> usize {
        self.instructions.iter().filter(|i| i.is(opcode)).count()
    }

    /// The shortest loop that has such an instruction: from where a branch goes back to, up to the branch. A branch that lets the
    /// lanes of a warp run an instruction one after the other (`BRA.U.ANY`) makes none.
    pub fn innermost(&self, has: &dyn Fn(&Instruction) -> bool) -> Option<&[Instruction]> {
        let branches = self.instructions.iter().enumerate().filter(|(_, i)| !i.opcode.ends_with(".ANY"));
        let loops = branches.filter_map(|(at, i)| self.instructions.get(i.target()?..=at));
        loops.filter(|body| body.iter().any(has)).min_by_key(|body| body.len())
    }
}

impl Instruction {
    /// The number of the instruction that a branch goes to: `BRA UP0,0x140`.
    fn target(&self) -> Option<usize> {
        let place = self.operands.rsplit(',').next()?.trim().strip_prefix("0x").filter(|_| self.is("BRA"))?;
        Some(usize::from_str_radix(place, 16).ok()? / BYTES)
    }

    /// Returns true if the opcode is this one, with any modifiers.
    pub fn is(&self, opcode: &str) -> bool {
        let own = self.opcode.rsplit(' ').next().unwrap_or_default();
        own.strip_prefix(opcode).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// # Errors
/// [`Error::Missing`] without `nvdisasm`; [`Error::Failed`] with its output.
pub(super) fn disassemble(places: &Places, cubin: &[u8]) -> Result<Sass> {
    let [text, functions] = texts(places, cubin, [&["-c"], &["-c", "-json"]])?;
    Ok(Sass { text, functions: self::functions(&functions)? })
}

/// The text with the lines of the source, of a cubin that has them.
pub(super) fn listing(places: &Places, cubin: &[u8]) -> Result<String> {
    let [text] = texts(places, cubin, [&["-c", "-g"]])?;
    Ok(text)
}

/// The output of the disassembler for each list of arguments.
fn texts<const N: usize>(places: &Places, cubin: &[u8], arguments: [&[&str]; N]) -> Result<[String; N]> {
    let program = find(places)?;
    let scratch = Scratch::new().map_err(|e| failed(&format!("no folder for its input: {e}")))?;
    let file = scratch.path().join("girih.cubin");
    std::fs::write(&file, cubin).map_err(|e| failed(&format!("its input cannot be written: {e}")))?;
    let mut texts = [const { String::new() }; N];
    for (text, arguments) in texts.iter_mut().zip(arguments) {
        *text = run(&program, arguments, &file)?;
    }
    Ok(texts)
}

fn find(places: &Places) -> Result<PathBuf> {
    let beside = places.file("bin", &["nvdisasm"]);
    let on_path = || {
        let path = std::env::var_os("PATH").filter(|_| places.may_ask_system())?;
        std::env::split_paths(&path).map(|f| f.join("nvdisasm")).find(|f| f.is_file())
    };
    let missing = || Error::Missing { what: WHAT, looked: places.looked("bin", "PATH") };
    beside.or_else(on_path).ok_or_else(missing)
}

fn failed(reason: &str) -> Error {
    Error::Failed { what: "nvdisasm", reason: reason.to_string() }
}

/// Runs the program to its end and returns its output. Output goes to files, so that nobody needs to read while it runs.
fn run(program: &Path, arguments: &[&str], input: &Path) -> Result<String> {
    let _compiling = Compiling::enter();
    let cannot = |e: std::io::Error| failed(&format!("{}: {e}", program.display()));
    let (out, err) = (input.with_extension("out"), input.with_extension("err"));
    let mut child = Command::new(program)
        .args(arguments)
        .arg(input)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out).map_err(cannot)?)
        .stderr(std::fs::File::create(&err).map_err(cannot)?)
        .process_group(0)
        .spawn()
        .map_err(cannot)?;
    let _registered = Registered::group(child.id());
    let end = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(cannot)? {
            break status;
        }
        let late = Instant::now() > end;
        if late || signals::attention() {
            let ended = child.kill().and_then(|()| child.wait());
            ended.map_err(cannot)?;
            return Err(if late {
                failed(&format!("it took longer than {} s", LIMIT.as_secs()))
            } else {
                Error::Interrupted
            });
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let said = |file| std::fs::read(file).map(|b| String::from_utf8_lossy(&b).into_owned()).map_err(cannot);
    match status.success() {
        true => said(&out),
        false => Err(failed(&format!("{status}: {}", said(&err)?.trim()))),
    }
}

/// The functions of `nvdisasm -json`: a header, then a list of them.
fn functions(json: &str) -> Result<Vec<Function>> {
    let value: serde_json::Value =
        serde_json::from_str(json).map_err(|e| failed(&format!("its JSON cannot be read: {e}")))?;
    let list = value.get(1).and_then(|v| v.as_array()).ok_or_else(|| failed("its JSON has no list of functions"))?;
    let text = |v: &serde_json::Value, key: &str| v.get(key).and_then(|t| t.as_str()).unwrap_or_default().to_string();
    let instruction = |v: &serde_json::Value| {
        let (opcode, predicate) = (text(v, "opcode"), text(v, "predicate"));
        let opcode = if predicate.is_empty() { opcode } else { format!("{predicate} {opcode}") };
        Instruction { opcode, operands: text(v, "operands") }
    };
    let function = |v: &serde_json::Value| {
        let instructions = v.get("sass-instructions").and_then(|i| i.as_array());
        let instructions = instructions.map_or(vec![], |list| list.iter().map(instruction).collect());
        Function { name: text(v, "function-name"), instructions }
    };
    Ok(list.iter().map(function).collect())
}
