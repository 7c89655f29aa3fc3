//! The form in which a file states its rules.

/// `RULES` of a file. A rule is its name, its doc, and a row for each meaning: the operations that have it, and a function of a
/// [`Call`](super::Call) that gives the results.
///
/// ```text
/// rules! {
///     silu "`y = silu(x)` --> `y = x / (1 + exp(-x))`" {
///         "aten.silu" | "aten.swish" => |c| silu(c.x(0)),
///     }
/// }
/// ```
macro_rules! rules {
    ($($name:ident $doc:literal { $($($handle:literal)|+ => $run:expr),+ $(,)? })+) => {
        pub(in crate::graph::decompose) const RULES: &[$crate::graph::decompose::Decomposition] = &[
            $($crate::graph::decompose::Decomposition {
                name: stringify!($name),
                handles: &[$($($handle),+),+],
                doc: $doc,
                rows: &[$($crate::graph::decompose::Row {
                    handles: &[$($handle),+],
                    run: |call| $crate::graph::decompose::call::applied(call, $run),
                }),+],
            }),+
        ];
    };
}
