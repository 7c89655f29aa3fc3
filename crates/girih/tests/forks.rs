//! Children of a process whose other threads run models: they run them too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use girih::model::{Model, Tensor};
use girih::{CachePolicy, Options};
use girih_compiler::graph::Elem;

#[test]
fn a_child_runs_the_model_that_another_thread_was_running() {
    let inputs = [("x".to_string(), Elem::F32, vec![64, 64])];
    let model = Model::from_expression("torch.relu(x @ x + 1).sum(1)", &inputs).unwrap();
    let options = Options { threads: Some(3), cache: CachePolicy::Off, ..Options::default() };
    let model = model.with_options(options);
    let x = Tensor::zeroed(Elem::F32, &[64, 64]).unwrap();
    // Each sum is of 64 ones.
    let right = || {
        let out = model.run(&[("x", &x)]).unwrap();
        let bytes = out[0].1.buffer().bytes();
        bytes.len() == 256 && bytes.chunks(4).all(|b| f32::from_le_bytes(b.try_into().unwrap()) == 64.0)
    };
    assert!(right());
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (end, right) = (&end, &right);
        for _ in 0..2 {
            scope.spawn(move || {
                while !end.load(Ordering::Relaxed) {
                    assert!(right());
                }
            });
        }
        let hung = (0..200).any(|_| !ends_well(right));
        end.store(true, Ordering::Relaxed);
        assert!(!hung);
    });
}

/// Returns true if a child that calls `right` ends, and `right` returned true in it.
fn ends_well(right: &dyn Fn() -> bool) -> bool {
    // SAFETY: the child runs a model, which forks are provided for, and ends.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no fork: {}", std::io::Error::last_os_error());
    if child == 0 {
        let code = if right() && right() { 0 } else { 1 };
        // SAFETY: may be called at any time.
        unsafe { libc::_exit(code) };
    }
    let (mut status, start) = (-1, Instant::now());
    // SAFETY: waits for the child made above, into a local.
    while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
        if start.elapsed() > Duration::from_secs(120) {
            // SAFETY: the child was not waited for, so its number is its own.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    status == 0
}
