//! This machine's capabilities: instruction set features, caches, threads.

use std::sync::OnceLock;

use girih_compiler::base::Budget;
use girih_compiler::tile::target::{MatrixUnit, Target, Vector};

/// The variable that names the family of processors to compile for, where that is not all that this one has.
pub const FAMILY: &str = "GIRIH_CPU";

/// The instruction set features that matter to emitted code, by the name that follows `-m`: those that both the
/// processor and the operating system support, and that the family has which the environment names.
pub fn features() -> Vec<&'static str> {
    static FEATURES: OnceLock<Vec<&'static str>> = OnceLock::new();
    let find = || {
        let family = std::env::var(FAMILY).ok().and_then(|name| cpu(&name));
        detected().into_iter().filter(|f| family.is_none_or(|cpu| cpu.features.contains(f))).collect()
    };
    FEATURES.get_or_init(find).clone()
}

fn detected() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! detect {
            ($($detect:tt => $flag:literal),* $(,)?) => {
                [$((std::arch::is_x86_feature_detected!($detect), $flag)),*]
            };
        }
        let all = detect! {
            "sse3" => "sse3", "ssse3" => "ssse3", "sse4.1" => "sse4.1", "sse4.2" => "sse4.2", "popcnt" => "popcnt",
            "avx" => "avx", "avx2" => "avx2", "fma" => "fma", "f16c" => "f16c", "bmi1" => "bmi", "bmi2" => "bmi2",
            "lzcnt" => "lzcnt", "avx512f" => "avx512f", "avx512cd" => "avx512cd", "avx512bw" => "avx512bw",
            "avx512dq" => "avx512dq", "avx512vl" => "avx512vl", "avx512vbmi" => "avx512vbmi",
            "avx512vbmi2" => "avx512vbmi2", "avx512vnni" => "avx512vnni", "avx512bf16" => "avx512bf16",
        };
        all.into_iter().filter(|(have, _)| *have).map(|(_, flag)| flag).chain(tiles()).collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        Vec::new()
    }
}

/// The features of its tile matrix unit (AMX), where it has one and the system lets this process use it.
#[cfg(target_arch = "x86_64")]
fn tiles() -> Vec<&'static str> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const UNIT: [(u32, &str); 3] = [(24, "amx-tile"), (25, "amx-int8"), (22, "amx-bf16")];
    let asked = __cpuid(0).eax >= 7 && allow_tiles();
    let edx = if asked { __cpuid_count(7, 0).edx } else { 0 };
    let has = UNIT.map(|(bit, _)| edx >> bit & 1 == 1);
    // Schedules take all of it or nothing.
    if has.contains(&false) { vec![] } else { UNIT.map(|(_, name)| name).to_vec() }
}

/// Asks the system for the state that tiles need; without it the first instruction that touches one is a fault.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn allow_tiles() -> bool {
    const REQUEST: libc::c_long = 0x1023;
    const TILE_DATA: libc::c_long = 18;
    // SAFETY: the call only changes the set of this process's registers that the system saves; it fails where there is no
    // such state.
    unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST, TILE_DATA) == 0 }
}

#[cfg(all(target_arch = "x86_64", not(target_os = "linux")))]
fn allow_tiles() -> bool {
    false
}

/// The processor's name, where the system tells.
pub fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("model name"));
    line.map_or("", |l| l.trim_start_matches([' ', '\t', ':'])).to_string()
}

/// Threads this process may use, one per core it is allowed on. The system is asked once: it takes longer than a launch.
pub fn threads() -> u32 {
    static THREADS: OnceLock<u32> = OnceLock::new();
    *crate::system::sync::once(&THREADS, || {
        std::thread::available_parallelism().map_or(1, |n| n.get() as u32).min(1024)
    })
}

/// Bytes of memory that can be had without pushing others out, where the system tells.
pub fn memory_available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// The memory that this process may still use, where the system tells: available memory, within the limit on its addresses
/// (`ulimit -v`).
pub fn memory_left() -> Option<u64> {
    let left = address_limit().map(|limit| limit.saturating_sub(addresses_used().unwrap_or(0)));
    match (memory_available(), left) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The memory that evaluators may take, unless their caller says otherwise: seven eighths of the memory left, so that
/// uncounted allocations have room too.
pub fn budget() -> Budget {
    Budget::of_memory(memory_left().unwrap_or(16 << 30) / 8 * 7)
}

/// The most bytes of addresses that the process may have; `None` without a limit.
fn address_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes to the struct that it is given.
    let told = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0;
    (told && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Bytes of addresses that the process has, where the system tells.
fn addresses_used() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmSize:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// A family of processors: instruction set features, by the name that follows `-m`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cpu {
    pub name: &'static str,
    /// The kind of processor, as Rust and compilers' names have it; none where it may be any.
    pub arch: &'static str,
    pub features: &'static [&'static str],
}

/// The levels of x86-64, as its psABI has them; `baseline` is the first, or the features that all processors of another
/// architecture have.
pub const CPUS: [Cpu; 5] = [
    Cpu { name: "baseline", arch: "", features: &[] },
    Cpu { name: "x86-64-v2", arch: "x86_64", features: &["sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"] },
    Cpu {
        name: "x86-64-v3",
        arch: "x86_64",
        features: &[
            "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt",
        ],
    },
    Cpu {
        name: "x86-64-v4",
        arch: "x86_64",
        features: &[
            "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt",
            "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl",
        ],
    },
    // All have NEON and fused multiplication and addition.
    Cpu { name: "aarch64", arch: "aarch64", features: &[] },
];

