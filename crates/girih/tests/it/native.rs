//! The compiler, the cache and the pool together, on hand-written C in the form the emitter uses.

use crate::folder;

use std::path::Path;
use std::process::Command;

use folder::Folder;
use girih::Error;
use girih::blocks::{self, BlockOrder, Host, Run, Waiting};
use girih::cache::Cache;
use girih::cc;
use girih::module::Module;

/// out[b] = in[b] * factor + block index
const SOURCE: &str = r#"
#include <stdint.h>
typedef struct girih_ctx girih_ctx;
struct girih_ctx {
  int64_t grid[3]; void *scratch; const volatile int32_t *abort; void *const *globals; const int64_t *extent; void *host;
  void (*trap)(girih_ctx *, int32_t, int32_t, int64_t, int64_t, int64_t);
  void (*print)(girih_ctx *, int32_t, int64_t, const void *const *);
  void (*yield)(girih_ctx *, int32_t, int64_t);
  int32_t (*check)(girih_ctx *, uint64_t, int64_t);
  int32_t (*stop)(girih_ctx *);
};
typedef struct girih_args { uint64_t slot[1]; } girih_args;
typedef struct girih_meta { uint32_t abi; uint32_t nparams; uint64_t scratch; } girih_meta;
const girih_meta girih_0_meta = {2, 3, 128};
int32_t girih_0(const girih_args *a, girih_ctx *c, int64_t lo, int64_t hi) {
  const float *in = (const float *)a->slot[0];
  float *out = (float *)a->slot[1];
  union { uint32_t u; float f; } factor = {(uint32_t)a->slot[2]};
  for (int64_t b = lo; b < hi; b++) out[b] = in[b] * factor.f + (float)b;
  return 0;
}
"#;

struct Silent;
impl Host for Silent {
    unsafe fn format(&self, _: u32, _: i64, _: *const *const std::ffi::c_void) -> String {
        String::new()
    }
    fn print(&self, _: i64, _: &str) {}
    fn stalled(&self, _: &[Waiting]) {}
    fn live(&self, _: u64, _: u64) -> bool {
        true
    }
}

fn compiler(notes: Option<&Path>) -> cc::Compiler {
    cc::find(None).unwrap().probe(notes).unwrap()
}

fn check(object: &Path) {
    let hash = *blake3::hash(&std::fs::read(object).unwrap()).as_bytes();
    // SAFETY: every caller passes an object that a test cache built from this file's C.
    let kernel = unsafe { Module::load(object, &hash) }.unwrap().kernel(0, 3).unwrap();
    let input: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let mut output = vec![0f32; 1000];
    let args = [input.as_ptr() as u64, output.as_mut_ptr() as u64, u64::from(2.5f32.to_bits())];
    let run = Run {
        kernel,
        args: &args,
        grid: [10, 20, 5],
        only: None,
        globals: &[],
        extents: &[],
        order: BlockOrder::Ranges,
        threads: 2,
        cost: None,
    };
    // SAFETY: the kernel takes two pointers to 1,000 floats, and a float.
    unsafe { blocks::run(&run, &Silent) }.unwrap();
    assert!(output.iter().enumerate().all(|(i, &x)| x == i as f32 * 3.5));
}

#[test]
fn a_kernel_is_compiled_cached_and_run() {
    let folder = Folder::new("build");
    let cache = Cache::open(Some(&folder.0)).unwrap();
    assert_eq!(cache.warning(), None);
    let compiler = compiler(Some(cache.dir()));
    let first = cache.get_or_build(SOURCE, &compiler).unwrap();
    assert!(!first.cached);
    check(&first.object);
    let again = cache.get_or_build(SOURCE, &compiler).unwrap();
    assert!(again.cached);
    assert_eq!(again.object, first.object);
    let source = std::fs::read_to_string(&again.source).unwrap();
    assert!(source.starts_with("// ") && source.ends_with(SOURCE));
    assert_eq!(cache.usage().entries, 1);
    assert!(cache.usage().bytes > 1000);
    // Nothing temporary is left.
    for f in std::fs::read_dir(first.object.parent().unwrap()).unwrap() {
        assert!(!f.unwrap().file_name().to_string_lossy().contains("tmp"));
    }
    assert_eq!(cache.clear().unwrap().entries, 1);
    assert_eq!(cache.usage().entries, 0);
}

