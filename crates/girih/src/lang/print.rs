//! Messages and assertions while the kernel runs.

use super::builder::{Id, Piece, WRONG, here, quote};
use super::element::{Constant, Elem, Kind};
use super::operators::convert;
use super::tile::Tile;

/// Values that a kernel can print: tiles, numbers, texts.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot print a `{Self}`",
    label = "neither a tile nor a number nor a text"
)]
pub trait Printed {
    #[doc(hidden)]
    fn printed(&self) -> Shown;
}
#[doc(hidden)]
pub enum Shown {
    Tile(Id),
    Text(String),
}
impl<T: Constant> Printed for Tile<T> {
    fn printed(&self) -> Shown {
        Shown::Tile(self.id)
    }
}
macro_rules! texts {
    ($($t:ty)*) => {$(impl Printed for $t {
        fn printed(&self) -> Shown {
            Shown::Text(self.to_string())
        }
    })*};
}
texts!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 bool char &str String);

/// `print!` and `println!` of a kernel: the texts around the values, and those.
#[doc(hidden)]
#[track_caller]
pub fn print(parts: &[&str], values: &[Shown], line: bool) {
    here(|b| {
        let (mut text, mut tiles) = (String::new(), Vec::new());
        for (i, part) in parts.iter().enumerate() {
            text += &part.replace('%', "%%");
            match values.get(i) {
                Some(Shown::Text(value)) => text += &value.replace('%', "%%"),
                Some(Shown::Tile(WRONG)) => return,
                Some(Shown::Tile(tile)) => {
                    let ty = b.ty(*tile);
                    let (conversion, wide) = match ty.kind {
                        Kind::Float => ("%g", <f64 as Elem>::TYPE),
                        Kind::Signed => ("%lld", <i64 as Elem>::TYPE),
                        _ => ("%llu", <u64 as Elem>::TYPE),
                    };
                    text += conversion;
                    tiles.push(convert(b, *tile, wide));
                }
                None => {}
            }
        }
        if line {
            text.push('\n');
        }
        let mut pieces: Vec<Piece> = vec![format!("print_tko {}", quote(&text)).into()];
        for tile in &tiles {
            pieces.extend([", ".into(), (*tile).into()]);
        }
        if let Some(token) = b.before_write() {
            pieces.extend([" token = ".into(), token.into()]);
        }
        if !tiles.is_empty() {
            let types: Vec<String> = tiles.iter().map(|t| b.ir_type(*t)).collect();
            pieces.push(format!(" : {}", types.join(", ")).into());
        }
        pieces.push(" -> token".into());
        let done = b.token("said");
        b.op(pieces, &[done], vec![], false);
        b.did_write(done);
    });
}

/// Conditions that a kernel can assert.
#[diagnostic::on_unimplemented(message = "an assertion is about a `bool` or a `Tile<bool>`, not about `{Self}`")]
pub trait Asserted {
    #[doc(hidden)]
    fn assert(self, message: &str);
}
impl Asserted for bool {
    #[track_caller]
    fn assert(self, message: &str) {
        if !self {
            here(|b| b.fail(format!("assertion failed: {message}"), None));
        }
    }
}
impl Asserted for Tile<bool> {
    #[track_caller]
    fn assert(self, message: &str) {
        here(|b| {
            if self.id != WRONG {
                let types = format!(", {} : {}", quote(message), b.ir_type(self.id));
                b.op(vec!["assert ".into(), self.id.into(), types.into()], &[], vec![], false);
            }
        });
    }
}

/// `assert!` of a kernel.
#[doc(hidden)]
#[track_caller]
pub fn check(condition: impl Asserted, message: &str) {
    condition.assert(message);
}
