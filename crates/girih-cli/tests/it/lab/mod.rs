//! A folder, a cache and a few programs for tests that call the binary.
#![allow(dead_code)]

pub mod browser;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub const ADD: &str = r#"// c = a + b over any n.
// launch: grid=4 a=arange:f32[1000] b=ones:f32[1000] c=zeros:f32[1000] n=i32:1000
cuda_tile.module @m {
  entry @add(%a: tile<ptr<f32>>, %b: tile<ptr<f32>>, %c: tile<ptr<f32>>, %n: tile<i32>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %size = constant <i32: 256> : tile<i32>
    %start = muli %bx, %size : tile<i32>
    %lane = iota : tile<256xi32>
    %start_r = reshape %start : tile<i32> -> tile<1xi32>
    %start_b = broadcast %start_r : tile<1xi32> -> tile<256xi32>
    %i = addi %start_b, %lane : tile<256xi32>
    %n_r = reshape %n : tile<i32> -> tile<1xi32>
    %n_b = broadcast %n_r : tile<1xi32> -> tile<256xi32>
    %in = cmpi less_than %i, %n_b, signed : tile<256xi32> -> tile<256xi1>
    %zero = constant <f32: 0.0> : tile<256xf32>
    %a_r = reshape %a : tile<ptr<f32>> -> tile<1xptr<f32>>
    %a_b = broadcast %a_r : tile<1xptr<f32>> -> tile<256xptr<f32>>
    %a_p = offset %a_b, %i : tile<256xptr<f32>>, tile<256xi32> -> tile<256xptr<f32>>
    %b_r = reshape %b : tile<ptr<f32>> -> tile<1xptr<f32>>
    %b_b = broadcast %b_r : tile<1xptr<f32>> -> tile<256xptr<f32>>
    %b_p = offset %b_b, %i : tile<256xptr<f32>>, tile<256xi32> -> tile<256xptr<f32>>
    %c_r = reshape %c : tile<ptr<f32>> -> tile<1xptr<f32>>
    %c_b = broadcast %c_r : tile<1xptr<f32>> -> tile<256xptr<f32>>
    %c_p = offset %c_b, %i : tile<256xptr<f32>>, tile<256xi32> -> tile<256xptr<f32>>
    %x, %t0 = load_ptr_tko weak %a_p, %in, %zero : tile<256xptr<f32>>, tile<256xi1>, tile<256xf32> -> tile<256xf32>, token
    %y, %t1 = load_ptr_tko weak %b_p, %in, %zero : tile<256xptr<f32>>, tile<256xi1>, tile<256xf32> -> tile<256xf32>, token
    %z = addf %x, %y rounding<nearest_even> : tile<256xf32>
    %t2 = store_ptr_tko weak %c_p, %z, %in : tile<256xptr<f32>>, tile<256xf32>, tile<256xi1> -> token
  }
}
"#;

pub const TWO: &str = r#"cuda_tile.module @m {
  entry @first() { print_tko "first\n" -> token }
  entry @second() { print_tko "second\n" -> token }
}
"#;

/// `y = silu(x @ w.T)` for any number of rows.
pub const GATE: &str = r#"{"format": "girih.torch", "version": 1, "name": "gate",
 "symbols": [{"name": "rows", "lo": 1, "hi": 4096}],
 "inputs": [{"name": "x", "dtype": "f32", "shape": ["rows", 64], "role": "argument"},
            {"name": "w", "dtype": "f32", "shape": [32, 64], "role": "parameter"}],
 "constants": [],
 "nodes": [{"op": "aten.linear", "args": [{"t": "x"}, {"t": "w"}, null], "attrs": {},
            "results": [{"name": "h", "dtype": "f32", "shape": ["rows", 32]}], "module": "mlp.gate"},
           {"op": "aten.silu", "args": [{"t": "h"}], "attrs": {},
            "results": [{"name": "s", "dtype": "f32", "shape": ["rows", 32]}], "module": "mlp.act"}],
 "outputs": [{"name": "y", "value": "s"}]}
"#;

/// Says so once block 0 has ended; block 1 polls the flag forever.
pub const SPINS: &str = r#"cuda_tile.module @m {
  entry @k(%flag: tile<ptr<i32>>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %zero = constant <i32: 0> : tile<i32>
    %first = cmpi equal %bx, %zero, signed : tile<i32> -> tile<i1>
    if %first {
      print_tko "runs\n" -> token
    } else {
      loop {
        %v, %t = load_ptr_tko acquire device %flag : tile<ptr<i32>> -> tile<i32>, token
        %stop = cmpi not_equal %v, %zero, signed : tile<i32> -> tile<i1>
        if %stop { break }
      }
    }
  }
}
"#;

