//! A profile: collapsed stacks, each with its number of samples and its time in seconds.

use std::collections::{BTreeMap, HashMap};

use crate::collect::Collector;
use crate::processes::Role;
use crate::stacks::{EMPTY, StackId, Stacks};
use crate::symbols::{self, Label};
use crate::timeline::{RowId, Total, Windows};
use crate::waits::Reason;

/// All samples with the same stack and the same reason.
#[derive(Debug, PartialEq)]
pub struct Line {
    /// Reason of a wait, or None for CPU time.
    pub reason: Option<Reason>,
    pub role: Role,
    pub thread: String,
    /// Frames from the outermost to the innermost, joined by semicolons.
    pub stack: String,
    /// The stack that woke the thread. The stack is empty if it is unknown.
    pub waker: String,
    pub samples: u64,
    pub seconds: f64,
}

#[derive(Debug)]
pub struct Profile {
    /// The lines, in descending order of their time.
    pub lines: Vec<Line>,
    /// Number of CPU samples that the kernel could not write because a ring buffer was full.
    pub lost: u64,
    /// Number of stacks that were cut at the depth limit.
    pub truncated: u64,
    /// Number of CPU samples of processes that are neither the engine's nor the client's.
    pub others: u64,
    /// CPU time of the sampling thread.
    pub sampler_cpu_s: f64,
    /// Fraction of all frames for which no function name was found. Frames are weighted by their number of samples.
    pub unresolved_share: f64,
}

impl Profile {
    /// Looks up the names of functions, and adds up the samples in the windows.
    pub fn new(collected: &Collector, windows: &Windows, sampler_cpu_s: f64) -> Self {
        let tree = Tree::new(&collected.stacks, collected);
        let rows = &collected.rows.rows;
        let blocked = collected.traced.blocked_factor(windows, &collected.progress);
        let queue = collected.traced.time_factor(windows);
        let weight = |row: RowId, time| match rows[row as usize].reason {
            None => 1.0,
            Some(Reason::Blocked) => collected.traced.weight(time) * blocked,
            Some(Reason::CpuQueue) => collected.traced.weight(time) * queue,
        };
        let totals = collected.timeline.totals(windows, rows.len(), weight);
        let mut merged = BTreeMap::<_, Total>::new();
        let (mut frames, mut unresolved) = (0, 0);
        for (row, total) in rows.iter().zip(totals).filter(|(_, total)| total.samples > 0) {
            let (stack, waker) = (tree.merged[row.stack as usize], tree.merged[row.waker as usize]);
            let sum = merged.entry((row.reason, row.role, row.name, stack, waker)).or_default();
            sum.samples += total.samples;
            sum.ns += total.ns;
            let (all, without) = tree.counts(stack);
            frames += all * total.samples;
            unresolved += without * total.samples;
        }
        let mut lines: Vec<_> = merged
            .into_iter()
            .map(|((reason, role, name, stack, waker), total)| Line {
                reason,
                role,
                thread: collected.processes.name_text(name).to_owned(),
                stack: tree.collapsed(stack),
                waker: tree.collapsed(waker),
                samples: total.samples,
                seconds: total.ns as f64 / 1e9,
            })
            .collect();
        lines.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        Self {
            lines,
            lost: collected.lost,
            truncated: collected.truncated,
            others: collected.others,
            sampler_cpu_s,
            unresolved_share: if frames == 0 { 0.0 } else { unresolved as f64 / frames as f64 },
        }
    }
}

/// A tree of stacks whose nodes are function names. Different instructions of the same function are therefore one
/// frame.
struct Tree {
    /// Maps each node of the original tree to its node in this tree.
    merged: Vec<StackId>,
    /// For each node, the node of the caller and the index of the label.
    nodes: Vec<(StackId, usize)>,
    labels: Vec<Label>,
}

impl Tree {
    fn new(stacks: &Stacks, collected: &Collector) -> Self {
        let places = stacks.nodes.iter().skip(1).map(|node| node.place);
        let by_place = symbols::labels(places, &collected.processes.files);
        let (mut labels, mut label_ids) = (Vec::<Label>::new(), HashMap::new());
        let (mut nodes, mut node_ids) = (vec![(EMPTY, 0)], HashMap::new());
        let mut merged = vec![EMPTY];
        for node in stacks.nodes.iter().skip(1) {
            let label = &by_place[&node.place];
            let label = *label_ids.entry(label.text.clone()).or_insert_with(|| {
                labels.push(label.clone());
                labels.len() - 1
            });
            let node = (merged[node.caller as usize], label);
            merged.push(*node_ids.entry(node).or_insert_with(|| {
                nodes.push(node);
                (nodes.len() - 1) as StackId
            }));
        }
        Self { merged, nodes, labels }
    }

    /// Iterates over the labels from the innermost to the outermost frame.
    fn path(&self, leaf: StackId) -> impl Iterator<Item = &Label> {
        let node = |id: StackId| (id != EMPTY).then(|| self.nodes[id as usize]);
        std::iter::successors(node(leaf), move |&(caller, _)| node(caller)).map(|(_, label)| &self.labels[label])
    }

    fn collapsed(&self, leaf: StackId) -> String {
        let mut frames: Vec<_> = self.path(leaf).map(|label| label.text.as_str()).collect();
        frames.reverse();
        frames.join(";")
    }

    /// Returns the number of frames, and the number of frames without a function name.
    fn counts(&self, leaf: StackId) -> (u64, u64) {
        self.path(leaf).fold((0, 0), |(all, without), label| (all + 1, without + u64::from(!label.resolved)))
    }
}
