//! A client's position in its scripts. The position consists of the next command and the state at the start of the
//! transaction. A retry restores this state.

use std::borrow::Cow;

use super::jobs::{Jobs, Next, Role};
use super::plan::{Part, Plan};
use super::threads::DriveContext;
use super::transaction::Ending;
use crate::measure::{Tally, clock};
use pgbench_script::{
    Automatic, Command, CommandPosition, Program, Random, Seeds, Sql, Variables, evaluate, gives_default_seed,
};

/// Error class of a failed meta-command or another mistake in a script.
pub const SCRIPT_ERROR: &str = "script";
/// Error class of a transaction that lost its connection.
pub const CONNECTION_LOST: &str = "connection-lost";
/// Maximum number of characters of a command in a message. The limits keep records small.
const MAX_SHOWN: usize = 200;
/// Maximum number of characters of a cause in a message.
const MAX_CAUSE: usize = 400;

/// The next action of the script.
#[derive(Debug)]
pub enum Action<'p> {
    Sql(&'p Sql),
    Sleep(u64),
    StartPipeline,
    SyncPipeline,
    EndPipeline,
    /// The script has ended.
    End,
    /// A meta-command failed for this reason.
    Fault(String),
}

pub struct ScriptClient<'p> {
    pub program: &'p Program,
    pub variables: Variables,
    random: Random,
    /// Random stream for choosing scripts. The stream is separate, so that choosing a script does not change the
    /// numbers that `random()` draws.
    script_random: Random,
    /// Chooses the scripts in place of the weights. The value is None without a source of jobs.
    role: Option<Box<dyn Role + 'p>>,
    /// The script of a job that the client has taken but not started, or None if there is no such job.
    next_job: Option<usize>,
    script: usize,
    command_index: usize,
    /// Number of attempts at the current transaction, including the current one.
    attempts: u32,
    /// Maximum number of attempts. 0 means no limit.
    max_tries: u32,
    /// Classes of errors that are retried in addition to the engine's own.
    retried_errors: &'p [String],
    /// Random state and variables at the start of the transaction, or None if the transaction may not be retried.
    saved: Option<(Random, Variables)>,
}

/// Creates the clients of a trial, each with its own random streams.
pub struct Clients<'p> {
    program: &'p Program,
    variables: &'p [(String, String)],
    jobs: Option<&'p dyn Jobs>,
    seeds: Seeds,
    seed: u64,
    numbers: ClientNumbers,
    max_tries: u32,
    retried_errors: &'p [String],
}

/// Numbers the clients of all parts of a load. The clients of the plans come first, followed by the clients that wait
/// for jobs.
struct ClientNumbers {
    clients: usize,
    part: Part,
}

impl ClientNumbers {
    fn new(plan: &Plan) -> Self {
        Self { clients: plan.clients, part: plan.part_or_whole() }
    }

    /// Returns the number of a client among the clients of all parts. Clients that wait for jobs are numbered
    /// round-robin over the parts, because the other parts' numbers of such clients are unknown.
    fn of(&self, client: usize) -> usize {
        let Part { number, of, first_client, all_clients } = self.part;
        client.checked_sub(self.clients).map_or(first_client + client, |waiting| all_clients + of * waiting + number)
    }

    /// Returns the number of clients of all parts. In each part, `waiting` clients wait for jobs.
    fn all(&self, waiting: usize) -> usize {
        self.part.all_clients + self.part.of * waiting
    }
}

impl<'p> Clients<'p> {
    pub fn new(program: &'p Program, orders: &'p DriveContext) -> Self {
        let Plan { variables, seed, max_tries, retried_errors, .. } = orders.plan;
        let numbers = ClientNumbers::new(orders.plan);
        let waiting = orders.clients() - orders.plan.clients;
        let seeds = Seeds::new(*seed, numbers.all(waiting), gives_default_seed(variables));
        let (jobs, seed, max_tries) = (orders.jobs, *seed, *max_tries);
        Self { program, variables, jobs, seeds, seed, numbers, max_tries, retried_errors }
    }

    pub fn client(&self, client: usize) -> ScriptClient<'p> {
        let place = self.numbers.of(client);
        let automatic = Automatic {
            client_id: place as i64,
            default_seed: self.seeds.default_seed,
            random_seed: self.seed as i64,
            scale: 1,
        };
        ScriptClient {
            program: self.program,
            variables: Variables::new(self.program, self.variables, &automatic),
            random: self.seeds.client(place),
            script_random: self.seeds.choice(place),
            role: self.jobs.map(|jobs| jobs.role(self.program, client)),
            next_job: None,
            script: 0,
            command_index: 0,
            attempts: 0,
            max_tries: self.max_tries,
            retried_errors: self.retried_errors,
            saved: None,
        }
    }
}

impl<'p> ScriptClient<'p> {
    /// Returns the index of the script of the current transaction.
    pub fn kind(&self) -> usize {
        self.script
    }

    /// Chooses a script by weight, or takes the script of the next job. Starts at the script's first command.
    #[inline]
    pub fn begin(&mut self) {
        self.script = if self.role.is_none() { self.program.choose(&mut self.script_random) } else { self.job() };
        self.command_index = 0;
        self.attempts = 1;
        if self.max_tries != 1 {
            self.save();
        }
    }

    #[cold]
    fn job(&mut self) -> usize {
        if self.next_job.is_none() {
            self.claim(clock::now());
        }
        self.next_job.take().expect("a client that the schedule moves always has work")
    }

    /// Implements [`super::Transaction::line`].
    pub fn job_queue(&self) -> Option<usize> {
        self.role.as_ref().and_then(|role| role.job_queue())
    }

