//! `if`, `for` and `while` of a kernel: what the code that `#[girih::kernel]` writes calls at each of their steps.
//!
//! A branch whose condition is a tile runs its body twice, once for each side, a loop over a runtime range once. The variables
//! that a body assigns are handed over at each step: their tiles become arguments and results of Tile IR's `if`, `for` and `loop`;
//! what else they hold must be the same before and after. A loop that is left early becomes a `loop` with its counter among the
//! carried values, since Tile IR's `for` has no `break`; which of the two is settled when the body is known.

use std::any::Any;

use super::builder::{Builder, Context, End, Id, Op, Piece, Region, WRONG, commas, here};
use super::element::{Elem, Integer};
use super::operators::{How, compare_ids};
use super::tile::{Operand, Tile};

/// A loop over constants makes no more iterations than this.
const UNROLL_MOST: usize = 16384;

/// What control flow can carry of a variable.
#[doc(hidden)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Leaf {
    Tile(Id),
    /// A value of Rust, as `Debug` shows it.
    Value(String),
}

/// What a variable holds that a loop or an `if` of a kernel may assign: tiles, numbers, and tuples, arrays and vectors of these.
#[diagnostic::on_unimplemented(
    message = "a loop or an `if` of a kernel cannot change a variable of type `{Self}`",
    label = "assigned inside of it",
    note = "tiles, numbers, texts, and tuples, arrays and vectors of these can be changed"
)]
pub trait Carried {
    #[doc(hidden)]
    fn leaves(&self, out: &mut Vec<Leaf>);
    /// Puts other tiles in the place of its own, in order.
    #[doc(hidden)]
    fn refill(&mut self, tiles: &mut dyn Iterator<Item = Id>);
    #[doc(hidden)]
    fn save(&self) -> Box<dyn Any>;
    #[doc(hidden)]
    fn restore(&mut self, saved: &dyn Any);
}

macro_rules! saved {
    () => {
        fn save(&self) -> Box<dyn Any> {
            Box::new(self.clone())
        }
        fn restore(&mut self, saved: &dyn Any) {
            // What is restored was saved from the same variable.
            if let Some(saved) = saved.downcast_ref::<Self>() {
                self.clone_from(saved);
            }
        }
    };
}

impl<T: Elem> Carried for Tile<T> {
    fn leaves(&self, out: &mut Vec<Leaf>) {
        out.push(Leaf::Tile(self.id));
    }
    fn refill(&mut self, tiles: &mut dyn Iterator<Item = Id>) {
        *self = Tile::of(tiles.next().unwrap_or(WRONG));
    }
    saved!();
}

