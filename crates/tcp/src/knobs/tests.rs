use super::*;
use crate::profile::NAMES;

#[test]
fn every_knob_of_every_profile_can_be_set() {
    for name in NAMES {
        let original = TcpProfile::named(name).unwrap();
        for knob in of(&original) {
            let value = match knob.kind() {
                KnobKind::Count if knob.name.ends_with("rfc1323") => KnobValue::Count(2),
                KnobKind::Count if knob.name.contains("ecn") => KnobValue::Count(1),
                KnobKind::Count if knob.name.ends_with("dsack_ctl") => KnobValue::Count(1),
                KnobKind::Count if knob.name.contains("early_retrans") => KnobValue::Count(0),
                KnobKind::Count if knob.name.ends_with("hystartplusplus") => KnobValue::Count(1),
                KnobKind::Count if knob.name.ends_with("cycle_idx") => KnobValue::Count(3),
                KnobKind::Count => KnobValue::Count(31),
                KnobKind::Switch
                    if knob.name.ends_with("quickack") || knob.name.contains("holds") =>
                {
                    KnobValue::Switch(true)
                }
                KnobKind::Switch => KnobValue::Switch(false),
                KnobKind::Size => KnobValue::Size(Bytes(99_999)),
                KnobKind::Time => KnobValue::Time(Duration::from_millis(77)),
                KnobKind::Sizes => KnobValue::Sizes([Bytes(1), Bytes(5_000), Bytes(6_000)]),
            };
            let mut changed = original.clone();
            knob.set(&mut changed, value).unwrap_or_else(|e| panic!("{}: {e:?}", knob.name));
            assert_ne!(changed, original, "{} changes nothing in {name}", knob.name);
        }
    }
}

#[test]
fn wrong_kinds_and_absurd_values_are_refused() {
    let mut profile = TcpProfile::named("freebsd-13.2").unwrap();
    let knob = find(&profile, "net.inet.tcp.abc_l_var").unwrap();
    let kind = knob.set(&mut profile, KnobValue::Switch(true));
    assert_eq!(kind, Err(KnobError::Kind { expected: KnobKind::Count }));
    let range = knob.set(&mut profile, KnobValue::Count(0));
    assert_eq!(range, Err(KnobError::Range { allowed: "1 to 65535".into() }));
    assert!(find(&profile, "net.ipv4.tcp_rmem").is_none());
    let hz = find(&profile, "kern.hz").unwrap();
    for (ticks, taken) in [(9, false), (10, true), (1_000_000, true), (1_000_001, false)] {
        assert_eq!(hz.set(&mut profile, KnobValue::Count(ticks)).is_ok(), taken, "{ticks}");
    }
    let Err(KnobError::Range { allowed }) = hz.set(&mut profile, KnobValue::Count(1)) else {
        panic!("a tick of a second was accepted");
    };
    assert!(
        allowed.contains("a tick lasts between a microsecond and a tenth of a second"),
        "{allowed}"
    );
}
