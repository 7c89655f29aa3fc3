//! The resources that a kernel needs of a multiprocessor, and how many of its blocks fit on one.
//!
//! In: the lines of `ptxas` on each kernel in NVRTC's log. Out: [`Resources`], the rest of the log, and [`Occupancy`].
//!
//! ```text
//! ptxas info    : Compiling entry function 'k' for 'sm_90a'
//! ptxas         .     128 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//! ptxas info    : Used 30 registers, used 1 barriers, 128 bytes cumulative stack size, 256 bytes smem
//! -->
//! Resources { name: "k", registers: 30, stack: 128, spill_stores: 0, spill_loads: 0, shared: 256 }
//! ```

use girih_compiler::tile::target::Target;

/// A kernel's resources as `ptxas` reports them, in bytes of one thread; `shared` is in bytes of one block, without the
/// dynamic part.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resources {
    pub name: String,
    /// Registers of 32 bits.
    pub registers: u32,
    /// Local memory, spilled registers among it.
    pub stack: u32,
    pub spill_stores: u32,
    pub spill_loads: u32,
    pub shared: u32,
}

/// The number before some words: 30 of `Used 30 registers, ...` before ` registers`.
fn before(text: &str, words: &str) -> Option<u32> {
    let (head, _) = text.split_once(words)?;
    head.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The kernels' resources in a log, and the log without their lines.
pub(super) fn resources(log: &str) -> (Vec<Resources>, String) {
    let (mut kernels, mut rest): (Vec<Resources>, String) = Default::default();
    for line in log.lines() {
        if !line.starts_with("ptxas ") || line.contains("warning") || line.contains("error") {
            rest.push_str(line);
            rest.push('\n');
            continue;
        }
        if let Some((_, after)) = line.split_once("entry function '") {
            let name = after.split('\'').next().unwrap_or_default().to_string();
            kernels.push(Resources { name, ..Resources::default() });
        }
        let Some(kernel) = kernels.last_mut() else { continue };
        if let Some(stack) = before(line, " bytes stack frame") {
            kernel.stack = stack;
            kernel.spill_stores = before(line, " bytes spill stores").unwrap_or(0);
            kernel.spill_loads = before(line, " bytes spill loads").unwrap_or(0);
        }
        if let Some(registers) = before(line, " registers") {
            kernel.registers = registers;
            kernel.shared = before(line, " bytes smem").unwrap_or(0);
            kernel.stack = kernel.stack.max(before(line, " bytes cumulative stack size").unwrap_or(0));
        }
    }
    (kernels, rest.trim().to_string())
}

/// Registers are given to a warp in units of this many.
const REGISTER_UNIT: u32 = 256;
/// Shared memory is given to a block in units of this many bytes, and so much of it is the system's.
const SHARED_UNIT: u32 = 128;
const SHARED_OF_SYSTEM: u32 = 1024;

/// The number of blocks that run on one multiprocessor, and the resource that limits it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occupancy {
    pub blocks: u32,
    /// Threads of these, of those that the multiprocessor can hold.
    pub threads: u32,
    pub most_threads: u32,
    /// `threads`, `blocks`, `registers` or `shared memory`.
    pub limit: &'static str,
}

impl std::fmt::Display for Occupancy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = 100 * self.threads / self.most_threads.max(1);
        write!(f, "{} blocks, {} of {} threads ({percent} %), ", self.blocks, self.threads, self.most_threads)?;
        write!(f, "limited by {}", self.limit)
    }
}

/// The occupancy of a kernel whose blocks have `threads` threads and `dynamic_shared` bytes of dynamic shared memory;
/// `None` for an unknown target.
pub fn occupancy(target: &str, kernel: &Resources, threads: u32, dynamic_shared: u32) -> Option<Occupancy> {
    let m = Target::named(target)?.gpu?;
    let warps = threads.max(1).div_ceil(32);
    let registers = (kernel.registers.max(1) * 32).next_multiple_of(REGISTER_UNIT);
    // A quarter of the registers belongs to each of four schedulers, and a warp to one of them.
    let warps_of_registers = m.registers / 4 / registers * 4;
    let shared = kernel.shared.saturating_add(dynamic_shared).saturating_add(SHARED_OF_SYSTEM);
    let limits = [
        ("threads", m.threads / (warps * 32)),
        ("blocks", m.blocks),
        ("registers", warps_of_registers / warps),
        ("shared memory", m.shared / shared.next_multiple_of(SHARED_UNIT)),
    ];
    let (limit, blocks) = limits.into_iter().min_by_key(|l| l.1)?;
    Some(Occupancy { blocks, threads: blocks * warps * 32, most_threads: m.threads, limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_of_two_kernels() {
        let log = "girih.cu(3): warning #550-D: variable \"d\" was set but never used\n\
                   ptxas info    : 0 bytes gmem\n\
                   ptxas info    : Compiling entry function 'a' for 'sm_90a'\n\
                   ptxas info    : Function properties for a\n\
                   ptxas         .     128 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n\
                   ptxas info    : Used 30 registers, used 1 barriers, 128 bytes cumulative stack size, 256 bytes smem\n\
                   ptxas info    : Compile time = 82.577 ms\n\
                   ptxas info    : Compiling entry function 'b' for 'sm_90a'\n\
                   ptxas info    : Used 255 registers, used 0 barriers\n";
        let (kernels, rest) = resources(log);
        assert_eq!(rest, "girih.cu(3): warning #550-D: variable \"d\" was set but never used");
        let a =
            Resources { name: "a".into(), registers: 30, stack: 128, spill_stores: 8, spill_loads: 12, shared: 256 };
        assert_eq!(kernels, [a, Resources { name: "b".into(), registers: 255, ..Resources::default() }]);
    }

    /// Numbers of NVIDIA's occupancy calculator, by hand.
    #[test]
    fn what_limits_the_blocks() {
        let of = |registers, shared| Resources { registers, shared, ..Resources::default() };
        let limit = |target, kernel: &Resources, threads| {
            let o = occupancy(target, kernel, threads, 0).unwrap();
            (o.blocks, o.threads, o.limit)
        };
        assert_eq!(limit("sm_90a", &of(32, 0), 256), (8, 2048, "threads"));
        assert_eq!(limit("sm_120", &of(32, 0), 256), (6, 1536, "threads"));
        assert_eq!(limit("sm_80", &of(16, 0), 32), (32, 1024, "blocks"));
        // 128 registers of 256 threads are half of 64 Ki.
        assert_eq!(limit("sm_90a", &of(128, 0), 256), (2, 512, "registers"));
        // 255 registers are 256 a thread: 8 warps.
        assert_eq!(limit("sm_80", &of(255, 0), 128), (2, 256, "registers"));
        assert_eq!(limit("sm_80", &of(32, 40 << 10), 128), (4, 512, "shared memory"));
        // With the most shared memory that a block can have, one block fits.
        assert_eq!(limit("sm_90a", &of(32, 227 << 10), 128), (1, 128, "shared memory"));
        assert_eq!(occupancy("sm_75", &of(32, 0), 128, 0), None);
    }
}
