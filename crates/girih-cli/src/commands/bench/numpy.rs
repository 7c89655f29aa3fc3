//! A Python process that runs NumPy statements when told to.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Reads `shapes` and a statement on a line, then runs and times it for every empty line.
const SCRIPT: &str = r#"
import sys, time
import numpy as np
print(np.__version__, flush=True)
b, t, code = [], None, None
for line in sys.stdin:
    line = line.strip()
    if line:
        shapes, text = line.split("|", 1)
        b = [np.random.default_rng(i).random(tuple(map(int, s.split("x"))), dtype=np.float32) for i, s in enumerate(shapes.split())]
        t = np.empty_like(b[-1])
        code = compile(text, "bench", "exec")
        print("ready", flush=True)
    else:
        start = time.perf_counter()
        exec(code)
        print(time.perf_counter() - start, flush=True)
"#;

pub struct NumPy {
    pub version: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl NumPy {
    /// The first Python that has NumPy, or why there is none.
    pub fn start(threads: usize) -> Result<NumPy, String> {
        let mut reason = "no python3".to_string();
        for python in [".venv/bin/python", "python3"] {
            match NumPy::start_with(python, threads) {
                Ok(numpy) => return Ok(numpy),
                Err(Some(e)) => reason = e,
                Err(None) => {}
            }
        }
        Err(reason)
    }

    /// `Err(None)`: there is no such program.
    fn start_with(python: &str, threads: usize) -> Result<NumPy, Option<String>> {
        let threads = threads.to_string();
        let mut child = Command::new(python)
            .args(["-c", SCRIPT])
            .env("OPENBLAS_NUM_THREADS", &threads)
            .env("OMP_NUM_THREADS", &threads)
            .env("MKL_NUM_THREADS", &threads)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|_| None)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else { return Err(None) };
        let mut numpy = NumPy { version: String::new(), child, input, output: BufReader::new(output) };
        numpy.version = numpy.line().map_err(|_| Some(format!("{python} cannot import numpy")))?;
        Ok(numpy)
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(n) if n > 0 => Ok(line.trim().to_string()),
            _ => Err("the NumPy process ended".to_string()),
        }
    }

    fn say(&mut self, text: &str) -> Result<String, String> {
        writeln!(self.input, "{text}").and_then(|()| self.input.flush()).map_err(|e| format!("NumPy: {e}"))?;
        self.line()
    }

    /// Makes the arrays and compiles the statement.
    pub fn prepare(&mut self, shapes: &[&[u64]], statement: &str) -> Result<(), String> {
        let shape = |s: &&[u64]| s.iter().map(u64::to_string).collect::<Vec<_>>().join("x");
        let shapes: Vec<String> = shapes.iter().map(shape).collect();
        self.say(&format!("{}|{statement}", shapes.join(" "))).map(drop)
    }

    /// Runs the statement once; its seconds.
    pub fn run(&mut self) -> Result<f64, String> {
        self.say("")?.parse().map_err(|_| "NumPy reported no time".to_string())
    }
}

impl Drop for NumPy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
