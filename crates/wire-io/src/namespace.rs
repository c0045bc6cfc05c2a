//! Real hosts: an unnamed network namespace with a TUN device.
//!
//! A thread leaves its parent's namespace (unshare(2)). The new namespace has no other reference,
//! so it vanishes with the last thread, socket and device in it, also after a crash or kill.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use nix::sched::{CloneFlags, unshare};
use tcp::profile::{Family, ReceiveBufferRule, SendBufferRule, TcpProfile};
use tun_rs::{DeviceBuilder, SyncDevice};
use units::Bytes;

/// Queue length of a device in packets (`txqueuelen`); the kernel's 500 are 6 ms at 1 Gbit/s.
const QUEUE: u32 = 20_000;

/// Error that prevents a real host.
#[derive(Debug)]
pub enum NamespaceError {
    /// The namespace cannot be created.
    Namespace(io::Error),
    /// The device cannot be created.
    Device(io::Error),
}

impl std::fmt::Display for NamespaceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Namespace(error) => write!(
                f,
                "cannot create a network namespace: {error}; this needs CAP_SYS_ADMIN (run as root), \
                 or a system that allows users to create user namespaces"
            ),
            Self::Device(error) => write!(
                f,
                "cannot create a TUN device: {error}; this needs CAP_NET_ADMIN (run as root) and the \
                 device /dev/net/tun (run `modprobe tun` if it is missing)"
            ),
        }
    }
}

impl std::error::Error for NamespaceError {}

impl NamespaceError {
    /// Returns whether a privilege or a device is missing.
    fn is_unavailable(&self) -> bool {
        let (Self::Namespace(error) | Self::Device(error)) = self;
        matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound)
    }
}

/// Moves the calling thread, and threads it spawns later, to a new network namespace.
///
/// # Errors
/// [`NamespaceError::Namespace`] without the privilege.
pub fn unshare_network() -> Result<(), NamespaceError> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|error| NamespaceError::Namespace(error.into()))
}

/// Makes the calling process root of a new user namespace, in which it can create network
/// namespaces; requires a single-threaded process. Does nothing if the user is root.
///
/// # Errors
/// [`NamespaceError::Namespace`] if the system forbids user namespaces.
pub fn become_root() -> Result<(), NamespaceError> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| NamespaceError::Namespace(error.into()))
}

/// Creates a TUN device in the namespace of the calling thread, up, with these addresses.
///
/// # Errors
/// [`NamespaceError::Device`] without the privilege or without /dev/net/tun.
pub fn device(v4: Ipv4Addr, v6: Ipv6Addr, mtu: u32) -> Result<SyncDevice, NamespaceError> {
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
        // Root of a user namespace may not set the queue length in this way (SIOCSIFTXQLEN); drops
        // at the default length are counted.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => make(None),
        made => made,
    };
    made.map_err(NamespaceError::Device)
}

/// Returns the path of the calling thread's namespace, for nsenter(1).
pub fn path() -> String {
    format!("/proc/{}/task/{}/ns/net", nix::unistd::getpid(), nix::unistd::gettid())
}

/// Returns whether a real host can match this profile.
pub fn is_linux(profile: &TcpProfile) -> bool {
    profile.family == Family::Linux
}

/// Returns the sysctls of a Linux profile by name; empty for other systems.
pub fn settings(profile: &TcpProfile) -> Vec<(&'static str, String)> {
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
    if let SendBufferRule::Linux { wmem, notsent_lowat, .. } = profile.send_buffer {
        settings.push(("net.ipv4.tcp_wmem", three(wmem)));
        settings.push(("net.ipv4.tcp_notsent_lowat", notsent_lowat.to_string()));
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
/// Errors of the kernel.
pub fn set_sysctl(name: &str, value: &str) -> io::Result<()> {
    let refused =
        |error: io::Error| io::Error::new(error.kind(), format!("{name}={value}: {error}"));
    fs::write(format!("/proc/sys/{}", name.replace('.', "/")), value).map_err(refused)
}

/// Returns the packets dropped by the device's full queue so far.
pub fn overflowed() -> u64 {
    // Columns of "wire": eight receive columns, then bytes, packets, errs, drop of transmit.
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("wire:"));
    line.and_then(|line| line.split_whitespace().nth(11)?.parse().ok()).unwrap_or(0)
}

/// Returns a TCP counter of the namespace, by its name in nstat without prefix: `TCPTimeouts`.
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

/// Returns the missing privilege or device for real hosts, if any, for tests that then skip. Other
/// errors appear when a host is created.
pub fn unavailable() -> Option<String> {
    let tried = std::thread::spawn(|| {
        unshare_network()?;
        device(Ipv4Addr::new(10, 0, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), 1_500)
            .map(drop)
    });
    match tried.join() {
        Ok(Err(error)) if error.is_unavailable() => Some(error.to_string()),
        _ => None,
    }
}
