use super::Library;
use super::entry::Entry;
use crate::error::{Error, Result};
use crate::model::parts::Parts;
use crate::options::Options;
pub fn of_model(_: &Parts<'_>, _: &str, _: &Options) -> Result<Library> { Err(Error::argument("todo")) }
pub fn of_program(_: &[Entry], _: &str, _: &Options) -> Result<Library> { Err(Error::argument("todo")) }
