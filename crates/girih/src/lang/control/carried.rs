//! The parts of variables that loops and branches carry.

use std::any::Any;

use crate::lang::builder::{Builder, Id, WRONG};
use crate::lang::element::Elem;
use crate::lang::tile::Tile;

/// A part of a variable that control flow can carry.
#[doc(hidden)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Leaf {
    Tile(Id),
    /// A value of Rust, as `Debug` shows it.
    Value(String),
}

/// The types of variables that a loop or an `if` of a kernel may assign: tiles, numbers, and tuples, arrays and vectors of these.
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

/// `save` and `restore` of values that are cloned as a whole.
macro_rules! saved {
    () => {
        fn save(&self) -> Box<dyn Any> {
            Box::new(self.clone())
        }
        fn restore(&mut self, saved: &dyn Any) {
            // The saved value comes from the same variable.
            if let Some(saved) = saved.downcast_ref::<Self>() {
                self.clone_from(saved);
            }
        }
    };
}
pub(in crate::lang) use saved;

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
pub(super) type Variables<'v, 'a> = &'v mut [(&'static str, &'a mut dyn Carried)];

pub(super) fn leaves_of(variables: &[(&'static str, &mut dyn Carried)]) -> Vec<Vec<Leaf>> {
    let one = |v: &dyn Carried| {
        let mut leaves = Vec::new();
        v.leaves(&mut leaves);
        leaves
    };
    variables.iter().map(|(_, v)| one(&**v)).collect()
}

pub(super) fn tiles_of(leaves: &[Vec<Leaf>]) -> Vec<Id> {
    leaves.iter().flatten().filter_map(|l| if let Leaf::Tile(id) = l { Some(*id) } else { None }).collect()
}

pub(super) fn refill(variables: Variables, tiles: &[Id]) {
    let mut tiles = tiles.iter().copied();
    variables.iter_mut().for_each(|(_, v)| v.refill(&mut tiles));
}

/// Returns true if a variable has the same form in two places; reports the difference.
pub(super) fn same_form(b: &mut Builder, name: &str, x: &[Leaf], y: &[Leaf], places: (&str, &str)) -> bool {
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

pub(super) fn with_commas(b: &Builder, values: &[Id]) -> String {
    values.iter().map(|v| b.ir_type(*v)).collect::<Vec<_>>().join(", ")
}
