//! Compiles emitted C with the system compiler and calls it, with a calling context of its own.
#![allow(dead_code)]

use std::ffi::c_void;
use std::process::Command;

#[repr(C)]
pub struct Ctx {
    pub grid: [i64; 3],
    pub scratch: *mut u8,
    pub abort: *const i32,
    pub globals: *const *mut u8,
    pub extent: *const i64,
    pub host: *mut c_void,
    pub trap: extern "C" fn(*mut Ctx, i32, i32, i64, i64, i64),
    pub print: extern "C" fn(*mut Ctx, i32, i64, *const *const c_void),
    pub yield_: extern "C" fn(*mut Ctx, i32, i64),
    pub check: extern "C" fn(*mut Ctx, u64, i64) -> i32,
}

extern "C" fn trap(ctx: *mut Ctx, site: i32, kind: i32, block: i64, element: i64, value: i64) {
    // SAFETY: `host` points at the vector of traps for the duration of the call.
    unsafe { (*((*ctx).host as *mut Vec<[i64; 5]>)).push([site as i64, kind as i64, block, element, value]) };
}
extern "C" fn print(_: *mut Ctx, _: i32, _: i64, _: *const *const c_void) {}
extern "C" fn yield_(_: *mut Ctx, _: i32, _: i64) {}
extern "C" fn check(_: *mut Ctx, _: u64, _: i64) -> i32 {
    1
}

pub struct Unit {
    lib: libloading::Library,
}

/// The compiler, or `None` (with a message) where there is none.
pub fn cc() -> Option<String> {
    let cc = std::env::var("GIRIH_CC").unwrap_or_else(|_| "cc".to_string());
    match Command::new(&cc).arg("--version").output() {
        Ok(_) => Some(cc),
        Err(_) => {
            eprintln!("skipped: no C compiler `{cc}`");
            None
        }
    }
}

const FLAGS: &[&str] = &[
    "-std=gnu11",
    "-O2",
    "-ffp-contract=off",
    "-fno-fast-math",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-finite-loops",
    "-shared",
    "-fPIC",
];

/// Compiles a unit; warnings are errors.
pub fn build(name: &str, source: &str, more: &[&str]) -> Option<Unit> {
    let cc = cc()?;
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("native-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory for the test's files");
    let (c, so) = (dir.join(format!("{name}.c")), dir.join(format!("{name}.so")));
    std::fs::write(&c, source).expect("the source file");
    let done =
        Command::new(cc).args(FLAGS).args(more).arg("-Werror").arg(&c).arg("-o").arg(&so).output().expect("cc runs");
    assert!(done.status.success(), "{}: {}", c.display(), String::from_utf8_lossy(&done.stderr));
    // SAFETY: the library was just compiled from our own source and has no initialisers.
    Some(Unit { lib: unsafe { libloading::Library::new(&so) }.expect("the object loads") })
}

type Entry = unsafe extern "C" fn(*const u64, *mut Ctx, i64, i64) -> i32;

/// The results of a run besides memory.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub code: i32,
    pub traps: Vec<[i64; 5]>,
}

impl Unit {
    pub fn run(&self, n: usize, args: &[u64], grid: [i64; 3], extents: &[i64]) -> Outcome {
        let abort = 0i32;
        // No test asks for the notes of writes.
        let extents = [extents, &vec![0; extents.len() / 2]].concat();
        let mut traps: Vec<[i64; 5]> = Vec::new();
        // SAFETY: the unit exports the kernel and its description with these types; the buffers behind `args` are the
        // caller's, as large as the kernel needs.
        unsafe {
            let meta = self.lib.get::<*const [u64; 2]>(format!("girih_{n}_meta").as_bytes()).expect("the description");
            let entry = self.lib.get::<Entry>(format!("girih_{n}").as_bytes()).expect("the kernel");
            let bytes = (**meta)[1] as usize;
            let mut scratch = vec![0xA5A5_A5A5_A5A5_A5A5_A5A5_A5A5_A5A5_A5A5u128; bytes / 16 + 8];
            let base = scratch.as_mut_ptr() as *mut u8;
            let mut ctx = Ctx {
                grid,
                scratch: base.add(base.align_offset(64)),
                abort: &abort,
                globals: std::ptr::null(),
                extent: extents.as_ptr(),
                host: &mut traps as *mut _ as *mut c_void,
                trap,
                print,
                yield_,
                check,
            };
            let code = entry(args.as_ptr(), &mut ctx, 0, grid.iter().product());
            Outcome { code, traps }
        }
    }
}
