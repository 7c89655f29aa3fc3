//! From a function's signature to the functions that stand in its place.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, FnArg, Ident, ItemFn, Lifetime, Pat, Type};

use crate::rewrite;

enum Role {
    /// `&[T]`, or `&mut [T]`.
    Slice {
        element: Box<Type>,
        written: bool,
    },
    Scalar,
    Constant,
}

struct Parameter {
    name: Ident,
    ty: Type,
    role: Role,
}

pub fn kernel(mut item: ItemFn) -> syn::Result<TokenStream> {
    let mut errors = plain(&item, "a kernel");
    if let syn::ReturnType::Type(arrow, ty) = &item.sig.output {
        let span = arrow.spans[0].join(ty.span()).unwrap_or(arrow.spans[0]);
        errors.push(syn::Error::new(
            span,
            "a kernel cannot return a value\nhelp: store the result: `store(pointer, value)`",
        ));
    }
    let mut parameters = Vec::new();
    for input in &mut item.sig.inputs {
        match parameter(input) {
            Ok(p) => parameters.push(p),
            Err(e) => errors.push(e),
        }
    }
    let known = parameters.iter().map(|p| p.name.to_string()).collect();
    errors.extend(rewrite::kernel(&mut item.block, known));
    combined(errors)?;

    let ItemFn { attrs, vis, sig, block, .. } = item;
    let (name, text) = (&sig.ident, sig.ident.to_string());
    let (_, turbofish, bounds) = sig.generics.split_for_impl();
    let turbofish = turbofish.as_turbofish();
    let generics = &sig.generics.params;
    // A function with type parameters is made for each of their choices.
    let life = Lifetime::new("'girih", proc_macro2::Span::mixed_site());
    let (mut outer, mut inner, mut arguments, mut constants, mut values) = (vec![], vec![], vec![], vec![], vec![]);
    let mut position = 0usize;
    for Parameter { name, ty, role } in &parameters {
        let (word, at) = (name.to_string(), ty.span());
        match role {
            Role::Slice { element, written } => {
                let (mutable, address, make) = match written {
                    true => (quote!(mut), quote!(PtrMut), quote!(written)),
                    false => (quote!(), quote!(Ptr), quote!(read)),
                };
                outer.push(quote!(#name: &#life #mutable [#element]));
                inner.push(quote_spanned!(at=> mut #name: ::girih::lang::Tile<::girih::lang::#address<#element>>));
                arguments.push(quote_spanned!(at=> ::girih::lang::Parameter::#make(#word, #name)));
                values.push(quote_spanned!(at=> ::girih::lang::parameter(#position)));
                position += 1;
            }
            Role::Scalar => {
                outer.push(quote!(#name: #ty));
                inner.push(quote_spanned!(at=> mut #name: ::girih::lang::Tile<#ty>));
                arguments.push(quote_spanned!(at=> ::girih::lang::Parameter::scalar(#word, #name)));
                values.push(quote_spanned!(at=> ::girih::lang::parameter(#position)));
                position += 1;
            }
            Role::Constant => {
                outer.push(quote!(#name: #ty));
                inner.push(quote!(mut #name: #ty));
                constants.push(quote_spanned!(at=> ::std::format!("{:?}", &#name)));
                values.push(quote!(::core::clone::Clone::clone(&#name)));
            }
        }
    }
    let origin = quote_spanned!(name.span()=> ::girih::lang::Origin::here(#text, ::core::env!("CARGO_MANIFEST_DIR")));
    let body = format_ident!("body", span = proc_macro2::Span::mixed_site());
    Ok(quote! {
        #(#attrs)*
        #[must_use = "nothing runs before `.launch(grid)`"]
        #[allow(clippy::too_many_arguments, non_snake_case)]
        #vis fn #name<#life, #generics>(#(#outer),*) -> ::girih::lang::Launch<#life> #bounds {
            #[allow(
                unused_mut, unused_assignments, unused_variables, unused_labels, unreachable_code, unused_parens, non_snake_case,
                clippy::all
            )]
            fn #body<#generics>(#(#inner),*) #bounds #block
            static MADE: ::girih::lang::Made = ::girih::lang::Made::new();
            ::girih::lang::Launch::new(
                &MADE,
                #origin,
                ::girih::lang::instance(&#body #turbofish),
                ::std::vec![#(#arguments),*],
                ::std::vec![#(#constants),*],
                ::std::boxed::Box::new(move || #body #turbofish(#(#values),*)),
            )
        }
    })
}

pub fn function(mut item: ItemFn) -> syn::Result<TokenStream> {
    let mut errors = plain(&item, "a function of kernels");
    let mut known = Vec::new();
    for input in &item.sig.inputs {
        match input {
            FnArg::Typed(t) => known.extend(crate::assigned::names(&t.pat)),
            FnArg::Receiver(r) => errors.push(syn::Error::new(r.span(), "a function of kernels cannot be a method")),
        }
    }
    let returns = !matches!(item.sig.output, syn::ReturnType::Default);
    errors.extend(rewrite::function(&mut item.block, known, returns));
    combined(errors)?;
    let ItemFn { attrs, vis, sig, block, .. } = item;
    Ok(quote! {
        #(#attrs)*
        #[allow(unused_mut, unused_assignments, unused_labels, unreachable_code, unused_parens, non_snake_case, clippy::all)]
        #vis #sig #block
    })
}

/// Errors on qualifiers that a function over tiles cannot have.
fn plain(item: &ItemFn, what: &str) -> Vec<syn::Error> {
    let sig = &item.sig;
    let unsafety = match &sig.safety {
        syn::Safety::Unsafe(word) => Some((word.span(), "unsafe")),
        _ => None,
    };
    let words = [
        sig.asyncness.map(|w| (w.span(), "async")),
        sig.constness.map(|w| (w.span(), "const")),
        unsafety,
        sig.abi.as_ref().map(|w| (w.span(), "extern")),
        sig.variadic.as_ref().map(|w| (w.span(), "variadic")),
    ];
    let mut errors: Vec<_> = words
        .into_iter()
        .flatten()
        .map(|(span, word)| syn::Error::new(span, format!("{what} cannot be `{word}`")))
        .collect();
    for life in sig.generics.lifetimes() {
        errors.push(syn::Error::new(
            life.span(),
            format!("{what} cannot have lifetime parameters\nhelp: leave them out"),
        ));
    }
    errors
}

fn combined(errors: Vec<syn::Error>) -> syn::Result<()> {
    errors
        .into_iter()
        .reduce(|mut all, e| {
            all.combine(e);
            all
        })
        .map_or(Ok(()), Err)
}

fn parameter(input: &mut FnArg) -> syn::Result<Parameter> {
    let input = match input {
        FnArg::Typed(t) => t,
        FnArg::Receiver(r) => {
            return Err(syn::Error::new(r.span(), "a kernel cannot be a method\nhelp: make it a function"));
        }
    };
    let Pat::Ident(pattern) = &*input.pat else {
        return Err(syn::Error::new(input.pat.span(), "a kernel's parameter is one name"));
    };
    let name = pattern.ident.clone();
    let before = input.attrs.len();
    input.attrs.retain(|a| !is_constexpr(a));
    if let Some(other) = input.attrs.first() {
        return Err(syn::Error::new(other.span(), "the only attribute of a kernel's parameter is `#[constexpr]`"));
    }
    let ty = (*input.ty).clone();
    let role = match &ty {
        _ if input.attrs.len() != before => Role::Constant,
        Type::Reference(r) => match &*r.elem {
            Type::Slice(s) => Role::Slice { element: s.elem.clone(), written: r.mutability.is_some() },
            _ => return Err(wrong_type(&ty)),
        },
        Type::Path(_) => Role::Scalar,
        _ => return Err(wrong_type(&ty)),
    };
    Ok(Parameter { name, ty, role })
}

fn is_constexpr(attribute: &Attribute) -> bool {
    attribute.path().is_ident("constexpr")
}

fn wrong_type(ty: &Type) -> syn::Error {
    let message = "a kernel takes slices, `&[f32]` or `&mut [f32]`, and numbers\n\
                   help: a parameter that is known when the kernel is compiled may be anything: `#[constexpr] block: i32`";
    syn::Error::new(ty.span(), message)
}
