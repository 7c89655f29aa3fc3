//! The library as a front end meets it: opened at run time and called through its C interface.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use girih_compiler::cuda_tile::bytecode;
use libloading::Library;
use serde_json::Value;

/// The library that cargo built beside this test.
fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let exe = std::env::current_exe().unwrap();
        let deps = exe.parent().unwrap();
        let path: PathBuf = deps.join(format!("{}cuda{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX));
        // SAFETY: the library does nothing when it is loaded.
        unsafe { Library::new(path) }.unwrap()
    })
}

/// Calls a function by its symbol; every argument is an integer or a pointer.
macro_rules! call {
    ($name:ident($($arg:expr => $ty:ty),* $(,)?)) => {{
        // SAFETY: each test passes the arguments that the driver's documentation gives for the function.
        unsafe {
            let f = library().get::<unsafe extern "C" fn($($ty),*) -> c_int>(stringify!($name).as_bytes()).unwrap();
            f($($arg),*)
        }
    }};
}

type Handle = usize;

fn last() -> Value {
    // SAFETY: the function takes nothing and gives text or null.
    unsafe {
        let f = library().get::<unsafe extern "C" fn() -> *const c_char>(b"girih_shim_last_error").unwrap();
        let text = f();
        if text.is_null() { Value::Null } else { serde_json::from_str(CStr::from_ptr(text).to_str().unwrap()).unwrap() }
    }
}

/// Options are the process's: tests that launch take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    options(r#"{"device": "cpu", "check": false, "threads": 2, "cache": "off"}"#);
    turn
}

fn options(json: &str) {
    let json = CString::new(json).unwrap();
    assert_eq!(call!(girih_shim_set_options(json.as_ptr() => *const c_char)), 0, "{}", last());
}

fn load(image: &[u8]) -> (c_int, Handle) {
    let mut library: Handle = 0;
    let null = std::ptr::null::<c_void>;
    let code = call!(cuLibraryLoadData(
        &mut library => *mut Handle, image.as_ptr() => *const u8, null() => *const c_void, null() => *const c_void,
        0 => c_uint, null() => *const c_void, null() => *const c_void, 0 => c_uint));
    (code, library)
}

fn kernel(library: Handle, name: &CStr) -> Handle {
    let mut kernel: Handle = 0;
    let code = call!(cuLibraryGetKernel(
        &mut kernel => *mut Handle, library => Handle, name.as_ptr() => *const c_char));
    assert_eq!(code, 0, "{}", last());
    kernel
}

fn launch(kernel: Handle, grid: [c_uint; 3], args: &[*const c_void]) -> c_int {
    call!(cuLaunchKernel(
        kernel => Handle, grid[0] => c_uint, grid[1] => c_uint, grid[2] => c_uint, 1 => c_uint, 1 => c_uint,
        1 => c_uint, 0 => c_uint, 0 => Handle, args.as_ptr() => *const *const c_void, 0 => usize))
}

fn alloc(bytes: usize) -> u64 {
    let mut address = 0u64;
    assert_eq!(call!(cuMemAlloc_v2(&mut address => *mut u64, bytes => usize)), 0, "{}", last());
    address
}

fn free(address: u64) -> c_int {
    call!(cuMemFree_v2(address => u64))
}

/// An entry named as cuTile names it: an f32 array of rank 1 with stride 1, and a float. It doubles the array, adding the
/// float, 16 elements a block.
const DOUBLE: &str = "cuda_tile.module @kernels {
  entry @double_Kt1_A1f32_1t1_p16_Sf32(%x: tile<ptr<f32>>, %n: tile<i32>, %s: tile<i32>, %c: tile<f32>) {
    %block, %by, %bz = get_tile_block_id : tile<i32>
    %xs = make_tensor_view %x, shape = [%n], strides = [1] : tile<i32> -> tensor_view<?xf32, strides=[1]>
    %xt = make_partition_view %xs : partition_view<tile=(16), padding_value = zero, tensor_view<?xf32, strides=[1]>>
    %a, %t0 = load_view_tko weak %xt[%block]
      : partition_view<tile=(16), padding_value = zero, tensor_view<?xf32, strides=[1]>>, tile<i32> -> tile<16xf32>, token
    %c1 = reshape %c : tile<f32> -> tile<1xf32>
    %cs = broadcast %c1 : tile<1xf32> -> tile<16xf32>
    %b = addf %a, %a : tile<16xf32>
    %d = addf %b, %cs : tile<16xf32>
    %t1 = store_view_tko weak %d, %xt[%block]
      : tile<16xf32>, partition_view<tile=(16), padding_value = zero, tensor_view<?xf32, strides=[1]>>, tile<i32> -> token
  }
  entry @assert_Kt1_Si32(%n: tile<i32>) {
    %zero = constant <i32: 0> : tile<i32>
    %ok = cmpi equal %n, %zero, signed : tile<i32> -> tile<i1>
    assert %ok, \"n must be zero\" : tile<i1>
  }
  entry @gather_Kt1_A1f32_1t1_Si32(%x: tile<ptr<f32>>, %n: tile<i32>, %s: tile<i32>, %at: tile<i32>) {
    %p = offset %x, %at : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %v, %t0 = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
    %t1 = store_ptr_tko weak %x, %v : tile<ptr<f32>>, tile<f32> -> token
  }
  entry @forever(%p: tile<ptr<i32>>) {
    loop {
      %v, %t0 = load_ptr_tko relaxed device %p : tile<ptr<i32>> -> tile<i32>, token
      %zero = constant <i32: 0> : tile<i32>
      %done = cmpi not_equal %v, %zero, signed : tile<i32> -> tile<i1>
      if %done { break }
      continue
    }
  }
  entry @same(%x: tile<ptr<f32>>) {
    %one = constant <f32: 1.0> : tile<f32>
    %t = store_ptr_tko weak %x, %one : tile<ptr<f32>>, tile<f32> -> token
  }
  entry @say(%n: tile<i32>) {
    %block, %by, %bz = get_tile_block_id : tile<i32>
    %t = print_tko \"block %d of %d\\0A\", %block, %n : tile<i32>, tile<i32> -> token
  }
}
\0";

