//! A description of a machine for schedules: numbers and capabilities. No rule asks for a machine by name.
//!
//! ```text
//! Target::cpu()               vectors of 64 bytes, 32 of them; caches of 48 KiB, 1 MiB, 32 MiB; two workers
//! Target::named("sm_90a")     warps of 32 threads, 227 KiB shared by a block, wgmma, cp.async and TMA
//! ```
//!
//! The numbers of GPUs are those that the CUDA C++ Programming Guide gives for a compute capability; multiprocessors,
//! L2, bandwidth and peak are those of one part, as its maker's data sheet has them (A100 40 GB, H100 SXM, B200, RTX 5090),
//! and a program that runs on a device asks the device.

use crate::loops::panels;

/// A machine as the rules see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// For messages: `cpu`, `sm_90a`.
    pub name: &'static str,
    /// The levels of parallelism.
    pub axes: Axes,
    /// The registers of one thread, and its arithmetic.
    pub vector: Vector,
    /// Memories between the registers and main memory, nearest first.
    pub memories: Vec<Memory>,
    pub matrix_units: Vec<MatrixUnit>,
    /// How operands get from main memory into a nearer one, besides loads and stores.
    pub transports: Vec<Transport>,
    /// For a GPU, the limits of a multiprocessor and the speed of the device.
    pub gpu: Option<Gpu>,
}

/// The limits of a multiprocessor, and the speed of the device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gpu {
    pub threads: u32,
    pub blocks: u32,
    /// Registers of 32 bits.
    pub registers: u32,
    /// Bytes of shared memory; the system has a KiB of them for each block.
    pub shared: u32,
    /// Bytes a second of main memory.
    pub bandwidth: f64,
    /// Parts of L2 that each keep what the multiprocessors beside them read: what all read is there as often.
    pub l2_parts: u32,
    /// Cycles a second.
    pub clock: f64,
    /// Operations a second on f32 without the matrix unit; a fused multiply-add is two.
    pub peak: f64,
    /// Operations a second of `mma.sync` on f16 with sums in f32; twice that on operands of half the size.
    pub products: f64,
    /// Operations a second of `wgmma` on f16 with sums in f32; 0 where there is none.
    pub grouped: f64,
}

// The numbers of a target are numbers.
impl Eq for Gpu {}

/// The levels of parallelism from the grid down to one thread, and the greatest extent of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Axes {
    /// Blocks that run at the same time: worker threads, or multiprocessors.
    pub workers: u32,
    /// Greatest extents of a grid along x, y and z.
    pub grid: [u32; 3],
    /// Blocks of a cluster that can reach each other's shared memory.
    pub cluster: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Threads of a warp.
    pub lanes: u32,
}

/// The vector registers of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vector {
    /// Bytes of a register, and of the widest access to memory.
    pub bytes: u32,
    pub registers: u32,
    /// True if there is arithmetic on whole registers; otherwise vectors are only moved.
    pub arithmetic: bool,
    /// Fused multiply-add in one instruction.
    pub fma: bool,
    /// Adding the products of pairs of bf16 takes more than twice as long as a multiply-add of f32, where there is such an instruction.
    pub slow_pairs: bool,
    /// The size in bytes of the smallest elements that one instruction can load or store under a mask of lanes, if any can.
    pub masks: Option<u32>,
}

/// A memory that is nearer than main memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    pub kind: MemoryKind,
    /// The size for one worker if each has its own, or for all workers if they share it.
    pub bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryKind {
    /// Filled by accesses to main memory.
    Cache { level: u8 },
    /// Addressed by all threads of a block; `bytes` is the most that a block can have.
    Shared,
    /// Addressed by the matrix unit: accumulators.
    Tensor,
}

/// An instruction set for products of small matrices. The shapes and types of its instructions stand where they are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MatrixUnit {
    /// Products by one warp, operands in registers.
    Mma,
    /// The same of floats of one byte.
    ByteMma,
    /// Products by a group of four warps, operands in shared memory, asynchronous.
    Wgmma,
    /// Started by one thread, accumulators in tensor memory, asynchronous.
    Tcgen05,
    /// In the lanes of a vector register, sums of the products of pairs of bf16.
    FloatPairs,
    /// The same of pairs of i16.
    IntegerPairs,
    /// The same of four unsigned bytes by signed ones.
    ByteQuads,
    /// Products of pairs of bf16 with 16 x 16 sums in registers of their own (AMX).
    FloatTiles,
    /// The same of four unsigned bytes by signed ones.
    IntegerTiles,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// A few bytes for each thread, asynchronous.
    CpAsync,
    /// A box of a tensor, asynchronous, started by one thread.
    Tma,
}

