//! The order in which an evaluator runs the blocks of a launch.
//!
//! In: a machine that runs one block for a while ([`Blocks`]). Out: every block has ended, or a [`Trap`]. Blocks are
//! claimed in linear order; a window of them is under way at once, and they take turns, in an order that a seed
//! shuffles.

use crate::base::Code;
use crate::base::budget::TooMuch;
use crate::base::host::Host;
use crate::base::launch::{Launch, Trap};

/// Blocks under way at once in a kernel whose blocks may wait for each other.
pub const WINDOW: usize = 1024;
/// Instructions after which a block gives way, and the host is asked whether to stop.
pub const SLICE: u32 = 1 << 14;

/// Turns of each block after which the blocks are examined, if none of them has ended: enough for every thread to have
/// had a turn. Blocks that wait for others give way sooner.
const PATIENCE: [usize; 2] = [2, 80];

/// Why a block stopped for now.
pub enum Pause {
    Ended,
    GaveWay,
}

/// Runs blocks in slices.
pub trait Blocks {
    /// A block under way.
    type Block;
    /// Returns true if blocks may wait for each other.
    fn cooperative(&self) -> bool;
    /// Room for a block, where there is memory for it.
    fn room(&mut self) -> Result<Self::Block, TooMuch>;
    /// Begins a block, in new room or in that of a block that ended.
    fn begin(&mut self, block: &mut Self::Block, id: [u32; 3]) -> Result<(), Trap>;
    /// Runs a block until it ends or gives way.
    fn slice(&mut self, block: &mut Self::Block) -> Result<Pause, Trap>;
    fn id(block: &Self::Block) -> [u32; 3];
    /// The most blocks that are under way at once if blocks wait for each other.
    fn most(&self) -> usize {
        WINDOW
    }
    /// Returns true if the blocks will loop for ever; asked now and then while none of them ends.
    fn goes_round(&mut self, _: &[Self::Block]) -> bool {
        false
    }
    /// The trap of a run whose blocks loop for ever; `left` blocks cannot begin.
    fn stalled(&mut self, _: &[Self::Block], _left: u64) -> Trap {
        Trap::new(Code::OutOfFuel, "the blocks wait for each other forever".to_string())
    }
    /// Takes the block's output.
    fn printed(block: &mut Self::Block) -> String;
}

/// The block of a grid of `all` blocks that a sample of `n` of them has as its `nth`: the first, the last, and one from each stretch
/// between, at a place of its own in it. With the same place in each, all could be in the same column of the grid.
fn sampled(nth: u64, n: u64, all: u64) -> u64 {
    let edge = |nth: u64| (u128::from(nth) * u128::from(all) / u128::from(n)) as u64;
    let (from, to) = (edge(nth), edge(nth + 1));
    // Fractions of multiples of the golden ratio lie evenly apart.
    let place = u128::from(nth.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    match nth {
        0 => 0,
        _ if nth + 1 == n => all - 1,
        _ => from + ((u128::from(to - from) * place) >> 64) as u64,
    }
}

/// Runs every block of the launch, or its `only_block`, or its `sample`.
pub fn run<B: Blocks>(machine: &mut B, launch: &Launch, host: &mut dyn Host) -> Result<(), Trap> {
    let [gx, gy, gz] = launch.grid;
    let mut next: u64 = 0;
    let mut end = launch.blocks();
    if let Some([x, y, z]) = launch.only_block {
        if x >= gx || y >= gy || z >= gz {
            let message = format!("block {x},{y},{z} is not in the grid {gx},{gy},{gz}");
            return Err(Trap::new(Code::BadArgument, message));
        }
        next = x as u64 + gx as u64 * (y as u64 + gy as u64 * z as u64);
        end = next + 1;
    }
    let all = end;
    let sample = launch.sample.filter(|n| launch.only_block.is_none() && *n < all && !machine.cooperative());
    end = sample.map_or(all, |n| n.max(1));
    let place = |nth: u64| sample.map_or(nth, |n| sampled(nth, n, all));
    let mut window = match (machine.cooperative(), launch.seed) {
        (true, _) => WINDOW.min(machine.most()),
        (false, 0) => 1,
        (false, _) => 64,
    };
    let mut live: Vec<B::Block> = Vec::new();
    let mut spare: Vec<B::Block> = Vec::new();
    let mut turn = 0usize;
    let mut random = launch.seed;
    // The turns since a block began or ended, and whether a lack of memory keeps other blocks from beginning.
    let (mut turns, mut full) = (0usize, false);
    loop {
        while live.len() < window && next < end {
            let mut block = match spare.pop() {
                Some(block) => block,
                None => match machine.room() {
                    Ok(block) => block,
                    // Memory holds no more blocks than those under way.
                    Err(_) if !live.is_empty() => {
                        full = true;
                        break;
                    }
                    Err(why) => {
                        return Err(Trap::new(Code::OutOfMemory, format!("a block cannot be evaluated: {why}")));
                    }
                },
            };
            let (gx, gy, at) = (gx as u64, gy as u64, place(next));
            machine.begin(&mut block, [(at % gx) as u32, (at / gx % gy) as u32, (at / gx / gy) as u32])?;
            live.push(block);
            (next, turns) = (next + 1, 0);
        }
        if live.is_empty() {
            return Ok(());
        }
        if launch.seed != 0 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            turn = (random >> 33) as usize;
        }
        turn %= live.len();
        if host.interrupted() {
            let block = B::id(&live[turn]);
            return Err(Trap { block, ..Trap::new(Code::Interrupted, "interrupted".to_string()) });
        }
        let outcome = machine.slice(&mut live[turn]);
        if matches!(outcome, Ok(Pause::GaveWay)) {
            turn += 1;
            turns += 1;
            if turns >= live.len().saturating_mul(PATIENCE[usize::from(machine.cooperative())]) {
                turns = 0;
                if machine.goes_round(&live) {
                    let most = if machine.cooperative() { machine.most() } else { 1 };
                    if full {
                        let message =
                            format!("{} blocks wait for others, and there is no memory to let these begin", live.len());
                        return Err(Trap::new(Code::OutOfMemory, message));
                    }
                    if next == end || live.len() >= most {
                        return Err(machine.stalled(&live, end - next));
                    }
                    window = most;
                }
            }
            continue;
        }
        let text = B::printed(&mut live[turn]);
        if !text.is_empty() {
            host.print(B::id(&live[turn]), &text);
        }
        outcome?;
        host.finished(B::id(&live[turn]));
        // Later blocks take the place of the ended one, so that the order stays that of the window.
        spare.push(live.remove(turn));
        turns = 0;
    }
}
