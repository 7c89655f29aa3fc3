//! Front ends of models: each reads bytes or text and gives a graph in Torch IR, or diagnostics.

pub mod expr;
pub mod onnx;
pub mod torch;
