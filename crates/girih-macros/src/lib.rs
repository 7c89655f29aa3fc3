//! `#[girih::kernel]` and `#[girih::function]`: Rust functions over tiles.
//!
//! In: a function. Out: a function that returns a `girih::lang::Launch`, whose body, run once for each set of constants, calls
//! `girih::lang` to collect Tile IR. Operators and calls stay as they are: the types of `girih::lang` overload them, so rustc itself
//! checks the types of a kernel. Syntax that Rust cannot overload is rewritten, each piece at its own place in the source:
//!
//! ```text
//! a < b                 less(a, b)
//! a && b                and(a, || b)
//! if c { x = a }        let mut b = Branch::new(c); while b.next(&mut [("x", &mut x)]) { if b.then() { x = a } else {} }
//! for i in r { .. }     let mut l = each(r); while let Some(i) = l.next(&mut [..]) { .. }
//! ```
//!
//! Invariants: the body of an `if` runs once for each of its sides, that of a loop over a runtime range once; variables that a body
//! assigns and that live outside of it are handed over at each of these steps; unsupported syntax is an error at its span.

mod assigned;
mod rewrite;
mod signature;

use proc_macro::TokenStream;
use syn::{ItemFn, parse_macro_input};

/// Makes a function over slices and numbers a tile kernel; see `girih::lang`.
#[proc_macro_attribute]
pub fn kernel(options: TokenStream, item: TokenStream) -> TokenStream {
    expand(options, item, "kernel", signature::kernel)
}

/// Makes a function over tiles one that kernels call; see `girih::lang`.
#[proc_macro_attribute]
pub fn function(options: TokenStream, item: TokenStream) -> TokenStream {
    expand(options, item, "function", signature::function)
}

fn expand(
    options: TokenStream,
    item: TokenStream,
    name: &str,
    make: fn(ItemFn) -> syn::Result<proc_macro2::TokenStream>,
) -> TokenStream {
    if let Some(first) = proc_macro2::TokenStream::from(options).into_iter().next() {
        let error = syn::Error::new(first.span(), format!("`#[girih::{name}]` takes no options"));
        return error.into_compile_error().into();
    }
    let item = parse_macro_input!(item as ItemFn);
    make(item).unwrap_or_else(syn::Error::into_compile_error).into()
}
