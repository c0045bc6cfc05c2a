//! A call of a tool: this program once more, with limits of time and length.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::shorten::shorten;
use super::tools::ToolRequest;
use crate::budget::OUT_OF_MEMORY;
use crate::input::ALLOWED_FOLDERS;

/// Limits of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallLimits {
    /// Longest time.
    pub(super) time: Duration,
    /// Longest answer, in bytes.
    pub(super) answer: usize,
    /// Largest file, in bytes.
    pub(super) file: u64,
    /// Most memory, in bytes; on Linux.
    pub(super) memory: u64,
}

/// How a call ended.
pub(super) enum Ended {
    /// With an answer.
    Answered(String),
    /// With an error that the client can act on.
    Failed(String),
    /// The client does not wait for it.
    Cancelled,
}

/// Output that is read of a process: more cannot be shortened.
const MOST_OUTPUT: u64 = 64 << 20;
/// Time between two looks at the process.
const STEP: Duration = Duration::from_millis(5);

/// Runs the program of a request; `stop` is asked every few milliseconds whether to end it.
pub(super) fn run(
    request: &ToolRequest,
    folders: &[PathBuf],
    limits: &CallLimits,
    stop: impl FnMut() -> bool,
) -> Ended {
    let started = start(request, folders, limits);
    let (mut child, out, err) = match started {
        Ok(started) => started,
        Err(error) => return Ended::Failed(format!("cannot start ackclock: {error}")),
    };
    let status = wait(&mut child, limits.time, stop);
    // After a kill the pipes are not waited for: processes of the call may still have them.
    let [out, err] = match status {
        Wait::Ended(_) => [out, err].map(|reader| reader.join().unwrap_or_default()),
        _ => [String::new(), String::new()],
    };
    match status {
        Wait::Cancelled => Ended::Cancelled,
        Wait::TooLong => Ended::Failed(format!(
            "stopped after {} s (--time-limit); try a smaller file, one flow, or a shorter duration",
            limits.time.as_secs_f64()
        )),
        Wait::Ended(status) if is_answer(status, &out) => match shorten(&out, limits.answer) {
            Some(text) => Ended::Answered(text),
            None => Ended::Failed(format!(
                "the answer has {} bytes, more than {} (--answer-limit); ask for one flow, or a lower limit",
                out.len(),
                limits.answer
            )),
        },
        Wait::Ended(_) if err.contains(OUT_OF_MEMORY) => Ended::Failed(format!(
            "stopped at {} MB of memory (--memory-limit); try a smaller file, one flow, or a \
             smaller scenario",
            limits.memory / 1_000_000
        )),
        Wait::Ended(_) if err.is_empty() => {
            Ended::Failed("ackclock ended without an answer".to_owned())
        }
        Wait::Ended(_) => Ended::Failed(err.chars().take(limits.answer).collect()),
    }
}

/// Status 1 is an answer too: findings, or packets that differ.
fn is_answer(status: ExitStatus, out: &str) -> bool {
    matches!(status.code(), Some(0 | 1)) && !out.is_empty()
}

type Started = (Child, JoinHandle<String>, JoinHandle<String>);

fn start(
    request: &ToolRequest,
    folders: &[PathBuf],
    limits: &CallLimits,
) -> std::io::Result<Started> {
    // Without /proc the path is unknown: then by the name it was started with.
    let program = std::env::current_exe()
        .ok()
        .map(PathBuf::into_os_string)
        .or_else(|| std::env::args_os().next())
        .unwrap_or_else(|| OsString::from("ackclock"));
    let allowed = std::env::join_paths(folders).map_err(std::io::Error::other)?;
    let mut command = Command::new(program);
    command.args(&request.arguments).env(ALLOWED_FOLDERS, allowed).env("NO_COLOR", "1");
    if let Some(folder) = folders.first() {
        command.current_dir(folder);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(target_os = "linux")]
    super::bounds::apply(&mut command, limits);
    #[cfg(not(target_os = "linux"))]
    let _ = limits;
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A scenario is shorter than what a message may have; a process that does not read it has ended.
        let text = request.input.clone().unwrap_or_default();
        thread::spawn(move || drop(input.write_all(text.as_bytes())));
    }
    let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    Ok((child, out, err))
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            let _ = pipe.take(MOST_OUTPUT).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

enum Wait {
    Ended(ExitStatus),
    TooLong,
    Cancelled,
}

/// Waits for the process, and ends it where it must.
#[expect(clippy::disallowed_methods, reason = "a limit of wall-clock time")]
fn wait(child: &mut Child, limit: Duration, mut stop: impl FnMut() -> bool) -> Wait {
    let begin = Instant::now();
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => return Wait::Ended(status),
            Ok(None) if begin.elapsed() >= limit => break Wait::TooLong,
            Ok(None) if stop() => break Wait::Cancelled,
            Ok(None) => thread::sleep(STEP),
            Err(_) => break Wait::TooLong,
        }
    };
    let _ = child.kill();
    let _ = child.wait();
    ended
}
