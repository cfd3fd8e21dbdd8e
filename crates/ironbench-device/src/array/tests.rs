use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::*;
use crate::replay::{SyntheticLoad, run_synthetic};

type Log = Arc<Mutex<Vec<(usize, Op, u64, u32)>>>;

/// A device that takes a microsecond per I/O and records its requests.
struct Noting {
    index: usize,
    capacity: u64,
    log: Log,
}

impl Device for Noting {
    fn submit(&mut self, now: u64, op: Op, offset: u64, length: u32) -> u64 {
        assert!(op == Op::Flush || offset + u64::from(length) <= self.capacity);
        self.log.lock().unwrap().push((self.index, op, offset, length));
        now + 1000
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }
}

const CHUNK: u64 = 16 << 10;

fn members(count: usize) -> (Members, Log) {
    let log = Log::default();
    let one = |index| Box::new(Noting { index, capacity: 1 << 20, log: log.clone() }) as Box<dyn Device>;
    ((0..count).map(one).collect(), log)
}

/// Counts how often an operation accessed each byte of each member.
fn touched(log: &Log, wanted: Op) -> std::collections::BTreeMap<(usize, u64), u32> {
    let mut found = std::collections::BTreeMap::new();
    for (index, op, offset, length) in log.lock().unwrap().iter() {
        if *op == wanted {
            (*offset..offset + u64::from(*length))
                .step_by(512)
                .for_each(|at| *found.entry((*index, at)).or_insert(0) += 1);
        }
    }
    found
}

proptest! {
    #[test]
    fn stripes_touch_every_byte_once(first in 0u64..2000, sectors in 1u32..600, count in 1usize..7, write: bool) {
        let (members, log) = members(count);
        let mut stripe = Stripe::new(members, CHUNK);
        let (offset, length) = (first * 512 % (stripe.capacity() - 600 * 512), sectors * 512);
        let op = if write { Op::Write } else { Op::Read };
        stripe.submit(0, op, offset, length);
        let touched = touched(&log, op);
        prop_assert_eq!(touched.len() as u32, sectors);
        prop_assert!(touched.values().all(|times| *times == 1));
        // Each member gets at most one I/O, because the chunks on it are adjacent.
        prop_assert!(log.lock().unwrap().len() <= count);
    }

    #[test]
    fn different_bytes_never_share_a_place(a in 0u64..4000, b in 0u64..4000, count in 3usize..7) {
        prop_assume!(a != b);
        for parity in [false, true] {
            let offsets: Vec<_> = [a, b].into_iter().map(|sector| {
                let (members, log) = members(count);
                if parity {
                    Parity::new(members, CHUNK).submit(0, Op::Read, sector * 512, 512);
                } else {
                    Stripe::new(members, CHUNK).submit(0, Op::Read, sector * 512, 512);
                }
                let (member, _, at, _) = log.lock().unwrap()[0];
                (member, at)
            }).collect();
            prop_assert_ne!(offsets[0], offsets[1]);
        }
    }

    #[test]
    fn mirrors_write_everywhere_and_read_once(first in 0u64..1000, sectors in 1u32..600, count in 2usize..5) {
        let (members, log) = members(count);
        let mut mirror = Mirror::new(members);
        mirror.submit(0, Op::Write, first * 512, sectors * 512);
        prop_assert_eq!(touched(&log, Op::Write).len(), sectors as usize * count);
        mirror.submit(0, Op::Read, first * 512, sectors * 512);
        prop_assert_eq!(touched(&log, Op::Read).len(), sectors as usize);
    }

    #[test]
    fn parity_writes_each_byte_once_and_its_parity(first in 0u64..2000, sectors in 1u32..600, count in 3usize..7) {
        let (members, log) = members(count);
        let mut parity = Parity::new(members, CHUNK);
        let offset = first * 512;
        let done = parity.submit(0, Op::Write, offset, sectors * 512);
        let written = touched(&log, Op::Write);
        prop_assert!(written.values().all(|times| *times == 1));
        let width = (count as u64 - 1) * CHUNK;
        let rows = (offset + u64::from(sectors) * 512 - 1) / width - offset / width + 1;
        let spare = written.len() as u64 - u64::from(sectors);
        prop_assert!(spare >= 1 && spare <= rows * (CHUNK / 512), "{} of parity in {} rows", spare, rows);
        prop_assert!(done == 1000 || done == 2000);
        // A full row requires no reads.
        let whole = offset % width == 0 && u64::from(sectors) * 512 % width == 0;
        prop_assert_eq!(touched(&log, Op::Read).is_empty(), whole);
    }
}

#[test]
fn a_full_row_is_written_without_reading_and_a_small_write_reads_two() {
    let (devices, log) = members(4);
    let mut parity = Parity::new(devices, CHUNK);
    parity.submit(0, Op::Write, 3 * CHUNK, 3 * CHUNK as u32);
    assert_eq!(log.lock().unwrap().iter().filter(|io| io.1 == Op::Read).count(), 0);
    parity.submit(0, Op::Write, 0, 4096);
    assert_eq!(log.lock().unwrap().iter().filter(|io| io.1 == Op::Read).count(), 2);
}

/// A device that serves one I/O after the other, each in a millisecond. The device asserts that I/Os come in order of
/// arrival.
#[derive(Default)]
struct Serial {
    free: u64,
    latest: u64,
}

const SERVICE: u64 = 1_000_000;

impl Device for Serial {
    fn submit(&mut self, now: u64, _op: Op, _offset: u64, _length: u32) -> u64 {
        assert!(now >= self.latest, "{now} after {}", self.latest);
        self.latest = now;
        self.free = self.free.max(now) + SERVICE;
        self.free
    }

