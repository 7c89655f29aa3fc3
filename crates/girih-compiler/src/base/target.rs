//! What a schedule needs to know of a machine.

/// A CPU as the rules see it. No rule asks for a chip by name; it asks for a capability or a number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Bytes of a vector register: 16, 32 or 64.
    pub vector_bytes: u32,
    /// Architectural vector registers.
    pub vector_registers: u32,
    pub has_fma: bool,
    pub l1_bytes: u64,
    pub l2_bytes: u64,
    pub l3_bytes: u64,
    /// Worker threads a launch will use.
    pub threads: u32,
}

impl Default for Target {
    fn default() -> Self {
        Target {
            vector_bytes: 64,
            vector_registers: 32,
            has_fma: true,
            l1_bytes: 48 << 10,
            l2_bytes: 1 << 20,
            l3_bytes: 32 << 20,
            threads: 2,
        }
    }
}