/// An entry under a name of its own: it doubles sixteen floats.
const PLAIN: &str = "cuda_tile.module @kernels {
  entry @double(%x: tile<ptr<f32>>) {
    %zero = constant <i32: 0> : tile<i32>
    %xs = make_tensor_view %x, shape = [16], strides = [1] : tensor_view<16xf32, strides=[1]>
    %xt = make_partition_view %xs : partition_view<tile=(16), tensor_view<16xf32, strides=[1]>>
    %a, %t0 = load_view_tko weak %xt[%zero]
      : partition_view<tile=(16), tensor_view<16xf32, strides=[1]>>, tile<i32> -> tile<16xf32>, token
    %b = addf %a, %a : tile<16xf32>
    %t1 = store_view_tko weak %b, %xt[%zero]
      : tile<16xf32>, partition_view<tile=(16), tensor_view<16xf32, strides=[1]>>, tile<i32> -> token
  }
}";

fn program() -> Handle {
    let (code, library) = load(DOUBLE.as_bytes());
    assert_eq!(code, 0, "{}", last());
    library
}

fn pointer<T>(value: &T) -> *const c_void {
    std::ptr::from_ref(value).cast()
}

#[test]
fn memory_is_given_copied_and_taken_back() {
    let a = alloc(100);
    assert_eq!(a % 256, 0);
    assert_eq!(call!(cuMemsetD8_v2(a => u64, 7 => u8, 100 => usize)), 0);
    let mut host = [0u8; 100];
    assert_eq!(call!(cuMemcpyDtoH_v2(host.as_mut_ptr() => *mut u8, a => u64, 100 => usize)), 0);
    assert_eq!(host, [7; 100]);
    let (mut start, mut bytes) = (0u64, 0usize);
    assert_eq!(call!(cuMemGetAddressRange_v2(&mut start => *mut u64, &mut bytes => *mut usize, a + 50 => u64)), 0);
    assert_eq!((start, bytes), (a, 100));
    // Past the end, from null, of nothing, and too much.
    assert_eq!(call!(cuMemcpyDtoH_v2(host.as_mut_ptr() => *mut u8, a + 1 => u64, 100 => usize)), 1);
    assert!(last()["message"].as_str().unwrap().contains("ends past its allocation of 100 bytes"));
    assert_eq!(call!(cuMemcpyHtoD_v2(a => u64, 0 => usize, 4 => usize)), 1);
    assert_eq!(call!(cuMemcpyHtoD_v2(a => u64, 0 => usize, 0 => usize)), 0);
    let mut out = 0u64;
    assert_eq!(call!(cuMemAlloc_v2(&mut out => *mut u64, 0 => usize)), 1);
    assert_eq!(call!(cuMemAlloc_v2(&mut out => *mut u64, usize::MAX => usize)), 2);
    assert_eq!(call!(cuMemAlloc_v2(&mut out => *mut u64, usize::MAX / 2 => usize)), 2);
    assert_eq!(call!(cuMemAlloc_v2(std::ptr::null_mut() => *mut u64, 8 => usize)), 1);
    // A second free, a free of the middle, of somebody else's, of nothing.
    assert_eq!(free(a + 8), 1);
    assert_eq!(free(a), 0);
    assert_eq!(free(a), 1);
    assert_eq!(free(host.as_ptr() as u64), 1);
    assert_eq!(free(0), 0);
    let pinned = {
        let mut p = 0u64;
        assert_eq!(call!(cuMemAllocHost_v2(&mut p => *mut u64, 64 => usize)), 0);
        p
    };
    assert_eq!(free(pinned), 1, "host memory is freed by cuMemFreeHost");
    assert_eq!(call!(cuMemFreeHost(pinned => u64)), 0);
}

