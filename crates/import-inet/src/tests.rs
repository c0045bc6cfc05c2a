use super::*;
use scenario::{Overrides, load};

/// The part of mathis_simple.ini that the INET wiki shows.
const SHOWN: &str = include_str!("../tests/data/mathis_simple.ini");

fn ini() -> Ini {
    read(SHOWN, "mathis_simple.ini").unwrap()
}

fn errors(text: &str) -> Vec<String> {
    let result = read(text, "x.ini").and_then(|ini| ini.import(ini.configs()[0], None, QUIC));
    result.unwrap_err().iter().map(ToString::to_string).collect()
}

fn unmapped_lines(imported: &ImportedScenario) -> Vec<String> {
    imported.unmapped.iter().map(|one| format!("{}: {}", one.line, one.why)).collect()
}

const QUIC: &str = "quic-inet-2025-02";

/// Returns the rate of QUIC packets at the server in bit/s, from one second after the start.
fn steady_bps(toml: &str) -> f64 {
    let received = |duration: &str| {
        let set = vec![format!("duration={duration}")];
        let overrides = Overrides { set, ..Overrides::default() };
        let loaded = load(toml, "x.toml", &overrides).unwrap();
        let outcome = sim::run(&loaded.scenario, &mut record::NullRecorder).unwrap();
        outcome.flows[0].received_packet_bytes.unwrap().get()
    };
    (received("11s") - received("3s")) as f64 * 8.0 / 8.0
}

/// The published figures: 35.77 and 31.30 Mbit/s with periodic loss.
#[test]
fn the_file_of_the_wiki() {
    let ini = ini();
    assert_eq!(ini.configs(), ["ack_every_packet", "ack_every_other_packet"]);
    for (config, every, mbps) in
        [("ack_every_packet", 1, 35.77), ("ack_every_other_packet", 2, 31.30)]
    {
        let imported = ini.import(config, None, QUIC).unwrap();
        let scenario = load(&imported.toml, "x.toml", &Overrides::default()).unwrap().scenario;
        let [client, server] =
            [0, 1].map(|host| scenario.hosts[host].stack.quic().unwrap().profile);
        assert_eq!((client.name, client.mtu, server.mtu), (QUIC, 1_280, 1_280));
        assert_eq!(server.acks.every, every);
        assert_eq!(client.send_buffer, units::Bytes(50_000_000));
        for windows in [client.windows, server.windows] {
            assert_eq!((windows.connection, windows.stream), (4_294_967_295, 4_294_967_295));
        }
        assert!(imported.toml.contains("{ loss = { pass = 50 } },"), "{}", imported.toml);
        let measured = steady_bps(&imported.toml) / 1e6;
        assert!((measured - mbps).abs() <= 0.02, "{config}: {measured} Mbit/s");
    }
}

#[test]
fn the_same_experiment_with_a_tcp() {
    for (config, knob) in [("ack_every_packet", 0), ("ack_every_other_packet", 1)] {
        let imported = ini().import(config, Some(0), "freebsd-14.3").unwrap();
        let scenario = load(&imported.toml, "x.toml", &Overrides::default()).unwrap().scenario;
        assert_eq!(scenario.hosts[0].stack.mtu(), 1_280);
        assert!(imported.toml.contains(&format!("\"net.inet.tcp.delayed_ack\" = {knob}")));
        assert!(imported.toml.contains("loss = { pass = 50 }, only = \"data\""));
        // QUIC's windows, queues and rules do not apply to it.
        assert_eq!(imported.unmapped.len(), 7);
    }
}

#[test]
fn unmapped_lines_are_reported_with_their_position() {
    let imported = ini().import("ack_every_packet", None, QUIC).unwrap();
    let line = SHOWN.lines().position(|line| line.contains("LowWaterRatio")).unwrap() + 1;
    let [one] = imported.unmapped.as_slice() else { panic!("{:?}", imported.unmapped) };
    assert_eq!((one.line, one.column), (line, 1));
    assert_eq!(one.key, "**.client.quic.sendQueueLowWaterRatio");
    assert!(imported.toml.contains(&format!("#   line {line}: {}", one.key)), "{}", imported.toml);
    let text = "**.quic.sendQueueLimit = 1000\n**.unheard = 5\n  network = other\n\
                **.quic.initialMaxStreamDataUni = 5\n**.quic.initialMaxStreamDataBidiLocal = 6\n";
    let imported = read(text, "x.ini").unwrap().import("General", None, QUIC).unwrap();
    assert_eq!(
        unmapped_lines(&imported),
        [
            "2: unknown parameter",
            "3: only lossy_link_shared is known; a single link is assumed",
            "5: a scenario has one stream, with the window of line 4",
        ]
    );
    assert_eq!(imported.unmapped[1].column, 3);
}

