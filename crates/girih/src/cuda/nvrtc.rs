//! NVRTC, NVIDIA's compiler as a library: CUDA C++ in, PTX and a cubin out.
//!
//! Seven functions of its C interface, which has been the same since CUDA 11.1. The library is never unloaded. It opens a
//! second one, `libnvrtc-builtins`, by name alone, so the one beside it is loaded first.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use girih_compiler::emit::cuda::FLAGS;
use libloading::Library;

use super::resources::resources;
use super::{Error, Object, Places, Result};

const NAMES: [&str; 4] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "libnvrtc.alt.so.13"];
const WHAT: &str = "NVRTC, NVIDIA's compiler (libnvrtc.so.13)";

/// The source's file name in logs.
const FILE: &str = "girih.cu";

/// Options that do not depend on the source: the target is added, and `emit::cuda::FLAGS`. Values that nobody reads (177, 550)
/// are in Kernel IR too.
const OPTIONS: [&str; 2] = ["--ptxas-options=-v", "--diag-suppress=177,550"];

/// A program under compilation; the library's own.
type Program = *mut c_void;
/// 0 is success.
type Status = c_int;

/// The compiler, loaded.
pub struct Nvrtc {
    _library: ManuallyDrop<Library>,
    /// The file, or the name that the system found it by.
    pub path: PathBuf,
    /// 13.0 as (13, 0).
    pub version: (u32, u32),
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status,
    destroy: unsafe extern "C" fn(*mut Program) -> Status,
    log: Bytes,
    ptx: Bytes,
    cubin: Bytes,
    describe: unsafe extern "C" fn(Status) -> *const c_char,
}

/// How many bytes there are, and the bytes.
#[derive(Clone, Copy)]
struct Bytes {
    size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    get: unsafe extern "C" fn(Program, *mut c_char) -> Status,
}

impl Nvrtc {
    /// # Errors
    /// [`Error::Missing`], or [`Error::Unusable`] for a file that is not NVRTC.
    pub fn load(places: &Places) -> Result<Nvrtc> {
        if let Some(path) = places.file("lib", &NAMES) {
            preload_builtins(&path);
            return Nvrtc::open(&path).map_err(|reason| Error::Unusable { path, reason });
        }
        if places.may_ask_system()
            && let Some(found) = NAMES.iter().find_map(|name| Nvrtc::open(Path::new(name)).ok())
        {
            return Ok(found);
        }
        Err(Error::Missing { what: WHAT, looked: places.looked("lib", "the system's libraries") })
    }