#[test]
fn patterns_are_set_by_element() {
    let a = alloc(64);
    assert_eq!(call!(cuMemsetD32_v2(a => u64, 0x0102_0304 => c_uint, 16 => usize)), 0);
    assert_eq!(call!(cuMemsetD16_v2(a + 8 => u64, 0xbeef => u16, 2 => usize)), 0);
    assert_eq!(call!(cuMemsetD2D8_v2(a + 32 => u64, 8 => usize, 1 => u8, 2 => usize, 3 => usize)), 0);
    let mut host = [0u8; 64];
    assert_eq!(call!(cuMemcpyDtoH_v2(host.as_mut_ptr() => *mut u8, a => u64, 64 => usize)), 0);
    assert_eq!(host[4..16], [4, 3, 2, 1, 0xef, 0xbe, 0xef, 0xbe, 4, 3, 2, 1]);
    assert_eq!(host[32..52], [1, 1, 2, 1, 4, 3, 2, 1, 1, 1, 2, 1, 4, 3, 2, 1, 1, 1, 2, 1]);
    assert_eq!(call!(cuMemsetD32_v2(a + 1 => u64, 0 => c_uint, 1 => usize)), 1);
    assert_eq!(call!(cuMemsetD32_v2(a => u64, 0 => c_uint, usize::MAX => usize)), 1);
    assert_eq!(free(a), 0);
}

#[test]
fn handles_are_checked() {
    let mut stream: Handle = 0;
    assert_eq!(call!(cuStreamCreate(&mut stream => *mut Handle, 1 => c_uint)), 0);
    assert_eq!(call!(cuStreamSynchronize(stream => Handle)), 0);
    assert_eq!(call!(cuStreamDestroy_v2(stream => Handle)), 0);
    for hostile in [stream, 3, 0xdead_beef, usize::MAX] {
        assert_eq!(call!(cuStreamSynchronize(hostile => Handle)), 400);
        assert_eq!(call!(cuStreamDestroy_v2(hostile => Handle)), 400);
        assert_eq!(call!(cuEventRecord(hostile => Handle, 0 => Handle)), 400);
        assert_eq!(call!(cuLibraryUnload(hostile => Handle)), 400);
        assert_eq!(call!(cuGraphLaunch(hostile => Handle, 0 => Handle)), 400);
        assert_eq!(call!(cuCtxPushCurrent_v2(hostile => Handle)), 201);
        assert_eq!(launch(hostile, [1, 1, 1], &[]), 400);
    }
    assert_eq!(call!(cuStreamSynchronize(0 => Handle)), 0);
    assert_eq!(call!(cuStreamSynchronize(2 => Handle)), 0);
    assert_eq!(call!(cuStreamCreate(std::ptr::null_mut() => *mut Handle, 1 => c_uint)), 1);
    let (code, _) = load(b"\0");
    assert_eq!(code, 200);
    let mut library: Handle = 0;
    assert_eq!(call!(cuModuleLoadData(&mut library => *mut Handle, 0 => usize)), 1);
}

#[test]
fn events_measure() {
    let mut events = [0 as Handle; 3];
    for event in &mut events {
        assert_eq!(call!(cuEventCreate(event => *mut Handle, 0 => c_uint)), 0);
    }
    let [from, to, never] = events;
    let mut ms = 0f32;
    assert_eq!(call!(cuEventElapsedTime(&mut ms => *mut f32, from => Handle, to => Handle)), 400);
    // Time that passes between the two recordings, and time around them.
    let outer = std::time::Instant::now();
    assert_eq!(call!(cuEventRecord(from => Handle, 0 => Handle)), 0);
    let inner = std::time::Instant::now();
    while inner.elapsed().as_millis() < 2 {
        std::thread::yield_now();
    }
    let least = inner.elapsed().as_secs_f32() * 1e3;
    assert_eq!(call!(cuEventRecord(to => Handle, 0 => Handle)), 0);
    let most = outer.elapsed().as_secs_f32() * 1e3;
    assert_eq!(call!(cuEventQuery(to => Handle)), 0);
    assert_eq!(call!(cuEventElapsedTime(&mut ms => *mut f32, from => Handle, to => Handle)), 0);
    assert!(least - 0.01 <= ms && ms <= most + 0.01, "{least} {ms} {most}");
    assert_eq!(call!(cuEventElapsedTime(&mut ms => *mut f32, to => Handle, from => Handle)), 0);
    assert!(-most - 0.01 <= ms && ms <= -least + 0.01, "{least} {ms} {most}");
    assert_eq!(call!(cuEventElapsedTime(&mut ms => *mut f32, from => Handle, never => Handle)), 400);
    for event in events {
        assert_eq!(call!(cuEventDestroy_v2(event => Handle)), 0);
        assert_eq!(call!(cuEventDestroy_v2(event => Handle)), 400);
    }
}

