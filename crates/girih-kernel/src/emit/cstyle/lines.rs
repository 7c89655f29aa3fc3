//! Lines of source under construction.

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
