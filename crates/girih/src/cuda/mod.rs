//! CUDA source to machine code, on a machine with or without a GPU; and kernels on a GPU.
//!
//! In: a [`Unit`](girih_compiler::emit::cuda::Unit) of CUDA and the name of a target. Out: PTX, a cubin, its SASS, and the
//! resources of each kernel. NVIDIA's compiler and disassembler are found at run time; nothing of them
//! is needed to build Girih, and neither needs a driver.
//!
//! ```text
//! let toolchain = Toolchain::find(&Places::from_environment())?;
//! let object = toolchain.compile(&unit, "sm_90a")?;
//! object.ptx, object.cubin, object.kernels[0].registers      ".version 9.0 ...", bytes, 34
//! toolchain.sass(&object)?.functions[0].has("LDG.E.128")     true
//! ```
//!
//! * [`places`]: where the libraries are looked for    * [`nvrtc`]: the compiler, a library
//! * [`sass`]: the disassembler, a program    * [`resources`]: registers, memory and occupancy
//! * [`driver`]: the driver, a library    * [`device`]: a GPU, its memory and its modules    * [`image`]: what a driver loads
//! * [`descriptor`]: tensor maps    * `launch`: kernels on arrays of the host and of the device
//!
//! Invariants: a library or program that is missing is an [`Error::Missing`] that names the package; what the compiler
//! says of a line of source is said of the statement it was printed from ([`explain`]).

pub mod descriptor;
pub mod device;
pub mod driver;
pub mod image;
pub(crate) mod launch;
pub mod nvrtc;
pub mod places;
pub mod resources;
pub mod sass;

use std::path::PathBuf;

use girih_compiler::emit::cuda::Unit;
use girih_compiler::kernel::ir::Kernel;
use girih_compiler::kernel::print::print_numbered;

pub use nvrtc::Nvrtc;
pub use places::Places;
pub use resources::{Occupancy, Resources, occupancy};
pub use sass::Sass;

/// The targets that source is compiled for.
pub const TARGETS: [&str; 4] = ["sm_80", "sm_90a", "sm_100a", "sm_120"];

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A library or a program that was not found.
    #[error(
        "{what} was not found (looked in {}); `pip install 'nvidia-cuda-nvrtc<13.1' nvidia-cuda-nvdisasm` brings it, and \
         GIRIH_CUDA_LIBS may name the folder that holds it",
        .looked.join(", ")
    )]
    Missing { what: &'static str, looked: Vec<String> },

    /// A library that was found and cannot be used.
    #[error("{} cannot be used: {reason}", .path.display())]
    Unusable { path: PathBuf, reason: String },

    /// The compiler does not take the source.
    #[error("NVRTC does not compile this for {target}:\n{log}")]
    Rejected { target: String, log: String },

    #[error(
        "there is no CUDA driver ({reason}); `--device cuda` needs an NVIDIA GPU and its driver, or a library that GIRIH_CUDA_DRIVER \
         names; `--device sim` simulates a GPU"
    )]
    NoDriver { reason: String },

    #[error("{what}; `--device sim` simulates a GPU")]
    NoDevice { what: String },

    /// A call of the driver failed.
    #[error("{call} failed: {name}{}{reason}", if .reason.is_empty() { "" } else { ": " })]
    Driver { call: &'static str, name: String, reason: String },

    /// A tool failed in a way of its own.
    #[error("{what} failed: {reason}")]
    Failed { what: &'static str, reason: String },

    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

pub type Result<T> = std::result::Result<T, Error>;

/// The result of a compilation.
#[derive(Clone, Debug)]
pub struct Object {
    pub target: String,
    pub ptx: String,
    pub cubin: Vec<u8>,
    /// The compiler's messages; empty without warnings.
    pub log: String,
    /// The resources of each kernel, in the order in which they were compiled.
    pub kernels: Vec<Resources>,
}

/// The compiler, and where the disassembler is looked for.
pub struct Toolchain {
    pub nvrtc: Nvrtc,
    places: Places,
}

impl Toolchain {
    /// # Errors
    /// [`Error::Missing`] without NVRTC. The disassembler is looked for when it is needed.
    pub fn find(places: &Places) -> Result<Toolchain> {
        Ok(Toolchain { nvrtc: Nvrtc::load(places)?, places: places.clone() })
    }

    /// # Errors
    /// [`Error::Rejected`] with the compiler's log, for [`explain`].
    pub fn compile(&self, unit: &Unit, target: &str) -> Result<Object> {
        self.nvrtc.compile(&unit.text, target)
    }

    /// The machine code of a source as `nvdisasm` prints it, with the line that instructions were compiled from before them.
    ///
    /// # Errors
    /// [`Error::Missing`] without `nvdisasm`; [`Error::Rejected`].
    pub fn listing(&self, source: &str, target: &str) -> Result<String> {
        let object = self.nvrtc.compile_by(source, target, &["--generate-line-info"])?;
        sass::listing(&self.places, &object.cubin)
    }

    /// # Errors
    /// [`Error::Missing`] without `nvdisasm`.
    pub fn sass(&self, object: &Object) -> Result<Sass> {
        sass::disassemble(&self.places, &object.cubin)
    }
}

/// The log with, after each line about the source, that line and the statement of Kernel IR that it was printed from.
/// `kernels` are those of the unit, in its order.
pub fn explain(log: &str, unit: &Unit, kernels: &[&Kernel]) -> String {
    let printed: Vec<(String, Vec<u32>)> = kernels.iter().map(|k| print_numbered(k)).collect();
    let mut out = String::new();
    for text in log.lines() {
        out.push_str(text);
        out.push('\n');
        let Some(line) = nvrtc::line_of(text) else { continue };
        let Some(place) = unit.statement(line) else { continue };
        let Some((ir, starts)) = printed.get(place.kernel) else { continue };
        let Some(&start) = starts.get(place.statement) else { continue };
        let source = |text: &str, line: u32| {
            let shown = line.checked_sub(1).and_then(|at| text.lines().nth(at as usize));
            shown.unwrap_or_default().trim().to_string()
        };
        let name = kernels.get(place.kernel).map_or("", |k| k.name.as_str());
        out.push_str(&format!("    CUDA, line {line}: {}\n", source(&unit.text, line)));
        out.push_str(&format!("    Kernel IR of `{name}`, line {start}: {}\n", source(ir, start)));
    }
    out
}
