//! The driver, `libcuda.so.1`: some of its functions, found at run time.
//!
//! GIRIH_CUDA_DRIVER names another library, such as the stand-in of `girih-shim`, which runs kernels on the simulator. A driver
//! is never unloaded.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library;

use super::{Error, Result};

/// The variable that names a driver.
pub const VARIABLE: &str = "GIRIH_CUDA_DRIVER";
const NAME: &str = "libcuda.so.1";

/// A context, module, function, stream or event: an address of the driver's own.
pub type Handle = usize;
/// An address on the device.
pub type Address = u64;
/// 0 is success.
pub type Status = c_int;

/// `CUtensorMap`: opaque, and aligned as the driver wants it.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct TensorMap(pub [u64; 16]);

macro_rules! functions {
    ($($field:ident: $symbol:literal ($($arg:ty),*);)*) => {
        /// The functions, by purpose.
        pub struct Functions {
            $(pub $field: unsafe extern "C" fn($($arg),*) -> Status,)*
        }

        impl Functions {
            fn find(library: &Library) -> std::result::Result<Functions, &'static str> {
                Ok(Functions {
                    $($field: {
                        // SAFETY: the driver's interface gives the function of this name this type.
                        let found = unsafe { library.get::<unsafe extern "C" fn($($arg),*) -> Status>($symbol.as_bytes()) };
                        *found.map_err(|_| $symbol)?
                    },)*
                })
            }
        }
    };
}

functions! {
    init: "cuInit" (c_uint);
    version: "cuDriverGetVersion" (*mut c_int);
    error_name: "cuGetErrorName" (Status, *mut *const c_char);
    error_text: "cuGetErrorString" (Status, *mut *const c_char);
    device_count: "cuDeviceGetCount" (*mut c_int);
    device: "cuDeviceGet" (*mut c_int, c_int);
    device_name: "cuDeviceGetName" (*mut c_char, c_int, c_int);
    device_attribute: "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    retain_context: "cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
    set_context: "cuCtxSetCurrent" (Handle);
    load: "cuModuleLoadData" (*mut Handle, *const c_void);
    function: "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    global: "cuModuleGetGlobal_v2" (*mut Address, *mut usize, Handle, *const c_char);
    set_attribute: "cuFuncSetAttribute" (Handle, c_int, c_int);
    allocate: "cuMemAlloc_v2" (*mut Address, usize);
    free: "cuMemFree_v2" (Address);
    to_device: "cuMemcpyHtoD_v2" (Address, *const c_void, usize);
    to_host: "cuMemcpyDtoH_v2" (*mut c_void, Address, usize);
    copy: "cuMemcpyDtoDAsync_v2" (Address, Address, usize, Handle);
    pointer_attribute: "cuPointerGetAttribute" (*mut c_void, c_int, Address);
    tensor_map: "cuTensorMapEncodeTiled" (
        *mut TensorMap, c_int, c_uint, Address, *const u64, *const u64, *const u32, *const u32, c_int, c_int, c_int, c_int
    );
    launch: "cuLaunchKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *const *const c_void, *const *const c_void
    );
    synchronize: "cuStreamSynchronize" (Handle);
    wait_for: "cuStreamWaitEvent" (Handle, Handle, c_uint);
    event: "cuEventCreate" (*mut Handle, c_uint);
    record: "cuEventRecord" (Handle, Handle);
    synchronize_event: "cuEventSynchronize" (Handle);
    elapsed: "cuEventElapsedTime" (*mut f32, Handle, Handle);
    destroy_event: "cuEventDestroy_v2" (Handle);
}

/// A driver that was found.
pub struct Driver {
    library: ManuallyDrop<Library>,
    /// The file, or the name that the system found it by.
    pub path: PathBuf,
    pub functions: Functions,
}

impl Driver {
    /// The driver of this process.
    ///
    /// # Errors
    /// [`Error::NoDriver`]; [`Error::Unusable`] for a file that is not a driver.
    pub fn get() -> Result<&'static Driver> {
        static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();
        let found = DRIVER.get_or_init(|| {
            let named = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()).map(PathBuf::from);
            Driver::open(named.as_deref().unwrap_or(Path::new(NAME)), named.is_some())
        });
        found.as_ref().map_err(Error::clone)
    }

    fn open(path: &Path, named: bool) -> Result<Driver> {
        // SAFETY: a driver's initialisers set up its own data; the user who names a file vouches for its contents, as for
        // any library on the loader's path.
        let library = unsafe { Library::new(path) }.map_err(|e| {
            let reason = std::error::Error::source(&e).map_or_else(|| e.to_string(), |s| s.to_string());
            if named { Error::Unusable { path: path.into(), reason } } else { Error::NoDriver { reason } }
        })?;
        let library = ManuallyDrop::new(library);
        let missing = |name| Error::Unusable { path: path.into(), reason: format!("it has no function {name}") };
        let functions = Functions::find(&library).map_err(missing)?;
        Ok(Driver { library, path: path.into(), functions })
    }

    /// Returns true if it is the stand-in, which needs no machine code.
    pub fn is_stand_in(&self) -> bool {
        // SAFETY: the symbol is only looked for.
        unsafe { self.library.get::<*const c_void>(b"girih_shim_version") }.is_ok()
    }

    /// The stand-in's description of its last failure.
    fn details(&self) -> Option<String> {
        type Last = unsafe extern "C" fn() -> *const c_char;
        // SAFETY: the function of this name has this type; the text lives until the next call on this thread.
        let text = unsafe { self.library.get::<Last>(b"girih_shim_last_error").ok()?() };
        if text.is_null() {
            return None;
        }
        // SAFETY: it is not null, so it ends in zero.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        let all: serde_json::Value = serde_json::from_str(&text).ok()?;
        all["message"].as_str().map(str::to_string)
    }

    /// The error of a call that failed.
    ///
    /// # Errors
    /// [`Error::Driver`] unless the status is 0.
    pub fn expect(&self, call: &'static str, status: Status) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        let text = |f: unsafe extern "C" fn(Status, *mut *const c_char) -> Status| {
            let mut text = std::ptr::null();
            // SAFETY: it writes the address of a constant text, or leaves null.
            unsafe { f(status, &mut text) };
            // SAFETY: not null, so a text that ends in zero.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        let details = self.details();
        let reason = details.or_else(|| text(self.functions.error_text)).unwrap_or_default();
        let name = text(self.functions.error_name).unwrap_or_else(|| format!("error {status}"));
        Err(Error::Driver { call, name, reason })
    }
}
