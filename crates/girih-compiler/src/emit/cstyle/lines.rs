//! Lines of source under construction, and what goes between them.

use crate::index::Cmp;

/// Text under construction, indented by two spaces a level.
#[derive(Default)]
pub struct Lines {
    pub text: String,
    pub depth: usize,
    /// Lines of the text.
    pub count: u32,
}

impl Lines {
    pub fn line(&mut self, line: &str) {
        self.text.extend(std::iter::repeat_n("  ", self.depth));
        self.text.push_str(line);
        self.text.push('\n');
        self.count += 1;
    }
    /// A line that opens a block.
    pub fn open(&mut self, line: &str) {
        self.line(line);
        self.depth += 1;
    }
    pub fn close(&mut self, line: &str) {
        self.depth -= 1;
        self.line(line);
    }
}

pub fn cmp(cmp: Cmp) -> &'static str {
    match cmp {
        Cmp::Eq => "==",
        Cmp::Ne => "!=",
        Cmp::Lt => "<",
        Cmp::Le => "<=",
        Cmp::Gt => ">",
        Cmp::Ge => ">=",
    }
}
