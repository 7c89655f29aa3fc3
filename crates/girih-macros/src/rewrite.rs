//! Rewrites syntax that Rust cannot overload as calls that collect operations.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    BinOp, Block, Error, Expr, ExprClosure, ExprIf, ExprMacro, Ident, Item, Lifetime, Local, Macro, Pat, Stmt,
    parse_quote_spanned,
};

use crate::assigned::{Assigned, names};

/// Rewrites the body of a kernel in place; returns errors on unsupported syntax.
pub fn kernel(block: &mut Block, parameters: Vec<String>) -> Vec<Error> {
    let mut rewrite = Rewrite { scopes: vec![parameters], around: vec![Around::Kernel], ..Rewrite::default() };
    rewrite.in_block(block, false);
    rewrite.errors
}

/// The same of a function that kernels call.
pub fn function(block: &mut Block, parameters: Vec<String>, returns: bool) -> Vec<Error> {
    let mut rewrite = Rewrite { scopes: vec![parameters], around: vec![Around::Function], ..Rewrite::default() };
    rewrite.in_block(block, returns);
    rewrite.errors
}

pub fn is_assignment(op: &BinOp) -> bool {
    use BinOp::*;
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitXorAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

/// The construct around a statement; the innermost is last.
enum Around {
    Kernel,
    Function,
    Closure,
    Branch(Lifetime),
    Loop { label: Lifetime, state: Ident, carried: TokenStream },
}

#[derive(Default)]
struct Rewrite {
    /// The variables in sight.
    scopes: Vec<Vec<String>>,
    around: Vec<Around>,
    made: usize,
    errors: Vec<Error>,
}

impl Rewrite {
    fn error(&mut self, span: Span, message: &str) {
        self.errors.push(Error::new(span, message));
    }

    /// A name of our own.
    fn fresh(&mut self, word: &str) -> (Ident, Lifetime) {
        self.made += 1;
        let name = format!("girih_{word}_{}", self.made);
        (Ident::new(&name, Span::mixed_site()), Lifetime::new(&format!("'{name}"), Span::mixed_site()))
    }

    /// The variables that are handed over at each step of a branch or a loop, as `("x", &mut x)`.
    fn carried(&self, assigned: Assigned) -> Vec<TokenStream> {
        let known = |name: &String| self.scopes.iter().flatten().any(|n| n == name);
        let one = |(name, ident): (String, Ident)| quote_spanned!(ident.span()=> (#name, &mut #ident as &mut dyn ::girih::lang::Carried));
        assigned.into_names().filter(|(name, _)| known(name)).map(one).collect()
    }

    fn in_block(&mut self, block: &mut Block, used: bool) {
        self.scopes.push(Vec::new());
        let last = block.stmts.len().saturating_sub(1);
        for (i, statement) in block.stmts.iter_mut().enumerate() {
            self.statement(statement, used && i == last);
        }
        self.scopes.pop();
    }

    fn statement(&mut self, statement: &mut Stmt, used: bool) {
        match statement {
            Stmt::Local(local) => self.local(local),
            Stmt::Item(_) => {}
            Stmt::Expr(e, semicolon) => {
                let used = used && semicolon.is_none();
                self.expression(e, used);
            }
            Stmt::Macro(m) => {
                if let Some(e) = self.macro_call(&m.mac) {
                    *statement = Stmt::Expr(e, m.semi_token);
                }
            }
        }
    }

    fn local(&mut self, local: &mut Local) {
        match &mut local.init {
            Some(init) => {
                self.expression(&mut init.expr, true);
                if let Some((_, diverge)) = &mut init.diverge {
                    self.expression(diverge, true);
                }
            }
            None => self.error(
                local.pat.span(),
                "a variable of a kernel needs a value where it is declared\nhelp: give it one, or make it the value of the `if`",
            ),
        }
        let new = names(&local.pat);
        if let Some(scope) = self.scopes.last_mut() {
            scope.extend(new);
        }
    }

    /// `used`: whether the value of an `if` matters.
    fn expression(&mut self, e: &mut Expr, used: bool) {
        match e {
            Expr::If(i) if !matches!(*i.cond, Expr::Let(_)) && !has_let(&i.cond) => {
                *e = self.branch(i.clone(), used);
            }
            Expr::Block(b) if b.label.is_none() => self.in_block(&mut b.block, used),
            other => self.visit_expr_mut(other),
        }
    }

    fn branch(&mut self, i: ExprIf, used: bool) -> Expr {
        let ExprIf { if_token, mut cond, mut then_branch, else_branch, .. } = i;
        let used = used && else_branch.is_some();
        let mut other = match else_branch {
            None => parse_quote_spanned!(if_token.span=> {}),
            Some((_, e)) => match *e {
                Expr::Block(b) => b.block,
                e => Block { brace_token: then_branch.brace_token, stmts: vec![Stmt::Expr(e, None)] },
            },
        };
        self.visit_expr_mut(&mut cond);
        let mut assigned = Assigned::of_block(&then_branch);
        syn::visit::Visit::visit_block(&mut assigned, &other);
        let mut carried = self.carried(assigned);
        let (state, label) = self.fresh("if");
        let (value, _) = self.fresh("value");
        if used {
            carried.push(quote!(("the value of the `if`", &mut #value as &mut dyn ::girih::lang::Carried)));
        }
        self.around.push(Around::Branch(label.clone()));
        self.in_block(&mut then_branch, used);
        self.in_block(&mut other, used);
        self.around.pop();
        let leave = self.jump(if_token.span);
        let leave = leave.map(|jump| quote!(if #state.left() { #jump }));
        let at = if_token.span;
        let new = quote_spanned!(at=> ::girih::lang::Branch::new);
        let sides = quote!(if #state.then() #then_branch else #other);
        let tokens = if used {
            quote! {{
                let mut #state = #new(#cond);
                let mut #value = ::core::option::Option::None;
                #label: while #state.next(&mut [#(#carried),*]) { #value = ::core::option::Option::Some(#sides); }
                #leave
                #state.value(#value)
            }}
        } else {
            quote! {{
                let mut #state = #new(#cond);
                #label: while #state.next(&mut [#(#carried),*]) { #sides }
                #leave
            }}
        };
        made(tokens)
    }

    /// How control goes on where the place in hand has been left.
    fn jump(&mut self, span: Span) -> Option<TokenStream> {
        match self.around.last()? {
            Around::Kernel => Some(quote_spanned!(span=> return)),
            Around::Function | Around::Closure => None,
            Around::Branch(label) => Some(quote_spanned!(span=> continue #label)),
            Around::Loop { label, .. } => Some(quote_spanned!(span=> continue #label)),
        }
    }

    /// The innermost loop, if one is inside of the function or closure in hand.
    fn in_loop(&self) -> Option<(Ident, TokenStream)> {
        for around in self.around.iter().rev() {
            match around {
                Around::Loop { state, carried, .. } => return Some((state.clone(), carried.clone())),
                Around::Branch(_) => {}
                _ => return None,
            }
        }
        None
    }

    fn leave(&mut self, span: Span, word: &str) -> Expr {
        let Some((state, carried)) = self.in_loop() else {
            self.error(span, &format!("`{word}` is outside of a loop"));
            return parse_quote_spanned!(span=> {});
        };
        let jump = self.jump(span);
        let word = Ident::new(if word == "break" { "leave" } else { "go_on" }, span);
        made(quote_spanned!(span=> { #state.#word(&mut [#carried]); #jump }))
    }

    fn return_from(&mut self, span: Span, has_value: bool) -> Option<Expr> {
        if self.in_loop().is_some() {
            self.error(span, "`return` inside a loop of a kernel is not supported\nhelp: leave the loop with `break`");
            return None;
        }
        match self.around.last() {
            Some(Around::Kernel) => None,
            Some(Around::Function) => None,
            Some(Around::Closure) => None,
            _ if self.around.iter().any(|a| matches!(a, Around::Closure | Around::Function)) || has_value => {
                let message = "`return` inside an `if` is supported only in a kernel itself\n\
                               help: make the `if` the value: `if c { a } else { b }`";
                self.error(span, message);
                None
            }
            _ => {
                let jump = self.jump(span);
                Some(made(quote_spanned!(span=> { ::girih::lang::end_of_block(); #jump })))
            }
        }
    }

    /// A loop: `head` makes its state, `step` is one step of it over the variables carried.
    fn run(
        &mut self,
        span: Span,
        carried: Vec<TokenStream>,
        head: TokenStream,
        step: impl FnOnce(&Ident, &TokenStream, &mut Rewrite) -> TokenStream,
        body: &mut Block,
        new: Vec<String>,
    ) -> Expr {
        let (state, label) = self.fresh("loop");
        let carried = quote!(#(#carried),*);
        self.around.push(Around::Loop { label: label.clone(), state: state.clone(), carried: carried.clone() });
        self.scopes.push(new);
        let step = step(&state, &carried, self);
        self.in_block(body, false);
        self.scopes.pop();
        self.around.pop();
        let leave = self.jump(span).map(|jump| quote!(if #state.left() { #jump }));
        made(quote_spanned! {span=> {
            let mut #state = #head;
            #label: #step #body
            #leave
        }})
    }

    fn macro_call(&mut self, call: &Macro) -> Option<Expr> {
        let name = call.path.get_ident()?.to_string();
        let span = call.path.span();
        let function = match name.as_str() {
            "assert" => "check",
            "print" | "println" => "print",
            "assert_eq" | "assert_ne" | "debug_assert" | "eprintln" | "eprint" | "dbg" => {
                let help =
                    if name.contains("assert") { "`assert!(a == b, \"text\")`" } else { "`println!(\"text {}\", x)`" };
                self.error(span, &format!("`{name}!` is not supported in a kernel\nhelp: {help}"));
                return None;
            }
            _ => return None,
        };
        let parser = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
        let mut arguments = match call.parse_body_with(parser) {
            Ok(a) => a.into_iter().collect::<Vec<_>>(),
            Err(e) => {
                self.errors.push(e);
                return None;
            }
        };
        let shown = arguments.first().map(|a| a.to_token_stream().to_string()).unwrap_or_default();
        arguments.iter_mut().for_each(|a| self.visit_expr_mut(a));
        let function = Ident::new(function, span);
        if name == "assert" {
            let [condition, message] = match &arguments[..] {
                [c] => [c.to_token_stream(), quote!(#shown)],
                [c, m] => [c.to_token_stream(), m.to_token_stream()],
                _ => {
                    self.error(span, "an assertion of a kernel has a condition and one text");
                    return None;
                }
            };
            return Some(made(quote_spanned!(span=> ::girih::lang::#function(#condition, #message))));
        }
        let Some((text, values)) = arguments.split_first() else {
            self.error(span, "a text is needed");
            return None;
        };
        let Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(literal), .. }) = text else {
            self.error(text.span(), "the text of a message is a literal: `println!(\"row {}\", row)`");
            return None;
        };
        let parts: Vec<String> = literal.value().split("{}").map(String::from).collect();
        if parts.iter().any(|p| p.contains('{') || p.contains('}')) {
            self.error(literal.span(), "values are printed with `{}`, and have no other format in a kernel");
        } else if parts.len() != values.len() + 1 {
            let message = format!("the text has {} `{{}}`, but there are {} values", parts.len() - 1, values.len());
            self.error(literal.span(), &message);
        }
        let line = name == "println";
        Some(made(quote_spanned!(span=> ::girih::lang::#function(
            &[#(#parts),*], &[#(::girih::lang::Printed::printed(&#values)),*], #line
        ))))
    }
}

fn has_let(e: &Expr) -> bool {
    match e {
        Expr::Let(_) => true,
        Expr::Binary(b) if matches!(b.op, BinOp::And(_)) => has_let(&b.left) || has_let(&b.right),
        Expr::Paren(p) => has_let(&p.expr),
        _ => false,
    }
}

fn made(tokens: TokenStream) -> Expr {
    Expr::Verbatim(tokens)
}

fn comparison(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Lt(_) => "less",
        BinOp::Le(_) => "less_or_equal",
        BinOp::Gt(_) => "greater",
        BinOp::Ge(_) => "greater_or_equal",
        BinOp::Eq(_) => "equal",
        BinOp::Ne(_) => "not_equal",
        _ => return None,
    })
}

impl VisitMut for Rewrite {
    fn visit_block_mut(&mut self, block: &mut Block) {
        self.in_block(block, true);
    }
    fn visit_item_mut(&mut self, _: &mut Item) {}
    fn visit_pat_mut(&mut self, _: &mut Pat) {}
    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        self.scopes.push(names(&arm.pat));
        visit_mut::visit_arm_mut(self, arm);
        self.scopes.pop();
    }

    fn visit_expr_closure_mut(&mut self, c: &mut ExprClosure) {
        self.scopes.push(c.inputs.iter().flat_map(names).collect());
        self.around.push(Around::Closure);
        self.expression(&mut c.body, true);
        self.around.pop();
        self.scopes.pop();
    }

    fn visit_expr_mut(&mut self, e: &mut Expr) {
        let span = e.span();
        match e {
            Expr::Binary(b) => {
                self.visit_expr_mut(&mut b.left);
                self.visit_expr_mut(&mut b.right);
                let (left, op, right) = (&b.left, &b.op, &b.right);
                let at = op.span();
                if let Some(name) = comparison(op) {
                    let name = Ident::new(name, at);
                    *e = made(quote_spanned!(at=> ::girih::lang::#name(#left, #right)));
                } else if matches!(op, BinOp::And(_) | BinOp::Or(_)) && !has_let(left) && !has_let(right) {
                    let name = Ident::new(if matches!(op, BinOp::And(_)) { "and" } else { "or" }, at);
                    *e = made(quote_spanned!(at=> ::girih::lang::#name(#left, || #right)));
                }
            }
            Expr::If(i) if !has_let(&i.cond) => *e = self.branch(i.clone(), true),
            Expr::If(_) => visit_mut::visit_expr_mut(self, e),
            Expr::ForLoop(l) => {
                if let Some(label) = &l.label {
                    self.error(label.span(), "labels of loops are not supported in a kernel");
                }
                self.visit_expr_mut(&mut l.expr);
                let carried = self.carried(Assigned::of_block(&l.body));
                let (pattern, over, at) = ((*l.pat).clone(), &l.expr, l.expr.span());
                let head = quote_spanned!(at=> ::girih::lang::Repeat::start(#over));
                let step = |state: &Ident, carried: &TokenStream, _: &mut Rewrite| quote!(while let ::core::option::Option::Some(#pattern) = #state.next(&mut [#carried]));
                *e = self.run(l.for_token.span, carried, head, step, &mut l.body, names(&pattern));
            }
            Expr::While(l) => {
                if let Some(label) = &l.label {
                    self.error(label.span(), "labels of loops are not supported in a kernel");
                }
                if has_let(&l.cond) {
                    self.error(
                        l.cond.span(),
                        "`while let` is not supported in a kernel\nhelp: loop with `for` or `while`",
                    );
                    return;
                }
                let carried = self.carried(Assigned::of_block(&l.body).and_expr(&l.cond));
                let (mut condition, at) = ((*l.cond).clone(), l.cond.span());
                let head = quote_spanned!(l.while_token.span=> ::girih::lang::While::new());
                let step = |state: &Ident, carried: &TokenStream, rewrite: &mut Rewrite| {
                    rewrite.visit_expr_mut(&mut condition);
                    let test = quote_spanned!(at=> #state.test);
                    quote!(while #state.next(&mut [#carried]) && #test(#condition, &mut [#carried]))
                };
                *e = self.run(l.while_token.span, carried, head, step, &mut l.body, vec![]);
            }
            Expr::Loop(l) => {
                if let Some(label) = &l.label {
                    self.error(label.span(), "labels of loops are not supported in a kernel");
                }
                let carried = self.carried(Assigned::of_block(&l.body));
                let head = quote_spanned!(l.loop_token.span=> ::girih::lang::While::new());
                let step =
                    |state: &Ident, carried: &TokenStream, _: &mut Rewrite| quote!(while #state.next(&mut [#carried]));
                *e = self.run(l.loop_token.span, carried, head, step, &mut l.body, vec![]);
            }
            Expr::Break(b) => {
                if b.label.is_some() || b.expr.is_some() {
                    self.error(span, "`break` with a label or a value is not supported in a kernel");
                    return;
                }
                *e = self.leave(span, "break");
            }
            Expr::Continue(c) => {
                if c.label.is_some() {
                    self.error(span, "`continue` with a label is not supported in a kernel");
                    return;
                }
                *e = self.leave(span, "continue");
            }
            Expr::Return(r) => {
                if let Some(value) = &mut r.expr {
                    self.visit_expr_mut(value);
                }
                let has_value = r.expr.is_some();
                if let Some(new) = self.return_from(span, has_value) {
                    *e = new;
                }
            }
            Expr::Macro(ExprMacro { mac, .. }) => {
                if let Some(new) = self.macro_call(&mac.clone()) {
                    *e = new;
                }
            }
            Expr::Try(t) => self.error(t.question_token.span(), "`?` is not supported in a kernel"),
            Expr::Await(a) => self.error(a.await_token.span, "`await` is not supported in a kernel"),
            Expr::Async(a) => self.error(a.async_token.span, "`async` is not supported in a kernel"),
            Expr::Unsafe(u) => self.error(u.unsafe_token.span, "`unsafe` is not supported in a kernel"),
            Expr::Block(b) if b.label.is_some() => self.error(span, "a labelled block is not supported in a kernel"),
            _ => visit_mut::visit_expr_mut(self, e),
        }
    }
}
