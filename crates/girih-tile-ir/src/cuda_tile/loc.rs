//! Debug locations: the places in the user's files that operations come from.
//!
//! A [`Loc`] is a small tree that is shared, never changed and cheap to clone; an unknown location has no tree. Scopes
//! are trees of their own. In the text of MLIR:
//!
//! ```text
//! loc   := "unknown"
//!        | STRING ":" line ":" column                               a place in a file
//!        | "#cuda_tile.di_loc" "<" loc "in" scope ">"               a place in a scope
//!        | "callsite" "(" loc "at" loc ")"                          inlined code, and where it was called
//!        | STRING ("(" loc ")")?                                    a name
//!        | "fused" ("<" attribute ">")? "[" loc,* "]"               several
//! scope := "#cuda_tile.di_file" "<" STRING "in" STRING ">"
//!        | "#cuda_tile.di_compile_unit" "<" "file" "=" scope ">"
//!        | "#cuda_tile.di_subprogram" "<" file, line, name, linkageName, compileUnit, scopeLine ">"
//!        | "#cuda_tile.di_lexical_block" "<" scope, file, line, column ">"
//! ```
//!
//! Invariants: no tree is deeper than [`MAX_DEPTH`], or larger than [`MAX_SIZE`] if shared nodes count each time, so
//! recursion over a tree, including its drop, ends soon for every input. Equal trees are equal whether they share nodes
//! or not; their hash is kept with each node.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::base::{Frame, Location};

/// The deepest tree of locations and scopes.
pub const MAX_DEPTH: u32 = 256;
/// The nodes of the largest tree.
pub const MAX_SIZE: u32 = 4096;

/// A debug location; the default is unknown.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Loc(Option<Arc<Node<LocKind>>>);

/// The kind of a known location.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LocKind {
    File(Location),
    Scoped {
        loc: Loc,
        scope: Scope,
    },
    CallSite {
        callee: Loc,
        caller: Loc,
    },
    Named {
        name: Arc<str>,
        /// Often unknown.
        loc: Loc,
    },
    Fused(Vec<Loc>),
}

/// The scope that a location lies in.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scope(Arc<Node<ScopeKind>>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ScopeKind {
    File(File),
    CompileUnit(CompileUnit),
    LexicalBlock { scope: Scope, file: File, line: u32, column: u32 },
    Subprogram(Subprogram),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct File {
    pub name: Arc<str>,
    pub directory: Arc<str>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CompileUnit {
    pub file: File,
}

/// A function of the source.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Subprogram {
    pub file: File,
    pub line: u32,
    pub name: Arc<str>,
    /// The symbol that it was compiled to; the name of the entry for a kernel.
    pub linkage_name: Arc<str>,
    pub compile_unit: CompileUnit,
    pub scope_line: u32,
}

/// A node with the hash, size and depth of its tree.
#[derive(Debug)]
struct Node<K> {
    hash: u64,
    size: u32,
    depth: u32,
    kind: K,
}

impl<K: PartialEq> PartialEq for Node<K> {
    fn eq(&self, other: &Node<K>) -> bool {
        std::ptr::eq(self, other) || (self.hash == other.hash && self.kind == other.kind)
    }
}
impl<K: Eq> Eq for Node<K> {}
impl<K> Hash for Node<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl<K: Hash> Node<K> {
    /// A node above nodes of the given sizes and depths; `None` when the tree grows too large.
    fn above(kind: K, below: impl IntoIterator<Item = (u32, u32)>) -> Option<Arc<Node<K>>> {
        let (mut size, mut depth) = (1u32, 0u32);
        for (s, d) in below {
            size = size.saturating_add(s);
            depth = depth.max(d);
        }
        let mut hasher = rustc_hash::FxHasher::default();
        kind.hash(&mut hasher);
        let fits = size <= MAX_SIZE && depth < MAX_DEPTH;
        fits.then(|| Arc::new(Node { hash: hasher.finish(), size, depth: depth + 1, kind }))
    }
}

