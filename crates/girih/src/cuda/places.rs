//! Where NVIDIA's libraries and programs are looked for.
//!
//! In order: the folder that GIRIH_CUDA_LIBS names; the folders of NVIDIA's packages where Python packages are
//! (`system/packages.rs`) and that the caller names; then the system's own search.
//!
//! ```text
//! PREFIX/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13
//! PREFIX/lib/python3.12/site-packages/nvidia/cu13/bin/nvdisasm
//! ```

use std::path::{Path, PathBuf};

use crate::system::packages;

/// Folders of NVIDIA's packages below `site-packages/nvidia`: of CUDA 13, then of CUDA 12, which has one for each package.
const PACKAGES: [&str; 3] = ["cu13", "cuda_nvrtc", "cuda_nvdisasm"];

/// The folders that are searched.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The folder that the user named: nothing else is searched then.
    given: Option<PathBuf>,
    /// Folders that hold packages of Python, such as `site-packages`.
    packages: Vec<PathBuf>,
}

impl Places {
    /// The folder that GIRIH_CUDA_LIBS names, or the Python packages that are at hand.
    pub fn from_environment() -> Places {
        let given = std::env::var_os("GIRIH_CUDA_LIBS").filter(|v| !v.is_empty()).map(PathBuf::from);
        Places { given, packages: packages::folders() }
    }

    /// Only this folder of libraries, and the programs in it or in `bin` beside it.
    pub fn in_folder(folder: &Path) -> Places {
        Places { given: Some(folder.to_path_buf()), packages: vec![] }
    }

    /// Also the packages of the Python that is installed at a prefix (`sys.prefix`), after those named before.
    pub fn with_python(mut self, prefix: &Path) -> Places {
        self.packages.extend(packages::of_prefix(prefix));
        self
    }

    /// Also the packages in a folder of packages, after those named before.
    pub fn with_packages(mut self, folder: &Path) -> Places {
        self.packages.push(folder.to_path_buf());
        self
    }

    /// The folders for `lib` or `bin`, first come first.
    fn folders(&self, kind: &str) -> Vec<PathBuf> {
        if let Some(given) = &self.given {
            // Programs of a package stand beside its libraries.
            let beside = given.parent().map(|p| p.join(kind));
            return [Some(given.clone()), beside].into_iter().flatten().collect();
        }
        let in_one = |packages: &PathBuf| PACKAGES.map(|p| packages.join("nvidia").join(p).join(kind));
        self.packages.iter().flat_map(in_one).collect()
    }

    /// The first file of any of these names.
    pub(super) fn file(&self, kind: &str, names: &[&str]) -> Option<PathBuf> {
        let folders = self.folders(kind);
        let files = folders.iter().flat_map(|f| names.iter().map(move |n| f.join(n)));
        files.into_iter().find(|f| f.is_file())
    }

    /// Returns true if the system's own search may find more.
    pub(super) fn may_ask_system(&self) -> bool {
        self.given.is_none()
    }

    /// For a message: the folders, and the system's search.
    pub(super) fn looked(&self, kind: &str, system: &str) -> Vec<String> {
        let mut out: Vec<String> = self.folders(kind).iter().map(|f| f.display().to_string()).collect();
        out.extend(self.may_ask_system().then(|| system.to_string()));
        out
    }
}