#[test]
fn the_compilers_answers_are_kept() {
    let folder = Folder::new("notes");
    let asked = compiler(Some(&folder.0));
    let kept = compiler(Some(&folder.0));
    assert_eq!(asked.fingerprint(), kept.fingerprint());
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
    assert!(asked.flags.iter().any(|f| f == "-ffp-contract=off"));
    assert!(!asked.flags.iter().any(|f| f.contains("native")));
}

#[test]
fn a_damaged_object_is_rebuilt_not_loaded() {
    let folder = Folder::new("damage");
    let cache = Cache::open(Some(&folder.0)).unwrap();
    let compiler = compiler(None);
    let first = cache.get_or_build(SOURCE, &compiler).unwrap();
    for damage in [b"garbage".as_slice(), b""] {
        // As a new file: this process has the old one mapped.
        std::fs::remove_file(&first.object).unwrap();
        std::fs::write(&first.object, damage).unwrap();
        let again = cache.get_or_build(SOURCE, &compiler).unwrap();
        assert!(!again.cached);
        check(&again.object);
    }
    std::fs::remove_file(&first.object).unwrap();
    assert!(!cache.get_or_build(SOURCE, &compiler).unwrap().cached);
    assert!(cache.get_or_build(SOURCE, &compiler).unwrap().cached);
}

#[test]
fn a_folder_others_may_write_in_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("open");
    let v1 = folder.0.join("v1");
    std::fs::create_dir(&v1).unwrap();
    for mode in [0o777, 0o500] {
        std::fs::set_permissions(&v1, std::fs::Permissions::from_mode(mode)).unwrap();
        let cache = Cache::open(Some(&folder.0)).unwrap();
        assert!(cache.warning().is_some_and(|w| w.contains("not used")), "{mode:o}");
        let private = cache.dir().to_path_buf();
        check(&cache.get_or_build(SOURCE, &compiler(None)).unwrap().object);
        assert!(private.exists() && !private.starts_with(&folder.0));
        drop(cache);
        assert!(!private.exists());
    }
    std::fs::set_permissions(&v1, std::fs::Permissions::from_mode(0o700)).unwrap();
    // Who may write in the folder above may put another one in its place, unless a sticky bit forbids that.
    for (mode, used) in [(0o777, false), (0o770, false), (0o1777, true), (0o755, true)] {
        std::fs::set_permissions(&folder.0, std::fs::Permissions::from_mode(mode)).unwrap();
        let cache = Cache::open(Some(&folder.0)).unwrap();
        assert_eq!(cache.warning().is_none(), used, "{mode:o}: {:?}", cache.warning());
        assert_eq!(!cache.is_private(), used, "{mode:o}");
    }
    assert!(girih::cache::take_warnings().iter().any(|w| w.contains("chmod go-w")));
}

#[test]
fn a_place_that_is_a_file_is_not_used() {
    let folder = Folder::new("file");
    let file = folder.0.join("cache");
    std::fs::write(&file, "x").unwrap();
    let cache = Cache::open(Some(&file)).unwrap();
    assert!(cache.warning().is_some());
    check(&cache.get_or_build(SOURCE, &compiler(None)).unwrap().object);
}

#[test]
fn the_oldest_entries_go_when_the_cache_is_full() {
    let folder = Folder::new("full");
    let compiler = compiler(None);
    let cache = Cache::open(Some(&folder.0)).unwrap();
    let one = cache.get_or_build(SOURCE, &compiler).unwrap();
    let size = cache.usage().bytes;
    let cache = cache.with_capacity(size * 5 / 2);
    let two = cache.get_or_build(&format!("{SOURCE}// two\n"), &compiler).unwrap();
    // Both were last used an hour ago, the first before the second; then the first is used.
    for (entry, minutes) in [(&one, 61), (&two, 60)] {
        let meta = std::fs::File::options().write(true).open(entry.object.with_file_name("meta")).unwrap();
        meta.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(60 * minutes)).unwrap();
    }
    assert!(cache.get_or_build(SOURCE, &compiler).unwrap().cached);
    let three = cache.get_or_build(&format!("{SOURCE}// three\n"), &compiler).unwrap();
    assert!(one.object.exists() && !two.object.exists() && three.object.exists());
}

