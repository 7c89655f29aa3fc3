//! Which function goes by which name, and from which version of the interface on.
//!
//! Front ends ask `cuGetProcAddress` for a name and a version and get the newest form of the function that this version
//! has; or they look a form up by its own name (`cuMemAlloc_v2`) among the library's symbols.

use std::ffi::{c_int, c_ulonglong, c_void};

use crate::codes;
use crate::context::*;
use crate::driver;
use crate::failure::{Failure, Result};
use crate::ffi::{Out, Text};
use crate::graph::*;
use crate::launch::*;
use crate::memory::*;
use crate::module::*;
use crate::simt::*;
use crate::stream::*;

struct Entry {
    name: &'static str,
    /// The first version of the interface in which the name means this form.
    since: c_int,
    address: *const c_void,
}

// SAFETY: the addresses are those of functions.
unsafe impl Sync for Entry {}

macro_rules! entries {
    ($($function:ident: $name:literal $(since $since:literal)?,)*) => {
        &[$(Entry { name: $name, since: 0 $(+ $since)?, address: $function as *const c_void }),*]
    };
}

/// By name, then by version.
static ENTRIES: &[Entry] = entries! {
    cuCtxCreate_v2: "cuCtxCreate",
    cuCtxCreate_v4: "cuCtxCreate" since 12050,
    cuCtxDestroy_v2: "cuCtxDestroy",
    cuCtxGetApiVersion: "cuCtxGetApiVersion",
    cuCtxGetCacheConfig: "cuCtxGetCacheConfig",
    cuCtxGetCurrent: "cuCtxGetCurrent",
    cuCtxGetDevice: "cuCtxGetDevice",
    cuCtxGetDevice_v2: "cuCtxGetDevice" since 13000,
    cuCtxGetFlags: "cuCtxGetFlags",
    cuCtxGetId: "cuCtxGetId",
    cuCtxGetLimit: "cuCtxGetLimit",
    cuCtxGetStreamPriorityRange: "cuCtxGetStreamPriorityRange",
    cuCtxPopCurrent_v2: "cuCtxPopCurrent",
    cuCtxPushCurrent_v2: "cuCtxPushCurrent",
    cuCtxResetPersistingL2Cache: "cuCtxResetPersistingL2Cache",
    cuCtxSetCacheConfig: "cuCtxSetCacheConfig",
    cuCtxSetCurrent: "cuCtxSetCurrent",
    cuCtxSetFlags: "cuCtxSetFlags",
    cuCtxSetLimit: "cuCtxSetLimit",
    cuCtxSynchronize: "cuCtxSynchronize",
    cuCtxSynchronize_v2: "cuCtxSynchronize" since 13000,
    cuDeviceCanAccessPeer: "cuDeviceCanAccessPeer",
    cuDeviceComputeCapability: "cuDeviceComputeCapability",
    cuDeviceGet: "cuDeviceGet",
    cuDeviceGetAttribute: "cuDeviceGetAttribute",
    cuDeviceGetByPCIBusId: "cuDeviceGetByPCIBusId",
    cuDeviceGetCount: "cuDeviceGetCount",
    cuDeviceGetDefaultMemPool: "cuDeviceGetDefaultMemPool",
    cuDeviceGetMemPool: "cuDeviceGetMemPool",
    cuDeviceGetName: "cuDeviceGetName",
    cuDeviceGetPCIBusId: "cuDeviceGetPCIBusId",
    cuDeviceGetProperties: "cuDeviceGetProperties",
    cuDeviceGetUuid: "cuDeviceGetUuid",
    cuDeviceGetUuid_v2: "cuDeviceGetUuid" since 11040,
    cuDeviceGraphMemTrim: "cuDeviceGraphMemTrim",
    cuDevicePrimaryCtxGetState: "cuDevicePrimaryCtxGetState",
    cuDevicePrimaryCtxRelease_v2: "cuDevicePrimaryCtxRelease" since 11000,
    cuDevicePrimaryCtxReset_v2: "cuDevicePrimaryCtxReset" since 11000,
    cuDevicePrimaryCtxRetain: "cuDevicePrimaryCtxRetain",
    cuDevicePrimaryCtxSetFlags_v2: "cuDevicePrimaryCtxSetFlags" since 11000,
    cuDeviceSetMemPool: "cuDeviceSetMemPool",
    cuDeviceTotalMem_v2: "cuDeviceTotalMem",
    cuDriverGetVersion: "cuDriverGetVersion",
    cuEventCreate: "cuEventCreate",
    cuEventDestroy_v2: "cuEventDestroy",
    cuEventElapsedTime: "cuEventElapsedTime",
    cuEventElapsedTime_v2: "cuEventElapsedTime" since 12080,
    cuEventQuery: "cuEventQuery",
    cuEventRecord: "cuEventRecord",
    cuEventRecordWithFlags: "cuEventRecordWithFlags",
    cuEventSynchronize: "cuEventSynchronize",
    cuFuncGetAttribute: "cuFuncGetAttribute",
    cuFuncGetModule: "cuFuncGetModule",
    cuFuncGetName: "cuFuncGetName",
    cuFuncGetParamInfo: "cuFuncGetParamInfo",
    cuFuncIsLoaded: "cuFuncIsLoaded",
    cuFuncLoad: "cuFuncLoad",
    cuFuncSetAttribute: "cuFuncSetAttribute",
    cuFuncSetCacheConfig: "cuFuncSetCacheConfig",
    cuGetErrorName: "cuGetErrorName",
    cuGetErrorString: "cuGetErrorString",
    cuGetExportTable: "cuGetExportTable",
    cuGetProcAddress: "cuGetProcAddress",
    cuGetProcAddress_v2: "cuGetProcAddress" since 12000,
    cuGraphAddChildGraphNode: "cuGraphAddChildGraphNode",
    cuGraphAddEmptyNode: "cuGraphAddEmptyNode",
    cuGraphAddEventRecordNode: "cuGraphAddEventRecordNode",
    cuGraphAddEventWaitNode: "cuGraphAddEventWaitNode",
    cuGraphAddHostNode: "cuGraphAddHostNode",
    cuGraphAddKernelNode_v2: "cuGraphAddKernelNode",
    cuGraphAddMemAllocNode: "cuGraphAddMemAllocNode",
    cuGraphAddMemFreeNode: "cuGraphAddMemFreeNode",
    cuGraphAddMemcpyNode1D: "cuGraphAddMemcpyNode1D",
    cuGraphAddMemsetNode: "cuGraphAddMemsetNode",
    cuGraphCreate: "cuGraphCreate",
    cuGraphDestroy: "cuGraphDestroy",
    cuGraphExecDestroy: "cuGraphExecDestroy",
    cuGraphGetNodes: "cuGraphGetNodes",
    cuGraphInstantiate_v2: "cuGraphInstantiate",
    cuGraphInstantiateWithFlags: "cuGraphInstantiateWithFlags",
    cuGraphLaunch: "cuGraphLaunch",
    cuGraphUpload: "cuGraphUpload",
    cuInit: "cuInit",
    cuIpcCloseMemHandle: "cuIpcCloseMemHandle",
    cuIpcGetEventHandle: "cuIpcGetEventHandle",
    cuIpcGetMemHandle: "cuIpcGetMemHandle",
    cuIpcOpenEventHandle: "cuIpcOpenEventHandle",
    cuIpcOpenMemHandle_v2: "cuIpcOpenMemHandle",
    cuKernelGetAttribute: "cuKernelGetAttribute",
    cuKernelGetFunction: "cuKernelGetFunction",
    cuKernelGetLibrary: "cuKernelGetLibrary",
    cuKernelGetName: "cuKernelGetName",
    cuKernelGetParamInfo: "cuKernelGetParamInfo",
    cuKernelSetAttribute: "cuKernelSetAttribute",
    cuKernelSetCacheConfig: "cuKernelSetCacheConfig",
    cuLaunchCooperativeKernel: "cuLaunchCooperativeKernel",
    cuLaunchHostFunc: "cuLaunchHostFunc",
    cuLaunchKernel: "cuLaunchKernel",
    cuLaunchKernelEx: "cuLaunchKernelEx",
    cuLibraryEnumerateKernels: "cuLibraryEnumerateKernels",
    cuLibraryGetGlobal: "cuLibraryGetGlobal",
    cuLibraryGetKernel: "cuLibraryGetKernel",
    cuLibraryGetKernelCount: "cuLibraryGetKernelCount",
    cuLibraryGetModule: "cuLibraryGetModule",
    cuLibraryLoadData: "cuLibraryLoadData",
    cuLibraryLoadFromFile: "cuLibraryLoadFromFile",
    cuLibraryUnload: "cuLibraryUnload",
    cuMemAdvise: "cuMemAdvise",
    cuMemAdvise_v2: "cuMemAdvise" since 12020,
    cuMemAlloc_v2: "cuMemAlloc",
    cuMemAllocAsync: "cuMemAllocAsync",
    cuMemAllocFromPoolAsync: "cuMemAllocFromPoolAsync",
    cuMemAllocHost_v2: "cuMemAllocHost",
    cuMemAllocManaged: "cuMemAllocManaged",
    cuMemAllocPitch_v2: "cuMemAllocPitch",
    cuMemFree_v2: "cuMemFree",
    cuMemFreeAsync: "cuMemFreeAsync",
    cuMemFreeHost: "cuMemFreeHost",
    cuMemGetAddressRange_v2: "cuMemGetAddressRange",
    cuMemGetInfo_v2: "cuMemGetInfo",
    cuMemHostAlloc: "cuMemHostAlloc",
    cuMemHostGetDevicePointer_v2: "cuMemHostGetDevicePointer",
    cuMemHostGetFlags: "cuMemHostGetFlags",
    cuMemHostRegister_v2: "cuMemHostRegister",
    cuMemHostUnregister: "cuMemHostUnregister",
    cuMemPoolCreate: "cuMemPoolCreate",
    cuMemPoolDestroy: "cuMemPoolDestroy",
    cuMemPoolGetAttribute: "cuMemPoolGetAttribute",
    cuMemPoolSetAccess: "cuMemPoolSetAccess",
    cuMemPoolSetAttribute: "cuMemPoolSetAttribute",
    cuMemPoolTrimTo: "cuMemPoolTrimTo",
    cuMemPrefetchAsync: "cuMemPrefetchAsync",
    cuMemPrefetchAsync_v2: "cuMemPrefetchAsync" since 12020,
    cuMemcpy: "cuMemcpy",
    cuMemcpy2D_v2: "cuMemcpy2D",
    cuMemcpy2DAsync_v2: "cuMemcpy2DAsync",
    cuMemcpy2DUnaligned_v2: "cuMemcpy2DUnaligned",
    cuMemcpyAsync: "cuMemcpyAsync",
    cuMemcpyDtoD_v2: "cuMemcpyDtoD",
    cuMemcpyDtoDAsync_v2: "cuMemcpyDtoDAsync",
    cuMemcpyDtoH_v2: "cuMemcpyDtoH",
    cuMemcpyDtoHAsync_v2: "cuMemcpyDtoHAsync",
    cuMemcpyHtoD_v2: "cuMemcpyHtoD",
    cuMemcpyHtoDAsync_v2: "cuMemcpyHtoDAsync",
    cuMemcpyPeer: "cuMemcpyPeer",
    cuMemcpyPeerAsync: "cuMemcpyPeerAsync",
    cuMemsetD16_v2: "cuMemsetD16",
    cuMemsetD16Async: "cuMemsetD16Async",
    cuMemsetD2D16_v2: "cuMemsetD2D16",
    cuMemsetD2D32_v2: "cuMemsetD2D32",
    cuMemsetD2D8_v2: "cuMemsetD2D8",
    cuMemsetD32_v2: "cuMemsetD32",
    cuMemsetD32Async: "cuMemsetD32Async",
    cuMemsetD8_v2: "cuMemsetD8",
    cuMemsetD8Async: "cuMemsetD8Async",
    cuModuleGetFunction: "cuModuleGetFunction",
    cuModuleGetFunctionCount: "cuModuleGetFunctionCount",
    cuModuleGetGlobal_v2: "cuModuleGetGlobal",
    cuModuleGetLoadingMode: "cuModuleGetLoadingMode",
    cuModuleLoad: "cuModuleLoad",
    cuModuleLoadData: "cuModuleLoadData",
    cuModuleLoadDataEx: "cuModuleLoadDataEx",
    cuModuleLoadFatBinary: "cuModuleLoadFatBinary",
    cuModuleUnload: "cuModuleUnload",
    cuOccupancyMaxActiveBlocksPerMultiprocessor: "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags: "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    cuPointerGetAttribute: "cuPointerGetAttribute",
    cuPointerGetAttributes: "cuPointerGetAttributes",
    cuPointerSetAttribute: "cuPointerSetAttribute",
    cuProfilerStart: "cuProfilerStart",
    cuProfilerStop: "cuProfilerStop",
    cuStreamAddCallback: "cuStreamAddCallback",
    cuStreamAttachMemAsync: "cuStreamAttachMemAsync",
    cuStreamBeginCapture_v2: "cuStreamBeginCapture",
    cuStreamCreate: "cuStreamCreate",
    cuStreamCreateWithPriority: "cuStreamCreateWithPriority",
    cuStreamDestroy_v2: "cuStreamDestroy",
    cuStreamEndCapture: "cuStreamEndCapture",
    cuStreamGetCaptureInfo_v2: "cuStreamGetCaptureInfo",
    cuStreamGetCtx: "cuStreamGetCtx",
    cuStreamGetDevice: "cuStreamGetDevice",
    cuStreamGetFlags: "cuStreamGetFlags",
    cuStreamGetId: "cuStreamGetId",
    cuStreamGetPriority: "cuStreamGetPriority",
    cuStreamIsCapturing: "cuStreamIsCapturing",
    cuStreamQuery: "cuStreamQuery",
    cuStreamSynchronize: "cuStreamSynchronize",
    cuStreamWaitEvent: "cuStreamWaitEvent",
    cuTensorMapEncodeTiled: "cuTensorMapEncodeTiled",
    cuThreadExchangeStreamCaptureMode: "cuThreadExchangeStreamCaptureMode",
};