macro_rules! values_of_rust {
    ($($t:ty;)*) => {$(
        impl Carried for $t {
            fn leaves(&self, out: &mut Vec<Leaf>) {
                out.push(Leaf::Value(format!("{self:?}")));
            }
            fn refill(&mut self, _: &mut dyn Iterator<Item = Id>) {}
            saved!();
        }
    )*};
}
values_of_rust!(i8; i16; i32; i64; isize; u8; u16; u32; u64; usize; f32; f64; bool; char; &'static str; String; (););

macro_rules! sequences {
    ($([$($head:tt)*] $t:ty;)*) => {$(
        impl<$($head)*> Carried for $t {
            fn leaves(&self, out: &mut Vec<Leaf>) {
                // How many there are must not change either.
                out.push(Leaf::Value(self.iter().count().to_string()));
                self.iter().for_each(|x| x.leaves(out));
            }
            fn refill(&mut self, tiles: &mut dyn Iterator<Item = Id>) {
                self.iter_mut().for_each(|x| x.refill(tiles));
            }
            saved!();
        }
    )*};
}
sequences! {
    [T: Carried + Clone + 'static] Vec<T>;
    [T: Carried + Clone + 'static] Option<T>;
    [T: Carried + Clone + 'static, const N: usize] [T; N];
}

macro_rules! tuples {
    ($(($($t:ident $i:tt)*))*) => {$(
        impl<$($t: Carried + Clone + 'static),*> Carried for ($($t,)*) {
            fn leaves(&self, out: &mut Vec<Leaf>) {
                $(self.$i.leaves(out);)*
            }
            fn refill(&mut self, tiles: &mut dyn Iterator<Item = Id>) {
                $(self.$i.refill(tiles);)*
            }
            saved!();
        }
    )*};
}
tuples! { (A 0) (A 0 B 1) (A 0 B 1 C 2) (A 0 B 1 C 2 D 3) (A 0 B 1 C 2 D 3 E 4) (A 0 B 1 C 2 D 3 E 4 F 5) }

/// The variables of one step, with their names.
type Variables<'v, 'a> = &'v mut [(&'static str, &'a mut dyn Carried)];

fn leaves_of(variables: &[(&'static str, &mut dyn Carried)]) -> Vec<Vec<Leaf>> {
    let one = |v: &dyn Carried| {
        let mut leaves = Vec::new();
        v.leaves(&mut leaves);
        leaves
    };
    variables.iter().map(|(_, v)| one(&**v)).collect()
}

fn tiles_of(leaves: &[Vec<Leaf>]) -> Vec<Id> {
    leaves.iter().flatten().filter_map(|l| if let Leaf::Tile(id) = l { Some(*id) } else { None }).collect()
}

fn refill(variables: Variables, tiles: &[Id]) {
    let mut tiles = tiles.iter().copied();
    variables.iter_mut().for_each(|(_, v)| v.refill(&mut tiles));
}

/// Whether a variable has the same form in two places; says what differs.
fn same_form(b: &mut Builder, name: &str, x: &[Leaf], y: &[Leaf], places: (&str, &str)) -> bool {
    let (before, after) = places;
    if x.len() != y.len() {
        let message = format!("`{name}` does not hold as many values {before} as {after}");
        b.fail(message, None);
        return false;
    }
    for pair in x.iter().zip(y) {
        match pair {
            (Leaf::Tile(WRONG), _) | (_, Leaf::Tile(WRONG)) => {}
            (Leaf::Tile(x), Leaf::Tile(y)) => {
                if b.shape(*x) != b.shape(*y) {
                    let message = format!("`{name}` is {} {before} and {} {after}", b.describe(*x), b.describe(*y));
                    let help =
                        "a variable that control flow changes keeps its shape; use another name for the other value";
                    b.fail(message, Some(help));
                    return false;
                }
            }
            (Leaf::Value(x), Leaf::Value(y)) if x == y => {}
            (Leaf::Value(x), Leaf::Value(y)) => {
                let message = format!("`{name}` is a value of Rust, which is {x} {before} and {y} {after}");
                b.fail(message, Some("what the kernel changes when it runs is a tile: `scalar(0)` instead of `0`"));
                return false;
            }
            _ => {
                b.fail(format!("`{name}` is a tile at one place, {before} or {after}, and not at the other"), None);
                return false;
            }
        }
    }
    true
}

fn with_commas(b: &Builder, values: &[Id]) -> String {
    values.iter().map(|v| b.ir_type(*v)).collect::<Vec<_>>().join(", ")
}

// ---- branches

/// What an `if` is decided by.
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
        // What is common to the sides that go on, or differs.
        let (first, second) = match live[..] {
            [0] => (&then.leaves, &self.before),
            [1] => (&other.leaves, &self.before),
            _ => (&then.leaves, &other.leaves),
        };
        let (mut slots, mut tiles, mut fits) = (Vec::new(), Vec::new(), true);
        for ((name, _), (x, y)) in variables.iter().zip(first.iter().zip(second)) {
            // Where one side is left, what a variable was before does not matter.
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

    /// Whether no side goes on after the `if`.
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

// ---- loops

/// What `for` runs over: a [`range`] of the kernel, or anything of Rust, whose iterations are unrolled.
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

/// The integers `start` to `end - 1`: a tile whose length is a power of two.
#[track_caller]
pub fn arange(start: i32, end: i32) -> Tile<i32> {
    here(|b| {
        let length = i64::from(end) - i64::from(start);
        if length < 1 {
            return Tile::of(b.fail(format!("arange from {start} to {end} is empty"), None));
        }
        let n = length.min(i64::from(i32::MAX)) as i32;
        if !b.check_shape(&[n], "the length of arange") {
            return Tile::of(WRONG);
        }
        let ty = <i32 as Elem>::TYPE;
        let numbers = b.compute(ty, &[n], vec![format!("iota : tile<{n}xi32>").into()]);
        if start == 0 {
            return Tile::of(numbers);
        }
        let start = b.constant(start, &[]);
        Tile::of(super::operators::binary(b, "addi", numbers, start, ""))
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
    /// Whether what is around the loop was left.
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
    /// Of a loop over a range.
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
            // What is wrong before stays wrong inside.
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

/// Writes the ends of a loop's iterations out, now that it is known what it carries.
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

/// The steps of `while` and `loop`. Whether the condition is Rust's own is known when it has been computed once: then the loop is
/// unrolled.
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
                    // What the condition computed is not needed.
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
