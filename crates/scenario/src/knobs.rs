//! `[host.NAME.knobs]`: sysctls by their own names.

use quic::knobs as quic_knobs;
use serde_json::{Map, Value as Json, json};
use tcp::knobs::{self, Knob, KnobError, KnobKind};
use tcp::profile::{Family, NAMES, TcpProfile};
use units::Bytes;

use super::keys::{Located, ScenarioReader};
use super::kinds::{quantity, type_mismatch, whole};
use super::nearest::did_you_mean;
use super::setting::{RawValue, RawValues};
use super::source::SpannedError;
use super::tree::{TomlNode, TomlValue};
use crate::units_text::{self, pattern};

/// Sets the knobs of `profile`; without a profile, only checks names against all systems.
pub(super) fn apply(
    knobs: &RawValues,
    profile: Option<&mut TcpProfile>,
    reader: &mut ScenarioReader,
) {
    let Some(profile) = profile else {
        let of_quic = quic_knobs::KNOBS.iter().map(|knob| knob.name);
        let names = || knobs::all().map(|knob| knob.name).chain(of_quic.clone());
        for (knob, _) in knobs.iter().filter(|(knob, _)| names().all(|name| name != knob.value)) {
            let message = format!("no system has a knob `{}`", knob.value);
            let guess = advice(&knob.value, names());
            reader.report(SpannedError::new(knob.span, message).hint(guess));
        }
        return;
    };
    knobs.iter().for_each(|(name, value)| set(name, &value.0, profile, reader));
}

/// Sets the knobs of a QUIC profile.
pub(super) fn apply_quic(
    knobs: &RawValues,
    profile: &mut quic::QuicProfile,
    reader: &mut ScenarioReader,
) {
    for (name, RawValue(node)) in knobs {
        let Some(knob) = quic_knobs::find(&name.value) else {
            let message = format!("{} has no knob `{}`", profile.name, name.value);
            let names = quic_knobs::KNOBS.iter().map(|knob| knob.name);
            reader.report(
                SpannedError::new(name.span, message).hint(did_you_mean(&name.value, names)),
            );
            continue;
        };
        let value = match read(knob.name, of_tcp(knob.kind()), node, reader) {
            Some(knobs::KnobValue::Count(n)) => quic_knobs::QuicKnobValue::Count(n),
            Some(knobs::KnobValue::Switch(on)) => quic_knobs::QuicKnobValue::Switch(on),
            Some(knobs::KnobValue::Size(bytes)) => quic_knobs::QuicKnobValue::Size(bytes),
            Some(knobs::KnobValue::Time(span)) => quic_knobs::QuicKnobValue::Time(span),
            Some(knobs::KnobValue::Sizes(_)) | None => continue,
        };
        if let Err(error) = knob.set(profile, value) {
            let allowed = match error {
                quic_knobs::QuicKnobError::Range { allowed } => allowed,
                quic_knobs::QuicKnobError::Kind { expected } => in_words(of_tcp(expected)).into(),
            };
            let message = format!("`{}` is out of range", knob.name);
            let fault = SpannedError::new(node.span, message);
            reader.report(fault.expected(allowed).found(node.describe()));
        }
    }
}

/// Converts the type of a QUIC knob to that of a TCP knob.
pub(super) const fn of_tcp(kind: quic_knobs::QuicKnobKind) -> KnobKind {
    match kind {
        quic_knobs::QuicKnobKind::Count => KnobKind::Count,
        quic_knobs::QuicKnobKind::Switch => KnobKind::Switch,
        quic_knobs::QuicKnobKind::Size => KnobKind::Size,
        quic_knobs::QuicKnobKind::Time => KnobKind::Time,
    }
}

