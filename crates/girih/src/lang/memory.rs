//! Loads, stores and atomic updates.

use super::builder::{Builder, Id, Piece, WRONG, commas, here};
use super::element::{Constant, Elem, Kind, Number, PtrMut};
use super::tile::{Address, Operand, Tile};

fn read(b: &mut Builder, operands: &[Id]) -> Id {
    if operands.contains(&WRONG) {
        return WRONG;
    }
    let mut pieces: Vec<Piece> = vec!["load_ptr_tko weak ".into()];
    pieces.extend(commas(operands));
    if let Some(token) = b.before_read() {
        pieces.extend([" token = ".into(), token.into()]);
    }
    let address = operands[0];
    let (ty, shape) = (pointee(b, address), b.shape(address));
    let result = b.value(Some(ty), &shape, "");
    let done = b.token("read");
    let types: Vec<String> = operands.iter().map(|o| b.ir_type(*o)).collect();
    pieces.push(format!(" : {} -> {}, token", types.join(", "), b.ir_type(result)).into());
    b.op(pieces, &[result, done], vec![], true);
    b.did_read(done);
    result
}

/// The type of the elements at an address.
fn pointee(b: &Builder, address: Id) -> super::element::ElementType {
    let ty = b.ty(address);
    let kind = match ty.ir {
        "i1" => Kind::Bool,
        _ if ty.name.starts_with('i') => Kind::Signed,
        _ if ty.name.starts_with('u') => Kind::Unsigned,
        _ => Kind::Float,
    };
    super::element::ElementType { kind, ..ty }
}

/// The value at an address, or at each of a tile of addresses.
#[track_caller]
pub fn load<P: Address>(address: Tile<P>) -> Tile<P::Element> {
    here(|b| Tile::of(read(b, &[address.id])))
}

/// The same where the mask holds, and `other` elsewhere, where nothing is read.
#[track_caller]
pub fn load_where<P: Address>(address: Tile<P>, mask: Tile<bool>, other: impl Operand<P::Element>) -> Tile<P::Element> {
    here(|b| {
        let other = other.id(b);
        if b.shape(address.id).is_empty() && !b.shape(mask.id).is_empty() {
            let message = format!("the mask {} is a tile, but the address is one address", b.describe(mask.id));
            return Tile::of(b.fail(message, None));
        }
        let ([address, mask], shape) = b.together([address.id, mask.id]);
        let other = if address == WRONG { WRONG } else { b.broadcast_to(other, &shape) };
        Tile::of(read(b, &[address, mask, other]))
    })
}

fn write(b: &mut Builder, address: Id, value: Id, mask: Option<Id>) {
    let mut tiles = vec![address, value];
    tiles.extend(mask);
    let Some(shape) = b.common_shape(&tiles) else { return };
    let own = b.shape(address);
    if own.is_empty() && !shape.is_empty() {
        let message = format!("a tile, {}, cannot be stored to one address", b.describe(value));
        b.fail(message, Some("make a tile of addresses: `address + arange(0, n)`"));
        return;
    }
    let tiles: Vec<Id> = tiles.iter().map(|t| b.broadcast_to(*t, &shape)).collect();
    let token = b.before_write();
    let mut pieces: Vec<Piece> = vec!["store_ptr_tko weak ".into()];
    pieces.extend(commas(&tiles));
    if let Some(token) = token {
        pieces.extend([" token = ".into(), token.into()]);
    }
    let types: Vec<String> = tiles.iter().map(|o| b.ir_type(*o)).collect();
    pieces.push(format!(" : {} -> token", types.join(", ")).into());
    let done = b.token("wrote");
    b.op(pieces, &[done], vec![], false);
    b.did_write(done);
}

/// Writes a value to an address, or a tile to a tile of addresses.
#[track_caller]
pub fn store<T: Elem>(address: Tile<PtrMut<T>>, value: impl Operand<T>) {
    here(|b| {
        let value = value.id(b);
        write(b, address.id, value, None)
    });
}
/// The same where the mask holds.
#[track_caller]
pub fn store_where<T: Elem>(address: Tile<PtrMut<T>>, value: impl Operand<T>, mask: Tile<bool>) {
    here(|b| {
        let value = value.id(b);
        write(b, address.id, value, Some(mask.id))
    });
}

// ---- atomic updates

