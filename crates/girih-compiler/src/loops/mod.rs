//! Loop IR: loop nests over scalars, and the passes that make and improve them.

pub mod ir;
pub mod lift;
