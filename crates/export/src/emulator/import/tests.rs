//! Nothing of a script is lost: each word is in the scenario, or an error names it.

use proptest::prelude::*;

use super::import;

/// Returns the elements of the direction `forward`, without comments.
fn forward(script: &str) -> Vec<String> {
    let toml = import(script).unwrap_or_else(|error| panic!("{script}\n{error}"));
    let (_, rest) = toml.split_once("forward = [\n").unwrap();
    let (elements, _) = rest.split_once("]\n").unwrap();
    let element = |line: &str| line.split('#').next().unwrap_or("").trim().to_owned();
    elements.lines().map(element).collect()
}

fn refused(script: &str) -> String {
    match import(script) {
        Ok(toml) => panic!("{script}\n{toml}"),
        Err(error) => {
            let at = error.position;
            let line = script.lines().nth(at.line - 1).unwrap_or_default();
            let word: String = line.chars().skip(at.column - 1).take(at.width).collect();
            format!("{}:{word}: {}", at.line, error.message)
        }
    }
}

#[test]
fn tbf_is_a_shaper() {
    let alone = "tc qdisc add dev eth0 root tbf rate 8mbit burst 32kb latency 50ms";
    let shaper =
        "{ shaper = { rate = \"8000000bit/s\", burst = \"32768B\", buffer = \"82768B\" } },";
    assert_eq!(forward(alone), [shaper]);
    let below = "tc qdisc add dev eth0 root handle 1: netem delay 20ms loss 1%\n\
                 tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 8mbit burst 32kb limit 82768\n";
    assert_eq!(forward(below), ["{ loss = \"1%\" },", "{ delay = \"20000000ns\" },", shaper]);
    let shown = "qdisc tbf 8001: root refcnt 2 rate 8Mbit burst 32Kb lat 50ms \n";
    assert_eq!(forward(shown), [shaper]);
}

#[test]
fn with_a_rate_the_random_delay_keeps_the_order() {
    let script = "tc qdisc add dev eth0 root netem rate 10mbit delay 20ms 5ms limit 100";
    assert_eq!(
        forward(script),
        [
            "{ delay = \"15000000ns\" },",
            "{ jitter = \"10000000ns\" },",
            "{ link = { rate = \"10000000bit/s\", buffer = \"83p\" } },",
        ]
    );
}

