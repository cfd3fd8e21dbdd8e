use super::super::clock::MILLISECOND;
use super::*;
use proptest::prelude::*;
use std::sync::mpsc::channel;

fn run(window: Window, ends: &[u64], close: Option<u64>) -> (Recording, Vec<Slice>) {
    run_of(window, &ends.iter().map(|&end| (end, 50)).collect::<Vec<_>>(), close)
}

/// Records transactions. Each item of `all` is the end and the duration of a transaction.
fn run_of(window: Window, all: &[(u64, u64)], close: Option<u64>) -> (Recording, Vec<Slice>) {
    let (sender, receiver) = channel();
    let live = Live::default();
    let mut recorder = Recorder::new(0, 1, window, true, sender, &live);
    for &(end, took) in all {
        if end >= recorder.boundary() {
            recorder.pass_time(end);
        }
        recorder.complete(0, end.saturating_sub(took + 50), end.saturating_sub(took), end);
    }
    match close {
        Some(instant) => assert!(recorder.close(instant)),
        None => recorder.pass_time(window.end),
    }
    (recorder.finish(), receiver.try_iter().collect())
}

proptest! {
    #[test]
    fn timeline_seconds_histograms_and_counts_agree(
        mut ends in prop::collection::vec(0u64..8 * SECOND, 0..200), width in 1u64..4 * SECOND, warmup in 0u64..3 * SECOND
    ) {
        ends.sort_unstable();
        let window = Window { start: 1000 + warmup, end: 1000 + warmup + width };
        let ends: Vec<u64> = ends.into_iter().map(|e| e + 1000).collect();
        let inside = ends.iter().filter(|&&e| e >= window.start && e < window.end).count() as u64;
        let (recording, slices) = run(window, &ends, None);
        prop_assert_eq!(recording.measured.total().transactions, inside);
        prop_assert_eq!(slices.iter().map(|slice| slice.first_committed).sum::<u64>(), inside);
        prop_assert_eq!(recording.total.total().transactions, ends.len() as u64);
        prop_assert_eq!(recording.timeline.iter().map(|b| u64::from(b.transactions)).sum::<u64>(), inside);
        prop_assert_eq!(recording.service[0].count(), inside);
        let due_inside = ends.iter().filter(|&&end| (window.start..window.end).contains(&(end - 100))).count() as u64;
        prop_assert_eq!(recording.response[0].count(), due_inside);
        prop_assert_eq!(slices.iter().map(|s| s.response.count()).sum::<u64>(), inside);
        prop_assert_eq!(recording.elapsed_ns, width);
        prop_assert_eq!(recording.timeline.len() as u64, width.div_ceil(BUCKET_NS));
        prop_assert_eq!(slices.len() as u64, width.div_ceil(SECOND));
    }
}

#[test]
fn each_second_counts_its_committed_transactions_of_the_first_kind() {
    let (sender, receiver) = channel();
    let live = Live::default();
    let window = Window { start: 0, end: 2 * SECOND };
    let mut recorder = Recorder::new(0, 2, window, true, sender, &live);
    let half = SECOND / 2;
    for (kind, end, rolled_back) in
        [(0, half, 0), (1, half + 1, 0), (0, half + 2, 1), (0, SECOND + half, 0), (0, SECOND + half + 1, 0)]
    {
        if end >= recorder.boundary() {
            recorder.pass_time(end);
        }
        recorder.tally.kinds[kind].rolled_back += rolled_back;
        recorder.complete(kind, end - 100, end - 50, end);
    }
    recorder.pass_time(window.end);
    recorder.finish();
    let counts: Vec<u64> = receiver.try_iter().map(|slice| slice.first_committed).collect();
    assert_eq!(counts, [1, 2]);
}

#[test]
fn a_trial_stopped_while_warming_up_has_an_empty_window() {
    let window = Window { start: 10 * SECOND, end: 20 * SECOND };
    let (recording, slices) = run(window, &[SECOND, 2 * SECOND], Some(3 * SECOND));
    assert_eq!((recording.elapsed_ns, recording.measured.total().transactions), (0, 0));
    assert_eq!(recording.total.total().transactions, 2);
    assert!(slices.is_empty() && recording.timeline.is_empty());
}

