//! The interface of a guest: a stack outside this program that runs in virtual time.

use std::path::PathBuf;

use units::Instant;

use crate::results::{GuestTcpInfo, HostResults};

/// An IP packet between a guest and the world. It is undamaged, so its checksum may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// From the first byte of the IP header to the end of the packet.
    pub bytes: &'a [u8],
    /// Payload of each segment of a burst that is still to be split (TSO); 0 for a single packet.
    pub gso_size: u16,
}

/// The receiver of a guest's packets.
pub trait Outlet {
    /// A packet leaves the guest at `at`. Returns the new limit: the guest must stop before that
    /// time until it is run again.
    fn send(&mut self, at: Instant, packet: &Packet<'_>) -> Instant;
}

/// A stack outside this program. Times are those of the world; equal calls give equal results.
pub trait Guest {
    /// Returns the next deadline; [`Instant::MAX`] if the guest waits for a packet.
    ///
    /// # Errors
    /// [`GuestError`].
    fn next_deadline(&mut self) -> Result<Instant, GuestError>;

    /// Delivers packets to the network card at `now`, in one interrupt.
    ///
    /// # Errors
    /// [`GuestError`].
    fn receive(&mut self, now: Instant, packets: &[Packet<'_>]) -> Result<(), GuestError>;

    /// Runs the guest at `now`, its deadline, until it has nothing to do before `limit`.
    ///
    /// # Errors
    /// [`GuestError`].
    fn run(
        &mut self,
        now: Instant,
        limit: Instant,
        outlet: &mut dyn Outlet,
    ) -> Result<(), GuestError>;

    /// Returns whether all applications have ended.
    fn is_finished(&self) -> bool;

    /// Returns the results of the applications and of the kernel.
    fn results(&self) -> &HostResults;

    /// Calls `each` for every state of a sender that it has reported since, with its time, in order. A guest that
    /// reports none needs nothing here.
    fn take_samples(&mut self, each: &mut dyn FnMut(Instant, GuestTcpInfo)) {
        let _ = each;
    }
}

/// Error that ends a guest.
#[derive(Debug)]
pub enum GuestError {
    /// The program cannot be started.
    Start {
        /// The program.
        program: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The process ended early: a kernel panic, a signal, or a program that is no kernel.
    Ended {
        /// The exit status.
        status: String,
        /// The last lines of the console.
        console: String,
    },
    /// The guest did not answer for this real time.
    Silent {
        /// Seconds.
        seconds: u16,
        /// The last lines of the console.
        console: String,
    },
    /// The guest violated the protocol of time travel or of vhost-user.
    Protocol {
        /// The violation.
        what: String,
        /// The last lines of the console.
        console: String,
    },
    /// Process 1 of the guest reported an error.
    Init {
        /// The error.
        message: String,
    },
    /// The system refused a resource that a guest needs.
    System {
        /// The refused resource.
        what: &'static str,
        /// The system's error.
        error: std::io::Error,
    },
}

impl GuestError {
    /// Returns the error of the operation `what`, for `map_err`.
    pub(crate) fn system(what: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::System { what, error }
    }

    /// Like [`Self::system`], for an error number.
    pub(crate) fn errno(what: &'static str) -> impl Fn(nix::errno::Errno) -> Self {
        move |error| Self::System { what, error: error.into() }
    }

    /// Creates a protocol violation; the caller that has the console adds it.
    pub(crate) fn protocol(what: impl Into<String>) -> Self {
        Self::Protocol { what: what.into(), console: String::new() }
    }
}

impl core::fmt::Display for GuestError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let console = match self {
            Self::Start { program, error } => {
                return write!(f, "{} cannot be started: {error}", program.display());
            }
            Self::Init { message } => return write!(f, "process 1 of the guest: {message}"),
            Self::System { what, error } => return write!(f, "{what}: {error}"),
            Self::Ended { status, console } => {
                write!(f, "the guest ended before its time ({status})")?;
                console
            }
            Self::Silent { seconds, console } => {
                write!(f, "the guest did not answer for {seconds} s")?;
                console
            }
            Self::Protocol { what, console } => {
                write!(f, "the guest broke the protocol: {what}")?;
                console
            }
        };
        match console.is_empty() {
            true => f.write_str("; its console is empty"),
            false => write!(f, "; the last lines of its console:\n{console}"),
        }
    }
}

impl core::error::Error for GuestError {}
