use super::Library;
use crate::error::{Error, Result};
use crate::model::parts::Parts;
use crate::options::Options;
use crate::program::Program;
pub fn of_model(_: &Parts<'_>, _: &str, _: &Options) -> Result<Library> { Err(Error::argument("todo")) }
pub fn of_program(_: &Program, _: &str, _: &[&str], _: &Options) -> Result<Library> { Err(Error::argument("todo")) }
