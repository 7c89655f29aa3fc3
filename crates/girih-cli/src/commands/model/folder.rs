//! Hugging Face folders: the Python package captures the model, `python -m girih.huggingface export`.
//!
//! In: a folder, and which part of it. Out: a [`Model`] whose weights lie in the mapped files of the folder.
//!
//! ```text
//! girih -> python   --layer=0 --seq-len=32
//! python -> girih   one line of JSON, a graph as `source::torch` reads it; its constants name files from the root on
//! girih -> python   the end of standard input: files of weights that Python made are mapped now, and it removes them
//! ```

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::OnceLock;

use girih::model::Model;

use crate::cli::FolderArgs;
use crate::commands::cutile::package_command;
use crate::failure::Failure;

/// A folder on the command line. It is captured once, however often it is opened.
pub struct Folder {
    pub path: PathBuf,
    part: FolderArgs,
    captured: OnceLock<Captured>,
}

/// A graph, and the process whose files it names.
struct Captured {
    json: String,
    child: Child,
}

impl Drop for Captured {
    fn drop(&mut self) {
        self.child.stdin = None;
        let _ = self.child.wait();
    }
}

impl Folder {
    pub fn new(path: &Path, part: &FolderArgs) -> Folder {
        Folder { path: path.to_path_buf(), part: part.clone(), captured: OnceLock::new() }
    }

    /// The model, as Python captured it.
    pub fn open(&self) -> Result<Model, Failure> {
        let captured = match self.captured.get() {
            Some(captured) => captured,
            None => {
                let captured = capture(&self.path, &self.part)?;
                self.captured.get_or_init(|| captured)
            }
        };
        Ok(Model::from_torch_json_within(&captured.json, Some(Path::new("/")))?)
    }
}

fn capture(path: &Path, part: &FolderArgs) -> Result<Captured, Failure> {
    if !path.join("config.json").is_file() {
        let message = "it is a folder without config.json, so no Hugging Face model";
        return Err(girih::Error::file(path, message.to_string()).into());
    }
    let cannot = |e: std::io::Error| Failure::usage(format!("Python cannot be started: {e}"));
    let mut command = package_command()?;
    command.args(["-m", "girih.huggingface", "export"]).args(part.flags()).arg("--").arg(path);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(cannot)?;
    let from = child.stdout.take();
    let mut captured = Captured { json: String::new(), child };
    let read = from.map(|from| BufReader::new(from).read_line(&mut captured.json));
    if captured.json.ends_with('\n') && matches!(read, Some(Ok(_))) {
        return Ok(captured);
    }
    let status = captured.child.wait();
    if girih::interrupted() {
        return Err(girih::Error::Interrupted.into());
    }
    // Python has said why.
    let code = status.ok().and_then(|status| status.code()).filter(|code| *code != 0).unwrap_or(1);
    Err(Failure::Said(u8::try_from(code).unwrap_or(1)))
}
