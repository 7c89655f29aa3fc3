//! One of several forms of a kernel, chosen by measuring.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::launch::prepared::Report;
use crate::system::sync::Brief;

/// Each choice runs this often at least, and until this many seconds are spent on it.
const ROUNDS: usize = 3;
const SECONDS: f64 = 0.05;

/// Launches a kernel with the constants that are fastest, which it finds by trying.
///
/// ```
/// use girih::lang::*;
///
/// #[girih::kernel]
/// fn scale(x: &[f32], out: &mut [f32], n: i32, #[constexpr] block: i32) {
///     let i = program_id(0) * block + arange(0, block);
///     store_where(out + i, load_where(x + i, i < n, 0.0) * 2.0, i < n);
/// }
///
/// static BLOCKS: Autotuner<i32> = Autotuner::new(&[256, 1024, 4096]);
///
/// let (x, mut out) = (vec![1.0f32; 5000], vec![0.0f32; 5000]);
/// BLOCKS.launch(x.len(), |&block| scale(&x, &mut out, 5000, block).launch(cdiv(5000, block as u32)))?;
/// assert_eq!(out, vec![2.0; 5000]);
/// # Ok::<(), girih::Error>(())
/// ```
pub struct Autotuner<C: 'static> {
    choices: &'static [C],
    /// The place of the fastest, by key.
    found: Brief<BTreeMap<String, usize>>,
}

impl<C> Autotuner<C> {
    /// Chooses among `choices`: numbers, tuples of them, or a type of your own.
    pub const fn new(choices: &'static [C]) -> Autotuner<C> {
        Autotuner { choices, found: Brief::new(BTreeMap::new()) }
    }

    /// Launches with the choice that is fastest for `key`: the values that the time depends on, such as extents, and the device.
    ///
    /// The first launch for a key runs every choice, each a few times, in turns, and keeps the one with the least median for as long
    /// as the process runs. So `launch` must give the same results each time it runs: a kernel that adds to its output
    /// needs an output of its own. Choices that cannot be compiled or launched are passed over.
    ///
    /// # Errors
    /// That of the first choice, where none can be launched; and at once what stops a kernel that runs.
    pub fn launch(&self, key: impl Debug, mut launch: impl FnMut(&C) -> Result<Report>) -> Result<Report> {
        let key = format!("{key:?}");
        let known = self.found.lock().get(&key).copied();
        let best = match known {
            Some(at) => at,
            None => {
                let at = self.measured(&mut launch)?;
                self.found.lock().insert(key, at);
                at
            }
        };
        launch(&self.choices[best])
    }

    /// The choice that a key has, if it was measured.
    pub fn best(&self, key: impl Debug) -> Option<&'static C> {
        self.found.lock().get(&format!("{key:?}")).map(|at| &self.choices[*at])
    }

    fn measured(&self, launch: &mut impl FnMut(&C) -> Result<Report>) -> Result<usize> {
        let (mut times, mut first) = (vec![], None);
        for (at, choice) in self.choices.iter().enumerate() {
            // The first run compiles.
            match launch(choice) {
                Ok(_) => times.push((at, vec![])),
                Err(
                    e @ (Error::Program(_) | Error::Kernel { .. } | Error::Argument { .. } | Error::Compiler { .. }),
                ) => {
                    first = first.or(Some(e));
                }
                Err(e) => return Err(e),
            }
        }
        if times.is_empty() {
            return Err(first.unwrap_or_else(|| Error::argument("an autotuner needs something to choose from")));
        }
        let enough = |spent: &[f64]| spent.len() >= ROUNDS && spent.iter().sum::<f64>() >= SECONDS;
        while times.len() > 1 && times.iter().any(|(_, spent)| !enough(spent)) {
            for (at, spent) in &mut times {
                let start = Instant::now();
                launch(&self.choices[*at])?;
                spent.push(start.elapsed().as_secs_f64());
            }
        }
        for (_, spent) in &mut times {
            spent.sort_by(f64::total_cmp);
        }
        let median = |spent: &[f64]| spent.get(spent.len() / 2).copied().unwrap_or(0.0);
        let best = times.iter().min_by(|(_, x), (_, y)| median(x).total_cmp(&median(y)));
        Ok(best.map_or(0, |(at, _)| *at))
    }
}