#[test]
fn assumptions_are_reported() {
    let imported =
        read("**.mtu = 1280B\n", "x.ini").unwrap().import("General", None, QUIC).unwrap();
    for line in [
        "# Not in the file: sim-time-limit, 11s is assumed\n",
        "# Not in the file: linkDelay, 0 is assumed\n",
        "# Not in the file: linkDatarate, 100 Gbit/s is assumed\n",
    ] {
        assert!(imported.toml.contains(line), "{}", imported.toml);
    }
    assert!(!imported.toml.contains("mtu, the profile's"), "{}", imported.toml);
}

/// A line of one host applies to that host only; the first matching line applies.
#[test]
fn hosts_have_parameters_of_their_own() {
    let text = "**.client.quic.sendQueueLimit = 1000\n**.quic.sendQueueLimit = 2000\n\
                **.server.quic.sendLossRate = 0.01\n**.quic.sendLossRate = 0.02\n\
                **.server.quic.sendLossRate = 0.5\n";
    let imported = read(text, "x.ini").unwrap().import("General", None, QUIC).unwrap();
    let scenario = load(&imported.toml, "x.toml", &Overrides::default()).unwrap().scenario;
    let buffers =
        [0, 1].map(|host| scenario.hosts[host].stack.quic().unwrap().profile.send_buffer.get());
    assert_eq!(buffers, [1_000, 2_000]);
    let shares: Vec<&str> =
        imported.toml.lines().filter(|line| line.contains("{ loss = ")).map(str::trim).collect();
    assert_eq!(shares, ["{ loss = \"2%\" },", "{ loss = \"1%\" },"]);
    assert_eq!(unmapped_lines(&imported), ["5: overridden by line 3"]);
}

#[test]
fn sweeps_become_those_of_the_scenario() {
    let text = "**.mtu = ${mtu=1280,1500}B\n\
                **.linkDelay = ${1,5}ms\n\
                **.client.quic.periodicSendLossRate = ${.02,.01 ! mtu}\n\
                **.server.quic.numReceivedAckElicitingsBeforeAck = ${n=1..3}\n\
                repeat = 4\n";
    let ini = read(text, "x.ini").unwrap();
    let imported = ini.import("General", None, QUIC).unwrap();
    let overrides = StudyOverrides::default();
    let study = Study::load(&imported.toml, "x.toml", &overrides).unwrap();
    assert_eq!(
        study.axes(),
        [
            &["host.client.mtu", "host.server.mtu", "path.0.forward.0.loss"][..],
            &["path.0.forward.2.delay", "path.0.return.1.delay"],
            &["host.server.knobs.numReceivedAckElicitingsBeforeAck"],
        ]
    );
    assert_eq!((study.repeat(), study.runs()), (4, 48));
    // A run of the sweep equals the import of the same combination.
    for (run, variant) in [(0, 0), (47, 11), (22, 5)] {
        let single_packet = ini.import("General", Some(variant), QUIC).unwrap();
        let single_packet =
            load(&single_packet.toml, "x.toml", &Overrides::default()).unwrap().scenario;
        let among = study.scenario(run).unwrap();
        assert_eq!((among.hosts, among.paths), (single_packet.hosts, single_packet.paths));
    }
}

#[test]
fn sweeps_over_the_same_key_are_rejected() {
    let text = "**.linkDelay = ${1,2}${0,5}ms\n";
    let errors = errors(text);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains("both change path.0.forward.1.delay"), "{errors:?}");
    assert!(errors[0].contains("--run 0 to 3"), "{errors:?}");
    assert!(read(text, "x.ini").unwrap().import("General", Some(3), QUIC).is_ok());
}

#[test]
fn sweeps_give_every_combination() {
    let text = "**.mtu = ${mtu=1280,1500}B\n\
                **.linkDelay = ${0.5..1.5 step 0.5}ms\n\
                **.client.quic.periodicSendLossRate = ${.02,.01 ! mtu}\n\
                description = ${mtu}\n";
    let ini = read(text, "x.ini").unwrap();
    let variants = ini.variants("General").unwrap();
    let values: Vec<Vec<&str>> = variants
        .iter()
        .map(|variant| variant.values.iter().map(|(_, value)| value.as_str()).collect())
        .collect();
    assert_eq!(
        values,
        [
            ["1280", "0.5", ".02"],
            ["1280", "1.0", ".02"],
            ["1280", "1.5", ".02"],
            ["1500", "0.5", ".01"],
            ["1500", "1.0", ".01"],
            ["1500", "1.5", ".01"],
        ]
    );
    let last = ini.import("General", Some(5), "rfc").unwrap();
    assert!(
        last.toml.contains("pass = 100") && last.toml.contains("delay = \"1.5ms\""),
        "{}",
        last.toml
    );
    let none = ini.import("General", Some(6), "rfc").unwrap_err();
    assert!(none[0].to_string().contains("has no run 6; runs are 0 to 5"), "{}", none[0]);
}

