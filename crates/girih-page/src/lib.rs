//! Pages of HTML that need nothing else: no network, no other file.
//!
//! In: the contents of a page. Out: its text, with the styles and scripts of `assets/` in it. Users' texts enter a page through
//! [`escaped`] where they are markup, and through [`data`] where a script shows them, which only ever sets text.
//!
//! * [`explain`]: a compilation              * [`simulation`]: the report of the simulator
//! * [`drawing`]: graphs in layers, as SVG
//!
//! The files of `assets/` that pages share: `page.css`, `syntax.js` (colours of source), `panes.js` (stages side by side,
//! linked line by line).
#![forbid(unsafe_code)]

pub mod drawing;
pub mod explain;
pub mod simulation;

use girih_compiler::base::label::visible_lines;
use girih_compiler::explain::StageText;
use serde_json::{Value, json};

const STYLE: &str = include_str!("assets/page.css");
const SYNTAX: &str = include_str!("assets/syntax.js");
const PANES: &str = include_str!("assets/panes.js");

/// The parts of a page that differ from other pages.
pub struct Page<'a> {
    pub title: &'a str,
    pub style: &'a str,
    /// Markup.
    pub body: &'a str,
    /// The data that its script reads.
    pub data: Option<&'a Value>,
    pub script: &'a str,
}

impl Page<'_> {
    pub fn text(&self) -> String {
        let Page { title, style, body, data, script } = self;
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>{}</title>\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src \
             'unsafe-inline'; img-src data:; connect-src 'self'\">\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n{body}",
            escaped(title)
        );
        if let Some(data) = data {
            out += &self::data(data);
            for part in [SYNTAX, PANES, script] {
                out += &format!("<script>\n{part}</script>\n");
            }
        }
        out + "</body>\n</html>\n"
    }
}

/// A pane of source, as `panes.js` takes it.
pub fn stage(s: &StageText, title: &str, language: &str, folded: bool) -> Value {
    let links: Vec<Value> =
        s.lines.iter().map(|(line, of)| json!([line, of.iter().map(|s| s.0).collect::<Vec<_>>()])).collect();
    json!({
        "name": s.name,
        "title": title,
        "language": language,
        "text": s.text,
        "links": links,
        "kernels": s.kernels,
        // Text before the first kernel is the same in all sources.
        "begin": s.kernels.first().map_or(1, |(_, line)| *line),
        "folded": folded,
    })
}

/// Text as markup: invisible characters are escaped, as on a terminal.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible_lines(text).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

/// Returns the data with the invisible characters of every string escaped.
pub fn seen(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible_lines(text).into_owned()),
        Value::Array(all) => all.iter().map(seen).collect(),
        Value::Object(all) => {
            Value::Object(all.iter().map(|(k, v)| (visible_lines(k).into_owned(), seen(v))).collect())
        }
        other => other.clone(),
    }
}

/// Data for the page's script: JSON in which nothing ends the element.
fn data(value: &Value) -> String {
    let json = seen(value).to_string().replace('<', "\\u003c");
    format!("<script type=\"application/json\" id=\"data\">{json}</script>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_users_are_no_markup() {
        assert_eq!(escaped("<b a='\"'>&\u{1b}[2J"), "&lt;b a=&#39;&quot;&#39;&gt;&amp;\\u{1b}[2J");
        assert_eq!(escaped("a\u{202e}b\u{2066}\tc\n"), "a\\u{202e}b\\u{2066}\tc\n");
        let value = serde_json::json!({ "text": "</script><!--\u{202e}" });
        assert_eq!(
            data(&value),
            "<script type=\"application/json\" id=\"data\">{\"text\":\"\\u003c/script>\\u003c!--\\\\u{202e}\"}</script>\n"
        );
    }
}
