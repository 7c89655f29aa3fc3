//! The driver's error codes: one table of number, name and meaning.

use std::ffi::{CStr, c_int};

macro_rules! codes {
    ($($constant:ident = $number:literal, $meaning:literal;)*) => {
        $(pub const $constant: Code = Code($number);)*
        /// Number, name and meaning, by rising number.
        const ALL: &[(c_int, &CStr, &CStr)] = &[$((
            $number,
            match CStr::from_bytes_with_nul(concat!("CUDA_", stringify!($constant), "\0").as_bytes()) {
                Ok(text) => text,
                Err(_) => c"",
            },
            match CStr::from_bytes_with_nul(concat!($meaning, "\0").as_bytes()) {
                Ok(text) => text,
                Err(_) => c"",
            },
        ),)*];
    };
}

/// `CUresult`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Code(pub c_int);

impl Code {
    fn entry(self) -> Option<&'static (c_int, &'static CStr, &'static CStr)> {
        ALL.binary_search_by_key(&self.0, |e| e.0).ok().and_then(|at| ALL.get(at))
    }
    /// Such as `CUDA_ERROR_INVALID_VALUE`.
    pub fn name(self) -> Option<&'static CStr> {
        self.entry().map(|e| e.1)
    }
    pub fn meaning(self) -> Option<&'static CStr> {
        self.entry().map(|e| e.2)
    }
}

