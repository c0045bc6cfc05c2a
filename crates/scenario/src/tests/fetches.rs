//! Videos and web pages.

use sim::scenario::{App, BitrateRule, CDF_WHOLE, TransferSizes};
use units::{Bytes, Duration, Rate};

use super::{SMALL, loaded, mistakes};

fn with(app: &str) -> String {
    SMALL.replace("bulk = \"1MB\"", app)
}

/// Asserts that the flow with this application has exactly this error, at this column of its line.
fn wrong(app: &str, at: &str, expected: &str) {
    let found = mistakes(&with(app), &["duration=60s"]);
    assert_eq!(found.len(), 1, "{app}: {found:?}");
    let column = with(app).lines().nth(3).unwrap().find(at).unwrap() + 1;
    let place = format!("test.toml:4:{column}: ");
    assert!(found[0].starts_with(&place) && found[0].contains(expected), "{app}: {}", found[0]);
}

#[test]
fn a_video_has_defaults_and_a_rule() {
    let text = with("video = { ladder = [\"1Mbit/s\", \"2.5Mbit/s\"] }");
    let scenario = loaded(&text, &["duration=60s"]).unwrap().scenario;
    let App::Video(video) = &scenario.flows[0].app else { panic!("a video") };
    let rates: Vec<u64> = video.ladder.iter().copied().map(Rate::bits_per_second).collect();
    let seconds = Duration::from_secs;
    assert_eq!(rates, [1_000_000, 2_500_000]);
    assert_eq!((video.chunk, video.chunks, video.buffer), (seconds(4), None, seconds(30)));
    assert_eq!((video.startup, video.rule), (seconds(4), BitrateRule::Throughput));
    let endless = mistakes(&text, &[]);
    assert!(endless[0].contains("the run would never end"), "{endless:?}");
    let text = with(
        "video = { ladder = [\"1Mbit/s\"], rule = \"buffer\", buffer = \"240s\", length = \"9s\" }",
    );
    let scenario = loaded(&text, &[]).unwrap().scenario;
    let App::Video(video) = &scenario.flows[0].app else { panic!("a video") };
    // The reservoir of 90 s and the upper end of 216 s of Huang and others.
    let rule = BitrateRule::Buffer { reservoir: seconds(90), cushion: seconds(126) };
    assert_eq!((video.rule, video.chunks), (rule, Some(3)));
}

#[test]
fn mistakes_in_a_video_point_at_their_value() {
    let ladder = |rest: &str| format!("video = {{ ladder = [\"1Mbit/s\", \"2Mbit/s\"], {rest} }}");
    wrong("video = { ladder = [] }", "[] }", "`ladder` is empty");
    wrong("video = {}", "{}", "`video` needs `ladder`");
    let falls = "video = { ladder = [\"3Mbit/s\", \"2Mbit/s\"] }";
    wrong(falls, "\"2Mbit/s\"", "this bit rate is not above the one before");
    wrong("video = { ladder = [\"0bit/s\"] }", "\"0bit/s\"", "`ladder`");
    wrong("video = { ladder = [-1] }", "-1", "`ladder` is negative");
    wrong("video = { ladder = [\"1Mbit/s\", 5] }", "5]", "`ladder` has no unit");
    wrong(&ladder("chunk = \"0s\""), "\"0s\"", "`chunk` is too short");
    wrong(&ladder("chunk = \"-4s\""), "\"-4s\"", "`chunk` is negative");
    let long = "this playing time is longer than the player's `buffer`";
    wrong(&ladder("chunk = \"7s\", buffer = \"6s\""), "\"7s\"", long);
    wrong(&ladder("startup = \"31s\""), "\"31s\"", long);
    wrong(&ladder("rule = \"buffer\", reservoir = \"31s\""), "\"31s\"", long);
    wrong(&ladder("length = \"90000s\""), "\"90000s\"", "longer than a day");
    wrong(&ladder("reservoir = \"5s\""), "\"5s\"", "`reservoir` goes with rule = \"buffer\"");
    let full = ladder("rule = \"buffer\", reservoir = \"28s\"");
    wrong(&full, "\"28s\"", "leaves no room for a cushion");
    wrong(&ladder("rule = \"bola\""), "\"bola\"", "`rule` cannot be \"bola\"");
    wrong(
        &ladder("segment = \"4s\""),
        "segment",
        "the playing time of a segment is called `chunk`",
    );
    let reads = "video = { ladder = [\"1Mbit/s\"] }, reads = { rate = \"1Mbit/s\" }";
    wrong(reads, "{ rate", "`reads` goes with `bulk`, `paced` and `on_off`");
}

#[test]
fn a_page_has_its_connections() {
    let text = with(
        "page = { html = \"30kB\", objects = 20, connections = 6, count = 3 }, count = 2, \
         arrivals = { every = \"1s\" }",
    );
    let scenario = loaded(&text, &[]).unwrap().scenario;
    assert_eq!((scenario.flows.len(), scenario.groups.len()), (12, 1));
    let numbers = scenario.flows.iter().map(|flow| match &flow.app {
        App::Page { connection, .. } => *connection,
        _ => panic!("a page"),
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
    let starts: Vec<u64> =
        scenario.flows.iter().map(|flow| flow.start.as_millis() / 1_000).collect();
    assert_eq!(starts, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
    let single = with("page = { html = \"30kB\", objects = 0, object = { mean = \"5kB\" } }");
    let scenario = loaded(&single, &["duration=9s"]).unwrap().scenario;
    assert!(scenario.groups.is_empty());
    let App::Page { page, .. } = &scenario.flows[0].app else { panic!("a page") };
    assert_eq!(page.sizes, TransferSizes::Exponential(Bytes(5_000)));
    assert_eq!((page.connections, page.streams, page.count), (1, 1, None));
    let fixed = with("page = { html = \"30kB\", objects = 1, object = \"7kB\", count = 1 }");
    let scenario = loaded(&fixed, &[]).unwrap().scenario;
    let App::Page { page, .. } = &scenario.flows[0].app else { panic!("a page") };
    assert_eq!(page.sizes, TransferSizes::Cdf([(7_000, CDF_WHOLE)].into()));
}

#[test]
fn mistakes_in_a_page_point_at_their_value() {
    let page = |rest: &str| format!("page = {{ html = \"30kB\", {rest} }}");
    wrong(&page("count = 1"), "{ html", "`page` needs `objects`");
    wrong(&page("objects = -1"), "-1", "`objects` is out of range");
    wrong(&page("objects = 9, connections = 0"), "0 }", "`connections` is out of range");
    let many = "a page with 4 objects does not use these connections";
    wrong(&page("objects = 4, connections = 6"), "6 }", many);
    wrong(&page("objects = 4, object = \"0B\""), "\"0B\"", "`object` is out of range");
    wrong(&page("objects = 4, object = 5"), "5 }", "`object` has no unit");
    wrong(&page("objects = 4, object = {}"), "{} }", "`object` needs `cdf` or `mean`");
    let unknown = page("objects = 4, object = { cdf = \"preset:web\" }");
    wrong(&unknown, "\"preset:web\"", "unknown distribution");
    wrong(&page("objects = 4, think = \"-1s\""), "\"-1s\"", "`think` is negative");
    wrong(&page("objects = 4, pages = 3"), "pages", "the number of pages is called `count`");
}
