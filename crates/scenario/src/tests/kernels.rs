//! Tests of hosts that are real kernels.

use units::{Bytes, Duration};

use super::*;

const KERNELS: &str = r#"host.a = { profile = "linux-6.18", kernel = "linux-6.12" }
host.b = { profile = "linux-6.18", kernel = "./patched/linux", kernel_memory = "128MiB", tcp_info = "5ms", sysctl = { "net.ipv4.tcp_ecn" = 1, "net.core.default_qdisc" = "fq", "net.ipv4.tcp_sack" = false } }
host.c = { profile = "linux-6.18" }
path = [ { from = "a", to = "b", forward = [ { delay = "5ms" } ], return = [] } ]
flow = [ { name = "f", from = "a", to = "b", bulk = "1MB" } ]
"#;

#[test]
fn kernels_are_read_where_they_can_be_run() {
    let overrides = Overrides { kernels: true, ..Overrides::default() };
    let loaded = load(KERNELS, "test.toml", &overrides).unwrap();
    let sysctl = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected = [
        KernelHost {
            host: 0,
            kernel: "linux-6.12".to_owned(),
            memory: Bytes(64 << 20),
            sysctls: Vec::new(),
            tcp_info: Duration::from_millis(10),
        },
        KernelHost {
            host: 1,
            kernel: "./patched/linux".to_owned(),
            memory: Bytes(128 << 20),
            sysctls: vec![
                sysctl("net.ipv4.tcp_ecn", "1"),
                sysctl("net.core.default_qdisc", "fq"),
                sysctl("net.ipv4.tcp_sack", "0"),
            ],
            tcp_info: Duration::from_millis(5),
        },
    ];
    assert_eq!(loaded.kernels, expected);
}

#[test]
fn elsewhere_a_kernel_is_a_mistake_at_its_place() {
    let found = mistakes(KERNELS, &[]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("test.toml:1:") && found[0].contains("real kernel"), "{}", found[0]);
}

#[test]
fn sysctls_need_a_kernel_and_a_value() {
    let alone = KERNELS.replace(r#"kernel = "./patched/linux", "#, "");
    let overrides = Overrides { kernels: true, ..Overrides::default() };
    assert_eq!(load(&alone, "test.toml", &overrides).unwrap_err().len(), 3);
    for bad in [r#""a b" = 1"#, r#""../x" = 1"#, r#""net.x" = [1]"#, "\"net.x\" = \"1\\n2\""] {
        let text = KERNELS.replace(r#""net.ipv4.tcp_ecn" = 1"#, bad);
        let errors = load(&text, "test.toml", &overrides).unwrap_err();
        assert_eq!(errors.len(), 1, "{bad}: {errors:?}");
    }
}
