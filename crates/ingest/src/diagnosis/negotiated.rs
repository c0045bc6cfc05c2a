//! What the SYNs of a connection negotiated, as a line of text and as JSON.

use diagnose::{Analysis, EcnSupport, Negotiated, ObservedSyn};
use packet::Dir;
use serde::Serialize;

const HOSTS: [Dir; 2] = [Dir::Forward, Dir::Reverse];

/// What both SYNs ask for, or why it is unknown, in a line.
pub(super) fn negotiated_text(analysis: &Analysis) -> String {
    let negotiated = Negotiated::of(analysis);
    let parts = match HOSTS.map(|host| negotiated.complete(host)) {
        [Some(client), Some(server)] => both(&negotiated, [client, server]),
        [Some(client), None] => one(&negotiated, (Dir::Forward, client)),
        [None, Some(server)] => one(&negotiated, (Dir::Reverse, server)),
        [None, None] if negotiated.syns == [None; 2] => {
            return "negotiated: not seen, the capture has no SYN".to_owned();
        }
        [None, None] => {
            return "negotiated: not seen, the options of the SYNs are cut off".to_owned();
        }
    };
    parts.join("; ")
}

/// Both SYNs were captured.
fn both(negotiated: &Negotiated, syns: [&ObservedSyn; 2]) -> Vec<String> {
    let agreed = |name: &str, has: fn(&ObservedSyn) -> bool| match syns.map(has) {
        [true, true] => name.to_owned(),
        [false, false] => format!("no {name}"),
        [true, false] => format!("no {name} (client only)"),
        [false, true] => format!("no {name} (server only)"),
    };
    let mut parts = vec![
        format!("negotiated: {}", pair("MSS", syns.map(mss))),
        match syns.map(|syn| syn.options.window_scale) {
            [Some(client), Some(server)] => pair("window scale", [client, server]),
            _ => agreed("window scaling", |syn| syn.options.window_scale.is_some()),
        },
        agreed("SACK", |syn| syn.options.sack_permitted),
        agreed("timestamps", |syn| syn.timestamps),
        match (negotiated.ecn(), negotiated.asked_ecn()) {
            (Some(EcnSupport::Accurate), _) => "accurate ECN".to_owned(),
            (Some(EcnSupport::Classic), _) => "ECN".to_owned(),
            (_, Some(EcnSupport::Classic | EcnSupport::Accurate)) => {
                "no ECN (client only)".to_owned()
            }
            _ => "no ECN".to_owned(),
        },
    ];
    if syns.iter().any(|syn| syn.options.extras.multipath) {
        parts.push(agreed("MPTCP", |syn| syn.options.extras.multipath));
    }
    parts.extend(fast_open(negotiated));
    parts
}

/// Only one SYN was captured with its options.
fn one(negotiated: &Negotiated, (host, syn): (Dir, &ObservedSyn)) -> Vec<String> {
    let has = |name: &str, is: bool| if is { name.to_owned() } else { format!("no {name}") };
    let (seen, unseen) = match host {
        Dir::Forward => ("client's SYN", "the server's SYN-ACK"),
        Dir::Reverse => ("server's SYN-ACK", "the client's SYN"),
    };
    let mut parts = vec![
        format!("{seen}: MSS {}", mss(syn)),
        match syn.options.window_scale {
            Some(scale) => format!("window scale {scale}"),
            None => "no window scaling".to_owned(),
        },
        has("SACK", syn.options.sack_permitted),
        has("timestamps", syn.timestamps),
    ];
    if host == Dir::Forward {
        parts.push(match negotiated.asked_ecn() {
            Some(EcnSupport::Accurate) => "accurate ECN".to_owned(),
            Some(EcnSupport::Classic) => "ECN".to_owned(),
            _ => "no ECN".to_owned(),
        });
    }
    if syn.options.extras.multipath {
        parts.push("MPTCP".to_owned());
    }
    parts.extend(fast_open(negotiated));
    parts.push(format!("{unseen}: not seen"));
    parts
}

/// The MSS option of a SYN.
fn mss(syn: &ObservedSyn) -> String {
    match syn.options.mss {
        0 => "not given".to_owned(),
        mss => mss.to_string(),
    }
}

/// A value of both hosts.
fn pair<T: PartialEq + core::fmt::Display>(name: &str, [client, server]: [T; 2]) -> String {
    if client == server {
        format!("{name} {client}")
    } else {
        format!("{name} {client} (client), {server} (server)")
    }
}

