use std::io::{Cursor, Read};

use serde_json::{Value, json};

use crate::controls::{self, ControlName};
use crate::requests::Engine;

const SLOW_START: &str = include_str!("../../../scenarios/slow-start-lro.toml");
const MATHIS: &str = include_str!("../../../scenarios/mathis.toml");
const CAPTURE: &[u8] = include_bytes!("../../../golden/captures/recorded/late.sender.pcap.gz");

fn capture(_: u32) -> Box<dyn Read> {
    Box::new(Cursor::new(CAPTURE))
}

fn ask(request: &Value) -> Value {
    let answer = Engine::new().answer(request.to_string().as_bytes(), &capture);
    serde_json::from_str(&answer).expect("answers are JSON")
}

fn control(text: &str, name: ControlName) -> controls::Control {
    controls::of(text, 0).into_iter().find(|control| control.name == name).expect("the control")
}

#[test]
fn controls_are_the_values_of_the_first_path() {
    let delay = control(SLOW_START, ControlName::Delay);
    assert_eq!((delay.text.as_str(), delay.value), ("50ms", Some(0.05)));
    assert_eq!(control(SLOW_START, ControlName::Rate).value, Some(1e11));
    assert_eq!(control(SLOW_START, ControlName::Loss).value, Some(0.0));
    assert_eq!(control(SLOW_START, ControlName::Buffer).value, Some(1e8));
    assert_eq!(control(SLOW_START, ControlName::Controller).text, "newreno");
    // A rule is not a fraction, and packets are not bytes.
    assert_eq!(control(MATHIS, ControlName::Loss).value, None);
    assert_eq!(control(MATHIS, ControlName::Buffer).value, None);
    assert!(controls::of("no = [toml", 0).is_empty());
}

#[test]
fn a_changed_control_keeps_the_rest_of_the_text() {
    let changes = [
        (ControlName::Delay, "10ms".to_owned()),
        (ControlName::Loss, "1%".to_owned()),
        (ControlName::Controller, "cubic".to_owned()),
    ];
    let Ok(text) = controls::apply(SLOW_START, 0, &changes) else {
        panic!("it has these controls")
    };
    assert_eq!(control(&text, ControlName::Delay).value, Some(0.01));
    assert_eq!(control(&text, ControlName::Loss).value, Some(0.01));
    assert_eq!(text.matches("delay = \"10ms\"").count(), 2, "each way");
    assert!(text.contains("# The transfer of the mail"));
    assert!(ask(&json!({ "op": "check", "text": text }))["ok"]["sha256"].is_string());
    // The element that is there is changed, not a second one added.
    let Ok(again) = controls::apply(&text, 0, &[(ControlName::Loss, "2%".to_owned())]) else {
        panic!()
    };
    assert_eq!(again.matches("loss").count(), text.matches("loss").count());
}

#[test]
fn each_path_has_controls_and_shared_elements_are_changed_where_they_are() {
    const SHARED: &str = include_str!("../../../scenarios/shared-bottleneck.toml");
    assert_eq!(controls::paths(SHARED), ["desk to server", "shelf to server"]);
    let texts = |path| -> Vec<String> {
        controls::of(SHARED, path).into_iter().map(|control| control.text).collect()
    };
    assert_eq!(texts(0), ["20ms", "20Mbit/s", "0%", "100kB", "newreno"]);
    assert_eq!(texts(1), ["20ms", "20Mbit/s", "by a rule", "100kB", "reno"]);
    assert!(texts(2).is_empty());
    let changes = [
        (ControlName::Rate, "30Mbit/s".to_owned()),
        (ControlName::Delay, "5ms".to_owned()),
        (ControlName::Loss, "1%".to_owned()),
        (ControlName::Controller, "cubic".to_owned()),
    ];
    let Ok(text) = controls::apply(SHARED, 1, &changes) else { panic!("it has these controls") };
    for (what, count) in [
        ("link = { rate = \"30Mbit/s\", buffer = \"100kB\" }", 1),
        // The way back, which is quicker, gets the rate too.
        ("link = { rate = \"30Mbit/s\"", 2),
        ("delay = \"5ms\"", 2),
        ("delay = \"20ms\"", 2),
        ("loss = \"1%\"", 1),
        ("cc = \"cubic\"", 1),
        ("cc = \"reno\"", 1),
    ] {
        assert_eq!(text.matches(what).count(), count, "{what}:\n{text}");
    }
    let answer = ask(&json!({ "op": "run", "text": text, "path": 1, "points": 100 }));
    assert_eq!(answer["ok"]["controls"][0]["text"], "5ms");
    assert_eq!(answer["ok"]["paths"].as_array().map(Vec::len), Some(2));
    assert_eq!(answer["ok"]["shown"], "photos");
}

