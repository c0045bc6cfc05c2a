//! What the SYNs negotiated, in reports and in their advice.

use serde_json::Value;

use crate::test_directory::TestDirectory;

/// 4 MB over 100 Mbit/s and 60 ms, to a server whose SYN-ACK has no window scale.
const UNSCALED: &str = r#"
duration = "60s"
[host.client]
profile = "linux-6.18"
[host.server]
profile = "linux-6.18"
knobs = { "net.ipv4.tcp_window_scaling" = false }
[[path]]
from = "client"
to = "server"
forward = [{ link = { rate = "100Mbit/s", buffer = "500p" } }, { delay = "30ms" }]
return = [{ delay = "30ms" }]
[[flow]]
name = "upload"
from = "client"
to = "server"
bulk = "4MB"
"#;

/// The largest window without scaling is 65,535 bytes (RFC 7323 section 2.2): no buffer makes it larger.
#[test]
fn a_window_without_scaling_is_not_cured_by_a_buffer() {
    let dir = TestDirectory::new("a_window_without_scaling_is_not_cured_by_a_buffer");
    dir.write("unscaled.toml", UNSCALED);
    dir.run(&["run", "unscaled.toml", "--pcap", "unscaled.pcap"]).ok();
    let text = dir.run(&["diagnose", "unscaled.pcap"]).ok();
    let facts = "negotiated: MSS 1460; no window scaling (client only); SACK; timestamps; no ECN\n";
    assert!(text.contains(facts), "{text}");
    let help = "   = help: Linux: window scaling: net.ipv4.tcp_window_scaling=1\n";
    assert!(text.contains(help), "{text}");
    assert!(text.contains("= cure: both hosts: window scaling: "), "{text}");
    let json = dir.run(&["diagnose", "unscaled.pcap", "--json"]).ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    let negotiated = &json["connections"][0]["negotiated"];
    assert_eq!(negotiated["window_scaling"], false);
    assert_eq!((&negotiated["sack"], &negotiated["ecn"]), (&true.into(), &"none".into()));
    assert_eq!(negotiated["server"]["window_scale"], Value::Null);
    assert_eq!(negotiated["client"]["mss_bytes"], 1_460);
}
