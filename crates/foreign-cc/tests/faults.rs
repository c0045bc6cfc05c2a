//! Faults of controllers in C: each ends its own run with an error that names the file and the virtual time, and no other.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};

use ackclock_foreign_cc as foreign_cc;
use foreign_cc::compile::{Build, build};
use foreign_cc::named;
use record::Digest;
use scenario::{Overrides, load};

/// A directory of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Compiles a file; returns the library, or the error.
    fn compile(&self, name: &str, text: &str) -> Result<String, String> {
        let source = self.0.join(name).with_extension("c");
        fs::write(&source, text).unwrap();
        let output = source.with_extension("so");
        let compiler = "cc".to_owned();
        let done =
            build(&Build { sources: vec![source], output: output.clone(), hz: 250, compiler });
        done.map(|()| output.to_string_lossy().into_owned()).map_err(|error| error.to_string())
    }
}

fn has_compiler() -> bool {
    let there = std::process::Command::new("cc").arg("--version").output().is_ok();
    if !there {
        // A test without a compiler tests nothing.
        eprintln_of_test("no C compiler `cc`: skipped");
    }
    there
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn eprintln_of_test(text: &str) {
    eprintln!("{text}");
}

/// Reno's rules as a Linux module, with `body` at the start of `cong_avoid`.
fn module(body: &str) -> String {
    format!(
        "#include <linux/module.h>\n#include <net/tcp.h>\n\
         static void mine_cong_avoid(struct sock *sk, u32 ack, u32 acked)\n{{\n\
         struct tcp_sock *tp = tcp_sk(sk);\n(void)tp;\n{body}\ntcp_reno_cong_avoid(sk, ack, acked);\n}}\n\
         static struct tcp_congestion_ops mine = {{ .ssthresh = tcp_reno_ssthresh, .cong_avoid = mine_cong_avoid,\n\
         .undo_cwnd = tcp_reno_undo_cwnd, .owner = THIS_MODULE, .name = \"mine\" }};\n\
         static int __init mine_register(void) {{ return tcp_register_congestion_control(&mine); }}\n\
         module_init(mine_register);\nMODULE_LICENSE(\"GPL\");\n"
    )
}

const SCENARIO: &str = "duration = \"3s\"\n[host.a]\nprofile = \"linux-6.18\"\ncc = \"reno\"\n\
     [host.b]\nprofile = \"linux-6.18\"\n[[path]]\nfrom = \"a\"\nto = \"b\"\n\
     forward = [{ link = { rate = \"10Mbit/s\", buffer = \"30kB\" } }, { delay = \"20ms\" }]\n\
     return = [{ delay = \"20ms\" }]\n[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n\
     bulk = \"unlimited\"\n";

/// Runs the scenario with another controller; returns the digest of all events.
fn run(cc: &str) -> Result<u64, String> {
    let files = scenario::Files::default()
        .with_controllers(|name| named::controller_with_bytes(name, Path::new("")));
    let set = vec![format!("host.a.cc=\"{cc}\"")];
    let loaded = load(SCENARIO, "own.toml", &Overrides { set, files, ..Overrides::default() })
        .map_err(|errors| errors[0].to_string())?;
    let mut digest = Digest::default();
    sim::run(&loaded.scenario, &mut digest).map_err(|error| error.to_string())?;
    Ok(digest.value())
}

#[test]
fn reno_in_c_is_linux_reno_in_both_places() {
    if !has_compiler() {
        return;
    }
    let folder = Folder::new("reno");
    let library = folder.compile("tcp_mine", &module("")).unwrap();
    let built_in = run("reno").unwrap();
    assert_eq!(run(&library), Ok(built_in));
    assert_eq!(run(&format!("in-process:{library}")), Ok(built_in));
}

#[test]
fn a_fault_names_the_file_the_operation_and_the_time_and_ends_only_its_run() {
    if !has_compiler() {
        return;
    }
    let folder = Folder::new("faults");
    let good = folder.compile("tcp_good", &module("")).unwrap();
    let expected = run(&good).unwrap();
    for (name, body, what) in [
        ("null", "if (tp->delivered > 200) *(volatile int *)8 = 1;", "SIGSEGV"),
        (
            "zero",
            "if (tp->delivered > 200) tp->snd_cwnd_cnt /= tp->delivered_ce;",
            "divided by zero",
        ),
        ("loop", "if (tp->delivered > 200) for (;;) barrier();", "did not return within 2 s"),
        ("window", "if (tp->delivered > 200) { tp->snd_cwnd = 0; return; }", "set the window to 0"),
        (
            "stray",
            "if (tp->delivered > 200) memset(inet_csk_ca(sk), 1, sizeof(struct ackclock_cc) - 200);",
            "not its own",
        ),
        (
            "parent",
            "if (tp->delivered > 200) memset((void *)((unsigned long)&tcp_reno_cong_avoid & ~4095ul), 0, 64);",
            "SIGSEGV",
        ),
        ("abort", "if (tp->delivered > 200) BUG();", "a trap"),
    ] {
        let library = folder.compile(name, &module(body)).unwrap();
        let error = run(&library).unwrap_err();
        assert!(error.contains(&library) && error.contains(what), "{name}: {error}");
        // 200 packets at 10 Mbit/s and 40 ms.
        assert!(error.contains("cong_avoid") && error.contains(" at 0."), "{name}: {error}");
        assert_eq!(run(&good), Ok(expected), "after {name}");
    }
}

#[test]
fn a_fault_while_it_is_loaded_is_an_error() {
    if !has_compiler() {
        return;
    }
    let folder = Folder::new("loading");
    let crashing =
        module("").replace("{ return tcp_reg", "{ *(volatile int *)8 = 1; return tcp_reg");
    let endless = module("").replace("{ return tcp_reg", "{ for (;;) barrier(); return tcp_reg");
    for (name, text, what) in
        [("crash", crashing, "SIGSEGV"), ("endless", endless, "did not return")]
    {
        let library = folder.compile(name, &text).unwrap();
        let error = run(&library).unwrap_err();
        assert!(error.contains(what) && error.contains("while it was loaded"), "{error}");
    }
    let text = folder.0.join("text.so");
    fs::write(&text, "no library").unwrap();
    assert!(run(&text.to_string_lossy()).unwrap_err().contains("cannot load it"));
    let absent = folder.0.join("absent.so");
    assert!(run(&absent.to_string_lossy()).unwrap_err().contains("cannot read it"));
}

#[test]
fn a_library_for_another_hz_is_refused() {
    if !has_compiler() {
        return;
    }
    let folder = Folder::new("hz");
    let source = folder.0.join("tcp_mine.c");
    fs::write(&source, module("")).unwrap();
    let output = source.with_extension("so");
    let compiler = "cc".to_owned();
    build(&Build { sources: vec![source], output: output.clone(), hz: 1_000, compiler }).unwrap();
    let error = run(&output.to_string_lossy()).unwrap_err();
    assert!(error.contains("HZ = 1000") && error.contains("--hz 250"), "{error}");
}

#[test]
fn what_is_not_provided_is_named_with_its_line() {
    if !has_compiler() {
        return;
    }
    let folder = Folder::new("missing");
    let error = folder.compile("field", &module("tp->rack.reord = 1;\ntp->foo++;")).unwrap_err();
    assert!(
        error.contains("field.c:7: the field `rack` of struct tcp_sock is not mapped"),
        "{error}"
    );
    assert!(
        error.contains("field.c:8: the field `foo` of struct tcp_sock is not mapped"),
        "{error}"
    );
    let error = folder.compile("function", &module("tcp_send_ack(sk);")).unwrap_err();
    assert!(error.contains("function.c:7: the function `tcp_send_ack`"), "{error}");
    let error = folder.compile("header", "#include <linux/rhashtable.h>\n// tcp_congestion_ops\n");
    assert!(error.unwrap_err().contains("header.c:1: the header `linux/rhashtable.h`"));
    let error = folder.compile("freebsd", "struct cc_algo x;\n").unwrap_err();
    assert!(error.contains("struct cc_algo"), "{error}");
    let error = folder.compile("other", "int x;\n").unwrap_err();
    assert!(error.contains("no congestion controller"), "{error}");
}

#[test]
fn it_needs_the_stack_of_linux() {
    if !has_compiler() {
        return;
    }
    let folder = Folder::new("stack");
    let library = folder.compile("tcp_mine", &module("")).unwrap();
    let files = scenario::Files::default()
        .with_controllers(|name| named::controller_with_bytes(name, Path::new("")));
    let set = vec!["host.a.profile=freebsd-main".to_owned(), format!("host.a.cc=\"{library}\"")];
    let errors = load(SCENARIO, "own.toml", &Overrides { set, files, ..Overrides::default() });
    assert!(errors.unwrap_err()[0].message.contains("needs Linux's stack"));
}

/// The layouts in Rust and in C are one.
#[test]
fn the_layout_is_that_of_the_header() {
    if !has_compiler() {
        return;
    }
    let folder = Folder::new("layout");
    fs::write(folder.0.join("ackclock-cc.h"), foreign_cc::HEADER).unwrap();
    macro_rules! offsets {
        ($($field:ident),*) => {
            [$((stringify!($field), core::mem::offset_of!(cc::kernel::KernelSock, $field))),*]
        };
    }
    let fields = offsets!(
        abi,
        size,
        now_ns,
        jiffies,
        random,
        random_used,
        hz,
        sk_pacing_rate,
        sk_max_pacing_rate,
        sk_pacing_status,
        sk_gso_max_size,
        sk_pacing_shift,
        sk_state,
        icsk_ca_ops,
        icsk_ca_state,
        icsk_retransmits,
        reserved_icsk,
        icsk_ca_priv,
        snd_cwnd,
        snd_cwnd_cnt,
        snd_cwnd_clamp,
        snd_cwnd_stamp,
        snd_ssthresh,
        prior_cwnd,
        prior_ssthresh,
        high_seq,
        snd_una,
        snd_nxt,
        snd_wnd,
        rcv_nxt,
        mss_cache,
        max_packets_out,
        is_cwnd_limited,
        packets_out,
        sacked_out,
        lost_out,
        retrans_out,
        app_limited,
        delivered,
        delivered_ce,
        lost,
        srtt_us,
        min_rtt_us,
        lsndtime,
        ecn_flags,
        reserved_tp,
        tcp_mstamp,
        delivered_mstamp,
        tcp_wstamp_ns,
        tcp_clock_cache,
        arg,
        ack_sample,
        rate_sample,
        requests,
        min_tso_segs,
        sndbuf_expand,
        arena_used,
        arena,
        guard
    );
    let mut text = "#include \"ackclock-cc.h\"\n".to_owned();
    for (field, offset) in fields {
        text += &format!(
            "_Static_assert(offsetof(struct ackclock_cc, {field}) == {offset}, \"{field}\");\n"
        );
    }
    let size = cc::kernel::KernelSock::SIZE;
    text += &format!("_Static_assert(sizeof(struct ackclock_cc) == {size}, \"size\");\n");
    let source = folder.0.join("layout.c");
    fs::write(&source, text).unwrap();
    let mut compiler = std::process::Command::new("cc");
    compiler
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"])
        .arg(&source);
    let done = compiler.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Both examples compile, and run the same in both places.
#[test]
fn the_examples_run() {
    if !has_compiler() {
        return;
    }
    let folder = Folder::new("examples");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cc");
    let mut digests = vec![run("reno").unwrap()];
    for name in ["tcp_gentle", "aimd"] {
        let text = fs::read_to_string(examples.join(name).with_extension("c")).unwrap();
        let library = folder.compile(name, &text).unwrap();
        let digest = run(&library).unwrap();
        assert_eq!(run(&format!("in-process:{library}")), Ok(digest), "{name}");
        digests.push(digest);
    }
    // The other halves and adds a segment, which may be here what Reno does.
    assert_ne!(digests[0], digests[1], "tcp_gentle sends as Reno");
}
