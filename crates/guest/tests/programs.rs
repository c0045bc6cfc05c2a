//! A guest that is a program of its own.
#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "tests")]

mod support;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;

use ackclock_guest::guest::{Guest, GuestError, Outlet, Packet};
use ackclock_guest::kernel::check::PacketDigest;
use ackclock_guest::socket::SocketGuest;
use ackclock_guest::{GuestProgram, Job, RunError, run};
use support::{endpoints, job, scenario};
use units::{Bytes, Instant};

fn receiver() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/receiver.py")
}

#[test]
fn a_program_is_a_host_and_its_run_the_same_twice() {
    let scenario = scenario(200_000);
    let endpoints = endpoints(&scenario);
    let programs = [GuestProgram { host: 1, program: receiver() }];
    let job = Job { programs: &programs, ..job(&scenario, &[], &endpoints) };
    let once = || {
        let mut digest = PacketDigest::default();
        let done = run(&job, &mut digest).unwrap_or_else(|error| panic!("{error}"));
        let flow = &done.outcome.flows[0];
        assert_eq!((flow.bytes, flow.finished), (Bytes(200_000), true));
        // 200 kB at 10 Mbit/s, and a round trip of 20 ms for the handshake.
        let millis = flow.duration.as_millis();
        assert!((170..600).contains(&millis), "{millis}");
        digest.finish()
    };
    assert_eq!(once(), once());
}

#[test]
fn a_program_that_ends_or_is_none_is_an_error_with_its_output() {
    let scenario = scenario(1_000);
    let endpoints = endpoints(&scenario);
    let failed = |program: &str| {
        let programs = [GuestProgram { host: 1, program: program.into() }];
        let job = Job { programs: &programs, ..job(&scenario, &[], &endpoints) };
        match run(&job, &mut PacketDigest::default()) {
            Err(RunError::Guest { host, at: None, error }) if host == "sink" => error,
            other => panic!("{program}: {other:?}"),
        }
    };
    assert!(matches!(failed("/bin/true"), GuestError::Ended { .. }));
    assert!(matches!(failed("/no/such/program"), GuestError::Start { .. }));
    assert!(matches!(failed("/etc/passwd"), GuestError::Start { .. }));
}

struct NoOutlet;

impl Outlet for NoOutlet {
    fn send(&mut self, at: Instant, _: &Packet<'_>) -> Instant {
        at
    }
}

/// Answers of another program to `HELLO` and `RUN`, and what becomes of them.
#[test]
fn a_program_that_breaks_the_protocol_is_an_error() {
    let message = |kind: u32, time: u64, body: &[u8]| {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&time.to_le_bytes());
        bytes.extend_from_slice(body);
        bytes
    };
    let later = message(19, 500, &[0]);
    let bad = [
        // A deadline in the past, a packet in the past, one too short, an unknown kind, a huge body, the end.
        message(19, 499, &[0]),
        message(17, 499, &[0; 44]),
        message(17, 500, &[0; 3]),
        message(3, 500, &[]),
        [&17_u32.to_le_bytes()[..], &u32::MAX.to_le_bytes(), &[0; 8]].concat(),
        Vec::new(),
    ];
    for answer in bad {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let other = thread::scope(|scope| {
            scope.spawn(|| {
                let mut heard = [0; 4_096];
                let _ = theirs.read(&mut heard).unwrap();
                theirs.write_all(&later).unwrap();
                let _ = theirs.read(&mut heard).unwrap();
                theirs.write_all(&answer).unwrap();
                drop(theirs);
            });
            let mut guest = SocketGuest::connected(ours, "version 1\n", 5).unwrap();
            let at = Instant::from_nanos(500);
            assert_eq!(guest.next_deadline().unwrap(), at);
            guest.run(at, Instant::from_nanos(600), &mut NoOutlet)
        });
        assert!(other.is_err(), "{answer:?}");
    }
}