#[test]
fn what_no_scenario_represents_is_named() {
    let netem = "tc qdisc add dev eth0 root handle 1: netem delay 20ms\n";
    let tbf = "tc qdisc add dev eth0 parent 1: handle 2: tbf rate 8mbit burst 32kb latency 50ms\n";
    for (script, message) in [
        (
            "tc qdisc add dev e root netem delay 9ms 3ms",
            "1:3ms: netem: `delay` that varies by 3ms reorders",
        ),
        (
            "tc qdisc add dev e root netem delay 9ms limit 10",
            "1:limit: netem: `limit 10` without a rate",
        ),
        (
            "tc qdisc add dev e root netem delay 9ms reorder 25%",
            "1:reorder: netem: option `reorder`",
        ),
        ("tc qdisc add dev e root netem delay 9ms delay 8ms", "1:delay: `delay` is given twice"),
        ("tc qdisc add dev e root netem loss 1% 25%", "1:25%: loss: correlation 25% is not"),
        ("tc qdisc add dev e root netem rate 1mbit 20", "1:20: netem: option `20` is not"),
        (
            "tc qdisc add dev e root netem rate 1gbit delay 1s limit 9",
            "1:limit: netem: the delay alone",
        ),
        ("tc qdisc add dev e root netem rate 1gbit delay 1s", "1:rate: netem: the delay alone"),
        ("tc qdisc add dev e root netem delay 0.1ns", "1:0.1ns: `0.1ns` is out of range"),
        ("tc qdisc add dev e root netem delay 2000000s", "1:delay: no scenario can have this"),
        ("tc qdisc add dev e root handle 1: htb default 1", "1:htb: qdisc `htb` is not supported"),
        ("tc class add dev e parent 1: classid 1:1 htb rate 1mbit", "1:class: tc: `class` is not"),
        ("tc qdisc add dev e root fq_codel", "1:fq_codel: qdisc `fq_codel` is not supported"),
        (
            "tc qdisc add dev e root tbf rate 1mbit burst 9k limit 9k peakrate 2mbit",
            "1:peakrate: tbf",
        ),
        ("tc qdisc add dev e root tbf rate 1mbit burst 9k", "1:tbf: tbf: `limit` or `latency` is"),
        (
            "tc qdisc add dev e root tbf rate 1mbit burst 100 limit 9k",
            "1:burst: tbf: the bucket has",
        ),
        ("ethtool -K eth0 tso off", "1:ethtool: `ethtool` is not supported"),
        ("tc qdisc show | cat", "1:show: tc qdisc: `show` is not supported"),
        ("tc qdisc add dev e root netem delay 9ms || exit", "1:||: `||` is not supported"),
        ("ipfw pipe 1 config delay 5 queue 10", "1:queue: dummynet: `queue` without `bw`"),
        ("ipfw pipe 1 config delay 5 mask all", "1:mask: dummynet: option `mask`"),
        (
            "ipfw pipe 1 config delay 5\nipfw add pipe 2 ip from any to any out",
            "2:2: pipe 2 is not",
        ),
        (
            "ipfw pipe 1 config delay 5\nipfw add pipe 1 tcp from any to any out",
            "2:tcp: expected `ip`",
        ),
        (
            "ipfw pipe 1 config delay 5\nipfw add pipe 1 ip from any to any via e",
            "2:1: the rule sends",
        ),
        (
            "ipfw pipe 1 config delay 5\nipfw pipe 1 config delay 6",
            "2:1: pipe 1 is configured twice",
        ),
        (&format!("{netem}{}", tbf.replace("1:", "3:")), "2:3:: parent `3:` is no root"),
        (
            &format!("{netem}{netem}"),
            "2:root: the device has a root qdisc already, `netem` in line 1",
        ),
        (&format!("{netem}{tbf}{}", tbf.replace("1:", "2:")), "3:tbf: third qdisc `tbf`"),
        (&format!("{netem}tc qdisc del dev eth0 root"), "2:del: `del` removes `netem` of line 1"),
        (
            &format!(
                "{}{}",
                netem.replace("netem delay 20ms", "tbf rate 8mbit burst 9k limit 9k"),
                tbf
            ),
            "2:tbf: `tbf` below `tbf`",
        ),
        (
            &format!("{}{tbf}", netem.replace("delay 20ms", "rate 1mbit")),
            "1:rate: netem with a `rate`",
        ),
        (
            &format!("{netem}{}{}", netem.replace("eth0", "e1"), netem.replace("eth0", "e2")),
            "3:netem: expected one or two",
        ),
    ] {
        let error = refused(script);
        assert!(error.starts_with(message), "{script}\n{error}");
    }
}

#[test]
fn scripts_may_delete_what_was_there() {
    let script = "#!/bin/sh\nsudo tc qdisc del dev eth0 root 2>/dev/null || true\n\
                  ip netns exec a tc qdisc add dev eth0 root netem delay 20ms; \
                  ip netns exec b tc qdisc add dev eth0 root netem \\\n  delay 30ms\n";
    assert_eq!(forward(script), ["{ delay = \"20000000ns\" },"]);
    let script = "ipfw -q -f flush\nipfw pipe flush\nipfw pipe 1 config bw 1Mbit/s\n\
                  ipfw add pipe 1 ip from any to any out xmit em0\n";
    assert_eq!(forward(script), ["{ link = { rate = \"1000000bit/s\", buffer = \"50p\" } },"]);
}

