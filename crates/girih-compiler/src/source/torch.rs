//! Graphs exported from PyTorch, as JSON.
