//! A GPU: what it is, its memory, and the kernels that it has loaded.

use std::collections::BTreeMap;
use std::ffi::{CString, c_int, c_void};
use std::sync::{Arc, Mutex, OnceLock};

use super::driver::{Address, Driver, Handle};
use super::{Error, Result};

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
const CAPABILITY: [c_int; 2] = [75, 76];
/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const DYNAMIC_SHARED: c_int = 8;
/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`, and its value for device memory.
const MEMORY_TYPE: c_int = 2;
/// `CU_POINTER_ATTRIBUTE_RANGE_START_ADDR`, which only allocations have.
const RANGE_START: c_int = 11;
const ON_DEVICE: u32 = 2;

/// The first GPU of the process.
pub struct Device {
    pub driver: &'static Driver,
    pub name: String,
    pub capability: (u32, u32),
    /// The name of the Girih target that it runs.
    pub target: &'static str,
    context: Handle,
    modules: Mutex<BTreeMap<String, Arc<Module>>>,
}

/// The target whose machine code a compute capability runs.
pub fn target_of(capability: (u32, u32)) -> Option<&'static str> {
    match capability {
        (8, _) => Some("sm_80"),
        (9, 0) => Some("sm_90a"),
        (10, 0) => Some("sm_100a"),
        (12, _) => Some("sm_120"),
        _ => None,
    }
}

impl Device {
    /// The device of this process, current on this thread.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::NoDevice`].
    pub fn get() -> Result<&'static Device> {
        let device = Device::found()?;
        let driver = device.driver;
        // SAFETY: the context was retained and stays.
        driver.expect("cuCtxSetCurrent", unsafe { (driver.functions.set_context)(device.context) })?;
        Ok(device)
    }

    /// The device of this process.
    ///
    /// # Errors
    /// As of [`Device::get`].
    pub fn found() -> Result<&'static Device> {
        static DEVICE: OnceLock<Result<Device>> = OnceLock::new();
        DEVICE.get_or_init(Device::open).as_ref().map_err(Error::clone)
    }

    fn open() -> Result<Device> {
        let driver = Driver::get()?;
        let f = &driver.functions;
        let none = |what: String| Error::NoDevice { what };
        // SAFETY: every place that a function writes is one of this frame.
        unsafe {
            driver.expect("cuInit", (f.init)(0)).map_err(|e| none(format!("the driver finds no GPU ({e})")))?;
            let mut count = 0;
            driver.expect("cuDeviceGetCount", (f.device_count)(&mut count))?;
            if count < 1 {
                return Err(none("the driver finds no GPU".to_string()));
            }
            let (mut number, mut context, mut name) = (0, 0, [0 as std::ffi::c_char; 128]);
            driver.expect("cuDeviceGet", (f.device)(&mut number, 0))?;
            driver.expect("cuDeviceGetName", (f.device_name)(name.as_mut_ptr(), name.len() as c_int, number))?;
            let bytes: Vec<u8> = name.iter().map(|c| *c as u8).take_while(|c| *c != 0).collect();
            let name = String::from_utf8_lossy(&bytes).into_owned();
            let mut of = [0; 2];
            for (value, attribute) in of.iter_mut().zip(CAPABILITY) {
                driver.expect("cuDeviceGetAttribute", (f.device_attribute)(value, attribute, number))?;
            }
            let capability = (of[0] as u32, of[1] as u32);
            let target = target_of(capability).ok_or_else(|| {
                let (major, minor) = capability;
                none(format!(
                    "{name} has compute capability {major}.{minor}; kernels are compiled for 8.x, 9.0, 10.0 and 12.x"
                ))
            })?;
            driver.expect("cuDevicePrimaryCtxRetain", (f.retain_context)(&mut context, number))?;
            Ok(Device { driver, name, capability, target, context, modules: Mutex::default() })
        }
    }

    /// The module of an image, loaded once for each `key`.
    pub fn module(
        &'static self,
        key: &str,
        image: impl FnOnce() -> crate::Result<Vec<u8>>,
    ) -> crate::Result<Arc<Module>> {
        let mut modules = self.modules.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(found) = modules.get(key) {
            return Ok(found.clone());
        }
        let image = image()?;
        let mut handle = 0;
        // SAFETY: the image is a whole one.
        let status = unsafe { (self.driver.functions.load)(&mut handle, image.as_ptr().cast()) };
        self.driver.expect("cuModuleLoadData", status)?;
        let module = Arc::new(Module { device: self, handle, functions: Mutex::default() });
        modules.insert(key.to_string(), module.clone());
        Ok(module)
    }

    /// Memory of the device; nothing for no bytes.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn allocate(&'static self, bytes: u64) -> Result<Memory> {
        let mut address = 0;
        if bytes > 0 {
            // SAFETY: it writes the address.
            let status = unsafe { (self.driver.functions.allocate)(&mut address, bytes as usize) };
            self.driver.expect("cuMemAlloc", status)?;
        }
        Ok(Memory { device: self, address, bytes })
    }

    /// Returns true if an address lies in the device's memory.
    pub fn has(&self, address: u64) -> bool {
        let (mut kind, mut start) = (0u32, 0u64);
        let ask = |to: *mut c_void, number| {
            // SAFETY: it writes exactly the bytes of the attribute, or reports that the address is unknown.
            unsafe { (self.driver.functions.pointer_attribute)(to, number, address) == 0 }
        };
        address != 0
            && ask((&raw mut start).cast(), RANGE_START)
            && ask((&raw mut kind).cast(), MEMORY_TYPE)
            && kind == ON_DEVICE
    }

    /// Waits for all that a stream does; 0 is that of the device.
    ///
    /// # Errors
    /// A kernel failed.
    pub fn synchronize(&self, stream: Handle) -> Result<()> {
        // SAFETY: the stream is the caller's, or 0.
        self.driver.expect("cuStreamSynchronize", unsafe { (self.driver.functions.synchronize)(stream) })
    }
}

