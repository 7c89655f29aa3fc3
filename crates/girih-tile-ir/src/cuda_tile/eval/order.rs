//! The order in which blocks start.

use std::rc::Rc;

use crate::base::launch::Launch;

/// The order in which blocks start.
pub enum Order {
    One(u64),
    Ascending(u64),
    Shuffled(Rc<Vec<u32>>),
}

impl Order {
    pub fn new(launch: &Launch) -> Order {
        let [gx, gy, _] = launch.grid.map(u64::from);
        let n = launch.blocks();
        if let Some([x, y, z]) = launch.only_block.map(|b| b.map(u64::from)) {
            return Order::One(x + gx * (y + gy * z));
        }
        if launch.seed == 0 || n > 1 << 24 {
            return Order::Ascending(n);
        }
        let mut rng = Rng(launch.seed);
        let mut all: Vec<u32> = (0..n as u32).collect();
        for i in (1..all.len()).rev() {
            all.swap(i, rng.below(i as u64 + 1) as usize);
        }
        Order::Shuffled(Rc::new(all))
    }
    pub fn len(&self) -> u64 {
        match self {
            Order::One(_) => 1,
            Order::Ascending(n) => *n,
            Order::Shuffled(all) => all.len() as u64,
        }
    }
    pub fn get(&self, i: u64) -> u64 {
        match self {
            Order::One(b) => *b,
            Order::Ascending(_) => i,
            Order::Shuffled(all) => all.get(i as usize).copied().unwrap_or(0) as u64,
        }
    }
}

/// SplitMix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n.max(1)
    }
}
