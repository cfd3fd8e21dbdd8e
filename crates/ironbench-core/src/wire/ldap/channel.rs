//! LDAP messages on a blocking stream.

use std::ops::{Deref, DerefMut};

use super::ber::{Malformed, Reader};
use super::fault::Fault;
use super::message::{self, Done, done, op};
use crate::wire::pipe::Pipe;

pub(super) struct Channel {
    pipe: Pipe,
    /// Message ID of the last request.
    id: i32,
}

/// A message copied out of the input buffer.
pub(super) struct Owned {
    pub id: i32,
    pub tag: u8,
    pub body: Vec<u8>,
}

impl Deref for Channel {
    type Target = Pipe;

    fn deref(&self) -> &Pipe {
        &self.pipe
    }
}

impl DerefMut for Channel {
    fn deref_mut(&mut self) -> &mut Pipe {
        &mut self.pipe
    }
}

impl Channel {
    pub fn new(pipe: Pipe) -> Self {
        Self { pipe, id: 0 }
    }

    pub fn into_pipe(self) -> Pipe {
        self.pipe
    }

    /// Returns a message ID for the next request.
    pub fn next_id(&mut self) -> i32 {
        self.id = self.id.checked_add(1).unwrap_or(1);
        self.id
    }

    pub fn id(&self) -> i32 {
        self.id
    }

    /// Waits for the next message and returns it. A notice of disconnection is an error.
    pub fn next(&mut self) -> Result<Owned, Fault> {
        loop {
            let input = &mut self.pipe.input;
            let mut unread = &input.bytes[input.start..input.end];
            let found = message::next(&mut unread)?.map(|message| Owned {
                id: message.id,
                tag: message.tag,
                body: message.body.to_vec(),
            });
            input.start = input.end - unread.len();
            match found {
                Some(message) if message.id == 0 => return Err(Fault::Server(Box::new(done(&message.body)?))),
                Some(message) => return Ok(message),
                None => self.pipe.more()?,
            }
        }
    }

    /// Sends the output, and waits for the single message that answers it.
    pub fn ask(&mut self, answer: u8) -> Result<Vec<u8>, Fault> {
        self.flush()?;
        let message = self.next()?;
        if message.id != self.id || message.tag != answer {
            return Err(Malformed::Nonsense.into());
        }
        Ok(message.body)
    }

    /// Requests StartTLS (RFC 4511, 4.14). Returns the server's answer.
    pub fn ask_for_tls(&mut self) -> Result<Done, Fault> {
        let id = self.next_id();
        let mut value = Vec::new();
        super::ber::octets(&mut value, 0x80, b"1.3.6.1.4.1.1466.20037");
        message::request(&mut self.pipe.output, id, op::EXTENDED, &value);
        let body = self.ask(op::EXTENDED_ANSWER)?;
        // Bytes that arrived before TLS started may be forged, so they must not be read as an answer under TLS.
        if !Reader(self.unread()).is_empty() {
            return Err(Malformed::Nonsense.into());
        }
        Ok(done(&body)?)
    }
}