/// Elements of 32 and 64 bits, which are updated at once.
pub trait Atomic: Number {}
/// Integers of 32 and 64 bits.
pub trait AtomicInteger: Atomic {}
macro_rules! atomic {
    ($($bound:ident: $($t:ident)*;)*) => {$($(impl $bound for $t {})*)*};
}
atomic! { Atomic: i32 i64 u32 u64 f32 f64; AtomicInteger: i32 i64 u32 u64; }

fn update<T: Constant>(
    b: &mut Builder,
    head: &str,
    tail: &str,
    address: Id,
    values: &[Id],
    mask: Option<Id>,
) -> Tile<T> {
    let mut tiles = vec![address];
    tiles.extend(values);
    tiles.extend(mask);
    let Some(shape) = b.common_shape(&tiles) else { return Tile::of(WRONG) };
    if b.shape(address).is_empty() && !shape.is_empty() {
        return Tile::of(b.fail("an update of a tile needs a tile of addresses, not one address", None));
    }
    let tiles: Vec<Id> = tiles.iter().map(|t| b.broadcast_to(*t, &shape)).collect();
    let token = b.before_write();
    let (address, rest) = (tiles[0], &tiles[1..]);
    let mut pieces: Vec<Piece> = vec![format!("{head} acq_rel device ").into(), address.into(), tail.into()];
    for value in rest {
        pieces.extend([", ".into(), (*value).into()]);
    }
    if let Some(token) = token {
        pieces.extend([" token = ".into(), token.into()]);
    }
    // All values have one type, which is spelled once.
    let mut types = vec![b.ir_type(address), b.ir_type(rest[0])];
    types.extend(mask.map(|_| b.ir_type(tiles[tiles.len() - 1])));
    let result = b.value(Some(T::TYPE), &shape, "");
    pieces.push(format!(" : {} -> {}, token", types.join(", "), b.ir_type(result)).into());
    let done = b.token("updated");
    b.op(pieces, &[result, done], vec![], false);
    b.did_write(done);
    Tile::of(result)
}

macro_rules! updates {
    ($($(#[$doc:meta])* $name:ident $bound:ident |$t:ident| $mode:expr;)*) => {$(
        $(#[$doc])*
        /// Returns the old value; acquires and releases, and is seen by all blocks.
        #[track_caller]
        pub fn $name<$t: $bound>(address: Tile<PtrMut<$t>>, value: impl Operand<$t>) -> Tile<$t> {
            here(|b| { let value = value.id(b); update(b, "atomic_rmw_tko", &format!(", {}", $mode), address.id, &[value], None) })
        }
    )*};
}
updates! {
    /// Adds.
    atomic_add Atomic |T| if T::TYPE.is_float() { "addf" } else { "add" };
    /// Replaces.
    atomic_xchg Atomic |T| "xchg";
    /// Keeps the greater.
    atomic_max AtomicInteger |T| if T::TYPE.kind == Kind::Unsigned { "umax" } else { "max" };
    /// Keeps the lesser.
    atomic_min AtomicInteger |T| if T::TYPE.kind == Kind::Unsigned { "umin" } else { "min" };
    /// Bitwise and.
    atomic_and AtomicInteger |T| "and";
    /// Bitwise or.
    atomic_or AtomicInteger |T| "or";
    /// Bitwise exclusive or.
    atomic_xor AtomicInteger |T| "xor";
}

/// Adds where the mask holds; elsewhere nothing happens and the result is undefined.
#[track_caller]
pub fn atomic_add_where<T: Atomic>(address: Tile<PtrMut<T>>, value: impl Operand<T>, mask: Tile<bool>) -> Tile<T> {
    let mode = if T::TYPE.is_float() { ", addf" } else { ", add" };
    here(|b| {
        let value = value.id(b);
        update(b, "atomic_rmw_tko", mode, address.id, &[value], Some(mask.id))
    })
}
/// Writes `new` where the value is `old`, comparing bits; returns the old value.
#[track_caller]
pub fn atomic_cas<T: Atomic>(address: Tile<PtrMut<T>>, old: impl Operand<T>, new: impl Operand<T>) -> Tile<T> {
    here(|b| {
        let values = [old.id(b), new.id(b)];
        update(b, "atomic_cas_tko", "", address.id, &values, None)
    })
}
