//! Sweeps: grid, errors, and the scenario of each run.

use logs::series::Downsampling;
use units::Duration;

use super::*;

const BASE: &str = r#"seed = 7
duration = "10s"
host.a = { profile = "freebsd-13.2" }
host.b = { profile = "linux-6.18", cc = "reno" }
path = [ { from = "a", to = "b", forward = [{ link = { rate = "10Mbit/s", buffer = "1bdp" } }, { delay = "5ms" }], return = [] } ]
flow = [ { name = "up", from = "a", to = "b", bulk = "1MB" } ]
"#;

fn overrides(axes: &[&str], only: Option<&str>) -> StudyOverrides {
    StudyOverrides {
        axes: axes.iter().map(|axis| (*axis).to_owned()).collect(),
        only: only.map(str::to_owned),
        ..StudyOverrides::default()
    }
}

/// Returns the settings of each run, one line each.
fn lines(study: &Study<'_>) -> Vec<String> {
    let line = |run| {
        let settings = study.settings(run).into_iter().map(|(key, value)| format!("{key}={value}"));
        format!("{} {}", study.seed(run), settings.collect::<Vec<_>>().join(" "))
    };
    (0..study.runs()).map(line).collect()
}

fn grid(text: &str, axes: &[&str], only: Option<&str>) -> Vec<String> {
    let overrides = overrides(axes, only);
    match Study::load(text, "t.toml", &overrides) {
        Ok(study) => lines(&study),
        Err(errors) => panic!("{errors:?}"),
    }
}