#[test]
fn contexts_stack_per_thread() {
    let (mut primary, mut current, mut id) = (0 as Handle, 0 as Handle, 0u64);
    assert_eq!(call!(cuCtxGetCurrent(&mut current => *mut Handle)), 0);
    assert_eq!(current, 0);
    assert_eq!(call!(cuCtxPopCurrent_v2(&mut current => *mut Handle)), 201);
    assert_eq!(call!(cuDevicePrimaryCtxRetain(&mut primary => *mut Handle, 0 => c_int)), 0);
    assert_eq!(call!(cuCtxPushCurrent_v2(primary => Handle)), 0);
    assert_eq!(call!(cuCtxGetCurrent(&mut current => *mut Handle)), 0);
    assert_eq!(current, primary);
    assert_eq!(call!(cuCtxGetId(0 => Handle, &mut id => *mut u64)), 0);
    std::thread::spawn(|| {
        let mut other = 1 as Handle;
        assert_eq!(call!(cuCtxGetCurrent(&mut other => *mut Handle)), 0);
        assert_eq!(other, 0);
    })
    .join()
    .unwrap();
    assert_eq!(call!(cuCtxPopCurrent_v2(&mut current => *mut Handle)), 0);
    assert_eq!(call!(cuDevicePrimaryCtxRelease_v2(0 => c_int)), 0);
    let mut device = 9;
    assert_eq!(call!(cuDeviceGet(&mut device => *mut c_int, 1 => c_int)), 101);
    assert_eq!(call!(cuDeviceGet(&mut device => *mut c_int, 0 => c_int)), 0);
    let mut major = 0;
    assert_eq!(call!(cuDeviceGetAttribute(&mut major => *mut c_int, 75 => c_int, 0 => c_int)), 0);
    assert_eq!(major, 10);
    assert_eq!(call!(cuDeviceGetAttribute(&mut major => *mut c_int, -1 => c_int, 0 => c_int)), 1);
}

#[test]
fn functions_are_found_by_name_and_version() {
    let find = |name: &CStr, version: c_int| {
        let (mut address, mut status) = (1usize, 9 as c_int);
        let code = call!(cuGetProcAddress_v2(
            name.as_ptr() => *const c_char, &mut address => *mut usize, version => c_int, 0 => u64,
            &mut status => *mut c_int));
        (code, address, status)
    };
    let (code, v1, status) = find(c"cuCtxGetDevice", 12080);
    assert_eq!((code, status), (0, 0));
    assert_ne!(v1, find(c"cuCtxGetDevice", 13000).1);
    assert_eq!(find(c"cuNoSuchFunction", 13000), (500, 0, 1));
    assert_eq!(
        call!(cuGetProcAddress_v2(
        0 => usize, 0 => usize, 0 => c_int, 0 => u64, 0 => usize)),
        1
    );
}

#[test]
fn errors_have_names_and_the_last_message() {
    let mut text: *const c_char = std::ptr::null();
    assert_eq!(call!(cuGetErrorName(710 => c_int, &mut text => *mut *const c_char)), 0);
    // SAFETY: a name is text.
    assert_eq!(unsafe { CStr::from_ptr(text) }, c"CUDA_ERROR_ASSERT");
    assert_eq!(call!(cuGetErrorString(4711 => c_int, &mut text => *mut *const c_char)), 1);
    assert!(text.is_null());
    assert_eq!(call!(cuStreamDestroy_v2(5 => Handle)), 400);
    assert_eq!(call!(cuGetErrorString(400 => c_int, &mut text => *mut *const c_char)), 0);
    // SAFETY: as above.
    assert_eq!(unsafe { CStr::from_ptr(text) }, c"0x5 is not a valid stream, or it was destroyed");
    assert_eq!(last()["name"], "CUDA_ERROR_INVALID_HANDLE");
    assert_eq!(last()["call"], "cuStreamDestroy_v2");
}