#[test]
fn a_failing_compiler_is_quoted_and_the_source_kept() {
    let folder = Folder::new("fail");
    let cache = Cache::open(Some(&folder.0)).unwrap();
    let error = cache.get_or_build("int f(void) { return undeclared_thing; }\n", &compiler(None)).unwrap_err();
    let Error::Compiler { status, stderr, source_file, .. } = &error else { panic!("{error}") };
    assert!(status.contains('1'), "{status}");
    assert!(stderr.contains("undeclared_thing"), "{stderr}");
    let source_file = source_file.as_ref().unwrap();
    assert!(std::fs::read_to_string(source_file).unwrap().contains("undeclared_thing"));
    assert!(error.to_string().contains(&source_file.display().to_string()));
}

#[test]
fn a_missing_compiler_says_what_to_install() {
    let error = cc::find(Some("no-such-compiler-anywhere")).unwrap_err().to_string();
    assert!(error.contains("apt install gcc") && error.contains("--device eval"), "{error}");
    assert!(error.contains("no-such-compiler-anywhere"));
}

#[test]
fn a_compiler_that_is_none_is_reported() {
    let error = cc::find(Some("/bin/false")).unwrap().probe(None).unwrap_err();
    assert!(matches!(error, Error::Compiler { .. }), "{error}");
}

/// A trial that the machine's limits ended says nothing about the flag, and is not remembered.
#[test]
fn what_a_limit_of_the_machine_refused_is_tried_again() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("limited");
    std::fs::create_dir_all(&folder.0).unwrap();
    let (compiler, limited, notes) = (folder.0.join("fake-cc"), folder.0.join("limited"), folder.0.join("notes"));
    std::fs::create_dir_all(&notes).unwrap();
    // It knows no `-fno-finite-loops`, and says so.
    let script = "#!/bin/sh
for flag in \"$@\"; do
  [ \"$flag\" = --version ] && { echo fake 1; exit 0; }
done
[ -e LIMITED ] && { echo 'fake: fatal error: vfork: Resource temporarily unavailable' >&2; exit 1; }
for flag in \"$@\"; do
  [ \"$flag\" = -fno-finite-loops ] && { echo \"fake: unknown option $flag\" >&2; exit 1; }
done
cat > /dev/null
";
    std::fs::write(&compiler, script.replace("LIMITED", &limited.display().to_string())).unwrap();
    std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).unwrap();
    let probe = || cc::find(compiler.to_str()).unwrap().probe(Some(&notes)).unwrap().flags;
    let noted = || std::fs::read_dir(&notes).unwrap().count();
    std::fs::write(&limited, "").unwrap();
    let few = probe();
    assert!(!few.contains(&"-Wno-psabi".to_string()) && noted() == 0, "{few:?}");
    std::fs::remove_file(&limited).unwrap();
    let all = probe();
    assert!(all.contains(&"-Wno-psabi".to_string()) && noted() == 1, "{all:?}");
    assert!(!all.contains(&"-fno-finite-loops".to_string()), "{all:?}");
    // A note is not asked for again.
    std::fs::write(&limited, "").unwrap();
    assert_eq!(probe(), all);
}

/// Run alone it does nothing; the next test starts two processes of it on one cache.
#[test]
fn one_of_two_processes() {
    let Some(dir) = std::env::var_os("GIRIH_TEST_SHARED_CACHE") else { return };
    let cache = Cache::open(Some(Path::new(&dir))).unwrap();
    for i in 0..5 {
        check(&cache.get_or_build(&format!("{SOURCE}// {i}\n"), &compiler(Some(cache.dir()))).unwrap().object);
    }
}

#[test]
fn two_processes_build_the_same_kernels_at_once() {
    let folder = Folder::new("two");
    let start = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "native::one_of_two_processes", "--test-threads=1"])
            .env("GIRIH_TEST_SHARED_CACHE", &folder.0)
            .spawn()
            .unwrap()
    };
    let mut both = [start(), start()];
    for child in &mut both {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(Cache::open(Some(&folder.0)).unwrap().usage().entries, 5);
}
