//! What an evaluator asks of whoever started it.

/// Takes what a kernel prints, and may stop it.
pub trait Host {
    /// Text a block printed: all of it when the block ends, or what there is before a trap.
    fn print(&mut self, block: [u32; 3], text: &str);
    /// Whether to stop now.
    fn interrupted(&self) -> bool;
}

/// A host that drops what is printed and never interrupts.
pub struct Silent;

impl Host for Silent {
    fn print(&mut self, _block: [u32; 3], _text: &str) {}
    fn interrupted(&self) -> bool {
        false
    }
}
