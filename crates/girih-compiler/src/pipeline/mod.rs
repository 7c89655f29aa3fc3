//! The ordered list of stages and passes, and the loop that runs them.