/// TCP Fast Open, if a SYN has its option or data.
fn fast_open(negotiated: &Negotiated) -> Option<String> {
    let asked = match negotiated.fast_open(Dir::Forward) {
        Some(0) => Some("cookie asked for".to_owned()),
        Some(bytes) => Some(format!("cookie of {bytes} bytes")),
        None => None,
    };
    let given = negotiated.fast_open(Dir::Reverse).map(|_| "cookie given".to_owned());
    let client = negotiated.syns[Dir::Forward as usize];
    let data = client.filter(|syn| syn.data > 0).map(|syn| format!("{} B in the SYN", syn.data));
    let parts: Vec<_> = [asked, given, data].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("Fast Open: {}", parts.join(", ")))
}

/// What the SYNs of a connection negotiated; `null` where a SYN or its options are not in the capture.
#[derive(Serialize)]
pub(super) struct NegotiatedJson {
    client: Option<SynJson>,
    server: Option<SynJson>,
    window_scaling: Option<bool>,
    sack: Option<bool>,
    timestamps: Option<bool>,
    ecn: Option<&'static str>,
    mptcp: Option<bool>,
}

/// The options of a SYN.
#[derive(Serialize)]
struct SynJson {
    /// `null` without the option.
    mss_bytes: Option<u16>,
    /// `null` without the option.
    window_scale: Option<u8>,
    sack: bool,
    timestamps: bool,
    mptcp: bool,
    /// `null` without the option, 0 in the request for a cookie.
    fast_open_cookie_bytes: Option<u8>,
    data_bytes: u32,
}

impl NegotiatedJson {
    pub(super) fn of(analysis: &Analysis) -> Self {
        let negotiated = Negotiated::of(analysis);
        let [client, server] = HOSTS.map(|host| {
            let syn = negotiated.complete(host)?;
            Some(SynJson {
                mss_bytes: Some(syn.options.mss).filter(|&mss| mss > 0),
                window_scale: syn.options.window_scale,
                sack: syn.options.sack_permitted,
                timestamps: syn.timestamps,
                mptcp: syn.options.extras.multipath,
                fast_open_cookie_bytes: negotiated.fast_open(host),
                data_bytes: syn.data,
            })
        });
        Self {
            client,
            server,
            window_scaling: negotiated.window_scaling(),
            sack: negotiated.sack(),
            timestamps: negotiated.timestamps(),
            ecn: negotiated.ecn().map(EcnSupport::key),
            mptcp: negotiated.multipath(),
        }
    }
}

#[cfg(test)]
mod tests {
    use diagnose::AnalysisSettings;

    use super::*;
    use crate::inputs::{self, InputFile};

    /// The line of a connection with these SYNs, in the words of tcpdump.
    fn line(syns: &[&str]) -> String {
        let mut text = String::new();
        for (number, syn) in syns.iter().enumerate() {
            text += &format!("12:00:00.{number}00000 IP {syn}, length 0\n");
        }
        text += "12:00:01.000000 IP 10.0.0.1.4000 > 10.0.0.2.80: Flags [P.], seq 1:101, ack 1, win 500, length 100\n";
        let source = InputFile { name: "a".to_owned(), bytes: Box::new(text.as_bytes()) };
        let reading = inputs::read(vec![source], AnalysisSettings::default()).unwrap();
        negotiated_text(&reading.streams[0].analysis())
    }

    fn client(flags: &str, options: &str) -> String {
        format!(
            "10.0.0.1.4000 > 10.0.0.2.80: Flags [{flags}], seq 7, win 65535, options [{options}]"
        )
    }

    fn server(flags: &str, options: &str) -> String {
        format!(
            "10.0.0.2.80 > 10.0.0.1.4000: Flags [{flags}], seq 9, ack 8, win 65535, options [{options}]"
        )
    }

    #[test]
    fn the_line_has_what_both_syns_agree_on() {
        let full = "mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 7";
        assert_eq!(
            line(&[&client("SEW", full), &server("S.E", full)]),
            "negotiated: MSS 1460; window scale 7; SACK; timestamps; ECN"
        );
        assert_eq!(
            line(&[&client("SEW", full), &server("S.", "mss 1400")]),
            "negotiated: MSS 1460 (client), 1400 (server); no window scaling (client only); no SACK (client only); no timestamps (client only); no ECN (client only)"
        );
        let special = "mss 1460,nop,wscale 7,mptcp 4 capable v1,tfo  cookiereq";
        let given = "mss 1460,nop,wscale 7,tfo  cookie 0123456789abcdef";
        assert_eq!(
            line(&[&client("S", special), &server("S.", given)]),
            "negotiated: MSS 1460; window scale 7; no SACK; no timestamps; no ECN; no MPTCP (client only); Fast Open: cookie asked for, cookie given"
        );
    }

    #[test]
    fn what_was_not_captured_is_not_seen() {
        assert_eq!(line(&[]), "negotiated: not seen, the capture has no SYN");
        assert_eq!(
            line(&[&client("S", "mss 1460,sackOK")]),
            "client's SYN: MSS 1460; no window scaling; SACK; no timestamps; no ECN; the server's SYN-ACK: not seen"
        );
    }
}
