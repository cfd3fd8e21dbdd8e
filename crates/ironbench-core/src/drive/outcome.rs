//! The result of a trial, and its encoding for transfer between processes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::jobs::Jobs;
use super::kind::Kind;
use super::plan::Plan;
use super::summary::{self, Delays, Summary};
use super::thread_results::ThreadResults;
use crate::measure::seconds::{BUCKET_NS, Bucket};
use crate::measure::seconds::{MergeableSecond, Second, summed};
use crate::measure::{Histogram, clock};
use crate::{Error, Result};

/// Histogram of the time that the loop worked between two waits for the engine.
const LOOP_DELAY: &str = "loop_delay";
/// Histogram of the number of replies per wait (counts, not times).
const REPLIES_PER_WAIT: &str = "replies_per_wait";

/// A table: the values of each column, by the column's name.
pub type Columns = BTreeMap<String, Vec<f64>>;

#[derive(Debug, Clone)]
pub struct Outcome {
    pub summary: Summary,
    /// A table with a row for each 100 ms of the window. The columns are `t_s` (start of the row), `transactions`,
    /// `errors` (failed transactions) and `retries`. If clients wait for jobs, the column `unscheduled` contains the
    /// transactions of these clients. The last row is shorter if the window is not a multiple of 100 ms.
    pub timeline: Columns,
    /// A table with a row for each second of the window. In addition to the same columns, it has `response_mean_s`,
    /// `response_p50_s`, `response_p90_s`, `response_p95_s`, `response_p99_s` and `response_max_s`.
    pub seconds: Columns,
    pub histograms: BTreeMap<String, Histogram>,
    /// The samples of each observer, by its name. A sample consists of the seconds since the start of the window and
    /// the raw bytes.
    pub samples: BTreeMap<String, Vec<(f64, Vec<u8>)>>,
    /// Additional data for merging parts, or None if the drive was not a part.
    pub mergeable: Option<Mergeable>,
}

/// Additional data for merging parts, because percentiles cannot be merged.
#[derive(Debug, Clone)]
pub struct Mergeable {
    pub seconds: Vec<MergeableSecond>,
    pub lateness: Histogram,
}

impl Outcome {
    pub(super) fn new(
        plan: &Plan,
        jobs: Option<&dyn Jobs>,
        kinds: &[Kind],
        results: ThreadResults,
        threads: usize,
    ) -> Self {
        let buckets = summed(results.recordings.iter().map(|recording| recording.timeline.as_slice()));
        let (mut histograms, delays) = histograms(kinds, &results);
        let mut timeline = columns(&buckets, clock::to_seconds(BUCKET_NS));
        if let Some(jobs) = jobs.filter(|jobs| jobs.waiting_clients() > 0) {
            histograms.insert(jobs.lag(), delays.lag.clone());
            let unscheduled = buckets.iter().map(|bucket| f64::from(bucket.unscheduled)).collect();
            timeline.insert("unscheduled".to_owned(), unscheduled);
        }
        Self {
            summary: summary::of(plan, jobs, kinds, &results, threads, &delays),
            timeline,
            seconds: seconds(&buckets, &results.seconds),
            histograms,
            samples: results.samples.by_source.into_iter().collect(),
            mergeable: plan.part.map(|_| Mergeable { seconds: results.mergeable, lateness: delays.lateness }),
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let histograms = self.histograms.iter().map(|(name, h)| (name.clone(), h.to_pairs())).collect();
        let packed = EncodedOutcome {
            summary: self.summary.clone(),
            timeline: self.timeline.clone(),
            seconds: self.seconds.clone(),
            histograms,
            samples: self.samples.clone(),
            mergeable: self.mergeable.clone(),
        };
        packed.encode()
    }

    /// Decodes an outcome.
    ///
    /// # Errors
    /// Input: the bytes are not an encoded outcome.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let packed = EncodedOutcome::decode(bytes)?;
        let histograms = packed.histograms.iter().map(|(name, pairs)| {
            let mut histogram = Histogram::new();
            histogram.add_pairs(pairs)?;
            Ok((name.clone(), histogram))
        });
        Ok(Self {
            summary: packed.summary,
            timeline: packed.timeline,
            seconds: packed.seconds,
            histograms: histograms.collect::<Result<_>>()?,
            samples: packed.samples,
            mergeable: packed.mergeable,
        })
    }
}

