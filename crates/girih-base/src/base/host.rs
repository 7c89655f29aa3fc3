//! The requests of an evaluator to its caller.

use super::{Frames, Span};

/// Takes the output of a kernel, and may stop the kernel.
pub trait Host {
    /// Text that a block printed: all of it when the block ends, or the part before a trap.
    fn print(&mut self, block: [u32; 3], text: &str);
    /// True if text is handed over when it is printed, with the block stopped until it is taken.
    fn at_once(&self) -> bool {
        false
    }
    /// True if the run is to stop now.
    fn interrupted(&self) -> bool;
    /// A block ended.
    fn finished(&mut self, _block: [u32; 3]) {}
    /// A block gave way to the others; true asks for [`Host::waiting`].
    fn gave_way(&mut self) -> bool {
        false
    }
    /// The blocks that have begun and not ended.
    fn waiting(&mut self, _blocks: &[Waiting]) {}
}

/// A block that gave way, and the operation at which it did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    pub block: [u32; 3],
    pub op: String,
    pub span: Option<Span>,
    pub frames: Frames,
}

/// A host that drops all output and never interrupts.
pub struct Silent;

impl Host for Silent {
    fn print(&mut self, _block: [u32; 3], _text: &str) {}
    fn interrupted(&self) -> bool {
        false
    }
}
