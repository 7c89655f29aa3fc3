//! How the threads of a block share the rows or the columns of a tile.
//!
//! ```text
//! 128 columns, 8 each, 4 together, 64 apart        the thread that begins at p*4 has columns p*4.., and 64 + p*4..
//! ```
//!
//! Elements that a thread has together are moved by one access; neighbouring threads have neighbouring groups, so that the
//! accesses of a warp lie side by side: whole sectors of global memory, and different banks of shared memory.

use crate::loops::ir::Stmt;
use crate::loops::ir::{Axis, AxisId, Ix, Kernel, Place};
use crate::tile::edit;

/// The share that each of some threads has of a line of elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// The name of the loops over a thread's elements: `r`, `c`.
    pub name: &'static str,
    pub threads: u64,
    /// Elements of one thread.
    pub each: u64,
    /// The number of a thread's elements that lie side by side; divides `each`.
    pub together: u64,
    /// Elements from one such group to the next of the same thread.
    pub apart: u64,
}

impl Share {
    /// The element in a slot of a thread with this first element.
    pub fn at(&self, first: &Ix, slot: &Ix) -> Ix {
        let together = Ix::Const(self.together as i64);
        self.element(first, Ix::floor_div(slot.clone(), together.clone()), Ix::modulo(slot.clone(), together))
    }

    /// The same: `group` counts what lies together, `within` its elements.
    fn element(&self, first: &Ix, group: Ix, within: Ix) -> Ix {
        Ix::add(Ix::add(Ix::mul(group, Ix::Const(self.apart as i64)), first.clone()), within)
    }

    /// Unrolled loops over the slots of a thread around what `body` makes of a slot and its element. `vector`: the elements
    /// that lie together are moved at once.
    pub fn slots(
        &self,
        kernel: &mut Kernel,
        like: AxisId,
        first: &Ix,
        vector: bool,
        body: &mut dyn FnMut(&mut Kernel, Ix, Ix) -> Vec<Stmt>,
    ) -> Vec<Stmt> {
        let groups = self.each / self.together;
        let several = groups > 1 && self.together > 1;
        let mut axis = |n: u64, suffix: &str| {
            let name = format!("{}{}", self.name, if several { suffix } else { "" });
            let from = kernel.axes[like].from.clone();
            (n > 1).then(|| {
                let fresh = kernel.axes.push(Axis { name, from });
                kernel.sources.axes.copy(like, fresh);
                fresh
            })
        };
        let (group, within) = (axis(groups, "1"), axis(self.together, "2"));
        let at = |axis: Option<AxisId>| axis.map_or(Ix::Const(0), Ix::Axis);
        let slot = Ix::add(Ix::mul(at(group), Ix::Const(self.together as i64)), at(within));
        let mut out = body(kernel, slot, self.element(first, at(group), at(within)));
        if let Some(axis) = within {
            let place = if vector { Place::Vector { lanes: self.together as u32 } } else { Place::Unroll };
            out = vec![edit::loop_with(axis, Ix::Const(self.together as i64), out, |f| f.place = place)];
        }
        if let Some(axis) = group {
            out = vec![edit::loop_with(axis, Ix::Const(groups as i64), out, |f| f.place = Place::Unroll)];
        }
        out
    }
}