/// Variables that would change a test's results.
const VARIABLES: [&str; 11] = [
    "GIRIH_DEVICE",
    "GIRIH_CC",
    "CC",
    "GIRIH_THREADS",
    "GIRIH_TARGET",
    "GIRIH_SEED",
    "GIRIH_SCHEDULES",
    "GIRIH_CPU",
    "GIRIH_CHECK",
    "GIRIH_CACHE_SIZE",
    "GIRIH_TUNED",
];

/// A folder with a cache of its own, removed at the end.
pub struct Lab(pub PathBuf);

impl Lab {
    pub fn new(name: &str) -> Lab {
        let dir = std::env::temp_dir().join(format!("girih-cli-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Lab(dir)
    }
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    }
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_string()
    }
    pub fn command(&self, args: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_girih"), args)
    }
    /// A script of the shell, in which `$GIRIH` is the program.
    pub fn shell(&self, script: &str) -> Command {
        let mut c = self.program("sh", &["-c", script]);
        c.env("GIRIH", env!("CARGO_BIN_EXE_girih"));
        c
    }
    fn program(&self, name: &str, args: &[&str]) -> Command {
        let mut c = Command::new(name);
        c.args(args).env("GIRIH_CACHE_DIR", self.0.join("cache")).stdin(Stdio::null());
        for name in VARIABLES {
            c.env_remove(name);
        }
        alone(&mut c);
        c
    }
    pub fn girih(&self, args: &[&str]) -> Output {
        finish(&mut self.command(args))
    }
    /// The names of the files in the folder, without the cache.
    pub fn names(&self) -> Vec<String> {
        let files = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> = files.map(|f| f.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.retain(|n| n != "cache");
        names.sort();
        names
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Prepares a process of a test: it can be interrupted, though the tests may run where SIGINT, SIGHUP and SIGQUIT are ignored, and it
/// ends with the thread that started it.
fn alone(command: &mut Command) {
    let prepare = || {
        // SAFETY: these calls may be made between fork and exec.
        unsafe {
            for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
                libc::signal(signal, libc::SIG_DFL);
            }
            #[cfg(target_os = "linux")]
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        }
        Ok(())
    };
    // SAFETY: as above.
    unsafe { command.pre_exec(prepare) };
}

/// Far longer than anything takes, on any machine, unless it hangs.
const DEADLINE: Duration = Duration::from_secs(300);

/// Runs a process to its end.
pub fn finish(command: &mut Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    Running::new(child).output()
}

/// Waits for something that another process does.
#[track_caller]
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process that does not outlive its test, and that nobody waits for forever.
pub struct Running {
    child: Child,
    lines: [Option<Receiver<Vec<u8>>>; 2],
    seen: [Vec<u8>; 2],
}

impl Running {
    /// Takes over the pipes of standard output and standard error that there are.
    pub fn new(mut child: Child) -> Running {
        let lines = [child.stdout.take().map(lines), child.stderr.take().map(lines)];
        Running { child, lines, seen: [Vec::new(), Vec::new()] }
    }

    /// Waits for a line of standard output (0) or standard error (1) that has a text in it.
    #[track_caller]
    pub fn says(&mut self, pipe: usize, text: &str) {
        let start = Instant::now();
        while !self.seen(pipe).contains(text) {
            let left = DEADLINE.saturating_sub(start.elapsed());
            match self.lines[pipe].as_ref().expect("a pipe").recv_timeout(left) {
                Ok(line) => self.seen[pipe].extend(line),
                Err(why) => panic!("waiting for {text:?}: {why}; it said {:?}", [self.seen(0), self.seen(1)]),
            }
        }
    }

    fn seen(&self, pipe: usize) -> String {
        String::from_utf8_lossy(&self.seen[pipe]).into_owned()
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&mut self) {
        self.signal(libc::SIGINT);
    }

    #[track_caller]
    pub fn signal(&mut self, signal: i32) {
        assert!(self.child.try_wait().unwrap().is_none(), "it ended by itself: {:?}", [self.seen(0), self.seen(1)]);
        // SAFETY: the process was not waited for, so its number is its own.
        assert_eq!(unsafe { libc::kill(self.child.id() as libc::pid_t, signal) }, 0);
    }

    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        until("the process ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    #[track_caller]
    pub fn output(mut self) -> Output {
        let status = self.wait();
        for (seen, lines) in self.seen.iter_mut().zip(&self.lines) {
            seen.extend(lines.iter().flatten().flatten());
        }
        let [stdout, stderr] = std::mem::take(&mut self.seen);
        Output { status, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of a pipe, as they come.
fn lines(pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, lines) = channel();
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            if send.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    lines
}

pub fn out(o: &Output) -> String {
    String::from_utf8(o.stdout.clone()).unwrap()
}
pub fn err(o: &Output) -> String {
    String::from_utf8(o.stderr.clone()).unwrap()
}
#[track_caller]
pub fn expect(o: &Output, code: i32, needle: &str) {
    assert_eq!(o.status.code(), Some(code), "stdout: {}\nstderr: {}", out(o), err(o));
    assert!(err(o).contains(needle), "no {needle:?} in: {}", err(o));
}
