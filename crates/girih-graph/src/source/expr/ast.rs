//! The syntax tree of a text: the statements and expressions of Python that the evaluator knows.

use std::rc::Rc;

use crate::base::Span;

#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    pub kind: Kind,
    pub span: Span,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Kind {
    Name(String),
    None,
    Ellipsis,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Rc<str>),
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `a < b <= c`
    Compare(Box<Expr>, Vec<(Compare, Expr)>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    IfElse {
        cond: Box<Expr>,
        then: Box<Expr>,
        other: Box<Expr>,
    },
    Attribute(Box<Expr>, String),
    Subscript(Box<Expr>, Box<Expr>),
    Slice(Option<Box<Expr>>, Option<Box<Expr>>, Option<Box<Expr>>),
    Call(Box<Expr>, Vec<Argument>),
    Lambda(Rc<Function>),
    /// `[element for target in iter if cond ...]`; a generator is evaluated as a list.
    Comprehension {
        element: Box<Expr>,
        /// The value of a dict comprehension, whose key is the element.
        value: Option<Box<Expr>>,
        clauses: Vec<Clause>,
    },
    Starred(Box<Expr>),
}

#[derive(Clone, PartialEq, Debug)]
pub enum Clause {
    For(Expr, Expr),
    If(Expr),
}

#[derive(Clone, PartialEq, Debug)]
pub enum Argument {
    Positional(Expr),
    /// `*list`
    Spread(Expr),
    Keyword(String, Span, Expr),
    /// `**dict`
    SpreadKeywords(Expr),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    Neg,
    Pos,
    Invert,
    Not,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    MatMul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    Shl,
    Shr,
    And,
    Or,
    Xor,
}

impl Binary {
    pub fn text(self) -> &'static str {
        match self {
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "*",
            Binary::MatMul => "@",
            Binary::Div => "/",
            Binary::FloorDiv => "//",
            Binary::Mod => "%",
            Binary::Pow => "**",
            Binary::Shl => "<<",
            Binary::Shr => ">>",
            Binary::And => "&",
            Binary::Or => "|",
            Binary::Xor => "^",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Is,
    IsNot,
    In,
    NotIn,
}

/// A `def` or `lambda`.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    pub name: String,
    pub params: Vec<Param>,
    pub body: Vec<Stmt>,
    /// The first statement, where it is a string.
    pub doc: Option<Rc<str>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamKind {
    Plain,
    /// After `*`.
    KeywordOnly,
    /// `*args`
    Rest,
    /// `**kwargs`
    Keywords,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Param {
    pub name: String,
    pub kind: ParamKind,
    pub default: Option<Expr>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Clone, PartialEq, Debug)]
pub enum StmtKind {
    Expr(Expr),
    /// `a = b = value`
    Assign(Vec<Expr>, Expr),
    Augmented(Expr, Binary, Expr),
    /// `x: int`
    Nothing,
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    For {
        target: Expr,
        iter: Expr,
        body: Vec<Stmt>,
        other: Vec<Stmt>,
    },
    While {
        cond: Expr,
        body: Vec<Stmt>,
        other: Vec<Stmt>,
    },
    Def(Rc<Function>, Vec<Expr>),
    Class {
        name: String,
        bases: Vec<Expr>,
        body: Rc<[Stmt]>,
        decorators: Vec<Expr>,
    },
    Return(Option<Expr>),
    Break,
    Continue,
    /// The module's path, and the name that is bound to it.
    Import(Vec<(String, Option<String>)>),
    /// `from path import name as other`
    From(String, Vec<(String, Option<String>)>),
    With(Vec<(Expr, Option<Expr>)>, Vec<Stmt>),
    Assert(Expr, Option<Expr>),
    Raise(Option<Expr>),
}