#[test]
fn a_capture_has_a_verdict_and_its_page() {
    let mut engine = Engine::new();
    let request = json!({ "op": "diagnose", "files": ["late.pcap.gz"], "limit": 10 });
    let answer = engine.answer(request.to_string().as_bytes(), &capture);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let report: Value = serde_json::from_str(answer["ok"]["json"].as_str().unwrap()).unwrap();
    assert_eq!(report["file"], "late.pcap.gz");
    let page = engine.answer(br#"{"op":"diagnosis_page"}"#, &capture);
    assert!(page.contains("<!doctype html>"));
    // Without a diagnosis there is none.
    assert!(ask(&json!({ "op": "diagnosis_page" }))["error"].is_string());
}

#[test]
fn cures_are_tried_where_they_are_asked_for() {
    const SLOW: &[u8] = include_bytes!("../../../golden/linux/h1_rwnd_cubic/sender.pcap.xz");
    let mut engine = Engine::new();
    for cures in [false, true] {
        let request = json!({ "op": "diagnose", "files": ["a"], "limit": 1, "cures": cures });
        let open = |_| -> Box<dyn Read> { Box::new(Cursor::new(SLOW)) };
        let answer = engine.answer(request.to_string().as_bytes(), &open);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let report: Value = serde_json::from_str(answer["ok"]["json"].as_str().unwrap()).unwrap();
        let tried = &report["connections"][0]["cures"];
        assert_eq!(tried[0]["validity"] == "figure", cures, "{tried:#}");
        let page = engine.answer(br#"{"op":"diagnosis_page"}"#, &open);
        assert_eq!(page.contains("with receiver: net.ipv4.tcp_rmem"), cures);
    }
}

#[test]
fn errors_have_their_positions() {
    let answer = ask(&json!({ "op": "run", "text": "seed = 1\nseeed = 2\n", "points": 100 }));
    assert!(answer["errors"].as_array().unwrap().iter().any(|error| error["line"] == 2));
    assert!(ask(&json!({ "op": "unknown" }))["error"].is_string());
}

#[test]
fn packets_are_recorded_from_an_instant_on_and_to_a_limit() {
    let request =
        |from: u64| json!({ "op": "packets", "text": SLOW_START, "from_ns": from, "limit": 50 });
    let first = ask(&request(0));
    let packets = first["ok"]["packets"].as_array().unwrap();
    assert_eq!(packets.len(), 50);
    assert_eq!(first["ok"]["is_last"], false);
    // 50 ms each way: the first packet is the SYN.
    let way = packets[0]["end"].as_u64().unwrap() - packets[0]["sent"].as_u64().unwrap();
    assert!((50_000_000..50_100_000).contains(&way), "{way}");
    let from = first["ok"]["until_ns"].as_u64().unwrap();
    let next = ask(&request(from));
    assert!(next["ok"]["until_ns"].as_u64().unwrap() > from, "the next record goes on");
    // Those in flight when it begins are in it.
    assert!(next["ok"]["packets"][0]["sent"].as_u64().unwrap() <= from);
    assert_eq!(ask(&request(1_900_000_000))["ok"]["is_last"], true);
}

#[test]
fn a_run_is_diagnosed_like_a_capture() {
    let codes = |text: &str| -> Vec<String> {
        let answer = ask(&json!({ "op": "findings", "text": text }));
        let report: Value = serde_json::from_str(answer["ok"]["json"].as_str().unwrap()).unwrap();
        let list = [&report["connections"], &report["quic"]];
        let connection = list.into_iter().find_map(|list| list.get(0)).unwrap();
        let findings = connection["findings"].as_array().unwrap();
        findings.iter().map(|found| found["code"].as_str().unwrap().to_owned()).collect()
    };
    assert!(codes(SLOW_START).contains(&"CC101".to_owned()), "slow start starved by LRO");
    assert!(codes(MATHIS).contains(&"CC811".to_owned()), "lost packets in a qlog");
}
