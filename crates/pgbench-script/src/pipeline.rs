//! Checks that pipelines are started and ended in order, on every path through a script.

use super::locate::Fault;
use super::{Command, ResultUse};

/// How paths reach a command. A pipeline may be open on some of the paths, and not open on others.
#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    open: bool,
    closed: bool,
}

impl Reached {
    fn only_open(self) -> bool {
        self.open && !self.closed
    }

    fn only_closed(self) -> bool {
        self.closed && !self.open
    }

    fn join(&mut self, other: Self) {
        self.open |= other.open;
        self.closed |= other.closed;
    }
}

/// Rejects scripts that are wrong on every path. Errors on only some paths are found at run time. Jumps only go
/// forward, so one pass covers every path.
pub fn check(commands: &[Command], offsets: &[usize]) -> Result<(), Fault> {
    let mut reached = vec![Reached::default(); commands.len() + 1];
    reached[0].closed = true;
    let mut opened_at = 0;
    for (index, command) in commands.iter().enumerate() {
        let here = reached[index];
        let wrong = |cause: &str| Err(Fault::new(offsets[index], cause));
        let mut next = here;
        match command {
            Command::Sql(sql) if !matches!(sql.result_use, ResultUse::Discard) && here.only_open() => {
                return wrong("\\gset and \\aset cannot be used in a pipeline");
            }
            Command::StartPipeline if here.only_open() => return wrong("a pipeline is already open"),
            Command::SyncPipeline | Command::EndPipeline if here.only_closed() => return wrong("no pipeline is open"),
            Command::StartPipeline => {
                opened_at = offsets[index];
                next = Reached { open: true, closed: false };
            }
            Command::EndPipeline => next = Reached { open: false, closed: true },
            Command::Jump { target } => {
                reached[*target].join(here);
                continue;
            }
            Command::JumpUnless { target, .. } => reached[*target].join(here),
            _ => {}
        }
        reached[index + 1].join(next);
    }
    if reached[commands.len()].only_open() {
        return Err(Fault::new(opened_at, "the script ends with this pipeline open").hint("add \\endpipeline"));
    }
    Ok(())
}
