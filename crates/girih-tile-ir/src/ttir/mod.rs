//! TTIR, the Triton compiler's own IR, as text: a front end beside text and bytecode of Tile IR.
//!
//! In: the text that Triton 3.5 to 3.9 print after their `ttir` stage. Out: a [`Module`] of Tile IR, which has yet to be
//! verified, like one that was parsed; or a diagnostic at the line of the user's Python that an operation comes from.
//!
//! ```text
//! %x = tt.load %p, %mask : tensor<8x!tt.ptr<f32>>   becomes   %x, %t = load_ptr_tko weak %p, %mask token=%before : ...
//! ```
//!
//! [`table`] has one row for each operation: its name, how its text gives the types of its results, and the function that
//! converts it. An operation without a row is refused by name. Tokens keep accesses to memory in the order of the program.

pub mod ast;
mod convert;
mod parse;
pub mod table;

use crate::base::Diagnostic;
use crate::base::lexer::{Lexer, Tok};
use crate::cuda_tile::ir::Module;

/// True if a text is TTIR: a module of MLIR whose first operation is of the dialect `tt`.
pub fn is_ttir(text: &str) -> bool {
    let mut at = 0;
    // Aliases and comments come before the module.
    for line in text.split_inclusive('\n') {
        let body = line.trim_start();
        if !(body.is_empty() || body.starts_with("//") || body.starts_with('#') || body.starts_with('!')) {
            break;
        }
        at += line.len();
    }
    let mut lex = Lexer::new(text);
    lex.seek(at);
    if !matches!(lex.next_token().0, Tok::Word("module" | "builtin.module")) {
        return false;
    }
    let mut open = 0usize;
    loop {
        match lex.next_token().0 {
            // The attributes of the module.
            Tok::Word("attributes") => open = usize::MAX,
            Tok::Punct('{') if open == usize::MAX => open = 1,
            Tok::Punct('{') if open > 0 => open += 1,
            Tok::Punct('}') if open > 0 => open -= 1,
            Tok::Punct('{') => break,
            Tok::Eof | Tok::Unterminated => return false,
            _ => {}
        }
    }
    matches!(lex.next_token().0, Tok::Word(word) if word.starts_with("tt."))
}

/// The module of a text.
pub fn read(text: &str) -> Result<Module, Vec<Diagnostic>> {
    let module = parse::parse(text).map_err(|d| vec![*d])?;
    convert::convert(&module).map_err(|d| vec![*d])
}
