//! The order in which the warps of a block, and the parted lanes of a warp, take turns, and when asynchronous copies land.
//!
//! In: a policy and a seed, and the warps that are ready. Out: the warp that runs, and for how many instructions. The
//! same policy and seed give the same order. Invariant: every warp that is ready, and every group of lanes in it, gets
//! a turn again and again, so a wait for another thread ends.

/// The order in which warps run. A GPU may show every one of these orders.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Policy {
    /// One warp after the other, in short turns.
    #[default]
    RoundRobin,
    /// One warp runs only when all others wait, and each of these only when those before it do; lanes as in `Reversed`.
    /// The starved warp is the last one first, and another one every time that the seeds have gone through all policies.
    Starve,
    /// The last warp that can run runs until it waits.
    Newest,
    /// The last warp first, in short turns; the last lane first; the lanes that are furthest first.
    Reversed,
    /// The seed draws the warp, the length of its turn, and lanes that part from the others.
    Random,
}

impl Policy {
    /// After the plain policy come those that find the most: lanes that part, and copies that land now or late; then
    /// copies that all land at once, with the first warp last; then the last warp last.
    pub const ALL: [Policy; 5] = [Policy::RoundRobin, Policy::Random, Policy::Newest, Policy::Starve, Policy::Reversed];

    /// `round-robin`, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Policy::RoundRobin => "round-robin",
            Policy::Starve => "starve",
            Policy::Newest => "newest",
            Policy::Reversed => "reversed",
            Policy::Random => "random",
        }
    }

    pub fn from_name(name: &str) -> Option<Policy> {
        Policy::ALL.into_iter().find(|p| p.name() == name)
    }
}

/// Instructions of a turn.
const TURN: u32 = 64;
/// Every 64th turn, and every 64th choice among groups of lanes, is round-robin, whatever the policy.
const ROUND: u32 = 64;

#[derive(Clone, Debug)]
pub(in crate::kernel) struct Schedule {
    policy: Policy,
    seed: u64,
    random: u64,
    turns: u32,
    /// The warp that the last round-robin turn gave way to.
    round: usize,
    /// Choices among groups of lanes so far.
    groups: u32,
    /// The schedule is round-robin for now, whatever the policy.
    settled: bool,
}

impl Schedule {
    pub fn new(policy: Policy, seed: u64) -> Schedule {
        Schedule { policy, seed, random: seed ^ 0x9e37_79b9_7f4a_7c15, turns: 0, round: 0, groups: 0, settled: false }
    }

    /// One block after the other, one warp after the other.
    pub fn plain() -> Schedule {
        Schedule::new(Policy::RoundRobin, 0)
    }

    /// Draws nothing and prefers no warp or lane from here on (`settled`), or follows the policy again.
    pub fn settle(&mut self, settled: bool) {
        self.settled = settled;
    }

    fn policy(&self) -> Policy {
        if self.settled { Policy::RoundRobin } else { self.policy }
    }

    /// How often the seeds up to this one have gone through all policies.
    fn rounds(&self) -> u64 {
        self.seed / Policy::ALL.len() as u64
    }

    fn draw(&mut self, below: u32) -> u32 {
        self.random = self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (((self.random >> 33) * u64::from(below)) >> 31) as u32
    }

    /// The warp that runs after `last`, and the instructions of its turn; `None` where none can run.
    pub fn turn(&mut self, last: usize, warps: usize, ready: impl Fn(usize) -> bool) -> Option<(usize, u32)> {
        self.turns = self.turns.wrapping_add(1);
        if warps == 1 && self.policy() != Policy::Random {
            return ready(0).then_some((0, u32::MAX));
        }
        let after = || (1..=warps).map(|n| (last + n) % warps).find(|w| ready(*w));
        if self.turns.is_multiple_of(ROUND) {
            self.round = (1..=warps).map(|n| (self.round + n) % warps).find(|w| ready(*w))?;
            return Some((self.round, TURN));
        }
        let warp = match self.policy() {
            Policy::RoundRobin => after(),
            Policy::Starve => {
                let starved = warps - 1 - (self.rounds() % warps.max(1) as u64) as usize;
                (1..=warps).map(|n| (starved + n) % warps).find(|w| ready(*w))
            }
            Policy::Newest => (0..warps).rev().find(|w| ready(*w)),
            Policy::Reversed => (1..=warps).map(|n| (last + warps - n % warps) % warps).find(|w| ready(*w)),
            Policy::Random => {
                let from = self.draw(warps as u32) as usize;
                (0..warps).map(|n| (from + n) % warps).find(|w| ready(*w))
            }
        }?;
        let length = match self.policy() {
            Policy::Random => 1 + self.draw(TURN / 2),
            Policy::RoundRobin | Policy::Reversed => TURN / 8,
            Policy::Starve | Policy::Newest => TURN,
        };
        Some((warp, length))
    }