/// Something that a rule needs a machine to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Capability {
    /// Arithmetic on vector registers.
    VectorArithmetic,
    /// Caches, which a schedule blocks for without addressing them.
    Caches,
    /// Workers that each run whole blocks, one thread to a block.
    Workers,
    /// Blocks of many threads, which share a memory.
    Threads,
    /// Copies from main memory into it that go on while the threads do other things.
    AsyncCopies,
    /// Copies of boxes of arrays, which one thread begins.
    TensorCopies,
    /// Products of small matrices by the lanes of a warp.
    Products,
    /// Products of small matrices of one-byte floats.
    ByteFloats,
    /// Sums of products of unsigned by signed bytes, in the lanes of a vector.
    ProductsOfBytes,
    /// Products by groups of four warps, operands in shared memory.
    WarpgroupProducts,
    /// The same with sums in tensor memory.
    TensorMemory,
}

impl Default for Target {
    fn default() -> Self {
        Target::cpu()
    }
}

impl Target {
    /// The names that [`Target::named`] knows.
    pub const NAMES: [&'static str; 5] = ["cpu", "sm_80", "sm_90a", "sm_100a", "sm_120"];

    /// A CPU with vectors of 64 bytes and two workers. A machine at hand is described by who runs on it.
    pub fn cpu() -> Target {
        let grid = [u32::MAX; 3];
        Target {
            name: "cpu",
            axes: Axes { workers: 2, grid, cluster: 1, threads: 1, lanes: 1 },
            vector: Vector { bytes: 64, registers: 32, arithmetic: true, fma: true, slow_pairs: false, masks: Some(1) },
            memories: Target::caches([48 << 10, 1 << 20, 32 << 20]),
            matrix_units: vec![],
            transports: vec![],
            gpu: None,
        }
    }

    /// A target by name; `None`: there is none of this name.
    pub fn named(name: &str) -> Option<Target> {
        use MatrixUnit::*;
        use Transport::*;
        match name {
            "cpu" => Some(Target::cpu()),
            "sm_80" => Some(Target::gpu("sm_80", 108, 1, 163, 40, &[Mma], &[CpAsync], [1555.0, 1.41, 19.5, 312.0])),
            "sm_90a" => {
                let speed = [3350.0, 1.98, 67.0, 620.0];
                let t = Target::gpu("sm_90a", 132, 8, 227, 50, &[Mma, ByteMma, Wgmma], &[CpAsync, Tma], speed);
                let gpu = t.gpu.map(|g| Gpu { grouped: 989.0e12, ..g });
                Some(Target { gpu, ..t })
            }
            "sm_100a" => {
                let speed = [8000.0, 1.98, 75.0, 690.0];
                let t = Target::gpu("sm_100a", 148, 8, 227, 126, &[Mma, ByteMma, Tcgen05], &[CpAsync, Tma], speed);
                let gpu = t.gpu.map(|g| Gpu { grouped: 2250.0e12, ..g });
                Some(Target { gpu, ..t })
            }
            "sm_120" => {
                let t = Target::gpu(
                    "sm_120",
                    170,
                    1,
                    99,
                    96,
                    &[Mma, ByteMma],
                    &[CpAsync, Tma],
                    [1792.0, 2.41, 104.8, 209.5],
                );
                // Its multiprocessors are smaller than those of a data centre's GPU.
                let gpu = t.gpu.map(|g| Gpu { threads: 1536, blocks: 24, l2_parts: 1, ..g });
                Some(Target { gpu, ..t })
            }
            _ => None,
        }
    }

    /// `speed`: GB/s of memory, GHz, Tflop/s of f32 and of products in f16. A block can have all shared memory of a multiprocessor but a KiB.
    #[allow(clippy::too_many_arguments)]
    fn gpu(
        name: &'static str,
        workers: u32,
        cluster: u32,
        shared_kib: u64,
        l2_mib: u64,
        matrix_units: &[MatrixUnit],
        transports: &[Transport],
        speed: [f64; 4],
    ) -> Target {
        let mut memories = vec![Memory { kind: MemoryKind::Shared, bytes: shared_kib << 10 }];
        if matrix_units.contains(&MatrixUnit::Tcgen05) {
            // 128 lanes of 512 columns of four bytes.
            memories.push(Memory { kind: MemoryKind::Tensor, bytes: 256 << 10 });
        }
        memories.push(Memory { kind: MemoryKind::Cache { level: 2 }, bytes: l2_mib << 20 });
        Target {
            name,
            axes: Axes { workers, grid: [i32::MAX as u32, 65535, 65535], cluster, threads: 1024, lanes: 32 },
            // 255 registers of four bytes, moved four at a time.
            vector: Vector { bytes: 16, registers: 63, arithmetic: false, fma: true, slow_pairs: false, masks: None },
            memories,
            matrix_units: matrix_units.to_vec(),
            transports: transports.to_vec(),
            gpu: Some(Gpu {
                threads: 2048,
                blocks: 32,
                registers: 64 << 10,
                shared: (shared_kib as u32 + 1) << 10,
                bandwidth: speed[0] * 1e9,
                l2_parts: 2,
                clock: speed[1] * 1e9,
                peak: speed[2] * 1e12,
                products: speed[3] * 1e12,
                grouped: 0.0,
            }),
        }
    }

    /// Caches of these sizes, the first level first.
    pub fn caches(bytes: [u64; 3]) -> Vec<Memory> {
        let level = |(at, bytes)| Memory { kind: MemoryKind::Cache { level: at as u8 + 1 }, bytes };
        bytes.into_iter().enumerate().map(level).collect()
    }

    /// Returns this target with another number of workers.
    pub fn with_workers(mut self, workers: u32) -> Target {
        self.axes.workers = workers;
        self
    }

    /// The same machine with vector registers of another size and number.
    pub fn with_vectors(mut self, bytes: u32, registers: u32) -> Target {
        (self.vector.bytes, self.vector.registers) = (bytes, registers);
        self
    }

    /// The same machine with caches of these sizes.
    pub fn with_caches(mut self, bytes: [u64; 3]) -> Target {
        self.memories = Target::caches(bytes);
        self
    }

    /// Bytes of a memory; 0 where there is none of the kind.
    pub fn bytes_of(&self, kind: MemoryKind) -> u64 {
        self.memories.iter().find(|m| m.kind == kind).map_or(0, |m| m.bytes)
    }

    /// Bytes of the cache of a level, from 1; 0 where there is none.
    pub fn cache(&self, level: u8) -> u64 {
        self.bytes_of(MemoryKind::Cache { level })
    }

    /// Bytes of what all multiprocessors read that the second level of cache keeps for them.
    pub fn kept(&self) -> u64 {
        self.cache(2) / u64::from(self.gpu.map_or(1, |g| g.l2_parts.max(1)))
    }

    /// Rows of a product of four warps.
    pub fn group_rows(&self) -> u64 {
        if self.has(Capability::TensorMemory) { panels::TALL } else { panels::ROWS }
    }

    /// Columns of tensor memory of a multiprocessor, of 128 lanes of four bytes each.
    pub fn tensor_columns(&self) -> u64 {
        self.bytes_of(MemoryKind::Tensor) / (4 * panels::TALL)
    }

    /// The number of elements of `element_bytes` bytes that a vector register holds; at least 1.
    pub fn lanes_of(&self, element_bytes: u64) -> u32 {
        (u64::from(self.vector.bytes) / element_bytes.max(1)).max(1) as u32
    }

    pub fn has(&self, capability: Capability) -> bool {
        match capability {
            Capability::VectorArithmetic => self.vector.arithmetic,
            Capability::Caches => self.cache(1) > 0 && self.cache(2) > 0,
            Capability::Workers => self.axes.threads == 1,
            Capability::AsyncCopies => self.transports.contains(&Transport::CpAsync),
            Capability::Products => self.matrix_units.contains(&MatrixUnit::Mma),
            Capability::ProductsOfBytes => self.matrix_units.contains(&MatrixUnit::ByteQuads),
            Capability::ByteFloats => self.matrix_units.contains(&MatrixUnit::ByteMma),
            Capability::WarpgroupProducts => {
                self.matrix_units.contains(&MatrixUnit::Wgmma) || self.has(Capability::TensorMemory)
            }
            Capability::TensorMemory => self.matrix_units.contains(&MatrixUnit::Tcgen05),
            Capability::TensorCopies => self.transports.contains(&Transport::Tma),
            Capability::Threads => self.axes.threads > 1 && self.bytes_of(MemoryKind::Shared) > 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_target() {
        for name in Target::NAMES {
            let t = Target::named(name).unwrap();
            assert_eq!(t.name, name);
            let Axes { workers, grid, cluster, threads, lanes } = t.axes;
            assert!([workers, cluster, threads, lanes].iter().chain(&grid).all(|n| *n > 0), "{name}");
            assert!(threads.is_multiple_of(lanes) && t.memories.iter().all(|m| m.bytes > 0), "{name}");
            // Memories are larger the further they are, but for those of the matrix unit.
            let sizes = t.memories.iter().filter(|m| m.kind != MemoryKind::Tensor).map(|m| m.bytes);
            assert!(sizes.is_sorted(), "{name}");
            let has = |unit| t.matrix_units.contains(&unit);
            assert_eq!(has(MatrixUnit::Tcgen05), t.bytes_of(MemoryKind::Tensor) > 0, "{name}");
            assert!(!has(MatrixUnit::Wgmma) || t.transports.contains(&Transport::Tma), "{name}");
        }
        assert_eq!(Target::named("sm_75"), None);
    }

    #[test]
    fn a_gpu_has_other_capabilities_than_a_cpu() {
        use Capability::*;
        let (cpu, gpu) = (Target::cpu(), Target::named("sm_90a").unwrap());
        for capability in [VectorArithmetic, Caches, Workers] {
            assert!(cpu.has(capability) && !gpu.has(capability), "{capability:?}");
        }
        assert!(gpu.has(Threads) && gpu.has(AsyncCopies) && !cpu.has(Threads) && !cpu.has(AsyncCopies));
        assert_eq!((cpu.cache(1), cpu.cache(4), gpu.cache(1)), (48 << 10, 0, 0));
        assert_eq!((cpu.lanes_of(4), cpu.lanes_of(0), cpu.lanes_of(1 << 20)), (16, 64, 1));
    }
}
