//! A folder, a cache and a few programs for tests that call the binary.
#![allow(dead_code)]

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

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

pub const SPINS: &str = r#"cuda_tile.module @m {
  entry @k(%flag: tile<ptr<i32>>) {
    %zero = constant <i32: 0> : tile<i32>
    loop {
      %v, %t = load_ptr_tko acquire device %flag : tile<ptr<i32>> -> tile<i32>, token
      %stop = cmpi not_equal %v, %zero, signed : tile<i32> -> tile<i1>
      if %stop { break }
    }
  }
}
"#;

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
        let mut c = Command::new(env!("CARGO_BIN_EXE_girih"));
        c.args(args).env("GIRIH_CACHE_DIR", self.0.join("cache")).stdin(Stdio::null());
        for name in ["GIRIH_DEVICE", "GIRIH_CC", "GIRIH_THREADS", "GIRIH_TARGET", "GIRIH_CHECK"] {
            c.env_remove(name);
        }
        c
    }
    pub fn girih(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that does not outlive its test.
pub struct Running(pub Option<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
        }
    }
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
