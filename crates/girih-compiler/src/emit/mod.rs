//! Source text from kernel IR.