impl Cpu {
    /// Returns true if it is this machine's architecture.
    pub fn is_here(&self) -> bool {
        self.arch.is_empty() || self.arch == std::env::consts::ARCH
    }
}

/// The families that are of this machine's kind.
pub fn cpus() -> impl Iterator<Item = Cpu> {
    CPUS.into_iter().filter(Cpu::is_here)
}

/// A family of this machine's kind by name.
pub fn cpu(name: &str) -> Option<Cpu> {
    cpus().find(|cpu| cpu.name == name)
}

/// A typical processor of a family, independent of this machine.
pub fn target_named(cpu: Cpu, threads: u32) -> Target {
    let arch = if cpu.arch.is_empty() { std::env::consts::ARCH } else { cpu.arch };
    Target { memories: Target::cpu().memories, ..target_of(arch, cpu.features, threads) }
}

/// This machine as the rules see it.
pub fn target(threads: u32) -> Target {
    let mut target = target_of(std::env::consts::ARCH, &features(), threads);
    // Two cycles on Intel's processors, which have two multiply-adds in one; one on AMD's. Tiles multiply words too.
    target.vector.slow_pairs = is_intel() && !target.matrix_units.contains(&MatrixUnit::FloatTiles);
    target
}

#[cfg(target_arch = "x86_64")]
fn is_intel() -> bool {
    let id = std::arch::x86_64::__cpuid(0);
    [id.ebx, id.edx, id.ecx] == [*b"Genu", *b"ineI", *b"ntel"].map(u32::from_le_bytes)
}

#[cfg(not(target_arch = "x86_64"))]
fn is_intel() -> bool {
    false
}

/// This machine with a processor of another kind and other features.
pub fn target_of(arch: &str, features: &[&str], threads: u32) -> Target {
    let has = |f: &str| features.contains(&f);
    let avx512 = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
    let (bytes, registers) = if avx512 {
        (64, 32)
    } else if has("avx2") {
        (32, 16)
    } else if arch == "aarch64" {
        (16, 32)
    } else {
        (16, 16)
    };
    let [l1, l2, l3] = caches();
    let fma = has("fma") || arch == "aarch64";
    let units = [
        ("avx2", MatrixUnit::IntegerPairs),
        ("avx512bf16", MatrixUnit::FloatPairs),
        ("avx512vnni", MatrixUnit::ByteQuads),
        ("amx-bf16", MatrixUnit::FloatTiles),
        ("amx-int8", MatrixUnit::IntegerTiles),
    ];
    let used = |feature: &str| has(feature) && (avx512 || feature == "avx2");
    let matrix_units = units.into_iter().filter(|(feature, _)| used(feature)).map(|(_, unit)| unit).collect();
    let masks = if avx512 { Some(1) } else { has("avx2").then_some(4) };
    let vector = Vector { bytes, registers, arithmetic: true, fma, slow_pairs: false, masks };
    Target { vector, matrix_units, ..Target::cpu() }
        .with_caches([l1.unwrap_or(32 << 10), l2.unwrap_or(1 << 20), l3.unwrap_or(16 << 20)])
        .with_workers(threads)
}

/// Data or unified cache sizes of levels 1, 2 and 3, where the system tells them. It is asked once: it takes longer than a
/// launch.
fn caches() -> [Option<u64>; 3] {
    static CACHES: OnceLock<[Option<u64>; 3]> = OnceLock::new();
    *CACHES.get_or_init(read_caches)
}

fn read_caches() -> [Option<u64>; 3] {
    let mut sizes = [None; 3];
    for i in 0..8 {
        let read =
            |file: &str| std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{i}/{file}")).ok();
        let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size")) else { continue };
        if kind.trim() == "Instruction" {
            continue;
        }
        if let Some(slot) = level.trim().parse::<usize>().ok().and_then(|l| sizes.get_mut(l.wrapping_sub(1))) {
            *slot = parse_size(size.trim()).or(*slot);
        }
    }
    sizes
}

/// `48K`, `2048K`, `32M`; `None` for anything else and for sizes no cache has.
fn parse_size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['K', 'k']) {
        Some(d) => (d, 1 << 10),
        None => match text.strip_suffix(['M', 'm']) {
            Some(d) => (d, 1 << 20),
            None => (text, 1),
        },
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(unit)?;
    (4 << 10..=4 << 30).contains(&bytes).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_nonsense_is_refused() {
        assert_eq!(parse_size("48K"), Some(48 << 10));
        assert_eq!(parse_size("2M"), Some(2 << 20));
        assert_eq!(parse_size("65536"), Some(65536));
        assert_eq!(parse_size("0K"), None);
        assert_eq!(parse_size("99999999999999M"), None);
        assert_eq!(parse_size("-1K"), None);
    }

    #[test]
    fn what_may_be_used_is_less_than_what_is_there() {
        let (left, allowed) = (memory_left().unwrap_or(16 << 30), budget().limits().memory);
        assert!(allowed > 0 && allowed < left, "{allowed} of {left}");
    }

    #[test]
    fn the_target_is_sane() {
        let t = target(3);
        assert_eq!(t.axes.workers, 3);
        assert!([16, 32, 64].contains(&t.vector.bytes));
        assert!(t.cache(1) > 0 && t.cache(1) <= t.cache(2) && t.cache(3) > 0);
    }
}
