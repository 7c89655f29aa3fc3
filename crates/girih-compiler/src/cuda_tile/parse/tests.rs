use super::*;

/// The diagnostics of a text, one a line, with the text each points at.
fn report(text: &str) -> String {
    let lines = parse(text).diagnostics.into_iter().map(|d| {
        let at = d.span.and_then(|s| text.get(s.start as usize..s.end as usize)).unwrap_or("?");
        format!("{} {} [{}]", d.code.text(), d.message, at.lines().next().unwrap_or(""))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The conformance programs, where they lie beside the project.
fn conformance() -> Option<std::fs::ReadDir> {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().find_map(|dir| std::fs::read_dir(dir.join("shared/conformance/tile")).ok())
}

#[test]
fn conformance_programs_are_read() {
    let Some(entries) = conformance() else { return };
    let mut files: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
    files.sort();
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let parsed = parse(&text);
        let rejected = ["op_14", "op_73", "op_75"].iter().any(|n| name.starts_with(n)) || name.contains("fragment");
        assert_eq!(parsed.module.is_none(), rejected, "{name}: {}", report(&text));
        if rejected {
            assert!(parsed.diagnostics.iter().any(|d| d.is_error() && d.span.is_some()), "{name}");
        }
        let warns =
            ["op_20", "op_54", "op_70", "program_01", "program_03", "program_08"].iter().any(|n| name.starts_with(n));
        let has = parsed.diagnostics.iter().any(|d| d.code == Code::OldSpelling);
        assert_eq!(has, warns, "{name}: {}", report(&text));
    }
}
