use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Mutex;

use super::sampling_clock::{SamplingClock, Wake};
use super::sampling_loop::ReadError;
use super::*;
use crate::testing::Folder;

/// A clock for tests, which advances only while the loop waits, and by a fixed time whenever it is read.
struct FakeClock {
    now_ns: Cell<i64>,
    /// Time by which the clock advances when it is read. A sample reads the clock before and after.
    reading_ns: i64,
    commands: VecDeque<(i64, Command)>,
}

impl SamplingClock for FakeClock {
    fn now_ns(&self) -> i64 {
        let now = self.now_ns.get();
        self.now_ns.set(now + self.reading_ns);
        now
    }

    fn wait_until(&mut self, due_ns: i64) -> Wake {
        let now = self.now_ns.get();
        match self.commands.front() {
            Some(&(at, command)) if at <= due_ns.max(now) => {
                self.commands.pop_front();
                self.now_ns.set(now.max(at));
                Wake::Command(command)
            }
            _ => {
                self.now_ns.set(now.max(due_ns));
                Wake::Due
            }
        }
    }

    fn cpu_ns(&self) -> i64 {
        self.now_ns.get()
    }
}

struct Scripted(VecDeque<std::result::Result<&'static str, ReadError>>);

impl Reader for Scripted {
    fn read(&mut self, out: &mut Vec<u8>) -> std::result::Result<(), ReadError> {
        out.extend_from_slice(self.0.pop_front().unwrap_or(Ok("same"))?.as_bytes());
        Ok(())
    }
}

fn source(name: &str, kind: &str, target: &str, period_s: f64) -> ObserverSource {
    ObserverSource { name: name.into(), kind: kind.into(), target: target.into(), period_s }
}

fn sources(name: &str, period_s: f64, answers: Vec<std::result::Result<&'static str, ReadError>>) -> SampledSource {
    SampledSource::new(&source(name, "file", "/x", period_s), Box::new(Scripted(answers.into())), 4_000)
}

fn sampling_loop(
    mut sources: Vec<SampledSource>,
    began_ns: i64,
    reading_ns: i64,
    commands: &[(i64, Command)],
) -> Collected {
    let collected = Mutex::new(Collected::of(&sources));
    let commands = commands.iter().copied().collect();
    sampling_loop::run(
        &mut sources,
        began_ns,
        &mut FakeClock { now_ns: Cell::new(began_ns), reading_ns, commands },
        &collected,
    );
    collected.into_inner().unwrap()
}

const S: i64 = 1_000_000_000;

fn times(collected: Collected) -> Vec<Vec<f64>> {
    let samples = collected.series.into_iter().map(|series| series.into_samples().1);
    samples.map(|samples| samples.into_iter().map(|(t_s, _)| t_s).collect()).collect()
}

#[test]
fn every_source_has_a_sample_at_the_start_of_the_window_and_one_at_the_mark() {
    let sources = vec![sources("a", 0.5, vec![]), sources("b", 2.0, vec![])];
    let commands = [(5 * S / 4, Command::Mark), (5 * S / 4, Command::Stop)];
    let times = times(sampling_loop(sources, -S - 1, 0, &commands));
    assert_eq!(times[0], [-1.0, -0.5, 0.0, 0.5, 1.0, 1.25]);
    assert_eq!(times[1], [0.0, 1.25]);
}

#[test]
fn a_slow_reading_costs_samples_and_never_the_period() {
    // The clock advances by 0.3 s whenever it is read, so a round of the loop takes longer than the period of 1 s.
    let collected = sampling_loop(vec![sources("slow", 1.0, vec![])], 0, 3 * S / 10, &[(20 * S, Command::Stop)]);
    let missed = collected.series[0].missed;
    let times = times(collected);
    assert!(missed > 0);
    assert!(times[0].windows(2).all(|pair| pair[1] - pair[0] < 2.1));
    assert_eq!(times[0].len() as u64 + missed, 20);
}

#[test]
fn a_full_source_doubles_its_period_and_counts_what_it_dropped() {
    let collected = sampling_loop(vec![sources("full", 1.0, vec![])], 0, 0, &[(1_000 * S, Command::Stop)]);
    let dropped = collected.series[0].dropped;
    let times = times(collected).remove(0);
    let steps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps[0] > 1.0 && steps.iter().all(|step| *step == steps[0]), "an even grid remains: {steps:?}");
    assert_eq!(times[0], 0.0);
    assert!(*times.last().unwrap() > 900.0, "the whole window is covered");
    assert!(dropped > 0 && times.len() < 100);
}

#[test]
fn trouble_is_noted_once_per_spell_and_the_others_go_on() {
    let gone = || Err(ReadError::Temporary("gone".into()));
    let answers = vec![Ok("1"), gone(), gone(), Ok("2"), gone(), Err(ReadError::Permanent("dead".into())), Ok("never")];
    let collected = sampling_loop(
        vec![sources("ill", 1.0, answers), sources("well", 1.0, vec![])],
        0,
        0,
        &[(9 * S + 1, Command::Stop)],
    );
    assert_eq!(collected.notes, ["ill at 1.0 s: gone", "ill at 4.0 s: gone"]);
    let times = times(collected);
    assert_eq!(times[0], [0.0, 3.0]);
    assert_eq!(times[1].len(), 10);
}

/// A reader that is too slow: the collected samples are taken before it returns.
struct Slow(Arc<Mutex<Collected>>);