    /// The group of lanes that runs, among several at these instructions: the one that is furthest behind, so that they
    /// meet again.
    pub fn group(&mut self, ready: &[(usize, u32)]) -> Option<usize> {
        self.groups = self.groups.wrapping_add(1);
        if self.groups.is_multiple_of(ROUND) && !ready.is_empty() {
            return ready.get((self.groups / ROUND) as usize % ready.len()).map(|(group, _)| *group);
        }
        let at = match self.policy() {
            Policy::Reversed | Policy::Starve => ready.iter().max_by_key(|(_, at)| *at),
            Policy::Random => ready.get(self.draw(ready.len().max(1) as u32) as usize),
            _ => ready.iter().min_by_key(|(_, at)| *at),
        };
        at.map(|(group, _)| *group)
    }

    /// Lanes of a group that part from it for now; 0 for none.
    pub fn part(&mut self, mask: u32) -> u32 {
        if self.policy() != Policy::Random || self.draw(8) != 0 {
            return 0;
        }
        mask & (self.draw(u32::MAX) | self.draw(u32::MAX) << 16)
    }

    /// Returns true if a copy that begins now moves its bytes at once; otherwise it moves them at the latest allowed
    /// moment.
    pub fn lands_at_once(&mut self) -> bool {
        match self.policy {
            Policy::RoundRobin | Policy::Reversed => false,
            Policy::Newest => true,
            Policy::Starve => self.rounds() % 2 == 1,
            Policy::Random => self.draw(2) == 1,
        }
    }

    /// Returns true if lanes that write the same place do so from the last to the first, and copies land in that order.
    pub fn last_lane_first(&self) -> bool {
        matches!(self.policy, Policy::Reversed | Policy::Starve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The warps of the first turns, where all are ready but those of `waiting`.
    fn turns(policy: Policy, seed: u64, waiting: &[usize]) -> Vec<usize> {
        let mut schedule = Schedule::new(policy, seed);
        let mut last = 0;
        (0..400)
            .map(|_| {
                last = schedule.turn(last, 4, |w| !waiting.contains(&w)).unwrap().0;
                last
            })
            .collect()
    }

    #[test]
    fn each_policy_has_its_order() {
        assert_eq!(turns(Policy::RoundRobin, 0, &[])[..6], [1, 2, 3, 0, 1, 2]);
        assert_eq!(turns(Policy::RoundRobin, 0, &[2])[..6], [1, 3, 0, 1, 3, 0]);
        assert_eq!(turns(Policy::Reversed, 0, &[])[..6], [3, 2, 1, 0, 3, 2]);
        assert_eq!(turns(Policy::Newest, 0, &[3])[..4], [2, 2, 2, 2]);
        assert_eq!(turns(Policy::Starve, 3, &[])[..4], [0, 0, 0, 0]);
        assert_eq!(turns(Policy::Starve, 3, &[0, 1])[..4], [2, 2, 2, 2]);
        assert_eq!(turns(Policy::Starve, 3, &[0, 1, 2])[..2], [3, 3]);
        // Another warp starves in the next round of seeds.
        assert_eq!(turns(Policy::Starve, 8, &[0, 1])[..4], [3, 3, 3, 3]);
        assert_eq!(turns(Policy::Random, 7, &[]), turns(Policy::Random, 7, &[]));
        assert_ne!(turns(Policy::Random, 7, &[]), turns(Policy::Random, 8, &[]));
    }

    #[test]
    fn every_warp_gets_its_turn() {
        for policy in Policy::ALL {
            let all = turns(policy, 3, &[]);
            assert!((0..4).all(|w| all.contains(&w)), "{policy:?}");
            assert_eq!(Policy::from_name(policy.name()), Some(policy));
            assert_eq!(Schedule::new(policy, 1).turn(0, 4, |_| false), None);
        }
    }
}