#[test]
fn sections_extend_each_other() {
    let text = "[General]\n**.linkDelay = 1ms\n**.linkDatarate = 10Mbps\n\
                [Config base]\n**.linkDelay = 2ms\n\
                [Config far]\nextends = base\n**.linkDatarate = 20Mbps\n";
    let imported = read(text, "x.ini").unwrap().import("far", None, "rfc").unwrap();
    assert!(imported.toml.contains("delay = \"2ms\""), "{}", imported.toml);
    assert!(imported.toml.contains("rate = \"20Mbit/s\""), "{}", imported.toml);
    let unmapped: Vec<String> =
        imported.unmapped.iter().map(|one| format!("{}: {}", one.line, one.why)).collect();
    assert_eq!(unmapped, ["2: overridden by line 5", "3: overridden by line 8"]);
    let missing = read(text, "x.ini").unwrap().import("fra", None, "rfc").unwrap_err();
    assert!(missing[0].to_string().contains("did you mean \"far\"?"), "{}", missing[0]);
    let circle = "[Config a]\nextends = b\n[Config b]\nextends = a\n";
    assert!(read(circle, "x.ini").unwrap().import("a", None, "rfc").is_ok());
}

#[test]
fn a_chain_of_sections_has_a_bound() {
    let chain = |n: usize| {
        let mut text = "[Config c0]\n**.linkDelay = 2ms\n".to_owned();
        for section in 1..n {
            text += &format!("[Config c{section}]\nextends = c{}\n", section - 1);
        }
        read(&text, "x.ini").unwrap().import(&format!("c{}", n - 1), None, "rfc")
    };
    assert!(chain(100).unwrap().toml.contains("delay = \"2ms\""));
    let error = chain(1_000).unwrap_err()[0].to_string();
    assert!(error.contains("[Config c999] extends more than 100 sections"), "{error}");
    // The line of c899, the hundredth base.
    assert!(error.starts_with("x.ini:1800:11: "), "{error}");
}

#[test]
fn random_loss_is_a_fraction() {
    let text = "**.client.quic.sendLossRate = 0.025\n**.client.quic.periodicSendLoss = false\n";
    let imported = read(text, "x.ini").unwrap().import("General", None, "rfc").unwrap();
    assert!(imported.toml.contains("loss = \"2.5%\""), "{}", imported.toml);
}

#[test]
fn errors_point_at_the_text() {
    assert_eq!(
        errors("**.linkDelay = 1ms\nwhat is this\n [Config\n= 5\nkey =  # nothing\n"),
        [
            "x.ini:2:1: this line is not a key with a value (expected KEY = VALUE)",
            "x.ini:3:2: this is not a section (expected [Config NAME])",
            "x.ini:4:1: the key is missing (expected KEY = VALUE)",
            "x.ini:5:8: the value is missing (expected KEY = VALUE)",
        ]
    );
    assert_eq!(
        errors("**.linkDelay = 1\n**.client.quic.periodicSendLossRate = 2%\n"),
        [
            "x.ini:1:16: linkDelay: \"1\" has no unit (expected a duration such as \"100ms\"); did \
             you mean \"1ms\"?",
            "x.ini:2:39: periodicSendLossRate: \"2%\" is not a number (expected a fraction such as 0.02)",
        ]
    );
    let expected = "(expected values such as ${1,2,5}, ${N=1..9 step 4} or ${N})";
    assert_eq!(
        errors("**.mtu = ${mtu=1280,}B\n**.linkDelay = ${9..1}ms"),
        [
            format!("x.ini:1:10: a value is missing {expected}"),
            format!("x.ini:2:16: a range must ascend with a step above 0 {expected}"),
        ]
    );
    assert_eq!(
        errors("**.mtu = ${mtu=1280"),
        ["x.ini:1:10: this sweep is not closed (expected a closing })"]
    );
    assert_eq!(
        errors("**.mtu = ${nix}B"),
        [format!("x.ini:1:10: there is no sweep nix {expected}")]
    );
    assert!(errors("a = ${1..100000}")[0].contains("more than 10000 values"));
    let many = "a = ${1..1000}\nb = ${1..1000}\n";
    assert!(errors(many)[0].contains("more than 100000 combinations"));
}

/// An imported scenario must load.
fn check(text: &str) {
    let Ok(ini) = read(text, "x.ini") else { return };
    for config in ini.configs() {
        for profile in [QUIC, "freebsd-14.3"] {
            if let Ok(imported) = ini.import(config, None, profile) {
                let loaded = load(&imported.toml, "x.toml", &Overrides::default());
                assert!(loaded.is_ok(), "{text}\n{}", imported.toml);
            }
        }
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read(text in "(\\[Config a\\]\n|[a-z.*=${},!0-9 #\"]{0,20}=[a-z0-9.${},! ]{0,20}\n|\\PC{0,20}\n){0,8}") {
        check(&text);
    }

    #[test]
    fn any_change_of_the_wikis_file_is_read(at in 0..1_500_usize, with in "[\\[\\]${}=.,!#0-9a-z\n]{0,4}") {
        let mut text = SHOWN.to_owned();
        text.insert_str(text.floor_char_boundary(at), &with);
        check(&text);
    }
}