proptest! {
    #[test]
    fn a_window_in_turns_measures_what_one_of_the_slices_that_are_not_forgotten_without_gaps_would(
        mut all in prop::collection::vec((0u64..2 * SECOND, 0u64..SECOND), 0..200),
        slices in prop::collection::vec((1u64..SECOND, 0u64..SECOND, any::<bool>()), 1..6)
    ) {
        let kept: Vec<u64> = slices.iter().filter(|slice| !slice.2).map(|(width, ..)| *width).collect();
        let whole: u64 = kept.iter().sum();
        prop_assume!(whole > 0);
        all.sort_unstable();
        all.retain(|(end, _)| *end < whole);
        // Durations are shortened, so that each transaction starts in the slice in which it ends.
        for (end, took) in &mut all {
            let starts = kept.iter().scan(0, |next, width| Some(std::mem::replace(next, *next + width)));
            let start = starts.take_while(|start| start <= end).last().unwrap();
            *took = (*took).min(*end - start);
        }
        let without_gaps: Vec<_> = all.iter().map(|(end, took)| (end + 1000, *took)).collect();
        let (plain, _) = run_of(Window { start: 1000, end: 1000 + whole }, &without_gaps, None);

        let (sender, receiver) = channel();
        let live = Live::default();
        let mut recorder = Recorder::new(0, 1, Window { start: NEVER, end: NEVER }, true, sender, &live);
        recorder.count_clients(1);
        let (mut now, mut before, mut left) = (1000, 0, all.as_slice());
        let (mut turned, mut forgotten) = (0, 0);
        for &(width, gap, forget) in &slices {
            recorder.pass_time(now);
            recorder.turn(now, now + width);
            if forget {
                for at in [now, now + width / 2, now + width - 1] {
                    if at >= recorder.boundary() {
                        recorder.pass_time(at);
                    }
                    recorder.complete(0, at.saturating_sub(900), at, at);
                    recorder.count_for(0, at, at);
                }
                recorder.pass_time(now + width);
                prop_assert_eq!(recorder.end_turn().0.transactions, 3);
                recorder.discard_turn();
                forgotten += 3;
                now += width + gap;
                continue;
            }
            let here = left.iter().take_while(|(end, _)| *end < before + width).count();
            for (end, took) in &left[..here] {
                let at = now + end - before;
                if at >= recorder.boundary() {
                    recorder.pass_time(at);
                }
                recorder.complete(0, at.saturating_sub(took + 50), at - took, at);
                recorder.count_for(0, at - took, at);
            }
            recorder.pass_time(now + width);
            prop_assert!(recorder.is_resting());
            recorder.complete(0, now + width, now + width, now + width); // while its clients start to rest
            turned += recorder.end_turn().0.transactions;
            (before, left, now) = (before + width, &left[here..], now + width + gap);
        }
        prop_assert!(recorder.close(now + 7));
        let recording = recorder.finish();
        let inside = all.len() as u64;
        prop_assert_eq!(turned, inside);
        prop_assert_eq!(recording.measured.total().transactions, inside);
        prop_assert_eq!(recording.total.total().transactions, inside + kept.len() as u64 + forgotten);
        let busy_ns = all.iter().map(|(_, took)| took).sum();
        prop_assert_eq!(recording.busy_ns, Some(busy_ns));
        prop_assert_eq!(recording.clients, [ClientWork { transactions: inside, busy_ns }]);
        prop_assert_eq!(recording.elapsed_ns, whole);
        prop_assert_eq!(recording.timeline, plain.timeline);
        prop_assert_eq!(recording.service[0].buckets(), plain.service[0].buckets());
        prop_assert_eq!(recording.response[0].count(), inside);
        prop_assert_eq!(receiver.try_iter().count() as u64, whole.div_ceil(SECOND));
    }
}

