//! Captures of QUIC with key logs.

use crate::test_directory::TestDirectory;

const CAPTURE: &[u8] = include_bytes!("../../../../golden/quic/quinn-keys.pcapng");
const KEYS: &[u8] = include_bytes!("../../../../golden/quic/quinn-keys.keys");

#[test]
fn a_key_log_beside_the_capture_or_named_is_used() {
    let dir = TestDirectory::new("a_key_log_beside_the_capture");
    dir.write("one.pcapng", CAPTURE);
    let without = dir.run(&["diagnose", "one.pcapng"]).ok();
    assert!(without.contains("A capture without keys"), "{without}");
    dir.write("other.txt", KEYS);
    let named = dir.run(&["diagnose", "one.pcapng", "--keylog", "other.txt"]).ok();
    assert!(named.contains("[CC811]") && named.contains(" decrypted, 0 not"), "{named}");
    assert!(!named.contains("A capture without keys"), "{named}");
    for name in ["one.keys", "one.keylog", "sslkeylog.txt"] {
        let dir = TestDirectory::new(&format!("a_key_log_beside_{}", name.replace('.', "_")));
        dir.write("one.pcapng", CAPTURE);
        dir.write(name, KEYS);
        assert_eq!(dir.run(&["diagnose", "one.pcapng"]).ok(), named, "{name}");
    }
}

#[test]
fn a_key_log_that_is_none_is_an_error_with_its_line() {
    let dir = TestDirectory::new("a_key_log_that_is_none");
    dir.write("one.pcapng", CAPTURE);
    for (text, message) in [
        ("", "key log bad.txt: no secret of TLS 1.3"),
        ("# a comment\nCLIENT_TRAFFIC_SECRET_0 12\n", "key log bad.txt: line 2: expected a label"),
        ("CLIENT_RANDOM 00 00\n", "key log bad.txt: no secret of TLS 1.3"),
    ] {
        dir.write("bad.txt", text);
        let error = dir.run(&["diagnose", "one.pcapng", "--keylog", "bad.txt"]).refused();
        assert!(error.contains(message), "{error}");
    }
    let error = dir.run(&["diagnose", "one.pcapng", "--keylog", "none.txt"]).refused();
    assert!(error.contains("none.txt"), "{error}");
}
