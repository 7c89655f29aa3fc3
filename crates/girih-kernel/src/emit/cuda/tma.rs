//! Mbarriers, fences and copies of boxes as PTX in small functions.
//!
//! ```text
//! init full[0] count 1                                  -->   mbarrier_init(&full[0], 1);
//! fence init                                            -->   fence_mbarrier_init();
//! arrive full[k%2] expect 4096                          -->   mbarrier_arrive_expect(&full[k & 1], 4096);
//! copy tensor s[0] = a_map[by*64, k] on full[k%2]       -->   copy_tensor_2d(&s[0], &a_map, k, by * 64, &full[k & 1]);
//! wait full[k%2] parity k//2%2                          -->   mbarrier_wait(&full[k & 1], k >> 1 & 1);
//! copy tensor c_map[bx*64, by*64] = s[0]                -->   copy_tensor_back_2d(&c_map, by * 64, bx * 64, &s[0]);
//!
//! barrier cluster                                       -->   cluster_sync();
//! arrive free[k%2] of 1                                 -->   mbarrier_arrive_of(&free[k & 1], 1);
//! x: f32 = load s[0] of 3                               -->   float x = *(float *)place_of(&s[0], 3);
//! copy tensor s[0] = a_map[by*64, k] on full[k%2] all   -->   copy_tensor_all_2d(&s[0], &a_map, k, by * 64, &full[k & 1], 3);
//! ```
//! Coordinates stand innermost first, as in PTX. Every function counts as changing memory, so no access is moved across
//! it.

use super::stmt::{Printer, Result};
use crate::index::Ix;
use crate::kernel::ir::*;
use crate::num::DType;

/// An operand that is a shared address.
fn shared(pointer: &str) -> String {
    format!("\"r\"((unsigned int)__cvta_generic_to_shared({pointer}))")
}

/// The coordinates of a box, by number and name.
fn coordinates(rank: usize, one: &dyn Fn(usize, &str) -> String) -> String {
    let names = ["x", "y", "z", "u", "v"].into_iter().take(rank).enumerate();
    names.map(|(n, name)| one(n, name)).collect::<Vec<_>>().join(", ")
}

