//! Reads and writes HdrHistogram's interval log (`.hlog`), a text format for the tools of the HdrHistogram family.
//!
//! Tags in this format cannot contain commas or white space. These characters, and `%` itself, are written as `%XX`.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use base64::Engine;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag};

use super::Histogram;
use crate::{Error, Result};

/// Writes one tagged line per histogram, all with the same interval. Maxima are in milliseconds, as is usual in this
/// format.
pub fn write(histograms: &BTreeMap<String, Histogram>, start_unix_s: f64, interval_s: f64) -> Result<String> {
    let bad = |what: &str| Error::failure("latency log", format!("cannot be written: {what}"));
    let duration = |s: f64| Duration::try_from_secs_f64(s).map_err(|e| bad(&e.to_string()));
    let start = duration(start_unix_s)?;
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Logged by ironbench: nanoseconds]")
        .with_start_time(SystemTime::UNIX_EPOCH + start)
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut text, &mut serializer)
        .map_err(|e| bad(&e.to_string()))?;
    for (name, histogram) in histograms {
        let tag = escaped(name);
        let tag = Tag::new(&tag).ok_or_else(|| bad(&format!("`{name}` is not a valid tag")))?;
        log.write_histogram(histogram.inner(), start, duration(interval_s)?, Some(tag))
            .map_err(|e| bad(&e.to_string()))?;
    }
    Ok(String::from_utf8(text).expect("the log is ASCII"))
}

/// Maximum number of histograms in a log. This number is enough for a thousand scripts, and limits memory to 560 MB.
const MAX_HISTOGRAMS: usize = 2_000;

/// Reads a log. The histograms of lines with the same tag are merged. Lines without a tag get the empty name.
pub fn read(text: &str) -> Result<BTreeMap<String, Histogram>> {
    let bad = |what: String| Error::input("latency log", what);
    let mut histograms = BTreeMap::<String, Histogram>::new();
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        let entry = entry.map_err(|e| bad(format!("is not an HdrHistogram interval log: {e:?}")))?;
        let LogEntry::Interval(interval) = entry else { continue };
        let name = interval.tag().map(|tag| unescaped(tag.as_str())).unwrap_or_default();
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(interval.encoded_histogram())
            .map_err(|e| bad(format!("`{name}` is not base64: {e}")))?;
        if histograms.len() == MAX_HISTOGRAMS && !histograms.contains_key(&name) {
            return Err(bad(format!("has more than {MAX_HISTOGRAMS} histograms")));
        }
        histograms.entry(name).or_default().merge(&Histogram::from_bytes(&bytes)?);
    }
    Ok(histograms)
}

fn escaped(name: &str) -> String {
    let mut tag = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_graphic() && byte != b',' && byte != b'%' {
            tag.push(byte as char);
        } else {
            tag.push_str(&format!("%{byte:02X}"));
        }
    }
    tag
}

fn unescaped(tag: &str) -> String {
    let mut bytes = Vec::with_capacity(tag.len());
    let mut rest = tag.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (first, code) {
            (b'%', Some(code)) => {
                bytes.push(code);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_log_comes_back_with_names_and_counts() {
        let mut histogram = Histogram::new();
        (1..1000).for_each(|us| histogram.record(us * 1000));
        let names = ["response_time", "response_time{script=my, odd%20 näme.sql}"];
        let all: BTreeMap<_, _> = names.iter().map(|n| ((*n).to_owned(), histogram.clone())).collect();
        let text = write(&all, 1_700_000_000.25, 30.0).unwrap();
        assert!(text.contains("#[StartTime: 1700000000.250"));
        let read = read(&text).unwrap();
        assert_eq!(read.keys().collect::<Vec<_>>(), all.keys().collect::<Vec<_>>());
        assert!(read.values().all(|h| h.buckets() == histogram.buckets()));
    }

    #[test]
    fn what_is_no_log_is_an_input_error() {
        assert!(read("hello\nworld\n").is_err());
    }

    proptest! {
        #[test]
        fn every_name_survives_escaping(name in ".*") {
            prop_assert_eq!(unescaped(&escaped(&name)), name);
        }
    }
}
