//! Lines that follow recordings, and how flows share.

use crate::place::{Place, SMALL};

const LATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/fairness-late-comer.toml");

#[test]
fn a_recording_lies_beside_its_scenario() {
    let place = Place::new("a_recording_lies_beside_its_scenario");
    let at = SMALL.find("link = {").unwrap();
    let end = at + SMALL[at..].find('}').unwrap();
    let text = format!(
        "{}link = {{ trace = \"up.trace\", buffer = \"99p\" {}",
        &SMALL[..at],
        &SMALL[end..]
    );
    std::fs::create_dir(place.0.join("inner")).unwrap();
    place.write("inner/small.toml", text);
    place.write("inner/up.trace", "1\n2\n3\n");
    let told = place.run(&["run", "inner/small.toml"]).ok();
    assert!(told.contains("path.0.forward.0  drop-tail"), "{told}");
    place.write("inner/up.trace", "1\n2\nthree\n");
    let wrong = place.run(&["run", "inner/small.toml"]).refused();
    assert!(wrong.contains("up.trace:3: expected a whole number of milliseconds"), "{wrong}");
    std::fs::remove_file(place.0.join("inner/up.trace")).unwrap();
    let wrong = place.run(&["run", "inner/small.toml"]).refused();
    assert!(wrong.contains("cannot read inner/up.trace"), "{wrong}");
}

#[test]
fn sharing_is_told_by_runs_and_sweeps() {
    let place = Place::new("sharing_is_told_by_runs_and_sweeps");
    let run = |queue: &str| {
        let set = format!("path.link.queue={queue}");
        let told = place.run(&["run", LATE, "--json", "--set", &set]).ok();
        serde_json::from_str::<serde_json::Value>(&told).unwrap()
    };
    let (plain, fq) = (run("drop-tail"), run("fq_codel"));
    let index = |run: &serde_json::Value| run["fairness"]["mean_jain_index"].as_f64().unwrap();
    let delay = |run: &serde_json::Value| run["links"][0]["delay_p95_s"].as_f64().unwrap();
    // A queue for each flow shares as they come (RFC 8290), and no flow waits for the other.
    assert!(index(&fq) > 0.98 && index(&plain) < 0.95, "{} {}", index(&fq), index(&plain));
    assert!(delay(&fq) < 0.02 && delay(&plain) > 0.03, "{} {}", delay(&fq), delay(&plain));
    assert!(fq["fairness"]["convergence_s"].as_f64().unwrap() <= 3.0, "{}", fq["fairness"]);
    // All that was read is in the seconds.
    for flow in [0, 1] {
        let seconds = fq["by_second"]["goodput_bps"][flow].as_array().unwrap();
        let bits: f64 = seconds.iter().map(|bits| bits.as_f64().unwrap()).sum();
        assert_eq!(bits as u64 / 8, fq["flows"][flow]["bytes"].as_u64().unwrap());
    }
    let axis = "path.link.queue=drop-tail,fq_codel";
    let set = ["--set", "duration=20s"];
    let args = [&["sweep", LATE, "-m", axis, "--out", "late"][..], &set].concat();
    place.run(&args).ok();
    let table = ["table", "late", "--rows", "path.link.queue", "--value"];
    let cells = |value| place.run(&[&table[..], &[value]].concat()).ok();
    assert!(cells("queue_delay_p95").contains("drop-tail"), "{}", cells("queue_delay_p95"));
    assert!(cells("mean_jain_index").lines().count() == 3, "{}", cells("mean_jain_index"));
    let csv = String::from_utf8(place.read("late/runs.csv")).unwrap();
    assert!(csv.lines().next().unwrap().ends_with("queue_delay_max_s,share"), "{csv}");
}
