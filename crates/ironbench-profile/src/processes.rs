//! The processes that a profile covers: their roles, mappings, and names of threads.

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};

use crate::record::Map;
use crate::space::{Files, Space};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// One of the given root processes, or a descendant of one.
    Engine,
    /// This process, or a descendant that does not belong to the engine.
    Client,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Client => "client",
        }
    }
}

/// Index of a thread's name in `Processes::names`.
pub type NameId = u32;

struct Process {
    role: Option<Role>,
    space: Arc<Space>,
}

pub struct Processes {
    roots: HashSet<i32>,
    own: i32,
    known: HashMap<i32, Process>,
    threads: HashMap<i32, NameId>,
    names: Vec<String>,
    name_ids: HashMap<String, NameId>,
    pub files: Files,
}

impl Processes {
    pub fn new(engine_roots: &[i32], own: i32) -> Self {
        Self {
            roots: engine_roots.iter().copied().collect(),
            own,
            known: HashMap::new(),
            threads: HashMap::new(),
            names: Vec::new(),
            name_ids: HashMap::new(),
            files: Files::default(),
        }
    }

    /// Reads the existing processes from /proc.
    pub fn read_existing(&mut self) {
        for pid in numbers_in("/proc") {
            self.role(pid);
        }
    }

    /// Returns the IDs of all existing threads with a role.
    pub fn threads_with_role(&self) -> Vec<i32> {
        let processes = self.known.iter().filter(|(_, process)| process.role.is_some());
        processes.flat_map(|(pid, _)| numbers_in(&format!("/proc/{pid}/task"))).collect()
    }

    /// Returns the role of a process. If no record has reported the process, its role is determined from /proc.
    pub fn role(&mut self, pid: i32) -> Option<Role> {
        if let Some(process) = self.known.get(&pid) {
            return process.role;
        }
        let parent = parent_of(pid);
        let role = self.own_role(pid).or_else(|| parent.filter(|&parent| parent > 0).and_then(|pid| self.role(pid)));
        let mut space = Arc::default();
        if role.is_some() {
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            space = Arc::new(Space::of_maps(&maps, &mut self.files));
            for tid in numbers_in(&format!("/proc/{pid}/task")) {
                let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
                self.named(tid, name.trim_end_matches('\n'));
            }
            // Shortly after a fork, parent and child have the same mappings. Parent and child then share one address
            // space here.
            if let Some(parent) = parent.and_then(|parent| self.known.get(&parent))
                && parent.space == space
            {
                space = Arc::clone(&parent.space);
            }
        }
        self.known.insert(pid, Process { role, space });
        role
    }

    fn own_role(&self, pid: i32) -> Option<Role> {
        if self.roots.contains(&pid) { Some(Role::Engine) } else { (pid == self.own).then_some(Role::Client) }
    }

    pub fn space(&self, pid: i32) -> Arc<Space> {
        self.known.get(&pid).map(|process| Arc::clone(&process.space)).unwrap_or_default()
    }

    /// Returns the name of a thread.
    pub fn name(&mut self, tid: i32) -> NameId {
        match self.threads.get(&tid) {
            Some(&name) => name,
            None => self.name_id(""),
        }
    }

    pub fn name_text(&self, name: NameId) -> &str {
        &self.names[name as usize]
    }

    pub fn named(&mut self, tid: i32, name: &str) {
        let id = self.name_id(name);
        self.threads.insert(tid, id);
    }

    fn name_id(&mut self, name: &str) -> NameId {
        if let Some(&id) = self.name_ids.get(name) {
            return id;
        }
        let id = self.names.len() as NameId;
        self.names.push(name.to_owned());
        self.name_ids.insert(name.to_owned(), id);
        id
    }

    /// Notes that a process started another program. The kernel will report the mappings of the new program.
    pub fn executed(&mut self, pid: i32) {
        if let Some(process) = self.known.get_mut(&pid) {
            process.space = Arc::default();
        }
    }