/// Kernels that the device has loaded; they stay as long as the process lives.
pub struct Module {
    device: &'static Device,
    handle: Handle,
    functions: Mutex<BTreeMap<String, usize>>,
}

impl Module {
    /// A kernel that may have so much dynamic shared memory.
    ///
    /// # Errors
    /// The module does not have it, or the device not as much memory.
    pub fn function(&self, name: &str, shared: u64) -> Result<Handle> {
        let mut functions = self.functions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(found) = functions.get(name) {
            return Ok(*found);
        }
        let driver = self.device.driver;
        let mut function = 0;
        let text = c_string(name);
        // SAFETY: the module is loaded; the name ends in zero.
        let status = unsafe { (driver.functions.function)(&mut function, self.handle, text.as_ptr()) };
        driver.expect("cuModuleGetFunction", status)?;
        if shared > 0 {
            // SAFETY: the function is the module's.
            let status = unsafe { (driver.functions.set_attribute)(function, DYNAMIC_SHARED, shared as c_int) };
            driver.expect("cuFuncSetAttribute", status)?;
        }
        functions.insert(name.to_string(), function);
        Ok(function)
    }

    /// Where a global lies, and its bytes.
    ///
    /// # Errors
    /// The module does not have it.
    pub fn global(&self, name: &str) -> Result<(Address, u64)> {
        let (mut address, mut bytes, text) = (0, 0, c_string(name));
        // SAFETY: as above; both results have a place.
        let status =
            unsafe { (self.device.driver.functions.global)(&mut address, &mut bytes, self.handle, text.as_ptr()) };
        self.device.driver.expect("cuModuleGetGlobal", status)?;
        Ok((address, bytes as u64))
    }
}

fn c_string(name: &str) -> CString {
    CString::new(name).unwrap_or_default()
}

/// Memory of the device, freed with the value.
pub struct Memory {
    pub device: &'static Device,
    pub address: Address,
    pub bytes: u64,
}

impl Memory {
    /// # Errors
    /// The driver's.
    pub fn fill(&self, from: &[u8]) -> Result<()> {
        to_device(self.device, self.address, &from[..from.len().min(self.bytes as usize)])
    }

