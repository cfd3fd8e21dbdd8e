//! Call stacks, stored as a tree of frames. Stacks with the same callers share nodes.

use std::hash::BuildHasher as _;

use foldhash::{HashMap, HashMapExt as _, quality};
use perf_event_open_sys::bindings;

use crate::space::{FileId, Space};

/// ID of a stack, which is the index of the node for the innermost frame.
pub type StackId = u32;

/// The stack without frames.
pub const EMPTY: StackId = 0;

/// Maximum number of nodes, which take about 60 MB. At this limit, new frames are merged into their callers.
const MOST_NODES: usize = 1 << 20;
/// Maximum number of address lists whose stacks are cached.
const MOST_KNOWN: usize = 1 << 16;

/// The location of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// An address in the kernel.
    Kernel(u64),
    /// An offset in a file.
    File(FileId, u64),
    /// An address outside all mapped files.
    Unknown,
    /// A frame that stands for the callers beyond the depth limit.
    Truncated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub caller: StackId,
    pub place: Place,
}

pub struct Stacks {
    /// The nodes. A caller precedes its callees. The first node is `EMPTY`.
    pub nodes: Vec<Node>,
    ids: HashMap<Node, StackId>,
    known: HashMap<u64, StackId>,
    /// Number of frames after which a stack is cut.
    pub depth_limit: usize,
    most_nodes: usize,
}

impl Stacks {
    /// Creates an empty tree. `depth_limit` is the number of frames after which the kernel cuts a stack.
    pub fn new(depth_limit: usize) -> Self {
        Self::with_limits(depth_limit, MOST_NODES)
    }

    fn with_limits(depth_limit: usize, most_nodes: usize) -> Self {
        let root = Node { caller: EMPTY, place: Place::Unknown };
        Self { nodes: vec![root], ids: HashMap::new(), known: HashMap::new(), depth_limit, most_nodes }
    }

    /// Whether the stack was cut at the depth limit.
    pub fn is_truncated(&self, chain: &[u64]) -> bool {
        chain.iter().filter(|&&address| !is_marker(address)).count() >= self.depth_limit
    }

    /// Returns the ID of the stack with these addresses. `chain` starts at the innermost frame. `truncated` says
    /// whether callers are missing.
    pub fn id(&mut self, space: &Space, chain: &[u64], truncated: bool) -> StackId {
        let hash = quality::FixedState::default().hash_one((space.id(), chain, truncated));
        if let Some(&known) = self.known.get(&hash) {
            return known;
        }
        let places = places(space, chain);
        let root = truncated.then_some(Place::Truncated);
        let stack = root.into_iter().chain(places.into_iter().rev()).fold(EMPTY, |caller, place| {
            let node = Node { caller, place };
            if let Some(&id) = self.ids.get(&node) {
                return id;
            }
            if self.nodes.len() >= self.most_nodes {
                return caller;
            }
            let id = self.nodes.len() as StackId;
            self.nodes.push(node);
            self.ids.insert(node, id);
            id
        });
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(hash, stack);
        stack
    }
}

fn is_marker(address: u64) -> bool {
    address >= bindings::PERF_CONTEXT_MAX
}

/// Returns the locations of the frames, from the innermost to the outermost. The address of a caller is a return
/// address. It may already belong to the next function, so the byte before it is looked up.
fn places(space: &Space, chain: &[u64]) -> Vec<Place> {
    let mut in_kernel = false;
    let mut is_leaf = true;
    let mut places = Vec::with_capacity(chain.len());
    for &address in chain {
        if is_marker(address) {
            in_kernel = address == bindings::PERF_CONTEXT_KERNEL;
            is_leaf = true;
            continue;
        }
        let address = if is_leaf { address } else { address.saturating_sub(1) };
        is_leaf = false;
        places.push(match space.find(address) {
            _ if in_kernel => Place::Kernel(address),
            Some((file, offset)) => Place::File(file, offset),
            None => Place::Unknown,
        });
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u64 = bindings::PERF_CONTEXT_KERNEL;
    const USER: u64 = bindings::PERF_CONTEXT_USER;

    fn space() -> Space {
        let mut space = Space::default();
        space.map(0x1000, 0x1000, 0, 7);
        space
    }

    fn path(stacks: &Stacks, mut id: StackId) -> Vec<Place> {
        let mut path = Vec::new();
        while id != EMPTY {
            path.insert(0, stacks.nodes[id as usize].place);
            id = stacks.nodes[id as usize].caller;
        }
        path
    }

    #[test]
    fn a_stack_starts_at_the_users_root_and_ends_at_the_kernels_leaf() {
        let mut stacks = Stacks::new(127);
        let id = stacks.id(&space(), &[KERNEL, 0xf0, 0xf8, USER, 0x1010, 0x1020, 0x9999], false);
        let user = [Place::Unknown, Place::File(7, 0x1f), Place::File(7, 0x10)];
        let kernel = [Place::Kernel(0xf7), Place::Kernel(0xf0)];
        assert_eq!(path(&stacks, id), [&user[..], &kernel[..]].concat());
    }

    #[test]
    fn the_same_stack_has_the_same_number_in_equal_spaces() {
        let mut stacks = Stacks::new(127);
        let chain = [USER, 0x1010, 0x1020];
        assert_eq!(stacks.id(&space(), &chain, false), stacks.id(&space(), &chain, false));
        assert_ne!(stacks.id(&space(), &chain, false), stacks.id(&Space::default(), &chain, false));
    }

    #[test]
    fn a_stack_at_the_depth_limit_has_no_root() {
        let mut stacks = Stacks::new(2);
        let chain = [USER, 0x1010, 0x1020];
        let id = stacks.id(&space(), &chain, true);
        assert!(stacks.is_truncated(&chain) && !stacks.is_truncated(&chain[..2]));
        assert_eq!(path(&stacks, id)[0], Place::Truncated);
    }

    #[test]
    fn frames_beyond_the_memory_limit_are_counted_for_their_caller() {
        let mut stacks = Stacks::with_limits(127, 3);
        let chain = [USER, 0x1010, 0x1020, 0x1030];
        let id = stacks.id(&space(), &chain, false);
        assert_eq!(path(&stacks, id), [Place::File(7, 0x2f), Place::File(7, 0x1f)]);
        assert_eq!(stacks.nodes.len(), 3);
    }
}