    fn open(path: &Path) -> std::result::Result<Nvrtc, String> {
        // SAFETY: NVRTC's initialisers only set up its own data; the user who names the folder vouches for its contents, as
        // for any library on the loader's path.
        let library = unsafe { Library::new(path) }.map_err(|e| reason(&e))?;
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: `nvrtc.h` declares the function with the type of the field that takes it.
                unsafe { *library.get(concat!($name, "\0").as_bytes()).map_err(|e| reason(&e))? }
            };
        }
        let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status = function!("nvrtcVersion");
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both are live integers that the call writes.
        let status = unsafe { version(&mut major, &mut minor) };
        if status != 0 {
            return Err(format!("nvrtcVersion gives status {status}"));
        }
        Ok(Nvrtc {
            path: path.to_path_buf(),
            version: (major.unsigned_abs(), minor.unsigned_abs()),
            create: function!("nvrtcCreateProgram"),
            compile: function!("nvrtcCompileProgram"),
            destroy: function!("nvrtcDestroyProgram"),
            log: Bytes { size: function!("nvrtcGetProgramLogSize"), get: function!("nvrtcGetProgramLog") },
            ptx: Bytes { size: function!("nvrtcGetPTXSize"), get: function!("nvrtcGetPTX") },
            cubin: Bytes { size: function!("nvrtcGetCUBINSize"), get: function!("nvrtcGetCUBIN") },
            describe: function!("nvrtcGetErrorString"),
            _library: ManuallyDrop::new(library),
        })
    }

    /// Compiles source for a target such as `sm_90a`.
    ///
    /// # Errors
    /// [`Error::Rejected`] with the log; [`Error::Failed`] where the library itself does.
    pub fn compile(&self, source: &str, target: &str) -> Result<Object> {
        self.compile_by(source, target, &[])
    }

    /// The same, with more options.
    pub fn compile_by(&self, source: &str, target: &str, more: &[&str]) -> Result<Object> {
        let text = |s: &str| CString::new(s).map_err(|_| self.failed("there is a zero byte in what it is given"));
        let (source, file) = (text(source)?, text(FILE)?);
        let mut options = vec![text(&format!("--gpu-architecture={target}"))?];
        for flag in OPTIONS.into_iter().chain(FLAGS).chain(more.iter().copied()) {
            options.push(text(flag)?);
        }
        let options: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let none = std::ptr::null();
        let mut program = Running { nvrtc: self, program: std::ptr::null_mut() };
        // SAFETY: the texts end in zero and outlive the call; no headers are given.
        let made = unsafe { (self.create)(&mut program.program, source.as_ptr(), file.as_ptr(), 0, none, none) };
        self.expect(made)?;
        // SAFETY: the program is live; the number of options is right, each ends in zero and outlives the call.
        let status = unsafe { (self.compile)(program.program, options.len() as c_int, options.as_ptr()) };
        let log = String::from_utf8_lossy(&program.bytes(self.log)?).into_owned();
        if status != 0 {
            // Status 6: the source. Others: options, memory, the library.
            return Err(match log.is_empty() {
                true => self.failed(&self.describe(status)),
                false => Error::Rejected { target: target.to_string(), log },
            });
        }
        let ptx = String::from_utf8_lossy(&program.bytes(self.ptx)?).into_owned();
        let (kernels, log) = resources(&log);
        Ok(Object { target: target.to_string(), ptx, cubin: program.bytes(self.cubin)?, log, kernels })
    }

    fn expect(&self, status: Status) -> Result<()> {
        if status == 0 { Ok(()) } else { Err(self.failed(&self.describe(status))) }
    }

    fn describe(&self, status: Status) -> String {
        // SAFETY: it gives a constant text for every number, which ends in zero.
        let text = unsafe { (self.describe)(status) };
        if text.is_null() {
            return format!("status {status}");
        }
        // SAFETY: as above, and it is not null.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    fn failed(&self, reason: &str) -> Error {
        Error::Failed { what: "NVRTC", reason: reason.to_string() }
    }
}

/// A program, destroyed with the value.
struct Running<'a> {
    nvrtc: &'a Nvrtc,
    program: Program,
}

impl Running<'_> {
    /// Texts without the zeros at their end.
    fn bytes(&self, which: Bytes) -> Result<Vec<u8>> {
        let mut size = 0;
        // SAFETY: the program is live and `size` is written.
        self.nvrtc.expect(unsafe { (which.size)(self.program, &mut size) })?;
        let mut out = vec![0u8; size];
        if size > 0 {
            // SAFETY: the buffer has the bytes that the call writes.
            self.nvrtc.expect(unsafe { (which.get)(self.program, out.as_mut_ptr().cast()) })?;
        }
        while !out.starts_with(b"\x7fELF") && out.last() == Some(&0) {
            out.pop();
        }
        Ok(out)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: the program was created and is destroyed once.
            unsafe { (self.nvrtc.destroy)(&mut self.program) };
        }
    }
}

/// Loads the built-in functions that lie beside NVRTC, which looks for them by name. Without them it says so when it
/// compiles.
fn preload_builtins(nvrtc: &Path) {
    let Some(folder) = nvrtc.parent() else { return };
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let names = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned());
    for name in names.filter(|n| n.starts_with("libnvrtc-builtins.so.")) {
        // SAFETY: it holds data and no code that runs when it is loaded; it stays loaded.
        if let Ok(library) = unsafe { Library::new(folder.join(name)) } {
            std::mem::forget(library);
        }
    }
}

/// The loader's own words.
fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), |s| s.to_string())
}

/// The line of source that a line of a log is about: 12 of `girih.cu(12): error: ...`.
pub(super) fn line_of(text: &str) -> Option<u32> {
    let (number, _) = text.strip_prefix(FILE)?.strip_prefix('(')?.split_once(')')?;
    number.parse().ok()
}
