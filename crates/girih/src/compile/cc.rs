//! The C compiler: finding it, learning once which flags it takes, calling it.
//!
//! In: a C file. Out: a shared object, or an error that says what to do. Flags are explicit:
//! the semantics' own (no contraction, wrapping integers, no aliasing assumptions) and one `-m` flag per detected
//! feature. `-march=native` is never used: on virtual machines it names the wrong processor.
//!
//! A compiler is several processes and writes files of its own. They are a process group, so that Ctrl-C ends them all,
//! and their files lie in a folder that goes with the run.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use crate::compile::scratch::Scratch;
use crate::error::{Error, Result};
use crate::system::signals::{self, Compiling, Registered};
use crate::system::{machine, packages};

/// Flags without which the emitted C would mean something else.
const REQUIRED: [&str; 9] = [
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-ffp-contract=off",
    "-fno-fast-math",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-fno-strict-aliasing",
];

/// Flags used where the compiler accepts them.
const OPTIONAL: [&str; 6] = [
    "-fno-finite-loops",
    "-fexcess-precision=16",
    "-fno-asynchronous-unwind-tables",
    // Loops that store zeros stay loops: `rep stosq` takes twice as long for 4 KiB, and waits for what was stored before.
    "-fno-tree-loop-distribute-patterns",
    "-Wno-psabi",
    "-w",
];

/// A compiler program that exists, not yet asked anything.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The resolved program, then arguments that always come first (`cc` for `zig cc`).
    pub command: Vec<OsString>,
    /// Changes when the program is replaced: real path, size and modification time.
    pub identity: String,
}

/// A compiler that was asked: its version and the flags it takes.
#[derive(Clone, Debug)]
pub struct Compiler {
    pub candidate: Candidate,
    /// The first line of `--version`.
    pub version: String,
    pub flags: Vec<String>,
}

/// The first compiler found of `explicit` (the value of GIRIH_CC or CC) or else cc, gcc, clang, `zig cc`; where the system has
/// none of these, that of the Python package `ziglang`.
pub fn find(explicit: Option<&str>) -> Result<Candidate> {
    let choices: Vec<&str> = match explicit {
        Some(one) => vec![one],
        None => vec!["cc", "gcc", "clang", "zig cc"],
    };
    for choice in &choices {
        let mut words = choice.split_whitespace();
        let Some(program) = words.next() else { continue };
        // A path with blanks in it is one word; a command with arguments is several.
        let found = resolve(choice)
            .map(|p| (p, vec![]))
            .or_else(|| resolve(program).map(|p| (p, words.map(OsString::from).collect::<Vec<_>>())));
        if let Some((path, arguments)) = found
            && let Some(identity) = identity(&path)
        {
            let mut command = vec![path.into_os_string()];
            command.extend(arguments);
            return Ok(Candidate { command, identity });
        }
    }
    if explicit.is_none()
        && let Some(packaged) = packaged("cc")
    {
        return Ok(packaged);
    }
    let package = explicit.is_none().then(|| format!("the Python package {PACKAGE}"));
    Err(Error::NoCompiler { tried: choices.into_iter().map(String::from).chain(package).collect() })
}

/// The Python package that is a C compiler: the extra `cc` brings it.
const PACKAGE: &str = "ziglang";

/// The package's `cc` or `ar`.
fn packaged(part: &str) -> Option<Candidate> {
    let zig = packages::folders().into_iter().map(|f| f.join(PACKAGE).join("zig")).find(|p| executable(p))?;
    let identity = identity(&zig)?;
    Some(Candidate { command: vec![zig.into_os_string(), part.into()], identity })
}

/// The program as PATH finds it.
fn resolve(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        let path = PathBuf::from(program);
        return executable(&path).then_some(path);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|p| executable(p))
}

fn executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.mode() & 0o111 != 0)
}

fn identity(path: &Path) -> Option<String> {
    let real = path.canonicalize().ok()?;
    let meta = real.metadata().ok()?;
    Some(format!("{} {} {}.{}", real.display(), meta.len(), meta.mtime(), meta.mtime_nsec()))
}