    /// # Errors
    /// The driver's.
    pub fn read(&self, to: &mut [u8]) -> Result<()> {
        let count = to.len().min(self.bytes as usize);
        to_host(self.device, &mut to[..count], self.address)
    }
}

/// Copies from the host. All streams see the copied bytes: the driver's call may return while the device still copies what it
/// took from pageable memory.
///
/// # Errors
/// The driver's.
pub fn to_device(device: &Device, to: Address, from: &[u8]) -> Result<()> {
    if from.is_empty() {
        return Ok(());
    }
    // SAFETY: the driver knows how far its memory goes.
    let status = unsafe { (device.driver.functions.to_device)(to, from.as_ptr().cast(), from.len()) };
    device.driver.expect("cuMemcpyHtoD", status)?;
    device.synchronize(0)
}

/// Begins a copy from one place of the device to another, on a stream.
///
/// # Errors
/// The driver's.
pub fn copy(device: &Device, to: Address, from: Address, bytes: u64, stream: Handle) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the driver checks its own allocations; callers vouch for other memory.
    let status = unsafe { (device.driver.functions.copy)(to, from, bytes as usize, stream) };
    device.driver.expect("cuMemcpyDtoDAsync", status)
}

/// Copies to the host.
///
/// # Errors
/// The driver's.
pub fn to_host(device: &Device, to: &mut [u8], from: Address) -> Result<()> {
    if to.is_empty() {
        return Ok(());
    }
    // SAFETY: as above; the slice is as long as it says.
    let status = unsafe { (device.driver.functions.to_host)(to.as_mut_ptr().cast(), from, to.len()) };
    device.driver.expect("cuMemcpyDtoH", status)
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.address != 0 {
            // SAFETY: it was allocated, and is freed once.
            unsafe { (self.device.driver.functions.free)(self.address) };
        }
    }
}

/// A moment of a stream.
pub struct Event {
    device: &'static Device,
    handle: Handle,
}

impl Event {
    /// # Errors
    /// The driver's.
    pub fn new(device: &'static Device) -> Result<Event> {
        let mut handle = 0;
        // SAFETY: it writes the event.
        device.driver.expect("cuEventCreate", unsafe { (device.driver.functions.event)(&mut handle, 0) })?;
        Ok(Event { device, handle })
    }

    /// Marks the moment at which all work queued on a stream until now is done.
    ///
    /// # Errors
    /// The driver's.
    pub fn record(&self, stream: Handle) -> Result<()> {
        let driver = self.device.driver;
        // SAFETY: the event was made; the stream is the caller's, or 0.
        driver.expect("cuEventRecord", unsafe { (driver.functions.record)(self.handle, stream) })
    }

    /// Work that is begun on a stream from now on waits for it.
    ///
    /// # Errors
    /// The driver's.
    pub fn before(&self, stream: Handle) -> Result<()> {
        let driver = self.device.driver;
        // SAFETY: as above.
        driver.expect("cuStreamWaitEvent", unsafe { (driver.functions.wait_for)(stream, self.handle, 0) })
    }

    /// Waits for it.
    ///
    /// # Errors
    /// Something that was begun before failed.
    pub fn synchronize(&self) -> Result<()> {
        let driver = self.device.driver;
        // SAFETY: the event was made.
        driver.expect("cuEventSynchronize", unsafe { (driver.functions.synchronize_event)(self.handle) })
    }

    /// The milliseconds from this to a later one; both are over.
    ///
    /// # Errors
    /// One was never recorded.
    pub fn until(&self, later: &Event) -> Result<f32> {
        let (mut milliseconds, driver) = (0f32, self.device.driver);
        // SAFETY: both events were made; it writes the time.
        let status = unsafe { (driver.functions.elapsed)(&mut milliseconds, self.handle, later.handle) };
        driver.expect("cuEventElapsedTime", status)?;
        Ok(milliseconds)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: it was made, and is destroyed once.
        unsafe { (self.device.driver.functions.destroy_event)(self.handle) };
    }
}
