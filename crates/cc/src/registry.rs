//! Names of controllers, as the systems' own sysctls spell them.

/// A controller that can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// FreeBSD's `newreno` ([`crate::NewReno`], by [`crate::newreno::Params`]).
    NewReno,
    /// Linux's `reno` ([`crate::LinuxReno`]).
    Reno,
}

/// Why a name gives no controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoController {
    /// A real one, which Ackclock does not model yet.
    NotModelled,
    /// No system has it.
    Unknown,
}

/// Names that [`find`] takes, in alphabetical order.
pub const NAMES: [&str; 2] = ["newreno", "reno"];

/// Names that systems know and [`find`] answers with [`NoController::NotModelled`].
pub const NOT_MODELLED: [&str; 9] =
    ["bbr", "cdg", "chd", "cubic", "dctcp", "hd", "htcp", "vegas", "westwood"];

/// The controller called `name` (`net.inet.tcp.cc.algorithm`,
/// `net.ipv4.tcp_congestion_control`).
///
/// # Errors
///
/// [`NoController`] says whether the name is real at all.
pub fn find(name: &str) -> Result<Algorithm, NoController> {
    match name {
        "newreno" => Ok(Algorithm::NewReno),
        "reno" => Ok(Algorithm::Reno),
        _ if NOT_MODELLED.contains(&name) => Err(NoController::NotModelled),
        _ => Err(NoController::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_is_found() {
        assert!(NAMES.iter().all(|name| find(name).is_ok()));
        assert!(NOT_MODELLED.iter().all(|name| find(name) == Err(NoController::NotModelled)));
        assert_eq!(find("newreon"), Err(NoController::Unknown));
    }
}
