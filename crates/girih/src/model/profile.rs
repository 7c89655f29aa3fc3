//! Where a model's time goes.

use girih_compiler::graph::{Graph, OriginId};

/// The model's operations, each once: `aten.linear layers.0.mlp.gate_proj`.
pub fn origins(graph: &Graph, ids: &[OriginId]) -> Vec<String> {
    let mut list: Vec<String> = vec![];
    for origin in ids.iter().filter_map(|id| graph.origins.get(*id)) {
        let text = match (origin.op.as_str(), origin.name.as_str()) {
            ("", "") => continue,
            (op, "") => op.to_string(),
            ("", name) => name.to_string(),
            (op, name) => format!("{op} {name}"),
        };
        if !list.contains(&text) {
            list.push(text);
        }
    }
    list
}