fn find(name: &str, version: c_int) -> (Option<*const c_void>, Found) {
    let from = ENTRIES.partition_point(|e| e.name < name);
    let forms = ENTRIES.iter().skip(from).take_while(|e| e.name == name);
    let mut found = Found::Missing;
    let mut address = None;
    for form in forms {
        if form.since <= version {
            (address, found) = (Some(form.address), Found::Success);
        } else if address.is_none() {
            found = Found::TooNew;
        }
    }
    (address, found)
}

/// `CUdriverProcAddressQueryResult`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub enum Found {
    Success,
    Missing,
    TooNew,
}

fn look_up(name: Text, out: Out<*const c_void>, version: c_int, found: Option<Out<Found>>) -> Result<()> {
    let name = name.get()?;
    let (address, status) = find(&name, version);
    out.set(address.unwrap_or(std::ptr::null()))?;
    if let Some(found) = found {
        found.set_if(status);
    }
    match status {
        Found::Success => Ok(()),
        _ => Err(Failure::new(codes::ERROR_NOT_FOUND, format!("unknown driver function `{name}`"))),
    }
}

driver! {
    fn cuGetProcAddress(name: Text, out: Out<*const c_void>, version: c_int, _flags: c_ulonglong) {
        look_up(name, out, version, None)
    }
    fn cuGetProcAddress_v2(
        name: Text, out: Out<*const c_void>, version: c_int, _flags: c_ulonglong, found: Out<Found>,
    ) {
        look_up(name, out, version, Some(found))
    }
    fn cuGetExportTable(_out: Out<*const c_void>, _id: *const c_void) {
        Err(Failure::new(codes::ERROR_NOT_FOUND, "there are no export tables"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        let keys: Vec<_> = ENTRIES.iter().map(|e| (e.name, e.since)).collect();
        assert!(keys.windows(2).all(|w| w[0] < w[1]), "{keys:?}");
    }

    #[test]
    fn versions_choose_the_form() {
        let address = |f: *const c_void| (Some(f), Found::Success);
        assert_eq!(find("cuCtxGetDevice", 12080), address(cuCtxGetDevice as *const c_void));
        assert_eq!(find("cuCtxGetDevice", 13000), address(cuCtxGetDevice_v2 as *const c_void));
        assert_eq!(find("cuMemAlloc", 12000), address(cuMemAlloc_v2 as *const c_void));
        assert_eq!(find("cuNoSuchThing", 13000), (None, Found::Missing));
        assert_eq!(find("cuCtxSynchronize_v2", 13000), (None, Found::Missing));
    }
}