codes! {
    SUCCESS = 0, "success";
    ERROR_INVALID_VALUE = 1, "an argument is not valid";
    ERROR_OUT_OF_MEMORY = 2, "there is not enough memory";
    ERROR_NOT_INITIALIZED = 3, "cuInit has not been called";
    ERROR_DEINITIALIZED = 4, "the driver is shutting down";
    ERROR_PROFILER_DISABLED = 5, "no profiler is available";
    ERROR_PROFILER_NOT_INITIALIZED = 6, "the profiler is not initialised";
    ERROR_PROFILER_ALREADY_STARTED = 7, "the profiler has already started";
    ERROR_PROFILER_ALREADY_STOPPED = 8, "the profiler has already stopped";
    ERROR_STUB_LIBRARY = 34, "the library is a stub";
    ERROR_CALL_REQUIRES_NEWER_DRIVER = 36, "the call needs a newer driver";
    ERROR_DEVICE_UNAVAILABLE = 46, "the device is not available";
    ERROR_NO_DEVICE = 100, "there is no device";
    ERROR_INVALID_DEVICE = 101, "there is no device with that number";
    ERROR_DEVICE_NOT_LICENSED = 102, "the device has no licence";
    ERROR_INVALID_IMAGE = 200, "the program cannot be loaded";
    ERROR_INVALID_CONTEXT = 201, "no context is current, or the context is not valid";
    ERROR_CONTEXT_ALREADY_CURRENT = 202, "the context is already current";
    ERROR_MAP_FAILED = 205, "mapping failed";
    ERROR_UNMAP_FAILED = 206, "unmapping failed";
    ERROR_ARRAY_IS_MAPPED = 207, "the array is mapped";
    ERROR_ALREADY_MAPPED = 208, "the resource is already mapped";
    ERROR_NO_BINARY_FOR_GPU = 209, "the program holds no code for this device";
    ERROR_ALREADY_ACQUIRED = 210, "the resource is already acquired";
    ERROR_NOT_MAPPED = 211, "the resource is not mapped";
    ERROR_NOT_MAPPED_AS_ARRAY = 212, "the resource is not mapped as an array";
    ERROR_NOT_MAPPED_AS_POINTER = 213, "the resource is not mapped as a pointer";
    ERROR_ECC_UNCORRECTABLE = 214, "memory was damaged beyond correction";
    ERROR_UNSUPPORTED_LIMIT = 215, "the device has no such limit";
    ERROR_CONTEXT_ALREADY_IN_USE = 216, "the context is in use";
    ERROR_PEER_ACCESS_UNSUPPORTED = 217, "there is no peer access between the devices";
    ERROR_INVALID_PTX = 218, "the PTX is not valid";
    ERROR_INVALID_GRAPHICS_CONTEXT = 219, "the graphics context is not valid";
    ERROR_NVLINK_UNCORRECTABLE = 220, "a link failed beyond correction";
    ERROR_JIT_COMPILER_NOT_FOUND = 221, "no compiler was found";
    ERROR_UNSUPPORTED_PTX_VERSION = 222, "the PTX version is not supported";
    ERROR_JIT_COMPILATION_DISABLED = 223, "compilation at load is disabled";
    ERROR_UNSUPPORTED_EXEC_AFFINITY = 224, "the affinity is not supported";
    ERROR_UNSUPPORTED_DEVSIDE_SYNC = 225, "synchronising on the device is not supported";
    ERROR_CONTAINED = 226, "an error was contained";
    ERROR_INVALID_SOURCE = 300, "the source is not valid";
    ERROR_FILE_NOT_FOUND = 301, "the file was not found";
    ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302, "a symbol of a shared object was not found";
    ERROR_SHARED_OBJECT_INIT_FAILED = 303, "a shared object failed to initialise";
    ERROR_OPERATING_SYSTEM = 304, "the operating system refused";
    ERROR_INVALID_HANDLE = 400, "a handle is not valid";
    ERROR_ILLEGAL_STATE = 401, "the resource is in the wrong state";
    ERROR_LOSSY_QUERY = 402, "the query would lose information";
    ERROR_NOT_FOUND = 500, "the name was not found";
    ERROR_NOT_READY = 600, "the work has not finished";
    ERROR_ILLEGAL_ADDRESS = 700, "a kernel accessed memory that is not its own";
    ERROR_LAUNCH_OUT_OF_RESOURCES = 701, "the launch needs more resources than there are";
    ERROR_LAUNCH_TIMEOUT = 702, "the kernel took too long";
    ERROR_LAUNCH_INCOMPATIBLE_TEXTURING = 703, "the texturing modes differ";
    ERROR_PEER_ACCESS_ALREADY_ENABLED = 704, "peer access is already enabled";
    ERROR_PEER_ACCESS_NOT_ENABLED = 705, "peer access is not enabled";
    ERROR_PRIMARY_CONTEXT_ACTIVE = 708, "the primary context is in use";
    ERROR_CONTEXT_IS_DESTROYED = 709, "the context was destroyed";
    ERROR_ASSERT = 710, "an assertion failed in a kernel";
    ERROR_TOO_MANY_PEERS = 711, "there are too many peers";
    ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712, "the memory is already registered";
    ERROR_HOST_MEMORY_NOT_REGISTERED = 713, "the memory is not registered";
    ERROR_HARDWARE_STACK_ERROR = 714, "a stack was damaged";
    ERROR_ILLEGAL_INSTRUCTION = 715, "a kernel ran an illegal instruction";
    ERROR_MISALIGNED_ADDRESS = 716, "a kernel used an address that is not aligned";
    ERROR_INVALID_ADDRESS_SPACE = 717, "a kernel used the wrong address space";
    ERROR_INVALID_PC = 718, "a kernel jumped to a wrong place";
    ERROR_LAUNCH_FAILED = 719, "the kernel failed";
    ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720, "the cooperative launch has too many blocks";
    ERROR_TENSOR_MEMORY_LEAK = 721, "tensor memory was not freed";
    ERROR_NOT_PERMITTED = 800, "the call is not permitted";
    ERROR_NOT_SUPPORTED = 801, "the call is not supported";
    ERROR_SYSTEM_NOT_READY = 802, "the system is not ready";
    ERROR_SYSTEM_DRIVER_MISMATCH = 803, "the driver's parts do not match";
    ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804, "the device has no compatibility mode";
    ERROR_STREAM_CAPTURE_UNSUPPORTED = 900, "the call is not possible while a stream is captured";
    ERROR_STREAM_CAPTURE_INVALIDATED = 901, "the capture was ended by an earlier error";
    ERROR_TIMEOUT = 909, "the wait took too long";
    ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910, "the graph cannot be updated that way";
    ERROR_INVALID_CLUSTER_SIZE = 912, "the cluster size is not valid";
    ERROR_FUNCTION_NOT_LOADED = 913, "the function is not loaded";
    ERROR_INVALID_RESOURCE_TYPE = 914, "the resource is of the wrong type";
    ERROR_UNKNOWN = 999, "an internal error";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_complete() {
        assert!(ALL.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(ALL.iter().all(|e| !e.1.is_empty() && !e.2.is_empty()));
        assert_eq!(ERROR_ASSERT.name(), Some(c"CUDA_ERROR_ASSERT"));
        assert_eq!(SUCCESS.name(), Some(c"CUDA_SUCCESS"));
        assert_eq!(Code(12345).name(), None);
    }
}