#[test]
fn a_kernel_computes_and_its_assumptions_are_tested() {
    let _turn = turn();
    let library = program();
    let double = kernel(library, c"double_Kt1_A1f32_1t1_p16_Sf32");
    let x = alloc(40 * 4);
    let input: Vec<f32> = (0..40).map(|i| i as f32).collect();
    assert_eq!(call!(cuMemcpyHtoD_v2(x => u64, input.as_ptr() => *const f32, 160 => usize)), 0);
    let (n, stride, c) = (40i32, 1i32, 0.5f32);
    assert_eq!(launch(double, [3, 1, 1], &[pointer(&x), pointer(&n), pointer(&stride), pointer(&c)]), 0, "{}", last());
    let mut got = vec![0f32; 40];
    assert_eq!(call!(cuMemcpyDtoH_v2(got.as_mut_ptr() => *mut f32, x => u64, 160 => usize)), 0);
    assert!(got.iter().enumerate().all(|(i, &v)| v == 2.0 * i as f32 + 0.5), "{got:?}");

    let refused = |x: u64, n: i32, stride: i32, says: &str| {
        assert_eq!(launch(double, [1, 1, 1], &[pointer(&x), pointer(&n), pointer(&stride), pointer(&c)]), 1);
        let message = last()["message"].as_str().unwrap().to_string();
        assert!(message.contains(says), "{message}");
    };
    refused(x + 4, 8, 1, "argument 0: address");
    refused(x, 8, 2, "argument 0: stride 2 of axis 0 is not 1");
    refused(0, 8, 1, "argument 0: the address of the array is null");
    // Nothing of an empty array is touched.
    assert_eq!(launch(double, [1, 1, 1], &[pointer(&0u64), pointer(&0i32), pointer(&1i32), pointer(&c)]), 0);
    assert_eq!(launch(double, [0, 1, 1], &[pointer(&x), pointer(&n), pointer(&stride), pointer(&c)]), 1);
    assert_eq!(
        call!(cuLaunchKernel(
        double => Handle, 1 => c_uint, 1 => c_uint, 1 => c_uint, 1 => c_uint, 1 => c_uint, 1 => c_uint, 0 => c_uint,
        0 => Handle, 0 => usize, 0 => usize)),
        1
    );

    // Packed, in the manner of the last parameter.
    let mut packed = [0u8; 20];
    packed[..8].copy_from_slice(&x.to_le_bytes());
    packed[8..12].copy_from_slice(&n.to_le_bytes());
    packed[12..16].copy_from_slice(&1i32.to_le_bytes());
    packed[16..].copy_from_slice(&c.to_le_bytes());
    let size = packed.len();
    let extra = [1usize, packed.as_ptr() as usize, 2, &raw const size as usize, 0];
    assert_eq!(
        call!(cuLaunchKernel(
        double => Handle, 3 => c_uint, 1 => c_uint, 1 => c_uint, 1 => c_uint, 1 => c_uint, 1 => c_uint, 0 => c_uint,
        0 => Handle, 0 => usize, extra.as_ptr() => *const usize)),
        0,
        "{}",
        last()
    );
    assert_eq!(call!(cuMemcpyDtoH_v2(got.as_mut_ptr() => *mut f32, x => u64, 160 => usize)), 0);
    assert_eq!(got[3], 13.5);

    let mut missing: Handle = 0;
    assert_eq!(
        call!(cuLibraryGetKernel(
        &mut missing => *mut Handle, library => Handle, c"nothing".as_ptr() => *const c_char)),
        500
    );
    assert_eq!(call!(cuLibraryUnload(library => Handle)), 0);
    assert_eq!(launch(double, [1, 1, 1], &[]), 400, "a kernel goes with its library");
    assert_eq!(free(x), 0);
}

