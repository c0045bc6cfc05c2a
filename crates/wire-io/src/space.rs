//! Real hosts: a network namespace without a name, and a TUN device in it.
//!
//! A thread leaves its parent's namespace (unshare(2)) and nothing else knows of the new one: it
//! vanishes with the last thread, socket and device in it, after a crash and a kill as well.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use nix::sched::{CloneFlags, unshare};
use tcp::profile::{Family, Profile, ReceiveBufferRule, SendBufferRule};
use tun_rs::{DeviceBuilder, SyncDevice};
use units::Bytes;

/// Packets that wait in a device for this program (`txqueuelen`); the kernel's 500 are 6 ms at 1 Gbit/s.
const QUEUE: u32 = 20_000;

/// Why a real host cannot be had.
#[derive(Debug)]
pub enum SpaceError {
    /// The kernel refuses a namespace.
    Namespace(io::Error),
    /// The kernel refuses a device.
    Device(io::Error),
}

impl std::fmt::Display for SpaceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Namespace(error) => write!(
                f,
                "cannot make a network namespace: {error}; this takes CAP_SYS_ADMIN (run it as root), \
                 or a system that lets users make user namespaces"
            ),
            Self::Device(error) => write!(
                f,
                "cannot make a TUN device: {error}; this takes CAP_NET_ADMIN (run it as root) and the \
                 device /dev/net/tun (`modprobe tun` where it is missing)"
            ),
        }
    }
}

impl std::error::Error for SpaceError {}

impl SpaceError {
    /// Is it a privilege or a device that is lacking?
    fn is_lack(&self) -> bool {
        let (Self::Namespace(error) | Self::Device(error)) = self;
        matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound)
    }
}

/// Moves the calling thread, and the threads that it will make, to a network namespace of its own.
///
/// # Errors
/// [`SpaceError::Namespace`] without the privilege.
pub fn leave() -> Result<(), SpaceError> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|error| SpaceError::Namespace(error.into()))
}

/// Makes the calling process root of a user namespace of its own, where it may make network
/// namespaces; only a process with one thread can. Does nothing for who is privileged already.
///
/// # Errors
/// [`SpaceError::Namespace`] where the system does not let users do so.
pub fn become_root() -> Result<(), SpaceError> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| SpaceError::Namespace(error.into()))
}

/// A TUN device in the namespace of the calling thread, up, with these addresses.
///
/// # Errors
/// [`SpaceError::Device`] without the privilege or without /dev/net/tun.
pub fn device(v4: Ipv4Addr, v6: Ipv6Addr, mtu: u32) -> Result<SyncDevice, SpaceError> {
    let make = |queue: Option<u32>| -> io::Result<SyncDevice> {
        let mut builder = DeviceBuilder::new()
            .name("wire")
            .offload(true)
            .mtu(mtu.min(u32::from(u16::MAX)) as u16)
            .ipv4(v4, 8, None)
            .ipv6(v6, 64);
        if let Some(packets) = queue {
            builder = builder.tx_queue_len(packets);
        }
        let device = builder.build_sync()?;
        device.set_nonblocking(true)?;
        Ok(device)
    };
    let made = match make(Some(QUEUE)) {
        // Who is root in a namespace of users only may not ask for a longer queue in this way
        // (SIOCSIFTXQLEN): what finds no room in the usual one is counted.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => make(None),
        made => made,
    };
    made.map_err(SpaceError::Device)
}

/// Where the calling thread's namespace is, for nsenter(1).
pub fn path() -> String {
    format!("/proc/{}/task/{}/ns/net", nix::unistd::getpid(), nix::unistd::gettid())
}

/// Whether a real host can be what this profile says.
pub fn is_linux(profile: &Profile) -> bool {
    profile.family == Family::Linux
}

/// What a profile of Linux says of a host's sysctls, by their names; those of another system are
/// left as they are.
pub fn settings(profile: &Profile) -> Vec<(&'static str, String)> {
    if !is_linux(profile) {
        return Vec::new();
    }
    let switch = |on: bool| u32::from(on).to_string();
    let three = |sizes: [Bytes; 3]| sizes.map(|size| size.get().to_string()).join(" ");
    let mut settings = vec![
        ("net.ipv4.tcp_timestamps", switch(profile.timestamps)),
        ("net.ipv4.tcp_sack", switch(profile.sack)),
        ("net.ipv4.tcp_window_scaling", switch(profile.window_scaling)),
        ("net.ipv4.tcp_slow_start_after_idle", switch(profile.after_idle)),
    ];
    if let SendBufferRule::Linux { wmem } = profile.send_buffer {
        settings.push(("net.ipv4.tcp_wmem", three(wmem)));
    }
    if let ReceiveBufferRule::Linux { rmem, auto, .. } = profile.receive_buffer {
        settings.push(("net.ipv4.tcp_rmem", three(rmem)));
        settings.push(("net.ipv4.tcp_moderate_rcvbuf", switch(auto)));
    }
    settings
}

/// Writes a sysctl of the calling thread's namespace: `net.ipv4.tcp_rmem`.
///
/// # Errors
/// The kernel's.
pub fn set_sysctl(name: &str, value: &str) -> io::Result<()> {
    let refused =
        |error: io::Error| io::Error::new(error.kind(), format!("{name}={value}: {error}"));
    fs::write(format!("/proc/sys/{}", name.replace('.', "/")), value).map_err(refused)
}

/// Packets for which the device's queue had no room, so far.
pub fn overflowed() -> u64 {
    // Columns of "wire": eight of receipt, then bytes, packets, errs, drop of sending.
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("wire:"));
    line.and_then(|line| line.split_whitespace().nth(11)?.parse().ok()).unwrap_or(0)
}

/// A counter of the namespace's TCP, by the names of nstat without their prefix: `TCPTimeouts`.
pub fn tcp_counter(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/netstat").unwrap_or_default();
    // Lines come in pairs: names, values.
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        if let Some(at) = names.split_whitespace().position(|known| known == name) {
            return values.split_whitespace().nth(at).and_then(|n| n.parse().ok()).unwrap_or(0);
        }
    }
    0
}

/// Which privilege or device is lacking for real hosts, if one is; for tests that then say why they
/// skip. Any other trouble is none of that: it shows when a host is made.
pub fn unavailable() -> Option<String> {
    let tried = std::thread::spawn(|| {
        leave()?;
        device(Ipv4Addr::new(10, 0, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), 1_500)
            .map(drop)
    });
    match tried.join() {
        Ok(Err(error)) if error.is_lack() => Some(error.to_string()),
        _ => None,
    }
}
