//! Guests that do not boot, panic, or are killed give a clear error and leave no process and no
//! file.
#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "tests")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ackclock_guest::guest::GuestError;
use ackclock_guest::uml::{Protocol, UmlConfig, UmlGuest};
use ackclock_guest::{RunError, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use packet::Segment;
use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use support::{endpoints, guests, job, kernel, scenario};
use units::{Duration, Instant};

/// Serializes the tests: each checks for leftovers of this process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn config<'a>(kernel: &'a Path, init: &'a Path, patience: u16) -> UmlConfig<'a> {
    UmlConfig {
        kernel,
        init,
        plan: "four 10.0.0.1\n",
        memory: 64,
        seed: "1",
        clock_phase: Duration::ZERO,
        tso: true,
        lro: false,
        mtu: 1_500,
        protocol: Protocol::SharedMemory,
        patience,
    }
}

fn boot_error(config: &UmlConfig<'_>) -> GuestError {
    match UmlGuest::boot(config) {
        Ok(_) => panic!("it booted"),
        Err(error) => error,
    }
}

/// Returns the processes whose directory belongs to a guest of this process, stubs of kernels
/// included.
fn processes() -> Vec<i32> {
    let mark = format!("ackclock-guest-{}-", std::process::id());
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_ours = |number: &i32| {
        let directory = fs::read_link(format!("/proc/{number}/cwd"));
        directory.is_ok_and(|path| path.to_string_lossy().contains(&mark))
    };
    numbers.filter(is_ours).collect()
}

/// Asserts that no process and no directory of a guest is left.
fn assert_nothing_is_left() {
    let mark = format!("ackclock-guest-{}-", std::process::id());
    // The stubs of a killed kernel end shortly after it.
    for _ in 0..50 {
        if processes().is_empty() {
            break;
        }
        let _ = nix::poll::poll(&mut [], 100_u16);
    }
    assert_eq!(processes(), Vec::<i32>::new());
    for place in ["/dev/shm", "/tmp"] {
        let Ok(entries) = fs::read_dir(place) else { continue };
        let left = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let left: Vec<String> = left.filter(|name| name.starts_with(&mark)).collect();
        assert_eq!(left, Vec::<String>::new());
    }
}

/// Creates a file of this test with these bytes.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_kernel_that_is_not_there_is_named() {
    let _alone = alone();
    let init = file("init-missing", b"");
    let error = boot_error(&config(Path::new("/nonexistent/linux"), &init, 5)).to_string();
    assert!(error.starts_with("/nonexistent/linux cannot be started"), "{error}");
    assert_nothing_is_left();
}

#[test]
fn a_program_that_is_no_kernel_has_ended() {
    let _alone = alone();
    let program = file("no-kernel", b"#!/bin/sh\necho I am no kernel\nexit 3\n");
    let error = boot_error(&config(&program, &program, 5)).to_string();
    assert!(error.contains("exit status: 3") && error.contains("I am no kernel"), "{error}");
    assert_nothing_is_left();
}

#[test]
fn a_program_that_never_boots_is_given_up() {
    let _alone = alone();
    let program = file("never-boots", b"#!/bin/sh\necho not yet\nexec /bin/sleep 1000\n");
    let error = boot_error(&config(&program, &program, 1));
    let GuestError::Silent { seconds: 1, console } = &error else { panic!("{error}") };
    assert!(console.contains("not yet"), "{console}");
    assert_nothing_is_left();
}

#[test]
fn the_console_of_a_panic_is_shown() {
    let Some((kernel, _)) = kernel() else { return };
    let _alone = alone();
    let init = file("no-init", b"this cannot be executed");
    let error = boot_error(&config(&kernel, &init, 20));
    let GuestError::Ended { console, .. } = &error else { panic!("{error}") };
    assert!(console.contains("Kernel panic"), "{console}");
    assert_nothing_is_left();
}

/// Kills the kernels at the 100th packet.
struct Assassin {
    packets: u32,
}

impl Recorder for Assassin {
    const ON: bool = false;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}
}

impl Observer for Assassin {
    fn tap(&mut self, _: Instant, _: usize, _: bool, _: &Segment) {
        self.packets += 1;
        if self.packets == 100 {
            for process in processes() {
                let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
            }
        }
    }
}

#[test]
fn a_guest_that_is_killed_is_named_with_the_time() {
    let Some(kernel) = kernel() else { return };
    let _alone = alone();
    let scenario = scenario(1_000_000);
    let (guests, endpoints) = (guests(&kernel, &[0]), endpoints(&scenario));
    let error =
        run(&job(&scenario, &guests, &endpoints), &mut Assassin { packets: 0 }).unwrap_err();
    let RunError::Guest { host, at: Some(at), error } = &error else { panic!("{error}") };
    assert_eq!(host, "sender");
    assert!(at.as_nanos() > 20_000_000, "{at:?}");
    let text = error.to_string();
    assert!(text.contains("ended before its time") && text.contains("SIGKILL"), "{text}");
    assert_nothing_is_left();
}

#[test]
fn a_good_run_leaves_nothing_behind() {
    let Some(kernel) = kernel() else { return };
    let _alone = alone();
    let scenario = scenario(10_000);
    let (guests, endpoints) = (guests(&kernel, &[0, 1]), endpoints(&scenario));
    run(&job(&scenario, &guests, &endpoints), &mut record::NullRecorder).unwrap();
    assert_nothing_is_left();
}
