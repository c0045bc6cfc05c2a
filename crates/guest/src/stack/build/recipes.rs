//! The stacks that can be built, and the files of our programs around them.

/// What builds a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toolchain {
    /// Go, with its module proxy.
    Go,
    /// Cargo, with crates.io.
    Cargo,
    /// Python and pip, with PyPI.
    Python,
    /// A C compiler, with libraries of the system.
    C,
}

/// A stack that can be built.
#[derive(Debug)]
pub struct StackRecipe {
    /// Its name in scenarios.
    pub name: &'static str,
    /// Its name for [`find`]: what the registry calls it, and its version.
    pub wanted: &'static str,
    /// Its model.
    pub profile: &'static str,
    /// Names of its congestion controllers, the default first.
    pub controllers: &'static [&'static str],
    /// Origin of the source.
    pub source: &'static str,
    /// What builds it.
    pub toolchain: Toolchain,
    /// What its registry calls it; `None` for a library of the system.
    pub package: Option<&'static str>,
    /// Files of our program: the name for the build, and the text.
    pub(super) files: &'static [(&'static str, &'static str)],
}

/// Files of our program, each `name in the build: name in stacks/` or one name for both in `folder`.
macro_rules! files {
    ($folder:literal: $($name:literal),+) => {
        &[$(($name, include_str!(concat!("../../../stacks/", $folder, "/", $name)))),+]
    };
    ($($name:literal = $source:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../stacks/", $source)))),+]
    };
}

/// All stacks that can be built.
pub static RECIPES: [StackRecipe; 5] = [
    StackRecipe {
        name: "quic-go-0.65",
        wanted: "quic-go@v0.65",
        profile: "quic-go-0.65",
        controllers: &["newreno"],
        source: "github.com/quic-go/quic-go v0.65.0",
        toolchain: Toolchain::Go,
        package: Some("github.com/quic-go/quic-go"),
        files: files!("quic-go":
            "go.mod", "go.sum", "main.go", "wire.go", "conn.go", "host.go", "counts.go", "stub.s",
            "overlay/next_timer.go"),
    },
    StackRecipe {
        name: "quinn-0.11",
        wanted: "quinn-proto@0.11.19",
        profile: "quinn-0.11",
        controllers: &["cubic", "newreno"],
        source: "quinn-proto 0.11.19 of crates.io",
        toolchain: Toolchain::Cargo,
        package: Some("quinn-proto"),
        files: files!(
            "Cargo.toml" = "quinn/manifest.toml",
            "Cargo.lock" = "quinn/packages.lock",
            "src/main.rs" = "quinn/main.rs",
            "src/counted_crypto.rs" = "quinn/counted_crypto.rs",
            "src/stream_frames.rs" = "quinn/stream_frames.rs",
            "src/frames.rs" = "rust/frames.rs",
            "src/host.rs" = "rust/host.rs",
            "src/certificate.pem" = "certificate/certificate.pem",
            "src/key.pem" = "certificate/key.pem",
        ),
    },
    StackRecipe {
        name: "aioquic-1.7",
        wanted: "aioquic@1.7.2",
        profile: "quic-rfc9002",
        controllers: &["reno", "cubic"],
        source: "aioquic 1.7.2 of PyPI",
        toolchain: Toolchain::Python,
        package: Some("aioquic"),
        files: files!(
            "main.py" = "aioquic/main.py",
            "requirements.txt" = "aioquic/requirements.txt",
            "certificate.pem" = "certificate/certificate.pem",
            "key.pem" = "certificate/key.pem",
        ),
    },
    StackRecipe {
        name: "quiche-0.30",
        wanted: "quiche@0.30.0",
        profile: "quiche-0.30",
        controllers: &["cubic", "reno", "bbr2"],
        source: "quiche 0.30.0 of crates.io",
        toolchain: Toolchain::Cargo,
        package: Some("quiche"),
        files: files!(
            "Cargo.toml" = "quiche/manifest.toml",
            "Cargo.lock" = "quiche/packages.lock",
            "src/build.rs" = "quiche/build.rs",
            "src/main.rs" = "quiche/main.rs",
            "src/virtual_time.rs" = "quiche/virtual_time.rs",
            "src/frames.rs" = "rust/frames.rs",
            "src/host.rs" = "rust/host.rs",
            "src/certificate.pem" = "certificate/certificate.pem",
            "src/key.pem" = "certificate/key.pem",
        ),
    },
    StackRecipe {
        name: "ngtcp2-0.12",
        wanted: "ngtcp2@0.12.1",
        profile: "quic-rfc9002",
        controllers: &["cubic", "reno", "bbr", "bbr2"],
        source: "libngtcp2 0.12 of this system",
        toolchain: Toolchain::C,
        package: None,
        files: files!(
            "main.c" = "ngtcp2/main.c",
            "certificate.pem" = "certificate/certificate.pem",
            "key.pem" = "certificate/key.pem",
        ),
    },
];

/// Returns the recipe with this name, in either form: `quic-go@v0.65`, `quic-go-0.65`.
pub fn find(name: &str) -> Option<&'static StackRecipe> {
    RECIPES.iter().find(|recipe| name == recipe.name || name == recipe.wanted)
}
