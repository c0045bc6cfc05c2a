//! A kernel that a packet script drives, in virtual time.
//!
//! A system call of the script is a datagram to process 1 (recipe/script.c), which arrives at the network card
//! at the time of the call; its result is a line of the console. Both cost the guest no time, except 256 ns for
//! each reading of its clock.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use script::real::{BootOptions, RealHost, RealPacket};
use units::{Duration, Instant};

use crate::guest::{Guest as _, GuestError, Outlet, Packet};
use crate::plan::script_plan;
use crate::uml::{PATIENCE, Protocol, UmlConfig, UmlGuest};

/// Port of process 1 for system calls.
const CALL_PORT: u16 = 7;
/// Memory of a guest in MiB.
const MEMORY: u32 = 64;

/// A kernel that a script drives.
#[derive(Debug)]
pub struct ScriptGuest {
    guest: UmlGuest,
    local: IpAddr,
    remote: IpAddr,
}

impl ScriptGuest {
    /// Boots a kernel for a script.
    ///
    /// # Errors
    /// [`GuestError`].
    pub fn boot(kernel: &Path, init: &Path, options: &BootOptions) -> Result<Self, GuestError> {
        let plan = script_plan(&options.profile, options.mtu, options.local);
        let config = UmlConfig {
            kernel,
            init,
            plan: &plan,
            memory: MEMORY,
            seed: "script",
            clock_phase: Duration::ZERO,
            tso: options.tso,
            lro: options.large,
            mtu: options.mtu.min(u32::from(u16::MAX)) as u16,
            protocol: Protocol::default(),
            patience: PATIENCE,
        };
        let guest = UmlGuest::boot(&config)?;
        if let Some(refused) = guest.results().refused.first() {
            return Err(GuestError::Init { message: format!("the kernel refuses {refused}") });
        }
        Ok(Self { guest, local: options.local[0], remote: options.remote[0] })
    }
}

/// Collects the packets of a turn, and ends the turn after the first.
struct Collector<'a> {
    packets: &'a mut Vec<RealPacket>,
}

impl Outlet for Collector<'_> {
    fn send(&mut self, at: Instant, packet: &Packet<'_>) -> Instant {
        let bytes = packet.bytes.to_vec();
        self.packets.push(RealPacket { at, bytes, gso_size: packet.gso_size });
        at
    }
}

impl RealHost for ScriptGuest {
    fn next_deadline(&mut self) -> Result<Instant, String> {
        self.guest.next_deadline().map_err(|error| error.to_string())
    }

    fn run(
        &mut self,
        now: Instant,
        limit: Instant,
        packets: &mut Vec<RealPacket>,
    ) -> Result<(), String> {
        let run = self.guest.run(now, limit, &mut Collector { packets });
        run.map_err(|error| error.to_string())
    }

    fn receive(&mut self, now: Instant, packets: &[Vec<u8>]) -> Result<(), String> {
        let packets: Vec<_> = packets.iter().map(|bytes| Packet { bytes, gso_size: 0 }).collect();
        self.guest.receive(now, &packets).map_err(|error| error.to_string())
    }

    fn call(&mut self, now: Instant, call: &str) -> Result<(), String> {
        let from = SocketAddr::new(self.remote, CALL_PORT);
        let to = SocketAddr::new(self.local, CALL_PORT);
        let datagram =
            datagram(from, to, call.as_bytes()).ok_or("the guest has no IPv4 address")?;
        self.receive(now, &[datagram])
    }

    fn take_results(&mut self) -> Vec<String> {
        self.guest.take_calls()
    }
}

/// Returns an IPv4 packet with a UDP datagram without checksum (RFC 768).
fn datagram(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Option<Vec<u8>> {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (from.ip(), to.ip()) else { return None };
    let len = u16::try_from(28 + payload.len()).ok()?;
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&len.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
    packet.extend_from_slice(&source.octets());
    packet.extend_from_slice(&destination.octets());
    let sum: u32 = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    for field in [from.port(), to.port(), len - 20, 0] {
        packet.extend_from_slice(&field.to_be_bytes());
    }
    packet.extend_from_slice(payload);
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_datagram() {
        let address = |last, port| SocketAddr::from(([192, 168, 0, last], port));
        let packet = datagram(address(199, 68), address(1, 7), b"1 0 close 3").unwrap();
        // The example of RFC 1071's method: the sum over the header with its checksum is 0xffff.
        let sum: u32 =
            packet[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        assert_eq!(packet.len(), 39);
        assert_eq!(&packet[20..28], [0, 68, 0, 7, 0, 19, 0, 0]);
        assert_eq!(datagram(SocketAddr::from(([0; 8], 1)), address(1, 7), b""), None);
    }
}