impl Scope {
    pub fn kind(&self) -> &ScopeKind {
        &self.0.kind
    }
    fn extent(&self) -> (u32, u32) {
        (self.0.size, self.0.depth)
    }
    fn leaf(kind: ScopeKind) -> Scope {
        let mut hasher = rustc_hash::FxHasher::default();
        kind.hash(&mut hasher);
        // A file, its compile unit, and the scopes that hold them.
        Scope(Arc::new(Node { hash: hasher.finish(), size: 4, depth: 4, kind }))
    }
    pub fn file(file: File) -> Scope {
        Scope::leaf(ScopeKind::File(file))
    }
    pub fn compile_unit(unit: CompileUnit) -> Scope {
        Scope::leaf(ScopeKind::CompileUnit(unit))
    }
    pub fn subprogram(subprogram: Subprogram) -> Scope {
        Scope::leaf(ScopeKind::Subprogram(subprogram))
    }
    /// A block inside another scope; `None` when scopes nest too deeply.
    pub fn lexical_block(scope: Scope, file: File, line: u32, column: u32) -> Option<Scope> {
        let below = [scope.extent()];
        Node::above(ScopeKind::LexicalBlock { scope, file, line, column }, below).map(Scope)
    }
    /// The function that the scope is, or is inside.
    pub fn function(&self) -> Option<&Subprogram> {
        let mut scope = self;
        loop {
            match scope.kind() {
                ScopeKind::Subprogram(s) => return Some(s),
                ScopeKind::LexicalBlock { scope: outer, .. } => scope = outer,
                ScopeKind::File(_) | ScopeKind::CompileUnit(_) => return None,
            }
        }
    }
}

impl Loc {
    pub const UNKNOWN: Loc = Loc(None);

    /// The kind of the location; `None` for unknown.
    pub fn kind(&self) -> Option<&LocKind> {
        self.0.as_ref().map(|n| &n.kind)
    }
    pub fn is_unknown(&self) -> bool {
        self.0.is_none()
    }
    fn extent(&self) -> (u32, u32) {
        self.0.as_ref().map_or((0, 0), |n| (n.size, n.depth))
    }

    pub fn file(file: impl Into<Arc<str>>, line: u32, column: u32) -> Loc {
        Loc(Node::above(LocKind::File(Location { file: file.into(), line, column }), []))
    }
    /// A location in a scope; `None` when the tree grows too large, as with every constructor below.
    pub fn scoped(loc: Loc, scope: Scope) -> Option<Loc> {
        let below = [loc.extent(), scope.extent()];
        Node::above(LocKind::Scoped { loc, scope }, below).map(|n| Loc(Some(n)))
    }
    /// Code of `callee` that was inlined at `caller`.
    pub fn call_site(callee: Loc, caller: Loc) -> Option<Loc> {
        let below = [callee.extent(), caller.extent()];
        Node::above(LocKind::CallSite { callee, caller }, below).map(|n| Loc(Some(n)))
    }
    pub fn named(name: impl Into<Arc<str>>, loc: Loc) -> Option<Loc> {
        let below = [loc.extent()];
        Node::above(LocKind::Named { name: name.into(), loc }, below).map(|n| Loc(Some(n)))
    }
    pub fn fused(parts: Vec<Loc>) -> Option<Loc> {
        let below: Vec<_> = parts.iter().map(Loc::extent).collect();
        Node::above(LocKind::Fused(parts), below).map(|n| Loc(Some(n)))
    }

    /// The innermost place; of a fused location that of the first part with a place.
    pub fn place(&self) -> Option<&Location> {
        match self.kind()? {
            LocKind::File(place) => Some(place),
            LocKind::Scoped { loc, .. } | LocKind::Named { loc, .. } => loc.place(),
            LocKind::CallSite { callee, caller } => callee.place().or_else(|| caller.place()),
            LocKind::Fused(parts) => parts.iter().find_map(Loc::place),
        }
    }

    /// The innermost scope: that of the code itself, not of its callers.
    pub fn scope(&self) -> Option<&Scope> {
        match self.kind()? {
            LocKind::File(_) => None,
            LocKind::Scoped { scope, .. } => Some(scope),
            LocKind::Named { loc, .. } => loc.scope(),
            LocKind::CallSite { callee, .. } => callee.scope(),
            LocKind::Fused(parts) => parts.iter().find_map(Loc::scope),
        }
    }

    /// The chain of inlined calls, innermost first.
    pub fn frames(&self) -> Vec<Frame> {
        let mut out = vec![];
        self.add_frames(None, &mut out);
        out
    }

    fn add_frames(&self, function: Option<&Arc<str>>, out: &mut Vec<Frame>) {
        match self.kind() {
            None => {}
            Some(LocKind::File(place)) => out.push(Frame { function: function.cloned(), place: place.clone() }),
            Some(LocKind::Scoped { loc, scope }) => loc.add_frames(scope.function().map(|f| &f.name), out),
            Some(LocKind::Named { loc, .. }) => loc.add_frames(function, out),
            Some(LocKind::CallSite { callee, caller }) => {
                callee.add_frames(function, out);
                caller.add_frames(None, out);
            }
            Some(LocKind::Fused(parts)) => {
                if let Some(part) = parts.iter().find(|p| p.place().is_some()) {
                    part.add_frames(function, out);
                }
            }
        }
    }
}