#[test]
fn traps_are_errors_with_details_and_the_process_goes_on() {
    let _turn = turn();
    let library = program();
    let assert = kernel(library, c"assert_Kt1_Si32");
    assert_eq!(launch(assert, [1, 1, 1], &[pointer(&1i32)]), 710);
    let details = last();
    assert_eq!((details["kind"].as_str(), details["diagnostic"].as_str()), (Some("assert"), Some("E0601")));
    assert!(details["message"].as_str().unwrap().contains("n must be zero"));
    assert_eq!((&details["kernel"], details["block"][0].as_i64()), (&Value::from("assert_Kt1_Si32"), Some(0)));
    assert_eq!(details["line"], 18);
    assert_eq!(launch(assert, [1, 1, 1], &[pointer(&0i32)]), 0, "the failure is over");

    options(r#"{"check": true}"#);
    let gather = kernel(library, c"gather_Kt1_A1f32_1t1_Si32");
    // A larger allocation; the kernel is given 8 of its elements.
    let x = alloc(64 * 4);
    for (device, at, code) in [("cpu", 7i32, 0), ("cpu", 8, 700), ("cpu", -1, 700), ("eval", 7, 0), ("eval", 8, 700)] {
        options(&format!(r#"{{"device": "{device}"}}"#));
        let code_was = launch(gather, [1, 1, 1], &[pointer(&x), pointer(&8i32), pointer(&1i32), pointer(&at)]);
        assert_eq!(code_was, code, "{device} {at}: {}", last());
        if code != 0 {
            assert!(last()["message"].as_str().unwrap().contains("`x`"), "{}", last());
        }
    }
    assert_eq!(free(x), 0);
}

#[test]
fn prints_reach_the_printer_on_the_launching_thread() {
    unsafe extern "C" fn keep(user: *mut c_void, text: *const u8, length: usize) {
        // SAFETY: the test passes its own buffer, and the library text of that length.
        let (all, text) = unsafe { (&mut *user.cast::<Vec<u8>>(), std::slice::from_raw_parts(text, length)) };
        all.extend(text);
    }
    type Keep = unsafe extern "C" fn(*mut c_void, *const u8, usize);
    let _turn = turn();
    let mut all: Vec<u8> = Vec::new();
    let set = |f: Option<Keep>, user: *mut Vec<u8>| call!(girih_shim_set_printer(f => Option<Keep>, user.cast() => *mut c_void));
    assert_eq!(set(Some(keep), &raw mut all), 0);
    let say = kernel(program(), c"say");
    assert_eq!(launch(say, [5, 1, 1], &[pointer(&5i32)]), 0, "{}", last());
    assert_eq!(set(None, std::ptr::null_mut()), 0);
    let want: String = (0..5).map(|i| format!("block {i} of 5\n")).collect();
    assert_eq!(String::from_utf8(all).unwrap(), want);
}

#[test]
fn findings_reach_the_warner_on_the_launching_thread() {
    unsafe extern "C" fn keep(user: *mut c_void, text: *const u8, length: usize) {
        // SAFETY: the test passes its own list, and the library text of that length.
        let (all, text) = unsafe { (&mut *user.cast::<Vec<Value>>(), std::slice::from_raw_parts(text, length)) };
        all.push(serde_json::from_slice(text).unwrap());
    }
    type Keep = unsafe extern "C" fn(*mut c_void, *const u8, usize);
    let _turn = turn();
    let mut all: Vec<Value> = Vec::new();
    let set = |f: Option<Keep>, user: *mut Vec<Value>| call!(girih_shim_set_warner(f => Option<Keep>, user.cast() => *mut c_void));
    options(r#"{"device": "eval"}"#);
    assert_eq!(set(Some(keep), &raw mut all), 0);
    let same = kernel(program(), c"same");
    let x = alloc(4);
    assert_eq!(launch(same, [1, 1, 1], &[pointer(&x)]), 0, "{}", last());
    assert!(all.is_empty(), "{all:?}");
    assert_eq!(launch(same, [2, 1, 1], &[pointer(&x)]), 0, "{}", last());
    assert_eq!(set(None, std::ptr::null_mut()), 0);
    options(r#"{"device": "cpu"}"#);
    assert_eq!(free(x), 0);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0]["diagnostic"], "W0902");
    assert!(all[0]["message"].as_str().unwrap().contains("of different blocks write the same byte"), "{all:?}");
}

#[test]
fn a_launch_can_be_stopped() {
    let _turn = turn();
    let forever = kernel(program(), c"forever");
    let flag = alloc(4);
    assert_eq!(call!(cuMemsetD32_v2(flag => u64, 0 => c_uint, 1 => usize)), 0);
    // Compiled, and ended by the flag.
    assert_eq!(call!(cuMemsetD32_v2(flag => u64, 1 => c_uint, 1 => usize)), 0);
    assert_eq!(launch(forever, [1, 1, 1], &[pointer(&flag)]), 0, "{}", last());
    assert_eq!(call!(cuMemsetD32_v2(flag => u64, 0 => c_uint, 1 => usize)), 0);
    // A stop before the launch has begun has no effect, so it is repeated until the launch has ended.
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(std::sync::atomic::Ordering::SeqCst) {
                // SAFETY: the function takes nothing.
                unsafe { library().get::<unsafe extern "C" fn()>(b"girih_shim_interrupt").unwrap()() };
                std::thread::yield_now();
            }
        });
        let code = launch(forever, [1, 1, 1], &[pointer(&flag)]);
        ended.store(true, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(code, 719);
    });
    assert_eq!(last()["kind"], "interrupted");
    assert_eq!(call!(cuMemsetD32_v2(flag => u64, 1 => c_uint, 1 => usize)), 0);
    assert_eq!(launch(forever, [1, 1, 1], &[pointer(&flag)]), 0, "the next launch is not stopped");
    assert_eq!(free(flag), 0);
}

#[test]
fn a_fault_is_an_error_and_the_next_launch_runs() {
    let _turn = turn();
    let forever = kernel(program(), c"forever");
    assert_eq!(launch(forever, [1, 1, 1], &[pointer(&64u64)]), 700);
    let failure = last();
    let message = failure["message"].as_str().unwrap();
    assert!(message.contains("the kernel `forever` accessed memory that does not exist"), "{message}");
    assert!(failure["help"].as_str().unwrap().contains("GIRIH_CHECK=1"), "{failure}");
    let flag = alloc(4);
    assert_eq!(call!(cuMemsetD32_v2(flag => u64, 1 => c_uint, 1 => usize)), 0);
    assert_eq!(launch(forever, [1, 1, 1], &[pointer(&flag)]), 0, "{}", last());
    assert_eq!(free(flag), 0);
}

