//! `for`, `while` and `loop`, unrolled or of the kernel.

use std::any::Any;

use super::branch::{Condition, Decided};
use super::carried::{Leaf, Variables, leaves_of, refill, same_form, tiles_of, with_commas};
use crate::lang::builder::{Builder, Context, End, Id, Op, Piece, Region, WRONG, commas, here};
use crate::lang::element::Integer;
use crate::lang::operators::{How, compare_ids};
use crate::lang::tile::{Operand, Tile};

/// A loop over constants makes no more iterations than this.
const UNROLL_MOST: usize = 16384;

/// The types that `for` runs over: a [`range`] of the kernel, or any Rust iterator, whose iterations are unrolled.
pub trait Repeat {
    #[doc(hidden)]
    type Steps;
    #[doc(hidden)]
    fn start(self) -> Self::Steps;
}

impl<I: IntoIterator> Repeat for I {
    type Steps = Each<I::IntoIter>;
    #[track_caller]
    fn start(self) -> Each<I::IntoIter> {
        here(|b| {
            let id = b.new_context();
            b.contexts.push(Context::Unrolled(id));
            Each { rest: self.into_iter(), id, place: b.place, count: 0, left: false }
        })
    }
}

/// The integers of a loop that the kernel makes when it runs.
#[doc(hidden)]
pub struct Range<T> {
    start: Tile<T>,
    stop: Tile<T>,
    step: Tile<T>,
}

/// The integers from `start` to `stop - 1`, numbers or scalars: a loop that the kernel makes when it runs.
#[track_caller]
pub fn range<T: Integer>(start: impl Operand<T>, stop: impl Operand<T>) -> Range<T> {
    range_by(start, stop, T::ONE)
}

/// The same in steps of `step`, which is greater than 0.
#[track_caller]
pub fn range_by<T: Integer>(start: impl Operand<T>, stop: impl Operand<T>, step: impl Operand<T>) -> Range<T> {
    here(|b| {
        let (start, stop, step) = (start.id(b), stop.id(b), step.id(b));
        let [start, stop, step] = [(start, "start"), (stop, "end"), (step, "step")].map(|(id, what)| {
            if id != WRONG && !b.shape(id).is_empty() {
                let message = format!("the {what} of a range is a scalar, but this is {}", b.describe(id));
                return b.fail(message, None);
            }
            id
        });
        Range { start: Tile::of(start), stop: Tile::of(stop), step: Tile::of(step) }
    })
}

impl<T: Integer> Repeat for Range<T> {
    type Steps = Counted<T>;
    #[track_caller]
    fn start(self) -> Counted<T> {
        Counted { range: self, running: Running::new() }
    }
}

/// The steps of a loop that is unrolled.
#[doc(hidden)]
pub struct Each<I> {
    rest: I,
    id: usize,
    place: &'static std::panic::Location<'static>,
    count: usize,
    left: bool,
}

impl<I: Iterator> Each<I> {
    pub fn next(&mut self, _: Variables) -> Option<I::Item> {
        here(|b| {
            b.leaving = false;
            self.count += 1;
            if self.count > UNROLL_MOST {
                b.place = self.place;
                let message = format!("a loop of Rust made {UNROLL_MOST} iterations, and no more are unrolled");
                b.fail(message, Some("loop over `range(a, b)`, which the kernel runs"));
                self.left = true;
            }
        });
        let item = if self.left { None } else { self.rest.next() };
        if item.is_none() {
            here(|b| b.contexts.pop());
        }
        item
    }
    #[track_caller]
    fn jump(&mut self, word: &str, last: bool) {
        here(|b| {
            let own = b.contexts.iter().position(|c| *c == Context::Unrolled(self.id)).unwrap_or(0);
            if b.contexts[own..].contains(&Context::If) {
                let message =
                    format!("`{word}` of an unrolled loop depends on a condition known only when the kernel runs");
                b.fail(message, Some("loop over `range(a, b)`, which the kernel runs"));
                // Goes on, to find more.
                return;
            }
            b.leaving = true;
            self.left |= last;
        });
    }
    #[track_caller]
    pub fn leave(&mut self, _: Variables) {
        self.jump("break", true);
    }
    #[track_caller]
    pub fn go_on(&mut self, _: Variables) {
        self.jump("continue", false);
    }
    /// Returns true if control has left the code around the loop.
    pub fn left(&self) -> bool {
        here(|b| b.ended())
    }
}

