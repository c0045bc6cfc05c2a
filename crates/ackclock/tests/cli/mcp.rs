//! Tests of `ackclock mcp`: messages of a client, line by line.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::test_directory::{SMALL, TestDirectory};

fn root(file: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file).display().to_string()
}

/// Sends lines to a server of these arguments; returns its answers.
fn exchange_lines(dir: &TestDirectory, arguments: &[&str], lines: &str) -> Vec<Value> {
    let mut command = dir.command(arguments);
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    server.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = server.wait_with_output().unwrap();
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).unwrap();
    answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn call(id: u32, name: &str, arguments: &Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

fn exchange(dir: &TestDirectory, arguments: &[&str], messages: &[Value]) -> Vec<Value> {
    let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
    exchange_lines(dir, arguments, &lines)
}

/// The text of a tool's answer, which must be no error, or one.
fn text(answer: &Value, is_error: bool) -> &str {
    assert_eq!(answer["result"]["isError"], is_error, "{answer:#}");
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

/// Ten recorded Linux transfers, each made with one cause (`label` in its scenario.json), and the code
/// of that cause.
const CAUSES: [(&str, &str); 10] = [
    ("a1_slowstart_cubic", "CC102"),
    ("c1_loss1p_rtt2_reno", "CC201"),
    ("e1_tailloss_cubic", "CC203"),
    ("g1_rto_cubic", "CC204"),
    ("g2_spurious_rto_cubic", "CC303"),
    ("h1_rwnd_cubic", "CC401"),
    ("h2_slowreader_reno", "CC403"),
    ("i1_applimited_cubic", "CC501"),
    ("j1_bufferbloat_cubic", "CC601"),
    ("k1_two_flows", "CC602"),
];

#[test]
fn an_exchange_names_the_cause_of_ten_captures() {
    let dir = TestDirectory::new("an_exchange_names_the_cause");
    let mut messages = vec![
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
    ];
    for (id, (case, _)) in (1..).zip(CAUSES) {
        let file = format!("linux/{case}/sender.pcap.xz");
        messages.push(call(id, "diagnose", &json!({ "file": file })));
    }
    let answers = exchange(&dir, &["mcp", "--allow", &root("golden")], &messages);
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(answers.len(), 11);
    for (answer, (case, cause)) in answers[1..].iter().zip(CAUSES) {
        let report: Value = serde_json::from_str(text(answer, false)).unwrap();
        let connection = &report["connections"][0];
        assert_eq!(connection["primary"], cause, "{case}");
        let findings = connection["findings"].as_array().unwrap();
        let found = findings.iter().find(|found| found["code"] == cause).unwrap();
        assert!(!found["evidence"].as_object().unwrap().is_empty(), "{case}");
    }
}

#[test]
fn a_diagnosis_has_the_cures_that_were_tried() {
    let dir = TestDirectory::new("a_diagnosis_of_mcp_has_cures");
    let file = "linux/h1_rwnd_cubic/sender.pcap.xz";
    let answers = exchange(
        &dir,
        &["mcp", "--allow", &root("golden")],
        &[
            call(0, "diagnose", &json!({ "file": file })),
            call(1, "flow", &json!({ "file": file, "flow": 0 })),
            call(2, "diagnose", &json!({ "file": file, "cures": false })),
        ],
    );
    let cures = |answer: &Value| {
        let report: Value = serde_json::from_str(text(answer, false)).unwrap();
        report["connections"][0]["cures"].clone()
    };
    for answer in &answers[..2] {
        let cure = &cures(answer)[0];
        assert_eq!(cure["what"], "receiver: net.ipv4.tcp_rmem=\"4096 131072 6291456\"");
        let time = |key: &str| cure[key].as_f64().unwrap();
        assert!(time("duration_s") < time("recorded_s") / 4.0, "{cure:#}");
    }
    assert_eq!(cures(&answers[2]), Value::Null);
}

#[test]
fn every_tool_answers() {
    let dir = TestDirectory::new("every_tool_of_mcp_answers");
    dir.write("small.toml", SMALL);
    dir.write(
        "slow.pcap.xz",
        std::fs::read(root("golden/linux/f1_single_loss_reno/sender.pcap.xz")).unwrap(),
    );
    let answers = exchange(
        &dir,
        &["mcp", "--allow", "."],
        &[
            json!({ "jsonrpc": "2.0", "id": "list", "method": "tools/list" }),
            call(1, "explain", &json!({ "code": "CC205" })),
            call(2, "theory", &json!({ "formula": "mathis", "rtt": "20ms", "loss": "0.1%" })),
            call(3, "run", &json!({ "file": "small.toml", "set": ["duration=5s"] })),
            call(4, "run", &json!({ "scenario": SMALL, "seed": 3 })),
            call(5, "flow", &json!({ "file": "slow.pcap.xz", "flow": 0 })),
            call(6, "whatif", &json!({ "file": "slow.pcap.xz", "compare": ["linux-6.18/cubic"] })),
        ],
    );
    assert_eq!(answers.len(), 7);
    assert_eq!(answers[0]["id"], "list");
    assert_eq!(answers[0]["result"]["tools"].as_array().unwrap().len(), 7);
    assert!(text(&answers[1], false).starts_with("CC205: "));
    let field = |answer: usize, path: &str| {
        let json: Value = serde_json::from_str(text(&answers[answer], false)).unwrap();
        json.pointer(path).cloned().unwrap_or_else(|| panic!("{path}: {json:#}"))
    };
    assert!(field(2, "/estimates/0/rate_bps").as_f64().unwrap() > 1e6);
    assert_eq!(field(3, "/flows/0/finished"), true);
    assert_eq!(field(4, "/seed"), 3);
    assert_eq!(field(5, "/connections/0/id"), 0);
    assert!(field(6, "/alternatives/0/time_ratio").as_f64().unwrap() > 0.0);
}

#[test]
fn only_files_of_the_allowed_folders_are_read() {
    let dir = TestDirectory::new("only_files_of_the_allowed_folders");
    std::fs::create_dir(dir.0.join("open")).unwrap();
    dir.write("secret.toml", "password = \"x\"\n");
    dir.write("rates.txt", "1\n2\n");
    dir.write("open/small.toml", SMALL);
    let trace = SMALL.replace("rate = \"10Mbit/s\"", "trace = \"../rates.txt\"");
    assert!(trace.contains("rates.txt"), "{trace}");
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret.toml", dir.0.join("open/link.toml")).unwrap();
    let secret = dir.0.join("secret.toml").display().to_string();
    let mut messages = Vec::new();
    for (id, file) in (0..).zip(["../secret.toml", &secret, "link.toml", "absent.toml"]) {
        messages.push(call(id, "run", &json!({ "file": file })));
    }
    messages.push(call(4, "run", &json!({ "scenario": trace })));
    messages.push(call(5, "run", &json!({ "file": "small.toml" })));
    let answers = exchange(&dir, &["mcp", "--allow", "open"], &messages);
    for answer in &answers[..5] {
        let text = text(answer, true);
        assert!(text.contains("no such file in the allowed folders"), "{text}");
        assert!(!text.contains("password"), "{text}");
    }
    text(&answers[5], false);
}

#[test]
fn limits_and_mistakes_have_answers() {
    let dir = TestDirectory::new("limits_of_mcp_and_mistakes");
    dir.write("small.toml", SMALL);
    dir.write("words.txt", "neither packets nor a log\n");
    let endless = json!({ "file": "small.toml", "set": ["bulk.bulk=1000GB", "duration=100000s"] });
    let lines = [
        "no JSON".to_owned(),
        "[1]".to_owned(),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/list" }).to_string(),
        call(2, "shell", &json!({})).to_string(),
        call(3, "diagnose", &json!({ "file": "words.txt", "flow": 1 })).to_string(),
        call(4, "diagnose", &json!({ "file": "words.txt" })).to_string(),
        call(5, "run", &endless).to_string(),
        call(6, "run", &json!({ "file": "small.toml" })).to_string(),
    ];
    let arguments = ["mcp", "--allow", ".", "--time-limit", "2s", "--answer-limit", "100B"];
    let answers = exchange_lines(&dir, &arguments, &(lines.join("\n") + "\n"));
    let codes: Vec<i64> =
        answers[..4].iter().map(|answer| answer["error"]["code"].as_i64().unwrap()).collect();
    assert_eq!(codes, [-32_700, -32_600, -32_601, -32_602]);
    assert!(text(&answers[4], true).contains("unknown field `flow`"));
    assert!(
        text(&answers[5], true).contains("cannot diagnose words.txt")
            || text(&answers[5], true).contains("words.txt")
    );
    assert!(text(&answers[6], true).contains("stopped after 2 s (--time-limit)"));
    assert!(text(&answers[7], true).contains("(--answer-limit)"));
}

/// The processes whose parent is `parent`.
#[cfg(target_os = "linux")]
fn children(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let list = std::fs::read_to_string(path).unwrap_or_default();
    list.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// The process of a call ends with a server that is killed.
#[cfg(target_os = "linux")]
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "another process ends at a moment of wall-clock time"
)]
fn a_killed_server_leaves_no_process() {
    let dir = TestDirectory::new("a_killed_server_of_mcp");
    dir.write("small.toml", SMALL);
    let endless = json!({ "file": "small.toml", "set": ["bulk.bulk=1000GB", "duration=100000s"] });
    let mut command = dir.command(&["mcp", "--allow", "."]);
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    writeln!(input, "{}", call(1, "run", &endless)).unwrap();
    let wait = |is_done: &dyn Fn() -> bool| {
        (0..2_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            is_done()
        })
    };
    assert!(wait(&|| !children(server.id()).is_empty()));
    let child = children(server.id())[0];
    // SIGKILL: the server cannot end its calls.
    server.kill().unwrap();
    server.wait().unwrap();
    let is_gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    assert!(wait(&is_gone), "{child}");
}

/// A call that needs more memory than allowed ends with an answer.
#[cfg(target_os = "linux")]
#[test]
fn the_memory_of_a_call_is_limited() {
    let dir = TestDirectory::new("the_memory_of_a_call_of_mcp");
    let datagrams = "udp = { size = \"100B\", rate = \"100Gbit/s\" }";
    let many = SMALL.replace("rate = \"10Mbit/s\"", "rate = \"100Gbit/s\"");
    let many = many.lines().map(|line| if line.starts_with("bulk") { datagrams } else { line });
    let many = many.collect::<Vec<_>>().join("\n");
    dir.write("many.toml", &many);
    let run = |set: &[&str]| call(1, "run", &json!({ "file": "many.toml", "set": set }));
    let arguments = ["mcp", "--allow", ".", "--memory-limit", "100MB"];
    let answers = exchange(&dir, &arguments, &[run(&["path.0.forward.1.delay=10s"])]);
    let text = text(&answers[0], true);
    assert!(text.contains("stopped at 100 MB of memory (--memory-limit)"), "{text}");
}
