//! The interface of a real stack that a script drives in place of the model.

use core::net::IpAddr;

use tcp::profile::TcpProfile;
use units::Instant;

/// How the host of a script is to be configured when it starts.
#[derive(Debug, Clone)]
pub struct BootOptions {
    /// The profile that the script is for; the host has its sysctls.
    pub profile: TcpProfile,
    /// Largest IP packet.
    pub mtu: u32,
    /// The network card splits bursts.
    pub tso: bool,
    /// The card delivers packets that are larger than the MTU: the script has some.
    pub large: bool,
    /// Its addresses, of IPv4 and of IPv6.
    pub local: [IpAddr; 2],
    /// Those of the peer.
    pub remote: [IpAddr; 2],
}

/// A packet that the host has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealPacket {
    /// Its time.
    pub at: Instant,
    /// From the IP header to the end.
    pub bytes: Vec<u8>,
    /// Payload of each segment of a burst that is still to be split; 0 for a single packet.
    pub gso_size: u16,
}

/// A real host in virtual time. Errors are texts: a script cannot go on after one.
///
/// The text of a system call has its number, 1 if it may block, its name and its arguments, separated by blanks. A
/// result has the number, the return value, the name of the error or `-`, and what was returned by pointer.
pub trait RealHost {
    /// Returns the time of the next timer.
    ///
    /// # Errors
    /// The host has failed.
    fn next_deadline(&mut self) -> Result<Instant, String>;

    /// Runs the host at `now`, its deadline, until `limit` or until it has sent a packet.
    ///
    /// # Errors
    /// The host has failed.
    fn run(
        &mut self,
        now: Instant,
        limit: Instant,
        packets: &mut Vec<RealPacket>,
    ) -> Result<(), String>;

    /// Delivers IP packets at `now`, in one interrupt.
    ///
    /// # Errors
    /// The host has failed.
    fn receive(&mut self, now: Instant, packets: &[Vec<u8>]) -> Result<(), String>;

    /// Makes a system call at `now`.
    ///
    /// # Errors
    /// The host has failed.
    fn call(&mut self, now: Instant, call: &str) -> Result<(), String>;

    /// Returns the results of calls that have ended since.
    fn take_results(&mut self) -> Vec<String>;
}

/// Starts a host for a script.
pub type Boot<'a> = &'a dyn Fn(&BootOptions) -> Result<Box<dyn RealHost>, String>;
