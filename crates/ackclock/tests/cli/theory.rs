//! Tests of `ackclock theory`: output and rejected arguments.

use serde_json::Value;

use crate::test_directory::TestDirectory;

fn theory(test: &str, arguments: &[&str]) -> crate::test_directory::CommandOutput {
    TestDirectory::new(test).run(&[&["theory"], arguments].concat())
}

const SEED: [&str; 7] = ["mathis", "--mss", "1252", "--rtt", "2ms", "--loss", "2%"];

#[test]
fn mathis_as_text() {
    let text = theory("mathis_as_text", &[&SEED[..], &["--extra-rtts", "2"]].concat()).ok();
    insta::assert_snapshot!("mathis_text", text);
}

#[test]
fn the_published_figures() {
    let rate = |arguments: &[&str]| {
        let asked = [&SEED[..], arguments, &["--json"]].concat();
        let json: Value =
            serde_json::from_str(&theory("the_published_figures", &asked).ok()).unwrap();
        let asked = json["asked"].as_u64().unwrap() as usize;
        json["estimates"][asked]["rate_bps"].as_f64().unwrap() / 1e6
    };
    for (said, published) in [
        (rate(&[]), 43.37),
        (rate(&["--extra-rtts", "2"]), 36.50),
        (rate(&["--ack-delay", "25ms"]), 34.25),
    ] {
        assert!((said - published).abs() <= 0.005, "{said} for {published}");
    }
}

#[test]
fn cubic_as_text() {
    let text = theory("cubic_as_text", &["cubic", "--rtt", "2ms", "--loss", "1%"]).ok();
    insta::assert_snapshot!("cubic_text", text);
}

#[test]
fn pftk_and_aimd_as_text() {
    let path = ["--rtt", "100ms", "--loss", "1%"];
    let pftk = [&["pftk"], &path[..], &["--rto", "300ms", "--window", "64KiB"]].concat();
    insta::assert_snapshot!("pftk_text", theory("pftk_and_aimd_as_text", &pftk).ok());
    let aimd = [&["aimd"], &path[..], &["--beta", "0.7"]].concat();
    insta::assert_snapshot!("aimd_text", theory("pftk_and_aimd_as_text", &aimd).ok());
}

#[test]
fn a_simulation_is_shown_with_the_formula() {
    let run = ["--run", "linux-6.18", "--ack-delay", "40ms", "--random", "--seed", "3", "--json"];
    let asked = [&SEED[..], &run].concat();
    let text = theory("a_run_stands_beside_the_formula", &asked).ok();
    assert_eq!(theory("a_run_stands_beside_the_formula", &asked).ok(), text);
    let json: Value = serde_json::from_str(&text).unwrap();
    let measured = &json["measured"];
    assert_eq!(measured["profile"], "linux-6.18");
    assert_eq!(measured["losses"], "2 % lost at random");
    assert!(measured["rate_bps"].as_f64().unwrap() > 1e7, "{measured}");
}

#[test]
fn arguments_without_a_result_are_refused() {
    let refused = |arguments: &[&str]| {
        theory("what_has_no_answer_is_refused", arguments)
            .refused()
            .lines()
            .next()
            .unwrap()
            .to_owned()
    };
    let mathis = |rtt, loss| refused(&["mathis", "--rtt", rtt, "--loss", loss]);
    assert_eq!(
        mathis("2", "2%"),
        "error: invalid value '2' for '--rtt <DURATION>': has no unit, expected a duration such \
         as \"100ms\"; did you mean \"2ms\"?"
    );
    assert!(mathis("2ms", "0.02").contains("has no unit"), "{}", mathis("2ms", "0.02"));
    assert!(mathis("2ms", "0%").contains("the loss rate is zero"));
    assert!(mathis("2ms", "100%").contains("the loss rate is 100 %"));
    let path = ["--rtt", "2ms", "--loss", "2%"];
    let with = |model: &str, more: &[&str]| refused(&[&[model], &path[..], more].concat());
    assert!(with("mathis", &["--extra-rtts", "NaN"]).contains("0 or more"));
    assert!(with("mathis", &["--window", "1kB"]).contains("one segment at least"));
    assert!(with("mathis", &["--mss", "20"]).contains("not a segment payload"));
    assert!(with("aimd", &["--beta", "1.5"]).contains("between 0 and 1"));
    assert!(with("cubic", &["--w-max", "inf"]).contains("one segment at least"));
    assert!(with("pftk", &["--rto", "0s"]).contains("the timeout is zero"));
    let profile = with("mathis", &["--run", "freebsd-99"]);
    assert!(profile.contains("freebsd-99"), "{profile}");
    assert!(with("mathis", &["--random"]).contains("required arguments were not provided"));
}
