//! Folders of Python packages from which this code, or the command it is part of, may use the files of other packages: a C
//! compiler, NVIDIA's libraries.
//!
//! ```text
//! PREFIX/bin/girih                                                     the command of a wheel
//! PREFIX/lib/python3.12/site-packages/girih/_girih.abi3.so             the module of the same wheel
//!                                    /girih/bin/libcuda.so.1           its driver library
//!                                    /ziglang/zig                      what another package brings
//! ```

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The folder that the package is installed in; then those of the environment that VIRTUAL_ENV names; then those beside the
/// folder `bin` of the running program.
pub fn folders() -> Vec<PathBuf> {
    let exe = std::env::current_exe().ok();
    let environment = std::env::var_os("VIRTUAL_ENV").filter(|v| !v.is_empty()).map(PathBuf::from);
    let mut found: Vec<PathBuf> = own_image().as_deref().and_then(holding_package).into_iter().collect();
    found.extend(environment.iter().flat_map(|prefix| of_prefix(prefix)));
    let bin = exe.as_deref().and_then(Path::parent).filter(|f| f.file_name() == Some(OsStr::new("bin")));
    found.extend(bin.and_then(Path::parent).iter().flat_map(|prefix| of_prefix(prefix)));
    let mut seen = std::collections::HashSet::new();
    found.retain(|folder| seen.insert(folder.clone()));
    found
}

/// The package folders of a Python that is installed at a prefix (`sys.prefix`).
pub fn of_prefix(prefix: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for lib in ["lib", "lib64"] {
        let Ok(entries) = std::fs::read_dir(prefix.join(lib)) else { continue };
        let names = entries.flatten().map(|e| e.file_name());
        let mut versions: Vec<_> = names.filter(|n| n.to_string_lossy().starts_with("python3")).collect();
        versions.sort();
        found.extend(versions.iter().map(|n| prefix.join(lib).join(n).join("site-packages")));
    }
    found
}

/// The folder in which the package lies that a file of it belongs to.
fn holding_package(file: &Path) -> Option<PathBuf> {
    let package = file.ancestors().skip(1).find(|a| a.join("_library.py").is_file())?;
    package.parent().map(Path::to_path_buf)
}

/// The library or program that this code was loaded from.
fn own_image() -> Option<PathBuf> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: the address is one of this image, and `info` is written before it is read.
    let found = unsafe { libc::dladdr(own_image as *const libc::c_void, &mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's own name of the image, which stays while the image does.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Path::new(OsStr::from_bytes(name.to_bytes())).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_package_says_where_packages_are() {
        let root = std::env::temp_dir().join(format!("girih-packages-{}", std::process::id()));
        let site = root.join("lib/python3.12/site-packages");
        std::fs::create_dir_all(site.join("girih/bin")).unwrap();
        std::fs::write(site.join("girih/_library.py"), "").unwrap();
        for file in ["girih/_girih.abi3.so", "girih/bin/libcuda.so.1"] {
            assert_eq!(holding_package(&site.join(file)), Some(site.clone()), "{file}");
        }
        assert_eq!(holding_package(&site.join("other/_girih.abi3.so")), None);
        assert_eq!(of_prefix(&root), [site]);
        assert!(of_prefix(&root.join("nothing")).is_empty());
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_image_is_this_program() {
        assert_eq!(own_image(), std::env::current_exe().unwrap().canonicalize().ok());
    }
}