#[test]
fn graphs_run_their_nodes_in_order() {
    #[repr(C)]
    struct KernelNode {
        function: Handle,
        grid: [c_uint; 3],
        block: [c_uint; 3],
        shared: c_uint,
        params: *const *const c_void,
        extra: usize,
        kernel: Handle,
        context: Handle,
    }
    #[repr(C)]
    struct MemsetNode {
        to: u64,
        pitch: usize,
        value: c_uint,
        size: c_uint,
        width: usize,
        height: usize,
    }
    let _turn = turn();
    let double = kernel(program(), c"double_Kt1_A1f32_1t1_p16_Sf32");
    let x = alloc(64);
    let (mut graph, mut set, mut run, mut ready) = (0 as Handle, 0 as Handle, 0 as Handle, 0 as Handle);
    assert_eq!(call!(cuGraphCreate(&mut graph => *mut Handle, 0 => c_uint)), 0);
    let memset = MemsetNode { to: x, pitch: 0, value: 1f32.to_bits(), size: 4, width: 16, height: 1 };
    assert_eq!(
        call!(cuGraphAddMemsetNode(
        &mut set => *mut Handle, graph => Handle, 0 => usize, 0 => usize, &memset => *const MemsetNode,
        0 => Handle)),
        0,
        "{}",
        last()
    );
    {
        let (n, stride, c) = (16i32, 1i32, 3f32);
        let args = [pointer(&x), pointer(&n), pointer(&stride), pointer(&c)];
        let node = KernelNode {
            function: double,
            grid: [1, 1, 1],
            block: [1, 1, 1],
            shared: 0,
            params: args.as_ptr(),
            extra: 0,
            kernel: 0,
            context: 0,
        };
        assert_eq!(
            call!(cuGraphAddKernelNode_v2(
            &mut run => *mut Handle, graph => Handle, &set => *const Handle, 1 => usize,
            &node => *const KernelNode)),
            0,
            "{}",
            last()
        );
        // The arguments may go: they were read when the node was made.
    }
    assert_eq!(call!(cuGraphInstantiateWithFlags(&mut ready => *mut Handle, graph => Handle, 0 => u64)), 0);
    assert_eq!(call!(cuGraphDestroy(graph => Handle)), 0);
    for _ in 0..2 {
        assert_eq!(call!(cuGraphLaunch(ready => Handle, 0 => Handle)), 0, "{}", last());
        let mut got = [0f32; 16];
        assert_eq!(call!(cuMemcpyDtoH_v2(got.as_mut_ptr() => *mut f32, x => u64, 64 => usize)), 0);
        assert_eq!(got, [5.0; 16]);
    }
    assert_eq!(call!(cuGraphExecDestroy(ready => Handle)), 0);
    assert_eq!(call!(cuGraphLaunch(ready => Handle, 0 => Handle)), 400);
    assert_eq!(free(x), 0);
}

#[test]
fn a_stream_under_capture_records() {
    let _turn = turn();
    let double = kernel(program(), c"double_Kt1_A1f32_1t1_p16_Sf32");
    let x = alloc(64);
    let ones = [1f32; 16];
    let begin = |on: Handle| call!(cuStreamBeginCapture_v2(on => Handle, 0 => c_int));
    let capturing = || {
        let mut status = -1;
        assert_eq!(call!(cuStreamIsCapturing(0 => Handle, &mut status => *mut c_int)), 0);
        status
    };
    let (mut graph, mut ready, mut other) = (0 as Handle, 0 as Handle, 0 as Handle);
    assert_eq!(call!(cuStreamCreate(&mut other => *mut Handle, 0 => c_uint)), 0);
    assert_eq!(call!(cuMemcpyHtoD_v2(x => u64, ones.as_ptr() => *const f32, 64 => usize)), 0);
    assert_eq!((capturing(), begin(0), capturing(), begin(0)), (0, 0, 1, 401));
    assert_eq!(call!(cuMemsetD32Async(x => u64, 3f32.to_bits() => c_uint, 16 => usize, 0 => Handle)), 0);
    {
        let (n, stride, c) = (16i32, 1i32, 3f32);
        assert_eq!(launch(double, [1, 1, 1], &[pointer(&x), pointer(&n), pointer(&stride), pointer(&c)]), 0);
    }
    // Calls that no node can do are refused there, and done on another stream.
    assert_eq!(call!(cuStreamSynchronize(0 => Handle)), 900);
    assert_eq!(call!(cuStreamSynchronize(other => Handle)), 0);
    assert_eq!(call!(cuStreamEndCapture(0 => Handle, &mut graph => *mut Handle)), 0, "{}", last());
    assert_eq!(call!(cuStreamEndCapture(0 => Handle, &mut graph => *mut Handle)), 401);
    assert_eq!(capturing(), 0);
    let read = || {
        let mut got = [0f32; 16];
        assert_eq!(call!(cuMemcpyDtoH_v2(got.as_mut_ptr() => *mut f32, x => u64, 64 => usize)), 0);
        got
    };
    assert_eq!(read(), ones);
    assert_eq!(call!(cuGraphInstantiateWithFlags(&mut ready => *mut Handle, graph => Handle, 0 => u64)), 0);
    assert_eq!(call!(cuGraphDestroy(graph => Handle)), 0);
    for _ in 0..2 {
        assert_eq!(call!(cuGraphLaunch(ready => Handle, 0 => Handle)), 0, "{}", last());
        assert_eq!(read(), [9.0; 16]);
    }
    assert_eq!(call!(cuGraphExecDestroy(ready => Handle)), 0);
    assert_eq!(call!(cuStreamDestroy_v2(other => Handle)), 0);
    assert_eq!(free(x), 0);
}

