//! `if`: one body for a condition of Rust, both for a tile.

use std::any::Any;

use super::carried::{Leaf, Variables, leaves_of, refill, same_form, tiles_of, with_commas};
use crate::lang::builder::{Builder, Context, Id, Piece, Region, WRONG, commas, here};
use crate::lang::tile::Tile;

/// The condition of an `if`.
#[diagnostic::on_unimplemented(
    message = "a condition is a `bool` or a `Tile<bool>`, not `{Self}`",
    label = "not a condition"
)]
pub trait Condition {
    /// The truth, or the tile that has it.
    #[doc(hidden)]
    fn decide(self) -> Decided;
}
#[doc(hidden)]
pub enum Decided {
    Now(bool),
    Later(Id),
}
impl Condition for bool {
    fn decide(self) -> Decided {
        Decided::Now(self)
    }
}
impl Condition for Tile<bool> {
    #[track_caller]
    fn decide(self) -> Decided {
        here(|b| Decided::Later(one_truth(b, self.id)))
    }
}

fn one_truth(b: &mut Builder, condition: Id) -> Id {
    if condition != WRONG && !b.shape(condition).is_empty() {
        let message = format!("a condition must be one truth value, but this is {}", b.describe(condition));
        return b.fail(
            message,
            Some("for a choice by element use `select(condition, x, y)`; for all or any of them, reduce"),
        );
    }
    condition
}

struct Side {
    region: Region,
    leaves: Vec<Vec<Leaf>>,
    saved: Vec<Box<dyn Any>>,
    written: Option<Id>,
    read: Vec<Id>,
}

/// The steps of one `if`.
#[doc(hidden)]
pub struct Branch {
    condition: Decided,
    place: &'static std::panic::Location<'static>,
    steps: usize,
    start: Id,
    before: Vec<Vec<Leaf>>,
    saved: Vec<Box<dyn Any>>,
    sides: Vec<Side>,
}

impl Branch {
    #[track_caller]
    pub fn new(condition: impl Condition) -> Branch {
        let condition = condition.decide();
        let place = std::panic::Location::caller();
        Branch { condition, place, steps: 0, start: WRONG, before: vec![], saved: vec![], sides: vec![] }
    }

    /// Which side is in hand.
    pub fn then(&self) -> bool {
        match self.condition {
            Decided::Now(truth) => truth,
            Decided::Later(_) => self.steps == 1,
        }
    }

    /// Goes on to the next side; false when there is none.
    pub fn next(&mut self, variables: Variables) -> bool {
        self.steps += 1;
        let Decided::Later(condition) = self.condition else { return self.steps == 1 };
        here(|b| {
            b.place = self.place;
            match self.steps {
                1 => {
                    self.before = leaves_of(variables);
                    self.saved = variables.iter().map(|(_, v)| v.save()).collect();
                    self.start = b.one_token();
                    self.enter(b);
                    true
                }
                2 => {
                    self.exit(b, variables);
                    variables.iter_mut().zip(&self.saved).for_each(|((_, v), saved)| v.restore(&**saved));
                    self.enter(b);
                    true
                }
                _ => {
                    self.exit(b, variables);
                    self.finish(b, condition, variables);
                    false
                }
            }
        })
    }

    fn enter(&self, b: &mut Builder) {
        b.enter();
        (b.written, b.read) = (Some(self.start), Vec::new());
        b.contexts.push(Context::If);
    }
    fn exit(&mut self, b: &mut Builder, variables: Variables) {
        b.contexts.pop();
        let region = b.exit();
        let (written, read) = (b.written.take(), std::mem::take(&mut b.read));
        let saved = variables.iter().map(|(_, v)| v.save()).collect();
        self.sides.push(Side { region, leaves: leaves_of(variables), saved, written, read });
    }

