//! The lift against the evaluators.
