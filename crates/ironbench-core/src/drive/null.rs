//! Scripts on the null engine: every SQL command is one empty message.

use super::jobs::Next;
use super::script::{Action, SCRIPT_ERROR, ScriptClient};
use super::transaction::{Ending, Step, Transaction};
use crate::measure::Tally;
use crate::wire::transport::Mailbox;

pub struct NullScript<'p>(pub ScriptClient<'p>);

impl NullScript<'_> {
    #[inline]
    fn continue_script(&mut self, tally: &mut Tally) -> Step {
        loop {
            match self.0.advance() {
                Action::Sql(_) => return Step::Send,
                Action::Sleep(ns) => return Step::Sleep(ns),
                Action::StartPipeline | Action::SyncPipeline | Action::EndPipeline => {}
                Action::End => {
                    tally.commits += 1;
                    return self.end(true, tally);
                }
                Action::Fault(cause) => {
                    let words = || self.0.script_error_message(self.0.command_index(), &cause);
                    tally.failure(self.0.kind(), SCRIPT_ERROR, false, words);
                    return self.end(false, tally);
                }
            }
        }
    }

    fn end(&mut self, well: bool, tally: &mut Tally) -> Step {
        Step::Ended(self.0.count_end(well, tally))
    }
}

impl Transaction for NullScript<'_> {
    #[inline]
    fn begin(&mut self, _mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        self.0.begin();
        self.continue_script(tally)
    }

    fn resume(&mut self, _mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        self.continue_script(tally)
    }

    fn job_queue(&self) -> Option<usize> {
        self.0.job_queue()
    }

    fn claim(&mut self, now: u64) -> Next {
        self.0.claim(now)
    }

    fn rest_ns(&mut self) -> u64 {
        self.0.rest_ns()
    }

    fn abandon(&mut self, inside: bool, cause: &str, tally: &mut Tally) -> Option<Ending> {
        self.0.abandon(inside, cause, tally)
    }

    #[inline]
    fn reply(&mut self, _mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        self.continue_script(tally)
    }
}
