//! The real QUIC implementations of this build.

use quic::real::RealStack;

/// Returns the implementation with this name; `None` if the build does not include it.
pub(crate) fn named(name: &str) -> Option<&'static dyn RealStack> {
    let included: &[&'static dyn RealStack] = &[
        #[cfg(feature = "quinn")]
        &quinn_host::QUINN,
    ];
    included.iter().copied().find(|stack| stack.name() == name)
}
