//! Programs in the namespace of a real host.

use std::io;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Runs lines of a shell in the namespace of the calling thread, all at once, until the last has
/// ended or `stop` is set; what still runs then is killed. Says which did not end well.
pub fn run(lines: &[String], stop: &AtomicBool) -> Vec<String> {
    let mut failed = Vec::new();
    let mut running: Vec<(&String, Child)> = Vec::new();
    for line in lines {
        match start(line) {
            Ok(child) => running.push((line, child)),
            Err(error) => failed.push(format!("{line}: {error}")),
        }
    }
    while !running.is_empty() {
        let stopped = stop.load(Ordering::Relaxed);
        running.retain_mut(|(line, child)| {
            if stopped {
                // It may have ended just now.
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
            match child.try_wait() {
                Ok(None) => true,
                Ok(Some(status)) if status.success() => false,
                Ok(Some(status)) => {
                    failed.push(format!("{line}: {status}"));
                    false
                }
                Err(error) => {
                    failed.push(format!("{line}: {error}"));
                    false
                }
            }
        });
        pause();
    }
    failed
}

#[expect(clippy::disallowed_methods, reason = "this crate is where real time comes in")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

/// A shell that dies with this thread, where the system's setpriv(1) can see to it.
fn start(line: &str) -> io::Result<Child> {
    let mut tied = Command::new("setpriv");
    tied.args(["--pdeathsig", "KILL", "sh", "-c", line]);
    match tied.spawn() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Command::new("sh").args(["-c", line]).spawn()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_run_at_once_and_failures_are_told() {
        let lines = ["true", "exit 3", "sleep 0.1"].map(str::to_owned);
        let failed = run(&lines, &AtomicBool::new(false));
        assert_eq!(failed, ["exit 3: exit status: 3"]);
    }

    #[test]
    fn what_runs_when_it_is_stopped_is_killed() {
        let lines = ["sleep 1000".to_owned()];
        assert!(run(&lines, &AtomicBool::new(true)).is_empty());
    }
}
