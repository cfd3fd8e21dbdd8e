//! Tests of passes over real files in the temporary directory.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use super::testing::pass;
use super::{Io, Order, Pass, Progress, Sync, Until, run};
use ironbench_core::Kind;

/// Creates an unnamed file, which is deleted when its descriptor is closed.
fn file(bytes: u64) -> File {
    let file = File::options().read(true).write(true).custom_flags(libc::O_TMPFILE).open(std::env::temp_dir()).unwrap();
    file.set_len(bytes).unwrap();
    file
}

fn on(file: &File, changed: impl FnOnce(&mut Pass)) -> Pass {
    let mut pass = Pass { files: vec![file.as_raw_fd()], ..pass() };
    changed(&mut pass);
    pass
}

fn goes_on() -> impl FnMut() -> bool {
    || true
}

#[test]
fn every_way_of_io_counts_all_it_did() {
    for io in [Io::Auto, Io::Threads] {
        let file = file(1 << 20);
        let pass = on(&file, |pass| {
            pass.io = io;
            pass.order = Order::Sequential;
            pass.read_percent = 0;
            pass.until = Until::Bytes(2 << 20);
        });
        let outcome = run(&pass, &Progress::default(), &mut goes_on()).unwrap();
        assert_eq!((outcome.summary.reads, outcome.summary.writes), (0, 512), "{io:?}");
        assert_eq!(outcome.summary.bytes, 2 << 20);
        assert_eq!(outcome.summary.file_bytes, [2 << 20]);
        assert_eq!(outcome.buckets.iter().sum::<u64>(), 512);
        assert_eq!(outcome.writes.count(), 512);
        assert!(outcome.summary.elapsed_s > 0.0 && !outcome.summary.stopped);
    }
}

#[test]
fn a_pass_ends_with_its_bytes_or_its_seconds_whichever_comes_first() {
    let file = file(1 << 20);
    let until = |seconds, bytes| {
        let pass = on(&file, |pass| {
            pass.read_percent = 0;
            pass.sync_at_end = true;
            pass.small_pages = true;
            pass.threads = 2;
            pass.until = Until::FirstOf { seconds, bytes };
        });
        run(&pass, &Progress::default(), &mut goes_on()).unwrap().summary
    };
    assert_eq!(until(600.0, 2 << 20).bytes, 2 << 20);
    let timed = until(0.05, 1 << 50);
    assert!(timed.bytes > 0 && timed.elapsed_s >= 0.05);
}

#[test]
fn what_is_written_is_random_but_for_the_zeros_asked_for() {
    for (percent, low, high) in [(0, 0.0, 0.01), (60, 0.59, 0.62), (100, 1.0, 1.0)] {
        let file = file(1 << 20);
        let pass = on(&file, |pass| {
            pass.order = Order::Sequential;
            pass.read_percent = 0;
            pass.zero_percent = percent;
            pass.until = Until::Bytes(1 << 20);
        });
        run(&pass, &Progress::default(), &mut goes_on()).unwrap();
        let mut content = vec![1; 1 << 20];
        file.read_exact_at(&mut content, 0).unwrap();
        let zeros = content.iter().filter(|&&byte| byte == 0).count() as f64 / content.len() as f64;
        assert!((low..=high).contains(&zeros), "{percent} % asked for, {zeros} found");
    }
}

#[test]
fn a_mix_reads_and_writes() {
    let file = file(1 << 20);
    let pass = on(&file, |pass| pass.read_percent = 70);
    let outcome = run(&pass, &Progress::default(), &mut goes_on()).unwrap();
    let reads = outcome.summary.reads as f64 / (outcome.summary.reads + outcome.summary.writes) as f64;
    assert!((0.6..0.8).contains(&reads), "{reads}");
}

#[test]
fn syncs_follow_their_writes() {
    let file = file(1 << 20);
    for sync in [Sync::Fsync, Sync::Fdatasync] {
        let pass = on(&file, |pass| {
            (pass.sync, pass.depth, pass.read_percent) = (sync, 1, 0);
            pass.until = Until::Bytes(1 << 16);
        });
        assert_eq!(run(&pass, &Progress::default(), &mut goes_on()).unwrap().summary.writes, 16);
    }
}

#[test]
fn several_files_are_worked_on_at_once_and_counted_apart() {
    let files = [file(1 << 20), file(1 << 20)];
    let pass = Pass { files: files.iter().map(AsRawFd::as_raw_fd).collect(), threads: 2, ..pass() };
    let outcome = run(&pass, &Progress::default(), &mut goes_on()).unwrap();
    assert_eq!(outcome.summary.file_bytes.iter().sum::<u64>(), outcome.summary.bytes);
    assert!(outcome.summary.file_bytes.iter().all(|&bytes| bytes > 0));
}

#[test]
fn a_stop_ends_it_soon() {
    let file = file(1 << 20);
    let pass = on(&file, |pass| pass.until = Until::Seconds(600.0));
    let outcome = run(&pass, &Progress::default(), &mut || false).unwrap();
    assert!(outcome.summary.stopped);
    assert!(outcome.summary.elapsed_s < 60.0);
}

#[test]
fn an_io_that_fails_is_an_error_and_leaves_nothing_under_way() {
    for io in [Io::Auto, Io::Threads] {
        let file = file(0);
        let pass = on(&file, |pass| pass.io = io);
        let error = run(&pass, &Progress::default(), &mut goes_on()).unwrap_err();
        assert!(error.kind == Kind::Failure && error.cause.contains("0 bytes"), "{error}");
    }
}

#[test]
fn a_plan_that_makes_no_sense_is_refused() {
    let changes: [fn(&mut Pass); 6] = [
        |pass| pass.files.clear(),
        |pass| pass.block_bytes = 0,
        |pass| pass.file_bytes = 5000,
        |pass| pass.depth = 0,
        |pass| pass.until = Until::Seconds(f64::NAN),
        |pass| pass.sync = Sync::Fsync,
    ];
    for change in changes {
        let mut pass = pass();
        change(&mut pass);
        assert_eq!(run(&pass, &Progress::default(), &mut goes_on()).unwrap_err().kind, Kind::Input);
    }
}