/// The flags that let the compiler use features of a processor.
fn flags_of(features: &[&str]) -> Vec<String> {
    let wide = features.contains(&"avx512f").then(|| "-mprefer-vector-width=512".to_string());
    features.iter().map(|f| format!("-m{f}")).chain(wide).collect()
}

impl Candidate {
    fn start(&self) -> Command {
        let mut words = self.command.iter();
        let mut command = Command::new(words.next().map(OsString::as_os_str).unwrap_or_default());
        command.args(words).env("LC_ALL", "C");
        command
    }

    /// How it was found, to be read behind its name; empty for a compiler on PATH.
    pub fn origin(&self) -> &'static str {
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        match (set("GIRIH_CC"), set("CC")) {
            (true, _) => ", from GIRIH_CC",
            (false, true) => ", from CC",
            _ if packaged("cc").is_some_and(|c| c.command == self.command) => ", from the Python package ziglang",
            _ => "",
        }
    }

    /// The command as a user would type it.
    pub fn display(&self) -> String {
        self.command.iter().map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    /// The output of a program that reads a file.
    pub fn output(&self, arguments: &[&str], input: &Path) -> Result<String> {
        let output = self.run(self.start().args(arguments).arg(input), None)?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(self.failed(&arguments.join(" "), &output, None)),
        }
    }

    /// Asks for the version and tries the flags. `notes` keeps the answer in a file, so that a later process need not
    /// ask: starting a compiler costs more than a cached kernel.
    pub fn probe(self, notes: Option<&Path>) -> Result<Compiler> {
        let wanted = self.wanted();
        let file = notes.map(|dir| {
            let key = blake3::hash(format!("{}\n{}", self.identity, wanted.join(" ")).as_bytes()).to_hex();
            dir.join(format!("cc-{}", &key.as_str()[..24]))
        });
        // A damaged note does not count: it ends with its last line, and names flags that would be tried.
        if let Some(text) =
            file.as_ref().and_then(|f| String::from_utf8(crate::system::files::read_regular(f).ok()?).ok())
            && let Some((version, flags)) = text.strip_suffix('\n').and_then(|t| t.split_once('\n'))
            && let flags = flags.split(' ').map(String::from).collect::<Vec<_>>()
            && flags.iter().all(|f| wanted.contains(f))
        {
            return Ok(Compiler { version: version.to_string(), flags, candidate: self });
        }
        let (compiler, is_certain) = self.ask(wanted)?;
        if let Some(file) = file.filter(|_| is_certain) {
            let text = format!("{}\n{}\n", compiler.version, compiler.flags.join(" "));
            // Without the note the next process asks again; nothing else depends on it.
            let _ = crate::system::files::replace(&file, text.as_bytes());
        }
        Ok(compiler)
    }

    fn wanted(&self) -> Vec<String> {
        let flags = REQUIRED.iter().chain(&OPTIONAL).map(|f| f.to_string());
        flags.chain(flags_of(&machine::features())).collect()
    }

    /// The compiler with the flags that it takes, and whether each of the others was its own refusal: where a limit of the
    /// machine ended a trial, the flag is left out only this time.
    fn ask(self, wanted: Vec<String>) -> Result<(Compiler, bool)> {
        let output = self.run(self.start().arg("--version"), None)?;
        if !output.status.success() {
            return Err(self.failed("--version", &output, None));
        }
        let version = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or("unknown").trim().to_string();
        if self.tries(&wanted)?.status.success() {
            return Ok((Compiler { version, flags: wanted, candidate: self }, true));
        }
        let mut kept: Vec<String> = REQUIRED.iter().map(|f| f.to_string()).collect();
        let mut is_certain = true;
        for flag in wanted.into_iter().skip(REQUIRED.len()) {
            kept.push(flag);
            let output = self.tries(&kept)?;
            if !output.status.success() {
                is_certain &= kept.pop().is_some_and(|flag| refuses(&output, &flag));
            }
        }
        Ok((Compiler { version, flags: kept, candidate: self }, is_certain))
    }

    /// Compiles a small program with these flags; it succeeds only without warnings.
    fn tries(&self, flags: &[String]) -> Result<Output> {
        let mut command = self.start();
        command.args(flags.iter().filter(|f| *f != "-w")).args(["-Werror", "-x", "c", "-S", "-o", "-", "-"]);
        self.run(&mut command, Some(b"float girih_probe(float a) { return a + 1.0f; }\n"))
    }

    /// Runs the compiler to its end, or until Ctrl-C, and returns its output.
    fn run(&self, command: &mut Command, input: Option<&[u8]>) -> Result<Output> {
        let cannot = |e| self.cannot_start(e);
        let _compiling = Compiling::enter();
        // Without a folder of its own the compiler finds a place for its files, as always.
        let scratch = Scratch::new().ok();
        if let Some(scratch) = &scratch {
            command.env("TMPDIR", scratch.path());
            // Zig keeps parts of its C library between runs, and does not start where it does not know where.
            let known = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
            if !["ZIG_GLOBAL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"].into_iter().any(known) {
                command.env("ZIG_GLOBAL_CACHE_DIR", scratch.path());
            }
        }
        let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut child = command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        let _registered = Registered::group(child.id());
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
            // A compiler that rejects its flags may close the pipe first.
            let _ = pipe.write_all(input);
        }
        let mut said = [Said::of(child.stdout.take()), Said::of(child.stderr.take())];
        let status = wait(&mut child, &mut said).map_err(cannot)?;
        let Some(status) = status.filter(|_| !signals::interrupted()) else {
            return Err(Error::Interrupted);
        };
        let [stdout, stderr] = said.map(|s| s.text);
        Ok(Output { status, stdout, stderr })
    }

    fn cannot_start(&self, error: std::io::Error) -> Error {
        Error::file(&self.command[0], format!("the C compiler cannot be started: {error}"))
    }

    fn failed(&self, arguments: &str, output: &Output, source: Option<&Path>) -> Error {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = stderr.lines().collect();
        let mut text = lines.iter().take(12).copied().collect::<Vec<_>>().join("\n");
        if lines.len() > 12 {
            text += &format!("\n... ({} more lines)", lines.len() - 12);
        }
        Error::Compiler {
            status: output.status.to_string(),
            command: format!("{} {arguments}", self.display()),
            stderr: text,
            source_file: source.map(Path::to_path_buf),
        }
    }
}