    fn capacity(&self) -> u64 {
        1 << 30
    }
}

/// The time of an event. If the reads of a write complete at that time, the event also contains the two members of the
/// write.
type Event = (u64, Option<(usize, usize)>);

/// Simulates small writes on a RAID 5 of serial members, event by event, with `depth` writes in flight. A write is
/// submitted to the members when its reads are complete. Returns the number of writes per second.
fn simulated_small_writes(members: usize, depth: u32, count: u64) -> f64 {
    let mut random = pgbench_script::Random::new(1);
    let mut devices: Vec<Serial> = (0..members).map(|_| Serial::default()).collect();
    let mut due: BinaryHeap<Reverse<Event>> = (0..depth).map(|_| Reverse((0, None))).collect();
    let (mut begun, mut end) = (0, 0);
    while let Some(Reverse((now, ready))) = due.pop() {
        let mut both = |(data, parity): (usize, usize)| {
            [data, parity].map(|member| devices[member].submit(now, Op::Write, 0, 4096)).into_iter().max().unwrap()
        };
        if let Some(offsets) = ready {
            end = both(offsets);
            due.push(Reverse((end, None)));
        } else if begun < count {
            begun += 1;
            let data = random.up_to(members as u64 - 1) as usize;
            let other = (data + 1 + random.up_to(members as u64 - 2) as usize) % members;
            due.push(Reverse((both((data, other)), Some((data, other)))));
        }
    }
    count as f64 / (end as f64 / 1e9)
}

#[test]
fn small_writes_to_raid_5_are_within_a_tenth_of_a_simulation_of_every_event() {
    for members in [4, 5, 8] {
        for depth in [1, 2, 4, 8, 16, 32, 64] {
            let devices: Members = (0..members).map(|_| Box::new(Serial::default()) as Box<dyn Device>).collect();
            let load = SyntheticLoad { reads: 0.0, depth, count: 20_000, warm_up: 0, ..SyntheticLoad::default() };
            let found = run_synthetic(&mut Parity::new(devices, CHUNK), &load).iops();
            let truth = simulated_small_writes(members, depth, 20_000);
            assert!((found / truth - 1.0).abs() < 0.11, "{members} members, depth {depth}: {found:.0} for {truth:.0}");
        }
    }
}

#[test]
fn a_flush_reaches_the_devices_behind_a_controller_after_what_it_has_not_passed_on() {
    let parameters = crate::parameters::ControllerParameters {
        rate: 1e6,
        iops: 100.0,
        latency: 0.0,
        cache: 0.0,
        write_cache: false,
    };
    let mut behind = SharedController::new(&parameters, Box::new(Serial::default()), false);
    let written = (0..10).map(|number| behind.submit(0, Op::Write, number << 20, 4096)).max().unwrap();
    assert!(behind.submit(1, Op::Flush, 0, 0) >= written);
}

#[test]
fn a_stream_of_reads_stays_on_one_mirror_and_others_are_shared() {
    let (devices, log) = members(2);
    let mut mirror = Mirror::new(devices);
    for i in 0..10u64 {
        mirror.submit(i * 2000, Op::Read, i * 4096, 4096);
    }
    let first = log.lock().unwrap()[0].0;
    assert!(log.lock().unwrap().iter().all(|io| io.0 == first));
    log.lock().unwrap().clear();
    for i in 0..100u64 {
        mirror.submit(1_000_000, Op::Read, i * 7919 % 200 * 4096, 4096);
    }
    let on_first = log.lock().unwrap().iter().filter(|io| io.0 == 0).count();
    assert!((40..=60).contains(&on_first), "{on_first}");
}

#[test]
fn a_flush_reaches_every_member_unless_a_battery_keeps_what_was_written() {
    let (devices, log) = members(3);
    Stripe::new(devices, CHUNK).submit(0, Op::Flush, 0, 0);
    assert_eq!(log.lock().unwrap().len(), 3);
    let parameters = crate::parameters::ControllerParameters {
        rate: 1e9,
        iops: 1e6,
        latency: 1e-6,
        cache: 65536.0,
        write_cache: true,
    };
    let (mut devices, log) = members(1);
    let mut behind = SharedController::new(&parameters, devices.remove(0), true);
    assert!(behind.submit(0, Op::Flush, 0, 0) <= 1000 && log.lock().unwrap().is_empty());
}

#[test]
fn unlike_members_cost_the_host_what_each_of_them_costs() {
    struct Driven(u64);
    impl Device for Driven {
        fn submit(&mut self, now: u64, _op: Op, _offset: u64, _length: u32) -> u64 {
            now
        }
        fn capacity(&self) -> u64 {
            1 << 30
        }
        fn host_cpu(&self, _op: Op, _length: u32) -> u64 {
            self.0
        }
    }
    let unlike = || -> super::Members { vec![Box::new(Driven(1000)), Box::new(Driven(0)), Box::new(Driven(500))] };
    let striped = Stripe::new(unlike(), CHUNK);
    let costs = [(Op::Read, 4096), (Op::Write, 3 * CHUNK as u32), (Op::Flush, 0)];
    assert_eq!(costs.map(|(op, length)| striped.host_cpu(op, length)), [500, 1500, 1500]);
    let mirror = Mirror::new(unlike());
    assert_eq!(costs.map(|(op, length)| mirror.host_cpu(op, length)), [500, 1500, 1500]);
    assert_eq!(Parity::new(unlike(), CHUNK).host_cpu(Op::Write, 4096), 2000);
}
