//! The interpreter of a thread: a child that answers requests, one a line.

use core::cell::RefCell;
use core::fmt::Debug;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use cc::external::ControllerError;
use serde_json::Value;

use super::{LOSS_FIELDS, REPORT_FIELDS};

/// The program that runs the class.
const HOST: &str = include_str!("host.py");

/// Names of the interpreter, in order.
const PYTHONS: [&str; 2] = ["python3", "python"];

/// File and class.
#[derive(Debug)]
pub(super) struct PythonCommand {
    file: PathBuf,
    class: String,
}

impl PythonCommand {
    pub(super) fn new(file: PathBuf, class: &str) -> Self {
        Self { file, class: class.to_owned() }
    }
}

/// A running interpreter. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct PythonProcess {
    child: Child,
    requests: Option<BufWriter<ChildStdin>>,
    answers: BufReader<ChildStdout>,
    line: String,
}

thread_local! {
    /// The interpreters of this thread, each with its file and class.
    static OF_THREAD: RefCell<Vec<ThreadProcess>> = const { RefCell::new(Vec::new()) };
}

type ThreadProcess = (Arc<PythonCommand>, Arc<Mutex<PythonProcess>>);

/// The interpreter of this thread for this class; starts it at the first call.
pub(super) fn of_thread(
    command: &Arc<PythonCommand>,
) -> Result<Arc<Mutex<PythonProcess>>, ControllerError> {
    OF_THREAD.with_borrow_mut(|all| {
        if let Some((_, process)) = all.iter().find(|(of, _)| Arc::ptr_eq(of, command)) {
            return Ok(Arc::clone(process));
        }
        let (process, _) = PythonProcess::start(command)?;
        let process = Arc::new(Mutex::new(process));
        all.push((Arc::clone(command), Arc::clone(&process)));
        Ok(process)
    })
}

impl PythonProcess {
    /// Starts an interpreter, and returns its description of the class too.
    pub(super) fn start(command: &PythonCommand) -> Result<(Self, Value), ControllerError> {
        let start = |python: &&str| {
            Command::new(python)
                .args(["-c", HOST])
                .arg(&command.file)
                .args([&command.class, REPORT_FIELDS, LOSS_FIELDS])
                // Sets and dictionaries of text in the same order every time.
                .env("PYTHONHASHSEED", "0")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .ok()
        };
        let none = || ControllerError("there is no python3 to run it with".to_owned());
        let mut child = PYTHONS.iter().find_map(start).ok_or_else(none)?;
        let (requests, answers) = (child.stdin.take(), child.stdout.take());
        let answers = BufReader::new(answers.ok_or_else(none)?);
        let requests = requests.map(BufWriter::new);
        let mut process = Self { child, requests, answers, line: String::new() };
        let answer = process.answer()?;
        match answer.get("error").and_then(Value::as_str) {
            // It begins with the line in parentheses, or with a colon.
            Some(error) => Err(ControllerError(error.trim_start_matches([':', ' ']).to_owned())),
            None => Ok((process, answer)),
        }
    }

    /// Sends a request that has no answer. A child that has ended is detected at the next answer.
    pub(super) fn send(&mut self, request: &Value) {
        if let Some(requests) = &mut self.requests {
            let _ = writeln!(requests, "{request}");
        }
    }

    /// Sends a request and waits for the answer.
    pub(super) fn ask(&mut self, request: &Value) -> Result<Value, ControllerError> {
        self.send(request);
        if let Some(requests) = &mut self.requests {
            let _ = requests.flush();
        }
        self.answer()
    }

    fn answer(&mut self) -> Result<Value, ControllerError> {
        self.line.clear();
        let read = self.answers.read_line(&mut self.line);
        if !read.is_ok_and(|bytes| bytes > 0) {
            return Err(ControllerError("the Python interpreter ended early".to_owned()));
        }
        serde_json::from_str(&self.line)
            .map_err(|error| ControllerError(format!("unreadable answer of Python: {error}")))
    }
}

impl Drop for PythonProcess {
    fn drop(&mut self) {
        // Without requests the program ends.
        self.requests = None;
        let _ = self.child.wait();
    }
}
