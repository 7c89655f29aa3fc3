//! `--save` and `--print`: the results that they name.

use std::path::Path;

use super::arguments::show_as;
use crate::commands::runnable::{Run, Runnable};
use crate::failure::Failure;

/// The arrays that the flags name, by their positions among the results.
pub struct Shown<'a> {
    saves: Vec<(usize, &'a Path)>,
    prints: Vec<(usize, &'a str)>,
}

impl<'a> Shown<'a> {
    /// A result that cannot be kept is better known before a long run than after.
    pub fn of(
        runnable: &dyn Runnable,
        save: &'a [(String, String)],
        print: &'a [String],
    ) -> Result<Shown<'a>, Failure> {
        let saves = save.iter().map(|(name, file)| Ok((runnable.position(name)?, Path::new(file))));
        let saves = saves.collect::<Result<Vec<_>, Failure>>()?;
        let prints = print.iter().map(|name| Ok((runnable.position(name)?, name.as_str())));
        let prints = prints.collect::<Result<Vec<_>, Failure>>()?;
        for (_, file) in &saves {
            let folder = file.parent().filter(|p| !p.as_os_str().is_empty());
            if let Some(folder) = folder.filter(|p| !p.is_dir()) {
                let message = format!("cannot be written: the folder {} does not exist", folder.display());
                return Err(Failure::within(runnable.source())(girih::Error::file(file, message)));
            }
        }
        Ok(Shown { saves, prints })
    }

    pub fn is_empty(&self) -> bool {
        self.saves.is_empty() && self.prints.is_empty()
    }

    /// Saves and prints the results of a run.
    pub fn show(&self, runnable: &dyn Runnable, run: &dyn Run) -> Result<(), Failure> {
        let results = run.results();
        for (i, file) in &self.saves {
            let Some(array) = results.get(*i) else { continue };
            let written = match array.elem.text {
                true => girih::npy::write_strings(file, &array.words, array.buffer.shape()),
                false => girih::npy::write_as(file, array.buffer, array.elem.unsigned),
            };
            written.map_err(Failure::within(runnable.source()))?;
        }
        for (i, name) in &self.prints {
            let Some(array) = results.get(*i) else { continue };
            outln!("{name} = {}", show_as(array.buffer, array.elem, &array.words))?;
        }
        Ok(())
    }
}