    /// Implements [`super::Transaction::rest_ns`].
    #[cold]
    pub fn rest_ns(&mut self) -> u64 {
        self.role.as_mut().map_or(0, |role| role.rest_ns())
    }

    /// Takes the next job if one is due. The next `begin` starts it. Used only for clients with a role.
    pub fn claim(&mut self, now: u64) -> Next {
        let Some(role) = &mut self.role else { return Next::NotBefore(clock::NEVER) };
        let next = role.next(now, &mut self.variables);
        if let Next::Job { script, .. } = next {
            self.next_job = Some(script);
        }
        next
    }

    fn save(&mut self) {
        match &mut self.saved {
            Some((random, variables)) => {
                random.clone_from(&self.random);
                variables.clone_from(&self.variables);
            }
            None => self.saved = Some((self.random.clone(), self.variables.clone())),
        }
    }

    /// Restarts the transaction with the same variables and random numbers. Returns false if no attempts are left.
    pub fn retry(&mut self, tally: &mut Tally) -> bool {
        if self.max_tries != 0 && self.attempts >= self.max_tries {
            return false;
        }
        let Some((random, variables)) = &self.saved else { return false };
        self.random.clone_from(random);
        self.variables.clone_from(variables);
        self.attempts = self.attempts.saturating_add(1);
        self.command_index = 0;
        tally.kinds[self.script].retries += 1;
        true
    }

    /// Whether the plan asks for a retry after errors of this class.
    pub fn retries_after(&self, class: &str) -> bool {
        self.retried_errors.iter().any(|one| one == class)
    }

    /// Returns the index of the last executed command in its script.
    pub fn command_index(&self) -> usize {
        self.command_index.saturating_sub(1)
    }

    /// Returns a command's index in the whole program.
    pub fn command(&self, command_index: usize) -> usize {
        self.program.scripts[self.script].commands_before + command_index
    }

    /// Formats an error of the command at `command_index`. The text contains the command's position, the cause, and the
    /// command as written.
    pub fn error_message(&self, command_index: usize, cause: &str) -> String {
        let script = &self.program.scripts[self.script];
        let cause = shorten(cause, MAX_CAUSE);
        let Some(CommandPosition { line, command, text }) = script.positions.get(command_index) else {
            return format!("script {}: {cause}", script.name);
        };
        format!("script {}, line {line}, command {command}: {cause}; in: {}", script.name, shorten(text, MAX_SHOWN))
    }

    /// Formats an error that is a mistake in the script rather than an error of the engine.
    pub fn script_error_message(&self, command_index: usize, cause: &str) -> String {
        self.error_message(command_index, &format!("error of the script itself: {cause}"))
    }

    /// Handles a lost connection, as [`super::Transaction::abandon`] describes. The transaction is not retried, because
    /// it may have been committed.
    #[cold]
    pub fn abandon(&mut self, inside: bool, cause: &str, tally: &mut Tally) -> Option<Ending> {
        if self.job_queue().is_some() {
            return None;
        }
        if inside {
            tally.failure(self.script, CONNECTION_LOST, true, || self.error_message(self.command_index(), cause));
            return Some(self.count_end(false, tally));
        }
        Some(self.ending(false))
    }

    /// Counts the retries and the failure of a transaction that has ended. Successes are counted by the recorder.
    #[inline]
    pub fn count_end(&mut self, well: bool, tally: &mut Tally) -> Ending {
        let counts = &mut tally.kinds[self.script];
        counts.retried += u64::from(self.attempts > 1);
        counts.failed += u64::from(!well);
        if self.role.is_some() {
            self.job_ended(well, tally);
        }
        self.ending(well)
    }

    fn ending(&self, well: bool) -> Ending {
        Ending { kind: self.script, well, retries: self.attempts.saturating_sub(1) }
    }

    #[cold]
    fn job_ended(&mut self, well: bool, tally: &mut Tally) {
        let Some(role) = &mut self.role else { return };
        let on_purpose = role.ended(&mut self.variables, well);
        let counts = &mut tally.kinds[self.script];
        counts.rolled_back += u64::from(on_purpose && well);
        counts.unscheduled += u64::from(well && role.job_queue().is_some());
    }

    /// Runs meta-commands up to the next command for the engine, the next sleep, or the end.
    #[inline]
    pub fn advance(&mut self) -> Action<'p> {
        let commands = &self.program.scripts[self.script].commands;
        while let Some(command) = commands.get(self.command_index) {
            self.command_index += 1;
            match command {
                Command::Sql(sql) => return Action::Sql(sql),
                Command::Set { slot, expression, .. } => {
                    match evaluate(expression, &mut self.variables, &mut self.random) {
                        Ok(value) => self.variables.set(*slot, value),
                        Err(error) => return Action::Fault(error.to_string()),
                    }
                }
                Command::JumpUnless { condition, target, .. } => {
                    match evaluate(condition, &mut self.variables, &mut self.random) {
                        Ok(value) if value.is_true() => {}
                        Ok(_) => self.command_index = *target,
                        Err(error) => return Action::Fault(error.to_string()),
                    }
                }
                Command::Jump { target } => self.command_index = *target,
                Command::Sleep { argument, unit_ns, .. } => {
                    return match self.variables.sleep_ns(*argument, *unit_ns) {
                        Ok(ns) => Action::Sleep(ns),
                        Err(error) => Action::Fault(error.to_string()),
                    };
                }
                Command::StartPipeline => return Action::StartPipeline,
                Command::SyncPipeline => return Action::SyncPipeline,
                Command::EndPipeline => return Action::EndPipeline,
            }
        }
        Action::End
    }
}

/// Shortens a text to `most` characters.
fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    text.char_indices().nth(most).map_or(Cow::Borrowed(text), |(end, _)| Cow::Owned(format!("{}…", &text[..end])))
}