fn histograms(kinds: &[Kind], results: &ThreadResults) -> (BTreeMap<String, Histogram>, Delays) {
    let mut all = BTreeMap::<String, Histogram>::new();
    let mut delays = Delays { lateness: Histogram::new(), lag: Histogram::new() };
    for name in ["response_time", "service_time", LOOP_DELAY, REPLIES_PER_WAIT] {
        all.insert(name.to_owned(), Histogram::new());
    }
    let mut merge = |name: &str, histogram: &Histogram| all.get_mut(name).expect("inserted above").merge(histogram);
    merge("response_time", &results.due.never_started);
    for recording in &results.recordings {
        delays.lateness.merge(&recording.lateness);
        delays.lag.merge(&recording.lag);
        merge("response_time", &recording.censored);
        merge(LOOP_DELAY, &recording.loop_delay);
        merge(REPLIES_PER_WAIT, &recording.replies_per_wait);
        for (name, by_kind) in [("response_time", &recording.response), ("service_time", &recording.service)] {
            by_kind.iter().for_each(|histogram| merge(name, histogram));
        }
    }
    for recording in &results.recordings {
        for (name, by_kind) in [("response_time", &recording.response), ("service_time", &recording.service)] {
            for (kind, histogram) in kinds.iter().zip(by_kind) {
                all.entry(format!("{name}{{script={}}}", kind.name)).or_default().merge(histogram);
            }
        }
    }
    let positions = kinds.iter().flat_map(|kind| kind.positions.iter().map(move |position| (kind, position)));
    for (number, (kind, position)) in positions.enumerate() {
        for answers in results.recordings.iter().filter_map(|one| one.answers.get(number)).filter(|one| one.count() > 0)
        {
            let name = format!("answer_time{{statement={}:{}}}", kind.name, position.command);
            all.entry(name).or_default().merge(answers);
        }
    }
    (all, delays)
}

fn columns(buckets: &[Bucket], width_s: f64) -> Columns {
    let column = |value: fn(&Bucket) -> u32| buckets.iter().map(|bucket| f64::from(value(bucket))).collect();
    BTreeMap::from([
        ("t_s".to_owned(), (0..buckets.len()).map(|i| i as f64 * width_s).collect()),
        ("transactions".to_owned(), column(|bucket| bucket.transactions)),
        ("errors".to_owned(), column(|bucket| bucket.failed)),
        ("retries".to_owned(), column(|bucket| bucket.retries)),
    ])
}

/// A function that returns one metric of a second.
type SecondMetric = fn(&Second) -> f64;

fn seconds(buckets: &[Bucket], responses: &[Second]) -> Columns {
    let per_second = (clock::SECOND / BUCKET_NS) as usize;
    let sums: Vec<_> = buckets
        .chunks(per_second)
        .map(|second| second.iter().fold(Bucket::default(), |sum, bucket| sum.plus(*bucket)))
        .collect();
    let mut columns = columns(&sums, 1.0);
    response_columns(&mut columns, responses);
    columns
}

/// Adds columns with the response times of each second.
pub(super) fn response_columns(columns: &mut Columns, responses: &[Second]) {
    let rows = columns.get("t_s").map_or(0, Vec::len);
    let figures: [(&str, SecondMetric); 6] = [
        ("response_mean_s", |second| second.mean_s),
        ("response_p50_s", |second| second.p50_s),
        ("response_p90_s", |second| second.p90_s),
        ("response_p95_s", |second| second.p95_s),
        ("response_p99_s", |second| second.p99_s),
        ("response_max_s", |second| second.max_s),
    ];
    for (name, value) in figures {
        let values = (0..rows).map(|i| responses.get(i).map_or(f64::NAN, value));
        columns.insert(name.to_owned(), values.collect());
    }
}

/// An encoded outcome: a JSON header with lengths, followed by the binary data.
struct EncodedOutcome {
    summary: Summary,
    timeline: Columns,
    seconds: Columns,
    histograms: BTreeMap<String, Vec<u8>>,
    samples: BTreeMap<String, Vec<(f64, Vec<u8>)>>,
    mergeable: Option<Mergeable>,
}

/// Header of a second: number of bytes of its response times, number of failed transactions, number of committed
/// transactions of the first kind, and width in ns.
type SecondHeader = (usize, u64, u64, u64);

