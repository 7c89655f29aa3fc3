//! Lists for people: a name, and beside it a sentence, which may wrap.

pub use girih_compiler::pipeline::first_sentence;

use crate::failure::Failure;

const WIDTH: usize = 110;

/// Writes the rows two columns in, the sentences in a column of their own.
pub fn print<'a>(rows: impl IntoIterator<Item = (&'a str, String)>, name_width: usize) -> Result<(), Failure> {
    for (name, text) in rows {
        let lines = fill(&text, WIDTH - name_width - 4);
        for (i, line) in lines.iter().enumerate() {
            let name = if i == 0 { name } else { "" };
            outln!("  {name:<name_width$}  {line}")?;
        }
    }
    Ok(())
}

/// Rows as a table: the first and the last column to the left, those between to the right.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|t| t.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (c, (text, width)) in row.iter().zip(&widths).enumerate() {
            let gap = if c == 0 { "" } else { "  " };
            line += &match c {
                0 => format!("{gap}{text:<width$}"),
                c if c + 1 == columns => format!("{gap}{text}"),
                _ => format!("{gap}{text:>width$}"),
            };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// Words in lines of at most `width` columns.
fn fill(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(last) if last.is_empty() => last.push_str(word),
            Some(last) if last.chars().count() + 1 + word.chars().count() <= width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_fill_lines() {
        assert_eq!(fill("one two three", 7), ["one two", "three"]);
        assert_eq!(fill("immeasurable", 5), ["immeasurable"]);
        assert_eq!(fill("", 5), [""]);
    }

    #[test]
    fn numbers_of_a_table_stand_to_the_right() {
        let row = |texts: [&str; 3]| texts.map(String::from).to_vec();
        assert_eq!(table(&[row(["a", "time", "of"]), row(["long", "1", "x"])]), "a     time  of\nlong     1  x\n");
    }
}
