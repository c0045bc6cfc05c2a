//! Errors of invalid texts: position and message.

use super::*;

/// Asserts that `SMALL` with one replacement has exactly this error.
fn one_mistake(from: &str, to: &str, expected: &str) {
    assert!(SMALL.contains(from), "{from}");
    let mistakes = mistakes(&SMALL.replace(from, to), &[]);
    assert_eq!(mistakes.len(), 1, "{from} -> {to}: {mistakes:?}");
    assert!(mistakes[0].contains(expected), "{from} -> {to}: {}", mistakes[0]);
}

#[test]
fn missing_units_are_suggested() {
    one_mistake(
        "\"5ms\"",
        "5",
        r#"test.toml:3:56: `delay` has no unit (expected a duration such as "100ms", found 5); did you mean "5ms"?"#,
    );
    one_mistake("\"5ms\"", "\"5\"", r#"found "5"); did you mean "5ms"?"#);
    one_mistake("\"5ms\"", "0.5", r#"did you mean "0.5ms"?"#);
    one_mistake("\"5ms\"", "-5", "`delay` is negative");
    one_mistake("\"5ms\"", "\"-5ms\"", r#"`delay` is negative"#);
    one_mistake("\"5ms\"", "\"5m\"", r#"did you mean "5min"?"#);
    one_mistake("\"5ms\"", "\"5MB\"", "`delay` has the unit `MB`, not a unit of time");
    one_mistake("\"5ms\"", "\"12d\"", "units are ns, us, ms, s, min and h");
    one_mistake("\"5ms\"", "\"2000000s\"", "`delay` is more than 1000000s, the limit");
    one_mistake("\"5ms\"", "true", "`delay` has a value of the wrong type");
    one_mistake("\"5ms\"", "1e-3", "`delay` has no unit");
    one_mistake("\"5ms\"", "5ms", r#"test.toml:3:56: this value needs quotes; write "5ms""#);
    one_mistake("\"5ms\"", "10_000B", "test.toml:3:56: `delay` has no unit");
    one_mistake("\"1MB\"", "1000000", r#"did you mean "1000000B"?"#);
    one_mistake("\"1MB\"", "\"1Mb\"", r#"did you mean "1MB" (bytes)?"#);
    one_mistake("\"1MB\"", "\"2EB\"", "`bulk` is more than 1EB, the limit");
}

#[test]
fn misspelt_names_are_suggested() {
    one_mistake("profile = \"freebsd", "profil = \"freebsd", "did you mean `profile`?");
    one_mistake("freebsd-13.2", "freebsd-13.22", "the nearest is `freebsd-13.2`");
    one_mistake("freebsd-13.2", "freebds-13.2", "did you mean `freebsd-13.2`?");
    one_mistake("freebsd-13.2", "windows-11", "`profile` cannot be \"windows-11\"");
    one_mistake("freebsd-13.2", "linux-6.19", "not modelled; the nearest is `linux-6.18`");
    one_mistake("\"reno\"", "\"bbr2\"", "`bbr3` is version 3, which replaced it");
    one_mistake("\"reno\"", "\"bbrv3\"", "BBR version 3 of Linux is `bbr3`");
    one_mistake("\"reno\"", "\"prague\"", "`prague` is not modelled yet");
    one_mistake("\"reno\"", "\"htcp\"", "`htcp` is not modelled yet");
    let bbr = "freebsd-13.2\", cc = \"bbr";
    one_mistake("freebsd-13.2", bbr, "`bbr` needs the delivery rates of Linux's stack");
    let bbr3 = "freebsd-13.2\", cc = \"bbr3";
    one_mistake("freebsd-13.2", bbr3, "`bbr3` needs the delivery rates of Linux's stack");
    let draft = "freebsd-13.2\", cc = \"bbr-draft";
    one_mistake("freebsd-13.2", draft, "`bbr-draft` is BBR of the IETF draft: no kernel has it");
    one_mistake("\"reno\"", "\"cubic-tick\"", "did you mean `cubic-ticks`?");
    one_mistake("\"reno\"", "\"rneo\"", "did you mean `reno`?");
    one_mistake("bulk =", "bluk =", "did you mean `bulk`?");
    one_mistake(
        "to = \"b\", bulk",
        "to = \"c\", bulk",
        "there is no host \"c\" (expected `a` or `b`)",
    );
}

#[test]
fn knobs_are_those_of_the_system() {
    let with = |knob: &str| format!("freebsd-13.2\", knobs = {{ {knob} }}, cc = \"newreno");
    let one = |knob: &str, expected: &str| one_mistake("freebsd-13.2", &with(knob), expected);
    one("\"net.inet.tcp.abc_lvar\" = 2", "did you mean `net.inet.tcp.abc_l_var`?");
    one("abc_l_var = 2", "did you mean `net.inet.tcp.abc_l_var`?");
    one(
        "\"net.ipv4.tcp_sack\" = 1",
        "`net.ipv4.tcp_sack` is a knob of linux-6.1, linux-6.12, linux-6.18, not of freebsd-13.2",
    );
    one("net.inet.tcp.abc_l_var = 2", "the name of a knob is written in quotes");
    one("\"net.inet.tcp.abc_l_var\" = 0", "is out of range (expected 1 to 65535, found 0)");
    one("\"net.inet.tcp.abc_l_var\" = -1", "is out of range");
    one("\"net.inet.tcp.abc_l_var\" = \"2\"", "has a value of the wrong type (expected a whole");
    one("\"net.inet.tcp.sendspace\" = 32768", r#"did you mean "32768B"?"#);
    one("\"net.inet.tcp.sendspace\" = \"1kB\"", "is out of range (expected 2048 B to");
    one("\"net.inet.tcp.delacktime\" = 40", r#"did you mean "40ms"?"#);
    one("\"net.inet.tcp.sack.enable\" = 2", "(expected `true`, `false`, 0 or 1, found 2)");
}

#[test]
fn offloads_are_those_of_the_system_and_of_hosts() {
    one_mistake("freebsd-13.2\"", "freebsd-13.2\", gro = true", "`gro` is Linux's");
    one_mistake("cc = \"reno\"", "cc = \"reno\", lro = true", "write gro = true");
    one_mistake("freebsd-13.2\"", "freebsd-13.2\", lro = 1", "`true`, `false` or a table");
    let hash = |hash: &str, expected: &str| {
        let lro = format!("freebsd-13.2\", lro = {{ rss_hash = {hash} }}, cc = \"newreno");
        one_mistake("freebsd-13.2", &lro, expected);
    };
    hash("\"randon\"", "did you mean `random`?");
    hash("4", "`flow`, `random` or a table");
    hash("{}", "`rss_hash` needs `constant` or `decreasing`");
    hash("{ constant = 1, decreasing = 4 }", "either `constant` or `decreasing`, not both");
    hash("{ decreasing = 0 }", "a whole number from 1 to 65536");
    hash("{ random = true }", "write rss_hash = \"random\"");
    for offload in ["lro", "gro", "tso"] {
        let element = format!("{offload} = true");
        one_mistake("delay = \"5ms\"", &element, "put it under [host.NAME]");
    }
    one_mistake("delay = \"5ms\"", "tap = {}", "a capture point belongs to a host");
}

#[test]
fn elements_have_one_function() {
    one_mistake("{ delay = \"5ms\" }", "{}", "an element needs `link`, `delay`, `jitter`,");
    one_mistake("{ delay = \"5ms\" }", "5", "an element must be a table");
    let both = "{ delay = \"5ms\", link = { rate = \"1Mbit/s\", buffer = \"1p\" } }";
    one_mistake("{ delay = \"5ms\" }", both, "an element has either `link` or `delay`, not both");
    let link = |inner: &str| format!("{{ link = {{ {inner} }} }}");
    let one = |inner: &str, expected: &str| {
        one_mistake("{ delay = \"5ms\" }", &link(inner), expected);
    };
    one("rate = \"1Mbit/s\"", "a link needs `buffer`");
    one("buffer = \"1p\"", "a link needs `rate`");
    one("rate = \"0Mbit/s\", buffer = \"1p\"", "`rate` is zero");
    one("rate = \"1Mbit/s\", buffer = \"0p\"", "this buffer has zero capacity");
    one("rate = \"1Mbit/s\", buffer = \"1bdp\"", "the delays of the path are 0ns");
    one("rate = \"1Mbit/s\", buffer = \"1bpd\"", r#"did you mean "1bdp"?"#);
    one("rate = \"1Mbit/s\", buffer = \"1p\", delay = \"1s\"", "a delay is an element of its own");
}

#[test]
fn paths_and_flows_fit_together() {
    one_mistake(", return = []", "", "test.toml:3:10: a path needs `return`");
    one_mistake("to = \"b\", forward", "to = \"a\", forward", "a path needs two different hosts");
    one_mistake("to = \"b\", bulk", "to = \"a\", bulk", "a flow needs two different hosts");
    one_mistake(
        "return = [] }",
        "return = [] }, { from = \"b\", to = \"a\", forward = [], return = [] }",
        "a second path between \"b\" and \"a\"",
    );
}

#[test]
fn a_missing_path_is_named_by_its_hosts() {
    let third = "host.c = { profile = \"freebsd-13.2\" }\nflow = [ { name = \"g\", from = \"c\", to = \"b\", bulk = \"1MB\" }, ";
    one_mistake("flow = [", third, "test.toml:5:10: there is no path between \"c\" and \"b\"");
}

#[test]
fn an_error_is_not_reported_twice() {
    // An invalid endpoint of a path also leaves the flow without a path.
    one_mistake("to = \"b\", forward", "to = \"bb\", forward", "there is no host \"bb\"");
    // A path with an invalid delay still exists.
    one_mistake("delay = \"5ms\"", "delay = \"5\"", "`delay` has no unit");
}

#[test]
fn endless_runs_are_rejected() {
    one_mistake("\"1MB\"", "\"unlimited\"", "the run would never end");
    one_mistake("bulk = \"1MB\"", "paced = { chunk = \"1kB\", every = \"1ms\" }", "never end");
    one_mistake(
        "bulk = \"1MB\"",
        "paced = { chunk = \"0B\", every = \"1ms\", bytes = \"1B\" }",
        "`chunk` is out of range",
    );
    one_mistake(
        "bulk = \"1MB\"",
        "paced = { chunk = \"1B\", every = \"0s\", bytes = \"1B\" }",
        "`every` is too short (expected at least 1us",
    );
    one_mistake(
        "bulk = \"1MB\"",
        "paced = { every = \"1s\", bytes = \"1B\" }",
        "`paced` needs `chunk`",
    );
    one_mistake(
        "bulk = \"1MB\"",
        "bulk = \"1MB\", paced = { chunk = \"1B\", every = \"1s\" }",
        "either `bulk` or `paced`",
    );
    one_mistake(
        ", bulk = \"1MB\"",
        "",
        "a flow needs `bulk`, `paced`, `on_off`, `requests`, `exchange`, `transfer`, `video`, \
         `page`, `udp` or `ping`",
    );
    let text =
        format!("duration = \"1s\"\n{}", SMALL.replace("\"1MB\"", "\"1MB\", start = \"1s\""));
    assert!(mistakes(&text, &[])[0].contains("starts after the end of the run"));
}

#[test]
fn names_must_be_unique() {
    let twice = "{ name = \"f\", from = \"b\", to = \"a\", bulk = \"1MB\" }, { name";
    one_mistake("{ name", twice, "duplicate flow name \"f\"; the first is on line 4");
    one_mistake("host.b =", "host.a =", "test.toml:2:6: `a` is defined twice");
    let taps = "tap = [ { host = \"a\" }, { host = \"a\", at = \"stack\" } ]\nflow";
    one_mistake("flow", taps, "test.toml:4:25: duplicate capture point on \"a\"");
}

#[test]
fn an_empty_text_needs_everything() {
    let missing = mistakes("", &[]);
    assert_eq!(missing.len(), 3);
    for (mistake, key) in missing.iter().zip(["host", "flow", "path"]) {
        let expected = format!("test.toml:1:1: a scenario needs `{key}`");
        assert!(mistake.starts_with(&expected), "{mistake}");
    }
    one_mistake(
        "flow = [ { name = \"f\", from = \"a\", to = \"b\", bulk = \"1MB\" } ]",
        "flow = []",
        "`flow` is empty",
    );
}

#[test]
fn independent_errors_are_all_reported_in_order() {
    let text = SMALL
        .replace("freebsd-13.2", "freebsd-13.1")
        .replace("\"5ms\"", "5")
        .replace("\"1MB\"", "-1");
    let lines: Vec<usize> = loaded(&text, &[]).unwrap_err().iter().map(|e| e.line).collect();
    assert_eq!(lines, [1, 3, 4]);
}

#[test]
fn ipv6_needs_an_mtu_of_1280() {
    one_mistake(
        "\"1MB\"",
        "\"1MB\", ip = 5",
        "`ip` has a value of the wrong type (expected 4 or 6",
    );
    let text =
        SMALL.replace("\"1MB\"", "\"1MB\", ip = 6").replace("13.2\"", "13.2\", mtu = \"1000B\"");
    assert!(mistakes(&text, &[])[0].contains("IPv6 needs an MTU of at least 1280 B"));
}

#[test]
fn columns_count_characters_and_no_byte_order_mark() {
    let text = format!("\u{feff}title = 5\r\n{SMALL}");
    assert!(mistakes(&text, &[])[0].starts_with("test.toml:1:9: `title`"));
    let text = SMALL.replace("\"5ms\"", "\"5µz\", x = 1");
    let errors = loaded(&text, &[]).unwrap_err();
    // Columns 56 to 60 are the five characters "5µz"; x is at column 63.
    assert_eq!((errors[0].column, errors[0].width), (56, 5));
    assert_eq!((errors[1].column, errors[1].width), (63, 1));
}

#[test]
fn invalid_utf8_has_a_position() {
    let errors = crate::decode(b"title = \"\xc3\xa9\"\nx = \"\xff\"", "test.toml").unwrap_err();
    let error = &errors[0];
    assert_eq!((error.line, error.column, error.source_line.as_str()), (2, 6, "x = \""));
    assert_eq!(error.found.as_deref(), Some("0xff"));
}

#[test]
fn quic_has_its_own_hosts_knobs_and_rules() {
    one_mistake("\"freebsd-13.2\"", "\"quic-rfc9002\"", "\"a\" has QUIC and \"b\" has TCP");
    let quic = SMALL
        .replace("\"freebsd-13.2\"", "\"quic-rfc9002\"")
        .replace("\"linux-6.18\", cc = \"reno\"", "\"quic-inet-2025-02\"");
    assert_eq!(mistakes(&quic, &[]), Vec::<String>::new());
    let one = |from: &str, to: &str, expected: &str| {
        let mistakes = mistakes(&quic.replace(from, to), &[]);
        assert_eq!(mistakes.len(), 1, "{from} -> {to}: {mistakes:?}");
        assert!(mistakes[0].contains(expected), "{from} -> {to}: {}", mistakes[0]);
    };
    one("\"1MB\"", "\"1MB\", nodelay = true", "options of TCP; this flow uses QUIC");
    one("flow = [", "tap = [{ host = \"a\" }]\nflow = [", "QUIC hosts have no captures");
    let host = |keys: &str, expected: &str| {
        one("\"quic-rfc9002\"", &format!("\"quic-rfc9002\", {keys}"), expected);
    };
    host("knobs = { pacin = true }", "quic-rfc9002 has no knob `pacin`");
    host("knobs = { pacing = \"fast\" }", "`true`, `false`, 0 or 1");
    host("knobs = { max_ack_delay = \"20s\" }", "`max_ack_delay` is out of range");
    host("mtu = \"1200B\"", "QUIC needs an MTU of 1228 B");
}

/// An unlimited flow would never leave its first instant, or nearly so.
#[test]
fn an_unlimited_flow_is_rejected_at_its_position() {
    let world = |delay: &str, volume: &str, link: &str| {
        let path = format!("forward = [ {link}{{ delay = \"{delay}\" }} ]");
        let text = SMALL.replace("forward = [ { delay = \"5ms\" } ]", &path);
        mistakes(&format!("duration = \"1s\"\n{}", text.replace("bulk = \"1MB\"", volume)), &[])
    };
    let link = "{ link = { rate = \"1Gbit/s\", buffer = \"9p\" } }, ";
    for (delay, volume) in [
        ("0ns", "bulk = \"unlimited\""),
        ("1ns", "bulk = \"unlimited\""),
        ("100ns", "bulk = \"unlimited\""),
        ("1ns", "on_off = { on = \"1GB\", off = \"1us\" }"),
        ("1ns", "on_off = { on = \"1ms\", off = \"1ms\" }"),
        ("0ns", "requests = { request = \"1B\", response = \"1B\" }"),
    ] {
        let found = world(delay, volume, "");
        let expected = format!(
            "test.toml:5:{}: nothing limits the rate of this flow: its path has no link, and its \
             round trip takes {delay}; put {{ link",
            SMALL.lines().last().unwrap().find("bulk").unwrap() + volume.find("= ").unwrap() + 3
        );
        assert_eq!(found.len(), 1, "{delay} {volume}: {found:?}");
        assert!(found[0].starts_with(&expected), "{delay} {volume}: {found:?}");
        assert_eq!(world(delay, volume, link), [""; 0], "{delay} {volume}, with a link");
    }
    for (delay, volume) in [
        ("1us", "bulk = \"unlimited\""),
        ("0ns", "bulk = \"1GB\""),
        ("0ns", "paced = { chunk = \"1kB\", every = \"1us\" }"),
        ("0ns", "on_off = { on = \"1kB\", off = \"1us\" }"),
        ("0ns", "requests = { request = \"1B\", response = \"1B\", think = \"1us\" }"),
    ] {
        assert_eq!(world(delay, volume, ""), [""; 0], "{delay} {volume}");
    }
}

#[test]
fn invalid_changes_point_at_the_time() {
    let one = |delay: &str, expected: &str| {
        one_mistake("{ delay = \"5ms\" }", &format!("{{ delay = {delay} }}"), expected);
    };
    one(r#"{ at = [["0s", "5ms"], ["2s", "7ms"], ["2s", "9ms"]] }"#, "not after the one before it");
    one(r#"{ at = [["0s", "5ms"], ["2s", "7ms"], ["1s", "9ms"]] }"#, "a time after 2s");
    one(r#"{ at = [["1s", "5ms"]] }"#, "the first time is not 0s");
    one(r#"{ at = [["0s", "5ms"], ["-1s", "7ms"]] }"#, "`time` is negative");
    one(r#"{ at = [["0s", "5ms"], ["1", "7ms"]] }"#, "did you mean \"1s\"?");
    let beyond = r#"{ at = [["0s", "5ms"], ["2s", "7ms"]], period = "2s" }"#;
    one(beyond, "this time is beyond the period of this list");
    one("{ at = [] }", "`at` is empty");
    one(r#"{ at = ["0s"] }"#, "a time and a value");
    one(r#"{ at = [["0s"]] }"#, "two items: a time and a value");
    one(r#"{ at = [["0s", "5ms"]], every = "2s" }"#, "repeats is `period`");
    let long = r#"{ at = [["0s", "5ms"], ["4s", "7ms"]], ramp = "10us" }"#;
    one(long, "this ramp has more than 100000 steps");
    let link = |inner: &str, expected: &str| {
        let link = format!("{{ link = {{ {inner} }} }}");
        one_mistake("{ delay = \"5ms\" }", &link, expected);
    };
    link(r#"rate = { at = [["0s", "0Mbit/s"]] }, buffer = "9p""#, "this link never sends");
    link(r#"rate = "0Mbit/s", buffer = "9p""#, "`rate`");
    let buffer = r#"rate = "1Mbit/s", buffer = { at = [["0s", "0p"]] }"#;
    link(buffer, "this buffer has zero capacity");
    let outage = |inner: &str, expected: &str| {
        let outage = format!("{{ outage = {{ from = \"1s\", until = \"3s\", {inner} }} }}");
        one_mistake("{ delay = \"5ms\" }", &outage, expected);
    };
    outage(r#"period = "2s""#, "each outage lasts until the next");
    outage(r#"every = "4s""#, "called `period`");
    let slot = r#"{ slot = { min = "2ms", max = "1ms" } }"#;
    one_mistake("{ delay = \"5ms\" }", slot, "`max` is less than `min`");
    let late = r#"{ delay = { at = [["0s", "5ms"], ["10s", "7ms"]] } }"#;
    let late = format!("duration = \"10s\"\n{}", SMALL.replace("{ delay = \"5ms\" }", late));
    let found = mistakes(&late, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("this time is beyond the end of the run (expected a time before 10s")
    );
    let loss = r#"{ loss = { every = 5, period = "1s" } }"#;
    one_mistake("{ delay = \"5ms\" }", loss, "`period` goes with `at`");
}

#[test]
fn settings_of_a_kernel_that_are_keys_name_the_key() {
    let hint = |knob: &str| {
        let line = mistakes(SMALL, &[&format!("host.a.knobs.{knob}=1")]).remove(0);
        line.split_once("; ").map(|(_, hint)| hint.to_owned())
    };
    let cc = Some("it is a key of the host: cc = \"cubic\"".to_owned());
    assert_eq!(hint("net.ipv4.tcp_congestion_control"), cc);
    assert_eq!(hint("tcp_congestion_control"), cc);
    assert_eq!(hint("net.inet.tcp.cc.algorithm"), cc);
    // The end of a name leads to its whole, however different in length.
    assert_eq!(hint("abc_l_var"), Some("did you mean `net.inet.tcp.abc_l_var`?".to_owned()));
    assert_eq!(hint("warp"), None);
}

/// Many errors of one text, some of them in one line: the first 20 and the number of the others. The
/// time and the length of the report do not grow with their product.
#[test]
fn of_many_errors_the_first_are_reported() {
    let hosts: String =
        (0..2_000).map(|n| format!("[host.h{n}]\nprofile = \"linux-6.18\"\n")).collect();
    let flows: String = (0..2_000)
        .map(|n| {
            format!("[[flow]]\nname = \"f{n}\"\nfrom = \"no{n}\"\nto = \"h{n}\"\nbulk = \"1MB\"\n")
        })
        .collect();
    let keys: String = (0..9_000).map(|n| format!("\nunknown{n} = 1")).collect();
    let elements = "{ loss = \"1\" }, ".repeat(9_000);
    let long = "x".repeat(80_000);
    let no_flow = SMALL.split_once("flow = [").unwrap().0;
    for (text, first) in [
        (format!("{no_flow}{hosts}{flows}"), "there is no host \"no0\""),
        (format!("{SMALL}{keys}"), "has no key `unknown0`"),
        (SMALL.replace("forward = [", &format!("forward = [{elements}")), "`loss` has no unit"),
        (format!("{SMALL}{}", hosts.replace("linux-6.18", "linux")), "cannot be \"linux\""),
        (format!("{no_flow}[host.{long}]\nprofile = \"linux-6.18\"\n{flows}"), "no host \"no0\""),
    ] {
        let mistakes = mistakes(&text, &[]);
        assert_eq!(mistakes.len(), 21, "{}", mistakes[0]);
        assert!(mistakes[0].contains(first), "{}", mistakes[0]);
        assert!(mistakes[20].contains(" more errors from here on"), "{}", mistakes[20]);
        let others = mistakes[20].split(' ').find_map(|word| word.parse::<usize>().ok()).unwrap();
        assert!(others >= 1_900, "{}", mistakes[20]);
    }
}

/// One more than those that are reported is reported itself.
#[test]
fn twenty_one_errors_are_all_reported() {
    let keys = |count: usize| (0..count).map(|n| format!("\nunknown{n} = 1")).collect::<String>();
    let all = mistakes(&format!("{SMALL}{}", keys(21)), &[]);
    assert!(all.len() == 21 && all[20].contains("`unknown20`"), "{all:?}");
    let many = mistakes(&format!("{SMALL}{}", keys(22)), &[]);
    assert!(many.len() == 21 && many[20].contains(" 2 more errors from here on"), "{many:?}");
}