#[derive(Serialize, Deserialize)]
struct Header {
    summary: Summary,
    timeline: BTreeMap<String, usize>,
    seconds: BTreeMap<String, usize>,
    histograms: BTreeMap<String, usize>,
    samples: BTreeMap<String, Vec<(f64, usize)>>,
    /// Number of bytes of the lateness histogram, and the headers of the seconds.
    mergeable: Option<(usize, Vec<SecondHeader>)>,
}

impl EncodedOutcome {
    fn encode(&self) -> Vec<u8> {
        let rows = |columns: &Columns| columns.iter().map(|(name, values)| (name.clone(), values.len())).collect();
        let sizes = |list: &Vec<(f64, Vec<u8>)>| list.iter().map(|(t_s, bytes)| (*t_s, bytes.len())).collect();
        let lateness = self.mergeable.as_ref().map(|kept| kept.lateness.to_pairs()).unwrap_or_default();
        let by_second =
            |second: &MergeableSecond| (second.pairs.len(), second.failed, second.first_committed, second.width_ns);
        let mergeable = |kept: &Mergeable| (lateness.len(), kept.seconds.iter().map(by_second).collect());
        let head = Header {
            summary: self.summary.clone(),
            timeline: rows(&self.timeline),
            seconds: rows(&self.seconds),
            histograms: self.histograms.iter().map(|(name, bytes)| (name.clone(), bytes.len())).collect(),
            samples: self.samples.iter().map(|(name, list)| (name.clone(), sizes(list))).collect(),
            mergeable: self.mergeable.as_ref().map(mergeable),
        };
        let head = serde_json::to_vec(&head).expect("the head contains only finite numbers and text");
        let mut bytes = (head.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(&head);
        for value in self.timeline.values().chain(self.seconds.values()).flatten() {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        self.histograms.values().for_each(|histogram| bytes.extend_from_slice(histogram));
        self.samples.values().flatten().for_each(|(_, sample)| bytes.extend_from_slice(sample));
        bytes.extend_from_slice(&lateness);
        let seconds = self.mergeable.iter().flat_map(|kept| &kept.seconds);
        seconds.for_each(|second| bytes.extend_from_slice(&second.pairs));
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let bad = |cause: &str| Error::input("result of a trial", cause.to_owned());
        let short = || bad("is truncated");
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(short)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
        let (head, mut rest) = rest.split_at_checked(length).ok_or_else(short)?;
        let head: Header = serde_json::from_slice(head).map_err(|error| bad(&error.to_string()))?;
        let mut take = |n: usize| -> Result<&[u8]> {
            let (taken, left) = rest.split_at_checked(n).ok_or_else(short)?;
            rest = left;
            Ok(taken)
        };
        let mut columns = |lengths: BTreeMap<String, usize>| -> Result<Columns> {
            let column = |(name, rows): (String, usize)| {
                let bytes = take(rows.checked_mul(8).ok_or_else(short)?)?;
                let value = |chunk: &[u8]| f64::from_le_bytes(chunk.try_into().expect("chunks of eight"));
                Ok((name, bytes.chunks_exact(8).map(value).collect()))
            };
            lengths.into_iter().map(column).collect()
        };
        let (timeline, seconds) = (columns(head.timeline)?, columns(head.seconds)?);
        let histograms = head.histograms.into_iter().map(|(name, n)| Ok((name, take(n)?.to_vec())));
        let histograms = histograms.collect::<Result<_>>()?;
        let mut samples = BTreeMap::new();
        for (name, list) in head.samples {
            let list = list.into_iter().map(|(t_s, n)| Ok((t_s, take(n)?.to_vec())));
            samples.insert(name, list.collect::<Result<Vec<_>>>()?);
        }
        let mergeable = head.mergeable.map(|(bytes, seconds)| -> Result<Mergeable> {
            let mut lateness = Histogram::new();
            lateness.add_pairs(take(bytes)?)?;
            let second = |(n, failed, first_committed, width_ns)| {
                Ok(MergeableSecond { pairs: take(n)?.to_vec(), failed, first_committed, width_ns })
            };
            Ok(Mergeable { lateness, seconds: seconds.into_iter().map(second).collect::<Result<_>>()? })
        });
        let mergeable = mergeable.transpose()?;
        Ok(Self { summary: head.summary, timeline, seconds, histograms, samples, mergeable })
    }
}
