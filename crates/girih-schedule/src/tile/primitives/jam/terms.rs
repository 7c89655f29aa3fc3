//! `jam` of a reduction's terms: each iteration folds several of them.
//!
//! ```text
//! for k in 0..2048: reduce combine add(s)            for k2 in 0..1024: reduce combine add(s)
//!   %a = load w[k//2] where k%2 < 1 else 0             %a = load w[k2]
//!   %b = load v[k//2] where k%2 >= 1 else 0   -->      s <- %a + s
//!   %in = test k%2 < 1                                 %b = load v[k2]
//!   s <- select(%in, %a, %b) + s                       s <- %b + s
//! ```
//!
//! Conditions that a place among the terms decides are decided, and each term is folded after the one before it. Legal for a
//! reduction of straight statements that has no place yet.

use std::collections::BTreeMap;

use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::edit::{self, const_trip, new_axis};
use crate::tile::primitives::digits::has_role;

/// True for an innermost reduction whose terms can be taken together.
pub fn are_of(f: &For) -> bool {
    let straight = |s: &Stmt| edit::is_pure(s) || matches!(s, Stmt::Write { .. });
    f.kind == LoopKind::Reduce && f.place == Place::None && !has_role(f) && f.body.iter().all(straight)
}

/// `together` terms in each iteration; they divide the iterations, which count from 0.
pub fn jammed(kernel: &mut Kernel, f: &For, together: i64) -> For {
    let group = new_axis(kernel, f.axis, &together.to_string());
    let trip = const_trip(f).map_or(0, |n| n as i64) / together;
    let (facts, extents) = (kernel.facts(), BTreeMap::from([(group, trip)]));
    let mut body = vec![];
    for term in 0..together {
        let place = Ix::Axis(group) * Ix::Const(together) + Ix::Const(term);
        let own = if term == 0 { f.body.clone() } else { walk::clone_fresh(kernel, &f.body) };
        let mut copy = edit::place_axes(&own, &BTreeMap::from([(f.axis, place)]), &extents);
        edit::decide(&mut copy, &facts);
        edit::choose(&mut copy);
        edit::drop_unused(&mut copy);
        body.extend(copy);
    }
    For { axis: group, hi: Ix::Const(trip), body, ..f.clone() }
}