/// A loop of the kernel that is being built.
struct Running {
    id: usize,
    place: &'static std::panic::Location<'static>,
    before: Vec<Vec<Leaf>>,
    saved: Vec<Box<dyn Any>>,
    initial: Vec<Id>,
    arguments: Vec<Id>,
    names: Vec<&'static str>,
    /// Before the loop, and inside of it.
    token: (Id, Id),
    /// The counter of a loop over a range.
    counter: Id,
    wrong: bool,
}

impl Running {
    #[track_caller]
    fn new() -> Running {
        let place = std::panic::Location::caller();
        let (before, saved, initial, arguments, names) = Default::default();
        Running {
            id: 0,
            place,
            before,
            saved,
            initial,
            arguments,
            names,
            token: (WRONG, WRONG),
            counter: WRONG,
            wrong: false,
        }
    }

    fn begin(&mut self, b: &mut Builder, variables: Variables) {
        b.place = self.place;
        self.id = b.new_context();
        self.before = leaves_of(variables);
        self.saved = variables.iter().map(|(_, v)| v.save()).collect();
        self.initial = tiles_of(&self.before);
        for ((name, _), leaves) in variables.iter().zip(&self.before) {
            self.names.extend(leaves.iter().filter(|l| matches!(l, Leaf::Tile(_))).map(|_| *name));
        }
        let before = b.one_token();
        b.enter();
        b.contexts.push(Context::Loop(self.id));
        for (id, name) in self.initial.iter().zip(&self.names) {
            let (ty, shape) = (b.ty(*id), b.shape(*id));
            // A value that is wrong before the loop stays wrong inside.
            let argument = if *id == WRONG { WRONG } else { b.value(Some(ty), &shape, name) };
            self.arguments.push(argument);
        }
        let token = b.token("token");
        self.token = (before, token);
        (b.written, b.read) = (Some(token), Vec::new());
        refill(variables, &self.arguments);
    }

    /// The end of an iteration: of the body, or `break` or `continue` in the branch in hand.
    fn end(&mut self, b: &mut Builder, variables: Variables, word: &'static str) {
        let leaves = leaves_of(variables);
        for ((name, _), (before, after)) in variables.iter().zip(self.before.iter().zip(&leaves)) {
            self.wrong |= !same_form(b, name, before, after, ("before the loop", "after its body"));
        }
        let values = tiles_of(&leaves);
        self.wrong |=
            values.len() != self.arguments.len() || values.contains(&WRONG) || self.arguments.contains(&WRONG);
        let token = b.one_token();
        b.end(End { of: self.id, word, values, token });
    }

