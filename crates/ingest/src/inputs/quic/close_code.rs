//! The error code of a closed connection, in the fields that stacks write.
//!
//! A code is a number, a name, or both in two fields. quic-go and quiche write the name `unknown`
//! beside the number of every code of the application, 0 included.

use diagnose::quic::record::QuicCloseFrame;
use serde_json::{Map, Value};

use super::records::whole;

/// Fields of codes of the application, of the transport, and of either.
const OF_APPLICATION: [&str; 2] = ["application_code", "application_error"];
const OF_TRANSPORT: [&str; 2] = ["connection_code", "connection_error"];
const OF_EITHER: [&str; 4] = ["raw_error_code", "error_code", "code", "error"];
/// Names of codes that are no errors; HTTP/3's has the number 0x100 (RFC 9114 section 8.1).
const HARMLESS: [&str; 4] = ["no_error", "h3_no_error", "clean", "none"];
/// The transport's name for any code of the application (RFC 9000 section 20.1).
const APPLICATION_ERROR: &str = "application_error";

/// A reported code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CloseCode<'a> {
    name: Option<&'a str>,
    number: Option<u64>,
    /// Whether it is of the application, if known.
    of_application: Option<bool>,
    /// A field of a code has a value.
    is_reported: bool,
}

impl<'a> CloseCode<'a> {
    /// The code in the fields of an event or of a CONNECTION_CLOSE frame.
    pub(super) fn of(fields: &'a Map<String, Value>) -> Self {
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let either = Self::first(fields, &OF_EITHER, None);
        let [transport, application] = [
            Self::first(fields, &OF_TRANSPORT, Some(false)),
            Self::first(fields, &OF_APPLICATION, Some(true)),
        ];
        let mut code = match (transport.is_reported, application.is_reported) {
            (_, true) if application.is_error() || !transport.is_error() => application,
            (true, _) => transport,
            _ => either,
        };
        code.number = code.number.or(either.number);
        code.name = code.name.or(either.name);
        let space = text("error_space");
        if space.starts_with("application") || text("frame_type").starts_with("application") {
            code.of_application = Some(true);
        } else if space.starts_with("transport") {
            code.of_application = Some(false);
        }
        if code.name.is_some_and(|name| name.eq_ignore_ascii_case(APPLICATION_ERROR)) {
            code.of_application = Some(true);
            code.name = None;
        }
        if !code.is_reported || (code.number.is_none() && code.name.is_none()) {
            code.number = fields.get("internal_code").and_then(whole);
        }
        code
    }

    /// The first name and the first number in `names`.
    fn first(fields: &'a Map<String, Value>, names: &[&str], of_application: Option<bool>) -> Self {
        let mut code = Self { of_application, ..Self::default() };
        for value in names.iter().filter_map(|name| fields.get(*name)) {
            code.is_reported |= !value.is_null();
            match (whole(value), value.as_str()) {
                (Some(number), _) => code.number = code.number.or(Some(number)),
                (None, Some(name)) if !name.is_empty() && name != "unknown" => {
                    code.name = code.name.or(Some(name));
                }
                _ => {}
            }
        }
        code
    }

    /// Its number; that of its name, if only that is known.
    pub(super) fn number(&self) -> Option<u64> {
        let named = |name: &str| match HARMLESS.iter().any(|one| one.eq_ignore_ascii_case(name)) {
            true => Some(0),
            false => QuicCloseFrame::transport_code(name),
        };
        self.number.or_else(|| self.name.and_then(named))
    }

    /// Whether it is known to be of the application.
    pub(super) fn is_of_application(&self) -> bool {
        self.of_application == Some(true)
    }

    /// Whether it is an error. A code without a number and a name is one if the log says that there is
    /// a code.
    pub(super) fn is_error(&self) -> bool {
        match (self.name, self.number) {
            (Some(name), _) => !HARMLESS.iter().any(|one| one.eq_ignore_ascii_case(name)),
            // Of an unknown space, 0x100 is HTTP/3's: as a TLS alert it is close_notify, which QUIC
            // does not send.
            (None, Some(code)) => {
                let of_application = self.of_application != Some(false);
                QuicCloseFrame { code, of_application, reason: "" }.is_error()
            }
            (None, None) => self.is_reported && self.of_application != Some(true),
        }
    }

    /// Its name; else its number.
    pub(super) fn text(&self) -> String {
        match (self.name, self.number) {
            (Some(name), _) => name.to_owned(),
            (None, Some(code)) => {
                let of_application = self.is_of_application();
                QuicCloseFrame { code, of_application, reason: "" }.code_text()
            }
            (None, None) if self.is_reported => "unknown".to_owned(),
            (None, None) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The fields of real stacks, and whether it is an error with which text.
    #[test]
    fn codes_of_stacks() {
        for (fields, error) in [
            // quic-go and quiche.
            (json!({ "application_error": "unknown", "error_code": 0, "reason": "" }), None),
            (
                json!({ "application_error": "unknown", "error_code": 66 }),
                Some("0x42 of the application"),
            ),
            (json!({ "application_error": "unknown", "error_code": 256 }), None),
            (
                json!({ "connection_error": "unknown", "error_code": 0x178 }),
                Some("0x178 (TLS alert no_application_protocol)"),
            ),
            (json!({ "connection_error": "no_error", "error_code": 0 }), None),
            (
                json!({ "connection_error": "flow_control_error", "error_code": 3 }),
                Some("flow_control_error"),
            ),
            // Frames of quic-go, quiche and aioquic.
            (
                json!({ "frame_type": "connection_close", "error_space": "application",
                    "error": "unknown", "error_code": 0 }),
                None,
            ),
            (json!({ "error_space": "application", "error_code": 0, "raw_error_code": 0 }), None),
            (
                json!({ "error_space": "transport", "error_code": "protocol_violation",
                    "raw_error_code": 10 }),
                Some("protocol_violation"),
            ),
            (json!({ "error_space": "transport", "error_code": 10 }), Some("PROTOCOL_VIOLATION")),
            (json!({ "error_space": "transport", "error_code": 256 }), Some("0x100 (TLS alert 0)")),
            // The fields of the drafts.
            (json!({ "application_code": 256 }), None),
            (json!({ "application_code": "h3_no_error" }), None),
            (json!({ "application_code": "H3_NO_ERROR", "error_code": 256 }), None),
            (
                json!({ "connection_code": "application_error", "application_code": 5 }),
                Some("0x5 of the application"),
            ),
            (json!({ "connection_code": "application_error" }), None),
            (
                json!({ "connection_code": "internal_error", "application_code": 0 }),
                Some("internal_error"),
            ),
            (json!({ "connection_code": 0, "application_code": null }), None),
            (
                json!({ "connection_code": "unknown", "internal_code": 7 }),
                Some("FRAME_ENCODING_ERROR"),
            ),
            (json!({ "connection_code": "unknown" }), Some("unknown")),
            (json!({ "reason": "bye" }), None),
        ] {
            let code = CloseCode::of(fields.as_object().unwrap());
            let text = code.text();
            let found = code.is_error().then_some(text.as_str());
            assert_eq!(found, error, "{fields}");
        }
    }
}
