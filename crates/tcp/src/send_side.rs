//! What a connection sends: what all stacks share, and the stack that decides.

use core::ops::{Deref, DerefMut};

use crate::config::TcpConfig;
use crate::profile::TcpProfile;
use crate::sender::Sender;
use crate::stacks::Stack;

/// What a connection sends, by its stack. Its steps read
/// [`Connection`](crate::connection::Connection) and set timers; they do not reach the receiving
/// side.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct SendSide {
    pub(crate) sender: Sender,
    /// Loss detection and its state.
    pub(crate) stack: Stack,
}

impl Deref for SendSide {
    type Target = Sender;

    #[inline(always)]
    fn deref(&self) -> &Sender {
        &self.sender
    }
}

impl DerefMut for SendSide {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Sender {
        &mut self.sender
    }
}

impl SendSide {
    /// The sending side of a connection that is not open.
    pub(crate) fn new(cfg: &TcpConfig) -> Self {
        Self { sender: Sender::new(cfg), stack: Stack::NewReno }
    }

    /// Begins loss detection once the handshake is complete; `sack`: SACK was negotiated.
    pub(crate) fn begin_loss_detection(&mut self, profile: &TcpProfile, sack: bool) {
        self.stack = Stack::new(profile, sack);
        self.settle_flight();
    }

    /// Corrects the estimate of the bytes in flight after a change of the stack's own scoreboard.
    pub(crate) fn settle_flight(&mut self) {
        self.sender.flight = self.stack.flight();
    }
}
