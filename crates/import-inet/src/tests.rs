use super::*;
use scenario::{Overrides, load};

/// What the INET wiki shows of mathis_simple.ini.
const SHOWN: &str = include_str!("../tests/data/mathis_simple.ini");

fn ini() -> Ini {
    read(SHOWN, "mathis_simple.ini").unwrap()
}

fn errors(text: &str) -> Vec<String> {
    let result = read(text, "x.ini").and_then(|ini| ini.import(ini.configs()[0], None, QUIC));
    result.unwrap_err().iter().map(ToString::to_string).collect()
}

fn told(imported: &Imported) -> Vec<String> {
    imported.unmapped.iter().map(|one| format!("{}: {}", one.line, one.why)).collect()
}

const QUIC: &str = "quic-inet-2025-02";

/// Packets of QUIC at the server in bit/s, from a second after the application's start on.
fn steady_bps(toml: &str) -> f64 {
    let came = |duration: &str| {
        let set = vec![format!("duration={duration}")];
        let overrides = Overrides { set, ..Overrides::default() };
        let loaded = load(toml, "x.toml", &overrides).unwrap();
        let outcome = sim::run(&loaded.scenario, &mut record::Off).unwrap();
        outcome.flows[0].received_packet_bytes.unwrap().get()
    };
    (came("11s") - came("3s")) as f64 * 8.0 / 8.0
}

/// The figures of the document: 35.77 and 31.30 Mbit/s with periodic loss.
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
        // Windows, queues and rules of QUIC mean nothing to it.
        assert_eq!(imported.unmapped.len(), 7);
    }
}

#[test]
fn what_is_not_mapped_is_told_with_its_place() {
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
        told(&imported),
        [
            "2: not known here",
            "3: only lossy_link_shared is known; a single line is taken",
            "5: there is one stream here, with the window of line 4",
        ]
    );
    assert_eq!(imported.unmapped[1].column, 3);
}

#[test]
fn what_the_file_does_not_say_is_told() {
    let imported =
        read("**.mtu = 1280B\n", "x.ini").unwrap().import("General", None, QUIC).unwrap();
    for line in [
        "# Not in the file: sim-time-limit, 11s is taken\n",
        "# Not in the file: linkDelay, none is taken\n",
        "# Not in the file: linkDatarate, 100 Gbit/s is taken\n",
    ] {
        assert!(imported.toml.contains(line), "{}", imported.toml);
    }
    assert!(!imported.toml.contains("mtu, the profile's"), "{}", imported.toml);
}

/// A line of a side counts for that side only, and the first line that fits counts.
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
    assert_eq!(told(&imported), ["5: line 3 comes before it"]);
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
    // What a run of the sweep is, the same combination of values alone is too.
    for (run, variant) in [(0, 0), (47, 11), (22, 5)] {
        let alone = ini.import("General", Some(variant), QUIC).unwrap();
        let alone = load(&alone.toml, "x.toml", &Overrides::default()).unwrap().scenario;
        let among = study.scenario(run).unwrap();
        assert_eq!((among.hosts, among.paths), (alone.hosts, alone.paths));
    }
}

#[test]
fn sweeps_that_change_the_same_are_refused() {
    let text = "**.linkDelay = ${1,2}${0,5}ms\n";
    let told = errors(text);
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("both change path.0.forward.1.delay"), "{told:?}");
    assert!(told[0].contains("--run 0 to 3"), "{told:?}");
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
    let told: Vec<String> =
        imported.unmapped.iter().map(|one| format!("{}: {}", one.line, one.why)).collect();
    assert_eq!(told, ["2: line 5 comes before it", "3: line 8 comes before it"]);
    let missing = read(text, "x.ini").unwrap().import("fra", None, "rfc").unwrap_err();
    assert!(missing[0].to_string().contains("did you mean \"far\"?"), "{}", missing[0]);
    let circle = "[Config a]\nextends = b\n[Config b]\nextends = a\n";
    assert!(read(circle, "x.ini").unwrap().import("a", None, "rfc").is_ok());
}

#[test]
fn random_loss_is_a_share() {
    let text = "**.client.quic.sendLossRate = 0.025\n**.client.quic.periodicSendLoss = false\n";
    let imported = read(text, "x.ini").unwrap().import("General", None, "rfc").unwrap();
    assert!(imported.toml.contains("loss = \"2.5%\""), "{}", imported.toml);
}

#[test]
fn mistakes_point_at_the_text() {
    assert_eq!(
        errors("**.linkDelay = 1ms\nwhat is this\n [Config\n= 5\nkey =  # nothing\n"),
        [
            "x.ini:2:1: this line means nothing (expected KEY = VALUE)",
            "x.ini:3:2: this is no section (expected [Config NAME])",
            "x.ini:4:1: there is no key before this (expected KEY = VALUE)",
            "x.ini:5:8: there is no value (expected KEY = VALUE)",
        ]
    );
    assert_eq!(
        errors("**.linkDelay = 1\n**.client.quic.periodicSendLossRate = 2%\n"),
        [
            "x.ini:1:16: linkDelay: \"1\" has no unit (expected a duration such as \"100ms\"); did \
             you mean \"1ms\"?",
            "x.ini:2:39: periodicSendLossRate: \"2%\" is no number (expected a share such as 0.02)",
        ]
    );
    let expected = "(expected values such as ${1,2,5}, ${N=1..9 step 4} or ${N})";
    assert_eq!(
        errors("**.mtu = ${mtu=1280,}B\n**.linkDelay = ${9..1}ms"),
        [
            format!("x.ini:1:10: a value is missing {expected}"),
            format!("x.ini:2:16: a range goes up in steps above 0 {expected}"),
        ]
    );
    assert_eq!(
        errors("**.mtu = ${mtu=1280"),
        ["x.ini:1:10: this sweep has no end (expected a closing })"]
    );
    assert_eq!(
        errors("**.mtu = ${nix}B"),
        [format!("x.ini:1:10: there is no sweep nix {expected}")]
    );
    assert!(errors("a = ${1..100000}")[0].contains("more than 10000 values"));
    let many = "a = ${1..1000}\nb = ${1..1000}\n";
    assert!(errors(many)[0].contains("more than 100000 combinations"));
}

/// What has its own text must be a place in it.
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