    /// Closes the loop; `counter` is its counter, with the start, the end and the step, all of one type.
    fn finish(&mut self, b: &mut Builder, variables: Variables, counter: Option<(Id, [Id; 3])>) {
        b.place = self.place;
        if !b.ended() {
            self.end(b, variables, "continue");
        }
        b.contexts.pop();
        let mut region = b.exit();
        variables.iter_mut().zip(&self.saved).for_each(|((_, v), saved)| v.restore(&**saved));
        let wrong = counter.is_some_and(|(_, bounds)| bounds.contains(&WRONG));
        if self.wrong || wrong {
            (b.written, b.read) = (Some(self.token.0), Vec::new());
            refill(variables, &vec![WRONG; self.arguments.len()]);
            return;
        }
        let with_token = region.touches_memory;
        let left = has_end(&region, self.id, "break");
        let as_for = counter.filter(|_| !left);
        let carried_counter = counter.filter(|_| left);
        if let Some((count, [_, stop, _])) = carried_counter {
            leave_at_the_end(b, &mut region, self, count, stop);
        }
        settle(b, &mut region, self.id, with_token, carried_counter.map(|(c, [_, _, step])| (c, step)));
        let (mut arguments, mut initial) = (self.arguments.clone(), self.initial.clone());
        if let Some((count, [start, ..])) = carried_counter {
            arguments.insert(0, count);
            initial.insert(0, start);
        }
        if with_token {
            arguments.push(self.token.1);
            initial.push(self.token.0);
        }
        let types = with_commas(b, &arguments);
        let mut pieces: Vec<Piece> = Vec::new();
        match as_for {
            Some((count, [start, stop, step])) => {
                let sign = if b.ty(count).signedness() == "signed" { "" } else { "unsigned " };
                let ty = format!(") : {}", b.ir_type(count));
                pieces.extend([
                    format!("for {sign}").into(),
                    Piece::Arg(count),
                    " in (".into(),
                    start.into(),
                    " to ".into(),
                ]);
                pieces.extend([stop.into(), ", step ".into(), step.into(), ty.into()]);
            }
            None => pieces.push("loop".into()),
        }
        if arguments.is_empty() {
            pieces.push(" ".into());
        } else {
            pieces.push(" iter_values(".into());
            for (i, (argument, value)) in arguments.iter().zip(&initial).enumerate() {
                pieces.extend([
                    if i > 0 { ", " } else { "" }.into(),
                    Piece::Arg(*argument),
                    " = ".into(),
                    (*value).into(),
                ]);
            }
            let tail = if as_for.is_some() { format!(") -> ({types}) ") } else { format!(") : {types} -> {types} ") };
            pieces.push(tail.into());
        }
        pieces.push(Piece::Region);
        let mut results = Vec::new();
        for argument in &arguments {
            let result = match b.ir_type(*argument).as_str() {
                "token" => b.token("token"),
                _ => {
                    let (ty, shape) = (b.ty(*argument), b.shape(*argument));
                    b.value(Some(ty), &shape, "")
                }
            };
            results.push(result);
        }
        let skip = usize::from(carried_counter.is_some());
        for (result, name) in results[skip..].iter().zip(&self.names) {
            b.name_value(*result, name);
        }
        b.op(pieces, &results, vec![region], false);
        let token = if with_token { results.last().copied() } else { None };
        (b.written, b.read) = (Some(token.unwrap_or(self.token.0)), Vec::new());
        refill(variables, &results[skip..skip + self.arguments.len()]);
    }
}

fn has_end(region: &Region, of: usize, word: &str) -> bool {
    region.ops.iter().any(|op| {
        op.end.as_ref().is_some_and(|e| e.of == of && e.word == word) || op.regions.iter().any(|r| has_end(r, of, word))
    })
}

/// `if count < stop {} else { break }` before the body.
fn leave_at_the_end(b: &mut Builder, region: &mut Region, running: &Running, count: Id, stop: Id) {
    let body = std::mem::take(&mut region.ops);
    b.enter_again(std::mem::replace(region, Region::none()));
    let stay = compare_ids(b, How::Less, count, stop);
    leave_unless(b, stay, running.id, running.arguments.clone(), running.token.1);
    let mut again = b.exit();
    again.ops.extend(body);
    *region = again;
}

fn leave_unless(b: &mut Builder, stay: Id, of: usize, values: Vec<Id>, token: Id) {
    b.enter();
    let go = b.exit();
    b.enter();
    b.end(End { of, word: "break", values, token });
    let stop = b.exit();
    let pieces = vec!["if ".into(), stay.into(), " ".into(), Piece::Region, " else ".into(), Piece::Region];
    b.op(pieces, &[], vec![go, stop], false);
}

/// Writes the ends of a loop's iterations, now that its carried values are known.
fn settle(b: &mut Builder, region: &mut Region, of: usize, with_token: bool, counter: Option<(Id, Id)>) {
    for op in std::mem::take(&mut region.ops) {
        let Op { end: Some(end), .. } = &op else {
            let mut op = op;
            op.regions.iter_mut().for_each(|r| settle(b, r, of, with_token, counter));
            region.ops.push(op);
            continue;
        };
        if end.of != of {
            region.ops.push(op);
            continue;
        }
        let mut values: Vec<Id> = end.values.iter().map(|v| b.root(*v)).collect();
        if let Some((count, step)) = counter {
            let mut next = count;
            if end.word == "continue" {
                let ty = b.ty(count);
                next = b.value(Some(ty), &[], "");
                let pieces = vec![
                    "addi ".into(),
                    count.into(),
                    ", ".into(),
                    step.into(),
                    format!(" : {}", b.ir_type(count)).into(),
                ];
                region.ops.push(Op {
                    pieces,
                    results: vec![next],
                    regions: vec![],
                    place: op.place,
                    pure: true,
                    end: None,
                });
            }
            values.insert(0, next);
        }
        if with_token {
            values.push(end.token);
        }
        let mut pieces: Vec<Piece> = vec![end.word.into()];
        if !values.is_empty() {
            pieces.push(" ".into());
            pieces.extend(commas(&values));
            pieces.push(format!(" : {}", with_commas(b, &values)).into());
        }
        region.ops.push(Op { pieces, results: vec![], regions: vec![], place: op.place, pure: false, end: None });
    }
}