#[test]
fn an_early_stop_keeps_what_was_measured() {
    let window = Window { start: SECOND, end: 20 * SECOND };
    let (recording, slices) = run(window, &[SECOND, 2 * SECOND], Some(2 * SECOND + 30 * MILLISECOND));
    assert_eq!(recording.elapsed_ns, SECOND + 30 * MILLISECOND);
    assert_eq!((recording.timeline.len(), slices.len()), (11, 2));
}

#[test]
fn response_times_of_a_closed_loop_cover_what_began_in_the_window_and_service_times_what_ended_there() {
    let (sender, _receiver) = channel();
    let live = Live::default();
    let window = Window { start: 1000, end: 2000 };
    let mut recorder = Recorder::new(0, 1, window, false, sender, &live);
    recorder.pass_time(1000);
    recorder.complete(0, 700, 700, 1100);
    recorder.complete(0, 1100, 1100, 1150);
    recorder.pass_time(2000);
    recorder.in_flight(1900, 1900);
    recorder.in_flight(1200, 1200);
    recorder.in_flight(600, 600);
    recorder.complete(0, 1900, 1900, 2500);
    recorder.complete(0, 2500, 2500, 2600);
    recorder.censored(1200, 3000);
    // This transaction was in progress during the whole window.
    recorder.censored(600, 3000);
    let recording = recorder.finish();
    let times = |histogram: &Histogram| -> Vec<u64> {
        let buckets = histogram.buckets();
        buckets.iter().flat_map(|(ns, _, n)| vec![(ns * 1e9).round() as u64; *n as usize]).collect()
    };
    assert_eq!(times(&recording.response[0]), [50, 600]);
    assert_eq!(times(&recording.service[0]), [50, 400]);
    assert_eq!(times(&recording.censored), [1800, 2400]);
    assert_eq!(times(&recording.in_flight), [100, 800, 1000]);
    assert_eq!((recording.longest_wait_ns, recording.carried_ns), (1400, 300));
}

proptest! {
    #[test]
    fn in_turns_exactly_the_transactions_that_begin_in_a_slice_are_measured_whenever_they_end(
        turns in prop::collection::vec((1u64..SECOND, prop::collection::vec((1u64..2 * SECOND, any::<bool>()), 0..12)), 1..5)
    ) {
        let (sender, receiver) = channel();
        let live = Live::default();
        let mut recorder = Recorder::new(0, 1, Window { start: NEVER, end: NEVER }, false, sender, &live);
        let (mut now, mut well, mut failed, mut busy, mut all) = (1000, 0, 0, 0, 0);
        for (width, lengths) in &turns {
            let (from, until) = (now + SECOND / 2, now + SECOND / 2 + width);
            recorder.turn(from, until);
            let mut here = (0, 0);
            for &(length, ends_well) in lengths {
                let begun = now;
                now += length;
                if now >= recorder.boundary() {
                    recorder.pass_time(now);
                }
                let inside = begun >= from && begun < until;
                busy += if inside { length } else { 0 };
                if ends_well {
                    recorder.complete(0, begun, begun, now);
                    here.0 += u64::from(inside);
                    all += 1;
                } else {
                    recorder.tally.kinds[0].failed += 1;
                    recorder.fail(0, begun, now);
                    here.1 += u64::from(inside);
                }
            }
            now = now.max(until);
            recorder.pass_time(now);
            let (counts, _) = recorder.end_turn();
            prop_assert_eq!((counts.transactions, counts.failed), here);
            (well, failed) = (well + here.0, failed + here.1);
        }
        recorder.close(now + 7);
        let recording = recorder.finish();
        let measured = recording.measured.total();
        prop_assert_eq!((measured.transactions, measured.failed), (well, failed));
        prop_assert_eq!(recording.busy_ns, Some(busy));
        prop_assert_eq!(recording.response[0].count(), well);
        prop_assert_eq!(recording.timeline.iter().map(|b| u64::from(b.transactions)).sum::<u64>(), well);
        prop_assert_eq!(receiver.try_iter().map(|slice| slice.response.count()).sum::<u64>(), well);
        prop_assert_eq!(recording.total.total().transactions, all);
        prop_assert_eq!(recording.carried_ns, 0);
    }
}
