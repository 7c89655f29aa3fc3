//! A value that takes long to make and is made once.

use super::brief::Brief;
use super::turn::{Denied, Turn};
use crate::error::{Error, Result};

/// A value that takes long to make and is made once.
pub struct Built<T> {
    made: Brief<Option<T>>,
    making: Turn,
}

impl<T> Default for Built<T> {
    fn default() -> Built<T> {
        Built { made: Brief::new(None), making: Turn::new() }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Built<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.made.fmt(f)
    }
}

impl<T: Clone> Built<T> {
    pub fn get(&self) -> Option<T> {
        self.made.lock().clone()
    }

    /// The value; a thread that comes while another one makes it waits.
    pub fn get_or_make(&self, make: impl FnOnce() -> Result<T>) -> Result<T> {
        if let Some(made) = self.get() {
            return Ok(made);
        }
        let _making = match self.making.take() {
            Ok(holding) => Some(holding),
            Err(Denied::Stopped) => return Err(Error::Interrupted),
            // In the middle of making it: it is made twice, and the first stays.
            Err(Denied::Mine) => None,
        };
        if let Some(made) = self.get() {
            return Ok(made);
        }
        let made = make()?;
        Ok(self.made.lock().get_or_insert(made).clone())
    }
}