/// Words of random scripts. A `#` in a word is replaced by a number.
const OPTIONS: &[&str] = &[
    "limit #",
    "delay #ms",
    "delay #ms #ms",
    "delay #us 1ms",
    "loss #%",
    "loss random #%",
    "loss gemodel #% #% #% #%",
    "loss gemodel p #% r #%",
    "duplicate #%",
    "corrupt #%",
    "corrupt #% #%",
    "rate #mbit",
    "rate #kbit",
    "rate #Mbit",
    "rate #bit",
    "reorder #% gap #",
    "slot #ms",
    "distribution normal",
    "distribution uniform",
    "ecn",
    "burst #kb",
    "burst #",
    "latency #ms",
    "limit #kb",
    "mtu #",
    "peakrate #mbit",
    "flows #",
    "target #ms",
    "seed #",
    "default #",
    "#",
];
const QDISCS: &[&str] = &["netem", "netem", "netem", "tbf", "tbf", "htb", "pfifo", "fq_codel"];
const PLACES: &[&str] = &[
    "root",
    "root",
    "root handle 1:",
    "root handle 1:",
    "parent 1:",
    "parent 1:1 handle 2:",
    "parent 2:",
];
const TBF: &str = "rate #mbit burst #kb latency #ms";

fn command() -> impl Strategy<Value = String> {
    let options = proptest::collection::vec(proptest::sample::select(OPTIONS), 0..4);
    let place = proptest::sample::select(PLACES);
    let qdisc = proptest::sample::select(QDISCS);
    (place, qdisc, options, 0..2_u8, any::<bool>()).prop_map(
        |(place, qdisc, options, device, whole)| {
            let whole = if qdisc == "tbf" && whole { TBF } else { "" };
            let options = options.join(" ");
            let options = if whole.is_empty() { options.as_str() } else { whole };
            format!("tc qdisc add dev eth{device} {place} {qdisc} {options}\n")
        },
    )
}

/// A script whose numbers are marked, and the numbers.
fn script() -> impl Strategy<Value = (String, Vec<u64>)> {
    proptest::collection::vec(command(), 1..4).prop_flat_map(|commands| {
        let script = commands.concat();
        let number = prop_oneof![1..100_u64, 1..100_000_u64, any::<u64>()];
        let count = script.matches('#').count();
        (Just(script), proptest::collection::vec(number, count))
    })
}

fn fill(script: &str, numbers: &[u64]) -> String {
    let mut parts = script.split('#');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for (part, number) in parts.zip(numbers) {
        filled += &format!("{number}{part}");
    }
    filled
}

/// The scenario without comments other than of a limit that no run reaches; `seed` of netem has no
/// place in it.
fn elements(script: &str) -> Result<Vec<String>, String> {
    let toml = import(script).map_err(|error| {
        let lines = script.lines().count();
        assert!((1..=lines).contains(&error.position.line), "{script}\n{error}");
        assert!(!error.message.is_empty());
        error.to_string()
    })?;
    let without = |line: &str| match line.split_once(" # ") {
        Some((_, comment)) if comment.ends_with("fewer packets in flight") => line.to_owned(),
        Some((element, _)) => element.to_owned(),
        None => line.to_owned(),
    };
    Ok(toml.lines().map(without).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    /// A script is refused at one of its lines, or each of its numbers changes the scenario, and
    /// the scenario is valid.
    #[test]
    fn no_number_of_a_script_is_lost((script, numbers) in script()) {
        let whole = fill(&script, &numbers);
        let Ok(before) = elements(&whole) else { return Ok(()) };
        let toml = import(&whole).unwrap();
        prop_assert!(scenario::load(&toml, "import", &scenario::Overrides::default()).is_ok());
        let seeds: Vec<bool> =
            script.split('#').map(|before| before.ends_with("seed ")).collect();
        for (index, &number) in numbers.iter().enumerate() {
            let mut changed = numbers.clone();
            changed[index] = number.wrapping_mul(2).wrapping_add(1);
            let changed = fill(&script, &changed);
            if let Ok(after) = elements(&changed) {
                prop_assert!(after != before || seeds[index], "{whole}{changed}{before:?}");
            }
        }
    }

    /// No text makes the reader panic, and each error is at a word of the text.
    #[test]
    fn any_text_is_read(text in "[a-z0-9:%;&|#\\\\ \n.]{0,80}") {
        let _ = elements(&format!("tc {text}\n"));
    }
}