    pub fn mapped(&mut self, map: &Map<'_>) {
        if self.role(map.pid).is_none() {
            return;
        }
        let file = self.files.id(map.path);
        if let Some(process) = self.known.get_mut(&map.pid) {
            Arc::make_mut(&mut process.space).map(map.start, map.length, map.offset, file);
        }
    }

    /// Notes that a thread was created. If `pid` differs from `parent_pid`, the thread is the first one of a new
    /// process.
    pub fn forked(&mut self, pid: i32, tid: i32, parent_pid: i32, parent_tid: i32) {
        if let Some(&name) = self.threads.get(&parent_tid) {
            self.threads.insert(tid, name);
        }
        if pid != parent_pid {
            let role = self.role(parent_pid);
            let role = self.own_role(pid).or(role);
            let space = self.space(parent_pid);
            self.known.insert(pid, Process { role, space });
        }
    }

    pub fn exited(&mut self, pid: i32, tid: i32) {
        self.threads.remove(&tid);
        if pid == tid {
            self.known.remove(&pid);
        }
    }
}

fn numbers_in(directory: &str) -> Vec<i32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Reads the parent's PID from `/proc/PID/stat` (proc_pid_stat(5)). The format is `pid (name) state parent …`, and the
/// name may contain any characters.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PIDs that do not exist.
    const ENGINE: i32 = 0x7fff_0001;
    const BACKEND: i32 = 0x7fff_0002;
    const OTHER: i32 = 0x7fff_0003;

    fn processes() -> Processes {
        Processes::new(&[ENGINE], std::process::id() as i32)
    }

    #[test]
    fn a_process_below_an_engines_root_is_the_engines() {
        let mut processes = processes();
        processes.forked(ENGINE, ENGINE, std::process::id() as i32, std::process::id() as i32);
        processes.forked(BACKEND, BACKEND, ENGINE, ENGINE);
        assert_eq!(processes.role(ENGINE), Some(Role::Engine));
        assert_eq!(processes.role(BACKEND), Some(Role::Engine));
    }

    #[test]
    fn this_process_and_its_other_children_are_the_client() {
        let mut processes = processes();
        let own = std::process::id() as i32;
        processes.forked(BACKEND, BACKEND, own, own);
        assert_eq!(processes.role(own), Some(Role::Client));
        assert_eq!(processes.role(BACKEND), Some(Role::Client));
    }

    #[test]
    fn a_process_that_is_not_below_them_has_no_role() {
        let mut processes = processes();
        assert_eq!(processes.role(1), None);
        assert_eq!(processes.role(OTHER), None);
    }

    #[test]
    fn a_fork_shares_its_parents_mappings_until_one_of_them_maps_more() {
        let mut processes = processes();
        processes.forked(ENGINE, ENGINE, 0, 0);
        processes.mapped(&Map { pid: ENGINE, start: 0x1000, length: 0x1000, offset: 0, path: "/a" });
        processes.forked(BACKEND, BACKEND, ENGINE, ENGINE);
        assert_eq!(processes.space(BACKEND).id(), processes.space(ENGINE).id());
        processes.mapped(&Map { pid: BACKEND, start: 0x5000, length: 0x1000, offset: 0, path: "/b" });
        assert!(processes.space(BACKEND).find(0x5000).is_some());
        assert!(processes.space(BACKEND).find(0x1000).is_some());
        assert!(processes.space(ENGINE).find(0x5000).is_none());
        processes.executed(BACKEND);
        assert!(processes.space(BACKEND).find(0x1000).is_none());
    }

    #[test]
    fn a_thread_has_its_creators_name_until_it_gets_one() {
        let mut processes = processes();
        processes.forked(ENGINE, ENGINE, 0, 0);
        processes.named(ENGINE, "postgres");
        processes.forked(ENGINE, BACKEND, ENGINE, ENGINE);
        let name = processes.name(BACKEND);
        assert_eq!(processes.name_text(name), "postgres");
        processes.named(BACKEND, "io worker");
        let name = processes.name(BACKEND);
        assert_eq!(processes.name_text(name), "io worker");
        processes.exited(ENGINE, BACKEND);
        let name = processes.name(BACKEND);
        assert_eq!(processes.name_text(name), "");
    }
}