/// Returns true if the compiler ended by itself and its message names the flag.
fn refuses(output: &Output, flag: &str) -> bool {
    let name = flag.split('=').next().unwrap_or(flag);
    let said = [&output.stderr, &output.stdout].map(|text| String::from_utf8_lossy(text).contains(name));
    output.status.code().is_some() && said.contains(&true)
}

impl Compiler {
    /// For people: the command, its version, and how it was found.
    pub fn description(&self) -> String {
        format!("{} ({}){}", self.candidate.display(), self.version, self.candidate.origin())
    }

    /// The same compiler for processors of these features.
    pub fn with_features(mut self, features: &[&str]) -> Compiler {
        self.flags.retain(|f| !f.starts_with("-m"));
        self.flags.extend(flags_of(features));
        self
    }

    /// Everything that decides the compiler's output for a source.
    pub fn fingerprint(&self) -> String {
        format!("{}\n{}\n{}", self.candidate.identity, self.version, self.flags.join(" "))
    }

    /// The command that builds `source` into `object`, as a user would type it.
    pub fn command_line(&self, source: &Path, object: &Path) -> String {
        format!(
            "{} {} -shared -o {} {} -lm",
            self.candidate.display(),
            self.flags.join(" "),
            object.display(),
            source.display()
        )
    }

    /// Compiles the C file `source` into the shared object `object`.
    pub fn compile(&self, source: &Path, object: &Path) -> Result<()> {
        self.make(&["-shared"], source, object, &["-lm"])
    }