#[test]
fn options_are_all_or_nothing() {
    let _turn = turn();
    let text = || {
        // SAFETY: the function takes nothing and gives text.
        let text = unsafe {
            let f = library().get::<unsafe extern "C" fn() -> *const c_char>(b"girih_shim_options").unwrap();
            CStr::from_ptr(f()).to_str().unwrap().to_string()
        };
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let before = text();
    for bad in [
        r#"{"check": true, "device": "gpu"}"#,
        r#"{"threads": 0}"#,
        r#"{"unknown": 1}"#,
        "[]",
        "{",
        r#"{"check": 1}"#,
        r#"{"check": true, "knobs": {"no_such_knob": 1}}"#,
    ] {
        let json = CString::new(bad).unwrap();
        assert_eq!(call!(girih_shim_set_options(json.as_ptr() => *const c_char)), 1, "{bad}");
        assert_eq!(text(), before, "{bad}");
    }
    options(r#"{"threads": null, "check": true}"#);
    assert_eq!((&text()["threads"], &text()["check"]), (&Value::Null, &Value::Bool(true)));
}

#[test]
fn containers_and_bytecode_are_loaded() {
    let _turn = turn();
    let program = girih::Program::from_text(PLAIN).unwrap();
    let bytecode = bytecode::write(program.module(), bytecode::Version::V13_4).unwrap();
    let assemble = |bytes: &[u8], options: *const c_char| {
        let (mut image, mut length) = (std::ptr::null_mut::<u8>(), 0usize);
        let code = call!(girih_shim_assemble(
            bytes.as_ptr() => *const u8, bytes.len() => usize, options => *const c_char,
            &mut image => *mut *mut u8, &mut length => *mut usize));
        // SAFETY: the function gives `length` bytes, or nothing.
        let container = (code == 0).then(|| unsafe { std::slice::from_raw_parts(image, length) }.to_vec());
        if code == 0 {
            // SAFETY: it is given back once.
            unsafe { library().get::<unsafe extern "C" fn(*mut u8)>(b"girih_shim_free").unwrap()(image) };
        }
        (code, container)
    };
    let (code, container) = assemble(&bytecode, c"{\"gpu_name\": \"sm_90\"}".as_ptr());
    assert_eq!(code, 0, "{}", last());
    let container = container.unwrap();
    for image in [&bytecode, &container] {
        let (code, library) = load(image);
        assert_eq!(code, 0, "{}", last());
        let mut count = 0;
        assert_eq!(call!(cuLibraryGetKernelCount(&mut count => *mut c_uint, library => Handle)), 0);
        assert_eq!(count, 1);
        let double = kernel(library, c"double");
        let x = alloc(64);
        assert_eq!(call!(cuMemsetD32_v2(x => u64, 2f32.to_bits() => c_uint, 16 => usize)), 0);
        assert_eq!(launch(double, [1, 1, 1], &[pointer(&x)]), 0, "{}", last());
        let mut got = [0f32; 16];
        assert_eq!(call!(cuMemcpyDtoH_v2(got.as_mut_ptr() => *mut f32, x => u64, 64 => usize)), 0);
        assert_eq!(got, [4.0; 16]);
        assert_eq!(free(x), 0);
    }
    let mut damaged = container.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(load(&damaged).0, 200);
    assert!(last()["message"].as_str().unwrap().contains("checksum"));
    assert_eq!(assemble(&bytecode, c"{\"gpu_name\": \"sm_75\"}".as_ptr()).0, 1);
    assert_eq!(assemble(&bytecode[..bytecode.len() / 2], std::ptr::null()).0, 200);
    assert!(last()["rendered"].as_str().unwrap().starts_with("error: "), "{}", last());
    assert_eq!(assemble(b"cuda_tile.module @m { nonsense }", std::ptr::null()).0, 200);
}
