//! Schema, reader and documentation agree.

use proptest::prelude::*;
use proptest::string::string_regex;
use regex_lite::Regex;
use serde_json::Value as Json;

use super::super::{reference, schema};
use super::*;
use crate::units_text::{QuantityError, duration, pattern, rate, room, share, size};

pub(super) fn schema_json() -> Json {
    serde_json::from_str(&schema()).unwrap()
}

pub(super) fn as_json(text: &str) -> Json {
    let value: toml::Value = toml::from_str(text).unwrap();
    serde_json::to_value(value).unwrap()
}

/// Validates `value`; supports only the JSON schema keywords that our schema uses.
pub(super) fn valid(schema: &Json, value: &Json) -> bool {
    let Some(rules) = schema.as_object() else { panic!("{schema}") };
    rules.iter().all(|(word, rule)| match word.as_str() {
        "$schema" | "title" | "description" => true,
        "type" => match rule.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            other => panic!("{other}"),
        },
        "enum" => rule.as_array().unwrap().contains(value),
        "const" => rule == value,
        "pattern" => value
            .as_str()
            .is_none_or(|text| Regex::new(rule.as_str().unwrap()).unwrap().is_match(text)),
        "minimum" => value.as_f64().is_none_or(|n| n >= rule.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|n| n <= rule.as_f64().unwrap()),
        "minItems" => value.as_array().is_none_or(|a| a.len() as u64 >= rule.as_u64().unwrap()),
        "maxItems" => value.as_array().is_none_or(|a| a.len() as u64 <= rule.as_u64().unwrap()),
        "minProperties" => {
            value.as_object().is_none_or(|o| o.len() as u64 >= rule.as_u64().unwrap())
        }
        "items" => value.as_array().is_none_or(|items| items.iter().all(|i| valid(rule, i))),
        "required" => value.as_object().is_none_or(|object| {
            rule.as_array().unwrap().iter().all(|key| object.contains_key(key.as_str().unwrap()))
        }),
        "properties" => value.as_object().is_none_or(|object| {
            let rules = rule.as_object().unwrap();
            object.iter().all(|(key, v)| rules.get(key).is_none_or(|rule| valid(rule, v)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|object| {
            let known = rules.get("properties").and_then(Json::as_object);
            let mut others =
                object.iter().filter(|(key, _)| known.is_none_or(|k| !k.contains_key(*key)));
            match rule {
                Json::Bool(allowed) => *allowed || others.next().is_none(),
                rule => others.all(|(_, v)| valid(rule, v)),
            }
        }),
        "oneOf" => rule.as_array().unwrap().iter().filter(|rule| valid(rule, value)).count() == 1,
        "anyOf" => rule.as_array().unwrap().iter().any(|rule| valid(rule, value)),
        "allOf" => rule.as_array().unwrap().iter().all(|rule| valid(rule, value)),
        "if" => !valid(rule, value) || valid(&rules["then"], value),
        "then" => true,
        other => panic!("{other}"),
    })
}

#[test]
fn valid_files_satisfy_the_schema() {
    let schema = schema_json();
    for text in [FULL, SMALL] {
        assert!(loaded(text, &[]).is_ok());
        assert!(valid(&schema, &as_json(text)));
    }
}

/// Errors that the schema can detect: types, keys, units, knobs by system.
#[test]
fn invalid_files_are_rejected_by_reader_and_schema() {
    let schema = schema_json();
    let changes = [
        ("title = \"1 MB over 100 ms\"", "title = 5"),
        ("seed = 7", "seed = -7"),
        ("seed = 7", "colour = 7"),
        ("duration = \"60s\"", "duration = 60"),
        ("duration = \"60s\"", "duration = \"60\""),
        ("profile = \"linux-6.18\"", "profile = \"linux\""),
        ("cc = \"reno\"", "cc = \"htcp\""),
        ("mtu = \"9000B\"", "mtu = 9000"),
        ("mtu = \"9000B\"", "mtu = \"9000b\""),
        ("tso = true", "tso = 1"),
        ("ack_limit = 4", "ack_limit = 0"),
        ("entries = 9", "entrys = 9"),
        ("rss_hash = { decreasing = 4 }", "rss_hash = { decreasing = 0 }"),
        ("rss_hash = { decreasing = 4 }", "rss_hash = { decreasing = 4, constant = 0 }"),
        ("rss_hash = { decreasing = 4 }", "rss_hash = \"constant\""),
        ("max_packets = 45", "max_packets = \"45\""),
        ("\"net.inet.tcp.abc_l_var\"", "\"net.ipv4.tcp_sack\""),
        ("\"net.inet.tcp.abc_l_var\"", "\"net.inet.tcp.abc_lvar\""),
        ("\"net.inet.tcp.abc_l_var\" = 44", "\"net.inet.tcp.abc_l_var\" = \"44\""),
        ("\"net.inet.tcp.sendspace\" = \"64KiB\"", "\"net.inet.tcp.sendspace\" = 65536"),
        ("\"net.inet.tcp.delayed_ack\" = 0", "\"net.inet.tcp.delayed_ack\" = 2"),
        ("[\"4KiB\", \"128KiB\", \"6MiB\"]", "[\"4KiB\", \"128KiB\"]"),
        ("rate = \"1Gbit/s\"", "rate = \"1G\""),
        ("buffer = \"0.5bdp\"", "buffer = \"0.5\""),
        (", buffer = \"0.5bdp\"", ""),
        ("{ delay = \"30ms\" }", "{}"),
        ("{ delay = \"30ms\" }", "{ lro = true }"),
        ("return =", "reverse ="),
        ("name = \"bulk\"", "name = 1"),
        ("bulk = \"1MB\"", "bulk = \"endless\""),
        ("ip = 6", "ip = 5"),
        ("every = \"40ms\", ", ""),
        ("paced = {", "bulk = \"1MB\"\npaced = {"),
        ("at = \"wire\"", "at = \"nic\""),
    ];
    for (from, to) in changes {
        assert!(FULL.contains(from), "{from}");
        let text = FULL.replacen(from, to, 1);
        assert!(loaded(&text, &[]).is_err(), "{from} -> {to}");
        assert!(!valid(&schema, &as_json(&text)), "{from} -> {to}");
    }
}

/// Every key of the schema has a description, and every table restricts its keys.
#[test]
fn every_key_is_described() {
    fn walk(schema: &Json, described: &mut usize) {
        match schema {
            Json::Object(rules) => {
                if let Some(keys) = rules.get("properties").and_then(Json::as_object)
                    && rules.get("type").is_some()
                {
                    for (key, rule) in keys {
                        let help = rule["description"].as_str();
                        assert!(help.is_some_and(|help| !help.is_empty()), "{key}");
                        *described += 1;
                    }
                    assert!(rules.contains_key("additionalProperties"), "{keys:?}");
                }
                rules.values().for_each(|rule| walk(rule, described));
            }
            Json::Array(rules) => rules.iter().for_each(|rule| walk(rule, described)),
            _ => {}
        }
    }
    let mut described = 0;
    walk(&schema_json(), &mut described);
    assert!(described > 40, "{described}");
}

#[test]
fn patterns_accept_exactly_the_units_of_the_readers() {
    type Reads = fn(&str) -> Option<QuantityError>;
    let readers: [(&str, Reads); 5] = [
        (pattern::DURATION, |text| duration(text).err()),
        (pattern::SIZE, |text| size(text).err()),
        (pattern::RATE, |text| rate(text).err()),
        (pattern::SHARE, |text| share(text).err()),
        (pattern::ROOM, |text| room(text).err()),
    ];
    let prefixes =
        ["", "n", "u", "µ", "μ", "m", "k", "K", "M", "g", "G", "t", "T", "p", "P", "e", "E"];
    let infixes = ["", "i", "I"];
    let bases = [
        "", "s", "S", "sec", "min", "h", "d", "b", "B", "bit", "Bit", "bits", "bit/s", "bits/s",
        "b/s", "B/s", "bps", "Bps", "BPS", "p", "packets", "mss", "bdp", "%", "byte",
    ];
    for (pattern, read) in readers {
        let regex = Regex::new(pattern).unwrap();
        for prefix in prefixes {
            for infix in infixes {
                for base in bases {
                    let text = format!("1{prefix}{infix}{base}");
                    let accepted = read(&text).is_none_or(|misread| is_limit(&misread));
                    assert_eq!(regex.is_match(&text), accepted, "{pattern}: {text}");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn readers_accept_what_patterns_accept_within_limits(
        span in string_regex(pattern::DURATION.trim_matches(['^', '$'])).unwrap(),
        bytes in string_regex(pattern::SIZE.trim_matches(['^', '$'])).unwrap(),
        speed in string_regex(pattern::RATE.trim_matches(['^', '$'])).unwrap(),
        part in string_regex(pattern::SHARE.trim_matches(['^', '$'])).unwrap(),
        queue in string_regex(pattern::ROOM.trim_matches(['^', '$'])).unwrap(),
    ) {
        let errors = [
            duration(&span).err(),
            size(&bytes).err(),
            rate(&speed).err(),
            share(&part).err(),
            room(&queue).err(),
        ];
        for error in errors.into_iter().flatten() {
            prop_assert!(is_limit(&error), "{:?}", error);
        }
    }
}

/// Returns whether the error is about a limit, which patterns cannot check.
fn is_limit(misread: &QuantityError) -> bool {
    let limits = ["is more than", "is finer than", "has too many digits", "is zero"];
    limits.iter().any(|limit| misread.message.starts_with(limit))
}

#[test]
fn the_reference_in_the_documentation_is_current() {
    let document = include_str!("../../../../docs/scenario.md");
    let (begin, end) = ("<!-- ackclock scenario keys -->\n\n", "<!-- end of keys -->");
    let tables = document.split_once(begin).and_then(|(_, rest)| rest.split_once(end));
    let (tables, _) = tables.expect("the markers of the tables");
    assert!(
        tables == reference(),
        "put the output of `ackclock scenario keys` between the markers"
    );
}

#[test]
fn the_example_of_the_documentation_runs() {
    let document = include_str!("../../../../docs/scenario.md");
    let example = document.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```"));
    let (example, _) = example.expect("an example in the documentation");
    assert!(loaded(example, &[]).is_ok(), "{:?}", mistakes(example, &[]));
    assert!(valid(&schema_json(), &as_json(example)));
}
