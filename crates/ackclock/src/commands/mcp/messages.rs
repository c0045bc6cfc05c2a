//! Messages of standard input, read by a thread of its own, so that a call can be cancelled.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

use serde_json::Value as Json;

/// Longest message.
const LONGEST: u64 = 4 << 20;
pub(super) const TOO_LONG: &str = "the message is longer than 4 MiB";
/// Messages that wait for an answer at most: further ones stay in the pipe.
const WAITING: usize = 64;

/// A line of standard input.
pub(super) enum Message {
    /// JSON.
    Request(Json),
    /// Too many bytes; they were skipped.
    TooLong,
    /// Anything else.
    Malformed(String),
}

/// Reads standard input; the channel closes at its end.
pub(super) fn read_messages() -> Receiver<Message> {
    let (sender, receiver) = sync_channel(WAITING);
    thread::spawn(move || read(&mut io::stdin().lock(), &sender));
    receiver
}

fn read(input: &mut impl BufRead, sender: &SyncSender<Message>) {
    loop {
        let mut line = Vec::new();
        match input.take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let message = if line.len() as u64 == LONGEST && line.last() != Some(&b'\n') {
            if input.skip_until(b'\n').is_err() {
                return;
            }
            Message::TooLong
        } else if line.trim_ascii().is_empty() {
            continue;
        } else {
            match serde_json::from_slice(&line) {
                Ok(json) => Message::Request(json),
                Err(error) => Message::Malformed(format!("the message is not JSON: {error}")),
            }
        };
        if sender.send(message).is_err() {
            return;
        }
    }
}

/// Whether the client has cancelled request `id` or has gone; other messages are kept.
pub(super) fn is_cancelled(
    id: &Json,
    inbox: &Receiver<Message>,
    pending: &mut VecDeque<Message>,
    ended: &mut bool,
) -> bool {
    while pending.len() < WAITING {
        match inbox.try_recv() {
            Ok(Message::Request(request))
                if request["method"] == "notifications/cancelled"
                    && request["params"]["requestId"] == *id =>
            {
                return true;
            }
            Ok(message) => pending.push_back(message),
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => {
                *ended = true;
                return false;
            }
        }
    }
    false
}
