use super::*;
use crate::scenario::{Overrides, load};

/// What the INET wiki shows of mathis_simple.ini.
const SHOWN: &str = include_str!("../../tests/data/mathis_simple.ini");

fn ini() -> Ini {
    read(SHOWN, "mathis_simple.ini").unwrap()
}

fn errors(text: &str) -> Vec<String> {
    let result = read(text, "x.ini").and_then(|ini| ini.import(ini.configs()[0], 0, "rfc"));
    result.unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn the_file_of_the_wiki() {
    let ini = ini();
    assert_eq!(ini.configs(), ["ack_every_packet", "ack_every_other_packet"]);
    for (config, knob) in [("ack_every_packet", 0), ("ack_every_other_packet", 1)] {
        let imported = ini.import(config, 0, "freebsd-14.3").unwrap();
        let values: Vec<&str> = imported.variant.values.iter().map(|(_, v)| v.as_str()).collect();
        assert_eq!(values.len(), 2);
        assert!(values.contains(&"1280") && values.contains(&["1", "2"][knob]), "{values:?}");
        let scenario = load(&imported.toml, "x.toml", &Overrides::default()).unwrap().scenario;
        assert_eq!(scenario.hosts[0].profile.mtu, 1_280);
        assert!(imported.toml.contains(&format!("\"net.inet.tcp.delayed_ack\" = {knob}")));
        let forward = &scenario.paths[0].forward;
        assert!(format!("{forward:?}").contains("1ms"), "{forward:?}");
        assert!(imported.toml.contains("loss = { pass = 50 }, only = \"data\""));
    }
}

#[test]
fn what_is_not_mapped_is_told_with_its_place() {
    let imported = ini().import("ack_every_packet", 0, "freebsd-14.3").unwrap();
    let told: Vec<(usize, usize, &str)> =
        imported.unmapped.iter().map(|one| (one.line, one.column, one.key.as_str())).collect();
    let line = |key: &str| SHOWN.lines().position(|line| line.starts_with(key)).unwrap() + 1;
    let expected = [
        "**.quic.initialMaxData",
        "**.quic.initialMaxStreamDataBidiRemote",
        "**.quic.initialMaxStreamDataUni",
        "**.client.quic.sendQueueLimit",
        "**.client.quic.sendQueueLowWaterRatio",
        "**.client.quic.accurateIncreaseInNewRenoCongestionAvoidance",
        "**.quic.bundleAckForNonAckElicitingPackets",
    ];
    assert_eq!(told, expected.map(|key| (line(&format!("{key} ")), 1, key)));
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
    let last = ini.import("General", 5, "rfc").unwrap();
    assert!(
        last.toml.contains("pass = 100") && last.toml.contains("delay = \"1.5ms\""),
        "{}",
        last.toml
    );
    let none = ini.import("General", 6, "rfc").unwrap_err();
    assert!(none[0].to_string().contains("has no run 6; runs are 0 to 5"), "{}", none[0]);
}

#[test]
fn sections_extend_each_other() {
    let text = "[General]\n**.linkDelay = 1ms\n**.linkDatarate = 10Mbps\n\
                [Config base]\n**.linkDelay = 2ms\n\
                [Config far]\nextends = base\n**.linkDatarate = 20Mbps\n";
    let imported = read(text, "x.ini").unwrap().import("far", 0, "rfc").unwrap();
    assert!(imported.toml.contains("delay = \"2ms\""), "{}", imported.toml);
    assert!(imported.toml.contains("rate = \"20000000bit/s\""), "{}", imported.toml);
    let told: Vec<String> =
        imported.unmapped.iter().map(|one| format!("{}: {}", one.line, one.why)).collect();
    assert_eq!(told, ["2: line 5 comes before it", "3: line 8 comes before it"]);
    let missing = read(text, "x.ini").unwrap().import("fra", 0, "rfc").unwrap_err();
    assert!(missing[0].to_string().contains("did you mean \"far\"?"), "{}", missing[0]);
    let circle = "[Config a]\nextends = b\n[Config b]\nextends = a\n";
    assert!(read(circle, "x.ini").unwrap().import("a", 0, "rfc").is_ok());
}

#[test]
fn random_loss_is_a_share() {
    let text = "**.client.quic.sendLossRate = 0.025\n**.client.quic.periodicSendLoss = false\n";
    let imported = read(text, "x.ini").unwrap().import("General", 0, "rfc").unwrap();
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
        if let Ok(imported) = ini.import(config, 0, "freebsd-14.3") {
            let loaded = load(&imported.toml, "x.toml", &Overrides::default());
            assert!(loaded.is_ok(), "{text}\n{}", imported.toml);
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