/// The steps of a loop over a [`range`]: one, and the end.
#[doc(hidden)]
pub struct Counted<T> {
    range: Range<T>,
    running: Running,
}

impl<T: Integer> Counted<T> {
    pub fn next(&mut self, variables: Variables) -> Option<Tile<T>> {
        here(|b| {
            if self.running.id == 0 {
                self.running.begin(b, variables);
                self.running.counter = b.value(Some(T::TYPE), &[], "i");
                return Some(Tile::of(self.running.counter));
            }
            let Range { start, stop, step } = &self.range;
            let bounds = [start.id, stop.id, step.id];
            let count = self.running.counter;
            self.running.finish(b, variables, Some((count, bounds)));
            None
        })
    }
    #[track_caller]
    pub fn leave(&mut self, variables: Variables) {
        here(|b| self.running.end(b, variables, "break"));
    }
    #[track_caller]
    pub fn go_on(&mut self, variables: Variables) {
        here(|b| self.running.end(b, variables, "continue"));
    }
    pub fn left(&self) -> bool {
        here(|b| b.ended() || b.leaving)
    }
}

/// The steps of `while` and `loop`. If the first evaluation of the condition gives a `bool` of Rust, the loop is unrolled.
#[doc(hidden)]
pub struct While {
    running: Running,
    unrolled: Option<Each<std::ops::RangeFrom<usize>>>,
    steps: usize,
}

impl While {
    #[track_caller]
    #[allow(clippy::new_without_default)]
    pub fn new() -> While {
        While { running: Running::new(), unrolled: None, steps: 0 }
    }
    pub fn next(&mut self, variables: Variables) -> bool {
        self.steps += 1;
        if let Some(each) = &mut self.unrolled {
            return each.next(variables).is_some();
        }
        here(|b| {
            if self.steps == 1 {
                self.running.begin(b, variables);
            } else {
                self.running.finish(b, variables, None);
            }
        });
        self.steps == 1
    }
    #[track_caller]
    pub fn test(&mut self, condition: impl Condition, variables: Variables) -> bool {
        match condition.decide() {
            Decided::Now(truth) => {
                if self.unrolled.is_none() {
                    // The operations of the condition are not needed.
                    here(|b| {
                        b.contexts.pop();
                        b.exit();
                        (b.written, b.read) = (Some(self.running.token.0), Vec::new());
                    });
                    variables.iter_mut().zip(&self.running.saved).for_each(|((_, v), saved)| v.restore(&**saved));
                    let mut each = Repeat::start(0usize..);
                    each.next(variables);
                    self.unrolled = Some(each);
                }
                if !truth {
                    here(|b| b.contexts.pop());
                }
                truth
            }
            Decided::Later(stay) => {
                here(|b| {
                    let values = tiles_of(&leaves_of(variables));
                    let memory = (b.written, b.read.clone());
                    let token = b.one_token();
                    self.running.wrong |= stay == WRONG || values.contains(&WRONG);
                    leave_unless(b, stay, self.running.id, values, token);
                    (b.written, b.read) = memory;
                });
                true
            }
        }
    }
    #[track_caller]
    pub fn leave(&mut self, variables: Variables) {
        match &mut self.unrolled {
            Some(each) => each.leave(variables),
            None => here(|b| self.running.end(b, variables, "break")),
        }
    }
    #[track_caller]
    pub fn go_on(&mut self, variables: Variables) {
        match &mut self.unrolled {
            Some(each) => each.go_on(variables),
            None => here(|b| self.running.end(b, variables, "continue")),
        }
    }
    pub fn left(&self) -> bool {
        here(|b| b.ended() || b.leaving)
    }
}
