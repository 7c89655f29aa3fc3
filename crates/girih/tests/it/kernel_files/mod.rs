//! The kernels of `tests/cuda` and `tests/races`: Kernel IR, with a line `# launch:` as any file has, and lines that say what
//! tests expect of them, `# KEY: words`.

#![allow(dead_code)]

use std::path::Path;

use girih::spec::{ArgSpec, launch_comments};
use girih_compiler::kernel::ir::Kernel;
use girih_compiler::kernel::{parse::parse, verify::verify};
use girih_compiler::num::DType;

pub struct KernelFile {
    pub name: String,
    pub text: String,
    pub kernel: Kernel,
    pub grid: [u32; 3],
    /// By parameter.
    pub args: Vec<Given>,
}

/// The argument that a launch gives a parameter.
#[derive(Clone, Copy)]
pub enum Given {
    /// An array of this number of elements.
    Array(DType, u64),
    Number(DType, u64),
}

impl KernelFile {
    fn read(path: &Path) -> KernelFile {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).expect("it is read");
        let kernel = parse(&text).unwrap_or_else(|d| panic!("{name}: {}", d.message));
        assert_eq!(verify(&kernel), Vec::<String>::new(), "{name}");
        let launches = launch_comments(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let [launch] = launches.as_slice() else { panic!("{name}: {} launches", launches.len()) };
        let given = |param: &_| {
            let param = kernel.vals[*param].name.as_str();
            match launch.args.iter().find(|(name, _)| name == param) {
                Some((_, ArgSpec::Scalar { dtype, bits })) => Given::Number(*dtype, *bits),
                Some((_, ArgSpec::Fill { dtype, shape, .. })) => Given::Array(*dtype, shape.iter().product()),
                other => panic!("{name}: {param} is {other:?}"),
            }
        };
        let args = kernel.params.iter().map(given).collect();
        KernelFile { grid: launch.grid.expect("a grid"), args, name, text, kernel }
    }

    /// The rest of each line that begins with `key`, in order.
    pub fn said(&self, key: &str) -> Vec<&str> {
        self.text.lines().filter_map(|l| l.strip_prefix("# ")?.strip_prefix(key).map(str::trim)).collect()
    }
}

/// The kernels of a folder, by name.
pub fn of(folder: &str) -> Vec<KernelFile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| KernelFile::read(path)).collect()
}
