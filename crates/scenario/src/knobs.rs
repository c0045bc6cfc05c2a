//! `[host.NAME.knobs]`: sysctls under their own names.

use quic::knobs as quic_knobs;
use serde_json::{Map, Value as Json, json};
use tcp::knobs::{self, Kind, Knob, KnobError};
use tcp::profile::{Family, NAMES, Profile};
use units::Bytes;

use super::keys::{Located, Reader};
use super::kinds::{quantity, whole, wrong_kind};
use super::nearest::did_you_mean;
use super::setting::{Setting, Settings};
use super::source::Fault;
use super::tree::{Node, Value};
use crate::units_text::{self, pattern};

/// Sets the knobs in `profile`; without one, names are checked against all systems.
pub(super) fn apply(knobs: &Settings, profile: Option<&mut Profile>, reader: &mut Reader) {
    let Some(profile) = profile else {
        let of_quic = quic_knobs::KNOBS.iter().map(|knob| knob.name);
        let names = || knobs::all().map(|knob| knob.name).chain(of_quic.clone());
        for (knob, _) in knobs.iter().filter(|(knob, _)| names().all(|name| name != knob.value)) {
            let message = format!("no system has a knob `{}`", knob.value);
            let guess = did_you_mean(&knob.value, names());
            reader.report(Fault::new(knob.place, message).hint(guess));
        }
        return;
    };
    knobs.iter().for_each(|(name, value)| set(name, &value.0, profile, reader));
}

/// Sets the knobs in a QUIC profile.
pub(super) fn apply_quic(knobs: &Settings, profile: &mut quic::Profile, reader: &mut Reader) {
    for (name, Setting(node)) in knobs {
        let Some(knob) = quic_knobs::find(&name.value) else {
            let message = format!("{} has no knob `{}`", profile.name, name.value);
            let names = quic_knobs::KNOBS.iter().map(|knob| knob.name);
            reader.report(Fault::new(name.place, message).hint(did_you_mean(&name.value, names)));
            continue;
        };
        let value = match read(knob.name, of_tcp(knob.kind()), node, reader) {
            Some(knobs::Value::Count(n)) => quic_knobs::Value::Count(n),
            Some(knobs::Value::Switch(on)) => quic_knobs::Value::Switch(on),
            Some(knobs::Value::Size(bytes)) => quic_knobs::Value::Size(bytes),
            Some(knobs::Value::Time(span)) => quic_knobs::Value::Time(span),
            Some(knobs::Value::Sizes(_)) | None => continue,
        };
        if let Err(error) = knob.set(profile, value) {
            let allowed = match error {
                quic_knobs::QuicKnobError::Range { allowed } => allowed,
                quic_knobs::QuicKnobError::Kind { expected } => in_words(of_tcp(expected)).into(),
            };
            let message = format!("`{}` is out of range", knob.name);
            let fault = Fault::new(node.place, message);
            reader.report(fault.expected(allowed).found(node.describe()));
        }
    }
}

/// The same kind among those of TCP's knobs.
pub(super) const fn of_tcp(kind: quic_knobs::Kind) -> Kind {
    match kind {
        quic_knobs::Kind::Count => Kind::Count,
        quic_knobs::Kind::Switch => Kind::Switch,
        quic_knobs::Kind::Size => Kind::Size,
        quic_knobs::Kind::Time => Kind::Time,
    }
}

fn set(name: &Located<String>, node: &Node, profile: &mut Profile, reader: &mut Reader) {
    let Some(knob) = knobs::find(profile, &name.value) else {
        reader.report(unknown(name, node, profile));
        return;
    };
    let Some(value) = read(knob.name, knob.kind(), node, reader) else { return };
    match knob.set(profile, value) {
        Ok(()) => {}
        Err(KnobError::Range { allowed }) => {
            let fault = Fault::new(node.place, format!("`{}` is out of range", knob.name));
            reader.report(fault.expected(allowed).found(node.describe()));
        }
        Err(KnobError::Kind { expected }) => {
            let message = format!("`{}` has a value of the wrong kind", knob.name);
            reader.report(Fault::new(node.place, message).expected(in_words(expected)));
        }
        Err(KnobError::Unknown) => reader.report(unknown(name, node, profile)),
    }
}