fn set(
    name: &Located<String>,
    node: &TomlNode,
    profile: &mut TcpProfile,
    reader: &mut ScenarioReader,
) {
    let Some(knob) = knobs::find(profile, &name.value) else {
        reader.report(unknown(name, node, profile));
        return;
    };
    let Some(value) = read(knob.name, knob.kind(), node, reader) else { return };
    match knob.set(profile, value) {
        Ok(()) => {}
        Err(KnobError::Range { allowed }) => {
            let fault = SpannedError::new(node.span, format!("`{}` is out of range", knob.name));
            reader.report(fault.expected(allowed).found(node.describe()));
        }
        Err(KnobError::Kind { expected }) => {
            let message = format!("`{}` has a value of the wrong type", knob.name);
            reader.report(SpannedError::new(node.span, message).expected(in_words(expected)));
        }
        Err(KnobError::Unknown) => reader.report(unknown(name, node, profile)),
    }
}

fn read(
    name: &'static str,
    kind: KnobKind,
    node: &TomlNode,
    reader: &mut ScenarioReader,
) -> Option<knobs::KnobValue> {
    match kind {
        KnobKind::Count => match &node.value {
            TomlValue::Integer(digits) => match whole(digits) {
                Some(number) => Some(knobs::KnobValue::Count(number)),
                None => {
                    let fault = SpannedError::new(node.span, format!("`{name}` is out of range"));
                    reader.report(fault.expected(in_words(KnobKind::Count)).found(node.describe()));
                    None
                }
            },
            _ => type_mismatch(name, node, in_words(KnobKind::Count), reader),
        },
        // sysctl writes Booleans as 0 and 1.
        KnobKind::Switch => match &node.value {
            TomlValue::Switch(on) => Some(knobs::KnobValue::Switch(*on)),
            TomlValue::Integer(digits) if digits == "0" => Some(knobs::KnobValue::Switch(false)),
            TomlValue::Integer(digits) if digits == "1" => Some(knobs::KnobValue::Switch(true)),
            _ => type_mismatch(name, node, in_words(KnobKind::Switch), reader),
        },
        KnobKind::Size => size(name, node, reader).map(knobs::KnobValue::Size),
        KnobKind::Time => {
            quantity(name, node, units_text::duration, "ms", reader).map(knobs::KnobValue::Time)
        }
        KnobKind::Sizes => {
            let TomlValue::List(items) = &node.value else {
                return type_mismatch(name, node, in_words(KnobKind::Sizes), reader);
            };
            let [least, first, most] = items.as_slice() else {
                return type_mismatch(name, node, in_words(KnobKind::Sizes), reader);
            };
            let sizes = [least, first, most].map(|item| size(name, item, reader));
            Some(knobs::KnobValue::Sizes([sizes[0]?, sizes[1]?, sizes[2]?]))
        }
    }
}

fn size(name: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Bytes> {
    quantity(name, node, units_text::size, "B", reader)
}

/// Returns the error for a knob that `profile` does not have.
fn unknown(name: &Located<String>, node: &TomlNode, profile: &TcpProfile) -> SpannedError {
    if matches!(node.value, TomlValue::Table(_)) {
        let fault = SpannedError::new(name.span, "the name of a knob is written in quotes");
        return fault.hint("write \"net.inet.tcp.abc_l_var\" = 2".to_owned());
    }
    let own = || knobs::of(profile).map(|knob| knob.name);
    let others = NAMES.iter().filter(|system| {
        TcpProfile::named(system).is_some_and(|other| knobs::find(&other, &name.value).is_some())
    });
    let others: Vec<&str> = others.copied().collect();
    if others.is_empty() {
        let message = format!("{} has no knob `{}`", profile.name, name.value);
        return SpannedError::new(name.span, message).hint(advice(&name.value, own()));
    }
    let others = others.join(", ");
    let message = format!("`{}` is a knob of {others}, not of {}", name.value, profile.name);
    SpannedError::new(name.span, message)
}

/// Settings of a kernel that are keys of a host or of its path here, with what to write.
const KEYS: [(&str, &str); 5] = [
    ("tcp_congestion_control", "it is a key of the host: cc = \"cubic\""),
    ("cc.algorithm", "it is a key of the host: cc = \"cubic\""),
    ("congestion_control", "it is a key of the host: cc = \"cubic\""),
    (
        "functions_default",
        "the stack is part of the host's profile: profile = \"freebsd-rack-14.3\"",
    ),
    ("default_qdisc", "it is a key of the link: queue = \"fq_codel\""),
];

/// What to write instead of an unknown knob: the key that it is, its full name, or a similar one.
fn advice<'c>(name: &str, own: impl Iterator<Item = &'c str>) -> Option<String> {
    let ends_with = |whole: &str, part: &str| {
        whole.strip_suffix(part).is_some_and(|front| front.is_empty() || front.ends_with('.'))
    };
    if let Some((_, key)) = KEYS.iter().find(|(key, _)| ends_with(name, key)) {
        return Some((*key).to_owned());
    }
    let own: Vec<&str> = own.collect();
    let mut full = own.iter().filter(|full| ends_with(full, name));
    match (full.next(), full.next()) {
        (Some(full), None) => Some(format!("did you mean `{full}`?")),
        _ => did_you_mean(name, own),
    }
}