    /// Compiles it into an object for the linker.
    pub fn compile_object(&self, source: &Path, object: &Path) -> Result<()> {
        self.make(&["-c"], source, object, &[])
    }

    /// The same, with the lines of the source that instructions are made from.
    pub fn compile_with_lines(&self, source: &Path, object: &Path) -> Result<()> {
        self.make(&["-g1", "-c"], source, object, &[])
    }

    fn make(&self, kind: &[&str], source: &Path, object: &Path, after: &[&str]) -> Result<()> {
        let mut command = self.candidate.start();
        command.args(&self.flags).args(kind).arg("-o").arg(object).arg(source).args(after);
        let mut output = self.candidate.run(&mut command, None)?;
        let status = output.status;
        if status.success() && object.exists() {
            return Ok(());
        }
        if status.success() {
            output.stderr = b"it reports success but wrote no object file".to_vec();
        }
        let arguments = format!("{} {} {}", self.flags.join(" "), kind.join(" "), source.display());
        Err(self.candidate.failed(&arguments, &output, Some(source)))
    }
}

/// Makes a static library of an object, without times or owners in it: the program that AR names, that which stands beside
/// a compiler for other processors (`aarch64-linux-gnu-ar`), `ar`, or `zig ar`.
pub fn archive(library: &Path, object: &Path, compiler: &Compiler) -> Result<()> {
    let beside = || {
        let program = compiler.candidate.command.first()?.to_str()?;
        let ar = format!("{}-ar", program.strip_suffix("-gcc")?);
        resolve(&ar).map(|_| ar)
    };
    let named = std::env::var("AR").ok().filter(|v| !v.is_empty()).or_else(beside);
    let name = named.as_deref().unwrap_or("ar");
    let missing =
        |_| Error::argument(format!("`{name}` was not found; it comes with the C compiler, and AR may name it"));
    let of_package = |e| packaged("ar").filter(|_| named.is_none()).ok_or(e);
    let candidate = find(Some(name)).or_else(of_package).map_err(missing)?;
    let mut command = candidate.start();
    let how = if cfg!(target_os = "macos") { "rcs" } else { "rcsD" };
    command.env("ZERO_AR_DATE", "1").arg(how).arg(library).arg(object);
    let output = candidate.run(&mut command, None)?;
    if output.status.success() { Ok(()) } else { Err(candidate.failed(how, &output, None)) }
}

/// The output of a process through a pipe, read by the thread that waits for the process: the system could refuse a
/// thread for it.
struct Said {
    pipe: Option<Box<dyn Pipe>>,
    text: Vec<u8>,
}

trait Pipe: Read + AsRawFd {}
impl<T: Read + AsRawFd> Pipe for T {}

impl Said {
    fn of(pipe: Option<impl Pipe + 'static>) -> Said {
        let pipe = pipe.map(|p| -> Box<dyn Pipe> { Box::new(p) });
        if let Some(pipe) = &pipe {
            // SAFETY: sets a flag of a descriptor that is ours.
            unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        }
        Said { pipe, text: vec![] }
    }

    /// Takes the bytes that are there. Bytes of a message that cannot be read are missing from it.
    fn take(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        // All that is there comes before the error that says so.
        match pipe.read_to_end(&mut self.text) {
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            _ => self.pipe = None,
        }
    }
}

/// How long to wait before the signals are looked at again.
const TICK: Duration = Duration::from_millis(1);

/// Waits for the compiler; `None` when Ctrl-C ended it, with all the processes that it is made of.
fn wait(child: &mut Child, said: &mut [Said; 2]) -> std::io::Result<Option<ExitStatus>> {
    loop {
        let status = child.try_wait()?;
        // The output written before the process ended is in the pipes now.
        said.iter_mut().for_each(Said::take);
        if status.is_some() {
            return Ok(status);
        }
        if signals::attention() {
            // SAFETY: the group is the child's own, and the child has not been waited for: its number is nobody else's.
            unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(TICK);
    }
}