impl Printer<'_> {
    /// A call of a function that is one instruction on operands, with an mbarrier as its first parameter.
    fn on(&mut self, name: &str, instruction: &str, on: &Address, more: Option<(&str, String)>) {
        let operand = more.as_ref().map_or(String::new(), |_| ", \"r\"(x)".to_string());
        let param = more.as_ref().map_or(String::new(), |(ty, _)| format!(", {ty} x"));
        let arg = more.map_or(String::new(), |(_, arg)| format!(", {arg}"));
        let end = if instruction.ends_with('}') { "" } else { ";" };
        let body = format!("  asm volatile(\"{instruction}{end}\" : : {}{operand} : \"memory\");\n", shared("p"));
        self.support.block(name, &format!("INLINE void {name}(void *p{param}) {{\n{body}}}\n"));
        let address = self.target(on).address;
        self.out.line(&format!("{name}({address}{arg});"));
    }

    pub(super) fn init(&mut self, on: &Address, count: u32) {
        let more = Some(("int", count.to_string()));
        self.on("mbarrier_init", "mbarrier.init.shared::cta.b64 [%0], %1", on, more);
    }

    pub(super) fn arrive(&mut self, on: &Address, bytes: Option<u32>) {
        match bytes {
            None => self.on("mbarrier_arrive", "mbarrier.arrive.shared::cta.b64 _, [%0]", on, None),
            Some(bytes) => {
                let instruction = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1";
                self.on("mbarrier_arrive_expect", instruction, on, Some(("int", bytes.to_string())));
            }
        }
    }

    /// Arrives at the mbarrier of a block of the cluster.
    pub(super) fn arrive_of(&mut self, on: &Address, block: u32) {
        let instruction = "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; \
                           mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }";
        self.on("mbarrier_arrive_of", instruction, on, Some(("int", block.to_string())));
    }

    /// Loads the element that a block of the cluster has at a place of its shared memory.
    pub(super) fn load_of(&mut self, dst: ValId, place: &Address, block: u32) -> String {
        let (ty, address) = (self.val_ty(dst), self.target(place).address);
        let body = "  void *there;\n  asm volatile(\"mapa.u64 %0, %1, %2;\" : \"=l\"(there) : \"l\"(p), \"r\"(block) : \
                    \"memory\");\n  return there;\n";
        self.support.block("place_of", &format!("INLINE void *place_of(void *p, int block) {{\n{body}}}\n"));
        let element = self.support.memory_ty(ty.dtype().name(), 1);
        let truth = if ty.dtype() == DType::I1 { " != 0" } else { "" };
        format!("*({element} *)place_of({address}, {block}){truth}")
    }

    /// Without `.aligned`: the lanes of a warp may have diverged before.
    pub(super) fn cluster_barrier(&mut self) {
        self.bare("cluster_sync", "barrier.cluster.arrive.release; barrier.cluster.wait.acquire");
    }

    pub(super) fn wait_phase(&mut self, on: &Address, parity: &Ix) {
        // The thread that arrives may belong to another block.
        let (name, scope) = match self.kernel.cluster {
            1 => ("mbarrier_wait", ""),
            _ => ("mbarrier_wait_cluster", ".acquire.cluster"),
        };
        let body = format!(
            "  int done;\n  do {{\n    asm volatile(\"{{ .reg .pred ended; mbarrier.try_wait.parity{scope}.shared::cta.b64 ended, [%1], %2; \
             selp.b32 %0, 1, 0, ended; }}\" : \"=r\"(done) : {}, \"r\"(parity) : \"memory\");\n  }} while (!done);\n",
            shared("p")
        );
        self.support.block(name, &format!("INLINE void {name}(void *p, int parity) {{\n{body}}}\n"));
        let (address, parity) = (self.target(on).address, self.ix.print(parity));
        self.out.line(&format!("{name}({address}, {parity});"));
    }

    pub(super) fn fence(&mut self, fence: Fence) {
        match fence {
            Fence::Init => self.bare("fence_mbarrier_init", "fence.mbarrier_init.release.cluster"),
            Fence::Registers => self.bare("fence_registers", "wgmma.fence.sync.aligned"),
            Fence::Async => self.bare("fence_async", "fence.proxy.async.shared::cta"),
            Fence::Global => self.bare("fence_global", "fence.proxy.async.global"),
            Fence::BeforeSync => self.bare("tcgen05_before_sync", "tcgen05.fence::before_thread_sync"),
            Fence::AfterSync => self.bare("tcgen05_after_sync", "tcgen05.fence::after_thread_sync"),
        }
    }

    /// The name of a tensor's map, whose type is declared on first use.
    fn tensor_map(&mut self, tensor: TensorId) -> Result<String> {
        let Some(map) = self.kernel.tensors.get(tensor).map(|t| t.name.to_string()) else {
            return self.refuse("a copy of a tensor that the kernel does not have");
        };
        self.support.block("TensorMap", TENSOR_MAP);
        Ok(map)
    }

    fn innermost_first(&mut self, at: &[Ix]) -> String {
        at.iter().rev().map(|ix| self.ix.print(ix)).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn copy_tensor(
        &mut self,
        to: &Address,
        tensor: TensorId,
        from: &[Ix],
        on: &Address,
        all: bool,
    ) -> Result<()> {
        let map = self.tensor_map(tensor)?;
        let rank = from.len();
        let name = format!("copy_tensor_{}{rank}d", if all { "all_" } else { "" });
        let list = |one: &dyn Fn(usize, &str) -> String| coordinates(rank, one);
        let [space, how, mask, operand, param] = match all {
            false => ["cta", "", "", "", ""].map(str::to_string),
            true => [
                "cluster".to_string(),
                ".multicast::cluster".to_string(),
                format!(", %{}", rank + 3),
                ", \"h\"((short)blocks)".to_string(),
                ", int blocks".to_string(),
            ],
        };
        let body = format!(
            "  asm volatile(\"cp.async.bulk.tensor.{rank}d.shared::{space}.global.tile.mbarrier::complete_tx::bytes{how} [%0], \
             [%1, {{{}}}], [%2]{mask};\" : : {}, \"l\"(map), {}, {}{operand} : \"memory\");\n",
            list(&|n, _| format!("%{}", n + 3)),
            shared("to"),
            shared("on"),
            list(&|_, name| format!("\"r\"({name})")),
        );
        let params = list(&|_, name| format!("int {name}"));
        let text =
            format!("INLINE void {name}(void *to, const TensorMap *map, {params}, void *on{param}) {{\n{body}}}\n");
        self.support.block(&name, &text);
        let from = self.innermost_first(from);
        let (to, on) = (self.target(to).address, self.target(on).address);
        let blocks = if all { format!(", {}", (1u32 << self.kernel.cluster) - 1) } else { String::new() };
        self.out.line(&format!("{name}({to}, &{map}, {from}, {on}{blocks});"));
        Ok(())
    }

    pub(super) fn store_tensor(&mut self, tensor: TensorId, to: &[Ix], from: &Address) -> Result<()> {
        let map = self.tensor_map(tensor)?;
        let rank = to.len();
        let name = format!("copy_tensor_back_{rank}d");
        let list = |one: &dyn Fn(usize, &str) -> String| coordinates(rank, one);
        let body = format!(
            "  asm volatile(\"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [%0, {{{}}}], [%1];\" : : \
             \"l\"(map), {}, {} : \"memory\");\n",
            list(&|n, _| format!("%{}", n + 2)),
            shared("from"),
            list(&|_, name| format!("\"r\"({name})")),
        );
        let params = list(&|_, name| format!("int {name}"));
        let text = format!("INLINE void {name}(const TensorMap *map, {params}, const void *from) {{\n{body}}}\n");
        self.support.block(&name, &text);
        let to = self.innermost_first(to);
        let from = self.target(from).address;
        self.out.line(&format!("{name}(&{map}, {to}, {from});"));
        Ok(())
    }

    pub(super) fn store_wait(&mut self, left: u32) {
        self.bare(&format!("copy_tensor_wait_{left}"), &format!("cp.async.bulk.wait_group.read {left}"));
    }

    /// The parameters that describe arrays to TMA; the host fills them in.
    pub(super) fn tensor_maps(&mut self) -> Vec<String> {
        if !self.kernel.tensors.is_empty() {
            self.support.block("TensorMap", TENSOR_MAP);
        }
        self.kernel.tensors.values().map(|t| format!("const __grid_constant__ TensorMap {}", t.name)).collect()
    }

    /// Prefetches the descriptions of arrays that TMA needs.
    pub(super) fn prefetch(&mut self) {
        for tensor in self.kernel.tensors.values() {
            let name = "prefetch_tensor_map";
            let body = "  asm volatile(\"prefetch.tensormap [%0];\" : : \"l\"(map) : \"memory\");\n";
            self.support.block(name, &format!("INLINE void {name}(const TensorMap *map) {{\n{body}}}\n"));
            self.out.line(&format!("if (threadIdx.x == 0) {name}(&{});", tensor.name));
        }
    }
}

/// The structure that the driver's `cuTensorMapEncodeTiled` fills.
const TENSOR_MAP: &str = "struct __align__(128) TensorMap { unsigned long long words[16]; };\n";
