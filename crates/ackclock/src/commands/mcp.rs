//! `ackclock mcp`: a server of the Model Context Protocol on standard input and output.
//!
//! The transport is "stdio" of the specification (revision 2025-11-25): JSON-RPC 2.0, one message a
//! line. The server has tools and nothing else. A call of a tool runs this program once more with
//! `--json` ([`call`]), so that limits of time hold whatever the call does, and answers are those of
//! the command line.

#[cfg(target_os = "linux")]
mod bounds;
mod call;
mod messages;
mod shorten;
mod tools;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::Receiver;

use serde_json::{Value as Json, json};

use crate::cli::McpArgs;
use crate::failure::Failure;
use crate::output::print;
use crate::visible::ShownPath as _;
use call::{CallLimits, Ended};
use messages::{Message, read_messages};
use tools::ToolRequest;

/// Revisions of the protocol, newest last.
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// Error codes of JSON-RPC 2.0.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const METHOD_NOT_FOUND: i32 = -32_601;
const INVALID_PARAMS: i32 = -32_602;

const INSTRUCTIONS: &str = "\
Ackclock finds out why a TCP or QUIC transfer is slow. Begin with `diagnose` on a capture or a qlog; its `primary` \
is the code of the finding that limited the transfer, `findings` have evidence, cause and cure, `cures` the time with each cure. `explain` gives the \
background of a code, `flow` one connection in full, `whatif` the same transfer with other senders or settings. \
Quote the evidence, not only the code. Files are named by absolute paths or relative to the first allowed folder.";

pub(super) fn run(args: &McpArgs) -> Result<ExitCode, Failure> {
    let mut folders = Vec::new();
    for folder in &args.allow {
        let canonical = folder.canonicalize();
        let canonical = canonical.map_err(|error| Failure::file("read", folder, &error))?;
        if !canonical.is_dir() {
            return Err(Failure::new(format!("--allow {}: not a folder", folder.shown())));
        }
        folders.push(canonical);
    }
    let limits = CallLimits {
        time: std::time::Duration::from_nanos(args.time_limit.as_nanos()),
        answer: usize::try_from(args.answer_limit.get()).unwrap_or(usize::MAX),
        file: args.file_limit.get(),
        memory: args.memory_limit.get(),
    };
    let (inbox, pending) = (read_messages(), VecDeque::new());
    let mut server = Server { folders, limits, inbox, pending, ended: false };
    server.serve()?;
    Ok(ExitCode::SUCCESS)
}

struct Server {
    /// The allowed folders, canonical.
    folders: Vec<PathBuf>,
    limits: CallLimits,
    inbox: Receiver<Message>,
    /// Messages that arrived during a call.
    pending: VecDeque<Message>,
    /// Standard input has ended.
    ended: bool,
}

impl Server {
    fn serve(&mut self) -> Result<(), Failure> {
        loop {
            let next = match self.pending.pop_front() {
                Some(message) => Some(message),
                None if self.ended => None,
                None => self.inbox.recv().ok(),
            };
            let Some(message) = next else { return Ok(()) };
            let answer = match message {
                Message::Request(request) => self.answer(&request),
                Message::TooLong => Some(error(&Json::Null, INVALID_REQUEST, messages::TOO_LONG)),
                Message::Malformed(why) => Some(error(&Json::Null, PARSE_ERROR, &why)),
            };
            if let Some(answer) = answer {
                print(&format!("{answer}\n"))?;
            }
        }
    }

    /// Answers a message; notifications have no answer.
    fn answer(&mut self, request: &Json) -> Option<Json> {
        let Some(method) = request["method"].as_str().filter(|_| request["jsonrpc"] == "2.0")
        else {
            // An answer to a request, of which this server sends none, is not answered.
            let is_answer = request.get("result").is_some() || request.get("error").is_some();
            let text = "expected one JSON-RPC 2.0 message a line; batches are not supported";
            return (!is_answer).then(|| error(&request["id"], INVALID_REQUEST, text));
        };
        let id = request.get("id")?;
        let params = &request["params"];
        let result = match method {
            "initialize" => initialize(params),
            "ping" => json!({}),
            "tools/list" => json!({ "tools": tools::list() }),
            "tools/call" => return self.call(id, params),
            unknown => {
                let text = format!("unknown method `{unknown}`");
                return Some(error(id, METHOD_NOT_FOUND, &text));
            }
        };
        Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    /// Calls a tool; a cancelled call has no answer.
    fn call(&mut self, id: &Json, params: &Json) -> Option<Json> {
        let name = params["name"].as_str().unwrap_or_default();
        let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
        let request = match ToolRequest::of(name, arguments, &self.folders, self.limits.file) {
            None => {
                let text = format!("unknown tool `{name}`; tools are {}", tools::NAMES.join(", "));
                return Some(error(id, INVALID_PARAMS, &text));
            }
            Some(request) => request,
        };
        let (is_error, text) = match request {
            Err(text) => (true, text),
            Ok(request) => {
                let (inbox, pending, ended) = (&self.inbox, &mut self.pending, &mut self.ended);
                let stop = || messages::is_cancelled(id, inbox, pending, ended);
                match call::run(&request, &self.folders, &self.limits, stop) {
                    Ended::Cancelled => return None,
                    Ended::Answered(text) => (false, text),
                    Ended::Failed(text) => (true, text),
                }
            }
        };
        let result = json!({ "content": [{ "type": "text", "text": text }], "isError": is_error });
        Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }
}

fn initialize(params: &Json) -> Json {
    let wanted = params["protocolVersion"].as_str().unwrap_or_default();
    let newest = REVISIONS[REVISIONS.len() - 1];
    let revision = REVISIONS.into_iter().find(|known| *known == wanted).unwrap_or(newest);
    json!({
        "protocolVersion": revision,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "ackclock", "version": env!("CARGO_PKG_VERSION") },
        "instructions": INSTRUCTIONS,
    })
}

fn error(id: &Json, code: i32, text: &str) -> Json {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } })
}