/// Describes the values of a knob type.
const fn in_words(kind: KnobKind) -> &'static str {
    match kind {
        KnobKind::Count => "a whole number",
        KnobKind::Switch => "`true`, `false`, 0 or 1",
        KnobKind::Size => "a size such as \"32KiB\"",
        KnobKind::Time => "a duration such as \"40ms\"",
        KnobKind::Sizes => "three sizes such as [\"4KiB\", \"128KiB\", \"6MiB\"]",
    }
}

/// The name of a knob type in the reference.
pub(super) const fn kind_name(kind: KnobKind) -> &'static str {
    match kind {
        KnobKind::Count => "integer",
        KnobKind::Switch => "switch",
        KnobKind::Size => "size",
        KnobKind::Time => "duration",
        KnobKind::Sizes => "three sizes",
    }
}

/// Returns the JSON schema rules that restrict the knobs of a host to those of its profile.
pub(super) fn schema_by_profile() -> Json {
    let families = [Family::FreeBsd, Family::Linux];
    let rules = families.iter().filter_map(|family| {
        let profiles: Vec<TcpProfile> = NAMES
            .iter()
            .filter_map(|name| TcpProfile::named(name))
            .filter(|profile| profile.family == *family)
            .collect();
        let names: Vec<&str> = profiles.iter().map(|profile| profile.name).collect();
        let properties: Map<String, Json> =
            knobs::of(profiles.first()?).map(|knob| (knob.name.to_owned(), schema(knob))).collect();
        Some(rule(&names, &properties))
    });
    let of_quic = quic_knobs::KNOBS
        .iter()
        .map(|knob| (knob.name.to_owned(), schema_of(of_tcp(knob.kind()), knob.help)));
    rules.chain([rule(&quic::profile::NAMES, &of_quic.collect())]).collect()
}

fn rule(profiles: &[&str], knobs: &Map<String, Json>) -> Json {
    json!({
        "if": { "properties": { "profile": { "enum": profiles } } },
        "then": { "properties": { "knobs": {
            "properties": knobs,
            "additionalProperties": false,
        } } },
    })
}

fn schema(knob: &Knob) -> Json {
    schema_of(knob.kind(), knob.help)
}

fn schema_of(kind: KnobKind, help: &str) -> Json {
    let size = json!({ "type": "string", "pattern": pattern::SIZE });
    let mut schema = match kind {
        KnobKind::Count => json!({ "type": "integer", "minimum": 0 }),
        KnobKind::Switch => json!({ "enum": [true, false, 0, 1] }),
        KnobKind::Size => size,
        KnobKind::Time => json!({ "type": "string", "pattern": pattern::DURATION }),
        KnobKind::Sizes => json!({ "type": "array", "items": size, "minItems": 3, "maxItems": 3 }),
    };
    schema["description"] = help.into();
    schema
}