impl Reader for Slow {
    fn read(&mut self, _out: &mut Vec<u8>) -> std::result::Result<(), ReadError> {
        std::mem::take(&mut *self.0.lock().unwrap());
        Ok(())
    }
}

#[test]
fn a_reading_that_comes_back_after_the_end_is_let_go() {
    let collected = Arc::default();
    let reader = Box::new(Slow(Arc::clone(&collected)));
    let mut sources = vec![SampledSource::new(&source("slow", "file", "/x", 1.0), reader, 4_000)];
    *collected.lock().unwrap() = Collected::of(&sources);
    let commands = [(3 * S, Command::Stop)].into();
    sampling_loop::run(&mut sources, 0, &mut FakeClock { now_ns: Cell::new(0), reading_ns: 0, commands }, &collected);
    assert!(collected.lock().unwrap().series.is_empty());
}

#[test]
fn the_loop_ends_by_itself_when_nothing_is_left_to_read() {
    let dead = vec![Err(ReadError::Permanent("dead".into()))];
    let collected = sampling_loop(vec![sources("only", 1.0, dead)], 0, 0, &[]);
    assert_eq!(collected.notes, ["only at 0.0 s: dead"]);
}

#[test]
fn cpu_counts_from_the_start_of_the_window() {
    let collected = sampling_loop(vec![sources("a", 1.0, vec![])], -3 * S, 0, &[(2 * S + 1, Command::Stop)]);
    assert_eq!(collected.cpu_s(), 2.0);
}

#[test]
fn a_live_sampler_reads_files_in_the_order_of_the_plan_and_ends() {
    let folder = Folder::new();
    folder.write("proc/stat", "cpu 1\n");
    let sources = [
        source("stat", "file", "/proc/stat", 0.001),
        source("gone", "file", "/proc/gone", 0.5),
        source("all", "file", "/proc/*", 3600.0),
    ];
    let sampler = Prepared::new_below(&folder.0, &sources, None).unwrap().start(Instant::now()).unwrap();
    sampler.mark();
    sampler.mark();
    let samples = sampler.stop();
    let names: Vec<&str> = samples.by_source.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["stat", "gone", "all"]);
    assert!(samples.by_source[0].1.len() >= 2);
    assert!(samples.by_source[1].1.is_empty());
    assert!(samples.by_source[2].1.iter().all(|(_, raw)| raw == b"==> /proc/stat\ncpu 1\n"));
    assert_eq!(samples.notes.len(), 1, "{:?}", samples.notes);
    assert!(samples.cpu_s >= 0.0 && samples.backend_pids.is_empty());
}

#[test]
fn a_window_that_begins_now_is_sampled_at_its_start_and_at_its_end_however_short() {
    let folder = Folder::new();
    folder.write("proc/stat", "cpu 1\n");
    let sources = [source("stat", "file", "/proc/stat", 3600.0)];
    let sampler = Prepared::new_below(&folder.0, &sources, None).unwrap().start(Instant::now()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    sampler.mark();
    let samples = sampler.stop();
    let times: Vec<f64> = samples.by_source[0].1.iter().map(|(at, _)| *at).collect();
    assert!(times.len() == 2 && times[0] < times[1], "{times:?}");
}

#[test]
fn sources_that_cannot_be_meant_are_refused_before_anything_starts() {
    for (wrong, cause) in [
        (source("x", "http", "/", 1.0), "unknown kind"),
        (source("x", "file", "/", 0.0), "a period of 0 s"),
        (source("x", "file", "/", f64::NAN), "a period of NaN s"),
        (source("x", "sql", "select 1", 1.0), "be sampled only on a server"),
        (source("x", "request", "checkpoint", 1.0), "be sampled only on a server"),
    ] {
        let error = Prepared::new(&[wrong], None).err().unwrap();
        assert_eq!(error.subject, "observer source x");
        assert!(error.cause.contains(cause), "{}", error.cause);
    }
}

/// A reader that counts how often it is read.
struct Asked(Arc<Mutex<u32>>);

impl Reader for Asked {
    fn read(&mut self, _out: &mut Vec<u8>) -> std::result::Result<(), ReadError> {
        *self.0.lock().unwrap() += 1;
        Ok(())
    }
}

#[test]
fn a_request_is_made_at_its_times_and_not_at_the_end_of_the_window() {
    let asked = Arc::new(Mutex::new(0));
    let reader = Box::new(Asked(Arc::clone(&asked)));
    let sources = vec![SampledSource::new(&source("checkpoints", "request", "x", 3600.0), reader, 4_000)];
    let (give_up, commits) = (Arc::default(), None);
    let group = Group { thread: "request-sql", source_indexes: vec![0], sources, give_up, commits, requests: true };
    let prepared = Prepared { groups: vec![group], notes: vec![], backend_pids: vec![] };
    let sampler = prepared.start(Instant::now() + Duration::from_millis(50)).unwrap();
    while *asked.lock().unwrap() == 0 {
        std::thread::yield_now();
    }
    sampler.mark();
    let samples = sampler.stop();
    assert_eq!(*asked.lock().unwrap(), 1);
    assert_eq!(samples.by_source[0].1.len(), 1);
    assert!(samples.notes.is_empty(), "{:?}", samples.notes);
}

#[test]
fn what_we_ended_ourselves_is_no_trouble() {
    let answers = vec![Err(ReadError::Temporary(String::new()))];
    let collected = sampling_loop(vec![sources("ended", 1.0, answers)], 0, 0, &[(1, Command::Stop)]);
    assert!(collected.notes.is_empty());
}