    fn finish(&mut self, b: &mut Builder, condition: Id, variables: Variables) {
        let places = ("on one side of the `if`", "on the other");
        (b.written, b.read) = (Some(self.start), Vec::new());
        let touched = self.sides.iter().any(|s| s.region.touches_memory);
        let live: Vec<usize> = (0..2).filter(|i| !self.sides[*i].region.ended).collect();
        let (Some(mut other), Some(mut then)) = (self.sides.pop(), self.sides.pop()) else { return };
        if live.is_empty() {
            // The second side follows the `if` instead of standing in it, so that its terminator ends this region.
            b.op(vec!["if ".into(), condition.into(), " ".into(), Piece::Region], &[], vec![then.region], false);
            b.splice(other.region);
            variables.iter_mut().zip(&self.saved).for_each(|((_, v), saved)| v.restore(&**saved));
            return;
        }
        // Compares the variables of the sides that go on.
        let (first, second) = match live[..] {
            [0] => (&then.leaves, &self.before),
            [1] => (&other.leaves, &self.before),
            _ => (&then.leaves, &other.leaves),
        };
        let (mut slots, mut tiles, mut fits) = (Vec::new(), Vec::new(), true);
        for ((name, _), (x, y)) in variables.iter().zip(first.iter().zip(second)) {
            // If one side leaves, the variable's value before the `if` does not matter.
            if live.len() == 2 {
                fits &= same_form(b, name, x, y, places);
            }
            for (i, leaf) in x.iter().enumerate() {
                if let Leaf::Tile(id) = leaf {
                    if y.get(i) != Some(leaf) && *id != WRONG {
                        slots.push((*name, tiles.len()));
                    }
                    tiles.push(*id);
                }
            }
        }
        if !fits {
            return;
        }
        for (i, side) in [&mut then, &mut other].into_iter().enumerate() {
            if !live.contains(&i) {
                continue;
            }
            let own = tiles_of(&side.leaves);
            let mut values: Vec<Id> = slots.iter().map(|(_, at)| own.get(*at).copied().unwrap_or(WRONG)).collect();
            let empty = std::mem::replace(&mut side.region, Region::none());
            b.enter_again(empty);
            (b.written, b.read) = (side.written, std::mem::take(&mut side.read));
            if touched {
                values.push(b.one_token());
            }
            if !values.is_empty() {
                let mut pieces = vec![Piece::from("yield ")];
                pieces.extend(commas(&values));
                pieces.push(format!(" : {}", with_commas(b, &values)).into());
                b.op(pieces, &[], vec![], false);
            }
            side.region = b.exit();
        }
        (b.written, b.read) = (Some(self.start), Vec::new());
        let mut results: Vec<Id> = slots
            .iter()
            .map(|(name, at)| {
                let (ty, shape) = (b.ty(tiles[*at]), b.shape(tiles[*at]));
                b.value(Some(ty), &shape, name)
            })
            .collect();
        slots.iter().zip(&results).for_each(|((_, at), result)| tiles[*at] = *result);
        if touched {
            let token = b.token("token");
            results.push(token);
            b.written = Some(token);
        }
        let mut pieces: Vec<Piece> = vec!["if ".into(), condition.into()];
        if !results.is_empty() {
            pieces.push(format!(" -> ({})", with_commas(b, &results)).into());
        }
        pieces.extend([" ".into(), Piece::Region]);
        let mut regions = vec![then.region];
        if !results.is_empty() || !other.region.ops.is_empty() {
            pieces.extend([" else ".into(), Piece::Region]);
            regions.push(other.region);
        }
        if condition != WRONG {
            b.op(pieces, &results, regions, false);
        }
        let saved = if live.contains(&0) { &then.saved } else { &other.saved };
        variables.iter_mut().zip(saved).for_each(|((_, v), saved)| v.restore(&**saved));
        refill(variables, &tiles);
    }

    /// Returns true if no branch continues after the `if`.
    pub fn left(&self) -> bool {
        here(|b| b.ended() || b.leaving)
    }

    /// The value of an `if` that has one.
    #[track_caller]
    pub fn value<T>(&self, value: Option<T>) -> T {
        // Each side gives the value or leaves the place, after which nothing goes on.
        value.unwrap_or_else(|| panic!("an `if` of a kernel has no value"))
    }
}

/// `return` in a kernel.
#[doc(hidden)]
#[track_caller]
pub fn end_of_block() {
    here(|b| {
        if b.contexts.contains(&Context::If) {
            b.op(vec!["return".into()], &[], vec![], false);
            b.set_ended();
        } else {
            b.leaving = true;
        }
    });
}
