//! How much a launch computes, and how long its chains of dependent steps are, as far as the bounds of its loops tell.

use super::point::{Launched, Point};
use crate::loops::ir::{For, Kernel, LoopKind, Stmt};

/// The work of a launch that its loops' bounds tell: floating or integer operations of contractions (a multiply and an
/// add each), edges of partial tiles included. `None` where a bound is computed by the kernel.
pub fn contraction_work(kernel: &Kernel, grid: [u32; 3], slots: &[u64]) -> Option<f64> {
    let mut work = 0.0;
    walk_trips(kernel, grid, slots, &mut |l, around, trips| {
        if l.contraction.is_some() {
            work += 2.0 * around * trips;
        }
    })?;
    Some(work * grid.iter().map(|&g| f64::from(g)).product::<f64>())
}

/// The longest chain of dependent steps: the product of the trip counts of nested reduce and serial loops.
pub fn longest_accumulation(kernel: &Kernel, grid: [u32; 3], slots: &[u64]) -> Option<f64> {
    fn chain(launch: &Launched<'_>, body: &[Stmt], point: &mut Point) -> Option<f64> {
        let mut longest = 1f64;
        for stmt in body {
            let inner = match stmt {
                Stmt::For(l) => {
                    let trips = launch.enter(l, point)?;
                    let own = if l.kind == LoopKind::Free { 1.0 } else { trips.max(1.0) };
                    own * chain(launch, &l.body, point)?
                }
                Stmt::If { then, els, .. } => chain(launch, then, point)?.max(chain(launch, els, point)?),
                Stmt::Loop { body } => chain(launch, body, point)?,
                _ => 1.0,
            };
            longest = longest.max(inner);
        }
        Some(longest)
    }
    let mut point = Point::first();
    chain(&Launched { kernel, grid, slots }, &kernel.body, &mut point)
}

/// Calls `f` for each loop with the product of the trip counts around it and its own, in block 0.
fn walk_trips(kernel: &Kernel, grid: [u32; 3], slots: &[u64], f: &mut dyn FnMut(&For, f64, f64)) -> Option<()> {
    fn walk(
        launch: &Launched<'_>,
        body: &[Stmt],
        around: f64,
        point: &mut Point,
        f: &mut dyn FnMut(&For, f64, f64),
    ) -> Option<()> {
        for stmt in body {
            match stmt {
                Stmt::For(l) => {
                    let trips = launch.enter(l, point)?;
                    f(l, around, trips);
                    walk(launch, &l.body, around * trips, point, f)?;
                }
                Stmt::If { then, els, .. } => {
                    walk(launch, then, around, point, f)?;
                    walk(launch, els, around, point, f)?;
                }
                Stmt::Loop { body } => walk(launch, body, around, point, f)?,
                _ => {}
            }
        }
        Some(())
    }
    let mut point = Point::first();
    walk(&Launched { kernel, grid, slots }, &kernel.body, 1.0, &mut point, f)
}
