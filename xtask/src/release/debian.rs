//! The Debian package: the binary is static, so it depends on nothing.

use core::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::publisher::Publisher;
use super::{Done, call, put, text};

/// The architecture by Debian's name.
const ARCH: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };

/// The time of every file, so that the package has the same bytes each time: the first second of 2026, UTC.
const EPOCH: &str = "1767225600";

/// What lintian reports and is meant so: a static binary needs no C library.
const OVERRIDES: &str = "\
# The binary is static, so that it runs on every distribution.
ackclock: statically-linked-binary
ackclock: embedded-library *
";

/// Makes the package, and has lintian judge it.
pub(super) fn make(
    tree: &Path,
    out: &Path,
    version: &str,
    publisher: &Publisher,
    missing: &mut Vec<String>,
) -> Done {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        missing.push("Debian package: it needs dpkg-deb".to_owned());
        return Ok(());
    }
    let deb = out.join("deb");
    let docs = deb.join("usr/share/doc/ackclock");
    for (from, to) in [
        ("ackclock", "usr/bin/ackclock"),
        ("completions/bash/ackclock", "usr/share/bash-completion/completions/ackclock"),
        ("completions/zsh/_ackclock", "usr/share/zsh/vendor-completions/_ackclock"),
        ("completions/fish/ackclock.fish", "usr/share/fish/vendor_completions.d/ackclock.fish"),
        ("THIRD-PARTY.md", "usr/share/doc/ackclock/THIRD-PARTY.md"),
        ("README.md", "usr/share/doc/ackclock/README.md"),
    ] {
        put(&tree.join(from), &deb.join(to))?;
    }
    let man = deb.join("usr/share/man/man1");
    for page in fs::read_dir(tree.join("man/man1")).map_err(text(tree))? {
        let page = page.map_err(text(tree))?;
        let to = man.join(page.file_name());
        put(&page.path(), &to)?;
        pack(&to)?;
    }
    let licence = |name: &str| {
        let path = tree.join(name);
        fs::read_to_string(&path).map_err(text(&path))
    };
    fs::write(docs.join("copyright"), copyright(&licence("LICENSE-MIT")?)).map_err(text(&docs))?;
    let changes = docs.join("changelog");
    let history = format!(
        "ackclock ({version}) unstable; urgency=medium\n\n  * See README.md.\n\n -- {}  Thu, 01 Jan 2026 00:00:00 +0000\n",
        publisher.maintainer()
    );
    fs::write(&changes, history).map_err(text(&changes))?;
    pack(&changes)?;
    let overrides = deb.join("usr/share/lintian/overrides");
    fs::create_dir_all(&overrides).map_err(text(&overrides))?;
    fs::write(overrides.join("ackclock"), OVERRIDES).map_err(text(&overrides))?;
    let control = deb.join("DEBIAN");
    fs::create_dir_all(&control).map_err(text(&control))?;
    let fields = control_text(version, kilobytes(&deb)?, publisher);
    fs::write(control.join("control"), fields).map_err(text(&control))?;
    modes(&deb)?;
    let file = out.join(format!("ackclock_{version}_{ARCH}.deb"));
    let mut command = Command::new("dpkg-deb");
    command
        .args(["--root-owner-group", "--build"])
        .arg(&deb)
        .arg(&file)
        .env("SOURCE_DATE_EPOCH", EPOCH);
    call(&mut command)?;
    fs::remove_dir_all(&deb).map_err(text(&deb))?;
    judge(&file, missing)
}

/// Has lintian judge the package; an error or a warning is one of the release.
fn judge(file: &Path, missing: &mut Vec<String>) -> Done {
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning"]);
    // What only a package of the distribution itself has: a bug that asks for it, a date of its own.
    lintian.args(["--suppress-tags", "initial-upload-closes-no-bugs,debian-changelog-line-too-long,latest-debian-changelog-entry-without-new-date"]);
    match lintian.arg(file).output() {
        Err(_) => missing.push("judgement of the Debian package: it needs lintian".to_owned()),
        Ok(said) if said.status.success() => println!("lintian: accepts the Debian package"),
        Ok(said) => {
            let words = String::from_utf8_lossy(&said.stdout).into_owned();
            return Err(format!("lintian:\n{words}{}", String::from_utf8_lossy(&said.stderr)));
        }
    }
    Ok(())
}

fn control_text(version: &str, size: u64, publisher: &Publisher) -> String {
    let mut fields = format!(
        "Package: ackclock\nVersion: {version}\nArchitecture: {ARCH}\nMaintainer: {}\nInstalled-Size: {size}\n\
         Section: net\nPriority: optional\n",
        publisher.maintainer()
    );
    if !publisher.repository.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(fields, "Homepage: {}", publisher.repository);
    }
    fields
        + "Description: finds out why a TCP or QUIC transfer is slow\n \
           Ackclock diagnoses slow TCP and QUIC transfers from captures and logs, names\n \
           the cause with its cost, and shows what would cure it: it simulates the\n \
           transfer in virtual time with senders that follow the real stacks.\n"
}

/// The machine-readable form of Debian.
fn copyright(mit: &str) -> String {
    let holders = mit.lines().find(|line| line.starts_with("Copyright"));
    let holders = holders
        .map_or("the authors of Ackclock", |line| line.trim_start_matches("Copyright").trim());
    let body: String = mit
        .lines()
        .map(|line| if line.is_empty() { " .\n".to_owned() } else { format!(" {line}\n") })
        .collect();
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: ackclock\n\n\
         Files: *\nCopyright: {holders}\nLicense: Expat or Apache-2.0\n\n\
         License: Expat\n{body}\n\
         License: Apache-2.0\n On Debian systems the text of the Apache License, version 2.0, is in\n \
         /usr/share/common-licenses/Apache-2.0.\n"
    )
}

/// Packs a file as Debian's policy asks: as small as possible, without name and time.
fn pack(file: &Path) -> Done {
    call(Command::new("gzip").args(["-9", "-n", "-f"]).arg(file))
}

/// The size of all files in kB.
fn kilobytes(root: &Path) -> Done<u64> {
    let mut files = Vec::new();
    super::collect(root, &mut files)?;
    let sizes = files.iter().map(|file| fs::metadata(file).map(|data| data.len().div_ceil(1_024)));
    sizes.sum::<std::io::Result<u64>>().map_err(text(root))
}

/// Files of a package are readable by all and writable by root, whatever the mask of this process is.
fn modes(root: &Path) -> Done {
    call(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(root))?;
    let mut files = Vec::new();
    super::collect(root, &mut files)?;
    for file in files.iter().filter(|file| !file.ends_with("usr/bin/ackclock")) {
        call(Command::new("chmod").arg("0644").arg(file))?;
    }
    Ok(())
}