fn read(name: &'static str, kind: Kind, node: &Node, reader: &mut Reader) -> Option<knobs::Value> {
    match kind {
        Kind::Count => match &node.value {
            Value::Integer(digits) => match whole(digits) {
                Some(number) => Some(knobs::Value::Count(number)),
                None => {
                    let fault = Fault::new(node.place, format!("`{name}` is out of range"));
                    reader.report(fault.expected(in_words(Kind::Count)).found(node.describe()));
                    None
                }
            },
            _ => wrong_kind(name, node, in_words(Kind::Count), reader),
        },
        // sysctl itself writes switches as 0 and 1.
        Kind::Switch => match &node.value {
            Value::Switch(on) => Some(knobs::Value::Switch(*on)),
            Value::Integer(digits) if digits == "0" => Some(knobs::Value::Switch(false)),
            Value::Integer(digits) if digits == "1" => Some(knobs::Value::Switch(true)),
            _ => wrong_kind(name, node, in_words(Kind::Switch), reader),
        },
        Kind::Size => size(name, node, reader).map(knobs::Value::Size),
        Kind::Time => {
            quantity(name, node, units_text::duration, "ms", reader).map(knobs::Value::Time)
        }
        Kind::Sizes => {
            let Value::List(items) = &node.value else {
                return wrong_kind(name, node, in_words(Kind::Sizes), reader);
            };
            let [least, first, most] = items.as_slice() else {
                return wrong_kind(name, node, in_words(Kind::Sizes), reader);
            };
            let sizes = [least, first, most].map(|item| size(name, item, reader));
            Some(knobs::Value::Sizes([sizes[0]?, sizes[1]?, sizes[2]?]))
        }
    }
}

fn size(name: &str, node: &Node, reader: &mut Reader) -> Option<Bytes> {
    quantity(name, node, units_text::size, "B", reader)
}

/// Says whose knob it is, or which one was meant.
fn unknown(name: &Located<String>, node: &Node, profile: &Profile) -> Fault {
    if matches!(node.value, Value::Table(_)) {
        let fault = Fault::new(name.place, "the name of a knob is written in quotes");
        return fault.hint("write \"net.inet.tcp.abc_l_var\" = 2".to_owned());
    }
    let own = || knobs::of(profile).map(|knob| knob.name);
    let others = NAMES.iter().filter(|system| {
        Profile::named(system).is_some_and(|other| knobs::find(&other, &name.value).is_some())
    });
    let others: Vec<&str> = others.copied().collect();
    if others.is_empty() {
        let message = format!("{} has no knob `{}`", profile.name, name.value);
        return Fault::new(name.place, message).hint(did_you_mean(&name.value, own()));
    }
    let others = others.join(", ");
    let message = format!("`{}` is a knob of {others}, not of {}", name.value, profile.name);
    Fault::new(name.place, message)
}

/// What a kind of knob takes.
pub(super) const fn in_words(kind: Kind) -> &'static str {
    match kind {
        Kind::Count => "a whole number",
        Kind::Switch => "`true`, `false`, 0 or 1",
        Kind::Size => "a size such as \"32KiB\"",
        Kind::Time => "a duration such as \"40ms\"",
        Kind::Sizes => "three sizes such as [\"4KiB\", \"128KiB\", \"6MiB\"]",
    }
}

/// The rule of JSON schema that a host has the knobs of its profile, and no others.
pub(super) fn schema_by_profile() -> Json {
    let families = [Family::FreeBsd, Family::Linux];
    let rules = families.iter().filter_map(|family| {
        let profiles: Vec<Profile> = NAMES
            .iter()
            .filter_map(|name| Profile::named(name))
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

fn schema_of(kind: Kind, help: &str) -> Json {
    let size = json!({ "type": "string", "pattern": pattern::SIZE });
    let mut schema = match kind {
        Kind::Count => json!({ "type": "integer", "minimum": 0 }),
        Kind::Switch => json!({ "enum": [true, false, 0, 1] }),
        Kind::Size => size,
        Kind::Time => json!({ "type": "string", "pattern": pattern::DURATION }),
        Kind::Sizes => json!({ "type": "array", "items": size, "minItems": 3, "maxItems": 3 }),
    };
    schema["description"] = help.into();
    schema
}
