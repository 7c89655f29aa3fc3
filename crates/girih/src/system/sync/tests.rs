use super::*;
use crate::error::Error;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Forks; the child ends with the result of `child`. Fails when the child does not end.
fn in_fork(child: impl FnOnce() -> bool) {
    // SAFETY: the child calls the tests' functions below, and `_exit`.
    let number = unsafe { libc::fork() };
    assert!(number >= 0, "no fork: {}", std::io::Error::last_os_error());
    if number == 0 {
        let code = if child() { 0 } else { 1 };
        // SAFETY: may be called at any time.
        unsafe { libc::_exit(code) };
    }
    let (mut status, start) = (0, std::time::Instant::now());
    loop {
        // SAFETY: waits for the child made above, into a local.
        if unsafe { libc::waitpid(number, &mut status, libc::WNOHANG) } == number {
            break;
        }
        if start.elapsed().as_secs() > 300 {
            // SAFETY: the child was not waited for, so its number is its own.
            unsafe { libc::kill(number, libc::SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(status, 0);
}

#[test]
fn a_fork_finds_brief_locks_free_and_their_data_whole() {
    let (pair, end) = (Arc::new(Brief::new((0u64, 0u64))), Arc::new(AtomicBool::new(false)));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (pair, end) = (pair.clone(), end.clone());
            std::thread::spawn(move || {
                while !end.load(Ordering::Relaxed) {
                    let mut pair = pair.lock();
                    pair.0 += 1;
                    std::hint::black_box(&mut *pair);
                    pair.1 += 1;
                }
            })
        })
        .collect();
    for _ in 0..200 {
        let pair = pair.clone();
        in_fork(move || {
            let pair = pair.lock();
            pair.0 == pair.1
        });
    }
    end.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|t| t.join().unwrap());
}

#[test]
fn a_turn_of_another_thread_ends_with_a_fork_and_its_data_are_made_anew() {
    let data: Arc<Turned<Vec<u32>>> = Arc::default();
    let (taken, go) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut mine = data.take().unwrap();
            mine.push(1);
            taken.wait();
            go.wait();
        });
        taken.wait();
        for _ in 0..20 {
            in_fork(|| data.take().is_ok_and(|d| d.is_empty()) && data.take().is_ok_and(|d| d.is_empty()));
        }
        go.wait();
        assert_eq!(*data.take().unwrap(), [1]);
    });
}

#[test]
fn turns_are_taken_one_at_a_time_and_not_twice_by_one_thread() {
    let (turn, inside) = (Turn::new(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let _mine = turn.take().unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    assert_eq!(turn.take().unwrap_err(), Denied::Mine);
                    inside.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
    });
}

#[test]
fn a_value_is_built_once() {
    let (built, count) = (Built::default(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let make = || {
                    count.fetch_add(1, Ordering::SeqCst);
                    Ok(7)
                };
                assert_eq!(built.get_or_make(make).unwrap(), 7);
            });
        }
    });
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let failing: Built<u32> = Built::default();
    assert!(failing.get_or_make(|| Err(Error::Interrupted)).is_err());
    assert_eq!(failing.get_or_make(|| Ok(1)).unwrap(), 1);
}

#[test]
fn a_lock_on_a_file_ends_with_its_value_though_a_child_lives() {
    let path = crate::system::files::temporary_beside(&std::env::temp_dir().join("girih-sync-test"));
    let open = || File::options().create(true).truncate(false).write(true).open(&path).unwrap();
    let lock = FileLock::take(open()).unwrap();
    // A child forked by another thread than the one that holds the lock waits for it, not for itself.
    let forked = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let (path, forked) = (&path, &forked);
        scope.spawn(move || {
            let file = File::options().write(true).open(path).unwrap();
            // SAFETY: the child waits for a lock and ends.
            let number = unsafe { libc::fork() };
            assert!(number >= 0, "no fork: {}", std::io::Error::last_os_error());
            if number == 0 {
                let code = i32::from(FileLock::take(file).is_err());
                // SAFETY: may be called at any time.
                unsafe { libc::_exit(code) };
            }
            forked.wait();
            let mut status = -1;
            // SAFETY: waits for the child made above, into a local.
            unsafe { libc::waitpid(number, &mut status, 0) };
            assert_eq!(status, 0);
        });
        forked.wait();
        drop(lock);
    });
    std::fs::remove_file(&path).unwrap();
}