fn mistake(text: &str, axes: &[&str], only: Option<&str>) -> String {
    let overrides = overrides(axes, only);
    let errors = Study::load(text, "t.toml", &overrides).map(|_| ()).unwrap_err();
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_first_axis_changes_slowest_and_repetitions_fastest() {
    let text = format!(
        "{BASE}[sweep]\nrepeat = 2\n[sweep.axes]\n\"host.b.cc\" = [\"reno\"]\n\
         \"path.delay\" = \"5ms..10ms step 5ms\"\nflow.0.bulk = [\"1MB\", \"2MB\"]\n"
    );
    let expected = [
        "7 host.b.cc=reno path.delay=5ms flow.0.bulk=1MB",
        "8 host.b.cc=reno path.delay=5ms flow.0.bulk=1MB",
        "7 host.b.cc=reno path.delay=5ms flow.0.bulk=2MB",
        "8 host.b.cc=reno path.delay=5ms flow.0.bulk=2MB",
        "7 host.b.cc=reno path.delay=10ms flow.0.bulk=1MB",
        "8 host.b.cc=reno path.delay=10ms flow.0.bulk=1MB",
        "7 host.b.cc=reno path.delay=10ms flow.0.bulk=2MB",
        "8 host.b.cc=reno path.delay=10ms flow.0.bulk=2MB",
    ];
    assert_eq!(grid(&text, &[], None), expected);
}

#[test]
fn an_argument_replaces_the_axis_of_the_file() {
    let text = format!("{BASE}[sweep.axes]\n\"path.delay\" = [\"5ms\", \"6ms\"]\n");
    let expected = ["7 path.0.forward.1.delay=1ms", "7 path.0.forward.1.delay=2ms"];
    assert_eq!(grid(&text, &["path.0.forward.1.delay=1ms,2ms"], None), expected);
}

#[test]
fn keys_can_vary_together() {
    let axis = "path.rate,path.buffer=(10Mbit/s,1bdp),(1Gbit/s,100p)";
    let expected =
        ["7 path.rate=10Mbit/s path.buffer=1bdp", "7 path.rate=1Gbit/s path.buffer=100p"];
    assert_eq!(grid(BASE, &[axis], None), expected);
    let text = format!(
        "{BASE}[sweep.axes]\n\"path.rate, path.buffer\" = [[\"10Mbit/s\", \"1bdp\"], [\"1Gbit/s\", \"100p\"]]\n"
    );
    assert_eq!(grid(&text, &[], None), expected);
}

#[test]
fn conditions_select_points() {
    let axes = ["a.cc=newreno", "path.delay=5ms,10ms,20ms", "flow.bulk=1MB,10MB"];
    let chosen = |only| grid(BASE, &axes, Some(only)).len();
    assert_eq!(chosen("path.delay >= 10ms"), 4);
    assert_eq!(chosen("path.delay >= 10ms and flow.bulk < 10MB"), 2);
    assert_eq!(chosen("not (path.delay == 5ms or flow.bulk == 10000kB)"), 2);
    assert_eq!(chosen("host.a.cc != newreno or path.delay = 0.005s"), 2);
    assert_eq!(chosen("a.cc == 'newreno'"), 6);
}

#[test]
fn the_text_of_a_run_is_its_scenario() {
    let overrides = overrides(&["path.delay=5ms,9ms", "a.knobs.kern.hz=100,1000"], None);
    let study = Study::load(BASE, "t.toml", &overrides).unwrap();
    assert_eq!(study.runs(), 4);
    for run in 0..4 {
        let text = study.text_of(run).unwrap();
        let loaded = super::super::load(&text, "rewritten", &Overrides::default()).unwrap();
        assert_eq!(loaded.scenario, study.scenario(run).unwrap(), "{text}");
    }
    let last = study.scenario(3).unwrap();
    assert_eq!(last.hosts[0].stack.tcp().unwrap().profile.hz, 1_000);
    assert_eq!(last.seed, 7);
}

#[test]
fn errors_point_at_the_argument() {
    let message = mistake(BASE, &["path.delay=5ms,6MB"], None);
    assert!(message.starts_with("-m:1:16: `delay` has the unit `MB`"), "{message}");
    let message = mistake(BASE, &["a.c=newreno"], None);
    assert!(message.starts_with("-m:1:3: a host has no key `c`"), "{message}");
    let message = mistake(BASE, &["path.delay"], None);
    assert!(message.contains("no `=` in this argument"), "{message}");
    let message = mistake(BASE, &["path.delay=1ms..5us step 1us"], None);
    assert!(message.contains("the range ends before it begins"), "{message}");
    let message = mistake(BASE, &["path.rate,path.delay=(1Mbit/s,1ms),5ms"], None);
    assert!(message.contains("this axis has 2 keys"), "{message}");
    let message = mistake(BASE, &["path.rate,path.delay=(1Mbit/s,1ms)", "path.delay=2ms"], None);
    assert!(message.contains("a second axis over the same key"), "{message}");
    let text = format!("{BASE}[sweep.axes]\n\"path.delay\" = []\n");
    assert!(mistake(&text, &[], None).starts_with("t.toml:8:1: this axis has no values"));
    let text = format!("{BASE}[sweep]\nrepeats = 3\n");
    assert!(mistake(&text, &[], None).contains("did you mean `repeat`?"));
}

#[test]
fn a_file_can_request_time_series() {
    let series = |text: &str| {
        let text = format!("{BASE}[sweep]\n{text}\n");
        Study::load(&text, "t.toml", &StudyOverrides::default()).unwrap().series().cloned()
    };
    assert_eq!(series("repeat = 2"), None);
    let plan = series("series = { columns = [\"cwnd\", \"srtt_us\"], every = \"10ms\" }").unwrap();
    assert_eq!(plan.columns.names(), ["cwnd_bytes", "srtt_us"]);
    assert_eq!(plan.thinning, Downsampling::Every(Duration::from_millis(10)));
    let plan = series("series = { columns = [\"pipe\"], points = 500 }").unwrap();
    assert_eq!(plan.thinning, Downsampling::Points(500));
    assert_eq!(series("series.columns = [\"pipe\"]").unwrap().thinning, Downsampling::None);
    let error = |text: &str| mistake(&format!("{BASE}[sweep]\n{text}\n"), &[], None);
    let wrong = error("series = { columns = [\"cwnd\", \"flihgt\"] }");
    assert!(wrong.starts_with("t.toml:8:31: there is no column `flihgt`"), "{wrong}");
    assert!(wrong.contains("did you mean `flight`?"), "{wrong}");
    assert!(error("series = { columns = [] }").contains("names no column"));
    assert!(error("series = { columns = \"cwnd\" }").contains("`columns` must be a list"));
    assert!(error("series = { every = \"1ms\" }").contains("`series` needs `columns`"));
    let both = "series = { columns = [\"cwnd\"], every = \"1ms\", points = 99 }";
    assert!(error(both).contains("either `every` or `points`, not both"));
    assert!(error("columns = [\"cwnd\"]").contains("a table of their own: `series`"));
}

#[test]
fn invalid_conditions_are_reported() {
    let axes = ["path.delay=5ms,9ms"];
    let error = |only| mistake(BASE, &axes, Some(only));
    assert!(error("path.delya > 5ms").contains("did you mean `path.delay`?"));
    assert!(error("path.delay >").contains("the condition ends too early"));
    assert!(error("path.delay 5ms").contains("no comparison after `path.delay`"));
    assert!(error("(path.delay > 5ms").contains("a parenthesis is not closed"));
    assert!(error("path.delay > 5MB").contains("`5ms` and `5MB` have no order"));
    let none = error("path.delay > 1s");
    assert!(none.starts_with("--only:1:1: none of the 2 points meets the condition"), "{none}");
    assert!(error("path.delay == '5ms").contains("a quote is not closed"));
}

#[test]
fn a_misspelt_short_key_is_suggested() {
    let message = mistake(BASE, &["path.dealy=5ms"], None);
    assert!(message.starts_with("-m:1:6: nothing on the paths is called `dealy`"), "{message}");
    assert!(message.contains("did you mean `delay`?"), "{message}");
    let message = mistake(BASE, &["path.forward.bufer=1p"], None);
    assert!(message.contains("did you mean `buffer`?"), "{message}");
    // No similar key exists.
    assert!(mistake(BASE, &["path.colour=1"], None).contains("has no entry `colour`"));
}

#[test]
fn a_short_key_must_be_unambiguous() {
    let text = BASE.replace("return = []", "return = [{ delay = \"5ms\" }]");
    let message = mistake(&text, &["path.delay=5ms"], None);
    let places = "one of `path.0.forward.1.delay`, `path.0.return.0.delay`";
    assert!(message.contains("it occurs 2 times") && message.contains(places), "{message}");
    let expected = ["7 path.return.delay=1ms"];
    assert_eq!(grid(&text, &["path.return.delay=1ms"], None), expected);
}

/// Two flows that share a drop-tail link, nothing drawn.
fn two_flows() -> String {
    BASE.replace(
        "flow = [ {",
        "flow = [ { name = \"other\", from = \"a\", to = \"b\", bulk = \"1MB\" }, {",
    )
}

#[test]
fn repeated_runs_of_several_flows_get_the_noise_that_they_lack() {
    let noise = |text: &str, repeat| {
        let overrides = StudyOverrides { repeat: Some(repeat), ..StudyOverrides::default() };
        let study = Study::load(text, "t.toml", &overrides).unwrap();
        study.noise().map(|most| most.as_nanos() / 1_000)
    };
    let text = two_flows();
    // 1500 bytes take 1.2 ms at 10 Mbit/s; a tenth of the round trip of 5 ms is 500 us.
    assert_eq!(noise(&text, 2), Some(500));
    // A single run is that of the file, and so are runs of one flow.
    assert_eq!(noise(&text, 1), None);
    assert_eq!(noise(BASE, 2), None);
    // What is drawn, or given, is enough.
    assert_eq!(noise(&text.replace("return = []", "return = [{ jitter = \"1ms\" }]"), 2), None);
    assert_eq!(noise(&format!("noise = \"0us\"\n{text}"), 2), None);
    let overrides = StudyOverrides { repeat: Some(3), ..StudyOverrides::default() };
    let study = Study::load(&text, "t.toml", &overrides).unwrap();
    let starts =
        |run| study.scenario(run).unwrap().flows.iter().map(|flow| flow.start).collect::<Vec<_>>();
    assert_ne!(starts(0), starts(1));
    // The text of a run is that run.
    let shown = study.text_of(1).unwrap();
    let alone = crate::load(&shown, "shown.toml", &Overrides::default()).unwrap().scenario;
    assert_eq!(alone, study.scenario(1).unwrap());
}

#[test]
fn noise_adds_a_delay_to_each_direction_and_to_each_start() {
    let text = two_flows();
    let read = |text: &str| crate::load(text, "t.toml", &Overrides::default()).unwrap().scenario;
    let (quiet, noisy) = (read(&text), read(&format!("noise = \"300us\"\n{text}")));
    assert_eq!(read(&format!("noise = \"0us\"\n{text}")), quiet);
    let jitter = sim::scenario::ElementSpec::Jitter { most: Duration::from_micros(300) };
    assert_eq!(noisy.paths[0].forward[0], jitter);
    assert_eq!(noisy.paths[0].forward[1..], quiet.paths[0].forward[..]);
    assert_eq!(noisy.paths[0].reverse, [jitter]);
    assert!(noisy.flows.iter().all(|flow| flow.start < Duration::from_micros(300)));
    assert_ne!(noisy.flows[0].start, noisy.flows[1].start);
}
